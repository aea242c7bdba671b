"""Intervals hold what they promise, also at the edges."""

import math

import numpy as np
import pytest

from altmas.intervals import (
    anytime_quantile,
    bounded_interval,
    cautious_variance,
    effective_trials,
    normal_quantile,
    reaching,
    simultaneous_quantile,
    student_quantile,
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


def test_labels_without_an_error_leave_perfection_possible():
    assert reaching(0.7, 0.97, 1.0, (0.0, 1.0)) == (0.7, 1.0)
    assert reaching(0.1, 0.4, 0.0, (0.0, 1.0)) == (0.0, 0.4)
    assert reaching(0.7, 0.97, 0.9, (0.0, 1.0)) == (0.7, 0.97)
    assert reaching(-0.2, 0.9, 1.0, (-1.0, 1.0)) == (-0.2, 1.0)
    assert reaching(0.7, 0.97, float("nan"), (0.0, 1.0)) == (0.7, 0.97)


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


def test_few_and_unequal_terms_count_for_few_degrees_of_freedom():
    variance, freedom = cautious_variance(np.full(50, 0.1), 1.0, 4)
    assert (variance, freedom) == (pytest.approx(5.0), pytest.approx(54))
    assert cautious_variance(np.array([1.0, 0.0, 0.0]), 0.5, 4) == (1.0, 5.0)
    assert cautious_variance(np.zeros(50), 0.2, 4) == (0.2, 4.0)  # no error seen: the belief speaks
    assert student_quantile(0.95, 4) == pytest.approx(2.776, abs=1e-3)


def test_the_simultaneous_quantile_lies_between_one_and_bonferroni():
    rng = np.random.default_rng(2)
    independent = rng.standard_normal((400, 20))
    same = np.repeat(independent[:, :1], 20, axis=1)
    bonferroni = normal_quantile(1 - 0.05 / 20)
    assert simultaneous_quantile(same, 0.95, rng) == pytest.approx(Z, abs=0.08)
    assert bonferroni - 0.2 < simultaneous_quantile(independent, 0.95, rng) < bonferroni + 0.1
    assert simultaneous_quantile(np.zeros((5, 2)), 0.95, rng) == Z
