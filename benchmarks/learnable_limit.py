"""The learnable limit of label value for accuracy: what the best belief trained on the whole truth would reach.

    limit = acc (1 - acc) / (mean_i sqrt(f_i (1 - f_i)))^2,   f = P(the model is right | what the method may see)
f is the best of several models by cross-validated log loss, calibrated (D1), each point predicted by models that did
not see it.
No sampling design with that belief beats it; a method that learns from a few hundred labels can only come near.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from altmas.methods.assured.belief import lead
from altmas.methods.assured.imitation import best_ridge, left_out
from altmas.methods.assured.space import Neighbourhood, coordinates, median_distance, random_features
from altmas.methods.assured.views import describe
from altmas.pool import Pool

Array = NDArray[Any]
FOLDS = 5
ONE_HOT = 100


def learnable_limit(pool: Pool, truth: Array) -> tuple[float, str]:
    """(limit, the model that reaches it) for a pool whose truth is known."""
    right = (pool.predictions == truth).astype(int)
    beliefs = {name: belief for name, belief in _beliefs(pool, truth, right)}
    best = min(beliefs, key=lambda name: log_loss(beliefs[name], right))
    return limit_of(beliefs[best], right), best


def limit_of(belief: Array, right: Array) -> float:
    """acc (1 - acc) / (mean sqrt(f (1 - f)))^2."""
    share = right.mean()
    return float(share * (1 - share) / np.sqrt(belief * (1 - belief)).mean() ** 2)


def log_loss(belief: Array, right: Array) -> float:
    """Mean negative log likelihood."""
    return float(-np.where(right == 1, np.log(belief), np.log(1 - belief)).mean())


def _beliefs(pool: Pool, truth: Array, right: Array) -> Any:
    n_classes = len(pool.classes)
    yield "share", np.full(len(pool), right.mean())
    yield "class", _class_shares(pool.predictions, right, n_classes)
    for name, columns in _columns(pool, truth).items():
        linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.3, max_iter=500))
        yield f"logistic on {name}", _cross_fitted(linear, columns, right)
        trees = HistGradientBoostingClassifier(
            max_iter=120, learning_rate=0.05, max_leaf_nodes=8, l2_regularization=5.0, early_stopping=False
        )
        yield f"trees on {name}", _cross_fitted(trees, columns, right)


def _columns(pool: Pool, truth: Array) -> dict[str, Array]:
    seen, n_classes = describe(pool), len(pool.classes)
    classes = np.eye(n_classes)[pool.predictions] if n_classes <= ONE_HOT else np.zeros((len(pool), 0))
    columns = {}
    if seen.ease.shape[1]:
        columns["ease, class"] = np.hstack([seen.ease, classes])
    if pool.features is not None and seen.components is not None:
        space = coordinates(pool.features)
        count = 2 * int(min(1500, (2.5e10 / len(pool)) ** 0.5, len(pool)) // 2)
        kernel = random_features(space, count, 0.3 / median_distance(space), seed=2)
        says = np.eye(n_classes, dtype=np.float32)[truth]
        learned = np.hstack(
            [
                lead(left_out(inputs, says, best_ridge(inputs, says)[0]), pool.predictions)
                for inputs in (kernel, Neighbourhood(space).smoothed(kernel.copy(), 0.5).inputs)
            ]
        )
        columns["ease, class, components"] = np.hstack([seen.ease, classes, seen.components])
        columns["ease, class, labels"] = np.hstack([seen.ease, classes, learned])
    return columns


def _cross_fitted(model: Any, columns: Array, right: Array) -> Array:
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    answers = np.clip(cross_val_predict(model, columns, right, cv=folds, method="predict_proba")[:, 1], 1e-5, 1 - 1e-5)
    odds = np.log(answers / (1 - answers))[:, None]
    calibrated = cross_val_predict(LogisticRegression(), odds, right, cv=folds, method="predict_proba")[:, 1]
    return np.asarray(np.clip(calibrated, 1e-5, 1 - 1e-5))


def _class_shares(predictions: Array, right: Array, n_classes: int, strength: float = 2.0) -> Array:
    """Share of right answers of each predicted class, without the point itself, drawn towards the share of all."""
    hits, seen = np.bincount(predictions, right, n_classes), np.bincount(predictions, minlength=n_classes)
    mean = right.mean()
    return np.asarray((hits[predictions] - right + strength * mean) / (seen[predictions] - 1 + strength))
