"""Which of several models is best: one metric of each from the same labels, and the differences between them.

N points, C classes, K models, q_k the metric of model k with influence D_k (estimator.py). The difference of two models
has the influence d_i(c) = D_ki(c) - D_ji(c), which is 0 where both give the same answer and the metric is a mean over
points: such points cost nothing to leave out. Intervals of differences are those of all estimates (S7).
    R_k    (n,) signed roots of the squared terms of q_k, so that  sum (R_k - R_j)^2  is the variance shown of q_k - q_j
    c_k    quantile of  max over j of (Z_j - Z_k) / sd(Z_j - Z_k),  Z = sum over labels of xi R, xi ~ Normal(0, 1)  (R1)
A model is shown to be worse than another one if the difference lies more than c_k of its standard errors from 0. A
truly best model is worse than none, so it is excluded only if one of the K - 1 differences misses: that chance is
bounded by c_k (multiple comparisons with the best, Hsu 1981). People look at a ranking again and again, so that c_k is
taken at every number of labels at once: the factor of a confidence sequence with the same chance as c_k      (R3)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Protocol, runtime_checkable

import numpy as np

from altmas.belief import WrittenOut
from altmas.errors import MethodError, MetricError, PlanError
from altmas.history import History
from altmas.intervals import Tails, anytime_quantile, missed_tail, normal_quantile
from altmas.methods.assured.ahead import ahead_of, contributions_by_group, interval_of
from altmas.methods.assured.estimator import Difference, Expected, Side, Sides
from altmas.methods.assured.linearised import Estimators, Linearised, linearised_sum
from altmas.methods.assured.parts import Part
from altmas.methods.assured.skips import Labelable, widened
from altmas.methods.assured.whole_groups import sums
from altmas.methods.protocol import Method
from altmas.metrics import Metric, metric_set
from altmas.metrics.differences import difference
from altmas.metrics.influence import sum_of_items
from altmas.metrics.weights import Weights
from altmas.pool import Pool
from altmas.task import Task
from altmas.types import Array

MULTIPLIERS = 2000
"""Draws of the multiplier bootstrap."""


@dataclass(frozen=True)
class Contest:
    """One metric of K models, in their order.

    among   the difference estimators of sets of points
    planned the number of labels near which intervals for every look are narrowest
    fraction  share of what it is about that the pool is: 1 for the pool itself, 0 for data to come
    able    which points can be labelled, where some were skipped; else None
    leader  the model that the others are compared with; None for the one that looks best
    """

    among: Estimators
    metrics: Sequence[Metric]
    planned: int
    fraction: float = 1.0
    able: Labelable | None = None
    leader: int | None = None

    @property
    def ahead(self) -> bool:
        """Whether it is about more than the points of the pool."""
        return self.fraction < 1

    @cached_property
    def estimator(self) -> Difference:
        """The difference estimator of the points that the metric is about."""
        return self.among(self.metrics[0].members(self.among.pool))

    @cached_property
    def sides(self) -> list[Side]:
        """K values with the influences that their terms are made of."""
        return [self.estimator.side(metric) for metric in self.metrics]

    @cached_property
    def values(self) -> Array:
        """(K,) the estimates."""
        values = [side.value + self._moved(((1.0, self.estimator, side),)) for side in self.sides]
        return np.array(values, np.float64)

    def _moved(self, sides: Sides) -> float:
        """By how much skips move an estimate (V22)."""
        return 0.0 if self.able is None or self.exact else self.able.moved(sides)

    @cached_property
    def scores(self) -> Array:
        """(K,) what the best is chosen by: the mean of three values of each model's metric.  (R2)

        The estimate is unbiased and noisy. The metric on the labelled points alone has no weights, and so less noise,
        but it is tilted towards points on which contenders differ. That of the belief has hardly any noise, but it
        favours models that agree with the others. No two of them err alike; whatever is chosen, intervals are those of
        the estimates.
        """
        return self._mean_with(self.estimator.known_weights, Expected(self.estimator))

    @cached_property
    def scores_for_draws(self) -> Array:
        """(K,) what draws are aimed by: the same without the belief, which would never be put to the test by draws
        that follow it.
        """
        return self._mean_with(self.estimator.known_weights)

    def _mean_with(self, *weightings: Weights) -> Array:
        """(K,) mean of the estimate and of the metric at each of these weights, where it is defined."""
        scores = [self.values]
        for weighting in weightings:
            values = np.array([metric.value(self.estimator.pool, weighting) for metric in self.metrics], np.float64)
            scores.append(np.where(np.isnan(values), self.values, values))
        return np.asarray(np.mean(scores, axis=0))

    @cached_property
    def best(self) -> int:
        """The model that looks best so far, the first of several; or the one that is named to lead."""
        return self.best_by(self.scores) if self.leader is None else self.leader

    def best_by(self, scores: Array) -> int:
        """The first model with the best of these scores."""
        scores = -scores if self.metrics[0].lower_is_better else scores
        return int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))

    @property
    def drawn(self) -> int:
        """How many labels of drawn points there are."""
        return self.estimator.drawn

    @property
    def labels(self) -> int:
        """How many labels there are."""
        return self.estimator.labels

    @property
    def unlabelled(self) -> int:
        """How many points have no label; without any, values are exact."""
        return int(self.estimator.unlabelled.sum())

    @cached_property
    def rows(self) -> Array:
        """(n,) the labelled rows of all samples, as in `residuals` and `roots`."""
        return np.concatenate([part.rows for part in self.estimator.parts])

    @cached_property
    def _residuals(self) -> list[Array]:
        """For each stage (n, K) D_k(y) - E_f D_k of its sample."""
        known = self.estimator.known
        of_models = [side.residuals(self.estimator.parts, known) for side in self.sides]
        return [np.column_stack(of_part) for of_part in zip(*of_models, strict=True)]

    @cached_property
    def residuals(self) -> Array:
        """(n, K) the same of all stages."""
        return np.concatenate(self._residuals)

    @cached_property
    def roots(self) -> Array:
        """(n, K) R_k, and roots of skips (V22); one row for each group where whole groups are drawn (U3)."""
        stages = zip(self.estimator.parts, self._residuals, strict=True)
        by_draw = [np.column_stack([_by_draw(part, column) for column in residuals.T]) for part, residuals in stages]
        if self.able is not None:
            by_draw.append(np.column_stack([self.able.roots([(1.0, self.estimator, side)]) for side in self.sides]))
        return np.concatenate(by_draw)

    @cached_property
    def shown(self) -> Array:
        """(K, K) variance shown of q_k - q_j."""
        return _squared_distances(self.roots)

    @property
    def exact(self) -> bool:
        """Whether values are the truth: every point has a label, and the pool itself is what they are about."""
        return self.unlabelled == 0 and not self.ahead

    def least_half_width(self, k: int, j: int, factor: float) -> float:
        """About the half-width of q_k - q_j that is left if every point is labelled."""
        if not self.ahead:
            return 0.0
        linear = self._difference(k, j, factor)
        return ahead_of(linear, missed_tail(factor), self.fraction).least_half_width(factor)

    def expected_squares(self, best: int, k: int) -> Array:
        """(N,) Var_f(d_i): squared residuals of one model minus another, as the belief expects them."""
        if self._believed is None:
            inside = self.estimator.inside
            items = sum_of_items([(1.0, self.sides[best].items, inside), (-1.0, self.sides[k].items, inside)])
            return np.asarray(items.moments(self.estimator.belief)[1])
        if best not in self._moves_of_best:
            self._moves_of_best[best] = self._moves(best)
        moves = self._moves_of_best[best] - self._moves(k)
        weighted = self._believed * moves
        mean = weighted.sum(1)
        return np.asarray(np.maximum((weighted * moves).sum(1) - mean**2, 0.0) * self.estimator.inside)

    def same_as_best(self, k: int) -> bool:
        """Whether no label whatever moves the difference between the best and model k."""
        if self.shown[self.best, k] > 1e-18 * max(float(self.shown.max()), 1e-300):
            return False
        expected = self.expected_squares(self.best, k)
        return bool(expected.max(initial=0.0) <= 0) and self.values[k] == self.values[self.best]

    @cached_property
    def _believed(self) -> Array | None:
        """(N, C) the belief of the last stage; None where it is too large to be written out."""
        belief = self.estimator.belief
        return belief.rows(np.arange(len(belief.agree))) if isinstance(belief, WrittenOut) else None

    @cached_property
    def _moves_of_best(self) -> dict[int, Array]:
        """{model: (N, C) D_ki(c)} of models that all others were compared with."""
        return {}

    def _moves(self, k: int) -> Array:
        """(N, C) D_ki(c)."""
        return self.sides[k].items.rows(np.arange(len(self.estimator.known)))

    def critical(self, confidence: float, rng: np.random.Generator, models: Sequence[int] | None = None) -> Array:
        """(K,) c_k at every look (R3), at least the factor of one difference alone.

        models  those whose c_k is asked for; the others have the factor of one difference
        """
        at_one_look = self.critical_at_one_look(confidence, rng, models)
        alone = [1 - 2 * NormalDist().cdf(-quantile) for quantile in at_one_look.tolist()]
        return np.array([anytime_quantile(each, self.labels, self.planned) for each in alone])

    def critical_at_one_look(
        self, confidence: float, rng: np.random.Generator, models: Sequence[int] | None = None
    ) -> Array:
        """(K,) c_k of (R1) at a chance of (1 - confidence) / 2."""
        critical = np.full(len(self.metrics), normal_quantile(confidence))
        roots, shown = self.roots, self.shown
        if self.ahead:
            sides = [((1.0, self.estimator, side),) for side in self.sides]
            roots = contributions_by_group(sides, self.estimator.pool.group if self.fraction == 0 else None)
            shown = _squared_distances(roots)
        noise = rng.standard_normal((MULTIPLIERS, len(roots))) @ roots
        for k in range(len(critical)) if models is None else models:
            differing = shown[k] > 1e-18 * max(float(shown.max()), 1e-300)
            if differing.any():
                largest = ((noise[:, differing] - noise[:, [k]]) / np.sqrt(shown[k][differing])).max(1)
                critical[k] = max(critical[k], float(np.quantile(largest, (1 + confidence) / 2)))
        return critical

    def interval(self, k: int, j: int, factor: float) -> tuple[float, float]:
        """(low, high) of q_k - q_j, nan where undefined; exact where every point that decides it is labelled (V12)."""
        value = float(self.values[k] - self.values[j])
        if math.isnan(value) or self.exact or self.drawn == 0:
            return (value, value) if self.exact else (math.nan, math.nan)
        linear = self._difference(k, j, factor)
        if self.able is not None:
            linear = self.able.corrected(linear)
        ahead = ahead_of(linear, missed_tail(factor), self.fraction) if self.ahead else None
        if ahead is not None and ahead.too_few:
            return math.nan, math.nan
        inside = linear.value_inside(of_pool=self.able is None and not self.ahead)
        ends = interval_of(linear, inside, factor, ahead)
        if self.able is None:
            return ends
        more = self.able.variance_of(linear.sides)
        return widened(ends, inside, factor * math.sqrt(more), linear.metric.bounds)

    def _difference(self, k: int, j: int, factor: float) -> Linearised:
        return linearised_sum(difference(self.metrics[k], self.metrics[j]), self.among, Tails.one_sided(factor))


def _by_draw(part: Part, residuals: Array) -> Array:
    roots = part.centred(residuals)
    return roots if part.units is None else sums(roots, part.units)


def _squared_distances(roots: Array) -> Array:
    """(K, K) sum over the rows of (R_k - R_j)^2."""
    products = roots.T @ roots
    own = np.diag(products)
    return np.asarray(np.maximum(own[:, None] + own[None, :] - 2 * products, 0.0))


@runtime_checkable
class ComparesModels(Protocol):
    """A method that estimates one metric of several models together."""

    def contest(self, task: Task, history: History, metrics: tuple[Metric, ...]) -> Contest | None:
        """One metric of each model from the labels so far; None before any label was drawn."""


def comparing(method: Method) -> ComparesModels:
    """The method, if it compares models; MethodError if it does not."""
    if not isinstance(method, ComparesModels):
        raise MethodError(f"method {method.name!r} does not compare models; methods that do: assured")
    return method


def importance(contest: Contest) -> tuple[Array, Array]:
    """((N,) squared residuals as believed, (n,) as seen) of the differences to the best, contenders counting most.

    Every difference is scaled by the variance that it has now and weighted by how likely, as far as labels say, the
    other model is the better one after all: exp(-z^2 / 2), z the difference in standard errors.
    """
    scores, second = contest.scores_for_draws, contest.estimator.spread_of_weights[0]
    best = contest.best_by(scores)
    believed, seen = np.zeros(len(second)), np.zeros(len(contest.rows))
    for k in range(len(contest.metrics)):
        if k == best:
            continue
        expected = contest.expected_squares(best, k)
        variance = max(float(contest.shown[best, k]), float((expected * second).sum()))
        if not (variance > 0 and math.isfinite(scores[k])):
            continue
        apart = float(scores[best] - scores[k]) ** 2 / variance
        weight = np.exp(-min(apart, 40.0) / 2) / variance
        believed += weight * expected
        seen += weight * (contest.residuals[:, best] - contest.residuals[:, k]) ** 2
    return believed, seen


def disagreement(answers: Sequence[Array], n_classes: int) -> Array:
    """(N,) chance that two models picked at random give different answers to a point."""
    votes = np.zeros((len(answers[0]), n_classes))
    rows = np.arange(len(votes))
    for predictions in answers:
        votes[rows, predictions] += 1.0
    shares = votes / len(answers)
    return np.asarray(1 - (shares**2).sum(1))


def metrics_to_rank(name: str, pool: Pool) -> tuple[Metric, ...]:
    """One metric of each model; PlanError or MetricError if the models cannot be ranked by it."""
    if len(pool.models) < 2:
        raise PlanError(
            f"a ranking needs at least two models, this pool has {len(pool.models)}; give several predictions "
            "(--prediction, repeated), or session.add_model (altmas add-model)"
        )
    metrics = metric_set([name], pool)
    models = [metric.model for metric in metrics]
    if models != [model.name for model in pool.models] or any(metric.contrasts for metric in metrics):
        raise MetricError(
            f"models cannot be ranked by {name!r}; expected one metric that every model has, such as 'accuracy', "
            "'macro_f1' or 'recall[class]', without a model's name before it"
        )
    return metrics
