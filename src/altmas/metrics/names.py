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
from altmas.metrics.differences import MOST_GROUPS, combined, difference, gap
from altmas.metrics.formulas import (
    Metric,
    OfClass,
    OfMargins,
    answers_of,
    at_threshold,
    confusion,
    cost,
    of_class,
    of_margins,
    of_truth,
    weighted_kappa,
)
from altmas.metrics.scores import (
    OfScores,
    average_precision,
    brier_losses,
    log_losses,
    of_calibration,
    of_losses,
    of_one_class,
    over_classes,
    roc_auc,
)
from altmas.metrics.weights import LabelWeights
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

AREAS: dict[str, OfScores] = {"roc_auc": roc_auc, "average_precision": average_precision}
"""Metrics of the scores of one class, by name."""

LOSSES = ("log_loss", "brier", "calibration_error")
"""Metrics of all scores, by name."""

OF_TRUTH = ("share", "mean")
"""Metrics of the truth alone, by name."""

SYNONYMS = {
    "sensitivity": "recall",
    "tpr": "recall",
    "ppv": "precision",
    "tnr": "specificity",
    "prevalence": "share",
    "rate": "share",
    "f1_macro": "macro_f1",
    "precision_macro": "macro_precision",
    "recall_macro": "macro_recall",
    "matthews_corrcoef": "mcc",
    "cohen_kappa": "kappa",
}
"""Other names of a metric, among them scikit-learn's."""
SETS = ("per_class", "paper")
KIND = re.compile(r"\s*(\w+)\s*")
MODEL = re.compile(r"\s*([^\[\]@]+?)\s*:\s*(?=\w)")
RELATION = re.compile(r"\s*(>=|<=|>|<)\s*([-+.\deE]+)\s*")
MINUS = re.compile(r"\s+[-\u2212]\s+")

MetricLike = str | Callable[..., float] | Metric | tuple[str, Any]
"""A name, a callable, a Metric, or a pair: (name, callable) or ("cost", matrix)."""

Where = tuple[str, str] | None
"""Name and value of the slice that a metric is restricted to."""


def names() -> list[str]:
    """Every metric name, as it is written in messages and help."""
    other = [kind for kind, means in SYNONYMS.items() if means in PER_CLASS]
    per_class = [f"{kind}[class]" for kind in (*PER_CLASS, *other)]
    special = ["fbeta[class,beta]", "confusion[predicted,true]", "weighted_kappa[linear]", "cost", *SETS]
    of_scores = [f"{kind}[class]" for kind in AREAS]
    composed = ["recall[class,threshold]", "share[>=number]", "A - B", "gap[metric,slice]"]
    of_truth_alone = ["share[class]", "mean", "pass_rate"]
    return [*WHOLE, "weighted_kappa", *per_class, *special, *AREAS, *of_scores, *LOSSES, *of_truth_alone, *composed]


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
        if not pool.models and metric.needs_answers:
            raise MetricError(f"metric {metric.name!r} is about a model, and this pool has none; pass its predictions")
    return tuple(found.values())


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
        for _, part in wanted.parts:
            _values_of_slice(part.name, part.where[0] if part.where else None, pool)
        return [wanted]
    if isinstance(wanted, str):
        return _by_name(wanted, pool)
    if isinstance(wanted, tuple):
        return _of_models([_of_pair(wanted, pool)], _asked_models(str(wanted[0]), None, pool))
    if callable(wanted):
        made = from_callable(wanted, pool.classes)
        return _of_models([made], _asked_models(made.name, None, pool))
    raise MetricError(f"metric {wanted!r} was not understood; expected a name, a callable or ('cost', matrix)")


# ---------------------------------------------------------------- models and differences


def _by_name(wanted: str, pool: Pool) -> list[Metric]:
    """The metrics of one name: of one metric, or of a difference (class names and slice values may hold ' - ' too)."""
    cuts = list(MINUS.finditer(wanted))
    try:
        return _of_any_model(wanted, pool)
    except MetricError as refused:
        failure, failed_at = refused, -1
    for cut in cuts:
        left, right = wanted[: cut.start()], wanted[cut.end() :]
        try:
            first = _of_any_model(left, pool)
        except MetricError as refused:
            if failed_at < 0 and not any(_is_name(wanted[: other.start()], pool) for other in cuts):
                failure = refused if _opens(left) else failure
            continue
        try:
            second = _by_name(right, pool)
        except MetricError as refused:
            failure, failed_at = refused, cut.start()
            continue
        return _differences(wanted, first, second)
    raise failure


def _is_name(text: str, pool: Pool) -> bool:
    try:
        _of_any_model(text, pool)
    except MetricError:
        return False
    return True


def _opens(text: str) -> bool:
    """Whether what stands in brackets is closed again, so that a text can be a name."""
    return text.count("[") == text.count("]")


def _differences(wanted: str, first: list[Metric], second: list[Metric]) -> list[Metric]:
    """A - B of one metric each, or of each model's own."""
    models = [[metric.model for metric in side] for side in (first, second)]
    if len(first) == len(second) and (len(first) == 1 or models[0] == models[1]):
        return [difference(one, other, wanted) for one, other in zip(first, second, strict=True)]
    if len({*models[0]}) < len(first) or len({*models[1]}) < len(second):
        raise MetricError(f"metric {wanted!r}: one side stands for several metrics; write one on each side")
    alone = first if len(first) == 1 else second if len(second) == 1 else None
    if alone is None or alone[0].model is not None:
        raise MetricError(
            f"metric {wanted!r}: one side names a model and the other does not; write the model on both sides, e.g. "
            f"'{first[0].name} - {second[0].name}'"
        )
    pairs = [(first[0], other) for other in second] if alone is first else [(one, second[0]) for one in first]
    return [difference(one, other, wanted) for one, other in pairs]


def _of_any_model(wanted: str, pool: Pool) -> list[Metric]:
    """The metrics of a name with or without a model before it."""
    model, rest = _split_model(wanted, pool)
    attempts = [partial(_read, wanted, reading, pool, model) for reading in _readings(rest)]
    return _first_that_works(attempts, wanted)


def models_of(pool: Pool) -> list[str]:
    """Names of the pool's models."""
    return [model.name for model in pool.models]


def _split_model(wanted: str, pool: Pool) -> tuple[str | None, str]:
    """("v1", "accuracy") of "v1: accuracy"; MetricError if there is no such model."""
    known = models_of(pool)
    for name in sorted(known, key=len, reverse=True):
        if wanted.lstrip().startswith(name) and wanted.lstrip()[len(name) :].lstrip().startswith(":"):
            return name, wanted.lstrip()[len(name) :].lstrip()[1:]
    before = MODEL.match(wanted)
    if before is None:
        return None, wanted
    models = listing(known) if known else "none"
    raise MetricError(
        f"metric {wanted!r}: no model {before[1]!r} in this pool (known: {models}){near(before[1], known)}"
    )


def _asked_models(wanted: str, named: str | None, pool: Pool) -> list[str | None]:
    """The models that a metric is to be asked of: the one named, or every one; [None] where there is one model."""
    known = models_of(pool)
    if not known:
        raise MetricError(
            f"metric {wanted!r} is about a model, and this pool has none; pass its predictions, or ask about the truth "
            "alone: share[class], mean"
        )
    if len(known) == 1:
        return [None]
    return [named] if named is not None else list(known)


def _of_models(found: list[Metric], models: list[str | None]) -> list[Metric]:
    return [_of_model(metric, model) for model in models for metric in found]


def _of_model(metric: Metric, model: str | None) -> Metric:
    return metric if model is None else replace(metric, name=f"{model}: {metric.name}", model=model)


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


def _read(wanted: str, reading: Reading, pool: Pool, named: str | None = None) -> list[Metric]:
    kind, arguments, tail = reading
    kind = SYNONYMS.get(kind, kind)
    if kind == "pass_rate" and arguments is None:
        kind, arguments = "share", "pass"
    if kind == "gap" and arguments is not None:
        return _gaps(wanted, arguments, tail, pool, named)
    where = _where(wanted, tail, pool) if tail else None
    if kind in OF_TRUTH:
        if named is not None:
            raise MetricError(f"metric {wanted!r} is about the truth and not about a model; leave out '{named}:'")
        return [_on_slice(_metric_of_truth(wanted, kind, arguments, pool), where)]
    if kind not in KNOWN:
        raise MetricError(_not_understood(wanted, kind, arguments, pool))
    return [
        _of_model(_on_slice(metric, where), model)
        for model in _asked_models(wanted, named, pool)
        for metric in _of_one_model(wanted, kind, arguments, where, pool, model)
    ]


def _of_one_model(
    wanted: str, kind: str, arguments: str | None, where: Where, pool: Pool, model: str | None
) -> list[Metric]:
    predicted = _predicted(pool, where, model)
    if kind in SETS and arguments is None:
        return _named_set(kind, pool, predicted)
    metric = _one(wanted, kind, arguments, pool)
    if _needs_scores(metric):
        _refuse_without_scores(wanted, pool, model)
    _refuse_never_defined(wanted, _of_model(metric, model), predicted, where, pool)
    return [metric]


def _predicted(pool: Pool, where: Where, model: str | None = None) -> Array:
    """(C,) how often each class is predicted inside the slice."""
    answers = answers_of(pool, model)
    inside = answers if where is None else answers[pool.slices[where[0]] == where[1]]
    return np.bincount(inside, minlength=len(pool.classes))


def _needs_scores(metric: Metric) -> bool:
    return metric.threshold is not None or metric.kind in (*AREAS, *LOSSES, *(f"macro_{kind}" for kind in AREAS))


def _refuse_without_scores(wanted: str, pool: Pool, model: str | None) -> None:
    scores = pool.scores if model is None else pool.model(model).scores
    if scores is None:
        whose = "the model" if model is None else f"model {model!r}"
        raise MetricError(
            f"metric {wanted!r} needs scores, and {whose} has none in this pool; pass scores=... to the pool (--scores)"
        )


# ---------------------------------------------------------------- gaps


def _gaps(wanted: str, arguments: str, tail: str, pool: Pool, named: str | None) -> list[Metric]:
    """gap[metric, slice] of one model, or of each."""
    if tail:
        raise MetricError(f"metric {wanted!r}: a gap is taken over all groups of its slice; leave out {tail!r}")
    inner, comma, name = arguments.rpartition(",")
    inner, name = inner.strip(), name.strip()
    if not comma or not inner or not name:
        raise MetricError(f"metric {wanted!r}: write a metric and a slice, e.g. 'gap[accuracy, {_a_slice(pool)}]'")
    values = _values_of_slice(wanted, name, pool)
    if not 2 <= len(values) <= MOST_GROUPS:
        raise MetricError(
            f"metric {wanted!r}: slice {name!r} has {len(values)} group{'s' * (len(values) != 1)}; a gap is offered "
            f"for 2 to {MOST_GROUPS}; name two of them: 'A@{name}=... - A@{name}=...'"
        )
    whole = _by_name(f"{named}: {inner}" if named else inner, pool)
    if any(metric.where is not None or len(metric.parts) > 1 for metric in whole):
        raise MetricError(f"metric {wanted!r}: a gap is taken of one metric of the whole pool, not of {inner!r}")
    if len({metric.model for metric in whole}) < len(whole):
        raise MetricError(f"metric {wanted!r}: {inner!r} stands for {len(whole)} metrics; name one of them")
    by_group = [[_of_any_model(f"{metric.name}@{name}={value}", pool)[0] for value in values] for metric in whole]
    found = []
    for metric, groups in zip(whole, by_group, strict=True):
        base = metric.name if metric.model is None else metric.name.removeprefix(f"{metric.model}: ")
        made = gap(f"gap[{base}, {name}]", groups, name)
        found.append(made if metric.model is None else _of_model(made, metric.model))
    return found


def _a_slice(pool: Pool) -> str:
    return next(iter(pool.slices), "slice")


# ---------------------------------------------------------------- the truth alone


def _metric_of_truth(wanted: str, kind: str, arguments: str | None, pool: Pool) -> Metric:
    if kind == "mean":
        return _mean_metric(wanted, arguments, pool)
    if arguments is None:
        raise MetricError(
            f"metric {wanted!r} needs a class, e.g. 'share[{pool.classes[0]}]'; classes are {listing(pool.classes)}"
        )
    relation = RELATION.fullmatch(arguments)
    if relation is None or pool.find_class(arguments.strip()) is not None:
        codes = [_class_code(wanted, arguments, pool)]
        name = f"share[{pool.classes[codes[0]]}]"
    else:
        codes, limit = _classes_beyond(wanted, relation, pool)
        name = f"share[{relation[1]}{limit:.15g}]"
    counted = np.isin(np.arange(len(pool.classes)), codes).astype(np.float64)
    return of_truth(name, counted, kind="share", classes=tuple(codes))


def _classes_beyond(wanted: str, relation: re.Match[str], pool: Pool) -> tuple[list[int], float]:
    """Codes of the classes whose value lies there; MetricError if all or none do."""
    try:
        limit = float(relation[2])
    except ValueError:
        raise MetricError(f"metric {wanted!r}: {relation[2]!r} is not a number; write e.g. 'share[>=4]'") from None
    values = class_values(wanted, pool)
    holds = {">=": np.greater_equal, "<=": np.less_equal, ">": np.greater, "<": np.less}[relation[1]](values, limit)
    if holds.all() or not holds.any():
        raise MetricError(
            f"metric {wanted!r} is {float(holds.all()):g} whatever the labels are: the classes have the values "
            f"{listing(values.tolist())}"
        )
    return np.flatnonzero(holds).tolist(), limit


def _mean_metric(wanted: str, arguments: str | None, pool: Pool) -> Metric:
    """`mean`, with the values of the classes, or `mean[bad=0,ok=1,good=2]`."""
    if arguments is None:
        return of_truth("mean", class_values(wanted, pool), kind="mean")
    values: dict[int, float] = {}
    for piece in arguments.split(","):
        name, equals, number = piece.rpartition("=")
        try:
            value = float(number) if equals else np.nan
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            raise MetricError(
                f"metric {wanted!r}: write the value of every class, e.g. 'mean[{pool.classes[0]}=0,"
                f"{pool.classes[1]}=1]', got {piece.strip()!r}"
            )
        values[_class_code(wanted, name, pool)] = value
    missing = [pool.classes[code] for code in range(len(pool.classes)) if code not in values]
    if missing:
        raise MetricError(f"metric {wanted!r}: no value for {listing(missing)}; every class needs one")
    ordered = [values[code] for code in range(len(pool.classes))]
    written = ",".join(f"{pool.classes[code]}={value:.15g}" for code, value in enumerate(ordered))
    return of_truth(f"mean[{written}]", ordered, kind="mean")


def class_values(wanted: str, pool: Pool) -> Array:
    """(C,) the numbers that classes stand for: given with the pool, or the class names themselves."""
    given = getattr(pool, "values", None)
    if given is not None:
        return np.asarray([given[name] for name in pool.classes], np.float64)
    try:
        values = np.array([float(str(name)) for name in pool.classes])
    except ValueError:
        values = np.array([np.nan])
    if not np.isfinite(values).all():
        example = ",".join(f"{name}={place}" for place, name in enumerate(pool.classes))
        raise MetricError(
            f"metric {wanted!r}: the classes {listing(pool.classes)} are not numbers; give each a value, e.g. "
            f"'mean[{example}]'"
        )
    return values


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
    return metric if where is None else metric.on_slice(*where) or metric


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
    n_classes = len(pool.classes)
    if kind in WHOLE and arguments is None:
        return _whole_metric(kind)
    if kind == "weighted_kappa":
        return _weighted_kappa_metric(wanted, arguments, n_classes)
    if kind in AREAS:
        return _area_metric(wanted, kind, arguments, pool)
    if kind in LOSSES and arguments is None:
        return _loss_metric(kind, n_classes)
    if kind in PER_CLASS and arguments is not None:
        return _class_or_threshold_metric(wanted, kind, arguments, pool)
    if kind == "fbeta" and arguments is not None and "," in arguments:
        name, _, number = arguments.rpartition(",")
        return _fbeta_metric(wanted, _class_code(wanted, name, pool), number, pool)
    if kind == "confusion" and arguments is not None:
        a, c = _two_classes(wanted, arguments, pool)
        return confusion(f"confusion[{pool.classes[a]},{pool.classes[c]}]", a, c, n_classes)
    raise MetricError(_not_understood(wanted, kind, arguments, pool))


def _weighted_kappa_metric(wanted: str, arguments: str | None, n_classes: int) -> Metric:
    powers = {"linear": 1, "quadratic": 2}
    kind = (arguments or "quadratic").strip().lower()
    if kind not in powers:
        raise MetricError(f"metric {wanted!r}: write 'weighted_kappa' (quadratic) or 'weighted_kappa[linear]'")
    return weighted_kappa(
        "weighted_kappa" if kind == "quadratic" else f"weighted_kappa[{kind}]", powers[kind], n_classes
    )


def _area_metric(wanted: str, kind: str, arguments: str | None, pool: Pool) -> Metric:
    """Of the class named; of the second of two classes, or the mean over all, where none is."""
    if arguments is not None:
        k = _class_code(wanted, arguments, pool)
        return of_one_class(f"{kind}[{pool.classes[k]}]", kind, AREAS[kind], k)
    if len(pool.classes) == 2:
        return of_one_class(kind, kind, AREAS[kind], 1)
    return over_classes(kind, f"macro_{kind}", AREAS[kind])


def _loss_metric(kind: str, n_classes: int) -> Metric:
    if kind == "log_loss":
        return of_losses(kind, kind, log_losses, np.inf)
    if kind == "brier":
        return of_losses(kind, kind, brier_losses, 1.0 if n_classes == 2 else 2.0)
    return of_calibration(kind)


def _class_or_threshold_metric(wanted: str, kind: str, arguments: str, pool: Pool) -> Metric:
    """`recall[cat]`, or `recall[cat,0.3]`; class names may hold commas themselves."""
    name, comma, number = arguments.rpartition(",")
    if not comma or pool.find_class(arguments.strip()) is not None or pool.find_class(name.strip()) is None:
        return _class_metric(kind, _class_code(wanted, arguments, pool), pool)
    k = _class_code(wanted, name, pool)
    try:
        threshold = float(number)
    except ValueError:
        threshold = np.nan
    if not 0 <= threshold <= 1:
        raise MetricError(
            f"metric {wanted!r}: {number.strip()!r} is no threshold of a score; expected a number from 0 to 1, e.g. "
            f"'{kind}[{pool.classes[k]},0.3]'"
        )
    written = f"{kind}[{pool.classes[k]},{threshold:.15g}]"
    return at_threshold(written, PER_CLASS[kind], k, threshold, len(pool.classes), kind=kind)


def _not_understood(wanted: str, kind: str, arguments: str | None, pool: Pool) -> str:
    example = {"fbeta": f"fbeta[{pool.classes[0]},2]", "confusion": f"confusion[{pool.classes[0]},{pool.classes[1]}]"}
    if kind in (*PER_CLASS, *example) and arguments is None:
        written = example.get(kind, f"{kind}[{pool.classes[0]}]")
        return f"metric {wanted!r} needs a class, e.g. '{written}'; classes are {listing(pool.classes)}"
    if kind in (*WHOLE, *SETS, *LOSSES):
        return f"metric {wanted!r}: {kind} takes no class; write '{kind}'"
    if kind == "gap":
        return f"metric {wanted!r}: write a metric and a slice, e.g. 'gap[accuracy, {_a_slice(pool)}]'"
    if kind == "pass_rate":
        return f"metric {wanted!r}: write 'pass_rate', or 'share[{pool.classes[0]}]' for another class"
    if kind == "cost":
        return "metric 'cost' needs a matrix: pass ('cost', matrix[predicted, true]) as the metric"
    if kind == "fbeta":
        return f"metric {wanted!r}: write the class and beta, e.g. '{example[kind]}'"
    hint = near(kind, [*KNOWN, *SYNONYMS, *OF_TRUTH, "cost", "gap", "pass_rate"])
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


def _refuse_never_defined(wanted: str, metric: Metric, predicted: Array, where: Where, pool: Pool) -> None:
    """MetricError if the model's predictions alone make the metric undefined, whatever the labels are (Z1)."""
    inside = " of this slice" if predicted.sum() < len(pool) else ""
    name = pool.classes[metric.classes[0]] if metric.classes else None
    reached = _reached(metric, where, pool) if metric.threshold is not None else None
    reason = None
    if metric.kind == "precision" and (predicted[metric.classes[0]] if reached is None else reached.sum()) == 0:
        reason = f"the model predicts {name!r} for no point{inside}; ask for 'recall[{name}]' instead"
    if metric.kind == "npv" and (predicted[metric.classes[0]] == predicted.sum() if reached is None else reached.all()):
        reason = f"the model predicts {name!r} for every point{inside}; ask for 'precision[{name}]' instead"
    if metric.kind == "mcc" and np.count_nonzero(predicted) == 1:
        reason = f"the model predicts the same class for every point{inside}; ask for 'accuracy' instead"
    if reason and reached is not None:
        reason = (
            f"the score of {name!r} is at least {metric.threshold:g} for {'every' if reached.all() else 'no'} point"
        )
        reason += f"{inside}; choose another threshold"
    if reason:
        raise MetricError(f"metric {wanted!r} can never be defined: {reason}")


def _reached(metric: Metric, where: Where, pool: Pool) -> Array:
    """Whether each point of the slice is answered with the metric's class."""
    own = metric.own_points(pool)
    assert own is not None
    return own if where is None else own[pool.slices[where[0]] == where[1]]


KNOWN = (*WHOLE, "weighted_kappa", *PER_CLASS, "fbeta", "confusion", *AREAS, *LOSSES, *SETS)
"""Kinds of metrics that are about a model."""


# ---------------------------------------------------------------- values


def truth_values(pool: Pool, truth: Array, metrics: Sequence[Metric]) -> Mapping[str, float]:
    """Q* of every metric when each label of the pool is known (codes)."""
    known: dict[Where, LabelWeights] = {}

    def value_of(metric: Metric) -> float:
        if metric.where not in known:
            known[metric.where] = LabelWeights.of_truth(truth, len(pool.classes), metric.members(pool))
        return metric.value(pool, known[metric.where])

    return {metric.name: combined(metric, value_of) for metric in metrics}
