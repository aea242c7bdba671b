"""W[i, c], the argument of every metric: the weight of each point as a member of each class (docs/equations.md, S).

Known labels have 0 and 1, a belief has probabilities, a sample has expansion weights; points that a metric is not about
have none. Metrics ask for no more than a table by row codes, one class at a time, and the weight of each point.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from altmas.types import Array


@dataclass(frozen=True)
class RowCodes:
    """(N,) which row of a table each point is counted in: its predicted class, "score >= t" or not, or one row for all.

    key  what makes two row codes of one pool the same
    """

    key: tuple[object, ...]
    codes: Array
    count: int


class Weights(Protocol):
    """W, without its N x C numbers."""

    @property
    def n_classes(self) -> int:
        """C."""

    @property
    def mass(self) -> Array:
        """(N,) sum over the classes of W[i, c]; 0 where the metric is not about the point."""

    def table(self, rows: RowCodes) -> Array:
        """(R, C) T[r, c], the sum of W[i, c] over the points with row code r."""

    def of_class(self, code: int | Array) -> Array:
        """(N,) W[i, code], with one code or one for each point."""


@dataclass(frozen=True)
class LabelWeights:
    """The weights of labelled points: points (n,) rows of the pool, labels (n,) codes, weights (n,), 1 by default."""

    size: int
    n_classes: int
    points: Array
    labels: Array
    weights: Array | None = None

    @classmethod
    def of_truth(
        cls, truth: ArrayLike, n_classes: int, inside: Array | None = None, weights: Array | None = None
    ) -> "LabelWeights":
        """Every label known; those outside the mask left out. weights (N,) how many rows each point stands for."""
        labels = np.asarray(truth)
        points = np.arange(len(labels)) if inside is None else np.flatnonzero(inside)
        return cls(len(labels), n_classes, points, labels[points], None if weights is None else weights[points])

    @property
    def mass(self) -> Array:
        mass = np.zeros(self.size)
        np.add.at(mass, self.points, 1.0 if self.weights is None else self.weights)
        return mass

    def table(self, rows: RowCodes) -> Array:
        return table_of(rows.codes[self.points], self.labels, self.n_classes, self.weights, n_rows=rows.count)

    def of_class(self, code: int | Array) -> Array:
        weight, codes = np.zeros(self.size), np.broadcast_to(code, self.size)[self.points]
        np.add.at(weight, self.points, (self.labels == codes) * (1.0 if self.weights is None else self.weights))
        return weight


def table_of(
    rows: Array, truth: Array, n_classes: int, weights: Array | None = None, *, n_rows: int | None = None
) -> Array:
    """T[row, true], by default (C, C), of points with known truth; weighted counts when weights are given."""
    n_rows = n_classes if n_rows is None else n_rows
    cells = np.bincount(rows * n_classes + truth, weights, minlength=n_rows * n_classes)
    return cells.reshape(n_rows, n_classes).astype(np.float64)
