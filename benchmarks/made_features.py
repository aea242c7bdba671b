"""Features made from texts against none, and against those that come with the pools: label value of `assured`.

python -m benchmarks.made_features run --runs 40     # resumable; goes on where it stopped
python -m benchmarks.made_features table             # benchmarks/results/made_features.csv, docs/features.md

Embeddings need the extra altmas[embeddings] and a model: --model FOLDER, or ALTMAS_EMBEDDING_MODEL. Where they cannot
be made they are left out, and the command says why.

Hard labels, accuracy alone. The label value is the variance of a random sample of as many labels (known exactly, drawn
without replacement) over the mean squared error of `assured`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from altmas.errors import MissingExtra, PoolError
from altmas.history import History
from altmas.methods import Assured
from altmas.metrics import metric_set
from altmas.pool import Pool
from altmas.pool.embeddings import MODEL, embedded, model_folder
from altmas.pool.made_features import text_features
from altmas.simulate import label_until
from altmas.task import Task
from benchmarks.data import NamedPool, data_folder, load
from benchmarks.store import RESULTS, RUNS, Row, Runs, write_csv
from benchmarks.tables import DOCS, markdown, rewrite_page

NOTHING: Final = "texts that say nothing"
POOLS: Final = ("banking77", "20news", NOTHING)
FEATURES: Final = ("none", "made from texts", "embedding", "given")
BUDGETS: Final = {"banking77": (200, 400), "20news": (200, 400), NOTHING: (20, 40, 80, 160)}
BATCH: Final = 20
FILE: Final = RUNS / "made_features.jsonl"


def loaded(name: str) -> NamedPool:
    """A public pool, or 1,000 points of which 0.85 are right, with texts that have nothing to do with them."""
    if name != NOTHING:
        return load(name)
    rng = np.random.default_rng(0)
    predictions = rng.integers(0, 2, 1000)
    truth = np.where(rng.random(1000) < 0.85, predictions, 1 - predictions)
    return NamedPool(name, None, predictions, truth, None, ["0", "1"])


def texts_of(name: str) -> list[str]:
    """The texts of a pool, in the order of its rows."""
    if name == NOTHING:
        words = np.random.default_rng(1).integers(0, 400, (1000, 12))
        return [" ".join(f"word{word}" for word in row) for row in words]
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError("set ALTMAS_DATA to the folder that holds the pools")
    content = gzip.decompress((folder / name / "text.csv.gz").read_bytes()).decode()
    return [row["text"] for row in csv.DictReader(io.StringIO(content))]


def pool_with(named: NamedPool, features: str) -> Pool:
    """The pool with hard labels and these features."""
    makers: dict[str, Callable[[], Any]] = {
        "none": lambda: None,
        "made from texts": lambda: text_features(texts_of(named.name)),
        "embedding": lambda: embedded(texts_of(named.name), named.name),
        "given": lambda: named.features,
    }
    return Pool(makers[features](), named.predictions, classes=named.classes)


def kinds_of(name: str) -> list[str]:
    """The features that the pool can have on this machine; says which are left out, and why."""
    kinds = [kind for kind in FEATURES if name != NOTHING or kind != "given"]
    try:
        model_folder()
    except (MissingExtra, PoolError) as cause:
        kinds.remove("embedding")
        print(f"{name}: no embedding, since {cause}", file=sys.stderr)
    return kinds


def one_run(named: NamedPool, pool: Pool, seed: int) -> list[Row]:
    """The estimates of one run at each budget."""
    task = Task(pool, metric_set("accuracy", pool), 0.95, seed)
    method, history, rows = Assured(), History(len(pool)), []
    started = time.process_time()
    for labels in BUDGETS[named.name]:
        history = label_until(method, task, history, labels, BATCH, named.truth.__getitem__)
        (estimate,) = method.estimate(task, history)
        seconds = time.process_time() - started
        interval = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
        rows.append({"labels": labels, **interval, "seconds": seconds})
    return rows


def run(runs: int) -> None:
    """Make the runs that are missing, pool by pool."""
    store = Runs(FILE, "pool", "features", "seed")
    for name in POOLS:
        named = loaded(name)
        for features in kinds_of(name):
            missing = [seed for seed in range(runs) if (name, features, seed) not in store.done()]
            pool = pool_with(named, features) if missing else None
            for seed in missing:
                assert pool is not None
                cell: Row = {"pool": name, "features": features, "seed": seed}
                cell |= {"truth": named.accuracy, "points": len(pool)}
                store.add(cell | {"at": one_run(named, pool, seed)})


def table() -> list[Row]:
    """A row for each pool, kind of features and budget."""
    runs = Runs(FILE, "pool", "features", "seed").read()
    rows: list[Row] = []
    for name in POOLS:
        for features in FEATURES:
            cell = [run for run in runs if (run["pool"], run["features"]) == (name, features)]
            for index, labels in enumerate(BUDGETS[name]):
                rows += [_row(name, features, labels, cell, index)] if cell else []
    return rows


def _row(name: str, features: str, labels: int, cell: list[Row], index: int) -> Row:
    truth, points = cell[0]["truth"], cell[0]["points"]
    at = [run["at"][index] for run in cell]
    squares = np.array([(row["value"] - truth) ** 2 for row in at])
    random = truth * (1 - truth) / labels * (points - labels) / (points - 1)
    return {
        "pool": name,
        "features": features,
        "labels": labels,
        "runs": len(cell),
        "rmse": round(math.sqrt(squares.mean()), 5),
        "label_value": round(random / squares.mean(), 2),
        "half_width": round(float(np.mean([(row["high"] - row["low"]) / 2 for row in at])), 4),
        "coverage": round(float(np.mean([row["low"] <= truth <= row["high"] for row in at])), 3),
        "seconds": round(float(np.mean([row["seconds"] for row in at])), 1),
    }


def write(rows: list[Row]) -> None:
    """The table as CSV and on its page."""
    write_csv(RESULTS / "made_features.csv", rows)
    keys = ("pool", "features", "labels", "runs", "rmse", "label_value", "half_width", "coverage")
    heads = [key.replace("_", " ") for key in keys]
    shown = [[row[key] for key in keys] for row in rows]
    rewrite_page(DOCS / "features.md", {"made-features": markdown(heads, shown)})


def main() -> None:
    """Run, or make the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--model", help=f"folder with a model of sentence-transformers; else that in {MODEL}")
    options = parser.parse_args()
    if options.model is not None:
        os.environ[MODEL] = options.model
    if options.what == "run":
        run(options.runs)
    write(table())


if __name__ == "__main__":
    main()
