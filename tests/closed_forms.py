"""Formulas of the literature in closed form, by which tests check what the methods compute in general."""

from collections.abc import Callable

import numpy as np

from altmas.methods.related.ranking import is_open, middle_rank
from altmas.metrics import Metric
from altmas.types import Array


def phi_of(metric: Metric, shares: Array) -> Array:
    """(C, C) phi of (C1) at a normalised table: how a point in each cell moves the metric."""
    slope = metric.gradient(shares)
    return np.asarray(slope - (shares * slope).sum())


def self_normalised_variance(weights: Array, phi: Array) -> float:
    """(C3): (1/n) mean (w phi)^2 / (mean w)^2."""
    return float(((weights * phi) ** 2).mean() / weights.mean() ** 2 / len(weights))


def neyman_variance(sizes: Array, spreads: Array, n: float) -> float:
    """(C7): (sum_h W_h S_h)^2 / n, the least that n labels can reach in an endless pool."""
    sizes = np.asarray(sizes, np.float64)
    return float((sizes / sizes.sum() * spreads).sum() ** 2 / n)


def risk_chances(wrong: Array) -> Array:
    """(N,) (C9): q* for accuracy from e_i = 1 - p(a_i|x_i); sums to 1."""
    risk = wrong.mean()
    q = np.sqrt(wrong * (1 - 2 * risk) + risk**2)
    return np.asarray(q / q.sum())


def optimal_variance(squares: Array) -> float:
    """n times (C11): (mean_i sqrt(sum_c p phi^2))^2 from the sums of each point."""
    return float(np.sqrt(squares).mean() ** 2)


def adaptive_ranks(precision: Callable[[int], float], n_points: int, head: int, ratio: float) -> dict[int, float]:
    """{rank: p} of every rank that is looked at when p can be had exactly (C19, C20)."""
    known = {rank: precision(rank) for rank in (head, n_points)}
    waiting = [(head, n_points)]
    while waiting:
        a, b = waiting.pop()
        if is_open(a, b, known[a], known[b], ratio):
            m = middle_rank(a, b)
            known[m] = precision(m)
            waiting += [(a, m), (m, b)]
    return known
