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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from altmas.estimates import LEAST_DRAWN, Estimate, without_interval
from altmas.history import History
from altmas.intervals import (
    Evidence,
    bounded_interval,
    largest_unseen,
    missed_tail,
    normal_quantile,
    score_interval,
    student_quantile,
    variance_at_trials,
)
from altmas.methods.random_sample import Ahead
from altmas.methods.random_stages import RandomStage, counting_once, stages_among
from altmas.metrics import LabelWeights, Metric, table_of
from altmas.metrics.averages import reach_of_unseen, too_few_labels, trials_by_class
from altmas.metrics.influence import ItemInfluence
from altmas.pool import Pool
from altmas.superpopulation import (
    LEAST_GROUPS,
    PoolSpread,
    effective_groups,
    group_sums,
    groups_moving,
    groups_of_variance,
    least_effect,
    left_when_labelled,
    too_few_groups,
)
from altmas.task import Task
from altmas.types import Array

NO_WHOLE_GROUP = "undefined: no group is answered whole yet"


@dataclass(frozen=True, kw_only=True)
class _Spread:
    """How labels of the sample move a metric: centred terms (N,), and what their squares do not tell of its variance.

    pseudo     variance of pseudo-labels;  largest  most that a term can be
    groups     how many equal groups the labels are worth (F2);  crowd  labels in each
    witnesses  how many their variance is worth (F2)
    unseen     how far points could lower and raise the metric and stay unseen (V4, U5)
    """

    terms: Array
    pseudo: float
    largest: float = 0.0
    groups: float = math.inf
    crowd: float = 1.0
    witnesses: float = math.inf
    unseen: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class _Linear:
    """A metric, or one side of a difference, linearised at the sample.

    excess    most by which it is too high on average (below 0: too low)
    drawn     n;  rest  R;  used  (N,) labels that count
    without   points that came together, none of which was drawn and labelled
    hidden    how far classes of which no label tells could lower and raise it (B8)
    of_class  labels of the class of an average precision
    """

    value: float
    spread: _Spread
    excess: float
    drawn: int
    rest: int
    used: Array
    without: int
    hidden: tuple[float, float]
    of_class: int


Supposed = Mapping[int, int]
"""Labels of points that were left open, by row."""


def estimate_of_items(task: Task, history: History, metric: Metric, supposed: Supposed | None = None) -> Estimate:
    """The estimate of any metric but a gap from a uniform random sample; supposed: labels of points left open."""
    sides = [_linear(task, history, part, factor, supposed) for factor, part in metric.parts]
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


def _why_undefined(task: Task, history: History, metric: Metric, sides: list[_Linear], used: int) -> str:
    """Why labels give the metric no value; empty where they do. used: labels that count."""
    if any(math.isnan(side.value) for side in sides):
        if task.units is not None and len(history.drawn) and history.drawn_labels == 0:
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


def _variance(task: Task, sides: list[_Linear], labelled: float) -> tuple[float, float, float]:
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
    effect = _effect(
        terms, groups, sum(side.spread.largest for side in sides), max(side.spread.crowd for side in sides)
    )
    if not task.beyond:
        return plain * effect, 0.0, effect
    left = max(effect - (1 - labelled), 0.0) / effect if effect > 0 else labelled
    return plain * effect, left, effect


def _effect(terms: Array, groups: Array, largest: float, crowd: float) -> float:
    """How many times their plain variance groups make of these terms, at least (F4); crowd: labels of a group."""
    plain, count = float((terms**2).sum()), effective_groups((terms != 0).astype(np.float64), groups)
    together = float((group_sums(terms, groups) ** 2).sum()) * count / max(count - 1, 1.0)
    seen = min(groups_moving(sign * terms, groups, largest) for sign in (-1.0, 1.0))
    return max(together / plain if plain > 0 else 0.0, least_effect(seen, crowd, 1.0))


def effect_of_groups(task: Task, history: History, metric: Metric, supposed: Supposed | None = None) -> Ahead:
    """What groups make of the variance of a metric of a table; all labels drawn, or no point without one."""
    side = _linear(task, history, metric, 1.0, supposed)
    labelled = int(side.used.sum()) / _size(task, metric)
    if task.groups is None:
        return Ahead(1 - task.fraction * labelled, left=left_when_labelled(labelled, task.fraction))
    effect = max(_effect(side.spread.terms, task.groups, side.spread.largest, side.spread.crowd), 1.0)
    return Ahead(effect, side.spread.groups, max(effect - (1 - labelled), 0.0) / effect, side.spread.witnesses)


def without_groups(task: Task, history: History, metric: Metric, groups: float) -> Estimate:
    """The estimate without an interval, because points come from too few groups."""
    value = _linear(task, history, metric, 1.0).value if len(metric.parts) == 1 else math.nan
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
    sides: list[_Linear],
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
    sides: list[_Linear],
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


def _skewed(variance: float, sides: list[_Linear]) -> Evidence:
    """The variance, which grows towards the side of rare large terms by sum of terms^3 / sum of terms^2 (V3)."""
    terms = np.sum([side.spread.terms for side in sides], axis=0)
    second = float((terms**2).sum())
    skew = float((terms**3).sum()) / second if second > 0 else 0.0
    return Evidence(variance, max(-skew, 0.0), max(skew, 0.0))


def _linear(task: Task, history: History, metric: Metric, factor: float, supposed: Supposed | None = None) -> _Linear:
    pool, n_points = task.pool, len(task.pool)
    members = metric.members(pool)
    inside = np.ones(n_points, np.bool_) if members is None else members
    sampled = stages_among(history, inside, supposed)
    if pool.weights is not None and task.units is None:
        sampled = counting_once(sampled, pool.weights)
    strata, known = [_Stratum(stage) for stage in sampled.stages], sampled.known
    used = sampled.weights > 0
    rows = np.flatnonzero(used)
    weights = sampled.weights[rows] if pool.weights is None else sampled.weights[rows] * pool.weights[rows]
    value, items = metric.moved_by(pool, LabelWeights(n_points, len(pool.classes), rows, known[rows], weights))
    n, total = sum(len(stratum.drawn) for stratum in strata), sum(stratum.rest for stratum in strata)
    if task.beyond and len(rows):
        spread = _spread_ahead(task, metric, factor, items, known, rows, weights)
        n, total = (len(rows), len(rows)) if n == total else (n, total)
    else:
        alone = len(history.domains) == 1
        spread = _spread_in_pool(task, metric, factor, items, strata, known, used, inside, alone=alone)
    return _Linear(
        value=factor * value,
        spread=spread,
        excess=math.copysign(metric.excess(pool, spread.terms**2), factor),
        drawn=n,
        rest=total,
        used=used,
        without=sum(stratum.rest for stratum in strata if not len(stratum.drawn)) if len(history.domains) > 1 else 0,
        hidden=_unseen_classes(task, metric, value, known, rows, int(inside.sum()) - len(rows)),
        of_class=int((known[rows] == metric.classes[0]).sum()) if metric.about.over_members else 0,
    )


def _spread_ahead(
    task: Task, metric: Metric, factor: float, items: ItemInfluence, known: Array, rows: Array, weights: Array
) -> _Spread:
    """About data like the pool: labelled rows are a sample of it, with these weights."""
    terms, ends = _terms_ahead(task, metric, items, known, rows, weights)
    pseudo = factor**2 * float(weights.sum()) ** 2 / len(rows) * float((ends**2).mean())
    pseudo *= 1 - task.fraction * len(rows) / float(weights.sum())
    terms, largest = factor * terms, 2 * abs(factor) * float(ends.max(initial=0.0) * weights.max())
    if task.groups is None:
        return _Spread(terms=terms, pseudo=pseudo, largest=largest)
    counts = trials_among(metric, task.pool, rows, known)
    groups = effective_groups(counts, task.groups[rows])
    crowd = float(counts.sum()) / max(groups, 1e-9)
    effect = max(_effect(terms, task.groups, largest, crowd), 1.0)
    witnesses = groups_of_variance(counts, task.groups[rows], effect)
    return _Spread(
        terms=terms, pseudo=pseudo * effect, largest=largest, groups=groups, crowd=crowd, witnesses=witnesses
    )


def _spread_in_pool(
    task: Task,
    metric: Metric,
    factor: float,
    items: ItemInfluence,
    strata: list["_Stratum"],
    known: Array,
    used: Array,
    inside: Array,
    *,
    alone: bool,
) -> _Spread:
    """About the pool itself: by strata, or by whole groups; alone: whether all points came at once."""
    terms, pseudo = np.zeros(len(known)), 0.0
    for stratum in strata:
        terms[stratum.drawn] = factor * stratum.terms(items, known, task.pool.weights)
        pseudo += factor**2 * stratum.pseudo(items, alone=alone)
    drawn = np.concatenate([stratum.drawn for stratum in strata]) if strata else np.zeros(0, np.int64)
    if task.units is None or not len(drawn):
        unseen = _unseen(task, items, strata, used, known) if task.units is None else (0.0, 0.0)
        return _Spread(terms=terms, pseudo=pseudo, unseen=unseen)
    weight = sum(stratum.rest for stratum in strata) / len(drawn)
    groups, crowd, largest = _of_groups(task, metric, items, inside, known, drawn, weight)
    largest *= abs(factor)
    return _Spread(
        terms=terms,
        pseudo=pseudo * max(_effect(terms, task.units, largest, crowd), 1.0),
        largest=largest,
        groups=groups,
        crowd=crowd,
        witnesses=groups,
        unseen=_unseen_groups(task, items, inside & ~strata[0].stage.exact, drawn, known, used),
    )


def _of_groups(
    task: Task, metric: Metric, items: ItemInfluence, inside: Array, known: Array, drawn: Array, weight: float
) -> tuple[float, float, float]:
    """(equal groups that the drawn labels are worth (F2), labels in each, the largest term that there could be)."""
    assert task.units is not None
    counts = trials_among(metric, task.pool, drawn, known)
    groups = effective_groups(counts, task.units[drawn])
    low, high = items.range()
    return groups, float(counts.sum()) / max(groups, 1e-9), float((high - low)[inside].max(initial=0.0)) * weight


def _unseen_groups(
    task: Task, items: ItemInfluence, rest: Array, drawn: Array, known: Array, used: Array
) -> tuple[float, float]:
    """How far whole groups that nobody drew could lower and raise the metric and stay unseen (U5).

    rest  (N,) points that were not volunteered;  drawn  rows of the sample;  used  (N,) labels that count
    """
    assert task.units is not None
    open_ = np.flatnonzero(rest & ~used)
    draws, groups = len(np.unique(task.units[drawn])), len(np.unique(task.units[rest]))
    reached = float((1 / (groups - np.arange(draws))).sum())
    mean, (low, high) = float(items.at(drawn, known[drawn]).mean()), items.range()
    tail = missed_tail(normal_quantile(task.confidence))
    own = np.unique(task.units[open_], return_inverse=True)[1]
    hazard = np.full(int(own.max(initial=-1)) + 1, reached)
    gains = (group_sums(gain[open_], own) if len(open_) else np.zeros(0) for gain in (mean - low, high - mean))
    down, up = (largest_unseen(gain, hazard, tail, draws) for gain in gains)
    return down, up


def _unseen(
    task: Task, items: ItemInfluence, strata: list["_Stratum"], used: Array, known: Array
) -> tuple[float, float]:
    """How far points that nobody drew could lower and raise the metric and stay unseen (V4), all else as on average.

    Every point of a stratum stays outside a sample of n of R with chance about 1 - n/R.
    """
    tail = missed_tail(normal_quantile(task.confidence))
    hazard, open_, alike = np.zeros(len(known)), np.zeros(len(known), np.bool_), used.copy()
    for stratum in strata:
        if stratum.stage.once is not None:
            alike &= ~stratum.stage.once
        left = stratum.stage.about & ~stratum.stage.exact
        hazard[left] -= math.log1p(-len(stratum.drawn) / (stratum.rest + 1))
        open_ |= left & ~used
    labelled, constant = np.flatnonzero(alike), np.broadcast_to(items.constant(), len(known))
    if not len(labelled):
        return 0.0, 0.0
    own = np.ones(len(known)) if task.pool.weights is None else task.pool.weights
    moves = items.at(labelled, known[labelled]) + constant[labelled]
    mean = own * (float(moves.sum()) / float(own[labelled].sum())) - constant
    low, high = items.range()
    return (
        largest_unseen((mean - low)[open_], hazard[open_], tail),
        largest_unseen((high - mean)[open_], hazard[open_], tail),
    )


def _unseen_classes(
    task: Task, metric: Metric, value: float, known: Array, rows: Array, unlabelled: int
) -> tuple[float, float]:
    """(B8), if it is a mean over classes: by its table, or by the classes that were seen."""
    if not metric.about.over_classes or math.isnan(value) or task.beyond:
        return 0.0, 0.0
    classes = len(task.pool.classes)
    seen, named = np.bincount(known[rows], minlength=classes) > 0, np.ones(classes, np.bool_)
    if metric.is_table:
        own = metric.rows(metric, task.pool)
        table = table_of(own.codes[rows], known[rows], classes, n_rows=own.count)
        seen, named = trials_by_class(metric, table)[1] > 0, np.bincount(own.codes, minlength=own.count) > 0
    return reach_of_unseen(metric, value, seen, named, unlabelled)


@dataclass(frozen=True)
class _Stratum:
    """A stage (B6), or the points that came together."""

    stage: RandomStage

    @property
    def rest(self) -> int:
        return self.stage.rest

    @property
    def drawn(self) -> Array:
        return self.stage.rows

    def terms(self, items: ItemInfluence, known: Array, weights: Array | None = None) -> Array:
        """(n,) the centred terms of (S9), times c of the stage; weights (N,) of the rows."""
        n = len(self.drawn)
        if n < 2 or self.rest <= n:
            return np.zeros(n)
        moves = items.at(self.drawn, known[self.drawn]) + np.broadcast_to(items.constant(), len(known))[self.drawn]
        scale = self.stage.share * self.rest / n * math.sqrt((1 - n / self.rest) * n / (n - 1))
        if weights is None:
            return np.asarray(scale * (moves - moves.mean()))
        own = weights[self.drawn]
        return np.asarray(scale * (moves - own * (float(moves.sum()) / float(own.sum()))))

    def pseudo(self, items: ItemInfluence, *, alone: bool) -> float:
        """The variance of n labels whose influence is at either end of its range."""
        n = len(self.drawn)
        if self.rest <= n or (alone and n < 2) or n == 0:
            return 0.0
        low, high = items.range()
        alike = self.stage.about if self.stage.once is None else self.stage.about & ~self.stage.once
        ends = ((high - low) / 2)[alike]
        return self.stage.share**2 * self.rest**2 * (1 - n / self.rest) / n * float((ends**2).mean())


def _terms_ahead(
    task: Task, metric: Metric, items: ItemInfluence, known: Array, rows: Array, weights: Array
) -> tuple[Array, Array]:
    """((N,) terms about data like the pool, half the range of D at the metric's points), of labelled rows."""
    pool, n = task.pool, len(rows)
    moves = items.at(rows, known[rows]) + np.broadcast_to(items.constant(), len(pool))[rows]
    terms, centre = np.zeros(len(pool)), float(np.average(moves, weights=weights))
    left = np.sqrt(np.maximum(1 - task.fraction / weights, 0.0))  # (P3)
    terms[rows] = weights * (moves - centre) * left * math.sqrt(n / max(n - 1, 1))
    members, (low, high) = metric.members(pool), items.range()
    return terms, (high - low if members is None else (high - low)[members]) / 2


def trials_among(metric: Metric, pool: Pool, rows: Array, known: Array) -> Array:
    """(n,) 1 where a labelled point counts for the metric: as a trial where it is a share of trials, else always."""
    if not metric.is_table:
        return np.ones(len(rows))
    own = metric.rows(metric, pool)
    proportion = metric.proportion((own.count, len(pool.classes)))
    return np.ones(len(rows)) if proportion is None else proportion[1][own.codes[rows], known[rows]].astype(np.float64)


def _size(task: Task, metric: Metric) -> int:
    members = metric.members(task.pool)
    return len(task.pool) if members is None else int(members.sum())


def labels_of(task: Task, history: History, metric: Metric) -> int:
    """How many labels of the metric's points are known, whether or not its value rests on them."""
    members = metric.members(task.pool)
    return int((history.known >= 0).sum() if members is None else (members & (history.known >= 0)).sum())
