"""Whether forecasts come true: widths within their bands, and sessions that settle as often as was said.

python -m benchmarks.forecasts run --runs 16     # resumable; goes on where it stopped
python -m benchmarks.forecasts table             # benchmarks/results/forecasts.csv, docs/when-to-stop.md

A session of `assured` is asked after 60 labels how wide the interval of accuracy will be at 200, and what the chance of
a target is, which is between 0.35 and 0.55 of the present half-width; then it goes on with the real labels.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

import numpy as np

from altmas import Pool
from altmas.forecast import forecast
from altmas.history import History
from altmas.methods import Assured
from altmas.metrics import metric_set
from altmas.simulate import label_until
from altmas.task import Task
from altmas.types import Array
from benchmarks import made_pools
from benchmarks.data import load
from benchmarks.store import RESULTS, RUNS, Row, Runs, run_or_table, write_csv
from benchmarks.tables import DOCS, markdown, rewrite_page

NOW, UNTIL, BATCH = 60, 200, 20
TARGETS: Final = (0.35, 0.4, 0.45, 0.5, 0.55)
FILE: Final = RUNS / "forecasts.jsonl"


def hard_labels(name: str) -> made_pools.Made:
    """A public pool without the scores of its model."""
    named = load(name)
    return Pool(named.features, named.predictions, classes=named.classes), named.truth


def with_scores(name: str) -> made_pools.Made:
    """A public pool."""
    named = load(name)
    return named.pool(), named.truth


POOLS: Final[dict[str, Callable[[], made_pools.Made]]] = {
    "nothing to learn, 0.85": lambda: made_pools.plain(0.85, 2_000),
    "useless features, 0.80": lambda: made_pools.useless(2_000),
    "calibrated scores, 0.97": lambda: made_pools.smooth(2_000),
    "banking77, hard labels": lambda: hard_labels("banking77"),
    "20news, hard labels": lambda: hard_labels("20news"),
    "tweet-emotion-llm": lambda: with_scores("tweet-emotion-llm"),
    "employment-ma": lambda: with_scores("employment-ma"),
}


def one_run(pool: Pool, truth: Array, seed: int) -> Row:
    """What was said after NOW labels, and what came at UNTIL."""
    task = Task(pool, metric_set("accuracy", pool), 0.95, seed, budget=UNTIL, stopping=True)
    method = Assured()
    history = label_until(method, task, History(len(pool)), NOW, BATCH, truth.__getitem__)
    target = TARGETS[seed % len(TARGETS)] * method.estimate(task, history)["accuracy"].half_width
    begun = time.process_time()
    ahead = forecast(method, task, history, targets={"accuracy": target}, thresholds={})
    seconds = time.process_time() - begun
    assert ahead is not None
    (band,) = ahead.at(UNTIL)
    later = label_until(method, task, history, UNTIL, BATCH, truth.__getitem__)
    width = method.estimate(task, later)["accuracy"].half_width
    prediction = {"low": band.low, "median": band.median, "high": band.high, "chance": ahead.chance}
    return prediction | {"width": width, "settled": width <= target, "seconds": seconds}


def run(runs: int) -> None:
    """Make the runs that are missing, pool by pool, seed by seed."""
    store = Runs(FILE, "pool", "seed")
    for name, make in POOLS.items():
        pool, truth = make()
        for seed in range(runs):
            if (name, seed) not in store.done():
                store.add({"pool": name, "seed": seed} | one_run(pool, truth, seed))


def table() -> list[Row]:
    """A row for each pool, and one for all sessions."""
    runs = Runs(FILE, "pool", "seed").read()
    cells = [(name, [run for run in runs if run["pool"] == name]) for name in POOLS]
    return [_row(name, cell) for name, cell in [*cells, ("all", runs)] if cell]


def _row(name: str, cell: list[Row]) -> Row:
    ratios = [math.log(run["width"] / run["median"]) for run in cell]
    return {
        "pool": name,
        "sessions": len(cell),
        "width_over_forecast": round(math.exp(float(np.median(ratios))), 3),
        "inside_80%_band": round(float(np.mean([run["low"] <= run["width"] <= run["high"] for run in cell])), 2),
        "chance_said": round(float(np.mean([run["chance"] for run in cell])), 2),
        "settled": round(float(np.mean([run["settled"] for run in cell])), 2),
        "seconds": round(float(np.mean([run["seconds"] for run in cell])), 2),
    }


def write(rows: list[Row]) -> None:
    """The table as CSV and on its page."""
    write_csv(RESULTS / "forecasts.csv", rows)
    heads = [key.replace("_", " ") for key in rows[0]]
    rewrite_page(DOCS / "when-to-stop.md", {"forecasts": markdown(heads, [list(row.values()) for row in rows])})


if __name__ == "__main__":
    run_or_table(__doc__, run, lambda: write(table()), runs=16)
