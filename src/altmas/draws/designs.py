"""Draws without replacement with known probabilities.

Every point has a clock that rings at rate u_i while it is watched; the points whose clocks ring first are drawn. So
    q_m(i) = u_i / sum of u over the open points       at each single draw, exactly, and
    pi_i   = 1 - exp(-exposure_i)                      that i is drawn by now; exposure = rates added up over batches.
Exposure goes on for points already drawn (as if they could still be), because pi_i is what the estimator divides by.
Each batch adds just the rates that bring every point's pi to its share of all labels so far, so a uniform start is not
lost once the design knows better.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LEVELS = np.geomspace(0.02, 4000.0, 256)
"""Sampling sizes are kept on this grid, one byte for each point, so that a log of a million points stays small."""
FLOOR = 0.1
"""Least rate of an open point, as a share of what uniform draws would give it."""
MOST = 0.99999
"""No point that is still open has been certain to be drawn."""
TILTS = (0.8, 0.6, 0.4, 0.2)
"""Uniform shares that a tilted design chooses from."""


def uniform_draws(
    open_points: NDArray[np.int64], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(indices, probabilities) of n successive uniform draws; probability 1 / (points still open) at each draw."""
    n = min(n, len(open_points))
    indices = rng.choice(open_points, size=n, replace=False)
    return indices, 1.0 / (len(open_points) - np.arange(n))


def successive_draws(
    rates: Array, open_points: NDArray[np.int64], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(indices, probabilities) of n successive draws with chances proportional to the rates of the points still open.

    The first rings of exponential clocks, by Gumbel's trick.
    """
    n = min(n, len(open_points))
    u = rates[open_points]
    rings = np.log(u) + rng.gumbel(size=len(u))
    first = np.argpartition(-rings, n - 1)[:n] if 0 < n < len(u) else np.arange(len(u))
    first = first[np.argsort(-rings[first], kind="stable")]
    gone = np.concatenate([[0.0], np.cumsum(u[first])[:-1]])
    return open_points[first], u[first] / np.maximum(u.sum() - gone, u[first])


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


def earned_tilt(
    sizes: Array, residual: Array, drawn: Array, inclusion: Array, believed: Array, surprises: int
) -> float:
    """The uniform share that the labelled residuals justify: 1 (uniform) unless tilting shows a gain.

    sizes      (N,) mean 1: where the belief would draw
    residual   (n,) squared out-of-fold residuals at the rows `drawn`, which had those inclusion probabilities
    believed   (N,) squared residuals as the belief expects them; they count as PRIOR labels
    surprises  errors (or right answers, whichever are fewer) among the labels: with few, the tilt stays moderate

    Draws with chances p_i/N have variance proportional to the mean of e_i^2 / p_i; the tilt with the smallest
    estimate of that, plus one standard error, is taken.
    """
    weight = 1 / inclusion
    seen = residual * weight / weight.mean()
    total = seen.sum() + PRIOR * believed.mean()
    best, best_change = 1.0, 0.0
    for tilt in TILTS:
        tilt = max(tilt, 1 / (2 + surprises))
        chance = tilt + (1 - tilt) * sizes
        gains = seen * (1 / chance[drawn] - 1)
        expected = gains.sum() + PRIOR * (believed * (1 / chance - 1)).mean()
        change = float((expected + gains.std() * len(gains) ** 0.5) / total) if total > 0 else 0.0
        if change < best_change - 1e-12:
            best, best_change = tilt, change
    return best


PRIOR = 10.0
"""Labels that the belief's own expectation counts for when the tilt is chosen."""


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
