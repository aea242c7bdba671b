"""Draws without replacement with known probabilities.

Every point has a clock that rings at rate u_i while it is watched; the points whose clocks ring first are drawn. So
    q_m(i) = u_i / sum of u over the open points       at each single draw, exactly, and
    pi_i   = 1 - exp(-exposure_i)                      that i is drawn by now; exposure = rates added up over batches.
Exposure goes on for points already drawn (as if they could still be), because pi_i is what the estimator divides by.
Each batch adds just the rates that bring every point's pi to its share of all labels so far, so a uniform start is not
lost once the design knows better.
"""

import numpy as np
from numpy.typing import NDArray

from altmas.types import Array

LEVELS = np.geomspace(0.02, 4000.0, 256)
"""Sampling sizes are kept on this grid, one byte for each point, so that a log of a million points stays small."""
FLOOR = 0.1
"""Least rate of an open point, as a share of what uniform draws would give it."""
MOST = 0.99999
"""No point that is still open has been certain to be drawn."""
UNIFORM, STEEP = 0.1, 0.3
"""Shares of the draws that stay uniform however good the belief is, and that follow squared residuals, not roots."""
POWERS = tuple(power / 8 for power in range(9))
"""Powers of the believed squared residual that a design chooses from; 0 is uniform."""
SURPRISES = 2.0
"""Surprises, as many as the belief expects, that are taken as seen when the power is chosen."""


# ---------------------------------------------------------------- sizes: how often a point should be drawn


def pilot_sizes(predictions: Array, n_classes: int, n: int, doubt: Array | None = None, least: int = 4) -> Array:
    """(N,) sizes for a first sample of n: mostly uniform, with a share for rare predicted classes and doubtful points.

    doubt  (N,) how likely the model is wrong by its own account, or None: DOUBTFUL of the labels follow it, so that a
           model that is hardly ever wrong shows some errors early
    least  labels expected in every predicted class (0: classes do not matter), within RARE of the labels
    """
    counts = np.bincount(predictions, minlength=n_classes).astype(np.float64)
    extra = np.maximum(np.minimum(least, counts) - n * counts / counts.sum(), 0.0)
    extra *= min(1.0, RARE * n / max(extra.sum(), 1e-300))
    boost = np.divide(extra, counts, out=np.zeros_like(counts), where=counts > 0)
    sizes = 1 + boost[predictions] * (counts.sum() / n)
    if doubt is None or doubt.mean() <= 0:
        return np.asarray(sizes)
    return np.asarray((1 - DOUBTFUL) * sizes + DOUBTFUL * doubt / doubt.mean())


RARE, DOUBTFUL = 0.3, 0.3
"""Shares of the first sample that may go to rare predicted classes and to doubtful points."""


def earned_sizes(believed: Array, seen: Array, drawn: Array, folds: Array) -> tuple[Array, Array]:
    """((N,) sizes with mean 1 in every fold, (K,) powers): as far from uniform as the labelled residuals bear out.

    believed  (N,) squared residuals as the belief expects them
    seen      (n,) squared out-of-fold residuals at the rows `drawn`
    folds     (N,) the fold of each point; the belief about a fold has not seen its labels

    Every fold gets its share of the draws and judges by the labels of the others. Were all folds weighed together, an
    error that surprised would raise the sizes everywhere but in its own fold, and so lower its own chance: its weight
    would grow by its own label, which is bias and a heavy tail.

    Draws with chances in proportion to the root of the expected squared residual have the least variance. A belief that
    is too sure of itself has steps that are too high: residuals follow believed^power with a power below 1, and 0 is
    uniform. With s the size of one whole surprise, s = sum seen^2 / sum seen, the power is that with the largest
        sum_i (seen_i ln m_i - m_i) / s - 2 K (1 - power)^2,      m_i = c believed_i^power,
        c = (K s + sum seen) / (K s + sum over drawn of believed^power, scaled to the mean of believed)
    which is the likelihood of counts with mean m (K = SURPRISES pseudo-surprises at what the belief expects). A share
    UNIFORM of the draws stays uniform whatever it says, and a share STEEP follows m and not its root: where thousands
    of points are each believed right all but surely, their roots add up to most of the draws, and hardly any of these
    would ever meet an error. It costs some percent of variance if the belief is exact and saves a quarter where such
    points are safer than believed.
    """
    powers, expected = np.zeros(int(folds.max()) + 1), np.ones(len(believed))
    mean = float(believed.mean())
    if mean <= 0:
        return expected, powers
    steps = np.log(np.maximum(believed / mean, 1e-12))
    for fold in range(len(powers)):
        inside, others = folds == fold, folds[drawn] != fold
        powers[fold] = _borne_out(steps, seen[others] / mean, drawn[others])
        expected[inside] = np.exp(steps[inside] * powers[fold])
    sizes = (1 - UNIFORM - STEEP) * even(np.sqrt(expected), folds) + STEEP * even(expected, folds)
    return np.asarray(UNIFORM + sizes), powers


def even(sizes: Array, folds: Array) -> Array:
    """(N,) the sizes scaled to mean 1 in every fold."""
    count, total = np.bincount(folds), np.bincount(folds, sizes)
    return np.asarray(sizes * (count / np.maximum(total, 1e-300))[folds])


def _borne_out(steps: Array, seen: Array, drawn: Array) -> float:
    """The power of `earned_sizes` from ln(believed / its mean) and seen / that mean; 1 while there is no residual."""
    total = float(seen.sum())
    if total <= 0:
        return 1.0
    surprise = float((seen**2).sum()) / total

    def likelihood(power: float) -> float:
        expected = np.exp(power * steps)
        expected = expected[drawn] / expected.mean()
        expected *= (SURPRISES * surprise + total) / (SURPRISES * surprise + float(expected.sum()))
        fit = float((seen * np.log(expected) - expected).sum()) / surprise
        return fit - 2 * SURPRISES * (1 - power) ** 2

    return max(POWERS, key=likelihood)


def levels_of(sizes: Array) -> NDArray[np.uint8]:
    """(N,) the nearest level of each size."""
    step = np.log(LEVELS[1] / LEVELS[0])
    place = np.round(np.log(np.maximum(sizes, LEVELS[0]) / LEVELS[0]) / step)
    return np.asarray(np.clip(place, 0, len(LEVELS) - 1), np.uint8)


def odds_levels(chances: Array) -> NDArray[np.uint8]:
    """(N,) probabilities as one byte each: log odds between -12 and 12 in 255 steps."""
    odds = np.log(chances / (1 - chances))
    return np.asarray(np.clip(np.round((odds + 12) * 255 / 24), 0, 255), np.uint8)


def level_odds(levels: NDArray[np.uint8]) -> Array:
    """(N,) the probabilities again."""
    return np.asarray(1 / (1 + np.exp(12 - levels * (24 / 255))))


# ---------------------------------------------------------------- rates: what a batch adds


def rates_of(sizes: Array, exposure: Array, scale: float, floor: float) -> Array:
    """(N,) rates that bring each point's inclusion to scale * size, and never less than floor."""
    wanted = -np.log1p(-np.minimum(scale * sizes, MOST))
    return np.asarray(np.maximum(wanted - exposure, floor))


def batch_scale(sizes: Array, exposure: Array, open_points: Array, n: int) -> tuple[float, float]:
    """(scale, floor) with which n of the open points are expected to be drawn; infinite when all of them are."""
    if n >= len(open_points):
        return np.inf, np.inf
    s, done = sizes[open_points], exposure[open_points]
    floor = FLOOR * n / len(open_points)
    low, high = 0.0, 2.0 * n / len(open_points)

    def expected(scale: float) -> float:
        return float(-np.expm1(-rates_of(s, done, scale, floor)).sum())

    while expected(high) < n and high * s.min() < 1:
        low, high = high, 2 * high
    for _ in range(15):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) < n else (low, middle)
    return high, floor


def inclusion_of(exposure: Array) -> Array:
    """(N,) probability of having been drawn by now."""
    return np.asarray(-np.expm1(-exposure))
