"""What annotators say: recorded once, revised, taken back, and who holds the point meanwhile."""

import time

import pytest

import altmas
from altmas.errors import PlanError, SessionError, VoteConflict
from altmas.session.answers import Answer
from session_world import create


def holding(session: altmas.Session, name: str) -> list[str]:
    """Points that are shown to an annotator without a new draw."""
    return [query.id for query in session.ask(60, name, draw=False)]


def leased(session: altmas.Session) -> dict[str, str]:
    """{point: annotator} of the leases that last."""
    return {point: name for point, (name, _) in session._journal.store.leases(time.time()).items()}


def kinds(session: altmas.Session) -> list[str]:
    return [event["kind"] for event in session.events()]


def test_a_vote_sent_again_is_the_same_event_and_one_that_differs_is_another():
    session = create()
    first = session.vote("p1", "cat", "ana")
    assert session.vote("p1", "cat", "ana") == first and kinds(session) == ["created", "label"]
    with pytest.raises(VoteConflict, match="you voted on this item already"):
        session.vote("p1", "dog", "ana")
    with pytest.raises(VoteConflict, match="you voted on this item already"):
        session.vote("p1", "dog", "ana", revises=first.seq + 1)
    second = session.vote("p1", "dog", "ana", revises=first.seq)
    assert second.seq == first.seq + 1 and session.votes("p1") == {"ana": "dog"}
    unsure = session.vote("p2", None, "ana", kind="unsure", reason="dark")
    assert session.vote("p2", None, "ana", kind="unsure", reason="dark") == unsure
    with pytest.raises(VoteConflict):
        session.vote("p2", None, "ana", kind="unsure", reason="torn")


def test_somebody_elses_point_is_not_voted_on():
    session = create()
    (query,) = session.ask(1, "ana")
    with pytest.raises(VoteConflict, match="went to somebody else"):
        session.vote(query.id, "cat", "bob")
    session.release("ana")
    assert session.vote(query.id, "cat", "bob").annotator == "bob"
    with pytest.raises(VoteConflict, match="somebody else labelled it"):
        session.vote(query.id, "cat", "ana")


def test_a_point_for_two_takes_two_and_no_third():
    session = create(double_share=1.0)
    session.vote("p1", "cat", "ana")
    session.vote("p1", "dog", "bob")
    with pytest.raises(VoteConflict, match="somebody else labelled it"):
        session.vote("p1", "dog", "cyd")
    assert session.votes("p1") == {"ana": "cat", "bob": "dog"}


@pytest.mark.parametrize("way", ["tell", "vote", "skip", "answer"])
def test_whoever_answers_no_longer_holds_the_point_and_keeps_the_others(way):
    session = create()
    one, two = session.ask(2, "ana")
    if way == "tell":
        session.tell(one.id, "cat", "ana")
    elif way == "vote":
        session.vote(one.id, "cat", "ana")
    elif way == "skip":
        session.skip(one.id, "dark", "ana")
    else:
        session.answer_new(lambda standing: [Answer(one.id, "cat", annotator="ana")])
    assert leased(session) == {two.id: "ana"}
    session.tell(two.id, "cat", "bob")  # volunteered by somebody else: ana still looks at it
    assert leased(session) == {two.id: "ana"}


def test_taking_back_gives_the_point_back_for_a_while():
    session = create()
    (query,) = session.ask(1, "ana")
    session.vote(query.id, "cat", "ana")
    undone = session.undo("ana")
    assert (undone.id, undone.index, undone.kind, undone.label, undone.annotator) == (
        query.id,
        query.index,
        "label",
        "cat",
        "ana",
    )
    event = list(session.events())[-1]
    assert leased(session) == {query.id: "ana"} and event["kind"] == "undo" and event["annotator"] == "ana"
    assert holding(session, "bob") == [] and holding(session, "ana") == [query.id]
    session.release("ana")
    session.vote(query.id, "dog", "ana")
    session.undo()  # by nobody in particular: nobody holds it
    assert leased(session) == {} and list(session.events())[-1]["annotator"] is None


def test_taking_back_does_not_take_the_point_from_whoever_holds_it_now():
    session = create(double_share=1.0)
    (query,) = session.ask(1, "ana")
    session.vote(query.id, "cat", "ana")
    assert [one.id for one in session.ask(1, "bob")] == [query.id]
    session.undo("ana")
    assert leased(session) == {query.id: "bob"}


def test_only_the_newest_is_taken_back_by_its_number():
    session = create()
    first, second = session.vote("p1", "cat", "ana"), session.vote("p2", "cat", "ana")
    with pytest.raises(VoteConflict, match="something newer was recorded"):
        session.undo("ana", seq=first.seq)
    assert kinds(session)[-1] == "label"
    assert session.undo("ana", seq=second.seq).id == "p2"
    assert session.undo("ana", seq=second.seq) is None  # taken back already
    assert kinds(session).count("undo") == 1
    assert session.undo("ana", seq=first.seq).id == "p1" and session.undo("ana") is None
    skipped = session.vote("p3", None, "ana", kind="skip", reason="dark")
    assert session.undo("ana", seq=skipped.seq).label is None


def test_whether_the_page_knew_who_it_was_is_written_down():
    session = create()
    session.vote_and_ask("p1", "cat", "ana", 1, authenticated=True)
    session.undo("ana", authenticated=False)
    bodies = [event["body"] for event in session.events() if event["kind"] in ("label", "undo")]
    assert bodies == [{"authenticated": True}, {"authenticated": False}]
    session.vote("p1", "cat", "ana")
    session.undo("ana")
    assert [event["body"] for event in session.events()][-2:] == [{}, {}]


def test_a_vote_and_the_next_points_in_one_write():
    session = create()
    first, *_ = session.ask(3)
    event, queries = session.vote_and_ask(first.id, "cat", "ana", 2)
    assert event.point == first.id and len(queries) == 2 and first.id not in {one.id for one in queries}
    assert leased(session) == {one.id: "ana" for one in queries}
    again, same = session.vote_and_ask(first.id, "cat", "ana", 2)
    assert again == event and [one.id for one in same] == [one.id for one in queries]
    with pytest.raises(PlanError, match="named annotator only; nothing was recorded"):
        session.vote_and_ask("p9", "cat", " ", 2)
    with pytest.raises(VoteConflict):
        session.vote_and_ask(first.id, "dog", "ana", 2)
    assert session.votes("p9") == {} and session.votes(first.id) == {"ana": "cat"}


def test_a_ruling_needs_a_vote_on_its_point_in_the_session_or_before_it():
    session = create()
    ruling = Answer("p1", "owl", "adjudication", "eve")
    with pytest.raises(SessionError, match="point 'p1' has no label to settle"):
        session.answer([ruling, Answer("p1", "cat", annotator="ana")])
    assert kinds(session) == ["created"]
    session.answer([Answer("p1", "cat", annotator="ana"), ruling])
    assert session.history.labels == {1: 2}
    session.answer([Answer("p1", "dog", "adjudication", "eve")])
    assert session.history.labels == {1: 1}
    session.adjudicate("p1", "cat", "eve", "seen again")
    *_, last = session.events()
    assert session.history.labels == {1: 0} and last["annotator"] == "eve" and last["body"] == {"note": "seen again"}
    with pytest.raises(PlanError, match="a vote of kind 'adjudication' is none"):
        session.vote("p1", "dog", "ana", kind="adjudication")


def test_answers_are_chosen_by_what_stands_when_they_are_written():
    session = create()
    session.tell({"p1": "cat", "p2": "dog"}, annotator="ana")
    seen = []

    def choose(standing):
        seen.extend((event.point, event.label) for event in standing)
        return [Answer("p3", "owl", "adjudication", "eve")]  # its votes were taken back elsewhere

    session.answer_new(choose)
    assert seen == [("p1", "cat"), ("p2", "dog")] and session.history.labels[3] == 2
    assert [event.point for event in session.standing()] == ["p1", "p2", "p3"]
