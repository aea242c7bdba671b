"""Adaptive importance sampling for the F-measures of one class (peers of C.1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.hidden import reaching_down
from altmas.methods.related.replacement import (
    counting_sample,
    draw_with_replacement,
    replacement_sample,
    replayed_draws,
)
from altmas.methods.related.strata import labelled_draws, root_frequency
from altmas.methods.related.weighted_sample import estimates_of, volunteered_mask
from altmas.metrics import Metric
from altmas.task import Task
from altmas.types import Array
from altmas.weighted import effective_sample_size

PROPOSE = "oasis: draws"


@dataclass(frozen=True)
class Oasis(Method):
    """Draws with replacement from strata of a class's score, more often where its F-measure is least sure.

    Marchant and Rubinstein (2017). The chances follow the labels of earlier batches and are known for each draw, so
    the estimate is consistent; like any ratio it has O(1/n) bias. Where draws have met no point of the class the
    interval reaches down to what the scores expect there.

    strata   how many, by cumulative root frequency of the score
    uniform  share of uniform draws mixed in (epsilon)
    """

    strata: int = 30
    uniform: float = 1e-3

    name = "oasis"
    traits = Traits(
        requires=("scores",),
        interval="fixed-n",
        in_order=True,
        skips=True,
        metrics=("f1", "fbeta", "precision", "recall"),
        one_class=True,
        citation="Marchant and Rubinstein 2017, In search of an entity resolution OASIS",
    )

    def propose(self, task: Task, history: History, n: int) -> Batch:
        assert task.pool.scores is not None
        k = task.metrics[0].classes[0]
        score, called = task.pool.scores[:, k], task.pool.predictions == k
        strata = root_frequency(score, self.strata)
        population = ~volunteered_mask(history)
        sizes = np.bincount(strata[population], minlength=int(strata.max()) + 1).astype(np.float64)
        shares = sizes / max(sizes.sum(), 1.0)
        rates = positive_rates(history, strata, score, k)
        says = np.bincount(strata, called) / np.bincount(strata)
        pmf = np.zeros(len(sizes))
        for metric in task.metrics:
            alpha = alpha_of(metric, task)
            f = current_f(history, called, k, alpha, rates, says, shares)
            pmf = pmf + stratum_squares(says, rates, f, alpha)
        pmf = shares * np.sqrt(pmf)
        pmf = pmf / pmf.sum() if pmf.sum() > 0 else shares
        pmf = (1 - self.uniform) * pmf + self.uniform * shares
        chances = np.where(population, (pmf / np.maximum(sizes, 1.0))[strata], 0.0)
        return draw_with_replacement(chances, history, n, history.rng(task.seed, PROPOSE))

    def estimate(self, task: Task, history: History) -> Estimates:
        sample = counting_sample(history) if len(history.volunteered) else replacement_sample(history)
        info = {"draws": len(sample.rows), "effective_sample": effective_sample_size(sample.weights)}
        solve = reaching_down(sample.solver(task, history), task, history)
        return estimates_of(self.name, task, history, solve, info)


def alpha_of(metric: Metric, task: Task) -> float:
    """The alpha of F_alpha (0.4): 1 precision, 0 recall, 1 / (1 + beta^2) for fbeta."""
    fixed = {"precision": 1.0, "recall": 0.0, "f1": 0.5}
    if (known := metric.pick(fixed)) is not None:
        return known
    # F_beta = t / (alpha r + (1 - alpha) s); at t = 1, r = 1, s = 2 that is 1 / (2 - alpha).
    k, n_classes = metric.classes[0], len(task.pool.classes)
    table = np.zeros((n_classes, n_classes))
    table[k, k] = table[k - 1, k] = 1.0
    return 2 - 1 / float(metric.of_table(table))


def stratum_squares(says: Array, rates: Array, f: float, alpha: float) -> Array:
    """(H,) what stands under the root of the optimal stratum probabilities.

    l [ alpha^2 F^2 (1 - theta) + (1 - F)^2 theta ] + (1 - l) (1 - alpha)^2 F^2 theta
    """
    inside = alpha**2 * f**2 * (1 - rates) + (1 - f) ** 2 * rates
    return np.asarray(says * inside + (1 - says) * (1 - alpha) ** 2 * f**2 * rates)


def positive_rates(history: History, strata: NDArray[np.int64], score: Array, k: int) -> Array:
    """(H,) theta: posterior mean of P(y = k) in each stratum; the prior is the mean score and fades with its labels."""
    rows, count = labelled_draws(history), int(strata.max()) + 1
    seen = np.bincount(strata[rows], minlength=count).astype(np.float64)
    hits = np.bincount(strata[rows], history.known[rows] == k, count)
    guess = np.bincount(strata, score) / np.bincount(strata)
    strength = 2.0 * count / np.maximum(seen, 1.0)
    return np.asarray((strength * guess + hits) / (strength + seen))


def current_f(history: History, called: Array, k: int, alpha: float, rates: Array, says: Array, shares: Array) -> float:
    """F_alpha by the weighted draws and the volunteered labels, or as the strata expect it while these define none."""
    rows, chances = replayed_draws(history)
    weights = 1 / np.maximum(chances, 1e-300)
    volunteered = history.volunteered
    if len(volunteered):
        weights = weights / max(len(rows), 1)
    rows, weights = np.concatenate([volunteered, rows]), np.concatenate([np.ones(len(volunteered)), weights])
    true = history.known[rows] == k
    bottom = float((weights * (alpha * called[rows] + (1 - alpha) * true)).sum())
    top = float((weights * (called[rows] & true)).sum())
    if bottom <= 0 or top <= 0:
        bottom = float((shares * (alpha * says + (1 - alpha) * rates)).sum())
        top = float((shares * says * rates).sum())
    return top / bottom if bottom > 0 else 0.5
