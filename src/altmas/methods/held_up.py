"""Labels that do not count yet, for methods that take labels in the order of their draws (`Traits.in_order`).

Whoever leaves a point open may do so because of its label, so the sample of such a method ends at the first draw
without an answer; labels behind it wait until it is answered or skipped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from altmas.history import Batch, History
from altmas.methods.assured.stages import stage_starts
from altmas.methods.protocol import Method
from altmas.task import Task
from altmas.types import Array


@dataclass(frozen=True)
class HeldUp:
    """Labels that a method which takes labels in drawing order cannot use yet, and what they wait for.

    labels     rows, in drawing order
    waits_for  rows without an answer that were drawn before the last of them
    """

    labels: NDArray[np.int64]
    waits_for: NDArray[np.int64]


def held_up(history: History, groups: Array | None = None) -> HeldUp:
    """What waits in the last sample of a history; groups (N,) where whole ones are drawn, which count together.

    A stage of `assured` is a sample of its own: what an earlier one left open does not hold up the next, once an answer
    to the next is there.
    """
    history = history.without_waiting()
    starts = stage_starts(history)
    return _held_up(history, history.batches[starts[-1] if starts else 0 :], groups)


def left_behind(history: History, groups: Array | None = None) -> HeldUp:
    """The same in samples that are over: these labels are known where they are, and stand for no other item.

    They stand for others again once what they wait for is answered or skipped.
    """
    history = history.without_waiting()
    over = [_held_up(history, history.batches[begin:end], groups) for begin, end in pairwise(stage_starts(history))]
    none = np.zeros(0, np.int64)
    return HeldUp(
        np.concatenate([none, *(sample.labels for sample in over)]),
        np.concatenate([none, *(sample.waits_for for sample in over)]),
    )


def _held_up(history: History, batches: Sequence[Batch], groups: Array | None) -> HeldUp:
    drawn = np.concatenate([np.zeros(0, np.int64), *(batch.indices for batch in batches)])
    labelled, open_ = history.known[drawn] >= 0, np.isin(drawn, history.outstanding)
    if not open_.any() or not labelled.any():
        return HeldUp(drawn[:0], drawn[:0])
    units = np.arange(len(drawn)) if groups is None else groups[drawn]
    first = int((units == units[open_.argmax()]).argmax())
    behind = np.flatnonzero(labelled)[np.flatnonzero(labelled) >= first]
    end = np.flatnonzero(np.isin(units, units[behind])).max(initial=-1) + 1
    before = np.flatnonzero(open_[:end])
    return HeldUp(drawn[behind], drawn[before] if len(behind) else drawn[:0])


def counted_labels(method: Method, task: Task, history: History) -> int:
    """Labels of draws that an estimate rests on: those that wait for an answer to an earlier draw are none of them."""
    waiting = len(held_up(history, task.units).labels) if method.traits.in_order else 0
    return history.drawn_labels - waiting
