"""From stages and beliefs to the table of the whole pool, and from there to every metric: the difference estimator.

N points, C classes. Stage s began with a population of open points; its belief f_s has seen labels told before it began
and labels of its own sample outside the point's fold, so nothing that a point's label did has influenced f_s[i] or p_i.
Nor has it influenced the share c_s with which the stage counts for the point: the gain is that of means over the points
of its fold, as labels outside the fold have it. Were it one for all, a stage that met more errors than others would
count more than they do, because its errors make later stages expect less of their draws.
    T_s  = table of labels told before  +  labels of its sample  +  sum over the rest of f_s[i]
           + h_s * sum over its sample of (1/p_i - 1) e_i,     e_i = onehot(y_i) - f_s[i]                       (V5)
    h_s  = (points of T_s without a label) / sum over the sample of (1/p_i - 1)
    That = sum_s c_s T_s,   c_s in proportion to gain_s n_s / (N_s (N_s - n_s))                                 (V6)
with N_s points in the population of the stage, n_s answered draws in its sample, and the gain expected when it began:
one over the variance of T_s, as far as it was known before the stage had a label; that of a first stage by scores is
what labels outside the fold have shown once the second begins (V31). For some of the points, such as a
slice or, once half of them are labelled, those that a precision or a difference of two means depends on, N_s and n_s
are those among them: given how many draws fell there, these are a sample of them                              (V12)
A pool that grew has domains d, points that came together. A stage is about the domains that were there when it began:
    That = sum_d sum over the stages about d of c_sd T_sd,   c_sd as in (V6) with N_sd and n_sd in place of N_s and n_s
    n_sd = n_s * (sum of sizes over the population in d) / (sum of sizes over the population)                   (V7)
and h_sd = 1 where fewer than `FEW` of its labels fall into d (Horvitz and Thompson). Of a domain that no stage with a
label is about nothing is known: its unlabelled points may be anything, which is added to the interval on both sides.
Where a row stands for k_i rows (W1) tables, corrections and influences count it k_i times, and
    h_s  = (sum of k over the points of T_s without a label) / sum over the sample of k_i (1/p_i - 1)           (W2)
Rows of e add up to 0, so the row sums of That are the known ones. A wrong belief costs width, never validity.
A metric is Q(B) + <D(B), That - B>, linearised at a table B near That: exact for accuracy and precision.
Other metrics need the weights W[i, c] that tables are sums of, with the same formula for each point: What and, for the
point of linearisation, W0: the belief, with odds of the slope that labels show, shifted so that bins of the metric's
score hold as many points of the class as That says (S10). A difference of metrics has the difference of their terms and
influences.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from altmas.belief import Belief
from altmas.estimates import LEAST_DRAWN
from altmas.methods.assured.belief import met_classes
from altmas.methods.assured.fitted_weight import supposed
from altmas.methods.assured.logistic import log_odds, logistic_fit, sigmoid
from altmas.methods.assured.parts import FEW, Mask, Part, StageSample, in_shares, residuals_of, shares_among, shares_in
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.weights import Without, kept_of_members, shifted_odds, with_steady_members
from altmas.metrics import LabelWeights, Metric, RowCodes, Weights, table_of
from altmas.metrics.formulas import positive
from altmas.metrics.influence import ItemInfluence
from altmas.metrics.scores import bins_of
from altmas.pool import Pool
from altmas.types import Array

MAY_BE_NONE = -math.log(0.025)
"""Members that are expected of a class below which it may have none: as many are none with a chance of 1 in 40."""
EVERY = slice(None)
LABELS_PER_BIN, MOST_BINS = 20, 8
"""Drawn labels for each bin along a score in which the belief is shifted, and the most bins."""


@dataclass(frozen=True)
class Difference:
    """The difference estimator of one set of points (the pool, or a slice).

    samples  stages with at least one label;  known (N,) labels, -1 where there is none
    inside   (N,) mask of the points the estimate is about;  skipped  rows that got no label
    domains  rows that came together, in order; None for a pool that never grew
    by_rows  the rows of the table that its samples are counted by (V27); None to count them together
    """

    samples: Sequence[StageSample]
    pool: Pool
    known: Array
    inside: Mask
    skipped: Array
    domains: Sequence[slice] | None = None
    by_rows: RowCodes | None = None

    @property
    def predictions(self) -> Array:
        """(N,) answers of the pool's first model."""
        return self.pool.predictions

    @cached_property
    def n_classes(self) -> int:
        """C."""
        return len(self.pool.classes)

    @cached_property
    def weight(self) -> Array:
        """(N,) how many rows each point stands for."""
        return np.ones(len(self.known)) if self.pool.weights is None else self.pool.weights

    @cached_property
    def _by_predictions(self) -> RowCodes:
        return RowCodes(("predicted", None), self.predictions, self.n_classes)

    @cached_property
    def _tables(self) -> dict[tuple[object, ...], tuple[Array, Array]]:
        return {}

    @cached_property
    def _sides(self) -> dict[int, tuple[Metric, "Side"]]:
        return {}

    @cached_property
    def shares(self) -> Array:
        """(S, K) c_s of (V6) in each fold; (S, 1) if no stage has a gain by folds."""
        worth = []
        for sample in self.samples:
            n, size = sample.answers_in(np.ones(len(self.known), np.bool_))
            worth.append(sample.stage.gain * n / (size * max(size - n, 1e-9)))
        return in_shares(worth)

    @cached_property
    def parts(self) -> list[Part]:
        """The stages as they are seen from the points inside, one for each domain."""
        if self.by_rows is None:
            return self._parts_together
        return [part.counted_by(self.by_rows, self.weight) for part in self._parts_together]

    @cached_property
    def _parts_together(self) -> list[Part]:
        if self.domains is None or len(self.domains) == 1:
            shares = self.shares
            if not self.inside.all():
                shares = shares_among(self.samples, self.inside, shares)
            return [
                Part.of(number, sample, share, self.inside, self.weight)
                for number, (sample, share) in enumerate(zip(self.samples, shares, strict=True))
                if share.any()
            ]
        return [part for rows in self.domains if self.inside[rows].any() for part in self._parts_in(rows)]

    def _parts_in(self, rows: slice) -> list[Part]:
        """The stages about one domain; the belief of the last stage, uncorrected, where there is none."""
        inside = np.zeros(len(self.known), np.bool_)
        inside[rows] = self.inside[rows]
        about = [(number, sample) for number, sample in enumerate(self.samples) if sample.stage.within[rows].all()]
        if not about:
            return [Part.unseen(len(self.samples) - 1, self.samples[-1], inside, self.known, self.weight)]
        shares = shares_in([sample for _, sample in about], rows)
        return [
            Part.of(number, sample, share, inside, self.weight, unscaled_below=FEW)
            for (number, sample), share in zip(about, shares, strict=True)
        ]

    @cached_property
    def unreached(self) -> Mask:
        """(N,) unlabelled points inside of which the stages with a label say nothing.

        They came later, or had a label that was taken back since when one of the stages began: it could not draw them,
        and what was told unasked may be anything but a sample.
        """
        reached, lost = np.zeros(len(self.known), np.bool_), np.zeros(len(self.known), np.bool_)
        for sample in self.samples:
            reached |= sample.stage.population
            lost |= sample.stage.within & ~sample.stage.population
        return np.asarray(self.unlabelled & (lost | ~reached))

    @cached_property
    def belief(self) -> Belief:
        """The belief of the last stage, which has seen most labels."""
        return self.samples[-1].belief

    @cached_property
    def exposure(self) -> Array:
        """(N,) exposure of each point over all stages in which it was open."""
        return np.asarray(sum((sample.stage.exposure for sample in self.samples), np.zeros(len(self.known))))

    def hazard_within(self, members: Mask) -> tuple[Array, int]:
        """((N,) hazard of each of these members by their own draws (V11), how many these were); members by no label."""
        rows, draws = np.flatnonzero(members), 0
        own = np.zeros(len(rows))
        for sample in self.samples:
            reached, count = sample.stage.hazard_within(members)
            if count:
                own += sample.stage.sizes[rows] * sample.stage.population[rows] * reached
                draws += count
        hazard = np.zeros(len(self.known))
        hazard[rows] = own
        return hazard, draws

    @property
    def units(self) -> Array | None:
        """(N,) the group of each point, where whole groups are drawn; else None."""
        return self.samples[-1].stage.units

    @cached_property
    def unlabelled(self) -> Mask:
        """(N,) points inside without a label, those that were skipped aside: of them figures say nothing."""
        unlabelled = self.inside & (self.known < 0)
        unlabelled[self.skipped] = False
        return np.asarray(unlabelled)

    @cached_property
    def unlabelled_share(self) -> Array:
        """(N,) shares of the parts that have a belief in place of the point's label."""
        return np.asarray(sum((part.share_at(EVERY) * part.rest for part in self.parts), np.zeros(len(self.known))))

    @cached_property
    def labelled_weights(self) -> LabelWeights:
        """The weights of labelled points, each by the shares of the parts that have its label."""
        share = np.where(self.known >= 0, self.inside - self.unlabelled_share, 0.0) * self.weight
        return LabelWeights.of_truth(self.known, self.n_classes, share > 0, share)

    @cached_property
    def noise_of_members(self) -> Array:
        """(C,) variance of the estimated number of members of each class, as the residuals of the samples show it."""
        return np.asarray(sum((squares.sum(0) for _, squares in self._squares_of_members), np.zeros(self.n_classes)))

    @property
    def _squares_of_members(self) -> Iterator[tuple[Array, Array]]:
        """For each part its rows, and (n, C) the squared terms of the estimated numbers of members."""
        for part in self.parts:
            residuals = -part.belief.rows(part.rows)
            residuals[np.arange(len(part.rows)), self.known[part.rows]] += 1
            yield part.rows, part.terms(part.weight)[:, None] ** 2 * residuals**2

    @cached_property
    def unmet_classes(self) -> int:
        """How many classes neither an answer nor a label has shown."""
        return int((~self._met).sum())

    @cached_property
    def _met(self) -> Mask:
        return met_classes(self.pool, self.known[self.known >= 0])

    @cached_property
    def unlabelled_classes(self) -> Mask:
        """(C,) met classes that no label inside is of."""
        labelled = np.bincount(self.known[self.inside & (self.known >= 0)], minlength=self.n_classes) > 0
        return np.asarray(self._met & ~labelled)

    @cached_property
    def doubtful_classes(self) -> Mask:
        """(C,) met classes of which it is open whether any point is of them: no label is, and few points may be."""
        members = np.minimum(self.expected.sum(0), np.maximum(self.table.sum(0), 0.0))
        return np.asarray(self.unlabelled_classes & (members < MAY_BE_NONE * self._weight_of_point))

    @cached_property
    def absent_classes(self) -> Mask:
        """(C,) classes that count as absent in means over classes: not met, or of which half a point is expected."""
        most = np.maximum(self.expected.sum(0), self.table.sum(0))
        return np.asarray(~self._met | (self.doubtful_classes & (most < 0.5 * self._weight_of_point)))

    @cached_property
    def _weight_of_point(self) -> float:
        """The mean weight of the points inside, those that were skipped aside."""
        counted = self.inside.copy()
        counted[self.skipped] = False
        return float(self.weight[counted].mean()) if counted.any() else 1.0

    @cached_property
    def labels(self) -> int:
        """How many labels inside."""
        return int((self.inside & (self.known >= 0)).sum())

    @cached_property
    def drawn(self) -> int:
        """How many labels of samples inside."""
        return int(sum(len(part.rows) for part in self.parts))

    @cached_property
    def known_weights(self) -> LabelWeights:
        """The weights of the labelled points alone."""
        return LabelWeights.of_truth(self.known, self.n_classes, self.inside & (self.known >= 0), self.pool.weights)

    def tables(self, rows: RowCodes) -> tuple[Array, Array]:
        """(R, C) each: the table as believed, known labels where there are; and its correction, rows that add up to 0.

        correction = sum_s c_s h_s * sum over the sample of (1/p - 1) e
        """
        if rows.key not in self._tables:
            expected = np.asarray(sum(self._expected(part, rows) for part in self.parts))
            correction = np.zeros_like(expected)
            for part in self.parts:
                codes, weights = rows.codes[part.rows], part.terms(part.weight)
                np.add.at(correction, (codes, self.known[part.rows]), weights)
                np.subtract.at(correction, codes, part.belief.rows(part.rows) * weights[:, None])
            self._tables[rows.key] = expected, correction
        return self._tables[rows.key]

    def _expected(self, part: Part, rows: RowCodes) -> Array:
        labelled = rows.codes[part.labelled], self.known[part.labelled]
        weights = self.pool.weights
        counted = None if weights is None else weights[part.labelled]
        rest = part.rest if weights is None else part.rest * weights
        if len(part.share) > 1:
            counted = part.share_at(part.labelled) * (1.0 if counted is None else counted)
            rest = part.share_at(EVERY) * rest
        known = table_of(*labelled, self.n_classes, counted, n_rows=rows.count)
        believed = known + part.belief.table_by(rows.codes, rows.count, rest)
        return np.asarray(believed if len(part.share) > 1 else part.share * believed)

    @cached_property
    def expected(self) -> Array:
        """(C, C) the believed table of predicted and true classes."""
        return self.tables(self._by_predictions)[0]

    @cached_property
    def correction(self) -> Array:
        """(C, C) its correction, cells signed."""
        return self.tables(self._by_predictions)[1]

    @cached_property
    def table(self) -> Array:
        """(C, C) That, cells signed."""
        return Estimated(self).table(self._by_predictions)

    @cached_property
    def base(self) -> Array:
        """(C, C) where metrics of this table are linearised."""
        return Base(self).table(self._by_predictions)

    def classes_expected(self, code: int | Array) -> Array:
        """(N,) W[i, code] as believed, 0 or 1 where the label is known, 0 outside."""
        codes, weights = np.broadcast_to(code, len(self.known)), np.zeros(len(self.known))
        for part in self.parts:
            weight = np.where(part.rest, part.belief.of_class(code), 0.0)
            weight[part.labelled] = self.known[part.labelled] == codes[part.labelled]
            weights += part.share_at(EVERY) * weight
        return weights if self.pool.weights is None else weights * self.pool.weights

    def classes_corrected(self, code: int | Array) -> Array:
        """(N,) the correction of W[i, code], 0 but at the samples."""
        codes, weights = np.broadcast_to(code, len(self.known)), np.zeros(len(self.known))
        for part in self.parts:
            sampled = codes[part.rows]
            believed = part.belief.rows(part.rows)[np.arange(len(part.rows)), sampled]
            weights[part.rows] += part.terms((self.known[part.rows] == sampled) - believed)
        return weights if self.pool.weights is None else weights * self.pool.weights

    @cached_property
    def spread_of_weights(self) -> tuple[Array, Array]:
        """(N,) each: sum_s c_s^2 and sum_s c_s^3 times the second and third moment of (drawn / p_i - 1), if unlabelled.

        A point is still without a label with chance 1 - pi, so the sum over those that are estimates that over all.
        """
        second, third = np.zeros(len(self.known)), np.zeros(len(self.known))
        for part in self.parts:
            chance = np.maximum(part.stage.chances, 1e-9)
            odds = np.where(part.stage.population & part.rest, (1 - chance) / chance, 0.0)
            share = part.share_at(EVERY)
            second += share**2 * odds
            third += share**3 * odds * np.maximum(1 / chance - 2, 0.0)
        left = np.where(self.unlabelled, np.exp(np.minimum(self.exposure, 14.0)), 0.0)
        return second * left, third * left

    def side(self, metric: Metric) -> "Side":
        """The value of a metric of these points, and the influence that its terms are made of; found once for each."""
        if id(metric) not in self._sides:
            self._sides[id(metric)] = metric, self._side(metric)
        return self._sides[id(metric)][1]

    def _side(self, metric: Metric) -> "Side":
        whole: Weights = Estimated(self)
        base = whole if metric.taken_at_estimate else Base(self, metric.along(self.pool), metric.mean_of_recalls)
        absent = self.absent_classes if metric.mean_of_recalls else ~self._met
        if not metric.is_table:  # what is believed of the scores of a class that may have no member says nothing
            absent = absent | self.doubtful_classes
        if metric.about.over_classes and absent.any():
            whole, base = Without(whole, absent, base), Without(base, absent, base)
        at_base, items = metric.moved_by(self.pool, base)
        value, fitted = at_base + items.dot(whole, base), None
        if metric.about.fitted:
            fitted = supposed(items, self.parts, self.known, self.weight)
            value += sum(map(partial(_moved_by_supposing, items), self.parts, fitted))
        shift = 0.0
        if not self.unlabelled.any():
            value = metric.value(self.pool, self.known_weights)
        elif metric.about.over_members:
            shift = self._shift_to_labels(metric, value)
        elif metric.mean_of_recalls:
            shift = self._shift_of_recalls(base.table(self._by_predictions))
        return Side(value + shift, items, items.spread(base), fitted, shift, at_base)

    def _shift_of_recalls(self, base: Array) -> float:
        """By how much a mean of recalls is moved because it is convex in the members that its labels put.

        (V15) linearises recalls at members s0, of which a share k is from the same labels. The mean over the C classes
        that occur is then too high by
            (k / C) sum over c of b_c,    b_c = -Cov(t_c - R0_c s_c, s_c) / s0_c^2 between R0_c - 1 and R0_c  (V30)
        t_c of the s_c members answered with their class, the covariance that of squared terms. The estimate is moved
        by half of that, and its interval reaches as much further on both sides.
        """
        members, counted = base.sum(0), base.sum(0) > 0
        recall = np.divide(np.diagonal(base), members, out=np.zeros(len(base)), where=counted)
        together = np.zeros(len(base))
        for rows, squares in self._squares_of_members:
            right = np.equal.outer(self.predictions[rows], np.arange(len(base)))
            together += (squares * (right - recall)).sum(0)
        too_high = np.clip(-np.divide(together, members**2, out=np.zeros(len(base)), where=counted), recall - 1, recall)
        kept = kept_of_members(positive(self.table), self.noise_of_members)
        return -kept * float(too_high.sum(where=counted)) / (2 * max(int(counted.sum()), 1))

    def _shift_to_labels(self, metric: Metric, value: float) -> float:
        """By how much a mean over members is moved towards its value on the weighted labels alone.

        An average precision is no linear function of the labels: where the belief has members at other scores than the
        truth has, its estimate to first order is off, while that of few labels is noisy. It is moved by
            (value of the labels - value) / 2 * 20 / max(20, labelled members)                                   (V19)
        and its interval reaches as much further on both sides.
        """
        counts = np.zeros(len(self.known))
        for part in self.parts:
            counts[part.labelled] += part.share_at(part.labelled) * self.weight[part.labelled]
            counts[part.rows] += part.terms(part.weight)
        labelled = counts > 0
        of_labels = metric.value(self.pool, LabelWeights.of_truth(self.known, self.n_classes, labelled, counts))
        members = int((self.known[labelled] == metric.classes[0]).sum())
        return 0.0 if math.isnan(of_labels) else (of_labels - value) / 2 * LEAST_DRAWN / max(members, LEAST_DRAWN)


def _moved_by_supposing(items: ItemInfluence, part: Part, supposed: Array) -> float:
    """By how much the table of a stage moves the metric more if it supposes this (N,) and not what it believes."""
    more = supposed - items.moments(part.belief)[0]
    return float((part.share_at(EVERY) * part.rest * more).sum() - part.terms(more[part.rows]).sum())


@dataclass(frozen=True)
class Side:
    """A metric at its point of linearisation: value, influence, sum over the points of (D - mean)^2.

    supposed  for each part (N,) m of (V18); None where it is what the part believes
    shift     by how much the value was moved, towards that of the labels alone (V19) or for a mean of recalls (V30)
    at_base   the metric at its point of linearisation
    """

    value: float
    items: ItemInfluence
    spread: float
    supposed: Sequence[Array] | None = None
    shift: float = 0.0
    at_base: float = math.nan

    def residuals(self, parts: Sequence[Part], known: Array) -> list[Array]:
        """For each part (n,) D_i(y_i) less what was supposed of it, of its sample."""
        return residuals_of(self.items, parts, known, self.supposed)

    def means(self, parts: Sequence[Part]) -> Iterator[Array]:
        """For each part (N,) what is supposed of D_i."""
        if self.supposed is not None:
            return iter(self.supposed)
        return (self.items.moments(part.belief)[0] for part in parts)


Sides = Sequence[tuple[float, Difference, Side]]
"""(factor, estimator of its points, side) of each part of a metric: one, or those of a difference."""


# ---------------------------------------------------------------- weights of the whole pool


@dataclass(frozen=True)
class _OfEstimator:
    """Weights that an estimator makes, of the points it is about."""

    estimator: Difference

    @property
    def n_classes(self) -> int:
        return self.estimator.n_classes

    @property
    def mass(self) -> Array:
        return self.estimator.inside * self.estimator.weight


@dataclass(frozen=True)
class Estimated(_OfEstimator):
    """What: as believed, and corrected at the samples; signed."""

    def table(self, rows: RowCodes) -> Array:
        expected, correction = self.estimator.tables(rows)
        return np.asarray(expected + correction)

    def of_class(self, code: int | Array) -> Array:
        return self.estimator.classes_expected(code) + self.estimator.classes_corrected(code)


@dataclass(frozen=True)
class Expected(_OfEstimator):
    """As believed, 0 or 1 where the label is known: not corrected."""

    def table(self, rows: RowCodes) -> Array:
        return self.estimator.tables(rows)[0]

    def of_class(self, code: int | Array) -> Array:
        return self.estimator.classes_expected(code)


@dataclass(frozen=True)
class Base(_OfEstimator):
    """W0, where metrics are linearised: as believed, and more of the correction the more labels.

    Ratios of noisy cells are wild; with `labels_per_class` labels of each class half of the correction is trusted.
    along  (N, C) scores along which the belief is corrected, in bins; None to leave it as it is
    steady whether numbers of members are drawn to those of answers (V15)
    """

    along: Array | None = None
    steady: bool = False

    def table(self, rows: RowCodes) -> Array:
        expected, correction = self.estimator.tables(rows)
        if self.steady:
            return with_steady_members(positive(expected + correction), self.estimator.noise_of_members)
        return positive(expected + self._trust(len(expected)) * correction)

    def of_class(self, code: int | Array) -> Array:
        expected = self.estimator.classes_expected(code)
        if self.along is None or not isinstance(code, int):
            return expected
        count, weight = int(np.clip(self.estimator.drawn // LABELS_PER_BIN, 1, MOST_BINS)), self.estimator.weight
        likely = self._with_slope_of_labels(code, expected)
        share_of_bin = self.mass / max(float(self.mass.sum()), 1e-300) + likely / max(float(likely.sum()), 1e-300)
        bins = bins_of(self.along[:, code], share_of_bin, count)  # where members are expected bins are narrower
        moved = np.bincount(bins, self.estimator.classes_corrected(code), count)
        totals = np.bincount(bins, expected, count) + self._trust(count) * moved
        return weight * shifted_odds(likely / weight, bins, totals, weight)

    def _with_slope_of_labels(self, code: int, expected: Array) -> Array:
        """(N,) what is expected, with log odds a + b times those of the belief; a and b fitted to the weighted labels.

        A belief that has the scores for better calibrated than they are has members of a rare class at other scores
        than the truth has, and a curve is far from linear in between.
        """
        estimator = self.estimator
        parts = [part for part in estimator.parts if len(part.rows)]
        if not parts:
            return expected
        odds = np.concatenate([log_odds(part.belief.rows(part.rows)[:, code]) for part in parts])
        member = np.concatenate([estimator.known[part.rows] == code for part in parts]).astype(np.float64)
        if not member.any():
            return expected
        counts = np.concatenate([part.stands_for for part in parts])
        columns, prior = np.column_stack([np.ones(len(odds)), odds]), np.array([0.0, 1.0])
        penalty = np.array([0.0, RECIPE.odds_penalty])
        level, slope = logistic_fit(columns, member, counts / counts.mean(), penalty, prior)
        weight = np.maximum(estimator.weight, 1e-300)
        chance = sigmoid(level + slope * log_odds(expected / weight))
        return np.where(estimator.unlabelled & (expected > 0), chance * estimator.weight, expected)

    def _trust(self, cells: int) -> float:
        return self.estimator.drawn / (self.estimator.drawn + RECIPE.labels_per_class * cells)
