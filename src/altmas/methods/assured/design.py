"""Sizes of a stage: how often each point should be drawn, from labels of earlier stages alone."""

import math
from collections.abc import Sequence

import numpy as np

from altmas.intervals import fills, missed_tail
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.stages import LEVELS
from altmas.types import Array


def pilot_sizes(predictions: Array, n_classes: int, n: int, doubt: Array | None = None, least: int = 4) -> Array:
    """(N,) sizes for a first sample of n: mostly uniform, with a share for rare predicted classes and doubtful points.

    doubt  (N,) how likely the model is wrong by its own account, or None: a share of the labels follows it, so that a
           model that is hardly ever wrong shows some errors early
    least  labels expected in every predicted class (0: classes do not matter), within a share of the labels
    """
    counts = np.bincount(predictions, minlength=n_classes).astype(np.float64)
    extra = np.maximum(np.minimum(least, counts) - n * counts / counts.sum(), 0.0)
    extra *= min(1.0, RECIPE.pilot_class_share * n / max(extra.sum(), 1e-300))
    boost = np.divide(extra, counts, out=np.zeros_like(counts), where=counts > 0)
    sizes = 1 + boost[predictions] * (counts.sum() / n)
    if doubt is None or doubt.mean() <= 0:
        return np.asarray(sizes)
    share = RECIPE.pilot_doubt_share
    return np.asarray((1 - share) * sizes + share * doubt / doubt.mean())


def tempered_sizes(
    believed: Array, seen: Array, drawn: Array, folds: Array, defensive: Array | float
) -> tuple[Array, Array]:
    """((N,) sizes with mean 1, (K,) powers): as far from `defensive` as the labelled residuals bear out.

    believed   (N,) squared residuals as the belief expects them
    seen       (n,) squared out-of-fold residuals at the rows `drawn`
    folds      (N,) the fold of each point; the belief about a fold has not seen its labels
    defensive  (N,) sizes of the draws that do not follow the belief, or the share of uniform ones; mean: their share

    Draws in proportion to the root of the expected squared residual have the least variance. A belief that is too sure
    of itself has steps that are too high: residuals follow believed^power with a power below 1, and 0 is uniform. With
    s the size of one whole surprise, s = sum seen^2 / sum seen, the power is that with the largest
        sum_i (seen_i ln m_i - m_i) / s - 2 K (1 - power)^2,      m_i = c believed_i^power,                   (V2)
        c = (K s + sum seen) / (K s + sum over drawn of believed^power, scaled to the mean of believed)
    which is the likelihood of counts with mean m and K pseudo-surprises at what the belief expects. A share
    `variance_share` of the other draws follows m and not its root: where thousands of points are each believed right
    all but surely, their roots add up to most of the draws, and hardly any of these would ever meet an error.
    """
    powers, expected = np.zeros(int(folds.max()) + 1), np.ones(len(believed))
    mean = float(believed.mean())
    if mean <= 0:
        return expected, powers
    steps = np.log(np.maximum(believed / mean, 1e-12))
    for fold in range(len(powers)):
        inside, outside = folds == fold, folds[drawn] != fold
        powers[fold] = fit_tempering(steps, seen[outside] / mean, drawn[outside])
        expected[inside] = np.exp(steps[inside] * powers[fold])
    share = RECIPE.variance_share
    shape = (1 - share) * even(np.sqrt(expected), folds) + share * even(expected, folds)
    return np.asarray(defensive + (1 - np.mean(defensive)) * shape), powers


def defensive_share(
    gain: Array, shape: Array, variance: Array, labels: float, quantile: float, room: float = math.inf
) -> float:
    """The share of draws in proportion to `shape`, so that what nobody saw does not decide the width of a metric.

    gain      (N,) how much each point would change the metric if it were not as believed
    shape     (N,) in proportion to which the share is drawn; above 0 wherever there is a gain
    variance  (N,) expected squared residual of each point
    labels    that are planned
    room      how far the metric could change at all

    With n labels drawn in proportion to the shape, a point has the exposure n shape_i / (sum of shape), and the metric
    can be off by b for what they did not meet (V4): the points with the largest gain / exposure whose exposures fill
    log(1/a). A share tau of such draws makes that 1 / tau times as long; it need not be longer than z standard errors,
    sqrt(N sum of variance / n) each. Where even the largest share leaves b at several times the room, the interval
    ends near the bound of the metric whatever the share is, and the least one has the least error: so it is with the
    recall and the F1 of a class of which there are hardly any points. A ratio of which b is x times the value falls to
    1 / (1 + x) of it.
    """
    planned, tail = max(labels, 1.0), missed_tail(quantile)
    drawn = shape > 0
    gain, exposure = gain[drawn], shape[drawn] * (planned / max(float(shape.sum()), 1e-300))
    filled = fills(gain / exposure, exposure, tail)
    unseen = float(gain[filled].sum()) * min(tail / max(float(exposure[filled].sum()), 1e-300), 1.0)
    if unseen >= RECIPE.most_defensive * RECIPE.out_of_reach * room:
        return RECIPE.least_defensive
    needed = unseen / max(quantile * math.sqrt(len(shape) * float(variance.sum()) / planned), 1e-300)
    share = min(max(needed, RECIPE.least_defensive), RECIPE.most_defensive)
    return round(share, 6)  # the same for sums that differ in their last digits, as with other units of weight


def drawn_whole(
    sizes: Array, sets: Sequence[Array], free: Array, draws: float, weights: Array | None
) -> tuple[Array, Array | None]:
    """((N,) sizes by which small sets that a metric depends on are drawn whole where half of them would be, (N,) these;
    None if there are none).

    sets     rows without a label that can move a metric, for each metric that has few of them
    free     (N,) points that can be drawn;  draws  that the stage is to have;  weights  rows that each point stands for

    A sample of m of M points has a variance in proportion to 1/m - 1/M: the first half leaves 1/M of it, and the second
    half, for as many labels again, nothing. With tau = draws / (sum of k u), k the weights,
        u_i = max(u_i, 7 / (k_i tau)) for every point of a set if the mean of 1 - exp(-k_i u_i tau) over it is half
        or more, the smallest sets first, as long as they take no more than half of the draws                      (V24)
    with sizes as far as a log can hold them. A set of all points that can be drawn is no reason to leave any aside.
    Such points come first in their stage. They stand for themselves alone: what the stage says of the others, and how
    much it counts for these, rests on the draws among these (`Stage.apart`).
    """
    if not sets:
        return sizes, None
    stands_for = np.ones(len(sizes)) if weights is None else weights / weights.mean()
    sizes, raised, left = np.minimum(sizes, LEVELS[-1]), np.zeros(len(sizes), np.bool_), draws / 2
    exposure = draws / max(float((sizes * stands_for)[free].sum()), 1e-300)
    open_sets = [rows[free[rows]] for rows in sets]
    for rows in sorted((rows for rows in open_sets if 0 < len(rows) < free.sum()), key=len):
        chances, new = -np.expm1(-sizes[rows] * stands_for[rows] * exposure), rows[~raised[rows]]
        if len(new) <= left and chances.mean() >= 0.5:
            whole = RECIPE.exposure_of_whole / (stands_for[new] * exposure)
            sizes[new] = np.maximum(sizes[new], np.minimum(whole, LEVELS[-1]))
            raised[new] = True
            left -= len(new)
    return sizes, raised if raised.any() else None


def even(sizes: Array, folds: Array, weights: Array | None = None) -> Array:
    """(N,) the sizes scaled to mean 1 in every fold, by weight if given."""
    weights = np.ones(len(folds)) if weights is None else weights
    count, total = np.bincount(folds, weights), np.bincount(folds, sizes * weights)
    return np.asarray(sizes * np.divide(count, total, out=np.ones_like(total), where=total > 0)[folds])


def fit_tempering(steps: Array, seen: Array, drawn: Array) -> float:
    """The power of (V2) from ln(believed / its mean) and seen / that mean; 1 while there is no residual."""
    total = float(seen.sum())
    if total <= 0:
        return 1.0
    surprise, pseudo = float((seen**2).sum()) / total, RECIPE.pseudo_surprises

    def likelihood(power: float) -> float:
        expected = np.exp(power * steps)
        expected = expected[drawn] / expected.mean()
        expected *= (pseudo * surprise + total) / (pseudo * surprise + float(expected.sum()))
        fit = float((seen * np.log(expected) - expected).sum()) / surprise
        return fit - 2 * pseudo * (1 - power) ** 2

    return max((power / 8 for power in range(9)), key=likelihood)


def expected_gain(unexplained: Array, weights: Array, folds: Array, defensive: float) -> Array:
    """(K,) how many random labels one label is worth in each fold, if residuals are as believed there.

    unexplained  (N,) variance that uniform draws of the fold have at each point, if that of a random sample without a
                 belief is 1 in every fold
    weights      (N,) how many rows each point stands for;  defensive  share of the draws that do not follow the belief

    Draws are taken to follow the belief without being tempered: how far they are depends on labels of the fold, and so
    would the gain. Rounded, so that stages count alike in all folds where nothing can be learned.
    """
    weights = weights / weights.mean()
    by_unit = unexplained / np.maximum(weights, 1e-300)
    share = RECIPE.variance_share
    shape = (1 - share) * even(np.sqrt(by_unit), folds, weights) + share * even(by_unit, folds, weights)
    variance = np.bincount(folds, unexplained / (defensive + (1 - defensive) * shape), RECIPE.folds)
    return np.round(np.clip(1 / np.maximum(variance, 1e-12), 1.0, RECIPE.largest_gain), 1)


def gain_of_sizes(right: Array, sizes: Array, weights: Array, folds: Array) -> Array:
    """(K,) how many random labels one label drawn by these sizes is worth in each fold.

    right    (N,) the belief that the model is right, by labels outside the fold of the point
    sizes    (N,) of the draws, 0 for points that could not be drawn;  weights  (N,) how many rows each point stands for

    With r the belief, R its mean by weight k over the fold and e = r (1 - r) the variance that it leaves at a point,
        g = (sum of k)^2 R (1 - R) / (sum of u * sum of k^2 e / u)                                            (V31)
    between 1 and `largest_gain`, rounded as `expected_gain` is.
    """
    drawn = sizes > 0
    weight, size = np.where(drawn, weights, 0.0), np.where(drawn, sizes, 1.0)
    left = weight**2 * right * (1 - right) / size
    total, mean, drawn_by, variance = (
        np.bincount(folds, of, RECIPE.folds) for of in (weight, weight * right, np.where(drawn, sizes, 0.0), left)
    )
    random = mean * (total - mean)
    gain = np.divide(random, drawn_by * variance, out=np.ones(RECIPE.folds), where=drawn_by * variance > 0)
    return np.asarray(np.round(np.clip(gain, 1.0, RECIPE.largest_gain), 1))
