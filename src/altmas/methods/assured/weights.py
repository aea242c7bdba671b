"""Weights W[i, c] made from other weights or from a belief, and what moves them to totals that are known."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from altmas.belief import Belief
from altmas.methods.assured.parts import Mask
from altmas.metrics import RowCodes, Weights
from altmas.types import Array


@dataclass(frozen=True)
class Believed:
    """W as one belief has it, labels aside; members (N,) the points inside, or None for all; weight (N,) or None."""

    belief: Belief
    members: Mask | None = None
    weight: Array | None = None

    @property
    def n_classes(self) -> int:
        return self.belief.n_classes

    @cached_property
    def _tables(self) -> dict[tuple[object, ...], Array]:
        return {}

    @property
    def mass(self) -> Array:
        mass = np.ones(len(self.belief.agree)) if self.members is None else self.members.astype(np.float64)
        return mass if self.weight is None else mass * self.weight

    def table(self, rows: RowCodes) -> Array:
        if rows.key not in self._tables:
            inside = self.members if self.weight is None else self.mass
            self._tables[rows.key] = self.belief.table_by(rows.codes, rows.count, inside)
        return self._tables[rows.key]

    def of_class(self, code: int | Array) -> Array:
        chances = self.belief.of_class(code)
        if self.weight is not None:
            chances = chances * self.weight
        return chances if self.members is None else np.where(self.members, chances, 0.0)


@dataclass(frozen=True)
class Without:
    """Weights without those of some classes, which count as the cell of their row that is the largest in `like`."""

    weights: Weights
    absent: Mask
    like: Weights

    @property
    def n_classes(self) -> int:
        return self.weights.n_classes

    @property
    def mass(self) -> Array:
        return self.weights.mass

    def table(self, rows: RowCodes) -> Array:
        table = np.where(self.absent, 0.0, self.weights.table(rows))
        left_out = self.weights.table(rows).sum(1) - table.sum(1)
        table[np.arange(len(table)), np.where(self.absent, -np.inf, self.like.table(rows)).argmax(1)] += left_out
        return table

    def of_class(self, code: int | Array) -> Array:
        weights = self.weights.of_class(code)
        return np.where(self.absent[code], 0.0, weights)


def with_steady_members(table: Array, noise: Array) -> Array:
    """(C, C) a table whose numbers of members are drawn to those of answers, and recalls to the accuracy.       (V15)

    noise  (C,) variance of the number of members s_c of each class in the table

    A recall t / s is convex in the members that the answers missed. Linearised where the same labels have put s, it is
    too high by about one over the labels of its class, and so is the mean over classes, while its error shrinks with
    their number. Linearised at s0_c and any recall R0 it is R0 + (t - R0 s) / s0: right on average where s0 is s, and
    hardly moved by the labels of a class where s0 is drawn to the number of its answers r by empirical Bayes,
        s0 = r + (s - r) k,   k = B / (B + mean of noise),   B = mean over c of ((s_c - r_c)^2 - noise_c), at least 0
    and R0 to the accuracy by the same k. Classes that nobody answers keep s.
    """
    answers, members = table.sum(1), table.sum(0)
    accuracy, kept = float(np.trace(table) / max(table.sum(), 1e-300)), kept_of_members(table, noise)
    steady = np.where(answers > 0, answers + kept * (members - answers), members)
    found = np.divide(np.diagonal(table), members, out=np.full(len(table), accuracy), where=members > 0)
    recall = accuracy + kept * (found - accuracy)
    missed = np.tile(answers[:, None], (1, len(table)))
    np.fill_diagonal(missed, 0.0)
    missed *= (1 - recall) * steady / np.maximum(missed.sum(0), 1e-300)
    return np.asarray(missed + np.diag(recall * steady))


def kept_of_members(table: Array, noise: Array) -> float:
    """k of (V15): how much of what numbers of members differ from those of answers by is kept."""
    apart = table.sum(0) - table.sum(1)
    between = max(float((apart**2 - noise).mean()), 0.0)
    return between / max(between + float(noise.mean()), 1e-300)


def shifted_odds(chances: Array, bins: Array, totals: Array, weight: Array | None = None) -> Array:
    """(N,) the chances with odds multiplied by one factor in each bin, so that they add up to these totals.  (S10)

    weight  (N,) how often each counts in the totals; once by default.

    Chances of 0 and 1 stay; a total that cannot be reached is come as close to as a factor of e^10 allows.
    """
    low, high = np.full(len(totals), -10.0), np.full(len(totals), 10.0)
    odds = chances / np.maximum(1 - chances, 1e-300)
    open_ = (chances > 0) & (chances < 1)

    def shifted(shift: Array) -> Array:
        factor = np.exp(shift)[bins] * odds
        return np.where(open_, factor / (1 + factor), chances)

    for _ in range(30):
        middle = (low + high) / 2
        counted = shifted(middle) if weight is None else shifted(middle) * weight
        enough = np.bincount(bins, counted, len(totals)) >= totals
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return shifted((low + high) / 2)
