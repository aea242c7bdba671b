"""p(c | x) for methods that need a guess of the labels: the model's own scores, or a surrogate where it gives none.

The surrogate is the cross-fitted belief learned from the labels so far. It is fitted anew only when these have
doubled, from the first labels told, so that the guess in force at any batch can be had again from the history.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

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

_scores: WeakKeyDictionary[Pool, Belief] = WeakKeyDictionary()
_imitated: WeakKeyDictionary[Pool, Array] = WeakKeyDictionary()
_fitted: WeakKeyDictionary[Pool, dict[Any, Belief]] = WeakKeyDictionary()
_made: dict[Any, tuple[Belief, Array]] = {}
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
    if pool not in _scores:
        assert pool.scores is not None
        points = np.arange(len(pool))
        agree = np.clip(pool.scores[points, pool.predictions], 0.0, 1.0)
        rivals = without_own(pool.scores.copy(), pool.predictions)
        _scores[pool] = Belief(pool.predictions, agree, rivals, points, {"scores": 1.0})
    return _scores[pool]


def learned(task: "Task", history: History, seen: int) -> Belief:
    """The belief from the first `seen` labels, each point answered for by labels outside its fold."""
    rows, codes = history.labelled[:seen], history.codes[:seen]
    key = (task.seed, rows.tobytes(), codes.tobytes())
    remembered = _fitted.setdefault(task.pool, {})
    if key not in remembered:
        folds = folds_of(len(task.pool), task.seed)
        while len(remembered) >= REMEMBERED:
            remembered.pop(next(iter(remembered)))
        remembered[key] = belief_of(task.pool, describe(task.pool), rows, codes, np.ones(len(rows)), folds)
    return remembered[key]


def class_scores(pool: Pool) -> Array:
    """(N, C) the model's scores or, where it gives none, P(the model says c | x) as its features tell (D.0, adapted).

    The imitation sees predictions and no label, so strata and rankings made from it are fixed before any label.
    """
    if pool.scores is not None:
        return pool.scores
    if pool not in _imitated:
        seen = describe(pool)
        assert seen.doubt is not None
        view = seen.rivals[0] * seen.doubt[:, None]
        view[np.arange(len(pool)), pool.predictions] = 1 - seen.doubt
        _imitated[pool] = view
    return _imitated[pool]


def confidence_of(pool: Pool) -> Array:
    """(N,) the highest score or, where there are none, how sure the imitation is of what the model says."""
    if pool.scores is not None:
        return np.asarray(pool.scores.max(1))
    return np.asarray(class_scores(pool)[np.arange(len(pool)), pool.predictions])


def remembered(belief: Belief, key: Any, make: Callable[[], Array]) -> Array:
    """What `make` gives for a belief, computed once while it is among the last ones asked for."""
    place = (id(belief), key)
    owner, made = _made.get(place, (None, None))
    if owner is not belief or made is None:
        made = make()
        for old in list(_made)[: len(_made) - REMEMBERED + 1]:
            _made.pop(old, None)
        _made[place] = belief, made
    return made


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
