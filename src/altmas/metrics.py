"""Metrics as functions of the table T[predicted, true] (methods.md 0.2), and their names.

T[..., a, c] = how many points the model calls a and the oracle calls c; cells may be fractions of a count.
t_k = T[k, k], r_k = row sum (predicted k), s_k = column sum (truly k), N = sum of T.
Nearly every metric needs only these margins, so one function of (t, r, s) gives its value for any leading
axes and, by a complex step, its exact gradient.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from altmas.errors import MetricError
from altmas.pool import Name, Pool
from altmas.suggest import listing, near

Array = NDArray[Any]
OfTable = Callable[[Array], Array]
OfMargins = Callable[[Array, Array, Array], Array]

STEP = 1e-30
"""Complex step: no subtraction takes place, so it can be as small as floats go."""


@dataclass(frozen=True)
class Metric:
    """One number of interest: Q(T) of the table of the points in `where` (paper Eq. 1).

    name      how users, files and reports call it
    of_table  (..., C, C) -> (...); undefined is nan
    gradient  (C, C) -> (C, C); dQ/dT[a, c], 0 where Q is undefined
    bounds    smallest and largest value the metric can take
    where     (slice name, value) that restricts it, or None for the whole pool
    kind      the family, e.g. "recall", for methods with closed forms
    classes   codes of the classes in its name
    """

    name: str
    of_table: OfTable
    gradient: Callable[[Array], Array]
    bounds: tuple[float, float] = (0.0, 1.0)
    where: tuple[str, str] | None = None
    kind: str = "callable"
    classes: tuple[int, ...] = ()

    def members(self, pool: Pool) -> NDArray[np.bool_] | None:
        """(N,) which points the metric is about, or None for all of them."""
        return None if self.where is None else pool.slices[self.where[0]] == self.where[1]


# ---------------------------------------------------------------- values from margins, (0.1)-(0.9)


def _ratio(top: Array, bottom: Array) -> Array:
    """top / bottom, nan where the denominator is 0 (Z1, Z2)."""
    top, bottom = np.broadcast_arrays(top, bottom)
    undefined = bottom == 0
    value = top / np.where(undefined, 1.0, bottom)
    return np.where(undefined, np.nan, value)


def _mean_of_defined(values: Array) -> Array:
    """Mean over the last axis of the values that are defined (Z1); nan if none is."""
    defined = ~np.isnan(values)
    return _ratio(np.where(defined, values, 0.0).sum(-1), defined.sum(-1))


def accuracy(t: Array, r: Array, s: Array) -> Array:
    """(0.1) share of points on which the model is right."""
    return _ratio(t.sum(-1), r.sum(-1))


def precision(k: int, t: Array, r: Array, s: Array) -> Array:
    """(0.2) share of right ones among the points predicted k."""
    return _ratio(t[..., k], r[..., k])


def recall(k: int, t: Array, r: Array, s: Array) -> Array:
    """(0.3) share of the points truly k that are predicted k."""
    return _ratio(t[..., k], s[..., k])


def fbeta(k: int, beta: float, t: Array, r: Array, s: Array) -> Array:
    """(0.4) weighted harmonic mean of precision and recall of class k."""
    return _ratio((1 + beta**2) * t[..., k], r[..., k] + beta**2 * s[..., k])


def jaccard(k: int, t: Array, r: Array, s: Array) -> Array:
    """(0.5) intersection over union of predicted k and truly k."""
    return _ratio(t[..., k], r[..., k] + s[..., k] - t[..., k])


def specificity(k: int, t: Array, r: Array, s: Array) -> Array:
    """(0.6) share of the points not truly k that are not predicted k."""
    n = r.sum(-1)
    return _ratio(n - r[..., k] - s[..., k] + t[..., k], n - s[..., k])


def npv(k: int, t: Array, r: Array, s: Array) -> Array:
    """Share of the points not predicted k that are truly not k (negative predictive value)."""
    n = r.sum(-1)
    return _ratio(n - r[..., k] - s[..., k] + t[..., k], n - r[..., k])


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
    """(0.8) Cohen's kappa: agreement beyond chance."""
    n, chance = r.sum(-1), (r * s).sum(-1)
    return _ratio(n * t.sum(-1) - chance, n**2 - chance)


def mcc(t: Array, r: Array, s: Array) -> Array:
    """(0.9) Matthews correlation, multi-class; 0 where one side is constant, as scikit-learn has it."""
    n = r.sum(-1)
    product = (n**2 - (r**2).sum(-1)) * (n**2 - (s**2).sum(-1))
    constant = product == 0
    value = (n * t.sum(-1) - (r * s).sum(-1)) / np.sqrt(np.where(constant, 1.0, product))
    return np.where(constant, 0.0, value)


# ---------------------------------------------------------------- from margins, tables and callables to Metric


def margins(table: Array) -> tuple[Array, Array, Array]:
    """(t, r, s), each (..., C), of a table (..., C, C)."""
    return np.diagonal(table, axis1=-2, axis2=-1), table.sum(-1), table.sum(-2)


def _of_margins(name: str, of: OfMargins, **more: Any) -> Metric:
    def of_table(table: Array) -> Array:
        return of(*margins(np.asarray(table)))

    def gradient(table: Array) -> Array:
        """dQ/dT[a,c] = dQ/dt_a 1{a=c} + dQ/dr_a + dQ/ds_c, each by a complex step."""
        at = np.stack(margins(np.asarray(table, np.float64)))  # (3, C)
        n_classes = at.shape[1]
        nudge = 1j * STEP * np.eye(3 * n_classes).reshape(3, n_classes, 3, n_classes)
        with np.errstate(all="ignore"):
            by_t, by_r, by_s = (np.imag(of(*np.moveaxis(at + one, 1, 0))) / STEP for one in nudge)
        return np.nan_to_num(np.diag(by_t) + by_r[:, None] + by_s[None, :], nan=0.0, posinf=0.0, neginf=0.0)

    return Metric(name, of_table, gradient, **more)


def _linear(name: str, weights: Array, **more: Any) -> Metric:
    """The mean of weights[predicted, true] over the points."""

    def of_table(table: Array) -> Array:
        return _ratio((table * weights).sum((-2, -1)), table.sum((-2, -1)))

    def gradient(table: Array) -> Array:
        total = table.sum()
        return (weights - (table * weights).sum() / total) / total if total else np.zeros_like(weights)

    return Metric(name, of_table, gradient, **more)


def confusion(name: str, a: int, c: int, n_classes: int) -> Metric:
    """Share of all points that are predicted a and truly c."""
    weights = np.zeros((n_classes, n_classes))
    weights[a, c] = 1.0
    return _linear(name, weights, kind="confusion", classes=(a, c))


def cost(name: str, matrix: ArrayLike, n_classes: int) -> Metric:
    """Mean cost of a point, matrix[predicted, true]."""
    weights = np.asarray(matrix, np.float64)
    if weights.shape != (n_classes, n_classes) or not np.isfinite(weights).all():
        raise MetricError(
            f"metric {name!r}: the cost matrix has shape {weights.shape}; expected ({n_classes}, {n_classes}) finite "
            "numbers, rows = predicted class, columns = true class"
        )
    return _linear(name, weights, bounds=(float(weights.min()), float(weights.max())), kind="cost")


def from_callable(function: Callable[..., float], classes: Sequence[Name], name: str | None = None) -> Metric:
    """Any f(y_true, y_pred[, sample_weight]) -> float as a metric.

    With `sample_weight` the cells of the table are passed as weighted rows; without, each cell is repeated as
    often as its (rounded) count says, which is exact for tables of counts. Bounds are unknown, so (-inf, inf).
    """
    label = name or str(getattr(function, "__name__", type(function).__name__))
    names = np.asarray(classes)
    predicted, true = (axis.ravel() for axis in np.indices((len(classes), len(classes))))
    weighted = _takes_weights(function)

    def value(table: Array) -> float:
        cells = np.maximum(np.asarray(table, np.float64).ravel(), 0.0)
        if weighted:
            kept = cells > 0
            rows: tuple[Array, Array] = (names[true[kept]], names[predicted[kept]])
            arguments = {"sample_weight": cells[kept]}
        else:
            counts = np.round(cells).astype(int)
            rows, arguments = (names[np.repeat(true, counts)], names[np.repeat(predicted, counts)]), {}
        if len(rows[0]) == 0:
            return np.nan
        return float(function(*rows, **arguments))

    def of_table(table: Array) -> Array:
        table = np.asarray(table, np.float64)
        flat = table.reshape(-1, *table.shape[-2:])
        return np.array([value(one) for one in flat]).reshape(table.shape[:-2])

    def gradient(table: Array) -> Array:
        """Finite differences: one unit up and down, exact to first order at the scale of single labels."""
        table = np.maximum(np.asarray(table, np.float64), 0.0)
        slope = np.zeros_like(table)
        for cell in np.ndindex(*table.shape):
            up, down = table.copy(), table.copy()
            up[cell] += 1.0
            down[cell] -= min(1.0, down[cell])
            slope[cell] = (value(up) - value(down)) / (up[cell] - down[cell])
        return np.nan_to_num(slope)

    return Metric(label, of_table, gradient, bounds=(-np.inf, np.inf), kind="callable")


def _takes_weights(function: Callable[..., float]) -> bool:
    try:
        return "sample_weight" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


# ---------------------------------------------------------------- names

WHOLE: dict[str, tuple[OfMargins, tuple[float, float]]] = {
    "accuracy": (accuracy, (0, 1)),
    "error": (lambda t, r, s: 1 - accuracy(t, r, s), (0, 1)),
    "balanced_accuracy": (macro_recall, (0, 1)),
    "macro_precision": (macro_precision, (0, 1)),
    "macro_recall": (macro_recall, (0, 1)),
    "macro_f1": (macro_f1, (0, 1)),
    "kappa": (kappa, (-1, 1)),
    "mcc": (mcc, (-1, 1)),
}
"""Metrics of the whole table, by name."""

PER_CLASS: dict[str, Callable[[int, Array, Array, Array], Array]] = {
    "precision": precision,
    "recall": recall,
    "specificity": specificity,
    "npv": npv,
    "f1": lambda k, t, r, s: fbeta(k, 1.0, t, r, s),
    "jaccard": jaccard,
}
"""Metrics of one class, by name."""

SYNONYMS = {"sensitivity": "recall", "tpr": "recall", "ppv": "precision", "tnr": "specificity"}
SETS = ("per_class", "paper")
NAME = re.compile(r"^(?P<kind>\w+)(?:\[(?P<arguments>.*)\])?(?:@(?P<slice>[^=]+)=(?P<value>.*))?$", re.DOTALL)

MetricLike = str | Callable[..., float] | Metric | tuple[str, Any]
"""A name, a callable, a Metric, or ("cost", matrix)."""


def names() -> list[str]:
    """Every metric name, as it is written in messages and help."""
    per_class = [f"{kind}[class]" for kind in (*PER_CLASS, *SYNONYMS)]
    return [*WHOLE, *per_class, "fbeta[class,beta]", "confusion[predicted,true]", "cost", *SETS]


def metric_set(wanted: Iterable[MetricLike], pool: Pool) -> tuple[Metric, ...]:
    """The metrics asked for, sets expanded and each name once; MetricError with the near name if there is none.

    A metric that can never be defined on this pool (precision of a class that is never predicted) is refused (Z1);
    inside `per_class` and `paper` such a class is left out.
    """
    if isinstance(wanted, str) or callable(wanted):
        wanted = [wanted]
    found: dict[str, Metric] = {}
    for one in wanted:
        for metric in _expand(one, pool):
            found.setdefault(metric.name, metric)
    if not found:
        raise MetricError(f"no metric was asked for; choose from {', '.join(names())}, or pass a callable")
    return tuple(found.values())


def _expand(wanted: MetricLike, pool: Pool) -> list[Metric]:
    if isinstance(wanted, Metric):
        return [wanted]
    if isinstance(wanted, tuple):
        kind, matrix = wanted
        if kind != "cost":
            raise MetricError(f"metric {wanted!r} was not understood; a pair must be ('cost', matrix)")
        return [cost("cost", matrix, len(pool.classes))]
    if callable(wanted):
        return [from_callable(wanted, pool.classes)]
    match = NAME.match(wanted.strip())
    if match is None:
        raise MetricError(f"metric {wanted!r} was not understood; choose from {', '.join(names())}")
    where = _where(wanted, match, pool)
    suffix = f"@{where[0]}={where[1]}" if where else ""
    if match["kind"] in SETS:
        return [_on_slice(metric, where, suffix) for metric in _named_set(match["kind"], pool)]
    return [_on_slice(_one(wanted, match["kind"], match["arguments"], pool, where), where, suffix)]


def _named_set(name: str, pool: Pool) -> list[Metric]:
    """`per_class`: every precision and recall; `paper`: accuracy as well (21 metrics when C = 10)."""
    predicted = np.bincount(pool.predictions, minlength=len(pool.classes)) > 0
    codes = range(len(pool.classes))
    members = [_class_metric("precision", k, pool) for k in codes if predicted[k]]
    members += [_class_metric("recall", k, pool) for k in codes]
    whole = [_of_margins("accuracy", accuracy, kind="accuracy")] if name == "paper" else []
    return whole + members


def _class_metric(kind: str, k: int, pool: Pool) -> Metric:
    of = PER_CLASS[kind]
    return _of_margins(f"{kind}[{pool.classes[k]}]", lambda t, r, s: of(k, t, r, s), kind=kind, classes=(k,))


def _one(wanted: str, kind: str, arguments: str | None, pool: Pool, where: tuple[str, str] | None) -> Metric:
    kind = SYNONYMS.get(kind, kind)
    if kind in WHOLE and arguments is None:
        of, bounds = WHOLE[kind]
        return _of_margins(kind, of, bounds=(float(bounds[0]), float(bounds[1])), kind=kind)
    if kind in PER_CLASS and arguments is not None:
        k = _class_code(wanted, arguments, pool)
        _refuse_never_predicted(wanted, kind, k, pool, where)
        return _class_metric(kind, k, pool)
    if kind == "fbeta" and arguments is not None and "," in arguments:
        name, _, number = arguments.rpartition(",")
        return _fbeta_metric(wanted, _class_code(wanted, name, pool), number, pool)
    if kind == "confusion" and arguments is not None:
        a, c = _two_classes(wanted, arguments, pool)
        return confusion(f"confusion[{pool.classes[a]},{pool.classes[c]}]", a, c, len(pool.classes))
    raise MetricError(_not_understood(wanted, kind, arguments, pool))


def _not_understood(wanted: str, kind: str, arguments: str | None, pool: Pool) -> str:
    example = pool.classes[0]
    if kind in (*PER_CLASS, "fbeta", "confusion") and arguments is None:
        return f"metric {wanted!r} needs a class, e.g. '{kind}[{example}]'; classes are {listing(pool.classes)}"
    if kind in WHOLE:
        return f"metric {wanted!r}: {kind} takes no class; write '{kind}'"
    if kind == "cost":
        return "metric 'cost' needs a matrix: pass ('cost', matrix[predicted, true]) as the metric"
    if kind == "fbeta":
        return f"metric {wanted!r}: write the class and beta, e.g. 'fbeta[{example},2]'"
    hint = near(kind, [*WHOLE, *PER_CLASS, *SYNONYMS, "fbeta", "confusion", "cost", *SETS])
    return f"metric {wanted!r} does not exist{hint or ';'} known metrics: {', '.join(names())}, or any callable"


def _fbeta_metric(wanted: str, k: int, number: str, pool: Pool) -> Metric:
    try:
        beta = float(number)
    except ValueError:
        beta = np.nan
    if not (np.isfinite(beta) and beta > 0):
        raise MetricError(f"metric {wanted!r}: beta must be a positive number, got {number.strip()!r}")
    return _of_margins(
        f"fbeta[{pool.classes[k]},{beta:g}]", lambda t, r, s: fbeta(k, beta, t, r, s), kind="fbeta", classes=(k,)
    )


def _class_code(wanted: str, name: str, pool: Pool) -> int:
    code = {str(known): code for code, known in enumerate(pool.classes)}.get(name.strip())
    if code is None:
        raise MetricError(
            f"metric {wanted!r}: {name.strip()!r} is not a class of this pool (expected one of "
            f"{listing(pool.classes)}){near(name.strip(), pool.classes)}"
        )
    return code


def _two_classes(wanted: str, arguments: str, pool: Pool) -> tuple[int, int]:
    """Predicted and true class of `confusion[a,c]`; class names may hold commas themselves."""
    pieces = arguments.split(",")
    known = {str(name) for name in pool.classes}
    for cut in range(1, len(pieces)):
        a, c = ",".join(pieces[:cut]).strip(), ",".join(pieces[cut:]).strip()
        if a in known and c in known:
            return _class_code(wanted, a, pool), _class_code(wanted, c, pool)
    if len(pieces) == 2:
        return _class_code(wanted, pieces[0], pool), _class_code(wanted, pieces[1], pool)
    raise MetricError(f"metric {wanted!r}: write two classes, e.g. 'confusion[{pool.classes[0]},{pool.classes[1]}]'")


def _refuse_never_predicted(wanted: str, kind: str, k: int, pool: Pool, where: tuple[str, str] | None) -> None:
    inside = pool.predictions if where is None else pool.predictions[pool.slices[where[0]] == where[1]]
    if kind == "precision" and not (inside == k).any():
        raise MetricError(
            f"metric {wanted!r} can never be defined: the model predicts {pool.classes[k]!r} for no point"
            f"{' of this slice' if where else ''}; ask for 'recall[{pool.classes[k]}]' instead"
        )


def _where(wanted: str, match: re.Match[str], pool: Pool) -> tuple[str, str] | None:
    name, value = match["slice"], match["value"]
    if name is None:
        return None
    if name not in pool.slices:
        known = listing(pool.slices) if pool.slices else "none: pass slices={...} to the pool"
        raise MetricError(
            f"metric {wanted!r}: no slice {name!r} in this pool (known: {known}){near(name, pool.slices)}"
        )
    values = np.unique(pool.slices[name])
    if value not in values:
        raise MetricError(
            f"metric {wanted!r}: slice {name!r} never takes the value {value!r} (known: {listing(values.tolist())})"
            f"{near(value, values.tolist())}"
        )
    return name, value


def _on_slice(metric: Metric, where: tuple[str, str] | None, suffix: str) -> Metric:
    if where is None:
        return metric
    return Metric(
        metric.name + suffix, metric.of_table, metric.gradient, metric.bounds, where, metric.kind, metric.classes
    )


# ---------------------------------------------------------------- tables


def table_of(predictions: Array, truth: Array, n_classes: int, weights: Array | None = None) -> Array:
    """T[predicted, true], (C, C), of points with known truth; weighted counts when weights are given."""
    cells = np.bincount(predictions * n_classes + truth, weights, minlength=n_classes**2)
    return cells.reshape(n_classes, n_classes).astype(np.float64)


def truth_values(pool: Pool, truth: Array, metrics: Sequence[Metric]) -> Mapping[str, float]:
    """Q* of every metric when each label of the pool is known (codes)."""
    values = {}
    for metric in metrics:
        members = metric.members(pool)
        rows = slice(None) if members is None else members
        table = table_of(pool.predictions[rows], np.asarray(truth)[rows], len(pool.classes))
        values[metric.name] = float(metric.of_table(table))
    return values
