"""The SQLite file of a session: its schema, how it is opened with limits, made in its place, and what its errors mean.

A session file may have been written by anybody. Before the first query its schema is compared with the one that altmas
makes, so that no view or trigger of somebody else's is ever run; SQLite's own limits and a deadline bound the rest.
"""

import errno
import os
import secrets
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from altmas.errors import FileError, NewerSession, NotASession, SessionExists, StoreFailure
from altmas.suggest import near

APPLICATION_ID = 0x414C544D  # "ALTM"
SCHEMA_VERSION = 1
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {}
"""MIGRATIONS[v] brings a file from schema version v to v + 1."""

BUSY_SECONDS = 60.0
"""How long a call waits for other processes to finish their writes."""

CHECKED_BYTES = 64 * 2**20
"""Size up to which a file is checked as a whole by SQLite before anything is written into it."""

SCHEMAS = {
    1: """
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
}
"""The schema of each version, as a file of that version has it."""


def schema() -> str:
    """The schema of new files."""
    return SCHEMAS[SCHEMA_VERSION]


# ---------------------------------------------------------------- opening


class Connection(sqlite3.Connection):
    """A connection that interrupts what runs for longer than reading the whole file could ever take."""

    end = float("inf")
    patience = 30.0

    def limited(self, path: Path) -> None:
        """Give every query half a minute, and a second more for each MB of the file."""
        self.patience += path.stat().st_size / 2**20 if path.exists() else 0
        self.set_progress_handler(lambda: time.monotonic() > self.end, 100_000)

    def patiently(self, query: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """The cursor of a query, tried again at random short intervals while another process has the file locked.

        SQLite's own waits grow with each try, so that whoever has waited longest is least likely to be next.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            self.end = time.monotonic() + self.patience
            try:
                return self.execute(query, values)
            except sqlite3.OperationalError as cause:
                if not name_of(cause).startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                    raise
            time.sleep(0.001 + secrets.randbelow(3000) / 1e6)


def connect(path: Path | None, mode: str = "rw") -> Connection:
    """A connection that syncs every commit and trusts no schema; to memory for None."""
    address = ":memory:" if path is None else f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        address, uri=True, timeout=0, check_same_thread=False, isolation_level=None, factory=Connection
    )
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1)
        if path is not None:
            connection.limited(path)
        for pragma in ("synchronous = EXTRA", "trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
            connection.patiently(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


@dataclass(frozen=True)
class Opened:
    """A connection to a checked session file; `copy` is the folder of the copy that is read after a crash."""

    connection: Connection
    copy: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Close the connection and remove the copy."""
        self.connection.close()
        if self.copy is not None:
            self.copy.cleanup()


def opened(path: Path, *, read_only: bool) -> Opened:
    """The session file at this path; FileError, NotASession, NewerSession or StoreFailure says why it cannot be."""
    _look_at(path)
    with said(path, "nothing was read"):
        file = _connected(path, read_only=read_only)
        try:
            _check(file.connection, path, read_only=read_only)
        except BaseException:
            file.close()
            raise
    return file


def _look_at(path: Path) -> None:
    """Refuse what cannot be a session before SQLite sees it.

    The file itself is not opened: when a process closes any handle of a file, it loses the locks that SQLite holds.
    """
    try:
        info = path.stat()
    except FileNotFoundError:
        beside = [file.name for file in path.absolute().parent.glob("*.altmas")]
        raise FileError(
            f"{path} does not exist{near(path.name, beside)}; create a session with Session.create or `altmas init`"
        ) from None
    except OSError as cause:
        raise StoreFailure(f"{path} cannot be read: {cause.strerror}") from cause
    if stat.S_ISDIR(info.st_mode):
        raise NotASession(f"{path} is a folder; expected the file of a session")
    if not stat.S_ISREG(info.st_mode):
        raise NotASession(f"{path} is no regular file; expected the file of a session")
    if info.st_size == 0:
        raise NotASession(
            f"{path} is an empty file and no session; delete it, then make the session under that name (altmas init)"
        )
    if not os.access(path, os.R_OK):
        raise StoreFailure(f"{path} cannot be read: {os.strerror(errno.EACCES)}")


def _connected(path: Path, *, read_only: bool) -> Opened:
    """A connection that has read from the file; after a crash a file that is not to be written is read from a copy."""
    try:
        return _reading(connect(path, "ro" if read_only else "rw"))
    except sqlite3.DatabaseError as cause:
        if name_of(cause) == "SQLITE_NOTADB":
            raise NotASession(_no_database(path)) from None
        if not (read_only and name_of(cause) in INTERRUPTED):
            raise
    return _recovered_copy(path)


def _reading(connection: Connection, copy: tempfile.TemporaryDirectory[str] | None = None) -> Opened:
    """The connection once it has read from the file, which undoes a write that a crash left unfinished."""
    try:
        connection.patiently("PRAGMA schema_version").fetchone()
    except BaseException:
        connection.close()
        raise
    return Opened(connection, copy)


INTERRUPTED = ("SQLITE_READONLY_ROLLBACK", "SQLITE_READONLY_RECOVERY", "SQLITE_READONLY_CANTLOCK")
"""What SQLite says of a file with an unfinished write that it may not undo."""

BESIDE = ("-journal", "-wal")
"""Endings of the files in which SQLite keeps a write under way."""


def _recovered_copy(path: Path) -> Opened:
    """A connection to a copy in which the unfinished write was undone; the file stays as it is."""
    folder = tempfile.TemporaryDirectory(prefix="altmas-")
    copy = Path(folder.name) / "copy.altmas"
    try:
        for ending in ("", *BESIDE):
            if path.with_name(path.name + ending).exists():
                shutil.copyfile(path.with_name(path.name + ending), copy.with_name(copy.name + ending))
        file = _reading(connect(copy), folder)
        file.connection.execute("PRAGMA query_only = ON")
    except OSError as cause:
        folder.cleanup()
        raise StoreFailure(f"{path} cannot be copied to undo an unfinished write: {cause.strerror}") from cause
    except BaseException:
        folder.cleanup()
        raise
    return file


def _no_database(path: Path) -> str:
    """How a file begins that is none of SQLite's."""
    with path.open("rb") as file:  # nobody holds a lock on it, because SQLite cannot open it
        head = file.read(16)
    if head == b"SQLite format 3\x00":
        return f"{path} is damaged (it is no SQLite database after its first bytes); nothing was read; restore a copy"
    return f"{path} is not an altmas session: it begins with {head[:12]!r}, not as an SQLite file does"


# ---------------------------------------------------------------- checking


def _check(connection: Connection, path: Path, *, read_only: bool) -> None:
    """Refuse what is no session, is from a later version, or holds anything that altmas did not make."""
    application, version = (
        connection.patiently(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application != APPLICATION_ID:
        raise NotASession(f"{path} is an SQLite database, but not an altmas session")
    if version > SCHEMA_VERSION:
        raise NewerSession(
            f"{path} was written by a later version of altmas (file format {version}, this one knows up to "
            f"{SCHEMA_VERSION}); upgrade altmas to open it; the file was not touched"
        )
    if version not in SCHEMAS:
        raise NotASession(f"{path} is damaged: it claims the file format {version}, which never was")
    check_schema(connection, path, version)
    if version < SCHEMA_VERSION and read_only:
        raise StoreFailure(f"{path} has the older file format {version}; open it once for writing to upgrade it")
    if not read_only:
        _check_content(connection, path)
        _leave_wal(connection)
    if version < SCHEMA_VERSION:
        _migrate(connection, path, version)
        check_schema(connection, path, SCHEMA_VERSION)


def check_schema(connection: Connection, path: Path | None, version: int) -> None:
    """NotASession names a table, view, trigger or index that altmas did not make so, or that is missing."""
    rows = connection.patiently("SELECT type, name, tbl_name, sql, rootpage FROM sqlite_master LIMIT 100").fetchall()
    known = _known_schema(SCHEMAS[version])
    present = {tuple(row[:4]) for row in rows if not (row[0] == "table" and row[1] in STATISTICS)}
    strange = sorted(present - known, key=str)
    if strange:
        kind, name = strange[0][:2]
        raise NotASession(
            f"{path} holds the {kind} {name!r}, which altmas did not make so; nothing of the file was used: "
            "restore it from a copy, or remove what was added"
        )
    missing = sorted(known - present, key=str)
    if missing:
        raise NotASession(f"{path} is damaged: no such {missing[0][0]} {missing[0][1]!r}; nothing was read")
    roots = [row[4] for row in rows if row[4]]
    if len(set(roots)) < len(roots):
        raise NotASession(f"{path} is damaged: two tables share their pages; nothing was read")


STATISTICS = ("sqlite_stat1", "sqlite_stat4")
"""Tables that SQLite's own ANALYZE leaves behind."""


@cache
def _known_schema(script: str) -> frozenset[tuple[Any, ...]]:
    """(type, name, table, SQL) of everything that a schema makes."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(script)
        return frozenset(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))
    finally:
        connection.close()


def _check_content(connection: Connection, path: Path) -> None:
    """Refuse to write into a file whose pages do not fit together: a write would damage what is still sound."""
    if path.stat().st_size <= CHECKED_BYTES:
        faults = integrity(connection, 1)
        if faults != "ok":
            raise NotASession(
                f"{path} is damaged ({' '.join(faults.split())}); nothing was read; restore it from a copy"
            )


def integrity(connection: Connection, most: int = 100) -> str:
    """What SQLite's own check of the file says: "ok", or the faults it found.

    Of a file with views SQLite checks the list of free pages only when it is asked for the table of the schema.
    """
    checks = (f"PRAGMA integrity_check({most})", "PRAGMA integrity_check(sqlite_master)")
    lines = [str(row[0]) for check in checks for row in connection.patiently(check)]
    return "\n".join(dict.fromkeys(fault for fault in lines if fault != "ok")) or "ok"


def _leave_wal(connection: Connection) -> None:
    """Bring a file that somebody set to write-ahead logging back to one complete file at rest."""
    (mode,) = connection.patiently("PRAGMA journal_mode").fetchone()
    if mode == "wal":
        connection.patiently("PRAGMA journal_mode = DELETE")


def _migrate(connection: Connection, path: Path, version: int) -> None:
    """Bring the file to this schema in one transaction, after a copy of it was put beside it."""
    backup = sqlite3.connect(path.with_name(f"{path.name}.format-{version}.bak"))
    try:
        connection.backup(backup)
    finally:
        backup.close()
    connection.patiently("BEGIN IMMEDIATE")
    try:
        for step in range(version, SCHEMA_VERSION):
            MIGRATIONS[step](connection)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


# ---------------------------------------------------------------- making


@contextmanager
def draft(path: Path) -> Iterator[tuple[Connection, Path]]:
    """(connection, file) of a new file beside `path`, locked until the block ends, which also removes that file.

    What is to stay has been given its name, `path`, before that (`put_in_place`).
    """
    if path.exists():
        raise exists(path)
    if not path.parent.is_dir():
        raise StoreFailure(f"{path}: the folder {path.parent} does not exist; nothing was created")
    for stale in left_drafts(path):
        _remove(stale)
    file = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with said(path, "nothing was created"):
            connection = connect(file, "rwc")
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        try:
            yield connection, file
        finally:
            connection.close()
    finally:
        _remove(file)


def left_drafts(path: Path) -> list[Path]:
    """Drafts of this session whose makers were killed: nobody has them locked."""
    pattern = f".{_literal(path.name)}.{'[0-9a-f]' * 8}.new"
    return [file for file in sorted(path.parent.glob(pattern)) if _abandoned(file)]


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "[*?" else letter for letter in name)


def _abandoned(file: Path) -> bool:
    """Whether nobody is writing this draft; one without content is given a minute."""
    try:
        info = file.stat()
        if info.st_size == 0:
            return time.time() - info.st_mtime > 60
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)
    except (OSError, sqlite3.Error):
        return False
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as cause:
        return name_of(cause) in ("SQLITE_NOTADB", "SQLITE_CORRUPT")
    finally:
        connection.close()
    return True


def _remove(file: Path) -> None:
    for ending in ("", *BESIDE):
        with suppress(OSError):  # on a read-only file system even a file that is not there cannot be removed
            file.with_name(file.name + ending).unlink(missing_ok=True)


def put_in_place(file: Path, path: Path) -> None:
    """Give the finished draft its name, never over a file that appeared meanwhile."""
    try:
        os.link(file, path)
    except FileExistsError:
        raise exists(path) from None
    except OSError as cause:  # a file system without hard links
        if path.exists():
            raise exists(path) from cause
        try:
            os.replace(file, path)
        except OSError as failure:
            raise StoreFailure(f"{path} cannot be made: {failure.strerror}; nothing was created") from failure
    _sync_folder(path)


def exists(path: Path) -> SessionExists:
    """What is said of a path where a file is already."""
    if path.is_file() and path.stat().st_size == 0:
        return SessionExists(
            f"{path} is there already: an empty file, which is no session; delete it, or give another name; nothing "
            "was created"
        )
    return SessionExists(
        f"{path} exists already; open it with Session.open, or pass exist_ok=True (--exist-ok) to go on"
    )


def _sync_folder(path: Path) -> None:
    """Have the file's name on disk; StoreFailure says what holds if the disk refuses."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as cause:
        if cause.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that cannot sync a folder
            raise StoreFailure(
                f"{path} was created and is complete, but its folder could not be synced ({cause.strerror}): "
                "its name may be missing after a power failure; open it with Session.open to go on"
            ) from cause


# ---------------------------------------------------------------- errors as sentences


@contextmanager
def said(path: Path | None, outcome: str) -> Iterator[None]:
    """SQLite's errors as a sentence about this file."""
    try:
        yield
    except UnicodeDecodeError as cause:
        raise NotASession(f"{path} is damaged ({cause.reason}); {outcome}; restore it from a copy") from cause
    except sqlite3.Error as cause:
        where = path if path is not None else "the session in memory"
        damaged = ("malformed", "no such table", "no such column", "Could not decode", "interrupted")
        broken = name_of(cause).startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
        if broken or any(sign in str(cause) for sign in damaged):
            raise NotASession(f"{where} is damaged ({cause}); {outcome}; restore it from a copy") from cause
        raise StoreFailure(f"{where}: {reason(cause)}; {outcome}") from cause


def name_of(cause: sqlite3.Error) -> str:
    """SQLite's own name of an error, as "SQLITE_BUSY"."""
    return getattr(cause, "sqlite_errorname", "")


def reason(cause: sqlite3.Error) -> str:
    """Why SQLite could not do what it should, in words."""
    name = name_of(cause)
    if "closed database" in str(cause):
        return "the session is closed (open it again with Session.open)"
    if name.startswith("SQLITE_FULL"):
        return "the disk is full"
    if name.startswith("SQLITE_READONLY"):
        return "the file is read-only"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"another process kept the file locked for {BUSY_SECONDS:g} seconds"
    if name.startswith("SQLITE_CANTOPEN"):
        return "the file or its journal cannot be opened (is the folder writable?)"
    if name.startswith("SQLITE_IOERR_DIR_FSYNC"):
        return "the disk refused to sync the folder"
    if name.startswith("SQLITE_IOERR"):
        return f"the disk refused to read or write ({cause}; is it full?)"
    return str(cause)
