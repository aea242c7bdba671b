"""Precision-recall and ROC curves with bands from `paula`, `adastrat` and `assured`.

    python -m benchmarks.curve_bands run [--runs 20]     # goes on where it was stopped
    python -m benchmarks.curve_bands table               # curve_bands.csv and .png, and the table of docs/methods.md

Every method draws 400 labels of its own of the same pool, asked for precision and recall of one class. At 13 thresholds
of the class's score precision, recall and specificity are then estimated from those labels alone: for `assured` as the
report does, for the other two as a stratified estimate with their blocks as strata, for the model that says the class
above the threshold. `paula` and `adastrat` also give the band of their papers around precision along the ranking (C17),
which is compared with the truth at the ranks that it names.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from altmas.estimates import Estimate  # noqa: E402
from altmas.history import History  # noqa: E402
from altmas.methods import METHODS, Task  # noqa: E402
from altmas.methods.related.ranking import ranked  # noqa: E402
from altmas.metrics import metric_set, truth_values  # noqa: E402
from altmas.pool import Pool  # noqa: E402
from altmas.simulate import label_until  # noqa: E402
from altmas.thresholds import candidates  # noqa: E402
from benchmarks.data import NamedPool, load  # noqa: E402
from benchmarks.store import RESULTS, RUNS, Row, Runs, read_csv, write_csv  # noqa: E402
from benchmarks.tables import DOCS, markdown, rewrite_page  # noqa: E402

Array = NDArray[Any]

TABLE: Final = RESULTS / "curve_bands.csv"
FIGURE: Final = RESULTS / "curve_bands.png"
POOLS: Final = {"employment-ma": "employed", "abt-buy-svm": "match"}
NAMES: Final = ("assured", "paula", "adastrat")
KINDS: Final = ("precision", "recall", "specificity")
LABELS: Final = 400
POINTS: Final = 13
BATCH: Final = 20
BAND: Final = "precision, band of the paper (C17)"


@cache
def known(name: str) -> tuple[NamedPool, Pool]:
    """The pool with its truth, and as a method sees it: predictions and scores."""
    named = load(name)
    return named, Pool(None, named.predictions, scores=named.scores, classes=named.classes)


@cache
def grid_of(name: str) -> tuple[float, ...]:
    """Thresholds of the score of the second class, as in a report."""
    _, pool = known(name)
    assert pool.scores is not None
    grid = candidates(pool.scores[:, 1])
    return tuple(grid[index] for index in np.unique(np.linspace(0, len(grid) - 1, POINTS).astype(int)))


@cache
def cut_at(name: str, threshold: float) -> Pool:
    """The pool of the model that says the second class from the threshold on."""
    _, pool = known(name)
    assert pool.scores is not None
    says = (pool.scores[:, 1] >= threshold).astype(np.int64)
    return Pool(None, says, scores=pool.scores, classes=list(pool.classes))


@cache
def truths(name: str, threshold: float) -> dict[str, float]:
    """The true value of each kind at a threshold."""
    named, pool = known(name)[0], cut_at(name, threshold)
    names = [f"{kind}[{POOLS[name]}]" for kind in KINDS]
    values = truth_values(pool, named.truth, metric_set(names, pool))
    return {kind: values[f"{kind}[{POOLS[name]}]"] for kind in KINDS}


# ---------------------------------------------------------------- running


def one_run(name: str, method_name: str, seed: int) -> Row:
    """{kind: [[value, low, high] at each threshold]} and the band of the paper, from 400 labels."""
    (named, pool), method, positive, started = known(name), METHODS[method_name](), POOLS[name], time.process_time()
    task = Task(pool, metric_set([f"precision[{positive}]", f"recall[{positive}]"], pool), seed=seed)
    history = label_until(method, task, History(len(pool)), LABELS, BATCH, named.truth.__getitem__)
    row: Row = {"seed": seed, "method": method_name}
    if method_name == "assured":
        for kind in KINDS:
            metrics = metric_set([f"{kind}[{positive},{t!r}]" for t in grid_of(name)], pool)
            row[kind] = [_ends(e) for e in method.estimate(replace(task, metrics=metrics), history)]
    else:
        row |= {kind: [] for kind in KINDS}
        for threshold in grid_of(name):
            cut = cut_at(name, threshold)
            metrics = metric_set([f"{kind}[{positive}]" for kind in KINDS], cut)
            for kind, e in zip(KINDS, method.estimate(replace(task, pool=cut, metrics=metrics), history), strict=True):
                row[kind].append(_ends(e))
        curve = method.estimate(task, history).info["curve"]
        row[BAND] = [curve["rank"], curve["precision"], curve["low"], curve["high"]]
    return row | {"seconds": round(time.process_time() - started, 2)}


def _ends(estimate: Estimate) -> list[float]:
    return [estimate.value, estimate.low, estimate.high]


def runs_of(name: str) -> Runs:
    """The finished runs on a pool."""
    return Runs(RUNS / f"curve_bands.{name}.jsonl", "method", "seed")


def run(count: int) -> None:
    """Every missing run, all methods on a seed before the next."""
    for seed in range(count):
        for name in POOLS:
            for method in NAMES:
                if (method, seed) not in runs_of(name).done():
                    runs_of(name).add(one_run(name, method, seed))


# ---------------------------------------------------------------- tables


def rows_of(name: str) -> Iterator[Row]:
    """A row for each method, kind and threshold: coverage and mean width over the runs."""
    done = runs_of(name).read()
    for method in NAMES:
        mine = [run for run in done if run["method"] == method]
        if not mine:
            continue
        for kind in KINDS:
            intervals = np.array([run[kind] for run in mine], np.float64)  # (runs, thresholds, 3)
            for index, threshold in enumerate(grid_of(name)):
                truth = truths(name, threshold)[kind]
                yield _row(name, method, kind, f"{threshold:.6g}", truth, intervals[:, index])
        if method != "assured":
            yield _row_of_band(name, method, mine)


def _row(name: str, method: str, kind: str, at: str, truth: float, intervals: Array) -> Row:
    defined = intervals[~np.isnan(intervals).any(1)]
    covered = (defined[:, 1] <= truth + 1e-9) & (truth - 1e-9 <= defined[:, 2])
    return {
        "pool": name,
        "method": method,
        "curve": kind,
        "threshold": at,
        "truth": round(truth, 5),
        "runs": len(intervals),
        "undefined": len(intervals) - len(defined),
        "mean": round(float(defined[:, 0].mean()), 5) if len(defined) else None,
        "coverage": round(float(covered.mean()), 4) if len(defined) else None,
        "width": round(float((defined[:, 2] - defined[:, 1]).mean()), 5) if len(defined) else None,
    }


def _row_of_band(name: str, method: str, mine: list[Row]) -> Row:
    """Coverage and width of the paper's band over all its ranks and runs."""
    named, pool = known(name)
    metric = metric_set([f"precision[{POOLS[name]}]"], pool)[0]
    covered, widths = [], []
    for run in mine:
        rank, _, low, high = (np.asarray(column) for column in run[BAND])
        order = np.empty(len(pool), np.int64)
        order[ranked(pool, metric, run["seed"])[0] - 1] = np.arange(len(pool))
        truth = np.cumsum(named.truth[order] == metric.classes[0])[rank - 1] / rank
        covered += ((low <= truth + 1e-9) & (truth - 1e-9 <= high)).tolist()
        widths += (high - low).tolist()
    share, width = float(np.mean(covered)), float(np.mean(widths))
    same = {"pool": name, "method": method, "curve": BAND, "threshold": "", "truth": None, "runs": len(mine)}
    return same | {"undefined": 0, "mean": None, "coverage": round(share, 4), "width": round(width, 5)}


def table(rows: list[dict[str, str]]) -> str:
    """Coverage (mean and least over the thresholds) and mean width of each band."""
    head = "pool", "curve", *(f"`{name}`: coverage (least), width" for name in NAMES)
    lines = []
    for pool in POOLS:
        for kind in (*KINDS, BAND):
            cells = []
            for method in NAMES:
                mine = [row for row in rows if (row["pool"], row["method"], row["curve"]) == (pool, method, kind)]
                mine = [row for row in mine if row["coverage"]]
                covered, widths = ([float(row[name]) for row in mine] for name in ("coverage", "width"))
                least = f" ({min(covered):.2f})" if len(covered) > 1 else ""
                cells.append(f"{np.mean(covered):.2f}{least}, {np.mean(widths):.3f}" if mine else "–")
            if any(cell != "–" for cell in cells):
                lines.append([pool, kind, *cells])
    return markdown(head, lines)


def draw(name: str = "employment-ma", seed: int = 0) -> None:
    """Both curves of one run of each method, with their bands and the truth."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    runs = {run["method"]: run for run in runs_of(name).read() if run["seed"] == seed}
    if len(runs) < len(NAMES):
        return
    truth = {kind: np.array([truths(name, t)[kind] for t in grid_of(name)]) for kind in KINDS}
    figure, axes = pyplot.subplots(2, len(NAMES), figsize=(10, 6.4), sharey="row")
    for column, method in enumerate(NAMES):
        curves = {kind: np.array(runs[method][kind], np.float64) for kind in KINDS}
        top, bottom = axes[0, column], axes[1, column]
        recall = curves["recall"][:, 0]
        order = np.argsort(recall)
        top.fill_between(recall[order], *curves["precision"][order, 1:].T, alpha=0.25)
        top.plot(recall[order], curves["precision"][order, 0], "o-", ms=3, label="estimate, 95 % band")
        top.plot(truth["recall"], truth["precision"], "k:", label="truth")
        top.set(title=method, xlabel="recall", ylim=(0, 1.03))
        false = 1 - curves["specificity"][:, 0]
        order = np.argsort(false)
        bottom.fill_between(false[order], *curves["recall"][order, 1:].T, alpha=0.25)
        bottom.plot(false[order], recall[order], "o-", ms=3)
        bottom.plot(1 - truth["specificity"], truth["recall"], "k:")
        bottom.set(xlabel="false positive rate", ylim=(0, 1.03))
    axes[0, 0].set_ylabel("precision")
    axes[1, 0].set_ylabel("recall")
    axes[0, 0].legend(fontsize=8, frameon=False, loc="lower left")
    figure.suptitle(f"{name}, class {POOLS[name]}, {LABELS} labels", fontsize=10)
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=110)
    pyplot.close(figure)


def rewrite() -> None:
    """The table from the runs, the figure, and the page."""
    write_csv(TABLE, [row for name in POOLS for row in rows_of(name)])
    draw()
    rewrite_page(DOCS / "methods.md", {"curve bands": table(read_csv(TABLE))})


def main() -> None:
    parser = argparse.ArgumentParser(description="Curves with bands from three methods.")
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    if options.what == "run":
        run(options.runs)
    else:
        rewrite()


if __name__ == "__main__":
    main()
