"""Importance sampling that is optimal for the metrics asked for (C.1)."""

from dataclasses import dataclass

import numpy as np

from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.hidden import reaching_down
from altmas.methods.related.proxy import phi_moments, proxy_of, remembered
from altmas.methods.related.replacement import draw_with_replacement, replacement_sample
from altmas.methods.related.weighted_sample import estimates_of, volunteered_mask
from altmas.task import Task
from altmas.types import Array
from altmas.weighted import effective_sample_size

PROPOSE = "sawade: draws"


@dataclass(frozen=True)
class Sawade(Method):
    """Draws with replacement where labels move the metrics most, weighted back; Sawade et al. (2010a, 2010b).

    p(c|x) are the model's scores or, where it gives none, a surrogate learned from the labels (adapted). Consistent;
    a ratio's bias is O(1/n). Wrong probabilities cost width: `info["effective_sample"]` shows how much. Where no
    draw has met a point of a class, intervals of its metrics reach down to what the scores expect there.

    uniform  share of uniform draws mixed in
    """

    uniform: float = 0.1

    name = "sawade"
    traits = Traits(
        requires=("scores or features",),
        interval="fixed-n",
        in_order=True,
        skips=True,
        citation="Sawade et al. 2010, Active risk estimation; Active estimation of F-measures",
    )

    def propose(self, task: Task, history: History, n: int) -> Batch:
        population = ~volunteered_mask(history)
        chances = population / max(population.sum(), 1)
        optimum = optimal_chances(task, history) * population
        if optimum.sum() > 0:
            chances = self.uniform * chances + (1 - self.uniform) * optimum / optimum.sum()
        return draw_with_replacement(chances, history, n, history.rng(task.seed, PROPOSE))

    def estimate(self, task: Task, history: History) -> Estimates:
        sample = replacement_sample(history)
        info = {"draws": len(sample.rows), "effective_sample": effective_sample_size(sample.weights)}
        solve = reaching_down(sample.solver(task, history), task, history)
        return estimates_of(self.name, task, history, solve, info)


def optimal_chances(task: Task, history: History) -> Array:
    """(N,) q* of (C8) up to a factor: sqrt(sum_c p(c|x) phi(a, c)^2), squares of several metrics added."""
    belief = proxy_of(task, history)
    if belief is None:
        return np.ones(len(task.pool))

    def total() -> Array:
        squares = [phi_moments(metric, belief, metric.members(task.pool))[1] for metric in task.metrics]
        return np.asarray(np.sqrt(np.maximum(sum(squares), 0.0)))

    return remembered(task.pool, belief, ("optimum", task.metrics), total)


# ---------------------------------------------------------------- closed forms


def f_chances(p: Array, predicted: Array, alpha: float) -> tuple[float, Array]:
    """(F, q*) of (C10) for F_alpha of a class: p (N,) its probability, predicted (N,) whether the model says it."""
    f = float((p * predicted).sum() / (alpha * predicted + (1 - alpha) * p).sum())
    inside = np.sqrt(p * (1 - f) ** 2 + alpha**2 * (1 - p) * f**2)
    q = np.where(predicted, inside, (1 - alpha) * f * np.sqrt(p))
    return f, np.asarray(q / q.sum())
