"""P(the model is right) by regularised logistic regression, and how several such answers are combined.

Nothing here is ever certain on thin evidence: half a right and half a wrong pseudo-label are part of every fit, and
slopes are drawn towards a prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from altmas.types import Array

LARGEST = 20.7
"""Log odds beyond this, 1e-9 away from certain, count as this when answers are combined."""


@dataclass(frozen=True)
class Block:
    """Columns that share a prior: slopes ~ Normal(mean, 1 / penalty).

    train (n, d) of the labelled points; rows (m, d) of the points to be answered for
    """

    train: Array
    rows: Array
    penalty: float
    mean: float = 0.0


def logistic_fit(columns: Array, right: Array, weights: Array, penalty: Array, mean: Array) -> Array:
    """(d,) coefficients of a ridge logistic regression by Newton steps; column 0 is the intercept.

    Maximises sum_i w_i log p(right_i) + half a right and half a wrong label at the origin
              - sum_j penalty_j (b_j - mean_j)^2 / 2.
    """
    x, y, w = _with_origin(columns, right, weights)
    share = (w * y).sum() / w.sum()
    b = mean.copy()
    b[0] = np.log(share / (1 - share))
    for _ in range(25):
        p = sigmoid(x @ b)
        slope = x.T @ (w * (y - p)) - penalty * (b - mean)
        step = np.linalg.solve(_curvature(x, w, p, penalty), slope)
        largest = float(np.abs(step).max())
        b = b + step * min(1.0, 3.0 / max(largest, 1e-300))
        if largest < 1e-5:
            break
    return b


def _with_origin(columns: Array, right: Array, weights: Array) -> tuple[Array, Array, Array]:
    """The labels with half a right and half a wrong one at the origin."""
    origin = np.zeros((2, columns.shape[1]))
    origin[:, 0] = 1.0
    return np.vstack([columns, origin]), np.append(right, [0.0, 1.0]), np.append(weights, [0.5, 0.5])


def _curvature(x: Array, w: Array, p: Array, penalty: Array) -> Array:
    curve = (x * (w * p * (1 - p))[:, None]).T @ x
    curve[np.diag_indices(len(penalty))] += penalty + 1e-9
    return np.asarray(curve)


def without_itself(columns: Array, right: Array, weights: Array, penalty: Array, b: Array) -> Array:
    """(n,) log odds at each label by the fit b without that label: one Newton step from b.

    Without label i the slope at b is -w_i (y_i - p_i) x_i and the curvature H - w_i p_i (1 - p_i) x_i x_i^T, so that
    the log odds of x_i become  <x_i, b> - w_i (y_i - p_i) h_i / (1 - w_i p_i (1 - p_i) h_i),  h_i = x_i^T H^-1 x_i.
    """
    x, _, w = _with_origin(columns, right, weights)
    curve = _curvature(x, w, sigmoid(x @ b), penalty)
    logit = columns @ b
    p, leverage = sigmoid(logit), np.einsum("nd,dn->n", columns, np.linalg.solve(curve, columns.T))
    left = np.maximum(1 - weights * p * (1 - p) * leverage, 0.05)
    return np.asarray(logit - weights * (right - p) * leverage / left)


def logistic_log_odds(blocks: Sequence[Block], right: Array, weights: Array) -> tuple[Array, Array]:
    """Log odds of right, fitted on the training columns: (m,) at the rows, (n,) at each label by the others."""
    columns = np.hstack([np.ones((len(right), 1)), *(block.train for block in blocks)])
    penalty = np.concatenate([[0.0], *(np.full(block.train.shape[1], block.penalty) for block in blocks)])
    mean = np.concatenate([[0.0], *(np.full(block.train.shape[1], block.mean) for block in blocks)])
    b = logistic_fit(columns, right, weights, penalty, mean)
    logit, start = np.full(len(blocks[0].rows), b[0]), 1
    for block in blocks:
        stop = start + block.rows.shape[1]
        logit += block.rows @ b[start:stop]
        start = stop
    left_out = without_itself(columns, right, weights, penalty, b)
    return np.asarray(np.clip(logit, -30, 30)), np.asarray(np.clip(left_out, -30, 30))


def share_right(right: Array, weights: Array) -> tuple[float, Array]:
    """The share of right answers, with half a right and half a wrong one; (n,) the same without each label."""
    hits, total = float((weights * right).sum()) + 0.5, float(weights.sum()) + 1
    return hits / total, np.asarray((hits - weights * right) / (total - weights))


def class_rates(
    predicted: Array, right: Array, weights: Array, n_classes: int, strength: float = 4.0
) -> tuple[Array, Array]:
    """((C,) share of right answers for each predicted class, drawn towards the share of all by `strength` labels; (n,)
    that of the class of each label without that label)."""
    overall, without = share_right(right, weights)
    hits = np.bincount(predicted, weights * right, n_classes)
    seen = np.bincount(predicted, weights, n_classes)
    of_all, of_others = (np.clip(strength * share, 0.5, strength - 0.5) for share in (overall, without))
    left_out = (hits[predicted] - weights * right + of_others) / (seen[predicted] - weights + strength)
    return (hits + of_all) / (seen + strength), left_out


def combination(answers: Array, right: Array, weights: Array, prior: Array) -> Array:
    """(J,) weights of J answers, proportional to prior times likelihood on labels they did not see.

    answers (J, n) P(right) of the labelled points, each by other labels; prior (J,)
    """
    p = np.clip(answers, 1e-4, 1 - 1e-4)
    return by_likelihood(np.where(right > 0.5, np.log(p), np.log(1 - p)), weights, prior)


def by_likelihood(logs: Array, weights: Array, prior: Array) -> Array:
    """(J,) shares proportional to prior times likelihood; logs (J, n) of what each answer gave to the true label."""
    fit = (weights * logs).sum(1) + np.log(prior)
    shares = np.exp(fit - fit.max())
    return np.asarray(shares / shares.sum())


def pooled(odds: Sequence[Array], shares: Array) -> Array:
    """(N,) one answer from the log odds of several: their mean, so that a flat answer does not drown a sharp one."""
    mean = np.zeros(len(odds[0]))
    for share, answer in zip(shares, odds, strict=True):
        mean += share * np.clip(answer, -LARGEST, LARGEST)
    return sigmoid(mean)


def log_odds(chances: Array | float) -> Array:
    """ln(p / (1 - p)), p at least 1e-9 away from 0 and 1."""
    p = np.clip(np.asarray(chances, np.float64), 1e-9, 1 - 1e-9)
    return np.asarray(np.log(p / (1 - p)))


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.minimum(np.maximum(x, -30), 30))))  # quicker than np.clip
