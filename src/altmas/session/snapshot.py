"""A session at one moment: what can be read from it without touching the log again."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from statistics import median
from typing import Any, Self

import numpy as np

from altmas.errors import MetricError
from altmas.estimates import FLOOR, Estimate, Estimates
from altmas.forecast import Forecast, forecast
from altmas.frames import plain
from altmas.guarantee import Evidence
from altmas.guaranteed import NotNow, NotOffered, estimates_of, guaranteed_decision
from altmas.history import History
from altmas.methods.held_up import HeldUp, counted_labels, held_up, left_behind
from altmas.metrics import Metric, known_names
from altmas.pool.growth import values_in_order
from altmas.session.log import VOTES, State
from altmas.session.opinions import disagreements, second_opinions
from altmas.session.plan import Plan
from altmas.session.plan_json import at_work
from altmas.session.remarks import notes
from altmas.session.stopping import Decision, Goal, decide, goals
from altmas.suggest import listing, near
from altmas.task import Task

ITEMS_NAMED = 3
"""Items that are named where labels wait for them; the others are counted."""


@dataclass(frozen=True)
class AnnotatorStatus:
    """What one annotator has done; nobody named is "".

    authenticated  votes on the page with a link of their own;  claimed  votes on the page under a name that anybody
    could type; votes from scripts and files are neither
    """

    name: str
    labels: int
    skips: int
    leased: int
    seconds_per_label: float
    last_at: str
    authenticated: int = 0
    claimed: int = 0


@dataclass(frozen=True)
class Status:
    """Counts, pace and people. seconds_per_label is the median, nan where no time was told.

    unshown  items whose image could not be shown to somebody;  notes  remarks that stand;  draw  as in the plan
    """

    method: str
    points: int
    labels: int
    budget: int | None
    outstanding: int
    leased: int
    skipped: int
    unsure: int
    volunteered: int
    revisions: int
    undone: int
    reveals: int
    second_opinions_open: int
    disagreements: int
    seconds_per_label: float
    annotators: tuple[AnnotatorStatus, ...]
    created_at: str
    last_at: str
    seq: int
    digest: str
    unshown: int = 0
    notes: int = 0
    draw: str = "items"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (unknown numbers are None)."""
        return {key: plain(value) for key, value in asdict(self).items()}

    def _repr_html_(self) -> str:
        pace = "" if math.isnan(self.seconds_per_label) else f", {self.seconds_per_label:.0f} s each"
        budget = "" if self.budget is None else f" of {self.budget:,}"
        labels = "label" if self.labels == 1 and not budget else "labels"
        head = f"<p>{self.points:,} points, method {escape(self.method)}: {self.labels:,}{budget} {labels}{pace}</p>"
        names = ("outstanding", "skipped", "unsure", "volunteered", "disagreements", "reveals", "revisions", "undone")
        rows = "".join(f"<tr><th>{name}</th><td>{getattr(self, name):,}</td></tr>" for name in names)
        people = "".join(
            f"<tr><th>{escape(annotator.name or '(unnamed)')}</th>"
            f"<td>{annotator.labels:,} label{'s' * (annotator.labels != 1)}, {annotator.skips:,} skipped</td></tr>"
            for annotator in self.annotators
        )
        return f"{head}<table><tbody>{rows}{people}</tbody></table>"


@dataclass(frozen=True)
class Snapshot:
    """A session as it stood after event `seq`; `digest` is the hash of the log up to there.

    disagreements  items that people answered differently and nobody has settled
    """

    plan: Plan
    task: Task
    history: History
    seq: int
    digest: str
    seconds_per_label: float
    disagreements: int = 0

    @classmethod
    def of(cls, plan: Plan, task: Task, state: State) -> Self:
        """The state as it is now."""
        pace, differing = _pace(state, None), len(state.differing)
        return cls(plan, task, state.history(), state.seq, state.digest, pace, differing)

    def estimate(self, by: str | None = None) -> Estimates:
        """Every metric from the labels of that moment; with `by`, every metric on each value of that slice."""
        task = self.task if by is None else by_slice(self.task, by, self.history.domains)
        with at_work(self.plan.method):
            estimates = estimates_of(self.plan.method, task, self.history)
        metrics = {metric.name: metric for metric in task.metrics}
        told = [_with_model(estimate, metrics.get(estimate.metric), task) for estimate in estimates]
        counted = self.counted_labels
        if self.counting is not None and counted < FLOOR:
            count = f"{counted:,} count{'s' if counted == 1 else ''} yet"
            why = f"insufficient: of {self.history.drawn_labels:,} labels that were asked for only {count}"
            told = [_undefined(estimate, why) for estimate in told]
        values = tuple(told)
        return replace(estimates, values=values, about=task.population, remarks=self.remarks())

    def skipping(self) -> str:
        """How many items were skipped, and what figures are about then; empty without skips, or without intervals."""
        skipped, told = len(self.history.skipped), len(self.history.labels)
        method = self.plan.method
        if not skipped or method.traits.interval != "fixed-n":
            return ""
        about = "figures are about the items that can be labelled"
        if not method.traits.skips:
            about = (
                f"{method.name} counts them as the others: where hard items are skipped more often its figures are off"
            )
        return f"skipped: {skipped:,} of {skipped + told:,} answers; {about}"

    def differing(self) -> str:
        """On how many items people differ, and what counts until that is settled; empty if they differ on none."""
        if not self.disagreements:
            return ""
        items = "1 item" if self.disagreements == 1 else f"{self.disagreements:,} items"
        return (
            f"people differ on {items} of {len(self.history.labels):,}: until they agree, or the owner rules on the "
            "page, the label of whoever answered first counts as true"
        )

    @property
    def counted_labels(self) -> int:
        """Labels of draws that estimates rest on."""
        return counted_labels(self.plan.method, self.task, self.history)

    @property
    def counting(self) -> tuple[int, int] | None:
        """(labels that count, all labels) where some wait for the answer to an earlier draw; None if all count."""
        labels, waiting = len(self.history.labels), self.history.drawn_labels - self.counted_labels
        return (labels - waiting, labels) if waiting else None

    @property
    def held_up(self) -> HeldUp:
        """Rows of labels that do not count yet, and the rows that they wait for."""
        if not self.plan.method.traits.in_order:
            return HeldUp(np.zeros(0, np.int64), np.zeros(0, np.int64))
        return held_up(self.history, self.task.units)

    def waiting(self, *, named: bool = True) -> str:
        """Which labels do not count yet because an item that was asked for before them is open; empty if none do.

        named  whether such items are named, or counted
        """
        return self._until_answered("labels that do not count yet", self.held_up, named)

    @property
    def left_behind(self) -> HeldUp:
        """Rows of labels that stand for no item but their own, and the rows that they wait for."""
        if not self.plan.method.traits.in_order:
            return HeldUp(np.zeros(0, np.int64), np.zeros(0, np.int64))
        return left_behind(self.history, self.task.units)

    def _until_answered(self, what: str, held_up: HeldUp, named: bool) -> str:
        """How many labels wait for which items; empty if none does."""
        if not len(held_up.labels):
            return ""
        count = len(held_up.waits_for)
        names = [str(self.task.pool.ids[row]) for row in held_up.waits_for[:ITEMS_NAMED]]
        items = ", ".join(names) + (f" and {count - len(names):,} more" if count > len(names) else "")
        which = "asked for before them" if self.task.units is None else "of the same groups or asked for before them"
        return (
            f"{what}: {len(held_up.labels):,} of {len(self.history.labels):,}, until these items, "
            f"{which}, are answered or skipped: {items if named else f'{count:,} in all'}"
        )

    def remarks(self, *, named: bool = True) -> tuple[str, ...]:
        """What a reader of all estimates must know; named  whether items are named."""
        behind = self._until_answered("labels that stand for no item but their own", self.left_behind, named)
        return tuple(filter(None, (self.waiting(named=named), behind, self.differing(), self.skipping())))

    def decision(self, estimates: Callable[[], Estimates] | None = None) -> Decision:
        """Whether to stop at that moment."""
        history = self.history
        left = history.n_points - len(history.labels) - len(history.skipped)
        labels, drawn = len(history.labels), self.counted_labels
        told = estimates or self.estimate
        unasked = len(history.volunteered)
        counts = {"unasked": unasked, "waiting": history.drawn_labels - drawn}
        return replace(decide(self.plan, labels, drawn, left, told, self._proven, **counts), ahead=self.forecast)

    def forecast(self, until: int | None = None, *, settled: bool = False) -> Forecast | None:
        """What further labels were likely to bring at that moment, up to the budget or `until` labels.

        settled  whether every target was reached or every threshold decided: then widths are all that is ahead
        """
        plan, labels = self.plan, len(self.history.labels)
        goals = {"targets": {} if settled else plan.targets, "thresholds": {} if settled else plan.thresholds}
        pace = self.seconds_per_label
        if until is None and plan.budget is not None and plan.budget > labels:
            until = plan.budget  # that of the task, which intervals are tuned to, stays as the session began with it
        return forecast(plan.method, self.task, self.history, **goals, until=until, seconds_per_label=pace)

    def goals(self, estimates: Callable[[], Estimates] | None = None) -> tuple[Goal, ...]:
        """Every target and threshold of the plan, and whether it was reached at that moment."""
        if not self.plan.targets and not self.plan.thresholds:
            return ()
        drawn = self.counted_labels
        waiting = self.history.drawn_labels - drawn
        return goals(self.plan, drawn, (estimates or self.estimate)(), self._proven, waiting)

    def _proven(self, name: str, threshold: float) -> Evidence | NotNow | NotOffered:
        """On which side of a threshold a metric is shown to lie, at every look."""
        (metric,) = (known for known in self.task.metrics if known.name == name)
        return guaranteed_decision(self.plan.method, self.task, self.history, metric, threshold)


def _undefined(estimate: Estimate, why: str) -> Estimate:
    """Without a value, which a few labels would put anywhere while most of them wait for an earlier answer.

    What is exact rests on known labels, whether they wait or not.
    """
    if math.isnan(estimate.value) or estimate.low == estimate.high:
        return estimate
    nan = math.nan
    return replace(estimate, value=nan, low=nan, high=nan, effective_labels=nan, interval="none", note=why)


def _with_model(estimate: Estimate, metric: Metric | None, task: Task) -> Estimate:
    """The estimate with the name of the model that its metric is about, if that is one."""
    if metric is None or not metric.needs_answers or len(metric.parts) > 1:
        return estimate
    return replace(estimate, model=metric.model or task.pool.models[0].name)


def by_slice(task: Task, name: str, domains: Sequence[slice]) -> Task:
    """The same task with every whole-pool metric on each value of one slice; domains: the rows that came together."""
    slices = task.pool.slices
    if name not in slices:
        if _is_metric(name):
            raise MetricError(f"no slice {name!r} in this pool: that is a metric; pass metrics={name!r} to estimate it")
        known = listing(slices) if slices else "none: pass slices={...} to the pool, or --slice COLUMN to init"
        raise MetricError(f"no slice {name!r} in this pool (known: {known}){near(name, slices)}")
    metrics = tuple(
        on_slice
        for value in values_in_order(task.pool, name, domains)
        for metric in task.metrics
        if (on_slice := metric.on_slice(name, value)) is not None
    )
    if task.metrics and not metrics:
        raise MetricError(
            f"{listing(metric.name for metric in task.metrics)} cannot be taken on each value of {name!r}: metrics "
            "that are of a slice, or made of others, stay as they are; ask for them without it"
        )
    return replace(task, metrics=metrics, targets=())


def _is_metric(name: str) -> bool:
    """Whether a name begins as that of a metric does: "f1[spam]", "v2: accuracy"."""
    kind = name.rpartition(": ")[2].partition("[")[0].partition("@")[0].strip()
    return kind in {known.partition("[")[0] for known in known_names()}


def status_of(plan: Plan, state: State, holders: Mapping[int, str]) -> Status:
    """Counts, pace and people in a state; `holders` are the leases in force."""
    history = state.history()
    unsure = sum(all(vote.kind == "unsure" for vote in state.votes(row)) for row in state.skipped)
    return Status(
        method=plan.method.name,
        points=len(state.pool),
        labels=len(history.labels),
        budget=plan.budget,
        outstanding=len(state.waiting),
        leased=len(holders),
        skipped=len(history.skipped) - unsure,
        unsure=unsure,
        volunteered=len(history.volunteered),
        revisions=state.revisions,
        undone=state.undone,
        reveals=state.reveals,
        second_opinions_open=len(second_opinions(state, plan.seed, plan.double_share)),
        disagreements=len(disagreements(state)),
        seconds_per_label=_pace(state, None),
        annotators=_annotators(state, holders),
        created_at=state.created_at,
        last_at=state.last_at,
        seq=state.seq,
        digest=state.digest,
        unshown=len(state.unshown),
        notes=len(notes(state)),
        draw=plan.draw,
    )


def _annotators(state: State, holders: Mapping[int, str]) -> tuple[AnnotatorStatus, ...]:
    labels, skips, last = Counter[str](), Counter[str](), dict[str, str]()
    checked = Counter[tuple[str, object]]()
    for row in state.voted():
        for vote in state.votes(row):
            (skips if vote.code is None else labels)[vote.annotator or ""] += 1
            checked[vote.annotator or "", state.standing[vote.seq].body.get("authenticated")] += 1
    for event in state.standing.values():
        if event.kind in VOTES:
            last[event.annotator or ""] = event.at
    leased = Counter(holders.values())
    return tuple(
        AnnotatorStatus(
            name,
            labels[name],
            skips[name],
            leased[name],
            _pace(state, name),
            last.get(name, ""),
            authenticated=checked[name, True],
            claimed=checked[name, False],
        )
        for name in sorted(last.keys() | leased.keys())
    )


def _pace(state: State, name: str | None) -> float:
    """Median seconds of the standing labels, of one annotator or of all."""
    took = [
        event.seconds
        for event in state.standing.values()
        if event.seconds is not None and event.kind == "label" and (name is None or (event.annotator or "") == name)
    ]
    return float(median(took)) if took else math.nan
