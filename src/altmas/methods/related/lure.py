"""Active testing with the levelled unbiased risk estimator (peers 5.2)."""

from dataclasses import dataclass

import numpy as np

from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.draws import successive_draws
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.proxy import proxy_of
from altmas.methods.related.weighted_sample import Solution, estimates_of, gamma_reach, trials_of
from altmas.metrics import Metric, table_of
from altmas.metrics.formulas import positive
from altmas.task import Task
from altmas.types import Array
from altmas.weighted import Draws, draws_of, effective_sample_size

PROPOSE = "lure: draws"


@dataclass(frozen=True)
class Lure(Method):
    """Points drawn one after another in proportion to their expected loss, weighted so that no draw order is favoured.

    Kossen et al. (2021), Farquhar et al. (2021). The loss is 0 or 1 (the model is wrong), expected under its own
    scores or, where it gives none, under a surrogate learned from the labels. Cells off the diagonal are estimated
    plainly, (R/M) sum_m v_m; right answers are the known rest of each row. Unbiased for totals. Errors that the scores
    did not expect are met rarely and weigh much, so the interval is longer downwards (Fay and Feuer 1997).

    least  no open point has less than this share of a uniform draw's chance
    """

    least: float = 0.2

    name = "lure"
    traits = Traits(requires=("scores or features",), interval="fixed-n", citation="Kossen et al. 2021, Active testing")

    def propose(self, task: Task, history: History, n: int) -> Batch:
        belief = proxy_of(task, history)
        open_points = np.flatnonzero(history.open)
        loss = np.ones(len(task.pool)) if belief is None else 1 - belief.agree
        rates = np.maximum(loss, 1e-12)
        if len(open_points):
            rates = rates / rates[open_points].mean()
        rates = np.maximum(rates, self.least)
        indices, chances = successive_draws(rates, open_points, n, history.rng(task.seed, PROPOSE))
        return Batch(indices, chances, labels_before=len(history.labels))

    def estimate(self, task: Task, history: History) -> Estimates:
        draws = draws_of(history)

        def solve(metric: Metric, inside: Array) -> Solution:
            return plain_lure(task, history, draws, metric, inside)

        return estimates_of(self.name, task, history, solve)


def plain_lure(task: Task, history: History, draws: Draws, metric: Metric, inside: Array) -> Solution:
    """T[a, c] = (R/M) sum_m v_m 1{a, c} for c != a, T[a, a] = the rest of row a; variance in martingale form.

    A_m = (1/R) (L_m (R - m + 1) tilt_m + sum of L_k, k < m),   V = M/(M-1) R^2 sum_m c_m^2 (A_m - Rhat)^2
    """
    predictions, known, n_classes = task.pool.predictions, history.known, len(task.pool.classes)
    exact = draws.exact[inside[draws.exact]]
    table = table_of(predictions[exact], known[exact], n_classes)
    m = len(draws.rows)
    if m == 0:
        return Solution(table, 0.0, 0)
    in_slice, a, y = inside[draws.rows], predictions[draws.rows], known[draws.rows]
    wrong = in_slice & (a != y)
    rest = np.bincount(predictions[inside], minlength=n_classes) - table.sum(1)
    spread = table_of(a[wrong], y[wrong], n_classes, (draws.open / m * draws.weights)[wrong])
    table = table + spread + np.diag(rest - spread.sum(1))
    slope = metric.gradient(positive(table))
    loss = np.where(wrong, slope[a, y] - slope[a, a], 0.0)
    mean = float((draws.weights * loss).mean())
    terms = loss * draws.tilt * (draws.open - draws.place + 1) + np.cumsum(loss) - loss - draws.open * mean
    squares = (draws.steps * terms) ** 2
    variance = float(squares.sum()) * m / max(m - 1, 1)
    stands_for = draws.open / m * draws.weights
    trials = trials_of(slope[a, y][in_slice], stands_for[in_slice])
    down = reach_down(stands_for[in_slice], loss[in_slice], slope - np.diagonal(slope)[:, None], task.confidence)
    down *= np.sqrt(max(0.0, 1 - m / draws.open))
    return Solution(table, variance, int(in_slice.sum()), effective_sample_size(squares), *trials, down)


def reach_down(stands_for: Array, loss: Array, losses: Array, confidence: float) -> float:
    """How far the metric may lie below its value because heavy errors were not met.

    stands_for, loss  (m,) points that each draw stands for, and what it moves the metric by (0 where it is right)
    losses            (C, C) what an error in each cell would move it by

    One more error would weigh what a draw's weight is where errors have nothing to do with the scores,
    sum W^2 / sum W, and lower the metric as those met do (or, before any, as an error would on average).
    """
    met, possible = -loss[loss < 0], -losses[losses < 0]
    usual = met.mean() if len(met) else possible.mean() if len(possible) else 0.0
    lowers = stands_for * np.maximum(-loss, 0.0)
    weight = float(usual * (stands_for**2).sum() / max(stands_for.sum(), 1e-300))
    return gamma_reach(float(lowers.sum()), float((lowers**2).sum()), weight, confidence)
