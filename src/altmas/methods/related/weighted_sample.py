"""Any metric from labels that stand for more points than themselves (C1-C4), whatever the design that drew them.

A design's part is one function, solve(metric, inside) -> Solution: the estimated table of the points inside and the
variance of the metric to first order. The rest is common: undefined and exact values, small counts, intervals.
    D[a, c] = dQ/dT[a, c], so D = phi / N with the phi of (C1)
    That    = exact + sum_i W_i E[a_i, y_i],   W_i = w_i R / sum w      R = points inside that nobody volunteered  (C2)
    Var     = variance of sum_i W_i z_i,       z_i = D[a_i, y_i] - its weighted mean                              (C3)
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from altmas.estimates import Estimate, Estimates, without_interval
from altmas.history import History
from altmas.intervals import bounded_interval, normal_quantile, student_quantile
from altmas.metrics import Metric, table_of
from altmas.metrics.averages import too_few_labels
from altmas.metrics.formulas import positive
from altmas.pool import Pool
from altmas.types import Array
from altmas.weighted import effective_sample_size

if TYPE_CHECKING:
    from altmas.task import Task


class Solution(NamedTuple):
    """table (C, C) of the points inside, cells may be signed; variance of the metric; draws it rests on.

    worth   how many equal terms the variance is worth: (sum of terms)^2 / (sum of their squares)
    trials  draws whose label moves the metric at all (for recall those of its class);  weight  root mean square of the
            number of points that each of them stands for
    down    how far the interval reaches below the value at least, where a design knows that its errors weigh unequally
    """

    table: Array
    variance: float
    draws: int
    worth: float = 0.0
    trials: int = 0
    weight: float = 0.0
    down: float = 0.0


Solve = Callable[[Metric, Array], Solution]


# ---------------------------------------------------------------- formulas


def gamma_reach(total: float, variance: float, weight: float, confidence: float) -> float:
    """How far the upper limit of a weighted number of rare events lies above it; Fay and Feuer (1997).

    The events add up to `total` with sum of squares `variance`; one more that was not met would add `weight`:
        (v + w^2) / (2 (s + w)) * chi2 quantile with 2 (s + w)^2 / (v + w^2) degrees of freedom, minus s
    Few heavy events are skewed: a normal interval that has met none of the heavy ones stops too early.
    """
    from scipy.special import gammaincinv

    spread, more = variance + weight**2, total + weight
    if spread <= 0:
        return 0.0
    return float(spread / more * gammaincinv(more**2 / spread, (1 + confidence) / 2)) - total


# ---------------------------------------------------------------- weighted labels


@dataclass(frozen=True)
class WeightedSample:
    """Labelled draws and the points that each stands for.

    rows      (m,) draws with a known label; a point drawn again appears again
    weights   (m,) up to a common factor
    variance  (m,) values z with weighted sum 0 -> variance of sum_i weights_i z_i
    counted   weights are numbers of points by themselves and not scaled to those there are; z need not be centred
    """

    rows: Array
    weights: Array
    variance: Callable[[Array], float]
    counted: bool = False

    def solver(self, task: "Task", history: History) -> Solve:
        """solve(metric, inside) of this sample."""
        exact = volunteered_mask(history)

        def solve(metric: Metric, inside: Array) -> Solution:
            return self._solve(task.pool, history.known, exact, metric, inside)

        return solve

    def _solve(self, pool: Pool, known: Array, exact: Array, metric: Metric, inside: Array) -> Solution:
        in_slice, n_classes = inside[self.rows], len(pool.classes)
        a, y = pool.predictions[self.rows], known[self.rows]
        volunteered = np.flatnonzero(inside & exact)
        table = table_of(pool.predictions[volunteered], known[volunteered], n_classes)
        total = float(self.weights[in_slice].sum())
        if total <= 0:
            return Solution(table, 0.0, 0)
        scale = 1.0 if self.counted else float((inside & ~exact).sum()) / total
        table = table + table_of(a[in_slice], y[in_slice], n_classes, scale * self.weights[in_slice])
        moves = metric.gradient(table)[a, y]
        centre = 0.0 if self.counted else float((self.weights * moves)[in_slice].sum()) / total
        residual = np.where(in_slice, moves - centre, 0.0)
        worth = effective_sample_size((self.weights * residual) ** 2)
        variance = scale**2 * self.variance(residual)
        return Solution(
            table, variance, int(in_slice.sum()), worth, *trials_of(moves[in_slice], scale * self.weights[in_slice])
        )


def trials_of(moves: Array, weights: Array) -> tuple[int, float]:
    """(trials, weight) of a Solution from the influence of each draw and the points that it stands for."""
    moving = np.abs(moves) > 1e-9 * np.abs(moves).max(initial=0.0)
    return int(moving.sum()), float(np.sqrt((weights[moving] ** 2).mean())) if moving.any() else 0.0


def volunteered_mask(history: History) -> NDArray[np.bool_]:
    """(N,) labelled points that no method drew."""
    mask = np.zeros(history.n_points, np.bool_)
    mask[history.volunteered] = True
    return mask


# ---------------------------------------------------------------- from solutions to estimates


def estimates_of(
    name: str,
    task: "Task",
    history: History,
    solve: Solve,
    info: Mapping[str, Any] | None = None,
) -> Estimates:
    """Every metric of the task by the design's own solution, with intervals that survive samples without an error."""
    answers = tuple(_estimate(task, history, metric, solve) for metric in task.metrics)
    return Estimates(answers, name, dict(info or {}))


def _estimate(task: "Task", history: History, metric: Metric, solve: Solve) -> Estimate:
    pool, n_classes = task.pool, len(task.pool.classes)
    members = metric.members(pool)
    inside = np.ones(len(pool), np.bool_) if members is None else members
    known = np.flatnonzero(inside & (history.known >= 0))
    labels = len(known)
    moving = inside & rows_that_move(metric, n_classes)[pool.predictions]
    if not (moving & (history.known < 0)).any() and (labels == inside.sum() or moving.any()):
        value = float(metric.of_table(table_of(pool.predictions[known], history.known[known], n_classes)))
        which = "every point" if labels == inside.sum() else f"every point that moves {metric.name}"
        note = f"{which} is labelled: exact" if not math.isnan(value) else _why_undefined(metric, labels)
        kind = "none" if math.isnan(value) else "fixed-n"
        return Estimate(metric.name, value, value, value, task.confidence, labels, labels, kind, note)
    solution = solve(metric, inside)
    value = float(metric.of_table(solution.table)) if solution.table.any() else math.nan
    if math.isnan(value):
        note = _why_undefined(metric, labels)
        return without_interval(metric, task.confidence, labels, note)
    note = _notes(value, metric, history, inside, solution.draws)
    value = min(metric.bounds[1], max(metric.bounds[0], value))
    if solution.draws == 0:
        return Estimate(metric.name, value, *metric.bounds, task.confidence, labels, 0.0, "fixed-n", note)
    if why := too_few_labels(metric, labels, len(np.unique(pool.predictions[inside]))):
        note = "; ".join(filter(None, (note, why)))
        return without_interval(metric, task.confidence, labels, note, value=value)
    drawn = labels - int((inside & volunteered_mask(history)).sum())
    size = int(inside.sum()) - (labels - drawn)
    low, high = interval_of(metric, value, pool.predictions[inside], solution, drawn, size, task.confidence)
    worth = _worth(metric, solution, size)
    return Estimate(metric.name, value, low, high, task.confidence, labels, worth, "fixed-n", note)


def rows_that_move(metric: Metric, n_classes: int) -> NDArray[np.bool_]:
    """(C,) predicted classes of which a label can move the metric: for precision its own class alone."""
    if not metric.of_one_table:
        return np.ones(n_classes, np.bool_)
    slope = metric.gradient(np.ones((n_classes, n_classes)) + np.eye(n_classes))
    return np.asarray(np.ptp(slope, axis=1) > 1e-9 * np.abs(slope).max(initial=0.0))


def interval_of(
    metric: Metric, value: float, predicted: Array, solution: Solution, drawn: int, size: int, confidence: float
) -> tuple[float, float]:
    """(low, high) around the value of a solution with `drawn` labels of `size` points."""
    z = normal_quantile(confidence)
    variance = smoothed_variance(metric, predicted, solution, drawn, size, z)
    quantile = student_quantile(confidence, min(solution.worth + z**2, max(solution.draws - 1, 1)))
    return bounded_interval(value, variance, metric.bounds, quantile, unseen_low=solution.down)


def _why_undefined(metric: Metric, labels: int) -> str:
    return "undefined: no label yet" if labels == 0 else f"undefined: no label so far tells about {metric.name}"


def _notes(value: float, metric: Metric, history: History, inside: Array, draws: int) -> str:
    skipped = int(inside[list(history.skipped)].sum())
    notes = []
    if draws == 0:
        notes.append("no drawn label yet: rests on labels told without being asked for")
    if skipped:
        notes.append(f"{skipped} skipped point{'s' * (skipped != 1)} left out and taken to be like the others")
    if not metric.bounds[0] <= value <= metric.bounds[1]:
        notes.append(f"the weighted labels give {value:.4f}, cut to the range of the metric")
    return "; ".join(notes)


def smoothed_variance(metric: Metric, predicted: Array, solution: Solution, drawn: int, size: int, z: float) -> float:
    """The variance with z^2 pseudo-trials of the usual weight, half that raise the metric and half that lower it.

    Agresti and Coull do so for one share: labels without a single error must not give an interval of width 0. With
    n_t trials of weight w, n of R points labelled, and e0 the influence of a cell,
        (V + z^2 w^2 (1 - n/R) mean e0^2) (n_t / (n_t + z^2))^2
    For the accuracy of a uniform sample that is the variance of `random_sample`.
    """
    slope = metric.gradient(positive(solution.table))[np.bincount(predicted, minlength=len(solution.table)) > 0]
    limit = 1e-9 * np.abs(slope).max(initial=0.0)
    sides = [slope[slope > limit], slope[slope < -limit]]
    surprise = float(np.mean([(side**2).mean() if len(side) else 0.0 for side in sides]))
    left = max(0.0, 1 - drawn / size) if size else 0.0
    if solution.trials == 0:
        return solution.variance + z**2 * (size / max(drawn, 1)) ** 2 * left * surprise
    pseudo = z**2 * solution.weight**2 * left * surprise
    return max(0.0, solution.variance + pseudo) * (solution.trials / (solution.trials + z**2)) ** 2


def _worth(metric: Metric, solution: Solution, size: int) -> float:
    """n of a uniform sample with this variance, from V = R (1/n - 1/R) sum (D - mean)^2; nan where unknown."""
    table = positive(solution.table)
    slope, total = metric.gradient(table), table.sum()
    spread = float((table * slope**2).sum() - (table * slope).sum() ** 2 / total) if total > 0 else 0.0
    if spread <= 0 or solution.variance <= 0 or not math.isfinite(solution.variance):
        return math.nan
    return 1 / (solution.variance / (size * spread) + 1 / size)
