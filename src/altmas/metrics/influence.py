"""How the label of each point moves a metric, to first order: D[a, c] = dQ/dT[a, c] in its cheapest exact form.

Row sums of T are known, so a constant added to a row of D changes nothing. For most metrics that leaves D zero outside
the diagonal and one column, which keeps 1,000 classes and 2,000 metrics affordable; any other metric has a dense D.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from altmas.belief import Belief
from altmas.metrics import Metric
from altmas.types import Array


@dataclass(frozen=True)
class Influence:
    """D in parts: own (C,) its diagonal; beside the diagonal `dense` (C, C), or `side` (C,) in column `column`, or 0.

    row (C,) is the constant of each row that was left out (0 if None): it matters for random sampling alone, which
    does not hold the row sums fixed.
    """

    own: Array
    column: int | None = None
    side: Array | None = None
    dense: Array | None = None
    row: Array | None = None

    def at(self, predicted: Array, true: Array) -> Array:
        """(n,) D[predicted, true]."""
        if self.dense is not None:
            return np.asarray(self.dense[predicted, true])
        value = np.where(predicted == true, self.own[predicted], 0.0)
        if self.side is not None:
            value = value + np.where((true == self.column) & (predicted != true), self.side[predicted], 0.0)
        return np.asarray(value)

    def moments(self, belief: Belief) -> tuple[Array, Array]:
        """(mean, variance), each (N,), of D[a_i, y] when y follows the belief."""
        mean, square = (self._raw_moment(belief, power) for power in (1, 2))
        return mean, np.maximum(square - mean**2, 0.0)

    def third_moment(self, belief: Belief) -> Array:
        """(N,) E (D - E D)^3 of D[a_i, y] when y follows the belief."""
        mean, square, cube = (self._raw_moment(belief, power) for power in (1, 2, 3))
        return np.asarray(cube - 3 * mean * square + 2 * mean**3)

    def _raw_moment(self, belief: Belief, power: int) -> Array:
        """(N,) E D[a_i, y]^power."""
        own, owner = self.own[belief.predictions] ** power, belief.predicted_of_group
        if self.dense is not None:
            others = (belief.rivals * self.dense[owner] ** power).sum(1)[belief.group]
        elif self.side is not None:
            others = (belief.rivals[:, self.column] * self.side[owner] ** power)[belief.group]
        else:
            return np.asarray(belief.agree * own)
        return np.asarray(belief.agree * own + (1 - belief.agree) * others)

    def range(self) -> tuple[Array, Array]:
        """(smallest, largest), each (C,), of D over the true classes of a point, for each predicted class."""
        if self.dense is not None:
            return self.dense.min(1), self.dense.max(1)
        others = np.zeros_like(self.own)
        if self.side is not None:
            others = np.where(np.arange(len(self.own)) == self.column, 0.0, self.side)
        low, high = np.minimum(self.own, others), np.maximum(self.own, others)
        only_two = len(self.own) == 2 and self.side is not None
        keep = np.arange(len(self.own)) != self.column if only_two else np.zeros(len(self.own), np.bool_)
        return np.where(keep, low, np.minimum(low, 0.0)), np.where(keep, high, np.maximum(high, 0.0))

    def dot(self, table: Array) -> float:
        """<D, table> for a table whose rows add up to 0."""
        if self.dense is not None:
            return float((self.dense * table).sum())
        value = float((self.own * np.diagonal(table)).sum())
        if self.side is not None and self.column is not None:
            beside = table[:, self.column].copy()
            beside[self.column] = 0.0
            value += float((self.side * beside).sum())
        return value

    def spread(self, table: Array) -> float:
        """Sum over the points of a table of (D - mean of D)^2: N times the variance of D under random sampling."""
        total = table.sum()
        if total <= 0:
            return 0.0
        sums = table.sum(1)
        row = np.zeros(len(table)) if self.row is None else self.row
        if self.dense is not None:
            mean, square = (table * self.dense).sum(), (table * self.dense**2).sum()
        else:
            counts = [np.diagonal(table)]
            values = [self.own + row]
            if self.side is not None and self.column is not None:
                beside = table[:, self.column].copy()
                beside[self.column] = 0.0
                counts.append(beside)
                values.append(self.side + row)
            counts.append(sums - sum(counts))
            values.append(row)
            mean = sum((n * d).sum() for n, d in zip(counts, values, strict=True))
            square = sum((n * d**2).sum() for n, d in zip(counts, values, strict=True))
        return max(0.0, float(square - mean**2 / total))


def influence_of(metric: Metric, table: Array) -> Influence:
    """The influence of one label on the metric at a table with known row sums; zero where the metric is undefined."""
    n_classes = len(table)
    if metric.kind in ("accuracy", "error"):
        slope = 1.0 / table.sum() if table.sum() > 0 else 0.0
        return Influence(np.full(n_classes, slope if metric.kind == "accuracy" else -slope))
    if metric.kind in ("precision", "recall", "f1"):
        return _of_class(metric.kind, metric.classes[0], table)
    dense = metric.gradient(table)
    return Influence(np.diagonal(dense).copy(), dense=dense)


def _of_class(kind: str, k: int, table: Array) -> Influence:
    """(C4), the part that belongs to the row sums apart: t = T[k, k], r = row sum, s = column sum of class k."""
    t, r, s = float(table[k, k]), float(table[k].sum()), float(table[:, k].sum())
    own, row = np.zeros(len(table)), np.zeros(len(table))
    top, bottom, by_t = {"precision": (t, r, 1.0), "recall": (t, s, 1.0), "f1": (2 * t, r + s, 2.0)}[kind]
    if bottom <= 0:
        return Influence(own)
    value = top / bottom
    if kind != "recall":
        row[k] = -value / bottom
    if kind == "precision":
        own[k] = by_t / bottom
        return Influence(own, row=row)
    own[k] = (by_t - value) / bottom
    return Influence(own, k, np.full(len(table), -value / bottom), row=row)


def scales_at(metric: Metric, value: float, candidate: float) -> tuple[float, float]:
    """How much larger D is at points predicted as the metric's class, and at the others, if the metric is `candidate`.

    A ratio sum num / sum den is tested by sum (num - q den), whose terms depend on the candidate q: for recall a point
    of its class counts 1 - q where it is found and q where it is missed.
    """
    if metric.kind not in RATIO_TERMS:
        return 1.0, 1.0
    now, then = RATIO_TERMS[metric.kind](value), RATIO_TERMS[metric.kind](candidate)
    own, other = (min(b / a, 1e6) if a > 0 else 1.0 for a, b in zip(now, then, strict=True))
    return own, other


RATIO_TERMS: dict[str, Callable[[float], tuple[float, float]]] = {
    "recall": lambda q: (1 - q, q),
    "specificity": lambda q: (q, 1 - q),
    "f1": lambda q: (2 - q, q),
    "jaccard": lambda q: (1.0, q),
}
"""Spread of num - q den over the true classes of a point (predicted as the class, predicted as another one)."""
