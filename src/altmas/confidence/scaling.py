"""From a score to a probability: Platt (D.2), isotonic regression (D.3), temperature (D.4), and the raw one (D.1).

p = Platt.fit(scores, right)(scores_of_the_pool)       # few labels: tens to hundreds
p = Isotonic.fit(scores, right)(scores_of_the_pool)    # about 1000 labels
P = Temperature.fit(logits, codes)(logits_of_the_pool) # (N, C)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from altmas.types import Array

Scaling = Callable[[Array], Array]
"""(N,) scores -> (N,) probabilities."""


def max_softmax(scores: Array) -> Array:
    """(N,) u = max_c pi[c], the score that needs no label (D.1)."""
    return np.asarray(np.asarray(scores, np.float64).max(-1))


def _weights(weights: Array | None, n: int) -> Array:
    """Weights with mean 1."""
    if weights is None:
        return np.ones(n)
    weights = np.asarray(weights, np.float64)
    return np.asarray(weights * n / weights.sum())


# ---------------------------------------------------------------- Platt


@dataclass(frozen=True)
class Platt:
    """(D1) p = 1 / (1 + exp(slope s + offset)); a negative slope rises with the score."""

    slope: float
    offset: float

    def __call__(self, scores: Array) -> Array:
        return np.exp(-np.logaddexp(0.0, self.slope * np.asarray(scores, np.float64) + self.offset))

    @classmethod
    def fit(cls, scores: Array, right: Array, weights: Array | None = None) -> "Platt":
        """Most likely slope and offset for smoothed targets, so that separable labels leave it finite."""
        s, right = np.asarray(scores, np.float64), np.asarray(right, np.bool_)
        w = _weights(weights, len(s))
        yes, no = float(w[right].sum()), float(w[~right].sum())
        target = np.where(right, (yes + 1) / (yes + 2), 1 / (no + 2))
        x = np.column_stack([s, np.ones(len(s))])
        at = np.array([0.0, np.log((no + 1) / (yes + 1))])

        def loss(at: Array) -> float:
            z = x @ at
            return float(w @ (target * np.logaddexp(0, z) + (1 - target) * np.logaddexp(0, -z)))

        now = loss(at)
        for _ in range(100):
            p = np.exp(-np.logaddexp(0, x @ at))
            gradient = x.T @ (w * (target - p))
            curve = (x * (w * p * (1 - p))[:, None]).T @ x + 1e-12 * np.eye(2)
            step = np.linalg.lstsq(curve, gradient, rcond=None)[0]
            length = 1.0
            while (new := loss(at - length * step)) > now and length > 1e-10:
                length /= 2
            if length <= 1e-10 or float(np.abs(length * step).max()) < 1e-12:
                break
            at, now = at - length * step, new
        return cls(float(at[0]), float(at[1]))


# ---------------------------------------------------------------- isotonic


def pool_adjacent_violators(values: Array, weights: Array | None = None) -> Array:
    """(n,) the non-decreasing sequence nearest to the values in (weighted) squares."""
    values = np.asarray(values, np.float64)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    means: list[float] = []
    mass: list[float] = []
    count: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        means.append(value)
        mass.append(weight)
        count.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:
            total = mass[-2] + mass[-1]
            means[-2:] = [(means[-2] * mass[-2] + means[-1] * mass[-1]) / total]
            mass[-2:], count[-2:] = [total], [count[-2] + count[-1]]
    return np.repeat(means, count)


@dataclass(frozen=True, eq=False)
class Isotonic:
    """A non-decreasing step function: values[i] from thresholds[i] on; below the first, the first value."""

    thresholds: Array
    values: Array

    def __call__(self, scores: Array) -> Array:
        at = np.searchsorted(self.thresholds, np.asarray(scores, np.float64), side="right") - 1
        return np.asarray(self.values[np.maximum(at, 0)])

    @classmethod
    def fit(cls, scores: Array, right: Array, weights: Array | None = None) -> "Isotonic":
        """Least squares; equal scores are pooled first, and nothing is surer than 1 / (n + 2)."""
        s, w = np.asarray(scores, np.float64), _weights(weights, len(scores))
        thresholds, index = np.unique(s, return_inverse=True)
        mass = np.bincount(index, w)
        share = np.bincount(index, w * np.asarray(right, np.float64)) / mass
        least = 1 / (len(s) + 2)
        return cls(thresholds, np.clip(pool_adjacent_violators(share, mass), least, 1 - least))


# ---------------------------------------------------------------- several classes


@dataclass(frozen=True)
class OneVsRest:
    """One scaling for each class, normalised to sum 1 over the classes."""

    scalings: tuple[Scaling, ...]

    def __call__(self, scores: Array) -> Array:
        probabilities = np.column_stack([scaling(scores[:, c]) for c, scaling in enumerate(self.scalings)])
        return np.asarray(probabilities / probabilities.sum(1, keepdims=True))

    @classmethod
    def fit(
        cls, kind: type[Platt] | type[Isotonic], scores: Array, y: Array, weights: Array | None = None
    ) -> "OneVsRest":
        """Fitted on scores (n, C) and true codes y (n,)."""
        return cls(tuple(kind.fit(scores[:, c], y == c, weights) for c in range(scores.shape[1])))


@dataclass(frozen=True)
class Temperature:
    """(D2) p = softmax(z / temperature); the answer with the highest probability stays the same."""

    temperature: float

    def __call__(self, logits: Array) -> Array:
        return _softmax(np.asarray(logits, np.float64) / self.temperature)

    @classmethod
    def fit(cls, logits: Array, y: Array, weights: Array | None = None) -> "Temperature":
        """The most likely temperature, with its logarithm in [-3, 4]: mean(z_y - sum_c p_c z_c) = 0 there."""
        from scipy.optimize import brentq

        z, w = np.asarray(logits, np.float64), _weights(weights, len(logits))
        true_sum = float(w @ z[np.arange(len(z)), y])

        def slope(log_t: float) -> float:
            """Rises with T: the likelihood is concave in 1/T."""
            return true_sum - float(w @ (_softmax(z * np.exp(-log_t)) * z).sum(1))

        if slope(-3.0) >= 0:
            return cls(float(np.exp(-3.0)))
        if slope(4.0) <= 0:
            return cls(float(np.exp(4.0)))
        return cls(float(np.exp(brentq(slope, -3.0, 4.0, xtol=1e-12))))

    @staticmethod
    def logits(scores: Array) -> Array:
        """ln pi, which is as good as the logits; 0 is taken as 1e-12."""
        return np.asarray(np.log(np.maximum(np.asarray(scores, np.float64), 1e-12)))


def _softmax(z: Array) -> Array:
    p = np.exp(z - z.max(-1, keepdims=True))
    return np.asarray(p / p.sum(-1, keepdims=True))
