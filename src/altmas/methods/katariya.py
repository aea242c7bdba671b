"""Stratified evaluation on strata that are learned from the labels (C.2)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.estimates import Estimates
from altmas.hashing import buckets_of, hash_inputs, learn_planes
from altmas.history import Batch, History
from altmas.methods.protocol import Needs, Task
from altmas.strata import (
    allocation,
    draw_in_strata,
    drawn_rows,
    joined,
    labelled_draws,
    next_counts,
    stratum_counts,
    within_groups,
)
from altmas.weighted_sample import WeightedSample, estimates_of, volunteered_mask

Array = NDArray[Any]
PROPOSE = 20
PSEUDO = 2.0
"""Labels of the overall mean that each bucket's mean is drawn towards."""


@dataclass(frozen=True)
class Katariya:
    """Buckets of learned hash bits in which the model is about equally often right; Neyman allocation among them.

    After Katariya, Iyer and Sarawagi (2012), whose objective and schedule are reconstructed here. Labels are weighted
    by the inverse of the inclusion probability that they have gathered over all batches (C14), so relearned buckets do
    not bias the estimate by themselves; it is still slightly biased, as buckets and allocation follow the same labels.

    start   uniform labels before the first bits are learned
    bits    at most this many, and no more than log2(labels / 10)
    growth  bits are learned anew once there are this many times the labels
    """

    start: int = 50
    bits: int = 4
    growth: float = 1.5

    name = "katariya"
    needs = Needs(
        features=True,
        interval="fixed-n",
        biased=True,
        after="Katariya, Iyer and Sarawagi 2012, Active evaluation of classifiers on large datasets",
    )

    def propose(self, task: Task, history: History, n: int) -> Batch:
        inputs = hash_inputs(task.pool)
        planes, learned_at = self._planes(task, history, inputs)
        buckets = buckets_of(inputs, planes)
        count = 2 ** len(planes)
        open_points = np.flatnonzero(history.open)
        room = stratum_counts(buckets, open_points, count)
        sizes = np.bincount(buckets[~volunteered_mask(history)], minlength=count)
        have = stratum_counts(buckets, drawn_rows(history), count)
        spreads = bucket_spreads(task, history, inclusion_of(history, inputs), buckets, count)
        target = allocation(int(have.sum()) + n, sizes, "neyman", spreads)
        counts = next_counts(target, have, n, room)
        indices, chances = draw_in_strata(buckets, counts, open_points, history.rng(task.seed, PROPOSE))
        share = np.divide(counts, room, out=np.zeros(count), where=room > 0)
        record = {"planes": planes, "share": share, "learned_at": np.array([learned_at])}
        return Batch(indices, chances, record, labels_before=len(history.labels))

    def _planes(self, task: Task, history: History, inputs: Array) -> tuple[Array, int]:
        """The planes in force and the number of labels they were learned from: those of the last batch, or new ones."""
        planes, learned_at = np.zeros((0, inputs.shape[1])), 0
        if history.batches:
            record = history.batches[-1].record
            planes, learned_at = record["planes"], int(record["learned_at"][0])
        rows = labelled_draws(history)
        if len(rows) < max(self.start, self.growth * learned_at):
            return planes, learned_at
        right = (history.known[rows] == task.pool.predictions[rows]).astype(np.float64)
        weights = 1 / inclusion_of(history, inputs)[rows]
        bits = min(self.bits, int(np.log2(len(rows) / 10)))
        return learn_planes(inputs[rows], right, weights / weights.mean(), bits), len(rows)

    def estimate(self, task: Task, history: History) -> Estimates:
        inputs = hash_inputs(task.pool)
        planes = history.batches[-1].record["planes"] if history.batches else np.zeros((0, inputs.shape[1]))
        sample = bucket_sample(history, buckets_of(inputs, planes), 2 ** len(planes), inclusion_of(history, inputs))
        return estimates_of(self.name, task, history, sample.solver(task, history), {"bits": len(planes)})


def inclusion_of(history: History, inputs: Array) -> Array:
    """(N,) 1 - prod over batches of (1 - share drawn of the point's bucket then)."""
    designs: dict[bytes, tuple[Array, Array]] = {}
    for batch in history.batches:
        planes, share = batch.record["planes"], batch.record["share"]
        missed = designs.get(planes.tobytes(), (planes, np.ones(len(share))))[1]
        designs[planes.tobytes()] = planes, missed * (1 - share)
    left = np.ones(len(inputs))
    for planes, missed in designs.values():
        left *= missed[buckets_of(inputs, planes)]
    return np.maximum(1 - left, 1e-12)


def bucket_spreads(task: Task, history: History, inclusion: Array, buckets: Array, count: int) -> Array:
    """(B,) standard deviation of correctness in each bucket, its mean drawn towards that of all by two labels."""
    rows = labelled_draws(history)
    right = history.known[rows] == task.pool.predictions[rows]
    weights = 1 / inclusion[rows]
    weights = weights / weights.mean() if len(rows) else weights
    overall = (float((weights * right).sum()) + 0.5) / (float(weights.sum()) + 1)
    hits, seen = np.bincount(buckets[rows], weights * right, count), np.bincount(buckets[rows], weights, count)
    mean = (hits + PSEUDO * overall) / (seen + PSEUDO)
    return np.asarray(np.sqrt(mean * (1 - mean)))


def bucket_sample(history: History, buckets: Array, count: int, inclusion: Array) -> WeightedSample:
    """(C14): inside each bucket the mean weighted by 1 / inclusion; one with fewer than two labels joins a neighbour.

    Buckets are numbered so that neighbours share all bits but the last.
    """
    rows = labelled_draws(history)
    group = joined(np.bincount(buckets[rows], minlength=count))
    sizes = np.bincount(group[buckets[~volunteered_mask(history)]], minlength=count).astype(np.float64)
    member, omega = group[buckets[rows]], 1 / inclusion[rows]
    weights = omega * (sizes / np.maximum(np.bincount(member, omega, count), 1e-300))[member]
    return WeightedSample(rows, weights, within_groups(member, weights, 1 - inclusion[rows]))
