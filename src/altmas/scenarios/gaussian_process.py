"""A small Gaussian process on the unit cube, and where to look next with it (docs/other-questions.md C.8).

Prior: constant mean, radial basis function kernel of one length; what is seen carries noise. Length and noise are the
most probable pair on a grid, lengths around 0.1 being likelier beforehand: equal values alone would make the longest
length win, and the process sure of places it never saw. The prior variance is the one that fits best with them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from altmas.types import Array

LENGTHS = (0.05, 0.1, 0.2, 0.4, 0.8)
USUAL, SPREAD = 0.1, 0.5
"""Prior of the length: ln length ~ N(ln 0.1, 0.5^2)."""

NOISES = (1e-4, 1e-2, 0.1, 1.0)
"""Variance of the noise, in units of the prior variance."""

KAPPA = 2.0
RANDOM_STARTS = 1000


def kernel(x: Array, z: Array, length: float) -> Array:
    """(n, m) exp(-|x - z|^2 / (2 length^2))."""
    squared = ((x**2).sum(1)[:, None] + (z**2).sum(1) - 2 * x @ z.T).clip(0)
    return np.asarray(np.exp(squared / (-2 * length**2)))


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """What is believed about f after seeing y at x (n, d).

    level, variance  the prior mean and variance;  factor, alpha  Cholesky factor of K + noise, its solution for y
    """

    x: Array
    length: float
    level: float
    variance: float
    factor: Array
    alpha: Array

    @classmethod
    def fit(cls, x: Array, y: Array) -> "GaussianProcess":
        """The most probable length and noise on the grid."""
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        return max((_fitted(x, y, *pair) for pair in product(LENGTHS, NOISES)), key=lambda fitted: fitted[0])[1]

    def __call__(self, z: Array) -> tuple[Array, Array]:
        """(m,) mean and (m,) standard deviation of f at z (m, d)."""
        from scipy.linalg import solve_triangular

        across = kernel(self.x, z, self.length)
        explained = solve_triangular(self.factor, across, lower=True, check_finite=False)
        left = np.maximum(1 - (explained**2).sum(0), 0.0)
        return self.level + across.T @ self.alpha, np.sqrt(self.variance * left)

    def upper(self, z: Array) -> Array:
        """(C27) mean + kappa sd."""
        mean, sd = self(z)
        return np.asarray(mean + KAPPA * sd)


def _fitted(x: Array, y: Array, length: float, noise: float) -> tuple[float, GaussianProcess]:
    """(log probability, process) with the mean and variance that fit this length and noise best.

    The variance has a weak prior around 1/12 (a uniform f), so that equal values do not make the process certain.
    """
    from scipy.linalg import cho_solve

    n = len(y)
    factor = np.linalg.cholesky(kernel(x, x, length) + (noise + 1e-8) * np.eye(n))
    ones = cho_solve((factor, True), np.ones(n))
    level = float(ones @ y / ones.sum())
    alpha = cho_solve((factor, True), y - level)
    variance = float((y - level) @ alpha + 2 / 12) / (n + 2)
    likelihood = -0.5 * (n + 2) * np.log(variance) - np.log(np.diag(factor)).sum()
    likelihood -= 0.5 * np.log(length / USUAL) ** 2 / SPREAD**2
    return float(likelihood), GaussianProcess(x, length, level, variance, factor, alpha)


def highest(score: Callable[[Array], Array], dimensions: int, rng: np.random.Generator) -> Array:
    """(d,) about the highest score on the unit cube: 1000 random points, then steps around the best five."""
    points = rng.random((RANDOM_STARTS, dimensions))
    for width in (0.0, 0.1, 0.03, 0.01):
        if width:
            near = points[:5, None] + width * rng.standard_normal((5, 40, dimensions))
            points = np.concatenate([points[:5], np.clip(near, 0, 1).reshape(-1, dimensions)])
        points = points[np.argsort(-score(points), kind="stable")]
    return np.asarray(points[0])
