"""Every metric equals scikit-learn's, broadcasts, has the right gradient, and is nan where it is undefined."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from altmas.errors import MetricError
from altmas.metrics import metric_set, table_of
from altmas.metrics.formulas import cost
from altmas.metrics.metric import Metric
from altmas.pool import Pool

COST = np.array([[0.0, 2.0, 1.0], [5.0, -1.0, 1.0], [1.0, 0.5, 0.0]])
CLASSES = ["cat", "dog", "eel"]
ALL = [0, 1, 2]


def every_metric() -> dict[str, Metric]:
    """All metrics of the interface on three classes, by name."""
    pool = Pool(None, [0, 1, 2], classes=CLASSES)
    per_class = ["precision", "recall", "specificity", "npv", "f1", "jaccard"]
    wanted: list[Any] = [f"{kind}[{name}]" for kind in per_class for name in CLASSES]
    wanted += [f"fbeta[{name},2]" for name in CLASSES] + [f"confusion[{a},{c}]" for a in CLASSES for c in CLASSES]
    wanted += ["accuracy", "error", "balanced_accuracy", "macro_precision", "macro_recall", "macro_f1", "kappa", "mcc"]
    return {metric.name: metric for metric in metric_set([*wanted, ("cost", COST)], pool)}


METRICS = every_metric()


def by_scikit_learn(name: str, y: np.ndarray, a: np.ndarray) -> float:
    """The same number from scikit-learn, nan where docs/equations.md (Z1) says undefined."""
    kind, _, rest = name.partition("[")
    k = CLASSES.index(rest.rstrip("]").split(",")[0]) if rest else -1
    only = {"labels": [k], "average": "macro", "zero_division": np.nan}
    macro = {"labels": ALL, "average": "macro", "zero_division": np.nan}
    constant = len(set(y.tolist())) == 1 or len(set(a.tolist())) == 1
    values: dict[str, Callable[[], Any]] = {
        "accuracy": lambda: sk.accuracy_score(y, a),
        "error": lambda: sk.zero_one_loss(y, a),
        "precision": lambda: sk.precision_score(y, a, **only),
        "recall": lambda: sk.recall_score(y, a, **only),
        "specificity": lambda: sk.recall_score(y != k, a != k, zero_division=np.nan),
        "npv": lambda: sk.precision_score(y != k, a != k, zero_division=np.nan),
        "f1": lambda: sk.f1_score(y, a, **only),
        "fbeta": lambda: sk.fbeta_score(y, a, beta=2, **only),
        "jaccard": lambda: sk.jaccard_score(y == k, a == k) if k in {*y, *a} else np.nan,
        "balanced_accuracy": lambda: sk.balanced_accuracy_score(y, a),
        "macro_recall": lambda: sk.recall_score(y, a, **macro),
        "macro_precision": lambda: sk.precision_score(y, a, **macro),
        "macro_f1": lambda: sk.f1_score(y, a, **macro),
        "kappa": lambda: sk.cohen_kappa_score(y, a),
        "mcc": lambda: np.nan if constant else sk.matthews_corrcoef(y, a),
        "cost": lambda: COST[a, y].mean(),
    }
    if kind == "confusion":
        true = CLASSES.index(rest.rstrip("]").split(",")[1])
        return float(sk.confusion_matrix(y, a, labels=ALL, normalize="all")[true, k])
    return float(values[kind]())


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(ALL), st.sampled_from(ALL)), min_size=1, max_size=30))
def test_every_metric_equals_scikit_learn_even_if_classes_are_absent(points):
    y, a = np.array(points).T
    table = table_of(a, y, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns of what is undefined
        expected = {name: by_scikit_learn(name, y, a) for name in METRICS}
    for name, metric in METRICS.items():
        np.testing.assert_allclose(metric.of_table(table), expected[name], atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_of_many_tables_is_the_metric_of_each(name):
    tables = np.random.default_rng(0).integers(0, 4, (4, 5, 3, 3)).astype(float)
    tables[0, 0] = 0
    metric = METRICS[name]
    values = metric.of_table(tables)
    assert values.shape == (4, 5)
    each = [[float(metric.of_table(table)) for table in row] for row in tables]
    np.testing.assert_array_equal(values, each)
    assert np.isnan(values[0, 0])  # no points at all


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e5])
def test_the_gradient_equals_finite_differences(name, scale):
    metric = METRICS[name]
    for seed in range(5):
        table = np.random.default_rng(seed).uniform(0.5, 9.0, (3, 3)) * scale
        slopes = np.zeros((3, 3))
        for cell in np.ndindex(3, 3):
            step = np.zeros((3, 3))
            step[cell] = 1e-6 * scale
            slopes[cell] = (metric.of_table(table + step) - metric.of_table(table - step)) / (2e-6 * scale)
        np.testing.assert_allclose(metric.gradient(table) * scale, slopes * scale, atol=1e-8)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("table", [np.zeros((3, 3)), np.diag([3.0, 0, 0]), np.eye(3)[[1, 1, 0]] * 2, np.eye(3) * 5])
def test_the_gradient_is_a_small_number_where_something_is_undefined(name, table):
    slopes = METRICS[name].gradient(table)
    assert slopes.shape == (3, 3)
    assert np.abs(slopes).max() < 10
    if np.isnan(METRICS[name].of_table(table)):
        np.testing.assert_array_equal(slopes, 0)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3), st.integers(0, 2))
def test_fractions_of_counts_keep_exact_zeros(weights, k):
    """Everything is truly k, in weighted counts: what is undefined for counts is undefined, not a rounding error."""
    table = np.zeros((3, 3))
    table[:, k] = weights
    assert np.isnan(METRICS[f"specificity[{CLASSES[k]}]"].of_table(table))
    assert np.isnan(METRICS["mcc"].of_table(table))
    assert np.isnan(METRICS[f"npv[{CLASSES[k]}]"].of_table(table.T))
    assert np.isnan(METRICS["mcc"].of_table(table.T))


def test_kappa_and_mcc_are_undefined_when_nothing_could_differ():
    for name in ("kappa", "mcc"):
        assert np.isnan(METRICS[name].of_table(np.diag([7.0, 0, 0])))
    assert METRICS["kappa"].of_table(np.array([[4.0, 3, 0], [0, 0, 0], [0, 0, 0]])) == pytest.approx(0.0)


def test_values_stay_within_the_bounds():
    tables = np.random.default_rng(3).integers(0, 5, (300, 3, 3)).astype(float)
    for metric in METRICS.values():
        low, high = metric.bounds
        values = metric.of_table(tables)
        assert np.nanmin(values) >= low - 1e-12 and np.nanmax(values) <= high + 1e-12, metric.name


@pytest.mark.parametrize("matrix", [[[0, 1], [1, 0]], [[0, 1, np.nan]] * 3, "text", [[0], [1, 2]]])
def test_a_cost_matrix_of_another_form_is_refused(matrix):
    with pytest.raises(MetricError, match=r"'cost': the cost matrix .*expected \(3, 3\) finite numbers, rows = pred"):
        cost("cost", matrix, 3)
