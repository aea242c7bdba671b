"""The belief is calibrated, honest at labelled points, and never certain on thin evidence."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from altmas import belief as belief_module
from altmas.belief import Belief
from altmas.methods.assured.answers import answer_chances, dawid_skene, mean_scores
from altmas.methods.assured.belief import _confusions, belief_of, folds_of, label_slopes, lead
from altmas.methods.assured.logistic import (
    class_rates,
    combination,
    log_odds,
    logistic_fit,
    pooled,
    share_right,
    without_itself,
)
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.views import describe, without_own
from altmas.metrics import metric_set, table_of
from altmas.pool import Pool
from assured_world import belief, world


def fitted(pool, truth, labels: int = 200, seed: int = 0) -> tuple[Belief, np.ndarray]:
    labelled = np.random.default_rng(seed).permutation(len(pool))[:labels]
    found = belief_of(pool, describe(pool), labelled, truth[labelled], np.ones(labels), folds_of(len(pool), seed))
    return found, labelled


@cache
def fitted_once() -> tuple[Pool, np.ndarray, Belief]:
    """A pool of 500, its truth and a belief from 80 labels."""
    pool, truth = world(n=500)
    return pool, truth, fitted(pool, truth, 80)[0]


@pytest.mark.parametrize(("scores", "features"), [(False, True), (True, True), (True, False), (False, False)])
def test_rows_are_distributions_and_the_chances_are_calibrated(scores, features):
    pool, truth = world(scores=scores, features=features)
    found, labelled = fitted(pool, truth)
    rows = found.rows(np.arange(len(pool)))
    np.testing.assert_allclose(rows.sum(1), 1)
    assert (rows >= 0).all() and (found.agree > 0).all() and (found.agree < 1).all()
    np.testing.assert_allclose(rows[np.arange(len(pool)), pool.predictions], found.agree)
    rest = np.setdiff1d(np.arange(len(pool)), labelled)
    right = (truth == pool.predictions)[rest]
    assert abs(found.agree[rest].mean() - right.mean()) < 0.06
    assert sum(found.shares.values()) == pytest.approx(1)


def test_it_finds_out_where_the_model_errs():
    pool, truth = world(n=1500, accuracy=0.7)
    found, labelled = fitted(pool, truth, 400)
    hard = pool.features[:, 0] > 0.5
    assert found.agree[~hard].mean() - found.agree[hard].mean() > 0.15  # truth: 0.3


@pytest.mark.parametrize(("accuracy", "also"), [(0.8, ()), (0.97, ("trees",))], ids=str)
def test_a_point_does_not_see_its_own_label(accuracy, also):
    """Nor do the shares of the candidates; trees are none where all labels outside a fold are right."""
    pool, truth = world(n=400, accuracy=accuracy)
    labelled, folds = np.arange(60), folds_of(400, 0)

    def believed(codes):
        return belief_of(pool, describe(pool), labelled, codes, np.ones(60), folds, also)

    before = believed(truth[labelled])
    for one in range(8):
        codes = truth[labelled].copy()
        codes[one] = (codes[one] + 1) % 3
        own = np.flatnonzero(folds == folds[labelled[one]])
        np.testing.assert_array_equal(before.rows(own), believed(codes).rows(own))


def test_without_errors_among_the_labels_nothing_is_certain():
    pool, _ = world(n=500, scores=True)
    for labels in (0, 5, 100):
        labelled = np.arange(labels)
        found = belief_of(pool, describe(pool), labelled, pool.predictions[labelled], np.ones(labels), folds_of(500, 0))
        assert (1 - found.agree).sum() > 0.2


def test_the_expected_table_adds_up_whatever_the_groups():
    pool, truth = world(n=300)
    inside = np.arange(300) % 3 > 0
    for found in (fitted(pool, truth, 60)[0], belief(pool, np.linspace(0.1, 0.9, 300), 3)):
        rows, table = found.rows(np.arange(300)), np.zeros((3, 3))
        for a in range(3):
            table[a] = rows[(pool.predictions == a) & inside].sum(0)
        np.testing.assert_allclose(found.table(inside), table, atol=1e-10)


def test_a_class_that_no_error_has_shown_may_still_be_missed():
    """With one error for each class on average one in three shows none; none is 25 times rarer than the others."""
    rng = np.random.default_rng(0)
    predictions = np.arange(5000) % 50
    truth = np.where(rng.random(5000) < 0.5, predictions, rng.integers(0, 50, 5000))
    import altmas

    pool = altmas.Pool(None, predictions, classes=[str(c) for c in range(50)])
    found, labelled = fitted(pool, truth, 100)
    wrong = truth[labelled] != predictions[labelled]
    errors = np.bincount(truth[labelled][wrong], minlength=50)
    missed = found.table().sum(0) - np.diag(found.table())
    assert (errors == 0).sum() > 5
    assert missed[errors == 0].min() > 0.25 * missed.mean()


def test_many_classes_without_features_share_rows():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 200, 3000)
    predictions = np.where(rng.random(3000) < 0.7, truth, rng.integers(0, 200, 3000))
    import altmas

    pool = altmas.Pool(None, predictions, classes=list(range(200)))
    found, _ = fitted(pool, truth, 300)
    assert found.rivals.shape == (RECIPE.folds * 200, 200)
    np.testing.assert_allclose(found.table().sum(), 3000)


def test_logistic_regression_meets_its_prior_and_its_data():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(4000), rng.normal(size=4000)])
    right = (rng.random(4000) < 1 / (1 + np.exp(-(0.5 + 2 * x[:, 1])))).astype(float)
    none, mean = np.zeros(2), np.array([0.0, 1.0])
    np.testing.assert_allclose(logistic_fit(x, right, np.ones(4000), none, none), [0.5, 2], atol=0.2)
    stiff = logistic_fit(x, right, np.ones(4000), np.array([0.0, 1e6]), mean)
    assert stiff[1] == pytest.approx(1, abs=0.01)
    empty = logistic_fit(x[:0], right[:0], np.ones(0), np.array([0.0, 1.0]), mean)
    np.testing.assert_allclose(empty, [0, 1], atol=1e-6)


def test_better_answers_count_more_and_flat_ones_do_not_drown_sharp_ones():
    right = np.array([1.0, 1, 1, 0] * 10)
    sharp, flat = np.where(right > 0, 0.95, 0.1), np.full(40, 0.75)
    shares = combination(np.stack([sharp, flat]), right, np.ones(40), np.ones(2))
    assert shares[0] > 0.99
    both = pooled(log_odds(np.array([[1e-4, 0.5], [0.01, 0.01]])), np.array([0.5, 0.5]))
    assert both[1] / both[0] > 50  # ratios of the sharp answer survive
    rates, _ = class_rates(np.array([0, 0, 1]), np.array([1.0, 0, 1]), np.ones(3), 2, 2.0)
    np.testing.assert_allclose(rates, [2.25 / 4, 2.25 / 3])


def test_what_is_said_of_a_label_without_itself_is_what_the_other_labels_say():
    rng = np.random.default_rng(4)
    classes, right, weights = rng.integers(0, 3, 20), rng.integers(0, 2, 20).astype(float), rng.uniform(0.5, 2, 20)
    x = np.column_stack([np.ones(20), rng.normal(size=(20, 2))])
    penalty, mean = np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.5, 0.0])
    _, share = share_right(right, weights)
    _, rates = class_rates(classes, right, weights, 3, 4.0)
    odds = without_itself(x, right, weights, penalty, logistic_fit(x, right, weights, penalty, mean))
    for i in range(20):
        rest = np.delete(np.arange(20), i)
        assert share[i] == pytest.approx(share_right(right[rest], weights[rest])[0])
        assert rates[i] == pytest.approx(class_rates(classes[rest], right[rest], weights[rest], 3, 4.0)[0][classes[i]])
        refitted = x[i] @ logistic_fit(x[rest], right[rest], weights[rest], penalty, mean)
        assert odds[i] == pytest.approx(refitted, abs=0.1)  # one Newton step


def test_the_confusions_of_an_error_without_itself_are_those_of_the_other_errors():
    rng = np.random.default_rng(5)
    pool = Pool(None, rng.integers(0, 4, 50), classes=list(range(5)))
    wrong = rng.permutation(50)[:12]
    codes = (pool.predictions[wrong] + rng.integers(1, 4, 12)) % 4
    met = np.array([True, True, True, True, False])
    _, without = _confusions(pool, wrong, codes, met)
    for i in range(12):
        rest = np.delete(np.arange(12), i)
        table, _ = _confusions(pool, wrong[rest], codes[rest], met)
        assert without[i] == pytest.approx(table[pool.predictions[wrong[i]], codes[i]])


def test_leaving_one_out_is_what_it_says():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(30, 4)), rng.integers(0, 3, 30)
    left_out, slopes, _ = label_slopes(x, y, 3, 0.5)
    kept = np.arange(1, 30)
    _, direct, mean = label_slopes(x[kept], y[kept], 3, 0.5)
    # The mean that is taken off moves by one label in thirty.
    np.testing.assert_allclose(left_out[0], x[0] @ direct + mean, atol=0.08)
    assert slopes.shape == (4, 3)
    np.testing.assert_allclose(lead(np.array([[0.2, 0.7, 0.1]]), np.array([1])), [[0.7, 0.5]])
    np.testing.assert_allclose(without_own(np.array([[0.5, 0.3, 0.2]]), np.array([0])), [[0, 0.6, 0.4]])


@pytest.mark.parametrize("n, d", [(60, 8), (8, 60), (20, 20)])
def test_labels_are_learned_alike_in_features_and_in_labels(n, d):
    """K = X X', duals = (K + ridge)^-1 (Y - mean), each left out by the diagonal of the inverse."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(n, d)), rng.integers(0, 3, n)
    targets = np.eye(3)[y]
    inverse = np.linalg.inv(x @ x.T + 0.1 * np.eye(n))
    duals = inverse @ (targets - targets.mean(0))
    left_out, slopes, mean = label_slopes(x, y, 3, 0.1)
    np.testing.assert_allclose(left_out, targets - duals / np.diag(inverse)[:, None], atol=1e-12)
    np.testing.assert_allclose(slopes, x.T @ duals, atol=1e-6)
    np.testing.assert_allclose(mean, targets.mean(0))


def test_rivals_in_half_precision_are_distributions_and_say_the_same():
    pool, truth, found = fitted_once()
    half = replace(found, rivals=found.rivals.astype(np.float16))
    points = np.arange(len(pool))
    np.testing.assert_allclose(half.rows(points).sum(1), 1, atol=1e-7)
    np.testing.assert_allclose(half.rows(points), found.rows(points), atol=1e-3)
    np.testing.assert_allclose(half.table().sum(1), np.bincount(pool.predictions, minlength=3))
    np.testing.assert_allclose(half.table(), found.table(), rtol=0.01, atol=0.05)
    for code in range(3):
        np.testing.assert_allclose(half.of_class(code), half.rows(points)[:, code], atol=1e-7)
    other = half.around((pool.predictions + 1) % 3)
    np.testing.assert_allclose(other.rows(points), half.rows(points), atol=2e-3)
    np.testing.assert_allclose(other.rows(points).sum(1), 1, atol=1e-7)


def test_small_parts_of_a_belief_add_up_to_the_whole(monkeypatch):
    pool, truth, found = fitted_once()
    rng = np.random.default_rng(0)
    rows, values = rng.integers(0, 4, len(pool)), rng.normal(size=(4, 3))
    points = np.arange(len(pool))
    table = np.zeros((4, 3))
    np.add.at(table, rows, found.rows(points))
    for numbers in (2_000_000, 50):
        monkeypatch.setattr(belief_module, "CHUNK", numbers)
        np.testing.assert_allclose(found.table_by(rows, 4), table)
        expected = (found.rivals[found.group] * values[rows]).sum(1)
        np.testing.assert_allclose(found.mean_over_rivals_by(values, rows), expected)
        expected = (found.rivals[found.group] * values[pool.predictions]).sum(1)
        np.testing.assert_allclose(found.mean_over_rivals(values)[found.group], expected)


@pytest.mark.parametrize(
    "name", ["accuracy", "error", "precision[1]", "recall[1]", "f1[2]", "macro_f1", "kappa", "specificity[0]"]
)
def test_the_cheap_influence_is_the_gradient_up_to_row_constants(name):
    pool, truth, found = fitted_once()
    metric = metric_set([name], pool)[0]
    table = table_of(pool.predictions, truth, 3)
    influence, gradient = metric.influence(table), metric.gradient(table)
    predicted, true = (axis.ravel() for axis in np.indices((3, 3)))
    cells = influence.at(predicted, true).reshape(3, 3)
    np.testing.assert_allclose(cells - cells[:, :1], gradient - gradient[:, :1], atol=1e-12)
    moved = np.array([[1.0, -1, 0], [0, 2, -2], [3, -3, 0]])
    np.testing.assert_allclose(influence.dot(moved), (gradient * moved).sum(), atol=1e-12)
    spread = (table * (gradient - (gradient * table).sum() / table.sum()) ** 2).sum()
    np.testing.assert_allclose(influence.spread(table), spread, rtol=1e-9)
    rows = found.rows(np.arange(500))
    mean, variance = influence.moments(found)
    exact = (rows * cells[pool.predictions]).sum(1)
    np.testing.assert_allclose(mean, exact, atol=1e-12)
    np.testing.assert_allclose(variance, (rows * cells[pool.predictions] ** 2).sum(1) - exact**2, atol=1e-12)


@pytest.mark.parametrize("labels", [1, 2, 3])
def test_a_handful_of_labels_gives_a_whole_belief(labels):
    """One label: the fold that holds it has none outside, and is believed without it."""
    pool, truth = world(n=300)
    rows, folds = np.arange(labels), folds_of(300, 0)
    found = belief_of(pool, describe(pool), rows, truth[rows], np.ones(labels), folds)
    believed = found.rows(np.arange(300))
    assert np.isfinite(believed).all()
    np.testing.assert_allclose(believed.sum(1), 1)


# ---------------------------------------------------------------- several models


def several_models(n=2000, k=5, n_classes=3, seed=0):
    """(pool, truth): k models with 80 % right answers that err independently, and one that is always wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    names = np.array(["a", "b", "c", "d"][:n_classes])

    def answers(right):
        wrong = (truth + rng.integers(1, n_classes, n)) % n_classes
        return names[np.where(rng.random(n) < right, truth, wrong)]

    models = {f"v{place}": answers(0.8) for place in range(k)} | {"bad": answers(0.05)}
    return Pool(None, models, classes=names.tolist()), truth


def test_a_belief_written_around_other_answers_is_the_same_belief():
    pool, truth = several_models()
    rows = np.arange(60)
    found = belief_of(pool, describe(pool), rows, truth[:60], np.ones(60), folds_of(len(pool), 0))
    every = np.arange(len(pool))
    other = found.around(pool.model("bad").predictions)
    np.testing.assert_allclose(other.rows(every), found.rows(every), atol=1e-12)
    np.testing.assert_allclose(other.table().sum(0), found.rows(every).sum(0))
    assert found.around(pool.anchor) is found
    by_hand = np.zeros((3, 3))
    np.add.at(by_hand, pool.model("bad").predictions, found.rows(every))
    np.testing.assert_allclose(other.table(), by_hand)


def test_several_models_tell_more_about_the_truth_than_one():
    pool, truth = several_models()
    rows, rest = np.arange(60), np.arange(60, len(pool))
    losses = {}
    for name, one in [("all", pool), ("first", pool.with_models(pool.models[0]))]:
        found = belief_of(one, describe(one), rows, truth[:60], np.ones(60), folds_of(len(pool), 0))
        losses[name] = -np.log(found.rows(rest)[np.arange(len(rest)), truth[rest]]).mean()
    assert losses["all"] < 0.5 * losses["first"]


def test_dawid_and_skene_find_who_is_right_without_a_label():
    pool, truth = several_models()
    believed = dawid_skene(pool.models, 3)
    np.testing.assert_allclose(believed.sum(1), 1.0)
    assert (believed.argmax(1) == truth).mean() > (pool.anchor == truth).mean() > 0.9
    theta = answer_chances(pool.model("bad").predictions, believed)
    assert np.diag(theta).max() < 0.12


def test_the_mean_score_is_that_of_the_models_that_give_scores():
    pool = Pool(None, {"v1": ["a", "b"], "v2": ["a", "b"]}, scores={"v2": [[0.9, 0.1], [0.2, 0.8]]})
    np.testing.assert_allclose(mean_scores(pool.models), pool.model("v2").scores)
    assert mean_scores(pool.with_models(pool.model("v1")).models) is None


def test_a_pool_without_a_model_learns_from_features_and_labels():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 600)
    pool = Pool(rng.normal(size=(600, 4)) + 3 * truth[:, None], None, classes=["no", "yes"])
    rows = np.arange(60)
    found = belief_of(pool, describe(pool), rows, truth[:60], np.ones(60), folds_of(600, 0))
    assert (found.rows(np.arange(600)).argmax(1) == truth)[60:].mean() > 0.95
