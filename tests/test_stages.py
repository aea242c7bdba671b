"""Stages of draws: fixed sizes, exact inclusion probabilities, and nothing that merely waits moves anything."""

from dataclasses import replace

import numpy as np
import pytest

from altmas.history import Batch, History
from altmas.methods.assured.stages import LEVELS, begin, levels_of, stages_of

SIZES = np.array([0.3, 0.5, 0.8, 1.0, 1.0, 1.3, 1.7, 2.5])


def asked(n: int, seed: int, history: History | None = None) -> History:
    """A history whose first stage has asked for n points."""
    history = History(len(SIZES)) if history is None else history
    stage, record = begin(SIZES, 1.0, history, seed)
    rows = stage.next_points(history.open, n)
    return replace(history, batches=(*history.batches, Batch(rows, stage.draw_chances(rows), record)))


def told(history: History, rows, code: int = 0) -> History:
    return replace(history, labels={**history.labels, **{int(row): code for row in rows}})


def test_weights_by_rank_conditioning_are_unbiased_with_uncorrelated_terms():
    """Sum of 1/p over samples of 3 of 8 unequal points: mean 1 at each point (V1), no covariance between points."""
    runs = 4000
    weights = np.zeros((runs, len(SIZES)))
    for seed in range(runs):
        history = asked(3, seed)
        (stage,) = stages_of(told(history, history.drawn))
        assert len(stage.used) == 3
        weights[seed, stage.used] = 1 / stage.chances[stage.used]
    error = weights.std(0) / runs**0.5
    assert (np.abs(weights.mean(0) - 1) < 4 * error).all()
    products = (weights[:, :, None] - 1) * (weights[:, None, :] - 1)
    off = ~np.eye(len(SIZES), dtype=bool)
    z = products.mean(0)[off] / (products.std(0)[off] / runs**0.5)
    assert np.abs(z).max() < 4


def test_the_variance_of_a_total_is_estimated_without_bias():
    """sum (1 - p)/p^2 x^2 over the sample has the variance of sum x/p as its mean (4,000 samples, within 10 %)."""
    x, totals, variances = np.array([3.0, -1, 2, 0.5, 4, -2, 1, 1.5]), [], []
    for seed in range(4000):
        history = asked(4, seed)
        (stage,) = stages_of(told(history, history.drawn))
        p = stage.chances[stage.used]
        totals.append((x[stage.used] / p).sum())
        variances.append(((1 - p) / p**2 * x[stage.used] ** 2).sum())
    assert np.mean(variances) == pytest.approx(np.var(totals), rel=0.1)


def test_points_that_wait_are_not_in_the_sample_and_change_nothing():
    for seed in range(50):
        history = told(first := asked(3, seed), first.drawn)
        (before,) = stages_of(history)
        more = before.next_points(history.open, 4)
        waiting = replace(history, batches=(*history.batches, Batch(more)))
        (after,) = stages_of(waiting)
        np.testing.assert_array_equal(before.used, after.used)
        np.testing.assert_array_equal(before.exposure, after.exposure)


def test_the_sample_ends_at_the_first_gap_and_goes_on_when_it_closes():
    history = asked(5, seed=3)
    order = history.drawn.tolist()
    (gap,) = stages_of(told(history, [order[0], order[1], order[3], order[4]]))
    assert gap.used.tolist() == order[:2]
    (skipped,) = stages_of(replace(told(history, [order[0], order[1], order[3], order[4]]), skipped={order[2]: ""}))
    assert skipped.used.tolist() == order  # a skip is an answer
    (closed,) = stages_of(told(history, reversed(order)))
    assert closed.used.tolist() == order and closed.exposure.max() > gap.exposure.max()


def test_volunteered_points_do_not_end_a_stage_and_count_only_before_its_threshold():
    history = asked(3, seed=5)
    history = told(history, history.drawn)
    (plain,) = stages_of(history)
    following = plain.next_points(history.open, 2).tolist()
    (one,) = stages_of(told(history, following[:1]))
    assert one.used.tolist() == [*plain.used.tolist(), following[0]]
    (later,) = stages_of(told(history, following[1:]))
    assert later.used.tolist() == plain.used.tolist()
    np.testing.assert_array_equal(later.exposure, plain.exposure)


def test_a_closed_stage_is_not_prolonged_by_labels_of_later_stages():
    history = asked(3, seed=1)
    history = told(history, history.drawn)
    (first,) = stages_of(history)
    history = asked(5, 1, history)
    again, second = stages_of(told(history, history.drawn))
    np.testing.assert_array_equal(first.used, again.used)
    np.testing.assert_array_equal(first.exposure, again.exposure)
    assert not second.population[first.used].any() and len(second.used) == 5


def test_an_answered_population_is_certain():
    history = asked(len(SIZES), seed=2)
    (stage,) = stages_of(told(history, history.drawn))
    assert (stage.chances == 1).all() and len(stage.used) == len(SIZES)


def test_chances_of_single_draws_are_those_of_successive_sampling():
    history = asked(4, seed=7)
    rows, sizes = history.drawn, LEVELS[levels_of(SIZES)]
    left = sizes.sum()
    for row, chance in zip(rows.tolist(), history.batches[0].probabilities.tolist(), strict=True):
        assert chance == pytest.approx(sizes[row] / left)
        left -= sizes[row]


def test_sizes_survive_being_stored_as_bytes():
    sizes = np.geomspace(0.05, 1000, 50)
    np.testing.assert_allclose(LEVELS[levels_of(sizes)], sizes, rtol=0.03)
