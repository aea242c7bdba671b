"""What is known about each point before any label: how easy it looks, seen from the model's own answers.

N points, C classes. Two views, both free of labels and computed once for each pool:
scores     the model's own probabilities, when it gives them
imitation  P(the model says c | x) from features alone, each point predicted without itself. Where the imitation
           doubts the model's answer the point is unusual, and unusual points are where models err.
"""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from altmas.data.pool import Pool

Array = NDArray[Any]

COMPONENTS = 50
"""Principal components that are kept of many features."""
RIDGES = (1e-4, 1e-3, 1e-2, 0.1, 1.0)
"""Ridge penalties the imitation chooses from, by leave-one-out error."""
IMITATION_WORK = 2.5e10
"""Multiplications that the imitation may cost: seconds, once for each pool."""
KERNEL_FEATURES = 320
"""Random features of the kernel in which labels are learned."""
TREE_CLASSES = 4
"""Trees are tried as imitators up to this many classes; beyond, one tree for each class takes too long."""


@dataclass(frozen=True)
class Description:
    """Label-free columns of a pool.

    ease        (N, d) standardised columns, larger where the point looks easier for the model; d may be 0
    components  (N, p) leading principal components of the features, unit variance, or None
    kernel      (N, m) random features of a Gaussian kernel, or None without features
    rivals      each (N, C): distributions over the classes that the model did not predict
    own_scores  (N, 1) log odds of the predicted class by the model's own scores, or None
    doubt       (N,) P(not the predicted class) by the scores, or else by the imitation; None without either
    """

    ease: Array
    components: Array | None
    kernel: Array | None
    rivals: tuple[Array, ...]
    own_scores: Array | None = None
    doubt: Array | None = None


_described: WeakKeyDictionary[Pool, Description] = WeakKeyDictionary()


def describe(pool: Pool) -> Description:
    """The description of a pool, computed at most once while the pool lives."""
    if pool not in _described:
        _described[pool] = _describe(pool)
    return _described[pool]


def _describe(pool: Pool) -> Description:
    views, components, kernel = [], None, None
    if pool.features is not None:
        space = coordinates(pool.features)
        components = space[:, :20] / np.maximum(space[:, :20].std(0), 1e-12)
        gamma = 1 / median_distance(space)
        kernel = random_features(space, KERNEL_FEATURES, gamma / 2, seed=1).astype(np.float32)
        views.append(imitation(pool, space, gamma))
    if pool.scores is not None:
        views.append(np.clip(np.asarray(pool.scores, np.float64), 1e-9, None))
    columns = [standardised(ease(view, pool.predictions)) for view in views]
    empty = np.zeros((len(pool), 0))
    rivals = tuple(without_own(view, pool.predictions) for view in views)
    own_scores = None if pool.scores is None else np.clip(ease(views[-1], pool.predictions)[:, :1], -12, 12)
    doubt = 1 - views[-1][np.arange(len(pool)), pool.predictions] if views else None
    return Description(np.hstack([empty, *columns]), components, kernel, rivals, own_scores, doubt)


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


# ---------------------------------------------------------------- the space of features


def coordinates(features: Array) -> Array:
    """(N, D') features as coordinates: standardised when few, leading principal components when many."""
    x = np.asarray(features, np.float64)
    x = x - x.mean(0)
    if x.shape[1] <= 32:
        scale = x.std(0)
        return np.asarray(x / np.where(scale > 0, scale, 1.0))
    _, vectors = np.linalg.eigh(x.T @ x)
    return np.asarray(x @ vectors[:, ::-1][:, :COMPONENTS])


def median_distance(space: Array) -> float:
    """Median squared distance between random pairs of points."""
    one, other = np.random.default_rng(0).integers(len(space), size=(2, 2000))
    squared = ((space[one] - space[other]) ** 2).sum(1)
    return float(np.median(squared[squared > 0])) if (squared > 0).any() else 1.0


def random_features(space: Array, count: int, gamma: float, seed: int) -> Array:
    """(N, count) with inner products near exp(-gamma |x - x'|^2) (Rahimi and Recht)."""
    frequencies = np.random.default_rng(seed).standard_normal((space.shape[1], count // 2))
    phase = space @ (frequencies * np.sqrt(2 * gamma))
    return np.asarray(np.hstack([np.cos(phase), np.sin(phase)]) * np.sqrt(2 / count))


# ---------------------------------------------------------------- imitation of the model under test


def imitation(pool: Pool, space: Array, gamma: float) -> Array:
    """(N, C) P(the model says c | x), each point left out of its own prediction; the better of kernel and trees."""
    n_classes = len(pool.classes)
    count = 2 * int(min(1500, (IMITATION_WORK / len(pool)) ** 0.5, len(pool) / 2) // 2)
    says = np.eye(n_classes)[pool.predictions]
    view = softened(leave_one_out_ridge(random_features(space, count, 0.3 * gamma, seed=0), says), pool.predictions)
    seen = np.bincount(pool.predictions, minlength=n_classes)
    if n_classes > TREE_CLASSES or seen.min() < 50 or space.shape[1] > 32:
        return view
    trees = _tree_imitation(np.asarray(pool.features), pool.predictions)
    return min(view, trees, key=lambda one: _log_loss(one, pool.predictions))


def leave_one_out_ridge(inputs: Array, targets: Array) -> Array:
    """(N, C) ridge regression of the targets, each row predicted without itself; penalty by that very error."""
    inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
    values, vectors = np.linalg.eigh(inputs.T @ inputs)
    turned = inputs @ vectors
    moments, squares = turned.T @ targets, turned**2
    best, best_error = targets, np.inf
    for ridge in RIDGES:
        shrink = 1 / (np.maximum(values, 0.0) + ridge)
        leverage = np.minimum(squares @ shrink, 1 - 1e-6)
        left_out = targets + (turned @ (moments * shrink[:, None]) - targets) / (1 - leverage)[:, None]
        error = float(((left_out - targets) ** 2).mean())
        if error < best_error:
            best, best_error = left_out, error
    return best


def softened(values: Array, predictions: Array) -> Array:
    """softmax(beta * values) with the beta under which the model's answers are most likely (D2)."""
    views = (_softmax(beta * values) for beta in np.geomspace(1, 40, 25))
    return min(views, key=lambda view: _log_loss(view, predictions))


def _softmax(values: Array) -> Array:
    powers = np.exp(values - values.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


def _log_loss(view: Array, predictions: Array) -> float:
    return float(-np.log(np.maximum(view[np.arange(len(view)), predictions], 1e-6)).mean())


def _tree_imitation(features: Array, predictions: Array) -> Array:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from threadpoolctl import threadpool_limits

    trees = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.15, max_leaf_nodes=15, early_stopping=False)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    view = np.zeros((len(predictions), int(predictions.max()) + 1))
    # OpenMP threads wait by spinning: two of them on busy cores are many times slower than one.
    with threadpool_limits(limits=1, user_api="openmp"):
        says = cross_val_predict(trees, features, predictions, cv=folds, method="predict_proba")
    view[:, np.unique(predictions)] = says
    return view
