"""How a name such as "v2: recall[cat]@scanner=A - v1: recall[cat]@scanner=A" is read, and which metrics it means."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from altmas.errors import MetricError
from altmas.metrics.callables import from_callable
from altmas.metrics.catalogue import (
    KNOWN,
    OF_TRUTH,
    SYNONYMS,
    Where,
    a_slice,
    known_names,
    metric_of_truth,
    metrics_of_model,
    not_understood,
    plain_name,
)
from altmas.metrics.differences import MOST_GROUPS, difference, gap
from altmas.metrics.formulas import cost
from altmas.metrics.metric import Metric
from altmas.metrics.score_callables import asks_for_scores, of_scores_callable
from altmas.pool import Pool
from altmas.suggest import listing, near

KIND = re.compile(r"\s*(\w+)\s*")
MODEL = re.compile(r"\s*([^\[\]@]+?)\s*:\s*(?=\w)")
MINUS = re.compile(r"\s+[-\u2212]\s+")

MetricLike = str | Callable[..., float] | Metric | tuple[str, Any]
"""A name, a callable, a Metric, or a pair: (name, callable) or ("cost", matrix)."""


def metric_set(requests: MetricLike | Iterable[MetricLike], pool: Pool) -> tuple[Metric, ...]:
    """The metrics asked for, sets expanded and each name once; MetricError with the near name if there is none.

    A metric that can never be defined on this pool (precision of a class that is never predicted) is refused (Z1);
    inside `per_class` and `paper` such a class is left out.
    """
    listed: list[Any] = [requests] if is_one(requests) else list(requests)  # type: ignore[arg-type]
    by_name: dict[str, Metric] = {}
    origins: dict[str, Any] = {}
    for request in listed:
        for metric in _expand(request, pool):
            if by_name.setdefault(metric.name, metric) is not metric:
                _refuse_namesake(metric, by_name[metric.name], request is origins[metric.name])
            origins.setdefault(metric.name, request)
    if not by_name:
        raise MetricError(f"no metric was asked for; choose from {', '.join(known_names())}, or pass a callable")
    for metric in by_name.values():
        if not pool.models and metric.needs_answers:
            raise MetricError(f"metric {metric.name!r} is about a model, and this pool has none; pass its predictions")
    return tuple(by_name.values())


def is_one(request: Any) -> bool:
    """Whether this is one metric (a name, a function, a pair), not several."""
    pair = isinstance(request, tuple) and len(request) == 2 and isinstance(request[0], str)
    named = pair and not isinstance(request[1], str | tuple | Metric)
    return isinstance(request, str | Metric) or callable(request) or not isinstance(request, Iterable) or named


def _refuse_namesake(metric: Metric, namesake: Metric, same_origin: bool) -> None:
    """Built-in names always mean the same; functions and cost matrices may not."""
    if {metric.kind, namesake.kind} & {"callable", "cost"} and not same_origin:
        raise MetricError(
            f"two different metrics are called {metric.name!r}; give one of them another name: ('name', function)"
        )


def _expand(request: MetricLike, pool: Pool) -> list[Metric]:
    """The metrics that one request stands for: several for a set."""
    if isinstance(request, Metric):
        for _, part in request.parts:
            _values_of_slice(part.name, part.where[0] if part.where else None, pool)
        return [request]
    if isinstance(request, str):
        return _by_name(request, pool)
    if isinstance(request, tuple):
        return _of_models([_of_pair(request, pool)], _asked_models(str(request[0]), None, pool))
    if callable(request):
        made = _of_function(request, pool)
        return _of_models([made], _asked_models(made.name, None, pool))
    raise MetricError(f"metric {request!r} was not understood; expected a name, a callable or ('cost', matrix)")


# ---------------------------------------------------------------- models and differences


def _by_name(metric_name: str, pool: Pool) -> list[Metric]:
    """The metrics of one name: of one metric, or of a difference (class names and slice values may hold ' - ' too)."""
    cuts = list(MINUS.finditer(metric_name))
    try:
        return _of_any_model(metric_name, pool)
    except MetricError as refused:
        failure, failed_at = refused, -1
    for cut in cuts:
        left, right = metric_name[: cut.start()], metric_name[cut.end() :]
        try:
            first = _of_any_model(left, pool)
        except MetricError as refused:
            if failed_at < 0 and not any(_is_name(metric_name[: minus.start()], pool) for minus in cuts):
                failure = refused if _brackets_close(left) else failure
            continue
        try:
            second = _by_name(right, pool)
        except MetricError as refused:
            failure, failed_at = refused, cut.start()
            continue
        return _differences(metric_name, first, second)
    raise failure


def _is_name(text: str, pool: Pool) -> bool:
    try:
        _of_any_model(text, pool)
    except MetricError:
        return False
    return True


def _brackets_close(text: str) -> bool:
    """Whether every bracket is closed again, so that a text can be a name."""
    return text.count("[") == text.count("]")


def _differences(metric_name: str, first: list[Metric], second: list[Metric]) -> list[Metric]:
    """A - B of one metric each, or of each model's own."""
    models = [[metric.model for metric in side] for side in (first, second)]
    if len(first) == len(second) and (len(first) == 1 or models[0] == models[1]):
        return [difference(left, right, metric_name) for left, right in zip(first, second, strict=True)]
    if len({*models[0]}) < len(first) or len({*models[1]}) < len(second):
        raise MetricError(f"metric {metric_name!r}: one side stands for several metrics; write one on each side")
    alone = first if len(first) == 1 else second if len(second) == 1 else None
    if alone is None or alone[0].model is not None:
        raise MetricError(
            f"metric {metric_name!r}: one side names a model and the other does not; write the model on both sides, "
            f"e.g. '{first[0].name} - {second[0].name}'"
        )
    pairs = [(first[0], right) for right in second] if alone is first else [(left, second[0]) for left in first]
    return [difference(left, right, metric_name) for left, right in pairs]


def _of_any_model(metric_name: str, pool: Pool) -> list[Metric]:
    """The metrics of a name with or without a model before it."""
    model, rest = _split_model(metric_name, pool)
    attempts = [partial(_read, metric_name, reading, pool, model) for reading in _readings(rest)]
    return _first_that_works(attempts, metric_name)


def models_of(pool: Pool) -> list[str]:
    """Names of the pool's models."""
    return [model.name for model in pool.models]


def _split_model(metric_name: str, pool: Pool) -> tuple[str | None, str]:
    """("v1", "accuracy") of "v1: accuracy"; MetricError if there is no such model."""
    known = models_of(pool)
    for name in sorted(known, key=len, reverse=True):
        if metric_name.lstrip().startswith(name) and metric_name.lstrip()[len(name) :].lstrip().startswith(":"):
            return name, metric_name.lstrip()[len(name) :].lstrip()[1:]
    prefix = MODEL.match(metric_name)
    if prefix is None:
        return None, metric_name
    models = listing(known) if known else "none"
    raise MetricError(
        f"metric {metric_name!r}: no model {prefix[1]!r} in this pool (known: {models}){near(prefix[1], known)}"
    )


def _asked_models(metric_name: str, named: str | None, pool: Pool) -> list[str | None]:
    """The models that a metric is to be asked of: the one named, or every one; [None] where there is one model."""
    known = models_of(pool)
    if not known:
        raise MetricError(
            f"metric {metric_name!r} is about a model, and this pool has none; pass its predictions, or ask about the "
            "truth alone: share[class], mean"
        )
    if len(known) == 1:
        return [None]
    return [named] if named is not None else list(known)


def _of_models(metrics: list[Metric], models: list[str | None]) -> list[Metric]:
    return [_of_model(metric, model) for model in models for metric in metrics]


def _of_model(metric: Metric, model: str | None) -> Metric:
    return metric if model is None else replace(metric, name=f"{model}: {metric.name}", model=model)


# ---------------------------------------------------------------- reading a name

Reading = tuple[str, str | None, str]
"""kind, what stands between the brackets, and what follows them."""


def _readings(metric_name: str) -> Iterator[Reading]:
    """Every way to read a name; class names and slice values may hold brackets, '@' and '=' themselves."""
    start = KIND.match(metric_name)
    if start is None:
        return
    kind, rest = start[1].lower(), metric_name[start.end() :]
    if not rest.startswith("["):
        if not rest or rest.startswith("@"):
            yield kind, None, rest
        return
    for end in reversed([index for index, letter in enumerate(rest) if letter == "]"]):
        tail = rest[end + 1 :]
        if not tail.strip() or tail.lstrip().startswith("@"):
            yield kind, rest[1:end], tail.lstrip()


def _first_that_works(attempts: Sequence[Callable[[], list[Metric]]], metric_name: str) -> list[Metric]:
    failures: list[MetricError] = []
    for attempt in attempts:
        try:
            return attempt()
        except MetricError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]
    turned = metric_name.replace("(", "[").replace(")", "]")
    turned += "]" * (turned.count("[") - turned.count("]"))
    hint = f"; did you mean {turned!r}?" if turned != metric_name else ";"
    raise MetricError(
        f"metric {metric_name!r} was not understood{hint} choose from {', '.join(known_names())}, or pass a callable"
    )


def _read(metric_name: str, reading: Reading, pool: Pool, named: str | None = None) -> list[Metric]:
    asked_kind, arguments, tail = reading
    kind = SYNONYMS.get(asked_kind, asked_kind)
    if kind == "pass_rate" and arguments is None:
        kind, arguments = "share", "pass"
    if kind == "gap" and arguments is not None:
        return _gaps(metric_name, arguments, tail, pool, named)
    where = _where(metric_name, tail, pool) if tail else None
    if kind in OF_TRUTH:
        if named is not None:
            raise MetricError(f"metric {metric_name!r} is about the truth and not about a model; leave out '{named}:'")
        return [_on_slice(_as_asked(metric_of_truth(metric_name, kind, arguments, pool), kind, asked_kind), where)]
    if kind not in KNOWN:
        raise MetricError(not_understood(metric_name, kind, arguments, pool))
    return [
        _of_model(_on_slice(_as_asked(metric, kind, asked_kind), where), model)
        for model in _asked_models(metric_name, named, pool)
        for metric in metrics_of_model(metric_name, kind, arguments, where, pool, model)
    ]


def _as_asked(metric: Metric, kind: str, asked_kind: str) -> Metric:
    """The metric under the name of its kind that was asked for: sensitivity[cat] stays that."""
    is_synonym = kind in SYNONYMS.values() and asked_kind in SYNONYMS and plain_name(asked_kind) == kind
    return replace(metric, name=asked_kind + metric.name.removeprefix(kind)) if is_synonym else metric


# ---------------------------------------------------------------- gaps


def _gaps(metric_name: str, arguments: str, tail: str, pool: Pool, named: str | None) -> list[Metric]:
    """gap[metric, slice] of one model, or of each."""
    if tail:
        raise MetricError(f"metric {metric_name!r}: a gap is taken over all groups of its slice; leave out {tail!r}")
    inner, comma, name = arguments.rpartition(",")
    inner, name = inner.strip(), name.strip()
    if not comma or not inner or not name:
        raise MetricError(f"metric {metric_name!r}: write a metric and a slice, e.g. 'gap[accuracy, {a_slice(pool)}]'")
    values = _values_of_slice(metric_name, name, pool)
    if not 2 <= len(values) <= MOST_GROUPS:
        raise MetricError(
            f"metric {metric_name!r}: slice {name!r} has {len(values)} group{'s' * (len(values) != 1)}; a gap is "
            f"offered for 2 to {MOST_GROUPS}; name two of them: 'A@{name}=... - A@{name}=...'"
        )
    whole = _by_name(f"{named}: {inner}" if named else inner, pool)
    if any(metric.where is not None or len(metric.parts) > 1 for metric in whole):
        raise MetricError(f"metric {metric_name!r}: a gap is taken of one metric of the whole pool, not of {inner!r}")
    if len({metric.model for metric in whole}) < len(whole):
        raise MetricError(f"metric {metric_name!r}: {inner!r} stands for {len(whole)} metrics; name one of them")
    by_group = [[_of_any_model(f"{metric.name}@{name}={value}", pool)[0] for value in values] for metric in whole]
    gaps = []
    for metric, groups in zip(whole, by_group, strict=True):
        base = metric.name if metric.model is None else metric.name.removeprefix(f"{metric.model}: ")
        made = gap(f"gap[{base}, {name}]", groups, name)
        gaps.append(made if metric.model is None else _of_model(made, metric.model))
    return gaps


def _where(metric_name: str, tail: str, pool: Pool) -> Where:
    """("scanner", "A") of "@scanner=A"; MetricError if the pool has no such slice or value."""
    cuts = [index for index, letter in enumerate(tail) if letter == "="]
    for cut in cuts:
        name = tail[1:cut]
        if name in pool.slices or cut == cuts[-1]:
            break
    else:
        name = tail[1:].strip()
        values = _values_of_slice(metric_name, name, pool)
        raise MetricError(
            f"metric {metric_name!r}: write a value, e.g. '@{name}={values[0]}' (known: {listing(values)})"
        )
    values = _values_of_slice(metric_name, name, pool)
    for value in (tail[cut + 1 :], tail[cut + 1 :].strip()):
        if value in values:
            return name, value
    raise MetricError(
        f"metric {metric_name!r}: slice {name!r} never takes the value {value!r} (known: {listing(values)})"
        f"{near(value, values)}"
    )


def _values_of_slice(metric_name: str, name: str | None, pool: Pool) -> list[str]:
    if name is None:
        return []
    if name not in pool.slices:
        known = listing(pool.slices) if pool.slices else "none: pass slices={...} to the pool, or --slice COLUMN"
        raise MetricError(
            f"metric {metric_name!r}: no slice {name!r} in this pool (known: {known}){near(name, pool.slices)}"
        )
    values: list[str] = np.unique(pool.slices[name]).tolist()
    return values


def _on_slice(metric: Metric, where: Where) -> Metric:
    return metric if where is None else metric.on_slice(*where) or metric


def _of_function(function: Callable[..., float], pool: Pool, name: str | None = None) -> Metric:
    """The metric that a function of labels and answers, or of labels and scores, computes."""
    if asks_for_scores(function):
        return of_scores_callable(function, pool, name)
    return from_callable(function, pool.classes, name)


def _of_pair(pair: tuple[Any, ...], pool: Pool) -> Metric:
    """(name, callable) or ("cost", matrix), the name with or without a slice."""
    if len(pair) != 2 or not isinstance(pair[0], str) or not pair[0].strip():
        raise MetricError(f"metric {pair!r} was not understood; a pair must be (name, callable) or ('cost', matrix)")
    name, definition = pair
    base, at, tail = name.partition("@")
    where = _where(name, at + tail, pool) if at else None
    if callable(definition):
        return _on_slice(_of_function(definition, pool, base), where)
    if base.strip().lower() != "cost":
        raise MetricError(f"metric {name!r}: a pair must be (name, callable) or ('cost', matrix)")
    return _on_slice(cost("cost", definition, len(pool.classes)), where)
