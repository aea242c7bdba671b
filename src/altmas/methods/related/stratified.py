"""Stratified sampling on the model's confidence (C.3)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from altmas.errors import MethodError
from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.assured.logistic import logistic_fit, sigmoid
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.hidden import reaching_down
from altmas.methods.related.proxy import confidence_of
from altmas.methods.related.strata import (
    CUTS,
    allocation,
    draw_in_strata,
    drawn_rows,
    labelled_draws,
    next_counts,
    stratified_sample,
    stratum_counts,
)
from altmas.methods.related.weighted_sample import estimates_of, volunteered_mask
from altmas.task import Task
from altmas.types import Array

PROPOSE = "stratified: draws"
ALLOCATIONS = ("proportional", "equal", "neyman")
LEAST = 10
"""Labels before "neyman" follows them."""
PENALTY = 0.25
"""Of the slope of the error rate along the standardised log odds of the confidence."""


@dataclass(frozen=True)
class Stratified(Method):
    """Strata of the model's highest score, labels shared out among them, after Kumar and Raj (2018).

    Without scores the strata are those of a label-free imitation of the model by its features (adapted).

    strata      how many cells, fewer where scores are tied
    cut         "equal-size" | "equal-width" | "root-frequency"
    allocation  "neyman" follows the spread that the labels show, by one curve of the error rate along the score, so
                its totals are slightly biased; "proportional" and "equal" are fixed before any label and unbiased
    pilot       share of the labels at each moment that "neyman" leaves proportional
    """

    strata: int = 20
    cut: str = "root-frequency"
    allocation: str = "neyman"
    pilot: float = 0.2

    name = "stratified"

    def __post_init__(self) -> None:
        check_option("stratified", "cut", self.cut, CUTS)
        check_option("stratified", "allocation", self.allocation, ALLOCATIONS)

    @property
    def traits(self) -> Traits:
        return Traits(
            requires=("scores or features",),
            interval="fixed-n",
            biased=self.allocation == "neyman",
            citation="Kumar and Raj 2018, Classifier risk estimation under limited labeling resources",
        )

    def propose(self, task: Task, history: History, n: int) -> Batch:
        strata = self._strata(task)
        count = int(strata.max()) + 1
        sizes = np.bincount(strata[~volunteered_mask(history)], minlength=count)
        have = stratum_counts(strata, drawn_rows(history), count)
        open_points = np.flatnonzero(history.open)
        target = self._target(task, history, strata, sizes, int(have.sum()) + n)
        counts = next_counts(target, have, n, stratum_counts(strata, open_points, count))
        indices, chances = draw_in_strata(strata, counts, open_points, history.rng(task.seed, PROPOSE))
        return Batch(indices, chances, labels_before=len(history.labels))

    def _target(
        self, task: Task, history: History, strata: NDArray[np.int64], sizes: NDArray[np.int64], total: int
    ) -> NDArray[np.int64]:
        if self.allocation != "neyman":
            return allocation(total, sizes, self.allocation)
        spreads = np.ones(len(sizes))
        if len(rows := labelled_draws(history)) >= LEAST:
            wrong = history.known[rows] != task.pool.predictions[rows]
            spreads = expected_spreads(confidence_of(task.pool), strata, rows, wrong)
        mean = float((sizes * spreads).sum() / max(sizes.sum(), 1))
        return allocation(total, sizes, "neyman", (1 - self.pilot) * spreads + self.pilot * mean)

    def estimate(self, task: Task, history: History) -> Estimates:
        strata = self._strata(task)
        sample = stratified_sample(history, strata)
        solve = reaching_down(sample.solver(task, history), task, history)
        return estimates_of(self.name, task, history, solve, {"strata": int(strata.max()) + 1})

    def _strata(self, task: Task) -> NDArray[np.int64]:
        return CUTS[self.cut](confidence_of(task.pool), self.strata)


def expected_spreads(confidence: Array, strata: Array, rows: Array, wrong: Array) -> Array:
    """(H,) sqrt(e (1 - e)) with the error rate e of each stratum by a logistic curve along the confidence.

    A stratum's own labels must not decide how many more it gets: one whose few labels happened to be right would get
    no more of them, and the accuracy be overstated (by 0.3 to 0.5 of its RMSE at 400 labels). Two parameters for all
    strata leave less of that (0.1 to 0.3), and tell apart strata in which no label was wrong.
    """
    p = np.clip(confidence, 1e-6, 1 - 1e-6)
    odds = np.log(p) - np.log1p(-p)
    columns = np.stack([np.ones(len(odds)), (odds - odds.mean()) / max(float(odds.std()), 1e-9)], axis=1)
    slope = logistic_fit(
        columns[rows], wrong.astype(np.float64), np.ones(len(rows)), np.array([0.01, PENALTY]), np.zeros(2)
    )
    rate = np.bincount(strata, sigmoid(columns @ slope)) / np.bincount(strata)
    return np.asarray(np.sqrt(rate * (1 - rate)))


def check_option(method: str, option: str, value: str, known: object) -> None:
    """MethodError if an option of a method is not one of the values known."""
    if value not in known:  # type: ignore[operator]
        raise MethodError(f"method {method!r}: {option} {value!r} does not exist; expected one of {', '.join(known)}")  # type: ignore[arg-type]
