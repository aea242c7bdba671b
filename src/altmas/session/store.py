"""LabelStore: one SQLite file (or memory) that only ever grows, read back in order.

events  one row for each thing that happened; triggers refuse to change or delete a row, and each row's `hash`
        covers the row and the hash before it, so the last hash names the whole log
leases  who is looking at which point until when; no part of the log, because leases expire without anybody
        doing anything: they decide who is shown a point, never which points are drawn or what is estimated;
        one row notes the newest event, because a log that lost its end would still have hashes that fit
parts   the pool, when it lived in memory
views   `votes` and `labels` give readers with plain sqlite3 the current state

A write is on disk before `transaction` ends: rollback journal, synchronous=EXTRA (file and directory are synced).
That journal mode leaves one complete file whenever no write is under way, and works on network shares.
"""

import hashlib
import itertools
import json
import math
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from altmas.errors import NotASession, StoreFailure
from altmas.session import session_file
from altmas.session.arrays import unpack
from altmas.session.session_file import Connection, Opened, check_schema, reason, said


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


NEWEST = "altmas: newest event"
"""Point of the row in `leases` that notes the newest event: its hash as the annotator, its seq as an end long past."""


def chained(before: str, row: tuple[Any, ...]) -> str:
    """SHA-256 over the hash before and the columns of a row, in the order of COLUMNS."""
    digested = [hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else value for value in row]
    return hashlib.sha256((before + json.dumps(digested)).encode()).hexdigest()


class LabelStore:
    """The log of one session, in a file or in memory; may be used from several threads and several processes."""

    def __init__(self, file: Opened, path: Path | None, read_only: bool = False) -> None:
        self.path, self.read_only = path, read_only
        self.recovered = file.copy is not None
        """Whether a copy is read, because a crash has left an unfinished write that must not be undone here."""
        self.lock = threading.RLock()
        """Held while the file is read or written, never while a method thinks."""
        self._connection: Connection = file.connection
        self._inode = _inode(path)
        self._schema = self._pragma("schema_version")
        self._last = (0, "")  # seq and hash of the newest committed event that was read or written
        self._tip = self._last  # the same, with what the transaction under way has appended
        self.close = weakref.finalize(self, _close, self.lock, file)

    @classmethod
    def create(cls, path: Path | None, parts: Iterable[tuple[str, int, bytes]], first: Entry) -> "LabelStore":
        """A new store with the pool's parts and its first event: complete in its place, or not there at all."""
        if path is None:
            store = cls(Opened(session_file.connect(None)), None)
            store._fill(parts, first)
            return store
        with session_file.draft(path) as (connection, file):
            store = cls(Opened(connection), file)
            with said(path, "nothing was created"):
                store._fill(parts, first)
            session_file.put_in_place(file, path)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> "LabelStore":
        """The store in a file; FileError, NotASession, NewerSession or StoreFailure says why it cannot be."""
        return cls(session_file.opened(path, read_only=read_only), path, read_only)

    def _fill(self, parts: Iterable[tuple[str, int, bytes]], first: Entry) -> None:
        self._connection.executescript(session_file.schema())
        self._connection.execute(f"PRAGMA application_id = {session_file.APPLICATION_ID}")
        self._connection.execute(f"PRAGMA user_version = {session_file.SCHEMA_VERSION}")
        self._schema = self._pragma("schema_version")
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO parts VALUES (?, ?, ?)", parts)
        self.append([first])
        self._note_newest()
        self._connection.execute("COMMIT")
        self._last = self._tip = (0, "")  # whoever opens the store reads from the beginning

    def _pragma(self, name: str) -> int:
        return int(self._connection.patiently(f"PRAGMA {name}").fetchone()[0])

    # ------------------------------------------------------------ the log

    def events(self, after: int = 0) -> list[Event]:
        """Every event with a larger seq, in order; NotASession if the log or its chain of hashes is broken.

        StoreFailure if the newest event that was read or written is no longer there: another copy was put in place.
        """
        with self.lock, said(self.path, "nothing was recorded"):
            if after != self._tip[0]:
                self._refuse_other_copy(self._tip)
                return [event for event in self._chain((0, ""), checked=self._tip[0]) if event.seq > after]
            newest = self._newest() if self._tip[0] == 0 else None
            news = list(self._chain(self._tip))
            if newest is not None and (len(news) < newest[0] or news[newest[0] - 1].hash != newest[1]):
                raise NotASession(
                    f"{self.path} was changed or damaged: its log ends with event {len(news)}, but event {newest[0]} "
                    "had been written; nothing was read; restore it from a copy"
                )
            if news:
                self._last = self._tip = (news[-1].seq, news[-1].hash)
            return news

    def _newest(self) -> tuple[int, str] | None:
        """Seq and hash of the newest event as noted beside the log; None in files of versions that noted nothing."""
        query = "SELECT until, annotator FROM leases WHERE point = ?"
        row = self._connection.patiently(query, (NEWEST,)).fetchone()
        if row is None:
            return None
        if not (isinstance(row[0], float) and 1 <= row[0] < 2**53):
            raise NotASession(f"{self.path} is damaged: the note of its newest event is none; nothing was read")
        return int(row[0]), row[1]

    def _note_newest(self) -> None:
        """Note the newest event beside the log: a log that lost its end would still be a chain of hashes that fit."""
        seq, digest = self._tip
        self._connection.execute(
            "INSERT INTO leases VALUES (?, ?, ?) "
            "ON CONFLICT (point) DO UPDATE SET annotator = excluded.annotator, until = excluded.until",
            (NEWEST, digest, seq),
        )

    def _chain(self, last: tuple[int, str], checked: int = 0) -> Iterator[Event]:
        """The events after the last one, which has to be there still; those after `checked` must match their hash."""
        self._refuse_other_copy(last)
        query = f"SELECT {COLUMNS}, hash FROM events WHERE seq > ? ORDER BY seq"
        with closing(self._connection.patiently(query, (last[0],))) as rows:
            for row in rows:
                seq, digest = row[-3], row[-1]
                if seq != last[0] + 1 or (seq > checked and digest != chained(last[1], row[:-1])):
                    raise NotASession(f"{self.path} was changed or damaged: event {seq} does not match its hash")
                last = (seq, digest)
                yield _event(row, self.path)

    def _refuse_other_copy(self, last: tuple[int, str]) -> None:
        """StoreFailure if the newest event that was read or written here is not in the file any more."""
        seq, digest = last
        if seq and self._hash_of(seq) != digest:
            raise StoreFailure(
                f"{self.path} was overwritten by another copy while it was open: event {seq}, which this session "
                "knows, is not in it; nothing was recorded. What was told after that copy was made is not in the file: "
                "put the right copy in its place, then open the session again"
            )

    def _hash_of(self, seq: int) -> str | None:
        row = self._connection.patiently("SELECT hash FROM events WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else row[0]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes inside are on disk together when it ends, or none is (StoreFailure)."""
        with self.lock, said(self.path, "nothing was recorded"):
            self._refuse_other_file()
            self._connection.patiently("BEGIN IMMEDIATE")
            try:
                self._look_again()
                yield
                if self._tip != self._last:
                    self._note_newest()
                self._commit()
            except BaseException:
                self._tip = self._last
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._last = self._tip

    def _refuse_other_file(self) -> None:
        if self.path is not None and _inode(self.path) != self._inode:
            raise StoreFailure(f"{self.path} was moved, deleted or replaced meanwhile; nothing was recorded")

    def _look_again(self) -> None:
        """Refuse to write if the file, its schema or its log are not as they were left."""
        self._refuse_other_file()
        self._connection.execute("PRAGMA shrink_memory")  # pages of another copy with as many writes would be believed
        now = self._pragma("schema_version")
        if now != self._schema:
            check_schema(self._connection, self.path, session_file.SCHEMA_VERSION)
            self._schema = now
        self._refuse_other_copy(self._last)

    def _commit(self) -> None:
        """Commit; when the disk refuses, StoreFailure says whether the events are in the file all the same."""
        try:
            self._connection.patiently("COMMIT")
        except sqlite3.Error as cause:
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            self._say_what_is_there(cause)
            raise

    def _say_what_is_there(self, cause: sqlite3.Error) -> None:
        """StoreFailure if what was to be committed is in the file, or if that cannot be known."""
        seq, digest = self._tip
        if self._tip == self._last:
            return
        try:
            recorded = self._hash_of(seq) == digest
        except sqlite3.Error:
            raise StoreFailure(
                f"{self.path}: {reason(cause)}; whether it was recorded is not known: open the session again and look"
            ) from cause
        if recorded:
            raise StoreFailure(
                f"{self.path}: {reason(cause)}; it was recorded, but may be missing after a power failure: "
                "look into the session before you repeat it"
            ) from cause

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
        chosen = (entry.kind, entry.annotator, entry.point, entry.label, entry.seconds, entry.refers, body, entry.data)
        columns = (*chosen, seq + 1, at)
        row = (*columns, chained(before, columns))
        self._connection.execute(f"INSERT INTO events ({COLUMNS}, hash) VALUES ({', '.join('?' * len(row))})", row)
        self._tip = (seq + 1, row[-1])
        return _event(row, self.path)

    # ------------------------------------------------------------ leases and parts

    def leases(self, now: float) -> dict[str, tuple[str, float]]:
        """{point: (annotator, until)} of every lease that has not expired."""
        with self.lock, said(self.path, "nothing was recorded"):
            query = "SELECT point, annotator, until FROM leases WHERE until > ?"
            in_force: dict[str, tuple[str, float]] = {}
            with closing(self._connection.patiently(query, (now,))) as rows:
                for point, annotator, until in rows:
                    if point in in_force:
                        raise NotASession(f"{self.path} is damaged: two leases on point {point!r}; nothing was read")
                    if isinstance(point, str) and isinstance(annotator, str) and isinstance(until, float):
                        in_force[point] = (annotator, until)
            return in_force

    def holder(self, point: str, now: float) -> str | None:
        """Who holds the lease on a point, if anybody."""
        query = "SELECT annotator FROM leases WHERE point = ? AND until > ?"
        with self.lock, said(self.path, "nothing was recorded"):
            row = self._connection.patiently(query, (point, now)).fetchone()
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

    def add_parts(self, parts: Iterable[tuple[str, int, bytes]]) -> None:
        """Write chunks of parts that are not there yet; inside a `transaction`."""
        self._connection.executemany("INSERT INTO parts VALUES (?, ?, ?)", parts)

    def part(self, name: str) -> Iterator[bytes]:
        """The chunks of one part of the archived pool, in order."""
        for chunk in itertools.count():
            data = self._chunk(name, chunk)
            if data is None:
                return
            yield data

    def _chunk(self, name: str, chunk: int) -> bytes | None:
        query = "SELECT data FROM parts WHERE name = ? AND chunk = ?"
        with self.lock, said(self.path, "nothing was read"):
            row = self._connection.patiently(query, (name, chunk)).fetchone()
        if row is not None and not isinstance(row[0], bytes):
            raise NotASession(f"{self.path} is damaged: chunk {chunk} of {name!r} is not made of bytes")
        return None if row is None else row[0]

    def integrity(self) -> str:
        """What SQLite's own integrity check says: "ok", or the faults it found."""
        with self.lock, said(self.path, "nothing was read"):
            return session_file.integrity(self._connection)


def _event(row: tuple[Any, ...], path: Path | None) -> Event:
    """A row of `events`; NotASession if a column is of a type that altmas does not write."""
    kind, annotator, point, label, seconds, refers, body, data, seq, at, digest = row
    texts = [kind, at, body, *(value for value in (annotator, point, label) if value is not None)]
    try:
        content = json.loads(body)
        datetime.fromisoformat(at)
        sound = (
            all(isinstance(text, str) for text in texts)
            and isinstance(content, dict)
            and (seconds is None or (isinstance(seconds, int | float) and math.isfinite(seconds)))
            and (refers is None or isinstance(refers, int))
            and (data is None or isinstance(data, bytes))
        )
    except (TypeError, ValueError, RecursionError):
        sound = False
    if not sound:
        raise NotASession(f"{path} is damaged: event {seq} is none that altmas writes; nothing was read")
    return Event(kind, annotator, point, label, seconds, refers, content, data, seq, at, digest)


def _close(lock: threading.RLock, file: Opened) -> None:
    """Close the file when nobody reads or writes it: SQLite crashes if a query is under way in another thread."""
    with lock:
        file.close()


def _inode(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino
