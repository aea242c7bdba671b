"""How the label of each point moves a metric, to first order: D[a, c] = dQ/dT[a, c] in its cheapest exact form.

Row sums of T are known, so a constant added to a row of D changes nothing. For most metrics that leaves D zero outside
the diagonal and one column, which keeps 1,000 classes and 2,000 metrics affordable; any other metric has a dense D.
"""

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
        first, second = self._rival_moments(belief)
        own = self.own[belief.predictions]
        wrong = 1 - belief.agree
        mean = belief.agree * own + wrong * first[belief.group]
        square = belief.agree * own**2 + wrong * second[belief.group]
        return mean, np.maximum(square - mean**2, 0.0)

    def _rival_moments(self, belief: Belief) -> tuple[Array, Array]:
        """(G,) mean and mean square of D over the rivals of each group."""
        owner = belief.predicted_of_group
        if self.dense is not None:
            rows = self.dense[owner]
            return (belief.rivals * rows).sum(1), (belief.rivals * rows**2).sum(1)
        if self.side is None:
            zero = np.zeros(len(owner))
            return zero, zero
        share, side = belief.rivals[:, self.column], self.side[owner]
        return share * side, share * side**2

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
