"""Metrics linearised at a uniform random sample: (S9), whose terms random_items.py makes an interval of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from altmas.history import History
from altmas.intervals import largest_unseen, missed_tail, normal_quantile
from altmas.methods.random_stages import RandomStage, counting_once, stages_among
from altmas.metrics import LabelWeights, Metric, table_of
from altmas.metrics.averages import reach_of_unseen, trials_by_class
from altmas.metrics.influence import ItemInfluence
from altmas.pool import Pool
from altmas.superpopulation import effective_groups, group_sums, groups_moving, groups_of_variance, least_effect
from altmas.task import Task
from altmas.types import Array


@dataclass(frozen=True, kw_only=True)
class Spread:
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
class Linear:
    """A metric, or one side of a difference, linearised at the sample.

    excess    most by which it is too high on average (below 0: too low)
    drawn     n;  rest  R;  used  (N,) labels that count
    without   points that came together, none of which was drawn and labelled
    hidden    how far classes of which no label tells could lower and raise it (B8)
    of_class  labels of the class of an average precision
    """

    value: float
    spread: Spread
    excess: float
    drawn: int
    rest: int
    used: Array
    without: int
    hidden: tuple[float, float]
    of_class: int


Supposed = Mapping[int, int]
"""Labels of points that were left open, by row."""


def linear_of(task: Task, history: History, metric: Metric, factor: float, supposed: Supposed | None = None) -> Linear:
    """The metric times a factor, linearised at the sample; supposed: labels of points left open."""
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
    return Linear(
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
) -> Spread:
    """About data like the pool: labelled rows are a sample of it, with these weights."""
    terms, ends = _terms_ahead(task, metric, items, known, rows, weights)
    pseudo = factor**2 * float(weights.sum()) ** 2 / len(rows) * float((ends**2).mean())
    pseudo *= 1 - task.fraction * len(rows) / float(weights.sum())
    terms, largest = factor * terms, 2 * abs(factor) * float(ends.max(initial=0.0) * weights.max())
    if task.groups is None:
        return Spread(terms=terms, pseudo=pseudo, largest=largest)
    counts = trials_among(metric, task.pool, rows, known)
    groups = effective_groups(counts, task.groups[rows])
    crowd = float(counts.sum()) / max(groups, 1e-9)
    effect = max(effect_on(terms, task.groups, largest, crowd), 1.0)
    witnesses = groups_of_variance(counts, task.groups[rows], effect)
    return Spread(terms=terms, pseudo=pseudo * effect, largest=largest, groups=groups, crowd=crowd, witnesses=witnesses)


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
) -> Spread:
    """About the pool itself: by strata, or by whole groups; alone: whether all points came at once."""
    terms, pseudo = np.zeros(len(known)), 0.0
    for stratum in strata:
        terms[stratum.drawn] = factor * stratum.terms(items, known, task.pool.weights)
        pseudo += factor**2 * stratum.pseudo(items, alone=alone)
    drawn = np.concatenate([stratum.drawn for stratum in strata]) if strata else np.zeros(0, np.int64)
    if task.units is None or not len(drawn):
        unseen = _unseen(task, items, strata, used, known) if task.units is None else (0.0, 0.0)
        return Spread(terms=terms, pseudo=pseudo, unseen=unseen)
    weight = sum(stratum.rest for stratum in strata) / len(drawn)
    groups, crowd, largest = _of_groups(task, metric, items, inside, known, drawn, weight)
    largest *= abs(factor)
    return Spread(
        terms=terms,
        pseudo=pseudo * max(effect_on(terms, task.units, largest, crowd), 1.0),
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


def effect_on(terms: Array, groups: Array, largest: float, crowd: float) -> float:
    """How many times their plain variance groups make of these terms, at least (F4); crowd: labels of a group."""
    plain, count = float((terms**2).sum()), effective_groups((terms != 0).astype(np.float64), groups)
    together = float((group_sums(terms, groups) ** 2).sum()) * count / max(count - 1, 1.0)
    seen = min(groups_moving(sign * terms, groups, largest) for sign in (-1.0, 1.0))
    return max(together / plain if plain > 0 else 0.0, least_effect(seen, crowd, 1.0))


def trials_among(metric: Metric, pool: Pool, rows: Array, known: Array) -> Array:
    """(n,) 1 where a labelled point counts for the metric: as a trial where it is a share of trials, else always."""
    if not metric.is_table:
        return np.ones(len(rows))
    own = metric.rows(metric, pool)
    proportion = metric.proportion((own.count, len(pool.classes)))
    return np.ones(len(rows)) if proportion is None else proportion[1][own.codes[rows], known[rows]].astype(np.float64)
