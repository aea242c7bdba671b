"""Belief: what is thought of each label that nobody has told.

N points, C classes, f[i, c] ~ P(y_i = c):
    f[i, a_i] = agree_i,   f[i, c] = (1 - agree_i) rivals[group_i, c]   for c != a_i, the predicted class.
With several models a_i is the answer that most of them give; `around` writes the same belief around another answer.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from altmas.types import Array


@dataclass(frozen=True)
class Belief:
    """agree (N,) P(the model is right); rivals (G, C) distributions over the other classes; group (N,) rows of rivals.

    shares  how much each candidate answer counted, by name, for people
    """

    predictions: Array
    agree: Array
    rivals: Array
    group: Array
    shares: dict[str, float]

    def rows(self, points: Array) -> Array:
        """(len(points), C) the believed distributions themselves."""
        full = (1 - self.agree[points])[:, None] * self.rivals[self.group[points]]
        full[np.arange(len(points)), self.predictions[points]] = self.agree[points]
        return np.asarray(full)

    def around(self, answers: Array) -> Self:
        """The same distributions, written around other answers (N,): those of one of several models."""
        if answers is self.predictions or np.array_equal(answers, self.predictions):
            return self
        points = np.arange(len(answers))
        full = self.rows(points)
        agree = full[points, answers]
        full[points, answers] = 0.0
        others = full.sum(1, keepdims=True)
        uniform = np.full(full.shape[1], 1.0 / max(full.shape[1] - 1, 1))
        rivals = np.where(others > 0, full / np.maximum(others, 1e-300), uniform)
        rivals[points, answers] = 0.0
        return replace(self, predictions=answers, agree=agree, rivals=rivals, group=points)

    def table(self, inside: Array | None = None) -> Array:
        """(C, C) expected table of the points in the mask `inside` (all by default)."""
        n_classes = self.rivals.shape[1]
        kept = np.ones(len(self.agree)) if inside is None else np.asarray(inside, np.float64)
        wrong = np.bincount(self.group, (1 - self.agree) * kept, len(self.rivals))
        table = np.zeros((n_classes, n_classes))
        spread = wrong[self._order][:, None] * self.rivals[self._order]
        table[self._row_classes] = np.add.reduceat(spread, self._starts, axis=0)
        table[np.diag_indices(n_classes)] += np.bincount(self.predictions, self.agree * kept, n_classes)
        return table

    def of_class(self, code: int | Array) -> Array:
        """(N,) f[i, code], with one code or one for each point."""
        others = (1 - self.agree) * self.rivals[self.group, code]
        return np.where(self.predictions == code, self.agree, others)

    def table_by(self, rows: Array, n_rows: int, inside: Array | None = None) -> Array:
        """(R, C) expected table of the points in the mask `inside`, counted by any row codes (N,)."""
        if n_rows == self.rivals.shape[1] and np.array_equal(rows, self.predictions):
            return self.table(inside)
        n_groups, n_classes = self.rivals.shape
        kept = np.ones(len(self.agree)) if inside is None else np.asarray(inside, np.float64)
        cells, place = np.unique(rows * n_groups + self.group, return_inverse=True)
        wrong = np.bincount(place, (1 - self.agree) * kept, len(cells))
        table = np.bincount(rows * n_classes + self.predictions, self.agree * kept, n_rows * n_classes)
        table = table.reshape(n_rows, n_classes)
        np.add.at(table, cells // n_groups, wrong[:, None] * self.rivals[cells % n_groups])
        return np.asarray(table)

    @cached_property
    def predicted_of_group(self) -> Array:
        """(G,) the predicted class that all points of a group share; -1 for a group without points."""
        owner = np.full(len(self.rivals), -1, np.int64)
        owner[self.group] = self.predictions
        return owner

    @cached_property
    def _order(self) -> Array:
        used = np.flatnonzero(self.predicted_of_group >= 0)
        return used[np.argsort(self.predicted_of_group[used], kind="stable")]

    @cached_property
    def _starts(self) -> Array:
        owner = self.predicted_of_group[self._order]
        return np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))

    @cached_property
    def _row_classes(self) -> Array:
        return self.predicted_of_group[self._order][self._starts]
