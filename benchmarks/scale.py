"""Time, memory and file size of a session by the size of its pool: `python -m benchmarks.scale`.

    python -m benchmarks.scale run --n 1000000 --columns 64 --classes 10      # one cell
    python -m benchmarks.scale run                                            # every missing cell
    python -m benchmarks.scale long                                           # a session of 20,000 labels, printed
    python -m benchmarks.scale price --runs 4                                 # what fits on a sample of points cost
    python -m benchmarks.scale table                                          # the files in results/, and the page

Pools are made up: C overlapping normal classes, a linear model with noise in its coefficients, features in a .npy file
that is memory-mapped. Each cell runs in processes of its own, so that its peak memory is its own; times are processor
seconds. `price`: the exact variance of the estimate of accuracy given the design (as in benchmarks.ablation), with the
views of a pool fitted on 50,000 points and on all. Finished cells are kept, so an interrupted benchmark goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402  (thread caps come first)
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from altmas.memo import ArrayFile  # noqa: E402
from altmas.methods.assured import views  # noqa: E402
from altmas.pool import Pool  # noqa: E402
from altmas.pool.first_phase import AUTOMATIC, LARGE  # noqa: E402
from altmas.session import Session  # noqa: E402
from altmas.session.answers import Answer  # noqa: E402
from altmas.types import Array  # noqa: E402
from benchmarks.memory import peak_memory  # noqa: E402
from benchmarks.store import RESULTS, RUNS, Row, Runs, read_csv, write_csv  # noqa: E402
from benchmarks.tables import DOCS, markdown, rewrite_page  # noqa: E402

CELLS = (
    (10_000, 64, 10, False),
    (100_000, 64, 10, False),
    (1_000_000, 64, 10, False),
    (10_000_000, 64, 10, False),
    (1_000_000, 64, 100, False),
    (1_000_000, 64, 2, False),
    (1_000_000, 64, 10, True),
    (10_000, 64, 2, False),
    (10_000, 64, 100, False),
    (100_000, 16, 10, False),
    (100_000, 512, 10, False),
    (1_000_000, 16, 10, False),
    (100_000, 64, 2, False),
    (100_000, 64, 100, False),
    (100_000, 64, 10, True),
    (10_000, 512, 100, True),
    (1_000_000, 512, 10, False),
)
"""Points, columns, classes, with scores; the important ones first."""
LABELS, BATCH = 100, 10
LONG, LONG_POINTS, LONG_BATCH = 20_000, 100_000, 200
CELL_RUNS = Runs(RUNS / "scale.jsonl", "points", "columns", "classes", "scores")
PRICE_POINTS = (100_000, 1_000_000)
PRICE_RUNS = Runs(RUNS / "scale_price.jsonl", "points", "fitted", "repeat")
PRICE_TABLE = RESULTS / "scale_price.csv"
TABLE, PAGE, FIGURE = RESULTS / "scale.csv", DOCS / "scale.md", RESULTS / "scale.png"
DATA = Path(tempfile.gettempdir()) / "altmas-scale"


# ---------------------------------------------------------------- pools


def made_up(n: int, columns: int, classes: int) -> Path:
    """The folder with features, predictions, scores and truth of a made-up pool, written at the first call."""
    folder = DATA / f"{n}_{columns}_{classes}"
    if not (folder / "truth.npy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        truth, predictions = rng.integers(0, classes, n), np.empty(n, np.int64)
        centres = rng.normal(0, 8 / columns**0.5, (classes, columns)).astype(np.float32)
        model = centres + rng.normal(0, 4 / columns**0.5, centres.shape).astype(np.float32)
        features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (n, columns))
        scores = np.lib.format.open_memmap(folder / "scores.npy", "w+", np.float32, (n, classes))
        for start in range(0, n, 100_000):
            part = slice(start, min(start + 100_000, n))
            x = centres[truth[part]] + 2.5 * rng.standard_normal((part.stop - start, columns), dtype=np.float32)
            odds = (x @ model.T - 0.5 * (model**2).sum(1)) / 6.25
            powers = np.exp(odds - odds.max(1, keepdims=True))
            features[part], scores[part] = x, powers / powers.sum(1, keepdims=True)
            predictions[part] = powers.argmax(1)
        np.save(folder / "predictions.npy", predictions)
        pq.write_table(pa.table({"prediction": predictions}), folder / "pool.parquet")
        np.save(folder / "truth.npy", truth)
    return folder


def pool_in(folder: Path, scores: bool) -> Pool:
    """The pool in a folder, features and scores memory-mapped; a random sample of what is larger than `LARGE`."""
    all_scores = np.load(folder / "scores.npy", mmap_mode="r")
    classes, features = list(range(all_scores.shape[1])), np.load(folder / "features.npy", mmap_mode="r")
    if len(features) > LARGE:
        files: dict[str, Any] = {"features": folder / "features.npy"}
        files |= {"scores": folder / "scores.npy"} if scores else {}
        return Pool.from_table(folder / "pool.parquet", prediction="prediction", classes=classes, **files)
    return Pool(features, np.load(folder / "predictions.npy"), scores=all_scores if scores else None, classes=classes)


# ---------------------------------------------------------------- one cell


class Laps:
    """Processor seconds between calls, and the peak of memory in GB at them."""

    def __init__(self) -> None:
        self.figures: Row = {}
        self.last = time.process_time()

    def __call__(self, name: str) -> None:
        now = time.process_time()
        self.figures[name] = round(now - self.last, 3)
        self.figures[f"{name} GB"] = round(peak_memory() / 1e9, 3)
        self.last = now


def new_session(folder: Path, path: Path, scores: bool) -> Row:
    """Seconds and memory of a pool, its session, the first ask, 100 labels and an estimate."""
    lap, truth = Laps(), np.load(folder / "truth.npy", mmap_mode="r")
    pool = pool_in(folder, scores)
    lap("pool")
    lap.figures["sampled"] = len(pool)
    session = Session.create(path, pool)
    lap("create")
    session.ask(BATCH)
    lap("first ask")
    _label(session, truth, LABELS, BATCH)
    lap("100 labels")
    session.estimate()
    lap("estimate")
    return lap.figures


def next_call(folder: Path, path: Path, scores: bool) -> Row:
    """Seconds and memory of a status, an ask and an estimate in another process."""
    lap = Laps()
    session = Session.open(path, pool_in(folder, scores))
    session.status()
    lap("open, status")
    session.ask(1)
    lap("next ask")
    session.estimate()
    lap("next estimate")
    return lap.figures


def _label(session: Session, truth: Array, labels: int, batch: int) -> None:
    while len(session.history.labels) < labels:
        session.answer(Answer(query.id, int(truth[int(query.id)])) for query in session.ask(batch))


def measure(n: int, columns: int, classes: int, scores: bool) -> Row:
    """One cell, each part in a process of its own."""
    folder = made_up(n, columns, classes)
    with tempfile.TemporaryDirectory() as temp:
        path = Path(temp) / "scale.altmas"
        row: Row = {}
        for part in ("new_session", "next_call"):
            call = f"from benchmarks import scale; scale.child({part!r}, {str(folder)!r}, {str(path)!r}, {scores})"
            process = subprocess.run([sys.executable, "-c", call], check=True, capture_output=True, text=True)
            row |= json.loads(process.stdout.splitlines()[-1])
        row["session MB"] = round(path.stat().st_size / 1e6, 1)
        row["description MB"] = round(sum(file.stat().st_size for file in Path(temp).glob("*-description")) / 1e6, 1)
    return {"points": n, "columns": columns, "classes": classes, "scores": scores, **row}


def child(part: str, folder: str, path: str, scores: bool) -> None:
    """Print what one part of a cell found."""
    parts: dict[str, Callable[[Path, Path, bool], Row]] = {"new_session": new_session, "next_call": next_call}
    print(json.dumps(parts[part](Path(folder), Path(path), scores)))


# ---------------------------------------------------------------- a long session


def long_session(labels: int, points: int) -> Row:
    """Processor seconds of open, status, ask and estimate with so many labels told."""
    folder = made_up(points, 64, 10)
    truth, pool = np.load(folder / "truth.npy"), pool_in(folder, False)
    with tempfile.TemporaryDirectory() as temp:
        path = Path(temp) / "long.altmas"
        session = Session.create(path, pool)
        _label(session, truth, labels, LONG_BATCH)
        session.estimate()
        session.close()
        lap = Laps()
        session = Session.open(path, pool)
        lap("open")
        session.status()
        lap("status")
        session.ask(1)
        lap("ask")
        _label(session, truth, labels + 1, 1)
        session.estimate()
        _label(session, truth, labels + 2, 1)
        lap("two labels")
        session.estimate()
        lap("estimate")
    return {name: value for name, value in lap.figures.items() if "GB" not in name and name != "two labels"}


# ---------------------------------------------------------------- what approximations cost


def variance_of(points: int, fitted: int, repeat: int) -> float:
    """Variance of accuracy given the design, over that of a random sample, with views fitted on so many points."""
    from benchmarks import ablation  # not above: what it imports would be part of the memory of each cell

    folder = made_up(points, 64, 10)
    pool, truth = pool_in(folder, False), np.load(folder / "truth.npy")
    pool.memo.file = ArrayFile(folder / f"description-{fitted}")
    usual = views.FITTED
    views.FITTED = fitted
    try:
        return float(ablation.run(pool, truth, "made up", "accuracy", repeat)["variance"])
    finally:
        views.FITTED = usual


def run_price(repeats: int) -> None:
    """Every missing run with views of a sample and of all points."""
    for points in PRICE_POINTS:
        for repeat in range(repeats):
            for fitted in (views.FITTED, points):
                if (points, fitted, repeat) not in PRICE_RUNS.done():
                    variance = variance_of(points, fitted, repeat)
                    PRICE_RUNS.add({"points": points, "fitted": fitted, "repeat": repeat, "variance": variance})


def price_rows() -> list[Row]:
    """A row for each number of points: label values with fits on a sample and on all, and the ratio of variances."""
    variances = {PRICE_RUNS.key_of(run): run["variance"] for run in PRICE_RUNS.read()}
    rows = []
    for points in sorted({points for points, _, _ in variances}):
        both = [r for size, fitted, r in variances if (size, fitted) == (points, points)]
        pairs = np.array([(variances[points, views.FITTED, r], variances[points, points, r]) for r in both])
        ratios = np.log(pairs[:, 0] / pairs[:, 1])
        error = float(ratios.std(ddof=1)) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.nan
        values = 1 / np.exp(np.log(pairs).mean(0))
        names = ("points", "runs", "value of a sample", "value of all", "ratio", "standard error")
        numbers = (points, len(both), *(round(float(number), 3) for number in (*values, np.exp(ratios.mean()), error)))
        rows.append(dict(zip(names, numbers, strict=True)))
    return rows


def price_table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    head = ["points", "runs", "label value, fits on 50,000 points", "label value, fits on all", "variance, ratio"]
    return markdown(
        head,
        [
            [
                f"{int(row['points']):,}",
                row["runs"],
                *(f"{float(row[name]):.2f}" for name in ("value of a sample", "value of all")),
                f"{float(row['ratio']):.3f} ± {float(row['standard error']):.3f}",
            ]
            for row in rows
        ],
    )


# ---------------------------------------------------------------- tables


def exponent(rows: Sequence[Row], what: str, first: int, last: int) -> float:
    """The power of N by which `what` grows between two sizes (64 columns, 10 classes, no scores)."""
    of = {int(row["points"]): float(row[what]) for row in rows if _plain(row)}
    return float(np.log(of[last] / of[first]) / np.log(last / first))


def first_ask(row: Row) -> float:
    """Processor seconds until the first points are asked for, with reading and checking the pool."""
    return sum(float(row[one]) for one in ("pool", "create", "first ask"))


def growth_words(rows: Sequence[Row]) -> str:
    """With which powers of the number of rows time and memory grow."""
    told = [row | {"seconds": first_ask(row)} for row in rows]
    time, memory = (exponent(told, what, 100_000, 10_000_000) for what in ("seconds", "estimate GB"))
    return (
        f"From 10^5 to 10^7 rows the time until the first ask grows with the power {time:.2f} of the number of rows, "
        f"memory with {memory:.2f}: above\n{LARGE:,} rows a random sample of {AUTOMATIC:,} is the pool, so that only "
        "reading grows."
    )


def _plain(row: Row) -> bool:
    return int(row["columns"]) == 64 and int(row["classes"]) == 10 and str(row["scores"]) == "False"


def _cell(row: Row) -> tuple[bool, int, int, int]:
    """What a row is about, in the order of the table."""
    return str(row["scores"]) == "True", int(row["columns"]), int(row["classes"]), int(row["points"])


def cells_table(rows: Sequence[Row]) -> str:
    """The cells as Markdown."""
    head = [
        "rows",
        "in the pool",
        "columns",
        "classes",
        "scores",
        "first ask s",
        "peak GB",
        "estimate s",
        "next status s",
    ]
    head += ["next estimate s", "session MB", "description MB"]
    return markdown(
        head,
        [
            [
                f"{int(row['points']):,}",
                f"{int(row['sampled']):,}",
                row["columns"],
                row["classes"],
                "yes" if str(row["scores"]) == "True" else "no",
                f"{first_ask(row):.1f}",
                f"{float(row['estimate GB']):.2f}",
                *(f"{float(row[column]):.2f}" for column in ("estimate", "open, status", "next estimate")),
                row["session MB"],
                row["description MB"],
            ]
            for row in rows
        ],
    )


def write_tables() -> None:
    """benchmarks/results/scale.csv, the figure and the table of the page; cells not run here stay as they are."""
    cells = {_cell(row): {"sampled": row["points"], **row} for row in read_csv(TABLE)}
    cells |= {_cell(row): row for row in CELL_RUNS.read()}
    rows = [cells[key] for key in sorted(cells)]
    names = list(dict.fromkeys(["points", "columns", "classes", "scores", "sampled", *rows[0]]))
    write_csv(TABLE, [{name: row[name] for name in names} for row in rows])
    figure(rows)
    if rows := price_rows():
        write_csv(PRICE_TABLE, rows)
    parts = {"cells": cells_table(read_csv(TABLE)), "growth": growth_words(read_csv(TABLE))}
    rewrite_page(PAGE, parts | {"price": price_table(read_csv(PRICE_TABLE))})


def figure(rows: Sequence[Row]) -> None:
    """Seconds of a first ask and peak memory by the number of points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plain = sorted((row for row in rows if _plain(row)), key=lambda row: int(row["points"]))
    drawing, axes = pyplot.subplots(1, 2, figsize=(9, 3.4))
    points = [int(row["points"]) for row in plain]
    shown: dict[str, Callable[[Row], float]] = {
        "first ask": first_ask,
        "peak memory, 100 labels": lambda row: float(row["estimate GB"]),
    }
    for axis, (title, number), words in zip(axes, shown.items(), ("processor seconds", "GB"), strict=True):
        axis.loglog(points, [number(row) for row in plain], "o-")
        axis.set(xlabel="rows", ylabel=words, title=title)
        axis.grid(True, alpha=0.3)
    drawing.tight_layout()
    drawing.savefig(FIGURE, dpi=120)
    pyplot.close(drawing)


# ---------------------------------------------------------------- command


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "long", "price", "table"])
    for name in ("n", "columns", "classes"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--scores", action="store_true")
    parser.add_argument("--runs", type=int, default=4, help="of price")
    options = parser.parse_args()
    if options.what == "table":
        write_tables()
    elif options.what == "price":
        run_price(options.runs)
    elif options.what == "long":
        print(json.dumps(long_session(LONG, LONG_POINTS)))
    else:
        cells = CELLS if options.n is None else ((options.n, options.columns, options.classes, options.scores),)
        for cell in cells:
            if cell not in CELL_RUNS.done():
                CELL_RUNS.add(measure(*cell))


if __name__ == "__main__":
    main()
