"""The names of metrics, such as "recall[cat]@scanner=A", and the metrics they stand for."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from altmas.errors import MetricError
from altmas.metrics import formulas
from altmas.metrics.callables import from_callable
from altmas.metrics.formulas import Metric, OfClass, OfMargins, confusion, cost, of_class, of_margins
from altmas.pool import Pool
from altmas.suggest import listing, near
from altmas.types import Array

WHOLE: dict[str, tuple[OfMargins, tuple[float, float]]] = {
    "accuracy": (formulas.accuracy, (0.0, 1.0)),
    "error": (formulas.error, (0.0, 1.0)),
    "balanced_accuracy": (formulas.macro_recall, (0.0, 1.0)),
    "macro_precision": (formulas.macro_precision, (0.0, 1.0)),
    "macro_recall": (formulas.macro_recall, (0.0, 1.0)),
    "macro_f1": (formulas.macro_f1, (0.0, 1.0)),
    "kappa": (formulas.kappa, (-1.0, 1.0)),
    "mcc": (formulas.mcc, (-1.0, 1.0)),
}
"""Metrics of the whole table, by name."""

PER_CLASS: dict[str, OfClass] = {
    "precision": formulas.precision,
    "recall": formulas.recall,
    "specificity": formulas.specificity,
    "npv": formulas.npv,
    "f1": formulas.f1,
    "jaccard": formulas.jaccard,
}
"""Metrics of one class, by name."""

SYNONYMS = {"sensitivity": "recall", "tpr": "recall", "ppv": "precision", "tnr": "specificity"}
SETS = ("per_class", "paper")
KIND = re.compile(r"\s*(\w+)\s*")

MetricLike = str | Callable[..., float] | Metric | tuple[str, Any]
"""A name, a callable, a Metric, or a pair: (name, callable) or ("cost", matrix)."""

Where = tuple[str, str] | None
"""Name and value of the slice that a metric is restricted to."""


def names() -> list[str]:
    """Every metric name, as it is written in messages and help."""
    per_class = [f"{kind}[class]" for kind in (*PER_CLASS, *SYNONYMS)]
    return [*WHOLE, *per_class, "fbeta[class,beta]", "confusion[predicted,true]", "cost", *SETS]


def metric_set(wanted: MetricLike | Iterable[MetricLike], pool: Pool) -> tuple[Metric, ...]:
    """The metrics asked for, sets expanded and each name once; MetricError with the near name if there is none.

    A metric that can never be defined on this pool (precision of a class that is never predicted) is refused (Z1);
    inside `per_class` and `paper` such a class is left out.
    """
    listed: list[Any] = [wanted] if is_one(wanted) else list(wanted)  # type: ignore[arg-type]
    found: dict[str, Metric] = {}
    origins: dict[str, Any] = {}
    for one in listed:
        for metric in _expand(one, pool):
            if found.setdefault(metric.name, metric) is not metric:
                _refuse_namesake(metric, found[metric.name], one is origins[metric.name])
            origins.setdefault(metric.name, one)
    if not found:
        raise MetricError(f"no metric was asked for; choose from {', '.join(names())}, or pass a callable")
    for metric in found.values():
        if not pool.models and metric.kind not in OF_THE_TRUTH:
            raise MetricError(f"metric {metric.name!r} is about a model, and this pool has none; pass its predictions")
    return tuple(found.values())


OF_THE_TRUTH: frozenset[str] = frozenset()
"""Kinds of metrics that look at the truth alone: a pool without a model can be asked for these."""


def is_one(wanted: Any) -> bool:
    """Whether this is one metric (a name, a function, a pair), not several."""
    pair = isinstance(wanted, tuple) and len(wanted) == 2 and isinstance(wanted[0], str)
    named = pair and not isinstance(wanted[1], str | tuple | Metric)
    return isinstance(wanted, str | Metric) or callable(wanted) or not isinstance(wanted, Iterable) or named


def _refuse_namesake(metric: Metric, other: Metric, same_origin: bool) -> None:
    """Built-in names always mean the same; functions and cost matrices may not."""
    if {metric.kind, other.kind} & {"callable", "cost"} and not same_origin:
        raise MetricError(
            f"two different metrics are called {metric.name!r}; give one of them another name: ('name', function)"
        )


def _expand(wanted: MetricLike, pool: Pool) -> list[Metric]:
    """The metrics that one wish stands for: several for a set."""
    if isinstance(wanted, Metric):
        _values_of_slice(wanted.name, wanted.where[0] if wanted.where else None, pool)
        return [wanted]
    if isinstance(wanted, str):
        return _first_that_works([partial(_read, wanted, reading, pool) for reading in _readings(wanted)], wanted)
    if isinstance(wanted, tuple):
        return [_of_pair(wanted, pool)]
    if callable(wanted):
        return [from_callable(wanted, pool.classes)]
    raise MetricError(f"metric {wanted!r} was not understood; expected a name, a callable or ('cost', matrix)")


# ---------------------------------------------------------------- reading a name

Reading = tuple[str, str | None, str]
"""kind, what stands between the brackets, and what follows them."""


def _readings(wanted: str) -> Iterator[Reading]:
    """Every way to read a name; class names and slice values may hold brackets, '@' and '=' themselves."""
    start = KIND.match(wanted)
    if start is None:
        return
    kind, rest = start[1].lower(), wanted[start.end() :]
    if not rest.startswith("["):
        if not rest or rest.startswith("@"):
            yield kind, None, rest
        return
    for end in reversed([place for place, letter in enumerate(rest) if letter == "]"]):
        tail = rest[end + 1 :]
        if not tail.strip() or tail.lstrip().startswith("@"):
            yield kind, rest[1:end], tail.lstrip()


def _first_that_works(attempts: Sequence[Callable[[], list[Metric]]], wanted: str) -> list[Metric]:
    failures: list[MetricError] = []
    for attempt in attempts:
        try:
            return attempt()
        except MetricError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]
    raise MetricError(f"metric {wanted!r} was not understood; choose from {', '.join(names())}, or pass a callable")


def _read(wanted: str, reading: Reading, pool: Pool) -> list[Metric]:
    kind, arguments, tail = reading
    where = _where(wanted, tail, pool) if tail else None
    predicted = _predicted(pool, where)
    if kind in SETS and arguments is None:
        found = _named_set(kind, pool, predicted)
    else:
        found = [_one(wanted, SYNONYMS.get(kind, kind), arguments, pool)]
        _refuse_never_defined(wanted, found[0], predicted, pool)
    return [_on_slice(metric, where) for metric in found]


def _predicted(pool: Pool, where: Where) -> Array:
    """(C,) how often each class is predicted inside the slice."""
    inside = pool.predictions if where is None else pool.predictions[pool.slices[where[0]] == where[1]]
    return np.bincount(inside, minlength=len(pool.classes))


def _where(wanted: str, tail: str, pool: Pool) -> Where:
    """("scanner", "A") of "@scanner=A"; MetricError if the pool has no such slice or value."""
    cuts = [place for place, letter in enumerate(tail) if letter == "="]
    for cut in cuts:
        name = tail[1:cut]
        if name in pool.slices or cut == cuts[-1]:
            break
    else:
        name = tail[1:].strip()
        values = _values_of_slice(wanted, name, pool)
        raise MetricError(f"metric {wanted!r}: write a value, e.g. '@{name}={values[0]}' (known: {listing(values)})")
    values = _values_of_slice(wanted, name, pool)
    for value in (tail[cut + 1 :], tail[cut + 1 :].strip()):
        if value in values:
            return name, value
    raise MetricError(
        f"metric {wanted!r}: slice {name!r} never takes the value {value!r} (known: {listing(values)})"
        f"{near(value, values)}"
    )


def _values_of_slice(wanted: str, name: str | None, pool: Pool) -> list[str]:
    if name is None:
        return []
    if name not in pool.slices:
        known = listing(pool.slices) if pool.slices else "none: pass slices={...} to the pool, or --slice COLUMN"
        raise MetricError(
            f"metric {wanted!r}: no slice {name!r} in this pool (known: {known}){near(name, pool.slices)}"
        )
    values: list[str] = np.unique(pool.slices[name]).tolist()
    return values


def _on_slice(metric: Metric, where: Where) -> Metric:
    return metric if where is None else replace(metric, name=f"{metric.name}@{where[0]}={where[1]}", where=where)


def _of_pair(pair: tuple[Any, ...], pool: Pool) -> Metric:
    """(name, callable) or ("cost", matrix), the name with or without a slice."""
    if len(pair) != 2 or not isinstance(pair[0], str) or not pair[0].strip():
        raise MetricError(f"metric {pair!r} was not understood; a pair must be (name, callable) or ('cost', matrix)")
    name, what = pair
    base, at, tail = name.partition("@")
    where = _where(name, at + tail, pool) if at else None
    if callable(what):
        return _on_slice(from_callable(what, pool.classes, base), where)
    if base.strip().lower() != "cost":
        raise MetricError(f"metric {name!r}: a pair must be (name, callable) or ('cost', matrix)")
    return _on_slice(cost("cost", what, len(pool.classes)), where)


# ---------------------------------------------------------------- from what was read to the metric


def _named_set(name: str, pool: Pool, predicted: Array) -> list[Metric]:
    """`per_class`: every precision and recall; `paper`: accuracy as well (21 metrics when C = 10)."""
    codes = range(len(pool.classes))
    members = [_class_metric("precision", k, pool) for k in codes if predicted[k]]
    members += [_class_metric("recall", k, pool) for k in codes]
    return [_whole_metric("accuracy"), *members] if name == "paper" else members


def _whole_metric(kind: str) -> Metric:
    of, bounds = WHOLE[kind]
    return of_margins(kind, of, bounds=bounds, kind=kind)


def _class_metric(kind: str, k: int, pool: Pool) -> Metric:
    return of_class(f"{kind}[{pool.classes[k]}]", PER_CLASS[kind], k, kind=kind)


def _one(wanted: str, kind: str, arguments: str | None, pool: Pool) -> Metric:
    if kind in WHOLE and arguments is None:
        return _whole_metric(kind)
    if kind in PER_CLASS and arguments is not None:
        return _class_metric(kind, _class_code(wanted, arguments, pool), pool)
    if kind == "fbeta" and arguments is not None and "," in arguments:
        name, _, number = arguments.rpartition(",")
        return _fbeta_metric(wanted, _class_code(wanted, name, pool), number, pool)
    if kind == "confusion" and arguments is not None:
        a, c = _two_classes(wanted, arguments, pool)
        return confusion(f"confusion[{pool.classes[a]},{pool.classes[c]}]", a, c, len(pool.classes))
    raise MetricError(_not_understood(wanted, kind, arguments, pool))


def _not_understood(wanted: str, kind: str, arguments: str | None, pool: Pool) -> str:
    example = {"fbeta": f"fbeta[{pool.classes[0]},2]", "confusion": f"confusion[{pool.classes[0]},{pool.classes[1]}]"}
    if kind in (*PER_CLASS, *example) and arguments is None:
        written = example.get(kind, f"{kind}[{pool.classes[0]}]")
        return f"metric {wanted!r} needs a class, e.g. '{written}'; classes are {listing(pool.classes)}"
    if kind in (*WHOLE, *SETS):
        return f"metric {wanted!r}: {kind} takes no class; write '{kind}'"
    if kind == "cost":
        return "metric 'cost' needs a matrix: pass ('cost', matrix[predicted, true]) as the metric"
    if kind == "fbeta":
        return f"metric {wanted!r}: write the class and beta, e.g. '{example[kind]}'"
    hint = near(kind, [*WHOLE, *PER_CLASS, *SYNONYMS, "fbeta", "confusion", "cost", *SETS])
    return f"metric {wanted!r} does not exist{hint or ';'} known metrics: {', '.join(names())}, or any callable"


def _fbeta_metric(wanted: str, k: int, number: str, pool: Pool) -> Metric:
    try:
        beta = float(number)
    except ValueError:
        beta = np.nan
    if not (np.isfinite(beta) and beta > 0):
        raise MetricError(f"metric {wanted!r}: beta must be a positive number, got {number.strip()!r}")

    def of(k: int, t: Array, r: Array, s: Array) -> Array:
        return formulas.fbeta(k, beta, t, r, s)

    return of_class(f"fbeta[{pool.classes[k]},{beta:.15g}]", of, k, kind="fbeta")


def _class_code(wanted: str, name: str, pool: Pool) -> int:
    code = pool.find_class(name)
    code = pool.find_class(name.strip()) if code is None else code
    if code is None:
        raise MetricError(
            f"metric {wanted!r}: {name.strip()!r} is not a class of this pool (expected one of "
            f"{listing(pool.classes)}){near(name.strip(), pool.classes)}"
        )
    return code


def _two_classes(wanted: str, arguments: str, pool: Pool) -> tuple[int, int]:
    """Predicted and true class of `confusion[a,c]`; class names may hold commas themselves."""
    pieces = arguments.split(",")
    readings = [(",".join(pieces[:cut]), ",".join(pieces[cut:])) for cut in range(1, len(pieces))]
    found = []
    for a, c in readings:
        try:
            found.append((_class_code(wanted, a, pool), _class_code(wanted, c, pool)))
        except MetricError:
            if len(readings) == 1:
                raise
    if len(found) == 1:
        return found[0]
    if found:
        raise MetricError(f"metric {wanted!r} can be read in {len(found)} ways, as class names hold commas; rename one")
    raise MetricError(f"metric {wanted!r}: write two classes, e.g. 'confusion[{pool.classes[0]},{pool.classes[1]}]'")


def _refuse_never_defined(wanted: str, metric: Metric, predicted: Array, pool: Pool) -> None:
    """MetricError if the model's predictions alone make the metric undefined, whatever the labels are (Z1)."""
    inside = " of this slice" if predicted.sum() < len(pool) else ""
    name = pool.classes[metric.classes[0]] if metric.classes else None
    reason = None
    if metric.kind == "precision" and predicted[metric.classes[0]] == 0:
        reason = f"the model predicts {name!r} for no point{inside}; ask for 'recall[{name}]' instead"
    if metric.kind == "npv" and predicted[metric.classes[0]] == predicted.sum():
        reason = f"the model predicts {name!r} for every point{inside}; ask for 'precision[{name}]' instead"
    if metric.kind == "mcc" and np.count_nonzero(predicted) == 1:
        reason = f"the model predicts the same class for every point{inside}; ask for 'accuracy' instead"
    if reason:
        raise MetricError(f"metric {wanted!r} can never be defined: {reason}")


# ---------------------------------------------------------------- tables


def table_of(predictions: Array, truth: Array, n_classes: int, weights: Array | None = None) -> Array:
    """T[predicted, true], (C, C), of points with known truth; weighted counts when weights are given."""
    cells = np.bincount(predictions * n_classes + truth, weights, minlength=n_classes**2)
    return cells.reshape(n_classes, n_classes).astype(np.float64)


def truth_values(pool: Pool, truth: Array, metrics: Sequence[Metric]) -> Mapping[str, float]:
    """Q* of every metric when each label of the pool is known (codes)."""
    tables: dict[Where, Array] = {}
    for metric in metrics:
        if metric.where not in tables:
            members = metric.members(pool)
            rows = slice(None) if members is None else members
            tables[metric.where] = table_of(pool.predictions[rows], np.asarray(truth)[rows], len(pool.classes))
    return {metric.name: float(metric.of_table(tables[metric.where])) for metric in metrics}
