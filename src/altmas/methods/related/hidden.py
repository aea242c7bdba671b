"""Members of a class that no draw has met: how far an interval has to reach down to them.

Designs that follow scores put heavy weights on the few draws far from the decision. Where a class has members there
and none was met, the weighted draws count none and show no variance either. The scores still expect some.
"""

import numpy as np
from numpy.typing import NDArray

from altmas.history import History
from altmas.intervals import normal_quantile
from altmas.methods.related.proxy import class_scores
from altmas.methods.related.strata import labelled_draws, root_frequency
from altmas.methods.related.weighted_sample import Solution, Solve
from altmas.metrics import Metric
from altmas.task import Task
from altmas.types import Array

STRATA = 30
"""Cells of a class's score in which draws have met a member of it, or none."""


def unmet_scores(history: History, strata: NDArray[np.int64], score: Array, called: Array, k: int) -> Array:
    """(N,) the score of each open point that is not called k in a stratum in which no draw has met a k, else 0.

    A class of 50 among 50,000 points has members far from the decision that a few hundred draws do not meet. They
    count by exp(-sum of the scores drawn), the chance to have met none if the scores are right.
    """
    rows, count = labelled_draws(history), int(strata.max()) + 1
    met = np.bincount(strata[rows], history.known[rows] == k, count) > 0
    credit = np.where(met, 0.0, np.exp(-np.bincount(strata[rows], score[rows], count)))
    return np.where(~called & (history.known < 0), score * credit[strata], 0.0)


def fall_of(metric: Metric, table: Array, k: int, hidden: Array) -> float:
    """By how much the metric falls if hidden[a] more of the points called a are truly k."""
    value, moved = float(metric.of_table(table)), table.copy()
    for a in np.flatnonzero(hidden > 0):
        other_cells = np.delete(moved[a], k).clip(0)
        taken = min(float(hidden[a]), float(other_cells.sum()))
        if taken > 0:
            moved[a, np.arange(len(moved)) != k] -= other_cells * taken / other_cells.sum()
            moved[a, k] += taken
    return max(0.0, value - float(metric.of_table(moved)))


def reaching_down(solve: Solve, task: Task, history: History) -> Solve:
    """The design's solutions, with metrics of one class reaching down to what the scores expect where none was met."""
    z = normal_quantile(task.confidence)

    def cautious(metric: Metric, inside: Array) -> Solution:
        solution = solve(metric, inside)
        if len(metric.classes) != 1 or not metric.of_one_table or solution.draws == 0:
            return solution
        k = metric.classes[0]
        expected = expected_hidden(task, history, k, inside)
        total = expected.sum()
        if not total > 0 or np.isnan(metric.of_table(solution.table)):
            return solution
        more = 1 + z / np.sqrt(total)  # their number is a Poisson variable
        return solution._replace(down=max(solution.down, fall_of(metric, solution.table, k, expected * more)))

    return cautious


def expected_hidden(task: Task, history: History, k: int, inside: Array) -> Array:
    """(C,) how many unmet members of class k the scores expect among the points of each predicted class."""
    score, predicted = class_scores(task.pool)[:, k], task.pool.predictions
    strata = task.pool.memo.get("strata of a class", (k,), lambda: root_frequency(score, STRATA), keep=8)
    unmet = unmet_scores(history, strata, score, predicted == k, k)
    return np.bincount(predicted[inside], unmet[inside], len(task.pool.classes))
