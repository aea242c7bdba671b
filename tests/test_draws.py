"""Draws without replacement and the probability that each of them had."""

import itertools

import numpy as np
import pytest

from altmas.methods.draws import successive_draws, uniform_draws

OPEN = np.array([7, 2, 5, 3])


def test_uniform_draws_are_distinct_open_points_with_one_over_those_left():
    indices, chances = uniform_draws(OPEN, 3, np.random.default_rng(0))
    assert len(set(indices.tolist())) == 3 and set(indices.tolist()) <= set(OPEN.tolist())
    np.testing.assert_allclose(chances, [1 / 4, 1 / 3, 1 / 2])
    indices, chances = uniform_draws(OPEN, 9, np.random.default_rng(0))
    assert sorted(indices.tolist()) == [2, 3, 5, 7] and chances[-1] == 1
    assert len(uniform_draws(OPEN, 0, np.random.default_rng(0))[0]) == 0


def test_every_order_of_uniform_draws_is_as_likely():
    rng = np.random.default_rng(1)
    seen = [tuple(uniform_draws(OPEN, 2, rng)[0].tolist()) for _ in range(6000)]
    shares = [seen.count(pair) / 6000 for pair in itertools.permutations(OPEN.tolist(), 2)]
    np.testing.assert_allclose(shares, 1 / 12, atol=4 * (1 / 12 * 11 / 12 / 6000) ** 0.5)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_successive_draws_say_the_chance_that_each_had(n):
    """Chances of the draws, one after the other, from the rates of the points that were left."""
    rates = np.arange(10.0) + 1
    for seed in range(20):
        indices, chances = successive_draws(rates, OPEN, n, np.random.default_rng(seed))
        left = list(OPEN)
        assert len(indices) == n
        for row, chance in zip(indices.tolist(), chances.tolist(), strict=True):
            assert chance == pytest.approx(rates[row] / rates[left].sum())
            left.remove(row)


def test_no_draw_from_nothing_and_none_asked_for():
    rates = np.ones(10)
    for points, n in ((OPEN, 0), (np.zeros(0, np.int64), 3)):
        indices, chances = successive_draws(rates, points, n, np.random.default_rng(0))
        assert len(indices) == len(chances) == 0


def test_the_first_of_many_draws_are_in_the_order_of_their_rings():
    """With rates this far apart the order is all but certain."""
    rates = 1e6 ** -np.arange(8.0)
    indices, chances = successive_draws(rates, np.arange(8), 5, np.random.default_rng(0))
    assert indices.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(chances, 1, atol=1e-4)
    assert (chances <= 1).all()
