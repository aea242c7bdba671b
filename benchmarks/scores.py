"""Metrics of scores and gaps between groups: coverage, width and label value of `assured` against random sampling.

python -m benchmarks.scores run --runs 40          # resumable; goes on where it stopped
python -m benchmarks.scores table                  # benchmarks/results/scores.csv, docs/scores.md and its figure

Every metric is asked alone, so that the draws follow it. Random sampling is `tradition`, with as many labels.
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
from altmas.metrics import metric_set, truth_values
from altmas.pool import Pool
from altmas.simulate import label_until, label_value
from altmas.task import Task
from benchmarks.data import NamedPool, data_folder, load, named_pool, read_npz
from benchmarks.store import RUNS, Row, Runs

BUDGETS: Final = (100, 200, 400)
BATCH: Final = 20
SCORES: Final = ("roc_auc", "average_precision", "log_loss", "brier")
GAP: Final = "recall[>50K]@female=1 - recall[>50K]@female=0"
METHODS: Final[dict[str, Method]] = {"assured": Assured(), "tradition": Tradition()}
FILE: Final = RUNS / "scores.jsonl"


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
    place = (folder or Path("ALTMAS_DATA")) / name / "pool.npz"
    return read_npz(place, "set ALTMAS_DATA to the folder that holds it", *needed)


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


def runs_of(pool_name: str, repeats: int, metrics: tuple[str, ...]) -> Iterator[Row]:
    """The runs of a pool that are not done yet, one after another."""
    done = Runs(FILE, "pool", "metric", "method", "seed").done()
    wanted = [
        (metric, method, seed) for seed in range(repeats) for metric in metrics for method in METHODS
        if (pool_name, metric, method, seed) not in done
    ]  # fmt: skip
    if not wanted:
        return
    named, pool = loaded(pool_name)
    for metric, method, seed in wanted:
        task = Task(pool, metric_set(metric, pool), seed=seed)
        (exact,) = truth_values(pool, named.truth, task.metrics).values()
        history, rows, started = History(len(pool)), [], time.perf_counter()
        for labels in BUDGETS:
            history = label_until(METHODS[method], task, history, labels, BATCH, named.truth.__getitem__)
            one = METHODS[method].estimate(task, history)[0]
            rows.append({"labels": labels, "value": one.value, "low": one.low, "high": one.high})
        yield {
            "pool": pool_name,
            "metric": metric,
            "method": method,
            "seed": seed,
            "truth": exact,
            "at": rows,
            "seconds": time.perf_counter() - started,
        }


def run(repeats: int, pools: list[str], metrics: list[str]) -> None:
    """Run what is missing; seed by seed, so that an interrupted benchmark has as many runs everywhere."""
    store = Runs(FILE, "pool", "metric", "method", "seed")
    for upto in range(1, repeats + 1):
        for name in pools or POOLS:
            for row in runs_of(name, upto, tuple(metrics) or metrics_of(name)):
                store.add(row)


# ---------------------------------------------------------------- table


def summary() -> list[Row]:
    """One row for each pool, metric and number of labels."""
    found: dict[tuple[str, str, str, int], list[Row]] = {}
    for one in Runs(FILE).read():
        for at in one["at"]:
            key = (one["pool"], one["metric"], one["method"], at["labels"])
            found.setdefault(key, []).append(at | {"truth": one["truth"]})
    rows = []
    for (pool, metric, method, labels), mine in found.items():
        random = found.get((pool, metric, "tradition", labels), [])
        if method != "assured" or not random:
            continue
        worth = label_value(_squares(mine), _squares(random))
        rows.append(
            {"pool": pool, "metric": metric, "labels": labels, "runs": len(mine), "truth": mine[0]["truth"]}
            | {"bias": float(np.nanmean([one["value"] - one["truth"] for one in mine]))}
            | {"rmse": float(np.sqrt(_squares(mine).mean())), "coverage": _coverage(mine), "width": _width(mine)}
            | {"random_rmse": float(np.sqrt(_squares(random).mean())), "random_coverage": _coverage(random)}
            | {"random_width": _width(random)}
            | dict(zip(("label_value", "label_value_low", "label_value_high"), worth, strict=True))
        )
    return rows


def _squares(rows: list[Row]) -> np.ndarray:
    errors = np.array([one["value"] - one["truth"] for one in rows])
    return np.asarray(errors[np.isfinite(errors)] ** 2)


def _coverage(rows: list[Row]) -> float:
    """Share of the intervals that hold the truth; runs without an interval are left out."""
    held = [one["low"] <= one["truth"] <= one["high"] for one in rows if math.isfinite(one["low"])]
    return float(np.mean(held)) if held else math.nan


def _width(rows: list[Row]) -> float:
    widths = [one["high"] - one["low"] for one in rows if math.isfinite(one["low"])]
    return float(np.mean(widths)) if widths else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--pool", action="append", default=[], choices=list(POOLS))
    parser.add_argument("--metric", action="append", default=[])
    given = parser.parse_args()
    if given.what == "run":
        run(given.runs, given.pool, given.metric)
    for row in summary():
        print({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})


if __name__ == "__main__":
    main()
