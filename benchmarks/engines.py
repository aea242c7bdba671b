"""A session from a table that lives elsewhere: seconds of processor and peak memory of the process that asks for it.

`python -m benchmarks.engines --rows 10000000 arrow duckdb spark` makes a folder of Parquet files (an id, a
class of ten, a slice, 16 numbers as features, a text that nobody needs), makes a session of all rows (`sample=0`)
through each engine in a process of its own, and writes benchmarks/results/engines.csv. docs/engines.md has the table.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "engines.csv"
FEATURES = [f"x{k}" for k in range(16)]
FILES = 20
COLUMNS = ("engine", "rows", "features", "seconds", "driver_mb", "jvm_mb")


def make_table(folder: Path, rows: int) -> None:
    """The folder of Parquet files; made once."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet

    if folder.is_dir() and len(list(folder.glob("*.parquet"))) == FILES:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number, ids in enumerate(np.array_split(np.arange(rows), FILES)):
        rng = np.random.default_rng(number)
        columns: dict[str, Any] = {
            "case": ids,
            "vendor": pa.array([f"class {c}" for c in range(10)]).take(pa.array(rng.integers(0, 10, len(ids)))),
            "scanner": pa.array(["A", "B", "C"]).take(pa.array(rng.integers(0, 3, len(ids)))),
            "remark": pa.array(["nobody needs this text", "nor this"]).take(pa.array(rng.integers(0, 2, len(ids)))),
        }
        columns |= {name: rng.normal(size=len(ids)).astype(np.float32) for name in FEATURES}
        pyarrow.parquet.write_table(pa.table(columns), folder / f"part-{number:02}.parquet")


# ---------------------------------------------------------------- engines


def arrow(folder: Path) -> tuple[Any, list[str]]:
    import pyarrow.dataset

    return pyarrow.dataset.dataset(folder), FEATURES


def duckdb(folder: Path) -> tuple[Any, list[str]]:
    import duckdb

    duckdb.sql("set threads = 1")
    return duckdb.sql(f"select * from read_parquet('{folder}/*.parquet')"), FEATURES


def dask(folder: Path) -> tuple[Any, list[str]]:
    import dask.dataframe

    return dask.dataframe.read_parquet(folder), FEATURES


def spark(folder: Path) -> tuple[Any, list[str]]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g"}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate().read.parquet(str(folder)), FEATURES


def spark_reduced(folder: Path) -> tuple[Any, list[str]]:
    """The features reduced to four where they live."""
    import altmas

    frame, _ = spark(folder)
    sample = frame.sample(fraction=0.001, seed=0).toPandas()
    reduction = altmas.Reduction.fit(sample, features=FEATURES, keep=["case", "vendor", "scanner"], dimensions=4)
    return frame.mapInArrow(reduction.over, reduction.spark_schema(frame)), reduction.columns


ENGINES: dict[str, Callable[[Path], tuple[Any, list[str]]]] = {
    "arrow": arrow,
    "duckdb": duckdb,
    "dask": dask,
    "spark": spark,
    "spark-reduced": spark_reduced,
}


# ---------------------------------------------------------------- one run


def run(engine: str, folder: Path, rows: int) -> dict[str, Any]:
    """The row of one engine; it is measured in this process, which should do nothing else."""
    import altmas
    from benchmarks.memory import peak_memory

    started = time.process_time()
    table, features = ENGINES[engine](folder)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        pool = altmas.Pool.from_table(
            table, prediction="vendor", id="case", slices="scanner", features=features, store=f"{name}/pool.parquet",
            sample=0,
        )  # fmt: skip
        assert len(pool) == rows
        altmas.Session.create(f"{name}/s.altmas", pool, metrics=["accuracy"], budget=300).close()
    peak = peak_memory() / 2**20
    seconds = time.process_time() - started
    return dict(
        zip(COLUMNS, (engine, rows, len(features), round(seconds, 1), round(peak), round(_peak_of_java())), strict=True)
    )


def _peak_of_java() -> float:
    """Megabytes that the Java process which this one started has used at most; 0 if there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            status = (process / "status").read_text()
            parent = int(status.split("PPid:")[1].split()[0])
        except (OSError, IndexError):
            continue
        if parent == os.getpid() and (process / "comm").read_text().startswith("java"):
            return int(status.split("VmHWM:")[1].split()[0]) / 1024
    return 0.0


def keep(row: dict[str, Any]) -> None:
    """Write the row in place of an earlier one of the same engine and size."""
    known = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    others = [old for old in known if (old["engine"], old["rows"]) != (row["engine"], str(row["rows"]))]
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted([*others, row], key=lambda r: (int(r["rows"]), list(ENGINES).index(r["engine"]))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "altmas-engines")
    parser.add_argument("--here", action="store_true", help="measure the first engine in this process")
    options = parser.parse_args()
    folder = options.folder / str(options.rows)
    if options.here:
        keep(run(options.engines[0], folder, options.rows))
        return
    make_table(folder, options.rows)
    for engine in options.engines:
        command = [sys.executable, "-m", "benchmarks.engines", engine, "--rows", str(options.rows), "--here"]
        subprocess.run([*command, "--folder", str(options.folder)], check=True)


if __name__ == "__main__":
    main()
