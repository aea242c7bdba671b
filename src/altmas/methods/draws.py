"""Draws without replacement whose probability is known at each draw."""

import numpy as np
from numpy.typing import NDArray

from altmas.history import History
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

    The n largest of log(rate) + Gumbel noise: an exponential race, sorted.
    """
    n = min(n, len(open_points))
    u = rates[open_points]
    keys = np.log(u) + rng.gumbel(size=len(u))
    first = np.argpartition(-keys, n - 1)[:n] if n < len(u) else np.arange(n)
    first = first[np.argsort(-keys[first], kind="stable")]
    gone = np.concatenate([[0.0], np.cumsum(u[first])[:-1]])
    return open_points[first], u[first] / np.maximum(u.sum() - gone, u[first])


def drawn_uniformly(history: History) -> NDArray[np.int64]:
    """Labelled rows of the batches in which every open point had the same chance at each draw: a sample of the pool."""
    rows, before = [np.zeros(0, np.int64)], 0
    for number, batch in enumerate(history.batches):
        most = history.points_at(number) - before
        if batch.probabilities is not None and len(batch.indices):
            were_open = 1 / np.asarray(batch.probabilities) + np.arange(len(batch.indices))
            least = most - len(history.labels) - len(history.skipped)
            same = np.abs(were_open - np.rint(were_open[0])).max() < 1e-6 * most
            if same and least - 0.5 < were_open[0] < most + 0.5:
                rows.append(batch.indices)
        before += len(batch.indices)
    drawn = np.concatenate(rows)
    return drawn[history.known[drawn] >= 0]
