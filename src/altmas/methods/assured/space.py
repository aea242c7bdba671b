"""Features as a space in which nearby points are alike: coordinates, a Gaussian kernel, and its smoothing.

N points. Nothing larger than the coordinates and the kernel's random features is held, and both are float32.
The smoothed kernel is that of a cluster assumption: a label speaks for the whole crowd that a chain of near neighbours
connects with it, not only for a ball around it (Zhou et al. 2004; Chapelle, Weston and Schoelkopf 2003).
    phi' = (1 - share) (I - share S)^-1 phi,   S = D^-1/2 W D^-1/2
    W[i, j] = exp(-|x_i - x_j|^2 / (s_i s_j)) for the K nearest neighbours, s_i half the way to the farthest
so that crowds of any density hold together and a chain of strangers carries little (Zelnik-Manor and Perona 2004).
It needs no label at all, so a point that is predicted without its own label stays unseen.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from altmas.methods.assured.recipe import RECIPE
from altmas.types import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float32]

MOST_ANCHORS, DISTANCES = 12_000, 2e8
"""Larger pools look for neighbours among so many random points only, so that no more distances are computed."""
ROWS = 1_000
"""Rows whose distances to all anchors are held together."""
LEFT_OUT = 0.03
"""The smoothing's power series ends with the first term that weighs less."""


def coordinates(features: Array) -> Floats:
    """(N, D') features as coordinates: standardised when few, leading principal components when many."""
    mean, covariance = _moments(features)
    if features.shape[1] <= RECIPE.few_columns:
        scale = np.sqrt(np.diag(covariance))
        turn = np.diag(1 / np.where(scale > 1e-12 * np.abs(mean), scale, np.inf))
    else:
        turn = np.linalg.eigh(covariance)[1][:, ::-1][:, : RECIPE.components]
    found = np.empty((len(features), turn.shape[1]), np.float32)
    for part in _chunks(features):
        found[part] = (np.asarray(features[part], np.float64) - mean) @ turn
    return found


def _moments(features: Array) -> tuple[Array, Array]:
    """((D,) mean, (D, D) covariance) in float64, chunk by chunk."""
    n, columns = features.shape
    mean, squares = np.zeros(columns), np.zeros((columns, columns))
    for part in _chunks(features):
        mean += np.asarray(features[part], np.float64).sum(0) / n
    for part in _chunks(features):
        x = np.asarray(features[part], np.float64) - mean
        squares += x.T @ x
    return mean, squares / n


def _chunks(features: Array, numbers: int = 2**23) -> list[slice]:
    step = max(1, numbers // max(1, features.shape[1]))
    return [slice(start, start + step) for start in range(0, len(features), step)]


def median_distance(space: Array) -> float:
    """Median squared distance between random pairs of points."""
    one, other = np.random.default_rng(0).integers(len(space), size=(2, 2000))
    squared = ((space[one] - space[other]) ** 2).sum(1)
    return float(np.median(squared[squared > 0])) if (squared > 0).any() else 1.0


def random_features(space: Array, count: int, gamma: float, seed: int) -> Floats:
    """(N, count) with inner products near exp(-gamma |x - x'|^2) (Rahimi and Recht)."""
    frequencies = np.random.default_rng(seed).standard_normal((space.shape[1], count // 2))
    phase = np.asarray(space @ (frequencies * np.sqrt(2 * gamma)), np.float32)
    return np.hstack([np.cos(phase), np.sin(phase)]) * np.float32(np.sqrt(2 / count))


class Neighbourhood:
    """Who is near whom: a graph among anchors (all points of a small pool), and every other point's nearest anchors."""

    def __init__(self, space: Floats) -> None:
        n = len(space)
        count = int(min(n, MOST_ANCHORS, max(500, DISTANCES // n)))
        self.anchors = np.sort(np.random.default_rng(3).permutation(n)[:count])
        near, anchors = min(RECIPE.neighbours, count - 1), space[self.anchors]
        neighbours = nearest(anchors, anchors, near, same=True)
        squared = squared_distances(anchors, anchors, neighbours)
        scale = _scale(squared)
        self.graph = _graph(neighbours, _closeness(squared, scale, scale[neighbours]))
        self.others = np.setdiff1d(np.arange(n), self.anchors)
        self.nearest_anchors = nearest(space[self.others], anchors, near)
        squared = squared_distances(space[self.others], anchors, self.nearest_anchors)
        close = _closeness(squared, _scale(squared), scale[self.nearest_anchors])
        self.shares = close / np.maximum(close.sum(1, keepdims=True), 1e-30)

    def smoothed(self, inputs: Floats, share: float) -> Floats:
        """(N, m) the inputs carried along the graph; mean squared length 1 again."""
        own = inputs[self.anchors]
        moved = own
        for _ in range(math.ceil(math.log(LEFT_OUT) / math.log(share))):
            moved = np.float32(share) * (self.graph @ moved) + np.float32(1 - share) * own
        found = inputs.copy()
        found[self.anchors] = moved
        for start in range(0, len(self.others), ROWS):
            rows = slice(start, start + ROWS)
            crowd = np.einsum("nk,nkm->nm", self.shares[rows], moved[self.nearest_anchors[rows]])
            found[self.others[rows]] = np.float32(share) * crowd + np.float32(1 - share) * inputs[self.others[rows]]
        found /= np.sqrt(max(float(np.einsum("nm,nm->", found, found)) / len(found), 1e-30))
        return np.asarray(found, np.float32)


def nearest(points: Floats, anchors: Floats, count: int, same: bool = False) -> NDArray[np.int64]:
    """(n, count) the nearest anchors of each point, in no order; `same`: points are the anchors, never their own."""
    found = np.empty((len(points), count), np.int64)
    if count == 0:
        return found
    lengths = (anchors**2).sum(1)
    for start in range(0, len(points), ROWS):
        rows = points[start : start + ROWS]
        distance = lengths - 2 * (rows @ anchors.T)  # but for a term that is the same for all anchors
        if same:
            distance[np.arange(len(rows)), start + np.arange(len(rows))] = np.inf
        found[start : start + ROWS] = np.argpartition(distance, count - 1, axis=1)[:, :count]
    return found


def squared_distances(points: Floats, anchors: Floats, neighbours: NDArray[np.int64]) -> Floats:
    """(n, count) squared distances of points to the anchors that are their neighbours."""
    found = np.empty(neighbours.shape, np.float32)
    for start in range(0, len(points), ROWS):
        rows = slice(start, start + ROWS)
        found[rows] = ((points[rows, None] - anchors[neighbours[rows]]) ** 2).sum(2)
    return found


def _scale(squared: Floats) -> Floats:
    """(n,) half the distance to the farthest neighbour."""
    return np.asarray(np.sqrt(squared.max(1, initial=0.0)) / 2, np.float32)


def _closeness(squared: Floats, scale: Floats, scales: Floats) -> Floats:
    """(n, count) exp(-squared / (scale scales)): between 0 and 1, and 1 for twins."""
    both = np.maximum(scale[:, None] * scales, np.maximum(1e-3 * squared, 1e-30))
    return np.asarray(np.exp(-squared / both), np.float32)


def _graph(neighbours: NDArray[np.int64], closeness: Floats) -> "csr_array":
    """S: symmetric, the closeness of either to the other, divided by the root of both degrees."""
    from scipy.sparse import csr_array, diags_array

    n, count = neighbours.shape
    rows = np.repeat(np.arange(n), count)
    links = csr_array((closeness.ravel(), (rows, neighbours.ravel())), shape=(n, n))
    both = links.maximum(links.T)
    degree = np.maximum(np.asarray(both.sum(1)).ravel(), 1e-30)
    root = diags_array((degree**-0.5).astype(np.float32))
    return csr_array(root @ both @ root)
