"""Stratified evaluation on strata that are learned from the labels (C.2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.hashing import buckets_of, hash_inputs, learn_planes
from altmas.methods.related.strata import (
    allocation,
    draw_in_strata,
    drawn_rows,
    joined,
    labelled_draws,
    last_told,
    next_counts,
    stratum_counts,
    within_groups,
)
from altmas.methods.related.weighted_sample import WeightedSample, estimates_of, volunteered_mask
from altmas.streams import stream
from altmas.task import Task
from altmas.types import Array

PROPOSE = "katariya: draws"
PSEUDO = 2.0
"""Labels of the overall mean that each bucket's mean is drawn towards."""


@dataclass(frozen=True)
class Katariya(Method):
    """Buckets of learned hash bits in which the model is about equally often right; Neyman allocation among them.

    After Katariya, Iyer and Sarawagi (2012), whose objective and schedule are reconstructed here. Labels are weighted
    by the inverse of the inclusion probability that they have gathered over all batches (C14). Labels never choose the
    buckets they are averaged in: the pool is halved once, and the bits that one half's labels teach sort the other
    half. Without this, accuracy was overstated by 4 points at 150 labels. The allocation in a half follows the other
    half's labels as well (its own overstated accuracy by 0.5 to 0.8 points at 200 labels). It is slightly biased still:
    the two halves answer each other over many batches.

    start   uniform labels before the first bits are learned
    bits    at most this many, and no more than log2(labels / 10)
    growth  bits are learned anew once there are this many times the labels
    proportional  share of the allocation that is left proportional, since spreads learned from few labels are rough
    """

    start: int = 50
    bits: int = 4
    growth: float = 1.5
    proportional: float = 0.5

    name = "katariya"
    traits = Traits(
        requires=("features",),
        interval="fixed-n",
        biased=True,
        citation="Katariya, Iyer and Sarawagi 2012, Active evaluation of classifiers on large datasets",
    )

    def propose(self, task: Task, history: History, n: int) -> Batch:
        inputs, half = hash_inputs(task.pool), half_of(len(task.pool), task.seed)
        planes, learned_at = self._planes(task, history, inputs, half)
        buckets, count = crossed_buckets(inputs, half, planes), 2 * 2 ** planes.shape[1]
        open_points = np.flatnonzero(history.open)
        room = stratum_counts(buckets, open_points, count)
        sizes = np.bincount(buckets[~volunteered_mask(history)], minlength=count)
        have = stratum_counts(buckets, drawn_rows(history), count)
        taught = crossed_buckets(inputs, 1 - half, planes)
        spreads = bucket_spreads(task, history, inclusion_of(history, inputs, half), taught, count)
        spreads = (1 - self.proportional) * spreads + self.proportional * spreads.mean()
        target = allocation(int(have.sum()) + n, sizes, "neyman", spreads)
        counts = next_counts(target, have, n, room)
        indices, chances = draw_in_strata(buckets, counts, open_points, history.rng(task.seed, PROPOSE))
        share = np.divide(counts, room, out=np.zeros(count), where=room > 0)
        record = {"planes": planes, "share": share, "learned_at": np.array([learned_at])}
        return Batch(indices, chances, record, labels_before=len(history.labels))

    def _planes(self, task: Task, history: History, inputs: Array, half: Array) -> tuple[Array, int]:
        """(2, r, d) planes in force and the number of labels they were learned from: the last batch's, or new ones."""
        planes, learned_at = no_planes(inputs), 0
        if history.batches:
            record = history.batches[-1].record
            planes, learned_at = record["planes"], int(record["learned_at"][0])
        rows = labelled_draws(history)
        if len(rows) < max(self.start, self.growth * learned_at):
            return planes, learned_at
        right = (history.known[rows] == task.pool.predictions[rows]).astype(np.float64)
        weights = 1 / inclusion_of(history, inputs, half)[rows]
        by_half = []
        for side in (0, 1):
            in_half = half[rows] == side
            bits = max(0, min(self.bits, int(np.log2(max(in_half.sum(), 1) / 10))))
            scaled = weights[in_half] / weights[in_half].mean() if in_half.any() else weights[in_half]
            by_half.append(learn_planes(inputs[rows[in_half]], right[in_half], scaled, bits if in_half.any() else 0))
        new = np.zeros((2, max(map(len, by_half)), inputs.shape[1]))
        for side, learned in enumerate(by_half):
            new[side, : len(learned)] = learned
        return new, len(rows)

    def estimate(self, task: Task, history: History) -> Estimates:
        inputs, half = hash_inputs(task.pool), half_of(len(task.pool), task.seed)
        last_batch = last_told(history)
        planes = no_planes(inputs) if last_batch is None else last_batch.record["planes"]
        buckets, count = crossed_buckets(inputs, half, planes), 2 * 2 ** planes.shape[1]
        sample = bucket_sample(history, buckets, count, inclusion_of(history, inputs, half))
        return estimates_of(self.name, task, history, sample.solver(task, history), {"bits": planes.shape[1]})


def half_of(n_points: int, seed: int) -> Array:
    """(N,) 0 or 1: which half of the pool each point belongs to, fixed by the seed alone."""
    return np.asarray(stream(seed, "katariya: halves").permutation(n_points) % 2)


def no_planes(inputs: Array) -> Array:
    return np.zeros((2, 0, inputs.shape[1]))


def crossed_buckets(inputs: Array, half: Array, planes: Array) -> NDArray[np.int64]:
    """(N,) buckets of both halves, each by the planes that the other half's labels taught."""
    return np.where(
        half == 0, buckets_of(inputs, planes[1]), 2 ** planes.shape[1] + buckets_of(inputs, planes[0])
    ).astype(np.int64)


def inclusion_of(history: History, inputs: Array, half: Array) -> Array:
    """(N,) 1 - prod over batches of (1 - share drawn of the point's bucket then, as far as its labels are known)."""
    designs: dict[bytes, tuple[Array, Array]] = {}
    for batch in history.batches:
        known_share = (history.known[batch.indices] >= 0).mean() if len(batch.indices) else 0.0
        planes, share = batch.record["planes"], batch.record["share"] * known_share
        missed = designs.get(planes.tobytes(), (planes, np.ones(len(share))))[1]
        designs[planes.tobytes()] = planes, missed * (1 - share)
    left = np.ones(len(inputs))
    for planes, missed in designs.values():
        left *= missed[crossed_buckets(inputs, half, planes)]
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
