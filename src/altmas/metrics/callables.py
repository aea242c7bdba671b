"""Any function f(y_true, y_pred[, sample_weight]) -> float as a metric: scikit-learn's, or a user's own."""

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from altmas.errors import MetricError
from altmas.metrics.metric import Metric
from altmas.types import Array

ROWS = 10_000
"""Rows that stand for a table of fractions when the function takes no sample weights."""

NUDGE = 1e-5
"""Step of the gradient, as a share of the table's total."""


def from_callable(function: Callable[..., float], classes: Sequence[str | int], name: str | None = None) -> Metric:
    """The metric that a function of labels computes; MetricError if it fails on a table in which all classes occur.

    A function that takes `sample_weight` gets the cells of the table as weighted rows; any other gets each cell
    repeated, which is exact for counts (fractions are rounded to shares of 10,000 rows). What the function cannot
    say about a table without some class (it raises ValueError or divides by zero) is undefined, nan.
    Its bounds are those it declares (`function.bounds = (0, 1)`) or that a score of scikit-learn is known to have;
    otherwise (-inf, inf).
    """
    label = name or name_of(function)
    value = _weighted(function, classes) if takes_weights(function) else _repeated(function, classes)
    one_of_each = np.eye(len(classes)) + np.roll(np.eye(len(classes)), 1, axis=1)
    _try(label, value, one_of_each)

    def of_table(table: Array) -> Array:
        table = np.asarray(table, np.float64)
        flat = table.reshape(-1, *table.shape[-2:])
        return np.array([_defined(value, matrix) for matrix in flat]).reshape(table.shape[:-2])

    def gradient(table: Array) -> Array:
        return _differences(value, np.maximum(np.asarray(table, np.float64), 0.0), takes_weights(function))

    return Metric(label, of_table, gradient, bounds=bounds_of(function, label), kind="callable")


BETWEEN_0_AND_1 = (
    "accuracy_score",
    "average_precision_score",
    "balanced_accuracy_score",
    "f1_score",
    "fbeta_score",
    "hamming_loss",
    "jaccard_score",
    "precision_score",
    "recall_score",
    "roc_auc_score",
    "zero_one_loss",
)
BETWEEN_MINUS_1_AND_1 = ("cohen_kappa_score", "matthews_corrcoef")
"""Scores of scikit-learn with known bounds."""


def bounds_of(function: Callable[..., float], label: str) -> tuple[float, float]:
    """Smallest and largest value of a function: declared, or known of a scikit-learn score in its usual form."""
    declared = getattr(function, "bounds", None)
    if declared is not None:
        try:
            low, high = (float(end) for end in declared)
        except (TypeError, ValueError):
            low = high = np.nan
        if not low < high:
            raise MetricError(f"metric {label!r} declares bounds {declared!r}; expected two numbers, the smaller first")
        return low, high
    whole = function.func if isinstance(function, functools.partial) else function
    if not str(getattr(whole, "__module__", "")).startswith("sklearn."):
        return -np.inf, np.inf
    options = function.keywords if isinstance(function, functools.partial) else {}
    if options.get("normalize") is False or options.get("adjusted") is True:  # counts, or shifted below 0
        return -np.inf, np.inf
    name = getattr(whole, "__name__", "")
    known = {name: (0.0, 1.0) for name in BETWEEN_0_AND_1} | {name: (-1.0, 1.0) for name in BETWEEN_MINUS_1_AND_1}
    return known.get(name, (-np.inf, np.inf))


def name_of(function: Callable[..., float]) -> str:
    """How a function is called in results: `f1_score(average='macro')` for a partial."""
    if isinstance(function, functools.partial):
        arguments = [repr(value) for value in function.args] + [
            f"{key}={value!r}" for key, value in function.keywords.items()
        ]
        return f"{name_of(function.func)}({', '.join(arguments)})"
    return str(getattr(function, "__name__", type(function).__name__))


def takes_weights(function: Callable[..., float]) -> bool:
    """Whether the function has a parameter `sample_weight` that is still free."""
    if isinstance(function, functools.partial) and "sample_weight" in function.keywords:
        return False
    try:
        return "sample_weight" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _weighted(function: Callable[..., float], classes: Sequence[str | int]) -> Callable[[Array], float]:
    names, predicted, true = _cells(classes)

    def value(table: Array) -> float:
        cells = table.ravel()
        occupied = cells > 0
        if not occupied.any():
            return np.nan
        return float(function(names[true[occupied]], names[predicted[occupied]], sample_weight=cells[occupied]))

    return value


def _repeated(function: Callable[..., float], classes: Sequence[str | int]) -> Callable[[Array], float]:
    names, predicted, true = _cells(classes)

    def value(table: Array) -> float:
        counts = whole_counts(table).ravel()
        if not counts.any():
            return np.nan
        return float(function(names[np.repeat(true, counts)], names[np.repeat(predicted, counts)]))

    return value


def _cells(classes: Sequence[str | int]) -> tuple[Array, Array, Array]:
    """The class names, and the predicted and the true code of each cell of the flattened table."""
    predicted, true = np.indices((len(classes), len(classes)))
    return np.asarray(classes), predicted.ravel(), true.ravel()


def whole_counts(table: Array) -> NDArray[np.int64]:
    """The table itself if its cells are counts, else 10,000 rows in its proportions (largest remainders)."""
    table = np.maximum(table, 0.0)
    if (table == np.round(table)).all():
        return table.astype(np.int64)
    share = table * (ROWS / table.sum())
    counts: NDArray[np.int64] = np.floor(share).astype(np.int64)
    order = np.argsort((counts - share).ravel(), kind="stable")
    counts.flat[order[: ROWS - counts.sum()]] += 1
    return counts


@contextmanager
def quiet() -> Iterator[None]:
    """No warning is shown about undefined values, which are nan."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _try(label: str, value: Callable[[Array], float], table: Array) -> None:
    try:
        with quiet():
            value(table)
    except Exception as cause:
        raise MetricError(
            f"metric {label!r} failed on labels of this pool's classes ({type(cause).__name__}: {cause}); "
            "expected f(y_true, y_pred[, sample_weight]) that returns one number"
        ) from cause


def _defined(value: Callable[[Array], float], table: Array) -> float:
    """The value, or nan where the function refuses this table."""
    try:
        with quiet():
            return value(table)
    except (ValueError, ZeroDivisionError):
        return np.nan


def _differences(value: Callable[[Array], float], table: Array, weighted: bool) -> Array:
    """dQ/dT by differences: a small share of the table up and down, or one row where rows are repeated.

    A class whose row or column is empty is left alone, as its appearance would be a jump and not a slope.
    """
    at = table if weighted else whole_counts(table).astype(np.float64)
    slope = np.zeros_like(at)
    for a, c in np.argwhere(np.outer(at.sum(1) > 0, at.sum(0) > 0)):
        full = NUDGE * at.sum() if weighted else 1.0
        down_by = min(full, at[a, c] / 2) if weighted else min(full, at[a, c])
        up, down = at.copy(), at.copy()
        up[a, c] += down_by or full
        down[a, c] -= down_by
        slope[a, c] = (_defined(value, up) - _defined(value, down)) / (up[a, c] - down[a, c])
    return np.nan_to_num(slope) * (at.sum() / table.sum() if table.sum() else 0.0)
