"""Draws have the probabilities they claim."""

import numpy as np
import pytest

from altmas.methods.assured.design import (
    LEVELS,
    STEEP,
    UNIFORM,
    batch_scale,
    earned_sizes,
    inclusion_of,
    level_odds,
    levels_of,
    odds_levels,
    pilot_sizes,
    rates_of,
)
from altmas.methods.draws import successive_draws


def test_successive_draws_have_the_chances_of_their_rates():
    rates, everything = np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4)
    rng, counts = np.random.default_rng(0), np.zeros((4, 4))
    for _ in range(6000):
        indices, chances = successive_draws(rates, everything, 2, rng)
        counts[indices[0], indices[1]] += 1
        np.testing.assert_allclose(chances[0], rates[indices[0]] / 10)
        np.testing.assert_allclose(chances[1], rates[indices[1]] / (10 - rates[indices[0]]))
    exact = np.array(
        [[0 if i == j else rates[i] / 10 * rates[j] / (10 - rates[i]) for j in range(4)] for i in range(4)]
    )
    np.testing.assert_allclose(counts / 6000, exact, atol=0.02)  # 4 standard errors of the largest


def test_drawing_more_than_there_are_takes_everything_once():
    indices, chances = successive_draws(np.ones(5), np.array([1, 3, 4]), 9, np.random.default_rng(0))
    assert sorted(indices.tolist()) == [1, 3, 4]
    np.testing.assert_allclose(chances, [1 / 3, 1 / 2, 1])
    assert len(successive_draws(np.ones(5), np.zeros(0, np.int64), 3, np.random.default_rng(0))[0]) == 0


def test_accumulated_inclusion_is_the_share_of_samples_that_hold_a_point():
    """Three batches, the later ones with other sizes: pi = 1 - exp(-exposure) whoever was drawn before."""
    n, runs = 40, 800
    sizes = [np.ones(n), np.linspace(0.2, 1.8, n), np.linspace(2.5, 0.5, n)]
    held, promised = np.zeros(n), np.zeros(n)
    for seed in range(runs):
        rng, exposure, free = np.random.default_rng(seed), np.zeros(n), np.ones(n, bool)
        for size in sizes:
            scale, floor = batch_scale(size, exposure, np.flatnonzero(free), 4)
            rates = rates_of(size, exposure, scale, floor)
            indices, _ = successive_draws(rates, np.flatnonzero(free), 4, rng)
            free[indices] = False
            exposure = exposure + rates
        held += ~free
        promised += inclusion_of(exposure)
    np.testing.assert_allclose(held / runs, promised / runs, atol=0.06)
    assert abs(promised.sum() / runs - 12) < 0.2


def test_later_batches_make_up_for_a_uniform_start():
    sizes, exposure, everything = np.repeat([0.5, 2.0], 500), np.zeros(1000), np.arange(1000)
    exposure += rates_of(np.ones(1000), exposure, *batch_scale(np.ones(1000), exposure, everything, 50))
    exposure += rates_of(sizes, exposure, *batch_scale(sizes, exposure, everything, 200))
    chance = inclusion_of(exposure)
    assert abs(chance[-1] / chance[0] - 4) < 0.4


def test_all_open_points_are_certain_when_all_are_asked_for():
    scale, floor = batch_scale(np.ones(5), np.zeros(5), np.arange(5), 5)
    assert (inclusion_of(rates_of(np.ones(5), np.zeros(5), scale, floor)) == 1).all()


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


def test_sizes_and_chances_survive_being_stored_as_bytes():
    sizes = np.geomspace(0.05, 1000, 50)
    np.testing.assert_allclose(LEVELS[levels_of(sizes)], sizes, rtol=0.03)
    chances = np.linspace(0.001, 0.999, 99)
    np.testing.assert_allclose(level_odds(odds_levels(chances)), chances, atol=0.013)
