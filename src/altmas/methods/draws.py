"""Draws without replacement whose probability is known at each draw."""

import numpy as np
from numpy.typing import NDArray

from altmas.types import Array


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
    first = np.argpartition(-rings, n - 1)[:n] if n < len(u) else np.arange(n)
    first = first[np.argsort(-rings[first], kind="stable")]
    gone = np.concatenate([[0.0], np.cumsum(u[first])[:-1]])
    return open_points[first], u[first] / np.maximum(u.sum() - gone, u[first])
