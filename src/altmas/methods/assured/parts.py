"""Part: the sample of one stage as it is seen from a set of points, with its expansion and its residuals (V5).

A part is what the difference estimator (estimator.py) adds up: one for each stage, or for each stage and domain.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from altmas.belief import Belief
from altmas.methods.assured.stages import Stage
from altmas.methods.assured.whole_groups import heads, points_of_draw
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

    def answers_in(self, inside: Mask | None = None) -> float:
        """n_s of (V6) and (V12): answered draws of its sample, skipped ones included, inside if given.

        Of whole groups, as many as the groups of the sample bring on average (U6): which of them were drawn, large ones
        or small ones, must not decide how much the stage counts.
        """
        answered = self.stage.used
        rows = answered if inside is None else answered[inside[answered]]
        units = self.stage.units
        if units is None or not len(rows):
            return len(rows)
        population = np.flatnonzero(self.stage.population if inside is None else self.stage.population & inside)
        groups, drawn = len(heads(population, units)), len(heads(rows, units))
        if drawn >= groups:
            return len(population)
        return min(drawn * points_of_draw(self.stage.sizes, units, population), len(population))


FEW = 10
"""Labels of a stage, or groups, below which the mean of its residuals says too little to measure them around it."""


@dataclass(frozen=True)
class Part:
    """A stage seen from the points inside: rows (n,) of its sample, expansion (n,), labelled rows, the rest (N,).

    number  of the stage;  ratio  whether the expansion is scaled to the number of points (h of (V5), (W2))
    weight  (n,) k of the sample
    left_open  (points, their expansion) that ended the sample and were left without an answer (V13), with the other
               points of their group; None if there are none
    units   (n,) the groups of the sample counted from 0, where whole groups are drawn; else None
    folds   (N,) as those of the stage
    """

    number: int
    stage: Stage
    belief: Belief
    share: float
    rows: Array
    labelled: Array
    rest: Mask
    expansion: Array
    weight: Array
    ratio: bool = True
    left_open: tuple[Array, float] | None = None
    units: Array | None = None
    folds: Array | None = None

    @classmethod
    def of(
        cls, number: int, sample: StageSample, share: float, inside: Mask, weight: Array, unscaled_below: int = 0
    ) -> "Part":
        """The stage's part in these points; with fewer labels than `unscaled_below` its expansion is not scaled.

        Nor is it with fewer than FEW groups, where these are drawn.
        """
        rows, groups = sample.rows[inside[sample.rows]], sample.stage.units
        units = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
        if units is not None:
            unscaled_below = FEW
        labelled = np.concatenate([np.flatnonzero(sample.before & inside), rows])
        rest = inside.copy()
        rest[labelled] = False
        chance = np.maximum(sample.stage.chances[rows], 1e-12)
        odds = (1 - chance) / chance
        draws = len(rows) if units is None else int(units.max(initial=-1)) + 1
        ratio, total = draws >= unscaled_below, float((odds * weight[rows]).sum())
        scale = (float(weight[rest].sum()) / total if total > 0 else 0.0) if ratio else 1.0
        left_open = None
        if sample.left_open is not None and inside[sample.left_open]:
            missed = max(float(sample.stage.chances[sample.left_open]), 1e-12)
            left_open = _with_group(sample, inside), 1 + scale * (1 - missed) / missed
        return cls(
            number,
            sample.stage,
            sample.belief,
            share,
            rows,
            labelled,
            rest,
            odds * scale,
            weight[rows],
            ratio,
            left_open,
            units,
            sample.folds,
        )

    @classmethod
    def unseen(cls, number: int, sample: StageSample, inside: Mask, known: Array, weight: Array) -> "Part":
        """Points that no stage with a label is about, as the belief of this one has them."""
        labelled, nothing = inside & (known >= 0), np.zeros(0, np.int64)
        rest = inside & ~labelled
        labelled_rows = np.flatnonzero(labelled)
        return cls(number, sample.stage, sample.belief, 1.0, nothing, labelled_rows, rest, np.zeros(0), weight[nothing])

    def squares(self, residuals: Array) -> Array:
        """(n,) squared terms whose sum estimates c_s^2 Var T_s: (c_s h (1/p - 1) (e - mean))^2 / (1 - p)."""
        return np.asarray(self.centred(residuals) ** 2)

    def centred(self, residuals: Array) -> Array:
        """(n,) the roots of `squares`, signed."""
        centre, lost, chance = *self._centre(residuals), self.stage.chances[self.rows]
        scale = self.share * self.expansion * np.sqrt(lost / np.maximum(1 - chance, 1e-12))
        return np.asarray(scale * (residuals - centre * self.weight))

    def _centre(self, residuals: Array) -> tuple[float, float]:
        """The mean by unit of weight that a ratio takes off the residuals, and what the degree of freedom costs.

        Nothing with fewer than FEW labels, or groups: around its own mean a single residual would have no variance.
        """
        total, n = float((self.expansion * self.weight).sum()), len(residuals)
        if self.units is not None:
            n = int(self.units.max(initial=-1)) + 1
        if not self.ratio or n < FEW or total <= 0:
            return 0.0, 1.0
        return float((self.expansion * residuals).sum()) / total, n / (n - 1)


def _with_group(sample: StageSample, inside: Mask) -> Array:
    """The point that ended a sample, with the other points of its group where whole groups are drawn."""
    units = sample.stage.units
    if units is None or sample.left_open is None:
        return np.array([sample.left_open])
    return np.flatnonzero(sample.stage.population & inside & (units == units[sample.left_open]))


def shares_in(samples: Sequence[StageSample], rows: slice) -> Array:
    """(S,) c_sd of (V7): the shares of the stages about one domain, which add up to 1."""
    worth = []
    for sample in samples:
        members, sizes = sample.stage.population[rows], sample.stage.sizes
        size = int(members.sum())
        if size == 0:  # every label was known when it began: exact
            worth.append(1e30)
            continue
        whole = float(sizes[sample.stage.population].sum())
        n = min(len(sample.stage.used) * float(sizes[rows][members].sum()) / whole, float(size))
        worth.append(sample.stage.gain * n / (size * max(size - n, 1e-9)))
    return np.asarray(worth) / sum(worth)


def shares_among(samples: Sequence[StageSample], inside: Mask, otherwise: Array) -> Array:
    """(S,) c_s of (V12): the shares of the stages for some of the points, by the labels that fell among these.

    Given their number, whatever it is, they are a sample of these points; a stage without one says nothing of them but
    what it believes. `otherwise` where no stage has a label there.
    """
    worth = []
    for sample in samples:
        n, size = sample.answers_in(inside), int((sample.stage.population & inside).sum())
        worth.append(1e30 if size == 0 else sample.stage.gain * n / (size * max(size - n, 1e-9)))
    return np.asarray(worth) / sum(worth) if sum(worth) > 0 else otherwise


def residuals_of(
    items: ItemInfluence, parts: Sequence[Part], known: Array, supposed: Sequence[Array] | None = None
) -> list[Array]:
    """For each part (n,) D_i(y_i) - E_f D_i of its sample; less what is supposed (N,) in place of E_f D, if given."""
    residuals = []
    for place, part in enumerate(parts):
        expected = items.mean(part.rows, part.belief) if supposed is None else supposed[place][part.rows]
        residuals.append(items.at(part.rows, known[part.rows]) - expected)
    return residuals
