"""When to stop, and why."""

import math

from altmas.estimates import Estimate, Estimates
from altmas.session.plan import Plan
from altmas.session.stopping import Decision, Forecast, decide, settled
from session_world import create, truth


def estimates(low: float, high: float) -> Estimates:
    return Estimates((Estimate("accuracy", (low + high) / 2, low, high, 0.95, 100),), "any")


def decision(low: float, high: float, labels: int = 100, left: int = 1000, pace: float = math.nan, **plan) -> Decision:
    made: Plan = create(**plan).plan
    return decide(made, labels, labels, left, pace, lambda: estimates(low, high))


def test_the_budget_comes_first_and_needs_no_estimate():
    found = decide(create(budget=10).plan, 10, 10, 50, 1.0, lambda: 1 / 0)
    assert found.stop and found.reason == "the budget of 10 labels is spent"


def test_without_targets_only_budget_and_pool_count():
    assert not decide(create().plan, 10, 10, 50, 1.0, lambda: 1 / 0).stop
    assert decide(create().plan, 60, 60, 0, 1.0, lambda: 1 / 0).stop


def test_a_target_is_reached_when_the_interval_is_narrow_enough():
    assert decision(0.7, 0.8, targets={"accuracy": 0.05 + 1e-12}).stop
    found = decision(0.75, 1.0, targets={"accuracy": 0.0625}, pace=30)  # twice too wide: four times the labels
    assert not found.stop and found.reason == "accuracy is not within 0.0625 yet"
    assert found.forecast == Forecast(300, 150.0) and str(found.forecast) == "about 300 more labels, about 150 minutes"
    assert str(decision(0.75, 1.0, targets={"accuracy": 0.0625}).forecast) == "about 300 more labels"


def test_nothing_is_reached_or_decided_by_fewer_than_twenty_drawn_labels():
    plan = create(targets={"accuracy": 0.5}, thresholds={"accuracy": 0.1}).plan
    early = decide(plan, 60, 19, 50, 1.0, lambda: 1 / 0)
    assert not early.stop and early.reason == "19 drawn labels: nothing is decided with fewer than 20"
    assert decide(plan, 60, 20, 50, 1.0, lambda: estimates(0.7, 0.8)).stop


def test_an_undefined_interval_reaches_nothing_and_forecasts_nothing():
    found = decision(math.nan, math.nan, targets={"accuracy": 0.05})
    assert not found.stop and found.forecast is None


def test_a_threshold_is_decided_when_the_interval_lies_on_one_side():
    assert decision(0.91, 0.95, thresholds={"accuracy": 0.9}).reason == "every threshold is decided"
    assert decision(0.7, 0.89, thresholds={"accuracy": 0.9}).stop
    assert decision(0.85, 0.95, thresholds={"accuracy": 0.9}).reason == "accuracy is not clear of 0.9 yet"
    assert not settled(estimates(math.nan, math.nan)[0], 0.5)


def test_either_rule_is_enough():
    both = {"targets": {"accuracy": 0.05}, "thresholds": {"accuracy": 0.9}}
    assert decision(0.91, 0.99 + 0.1, **both).stop and decision(0.86, 0.95, **both).stop
    assert not decision(0.5, 0.99, **both)


def test_the_forecast_never_exceeds_what_is_left():
    assert decision(0.0, 1.0, left=7, targets={"accuracy": 0.01}).forecast.labels == 7


def test_the_session_asks_the_rule():
    session = create(targets={"accuracy": 0.3})
    assert not session.should_stop()
    session.tell({query.id: truth(query) for query in session.ask(20)}, seconds=2)
    assert session.should_stop()
