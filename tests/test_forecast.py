"""Forecasts: worlds imagined from the belief, widths that come true as often as claimed, chances to settle."""

import math
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import altmas
from altmas.forecast import (
    Forecast,
    ImaginedTruth,
    WidthBand,
    _flattened,
    _log_odds,
    chance_in_words,
    forecast,
    shift_to_mean,
)
from altmas.history import History
from altmas.methods import Assured, Task, method_named
from altmas.methods.protocol import Rehearsal
from altmas.metrics import metric_set
from altmas.session import Session
from altmas.simulate import label_until
from assured_world import belief, world
from session_world import TRUTH, pool

NO_GOALS = {"targets": {}, "thresholds": {}}


@cache
def small_world():
    """A pool that is described once for all tests of this file."""
    return world(400, 3, 0.85, 0, scores=True)


def labelled(method: str, labels: int, seed: int = 0, *, pool=None, metrics=("accuracy",), **options):
    """(method, task, history) of a session after so many labels, and its truth."""
    pool, truth = pool or small_world()
    chosen = method_named(method)
    task = Task(pool, metric_set(metrics, pool), seed=seed, **{"budget": 200, **options})
    return chosen, task, label_until(chosen, task, History(len(pool)), labels, 20, truth.__getitem__), truth


def inside(method: str, runs: int, now: int, budget: int, metrics=("accuracy",), pool=None) -> np.ndarray:
    """(runs * bands, 2): whether the width that came true lay in its band, and its ratio to the median."""
    found = []
    for seed in range(runs):
        chosen, task, history, truth = labelled(method, now, seed, budget=budget, metrics=metrics, pool=pool)
        ahead = forecast(chosen, task, history, **NO_GOALS)
        later = label_until(chosen, task, history, budget, 20, truth.__getitem__)
        for band in ahead.at(budget):
            width = chosen.estimate(task, later)[band.metric].half_width
            found.append((band.low <= width <= band.high, width / band.median))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_widths_come_true(method):
    """Four fifths are claimed; fewer than 3 of 6 are inside once in 60 times if that is true."""
    found = inside(method, 6, 60, 160)
    assert found[:, 0].sum() >= 3
    assert 0.85 < np.median(found[:, 1]) < 1.15


@pytest.mark.slow
@pytest.mark.parametrize("method", ["assured", "tradition"])
@pytest.mark.parametrize(("scores", "accuracy"), [(True, 0.85), (False, 0.85), (True, 0.96)])
def test_widths_come_true_as_often_as_claimed(method, scores, accuracy):
    pool = world(1500, 3, accuracy, 1, scores=scores)
    found = inside(method, 40, 60, 240, ("accuracy", "recall[1]"), pool)
    assert found[:, 0].mean() >= 0.65
    assert 0.8 < np.median(found[:, 1]) < 1.2


@pytest.mark.slow
def test_over_many_truths_goals_are_settled_as_often_as_forecast():
    """A forecast is right on average over truths that are as likely: on one pool all sessions err alike."""
    chances, reached = [], []
    for seed in range(40):
        pool = world(400, 3, np.random.default_rng(seed + 1000).uniform(0.7, 0.95), seed + 1000, scores=bool(seed % 2))
        chosen, task, history, truth = labelled("assured", 60, seed, pool=pool, budget=200, stopping=True)
        target = 0.5 * chosen.estimate(task, history)["accuracy"].half_width
        ahead = forecast(chosen, task, history, targets={"accuracy": target}, thresholds={})
        later = label_until(chosen, task, history, 200, 20, truth.__getitem__)
        chances.append(ahead.chance)
        reached.append(chosen.estimate(task, later)["accuracy"].half_width <= target)
    assert abs(np.mean(chances) - np.mean(reached)) < 0.2


@pytest.mark.slow
def test_goals_are_settled_as_often_as_forecast():
    """Mean chance against the share of sessions that reached their target, over targets that differ in hardness."""
    chances, reached = [], []
    for seed in range(40):
        target = 0.055 + 0.015 * (seed % 4) / 3
        chosen, task, history, truth = labelled("assured", 60, seed, budget=200, stopping=True)
        ahead = forecast(chosen, task, history, targets={"accuracy": target}, thresholds={})
        later = label_until(chosen, task, history, 200, 20, truth.__getitem__)
        chances.append(ahead.chance)
        reached.append(chosen.estimate(task, later)["accuracy"].half_width <= target)
    assert abs(np.mean(chances) - np.mean(reached)) < 0.2


def test_worlds_differ_less_from_point_to_point_than_is_believed_and_most_with_few_labels():
    """The slope of the pattern is 1 less the size of a normal number over the root of what labels tell about it."""
    pool, truth = small_world()
    believed = belief(pool, np.where(np.arange(400) % 2, 0.95, 0.6), 3)
    slopes = {}
    for labels in (20, 200):
        told = replace(History(400), labels={row: int(truth[row]) for row in range(labels)})
        worlds = [_flattened(believed, told, np.random.default_rng(world)) for world in range(300)]
        spread = np.array([np.ptp(odds) for odds in worlds]) / np.ptp(_log_odds(believed.agree))
        assert (spread >= 0).all() and (spread <= 1 + 1e-9).all()
        slopes[labels] = spread
        apart = _log_odds(believed.agree)[:labels] - _log_odds(believed.agree).mean()
        chance = believed.agree[:labels]
        information = 1 + (chance * (1 - chance) * apart**2).sum()
        expected = np.maximum(1 - np.abs(np.random.default_rng(0).normal(size=20_000)) / information**0.5, 0).mean()
        assert abs(spread.mean() - expected) < 0.05
    assert slopes[20].mean() < slopes[200].mean() - 0.1


def test_the_same_history_has_the_same_forecast():
    chosen, task, history, _ = labelled("assured", 40)
    first, again = (repr(forecast(chosen, task, history, **NO_GOALS)) for _ in range(2))  # a nan is no nan's equal
    assert first == again


def test_bands_are_ordered_and_narrower_with_more_labels():
    chosen, task, history, _ = labelled("assured", 40, metrics=("accuracy", "macro_f1"))
    found = forecast(chosen, task, history, **NO_GOALS)
    assert found.labels == 40 and found.until == 200 and math.isnan(found.chance)
    for metric in ("accuracy", "macro_f1"):
        bands = found.of(metric)
        assert [band.labels for band in bands] == [68, 117, 200]
        assert all(band.low < band.median < band.high for band in bands)
        assert bands[0].median > bands[1].median > bands[2].median


def test_what_cannot_be_missed_is_sure_and_what_cannot_be_reached_is_not():
    for method in ("assured", "tradition"):
        chosen, task, history, _ = labelled(method, 60, stopping=True)
        easy = forecast(chosen, task, history, targets={"accuracy": 0.2}, thresholds={}, seconds_per_label=6)
        hard = forecast(chosen, task, history, targets={"accuracy": 0.001}, thresholds={})
        assert easy.chance > 0.9 and 0 < easy.more < 140 and easy.minutes == pytest.approx(easy.more / 10)
        assert hard.chance < 0.1 and math.isnan(hard.more)


def test_a_threshold_far_from_the_value_is_likely_to_be_decided_and_a_near_one_is_not():
    chosen, task, history, _ = labelled("tradition", 60, stopping=True)
    far = forecast(chosen, task, history, targets={}, thresholds={"accuracy": 0.4})
    value = chosen.estimate(task, history)["accuracy"].value
    near = forecast(chosen, task, history, targets={}, thresholds={"accuracy": value})
    assert far.chance > 0.9 and near.chance < 0.7


def test_there_is_no_forecast_with_few_labels_nothing_left_or_a_method_that_cannot_tell():
    chosen, task, history, truth = labelled("assured", 19)
    assert forecast(chosen, task, history, **NO_GOALS) is None
    chosen, task, history, truth = labelled("tradition", 200)
    assert forecast(chosen, task, history, **NO_GOALS, until=200) is None
    assert forecast(chosen, task, history, **NO_GOALS).until == 400  # the budget is spent: twice as many
    other, task, history, _ = labelled("stratified", 60)
    assert forecast(other, task, history, **NO_GOALS) is None


def test_it_ends_with_the_pool():
    chosen, task, history, _ = labelled("tradition", 40, budget=None, pool=world(60, 3, 0.8))
    skipped = replace(history, skipped={int(np.flatnonzero(history.open)[0]): "blurred"})
    found = forecast(chosen, task, skipped, **NO_GOALS)
    assert found.until == 59


def test_labels_that_are_told_stay_and_points_that_wait_come_first():
    chosen, task, history, truth = labelled("assured", 40)
    asked = chosen.propose(task, history, 30)
    waiting = replace(history, batches=(*history.batches, asked))
    assert forecast(chosen, task, waiting, **NO_GOALS).until == 200


def test_nothing_that_a_rehearsal_does_changes_the_method():
    chosen, task, history, _ = labelled("assured", 40)
    before = chosen.estimate(task, history)
    forecast(chosen, task, history, **NO_GOALS)
    assert chosen.estimate(task, history) == before and chosen == Assured()


def test_a_rehearsal_estimates_what_the_method_does():
    """With nothing new to fit, the method that holds its belief gives the same estimate."""
    chosen, task, history, _ = labelled("assured", 100, metrics=("accuracy", "macro_f1"))
    held = chosen.rehearse(task, history).method
    for own, other in zip(chosen.estimate(task, history), held.estimate(task, history), strict=True):
        assert (own.value, own.low, own.high) == (other.value, other.low, other.high)


def test_the_share_of_right_answers_is_that_of_the_estimate():
    chosen, task, history, _ = labelled("assured", 100)
    told = chosen.rehearse(task, history)
    estimate = chosen.estimate(task, history)["accuracy"]
    assert told.right == pytest.approx(estimate.value, abs=1e-9)
    assert 0.25 < told.worth / estimate.effective_labels < 4


def test_imagined_truth_is_right_as_often_as_the_labels_say():
    pool, truth = world(1000, 3, 0.85)
    history = History(len(pool), labels={row: int(truth[row]) for row in range(100)})
    held = Rehearsal(Assured(), belief(pool, np.linspace(0.5, 0.99, len(pool)), 3), 0.7, 200.0)
    shares = []
    for seed in range(60):
        imagined = ImaginedTruth.of(held, history, np.random.default_rng(seed))
        labels = imagined.at(np.arange(100, 1000))
        right = sum(label == pool.predictions[row] for row, label in labels.items())
        shares.append((right + np.sum(truth[:100] == pool.predictions[:100])) / 1000)
    assert np.mean(shares) == pytest.approx(0.7, abs=0.02)
    assert np.std(shares) == pytest.approx(math.sqrt(0.7 * 0.3 / 201 + 0.2 * 0.7 / 1000), rel=0.3)


def test_an_imagined_error_is_another_class_as_often_as_believed():
    pool, _ = world(3000, 3, 0.5)
    rivals = np.array([[0.0, 0.9, 0.1], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0]])
    held = replace(belief(pool, np.full(3000, 0.5), 3), rivals=rivals)
    imagined = ImaginedTruth(held, np.zeros(3000), np.random.default_rng(0))
    labels = imagined.at(np.arange(3000))
    errors = np.array([labels[row] for row in np.flatnonzero(pool.predictions == 0)])
    assert (errors != 0).all() and np.mean(errors == 1) == pytest.approx(0.9, abs=0.04)


def test_a_shift_gives_the_wanted_mean():
    odds = np.random.default_rng(0).normal(1, 2, 500)
    shift = shift_to_mean(odds, 0.9)
    assert np.mean(1 / (1 + np.exp(-(odds + shift)))) == pytest.approx(0.9, abs=1e-6)


def test_a_forecast_says_what_it_knows():
    assert [chance_in_words(one) for one in (0.01, 0.42, 0.99)] == ["under 5 %", "about 40 %", "over 95 %"]
    bands = WidthBand("accuracy", 200, 0.04, 0.05, 0.06), WidthBand("accuracy", 400, 0.02, 0.03, 0.04)
    plain = Forecast(100, 400, bands)
    assert str(plain) == "with 400 labels accuracy probably within 0.030"
    goal = Forecast(100, 400, plain.bands, 0.7, 149.5, 30.0)
    likely = "about 70 % chance to settle it with 400 labels, as likely as not within about 150 more"
    assert str(goal) == f"{likely}, about 30 minutes" and str(replace(goal, minutes=math.nan)) == likely
    assert str(replace(goal, chance=0.02, more=math.nan)) == "under 5 % chance to settle it with 400 labels"
    first = {"metric": "accuracy", "labels": 200, "low": 0.04, "median": 0.05, "high": 0.06}
    assert goal.to_dict()["bands"][0] == first


def test_a_session_forecasts_once_for_each_state_of_its_log(monkeypatch):
    pool, truth = world(300, 3, 0.8)
    session = Session.create(None, pool, method="tradition", budget=100, targets={"accuracy": 0.05})
    assert session.forecast() is None and session.should_stop().forecast is None
    session.tell({query.id: int(truth[query.index]) for query in session.ask(40)})
    first = session.forecast()
    monkeypatch.setattr("altmas.session.snapshot.forecast", lambda *a, **k: SimpleNamespace(of="a new state"))
    assert session.forecast() is first and session.should_stop().forecast is first
    session.tell({query.id: int(truth[query.index]) for query in session.ask(1)})
    assert session.forecast().of == "a new state"


def test_metrics_with_a_goal_are_forecast_before_others():
    pool, truth = world(400, 3, 0.8)
    metrics = ("accuracy", "macro_f1", "kappa", "recall[0]", "recall[1]", "precision[1]", "precision[2]")
    chosen, task, history, _ = labelled("tradition", 40, metrics=metrics, pool=(pool, truth))
    found = forecast(chosen, task, history, targets={"precision[2]": 0.1}, thresholds={})
    assert {band.metric for band in found.bands} == {"accuracy", "macro_f1", "kappa", "precision[2]"}


def with_target(half_width: float, *, budget: int, labels: int) -> Session:
    """A session of 600 points that are to be known to this half-width, after so many labels."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["x", "y"], 600)
    answers = np.where(rng.random(600) < 0.85, truth, np.where(truth == "x", "y", "x"))
    session = Session.create(None, altmas.Pool(None, answers), budget=budget, targets={"accuracy": half_width})
    session.tell({query.id: truth[query.index] for query in session.ask(labels)})
    return session


def test_a_budget_that_was_raised_is_looked_up_to():
    session = with_target(0.05, budget=80, labels=40)
    assert session.forecast().until == 80
    session.extend(budget=300)
    assert session.forecast().until == 300 and session.forecast(120).until == 120


def test_where_the_goal_is_reached_only_widths_are_ahead():
    session = with_target(0.2, budget=200, labels=60)
    ahead = session.forecast()
    assert session.should_stop().reason == "every target is reached"
    assert math.isnan(ahead.chance) and math.isnan(ahead.more) and ahead.bands and "chance" not in str(ahead)


def test_a_forecast_is_made_anew_when_the_plan_has_another_goal():
    session = Session.create(None, pool(), metrics=["accuracy"], budget=30)
    session.run(lambda query: TRUTH[query.index], progress=False)
    assert math.isnan(session.forecast(50).chance)
    session.extend(targets={"accuracy": 0.12})
    assert not math.isnan(session.forecast(50).chance)
