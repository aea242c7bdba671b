"""The paper's two methods with tuned networks, beside the same runs untuned: `python -m benchmarks.paper_tuned`.

The twelve panels of `benchmarks.paper` in steps of 100 labels, or of `--step` 10 or 1. Learning rate, epochs and
dropout of the network are tuned by Bayesian optimisation (`altmas.methods.paper.surrogates.tuning`: 5 random and 15
guided trials, 3 folds) at 100, 200 and 400 labels; in between the last values hold. The paper does not say what was
made small, so both are run:

log loss      of held-out labels. Neither the model nor the metrics have a part in it: tuned once for each repeat
metric error  of held-out labels. Tuned for each model and metric set of a repeat

Both methods of a panel get the same values. They are tuned on random labels, those that `tradition` has at that number:
at 100 these are the very labels that both methods start from, so the values are those of `tune=True`; at 200 and 400 a
method has chosen labels of its own. `own labels` tunes there as `tune=True` does, for a method by itself.

In other steps than 100 networks are tuned for log loss alone; the untuned runs beside them are those of
`benchmarks.paper`. Steps of 1, the paper's own, take a while: `--models mnist-70 --aims accuracy,precision-2`.

Finished cells and tunings are kept and never repeated; `--summary` only rewrites the CSV files, tables and the figure.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from altmas.history import History
from altmas.methods import Method, Task
from altmas.methods.paper.network import Network
from altmas.methods.paper.rounds import TUNE_FOR, tuned_at, uniform_batch
from altmas.simulate import label_until
from benchmarks import paper
from benchmarks.paper import ALL, FIRST, METHODS, MODELS, Cell, read, run_all
from benchmarks.paper_results import rows_of
from benchmarks.store import RESULTS, Row, Runs, keep_csv

STEP, REPEATS = 100, 3
LOG_LOSS, METRIC_ERROR = TUNE_FOR
UNTUNED, OWN_LABELS = "untuned", "log loss, own labels"
TUNINGS = (UNTUNED, LOG_LOSS, METRIC_ERROR, OWN_LABELS)
NETWORKS = ("altmas", "bald")
ORDER = ("21-metrics", "accuracy", "precision-2", "recall-2")
"""Metric sets in the order in which they are run."""
KEY = ("tuning", "step", "model", "aim", "method", "reading", "labels")
"""What tells the rows of the table apart; rows with more repeats than there are here are kept."""
FILE, VALUES_FILE, RUN_FILE = (RESULTS / f"paper_tuned{name}.csv" for name in ("", "_values", "_run"))


@dataclass(frozen=True)
class TunedCell(Cell):
    """A run whose network is tuned at FIRST labels and at each doubling."""

    tuning: str = LOG_LOSS

    @property
    def path(self) -> Path:
        """Beside the runs of `benchmarks.paper`, in a folder for each way of tuning."""
        step, name = super().path.parts[-2:]
        return paper.RUNS / f"tuned {self.tuning}".replace(" ", "_").replace(",", "") / step / name

    def at(self, labels: int) -> Method:
        """The method with the values that hold at so many labels."""
        if self.tuning == OWN_LABELS:
            return tuning_itself(self.made, LOG_LOSS)
        values = tuned_values(self.tuning, self.model, self.aim, self.repeat, last_tuned(labels))
        return replace(self.made, **{name: values[name] for name in ("learning_rate", "epochs", "dropout")})  # type: ignore[type-var]


def last_tuned(labels: int) -> int:
    """The number of labels at the last tuning: FIRST, or the last doubling of it."""
    count = FIRST
    while 2 * count <= labels:
        count *= 2
    return count


def tuning_itself(method: Method, objective: str) -> Method:
    """The method with `tune=True`."""
    assert isinstance(method, Network)
    return replace(method, tune=True, tune_for=objective)


# ---------------------------------------------------------------- tuning


def tunings() -> Runs:
    """Every tuning that is there."""
    return Runs(paper.RUNS / "tunings.jsonl", "tuning", "model", "aim", "repeat", "labels")


def tuned_values(tuning: str, model: str, aim: str, repeat: int, labels: int) -> Row:
    """Learning rate, epochs and dropout as tuned on so many random labels; made once and kept.

    Log loss depends on neither model nor metrics: the labels of a repeat are the same digits for all of them.
    """
    shared = tuning == LOG_LOSS
    who = {
        "tuning": tuning,
        "model": ALL if shared else model,
        "aim": ALL if shared else aim,
        "repeat": repeat,
        "labels": labels,
    }
    kept = tunings()
    for record in kept.read():
        if kept.key_of(record) == kept.key_of(who):
            return record
    record = who | tuned_on(random_labels(model, aim, repeat, labels), tuning)
    kept.add(record)
    return record


def random_labels(model: str, aim: str, repeat: int, labels: int) -> tuple[Task, History]:
    """The task and the labels that `tradition` has at this number, of which the first FIRST are everybody's."""
    named, pool = paper.world(model)
    task = Task(pool, paper.metrics_of(aim, pool), seed=repeat)
    first = uniform_batch(task, History(len(pool)), FIRST)
    history = History(len(pool), (first,), {int(row): int(named.truth[row]) for row in first.indices})
    return task, label_until(METHODS["tradition"], task, history, labels, STEP, named.truth.__getitem__)


def tuned_on(known: tuple[Task, History], objective: str) -> dict[str, Any]:
    """What `tune=True` finds on these labels, and the processor seconds that it took."""
    started = time.process_time()
    method = tuning_itself(METHODS["bald"], objective)
    assert isinstance(method, Network)
    _, info = tuned_at(*known, method.settings)
    values = {name: info["tuned"][name] for name in ("learning_rate", "epochs", "dropout", "loss")}
    return values | {"seconds": round(time.process_time() - started, 2)}


# ---------------------------------------------------------------- cells


def tuned_cells(
    tuning: str,
    repeats: int,
    aims: tuple[str, ...] = ORDER,
    models: tuple[str, ...] = MODELS,
    step: int = STEP,
) -> list[Cell]:
    """Runs tuned in one way, or untuned with `tradition` beside them: repeat by repeat, panel by panel.

    `bald` does not look at the metrics: one run serves all metric sets of a model unless it was tuned for them.
    """
    wanted: dict[Cell, None] = {}
    for repeat in range(repeats):
        for aim in aims:
            for model in models:
                apart = tuning == METRIC_ERROR
                for method in (*NETWORKS, "tradition")[: 3 if tuning == UNTUNED else 2]:
                    seen = aim if apart or method == "altmas" else ALL
                    plain = Cell(model, seen, method, repeat, step)
                    wanted[plain if tuning == UNTUNED else TunedCell(*_fields(plain), tuning)] = None
    return list(wanted)


def _fields(cell: Cell) -> tuple[str, str, str, int, int]:
    return cell.model, cell.aim, cell.method, cell.repeat, cell.step


def grid(repeats: int, metric_repeats: int, own_repeats: int) -> dict[str, list[Cell]]:
    """Every run by its way of tuning; own labels for the 21 metrics alone."""
    return {
        UNTUNED: tuned_cells(UNTUNED, repeats),
        LOG_LOSS: tuned_cells(LOG_LOSS, repeats),
        METRIC_ERROR: tuned_cells(METRIC_ERROR, metric_repeats),
        OWN_LABELS: tuned_cells(OWN_LABELS, own_repeats, aims=ORDER[:1]),
    }


def in_order(cells: dict[str, list[Cell]]) -> list[Cell]:
    """Untuned and tuned for log loss, repeat by repeat and panel by panel; then the other two ways."""

    def place(cell: Cell) -> tuple[int, int, int]:
        aim = 0 if cell.aim == ALL else ORDER.index(cell.aim)
        return cell.repeat, aim, MODELS.index(cell.model)

    first = [cell for tuning in (UNTUNED, LOG_LOSS) for cell in cells.get(tuning, [])]
    return sorted(first, key=place) + [cell for tuning in (METRIC_ERROR, OWN_LABELS) for cell in cells.get(tuning, [])]


# ---------------------------------------------------------------- the command


def rows_with_tuning(cells: dict[str, list[Cell]], step: int) -> Iterator[Row]:
    """The rows of `paper_results` with the way of tuning."""
    for tuning, wanted in cells.items():
        for row in rows_of(wanted):
            yield {"tuning": tuning, "step": step} | row


def run_rows(cells: dict[str, list[Cell]], step: int) -> list[Row]:
    """How many runs there are of each way of tuning, and what they took without the tunings that they share."""
    rows = []
    for tuning, wanted in cells.items():
        there = [records for records in map(read, wanted) if records]
        seconds = round(sum(records[-1]["seconds"] for records in there))
        counts = {"cells": len(wanted), "finished": len(there), "seconds": seconds}
        rows.append({"tuning": tuning, "step": step} | counts)
    return rows if any(row["finished"] for row in rows) else []


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper_tuned", description=__doc__)
    parser.add_argument("--step", type=int, default=STEP, help="labels from one round to the next")
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated; with another --step")
    parser.add_argument("--aims", default=",".join(ORDER), help="metric sets, comma-separated; with another --step")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="untuned and tuned for log loss")
    parser.add_argument("--metric-repeats", type=int, default=REPEATS, help="tuned for metric error")
    parser.add_argument("--own-repeats", type=int, default=1, help="tuned on the method's own labels")
    parser.add_argument("--summary", action="store_true", help="only rewrite CSV files, tables and the figure")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    cells = grid(given.repeats, given.metric_repeats, given.own_repeats)
    if given.step != STEP:
        aims, models = tuple(given.aims.split(",")), tuple(given.models.split(","))
        cells = {LOG_LOSS: tuned_cells(LOG_LOSS, given.repeats, aims, models, given.step)}
    if not given.summary:
        run_all(in_order(cells), given.jobs)
    keep_csv(FILE, rows_with_tuning(cells, given.step), *KEY, count="repeats")
    values = sorted(tunings().read(), key=lambda row: (row["tuning"], row["repeat"], row["labels"]))
    keep_csv(VALUES_FILE, values, *tunings().key)
    keep_csv(RUN_FILE, run_rows(cells, given.step), "tuning", "step", count="finished")
    from benchmarks import paper_figures, paper_page  # they read what was just written
    from benchmarks.paper_found import Found

    results = Found.committed()
    paper_page.write_page(results)
    paper_figures.draw_tuned(results, RESULTS / "paper_tuned.png")


if __name__ == "__main__":
    from benchmarks import paper_tuned  # by its name: cells are told apart by their class

    paper_tuned.main()
