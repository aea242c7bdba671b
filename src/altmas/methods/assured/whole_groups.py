"""Draws of whole groups: conversations, patients, documents that are opened and labelled as a whole (`draw="groups"`).

Within a stage a group has one size u_g and one race time, and all of its open points are asked for together:
    r_g = E_g / u_g,   p_g = P(r_g < tau) = 1 - exp(-u_g tau)   for every point of the group                    (U1)
The sample is the longest prefix of groups that are answered whole, and tau the race time of the next group. With a
given number of groups that is (V1). With a given number n of points it holds as well: given the times of the others,
group g is in the sample if it comes before the first of them with which they hold more than n - m_g points, and
whenever g is in the sample that one is the next group. The same goes for pairs: terms of two groups are uncorrelated.
    u_g = sum over g of u_i / sqrt(m_g),   m_g open points                                                      (U2)
is optimal for residuals that come together, at a cost of one label a point: sqrt(Var g / cost g).
Terms are added up over a group before they are squared (U3). What is believed of them takes a share rho of each group's
residuals to come together and the rest to be independent (U4); what stayed unseen is a set of whole groups (U5).
"""

import math
from collections.abc import Sequence

import numpy as np

from altmas.superpopulation import groups_moving
from altmas.types import Array

LEAST_OF_STAGE = 10
"""Groups that a stage has at least: its expansion is a ratio, which is biased with few of them."""


def heads(rows: Array, units: Array) -> Array:
    """The first of these rows in each unit, in the order of the rows."""
    first = np.unique(units[rows], return_index=True)[1]
    return np.asarray(rows[np.sort(first)])


def group_sizes(sizes: Array, units: Array, free: Array) -> Array:
    """(N,) u_g of (U2) at every point of a group, from sizes (N,) of single points; 1 where no point is free."""
    count = np.bincount(units[free], minlength=int(units.max()) + 1)
    total = np.bincount(units[free], sizes[free], minlength=len(count))
    return np.where(count > 0, total / np.sqrt(np.maximum(count, 1)), 1.0)[units]


def groups_planned(sizes: Array, units: Array, free: Array, labels: float) -> int:
    """How many groups a stage has that is to bring about so many labels; sizes (N,) are those of the groups."""
    rows = np.flatnonzero(free)
    if not len(rows):
        return LEAST_OF_STAGE
    return max(LEAST_OF_STAGE, math.ceil(labels / points_of_draw(sizes, units, rows)))


def points_of_draw(sizes: Array, units: Array, rows: Array) -> float:
    """How many of these rows a first draw among their groups brings on average: sum u_g m_g / sum u_g."""
    return float(sizes[rows].sum() / sizes[heads(rows, units)].sum())


def sums(values: Array, units: Array) -> Array:
    """(U,) sum over the rows of each unit; units (n,) counted from 0."""
    return np.bincount(units, values, minlength=1)


def numbered(parts: Sequence[Array | None]) -> Array:
    """(n,) units of several stages counted through, so that a group counts in each stage for itself."""
    counted, before = [np.zeros(0, np.int64)], 0
    for part in parts:
        assert part is not None
        counted.append(part + before)
        before += int(part.max(initial=-1)) + 1
    return np.concatenate(counted)


def come_together(residuals: Array, variances: Array, units: Array, largest: float) -> float:
    """rho of (U4): the share of the residuals of a group that come together, as far as the sample shows it.

    residuals, variances  (n,) weighted residuals as seen, and their variances as the belief expects them
    largest               the largest such residual that there could be

    With few groups in which such residuals were seen nobody knows: it is at least exp(-K/3), K as in (F4).
    """
    seen = sums(residuals, units) ** 2 - sums(residuals**2, units)
    roots = np.sqrt(variances)
    possible = sums(roots, units) ** 2 - sums(variances, units)
    shown = float(seen.sum() / possible.sum()) if possible.sum() > 0 else 1.0
    met = min(groups_moving(sign * residuals, units, largest) for sign in (-1.0, 1.0)) if len(residuals) else 0.0
    return min(1.0, max(shown, math.exp(-met / 3)))


def believed_of_groups(moments: Array, units: Array, together: float, power: int) -> float:
    """Second or third moment of all groups by (U4), from those of their points (N,); units (N,)."""
    roots = np.sign(moments) * np.abs(moments) ** (1 / power)
    return (1 - together) * float(moments.sum()) + together * float((sums(roots, units) ** power).sum())


def points_at_once(units: Array, together: float) -> float:
    """How many points change together on average, as seen from one of them; units (n,) of the points left."""
    counts = np.bincount(units).astype(np.float64)
    crowd = float((counts**2).sum() / max(counts.sum(), 1.0))
    return 1 + together * max(crowd - 1, 0.0)
