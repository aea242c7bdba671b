"""Metrics and methods as JSON, and back from a file that anybody may have written.

A file is data: what it names is looked up in tables of this package (built-in methods, scores of scikit-learn) and
never imported. Other functions and classes are stored by where they can be imported from; they come back only
if whoever opens the file hands them over or says that the file is trusted.
"""

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from altmas.errors import AltmasError, MethodError, PlanError
from altmas.methods import METHODS, Method
from altmas.metrics import Metric, MetricLike
from altmas.metrics.callables import name_of

SCORES = frozenset(
    "accuracy_score adjusted_mutual_info_score adjusted_rand_score average_precision_score balanced_accuracy_score "
    "brier_score_loss cohen_kappa_score log_loss roc_auc_score "
    "completeness_score f1_score fbeta_score fowlkes_mallows_score hamming_loss homogeneity_score jaccard_score "
    "matthews_corrcoef max_error mean_absolute_error mean_squared_error median_absolute_error mutual_info_score "
    "normalized_mutual_info_score precision_score r2_score rand_score recall_score root_mean_squared_error "
    "v_measure_score zero_one_loss".split()
)
"""Functions of scikit-learn that a stored plan may name."""

SCORE_MODULE = "sklearn.metrics"
METHOD_MODULE = "altmas.methods"


class Untrusted(LookupError):
    """Something that a file names and that would have to be imported."""

    def __init__(self, import_path: str) -> None:
        super().__init__(import_path)
        self.import_path = import_path


# ---------------------------------------------------------------- metrics


def metric_name(metric: MetricLike) -> str:
    """The name under which a metric is stored and handed over."""
    if isinstance(metric, str):
        return metric
    if isinstance(metric, tuple):
        return str(metric[0])
    return metric.name if isinstance(metric, Metric) else name_of(metric)


def metric_json(metric: MetricLike) -> Any:
    """A metric as JSON; a function by where it can be imported from."""
    if isinstance(metric, str):
        return metric
    if isinstance(metric, tuple):
        name, what = metric
        return {"name": name, "pair": encoded(what)} if callable(what) else {"name": name, "cost": _matrix(what)}
    return {"name": metric_name(metric), "function": None if isinstance(metric, Metric) else encoded(metric)}


def metric_from(plain: Any, functions: Mapping[str, MetricLike], *, trust: bool) -> MetricLike:
    """The metric that was stored, or the one of that name in `functions`; PlanError says what would be imported."""
    if isinstance(plain, str):
        return plain
    name = str(plain["name"])
    if "cost" in plain:
        return name, plain["cost"]
    if name in functions:
        return functions[name]
    try:
        function = decoded(plain["pair"] if "pair" in plain else plain["function"], trust=trust)
    except Untrusted as refused:
        raise PlanError(_would_import(f"metric {name!r}", refused.import_path, "metrics=[...]")) from None
    except LookupError:
        function = None
    if not _takes_two(function):
        raise PlanError(
            f"the session's metric {name!r} is a function that cannot be imported again; "
            "pass it: Session.open(path, metrics=[...])"
        )
    return (name, function) if "pair" in plain else function


def _matrix(what: Any) -> Any:
    return np.asarray(what).tolist()


def _takes_two(function: Any) -> bool:
    """Whether f(y_true, y_pred) is a possible call."""
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def _would_import(what: str, import_path: str, handed: str) -> str:
    return (
        f"the session's {what} is {import_path!r}, which would be imported and run; nothing was: a session file is "
        f"data. Hand it over with Session.open(path, {handed}), or, if you trust whoever made the file, open it with "
        "trust=True (--trust on the command line)"
    )


# ---------------------------------------------------------------- methods


def method_json(method: Method) -> dict[str, Any]:
    """A method as JSON: its name and options, and where its class can be imported from if it is not built in."""
    plain: dict[str, Any] = {"name": method.name, "options": {}, "class": None}
    if is_dataclass(method) and not isinstance(method, type):
        plain["options"] = _options(method)
    if METHODS.get(method.name) is not type(method):
        plain["class"] = import_path_of(type(method)) or "<local>"
    return plain


def method_from(plain: Mapping[str, Any], *, trust: bool) -> Method:
    """The method that was stored; PlanError says what would be imported, or why it cannot be made."""
    name = str(plain["name"])
    try:
        make = METHODS.get(name) if plain["class"] is None else _class_at(plain["class"], trust=trust)
        if make is None or plain["class"] == "<local>":
            raise LookupError(name)
        method: Method = _made(make, _renamed(name, decoded(plain["options"], trust=trust)))
    except Untrusted as refused:
        raise PlanError(_would_import(f"method {name!r}", refused.import_path, "method=...")) from None
    except (LookupError, TypeError, ValueError) as cause:
        raise PlanError(
            f"the session's method {name!r} cannot be made again from its stored options ({cause}); "
            "pass it: Session.open(path, method=...)"
        ) from cause
    if not all(callable(getattr(method, verb, None)) for verb in ("propose", "estimate")):
        raise PlanError(f"the session's method {name!r} lacks propose or estimate; pass it as method=...")
    return method


@contextmanager
def at_work(method: Method) -> Iterator[None]:
    """Whatever a built-in method raises on a log as a sentence: the log may be none that altmas wrote."""
    try:
        yield
    except AltmasError:
        raise
    except Exception as cause:
        if type(method) not in METHODS.values():
            raise
        raise MethodError(
            f"method {method.name!r} cannot go on from this log ({type(cause).__name__}: {cause}): the file was "
            "changed by something else than altmas, or this is a fault of altmas; nothing was recorded"
        ) from cause


def _class_at(import_path: str, *, trust: bool) -> Callable[..., Any]:
    """The dataclass at "module:name"; LookupError if there is none."""
    definition = _at(import_path, trust=trust)
    if not (isinstance(definition, type) and is_dataclass(definition)):
        raise LookupError(import_path)
    return definition


def _renamed(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options under their present names, without those that have gone."""
    changed = EARLIER_OPTIONS.get(name, {})
    present = {changed.get(option, option): value for option, value in options.items()}
    return {option: value for option, value in present.items() if option is not None}


EARLIER_OPTIONS: dict[str, dict[str, str | None]] = {
    "assured": {"tilt": "defensive_share", "planned": None, "prior": None}
}
"""Options of version 0.1 by method: their present name, or None for those that have gone."""


def _made(make: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """The object with these options; TypeError names one of a built-in that is of another type than its default."""
    if make in METHODS.values():
        for option in fields(make):  # type: ignore[arg-type]
            kinds = KINDS.get(type(option.default))
            if option.name in options and kinds is not None and type(options[option.name]) not in kinds:
                raise TypeError(f"option {option.name!r} is {options[option.name]!r}")
    return make(**options)


KINDS: dict[type, tuple[type, ...]] = {
    bool: (bool,),
    int: (int, float, type(None)),
    float: (int, float, type(None)),
    str: (str, type(None)),
    tuple: (tuple,),
}
"""What may stand for an option whose default is of that type."""


# ---------------------------------------------------------------- values


def encoded(value: Any) -> Any:
    """An option as JSON; tuples, nested option objects and functions are marked with a $."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return {"$tuple": [encoded(element) for element in value]}
    if isinstance(value, list):
        return [encoded(element) for element in value]
    if isinstance(value, Mapping) and not any(str(key).startswith("$") for key in value):
        return {str(key): encoded(element) for key, element in value.items()}
    if is_dataclass(value) and not isinstance(value, type) and import_path_of(type(value)):
        return {"$object": import_path_of(type(value)), "options": _options(value)}
    if callable(value) and import_path_of(value):
        return {"$function": import_path_of(value)}
    if isinstance(value, functools.partial):
        return {"$partial": encoded(value.func), "args": encoded(value.args), "keywords": encoded(value.keywords)}
    return {"$lost": repr(value)}


def _options(instance: Any) -> dict[str, Any]:
    """The fields with which a dataclass was made, as JSON."""
    return {option.name: encoded(getattr(instance, option.name)) for option in fields(instance) if option.init}


def decoded(value: Any, *, trust: bool) -> Any:
    """The value of `encoded`; Untrusted on what would have to be imported, LookupError on what cannot be."""
    again = functools.partial(decoded, trust=trust)
    if isinstance(value, list):
        return [again(element) for element in value]
    if not isinstance(value, dict):
        return value
    if "$tuple" in value:
        return tuple(again(element) for element in value["$tuple"])
    if "$lost" in value:
        raise LookupError(value["$lost"])
    if "$partial" in value:
        return functools.partial(again(value["$partial"]), *again(value["args"]), **again(value["keywords"]))
    if "$function" in value:
        return _at(value["$function"], trust=trust)
    if "$object" in value:
        return _made(_class_at(value["$object"], trust=trust), again(value["options"]))
    return {key: again(element) for key, element in value.items()}


def canonical(value: Any) -> Any:
    """Stored JSON with built-ins named as they are named now, wherever an earlier version of altmas kept them."""
    if isinstance(value, list):
        return [canonical(element) for element in value]
    if not isinstance(value, dict):
        return value
    again = {key: canonical(element) for key, element in value.items()}
    return again | {mark: _canonical_path(again[mark]) for mark in ("$function", "$object", "class") if mark in again}


def _canonical_path(import_path: Any) -> Any:
    built_in = _built_in(import_path)
    return import_path if built_in is None else import_path_of(built_in)


def _at(import_path: Any, *, trust: bool) -> Any:
    """What stands at "module:name": of the built-ins, or of anything that can be imported if the file is trusted."""
    definition = _built_in(import_path)
    if definition is None and import_path != "<local>":
        if not trust:
            raise Untrusted(str(import_path))
        definition = imported(import_path)
    if definition is None:
        raise LookupError(str(import_path))
    return definition


def _built_in(import_path: Any) -> Any:
    """The method class or score at an import path of this or an earlier version; None for anything else."""
    module, _, name = import_path.partition(":") if isinstance(import_path, str) else ("", "", "")
    if module == METHOD_MODULE or module.startswith(f"{METHOD_MODULE}."):
        return {make.__name__: make for make in METHODS.values()}.get(name)
    if name in SCORES and (module == SCORE_MODULE or module.startswith(f"{SCORE_MODULE}.")):
        import sklearn.metrics  # a fixed name, not one from the file; here, because few sessions use its scores

        return getattr(sklearn.metrics, name, None)
    return None


def import_path_of(definition: Any) -> str | None:
    """ "module:name" where a function or class can be imported again, or None."""
    module, name = getattr(definition, "__module__", None), getattr(definition, "__qualname__", None)
    for public in (METHOD_MODULE, SCORE_MODULE):
        import_path = f"{public}:{name}"
        if str(module).startswith(f"{public}.") and _built_in(import_path) is definition:
            return import_path
    import_path = f"{module}:{name}"
    return import_path if module and name and imported(import_path) is definition else None


def imported(import_path: str | None) -> Any:
    """What can be imported from "module:name", or None."""
    module, _, name = (import_path or "").partition(":")
    if not module or not name:
        return None
    try:
        definition: Any = importlib.import_module(module)
        for piece in name.split("."):
            definition = getattr(definition, piece)
    except (ImportError, AttributeError):
        return None
    return definition
