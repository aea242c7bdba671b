"""Draws without replacement with known probabilities."""

import numpy as np
from numpy.typing import NDArray


def uniform_draws(
    open_points: NDArray[np.int64], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(indices, probabilities) of n successive uniform draws; probability 1 / (points still open) at each draw."""
    n = min(n, len(open_points))
    indices = rng.choice(open_points, size=n, replace=False)
    return indices, 1.0 / (len(open_points) - np.arange(n))
