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
import os
import random
import re
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


def child(path: str, truth: list[str]) -> None:
    """Label until killed; say each id once its label is acknowledged."""
    with altmas.Session.open(path) as session:
        print("ready", flush=True)
        for query in label_on(session, truth):
            print(f"told {query.id}.", flush=True)


def starter(path: str) -> None:
    """Start a labelling process for each line read, one after the other, and say its id and its end.

    They are forked from this one, which has altmas imported already: a kill then costs no start of Python.
    """
    _, truth = world()
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                child(path, truth)
            finally:
                os._exit(1)
        print(f"started {pid}", flush=True)
        os.waitpid(pid, 0)
        print("\ndead", flush=True)


class Witness:
    """Knows what was acknowledged and what an undisturbed run asks for, and compares the file with both."""

    def __init__(self, path: Path) -> None:
        pool, self.truth = world()
        self.path = path
        altmas.Session.create(path, pool, metrics=["accuracy"], method="tradition").close()
        undisturbed = altmas.Session.create(None, pool, metrics=["accuracy"], method="tradition")
        self.acknowledged: set[int] = set()
        self._expected: list[int] = []
        self._more = label_on(undisturbed, self.truth)

    def expected(self, count: int) -> list[int]:
        """The first rows that the undisturbed run asks for."""
        while len(self._expected) < count:
            self._expected.append(next(self._more).index)
        return self._expected[:count]

    def examine(self, number: int, delay: float) -> Kill:
        """What a kill has left."""
        in_write = self.path.with_name(self.path.name + "-journal").exists()
        with altmas.Session.open(self.path) as session:
            labels, classes = session.history.labels, session.pool.classes
            rest = session.status().outstanding or BATCH
            found = [*labels, *(query.index for query in session.ask(rest))]
            same_next = found == self.expected(len(labels) + rest)
            lost = sum(row not in labels or classes[labels[row]] != self.truth[row] for row in self.acknowledged)
            integrity = session.integrity()
        return Kill(number, delay * 1e3, len(self.acknowledged), len(labels), lost, integrity, same_next, in_write)


def kills(path: Path, count: int, longest: float, seed: int = 0) -> Iterator[Kill]:
    """Kill a labelling process `count` times, each time up to `longest` seconds after it was ready."""
    witness, rng = Witness(path), random.Random(seed)
    command = [sys.executable, "-m", "benchmarks.kill9", "--starter", str(path)]
    root = Path(__file__).parent.parent
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        for number in range(count):
            delay = rng.uniform(0, longest)
            witness.acknowledged |= _run_and_kill(process, delay)
            yield witness.examine(number, delay)


def _run_and_kill(starter: subprocess.Popen[str], delay: float) -> set[int]:
    """The ids that a labelling process acknowledged before it was killed."""
    assert starter.stdin is not None and starter.stdout is not None
    starter.stdin.write("go\n")
    starter.stdin.flush()
    lines: list[str] = []
    while not ("ready\n" in lines and (started := [line for line in lines if line.startswith("started ")])):
        lines.append(starter.stdout.readline())
        if lines[-1] in ("", "dead\n"):
            raise RuntimeError("the labelling process did not start")
    time.sleep(delay)
    os.kill(int(started[0].split()[1]), signal.SIGKILL)
    lines += iter(starter.stdout.readline, "dead\n")
    return {int(told[1]) for line in lines if (told := re.fullmatch(r"told (\d+)\.\n", line))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--longest", type=float, default=0.4, help="seconds of labelling at most before each kill")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--starter", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.starter:
        starter(options.starter)
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
