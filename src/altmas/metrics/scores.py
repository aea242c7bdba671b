"""Metrics of a model's scores: areas under curves, losses, calibration (docs/equations.md, S).

s_i is a score of point i, w_i its weight as a member of the class in question, v_i its whole weight; with every label
known w is 0 or 1 and v is 1. P = sum w, M = sum (v - w). Each function returns the value and its slopes, by one sort
and cumulative sums; points with equal scores count alike. Slopes come in two parts: how the value moves if weight of a
point goes from the other classes to the class (what labels do), and if weight of another class is added (draws).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from altmas.metrics.influence import ClassItems, DenseItems, ItemInfluence
from altmas.metrics.metric import NotOfTable, answers_of, scores_of
from altmas.metrics.weights import Weights
from altmas.pool import Pool
from altmas.types import Array

SMALLEST = float(np.finfo(np.float32).eps)
"""Scores below it count as this much in the log loss, as scikit-learn counts scores in float32."""
BINS = 10
"""Bins of the calibration error."""

Slopes = tuple[float, Array, Array]
"""value, (N,) by weight that moves into the class, (N,) by weight of the other classes that is added."""


def roc_auc(s: Array, w: Array, v: Array) -> Slopes:
    """(S3) area under the ROC curve: P(score of a member > score of another point), ties counted half."""
    runs = _Runs(s)
    negative = v - w
    below, above = runs.lower_sums(negative), runs.upper_sums(w)
    below = below + runs.own_sums(negative) / 2
    above = above + runs.own_sums(w) / 2
    positives, negatives = float(w.sum()), float(negative.sum())
    if positives <= 0 or negatives <= 0:
        return np.nan, np.zeros(len(s)), np.zeros(len(s))
    pairs = positives * negatives
    value = float((w * below).sum()) / pairs
    by_negative = above / pairs - value / negatives
    return value, below / pairs - value / positives - by_negative, by_negative


def average_precision(s: Array, w: Array, v: Array) -> Slopes:
    """(S4) mean over the members of the precision among the points with at least their score."""
    runs = _Runs(s)
    members, reached = runs.upper_sums(w) + runs.own_sums(w), runs.upper_sums(v) + runs.own_sums(v)
    positives = float(w.sum())
    if positives <= 0:
        return np.nan, np.zeros(len(s)), np.zeros(len(s))
    seen = reached > 0
    precision = np.divide(members, reached, out=np.zeros(len(s)), where=seen)
    share = np.divide(w, reached, out=np.zeros(len(s)), where=seen)
    value = float((w * precision).sum()) / positives
    later = runs.lower_sums(share) + runs.own_sums(share)
    diluted = runs.lower_sums(share * precision) + runs.own_sums(share * precision)
    return value, (precision + later - value) / positives, -diluted / positives


def calibration_error(s: Array, w: Array, v: Array, bins: Array | None = None) -> Slopes:
    """(S5) sum over bins of |sum over the bin of (w - v s)| / sum v, bins of (nearly) equally many points by score.

    In a bin without any distance a label moves it to the side that has more room: up where scores are below a half.
    """
    total = float(v.sum())
    if total <= 0:
        return np.nan, np.zeros(len(s)), np.zeros(len(s))
    bins = bins_of(s, (v > 0).astype(np.float64)) if bins is None else bins
    apart = np.bincount(bins, w - v * s, minlength=BINS)
    value = float(np.abs(apart).sum()) / total
    scored, points = (np.bincount(bins, of, minlength=BINS) for of in (s, np.ones(len(s))))
    sides = np.where(apart == 0, np.where(scored <= points / 2, 1.0, -1.0), np.sign(apart))
    sign = sides[bins] / total
    return value, sign, -sign * s - value / total


def bins_of(s: Array, v: Array, count: int = BINS) -> Array:
    """(N,) bins of nearly equal weight v, by score; equal scores share one."""
    runs = _Runs(s)
    total = float(v.sum())
    middle = (runs.lower_sums(v) + runs.own_sums(v) / 2) / (total if total > 0 else 1.0)
    return np.minimum((middle * count).astype(np.int64), count - 1)


def log_losses(scores: Array) -> Array:
    """(N, C) -ln of the score of each class, from 1.2e-7 up."""
    return np.asarray(-np.log(np.clip(scores, SMALLEST, 1 - SMALLEST)))


def brier_losses(scores: Array) -> Array:
    """(N, C) squared distance of the scores from each class as the truth; half of it for two classes, as usual."""
    square = (scores**2).sum(1, keepdims=True) - 2 * scores + 1
    return np.asarray(square / 2 if scores.shape[1] == 2 else square)


class _Runs:
    """Points in the order of their scores, equal scores together."""

    def __init__(self, s: Array) -> None:
        self.order = np.argsort(s, kind="stable")
        ordered = s[self.order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        self.starts = starts
        self.run_of = np.empty(len(s), np.int64)
        self.run_of[self.order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(s))))

    def _totals(self, values: Array) -> Array:
        return np.asarray(np.add.reduceat(values[self.order], self.starts))

    def own_sums(self, values: Array) -> Array:
        """(N,) sum over the points with the same score."""
        return np.asarray(self._totals(values)[self.run_of])

    def lower_sums(self, values: Array) -> Array:
        """(N,) sum over the points with a lower score."""
        totals = self._totals(values)
        return np.asarray((np.cumsum(totals) - totals)[self.run_of])

    def upper_sums(self, values: Array) -> Array:
        """(N,) sum over the points with a higher score."""
        totals = self._totals(values)[::-1]
        return np.asarray((np.cumsum(totals) - totals)[::-1][self.run_of])


# ---------------------------------------------------------------- from formulas to Metric

OfScores = Callable[[Array, Array, Array], Slopes]
Evaluation = Callable[["ScoreMetric", Pool, Weights], tuple[float, ItemInfluence]]


def _unset(metric: "ScoreMetric", pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
    raise NotImplementedError


@dataclass(frozen=True)
class ScoreMetric(NotOfTable):
    """A metric of a model's scores; evaluate (metric, pool, W) -> (value, influence at items)."""

    evaluate: Evaluation = _unset

    def at(self, pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
        return self.evaluate(self, pool, weights)

    @property
    def of_scores(self) -> bool:
        return True


@dataclass(frozen=True)
class Area(ScoreMetric):
    """A metric that depends on the order of the scores alone."""

    def along(self, pool: Pool) -> Array:
        return scores_of(pool, self.model)


@dataclass(frozen=True)
class CalibrationError(ScoreMetric):
    """(S5), a sum of distances: E |g + e| - |g| lies between 0 and E |e| = sqrt(2/pi) sd of e in every bin."""

    def bins(self, pool: Pool) -> Array:
        """(N,) the bins of the metric's points, known before any label."""
        members = self.members(pool)
        scores = calibrated_scores(pool, self.model)[0]
        weight = np.ones(len(scores)) if pool.weights is None else pool.weights
        return bins_of(scores, weight if members is None else weight * members)

    def excess(self, pool: Pool, squares: Array) -> float:
        return float(np.sqrt(2 / np.pi) * np.sqrt(np.bincount(self.bins(pool), squares, minlength=BINS)).sum())

    @property
    def taken_at_estimate(self) -> bool:
        return True


def of_one_class(name: str, kind: str, of: OfScores, k: int) -> ScoreMetric:
    """The metric of one class and its score."""

    def evaluate(metric: ScoreMetric, pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
        value, moves, constants = of(scores_of(pool, metric.model)[:, k], weights.of_class(k), weights.mass)
        return value, ClassItems(moves, k, weights.n_classes, constants)

    return Area(name, kind=kind, classes=(k,), evaluate=evaluate)


def over_classes(name: str, kind: str, of: OfScores) -> ScoreMetric:
    """The mean over the classes for which it is defined."""

    def evaluate(metric: ScoreMetric, pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
        scores, mass = scores_of(pool, metric.model), weights.mass
        values, moves, constants = np.zeros(weights.n_classes), np.zeros(scores.shape), np.zeros(len(scores))
        for k in range(weights.n_classes):
            values[k], moves[:, k], constant = of(scores[:, k], weights.of_class(k), mass)
            constants += constant
        defined = int(np.isfinite(values).sum())
        if defined == 0:
            return np.nan, DenseItems(moves)
        return float(np.nanmean(values)), DenseItems(moves / defined, constants / defined)

    return Area(name, kind=kind, evaluate=evaluate)


def of_losses(name: str, kind: str, losses: Callable[[Array], Array], highest: float) -> ScoreMetric:
    """(S6) the mean loss of the scores against the true class."""

    def evaluate(metric: ScoreMetric, pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
        loss, total = losses(scores_of(pool, metric.model)), float(weights.mass.sum())
        if total <= 0:
            return np.nan, DenseItems(np.zeros_like(loss))
        value = sum(float((weights.of_class(k) * loss[:, k]).sum()) for k in range(weights.n_classes)) / total
        return value, DenseItems(loss / total)

    return ScoreMetric(name, kind=kind, bounds=(0.0, highest), evaluate=evaluate)


def of_calibration(name: str) -> ScoreMetric:
    """(S5) of the second class if there are two, else of the predicted class and its score."""

    def evaluate(metric: ScoreMetric, pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
        assert isinstance(metric, CalibrationError)
        scores, counted = calibrated_scores(pool, metric.model)
        value, moves, constants = calibration_error(scores, weights.of_class(counted), weights.mass, metric.bins(pool))
        return value, ClassItems(moves, counted, weights.n_classes, constants)

    return CalibrationError(name, kind="calibration_error", evaluate=evaluate)


def share_in_bin(name: str, bin_: int, model: str | None) -> ScoreMetric:
    """Share of the points of one bin of the calibration error that are of the class that their score is of."""

    def evaluate(metric: ScoreMetric, pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
        scores, counted = calibrated_scores(pool, metric.model)
        inside = bins_of(scores, np.ones(len(scores)) if pool.weights is None else pool.weights) == bin_
        total = float(weights.mass[inside].sum())
        if total <= 0:
            return np.nan, ClassItems(np.zeros(len(scores)), counted, weights.n_classes)
        value = float(weights.of_class(counted)[inside].sum()) / total
        return value, ClassItems(inside / total, counted, weights.n_classes, -value * inside / total)

    return ScoreMetric(name, kind="share_in_bin", model=model, evaluate=evaluate)


def calibrated_scores(pool: Pool, model: str | None) -> tuple[Array, int | Array]:
    """((N,) scores, the class that they are scores of): the second of two classes, else the predicted one."""
    scores = scores_of(pool, model)
    if scores.shape[1] == 2:
        return scores[:, 1], 1
    answers = answers_of(pool, model)
    return scores[np.arange(len(scores)), answers], answers
