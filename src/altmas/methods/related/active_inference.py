"""Active statistical inference (peers 5.1), adapted from independent coin flips to batches of a fixed size."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.belief import Belief
from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.proxy import phi_moments, proxy_of, remembered
from altmas.methods.related.weighted_sample import Solution, estimates_of, trials_of, volunteered_mask
from altmas.metrics import Metric, table_of
from altmas.metrics.formulas import positive
from altmas.task import Task
from altmas.types import Array
from altmas.weighted import effective_sample_size

PROPOSE = "active-inference: draws"


@dataclass(frozen=True)
class ActiveInference(Method):
    """Known inclusion probabilities that follow the expected error of the guess, and a difference estimator.

    Zrnic and Candes (2024). The paper includes each point by its own coin; here a batch of b points is a systematic
    sample with exactly these inclusion probabilities (they add up to b), in the order of the guess. Each batch then is
    an unbiased estimate of the whole table,
        T_t = labels drawn before + sum over the open points of lambda f + sum over the batch of (y - lambda f) / pi,
    and batches are averaged with weights that depend on their sizes alone. lambda is tuned for each metric (O(1/n)
    bias) unless given. The guess is the model's scores, or a surrogate fitted on the labels of earlier batches.

    uniform  share of uniform inclusion mixed in (tau)
    power    lambda; None to tune it
    """

    uniform: float = 0.5
    power: float | None = None

    name = "active-inference"
    traits = Traits(
        requires=("scores or features",),
        interval="fixed-n",
        citation="Zrnic and Candes 2024, Active statistical inference",
    )

    def propose(self, task: Task, history: History, n: int) -> Batch:
        open_points = np.flatnonzero(history.open)
        n, known = min(n, len(open_points)), len(history.labels)
        belief = proxy_of(task, history)
        if n == 0:
            return Batch(np.zeros(0, np.int64), np.zeros(0), {"inclusion": np.zeros(0)}, labels_before=known)
        inclusion = np.full(len(open_points), n / len(open_points))
        order = open_points
        if belief is not None:
            active = water_filled(expected_error(task, belief)[open_points], n)
            inclusion = self.uniform * inclusion + (1 - self.uniform) * active
            order = belief.agree[open_points]
        rng = history.rng(task.seed, PROPOSE)
        chosen = rng.permutation(systematic(inclusion, order, n, rng))
        record = {
            "inclusion": inclusion[chosen],
            "skipped": np.array(sorted(history.skipped), np.int64),
            "labels": np.array([known]),
        }
        return Batch(open_points[chosen], np.minimum(inclusion[chosen] / n, 1.0), record, labels_before=known)

    def estimate(self, task: Task, history: History) -> Estimates:
        power: dict[str, float] = {}
        batches = Batches.of(task, history)
        views: dict[Any, View] = {}

        def solve(metric: Metric, inside: Array) -> Solution:
            if metric.where not in views:
                views[metric.where] = View.of(task, history, batches, inside)
            solved, power[metric.name] = solution(task, history, views[metric.where], metric, self.power)
            return solved

        return estimates_of(self.name, task, history, solve, {"lambda": power})


# ---------------------------------------------------------------- where to draw


def expected_error(task: Task, belief: Belief) -> Array:
    """(N,) u: root of the expected squared error of the guess, added over the metrics, each on its own scale."""

    def total() -> Array:
        squares = np.zeros(len(task.pool))
        for metric in task.metrics:
            mean, square, spread = phi_moments(metric, belief, metric.members(task.pool))
            if spread > 0:
                squares += np.maximum(square - mean**2, 0.0) / spread
        return np.asarray(np.sqrt(squares))

    return remembered(task.pool, belief, ("error", task.metrics), total)


def water_filled(sizes: Array, n: int) -> Array:
    """(m,) min(1, kappa u_i) that add up to n; uniform where u says nothing."""
    if sizes.max() <= 0:
        return np.full(len(sizes), n / len(sizes))
    sizes = np.maximum(sizes, 1e-9 * sizes.max())
    full = np.zeros(len(sizes), np.bool_)
    while True:
        left = n - full.sum()
        chances = np.where(full, 1.0, left * sizes / max(sizes[~full].sum(), 1e-300))
        over = ~full & (chances > 1)
        if not over.any():
            return np.asarray(chances)
        full |= over


def systematic(inclusion: Array, order: Array, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(n,) positions of a systematic sample: each is included with exactly its probability (they add up to n).

    Neighbours in `order` are rarely drawn together, which stratifies the sample on it; ties are in random order.
    """
    line = np.lexsort((rng.random(len(order)), order))
    steps = np.cumsum(inclusion[line])
    steps *= n / steps[-1]
    marks = rng.random() + np.arange(n)
    return np.asarray(line[np.minimum(np.searchsorted(steps, marks, side="right"), len(line) - 1)], np.int64)


# ---------------------------------------------------------------- what the batches say


@dataclass(frozen=True)
class Batches:
    """Every draw of every batch, in drawing order, and how much each batch counts.

    rows, batch, inclusion, told  (M,) points, number of the batch, pi, whether the label is known
    drawn, known, shares          (T,) draws and labels of each batch; its share of the estimate, adding up to 1
    guess                         (T,) which of the beliefs was in force;  beliefs  those, None where there was none
    closed                        points that were skipped without a draw before each batch
    """

    rows: Array
    batch: Array
    inclusion: Array
    told: Array
    drawn: Array
    known: Array
    shares: Array
    guess: Array
    beliefs: tuple[Belief | None, ...]
    closed: tuple[Array, ...]

    @classmethod
    def of(cls, task: Task, history: History) -> "Batches":
        batches = [batch for batch in history.batches if len(batch.indices)]
        drawn = np.array([len(batch.indices) for batch in batches], np.int64)
        rows = np.concatenate([np.zeros(0, np.int64), *(batch.indices for batch in batches)])
        batch, told = np.repeat(np.arange(len(batches)), drawn), history.known[rows] >= 0
        known = np.bincount(batch[told], minlength=len(batches))
        size, ends = history.n_points - len(history.volunteered), np.cumsum(drawn)
        shares = np.array([batch_share(size, end - n, end) for end, n in zip(ends, drawn, strict=True)])
        shares = np.where(known > 0, shares, 0.0)
        in_force = [proxy_of(task, history, int(batch.record["labels"][0])) for batch in batches]
        beliefs = list({id(belief): belief for belief in in_force}.values())
        guess = [next(k for k, belief in enumerate(beliefs) if belief is current) for current in in_force]
        return cls(
            rows=rows,
            batch=batch,
            inclusion=np.concatenate([np.zeros(0), *(batch.record["inclusion"] for batch in batches)]),
            told=told,
            drawn=drawn,
            known=known,
            shares=shares / shares.sum() if shares.sum() > 0 else shares,
            guess=np.array(guess, np.int64),
            beliefs=tuple(beliefs),
            closed=tuple(np.setdiff1d(batch.record["skipped"], rows) for batch in batches),
        )

    @property
    def raised(self) -> Array:
        """(T,) how many draws of its batch each label stands for: more than 1 where some have no label."""
        return np.asarray(self.drawn / np.maximum(self.known, 1))

    @property
    def multiplier(self) -> Array:
        """(M,) drawn / pi of each label: what A_m multiplies it with."""
        return np.where(self.told, self.drawn[self.batch] / self.inclusion, 0.0)

    def later(self, chosen: Array) -> Array:
        """(T,) shares of the later batches among `chosen`, together."""
        shares = np.where(chosen, self.shares, 0.0)
        return np.asarray(shares.sum() - np.cumsum(shares))


@dataclass(frozen=True)
class View:
    """The batches seen from one slice: what all its metrics share.

    exact, plain, shift  (C, C) volunteered labels; sum of the shares times the labels, and times the guesses, of A_m
    size                 points inside that nobody volunteered;  draws  labels among them
    believed             for each belief its table of these points and its rows at the draws
    """

    batches: Batches
    inside: Array
    exact: Array
    plain: Array
    shift: Array
    size: int
    draws: int
    believed: tuple[tuple[Array, Array] | None, ...]

    @classmethod
    def of(cls, task: Task, history: History, batches: Batches, inside: Array) -> "View":
        volunteered = volunteered_mask(history)
        exact_rows, population = np.flatnonzero(inside & volunteered), inside & ~volunteered
        believed = tuple(
            None if belief is None else (belief.table(population), belief.rows(batches.rows))
            for belief in batches.beliefs
        )
        return cls(
            batches=batches,
            inside=inside,
            exact=table_of(task.pool.predictions[exact_rows], history.known[exact_rows], len(task.pool.classes)),
            plain=_plain_table(task, history, batches, inside),
            shift=_shift_table(task, batches, inside, believed),
            size=int(population.sum()),
            draws=int((batches.told & inside[batches.rows]).sum()),
            believed=believed,
        )


def solution(task: Task, history: History, view: View, metric: Metric, power: float | None) -> tuple[Solution, float]:
    """The solution and its lambda, which makes sum_m share^2 (1 - pi) <D, A_m - T>^2 least."""
    exact, plain, shift, batches = view.exact, view.plain, view.shift, view.batches
    if view.draws == 0:
        return Solution(exact, 0.0, 0), 0.0
    used = batches.told
    weight = (batches.shares / np.maximum(batches.known, 1))[batches.batch[used]] ** 2 * (1 - batches.inclusion[used])
    slope = _centred(metric, exact, plain)
    if power is None:
        z, f = _moves(task, history, view, slope)
        z, f = z - (slope * plain).sum(), f - (slope * shift).sum()
        bottom = float((weight * f**2).sum())
        power = float(np.clip(-(weight * z * f).sum() / bottom, 0.0, 1.0)) if bottom > 0 else 0.0
    rest = plain + power * shift
    scale = view.size / rest.sum()  # their number is known: no need to estimate it
    slope = scale * _centred(metric, exact, scale * rest)
    z, f = _moves(task, history, view, slope)
    moves = z + power * f - (slope * rest).sum()
    m = len(moves)
    squares = weight * moves**2
    variance = float(squares.sum()) * m / max(m - 1, 1)
    rows = batches.rows[used]
    in_slice = view.inside[rows]
    weights = (batches.shares / np.maximum(batches.known, 1))[batches.batch[used]] * batches.multiplier[used]
    trials = trials_of(slope[task.pool.predictions[rows], history.known[rows]][in_slice], scale * weights[in_slice])
    return Solution(exact + scale * rest, variance, view.draws, effective_sample_size(squares), *trials), power


def _centred(metric: Metric, exact: Array, rest: Array) -> Array:
    """(C, C) the slope of the metric for points that are not volunteered, when their number is held fixed."""
    slope = metric.gradient(positive(exact + rest))
    return np.asarray(slope - (slope * rest).sum() / rest.sum())


def _plain_table(task: Task, history: History, batches: Batches, inside: Array) -> Array:
    """(C, C) sum of the shares times the labels of each A_m: its own over pi, those of earlier batches as they are."""
    t, used = batches.batch, batches.told & inside[batches.rows]
    share = batches.shares / np.maximum(batches.known, 1)
    weights = share[t] * batches.multiplier + (batches.later(batches.shares > 0) * batches.raised)[t]
    rows = batches.rows[used]
    return table_of(task.pool.predictions[rows], history.known[rows], len(task.pool.classes), weights[used])


def _shift_table(
    task: Task, batches: Batches, inside: Array, believed: tuple[tuple[Array, Array] | None, ...]
) -> Array:
    """(C, C) sum of the shares times the guesses of each A_m: all points open then, minus its own over pi."""
    predictions, n_classes = task.pool.predictions, len(task.pool.classes)
    shift = np.zeros((n_classes, n_classes))
    t, in_slice = batches.batch, inside[batches.rows].astype(np.float64)
    share = batches.shares / np.maximum(batches.known, 1)
    for k, (belief, known) in enumerate(zip(batches.beliefs, believed, strict=True)):
        if belief is None or known is None:
            continue
        of_belief = batches.guess == k
        shift += batches.shares[of_belief].sum() * known[0]
        weights = in_slice * (batches.later(of_belief)[t] + np.where(of_belief[t], share[t] * batches.multiplier, 0.0))
        np.subtract.at(shift, predictions[batches.rows], weights[:, None] * known[1])
        for batch in np.flatnonzero(of_belief):
            away = batches.closed[batch][inside[batches.closed[batch]]]
            np.subtract.at(shift, predictions[away], batches.shares[batch] * belief.rows(away))
    return shift


def _moves(task: Task, history: History, view: View, slope: Array) -> tuple[Array, Array]:
    """(<D, labels of A_m>, <D, guesses of A_m>) of each labelled draw."""
    batches, inside = view.batches, view.inside
    predictions, t, count = task.pool.predictions, batches.batch, len(batches.drawn)
    in_slice = inside[batches.rows]
    told = batches.told & in_slice
    d = np.where(told, slope[predictions[batches.rows], history.known[batches.rows]], 0.0)
    in_batch = np.bincount(t, d, count) * batches.raised
    z = (np.cumsum(in_batch) - in_batch)[t] + batches.multiplier * d
    f = np.zeros(len(t))
    for k, (belief, known) in enumerate(zip(batches.beliefs, view.believed, strict=True)):
        if belief is None or known is None:
            continue
        g = np.where(in_slice, (known[1] * slope[predictions[batches.rows]]).sum(1), 0.0)
        drawn = np.bincount(t, g, count)
        open_sum = float((slope * known[0]).sum()) - (np.cumsum(drawn) - drawn)
        for batch in np.flatnonzero(batches.guess == k):
            away = batches.closed[batch][inside[batches.closed[batch]]]
            open_sum[batch] -= float((belief.rows(away) * slope[predictions[away]]).sum())
        f = np.where(batches.guess[t] == k, open_sum[t] - batches.multiplier * g, f)
    return z[batches.told], f[batches.told]


def batch_share(size: int, start: int, stop: int) -> float:
    """How much draws start+1..stop of a pool of this size count: sum of 1 / ((R - m)(R - m + 1)), LURE's c_m."""
    stop = min(stop, size - 1)  # the last draw of all leaves nothing open; its batch counts by the draws before it
    return 1 / (size - stop) - 1 / (size - start) if stop > start else 1e-300
