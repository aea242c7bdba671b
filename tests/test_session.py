"""Ask, tell, estimate, stop."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import altmas
from altmas.errors import (
    FileError,
    MethodError,
    MetricError,
    PlanError,
    PoolMismatch,
    SessionError,
    StoreFailure,
    UnknownLabel,
    UnknownPoint,
    VoteConflict,
)
from altmas.history import Batch
from altmas.methods import Tradition, Traits
from altmas.session.answers import Answer
from session_world import N, create, pool, truth


def label(session: altmas.Session, n: int, **options) -> list[altmas.Query]:
    queries = session.ask(n)
    for query in queries:
        session.tell(query.id, truth(query), **options)
    return queries


# ---------------------------------------------------------------- ask


def test_asking_twice_gives_the_same_points_and_telling_moves_on():
    session = create()
    first = session.ask(4)
    assert session.ask(4) == first and session.ask(2) == first[:2]
    assert [query.item for query in first] == [f"text {query.index}" for query in first]
    assert [query.id for query in first] == [f"p{query.index}" for query in first]
    session.tell(first[1].id, "cat")
    assert session.ask(3) == [first[0], *first[2:]]
    more = session.ask(5)
    assert more[:3] == [first[0], *first[2:]] and len({query.id for query in more}) == 5


def test_a_reopened_session_goes_on_as_if_never_closed(path):
    undisturbed, session = create(), create(path)
    for size in (3, 1, 4, 2):
        assert session.ask(size) == undisturbed.ask(size)
        session.close()
        session = altmas.Session.open(path)
        for query in undisturbed.ask(size):
            undisturbed.tell(query.id, truth(query))
            session.tell(query.id, truth(query))
        assert session.estimate().to_dict() == undisturbed.estimate().to_dict()
    session.close()
    assert altmas.Session.open(path).ask(5) == undisturbed.ask(5)


def test_features_come_back_bit_for_bit_so_that_the_next_draw_is_the_same(path):
    made = pool(scores=None)
    scores = np.random.default_rng(0).dirichlet(np.ones(3) * 0.01, N)  # rows that no normalising leaves alone
    made = made.with_models(altmas.Model("model", made.predictions, scores))
    create(path, pool=made).close()
    again = altmas.Session.open(path).pool
    assert again.features.dtype == np.float64
    np.testing.assert_array_equal(again.features, made.features)
    np.testing.assert_array_equal(again.scores, made.scores)


def test_the_budget_is_never_exceeded():
    session = create(budget=5)
    assert len(session.ask(100)) == 5
    label(session, 3)
    assert len(session.ask(100)) == 2
    session.tell("p1" if "p1" not in {q.id for q in session.ask(9)} else "p2", "cat")  # volunteered: one less to ask
    assert len(session.ask(100)) == 1
    label(session, 9)
    assert session.ask(1) == []
    assert session.should_stop().stop


def test_a_skipped_point_costs_no_label():
    session = create(budget=2)
    for query in session.ask(2):
        session.skip(query.id, "torn")
    assert len(session.ask(5)) == 2
    assert session.status().skipped == 2


def test_the_pool_ends():
    session = create()
    assert len(label(session, N - 1)) == N - 1
    last = session.ask(10)
    assert len(last) == 1
    session.skip(last[0].id, kind="unsure")
    assert session.ask(1) == []
    decision = session.should_stop()
    assert decision.stop and decision.reason == "every point of the pool is labelled or skipped"


@pytest.mark.parametrize("n", [0, -1, 2.5, "3"])
def test_asking_for_a_strange_number(n):
    with pytest.raises(PlanError, match="expected a whole number of at least 1"):
        create().ask(n)


@dataclass(frozen=True)
class Stubborn:
    """A method that proposes what it was told to."""

    rows: tuple[int, ...] = (0, 0)
    name = "stubborn"
    traits = Traits()

    def propose(self, task, history, n):
        return Batch(np.array(self.rows[:n]))

    def estimate(self, task, history):
        return Tradition().estimate(task, history)


@pytest.mark.parametrize("rows", [(0, 0), (3, 4)])
def test_a_method_that_proposes_points_which_are_not_open_is_stopped(rows):
    session = create(method=Stubborn(rows))
    session.tell("p3", "cat")
    with pytest.raises(MethodError, match="expected at most 2 different points that are open; nothing was recorded"):
        session.ask(2)
    assert session.status().outstanding == 0


def test_a_method_that_has_nothing_to_propose():
    assert create(method=Stubborn(())).ask(3) == []


# ---------------------------------------------------------------- tell, skip, undo


def test_many_labels_are_told_all_or_none():
    session = create()
    session.tell({"p1": "cat", "p2": "dog"})
    for bad, error in (({"p3": "cat", "p4": "hound"}, UnknownLabel), ({"p3": "cat", "p999": "cat"}, UnknownPoint)):
        with pytest.raises(error, match="nothing was recorded"):
            session.tell(bad)
    assert session.history.labels == {1: 0, 2: 1}
    session.tell({})
    assert session.history.labels == {1: 0, 2: 1}


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        (("p1", "catt"), UnknownLabel, "point 'p1': label 'catt' is not a class .*did you mean 'cat'"),
        (("p1", None), UnknownLabel, "label None"),
        (("p1", float("nan")), UnknownLabel, "label nan"),
        (("q1", "cat"), UnknownPoint, "id 'q1' is not in this pool"),
        ((["p1"], "cat"), UnknownPoint, "not in this pool"),
        (({"p1": "cat"}, "dog"), PlanError, "one id and one label"),
        (("p1", "cat", None, -1.0), PlanError, "seconds -1.0 is not a time"),
        (("p1", "cat", None, "soon"), PlanError, "seconds 'soon' is not a time"),
    ],
)
def test_what_cannot_be_told(arguments, error, sentence):
    session = create()
    with pytest.raises(error, match=sentence):
        session.tell(*arguments)
    assert len(list(session.events())) == 1


def test_a_label_that_was_not_asked_for_is_known_and_flagged():
    session = create()
    asked = session.ask(2)
    free = next(f"p{row}" for row in range(N) if row not in {query.index for query in asked})
    session.tell(free, "cat")
    session.tell(asked[0].id, "dog")
    assert session.history.volunteered.tolist() == [int(free[1:])]
    assert session.status().volunteered == 1
    assert free not in {query.id for query in session.ask(N)}


def test_telling_again_is_a_revision_and_undo_brings_the_first_back(path):
    with create(path) as session:
        session.tell("p1", "cat")
        session.tell("p2", "cat")
        session.tell("p1", "dog")
        assert session.history.labels == {1: 1, 2: 0}
        assert session.status().revisions == 1
    with altmas.Session.open(path) as session:
        undone = session.undo()
        assert (undone.id, undone.index, undone.kind, undone.label) == ("p1", 1, "label", "dog")
        assert session.history.labels == {1: 0, 2: 0}
        assert session.undo().id == "p2" and session.undo().id == "p1" and session.undo() is None
        assert session.history.labels == {}
        assert [event["kind"] for event in session.events()] == ["created", *["label"] * 3, *["undo"] * 3]


def test_an_undone_draw_is_asked_again_in_its_place():
    session = create()
    asked = session.ask(3)
    session.tell(asked[0].id, "cat")
    session.skip(asked[1].id, "torn")
    session.undo()
    session.undo()
    assert session.ask(3) == asked


def test_skip_and_unsure_are_kept_apart_and_a_label_ends_them():
    session = create()
    session.skip("p1", "torn", "ana")
    session.skip("p2", "hard", kind="unsure", seconds=3)
    assert dict(session.history.skipped) == {1: "torn", 2: "hard"}
    assert (session.status().skipped, session.status().unsure) == (1, 1)
    session.tell("p1", "cat", "ana")
    assert dict(session.history.skipped) == {2: "hard"} and session.history.labels == {1: 0}
    session.skip("p1", annotator="ana")
    assert dict(session.history.skipped) == {2: "hard", 1: "skip"} and not session.history.labels
    for kind in ("label", "later"):
        with pytest.raises(PlanError, match="nothing was recorded"):
            session.skip("p3", kind=kind)


def test_answers_of_several_people_are_recorded_together():
    session = create()
    answers = [
        Answer("p1", "cat", annotator=" ana ", seconds=2, made_at="2026-01-01"),
        Answer("p2", kind="skip", reason="torn"),
        Answer("p1", "dog", annotator="bob", note="maybe \ud800"),
    ]
    session.answer(answers)
    assert session.votes("p1") == {"ana": "cat", "bob": "dog"}
    assert [event["body"] for event in session.events()][1:] == [
        {"made_at": "2026-01-01"},
        {"reason": "torn"},
        {"note": "maybe ?"},
    ]
    with pytest.raises(UnknownLabel):
        session.answer([Answer("p3", "cat"), Answer("p4", "hound")])
    assert session.votes("p3") == {}


def test_notes_and_reveals_are_in_the_log():
    session = create()
    session.note("bright", "p1", "ana")
    session.note("slow day")
    session.reveal("p1", "ana")
    said = [(event["kind"], event["point"], event["annotator"], event["body"]) for event in session.events()][1:]
    assert said == [
        ("note", "p1", "ana", {"text": "bright"}),
        ("note", None, None, {"text": "slow day"}),
        ("reveal", "p1", "ana", {}),
    ]
    assert session.status().reveals == 1


def test_others_can_write_events_of_their_own_kind(path):
    with create(path) as session:
        session.record("predictions", {"name": "v2", "n": np.int64(3), "x": np.nan}, {"codes": np.arange(3)})
        with pytest.raises(SessionError, match="written by the session itself"):
            session.record("label", {})
    last = list(altmas.Session.open(path).events())[-1]
    assert (last["kind"], last["body"], last["arrays"]) == (
        "predictions",
        {"name": "v2", "n": 3, "x": None},
        {"codes": [0, 1, 2]},
    )


# ---------------------------------------------------------------- a page that may send twice


def test_a_vote_that_is_sent_twice_is_recorded_once():
    session = create()
    query = session.ask(1, "ana")[0]
    first = session.vote(query.id, "cat", "ana", seconds=1)
    assert session.vote(query.id, "cat", "ana", seconds=2) == first
    with pytest.raises(VoteConflict, match="already"):
        session.vote(query.id, "dog", "ana")
    second = session.vote(query.id, "dog", "ana", revises=first.seq)
    assert session.votes(query.id) == {"ana": "dog"} and second.seq > first.seq
    with pytest.raises(VoteConflict, match="somebody else labelled it"):
        session.vote(query.id, "dog", "bob")
    with pytest.raises(VoteConflict, match="something newer"):
        session.undo("ana", seq=first.seq)
    assert session.undo("ana", seq=second.seq).label == "dog"
    assert session.undo("ana", seq=second.seq) is None
    other = session.ask(2, "bob")[-1]
    with pytest.raises(VoteConflict, match="went to somebody else"):
        session.vote(other.id, kind="skip", annotator="ana")


def test_the_standing_votes_of_one_annotator_newest_first():
    session = create()
    for row in range(4):
        session.tell(f"p{row}", "cat", "ana" if row % 2 else None)
    assert [event.point for event in session.votes_by("ana")] == ["p3", "p1"]
    assert [event.point for event in session.votes_by(None, 1)] == ["p2"]


# ---------------------------------------------------------------- estimate


def test_estimates_are_remembered_and_logged_once_for_each_number_of_labels():
    session = create(metrics=["accuracy", "recall[cat]"])
    label(session, 5)
    assert session.estimate() is session.estimate()
    session.tell(f"p{session.history.labelled[0]}", "owl")  # another history, the same number of labels
    session.estimate()
    label(session, 2)
    session.estimate()
    assert [entry["labels"] for entry in session.logged_estimates()] == [5, 7]


def test_every_past_estimate_can_be_reproduced_from_the_file(path):
    with create(path, metrics=["accuracy", "per_class"], budget=30) as session:
        session.run(truth, progress=False, batch=4)
        session.undo()
        session.estimate()
        for size in (3, 7):
            label(session, size)
            session.estimate()
    with altmas.Session.open(path) as session:
        logged = [event["body"] for event in session.events() if event["kind"] == "estimate"]
        assert logged
        for body in logged:
            past = session.at(seq=body["seen"])
            assert past.estimate().to_dict()["estimates"] == body["estimates"]
            assert len(past.history.labels) == body["labels"]


def test_the_past_can_be_visited():
    session = create()
    label(session, 6)
    session.undo()
    past = session.at(3)
    assert list(past.history.labels) == list(session.history.labels)[:3]
    assert past.seq == 5 and past.digest == list(session.events())[4]["hash"]
    assert not past.decision().stop
    assert len(session.at(6).history.labels) == 6 and len(session.at(0).history.labels) == 0
    for question in ({"labels": 7}, {"seq": 99}, {}, {"labels": 1, "seq": 1}):
        with pytest.raises(PlanError):
            session.at(**question)


def test_estimates_by_slice():
    session = create(metrics=["accuracy", "accuracy@site=north"])
    label(session, 30)
    found = session.estimate(by="site")
    assert [one.metric for one in found] == ["accuracy@site=north", "accuracy@site=south"]
    assert found[0].value == session.estimate()["accuracy@site=north"].value
    assert sum(one.labels for one in found) == 30
    with pytest.raises(MetricError, match="no slice 'sight' .*did you mean 'site'"):
        session.estimate(by="sight")
    with pytest.raises(MetricError, match="none: pass slices="):
        create(pool=pool(slices=None)).estimate(by="site")


# ---------------------------------------------------------------- run


def test_run_labels_until_the_budget_is_spent():
    session = create(budget=25)
    decision = session.run(truth, progress=False)
    assert decision.stop and "budget of 25" in decision.reason
    assert len(session.history.labels) == 25 and session.status().outstanding == 0


def test_run_stops_at_the_target():
    session = create(targets={"accuracy": 0.2})
    decision = session.run(truth, progress=False, batch=5)
    assert decision.reason == "every target is reached"
    assert session.estimate()["accuracy"].half_width <= 0.2
    assert len(session.history.labels) < N


def test_an_oracle_that_raises_leaves_the_session_whole(path):
    def oracle(query):
        if len(session.history.labels) == 7:
            raise ConnectionError("gone")
        return truth(query)

    session = create(path, budget=20)
    with pytest.raises(ConnectionError):
        session.run(oracle, progress=False)
    session.close()
    with altmas.Session.open(path) as session:
        assert len(session.history.labels) == 7
        assert session.run(truth, progress=False).stop and len(session.history.labels) == 20


def test_an_oracle_may_pass(capsys):
    session = create(budget=10)
    session.run(lambda query: None if query.index % 2 else truth(query))
    assert len(session.history.labels) == 10 and all(row % 2 for row in session.history.skipped)
    assert capsys.readouterr().out == ""


def test_run_ends_when_everything_is_with_annotators():
    session = create(budget=5)
    session.ask(5, annotator="ana")
    assert session.run(truth, progress=False).reason.startswith("nothing is left to ask")


# ---------------------------------------------------------------- opening


def test_exist_ok_goes_on_with_the_same_plan_and_refuses_another(path):
    def weird(y_true, y_pred):
        return 0.5

    options = {"metrics": ["accuracy", weird], "budget": 30, "method": Stubborn((5, 6))}
    create(path, exist_ok=True, **options).tell("p1", "cat")
    again = create(path, exist_ok=True, **options)
    assert again.history.labels == {1: 0}
    with pytest.raises(PlanError, match="budget is 30 there, 31 here; nothing was changed"):
        create(path, exist_ok=True, **options | {"budget": 31})
    with pytest.raises(PlanError, match="method is"):
        create(path, exist_ok=True, **options | {"method": "tradition"})
    with pytest.raises(PoolMismatch):
        create(path, exist_ok=True, pool=pool(N + 1), **options)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ids": [f"q{row}" for row in range(N)]}, "has different ids; nothing"),
        ({"features": np.zeros((N, 4))}, "has different features; nothing"),
        ({"features": None}, "has no features; nothing"),
        ({"scores": None}, "has no scores"),
        ({"slices": {}}, "different slices"),
        ({"n": N - 1}, "different ids, predictions, features, scores, slices and 59 points instead of 60"),
        ({"classes": ["cat", "owl", "dog"]}, "different classes"),
    ],
)
def test_another_pool_is_refused_part_by_part(path, changes, sentence):
    create(path).close()
    with pytest.raises(PoolMismatch, match=sentence):
        altmas.Session.open(path, pool(**changes))


def test_a_pool_with_something_more_is_refused(path):
    create(path, pool=pool(features=None)).close()
    with pytest.raises(PoolMismatch, match="features, which the session's has not"):
        altmas.Session.open(path, pool())


def test_two_handles_on_one_file_see_each_other(path):
    one = create(path)
    two = altmas.Session.open(path)
    asked = one.ask(2)
    assert two.ask(2) == asked
    one.tell(asked[0].id, "cat")
    assert two.ask(1) == [asked[1]]
    two.tell(asked[1].id, "dog")
    assert one.history.labels == two.history.labels and one.estimate().to_dict() == two.estimate().to_dict()
    assert one.ask(3) == two.ask(3)
    assert two.undo().id == asked[1].id and one.ask(1) == [asked[1]]


def test_a_session_is_a_context_and_says_what_it_is(path):
    with create(path, budget=9) as session:
        session.tell("p1", "cat")
        assert repr(session) == f"Session({path}: tradition, 1 of 9 labels)"
    with pytest.raises(StoreFailure):
        session.tell("p2", "cat")
    assert repr(create()) == "Session(in memory: tradition, 0 labels)"


# ---------------------------------------------------------------- what is known


def test_status_counts_people_and_pace():
    session = create(budget=20)
    asked = session.ask(4)
    session.tell(asked[0].id, "cat", "ana", seconds=2)
    session.tell(asked[1].id, "cat", "bob", seconds=4)
    session.tell(asked[2].id, "cat", "ana", seconds=9)
    session.skip(asked[3].id, "torn", "bob")
    session.ask(2, "ana")
    status = session.status()
    assert (status.labels, status.budget, status.points, status.outstanding, status.leased) == (3, 20, N, 2, 2)
    assert status.seconds_per_label == 4 and status.created_at <= status.last_at
    ana, bob = status.annotators
    assert (ana.name, ana.labels, ana.skips, ana.leased, ana.seconds_per_label) == ("ana", 2, 0, 2, 5.5)
    assert (bob.name, bob.labels, bob.skips, bob.leased) == ("bob", 1, 1, 0)
    json.dumps(status.to_dict(), allow_nan=False)
    shown = status._repr_html_()
    assert "3 of 20 labels, 4 s each" in shown and "<th>ana</th><td>2 labels, 0 skipped</td>" in shown
    assert json.loads(json.dumps(create().status().to_dict(), allow_nan=False))["seconds_per_label"] is None


def test_all_events_can_be_exported_as_json_lines(path, tmp_path):
    with create(path) as session:
        label(session, 3, seconds=1.5)
        session.note("ünï, \n😀")
        assert session.export_events(tmp_path / "log.jsonl") == 6
        lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text("utf-8").splitlines()]
        assert lines == list(session.events())
        draw = lines[1]
        assert draw["arrays"]["indices"] == [int(point[1:]) for point in draw["body"]["points"]]
        assert len(draw["arrays"]["probabilities"]) == 3
        with pytest.raises(FileError, match="cannot be written"):
            session.export_events(tmp_path)


def test_without_a_seed_one_is_drawn_stored_and_kept(tmp_path):
    options = {"metrics": ["accuracy"], "method": "tradition", "seed": None}
    path = tmp_path / "drawn.altmas"
    with create(path, **options) as session:
        seed = session.plan.seed
    with create(path, exist_ok=True, **options) as again:
        assert again.plan.seed == again.task.seed == seed
    others = {create(None, **options).plan.seed for _ in range(5)}
    assert len(others | {seed}) == 6


# ---------------------------------------------------------------- short ways


def labelled(n: int = 40) -> altmas.Session:
    pool = altmas.Pool(None, [0, 1] * 50, slices={"site": ["A", "B", "B", "A"] * 25})
    session = altmas.Session.create(None, pool, metrics=["accuracy"], method="tradition")
    for query in session.ask(n):
        session.tell(query, query.index % 2)
    return session


def test_a_query_can_be_told_and_skipped_as_it_is():
    session = labelled(5)
    (query,) = session.ask(1)
    session.skip(query, "blurred")
    assert len(session.history.labels) == 5 and list(session.history.skipped) == [query.index]


def test_a_session_checks_claims():
    session = labelled()
    assert session.check("accuracy >= 0.5").answer == "shown"
    assert session.check("error >= 50%").answer == "refuted"
    with pytest.raises(PlanError, match="claim 'accuracy' was not understood"):
        session.check("accuracy")


def test_other_metrics_can_be_estimated_and_leave_no_trace():
    session = labelled()
    events = len(list(session.events()))
    names = [one.metric for one in session.estimate(metrics=["recall[1]", "f1_macro", "matthews_corrcoef"])]
    assert names == ["recall[1]", "f1_macro", "matthews_corrcoef"]
    assert [one.metric for one in session.estimate("site", metrics="error")] == ["error@site=A", "error@site=B"]
    assert len(list(session.events())) == events and [one.metric for one in session.estimate()] == ["accuracy"]
    with pytest.raises(MetricError):
        session.estimate(metrics=["no such metric"])


def test_a_trajectory_is_what_was_estimated_at_each_number_of_labels():
    session = labelled(40)
    events = len(list(session.events()))
    path = session.trajectory(8)
    assert [labels for labels, _ in path] == [5, 10, 15, 20, 25, 30, 35, 40]
    for labels, estimates in path:
        assert estimates == session.at(labels=labels).estimate()
    assert len(list(session.events())) == events
    with pytest.raises(PlanError, match="expected at least 1"):
        session.trajectory(0)
