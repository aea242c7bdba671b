"""Metrics that are ratios of sums over points (G1): accuracy, precision, recall, F-beta, kappa, shares, differences.

A label gives a point one of K outcomes, each a pair (num, den); a metric is the sum of num over the sum of den. That
is what the proofs of guarantee.py are about.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from altmas.types import Array

SKIPPED: Final = -1
"""Outcome of a point that nobody can label: num = den = 0."""
OPEN: Final = -2
"""Outcome of a point whose label is not known."""
SLACK: Final = 0.1
"""Share of the error for the chance that a pool which is a random sample lies far from what it was taken from (G11)."""


@dataclass(frozen=True)
class Ratio:
    """A metric Q = sum num / sum den (G1): point i has outcomes (num[kind[i], k], den[kind[i], k]), k < K.

    num, den  (P, K)  one row for each kind of point; den >= 0; unused outcomes repeat another one of their row
    kind      (N,)    codes into the rows
    bounds    values between which Q lies whatever the labels
    fraction  share of the rows that Q is about that the points are, as a random sample of them; 1 if they are all
    """

    num: Array
    den: Array
    kind: Array
    bounds: tuple[float, float]
    fraction: float = 1.0

    @classmethod
    def of_points(cls, num: Array, den: Array, bounds: tuple[float, float] | None = None) -> "Ratio":
        """The metric whose values are given point by point, both (N, K)."""
        num, den = np.asarray(num, np.float64), np.asarray(den, np.float64)
        if num.ndim != 2 or num.shape != den.shape or not (np.isfinite(num).all() and np.isfinite(den).all()):
            raise ValueError(
                f"num of shape {num.shape} and den of shape {den.shape} were given; two finite arrays (points, "
                "outcomes) are needed; nothing was computed"
            )
        if (den < 0).any():
            raise ValueError("den has negative values; a guarantee needs den >= 0; nothing was computed")
        rows, kind = np.unique(np.hstack([num, den]), axis=0, return_inverse=True)
        parts = rows[:, : num.shape[1]], rows[:, num.shape[1] :]
        return cls(*parts, kind.ravel(), _bounds(*parts) if bounds is None else bounds)

    def values(self, q: Array) -> Array:
        """(P, K, G): g = num - q den (G1)."""
        return np.asarray(self.num[:, :, None] - q * self.den[:, :, None])

    def behind(self, q: Array, error: float) -> tuple[Array, float]:
        """((G,) B of (G11) at the candidates, the error that is left for the bets)."""
        if self.fraction >= 1:
            return np.zeros(len(q)), error
        counts = np.bincount(self.kind, minlength=len(self.num))
        counted = ((self.num != 0) | (self.den != 0)).any(1)
        m = float(counts[counted].sum())
        g = self.values(q)[counted & (counts > 0)]
        span = np.maximum(g.max((0, 1)), 0) - np.minimum(g.min((0, 1)), 0)
        left = 1 - (m - 1) * self.fraction / m if m == len(self.kind) else 1.0
        return span * np.sqrt(m * left * np.log(1 / (SLACK * error)) / 2), (1 - SLACK) * error

    def totals(self, outcomes: Array) -> tuple[float, float]:
        """Sums of num and of den over the points whose outcome is known; skipped ones count 0."""
        labelled = np.flatnonzero(outcomes >= 0)
        cell = self.kind[labelled], outcomes[labelled]
        return float(self.num[cell].sum()), float(self.den[cell].sum())


def _bounds(num: Array, den: Array) -> tuple[float, float]:
    """Smallest and largest num / den; a sum of num over a sum of den lies between them."""
    if (num[den == 0] != 0).any() or not (den > 0).any():
        raise ValueError("num is not 0 where den is 0, so the metric has no bounds of its own: give bounds")
    values = num[den > 0] / den[den > 0]
    return float(values.min()), float(values.max())


@dataclass(frozen=True)
class TableRatio:
    """A metric that is linear in the table of (predicted, true) above and below the line, as a Ratio.

    codes  (C, C)  the outcome that label c of a point predicted a has
    """

    ratio: Ratio
    codes: Array
    predictions: Array

    def outcomes(self, labels: Array) -> Array:
        """(N,) outcomes of class codes; negative codes (SKIPPED, OPEN) stay as they are."""
        return np.where(labels < 0, labels, self.codes[self.predictions, np.maximum(labels, 0)])

    def belief(self, probabilities: Array) -> Array:
        """(N, K) probabilities of the outcomes from those of the classes (N, C)."""
        outcome = self.codes[self.predictions]
        return np.stack([(probabilities * (outcome == k)).sum(1) for k in range(self.ratio.num.shape[1])], axis=1)


def table_ratio(
    num: Array,
    den: Array,
    predictions: Array,
    weight: Array | None = None,
    bounds: tuple[float, float] | None = None,
) -> TableRatio:
    """The metric sum_i weight_i num[a_i, y_i] / sum_i weight_i den[a_i, y_i]; a slice has weight 1 inside, 0 outside.

    Labels of a row with equal (num, den) are one outcome, so accuracy has two of them however many classes there are.
    """
    pairs = [np.unique(np.column_stack(row), axis=0, return_inverse=True) for row in zip(num, den, strict=True)]
    width = max(len(values) for values, _ in pairs)
    padded = np.stack([values[np.minimum(np.arange(width), len(values) - 1)] for values, _ in pairs])  # (C, K, 2)
    codes = np.stack([code.ravel() for _, code in pairs])
    rows, row = np.unique(padded.reshape(len(padded), -1), axis=0, return_inverse=True)
    kinds = np.column_stack([row.ravel()[predictions], np.ones(len(predictions)) if weight is None else weight])
    distinct, kind = np.unique(kinds, axis=0, return_inverse=True)
    values = rows[distinct[:, 0].astype(int)].reshape(len(distinct), width, 2) * distinct[:, 1, None, None]
    above, below = values[:, :, 0], values[:, :, 1]
    ratio = Ratio(above, below, kind.ravel(), _bounds(above, below) if bounds is None else bounds)
    return TableRatio(ratio, codes, np.asarray(predictions))


def linear_tables(kind: str, n_classes: int, classes: Sequence[int] = (), beta: float = 1.0) -> tuple[Array, Array]:
    """(num, den), each (C, C) by (predicted, true), of a metric by its family; KeyError if it is no ratio of sums.

    `classes` are those in the metric's name: precision[k] has one, confusion[a,c] two; share[k] is how often k is true.
    """
    cell, ones = np.zeros((n_classes, n_classes)), np.ones((n_classes, n_classes))
    if kind in ("accuracy", "error"):
        return (np.eye(n_classes) if kind == "accuracy" else 1 - np.eye(n_classes)), ones
    if kind == "confusion":
        cell[tuple(classes)] = 1
        return cell, ones
    if len(classes) != 1:
        raise KeyError(kind)
    (k,) = classes
    cell[k, k] = 1
    row, column = cell + 0, cell + 0
    row[k], column[:, k] = 1, 1
    made: dict[str, Callable[[], tuple[Array, Array]]] = {
        "precision": lambda: (cell, row),
        "recall": lambda: (cell, column),
        "npv": lambda: ((1 - row) * (1 - column), 1 - row),
        "specificity": lambda: ((1 - row) * (1 - column), 1 - column),
        "f1": lambda: (2 * cell, row + column),
        "fbeta": lambda: ((1 + beta**2) * cell, row + beta**2 * column),
        "jaccard": lambda: (cell, row + column - cell),
        "share": lambda: (column, ones),
    }
    return made[kind]()


def kappa_tables(rows: Array) -> tuple[Array, Array]:
    """(num, den) of kappa, whose row sums r (C,) are known: [a = c] - r_c / N over 1 - r_c / N, N the sum of r.   (G13)

    Cohen's kappa is (N T - E) / (N^2 - E) with T right answers and E = sum_c r_c s_c, s_c the points of class c: a sum
    over points above and below the line. It holds if nothing is skipped, which would change r.
    """
    chance = np.broadcast_to(rows / rows.sum(), (len(rows), len(rows)))
    return np.eye(len(rows)) - chance, 1 - chance


@dataclass(frozen=True)
class Difference:
    """Accuracy of one model minus that of another, as a Ratio: outcome 1 only the first is right, 2 only the second."""

    ratio: Ratio
    first: Array
    second: Array

    def outcomes(self, labels: Array) -> Array:
        """(N,) outcomes of class codes; negative codes (SKIPPED, OPEN) stay as they are."""
        differ = self.first != self.second
        code = np.where(differ & (labels == self.first), 1, np.where(differ & (labels == self.second), 2, 0))
        return np.where(labels < 0, labels, code)

    def belief(self, probabilities: Array) -> Array:
        """(N, 3) probabilities of the outcomes from those of the classes (N, C)."""
        points = np.arange(len(self.first))
        differ = self.first != self.second
        only_first, only_second = (np.where(differ, probabilities[points, of], 0.0) for of in (self.first, self.second))
        return np.stack([np.maximum(1 - only_first - only_second, 0), only_first, only_second], axis=1)


def difference(first: Array, second: Array, weight: Array | None = None) -> Difference:
    """The difference of two models' accuracies on the same points; `weight` as in table_ratio."""
    weights = np.ones(len(first)) if weight is None else np.asarray(weight, np.float64)
    num = weights[:, None] * np.where((first != second)[:, None], [0.0, 1.0, -1.0], 0.0)
    return Difference(Ratio.of_points(num, np.tile(weights[:, None], 3), (-1.0, 1.0)), first, second)
