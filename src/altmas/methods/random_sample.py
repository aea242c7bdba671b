"""Metrics from a uniform random sample of the pool, with their intervals (B1, B2, B7, B8, B11, C4, C5).

The pool has two parts: points whose labels were volunteered, known exactly, and the rest, of which a uniform sample
was drawn. K = counts of the sample, n = its size, r_a = how many of the rest are predicted a (known).
About data like the pool the factor 1 - n/N, which is there because the pool ends, gives way to the effect of groups.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from altmas.intervals import (
    Evidence,
    bounded_interval,
    largest_unseen,
    missed_tail,
    normal_quantile,
    score_interval,
    share_interval,
    student_quantile,
)
from altmas.metrics import Metric
from altmas.metrics.averages import reach_of_unseen, too_few_labels, trials_by_class
from altmas.types import Array

SUREST = 1 - 1e-12
"""The highest level at which a normal quantile is taken: few groups have a larger one of Student's."""


@dataclass(frozen=True)
class Ahead:
    """About data like the pool.

    effect  how many times the variance of a plain sample groups make of it; below 1, that of the share of all rows
            that is not labelled, for a pool that is a random sample of them
    groups, witnesses  G* and H of (F2): equal groups that the labels are worth, and their variance; inf without groups
    left    share of the variance that is left when every point is labelled
    """

    effect: float = 1.0
    groups: float = math.inf
    left: float = 0.0
    witnesses: float = math.inf


@dataclass(frozen=True)
class RandomSample:
    """counts (C, C) of the drawn labels, exact (C, C) of the volunteered ones, rows (C,) = r_a of the rest.

    ahead  None for what is about the pool itself
    """

    counts: Array
    exact: Array
    rows: Array
    calibrate_rows: bool = False
    ahead: Ahead | None = None

    @property
    def drawn(self) -> int:
        return int(self.counts.sum())

    @property
    def volunteered(self) -> int:
        return int(self.exact.sum())

    @property
    def effect(self) -> float:
        """How many labels tell as much as one in a sample without groups; 1 for what is about the pool itself."""
        return 1.0 if self.ahead is None else self.ahead.effect

    @property
    def named(self) -> int:
        """How many classes the model names."""
        return int(((self.rows > 0) | (self.exact.sum(1) > 0)).sum())

    @cached_property
    def stratified(self) -> bool:
        """Whether every predicted class has a label, so that shares can be taken row by row."""
        seen = self.counts.sum(1)
        return self.calibrate_rows and bool((seen[self.rows > 0] > 0).all())

    @cached_property
    def table(self) -> Array:
        """The estimated table of the whole pool: (B1) scaled up, or with the known row sums."""
        if self.drawn == 0:
            return self.exact
        if self.stratified:
            seen = np.maximum(self.counts.sum(1), 1.0)
            return np.asarray(self.exact + self.counts / seen[:, None] * self.rows[:, None])
        return np.asarray(self.exact + self.counts * (self.rows.sum() / self.drawn))


def interval_of_sample(metric: Metric, sample: RandomSample, confidence: float) -> tuple[float, float, float, str]:
    """(value, low, high, note) of one metric."""
    value = float(metric.of_table(sample.table)) if sample.table.sum() else np.nan
    if np.isnan(value):
        return np.nan, np.nan, np.nan, _why_undefined(metric, sample)
    if sample.drawn == sample.rows.sum() and sample.ahead is None:
        return value, value, value, "every point is labelled: exact"
    if why := too_few_labels(metric, sample.drawn + sample.volunteered, sample.named):
        return value, np.nan, np.nan, why
    if sample.ahead is not None and math.isfinite(sample.ahead.witnesses):
        freedom = max(sample.ahead.witnesses - 1, 1.0)  # the level at which a normal quantile is as large as Student's
        confidence = min(2 * NormalDist().cdf(student_quantile(confidence, freedom)) - 1, SUREST)
    if (counted := metric.proportion(sample.counts.shape)) is not None:
        low, high = _of_proportion(metric, counted, sample, normal_quantile(confidence))
    else:
        low, high = _linearised(metric, value, sample, confidence)
    if (counted := metric.rises_with(sample.counts.shape)) is not None:
        ends = _by_share(metric, counted, sample, normal_quantile(confidence))
        low, high = min(low, ends[0]), max(high, ends[1])
    return value, low, high, ""


def _why_undefined(metric: Metric, sample: RandomSample) -> str:
    if sample.drawn + sample.volunteered == 0:
        return "undefined: no label yet"
    return f"undefined: no label so far tells about {metric.name}"


# ---------------------------------------------------------------- proportions (B4)


Masks = tuple[Array, Array]
"""Cells of a table that count above the line, and below it."""


def _by_share(metric: Metric, counted: Masks, sample: RandomSample, z: float) -> tuple[float, float]:
    """The interval of a metric that rises with a share, such as an F1 with q = hits / (hits + errors).         (B10)

    F1 = 2 q / (1 + q), and its ends are those of q. For other weights of misses and false alarms these are shared out
    as the errors so far, with half of one more on either side. The gradient alone takes a single miss for a low F1.
    """
    hits, trials = counted
    answered, told = trials & hits.any(1, keepdims=True), sample.counts + sample.exact
    kinds = (answered & ~hits, trials & ~answered)  # false alarms, misses
    counts = [told[kind].sum() + 0.5 for kind in kinds]
    wrong = sum(count / sum(counts) * kind / max(kind.sum(), 1) for count, kind in zip(counts, kinds, strict=True))
    shares = _of_proportion(metric, counted, sample, z)
    low, high = (float(metric.of_table(share * hits / hits.sum() + (1 - share) * wrong)) for share in shares)
    return low, high


def _of_proportion(metric: Metric, counted: Masks, sample: RandomSample, z: float) -> tuple[float, float]:
    """The interval of a share on the drawn trials with the finite-pool factor, joined with the volunteered ones.

    Calibrated rows make each trial worth more: by as much as the linearised variance falls.
    """
    successes, trials = counted
    drawn = sample.table - sample.exact
    n, size = sample.counts[trials].sum(), drawn[trials].sum()
    share = drawn[successes].sum() / size if n else 0.5
    if sample.ahead is not None:
        unseen = sample.effect
    elif metric.about.trials_known:
        size = sample.rows[trials.any(1)].sum()
        unseen = 1 - n / size if size else 0.0
    elif n == 0:  # no drawn point tells how many trials there are: all of the rest could be, on either side
        size, unseen = sample.rows.sum() - sample.drawn, 1.0
    else:
        unseen = 1 - sample.drawn / sample.rows.sum()
    if sample.stratified:
        plain, calibrated = (
            _variance(metric, sample, z, stratified=False),
            _variance(metric, sample, z, stratified=True),
        )
        unseen *= calibrated / plain if plain else 1.0
    worth, half_point = (float(n / unseen), 0.5 / float(size)) if unseen > 0 else (np.inf, 0.0)
    low, high = share_interval(share, worth, z, half_point if sample.ahead is None else 0.0)
    counted_successes = sample.counts[successes].sum()
    if sample.ahead is None and n and counted_successes in (0, n):
        others = _unseen_trials(float(n), float(size), 2 * NormalDist().cdf(-z)) / float(size)
        low, high = (low, max(high, others)) if counted_successes == 0 else (min(low, 1 - others), high)
    top, bottom = sample.exact[successes].sum(), sample.exact[trials].sum() + size
    return (top + size * low) / bottom, (top + size * high) / bottom


def _unseen_trials(drawn: float, size: float, chance: float) -> int:
    """How many trials of a finite pool all stay unseen with this chance or more, where those drawn were all alike. (B4)

    Where most of a small pool is labelled the interval by variance may leave no room for a single one: with 90 of 100
    points labelled an only error stays unseen in one of ten samples. The other end cannot miss it, so that this one may
    have the chance of both.
    """
    unseen, likely = 0, 1.0
    while drawn + unseen + 1 <= size + 1e-9:
        likely *= (size - drawn - unseen) / (size - unseen)
        if likely < chance:
            break
        unseen += 1
    return unseen


# ---------------------------------------------------------------- everything else: linearised


def _linearised(metric: Metric, value: float, sample: RandomSample, confidence: float) -> tuple[float, float]:
    """The interval by the gradient (C4): that of a share at the number of trials that would have this variance for a
    metric between 0 and 1, value +- t se for any other; never inside what nobody has seen could make of it."""
    low, high = _by_variance(metric, value, sample, confidence)
    down, up = _unseen_labels(metric, sample, missed_tail(normal_quantile(confidence)))
    low, high = min(low, value - down), max(high, value + up)
    down, up = _unseen_classes(metric, value, sample)
    return max(metric.bounds[0], low - down), min(metric.bounds[1], high + up)


def _by_variance(metric: Metric, value: float, sample: RandomSample, confidence: float) -> tuple[float, float]:
    """The interval by the variance with z^2 pseudo-labels, which is that of n + z^2 labels.

    Wilson's interval adds as many once more. Where it is taken, the variance is that of the labels drawn,
        V (n + z^2) / n,   z^2 times the effect of groups,   half a step added as for shares,                 (B11)
    so that the mean of grades 0 and 1 has the interval of the share of 1.
    """
    n, z = sample.drawn / sample.effect, normal_quantile(confidence)
    smoothed = _variance(metric, sample, z, stratified=sample.stratified)
    rare = _variance_of_rare_classes(metric, sample)
    drawn = smoothed * (1 + z**2 * max(sample.effect, 1.0) / max(sample.drawn, 1)) + rare
    if metric.bounds == (0.0, 1.0) and drawn > 0:
        inner = (value * n + z**2 / 2) / (n + z**2)
        return share_interval(value, inner * (1 - inner) / drawn, z, _half_step(metric, sample))
    quantile = student_quantile(confidence, max(sample.drawn - 1, 1))
    if sample.ahead is not None or not metric.needs_answers:  # a mean of grades is a share of its range
        step = _half_step(metric, sample)
        low, high = bounded_interval(value, drawn, metric.bounds, quantile)
        return max(metric.bounds[0], low - step), min(metric.bounds[1], high + step)
    return score_interval(value, Evidence(smoothed + rare), metric.bounds, quantile)


def _half_step(metric: Metric, sample: RandomSample) -> float:
    """Half of what the label of one more point can change, on average over the points; 0 about data like the pool."""
    if sample.ahead is not None:
        return 0.0
    moves = metric.gradient(sample.table)
    return float(((moves.max(1) - moves.min(1)) * sample.rows).sum() / sample.rows.sum()) / 2


def _unseen_labels(metric: Metric, sample: RandomSample, tail: float) -> tuple[float, float]:
    """How far points that nobody drew could lower and raise a metric of the whole table and stay unseen (V4).

    For shares, and for metrics of one class, the interval of a share says that; for means over classes (B7), (B8) do.
    """
    if metric.classes or metric.about.over_classes or sample.ahead is not None:
        return 0.0, 0.0
    if sample.drawn == 0:  # labels that were volunteered stand for no other point
        return math.inf, math.inf
    moves, open_ = metric.gradient(sample.table), sample.rows - sample.counts.sum(1)
    mean = float((sample.counts * moves).sum()) / sample.drawn
    hazard = -math.log1p(-sample.drawn / (float(sample.rows.sum()) + 1)) * open_
    return (
        largest_unseen((mean - moves.min(1)) * open_, hazard, tail),
        largest_unseen((moves.max(1) - mean) * open_, hazard, tail),
    )


def _unseen_classes(metric: Metric, value: float, sample: RandomSample) -> tuple[float, float]:
    if not metric.about.over_classes:
        return 0.0, 0.0
    seen = trials_by_class(metric, sample.counts + sample.exact)[1] > 0
    named = (sample.rows > 0) | (sample.exact.sum(1) > 0)
    return reach_of_unseen(metric, value, seen, named, int(sample.rows.sum()) - sample.drawn)


def _variance_of_rare_classes(metric: Metric, sample: RandomSample) -> float:
    """What the variance of a mean over classes lacks where few labels of a class are all right or all wrong.    (B7)

    With t_c of m_c right the variance of the share of a class is taken at (t_c + 1/2) / (m_c + 1), as Jeffreys does;
    where labels come in groups, so do those that are added.
    """
    if not metric.about.over_classes or sample.drawn == 0:
        return 0.0
    right, trials = trials_by_class(metric, sample.counts)
    _, exact = trials_by_class(metric, sample.exact)
    seen = trials > 0
    right, trials, exact = right[seen], trials[seen], exact[seen]
    added = max(sample.effect, 1.0)
    shown, smooth = right / trials, (right + added / 2) / (trials + added)
    lacking = np.maximum(smooth * (1 - smooth) - shown * (1 - shown), 0.0) / trials
    expanded = trials * (sample.rows.sum() / sample.drawn)
    classes = int(((trials_by_class(metric, sample.counts + sample.exact)[1]) > 0).sum())
    left = 1 - sample.drawn / sample.rows.sum() if sample.ahead is None else sample.effect
    return float(left * (lacking * (expanded / (expanded + exact)) ** 2).sum() / classes**2)


def _variance(metric: Metric, sample: RandomSample, z: float, *, stratified: bool) -> float:
    """Variance of the estimate by the gradient (C4), by predicted class (C5) when rows are calibrated.

    It is taken at counts with z^2 pseudo-labels added (half right, half wrong, as Agresti and Coull do for one
    share): a sample without a single error must not give an interval of width 0. Where labels come in groups, so do
    those that are added: there are as many of them to the effective number of labels.
    """
    smoothed = sample.counts + _pseudo_labels(metric, sample, z**2 * max(sample.effect, 1.0))
    influence = metric.gradient(sample.table)  # dQ of moving one point into a cell
    if not stratified:
        share, size = smoothed / smoothed.sum(), sample.rows.sum()
        left = 1 - sample.drawn / size if sample.ahead is None else sample.effect
        spread = (share * influence**2).sum() - (share * influence).sum() ** 2
        return max(0.0, float(size**2 * left * spread / smoothed.sum()))
    filled = sample.rows > 0
    smoothed, influence, rows = smoothed[filled], influence[filled], sample.rows[filled]
    seen = smoothed.sum(1)
    spread = (smoothed * influence**2).sum(1) / seen - ((smoothed * influence).sum(1) / seen) ** 2
    unseen = 1 - sample.counts[filled].sum(1) / rows
    return max(0.0, float((rows**2 * unseen * spread / seen).sum()))


def _pseudo_labels(metric: Metric, sample: RandomSample, weight: float) -> Array:
    """(R, C) of total `weight`: rows as in the pool, half of each on one class, half spread over the rest.

    That class is the predicted one, or the metric's where the answer is a score above a threshold; where no model has a
    say, all classes count alike.
    """
    n_rows, n_classes = sample.counts.shape
    spread = np.full((n_rows, n_classes), 0.5 / (n_classes - 1))
    if not metric.needs_answers:
        spread[:] = 1 / n_classes
    elif metric.threshold is not None:
        spread[:, metric.classes[0]] = 0.5
    else:
        np.fill_diagonal(spread, 0.5)
    return np.asarray(weight * (sample.rows / sample.rows.sum())[:, None] * spread)
