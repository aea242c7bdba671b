"""Draws with replacement: a point that comes up again costs no label but counts again (C2, C3).

A batch goes on until enough new points have come up. What came up, repeats included, is kept in its record, with the
probability that each draw had; the estimate is a replay of these records.
"""

import numpy as np

from altmas.history import Batch, History
from altmas.methods.related.weighted_sample import WeightedSample
from altmas.types import Array

LEAST_OPEN = 0.05
"""Least probability of all open points together: about 20 draws at most for one new point."""


def draw_with_replacement(chances: Array, history: History, n: int, rng: np.random.Generator) -> Batch:
    """The batch of draws until n new points have come up (or none is left).

    chances  (N,) probability of each point, 0 for those that nobody need draw. Where the open points have little left,
             the draws are mixed with uniform ones among them, and the record holds the probabilities of the mixture.
    """
    is_new = history.open.copy()
    n = min(n, int(is_new.sum()))
    sequence: list[int] = []
    fresh: list[int] = []
    at_draw: list[float] = []
    among_open: list[float] = []
    while len(fresh) < n:
        chances = with_open_share(chances, is_new)
        steps, left = np.cumsum(chances), float(chances[is_new].sum())
        came_up = np.searchsorted(steps, rng.random(4 * n) * steps[-1], side="right")
        for row in np.minimum(came_up, len(steps) - 1).tolist():
            sequence.append(row)
            at_draw.append(chances[row])
            if is_new[row]:
                fresh.append(row)
                among_open.append(min(1.0, chances[row] / max(left, chances[row])))
                is_new[row], left = False, left - chances[row]
                if len(fresh) == n:
                    break
    record = {"sequence": np.array(sequence, np.int64), "chances": np.array(at_draw, np.float64)}
    return Batch(np.array(fresh, np.int64), np.array(among_open), record, labels_before=len(history.labels))


def with_open_share(chances: Array, open_points: Array) -> Array:
    """(N,) the chances with at least LEAST_OPEN on the open points, by uniform draws among these."""
    chances = chances / chances.sum() if chances.sum() > 0 else open_points / open_points.sum()
    share = float(chances[open_points].sum())
    if share >= LEAST_OPEN or not open_points.any():
        return np.asarray(chances)
    mix = (LEAST_OPEN - share) / (1 - share)
    return np.asarray((1 - mix) * chances + mix * open_points / open_points.sum())


def replayed_draws(history: History) -> tuple[Array, Array]:
    """(rows, chances), each (m,): every draw with a known label, repeats included, in drawing order."""
    rows = np.concatenate([np.zeros(0, np.int64), *(batch.record["sequence"] for batch in history.batches)])
    chances = np.concatenate([np.zeros(0), *(batch.record["chances"] for batch in history.batches)])
    end = _answered(history, rows)
    told = history.known[rows[:end]] >= 0
    return rows[:end][told], chances[:end][told]


def _answered(history: History, rows: Array) -> int:
    """How many draws count: those up to the first point without an answer, less the repeats just before it.

    Repeats of labelled points on the way to a point that still waits would let an estimate move by being asked alone.
    """
    answered = history.known >= 0
    answered[list(history.skipped)] = True
    waiting = np.flatnonzero(~answered[rows])
    if not len(waiting):
        return len(rows)
    new = np.zeros(len(rows), np.bool_)
    new[np.unique(rows, return_index=True)[1]] = True
    before = np.flatnonzero(new[: waiting[0]])
    return int(before[-1]) + 1 if len(before) else 0


def replacement_sample(history: History) -> WeightedSample:
    """The draws with weights 1/q, self-normalised (C2); variance sum (W z)^2, which is (C3)."""
    rows, chances = replayed_draws(history)
    weights = 1 / np.maximum(chances, 1e-300)
    return WeightedSample(rows, weights, lambda z: float(((weights * z) ** 2).sum()))


def counting_sample(history: History) -> WeightedSample:
    """The draws with weights 1/(m q): unbiased numbers of points, where these are added to volunteered ones.

    A ratio of draws alone needs no scale; beside exact labels a self-normalised one would hang on the few heavy draws
    of points that the design hardly cares for.
    """
    rows, chances = replayed_draws(history)
    m = len(rows)
    weights = 1 / np.maximum(m * chances, 1e-300)

    def variance(z: Array) -> float:
        terms = weights * z
        return float(((terms - terms.mean()) ** 2).sum()) * m / max(m - 1, 1)

    return WeightedSample(rows, weights, variance, counted=True)
