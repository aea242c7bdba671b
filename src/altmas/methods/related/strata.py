"""Strata: how a score is cut, how labels are shared out among the cells, and what they then say (C5-C7).

N_h points, W_h = N_h / N, n_h labels and S_h the standard deviation in stratum h = 0..H-1, in the order of the score.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from altmas.history import Batch, History
from altmas.methods.related.weighted_sample import WeightedSample, volunteered_mask
from altmas.types import Array

Ints = NDArray[np.int64]

BINS = 200
"""Bins of the histogram in which root frequencies are cumulated."""

# ---------------------------------------------------------------- cuts


def equal_size(score: Array, count: int) -> Ints:
    """(N,) strata with equally many points; ties stay together."""
    return _between(score, np.quantile(score, np.arange(1, count) / count))


def equal_width(score: Array, count: int) -> Ints:
    """(N,) strata of equally wide score intervals."""
    return _between(score, np.linspace(score.min(), score.max(), count + 1)[1:-1])


def root_frequency(score: Array, count: int) -> Ints:
    """(N,) strata with equal parts of the cumulated root of the histogram (Dalenius and Hodges)."""
    counts, edges = np.histogram(score, BINS)
    cumulated = np.cumsum(np.sqrt(counts))
    ends = np.searchsorted(cumulated, cumulated[-1] * np.arange(1, count) / count)
    return _between(score, edges[1:][ends])


def _between(score: Array, limits: Array) -> Ints:
    """(N,) which interval of the limits holds each score, counted without the empty ones."""
    return numbered(np.searchsorted(np.unique(limits), score, side="left"))


def numbered(strata: Array) -> Ints:
    """(N,) the same strata called 0..H-1 in their order."""
    return np.asarray(np.unique(strata, return_inverse=True)[1].reshape(len(strata)), np.int64)


CUTS: dict[str, Callable[[Array, int], Ints]] = {
    "equal-size": equal_size,
    "equal-width": equal_width,
    "root-frequency": root_frequency,
}
"""Ways to cut a score into strata, by name."""

# ---------------------------------------------------------------- allocations (C6)


def allocation(total: int, sizes: Array, how: str, spreads: Array | None = None, least: int = 2) -> Ints:
    """(H,) labels for each stratum, `total` together: (C6), rounded by largest remainder, at least `least` (when
    there are so many), at most the size.

    how      "proportional" W_h | "equal" | "neyman" W_h S_h with the spreads S_h
    """
    sizes = np.asarray(sizes, np.float64)
    shares = {"proportional": sizes, "equal": (sizes > 0).astype(np.float64)}.get(how)
    if shares is None:
        shares = sizes * (np.ones(len(sizes)) if spreads is None else np.asarray(spreads))
    floor = np.minimum(least, sizes)
    if floor.sum() > total:  # too few for everybody: no stratum comes before its share of the points
        return rounded(sizes, total, sizes)
    return _with_floor(shares, total, floor, sizes)


def _with_floor(shares: Array, total: int, floor: Array, caps: Array) -> Ints:
    """Shares of the total, where strata that would get less than their floor get just that."""
    low = np.zeros(len(shares), np.bool_)
    while True:
        counts = np.zeros(len(shares), np.int64)
        counts[low] = floor[low]
        counts[~low] = rounded(shares[~low], total - int(counts.sum()), caps[~low])
        short = ~low & (counts < floor)
        if not short.any():
            return counts
        low |= short


def rounded(shares: Array, total: int, caps: Array) -> Ints:
    """(H,) whole numbers in proportion to the shares that add up to `total` (or to all caps), none above its cap.

    What a cap cuts off goes to the others; the last units go to the largest remainders.
    """
    caps = np.asarray(caps, np.float64)
    total = int(min(total, caps.sum()))
    quota, free = np.zeros(len(caps)), np.ones(len(caps), np.bool_)
    while free.any():
        left = total - quota[~free].sum()
        weight = np.where(free, np.maximum(shares, 1e-12), 0.0)
        quota[free] = (left * weight / weight.sum())[free]
        over = free & (quota > caps)
        if not over.any():
            break
        quota[over], free[over] = caps[over], False
    counts = np.floor(quota + 1e-9).astype(np.int64)
    order = np.lexsort((-quota, counts - quota))
    order = order[counts[order] < caps[order]]
    counts[order[: total - counts.sum()]] += 1
    return counts


def next_counts(target: Array, have: Array, n: int, room: Array) -> Ints:
    """(H,) how many of the next n labels go to each stratum: where most are missing to the target, then in any room."""
    missing = np.minimum(np.maximum(np.asarray(target) - have, 0), room)
    counts = rounded(missing, min(n, int(missing.sum())), missing)
    remaining = n - int(counts.sum())
    if remaining > 0:
        counts = counts + rounded(room - counts, remaining, room - counts)
    return counts


# ---------------------------------------------------------------- the variance (C5)


def stratified_variance(sizes: Array, spreads: Array, counts: Array, *, finite: bool = True) -> float:
    """(C5): sum_h W_h^2 (1 - n_h/N_h) S_h^2 / n_h, without the finite factor if the pool is taken as endless."""
    sizes, spreads, counts = (np.asarray(values, np.float64) for values in (sizes, spreads, counts))
    left = 1 - counts / sizes if finite else 1.0
    return float(((sizes / sizes.sum()) ** 2 * left * spreads**2 / counts).sum())


# ---------------------------------------------------------------- draws and the sample


def draw_in_strata(strata: Ints, counts: Ints, open_points: Ints, rng: np.random.Generator) -> tuple[Ints, Array]:
    """(indices, chances): counts[h] uniform draws in each stratum, in random order.

    The chance of a point is that of its stratum in the batch over its open points: what somebody needs who looks at
    the draws without the strata.
    """
    order = rng.permutation(open_points)
    chosen, drawn = [], max(int(counts.sum()), 1)
    chances = np.zeros(len(counts))
    for h in np.flatnonzero(counts):
        inside = order[strata[order] == h]
        chosen.append(inside[: counts[h]])
        chances[h] = counts[h] / drawn / len(inside)
    indices = rng.permutation(np.concatenate([np.zeros(0, np.int64), *chosen]))
    return indices, chances[strata[indices]]


def stratum_counts(strata: Ints, rows: Array, count: int) -> Ints:
    """(H,) how many of the rows lie in each stratum."""
    return np.bincount(strata[np.asarray(rows, np.int64)], minlength=count).astype(np.int64)


def drawn_rows(history: History) -> Ints:
    """Rows that were drawn and not skipped: labelled, or waiting for their label."""
    return np.array([row for row in history.drawn.tolist() if row not in history.skipped], np.int64)


def labelled_draws(history: History) -> Ints:
    """Rows that were drawn and have a label."""
    return history.drawn[history.known[history.drawn] >= 0]


def last_told(history: History) -> Batch | None:
    """The last batch of which a label is known: points that merely wait must not change an estimate."""
    with_label = (batch for batch in reversed(history.batches) if (history.known[batch.indices] >= 0).any())
    return next(with_label, None)


def stratified_sample(history: History, strata: Ints) -> WeightedSample:
    """The drawn labels as a stratified sample (C5): each stands for N_h / n_h points of its stratum.

    Strata with fewer than two labels are joined with their neighbours: the points of one without any label are shared
    out among the labelled strata of its group, and a group has one variance.
    """
    rows = labelled_draws(history)
    stratum, count = strata[rows], int(strata.max()) + 1
    sizes = np.bincount(strata[~volunteered_mask(history)], minlength=count).astype(np.float64)
    labels = np.bincount(stratum, minlength=count)
    group = joined(labels)
    groups = int(group.max()) + 1
    in_group = np.bincount(group, sizes, groups)
    seen = np.bincount(group, np.where(labels > 0, sizes, 0.0), groups)
    weight = sizes / np.maximum(labels, 1) * (in_group / np.maximum(seen, 1e-300))[group]
    member, of_group = group[stratum], np.bincount(group[stratum], minlength=groups).astype(np.float64)
    left = 1 - of_group / np.maximum(in_group, 1)
    return WeightedSample(rows, weight[stratum], within_groups(member, weight[stratum], left[member]))


def within_groups(group: Array, weights: Array, left: Array) -> Callable[[Array], float]:
    """z -> sum over groups of n/(n-1) sum_i left_i W_i^2 (z_i - mean of the group)^2: (C5) where weights are equal.

    left (m,) is the finite factor of each draw.
    """
    count = int(group.max()) + 1 if len(group) else 0
    n = np.bincount(group, minlength=count).astype(np.float64)
    total = np.bincount(group, weights, count)

    def variance(z: Array) -> float:
        mean = np.bincount(group, weights * z, count) / np.maximum(total, 1e-300)
        squares = np.bincount(group, left * weights**2 * (z - mean[group]) ** 2, count)
        return float((squares * n / np.maximum(n - 1, 1)).sum())

    return variance


def joined(labels: Array, least: int = 2) -> Ints:
    """(H,) the group of each stratum: neighbours are joined until each group has `least` labels (or there is one)."""
    group, current, seen = np.zeros(len(labels), np.int64), 0, 0
    for h, n in enumerate(labels.tolist()):
        group[h] = current
        seen += n
        if seen >= least:
            current, seen = current + 1, 0
    last = current if seen >= least else max(current - 1, 0)
    return np.minimum(group, last)
