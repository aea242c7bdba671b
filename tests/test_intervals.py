"""Intervals hold what they promise, also at the edges."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from altmas.intervals import (
    Evidence,
    Tails,
    anytime_quantile,
    bounded_interval,
    effective_trials,
    exact_lower,
    largest_unseen,
    missed_tail,
    normal_quantile,
    rare_lower,
    reach,
    reach_of_few,
    score_interval,
    share_evidence,
    share_interval,
    simultaneous_quantile,
    student_quantile,
    unseen_tail,
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


def test_with_counted_draws_of_equal_sizes_the_unseen_part_is_clopper_and_pearsons():
    for n in (1, 5, 20, 100):
        unseen = largest_unseen(np.full(10_000, 1e-4), np.full(10_000, n / 10_000), missed_tail(Z), draws=n)
        assert unseen == pytest.approx(1 - 0.025 ** (1 / n), rel=1e-4)
    assert largest_unseen(np.full(30, 0.01), np.zeros(30), missed_tail(Z), draws=0) == pytest.approx(0.3)


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


def test_the_exact_lower_bound_is_clopper_and_pearsons():
    """k of n at the bound come up with probability 2.5 %, by the binomial distribution itself."""
    from scipy.stats import binom

    for k, n in [(1, 50), (3, 40), (25, 50), (60, 60)]:
        bound = exact_lower(k / n, n, Z)
        assert binom.sf(k - 1, n, bound) == pytest.approx(0.025, rel=1e-6)
    assert exact_lower(0.0, 50, Z) == 0 and exact_lower(1e-9, 50, Z) < 1e-6
    assert exact_lower(1.0, 20, Z) == pytest.approx(0.025 ** (1 / 20))


@pytest.mark.parametrize("scale, offset", [(1, 0), (2, -1), (10, 5)])
def test_a_bounded_interval_reaches_wilsons_and_the_exact_bound_whichever_is_wider(scale, offset):
    """Binomial shares of n: the side towards the nearer bound is exact, the other Wilson's; scaled with the bounds."""
    n = 100
    for k in (0, 1, 10, 49, 51, 90, 99, 100):
        p = k / n
        centre = (k + Z**2 / 2) / (n + Z**2)
        trials = effective_trials(p, centre * (1 - centre) / n, Z)
        low, high = wilson(p, trials, Z)
        if p <= 0.5:
            low = min(low, rare_lower(p, trials, Z))
        else:
            high = max(high, 1 - rare_lower(1 - p, trials, Z))
        variance = centre * (1 - centre) / n * scale**2
        found = bounded_interval(offset + scale * p, variance, (offset, offset + scale), Z)
        assert found == pytest.approx((offset + scale * low, offset + scale * high), abs=1e-9)


def test_a_value_beyond_its_bounds_counts_as_at_them():
    assert bounded_interval(1.2, 0.01, (0, 1), Z) == pytest.approx(bounded_interval(1.0, 0.01, (0, 1), Z))
    assert bounded_interval(-0.2, 0.01, (0, 1), Z) == pytest.approx(bounded_interval(0.0, 0.01, (0, 1), Z))


def test_a_share_above_one_by_rounding_is_one():
    for trials in (3.0, 5.1, 40.0):
        assert share_interval(np.nextafter(1.0, 2.0), trials, Z) == share_interval(1.0, trials, Z)
        assert share_interval(-1e-16, trials, Z, 0.01) == share_interval(0.0, trials, Z, 0.01)


def test_half_a_bound_cuts_one_end():
    assert bounded_interval(1.0, 4.0, (0.0, math.inf), 2.0) == (0.0, 5.0)
    assert bounded_interval(-1.0, 4.0, (-math.inf, 0.0), 2.0) == (-5.0, 0.0)
    assert bounded_interval(1.0, -1e-18, (-math.inf, math.inf), 2.0) == (1.0, 1.0)


def test_wilson_solves_its_own_equation():
    """(p - e)^2 = z^2 e (1 - e) / n at both ends (B2); n need not be whole."""
    for p, n, z in [(0.3, 20, 1.0), (0.93, 100, Z), (0.05, 7.5, 2.5), (0.5, 1, Z)]:
        for end in wilson(p, n, z):
            assert (p - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / n)
    assert wilson(0.0, 30, Z)[0] == 0 and wilson(1.0, 30, Z)[1] == 1
    assert wilson(0.2, -1, Z) == (0.0, 1.0)


def test_effective_trials_solve_their_own_equation():
    for p, variance in [(0.0, 1e-4), (0.2, 0.003), (1.0, 0.02), (0.5, 1e-9)]:
        n = effective_trials(p, variance, Z)
        centre = (p * n + Z**2 / 2) / (n + Z**2)
        assert n * variance == pytest.approx(centre * (1 - centre), rel=1e-6)
    for tiny in (1e-140, 1e-155, 1e-300):  # rounding that is left of a variance of 0
        assert effective_trials(0.5, tiny, Z) > 1e100
        assert bounded_interval(0.5, tiny, (0, 1), Z) == (0.5, 0.5)


def test_quantiles_are_those_of_the_tables():
    assert normal_quantile(0.95) == pytest.approx(1.959964, abs=1e-6)
    assert student_quantile(0.95, 4) == pytest.approx(2.776445, abs=1e-6)
    assert student_quantile(0.9, 10) == pytest.approx(1.812461, abs=1e-6)
    assert missed_tail(Z) == pytest.approx(math.log(40))


def test_the_anytime_quantile_is_robbins_mixture():
    """sqrt((1 + 1/(n r)) log((n r + 1)/a^2)), and narrowest relative to 1/sqrt(n) near the planned number."""
    alpha = 0.05
    for planned in (1, 200):
        rho = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / planned
        for n in (1, 20, 200, 5000):
            expected = math.sqrt((1 + 1 / (n * rho)) * math.log((n * rho + 1) / alpha**2))
            assert anytime_quantile(0.95, n, planned) == pytest.approx(expected)
    factors = {n: anytime_quantile(0.95, n, 200) for n in (20, 100, 200, 400, 2000)}
    assert min(factors, key=factors.__getitem__) == 200
    assert anytime_quantile(0.95, 0, 0) == anytime_quantile(0.95, 1, 1)


def test_the_simultaneous_quantile_uses_the_terms_about_their_mean_and_the_confidence_asked_for():
    rng = np.random.default_rng(0)
    terms = rng.standard_normal((300, 2))
    shifted = simultaneous_quantile(terms + 1000, 0.8, np.random.default_rng(1))
    assert shifted == pytest.approx(simultaneous_quantile(terms, 0.8, np.random.default_rng(1)))
    assert shifted == pytest.approx(normal_quantile(1 - (1 - 0.8**0.5)), abs=0.07)
    silent = np.column_stack([terms, np.ones(300)])  # a metric that no label moves changes nothing
    assert simultaneous_quantile(silent, 0.8, np.random.default_rng(1)) == pytest.approx(shifted)
    assert simultaneous_quantile(terms * [1, 100], 0.8, np.random.default_rng(1)) == pytest.approx(shifted)
    assert simultaneous_quantile(terms[:, :1], 0.99, np.random.default_rng(1)) >= normal_quantile(0.99)


def test_the_reach_solves_its_own_equation():
    """d^2 = z^2 (V + skew d - curve d^2) (V3), unless what could stay unseen is more."""
    for variance, skew, curve in [(0.01, 0.0, 0.0), (0.01, 0.02, 0.0), (0.004, 0.01, 0.005), (0.0, 0.03, 0.01)]:
        d = reach(Z, variance, skew, curve, 0.0)
        assert d**2 == pytest.approx(Z**2 * (variance + skew * d - curve * d**2))
        assert reach(Z, variance, skew, curve, d + 0.1) == d + 0.1


def test_each_end_has_its_own_skewness_unseen_part_and_variance():
    told = Evidence(0.0004, skew_low=0.01, skew_high=0.002, curve=0.001, unseen_low=0.0, unseen_high=0.3)
    low, high = score_interval(0.5, lambda candidate: told, (0.0, 1.0), Z)
    assert low == pytest.approx(0.5 - reach(Z, 0.0004, 0.01, 0.001, 0.0), abs=1e-9)
    assert high == pytest.approx(0.8, abs=1e-9)
    wider = score_interval(0.5, lambda candidate: Evidence(0.0004 * (4 if candidate < 0.5 else 1)), (0.0, 1.0), 2.0)
    assert wider == pytest.approx((0.42, 0.54), abs=1e-9)
    assert score_interval(0.5, lambda candidate: Evidence(100.0), (0.0, 1.0), Z) == (0.0, 1.0)


def test_a_metric_without_bounds_and_large_values_has_ends_too():
    low, high = score_interval(-5e7, lambda candidate: Evidence(1e12), (-math.inf, math.inf), 2.0)
    assert (low, high) == pytest.approx((-5.2e7, -4.8e7), rel=1e-9)
    low, high = score_interval(1e-9, lambda candidate: Evidence(0.0), (-math.inf, math.inf), 2.0)
    assert low == pytest.approx(1e-9, abs=1e-7) == high
    low, high = score_interval(0.0, lambda candidate: Evidence(1e40), (-math.inf, math.inf), 2.0)
    assert low < -1e11 and high > 1e11 and math.isfinite(low) and math.isfinite(high)


def test_many_points_are_searched_as_few_are():
    """The greedy choice among thousands of points is the one over the whole sorted list."""
    rng = np.random.default_rng(4)
    for size, tail in [(5000, 3.7), (5000, 0.05), (300, 3.7), (256, 1.0), (257, 2.0), (5000, 1e9)]:
        gain, hazard = rng.random(size) - 0.1, rng.random(size) * 1e-2 + 1e-4
        order = np.argsort(-np.maximum(gain, 0) / hazard)
        left, total = tail, 0.0
        for row in order[gain[order] > 0]:
            part = min(1.0, left / hazard[row])
            total, left = total + part * gain[row], left - part * hazard[row]
            if part < 1:
                break
        assert largest_unseen(gain, hazard, tail) == pytest.approx(total)
    assert largest_unseen(np.ones(2), np.zeros(2), 1.0) == 2.0  # what nobody could have seen
    assert largest_unseen(np.array([1.0]), np.array([2.0]), 1.0) == pytest.approx(0.5)
    assert largest_unseen(np.array([1.0, 1.0]), np.array([1.0, 1.0]), 1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("n", [20, 60, 100, 200, 400])
def test_a_share_is_covered_wherever_it_lies(n):
    """Exact coverage over 500 shares. Wilson's alone falls to 0.84 where errors are rare: one error met is too many."""
    counts = np.arange(n + 1)
    shares = np.concatenate([np.linspace(0.5, 0.95, 200), np.linspace(0.95, 0.9999, 300)])

    def least(interval):
        low, high = np.array([interval(k / n, n, Z) for k in counts]).T
        chances = stats.binom.pmf(counts[:, None], n, shares)
        return (chances * ((low[:, None] <= shares) & (shares <= high[:, None]))).sum(0).min()

    assert least(share_interval) > 0.925 and least(wilson) < 0.87


def test_ends_outside_the_bounds_are_cut_and_no_news_is_everything():
    assert score_interval(0.9, Evidence(0.04), (0.0, 1.0), 2.0) == (0.5, 1.0)
    assert share_interval(0.3, 0, Z) == (0.0, 1.0) and share_interval(0.3, math.inf, Z) == (0.3, 0.3)
    for p, n in [(0.0, 30), (1.0, 30), (0.97, 60.5)]:
        assert score_interval(p, lambda _, p=p, n=n: share_evidence(p, n, Z), (0, 1), Z) == pytest.approx(
            share_interval(p, n, Z), abs=1e-9
        )


# ---------------------------------------------------------------- what few labels have shown (V21)


def test_few_equal_events_have_the_bound_of_a_rare_outcome_in_many_trials():
    trials = 1e7
    for events in (1, 2, 5, 8, 20):
        for tails, bound in ((Tails.of(Z), rare_lower), (Tails.one_sided(Z), exact_lower)):
            left = 0.3 * events - reach_of_few(0.3 * events, 0.3**2 * events, tails)
            assert left / 0.3 == pytest.approx(trials * bound(events / trials, trials, Z), rel=1e-4)
    assert reach_of_few(0.0, 0.0, Tails.of(Z)) == 0.0


def test_the_bound_of_a_rare_outcome_and_the_upper_end_miss_in_one_of_20_together():
    """Wherever the share lies: with Clopper and Pearson's upper end the chance of a miss is 0.05 at most (B12)."""
    from scipy.stats import binom

    for n in (5, 20, 100, 400):
        counts = np.arange(n + 1)
        low = np.array([rare_lower(k / n, n, Z) for k in counts])
        high = np.array([1 - exact_lower(1 - k / n, n, Z) for k in counts])
        for share in np.linspace(0.0005, 0.9995, 1999):
            missed = binom.pmf(counts, n, share)[(share < low) | (share > high)].sum()
            assert missed <= 0.05 + 1e-9, (n, share)
        exact = np.array([exact_lower(k / n, n, Z) for k in counts])
        assert (low >= exact).all() and low[1] > 1.9 * exact[1]
        assert n < 100 or low[n // 2] == exact[n // 2]


def test_intervals_of_a_higher_confidence_contain_those_of_a_lower_one():
    for n in (10, 60, 400):
        for k in range(n + 1):
            ends = [share_interval(k / n, n, normal_quantile(confidence)) for confidence in (0.95, 0.97, 0.99, 0.999)]
            for inner, outer in pairwise(ends):
                assert outer[0] <= inner[0] + 1e-12 and outer[1] >= inner[1] - 1e-12, (n, k)


def test_what_was_met_of_a_side_halves_the_chance_that_the_rest_of_it_is_priced_with():
    """(V26): log(1/a) where nothing was met, half-way to log(1/2a) at four equal events; decisions keep log(1/a)."""
    tails, alone = Tails.of(Z), Tails.one_sided(Z)
    assert tails.side == alone.side == alone.either == pytest.approx(math.log(40))
    assert unseen_tail(tails, 0.0, 0.0) == tails.side
    assert unseen_tail(tails, 4 * 0.3, 4 * 0.3**2) == pytest.approx(math.log(40) - math.log(2) / 2)
    assert unseen_tail(tails, 1e6, 1e6) == pytest.approx(math.log(20), abs=1e-5)
    assert unseen_tail(alone, 1e6, 1e6) == alone.side


def test_few_weighted_events_lie_further_above_their_expectation_as_seldom_as_said():
    rng, weights = np.random.default_rng(3), np.array([1.0, 4.0])
    for expected in ((3.0, 0.5), (0.5, 0.5), (20.0, 2.0)):
        counts = rng.poisson(expected, (4000, 2))
        sums = np.column_stack([counts @ weights, counts @ weights**2])
        reaches = np.array([reach_of_few(total, squares, Tails.one_sided(Z)) for total, squares in sums])
        assert (sums[:, 0] - reaches > np.dot(expected, weights)).mean() <= 0.03  # 0.025, and its Monte Carlo error


def test_where_the_variance_shrinks_the_reach_is_shorter_but_not_than_what_was_met():
    plain = reach(Z, 1e-4, 0.0, 0.0, 0.0)
    shorter = reach(Z, 1e-4, -5e-3, 0.0, 0.0)
    assert 0 < shorter < 0.8 * plain
    assert reach(Z, 1e-4, -5e-3, 0.0, 0.0, met=0.9 * plain) == pytest.approx(0.9 * plain)
    assert reach(Z, 1e-4, -5e-3, 0.0, 0.0, met=1.0) == pytest.approx(plain)  # never further than without shrinking
    assert reach(Z, 1e-4, 5e-3, 0.0, 0.0, met=1.0) == reach(Z, 1e-4, 5e-3, 0.0, 0.0)  # it grows that way
