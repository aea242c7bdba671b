"""Values that known labels rule out are never shown: intervals of right and wrong answers, and of their differences."""

import itertools

import numpy as np
import pytest

import altmas
from altmas.errors import MetricError
from altmas.estimates import possible_values
from altmas.metrics import metric_set, truth_values

CLASSES = ("ant", "bee", "cow")


def world(n=7, seed=0, weights=False):
    rng = np.random.default_rng(seed)
    answers = {name: np.array(CLASSES)[rng.integers(0, 3, n)].tolist() for name in ("one", "two")}
    options = {"weights": rng.integers(1, 4, n).astype(float)} if weights else {}
    slices = {"site": ["a", "b"] * (n // 2) + ["a"] * (n % 2)}
    return altmas.Pool(None, answers, classes=list(CLASSES), slices=slices, **options), rng


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "one: accuracy",
        "two: error",
        "one: accuracy@site=a",
        "one: accuracy - two: accuracy",
        "two: error - one: error",
        "one: accuracy@site=a - one: accuracy@site=b",
        "one: accuracy@site=b - two: accuracy@site=b",
    ],
)
def test_the_ends_are_those_over_all_labels_that_are_left(name, weights):
    for seed in range(4):
        pool, rng = world(seed=seed, weights=weights)
        (metric,) = metric_set([name], pool)
        known = np.where(rng.random(len(pool)) < 0.4, rng.integers(0, 3, len(pool)), -1)
        rows, values = np.flatnonzero(known < 0), []
        for labels in itertools.product(range(3), repeat=len(rows)):
            truth = known.copy()
            truth[rows] = labels
            values.append(truth_values(pool, truth, [metric])[name])
        low, high = metric.possible(pool, known)
        aside = "site=a - one" in name  # worked out side by side
        assert low <= min(values) + 1e-12 and high >= max(values) - 1e-12
        if not aside:
            assert (low, high) == pytest.approx((min(values), max(values)))


def test_metrics_of_other_kinds_have_their_bounds():
    pool, _ = world()
    for metric in metric_set(["one: recall[ant]", "one: recall[ant] - two: recall[ant]", "one: macro_f1"], pool):
        assert metric.possible(pool, np.full(len(pool), -1)) == metric.bounds


def two_models(apart: int, n: int = 800):
    rng = np.random.default_rng(3)
    truth = np.array(["x", "y"])[rng.integers(0, 2, n)]
    first = np.where(rng.random(n) < 0.85, truth, np.where(truth == "x", "y", "x"))
    second = first.copy()
    second[:apart] = truth[:apart]
    first[:apart] = np.where(truth[:apart] == "x", "y", "x")
    return truth, first, second


@pytest.mark.parametrize("method", ["assured", "tradition"])
@pytest.mark.parametrize("guarantee", [False, True])
def test_a_difference_stays_within_the_points_on_which_models_differ(method, guarantee):
    truth, first, second = two_models(34)
    name = "v2: accuracy - v1: accuracy"
    for seed in range(3):
        session = altmas.Session.create(
            None,
            altmas.Pool(None, {"v1": first, "v2": second}),
            metrics=[name],
            method=method,
            guarantee=guarantee,
            seed=seed,
        )
        for _ in range(3):
            session.tell({query.id: truth[query.index] for query in session.ask(10)})
            found = session.estimate()[name]
            assert -34 / 800 <= found.low <= found.value <= found.high <= 34 / 800
            assert found.low <= 34 / 800 - 1e-12 <= found.high + 1e-12
        (compared,) = session.compare(second, ["accuracy"])
        assert abs(compared.low) <= 34 / 800 + 1e-12 and abs(compared.high) <= 34 / 800 + 1e-12


def test_models_that_answer_alike_are_equal_whatever_the_labels_are():
    truth, first, _ = two_models(0)
    session = altmas.Session.create(None, altmas.Pool(None, {"v1": first, "same": first}), metrics=["v1: accuracy"])
    session.tell({query.id: truth[query.index] for query in session.ask(30)})
    (found,) = session.compare(first, ["accuracy"])
    assert (found.value, found.low, found.high, found.verdict) == (0.0, 0.0, 0.0, "equal")
    assert "differ on 0 of 800 points." in session.compare(first, ["accuracy"]).summary
    assert session.check("same: accuracy - v1: accuracy >= 0").answer == "shown"
    assert session.check("same: accuracy - v1: accuracy > 0").answer == "refuted"


def test_a_model_of_the_session_is_compared_as_it_is_and_other_models_metrics_are_left_out():
    truth, first, second = two_models(60)
    name = "v2: accuracy - v1: accuracy"
    session = altmas.Session.create(None, altmas.Pool(None, {"v1": first, "v2": second}), metrics=["accuracy", name])
    asked = session.ask(60)
    session.tell({query.id: truth[query.index] for query in asked})
    compared = session.compare(second)
    assert [one.metric for one in compared] == ["accuracy"]
    own, found = session.estimate()[name], compared["accuracy"]
    assert (found.value, found.low, found.high) == pytest.approx((own.value, own.low, own.high))
    told = sum(first[query.index] != second[query.index] for query in asked)
    assert compared.telling == told and f"60 of 800 points; {told} of 60 labels are of these" in compared.summary


def test_a_ranking_names_the_points_whose_labels_would_settle_it():
    truth, first, second = two_models(34)
    pool = altmas.Pool(None, {"v1": first, "v2": second})
    session = altmas.Session.create(None, pool, metrics=["accuracy"], rank="accuracy", seed=1)
    session.tell({query.id: truth[query.index] for query in session.ask(10)})
    found = session.ranking()
    left = int(((first != second) & (session.history.known < 0)).sum())
    assert found.differing == left > 0 and f"those of the {left} points without a label on which" in found.outlook
    session.tell({int(row): truth[row] for row in np.flatnonzero((first != second) & (session.history.known < 0))})
    settled = session.ranking()
    assert settled.differing in (0, None) and settled.tier("worse") == ("v1",)
    assert settled["v1"].low == settled["v1"].high == pytest.approx(34 / 800)


def test_with_skips_nothing_is_cut_off():
    """Figures are then about the items that can be labelled: of fewer items the same difference is a larger share."""
    truth, first, second = two_models(20, n=100)
    name = "v2: accuracy - v1: accuracy"
    session = altmas.Session.create(None, altmas.Pool(None, {"v1": first, "v2": second}), metrics=[name])
    for query in session.ask(60):
        session.skip(query.id) if query.index >= 50 else session.tell(query.id, truth[query.index])
    (metric,) = session.task.metrics
    assert possible_values(metric, session.task, session.history) == metric.bounds
    assert session.estimate()[name].high > 0.2


def test_where_every_metric_names_other_models_a_comparison_asks_for_one():
    _, first, second = two_models(60)
    pool = altmas.Pool(None, {"v1": first, "v2": second})
    session = altmas.Session.create(None, pool, metrics=["v2: accuracy - v1: accuracy"])
    with pytest.raises(MetricError, match="name other models .* a comparison is by metrics of one model"):
        session.compare(second)
    assert [one.metric for one in session.compare(second, ["accuracy"])] == ["accuracy"]
