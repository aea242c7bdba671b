"""Who is shown what: leases, second opinions, and draws that are made while labels come in."""

import threading
from dataclasses import dataclass, field

import numpy as np
import pytest

import altmas
from altmas.errors import PlanError
from altmas.methods import Tradition, Traits
from altmas.session import queue
from altmas.session.queue import ReadyQueue
from session_world import N, create, pool, truth


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""

    class Clock:
        now = 1_000_000.0

        def time(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(queue, "time", clock)
    monkeypatch.setattr("altmas.session.votes.time", clock)
    return clock


def rows(queries: list[altmas.Query]) -> list[int]:
    return [query.index for query in queries]


# ---------------------------------------------------------------- leases


def test_no_point_goes_to_two_people_at_once():
    session = create()
    ana, bob = session.ask(3, "ana"), session.ask(3, "bob")
    assert not set(rows(ana)) & set(rows(bob))
    assert session.ask(3, "ana") == ana and session.ask(3, "bob") == bob
    assert not set(rows(session.ask(3))) & set(rows(ana + bob))


def test_the_order_of_what_is_asked_does_not_depend_on_who_held_it_first():
    session = create(pool=pool(12))
    later = rows(session.ask(5))[3]
    session.skip(f"p{later}", "torn", "ana")
    session.undo("ana")  # now ana holds the fourth point
    first = session.ask(3, "ana")
    assert later in rows(first) and session.ask(3, "ana") == first and session.ask(2, "ana") == first[:2]


def test_an_abandoned_point_returns_when_its_lease_expires(clock):
    session = create(budget=4)
    ana = session.ask(3, "ana", lease=60)
    assert len(session.ask(4, "bob", lease=60)) == 1
    clock.now += 59
    assert len(session.ask(4, "bob", lease=60)) == 1
    clock.now += 2
    assert set(rows(session.ask(4, "bob", lease=60))) >= set(rows(ana))
    assert session.ask(4, "ana") == []


def test_asking_again_renews_a_lease_that_is_running_out(clock):
    session = create(budget=3)
    session.ask(3, "ana", lease=60)
    clock.now += 40
    session.ask(3, "ana", lease=60)
    clock.now += 40
    assert session.ask(3, "bob") == []


def test_leases_survive_a_restart(tmp_path):
    with create(tmp_path / "one.altmas", budget=3) as session:
        ana = session.ask(3, "ana")
    with altmas.Session.open(tmp_path / "one.altmas") as session:
        assert session.ask(3, "bob") == [] and session.ask(3, "ana") == ana


def test_an_annotator_who_leaves_gives_the_points_back():
    session = create(budget=3)
    ana = session.ask(3, "ana")
    session.release("ana")
    assert session.ask(3, "bob") == ana


def test_what_others_hold_is_taken_over_only_where_that_is_asked_for(clock):
    session = create(budget=6)
    ana, bob = session.ask(3, "ana"), session.ask(2, "bob")
    assert [(one.annotator, len(one.rows)) for one in session.held_by_others("ana")] == [("bob", 2)]
    assert len(session.ask(6)) == 1
    assert "the budget of 6 labels leaves 6; 3 items are with ana until " in session.why_fewer(6 + 1, 1)
    assert session.why_fewer(1, 1) == ""
    assert session.ask(2, "cy", take_over=True) == ana[:2]  # no more than were asked for
    assert [(one.annotator, one.rows) for one in session.held_by_others("cy")] == [
        ("ana", (ana[2].index,)),
        ("bob", tuple(sorted(rows(bob)))),
    ]
    assert set(rows(session.ask(6, take_over=True))) >= set(rows(ana + bob))
    assert session.held_by_others() == ()


def test_a_point_told_is_no_longer_held_and_an_undone_one_is_held_again():
    session = create(budget=3)
    ana = session.ask(3, "ana")
    session.tell(ana[0].id, "cat", "ana")
    assert session.status().leased == 2
    session.undo("ana")
    assert session.status().leased == 3
    assert session.ask(3, "bob") == [] and rows(session.ask(3, "ana")) == rows(ana)


def test_a_late_label_is_taken_as_a_second_opinion(clock):
    session = create(budget=1)
    late = session.ask(1, "ana", lease=10)[0]
    clock.now += 11
    assert session.ask(1, "bob") == [late]
    session.tell(late.id, "cat", "bob")
    session.tell(late.id, "dog", "ana")
    assert session.votes(late.id) == {"bob": "cat", "ana": "dog"} and len(session.history.labels) == 1


@pytest.mark.parametrize("lease", [0, -5, float("nan"), float("inf")])
def test_a_strange_lease(lease):
    with pytest.raises(PlanError, match="lease"):
        create().ask(1, "ana", lease)


def test_points_that_are_ready_are_given_without_a_draw():
    session = create()
    assert session.ask(3, draw=False) == []
    session.prefetch(2)
    assert len(session.ask(3, draw=False)) == 2


# ---------------------------------------------------------------- second opinions


def test_a_share_of_the_points_is_labelled_by_two_people():
    session = create(pool=pool(400), double_share=0.3, budget=200)
    while queries := session.ask(20, "ana"):
        for query in queries:
            session.tell(query.id, "cat", "ana")
    assert session.should_stop().stop
    waiting = session.status().second_opinions_open
    assert 0.2 * 200 < waiting < 0.4 * 200
    again = []
    while queries := session.ask(20, "bob"):
        for query in queries:
            again.append(query.index)
            session.tell(query.id, truth(query), "bob")
    assert len(again) == len(set(again)) == waiting
    assert session.status().second_opinions_open == 0 and len(session.history.labels) == 200
    assert session.agreement().points == waiting


def test_whose_second_opinion_it_is():
    session = create(double_share=1.0, budget=3)
    for query in session.ask(3, "ana"):
        session.tell(query.id, "cat", "ana")
    assert session.ask(3, "ana") == [] and session.ask(3) == []
    bob = session.ask(2, "bob")
    assert len(bob) == 2 and len(session.ask(3, "eve")) == 1
    session.skip(bob[0].id, "torn", "bob")
    assert session.ask(3, "bob") == [bob[1]]
    assert session.history.labels[bob[0].index] == 0  # a skip takes nobody's label away


def test_the_share_is_chosen_by_the_ids_and_the_seed():
    def chosen(seed: int) -> list[int]:
        session = create(double_share=0.4, seed=seed)
        session.tell({query.id: "cat" for query in session.ask(N)}, annotator="ana")
        return sorted(rows(session.ask(N, "bob")))

    assert chosen(1) == chosen(1) != chosen(2)


# ---------------------------------------------------------------- draws while labels come in


@dataclass(frozen=True)
class Slow:
    """Tradition that thinks until it is let go."""

    thinking: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    asked: list[int] = field(default_factory=list)
    name = "slow"
    traits = Traits()

    def propose(self, task, history, n):
        self.asked.append(len(history.labels))
        self.thinking.set()
        assert self.go.wait(20)
        return Tradition().propose(task, history, n)

    def estimate(self, task, history):
        return Tradition().estimate(task, history)


def in_background(work) -> tuple[threading.Thread, list]:
    found: list = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    return thread, found


def test_labels_are_told_while_the_method_thinks():
    method = Slow()
    method.go.set()
    session = create(method=method)
    first = session.ask(5)
    method.go.clear()
    method.thinking.clear()
    thread, drawn = in_background(lambda: session.prefetch(8))
    assert method.thinking.wait(20)
    for query in first[:4]:
        session.tell(query.id, truth(query))
    assert session.ask(1, "ana") == [first[4]]  # what is ready is not held up
    assert len(session.estimate()) == 1 and session.status().labels == 4
    method.go.set()
    thread.join(20)
    assert drawn == [3]
    assert method.asked == [0, 0]  # the draw counts, although labels came in: none of them was open
    last = session.history.batches[-1]
    assert last.labels_before == 0 and len(last.indices) == 3
    seen = next(event for event in reversed(list(session.events())) if event["kind"] == "draw")["body"]["seen"]
    replayed = Tradition().propose(session.task, session.at(seq=seen).history, 3)
    np.testing.assert_array_equal(replayed.indices, last.indices)


def test_a_draw_is_made_again_when_an_open_point_was_labelled_meanwhile():
    method = Slow()
    session = create(method=method)
    thread, drawn = in_background(lambda: session.prefetch(3))
    assert method.thinking.wait(20)
    session.tell("p7", "cat")  # nobody asked for it: the probabilities of the draw under way no longer hold
    method.go.set()
    thread.join(20)
    assert drawn == [3] and method.asked == [0, 1]
    assert 7 not in session.history.drawn


def test_a_draw_is_made_again_when_the_budget_shrank_meanwhile():
    method = Slow()
    session = create(method=method, budget=4)
    thread, drawn = in_background(lambda: session.prefetch(4))
    assert method.thinking.wait(20)
    session.tell({f"p{row}": "cat" for row in range(3)})
    method.go.set()
    thread.join(20)
    assert drawn == [1] and len(session.history.drawn) == 1


def test_prefetching_draws_what_is_missing_and_no_more():
    session = create(budget=6)
    assert session.prefetch(4) == 4 and session.prefetch(4) == 0
    held = session.ask(3, "ana")
    assert session.prefetch(4) == 2  # the budget has no room for more
    assert len(session.ask(9)) == 3 and not set(rows(held)) & set(rows(session.ask(9)))


def test_what_another_thread_has_drawn_meanwhile_is_handed_out(monkeypatch):
    """Between the look at the queue and the draw somebody else takes all the room that the budget leaves."""
    session = create(budget=4)
    draw = ReadyQueue._draw

    def overtaken(queue: ReadyQueue, n: int) -> int:
        monkeypatch.setattr(ReadyQueue, "_draw", draw)
        assert session.prefetch(4) == 4
        return draw(queue, n)

    monkeypatch.setattr(ReadyQueue, "_draw", overtaken)
    assert len(session.ask(1, "ana")) == 1
