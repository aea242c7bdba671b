"""`altmas plan`: what a number of labels would buy."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from altmas.cli import options as opt
from altmas.cli import show
from altmas.cli.app import START, command, literal
from altmas.errors import PlanError
from altmas.estimates import about_in_words
from altmas.forecast import Goals
from altmas.methods import DEFAULT_METHOD, Method, method_named
from altmas.metrics import metric_set
from altmas.planning import PlannedDecision, WidthPlan, plan_further, plan_widths
from altmas.task import DEFAULT_CONFIDENCE, DEFAULT_METRICS

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
    settings: dict[str, Any] = {"confidence": confidence, "seed": seed, "metrics": metrics or list(DEFAULT_METRICS)}
    settings |= {"about": opt.about_of(about), "draw": opt.draw_of(draw), "guarantee": guarantee}
    history, chosen, half_widths = None, method_named(method or DEFAULT_METHOD), opt.numbers("--target", targets)
    labels, budget, own, task = 0, None, None, None
    sides = opt.thresholds_of(thresholds)
    if session is not None:
        with opt.opened(session) as opened:
            pool, history, half_widths = opened.pool, opened.history, half_widths or dict(opened.plan.targets)
            sides = sides or dict(opened.plan.thresholds)
            own = opened.method
            chosen = chosen if method else own
            settings = {
                "confidence": opened.plan.confidence,
                "seed": opened.plan.seed,
                "metrics": metrics or list(opened.plan.metrics),
                "about": opened.plan.about,
                "draw": opened.plan.draw,
                "guarantee": guarantee or opened.plan.guarantee,
            }
            labels, budget = len(history.labels), opened.plan.budget
            task = replace(
                opened.task,
                metrics=metric_set(metrics, pool) if metrics else opened.task.metrics,
                targets=tuple(half_widths.items()),
                guarantee=settings["guarantee"],
                stopping=bool(half_widths or sides),
            )
    elif data is None or prediction is None:
        raise PlanError("plan needs a session, or --data and --prediction")
    else:
        pool = opt.pool_of(
            data,
            prediction,
            id,
            features,
            scores,
            slices,
            show_,
            classes,
            group,
            weight,
            sample,
            seed,
            values=values,
            encoding=encoding,
        )
    if chosen.traits.interval == "none":
        show.hint(f"method {chosen.name} gives no interval; these are the widths of a random sample")
    methods: list[str | Method] = [
        *([chosen] if chosen.traits.interval != "none" and chosen.name != "tradition" else []),
        "tradition",
    ]

    left = budget if budget is not None and budget > labels else None

    def plan_at(looked_at: list[int]) -> WidthPlan:
        further = None
        if history is not None and own is not None and task is not None:
            further = plan_further(
                own,
                task,
                history,
                goals=Goals(half_widths, sides),
                budgets=looked_at,
                until=left,
                others=[other for other in methods if method_named(other).name != own.name],
                worlds=worlds,
                progress=not show.quiet(),
            )
        return further or plan_widths(
            pool,
            methods=methods,
            budgets=looked_at or _ahead(labels, budget, len(pool)),
            accuracy=accuracy,
            history=history,
            drawn_by=None if own is None else own.name,
            worlds=worlds,
            thresholds=sides,
            targets=half_widths,
            budget=left,
            progress=not show.quiet(),
            **settings,
        )

    width_plan = plan_at(budgets or [])
    if not budgets and _out_of_reach(width_plan) and (further := _further(width_plan, len(pool))):
        width_plan = plan_at(further)
    if width_plan.begun and accuracy is not None:
        show.hint("--accuracy is not used: the labels of the session say more")
    _print(width_plan, json, whole=max(width.labels for width in width_plan.widths) >= len(pool))


def _ahead(labels: int, budget: int | None, points: int) -> list[int]:
    """Some budgets from here on: up to the session's own, where it is not spent."""
    if budget is not None and budget > labels:
        return sorted({round(labels + (budget - labels) * share) for share in (0.25, 0.5, 1.0)} - {0, labels})
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


def _print(width_plan: "WidthPlan", json: bool, *, whole: bool) -> None:
    """The plan for people or for scripts; whole  whether labelling every point was looked at."""
    methods = list(dict.fromkeys(width.method for width in width_plan.widths))
    if json:
        plain = [vars(width) for width in width_plan.widths]
        reach = [vars(target) for target in width_plan.targets]
        decisions = [vars(decision) for decision in width_plan.decisions]
        why = {"learnable": width_plan.learnable} if width_plan.learnable else {}
        show.as_json(
            {
                "about": width_plan.about,
                "guarantee": width_plan.guarantee,
                "begun": width_plan.begun,
                "assumption": width_plan.assumption,
                "widths": plain,
                "targets": reach,
                "decisions": decisions,
                **why,
            }
        )
        return
    width_of = {(width.metric, width.labels, width.method): width.half_width for width in width_plan.widths}
    columns = ["metric", "labels", *(f"± {name}" for name in methods)]
    rows = [
        (
            metric,
            f"{labels} now" if labels == width_plan.begun else str(labels),
            *(show.number(width_of.get((metric, labels, name), math.nan), 3) for name in methods),
        )
        for metric in dict.fromkeys(width.metric for width in width_plan.widths)
        for labels in dict.fromkeys(width.labels for width in width_plan.widths if width.metric == metric)
    ]
    show.table(columns, rows, right=columns[1:])
    for target in width_plan.targets:
        needed = _needed(target.labels, target.reached, width_plan.begun if target.method == methods[0] else 0)
        beyond = "out of reach with this pool" if whole else "more than the largest budget looked at"
        show.say(f"±{target.half_width:g} for {target.metric} by {target.method}: {needed or beyond}")
    for decision in width_plan.decisions:
        show.say(_decision(decision, width_plan.begun if decision.method == methods[0] else 0))
    if width_plan.begun and len(methods) > 1:
        show.paragraph(f"By {' and '.join(methods[1:])}: with as many labels in all, drawn from the start.")
    if width_plan.guarantee:
        show.paragraph("Half-widths are those of intervals with a finite-sample proof that holds at every look.")
    elif width_plan.targets or width_plan.decisions:
        show.paragraph(
            "With a target or a threshold intervals of assured and tradition hold at every look; they are wider than "
            "those for one look at a number of labels fixed beforehand."
        )
    show.say(about_in_words(width_plan.about))
    show.paragraph(width_plan.assumption[0].upper() + width_plan.assumption[1:] + ".")
    if width_plan.learnable:
        show.paragraph(f"{width_plan.learnable}.")


def _needed(labels: float, reached: bool, begun: int) -> str:
    """About how many labels it takes, and how many more than there are; empty if that is not known."""
    if reached:
        return f"reached with the {round(labels)} labels so far"
    more = f", {math.ceil(labels) - begun} more" if begun and not math.isnan(labels) else ""
    return "" if math.isnan(labels) else f"about {math.ceil(labels) if begun else round(labels)} labels{more}"


def _decision(planned: "PlannedDecision", begun: int) -> str:
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
