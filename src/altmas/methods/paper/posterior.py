"""What the surrogate believes about each label, and what the metrics are under that belief.

M draws of the surrogate's weights w, N points, C classes.
probs[j, i, c] = p(y_i = c | x_i, w_j)   one w_j for the whole pool, so a draw is a joint belief (A1)
A labelled point has probability 1 on its label in every draw.
labels[j, i] = argmax_c probs[j, i, c]   the label of point i in draw j
tables[j] = K_j[predicted, true]         the confusion table of draw j

The full (M, N, C) array exists only for small pools; everything else goes through it chunk by chunk.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from altmas.compute import in_order
from altmas.metrics import Metric, table_of
from altmas.types import Array

Floats = NDArray[np.float64]
R = TypeVar("R")

KEEP = 128 * 2**20
"""Bytes of probabilities that are kept in memory instead of being computed again for a second look."""

TOGETHER = 2**20
"""Probabilities in one chunk: large enough for fast products, small enough for the cache and for float64 copies."""


class Posterior:
    """P[j, i, c] of (A1) for the whole pool, chunk by chunk, known labels pinned.

    probabilities  rows (a slice of the pool) -> (M, n, C) float32; the same M weight draws on every call
    known          (N,) the label of each point, -1 where unknown
    """

    def __init__(
        self, probabilities: Callable[[slice], Array], known: Array, draws: int, n_classes: int, keep: int = KEEP
    ) -> None:
        self.probabilities = probabilities
        self.known = known
        self.draws = draws
        self.n_classes = n_classes
        self._fits = 4 * draws * len(known) * n_classes <= keep
        self._kept: dict[int, Array] = {}

    def map(self, of_chunk: Callable[[slice, Array], R]) -> Iterator[R]:
        """of_chunk(rows, probs (M, n, C)) for every chunk of the pool, in order, computed on several threads."""
        n = len(self.known)
        step = min(4096, max(32, TOGETHER // (self.draws * self.n_classes)))
        chunks = [slice(start, min(start + step, n)) for start in range(0, n, step)]
        return in_order(lambda rows: of_chunk(rows, self._pinned(rows)), chunks)

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """(rows, probs (M, n, C)) of every chunk, in order."""
        return self.map(lambda rows, probs: (rows, probs))

    def _pinned(self, rows: slice) -> Array:
        if rows.start in self._kept:
            return self._kept[rows.start]
        probs = self.probabilities(rows)
        known = self.known[rows]
        at = np.flatnonzero(known >= 0)
        if len(at):
            probs[:, at, :] = 0.0
            probs[:, at, known[at]] = 1.0
        if self._fits:
            self._kept[rows.start] = probs
        return probs


def small_integers(n_classes: int) -> type[np.unsignedinteger[Any]]:
    """The smallest integer type that holds every class code."""
    return np.uint8 if n_classes <= 256 else np.uint16 if n_classes <= 65_536 else np.uint32


def hard_labels(probs: Array) -> Array:
    """(M, n) the most probable label of each point in each draw (docs/equations.md A.2 step 7)."""
    best: Array = probs[..., 0].copy()
    labels: Array = np.zeros(best.shape, small_integers(probs.shape[-1]))
    for c in range(1, probs.shape[-1]):  # class by class: several times faster than argmax over the short axis
        better = probs[..., c] > best
        labels[better] = c
        np.maximum(best, probs[..., c], out=best)
    return labels


def sampled_labels(probs: Array, rng: np.random.Generator) -> Array:
    """(M, n) a label drawn from each distribution (`sample` of A.5); certain labels stay certain."""
    cumulative = np.cumsum(probs, axis=-1, dtype=np.float64)
    at = rng.random(probs.shape[:-1]) * cumulative[..., -1]
    return np.asarray((at[..., None] >= cumulative[..., :-1]).sum(-1), small_integers(probs.shape[-1]))


def tables_of_labels(labels: Array, predictions: Array, n_classes: int, members: Array | None = None) -> Floats:
    """(M, C, C) K_j[a, c] = #{i : a_i = a, labels[j, i] = c} over the members (A2)."""
    rows = slice(None) if members is None else np.flatnonzero(members)
    inside, predicted = labels[:, rows], predictions[rows]
    return np.stack([table_of(predicted, draw.astype(np.int64), n_classes) for draw in inside])


def expected_counts(probs: Array, predictions: Array, members: Array | None = None) -> Floats:
    """(M, C, C) soft counts of a chunk: sum over its members of 1{a_i = a} probs[j, i, c] (`expected` of A.5)."""
    draws, _, n_classes = probs.shape
    counts = np.zeros((draws, n_classes, n_classes))
    rows = np.arange(len(predictions)) if members is None else np.flatnonzero(members)
    if len(rows):
        rows = rows[np.argsort(predictions[rows], kind="stable")]
        called, starts = np.unique(predictions[rows], return_index=True)
        counts[:, called, :] = np.add.reduceat(probs[:, rows, :], starts, axis=1, dtype=np.float64)
    return counts


class OverDraws(NamedTuple):
    """A metric averaged over the draws in which it is defined."""

    value: float  # nan if it is undefined in every draw
    undefined: int  # how many draws leave it undefined


def mean_over_draws(metric: Metric, tables: Floats) -> OverDraws:
    """(A2) (1/M) sum_j Q(K_j), leaving out draws in which Q is undefined (Z2)."""
    values = np.asarray(metric.of_table(tables), np.float64)
    defined = values[~np.isnan(values)]
    value = float(defined.mean()) if len(defined) else float("nan")
    return OverDraws(value, len(values) - len(defined))
