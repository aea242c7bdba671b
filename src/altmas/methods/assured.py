"""assured: metric-aware sampling with known probabilities, and intervals that hold (the default)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from altmas.belief import Belief, belief_of, folds_of
from altmas.description import describe
from altmas.designs import (
    LEVELS,
    batch_scale,
    earned_tilt,
    inclusion_of,
    levels_of,
    pilot_sizes,
    rates_of,
    successive_draws,
)
from altmas.estimates import Estimate, Estimates
from altmas.estimators import Difference, Linearised
from altmas.history import Batch, History
from altmas.influence import influence_of
from altmas.intervals import bounded_interval, pooled_variance, student_quantile
from altmas.methods.protocol import Needs, Task
from altmas.metrics import Metric
from altmas.pool import Pool

Array = NDArray[Any]
PROPOSE = 3

RIGHT_OR_WRONG = ("accuracy", "error")
"""Metrics that do not look at classes: a first sample for them alone need not care for rare classes."""


@dataclass(frozen=True)
class Assured:
    """Labels where they tell most about the metrics, drawn with known probabilities; difference estimator.

    pilot   labels drawn before the design may follow the belief
    growth  the belief is fitted anew once there are this many times the labels it has seen
    tilt    the uniform share of the design; None to let labelled residuals choose it
    prior   how many squared residuals the belief's own expectation counts for in a variance
    belief  a function (task, labelled, codes, weights, folds) -> Belief in place of the built-in one
    """

    pilot: int = 40
    growth: float = 1.2
    tilt: float | None = None
    prior: float = 4.0
    belief: Callable[[Task, Array, Array, Array, Array], Belief] | None = None

    name: ClassVar[str] = "assured"
    needs: ClassVar[Needs] = Needs(interval="fixed-n")

    def propose(self, task: Task, history: History, n: int) -> Batch:
        exposure, last = _exposure(history, task.pool)
        known = len(history.labels)
        record: dict[str, Array] = {}
        if last is None or self._stale(last.labels_before, known):
            record["levels"] = levels_of(self._sizes(task, history, exposure))
            sizes = LEVELS[record["levels"]]
        else:
            sizes = LEVELS[last.record["levels"]]
        open_points = np.flatnonzero(history.open)
        scale, floor = batch_scale(sizes, exposure, open_points, n)
        record["scale"] = np.array([scale, floor])
        rates = np.minimum(rates_of(sizes, exposure, scale, floor), 1e9)
        indices, chances = successive_draws(rates, open_points, n, history.rng(task.seed, PROPOSE))
        return Batch(indices, chances, record, labels_before=known)

    def _stale(self, seen: int, known: int) -> bool:
        """Whether a design made with `seen` labels should be made anew with `known`."""
        return known >= self.pilot and known >= max(self.growth * seen, self.pilot if seen < self.pilot else 0)

    def _sizes(self, task: Task, history: History, exposure: Array) -> Array:
        """(N,) how often each point should be drawn; mean 1 over the pool."""
        pool = task.pool
        if len(history.labels) - len(history.volunteered) < self.pilot:
            if all(metric.kind in RIGHT_OR_WRONG and metric.where is None for metric in task.metrics):
                return np.ones(len(pool))
            return pilot_sizes(pool.predictions, len(pool.classes), self.pilot)
        belief = self._fit(task, history, exposure)
        estimator = _estimator(history, belief, exposure)
        wanted, seen = _importance(task, belief, estimator)
        sizes = np.sqrt(wanted / max(wanted.mean(), 1e-300))
        sizes /= sizes.mean()
        if self.tilt is not None:
            return np.asarray(self.tilt + (1 - self.tilt) * sizes)
        wrong = int((estimator.codes != pool.predictions[estimator.drawn]).sum())
        surprises = min(wrong, len(estimator.codes) - wrong)
        tilt = earned_tilt(sizes, seen, estimator.drawn, estimator.chances[estimator.drawn], wanted, surprises)
        return np.asarray(tilt + (1 - tilt) * sizes)

    def estimate(self, task: Task, history: History) -> Estimates:
        exposure, _ = _exposure(history, task.pool)
        belief = self._fit(task, history, exposure)
        answers = tuple(self._one(task, history, belief, exposure, metric) for metric in task.metrics)
        return Estimates(answers, self.name)

    def _one(self, task: Task, history: History, belief: Belief, exposure: Array, metric: Metric) -> Estimate:
        estimator = _estimator(history, belief, exposure, metric.members(task.pool))
        found = estimator.linearised(metric)
        labels = estimator.labels
        if math.isnan(found.value):
            note = "undefined: no point of this kind is believed to exist"
            return Estimate(metric.name, math.nan, math.nan, math.nan, task.confidence, labels, note=note)
        value = min(metric.bounds[1], max(metric.bounds[0], found.value))
        if not estimator.unknown.any():
            note = "every point is labelled: exact"
            return Estimate(metric.name, value, value, value, task.confidence, labels, labels, "fixed-n", note)
        variance, freedom = self._variance(found)
        low, high = bounded_interval(value, variance, metric.bounds, student_quantile(task.confidence, freedom))
        worth = found.effective_labels(variance)
        return Estimate(metric.name, value, low, high, task.confidence, labels, worth, "fixed-n")

    def _variance(self, found: Linearised) -> tuple[float, float]:
        return pooled_variance(float(found.terms.sum()), float((found.terms**2).sum()), found.believed, self.prior)

    def _fit(self, task: Task, history: History, exposure: Array) -> Belief:
        """The belief from all labels; remembered for the histories looked at last."""
        key = (task.seed, history.key, self.belief)
        remembered = _fits.setdefault(task.pool, {})
        if key not in remembered:
            weights = _training_weights(history, exposure)
            folds = folds_of(len(task.pool), task.seed)
            if self.belief is None:
                fitted = belief_of(
                    task.pool, describe(task.pool), history.labelled, history.codes, weights, folds
                )
            else:
                fitted = self.belief(task, history.labelled, history.codes, weights, folds)
            while len(remembered) >= 2:
                remembered.pop(next(iter(remembered)))
            remembered[key] = fitted
        return remembered[key]


_fits: WeakKeyDictionary[Pool, dict[Any, Belief]] = WeakKeyDictionary()
_exposures: WeakKeyDictionary[Pool, tuple[tuple[Batch, ...], Array, Batch | None]] = WeakKeyDictionary()


def _exposure(history: History, pool: Pool) -> tuple[Array, Batch | None]:
    """((N,) exposure after all batches, the last batch that made a design): replayed from what batches recorded."""
    done, exposure, last = _exposures.get(pool, ((), np.zeros(history.n_points), None))
    if len(done) > len(history.batches) or any(a is not b for a, b in zip(done, history.batches, strict=False)):
        done, exposure, last = (), np.zeros(history.n_points), None
    for batch in history.batches[len(done) :]:
        if "levels" in batch.record:
            last = batch
        if last is not None and "scale" in batch.record:
            scale, floor = batch.record["scale"].tolist()
            exposure = exposure + rates_of(LEVELS[last.record["levels"]], exposure, scale, floor)
    _exposures[pool] = (history.batches, exposure, last)
    return exposure, last


def _training_weights(history: History, exposure: Array) -> Array:
    """(n,) how much each label counts in the fits: 1/sqrt(pi), at most 5 times the mean; 1 where nobody drew it."""
    chance = inclusion_of(exposure)[history.labelled]
    chance[np.isin(history.labelled, history.volunteered)] = 1.0
    weights = 1 / np.sqrt(np.maximum(chance, 1e-12))
    weights = np.minimum(weights / weights.mean(), 5.0) if len(weights) else weights
    return np.asarray(weights / weights.mean() if len(weights) else weights)


def _estimator(history: History, belief: Belief, exposure: Array, members: Array | None = None) -> Difference:
    volunteered = np.zeros(history.n_points, np.bool_)
    volunteered[history.volunteered] = True
    drawn = history.labelled[~volunteered[history.labelled]]
    inside = np.ones(history.n_points, np.bool_) if members is None else members
    return Difference(
        belief=belief,
        drawn=drawn,
        codes=history.known[drawn],
        known=history.known,
        volunteered=volunteered,
        inside=inside,
        chances=np.maximum(inclusion_of(exposure), 1e-12),
    )


def _importance(task: Task, belief: Belief, estimator: Difference) -> tuple[Array, Array]:
    """u_i^2 = sum_k w_k Var_f(D_k[a_i, y]) / (random-sampling variance of metric k): (N,) believed, (n,) as labels show."""
    believed, seen = np.zeros(len(task.pool)), np.zeros(len(estimator.drawn))
    tables: dict[Any, Array] = {}
    families: dict[tuple[str, Any], int] = {}
    for metric in task.metrics:
        families[metric.kind, metric.where] = families.get((metric.kind, metric.where), 0) + 1
    predicted = task.pool.predictions[estimator.drawn]
    for metric in task.metrics:
        members = metric.members(task.pool)
        if metric.where not in tables:
            tables[metric.where] = belief.table(members)
        influence = influence_of(metric, tables[metric.where])
        spread = influence.spread(tables[metric.where])
        if spread <= 0:
            continue
        weight = 1 / (families[metric.kind, metric.where] * spread)
        mean, variance = influence.moments(belief)
        residual = influence.at(predicted, estimator.codes) - mean[estimator.drawn]
        if members is not None:
            variance, residual = variance * members, residual * members[estimator.drawn]
        believed += weight * variance
        seen += weight * residual**2
    return believed, seen
