"""Labels of points that were drawn with known probabilities, weighted so that they speak for the whole pool.

R = points that were not volunteered, M draws of them; e = residuals, minus their weighted mean. Two kinds of weights:

Draws (LURE), from the probability q_m of each draw among the N_m points open then:
    v_m  = 1 + (R - M)/(R - m) (1/(N_m q_m) - 1)                       how much draw m weighs; 1 if it was uniform
    A_m  = (1/R) (e_m (R - m + 1)/(N_m q_m)  +  sum of e_k, k < m)
    Var  = R^2 sum_m c_m^2 A_m^2,   c_m = R (R - M) / (M (R - m)(R - m + 1))
Inclusions, from the probability pi_i of each point to have been drawn by now, where a method can tell it:
    x_i  = h (1/pi_i - 1),  h so that they add up to the points without a label; a labelled point stands for 1 + x_i
    Var  = sum_i x_i^2 e_i^2 / (1 - pi_i)
Both variances are 0 once everything is labelled.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from altmas.history import Batch, History
from altmas.intervals import normal_quantile
from altmas.metrics import LabelWeights, Metric, table_of
from altmas.metrics.averages import trials_by_class
from altmas.metrics.metric import answers_of
from altmas.pool import Pool
from altmas.types import Array


class Sample(Protocol):
    """Weighted labels of a pool.

    rows   (M,) labelled points that were drawn, in drawing order
    exact  (V,) labelled points that stand for themselves alone: volunteered ones and draws that were certain
    """

    @property
    def rows(self) -> Array: ...
    @property
    def exact(self) -> Array: ...

    def shares(self, inside: Array) -> Array:
        """(M,) how many points inside each draw stands for; together with the exact ones they are all there are."""

    def residuals(self, moves: Array, inside: Array) -> Array:
        """(M,) the moves minus their weighted mean, 0 outside."""

    def variance(self, residuals: Array, inside: Array) -> float:
        """Variance of the weighted sum of the residuals."""

    def of_one(self) -> float:
        """What one more label of residual 1 would add to the variance."""


def effective_sample_size(weights: Array) -> float:
    """(sum w)^2 / sum w^2: how many equal weights these are worth."""
    return float(weights.sum() ** 2 / (weights**2).sum()) if weights.any() else 0.0


def has_probabilities(history: History) -> bool:
    """Whether every draw carries a probability and every wave has a drawn label, or everything is labelled."""
    if len(history.labels) == history.n_points:
        return True
    labelled = np.isin(history.drawn, history.labelled)
    rows = history.drawn[labelled]
    waves = [((rows >= part.start) & (rows < part.stop)).any() for part in history.domains]
    return all(batch.probabilities is not None for batch in history.batches) and (not history.grown or all(waves))


def sample_of(pool: Pool, history: History, inclusion: Array | None = None) -> Sample:
    """The weighted labels of a history whose draws all have probabilities.

    inclusion  (N,) probability of each point to have been drawn by now, where the method can tell it
    """
    if inclusion is None or not len(history.drawn) or len(history.labels) == len(pool):
        return draws_of(history)
    rows = history.drawn[np.isin(history.drawn, history.labelled)]
    return Inclusions(rows, history.volunteered, inclusion, history.known >= 0)


# ---------------------------------------------------------------- single draws


@dataclass(frozen=True)
class Draws:
    """Labelled draws with the probability of each.

    place  (M,) m of each draw, from 1;  tilt (M,) 1/(N_m q_m): 1 for a uniform draw
    open   number of points that are not exact: R;  total  number of draws up to the last labelled one: M
    """

    rows: Array
    place: Array
    tilt: Array
    exact: Array
    open: int
    total: int

    @property
    def weights(self) -> Array:
        """v_m of the module's docstring."""
        share = (self.open - self.total) / np.maximum(self.open - self.place, 1)
        return np.asarray(1 + share * (self.tilt - 1))

    @property
    def steps(self) -> Array:
        """c_m of the module's docstring."""
        if self.total >= self.open:
            return np.zeros(len(self.rows))
        left = self.open - self.place
        return np.asarray(self.open * (self.open - self.total) / (self.total * left * (left + 1.0)))

    def shares(self, inside: Array) -> Array:
        weights = np.where(inside[self.rows], self.weights, 0.0)
        unknown = inside.sum() - inside[self.exact].sum()
        return weights * (unknown / weights.sum()) if weights.any() else weights

    def residuals(self, moves: Array, inside: Array) -> Array:
        members = inside[self.rows]
        centre = np.average(moves, weights=np.where(members, self.weights, 0.0))
        return np.where(members, moves - centre, 0.0)

    def variance(self, residuals: Array, inside: Array) -> float:
        before = np.cumsum(residuals) - residuals
        terms = residuals * self.tilt * (self.open - self.place + 1) + before  # R A_m
        count = len(self.rows)
        return float(((self.steps * terms) ** 2).sum()) * count / max(count - 1, 1)

    def of_one(self) -> float:
        return (self.open / self.total) ** 2 * (1 - self.total / self.open)


def draws_of(history: History) -> Draws:
    """The draws of a history, each with its probability."""
    rows, tilt, certain = [], [], []
    drawn = 0
    for number, batch in enumerate(history.batches):
        unasked = len(history.unasked_before(number))
        for row, probability in zip(batch.indices.tolist(), _probabilities(batch), strict=True):
            still_open = history.n_points - unasked - drawn
            drawn += 1
            if probability > 1 - 1e-9 and still_open > 1:
                certain.append(row)
            else:
                rows.append(row)
                tilt.append(1 / (still_open * probability))
    labelled = np.array([row in history.labels for row in rows], np.bool_)
    answered = np.flatnonzero(labelled)
    exact = [*history.volunteered.tolist(), *(row for row in certain if row in history.labels)]
    return Draws(
        rows=np.array(rows, np.int64)[answered],
        place=answered + 1,
        tilt=np.array(tilt, np.float64)[answered],
        exact=np.array(exact, np.int64),
        open=history.n_points - len(exact),
        total=int(answered[-1]) + 1 if len(answered) else 0,
    )


def _probabilities(batch: Batch) -> list[float]:
    if batch.probabilities is None:  # only where everything is labelled, so that no weight matters
        return [1.0] * len(batch.indices)
    return [float(probability) for probability in batch.probabilities]


# ---------------------------------------------------------------- inclusion probabilities


@dataclass(frozen=True)
class Inclusions:
    """Labelled draws with the probability of each point of the pool to have been drawn by now.

    chances  (N,) pi_i;  known  (N,) which points have a label
    """

    rows: Array
    exact: Array
    chances: Array
    known: Array

    def expansion(self, inside: Array) -> Array:
        """(M,) x_i of the module's docstring."""
        chance = self.chances[self.rows]
        odds = np.where(inside[self.rows], (1 - chance) / chance, 0.0)
        return odds * ((inside & ~self.known).sum() / odds.sum()) if odds.any() else odds

    def shares(self, inside: Array) -> Array:
        return np.where(inside[self.rows], 1 + self.expansion(inside), 0.0)

    def residuals(self, moves: Array, inside: Array) -> Array:
        expansion = self.expansion(inside)
        centre = np.average(moves, weights=expansion) if expansion.any() else 0.0
        return np.where(inside[self.rows], moves - centre, 0.0)

    def variance(self, residuals: Array, inside: Array) -> float:
        terms = (self.expansion(inside) * residuals) ** 2 / np.maximum(1 - self.chances[self.rows], 1e-12)
        return float(terms.sum()) * len(self.rows) / max(len(self.rows) - 1, 1)

    def of_one(self) -> float:
        drawn = len(self.rows)
        unlabelled = len(self.chances) - len(self.exact) - drawn
        return unlabelled * (unlabelled + drawn) / drawn**2


# ---------------------------------------------------------------- one model


def weighted_table(predictions: Array, known: Array, n_classes: int, sample: Sample, inside: Array) -> Array:
    """(C, C) the table of the points inside: exact labels as they are, drawn ones with their weights."""
    rows = np.concatenate([sample.exact, sample.rows])
    weights = np.concatenate([inside[sample.exact].astype(np.float64), sample.shares(inside)])
    return table_of(predictions[rows], known[rows], n_classes, weights)


def weighted_interval(
    pool: Pool, history: History, metric: Metric, confidence: float, sample: Sample
) -> tuple[float, float, float]:
    """(value, low, high) of a metric from the weighted labels alone, without anybody's belief; nan where undefined.

    z^2/2 pseudo-labels, half right and half wrong, keep a sample without errors from having no spread.
    """
    if len(metric.parts) > 1:
        return math.nan, math.nan, math.nan
    members, n_classes, z = metric.members(pool), len(pool.classes), normal_quantile(confidence)
    inside, answers = np.ones(len(pool), np.bool_) if members is None else members, answers_of(pool, metric.model)
    if not metric.of_table_of_a_model:
        return _weighted_items(pool, history, metric, z, sample, inside)
    table = weighted_table(answers, history.known, n_classes, sample, inside)
    value = float(metric.of_table(table)) if table.sum() else math.nan
    if math.isnan(value) or not inside[sample.rows].any():
        return math.nan, math.nan, math.nan
    slope, rows = metric.gradient(table), sample.rows
    moves = slope[answers[rows], history.known[rows]]
    residuals = sample.residuals(moves, inside)
    centre = float((moves - residuals)[inside[rows]][0])
    right = (np.diagonal(slope) - centre) ** 2
    wrong = (((slope - centre) ** 2).sum(1) - right) / (n_classes - 1)
    pseudo = z**2 / 2 * float(((right + wrong) / 2)[answers[inside]].mean())
    half = z * math.sqrt(sample.variance(residuals, inside) + pseudo * sample.of_one())
    return value, max(metric.bounds[0], value - half), min(metric.bounds[1], value + half)


class Behind(NamedTuple):
    """Labels that a metric rests on. fewest  of a class that it is a mean of, else all;  trials  of all its classes."""

    fewest: float
    trials: float


def labels_behind(pool: Pool, history: History, metric: Metric) -> Behind:
    """How many labels could move the metric; in a mean over classes each class has as many trials as the least one."""
    n_classes, members = len(pool.classes), metric.members(pool)
    rows = history.labelled if members is None else history.labelled[members[history.labelled]]
    known = history.known[rows]
    if metric.about.over_classes:
        answers = answers_of(pool, metric.model)
        table = table_of(answers[rows], known, n_classes)
        met = (np.bincount(answers, minlength=n_classes) > 0) | (table.sum(0) > 0)
        fewest = float(trials_by_class(metric, table)[1][met].min())
        return Behind(fewest, fewest * float(met.sum()))
    if not metric.of_table_of_a_model:
        return Behind(float(len(rows)), float(len(rows)))
    somewhere = 1 + n_classes * np.eye(n_classes) + np.linspace(0, 1, n_classes**2).reshape(n_classes, n_classes)
    moving = np.abs(metric.gradient(somewhere)) > 1e-12
    count = float(moving[answers_of(pool, metric.model)[rows], known].sum())
    return Behind(count, count)


def _weighted_items(
    pool: Pool, history: History, metric: Metric, z: float, sample: Sample, inside: Array
) -> tuple[float, float, float]:
    """The same for a metric that is no function of the table of predictions; pseudo-labels at either end of D."""
    rows = np.concatenate([sample.exact, sample.rows])
    weights = np.concatenate([inside[sample.exact].astype(np.float64), sample.shares(inside)])
    labels = LabelWeights(len(pool), len(pool.classes), rows, history.known[rows], weights)
    value, items = metric.at(pool, labels)
    if math.isnan(value) or not inside[sample.rows].any():
        return math.nan, math.nan, math.nan
    constant = np.broadcast_to(items.constant(), len(pool))[sample.rows]
    residuals = sample.residuals(items.at(sample.rows, history.known[sample.rows]) + constant, inside)
    low, high = items.range()
    bounded = all(map(math.isfinite, metric.bounds))
    pseudo = z**2 / 2 * float((((high - low) / 2)[inside] ** 2).mean()) if bounded else 0.0
    half = z * math.sqrt(sample.variance(residuals, inside) + pseudo * sample.of_one())
    half_below = half + metric.excess(
        pool, np.bincount(sample.rows, (sample.shares(inside) * residuals) ** 2, len(pool))
    )
    return value, max(metric.bounds[0], value - half_below), min(metric.bounds[1], value + half)
