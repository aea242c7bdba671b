"""Classes that are numbers have a belief of their own: a regression of the value that ends in a distribution."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from altmas.history import History
from altmas.methods import Assured
from altmas.methods.assured.belief import belief_of, folds_of
from altmas.methods.assured.ordered import (
    MOST_CLASSES,
    _judging,
    judged_values,
    left_out_logs,
    log_chances,
    ordered_fit,
    standard_values,
    value_spread,
    values_in,
)
from altmas.methods.assured.views import describe
from altmas.metrics import metric_set
from altmas.pool import Pool
from altmas.simulate import label_until
from altmas.task import Task


def graded(n=600, judges=3, grades=5, *, seed=0, noise=0.8, features=False, values=None):
    """(pool, true codes, values): judges that add noise to the truth, the first of them leaning up."""
    rng = np.random.default_rng(seed)
    truth = rng.binomial(grades - 1, 0.6, n)
    columns = [truth + rng.normal(0.5 * (k == 0), noise, n) for k in range(judges)]
    said = [np.clip(np.rint(column), 0, grades - 1).astype(int) for column in columns]
    values = np.arange(1.0, grades + 1) if values is None else np.asarray(values, float)
    classes = [f"{value:g}" for value in values]
    named = {f"judge {k}": [classes[code] for code in one] for k, one in enumerate(said)} or None
    inputs = np.column_stack([truth + rng.normal(0, 1.0, n), rng.normal(size=n)]) if features else None
    return Pool(inputs, named, classes=classes, ids=list(range(n))), truth, values


def believed(pool, truth, values, labels=80, seed=0):
    rows = np.random.default_rng(seed).permutation(len(pool))[:labels]
    folds = folds_of(len(pool), seed)
    return belief_of(pool, describe(pool), rows, truth[rows], np.ones(labels), folds, values=values), rows


# ---------------------------------------------------------------- the model


def test_the_fit_is_the_maximum_of_its_objective():
    """(V9) against a general optimiser of the objective, written out."""
    rng = np.random.default_rng(1)
    x, codes, weights = rng.normal(size=(40, 2)), rng.integers(0, 3, 40), rng.uniform(0.5, 2, 40)
    values, frequency = np.array([-1.0, 0.2, 1.5]), np.array([0.5, 0.2, 0.3])
    penalty, mean = np.array([2.0, 0.5]), np.array([0.5, 0.0])

    def loss(parameters):
        alpha, beta = np.append(0.0, parameters[:2]), parameters[2:]
        total = 0.5 * (penalty * (beta - mean) ** 2).sum()
        pseudo = [(np.zeros(2), c, frequency[c]) for c in range(3)]
        for row, code, weight in [*zip(x, codes, weights, strict=True), *pseudo]:
            logs = alpha + values * (row @ beta)
            total -= weight * (logs[code] - np.log(np.exp(logs).sum()))
        return total

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
    alpha, beta = ordered_fit(x, codes, weights, values, penalty, mean, frequency)
    np.testing.assert_allclose(beta, best[2:], atol=1e-4)
    np.testing.assert_allclose(alpha - alpha[0], np.append(0.0, best[:2]), atol=1e-4)


def test_without_a_prior_the_residuals_of_the_value_are_orthogonal_to_the_columns():
    rng = np.random.default_rng(2)
    x, codes = rng.normal(size=(200, 2)), rng.integers(0, 4, 200)
    values = np.array([-1.5, -0.5, 0.5, 1.5])
    alpha, beta = ordered_fit(x, codes, np.ones(200), values, np.zeros(2), np.zeros(2), np.full(4, 1e-9))
    expected = np.exp(log_chances(x, alpha, beta, values)) @ values
    np.testing.assert_allclose(x.T @ (values[codes] - expected), 0, atol=1e-5)


@pytest.mark.parametrize("start", [0.0, 3.0, -20.0])
def test_the_fit_converges_from_any_prior_mean(start):
    """Newton steps alone run away where nearly all labels are of one class."""
    x = np.linspace(-3, 3, 60)[:, None]
    codes = np.where(x[:, 0] < -2.5, 0, 4)
    given = np.ones(60), np.linspace(-1.5, 1.5, 5), np.full(1, 0.05), np.full(1, start), np.full(5, 0.2)
    alpha, beta = ordered_fit(x, codes, *given)
    expected = np.exp(log_chances(x, alpha, beta, given[1])) @ given[1]
    assert np.isfinite(alpha).all() and beta[0] > 0
    assert np.corrcoef(expected, codes)[0, 1] > 0.8


# ---------------------------------------------------------------- whose classes are numbers


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        (["mean"], (1, 2, 3, 4, 5)),
        (["share[>=4]"], (1, 2, 3, 4, 5)),
        (["accuracy", "judge 0: weighted_kappa"], (0, 1, 2, 3, 4)),
        (["mean[1=0,2=0,3=1,4=1,5=7]"], (0, 0, 1, 1, 7)),
        (["accuracy", "share[4]", "kappa"], ()),
        (["mean[1=2,2=2,3=2,4=2,5=2]"], ()),
    ],
)
def test_classes_are_numbers_where_a_metric_takes_them_for_numbers(metrics, expected):
    pool, _, _ = graded(60)
    assert values_in(metric_set(metrics, pool), pool) == tuple(map(float, expected))


def test_names_that_happen_to_be_numbers_change_nothing():
    """Digits are classes without an order as long as nobody asks for their mean."""
    pool, truth, values = graded(300)
    task = Task(pool, metric_set(["accuracy", "share[4]"], pool))
    assert values_in(task.metrics, pool) == ()
    plain, _ = believed(pool, truth, ())
    assert not any(name.startswith("value") for name in plain.shares)
    ordered, _ = believed(pool, truth, values)
    assert any(name.startswith("value") for name in ordered.shares)


def test_more_grades_than_fits_are_worth_are_names():
    classes = [str(k) for k in range(MOST_CLASSES + 1)]
    pool = Pool(None, {"judge": classes * 2}, classes=classes)
    assert values_in(metric_set("mean", pool), pool) == ()


# ---------------------------------------------------------------- the belief


EVERY_KIND = set(itertools.product((0, 1, 6), (2, 5, 11), (False, True)))
"""Judges, grades, features."""
SOME = {(0, 2, False), (0, 11, True), (1, 5, False), (1, 2, True), (6, 11, False), (6, 5, True)}


@pytest.mark.parametrize(
    "judges, grades, features",
    [*sorted(SOME), *(pytest.param(*one, marks=pytest.mark.slow) for one in sorted(EVERY_KIND - SOME))],
)
def test_it_is_a_distribution_at_every_point(judges, grades, features):
    """Where no judge and no feature tells, a grade that no label has shown may have no chance."""
    pool, truth, values = graded(240, judges, grades, features=features)
    for labels in (0, 1, 30):
        found, _ = believed(pool, truth, values, labels)
        rows = found.rows(np.arange(len(pool)))
        np.testing.assert_allclose(rows.sum(1), 1)
        assert (rows > 0).all() if judges or (features and grades > 2) else (rows >= 0).all()
        assert sum(found.shares.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    "values", [[-2.5, -1, 0, 0.25, 9], [5, 4, 3, 2, 1], [1e-9, 2e-9, 3e-9, 4e-9, 5e-9], [0, 0, 1, 1, 2]]
)
def test_any_numbers_are_values(values):
    pool, truth, _ = graded(300)
    expected, _ = believed(pool, truth, values)
    mean = expected.rows(np.arange(300)) @ np.asarray(values)
    assert np.corrcoef(mean, np.asarray(values)[truth])[0, 1] > 0.6


def test_the_unit_of_the_values_does_not_matter():
    pool, truth, values = graded(300)
    one, other = believed(pool, truth, values)[0], believed(pool, truth, 100 * values - 7)[0]
    np.testing.assert_allclose(one.rows(np.arange(300)), other.rows(np.arange(300)), atol=1e-6)


def test_judges_that_say_one_thing_are_left_out():
    pool, truth, values = graded(300, judges=2)
    constant = pool.with_models(*pool.models, pool.new_model("constant", ["3"] * 300))
    assert judged_values(constant, standard_values(values, np.full(5, 0.2))).shape == (300, 2)
    only = Pool(None, {"constant": ["3"] * 300}, classes=pool.classes)
    found, _ = believed(only, truth, values)
    assert not any(name.startswith("value") for name in found.shares)
    np.testing.assert_allclose(found.rows(np.arange(300)).sum(1), 1)


def test_a_grade_that_no_label_showed_is_believed_in():
    pool, truth, values = graded(400)
    rows = np.flatnonzero(truth != 4)[:80]
    found = belief_of(pool, describe(pool), rows, truth[rows], np.ones(80), folds_of(400, 0), values=values)
    assert 1e-5 < found.rows(np.flatnonzero(truth == 4))[:, 4].mean() < 0.5


def test_the_expected_value_is_as_good_as_a_cross_fitted_ridge_regression_on_all_judges():
    better = []
    for seed in range(4):
        pool, truth, values = graded(800, judges=4, seed=seed)
        found, rows = believed(pool, truth, values, 90, seed)
        mean = found.rows(np.arange(800)) @ values
        x = np.column_stack([np.ones(800), judged_values(pool, values)])
        folds, ridge = folds_of(800, seed), np.empty(800)
        for k in range(10):
            kept = rows[folds[rows] != k]
            slopes = np.linalg.solve(x[kept].T @ x[kept] + np.diag([0.0, 1, 1, 1, 1]), x[kept].T @ values[truth[kept]])
            ridge[folds == k] = x[folds == k] @ slopes
        rest = np.setdiff1d(np.arange(800), rows)
        better.append(((values[truth] - ridge)[rest] ** 2).mean() / ((values[truth] - mean)[rest] ** 2).mean())
    assert np.mean(better) > 0.99


def test_a_point_does_not_see_its_own_label():
    pool, truth, values = graded(400)
    rows, folds, one = np.arange(100), folds_of(400, 0), 7
    means = []
    for code in range(5):
        codes = truth[rows].copy()
        codes[one] = code
        found = belief_of(pool, describe(pool), rows, codes, np.ones(100), folds, values=values)
        means.append(float(found.rows(np.array([one]))[0] @ values))
    # The shares of the candidates are chosen by all labels; the candidates themselves never see the point's own.
    assert max(means) - min(means) < 0.1


def test_scores_of_a_judge_give_an_expected_value():
    scores = {"judge": [[0.6, 0.2, 0.2], [0, 0, 1], [0, 0.5, 0.5], [1, 0, 0]]}
    pool = Pool(None, {"judge": ["1", "3", "3", "1"]}, scores=scores, classes=["1", "2", "3"])
    np.testing.assert_allclose(value_spread(pool, [1, 2, 3])[[1, 3]], 0, atol=1e-6)
    assert value_spread(pool, [1, 2, 3])[0] == pytest.approx(0.8, abs=1e-3)
    columns = judged_values(pool, np.array([1.0, 2, 3]))
    assert columns[2, 0] < columns[1, 0]  # both say 3, one less surely


# ---------------------------------------------------------------- the estimate


@pytest.mark.slow
def test_the_mean_grade_needs_fewer_labels_than_a_random_sample():
    pool, truth, values = graded(800, judges=3, seed=3)
    task_of = {seed: Task(pool, metric_set("mean", pool), seed=seed) for seed in range(8)}
    errors, held = [], []
    for task in task_of.values():
        history = label_until(Assured(), task, History(800), 60, 20, truth.__getitem__)
        one = Assured().estimate(task, history)[0]
        errors.append((one.value - values[truth].mean()) ** 2)
        held.append(one.low <= values[truth].mean() <= one.high)
    assert np.mean(errors) < 0.7 * values[truth].var() * (1 / 60 - 1 / 800)
    assert np.mean(held) >= 7 / 8


def test_first_labels_follow_how_far_judges_are_apart():
    pool, _, values = graded(400)
    spread = value_spread(pool, values)
    for metrics, follows in (("mean", True), ("share[4]", False)):
        sizes, gain, *_ = Assured()._design(Task(pool, metric_set(metrics, pool)), History(400), [])
        assert gain == 1.0
        assert (np.corrcoef(sizes, spread)[0, 1] > 0.99) if follows else np.ptp(sizes) == 0


def test_the_chance_of_a_label_without_itself_is_that_of_a_fit_of_the_others():
    rng = np.random.default_rng(6)
    x, values = rng.normal(size=(40, 2)), np.array([-1.2, 0.0, 1.2])
    codes = np.clip(np.round(x[:, 0] + rng.normal(size=40)) + 1, 0, 2).astype(int)
    weights, penalty, mean, frequency = rng.uniform(0.5, 2, 40), np.array([1.0, 2.0]), np.zeros(2), np.full(3, 1 / 3)
    fit = ordered_fit(x, codes, weights, values, penalty, mean, frequency)
    found = left_out_logs(x, codes, weights, values, penalty, *fit)
    for i in range(40):
        rest = np.delete(np.arange(40), i)
        alpha, beta = ordered_fit(x[rest], codes[rest], weights[rest], values, penalty, mean, frequency)
        assert found[i] == pytest.approx(log_chances(x[[i]], alpha, beta, values)[0, codes[i]], abs=0.1)


def test_no_label_has_moved_what_is_believed_of_its_own_fold():
    rng = np.random.default_rng(7)
    truth, folds, labelled = rng.integers(0, 5, 300), np.arange(300) % 10, np.arange(80)
    judges = {name: 1 + np.clip(truth + rng.integers(-1, 2, 300), 0, 4) for name in ("a", "b")}
    pool = Pool(rng.normal(size=(300, 3)), judges, classes=[1, 2, 3, 4, 5])
    own, found = np.flatnonzero(folds == 3), []
    for code in range(5):
        codes = truth[labelled].copy()
        codes[3] = code
        believed = belief_of(pool, describe(pool), labelled, codes, np.ones(80), folds, (), (1.0, 2, 3, 4, 5))
        found.append(believed.rows(own))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_with_many_grades_some_labels_judge_the_regressions():
    """Those that do have the values that they have among all of them."""
    rng = np.random.default_rng(2)
    columns, codes, weights = rng.normal(size=(90, 2)), rng.integers(0, 5, 90), rng.uniform(0.5, 2, 90)
    values, penalty, frequency = np.linspace(-1.5, 1.5, 5), np.full(2, 1.0), np.full(5, 0.2)
    fit = ordered_fit(columns, codes, weights, values, penalty, np.zeros(2), frequency)
    every = left_out_logs(columns, codes, weights, values, penalty, *fit)
    some = left_out_logs(columns, codes, weights, values, penalty, *fit, slice(0, None, 3))
    np.testing.assert_allclose(some, every[::3])
    assert _judging(20_000, 5).step == 1 and 60 < 2_000 / _judging(2_000, 60).step < 200
