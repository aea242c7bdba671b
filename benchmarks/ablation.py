"""What each constant of `assured` earns: `python -m benchmarks.ablation`.

Every constant of the recipe is halved and doubled (or switched off) alone, everything else as it is, same seeds. With
the truth of a pool known, the variance of the estimate of accuracy given its design is exact, no error has to be
averaged over many runs:  V = sum_s c_s^2 sum_i (1 - p_si) / p_si (e_si - mean e_s)^2,  e = right - believed.
Constants that change the interval alone are read from its width. Pools are those of `benchmarks.label_value`, on which
the constants were chosen. Finished runs are kept, so an interrupted benchmark goes on.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402  (thread caps come first)

from altmas.history import History  # noqa: E402
from altmas.memo import ArrayFile  # noqa: E402
from altmas.methods import Task  # noqa: E402
from altmas.methods.assured import Assured  # noqa: E402
from altmas.methods.assured.estimator import Difference  # noqa: E402
from altmas.methods.assured.recipe import RECIPE, Recipe, varied  # noqa: E402
from altmas.methods.assured.stages import stages_of  # noqa: E402
from altmas.pool import Pool  # noqa: E402
from altmas.progress import progress_bar  # noqa: E402
from altmas.simulate import label_until  # noqa: E402
from altmas.types import Array  # noqa: E402
from benchmarks.data import load  # noqa: E402
from benchmarks.label_value import available, metrics_of, pool_of  # noqa: E402
from benchmarks.store import RESULTS, RUNS, Row, Runs, write_csv  # noqa: E402
from benchmarks.tables import DOCS, markdown, rewrite_page  # noqa: E402

CELLS = (
    ("20news", "scores", "accuracy"),
    ("employment-ma", "hard", "several"),
    ("banking77", "hard", "several"),
    ("tweet-emotion-llm", "hard", "several"),
)
"""Pool, track and aim: with and without scores and features, 2 to 77 classes."""
LABELS, REPEATS = 200, 2
TABLE = RESULTS / "ablation.csv"
PAGE = DOCS / "assured.md"
OTHER: dict[str, tuple[Any, ...]] = {
    "pilot_class_share": (0.0, 0.6),
    "pilot_class_labels": (0, 8),
    "pilot_doubt_share": (0.0, 0.6),
    "variance_share": (0.0, 0.66),
    "least_defensive": (0.1, 0.2),
    "most_defensive": (0.35, 1.0),
    "trust_in_scores": (1.0, 100.0),
    "own_coefficients": (0, 1000),
    "kernel_share": (0.5, 0.97),
    "folds": (5, 20),
    "certain": (1e-7, 1e-3),
}
"""Constants of which half and double would say little."""
OF_VIEWS = (
    "few_columns",
    "components",
    "neighbours",
    "kernel_features",
    "kernel_width",
    "kernel_share",
    "imitation_width",
    "largest_odds",
)
"""Constants of the label-free description of a pool: it is made anew for them, and kept for all others."""
SMALL = ("banking77", "tweet-emotion-llm")
"""Pools that are described in seconds."""


OF_RANKING = ("ranking_pilot", "ranking_uniform")
"""Constants of draws that rank models: `benchmarks.ranking` is about these."""
OF_GRADES = ("value_penalty", "value_each_penalty")
"""Constants of the belief about classes that are numbers, which these pools do not have: see `benchmarks.judges`."""
ELSEWHERE = (*OF_RANKING, *OF_GRADES)


def variants() -> Iterator[dict[str, Any]]:
    """The recipe as it is, then every constant changed alone."""
    yield {}
    for field in (field for field in fields(Recipe) if field.name not in ELSEWHERE):
        value = getattr(RECIPE, field.name)
        for other in OTHER.get(field.name, (type(value)(value / 2), value * 2)):
            yield {field.name: other}


def pools_for(changes: dict[str, Any]) -> tuple[str, ...]:
    """The pools on which a variant is run: small ones where each has to be described anew."""
    return SMALL if set(changes) & set(OF_VIEWS) else tuple(name for name, _, _ in CELLS)


def said(changes: dict[str, Any]) -> str:
    """A variant as a key."""
    return ", ".join(f"{name}={value:g}" for name, value in changes.items()) or "as it is"


def run(pool: Pool, truth: Array, name: str, aim: str, repeat: int) -> Row:
    """{variance of accuracy given the design, over that of a random sample; half-width of its interval}."""
    method, task = Assured(), Task(pool, metrics_of(name, pool, aim), seed=repeat)
    history = label_until(method, task, History(len(pool)), LABELS, 10, truth.__getitem__)
    right = (pool.predictions == truth).astype(np.float64)
    samples = method._samples(task, history, stages_of(history))
    whole = np.ones(len(pool), np.bool_)
    shares = Difference(samples, pool, history.known, whole, np.zeros(0, np.int64)).shares
    variance = 0.0
    for share, sample in zip(shares, samples, strict=True):
        inside = sample.stage.population
        chance = np.maximum(sample.stage.chances[inside], 1e-9)
        residual = (right - sample.belief.agree)[inside]
        centre = ((1 - chance) * residual).sum() / (1 - chance).sum()
        variance += share**2 * float(((1 - chance) / chance * (residual - centre) ** 2).sum())
    accuracy = float(right.mean())
    random = len(pool) ** 2 * accuracy * (1 - accuracy) * (1 / LABELS - 1 / len(pool))
    return {"variance": variance / random, "half_width": method.estimate(task, history)["accuracy"].half_width}


def run_all(repeats: int) -> None:
    """Every missing run, cell by cell."""
    cells = [cell for cell in CELLS if available(cell[0])]
    wanted = [(changes, cell) for changes in variants() for cell in cells if cell[0] in pools_for(changes)]
    with progress_bar("ablation", len(wanted)) as bar:
        for changes, (name, track, aim) in wanted:
            runs = Runs(RUNS / f"ablation.{name}.{track}.{aim}.jsonl", "variant", "repeat")
            missing = [r for r in range(repeats) if (said(changes), r) not in runs.done()]
            if missing:
                named = load(name)
                with varied(**changes):
                    pool = pool_of(named, track)
                    if not set(changes) & set(OF_VIEWS):
                        pool.memo.file = ArrayFile(RUNS / f"ablation.{name}.{track}.description")
                    for repeat in missing:
                        found = run(pool, named.truth, name, aim, repeat)
                        runs.add({"variant": said(changes), "repeat": repeat, **found})
            bar.advance(1)


def table() -> list[Row]:
    """A row for each variant: variance and width over those of the recipe as it is, geometric means over the cells."""
    found: dict[str, dict[tuple[str, int], Row]] = {}
    for name, track, aim in CELLS:
        for one in Runs(RUNS / f"ablation.{name}.{track}.{aim}.jsonl", "variant", "repeat").read():
            found.setdefault(one["variant"], {})[name, one["repeat"]] = one
    base, rows = found.get("as it is", {}), []
    for changes in variants():
        mine = found.get(said(changes), {})
        both = sorted(key for key in set(base) & set(mine) if key[0] in pools_for(changes))
        if not both or not changes:
            continue
        (constant, value) = next(iter(changes.items()))
        ratios = np.array([[mine[k][x] / base[k][x] for x in ("variance", "half_width")] for k in both])
        by_pool = {k[0]: float(np.exp(np.log(ratios[[j[0] == k[0] for j in both], 0]).mean())) for k in both}
        worst = max(by_pool, key=lambda pool: by_pool[pool])
        mean = np.exp(np.log(ratios).mean(0))
        rows.append(
            {
                "constant": constant,
                "recipe": getattr(RECIPE, constant),
                "instead": value,
                "runs": len(both),
                "variance": round(float(mean[0]), 3),
                "worst": round(by_pool[worst], 3),
                "worst_pool": worst,
                "half_width": round(float(mean[1]), 3),
            }
        )
    return rows


def page_table(rows: list[Row]) -> str:
    """The table of the page."""
    head = ("constant", "recipe", "instead", "variance", "worst pool", "half-width")
    return markdown(
        head,
        [
            (
                f"`{row['constant']}`",
                f"{float(row['recipe']):g}",
                f"{float(row['instead']):g}",
                f"{float(row['variance']):.2f}",
                f"{float(row['worst']):.2f} ({row['worst_pool']})",
                f"{float(row['half_width']):.2f}",
            )
            for row in rows
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What each constant of assured earns.")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--summary", action="store_true", help="only rewrite the table")
    given = parser.parse_args()
    if not given.summary:
        run_all(given.repeats)
    rows = table()
    write_csv(TABLE, rows)
    rewrite_page(PAGE, {"ablation": page_table(rows)})


if __name__ == "__main__":
    main()
