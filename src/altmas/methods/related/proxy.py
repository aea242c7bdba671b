"""p(c | x) for methods that need a guess of the labels: the model's own scores, or a surrogate where it gives none.

The surrogate is the cross-fitted belief learned from the labels so far. It is fitted anew only when these have
doubled, from the first labels told, so that the guess in force at any batch can be had again from the history.
"""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import numpy as np

from altmas.belief import Belief
from altmas.history import History
from altmas.methods.assured.belief import belief_of, folds_of
from altmas.methods.assured.views import describe, without_own
from altmas.metrics import Metric
from altmas.metrics.influence import Influence
from altmas.pool import Pool
from altmas.types import Array

if TYPE_CHECKING:
    from altmas.task import Task

PILOT = 40
"""Labels before the first surrogate is fitted; until then there is no guess, and draws are uniform."""

REMEMBERED = 8
"""Beliefs and arrays that are kept for the next batch."""


def proxy_of(task: "Task", history: History, labels: int | None = None) -> Belief | None:
    """The guess that was in force at this many labels (by default all); None without scores and with few labels."""
    if task.pool.scores is not None:
        return score_belief(task.pool)
    known = len(history.labels) if labels is None else min(labels, len(history.labels))
    seen = stage(known)
    return learned(task, history, seen) if task.pool.features is not None and seen else None


def stage(labels: int) -> int:
    """How many of the labels the guess has seen: 40, 80, 160, ...; 0 before."""
    return 0 if labels < PILOT else PILOT * 2 ** int(np.log2(labels / PILOT))


def score_belief(pool: Pool) -> Belief:
    """The scores as a belief; the same object while the pool lives."""
    return pool.memo.get("scores as a belief", (), lambda: _score_belief(pool))


def _score_belief(pool: Pool) -> Belief:
    assert pool.scores is not None
    points = np.arange(len(pool))
    agree = np.clip(pool.scores[points, pool.predictions], 0.0, 1.0)
    rivals = without_own(pool.scores.copy(), pool.predictions)
    return Belief(pool.predictions, agree, rivals, points, {"scores": 1.0})


def learned(task: "Task", history: History, seen: int) -> Belief:
    """The belief from the first `seen` labels, each point answered for by labels outside its fold."""
    rows, codes = history.labelled[:seen], history.codes[:seen]
    key = (task.seed, rows.tobytes(), codes.tobytes())

    def fit() -> Belief:
        folds = folds_of(len(task.pool), task.seed)
        return belief_of(task.pool, describe(task.pool), rows, codes, np.ones(len(rows)), folds)

    return task.pool.memo.get("learned belief", key, fit, keep=REMEMBERED)


def class_scores(pool: Pool) -> Array:
    """(N, C) the model's scores or, where it gives none, P(the model says c | x) as its features tell (D.0, adapted).

    The imitation sees predictions and no label, so strata and rankings made from it are fixed before any label.
    """
    if pool.scores is not None:
        return pool.scores
    return pool.memo.get("imitated scores", (), lambda: _imitated_scores(pool))


def _imitated_scores(pool: Pool) -> Array:
    seen = describe(pool)
    assert seen.doubt is not None
    view = seen.rivals[0] * seen.doubt[:, None]
    view[np.arange(len(pool)), pool.predictions] = 1 - seen.doubt
    return np.asarray(view)


def confidence_of(pool: Pool) -> Array:
    """(N,) the highest score or, where there are none, how sure the imitation is of what the model says."""
    if pool.scores is not None:
        return np.asarray(pool.scores.max(1))
    return np.asarray(class_scores(pool)[np.arange(len(pool)), pool.predictions])


def remembered(pool: Pool, belief: Belief, key: Hashable, make: Callable[[], Array]) -> Array:
    """What `make` gives for a belief about a pool, computed once while it is among the last ones asked for."""
    # The belief is kept with what was made of it, so its id belongs to no other one meanwhile.
    return pool.memo.get("made of a belief", (id(belief), key), lambda: (belief, make()), keep=REMEMBERED)[1]


def phi_moments(metric: Metric, belief: Belief, members: Array | None) -> tuple[Array, Array, float]:
    """(E phi, E phi^2, spread): what the guess expects of each point's influence on the metric, 0 outside its slice.

    phi (C1) is taken at the expected table, in counts; spread is N times its variance over the pool.
    """
    table = belief.table(members)
    slope = metric.gradient(table)
    slope = slope - (table * slope).sum() / table.sum()
    influence = Influence(np.diagonal(slope).copy(), dense=slope)
    mean, variance = influence.moments(belief)
    square = variance + mean**2
    if members is not None:
        mean, square = mean * members, square * members
    return mean, square, influence.spread(table)
