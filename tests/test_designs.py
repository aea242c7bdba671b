"""Sizes of a stage: as far from uniform as the labels bear out."""

import math

import numpy as np
import pytest

from altmas.history import History
from altmas.intervals import largest_unseen, missed_tail, normal_quantile
from altmas.methods.assured import Assured
from altmas.methods.assured.design import defensive_share, even, expected_gain, pilot_sizes, tempered_sizes
from altmas.methods.assured.linearised import Estimators
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.stages import stages_of
from altmas.methods.assured.weighing import importance_for
from altmas.metrics import metric_set
from altmas.simulate import label_until
from altmas.task import Task
from assured_world import world

UNIFORM, STEEP = 0.1, 0.9 * RECIPE.variance_share


def earned_sizes(believed, seen, drawn, folds):
    return tempered_sizes(believed, seen, drawn, folds, UNIFORM)


def test_pilots_look_at_rare_classes_and_doubtful_points_within_limits():
    predictions = np.array([0] * 990 + [1] * 10)
    sizes = pilot_sizes(predictions, 2, 50)
    expected = 50 * sizes / sizes.sum()
    assert 3 < expected[predictions == 1].sum() < 4.5
    many = pilot_sizes(np.arange(1000) % 100, 100, 50)
    np.testing.assert_allclose(many, many[0])
    doubt = np.where(np.arange(1000) < 5, 1.0, 1e-4)
    sizes = pilot_sizes(predictions, 2, 50, doubt, least=0)
    assert 0.2 < sizes[:5].sum() / sizes.sum() <= 0.31 and sizes.min() >= 0.7


@pytest.mark.parametrize(("power", "tolerance"), [(0.0, 0.26), (0.5, 0.13), (1.0, 0.13)])
def test_the_design_leaves_uniform_as_far_as_residuals_bear_out(power, tolerance):
    rng = np.random.default_rng(0)
    believed = np.exp(rng.normal(0, 1.0, 20_000)) / 40
    means = believed**power * believed.mean() / (believed**power).mean()
    drawn = rng.permutation(20_000)[:2_000]
    seen = (rng.random(2_000) < np.minimum(means[drawn], 1.0)).astype(float)
    folds = np.arange(20_000) % 5
    sizes, found = earned_sizes(believed, seen, drawn, folds)
    assert found.shape == (5,) and (np.abs(found - power) <= tolerance).all()
    np.testing.assert_allclose(np.bincount(folds, sizes) / np.bincount(folds), 1)
    assert sizes.min() >= UNIFORM


def test_without_a_residual_the_belief_is_followed_and_one_surprise_does_not_overturn_it():
    believed = np.where(np.arange(5_000) < 50, 0.2, 1e-4)
    drawn, folds = np.arange(0, 5_000, 50), np.arange(5_000) // 7 % 5
    nothing = np.zeros(len(drawn))
    assert (earned_sizes(believed, nothing, drawn, folds)[1] == 1).all()
    surprise = nothing.copy()
    surprise[-1] = 1.0  # where one in 10,000 was expected
    sizes, powers = earned_sizes(believed, surprise, drawn, folds)
    own = folds[drawn[-1]]
    assert powers[own] == 1  # its own fold does not know
    others = np.delete(powers, own)
    assert (others > 0.2).all() and (others < 1).all()
    for fold in range(5):
        inside = sizes[folds == fold]
        assert inside.max() > 2 * inside.min()
    nowhere, _ = earned_sizes(np.zeros(10), np.zeros(2), np.arange(2), np.arange(10) % 5)
    np.testing.assert_array_equal(nowhere, np.ones(10))


def test_sizes_are_a_uniform_share_a_share_of_roots_and_a_steep_share():
    rng = np.random.default_rng(3)
    believed, folds = rng.random(40) ** 4, np.arange(40) % 2
    sizes, powers = earned_sizes(believed, np.zeros(3), np.arange(3), folds)
    assert (powers == 1).all()
    for fold in range(2):
        inside = folds == fold
        root, whole = np.sqrt(believed[inside]), believed[inside]
        expected = UNIFORM + (1 - UNIFORM - STEEP) * root / root.mean() + STEEP * whole / whole.mean()
        np.testing.assert_allclose(sizes[inside], expected)


def test_the_steep_share_costs_little_and_saves_where_the_safe_are_safer_than_believed():
    """2,000 points in doubt, 50,000 each believed wrong with chance 1/10,000: variance of a Poisson design, by hand."""
    believed = np.r_[np.full(2_000, 0.05), np.full(50_000, 1e-4)]
    sizes, _ = earned_sizes(believed, np.zeros(1), np.zeros(1, int), np.arange(52_000) % 5)
    root = np.sqrt(believed)
    plain = UNIFORM + (1 - UNIFORM) * root / root.mean()
    doubtful = believed * (np.arange(52_000) < 2_000)
    as_believed = (believed / sizes).sum() / (believed / plain).sum()
    all_in_doubt = (doubtful / sizes).sum() / (doubtful / plain).sum()
    assert as_believed < 1.1 and all_in_doubt < 0.85


def test_a_label_does_not_move_the_chances_of_its_own_fold():
    rng = np.random.default_rng(1)
    believed, folds = rng.random(1_000) / 5, np.arange(1_000) % 5
    drawn, seen = rng.permutation(1_000)[:100], rng.random(100)
    before, _ = earned_sizes(believed, seen, drawn, folds)
    seen[0] = 50.0
    after, _ = earned_sizes(believed, seen, drawn, folds)
    own = folds == folds[drawn[0]]
    np.testing.assert_array_equal(before[own], after[own])
    assert np.abs(before[~own] - after[~own]).max() > 0.01


def test_the_expected_gain_is_that_of_the_variance_and_never_below_one():
    believed = np.full(100, 0.5 / 100)  # a belief that halves the variance of random sampling
    assert expected_gain(believed, np.ones(100)) == pytest.approx(2.0)
    half = np.where(np.arange(100) < 50, 0.9 / 50, 0.0)
    assert expected_gain(half, np.where(np.arange(100) < 50, 1.9, 0.1)) == pytest.approx(1.9 / 0.9)
    assert expected_gain(np.full(100, 1.0), np.ones(100)) == 1.0
    assert expected_gain(np.zeros(100), np.ones(100)) == RECIPE.largest_gain


def test_a_class_that_nobody_predicts_and_a_fold_that_nobody_believes_in_change_nothing():
    predictions = np.array([0] * 990 + [1] * 10)
    np.testing.assert_allclose(pilot_sizes(predictions, 3, 50), pilot_sizes(predictions, 2, 50))
    np.testing.assert_allclose(even(np.array([0.0, 0, 1, 3]), np.array([0, 0, 1, 1])), [0, 0, 0.5, 1.5])


def test_the_share_of_defensive_draws_is_what_they_would_leave_unseen_against_the_standard_error():
    """400 labels of 10,000 points: b of the 3.7 / 400 of the points with the largest gains, over z standard errors."""
    gain, z, alike = np.full(10_000, 0.9 / 10_000), normal_quantile(0.95), np.ones(10_000)
    for rate, share in [(0.5, 0.35), (0.06, 0.359), (0.03, 0.5), (0.005, 0.7)]:
        unseen = missed_tail(z) / 400 * 0.9
        error = math.sqrt(rate * (1 - rate) / 400)
        found = defensive_share(gain, alike, np.full(10_000, rate * (1 - rate) / 10_000**2), 400, z)
        assert found == pytest.approx(min(max(unseen / (z * error), 0.35), 0.7)) == pytest.approx(share, abs=0.005)
    few = np.where(np.arange(10_000) < 50, 1.0, 0.0)  # fewer points matter than could be missed
    error = z * math.sqrt(10_000 * 100 / 400)
    assert defensive_share(few, alike, few * 2, 400, z) == pytest.approx(50 / error, rel=0.01)
    half = np.where(np.arange(10_000) < 5000, 1.0, 0.0)  # draws among these alone leave half as many of them unseen
    shares = [defensive_share(half, reach, half * 0.01, 400, z) for reach in (alike, half)]
    assert shares[0] == pytest.approx(0.7) and shares[1] == pytest.approx(
        missed_tail(z) * 5000 / 400 / (z * math.sqrt(10_000 * 50 / 400)), rel=0.01
    )


def test_draws_in_proportion_to_reach_leave_the_least_unseen():
    """(V14) No other exposures with the same sum have a smaller b, if any label may be anywhere."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        reach = rng.exponential(size=30) * (rng.random(30) < 0.7)
        proportional = 12 * reach / reach.sum()
        least = largest_unseen(reach, proportional, 3.0)
        assert least == pytest.approx(reach.sum() * 3.0 / 12)
        for other in (np.full(30, 12 / 30), *(12 * rng.dirichlet(np.full(30, size)) for size in (0.5, 2.0, 20.0))):
            assert largest_unseen(reach, other, 3.0) >= least - 1e-12


@pytest.mark.parametrize(
    ("metric", "moved"),
    [
        ("accuracy", lambda pool: np.ones(len(pool), bool)),
        ("precision[1]", lambda pool: pool.predictions == 1),
        ("accuracy@half=odd", lambda pool: pool.slices["half"] == "odd"),
        ("accuracy@half=odd - accuracy@half=even", lambda pool: np.ones(len(pool), bool)),
        ("gap[precision[1], half]", lambda pool: pool.predictions == 1),
    ],
)
def test_draws_that_follow_no_belief_are_where_a_label_can_move_the_metric(metric, moved):
    pool, truth = world(n=600)
    task = Task(pool, metric_set([metric], pool), seed=0)
    history = label_until(Assured(), task, History(600), 60, 10, truth.__getitem__)
    among = Estimators(Assured()._samples(task, history, stages_of(history)), task, history)
    defensive = importance_for(task, among(None), np.ones(1), 120).defensive
    mask = moved(pool)
    assert (defensive[~mask] == 0).all() and (defensive[mask] > 0).all()
    assert RECIPE.least_defensive - 1e-9 <= defensive.mean() <= RECIPE.most_defensive + 1e-9
    if metric == "accuracy":
        np.testing.assert_allclose(defensive, defensive.mean())
