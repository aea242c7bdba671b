"""How long a tell waits while several processes write into the same session file.

Each process opens the session and tells labels one after the other, as fast as it can, for a number of seconds. Said
for each process: tells that were acknowledged, tells that were refused because others kept the file locked, and how
long a tell took (median, 95 %, longest). In the end every acknowledged label has to be in the file. The load of the
machine before the start (processes that want to run, averaged over a minute) is written down beside the times.

    python -m benchmarks.operations.writers --processes 8 --seconds 40
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import altmas
from altmas.errors import StoreFailure
from benchmarks import store

POINTS = 100_000
RESULTS = store.RESULTS / "writers.csv"


@dataclass(frozen=True)
class Writer:
    """What one process got done."""

    process: int
    told: int
    refused: int
    lost: int
    median_ms: float
    p95_ms: float
    longest_ms: float
    seconds: float
    load_before: float


def write(path: str, number: int, processes: int, seconds: float) -> None:
    """Tell points that no other process tells until the time is over; print what came of it as JSON."""
    told, refused, took = [], 0, []
    with altmas.Session.open(path) as session:
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.monotonic() + seconds
        row = number
        while time.monotonic() < end:
            start = time.monotonic()
            try:
                session.tell(row, "cat", annotator=f"writer {number}")
                told.append(row)
            except StoreFailure:
                refused += 1
            took.append(time.monotonic() - start)
            row += processes
    print(json.dumps({"told": told, "refused": refused, "took": took}), flush=True)


def measured(path: Path, processes: int, seconds: float) -> list[Writer]:
    """What each of the processes got done on a new session at this path."""
    load = os.getloadavg()[0]
    predicted = np.array(["cat", "dog"])[np.arange(POINTS) % 2]
    altmas.Session.create(path, altmas.Pool(None, predicted), metrics=["accuracy"], method="tradition").close()
    command = [
        sys.executable,
        "-m",
        "benchmarks.operations.writers",
        "--processes",
        str(processes),
        "--seconds",
        str(seconds),
    ]
    started = [
        subprocess.Popen(
            [*command, "--child", str(path), str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(processes)
    ]
    for process in started:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    results = [json.loads(process.communicate()[0]) for process in started]
    with altmas.Session.open(path) as session:
        recorded = session.history.labels
    return [_writer(number, result, recorded, seconds, load) for number, result in enumerate(results)]


def _writer(number: int, result: dict[str, Any], recorded: Mapping[int, int], seconds: float, load: float) -> Writer:
    took = np.array(result["took"]) * 1e3
    lost = sum(row not in recorded for row in result["told"])
    middle, late = (round(float(np.quantile(took, share)), 1) for share in (0.5, 0.95))
    longest = round(float(took.max()), 1)
    return Writer(number, len(result["told"]), result["refused"], lost, middle, late, longest, seconds, round(load, 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        write(options.child[0], int(options.child[1]), options.processes, options.seconds)
        return
    with tempfile.TemporaryDirectory() as folder:
        writers = measured(Path(folder) / "shared.altmas", options.processes, options.seconds)
    store.write_csv(options.out, map(asdict, writers))
    for writer in writers:
        print(asdict(writer))
    told, refused, lost = (sum(getattr(writer, what) for writer in writers) for what in ("told", "refused", "lost"))
    print(f"{told} told, {refused} refused, {lost} lost, longest {max(writer.longest_ms for writer in writers)} ms")
    sys.exit(bool(refused or lost))


if __name__ == "__main__":
    main()
