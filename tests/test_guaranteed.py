"""Sessions with a finite-sample proof: what `check`, thresholds and guarantee=True say."""

from dataclasses import replace

import numpy as np
import pytest

import altmas
from altmas.claims import Claim, judge
from altmas.errors import PlanError
from altmas.guarantee import Evidence, Stage, decide, interval
from altmas.guaranteed import (
    NotNow,
    NotOffered,
    _about,
    _points,
    _ratio_of,
    _tables,
    games_of,
    guaranteed_decision,
    guaranteed_interval,
    offers_guarantee,
    with_guarantee,
)
from altmas.history import History
from altmas.methods import Task, Tradition, method_named
from altmas.methods.assured import Assured
from altmas.methods.protocol import SequenceOfDraws
from altmas.metrics import metric_set, truth_values
from altmas.ratios import OPEN, SKIPPED, linear_tables, table_ratio
from altmas.simulate import label_until
from assured_world import constant_belief, world
from scores_world import a_pool


def labelled(method: str, accuracy: float, labels: int, **settings) -> altmas.Session:
    pool, truth = world(n=1200, accuracy=accuracy)
    session = altmas.Session.create(None, pool, method=method, seed=1, **settings)
    for query in session.ask(labels):
        session.tell(query.id, int(truth[query.index]))
    return session


@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_claims_far_from_the_truth_are_decided_and_near_ones_are_not(method):
    session = labelled(method, 0.8, 150)
    answers = {text: judge(session, Claim.parse(text)) for text in ("accuracy >= 0.5", "accuracy >= 0.97")}
    assert [one.answer for one in answers.values()] == ["shown", "refuted"]
    assert all(one.proven and one.caution == "" for one in answers.values())
    truth = session.estimate()["accuracy"].value
    assert judge(session, Claim("accuracy", "<=", truth)).answer == "undecided"
    assert judge(session, Claim.parse("accuracy <= 0.5")).answer == "refuted"
    assert judge(session, Claim.parse("error <= 0.5")).answer == "shown"


def test_a_difference_has_a_proof_only_if_both_sizes_below_the_line_are_known():
    pool, _ = world(n=60)
    name = pool.classes[0]
    known, unknown = metric_set(["accuracy - error", f"accuracy - recall[{name}]"], pool)
    assert offers_guarantee(Assured(), known, pool) and not offers_guarantee(Assured(), unknown, pool)


def test_a_metric_of_the_pool_is_about_all_its_points_and_one_of_a_slice_about_some():
    """A sequence of draws that is not about all points of a metric plays no part in its proof."""
    pool = altmas.Pool(None, ["a", "b"] * 20, slices={"half": ["left"] * 20 + ["right"] * 20})
    whole, left = metric_set(["accuracy", "accuracy@half=left"], pool)
    assert _points(whole, pool).all() and _points(left, pool).tolist() == [True] * 20 + [False] * 20
    draws = SequenceOfDraws(np.ones(40, bool), np.ones(40), None, np.arange(3), np.arange(40) < 20)
    history = History(40, skipped={5: "cannot be seen"}, labels={0: 0, 1: 1})
    assert list(_about([draws], _points(left, pool), history)) == [0]
    (nothing,) = _about([draws], _points(whole, pool), history).values()
    assert not len(nothing.rows) and np.flatnonzero(~nothing.open).tolist() == [0, 1, 5]


def test_points_asked_for_and_not_told_decide_nothing():
    pool, truth = world(n=1200)
    session = altmas.Session.create(None, pool, metrics=["accuracy"])
    asked = session.ask(40)
    assert judge(session, Claim.parse("accuracy >= 0.9")).answer == "undecided"
    session.tell(asked[0].id, int(truth[asked[0].index]))
    found = judge(session, Claim.parse("accuracy >= 0.1"))
    assert found.answer == "undecided" and "fewer than 20 drawn labels" in found.caution


@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_points_that_wait_take_no_proof_away(method):
    session = labelled(method, 0.8, 60)
    before = judge(session, Claim.parse("accuracy >= 0.5"))
    session.ask(30)
    after = judge(session, Claim.parse("accuracy >= 0.5"))
    assert before.proven and after.proven and before.answer == after.answer == "shown"


def test_draws_after_a_point_that_nobody_answers_prove_nothing():
    """Somebody answers where the model is right and leaves the rest open: each stage ends before its first error."""
    pool, truth = world(n=1200, accuracy=0.9)
    session = altmas.Session.create(None, pool, seed=1)
    left: list[altmas.Query] = []
    while len(session.history.labels) < 200:
        for query in session.ask(20 + len(left)):
            if truth[query.index] == pool.predictions[query.index]:
                session.tell(query.id, int(truth[query.index]))
            elif query not in left:
                left.append(query)
    metric = session.task.metrics[0]
    sequences = session.method.sequences(session.task, session.history)
    (game,) = games_of(session.method, session.task, session.history, [metric])
    assert sum(len(one.rows) > 0 for one in sequences) > 1 and sequences[0].cut
    assert [len(stage.drawn) for stage in game.stages] == [len(sequences[0].rows)] + [0] * len(sequences)
    session.tell({query.id: int(truth[query.index]) for query in left})
    (game,) = games_of(session.method, session.task, session.history, [metric])
    assert all(len(stage.drawn) > len(one.rows) for stage, one in zip(game.stages[:-1], sequences, strict=True))


def test_guaranteed_intervals_hold_the_value_and_are_wider_than_those_for_one_look():
    proven, plain = labelled("assured", 0.8, 120, guarantee=True), labelled("assured", 0.8, 120)
    one, other = proven.estimate()["accuracy"], plain.estimate()["accuracy"]
    assert (one.interval, other.interval) == ("guaranteed", "fixed-n")
    assert one.low < other.low < one.value == other.value < other.high < one.high + 0.01


def test_where_a_proof_has_an_interval_nothing_says_that_there_is_none():
    pool, truth = world(n=300)
    session = altmas.Session.create(None, pool, metrics=["kappa"], seed=1, guarantee=True)
    for query in session.ask(5):
        session.tell(query.id, int(truth[query.index]))
    (kappa,) = session.estimate()
    assert kappa.interval == "guaranteed" and kappa.low <= kappa.value <= kappa.high
    assert "no interval" not in kappa.note


@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_without_an_answer_nothing_is_guaranteed_and_with_all_of_them_the_value_is(method):
    pool, truth = world(n=40)
    session = altmas.Session.create(None, pool, method=method, metrics=["accuracy"], seed=1, guarantee=True)
    session.ask(5)
    (nothing,) = session.estimate()
    assert np.isnan([nothing.value, nothing.low, nothing.high]).all() and nothing.interval == "none"
    session.tell({query.id: int(truth[query.index]) for query in session.ask(40)})
    (one,) = session.estimate()
    exact = (truth == pool.predictions).mean()
    assert one.value == pytest.approx(exact) and one.low <= exact <= one.high and one.high - one.low < 1e-3


def test_skipped_points_are_neither_right_nor_wrong_in_the_proof():
    """Whoever skips every error shows nothing about them: what is left is all right."""
    pool, truth = world(n=60)
    session = altmas.Session.create(None, pool, method="tradition", metrics=["accuracy"], seed=1, guarantee=True)
    for query in session.ask(60):
        if truth[query.index] == pool.predictions[query.index]:
            session.tell(query.id, int(truth[query.index]))
        else:
            session.skip(query.id, "dark")
    (one,) = session.estimate()
    assert one.value == 1 and one.high == 1 and one.low > 0.99


@pytest.mark.parametrize(
    "name, kind", [("recall[1]", "recall"), ("f1[1]", "f1"), ("precision[1]@half=odd", "precision")]
)
def test_the_interval_of_a_random_sample_is_the_game_made_by_hand(name, kind):
    """Three points volunteered beforehand, 25 drawn, one of them skipped: one stage with a flat belief of 0.8."""
    pool, truth = world(n=80, accuracy=0.7)
    method, metrics = Tradition(), metric_set([name], pool)
    task = Task(pool, metrics, seed=4, budget=40)
    told = {row: int(truth[row]) for row in (3, 8, 21)}
    batch = method.propose(task, History(80, (), told), 25)
    rows, skipped = batch.indices.tolist(), int(batch.indices[7])
    labels = told | {row: int(truth[row]) for row in rows if row != skipped}
    history = History(80, (batch,), labels, {skipped: "dark"})
    (found,) = with_guarantee(method, task, history, method.estimate(task, history))

    inside = np.arange(80) % 2 == 1 if "@" in name else np.ones(80)
    ratio = table_ratio(*linear_tables(kind, 3, (1,)), pool.predictions, inside.astype(float))
    believed = np.full((80, 3), 0.1)
    believed[np.arange(80), pool.predictions] = 0.8
    known, answers = np.full(80, OPEN), truth.copy()
    known[[3, 8, 21]] = truth[[3, 8, 21]]
    answers[skipped] = SKIPPED
    stage = Stage(
        ratio.outcomes(known), np.ones(80), ratio.belief(believed), batch.indices, ratio.outcomes(answers)[rows]
    )
    low, high = interval(ratio.ratio, [stage], confidence=0.95, budget=40)
    assert (found.low, found.high) == pytest.approx((min(low, found.value), max(high, found.value)))
    assert found.interval == "guaranteed" and 0 < found.low < found.high <= 1
    wanted = decide(ratio.ratio, [stage], 0.5, error=0.05, budget=40)
    decision = guaranteed_decision(method, task, history, metrics[0], 0.5)
    assert decision.answer == wanted.answer and decision.draws == wanted.draws
    assert (decision.above, decision.below) == pytest.approx((wanted.above, wanted.below))


def test_what_has_no_proof_is_refused_by_name():
    pool, _ = world(n=200)
    with pytest.raises(PlanError, match="no guarantee is offered for 'macro_f1'"):
        altmas.Session.create(None, pool, metrics=["accuracy", "macro_f1"], guarantee=True)
    with pytest.raises(PlanError, match="'ppi' has no proof"):
        altmas.Session.create(None, world(n=200, scores=True)[0], method="ppi", guarantee=True)
    metrics = metric_set(["accuracy", "recall[1]", "mcc"], pool)
    assert [offers_guarantee(method_named("assured"), one, pool) for one in metrics] == [True, True, False]


def test_the_game_sees_only_what_was_known_before_each_stage():
    pool, truth = world(n=600)
    task = Task(pool, metric_set(["accuracy"], pool), seed=0)
    history = label_until(Assured(), task, History(600), 120, 20, truth.__getitem__)
    sequences = Assured().sequences(task, history)
    assert [len(one.rows) for one in sequences] == [40, 40, 40] and sequences[0].belief is None
    for one in sequences:
        assert one.open[one.rows].all()
    flipped = dict(history.labels)
    for row in sequences[2].rows.tolist():
        flipped[row] = (flipped[row] + 1) % 3
    again = Assured().sequences(task, History(600, history.batches, flipped))
    np.testing.assert_array_equal(again[2].belief.agree, sequences[2].belief.agree)


def test_the_report_calls_nothing_shown_that_check_leaves_undecided():
    """A threshold below the interval for one look, but not yet proven at every look."""
    for labels in (60, 80, 100, 140):
        session = labelled("tradition", 0.8, labels, thresholds={"accuracy": 0.7})
        badge = session.report().content["metrics"][0]["verdict"]["badge"]
        verdict = judge(session, Claim.parse("accuracy >= 0.7"))
        assert (verdict.answer == "shown") >= (badge == "≥ 0.7 shown"), labels


def decided_at_the_truth(sessions: int, labels: int, step: int) -> int:
    """How many sessions decide at some look whether accuracy is above or below what it is."""
    pool, truth = world(n=1000, features=False)
    exact, decided = float((truth == pool.predictions).mean()), 0
    (metric,) = metric_set(["accuracy"], pool)
    method = Assured(belief=constant_belief)
    for seed in range(sessions):
        task, history, ever = Task(pool, (metric,), seed=seed, budget=labels), History(1000), False
        for count in range(step, labels + 1, step):
            history = label_until(method, task, history, count, step, truth.__getitem__)
            found = guaranteed_decision(method, task, history, metric, exact)
            ever |= found.answer != "undecided"
        decided += ever
    return decided


def test_a_false_claim_at_the_boundary_is_hardly_ever_shown_in_a_few_sessions():
    assert decided_at_the_truth(12, 120, 40) <= 2  # 5 % may decide: 3 of 12 has a chance of 2 %


@pytest.mark.slow
def test_a_false_claim_at_the_boundary_is_hardly_ever_shown_at_any_look():
    """200 sessions looked at every 20 labels up to 200, threshold at the truth: 5 % may decide (18 of 200: 1 %)."""
    assert decided_at_the_truth(200, 200, 20) <= 17


# ---------------------------------------------------------------- shares, means, thresholds, differences


def proof(pool, name, truth, threshold, labels=150, seed=0):
    """What the game says of a metric against a threshold after uniform draws of known labels."""
    method, task = method_named("tradition"), Task(pool, metric_set(name, pool), seed=seed)
    history = label_until(method, task, History(len(pool)), labels, 50, truth.__getitem__)
    return guaranteed_decision(method, task, history, task.metrics[0], threshold)


@pytest.mark.parametrize(
    "name",
    [
        "share[dog]",
        "mean[cat=1,dog=3]",
        "recall[dog,0.3]",
        "precision[dog,0.3]",
        "accuracy@site=A - accuracy@site=B",
        "share[dog]@site=A - share[dog]@site=B",
        "precision[dog,0.3] - precision[dog,0.7]",
        "kappa",
        "kappa@site=A",
    ],
)
def test_ratios_of_the_game_equal_the_metrics_on_known_labels(name):
    pool, truth = a_pool(2, n=400, ties=False, seed=2)
    (metric,) = metric_set(name, pool)
    ratio = _ratio_of(metric, _tables(metric, pool), pool)
    above, below = ratio.ratio.totals(ratio.outcomes(truth))
    assert above / below == pytest.approx(truth_values(pool, truth, (metric,))[metric.name])


def test_shares_and_differences_far_from_a_threshold_are_proven():
    pool, truth = a_pool(2, n=2000, ties=False, seed=2)
    share = truth.mean()
    assert proof(pool, "share[dog]", truth, share - 0.25).answer == "above"
    assert proof(pool, "share[dog]", truth, share + 0.25).answer == "below"
    assert proof(pool, "share[dog]", truth, share).answer == "undecided"
    change = "accuracy@site=A - accuracy@site=B"
    assert proof(pool, change, truth, -0.6, labels=400).answer == "above"
    (exact,) = truth_values(pool, truth, metric_set(change, pool)).values()
    at_boundary = [proof(pool, change, truth, exact, seed=seed).answer for seed in range(60)]
    assert max(at_boundary.count("above"), at_boundary.count("below")) <= 6  # 5 % of 60 and 1.8 standard errors


@pytest.mark.parametrize(
    "name",
    ["roc_auc", "log_loss", "mcc", "kappa@site=A - kappa@site=B", "gap[accuracy, site]", "recall[dog] - recall[cat]"],
)
def test_no_guarantee_is_offered_where_there_is_no_proof(name):
    pool, truth = a_pool(2, n=100)
    assert isinstance(proof(pool, name, truth, 0.5, labels=50), NotOffered)
    with pytest.raises(altmas.errors.PlanError, match="no guarantee is offered for"):
        altmas.Session.create(None, pool, metrics=[name], guarantee=True)


def test_a_difference_of_slices_has_no_proof_after_a_skip_and_nothing_decides_it():
    pool, truth = a_pool(2, n=100)
    (metric,) = metric_set("accuracy@site=A - accuracy@site=B", pool)
    task, method = Task(pool, (metric,)), method_named("tradition")
    history = label_until(method, task, History(len(pool)), 50, 50, truth.__getitem__)
    assert isinstance(guaranteed_decision(method, task, history, metric, 0.0), Evidence)
    rows = list(history.labels)
    labels = {row: code for row, code in history.labels.items() if row != rows[0]}
    skipped = replace(history, labels=labels, skipped={rows[0]: "unreadable"})
    found = guaranteed_decision(method, task, skipped, metric, 0.0)
    assert isinstance(found, NotNow) and found.answer == "undecided" and "after a skip" in found.why
    (estimate,) = with_guarantee(method, task, skipped, method.estimate(task, skipped))
    assert (estimate.low, estimate.high, estimate.interval) == (-1, 1, "guaranteed") and "after a skip" in estimate.note


@pytest.mark.parametrize("method", ["tradition", "assured"])
def test_guaranteed_intervals_of_kappa_hold_at_every_look_and_decide(method):
    """Row sums of the table are known, so kappa is a ratio of sums (G13). Of 30 sessions two may miss at 95 %."""
    rng, misses, widths = np.random.default_rng(3), 0, []
    answers = rng.integers(0, 3, 1200)
    truth = np.where(rng.random(1200) < 0.8, answers, (answers + 1) % 3)
    pool = altmas.Pool(None, answers, classes=[0, 1, 2])
    exact = truth_values(pool, truth, metric_set("kappa", pool))["kappa"]
    for seed in range(30):
        task, history, missed = Task(pool, metric_set("kappa", pool), seed=seed, budget=160), History(1200), False
        for labels in range(40, 161, 40):
            history = label_until(method_named(method), task, history, labels, 40, truth.__getitem__)
            low, high = guaranteed_interval(method_named(method), task, history, task.metrics[0])
            missed |= not low <= exact <= high
        misses, widths = misses + missed, [*widths, high - low]
    assert misses <= 3 and np.mean(widths) < 0.3


def test_kappa_has_no_proof_after_a_skip_nor_on_a_sample_of_a_table():
    pool, truth = a_pool(2, n=400, ties=False, seed=2)
    (metric,) = metric_set("kappa", pool)
    method, task = method_named("tradition"), Task(pool, (metric,))
    history = label_until(method, task, History(len(pool)), 40, 40, truth.__getitem__)
    skipped = replace(history, labels=dict(list(history.labels.items())[:-1]), skipped={list(history.labels)[-1]: ""})
    (game,) = games_of(method, task, skipped, [metric])
    assert isinstance(game, NotNow) and "after a skip" in game.why
    assert offers_guarantee(method, metric, pool)
    pool.sampled_from = 1000
    assert not offers_guarantee(method, metric, pool)


@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_what_is_undefined_with_every_label_waits_for_none(method):
    session = altmas.Session.create(
        None, altmas.Pool(None, ["a", "b"] * 10), metrics=["mcc", "recall[b]"], method=method
    )
    session.tell({point: "a" for point in range(20)})
    for estimate in session.estimate():
        assert (
            estimate.note
            == f"undefined: every point is labelled, and {estimate.metric} is not defined with these labels"
        )
