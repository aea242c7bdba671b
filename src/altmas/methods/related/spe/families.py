"""Families of score distributions, all told by a location and the logarithm of a scale (docs/confidence.md C.7).

support  (low, high) a little wider than the scores seen; gamma and Weibull start at `low`, the truncated normal is cut
         at both ends. What cannot be (a location below the support) has density 0.
         location                        scale
normal   mean                            standard deviation
truncated-normal  mean and standard deviation before the cut
gamma    mean                            standard deviation
weibull  63rd percentile, low + lambda   lambda / shape
mirrored-gamma, mirrored-weibull  the same from `high` downwards: what one kind of answer may look like, the other may
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from altmas.types import Array

Support = tuple[float, float]
OfScores = Callable[[Array, Array, Array, Support], Array]

HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)


class Family(NamedTuple):
    """log_density and distribution(scores, location, log_scale, support), both broadcast."""

    log_density: OfScores
    distribution: OfScores


def normal_log_density(s: Array, location: Array, log_scale: Array, support: Support) -> Array:
    return np.asarray(-0.5 * ((s - location) * np.exp(-log_scale)) ** 2 - log_scale - HALF_LOG_TWO_PI)


def normal_distribution(s: Array, location: Array, log_scale: Array, support: Support) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr((s - location) * np.exp(-log_scale)))


def truncated_log_density(s: Array, location: Array, log_scale: Array, support: Support) -> Array:
    return normal_log_density(s, location, log_scale, support) - np.log(_share_inside(location, log_scale, support))


def truncated_distribution(s: Array, location: Array, log_scale: Array, support: Support) -> Array:
    below = _between(support[0], s, location, log_scale)
    return np.asarray(np.clip(below / _share_inside(location, log_scale, support), 0.0, 1.0))


def _share_inside(location: Array, log_scale: Array, support: Support) -> Array:
    """The share of the normal distribution inside the support."""
    return np.maximum(_between(support[0], support[1], location, log_scale), 1e-300)


def _between(low: Any, high: Any, location: Array, log_scale: Array) -> Array:
    """P(low < normal < high), from the tail that is smaller."""
    from scipy.special import ndtr

    a, b = (low - location) * np.exp(-log_scale), (high - location) * np.exp(-log_scale)
    upper = a > 0
    return np.asarray(ndtr(np.where(upper, -a, b)) - ndtr(np.where(upper, -b, a)))


NARROWEST = 30.0
"""Log shape of a gamma distribution beyond which it is a single point."""
WIDEST = -50.0
"""Log shape below which all count as this one: the density lies at the low end of the support all the same."""


def gamma_log_density(s: Array, location: Array, log_scale: Array, support: Support) -> Array:
    from scipy.special import gammaln

    x, shape, scale, possible = _gamma(s, location, log_scale, support)
    density = (shape - 1) * np.log(x) - x / scale - shape * np.log(scale) - gammaln(shape)
    return np.where(possible, density, -np.inf)


def gamma_distribution(s: Array, location: Array, log_scale: Array, support: Support) -> Array:
    from scipy.special import gammainc

    x, shape, scale, _ = _gamma(s, location, log_scale, support)
    return np.asarray(gammainc(shape, x / scale))


def _gamma(s: Array, location: Array, log_scale: Array, support: Support) -> tuple[Array, Array, Array, Array]:
    positive = location > support[0]
    mean = np.where(positive, location - support[0], 1.0)
    log_shape = 2 * (np.log(mean) - log_scale)
    shape = np.exp(np.clip(log_shape, WIDEST, NARROWEST))
    return np.maximum(s - support[0], 1e-12), shape, mean / shape, positive & (log_shape < NARROWEST)


def weibull_log_density(s: Array, location: Array, log_scale: Array, support: Support) -> Array:
    log_x, log_length, shape, possible = _weibull(s, location, log_scale, support)
    power = np.exp(np.minimum(shape * (log_x - log_length), 700.0))
    return np.where(possible, np.log(shape) - log_length + (shape - 1) * (log_x - log_length) - power, -np.inf)


def weibull_distribution(s: Array, location: Array, log_scale: Array, support: Support) -> Array:
    log_x, log_length, shape, _ = _weibull(s, location, log_scale, support)
    return np.asarray(-np.expm1(-np.exp(np.minimum(shape * (log_x - log_length), 700.0))))


def _weibull(s: Array, location: Array, log_scale: Array, support: Support) -> tuple[Array, Array, Array, Array]:
    possible = location > support[0]
    length = np.where(possible, location - support[0], 1.0)
    return np.log(np.maximum(s - support[0], 1e-12)), np.log(length), length * np.exp(-log_scale), possible


def mirrored(family: Family) -> Family:
    """The family seen from the other end of the support."""

    def log_density(s: Array, location: Array, log_scale: Array, support: Support) -> Array:
        both_ends = support[0] + support[1]
        return family.log_density(both_ends - s, both_ends - location, log_scale, support)

    def distribution(s: Array, location: Array, log_scale: Array, support: Support) -> Array:
        both_ends = support[0] + support[1]
        return np.asarray(1 - family.distribution(both_ends - s, both_ends - location, log_scale, support))

    return Family(log_density, distribution)


GAMMA = Family(gamma_log_density, gamma_distribution)
WEIBULL = Family(weibull_log_density, weibull_distribution)

FAMILIES: dict[str, Family] = {
    "normal": Family(normal_log_density, normal_distribution),
    "truncated-normal": Family(truncated_log_density, truncated_distribution),
    "gamma": GAMMA,
    "weibull": WEIBULL,
    "mirrored-gamma": mirrored(GAMMA),
    "mirrored-weibull": mirrored(WEIBULL),
}
"""Families by name."""


def start_of(name: str, mean: float, sd: float, support: Support) -> tuple[float, float]:
    """(location, log scale) of the member with about this mean and standard deviation."""
    if name.startswith("mirrored-"):
        both_ends = support[0] + support[1]
        location, log_scale = start_of(name.removeprefix("mirrored-"), both_ends - mean, sd, support)
        return both_ends - location, log_scale
    location, scale = mean, sd
    if name == "weibull":  # an extreme-value distribution for large shapes: sd = 1.283 scale, mean = 63 % point - 0.577
        scale = sd / 1.283
        location = mean + 0.577 * scale
    if name in ("gamma", "weibull"):
        location = max(location, support[0] + 0.5 * scale)
    return location, float(np.log(scale))
