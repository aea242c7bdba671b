"""Draws without replacement whose probability is known at each draw."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from altmas.history import History
from altmas.types import Array


def uniform_draws(
    open_points: NDArray[np.int64], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(indices, probabilities) of n successive uniform draws; probability 1 / (points still open) at each draw."""
    n = min(n, len(open_points))
    indices = rng.choice(open_points, size=n, replace=False)
    return indices, 1.0 / (len(open_points) - np.arange(n))


def uniform_group_draws(
    history: History, groups: Array, n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(indices, probabilities) of the open points of groups drawn uniformly one after another, n points in all.

    What is left of a group that was drawn before comes first; every point has the probability of its group's draw.
    """
    rows = np.flatnonzero(history.open)
    begun = np.isin(groups[rows], groups[history.drawn])
    first, others = rows[begun], rng.permutation(np.unique(groups[rows[~begun]]))
    place = np.full(int(groups.max()) + 1, -1)
    place[others] = np.arange(len(others))
    rest = rows[place[groups[rows]] >= 0]
    rest = rest[np.argsort(place[groups[rest]], kind="stable")]
    chances = np.concatenate([np.full(len(first), 1 / (len(others) + 1)), 1.0 / (len(others) - place[groups[rest]])])
    return np.concatenate([first, rest])[:n], chances[:n]


def answered_whole(history: History, groups: Array) -> History:
    """The history with labels of whole groups and volunteered ones alone.

    Groups count in the order in which they were drawn, up to the first of which a point has no answer (U1).
    """
    drawn, waiting = history.drawn, history.known < 0
    waiting[list(history.skipped)] = False
    order = groups[drawn][np.sort(np.unique(groups[drawn], return_index=True)[1])]
    unanswered = np.bincount(groups, waiting, minlength=1)[order] > 0
    whole = np.zeros(int(groups.max()) + 1, np.bool_)
    whole[order[: int(unanswered.argmax()) if unanswered.any() else len(order)]] = True
    volunteered = set(history.volunteered.tolist())
    labels = {row: code for row, code in history.labels.items() if whole[groups[row]] or row in volunteered}
    kept = np.cumsum([0, *(row in labels for row in history.labels)])
    batches = tuple(
        replace(batch, labels_before=int(kept[min(batch.labels_before, len(kept) - 1)])) for batch in history.batches
    )
    return replace(history, batches=batches, labels=labels)


def successive_draws(
    rates: Array, open_points: NDArray[np.int64], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(indices, probabilities) of n successive draws with chances proportional to the rates of the points still open.

    The n largest of log(rate) + Gumbel noise: an exponential race, sorted.
    """
    n = min(n, len(open_points))
    u = rates[open_points]
    keys = np.log(u) + rng.gumbel(size=len(u))
    first = np.argpartition(-keys, n - 1)[:n] if n < len(u) else np.arange(n)
    first = first[np.argsort(-keys[first], kind="stable")]
    gone = np.concatenate([[0.0], np.cumsum(u[first])[:-1]])
    return open_points[first], u[first] / np.maximum(u.sum() - gone, u[first])


def drawn_uniformly(history: History) -> NDArray[np.int64]:
    """Labelled rows of the batches in which every open point had the same chance at each draw: a sample of the pool."""
    rows, before = [np.zeros(0, np.int64)], 0
    for number, batch in enumerate(history.batches):
        most = history.points_at(number) - before
        if batch.probabilities is not None and len(batch.indices):
            were_open = 1 / np.asarray(batch.probabilities) + np.arange(len(batch.indices))
            least = most - len(history.labels) - len(history.skipped)
            same = np.abs(were_open - np.rint(were_open[0])).max() < 1e-6 * most
            if same and least - 0.5 < were_open[0] < most + 0.5:
                rows.append(batch.indices)
        before += len(batch.indices)
    drawn = np.concatenate(rows)
    return drawn[history.known[drawn] >= 0]
