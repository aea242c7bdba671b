"""Before labels are paid for: how wide would the intervals be with so many of them?

The truth is imagined, the method is run on it, and the widths it reports are averaged over several such worlds.
Before any label the imagination rests on the model's own scores or on an assumed accuracy; after a pilot on the
labels that exist: p(true c | predicted a) = (n_ac + s p0(c | a)) / (n_a + s), with n the labels so far and p0 the
imagination without them, counting as s = 4 labels of each predicted class.

A session for which there is a forecast is planned by it (`plan_further`): it goes on from its labels and its belief.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from altmas.errors import PlanError
from altmas.estimates import LEAST_DRAWN, Estimate
from altmas.forecast import Forecast, Goals, forecasts, imagined_pools, labels_between, met, rehearsal_of, worlds_of
from altmas.guaranteed import NotOffered, estimates_of, guaranteed_decision, not_offered, with_guarantee
from altmas.history import History
from altmas.methods import DEFAULT_METHOD, Method, check, check_ahead, check_draw, method_named
from altmas.methods.held_up import counted_labels
from altmas.metrics import Metric, MetricLike, metric_set, table_of
from altmas.pool import Pool
from altmas.progress import Bar, progress_bar
from altmas.simulate import label_until, steps_of
from altmas.suggest import listing
from altmas.task import DEFAULT_CONFIDENCE, DEFAULT_METRICS, About, Draw, Task

ASSUMED_ACCURACY = 0.8
PRIOR_LABELS = 4.0
BATCHES = 10
"""Into how many batches the way to the largest budget is divided."""


@dataclass(frozen=True)
class PlannedWidth:
    """Expected half-width of one metric's interval after so many labels; nan where it stays undefined."""

    method: str
    metric: str
    labels: int
    half_width: float


@dataclass(frozen=True)
class PlannedDecision:
    """About how many labels settle on which side of a threshold a metric lies.

    kind     "interval": the interval for many looks lies on one side; "proof": the test with a finite-sample proof
    labels   median over the imagined worlds; nan if it stays open in at least half of them
    decided  share of the worlds in which it is settled within the largest budget
    reached  whether the labels so far settle it already: `labels` is then their number
    """

    method: str
    metric: str
    threshold: float
    kind: str
    labels: float
    decided: float
    reached: bool = False


@dataclass(frozen=True)
class PlannedTarget:
    """About how many labels a half-width needs, all labels counted; nan if more than the largest budget.

    reached  whether the labels so far give it already: `labels` is then their number
    """

    metric: str
    half_width: float
    method: str
    labels: float
    reached: bool = False


@dataclass(frozen=True)
class WidthPlan:
    """Expected half-widths and labels to targets and decisions, and in words what they assume.

    begun  labels from which the session goes on; the first widths of its method are then those of today
    """

    widths: tuple[PlannedWidth, ...]
    assumption: str
    decisions: tuple[PlannedDecision, ...] = ()
    targets: tuple[PlannedTarget, ...] = ()
    about: str = "pool"
    begun: int = 0
    learnable: str = ""
    """Where nothing can be learned in the imagined worlds: why, and what is gained there all the same; else empty."""
    guarantee: bool = False
    """Whether the half-widths are those of intervals with a finite-sample proof."""

    def labels_for(self, metric: str, half_width: float, method: str) -> float:
        """About how many labels a half-width needs, between the budgets looked at; nan if more than the largest."""
        path = [(row.labels, row.half_width) for row in self.widths if (row.metric, row.method) == (metric, method)]
        reached = [index for index, (_, width) in enumerate(path) if width <= half_width]
        if not reached:
            return math.nan
        index = reached[0]
        if index == 0:
            return float(path[0][0])
        return labels_between(*path[index - 1], *path[index], half_width)


def plan_widths(
    pool: Pool,
    *,
    metrics: MetricLike | Iterable[MetricLike] = DEFAULT_METRICS,
    methods: Sequence[str | Method] = (DEFAULT_METHOD,),
    budgets: Sequence[int] = (50, 100, 200),
    accuracy: float | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    seed: int = 0,
    worlds: int = 5,
    history: History | None = None,
    drawn_by: str | None = None,
    thresholds: Mapping[str, float] | None = None,
    targets: Mapping[str, float] | None = None,
    budget: int | None = None,
    about: About = "pool",
    draw: Draw = "items",
    guarantee: bool = False,
    progress: bool = False,
) -> WidthPlan:
    """The expected half-widths of each metric at each budget, for each method that gives intervals.

    accuracy    assumed instead of what the scores say (default 0.8 where there are none)
    history     labels that exist already; what they say replaces most of the assumption
    drawn_by    the method that goes on from them, by default the first; others start without a label
    thresholds  {metric: value}: also the labels after which it is settled on which side the metric lies
    targets     {metric: half-width}: what the session is to reach; with targets or thresholds intervals are those for
                many looks, as they are in the session
    budget      that of the session, for which such intervals are made; by default the largest of the budgets
    about       "future": intervals about data like the pool
    draw        "groups": whole groups are drawn; errors are imagined to come alone, not as groups
    guarantee   intervals with a finite-sample proof, where a method and a metric have one
    """
    stopping = bool(thresholds or targets)
    task = Task(pool, metric_set(metrics, pool), confidence, seed, stopping=stopping, about=about, draw=draw)
    task = replace(task, guarantee=guarantee)
    sides = _thresholds(thresholds or {}, task)
    aims = _targets(targets or {}, task)
    chosen = [_with_interval(method, pool) for method in methods]
    for method in chosen:
        check_draw(method, draw, pool)
        if task.ahead:
            check_ahead(method, pool)
    if guarantee and (task.ahead or task.units is not None):
        raise PlanError("no proof is offered for intervals about data to come, nor where whole groups are drawn")
    begun = (history or History(len(pool))).without_waiting()
    steps = _steps(budgets, len(pool), len(begun.labels))
    chances, assumption = imagination(pool, accuracy, begun)
    if task.units is not None:
        assumption += (
            f", and that items of one group ({pool.group_name}) are right or wrong independently of each other"
        )
    task = replace(task, targets=aims, budget=(budget or steps[-1]) if stopping else None)
    truths = (imagined(chances, begun, np.random.default_rng([seed, world])) for world in range(worlds))
    going_on = drawn_by or chosen[0].name
    starts = [(method, begun if method.name == going_on else History(len(pool))) for method in chosen]
    with progress_bar("planning", worlds * len(chosen), shown=progress) as bar:
        widths, decisions = _over_worlds(starts, task, truths, steps, sides, bar)
    planned = WidthPlan(widths, assumption, decisions, about=task.population, guarantee=guarantee)
    needs = [
        PlannedTarget(name, width, method.name, float(len(begun.labels)), reached=True)
        if start is begun and _reached(method, task, begun, name, width)
        else PlannedTarget(name, width, method.name, planned.labels_for(name, width, method.name))
        for name, width in aims
        for method, start in starts
    ]
    return replace(planned, targets=tuple(needs), learnable=_unlearnable(pool, accuracy, begun))


def plan_further(
    method: Method,
    task: Task,
    history: History,
    *,
    goals: Goals,
    budgets: Sequence[int] = (),
    until: int | None = None,
    others: Sequence[str | Method] = (),
    worlds: int = 5,
    progress: bool = False,
) -> WidthPlan | None:
    """What a session may expect that goes on from its labels, by its forecast; None where there is none.

    budgets  numbers of labels that are looked at, all labels counted; by default those of the forecast up to `until`
    others   methods to compare with: each starts without a label, in as many worlds, imagined from the same belief
    """
    labels, pool, history = len(history.labels), task.pool, history.without_waiting()
    sides, aims = _thresholds(goals.thresholds, task), _targets(goals.targets, task)
    steps = _steps(budgets, len(pool), labels) if budgets else []
    compared = [_with_interval(other, pool) for other in others]
    rehearsal = rehearsal_of(method, task, history)
    if rehearsal is None:
        return None
    single = [Goals({name: width}, {}) for name, width in aims]
    single += [Goals({}, {metric.name: value}) for metric, value in sides]
    with progress_bar("planning", worlds_of(task) + worlds * len(compared), shown=progress) as bar:
        ahead = forecasts(
            method,
            task,
            history,
            [Goals({}, {}), *single],
            until=until,
            at=steps,
            every_metric=True,
            after_world=lambda: bar.advance(1),
        )
        if ahead is None:
            return None
        of_widths, *of_goals = ahead
        looked_at = sorted({labels, *steps, *(band.labels for band in of_widths.bands)})
        truths = imagined_pools(rehearsal, task, history, worlds if compared else 0)
        starts = [(other, History(len(pool))) for other in compared]
        widths, decisions = _over_worlds(starts, task, truths, looked_at, sides, bar)
    today = estimates_of(method, task, history)
    now = [PlannedWidth(method.name, estimate.metric, labels, estimate.half_width) for estimate in today]
    own = [PlannedWidth(method.name, band.metric, band.labels, band.median) for band in of_widths.bands]
    planned = WidthPlan(
        (*now, *own, *widths),
        f"going by {labels} known labels and what {method.name} makes of them, as the forecast of the session does",
        about=task.population,
        begun=labels,
        guarantee=task.guarantee,
    )
    outlooks = [
        _Outlook.of(labels, goal_ahead, reached=met(method, task, history, today, goal))
        for goal, goal_ahead in zip(single, of_goals, strict=True)
    ]
    targets = [
        PlannedTarget(name, width, method.name, outlook.labels, outlook.reached)
        for (name, width), outlook in zip(aims, outlooks, strict=False)
    ]
    targets += [
        PlannedTarget(name, width, other.name, planned.labels_for(name, width, other.name))
        for name, width in aims
        for other in compared
    ]
    settled = [
        outlook.decision(method, metric, value, task)
        for (metric, value), outlook in zip(sides, outlooks[len(aims) :], strict=True)
    ]
    return replace(planned, targets=tuple(targets), decisions=(*settled, *decisions))


@dataclass(frozen=True)
class _Outlook:
    """What the forecast says of a goal: labels that it needs in all, whether they are there, its chance until then."""

    labels: float
    reached: bool
    chance: float

    @classmethod
    def of(cls, labels: int, ahead: Forecast, *, reached: bool) -> "_Outlook":
        return cls(labels, True, 1.0) if reached else cls(labels + ahead.more, False, ahead.chance)

    def decision(self, method: Method, metric: Metric, value: float, task: Task) -> PlannedDecision:
        kind = "proof" if _has_proof(method, metric.name, task) else "interval"
        return PlannedDecision(method.name, metric.name, value, kind, self.labels, self.chance, self.reached)


def _over_worlds(
    starts: Sequence[tuple[Method, History]],
    task: Task,
    truths: Iterable[NDArray[np.int64]],
    steps: list[int],
    sides: Sequence[tuple[Metric, float]],
    bar: Bar,
) -> tuple[tuple[PlannedWidth, ...], tuple[PlannedDecision, ...]]:
    """Mean half-widths and median labels to decisions of methods that go on from these logs, over the truths."""
    half_widths: dict[tuple[str, str, int], list[float]] = {}
    settled: dict[tuple[str, str, float, str], list[float]] = {}
    for world, truth in enumerate(truths):
        now = replace(task, seed=int(np.random.default_rng([task.seed, world, 1]).integers(2**31)))
        for method, begun in starts:
            widths_here, ends = _in_world(method, now, begun, truth, steps, sides)
            for (metric_name, labels), width in widths_here.items():
                half_widths.setdefault((method.name, metric_name, labels), []).append(width)
            for metric, value in sides:
                for kind in ("interval", "proof"):
                    labels_needed = ends.get((metric.name, value, kind), math.inf)
                    settled.setdefault((method.name, metric.name, value, kind), []).append(labels_needed)
            bar.advance(1)
    offered = {method.name: method for method, _ in starts}
    widths = (PlannedWidth(*key, _mean(values)) for key, values in half_widths.items())
    decisions = (
        PlannedDecision(*key, _median(values), sum(map(math.isfinite, values)) / len(values))
        for key, values in settled.items()
        if key[3] == "interval" or _has_proof(offered[key[0]], key[1], task)
    )
    return tuple(widths), tuple(decisions)


def _in_world(
    method: Method,
    task: Task,
    begun: History,
    truth: NDArray[np.int64],
    steps: list[int],
    sides: Sequence[tuple[Metric, float]],
) -> tuple[dict[tuple[str, int], float], dict[tuple[str, float, str], float]]:
    """({(metric, labels): half-width}, {(metric, threshold, kind): labels that settled it}) where this is the truth."""
    half_widths: dict[tuple[str, int], float] = {}
    ends: dict[tuple[str, float, str], float] = {}
    for labels, reached in _path(method, task, begun, truth, steps, every_batch=bool(sides)):
        estimates = method.estimate(task, reached)
        if labels in steps:
            shown = with_guarantee(method, task, reached, estimates) if task.guarantee else estimates
            half_widths |= {(estimate.metric, labels): estimate.half_width for estimate in shown}
        for metric, value in sides:
            for kind in _settled_by(method, task, reached, estimates[metric.name], metric, value):
                ends.setdefault((metric.name, value, kind), float(labels))
    return half_widths, ends


def _thresholds(thresholds: Mapping[str, float], task: Task) -> list[tuple[Metric, float]]:
    """Metrics of the task with the value that they are compared with; PlanError if one is not among them."""
    metrics = {metric.name: metric for metric in task.metrics}
    for name, value in thresholds.items():
        if name not in metrics:
            raise PlanError(f"threshold for {name!r}, which is no metric of the plan; metrics are {listing(metrics)}")
        low, high = metrics[name].bounds
        if not low <= value <= high:
            raise PlanError(f"threshold {name}={value:g} is no value that it can take; expected {low:g} to {high:g}")
    return [(metrics[name], value) for name, value in thresholds.items()]


def _targets(targets: Mapping[str, float], task: Task) -> tuple[tuple[str, float], ...]:
    """(metric, half-width) of each target; PlanError if one is for no metric of the task."""
    names = [metric.name for metric in task.metrics]
    unknown = next((name for name in targets if name not in names), None)
    if unknown is not None:
        raise PlanError(f"target for {unknown!r}, which is no metric of the plan; metrics are {listing(names)}")
    return tuple(targets.items())


def _reached(method: Method, task: Task, history: History, name: str, half_width: float) -> bool:
    """Whether the labels so far give this half-width; never below the least number of drawn labels."""
    enough = counted_labels(method, task, history) >= LEAST_DRAWN
    return enough and estimates_of(method, task, history)[name].half_width <= half_width


def _settled_by(
    method: Method, task: Task, history: History, estimate: Estimate, metric: Metric, value: float
) -> Iterator[str]:
    """Which kinds of decision are made with these labels; none below the least number of drawn labels."""
    if history.drawn_labels < LEAST_DRAWN:
        return
    if estimate.low > value or estimate.high < value:
        yield "interval"
    proof = guaranteed_decision(method, task, history, metric, value)
    if not isinstance(proof, NotOffered) and proof.answer != "undecided":
        yield "proof"


def _has_proof(method: Method, name: str, task: Task) -> bool:
    (metric,) = (metric for metric in task.metrics if metric.name == name)
    return not_offered(method, task, metric) is None


def imagination(pool: Pool, accuracy: float | None, history: History) -> tuple[NDArray[np.float64], str]:
    """((N, C) how likely each class is thought to be for each point, the assumption in words)."""
    if accuracy is not None and not 0 < accuracy <= 1:
        raise PlanError(f"accuracy {accuracy!r} is out of range; expected a number above 0 and at most 1")
    rows, n_classes = np.arange(len(pool)), len(pool.classes)
    if pool.scores is not None and accuracy is None:
        chances = pool.scores
        assumption = f"the model's own scores are right (accuracy {chances[rows, pool.predictions].mean():.2f})"
    else:
        right = ASSUMED_ACCURACY if accuracy is None else accuracy
        chances = np.full((len(pool), n_classes), (1 - right) / (n_classes - 1))
        chances[rows, pool.predictions] = right
        assumption = f"the model is right {right:.0%} of the time in every class"
    if not history.labels:
        return chances, f"assuming that {assumption}"
    counts = table_of(pool.predictions[history.labelled], history.codes, n_classes)
    weight = PRIOR_LABELS / (counts.sum(1) + PRIOR_LABELS)
    seen = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    mixed = weight[pool.predictions, None] * chances + ((1 - weight)[:, None] * seen)[pool.predictions]
    return mixed, f"going by {len(history.labels)} known labels, and else assuming that {assumption}"


def _unlearnable(pool: Pool, accuracy: float | None, history: History) -> str:
    """Why no method can learn where errors are in these worlds; empty where the imagined errors have a pattern."""
    if (pool.scores is not None and accuracy is None) or history.labels:
        return ""
    has = (
        "Features help only where errors go with them, which nobody can know before the first labels"
        if pool.features is not None
        else "Give scores, or features (texts, images and numbers alike), to learn from"
    )
    return (
        "The imagined errors fall on any point alike, so nothing can be learned about where they are: what a method "
        "gains here over a random sample it gains by drawing more of the points that a metric is about (one class, one "
        f"slice). {has}; plan again with the session after 50 labels or so"
    )


def imagined(chances: NDArray[np.float64], history: History, rng: np.random.Generator) -> NDArray[np.int64]:
    """(N,) one truth drawn from the chances; known labels stay what they are."""
    edges = chances.cumsum(1)
    truth = (rng.random(len(chances))[:, None] * edges[:, -1:] > edges[:, :-1]).sum(1)
    truth[history.labelled] = history.codes
    return np.asarray(truth, np.int64)


def _path(
    method: Method,
    task: Task,
    history: History,
    truth: NDArray[np.int64],
    steps: list[int],
    every_batch: bool,
) -> Iterator[tuple[int, History]]:
    """(labels, the log with so many) along one run; points that wait for a label already are labelled first."""
    batch = max(1, steps[-1] // BATCHES)
    waiting = {int(row): int(truth[row]) for row in history.outstanding}
    history = replace(history, labels={**history.labels, **waiting})
    looks = {*steps, *range(batch, steps[-1], batch)} if every_batch else set(steps)
    for labels in sorted(looks):
        history = label_until(method, task, history, labels, batch, truth.__getitem__)
        if len(history.labels) <= labels:
            yield labels, history


def _with_interval(choice: str | Method, pool: Pool) -> Method:
    method = method_named(choice)
    check(method, pool)
    if method.traits.interval == "none":
        raise PlanError(f"method {method.name!r} gives no interval, so there is no width to plan; try tradition")
    return method


def _steps(budgets: Sequence[int], n_points: int, labels: int = 0) -> list[int]:
    """Numbers of labels to look at, above those that are there."""
    steps = steps_of(budgets, n_points)
    ahead = [step for step in steps if step > labels] or [step for step in steps if step == labels == n_points]
    if not ahead:
        raise PlanError(
            f"budgets {list(budgets)} lie behind the {labels} labels of the session; expected more than that"
        )
    return ahead


def _mean(values: list[float]) -> float:
    """The mean where the width is defined in most worlds, else nan."""
    defined = [value for value in values if math.isfinite(value)]
    return float(sum(defined) / len(defined)) if 2 * len(defined) > len(values) else math.nan


def _median(values: list[float]) -> float:
    """The median of numbers of labels; nan where half of them or more never come."""
    middle = sorted(values)[len(values) // 2]
    return middle if math.isfinite(middle) else math.nan
