"""Skips: figures are about the points that can be labelled; which of the others these are, the draws show.

A point that was drawn and skipped belongs to no figure. Of the points without an answer whose first model says r, the
share that can be labelled is
    k_r = (n_r K_r + s K) / (n_r + s),   K_r = sum over labelled draws of 1/p / sum over answered draws of 1/p   (V16)
with n_r answered draws there, K the same over all r, and s = `PRIOR` draws of a prior. Each such point then stands for
k_r points, as rows with weights do (W1), and a skipped one for none. That supposes that a point with the answer r can
be labelled whatever else it looks like. Hard points are skipped more often, and a belief knows which are hard. With
L_j = 1 where a draw got a label and 0 where it was skipped, m_i = E_f D_i - mean of D what the metric moves by if point
i is one more that can be labelled, and x_j = (L_j - k_j) m_j, the estimate is moved by
    sum_s c_s [ h_s sum over its answered draws of (1/p_j - 1) x_j - sum over points that later stages answered of x_j ]
    h_s = (points of the population that were not drawn) / sum over its answered draws of (1/p_j - 1)           (V22)
so that every stage estimates the sum of L_i m_i over the pool without bias, whatever skips depend on. The variance of
the first sum, sum_s c_s^2 h_s^2 sum of (1/p_j - 1)^2 x_j^2 / (1 - p_j), widens the interval, at least by how far k_r
may be off: sum_r (dQ/dk_r)^2 k_r (1 - k_r) / (n + s), dQ/dk_r the sum over r of m_i, n the effective number of draws.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from altmas.history import History
from altmas.methods.assured.estimator import Difference, Sides
from altmas.methods.assured.linearised import Linearised
from altmas.methods.assured.parts import StageSample, by_fold
from altmas.methods.assured.whole_groups import numbered, sums
from altmas.pool import Pool
from altmas.types import Array

PRIOR = 4.0
"""Draws that the share over all points counts for in that of one answer."""
NOTHING = 1e-9
"""What a skipped point stands for: weights are positive."""


@dataclass(frozen=True)
class Labelable:
    """How many of the points without an answer can be labelled, by what the first model says of them.

    codes     (N,) r of each point;  open (N,) points without a label or a skip
    share     (R,) k_r;  variance (R,) of k_r
    rows_meant  (N,) how many rows each point stands for
    weight    (N,) how many of these can be labelled
    rows      (n,) answered points;  residual (n,) L - k of each
    expansion (n,) c_s h_s (1/p - 1) of a draw, -c_s of a point that a later stage than s answered
    scale     (n,) by which its term goes into the variance: expansion / sqrt(1 - p) of a draw, else 0
    units     (n,) the groups of the draws counted from 0, where whole groups are drawn; else None
    """

    codes: Array
    open: Array
    share: Array
    variance: Array
    rows_meant: Array
    weight: Array
    rows: Array
    residual: Array
    expansion: Array
    scale: Array
    units: Array | None = None

    def pool(self, pool: Pool) -> Pool:
        """The pool whose rows stand for so many."""
        made = copy.copy(pool)
        made.weights = self.weight
        return made

    def moved_by(self, sides: Sides) -> Array:
        """(N,) m_i of a metric: what it moves by if a point is one more that can be labelled."""
        moved = np.zeros(len(self.codes))
        for factor, among, side in sides:
            weight = np.where(among.inside, among.weight, 0.0)
            mean = side.items.moments(among.belief)[0] if side.supposed is None else side.supposed[-1]
            unit = (mean + side.items.constant()) / np.maximum(among.weight, 1e-300)
            centred = unit - float((weight * unit).sum()) / max(float(weight.sum()), 1e-300)
            moved += np.where(among.inside, factor * centred, 0.0)
        return moved * self.rows_meant

    def slopes(self, sides: Sides) -> Array:
        """(R,) dQ/dk_r of a metric."""
        return np.bincount(self.codes[self.open], self.moved_by(sides)[self.open], len(self.share))

    def moved(self, sides: Sides) -> float:
        """By how much the estimate of a metric is moved (V22)."""
        return float((self.expansion * self.residual * self.moved_by(sides)[self.rows]).sum())

    def roots(self, sides: Sides) -> Array:
        """Signed roots of the squares whose sum is the variance of that; one for each group drawn as a whole."""
        roots = self.scale * self.residual * self.moved_by(sides)[self.rows]
        return roots if self.units is None else sums(roots, self.units)

    def variance_of(self, sides: Sides) -> float:
        """The variance that skips add to the estimate of a metric."""
        of_shares = float((self.slopes(sides) ** 2 * self.variance).sum())
        return max(float((self.roots(sides) ** 2).sum()), of_shares)

    def corrected(self, linear: Linearised) -> Linearised:
        """The metric with its estimate moved, and with what is left to both sides of it."""
        moved, left = self.moved(linear.sides), linear.left
        if left is not None:
            left = max(left[0] + moved, 0.0), max(left[1] - moved, 0.0)
        return replace(linear, value=linear.value + moved, left=left)


def widened(ends: tuple[float, float], value: float, more: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """An interval around the value that reaches `more` further, as errors that have nothing to do with it add up."""
    low, high = value - math.hypot(value - ends[0], more), value + math.hypot(ends[1] - value, more)
    if math.isnan(low + high):
        return math.nan, math.nan
    return max(bounds[0], low), min(bounds[1], high)


def labelable(samples: Sequence[StageSample], pool: Pool, history: History) -> Labelable | None:
    """What the draws show of the points that can be labelled; None without skips."""
    if not history.skipped:
        return None
    skipped, known, codes = np.array(list(history.skipped), np.int64), history.known, pool.anchor
    open_, whole = known < 0, np.ones(len(pool), np.bool_)
    open_[skipped] = False
    domains = history.domains if history.grown else None
    estimator = Difference(samples, pool, known, whole, skipped, domains)
    share, variance = _shares(samples, estimator.shares, codes, known, len(pool.classes))
    rows_meant = np.ones(len(pool)) if pool.weights is None else pool.weights
    stands = np.where(open_, share[codes], 1.0)
    stands[skipped[known[skipped] < 0]] = NOTHING
    rows, expansion, scale, units = _answers(estimator, open_, rows_meant)
    residual: Array = (known[rows] >= 0) - share[codes[rows]]
    return Labelable(
        codes, open_, share, variance, rows_meant, rows_meant * stands, rows, residual, expansion, scale, units
    )


def _shares(
    samples: Sequence[StageSample], shares: Array, codes: Array, known: Array, count: int
) -> tuple[Array, Array]:
    """((R,) k_r, (R,) its variance)."""
    told, answered, squares, draws = (np.zeros(count) for _ in range(4))
    for share, sample in zip(shares, samples, strict=True):
        rows = sample.stage.used
        weight = by_fold(share, sample.folds, rows) / np.maximum(sample.stage.chances[rows], 1e-12)
        told += np.bincount(codes[rows], weight * (known[rows] >= 0), count)
        answered += np.bincount(codes[rows], weight, count)
        squares += np.bincount(codes[rows], weight**2, count)
        draws += np.bincount(codes[rows], minlength=count)
    overall = float(told.sum() / answered.sum()) if answered.sum() > 0 else 1.0
    seen = np.divide(told, answered, out=np.full(count, overall), where=answered > 0)
    able = (draws * seen + PRIOR * overall) / (draws + PRIOR)
    effective = np.divide(answered**2, squares, out=np.zeros(count), where=squares > 0)
    return able, able * (1 - able) / np.maximum(effective + PRIOR, 1.0)


def _answers(estimator: Difference, open_: Array, rows_meant: Array) -> tuple[Array, Array, Array, Array | None]:
    """rows, expansion, scale and units of `Labelable`."""
    rows, expansions, scales, units = [], [], [], []
    for part in estimator.parts:
        stage, undrawn = part.stage, part.rest.copy()
        undrawn[part.labelled] = True
        used, apart = stage.used[undrawn[stage.used]], stage.apart(undrawn)
        undrawn &= stage.population
        undrawn[used] = False
        since = np.flatnonzero(undrawn & ~open_)
        chance = np.maximum(stage.chances[used], 1e-12)
        odds = (1 - chance) / chance
        alone = np.zeros(len(used), np.bool_) if apart is None else apart[used]
        total = float((odds * rows_meant[used])[~alone].sum())
        others = float(rows_meant[undrawn if apart is None else undrawn & ~apart].sum())
        expansion = part.share_at(used) * odds * np.where(alone, 1.0, others / total if total > 0 else 0.0)
        rows += [used, since]
        expansions += [expansion, np.broadcast_to(-part.share_at(since), len(since))]
        scales += [expansion / np.sqrt(np.maximum(1 - chance, 1e-12)), np.zeros(len(since))]
        if stage.units is not None:
            units.append(np.unique(stage.units[np.concatenate([used, since])], return_inverse=True)[1])
    groups = numbered(units) if estimator.units is not None else None
    return np.concatenate(rows), np.concatenate(expansions), np.concatenate(scales), groups
