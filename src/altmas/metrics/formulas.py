"""Metrics of a table T[predicted, true]: their formulas, and how a formula becomes a metric (docs/equations.md, 0).

T[..., a, c] = how many points the model calls a and the oracle calls c; cells may be fractions of a count.
t_k = T[k, k], r_k = row sum (predicted k), s_k = column sum (truly k), N = sum of T.
Nearly every metric needs only these margins, so one function of (t, r, s) gives its value for any leading
axes and, by a complex step, its exact gradient. Differences such as N - s_k are taken within one margin,
so that they are exactly 0 when they should be, even if the cells are fractions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from altmas.errors import MetricError
from altmas.metrics.metric import Metric, one_row, threshold_rows
from altmas.types import Array

OfMargins = Callable[[Array, Array, Array], Array]
OfClass = Callable[[int, Array, Array, Array], Array]

STEP = 1e-30
"""Complex step: no subtraction takes place, so it can be as small as floats go."""


# ---------------------------------------------------------------- values from margins, (0.1)-(0.9)


def _ratio(top: Array, bottom: Array) -> Array:
    """top / bottom, nan where the denominator is 0 (Z1, Z2)."""
    top, bottom = np.broadcast_arrays(top, bottom)
    undefined = np.real(bottom) == 0
    return np.where(undefined, np.nan, top / np.where(undefined, 1.0, bottom))


def _mean_of_defined(values: Array) -> Array:
    """Mean over the last axis of the values that are defined (Z1); nan if none is."""
    defined = ~np.isnan(values)
    return _ratio(np.where(defined, values, 0.0).sum(-1), defined.sum(-1))


def accuracy(t: Array, r: Array, s: Array) -> Array:
    """(0.1) share of points on which the model is right."""
    return _ratio(t.sum(-1), r.sum(-1))


def error(t: Array, r: Array, s: Array) -> Array:
    """Share of points on which the model is wrong."""
    return 1 - accuracy(t, r, s)


def precision(k: int, t: Array, r: Array, s: Array) -> Array:
    """(0.2) share of right ones among the points predicted k."""
    return _ratio(t[..., k], r[..., k])


def recall(k: int, t: Array, r: Array, s: Array) -> Array:
    """(0.3) share of the points truly k that are predicted k."""
    return _ratio(t[..., k], s[..., k])


def fbeta(k: int, beta: float, t: Array, r: Array, s: Array) -> Array:
    """(0.4) weighted harmonic mean of precision and recall of class k."""
    return _ratio((1 + beta**2) * t[..., k], r[..., k] + beta**2 * s[..., k])


def f1(k: int, t: Array, r: Array, s: Array) -> Array:
    """(0.4) with beta = 1."""
    return fbeta(k, 1.0, t, r, s)


def jaccard(k: int, t: Array, r: Array, s: Array) -> Array:
    """(0.5) intersection over union of predicted k and truly k."""
    return _ratio(t[..., k], r[..., k] + s[..., k] - t[..., k])


def specificity(k: int, t: Array, r: Array, s: Array) -> Array:
    """(0.6) share of the points not truly k that are not predicted k."""
    negatives = s.sum(-1) - s[..., k]
    return _ratio(negatives - (r[..., k] - t[..., k]), negatives)


def npv(k: int, t: Array, r: Array, s: Array) -> Array:
    """Share of the points not predicted k that are truly not k (negative predictive value)."""
    negatives = r.sum(-1) - r[..., k]
    return _ratio(negatives - (s[..., k] - t[..., k]), negatives)


def macro_precision(t: Array, r: Array, s: Array) -> Array:
    """(0.7) mean precision over the classes that are predicted."""
    return _mean_of_defined(_ratio(t, r))


def macro_recall(t: Array, r: Array, s: Array) -> Array:
    """(0.7) mean recall over the classes that occur; also called balanced accuracy."""
    return _mean_of_defined(_ratio(t, s))


def macro_f1(t: Array, r: Array, s: Array) -> Array:
    """(0.7) mean F1 over the classes that are predicted or occur."""
    return _mean_of_defined(_ratio(2 * t, r + s))


def kappa(t: Array, r: Array, s: Array) -> Array:
    """(0.8) Cohen's kappa: agreement beyond chance; N^2 - E is written sum_k r_k (N - s_k)."""
    n = s.sum(-1)
    by_chance = (r * s).sum(-1)
    return _ratio(n * t.sum(-1) - by_chance, (r * (n[..., None] - s)).sum(-1))


def _spread(margin: Array) -> Array:
    """N^2 - sum_k m_k^2, exactly 0 where one class holds everything."""
    return np.asarray((margin * (margin.sum(-1)[..., None] - margin)).sum(-1))


def mcc(t: Array, r: Array, s: Array) -> Array:
    """(0.9) Matthews correlation, multi-class; undefined where one side is constant."""

    product: Array = _spread(r) * _spread(s)
    undefined = np.real(product) <= 0
    above_chance = s.sum(-1) * t.sum(-1) - (r * s).sum(-1)
    return np.where(undefined, np.nan, above_chance / np.sqrt(np.where(undefined, 1.0, product)))


# ---------------------------------------------------------------- from formulas to Metric


def margins(table: Array) -> tuple[Array, Array, Array]:
    """(t, r, s), each (..., C), of a table (..., C, C)."""
    return np.diagonal(table, axis1=-2, axis2=-1), table.sum(-1), table.sum(-2)


def of_margins(name: str, of: OfMargins, **more: Any) -> Metric:
    """The metric whose value is of(t, r, s)."""

    def of_table(table: Array) -> Array:
        return of(*margins(np.asarray(table)))

    return Metric(name, of_table, lambda table: _slopes(of, np.asarray(table, np.float64)), **more)


def of_class(name: str, of: OfClass, k: int, **more: Any) -> Metric:
    """The metric of one class whose value is of(k, t, r, s).

    It depends on T only through the 2 x 2 table "k or not", so its gradient does too: C^2 work, not C^3.
    """

    def of_table(table: Array) -> Array:
        return of(k, *margins(np.asarray(table)))

    def gradient(table: Array) -> Array:
        inside = (np.arange(len(table)) == k).astype(int)
        member = np.eye(2)[:, inside]  # (2, C): rest, k
        slopes = _slopes(lambda t, r, s: of(1, t, r, s), member @ np.asarray(table, np.float64) @ member.T)
        return slopes[np.ix_(inside, inside)]

    return Metric(name, of_table, gradient, classes=(k,), **more)


def at_threshold(name: str, of: OfClass, k: int, threshold: float, n_classes: int, **more: Any) -> Metric:
    """The metric of one class at a threshold of its score: of(1, t, r, s) on the 2 x 2 table "reached" by "truly k"."""
    inside = (np.arange(n_classes) == k).astype(int)
    member = np.eye(2)[:, inside]  # (2, C): rest, k

    def of_table(table: Array) -> Array:
        return of(1, *margins(np.asarray(table) @ member.T))

    def gradient(table: Array) -> Array:
        slopes = _slopes(lambda t, r, s: of(1, t, r, s), np.asarray(table, np.float64) @ member.T)
        return slopes[:, inside]

    return Metric(name, of_table, gradient, classes=(k,), threshold=threshold, rows=threshold_rows, **more)


def of_truth(name: str, values: ArrayLike, **more: Any) -> Metric:
    """The mean of values[true] over the points, (S1): a share for values of 0 and 1. It needs no model."""
    weights = np.asarray(values, np.float64)

    def of_table(table: Array) -> Array:
        table = np.asarray(table)
        return _ratio((table * weights).sum((-2, -1)), table.sum((-2, -1)))

    def gradient(table: Array) -> Array:
        total = np.sum(table)
        spread = (weights - np.sum(table * weights) / total) / total if total else np.zeros_like(weights)
        return np.broadcast_to(spread, np.shape(table)).copy()

    bounds = (float(weights.min()), float(weights.max()))
    return Metric(name, of_table, gradient, bounds=bounds, rows=one_row, **more)


def weighted_kappa(name: str, power: int, values: tuple[float, ...]) -> Metric:
    """(S2) Cohen's kappa with disagreement |v_a - v_c|^power, v the values of the classes (by default their places)."""
    at = np.array(values)
    apart = np.abs(at[:, None] - at[None, :]) ** power

    def parts(table: Array) -> tuple[Array, Array, Array]:
        seen = (table * apart).sum((-2, -1))
        by_chance = np.einsum("...a,ac,...c->...", table.sum(-1), apart, table.sum(-2))
        return seen, by_chance, table.sum((-2, -1))

    def of_table(table: Array) -> Array:
        seen, by_chance, total = parts(np.asarray(table))
        return 1 - _ratio(total * seen, by_chance)

    def gradient(table: Array) -> Array:
        table = np.asarray(table, np.float64)
        seen, by_chance, total = (float(part) for part in parts(table))
        if by_chance <= 0:
            return np.zeros_like(table)
        of_chance = (apart @ table.sum(0))[:, None] + (table.sum(1) @ apart)[None, :]
        return np.asarray(-(seen + total * apart) / by_chance + total * seen / by_chance**2 * of_chance)

    return Metric(name, of_table, gradient, bounds=(-1.0, 1.0), kind="weighted_kappa", class_values=values)


def _slopes(of: OfMargins, table: Array) -> Array:
    """dQ/dT[a,c] = dQ/dt_a 1{a=c} + dQ/dr_a + dQ/ds_c, each by a complex step; 0 where undefined."""
    at = margins(table)
    nudge = 1j * STEP * np.eye(len(table))
    slopes = []
    for moved in range(3):
        nudged = [margin + nudge if number == moved else margin for number, margin in enumerate(at)]
        slopes.append(np.broadcast_to(np.imag(of(*nudged)) / STEP, len(table)))
    by_t, by_r, by_s = slopes
    return np.nan_to_num(np.diag(by_t) + by_r[:, None] + by_s[None, :])


def _linear(name: str, weights: Array, **more: Any) -> Metric:
    """The mean of weights[predicted, true] over the points."""

    def of_table(table: Array) -> Array:
        table = np.asarray(table)
        return _ratio((table * weights).sum((-2, -1)), table.sum((-2, -1)))

    def gradient(table: Array) -> Array:
        total = np.sum(table)
        return (weights - np.sum(table * weights) / total) / total if total else np.zeros_like(weights)

    return Metric(name, of_table, gradient, **more)


def confusion(name: str, a: int, c: int, n_classes: int) -> Metric:
    """Share of all points that are predicted a and truly c."""
    weights = np.zeros((n_classes, n_classes))
    weights[a, c] = 1.0
    return _linear(name, weights, kind="confusion", classes=(a, c))


def cost(name: str, matrix: ArrayLike, n_classes: int) -> Metric:
    """Mean cost of a point, matrix[predicted, true]; MetricError on a matrix of another shape."""
    expected = f"expected ({n_classes}, {n_classes}) finite numbers, rows = predicted class, columns = true class"
    try:
        weights = np.array(matrix, np.float64)
    except (TypeError, ValueError) as cause:
        raise MetricError(f"metric {name!r}: the cost matrix is not an array of numbers; {expected}") from cause
    if weights.shape != (n_classes, n_classes) or not np.isfinite(weights).all():
        raise MetricError(f"metric {name!r}: the cost matrix has shape {weights.shape}; {expected}")
    return _linear(name, weights, bounds=(float(weights.min()), float(weights.max())), kind="cost")


def positive(table: Array) -> Array:
    """The table with negative cells at 0 and the row sums kept: where gradients are taken, not the estimate itself."""
    cut = np.maximum(table, 0.0)
    sums = cut.sum(1, keepdims=True)
    row_sums = np.maximum(table.sum(1, keepdims=True), 0.0)
    return np.asarray(np.where(sums > 0, cut * row_sums / np.maximum(sums, 1e-300), cut))
