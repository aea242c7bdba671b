"""Parts of the variance of a metric: what squared terms show, what the belief expects, and what stayed unseen.

The terms of a metric are those of all points together or, for a metric of one class, of the points answered with it and
of the others; where whole groups are drawn they are added up over each group first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from altmas.intervals import Tails, largest_unseen, reach_of_few, unseen_tail
from altmas.methods.assured.estimator import Difference
from altmas.methods.assured.parts import FEW, Mask
from altmas.methods.assured.whole_groups import believed_of_groups, come_together, numbered, sums
from altmas.metrics.influence import ItemInfluence
from altmas.types import Array


@dataclass(frozen=True)
class Met:
    """What labels have shown that lies away from one end of what points can be: errors, seen from the upper end.

    terms      (sum, sum of squares) of the terms that moved the estimate away from that end, positive
    distances  (sum, sum of squares) of how far the expanded labels of the samples are from it
    """

    terms: tuple[float, float] = (0.0, 0.0)
    distances: tuple[float, float] = (0.0, 0.0)

    def scaled(self, scale: float) -> "Met":
        """The same with every point moving the metric so many times as much."""
        return Met(*((scale * total, scale**2 * squares) for total, squares in (self.terms, self.distances)))

    def plus(self, other: "Met", *, together: bool) -> "Met":
        """Both; together  whether they may lie in the same groups: squares of sums are at most (a + b)^2 then."""
        pairs = ((self.terms, other.terms), (self.distances, other.distances))
        power = 0.5 if together else 1.0
        return Met(*((one[0] + two[0], (one[1] ** power + two[1] ** power) ** (1 / power)) for one, two in pairs))

    def reach(self, left: float, tails: Tails) -> float:
        """How far the metric may lie towards that end.                                                      (V21)

        left  how far it would move if every unlabelled point were at that end

        Few terms may add up to more than they should. And of what is left, only the lower confidence bound of what
        labels have met is sure to be there: a belief alone is no evidence.
        """
        sure = self.distances[0] - reach_of_few(*self.distances, tails)
        return max(reach_of_few(*self.terms, tails), left - sure)


@dataclass(frozen=True)
class Group:
    """Parts of the variance that belong to one group of points.

    shown     sum of squared terms;  worth  how many equal terms that is worth;  believed  variance by the belief
    third     third central moment by the belief;  unseen_low, unseen_high  b of (V4)
    raised    what labels have met that raises the metric;  lowered  that lowers it
    """

    shown: float
    worth: float
    believed: float
    third: float
    unseen_low: float
    unseen_high: float
    raised: Met = Met()
    lowered: Met = Met()


@dataclass(frozen=True)
class Together:
    """Where whole groups are drawn: what the points of one group have in common.

    units  (n,) the groups of the sampled rows, in each stage for itself;  rho  of (U4)
    drawn  sum over the groups of the products of terms of different points
    shown, believed  what both parts of the variance have in common, in products of their scales
    """

    units: Array
    rho: float
    drawn: float
    shown: float = 0.0
    believed: float = 0.0


@dataclass(frozen=True)
class Terms:
    """The terms of a metric at the sampled rows, with what tells how far their sum may be off.

    among   the estimator whose points they are of;  items  the influence that they are made of
    rows    (n,) sampled, stage after stage;  values  (n,) terms;  roots  (n,) of their squares around the mean, signed
    second, third  (N,) moments of the weights, as in `Difference.spread_of_weights`
    """

    among: Difference
    items: ItemInfluence
    rows: Array
    values: Array
    roots: Array
    second: Array
    third: Array

    @cached_property
    def _mean(self) -> Array:
        return self.items.moments(self.among.belief)[0]

    @cached_property
    def _believed(self) -> Array:
        """(N,) the variance that the belief expects of each point."""
        return np.asarray(self.items.moments(self.among.belief)[1] * self.second)

    @cached_property
    def _skewed(self) -> Array:
        """(N,) the third moment that it expects."""
        return np.asarray(self.items.third_moment(self.among.belief) * self.third)

    def together(self, members: Sequence[Mask]) -> Together | None:
        """What points of one group have in common, where whole groups are drawn."""
        among = self.among
        if among.units is None:
            return None
        units = numbered([part.units for part in among.parts])
        scale = self._expansion
        lowest, highest = self.items.range()
        variances = np.concatenate([self.items.moments(part.belief)[1][part.rows] for part in among.parts]) * scale**2
        largest = float((scale * (highest - lowest)[self.rows]).max(initial=0.0))
        rho = come_together(self.values, variances, units, largest)
        drawn = float((sums(self.roots, units) ** 2).sum() - (self.roots**2).sum())
        if len(members) == 1:
            return Together(units, rho, drawn)
        first, second = (sums(self.roots * points[self.rows], units) for points in members)
        believed = np.sqrt(self.items.moments(among.belief)[1] * among.spread_of_weights[0])
        own, other = (sums(believed * points, among.units) for points in members)
        return Together(units, rho, drawn, float((first * second).sum()), rho * float((own * other).sum()))

    def group(self, points: Mask, tails: Tails, together: Together | None) -> Group:
        """The part of the variance that belongs to these points.

        Where whole groups are drawn terms are added up over each before they are squared (U3), and what stayed unseen
        is a set of groups (U5).
        """
        among, sampled = self.among, points[self.rows]
        if together is None or among.units is None:
            shown, units = self.roots[sampled] ** 2, None
            believed, third = float(self._believed[points].sum()), float(self._skewed[points].sum())
        else:
            shown, units = sums(self.roots * sampled, together.units) ** 2, among.units
            believed = believed_of_groups(self._believed * points, units, together.rho, 2)
            third = believed_of_groups(self._skewed * points, units, together.rho, 3)
        lowest, highest = self.items.range()
        left = np.flatnonzero(among.unlabelled & points & ~among.unreached)
        hazard, draws = among.hazard_within(points & among.inside & (highest > lowest))
        unseen = _Unseen(hazard[left], draws, None if units is None else units[left])
        raised, lowered = self._met(points, lowest, -1.0, together), self._met(points, highest, 1.0, together)
        down, up = (unseen_tail(tails, *met.distances) for met in (lowered, raised))
        centres = _centres(self.values[sampled], draws, self._mean[left], lowest[left], highest[left])
        total = float(shown.sum())
        return Group(
            shown=total,
            worth=total**2 / float((shown**2).sum()) if total > 0 else 0.0,
            believed=believed,
            third=third,
            unseen_low=max(unseen(centre - lowest[left], down) for centre in centres),
            unseen_high=max(unseen(highest[left] - centre, up) for centre in centres),
            raised=raised,
            lowered=lowered,
        )

    def _met(self, points: Mask, end: Array, sign: float, together: Together | None) -> Met:
        """end  (N,) D of each point at one end of its range;  sign  1 for the upper one, -1 for the lower."""
        among, sampled = self.among, points[self.rows]
        terms = np.where(sampled, -sign * self.values, 0.0)
        distances = np.abs(end[self.rows] - self.items.at(self.rows, among.known[self.rows]))
        distances = np.where(sampled, distances * self._expansion, 0.0)
        if together is not None:
            terms, distances = sums(terms, together.units), sums(distances, together.units)
        return Met(_sum_and_squares(terms[terms > 0]), _sum_and_squares(distances))

    @cached_property
    def _expansion(self) -> Array:
        return np.concatenate([part.share_at(part.rows) * part.expansion for part in self.among.parts])


def of_rows_never_right(among: Difference, items: ItemInfluence) -> float:
    """The variance that rows of the table add in which no labelled answer was right.                          (V28)

    A mean over classes takes each row for itself. Where m labels of a row all were wrong, their residuals show no
    variance, and with few of them the belief still has many right: the share q of right answers has the variance
        q~ (1 - q~) / m,   q~ = (1/2) / (m + 1),
    as in (B7), times the square of how far the unlabelled points of the row can move the metric. 0 where samples are
    counted together.
    """
    rows = among.by_rows
    if rows is None:
        return 0.0
    sampled, open_ = np.concatenate([part.rows for part in among.parts]), np.flatnonzero(among.unlabelled)
    codes = rows.codes[sampled]
    labels, right = (np.bincount(codes, of, rows.count) for of in (None, among.known[sampled] == codes))
    lowest, highest = items.range()
    reach = np.bincount(rows.codes[open_], (highest - lowest)[open_], rows.count)
    wrong = (labels > 0) & (right == 0)
    share = 0.5 / (labels[wrong] + 1)
    return float((reach[wrong] ** 2 * share * (1 - share) / labels[wrong]).sum())


def _sum_and_squares(terms: Array) -> tuple[float, float]:
    return float(terms.sum()), float((terms**2).sum())


class _Unseen:
    """b of (V4) of points with these hazards, or of their groups as a whole: a group has the hazard of its draw."""

    def __init__(self, hazard: Array, draws: int, units: Array | None) -> None:
        self.hazard, self.draws, self.units = hazard, draws, None
        if units is not None and len(units):
            self.units = np.unique(units, return_inverse=True)[1]
            self.hazard = np.full(int(self.units.max()) + 1, np.inf)
            np.minimum.at(self.hazard, self.units, hazard)

    def __call__(self, gain: Array, tail: float) -> float:
        """gain  (n,) how much each point would change the metric;  tail  of the chance that a set stays unseen."""
        by_unit = gain if self.units is None else sums(gain, self.units)
        return largest_unseen(by_unit, self.hazard, tail, self.draws)


def _centres(terms: Array, draws: int, mean: Array, lowest: Array, highest: Array) -> list[Array]:
    """From where the unlabelled points of a group may move: from what is believed of them, (n,).

    While fewer than FEW draws fell among them, from the estimate as well, whichever is further: a single label can move
    the estimate from one end to the other, and the belief stays where it was.
    """
    return [mean] if draws >= FEW else [mean, shifted_means(float(terms.sum()), mean, lowest, highest)]


def shifted_means(correction: float, mean: Array, lowest: Array, highest: Array) -> Array:
    """(n,) means that add up to the correction more, each moved by the same part of what it can be moved."""
    room = highest - mean if correction > 0 else mean - lowest
    part = min(abs(correction) / max(float(room.sum()), 1e-300), 1.0)
    return np.asarray(mean + math.copysign(part, correction) * room)
