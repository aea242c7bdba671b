"""Functions of labels as metrics: with and without sample weights, quiet, and refused at the door if they fail."""

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    cohen_kappa_score,
    f1_score,
    fbeta_score,
    hamming_loss,
    matthews_corrcoef,
    precision_score,
)

from altmas.errors import MetricError
from altmas.metrics import metric_set, table_of
from altmas.metrics.callables import from_callable, name_of, takes_weights, whole_counts
from altmas.pool import Pool
from altmas.session import Session
from altmas.session.plan import Plan

CLASSES = ("cat", "dog", "eel")
POOL = Pool(None, ["cat", "dog", "eel", "cat"], slices={"site": ["A", "A", "B", "B"]})


def share_of_agreement(y_true, y_pred):
    """A user's own metric, without sample weights."""
    assert y_true.shape == y_pred.shape
    return np.mean(y_true == y_pred)


def weighted_agreement(y_true, y_pred, sample_weight):
    return np.average(y_true == y_pred, weights=sample_weight)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_a_function_of_labels_gives_what_it_gives_on_the_rows(seed):
    rng = np.random.default_rng(seed)
    predicted, true = rng.integers(0, 3, 25), rng.integers(0, 3, 25)
    table, names = table_of(predicted, true, 3), np.array(CLASSES)
    functions = [share_of_agreement, hamming_loss, cohen_kappa_score, partial(f1_score, average="macro")]
    for function in functions:
        expected = function(names[true], names[predicted])
        np.testing.assert_allclose(from_callable(function, CLASSES).of_table(table), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (share_of_agreement, "accuracy"),
        (weighted_agreement, "accuracy"),
        (cohen_kappa_score, "kappa"),
        (partial(f1_score, average="macro"), "macro_f1"),
        (partial(precision_score, labels=["dog"], average="macro"), "precision[dog]"),
    ],
)
def test_a_function_equals_the_built_in_metric_in_value_and_gradient(function, name):
    mine, built_in = from_callable(function, CLASSES), metric_set(name, POOL)[0]
    tables = np.random.default_rng(1).integers(1, 60, (2, 2, 3, 3)).astype(float)
    np.testing.assert_allclose(mine.of_table(tables), built_in.of_table(tables), atol=1e-12)
    tolerance = 1e-7 if takes_weights(function) else 1e-4  # without weights the step is one whole row
    np.testing.assert_allclose(mine.gradient(tables[0, 0]), built_in.gradient(tables[0, 0]), atol=tolerance)


def test_fractions_of_counts_reach_functions_without_weights_as_shares():
    table = np.array([[0.2, 0.05, 0.0], [0.0, 0.5, 0.05], [0.1, 0.0, 0.1]])
    metric, accuracy = from_callable(share_of_agreement, CLASSES), metric_set("accuracy", POOL)[0]
    assert metric.of_table(table) == pytest.approx(0.8, abs=1e-4)
    np.testing.assert_allclose(metric.gradient(table), accuracy.gradient(table), atol=1e-3)


@given(st.lists(st.floats(0, 5), min_size=4, max_size=4).filter(lambda cells: sum(cells) > 0.01))
def test_whole_counts_stand_for_a_table_as_closely_as_rows_can(cells):
    table = np.array(cells).reshape(2, 2)
    counts = whole_counts(table)
    if (table == np.round(table)).all():
        np.testing.assert_array_equal(counts, table)
    else:
        assert counts.sum() == 10_000
        np.testing.assert_allclose(counts / 10_000, table / table.sum(), atol=1.01e-4)


def test_a_class_that_is_absent_gives_neither_a_warning_nor_a_slope():
    metric = from_callable(partial(precision_score, average="macro"), CLASSES)
    table = np.zeros((3, 3))
    table[0, :2] = 3, 4  # scikit-learn would warn: "Precision is ill-defined"
    assert metric.of_table(table) == pytest.approx(3 / 14)
    slopes = metric.gradient(table)
    assert np.abs(slopes).max() < 1
    np.testing.assert_array_equal(slopes[1:], 0)


def test_no_points_and_what_a_function_refuses_are_undefined():
    def odds(y_true, y_pred):
        return float(sum(y_true == y_pred)) / float(sum(y_true != y_pred))

    def strict(y_true, y_pred, sample_weight=None):
        if len(set(y_true)) < 2:
            raise ValueError("only one class")
        return 1.0

    for function in (odds, strict):
        metric = from_callable(function, ("no", "yes"))
        assert np.isnan(metric.of_table(np.zeros((2, 2))))
        assert np.isnan(metric.of_table(np.diag([4.0, 0.0])))
        np.testing.assert_array_equal(metric.gradient(np.zeros((2, 2))), 0)


def test_booleans_reach_functions_as_booleans():
    pool = Pool(None, np.array([True, False, True]))
    table = np.array([[3.0, 1.0], [2.0, 4.0]])
    assert metric_set(f1_score, pool)[0].of_table(table) == pytest.approx(
        metric_set("f1[True]", pool)[0].of_table(table)
    )


def test_functions_are_called_by_their_name_and_settings():
    class Judge:
        def __call__(self, y_true, y_pred):
            return 1.0

    assert name_of(share_of_agreement) == "share_of_agreement"
    assert name_of(partial(fbeta_score, beta=2, average="macro")) == "fbeta_score(beta=2, average='macro')"
    assert name_of(Judge()) == "Judge"
    assert metric_set(Judge(), POOL)[0].name == "Judge"
    assert not takes_weights(partial(f1_score, sample_weight=None))
    assert not takes_weights(max)  # has no signature


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (f1_score, r"'f1_score' failed on labels of this pool's classes \(ValueError: .*expected f\(y_true, y_pred"),
        (lambda y_true, y_pred: None, "TypeError"),
        (lambda y_true, y_pred: np.ones(3), "returns one number"),
        (lambda only: 1.0, "positional argument"),
        (max, "'max' failed"),
    ],
)
def test_a_function_that_fails_is_refused_when_the_metrics_are_chosen(function, reason):
    with pytest.raises(MetricError, match=reason):
        metric_set([function], POOL)


def test_a_pair_names_a_function_and_may_restrict_it_to_a_slice():
    named, sliced = metric_set([("agreement", share_of_agreement), ("agreement@site=A", share_of_agreement)], POOL)
    assert (named.name, named.where) == ("agreement", None)
    assert (sliced.name, sliced.where) == ("agreement@site=A", ("site", "A"))
    assert sliced.members(POOL).tolist() == [True, True, False, False]


def test_pairs_are_kept_in_a_plan():
    pairs = [("agreement@site=A", share_of_agreement), ("cost@site=B", np.eye(3)), partial(f1_score, average="macro")]
    plan = Plan.of(POOL, metrics=pairs, method="tradition")
    again = Plan.from_json(json.loads(json.dumps(plan.to_json())), trust=True)
    names = [metric.name for metric in metric_set(again.metrics, POOL)]
    assert names == ["agreement@site=A", "cost@site=B", "f1_score(average='macro')"]
    assert len(Plan.of(POOL, metrics=("agreement", share_of_agreement), method="tradition").metrics) == 1


def test_two_functions_cannot_have_one_name():
    assert len(metric_set([share_of_agreement, share_of_agreement], POOL)) == 1
    with pytest.raises(MetricError, match=r"two different metrics are called '<lambda>'; .*\('name', function\)"):
        metric_set([lambda y_true, y_pred: 0.0, lambda y_true, y_pred: 1.0], POOL)
    with pytest.raises(MetricError, match="two different metrics are called 'accuracy'"):
        metric_set(["accuracy", ("accuracy", share_of_agreement)], POOL)


def test_bounds_are_declared_or_known_of_scikit_learn():
    def halves(y_true, y_pred):
        return 0.5

    def bounds(function):
        return metric_set([function], POOL)[0].bounds

    assert bounds(halves) == (-np.inf, np.inf)
    halves.bounds = (0, 2)
    assert bounds(halves) == (0.0, 2.0)
    assert bounds(partial(f1_score, average="macro")) == bounds(accuracy_score) == (0.0, 1.0)
    assert bounds(matthews_corrcoef) == (-1.0, 1.0)
    assert bounds(partial(accuracy_score, normalize=False)) == (-np.inf, np.inf)
    for wrong in ((1, 0), 3, ("a", "b"), (0, float("nan"))):
        halves.bounds = wrong
        with pytest.raises(MetricError, match="declares bounds .*; expected two numbers, the smaller first"):
            metric_set([halves], POOL)


@pytest.mark.parametrize("method", ["tradition", "assured"])
def test_an_interval_stays_inside_known_bounds(method):
    pool, right = Pool(None, np.arange(90) % 3), np.arange(90) % 3
    session = Session.create(None, pool, metrics=[partial(f1_score, average="macro")], method=method)
    for query in session.ask(30):
        session.tell(query.id, int(right[query.index]))
    answer = session.estimate()[0]
    assert 0 <= answer.low <= answer.value <= answer.high <= 1
