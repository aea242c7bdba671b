"""How much each point matters for the metrics that are asked for: what draws follow."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from altmas.belief import Belief
from altmas.intervals import normal_quantile
from altmas.methods.assured.design import defensive_share
from altmas.methods.assured.estimator import Difference
from altmas.methods.assured.fitted_weight import supposed
from altmas.methods.assured.parts import residuals_of
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.weights import Believed
from altmas.metrics import Metric
from altmas.metrics.influence import ItemInfluence, sum_of_items
from altmas.pool import Pool
from altmas.task import Task
from altmas.types import Array

MOST_FOR_GAIN = 20
"""Metrics of the whole pool among which those are sought from which the gain of a stage is worked out."""


@dataclass(frozen=True)
class Importance:
    """How much points matter for all metrics together, by one unit of weight.

    believed  (N,) u^2, squared residuals as the belief expects them;  seen  (n,) the same as labels show it, at `rows`
    defensive (N,) sizes of the draws that do not follow the belief (V14); their mean is the share of these draws
    few       rows without a label that can move a metric, for each metric of which these are fewer than is planned
    """

    believed: Array
    seen: Array
    rows: Array
    defensive: Array
    few: Sequence[Array]


def importance_for(task: Task, estimator: Difference, urgencies: Array, planned: float) -> Importance:
    """u_i^2 = sum_k w_k Var_f(D_ki(y)) / (random-sampling variance of k), w_k in proportion to the urgencies (K,).

    Draws that do not follow the belief are uniform among the points whose label can move a metric,
        sizes_i = tau sum_k w_k m_ki / (mean of m_k),     m_ki = 1 if max_c D_ki(c) > min_c D_ki(c), else 0        (V14)
    Where all of these can move it equally far, no other draws with the same sum of exposures let it change less by what
    stays unseen. For accuracy they are all points, for the precision of a class those answered with it. How far D says
    that a point can move a metric is not followed: for areas under curves that is itself believed. tau is the mean, by
    the same weights, of the share that each metric wants of `planned` labels.
    """
    pool, z = task.pool, normal_quantile(task.confidence)
    asked = list(_asked(task, estimator, urgencies))
    total = max(sum(metric.weight for metric in asked), 1e-300)
    shape = np.zeros(len(pool))
    for metric in asked:
        shape += metric.weight / total * (metric.moved / metric.moved.mean())
    believed, rows = np.zeros(len(pool)), np.concatenate([part.rows for part in estimator.parts])
    seen, share, few = np.zeros(len(rows)), 0.0, []
    for metric in asked:
        gain, variance = metric.gain_and_variance()
        residual = np.concatenate(metric.residuals())
        if metric.members is not None:
            residual = residual * metric.members[rows]
        share += metric.weight / total * defensive_share(gain, shape, variance, planned, z, metric.room)
        unlabelled = estimator.unlabelled & (metric.moved > 0)
        if 0 < np.count_nonzero(unlabelled) < planned:
            few.append(np.flatnonzero(unlabelled))
        believed += metric.weight / metric.spread * variance
        seen += metric.weight / metric.spread * residual**2
    defensive = share * shape if pool.weights is None else share * shape / (pool.weights / pool.weights.mean())
    return Importance(*by_unit(believed, seen, rows, pool.weights), rows, defensive, few)


def unexplained_by_fold(task: Task, belief: Belief, folds: Array) -> Array:
    """(N,) variance that uniform draws of a fold have at each point, if a random sample without a belief has 1 there.

    Of the metrics of the whole pool whose D no label changes (accuracy, a share, a mean), each of equal weight, or of
    the accuracy if there is none: nothing of it has seen a label of the fold. Slices are left out: a fold may have none
    of their points.
    """
    pool = task.pool
    weights = np.ones(len(pool)) if pool.weights is None else pool.weights
    total, counted = np.zeros(len(pool)), np.zeros(RECIPE.folds)
    of_pool = islice((metric for metric in task.metrics if metric.members(pool) is None), MOST_FOR_GAIN)
    for metric in (metric for metric in of_pool if _is_mean(metric, len(pool.classes))):
        items = believed_influence(metric, BelievedAmong(belief, pool))[1]
        mean, variance = items.moments(belief)
        mean, variance = (mean + items.constant()) / weights, variance / weights**2
        of_metric, squares = _over_squares(mean, variance, weights, folds)
        total, counted = total + of_metric, counted + (squares > 0)
    if not counted.any():
        right = belief.of_class(pool.anchor)
        total, squares = _over_squares(right, right * (1 - right), weights, folds)
        counted = (squares > 0).astype(np.float64)
    return np.asarray(total / np.maximum(counted, 1)[folds])


def _is_mean(metric: Metric, n_classes: int) -> bool:
    return not metric.contrasts and all(part.is_mean(n_classes) for _, part in metric.parts)


def _over_squares(mean: Array, variance: Array, weights: Array, folds: Array) -> tuple[Array, Array]:
    """((N,) variance over the sum of squares around the mean of the fold, (K,) these sums)."""
    count, total = np.bincount(folds, weights, RECIPE.folds), np.bincount(folds, weights * mean, RECIPE.folds)
    centre = (total / np.maximum(count, 1e-300))[folds]
    squares = np.bincount(folds, weights * (variance + (mean - centre) ** 2), RECIPE.folds)
    return weights * variance / np.maximum(squares, 1e-300)[folds], squares


@dataclass(frozen=True)
class _Asked:
    """A metric that draws are for: its weight, D at items, its spread under random sampling, members (N,) or None.

    room        how far it could change at all, if labels are as believed; infinite where the weight of the belief is
                fitted: what such a metric hangs on no belief foresees, and uniform draws find it
    stands_for  how many rows each point stands for: (N,), or 1
    fitted      whether the weight of the belief in it is fitted (V18);  estimator  by which it is estimated so far
    """

    weight: float
    influence: ItemInfluence
    spread: float
    room: float
    members: Array | None
    stands_for: Array | float
    fitted: bool
    estimator: Difference

    @cached_property
    def moved(self) -> Array:
        """(N,) how many rows the point stands for if its label can move the metric, else 0."""
        lowest, highest = self.influence.range()
        return self._inside((highest > lowest) * self.stands_for)

    def gain_and_variance(self) -> tuple[Array, Array]:
        """(N,) each: the largest change if a point is not as believed, and its squared residual as expected."""
        mean, variance = self.influence.moments(self.estimator.belief)
        lowest, highest = self.influence.range()
        gain = np.maximum(mean - lowest, highest - mean)
        if self.fitted:
            variance = variance + (mean - self._supposed[-1]) ** 2
        return self._inside(gain), self._inside(variance)

    def residuals(self) -> list[Array]:
        """For each part (n,) residuals of its sample."""
        expected = self._supposed if self.fitted else None
        return residuals_of(self.influence, self.estimator.parts, self.estimator.known, expected)

    @cached_property
    def _supposed(self) -> list[Array]:
        return supposed(self.influence, self.estimator.parts, self.estimator.known, self.estimator.weight)

    def _inside(self, values: Array) -> Array:
        return values if self.members is None else values * self.members


def _asked(task: Task, estimator: Difference, urgencies: Array) -> Iterator[_Asked]:
    """The metrics that a label can move, a gap by its groups; weights add up to 1 with those of metrics left out."""
    weighted = zip(task.metrics, urgencies / max(float(urgencies.sum()), 1e-300), strict=True)
    believed = BelievedAmong(estimator.belief, task.pool)
    for components, share in components_of(weighted):
        for metric in components:
            value, influence, spread = believed_influence(metric, believed)
            stands_for = 1.0 if task.pool.weights is None else task.pool.weights
            members, fitted = metric.members(task.pool), metric.about.fitted
            room = math.inf if fitted else max(value - metric.bounds[0], metric.bounds[1] - value)
            asked = _Asked(share / len(components), influence, spread, room, members, stands_for, fitted, estimator)
            if spread > 0 and asked.weight > 0 and asked.moved.any():
                yield asked


def by_unit(believed: Array, seen: Array, rows: Array, weights: Array | None) -> tuple[Array, Array]:
    """Squared residuals by one unit of weight: (N,) as believed, (n,) as seen at these rows."""
    return (believed, seen) if weights is None else (believed / weights**2, seen / weights[rows] ** 2)


def components_of(urgencies: Iterable[tuple[Metric, float]]) -> Iterator[tuple[tuple[Metric, ...], float]]:
    """The metrics whose labels a metric needs, with its urgency: itself, or that of each group for a gap."""
    for metric, urgency in urgencies:
        yield (tuple(part for _, part in metric.parts) if metric.contrasts else (metric,)), urgency


class BelievedAmong:
    """Weights as believed among sets of points, each made once: most metrics are about the same points and table."""

    def __init__(self, belief: Belief, pool: Pool) -> None:
        self.belief, self.pool = belief, pool
        self._made: dict[bytes | None, Believed] = {}

    def __call__(self, members: Array | None) -> Believed:
        """Those among the members (the whole pool by default)."""
        key = None if members is None else np.packbits(members).tobytes()
        if key not in self._made:
            self._made[key] = Believed(self.belief, members, self.pool.weights)
        return self._made[key]


def believed_influence(metric: Metric, believed: BelievedAmong) -> tuple[float, ItemInfluence, float]:
    """(value, D at items if labels are as believed, its spread under random sampling)."""
    pool, value, sides = believed.pool, 0.0, []
    for factor, part in metric.parts:
        members = part.members(pool)
        of_part, items = part.moved_by(pool, believed(members))
        value += factor * of_part
        sides.append((factor, items, members))
    items = sides[0][1] if len(sides) == 1 else sum_of_items(sides)
    return value, items, items.spread(believed(metric.members(pool)))
