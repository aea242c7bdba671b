"""Hash bits that keep points of similar accuracy together (C12, C13).

bit_k(i) = 1{ w_k . z_i > 0 };  the r bits of a point are the number of its bucket. Bits are learned one after another:
the next plane makes the spread of correctness inside the buckets it leaves as small as it can.
"""

import numpy as np
from numpy.typing import NDArray

from altmas.methods.assured.logistic import logistic_fit, sigmoid
from altmas.methods.related.proxy import confidence_of
from altmas.pool import Pool
from altmas.types import Array

DIMENSIONS = 50
"""Features are projected at random to this many dimensions when they have more."""
ONE_HOT_CLASSES = 30
SHARPER = (1.0, 3.0, 10.0)
"""tau: soft bits become hard in these steps."""
PENALTY = 1e-2


def hash_inputs(pool: Pool) -> Array:
    """(N, d) z: standardised features (or a random projection), one-hot prediction, log odds of the confidence, and 1.

    The confidence is the highest score or, without scores, how sure a label-free imitation of the model is. Its log
    odds are standardised as the features are: a probability just below 1 would vanish beside them.

    Computed at most once while the pool lives.
    """
    return pool.memo.get("hash inputs", (), lambda: _hash_inputs(pool))


def _hash_inputs(pool: Pool) -> Array:
    columns = [np.ones((len(pool), 1))]
    if pool.features is not None:
        x = np.asarray(pool.features, np.float64)
        scale = x.std(0)
        x = (x - x.mean(0)) / np.where(scale > 0, scale, 1.0)
        if x.shape[1] > DIMENSIONS:
            directions = np.random.default_rng(41).standard_normal((x.shape[1], DIMENSIONS))
            x = x @ directions / np.sqrt(x.shape[1])
        columns.append(x)
    if len(pool.classes) <= ONE_HOT_CLASSES:
        columns.append(np.eye(len(pool.classes))[pool.predictions])
    p = np.clip(confidence_of(pool), 1e-6, 1 - 1e-6)
    odds = np.log(p) - np.log1p(-p)
    columns.append(((odds - odds.mean()) / max(float(odds.std()), 1e-9))[:, None])
    return np.hstack(columns)


def buckets_of(inputs: Array, planes: Array) -> NDArray[np.int64]:
    """(N,) bucket numbers, the first bit the highest, so that neighbours share their first bits (C12)."""
    number = np.zeros(len(inputs), np.int64)
    for plane in planes:
        number = 2 * number + (inputs @ plane > 0)
    return number


def learn_planes(inputs: Array, right: Array, weights: Array, bits: int) -> Array:
    """(r, d) planes, r <= bits: greedy minimisation of (C13); stops when a plane no longer splits anything."""
    planes = np.zeros((0, inputs.shape[1]))
    group = np.zeros(len(inputs), np.int64)
    for _ in range(bits):
        plane = _next_plane(inputs, right, weights, group)
        split = 2 * group + (inputs @ plane > 0)
        if len(np.unique(split)) == len(np.unique(group)):
            break
        planes, group = np.vstack([planes, plane]), split
    return planes


def _next_plane(inputs: Array, right: Array, weights: Array, group: Array) -> Array:
    """(d,) from the logistic regression of what the buckets so far leave of correctness, sharpened step by step."""
    from scipy.optimize import minimize

    d = inputs.shape[1]
    plane = logistic_fit(inputs, _above_bucket(right, weights, group), weights, np.full(d, 1.0), np.zeros(d))
    for sharpness in SHARPER:
        optimum = minimize(
            within_bucket_spread,
            plane,
            args=(inputs, right, weights, group, sharpness),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 60},
        )
        plane = optimum.x
    return np.asarray(plane)


def _above_bucket(right: Array, weights: Array, group: Array) -> Array:
    """(n,) whether each point does better than its bucket's mean."""
    total = np.bincount(group, weights)
    mean = np.bincount(group, weights * right) / np.maximum(total, 1e-300)
    return np.asarray((right > mean[group]).astype(np.float64))


def within_bucket_spread(
    plane: Array, inputs: Array, right: Array, weights: Array, group: Array, sharpness: float
) -> tuple[float, Array]:
    """(value, gradient) of (C13) for one more plane: sum_i w_i sum_b m_ib (o_i - mu_b)^2 + penalty |plane|^2.

    The means mu_b are the best ones, so their own change does not enter the gradient.
    """
    soft = sigmoid(sharpness * (inputs @ plane))
    count = int(group.max()) + 1
    value, slope = PENALTY * float(plane @ plane), np.zeros(len(right))
    for member, sign in ((soft, 1.0), (1 - soft, -1.0)):
        total = np.bincount(group, weights * member, count)
        mean = np.bincount(group, weights * member * right, count) / np.maximum(total, 1e-12)
        square = weights * (right - mean[group]) ** 2
        value += float((member * square).sum())
        slope += sign * square
    gradient = inputs.T @ (slope * soft * (1 - soft) * sharpness) + 2 * PENALTY * plane
    return value, np.asarray(gradient)
