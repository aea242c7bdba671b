"""A copy of a session file is complete, also while others write; nothing is written over."""

import threading
from pathlib import Path

import numpy as np
import pytest

import altmas
from altmas.errors import AltmasError, NotASession, OutputExists
from altmas.session import session_file
from altmas.session.backup import back_up
from cli_world import run


def made(path: Path, points: int = 200) -> altmas.Session:
    pool = altmas.Pool(None, np.arange(points) % 2, classes=[0, 1])
    return altmas.Session.create(path, pool, method="tradition", seed=0)


def test_copies_made_while_others_write_are_sessions(tmp_path):
    path, stop = tmp_path / "one.altmas", threading.Event()
    with made(path) as session:
        ids = [query.id for query in session.ask(150)]

        def write() -> None:
            for id_ in ids:
                session.tell(id_, 0)
                if stop.is_set():
                    return

        writer = threading.Thread(target=write)
        writer.start()
        try:
            copies = [back_up(path, tmp_path / f"copy-{number}.altmas") for number in range(8)]
        finally:
            stop.set()
            writer.join()
    assert [copy.events for copy in copies] == sorted(copy.events for copy in copies)
    for copy in copies:
        with altmas.Session.open(copy.path) as again:
            assert len(list(again.events())) == copy.events and again.status().digest == copy.last


def test_the_command_copies_and_never_replaces(tmp_path):
    path, copy = tmp_path / "one.altmas", tmp_path / "copy.altmas"
    made(path).close()
    ran = run("backup", path, copy)
    assert ran.code == 0 and "copy.altmas: 1 events, each matches its hash" in ran.out
    before = copy.read_bytes()
    for target in (copy, path, tmp_path / "missing" / "copy.altmas"):
        assert run("backup", path, target).code == 2
    assert copy.read_bytes() == before and sorted(file.name for file in tmp_path.iterdir()) == [copy.name, path.name]


def test_what_is_no_session_is_not_copied(tmp_path):
    (tmp_path / "notes.txt").write_text("no session")
    with pytest.raises(NotASession):
        back_up(tmp_path / "notes.txt", tmp_path / "copy.altmas")
    made(tmp_path / "one.altmas").close()
    (tmp_path / "there.altmas").write_text("something else")
    with pytest.raises(OutputExists):
        back_up(tmp_path / "one.altmas", tmp_path / "there.altmas")
    assert not (tmp_path / "copy.altmas").exists()


def test_a_copy_that_does_not_fit_together_gets_no_name(tmp_path, monkeypatch):
    made(tmp_path / "one.altmas").close()
    monkeypatch.setattr(session_file, "integrity", lambda connection: "row 3 missing")
    with pytest.raises(AltmasError, match="the copy is damaged"):
        back_up(tmp_path / "one.altmas", tmp_path / "copy.altmas")
    assert [file.name for file in tmp_path.iterdir()] == ["one.altmas"]
