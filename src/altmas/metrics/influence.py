"""How the label of each point moves a metric, to first order: D_i(c) = dQ/dW[i, c] (docs/equations.md, S).

For a metric of a table D_i(c) = D[r_i, c] = dQ/dT[r_i, c], kept in its cheapest exact form. Row sums of T are known, so
a constant added to a row of D changes nothing. For most metrics that leaves D zero outside the diagonal and one column,
which keeps 1,000 classes and 2,000 metrics affordable; any other metric has a dense D. Metrics of scores have a D for
each point.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from altmas.belief import Belief
from altmas.metrics.weights import RowCodes, Weights
from altmas.types import Array

CHUNK = 2_000_000
"""Numbers of D that are looked at together where it has no shorter form."""


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
            rival_moment = belief.mean_over_rivals(self.dense**power)[belief.group]
        elif self.side is not None and self.column is not None:
            rival_moment = (belief.rivals_to(self.column) * self.side[owner] ** power)[belief.group]
        else:
            return np.asarray(belief.agree * own)
        return np.asarray(belief.agree * own + (1 - belief.agree) * rival_moment)

    def range(self) -> tuple[Array, Array]:
        """(smallest, largest), each (C,), of D over the true classes of a point, for each predicted class."""
        if self.dense is not None:
            return self.dense.min(1), self.dense.max(1)
        off_diagonal = np.zeros_like(self.own)
        if self.side is not None:
            off_diagonal = np.where(np.arange(len(self.own)) == self.column, 0.0, self.side)
        low, high = np.minimum(self.own, off_diagonal), np.maximum(self.own, off_diagonal)
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


# ---------------------------------------------------------------- at items


class ItemInfluence:
    """D_i(c) of every point; what it has to offer is `rows`, the rest may have a cheaper form.

    size, n_classes  N and C
    """

    size: int
    n_classes: int

    def rows(self, points: Array) -> Array:
        """(n, C) D_i(c) of these points."""
        raise NotImplementedError

    def constant(self) -> Array | float:
        """(N,) what was left out of D_i(c) for every c alike; it matters for random sampling alone."""
        return 0.0

    def at(self, points: Array, codes: Array) -> Array:
        """(n,) D_i(c) of these points with these labels."""
        return np.asarray(self.rows(points)[np.arange(len(points)), codes])

    def mean(self, points: Array, belief: Belief) -> Array:
        """(n,) E D_i(y) of these points when y follows the belief."""
        return np.asarray((belief.rows(points) * self.rows(points)).sum(1))

    def moments(self, belief: Belief) -> tuple[Array, Array]:
        """(mean, variance), each (N,), of D_i(y) when y follows the belief."""
        mean, variance = np.zeros(self.size), np.zeros(self.size)
        for points in self._chunks():
            believed, moves = belief.rows(points), self.rows(points)
            mean[points] = (believed * moves).sum(1)
            variance[points] = (believed * (moves - mean[points][:, None]) ** 2).sum(1)
        return mean, variance

    def third_moment(self, belief: Belief) -> Array:
        """(N,) E (D - E D)^3 of D_i(y) when y follows the belief."""
        third = np.zeros(self.size)
        for points in self._chunks():
            believed, moves = belief.rows(points), self.rows(points)
            centre = (believed * moves).sum(1)[:, None]
            third[points] = (believed * (moves - centre) ** 3).sum(1)
        return third

    def range(self) -> tuple[Array, Array]:
        """(smallest, largest), each (N,), of D_i over the classes."""
        low, high = np.zeros(self.size), np.zeros(self.size)
        for points in self._chunks():
            moves = self.rows(points)
            low[points], high[points] = moves.min(1), moves.max(1)
        return low, high

    def least_step(self, points: Array) -> float:
        """The smallest difference, above rounding, between D_i(c) of two classes at one of these points; else 0."""
        if self.n_classes == 2:
            low, high = self.range()
            return _least_positive((high - low)[points])
        least = [_least_positive(np.diff(np.sort(self.rows(chunk)))) for chunk in self._chunks(points)]
        return min((step for step in least if step > 0), default=0.0)

    def dot(self, new: Weights, old: Weights) -> float:
        """sum_i <new_i - old_i, D_i>, for weights with the same weight of every point."""
        total, points = 0.0, np.arange(self.size)
        for code in range(self.n_classes):
            moves = self.at(points, np.full(self.size, code))
            total += float(((new.of_class(code) - old.of_class(code)) * moves).sum())
        return total

    def spread(self, weights: Weights) -> float:
        """sum_i <W_i, (D_i - mean of D)^2>: N times the variance of D under random sampling."""
        total, mean, square = float(weights.mass.sum()), 0.0, 0.0
        if total <= 0:
            return 0.0
        points = np.arange(self.size)
        for code in range(self.n_classes):
            share = np.maximum(weights.of_class(code), 0.0)
            moves = self.at(points, np.full(self.size, code)) + self.constant()
            mean, square = mean + float((share * moves).sum()), square + float((share * moves**2).sum())
        return max(0.0, square - mean**2 / total)

    def _chunks(self, points: Array | None = None) -> Iterator[Array]:
        points = np.arange(self.size) if points is None else points
        step = max(1, CHUNK // max(self.n_classes, 1))
        for start in range(0, len(points), step):
            yield points[start : start + step]


@dataclass(frozen=True)
class TableItems(ItemInfluence):
    """D_i(c) = D[r_i, c] of a metric of a table."""

    row_codes: RowCodes
    cells: Influence
    n_classes: int

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.row_codes.codes)

    def rows(self, points: Array) -> Array:
        codes = self.row_codes.codes[points]
        return self.cells.at(codes[:, None], np.broadcast_to(np.arange(self.n_classes), (len(points), self.n_classes)))

    def at(self, points: Array, codes: Array) -> Array:
        return self.cells.at(self.row_codes.codes[points], codes)

    def constant(self) -> Array | float:
        return 0.0 if self.cells.row is None else self.cells.row[self.row_codes.codes]

    def moments(self, belief: Belief) -> tuple[Array, Array]:
        if self._anchored(belief):
            return self.cells.moments(belief)
        mean, square = (self._raw_moment(belief, power) for power in (1, 2))
        return mean, np.maximum(square - mean**2, 0.0)

    def third_moment(self, belief: Belief) -> Array:
        if self._anchored(belief):
            return self.cells.third_moment(belief)
        mean, square, cube = (self._raw_moment(belief, power) for power in (1, 2, 3))
        return np.asarray(cube - 3 * mean * square + 2 * mean**3)

    def range(self) -> tuple[Array, Array]:
        low, high = self.cells.range()
        return low[self.row_codes.codes], high[self.row_codes.codes]

    def least_step(self, points: Array) -> float:
        codes = np.unique(self.row_codes.codes[points])
        if self.cells.dense is None and self.cells.side is None:
            return _least_positive(np.abs(self.cells.own[codes]))
        moves = self.cells.at(codes[:, None], np.broadcast_to(np.arange(self.n_classes), (len(codes), self.n_classes)))
        return _least_positive(np.diff(np.sort(moves)))

    def dot(self, new: Weights, old: Weights) -> float:
        return self.cells.dot(new.table(self.row_codes) - old.table(self.row_codes))

    def spread(self, weights: Weights) -> float:
        return self.cells.spread(weights.table(self.row_codes))

    def _anchored(self, belief: Belief) -> bool:
        """Whether rows are the answers that the belief is anchored at, which has a shorter way."""
        same_count = self.row_codes.count == belief.n_classes
        return same_count and np.array_equal(self.row_codes.codes, belief.predictions)

    def _raw_moment(self, belief: Belief, power: int) -> Array:
        """(N,) E D[r_i, y]^power for row codes of any kind."""
        rows, cells = self.row_codes.codes, self.cells
        if cells.dense is not None:
            moves = cells.dense**power
            rival_moment = belief.mean_over_rivals_by(moves, rows)
            return np.asarray(belief.agree * moves[rows, belief.predictions] + (1 - belief.agree) * rival_moment)
        moment = belief.of_class(rows) * cells.own[rows] ** power
        if cells.side is not None and cells.column is not None:
            moment = moment + np.where(
                rows == cells.column, 0.0, belief.of_class(cells.column) * cells.side[rows] ** power
            )
        return np.asarray(moment)


@dataclass(frozen=True)
class ClassItems(ItemInfluence):
    """D_i(c) = moves_i where c is the class that counts at this point, else 0.

    moves     (N,)
    counted   the class that counts, one for all points or (N,)
    constants (N,) what was left out for every class alike
    """

    moves: Array
    counted: int | Array
    n_classes: int
    constants: Array | None = None

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.moves)

    @cached_property
    def _codes(self) -> Array:
        return np.broadcast_to(self.counted, self.size)

    def rows(self, points: Array) -> Array:
        dense = np.zeros((len(points), self.n_classes))
        dense[np.arange(len(points)), self._codes[points]] = self.moves[points]
        return dense

    def at(self, points: Array, codes: Array) -> Array:
        return np.where(codes == self._codes[points], self.moves[points], 0.0)

    def constant(self) -> Array | float:
        return 0.0 if self.constants is None else self.constants

    def mean(self, points: Array, belief: Belief) -> Array:
        return np.asarray(belief.rows(points)[np.arange(len(points)), self._codes[points]] * self.moves[points])

    def moments(self, belief: Belief) -> tuple[Array, Array]:
        chance = belief.of_class(self.counted)
        return chance * self.moves, chance * (1 - chance) * self.moves**2

    def third_moment(self, belief: Belief) -> Array:
        chance = belief.of_class(self.counted)
        return np.asarray(chance * (1 - chance) * (1 - 2 * chance) * self.moves**3)

    def range(self) -> tuple[Array, Array]:
        return np.minimum(self.moves, 0.0), np.maximum(self.moves, 0.0)

    def dot(self, new: Weights, old: Weights) -> float:
        return float(((new.of_class(self.counted) - old.of_class(self.counted)) * self.moves).sum())

    def spread(self, weights: Weights) -> float:
        mass = weights.mass
        total = float(mass.sum())
        if total <= 0:
            return 0.0
        inside, constant = np.maximum(weights.of_class(self.counted), 0.0), np.asarray(self.constant())
        outside = np.maximum(mass - inside, 0.0)
        mean = float((inside * (self.moves + constant) + outside * constant).sum())
        square = float((inside * (self.moves + constant) ** 2 + outside * constant**2).sum())
        return max(0.0, square - mean**2 / total)


@dataclass(frozen=True)
class DenseItems(ItemInfluence):
    """D_i(c) = moves[i, c], (N, C): as many numbers as the model's scores; constants (N,) as in `ClassItems`."""

    moves: Array
    constants: Array | None = None

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.moves)

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        return int(self.moves.shape[1])

    def rows(self, points: Array) -> Array:
        return np.asarray(self.moves[points])

    def at(self, points: Array, codes: Array) -> Array:
        return np.asarray(self.moves[points, codes])

    def constant(self) -> Array | float:
        return 0.0 if self.constants is None else self.constants


@dataclass(frozen=True)
class SumOfItems(ItemInfluence):
    """sum_k factor_k D_k, each D_k counted inside its mask (None: everywhere)."""

    parts: Sequence[tuple[float, ItemInfluence, Array | None]]

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.parts[0][1].size

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        return self.parts[0][1].n_classes

    def rows(self, points: Array) -> Array:
        total = np.zeros((len(points), self.n_classes))
        for factor, items, inside in self.parts:
            total += factor * items.rows(points) * (1.0 if inside is None else inside[points][:, None])
        return total

    def at(self, points: Array, codes: Array) -> Array:
        total = np.zeros(len(points))
        for factor, items, inside in self.parts:
            total += factor * items.at(points, codes) * (1.0 if inside is None else inside[points])
        return total

    def constant(self) -> Array | float:
        total = np.zeros(self.size)
        for factor, items, inside in self.parts:
            total += factor * items.constant() * (1.0 if inside is None else inside)
        return total


@dataclass(frozen=True)
class WeightedItems(ItemInfluence):
    """k_i D_i(c): how the label of a row that stands for k_i rows moves a metric.                               (W1)

    unit    D_i, by one unit of weight
    weight  (N,) k_i
    """

    unit: ItemInfluence
    weight: Array

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.unit.size

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        return self.unit.n_classes

    def rows(self, points: Array) -> Array:
        return np.asarray(self.weight[points][:, None] * self.unit.rows(points))

    def at(self, points: Array, codes: Array) -> Array:
        return np.asarray(self.weight[points] * self.unit.at(points, codes))

    def constant(self) -> Array | float:
        return self.weight * self.unit.constant()

    def mean(self, points: Array, belief: Belief) -> Array:
        return np.asarray(self.weight[points] * self.unit.mean(points, belief))

    def moments(self, belief: Belief) -> tuple[Array, Array]:
        mean, variance = self.unit.moments(belief)
        return self.weight * mean, self.weight**2 * variance

    def third_moment(self, belief: Belief) -> Array:
        return np.asarray(self.weight**3 * self.unit.third_moment(belief))

    def range(self) -> tuple[Array, Array]:
        low, high = self.unit.range()
        return self.weight * low, self.weight * high

    def dot(self, new: Weights, old: Weights) -> float:
        return self.unit.dot(new, old)  # W has the weights already

    def spread(self, weights: Weights) -> float:
        """sum_i k_i <W_i, (D_i - mean of D)^2>: rows of the expanded pool are what random sampling draws."""
        return self.unit.spread(weights)


def sum_of_items(parts: Sequence[tuple[float, ItemInfluence, Array | None]]) -> ItemInfluence:
    """`SumOfItems`, the weights of the rows outside of the sum; the influence itself if there is one part for all."""
    if len(parts) == 1 and parts[0][0] == 1.0 and parts[0][2] is None:
        return parts[0][1]
    first = parts[0][1]
    if not isinstance(first, WeightedItems):
        return SumOfItems(parts)
    unit = [
        (factor, items.unit if isinstance(items, WeightedItems) else items, inside) for factor, items, inside in parts
    ]
    return WeightedItems(SumOfItems(unit), first.weight)


def _least_positive(steps: Array) -> float:
    """The smallest of the steps that are more than rounding beside the largest; 0 if there is none."""
    steps = steps[steps > 1e-9 * float(steps.max(initial=0.0))]
    return float(steps.min()) if steps.size else 0.0
