"""BatchBALD (B.3): label what tells most about the network together, so that no two points tell the same."""

from dataclasses import dataclass

import numpy as np

from altmas.errors import PlanError
from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.paper.acquisition import GAP, Belief
from altmas.methods.paper.batch_information import batch_bald
from altmas.methods.paper.network import NetworkOptions
from altmas.methods.paper.rounds import PICK, estimates_of, nothing_known, round_at, still_starting, uniform_batch
from altmas.methods.protocol import Traits
from altmas.task import Task
from altmas.types import Array

STATES = "batchbald: states"
"""Purpose of the random numbers that labellings are drawn with."""


@dataclass(frozen=True, kw_only=True)
class BatchBald(NetworkOptions):
    """Points are chosen greedily by the joint information of a batch (B4), estimates are those of `bald` (A2).

    states      labellings of the batch that are looked at: all of them while there are no more, else so many drawn (B6)
    candidates  only so many points of highest BALD are looked at; no other can add more than its own BALD
    """

    label_mode: str = "hard"
    states: int = 1000
    candidates: int = 500

    name = "batchbald"
    traits = Traits(
        requires=("features",),
        biased=True,
        extra="paper",
        citation="Kirsch et al. 2019, BatchBALD: efficient and diverse batch acquisition",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for option, value in (("states", self.states), ("candidates", self.candidates)):
            if value < 1:
                raise PlanError(f"{option} {value!r} is out of range; expected at least 1; nothing was recorded")

    def propose(self, task: Task, history: History, n: int) -> Batch:
        if still_starting(task, history, self.settings) or not history.open.any():
            return uniform_batch(task, history, n)
        now = round_at(task, history, self.settings)
        rows = self._candidates(now.belief.information.of_label, history, max(n, self.candidates), task.seed)
        probs = probabilities_at(now.belief, rows)
        chosen = batch_bald(probs, n, history.rng(task.seed, STATES), self.states)
        info = now.info | {"chosen": "by joint information", "information": chosen.added.tolist()}
        return Batch(rows[chosen.positions], info=info, labels_before=len(history.labels))

    def _candidates(self, alone: Array, history: History, count: int, seed: int) -> Array:
        """The open points of highest BALD; those that tell nothing at random."""
        rows = history.rng(seed, PICK).permutation(np.flatnonzero(history.open))
        clear = np.where(alone[rows] > GAP, alone[rows], 0.0)
        return np.asarray(rows[np.argsort(-clear, kind="stable")[:count]])

    def estimate(self, task: Task, history: History) -> Estimates:
        if len(history.labels) == 0:
            return nothing_known(self.name, task)
        complete = len(history.labels) == len(task.pool)
        return estimates_of(self.name, task, history, None if complete else round_at(task, history, self.settings))


def probabilities_at(belief: Belief, rows: Array) -> Array:
    """(M, len(rows), C) the belief about some points, in their order."""
    order = np.argsort(rows)
    ascending = rows[order]

    def of_chunk(chunk: slice, probs: Array) -> Array:
        first, last = np.searchsorted(ascending, [chunk.start, chunk.stop])
        return np.asarray(probs[:, ascending[first:last] - chunk.start])

    parts = np.concatenate(list(belief.posterior.map(of_chunk)), axis=1)
    return np.asarray(parts[:, np.argsort(order)])
