"""Intervals around an estimate: one rule, `score_interval`, for all methods.

A method says what its labels tell as Evidence. For a share that is the binomial distribution (Wilson's interval, never
inside Clopper and Pearson's), also at an effective number of trials; for weighted terms it is their variance, and how
it grows with what nobody has seen; for a metric without bounds it is the variance alone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from altmas.types import Array


def normal_quantile(confidence: float) -> float:
    """z with P(|Z| <= z) = confidence."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


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
    scaled = centred[:, scale > 0] / scale[scale > 0]
    if scaled.shape[1] == 0:
        return normal_quantile(confidence)
    largest = np.abs(rng.standard_normal((draws, len(scaled))) @ scaled).max(1)
    return max(normal_quantile(confidence), float(np.quantile(largest, confidence)))


# ---------------------------------------------------------------- the rule


@dataclass(frozen=True)
class Evidence:
    """What the labels say about a metric beside its value, if the metric were some candidate value.

    variance           of the estimate
    skew_low           how fast the variance grows as the metric lies lower: more of what lowers it would be out there;
                       below 0 if it shrinks
    skew_high          the same for higher
    curve              how fast that growth slows down
    met_low            how far it reaches down at least where the variance shrinks that way: what raised the estimate
                       may have been met by luck (V21);  met_high  up, for what lowered it
    unseen_low         most by which points whose labels nobody saw could lower the metric and stay unseen with the
                       probability that the interval may miss on one side; unseen_high  raise it
    half_point         half of what the label of one more point can change
    """

    variance: float
    skew_low: float = 0.0
    skew_high: float = 0.0
    curve: float = 0.0
    met_low: float = 0.0
    met_high: float = 0.0
    unseen_low: float = 0.0
    unseen_high: float = 0.0
    half_point: float = 0.0


def reach(quantile: float, variance: float, skew: float, curve: float, unseen: float, met: float = 0.0) -> float:
    """How far the interval reaches from the value to one side.

    A score interval: d with d^2 = z^2 V(d), the variance if the metric lies d away, V(d) = V + skew d - curve d^2;
    never less than what could have stayed unseen. With equal weights it is Wilson's interval.              (V3)
    Where the variance shrinks that way it is not less than `met` either, as far as that lies within the reach of a
    variance that stays as it is.                                                                           (V21)
    """
    scored = _scored(quantile, variance, skew, curve)
    if skew < 0:
        scored = max(scored, min(_scored(quantile, variance, 0.0, curve), met))
    return max(scored, unseen)


def _scored(quantile: float, variance: float, skew: float, curve: float) -> float:
    square = quantile**2
    half = square * skew / 2
    return (half + math.sqrt(half**2 + (1 + square * curve) * square * variance)) / (1 + square * curve)


def score_interval(
    value: float, evidence: Evidence | Callable[[float], Evidence], bounds: tuple[float, float], quantile: float
) -> tuple[float, float]:
    """(low, high): the candidates that lie within their own reach of the value, inside the bounds.

    evidence  at each candidate, or the same for all of them

    A metric of a finite pool takes steps, one for each point: half a step is added to the reach, which is the
    continuity correction. Without it intervals of small pools of which much is labelled hold too seldom.
    """
    if isinstance(evidence, Evidence):
        ends = (value - _reach_down(evidence, quantile), value + _reach_up(evidence, quantile))
        return max(bounds[0], ends[0]), min(bounds[1], ends[1])

    def accepted(candidate: float) -> bool:
        side = _reach_down if candidate < value else _reach_up
        return abs(value - candidate) <= side(evidence(candidate), quantile)

    return _edge(value, bounds[0], accepted), _edge(value, bounds[1], accepted)


def _reach_down(evidence: Evidence, quantile: float) -> float:
    shape = evidence.variance, evidence.skew_low, evidence.curve
    return reach(quantile, *shape, evidence.unseen_low, evidence.met_low) + evidence.half_point


def _reach_up(evidence: Evidence, quantile: float) -> float:
    shape = evidence.variance, evidence.skew_high, evidence.curve
    return reach(quantile, *shape, evidence.unseen_high, evidence.met_high) + evidence.half_point


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


# ---------------------------------------------------------------- shares


LEAST_CHANCE = 0.025
"""Chance of a miss on one side below which the range in which one end has the chance of both grows no more (B12)."""
FEW_TRIALS = 10
"""Trials below which an interval of a share is never inside Clopper and Pearson's."""


def share_evidence(share: float, trials: float, quantile: float) -> Evidence:
    """What a share in n trials says; n may be effective, infinite (exact) or 0 (no news).

    The variance of a candidate q is q (1 - q)/n, which gives Wilson's interval (B2). That one is too bold where one
    unlikely outcome was met: after one error in n it says that errors are at least 0.18/n. The interval never says more
    than `rare_lower` on that side, which is 0.05/n, nor more than Clopper and Pearson's on the other one in fewer than
    FEW_TRIALS trials, where Wilson's holds in 0.8 of samples for some shares.                               (B4)
    """
    if math.isinf(trials):
        return Evidence(0.0)
    if trials <= 0:
        return Evidence(math.inf)
    tilt, rare = (1 - 2 * share) / trials, min(share, 1 - share)
    seldom, often = rare - rare_lower(rare, trials, quantile), 0.0
    if trials < FEW_TRIALS:
        often = 1 - exact_lower(1 - rare, trials, quantile) - rare
    unseen = (seldom, often) if share <= 0.5 else (often, seldom)
    return Evidence(share * (1 - share) / trials, -tilt, tilt, 1 / trials, unseen_low=unseen[0], unseen_high=unseen[1])


def share_interval(share: float, trials: float, quantile: float, half_point: float = 0.0) -> tuple[float, float]:
    """The interval of a share in n trials (B4); a share may lie beyond 0 or 1 by what rounding of its sums does."""
    share = min(max(share, 0.0), 1.0)
    evidence = replace(share_evidence(share, trials, quantile), half_point=half_point)
    return score_interval(share, evidence, (0.0, 1.0), quantile)


def wilson(p: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's interval (B2) for a share p seen in n trials: `share_interval` without the exact bounds."""
    return score_interval(p, replace(share_evidence(p, n, z), unseen_low=0.0, unseen_high=0.0), (0.0, 1.0), z)


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
    value: float, variance: float, bounds: tuple[float, float], quantile: float, unseen_low: float = 0.0
) -> tuple[float, float]:
    """The interval of a share at the effective number of trials, stretched to the bounds; value +- q sd without bounds.

    unseen_low  how far below the value it reaches at least
    """
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high)):
        return score_interval(value, Evidence(max(variance, 0.0), unseen_low=unseen_low), bounds, quantile)
    size = high - low
    share = min(1.0, max(0.0, (value - low) / size))
    evidence = share_evidence(share, effective_trials(share, variance / size**2, quantile), quantile)
    evidence = replace(evidence, unseen_low=max(evidence.unseen_low, unseen_low / size))
    from_, to = score_interval(share, evidence, (0.0, 1.0), quantile)
    return low + size * from_, low + size * to


def variance_at_trials(value: float, variance: float, trials: float, added: float) -> float:
    """The variance of a mean over few trials between 0 and 1, with `added` more of them that are 0 or 1.          (B9)

    With few trials their spread says nothing: one alone has none.
    """
    inner = (value * trials + added / 2) / (trials + added)
    most = inner * (1 - inner) / trials
    return (trials * variance + added * most) / (trials + added)


def exact_lower(p: float, n: float, z: float) -> float:
    """Clopper and Pearson's lower bound of a share p in n trials."""
    return _exact_lower(p, n, NormalDist().cdf(-z))


def _exact_lower(p: float, n: float, chance: float) -> float:
    """The share at which p n successes or more come up with this chance."""
    from scipy.special import betaincinv

    return float(betaincinv(p * n, n - p * n + 1, chance)) if p > 0 else 0.0


def rare_lower(p: float, n: float, z: float) -> float:
    """The lower bound of the share of a rare outcome, where the interval may miss on either side but not on both.

    With a the chance on one side and E(p; a) the bound of Clopper and Pearson,
        max( E(p; a), min( E(p; 2a), 1 - max(a, 0.025)^(1/n) ) )                                            (B12)
    No upper end lies below that of no such outcome, 1 - a^(1/n). A share below that cannot be missed at the upper end,
    so that the lower one may have the whole chance there. With 0.025 intervals of a higher confidence contain those of
    a lower one.
    """
    chance = NormalDist().cdf(-z)
    without_one = 1 - float(max(chance, LEAST_CHANCE) ** (1 / n))
    return max(_exact_lower(p, n, chance), min(_exact_lower(p, n, 2 * chance), without_one))


# ---------------------------------------------------------------- what few labels have shown, and what nobody has seen


class Tails(NamedTuple):
    """log(1 / chance) that an interval may miss: on one given side, and on either side.

    An interval cannot miss on both sides at once. What is shown by one end alone, and at every look, has the chance of
    one side for both: `one_sided`.
    """

    side: float
    either: float

    @classmethod
    def of(cls, quantile: float) -> "Tails":
        """Those of an interval that reaches this many standard errors to both sides."""
        tail = missed_tail(quantile)
        return cls(tail, tail - math.log(2))

    @classmethod
    def one_sided(cls, quantile: float) -> "Tails":
        """Those of ends that are read each for itself."""
        return cls(missed_tail(quantile), missed_tail(quantile))


def missed_tail(quantile: float) -> float:
    """log(1/a), a the probability beyond this many standard errors on one side."""
    from scipy.special import log_ndtr

    return -float(log_ndtr(-quantile))


MET = 4.0
"""Events met on a side that make half of the way from the tail of one side to that of either."""


def unseen_tail(tails: Tails, total: float, squares: float) -> float:
    """log(1 / chance) that what would move a metric to one side stays unseen.                               (V26)

    total, squares  sum of the weighted events that labels have met of it, and of their squares: k = total^2 / squares
    equal ones. With a the chance of a miss on that side it is
        log(1/a) - log(2) k / (k + 4)
    Where nothing of it was met (labels without an error) that is log(1/a), so that uniform draws have the bound of
    Clopper and Pearson. Where some was, the end is that of what was met and what was not together. A pool in which as
    much stays unseen as this allows is missed on that side with a chance of 2a at most, and hardly ever on the other.
    """
    events = total**2 / squares if squares > 0 else 0.0
    return tails.side - (tails.side - tails.either) * events / (events + MET)


def reach_of_few(total: float, squares: float, tails: Tails) -> float:
    """By how much weighted rare events that add up to `total` may lie above their expectation.             (V21)

    squares  sum of the squares of the events

    They are worth k = total^2 / squares equal events. With G(k; a) the quantile of the gamma distribution with shape k,
    their expectation has the lower bound L = max( G(k; a), min( G(k; 2a), -log max(a, 0.025) ) ), which leaves
    total (1 - L / k). With equal weights it is (B12) for few events in many trials; G is of Fay and Feuer (1997). One
    event has a lower bound of about 2a.
    """
    from scipy.special import gammaincinv

    if squares <= 0:
        return 0.0
    events = total**2 / squares
    of_side, of_either = (float(gammaincinv(events, math.exp(-tail))) for tail in tails)
    return total * (1 - max(of_side, min(of_either, tails.side, -math.log(LEAST_CHANCE))) / events)


def largest_unseen(gain: Array, hazard: Array, tail: float, draws: int | None = None) -> float:
    """b: the largest sum of gains over a set of points that stays unseen with probability exp(-tail) or more.    (V4)

    gain    (n,) how much each point would change the metric if it were not as believed
    hazard  (n,) exposure of each point: a set stays unseen with probability exp(-sum of its hazards)

    draws   how many draws the hazards were made of, if they are of draws that were counted (V11)

    A knapsack, greedy by gain / hazard; the last point is taken in part. For uniform draws it is tail / n, which is
    the rule of three. With counted draws a set E is missed by all n of them with probability prod_m (1 - u(E) / U_m),
    U_m the sizes of the points that were left before draw m. The logarithm is concave, so that it takes
        sum over E of h_i <= n (1 - exp(-tail / n)),     h_i = u_i Lambda,  Lambda = sum_m 1 / U_m          (V11)
    to stay unseen; for equal sizes that is the bound of Clopper and Pearson, 1 - a^(1/n). Without a draw all can be.
    """
    positive = gain > 0
    gain, hazard = gain[positive], np.maximum(hazard[positive], 1e-300)
    if not len(gain):
        return 0.0
    if draws is not None:
        if draws == 0:
            return float(gain.sum())
        tail = -draws * math.expm1(-tail / draws)
    ratio = gain / hazard
    order = fills(ratio, hazard, tail)
    spent, total = np.cumsum(hazard[order]), np.cumsum(gain[order])
    if spent[-1] < tail:
        return float(total[-1])
    before = (spent[-2], total[-2]) if len(order) > 1 else (0.0, 0.0)
    return float(before[1] + ratio[order[-1]] * (tail - before[0]))


def fills(ratio: Array, hazard: Array, tail: float) -> Array:
    """Rows of the largest ratios, in falling order, as few as have hazards of `tail` together; else all."""
    enough = _top(ratio, hazard, tail)
    order = enough[np.argsort(-ratio[enough], kind="stable")]
    return np.asarray(order[: int(np.searchsorted(np.cumsum(hazard[order]), tail)) + 1])


def _top(ratio: Array, hazard: Array, tail: float) -> Array:
    """Rows that certainly hold the greedy choice: the smallest power-of-two part of the best ratios that fills it."""
    count = 256
    while count < len(ratio):
        rows = np.argpartition(-ratio, count)[:count]
        if hazard[rows].sum() >= tail:
            return rows
        count *= 4
    return np.arange(len(ratio))
