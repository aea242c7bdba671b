"""Planned widths: close to what truly comes out, and honest about what they assume."""

import math

import numpy as np
import pytest

import altmas
from altmas.errors import PlanError
from altmas.forecast import Goals, labels_between
from altmas.history import History
from altmas.planning import PlannedWidth, WidthPlan, imagination, imagined, plan_further, plan_widths
from altmas.simulate import simulate


def world(n: int = 800, accuracy: float = 0.9, seed: int = 0) -> tuple[altmas.Pool, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n)
    predictions = np.where(rng.random(n) < accuracy, truth, (truth + rng.integers(1, 4, n)) % 4)
    return altmas.Pool(None, predictions, classes=[0, 1, 2, 3]), truth


def test_labels_for_a_width_that_only_the_whole_pool_gives():
    path = tuple(PlannedWidth("tradition", "accuracy", labels, width) for labels, width in ((100, 0.08), (400, 0.0)))
    needed = [WidthPlan(path, "").labels_for("accuracy", width, "tradition") for width in (0.08, 0.04, 0.01, 0.0)]
    assert needed[0] == 100 and needed[3] == 400 and needed == sorted(needed)
    assert 0.08**2 * (1 / needed[2] - 1 / 400) == pytest.approx(0.01**2 * (1 / 100 - 1 / 400))


def test_widths_of_a_proof_are_those_that_a_session_with_a_guarantee_gets():
    pool, _ = world()
    options = {"metrics": ["accuracy"], "budgets": [60, 120], "accuracy": 0.9, "worlds": 2, "methods": ["tradition"]}
    plain, proven = plan_widths(pool, **options), plan_widths(pool, guarantee=True, **options)
    assert proven.guarantee and not plain.guarantee
    assert all(wide.half_width > one.half_width for wide, one in zip(proven.widths, plain.widths, strict=True))
    halves = []
    for number in range(2):
        truth = imagined(*_imagination(pool), np.random.default_rng([0, number]))
        seed = int(np.random.default_rng([0, number, 1]).integers(2**31))
        session = altmas.Session.create(None, pool, metrics=["accuracy"], method="tradition", guarantee=True, seed=seed)
        while len(session.history.labels) < 60:
            session.tell({query.id: pool.classes[truth[query.index]] for query in session.ask(12)})
        halves.append(session.estimate()["accuracy"].half_width)
    assert proven.widths[0].half_width == pytest.approx(np.mean(halves))
    with pytest.raises(PlanError, match="no proof is offered for intervals about data to come"):
        plan_widths(pool, guarantee=True, about="future", **options)


def _imagination(pool):
    return imagination(pool, 0.9, History(len(pool)))[0], History(len(pool))


def test_planned_widths_are_those_that_come_out():
    """Within 15 %: the plan knows the accuracy but not which points are wrong."""
    pool, truth = world()
    options = {"metrics": ["accuracy", "macro_f1", "recall[0]"], "budgets": [100, 300], "methods": ["tradition"]}
    plan = plan_widths(pool, accuracy=0.9225, worlds=10, **options)
    real = simulate(pool, truth, repeats=10, n_jobs=1, progress=False, **options).summary()
    width = {(one.metric, one.labels): one.half_width for one in plan.widths}
    for row in real:
        assert width[row["metric"], row["labels"]] == pytest.approx(row["width"] / 2, rel=0.15)


def test_a_pilot_corrects_a_wrong_assumption():
    pool, truth = world()
    rows = np.random.default_rng(1).choice(len(pool), 80, replace=False)
    pilot = History(len(pool), (), {int(row): int(truth[row]) for row in rows})
    blind, _ = imagination(pool, 0.5, History(len(pool)))
    seen, words = imagination(pool, 0.5, pilot)
    right = np.arange(len(pool)), pool.predictions
    assert blind[right].mean() == pytest.approx(0.5) and seen[right].mean() > 0.8 and "80 known labels" in words
    np.testing.assert_allclose(seen.sum(1), 1)


def test_an_imagined_truth_keeps_known_labels_and_follows_the_chances():
    pool, truth = world(4000)
    chances, words = imagination(pool, 0.7, History(len(pool)))
    known = History(len(pool), (), {5: int(truth[5])})
    drawn = imagined(chances, known, np.random.default_rng(0))
    assert drawn[5] == truth[5] and "70%" in words
    assert (drawn == pool.predictions).mean() == pytest.approx(0.7, abs=0.03)
    scored = altmas.Pool(None, [0, 1], scores=[[1.0, 0.0], [0.0, 1.0]], classes=[0, 1])
    certain, words = imagination(scored, None, History(2))
    assert imagined(certain, History(2), np.random.default_rng(0)).tolist() == [0, 1] and "1.00" in words


def test_labels_for_a_target_lie_between_the_budgets():
    widths = tuple(PlannedWidth("tradition", "accuracy", n, n**-0.5) for n in (25, 100, 400))
    plan = WidthPlan(widths, "")
    assert plan.labels_for("accuracy", 0.1, "tradition") == pytest.approx(100)
    assert plan.labels_for("accuracy", 1 / 15, "tradition") == pytest.approx(225)
    assert plan.labels_for("accuracy", 0.5, "tradition") == 25
    assert math.isnan(plan.labels_for("accuracy", 0.01, "tradition"))
    unknown = WidthPlan((PlannedWidth("t", "m", 10, math.nan), PlannedWidth("t", "m", 20, 0.1)), "")
    assert unknown.labels_for("m", 0.2, "t") == 20


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"budgets": [10, 900]}, "between 1 and the pool's 800"),
        ({"accuracy": 1.2}, "accuracy 1.2 is out of range"),
        ({"methods": ["trust"]}, "gives no interval"),
    ],
)
def test_what_cannot_be_planned_is_said(options, sentence):
    with pytest.raises(PlanError, match=sentence):
        plan_widths(world()[0], **options)


# ---------------------------------------------------------------- labels to a decision


def test_labels_to_a_decision_for_both_kinds():
    pool, _ = world()
    plan = plan_widths(
        pool,
        metrics=["accuracy", "macro_f1"],
        methods=["tradition"],
        budgets=[100, 400],
        accuracy=0.9,
        thresholds={"accuracy": 0.8, "macro_f1": 0.5},
        worlds=5,
    )
    found = {(one.metric, one.kind): one for one in plan.decisions}
    assert set(found) == {("accuracy", "interval"), ("accuracy", "proof"), ("macro_f1", "interval")}  # no proof for it
    by_interval, by_proof = found["accuracy", "interval"], found["accuracy", "proof"]
    assert all(20 <= one.labels <= 400 and one.decided == 1 for one in (by_interval, by_proof))
    assert {one.labels for one in plan.widths} == {100, 400}


def test_what_the_budget_cannot_settle_is_said():
    pool, _ = world()
    options = {"methods": ["tradition"], "budgets": [40], "accuracy": 0.9, "worlds": 3}
    for one in plan_widths(pool, thresholds={"accuracy": 0.9}, **options).decisions:
        assert math.isnan(one.labels) and one.decided < 0.5
    with pytest.raises(PlanError, match=r"threshold for 'recall\[0\]', which is no metric of the plan"):
        plan_widths(pool, thresholds={"recall[0]": 0.9}, **options)
    with pytest.raises(PlanError, match=r"threshold accuracy=90 is no value that it can take; expected 0 to 1"):
        plan_widths(pool, thresholds={"accuracy": 90}, **options)
    assert plan_widths(pool, **options).decisions == ()


# ---------------------------------------------------------------- labels to a target


def scored(seed: int, n: int = 1500) -> tuple[altmas.Pool, np.ndarray]:
    """A pool whose scores are right."""
    rng = np.random.default_rng(seed)
    right = np.maximum(chance := rng.beta(4, 1, n), 1 - chance)
    predictions = rng.integers(0, 2, n)
    truth = np.where(rng.random(n) < right, predictions, 1 - predictions)
    scores = np.where(np.arange(2) == predictions[:, None], right[:, None], 1 - right[:, None])
    return altmas.Pool(None, predictions, scores=scores, classes=[0, 1]), truth


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_session_with_a_target_needs_about_the_labels_that_were_planned(seed):
    pool, truth = scored(seed)
    plan = plan_widths(pool, targets={"accuracy": 0.07}, budgets=[50, 100, 200, 400], seed=seed)
    session = altmas.Session.create(None, pool, targets={"accuracy": 0.07}, budget=400, seed=seed)
    session.run(lambda query: truth[query.index], progress=False)
    needed = session.status().labels
    assert needed < 400 and plan.labels_for("accuracy", 0.07, "assured") == pytest.approx(needed, rel=0.25)


def test_intervals_of_a_session_with_a_target_are_planned_for_many_looks():
    pool, _ = scored(0, 400)
    options = {"budgets": [100], "worlds": 1}
    (plain,), (many,) = (
        plan_widths(pool, **options).widths,
        plan_widths(pool, targets={"accuracy": 0.1}, **options).widths,
    )
    assert many.half_width > 1.2 * plain.half_width
    with pytest.raises(PlanError, match=r"target for 'recall\[0\]', which is no metric of the plan; metrics are 'acc"):
        plan_widths(pool, targets={"recall[0]": 0.1}, **options)


# ---------------------------------------------------------------- from the labels of a session


def running(labels: int = 150, method: str = "assured", n: int = 1500, **options) -> altmas.Session:
    """A session of a pool with few positives, after so many labels."""
    rng = np.random.default_rng(0)
    truth = rng.random(n) < 0.15
    score = 1 / (1 + np.exp(-1.5 * (np.where(truth, 1.6, -1.8) + rng.normal(0, 1.3, n))))
    pool = altmas.Pool(None, (score > 0.5).astype(int), scores=np.stack([1 - score, score], 1), classes=[0, 1])
    session = altmas.Session.create(None, pool, method=method, **options)
    while (told := len(session.history.labels)) < labels:
        session.tell({query.id: int(truth[query.index]) for query in session.ask(min(75, labels - told))})
    return session


def further(session: altmas.Session, **options):
    plan = session.plan
    goals = Goals(dict(plan.targets), dict(plan.thresholds))
    return plan_further(session.method, session.task, session.history, goals=goals, **options)


def test_a_session_is_planned_from_where_it_stands():
    targets = {"precision[1]": 0.3, "recall[1]": 0.13}
    session = running(metrics=["precision[1]", "recall[1]"], targets=targets)
    plan, ahead, now = further(session, others=["tradition"], worlds=1), session.forecast(), session.estimate()
    assert plan.begun == 150 and "150 known labels" in plan.assumption
    for metric in targets:
        path = [(one.labels, one.half_width) for one in plan.widths if (one.method, one.metric) == ("assured", metric)]
        assert path[0] == (150, now[metric].half_width)
        assert path[1:] == [(band.labels, band.median) for band in ahead.of(metric)]
        assert [width for _, width in path] == sorted((width for _, width in path), reverse=True)
    reached, open_ = (target for target in plan.targets if target.method == "assured")
    assert (reached.metric, reached.reached, reached.labels) == ("precision[1]", True, 150)
    assert not open_.reached and open_.labels == pytest.approx(150 + ahead.more)
    looked_at = further(session, budgets=[200, 260])
    assert [one.labels for one in looked_at.widths if one.metric == "recall[1]"] == [150, 200, 260]
    with pytest.raises(PlanError, match=r"budgets \[100\] lie behind the 150 labels"):
        further(session, budgets=[100])


def test_a_threshold_that_is_decided_is_said_to_be():
    session = running(100, thresholds={"accuracy": 0.3})
    (decision,) = further(session).decisions
    assert session.should_stop() and decision.reached and (decision.labels, decision.kind) == (100, "proof")
    near = session.estimate()["accuracy"].value
    (decision,) = further(running(100, thresholds={"accuracy": near})).decisions
    assert not decision.reached and not decision.labels <= 100


def test_methods_that_did_not_draw_the_labels_start_without_them():
    session = running(60, method="tradition")
    options = {"methods": ["tradition", "stratified"], "budgets": [50, 100], "worlds": 1}
    found = plan_widths(session.pool, history=session.history, drawn_by="tradition", **options)
    assert {(one.method, one.labels) for one in found.widths} == {("tradition", 100), ("stratified", 100)}
    drawn = plan_widths(session.pool, history=session.history, drawn_by="trust", methods=["tradition"], budgets=[100])
    assert [one.labels for one in drawn.widths] == [100]


def test_a_target_that_is_reached_is_said_to_be_where_there_is_no_forecast():
    session = running(60, method="stratified", targets={"accuracy": 0.3})
    options = {"methods": ["stratified"], "budgets": [100], "worlds": 1, "targets": {"accuracy": 0.3}}
    (target,) = plan_widths(session.pool, history=session.history, **options).targets
    assert session.should_stop() and target.reached and target.labels == 60


def test_there_is_no_plan_from_labels_where_there_is_no_forecast():
    session = running(10, method="tradition")
    assert further(session) is None


def test_labels_between_two_looks():
    assert labels_between(100, 0.1, 400, 0.05, 0.1) == 100
    assert labels_between(100, 0.1, 400, 0.05, 1 / 15) == pytest.approx(225)
    assert labels_between(100, math.nan, 400, 0.05, 0.06) == 400
