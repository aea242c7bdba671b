"""What `assured` knows about data like the pool: how each point moves a metric, as labelled and as believed (F1)."""

from collections.abc import Sequence

import numpy as np

from altmas.estimates import LEAST_DRAWN
from altmas.intervals import score_interval
from altmas.methods.assured.estimator import EVERY, Difference, Side, Sides
from altmas.methods.assured.linearised import Linearised
from altmas.methods.assured.parts import Part
from altmas.methods.assured.whole_groups import sums
from altmas.metrics import Metric
from altmas.metrics.influence import Influence, ItemInfluence, SumOfItems, TableItems
from altmas.superpopulation import STEEP, STEEP_OF_SCORES, Influences, PoolSpread, joined, spread_of_pool, student_like
from altmas.types import Array
from altmas.weighted import effective_sample_size

MOST_ROWS = 1000
"""Rows into which groups are drawn together where only their covariances matter."""


def ahead_of(linear: Linearised, tail: float, fraction: float = 0.0) -> PoolSpread:
    """What the pool says about data like it; tail = log(1 / chance of a miss on one side).

    fraction  share of what it is about that the pool is (P2); 0 for data to come, which may come in groups
    """
    union, items = linear.estimator, linear.sides[0][2].items
    if len(linear.sides) > 1:
        items = SumOfItems([(factor, side.items, estimator.inside) for factor, estimator, side in linear.sides])
    value = min(linear.metric.bounds[1], max(linear.metric.bounds[0], linear.value))
    contributions, constants = centred_contributions(linear.sides)
    inside = np.flatnonzero(union.inside)
    labelled = np.flatnonzero(union.known[inside] >= 0)
    rows = inside[labelled]
    shown = items.at(rows, union.known[rows]) + constants[rows]
    squares, skew = _moments(items, constants, union, inside, labelled, shown)
    lowest, highest = items.range()
    influences = Influences(
        contributions=contributions[inside],
        squares=squares,
        skew=skew,
        labelled=labelled,
        shown=shown,
        largest=float((highest - lowest)[inside].max(initial=0.0)),
        steepest=(0.0, 0.0) if _one_point_in_trials(linear) else _steepest(lowest, highest, constants, union),
        alike=STEEP if all(part.is_table for _, part in linear.metric.parts) else STEEP_OF_SCORES,
        counting=counting(linear.metric, union)[inside],
        groups=None if union.pool.group is None or fraction > 0 else union.pool.group[inside],
        beyond=abs(linear.value - value) / max(len(inside), 1),
        drawn_together=0.0 if linear.together is None else linear.together.drawn,
    )
    return spread_of_pool(influences, value, linear.metric.bounds, tail, fraction)


def interval_of(
    linear: Linearised, value: float, factor: float, ahead: PoolSpread | None = None
) -> tuple[float, float]:
    """The interval of a metric to first order: about the pool, or with what the pool says about data like it.

    While fewer than LEAST_DRAWN labels count, Student's quantile with one degree of freedom less than there are labels
    takes the place of the normal one: so few squared residuals say too little of their variance (V17).
    """
    bounds, quantile = linear.metric.bounds, factor if ahead is None else ahead.quantile(factor)
    counted = sum(len(sample.rows) for sample in linear.estimator.samples)
    if counted < LEAST_DRAWN:
        quantile = max(quantile, student_like(factor, max(counted - 1, 1)))
    if linear.together is not None:
        quantile = max(quantile, student_like(factor, max(groups_drawn(linear, linear.together.units) - 1, 1.0)))
    low, high = score_interval(value, lambda candidate: joined(linear.evidence(candidate), ahead), bounds, quantile)
    return max(bounds[0], low - linear.too_high), min(bounds[1], high + linear.too_low)


def groups_drawn(linear: Linearised, units: Array) -> float:
    """How many equal groups the sample is worth: (sum w)^2 / sum w^2, w what the points of a group stand for (U3)."""
    parts = linear.estimator.parts
    scale = np.concatenate([part.stands_for for part in parts])
    return effective_sample_size(sums(scale * counting(linear.metric, linear.estimator)[linear.rows], units))


def contributions_by_group(metrics: Sequence[Sides], groups: Array | None) -> Array:
    """(B, K) contributions of K metrics, summed over groups; many groups share a row, which leaves covariances alone.

    Groups are drawn together by their number, which has nothing to do with what they contribute.
    """
    contributions = np.column_stack([centred_contributions(sides)[0] for sides in metrics])
    own = np.arange(len(contributions)) if groups is None else groups
    rows = np.random.default_rng(len(contributions)).permutation(int(own.max()) + 1)[own] % MOST_ROWS
    return np.column_stack([np.bincount(rows, column, MOST_ROWS) for column in contributions.T])


def centred_contributions(sides: Sides) -> tuple[Array, Array]:
    """((N,) z_i, (N,) what has to be added to D_i(c) to make it phi_i(c)), 0 outside the points of each side."""
    n = len(sides[0][1].known)
    contributions, constants = np.zeros(n), np.zeros(n)
    for factor, estimator, side in sides:
        inside, constant = estimator.inside, np.broadcast_to(side.items.constant(), n)
        own = _contributions(estimator, side) + constant
        centre = float(own[inside].sum()) / max(int(inside.sum()), 1)
        contributions += factor * np.where(inside, own - centre, 0.0)
        constants += factor * np.where(inside, constant - centre, 0.0)
    return contributions, constants


def _contributions(estimator: Difference, side: Side) -> Array:
    """(N,) <What_i, D_i>: as supposed, as labelled, and the expanded residual at the samples."""
    contributions = np.zeros(len(estimator.known))
    for part, mean in zip(estimator.parts, side.means(estimator.parts), strict=True):
        contributions += part.share_at(EVERY) * _seen_from(part, mean, side.items, estimator.known)
    return contributions


def _seen_from(part: Part, mean: Array, items: ItemInfluence, known: Array) -> Array:
    contributions = np.where(part.rest, mean, 0.0)
    contributions[part.labelled] = items.at(part.labelled, known[part.labelled])
    contributions[part.rows] += part.expansion * (items.at(part.rows, known[part.rows]) - mean[part.rows])
    return contributions


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
        share = part.share_at(EVERY)
        unbiased += float((share * square * part.rest).sum() + (part.share_at(part.labelled) * at_labels).sum())
        unbiased += float(part.terms(at_rows - square[part.rows]).sum())
    mean, variance = (moment[inside].copy() for moment in items.moments(union.belief))
    third, mean = items.third_moment(union.belief)[inside].copy(), mean + constants[inside]
    mean[labelled], variance[labelled], third[labelled] = shown, 0.0, 0.0
    believed = float((variance + mean**2).sum())
    skew = float((third + 3 * variance * mean + mean**3).sum()) / believed if believed > 0 else 0.0
    return max(unbiased, believed), skew


def _one_point_in_trials(linear: Linearised) -> bool:
    """Whether no point moves the metric by more than one trial in G*: a share of trials, a difference of accuracies."""
    shares = [_trials(part, linear.estimator) for _, part in linear.metric.parts]
    if len(shares) == 1:
        return shares[0] is not None
    everywhere = all(estimator.inside.all() for _, estimator, _ in linear.sides)
    return everywhere and all(trials is not None and bool(trials.all()) for trials in shares)


def _steepest(lowest: Array, highest: Array, constants: Array, union: Difference) -> tuple[float, float]:
    """b of (F5) to both sides."""
    down, up = np.array([-(lowest + constants), highest + constants])[:, union.inside].max(1, initial=0.0)
    return float(down), float(up)


def counting(metric: Metric, union: Difference) -> Array:
    """(N,) chance that each point counts for the metric: as a trial where it is a share of trials, else 1."""
    trials = None if len(metric.parts) > 1 else _trials(metric, union)
    if trials is None:
        return np.ones(len(union.known))
    rows = metric.rows(metric, union.pool)
    own = np.diagonal(trials).copy() if rows.count == union.n_classes else np.zeros(rows.count)
    chance = TableItems(rows, Influence(own, dense=trials), union.n_classes).moments(union.belief)[0]
    labelled = np.flatnonzero(union.known >= 0)
    chance[labelled] = trials[rows.codes[labelled], union.known[labelled]]
    return np.clip(chance, 0.0, 1.0)


def _trials(metric: Metric, union: Difference) -> Array | None:
    """(R, C) 1 for the cells of its table that are trials, 0 for others; None if it is no share of trials."""
    if not metric.is_table:
        return None
    proportion = metric.proportion((metric.rows(metric, union.pool).count, union.n_classes))
    return None if proportion is None else proportion[1].astype(np.float64)
