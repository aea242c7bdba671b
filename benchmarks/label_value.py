"""What one label of each method is worth, against a plain random sample: `python -m benchmarks.label_value`.

For every pool, track (hard labels only / with scores) and aim (accuracy alone / several metrics together) the methods
are run many times to 400 labels against the known truth. Finished runs are kept under benchmarks/results/runs and not
repeated, so an interrupted benchmark continues where it stopped. `--quick` takes minutes; `--summary` only rewrites
the tables from the runs that exist. Rows of methods that have no runs here stay as they are committed. `--design` has
label values for accuracy alone by the variance of the design, of which ten runs tell more than hundreds of errors.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from altmas.compute import in_processes  # noqa: E402
from altmas.history import History  # noqa: E402
from altmas.methods import METHODS, Assured, Method, Task  # noqa: E402
from altmas.methods.assured.recipe import EDITION  # noqa: E402
from altmas.metrics import Metric, metric_set, truth_values  # noqa: E402
from altmas.pool import Pool  # noqa: E402
from altmas.progress import progress_bar  # noqa: E402
from altmas.simulate import label_until  # noqa: E402
from benchmarks.data import HELD_OUT, NAMES, DataMissing, NamedPool, load  # noqa: E402
from benchmarks.design_variance import estimator_of, of_design, of_random_sample, of_stage  # noqa: E402
from benchmarks.learnable_limit import learnable_limit  # noqa: E402
from benchmarks.store import RESULTS, RUNS, Runs, keep_csv  # noqa: E402

Array = NDArray[Any]

BUDGETS = (100, 200, 400)
AIMS = ("accuracy", "several")
TRACKS = ("hard", "scores")
REPEATS = {"assured": 100, "tradition": 1000, "altmas": 3, "bald": 3}
QUICK = {"assured": 6, "tradition": 200}
BATCH = {"assured": 10, "tradition": 100, "altmas": 50, "bald": 50}
RARE = {"abt-buy-svm": "f1[match]"}
"""Pools whose second metric is the F1 of their rare class, not the macro F1."""
MANY = 256
"""From this many classes on, single classes are left out: 400 labels leave most of them without one."""
ROUNDED = 1e-6
"""Runs are kept with seven digits: an interval that is one value, because all is known, holds that value."""
MEMBERS = 20
"""Coverage and value of class metrics are averaged over classes with at least this many true members."""


@dataclass(frozen=True)
class Cell:
    """One method on one pool, track and aim."""

    pool: str
    track: str
    aim: str
    method: str

    @property
    def path(self) -> Path:
        """Where its finished runs are kept."""
        return RUNS / f"{self.pool}.{self.track}.{self.aim}.{self.method}.jsonl"

    @property
    def runs(self) -> Runs:
        """Its finished runs, told apart by their repeat."""
        return Runs(self.path, "repeat")


def cells(names: list[str], methods: list[str]) -> list[Cell]:
    """Every cell to be run. Random sampling sees neither scores nor aims, so it is run once for each pool.

    The networks of altmas and bald are slow: they are run on hard labels with several metrics only.
    """
    listed = []
    for name in names:
        for method in methods:
            if method == "assured":
                tracks = [track for track in TRACKS if track == "hard" or load(name).scores is not None]
                listed += [Cell(name, track, aim, method) for track in tracks for aim in AIMS]
            elif method == "tradition" or load(name).features is not None:
                listed.append(Cell(name, "hard", "several", method))
    return listed


def pool_of(named: NamedPool, track: str) -> Pool:
    """What a method may see in a track."""
    scores = named.scores if track == "scores" else None
    return Pool(named.features, named.predictions, scores=scores, classes=named.classes)


def metrics_of(name: str, pool: Pool, aim: str) -> tuple[Metric, ...]:
    """The metrics of an aim."""
    if aim == "accuracy":
        return metric_set(["accuracy"], pool)
    second = RARE.get(name, "macro_f1")
    classes = ["per_class"] if len(pool.classes) < MANY else []
    return metric_set(["accuracy", second, *classes], pool)


# ---------------------------------------------------------------- running


def run_cells(together: list[Cell], first: int, last: int) -> int:
    """Runs `first` to `last` of cells that share a pool and a track, a line each when done; how many there were."""
    named = load(together[0].pool)
    pool = pool_of(named, together[0].track)
    count = 0
    for cell in together:
        metrics = metrics_of(cell.pool, pool, cell.aim)
        for repeat in sorted(set(range(first, last)) - cell.runs.done()):
            run = one_run(METHODS[cell.method](), pool, named.truth, metrics, repeat, cell)
            cell.runs.add({"repeat": repeat, **run})
            count += 1
    return count


def one_run(method: Method, pool: Pool, truth: Array, metrics: tuple[Metric, ...], repeat: int, cell: Cell) -> Any:
    """{labels: [[value, low, high, effective labels] for each metric]} along one run."""
    task = Task(pool, metrics, seed=repeat)
    history, started = History(len(pool)), time.perf_counter()
    by_labels: dict[str, Any] = {}
    for labels in BUDGETS:
        history = label_until(method, task, history, labels, BATCH[cell.method], truth.__getitem__)
        estimates = method.estimate(task, history)
        by_labels[str(labels)] = [_rounded(e.value, e.low, e.high, e.effective_labels) for e in estimates]
    return by_labels | {"seconds": round(time.perf_counter() - started, 3)}


def _rounded(*values: float) -> list[float | None]:
    return [None if not np.isfinite(value) else round(float(value), 7) for value in values]


def run_all(chosen: list[Cell], repeats: dict[str, int], n_jobs: int, rounds: int = 4) -> None:
    """Every missing run in parallel processes, in rounds, so that all cells grow together."""
    together: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in chosen:
        together.setdefault((cell.pool, cell.track, cell.method), []).append(cell)
    tasks = []
    for part in range(rounds):
        for group in together.values():
            total = repeats[group[0].method]
            first, last = total * part // rounds, total * (part + 1) // rounds
            if any(set(range(first, last)) - cell.runs.done() for cell in group):
                tasks.append((group, first, last))
    with progress_bar("label value", len(tasks)) as bar:
        for _ in in_processes(run_cells, tasks, n_jobs, ordered=False):
            bar.advance(1)


# ---------------------------------------------------------------- reading


def limits(names: list[str]) -> dict[str, tuple[float, str]]:
    """{pool.track: (learnable limit, model)}, computed once and kept."""
    path = RESULTS / "learnable_limits.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        named = load(name)
        for track in TRACKS:
            key = f"{name}.{track}"
            if key not in known and (track == "hard" or named.scores is not None):
                known[key] = learnable_limit(pool_of(named, track), named.truth)
                path.write_text(json.dumps(known, indent=1) + "\n")
    return {key: (value[0], value[1]) for key, value in known.items()}


def summary(chosen: list[Cell], bounds: dict[str, tuple[float, str]]) -> Iterator[dict[str, Any]]:
    """One row for each cell, number of labels and metric group."""
    for cell in chosen:
        runs = cell.runs.read()
        if not runs:
            continue
        named = load(cell.pool)
        pool = pool_of(named, "hard")
        metrics = metrics_of(cell.pool, pool, cell.aim)
        random = Cell(cell.pool, "hard", "several", "tradition")
        column_of = {metric.name: column for column, metric in enumerate(metrics_of(cell.pool, pool, "several"))}
        exact = truth_values(pool, named.truth, metrics)
        truth = np.array([exact[metric.name] for metric in metrics])
        columns = [column_of[metric.name] for metric in metrics]
        for labels in BUDGETS:
            mine = values_of(runs, labels)
            theirs = values_of(random.runs.read(), labels)[:, columns]
            for group, members in groups(cell, metrics, named).items():
                row = row_of(cell, labels, group, [m.name for m in metrics], members, mine, theirs, truth)
                row["seconds"] = round(float(np.median([run["seconds"] for run in runs])), 2)
                if group == "accuracy" and cell.method == "assured":
                    limit = bounds[f"{cell.pool}.{cell.track}"][0]
                    row |= {"limit": round(limit, 2), "of_limit": round(row["label_value"] / limit, 3)}
                yield row


def values_of(runs: list[dict[str, Any]], labels: int) -> Array:
    """(repeats, metrics, 4) value, low, high, effective labels; nan where undefined."""
    return np.array([run[str(labels)] for run in runs], np.float64)


def groups(cell: Cell, metrics: tuple[Metric, ...], named: NamedPool) -> dict[str, list[int]]:
    """{name: indices of the metrics that are read together}."""
    members = np.bincount(named.truth, minlength=len(named.classes))
    of_class = ("precision", "recall")
    by_group = {metric.name: [index] for index, metric in enumerate(metrics) if metric.kind not in of_class}
    single = [
        index
        for index, metric in enumerate(metrics)
        if metric.kind in of_class and members[metric.classes[0]] >= MEMBERS
    ]
    if single:
        by_group["per_class"] = single
        by_group["accuracy + per_class"] = [by_group["accuracy"][0], *single]
    return by_group


def row_of(
    cell: Cell, labels: int, group: str, names: list[str], members: list[int], mine: Array, theirs: Array, truth: Array
) -> dict[str, Any]:
    """Bias, error, coverage, width and label value of one group of metrics."""
    goal = truth[members]
    error, random_error = mine[:, members, 0] - goal, theirs[:, members, 0] - goal
    inside = (mine[:, members, 1] <= goal + ROUNDED) & (goal - ROUNDED <= mine[:, members, 2])
    covered = np.where(np.isnan(mine[:, members, 1]), np.nan, inside)
    by_metric = _mean(covered, 0)
    worst = int(np.nanargmin(by_metric)) if np.isfinite(by_metric).any() else 0
    worth = (1.0, 1.0, 1.0) if cell.method == "tradition" else value_of(error, random_error)
    spread = np.nanstd(error) / np.sqrt(max(np.isfinite(error).sum(), 1))
    return {
        "pool": cell.pool,
        "track": cell.track,
        "aim": cell.aim,
        "method": cell.method,
        "edition": EDITION if cell.method == "assured" else "",
        "labels": labels,
        "metric": group,
        "truth": round(float(goal.mean()), 5),
        "repeats": len(mine),
        "undefined": round(float(np.isnan(error).mean()), 3),
        "bias": round(float(np.nanmean(error)), 5),
        "bias_se": round(float(spread), 5),
        "rmse": round(float(np.sqrt(np.nanmean(error**2))), 5),
        "coverage": round(float(np.nanmean(covered)), 4) if np.isfinite(covered).any() else None,
        "coverage_worst": round(float(by_metric[worst]), 3) if np.isfinite(by_metric).any() else None,
        "worst_metric": names[members[worst]],
        "half_width": round(float(_mean((mine[:, members, 2] - mine[:, members, 1]).ravel(), 0)) / 2, 5),
        "label_value": round(worth[0], 3),
        "label_value_low": round(worth[1], 3),
        "label_value_high": round(worth[2], 3),
    }


def value_of(error: Array, random_error: Array, resamples: int = 200) -> tuple[float, float, float]:
    """(label value, low, high): mean squared error of random sampling over that of the method, 90 % by bootstrap.

    error, random_error  (repeats, metrics)

    Metrics that random sampling leaves undefined in more than half of its runs are left out: nothing can be said of how
    many random labels they would take.
    """
    usable = (np.isfinite(random_error).mean(0) > 0.5) & (np.isfinite(error).mean(0) > 0.5)
    if not usable.any() or len(random_error) < 2:
        return float("nan"), float("nan"), float("nan")
    rng = np.random.default_rng(0)
    mine, theirs = error[:, usable] ** 2, random_error[:, usable] ** 2

    def ratio(i: Array, j: Array) -> float:
        return float(np.nanmean(_mean(theirs[j], 0)) / np.nanmean(_mean(mine[i], 0)))

    draws = [ratio(*(rng.integers(len(x), size=len(x)) for x in (mine, theirs))) for _ in range(resamples)]
    value = ratio(np.arange(len(mine)), np.arange(len(theirs)))
    reach = 1.645 * float(np.std(np.log(draws)))
    return value, value * float(np.exp(-reach)), value * float(np.exp(reach))


def _mean(values: Array, axis: int) -> Array:
    """Mean of the finite values along an axis; nan where there is none."""
    finite = np.isfinite(values)
    count = finite.sum(axis)
    total = np.where(finite, values, 0.0).sum(axis)
    return np.asarray(np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0))


# ---------------------------------------------------------------- by the variance of the design


DESIGN_TABLE = RESULTS / "label_value_design.csv"
DESIGN_RUNS = 10


def design_run(pool: Pool, truth: Array, seed: int) -> dict[str, tuple[float, float]]:
    """{labels: random labels that one label is worth for accuracy, and one of the last stage alone}, of one run.

    By the variance given the draws. No shares of the stages can make labels worth more than those of the best stage,
    which mostly is the last one: it is drawn and corrected by the belief that has seen most labels.
    """
    method, task, history = Assured(), Task(pool, metric_set(["accuracy"], pool), seed=seed), History(len(pool))
    right, worth = (pool.predictions == truth).astype(np.float64), {}
    for labels in BUDGETS:
        history = label_until(method, task, history, labels, BATCH["assured"], truth.__getitem__)
        estimator = estimator_of(method, task, history)
        residuals = [right - sample.belief.agree for sample in estimator.samples]
        last = of_random_sample(right, len(estimator.samples[-1].rows)) / of_stage(estimator.samples[-1], residuals[-1])
        worth[str(labels)] = of_random_sample(right, labels) / of_design(estimator, residuals), last
    return worth


def design_rows(cell: Cell, repeats: int) -> list[dict[str, Any]]:
    """For each number of labels the geometric means and the least over runs, which are kept."""
    runs = Runs(RUNS / f"design.{EDITION}.{cell.pool}.{cell.track}.jsonl", "seed")
    missing = sorted(set(range(repeats)) - runs.done())
    if missing:
        named = load(cell.pool)
        pool = pool_of(named, cell.track)
        for seed in missing:
            runs.add({"seed": seed, **design_run(pool, named.truth, seed)})
    worth = {labels: np.array([run[str(labels)] for run in runs.read()]).T for labels in BUDGETS}
    key = {"pool": cell.pool, "track": cell.track, "edition": EDITION}
    return [
        key
        | {"labels": labels, "runs": len(all_labels), "label_value": _geometric(all_labels)}
        | {"least": round(float(all_labels.min()), 3), "of_last_stage": _geometric(last)}
        for labels, (all_labels, last) in worth.items()
    ]


def _geometric(values: Array) -> float:
    return round(float(np.exp(np.log(values).mean())), 3)


def design(names: list[str], repeats: int, n_jobs: int) -> None:
    """The table of label values by the variance of the design."""
    chosen = [(cell, repeats) for cell in cells(names, ["assured"]) if cell.aim == "accuracy"]
    rows: list[dict[str, Any]] = []
    with progress_bar("designs", len(chosen)) as bar:
        for made in in_processes(design_rows, chosen, n_jobs):
            rows += made
            bar.advance(1)
    keep_csv(DESIGN_TABLE, rows, "pool", "track", "labels", count="runs")


def main() -> None:
    parser = argparse.ArgumentParser(description="What one label of each method is worth.")
    parser.add_argument("--pools", default=",".join(NAMES), help="comma-separated")
    parser.add_argument("--methods", default="tradition,assured", help="comma-separated; altmas and bald are slow")
    parser.add_argument("--aims", default=",".join(AIMS), help="of assured, comma-separated; rows of others stay")
    parser.add_argument("--quick", action="store_true", help="few repeats, minutes")
    parser.add_argument("--repeats", type=int, help="runs of each method, in place of the usual numbers")
    parser.add_argument("--held-out", action="store_true", help="the pools on which nothing was tuned, in place of all")
    parser.add_argument("--summary", action="store_true", help="only rewrite the tables")
    parser.add_argument("--design", action="store_true", help="accuracy alone by the variance of the design, instead")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    everywhere = HELD_OUT if options.held_out else NAMES
    names = [name for name in (HELD_OUT if options.held_out else options.pools.split(",")) if available(name)]
    if options.design:
        return design(names, options.repeats or DESIGN_RUNS, options.jobs)
    chosen = cells(names, options.methods.split(","))
    chosen = [cell for cell in chosen if cell.method != "assured" or cell.aim in options.aims.split(",")]
    if not options.summary:
        usual = QUICK if options.quick else REPEATS
        run_all(chosen, dict.fromkeys(usual, options.repeats) if options.repeats else usual, options.jobs)
    names = [name for name in everywhere if available(name)]  # pools that were not run now keep their rows
    rows = list(summary(cells(names, list(REPEATS)), limits(names)))
    kind = "_quick" if options.quick else "_held_out" if options.held_out else ""
    keep(RESULTS / f"label_value{kind}.csv", rows)


def keep(path: Path, rows: list[dict[str, Any]]) -> None:
    """Put rows into the table in place of those of the same cells; others stay, with the edition that they are of."""
    keep_csv(path, rows, "pool", "track", "aim", "method", "labels", "metric")


def available(name: str) -> bool:
    """Whether the pool's data are there; says so where they are not."""
    try:
        load(name)
    except DataMissing as reason:
        print(f"left out: {reason}")
        return False
    return True


if __name__ == "__main__":
    main()
