"""LabelStore: one SQLite file (or memory) that only ever grows, read back in order.

events  one row for each thing that happened; triggers refuse to change or delete a row, and each row's `hash`
        covers the row and the hash before it, so the last hash names the whole log
leases  who is looking at which point until when; no part of the log, because leases expire without anybody
        doing anything: they decide who is shown a point, never which points are drawn or what is estimated
parts   the pool, when it lived in memory
views   `votes` and `labels` give readers with plain sqlite3 the current state

A write is on disk before `transaction` ends: rollback journal, synchronous=EXTRA (file and directory are synced).
That journal mode leaves one complete file whenever no write is under way, and works on network shares.
"""

import hashlib
import json
import os
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from altmas.errors import FileError, NewerSession, NotASession, SessionExists, StoreFailure
from altmas.session.arrays import unpack

APPLICATION_ID = 0x414C544D  # "ALTM"
SCHEMA_VERSION = 1
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {}
"""MIGRATIONS[v] brings a file from schema version v to v + 1."""

BUSY_SECONDS = 10.0
"""How long a write waits for another process to finish its own."""

SCHEMA = """
CREATE TABLE events (
    seq       INTEGER PRIMARY KEY,
    at        TEXT NOT NULL,      -- UTC, ISO 8601
    kind      TEXT NOT NULL,      -- created, draw, label, skip, unsure, undo, adjudication, reveal, note, estimate, ...
    annotator TEXT,               -- NULL: nobody named
    point     TEXT,               -- id of the point
    label     TEXT,               -- class name
    seconds   REAL,               -- how long the annotator looked
    refers    INTEGER,            -- seq of the event that this one takes back
    body      TEXT NOT NULL,      -- JSON
    data      BLOB,               -- arrays, as .npz
    hash      TEXT NOT NULL       -- SHA-256 of this row and the hash before it
);
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TABLE leases (point TEXT PRIMARY KEY, annotator TEXT NOT NULL, until REAL NOT NULL);
CREATE TABLE parts (name TEXT NOT NULL, chunk INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (name, chunk));
CREATE VIEW votes AS
    WITH standing AS (
        SELECT *, min(seq) OVER one AS first, max(seq) OVER one AS last FROM events
        WHERE kind IN ('label', 'skip', 'unsure')
          AND seq NOT IN (SELECT refers FROM events WHERE kind = 'undo')
        WINDOW one AS (PARTITION BY point, coalesce(annotator, ''))
    )
    SELECT point, annotator, kind, label, seconds, at, seq, first FROM standing WHERE seq = last ORDER BY first;
CREATE VIEW labels AS
    WITH ruled AS (
        SELECT point, label, annotator, at, seq, max(seq) OVER (PARTITION BY point) AS last FROM events
        WHERE kind = 'adjudication' AND seq NOT IN (SELECT refers FROM events WHERE kind = 'undo')
    ), voted AS (
        SELECT point, label, annotator, at, seq, first, min(first) OVER (PARTITION BY point) AS earliest FROM votes
        WHERE kind = 'label'
    )
    SELECT point, label, annotator, at, seq FROM ruled WHERE seq = last
    UNION ALL
    SELECT point, label, annotator, at, seq FROM voted
    WHERE first = earliest AND point NOT IN (SELECT point FROM ruled)
    ORDER BY seq;
"""


@dataclass(frozen=True)
class Entry:
    """Something that happened and is to be written down; the columns of `events` that the writer chooses."""

    kind: str
    annotator: str | None = None
    point: str | None = None
    label: str | None = None
    seconds: float | None = None
    refers: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    data: bytes | None = None


@dataclass(frozen=True)
class Event(Entry):
    """An entry as it stands in the log."""

    seq: int = 0
    at: str = ""
    hash: str = ""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays stored with the event."""
        return unpack(self.data) if self.data is not None else {}


COLUMNS = "kind, annotator, point, label, seconds, refers, body, data, seq, at"


def chained(before: str, row: tuple[Any, ...]) -> str:
    """SHA-256 over the hash before and the columns of a row, in the order of COLUMNS."""
    digested = [hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else value for value in row]
    return hashlib.sha256((before + json.dumps(digested)).encode()).hexdigest()


class LabelStore:
    """The log of one session, in a file or in memory; may be used from several threads and several processes."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self.path = path
        self.lock = threading.RLock()
        """Held while the file is read or written, never while a method thinks."""
        self._connection = connection
        self._inode = _inode(path)
        self._last = (0, "")  # seq and hash of the newest committed event that was read or written
        self._tip = self._last  # the same, with what the transaction under way has appended
        self.close = weakref.finalize(self, connection.close)

    @classmethod
    def create(cls, path: Path | None, parts: Iterable[tuple[str, int, bytes]], first: Entry) -> "LabelStore":
        """A new store with the pool's parts and its first event: complete in its place, or not there at all."""
        if path is None:
            store = cls(sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None), None)
            store._fill(parts, first)
            return store
        if path.exists():
            raise SessionExists(f"{path} exists already; open it with Session.open, or pass exist_ok=True to go on")
        if not path.parent.is_dir():
            raise StoreFailure(f"{path}: the folder {path.parent} does not exist; nothing was created")
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
        try:
            with _said(path, "nothing was created"):
                connection = _connect(draft, read_only=False)
            store = cls(connection, draft)
            with _said(path, "nothing was created"):
                store._fill(parts, first)
            store.close()
            _put_in_place(draft, path)
        finally:
            for leftover in (draft, draft.with_name(draft.name + "-journal")):
                leftover.unlink(missing_ok=True)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> "LabelStore":
        """The store in a file; FileError, NotASession, NewerSession or StoreFailure says why it cannot be."""
        _look_at(path)
        with _said(path, "nothing was read"):
            connection = _connect(path, read_only=read_only)
            try:
                _check_version(connection, path, read_only)
            except BaseException:
                connection.close()
                raise
        return cls(connection, path)

    def _fill(self, parts: Iterable[tuple[str, int, bytes]], first: Entry) -> None:
        self._connection.executescript(SCHEMA)
        self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        with self.transaction():
            self._connection.executemany("INSERT INTO parts VALUES (?, ?, ?)", parts)
            self.append([first])
        self._last = self._tip = (0, "")  # whoever opens the store reads from the beginning

    # ------------------------------------------------------------ the log

    def events(self, after: int = 0) -> list[Event]:
        """Every event with a larger seq, in order; NotASession if the chain of hashes is broken."""
        query = f"SELECT {COLUMNS}, hash FROM events WHERE seq > ? ORDER BY seq"
        with self.lock, _said(self.path, "nothing was recorded"):
            rows = self._connection.execute(query, (after,)).fetchall()
            if after == self._last[0]:
                for row in rows:
                    self._check(row)
            return [_event(row) for row in rows]

    def _check(self, row: tuple[Any, ...]) -> None:
        """Move on by one event, whose hash must follow from the one before."""
        seq, digest = row[-3], row[-1]
        last, before = self._last
        if seq != last + 1 or digest != chained(before, row[:-1]):
            raise NotASession(f"{self.path} was changed or damaged: event {seq} does not match its hash")
        self._last = self._tip = (seq, digest)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes inside are on disk together when it ends, or none is (StoreFailure)."""
        with self.lock, _said(self.path, "nothing was recorded"):
            if self.path is not None and _inode(self.path) != self._inode:
                raise StoreFailure(f"{self.path} was moved, deleted or replaced meanwhile; nothing was recorded")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._tip = self._last
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._last = self._tip

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Writes inside are undone together if something is raised; inside a `transaction`, which goes on."""
        tip = self._tip
        self._connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            self._tip = tip
            if self._connection.in_transaction:  # SQLite ends the whole transaction by itself when the disk is full
                self._connection.execute("ROLLBACK TO part")
                self._connection.execute("RELEASE part")
            raise
        self._connection.execute("RELEASE part")

    def append(self, entries: Iterable[Entry]) -> list[Event]:
        """The entries as written; inside a `transaction`, with every earlier event read."""
        return [self._append(entry) for entry in entries]

    def _append(self, entry: Entry) -> Event:
        seq, before = self._tip
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        body = json.dumps(entry.body, ensure_ascii=False)
        said = (entry.kind, entry.annotator, entry.point, entry.label, entry.seconds, entry.refers, body, entry.data)
        columns = (*said, seq + 1, at)
        row = (*columns, chained(before, columns))
        self._connection.execute(f"INSERT INTO events ({COLUMNS}, hash) VALUES ({', '.join('?' * len(row))})", row)
        self._tip = (seq + 1, row[-1])
        return _event(row)

    # ------------------------------------------------------------ leases and parts

    def leases(self, now: float) -> dict[str, tuple[str, float]]:
        """{point: (annotator, until)} of every lease that has not expired."""
        with self.lock, _said(self.path, "nothing was recorded"):
            rows = self._connection.execute("SELECT point, annotator, until FROM leases WHERE until > ?", (now,))
            return {point: (annotator, until) for point, annotator, until in rows}

    def holder(self, point: str, now: float) -> str | None:
        """Who holds the lease on a point, if anybody."""
        query = "SELECT annotator FROM leases WHERE point = ? AND until > ?"
        with self.lock, _said(self.path, "nothing was recorded"):
            row = self._connection.execute(query, (point, now)).fetchone()
            return None if row is None else str(row[0])

    def lease(self, points: Iterable[str], annotator: str, until: float) -> None:
        """Give or renew leases; inside a `transaction`."""
        rows = [(point, annotator, until) for point in points]
        self._connection.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", rows)

    def release(self, annotator: str | None, point: str | None = None) -> None:
        """End the lease of one annotator on a point, or all of them; inside a `transaction`."""
        where = "" if point is None else " AND point = ?"
        self._connection.execute(
            f"DELETE FROM leases WHERE annotator = ?{where}", (annotator, point)[: 1 + bool(where)]
        )

    def part(self, name: str) -> Iterator[bytes]:
        """The chunks of one part of the archived pool, in order."""
        with self.lock, _said(self.path, "nothing was read"):
            for (data,) in self._connection.execute("SELECT data FROM parts WHERE name = ? ORDER BY chunk", (name,)):
                yield data

    def integrity(self) -> str:
        """What SQLite's own integrity check says: "ok", or the faults it found."""
        with self.lock, _said(self.path, "nothing was read"):
            return "\n".join(str(row[0]) for row in self._connection.execute("PRAGMA integrity_check"))


def _event(row: tuple[Any, ...]) -> Event:
    kind, annotator, point, label, seconds, refers, body, data, seq, at, digest = row
    return Event(kind, annotator, point, label, seconds, refers, json.loads(body), data, seq, at, digest)


def _inode(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    mode = "ro" if read_only else "rwc"
    address = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _put_in_place(draft: Path, path: Path) -> None:
    """Move the finished draft to its name, never over a file that appeared meanwhile."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise SessionExists(f"{path} exists already; open it with Session.open, or pass exist_ok=True") from None
    except OSError as cause:  # a file system without hard links
        if path.exists():
            raise SessionExists(f"{path} exists already; open it with Session.open, or pass exist_ok=True") from cause
        os.replace(draft, path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _look_at(path: Path) -> None:
    """Refuse what cannot be a session before SQLite sees it."""
    if not path.exists():
        raise FileError(f"{path} does not exist; create a session with Session.create or `altmas init`")
    if path.is_dir():
        raise NotASession(f"{path} is a folder; expected the file of a session")
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as cause:
        raise StoreFailure(f"{path} cannot be read: {cause.strerror}") from cause
    if not head:
        raise NotASession(f"{path} is empty; expected the file of a session")
    if head != b"SQLite format 3\x00":
        raise NotASession(f"{path} is not an altmas session: it begins with {head[:12]!r}, not as an SQLite file does")


def _check_version(connection: sqlite3.Connection, path: Path, read_only: bool) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise NotASession(f"{path} is an SQLite database, but not an altmas session")
    if version > SCHEMA_VERSION:
        raise NewerSession(
            f"{path} was written by a later version of altmas (file format {version}, this one knows up to "
            f"{SCHEMA_VERSION}); upgrade altmas to open it; the file was not touched"
        )
    if version < SCHEMA_VERSION:
        if version < 1:
            raise NotASession(f"{path} is damaged: it claims the file format {version}, which never was")
        if read_only:
            raise StoreFailure(f"{path} has the older file format {version}; open it once for writing to upgrade it")
        _migrate(connection, path, version)


def _migrate(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Bring the file to this schema in one transaction, after a copy of it was put beside it."""
    backup = sqlite3.connect(path.with_name(f"{path.name}.format-{version}.bak"))
    try:
        connection.backup(backup)
    finally:
        backup.close()
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in range(version, SCHEMA_VERSION):
            MIGRATIONS[step](connection)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


@contextmanager
def _said(path: Path | None, outcome: str) -> Iterator[None]:
    """SQLite's errors as a sentence about this file."""
    try:
        yield
    except UnicodeDecodeError as cause:
        raise NotASession(f"{path} is damaged ({cause.reason}); {outcome}; restore it from a copy") from cause
    except sqlite3.Error as cause:
        name = getattr(cause, "sqlite_errorname", "")
        where = path if path is not None else "the session in memory"
        damaged = ("malformed", "no such table", "no such column", "Could not decode")
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or any(sign in str(cause) for sign in damaged):
            raise NotASession(f"{where} is damaged ({cause}); {outcome}; restore it from a copy") from cause
        raise StoreFailure(f"{where}: {_reason(name, cause)}; {outcome}") from cause


def _reason(name: str, cause: sqlite3.Error) -> str:
    if name.startswith("SQLITE_FULL"):
        return "the disk is full"
    if name.startswith("SQLITE_READONLY"):
        return "the file is read-only"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"another process kept the file locked for {BUSY_SECONDS:g} seconds"
    if name.startswith("SQLITE_CANTOPEN"):
        return "the file or its journal cannot be opened (is the folder writable?)"
    if name.startswith("SQLITE_IOERR"):
        return f"the disk refused to read or write ({cause}; is it full?)"
    return str(cause)
