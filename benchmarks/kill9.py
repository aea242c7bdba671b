"""Kill a labelling process at random moments and look at what is left.

A child process opens the session, asks and tells, and says each id once `tell` has returned. It is killed with
SIGKILL after a random time, again and again on the same file. After each kill:
  lost       acknowledged labels that are not in the file (must be 0)
  integrity  what SQLite's own check says (must be "ok")
  same_next  whether the next ask gives the points that an undisturbed run asks for (must be True)
  in_write   whether the kill hit a write under way (a journal was left behind)

    python -m benchmarks.kill9 --kills 200
"""

import argparse
import csv
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

import altmas

POINTS, BATCH = 20_000, 3
RESULTS = Path(__file__).parent / "results" / "kill9.csv"


@dataclass(frozen=True)
class Kill:
    """What was found after one kill."""

    kill: int
    after_ms: float
    acknowledged: int
    recorded: int
    lost: int
    integrity: str
    same_next: bool
    in_write: bool

    @property
    def harmless(self) -> bool:
        return self.lost == 0 and self.integrity == "ok" and self.same_next


def world() -> tuple[altmas.Pool, list[str]]:
    """A pool without features and the true class of each point."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, POINTS)
    predicted = np.where(rng.random(POINTS) < 0.8, truth, rng.integers(0, 3, POINTS))
    names = np.array(["cat", "dog", "owl"])
    return altmas.Pool(None, names[predicted]), names[truth].tolist()


def label_on(session: altmas.Session, truth: list[str]) -> Iterator[altmas.Query]:
    """Ask and tell without end, batch by batch, a batch begun earlier first; each query once it was told."""
    while True:
        for query in session.ask(session.status().outstanding or BATCH):
            session.tell(query.id, truth[query.index], seconds=0.5)
            yield query


def child(path: str) -> None:
    """Label until killed; print each id once its label is acknowledged."""
    _, truth = world()
    with altmas.Session.open(path) as session:
        print("ready", flush=True)
        for query in label_on(session, truth):
            print(query.id, flush=True)


def kills(path: Path, count: int, longest: float, seed: int = 0) -> Iterator[Kill]:
    """Kill the child `count` times, each time up to `longest` seconds after it was ready."""
    pool, truth = world()
    altmas.Session.create(path, pool, metrics=["accuracy"], method="tradition").close()
    undisturbed = label_on(altmas.Session.create(None, pool, metrics=["accuracy"], method="tradition"), truth)
    expected: list[int] = []
    acknowledged: set[int] = set()
    rng = random.Random(seed)
    for number in range(count):
        delay = rng.uniform(0, longest)
        acknowledged |= _run_and_kill(path, delay)
        in_write = path.with_name(path.name + "-journal").exists()
        with altmas.Session.open(path) as session:
            labels = session.history.labels
            while len(expected) < len(labels) + BATCH:
                expected.append(next(undisturbed).index)
            in_order = list(labels) == expected[: len(labels)]
            rest = session.status().outstanding or BATCH
            asked = [query.index for query in session.ask(rest)]
            same_next = in_order and asked == expected[len(labels) : len(labels) + rest]
            lost = sum(session.pool.classes[labels[row]] != truth[row] if row in labels else 1 for row in acknowledged)
            integrity = session.integrity()
        recorded = len(labels)
        yield Kill(number, delay * 1e3, len(acknowledged), recorded, lost, integrity, same_next, in_write)


def _run_and_kill(path: Path, delay: float) -> set[int]:
    """The ids that a child acknowledged before it was killed."""
    command = [sys.executable, "-m", "benchmarks.kill9", "--child", str(path)]
    root = Path(__file__).parent.parent
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the labelling process did not start")
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        said, _ = process.communicate()
    return {int(line) for line in said.splitlines(keepends=True) if line.endswith("\n")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--longest", type=float, default=0.4, help="seconds of labelling at most before each kill")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = list(_shown(kills(Path(folder) / "killed.altmas", options.kills, options.longest)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, [one.name for one in fields(Kill)], lineterminator="\n")
        writer.writeheader()
        writer.writerows({**asdict(kill), "after_ms": round(kill.after_ms, 1)} for kill in found)
    last = found[-1]
    print(
        f"{len(found)} kills, {sum(kill.in_write for kill in found)} of them during a write; "
        f"{last.acknowledged} labels acknowledged, {last.recorded} recorded, "
        f"{max(kill.lost for kill in found)} lost; {sum(not kill.harmless for kill in found)} kills did harm"
    )
    sys.exit(not all(kill.harmless for kill in found))


def _shown(found: Iterator[Kill]) -> Iterator[Kill]:
    for kill in found:
        print(f"\rkill {kill.kill + 1}: {kill.recorded} labels", end="", file=sys.stderr, flush=True)
        yield kill
    print(file=sys.stderr)


if __name__ == "__main__":
    main()
