"""The experiments of the ALT-MAS paper, by one command: `python -m benchmarks.paper`.

Three models under test x four metric sets x {altmas, bald, tradition, trust, assured} x 5 repeats, from 100 random
labels to 500 in steps of 10 (`--step 1` is the paper's own), and the ablations on a smaller grid. `--quick` takes
minutes; `--summary` only rewrites tables and figures from the cells that exist.

A cell is one method on one model with one metric set and one seed. Finished cells are kept under
benchmarks/results/runs/paper and never repeated, so an interrupted run continues where it stopped. Cells come repeat
by repeat, so that a run that is not complete is balanced. Methods that do not look at the metrics are run once for all
metric sets. `altmas`, `bald`, `tradition` and `trust` start from the same 100 labels; `assured` draws its own.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from altmas.compute import in_processes  # noqa: E402
from altmas.history import History  # noqa: E402
from altmas.methods import AltMas, Assured, Bald, Method, Task, Tradition, Trust  # noqa: E402
from altmas.methods.paper.network import Network  # noqa: E402
from altmas.methods.paper.posterior import expected_counts, mean_over_draws  # noqa: E402
from altmas.methods.paper.rounds import Round, round_at, uniform_batch  # noqa: E402
from altmas.metrics import Metric, metric_set, table_of  # noqa: E402
from altmas.pool import Pool  # noqa: E402
from altmas.progress import progress_bar  # noqa: E402
from altmas.simulate import label_until  # noqa: E402
from benchmarks import store  # noqa: E402
from benchmarks.data import NamedPool, load  # noqa: E402
from benchmarks.store import Runs  # noqa: E402

Array = NDArray[Any]
Record = dict[str, Any]

RUNS = store.RUNS / "paper"
MODELS = ("mnist-99", "mnist-70", "mnist-12")
AIMS: dict[str, tuple[str, ...]] = {
    "precision-2": ("precision[2]",),
    "recall-2": ("recall[2]",),
    "accuracy": ("accuracy",),
    "21-metrics": ("paper",),
}
"""The metric sets of the paper."""
ALL = "all"
"""The metric set of a method that does not look at the metrics: every one can be read from its runs."""
FIRST, LAST, STEP, REPEATS = 100, 500, 10, 5
ABLATION_STEP, ABLATION_REPEATS = 100, 3
METHODS: dict[str, Method] = {
    "altmas": AltMas(preset="paper"),
    "bald": Bald(),
    "tradition": Tradition(),
    "trust": Trust(),
    "assured": Assured(),
}
BLIND = ("bald", "tradition", "trust")
ABLATIONS: dict[str, Method] = {
    "as published": AltMas(preset="paper"),
    "power 1": AltMas(preset="paper", precision_power=1),
    "no augmentation": AltMas(preset="paper", augment=False),
    "BALD sampling": AltMas(preset="paper", acquisition="bald"),
    "BALD, no augmentation": Bald(),
    "dropout 0.1": AltMas(preset="paper", dropout=0.1),
    "dropout 0.5": AltMas(preset="paper", dropout=0.5),
    "500 steps": AltMas(preset="paper", max_steps=500),
    "6,000 steps": AltMas(preset="paper", max_steps=6000),
    "preset safe": AltMas(preset="safe"),
}
"""One thing changed at a time, for the 21 metrics."""
PRESETS: dict[str, Method] = {
    "stable": AltMas(preset="stable"),
    "stable, power 2": AltMas(preset="stable", precision_power=2),
    "stable, BALD sampling": AltMas(preset="stable", acquisition="bald"),
}
"""The preset without leaps and its parts, for `benchmarks.paper_stable`."""
QUICK_ABLATIONS = ("as published", "no augmentation")


@dataclass(frozen=True)
class Cell:
    """One run: a method (or an ablation of altmas) on a model with a metric set and a seed, in steps of so many."""

    model: str
    aim: str
    method: str
    repeat: int
    step: int = STEP

    @property
    def path(self) -> Path:
        """Where the run is kept once it is finished: a line for each number of labels."""
        name = self.method.replace(" ", "_").replace(",", "")
        return RUNS / f"step-{self.step}" / f"{self.model}.{self.aim}.{name}.{self.repeat}.jsonl"

    @property
    def weight(self) -> int:
        """How long it takes, in rounds of a network."""
        return len(range(FIRST, LAST + 1, self.step)) if isinstance(self.made, Network) else 1

    def at(self, labels: int) -> Method:
        """The method as it is at so many labels."""
        return self.made

    @property
    def made(self) -> Method:
        return next(group[self.method] for group in (ABLATIONS, PRESETS, METHODS) if self.method in group)


def cells(
    models: tuple[str, ...], aims: tuple[str, ...], methods: tuple[str, ...], repeats: int, step: int
) -> Iterator[Cell]:
    """Every run of the figures, repeat by repeat; `assured` comes last."""
    for late in (False, True):
        for repeat in range(repeats):
            for method in methods:
                if (method == "assured") == late:
                    for aim in (ALL,) if method in BLIND else aims:
                        yield from (Cell(model, aim, method, repeat, step) for model in models)


def ablation_cells(models: tuple[str, ...], names: tuple[str, ...], repeats: int, step: int) -> Iterator[Cell]:
    """Every run of the ablations, repeat by repeat."""
    for repeat in range(repeats):
        for name in names:
            yield from (Cell(model, "21-metrics", name, repeat, step) for model in models)


# ---------------------------------------------------------------- running


@lru_cache(maxsize=3)
def world(model: str) -> tuple[NamedPool, Pool]:
    """The model's predictions with hard labels only, and the pool that methods see.

    Pixels that are the same in every image are left out: standardised they are 0 and teach nothing, but cost 15 % of
    the training.
    """
    named = load(model)
    assert named.features is not None
    varying = named.features.std(0) > 0
    return named, Pool(named.features[:, varying], named.predictions, classes=named.classes)


def metrics_of(aim: str, pool: Pool) -> tuple[Metric, ...]:
    return metric_set(AIMS["21-metrics" if aim == ALL else aim], pool)


def run(cell: Cell) -> None:
    """One run, written to its file when it is complete."""
    if cell.path.exists():
        return
    Runs(cell.path).write(list(trajectory(cell)))


def trajectory(cell: Cell) -> Iterator[Record]:
    """What the method says at every number of labels along one run."""
    named, pool = world(cell.model)
    methods = {labels: cell.at(labels) for labels in range(FIRST, LAST + 1, cell.step)}
    method = methods[FIRST]
    task = Task(pool, metrics_of(cell.aim, pool), seed=cell.repeat)
    history = History(len(pool))
    if cell.method != "assured":
        first = uniform_batch(task, history, FIRST)
        history = History(len(pool), (first,), {int(row): int(named.truth[row]) for row in first.indices})
    started = time.process_time()
    for labels in methods:
        history = label_until(method, task, history, labels, cell.step, named.truth.__getitem__)
        method = methods[labels]
        record: Record = {"labels": labels}
        if isinstance(method, Network):
            now = round_at(task, history, method.settings)
            record |= reading(now, pool, named.truth, metrics_of(ALL, pool))
        else:
            record["own"] = {estimate.metric: _rounded(estimate.value) for estimate in method.estimate(task, history)}
        yield record | {"seconds": round(time.process_time() - started, 2)}


def reading(now: Round, pool: Pool, truth: Array, metrics: tuple[Metric, ...]) -> Record:
    """The 21 metrics by each way of filling in labels, and how good the surrogate is, from one round.

    hard, expected  as in A.5, averaged over the draws;  mean  labels are the argmax of the mean over the draws
    surrogate       accuracy of the mean prediction over the whole pool, labelled points as the network sees them
    single          the same for one draw, averaged over the draws
    """
    belief, posterior = now.belief, now.belief.posterior
    means, soft = [], []
    for rows, probs in posterior:
        means.append(probs.mean(0))
        soft.append(expected_counts(probs, pool.predictions[rows]))
    mean: Array = np.concatenate(means).argmax(1)
    seen = np.flatnonzero(posterior.known >= 0)
    own = posterior.probabilities(seen)  # type: ignore[arg-type]  # rows by position serve as well as a slice
    tables = {
        "hard": belief.hard_tables(metrics[0]),
        "expected": np.sum(soft, axis=0),
        "mean": table_of(pool.predictions, mean, len(pool.classes))[None],
    }
    right, singly = mean == truth, (belief.labels == truth).mean(0)
    right[seen] = own.mean(0).argmax(1) == truth[seen]
    singly[seen] = (own.argmax(2) == truth[seen]).mean(0)
    pseudo = now.augmentation.rows
    return {
        mode: {metric.name: _rounded(mean_over_draws(metric, table).value) for metric in metrics}
        for mode, table in tables.items()
    } | {
        "surrogate": _rounded(right.mean()),
        "single": _rounded(singly.mean()),
        "pseudo": len(pseudo),
        "pseudo_right": _rounded((pool.predictions[pseudo] == truth[pseudo]).mean()) if len(pseudo) else None,
        "steps": now.info["training"]["steps"],
    }


def _rounded(value: float) -> float | None:
    return round(float(value), 6) if np.isfinite(value) else None


def run_all(chosen: list[Cell], jobs: int) -> None:
    """Every missing cell in parallel processes, in order."""
    missing = [cell for cell in chosen if not cell.path.exists()]
    with progress_bar("the paper's experiments", sum(cell.weight for cell in chosen)) as bar:
        bar.advance(sum(cell.weight for cell in chosen) - sum(cell.weight for cell in missing))
        for cell, _ in zip(missing, in_processes(run, ((cell,) for cell in missing), jobs), strict=True):
            bar.advance(cell.weight)
            bar.say(f"{cell.model}, {cell.method}, repeat {cell.repeat}")


def read(cell: Cell) -> list[Record]:
    """The records of a finished run, or none."""
    return Runs(cell.path).read()


# ---------------------------------------------------------------- the command


@dataclass(frozen=True)
class Grid:
    """What a command asks for."""

    figures: list[Cell]
    ablations: list[Cell]

    def in_order(self) -> list[Cell]:
        """Repeat by repeat, the ablations of a repeat behind its figures, `assured` last."""
        early = [cell for cell in self.figures if cell.method != "assured"]
        late = [cell for cell in self.figures if cell.method == "assured"]
        return sorted([*early, *self.ablations], key=lambda cell: cell.repeat + (cell.method in ABLATIONS)) + late


def grid_of(options: argparse.Namespace) -> Grid:
    models, methods = tuple(options.models.split(",")), tuple(options.methods.split(","))
    if options.quick:
        return Grid(
            list(cells(models[:1], ("21-metrics",), methods, 1, 200)),
            list(ablation_cells(models[:1], QUICK_ABLATIONS, 1, 400)),
        )
    figures = list(cells(models, tuple(AIMS), methods, options.repeats, options.step))
    names = () if options.no_ablations else tuple(ABLATIONS)
    return Grid(figures, list(ablation_cells(models, names, ABLATION_REPEATS, ABLATION_STEP)))


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description="The experiments of the paper.")
    parser.add_argument("--step", type=int, default=STEP, help="labels between two rounds (the paper: 1)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="the paper: 3")
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated")
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated")
    parser.add_argument("--no-ablations", action="store_true")
    parser.add_argument("--quick", action="store_true", help="one model, one repeat, few rounds: minutes")
    parser.add_argument("--summary", action="store_true", help="only rewrite tables and figures")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    from benchmarks.paper_results import write_all

    options = parsed(arguments)
    grid = grid_of(options)
    if not options.summary:
        run_all(grid.in_order(), options.jobs)
    write_all(grid, quick=options.quick)


if __name__ == "__main__":
    from benchmarks import paper  # by its name: worker processes cannot find what belongs to __main__

    paper.main()
