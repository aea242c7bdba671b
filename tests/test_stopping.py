"""When to stop, and why."""

import math
from dataclasses import replace

import pytest

from altmas.estimates import Estimate, Estimates
from altmas.guarantee import Evidence
from altmas.guaranteed import NotNow, NotOffered
from altmas.session.plan import Plan
from altmas.session.stopping import Decision, Goal, decide, goals, may_stop, settled
from session_world import create, truth


def estimates(low: float, high: float) -> Estimates:
    return Estimates((Estimate("accuracy", (low + high) / 2, low, high, 0.95, 100),), "any")


def decision(low: float, high: float, labels: int = 100, left: int = 1000, **plan) -> Decision:
    made: Plan = create(**plan).plan
    return decide(made, labels, labels, left, lambda: estimates(low, high))


def test_the_budget_comes_first_and_needs_no_estimate():
    found = decide(create(budget=10).plan, 10, 10, 50, lambda: 1 / 0)
    assert found.stop and found.reason == "the budget of 10 labels is spent"


def test_a_budget_that_was_spent_on_labels_nobody_asked_for_is_said_to_be():
    found = decide(create(budget=30).plan, 30, 0, 50, lambda: 1 / 0, unasked=30)
    assert found.stop and found.reason == (
        "the budget of 30 labels is spent, 30 of them by labels that were not asked for: raise it to have items drawn"
    )
    enough = decide(create(budget=30).plan, 30, 25, 50, lambda: 1 / 0, unasked=5)
    assert enough.reason == "the budget of 30 labels is spent"


def test_without_targets_only_budget_and_pool_count():
    assert not decide(create().plan, 10, 10, 50, lambda: 1 / 0).stop
    assert decide(create().plan, 60, 60, 0, lambda: 1 / 0).stop


def test_a_target_is_reached_when_the_interval_is_narrow_enough():
    assert decision(0.7, 0.8, targets={"accuracy": 0.05 + 1e-12}).stop
    found = decision(0.75, 1.0, targets={"accuracy": 0.0625})
    assert not found.stop and found.reason == "accuracy is not within 0.0625 yet"


def test_nothing_is_reached_or_decided_by_fewer_than_twenty_drawn_labels():
    plan = create(targets={"accuracy": 0.5}, thresholds={"accuracy": 0.1}).plan
    early = decide(plan, 60, 19, 50, lambda: 1 / 0)
    assert not early.stop and early.reason == "19 drawn labels: nothing is decided with fewer than 20"
    assert decide(plan, 60, 20, 50, lambda: estimates(0.7, 0.8)).stop


def several(*bounds: tuple[str, float, float]) -> Estimates:
    return Estimates(tuple(Estimate(name, (a + b) / 2, a, b, 0.95, 100) for name, a, b in bounds), "any")


def test_every_target_has_to_be_reached():
    """One of two is narrow enough: not yet, and the sentence names the other."""
    plan = create(metrics=["accuracy", "error", "kappa"], targets={"accuracy": 0.05, "error": 0.05, "kappa": 0.1}).plan
    found = decide(plan, 100, 100, 5000, lambda: several(("accuracy", 0.8, 0.88), ("error", 0, 0.2), ("kappa", 0, 0.5)))
    assert not found.stop
    assert found.reason == "error is not within 0.05 yet; kappa is not within 0.1 yet"
    narrow = several(("accuracy", 0.8, 0.88), ("error", 0.1, 0.18), ("kappa", 0.5, 0.6))
    assert decide(plan, 100, 100, 5000, lambda: narrow).reason == "every target is reached"


def test_a_half_width_of_exactly_the_target_reaches_it():
    assert decision(0.5, 0.75, targets={"accuracy": 0.125}).stop
    assert not decision(0.5, 0.75 + 1e-9, targets={"accuracy": 0.125}).stop


def test_every_threshold_has_to_be_decided():
    plan = create(metrics=["accuracy", "error"], thresholds={"accuracy": 0.7, "error": 0.2}).plan
    one = several(("accuracy", 0.75, 0.85), ("error", 0.15, 0.25))
    found = decide(plan, 100, 100, 500, lambda: one)
    assert not found.stop and found.reason == "error is not clear of 0.2 yet"
    both = several(("accuracy", 0.75, 0.85), ("error", 0.15, 0.19))
    assert decide(plan, 100, 100, 500, lambda: both).stop


def test_a_threshold_at_the_end_of_the_interval_is_decided_from_above_only():
    assert decision(0.9, 0.95, thresholds={"accuracy": 0.9}).stop
    assert not decision(0.8, 0.9, thresholds={"accuracy": 0.9}).stop


def test_a_proof_decides_a_threshold_instead_of_the_interval():
    plan = create(metrics=["accuracy"], thresholds={"accuracy": 0.9}).plan
    asked = []

    def proof(found):
        return lambda name, threshold: asked.append((name, threshold)) or found

    above = Evidence("above", 25.0, 0.1, 40)
    none = Evidence("undecided", 2.0, 0.5, None)
    clear, unclear = (lambda: estimates(0.91, 0.95)), (lambda: estimates(0.85, 0.95))
    assert not decide(plan, 100, 100, 500, clear, proof(none)).stop
    assert decide(plan, 100, 100, 500, unclear, proof(above)).stop
    assert decide(plan, 100, 100, 500, clear, proof(NotOffered("it is no ratio"))).stop
    not_yet = decide(plan, 100, 100, 500, clear, proof(NotNow("item 7 waits")))
    assert not not_yet.stop and not_yet.reason == "accuracy is not clear of 0.9 yet (item 7 waits)"
    assert asked == [("accuracy", 0.9)] * 4


def test_with_a_guarantee_no_interval_decides_a_threshold():
    """A file of another version could have a metric for which no proof is offered."""
    plan = replace(create(metrics=["accuracy"], thresholds={"accuracy": 0.9}).plan, guarantee=True)
    assert not decide(plan, 100, 100, 500, lambda: estimates(0.91, 0.95)).stop
    (goal,) = goals(plan, 100, estimates(0.91, 0.95), lambda name, value: NotNow("item 7 waits"))
    assert str(goal) == "accuracy: not clear of 0.9 (item 7 waits)"


def test_one_undefined_width_reaches_no_target():
    plan = create(metrics=["accuracy", "kappa"], targets={"accuracy": 0.01, "kappa": 0.1}).plan
    found = decide(plan, 100, 100, 500, lambda: several(("accuracy", 0.5, 0.9), ("kappa", math.nan, math.nan)))
    assert not found.stop


def test_the_budget_and_the_pool_end_a_session_at_their_very_number():
    plan = create(budget=10).plan
    assert not decide(plan, 9, 9, 50, lambda: 1 / 0).stop
    assert not decide(plan, 9, 9, 1, lambda: 1 / 0).stop
    assert decide(plan, 9, 9, 0, lambda: 1 / 0).reason == "every point of the pool is labelled or skipped"


def test_an_undefined_interval_reaches_nothing():
    found = decision(math.nan, math.nan, targets={"accuracy": 0.05})
    assert not found.stop


def test_a_threshold_is_decided_when_the_interval_lies_on_one_side():
    assert decision(0.91, 0.95, thresholds={"accuracy": 0.9}).reason == "every threshold is decided"
    assert decision(0.7, 0.89, thresholds={"accuracy": 0.9}).stop
    assert decision(0.85, 0.95, thresholds={"accuracy": 0.9}).reason == "accuracy is not clear of 0.9 yet"
    assert not settled(estimates(math.nan, math.nan)[0], 0.5)


def test_either_rule_is_enough():
    both = {"targets": {"accuracy": 0.05}, "thresholds": {"accuracy": 0.9}}
    assert decision(0.91, 0.99 + 0.1, **both).stop and decision(0.86, 0.95, **both).stop
    assert not decision(0.5, 0.99, **both)


def test_the_session_asks_the_rule():
    session = create(targets={"accuracy": 0.4})
    assert not session.should_stop()
    session.tell({query.id: truth(query) for query in session.ask(20)}, seconds=2)
    assert session.should_stop()


@pytest.mark.parametrize(
    ("targets", "thresholds", "stops"),
    [
        ([], [], False),
        ([True], [], True),
        ([True, False], [], False),
        ([], [True, True], True),
        ([], [True, False], False),
        ([False], [True], True),
        ([True, False], [True, False], False),
    ],
)
def test_all_targets_or_all_thresholds_end_it_and_nothing_less(targets, thresholds, stops):
    found = [Goal("accuracy", "target", 0.1, 0.1, reached) for reached in targets]
    found += [Goal("accuracy", "threshold", 0.8, 0.1, reached) for reached in thresholds]
    assert may_stop(found) is stops
