"""About data like the pool: its points, or groups of points, are a sample of what is to come (`about="future"`).

N points in G groups: conversations, patients, documents; every point is one where nobody named any. phi_i is how point
i moves the metric, with mean 0 over the pool, and z_i what it contributes to the estimate: phi_i of its label, of what
is believed of it, and the expanded residual of both where it was drawn. The error about data like the pool has two
parts: that of the estimate about the pool, and that of the pool about what it was taken from, with variance
    F = G/(G - 1) ( S^2 + sum_g [ (sum_{i in g} z_i)^2 - sum_{i in g} z_i^2 ] ),     S^2 = sum_i E phi_i^2         (F1)
which is S^2 without groups and the cluster-robust variance once everything is labelled. Products of two residuals of
one group are estimated without bias by those that were both drawn, so errors that come in groups count before all of a
group is labelled. F is there as well when every point is labelled.
    t quantiles with H - 1 degrees of freedom,     H = (sum_g v_g)^2 / sum_g v_g^2,    v_g = (1 - rho) s_g + rho s_g^2,
    rho^2 = (F/S^2 - 1) / (sum s_g^2 / sum s_g - 1),     within 0 and 1                                             (F2)
s_g is how many points of a group count for the metric (members of the class, for its recall), a random number where
that is not known: each counts with chance r_i, and sums over g of powers of s_g are means. v_g is the variance of the
sum over a group up to a factor, as if the share rho of it came as a whole group; rho^2 says how far they do, and its
root is taken because it is known from the same few groups. Equal groups have H = G; for rho = 0,
    G* = R^2 / sum_g s_g^2,     R = sum r,
as many equal groups would be worth the same. What no group has shown yet may still come: the interval reaches
    (value - lowest) min(1, log(1/a) / G*) exp(-K),     K groups in which labels that lower the metric were seen    (F3)
further down than without it, and likewise up: the rule of three for groups. No point moves a share of trials by more
than 1/G* of its range. A metric that is no such share, such as an F1, a kappa or a mean over classes, may be moved by b
by one point of a rare class, far more than 1/N of its range. The interval then reaches at least
    min(value - lowest, N b min(1, log(1/a) / G)) exp(-K'),     b = max over i, c of -phi_i(c),                     (F5)
further down, with G* of all points for G and K' groups in which labels that lower it by b/2 or more were seen, by b/20
or more for a metric of scores, whose influences have all sizes.
With few groups that show what lowers it nobody knows whether they come as whole groups; F is at least
    S^2 exp(-K/3) R/G*                                                                                             (F4)
with the smaller K of both sides, as if all that lowers it did.

A pool that is a uniform random sample of a larger table, its share f of the rows, is about that table. The same holds
with groups left out, since rows were taken one by one, and with less left open the more of the table it is:
    (1 - f) F   in place of F,       f / -log(1 - f)  times (F3)                                                   (P2)
as the chance that M rows all stay outside is at most (1 - f)^M. f = 0 is data to come.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from altmas.intervals import Evidence
from altmas.types import Array

LEAST_GROUPS = 5
"""Groups (G*) below which nothing is said about data like the pool."""

SEEN = 0.002
"""Share of the largest influence from which on a label counts as one that lowers, or raises, the metric."""

STEEP, STEEP_OF_SCORES = 0.5, 0.05
"""The same share where only labels count that move a metric of a table about as far as any can (F5), and for metrics of
scores, whose influences have all sizes."""


@dataclass(frozen=True)
class PoolSpread:
    """What the pool says about data like it: evidence to be added, and how many groups it rests on (inf without).

    groups, witnesses  G* and H of (F2)
    """

    evidence: Evidence
    groups: float = math.inf
    witnesses: float = math.inf

    @property
    def too_few(self) -> bool:
        """Whether there are too few groups to say anything."""
        return self.groups < LEAST_GROUPS

    def quantile(self, factor: float) -> float:
        """The t quantile (F2) with the chance that a normal one of this size has."""
        return factor if math.isinf(self.witnesses) else student_like(factor, max(self.witnesses - 1, 1.0))

    def least_half_width(self, factor: float) -> float:
        """About the half-width that is left if every point is labelled; factor as that of the interval."""
        return self.quantile(factor) * math.sqrt(self.evidence.variance)


def student_like(factor: float, freedom: float) -> float:
    """t with P(T > t) = P(Z > factor), T of this many degrees of freedom."""
    from scipy.special import ndtr, stdtrit

    return -float(stdtrit(freedom, ndtr(-factor)))


def joined(pool: Evidence, ahead: PoolSpread | None) -> Evidence:
    """The evidence about data like the pool: variances, what they grow by and what stayed unseen add up.

    To neither side is the variance taken to shrink: what few labels have met is not counted by groups.
    """
    if ahead is None:
        return pool
    more = ahead.evidence
    return replace(
        pool,
        variance=pool.variance + more.variance,
        skew_low=max(pool.skew_low, 0.0) + more.skew_low,
        skew_high=max(pool.skew_high, 0.0) + more.skew_high,
        curve=pool.curve + more.curve,
        unseen_low=pool.unseen_low + more.unseen_low,
        unseen_high=pool.unseen_high + more.unseen_high,
    )


@dataclass(frozen=True)
class Influences:
    """How points move a metric, as far as is known; all of the points that it is about, in the same order.

    contributions  (n,) z_i;  squares  S^2;  skew  third moment of phi over its square, as believed
    labelled       (m,) rows with a label among them, and (m,) `shown`, phi of these labels
    largest        the largest change that the label of one point can make
    steepest       most by which one point lowers, and raises, the metric (F5), both 0 for a share of trials
    alike          share of these from which on a label counts for K' of (F5)
    beyond         how far the mean of phi lies outside of what it can be, for an estimate beyond the metric's bounds
    counting       (n,) r_i of (F2);  groups  (n,) numbers of the groups, or None
    drawn_together products of terms of one group that its draw as a whole adds to those of the contributions (U7)
    """

    contributions: Array
    squares: float
    skew: float
    labelled: Array
    shown: Array
    largest: float
    counting: Array
    groups: Array | None
    beyond: float = 0.0
    drawn_together: float = 0.0
    steepest: tuple[float, float] = (0.0, 0.0)
    alike: float = STEEP

    @property
    def size(self) -> int:
        """How many points."""
        return len(self.contributions)

    def groups_with(self, sign: float) -> float:
        """K of (F3): in how many groups, in effect, there are labels that move the metric that way."""
        return groups_moving(sign * self.shown, self._groups_of_labels, self.largest + self.beyond / SEEN)

    def unseen_steep(self, sign: float, room: float, tail: float) -> float:
        """(F5) to the side of the sign; 0 for a share of trials, and for a metric without a bound there."""
        most = self.steepest[int(sign > 0)]
        if most <= 0 or not math.isfinite(room):
            return 0.0
        groups = effective_groups(np.ones(self.size), self.groups)
        seen = groups_moving(sign * self.shown, self._groups_of_labels, most + self.beyond / self.alike, self.alike)
        return min(room, self.size * most * min(1.0, tail / max(groups, 1e-9))) * math.exp(-seen)

    @property
    def _groups_of_labels(self) -> Array:
        return self.labelled if self.groups is None else self.groups[self.labelled]


def spread_of_pool(
    influences: Influences, value: float, bounds: tuple[float, float], tail: float, fraction: float = 0.0
) -> PoolSpread:
    """What the pool says about data like it; tail = log(1 / chance of a miss on one side).

    fraction  share f of what it is about that the pool is (P2): 0 for data to come
    """
    groups = effective_groups(influences.counting, influences.groups)
    seen = [influences.groups_with(sign) for sign in (-1.0, 1.0)]
    variance = variance_between(influences)
    if influences.groups is not None:
        variance = max(variance, influences.squares * least_effect(min(seen), float(influences.counting.sum()), groups))
    ratio = variance / influences.squares if influences.squares > 0 else 1.0  # design effect of the groups
    tail *= seldom_outside(fraction)
    low, high = (
        max(_unseen(abs(value - bound), groups, tail, count), influences.unseen_steep(sign, abs(value - bound), tail))
        for sign, bound, count in zip((-1.0, 1.0), bounds, seen, strict=True)
    )
    left = 1 - fraction
    evidence = Evidence(
        variance=left * variance,
        skew_low=left * max(-influences.skew * ratio, 0.0),
        skew_high=left * max(influences.skew * ratio, 0.0),
        curve=left * ratio / max(influences.size, 1),
        unseen_low=low,
        unseen_high=high,
    )
    if influences.groups is None:
        return PoolSpread(evidence)
    return PoolSpread(evidence, groups, groups_of_variance(influences.counting, influences.groups, ratio))


def seldom_outside(fraction: float) -> float:
    """f / -log(1 - f) of (P2): 1 for data to come, 0 for the pool itself."""
    if fraction <= 0:
        return 1.0
    return fraction / -math.log1p(-fraction) if fraction < 1 else 0.0


def left_when_labelled(labelled: float, fraction: float) -> float:
    """Share of the variance that is left when every point is labelled, if a share of the points is labelled now."""
    return labelled * (1 - fraction) / (1 - fraction * labelled)


def variance_between(influences: Influences) -> float:
    """F of (F1); while labels are missing at least the share of S^2 that belongs to points without one."""
    n = influences.size
    if influences.groups is None:
        return influences.squares * n / max(n - 1, 1)
    sums = group_sums(influences.contributions, influences.groups)
    together = float((sums**2).sum() - (influences.contributions**2).sum()) - influences.drawn_together
    least = influences.squares * (1 - len(influences.labelled) / max(n, 1))
    count = len(np.unique(influences.groups))
    return max(influences.squares + together, least, 0.0) * count / max(count - 1, 1)


def effective_groups(counting: Array, groups: Array | None) -> float:
    """G* of (F2)."""
    total = float(counting.sum())
    own = np.arange(len(counting)) if groups is None else groups
    expected = float((group_sums(counting, own) ** 2).sum() + (counting * (1 - counting)).sum())
    return total**2 / expected if expected > 0 else 0.0


def groups_of_variance(counting: Array, groups: Array, effect: float) -> float:
    """H of (F2); effect: how many times the variance of single points groups make of it."""
    first, second, third, fourth = _moments_of_sizes(counting, groups)
    if second <= 0:
        return 0.0
    most = second / first  # the effect of errors that come as whole groups
    rho = math.sqrt(min(1.0, max(0.0, (effect - 1) / (most - 1)))) if most > 1 + 1e-9 else 0.0
    squares = (1 - rho) ** 2 * second + 2 * rho * (1 - rho) * third + rho**2 * fourth
    return ((1 - rho) * first + rho * second) ** 2 / squares


def _moments_of_sizes(counting: Array, groups: Array) -> list[float]:
    """sum_g E s_g^k for k = 1 to 4, s_g the points of a group that count, each by itself with its chance."""
    spread = counting * (1 - counting)
    terms = (counting, spread, spread * (1 - 2 * counting), spread * (1 - 6 * spread))
    mean, variance, third, fourth = (group_sums(term, groups) for term in terms)  # cumulants of s_g
    moments = (
        mean,
        mean**2 + variance,
        mean**3 + 3 * mean * variance + third,
        mean**4 + 6 * mean**2 * variance + 4 * mean * third + 3 * variance**2 + fourth,
    )
    return [float(moment.sum()) for moment in moments]


def group_sums(values: Array, groups: Array) -> Array:
    """(G,) sum over the points of each group."""
    return np.bincount(groups, values, minlength=1)


def groups_moving(moves: Array, groups: Array, largest: float, share: float = SEEN) -> float:
    """(sum a_g)^2 / sum a_g^2 with a_g the sum of the moves of a group that are above this share of the largest."""
    counted = np.where(moves > share * largest, moves, 0.0)
    sums = group_sums(counted, groups) if counted.any() else np.zeros(1)
    return float(sums.sum() ** 2 / (sums**2).sum()) if sums.any() else 0.0


def least_effect(seen: float, counting: float, groups: float) -> float:
    """(F4) as a multiple of S^2: the design effect that the groups have at least."""
    return math.exp(-seen / 3) * counting / max(groups, 1e-9)


def _unseen(room: float, groups: float, tail: float, seen: float) -> float:
    """(F3) to one side; 0 for a metric without a bound there."""
    return room * min(1.0, tail / max(groups, 1e-9)) * math.exp(-seen) if math.isfinite(room) else 0.0


def too_few_groups(ahead: PoolSpread, name: str) -> str:
    """Why there is no interval about data like the pool."""
    return (
        f"no interval: the points come from about {ahead.groups:.1f} equal groups ({name}), and nothing is said about "
        f"data like them with fewer than {LEAST_GROUPS}"
    )
