"""Whether forecasts come true: widths within their bands, and sessions that settle as often as was said.

python -m benchmarks.forecasts run --runs 30     # resumable; goes on where it stopped
python -m benchmarks.forecasts table             # benchmarks/results/forecasts.csv, docs/when-to-stop.md

A session of `assured` is asked after 60 labels how wide the interval of accuracy will be at 200, and what the chances
of goals are: targets between 0.35 and 0.55 of the present half-width, and a threshold that is 0.4, 0.7 or 1 of it below
or above the present estimate. Then it goes on with the real labels. No setting of the forecast was chosen on these
seeds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

import numpy as np

from altmas import Pool
from altmas.forecast import Goals, forecasts
from altmas.guaranteed import NotOffered, guaranteed_decision
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
THRESHOLDS: Final = (-1.0, 0.4, -0.7, 1.0, -0.4, 0.7)
FIRST_SEED: Final = 1000
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
    present = method.estimate(task, history)["accuracy"]
    targets = [share * present.half_width for share in TARGETS]
    threshold = present.value + THRESHOLDS[seed % len(THRESHOLDS)] * present.half_width
    goals = [*(Goals({"accuracy": target}, {}) for target in targets), Goals({}, {"accuracy": threshold})]
    begun = time.process_time()
    ahead = forecasts(method, task, history, goals)
    seconds = time.process_time() - begun
    assert ahead is not None
    (band,) = ahead[0].at(UNTIL)
    later = label_until(method, task, history, UNTIL, BATCH, truth.__getitem__)
    width = method.estimate(task, later)["accuracy"].half_width
    settled = [*(width <= target for target in targets), decided(method, task, later, threshold)]
    prediction = {
        "low": band.low,
        "median": band.median,
        "high": band.high,
        "chances": [forecast.chance for forecast in ahead],
    }
    return prediction | {"width": width, "settled": settled, "seconds": seconds}


def decided(method: Assured, task: Task, history: History, threshold: float) -> bool:
    """Whether it is shown on which side of the threshold accuracy lies, by the proof that a session asks for."""
    (metric,) = task.metrics
    proof = guaranteed_decision(method, task, history, metric, threshold)
    return not isinstance(proof, NotOffered) and proof.answer != "undecided"


def run(runs: int) -> None:
    """Make the runs that are missing, seed by seed, so that pools have as many where it is interrupted."""
    store, pools = Runs(FILE, "pool", "seed"), {name: made() for name, made in POOLS.items()}
    for seed in range(FIRST_SEED, FIRST_SEED + runs):
        for name, (pool, truth) in pools.items():
            if (name, seed) not in store.done():
                store.add({"pool": name, "seed": seed} | one_run(pool, truth, seed))


def table() -> list[Row]:
    """A row for each pool, and one for all sessions."""
    runs = Runs(FILE, "pool", "seed").read()
    cells = [(name, [run for run in runs if run["pool"] == name]) for name in POOLS]
    return [_row(name, cell) for name, cell in [*cells, ("all", runs)] if cell]


def _row(name: str, cell: list[Row]) -> Row:
    ratios = [math.log(run["width"] / run["median"]) for run in cell]
    said, came = (np.array([run[key] for run in cell], float) for key in ("chances", "settled"))
    row: Row = {
        "pool": name,
        "sessions": len(cell),
        "width_over_forecast": round(math.exp(float(np.median(ratios))), 3),
        "inside_80%_band": round(float(np.mean([run["low"] <= run["width"] <= run["high"] for run in cell])), 2),
    }
    for what, columns in (("targets", slice(None, len(TARGETS))), ("thresholds", slice(len(TARGETS), None))):
        off = (said - came)[:, columns].mean(1)  # of each session: its goals hang together
        row |= {
            f"{what}:_chance_said": round(float(said[:, columns].mean()), 2),
            f"{what}:_settled": round(float(came[:, columns].mean()), 2),
            f"{what}:_standard_error": round(float(off.std(ddof=1)) / math.sqrt(len(cell)), 2),
        }
    return row | {"seconds": round(float(np.mean([run["seconds"] for run in cell])), 2)}


def write(rows: list[Row]) -> None:
    """The table as CSV and on its page."""
    write_csv(RESULTS / "forecasts.csv", rows)
    heads = [key.replace("_", " ") for key in rows[0]]
    rewrite_page(DOCS / "when-to-stop.md", {"forecasts": markdown(heads, [list(row.values()) for row in rows])})


if __name__ == "__main__":
    run_or_table(__doc__, run, lambda: write(table()), runs=30)
