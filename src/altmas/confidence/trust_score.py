"""Trust score (D.7): how much nearer a point is to the class that was predicted than to any other."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from altmas.errors import PoolError
from altmas.types import Array

FEWEST = 5
"""Classes with fewer reference points keep them all."""


@dataclass(frozen=True, eq=False)
class TrustScore:
    """(D3) d(x, nearest other class) / d(x, predicted class), by Euclidean distance to labelled reference points.

    members  for each class the rows of the reference that were kept
    trees    a k-d tree over them, or None for a class without any
    """

    members: tuple[Array, ...]
    trees: tuple[Any, ...]

    @classmethod
    def fit(cls, x: Array, y: Array, n_classes: int, *, k: int = 10, alpha: float = 0.0) -> "TrustScore":
        """Reference points x (n, D) with codes y; the share alpha of each class in the thinnest places is left out."""
        from scipy.spatial import cKDTree

        x, y = np.asarray(x, np.float64), np.asarray(y)
        if len(x) == 0:
            raise PoolError("a trust score needs labelled reference points, got none; nothing was computed")
        members = tuple(dense(x, np.flatnonzero(y == c), k, alpha) for c in range(n_classes))
        return cls(members, tuple(cKDTree(x[rows]) if len(rows) else None for rows in members))

    def distances(self, x: Array, own: Array | None = None) -> Array:
        """(N, C) to the nearest reference point of each class; inf for a class without any.

        own  (N,) the row of the reference that each point itself is, -1 for none: it is not its own neighbour
        """
        x = np.asarray(x, np.float64)
        nearest = np.full((len(x), len(self.trees)), np.inf)
        for c, (rows, tree) in enumerate(zip(self.members, self.trees, strict=True)):
            if tree is None:
                continue
            if own is None:
                nearest[:, c] = tree.query(x)[0]
                continue
            near, at = tree.query(x, k=2)
            itself = np.append(rows, -2)[at] == np.asarray(own)[:, None]
            nearest[:, c] = np.where(itself, np.inf, near).min(1)
        return nearest

    def __call__(self, x: Array, predictions: Array, own: Array | None = None) -> Array:
        """(N,) trust in the predicted class; 1 where both distances are 0 or neither class has a reference point."""
        away = self.distances(x, own)
        points = np.arange(len(away))
        own_distance = away[points, predictions]
        away[points, predictions] = np.inf  # by class, not by comparing distances, which may be tied
        other_distance = away.min(1)
        tied = other_distance == own_distance
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(tied, 1.0, other_distance / own_distance)


def dense(x: Array, rows: Array, k: int, alpha: float) -> Array:
    """The rows of one class without the share alpha that has the largest distance to its k-th neighbour."""
    from scipy.spatial import cKDTree

    if alpha <= 0 or len(rows) < FEWEST:
        return rows
    k = min(k, len(rows) - 1)
    radius = cKDTree(x[rows]).query(x[rows], k=k + 1)[0][:, -1]
    count = len(rows) - int(alpha * len(rows))
    return np.sort(rows[np.argsort(radius, kind="stable")[:count]])
