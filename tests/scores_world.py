"""A small pool with scores that rank well and are badly calibrated, and its truth."""

import numpy as np
from scipy.special import softmax

import altmas


def a_pool(n_classes=2, n=60, seed=0, ties=True):
    rng = np.random.default_rng(seed)
    scores = softmax(rng.normal(size=(n, n_classes)) * 1.5, axis=1)
    if ties:
        scores = np.round(scores * 8) / 8 + 1 / 64
        scores /= scores.sum(1, keepdims=True)
    names = ["cat", "dog", "eel", "fox"][:n_classes]
    truth = np.array([rng.choice(n_classes, p=row / row.sum()) for row in scores**0.7])
    sites = np.where(rng.random(n) < 0.5, "A", "B")
    pool = altmas.Pool(None, np.array(names)[scores.argmax(1)], scores=scores, classes=names, slices={"site": sites})
    return pool, truth
