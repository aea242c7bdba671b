"""Open session files that were changed in every way that files are changed, and look at what happens.

Each file is a sound session, changed at random: bytes, pages, length, what lies beside it, rows of its tables, its
schema; or its log, plan and arrays with all hashes computed anew, as somebody would who wants it to be believed. It is
opened read-only, estimated, looked at by the doctor, then opened for writing, asked, told and opened again.
  refused    a sentence says why it cannot be opened or used
  same       it is what it was: labels, pool and log
  other      another session, consistent in itself; possible only where hashes were computed anew
  fault      what must not be: a traceback, a hang, a crash, another content without a word, a file that reading
             changed, a label that was acknowledged and is not there

    python -m benchmarks.operations.mutated_sessions --files 1000

A run that was interrupted goes on where it stopped.
"""

import argparse
import json
import random
import select
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import altmas
from altmas.doctor import examine_session
from altmas.errors import AltmasError
from altmas.session.arrays import pack
from altmas.session.session_file import schema
from benchmarks import store
from benchmarks.operations.crafted_sessions import Row, rewritten, with_sql

ROOT = Path(__file__).parent.parent.parent
RESULTS = store.RESULTS / "mutated_sessions.csv"
RUNS = store.RUNS / "mutated_sessions.jsonl"
PATIENCE = 60.0
"""Seconds after which a file is said to hang."""


@dataclass(frozen=True)
class Outcome:
    """What became of one file; `fault` is empty if nothing happened that must not."""

    file: int
    change: str
    outcome: str
    fault: str


# ---------------------------------------------------------------- sound files


def sound(folder: Path) -> list[Path]:
    """Session files with events of every kind, by two methods."""
    return [_made(folder / f"{method}.altmas", method) for method in ("tradition", "assured")]


def _made(path: Path, method: str) -> Path:
    rng = np.random.default_rng(1)
    classes = np.array(["cat", "dog", "owl"])
    pool = altmas.Pool(
        rng.normal(size=(60, 3)),
        classes[rng.integers(0, 3, 60)],
        scores=rng.dirichlet(np.ones(3), 60),
        classes=classes.tolist(),
        ids=[f"p{row}" for row in range(60)],
        slices={"site": np.where(np.arange(60) % 2, "north", "south")},
        items=[f"text {row}" for row in range(60)],
    )
    options: dict[str, Any] = {"metrics": ["accuracy", "recall[cat]"], "budget": 40, "targets": {"accuracy": 0.05}}
    with altmas.Session.create(path, pool, method=method, double_share=0.2, seed=1, **options) as session:
        for query in session.ask(12, "ana"):
            session.tell(query.id, str(classes[query.index % 3]), "ana", seconds=1.5)
        session.tell("p3", "owl", "bob")
        session.adjudicate("p3", "dog", "eve")
        session.skip("p4", "torn", "bob")
        session.tell("p5", "cat")
        session.undo()
        session.reveal("p6", "ana")
        session.note("nothing")
        session.estimate()
        session.ask(3, "bob")
    return path


# ---------------------------------------------------------------- changes


def change_bytes(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 3, 40])):
        content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(content)


def change_head(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 2, 5])):
        content[rng.randrange(16, 100)] = rng.choice([0, 1, 2, 255, rng.randrange(256)])
    path.write_bytes(content)


def cut(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content))] + bytes(rng.choice([0, 0, 4096])))


PAGE = 4096


def move_pages(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    pages = [content[start : start + PAGE] for start in range(0, len(content), PAGE)]
    first, second = rng.randrange(len(pages)), rng.randrange(len(pages))
    how = rng.choice(["swap", "copy", "zero", "insert"])
    if how == "swap":
        pages[first], pages[second] = pages[second], pages[first]
    elif how == "copy":
        pages[first] = pages[second]
    elif how == "zero":
        pages[first] = bytes(PAGE)
    else:
        pages.insert(first, rng.randbytes(PAGE))
    path.write_bytes(b"".join(pages))


def put_beside(path: Path, rng: random.Random) -> None:
    """A journal or a write-ahead log of nonsense, of a part of the file, or that looks sound at its beginning."""
    content = path.read_bytes()
    start = rng.randrange(len(content))
    journal = bytes.fromhex("d9d505f920a163d7") + rng.randbytes(20) + bytes(484) + content[:PAGE]
    beside = [rng.randbytes(3000), content[start : start + 9000], journal, bytes(512)]
    path.with_name(path.name + rng.choice(["-journal", "-wal"])).write_bytes(rng.choice(beside))


VALUES: list[Any] = [
    *(None, "", "x", "p1", "cat", "\x00", "=1+1", -1, 0, 1, 2**40, 2**62, 1.5, 1e308, float("inf"), b"", b"\x00\xff"),
    *("[" * 50_000, "{}", "[]", "1e999", "label", "undo", "draw", "2026-01-01T00:00:00+00:00", "é" * 1000),
]
"""What a column is changed to."""

COLUMNS = ("at", "kind", "annotator", "point", "label", "seconds", "refers", "body", "data")


def change_row(path: Path, rng: random.Random) -> None:
    """A row of a table, as somebody would with a database browser: hashes are as they were."""
    triggers = [line for line in schema().splitlines() if line.startswith("CREATE TRIGGER")]
    table = rng.choice(["events", "events", "parts", "leases"])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for line in triggers:
            connection.execute(f"DROP TRIGGER {line.split()[2]}")
        rows = [row for (row,) in connection.execute(f"SELECT rowid FROM {table}")]
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        if rows:
            row, column, value = rng.choice(rows), rng.choice(columns), rng.choice(VALUES)
            statements = [
                (f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = ?", (value, row)),
                (f"DELETE FROM {table} WHERE rowid = ?", (row,)),
            ]
            try:
                connection.execute(*statements[rng.random() < 0.2])
            except sqlite3.IntegrityError:
                connection.execute(*statements[1])
        for line in triggers:
            connection.execute(line)


def change_log(path: Path, rng: random.Random) -> None:
    """Columns of events, or whole events, with hashes that fit."""

    def change(rows: list[Row]) -> None:
        how = rng.choice(["column", "column", "column", "delete", "twice", "swap"])
        first, second = rng.randrange(len(rows)), rng.randrange(len(rows))
        if how == "column":
            rows[first][rng.choice(COLUMNS)] = rng.choice(VALUES)
        elif how == "delete":
            del rows[first]
        elif how == "twice":
            rows.insert(second, dict(rows[first]))
        else:
            rows[first], rows[second] = rows[second], rows[first]
        for number, row in enumerate(rows):
            row["seq"] = number + 1
            row["kind"], row["at"], row["body"] = (
                "x" if row[name] is None else row[name] for name in ("kind", "at", "body")
            )

    rewritten(path, change)


HOSTILE: list[Any] = [
    *(None, True, -1, 0, 1, 2**70, 1e308, float("nan"), "", "x", "assured", [], {}, [[]], {"x": 1}, "/dev/zero"),
    *({"$function": "os:abort"}, {"$object": "subprocess:Popen", "options": {}}, {"$tuple": [1]}, {"$lost": 1}),
    {"$partial": {"$function": "cProfile:run"}, "args": {"$tuple": ["import os; os.abort()"]}, "keywords": {}},
]
"""What a value in JSON is changed to."""


def change_json(path: Path, rng: random.Random) -> None:
    """One value somewhere in the plan or in another body, with hashes that fit."""

    def change(rows: list[Row]) -> None:
        row = rows[0] if rng.random() < 0.7 else rng.choice(rows)
        content = json.loads(row["body"])
        holders = list(_holders(content)) or [(content, "new")]
        holder, key = rng.choice(holders)
        if rng.random() < 0.2 and isinstance(holder, dict) and key in holder:
            del holder[key]
        else:
            holder[key] = rng.choice(HOSTILE)
        row["body"] = json.dumps(content)

    rewritten(path, change)


def _holders(value: Any) -> Iterator[tuple[Any, Any]]:
    """(holder, key) of every value inside a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from _holders(inner)


def change_arrays(path: Path, rng: random.Random) -> None:
    """The arrays of a draw, with hashes that fit."""

    def change(rows: list[Row]) -> None:
        row = rng.choice([row for row in rows if row["data"] is not None])
        if rng.random() < 0.4:
            content = bytearray(row["data"])
            for _ in range(rng.choice([1, 5])):
                content[rng.randrange(len(content))] = rng.randrange(256)
            row["data"] = bytes(content)
            return
        shapes: list[Any] = [np.arange(3), np.zeros(0), np.full(12, np.nan), np.array(["x"]), np.eye(2), np.array(7)]
        names = ["indices", "probabilities", "record.levels", "record.scale", "record.belief", "other"]
        row["data"] = pack({name: rng.choice(shapes) for name in rng.sample(names, rng.randrange(len(names)))})

    rewritten(path, change)


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"
SCHEMAS = [
    (
        "DROP TABLE events",
        f"CREATE VIEW events AS {ENDLESS} x AS kind, x AS annotator, x AS point, x AS label, x AS seconds, "
        "x AS refers, x AS body, x AS data, x AS seq, x AS at, x AS hash FROM n",
    ),
    ("DROP TABLE leases", f"CREATE VIEW leases AS {ENDLESS} x AS point, x AS annotator, x AS until FROM n"),
    ("DROP TABLE parts", f"CREATE VIEW parts AS {ENDLESS} 'about' AS name, x AS chunk, x AS data FROM n"),
    (f"CREATE TRIGGER more AFTER INSERT ON events BEGIN INSERT INTO leases {ENDLESS} x, x, x FROM n; END",),
    ("CREATE TRIGGER more AFTER INSERT ON events BEGIN DELETE FROM parts; END",),
    ("CREATE TRIGGER more INSTEAD OF INSERT ON labels BEGIN DELETE FROM parts; END",),
    (f"CREATE VIEW more AS {ENDLESS} x FROM n",),
    ("CREATE TABLE more (x)",),
    ("CREATE INDEX more ON events (body)",),
    ("DROP VIEW votes",),
    ("UPDATE sqlite_master SET rootpage = 2 WHERE name = 'leases'",),
    ("UPDATE sqlite_master SET sql = replace(sql, 'TEXT', 'BLOB') WHERE name = 'events'",),
    ("UPDATE sqlite_master SET sql = sql || ' ' WHERE name = 'leases'",),
    ("PRAGMA user_version = 0",),
    ("PRAGMA user_version = 2",),
    ("PRAGMA application_id = 7",),
    ("PRAGMA encoding = 'UTF-16'", "CREATE TABLE more (x)"),
    ("PRAGMA journal_mode = WAL",),
    ("PRAGMA auto_vacuum = FULL", "VACUUM"),
    ("ANALYZE",),
]


def change_schema(path: Path, rng: random.Random) -> None:
    """Views, triggers and tables that altmas did not make, and settings of the file."""
    try:
        with_sql(path, *rng.choice(SCHEMAS))
    except sqlite3.Error:
        change_bytes(path, rng)


CHANGES: dict[str, Callable[[Path, random.Random], None]] = {
    "bytes": change_bytes,
    "head": change_head,
    "cut": cut,
    "pages": move_pages,
    "beside": put_beside,
    "row": change_row,
    "schema": change_schema,
    "log": change_log,
    "json": change_json,
    "arrays": change_arrays,
}
BELIEVED = ("log", "json", "arrays")
"""Changes after which every hash fits, so that the file may be another session."""


# ---------------------------------------------------------------- what happens


def state(session: altmas.Session) -> tuple[Any, ...]:
    """What a session is: its log, its labels and its pool."""
    items = None if session.pool.items is None else list(session.pool.items)
    return session.status().digest, dict(session.history.labels), dict(session.pool.fingerprint), items


def use(path: Path, known: tuple[Any, ...], change: str) -> tuple[str, str]:
    """(outcome, fault) of one file."""
    before = path.read_bytes()
    outcome = _read(path, known)
    list(examine_session(path))
    if path.read_bytes() != before:
        return outcome, "reading changed the file"
    if outcome == "other" and change not in BELIEVED:
        return outcome, "another content without a word"
    return outcome, _write(path, outcome)


def _read(path: Path, known: tuple[Any, ...]) -> str:
    try:
        with altmas.Session.open(path, read_only=True) as session:
            outcome = "same" if state(session) == known else "other"
            list(session.events())
            session.estimate()
            session.logged_estimates()
            session.should_stop()
            return outcome
    except AltmasError:
        return "refused"


def _write(path: Path, outcome: str) -> str:
    """Why writing did harm; "" if it did none."""
    try:
        with altmas.Session.open(path) as session:
            label = session.pool.classes[0]
            point = session.pool.ids[0]
            session.tell(point, label, "zoe")
    except AltmasError:
        return ""
    try:
        with altmas.Session.open(path) as session:
            stands = session.votes(point).get("zoe") == label and session.integrity() == "ok"
            session.ask(2)
            session.undo("zoe")
    except AltmasError as error:
        return "" if outcome != "same" and "cannot go on" in str(error) else f"after an acknowledged label: {error}"
    return "" if stands else "an acknowledged label is not there"


def work() -> None:
    """Examine files named on stdin, each beside the sound file that it was made from; print what was found."""
    warnings.simplefilter("ignore")
    known: dict[str, tuple[Any, ...]] = {}
    print("ready", flush=True)
    for line in sys.stdin:
        path, original, change = json.loads(line)
        if original not in known:
            with altmas.Session.open(original, read_only=True) as session:
                known[original] = state(session)
        try:
            outcome = use(Path(path), known[original], change)
        except BaseException:
            outcome = ("traceback", traceback.format_exc(limit=-2).strip().replace("\n", " | ")[-300:])
        print("found " + json.dumps(outcome), flush=True)


class Worker:
    """A process that examines files, and is started anew when one of them makes it crash or hang."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def examined(self, path: Path, original: Path, change: str) -> tuple[str, str]:
        """(outcome, fault) of one file."""
        if self._process is None:
            self._process = self._started()
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([str(path), str(original), change]) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
        line = process.stdout.readline() if ready else ""
        if line.startswith("found "):
            outcome, fault = json.loads(line.removeprefix("found "))
            return outcome, fault
        self.close()
        return ("crash", f"{line!r}") if ready else ("hang", f"more than {PATIENCE:g} seconds")

    def _started(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "benchmarks.operations.mutated_sessions", "--worker"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        return process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def outcomes(count: int, *, first: int = 0, seed: int = 0) -> Iterator[Outcome]:
    """What became of the files from `first` to `count`."""
    with tempfile.TemporaryDirectory() as name, closing(Worker()) as worker:
        folder = Path(name)
        files = sound(folder)
        for number in range(first, count):
            rng = random.Random(f"{seed} {number}")
            change = list(CHANGES)[number % len(CHANGES)]
            original = files[(number // len(CHANGES)) % len(files)]
            case = folder / "case"
            case.mkdir()
            path = case / "changed.altmas"
            shutil.copy(original, path)
            CHANGES[change](path, rng)
            yield Outcome(number, change, *worker.examined(path, original, change))
            shutil.rmtree(case)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--run", type=Path, default=RUNS, help="where an interrupted run goes on")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
        return
    runs = store.Runs(options.run, "file")
    results = [Outcome(**run) for run in runs.read()]
    for outcome in outcomes(options.files, first=len(results)):
        results.append(outcome)
        runs.add(asdict(outcome))
        print(f"\rfile {outcome.file + 1}", end="", file=sys.stderr, flush=True)
    store.write_csv(options.out, map(asdict, results))
    for change in CHANGES:
        print(change, dict(Counter(result.outcome for result in results if result.change == change)))
    faults = [result for result in results if result.fault]
    print(f"{len(results)} files, {len(faults)} with a fault")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
