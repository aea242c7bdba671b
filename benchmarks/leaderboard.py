"""Every method on every pool on equal terms: `python -m benchmarks.leaderboard`.

Cells are pool x track (hard labels only / with scores) x ask x method; an ask is what the method is told to estimate.
A method that cannot work in a cell, by its own declared needs, is listed there and not run. Finished runs are kept
under benchmarks/results/runs and not repeated, so an interrupted leaderboard continues where it stopped, and all cells
grow together. Those of `assured` for accuracy and macro F1 are made by `python -m benchmarks.label_value`. `--quick`
takes minutes; `--summary` only rewrites the tables, the figure and docs/leaderboard.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from altmas.compute import in_processes  # noqa: E402
from altmas.methods import METHODS, lacking, method_named, unsupported  # noqa: E402
from altmas.metrics import metric_set  # noqa: E402
from altmas.pool import Pool  # noqa: E402
from altmas.progress import progress_bar  # noqa: E402
from altmas.simulate import Journal, Row, simulate  # noqa: E402
from benchmarks.data import NAMES, NamedPool, load  # noqa: E402
from benchmarks.label_value import BUDGETS, MANY, RARE, TRACKS, available, pool_of  # noqa: E402
from benchmarks.store import RUNS  # noqa: E402

TOO_MANY = 1000
"""From this many classes on no macro average is asked for: 400 labels give it no interval."""
NETWORKS = ("altmas", "bald", "batchbald", "ase", "xwed")
SCORELESS = ("tradition", "trust", *NETWORKS)
"""Methods that look at no scores: their runs on hard labels stand in both tracks."""
REPEATS = {"tradition": 1000, "trust": 100, "katariya": 20, "spe": 10} | dict.fromkeys(NETWORKS, 5)
"""Runs of each method; those that are not named cost little and get USUAL."""
USUAL = 40
LARGE, LARGE_SHARE = 20_000, 0.5
"""On pools of this size methods get this share of their runs, but for `tradition` and `assured`."""
BATCH = {"tradition": 100, "trust": 100, "assured": 10, "ppi": 100, "spe": 100, "katariya": 25}
BATCH |= dict.fromkeys(NETWORKS, 50)
"""Labels told between two proposals where that is not STEP; methods whose draws follow no label take large ones."""
STEP = 20
LENT = {("assured", "accuracy"): "accuracy", ("assured", "average"): "several"}
"""Methods and asks whose runs are those of benchmarks.label_value, and its aim: there the macro F1 is asked for
together with accuracy and every class."""
BLIND = (*SCORELESS, "ppi", "katariya", "stratified", "lure")
"""Methods whose draws do not follow the metrics, so that one run answers every ask (and `altmas`, which is slow)."""
EVERY = "every"
FITTED_CLASSES = 4
"""Up to this many classes `spe`, which fits a mixture for each of them, is asked for macro averages."""


@dataclass(frozen=True)
class Cell:
    """One method on one pool and track, asked for some metrics together."""

    pool: str
    track: str
    ask: str
    method: str

    @property
    def path(self) -> Path:
        """Where its finished runs are kept."""
        return RUNS / f"leaderboard.{self.pool}.{self.track}.{self.ask}.{self.method}.jsonl"


# ---------------------------------------------------------------- what is asked, and who can answer


def asks(named: NamedPool) -> dict[str, list[str]]:
    """{ask: its metrics}: accuracy, the macro F1, and one class.

    The class is the one that the model names most often, or the rare one of a pool that has one (then with its F1 and
    without a macro average). Beyond MANY classes none is asked for alone; beyond TOO_MANY there is no macro average.
    """
    rare, count = RARE.get(named.name), len(named.classes)
    by_ask = {"accuracy": ["accuracy"]}
    if rare is None and count < TOO_MANY:
        by_ask["average"] = ["macro_f1"]
    if count < MANY:
        often = named.classes[int(np.bincount(named.predictions, minlength=count).argmax())]
        chosen = rare.partition("[")[2].rstrip("]") if rare else often
        by_ask["class"] = [*([rare] if rare else []), f"precision[{chosen}]", f"recall[{chosen}]"]
    return by_ask


@cache
def known(name: str) -> NamedPool:
    """The pool of that name, read once in a process."""
    return load(name)


@cache
def pool_in(name: str, track: str) -> Pool:
    """The pool as a track shows it; the same object in a process, since what methods learn of it is kept with it."""
    return pool_of(known(name), track)


def can(cell: Cell) -> tuple[list[str], str]:
    """(metrics, reason): what the method can estimate of its ask and, by its declared needs, why not the rest."""
    method, pool, named = method_named(cell.method), pool_in(cell.pool, cell.track), known(cell.pool)
    metrics = [name for ask, names in asks(named).items() if cell.ask in (ask, EVERY) for name in names]
    missing = lacking(method, pool)
    if missing:
        return [], f"needs {missing}"
    reasons = {name: unsupported(method, metric_set([name], pool)) for name in metrics}
    if cell.method == "spe" and len(pool.classes) > FITTED_CLASSES:
        reasons |= {name: "would fit a mixture for each class" for name in metrics if name.startswith("macro")}
    return [name for name in metrics if not reasons[name]], "; ".join(filter(None, reasons.values()))


def cells(names: list[str], methods: list[str]) -> Iterator[Cell]:
    """Every cell to be run or, where the method cannot, to be listed."""
    for name in names:
        named = known(name)
        for track in TRACKS if named.scores is not None else TRACKS[:1]:
            for method in methods:
                if method in SCORELESS and track != TRACKS[0]:
                    continue
                for ask in [EVERY] if method in BLIND else asks(named):
                    yield Cell(name, track, ask, method)


# ---------------------------------------------------------------- running


def repeats_of(cell: Cell, quick: bool) -> int:
    """How many runs a cell gets."""
    full = REPEATS.get(cell.method, USUAL)
    if cell.method not in ("tradition", "assured") and len(known(cell.pool)) >= LARGE:
        full = int(full * LARGE_SHARE)
    if quick:
        return min(full, 0 if cell.method in NETWORKS else 200 if cell.method == "tradition" else 4)
    return full


def rows_of(cell: Cell) -> list[Row]:
    """The rows of a cell's finished runs: one for each metric, number of labels and repeat."""
    if not cell.path.exists():
        return []
    return [row for rows in Journal(cell.path, {}).done.values() for row in rows]


def run_cell(cell: Cell, repeats: int) -> int:
    """Runs up to `repeats` of a cell, those not yet done; the number of runs that there are."""
    metrics, _ = can(cell)
    simulate(
        pool_in(cell.pool, cell.track),
        load_truth(cell.pool),
        methods=[METHODS[cell.method]()],
        metrics=metrics,
        budgets=BUDGETS,
        repeats=repeats,
        n_jobs=1,
        batch=BATCH.get(cell.method, STEP),
        results=cell.path,
        progress=False,
    )
    return repeats


@cache
def load_truth(name: str) -> list[str]:
    """The true class names of a pool."""
    named = known(name)
    return [named.classes[code] for code in named.truth]


def run_all(chosen: list[Cell], n_jobs: int, quick: bool, rounds: int = 10) -> None:
    """Every missing run, in rounds, so that all cells grow together; one process works on one pool and track."""
    RUNS.mkdir(parents=True, exist_ok=True)
    able = [cell for cell in chosen if (cell.method, cell.ask) not in LENT and can(cell)[0] and repeats_of(cell, quick)]
    groups: dict[tuple[str, str], list[tuple[Cell, int]]] = {}
    tasks = []
    for part in range(1, rounds + 1):
        for cell in able:
            upto, before = (-(-repeats_of(cell, quick) * k // rounds) for k in (part, part - 1))
            if upto > before:
                groups.setdefault((cell.pool, cell.track), []).append((cell, upto))
        tasks += list(groups.values())
        groups = {}
    with progress_bar("leaderboard", len(tasks)) as bar:
        for _ in in_processes(run_group, ((group,) for group in tasks), n_jobs, ordered=False):
            bar.advance(1)


def run_group(group: list[tuple[Cell, int]]) -> int:
    """The cells of one pool and track, each up to its number of runs."""
    return sum(run_cell(cell, upto) for cell, upto in group)


def main() -> None:
    from benchmarks import leaderboard_page, method_figures

    parser = argparse.ArgumentParser(description="Every method on every pool on equal terms.")
    parser.add_argument("--pools", default=",".join(NAMES), help="comma-separated")
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated")
    parser.add_argument("--quick", action="store_true", help="few runs and no networks, minutes")
    parser.add_argument("--summary", action="store_true", help="only rewrite what is read from the runs")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    names = [name for name in options.pools.split(",") if available(name)]
    if not options.summary:
        run_all(list(cells(names, options.methods.split(","))), options.jobs, options.quick)
    leaderboard_page.rewrite([name for name in NAMES if available(name)])
    method_figures.rewrite()


if __name__ == "__main__":
    from benchmarks import leaderboard  # under its own name, by which worker processes find its functions

    leaderboard.main()
