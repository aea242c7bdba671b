"""The session file: what it refuses, what it survives, what it promises to readers."""

import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import altmas
from altmas.errors import FileError, NewerSession, NotASession, SessionExists, StoreFailure
from altmas.session import session_file
from altmas.session.arrays import pack, unpack
from altmas.session.store import NEWEST, Entry, LabelStore, chained
from session_world import create


def sql(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


# ---------------------------------------------------------------- the log


def test_events_come_back_as_they_were_written(path):
    arrays = {"a": np.arange(3), "b": np.array([[0.5, np.nan]]), "c": np.array(["ü", "x"])}
    log = LabelStore.create(path, [("part", 0, b"x"), ("part", 1, b"y")], Entry("created", body={"é": [1, None]}))
    log.events()
    with log.transaction():
        log.append([Entry("label", "ana", "p1", "😀, \n", 1.5, None, {}, pack(arrays)), Entry("undo", refers=2)])
    log.close()
    first, label, undo = LabelStore.open(path).events()
    assert (first.kind, first.body, first.seq) == ("created", {"é": [1, None]}, 1)
    assert (label.annotator, label.point, label.label, label.seconds) == ("ana", "p1", "😀, \n", 1.5)
    assert {name: value.tolist() for name, value in unpack(label.data).items()}["c"] == ["ü", "x"]
    np.testing.assert_array_equal(label.arrays["b"], arrays["b"])
    assert (undo.refers, undo.arrays) == (2, {})
    assert list(LabelStore.open(path).part("part")) == [b"x", b"y"]


def test_arrays_of_objects_are_refused_never_pickled():
    with pytest.raises(ValueError, match="allow_pickle"):
        pack({"bad": np.array([{}], object)})


def test_nothing_in_a_failed_transaction_is_kept(path):
    log = LabelStore.create(path, [], Entry("created"))
    log.events()
    with pytest.raises(RuntimeError), log.transaction():
        log.append([Entry("note")])
        raise RuntimeError
    with log.transaction():
        log.append([Entry("label")])
    assert [event.kind for event in LabelStore.open(path).events()] == ["created", "label"]


@pytest.mark.parametrize("statement", ["UPDATE events SET label = 'dog'", "DELETE FROM events WHERE seq = 3"])
def test_sqlite_itself_refuses_to_change_the_log(told, statement):
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        sql(told, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET label = 'ant' WHERE seq = 4",
        "UPDATE events SET seconds = 3 WHERE seq = 5",
        "DELETE FROM events WHERE seq = 4",
        "UPDATE events SET data = x'00' WHERE kind = 'draw'",
    ],
)
def test_a_log_that_was_changed_all_the_same_is_noticed(told, statement):
    triggers = [line for line in session_file.schema().splitlines() if line.startswith("CREATE TRIGGER")]
    sql(told, *(f"DROP TRIGGER {line.split()[2]}" for line in triggers), statement, *triggers)
    with pytest.raises(NotASession, match="changed or damaged: event"):
        altmas.Session.open(told)


def test_plain_sqlite_readers_see_the_current_labels(told):
    with altmas.Session.open(told) as session:
        first, second, third, *_ = (session.pool.ids[row] for row in session.history.labels)
        session.tell(first, "owl")
        session.tell(second, "dog", annotator="bob")
        session.adjudicate(third, "owl")
        session.skip("p7", "torn")
        session.tell("p8", "cat")
        session.undo()
        expected = {session.pool.ids[row]: session.pool.classes[code] for row, code in session.history.labels.items()}
    connection = sqlite3.connect(told)
    assert dict(connection.execute("SELECT point, label FROM labels")) == expected
    assert connection.execute("SELECT kind FROM votes WHERE point = 'p7'").fetchall() == [("skip",)]
    connection.close()


# ---------------------------------------------------------------- what is no session


def test_a_missing_file(path):
    with pytest.raises(FileError, match="does not exist; create a session"):
        altmas.Session.open(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is an empty file and no session"),
        (b"id,label\n1,cat\n", "is not an altmas session: it begins with"),
        (b"SQLite format 3\x00" + b"\x07" * 5000, "damaged|not an altmas session"),
    ],
)
def test_a_file_that_is_no_session(path, content, sentence):
    path.write_bytes(content)
    with pytest.raises(NotASession, match=sentence):
        altmas.Session.open(path)
    assert path.read_bytes() == content


def test_a_folder(tmp_path):
    with pytest.raises(NotASession, match="is a folder"):
        altmas.Session.open(tmp_path)


def test_another_sqlite_database(path):
    sql(path, "CREATE TABLE t (x)")
    with pytest.raises(NotASession, match="SQLite database, but not an altmas session"):
        altmas.Session.open(path)


def test_a_session_without_its_tables(path):
    sql(
        path,
        f"PRAGMA application_id = {session_file.APPLICATION_ID}",
        f"PRAGMA user_version = {session_file.SCHEMA_VERSION}",
    )
    with pytest.raises(NotASession, match="damaged"):
        altmas.Session.open(path)


def test_a_log_without_a_plan(path):
    LabelStore.create(path, [], Entry("note")).close()
    with pytest.raises(NotASession, match="does not begin with a plan"):
        altmas.Session.open(path)


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9, 0.99])
def test_a_truncated_file(told, kept):
    content = told.read_bytes()
    told.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(NotASession, match="damaged"):
        altmas.Session.open(told)


def test_damaged_files_give_a_sentence_or_what_was_there(told, tmp_path):
    """200 files with a few bytes changed: never a traceback of somebody else's, never another label."""
    content = told.read_bytes()
    with altmas.Session.open(told) as session:
        labels, items = session.history.labels, session.pool.items
    rng, refused = random.Random(3), 0
    damaged = tmp_path / "damaged.altmas"
    for _ in range(200):
        mutated = bytearray(content)
        for _ in range(rng.choice([1, 3, 40])):
            mutated[rng.randrange(len(mutated))] = rng.randrange(256)
        damaged.write_bytes(mutated)
        try:
            with altmas.Session.open(damaged) as session:
                assert session.history.labels == labels
                assert session.pool.items == items
        except altmas.AltmasError as error:
            refused += 1
            assert str(damaged) in str(error)
    assert 20 < refused < 200


def test_a_newer_file_is_not_touched(told):
    sql(told, f"PRAGMA user_version = {session_file.SCHEMA_VERSION + 1}")
    before = told.read_bytes()
    with pytest.raises(NewerSession, match="later version of altmas .*upgrade altmas"):
        altmas.Session.open(told)
    assert told.read_bytes() == before


# ---------------------------------------------------------------- migration


def test_an_older_file_is_upgraded_after_a_copy_was_made(told, monkeypatch):
    before = told.read_bytes()
    monkeypatch.setattr(session_file, "SCHEMA_VERSION", 3)
    monkeypatch.setitem(session_file.MIGRATIONS, 1, lambda connection: connection.execute("CREATE TABLE one (x)"))
    monkeypatch.setitem(session_file.MIGRATIONS, 2, lambda connection: connection.execute("ALTER TABLE one ADD y"))
    monkeypatch.setitem(session_file.SCHEMAS, 3, session_file.SCHEMAS[1] + "CREATE TABLE one (x, y);")
    with pytest.raises(StoreFailure, match="older file format 1"):
        altmas.Session.open(told, read_only=True)
    with altmas.Session.open(told) as session:
        assert len(session.history.labels) == 5
    backup = told.with_name(told.name + ".format-1.bak")
    assert backup.read_bytes()[:16] == before[:16]
    monkeypatch.undo()
    with altmas.Session.open(backup) as session:
        assert len(session.history.labels) == 5
    with pytest.raises(NewerSession, match="file format 3"):
        altmas.Session.open(told)


def test_a_failed_upgrade_leaves_the_file_as_it_was(told, monkeypatch):
    monkeypatch.setattr(session_file, "SCHEMA_VERSION", 2)
    monkeypatch.setitem(session_file.MIGRATIONS, 1, lambda connection: connection.execute("CREATE TABLE events (x)"))
    with pytest.raises(StoreFailure, match="already exists"):
        altmas.Session.open(told)
    monkeypatch.undo()
    with altmas.Session.open(told) as session:
        assert len(session.history.labels) == 5


# ---------------------------------------------------------------- creating


def test_creating_where_a_file_is(told):
    before = told.read_bytes()
    with pytest.raises(SessionExists, match="exists already"):
        create(told)
    assert told.read_bytes() == before


def test_creating_in_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(StoreFailure, match="does not exist; nothing was created"):
        create(tmp_path / "no" / "one.altmas")


def test_a_creation_that_fails_leaves_nothing_behind(tmp_path):
    def parts():
        yield "a", 0, b"x"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        LabelStore.create(tmp_path / "one.altmas", parts(), Entry("created"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appears_while_the_session_is_made_is_not_overwritten(tmp_path, monkeypatch):
    path = tmp_path / "one.altmas"

    def parts():
        path.write_text("mine")
        yield "a", 0, b"x"

    with pytest.raises(SessionExists):
        LabelStore.create(path, parts(), Entry("created"))
    path.unlink()

    def no_links(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", no_links)  # as on file systems without hard links
    with pytest.raises(SessionExists):
        LabelStore.create(path, parts(), Entry("created"))
    path.unlink()
    assert LabelStore.create(path, [], Entry("created")).events()[0].kind == "created"
    assert list(tmp_path.iterdir()) == [path]


def test_odd_file_names(tmp_path):
    for name in ("a b.altmas", "50%?#1.altmas", "ünï 😀", ".hidden"):
        create(tmp_path / name).close()
        assert altmas.Session.open(tmp_path / name).path == tmp_path / name


# ---------------------------------------------------------------- when it cannot be written


def test_a_read_only_file_can_be_read_and_says_so_when_told(told):
    before = told.read_bytes()
    with altmas.Session.open(told, read_only=True) as session:
        assert len(session.history.labels) == 5
        assert len(session.estimate()) == 1
        with pytest.raises(StoreFailure, match="read-only; nothing was recorded"):
            session.tell("p1", "cat")
        with pytest.raises(StoreFailure, match="read-only"):
            session.ask(1)
    assert told.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only files")
def test_a_file_without_write_permission(told):
    told.chmod(0o444)
    with altmas.Session.open(told) as session, pytest.raises(StoreFailure, match="read-only; nothing was recorded"):
        session.tell("p1", "cat")


def test_a_full_database_records_nothing_and_goes_on_when_there_is_room(told):
    with altmas.Session.open(told) as session:
        connection = session._journal.store._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreFailure, match="the disk is full; nothing was recorded"):
            for _ in range(200):
                session.note("x" * 500)
        count = len(list(session.events()))
        with pytest.raises(StoreFailure):
            session.tell({f"p{row}": "cat" for row in range(60)})
        assert len(list(session.events())) == count
        assert len(session.estimate()) == 1  # it can be computed, only not logged
        connection.execute("PRAGMA max_page_count = 100000")
        session.tell("p1", "cat")
    with altmas.Session.open(told) as session:
        assert session.votes("p1") == {"": "cat"}
        assert session.integrity() == "ok"


def test_a_file_system_that_refuses_to_grow(told):
    """RLIMIT_FSIZE makes writes beyond the file's present size fail, as a full disk does."""
    script = """
import resource, sys, altmas
from pathlib import Path
path = Path(sys.argv[1])
session = altmas.Session.open(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, resource.RLIM_INFINITY))
told = 0
try:
    for row in range(2000):
        session.tell(f"p{row % 60}", "cat")
        told += 1
except altmas.errors.StoreFailure as failure:
    print(told, failure)
"""
    done = subprocess.run([sys.executable, "-c", script, told], capture_output=True, text=True, check=True)
    count, _, sentence = done.stdout.partition(" ")
    assert "is it full?" in sentence and sentence.endswith("nothing was recorded\n")
    with altmas.Session.open(told) as session:
        assert session.integrity() == "ok"
        assert sum(event["kind"] == "label" for event in session.events()) == 5 + int(count)


def test_creating_on_a_full_disk_leaves_nothing(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        with pytest.raises(StoreFailure, match="nothing was created"):
            create(tmp_path / "one.altmas")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_another_process_keeps_locked(told, monkeypatch):
    monkeypatch.setattr(session_file, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(told, isolation_level=None)
    with altmas.Session.open(told) as session:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailure, match="locked for 0.05 seconds; nothing was recorded"):
            session.tell("p1", "cat")
        assert len(session.history.labels) == 5  # reading goes on
        other.execute("ROLLBACK")
        session.tell("p1", "cat")
    other.close()


def test_a_file_that_was_deleted_or_replaced_meanwhile(told, tmp_path):
    copy = tmp_path / "copy.altmas"
    shutil.copy(told, copy)
    with altmas.Session.open(told) as session:
        told.unlink()
        with pytest.raises(StoreFailure, match="moved, deleted or replaced meanwhile; nothing was recorded"):
            session.tell("p1", "cat")
        shutil.copy(copy, told)
        with pytest.raises(StoreFailure, match="moved, deleted or replaced"):
            session.tell("p1", "cat")
    with altmas.Session.open(copy) as session:  # the one file is all there is
        session.tell("p1", "cat")


def test_threads_share_a_session(path):
    with create(path, budget=60) as session:

        def label(start: int) -> None:
            for row in range(start, start + 15):
                session.tell(f"p{row}", "cat", annotator=f"a{start}")

        threads = [threading.Thread(target=label, args=(start,)) for start in (0, 15, 30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(session.history.labels) == list(range(45))
    with altmas.Session.open(path) as session:
        assert sorted(session.history.labels) == list(range(45))


def test_the_documented_queries_run(told):
    document = (Path(__file__).parent.parent / "docs" / "session_file.md").read_text("utf-8")
    queries = document.split("```sql\n")[1].split("```")[0].splitlines()
    with altmas.Session.open(told) as session:
        session.estimate()
    connection = sqlite3.connect(told)
    answers = [connection.execute(query.partition("--")[0]).fetchall() for query in queries]
    connection.close()
    assert [len(rows) for rows in answers] == [5, 5, 4, 1, 1]


# ---------------------------------------------------------------- the store by itself, in memory


@pytest.fixture
def log() -> LabelStore:
    made = LabelStore.create(None, [("a", 0, b"x"), ("a", 1, b"y"), ("b", 0, b"z")], Entry("created"))
    made.events()
    return made


def write(log: LabelStore, *kinds: str) -> list[int]:
    with log.transaction():
        return [event.seq for event in log.append(Entry(kind) for kind in kinds)]


def test_events_after_a_number_are_those_with_a_larger_one(log):
    assert write(log, "a", "b") == [2, 3] and write(log, "c") == [4]
    assert [event.seq for event in log.events()] == [1, 2, 3, 4]
    assert [event.kind for event in log.events(2)] == ["b", "c"] and log.events(4) == []
    assert [event.kind for event in log.events(3)] == ["c"] and log.events(9) == []
    whole = log.events()
    assert len({event.hash for event in whole}) == 4 and all(len(event.hash) == 64 for event in whole)


def test_the_hash_of_an_event_covers_all_of_it_and_what_was_before(log):
    write(log, "a")
    _, event = log.events()
    row = ("a", None, None, None, None, None, "{}", None, 2, event.at)
    assert chained(log.events()[0].hash, row) == event.hash
    for place, other in enumerate(("b", "x", "x", "x", 1.0, 1, "[]", b"x", 3, "now")):
        assert chained(log.events()[0].hash, (*row[:place], other, *row[place + 1 :])) != event.hash
    assert chained("", row) != event.hash
    assert chained("", (b"x",)) != chained("", ("x",))


def test_what_a_savepoint_undoes_leaves_no_gap(log):
    with log.transaction():
        log.append([Entry("a")])
        with pytest.raises(ZeroDivisionError), log.savepoint():
            log.append([Entry("lost"), Entry("lost")])
            log.lease(["p1"], "ana", 9.0)
            raise ZeroDivisionError
        with log.savepoint():
            assert [event.seq for event in log.append([Entry("b")])] == [3]
    assert [event.kind for event in log.events()] == ["created", "a", "b"] and log.leases(0.0).keys() == {NEWEST}


def test_what_a_failed_transaction_undoes_leaves_no_gap(log):
    with pytest.raises(ZeroDivisionError), log.transaction():
        log.append([Entry("lost")])
        raise ZeroDivisionError
    assert write(log, "a") == [2] and [event.kind for event in log.events()] == ["created", "a"]


def test_a_transaction_without_an_event_notes_nothing(log):
    write(log, "a")
    noted = log.leases(0.0)[NEWEST]
    with log.transaction():
        log.lease(["p1"], "ana", 5.0)
    assert log.leases(0.0) == {NEWEST: noted, "p1": ("ana", 5.0)} and noted[1] == 2


def test_leases_last_until_their_time_and_are_renewed_and_ended_one_by_one(log):
    with log.transaction():
        log.lease(["p1", "p2"], "ana", 1e3)
        log.lease(["p3"], "bob", 2e3)
    assert log.leases(500.0) == {"p1": ("ana", 1e3), "p2": ("ana", 1e3), "p3": ("bob", 2e3)}
    assert log.leases(1e3) == {"p3": ("bob", 2e3)}
    assert log.holder("p1", 999.0) == "ana" and log.holder("p1", 1e3) is None and log.holder("p9", 0.0) is None
    with log.transaction():
        log.lease(["p2"], "bob", 3e3)
        log.release("bob", "p1")  # ana holds it
        log.release("bob", "p3")
    assert log.leases(500.0) == {"p1": ("ana", 1e3), "p2": ("bob", 3e3)}
    with log.transaction():
        log.release("ana")
    assert log.leases(500.0) == {"p2": ("bob", 3e3)}


def test_parts_come_back_in_order(log):
    assert list(log.part("a")) == [b"x", b"y"] and list(log.part("b")) == [b"z"] and list(log.part("c")) == []
    assert log.integrity() == "ok" and not log.recovered and log.path is None


@pytest.mark.parametrize(
    "statement, words",
    [
        ("UPDATE leases SET until = 'later'", "the note of its newest event is none"),
        ("UPDATE leases SET until = 0.5", "the note of its newest event is none"),
        ("UPDATE leases SET until = 9e99", "the note of its newest event is none"),
        ("UPDATE leases SET until = 8", "its log ends with event 7, but event 8 had been written"),
        ("UPDATE leases SET annotator = 'x'", "its log ends with event 7, but event 7 had been written"),
    ],
)
def test_a_note_of_the_newest_event_that_does_not_fit_is_noticed(told, statement, words):
    sql(told, statement)
    with pytest.raises(NotASession, match=words):
        altmas.Session.open(told)


def test_a_log_that_lost_its_end_is_noticed_and_one_that_noted_nothing_is_read(told):
    drop = "DROP TRIGGER IF EXISTS "
    names = [row[0] for row in sqlite3.connect(told).execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    shorter = told.with_name("shorter.altmas")
    shutil.copy(told, shorter)
    sql(shorter, *(drop + name for name in names), "DELETE FROM events WHERE seq = 7")
    with pytest.raises(NotASession):
        LabelStore.open(shorter).events()
    sql(told, "DELETE FROM leases")
    assert len(LabelStore.open(told).events()) == 7


def test_a_commit_that_fails_says_what_is_in_the_file(told, monkeypatch):
    class Refusing:
        """A connection whose COMMIT fails, before or after it was done, and which may not be asked afterwards."""

        def __init__(self, real, done: bool, silent: bool) -> None:
            self.real, self.done, self.silent, self.failed = real, done, silent, False

        def __getattr__(self, name):
            return getattr(self.real, name)

        def patiently(self, statement, *values):
            if statement == "COMMIT":
                if self.done:
                    self.real.patiently(statement)
                self.failed = True
                raise sqlite3.OperationalError("disk I/O error")
            if self.failed and self.silent:
                raise sqlite3.OperationalError("disk I/O error")
            return self.real.patiently(statement, *values)

    for done, silent, words in (
        (False, False, "nothing was recorded"),
        (True, False, "it was recorded, but may be missing after a power failure"),
        (True, True, "whether it was recorded is not known"),
    ):
        log = LabelStore.open(told)
        before = len(log.events())
        monkeypatch.setattr(log, "_connection", Refusing(log._connection, done, silent))
        with pytest.raises(StoreFailure, match=words):
            write(log, "note")
        monkeypatch.undo()
        log.close()
        assert len(LabelStore.open(told).events()) == before + done


def test_closing_waits_for_a_thread_that_reads(path):
    """SQLite crashes the process when a connection is closed under a query of another thread."""
    create(path).close()
    store = LabelStore.open(path)
    closing = threading.Thread(target=store.close)
    with store.lock:
        closing.start()
        closing.join(0.2)
        assert closing.is_alive() and store.events()
    closing.join(10)
    assert not closing.is_alive()
    with pytest.raises(StoreFailure):
        store.events()
