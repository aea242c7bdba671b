"""Plan: what a session was asked to find out and how; written once when it is created, read back when it is opened.

Values are stored as JSON. Functions and objects are stored by where they can be imported from, never pickled;
what cannot be imported again (a lambda, a class inside a function) has to be handed over on opening.
"""

import functools
import importlib
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Self

import numpy as np

from altmas.data.pool import Pool
from altmas.errors import PlanError
from altmas.methods import DEFAULT_METHOD, METHODS, Method, Task, check, method_named
from altmas.metrics import Metric, MetricLike, is_one, metric_set
from altmas.metrics.callables import name_of
from altmas.suggest import listing, near


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a session is to find out.

    metrics       as given: names, callables, ("cost", matrix)
    budget        how many labels at most; None for the whole pool
    targets       {metric: half-width that is wanted}
    thresholds    {metric: value}; the session may stop once the interval lies wholly on one side
    double_share  share of the drawn points that two annotators label without seeing each other's vote
    instructions  what the labellers are told;  definitions  {class: what it means}
    fingerprint   of the pool: one hash for each part
    """

    metrics: tuple[MetricLike, ...]
    method: Method
    budget: int | None = None
    targets: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    confidence: float = 0.95
    seed: int = 0
    double_share: float = 0.0
    instructions: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)
    fingerprint: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pool: Pool,
        *,
        metrics: MetricLike | Iterable[MetricLike] = ("accuracy",),
        method: str | Method = DEFAULT_METHOD,
        budget: int | None = None,
        targets: Mapping[str, float] | None = None,
        thresholds: Mapping[str, float] | None = None,
        confidence: float = 0.95,
        seed: int = 0,
        double_share: float = 0.0,
        instructions: str = "",
        definitions: Mapping[str, str] | None = None,
    ) -> Self:
        """The plan for this pool; PlanError, MetricError or MethodError if it cannot be carried out."""
        wanted = _metric_tuple(metrics)
        asked = metric_set(wanted, pool)
        known = [metric.name for metric in asked]
        chosen = method_named(method)
        check(chosen, pool, asked)
        return cls(
            metrics=wanted,
            method=chosen,
            budget=_budget(budget, pool),
            targets=_per_metric("target", targets or {}, known, pool, positive=True),
            thresholds=_per_metric("threshold", thresholds or {}, known, pool, positive=False),
            confidence=_share("confidence", confidence, ends=False),
            seed=_whole("seed", seed),
            double_share=_share("double_share", double_share, ends=True),
            instructions=str(instructions),
            definitions={str(pool.classes[pool.code(c)]): str(text) for c, text in (definitions or {}).items()},
            fingerprint=pool.fingerprint,
        )

    def task(self, pool: Pool) -> Task:
        """What the method is asked on this pool."""
        stopping = bool(self.targets or self.thresholds)
        metrics = metric_set(self.metrics, pool)
        return Task(pool, metrics, self.confidence, self.seed, tuple(self.targets.items()), stopping)

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` understands."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        plain |= {name: dict(value) for name, value in plain.items() if isinstance(value, Mapping)}
        return plain | {"metrics": [_metric_json(one) for one in self.metrics], "method": _method_json(self.method)}

    @classmethod
    def from_json(
        cls, plain: Mapping[str, Any], metrics: Iterable[MetricLike] = (), method: Method | None = None
    ) -> Self:
        """The plan that was stored; `metrics` and `method` stand in for what cannot be imported again."""
        given = {_metric_name(one): one for one in _metric_tuple(metrics)}
        known = {one.name for one in fields(cls)}
        read: dict[str, Any] = {name: value for name, value in plain.items() if name in known}
        read["metrics"] = tuple(_metric_from(one, given) for one in plain["metrics"])
        read["method"] = method if method is not None else _method_from(plain["method"])
        return cls(**read)

    def differences(self, stored: Mapping[str, Any]) -> list[str]:
        """One phrase for each setting that is not as in a stored plan, the pool's fingerprint apart."""
        mine = json.loads(json.dumps(self.to_json()))
        names = [name for name in mine if name != "fingerprint" and name in stored and mine[name] != stored[name]]
        return [f"{name} is {stored[name]!r} there, {mine[name]!r} here" for name in names]


# ---------------------------------------------------------------- checks at the door


def _metric_tuple(metrics: MetricLike | Iterable[MetricLike]) -> tuple[MetricLike, ...]:
    wanted: tuple[MetricLike, ...] = (metrics,) if is_one(metrics) else tuple(metrics)  # type: ignore[assignment, arg-type]
    functions = [_metric_name(one) for one in wanted if not isinstance(one, str)]
    twice = sorted({name for name in functions if functions.count(name) > 1})
    if twice:
        raise PlanError(f"two metrics are called {twice[0]!r}; give each function a name of its own")
    return wanted


def _budget(budget: int | None, pool: Pool) -> int | None:
    if budget is None:
        return None
    count = _whole("budget", budget)
    if not 1 <= count <= len(pool):
        raise PlanError(f"budget {count} is out of range; expected 1 to {len(pool)}, the number of points in the pool")
    return count


def _whole(what: str, value: object) -> int:
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise PlanError(f"{what} {value!r} is not a whole number of at least 0")
    return number


def _number(what: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise PlanError(f"{what} {value!r} is not a number")
    return number


def _share(what: str, value: object, *, ends: bool) -> float:
    number = _number(what, value)
    if not (0 <= number <= 1 if ends else 0 < number < 1):
        hint = f"; did you mean {number / 100:g}?" if 1 < number < 100 else ""
        raise PlanError(f"{what} {number:g} is out of range; expected a number between 0 and 1{hint}")
    return number


def _per_metric(
    what: str, given: Mapping[str, float], known: list[str], pool: Pool, *, positive: bool
) -> dict[str, float]:
    """{metric: number}, names resolved ("sensitivity[cat]" is "recall[cat]") and found among the session's metrics."""
    found = {}
    for name, value in given.items():
        resolved = name if name in known else [metric.name for metric in metric_set([name], pool)][0]
        if resolved not in known:
            raise PlanError(
                f"{what} for {name!r}: it is not one of this session's metrics ({listing(known)}){near(name, known)}"
            )
        number = _number(f"{what} for {name!r}:", value)
        if positive and number <= 0:
            raise PlanError(f"{what} for {name!r}: {number:g} is not a half-width; expected a number above 0")
        found[resolved] = number
    return found


# ---------------------------------------------------------------- metrics and methods as JSON


def _metric_name(metric: MetricLike) -> str:
    if isinstance(metric, str):
        return metric
    if isinstance(metric, tuple):
        return str(metric[0])
    return metric.name if isinstance(metric, Metric) else name_of(metric)


def _metric_json(metric: MetricLike) -> Any:
    if isinstance(metric, str):
        return metric
    if isinstance(metric, tuple):
        name, what = metric
        return {"name": name, "pair": _encoded(what)} if callable(what) else {"name": name, "cost": _matrix(what)}
    return {"name": _metric_name(metric), "function": None if isinstance(metric, Metric) else _encoded(metric)}


def _metric_from(plain: Any, given: Mapping[str, MetricLike]) -> MetricLike:
    if isinstance(plain, str):
        return plain
    name = plain["name"]
    if "cost" in plain:
        return name, plain["cost"]
    if name in given:
        return given[name]
    try:
        function = _decoded(plain["pair"] if "pair" in plain else plain["function"])
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


def _method_json(method: Method) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": method.name, "options": {}, "class": None}
    if is_dataclass(method) and not isinstance(method, type):
        plain["options"] = {one.name: _encoded(getattr(method, one.name)) for one in fields(method) if one.init}
    if METHODS.get(method.name) is not type(method):
        plain["class"] = place_of(type(method)) or "<local>"
    return plain


def _method_from(plain: Mapping[str, Any]) -> Method:
    make: Callable[..., Any] | None = METHODS.get(plain["name"]) if plain["class"] is None else imported(plain["class"])
    try:
        if make is None or not (plain["class"] is None or is_dataclass(make)):
            raise LookupError
        method = make(**{name: _decoded(value) for name, value in plain["options"].items()})
    except (LookupError, TypeError) as cause:
        raise PlanError(
            f"the session's method {plain['name']!r} cannot be made again from its stored options; "
            "pass it: Session.open(path, method=...)"
        ) from cause
    if not isinstance(method, Method):
        raise PlanError(f"the session's method {plain['name']!r} lacks propose or estimate; pass it as method=...")
    return method


def _encoded(value: Any) -> Any:
    """An option as JSON; tuples, nested option objects and functions are marked with a $."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return {"$tuple": [_encoded(one) for one in value]}
    if isinstance(value, list):
        return [_encoded(one) for one in value]
    if isinstance(value, Mapping) and not any(str(key).startswith("$") for key in value):
        return {str(key): _encoded(one) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type) and place_of(type(value)):
        options = {one.name: _encoded(getattr(value, one.name)) for one in fields(value) if one.init}
        return {"$object": place_of(type(value)), "options": options}
    if callable(value) and place_of(value):
        return {"$function": place_of(value)}
    if isinstance(value, functools.partial):
        return {"$partial": _encoded(value.func), "args": _encoded(value.args), "keywords": _encoded(value.keywords)}
    return {"$lost": repr(value)}


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "$tuple" in value:
        return tuple(_decoded(one) for one in value["$tuple"])
    if "$lost" in value:
        raise LookupError(value["$lost"])
    if "$partial" in value:
        return functools.partial(_decoded(value["$partial"]), *_decoded(value["args"]), **_decoded(value["keywords"]))
    if "$function" in value or "$object" in value:
        found = imported(value.get("$function") or value["$object"])
        if found is None or ("$object" in value and not is_dataclass(found)):
            raise LookupError(value)
        return found if "$function" in value else found(**_decoded(value["options"]))
    return {key: _decoded(one) for key, one in value.items()}


def place_of(thing: Any) -> str | None:
    """ "module:name" where a function or class can be imported again, or None."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    place = f"{module}:{name}"
    return place if module and name and imported(place) is thing else None


def imported(place: str | None) -> Any:
    """What stands at "module:name", or None."""
    module, _, name = (place or "").partition(":")
    if not module or not name:
        return None
    try:
        found: Any = importlib.import_module(module)
        for piece in name.split("."):
            found = getattr(found, piece)
    except (ImportError, AttributeError):
        return None
    return found
