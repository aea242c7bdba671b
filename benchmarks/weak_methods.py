"""Related systems that were weak here, before and after they were mended: `python -m benchmarks.weak_methods`.

    python -m benchmarks.weak_methods run [--edition after] [--only spe] [--share 1.0]
    python -m benchmarks.weak_methods table      # benchmarks/results/weak_methods.csv and the tables of docs/methods.md

Runs are kept under benchmarks/results/runs and not repeated. Those of the edition "before" were made by this command
on the package as of commit 4bd8dd7 (with `PYTHONPATH` set to its `src`), those of `spe` and `katariya` on public pools
by the leaderboard; their rows stay in the table as they are.
The exact design variances of stratified samples (kind "exact") need no run: they follow from the true labels.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from altmas.history import History  # noqa: E402
from altmas.methods import METHODS, Task  # noqa: E402
from altmas.methods.related.strata import CUTS, allocation, stratified_variance  # noqa: E402
from altmas.metrics import metric_set, truth_values  # noqa: E402
from altmas.pool import Pool  # noqa: E402
from altmas.simulate import label_until  # noqa: E402
from benchmarks.data import NamedPool, load  # noqa: E402
from benchmarks.store import RESULTS, RUNS, Row, Runs, read_csv, write_csv  # noqa: E402
from benchmarks.tables import DOCS, markdown, with_tables  # noqa: E402

TABLE: Final = RESULTS / "weak_methods.csv"
EXACT: Final = RESULTS / "stratified_exact.csv"
PAGE: Final = DOCS / "methods.md"
RANDOM: Final = RESULTS / "leaderboard.csv"
BUDGETS: Final = (200, 400)
BATCH: Final = {"spe": 200, "katariya": 25}
USUAL_BATCH: Final = 20
EDITIONS: Final = ("before", "after")
ONE_OF_RARE: Final = ("f1[match]", "precision[match]", "recall[match]")


@dataclass(frozen=True)
class Cell:
    """One method on one pool and track, asked for some metrics together."""

    method: str
    pool: str
    track: str
    metrics: tuple[str, ...]
    runs: int

    def path(self, edition: str) -> Path:
        """Where its finished runs are kept."""
        names = "+".join(name.partition("[")[0] for name in self.metrics)
        return RUNS / f"weak_methods.{edition}.{self.method}.{self.pool}.{self.track}.{names}.jsonl"


CELLS: Final = (
    *(Cell("stratified", pool, "scores", ("accuracy",), 60) for pool in ("20news", "mnist-99", "mnist-70")),
    Cell("stratified", "employment-ma", "scores", ("accuracy",), 40),
    *(Cell(method, "abt-buy-svm", "scores", ONE_OF_RARE, 40) for method in ("sawade", "druck")),
    *(Cell(method, "abt-buy-svm", "scores", ("recall[match]",), 20) for method in ("paula", "adastrat")),
    *(Cell(method, "made-hidden", "scores", ("f1[1]", "recall[1]"), 100) for method in ("sawade", "druck")),
    *(Cell(method, "made-hidden", "scores", ("recall[1]",), 40) for method in ("paula", "adastrat")),
    Cell("spe", "made-normal", "scores", ("accuracy", "precision[1]", "recall[1]"), 16),
    Cell("spe", "made-saturated", "scores", ("accuracy", "precision[1]", "recall[1]"), 16),
    Cell("spe", "mnist-99", "scores", ("accuracy", "precision[1]", "recall[1]"), 8),
    Cell("spe", "employment-ma", "scores", ("accuracy", "precision[employed]", "recall[employed]"), 8),
    Cell("spe", "20news", "scores", ("accuracy", "precision[comp.graphics]", "recall[comp.graphics]"), 8),
    *(Cell("katariya", "20news", track, ("accuracy",), 20) for track in ("hard", "scores")),
    Cell("katariya", "mnist-99", "scores", ("accuracy",), 20),
)
LENT: Final = ("spe", "katariya")
"""Methods whose rows of the edition "before" are those of the leaderboard, where no run of that edition is here."""

# ---------------------------------------------------------------- pools


def made(name: str, points: int = 4000) -> NamedPool:
    """Two classes whose scores are what `spe` assumes: normal log odds, 30 % of class 1; the model says 1 above 1/2.

    made-saturated has the same log odds eight times as large and stored in half precision, as an over-confident
    network would: two fifths of the scores are then 0 or 1 but for rounding.
    """
    if name == "made-hidden":
        return hidden_members()
    rng = np.random.default_rng(7)
    truth = (rng.random(points) < 0.3).astype(np.int64)
    odds = np.where(truth == 1, rng.normal(1.5, 0.8, points), rng.normal(-1.0, 1.0, points))
    if name == "made-saturated":
        score = (1 / (1 + np.exp(-8 * odds))).astype(np.float16).astype(np.float64)
    else:
        score = 1 / (1 + np.exp(-odds))
    scores = np.stack([1 - score, score], axis=1).astype(np.float32)
    return NamedPool(name, None, (score > 0.5).astype(np.int64), truth, scores, ["0", "1"])


def hidden_members(points: int = 2000) -> NamedPool:
    """Sixty members of class 1, 23 of them at scores like those of the other class."""
    rng = np.random.default_rng(4)
    truth = (np.arange(points) < 60).astype(np.int64)
    x = rng.normal(size=points)
    x[:37] += 4
    score = 1 / (1 + np.exp(-2 * (x - 2.5)))
    scores = np.stack([1 - score, score], axis=1).astype(np.float32)
    return NamedPool("made-hidden", None, (score > 0.5).astype(np.int64), truth, scores, ["0", "1"])


@cache
def known(name: str) -> NamedPool:
    """The pool of that name, read once."""
    return made(name) if name.startswith("made-") else load(name)


@cache
def pool_in(name: str, track: str, features: bool) -> Pool:
    """What a method sees: features only where they are used, as copying them costs more than the draws."""
    named = known(name)
    scores = named.scores if track == "scores" else None
    return Pool(named.features if features else None, named.predictions, scores=scores, classes=named.classes)


# ---------------------------------------------------------------- running


def run_cell(cell: Cell, edition: str, runs: int) -> None:
    """The runs of a cell that are not yet done, a line each."""
    named, method = known(cell.pool), METHODS[cell.method]()
    pool = pool_in(cell.pool, cell.track, cell.track == "hard" or cell.method == "katariya")
    metrics = metric_set(list(cell.metrics), pool)
    finished = Runs(cell.path(edition), "seed")
    for seed in sorted(set(range(runs)) - finished.done()):
        task, history, started = Task(pool, metrics, seed=seed), History(len(pool)), time.process_time()
        row: Row = {"seed": seed}
        for labels in BUDGETS:
            batch = BATCH.get(cell.method, USUAL_BATCH)
            history = label_until(method, task, history, labels, batch, named.truth.__getitem__)
            row[str(labels)] = [[e.value, e.low, e.high] for e in method.estimate(task, history)]
        finished.add(row | {"seconds": round(time.process_time() - started, 3)})


# ---------------------------------------------------------------- tables


def rows_of(cell: Cell, edition: str) -> Iterator[Row]:
    """A row for each metric and number of labels of a cell's finished runs."""
    done = Runs(cell.path(edition), "seed").read()
    if not done:
        return
    named = known(cell.pool)
    pool = pool_in(cell.pool, cell.track, False)
    exact = truth_values(pool, named.truth, metric_set(list(cell.metrics), pool))
    for labels in BUDGETS:
        for index, metric in enumerate(cell.metrics):
            values = np.array([run[str(labels)][index] for run in done], np.float64)
            yield {
                "method": cell.method,
                "edition": edition,
                "pool": cell.pool,
                "track": cell.track,
                "metric": metric,
                "labels": labels,
                **summary(values, exact[metric], random_error(cell, metric, labels, exact[metric])),
                "seconds": round(float(np.mean([run["seconds"] for run in done])), 3),
            }


def summary(values: np.ndarray[Any, np.dtype[np.float64]], truth: float, random: float) -> Row:
    """What (runs, 3) values and intervals say: bias, error, coverage, width, label value against random sampling."""
    defined = values[~np.isnan(values[:, 0])]
    error = defined[:, 0] - truth
    square = float((error**2).mean()) if len(error) else float("nan")
    covered = (defined[:, 1] <= truth) & (truth <= defined[:, 2])
    return {
        "runs": len(values),
        "undefined": len(values) - len(defined),
        "truth": round(truth, 5),
        "bias": round(float(error.mean()), 6) if len(error) else None,
        "rmse": round(square**0.5, 6),
        "coverage": round(float(covered.mean()), 4) if len(error) else None,
        "width": round(float((defined[:, 2] - defined[:, 1]).mean()), 5) if len(error) else None,
        "label_value": round(random**2 / square, 3) if square > 0 and random == random else None,
    }


def random_error(cell: Cell, metric: str, labels: int, truth: float) -> float:
    """The root mean squared error of random sampling: exact for accuracy, else that of the leaderboard; nan if none."""
    size = len(known(cell.pool))
    if metric == "accuracy":
        return float(np.sqrt(truth * (1 - truth) / labels * (size - labels) / (size - 1)))
    key = (cell.pool, metric, "tradition", str(labels))
    for row in read_csv(RANDOM):
        if (row["pool"], row["metric"], row["method"], row["labels"]) == key:
            return float(row["rmse"])
    return float("nan")


def exact_rows(labels: int = 400) -> Iterator[Row]:
    """Label value of stratified samples on the highest score by their exact variance (C5), for cuts and allocations.

    "neyman" knows the true spread of every stratum, which nobody does: no allocation can do better on these strata.
    """
    for name in ("20news", "employment-ma", "banking77", "mnist-labelerrors", "mnist-99", "mnist-70", "abt-buy-svm"):
        named = known(name)
        assert named.scores is not None
        right, size = (named.predictions == named.truth).astype(np.float64), len(named)
        plain = right.var() / labels * (size - labels) / (size - 1)
        for cut, count in (("equal-size", 10), ("root-frequency", 20)):
            strata = CUTS[cut](named.scores.max(1).astype(np.float64), count)
            sizes = np.bincount(strata)
            mean = np.bincount(strata, right) / sizes
            spreads = np.sqrt(mean * (1 - mean) * sizes / np.maximum(sizes - 1, 1))
            values = {
                how: round(plain / stratified_variance(sizes, spreads, allocation(labels, sizes, how, spreads)), 3)
                for how in ("proportional", "equal", "neyman")
            }
            yield {"pool": name, "accuracy": round(named.accuracy, 4), "cut": cut, "strata": len(sizes), **values}


def lent_rows() -> Iterator[Row]:
    """The rows of the edition "before" that the leaderboard has."""
    keys = {(cell.method, cell.pool, cell.track, metric) for cell in CELLS for metric in cell.metrics}
    for row in read_csv(RANDOM):
        key = row["method"], row["pool"], row["track"], row["metric"]
        if row["method"] in LENT and key in keys and int(row["labels"]) in BUDGETS:
            same = {name: row[name] for name in ("pool", "track", "metric", "labels")}
            figures = {name: row[name] for name in ("undefined", "truth", "bias", "rmse", "coverage", "width")}
            last = {"label_value": row["label_value"], "seconds": row["seconds"]}
            yield {"method": row["method"], "edition": "before"} | same | {"runs": row["repeats"]} | figures | last


def collect() -> list[Row]:
    """The rows of both editions; those of an edition without runs here are kept from the table."""
    by_key: dict[tuple[str, ...], Row] = {_key(row): row for row in lent_rows()}
    by_key |= {_key(row): dict(row) for row in read_csv(TABLE)}
    for cell in CELLS:
        for edition in EDITIONS:
            for row in rows_of(cell, edition):
                by_key[_key(row)] = row
    order = {cell.method: index for index, cell in reversed(list(enumerate(CELLS)))}
    return sorted(by_key.values(), key=lambda row: (order[row["method"]], row["pool"], row["track"], row["metric"]))


def _key(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("method", "edition", "pool", "track", "metric", "labels"))


def before_after(rows: list[dict[str, str]]) -> str:
    """The table of docs/methods.md: 400 labels, both editions beside each other."""
    head = "method", "pool", "track", "metric", "runs", "label value", "bias / RMSE", "coverage", "width"
    lines: list[list[str]] = []
    by_cell: dict[tuple[str, str, str, str], dict[str, dict[str, str]]] = {}
    for row in rows:
        if int(row["labels"]) == 400:
            key = row["method"], row["pool"], row["track"], row["metric"]
            by_cell.setdefault(key, {})[row["edition"]] = row
    for (method, pool, track, metric), by_edition in by_cell.items():
        if len(by_edition) == len(EDITIONS):
            before, after = (by_edition[edition] for edition in EDITIONS)
            pairs = [f"{_shown(before, name)} → {_shown(after, name)}" for name in ("label_value", "lean", "coverage")]
            width = f"{float(before['width']):.3f} → {float(after['width']):.3f}"
            lines.append([f"`{method}`", pool, track, metric, f"{before['runs']}, {after['runs']}", *pairs, width])
    return markdown(head, lines)


def _shown(row: dict[str, str], name: str) -> str:
    if name == "lean":
        error = float(row["rmse"])
        return f"{float(row['bias']) / error:+.2f}" if error > 0 else "0"
    return f"{float(row[name]):.2f}" if row[name] else "–"


def exact_table(rows: list[dict[str, str]]) -> str:
    """The table of docs/methods.md of what stratified samples can reach."""
    head = "pool", "accuracy", "cut", "strata", "proportional", "equal", "best possible (Neyman, true spreads)"
    names = "pool", "accuracy", "cut", "strata", "proportional", "equal", "neyman"
    return markdown(head, [[row[name] for name in names] for row in rows])


def rewrite() -> None:
    """Both tables, and the page that shows them."""
    write_csv(TABLE, collect())
    if not EXACT.exists():
        write_csv(EXACT, exact_rows())
    tables = {"weak methods": before_after(read_csv(TABLE)), "stratified exact": exact_table(read_csv(EXACT))}
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Related systems that were weak here, before and after.")
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--edition", choices=EDITIONS, default="after")
    parser.add_argument("--only", default="", help="comma-separated methods")
    parser.add_argument("--share", type=float, default=1.0, help="of the runs of each cell")
    options = parser.parse_args()
    if options.what == "run":
        for cell in CELLS:
            if not options.only or cell.method in options.only.split(","):
                run_cell(cell, options.edition, max(1, int(cell.runs * options.share)))
    else:
        rewrite()


if __name__ == "__main__":
    main()
