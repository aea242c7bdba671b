"""assured: metric-aware sampling with known probabilities, and intervals that hold (the default)."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from altmas.belief import Belief
from altmas.compute import products_on_one_thread
from altmas.errors import MethodError
from altmas.estimates import Estimate, Estimates
from altmas.extras import require
from altmas.history import Batch, History
from altmas.intervals import (
    anytime_quantile,
    bounded_interval,
    cautious_variance,
    normal_quantile,
    reaching,
    simultaneous_quantile,
    student_quantile,
)
from altmas.methods.assured.belief import belief_of, folds_of
from altmas.methods.assured.design import (
    LEVELS,
    batch_scale,
    earned_sizes,
    even,
    inclusion_of,
    levels_of,
    odds_levels,
    pilot_sizes,
    rates_of,
)
from altmas.methods.assured.diagnostics import diagnose
from altmas.methods.assured.estimator import Difference, Linearised, sequential_accuracy
from altmas.methods.assured.extra_models import FURTHER
from altmas.methods.assured.views import describe
from altmas.methods.draws import successive_draws
from altmas.methods.protocol import Needs
from altmas.metrics import Metric
from altmas.metrics.averages import MACRO
from altmas.metrics.influence import influence_of
from altmas.pool import Pool
from altmas.suggest import near
from altmas.task import Task
from altmas.types import Array

PROPOSE, SIMULTANEOUS = 3, 4
REMEMBERED = 4
CERTAIN_RATE = 1e9

RIGHT_OR_WRONG = ("accuracy", "error")
"""Metrics that do not look at classes: a first sample for them alone need not care for rare classes."""


@dataclass(frozen=True)
class Assured:
    """Labels where they tell most about the metrics, drawn with known probabilities; difference estimator.

    pilot         labels drawn before the design may follow the belief
    growth        the belief is fitted anew once there are this many times the labels it has seen
    tilt          the uniform share of the design; None to let labelled residuals say how far to leave uniform
    simultaneous  intervals that hold for all metrics together, not for each alone
    planned       where anytime intervals are narrowest; these are given when the session may stop by what they show
    prior         how many squared residuals the belief's own expectation of them is worth
    also          further answers that the built-in belief tries: "network" (the paper's, seconds for each fit), "trees"
    belief        a function (task, labelled, codes, weights, folds) -> Belief in place of the built-in one
    """

    pilot: int = 40
    growth: float = 1.3
    tilt: float | None = None
    simultaneous: bool = False
    planned: int = 200
    prior: float = 3.0
    also: tuple[str, ...] = ()
    belief: Callable[[Task, Array, Array, Array, Array], Belief] | None = None

    name: ClassVar[str] = "assured"
    needs: ClassVar[Needs] = Needs(interval="fixed-n")

    def __post_init__(self) -> None:
        for name in self.also:
            if name not in FURTHER:
                hint = near(name, FURTHER) or ";"
                raise MethodError(f"assured knows no further answer {name!r}{hint} known: {', '.join(FURTHER)}")
        if "network" in self.also:
            require("paper", "the answer of a network in assured")

    @products_on_one_thread()  # sums in another order would end in other bits
    def propose(self, task: Task, history: History, n: int) -> Batch:
        exposure, last = exposure_of(history, task.pool)
        known = len(history.labels)
        record: dict[str, Array] = {}
        if last is None or self._stale(history.batches[last].labels_before, known):
            sizes, belief = self._sizes(task, history, exposure)
            record["levels"] = levels_of(sizes)
            if belief is not None:
                record["agree"] = odds_levels(belief.agree)
            sizes = LEVELS[record["levels"]]
        else:
            sizes, belief = LEVELS[history.batches[last].record["levels"]], self._past_belief(task, history, last)
        open_points = np.flatnonzero(history.open)
        scale, floor = batch_scale(sizes, exposure, open_points, n)
        record["scale"] = np.array([scale, floor])
        rates = np.minimum(rates_of(sizes, exposure, scale, floor), CERTAIN_RATE)
        indices, chances = successive_draws(rates, open_points, n, history.rng(task.seed, PROPOSE))
        if belief is not None:
            record["belief"] = belief.rows(indices)
        return Batch(indices, chances, record, labels_before=known)

    @products_on_one_thread()
    def estimate(self, task: Task, history: History) -> Estimates:
        exposure, _ = exposure_of(history, task.pool)
        belief = self._fit(task, history, exposure)
        parts = {
            where: estimator_of(history, belief, exposure, members)
            for where, members in {m.where: m.members(task.pool) for m in task.metrics}.items()
        }
        found = [parts[metric.where].linearised(metric) for metric in task.metrics]
        factor = self._factor(task, history, found)
        answers = (self._answer(task, *pair, factor) for pair in zip(task.metrics, found, strict=True))
        whole = diagnose(estimator_of(history, belief, exposure), np.array(list(history.skipped), np.int64))
        info = {
            "belief": belief.shares,
            "diagnostics": whole.to_dict(),
            "sequential_accuracy": sequential_accuracy(history, task.pool.predictions),
        }
        return Estimates(tuple(answers), self.name, info)

    def inclusion(self, pool: Pool, history: History) -> Array:
        """(N,) probability of each point to have been drawn by now: what a comparison of two models weights by."""
        return np.maximum(inclusion_of(exposure_of(history, pool)[0]), 1e-12)

    # ------------------------------------------------------------ where to draw

    def _stale(self, seen: int, known: int) -> bool:
        """Whether a design made with `seen` labels should be made anew with `known`."""
        return known >= self.pilot and known >= self.growth * seen

    def _sizes(self, task: Task, history: History, exposure: Array) -> tuple[Array, Belief | None]:
        """((N,) how often each point should be drawn, mean 1 over the pool; the belief that says so)."""
        pool = task.pool
        if len(history.labels) - len(history.volunteered) < self.pilot:
            plain = all(metric.kind in RIGHT_OR_WRONG and metric.where is None for metric in task.metrics)
            doubt = None if self.belief is not None else describe(pool).doubt
            return pilot_sizes(pool.predictions, len(pool.classes), self.pilot, doubt, 0 if plain else 4), None
        belief = self._fit(task, history, exposure)
        believed, seen = self._importance(task, history, belief, exposure)
        folds = folds_of(len(pool), task.seed)
        if self.tilt is None:
            return earned_sizes(believed, seen, estimator_of(history, belief, exposure).drawn, folds)[0], belief
        return np.asarray(self.tilt + (1 - self.tilt) * even(np.sqrt(believed), folds)), belief

    def _importance(self, task: Task, history: History, belief: Belief, exposure: Array) -> tuple[Array, Array]:
        """u_i^2 = sum_k w_k Var_f(D_k[a_i, y]) / (random-sampling variance of k): (N,) believed, (n,) as labels show.

        w_k is 1 over the number of metrics of its kind, so that 20 class metrics do not drown accuracy; with targets
        it is the square of how many times too wide the interval still is.
        """
        estimator = estimator_of(history, belief, exposure)
        believed, seen = np.zeros(len(task.pool)), np.zeros(len(estimator.drawn))
        predicted = task.pool.predictions[estimator.drawn]
        tables: dict[Any, Array] = {}
        for metric, urgency in zip(task.metrics, self._urgency(task, history, belief, exposure), strict=True):
            members = metric.members(task.pool)
            if metric.where not in tables:
                tables[metric.where] = belief.table(members)
            table = tables[metric.where]
            influence = influence_of(metric, table)
            spread = influence.spread(table)
            if spread <= 0 or urgency <= 0:
                continue
            mean, variance = influence.moments(belief)
            residual = influence.at(predicted, estimator.codes) - mean[estimator.drawn]
            if members is not None:
                variance, residual = variance * members, residual * members[estimator.drawn]
            believed += urgency / spread * variance
            seen += urgency / spread * residual**2
        return believed, seen

    def _urgency(self, task: Task, history: History, belief: Belief, exposure: Array) -> list[float]:
        kinds = Counter((metric.kind, metric.where) for metric in task.metrics)
        shares = [1 / kinds[metric.kind, metric.where] for metric in task.metrics]
        targets = dict(task.targets)
        for place, metric in enumerate(task.metrics):
            if metric.name in targets:
                found = estimator_of(history, belief, exposure, metric.members(task.pool)).linearised(metric)
                one = self._answer(task, metric, found, normal_quantile(task.confidence))
                width = 1.0 if math.isnan(one.half_width) else one.half_width
                shares[place] *= min(25.0, max(0.04, (width / targets[metric.name]) ** 2))
        return shares

    # ------------------------------------------------------------ how sure

    def _factor(self, task: Task, history: History, found: list[Linearised]) -> float:
        """How many standard errors an interval reaches, before the correction for few degrees of freedom."""
        if task.stopping:
            return anytime_quantile(task.confidence, len(history.labels), self.planned)
        if self.simultaneous and len(found) > 1:
            rng = np.random.default_rng([task.seed, SIMULTANEOUS])
            drawn = [row for row in history.labelled.tolist() if row not in set(history.volunteered.tolist())]
            return simultaneous_quantile(
                np.column_stack([_placed(one, len(drawn)) for one in found]), task.confidence, rng
            )
        return normal_quantile(task.confidence)

    def _answer(self, task: Task, metric: Metric, found: Linearised, factor: float) -> Estimate:
        kind = "anytime" if task.stopping else "fixed-n"
        if math.isnan(found.value):
            note = f"undefined: no label so far tells about {metric.name}"
            return Estimate(
                metric.name, math.nan, math.nan, math.nan, task.confidence, found.labels, interval=kind, note=note
            )
        value = min(metric.bounds[1], max(metric.bounds[0], found.value))
        if found.unknown == 0:
            note = "every point is labelled: exact"
            worth = float(found.labels)
            return Estimate(metric.name, value, value, value, task.confidence, found.labels, worth, kind, note)
        if metric.kind in MACRO and found.labels < found.classes:
            note = f"no interval: fewer labels ({found.labels}) than classes ({found.classes}) to average over"
            return Estimate(
                metric.name, value, math.nan, math.nan, task.confidence, found.labels, math.nan, "none", note
            )
        variance, freedom = cautious_variance(found.terms, found.believed, self.prior)
        quantile = factor * student_quantile(task.confidence, freedom) / normal_quantile(task.confidence)
        low, high = bounded_interval(value, variance, metric.bounds, quantile)
        low, high = reaching(low, high, found.labelled, metric.bounds)
        worth = found.effective_labels(variance)
        note = "" if found.skipped == 0 else _skip_note(metric, found)
        return Estimate(metric.name, value, low, high, task.confidence, found.labels, worth, kind, note)

    # ------------------------------------------------------------ fits

    def _past_belief(self, task: Task, history: History, last: int) -> Belief | None:
        """The belief behind an earlier design, from the labels of that time."""
        batch = history.batches[last]
        if "agree" not in batch.record:
            return None
        labels = dict(list(history.labels.items())[: batch.labels_before])
        skipped = {row: why for row, why in history.skipped.items() if row in set(history.drawn.tolist())}
        past = History(history.n_points, history.batches[:last], labels, skipped)
        return self._fit(task, past, exposure_of(past, task.pool)[0])

    def _fit(self, task: Task, history: History, exposure: Array) -> Belief:
        """The belief from all labels; remembered for the histories looked at last."""
        key = (task.seed, tuple(history.labels.items()), len(history.batches), self.belief, self.also)
        remembered = _fits.setdefault(task.pool, {})
        if key not in remembered:
            weights = _training_weights(history, exposure)
            folds = folds_of(len(task.pool), task.seed)
            while len(remembered) >= REMEMBERED:
                remembered.pop(next(iter(remembered)))
            if self.belief is None:
                labels = history.labelled, history.codes, weights
                remembered[key] = belief_of(task.pool, describe(task.pool), *labels, folds, self.also)
            else:
                remembered[key] = self.belief(task, history.labelled, history.codes, weights, folds)
        return remembered[key]


_fits: WeakKeyDictionary[Pool, dict[Any, Belief]] = WeakKeyDictionary()
_exposures: WeakKeyDictionary[Pool, tuple[tuple[Batch, ...], Array, int | None]] = WeakKeyDictionary()


def exposure_of(history: History, pool: Pool) -> tuple[Array, int | None]:
    """((N,) exposure after all batches, the place of the last design): replayed from what batches recorded."""
    done, exposure, last = _exposures.get(pool, ((), np.zeros(history.n_points), None))
    if len(done) > len(history.batches) or any(a is not b for a, b in zip(done, history.batches, strict=False)):
        done, exposure, last = (), np.zeros(history.n_points), None
    for place in range(len(done), len(history.batches)):
        record = history.batches[place].record
        last = place if "levels" in record else last
        if last is not None and "scale" in record:
            scale, floor = record["scale"].tolist()
            exposure = exposure + rates_of(LEVELS[history.batches[last].record["levels"]], exposure, scale, floor)
    _exposures[pool] = (history.batches, exposure, last)
    return exposure, last


def estimator_of(history: History, belief: Belief, exposure: Array, members: Array | None = None) -> Difference:
    """The difference estimator of the members (the whole pool by default)."""
    volunteered = np.zeros(history.n_points, np.bool_)
    volunteered[history.volunteered] = True
    drawn = history.labelled[~volunteered[history.labelled]]
    return Difference(
        belief=belief,
        drawn=drawn,
        codes=history.known[drawn],
        known=history.known,
        volunteered=volunteered,
        inside=np.ones(history.n_points, np.bool_) if members is None else members,
        chances=np.maximum(inclusion_of(exposure), 1e-12),
        skipped=np.array(list(history.skipped), np.int64),
    )


def _training_weights(history: History, exposure: Array) -> Array:
    """(n,) how much each label counts in the fits: 1/sqrt(pi), at most 5 times the mean; 1 where nobody drew it."""
    chance = inclusion_of(exposure)[history.labelled]
    chance[np.isin(history.labelled, history.volunteered)] = 1.0
    if not len(chance):
        return chance
    weights = 1 / np.sqrt(np.maximum(chance, 1e-12))
    weights = np.minimum(weights / weights.mean(), 5.0)
    return np.asarray(weights / weights.mean())


def _placed(found: Linearised, n: int) -> Array:
    """(n,) the terms of a metric's estimate at all draws; 0 at those outside its slice."""
    terms = np.zeros(n)
    terms[np.flatnonzero(found.sampled)] = found.expansion * found.residual
    return terms


def _skip_note(metric: Metric, found: Linearised) -> str:
    share = found.skipped / (found.labels + found.skipped)
    bounds = ""
    if metric.kind in RIGHT_OR_WRONG:
        low, high = found.value * (1 - share), found.value * (1 - share) + share
        bounds = f"; if the model is always wrong or always right there, {low:.3f} to {high:.3f}"
    return f"{found.skipped} of {found.labels + found.skipped} points had no answer ({share:.0%}){bounds}"
