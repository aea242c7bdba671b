"""A mixture of two score distributions, fitted to few labels and all scores: after Welinder et al. 2013 (C.7).

theta = (logit pr, location_0, log scale_0, location_1, log scale_1): pr = P(y = 1), one family for each y.
Scores are counted in narrow bins, so nothing here depends on the size of the pool. A higher score speaks for y = 1:
location_1 > location_0 always holds, which keeps the components from changing places.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from altmas.methods.related.spe.families import FAMILIES, Support, start_of
from altmas.methods.related.spe.metropolis import Chains, curvature, metropolis
from altmas.types import Array

BINS = 300
WEIGHTS = (1.0, 0.1, 0.01, 0.001, 0.0)
"""Weights of the unlabelled points that are tried."""

BORNE = 5.5
"""Nats by which the labels may be explained worse than by the best fit: half the 95 % point of chi-squared with five
degrees of freedom, which is what five parameters gain by chance."""

CLIP = 1e-6
"""Probabilities closer than this to 0 or 1 are taken to be so far away before the logit."""


PILED = 0.05
"""A score that this share of the points has exactly is no draw from a density: it is a group of its own."""
FEWEST = 50
"""Points with other scores below which these are one more group, without a mixture."""


def piles_of(scores: Array) -> NDArray[np.int64]:
    """(N,) the group of each point whose score many others have exactly, counted from 0; -1 where few do.

    Saturated scores pile up at both ends, and scores that people or language models give at round numbers; a density
    fitted to them says nothing. With fewer than FEWEST other points these form the last group.
    """
    _, value_index, counts = np.unique(scores, return_inverse=True, return_counts=True)
    large = counts >= max(PILED * len(scores), 2)
    group = np.where(large, np.cumsum(large) - 1, -1)[value_index.reshape(len(scores))]
    if 0 < (group < 0).sum() < FEWEST:
        group = np.where(group < 0, large.sum(), group)
    return np.asarray(group, np.int64)


def logit(p: Array) -> Array:
    """ln(p / (1 - p)) of probabilities clipped to [1e-6, 1 - 1e-6]."""
    p = np.clip(p, CLIP, 1 - CLIP)
    return np.asarray(np.log(p) - np.log1p(-p))


@dataclass(frozen=True)
class BinnedScores:
    """Scores in narrow bins of equal width.

    values  (B,) mean score in each bin that is not empty
    bin_of  (N,) the bin of each point
    """

    values: Array
    bin_of: NDArray[np.int64]

    @classmethod
    def of(cls, scores: Array, bins: int = BINS) -> "BinnedScores":
        distinct, bin_of = np.unique(scores, return_inverse=True)
        if len(distinct) > bins:
            low, high = distinct[0], distinct[-1]
            at = np.minimum(((scores - low) / (high - low) * bins).astype(np.int64), bins - 1)
            _, bin_of = np.unique(at, return_inverse=True)
            distinct = np.bincount(bin_of, scores) / np.bincount(bin_of)
        return cls(distinct, bin_of.astype(np.int64))

    def counts(self, rows: Array) -> Array:
        """(B,) how many of these points lie in each bin."""
        return np.bincount(self.bin_of[rows], minlength=len(self.values)).astype(np.float64)

    @cached_property
    def support(self) -> Support:
        """The range of the scores with a margin of 5 %."""
        low, high = float(self.values[0]), float(self.values[-1])
        margin = 0.05 * max(high - low, 1e-3)
        return low - margin, high + margin


@dataclass(frozen=True)
class Mixture:
    """The posterior of theta for one pair of families.

    unlabelled, negative, positive  (B,) points in each bin by what is known; unlabelled points may count less
    """

    scores: BinnedScores
    unlabelled: Array
    negative: Array
    positive: Array
    families: tuple[str, str] = ("normal", "normal")

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of all scores, for the priors."""
        weights = np.bincount(self.scores.bin_of)
        mean = float(np.average(self.scores.values, weights=weights))
        return mean, max(float(np.sqrt(np.average((self.scores.values - mean) ** 2, weights=weights))), 1e-3)

    def component(self, y: int, theta: Array) -> Array:
        """(..., B) ln f_y at the bins."""
        location, log_scale = theta[..., 1 + 2 * y, None], theta[..., 2 + 2 * y, None]
        family = FAMILIES[self.families[y]]
        return family.log_density(self.scores.values, location, log_scale, self.scores.support)

    def log_joint(self, theta: Array) -> tuple[Array, Array]:
        """(..., B) twice: ln((1 - pr) f_0) and ln(pr f_1)."""
        odds = theta[..., 0, None]
        return self.component(0, theta) - np.logaddexp(0, odds), self.component(1, theta) - np.logaddexp(0, -odds)

    def log_likelihood(self, theta: Array) -> Array:
        """(...) the logarithm of (C23)."""
        no, yes = (np.maximum(part, -1e30) for part in self.log_joint(theta))
        terms = self.unlabelled * np.logaddexp(no, yes) + self.negative * no + self.positive * yes
        return np.asarray(terms.sum(-1))

    def log_posterior(self, theta: Array) -> Array:
        """(...) likelihood and priors: pr uniform, location ~ N(mean, (3 sd)^2), ln scale ~ N(ln sd, 1)."""
        mean, sd = self.moments
        odds, location, log_scale = theta[..., 0], theta[..., 1::2], theta[..., 2::2]
        prior = -np.logaddexp(0, odds) - np.logaddexp(0, -odds)
        prior = (
            prior - 0.5 * (((location - mean) / (3 * sd)) ** 2).sum(-1) - 0.5 * ((log_scale - np.log(sd)) ** 2).sum(-1)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            value = self.log_likelihood(theta) + prior
        possible = np.isfinite(value) & (location[..., 1] > location[..., 0]) & (np.abs(odds) < 30)
        possible &= (np.abs(log_scale - np.log(sd)) < 10).all(-1)
        return np.where(possible & (value > -1e29), value, -np.inf)

    def responsibility(self, theta: Array) -> Array:
        """(..., B) rho = pr f_1 / (pr f_1 + (1 - pr) f_0) of (C25)."""
        no, yes = (np.maximum(part, -1e30) for part in self.log_joint(theta))
        return np.asarray(np.exp(yes - np.logaddexp(no, yes)))

    def label_log_likelihood(self, theta: Array) -> float:
        """How well the scores of the labelled points explain their labels: sum ln rho or ln(1 - rho)."""
        no, yes = (np.maximum(part, -1e30) for part in self.log_joint(theta))
        total = np.logaddexp(no, yes)
        return float((self.negative * (no - total) + self.positive * (yes - total)).sum())

    def distribution(self, y: int, tau: Array, theta: Array) -> Array:
        """F_y(tau)."""
        location, log_scale = theta[..., 1 + 2 * y], theta[..., 2 + 2 * y]
        return FAMILIES[self.families[y]].distribution(tau, location, log_scale, self.scores.support)

    def ks_distance(self, theta: Array) -> float:
        """Largest gap between the fitted mixture and the scores themselves, at the edges of the bins."""
        weights = np.bincount(self.scores.bin_of)
        seen = np.cumsum(weights)[:-1] / weights.sum()
        if len(seen) == 0:
            return 0.0
        edges = (self.scores.values[1:] + self.scores.values[:-1]) / 2
        pr = 1 / (1 + np.exp(-theta[0]))
        fitted = (1 - pr) * self.distribution(0, edges, theta) + pr * self.distribution(1, edges, theta)
        return float(np.abs(fitted - seen).max())


class Curve(NamedTuple):
    """Performance at a threshold."""

    precision: float
    recall: float
    accuracy: float


def curve(pr: float, f_0: float, f_1: float) -> Curve:
    """(C24) from F_0(tau) and F_1(tau), for an endless pool."""
    caught, false = pr * (1 - f_1), (1 - pr) * (1 - f_0)
    return Curve(caught / (caught + false), 1 - f_1, caught + (1 - pr) * f_0)


# ---------------------------------------------------------------- fitting


def em_start(mixture: Mixture, rounds: int = 40) -> tuple[float, Array, Array]:
    """(pr, means (2,), sds (2,)) of normal components by EM, begun at the means of the labelled scores."""
    s, (mean, sd) = mixture.scores.values, mixture.moments
    counts = np.array([mixture.negative.sum(), mixture.positive.sum()])
    pr = (counts[1] + 1) / (counts.sum() + 2)
    means = mean + sd * np.array([-pr, 1 - pr])
    for y, known in enumerate((mixture.negative, mixture.positive)):
        if known.sum():
            means[y] = float(known @ s) / known.sum()
    if means[1] <= means[0]:
        means = means.mean() + sd * np.array([-0.5, 0.5])
    sds = np.full(2, sd)
    for _ in range(rounds):
        log = -0.5 * ((s - means[:, None]) / sds[:, None]) ** 2 - np.log(sds[:, None])
        log += np.log([[1 - pr], [pr]])
        rho = np.exp(log[1] - np.logaddexp(*log))
        weights = np.stack(
            [mixture.unlabelled * (1 - rho) + mixture.negative, mixture.unlabelled * rho + mixture.positive]
        )
        total = weights.sum(1) + 1e-9
        new = (weights @ s) / total
        if new[1] <= new[0]:
            break
        means = new
        spread = (weights * (s - means[:, None]) ** 2).sum(1)
        sds = np.sqrt((spread + 0.05 * sd**2) / (total + 0.05)).clip(0.02 * sd)
        pr = float(np.clip(total[1] / total.sum(), 1e-4, 1 - 1e-4))
    return pr, means, sds


class Fit(NamedTuple):
    """The best theta of the best pair of families, with its Bayesian information criterion."""

    mixture: Mixture
    theta: Array
    bic: float


def fit(mixture: Mixture, families: Sequence[str]) -> Fit:
    """The pair of families of lowest BIC at its most probable theta, found by changing one of the two at a time.

    Every pair starts from the same EM.
    """
    start, tried = em_start(mixture), dict[tuple[str, str], Fit]()

    def tried_once(pair: tuple[str, str]) -> Fit:
        if pair not in tried:
            tried[pair] = _most_probable(mixture, pair, start)
        return tried[pair]

    best, before = tried_once((families[0], families[0])), None
    while best is not before:
        before, (no, yes) = best, best.mixture.families
        best = min((tried_once((family, yes)) for family in families), key=lambda attempt: attempt.bic)
        no = best.mixture.families[0]
        best = min((tried_once((no, family)) for family in families), key=lambda attempt: attempt.bic)
    return best


def fit_as_far_as_labels_bear_it(mixture: Mixture, families: Sequence[str]) -> tuple[Fit, float]:
    """The fit with the largest weight of unlabelled points that does not contradict the labels, and that weight.

    Thousands of unlabelled scores outvote fifty labels on what the two components are, and where the families are not
    quite right they make them anything that fits the histogram. So their likelihood is raised to a power (as in EM with
    weighted unlabelled data, Nigam et al. 2000): the largest whose fit explains the labels, given their scores, at most
    `BORNE` nats worse than the fit that explains them best. Where the families are right that power is 1.
    """
    fits = [fit(replace(mixture, unlabelled=weight * mixture.unlabelled), families) for weight in WEIGHTS]
    explained = [fitted.mixture.label_log_likelihood(fitted.theta) for fitted in fits]
    chosen = next(i for i, value in enumerate(explained) if value >= max(explained) - BORNE)
    return fits[chosen], WEIGHTS[chosen]


def _most_probable(mixture: Mixture, pair: tuple[str, str], start: tuple[float, Array, Array]) -> Fit:
    from scipy.optimize import minimize

    pr, means, sds = start
    candidate = replace(mixture, families=pair)
    starts = [start_of(name, float(means[y]), float(sds[y]), mixture.scores.support) for y, name in enumerate(pair)]
    if starts[1][0] <= starts[0][0]:
        starts[1] = starts[0][0] + 0.1 * float(sds.mean()), starts[1][1]
    theta = np.array([np.log(pr / (1 - pr)), *starts[0], *starts[1]])
    moves = 1e-5 * np.eye(5)

    def objective(at: Array) -> tuple[float, Array]:
        values = candidate.log_posterior(np.concatenate([at[None], at + moves, at - moves]))
        values = np.where(np.isfinite(values), values, -1e12)
        return -float(values[0]), -(values[1:6] - values[6:]) / 2e-5

    best = minimize(objective, theta, jac=True, method="L-BFGS-B", options={"maxiter": 60})
    theta = best.x if np.isfinite(candidate.log_posterior(best.x)) else theta
    return Fit(candidate, theta, float(-2 * candidate.log_likelihood(theta) + 5 * np.log(len(mixture.scores.bin_of))))


def sample(fitted: Fit, rng: np.random.Generator, chains: int = 4, steps: int = 2000) -> Chains:
    """Draws of theta from the posterior of a fitted mixture."""
    density = fitted.mixture.log_posterior
    return metropolis(density, fitted.theta, curvature(density, fitted.theta), rng, chains, steps)
