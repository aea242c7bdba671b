"""What is known about each point before any label: how easy it looks, seen from the model's own answers.

N points, C classes. Two views, both free of labels and computed once for each pool (answers.py has those of several
models; then the answer that most models give, `pool.anchor`, is what is called the model's answer here):
scores     the model's own probabilities, when it gives them
imitation  P(the model says c | x) from features alone, each point left out of its own prediction. Where it doubts the
           model's answer the point is unusual, and unusual points are where models err (imitation.py).
What is learned from features is fitted on at most `FITTED` random points and then applied to all, chunk by chunk.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike, NDArray

from altmas.methods.assured.answers import dawid_skene, difference_components, mean_scores, vote_shares
from altmas.methods.assured.imitation import Elsewhere, Fitted, Imitation, imitation
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.space import (
    Coordinates,
    Floats,
    Neighbourhood,
    median_distance,
    random_features,
)
from altmas.pool import Pool
from altmas.types import Array

FITTED = 50_000
"""Coordinates, neighbours, penalties and imitations of a larger pool are fitted on so many random points."""
CHUNK = 2**15
"""Points that are described together."""
DIRECTIONS, KERNEL_NUMBERS = 200, 1.6e8
"""Principal directions of the kernel's features that are kept; fewer where they would be more numbers than that."""
COMPONENTS = 20
"""Leading components of the features that the belief may learn from labels."""
WIDE = 3e7
"""Tables of more numbers are kept in half precision, which is far finer than random features and views are."""


def narrow(numbers: int) -> DTypeLike:
    """The precision in which a table of so many numbers is kept."""
    return np.float16 if numbers > WIDE else np.float32


@dataclass(frozen=True)
class Description:
    """Label-free columns of a pool.

    ease        (N, d) standardised columns, larger where the point looks easier for the model; d may be 0
    components  (N, p) leading principal components of the features, unit variance, or None
    kernel      (N, m) features of a kernel smoothed over neighbours, or None without features
    rivals      each (N, C): distributions over the classes that the model did not predict
    odds        by the name of a view, (N, 1) log odds of the predicted class in that view
    doubt       (N,) P(not the predicted class) by the scores, or else by the imitation; None without either
    """

    ease: Array
    components: Array | None
    kernel: Array | None
    rivals: tuple[Array, ...]
    odds: Mapping[str, Array] = field(default_factory=dict)
    doubt: Array | None = None

    def arrays(self) -> dict[str, Array]:
        """What a file keeps of it; half precision is far finer than the random features of the kernel are."""
        named = {"ease": self.ease, "components": self.components, "doubt": self.doubt}
        named["kernel"] = None if self.kernel is None else self.kernel.astype(np.float16, copy=False)
        named |= {f"rivals {index}": view for index, view in enumerate(self.rivals)}
        named |= {f"odds {name}": odds for name, odds in self.odds.items()}
        return {name: array for name, array in named.items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> "Description":
        """The description that `arrays` gave."""
        kernel = arrays.get("kernel")
        return cls(
            arrays["ease"],
            arrays.get("components"),
            None if kernel is None else kernel.astype(narrow(kernel.size), copy=False),
            tuple(arrays[name] for name in sorted(arrays) if name.startswith("rivals ")),
            {name.removeprefix("odds "): arrays[name] for name in arrays if name.startswith("odds ")},
            arrays.get("doubt"),
        )


EDITION = 3
"""Raised whenever a description comes out differently, so that files of earlier versions are not read."""


def describe(pool: Pool) -> Description:
    """The description of a pool, computed at most once while the pool lives, and kept in its file."""
    made_from = {"what": "description", "edition": EDITION, **pool.fingerprint}

    def make() -> Description:
        return Description.from_arrays(pool.memo.arrays(made_from, lambda: _describe(pool).arrays()))

    return pool.memo.get("description", (), make)


def _describe(pool: Pool) -> Description:
    views: dict[str, Array] = {}
    seen = None if pool.features is None else FromFeatures.of(pool)
    further = np.zeros((len(pool), 0))
    if len(pool.models) > 1:
        views |= _views_of_several(pool)
        further = difference_components(pool.models, pool.anchor)
    elif pool.scores is not None:
        views["scores"] = pool.scores
    names = (["imitation"] if seen is not None and pool.models else []) + list(views)
    columns = _Columns(len(pool), len(pool.classes), names)
    for start in range(0, len(pool), CHUNK):
        part = slice(start, min(start + CHUNK, len(pool)))
        learned = None if seen is None else seen.at(part)
        if learned is not None:
            columns.put("kernel", part, learned.kernel)
        if learned is not None or further.shape[1]:
            both = further[part] if learned is None else np.hstack([learned.components, further[part]])
            columns.put("components", part, both)
        for name in names:
            own = None if learned is None or name != "imitation" else learned.view
            view = np.maximum(views[name][part], 1e-9) if own is None else own
            columns.look(name, part, view, pool.anchor[part])
    return columns.described()


class _Columns:
    """The columns of a description while they are filled in part by part."""

    def __init__(self, n: int, n_classes: int, names: list[str]) -> None:
        self.n, self.names = n, names
        self.looks = {name: np.empty((n, 3), np.float32) for name in names}
        self.rivals = {name: np.empty((n, n_classes), narrow(n * n_classes)) for name in names}
        self.doubt = np.empty(n, np.float32) if names else None
        self.tables: dict[str, Array] = {}

    def put(self, name: str, part: slice, values: Array) -> None:
        """Fill in rows of the kernel or of the components."""
        width = values.shape[1]
        table = self.tables.setdefault(name, np.empty((self.n, width), narrow(self.n * width)))
        table[part] = values

    def look(self, name: str, part: slice, view: Array, predictions: Array) -> None:
        """Fill in what a view (n, C) says of points; their doubt is that of the last view."""
        view = np.asarray(view, np.float64)
        self.looks[name][part] = ease(view, predictions)
        if self.doubt is not None and name == self.names[-1]:
            self.doubt[part] = 1 - view[np.arange(len(view)), predictions]
        self.rivals[name][part] = without_own(view, predictions)

    def described(self) -> Description:
        """The description, once everything is filled in."""
        columns = [np.zeros((self.n, 0), np.float32), *(standardised(look) for look in self.looks.values())]
        largest = RECIPE.largest_odds
        return Description(
            np.hstack(columns),
            self.tables.get("components"),
            self.tables.get("kernel"),
            tuple(self.rivals.values()),
            {name: np.clip(look[:, :1], -largest, largest) for name, look in self.looks.items()},
            self.doubt,
        )


def _views_of_several(pool: Pool) -> dict[str, Array]:
    """What several models say of each point, by the name of the view; the one to be trusted most comes last."""
    views = {"votes": vote_shares(pool.models, len(pool.classes))}
    if len(pool.models) > 2:
        views["answers"] = dawid_skene(pool.models, len(pool.classes))
    scores = mean_scores(pool.models)
    return views if scores is None else views | {"scores": scores}


# ---------------------------------------------------------------- what features tell


@dataclass(frozen=True)
class FeatureColumns:
    """What features tell of some points: components (n, p), kernel (n, m), the imitation (n, C) or None."""

    components: Array
    kernel: Array
    view: Array | None


@dataclass(frozen=True)
class FromFeatures:
    """Everything that is learned from features, fitted on `rows` (sorted; all points of a small pool).

    scale     (p,) standard deviations of the leading coordinates
    kernel    (anchors, m) features of the kernel in which labels are learned
    imitated  the imitation of the model, or None
    """

    features: Array
    rows: NDArray[np.int64]
    coordinates: Coordinates
    near: Neighbourhood
    scale: Array
    kernel: Floats
    imitated: Imitation | None

    @classmethod
    def of(cls, pool: Pool) -> "FromFeatures":
        """Fitted to a pool."""
        assert pool.features is not None
        rows, n = fitted_rows(len(pool)), len(pool)
        features = pool.features if len(rows) == n else pool.features[rows]
        coordinates = Coordinates.of(features)
        space = coordinates(features)
        gamma, near = 1 / median_distance(space), Neighbourhood(space, n)
        plain = random_features(space[near.anchors], RECIPE.kernel_features, RECIPE.kernel_width * gamma, seed=1)
        kernel = near.crowds(plain, RECIPE.kernel_share, int(max(1, min(DIRECTIONS, KERNEL_NUMBERS / n))))
        imitated = None
        if pool.models:
            imitated = imitation(Fitted(features, space, pool.anchor[rows], len(pool.classes), gamma, near))
        scale = np.maximum(space[:, :COMPONENTS].std(0), 1e-12)
        return cls(pool.features, rows, coordinates, near, scale, kernel, imitated)

    def at(self, part: slice) -> FeatureColumns:
        """What features tell of these points: of fitted ones as they were fitted, of others by what was fitted."""
        first, last = np.searchsorted(self.rows, [part.start, part.stop])
        fitted, inside = slice(int(first), int(last)), self.rows[first:last] - part.start
        features = np.asarray(self.features[part])
        space = self.coordinates(features)
        components = space[:, :COMPONENTS] / self.scale
        own = None if self.imitated is None else self.imitated.view[fitted]
        if len(inside) == len(space):
            return FeatureColumns(components, self.fitted_kernel[fitted], own)
        points = Elsewhere(features, space, self.near.links_of(space))
        kernel = points.links @ self.kernel
        kernel[inside] = self.fitted_kernel[fitted]
        if self.imitated is None:
            return FeatureColumns(components, kernel, None)
        view = self.imitated.elsewhere(points)
        view[inside] = own
        return FeatureColumns(components, kernel, view)

    @cached_property
    def fitted_kernel(self) -> Floats:
        """(n, m) the kernel's features of the fitted points."""
        kernel = np.empty((len(self.rows), self.kernel.shape[1]), np.float32)
        kernel[self.near.anchors] = self.kernel
        kernel[self.near.others] = self.near.links @ self.kernel
        return kernel


def fitted_rows(n: int) -> NDArray[np.int64]:
    """The points on which the views of n points are fitted, sorted: all, or `FITTED` of them at random."""
    if n <= FITTED:
        return np.arange(n)
    return np.sort(np.random.default_rng(6).choice(n, FITTED, replace=False))


# ---------------------------------------------------------------- columns from a view (N, C)


def ease(view: Array, predictions: Array) -> Array:
    """(N, 3) log odds of the predicted class, its log lead over the best rival, and minus the entropy."""
    points = np.arange(len(view))
    own = np.clip(view[points, predictions], 1e-9, 1 - 1e-9)
    rivals = view.copy()
    rivals[points, predictions] = 0.0
    rival = np.maximum(rivals.max(1), 1e-9)
    entropy = -(view * np.log(np.maximum(view, 1e-12))).sum(1)
    return np.column_stack([np.log(own / (1 - own)), np.log(own / rival), -entropy])


def without_own(view: Array, predictions: Array) -> Array:
    """(N, C) the view's distribution over the classes that were not predicted; uniform where it has none."""
    rivals = np.maximum(view, 1e-6)
    rivals[np.arange(len(view)), predictions] = 0.0
    return np.asarray(rivals / rivals.sum(1, keepdims=True))


def standardised(columns: Array, limit: float = 8.0) -> Array:
    """Mean 0, variance 1, cut at `limit` standard deviations; constant columns are 0."""
    scale = columns.std(0)
    return np.asarray(np.clip((columns - columns.mean(0)) / np.where(scale > 0, scale, np.inf), -limit, limit))
