"""Votes of several people: agreement, disagreement, adjudication."""

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

import altmas
from altmas.errors import PlanError, SessionError, StoreFailure, UnknownLabel
from altmas.session.answers import Answer
from altmas.session.opinions import wants_two
from altmas.session.store import Entry, Event, LabelStore
from session_world import NAMES, N, create, pool


def label_of(session: altmas.Session, id: str) -> object:
    code = session.history.labels.get(session.pool.index(id))
    return None if code is None else session.pool.classes[code]


def test_agreement_of_two_people_is_cohens_kappa():
    rng = np.random.default_rng(4)
    ana = NAMES[rng.integers(0, 3, N)]
    bob = np.where(rng.random(N) < 0.6, ana, NAMES[rng.integers(0, 3, N)])
    session = create()
    for row in range(N):  # who comes first makes no difference
        for name, votes in sorted({"ana": ana, "bob": bob}.items(), reverse=bool(row % 2)):
            session.tell(f"p{row}", votes[row], name)
    found = session.agreement()
    assert found.points == N and found.share == np.mean(ana == bob)
    assert found.kappa == pytest.approx(cohen_kappa_score(ana, bob))


def test_agreement_is_undefined_without_pairs_and_where_everybody_says_the_same():
    session = create()
    session.tell("p1", "cat", "ana")
    assert session.agreement().points == 0 and math.isnan(session.agreement().kappa)
    session.tell("p1", "cat", "bob")
    assert session.agreement().share == 1 and math.isnan(session.agreement().kappa)


def test_the_first_vote_is_the_label_until_somebody_settles_it():
    session = create()
    session.tell({"p1": "cat", "p2": "cat"}, annotator="ana")
    session.tell({"p1": "dog", "p2": "cat"}, annotator="bob")
    assert session.history.labels == {1: 0, 2: 0}
    (found,) = session.disagreements()
    assert (found.id, found.index, found.item) == ("p1", 1, "text 1")
    assert found.votes == {"ana": "cat", "bob": "dog"} and session.status().disagreements == 1
    session.adjudicate("p1", "owl", "eve", "seen under the lens")
    assert session.history.labels == {1: 2, 2: 0} and session.disagreements() == []
    session.tell("p1", "dog", "ana")
    assert session.history.labels[1] == 2  # settled is settled
    session.undo("eve")
    assert session.history.labels[1] == 1 and session.disagreements() == []  # ana came round


def test_taking_the_first_vote_back_leaves_the_second():
    session = create()
    session.tell("p1", "cat", "ana")
    session.tell("p1", "dog", "bob")
    session.undo("ana")
    assert session.history.labels == {1: 1} and session.votes("p1") == {"bob": "dog"}


def test_an_unsure_point_waits_to_be_settled():
    session = create()
    session.skip("p1", "blurred", "ana", kind="unsure")
    session.skip("p2", "torn", "ana")
    (found,) = session.unsure()
    assert found.id == "p1" and found.votes == {"ana": "unsure: blurred"}
    session.adjudicate("p1", "cat")
    assert session.history.labels == {1: 0} and session.unsure() == []


def test_what_cannot_be_settled():
    session = create()
    with pytest.raises(SessionError, match="no label to settle; tell one first; nothing was recorded"):
        session.adjudicate("p1", "cat")
    session.tell("p1", "cat")
    with pytest.raises(UnknownLabel, match="point 'p1': label 'hound'"):
        session.adjudicate("p1", "hound")


def test_the_share_that_is_labelled_twice():
    ids = pool(10_000).ids
    share = np.mean([wants_two(id, 7, 0.2) for id in ids])
    assert abs(share - 0.2) < 4 * math.sqrt(0.16 / 10_000)
    assert not any(wants_two(id, 7, 0.0) for id in ids[:100]) and all(wants_two(id, 7, 1.0) for id in ids[:100])


def test_the_last_ruling_holds_and_taking_it_back_restores_the_one_before(tmp_path):
    path = tmp_path / "one.altmas"
    with create(path) as session:
        session.tell("p1", "cat", "ana")
        session.tell("p1", "dog", "bob")
        session.adjudicate("p1", "owl", "eve")
        session.adjudicate("p1", "dog", "eve")
    for expected in ("dog", "owl", "cat"):
        with altmas.Session.open(path) as session:
            assert label_of(session, "p1") == expected
            with closing(sqlite3.connect(path)) as connection:
                assert connection.execute("SELECT label FROM labels WHERE point = 'p1'").fetchall() == [(expected,)]
            session.undo("eve")


def test_an_undo_takes_back_the_newest_of_what_that_person_said_and_nothing_else():
    session = create()
    for point, label, name in [("p1", "cat", "ana"), ("p2", "dog", "bob"), ("p3", "owl", "ana"), ("p4", "cat", "bob")]:
        session.tell(point, label, name)
    undone = session.undo("ana")
    assert (undone.id, undone.label, undone.annotator) == ("p3", "owl", "ana")
    assert {session.pool.ids[row] for row in session.history.labels} == {"p1", "p2", "p4"}
    assert session.undo().id == "p4"
    assert session.undo("ana").id == "p1"
    assert session.undo("ana") is None
    assert {session.pool.ids[row] for row in session.history.labels} == {"p2"}
    *_, last = session.events()
    assert (last["kind"], last["point"], last["refers"]) == ("undo", "p1", 2)


def test_answers_and_rulings_go_in_together_or_not_at_all(monkeypatch):
    session = create()
    append = LabelStore._append

    def refusing(store: LabelStore, entry: Entry) -> Event:
        if entry.kind == "adjudication":
            raise StoreFailure("the disk is full; nothing was recorded")
        return append(store, entry)

    answers = [Answer("p1", "cat", annotator="ana"), Answer("p1", "dog", "adjudication", "eve", note="seen twice")]
    monkeypatch.setattr(LabelStore, "_append", refusing)
    with pytest.raises(StoreFailure):
        session.answer(answers)
    monkeypatch.undo()
    assert [event["kind"] for event in session.events()] == ["created"]
    session.answer(answers)
    assert label_of(session, "p1") == "dog"
    assert [event["body"] for event in session.events()][-1] == {"note": "seen twice"}
    with pytest.raises(SessionError, match="point 'p2' has no label to settle"):
        session.answer([Answer("p3", "cat"), Answer("p2", "cat", "adjudication")])
    assert label_of(session, "p3") is None


def test_a_ruling_is_no_vote_and_no_skip():
    session = create()
    session.tell("p1", "cat")
    with pytest.raises(PlanError, match="a vote of kind 'adjudication'"):
        session.vote("p1", "dog", "ana", kind="adjudication")
    with pytest.raises(PlanError, match="use tell for a label"):
        session.skip("p1", kind="adjudication")


def test_a_point_that_cannot_be_settled_has_no_label_and_counts_as_skipped(tmp_path):
    session = create()
    session.tell("p1", "cat", "ana")
    session.tell("p1", "dog", "ben")
    session.cannot_settle("p1", "eve", "both can be seen")
    assert session.disagreements() == [] and session.history.labels == {}
    assert session.history.skipped == {1: "both can be seen"} and session.status().skipped == 1
    session.export_labels(tmp_path / "labels.csv")
    other = create()
    other.import_labels(tmp_path / "labels.csv")
    assert other.history.skipped == session.history.skipped and other.history.labels == {}
    assert session.undo("eve").kind == "unsettled"
    assert session.history.labels == {1: 0} and len(session.disagreements()) == 1


def test_an_unsure_point_that_cannot_be_settled_waits_no_longer():
    session = create()
    session.skip("p1", "too dark", "ana", kind="unsure")
    session.cannot_settle("p1", "eve")
    assert session.unsure() == [] and session.history.skipped == {1: "cannot be settled"}
    with pytest.raises(PlanError, match="cannot_settle says that there is none; nothing was recorded"):
        session.adjudicate("p1", None)
    with pytest.raises(SessionError, match="no label to settle"):
        session.cannot_settle("p2")
    with pytest.raises(PlanError, match="use tell for a label"):
        session.skip("p1", kind="unsettled")


def test_points_that_later_answers_passed_over_can_be_closed():
    session = create()
    asked = session.ask(5)
    assert session.overdue() == []
    session.tell(asked[3].id, "cat")
    held = session.ask(1, annotator="ana")[0]
    late = session.overdue()
    assert [query.id for query in late] == [query.id for query in asked[:3] if query.id != held.id]
    assert session.close_overdue("owner", "nobody could reach it") == len(late) == 2
    assert session.overdue() == [] and set(session.history.skipped.values()) == {"nobody could reach it"}
    assert session.history.outstanding.tolist() == [held.index, asked[4].index]


def test_a_point_that_was_ruled_on_needs_no_second_opinion():
    session = create(double_share=1.0)
    (query,) = session.ask(1, "ana")
    session.tell(query.id, "cat", "ana")
    assert session.status().second_opinions_open == 1
    session.adjudicate(query.id, "dog", "owner")
    assert session.status().second_opinions_open == 0
    assert query.id not in {other.id for other in session.ask(1, "bob")}


def test_the_documented_query_leaves_out_points_that_cannot_be_settled(tmp_path):
    text = (Path(__file__).parents[1] / "docs" / "session_file.md").read_text(encoding="utf-8")
    query = text.split("```sql\n")[-1].split("```")[0]
    with create(tmp_path / "a.altmas") as session:
        session.tell("p1", "cat", "ana")
        session.tell("p1", "dog", "ben")
        session.tell("p2", "dog", "ana")
        session.cannot_settle("p1", "eve")
        with closing(sqlite3.connect(session.path)) as connection:
            assert [row[0] for row in connection.execute(query)] == ["p2"]
            session.undo("eve")
            assert {row[0] for row in connection.execute(query)} == {"p1", "p2"}
