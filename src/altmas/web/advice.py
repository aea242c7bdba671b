"""What the owner can decide by: what holds if they stop now, and what further labels are likely to bring."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from altmas import svg
from altmas.estimates import LEAST_DRAWN, Estimate, Estimates
from altmas.forecast import Forecast, WidthBand, chance_in_words
from altmas.methods.protocol import Rehearses
from altmas.metrics import Metric
from altmas.session import Session
from altmas.session.stopping import Goal

SHOWN = 2
"""Metrics that are spoken of where none has a goal."""


def advice(
    session: Session,
    estimates: Estimates | None,
    goals: Sequence[Goal],
    forecast: Forecast | None,
    decision: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """state ("waiting", "open", "reached", "missed", "done"), what holds now and what is ahead, in sentences."""
    if estimates is None or decision is None:
        return {"state": "waiting", "now": [], "ahead": "The first estimate is being computed."}
    metrics = {metric.name: metric for metric in session.task.metrics}
    names = [goal.metric for goal in goals] or [estimate.metric for estimate in estimates[:SHOWN]]
    now = [_now(metrics[name], estimates[name], goals) for name in dict.fromkeys(names) if name in metrics]
    now += [f"{remark[0].upper()}{remark[1:]}." for remark in estimates.remarks]
    if met := _met(goals):
        ahead = f"The goal is reached: {met}. More labels would only make the intervals narrower."
        return {"state": "reached", "now": now, "ahead": ahead}
    state = ("missed" if goals else "done") if decision["stop"] else "open"
    return {"state": state, "now": now, "ahead": _ahead(session, state, str(decision["reason"]), forecast)}


def _met(goals: Sequence[Goal]) -> str:
    """Which kind of goal is met altogether, which is enough to stop; empty if none is."""
    for kind, words in (("target", "every target is within its width"), ("threshold", "every threshold is decided")):
        reached = [goal.reached for goal in goals if goal.kind == kind]
        if reached and all(reached):
            return words
    return ""


def _now(metric: Metric, estimate: Estimate, goals: Sequence[Goal]) -> str:
    """What would be said of one metric if nobody labelled any more."""
    if math.isnan(estimate.value):
        return f"{metric.name} is not known ({estimate.note or 'no label tells about it'})."
    sentence = f"{metric.name} is {figure(metric, estimate.value)}"
    if not math.isnan(estimate.low):
        sentence += f" ({figure(metric, estimate.low)} to {figure(metric, estimate.high)})"
    clauses = [_goal(metric, estimate, goal) for goal in goals if goal.metric == metric.name]
    return "; ".join([sentence, *clauses]) + "."


def _goal(metric: Metric, estimate: Estimate, goal: Goal) -> str:
    if goal.kind == "target":
        return f"± {goal.wanted:g} was wanted and is {'reached' if goal.reached else 'missed'}"
    if not goal.reached:
        return f"whether it is at least {figure(metric, goal.wanted)} is undecided"
    side = "at least" if estimate.value >= goal.wanted else "less than"
    return f"it is shown to be {side} {figure(metric, goal.wanted)}"


def figure(metric: Metric, value: float) -> str:
    """A value as people say it: per cent for shares."""
    return f"{100 * value:.1f} %" if metric.bounds == (0.0, 1.0) else f"{value:.3f}"


def _ahead(session: Session, state: str, reason: str, forecast: Forecast | None) -> str:
    """What further labels are likely to bring."""
    begin = {"missed": f"The goal was missed: {reason}. ", "done": f"Nothing more to do: {reason}. "}.get(state, "")
    if forecast is None:
        return begin + _no_forecast(session)
    more = f"{forecast.until - forecast.labels:,} more labels ({forecast.until:,} in all)"
    if math.isnan(forecast.chance):
        widths = ", ".join(f"{band.metric} ± {band.median:.3f}" for band in forecast.at(forecast.until))
        return f"{begin}With {more}, probably: {widths}." if widths else begin
    if math.isnan(forecast.more):
        likely = "Less likely than not; wider targets, or a larger budget, would be needed."
    else:
        likely = f"As likely as not it takes about {math.ceil(forecast.more):,} more."
    return f"{begin}With {more} the chance to settle it is {chance_in_words(forecast.chance)}. {likely}"


def _no_forecast(session: Session) -> str:
    if session.task.units is not None:
        return "There is no forecast where whole groups are drawn."
    if not isinstance(session.method, Rehearses):
        return f"There is no forecast for the method {session.method.name}."
    counted = session.now().counted_labels
    if counted < LEAST_DRAWN:
        return f"A forecast needs {LEAST_DRAWN} drawn labels that count; there are {counted}."
    return "The forecast is being computed."


# ---------------------------------------------------------------- charts


def charts(
    path: Mapping[int, Mapping[str, Sequence[float | None]]],
    forecast: Forecast | None,
    estimate: Mapping[str, Any] | None,
) -> dict[str, str] | None:
    """Two charts of one estimate: with its interval so far, and its half-width with what is ahead; None before any."""
    if estimate is None:
        return None
    metric = estimate["metric"]
    steps = [(labels, path[labels][metric]) for labels in sorted(path) if path[labels].get(metric)]
    known = [(labels, step) for labels, step in steps if step[0] is not None]
    if not known:
        return None
    bands = () if forecast is None else forecast.of(metric)
    width = width_chart("width-chart", metric, _widths(known), bands, estimate["target"])
    return {"metric": metric, "path": _path("path-chart", estimate, known), "width": width}


def _path(name: str, estimate: Mapping[str, Any], known: Sequence[tuple[int, Sequence[float | None]]]) -> Markup:
    steps = [svg.Step(labels, value or 0.0, low, high) for labels, (value, low, high) in known]
    return svg.path(name, estimate["metric"], steps, across="labels", limit=estimate["threshold"])


def _widths(known: Sequence[tuple[int, Sequence[float | None]]]) -> list[tuple[int, float]]:
    return [(labels, (high - low) / 2) for labels, (_, low, high) in known if low is not None and high is not None]


def width_chart(
    name: str, metric: str, past: Sequence[tuple[int, float]], bands: Sequence[WidthBand], target: float | None
) -> Markup:
    """Half the width of an interval over the labels so far, the band in which it will probably lie, and the target."""
    title = f"{metric}: half-width"
    labels = [at for at, _ in past] + [band.labels for band in bands] or [1]
    heights = [width for _, width in past] + [band.high for band in bands] + ([] if target is None else [target])
    y = svg.Scale(0.0, max([*heights, 0.01]) * 1.06, svg.HEIGHT - svg.BELOW, svg.ABOVE)
    x = svg.Scale(0.0, max(labels) * 1.02, svg.LEFT, svg.WIDTH - svg.RIGHT)
    parts = [svg.panel_axes(x, y, "labels", title)]
    now = past[-1:]
    if bands:
        upper = [*now, *((band.labels, band.high) for band in bands)]
        lower = [*now, *((band.labels, band.low) for band in bands)]
        parts.append(svg.element("polygon", points=_corners([*upper, *reversed(lower)], x, y), class_="band"))
        middle = [*now, *((band.labels, band.median) for band in bands)]
        parts.append(svg.element("polyline", points=_corners(middle, x, y), class_="line ahead"))
    if target is not None:
        ends = {"x1": svg.LEFT, "x2": svg.WIDTH - svg.RIGHT, "y1": y.inside(target), "y2": y.inside(target)}
        parts.append(svg.told(f"wanted: {target:g}", svg.element("line", **ends, class_="limit")))
    parts.append(svg.element("polyline", points=_corners(past, x, y), class_="line"))
    parts += [_dot(x(at), y.inside(width), f"{at:,} labels: {width:.4f}") for at, width in now]
    parts += [
        _dot(
            x(band.labels),
            y.inside(band.median),
            f"{band.labels:,} labels: {band.median:.4f} ({band.low:.4f} to {band.high:.4f})",
        )
        for band in bands
    ]
    return svg.panel(name, title, _said(past, bands, target), *parts)


def _dot(at: float, height: float, words: str) -> str:
    centre = {"cx": at, "cy": height}
    return svg.told(
        words, svg.element("circle", **centre, r=3, class_="plain"), svg.element("circle", **centre, r=9, class_="hit")
    )


def _corners(points: Sequence[tuple[int, float]], x: svg.Scale, y: svg.Scale) -> str:
    return " ".join(f"{x(at):.1f},{y.inside(value):.1f}" for at, value in points)


def _said(past: Sequence[tuple[int, float]], bands: Sequence[WidthBand], target: float | None) -> str:
    words = f"Now {past[-1][1]:.3f} at {past[-1][0]:,} labels. " if past else "No interval yet. "
    if bands:
        last = bands[-1]
        words += f"At {last.labels:,} labels probably {last.median:.3f}, with probability 0.8 between "
        words += f"{last.low:.3f} and {last.high:.3f}. "
    return words + ("" if target is None else f"The dotted line is what is wanted, {target:g}.")
