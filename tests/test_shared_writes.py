"""Threads that write at the same time share one transaction, and each learns what became of its own write."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import altmas
from altmas.errors import StoreFailure, VoteConflict
from session_world import create


def at_once(session: altmas.Session, *calls: Callable[[], Any]) -> tuple[list[Any], int]:
    """What each call returned or raised when all of them waited for the same lock; and the number of transactions."""
    journal, outcomes = session._journal, [None] * len(calls)
    transactions = []

    def run(number: int) -> None:
        try:
            outcomes[number] = calls[number]()
        except Exception as problem:
            outcomes[number] = problem

    real = journal.store.transaction

    @contextmanager
    def counted() -> Iterator[None]:
        transactions.append(1)
        with real():
            yield

    journal.store.transaction = counted  # type: ignore[method-assign]
    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    try:
        with journal.lock:
            for number, thread in enumerate(threads, 1):
                thread.start()
                while len(journal._waiting) < number:
                    pass
        for thread in threads:
            thread.join()
    finally:
        journal.store.transaction = real  # type: ignore[method-assign]
    return outcomes, len(transactions)


def seqs(session: altmas.Session) -> dict[str, int]:
    return {event["point"]: event["seq"] for event in session.events() if event["kind"] == "label"}


def test_writes_that_wait_together_are_one_transaction_in_their_order(tmp_path: Path) -> None:
    with create(tmp_path / "s.altmas") as session:
        calls = [lambda point=f"p{number}": session.vote(point, "cat", point).seq for number in range(8)]
        outcomes, transactions = at_once(session, *calls)
        assert transactions == 1 and outcomes == list(range(2, 10))
        assert seqs(session) == {f"p{number}": number + 2 for number in range(8)}
    with altmas.Session.open(tmp_path / "s.altmas") as again:
        assert len(again.history.labels) == 8


def test_a_later_write_of_the_same_transaction_sees_the_earlier_one(tmp_path: Path) -> None:
    """Two people send a label for one point at once: the second is refused as if it had come a second later."""
    with create(tmp_path / "s.altmas") as session:
        outcomes, transactions = at_once(
            session,
            lambda: session.vote("p0", "cat", "ana").seq,
            lambda: session.vote("p0", "dog", "ben"),
            lambda: session.vote("p1", "dog", "cyd").seq,
        )
        assert transactions == 1 and outcomes[0] == 2 and outcomes[2] == 3
        assert isinstance(outcomes[1], VoteConflict)
        assert session.votes("p0") == {"ana": "cat"} and len(session.history.labels) == 2


def test_what_a_refused_write_did_is_undone_and_the_others_stand(tmp_path: Path) -> None:
    with create(tmp_path / "s.altmas") as session:
        journal = session._journal

        def lease_and_fail(state: object) -> Any:
            journal.store.lease(["p5"], "eve", 9e12)
            raise ZeroDivisionError

        outcomes, _ = at_once(
            session,
            lambda: session.vote("p0", "cat", "ana").seq,
            lambda: journal.write(lease_and_fail),
            lambda: session.vote("p1", "dog", "ben").seq,
        )
        assert outcomes[0] == 2 and outcomes[2] == 3 and isinstance(outcomes[1], ZeroDivisionError)
        assert "p5" not in journal.store.leases(0.0)


def test_when_the_disk_refuses_nobody_is_acknowledged_and_the_session_goes_on(tmp_path: Path) -> None:
    with create(tmp_path / "s.altmas") as session:
        session.tell("p9", "cat")
        store = session._journal.store
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        long = "x" * 20_000
        outcomes, _ = at_once(
            session,
            lambda: session.vote("p0", "cat", "ana"),
            lambda: session.tell("p1", "dog", "ben", note=long),
            lambda: session.vote("p2", "owl", "cyd"),
        )
        assert all(isinstance(one, StoreFailure) and "nothing was recorded" in str(one) for one in outcomes)
        assert len({id(one) for one in outcomes}) == 3
        assert len(session.history.labels) == 1 and session.status().seq == 2
        store._connection.execute("PRAGMA max_page_count = 100000")
        assert session.vote("p0", "cat", "ana").seq == 3
    with altmas.Session.open(tmp_path / "s.altmas") as again:
        assert len(again.history.labels) == 2


def test_a_commit_that_fails_takes_back_what_the_session_already_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(tmp_path / "s.altmas") as session:
        real = session._journal.store.transaction

        @contextmanager
        def refused() -> Iterator[None]:
            with real():
                yield
                raise StoreFailure("the disk refused; nothing was recorded")

        monkeypatch.setattr(session._journal.store, "transaction", refused)
        outcomes, _ = at_once(
            session, lambda: session.vote("p0", "cat", "ana"), lambda: session.vote("p1", "cat", "ben")
        )
        assert [type(one) for one in outcomes] == [StoreFailure, StoreFailure]
        assert session.history.labels == {} and session.status().seq == 1
        monkeypatch.undo()
        assert session.vote("p1", "dog", "ben").seq == 2


def test_a_commit_that_fails_after_the_events_are_in_the_file_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the folder cannot be synced: nobody is acknowledged, but the labels are there and the log goes on."""
    path = tmp_path / "s.altmas"
    with create(path) as session:
        session.vote("p5", "cat", "ana")
        store = session._journal.store
        real = store._commit

        def committed_and_failed() -> None:
            real()
            raise StoreFailure("the folder could not be synced")

        monkeypatch.setattr(store, "_commit", committed_and_failed)
        outcomes, _ = at_once(
            session, lambda: session.vote("p0", "cat", "ana"), lambda: session.vote("p1", "cat", "ben")
        )
        assert [type(one) for one in outcomes] == [StoreFailure, StoreFailure]
        monkeypatch.undo()
        assert session.votes("p0") == {"ana": "cat"} and session.status().seq == 4
        assert session.vote("p2", "dog", "ben").seq == 5 and session.vote("p0", "cat", "ana").seq == 3
    with altmas.Session.open(path) as again:
        assert len(again.history.labels) == 4 and again.integrity() == "ok"


def test_what_another_handle_has_written_is_seen_at_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "s.altmas"
    with create(path) as one, altmas.Session.open(path) as other:
        assert one.vote("p0", "cat", "ana").seq == 2
        assert other.votes("p0") == {"ana": "cat"}
        assert other.vote("p1", "dog", "ben").seq == 3
        assert len(one.history.labels) == 2 and one.vote("p2", "owl", "ana").seq == 4
        assert other.status().labels == 3


def test_an_interrupted_write_is_raised_and_the_session_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(tmp_path / "s.altmas") as session:
        store = session._journal.store

        def interrupted() -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(store, "_commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.vote("p0", "cat", "ana")
        monkeypatch.undo()
        assert session.history.labels == {} and session.vote("p1", "cat", "ana").seq == 2


def test_one_write_that_the_disk_refuses_raises_the_failure_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = StoreFailure("the disk refused; nothing was recorded")

    def refused() -> None:
        raise failure

    with create(tmp_path / "s.altmas") as session:
        monkeypatch.setattr(session._journal.store, "_commit", refused)
        with pytest.raises(StoreFailure) as found:
            session.vote("p0", "cat", "ana")
        assert found.value is failure
