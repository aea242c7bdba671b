"""Pools on which nothing was tuned that are made here: ordinary classifiers and what they say of points unseen by them.

X (n, D) features, y (n,) truth, scores (n, C), a (n,) predictions. Each classifier is trained once in a process, on
points that are not in its pool.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from benchmarks.idx import FASHION_MNIST, load_split, pixels_of

Arrays = dict[str, NDArray[Any]]

GARMENTS, DIGITS, TUMOURS = 5_000, 500, 60
"""Points each classifier is trained on: the first of FashionMNIST's training images, of the digits, of the tumours."""
CLASSIFIERS: Final = {
    "logistic": partial(LogisticRegression, C=0.1, max_iter=2000),
    "bayes": partial(GaussianNB, var_smoothing=1e-3),  # scores of 0 or 1 nearly everywhere, and often wrong
    "tree": partial(DecisionTreeClassifier, min_samples_leaf=5, random_state=0),  # scores are shares in leaves
}


@cache
def garments(classifier: str, download: bool) -> Arrays:
    """FashionMNIST's test images."""
    train, test = (load_split(FASHION_MNIST, split, download=download) for split in ("train", "test"))
    model = CLASSIFIERS[classifier]().fit(pixels_of(train.images[:GARMENTS]), train.labels[:GARMENTS])
    return predicted(model, pixels_of(test.images), test.labels)


@cache
def small_digits(classifier: str, _download: bool) -> Arrays:
    """The 8 x 8 digits that come with scikit-learn, but for those of the training."""
    x, y = load_digits(return_X_y=True)
    return predicted(CLASSIFIERS[classifier]().fit(x[:DIGITS], y[:DIGITS]), x[DIGITS:], y[DIGITS:])


@cache
def tumours(classifier: str, _download: bool) -> Arrays:
    """The Wisconsin tumours that come with scikit-learn (1 is benign), but for those of the training."""
    x, y = load_breast_cancer(return_X_y=True)
    return predicted(CLASSIFIERS[classifier]().fit(x[:TUMOURS], y[:TUMOURS]), x[TUMOURS:], y[TUMOURS:])


def predicted(model: Any, x: NDArray[Any], y: NDArray[Any]) -> Arrays:
    scores = np.asarray(model.predict_proba(x), np.float64)
    return {"X": x, "y": y, "a": scores.argmax(1), "scores": scores}


HELD_OUT_ARRAYS: Final[dict[str, Callable[[bool], Arrays]]] = {
    "fashion-logistic": partial(garments, "logistic"),
    "fashion-bayes": partial(garments, "bayes"),
    "digits-tree": partial(small_digits, "tree"),
    "tumours-tree": partial(tumours, "tree"),
}
