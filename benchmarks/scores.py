"""Metrics of scores and gaps between groups: coverage, width and label value of `assured` against random sampling.

python -m benchmarks.scores run --runs 40          # resumable; goes on where it stopped
python -m benchmarks.scores run --runs 300 --method tradition --pool employment-ma    # random sampling alone is quick
python -m benchmarks.scores design --runs 2        # label values by the variance of the design
python -m benchmarks.scores table                  # benchmarks/results/scores*.csv, docs/scores.md and its figure

Every metric is asked alone, so that the draws follow it. Random sampling is `tradition`, with as many labels.
Mean squared errors of a few runs are known to a factor of two. With the truth of a pool known, the variance of a
metric to first order given the design of a run is exact, and a run or two tell (`design_variance.py`, with
e_i = D_i(y_i) - E_f D_i, D at the truth).
"""

from __future__ import annotations

import argparse
import functools
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from altmas.history import History
from altmas.methods import Assured, Method, Tradition
from altmas.methods.assured.estimator import EVERY
from altmas.methods.assured.fitted_weight import supposed
from altmas.methods.assured.parts import by_fold
from altmas.metrics import LabelWeights, metric_set, truth_values
from altmas.pool import Pool
from altmas.simulate import label_until, label_value
from altmas.task import Task
from altmas.types import Array
from benchmarks.data import NamedPool, data_folder, load, named_pool, read_npz
from benchmarks.design_variance import estimator_of, of_design, of_random_sample
from benchmarks.store import RESULTS, RUNS, Row, Runs, read_numbers, write_csv
from benchmarks.tables import DOCS, markdown, rewrite_page

BUDGETS: Final = (100, 200, 400)
BATCH: Final = 20
SCORES: Final = ("roc_auc", "average_precision", "log_loss", "brier")
GAP: Final = "recall[>50K]@female=1 - recall[>50K]@female=0"
METHODS: Final[dict[str, Method]] = {"assured": Assured(), "tradition": Tradition()}
FILE: Final = RUNS / "scores.jsonl"
DESIGNS: Final = RUNS / "scores_design.jsonl"
TABLE: Final = RESULTS / "scores.csv"
DESIGN_TABLE: Final = RESULTS / "scores_design.csv"
DESIGN_COLUMNS: Final = ("label_value", "least", "by_belief", "by_draws")


def civil_comments(model: str) -> Callable[[], NamedPool]:
    """One of the nine models; its score is the probability of toxic."""

    def loader() -> NamedPool:
        arrays = _arrays("models-civilcomments", "model_scores", "models", "y")
        score = arrays["model_scores"][:, arrays["models"].tolist().index(model)].astype(np.float64)
        both = {"a": (score >= 0.5).astype(int), "y": arrays["y"], "scores": np.column_stack([1 - score, score])}
        return named_pool(f"civilcomments {model}", both, ["fine", "toxic"])

    return loader


def time_elec() -> NamedPool:
    """Prices of electricity, up or down."""
    return named_pool("time-elec", _arrays("time-elec", "a", "y", "scores", "X"), ["down", "up"])


def adult() -> NamedPool:
    """Incomes judged by a language model, by sex."""
    arrays = _arrays("groups-adult", "a", "y", "X", "sex", "sex_names")
    female = arrays["sex"] == [name.lower() for name in arrays["sex_names"].tolist()].index("female")
    return named_pool("groups-adult", arrays, ["<=50K", ">50K"], {"female": female})


def _arrays(name: str, *needed: str) -> dict[str, np.ndarray]:
    folder = data_folder()
    file = (folder or Path("ALTMAS_DATA")) / name / "pool.npz"
    return read_npz(file, "set ALTMAS_DATA to the folder that holds it", *needed)


POOLS: Final[dict[str, Callable[[], NamedPool]]] = {
    "civilcomments ERM": civil_comments("ERM"),
    "civilcomments IRM": civil_comments("IRM"),
    "civilcomments CORAL": civil_comments("CORAL"),
    "20news": lambda: load("20news"),
    "employment-ma": lambda: load("employment-ma"),
    "abt-buy-svm": lambda: load("abt-buy-svm"),
    "time-elec": time_elec,
    "groups-adult": adult,
}


def metrics_of(name: str) -> tuple[str, ...]:
    """The metrics asked for on a pool."""
    return (GAP,) if name == "groups-adult" else SCORES


# ---------------------------------------------------------------- runs


@functools.cache
def loaded(name: str) -> tuple[NamedPool, Pool]:
    """A pool with its truth, and what a session may see of it: one object, so that its views are computed once."""
    named = POOLS[name]()
    return named, named.pool()


def runs_of(
    pool_name: str, repeats: int, metrics: tuple[str, ...], methods: tuple[str, ...] = tuple(METHODS)
) -> Iterator[Row]:
    """The runs of a pool that are not done yet, one after another."""
    done = Runs(FILE, "pool", "metric", "method", "seed").done()
    missing = [
        (metric, method, seed) for seed in range(repeats) for metric in metrics for method in methods
        if (pool_name, metric, method, seed) not in done
    ]  # fmt: skip
    if not missing:
        return
    named, pool = loaded(pool_name)
    for metric, method, seed in missing:
        task = Task(pool, metric_set(metric, pool), seed=seed)
        (exact,) = truth_values(pool, named.truth, task.metrics).values()
        history, rows, started = History(len(pool)), [], time.perf_counter()
        for labels in BUDGETS:
            history = label_until(METHODS[method], task, history, labels, BATCH, named.truth.__getitem__)
            estimate = METHODS[method].estimate(task, history)[0]
            rows.append({"labels": labels, "value": estimate.value, "low": estimate.low, "high": estimate.high})
        yield {
            "pool": pool_name,
            "metric": metric,
            "method": method,
            "seed": seed,
            "truth": exact,
            "at": rows,
            "seconds": time.perf_counter() - started,
        }


def run(repeats: int, pools: list[str], metrics: list[str], methods: list[str]) -> None:
    """Run what is missing; seed by seed, so that an interrupted benchmark has as many runs everywhere."""
    store = Runs(FILE, "pool", "metric", "method", "seed")
    for upto in range(1, repeats + 1):
        for name in pools or POOLS:
            for row in runs_of(name, upto, tuple(metrics) or metrics_of(name), tuple(methods or METHODS)):
                store.add(row)


# ---------------------------------------------------------------- by the variance of the design


def variances(task: Task, history: History, truth: Array) -> dict[str, float]:
    """Variances to first order of the metric of a task: of a random sample, of the design, of uniform draws with its
    belief.
    """
    pool, metric, method = task.pool, task.metrics[0], Assured()
    points, whole = np.arange(len(pool)), np.ones(len(pool), np.bool_)
    items = metric.at(pool, LabelWeights.of_truth(truth, len(pool.classes), whole))[1]
    at_truth = items.at(points, truth)
    estimator = estimator_of(method, task, history)
    means = [items.moments(part.belief)[0] for part in estimator.parts]
    if metric.about.fitted:
        means = supposed(items, estimator.parts, history.known, estimator.weight)
    residuals = [at_truth - mean for mean in means]
    uniform = sum(
        of_random_sample((by_fold(share, sample.folds, EVERY) * residual)[sample.stage.population], len(sample.rows))
        for share, sample, residual in zip(estimator.shares, estimator.samples, residuals, strict=True)
    )
    random = of_random_sample(at_truth + items.constant(), len(history.labels))
    return {"random": random, "design": of_design(estimator, residuals), "uniform": float(uniform)}


def design_runs(repeats: int, pools: list[str], metrics: list[str]) -> None:
    """Run what is missing of the designs, seed by seed."""
    store = Runs(DESIGNS, "pool", "metric", "seed")
    done = store.done()
    for seed in range(repeats):
        for name in pools or [name for name in POOLS if metrics_of(name) == SCORES]:
            for metric in metrics or SCORES:
                if (name, metric, seed) not in done:
                    named, pool = loaded(name)
                    task = Task(pool, metric_set(metric, pool), seed=seed)
                    until = (Assured(), task, History(len(pool)), BUDGETS[-1], BATCH, named.truth.__getitem__)
                    row = variances(task, label_until(*until), named.truth)
                    store.add({"pool": name, "metric": metric, "seed": seed, **row})


def design_summary() -> list[Row]:
    """One row for each pool and metric: geometric means over the runs."""
    by_cell: dict[tuple[str, str], list[Row]] = {}
    for run in Runs(DESIGNS).read():
        by_cell.setdefault((run["pool"], run["metric"]), []).append(run)
    in_order = sorted(by_cell.items(), key=lambda entry: (list(POOLS).index(entry[0][0]), entry[0][1]))
    return [
        {"pool": pool, "metric": metric, "labels": BUDGETS[-1], "runs": len(mine)}
        | {"label_value": _ratio(mine, "random", "design"), "least": min(run["random"] / run["design"] for run in mine)}
        | {"by_belief": _ratio(mine, "random", "uniform"), "by_draws": _ratio(mine, "uniform", "design")}
        | {"random_error": math.sqrt(mine[0]["random"])}
        for (pool, metric), mine in in_order
    ]


def _with_earlier_designs(rows: list[Row], earlier: list[Row]) -> list[Row]:
    """The rows of the table, in their order, with these in place of those that rest on fewer runs."""
    by_cell = {(row["pool"], row["metric"]): row for row in earlier}
    for row in rows:
        before = by_cell.get((row["pool"], row["metric"]))
        if before is None or row["runs"] >= before["runs"]:
            by_cell[row["pool"], row["metric"]] = row
    return list(by_cell.values())


def _ratio(runs: list[Row], above: str, below: str) -> float:
    return math.exp(float(np.mean([math.log(run[above] / run[below]) for run in runs])))


def _design_table(rows: list[Row]) -> str:
    head = ("pool", "metric", "runs", "label value", "least of the runs", "by the belief", "by the draws")
    lines = [(row["pool"], row["metric"], row["runs"], *(f"{row[key]:.2f}" for key in DESIGN_COLUMNS)) for row in rows]
    return markdown(head, lines)


# ---------------------------------------------------------------- table


def summary() -> list[Row]:
    """One row for each pool, metric and number of labels."""
    by_cell: dict[tuple[str, str, str, int], list[Row]] = {}
    for run in Runs(FILE).read():
        for at in run["at"]:
            key = (run["pool"], run["metric"], run["method"], at["labels"])
            by_cell.setdefault(key, []).append(at | {"truth": run["truth"]})
    rows = []
    for (pool, metric, method, labels), mine in by_cell.items():
        random = by_cell.get((pool, metric, "tradition", labels), [])
        if method != "assured" or not random:
            continue
        worth = label_value(_squares(mine), _squares(random))
        rows.append(
            {"pool": pool, "metric": metric, "labels": labels, "runs": len(mine), "truth": mine[0]["truth"]}
            | {"bias": float(np.nanmean([row["value"] - row["truth"] for row in mine]))}
            | {"rmse": float(np.sqrt(_squares(mine).mean())), "coverage": _coverage(mine), "width": _width(mine)}
            | {"random_rmse": float(np.sqrt(_squares(random).mean())), "random_coverage": _coverage(random)}
            | {"random_width": _width(random)}
            | dict(zip(("label_value", "label_value_low", "label_value_high"), worth, strict=True))
            | {"random_runs": len(random)}
        )
    return rows


def _random_runs(row: Row) -> Row:
    """Tables of earlier versions do not have it: as many as of `assured`."""
    return {"random_runs": row.get("random_runs", row["runs"])}


def with_earlier(rows: list[Row], earlier: list[Row]) -> list[Row]:
    """These rows, and those of the table for cells that have no runs here or had more."""
    before = {(row["pool"], row["metric"], row["labels"]): row | _random_runs(row) for row in earlier}
    for row in rows:
        key = row["pool"], row["metric"], row["labels"]
        if key not in before or row["runs"] >= before[key]["runs"] or row["random_runs"] > before[key]["random_runs"]:
            before[key] = row
    return list(before.values())


def _squares(rows: list[Row]) -> np.ndarray:
    errors = np.array([row["value"] - row["truth"] for row in rows])
    return np.asarray(errors[np.isfinite(errors)] ** 2)


def _coverage(rows: list[Row]) -> float:
    """Share of the intervals that hold the truth; runs without an interval are left out."""
    held = [row["low"] <= row["truth"] <= row["high"] for row in rows if math.isfinite(row["low"])]
    return float(np.mean(held)) if held else math.nan


def _width(rows: list[Row]) -> float:
    widths = [row["high"] - row["low"] for row in rows if math.isfinite(row["low"])]
    return float(np.mean(widths)) if widths else math.nan


# ---------------------------------------------------------------- page


def write(rows: list[Row]) -> None:
    """The table, the tables of the page and its figure."""
    designs = _with_earlier_designs(design_summary(), read_numbers(DESIGN_TABLE))
    write_csv(DESIGN_TABLE, ({key: _rounded(value) for key, value in row.items()} for row in designs))
    write_csv(TABLE, ({key: _rounded(value) for key, value in row.items()} for row in rows))
    tables = {"scores": _table(rows, SCORES), "gap": _table(rows, (GAP,)), "all": _words(rows)}
    rewrite_page(DOCS / "scores.md", tables | {"design": _design_table(designs)})
    _figure([row for row in rows if row["labels"] == BUDGETS[-1]])


def _rounded(value: object) -> object:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _table(rows: list[Row], metrics: tuple[str, ...]) -> str:
    head = ("pool", "metric (truth)", "labels", "runs, random", "coverage", "width", "RMSE")
    lines = [
        (
            row["pool"],
            f"{row['metric'].replace('|', '')} ({row['truth']:.3f})",
            row["labels"],
            f"{row['runs']}, {row['random_runs']}",
            f"{row['coverage']:.2f}",
            f"{row['width']:.3f}",
            f"{row['rmse']:.4f}",
            f"{row['random_coverage']:.2f}, {row['random_width']:.3f}, {row['random_rmse']:.4f}",
            f"{row['label_value']:.2f} [{row['label_value_low']:.2f}, {row['label_value_high']:.2f}]",
        )
        for row in sorted(rows, key=lambda row: metrics.index(row["metric"]) if row["metric"] in metrics else -1)
        if row["metric"] in metrics
    ]
    return markdown((*head, "random: coverage, width, RMSE", "label value"), lines)


def _words(rows: list[Row]) -> str:
    """Means over all cells, and the cells whose coverage is below 0.93 by more than two standard errors."""
    scored = [row for row in rows if row["metric"] in SCORES]
    low = [row for row in scored if row["coverage"] < 0.93 - 2 * math.sqrt(0.93 * 0.07 / row["runs"])]
    runs = sorted({row["runs"] for row in rows})
    lines = [
        f"- {runs[0]} to {runs[-1]} runs a cell, {len(scored)} cells of scores.",
        f"- Mean coverage {np.nanmean([row['coverage'] for row in scored]):.3f} (random sampling "
        f"{np.nanmean([row['random_coverage'] for row in scored]):.3f}). Cells below 0.93 by more than two standard "
        f"errors: {len(low)}" + "".join(f"; {row['pool']}, {row['metric']}, {row['labels']}" for row in low) + ".",
    ]
    for metric in SCORES:
        at = [row for row in scored if row["metric"] == metric and row["labels"] == BUDGETS[-1]]
        worth = math.exp(np.mean([math.log(min(row["label_value"], 100.0)) for row in at]))
        above = sum(row["label_value"] > 1.2 for row in at)
        lines.append(
            f"- {metric} at {BUDGETS[-1]} labels: one label is worth {worth:.2f} random ones (geometric mean over the "
            f"pools), more than 1.2 on {above} of {len(at)}, least {min(row['label_value'] for row in at):.2f}."
        )
    return "\n".join(lines)


def _figure(rows: list[Row]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    pools = list(dict.fromkeys(row["pool"] for row in rows))
    for index, metric in enumerate([*SCORES, GAP]):
        mine = [row for row in rows if row["metric"] == metric]
        at = [pools.index(row["pool"]) + (index - 1.5) * 0.15 for row in mine]
        value = np.array([row["label_value"] for row in mine])
        ends = np.array([[row["label_value_low"], row["label_value_high"]] for row in mine]).reshape(-1, 2)
        name = "recall, women - men" if metric == GAP else metric
        axes.errorbar(value, at, xerr=[value - ends[:, 0], ends[:, 1] - value], fmt="o", ms=4, lw=1, label=name)
    axes.axvline(1.0, color="0.4", lw=1, ls=":")
    axes.set(xscale="log", xlabel=f"random labels that one label is worth, at {BUDGETS[-1]} labels (90 % interval)")
    axes.set_yticks(range(len(pools)), pools)
    axes.invert_yaxis()
    axes.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(RESULTS / "scores.png", dpi=130)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "design", "table"])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--pool", action="append", default=[], choices=list(POOLS))
    parser.add_argument("--metric", action="append", default=[])
    parser.add_argument("--method", action="append", default=[], choices=list(METHODS))
    options = parser.parse_args()
    if options.what == "run":
        run(options.runs, options.pool, options.metric, options.method)
    elif options.what == "design":
        design_runs(options.runs, options.pool, options.metric)
    else:
        write(with_earlier(summary(), read_numbers(TABLE)))


if __name__ == "__main__":
    main()
