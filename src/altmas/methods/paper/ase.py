"""Active surrogate estimator: the surrogate answers for every point without a label (peers of LURE; no guarantee)."""

from dataclasses import dataclass

from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.paper.network import NetworkOptions
from altmas.methods.paper.rounds import UNSURE, Round, estimate_of, estimates_of, nothing_known, round_at, uniform_batch
from altmas.methods.protocol import Traits
from altmas.task import Task

PAPER = "Kossen et al. 2022, Active surrogate estimators"


@dataclass(frozen=True, kw_only=True)
class Ase(NetworkOptions):
    """Uniform labels; every metric of the table T[a, c] = sum_i 1{a_i = a} f_ic, with true labels where known.

    f_i is the surrogate's mean probability, so for a loss the estimate is (1/N) sum_i sum_c f_ic loss(a_i, c). It is
    as biased as the surrogate and carries no interval. `xwed` chooses the labels as well.
    """

    name = "ase"
    traits = Traits(requires=("features",), biased=True, extra="paper", citation=PAPER)

    def propose(self, task: Task, history: History, n: int) -> Batch:
        return uniform_batch(task, history, n)

    def estimate(self, task: Task, history: History) -> Estimates:
        return surrogate_estimates(self.name, self, task, history)


def surrogate_estimates(name: str, options: NetworkOptions, task: Task, history: History) -> Estimates:
    """ASE of every metric; the truth itself once everything is labelled."""
    if len(history.labels) == 0:
        return nothing_known(name, task)
    if len(history.labels) == len(task.pool):
        return estimates_of(name, task, history, None)
    return _from_mean_table(name, task, history, round_at(task, history, options.settings))


def _from_mean_table(name: str, task: Task, history: History, now: Round) -> Estimates:
    values = [
        estimate_of(task, history, metric, now.belief.tables(metric).mean(0, keepdims=True), UNSURE)
        for metric in task.metrics
    ]
    return Estimates(tuple(values), name, dict(now.info))
