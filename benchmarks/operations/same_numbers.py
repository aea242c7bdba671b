"""Every figure of a few small runs at full precision: equal before and after a change that should change none.

python -m benchmarks.operations.same_numbers > before.json
python -m benchmarks.operations.same_numbers --against before.json     # exit 1 and the places that differ
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import altmas
from altmas.claims import Claim, judge
from altmas.methods import METHODS, unsupported
from altmas.metrics import metric_set

SIMULATED = ("assured", "altmas", "tradition", "stratified", "lure")
METRICS = ("accuracy", "recall[cat]", "macro_f1", "kappa", "accuracy@site=north")
CLAIMS = ("accuracy >= 0.5", "accuracy >= 0.8", "recall[cat] < 0.3")
LABELS, BATCH = 60, 15
N, CLASSES = 240, ("cat", "dog", "owl")


def small_pool(*, n: int = N, seed: int = 5) -> tuple[altmas.Pool, list[str]]:
    """(pool, truth): three classes, errors where a visible difficulty is high."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    difficulty = rng.random(n)
    wrong = rng.random(n) < 0.5 * difficulty
    predictions = np.where(wrong, (truth + rng.integers(1, 3, n)) % 3, truth)
    sure = 1 - 0.45 * difficulty
    scores = np.tile(((1 - sure) / 2)[:, None], (1, 3))
    scores[np.arange(n), predictions] = sure
    names = np.array(CLASSES)
    pool = altmas.Pool(
        np.column_stack([difficulty, truth + 0.8 * rng.normal(size=n), rng.normal(size=(n, 3))]),
        names[predictions],
        scores=scores,
        classes=list(CLASSES),
        ids=[f"case-{row}" for row in range(n)],
        slices={"site": np.where(np.arange(n) % 2, "north", "south")},
        items=[f"text {row}" for row in range(n)],
    )
    return pool, names[truth].tolist()


def of_session(session: altmas.Session, truth: list[str]) -> dict[str, Any]:
    """A session run to its budget: which points were asked, every estimate on the way, claims, slices, the log."""
    trace = []
    while not session.should_stop():
        queries = session.ask(BATCH)
        session.tell({query.id: truth[query.index] for query in queries})
        trace.append({"asked": [query.index for query in queries], **session.estimate().to_dict()})
    names = [metric.name for metric in session.task.metrics]
    return {
        "trace": trace,
        "by": session.estimate(by="site").to_dict(),
        "checks": [judge(session, claim).to_dict() for claim in map(Claim.parse, CLAIMS) if claim.metric in names],
        "status": session.status().to_dict(),
        "decision": str(session.should_stop()),
    }


def recorded(folder: Path, pool: altmas.Pool, truth: list[str]) -> dict[str, Any]:
    """A session on disk with a skip, an undo, a second opinion and a ruling, closed, opened again and replayed."""
    path = folder / "recorded.altmas"
    targets = {"accuracy": 0.05}
    with altmas.Session.create(path, pool, metrics=METRICS, budget=LABELS, seed=3, targets=targets) as session:
        first = session.ask(BATCH)
        session.skip(first[0].id, "unreadable")
        session.tell({query.id: truth[query.index] for query in first[1:]}, annotator="ann")
        session.tell(first[2].id, CLASSES[0], annotator="bob")
        session.adjudicate(first[2].id, truth[first[2].index])
        session.undo()
        of_session(session, truth)
    with altmas.Session.open(path) as opened:
        return {
            "estimate": opened.estimate().to_dict(),
            "replayed": [opened.at(labels).estimate().to_dict() for labels in (20, 40)],
            "compared": opened.compare({name: CLASSES[row % 3] for row, name in enumerate(pool.ids)}).to_dict(),
            "agreement": str(opened.agreement()),
            "log": [
                {key: event[key] for key in ("seq", "kind", "annotator", "point", "label")} for event in opened.events()
            ],
        }


def _able(name: str, pool: altmas.Pool, metrics: Sequence[str]) -> bool:
    return not unsupported(METHODS[name](), metric_set(metrics, pool))


def numbers() -> dict[str, Any]:
    """All of it, by what was run."""
    pool, truth = small_pool()
    figures: dict[str, Any] = {}
    for name in METHODS:
        metrics = next(names for names in (METRICS, ("accuracy",), ("recall[cat]",)) if _able(name, pool, names))
        with altmas.Session.create(None, pool, metrics=metrics, method=name, budget=LABELS, seed=1) as session:
            figures[f"session {name}"] = of_session(session, truth)
    with tempfile.TemporaryDirectory() as folder:
        figures["recorded"] = recorded(Path(folder), pool, truth)
    simulation = altmas.simulate(
        pool, truth, methods=SIMULATED, metrics=METRICS, budgets=(30, 60), repeats=2, n_jobs=1, progress=False
    )
    figures["simulate"] = [{k: v for k, v in row.items() if k != "seconds"} for row in simulation.rows]
    plain: dict[str, Any] = json.loads(json.dumps(figures, default=str))
    return plain


VOLATILE = ("at", "created", "last", "seconds", "hash", "digest")


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """One line for each figure that is not the same in both."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            if not any(key == name or key.startswith(name + "_") for name in VOLATILE):
                yield from differences(before.get(key), after.get(key), f"{where}/{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, f"{where}/{index}")
    elif before != after and not (before != before and after != after):
        yield f"{where}: {before!r} before, {after!r} now"


def main() -> int:
    """Print the figures, or compare them with a file of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="figures printed earlier")
    against = parser.parse_args().against
    figures = numbers()
    if against is None:
        json.dump(figures, sys.stdout, indent=1)
        return 0
    lines = list(differences(json.loads(against.read_text()), figures))
    print("\n".join(lines) or "the same numbers")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
