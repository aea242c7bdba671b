"""Verdicts and grades with LLM judges: `assured` beside a random sample and beside packages made for judges.

python -m benchmarks.judges run --runs 100         # resumable; needs judgy, truescore and cje-eval for their rows
python -m benchmarks.judges table                  # benchmarks/results/judges.csv, docs/judges-benchmark.md, its figure

Every metric is asked alone. All methods but `assured` get the labels of one random sample, the same for all of them.
Every metric here is a mean of v[true class] over the pool, so the squared error of a random sample is known exactly,
and with the truth known so is the variance of each estimate given what it was made of (its draws, beliefs or fits).
"""

from __future__ import annotations

import argparse
import functools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from altmas.history import History
from altmas.intervals import normal_quantile
from altmas.methods import Assured, Tradition
from altmas.metrics import metric_set
from altmas.pool import Pool
from altmas.simulate import label_until
from altmas.task import Task
from altmas.types import Array
from benchmarks.data import data_folder, read_npz
from benchmarks.design_variance import estimator_of, of_design
from benchmarks.store import BEFORE, RESULTS, RUNS, Row, Runs, version_of, write_csv
from benchmarks.tables import DOCS, markdown, rewrite_page

BUDGETS: Final = (100, 200)
BATCH: Final = 20
FILE: Final = RUNS / "judges.jsonl"
PAGE: Final = DOCS / "judges-benchmark.md"
ASPECTS: Final = ("coherence", "consistency", "fluency", "relevance")
BATTLES: Final = ("vicuna-13b", "gpt-4", "koala-13b")
VERDICTS: Final = ("a", "b", "tie", "both bad")
WIN: Final = "share[a] - share[b]"
FOLDS: Final = 10


@dataclass(frozen=True)
class Judged:
    """Answers of judges (N, K) and the truth (N,), both as codes into the classes."""

    classes: tuple[str, ...]
    judges: dict[str, Array]
    truth: Array

    def pool(self) -> Pool:
        """What a session may see: everything but the truth."""
        names = np.array(self.classes, object)
        return Pool(None, {name: names[codes] for name, codes in self.judges.items()}, classes=list(self.classes))


# ---------------------------------------------------------------- pools


def framing() -> Judged:
    """Yes or no questions about articles; the truth is the majority of three people."""
    arrays = _arrays("judge-framing", "judges", "judge_names", "y")
    return _judged(("no", "yes"), arrays["judges"], arrays["judge_names"], arrays["y"])


def summeval(aspect: int) -> Judged:
    """Summaries with grades from 1 to 5; the truth is the mean of three experts, rounded (it is never half-way)."""
    arrays = _arrays("judge-summeval", "judges", "judge_names", "y")
    return _judged(
        _grades(), arrays["judges"][:, aspect] - 1, arrays["judge_names"], np.rint(arrays["y"][:, aspect]) - 1
    )


def stars() -> Judged:
    """Reviews with one to five stars; the truth is the (lower) median of three or four people."""
    arrays = _arrays("judge-stars", "judges", "judge_names", "y_median")
    return _judged(_grades(), arrays["judges"] - 1, arrays["judge_names"], arrays["y_median"] - 1)


def battles(model: str) -> Judged:
    """The battles of one model against all others, turned so that it is a."""
    arrays = _arrays("arena-battles", "judges", "y", "model_a", "model_b", "models")
    code = arrays["models"].tolist().index(model)
    first, second = arrays["model_a"] == code, arrays["model_b"] == code
    rows, turned = np.flatnonzero(first | second), np.array([1, 0, 2, 3])
    swap = second[rows]
    judges = np.where(swap[:, None], turned[arrays["judges"][rows]], arrays["judges"][rows])
    truth = np.where(swap, turned[arrays["y"][rows]], arrays["y"][rows])
    return _judged(VERDICTS, judges, ["gpt-4-0125", "claude-3-opus", "gpt-3.5-turbo"], truth)


def _grades() -> tuple[str, ...]:
    return tuple(str(grade) for grade in range(1, 6))


def _judged(classes: tuple[str, ...], judges: Array, names: Any, truth: Array) -> Judged:
    answers = {str(name): judges[:, column].astype(np.int64) for column, name in enumerate(names)}
    return Judged(classes, answers, truth.astype(np.int64))


def _arrays(name: str, *needed: str) -> dict[str, np.ndarray]:
    file = (data_folder() or Path("ALTMAS_DATA")) / name / "pool.npz"
    return read_npz(file, "set ALTMAS_DATA to the folder that holds it", *needed)


POOLS: Final[dict[str, Callable[[], Judged]]] = {
    "framing": framing,
    **{f"summeval {aspect}": functools.partial(summeval, index) for index, aspect in enumerate(ASPECTS)},
    "stars": stars,
    **{f"arena {model}": functools.partial(battles, model) for model in BATTLES},
}


def metrics_of(name: str) -> tuple[str, ...]:
    """The metrics asked for on a pool."""
    return ("share[yes]",) if name == "framing" else (WIN,) if name.startswith("arena") else ("mean", "share[>=4]")


def class_values(metric: str) -> Array:
    """(C,) v: the metric is the mean of v[true class]."""
    by_metric = {
        "share[yes]": (0, 1),
        WIN: (1, -1, 0, 0),
        "mean": (1, 2, 3, 4, 5),
        "share[>=4]": (0, 0, 0, 1, 1),
    }
    return np.array(by_metric[metric], np.float64)


# ---------------------------------------------------------------- rivals: a random sample `rows` of the values y

Estimated = tuple[float, float, float, float]
"""value, low, high, variance given the fit (nan where it is not known)."""


def prediction_powered(judges: Array, y: Array, rows: Array) -> Estimated:
    """PPI++ with the first judge, for a finite pool: mean of l f + mean over labels of (y - l f), l the slope."""
    judge, n, size = judges[:, 0], len(rows), len(y)
    spread = float(judge[rows].var())
    slope = float(np.cov(judge[rows], y[rows], ddof=0)[0, 1]) / spread if spread > 0 else 0.0
    left = y - slope * judge
    scale = 1 / n - 1 / size
    return _normal(slope * judge.mean() + left[rows].mean(), left[rows].var(ddof=1) * scale, left.var() * scale)


def regression(judges: Array, y: Array, rows: Array) -> Estimated:
    """Ridge regression on all judges, cross-fitted: mean of its answers + mean of residuals that it did not see."""
    scale = judges.std(0)
    x = np.column_stack([np.ones(len(y)), (judges - judges.mean(0)) / np.where(scale > 0, scale, 1.0)])
    folds = np.arange(len(rows)) % FOLDS
    value, residuals, variance = 0.0, np.empty(len(rows)), 0.0
    ridge = np.diag([0.0] + [1.0] * judges.shape[1])
    for fold in range(FOLDS):
        train, test = rows[folds != fold], rows[folds == fold]
        answers = x @ np.linalg.solve(x[train].T @ x[train] + ridge, x[train].T @ y[train])
        residuals[folds == fold] = y[test] - answers[test]
        value += float(answers.mean()) * len(test) / len(rows)
        variance += float((y - answers).var()) * len(test) / len(rows)
    scale_ = 1 / len(rows) - 1 / len(y)
    return _normal(value + residuals.mean(), residuals.var(ddof=1) * scale_, variance * scale_)


def _normal(value: float, variance: float, exact: float) -> Estimated:
    reach = normal_quantile(0.95) * math.sqrt(variance)
    return float(value), float(value - reach), float(value + reach), float(exact)


def judgy(judges: Array, y: Array, rows: Array) -> Estimated | None:
    """judgy 0.1: the first judge's verdicts corrected by its error rates; a bootstrap of 2,000 in place of 20,000."""
    package = import_module("judgy")

    if not set(np.unique(y)) <= {0.0, 1.0}:
        return None
    rest = np.setdiff1d(np.arange(len(y)), rows)
    arguments = y[rows].astype(int), judges[rows, 0].astype(int), judges[rest, 0].astype(int)
    try:
        result = package.estimate_success_rate(*arguments, bootstrap_iterations=2000)
    except (ValueError, RuntimeError):  # it refuses judges that look worse than chance
        return math.nan, math.nan, math.nan, math.nan
    return float(result[0]), float(result[1]), float(result[2]), math.nan


def truescore(judges: Array, y: Array, rows: Array) -> Estimated:
    """truescore 0.7, ppi_estimate with the first judge."""
    package = import_module("truescore")

    result = package.ppi_estimate(judges[:, 0], y[rows], rows)
    return float(result.point), float(result.low), float(result.high), math.nan


def cje(judges: Array, y: Array, rows: Array, *, all_judges: bool = False) -> Estimated:
    """cje-eval 0.9, calibrated_mean_ci with the first judge as the score, and the others as covariates if asked."""
    package = import_module("cje")

    low, size = float(y.min()), float(np.ptp(y))
    labels = np.full(len(y), np.nan)
    labels[rows] = (y[rows] - low) / size
    covariates = judges[:, 1:] if all_judges else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = package.calibrated_mean_ci(judges[:, 0], labels, covariates=covariates)
    value, ends = low + size * result.estimate, [low + size * end for end in result.ci]
    return float(value), float(ends[0]), float(ends[1]), math.nan


RIVALS: Final[dict[str, Callable[[Array, Array, Array], Estimated | None]]] = {
    "PPI++": prediction_powered,
    "regression": regression,
    "judgy": judgy,
    "truescore": truescore,
    "cje": cje,
    "cje, all judges": functools.partial(cje, all_judges=True),
}


# ---------------------------------------------------------------- runs


@functools.cache
def loaded(name: str) -> tuple[Judged, Pool]:
    """A pool with its truth, and what a session may see of it."""
    judged = POOLS[name]()
    return judged, judged.pool()


def one_run(name: str, metric: str, seed: int) -> Row:
    """All methods at all budgets."""
    judged, pool = loaded(name)
    values = class_values(metric)
    y = values[judged.truth]
    judges = np.column_stack([values[codes] for codes in judged.judges.values()])
    rows = [row for way in ("assured", "random") for row in of_sessions(pool, judged.truth, metric, values, seed, way)]
    order = np.random.default_rng([seed, 1]).permutation(len(y))
    for labels in BUDGETS:
        for method, rival in RIVALS.items():
            np.random.seed(seed)  # noqa: NPY002  (judgy draws from the global generator)
            if (estimate := rival(judges, y, order[:labels])) is not None:
                rows.append(_row(method, labels, *estimate))
    random = {str(labels): float(y.var() * (1 / labels - 1 / len(y))) for labels in BUDGETS}
    known = {"truth": float(y.mean()), "random": random, "version": version_of("assured")}
    return {"pool": name, "metric": metric, "seed": seed} | known | {"at": rows}


def _row(method: str, labels: int, value: float, low: float, high: float, variance: float) -> Row:
    return {"method": method, "labels": labels, "value": value, "low": low, "high": high, "variance": variance}


def of_sessions(pool: Pool, truth: Array, metric: str, values: Array, seed: int, way: str) -> Iterator[Row]:
    """`assured`, or the random sample with its usual interval (Wilson's for a share)."""
    task, history = Task(pool, metric_set(metric, pool), seed=seed), History(len(pool))
    method = Assured() if way == "assured" else Tradition()
    for labels in BUDGETS:
        history = label_until(method, task, history, labels, BATCH, truth.__getitem__)
        estimate = method.estimate(task, history)[0]
        exact = math.nan
        if isinstance(method, Assured):
            exact = variance_of_design(method, task, history, values[truth], values)
        yield _row(way, labels, estimate.value, estimate.low, estimate.high, exact)


def variance_of_design(method: Assured, task: Task, history: History, y: Array, values: Array) -> float:
    """Variance of the estimate of mean y given its draws."""
    estimator, points = estimator_of(method, task, history), np.arange(len(y))
    residuals = [y - sample.belief.rows(points) @ values for sample in estimator.samples]
    return of_design(estimator, residuals) / len(y) ** 2


def run(repeats: int, pools: list[str]) -> None:
    """Run what is missing; seed by seed, so that an interrupted benchmark has as many runs everywhere."""
    store = Runs(FILE, "pool", "metric", "seed")
    for seed in range(repeats):
        for name in pools or POOLS:
            for metric in metrics_of(name):
                if (name, metric, seed) not in store.done():
                    store.add(one_run(name, metric, seed))


# ---------------------------------------------------------------- table


def summary() -> list[Row]:
    """One row for each pool, metric, number of labels and method."""
    by_cell: dict[tuple[str, str, int, str], list[Row]] = {}
    for run in Runs(FILE).read():
        for at in run["at"]:
            key = (run["pool"], run["metric"], at["labels"], at["method"])
            known = {"truth": run["truth"], "random": run["random"][str(at["labels"])]}
            known["version"] = run.get("version", BEFORE) if at["method"] == "assured" else ""
            by_cell.setdefault(key, []).append(at | known)
    order = list(POOLS)
    keys = sorted(by_cell, key=lambda key: (order.index(key[0]), *key[1:3]))
    return [_summarised(*key, by_cell[key]) for key in keys]


def _summarised(pool: str, metric: str, labels: int, method: str, rows: list[Row]) -> Row:
    defined = [row for row in rows if math.isfinite(row["low"])]
    errors = np.array([row["value"] - row["truth"] for row in defined])
    square = float((errors**2).mean()) if defined else math.nan
    variance = float(np.mean([row["variance"] for row in defined])) if defined else math.nan
    covered = [row["low"] <= row["truth"] <= row["high"] for row in defined]
    random = rows[0]["random"]
    return {
        "pool": pool,
        "metric": metric,
        "labels": labels,
        "method": method,
        "version": " / ".join(sorted({row["version"] for row in rows})),
        "runs": len(rows),
        "refused": len(rows) - len(defined),
        "truth": rows[0]["truth"],
        "coverage": float(np.mean(covered)) if covered else math.nan,
        "width": float(np.mean([row["high"] - row["low"] for row in defined])) if defined else math.nan,
        "bias": float(errors.mean()) if defined else math.nan,
        "rmse": math.sqrt(square),
        "value_by_errors": random / square if square > 0 else math.nan,
        "value_by_variance": random / variance if variance > 0 else math.nan,
    }


Cell = tuple[str, str, int]


def cells_of(rows: list[Row]) -> dict[Cell, dict[str, Row]]:
    """{(pool, metric, labels): {method: its row}}"""
    cells: dict[Cell, dict[str, Row]] = {}
    for row in rows:
        cells.setdefault((row["pool"], row["metric"], row["labels"]), {})[row["method"]] = row
    return cells


# ---------------------------------------------------------------- page


def write(rows: list[Row]) -> None:
    """The table, the tables of the page and its figure; nothing without runs."""
    if not rows:
        print("no runs: nothing was written")
        return
    write_csv(RESULTS / "judges.csv", ({key: _rounded(value) for key, value in row.items()} for row in rows))
    cells = cells_of(rows)
    rewrite_page(PAGE, {"judges": words(cells), "intervals": interval_table(cells), "value": value_table(cells)})
    _figure(cells)


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else ""
    return value


def interval_table(cells: dict[Cell, dict[str, Row]]) -> str:
    """Coverage and width of every method."""
    methods = ["assured", "random", *RIVALS]
    lines = []
    for (pool, metric, labels), by_method in cells.items():
        entries = [_interval_cell(by_method.get(method)) for method in methods]
        lines.append((pool, f"{metric} ({by_method['assured']['truth']:.3f})", labels, *entries))
    return markdown(("pool", "metric (truth)", "labels", *methods), lines)


def _interval_cell(row: Row | None) -> str:
    if row is None or not math.isfinite(row["width"]):
        return "–"
    return f"{row['width']:.3f} ({row['coverage']:.2f})"


def value_table(cells: dict[Cell, dict[str, Row]]) -> str:
    """Random labels that one label is worth, by exact variances and by errors."""
    lines = []
    for (pool, metric, labels), by_method in cells.items():
        exact = [f"{by_method[name]['value_by_variance']:.2f}" for name in ("assured", "PPI++", "regression")]
        errors = [_number(by_method.get(name)) for name in ("assured", *RIVALS)]
        lines.append((pool, metric, labels, *exact, *errors))
    head = ("pool", "metric", "labels", "assured", "PPI++", "regression")
    return markdown((*head, *(f"{name} (errors)" for name in ("assured", *RIVALS))), lines)


def _number(row: Row | None) -> str:
    return "–" if row is None or not math.isfinite(row["value_by_errors"]) else f"{row['value_by_errors']:.2f}"


def words(cells: dict[Cell, dict[str, Row]]) -> str:
    """What the tables amount to."""
    ours = [by_method["assured"] for by_method in cells.values()]
    runs = [row["runs"] for row in ours]
    error = [math.sqrt(0.93 * 0.07 / row["runs"]) for row in ours]
    low = [row for row, se in zip(ours, error, strict=True) if row["coverage"] < 0.93 - 2 * se]
    lines = [
        f"- {min(runs)} to {max(runs)} runs a cell, {len(ours)} cells of pool, metric and number of labels.",
        f"- Mean coverage of `assured` {np.mean([row['coverage'] for row in ours]):.3f}, least "
        f"{min(row['coverage'] for row in ours):.2f}; cells below 0.93 by more than two standard errors: {len(low)}.",
    ]
    for method in ("random", "judgy", "truescore", "cje", "cje, all judges", "PPI++", "regression"):
        ratios = {
            key: by_method["assured"]["width"] / by_method[method]["width"]
            for key, by_method in cells.items()
            if method in by_method and math.isfinite(by_method[method]["width"])
        }
        widest, wider = max(ratios, key=lambda key: ratios[key]), sum(ratio > 1 for ratio in ratios.values())
        beside = [by_method[method]["coverage"] for by_method in cells.values() if method in by_method]
        lines.append(
            f"- Width over that of {method}: {_geometric(ratios.values()):.2f} (geometric mean), at most "
            f"{ratios[widest]:.2f} ({', '.join(map(str, widest))}); wider in {wider} of {len(ratios)} "
            f"cells. Its own mean coverage is {np.nanmean(beside):.3f}, least {np.nanmin(beside):.2f}."
        )
    for labels in BUDGETS:
        gains = [
            by_method["assured"]["value_by_variance"]
            / max(by_method[name]["value_by_variance"] for name in ("PPI++", "regression"))
            for (_, metric, at), by_method in cells.items()
            if metric == "mean" and at == labels
        ]
        lines.append(
            f"- Mean grade at {labels} labels: a label of `assured` is worth {_geometric(gains):.2f} times one of the "
            f"better of PPI++ and regression (exact variances, geometric mean over {len(gains)} pools, "
            f"{min(gains):.2f} to {max(gains):.2f})."
        )
    return "\n".join(lines)


def _geometric(values: Any) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def _figure(cells: dict[Cell, dict[str, Row]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5))
    keys = [key for key in cells if key[2] == BUDGETS[-1]]
    names = [f"{pool}: {metric}" for pool, metric, _ in keys]
    for method in ("assured", "PPI++", "regression"):
        left.plot([cells[key][method]["value_by_variance"] for key in keys], names, "o", ms=5, label=method)
    left.axvline(1.0, color="0.4", lw=1, ls=":")
    left.set(xscale="log", xlabel=f"random labels that one label is worth, at {BUDGETS[-1]} labels")
    for method in ("assured", "judgy", "truescore", "cje"):
        shown = [(cells[key][method]["width"] / cells[key]["random"]["width"], name)
                 for key, name in zip(keys, names, strict=True) if method in cells[key]]  # fmt: skip
        right.plot(*zip(*shown, strict=True), "o", ms=5, label=method)
    right.axvline(1.0, color="0.4", lw=1, ls=":")
    right.set(xlabel="width of the interval over that of a random sample")
    right.set_yticklabels([])
    for axes in (left, right):
        axes.invert_yaxis()
        axes.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(RESULTS / "judges.png", dpi=130)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--pool", action="append", default=[], choices=list(POOLS))
    options = parser.parse_args()
    if options.what == "run":
        run(options.runs, options.pool)
    else:
        write(summary())


if __name__ == "__main__":
    main()
