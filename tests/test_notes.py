"""Remarks on items: written, edited, taken back, read by the owner; the same after a replay."""

from pathlib import Path

import pytest

import altmas
from altmas.errors import PlanError, VoteConflict
from session_world import create


def test_notes_come_from_remarks_labels_and_rulings_in_the_order_written() -> None:
    session = create(budget=30)
    session.note("about the whole", annotator="ana")
    session.tell("p1", "cat", annotator="ana", note="blurred")
    session.note("odd", "p2", "ben")
    session.adjudicate("p1", "dog", "owner", note="see page 3")
    told = [(note.id, note.text, note.annotator, note.source) for note in session.notes()]
    assert told == [
        (None, "about the whole", "ana", "note"),
        ("p1", "blurred", "ana", "label"),
        ("p2", "odd", "ben", "note"),
        ("p1", "see page 3", "owner", "adjudication"),
    ]
    assert [note.text for note in session.notes("p1")] == ["blurred", "see page 3"]
    session.undo("owner")  # a ruling that is taken back takes its note along
    assert [note.text for note in session.notes("p1")] == ["blurred"]


def test_an_edit_keeps_the_place_of_a_note_and_an_empty_one_takes_it_back(tmp_path: Path) -> None:
    with create(tmp_path / "s.altmas", budget=30) as session:
        first = session.note("odd", "p2", "ana")
        session.note("later", "p3", "ana")
        assert session.note("  very odd ", "p2", "ana", revises=first) == first
        assert [(note.text, note.edited, note.seq == first) for note in session.notes("p2")] == [
            ("very odd", True, True)
        ]
    with altmas.Session.open(tmp_path / "s.altmas") as again:
        assert [note.text for note in again.notes()] == ["very odd", "later"]
        again.note("", "p2", "ana", revises=first)
        assert [note.text for note in again.notes()] == ["later"]
        again.note("back again", "p2", "ana", revises=first)  # what was said stays in the log and can be taken up again
        assert [note.text for note in again.notes()] == ["back again", "later"]


@pytest.mark.parametrize("point, name", [("p2", "ben"), ("p3", "ana"), ("p2", None)])
def test_nobody_edits_the_note_of_somebody_else_or_of_another_item(point: str, name: str | None) -> None:
    session = create(budget=30)
    first = session.note("odd", "p2", "ana")
    with pytest.raises(VoteConflict, match="no note of yours on this item.*nothing was recorded"):
        session.note("changed", point, name, revises=first)
    assert [note.text for note in session.notes()] == ["odd"]


def test_an_empty_note_is_refused() -> None:
    session = create(budget=30)
    with pytest.raises(PlanError, match="empty; nothing was recorded"):
        session.note("  \n", "p2", "ana")
    assert session.notes() == []


def test_an_image_that_could_not_be_shown_counts_once(tmp_path: Path) -> None:
    with create(tmp_path / "s.altmas", budget=30) as session:
        for who in ("ana", "ben", "ana"):
            session.not_shown("p2", "the file is damaged", who)
        session.not_shown("p3", "the image cannot be read", "ana")
        assert session.status().unshown == 2
        assert sum(event["kind"] == "unshown" for event in session.events()) == 2
    assert altmas.Session.open(tmp_path / "s.altmas", read_only=True).status().unshown == 2


def test_the_choice_to_stop_is_logged_with_the_goals_as_they_stood(tmp_path: Path) -> None:
    with create(tmp_path / "s.altmas", budget=40, targets={"accuracy": 0.2}, thresholds={"accuracy": 0.99}) as session:
        target, threshold = session.goals()
        assert not target.reached and not threshold.reached and "not known yet, wanted ±0.2" in str(target)
        for query in session.ask(30):
            session.tell(query, "cat")
        target, threshold = session.goals()
        assert (target.kind, target.wanted, target.reached) == ("target", 0.2, True)
        assert 0 < target.have <= 0.2 and str(target) == f"accuracy: ±{target.have:.3g}, wanted ±0.2"
        session.choose(False, "ana")
        session.choose(True, "ben", authenticated=True)
    with altmas.Session.open(tmp_path / "s.altmas", read_only=True) as again:
        first, last = again.choices()
        assert (first.stop, first.annotator, first.labels) == (False, "ana", 30)
        assert (last.stop, last.annotator) == (True, "ben")
        assert last.goals[0]["metric"] == "accuracy" and last.goals[0]["have"] == pytest.approx(target.have)
        assert len(again.ask(1, draw=False)) <= 1  # a record, not a lock


def test_a_session_without_goals_has_none() -> None:
    assert create(budget=30).goals() == ()


def test_a_note_that_is_no_text_is_refused():
    with pytest.raises(PlanError, match="the note None is no text; nothing was recorded"):
        create().note(None)
