"""Intervals hold what they promise, also at the edges."""

import math

import numpy as np
import pytest

from altmas.intervals import (
    Evidence,
    anytime_quantile,
    bounded_interval,
    effective_trials,
    largest_unseen,
    missed_tail,
    normal_quantile,
    score_interval,
    simultaneous_quantile,
    wilson,
)

Z = normal_quantile(0.95)


def test_wilson_is_the_textbook_one():
    low, high = wilson(0.93, 100, Z)
    assert (low, high) == pytest.approx((0.8625, 0.9657), abs=5e-5)  # (B2)
    assert wilson(0.3, math.inf, Z) == (0.3, 0.3) and wilson(0.5, 0, Z) == (0, 1)


def test_the_effective_number_of_trials_of_a_binomial_share_is_its_own():
    for p, n in ((0.5, 100), (0.9, 400), (0.99, 1000)):
        centre = (p * n + Z**2 / 2) / (n + Z**2)
        assert effective_trials(p, centre * (1 - centre) / n, Z) == pytest.approx(n, rel=1e-3)
    assert effective_trials(0.7, 0.0, Z) == math.inf
    assert 100 < effective_trials(1.0, 1e-4, Z) < 200  # not 0: a share of 1 with sd 0.01 says something


def test_intervals_stay_inside_the_bounds_and_hold_the_value():
    for value in (-1.0, -0.3, 0.0, 1.0):
        low, high = bounded_interval(value, 0.01, (-1, 1), Z)
        assert -1 <= low <= value <= high <= 1 and high - low > 0.1
    assert bounded_interval(5.0, 4.0, (-math.inf, math.inf), 2.0) == (1.0, 9.0)
    assert bounded_interval(0.4, 0.0, (0, 1), Z) == (0.4, 0.4)


def test_binomial_shares_are_covered_near_one():
    rng = np.random.default_rng(0)
    for p in (0.9, 0.99):
        hits = rng.binomial(200, p, 1500)
        covered = [
            low <= p <= high
            for k in hits
            for centre in [(k + Z**2 / 2) / (200 + Z**2)]
            for low, high in [bounded_interval(k / 200, centre * (1 - centre) / 200, (0, 1), Z)]
        ]
        assert 0.925 < np.mean(covered) < 0.995


def test_the_anytime_quantile_survives_looking_at_every_step():
    """Normal steps, looked at from 20 to 1000: misses at any look stay below 5 %; the fixed quantile fails."""
    rng = np.random.default_rng(1)
    steps = np.arange(20, 1001)
    reach = np.array([anytime_quantile(0.95, n, 200) for n in steps])
    walks = rng.standard_normal((2000, 1000)).cumsum(1)[:, 19:] / np.sqrt(steps)
    assert (np.abs(walks) > reach).any(1).mean() < 0.05
    assert (np.abs(walks) > Z).any(1).mean() > 0.2
    assert anytime_quantile(0.95, 200, 200) < 3.2


def test_the_simultaneous_quantile_lies_between_one_and_bonferroni():
    rng = np.random.default_rng(2)
    independent = rng.standard_normal((400, 20))
    same = np.repeat(independent[:, :1], 20, axis=1)
    bonferroni = normal_quantile(1 - 0.05 / 20)
    assert simultaneous_quantile(same, 0.95, rng) == pytest.approx(Z, abs=0.08)
    assert bonferroni - 0.2 < simultaneous_quantile(independent, 0.95, rng) < bonferroni + 0.1
    assert simultaneous_quantile(np.zeros((5, 2)), 0.95, rng) == Z


def test_with_equal_weights_the_score_interval_is_wilsons():
    """Share p of n: variance p (1 - p) / n, growing by (1 - 2p) / n, curve 1 / n (V3)."""
    for p, n in [(0.0, 50), (0.1, 40), (0.5, 30), (0.93, 200), (1.0, 100)]:
        told = Evidence(p * (1 - p) / n, skew_low=(2 * p - 1) / n, skew_high=(1 - 2 * p) / n, curve=1 / n)
        found = score_interval(p, lambda candidate, told=told: told, (0.0, 1.0), Z)
        assert found == pytest.approx(wilson(p, n, Z), abs=1e-9)


def test_clean_labels_never_end_above_what_the_draws_can_show():
    """n clean labels of uniform draws: the rule of three (V4), below Clopper and Pearson's bound."""
    for n in (20, 60, 100, 200, 400):
        unseen = largest_unseen(np.full(10_000, 1e-4), np.full(10_000, n / 10_000), missed_tail(Z))
        assert unseen == pytest.approx(math.log(40) / n, rel=1e-6)
        told = Evidence(0.0, skew_low=1 / n, unseen_low=unseen)
        low, high = score_interval(1.0, lambda candidate, told=told: told, (0.0, 1.0), Z)
        assert low <= 1 - unseen and low <= 0.025 ** (1 / n) and high == 1.0


def test_the_largest_unseen_change_is_the_best_of_all_sets():
    """Greedy with a last point in part is at least the best whole set, and no more than one point better."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        gain, hazard = rng.random(10), rng.random(10) + 0.05
        subsets = ((np.arange(1024)[:, None] >> np.arange(10)) & 1).astype(float)
        best = (subsets @ gain)[subsets @ hazard <= 1.2].max()
        found = largest_unseen(gain, hazard, 1.2)
        assert best - 1e-12 <= found <= best + gain.max()
    many = largest_unseen(rng.random(5000), rng.random(5000) * 1e-3 + 1e-4, 3.7)
    assert many > 0
    assert largest_unseen(np.zeros(3), np.ones(3), 3.7) == 0.0
    assert largest_unseen(np.ones(3), np.full(3, 0.1), 3.7) == pytest.approx(3.0)


def test_a_metric_without_bounds_has_ends_on_both_sides():
    low, high = score_interval(5.0, lambda candidate: Evidence(4.0), (-math.inf, math.inf), 2.0)
    assert (low, high) == pytest.approx((1.0, 9.0), abs=1e-6)
