"""Metrics that are no function of one table, from a uniform random sample: linearised at the labelled points (S9).

The metric is taken at the weights of the labels: 1 for a volunteered one, R / n for a drawn one, with R the points that
were not volunteered and n the drawn labels among the metric's points. phi_i = D_i(y_i) with the constant of the point:
    V = (1 - n/R) n/(n - 1) sum over the drawn of (R/n)^2 (phi_i - mean phi)^2                                     (S9)
About data like the pool the sample is one of that data: the factor 1 - n/R, which is there because the pool ends, is
left out, volunteered labels count with weight 1, and terms are added over groups before they are squared (F1), with
G* of (F2) in place of G: the mean takes more from groups of unequal size. Where no term differs from 0, as without an
error, labels count as if they came in whole groups (F4).
Of a pool that is a random sample, the share f of all rows, a label with weight w has its square times 1 - f/w (P3): the
sample within the sample, and the sample itself with (1 - f). Where a row stands for k_i rows, its weight is k_i R/n, or
k_i if that were more than half of all weight (W3), and phi_i is k_i (D_i - the weighted mean of D). About the pool
itself the interval reaches at least as far as points that nobody drew could move the metric (V4). For a metric without
bounds it is that of skewed terms (V3), for an average precision with few labels of its class that of few trials (B9).
Where whole groups are drawn, terms are added over them as for data like the pool, with 1 - n/R as it is, and the
interval reaches at least as far as groups that nobody drew could (U5).                                           (U8)
A sample in which every answer is right would have V = 0, so z^2 labels are added whose influence is at either end of
its range with equal chances, wherever the metric has bounds; where labels come in groups, so do those that are added:
there are as many of them to the effective number of labels, n over the effect of the groups. Stages, and points that
were added to the pool together, have n and R, the mean of phi and V of their own (B6), and c_s^2 V are added.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from altmas.estimates import LEAST_DRAWN, Estimate, without_interval
from altmas.history import History
from altmas.intervals import (
    Evidence,
    bounded_interval,
    normal_quantile,
    score_interval,
    student_quantile,
    variance_at_trials,
)
from altmas.methods.random_linear import Linear, Supposed, effect_on, linear_of
from altmas.methods.random_sample import Ahead
from altmas.methods.random_stages import stages_among
from altmas.metrics import LabelWeights, Metric
from altmas.metrics.averages import too_few_labels
from altmas.superpopulation import (
    LEAST_GROUPS,
    PoolSpread,
    left_when_labelled,
    too_few_groups,
)
from altmas.task import Task
from altmas.types import Array

NO_WHOLE_GROUP = "undefined: no group is answered whole yet"


def estimate_of_items(task: Task, history: History, metric: Metric, supposed: Supposed | None = None) -> Estimate:
    """The estimate of any metric but a gap from a uniform random sample; supposed: labels of points left open."""
    sides = [linear_of(task, history, part, factor, supposed) for factor, part in metric.parts]
    value = sum(side.value for side in sides)
    labels, used = labels_of(task, history, metric), int(np.logical_or.reduce([side.used for side in sides]).sum())
    if why := _why_undefined(task, history, metric, sides, used):
        return without_interval(metric, task.confidence, labels, why)
    complete = all(side.drawn == side.rest for side in sides)
    if complete and not task.beyond:
        details = (task.confidence, labels, float(used), "fixed-n", "every point is labelled: exact")
        return Estimate(metric.name, value, value, value, *details)
    drawn = used if complete else min(side.drawn for side in sides)
    few = "no interval: fewer than two drawn labels" if drawn < 2 else ""
    if why := too_few_labels(metric, used, len(task.pool.classes)) or few:
        return without_interval(metric, task.confidence, labels, why, value=value)
    groups = min(side.spread.groups for side in sides)
    if groups < LEAST_GROUPS:
        return replace(without_groups(task, history, metric, groups), value=value)
    variance, left, effect = _variance(task, sides, used / _size(task, metric))
    worth = max(min(side.drawn for side in sides), 1) / max(effect, 1.0)
    witnesses = min(drawn, *(side.spread.witnesses for side in sides))
    low, high = _interval(metric, value, variance, sides, task.confidence, witnesses, worth)
    factors = [factor for factor, _ in metric.parts]
    for down, up in map(_turned, factors, (side.spread.unseen for side in sides)):
        low, high = min(low, value - down), max(high, value + up)
    for down, up in map(_turned, factors, (side.hidden for side in sides)):
        low, high = low - down, high + up
    low, high = max(metric.bounds[0], low), min(metric.bounds[1], high)
    effective = float(used) if task.units is None else used / max(effect, 1.0)
    details = (task.confidence, labels, effective, "fixed-n", metric.about.caution)
    least = math.sqrt(left) * (high - low) / 2
    return Estimate(metric.name, value, low, high, *details, least_half_width=least)


def _why_undefined(task: Task, history: History, metric: Metric, sides: list[Linear], used: int) -> str:
    """Why labels give the metric no value; empty where they do. used: labels that count."""
    if any(math.isnan(side.value) for side in sides):
        if task.units is not None and history.drawn_labels == 0:
            return NO_WHOLE_GROUP
        return "undefined: no label yet" if used == 0 else f"undefined: no label so far tells about {metric.name}"
    without = max(side.without for side in sides)
    if without == 0:
        return ""
    enough = min(LEAST_DRAWN, without)
    return (
        f"insufficient: no drawn label among {without:,} points that were added; about {enough} labels among them "
        "would do"
    )


def _turned(factor: float, reach: tuple[float, float]) -> tuple[float, float]:
    """How far down and up a sum reaches if its part with this factor reaches so far down and up."""
    down, up = reach if factor > 0 else reach[::-1]
    return abs(factor) * down, abs(factor) * up


def with_left_open(
    task: Task, history: History, metric: Metric, estimate: Callable[[Supposed | None], Estimate]
) -> Estimate:
    """The estimate, from as low to as high as with any label of the points that people left open (B5).

    A sample that ends where somebody would not answer may end there because of the label. The labels that move the
    metric most stand for all. Where whole groups are drawn, what is behind one that was left open is away already (U1).
    """
    answered, moves = estimate(None), dict[int, Array]()
    if task.units is not None:
        return answered
    for factor, part in metric.parts:
        members = part.members(task.pool)
        sampled = stages_among(history, np.ones(len(task.pool), np.bool_) if members is None else members)
        if not sampled.left_open:
            continue
        rows = np.flatnonzero(sampled.weights > 0)
        weights = sampled.weights[rows] if task.pool.weights is None else (sampled.weights * task.pool.weights)[rows]
        labels = LabelWeights(len(task.pool), len(task.pool.classes), rows, sampled.known[rows], weights)
        _, items = part.moved_by(task.pool, labels)
        for point in sampled.left_open:
            moves[point] = moves.get(point, 0.0) + factor * items.rows(np.array([point]))[0]
    if not moves or math.isnan(answered.low):
        return answered
    worst, best = (
        estimate({point: int(choice(by_class)) for point, by_class in moves.items()})
        for choice in (np.argmin, np.argmax)
    )
    low = metric.bounds[0] if math.isnan(worst.low) else min(answered.low, worst.low)
    high = metric.bounds[1] if math.isnan(best.high) else max(answered.high, best.high)
    return replace(answered, low=low, high=high)


def _variance(task: Task, sides: list[Linear], labelled: float) -> tuple[float, float, float]:
    """(variance, share of it that is left when every point is labelled, effect of groups on it).

    labelled  share of the points that are
    """
    terms = np.sum([side.spread.terms for side in sides], axis=0)
    plain = float((terms**2).sum())
    if not task.beyond and task.units is None:
        return plain, 0.0, 1.0
    groups = task.units if task.groups is None else task.groups
    if groups is None:
        return plain, left_when_labelled(labelled, task.fraction), 1.0
    effect = effect_on(
        terms, groups, sum(side.spread.largest for side in sides), max(side.spread.crowd for side in sides)
    )
    if not task.beyond:
        return plain * effect, 0.0, effect
    left = max(effect - (1 - labelled), 0.0) / effect if effect > 0 else labelled
    return plain * effect, left, effect


def effect_of_groups(task: Task, history: History, metric: Metric, supposed: Supposed | None = None) -> Ahead:
    """What groups make of the variance of a metric of a table; all labels drawn, or no point without one."""
    side = linear_of(task, history, metric, 1.0, supposed)
    labelled = int(side.used.sum()) / _size(task, metric)
    if task.groups is None:
        return Ahead(1 - task.fraction * labelled, left=left_when_labelled(labelled, task.fraction))
    effect = max(effect_on(side.spread.terms, task.groups, side.spread.largest, side.spread.crowd), 1.0)
    return Ahead(effect, side.spread.groups, max(effect - (1 - labelled), 0.0) / effect, side.spread.witnesses)


def without_groups(task: Task, history: History, metric: Metric, groups: float) -> Estimate:
    """The estimate without an interval, because points come from too few groups."""
    value = linear_of(task, history, metric, 1.0).value if len(metric.parts) == 1 else math.nan
    note = too_few_groups(PoolSpread(Evidence(0.0), groups), task.pool.group_name)
    if not task.ahead:
        note = (
            f"no interval: what was drawn is worth about {groups:.1f} equal groups; at least {LEAST_GROUPS} are needed"
        )
    labels = labels_of(task, history, metric)
    return without_interval(metric, task.confidence, labels, note, value=value)


def _interval(
    metric: Metric,
    value: float,
    variance: float,
    sides: list[Linear],
    confidence: float,
    witnesses: float,
    worth: float,
) -> tuple[float, float]:
    """The interval; witnesses: labels, or groups of them, that the variance is known from; worth: effective labels."""
    quantile = student_quantile(confidence, max(witnesses - 1, 1))
    low, high = _plain_interval(metric, value, variance, sides, quantile, confidence, worth)
    below, above = (sum(max(sign * side.excess, 0.0) for side in sides) for sign in (1, -1))
    return max(metric.bounds[0], low - below), min(metric.bounds[1], high + above)


def _plain_interval(
    metric: Metric,
    value: float,
    variance: float,
    sides: list[Linear],
    quantile: float,
    confidence: float,
    worth: float,
) -> tuple[float, float]:
    if not all(map(math.isfinite, metric.bounds)):
        return score_interval(value, _skewed(variance, sides), metric.bounds, quantile)
    added = normal_quantile(confidence) ** 2
    smoothed = (worth * variance + added * sum(side.spread.pseudo for side in sides)) / (worth + added)
    if len(sides) == 1 and sides[0].of_class:
        side = sides[0]
        left = 1 - side.drawn / side.rest if side.rest > side.drawn else 1.0
        smoothed = max(smoothed, left * variance_at_trials(value, variance / left, side.of_class, added))
    return bounded_interval(min(max(value, metric.bounds[0]), metric.bounds[1]), smoothed, metric.bounds, quantile)


def _skewed(variance: float, sides: list[Linear]) -> Evidence:
    """The variance, which grows towards the side of rare large terms by sum of terms^3 / sum of terms^2 (V3)."""
    terms = np.sum([side.spread.terms for side in sides], axis=0)
    second = float((terms**2).sum())
    skew = float((terms**3).sum()) / second if second > 0 else 0.0
    return Evidence(variance, max(-skew, 0.0), max(skew, 0.0))


def _size(task: Task, metric: Metric) -> int:
    members = metric.members(task.pool)
    return len(task.pool) if members is None else int(members.sum())


def labels_of(task: Task, history: History, metric: Metric) -> int:
    """How many labels of the metric's points are known, whether or not its value rests on them."""
    members = metric.members(task.pool)
    return int((history.known >= 0).sum() if members is None else (members & (history.known >= 0)).sum())
