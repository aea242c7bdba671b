"""How wide intervals are likely to be with more labels, and how likely a session is to settle its question.

The session goes on in imagined worlds. In each of them the truth of the points without a label is drawn from what the
method believes at present, with the odds of being right shifted together, so that their share is a draw from what the
labels say of it, shifted for each predicted class and flattened from point to point, both by as much as the labels
leave open: in a world that followed the belief exactly no belief could be better. The method then draws, is told and
estimates as it would; its belief stays as it is, so nothing is fitted and what it might still learn is not counted on.
What later fits do to the widths, for better or worse, is a factor that differs from world to world (FIT_SPREAD).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.belief import Belief
from altmas.compute import products_on_one_thread
from altmas.errors import PlanError
from altmas.estimates import LEAST_DRAWN, Estimates
from altmas.frames import plain
from altmas.guaranteed import NotOffered, estimates_of, guaranteed_decision
from altmas.history import History
from altmas.intervals import student_quantile
from altmas.methods.held_up import counted_labels
from altmas.methods.protocol import Method, Rehearsal, Rehearses
from altmas.metrics import Metric
from altmas.task import Task
from altmas.types import Array

STEPS = 3
"""Numbers of labels at which widths are forecast, evenly on a logarithmic scale."""
WORK = 24
"""Worlds times metrics; more worlds than MOST or fewer than LEAST are never run."""
MOST_WORLDS, LEAST_WORLDS = 16, 12
METRICS = 4
"""Metrics whose widths are forecast beside those with a target or a threshold."""
BAND = 0.8
"""Probability with which a width lies within its band."""
HOPELESS = 0.7
"""No proof is looked for where a threshold lies within this share of the half-width around the value."""
SHIFT_POINTS = 4096
"""Points of which a mean chance is taken."""
CLASS_SPREAD = 0.5
"""Standard deviation of the log odds of predicted classes around their mean, before labels."""
SLOPE_SPREAD = 1.0
"""Standard deviation of the slope of the believed pattern below 1, before labels."""
FIT_SPREAD = 0.06
"""Standard deviation of the log of a width with later fits over the width without, at the last step.

Without it 71 % of widths lay in bands for 80 %, with it 81 % (230 sessions of 13 pools, benchmarks/forecasts.py and the
worlds of tests/test_forecast.py).
"""


@dataclass(frozen=True)
class WidthBand:
    """Half the width that the interval of a metric will probably have at so many labels.

    median;  low, high  between which it lies with probability 0.8
    """

    metric: str
    labels: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Forecast:
    """What further labels are likely to bring.

    labels   told so far;  until  the number of labels up to which was looked: the budget, if it is not spent
    bands    widths of each metric at several numbers of labels
    chance   of every target reached, or every threshold decided, by then; nan if there are none
    more     further labels after which that is as likely as not; nan where it is less likely than not by then
    minutes  what these labels take at the present pace; nan if unknown
    """

    labels: int
    until: int
    bands: tuple[WidthBand, ...] = ()
    chance: float = math.nan
    more: float = math.nan
    minutes: float = math.nan

    def __str__(self) -> str:
        if math.isnan(self.chance):
            widths = "; ".join(f"{band.metric} probably within {band.median:.3f}" for band in self.at(self.until))
            return f"with {self.until:,} labels {widths}" if widths else ""
        return f"{chance_in_words(self.chance)} chance to settle it with {self.until:,} labels{self._expected()}"

    def _expected(self) -> str:
        if math.isnan(self.more):
            return ""
        pace = "" if math.isnan(self.minutes) else f", about {max(1, round(self.minutes))} minutes"
        return f", as likely as not within about {math.ceil(self.more):,} more{pace}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (unknown numbers are None)."""
        return {name: plain(value) for name, value in asdict(self).items()}

    def at(self, labels: int) -> tuple[WidthBand, ...]:
        """The bands of all metrics at one of the numbers of labels."""
        return tuple(band for band in self.bands if band.labels == labels)

    def of(self, metric: str) -> tuple[WidthBand, ...]:
        """The bands of one metric, by number of labels."""
        return tuple(band for band in self.bands if band.metric == metric)


def chance_in_words(chance: float) -> str:
    """A probability from a few dozen worlds, with no more digits than it deserves."""
    if chance < 0.05:
        return "under 5 %"
    return "over 95 %" if chance > 0.95 else f"about {5 * round(20 * chance)} %"


@products_on_one_thread()
def forecast(
    method: Method,
    task: Task,
    history: History,
    *,
    targets: Mapping[str, float],
    thresholds: Mapping[str, float],
    until: int | None = None,
    seconds_per_label: float = math.nan,
) -> Forecast | None:
    """What further labels are likely to bring; None with too few labels, nothing left, or a method that cannot tell.

    until  number of labels up to which is looked; by default the budget, or twice the labels once that is spent
    """
    of_goals = forecasts(method, task, history, [Goals(targets, thresholds)], until=until)
    if of_goals is None:
        return None
    (ahead,) = of_goals
    return ahead if math.isnan(ahead.more) else replace(ahead, minutes=ahead.more * seconds_per_label / 60)


@dataclass(frozen=True)
class Goals:
    """What settles a session: every target reached, or every threshold decided."""

    targets: Mapping[str, float]
    thresholds: Mapping[str, float]

    @property
    def metrics(self) -> set[str]:
        """Names of the metrics that have one."""
        return {*self.targets, *self.thresholds}


def forecasts(
    method: Method,
    task: Task,
    history: History,
    goals: Sequence[Goals],
    *,
    until: int | None = None,
    at: Sequence[int] = (),
    every_metric: bool = False,
    after_world: Callable[[], None] = lambda: None,
) -> list[Forecast] | None:
    """A forecast for each of several goals that one session might have, from the same worlds; None as for one.

    at            numbers of labels at which is looked; by default STEPS of them up to `until`
    every_metric  whether widths of all metrics are forecast, not only of METRICS beside those with a goal
    after_world   called after each imagined world
    """
    labels, history = len(history.labels), history.without_waiting()
    end = _end(task, history, max(at) if at else until)
    rehearsal = rehearsal_of(method, task, history)
    if rehearsal is None or end <= labels:
        return None
    if not every_metric:
        task = replace(task, metrics=_chosen(task, set().union(*(goal.metrics for goal in goals))))
    steps = sorted({min(step, end) for step in at if step > labels}) or _steps(labels, end)
    runs, today = [], _Look(method, task, history, estimates_of(method, task, history))
    for world in range(worlds_of(task)):
        runs.append(_run(rehearsal, today, steps, goals, world))
        after_world()
    plain = Forecast(labels, end, tuple(_bands(task, steps, np.array([run.widths for run in runs]))))
    return [
        _with_chance(plain, [run.settled[number] for run in runs]) if goal.metrics else plain
        for number, goal in enumerate(goals)
    ]


def rehearsal_of(method: Method, task: Task, history: History) -> Rehearsal | None:
    """The method as it would go on; None with too few labels, with none to come, or for a method that cannot tell."""
    left = len(history.labels) + len(history.skipped) < history.n_points
    enough = left and counted_labels(method, task, history) >= LEAST_DRAWN
    return method.rehearse(task, history) if enough and isinstance(method, Rehearses) else None


def worlds_of(task: Task) -> int:
    """In how many worlds the session goes on."""
    return int(np.clip(WORK // max(len(task.metrics), 1), LEAST_WORLDS, MOST_WORLDS))


def met(method: Method, task: Task, history: History, estimates: Estimates, goals: Goals) -> bool:
    """Whether the goals are met with the labels so far, of which these are the estimates."""
    return _Look(method, task, history, estimates).settled(goals)


def imagined_pools(rehearsal: Rehearsal, task: Task, history: History, worlds: int) -> Iterator[NDArray[np.int64]]:
    """(N,) the truth of the whole pool in each of several worlds; labels that were told stay what they are."""
    for world in range(worlds):
        rng = np.random.default_rng([task.seed, world, len(history.labels)])
        labels = ImaginedTruth.of(rehearsal, history, rng).at(np.arange(history.n_points)) | dict(history.labels)
        yield np.array([labels[row] for row in range(history.n_points)], np.int64)


def _with_chance(plain: Forecast, ends: Sequence[float]) -> Forecast:
    """The forecast with what worlds that settled at so many labels, or never, say about a goal."""
    chance = (sum(map(math.isfinite, ends)) + 0.5) / (len(ends) + 1)
    return replace(plain, chance=chance, more=_median(ends) - plain.labels)


def _end(task: Task, history: History, until: int | None) -> int:
    """The number of labels up to which is looked."""
    if until is not None and not isinstance(until, int | np.integer):
        raise PlanError(f"a forecast up to {until!r} labels is not possible; expected a whole number")
    labels = len(history.labels)
    reachable = history.n_points - len(history.skipped)
    budget = task.budget if task.budget is not None and task.budget > labels else 2 * labels
    return min(reachable, budget if until is None else until)


def _steps(labels: int, end: int) -> list[int]:
    """Numbers of labels between now and the end."""
    counts = np.geomspace(labels, end, STEPS + 1)[1:]
    return sorted({max(labels + 1, round(count)) for count in counts.tolist()})


def _chosen(task: Task, goals: set[str]) -> tuple[Metric, ...]:
    """Metrics with a goal, and the first of the others."""
    further = [metric.name for metric in task.metrics if metric.name not in goals][: max(METRICS - len(goals), 0)]
    return tuple(metric for metric in task.metrics if metric.name in goals or metric.name in further)


# ---------------------------------------------------------------- one world


@dataclass(frozen=True)
class _Run:
    """One world: widths (steps, metrics); for each of the goals the number of labels that first met it, or infinity."""

    widths: list[list[float]]
    settled: list[float]


def _run(
    rehearsal: Rehearsal,
    today: "_Look",
    steps: Sequence[int],
    goals: Sequence[Goals],
    world: int,
) -> _Run:
    history, labels = today.history, len(today.history.labels)
    rng = np.random.default_rng([today.task.seed, world, labels])
    method, task = rehearsal.method, replace(today.task, seed=int(rng.integers(2**31)))
    truth = ImaginedTruth.of(rehearsal, history, rng)
    path = [
        _Look(method, task, reached, estimates_of(method, task, reached), factor)
        for reached, factor in zip(
            _path(method, task, history, steps, truth), _fitted(history, steps, rng), strict=True
        )
    ]
    widths = [[look.half_width(metric.name) for metric in task.metrics] for look in path]
    return _Run(widths, [_first_settled([today, *path], [labels, *steps], goal) for goal in goals])


def _fitted(history: History, steps: Sequence[int], rng: np.random.Generator) -> list[float]:
    """By what later fits multiply the widths of this world at each step: more and more, as labels grow."""
    now = len(history.labels)
    far = rng.normal(0, FIT_SPREAD)
    return [math.exp(far * math.log(labels / now) / math.log(steps[-1] / now)) for labels in steps]


def _path(
    method: Method, task: Task, history: History, steps: Sequence[int], truth: "ImaginedTruth"
) -> Iterator[History]:
    """The log with so many labels, for each step; points that wait for a label already are labelled first."""
    waiting = history.outstanding[: steps[-1] - len(history.labels)]
    history = replace(history, labels={**history.labels, **truth.at(waiting)})
    for labels in steps:
        while len(history.labels) < labels and history.open.any():
            count = len(history.labels)
            drawn = method.propose(task, history, min(max(count // 5, 5), labels - count))
            if not len(drawn.indices):
                break
            history = history.told(drawn, truth.at(drawn.indices))
        yield history


@dataclass(frozen=True)
class _Look:
    """What is known at one number of labels of one world; factor: by what later fits multiply widths."""

    method: Method
    task: Task
    history: History
    estimates: Estimates
    factor: float = 1.0

    def half_width(self, name: str) -> float:
        """Half the width of a metric's interval."""
        return self.estimates[name].half_width * self.factor

    def decided(self, name: str, threshold: float) -> bool:
        """Whether it is settled on which side of the threshold a metric lies: by a proof where one is offered."""
        estimate = self.estimates[name]
        clear = estimate.low >= threshold or estimate.high < threshold
        near = abs(estimate.value - threshold) < HOPELESS * estimate.half_width
        if near or math.isnan(estimate.low):
            return False
        (metric,) = (metric for metric in self.task.metrics if metric.name == name)
        proof = guaranteed_decision(self.method, self.task, self.history, metric, threshold)
        if isinstance(proof, NotOffered):
            return clear and not self.task.guarantee
        return proof.answer != "undecided"

    def settled(self, goals: Goals) -> bool:
        """Whether every target is reached, or every threshold decided."""
        reached = all(self.half_width(name) <= target for name, target in goals.targets.items())
        if goals.targets and reached:
            return True
        decided = (self.decided(name, value) for name, value in goals.thresholds.items())
        return bool(goals.thresholds) and all(decided)


def _first_settled(path: Sequence[_Look], steps: Sequence[int], goals: Goals) -> float:
    """The number of labels at which the goals are met, between looks; infinity if they are not at the last one.

    path  looks at the labels so far and at each of the steps
    """
    if not goals.metrics or not path[-1].settled(goals):
        return math.inf
    last = len(path) - 1
    first = next((number for number in range(1, last) if path[number].settled(goals)), last)
    (n0, before), (n1, after) = ((steps[number], path[number]) for number in (first - 1, first))
    needed = [
        labels_between(n0, before.half_width(name), n1, after.half_width(name), target)
        for name, target in goals.targets.items()
        if after.half_width(name) <= target
    ]
    if goals.targets and len(needed) == len(goals.targets):
        return max(*needed, steps[0] + 1.0)
    return math.sqrt(n0 * n1)  # a threshold was decided somewhere between the looks


def labels_between(n0: float, w0: float, n1: float, w1: float, half_width: float) -> float:
    """The labels that a half-width needs, between n0 with half-width w0 and n1 with w1, which is no wider than it."""
    if w0 <= half_width:
        return float(n0)
    if math.isnan(w0) or w0 <= w1:
        return float(n1)
    if w1 == 0:  # every point is labelled: widths shrink like sqrt(1 / labels - 1 / points)
        return 1 / ((half_width / w0) ** 2 * (1 / n0 - 1 / n1) + 1 / n1)
    share = (w0**-2 - half_width**-2) / (w0**-2 - w1**-2)  # widths shrink like 1 / sqrt(labels)
    return n0 + share * (n1 - n0)


# ---------------------------------------------------------------- imagined truth


@dataclass(frozen=True)
class ImaginedTruth:
    """Labels of one world. agree (N,) chance that the belief's answer is right there."""

    belief: Belief
    agree: Array
    rng: np.random.Generator

    @classmethod
    def of(cls, rehearsal: Rehearsal, history: History, rng: np.random.Generator) -> "ImaginedTruth":
        """A world whose share of right answers is a draw from Beta(worth * right + 1/2, worth * wrong + 1/2)."""
        belief, right, worth = rehearsal.belief, rehearsal.right, rehearsal.worth
        share = rng.beta(worth * right + 0.5, worth * (1 - right) + 0.5)
        hits = float((history.codes == belief.predictions[history.labelled]).sum())
        open_ = history.known < 0
        odds = _flattened(belief, history, rng) + _class_shifts(belief, history, rng)[belief.predictions]
        open_share = np.clip((share * len(open_) - hits) / max(int(open_.sum()), 1), 1e-4, 1 - 1e-4)
        agree = _logistic(odds + shift_to_mean(odds[open_], float(open_share)))
        return cls(belief, agree, rng)

    def at(self, rows: Array) -> dict[int, int]:
        """{row: its label in this world}."""
        belief = self.belief
        rivals = belief.rivals[belief.group[rows]].copy()
        rivals[np.arange(len(rows)), belief.predictions[rows]] = 0.0
        edges = rivals.cumsum(1)
        rival = (self.rng.random((len(rows), 1)) * edges[:, -1:] > edges[:, :-1]).sum(1)
        right = self.rng.random(len(rows)) < self.agree[rows]
        labels = np.where(right, belief.predictions[rows], rival)
        return dict(zip(rows.tolist(), labels.tolist(), strict=True))


def _flattened(belief: Belief, history: History, rng: np.random.Generator) -> Array:
    """(N,) log odds that differ less from point to point than is believed: by as much as the labels leave open.

    A belief that was fitted to few labels sees more of a pattern than there is. Its slope in this world is 1 at most;
    below, it is normal around 1 with the information that the labels have about it, and never negative.
    """
    odds = _log_odds(belief.agree)
    middle = odds.mean()
    agree, apart = belief.agree[history.labelled], odds[history.labelled] - middle
    information = float((agree * (1 - agree) * apart**2).sum()) + SLOPE_SPREAD**-2
    slope = max(1 - abs(rng.normal()) / math.sqrt(information), 0.0)
    return np.asarray(middle + slope * (odds - middle))


def _class_shifts(belief: Belief, history: History, rng: np.random.Generator) -> Array:
    """(C,) how far the log odds of each predicted class lie from what is believed: less, the more labels it has."""
    agree, answers = belief.agree[history.labelled], belief.predictions[history.labelled]
    information = np.bincount(answers, agree * (1 - agree), belief.rivals.shape[1])
    return np.asarray(rng.normal(size=len(information)) / np.sqrt(information + CLASS_SPREAD**-2))


def shift_to_mean(odds: Array, mean: float, steps: int = 30) -> float:
    """What has to be added to log odds so that the chances have this mean; at most 20 either way."""
    low, high = -20.0, 20.0
    if len(odds) > SHIFT_POINTS:  # the mean of so many is as good
        odds = odds[:: len(odds) // SHIFT_POINTS]
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if float(_logistic(odds + middle).mean()) >= mean else (middle, high)
    return (low + high) / 2


def _log_odds(chance: Array) -> Array:
    clipped = np.clip(chance, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(clipped / (1 - clipped)))


def _logistic(odds: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-odds)))


# ---------------------------------------------------------------- over all worlds


def _bands(task: Task, steps: Sequence[int], widths: Array) -> Iterator[WidthBand]:
    """Bands from widths (worlds, steps, metrics), normal on the log scale; left out where half are undefined."""
    for column, metric in enumerate(task.metrics):
        for step, labels in enumerate(steps):
            at_step = widths[:, step, column]
            logs = np.log(np.maximum(at_step[np.isfinite(at_step)], 1e-9))
            if 2 * len(logs) <= len(widths):
                continue
            middle = float(np.median(logs))
            spread = student_quantile(BAND, len(logs) - 1) * math.sqrt(float(logs.var(ddof=1)) * (1 + 1 / len(logs)))
            yield WidthBand(metric.name, labels, *(float(math.exp(middle + side * spread)) for side in (-1, 0, 1)))


def _median(ends: Sequence[float]) -> float:
    """Labels after which half of the worlds are settled; nan if half never are."""
    middle = sorted(ends)[(len(ends) - 1) // 2]
    return middle if math.isfinite(middle) else math.nan
