"""Features as a space in which nearby points are alike: coordinates, a Gaussian kernel, and its smoothing.

N points; of a large pool everything is fitted on a sample, and the others are placed by it chunk by chunk.
Nothing larger than the coordinates of the sample and the kernel's random features is held, and both are float32.
The smoothed kernel is that of a cluster assumption: a label speaks for the whole crowd that a chain of near neighbours
connects with it, not only for a ball around it (Zhou et al. 2004; Chapelle, Weston and Schoelkopf 2003).
    phi' = (1 - share) (I - share S)^-1 phi,   S = D^-1/2 W D^-1/2
    W[i, j] = exp(-|x_i - x_j|^2 / (s_i s_j)) for the K nearest neighbours, s_i half the way to the farthest
so that crowds of any density hold together and a chain of strangers carries little (Zelnik-Manor and Perona 2004).
It needs no label at all, so a point that is predicted without its own label stays unseen.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

from altmas.methods.assured.recipe import RECIPE
from altmas.types import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float32]

MOST_ANCHORS, LEAST_ANCHORS, DISTANCES = 6_000, 100, 2e8
"""Larger pools look for neighbours among so many random points only, so that no more distances are computed."""
ROWS = 1_000
"""Rows whose distances to all anchors are held together."""
BLOCK = 64
"""Columns that are carried along the graph together."""
LEFT_OUT = 0.03
"""The smoothing ends as soon as no more than this share of what it changes can be left."""


class Scratch:
    """Memory that is used again for each part of a pool: to clear new pages takes longer than the sums made there."""

    def __init__(self) -> None:
        self._kept: dict[str, Array] = {}

    def __call__(self, name: str, *shape: int, dtype: DTypeLike = np.float32) -> Array:
        """An array with anything in it; the next one of the same name takes its place."""
        size = math.prod(shape)
        if name not in self._kept or len(self._kept[name]) < size:
            self._kept[name] = np.empty(size, dtype)
        return self._kept[name][:size].reshape(shape)


# ---------------------------------------------------------------- coordinates


@dataclass(frozen=True)
class Coordinates:
    """The map from features (n, D) to coordinates (n, D'): standardised when few, principal components when many."""

    mean: Array
    turn: Array

    @classmethod
    def of(cls, features: Array) -> "Coordinates":
        """Those of the points with these features."""
        mean, covariance = _moments(features)
        if features.shape[1] <= RECIPE.few_columns:
            scale = np.sqrt(np.diag(covariance))
            return cls(mean, np.diag(1 / np.where(scale > 1e-12 * np.abs(mean), scale, np.inf)))
        return cls(mean, np.linalg.eigh(covariance)[1][:, ::-1][:, : RECIPE.components])

    def __call__(self, features: Array) -> Floats:
        space, scratch = np.empty((len(features), self.turn.shape[1]), np.float32), Scratch()
        for part in _chunks(features):
            rows = features[part]
            centred = np.subtract(rows, self.mean, out=scratch("centred", *rows.shape, dtype=np.float64))
            space[part] = centred @ self.turn
        return space


def coordinates(features: Array) -> Floats:
    """(N, D') features as coordinates: standardised when few, leading principal components when many."""
    return Coordinates.of(features)(features)


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


def _chunks(features: Array, numbers: int = 2**22) -> Iterator[slice]:
    step = max(1, numbers // max(1, features.shape[1]))
    for start in range(0, len(features), step):
        yield slice(start, start + step)


def median_distance(space: Array) -> float:
    """Median squared distance between random pairs of points."""
    first, second = np.random.default_rng(0).integers(len(space), size=(2, 2000))
    squared = ((space[first] - space[second]) ** 2).sum(1)
    return float(np.median(squared[squared > 0])) if (squared > 0).any() else 1.0


def random_features(space: Floats, count: int, gamma: float, seed: int, scratch: Scratch | None = None) -> Floats:
    """(N, count) with inner products near exp(-gamma |x - x'|^2) (Rahimi and Recht)."""
    scratch = scratch or Scratch()
    frequencies = np.random.default_rng(seed).standard_normal((space.shape[1], count // 2)) * np.sqrt(2 * gamma)
    phase = scratch("phase", len(space), count // 2)
    np.matmul(space, frequencies.astype(np.float32), out=phase)
    features = scratch("random features", len(space), 2 * (count // 2))
    np.cos(phase, out=features[:, : count // 2])
    np.sin(phase, out=features[:, count // 2 :])
    features *= np.float32(np.sqrt(2 / count))
    return features


# ---------------------------------------------------------------- neighbours


class Neighbourhood:
    """Who is near whom: a graph among anchors (all points of a small pool), and any other point's nearest anchors.

    space   (n, D') coordinates of the points, or of a sample of them
    points  how many there are in all
    """

    def __init__(self, space: Floats, points: int | None = None) -> None:
        n = len(space)
        most = max(LEAST_ANCHORS, int(DISTANCES // max(points or n, 1)))
        count = min(n, MOST_ANCHORS, most)
        self.anchors = np.sort(np.random.default_rng(3).permutation(n)[:count])
        self._near, self._coordinates = min(RECIPE.neighbours, count - 1), space[self.anchors]
        neighbours, squared = nearest(self._coordinates, self._coordinates, self._near, same=True)
        self._scale = _scale(squared)
        self.graph = _graph(neighbours, _closeness(squared, self._scale, self._scale[neighbours]))
        self.others = np.setdiff1d(np.arange(n), self.anchors)
        self.links = self.links_of(space[self.others])

    def links_of(self, points: Floats) -> "csr_array":
        """(n, anchors) how much each anchor near a point counts for it; rows add up to 1."""
        from scipy.sparse import csr_array

        anchors, squared = nearest(points, self._coordinates, self._near)
        close = _closeness(squared, _scale(squared), self._scale[anchors])
        close /= np.maximum(close.sum(1, keepdims=True), 1e-30)
        starts = np.arange(0, anchors.size + 1, max(self._near, 1), dtype=np.int32)
        starts = starts if self._near else np.zeros(len(points) + 1, np.int32)
        return csr_array((close.ravel(), anchors.ravel().astype(np.int32), starts), (len(points), len(self.anchors)))

    def smoothed(self, inputs: Floats, share: float) -> "Smoothed":
        """The inputs (n, m) of the points it was made of, changed in place: carried along the graph, mean length 1."""
        moved, squares = carried(self.graph, inputs[self.anchors], share), 0.0
        for start in range(0, inputs.shape[1], BLOCK):
            block = inputs[:, start : start + BLOCK]
            block *= np.float32(1 - share)
            block[self.anchors] = moved[:, start : start + BLOCK]
            block[self.others] += self.links @ (np.float32(share) * moved[:, start : start + BLOCK])
            squares += float(np.einsum("nm,nm->", block, block))
        length = np.float32(np.sqrt(max(squares / len(inputs), 1e-30)))
        inputs /= length
        moved *= np.float32(share) / length
        return Smoothed(inputs, moved, float((1 - share) / length))

    def crowds(self, inputs: Floats, share: float, count: int) -> Floats:
        """(anchors, count) features of the anchors (from inputs (anchors, m)) carried along the graph, and reduced.

        Other points have the mean of those of the anchors they are linked to. Of the smoothed features the leading
        principal directions are kept; 200 of 1,000 hold 99 % of their squares on every pool looked at.
        """
        from scipy.linalg import eigh

        moved = carried(self.graph, inputs, share)
        width = moved.shape[1]
        if count < width:
            moved = moved @ eigh(moved.T @ moved, subset_by_index=(width - count, width - 1))[1]
        return np.asarray(moved / np.sqrt(max(float(np.einsum("nm,nm->", moved, moved)) / len(moved), 1e-30)))


@dataclass(frozen=True)
class Smoothed:
    """Kernel features carried along a graph.

    inputs  (n, m) those of the points of the graph
    moved   (anchors, m) what an anchor gives to a point that is linked to it, or None where nothing is carried
    own     how much a point's own features count besides
    """

    inputs: Floats
    moved: Floats | None = None
    own: float = 1.0

    def predicted(self, links: "csr_array", plain: Floats, slopes: Floats) -> Floats:
        """(k, C) features times slopes at other points, whose own features (k, m) are `plain`.

        What is carried is multiplied at the anchors, so the features of the others need not be made.
        """
        own = plain @ (slopes * np.float32(self.own))
        return own if self.moved is None else own + links @ (self.moved @ slopes)


def carried(graph: "csr_array", own: Floats, share: float) -> Floats:
    """(n, m) (1 - share) (I - share S)^-1 own, by Chebyshev semi-iteration.                                    (L1)

        x_(k+1) = w_k (share S x_k + (1 - share) own - x_(k-1)) + x_(k-1),   w_0 = 1,  w_1 = 1 / (1 - share^2 / 2),
        w_(k+1) = 1 / (1 - share^2 w_k / 4)
    The eigenvalues of S lie in [-1, 1], so after k steps at most 1 / T_k(1 / share) of the first error is left: 11
    steps at a share of 0.93, where x = share S x + (1 - share) own by itself takes 49. Columns go in blocks that fit
    into the processor's cache.
    """
    moved = np.empty_like(own)
    for start in range(0, own.shape[1], BLOCK):
        block = slice(start, start + BLOCK)
        moved[:, block] = _carried(graph, np.ascontiguousarray(own[:, block]), share)
    return moved


def _carried(graph: "csr_array", own: Floats, share: float) -> Floats:
    before, moved, weight = own.copy(), own, 1.0
    for step in range(math.ceil(math.acosh(1 / LEFT_OUT) / math.acosh(1 / share))):
        if step:
            weight = 1 / (1 - share**2 * (weight if step > 1 else 2.0) / 4)
        following = graph @ moved
        following *= np.float32(share * weight)
        following += np.float32((1 - share) * weight) * own
        before *= np.float32(1 - weight)
        following += before
        before, moved = moved if step else own.copy(), following
    return moved


def nearest(points: Floats, anchors: Floats, count: int, same: bool = False) -> tuple[NDArray[np.int64], Floats]:
    """(n, count) each: the nearest anchors of each point in no order, and how far they are, squared.

    same  points are the anchors, and none is its own neighbour
    """
    neighbours, scratch = np.empty((len(points), count), np.int64), Scratch()
    lengths, opposite = (anchors**2).sum(1), -2 * anchors.T
    for start in range(0, len(points) if count else 0, ROWS):
        rows = points[start : start + ROWS]
        distance = scratch("distance", len(rows), len(anchors))
        np.matmul(rows, opposite, out=distance)  # but for a term that is the same for all anchors
        distance += lengths
        if same:
            distance[np.arange(len(rows)), start + np.arange(len(rows))] = np.inf
        neighbours[start : start + ROWS] = smallest(distance, count)
    return neighbours, squared_distances(points, anchors, neighbours)


def smallest(values: Floats, count: int) -> NDArray[np.int64]:
    """(n, count) the columns of the smallest values of each row (n, m), in no order.

    Values are first looked at in blocks: the count-th smallest of the least values of all blocks is an upper bound, and
    the few values below it are all that has to be put in order.
    """
    n, m = values.shape
    width = int((m / max(count, 1)) ** 0.5 / 2)
    if width < 2 or not n:
        return np.argpartition(values, count - 1, axis=1)[:, :count]
    blocks = m // width
    least = values[:, : blocks * width].reshape(n, width, blocks).min(1)
    limit = np.partition(least, count - 1, axis=1)[:, count - 1]
    rows, columns = np.divmod(np.flatnonzero(values <= limit[:, None]), m)
    starts = np.searchsorted(rows, np.arange(n + 1))
    position = np.arange(len(rows)) - starts[rows]
    few = np.full((n, int(np.diff(starts).max())), np.inf, values.dtype)
    few[rows, position] = values[rows, columns]
    chosen = np.argpartition(few, count - 1, axis=1)[:, :count]
    return np.asarray(columns[starts[:-1, None] + chosen])


def squared_distances(points: Floats, anchors: Floats, neighbours: NDArray[np.int64]) -> Floats:
    """(n, count) squared distances of points to the anchors that are their neighbours."""
    squared, apart = np.empty(neighbours.shape, np.float32), np.empty(points.shape, np.float32)
    for column in range(neighbours.shape[1]):
        np.take(anchors, neighbours[:, column], axis=0, out=apart, mode="clip")  # no copy as with mode="raise"
        np.subtract(points, apart, out=apart)
        np.einsum("nd,nd->n", apart, apart, out=squared[:, column])
    return squared


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
    rows = np.repeat(np.arange(n, dtype=np.int32), count)
    links = csr_array((closeness.ravel(), (rows, neighbours.ravel().astype(np.int32))), shape=(n, n))
    both = links.maximum(links.T)
    degree = np.maximum(np.asarray(both.sum(1)).ravel(), 1e-30)
    root = diags_array((degree**-0.5).astype(np.float32))
    return csr_array(root @ both @ root)
