"""`ssme-lite` beside `assured` on the same comments: its error, and how often its intervals hold.

python -m benchmarks.ssme run --runs 20            # needs ssme-lite; goes on where it was stopped
python -m benchmarks.ssme table                    # benchmarks/results/scores_ssme.csv and its table in docs/scores.md

1,000 random comments of CivilComments with the scores of three models and the labels of a random 100 of them: what the
package's own tutorial does with 1,000 unlabelled ones. `assured` chooses its 100 labels, each metric asked alone.
"""

from __future__ import annotations

import math
import time
from importlib import import_module
from typing import Final

import numpy as np

from altmas.history import History
from altmas.methods import Assured
from altmas.metrics import metric_set, truth_values
from altmas.pool import Pool
from altmas.simulate import label_until
from altmas.task import Task
from benchmarks.scores import _arrays
from benchmarks.store import RESULTS, RUNS, Row, Runs, run_or_table, write_csv
from benchmarks.tables import DOCS, markdown, rewrite_page

MODELS: Final = ("ERM", "IRM", "CORAL")
METRICS: Final = {"accuracy": "accuracy", "auc": "roc_auc", "auprc": "average_precision"}
ITEMS, LABELS = 1000, 100
FILE: Final = RUNS / "scores_ssme.jsonl"


def one_run(seed: int) -> Row:
    """Both methods on a random part of the comments."""
    arrays = _arrays("models-civilcomments", "model_scores", "models", "y")
    rng = np.random.default_rng([seed, 33])
    rows = rng.choice(len(arrays["y"]), ITEMS, replace=False)
    columns = [arrays["models"].tolist().index(name) for name in MODELS]
    scores, truth = arrays["model_scores"][rows][:, columns].astype(np.float64), arrays["y"][rows].astype(np.int64)
    started = time.process_time()
    by_cell = _by_package(scores, truth, rng.choice(ITEMS, LABELS, replace=False), seed)
    seconds = time.process_time() - started
    for column, model in enumerate(MODELS):
        own = np.column_stack([1 - scores[:, column], scores[:, column]])
        pool = Pool(None, np.array(["fine", "toxic"])[own.argmax(1)], scores=own, classes=["fine", "toxic"])
        for metric in METRICS.values():
            task = Task(pool, metric_set(metric, pool), seed=seed)
            history = label_until(Assured(), task, History(ITEMS), LABELS, 20, truth.__getitem__)
            (estimate,) = Assured().estimate(task, history)
            (exact,) = truth_values(pool, truth, task.metrics).values()
            interval = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
            by_cell[model, metric] |= {"true": exact, **interval}
    at = [{"model": model, "metric": metric} | row for (model, metric), row in by_cell.items()]
    return {"seed": seed, "seconds": seconds, "at": at}


def _by_package(scores: np.ndarray, truth: np.ndarray, labelled: np.ndarray, seed: int) -> dict[tuple[str, str], Row]:
    package = import_module("ssme_lite")
    partial = np.full(len(truth), -1)
    partial[labelled] = truth[labelled]
    fitted = package.SSMEEstimator(max_iter=100, random_state=seed).fit(scores, partial, model_names=list(MODELS))
    table = fitted.report(metrics=tuple(METRICS), n_draws=200).table
    by_cell = {}
    for _, row in table.iterrows():
        ends = {"ssme_value": row["estimate"], "ssme_low": row["interval_low"], "ssme_high": row["interval_high"]}
        by_cell[str(row["model"]), METRICS[str(row["metric"])]] = {name: float(value) for name, value in ends.items()}
    return by_cell


def run(runs: int) -> None:
    """Make the runs that are missing, seed by seed."""
    store = Runs(FILE, "seed")
    for seed in range(runs):
        if seed not in store.done():
            store.add(one_run(seed))


def summary() -> list[Row]:
    """One row for each model and metric."""
    by_cell: dict[tuple[str, str], list[Row]] = {}
    for run in Runs(FILE).read():
        for row in run["at"]:
            by_cell.setdefault((row["model"], row["metric"]), []).append(row)
    rows = []
    for (model, metric), mine in by_cell.items():
        figures: Row = {"model": model, "metric": metric, "runs": len(mine)}
        for name, lead in (("assured", ""), ("ssme", "ssme_")):
            errors = np.array([row[f"{lead}value"] - row["true"] for row in mine])
            held = [row[f"{lead}low"] <= row["true"] <= row[f"{lead}high"] for row in mine]
            width = np.mean([row[f"{lead}high"] - row[f"{lead}low"] for row in mine])
            measured = {"rmse": math.sqrt(float((errors**2).mean())), "bias": float(errors.mean())}
            measured |= {"coverage": float(np.mean(held)), "width": float(width)}
            figures |= {f"{name}_{what}": float(f"{value:.4g}") for what, value in measured.items()}
        rows.append(figures)
    return rows


def write(rows: list[Row]) -> None:
    """The CSV and the table of the page; nothing without runs."""
    if not rows:
        print("no runs: nothing was written")
        return
    write_csv(RESULTS / "scores_ssme.csv", rows)
    head = ("model", "metric", "runs", "assured: RMSE, bias, coverage, width", "ssme-lite: RMSE, bias, coverage, width")
    lines = [
        (row["model"], row["metric"], row["runs"], *(
            f"{row[f'{name}_rmse']:.3f}, {row[f'{name}_bias']:+.3f}, {row[f'{name}_coverage']:.2f}, "
            f"{row[f'{name}_width']:.3f}" for name in ("assured", "ssme")))
        for row in rows
    ]  # fmt: skip
    held = {name: np.mean([row[f"{name}_coverage"] for row in rows]) for name in ("assured", "ssme")}
    words = f"Intervals held in {held['assured']:.2f} of all cases (`assured`) and {held['ssme']:.2f} (`ssme-lite`)."
    rewrite_page(DOCS / "scores.md", {"ssme": f"{markdown(head, lines)}\n\n{words}"})


if __name__ == "__main__":
    run_or_table(__doc__, run, lambda: write(summary()), runs=20)
