"""Charts of a report, from its content."""

from typing import Any

from markupsafe import Markup

from altmas.report.classes import MANY, OF_CLASS
from altmas.report.words import plural
from altmas.svg import CurvePoint, Interval, Step, curve, intervals, path, shares

Plain = dict[str, Any]

MOST_ROWS = 12
"""Metrics in the chart of estimates."""
MOST_MODELS = 30
"""Models in the chart of the ranking."""
KINDS = {
    "uniform": ("drawn uniformly at random", "k0"),
    "tilted": ("drawn where they tell more, with known chances", "k1"),
    "no probability": ("picked without chance", "k2"),
    "volunteered": ("labelled without being asked for", "k3"),
}
"""How points came to be labelled: what is said of it, and its colour."""


def charts_of(content: Plain) -> dict[str, Markup]:
    """{name: chart} of everything there is something to draw for."""
    charts = {**estimates(content), "choice": choice(content["choice"])}
    for number, name in enumerate(dict.fromkeys(row["metric"] for row in content["path"])):
        charts[f"path-{number}"] = over_labels(name, number, content)
    for number, slice_ in enumerate(content["slices"]):
        charts[f"slice-{number}"] = over_slices(slice_, number, content)
        charts[f"differences-{number}"] = slice_differences(slice_, number)
    for number, curves in enumerate(content["curves"]):
        charts |= score_charts(curves, number)
    if content["ranking"] is not None:
        charts["ranking"] = behind_the_best(content["ranking"])
    if content["waves"] is not None:
        charts["waves"] = waves(content["waves"])
    return {name: chart for name, chart in charts.items() if chart is not None}


def score_charts(curves: Plain, number: int) -> dict[str, Markup | None]:
    """ROC curve, precision-recall curve and reliability diagram of one model."""
    whose = f" of {curves['model']}" if curves["model"] else ""
    of, along_of = (f" for {curves[name]}" if curves[name] else "" for name in ("class", "curve_class"))
    along = curves["thresholds"]
    roc = [(_flipped(row["specificity"]), row["recall"], row["threshold"]) for row in along]
    precision = [(row["recall"]["value"], row["precision"], row["threshold"]) for row in along]
    reliable = [(row["score"], row, row["points"]) for row in curves["reliability"]]
    return {
        f"roc-{number}": _curve(
            f"chart-roc-{number}", f"ROC curve{whose}{along_of}", roc, ("false positive rate", "recall"), "at threshold"
        ),
        f"precision-{number}": _curve(
            f"chart-precision-{number}",
            f"PR curve{whose}{along_of}",
            precision,
            ("recall", "precision"),
            "at threshold",
        ),
        f"reliability-{number}": _curve(
            f"chart-reliability-{number}",
            f"Reliability{whose}{of}",
            reliable,
            ("mean score of the bin", "share" if curves["class"] else "share right"),
            "points:",
            equal=True,
        ),
    }


def _flipped(bounds: Plain) -> float | None:
    return None if bounds["value"] is None else 1 - bounds["value"]


def _curve(
    name: str, title: str, rows: list[tuple[Any, Plain, Any]], axes: tuple[str, str], what: str, *, equal: bool = False
) -> Markup | None:
    points = sorted(
        (
            CurvePoint(x, y["value"], y["low"], y["high"], f"{what} {at:.4g}")
            for x, y, at in rows
            if None not in (x, y["value"])
        ),
        key=lambda point: point.x,
    )
    return curve(name, title, points, axes=axes, equal=equal) if len(points) > 1 else None


TONES = {"not told apart": "open", "worse": "bad"}
"""Colours of models by their tier; the best is the line at 0."""


def behind_the_best(ranking: Plain) -> Markup | None:
    """How far each model lies behind the best, with intervals that hold for all of them together."""
    rows = [row for row in ranking["models"] if row["low"] is not None and row["behind"] is not None]
    drawn = [
        Interval(row["model"], row["behind"], row["low"], row["high"], TONES.get(row["tier"], "plain"), None, 0.0)
        for row in rows[:MOST_MODELS]
    ]
    title = f"How far models lie behind {ranking['best']} by {ranking['metric']}"
    return intervals("chart-ranking", title, drawn) if drawn else None


def waves(watched: Plain) -> Markup | None:
    """The level of the metric in each wave."""
    tones = {"drop": "bad", "no drop": "good", "cannot tell": "open"}
    drawn = [
        Interval(
            f"{level['wave']} ({plural(level['labels'], 'label')})",
            level["value"],
            level["low"],
            level["high"],
            "open" if level["looks_worse"] else tones[level["answer"]] if level["against"] else "plain",
        )
        for level in watched["levels"]
        if level["value"] is not None
    ]
    return intervals("chart-waves", f"{watched['metric']} by wave", drawn) if drawn else None


def listed_metrics(metrics: list[Plain]) -> list[Plain]:
    """The metrics of the table of estimates: all, or where they are many those that the table of classes has not."""
    if len(metrics) <= MANY:
        return metrics
    return [row for row in metrics if has_goal(row) or row["kind"] not in OF_CLASS or row["where"] is not None]


def estimates(content: Plain) -> dict[str, Markup | None]:
    """The estimates with their intervals, a chart for each axis: metrics with a threshold or a target come first."""
    rows = [row for row in listed_metrics(content["metrics"]) if row["value"] is not None]
    by_axis: dict[Any, list[Plain]] = {}
    for row in sorted(rows, key=lambda row: not has_goal(row))[:MOST_ROWS]:
        by_axis.setdefault(_axis(row), []).append(row)
    charts: dict[str, Markup | None] = {}
    for number, chosen in enumerate(by_axis.values()):
        name = f"estimates-{number}" if number else "estimates"
        drawn = [_interval(row) for row in chosen]
        charts[name] = intervals(f"chart-{name}", "Estimates with their intervals", drawn, _within(chosen))
    return charts


def _axis(row: Plain) -> tuple[float | None, ...]:
    """What metrics on one axis have in common: that they lie between -1 and 1, as shares do, or else their bounds."""
    low, high = row["bounds"]
    between = None not in (low, high) and -1 <= low and high <= 1
    return (-1, 1) if between else (low, high)


def _interval(row: Plain) -> Interval:
    tone = row["verdict"]["tone"] if has_goal(row) else "plain"
    check = _check(row["check"])
    return Interval(row["metric"], row["value"], row["low"], row["high"], tone, check, row["threshold"])


def has_goal(row: Plain) -> bool:
    """Whether a metric has a threshold or a target."""
    return row["threshold"] is not None or row["target"] is not None


def _check(check: Plain) -> tuple[float, float | None, float | None] | None:
    return None if check["value"] is None else (check["value"], check["low"], check["high"])


def _within(rows: list[Plain]) -> tuple[float, float] | None:
    """The ends that no metric can pass, where all have the same."""
    ends = {tuple(row["bounds"]) for row in rows}
    return ends.pop() if len(ends) == 1 and None not in next(iter(ends)) else None


def over_labels(name: str, number: int, content: Plain) -> Markup | None:
    """The estimates of one metric over the number of labels."""
    steps = [
        Step(row["labels"], row["value"], row["low"], row["high"])
        for row in content["path"]
        if row["metric"] == name and row["value"] is not None
    ]
    (row,) = [metric for metric in content["metrics"] if metric["metric"] == name]
    if not steps:
        return None
    return path(f"chart-path-{number}", name, steps, across="labels", limit=row["threshold"], within=_within([row]))


def over_slices(slice_: Plain, number: int, content: Plain) -> Markup | None:
    """The first metric on each value of a slice that has enough labels, against the whole pool."""
    if not slice_["metrics"]:
        return None
    name = slice_["metrics"][0]
    (whole,) = [metric for metric in content["metrics"] if metric["metric"] == name]
    drawn = [
        Interval(row["value"], cell["value"], cell["low"], cell["high"], limit=whole["value"], limit_name="whole pool")
        for row in slice_["rows"]
        for cell in row["metrics"][:1]
        if not cell["insufficient"] and cell["value"] is not None
    ]
    title = f"{name} by {slice_['name']}"
    return intervals(f"chart-slice-{number}", title, drawn, _within([whole])) if drawn else None


def slice_differences(slice_: Plain, number: int) -> Markup | None:
    """How far each value of a slice lies from the one with most points."""
    rows = [row for row in slice_["differences"] if None not in (row["difference"], row["low"])]
    drawn = [
        Interval(row["value"], row["difference"], row["low"], row["high"], limit=0.0, limit_name="no difference")
        for row in rows
    ]
    if not drawn:
        return None
    title = f"{slice_['metrics'][0]} by {slice_['name']}: difference to {rows[0]['against']}"
    return intervals(f"chart-differences-{number}", title, drawn)


def choice(choices: Plain) -> Markup | None:
    """Shares of the labels by how their points were chosen."""
    parts = [
        (f"{choices['kinds'][kind]:,} {words}", choices["kinds"][kind], colour)
        for kind, (words, colour) in KINDS.items()
        if choices["kinds"].get(kind)
    ]
    return shares("chart-choice", "Labels by how their points were chosen", parts) if parts else None
