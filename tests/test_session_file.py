"""The file under a session: replaced, locked, interrupted, crafted; and what is said of each."""

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import altmas
import forks
from altmas.doctor import examine
from altmas.errors import NotASession, SessionExists, StoreFailure
from altmas.session import session_file
from altmas.session.store import NEWEST, Entry, LabelStore
from benchmarks.operations.crafted_sessions import rewritten, with_sql
from benchmarks.operations.writers import measured
from session_world import create


def kinds(path: Path) -> list[str]:
    with altmas.Session.open(path, read_only=True) as session:
        return [event["kind"] for event in session.events()]


# ---------------------------------------------------------------- another copy in its place


def overwrite(path: Path, copy: Path) -> None:
    """As `cp copy path` does it: the same file with another content."""
    path.write_bytes(copy.read_bytes())


def test_an_older_copy_written_over_an_open_session_is_noticed_before_the_next_write(told, tmp_path):
    backup, right = tmp_path / "backup", tmp_path / "right"
    shutil.copy(told, backup)
    with altmas.Session.open(told) as session:
        session.tell("p1", "cat")
        shutil.copy(told, right)
        overwrite(told, backup)
        for act in (
            lambda: session.tell("p2", "cat"),
            lambda: session.ask(1),
            lambda: session.skip("p3"),
            lambda: session.release("ana"),
            lambda: session.history,
            lambda: session.estimate(),
        ):
            with pytest.raises(
                StoreFailure, match="overwritten by another copy while it was open: event 8.*nothing was"
            ):
                act()
        assert told.read_bytes() == backup.read_bytes()
        overwrite(told, right)
    with altmas.Session.open(told) as session:
        assert session.votes("p1") == {"": "cat"}


def test_a_copy_that_went_its_own_way_is_noticed_even_with_as_many_writes(told, tmp_path):
    other = tmp_path / "other.altmas"
    shutil.copy(told, other)
    with altmas.Session.open(other) as session:
        session.tell("p1", "dog")
    with altmas.Session.open(told) as session:
        session.tell("p1", "cat")
        overwrite(told, other)
        with pytest.raises(StoreFailure, match="overwritten by another copy"):
            session.tell("p2", "cat")
    with altmas.Session.open(told) as session:
        assert session.votes("p1") == {"": "dog"} and session.integrity() == "ok"


def test_a_newer_copy_of_the_same_log_goes_on(told, tmp_path):
    newer = tmp_path / "newer.altmas"
    shutil.copy(told, newer)
    with altmas.Session.open(newer) as session:
        session.tell("p1", "dog")
    with altmas.Session.open(told) as session:
        overwrite(told, newer)
        session.tell("p2", "cat")
        assert session.votes("p1") == {"": "dog"}
    assert kinds(told).count("label") == 7


def test_a_file_that_is_gone_or_another_one_is_noticed(told, tmp_path):
    with altmas.Session.open(told) as session:
        told.rename(tmp_path / "elsewhere")
        with pytest.raises(StoreFailure, match="moved, deleted or replaced meanwhile; nothing was recorded"):
            session.tell("p1", "cat")
        shutil.copy(tmp_path / "elsewhere", told)
        with pytest.raises(StoreFailure, match="moved, deleted or replaced meanwhile; nothing was recorded"):
            session.tell("p1", "cat")
    assert kinds(told).count("label") == 5 == kinds(tmp_path / "elsewhere").count("label")


# ---------------------------------------------------------------- durable, and in turn


def test_every_write_is_synced_and_leaves_one_file(told):
    store = LabelStore.open(told)
    pragmas = {
        name: store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")
    }
    assert pragmas == {"synchronous": 3, "journal_mode": "delete"}  # EXTRA: the file and its folder
    assert [one.name for one in told.parent.iterdir()] == [told.name]


def test_a_file_set_to_write_ahead_logging_becomes_one_file_again(told):
    with closing(sqlite3.connect(told)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    with altmas.Session.open(told) as session:
        session.tell("p1", "cat")
        assert [one.name for one in told.parent.iterdir()] == [told.name]


def test_processes_that_write_at_once_wait_for_each_other(path):
    found = measured(path, 4, 1.0)
    assert sum(writer.refused + writer.lost for writer in found) == 0
    assert min(writer.told for writer in found) > 0


# ---------------------------------------------------------------- what a failed sync leaves


def refusing(number: int):
    """os.fsync that refuses folders."""

    def fsync(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(number, os.strerror(number))

    return fsync


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_session_whose_folder_cannot_be_synced_is_there_and_that_is_said(path, monkeypatch):
    monkeypatch.setattr(os, "fsync", refusing(errno.EIO))
    with pytest.raises(StoreFailure, match="was created and is complete, but its folder could not be synced"):
        create(path)
    monkeypatch.undo()
    assert kinds(path) == ["created"]
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_file_system_that_cannot_sync_folders_is_good_enough(path, monkeypatch):
    monkeypatch.setattr(os, "fsync", refusing(errno.EINVAL))
    create(path).close()
    assert kinds(path) == ["created"]


class Refusal(sqlite3.OperationalError):
    sqlite_errorname = "SQLITE_IOERR_DIR_FSYNC"


@pytest.mark.parametrize(
    ("committed", "readable", "sentence"),
    [
        (True, True, "refused to sync the folder; it was recorded, but may be missing after a power failure"),
        (False, True, "refused to sync the folder; nothing was recorded"),
        (True, False, "whether it was recorded is not known: open the session again and look"),
    ],
)
def test_a_commit_that_fails_says_whether_the_label_is_in_the_file(told, monkeypatch, committed, readable, sentence):
    """SQLite deletes the journal, which commits, and then syncs the folder, which may fail."""
    with altmas.Session.open(told) as session:
        execute, failed = session_file.Connection.patiently, []

        def patiently(connection, query, values=()):
            if query == "COMMIT":
                execute(connection, "COMMIT" if committed else "ROLLBACK")
                failed.append(query)
                raise Refusal("disk I/O error")
            if failed and not readable:
                raise Refusal("disk I/O error")
            return execute(connection, query, values)

        monkeypatch.setattr(session_file.Connection, "patiently", patiently)
        with pytest.raises(StoreFailure, match=sentence):
            session.tell("p1", "cat")
        monkeypatch.undo()
        assert (session.votes("p1") == {"": "cat"}) == committed
        session.tell("p2", "dog")
    assert kinds(told).count("label") == 6 + committed


# ---------------------------------------------------------------- killed


CREATOR = """
import sys, time, altmas
from pathlib import Path
from altmas.session.store import NEWEST, Entry, LabelStore
def parts():
    for chunk in range(40):
        yield "a", chunk, bytes(1_000_000)
    print("half", flush=True)
    time.sleep(60)
LabelStore.create(Path(sys.argv[1]), parts(), Entry("created"))
"""


def test_the_draft_of_a_killed_create_is_cleaned_by_the_next_one_and_a_live_one_is_not(path):
    process = subprocess.Popen([forks.command("python"), "-c", CREATOR, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "half\n"
    [draft] = [one for one in path.parent.iterdir() if one.suffix == ".new"]
    assert session_file.left_drafts(path) == []
    create(path).close()
    path.unlink()
    assert draft.exists()  # its maker is at work
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert session_file.left_drafts(path) == [draft]
    create(path).close()
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_drafts_of_other_sessions_and_young_empty_ones_are_left_alone(tmp_path):
    other = tmp_path / ".two.altmas.0a1b2c3d.new"
    young, old = tmp_path / ".[o]ne*.0a1b2c3d.new", tmp_path / ".[o]ne*.1a1b2c3d.new"
    for one in (other, young, old):
        one.touch()
    os.utime(old, (time.time() - 100,) * 2)
    create(tmp_path / "[o]ne*").close()
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([other.name, young.name, "[o]ne*"])


INTERRUPTED = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 5")
connection.execute("BEGIN IMMEDIATE")
for row in range(2000):
    connection.execute("INSERT INTO leases VALUES (?, 'ana', 9e9)", (f"x{row}" * 20,))
print("half", flush=True)
time.sleep(60)
"""


@pytest.fixture
def crashed(told: Path) -> Path:
    """A session file with a write that a kill has left unfinished: pages are changed, the journal knows them."""
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(told)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "half\n"
    process.kill()
    process.communicate()
    assert told.with_name(told.name + "-journal").stat().st_size > 1000
    return told


def test_a_crashed_session_can_be_read_without_being_touched(crashed):
    before = {one.name: one.read_bytes() for one in crashed.parent.iterdir()}
    with altmas.Session.open(crashed, read_only=True) as session:
        assert len(session.history.labels) == 5 and session.status().leased == 0
        with pytest.raises(StoreFailure, match="read-only; nothing was recorded"):
            session.tell("p1", "cat")
    assert {one.name: one.read_bytes() for one in crashed.parent.iterdir()} == before


def test_doctor_works_after_a_crash_and_says_what_it_found(crashed):
    leftover = crashed.with_name(f".{crashed.name}.0a1b2c3d.new")
    shutil.copy(crashed, leftover)
    found = {one.what: one for one in examine(crashed)}
    assert "a write was interrupted" in found["after a crash"].found
    assert found["integrity check"].found == "ok" and found["labels"].found.startswith("5,")
    assert leftover.name in found["unfinished drafts"].found
    with altmas.Session.open(crashed) as session:
        session.tell("p1", "cat")
    assert "after a crash" not in {one.what for one in examine(crashed)}


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_a_stray_journal_of_nonsense_does_no_harm(told, ending):
    told.with_name(told.name + ending).write_bytes(b"nonsense" * 1000)
    assert kinds(told).count("label") == 5
    assert all(one.ok for one in examine(told) if one.what in ("integrity check", "event log", "pool"))
    with altmas.Session.open(told) as session:
        session.tell("p1", "cat")
    assert kinds(told).count("label") == 6


@pytest.mark.parametrize("kept", [0.1, 0.6, 0.95])
def test_doctor_says_of_half_a_file_that_it_is_damaged(told, kept):
    content = told.read_bytes()
    told.write_bytes(content[: int(len(content) * kept)])
    found = [one for one in examine(told) if not one.ok and "damaged" in one.found]
    assert found


# ---------------------------------------------------------------- crafted


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"
COLUMNS = "kind, annotator, point, label, seconds, refers, body, data, seq, at, hash"

SCHEMAS = {
    "an endless view in place of the log": (
        "DROP TABLE events",
        f"CREATE VIEW events AS {ENDLESS} " + ", ".join(f"x AS {name}" for name in COLUMNS.split(", ")) + " FROM n",
    ),
    "an endless view in place of the leases": (
        "DROP TABLE leases",
        f"CREATE VIEW leases AS {ENDLESS} 'p1' AS point, 'a' AS annotator, 0.0 AS until FROM n",
    ),
    "an endless trigger on the log": (
        f"CREATE TRIGGER more AFTER INSERT ON events BEGIN INSERT INTO leases {ENDLESS} x, x, x FROM n; END",
    ),
    "a trigger that changes labels": (
        "CREATE TRIGGER more AFTER INSERT ON events WHEN new.kind = 'label' BEGIN DELETE FROM leases; END",
    ),
    "an endless trigger on the leases": (
        f"CREATE TRIGGER more AFTER DELETE ON leases BEGIN INSERT INTO leases {ENDLESS} x, x, x FROM n; END",
    ),
    "another view of the labels": ("DROP VIEW labels", "CREATE VIEW labels AS SELECT 'p1' AS point, 'cat' AS label"),
    "an index that computes": ("CREATE INDEX more ON leases (length(hex(zeroblob(until))))",),
    "a table with a check": ("CREATE TABLE more (x CHECK (x > 0))",),
    "two tables on the same pages": (
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'events') "
        "WHERE name = 'parts'",
    ),
    "no leases": ("DROP TABLE leases",),
    "nonsense in the schema": ("UPDATE sqlite_master SET sql = 'CREATE TABLE leases (((' WHERE name = 'leases'",),
    "a table of another program": ("UPDATE sqlite_master SET sql = NULL WHERE name = 'leases'",),
}


@pytest.mark.parametrize("trick", SCHEMAS)
def test_a_schema_that_altmas_did_not_make_is_refused_before_it_is_used(told, trick):
    with_sql(told, *SCHEMAS[trick])
    before, start = told.read_bytes(), time.monotonic()
    for read_only in (True, False):
        with pytest.raises(NotASession, match="which altmas did not make|damaged"):
            altmas.Session.open(told, read_only=read_only)
    assert time.monotonic() - start < 5
    assert told.read_bytes() == before
    assert any(not one.ok for one in examine(told) if one.what in ("session", "event log"))


def test_a_trigger_that_comes_while_the_session_is_open_is_refused(told):
    with altmas.Session.open(told) as session:
        session.tell("p1", "cat")
        with_sql(told, *SCHEMAS["an endless trigger on the log"])
        with pytest.raises(NotASession, match="holds the trigger 'more', which altmas did not make"):
            session.tell("p2", "cat")
        with_sql(told, "DROP TRIGGER more")
        session.tell("p2", "cat")


def test_statistics_of_sqlite_itself_are_welcome(told):
    with_sql(told, "ANALYZE")
    with altmas.Session.open(told) as session:
        session.tell("p1", "cat")


def test_a_gap_in_the_log_is_noticed_though_every_hash_fits(told):
    def cut(rows):
        del rows[3]

    rewritten(told, cut)
    with pytest.raises(NotASession, match="event 5 does not match"):
        altmas.Session.open(told)


@pytest.mark.parametrize("lost", [1, 3])
def test_a_log_that_lost_its_end_is_noticed_though_every_hash_fits(told, lost):
    triggers = [line for line in session_file.schema().splitlines() if line.startswith("CREATE TRIGGER")]
    drop = [f"DROP TRIGGER {line.split()[2]}" for line in triggers]
    with_sql(told, *drop, f"DELETE FROM events WHERE seq > {7 - lost}", *triggers)
    sentence = f"its log ends with event {7 - lost}, but event 7 had been written; nothing was read"
    for read_only in (True, False):
        with pytest.raises(NotASession, match=sentence):
            altmas.Session.open(told, read_only=read_only)


def test_a_file_of_a_version_that_noted_no_newest_event_opens_and_notes_the_next_one(told):
    with_sql(told, f"DELETE FROM leases WHERE point = '{NEWEST}'")
    with altmas.Session.open(told) as session:
        session.tell("p1", "cat")
    with closing(sqlite3.connect(told)) as connection:
        assert connection.execute("SELECT point, until FROM leases").fetchall() == [(NEWEST, 8.0)]


def test_events_that_another_version_added_without_a_note_are_welcome(told):
    with_sql(told, "UPDATE leases SET until = 3, annotator = (SELECT hash FROM events WHERE seq = 3)")
    assert kinds(told).count("label") == 5


def test_free_pages_that_are_not_there_are_noticed_before_a_write_runs_into_them(told):
    """SQLite's check says ok of any file with views, and a label later the file cannot grow."""
    content = bytearray(told.read_bytes())
    content[39] = 92
    told.write_bytes(content)
    with pytest.raises(NotASession, match="damaged .*freelist"):
        altmas.Session.open(told)
    assert any("freelist" in one.found for one in examine(told) if one.what == "integrity check" and not one.ok)


def test_a_pipe_is_no_session(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotASession, match="no regular file"):
        altmas.Session.open(tmp_path / "pipe")


def test_creating_twice_at_once_makes_one(path):
    with session_file.draft(path) as (connection, file):
        connection.execute("CREATE TABLE t (x)")
        create(path).close()
        with pytest.raises(SessionExists):
            session_file.put_in_place(file, path)
    assert kinds(path) == ["created"]
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_failed_creation_leaves_no_draft(path):
    with pytest.raises(StoreFailure, match="nothing was created"):
        LabelStore.create(path, [("a", 0, None)], Entry("created"))  # type: ignore[list-item]
    assert list(path.parent.iterdir()) == []
