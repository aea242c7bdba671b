"""Pseudo-labels: the paper's worked example, thresholds, and label sets that hold one kind only, in both presets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from altmas.methods.paper.augmentation import (
    Augmentation,
    augment,
    best_threshold,
    jeffreys_lower,
    oversampled,
    pseudo_count,
    share_right,
    split,
)
from altmas.methods.paper.surrogates import MCDropout, Training
from altmas.pool import Pool

QUICK = MCDropout(0.3, Training(epochs=30))


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("power, expected", [(1, 50), (2, 25)])
def test_the_papers_example_of_a_precision_of_one_half_and_100_points(power, expected):
    assert pseudo_count(0.5, 100, power) == expected


def test_the_count_is_rounded_down_but_not_by_rounding_errors():
    assert pseudo_count(0.999, 100, 1) == 99
    assert pseudo_count(0.29, 100, 1) == 29
    assert pseudo_count(1.0, 7, 2) == 7
    assert pseudo_count(0.0, 7, 2) == 0


# ---------------------------------------------------------------- split and oversampling


@pytest.mark.parametrize("right, wrong", [(80, 20), (97, 3), (2, 98), (2, 2)])
def test_both_parts_hold_both_kinds_when_there_are_two_of_each(right, wrong):
    agree = rng().permutation(np.repeat([True, False], [right, wrong]))
    for seed in range(20):
        train, validation = split(agree, rng(seed))
        assert_array_equal(np.sort(np.concatenate([train, validation])), np.arange(right + wrong))
        assert set(agree[train]) == set(agree[validation]) == {True, False}
    assert abs(len(validation) - 0.25 * (right + wrong)) <= 1


def test_a_single_member_falls_on_either_side_at_random():
    agree = np.arange(40) != 13
    sides = [13 in split(agree, rng(seed))[1] for seed in range(200)]
    assert 0.13 < np.mean(sides) < 0.40


@pytest.mark.parametrize("n, validation", [(0, 0), (1, 0), (2, 1), (3, 1), (8, 2)])
def test_few_labels_of_one_kind_still_split(n, validation):
    train, kept = split(np.ones(n, bool), rng())
    assert (len(train), len(kept)) == (n - validation, validation)


def test_oversampling_makes_both_kinds_equal_and_keeps_every_member():
    agree = np.array([True] * 9 + [False] * 2)
    rows = oversampled(agree, rng())
    assert agree[rows].sum() == (~agree[rows]).sum() == 9
    assert set(rows) == set(range(11))


# ---------------------------------------------------------------- threshold


def test_the_threshold_has_the_highest_precision_above_it():
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    agree = np.array([True, True, True, False, True, False])
    assert best_threshold(scores, agree) == (0.7, 1.0)


def test_ties_go_to_the_smallest_threshold():
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    assert best_threshold(scores, np.ones(6, bool)) == (0.4, 1.0)


def test_one_lucky_point_is_not_enough():
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    agree = np.array([True, False, False, True, True])
    threshold, precision = best_threshold(scores, agree)
    assert (threshold, precision) == (0.5, 0.6)
    large = np.linspace(1, 0, 100)
    threshold, precision = best_threshold(large, np.arange(100) % 2 == 0)
    assert (large >= threshold).sum() >= 10  # ten percent of the validation labels
    assert precision == pytest.approx(6 / 11)


def test_where_no_threshold_has_support_the_smallest_one_is_taken():
    assert best_threshold(np.array([0.9, 0.2]), np.array([True, False])) == (0.2, 0.5)


def test_equal_scores_are_above_the_threshold_together():
    scores = np.array([0.5, 0.5, 0.5, 0.5, 0.1])
    agree = np.array([True, True, True, False, True])
    threshold, precision = best_threshold(scores, agree)
    assert (threshold, precision) == (0.1, 0.8)


@pytest.mark.parametrize("measure", [share_right, jeffreys_lower])
@pytest.mark.parametrize("seed", range(10))
def test_the_threshold_equals_a_search_over_all_observed_scores(measure, seed):
    g = rng(seed)
    scores, agree = np.round(g.random(30), 1), g.random(30) < 0.7
    found = []
    for tau in np.unique(scores):
        above = scores >= tau
        if above.sum() >= 3:
            found.append((measure(agree[above].sum(), (~agree[above]).sum()), -tau))
    precision, tau = max(found)
    assert best_threshold(scores, agree, measure) == pytest.approx((-tau, precision))


def test_the_cautious_measure_is_a_lower_bound_that_closes_in():
    bounds = jeffreys_lower(np.array([25, 100, 10_000]), np.zeros(3))
    assert_allclose(bounds, [0.9259, 0.9809, 0.99981], atol=1e-3)
    assert jeffreys_lower(0, 100) < 1e-4
    assert (
        jeffreys_lower(np.arange(20), 20 - np.arange(20)) < share_right(np.arange(20), 20 - np.arange(20)) + 0.01
    ).all()


# ---------------------------------------------------------------- whole rounds


def world(n=600, labelled=120, right_where=lambda x: x[:, 0] > 0, seed=0):
    """A pool in which the model is right exactly on one side of x_0, and some labels."""
    g = rng(seed)
    x = g.normal(size=(n, 4)).astype(np.float32)
    predictions = g.integers(0, 3, n)
    truth = np.where(right_where(x), predictions, (predictions + 1) % 3)
    known = np.full(n, -1)
    known[:labelled] = truth[:labelled]
    return Pool(x, predictions, classes=[0, 1, 2]), known, truth


@pytest.mark.paper
@pytest.mark.parametrize("cautious", [False, True])
@pytest.mark.parametrize("power", [1, 2])
def test_pseudo_labels_are_where_the_model_is_right(cautious, power):
    pool, known, truth = world()
    found = augment(pool, known, QUICK, cautious=cautious, power=power, draws=5, rng=rng())
    assert found.trusted_by == "agree network"
    assert (known[found.rows] < 0).all() and len(set(found.rows)) == len(found.rows)
    assert (truth[found.rows] == pool.predictions[found.rows]).mean() > 0.95
    assert len(found.rows) == pseudo_count(found.precision, found.candidates, power) > 100


@pytest.mark.paper
def test_the_cautious_preset_claims_less_precision_and_takes_fewer_points():
    pool, known, _ = world()
    literal, cautious = (
        augment(pool, known, QUICK, cautious=one, power=2, draws=5, rng=rng()) for one in (False, True)
    )
    assert literal.precision == 1.0
    assert cautious.precision < 0.95
    assert len(cautious.rows) < len(literal.rows)


def test_all_labels_agree_literally():
    """A.3 step 6, `paper`: precision 1 and S is everything that is unlabelled."""
    pool, known, _ = world(right_where=lambda x: np.ones(len(x), bool))
    found = augment(pool, known, QUICK, cautious=False, power=2, draws=5, rng=rng())
    assert_array_equal(np.sort(found.rows), np.flatnonzero(known < 0))
    assert found.info() == {
        "size": 480,
        "precision": 1.0,
        "threshold": None,
        "candidates": 480,
        "trusted_by": "constant",
    }


@pytest.mark.paper
def test_all_labels_agree_cautiously():
    """A.3 step 6, `safe`: the bound of 120 right out of 120, best first by the belief of a surrogate."""
    pool, known, _ = world(right_where=lambda x: np.ones(len(x), bool))
    found = augment(pool, known, QUICK, cautious=True, power=1, draws=5, rng=rng())
    assert found.trusted_by == "surrogate"
    assert found.precision == pytest.approx(jeffreys_lower(120, 0))
    assert len(found.rows) == int(480 * found.precision) < 480


@pytest.mark.paper
def test_the_surrogate_ranks_what_the_agree_network_cannot():
    """Labels by which the model is always right; elsewhere the labels themselves show where it is wrong."""
    g = rng(3)
    y = g.integers(0, 2, 400)
    x = (y[:, None] * 4 + g.normal(size=(400, 3))).astype(np.float32)
    predictions = y.copy()
    predictions[200:280] = 1 - y[200:280]  # wrong, and unlabelled; 120 others are right
    known = np.full(400, -1)
    known[:200] = y[:200]
    found = augment(Pool(x, predictions), known, QUICK, cautious=True, power=60, draws=5, rng=rng())
    assert 0 < len(found.rows) <= 120
    assert (predictions[found.rows] == y[found.rows]).mean() > 0.95


@pytest.mark.paper
@pytest.mark.parametrize("cautious, by", [(False, "constant"), (True, "surrogate")])
def test_all_labels_disagree_gives_no_pseudo_labels(cautious, by):
    pool, known, _ = world(right_where=lambda x: np.zeros(len(x), bool))
    found = augment(pool, known, QUICK, cautious=cautious, power=2, draws=5, rng=rng())
    assert len(found.rows) == 0
    assert found.trusted_by == by


def test_one_disagreement_in_the_validation_part_lowers_a_literal_precision():
    pool, known, _ = world(right_where=lambda x: np.ones(len(x), bool), labelled=40)
    known[5] = (pool.predictions[5] + 1) % 3
    for seed in range(50):
        if 5 in split(pool.predictions[:40] == known[:40], rng(seed))[1]:
            found = augment(pool, known, QUICK, cautious=False, power=1, draws=5, rng=rng(seed))
            assert found.precision == pytest.approx(0.9)
            assert len(found.rows) == int(0.9 * 560)
            return
    raise AssertionError("no seed put the disagreement into the validation part")


@pytest.mark.parametrize("labelled", [0, 1, 600])
@pytest.mark.parametrize("cautious", [False, True])
def test_without_labels_to_validate_or_points_to_trust_there_is_nothing(labelled, cautious):
    pool, known, _ = world(labelled=labelled)
    found = augment(pool, known, QUICK, cautious=cautious, power=2, draws=3, rng=rng())
    assert found.info() == Augmentation(np.zeros(0, np.int64)).info()
