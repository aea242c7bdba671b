"""Kill a process that works on a session at random moments and look at what is left.

A child process works on a session file and says what it did once the call has returned. It is killed with SIGKILL after
a random time, again and again on the same file. There are three kinds of work, each on a file of its own, in turn:
  tell    ask and tell, one label after the other
  import  take in a file with two labels and a ruling for each of 10 points, file after file
  rule    two votes on a point together, a ruling, another ruling, and the second one taken back
After each kill:
  lost       what was acknowledged and is not in the file (must be 0)
  half       imports, and pairs of votes, of which some events are there and some are not (must be 0)
  integrity  what SQLite's own check says (must be "ok")
  same_next  tell: whether the next ask gives the points that an undisturbed run asks for (must be True)
  in_write   whether the kill hit a write under way (a journal was left behind)

    python -m benchmarks.operations.kill9 --kills 1000

A run that was interrupted goes on where it stopped.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import altmas
from altmas.session.answers import Answer
from benchmarks import store

POINTS, BATCH, BLOCK = 20_000, 3, 10
CLASSES = ("cat", "dog", "owl")
ROOT = Path(__file__).parent.parent.parent
RESULTS = store.RESULTS / "kill9.csv"
RUNS = store.RUNS / "kill9"


@dataclass(frozen=True)
class Kill:
    """What was found after one kill."""

    kill: int
    work: str
    after_ms: float
    acknowledged: int
    recorded: int
    lost: int
    half: int
    integrity: str
    same_next: bool
    in_write: bool

    @property
    def harmless(self) -> bool:
        return self.lost == 0 and self.half == 0 and self.integrity == "ok" and self.same_next


def world() -> tuple[altmas.Pool, list[str]]:
    """A pool without features and the true class of each point."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, POINTS)
    predicted = np.where(rng.random(POINTS) < 0.8, truth, rng.integers(0, 3, POINTS))
    names = np.array(CLASSES)
    return altmas.Pool(None, names[predicted], classes=list(CLASSES)), names[truth].tolist()


# ---------------------------------------------------------------- the work, in a process that is killed


def label_on(session: altmas.Session, truth: list[str]) -> Iterator[altmas.Query]:
    """Ask and tell without end, batch by batch, a batch begun earlier first; each query once it was told."""
    while True:
        for query in session.ask(session.status().outstanding or BATCH):
            session.tell(query.id, truth[query.index], seconds=0.5)
            yield query


def tell(path: Path, truth: list[str]) -> Iterator[int]:
    """The row of each point once its label was told."""
    with altmas.Session.open(path) as session:
        yield -1
        yield from (query.index for query in label_on(session, truth))


def rows_of(block: int) -> range:
    """The points of one file that is imported."""
    return range(BLOCK * block, BLOCK * (block + 1))


def take_in(path: Path, truth: list[str]) -> Iterator[int]:
    """The number of each file once it was imported."""
    file = path.with_suffix(".csv")
    with altmas.Session.open(path) as session:
        yield -1
        first = len(session.history.labels) // BLOCK
        for block in range(first, POINTS // BLOCK):
            lines = ["id,label,annotator,kind"]
            for row in rows_of(block):
                lines += [f"{row},{label},{name},label" for name, label in votes_on(row).items()]
                lines.append(f"{row},{truth[row]},eve,adjudication")
            file.write_text("\n".join(lines) + "\n")
            session.import_labels(file)
            yield block


def votes_on(row: int) -> dict[str, str]:
    """What two people say about a point."""
    return {"ana": CLASSES[row % 3], "bob": CLASSES[(row + row // 3) % 3]}


STEPS = 4
"""Steps on each point: votes, a ruling, another ruling, and that one taken back."""


def rule(path: Path, truth: list[str]) -> Iterator[int]:
    """The number of each step once it was recorded; STEPS of them on each point."""
    with altmas.Session.open(path) as session:
        yield -1
        for step in range(steps_taken(session), STEPS * POINTS):
            row, number = divmod(step, STEPS)
            if number == 0:
                session.answer(Answer(row, label, annotator=name) for name, label in votes_on(row).items())
            elif number == 3:
                session.undo("eve")
            else:
                session.adjudicate(row, CLASSES[(row + number) % 3], "eve")
            yield step


def steps_taken(session: altmas.Session) -> int:
    """How many steps of `rule` are in the session: two votes are one."""
    kinds = [event["kind"] for event in session.events()]
    return kinds.count("label") // 2 + kinds.count("adjudication") + kinds.count("undo")


WORK: dict[str, Callable[[Path, list[str]], Iterator[int]]] = {"tell": tell, "import": take_in, "rule": rule}


def starter(folder: Path) -> None:
    """Start a process for each kind of work read, one after the other, and say its id and its end.

    They are forked from this one, which has altmas imported already: a kill then costs no start of Python.
    """
    pool, truth = world()
    _import_once(pool, folder / "once.csv")
    for line in sys.stdin:
        work = line.strip()
        pid = os.fork()
        if pid == 0:
            try:
                for done in WORK[work](folder / f"{work}.altmas", truth):
                    print("ready" if done < 0 else f"done {done}.", flush=True)
            finally:
                os._exit(1)
        print(f"started {pid}", flush=True)
        os.waitpid(pid, 0)
        print("\ndead", flush=True)


def _import_once(pool: altmas.Pool, file: Path) -> None:
    """Load what reading files needs."""
    file.write_text("id,label\n0,cat\n")
    altmas.Session.create(None, pool, metrics=["accuracy"], method="tradition").import_labels(file)
    file.unlink()


# ---------------------------------------------------------------- what is left


class Witness:
    """Knows what was acknowledged and what an undisturbed run asks for, and compares the files with both."""

    def __init__(self, folder: Path) -> None:
        pool, self.truth = world()
        self.folder, self.state = folder, folder / "acknowledged.json"
        self.acknowledged: dict[str, set[int]] = {work: set() for work in WORK}
        if self.state.exists():
            self.acknowledged |= {work: set(done) for work, done in json.loads(self.state.read_text()).items()}
        for work in WORK:
            path = folder / f"{work}.altmas"
            altmas.Session.create(path, pool, metrics=["accuracy"], method="tradition", seed=0, exist_ok=True).close()
        undisturbed = altmas.Session.create(None, pool, metrics=["accuracy"], method="tradition", seed=0)
        self._expected: list[int] = []
        self._more = label_on(undisturbed, self.truth)

    def add(self, work: str, done: set[int]) -> None:
        """Note what was acknowledged."""
        self.acknowledged[work] |= done
        self.state.write_text(json.dumps({work: sorted(done) for work, done in self.acknowledged.items()}))

    def expected(self, count: int) -> list[int]:
        """The first rows that the undisturbed run asks for."""
        while len(self._expected) < count:
            self._expected.append(next(self._more).index)
        return self._expected[:count]

    def examine(self, number: int, work: str, delay: float) -> Kill:
        """What a kill has left."""
        path = self.folder / f"{work}.altmas"
        in_write = path.with_name(path.name + "-journal").exists()
        with altmas.Session.open(path) as session:
            look = {"tell": self._told, "import": self._imported, "rule": self._ruled}[work]
            recorded, lost, half, same_next = look(session, self.acknowledged[work])
            integrity = session.integrity()
        count = len(self.acknowledged[work])
        return Kill(number, work, delay * 1e3, count, recorded, lost, half, integrity, same_next, in_write)

    def _told(self, session: altmas.Session, acknowledged: set[int]) -> tuple[int, int, int, bool]:
        labels, classes = session.history.labels, session.pool.classes
        rest = session.status().outstanding or BATCH
        rows = [*labels, *(query.index for query in session.ask(rest))]
        lost = sum(row not in labels or classes[labels[row]] != self.truth[row] for row in acknowledged)
        return len(labels), lost, 0, rows == self.expected(len(labels) + rest)

    def _imported(self, session: altmas.Session, acknowledged: set[int]) -> tuple[int, int, int, bool]:
        events = [event for event in session.events() if event["kind"] in ("label", "adjudication")]
        answers = [(int(event["point"]), event["annotator"], event["label"]) for event in events]
        complete = half = 0
        recorded = set(answers)
        blocks = set()
        for block in range(1 + max((row // BLOCK for row, *_ in answers), default=-1)):
            expected = {
                (row, name, label)
                for row in rows_of(block)
                for name, label in {**votes_on(row), "eve": self.truth[row]}.items()
            }
            complete += expected <= recorded
            half += bool(expected & recorded) and not expected <= recorded
            blocks |= {block} if expected <= recorded else set()
        half += len(answers) != len(recorded)  # nothing twice
        return complete, len(acknowledged - blocks), half, True

    def _ruled(self, session: altmas.Session, acknowledged: set[int]) -> tuple[int, int, int, bool]:
        steps = steps_taken(session)
        lost = sum(step >= steps for step in acknowledged)
        labels, half = session.history.labels, 0
        for row in range(-(-steps // STEPS)):
            done = min(STEPS, steps - STEPS * row)
            half += set(session.votes(row)) != {"ana", "bob"}
            holds = votes_on(row)["ana"] if done == 1 else CLASSES[(row + (2 if done == 3 else 1)) % 3]
            lost += session.pool.classes[labels[row]] != holds
        half += sum(event["kind"] == "label" for event in session.events()) % 2
        return steps, lost, half, True


def kills(folder: Path, count: int, longest: float, *, first: int = 0, seed: int = 0) -> Iterator[Kill]:
    """What the kills from `first` to `count` left, each up to `longest` seconds after the process was ready."""
    witness = Witness(folder)
    command = [sys.executable, "-m", "benchmarks.operations.kill9", "--starter", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        for number in range(first, count):
            work = list(WORK)[number % len(WORK)]
            delay = random.Random(f"{seed} {number}").uniform(0, longest)
            witness.add(work, _run_and_kill(process, work, delay))
            yield witness.examine(number, work, delay)


def _run_and_kill(starter: subprocess.Popen[str], work: str, delay: float) -> set[int]:
    """What a process acknowledged before it was killed."""
    assert starter.stdin is not None and starter.stdout is not None
    starter.stdin.write(f"{work}\n")
    starter.stdin.flush()
    lines: list[str] = []
    while not ("ready\n" in lines and (started := [line for line in lines if line.startswith("started ")])):
        lines.append(starter.stdout.readline())
        if lines[-1] in ("", "dead\n"):
            raise RuntimeError("the process did not start to work")
    time.sleep(delay)
    os.kill(int(started[0].split()[1]), signal.SIGKILL)
    lines += iter(starter.stdout.readline, "dead\n")
    return {int(done[1]) for line in lines if (done := re.fullmatch(r"done (\d+)\.\n", line))}


# ---------------------------------------------------------------- the table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--longest", type=float, default=0.4, help="seconds of work at most before each kill")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--folder", type=Path, default=RUNS, help="where an interrupted run goes on")
    parser.add_argument("--starter", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.starter:
        starter(options.starter)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    runs = store.Runs(options.folder / "kills.jsonl", "kill")
    results = [Kill(**run) for run in runs.read()]
    for kill in kills(options.folder, options.kills, options.longest, first=len(results)):
        results.append(kill)
        runs.add(asdict(kill))
        print(f"\rkill {kill.kill + 1}", end="", file=sys.stderr, flush=True)
    store.write_csv(options.out, ({**asdict(kill), "after_ms": round(kill.after_ms, 1)} for kill in results))
    for work in WORK:
        print(_summary(work, [kill for kill in results if kill.work == work]))
    sys.exit(not all(kill.harmless for kill in results))


def _summary(work: str, results: list[Kill]) -> str:
    last = results[-1]
    return (
        f"{work}: {len(results)} kills, {sum(kill.in_write for kill in results)} during a write; "
        f"{last.acknowledged} acknowledged, {last.recorded} recorded, {max(kill.lost for kill in results)} lost, "
        f"{max(kill.half for kill in results)} half; {sum(not kill.harmless for kill in results)} kills did harm"
    )


if __name__ == "__main__":
    main()
