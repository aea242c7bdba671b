"""Skips: figures are about the points that can be labelled; how many of the others these are, the draws show.

A point that was drawn and skipped belongs to no figure. Of the points without an answer whose first model says r, the
share that can be labelled is
    k_r = (n_r K_r + s K) / (n_r + s),   K_r = sum over labelled draws of 1/p / sum over answered draws of 1/p   (V16)
with n_r answered draws there, K the same over all r, and s = `PRIOR` draws of a prior. Each such point then stands for
k_r points, as rows with weights do (W1), and a skipped one for none. How far k_r may be off widens the interval:
    Var Q = sum_r (dQ/dk_r)^2 k_r (1 - k_r) / n_r,    dQ/dk_r = sum over the points of r of (E_f D_i - mean of D)
with n_r the effective number of draws there.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from altmas.history import History
from altmas.methods.assured.estimator import Difference
from altmas.methods.assured.linearised import Linearised
from altmas.methods.assured.parts import StageSample
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
    weight    (N,) how many labelable points each point stands for
    """

    codes: Array
    open: Array
    share: Array
    variance: Array
    weight: Array

    def pool(self, pool: Pool) -> Pool:
        """The pool whose rows stand for so many."""
        made = copy.copy(pool)
        made.weights = self.weight
        return made

    def slopes(self, linear: Linearised) -> Array:
        """(R,) dQ/dk_r of a metric."""
        slopes = np.zeros(len(self.share))
        for factor, among, side in linear.sides:
            weight = np.where(among.inside, among.weight, 0.0)
            mean = side.items.moments(among.belief)[0] if side.supposed is None else side.supposed[-1]
            unit = (mean + side.items.constant()) / np.maximum(among.weight, NOTHING)
            centred = unit - float((weight * unit).sum()) / max(float(weight.sum()), NOTHING)
            points = self.open & among.inside
            rows = among.weight[points] / np.maximum(self.share[self.codes[points]], NOTHING)
            slopes += factor * np.bincount(self.codes[points], rows * centred[points], len(slopes))
        return slopes

    def widened(
        self, linear: Linearised, ends: tuple[float, float], value: float, factor: float
    ) -> tuple[float, float]:
        """The interval with what nobody knows of the shares, inside the bounds of the metric."""
        more = factor * math.sqrt(float((self.slopes(linear) ** 2 * self.variance).sum()))
        low, high = value - math.hypot(value - ends[0], more), value + math.hypot(ends[1] - value, more)
        return max(linear.metric.bounds[0], low), min(linear.metric.bounds[1], high)


def labelable(samples: Sequence[StageSample], pool: Pool, history: History) -> Labelable | None:
    """What the draws show of the points that can be labelled; None without skips."""
    if not history.skipped:
        return None
    skipped, known = np.array(list(history.skipped), np.int64), history.known
    codes, count = pool.anchor, len(pool.classes)
    shares = Difference(samples, pool, known, np.ones(len(pool), np.bool_), skipped).shares
    told, answered, squares, draws = (np.zeros(count) for _ in range(4))
    for share, sample in zip(shares, samples, strict=True):
        rows = sample.stage.used
        weight = float(share) / np.maximum(sample.stage.chances[rows], 1e-12)
        told += np.bincount(codes[rows], weight * (known[rows] >= 0), count)
        answered += np.bincount(codes[rows], weight, count)
        squares += np.bincount(codes[rows], weight**2, count)
        draws += np.bincount(codes[rows], minlength=count)
    overall = float(told.sum() / answered.sum()) if answered.sum() > 0 else 1.0
    seen = np.divide(told, answered, out=np.full(count, overall), where=answered > 0)
    share = (draws * seen + PRIOR * overall) / (draws + PRIOR)
    effective = np.divide(answered**2, squares, out=np.zeros(count), where=squares > 0)
    variance = share * (1 - share) / np.maximum(effective + PRIOR, 1.0)
    open_ = known < 0
    open_[skipped] = False
    stands = np.where(open_, share[codes], 1.0)
    stands[skipped[known[skipped] < 0]] = NOTHING
    rows_meant = np.ones(len(pool)) if pool.weights is None else pool.weights
    return Labelable(codes, open_, share, variance, rows_meant * stands)
