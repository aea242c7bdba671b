"""Draws without replacement and the probability that each of them had."""

import itertools

import numpy as np
import pytest

from altmas.history import Batch, History
from altmas.methods.draws import drawn_uniformly, successive_draws, uniform_draws

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


@pytest.mark.parametrize("n", [1, 2, 5, 60, 89])
def test_the_first_of_many_draws_are_those_with_the_largest_rates_if_these_lie_far_apart(n):
    """With rates this far apart the order is all but certain."""
    order = np.random.default_rng(3).permutation(90)
    rates = np.zeros(100)
    rates[order] = 1e3 ** -np.arange(90.0)
    indices, chances = successive_draws(rates, np.arange(90), n, np.random.default_rng(0))
    assert indices.tolist() == order[:n].tolist()
    assert (chances <= 1).all()


def test_successive_draws_have_the_chances_of_their_rates():
    rates, everything = np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4)
    rng, counts = np.random.default_rng(0), np.zeros((4, 4))
    for _ in range(6000):
        indices, chances = successive_draws(rates, everything, 2, rng)
        counts[indices[0], indices[1]] += 1
        expected = rates[indices[0]] / 10, rates[indices[1]] / (10 - rates[indices[0]])
        assert abs(chances[0] - expected[0]) < 1e-12 and abs(chances[1] - expected[1]) < 1e-12
    exact = np.array(
        [[0 if i == j else rates[i] / 10 * rates[j] / (10 - rates[i]) for j in range(4)] for i in range(4)]
    )
    np.testing.assert_allclose(counts / 6000, exact, atol=0.02)  # 4 standard errors of the largest


def test_drawing_more_than_there_are_takes_everything_once():
    indices, chances = successive_draws(np.ones(5), np.array([1, 3, 4]), 9, np.random.default_rng(0))
    assert sorted(indices.tolist()) == [1, 3, 4]
    np.testing.assert_allclose(chances, [1 / 3, 1 / 2, 1])
    assert len(successive_draws(np.ones(5), np.zeros(0, np.int64), 3, np.random.default_rng(0))[0]) == 0


# ---------------------------------------------------------------- labels that represent the pool


def told(n, batches, labelled, skipped=()):
    return History(n, tuple(batches), dict.fromkeys(map(int, labelled), 0), dict.fromkeys(skipped, "no"))


def batch_of(draw):
    return Batch(draw[0], draw[1])


def test_uniform_batches_are_known_by_their_chances():
    first = batch_of(uniform_draws(np.arange(50), 10, np.random.default_rng(0)))
    rest = np.setdiff1d(np.arange(50), first.indices)
    second = batch_of(uniform_draws(rest, 5, np.random.default_rng(1)))
    chosen = Batch(np.setdiff1d(rest, second.indices)[:7])  # by information: no chance at all
    every = np.concatenate([first.indices, second.indices, chosen.indices])
    history = told(50, [first, second, chosen], every)
    np.testing.assert_array_equal(drawn_uniformly(history), np.concatenate([first.indices, second.indices]))


def test_draws_with_unequal_chances_do_not_represent_the_pool():
    rates = np.random.default_rng(0).random(50) + 0.1
    history = told(50, [batch_of(successive_draws(rates, np.arange(50), 10, np.random.default_rng(0)))], np.arange(50))
    assert len(drawn_uniformly(history)) == 0


def test_only_labels_that_were_told_count_and_volunteered_ones_do_not():
    first = batch_of(uniform_draws(np.arange(3, 50), 10, np.random.default_rng(0)))  # three points were labelled before
    history = told(50, [first], [0, 1, 2, *first.indices[:4]], skipped=[int(first.indices[5])])
    np.testing.assert_array_equal(drawn_uniformly(history), first.indices[:4])
    assert len(drawn_uniformly(told(50, [], [0, 1, 2]))) == 0
