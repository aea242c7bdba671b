"""How much each point matters for the metrics that are asked for: what draws follow."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from altmas.belief import Belief
from altmas.intervals import normal_quantile
from altmas.methods.assured.design import defensive_share
from altmas.methods.assured.estimator import Believed, Difference
from altmas.methods.assured.fitted_weight import supposed
from altmas.methods.assured.parts import residuals_of
from altmas.metrics import Metric
from altmas.metrics.influence import ItemInfluence, sum_of_items
from altmas.pool import Pool
from altmas.task import Task
from altmas.types import Array


@dataclass(frozen=True)
class Importance:
    """How much points matter for all metrics together, by one unit of weight.

    believed  (N,) u^2, squared residuals as the belief expects them;  seen  (n,) the same as labels show it, at `rows`
    defensive (N,) sizes of the draws that do not follow the belief (V14); their mean is the share of these draws
    """

    believed: Array
    seen: Array
    rows: Array
    defensive: Array


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
    seen, share = np.zeros(len(rows)), 0.0
    for metric in asked:
        gain, variance = metric.gain_and_variance()
        residual = np.concatenate(metric.residuals())
        if metric.members is not None:
            residual = residual * metric.members[rows]
        share += metric.weight / total * defensive_share(gain, shape, variance, planned, z)
        believed += metric.weight / metric.spread * variance
        seen += metric.weight / metric.spread * residual**2
    defensive = share * shape if pool.weights is None else share * shape / (pool.weights / pool.weights.mean())
    return Importance(*by_unit(believed, seen, rows, pool.weights), rows, defensive)


@dataclass(frozen=True)
class _Asked:
    """A metric that draws are for: its weight, D at items, its spread under random sampling, members (N,) or None.

    stands_for  how many rows each point stands for: (N,), or 1
    fitted      whether the weight of the belief in it is fitted (V18);  estimator  by which it is estimated so far
    """

    weight: float
    influence: ItemInfluence
    spread: float
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
            influence, spread = believed_influence(metric, believed)
            stands_for = 1.0 if task.pool.weights is None else task.pool.weights
            members, fitted = metric.members(task.pool), metric.about.fitted
            asked = _Asked(share / len(components), influence, spread, members, stands_for, fitted, estimator)
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


def believed_influence(metric: Metric, believed: BelievedAmong) -> tuple[ItemInfluence, float]:
    """(D at items if labels are as believed, its spread under random sampling)."""
    pool, sides = believed.pool, []
    for factor, part in metric.parts:
        members = part.members(pool)
        sides.append((factor, part.moved_by(pool, believed(members))[1], members))
    items = sides[0][1] if len(sides) == 1 else sum_of_items(sides)
    return items, items.spread(believed(metric.members(pool)))
