"""Sizes of a stage: how often each point should be drawn, from labels of earlier stages alone."""

import math

import numpy as np

from altmas.intervals import fills, missed_tail
from altmas.methods.assured.recipe import RECIPE
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


def defensive_share(gain: Array, shape: Array, variance: Array, labels: float, quantile: float) -> float:
    """The share of draws in proportion to `shape`, so that what nobody saw does not decide the width of a metric.

    gain      (N,) how much each point would change the metric if it were not as believed
    shape     (N,) in proportion to which the share is drawn; above 0 wherever there is a gain
    variance  (N,) expected squared residual of each point
    labels    that are planned

    With n labels drawn in proportion to the shape, a point has the exposure n shape_i / (sum of shape), and the metric
    can be off by b for what they did not meet (V4): the points with the largest gain / exposure whose exposures fill
    log(1/a). A share tau of such draws makes that 1 / tau times as long; it need not be longer than z standard errors,
    sqrt(N sum of variance / n) each.
    """
    planned, tail = max(labels, 1.0), missed_tail(quantile)
    drawn = shape > 0
    gain, exposure = gain[drawn], shape[drawn] * (planned / max(float(shape.sum()), 1e-300))
    filled = fills(gain / exposure, exposure, tail)
    unseen = float(gain[filled].sum()) * min(tail / max(float(exposure[filled].sum()), 1e-300), 1.0)
    needed = unseen / max(quantile * math.sqrt(len(shape) * float(variance.sum()) / planned), 1e-300)
    share = min(max(needed, RECIPE.least_defensive), RECIPE.most_defensive)
    return round(share, 6)  # the same for sums that differ in their last digits, as with other units of weight


def even(sizes: Array, folds: Array) -> Array:
    """(N,) the sizes scaled to mean 1 in every fold."""
    count, total = np.bincount(folds), np.bincount(folds, sizes)
    return np.asarray(sizes * (count / np.maximum(total, 1e-300))[folds])


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


def expected_gain(believed: Array, sizes: Array) -> float:
    """How many random labels one label drawn by these sizes is worth, if residuals are as believed.

    believed (N,) is scaled so that random sampling without a belief has variance 1: uniform draws with the belief have
    sum believed, draws by sizes s of mean 1 sum believed / s.
    """
    variance = float((believed / (sizes / sizes.mean())).sum())
    return float(np.clip(1 / max(variance, 1e-12), 1.0, RECIPE.largest_gain))
