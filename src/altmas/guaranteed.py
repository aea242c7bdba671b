"""Intervals and decisions of a session with a finite-sample proof: from its log to the game of `altmas.guarantee`.

A method takes part if its draws come one after another with known chances (`DrawsInSequence`). The belief of a stage is
the one from labels told before it began, so every bet is made before the draw.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from operator import or_

import numpy as np

from altmas.estimates import Estimate, Estimates
from altmas.guarantee import Evidence, Stage, decide, interval
from altmas.guarantee_pair import Game
from altmas.history import History
from altmas.methods.protocol import DrawsInSequence, Method, SequenceOfDraws
from altmas.metrics import Metric
from altmas.pool import Pool
from altmas.ratios import OPEN, SKIPPED, TableRatio, table_ratio
from altmas.task import Task
from altmas.types import Array

FIRST_BELIEF = 0.8
"""P(the model is right) before any label; it is fitted to each candidate value, so any number would do."""


def offers_guarantee(method: Method, metric: Metric, pool: Pool) -> bool:
    """Whether a proof covers this metric under this method: its draws have known chances, it is a ratio of sums.

    A difference of slices or precisions divides by numbers of points, which are not those of the table if the pool is
    a random sample of it.
    """
    tables = _tables(metric, len(pool.classes))
    if tables is None or not isinstance(method, DrawsInSequence):
        return False
    if len(tables) == 1 or pool.sampled_from is None:
        return True
    return all((den == 1).all() for _, den in tables) and all(part.where is None for _, part in metric.parts)


def guaranteed_decision(
    method: Method, task: Task, history: History, metric: Metric, threshold: float
) -> Evidence | None:
    """Whether the metric is shown to be above or below the threshold, at every look; None where no proof is offered."""
    game = _game(method, task, history, metric)
    if game is None:
        return None
    return decide(game.ratio, game.stages, threshold, error=1 - task.confidence, budget=task.budget)


def guaranteed_interval(method: Method, task: Task, history: History, metric: Metric) -> tuple[float, float] | None:
    """(low, high) that hold at every look at the task's confidence; None where no proof is offered."""
    game = _game(method, task, history, metric)
    return None if game is None else interval(game.ratio, game.stages, confidence=task.confidence, budget=task.budget)


def games_of(method: Method, task: Task, history: History, metrics: Sequence[Metric]) -> list[Game | None]:
    """The game about each metric, from one reading of the draws; None where no proof is offered."""
    if not isinstance(method, DrawsInSequence) or task.units is not None:
        return [None] * len(metrics)
    sequences = method.sequences(task, history)
    return [_game(method, task, history, metric, sequences) for metric in metrics]


def with_guarantee(method: Method, task: Task, history: History, estimates: Estimates) -> Estimates:
    """The estimates with intervals that hold at every look, where a proof covers the metric; the others as they are."""
    metrics = {metric.name: metric for metric in task.metrics}
    answers = tuple(_guaranteed(method, task, history, metrics[estimate.metric], estimate) for estimate in estimates)
    return replace(estimates, values=answers)


def _guaranteed(method: Method, task: Task, history: History, metric: Metric, estimate: Estimate) -> Estimate:
    game = None if estimate.value != estimate.value else _game(method, task, history, metric)
    if game is None:
        return estimate
    low, high = interval(game.ratio, game.stages, confidence=task.confidence, budget=task.budget)
    low, high = min(low, estimate.value), max(high, estimate.value)
    return replace(estimate, low=low, high=high, interval="guaranteed")


def _game(
    method: Method, task: Task, history: History, metric: Metric, sequences: list[SequenceOfDraws] | None = None
) -> Game | None:
    """The metric as a ratio and the stages of draws; None where no proof is offered or nothing was answered."""
    pool = task.pool
    if task.ahead or not offers_guarantee(method, metric, pool) or too_many_weights(pool):
        return None  # a proof is about points that are there
    if task.units is not None:
        return None  # and about draws of single points
    tables = _tables(metric, len(pool.classes))
    if tables is None or not isinstance(method, DrawsInSequence):
        return None
    if len(tables) > 1 and history.skipped:  # points that a skip takes out of a slice change its known size
        return None
    sequences = method.sequences(task, history) if sequences is None else sequences
    if not any(len(sequence.rows) for sequence in sequences):
        return None
    relevant = _about(sequences, _points(metric, pool), history)
    ratio = _ratio_of(metric, tables, pool)
    ratio = replace(ratio, ratio=replace(ratio.ratio, fraction=task.fraction))
    stages = [_stage(ratio, sequence, history, pool) for sequence in relevant.values()]
    return Game(ratio.ratio, stages, tuple(relevant))


MOST_WEIGHTS = 20_000
"""Different weights of rows with which bets are placed: points of one weight are summed up together."""


def too_many_weights(pool: Pool) -> str:
    """Why no proof is offered for a pool whose rows have weights; empty if one is."""
    if pool.weights is None or len(pool) <= MOST_WEIGHTS:
        return ""
    count = len(np.unique(pool.weights))
    if count <= MOST_WEIGHTS:
        return ""
    return (
        f"the rows of this pool have {count:,} different weights, and a proof is offered for at most "
        f"{MOST_WEIGHTS:,}; round them, or leave the guarantee out"
    )


def _weight(members: Array | None, pool: Pool) -> Array | None:
    """(N,) how often each point counts; None for once each."""
    if pool.weights is None:
        return members
    return pool.weights if members is None else pool.weights * members


def _points(metric: Metric, pool: Pool) -> Array:
    """(N,) points that the metric is about."""
    points = np.zeros(len(pool), np.bool_)
    for _, part in metric.parts:
        members = part.members(pool)
        points |= True if members is None else members
    return points


def _about(sequences: list[SequenceOfDraws], members: Array, history: History) -> dict[int, SequenceOfDraws]:
    """The sequences that are about all these points, by number: others tell nothing of some of them.

    Draws after one that has no answer do not count: whoever leaves the points open on which a player would lose would
    let that player win. Without any sequence the labels are known and nothing else: one sequence without a draw.
    """
    relevant = {
        number: sequence
        for number, sequence in enumerate(sequences)
        if sequence.within is None or not (members & ~sequence.within).any()
    }
    if relevant:
        ended = list(accumulate((sequence.cut for sequence in relevant.values()), or_, initial=False))
        nothing = np.zeros(0, np.int64)
        return {
            number: replace(sequence, rows=nothing) if before else sequence
            for (number, sequence), before in zip(relevant.items(), ended[:-1], strict=True)
        }
    free = history.known < 0
    free[list(history.skipped)] = False
    return {len(sequences): SequenceOfDraws(free, np.ones(history.n_points), None, np.zeros(0, np.int64))}


Tables = tuple[Array, Array]


def _tables(metric: Metric, n_classes: int) -> list[Tables] | None:
    """(num, den) of the metric, or of each part of a difference; None where no proof is offered.

    A difference is covered where the size below the line of either side is known beforehand.
    """
    if metric.contrasts:
        return None
    ratios = [part.ratio(n_classes) for _, part in metric.parts]
    defined = [tables for tables in ratios if tables is not None]
    if len(defined) < len(ratios):
        return None
    fixed = all(bool((den == den[:, :1]).all()) for _, den in defined)
    return defined if len(defined) == 1 or fixed else None


def _ratio_of(metric: Metric, tables: list[Tables], pool: Pool) -> TableRatio:
    if len(tables) > 1:
        return _of_difference(metric, tables, pool)
    return table_ratio(*tables[0], metric.rows(metric, pool).codes, _weight(metric.members(pool), pool))


def _of_difference(metric: Metric, tables: list[Tables], pool: Pool) -> TableRatio:
    """A difference of means over known numbers of points as one mean over all points."""
    columns, scales = [], []
    for (_, part), (_, den) in zip(metric.parts, tables, strict=True):
        members, rows = part.members(pool), part.rows(part, pool).codes
        columns.append(rows if members is None else np.where(members, rows, -1))
        sizes = den[rows, 0] if pool.weights is None else den[rows, 0] * pool.weights
        size = float(sizes.sum() if members is None else sizes[members].sum())
        total = len(pool) if pool.weights is None else float(pool.weights.sum())
        scales.append(total / size if size > 0 else float(total))
    kinds, codes = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    num = np.zeros((len(kinds), len(pool.classes)))
    for column, ((factor, _), (above, _)) in enumerate(zip(metric.parts, tables, strict=True)):
        inside = kinds[:, column] >= 0
        num[inside] += factor * scales[column] * above[kinds[inside, column]]
    return table_ratio(num, np.ones_like(num), codes.ravel(), pool.weights, metric.bounds)


def _stage(ratio: TableRatio, sequence: SequenceOfDraws, history: History, pool: Pool) -> Stage:
    labels = np.where(history.known >= 0, history.known, OPEN)
    labels[list(history.skipped)] = SKIPPED
    known = np.where(sequence.open, OPEN, labels)
    if sequence.within is not None:  # the metric is about none of these
        known = np.where((known == OPEN) & ~sequence.open, SKIPPED, known)
    outcomes = ratio.outcomes(labels)
    return Stage(
        known=ratio.outcomes(known),
        sizes=sequence.sizes,
        belief=ratio.belief(_probabilities(pool, sequence)),
        drawn=sequence.rows,
        outcomes=outcomes[sequence.rows],
    )


def _probabilities(pool: Pool, sequence: SequenceOfDraws) -> Array:
    """(N, C) what was believed when the sequence began."""
    points, n_classes = np.arange(len(pool)), len(pool.classes)
    if sequence.belief is not None:
        return sequence.belief.rows(points)
    if not pool.models:
        return np.full((len(pool), n_classes), 1 / n_classes)
    found = np.full((len(pool), n_classes), (1 - FIRST_BELIEF) / (n_classes - 1))
    found[points, pool.predictions] = FIRST_BELIEF
    return found
