"""Precision-recall curves from labels at ranks that earlier labels choose (C.5)."""

from dataclasses import dataclass

import numpy as np

from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.paula import curve_estimates
from altmas.methods.related.ranking import (
    KINDS,
    Ints,
    block_yields,
    blocks_of,
    is_open,
    middle_rank,
    ranked,
    valid_points,
)
from altmas.methods.related.strata import allocation, draw_in_strata, drawn_rows, last_told, next_counts, stratum_counts
from altmas.methods.related.weighted_sample import volunteered_mask
from altmas.task import Task
from altmas.types import Array

PROPOSE = "adastrat: draws"


@dataclass(frozen=True)
class AdaStrat(Method):
    """Blocks of a ranking that are split where precision still falls, each topped up to the same number of labels.

    After Sabharwal et al. (2018), whose choice of ranks is reconstructed here. As labels decide where blocks are split,
    totals are slightly biased; labels of a split block stay valid in both halves because they were drawn uniformly.
    Once no block deserves a split, labels are shared out in proportion to block size. `info["curve"]` as for `paula`.

    head      ranks of the first block
    ratio     epsilon: a block is split while precision falls by more than this factor across it
    labels    labels that each block gets before it may be split
    monotone  take precision never to rise below the head, which narrows the curve's band
    """

    head: int = 20
    ratio: float = 0.15
    labels: int = 20
    monotone: bool = False

    name = "adastrat"
    traits = Traits(
        requires=("scores or features",),
        interval="fixed-n",
        metrics=KINDS,
        one_class=True,
        biased=True,
        citation="Sabharwal et al. 2018, Adaptive stratified sampling for precision-recall estimation",
    )

    def propose(self, task: Task, history: History, n: int) -> Batch:
        rank, _ = ranked(task.pool, task.metrics[0], task.seed)
        ends = self._ends(history.batches[-1] if history.batches else None, len(rank))
        if len(history.outstanding) == 0 and len(history.labels):
            ends = self._split(task, history, rank, ends, n)
        blocks = blocks_of(rank, ends)
        sizes = np.bincount(blocks[~volunteered_mask(history)], minlength=len(ends))
        have = stratum_counts(blocks, drawn_rows(history), len(ends))
        target = np.minimum(sizes, self.labels)
        if target.sum() < have.sum() + n:
            target = np.maximum(target, allocation(int(have.sum()) + n, sizes, "proportional"))
        open_points = np.flatnonzero(history.open)
        counts = next_counts(target, have, n, stratum_counts(blocks, open_points, len(ends)))
        indices, chances = draw_in_strata(blocks, counts, open_points, history.rng(task.seed, PROPOSE))
        return Batch(indices, chances, {"ranks": ends}, labels_before=len(history.labels))

    def estimate(self, task: Task, history: History) -> Estimates:
        rank, by = ranked(task.pool, task.metrics[0], task.seed)
        ends = self._ends(last_told(history), len(rank))
        return curve_estimates(self.name, task, history, rank, ends, by, monotone=self.monotone)

    def _ends(self, batch: Batch | None, n_points: int) -> Ints:
        """The ends of the blocks in force at a batch; the head and the rest before the first."""
        if batch is not None:
            return np.asarray(batch.record["ranks"], np.int64)
        return np.unique([min(self.head, n_points), n_points]).astype(np.int64)

    def _split(self, task: Task, history: History, rank: Ints, ends: Ints, n: int) -> Ints:
        """The ends with the most open blocks split, as many as the next n labels can top up."""
        valid = valid_points(task.pool, history, task.metrics[0])
        while True:
            blocks = blocks_of(rank, ends)
            yields, variances, labels = block_yields(history, blocks, valid)
            sizes = np.bincount(blocks, minlength=len(ends))
            missing = np.maximum(np.minimum(self.labels, sizes) - labels, 0).sum()
            where = most_open(ends, yields, variances, labels >= np.minimum(self.labels, sizes), self.ratio)
            if missing >= n or where is None:
                return ends
            ends = np.insert(ends, where, middle_rank(int(ends[where - 1]), int(ends[where])))


def most_open(ends: Ints, yields: Array, variances: Array, ready: Array, ratio: float) -> int | None:
    """The ready block across which precision falls most, beyond one standard error; None if all are closed."""
    if np.isnan(yields).any():
        return None
    precision = np.cumsum(yields) / ends
    error = np.sqrt(np.cumsum(variances)) / ends
    best, steepest = None, 0.0
    for k in range(1, len(ends)):
        a, b = int(ends[k - 1]), int(ends[k])
        lowered = precision[k - 1] - float(np.hypot(error[k - 1], error[k]))
        if ready[k] and is_open(a, b, lowered, precision[k], ratio):
            fall = lowered / max(precision[k], 1e-12)
            if fall > steepest:
                best, steepest = k, fall
    return best
