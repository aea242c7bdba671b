"""Charts of a report, from its content."""

from typing import Any

from markupsafe import Markup

from altmas.report.classes import MANY, OF_CLASS
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
    found = {"estimates": estimates(content), "choice": choice(content["choice"])}
    for number, name in enumerate(dict.fromkeys(row["metric"] for row in content["path"])):
        found[f"path-{number}"] = over_labels(name, number, content)
    for number, one in enumerate(content["slices"]):
        found[f"slice-{number}"] = over_slices(one, number, content)
        found[f"differences-{number}"] = slice_differences(one, number)
    for number, one in enumerate(content["curves"]):
        found |= score_charts(one, number)
    if content["ranking"] is not None:
        found["ranking"] = behind_the_best(content["ranking"])
    return {name: chart for name, chart in found.items() if chart is not None}


def score_charts(one: Plain, number: int) -> dict[str, Markup | None]:
    """ROC curve, precision-recall curve and reliability diagram of one model."""
    whose = f" of {one['model']}" if one["model"] else ""
    of, along_of = (f" for {one[name]}" if one[name] else "" for name in ("class", "curve_class"))
    along = one["thresholds"]
    roc = [(_flipped(row["specificity"]), row["recall"], row["threshold"]) for row in along]
    precision = [(row["recall"]["value"], row["precision"], row["threshold"]) for row in along]
    reliable = [(row["score"], row, row["points"]) for row in one["reliability"]]
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
            ("mean score of the bin", "share" if one["class"] else "share right"),
            "points:",
            equal=True,
        ),
    }


def _flipped(one: Plain) -> float | None:
    return None if one["value"] is None else 1 - one["value"]


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
    rows = [one for one in ranking["models"] if one["low"] is not None and one["behind"] is not None]
    drawn = [
        Interval(one["model"], one["behind"], one["low"], one["high"], TONES.get(one["tier"], "plain"), None, 0.0)
        for one in rows[:MOST_MODELS]
    ]
    title = f"How far models lie behind {ranking['best']} by {ranking['metric']}"
    return intervals("chart-ranking", title, drawn) if drawn else None


def listed_metrics(metrics: list[Plain]) -> list[Plain]:
    """The metrics of the table of estimates: all, or where they are many those that the table of classes has not."""
    if len(metrics) <= MANY:
        return metrics
    return [one for one in metrics if wanted(one) or one["kind"] not in OF_CLASS or one["where"] is not None]


def estimates(content: Plain) -> Markup | None:
    """The metrics that something was wanted of first, then the others."""
    rows = [one for one in listed_metrics(content["metrics"]) if one["value"] is not None]
    chosen = sorted(rows, key=lambda one: not wanted(one))[:MOST_ROWS]
    drawn = [
        Interval(
            one["metric"],
            one["value"],
            one["low"],
            one["high"],
            one["verdict"]["tone"] if wanted(one) else "plain",
            _check(one["check"]),
            one["threshold"],
        )
        for one in chosen
    ]
    return intervals("chart-estimates", "Estimates with their intervals", drawn, _within(chosen)) if drawn else None


def wanted(one: Plain) -> bool:
    """Whether a metric has a threshold or a target."""
    return one["threshold"] is not None or one["target"] is not None


def _check(check: Plain) -> tuple[float, float | None, float | None] | None:
    return None if check["value"] is None else (check["value"], check["low"], check["high"])


def _within(rows: list[Plain]) -> tuple[float, float] | None:
    """The ends that no metric can pass, where all have the same."""
    ends = {tuple(one["bounds"]) for one in rows}
    return ends.pop() if len(ends) == 1 and None not in next(iter(ends)) else None


def over_labels(name: str, number: int, content: Plain) -> Markup | None:
    """The estimates of one metric over the number of labels."""
    steps = [
        Step(row["labels"], row["value"], row["low"], row["high"])
        for row in content["path"]
        if row["metric"] == name and row["value"] is not None
    ]
    (one,) = [metric for metric in content["metrics"] if metric["metric"] == name]
    if not steps:
        return None
    return path(f"chart-path-{number}", name, steps, across="labels", limit=one["threshold"], within=_within([one]))


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
    rows = [one for one in slice_["differences"] if None not in (one["difference"], one["low"])]
    drawn = [
        Interval(one["value"], one["difference"], one["low"], one["high"], limit=0.0, limit_name="no difference")
        for one in rows
    ]
    if not drawn:
        return None
    title = f"{slice_['metrics'][0]} by {slice_['name']}: difference to {rows[0]['against']}"
    return intervals(f"chart-differences-{number}", title, drawn)


def choice(found: Plain) -> Markup | None:
    """Shares of the labels by how their points were chosen."""
    parts = [
        (f"{found['kinds'][kind]:,} {words}", found["kinds"][kind], colour)
        for kind, (words, colour) in KINDS.items()
        if found["kinds"].get(kind)
    ]
    return shares("chart-choice", "Labels by how their points were chosen", parts) if parts else None
