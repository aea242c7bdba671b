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
    d = columns.shape[1]
    origin = np.zeros((2, d))
    origin[:, 0] = 1.0
    x, w = np.vstack([columns, origin]), np.append(weights, [0.5, 0.5])
    y = np.append(right, [0.0, 1.0])
    share = (w * y).sum() / w.sum()
    b = mean.copy()
    b[0] = np.log(share / (1 - share))
    diagonal = np.diag_indices(d)
    for _ in range(25):
        p = sigmoid(x @ b)
        slope = x.T @ (w * (y - p)) - penalty * (b - mean)
        curve = (x * (w * p * (1 - p))[:, None]).T @ x
        curve[diagonal] += penalty + 1e-9
        step = np.linalg.solve(curve, slope)
        largest = float(np.abs(step).max())
        b = b + step * min(1.0, 3.0 / max(largest, 1e-300))
        if largest < 1e-5:
            break
    return b


def logistic_log_odds(blocks: Sequence[Block], right: Array, weights: Array) -> Array:
    """(m,) log odds of right at the rows of the blocks, fitted on their training columns."""
    columns = np.hstack([np.ones((len(right), 1)), *(block.train for block in blocks)])
    penalty = np.concatenate([[0.0], *(np.full(block.train.shape[1], block.penalty) for block in blocks)])
    mean = np.concatenate([[0.0], *(np.full(block.train.shape[1], block.mean) for block in blocks)])
    b = logistic_fit(columns, right, weights, penalty, mean)
    logit, start = np.full(len(blocks[0].rows), b[0]), 1
    for block in blocks:
        stop = start + block.rows.shape[1]
        logit += block.rows @ b[start:stop]
        start = stop
    return np.asarray(np.clip(logit, -30, 30))


def class_rates(predicted: Array, right: Array, weights: Array, n_classes: int, strength: float = 4.0) -> Array:
    """(C,) share of right answers for each predicted class, drawn towards the share of all by `strength` labels."""
    overall = ((weights * right).sum() + 0.5) / (weights.sum() + 1)
    hits = np.bincount(predicted, weights * right, n_classes)
    seen = np.bincount(predicted, weights, n_classes)
    pseudo = min(max(strength * overall, 0.5), strength - 0.5)
    return np.asarray((hits + pseudo) / (seen + strength))


def combination(answers: Array, right: Array, weights: Array, prior: Array) -> Array:
    """(J,) weights of J answers, proportional to prior times likelihood on labels they did not see.

    answers (J, n) out-of-fold P(right) of the labelled points; prior (J,)
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
