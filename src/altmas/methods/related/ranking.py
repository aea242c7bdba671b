"""Precision along a ranking from labels at few of its ranks (C15-C20).

Points are ranked by a score, r = 1..N from the top; v(i) is 1 where the point at rank i is valid (the model is right,
or the truth is the class). p(r) = Y(r) / r with the yield Y(r) = sum of v up to r. Ranks 0 < r_0 < .. < r_K = N cut
the ranking into blocks; labels are uniform inside each block.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.history import History
from altmas.methods.related.proxy import class_scores
from altmas.methods.related.strata import labelled_draws
from altmas.methods.related.weighted_sample import volunteered_mask
from altmas.metrics import Metric
from altmas.pool import Pool
from altmas.streams import stream
from altmas.types import Array

Ints = NDArray[np.int64]

KINDS = ("accuracy", "error", "precision", "recall")
"""Metrics that a ranking tells about."""


def ranked(pool: Pool, metric: Metric, seed: int) -> tuple[Ints, str]:
    """((N,) rank of each point from 1, what it is ranked by); ties are in random order, the same for a seed.

    Accuracy ranks by the score of the predicted class, precision and recall by the score of their class.
    """
    scores = class_scores(pool)
    if metric.classes:
        score, by = scores[:, metric.classes[0]], f"score of {pool.classes[metric.classes[0]]}"
    else:
        score, by = scores[np.arange(len(pool)), pool.predictions], "confidence"
    shuffled = stream(seed, "ranking: ties").random(len(score))
    rank = np.empty(len(score), np.int64)
    rank[np.lexsort((shuffled, -score))] = np.arange(1, len(score) + 1)
    return rank, by


def blocks_of(rank: Ints, ends: Array) -> Ints:
    """(N,) the block of each point: 0 for ranks up to ends[0], 1 for those up to ends[1], ..."""
    return np.asarray(np.searchsorted(ends, rank, side="left"), np.int64)


def geometric_ranks(n_points: int, head: int, ratio: float) -> Ints:
    """(K+1,) r_0 = head, r_{k+1} = min(N, max(r_k + 1, floor((1 + ratio) r_k))) (C15)."""
    ends = [min(head, n_points)]
    while ends[-1] < n_points:
        ends.append(min(n_points, max(ends[-1] + 1, int((1 + ratio) * ends[-1] + 1e-9))))
    return np.array(ends, np.int64)


def bounds_between(rank: Array, ends: Array, yields: Array) -> tuple[Array, Array]:
    """(low, high) of p(r) between known ranks, with no assumption (C17)."""
    ends, yields = np.concatenate([[0], ends]), np.concatenate([[0.0], yields])
    k = np.clip(np.searchsorted(ends, rank, side="left") - 1, 0, len(ends) - 2)
    low = np.maximum(yields[k], yields[k + 1] - (ends[k + 1] - rank)) / rank
    high = np.minimum(yields[k] + (rank - ends[k]), yields[k + 1]) / rank
    return low, high


def monotone_bounds(rank: Array, ends: Array, precisions: Array) -> tuple[Array, Array]:
    """(low, high) of p(r) at ranks from ends[0] on, if p never rises (C18)."""
    k = np.clip(np.searchsorted(ends, rank, side="left"), 1, len(ends) - 1)
    return precisions[k], precisions[k - 1]


# ---------------------------------------------------------------- adaptive ranks (C19, C20)


def is_open(a: int, b: int, p_a: float, p_b: float, ratio: float) -> bool:
    """Whether the interval [a, b] of known ranks deserves another rank between (C19)."""
    return not (b <= (1 + ratio) * a or p_a <= (1 + ratio) * p_b or b - a <= 1)


def middle_rank(a: int, b: int) -> int:
    """round(sqrt(a b)) (C20)."""
    return round(math.sqrt(a * b))


# ---------------------------------------------------------------- the curve from labels


def valid_points(pool: Pool, history: History, metric: Metric) -> Array:
    """(N,) whether each labelled point is valid; False where unknown."""
    valid_label = pool.predictions if not metric.classes else np.full(len(pool), metric.classes[0])
    return np.asarray(history.known == valid_label)


def block_yields(history: History, block: Ints, valid: Array) -> tuple[Array, Array, Array]:
    """(yields, variances, labels), each (K+1,): valid points of each block and the variance of that number (C16).

    A block without a label counts as the labelled blocks beside it; volunteered labels are exact where they are.
    """
    count = int(block.max()) + 1
    exact, rows = volunteered_mask(history), labelled_draws(history)
    sizes = np.bincount(block[~exact], minlength=count).astype(np.float64)
    labels = np.bincount(block[rows], minlength=count).astype(np.float64)
    hits = np.bincount(block[rows], valid[rows], count)
    seen = np.flatnonzero(labels)
    if not len(seen):
        return np.full(count, np.nan), np.full(count, np.nan), labels
    mean = np.interp(np.arange(count), seen, hits[seen] / labels[seen])
    spread = mean * (1 - mean) * np.where(labels > 1, labels / np.maximum(labels - 1, 1), 1.0)
    variance = sizes**2 * spread * (1 - labels / np.maximum(sizes, 1)) / np.maximum(labels, 1)
    return sizes * mean + np.bincount(block[exact], valid[exact], count), variance, labels


def curve_of(ends: Ints, yields: Array, variances: Array, z: float, by: str, *, monotone: bool) -> dict[str, Any]:
    """The precision-recall curve at the known ranks and between them, with its band, as plain lists.

    The band is (C17), or (C18) where p is taken never to rise, widened by z standard errors of the yields.
    """
    if np.isnan(yields).any():
        return {"by": by, "rank": [], "precision": [], "recall": [], "low": [], "high": []}
    between = np.round(np.sqrt(ends[:-1] * ends[1:].astype(np.float64))).astype(np.int64)
    rank = np.unique(np.concatenate([ends, between]))
    total, error = np.cumsum(yields), z * np.sqrt(np.cumsum(variances))
    low, high = bounds_between(rank, ends, total)
    value = np.interp(rank, np.concatenate([[0], ends]), np.concatenate([[0.0], total])) / rank
    if monotone and len(ends) > 1:
        falling = np.minimum.accumulate(total / ends)
        inner = (rank > ends[0]) & ~np.isin(rank, ends)
        below, above = monotone_bounds(rank, ends, falling)
        low, high = np.where(inner, np.minimum(below, value), low), np.where(inner, np.maximum(above, value), high)
    wide = error[np.searchsorted(ends, rank, side="left")] / rank
    return {
        "by": by,
        "rank": rank.tolist(),
        "precision": value.tolist(),
        "recall": (value * rank / total[-1]).tolist() if total[-1] > 0 else [None] * len(rank),
        "low": np.clip(low - wide, 0.0, 1.0).tolist(),
        "high": np.clip(high + wide, 0.0, 1.0).tolist(),
    }
