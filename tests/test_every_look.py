"""Random sampling where a session may stop by what it sees: intervals that hold at all looks together."""

import math
from dataclasses import replace

import numpy as np
import pytest

import altmas
from altmas.history import Batch, History
from altmas.intervals import share_interval
from altmas.methods import Task, Tradition
from altmas.metrics import metric_set, truth_values


def slow_quantile(confidence: float, n: int, planned: int) -> float:
    """Robbins' normal mixture, written out."""
    alpha = 1 - confidence
    rho2 = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / planned
    return math.sqrt((n * rho2 + 1) / (n * rho2) * math.log((n * rho2 + 1) / alpha**2))


def eighty_of_100(**options) -> tuple[Task, History]:
    pool = altmas.Pool(None, np.zeros(1000, int), classes=[0, 1], slices={"part": np.arange(1000) % 3})
    task = Task(pool, metric_set(["accuracy", "gap[accuracy, part]"], pool), **options)
    labels = {row: int(row % 5 == 0) for row in range(100)}
    return task, History(1000, (Batch(np.arange(100)),), labels)


@pytest.mark.parametrize("budget, planned", [(None, 200), (300, 150), (10, 20)])
def test_where_a_session_may_stop_the_quantile_is_that_of_all_looks(budget, planned):
    task, history = eighty_of_100(stopping=True, budget=budget)
    found = Tradition().estimate(task, history)["accuracy"]
    expected = share_interval(0.8, 100 / (1 - 100 / 1000), slow_quantile(0.95, 100, planned), 0.5 / 1000)
    assert (found.low, found.high) == pytest.approx(expected) and found.confidence == 0.95
    assert found.interval == "asymptotic"


def test_without_a_rule_to_stop_by_it_is_that_of_one_look():
    task, history = eighty_of_100()
    once, always = (
        Tradition().estimate(replace(task, stopping=stopping), history)["accuracy"] for stopping in (False, True)
    )
    assert once.interval == "fixed-n" and always.low < once.low < once.high < always.high


def test_pairs_of_a_gap_share_the_error_of_all_looks():
    task, history = eighty_of_100(stopping=True)
    gap = Tradition().estimate(task, history)["gap[accuracy, part]"]
    (metric,) = metric_set(["gap[accuracy, part]"], task.pool)
    pairs = [
        Tradition().estimate(replace(task, metrics=(pair,), confidence=1 - 0.05 / 3), history)[0]
        for pair in metric.contrasts
    ]
    assert gap.high == pytest.approx(max(max(-one.low, one.high) for one in pairs)) and gap.confidence == 0.95
    assert gap.interval == "asymptotic"


def test_the_first_labels_say_little_and_break_nothing():
    task, history = eighty_of_100(stopping=True, budget=100_000)
    for count in (1, 2, 5):
        few = History(1000, (Batch(np.arange(count)),), {row: history.labels[row] for row in range(count)})
        accuracy = Tradition().estimate(task, few)["accuracy"]
        assert 0 <= accuracy.low <= 0.2 and accuracy.high >= 0.95


@pytest.mark.parametrize("runs", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_the_truth_is_seldom_ever_outside(runs):
    """Looks at 20, 40, ..., 300 labels: ever outside in 5 % and 3 standard errors at most; one look's: a third."""
    rng = np.random.default_rng(17)
    truth = rng.choice(4, 1500, p=[0.55, 0.25, 0.15, 0.05])
    predictions = np.where(rng.random(1500) < 0.85, truth, rng.choice(4, 1500, p=[0.4, 0.3, 0.2, 0.1]))
    pool = altmas.Pool(None, predictions, classes=[0, 1, 2, 3])
    metrics = metric_set(["mcc", "balanced_accuracy", "accuracy"], pool)
    exact, outside = truth_values(pool, truth, metrics), dict.fromkeys(["mcc", "balanced_accuracy", "accuracy"], 0)
    for seed in range(runs):
        task, missed = Task(pool, metrics, seed=seed, stopping=True, budget=300), set()
        batch = Tradition().propose(task, History(1500), 300)
        for count in range(20, 301, 20):
            rows = batch.indices[:count]
            history = History(1500, (Batch(rows),), {int(row): int(truth[row]) for row in rows})
            for one in Tradition().estimate(task, history):
                if not one.low <= exact[one.metric] <= one.high and not np.isnan(one.low):
                    missed.add(one.metric)
        for name in missed:
            outside[name] += 1
    assert max(outside.values()) <= runs * (0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5), outside
