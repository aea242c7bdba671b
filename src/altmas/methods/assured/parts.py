"""Part: the sample of one stage as it is seen from a set of points, with its expansion and its residuals (V5).

A part is what the difference estimator (estimator.py) adds up: one for each stage, or for each stage and domain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.belief import Belief
from altmas.methods.assured.stages import Stage
from altmas.methods.assured.whole_groups import heads, points_of_draw
from altmas.metrics import RowCodes
from altmas.metrics.influence import ItemInfluence
from altmas.types import Array

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class StageSample:
    """One stage with its belief. before (N,) labels of its points told before it; rows (n,) labels of its sample.

    left_open  the point without an answer that ended its sample, if points behind it were answered; else None
    folds      (N,) the fold of each point, whose labels the belief about it has not seen; None if nobody knows
    """

    stage: Stage
    belief: Belief
    before: Mask
    rows: Array
    left_open: int | None = None
    folds: Array | None = None

    def answers_in(self, inside: Mask) -> tuple[float, int]:
        """(n_s, N_s) of (V6) and (V12): answered draws of its sample, skipped ones included, and its points, inside.

        Without those of sets that are drawn whole if there are others inside: they say nothing of these.
        Of whole groups, as many draws as the groups of the sample bring on average (U6): which of them were drawn,
        large ones or small ones, must not decide how much the stage counts.
        """
        apart, units = self.stage.apart(inside), self.stage.units
        inside = inside if apart is None else inside & ~apart
        rows, population = self.stage.used[inside[self.stage.used]], np.flatnonzero(self.stage.population & inside)
        if units is None or not len(rows):
            return len(rows), len(population)
        groups, drawn = len(heads(population, units)), len(heads(rows, units))
        if drawn >= groups:
            return len(population), len(population)
        return min(drawn * points_of_draw(self.stage.sizes, units, population), len(population)), len(population)


FEW = 10
"""Labels of a stage, or groups, below which the mean of its residuals says too little to measure them around it."""


@dataclass(frozen=True)
class Part:
    """A stage seen from the points inside: rows (n,) of its sample, expansion (n,), labelled rows, the rest (N,).

    number  of the stage;  share  (K,) c_s of each fold, or (1,) for all
    ratio   whether the expansion is scaled to the number of points (h of (V5), (W2))
    weight  (n,) k of the sample
    left_open  (points, their expansion) that ended the sample and were left without an answer (V13), with the other
               points of their group; None if there are none
    units   (n,) the groups of the sample counted from 0, where whole groups are drawn; else None
    folds   (N,) as those of the stage
    alone   (n,) which of the sample are of a set drawn whole: they stand for this set and not for other points; None
            if none is
    row     (n,) the row of a table that each of the sample is in, by_row (n,) w of this row (V27); None if they are
            counted together
    """

    number: int
    stage: Stage
    belief: Belief
    share: Array
    rows: Array
    labelled: Array
    rest: Mask
    expansion: Array
    weight: Array
    ratio: bool = True
    left_open: tuple[Array, float] | None = None
    units: Array | None = None
    folds: Array | None = None
    alone: Mask | None = None
    row: Array | None = None
    by_row: Array | None = None

    @classmethod
    def of(
        cls, number: int, sample: StageSample, share: Array, inside: Mask, weight: Array, unscaled_below: int = 0
    ) -> "Part":
        """The stage's part in these points; with fewer labels than `unscaled_below` its expansion is not scaled.

        Nor is it with fewer than FEW groups, where these are drawn.
        """
        rows, groups = sample.rows[inside[sample.rows]], sample.stage.units
        units = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
        if units is not None:
            unscaled_below = FEW
        apart = sample.stage.apart(inside)
        alone = np.zeros(len(rows), np.bool_) if apart is None else apart[rows]
        labelled = np.concatenate([np.flatnonzero(sample.before & inside), rows])
        rest = inside.copy()
        rest[labelled] = False
        chance = np.maximum(sample.stage.chances[rows], 1e-12)
        odds = (1 - chance) / chance
        draws = int((~alone).sum()) if units is None else int(units.max(initial=-1)) + 1
        ratio, total = draws >= unscaled_below, float((odds * weight[rows])[~alone].sum())
        others = float(weight[rest if apart is None else rest & ~apart].sum())
        scale = (others / total if total > 0 else 0.0) if ratio else 1.0
        left_open = None
        if sample.left_open is not None and inside[sample.left_open]:
            missed = max(float(sample.stage.chances[sample.left_open]), 1e-12)
            own = 1.0 if apart is not None and apart[sample.left_open] else scale
            left_open = _with_group(sample, inside), 1 + own * (1 - missed) / missed
        return cls(
            number,
            sample.stage,
            sample.belief,
            share,
            rows,
            labelled,
            rest,
            odds * np.where(alone, 1.0, scale),
            weight[rows],
            ratio,
            left_open,
            units,
            sample.folds,
            alone if alone.any() else None,
        )

    @classmethod
    def unseen(cls, number: int, sample: StageSample, inside: Mask, known: Array, weight: Array) -> "Part":
        """Points that no stage with a label is about, as the belief of this one has them."""
        labelled, nothing = inside & (known >= 0), np.zeros(0, np.int64)
        rest = inside & ~labelled
        labelled_rows = np.flatnonzero(labelled)
        return cls(
            number, sample.stage, sample.belief, np.ones(1), nothing, labelled_rows, rest, np.zeros(0), weight[nothing]
        )

    def counted_by(self, rows: RowCodes, weight: Array) -> "Part":
        """The part with expansions that add up to the points left in each row of a table, as far as draws reach it.

        The sample of a row stands for S of the U points that are left in it: how many were drawn there is luck. Where
        the belief is right about the row that matters little; elsewhere S / U of what it is off by is corrected, which
        may be far too much or too little. The expansions of the row are multiplied by
            1 + w (U - S) / S,    w = max(0, 1 - 2 v)                                              (V27)
        v the relative variance of S: 1 / E where draws are uniform and bring E labels to the row on average, more
        where they differ. Neither how many came nor what they say moves w: were rows of many labels alone counted by
        themselves, they would be scaled down and those of few never up, and the belief would be corrected too little.
        """
        if not self.ratio or self.units is not None or not len(self.rows):
            return self
        free = np.ones(len(self.rows), np.bool_) if self.alone is None else ~self.alone
        left = self.rest if self.alone is None or self.stage.whole is None else self.rest & ~self.stage.whole
        open_ = left.copy()
        open_[self.rows[free]] = True
        trusted = np.maximum(0.0, 1 - 2 * self._variance_of_counts(rows, open_, weight))
        own, points = rows.codes[self.rows], np.bincount(rows.codes[left], weight[left], rows.count)
        stands_for = np.bincount(own, self.expansion * self.weight * free, rows.count)
        more = np.divide(points - stands_for, stands_for, out=np.zeros(rows.count), where=stands_for > 0)
        by_row = np.where(free, trusted[own], 0.0)
        return replace(self, expansion=self.expansion * (1 + by_row * more[own]), row=own, by_row=by_row)

    def _variance_of_counts(self, rows: RowCodes, open_: Mask, weight: Array) -> Array:
        """v of (V27) for each row: sum of k^2 (1 - p)^3 / p over the square of sum of k (1 - p)^2, infinite if 0."""
        codes, chance = rows.codes[open_], np.maximum(self.stage.chances[open_], 1e-12)
        variance = np.bincount(codes, weight[open_] ** 2 * (1 - chance) ** 3 / chance, rows.count)
        mean = np.bincount(codes, weight[open_] * (1 - chance) ** 2, rows.count)
        return np.asarray(np.divide(variance, mean**2, out=np.full(rows.count, np.inf), where=mean > 0))

    def share_at(self, rows: Array | slice) -> Array:
        """c_s of these points, each by its fold; (1,) if it is the same for all."""
        return by_fold(self.share, self.folds, rows)

    @property
    def stands_for(self) -> Array:
        """(n,) c_s k (1 + h (1/p - 1)): how many rows each label of the sample stands for."""
        return np.asarray(self.share_at(self.rows) * (1 + self.expansion) * self.weight)

    def terms(self, residuals: Array) -> Array:
        """(n,) what the correction is the sum of: c_s h (1/p - 1) e."""
        return np.asarray(self.share_at(self.rows) * self.expansion * residuals)

    def squares(self, residuals: Array) -> Array:
        """(n,) squared terms whose sum estimates Var (c_s T_s): (h (1/p - 1) (c_s e - mean of c_s e))^2 / (1 - p)."""
        return np.asarray(self.centred(residuals) ** 2)

    def centred(self, residuals: Array) -> Array:
        """(n,) the roots of `squares`, signed."""
        shared = self._less_row_means(self.share_at(self.rows) * residuals)
        centre, lost, chance = *self._centre(shared), self.stage.chances[self.rows]
        if self.alone is not None:
            centre, lost = np.where(self.alone, 0.0, centre), np.where(self.alone, 1.0, lost)
        scale = self.expansion * np.sqrt(lost / np.maximum(1 - chance, 1e-12))
        return np.asarray(scale * (shared - centre * self.weight))

    def _less_row_means(self, residuals: Array) -> Array:
        """(n,) residuals less what counting by rows takes off them, a of their mean by unit of weight in the row.

            a = w (m - 1) / (m + 1),    m labels in the row                                        (V29)
        A label alone keeps its residual, and few that are alike most of it. Multiplied by the root of
        m / (m - 2 a + a^2), so that the sum of squares of independent residuals of mean 0 stays what it is on average.
        """
        if self.row is None or self.by_row is None:
            return residuals
        counts = self.expansion * (self.by_row > 0)
        totals, sums = (np.bincount(self.row, counts * of) for of in (self.weight, residuals))
        means = np.divide(sums, totals, out=np.zeros(len(sums)), where=totals > 0)[self.row]
        labels = np.maximum(np.bincount(self.row, counts > 0)[self.row], 1.0)
        taken = self.by_row * (labels - 1) / (labels + 1)
        return np.asarray((residuals - taken * means * self.weight) * np.sqrt(labels / (labels - 2 * taken + taken**2)))

    def _centre(self, residuals: Array) -> tuple[Any, Any]:
        """The mean by unit of weight that a ratio takes off the residuals, and what the degree of freedom costs.

        Nothing with fewer than FEW labels, or groups: around its own mean a single residual would have no variance.
        """
        counts = self.expansion if self.alone is None else self.expansion * ~self.alone
        total, n = float((counts * self.weight).sum()), len(counts) if self.alone is None else int((~self.alone).sum())
        if self.units is not None:
            n = int(self.units.max(initial=-1)) + 1
        if not self.ratio or n < FEW or total <= 0:
            return 0.0, 1.0
        return float((counts * residuals).sum()) / total, n / (n - 1)


def _with_group(sample: StageSample, inside: Mask) -> Array:
    """The point that ended a sample, with the other points of its group where whole groups are drawn."""
    units = sample.stage.units
    if units is None or sample.left_open is None:
        return np.array([sample.left_open])
    return np.flatnonzero(sample.stage.population & inside & (units == units[sample.left_open]))


def by_fold(values: Array, folds: Array | None, rows: Array | slice) -> Array:
    """The values (K,) of the folds at these points; (1,) if there is one for all."""
    if len(values) == 1:
        return values
    assert folds is not None
    return np.asarray(values[folds[rows]])


def shares_in(samples: Sequence[StageSample], rows: slice) -> Array:
    """(S, K) c_sd of (V7): the shares of the stages about one domain, which add up to 1 in every fold."""
    worth = []
    for sample in samples:
        inside, sizes = np.zeros(len(sample.stage.population), np.bool_), sample.stage.sizes
        inside[rows] = True
        apart = sample.stage.apart(inside)
        counted = sample.stage.population if apart is None else sample.stage.population & ~apart
        size = int(counted[rows].sum())
        if size == 0:  # every label was known when it began: exact
            worth.append(np.full(1, 1e30))
            continue
        drawn = int(counted[sample.stage.used].sum())
        n = min(drawn * float(sizes[inside & counted].sum()) / float(sizes[counted].sum()), float(size))
        worth.append(sample.stage.gain * n / (size * max(size - n, 1e-9)))
    return in_shares(worth)


def in_shares(worth: Sequence[Array]) -> Array:
    """(S, K) shares in proportion to what each stage is worth, (K,) or (1,); they add up to 1 in every fold.

    Equal ones where no stage is worth anything: each has drawn points of sets that it draws whole, and no other yet.
    """
    values = np.stack(np.broadcast_arrays(*worth))
    total, alike = values.sum(0), np.full(values.shape, 1 / len(values))
    return np.asarray(np.divide(values, total, out=alike, where=total > 0))


def shares_among(samples: Sequence[StageSample], inside: Mask, otherwise: Array) -> Array:
    """(S, K) c_s of (V12): the shares of the stages for some of the points, by the labels that fell among these.

    Given their number, whatever it is, they are a sample of these points; a stage without one says nothing of them but
    what it believes. `otherwise` where no stage has a label there.
    """
    worth = []
    for sample in samples:
        n, size = sample.answers_in(inside)
        worth.append(np.full(1, 1e30) if size == 0 else sample.stage.gain * n / (size * max(size - n, 1e-9)))
    return in_shares(worth) if any(float(own.max()) > 0 for own in worth) else otherwise


def residuals_of(
    items: ItemInfluence, parts: Sequence[Part], known: Array, supposed: Sequence[Array] | None = None
) -> list[Array]:
    """For each part (n,) D_i(y_i) - E_f D_i of its sample; less what is supposed (N,) in place of E_f D, if given."""
    residuals = []
    for place, part in enumerate(parts):
        expected = items.mean(part.rows, part.belief) if supposed is None else supposed[place][part.rows]
        residuals.append(items.at(part.rows, known[part.rows]) - expected)
    return residuals
