"""The replay of the log: what a list of events amounts to, and what is no log of altmas."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import altmas
from altmas.errors import NotASession
from altmas.history import Batch
from altmas.pool import Model, Pool
from altmas.session.arrays import pack
from altmas.session.log import State, Vote, batch_of, draw_entry, model_entry, plain, text
from altmas.session.store import Entry, Event
from session_world import pool

POOL = pool(10)


def events(*entries: Entry) -> list[Event]:
    """The entries as they would stand in a log."""
    return [
        Event(
            *(getattr(entry, name) for name in Entry.__dataclass_fields__),
            seq,
            f"2026-01-01T00:00:{seq:02d}",
            f"h{seq}",
        )
        for seq, entry in enumerate(entries, 1)
    ]


def replayed(*entries: Entry) -> State:
    state = State(POOL, "s.altmas")
    state.feed(events(*entries))
    return state


def said(point: int, label: str | None, annotator: str | None = "ana", kind: str = "label", reason: str = "") -> Entry:
    return Entry(kind, annotator, f"p{point}", label, body={"reason": reason} if reason else {})


def drawn(*rows: int, probabilities=True, **batch: Any) -> Entry:
    chances = np.full(len(rows), 0.1) if probabilities else None
    return draw_entry(Batch(np.array(rows, np.int64), chances, **batch), [f"p{row}" for row in rows], 1)


CREATED = Entry("created")


def test_nothing_fed_is_nothing_known():
    state = State(POOL)
    assert state.seq == 0 and state.digest == "" and state.reached == {0: 0} and state.history().labels == {}
    assert (state.revisions, state.undone, state.reveals) == (0, 0, 0) and state.outstanding() == []


# ---------------------------------------------------------------- votes, labels and rulings


def test_the_first_annotators_vote_is_the_label_as_last_revised():
    state = replayed(CREATED, said(3, "cat"), said(3, "dog", "bob"), said(3, "owl"))
    assert state.labels == {3: 2} and state.revisions == 1
    assert state.votes(3) == [Vote("ana", "label", 2, "", 4), Vote("bob", "label", 1, "", 3)]
    assert state.vote_event(3, "ana").seq == 4 and state.vote_event(3, "bob").seq == 3
    assert state.vote_event(3, "cyd") is None and state.vote_event(4, "ana") is None and state.votes(4) == []


def test_the_last_ruling_beats_every_vote_and_the_votes_hold_again_without_it():
    one, two = said(3, "dog", "eve", "adjudication"), said(3, "owl", "eve", "adjudication")
    state = replayed(CREATED, said(3, "cat"), one, two)
    assert state.ruling(3).label == "owl" and state.labels == {3: 2}
    assert state.vote_event(3, "eve") is None and [vote.annotator for vote in state.votes(3)] == ["ana"]
    state = replayed(CREATED, said(3, "cat"), one, two, Entry("undo", "eve", "p3", refers=4))
    assert state.ruling(3).label == "dog" and state.labels == {3: 1}
    state = replayed(CREATED, said(3, "cat"), one, Entry("undo", "eve", "p3", refers=3))
    assert state.ruling(3) is None and state.labels == {3: 0} and state.undone == 1
    assert state.revisions == 0  # a ruling revises nobody's vote


def test_rulings_and_votes_of_one_person_are_apart():
    state = replayed(CREATED, said(3, "cat", "eve"), said(3, "dog", "eve", "adjudication"), said(3, "owl", "eve"))
    assert state.ruling(3).label == "dog" and state.labels == {3: 1} and state.revisions == 1


def test_a_skip_counts_until_somebody_names_a_class():
    unsure = said(2, None, "bob", "unsure")
    state = replayed(CREATED, said(2, None, "ana", "skip", "torn"), unsure)
    assert state.skipped == {2: "torn"} and state.labels == {}
    assert replayed(CREATED, unsure).skipped == {2: "unsure"}
    state = replayed(CREATED, said(2, None, "ana", "skip", "torn"), said(2, "owl", "bob"))
    assert state.skipped == {} and state.labels == {2: 2}
    state = replayed(
        CREATED, said(2, None, "ana", "skip", "torn"), said(2, "owl", "bob"), Entry("undo", "bob", "p2", refers=3)
    )
    assert state.skipped == {2: "torn"} and state.labels == {}
    assert list(state.voted()) == [2]


def test_taking_everything_back_leaves_nothing():
    state = replayed(CREATED, said(2, "cat"), Entry("undo", "ana", "p2", refers=2))
    assert state.labels == state.skipped == {} and list(state.voted()) == [] and state.standing == {}
    assert state.undone == 1 and state.seq == 3


def test_the_only_annotator_of_a_point_is_known_by_name():
    state = replayed(CREATED, said(1, "cat"), said(2, "cat"), said(2, "dog", "bob"), said(3, "cat", None))
    assert state.alone == {1: "ana", 3: None}
    state = replayed(CREATED, said(2, "cat"), said(2, "dog", "bob"), Entry("undo", "ana", "p2", refers=2))
    assert state.alone == {2: "bob"} and state.labels == {2: 1}


def test_the_newest_that_can_be_taken_back():
    state = replayed(CREATED, said(1, "cat"), said(2, "cat", "bob"), Entry("note", "ana"))
    assert state.last_standing(None).seq == 3 and state.last_standing("ana").seq == 2
    assert state.last_standing("cyd") is None


# ---------------------------------------------------------------- draws


def test_drawn_points_wait_in_their_order_until_they_are_answered():
    state = replayed(CREATED, said(7, "cat"), drawn(5, 7, 2), drawn(9), said(9, None, "ana", "skip"))
    assert state.drawn == {5: 0, 7: 1, 2: 2, 9: 3} and state.outstanding() == [5, 2]
    state = replayed(CREATED, drawn(5, 2), said(5, "cat"), Entry("undo", "ana", "p5", refers=3))
    assert state.outstanding() == [5, 2] and state.waiting == {5, 2}
    state = replayed(CREATED, drawn(5), said(3, "cat"), Entry("undo", "ana", "p3", refers=3))
    assert state.outstanding() == [5]  # what was never drawn does not wait
    state = replayed(CREATED, said(4, None, "ana", "skip"), drawn(4, 1))
    assert state.outstanding() == [1]


def test_the_history_is_what_the_events_say_and_made_anew_after_each():
    state = State(POOL)
    for event in events(CREATED, drawn(5, 2), said(5, "dog"), said(6, None, "ana", "skip", "dark")):
        state.feed([event])
        before = state.history()
        assert state.history() is before
        assert before.drawn.tolist() == ([5, 2] if event.seq > 1 else [])
    history = state.history()
    assert history.n_points == 10 and history.labels == {5: 1} and history.skipped == {6: "dark"}
    assert history.drawn.tolist() == [5, 2]
    state.feed([Event("reveal", "ana", "p1", seq=5)])
    assert state.reveals == 1 and state.seq == 5


def test_when_each_number_of_labels_was_reached():
    state = replayed(
        CREATED, said(1, "cat"), said(2, "cat"), Entry("undo", "ana", "p2", refers=3), said(3, "cat"), said(4, "cat")
    )
    assert state.reached == {0: 0, 1: 2, 2: 3, 3: 6}
    assert state.created_at == "2026-01-01T00:00:01" and state.last_at == "2026-01-01T00:00:06"
    assert state.digest == "h6"


def test_a_batch_survives_being_an_event():
    batch = Batch(
        np.array([3, 1]),
        np.array([0.5, 0.25]),
        {"levels": np.array([1, 2], np.uint8)},
        {"loss": np.float64(0.5), "bad": math.nan},
        labels_before=4,
    )
    entry = draw_entry(batch, ["p3", 1], 17)
    assert entry.body["points"] == ["p3", "1"] and entry.body["seen"] == 17 and entry.kind == "draw"
    (event,) = events(entry)
    again = batch_of(event)
    assert again.indices.tolist() == [3, 1] and again.probabilities.tolist() == [0.5, 0.25]
    assert again.record["levels"].tolist() == [1, 2] and set(again.record) == {"levels"}
    assert again.info == {"loss": 0.5, "bad": None} and again.labels_before == 4
    (event,) = events(draw_entry(Batch(np.array([3])), ["p3"], 1))
    assert batch_of(event).probabilities is None and batch_of(event).record == {}


def estimate(labels: object, **values: Any) -> Entry:
    one = {"metric": "accuracy", "value": 0.5, "low": None, "high": 1, **values}
    return Entry("estimate", body={"labels": labels, "estimates": [one]})


def test_estimates_are_kept_by_their_number_of_labels():
    state = replayed(CREATED, estimate(5), estimate(9), estimate(5, value=0.75))
    assert {labels: event.seq for labels, event in state.estimates.items()} == {5: 4, 9: 3}


# ---------------------------------------------------------------- what does not fit


def rows(values: Any, chances: Any = None, body: Mapping[str, Any] | None = None) -> Entry:
    arrays = {"indices": np.asarray(values)}
    if chances is not None:
        arrays["probabilities"] = np.asarray(chances)
    whole = {"points": [], "labels_before": 0, "seen": 1, "info": {}}
    return Entry("draw", body=whole if body is None else body, data=pack(arrays))


@pytest.mark.parametrize(
    "entry, why",
    [
        (rows([1, 1]), "different whole numbers"),
        (rows([1.0, 2.0]), "different whole numbers"),
        (rows([[1, 2]]), "different whole numbers"),
        (rows([1, 10]), "beyond the pool of 10 points"),
        (rows([-1, 2]), "beyond the pool of 10 points"),
        (rows([1, 2], [0.5]), "a probability above 0"),
        (rows([1, 2], [0.5, 0.0]), "a probability above 0"),
        (rows([1, 2], [0.5, math.nan]), "a probability above 0"),
        (rows([1, 2], [1, 1]), "a probability above 0"),
        (rows([1], body={"labels_before": 0.5, "info": {}}), "labels_before or info is missing"),
        (rows([1], body={"labels_before": 0, "info": []}), "labels_before or info is missing"),
        (said(1, None), "a label is missing, or too many"),
        (said(1, "cat", kind="skip"), "a label is missing, or too many"),
        (said(1, None, kind="adjudication"), "a label is missing, or too many"),
        (said(1, "hound"), "hound"),
        (said(77, "cat"), "p77"),
        (Entry("undo", "ana", "p1", refers=9), "takes back event 9, which does not stand"),
        (Entry("undo", "ana", "p1", refers=1), "takes back event 1, which does not stand"),
        (estimate("5"), "it holds no estimates"),
        (estimate(5, metric=None), "it holds no estimates"),
        (estimate(5, low="0.5"), "it holds no estimates"),
    ],
)
def test_an_event_that_altmas_did_not_write_is_named(entry, why):
    with pytest.raises(NotASession) as error:
        replayed(CREATED, entry)
    words = str(error.value)
    assert words.startswith(f"s.altmas was changed or damaged: event 2 ({entry.kind}) does not fit the log before it (")
    assert why in words and words.endswith("nothing was read")


def test_draws_at_both_ends_of_the_pool_and_of_nothing_are_sound():
    assert replayed(CREATED, rows([0, 9])).drawn == {0: 0, 9: 1}
    assert replayed(CREATED, rows(np.zeros(0, np.int64))).drawn == {}
    assert replayed(CREATED, rows(np.array([1, 2], np.uint8), [0.5, 1.0])).drawn == {1: 0, 2: 1}


# ---------------------------------------------------------------- further models


ANSWERS, SCORES = np.arange(10) % 3, np.tile([0.2, 0.3, 0.5], (10, 1))


def test_a_further_model_survives_being_an_event():
    state = replayed(CREATED, model_entry(Model("v2", ANSWERS, SCORES)), model_entry(Model("v3", ANSWERS)))
    *_, second, third = state.pool.models
    assert second.name == "v2" and third.name == "v3" and third.scores is None
    np.testing.assert_array_equal(second.predictions, ANSWERS)
    np.testing.assert_array_equal(second.scores, SCORES)
    assert len(POOL.models) == len(state.pool.models) - 2


@pytest.mark.parametrize(
    "model, why",
    [
        (Model("v2", ANSWERS + 1), "no codes of its classes"),
        (Model("v2", ANSWERS - 1), "no codes of its classes"),
        (Model("v2", ANSWERS[:9]), "no codes of its classes"),
        (Model("v2", ANSWERS.astype(float)), "no codes of its classes"),
        (Model("v2", ANSWERS, SCORES[:, :2]), "scores of 'v2' do not fit"),
        (Model("v2", ANSWERS, SCORES * np.nan), "scores of 'v2' do not fit"),
    ],
)
def test_a_damaged_model_is_refused_and_a_name_stands_once(model, why):
    with pytest.raises(NotASession, match=why):
        replayed(CREATED, model_entry(model))
    with pytest.raises(NotASession, match="there is a model 'v2' already"):
        replayed(CREATED, model_entry(Model("v2", ANSWERS)), model_entry(Model("v2", ANSWERS)))


# ---------------------------------------------------------------- plain values


def test_values_as_json_has_them():
    given = {1: np.array([1.0, np.nan]), "b": (True, None, -math.inf, 2), "c": np.float32(0.5), "d": {"e": object}}
    found = plain(given)
    assert found == {"1": [1.0, None], "b": [True, None, None, 2], "c": 0.5, "d": {"e": "<class 'object'>"}}
    assert plain([np.int64(3), "é"]) == [3, "é"] and text("a\ud800b") == "a?b"


def test_votes_are_those_of_the_events_after_every_change():
    """What is remembered of a point's votes is forgotten when somebody votes again, or takes a vote back."""
    pool = Pool(None, ["cat", "dog", "cat"], classes=["cat", "dog"], ids=["a", "b", "c"])
    session = altmas.Session.create(None, pool, method="tradition")
    for query in session.ask(3):
        session.tell(query.id, "cat", annotator="ann")
    assert session.votes("a") == {"ann": "cat"}
    session.tell("a", "dog", annotator="ann")
    assert session.votes("a") == {"ann": "dog"}
    session.tell("a", "cat", annotator="bob")
    assert session.votes("a") == {"ann": "dog", "bob": "cat"} and session.status().disagreements == 1
    session.undo(annotator="bob")
    assert session.votes("a") == {"ann": "dog"} and session.status().disagreements == 0
    assert session.status().labels == 3
