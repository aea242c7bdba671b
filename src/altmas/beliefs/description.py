"""What is known about each point before any label: how easy it looks, seen from the model's own answers.

N points, C classes. Two views, both free of labels and computed once for each pool:
scores     the model's own probabilities, when it gives them
imitation  P(the model says c | x) from features alone (`altmas.beliefs.imitation`)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from altmas.beliefs.imitation import imitation
from altmas.beliefs.space import Neighbourhood, coordinates, median_distance, random_features
from altmas.data.pool import Pool

Array = NDArray[Any]

KERNEL_FEATURES, KERNEL_NUMBERS = 1000, 1.6e8
"""Random features of the kernel in which labels are learned; fewer where there would be more numbers than that."""
SHARE = 0.93
"""How much of them comes from a point's neighbours."""
LARGEST_ODDS = 12.0
"""Log odds beyond this are as good as certain."""


@dataclass(frozen=True)
class Description:
    """Label-free columns of a pool.

    ease        (N, d) standardised columns, larger where the point looks easier for the model; d may be 0
    components  (N, p) leading principal components of the features, unit variance, or None
    kernel      (N, m) random features of a kernel smoothed over neighbours, or None without features
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


_described: WeakKeyDictionary[Pool, Description] = WeakKeyDictionary()


def describe(pool: Pool) -> Description:
    """The description of a pool, computed at most once while the pool lives."""
    if pool not in _described:
        _described[pool] = _describe(pool)
    return _described[pool]


def _describe(pool: Pool) -> Description:
    views: dict[str, Array] = {}
    components = kernel = None
    if pool.features is not None:
        space = coordinates(pool.features)
        components = space[:, :20] / np.maximum(space[:, :20].std(0), 1e-12)
        gamma, near = 1 / median_distance(space), Neighbourhood(space)
        count = 2 * int(min(KERNEL_FEATURES, KERNEL_NUMBERS / len(pool)) // 2)
        kernel = near.smoothed(random_features(space, count, 2 * gamma, seed=1), SHARE)
        views["imitation"] = imitation(pool, space, gamma, near)
    if pool.scores is not None:
        views["scores"] = np.clip(np.asarray(pool.scores, np.float64), 1e-9, None)
    looks = {name: ease(view, pool.predictions) for name, view in views.items()}
    columns = np.hstack([np.zeros((len(pool), 0)), *(standardised(one) for one in looks.values())])
    rivals = tuple(without_own(view, pool.predictions) for view in views.values())
    odds = {name: np.clip(one[:, :1], -LARGEST_ODDS, LARGEST_ODDS) for name, one in looks.items()}
    doubt = 1 - list(views.values())[-1][np.arange(len(pool)), pool.predictions] if views else None
    return Description(columns, components, kernel, rivals, odds, doubt)


# ---------------------------------------------------------------- columns from a view (N, C)


def ease(view: Array, predictions: Array) -> Array:
    """(N, 3) log odds of the predicted class, its log lead over the best rival, and minus the entropy."""
    points = np.arange(len(view))
    own = np.clip(view[points, predictions], 1e-9, 1 - 1e-9)
    others = view.copy()
    others[points, predictions] = 0.0
    rival = np.maximum(others.max(1), 1e-9)
    entropy = -(view * np.log(np.maximum(view, 1e-12))).sum(1)
    return np.column_stack([np.log(own / (1 - own)), np.log(own / rival), -entropy])


def without_own(view: Array, predictions: Array) -> Array:
    """(N, C) the view's distribution over the classes that were not predicted; uniform where it has none."""
    others = np.maximum(view, 1e-6)
    others[np.arange(len(view)), predictions] = 0.0
    return np.asarray(others / others.sum(1, keepdims=True))


def standardised(columns: Array, limit: float = 8.0) -> Array:
    """Mean 0, variance 1, cut at `limit` standard deviations; constant columns are 0."""
    scale = columns.std(0)
    return np.asarray(np.clip((columns - columns.mean(0)) / np.where(scale > 0, scale, np.inf), -limit, limit))
