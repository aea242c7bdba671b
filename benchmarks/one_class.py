"""Precision and recall of one class, with defensive draws among the points that matter and among all of them.

python -m benchmarks.one_class run --runs 24     # goes on where it was stopped; needs ALTMAS_DATA
python -m benchmarks.one_class table             # benchmarks/results/one_class.csv and the table of docs/assured.md

The class of each pool is that of the leaderboard: the one that the model names most often, or the rare one of a pool
that has one. Both metrics (and F1 where it is asked for there) are asked for together.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from altmas.methods import Assured
from altmas.methods.assured.recipe import EDITION
from altmas.metrics import Metric, metric_set, truth_values
from altmas.pool import Pool
from benchmarks.data import NamedPool, load
from benchmarks.label_value import BUDGETS, ROUNDED, Cell, one_run, pool_of
from benchmarks.leaderboard import asks
from benchmarks.store import RESULTS, RUNS, Row, Runs, keep_csv, read_numbers, run_or_table
from benchmarks.tables import DOCS, markdown, rewrite_page

POOLS: Final = (("abt-buy-svm", "scores"), ("banking77", "scores"), ("mnist-99", "hard"), ("20news", "scores"))
SHARE: Final = 0.5
DRAWS: Final = {"points that matter": Assured(), "all points": Assured(defensive_share=SHARE)}
"""As the method is, and with half of its draws uniform among all points."""
FILE: Final = Runs(RUNS / f"one_class.{EDITION}.jsonl", "pool", "track", "draws", "seed")
TABLE: Final = RESULTS / "one_class.csv"
KEY: Final = ("pool", "track", "metric", "draws", "labels")


@cache
def world(name: str, track: str) -> tuple[NamedPool, Pool, tuple[Metric, ...]]:
    """A pool with its truth, what a track shows of it, and the metrics; one object, so that its views are made once."""
    named = load(name)
    pool = pool_of(named, track)
    return named, pool, metric_set(asks(named)["class"], pool)


def run(runs: int) -> None:
    """Every missing run, seed by seed."""
    for seed in range(runs):
        for name, track in POOLS:
            named, pool, metrics = world(name, track)
            for draws, method in DRAWS.items():
                if (name, track, draws, seed) not in FILE.done():
                    cell = Cell(name, track, "accuracy", "assured")
                    made = one_run(method, pool, named.truth, metrics, seed, cell)
                    FILE.add({"pool": name, "track": track, "draws": draws, "seed": seed, **made})


def rows() -> list[Row]:
    """A row for each pool, metric, kind of draws and number of labels."""
    made = []
    for name, track in POOLS:
        runs = [run for run in FILE.read() if (run["pool"], run["track"]) == (name, track)]
        if not runs:
            continue
        named, pool, metrics = world(name, track)
        truth = truth_values(pool, named.truth, metrics)
        for draws in DRAWS:
            for labels in BUDGETS:
                found = np.array([run[str(labels)] for run in runs if run["draws"] == draws], np.float64)
                for column, (metric, exact) in enumerate(truth.items()):
                    key = {"pool": name, "track": track, "metric": metric, "draws": draws, "labels": labels}
                    made.append(key | {"edition": EDITION} | _figures(found[:, column], exact))
    return made


def _figures(found: np.ndarray, exact: float) -> Row:
    """Runs, truth, error, coverage and half-width of (runs, 4) values, ends and effective labels."""
    held = (found[:, 1] <= exact + ROUNDED) & (exact - ROUNDED <= found[:, 2])
    numbers = {
        "truth": exact,
        "rmse": math.sqrt(float(np.nanmean((found[:, 0] - exact) ** 2))),
        "coverage": float(held[np.isfinite(found[:, 1])].mean()),
        "half_width": float(np.nanmean(found[:, 2] - found[:, 1])) / 2,
    }
    return {"runs": len(found)} | {name: round(value, 5) for name, value in numbers.items()}


def table_of(made: list[Row]) -> str:
    """Error and half-width of both kinds of draws, for each metric, with the last number of labels."""
    last = {tuple(row[name] for name in KEY): row for row in made if row["labels"] == BUDGETS[-1]}
    lines = []
    for pool, track, metric, draws, labels in last:
        if draws != next(iter(DRAWS)):
            continue
        both = [last[pool, track, metric, name, labels] for name in DRAWS]
        shown = [f"{r['rmse']:.4f}, ±{r['half_width']:.4f} ({r['coverage']:.2f})" for r in both]
        lines.append([pool, track, f"{metric} ({both[0]['truth']:.3g})", both[0]["runs"], *shown])
    return markdown(["pool", "track", "metric (truth)", "runs", *DRAWS], lines)


def write() -> None:
    """The CSV file and the table of the page."""
    keep_csv(TABLE, rows(), *KEY, count="runs")
    rewrite_page(DOCS / "assured.md", {"one class": table_of(read_numbers(TABLE))})


if __name__ == "__main__":
    run_or_table(__doc__, run, write, runs=24)
