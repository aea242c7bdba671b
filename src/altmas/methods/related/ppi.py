"""Prediction-powered inference on a uniform sample (peers 5.5)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from altmas.belief import Belief
from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.draws import uniform_draws
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.proxy import learned, score_belief
from altmas.methods.related.strata import labelled_draws
from altmas.methods.related.weighted_sample import Solution, estimates_of, trials_of, volunteered_mask
from altmas.metrics import Metric, table_of
from altmas.metrics.formulas import positive
from altmas.task import Task
from altmas.types import Array
from altmas.weighted import effective_sample_size

PROPOSE = "ppi: draws"
LEAST = 20
"""Labels before a surrogate is fitted."""


@dataclass(frozen=True)
class Ppi(Method):
    """A uniform sample, improved by what the scores say about the rest: PPI++ with the variance of this finite pool.

    Angelopoulos et al. (2023a, 2023b). Without scores the guess is a surrogate learned from the labels, each point
    answered for by labels outside its fold. The guess counts by lambda, tuned for each metric, so a useless one costs
    nothing; tuning leaves a bias of O(1/n).
    """

    name = "ppi"
    traits = Traits(requires=("scores or features",), interval="fixed-n", citation="Angelopoulos et al. 2023, PPI++")

    def propose(self, task: Task, history: History, n: int) -> Batch:
        rng = history.rng(task.seed, PROPOSE)
        indices, chances = uniform_draws(np.flatnonzero(history.open), n, rng)
        return Batch(indices, chances, labels_before=len(history.labels))

    def estimate(self, task: Task, history: History) -> Estimates:
        belief = None
        if task.pool.scores is not None:
            belief = score_belief(task.pool)
        elif len(history.labels) >= LEAST:
            belief = learned(task, history, len(history.labels))
        power: dict[str, float] = {}
        expected: dict[Any, Array | None] = {}  # tables of the points that could be drawn, by slice

        def solve(metric: Metric, inside: Array) -> Solution:
            if metric.where not in expected:
                population = inside & ~volunteered_mask(history)
                expected[metric.where] = None if belief is None else belief.table(population)
            solved, power[metric.name] = powered(task, history, belief, expected[metric.where], metric, inside)
            return solved

        return estimates_of(self.name, task, history, solve, {"lambda": power})


def power_of(values: Array, guesses: Array) -> float:
    """lambda = cov(Z, f) / var(f) within [0, 1]: the least variance for a finite pool."""
    if len(values) < 2 or guesses.var() <= 0:
        return 0.0
    return float(np.clip(np.cov(values, guesses)[0, 1] / guesses.var(ddof=1), 0.0, 1.0))


def powered_mean(values: Array, guesses: Array, pool_mean: float, size: int, power: float) -> tuple[float, float]:
    """(estimate, variance) of a pool mean: lambda mean f + mean (Z - lambda f), (1 - n/N) var(Z - lambda f) / n."""
    residual = values - power * guesses
    n = len(values)
    spread = float(residual.var(ddof=1)) if n > 1 else 0.0
    return power * pool_mean + float(residual.mean()), (1 - n / size) * spread / n


def powered(
    task: Task, history: History, belief: Belief | None, expected: Array | None, metric: Metric, inside: Array
) -> tuple[Solution, float]:
    """The solution and its lambda: T = sample scaled up + lambda (belief on the pool - on the sample, scaled up)."""
    predictions, known, n_classes = task.pool.predictions, history.known, len(task.pool.classes)
    exact = volunteered_mask(history)
    volunteered = np.flatnonzero(inside & exact)
    rows = labelled_draws(history)
    rows = rows[inside[rows]]
    table = table_of(predictions[volunteered], known[volunteered], n_classes)
    n, population = len(rows), inside & ~exact
    if n == 0:
        return Solution(table, 0.0, 0), 0.0
    a, y, size = predictions[rows], known[rows], int(population.sum())
    sampled = table + table_of(a, y, n_classes) * (size / n)
    if belief is None or expected is None:
        slope = metric.gradient(sampled)
        return Solution(sampled, *_spread(slope[a, y], size), *trials_of(slope[a, y], np.full(n, size / n))), 0.0
    believed = belief.rows(rows)
    on_sample = np.zeros_like(table)
    np.add.at(on_sample, a, believed * (size / n))
    shift = expected - on_sample
    slope = metric.gradient(positive(sampled))
    power = power_of(slope[a, y], (believed * slope[a]).sum(1))
    final = sampled + power * shift
    slope = metric.gradient(positive(final))
    residual_spread = _spread(slope[a, y] - power * (believed * slope[a]).sum(1), size)
    return Solution(final, *residual_spread, *trials_of(slope[a, y], np.full(n, size / n))), power


def _spread(residual: Array, size: int) -> tuple[float, int, float]:
    """(variance of the total, n, worth) of n uniform draws Z - lambda f from a pool of this size."""
    _, variance = powered_mean(residual, np.zeros(len(residual)), 0.0, size, 0.0)
    return size**2 * variance, len(residual), effective_sample_size((residual - residual.mean()) ** 2)
