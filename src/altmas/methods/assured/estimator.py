"""From stages and beliefs to the table of the whole pool, and from there to every metric: the difference estimator.

N points, C classes. Stage s began with a population of open points; its belief f_s has seen labels told before it began
and labels of its own sample outside the point's fold, so nothing that a point's label did has influenced f_s[i] or p_i.
    T_s  = table of labels told before  +  labels of its sample  +  sum over the rest of f_s[i]
           + h_s * sum over its sample of (1/p_i - 1) e_i,     e_i = onehot(y_i) - f_s[i]                       (V5)
    h_s  = (points of T_s without a label) / sum over the sample of (1/p_i - 1)
    That = sum_s c_s T_s,   c_s in proportion to gain_s n_s / (N_s (N_s - n_s))                                 (V6)
with N_s points in the population of the stage, n_s labels in its sample, and the gain expected when it began: one over
the variance of T_s, as far as it was known before the stage had a label.
A pool that grew has domains d, points that came together. A stage is about the domains that were there when it began:
    That = sum_d sum over the stages about d of c_sd T_sd,   c_sd as in (V6) with N_sd and n_sd in place of N_s and n_s
    n_sd = n_s * (sum of sizes over the population in d) / (sum of sizes over the population)                   (V7)
and h_sd = 1 where fewer than `FEW` of its labels fall into d. Of a domain that no stage with a label is about nothing
is known: its unlabelled points may be anything, which is added to the interval on both sides.
Rows of e add up to 0, so the row sums of That are the known ones. A wrong belief costs width, never validity.
A metric is Q(B) + <D(B), That - B>, linearised at a table B near That: exact for accuracy and precision.
Other metrics need the weights W[i, c] that tables are sums of, with the same formula for each point: What and, for the
point of linearisation, W0: the belief, with odds shifted so that bins of the metric's score hold as many points of the
class as That says (S10). A difference of metrics has the difference of their terms and influences.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from altmas.belief import Belief
from altmas.intervals import Evidence, largest_unseen
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.stages import Stage
from altmas.metrics import LabelWeights, Metric, RowCodes, table_of
from altmas.metrics.formulas import positive
from altmas.metrics.influence import ItemInfluence, SumOfItems
from altmas.metrics.scores import bins_of
from altmas.pool import Pool
from altmas.types import Array

Mask = NDArray[np.bool_]

FEW = 10
"""Labels of a stage in a domain below which its correction is that of Horvitz and Thompson: exact, without a ratio."""

LABELS_PER_BIN, MOST_BINS = 20, 8
"""Drawn labels for each bin along a score in which the belief is shifted, and the most bins."""


@dataclass(frozen=True)
class StageSample:
    """One stage with its belief. before (N,) labels of its points told before it; rows (n,) labels of its sample."""

    stage: Stage
    belief: Belief
    before: Mask
    rows: Array


@dataclass(frozen=True)
class Difference:
    """The difference estimator of one set of points (the pool, or a slice).

    samples  stages with at least one label;  known (N,) labels, -1 where there is none
    inside   (N,) mask of the points the estimate is about;  skipped  rows that got no label
    domains  rows that came together, in order; None for a pool that never grew
    """

    samples: Sequence[StageSample]
    pool: Pool
    known: Array
    inside: Mask
    skipped: Array
    domains: Sequence[slice] | None = None

    @property
    def predictions(self) -> Array:
        """(N,) answers of the pool's first model."""
        return self.pool.predictions

    @cached_property
    def n_classes(self) -> int:
        """C."""
        return len(self.pool.classes)

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
        """(S,) c_s of (V6)."""
        worth = []
        for one in self.samples:
            size, n = int(one.stage.population.sum()), len(one.rows)
            worth.append(one.stage.gain * n / (size * max(size - n, 1e-9)))
        return np.asarray(worth) / sum(worth)

    @cached_property
    def parts(self) -> list["_Part"]:
        """The stages as they are seen from the points inside, one for each domain."""
        if self.domains is None or len(self.domains) == 1:
            return [
                _Part.of(number, one, share, self.inside, self.known)
                for number, (one, share) in enumerate(zip(self.samples, self.shares, strict=True))
            ]
        return [part for rows in self.domains if self.inside[rows].any() for part in self._parts_in(rows)]

    def _parts_in(self, rows: slice) -> list["_Part"]:
        """The stages about one domain; the belief of the last stage, uncorrected, where there is none."""
        inside = np.zeros(len(self.known), np.bool_)
        inside[rows] = self.inside[rows]
        about = [(number, one) for number, one in enumerate(self.samples) if one.stage.within[rows].all()]
        if not about:
            return [_Part.unseen(len(self.samples) - 1, self.samples[-1], inside, self.known)]
        shares = shares_in([one for _, one in about], rows)
        return [
            _Part.of(number, one, share, inside, self.known, few=FEW)
            for (number, one), share in zip(about, shares.tolist(), strict=True)
        ]

    @cached_property
    def unreached(self) -> Mask:
        """(N,) unlabelled points inside that no stage with a label is about."""
        reached = np.zeros(len(self.known), np.bool_)
        for one in self.samples:
            reached |= one.stage.within
        return self.unlabelled & ~reached

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
    def known_weights(self) -> LabelWeights:
        """The weights of the labelled points alone."""
        return LabelWeights.of_truth(self.known, self.n_classes, self.inside & (self.known >= 0))

    def tables(self, rows: RowCodes) -> tuple[Array, Array]:
        """(R, C) each: the table as believed, known labels where there are; and its correction, rows that add up to 0.

        correction = sum_s c_s h_s * sum over the sample of (1/p - 1) e
        """
        if rows.key not in self._tables:
            expected = np.asarray(sum(part.share * self._expected(part, rows) for part in self.parts))
            correction = np.zeros_like(expected)
            for part in self.parts:
                codes, weights = rows.codes[part.rows], part.share * part.expansion
                np.add.at(correction, (codes, self.known[part.rows]), weights)
                np.subtract.at(correction, codes, part.belief.rows(part.rows) * weights[:, None])
            self._tables[rows.key] = expected, correction
        return self._tables[rows.key]

    def _expected(self, part: "_Part", rows: RowCodes) -> Array:
        labelled = rows.codes[part.labelled], self.known[part.labelled]
        known = table_of(*labelled, self.n_classes, n_rows=rows.count)
        return np.asarray(known + part.belief.table_by(rows.codes, rows.count, part.rest))

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
        codes, found = np.broadcast_to(code, len(self.known)), np.zeros(len(self.known))
        for part in self.parts:
            weight = np.where(part.rest, part.belief.of_class(code), 0.0)
            weight[part.labelled] = self.known[part.labelled] == codes[part.labelled]
            found += part.share * weight
        return found

    def classes_corrected(self, code: int | Array) -> Array:
        """(N,) the correction of W[i, code], 0 but at the samples."""
        codes, found = np.broadcast_to(code, len(self.known)), np.zeros(len(self.known))
        for part in self.parts:
            wanted = codes[part.rows]
            believed = part.belief.rows(part.rows)[np.arange(len(part.rows)), wanted]
            found[part.rows] += part.share * part.expansion * ((self.known[part.rows] == wanted) - believed)
        return found

    @cached_property
    def spread_of_weights(self) -> tuple[Array, Array]:
        """(N,) each: sum_s c_s^2 and sum_s c_s^3 times the second and third moment of (drawn / p_i - 1), if unlabelled.

        A point is still without a label with chance 1 - pi, so the sum over those that are estimates that over all.
        """
        second, third = np.zeros(len(self.known)), np.zeros(len(self.known))
        for part in self.parts:
            chance = np.maximum(part.stage.chances, 1e-9)
            odds = np.where(part.stage.population & part.rest, (1 - chance) / chance, 0.0)
            second += part.share**2 * odds
            third += part.share**3 * odds * np.maximum(1 / chance - 2, 0.0)
        left = np.where(self.unlabelled, np.exp(np.minimum(self.exposure, 14.0)), 0.0)
        return second * left, third * left

    def side(self, metric: Metric) -> "Side":
        """The value of a metric of these points, and the influence that its terms are made of; found once for each."""
        if id(metric) not in self._sides:
            self._sides[id(metric)] = metric, self._side(metric)
        return self._sides[id(metric)][1]

    def _side(self, metric: Metric) -> "Side":
        whole = Estimated(self)
        base = whole if metric.taken_at_estimate else Base(self, metric.along(self.pool))
        at_base, items = metric.at(self.pool, base)
        value = at_base + items.dot(whole, base)
        if not self.unlabelled.any():
            value = metric.value(self.pool, self.known_weights)
        return Side(value, items, items.spread(base))

    def linearised(self, metric: Metric, tail: float) -> "Linearised":
        """The metric's estimate and what its interval is made of; tail = log(1 / chance of a miss on one side)."""
        side = self.side(metric)
        terms = [part.share * part.expansion * residuals_of(side.items, part, self.known) for part in self.parts]
        squares = [part.squares(residuals_of(side.items, part, self.known)) for part in self.parts]
        rows = np.concatenate([part.rows for part in self.parts])
        low, high = self._anything(side.items)
        own = metric.own_points(self.pool)
        members = [np.ones(len(self.known), np.bool_)] if own is None else [own, ~own]
        found = np.concatenate(squares)
        return Linearised(
            metric=metric,
            value=side.value,
            groups=self._groups(side.items, members, found, rows, tail),
            spread=side.spread,
            size=int(self.inside.sum()),
            labels=self.labels,
            drawn=self.drawn,
            unlabelled=int(self.unlabelled.sum()),
            skipped=int(self.inside[self.skipped].sum()),
            classes=self.n_classes,
            terms=np.concatenate(terms),
            rows=rows,
            half_point=self._largest_change(side.items) / 2,
            too_high=metric.excess(self.pool, np.bincount(rows, found, len(self.known))) + low,
            too_low=high,
            unreached=int(self.unreached.sum()),
            estimator=self,
            sides=((1.0, self, side.items),),
        )

    def _anything(self, items: ItemInfluence) -> tuple[float, float]:
        """How much lower and higher the metric could be if unreached points are not as believed."""
        if not self.unreached.any():
            return 0.0, 0.0
        mean, _ = items.moments(self.belief)
        lowest, highest = items.range()
        return tuple(float(gain[self.unreached].sum()) for gain in (mean - lowest, highest - mean))  # type: ignore[return-value]

    def _largest_change(self, items: ItemInfluence) -> float:
        """How much the label of one unlabelled point can change the metric at most."""
        lowest, highest = items.range()
        return float((highest - lowest)[self.unlabelled].max(initial=0.0))

    def _groups(
        self, items: ItemInfluence, members: Sequence[Mask], squares: Array, rows: Array, tail: float
    ) -> list["Group"]:
        """Parts of the variance: of the points answered with the metric's class and of the others, or of all."""
        mean, variance = items.moments(self.belief)
        second, third = self.spread_of_weights
        believed, skewed = variance * second, items.third_moment(self.belief) * third
        lowest, highest = items.range()

        def group(members: Mask) -> Group:
            shown, left = squares[members[rows]], self.unlabelled & members & ~self.unreached
            total = float(shown.sum())
            return Group(
                shown=total,
                worth=total**2 / float((shown**2).sum()) if total > 0 else 0.0,
                believed=float(believed[members].sum()),
                third=float(skewed[members].sum()),
                unseen_low=largest_unseen((mean - lowest)[left], self.exposure[left], tail),
                unseen_high=largest_unseen((highest - mean)[left], self.exposure[left], tail),
            )

        return [group(one) for one in members]


def linearised_sum(metric: Metric, among: Callable[[Mask | None], Difference], tail: float) -> "Linearised":
    """A difference of metrics, each of its own points and model: terms and influences are added point by point.

    among  the difference estimator of a set of points (None: the whole pool)
    """
    whole = among(None)
    pool, known = whole.pool, whole.known
    union = among(metric.members(pool))
    n_stages, n_points = len(union.samples), len(known)
    terms, centred = np.zeros((n_stages, n_points)), np.zeros((n_stages, n_points))
    parts, sides, value, too_high, too_low = [], [], 0.0, 0.0, 0.0
    for factor, side_metric in metric.parts:
        members = side_metric.members(pool)
        estimator = among(members)
        side = estimator.side(side_metric)
        value += factor * side.value
        parts.append((factor, side.items, members))
        sides.append((factor, estimator, side.items))
        squares = np.zeros(n_points)
        for part in estimator.parts:
            stage, residuals = part.number, residuals_of(side.items, part, known)
            terms[stage, part.rows] += factor * part.share * part.expansion * residuals
            moved = factor * part.centred(residuals)
            centred[stage, part.rows] += moved
            squares[part.rows] += moved**2
        excess = side_metric.excess(pool, squares)
        too_high, too_low = (too_high + excess, too_low) if factor > 0 else (too_high, too_low + excess)
    items = SumOfItems(parts)
    low, high = union._anything(items)
    stages = [(part.number, part.rows) for part in union.parts]
    rows = np.concatenate([rows for _, rows in stages])
    found = np.concatenate([centred[stage, rows] for stage, rows in stages]) ** 2
    return Linearised(
        metric=metric,
        value=value,
        groups=union._groups(items, [np.ones(n_points, np.bool_)], found, rows, tail),
        spread=items.spread(Base(union)),
        size=int(union.inside.sum()),
        labels=union.labels,
        drawn=min(among(side_metric.members(pool)).drawn for _, side_metric in metric.parts),
        unlabelled=int(union.unlabelled.sum()),
        skipped=int(union.inside[union.skipped].sum()),
        classes=union.n_classes,
        terms=np.concatenate([terms[stage, rows] for stage, rows in stages]),
        rows=rows,
        half_point=union._largest_change(items) / 2,
        too_high=too_high + low,
        too_low=too_low + high,
        unreached=int(union.unreached.sum()),
        estimator=union,
        sides=sides,
    )


def residuals_of(items: ItemInfluence, part: "_Part", known: Array) -> Array:
    """(n,) D_i(y_i) - E_f D_i of the stage's sample."""
    return np.asarray(items.at(part.rows, known[part.rows]) - items.mean(part.rows, part.belief))


@dataclass(frozen=True)
class Side:
    """A metric at its point of linearisation: value, influence, sum over the points of (D - mean)^2."""

    value: float
    items: ItemInfluence
    spread: float


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
        return self.estimator.inside.astype(np.float64)


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
    """

    along: Array | None = None

    def table(self, rows: RowCodes) -> Array:
        expected, correction = self.estimator.tables(rows)
        return positive(expected + self._trust(len(expected)) * correction)

    def of_class(self, code: int | Array) -> Array:
        expected = self.estimator.classes_expected(code)
        if self.along is None or not isinstance(code, int):
            return expected
        count = int(np.clip(self.estimator.drawn // LABELS_PER_BIN, 1, MOST_BINS))
        bins = bins_of(self.along[:, code], self.mass, count)
        moved = np.bincount(bins, self.estimator.classes_corrected(code), count)
        return shifted_odds(expected, bins, np.bincount(bins, expected, count) + self._trust(count) * moved)

    def _trust(self, cells: int) -> float:
        return self.estimator.drawn / (self.estimator.drawn + RECIPE.labels_per_class * cells)


@dataclass(frozen=True)
class Believed:
    """W as one belief has it, labels aside; members (N,) the points inside, or None for all."""

    belief: Belief
    members: Mask | None = None

    @property
    def n_classes(self) -> int:
        return self.belief.n_classes

    @property
    def mass(self) -> Array:
        return np.ones(len(self.belief.agree)) if self.members is None else self.members.astype(np.float64)

    def table(self, rows: RowCodes) -> Array:
        return self.belief.table_by(rows.codes, rows.count, self.members)

    def of_class(self, code: int | Array) -> Array:
        found = self.belief.of_class(code)
        return found if self.members is None else np.where(self.members, found, 0.0)


def shifted_odds(chances: Array, bins: Array, totals: Array) -> Array:
    """(N,) the chances with odds multiplied by one factor in each bin, so that they add up to these totals.  (S10)

    Chances of 0 and 1 stay; a total that cannot be reached is come as close to as a factor of e^10 allows.
    """
    low, high = np.full(len(totals), -10.0), np.full(len(totals), 10.0)
    odds = chances / np.maximum(1 - chances, 1e-300)
    open_ = (chances > 0) & (chances < 1)

    def shifted(shift: Array) -> Array:
        factor = np.exp(shift)[bins] * odds
        return np.where(open_, factor / (1 + factor), chances)

    for _ in range(30):
        middle = (low + high) / 2
        enough = np.bincount(bins, shifted(middle), len(totals)) >= totals
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return shifted((low + high) / 2)


@dataclass(frozen=True)
class _Part:
    """A stage seen from the points inside: rows (n,) of its sample, expansion (n,), labelled rows, the rest (N,).

    number  the place of the stage;  ratio  whether the expansion is scaled to the number of points (h of (V5))
    """

    number: int
    stage: Stage
    belief: Belief
    share: float
    rows: Array
    labelled: Array
    rest: Mask
    expansion: Array
    ratio: bool = True

    @classmethod
    def of(cls, number: int, sample: StageSample, share: float, inside: Mask, known: Array, few: int = 0) -> "_Part":
        """The stage's part in these points; with fewer labels than `few` its expansion is not scaled."""
        rows = sample.rows[inside[sample.rows]]
        labelled = np.concatenate([np.flatnonzero(sample.before & inside), rows])
        rest = inside.copy()
        rest[labelled] = False
        chance = np.maximum(sample.stage.chances[rows], 1e-12)
        odds = (1 - chance) / chance
        if len(rows) < few:
            return cls(number, sample.stage, sample.belief, share, rows, labelled, rest, odds, ratio=False)
        total = float(odds.sum())
        expansion = odds * (rest.sum() / total) if total > 0 else odds * 0.0
        return cls(number, sample.stage, sample.belief, share, rows, labelled, rest, expansion)

    @classmethod
    def unseen(cls, number: int, sample: StageSample, inside: Mask, known: Array) -> "_Part":
        """Points that no stage with a label is about, as the belief of this one has them."""
        labelled, nothing = inside & (known >= 0), np.zeros(0, np.int64)
        rest = inside & ~labelled
        return cls(number, sample.stage, sample.belief, 1.0, nothing, np.flatnonzero(labelled), rest, np.zeros(0))

    def squares(self, residuals: Array) -> Array:
        """(n,) squared terms whose sum estimates c_s^2 Var T_s: (c_s h (1/p - 1) (e - mean))^2 / (1 - p)."""
        centre, lost, chance = *self._centre(residuals), self.stage.chances[self.rows]
        scale = (self.share * self.expansion) ** 2 / np.maximum(1 - chance, 1e-12) * lost
        return np.asarray(scale * (residuals - centre) ** 2)

    def centred(self, residuals: Array) -> Array:
        """(n,) the roots of `squares`, signed."""
        centre, lost, chance = *self._centre(residuals), self.stage.chances[self.rows]
        scale = self.share * self.expansion * np.sqrt(lost / np.maximum(1 - chance, 1e-12))
        return np.asarray(scale * (residuals - centre))

    def _centre(self, residuals: Array) -> tuple[float, float]:
        """The mean that a ratio takes off the residuals, and the factor for the degree of freedom that it costs."""
        total, n = float(self.expansion.sum()), len(residuals)
        if not self.ratio or total <= 0:
            return 0.0, 1.0
        return float((self.expansion * residuals).sum()) / total, n / max(n - 1, 1)


def shares_in(samples: Sequence[StageSample], rows: slice) -> Array:
    """(S,) c_sd of (V7): the shares of the stages about one domain, which add up to 1."""
    worth = []
    for one in samples:
        here, sizes = one.stage.population[rows], one.stage.sizes
        size = int(here.sum())
        if size == 0:  # every label was known when it began: exact
            worth.append(1e30)
            continue
        whole = float(sizes[one.stage.population].sum())
        n = min(len(one.rows) * float(sizes[rows][here].sum()) / whole, float(size))
        worth.append(one.stage.gain * n / (size * max(size - n, 1e-9)))
    return np.asarray(worth) / sum(worth)


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
    too_high, too_low  most by which the estimate is off on average, to either side
    estimator  of all points that it is about;  sides  (factor, estimator of its points, influence) of each part
    unreached  points that no stage with a label is about: they may be anything
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
    estimator: Difference
    sides: Sequence[tuple[float, Difference, ItemInfluence]]
    half_point: float = 0.0
    too_high: float = 0.0
    too_low: float = 0.0
    unreached: int = 0

    @cached_property
    def variance(self) -> float:
        """Variance of the estimate at its value."""
        return self.evidence(self.value).variance

    def evidence(self, candidate: float) -> Evidence:
        """What the labels say if the metric is `candidate` (V3).

        The variance is what squared residuals show, and not less than the mean of that and of what the belief expects,
        weighted by degrees of freedom: with few errors among the labels their squares are a poor witness.
        """
        scales = self.metric.scales_at(self.value, candidate) if len(self.groups) == 2 else (1.0,)
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
