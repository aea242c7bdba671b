"""How much each point matters for the metrics that are asked for: what draws follow."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from altmas.belief import Belief
from altmas.intervals import normal_quantile
from altmas.methods.assured.design import defensive_share
from altmas.methods.assured.estimator import Believed, Difference
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

    Draws that do not follow the belief are in proportion to how far apart a metric can be for two labels of a point,
        sizes_i = sum_k w_k tau_k reach_ki / (mean of reach_k),     reach_ki = max_c D_ki(c) - min_c D_ki(c)       (V14)
    with tau_k the share that metric k wants of `planned` labels. Of all draws with the same sum of exposures these let
    the metric change least by what stays unseen, if nothing is believed: all sets that are missed equally often move it
    equally far. They are uniform for accuracy, and uniform among the points answered with a class for its precision.
    """
    weighted = zip(task.metrics, urgencies / max(float(urgencies.sum()), 1e-300), strict=True)
    believed, rows = np.zeros(len(task.pool)), np.concatenate([part.rows for part in estimator.parts])
    seen, z = np.zeros(len(rows)), normal_quantile(task.confidence)
    defensive, weighed = np.zeros(len(task.pool)), 0.0
    for metric, weight in (
        (component, share / len(parts)) for parts, share in components_of(weighted) for component in parts
    ):
        members = metric.members(task.pool)
        influence, spread = believed_influence(metric, estimator.belief, task.pool)
        if spread <= 0 or weight <= 0:
            continue
        mean, variance = influence.moments(estimator.belief)
        lowest, highest = influence.range()
        gain, reach = np.maximum(mean - lowest, highest - mean), highest - lowest
        residual = np.concatenate([residuals_of(influence, part, estimator.known) for part in estimator.parts])
        if members is not None:
            variance, residual = variance * members, residual * members[rows]
            gain, reach = gain * members, reach * members
        defensive += weight * defensive_share(gain, reach, variance, planned, z) * (reach / reach.mean())
        weighed += weight
        believed += weight / spread * variance
        seen += weight / spread * residual**2
    weights = task.pool.weights
    if weights is not None:
        defensive = defensive / (weights / weights.mean())
    return Importance(*by_unit(believed, seen, rows, weights), rows, defensive / max(weighed, 1e-300))


def by_unit(believed: Array, seen: Array, rows: Array, weights: Array | None) -> tuple[Array, Array]:
    """Squared residuals by one unit of weight: (N,) as believed, (n,) as seen at these rows."""
    return (believed, seen) if weights is None else (believed / weights**2, seen / weights[rows] ** 2)


def components_of(urgencies: Iterable[tuple[Metric, float]]) -> Iterator[tuple[tuple[Metric, ...], float]]:
    """The metrics whose labels a metric needs, with its urgency: itself, or that of each group for a gap."""
    for metric, urgency in urgencies:
        yield (tuple(part for _, part in metric.parts) if metric.contrasts else (metric,)), urgency


def believed_influence(metric: Metric, belief: Belief, pool: Pool) -> tuple[ItemInfluence, float]:
    """(D at items if labels are as believed, its spread under random sampling)."""
    sides = []
    for factor, part in metric.parts:
        members = part.members(pool)
        sides.append((factor, part.moved_by(pool, Believed(belief, members, pool.weights))[1], members))
    items = sides[0][1] if len(sides) == 1 else sum_of_items(sides)
    return items, items.spread(Believed(belief, metric.members(pool), pool.weights))
