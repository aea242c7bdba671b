"""What `assured` knows about data like the pool: how each point moves a metric, as labelled and as believed (F1)."""

from collections.abc import Sequence

import numpy as np

from altmas.intervals import score_interval
from altmas.methods.assured.estimator import Difference
from altmas.methods.assured.linearised import Linearised
from altmas.methods.assured.parts import Part
from altmas.metrics import Metric
from altmas.metrics.influence import Influence, ItemInfluence, SumOfItems, TableItems
from altmas.superpopulation import Influences, PoolSpread, joined, spread_of_pool
from altmas.types import Array

Sides = Sequence[tuple[float, Difference, ItemInfluence]]
"""(factor, estimator of its points, influence) of each part of a difference, or of the metric itself."""

MOST_ROWS = 1000
"""Rows into which groups are drawn together where only their covariances matter."""


def ahead_of(found: Linearised, tail: float, fraction: float = 0.0) -> PoolSpread:
    """What the pool says about data like it; tail = log(1 / chance of a miss on one side).

    fraction  share of what it is about that the pool is (P2); 0 for data to come, which may come in groups
    """
    union, items = found.estimator, found.sides[0][2]
    if len(found.sides) > 1:
        items = SumOfItems([(factor, one, part.inside) for factor, part, one in found.sides])
    value = min(found.metric.bounds[1], max(found.metric.bounds[0], found.value))
    contributions, constants = centred_contributions(found.sides)
    inside = np.flatnonzero(union.inside)
    labelled = np.flatnonzero(union.known[inside] >= 0)
    rows = inside[labelled]
    shown = items.at(rows, union.known[rows]) + constants[rows]
    squares, skew = _moments(items, constants, union, inside, labelled, shown)
    lowest, highest = items.range()
    told = Influences(
        contributions=contributions[inside],
        squares=squares,
        skew=skew,
        labelled=labelled,
        shown=shown,
        largest=float((highest - lowest)[inside].max(initial=0.0)),
        counting=counting(found.metric, union)[inside],
        groups=None if union.pool.group is None or fraction > 0 else union.pool.group[inside],
        beyond=abs(found.value - value) / max(len(inside), 1),
    )
    return spread_of_pool(told, value, found.metric.bounds, tail, fraction)


def interval_of(found: Linearised, value: float, factor: float, ahead: PoolSpread | None = None) -> tuple[float, float]:
    """The interval of a metric to first order: about the pool, or with what the pool says about data like it."""
    bounds, quantile = found.metric.bounds, factor if ahead is None else ahead.quantile(factor)
    low, high = score_interval(value, lambda candidate: joined(found.evidence(candidate), ahead), bounds, quantile)
    return max(bounds[0], low - found.too_high), min(bounds[1], high + found.too_low)


def contributions_by_group(metrics: Sequence[Sides], groups: Array | None) -> Array:
    """(B, K) contributions of K metrics, summed over groups; many groups share a row, which leaves covariances alone.

    Groups are drawn together by their number, which has nothing to do with what they contribute.
    """
    found = np.column_stack([centred_contributions(sides)[0] for sides in metrics])
    own = np.arange(len(found)) if groups is None else groups
    rows = np.random.default_rng(len(found)).permutation(int(own.max()) + 1)[own] % MOST_ROWS
    return np.column_stack([np.bincount(rows, one, MOST_ROWS) for one in found.T])


def centred_contributions(sides: Sides) -> tuple[Array, Array]:
    """((N,) z_i, (N,) what has to be added to D_i(c) to make it phi_i(c)), 0 outside the points of each side."""
    n = len(sides[0][1].known)
    contributions, constants = np.zeros(n), np.zeros(n)
    for factor, estimator, items in sides:
        inside, constant = estimator.inside, np.broadcast_to(items.constant(), n)
        own = _contributions(estimator, items) + constant
        centre = float(own[inside].sum()) / max(int(inside.sum()), 1)
        contributions += factor * np.where(inside, own - centre, 0.0)
        constants += factor * np.where(inside, constant - centre, 0.0)
    return contributions, constants


def _contributions(estimator: Difference, items: ItemInfluence) -> Array:
    """(N,) <What_i, D_i>: as believed, as labelled, and the expanded residual at the samples."""
    found = np.zeros(len(estimator.known))
    for part in estimator.parts:
        found += part.share * _seen_from(part, items.moments(part.belief)[0], items, estimator.known)
    return found


def _seen_from(part: Part, mean: Array, items: ItemInfluence, known: Array) -> Array:
    found = np.where(part.rest, mean, 0.0)
    found[part.labelled] = items.at(part.labelled, known[part.labelled])
    found[part.rows] += part.expansion * (items.at(part.rows, known[part.rows]) - mean[part.rows])
    return found


def _moments(
    items: ItemInfluence, constants: Array, union: Difference, inside: Array, labelled: Array, shown: Array
) -> tuple[float, float]:
    """(S^2, skew): the larger of the unbiased and of the believed sum of squares; third moment over the latter."""
    unbiased, known = 0.0, union.known
    for part in union.parts:
        mean, variance = items.moments(part.belief)
        square = variance + (mean + constants) ** 2
        at_labels, at_rows = (
            (items.at(rows, known[rows]) + constants[rows]) ** 2 for rows in (part.labelled, part.rows)
        )
        total = square[part.rest].sum() + at_labels.sum() + (part.expansion * (at_rows - square[part.rows])).sum()
        unbiased += part.share * float(total)
    mean, variance = (one[inside].copy() for one in items.moments(union.belief))
    third, mean = items.third_moment(union.belief)[inside].copy(), mean + constants[inside]
    mean[labelled], variance[labelled], third[labelled] = shown, 0.0, 0.0
    believed = float((variance + mean**2).sum())
    skew = float((third + 3 * variance * mean + mean**3).sum()) / believed if believed > 0 else 0.0
    return max(unbiased, believed), skew


def counting(metric: Metric, union: Difference) -> Array:
    """(N,) chance that each point counts for the metric: as a trial where it is a share of trials, else 1."""
    if len(metric.parts) > 1 or not metric.is_table:
        return np.ones(len(union.known))
    rows = metric.rows(metric, union.pool)
    found = metric.proportion((rows.count, union.n_classes))
    if found is None:
        return np.ones(len(union.known))
    trials = found[1].astype(np.float64)
    own = np.diagonal(trials).copy() if rows.count == union.n_classes else np.zeros(rows.count)
    chance = TableItems(rows, Influence(own, dense=trials), union.n_classes).moments(union.belief)[0]
    told = np.flatnonzero(union.known >= 0)
    chance[told] = trials[rows.codes[told], union.known[told]]
    return np.clip(chance, 0.0, 1.0)
