"""Intervals and decisions of a session with a finite-sample proof: from its log to the game of `altmas.guarantee`.

A method takes part if its draws come one after another with known chances (`DrawsInSequence`). The belief of a stage is
the one from labels told before it began, so every bet is made before the draw.
"""

from dataclasses import replace

import numpy as np

from altmas.estimates import Estimate, Estimates
from altmas.guarantee import OPEN, SKIPPED, Evidence, Stage, TableRatio, decide, interval, linear_tables, table_ratio
from altmas.history import History
from altmas.methods.protocol import DrawsInSequence, Method, SequenceOfDraws
from altmas.metrics import Metric
from altmas.metrics.formulas import answers_of
from altmas.task import Task
from altmas.types import Array

FIRST_BELIEF = 0.8
"""P(the model is right) before any label; it is fitted to each candidate value, so any number would do."""


def offers_guarantee(method: Method, metric: Metric, n_classes: int) -> bool:
    """Whether a proof covers this metric under this method: its draws have known chances, it is a ratio of sums."""
    return isinstance(method, DrawsInSequence) and _tables(metric, n_classes) is not None


def guaranteed_decision(
    method: Method, task: Task, history: History, metric: Metric, threshold: float
) -> Evidence | None:
    """Whether the metric is shown to be above or below the threshold, at every look; None where no proof is offered."""
    game = _game(method, task, history, metric)
    if game is None:
        return None
    return decide(game[0].ratio, game[1], threshold, error=1 - task.confidence, budget=task.budget)


def with_guarantee(method: Method, task: Task, history: History, estimates: Estimates) -> Estimates:
    """The estimates with intervals that hold at every look, where a proof covers the metric; the others as they are."""
    metrics = {metric.name: metric for metric in task.metrics}
    answers = tuple(_guaranteed(method, task, history, metrics[one.metric], one) for one in estimates)
    return replace(estimates, values=answers)


def _guaranteed(method: Method, task: Task, history: History, metric: Metric, estimate: Estimate) -> Estimate:
    game = None if estimate.value != estimate.value else _game(method, task, history, metric)
    if game is None:
        return estimate
    low, high = interval(game[0].ratio, game[1], confidence=task.confidence, budget=task.budget)
    low, high = min(low, estimate.value), max(high, estimate.value)
    return replace(estimate, low=low, high=high, interval="guaranteed")


def _game(method: Method, task: Task, history: History, metric: Metric) -> tuple[TableRatio, list[Stage]] | None:
    """The metric as a ratio and the stages of draws; None where no proof is offered or nothing was answered."""
    pool = task.pool
    tables = _tables(metric, len(pool.classes))
    if tables is None or not isinstance(method, DrawsInSequence):
        return None
    sequences = method.sequences(task, history)
    if not any(len(one.rows) for one in sequences):
        return None
    ratio = table_ratio(*tables, answers_of(pool, metric.model), metric.members(pool))
    return ratio, [_stage(ratio, one, history) for one in sequences]


def _tables(metric: Metric, n_classes: int) -> tuple[Array, Array] | None:
    if metric.kind == "fbeta" or not metric.of_table_of_a_model:
        return None
    try:
        return linear_tables(metric.kind, n_classes, metric.classes)
    except (KeyError, ValueError):
        return None


def _stage(ratio: TableRatio, sequence: SequenceOfDraws, history: History) -> Stage:
    labels = np.where(history.known >= 0, history.known, OPEN)
    labels[list(history.skipped)] = SKIPPED
    known = np.where(sequence.open, OPEN, labels)
    outcomes = ratio.outcomes(labels)
    return Stage(
        known=ratio.outcomes(known),
        sizes=sequence.sizes,
        belief=ratio.belief(_probabilities(ratio.predictions, sequence, ratio.codes.shape[1])),
        drawn=sequence.rows,
        outcomes=outcomes[sequence.rows],
    )


def _probabilities(predictions: Array, sequence: SequenceOfDraws, n_classes: int) -> Array:
    """(N, C) what was believed when the sequence began."""
    if sequence.belief is not None:
        return sequence.belief.rows(np.arange(len(predictions)))
    found = np.full((len(predictions), n_classes), (1 - FIRST_BELIEF) / (n_classes - 1))
    found[np.arange(len(predictions)), predictions] = FIRST_BELIEF
    return found
