"""BALD (B.2): label what tells most about the network, whatever the metrics are."""

from dataclasses import dataclass

from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.paper.acquisition import best
from altmas.methods.paper.network import NetworkOptions
from altmas.methods.paper.rounds import (
    PICK,
    estimates_of,
    nothing_known,
    round_at,
    still_starting,
    uniform_batch,
)
from altmas.methods.protocol import Traits
from altmas.task import Task


@dataclass(frozen=True, kw_only=True)
class Bald(NetworkOptions):
    """The paper's second baseline: the network sees true labels only, points are chosen by (B3), estimates by (A2)."""

    label_mode: str = "hard"

    name = "bald"
    traits = Traits(
        requires=("features",),
        biased=True,
        extra="paper",
        citation="Houlsby et al. 2011, Bayesian active learning; Gal et al. 2017",
    )

    def propose(self, task: Task, history: History, n: int) -> Batch:
        if still_starting(task, history, self.settings) or not history.open.any():
            return uniform_batch(task, history, n)
        now = round_at(task, history, self.settings)
        scores = now.belief.information.of_label
        indices = best(scores, history.open, n, history.rng(task.seed, PICK))
        info = now.info | {"chosen": "by information", "information": scores[indices].tolist()}
        return Batch(indices, info=info, labels_before=len(history.labels))

    def estimate(self, task: Task, history: History) -> Estimates:
        if len(history.labels) == 0:
            return nothing_known(self.name, task)
        complete = len(history.labels) == len(task.pool)
        return estimates_of(self.name, task, history, None if complete else round_at(task, history, self.settings))
