"""Metrics that are no function of one table, from a uniform random sample: linearised at the labelled points (S9).

The metric is taken at the weights of the labels: 1 for a volunteered one, R / n for a drawn one, with R the points that
were not volunteered and n the drawn labels among the metric's points. phi_i = D_i(y_i) with the constant of the point:
    V = (1 - n/R) n/(n - 1) sum over the drawn of (R/n)^2 (phi_i - mean phi)^2                                     (S9)
A sample in which every answer is right would have V = 0, so z^2 labels are added whose influence is at either end of
its range with equal chances, wherever the metric has bounds.
"""

import math
from dataclasses import dataclass

import numpy as np

from altmas.estimates import Estimate
from altmas.history import History
from altmas.intervals import bounded_interval, normal_quantile, student_quantile
from altmas.metrics import LabelWeights, Metric
from altmas.metrics.averages import too_few_labels
from altmas.task import Task
from altmas.types import Array


@dataclass(frozen=True)
class _Linear:
    """A metric, or one side of a difference, at the sample: centred terms (N,), variance of pseudo-labels.

    excess  most by which it is too high on average (below 0: too low);  drawn, rest  n and R
    """

    value: float
    terms: Array
    pseudo: float
    excess: float
    drawn: int
    rest: int


def estimate_of_items(task: Task, history: History, metric: Metric) -> Estimate:
    """The estimate of any metric but a gap from a uniform random sample."""
    sides = [_linear(task, history, part, factor) for factor, part in metric.parts]
    value = sum(side.value for side in sides)
    labels = _labels(task, history, metric)
    if math.isnan(value):
        note = "undefined: no label yet" if labels == 0 else f"undefined: no label so far tells about {metric.name}"
        return Estimate(metric.name, math.nan, math.nan, math.nan, task.confidence, labels, note=note)
    if all(side.drawn == side.rest for side in sides):
        told = (task.confidence, labels, float(labels), "fixed-n", "every point is labelled: exact")
        return Estimate(metric.name, value, value, value, *told)
    if why := too_few_labels(metric, labels, len(task.pool.classes)):
        return Estimate(metric.name, value, math.nan, math.nan, task.confidence, labels, note=why)
    drawn = min(side.drawn for side in sides)
    if drawn < 2:
        note = "no interval: fewer than two drawn labels"
        return Estimate(metric.name, value, math.nan, math.nan, task.confidence, labels, note=note)
    low, high = _interval(metric, value, sides, task.confidence)
    return Estimate(
        metric.name, value, low, high, task.confidence, labels, float(labels), "fixed-n", metric.about.caution
    )


def _interval(metric: Metric, value: float, sides: list[_Linear], confidence: float) -> tuple[float, float]:
    drawn = min(side.drawn for side in sides)
    variance = float((np.sum([side.terms for side in sides], axis=0) ** 2).sum())
    quantile = student_quantile(confidence, max(drawn - 1, 1))
    low, high = _plain_interval(metric, value, variance, sides, quantile, confidence)
    below, above = (sum(max(sign * side.excess, 0.0) for side in sides) for sign in (1, -1))
    return max(metric.bounds[0], low - below), min(metric.bounds[1], high + above)


def _plain_interval(
    metric: Metric, value: float, variance: float, sides: list[_Linear], quantile: float, confidence: float
) -> tuple[float, float]:
    drawn = min(side.drawn for side in sides)
    if not all(map(math.isfinite, metric.bounds)):
        half = quantile * math.sqrt(variance)
        return max(metric.bounds[0], value - half), min(metric.bounds[1], value + half)
    added = normal_quantile(confidence) ** 2
    smoothed = (drawn * variance + added * sum(side.pseudo for side in sides)) / (drawn + added)
    return bounded_interval(min(max(value, metric.bounds[0]), metric.bounds[1]), smoothed, metric.bounds, quantile)


def _linear(task: Task, history: History, metric: Metric, factor: float) -> _Linear:
    pool, n_points = task.pool, len(task.pool)
    members = metric.members(pool)
    inside = np.ones(n_points, np.bool_) if members is None else members
    volunteered = np.zeros(n_points, np.bool_)
    volunteered[history.volunteered] = True
    labelled = inside & (history.known >= 0)
    rest, drawn = int((inside & ~volunteered).sum()), np.flatnonzero(labelled & ~volunteered)
    n, rows = len(drawn), np.flatnonzero(labelled)
    weights = np.where(volunteered[rows], 1.0, rest / max(n, 1))
    value, items = metric.at(pool, LabelWeights(n_points, len(pool.classes), rows, history.known[rows], weights))
    terms, pseudo = np.zeros(n_points), 0.0
    if n > 1 and rest > n:
        moves = items.at(drawn, history.known[drawn]) + np.broadcast_to(items.constant(), n_points)[drawn]
        scale = factor * rest / n * math.sqrt((1 - n / rest) * n / (n - 1))
        terms[drawn] = scale * (moves - moves.mean())
        low, high = items.range()
        pseudo = factor**2 * rest**2 * (1 - n / rest) / n * float((((high - low) / 2)[inside] ** 2).mean())
    excess = math.copysign(metric.excess(pool, terms**2), factor)
    return _Linear(factor * value, terms, pseudo, excess, n, rest)


def _labels(task: Task, history: History, metric: Metric) -> int:
    members = metric.members(task.pool)
    return int((history.known >= 0).sum() if members is None else (members & (history.known >= 0)).sum())
