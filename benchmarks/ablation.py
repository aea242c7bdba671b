"""What each constant of `assured` earns: `python -m benchmarks.ablation`.

Every constant of the recipe is halved and doubled (or switched off) alone, everything else as it is, same seeds. With
the truth of a pool known, the variance of the estimate of accuracy given its design is exact, no error has to be
averaged over many runs (`design_variance.py`, e = right - believed).
Constants that change the interval alone are read from its width. Pools are those of `benchmarks.label_value`, on which
the constants were chosen. A second table has the share of uniform draws, which buys width with variance. Finished runs
are kept, so an interrupted benchmark goes on.
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
from altmas.methods.assured.recipe import RECIPE, Recipe, varied  # noqa: E402
from altmas.pool import Pool  # noqa: E402
from altmas.progress import progress_bar  # noqa: E402
from altmas.simulate import label_until  # noqa: E402
from altmas.types import Array  # noqa: E402
from benchmarks.data import load  # noqa: E402
from benchmarks.design_variance import estimator_of, of_design, of_random_sample  # noqa: E402
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
UNIFORM_CELLS = (
    ("mnist-99", "scores", "accuracy"),
    ("abt-buy-svm", "scores", "accuracy"),
    ("mnist-70", "hard", "accuracy"),
    ("20news", "scores", "accuracy"),
)
"""Where the share of uniform draws is varied: models that hardly err, and two that err more often."""
UNIFORM_SHARES = (0.1, 0.35, 0.5, 0.7, 1.0)
LABELS, REPEATS, UNIFORM_LABELS = 200, 2, 400
TABLE, UNIFORM_TABLE = RESULTS / "ablation.csv", RESULTS / "ablation_uniform.csv"
PAGE = DOCS / "assured.md"
OTHER: dict[str, tuple[Any, ...]] = {
    "pilot_class_share": (0.0, 0.6),
    "pilot_class_labels": (0, 8),
    "pilot_doubt_share": (0.0, 0.6),
    "variance_share": (0.0, 0.66),
    "least_defensive": (0.1, 0.2),
    "most_defensive": (0.5, 1.0),
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
OF_FEW_LABELS = ("fewest_to_shrink",)
"""Constants that change nothing with as many labels as here: see the pools *coin flips*, *rare class* of `validity`."""
OF_RARE_CLASSES = ("out_of_reach", "exposure_of_whole")
"""Constants of draws for single classes, which change no draw for accuracy: `benchmarks.one_class` is about these."""
ELSEWHERE = (*OF_RANKING, *OF_GRADES, *OF_FEW_LABELS, *OF_RARE_CLASSES)


def variants() -> Iterator[dict[str, Any]]:
    """The recipe as it is, then every constant changed alone."""
    yield {}
    for field in (field for field in fields(Recipe) if field.name not in ELSEWHERE):
        value = getattr(RECIPE, field.name)
        for changed in OTHER.get(field.name, (type(value)(value / 2), value * 2)):
            yield {field.name: changed}


def pools_for(changes: dict[str, Any]) -> tuple[str, ...]:
    """The pools on which a variant is run: small ones where each has to be described anew."""
    return SMALL if set(changes) & set(OF_VIEWS) else tuple(name for name, _, _ in CELLS)


def said(changes: dict[str, Any]) -> str:
    """A variant as a key."""
    return ", ".join(f"{name}={value:g}" for name, value in changes.items()) or "as it is"


def run(
    pool: Pool, truth: Array, name: str, aim: str, repeat: int, method: Assured | None = None, labels: int = LABELS
) -> Row:
    """{variance of accuracy given the design, over that of a random sample; half-width of its interval}."""
    method, task = method or Assured(), Task(pool, metrics_of(name, pool, aim), seed=repeat)
    history = label_until(method, task, History(len(pool)), labels, 10, truth.__getitem__)
    right = (pool.predictions == truth).astype(np.float64)
    estimator = estimator_of(method, task, history)
    variance = of_design(estimator, [right - sample.belief.agree for sample in estimator.samples])
    half_width = method.estimate(task, history)["accuracy"].half_width
    return {"variance": variance / of_random_sample(right, labels), "half_width": half_width}


def run_all(repeats: int) -> None:
    """Every missing run, cell by cell."""
    cells = [cell for cell in CELLS if available(cell[0])]
    pairs = [(changes, cell) for changes in variants() for cell in cells if cell[0] in pools_for(changes)]
    with progress_bar("ablation", len(pairs)) as bar:
        for changes, (name, track, aim) in pairs:
            runs = Runs(RUNS / f"ablation.{name}.{track}.{aim}.jsonl", "variant", "repeat")
            missing = [r for r in range(repeats) if (said(changes), r) not in runs.done()]
            if missing:
                named = load(name)
                with varied(**changes):
                    pool = pool_of(named, track)
                    if not set(changes) & set(OF_VIEWS):
                        pool.memo.file = ArrayFile(RUNS / f"ablation.{name}.{track}.description")
                    for repeat in missing:
                        row = run(pool, named.truth, name, aim, repeat)
                        runs.add({"variant": said(changes), "repeat": repeat, **row})
            bar.advance(1)


def uniform_runs(name: str, track: str, aim: str) -> Runs:
    """The runs of one pool with other shares of uniform draws."""
    return Runs(RUNS / f"ablation_uniform.{name}.{track}.{aim}.jsonl", "share", "repeat")


def run_uniform(repeats: int) -> None:
    """Every missing run with another share of uniform draws."""
    cells = [cell for cell in UNIFORM_CELLS if available(cell[0])]
    with progress_bar("uniform draws", len(cells) * len(UNIFORM_SHARES) * repeats) as bar:
        for name, track, aim in cells:
            runs, named = uniform_runs(name, track, aim), load(name)
            pool, done = pool_of(named, track), runs.done()
            for share, repeat in ((share, repeat) for share in UNIFORM_SHARES for repeat in range(repeats)):
                if (share, repeat) not in done:
                    method = Assured(defensive_share=share)
                    row = run(pool, named.truth, name, aim, repeat, method, UNIFORM_LABELS)
                    runs.add({"share": share, "repeat": repeat, **row})
                bar.advance(1)


def uniform_table() -> list[Row]:
    """A row for each pool and share: what a label is worth by the variance of the design, and the half-width."""
    rows = []
    for name, track, aim in UNIFORM_CELLS:
        runs = list(uniform_runs(name, track, aim).read())
        for share in UNIFORM_SHARES:
            mine = [run for run in runs if run["share"] == share]
            if mine:
                value = float(np.exp(-np.log([run["variance"] for run in mine]).mean()))
                width = float(np.mean([run["half_width"] for run in mine]))
                row = {"pool": name, "track": track, "share": share, "runs": len(mine)}
                rows.append(row | {"label_value": round(value, 2), "half_width": round(width, 4)})
    return rows


def uniform_page_table(rows: list[Row]) -> str:
    """The second table of the page."""
    cells = list(dict.fromkeys((str(row["pool"]), str(row["track"])) for row in rows))
    by_cell = {(row["pool"], row["track"], float(row["share"])): row for row in rows}
    head = ("pool", "track", *(f"{share:.0%}" for share in UNIFORM_SHARES))

    def shown(pool: str, track: str, share: float) -> str:
        row = by_cell.get((pool, track, share))
        return "-" if row is None else f"{float(row['label_value']):.1f}, ±{float(row['half_width']):.4f}"

    return markdown(head, [(pool, track, *(shown(pool, track, x) for x in UNIFORM_SHARES)) for pool, track in cells])


def table() -> list[Row]:
    """A row for each variant: variance and width over those of the recipe as it is, geometric means over the cells."""
    by_variant: dict[str, dict[tuple[str, int], Row]] = {}
    for name, track, aim in CELLS:
        for row in Runs(RUNS / f"ablation.{name}.{track}.{aim}.jsonl", "variant", "repeat").read():
            by_variant.setdefault(row["variant"], {})[name, row["repeat"]] = row
    base, rows = by_variant.get("as it is", {}), []
    for changes in variants():
        mine = by_variant.get(said(changes), {})
        shared = sorted(key for key in set(base) & set(mine) if key[0] in pools_for(changes))
        if not shared or not changes:
            continue
        (constant, value) = next(iter(changes.items()))
        ratios = np.array([[mine[k][x] / base[k][x] for x in ("variance", "half_width")] for k in shared])
        by_pool = {k[0]: float(np.exp(np.log(ratios[[j[0] == k[0] for j in shared], 0]).mean())) for k in shared}
        worst = max(by_pool, key=lambda pool: by_pool[pool])
        mean = np.exp(np.log(ratios).mean(0))
        rows.append(
            {
                "constant": constant,
                "recipe": getattr(RECIPE, constant),
                "instead": value,
                "runs": len(shared),
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
    options = parser.parse_args()
    if not options.summary:
        run_uniform(options.repeats)
        run_all(options.repeats)
    rows, uniform = table(), uniform_table()
    write_csv(TABLE, rows)
    write_csv(UNIFORM_TABLE, uniform)
    rewrite_page(PAGE, {"ablation": page_table(rows), "uniform": uniform_page_table(uniform)})


if __name__ == "__main__":
    main()
