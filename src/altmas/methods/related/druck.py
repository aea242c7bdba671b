"""Stratified evaluation with the model's own expectations (C.6)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.hidden import reaching_down
from altmas.methods.related.proxy import class_scores, confidence_of
from altmas.methods.related.strata import (
    allocation,
    draw_in_strata,
    drawn_rows,
    joined,
    next_counts,
    numbered,
    root_frequency,
    stratified_sample,
    stratum_counts,
)
from altmas.methods.related.stratified import check_option
from altmas.methods.related.weighted_sample import estimates_of, volunteered_mask
from altmas.task import Task
from altmas.types import Array

PROPOSE = "druck: draws"


@dataclass(frozen=True)
class Druck(Method):
    """Strata of what the model expects, two labels in each and more where it expects most spread.

    After Druck and McCallum (2011). Metrics of one class stratify on that class's score, apart for points that the
    model calls so and those that it does not; any others on the highest score. The allocation depends on scores alone,
    so totals are unbiased. Without scores a label-free imitation of the model by its features stands in (adapted).

    strata        how many cells by cumulative root frequency (for one class: on either side together)
    allocation    "expected": W_h S_h with S_h from the scores (C22) | "proportional"
    proportional  share that "expected" leaves proportional, since an over-confident model leaves few to its top stratum
    """

    strata: int = 20
    allocation: str = "expected"
    proportional: float = 0.2

    name = "druck"
    traits = Traits(
        requires=("scores or features",),
        interval="fixed-n",
        citation="Druck and McCallum 2011, Toward interactive training and evaluation",
    )

    def __post_init__(self) -> None:
        check_option("druck", "allocation", self.allocation, ("expected", "proportional"))

    def propose(self, task: Task, history: History, n: int) -> Batch:
        strata, expected = self._strata(task)
        count = int(strata.max()) + 1
        population = ~volunteered_mask(history)
        sizes = np.bincount(strata[population], minlength=count)
        have = stratum_counts(strata, drawn_rows(history), count)
        spreads = np.ones(count)
        if self.allocation == "expected":
            spreads = expected_sd(strata, expected)
            mean = (sizes * spreads).sum() / max(sizes.sum(), 1)
            spreads = (1 - self.proportional) * spreads + self.proportional * mean
        target = allocation(int(have.sum()) + n, sizes, "neyman", spreads)
        open_points = np.flatnonzero(history.open)
        counts = next_counts(target, have, n, stratum_counts(strata, open_points, count))
        indices, chances = draw_in_strata(strata, counts, open_points, history.rng(task.seed, PROPOSE))
        return Batch(indices, chances, labels_before=len(history.labels))

    def estimate(self, task: Task, history: History) -> Estimates:
        strata, _ = self._strata(task)
        sample = stratified_sample(history, strata)
        solve = reaching_down(sample.solver(task, history), task, history)
        return estimates_of(self.name, task, history, solve, {"strata": int(strata.max()) + 1})

    def _strata(self, task: Task) -> tuple[NDArray[np.int64], Array]:
        """(strata, expectation), each (N,): (C21)."""
        classes = {metric.classes for metric in task.metrics if len(metric.classes) == 1}
        if len(classes) != 1 or any(len(metric.classes) != 1 for metric in task.metrics):
            expected = confidence_of(task.pool)
            return merged(root_frequency(expected, self.strata), 2), expected
        k = next(iter(classes))[0]
        expected, called = class_scores(task.pool)[:, k], task.pool.predictions == k
        strata = np.zeros(len(expected), np.int64)
        for side in (called, ~called):
            if side.any():
                cells = merged(root_frequency(expected[side], max(1, self.strata // 2)), 2)
                strata[side] = cells + strata.max() + 1
        return numbered(strata), expected


def merged(strata: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """(N,) the strata with those of fewer than `least` points joined to a neighbour."""
    return joined(np.bincount(strata), least)[strata]


def expected_sd(strata: NDArray[np.int64], expected: Array) -> Array:
    """(H,) S_h of (C22): sqrt(m (1 - m)) with m the mean expectation in the stratum."""
    mean = np.bincount(strata, expected) / np.bincount(strata)
    return np.asarray(np.sqrt(np.maximum(mean * (1 - mean), 0.0)))
