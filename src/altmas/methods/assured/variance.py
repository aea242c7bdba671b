"""Parts of the variance of a metric: what squared terms show, what the belief expects, and what stayed unseen.

The terms of a metric are those of all points together or, for a metric of one class, of the points answered with it and
of the others; where whole groups are drawn they are added up over each group first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from altmas.intervals import largest_unseen
from altmas.methods.assured.estimator import Difference
from altmas.methods.assured.parts import FEW, Mask
from altmas.methods.assured.whole_groups import believed_of_groups, come_together, numbered, sums
from altmas.metrics.influence import ItemInfluence
from altmas.types import Array


@dataclass(frozen=True)
class Group:
    """Parts of the variance that belong to one group of points.

    shown     sum of squared terms;  worth  how many equal terms that is worth;  believed  variance by the belief
    third     third central moment by the belief;  unseen_low, unseen_high  b of (V4)
    """

    shown: float
    worth: float
    believed: float
    third: float
    unseen_low: float
    unseen_high: float


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


def variance_by_points(
    among: Difference,
    items: ItemInfluence,
    members: Sequence[Mask],
    squares: Array,
    terms: Array,
    rows: Array,
    spread_of_weights: tuple[Array, Array],
    tail: float,
) -> list[Group]:
    """Parts of the variance: of the points answered with the metric's class and of the others, or of all."""
    mean, variance = items.moments(among.belief)
    second, third = spread_of_weights
    believed, skewed = variance * second, items.third_moment(among.belief) * third
    lowest, highest = items.range()

    def group(points: Mask) -> Group:
        shown, left = squares[points[rows]], among.unlabelled & points & ~among.unreached
        total = float(shown.sum())
        hazard, draws = among.hazard_within(points & among.inside & (highest > lowest))
        centres = _centres(terms[points[rows]], draws, mean[left], lowest[left], highest[left])
        return Group(
            shown=total,
            worth=total**2 / float((shown**2).sum()) if total > 0 else 0.0,
            believed=float(believed[points].sum()),
            third=float(skewed[points].sum()),
            unseen_low=max(largest_unseen(centre - lowest[left], hazard[left], tail, draws) for centre in centres),
            unseen_high=max(largest_unseen(highest[left] - centre, hazard[left], tail, draws) for centre in centres),
        )

    return [group(points) for points in members]


def common_in_groups(
    among: Difference,
    items: ItemInfluence,
    members: Sequence[Mask],
    roots: Array,
    terms: Array,
    rows: Array,
) -> Together:
    """What points of one group have in common; roots (n,) are the signed roots of the squared terms at `rows`."""
    assert among.units is not None
    units = numbered([part.units for part in among.parts])
    scale, (lowest, highest) = np.concatenate([part.share * part.expansion for part in among.parts]), items.range()
    variances = np.concatenate([items.moments(part.belief)[1][part.rows] for part in among.parts]) * scale**2
    largest = float((scale * (highest - lowest)[rows]).max(initial=0.0))
    rho = come_together(terms, variances, units, largest)
    drawn = float((sums(roots, units) ** 2).sum() - (roots**2).sum())
    if len(members) == 1:
        return Together(units, rho, drawn)
    first, second = (sums(roots * points[rows], units) for points in members)
    believed = np.sqrt(items.moments(among.belief)[1] * among.spread_of_weights[0])
    own, other = (sums(believed * points, among.units) for points in members)
    return Together(units, rho, drawn, float((first * second).sum()), rho * float((own * other).sum()))


def variance_by_groups(
    among: Difference,
    items: ItemInfluence,
    members: Sequence[Mask],
    roots: Array,
    terms: Array,
    rows: Array,
    spread_of_weights: tuple[Array, Array],
    tail: float,
    together: Together,
) -> list[Group]:
    """Parts of the variance where whole groups are drawn: terms are added up over each before they are squared (U3)."""
    assert among.units is not None
    groups, rho = among.units, together.rho
    mean, variance = items.moments(among.belief)
    second, third = spread_of_weights
    believed, skewed = variance * second, items.third_moment(among.belief) * third
    lowest, highest = items.range()

    def group(points: Mask) -> Group:
        shown = sums(roots * points[rows], together.units) ** 2
        total, left = float(shown.sum()), np.flatnonzero(among.unlabelled & points & ~among.unreached)
        hazard, draws = among.hazard_within(points & among.inside & (highest > lowest))
        own = np.unique(groups[left], return_inverse=True)[1]
        of_group = np.full(int(own.max(initial=-1)) + 1, np.inf)
        np.minimum.at(of_group, own, hazard[left])
        centres = _centres(terms[points[rows]], draws, mean[left], lowest[left], highest[left])
        lows, highs = [centre - lowest[left] for centre in centres], [highest[left] - centre for centre in centres]

        def unseen(gain: Array) -> float:
            return largest_unseen(sums(gain, own), of_group, tail, draws) if len(left) else 0.0

        return Group(
            shown=total,
            worth=total**2 / float((shown**2).sum()) if total > 0 else 0.0,
            believed=believed_of_groups(believed * points, groups, rho, 2),
            third=believed_of_groups(skewed * points, groups, rho, 3),
            unseen_low=max(map(unseen, lows)),
            unseen_high=max(map(unseen, highs)),
        )

    return [group(points) for points in members]


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
