"""Belief: what is thought of each label that nobody has told.

N points, C classes, f[i, c] ~ P(y_i = c):
    f[i, a_i] = agree_i,   f[i, c] = (1 - agree_i) rivals[group_i, c]   for c != a_i, the predicted class.
With several models a_i is the answer that most of them give; `around` writes the same belief around another answer.
Rivals of a large pool are kept in half precision: whatever is read is divided by the sum of its row, so that the
distributions add up to 1 all the same, and nothing as large as (N, C) is made on the way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from altmas.types import Array

CHUNK = 2_000_000
"""Numbers of the rivals that are looked at together."""
WRITTEN_OUT = 1_000_000
"""Most numbers N x C of a belief that are kept in memory for a contest of many models."""


def split_around(full: Array, answers: Array) -> tuple[Array, Array]:
    """((n,) the chance of each answer, (n, C) the distribution over the other classes) of distributions (n, C)."""
    cells, uniform = (np.arange(len(answers)), answers), np.full(full.shape[1], 1.0 / max(full.shape[1] - 1, 1))
    agree, rivals = full[cells], full.copy()
    rivals[cells] = 0.0
    total = rivals.sum(1, keepdims=True)
    rivals = np.where(total > 0, rivals / np.maximum(total, 1e-300), uniform)
    rivals[cells] = 0.0
    return agree, rivals


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
        full = (1 - self.agree[points])[:, None] * self._rivals_of(self.group[points])
        full[np.arange(len(points)), self.predictions[points]] = self.agree[points]
        return np.asarray(full)

    def around(self, answers: Array) -> Self:
        """The same distributions, written around other answers (N,): those of one of several models."""
        if answers is self.predictions or np.array_equal(answers, self.predictions):
            return self
        agree, rivals = np.empty(len(answers)), np.empty((len(answers), self.n_classes), self.rivals.dtype)
        for points in self._parts(len(answers)):
            agree[points], rivals[points] = split_around(self.rows(points), answers[points])
        return replace(self, predictions=answers, agree=agree, rivals=rivals, group=np.arange(len(answers)))

    @property
    def n_classes(self) -> int:
        """C."""
        return int(self.rivals.shape[1])

    @cached_property
    def _sums(self) -> Array | None:
        """(G,) what rows of rivals add up to in half precision; None where they add up to 1 well enough."""
        if self.rivals.dtype != np.float16:
            return None
        sums = np.empty(len(self.rivals), np.float32)
        for groups in self._parts(len(self.rivals)):
            sums[groups] = np.maximum(self.rivals[groups].sum(1, dtype=np.float32), np.float32(1e-6))
        return sums

    def _rivals_of(self, groups: Array) -> Array:
        """(n, C) the rivals of these groups, adding up to 1."""
        rivals = np.asarray(self.rivals[groups], np.float64)
        return rivals if self._sums is None else rivals / self._sums[groups][:, None]

    def _parts(self, count: int) -> Iterator[Array]:
        step = max(1, CHUNK // max(self.n_classes, 1))
        for start in range(0, count, step):
            yield np.arange(start, min(start + step, count))

    def rivals_to(self, code: int) -> Array:
        """(G,) the share of one class among the rivals of each group."""
        shares = np.asarray(self.rivals[:, code], np.float64)
        return shares if self._sums is None else shares / self._sums

    def mean_over_rivals(self, values: Array) -> Array:
        """(G,) mean over the rivals of each group of values[a, c] (C, C), a the answer that its points share."""
        means = np.empty(len(self.rivals))
        for groups in self._parts(len(self.rivals)):
            weights = self._rivals_of(groups)
            means[groups] = (weights * values[self.predicted_of_group[groups]]).sum(1)
        return means

    def mean_over_rivals_by(self, values: Array, rows: Array) -> Array:
        """(N,) mean over the rivals of each point of values[rows_i, c] (R, C)."""
        if len(self.rivals) < len(rows):
            return np.asarray((self._rivals_of(np.arange(len(self.rivals))) @ values.T)[self.group, rows])
        means = np.empty(len(rows))
        for points in self._parts(len(rows)):
            means[points] = (self._rivals_of(self.group[points]) * values[rows[points]]).sum(1)
        return means

    def table(self, inside: Array | None = None) -> Array:
        """(C, C) expected table of the points in the mask `inside` (all by default)."""
        mass = np.ones(len(self.agree)) if inside is None else np.asarray(inside, np.float64)
        wrong = np.bincount(self.group, (1 - self.agree) * mass, len(self.rivals))
        used = np.flatnonzero(self.predicted_of_group >= 0)
        table = self._counted(used, self.predicted_of_group[used], wrong[used], self.n_classes)
        table[np.diag_indices(self.n_classes)] += np.bincount(self.predictions, self.agree * mass, self.n_classes)
        return table

    def _counted(self, groups: Array, rows: Array, weights: Array, n_rows: int) -> Array:
        """(R, C) sum over groups of weight times rivals, counted in the row that belongs to each."""
        from scipy.sparse import csr_array

        table, moving = np.zeros((n_rows, self.n_classes)), np.flatnonzero(weights)
        for part in self._parts(len(moving)):
            used = moving[part]
            cells = (weights[used], (rows[used], np.arange(len(used))))
            table += csr_array(cells, shape=(n_rows, len(used))) @ self._rivals_of(groups[used])
        return table

    def of_class(self, code: int | Array) -> Array:
        """(N,) f[i, code], with one code or one for each point."""
        chances = (1 - self.agree) * self.rivals[self.group, code]
        if self._sums is not None:
            chances /= self._sums[self.group]
        return np.where(self.predictions == code, self.agree, chances)

    def table_by(self, rows: Array, n_rows: int, inside: Array | None = None) -> Array:
        """(R, C) expected table of the points in the mask `inside`, counted by any row codes (N,)."""
        if n_rows == self.n_classes and np.array_equal(rows, self.predictions):
            return self.table(inside)
        n_groups = len(self.rivals)
        mass = np.ones(len(self.agree)) if inside is None else np.asarray(inside, np.float64)
        table = np.bincount(rows * self.n_classes + self.predictions, self.agree * mass, n_rows * self.n_classes)
        wrong = (1 - self.agree) * mass
        if n_groups < len(rows):  # points that share a row and a group count together
            cells, cell = np.unique(rows * n_groups + self.group, return_inverse=True)
            rivals = self._counted(cells % n_groups, cells // n_groups, np.bincount(cell, wrong, len(cells)), n_rows)
        else:
            rivals = self._counted(self.group, rows, wrong, n_rows)
        return np.asarray(table.reshape(n_rows, -1) + rivals)

    @cached_property
    def predicted_of_group(self) -> Array:
        """(G,) the predicted class that all points of a group share; -1 for a group without points."""
        owner = np.full(len(self.rivals), -1, np.int64)
        owner[self.group] = self.predictions
        return owner

    @cached_property
    def written_out(self) -> "Belief":
        """The same belief with all its numbers in memory where they are not too many: quicker for many row codes."""
        if self.n_classes * len(self.agree) > WRITTEN_OUT:
            return self
        return WrittenOut(self.predictions, self.agree, self.rivals, self.group, self.shares)


@dataclass(frozen=True)
class WrittenOut(Belief):
    """A belief whose N x C numbers are computed once."""

    @cached_property
    def full(self) -> Array:
        """(N, C) the believed distributions, columns contiguous."""
        return np.asfortranarray(super().rows(np.arange(len(self.agree))))

    def rows(self, points: Array) -> Array:
        return np.asarray(self.full[points])

    def of_class(self, code: int | Array) -> Array:
        if np.ndim(code) == 0:
            return np.asarray(self.full[:, code])
        return np.asarray(self.full[np.arange(len(self.full)), code])

    def table_by(self, rows: Array, n_rows: int, inside: Array | None = None) -> Array:
        columns = self.full.T if inside is None else self.full.T * inside
        return np.stack([np.bincount(rows, column, n_rows) for column in columns], axis=1)
