"""Precision-recall curves from labels at geometric ranks (C.4)."""

from dataclasses import dataclass

import numpy as np

from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.intervals import normal_quantile
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.hidden import reaching_down
from altmas.methods.related.ranking import (
    KINDS,
    Ints,
    block_yields,
    blocks_of,
    curve_of,
    geometric_ranks,
    ranked,
    valid_points,
)
from altmas.methods.related.strata import (
    allocation,
    draw_in_strata,
    drawn_rows,
    next_counts,
    stratified_sample,
    stratum_counts,
)
from altmas.methods.related.weighted_sample import estimates_of, volunteered_mask
from altmas.task import Task
from altmas.types import Array

PROPOSE = "paula: draws"


@dataclass(frozen=True)
class Paula(Method):
    """Every label of the top ranks, the same number from each block of geometrically growing ranks below.

    After Sabharwal and Sedghi (2017), whose block sampling is reconstructed here. All metrics must share a ranking:
    accuracy, or precision and recall of one class. `info["curve"]` holds precision along it with its band. Metrics are
    stratified estimates with the blocks as strata, fixed before any label, so totals are unbiased. Without scores the
    ranking is that of a label-free imitation of the model by its features (adapted).

    head      ranks at the top that are all labelled
    ratio     epsilon: each block ends at (1 + ratio) times the rank at which it starts
    monotone  take precision never to rise below the head, which narrows the curve's band
    """

    head: int = 20
    ratio: float = 0.5
    monotone: bool = False

    name = "paula"
    traits = Traits(
        requires=("scores or features",),
        interval="fixed-n",
        metrics=KINDS,
        one_class=True,
        citation="Sabharwal and Sedghi 2017, How good are my predictions?",
    )

    def propose(self, task: Task, history: History, n: int) -> Batch:
        rank, _ = ranked(task.pool, task.metrics[0], task.seed)
        blocks = blocks_of(rank, geometric_ranks(len(rank), self.head, self.ratio))
        count = int(blocks.max()) + 1
        sizes = np.bincount(blocks[~volunteered_mask(history)], minlength=count)
        have = stratum_counts(blocks, drawn_rows(history), count)
        open_points = np.flatnonzero(history.open)
        target = block_targets(int(have.sum()) + n, sizes)
        counts = next_counts(target, have, n, stratum_counts(blocks, open_points, count))
        indices, chances = draw_in_strata(blocks, counts, open_points, history.rng(task.seed, PROPOSE))
        return Batch(indices, chances, labels_before=len(history.labels))

    def estimate(self, task: Task, history: History) -> Estimates:
        rank, by = ranked(task.pool, task.metrics[0], task.seed)
        ends = geometric_ranks(len(rank), self.head, self.ratio)
        return curve_estimates(self.name, task, history, rank, ends, by, monotone=self.monotone)


def block_targets(total: int, sizes: Array) -> Ints:
    """(K+1,) labels for each block: two everywhere, then all of the head, then equally many in each block (C16)."""
    least = np.minimum(sizes, 2)
    if total <= least.sum():
        return allocation(total, sizes, "proportional")
    head = int(min(sizes[0], total - least[1:].sum()))
    if len(sizes) == 1:
        return np.array([head], np.int64)
    return np.concatenate([[head], allocation(total - head, sizes[1:], "equal")])


def curve_estimates(
    name: str, task: Task, history: History, rank: Ints, ends: Ints, by: str, *, monotone: bool
) -> Estimates:
    """The metrics with the blocks as strata (C5), and the curve of the first one's ranking."""
    blocks = blocks_of(rank, ends)
    yields, variances, labels = block_yields(history, blocks, valid_points(task.pool, history, task.metrics[0]))
    curve = curve_of(ends, yields, variances, normal_quantile(task.confidence), by, monotone=monotone)
    info = {"curve": curve, "ranks": ends.tolist(), "labels": labels.astype(int).tolist()}
    solve = reaching_down(stratified_sample(history, blocks).solver(task, history), task, history)
    return estimates_of(name, task, history, solve, info)
