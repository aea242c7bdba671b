"""Plan: what a session was asked to find out and how; written once when it is created, read back when it is opened.

Values are stored as JSON, metrics and methods as plan_json.py says. What is not built in has to be handed over on
opening, or the file has to be trusted.
"""

import json
import math
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from altmas.errors import MethodError, NewerSession, PlanError
from altmas.guaranteed import offers_guarantee, too_many_weights
from altmas.methods import DEFAULT_METHOD, Method, check, check_ahead, check_draw, check_installed, method_named
from altmas.methods.assured.contest import comparing, metrics_to_rank
from altmas.methods.protocol import DrawsInSequence
from altmas.metrics import Metric, MetricLike, is_one, metric_set, plain_name
from altmas.pool import Pool
from altmas.session.plan_json import canonical, method_from, method_json, metric_from, metric_json, metric_name
from altmas.suggest import listing, near
from altmas.task import ABOUT, DEFAULT_CONFIDENCE, DEFAULT_METRICS, DRAWS, About, Draw, Task


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a session is to find out.

    metrics       as given: names, callables, ("cost", matrix)
    budget        how many labels at most; None for the whole pool
    targets       {metric: half-width that is wanted}
    thresholds    {metric: value}; the session may stop once the interval lies wholly on one side
    double_share  share of the drawn points that two annotators label without seeing each other's vote
    guarantee     intervals with a finite-sample proof that holds at every look, where the metric has one
    about         "pool": the items themselves; "future": data like them, of which they are a sample (`Pool.group`)
    draw          "items": single items; "groups": whole groups (`Pool.group`), all of whose items are asked for
    wave_budget   labels for each wave of items that is added, before others are drawn from again; None for no such rule
    rank          the metric by which the models are to be ranked: draws then go where contenders differ; "" for none
    instructions  what the labellers are told;  definitions  {class: what it means}
    fingerprint   of the pool: one hash for each part
    """

    metrics: tuple[MetricLike, ...]
    method: Method
    budget: int | None = None
    targets: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    confidence: float = DEFAULT_CONFIDENCE
    seed: int = 0
    double_share: float = 0.0
    guarantee: bool = False
    about: About = "pool"
    draw: Draw = "items"
    wave_budget: int | None = None
    rank: str = ""
    instructions: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)
    fingerprint: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pool: Pool,
        *,
        metrics: MetricLike | Iterable[MetricLike] = DEFAULT_METRICS,
        method: str | Method = DEFAULT_METHOD,
        budget: int | None = None,
        targets: Mapping[str, float] | None = None,
        thresholds: Mapping[str, float] | None = None,
        confidence: float = DEFAULT_CONFIDENCE,
        seed: int | None = 0,
        double_share: float = 0.0,
        guarantee: bool = False,
        about: About = "pool",
        draw: Draw = "items",
        rank: str = "",
        instructions: str = "",
        definitions: Mapping[str, str] | None = None,
    ) -> Self:
        """The plan for this pool; seed=None draws one. PlanError, MetricError or MethodError if it is impossible."""
        if not isinstance(pool, Pool):
            raise PlanError(f"a session needs a Pool, got {type(pool).__name__}; make one with altmas.Pool(...)")
        as_given = metric_tuple(metrics)
        resolved = metric_set(list(as_given), pool)
        by_name = {metric.name: metric for metric in resolved}
        chosen = method_named(method)
        check(chosen, pool, resolved)
        return cls(
            metrics=as_given,
            method=chosen,
            budget=_budget(budget, pool),
            targets=_per_metric("target", targets or {}, by_name, pool),
            thresholds=_per_metric("threshold", thresholds or {}, by_name, pool),
            confidence=_share("confidence", confidence, ends=False),
            seed=secrets.randbits(31) if seed is None else _whole("seed", seed),
            double_share=_share("double_share", double_share, ends=True),
            guarantee=_provable(bool(guarantee), chosen, resolved, pool),
            about=_about(about, chosen, bool(guarantee), pool),
            draw=_draw(draw, chosen, bool(guarantee), pool),
            rank=_rank(rank, chosen, pool),
            instructions=str(instructions),
            definitions={str(pool.classes[pool.code(c)]): str(text) for c, text in (definitions or {}).items()},
            fingerprint=pool.fingerprint,
        )

    def task(self, pool: Pool) -> Task:
        """What the method is asked on this pool."""
        stopping = bool(self.targets or self.thresholds)
        metrics = metric_set(list(self.metrics), pool)
        targets = tuple(self.targets.items())
        return Task(
            pool,
            metrics,
            self.confidence,
            self.seed,
            targets,
            budget=self.budget,
            guarantee=self.guarantee,
            about=self.about,
            draw=self.draw,
            wave_budget=self.wave_budget,
            rank=metrics_to_rank(self.rank, pool) if self.rank else (),
            stopping=stopping,
        )

    def on(self, pool: Pool) -> Self:
        """The plan in the names that metrics have on this pool: models that were added later give them all a prefix."""
        names = {metric.name for metric in metric_set(list(self.metrics), pool)}
        if names.issuperset((*self.targets, *self.thresholds)):
            return self
        targets, thresholds = (
            {_name_among(name, names, pool): value for name, value in numbers.items()}
            for numbers in (self.targets, self.thresholds)
        )
        return replace(self, targets=targets, thresholds=thresholds)

    def extended(
        self,
        pool: Pool,
        *,
        metrics: MetricLike | Iterable[MetricLike] = (),
        budget: int | None = None,
        targets: Mapping[str, float] | None = None,
        thresholds: Mapping[str, float] | None = None,
        wave_budget: int | None = None,
    ) -> Self:
        """The plan with further metrics, and with a budget, targets and thresholds in place of its own; checked."""
        present = [metric_json(metric) for metric in self.metrics]
        more = [metric for metric in metric_tuple(metrics) if metric_json(metric) not in present]
        as_given = metric_tuple([*self.metrics, *more])
        resolved = metric_set(list(as_given), pool)
        by_name = {metric.name: metric for metric in resolved}
        check(self.method, pool, resolved)
        return replace(
            self,
            metrics=as_given,
            budget=self.budget if budget is None else _budget(budget, pool),
            wave_budget=self.wave_budget if wave_budget is None else _wave_budget(wave_budget, self.method),
            targets={**self.targets, **_per_metric("target", targets or {}, by_name, pool)},
            thresholds={**self.thresholds, **_per_metric("threshold", thresholds or {}, by_name, pool)},
            guarantee=_provable(self.guarantee, self.method, resolved, pool),
        )

    def settings_since(self, before: Self, labels: int) -> dict[str, Any]:
        """The settings that are not as in the plan before, as JSON; PlanError if the budget was spent."""
        mine, earlier = self.to_json(), before.to_json()
        settings = {name: mine[name] for name in CHANGEABLE if mine[name] != earlier[name]}
        if "budget" in settings and self.budget is not None and self.budget < labels:
            raise PlanError(
                f"budget {self.budget} is less than the {labels} labels told already; expected at least {labels}; "
                "nothing was recorded"
            )
        return settings

    def changed(self, settings: Mapping[str, Any], functions: Mapping[str, MetricLike], *, trust: bool = False) -> Self:
        """The plan with settings that were changed later, as the log has them.

        functions  those among the metrics that were handed over, by name
        """
        if not settings:
            return self
        _check_known(settings, CHANGEABLE)
        read = dict(settings)
        if "metrics" in read:
            own = {metric_name(metric): metric for metric in self.metrics if not isinstance(metric, str)}
            functions = {**own, **functions}
            read["metrics"] = tuple(metric_from(metric, functions, trust=trust) for metric in read["metrics"])
        return replace(self, **read)._checked()

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` understands."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        plain |= {name: dict(value) for name, value in plain.items() if isinstance(value, Mapping)}
        return plain | {"metrics": [metric_json(metric) for metric in self.metrics], "method": method_json(self.method)}

    @classmethod
    def from_json(
        cls,
        plain: Mapping[str, Any],
        metrics: Iterable[MetricLike] = (),
        method: Method | None = None,
        *,
        trust: bool = False,
    ) -> Self:
        """The plan that was stored, every setting checked; `metrics` and `method` stand in for what is not built in.

        With trust=True what the plan names is imported; without, PlanError says what that would be.
        """
        functions = {metric_name(metric): metric for metric in metric_tuple(metrics)}
        _check_known(plain, {setting.name for setting in fields(cls)})
        read = dict(plain)
        read["metrics"] = tuple(metric_from(metric, functions, trust=trust) for metric in plain["metrics"])
        read["method"] = method if method is not None else method_from(plain["method"], trust=trust)
        check_installed(read["method"])
        return cls(**read)._checked()

    def _checked(self) -> Self:
        """The plan itself; PlanError if a setting could not have been stored by altmas."""
        for budget in (self.budget, self.wave_budget):
            if budget is not None and _whole("budget", budget) == 0:
                raise PlanError("budget 0 is out of range; expected at least 1")
        _whole("seed", self.seed)
        _share("confidence", self.confidence, ends=False)
        _share("double_share", self.double_share, ends=True)
        _about(self.about, self.method, self.guarantee)
        _draw(self.draw, self.method, self.guarantee)
        for what, numbers in (("target", self.targets), ("threshold", self.thresholds)):
            for name, value in numbers.items():
                _number(f"{what} for {name!r}:", value)
        texts = [self.rank, self.instructions, *self.definitions.values(), *self.fingerprint.values()]
        if not all(isinstance(text, str) for text in texts):
            raise PlanError("instructions, definitions and fingerprint have to be texts")
        return self

    def differences(self, stored: Mapping[str, Any]) -> list[str]:
        """One phrase for each setting that is not as in a stored plan, the pool's fingerprint apart."""
        mine = json.loads(json.dumps(self.to_json()))
        in_file = canonical(stored)
        names = [name for name in mine if name != "fingerprint" and name in in_file and mine[name] != in_file[name]]
        return [f"{name} is {in_file[name]!r} there, {mine[name]!r} here" for name in names]


CHANGEABLE = ("metrics", "budget", "wave_budget", "targets", "thresholds")
"""Settings that can be changed in a session that exists."""


class PlannedTasks:
    """The plan and its task, which may be changed, on a pool that may get further models; made once for each.

    functions  those among the metrics that were handed over, by name;  trust  whether others may be imported
    """

    def __init__(self, plan: Plan, metrics: Iterable[MetricLike] = (), *, trust: bool = False) -> None:
        self.born, self.trust = plan, trust
        self.functions = {metric_name(metric): metric for metric in metrics}
        self._last: tuple[Pool, Mapping[str, Any], Plan, Task] | None = None

    def of(self, pool: Pool, settings: Mapping[str, Any] = MappingProxyType({})) -> tuple[Plan, Task]:
        """(plan, task) with the settings as they were changed and the metrics of all models of this pool."""
        last = self._last
        if last is None or last[0] is not pool or last[1] is not settings:
            plan = self.born.changed(settings, self.functions, trust=self.trust).on(pool)
            task = replace(plan.task(pool), budget=self.born.budget)  # bets are planned before the first draw
            last = self._last = (pool, settings, plan, task)
        return last[2:]

    def fresh(self) -> "PlannedTasks":
        """The same with nothing made yet, for another moment of the session."""
        return PlannedTasks(self.born, self.functions.values(), trust=self.trust)


def _check_known(settings: Iterable[str], known: Collection[str]) -> None:
    """NewerSession if there are others: to leave one out, such as how items are drawn, could make intervals wrong."""
    if unknown := sorted(set(settings) - set(known)):
        raise NewerSession(
            f"the session has settings that this version of altmas does not know ({listing(unknown, 5)}): a later "
            "version wrote them; upgrade altmas to open it; nothing was changed"
        )


def _name_among(name: str, names: set[str], pool: Pool) -> str:
    """What a metric of the plan is called on this pool: with its model where there are several, synonyms as asked."""
    by_plain_name = {plain_name(full_name): full_name for full_name in names}
    with_model = f"{pool.models[0].name}: {name}" if pool.models else name
    candidates = (by_plain_name.get(plain_name(spelling)) for spelling in (name, with_model))
    return next((candidate for candidate in candidates if candidate is not None), with_model)


# ---------------------------------------------------------------- checks at the door


def metric_tuple(metrics: MetricLike | Iterable[MetricLike]) -> tuple[MetricLike, ...]:
    """The metrics that were given, one or several; PlanError if two functions have the same name."""
    as_given: tuple[MetricLike, ...] = (metrics,) if is_one(metrics) else tuple(metrics)  # type: ignore[assignment, arg-type]
    functions = [metric_name(metric) for metric in as_given if not isinstance(metric, str)]
    twice = sorted({name for name in functions if functions.count(name) > 1})
    if twice:
        raise PlanError(f"two metrics are called {twice[0]!r}; give each function a name of its own")
    return as_given


def _rank(metric: str, method: Method, pool: Pool) -> str:
    """The metric to rank by; PlanError, MetricError or MethodError if models cannot be ranked by it."""
    if not isinstance(metric, str):
        raise PlanError(f"rank={metric!r} was not understood; give the name of a metric, such as 'accuracy'")
    if metric:
        metrics_to_rank(metric, pool)
        comparing(method)
    return metric


def _about(about: object, method: Method, guarantee: bool, pool: Pool | None = None) -> About:
    """What the numbers are about; PlanError or MethodError if the method, or a proof, cannot be about that."""
    population = next((name for name in ABOUT if name == about), None)
    if population is None:
        raise PlanError(f"about={about!r} was not understood; expected 'pool' or 'future'{near(about, ABOUT)}")
    if population == "future" and guarantee:
        raise PlanError(
            "guarantee=True with about='future': the proof is about the items of the pool, not about data like them; "
            "leave one of the two out"
        )
    if population == "future":
        check_ahead(method, pool)
    return population


def _draw(draw: object, method: Method, guarantee: bool, pool: Pool | None = None) -> Draw:
    """What is drawn; PlanError or MethodError if the method, the pool or a proof does not allow it."""
    unit = next((name for name in DRAWS if name == draw), None)
    if unit is None:
        raise PlanError(
            f"draw={draw!r} was not understood; expected 'items' or 'groups'{near(draw, DRAWS)}; nothing was recorded"
        )
    if unit == "groups" and guarantee:
        raise PlanError(
            "guarantee=True with draw='groups': no guarantee is offered for draws of whole groups; leave one of the "
            "two out; nothing was recorded"
        )
    check_draw(method, unit, pool)
    return unit


def _budget(budget: int | None, pool: Pool) -> int | None:
    if budget is None:
        return None
    count = _whole("budget", budget)
    if not 1 <= count <= len(pool):
        raise PlanError(f"budget {count} is out of range; expected 1 to {len(pool)}, the number of points in the pool")
    return count


def _wave_budget(budget: int, method: Method) -> int:
    count = _whole("wave_budget", budget)
    if count < 1:
        raise PlanError("wave_budget 0 is out of range; expected at least 1; nothing was recorded")
    if method.name != "assured":
        raise MethodError(
            f"method {method.name!r} draws from all items alike, so that a wave has no budget of its own; methods that "
            "have: assured; nothing was recorded"
        )
    return count


def _whole(what: str, value: object) -> int:
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise PlanError(f"{what} {value!r} is not a whole number of at least {int(what == 'budget')}")
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


def _per_metric(what: str, numbers: Mapping[str, float], metrics: Mapping[str, Metric], pool: Pool) -> dict[str, float]:
    """{metric: number} under the names of the session's metrics ("sensitivity[cat]" finds "recall[cat]")."""
    if not isinstance(numbers, Mapping):
        raise PlanError(f"{what}s={numbers!r} was not understood; expected {{metric: number}}, as {{'accuracy': 0.05}}")
    by_metric: dict[str, float] = {}
    by_plain_name = {plain_name(full_name): full_name for full_name in metrics}
    for name, value in numbers.items():
        asked_names = [name] if name in metrics else [metric.name for metric in metric_set([name], pool)]
        meant = [by_plain_name.get(plain_name(asked_name), asked_name) for asked_name in asked_names]
        if not metrics.keys() >= set(meant):
            raise PlanError(
                f"{what} for {name!r}: it is not one of this session's metrics ({listing(metrics)})"
                f"{near(name, metrics)}; add it to them (--metric {name!r})"
            )
        resolved = meant[0]
        number = _number(f"{what} for {name!r}:", value)
        low, high = metrics[resolved].bounds
        percent = (1 if what == "target" else 2) <= number <= 100 and high <= 1  # 1.2 is no threshold of 1.2 %
        hint = f"; did you mean {number / 100:g}?" if percent and number > 1 else ""
        if what == "target" and not 0 < number < high - low:
            raise PlanError(
                f"{what} for {name!r}: {number:g} is not a half-width; expected a number above 0 and below "
                f"{high - low:g}{hint}"
            )
        if what == "threshold" and not low <= number <= high:
            raise PlanError(
                f"{what} for {name!r}: {number:g} is no value that it can take; expected {low:g} to {high:g}{hint}"
            )
        by_metric |= dict.fromkeys(meant, number)
    return by_metric


def _provable(guarantee: bool, method: Method, metrics: Sequence[Metric], pool: Pool) -> bool:
    """Whether a guarantee is wanted; PlanError names a metric or a method without a proof."""
    if guarantee and not isinstance(method, DrawsInSequence):
        raise PlanError(
            f"guarantee=True: method {method.name!r} has no proof; choose 'assured' or 'tradition', or leave it out"
        )
    if guarantee and too_many_weights(pool):
        raise PlanError(f"guarantee=True: {too_many_weights(pool)}")
    without = [metric.name for metric in metrics if guarantee and not offers_guarantee(method, metric, pool)]
    if without:
        raise PlanError(
            f"guarantee=True: no guarantee is offered for {listing(without)}; it covers ratios of sums: accuracy, "
            "precision, recall, specificity, npv, f1, jaccard, confusion, share and mean, also on slices and at "
            "thresholds, and differences of accuracies, precisions, shares and means"
        )
    return guarantee
