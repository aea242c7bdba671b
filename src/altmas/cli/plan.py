"""`altmas plan`: what a number of labels would buy."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import START, command, literal
from altmas.errors import PlanError
from altmas.estimates import about_in_words
from altmas.forecast import Goals
from altmas.history import History
from altmas.methods import DEFAULT_METHOD, Method, method_named
from altmas.metrics import metric_set
from altmas.planning import PlannedDecision, WidthPlan, plan_further, plan_widths
from altmas.pool import Pool
from altmas.session import Session
from altmas.task import DEFAULT_CONFIDENCE, DEFAULT_METRICS, Task

FEW = 50
"""With fewer labels than this, and no budget, the budgets looked at are those of a session that has so many."""


@command(
    "plan",
    START,
    'altmas plan --data preds.csv --prediction vendor_label --metric "recall[pneumonia]" --budget 100 --budget 300',
    'altmas plan --data preds.csv --prediction vendor_label --accuracy 0.9 --target "accuracy=0.03"',
    'altmas plan --data preds.csv --prediction vendor_label --accuracy 0.9 --threshold "accuracy >= 0.85"',
    "altmas plan xray.altmas",
)
def plan(
    session: Annotated[
        Path | None,
        typer.Argument(metavar="[SESSION]", help="A session to go on from; or give --data.", show_default=False),
    ] = None,
    data: opt.OptionalData = None,
    prediction: opt.Prediction = None,
    id: opt.Id = None,
    features: opt.FeaturesOrShown = None,
    scores: opt.Scores = None,
    slices: opt.Slices = None,
    show_: opt.Show = None,
    classes: opt.Classes = None,
    group: opt.Group = None,
    values: opt.Values = None,
    weight: opt.Weight = None,
    sample: opt.Sample = None,
    encoding: opt.Encoding = None,
    metrics: opt.Metrics = None,
    method: opt.Method = None,
    budgets: Annotated[
        list[int] | None,
        typer.Option("--budget", "-b", help="Numbers of labels to look at; repeatable.", rich_help_panel=opt.AIM),
    ] = None,
    targets: opt.Targets = None,
    thresholds: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            metavar="CLAIM",
            help=literal(
                'Also the labels that settle on which side of it a metric lies, as "accuracy >= 0.9"; repeatable.'
            ),
            rich_help_panel=opt.AIM,
        ),
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option("--accuracy", help="What to assume of the model; by default what its scores say, else 0.8."),
    ] = None,
    confidence: opt.Confidence = DEFAULT_CONFIDENCE,
    guarantee: opt.Guarantee = False,
    about: opt.About = "pool",
    draw: opt.Draw = "items",
    seed: opt.Seed = 0,
    worlds: Annotated[int, typer.Option("--worlds", min=1, help="How many imagined truths to average over.")] = 5,
    json: opt.Json = False,
) -> None:
    """How wide will the intervals be? Expected half-widths for numbers of labels, before any of them is paid for.

    The truth is imagined from the model's scores or an assumed accuracy. A session goes on from its labels: once 20 are
    told, by the forecast that `altmas status` gives.
    """
    goals = Goals(given.numbers("--target", targets), given.thresholds_of(thresholds))
    settings: dict[str, Any] = {
        "metrics": metrics or list(DEFAULT_METRICS),
        "confidence": confidence,
        "about": given.about_of(about),
        "draw": given.draw_of(draw),
        "guarantee": guarantee,
        "seed": seed,
    }
    chosen = method_named(method or DEFAULT_METHOD)
    if session is not None:
        with given.opened(session) as opened:
            question = _of_session(opened, goals, chosen if method else opened.method, metrics, guarantee)
    elif data is None or prediction is None:
        raise PlanError("plan needs a session, or --data and --prediction")
    else:
        pool = given.pool_of(
            data,
            prediction=prediction,
            id=id,
            features=features,
            scores=scores,
            slices=slices,
            show=show_,
            classes=classes,
            group=group,
            values=values,
            weight=weight,
            sample=sample,
            seed=seed,
            encoding=encoding,
        )
        question = Question(pool, chosen, goals, settings)
    if question.method.traits.interval == "none":
        show.hint(f"method {question.method.name} gives no interval; these are the widths of a random sample")
    planned = question.answer(budgets or [], worlds, accuracy)
    if not budgets and _out_of_reach(planned) and (further := _further(planned, len(question.pool))):
        planned = question.answer(further, worlds, accuracy)
    if planned.begun and accuracy is not None:
        show.hint("--accuracy is not used: the labels of the session say more")
    if json:
        show.as_json(_plain(planned))
    else:
        _say(planned, whole=max(width.labels for width in planned.widths) >= len(question.pool))


@dataclass(frozen=True)
class Begun:
    """The session that a plan goes on from; task: with the metrics and goals that are asked about."""

    method: Method
    task: Task
    history: History
    budget: int | None

    @property
    def limit(self) -> int | None:
        """The budget, unless it is spent."""
        return self.budget if self.budget is not None and self.budget > len(self.history.labels) else None


@dataclass(frozen=True)
class Question:
    """What is to be planned, by which method; settings: those of `plan_widths` that a session has, too."""

    pool: Pool
    method: Method
    goals: Goals
    settings: dict[str, Any]
    begun: Begun | None = None

    @property
    def methods(self) -> list[str | Method]:
        """The method, if it gives intervals, and random sampling beside it."""
        alone = self.method.traits.interval == "none" or self.method.name == "tradition"
        return ["tradition"] if alone else [self.method, "tradition"]

    def answer(self, budgets: list[int], worlds: int, accuracy: float | None) -> WidthPlan:
        """Widths at these numbers of labels, or at some that fit: by the session's forecast where there is one."""
        forecast = None if self.begun is None else self._by_forecast(self.begun, budgets, worlds)
        if forecast is not None:
            return forecast
        begun = self.begun
        labels = 0 if begun is None else len(begun.history.labels)
        limit = None if begun is None else begun.limit
        return plan_widths(
            self.pool,
            methods=self.methods,
            budgets=budgets or _ahead(labels, limit, len(self.pool)),
            accuracy=accuracy,
            history=None if begun is None else begun.history,
            drawn_by=None if begun is None else begun.method.name,
            worlds=worlds,
            thresholds=self.goals.thresholds,
            targets=self.goals.targets,
            budget=limit,
            progress=not show.quiet(),
            **self.settings,
        )

    def _by_forecast(self, begun: Begun, budgets: list[int], worlds: int) -> WidthPlan | None:
        return plan_further(
            begun.method,
            begun.task,
            begun.history,
            goals=self.goals,
            budgets=budgets,
            until=begun.limit,
            others=[other for other in self.methods if method_named(other).name != begun.method.name],
            worlds=worlds,
            progress=not show.quiet(),
        )


def _of_session(session: Session, goals: Goals, method: Method, metrics: list[str] | None, guarantee: bool) -> Question:
    """The question about a session that goes on; its own metrics and goals hold where none are given."""
    plan = session.plan
    goals = Goals(goals.targets or dict(plan.targets), goals.thresholds or dict(plan.thresholds))
    settings: dict[str, Any] = {
        "metrics": metrics or list(plan.metrics),
        "confidence": plan.confidence,
        "about": plan.about,
        "draw": plan.draw,
        "guarantee": guarantee or plan.guarantee,
        "seed": plan.seed,
    }
    task = replace(
        session.task,
        metrics=metric_set(metrics, session.pool) if metrics else session.task.metrics,
        targets=tuple(goals.targets.items()),
        guarantee=settings["guarantee"],
        stopping=bool(goals.targets or goals.thresholds),
    )
    begun = Begun(session.method, task, session.history, plan.budget)
    return Question(session.pool, method, goals, settings, begun)


def _ahead(labels: int, limit: int | None, points: int) -> list[int]:
    """Some budgets from here on: up to the session's own, where it is not spent."""
    if limit is not None:
        return sorted({round(labels + (limit - labels) * share) for share in (0.25, 0.5, 1.0)} - {0, labels})
    if labels == 0:
        return [n for n in (50, 100, 200, 400, 800) if n <= points] or [points]
    return sorted({min(round(max(labels, FEW) * times), points) for times in (1.5, 2, 4)})


def _further(width_plan: WidthPlan, points: int) -> list[int]:
    """The same budgets and larger ones; none where they end at the pool already."""
    looked_at = {width.labels for width in width_plan.widths if width.labels > width_plan.begun}
    largest = max(looked_at, default=points)
    return sorted({*looked_at, *(min(largest * times, points) for times in (2, 4))}) if largest < points else []


def _out_of_reach(width_plan: WidthPlan) -> bool:
    """Whether a target needs more labels than the largest budget by the first method, that of the session."""
    method = width_plan.widths[0].method
    return any(math.isnan(target.labels) for target in width_plan.targets if target.method == method)


def _plain(planned: WidthPlan) -> dict[str, Any]:
    """The plan for scripts."""
    learnable = {"learnable": planned.learnable} if planned.learnable else {}
    return {
        "about": planned.about,
        "guarantee": planned.guarantee,
        "begun": planned.begun,
        "assumption": planned.assumption,
        "widths": [vars(width) for width in planned.widths],
        "targets": [vars(target) for target in planned.targets],
        "decisions": [vars(decision) for decision in planned.decisions],
        **learnable,
    }


def _say(planned: WidthPlan, *, whole: bool) -> None:
    """The plan for people; whole  whether labelling every point was looked at."""
    methods = list(dict.fromkeys(width.method for width in planned.widths))
    _table(planned, methods)
    for target in planned.targets:
        needed = _needed(target.labels, target.reached, planned.begun if target.method == methods[0] else 0)
        beyond = "out of reach with this pool" if whole else "more than the largest budget looked at"
        show.say(f"±{target.half_width:g} for {target.metric} by {target.method}: {needed or beyond}")
    for decision in planned.decisions:
        show.say(_decision(decision, planned.begun if decision.method == methods[0] else 0))
    if planned.begun and len(methods) > 1:
        show.paragraph(f"By {' and '.join(methods[1:])}: with as many labels in all, drawn from the start.")
    if planned.guarantee:
        show.paragraph("Half-widths are those of intervals with a finite-sample proof that holds at every look.")
    elif planned.targets or planned.decisions:
        show.paragraph(
            "With a target or a threshold intervals of assured and tradition hold at every look; they are wider than "
            "those for one look at a number of labels fixed beforehand."
        )
    show.say(about_in_words(planned.about))
    show.paragraph(planned.assumption[0].upper() + planned.assumption[1:] + ".")
    if planned.learnable:
        show.paragraph(f"{planned.learnable}.")


def _table(planned: WidthPlan, methods: list[str]) -> None:
    """A row for each metric and number of labels, a column of half-widths for each method."""
    width_of = {(width.metric, width.labels, width.method): width.half_width for width in planned.widths}
    columns = ["metric", "labels", *(f"± {name}" for name in methods)]
    rows = [
        (
            metric,
            f"{labels} now" if labels == planned.begun else str(labels),
            *(show.number(width_of.get((metric, labels, name), math.nan), 3) for name in methods),
        )
        for metric in dict.fromkeys(width.metric for width in planned.widths)
        for labels in dict.fromkeys(width.labels for width in planned.widths if width.metric == metric)
    ]
    show.table(columns, rows, right=columns[1:])


def _needed(labels: float, reached: bool, begun: int) -> str:
    """About how many labels it takes, and how many more than there are; empty if that is not known."""
    if reached:
        return f"reached with the {round(labels)} labels so far"
    more = f", {math.ceil(labels) - begun} more" if begun and not math.isnan(labels) else ""
    return "" if math.isnan(labels) else f"about {math.ceil(labels) if begun else round(labels)} labels{more}"


def _decision(planned: PlannedDecision, begun: int) -> str:
    """One line: how many labels settle a threshold."""
    how = "with a proof that holds at every look" if planned.kind == "proof" else "by the interval for many looks"
    needed = _needed(planned.labels, planned.reached, begun)
    if not needed:
        about = f"open with the largest budget in {1 - planned.decided:.0%} of the imagined worlds"
    elif planned.reached:
        about = needed.replace("reached", "settled")
    else:
        about = f"{needed} (settled in {planned.decided:.0%} of the imagined worlds)"
    return f"{planned.metric} above or below {planned.threshold:g} by {planned.method}, {how}: {about}"
