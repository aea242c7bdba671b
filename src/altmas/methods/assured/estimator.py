"""From stages and beliefs to the table of the whole pool, and from there to every metric: the difference estimator.

N points, C classes. Stage s began with a population of open points; its belief f_s has seen labels told before it began
and labels of its own sample outside the point's fold, so nothing that a point's label did has influenced f_s[i] or p_i.
    T_s  = table of labels told before  +  labels of its sample  +  sum over the rest of f_s[i]
           + h_s * sum over its sample of (1/p_i - 1) e_i,     e_i = onehot(y_i) - f_s[i]                       (V5)
    h_s  = (points of T_s without a label) / sum over the sample of (1/p_i - 1)
    That = sum_s c_s T_s,   c_s in proportion to gain_s n_s / (N_s (N_s - n_s))                                 (V6)
with N_s points in the population of the stage, n_s labels in its sample, and the gain expected when it began: one over
the variance of T_s, as far as it was known before the stage had a label.
Rows of e add up to 0, so the row sums of That are the known ones. A wrong belief costs width, never validity.
A metric is Q(B) + <D(B), That - B>, linearised at a table B near That: exact for accuracy and precision.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from altmas.belief import Belief
from altmas.intervals import Evidence, largest_unseen
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.stages import Stage
from altmas.metrics import Metric, table_of
from altmas.metrics.formulas import positive
from altmas.metrics.influence import Influence, influence_of, scales_at
from altmas.types import Array

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class StageSample:
    """One stage with its belief. before (N,) labels told before it began; rows (n,) labelled points of its sample."""

    stage: Stage
    belief: Belief
    before: Mask
    rows: Array


@dataclass(frozen=True)
class Difference:
    """The difference estimator of one set of points (the pool, or a slice).

    samples  stages with at least one label;  known (N,) labels, -1 where there is none
    inside   (N,) mask of the points the estimate is about;  skipped  rows that got no label
    """

    samples: Sequence[StageSample]
    predictions: Array
    known: Array
    inside: Mask
    skipped: Array

    @cached_property
    def shares(self) -> Array:
        """(S,) c_s of (V6)."""
        worth = []
        for one in self.samples:
            size, n = int(one.stage.population.sum()), len(one.rows)
            worth.append(one.stage.gain * n / (size * max(size - n, 1e-9)))
        return np.asarray(worth) / sum(worth)

    @cached_property
    def parts(self) -> list["_Part"]:
        """The stages as they are seen from the points inside."""
        return [
            _Part.of(one, share, self.inside, self.known) for one, share in zip(self.samples, self.shares, strict=True)
        ]

    @cached_property
    def belief(self) -> Belief:
        """The belief of the last stage, which has seen most labels."""
        return self.samples[-1].belief

    @cached_property
    def exposure(self) -> Array:
        """(N,) exposure of each point over all stages in which it was open."""
        return np.asarray(sum((one.stage.exposure for one in self.samples), np.zeros(len(self.known))))

    @cached_property
    def unlabelled(self) -> Mask:
        """(N,) points inside without a label."""
        return np.asarray(self.inside & (self.known < 0))

    @cached_property
    def labels(self) -> int:
        """How many labels inside."""
        return int((self.inside & (self.known >= 0)).sum())

    @cached_property
    def drawn(self) -> int:
        """How many labels of samples inside."""
        return int(sum(len(part.rows) for part in self.parts))

    @cached_property
    def known_table(self) -> Array:
        """(C, C) the table of the labelled points alone."""
        rows = np.flatnonzero(self.inside & (self.known >= 0))
        return table_of(self.predictions[rows], self.known[rows], self.belief.rivals.shape[1])

    @cached_property
    def expected(self) -> Array:
        """(C, C) the table as believed: known labels, and the belief where there is none."""
        return np.asarray(sum(part.share * self._expected(part) for part in self.parts))

    def _expected(self, part: "_Part") -> Array:
        n_classes = part.belief.rivals.shape[1]
        known = table_of(self.predictions[part.labelled], self.known[part.labelled], n_classes)
        return np.asarray(known + part.belief.table(part.rest))

    @cached_property
    def correction(self) -> Array:
        """(C, C) sum_s c_s h_s * sum over the sample of (1/p - 1) e, cells signed, rows that add up to 0."""
        table = np.zeros_like(self.expected)
        for part in self.parts:
            predicted, weights = self.predictions[part.rows], part.share * part.expansion
            np.add.at(table, (predicted, self.known[part.rows]), weights)
            np.subtract.at(table, predicted, part.belief.rows(part.rows) * weights[:, None])
        return table

    @cached_property
    def table(self) -> Array:
        """(C, C) That, cells signed."""
        return np.asarray(self.expected + self.correction)

    @cached_property
    def base(self) -> Array:
        """(C, C) where metrics are linearised: the believed table, and more of the correction the more labels.

        Ratios of noisy cells are wild; with `labels_per_class` labels of each class half of the correction is trusted.
        """
        share = self.drawn / (self.drawn + RECIPE.labels_per_class * len(self.expected))
        return positive(self.expected + share * self.correction)

    @cached_property
    def _spread_of_weights(self) -> tuple[Array, Array]:
        """(N,) each: sum_s c_s^2 and sum_s c_s^3 times the second and third moment of (drawn / p_i - 1), if unlabelled.

        A point is still without a label with chance 1 - pi, so the sum over those that are estimates that over all.
        """
        second, third = np.zeros(len(self.known)), np.zeros(len(self.known))
        for part in self.parts:
            chance = np.maximum(part.stage.chances, 1e-9)
            odds = np.where(part.stage.population, (1 - chance) / chance, 0.0)
            second += part.share**2 * odds
            third += part.share**3 * odds * np.maximum(1 / chance - 2, 0.0)
        left = np.where(self.unlabelled, np.exp(np.minimum(self.exposure, 14.0)), 0.0)
        return second * left, third * left

    def linearised(self, metric: Metric, tail: float) -> "Linearised":
        """The metric's estimate and what its interval is made of; tail = log(1 / chance of a miss on one side)."""
        influence = influence_of(metric, self.base)
        value = float(metric.of_table(self.base)) + influence.dot(self.table - self.base)
        if not self.unlabelled.any():
            value = float(metric.of_table(self.known_table))
        return Linearised(
            metric=metric,
            value=value,
            groups=self._groups(metric, influence, tail),
            spread=influence.spread(self.base),
            size=int(self.inside.sum()),
            labels=self.labels,
            drawn=self.drawn,
            unlabelled=int(self.unlabelled.sum()),
            skipped=int(self.inside[self.skipped].sum()),
            classes=len(self.base),
            terms=np.concatenate(
                [part.share * part.expansion * self.residuals(influence, part) for part in self.parts]
            ),
            rows=np.concatenate([part.rows for part in self.parts]),
            half_point=self._largest_change(influence) / 2,
        )

    def _largest_change(self, influence: Influence) -> float:
        """How much the label of one unlabelled point can change the metric at most."""
        lowest, highest = influence.range()
        return float((highest - lowest)[self.predictions[self.unlabelled]].max(initial=0.0))

    def _groups(self, metric: Metric, influence: Influence, tail: float) -> list["Group"]:
        """Points predicted as the class of the metric, and the others; all points where it is not about one class."""
        mean, variance = influence.moments(self.belief)
        second, third = self._spread_of_weights
        believed, skewed = variance * second, influence.third_moment(self.belief) * third
        lowest, highest = (bound[self.predictions] for bound in influence.range())
        squares = np.concatenate([part.squares(self.residuals(influence, part)) for part in self.parts])
        rows = np.concatenate([part.rows for part in self.parts])

        def group(members: Mask) -> Group:
            shown, left = squares[members[rows]], self.unlabelled & members
            total = float(shown.sum())
            return Group(
                shown=total,
                worth=total**2 / float((shown**2).sum()) if total > 0 else 0.0,
                believed=float(believed[members].sum()),
                third=float(skewed[members].sum()),
                unseen_low=largest_unseen((mean - lowest)[left], self.exposure[left], tail),
                unseen_high=largest_unseen((highest - mean)[left], self.exposure[left], tail),
            )

        if len(metric.classes) != 1:
            return [group(np.ones(len(self.known), np.bool_))]
        own = self.predictions == metric.classes[0]
        return [group(own), group(~own)]

    def residuals(self, influence: Influence, part: "_Part") -> Array:
        """(n,) D[a, y] - E_f D of the stage's sample."""
        predicted, believed = self.predictions[part.rows], part.belief.rows(part.rows)
        classes = np.broadcast_to(np.arange(believed.shape[1]), believed.shape)
        mean = (believed * influence.at(predicted[:, None], classes)).sum(1)
        return np.asarray(influence.at(predicted, self.known[part.rows]) - mean)


@dataclass(frozen=True)
class _Part:
    """A stage seen from the points inside: rows (n,) of its sample, expansion (n,), labelled rows, the rest (N,)."""

    stage: Stage
    belief: Belief
    share: float
    rows: Array
    labelled: Array
    rest: Mask
    expansion: Array

    @classmethod
    def of(cls, sample: StageSample, share: float, inside: Mask, known: Array) -> "_Part":
        rows = sample.rows[inside[sample.rows]]
        labelled = np.concatenate([np.flatnonzero(sample.before & inside), rows])
        rest = inside.copy()
        rest[labelled] = False
        chance = np.maximum(sample.stage.chances[rows], 1e-12)
        odds = (1 - chance) / chance
        total = float(odds.sum())
        expansion = odds * (rest.sum() / total) if total > 0 else odds * 0.0
        return cls(sample.stage, sample.belief, share, rows, labelled, rest, expansion)

    def squares(self, residuals: Array) -> Array:
        """(n,) squared terms whose sum estimates c_s^2 Var T_s: (c_s h (1/p - 1) (e - mean))^2 / (1 - p)."""
        total = float(self.expansion.sum())
        if total <= 0:
            return np.zeros(len(residuals))
        centre = float((self.expansion * residuals).sum()) / total
        n, chance = len(residuals), self.stage.chances[self.rows]
        scale = (self.share * self.expansion) ** 2 / np.maximum(1 - chance, 1e-12) * (n / max(n - 1, 1))
        return np.asarray(scale * (residuals - centre) ** 2)


@dataclass(frozen=True)
class Group:
    """Parts of the variance that belong to one group of points.

    shown     sum of squared terms;  worth  how many equal terms that is worth;  believed  variance by the belief
    third     third central moment by the belief;  unseen_low, unseen_high  b of (V4)
    """

    shown: float
    worth: float
    believed: float
    third: float
    unseen_low: float
    unseen_high: float


@dataclass(frozen=True)
class Linearised:
    """One metric to first order: its value, and what its interval is made of.

    groups  parts of the variance;  spread  sum over all points of (D - mean)^2;  size  points inside
    labels, drawn, unlabelled, skipped  points with a label, labels in samples, points without, skipped ones
    terms   (n,) signed terms of the correction, at the sampled rows
    half_point  half of what the label of one more point can change
    """

    metric: Metric
    value: float
    groups: Sequence[Group]
    spread: float
    size: int
    labels: int
    drawn: int
    unlabelled: int
    skipped: int
    classes: int
    terms: Array
    rows: Array
    half_point: float = 0.0

    @cached_property
    def variance(self) -> float:
        """Variance of the estimate at its value."""
        return self.evidence(self.value).variance

    def evidence(self, candidate: float) -> Evidence:
        """What the labels say if the metric is `candidate` (V3).

        The variance is what squared residuals show, and not less than the mean of that and of what the belief expects,
        weighted by degrees of freedom: with few errors among the labels their squares are a poor witness.
        """
        scales = scales_at(self.metric, self.value, candidate) if len(self.groups) == 2 else (1.0,)
        shown = sum(a**2 * group.shown for a, group in zip(scales, self.groups, strict=True))
        believed = sum(a**2 * group.believed for a, group in zip(scales, self.groups, strict=True))
        third = sum(a**3 * group.third for a, group in zip(scales, self.groups, strict=True))
        worth = sum(group.worth for group in self.groups)
        blend = (RECIPE.prior_df * believed + worth * shown) / (RECIPE.prior_df + worth)
        variance = max(shown, blend)
        skew = third / believed if believed > 0 else 0.0
        return Evidence(
            variance=variance,
            skew_low=max(-skew, 0.0),
            skew_high=max(skew, 0.0),
            curve=variance / (self.size * self.spread) if self.spread > 0 else 0.0,
            unseen_low=max(a * group.unseen_low for a, group in zip(scales, self.groups, strict=True)),
            unseen_high=max(a * group.unseen_high for a, group in zip(scales, self.groups, strict=True)),
            half_point=self.half_point,
        )

    def effective_labels(self) -> float:
        """n of a simple random sample with this variance: V = N (1/n - 1/N) * spread."""
        if self.variance <= 0:
            return float(self.size)
        if self.spread <= 0:
            return math.nan
        return 1 / (self.variance / (self.size * self.spread) + 1 / self.size)
