"""Intervals around an estimate."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from altmas.types import Array


def normal_quantile(confidence: float) -> float:
    """z with P(|Z| <= z) = confidence."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson(p: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's interval (B2) for a share p seen in n trials; n may be effective, infinite (width 0) or 0 (no news)."""
    if math.isinf(n):
        return p, p
    if n <= 0:
        return 0.0, 1.0
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))  # contains p in spite of rounding


def effective_trials(p: float, variance: float, z: float) -> float:
    """n at which a share has this variance, taken at the centre of its own Wilson interval.

    n = c (1 - c) / variance with c = (p n + z^2/2) / (n + z^2): finite and sensible at p = 0 and p = 1 too, where
    p (1 - p) / variance would say 0.
    """
    if variance <= 1e-150:  # 0, but for rounding; the square of n would not be a number any more
        return math.inf
    n = max(p * (1 - p) / variance, 1.0)
    for _ in range(60):
        centre = (p * n + z**2 / 2) / (n + z**2)
        n = math.sqrt(n * centre * (1 - centre) / variance)  # damped: the plain iteration can swing
    return n


def bounded_interval(
    value: float, variance: float, bounds: tuple[float, float], quantile: float
) -> tuple[float, float]:
    """Wilson's interval at the effective number of trials, stretched to the bounds; value +- q sd without bounds."""
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high)):
        half = quantile * math.sqrt(max(variance, 0.0))
        return max(low, value - half), min(high, value + half)
    size = high - low
    share = min(1.0, max(0.0, (value - low) / size))
    trials = effective_trials(share, variance / size**2, quantile)
    from_, to = wilson(share, trials, quantile)
    if math.isfinite(trials) and share <= 0.5:
        from_ = min(from_, exact_lower(share, trials, quantile))
    elif math.isfinite(trials):
        to = max(to, 1 - exact_lower(1 - share, trials, quantile))
    return low + size * from_, low + size * to


def exact_lower(p: float, n: float, z: float) -> float:
    """Clopper and Pearson's lower bound of a share p in n trials.

    Wilson's is too bold where one unlikely error was met: it says 0.18/n after one in n, this one 0.025/n.
    """
    from scipy.special import betaincinv

    return float(betaincinv(p * n, n - p * n + 1, NormalDist().cdf(-z))) if p > 0 else 0.0


def student_quantile(confidence: float, freedom: float) -> float:
    """t with P(|T| <= t) = confidence."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))


def anytime_quantile(confidence: float, labels: int, planned: int) -> float:
    """The factor that makes value +- factor * se hold at all numbers of labels at once, as these grow.

    Asymptotic confidence sequence (Waudby-Smith et al. 2021, Robbins' normal mixture):
        sqrt( (1 + 1/(n rho^2)) log( (n rho^2 + 1) / alpha^2 ) ),  narrowest near `planned` labels
    """
    alpha = 1 - confidence
    log = -2 * math.log(alpha)
    rho2 = (log + math.log(log + 1)) / max(planned, 1)
    spent = max(labels, 1) * rho2
    return math.sqrt((1 + 1 / spent) * math.log((spent + 1) / alpha**2))


def simultaneous_quantile(terms: Array, confidence: float, rng: np.random.Generator, draws: int = 4000) -> float:
    """z with P(max over metrics of |Z_k| <= z) = confidence, Z correlated as the terms (n, K) of the estimates are."""
    centred = terms - terms.mean(0)
    scale = np.sqrt((centred**2).sum(0))
    kept = centred[:, scale > 0] / scale[scale > 0]
    if kept.shape[1] == 0:
        return normal_quantile(confidence)
    largest = np.abs(rng.standard_normal((draws, len(kept))) @ kept).max(1)
    return max(normal_quantile(confidence), float(np.quantile(largest, confidence)))


# ---------------------------------------------------------------- score interval of a weighted sum


@dataclass(frozen=True)
class Evidence:
    """What the labels say about a metric beside its value, if the metric were some candidate value.

    variance           of the estimate
    skew_low           how fast the variance grows as the metric lies lower: more of what lowers it would be out there
    skew_high          the same for higher
    curve              how fast that growth slows down
    unseen_low         most by which points whose labels nobody saw could lower the metric and stay unseen with the
                       probability that the interval may miss on one side; unseen_high  raise it
    half_point         half of what the label of one more point can change
    """

    variance: float
    skew_low: float = 0.0
    skew_high: float = 0.0
    curve: float = 0.0
    unseen_low: float = 0.0
    unseen_high: float = 0.0
    half_point: float = 0.0


def reach(quantile: float, variance: float, skew: float, curve: float, unseen: float) -> float:
    """How far the interval reaches from the value to one side.

    A score interval: d with d^2 = z^2 V(d), the variance if the metric lies d away, V(d) = V + skew d - curve d^2;
    never less than what could have stayed unseen. With equal weights it is Wilson's interval.              (V3)
    """
    square = quantile**2
    half = square * skew / 2
    scored = (half + math.sqrt(half**2 + (1 + square * curve) * square * variance)) / (1 + square * curve)
    return max(scored, unseen)


def score_interval(
    value: float, evidence: Callable[[float], Evidence], bounds: tuple[float, float], quantile: float
) -> tuple[float, float]:
    """(low, high): the candidates that lie within their own reach of the value, inside the bounds.

    A metric of a finite pool takes steps, one for each point: half a step is added to the reach, which is the
    continuity correction. Without it intervals of small pools of which much is labelled hold too seldom.
    """

    def accepted(candidate: float) -> bool:
        told = evidence(candidate)
        lower = candidate < value
        skew, unseen = (told.skew_low, told.unseen_low) if lower else (told.skew_high, told.unseen_high)
        reached = reach(quantile, told.variance, skew, told.curve, unseen) + told.half_point
        return abs(value - candidate) <= reached

    return _edge(value, bounds[0], accepted), _edge(value, bounds[1], accepted)


def _edge(value: float, bound: float, accepted: Callable[[float], bool], steps: int = 40) -> float:
    """The last accepted candidate from the value towards a bound (found by doubling where there is no finite one)."""
    if not math.isfinite(bound):
        step = math.copysign(max(1e-6, 1e-6 * abs(value)), bound)
        while accepted(value + step) and abs(step) < 1e12:
            step *= 2
        bound = value + step
    if accepted(bound):
        return bound
    inside, outside = value, bound
    for _ in range(steps):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if accepted(middle) else (inside, middle)
    return inside


def missed_tail(quantile: float) -> float:
    """log(1/a), a the probability beyond this many standard errors on one side."""
    from scipy.special import log_ndtr

    return -float(log_ndtr(-quantile))


def largest_unseen(gain: Array, hazard: Array, tail: float) -> float:
    """b: the largest sum of gains over a set of points that stays unseen with probability exp(-tail) or more.    (V4)

    gain    (n,) how much each point would change the metric if it were not as believed
    hazard  (n,) exposure of each point: a set stays unseen with probability exp(-sum of its hazards)

    A knapsack, greedy by gain / hazard; the last point is taken in part. For uniform draws it is tail / n, which is
    the rule of three.
    """
    kept = gain > 0
    gain, hazard = gain[kept], np.maximum(hazard[kept], 1e-300)
    if not len(gain):
        return 0.0
    ratio = gain / hazard
    enough = _top(ratio, hazard, tail)
    order = enough[np.argsort(-ratio[enough], kind="stable")]
    spent, total = np.cumsum(hazard[order]), np.cumsum(gain[order])
    last = int(np.searchsorted(spent, tail))
    if last >= len(order):
        return float(total[-1])
    before = (spent[last - 1], total[last - 1]) if last else (0.0, 0.0)
    return float(before[1] + ratio[order[last]] * (tail - before[0]))


def _top(ratio: Array, hazard: Array, tail: float) -> Array:
    """Rows that certainly hold the greedy choice: the smallest power-of-two part of the best ratios that fills it."""
    count = 256
    while count < len(ratio):
        rows = np.argpartition(-ratio, count)[:count]
        if hazard[rows].sum() >= tail:
            return rows
        count *= 4
    return np.arange(len(ratio))
