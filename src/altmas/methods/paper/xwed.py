"""XWED: label where the draws disagree about the model being wrong, and let the surrogate answer for the rest."""

from dataclasses import dataclass

import numpy as np

from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.paper.acquisition import GAP, Belief, best
from altmas.methods.paper.ase import PAPER, surrogate_estimates
from altmas.methods.paper.information import TINY
from altmas.methods.paper.network import NetworkOptions
from altmas.methods.paper.posterior import Floats
from altmas.methods.paper.rounds import PICK, round_at, still_starting, uniform_batch
from altmas.methods.protocol import Traits
from altmas.task import Task
from altmas.types import Array


@dataclass(frozen=True, kw_only=True)
class Xwed(NetworkOptions):
    """Expected weighted disagreement chooses, `ase` estimates.

    The weight of label c is its 0/1 loss, 1{c != a}; points that no metric is about (its slice) count for nothing.

    stochastic  draw points in proportion to their score instead of taking the highest
    """

    stochastic: bool = False

    name = "xwed"
    traits = Traits(requires=("features",), biased=True, extra="paper", citation=PAPER)

    def propose(self, task: Task, history: History, n: int) -> Batch:
        if still_starting(task, history, self.settings) or not history.open.any():
            return uniform_batch(task, history, n)
        now = round_at(task, history, self.settings)
        scores = np.where(about(task), wrong_disagreement(now.belief), 0.0)
        rng = history.rng(task.seed, PICK)
        if self.stochastic:  # Gumbel-top-n: successive draws in proportion to the scores, certain points last
            clear = np.log(np.maximum(scores, GAP)) + rng.gumbel(size=len(scores))
            indices = best(np.exp(clear - clear.max()), history.open, n, rng)
        else:
            indices = best(scores, history.open, n, rng)
        info = now.info | {"chosen": "by weighted disagreement", "disagreement": scores[indices].tolist()}
        return Batch(indices, info=info, labels_before=len(history.labels))

    def estimate(self, task: Task, history: History) -> Estimates:
        return surrogate_estimates(self.name, self, task, history)


def xwed(probs: Array, weights: Array) -> Floats:
    """(n,) -sum_c w_c pbar_c ln pbar_c + mean_j sum_c w_c p_jc ln p_jc, in nats.

    probs (M, n, C), weights (n, C) the loss of the model's answer if the label is c
    """
    probs = np.asarray(probs, np.float64)
    mean = probs.mean(0)
    doubt = (probs * np.log(np.maximum(probs, TINY))).mean(0) - mean * np.log(np.maximum(mean, TINY))
    return np.asarray(np.maximum((weights * doubt).sum(-1), 0.0))


def wrong_disagreement(belief: Belief) -> Floats:
    """(N,) XWED of every point for the 0/1 loss."""

    def of_chunk(rows: slice, probs: Array) -> Floats:
        weights = 1 - np.eye(probs.shape[2])[belief.predictions[rows]]
        return xwed(probs, weights)

    return np.concatenate(list(belief.posterior.map(of_chunk)))


def about(task: Task) -> Array:
    """(N,) the points that some metric is about."""
    inside = np.zeros(len(task.pool), np.bool_)
    for metric in task.metrics:
        members = metric.members(task.pool)
        inside |= True if members is None else members
    return inside
