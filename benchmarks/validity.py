"""Does the interval hold where it hurts? `python -m benchmarks.validity`.

Pools made to break intervals, told as people tell: in lockstep, with items that wait, out of order, with errors that
somebody volunteers, with points that nobody can label, with labels that are corrected later, with errors left open, on
pools that grow.
Every run is a line under benchmarks/results/runs, so that an interrupted benchmark goes on where it stopped. The runs
themselves are not committed, but benchmarks/results/validity.csv can be added to: as long as the method is of the
edition that made a row, further runs take the next seeds and join it (`--fresh` leaves the table aside). `--summary`
only rewrites the table, `--runs` says how many runs a cell gets in all.
Nothing was tuned on the pools "letters", "drift", "two models" and "wide"; the others were looked at while the interval
rule was chosen.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from scipy.stats import binom  # noqa: E402

from altmas.compute import in_processes  # noqa: E402
from altmas.history import History  # noqa: E402
from altmas.methods import METHODS, Method, Task  # noqa: E402
from altmas.methods.assured.recipe import EDITION  # noqa: E402
from altmas.metrics import metric_set, truth_values  # noqa: E402
from altmas.pool import Pool  # noqa: E402
from altmas.progress import progress_bar  # noqa: E402
from altmas.types import Array  # noqa: E402
from benchmarks.made_pools import (  # noqa: E402
    Made,
    cluster,
    drift,
    few_answers_for_many,
    few_differ,
    hidden_positives,
    letters,
    low_grades,
    many_classes,
    never_true,
    one_answer_for_many,
    one_class_too_many,
    opposite,
    plain,
    rare_class,
    rarely_found,
    scores_too_high,
    small_slices,
    smooth,
    twins,
    two_levels,
    two_models,
    urgent_tickets,
    useless,
    wide,
)
from benchmarks.store import RESULTS, RUNS, Row, Runs, read_numbers, write_csv  # noqa: E402
from benchmarks.tables import DOCS, markdown  # noqa: E402

TABLE = RESULTS / "validity.csv"
PAGE = DOCS / "validity.md"
EDITIONS = ("3.2", "3.3", "3.4", EDITION)
"""Editions of `assured` whose rows the table may have, the present one last."""
CHANGED = {
    "3.3": ("kappa", "weighted_kappa", "mcc", "fbeta"),
    "3.4": ("macro_recall", "macro_f1", "macro_precision", "balanced_accuracy"),
    "3.5": (
        *("macro_recall", "macro_f1", "macro_precision", "balanced_accuracy"),
        *("recall", "specificity", "f1", "fbeta", "jaccard"),
    ),
}
"""Metrics of which an edition has other numbers than the one before."""
CHANGED_WITH_SCORES = ("3.5",)
"""Editions that have other numbers for all metrics where models give scores."""
STEP, EARLY = 10, 30
"""Labels told between two looks at the waiting points; labels after which a pool grows."""


@dataclass(frozen=True)
class Case:
    """A pool with the metrics and numbers of labels at which it is looked at."""

    make: Callable[[], Made]
    labels: tuple[int, ...]
    metrics: tuple[Any, ...] = ("accuracy",)


def geometric_mean_of_recalls(y_true: Array, y_pred: Array, sample_weight: Array) -> float:
    """A function of labels as users pass it: the root of the product of both classes' recalls."""
    hits = [sample_weight[(y_true == c) & (y_pred == c)].sum() for c in (0, 1)]
    sizes = [sample_weight[y_true == c].sum() for c in (0, 1)]
    return float(np.sqrt(max(hits[0] * hits[1], 0.0) / max(sizes[0] * sizes[1], 1e-12)))


OF_TWO_MODELS = (
    "v1: accuracy",
    "v2: accuracy - v1: accuracy",
    "v2: accuracy@part=small",
    "v2: accuracy@part=large - v2: accuracy@part=small",
    ("function", geometric_mean_of_recalls),
)

OF_FEW_LABELS = ("accuracy", "share[1]", "precision[1]", "recall[1]", "f1[1]", "kappa")

MEANS_OVER_CLASSES = ("macro_recall", "macro_f1", "macro_precision")

OF_SMALL_SLICES = (
    "accuracy@part=worse",
    "accuracy@part=alike",
    "accuracy@part=rest - accuracy@part=worse",
    "gap[accuracy, part]",
)

CASES: dict[str, Case] = {
    "plain 0.98": Case(lambda: plain(0.98), (20, 60, 200)),
    "plain 0.99": Case(lambda: plain(0.99), (60, 100, 200, 400)),
    "plain 0.995": Case(lambda: plain(0.995), (200, 400)),
    "plain 0.9995": Case(lambda: plain(0.9995), (200, 400)),
    "plain 0.85": Case(lambda: plain(0.85), (20, 40, 100, 400)),
    "plain 0.02": Case(lambda: plain(0.02), (40, 100)),
    "small 0.98": Case(lambda: plain(0.98, 300), (20, 60)),
    "small 0.9": Case(lambda: plain(0.9, 100), (20, 40)),
    "tiny 0.8": Case(lambda: plain(0.8, 60), (10, 20, 40)),
    "two levels": Case(lambda: two_levels(0.99, 0.01), (100, 200, 400), ("accuracy", "recall[1]", "precision[1]")),
    "two levels, too sure": Case(lambda: two_levels(0.9999, 0.01), (100, 200, 400)),
    "two levels, hidden": Case(lambda: two_levels(0.99, 0.02), (100, 200, 400)),
    "low grades, hidden": Case(lambda: low_grades(0.02), (60, 100, 200), ("mean", "share[>=4]")),
    "smooth": Case(smooth, (100, 200, 400)),
    "opposite": Case(opposite, (60, 100, 200)),
    "hidden positives": Case(hidden_positives, (100, 200, 400), ("accuracy", "recall[1]", "precision[1]", "f1[1]")),
    "cluster": Case(cluster, (50, 100, 200)),
    "cluster of 300": Case(lambda: cluster(300), (20, 40, 60, 120)),
    "useless": Case(useless, (20, 40, 100, 200)),
    "twins": Case(twins, (50, 100, 200), ("accuracy", "kappa")),
    "letters": Case(letters, (100, 200, 400), ("accuracy", "macro_f1", "kappa")),
    "many classes": Case(many_classes, (100, 400), ("accuracy", "kappa")),
    "drift": Case(drift, (60, 100, 200, 400), ("accuracy", "recall[1]")),
    "two models": Case(two_models, (60, 100, 200, 400), OF_TWO_MODELS),
    "small slices": Case(small_slices, (100, 150, 250), OF_SMALL_SLICES),
    "coin flips": Case(lambda: plain(0.5), (5, 10, 15, 20, 30), OF_FEW_LABELS),
    "rare class": Case(rare_class, (5, 10, 15, 20, 40), OF_FEW_LABELS),
    "rarely found": Case(rarely_found, (41, 60, 120), ("kappa", "mcc", "fbeta[1,2]")),
    "few differ": Case(few_differ, (50, 100, 300), ("v2: accuracy - v1: accuracy", "v2: f1[1] - v1: f1[1]")),
    "scores too high": Case(scores_too_high, (60, 100, 300), ("average_precision", "roc_auc")),
    "never true": Case(never_true, (40, 100, 190), ("macro_recall", "macro_f1")),
    "one class too many": Case(one_class_too_many, (40, 60, 100, 300), ("macro_f1", "macro_precision")),
    "few answers for many": Case(few_answers_for_many, (60, 100, 150, 300), MEANS_OVER_CLASSES),
    "one answer for many": Case(one_answer_for_many, (60, 100, 150, 300), MEANS_OVER_CLASSES),
    "urgent tickets": Case(urgent_tickets, (45, 60, 100, 200), ("recall[3]", "f1[3]", "precision[3]", "macro_f1")),
    "wide": Case(wide, (10, 40, 200, 1000), ("accuracy", "recall[1]")),
}


# ---------------------------------------------------------------- how answers come in


@dataclass(frozen=True)
class Telling:
    """How people answer.

    waiting      points that are asked for and wait;  shuffled  whether they are answered in any order
    volunteered  errors that somebody tells without having been asked, after 60 labels
    skipped      share of the points that nobody can label, whatever their truth
    hard_skipped whether nobody can label half of the points that a model has wrong, and a tenth of the others: figures
                 are then about the points that can be labelled, the same ones in all runs
    mistaken     share of the labels that are wrong at first and corrected with the next ten, after everybody looked
    left_open    whether nobody ever answers the points that the model has wrong
    grows        whether the second half of the pool comes as a wave after `EARLY` labels
    """

    waiting: int = 0
    shuffled: bool = False
    volunteered: int = 0
    skipped: float = 0.0
    hard_skipped: bool = False
    mistaken: float = 0.0
    left_open: bool = False
    grows: bool = False


TELLINGS = {
    "lockstep": Telling(),
    "30 wait": Telling(waiting=30),
    "200 wait": Telling(waiting=200),
    "30 wait, any order": Telling(waiting=30, shuffled=True),
    "errors volunteered": Telling(volunteered=10),
    "a tenth skipped": Telling(skipped=0.1),
    "hard ones skipped": Telling(hard_skipped=True),
    "corrected later": Telling(mistaken=0.1, waiting=30),
    "errors left open": Telling(left_open=True),
    "half comes later": Telling(grows=True),
}


def told(method: Method, task: Task, truth: Array, history: History, labels: int, telling: Telling) -> History:
    """The history with that many labels of drawn points, more points asked for than answered if `telling` says so."""
    if telling.grows and not history.grown:
        half = first_half(task.pool)
        early = replace(task, pool=half), truth[: len(half)], History(len(half)), min(EARLY, labels)
        first = told(method, *early, replace(telling, grows=False))
        history = replace(first, n_points=len(task.pool), grown=((len(half), len(first.batches)),))
    rng = np.random.default_rng([task.seed, 1])
    silent = np.random.default_rng([task.seed, 2]).random(len(truth)) < telling.skipped
    if telling.hard_skipped:
        silent |= ~labelable(task.pool, truth)
    mistaken = np.random.default_rng([task.seed, 3]).random(len(truth)) < telling.mistaken
    avoided = (truth != task.pool.predictions) & telling.left_open

    def answerable(history: History) -> Array:
        return np.asarray(history.outstanding[~avoided[history.outstanding]])

    while history.drawn_labels < labels and (history.open.any() or len(answerable(history))):
        step = min(STEP, labels - history.drawn_labels)
        missing = step + telling.waiting - len(answerable(history))
        if missing > 0 and history.open.any():
            history = replace(history, batches=(*history.batches, method.propose(task, history, missing)))
        rows = answerable(history)
        rows = rng.permutation(rows)[:step] if telling.shuffled else rows[:step]
        history = _answered(history, rows, truth, silent, mistaken, len(task.pool.classes))
        if telling.volunteered and history.drawn_labels >= 60 and not len(history.volunteered):
            errors = np.flatnonzero(history.open & (truth != task.pool.predictions))[: telling.volunteered]
            history = replace(history, labels={**history.labels, **{int(row): int(truth[row]) for row in errors}})
    return replace(history, labels={row: int(truth[row]) for row in history.labels})


def labelable(pool: Pool, truth: Array) -> Array:
    """(N,) points that can be labelled where hard ones are skipped."""
    wrong = np.any([model.predictions != truth for model in pool.models], axis=0)
    return np.asarray(np.random.default_rng(4).random(len(truth)) >= np.where(wrong, 0.5, 0.1))


@cache
def first_half(pool: Pool) -> Pool:
    """The first half of a pool's points; one object, so that its views are computed once."""
    return pool._at(np.arange(len(pool) // 2))


def _answered(history: History, rows: Array, truth: Array, silent: Array, mistaken: Array, n_classes: int) -> History:
    """The history with answers at these rows; earlier labels that were wrong are corrected."""
    right = {row: int(truth[row]) for row in history.labels}
    new = {
        row: int(truth[row] + 1) % n_classes if mistaken[row] else int(truth[row])
        for row in rows.tolist()
        if not silent[row]
    }
    skipped = {row: "cannot be seen" for row in rows.tolist() if silent[row]}
    return replace(history, labels={**right, **new}, skipped={**history.skipped, **skipped})


# ---------------------------------------------------------------- running


@dataclass(frozen=True)
class Cell:
    """One method on one pool with one way of telling."""

    case: str
    telling: str
    method: str

    @property
    def editions(self) -> tuple[str, ...]:
        """The editions that give the same numbers here, the earliest first."""
        if self.method != "assured":
            return EDITIONS
        names = [metric for metric in CASES[self.case].metrics if isinstance(metric, str)]
        changes = [edition for edition, kinds in CHANGED.items() if any(name.startswith(kinds) for name in names)]
        if any(model.scores is not None for model in made(self.case)[0].models):
            changes += CHANGED_WITH_SCORES
        return EDITIONS[EDITIONS.index(max(changes)) :] if changes else EDITIONS

    @property
    def path(self) -> Path:
        """Where its finished runs are kept."""
        name = f"validity.{self.editions[0]}.{self.case}.{self.telling}.{self.method}.jsonl"
        return RUNS / name.replace(" ", "_").replace(",", "")

    def holds(self, row: Row) -> bool:
        """Whether the row is of this method, pool and way of telling, whatever the edition."""
        return (row["pool"], row["telling"], row["method"]) == (self.case, self.telling, self.method)

    @property
    def runs(self) -> Runs:
        """Its finished runs, told apart by their seed."""
        return Runs(self.path, "seed")

    def counted(self, first: int) -> list[Row]:
        """Its finished runs from this seed on, as far as no seed is missing between them."""
        by_seed = {run["seed"]: run for run in self.runs.read()}
        last = first
        while last in by_seed:
            last += 1
        return [by_seed[seed] for seed in range(first, last)]


def cells(cases: Sequence[str], methods: Sequence[str]) -> Iterator[Cell]:
    """Every pool in lockstep; the other ways of telling on pools that are quick or that feed back."""
    for case in cases:
        for method in methods:
            yield Cell(case, "lockstep", method)
    for case in ("plain 0.85", "two levels", "letters", "drift"):
        if case in cases and "assured" in methods:
            yield from (Cell(case, telling, "assured") for telling in TELLINGS if telling != "lockstep")
    if "two models" in cases and "assured" in methods:
        yield Cell("two models", "hard ones skipped", "assured")


@cache
def made(case: str) -> Made:
    """The pool of a case and its truth, once in each process: what is kept with a pool serves all its runs."""
    return CASES[case].make()


def run(cell: Cell, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """One line for each seed: {"seed": ..., labels: [[value, low, high], ...]}."""
    case, method = CASES[cell.case], METHODS[cell.method]()
    pool, truth = made(cell.case)
    metrics = metric_set(case.metrics, pool)
    lines = []
    for seed in seeds:
        task, history = Task(pool, metrics, seed=seed), History(len(pool))
        line: dict[str, Any] = {"seed": seed}
        for labels in case.labels:
            history = told(method, task, truth, history, labels, TELLINGS[cell.telling])
            line[str(labels)] = [[e.value, e.low, e.high] for e in method.estimate(task, history)]
        lines.append(line)
    return lines


def run_all(chosen: Sequence[Cell], runs: int, n_jobs: int, table: Sequence[Row], per_job: int = 10) -> None:
    """Every run that neither the table nor a file has, in parallel processes; all cells grow together."""
    jobs = []
    for start in range(0, runs, per_job):
        for cell in chosen:
            done, first = cell.runs.done(), runs_in(table, cell)
            seeds = [seed for seed in range(start, min(start + per_job, runs)) if seed >= first and seed not in done]
            if seeds:
                jobs.append((cell, seeds))

    with progress_bar("validity", len(jobs)) as bar:
        for cell, lines in in_processes(_finished, jobs, n_jobs, ordered=False):
            cell.runs.add(*lines)
            bar.advance(1)


def _finished(cell: Cell, seeds: Sequence[int]) -> tuple[Cell, list[dict[str, Any]]]:
    return cell, run(cell, seeds)


# ---------------------------------------------------------------- reading


def runs_in(table: Sequence[Row], cell: Cell) -> int:
    """How many runs of a cell the table has of this edition: those with the seeds 0, 1, ..."""
    return max((int(row["runs"]) for row in table if _is_of(row, cell)), default=0)


def _is_of(row: Row, cell: Cell) -> bool:
    return cell.holds(row) and _is_present(row)


def rows_of(cell: Cell, table: Sequence[Row]) -> Iterator[Row]:
    """One row for each metric and number of labels: the table's, joined by the runs that were made since.

    Rows of another edition stay until there are as many runs of this one.
    """
    old = {(row["metric"], row["labels"]): row for row in table if _is_of(row, cell)}
    before = [row for row in table if cell.holds(row) and not _is_of(row, cell)]
    runs = cell.counted(runs_in(table, cell))
    if not runs or len(runs) < max((int(row["runs"]) for row in before), default=0):
        yield from old.values() if old else before
        return
    case = CASES[cell.case]
    exact = exact_values(cell)
    for labels in case.labels:
        values = np.array([line[str(labels)] for line in runs], np.float64)
        for column, (metric, value) in enumerate(exact.items()):
            new = {
                "pool": cell.case,
                "telling": cell.telling,
                "method": cell.method,
                "metric": metric,
                "labels": labels,
                "edition": EDITION,
                "truth": round(value, 5),
                **summary(values[:, column], value),
            }
            yield joined(old[metric, labels], new) if (metric, labels) in old else new


def exact_values(cell: Cell) -> Mapping[str, float]:
    """The truth of every metric of a cell; where hard points are skipped, that of the points that can be labelled."""
    pool, truth = made(cell.case)
    if TELLINGS[cell.telling].hard_skipped:
        able = np.flatnonzero(labelable(pool, truth))
        pool, truth = pool._at(able), truth[able]
    return truth_values(pool, truth, metric_set(CASES[cell.case].metrics, pool))


def summary(values: Array, truth: float) -> Row:
    """Runs, bias in units of the error, error, coverage and half-width of (runs, 3) values, lower and upper ends.

    defined        share of the runs with a value;  with_interval  with an interval
    """
    error = values[:, 0] - truth
    error = error[np.isfinite(error)]
    bounded = np.isfinite(values[:, 1])
    inside = (values[bounded, 1] <= truth + 1e-9) & (truth - 1e-9 <= values[bounded, 2])
    rmse = float(np.sqrt((error**2).mean())) if len(error) else float("nan")
    return {
        "runs": len(values),
        "defined": round(len(error) / len(values), 5),
        "with_interval": round(float(bounded.mean()), 5),
        "bias": round(float(error.mean()) / rmse, 4) if rmse > 0 else 0.0,
        "rmse": round(rmse, 7),
        "coverage": round(float(inside.mean()), 5) if bounded.any() else None,
        "half_width": round(float((values[bounded, 2] - values[bounded, 1]).mean()) / 2, 7) if bounded.any() else None,
    }


def joined(first: Row, second: Row) -> Row:
    """The summary of the runs of both rows together."""
    runs = [first["runs"], second["runs"]]

    def mean(name: str, counts: Sequence[float]) -> float | None:
        known = [(float(row[name]), n) for row, n in zip((first, second), counts, strict=True) if n > 0]
        return sum(value * n for value, n in known) / sum(n for _, n in known) if known else None

    defined = [row["runs"] * row["defined"] for row in (first, second)]
    bounded = [row["runs"] * row["with_interval"] for row in (first, second)]
    moments = [{"error": float(r["bias"]) * float(r["rmse"]), "square": float(r["rmse"]) ** 2} for r in (first, second)]
    error, square = (
        sum(moment[name] * n for moment, n in zip(moments, defined, strict=True) if n > 0) / max(sum(defined), 1e-300)
        for name in ("error", "square")
    )
    rmse, coverage, half_width = math.sqrt(square), mean("coverage", bounded), mean("half_width", bounded)
    return {
        **second,
        "runs": sum(runs),
        "defined": round(sum(defined) / sum(runs), 5),
        "with_interval": round(sum(bounded) / sum(runs), 5),
        "bias": round(error / rmse, 4) if rmse > 0 else 0.0,
        "rmse": round(rmse, 7) if sum(defined) else float("nan"),
        "coverage": None if coverage is None else round(coverage, 5),
        "half_width": None if half_width is None else round(half_width, 7),
    }


def read_table() -> list[Row]:
    """The rows of the committed table."""
    return read_numbers(TABLE)


def page_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """docs/validity.md with the table of these rows."""
    mine = [row for row in rows if row["method"] == "assured" and row["coverage"] is not None]
    random: dict[tuple[Any, ...], Mapping[str, Any]] = {
        (row["pool"], row["metric"], row["labels"]): row
        for row in rows
        if row["method"] == "tradition" and row["coverage"] is not None
    }
    head = (
        "pool",
        "answers",
        "metric (truth)",
        "labels",
        "runs",
        "bias / RMSE",
        "coverage",
        "half-width",
        "random: both",
    )
    lines = []
    for row in mine:
        at_random = random.get((row["pool"], row["metric"], row["labels"]))
        beside = f"{float(at_random['coverage']):.2f}, {float(at_random['half_width']):.3f}" if at_random else "–"
        metric = f"{row['metric']} ({float(row['truth']):.4g})"
        figures = f"{float(row['bias']):+.2f}", f"{float(row['coverage']):.2f}", f"{float(row['half_width']):.3f}"
        runs = f"{row['runs']}" if _intervals(row) == row["runs"] else f"{row['runs']} ({_intervals(row)})"
        pool = row["pool"] if _is_present(row) else f"{row['pool']} *"
        lines.append([pool, row["telling"], metric, row["labels"], runs, *figures, beside])
    weights = np.array([_intervals(row) for row in mine], np.float64)
    coverage = np.array([float(row["coverage"]) for row in mine])
    short = [row for row in mine if _below(float(row["coverage"]), _intervals(row))]
    fewest, now = min(int(row["runs"]) for row in mine), sum(map(_is_present, mine))
    return TEXT.format(
        cells=len(mine),
        mean=float(np.average(coverage, weights=weights)),
        short=len(short),
        names="; ".join(f"{row['pool']} at {row['labels']}: {float(row['coverage']):.2f}" for row in short) or "none",
        fewest=fewest,
        editions=_of_editions(now, len(mine)),
        worst=2 * math.sqrt(0.95 * 0.05 / fewest),
        table=markdown(head, lines),
        **_beside_random(mine, random),
    )


def _beside_random(mine: Sequence[Mapping[str, Any]], random: Mapping[tuple[Any, ...], Mapping[str, Any]]) -> Row:
    """The mean coverage of both methods in the cells in which people answer in lockstep, which random sampling has."""
    pairs = [(row, random.get((row["pool"], row["metric"], row["labels"]))) for row in mine]
    both = [(row, other) for row, other in pairs if other is not None and row["telling"] == "lockstep"]
    ours, theirs = (
        np.average([float(row["coverage"]) for row in rows], weights=[_intervals(row) for row in rows])
        for rows in zip(*both, strict=True)
    )
    return {"both": len(both), "ours": float(ours), "theirs": float(theirs)}


def _is_present(row: Mapping[str, Any]) -> bool:
    """Whether the present edition of the method gives these numbers."""
    return str(row.get("edition")) in Cell(row["pool"], row["telling"], row["method"]).editions


def _of_editions(now: int, rows: int) -> str:
    if now == rows:
        return f"All rows hold for edition {EDITION} of `assured`."
    earlier = rows - now
    return f"Rows marked * ({earlier} of {rows}) are of earlier editions of `assured`, the others hold for {EDITION}."


def _intervals(row: Mapping[str, Any]) -> int:
    """In how many runs there was an interval."""
    return round(int(row["runs"]) * float(row["with_interval"]))


def _below(coverage: float, intervals: int) -> bool:
    """Whether so few of these intervals would hold less often than 1 in 40 times if each held with 0.93."""
    return bool(binom.cdf(round(coverage * intervals), intervals, 0.93) < 0.025)


TEXT = """# Does the interval hold where it hurts?

Pools made to break intervals, labelled in the ways people label: in lockstep (ten items asked for, ten labels told),
with items left waiting, out of order, with errors that somebody volunteers in the middle, with items never answered,
with points that nobody can label (most of them hard), and with half of the pool coming as a wave after 30 labels. 95 %
intervals for one look, `assured` beside a plain random sample (`tradition`) on the same pool. This page and
`benchmarks/results/validity.csv` are written by

```
python -m benchmarks.validity
```

which goes on where it was stopped and adds runs to the committed table; `--runs` sets the number of runs a cell. There
are at least {fewest} runs a cell so far: a single coverage near 0.95 is known to +-{worst:.2f} (two standard errors) or
better. Where some runs had no interval, because too few labels counted, the number of intervals stands in brackets,
and coverage is that of these. Nothing was tuned on the pools *drift*, *two models* and *wide*, and on *letters* means
over classes alone (seeds from 1000 on); the others were looked at while the interval rule was chosen. {editions}

- {cells} cells, mean coverage of all intervals {mean:.4f}. Cells whose coverage is below 0.93 beyond noise (so few
  intervals held that this would happen with probability below 1/40 if the true coverage were 0.93): {short} ({names}).
- In the {both} lockstep cells that were also run with random sampling, mean coverage is {theirs:.3f} for random
  sampling (Wilson's interval with exact bounds, B4) and {ours:.3f} for `assured`. Where few errors are met, every rule
  that keeps Clopper and Pearson's bound for labels without an error covers more than 0.95.
- What waits moves nothing: a contract test holds every method to the same numbers with and without points that
  were asked for and not answered.
- What is left: intervals are wider than needed where errors are rare and the sample happened to contain some; metrics
  of rare classes have wide intervals, because positives that nobody has seen may be anywhere; wrong labels are
  outside any interval. With skips figures are about the points that can be labelled, whatever skips depend on: *hard
  ones skipped* leaves out half of the points that a model has wrong and a tenth of the others.

{table}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage where it hurts.")
    parser.add_argument("--cases", default="", help="names of pools, separated by ;")
    parser.add_argument("--tellings", default="", help="how answers come in, separated by ;")
    parser.add_argument("--methods", default="assured,tradition", help="comma-separated")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--summary", action="store_true", help="only rewrite the table")
    parser.add_argument("--fresh", action="store_true", help="leave the committed table aside")
    options = parser.parse_args()
    cases = options.cases.split(";") if options.cases else list(CASES)
    chosen = list(cells(cases, options.methods.split(",")))
    if options.tellings:
        chosen = [cell for cell in chosen if cell.telling in options.tellings.split(";")]
    table = [] if options.fresh else read_table()
    if not options.summary:
        run_all(chosen, options.runs, options.jobs, table)
    write_csv(TABLE, [row for cell in cells(list(CASES), ["assured", "tradition"]) for row in rows_of(cell, table)])
    PAGE.write_text(page_of(read_table()), encoding="utf-8")


if __name__ == "__main__":
    from benchmarks import validity  # under its own name, by which worker processes find its functions

    validity.main()
