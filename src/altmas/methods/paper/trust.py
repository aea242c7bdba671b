"""Trust (A.10): the trivial twin of ALT-MAS, which believes the model wherever there is no label."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.paper.rounds import COMPLETE, estimate_of, known_table, uniform_batch
from altmas.methods.protocol import Method, Traits
from altmas.metrics import Metric
from altmas.task import Task

BELIEVED = "unlabelled points are taken to be what the model says; no interval"


@dataclass(frozen=True)
class Trust(Method):
    """Uniform labels; every unlabelled point is taken to be what the model says.

    For a model that is right 99 % of the time the error is below one point from the start, so a method has shown
    nothing there unless it beats this one.
    """

    name = "trust"
    traits = Traits(biased=True)

    def propose(self, task: Task, history: History, n: int) -> Batch:
        return uniform_batch(task, history, n)

    def estimate(self, task: Task, history: History) -> Estimates:
        note = COMPLETE if len(history.labels) == len(task.pool) else BELIEVED
        values = [estimate_of(task, history, metric, _table(task, history, metric), note) for metric in task.metrics]
        return Estimates(tuple(values), self.name)


def _table(task: Task, history: History, metric: Metric) -> Any:
    """(1, C, C) labelled points where they are, every other point of the metric on the diagonal."""
    members = metric.members(task.pool)
    unlabelled = history.known < 0 if members is None else members & (history.known < 0)
    right = np.bincount(task.pool.predictions[unlabelled], minlength=len(task.pool.classes))
    return (known_table(task, history, metric) + np.diag(right))[None]
