"""A small pool, its truth, and sessions on it."""

from pathlib import Path
from typing import Any

import numpy as np

import altmas

N = 60
NAMES = np.array(["cat", "dog", "owl"])


def pool(n: int = N, **changes: Any) -> altmas.Pool:
    rng = np.random.default_rng(1)
    parts: dict[str, Any] = {
        "features": rng.normal(size=(n, 4)),
        "predictions": NAMES[rng.integers(0, 3, n)],
        "scores": rng.dirichlet(np.ones(3), n),
        "classes": NAMES.tolist(),
        "ids": [f"p{row}" for row in range(n)],
        "slices": {"site": np.where(np.arange(n) % 2, "north", "south")},
        "items": [f"text {row}" for row in range(n)],
    }
    parts |= changes
    return altmas.Pool(parts.pop("features"), parts.pop("predictions"), **parts)


TRUTH = NAMES[np.random.default_rng(2).integers(0, 3, 10_000)].tolist()


def truth(query: altmas.Query) -> str:
    return str(TRUTH[query.index])


def create(path: Path | None = None, **options: Any) -> altmas.Session:
    made = options.pop("pool", None) or pool()
    return altmas.Session.create(path, made, **{"metrics": ["accuracy"], "method": "tradition", **options})
