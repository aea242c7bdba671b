"""Figures of a report as plotly figures in plain values.

Colours are names such as "$accent": the page puts in those of its light, dark or printed theme. Texts are escaped,
because plotly reads a few tags inside them.
"""

from collections.abc import Sequence
from html import escape
from typing import Any

Plain = dict[str, Any]

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
TONES = {"good": "$good", "bad": "$bad", "open": "$open", "plain": "$accent"}


def figures_of(content: Plain) -> dict[str, Plain]:
    """{name: figure} of everything there is something to draw for."""
    found = {"forest": forest(content["metrics"])}
    thresholds = {one["metric"]: one["threshold"] for one in content["metrics"]}
    for number, name in enumerate(dict.fromkeys(row["metric"] for row in content["path"])):
        rows = [row for row in content["path"] if row["metric"] == name]
        found[f"path-{number}"] = path(rows, thresholds.get(name))
    return {name: figure for name, figure in found.items() if figure is not None}


def forest(metrics: Sequence[Plain]) -> Plain | None:
    """Estimate and interval of each metric, one below the other; the cross-check hollow, thresholds as ticks."""
    rows = [one for one in metrics if one["value"] is not None]
    if not rows:
        return None
    names = [label(one["metric"]) for one in rows]
    places = list(range(len(rows)))
    traces: list[Plain] = []
    for tone in TONES:
        mine = [place for place in places if rows[place]["verdict"]["tone"] == tone]
        if mine:
            traces.append(_intervals(rows, mine, names, TONES[tone]))
    checks = [place for place in places if rows[place]["check"]["value"] is not None]
    if checks:
        traces.append(_checks(rows, checks))
    marks = [place for place in places if rows[place]["threshold"] is not None]
    if marks:
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "threshold",
                "x": [rows[place]["threshold"] for place in marks],
                "y": marks,
                "marker": {"symbol": "line-ns", "size": 22, "line": {"width": 2.5, "color": "$ink"}},
                "hovertemplate": "threshold %{x:.3f}<extra></extra>",
            }
        )
    layout = _layout(70 + 44 * len(rows))
    layout["yaxis"] |= {"tickvals": places, "ticktext": names, "range": [len(rows) - 0.4, -0.6], "showgrid": False}
    layout["yaxis"]["tickfont"] = {"color": "$ink", "size": 13}
    layout["xaxis"] |= {"tickformat": ".2~f"}
    layout["showlegend"] = bool(checks or marks)
    layout["legend"] = {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"}
    return {"data": traces, "layout": layout}


def _intervals(rows: Sequence[Plain], mine: Sequence[int], names: Sequence[str], colour: str) -> Plain:
    chosen = [rows[place] for place in mine]
    up = [(one["high"] - one["value"]) if one["high"] is not None else 0 for one in chosen]
    down = [(one["value"] - one["low"]) if one["low"] is not None else 0 for one in chosen]
    return {
        "type": "scatter",
        "mode": "markers",
        "showlegend": False,
        "x": [one["value"] for one in chosen],
        "y": list(mine),
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": up,
            "arrayminus": down,
            "thickness": 3,
            "width": 0,
            "color": colour,
        },
        "marker": {"size": 11, "color": colour},
        "customdata": [[names[place], bounds_text(rows[place])] for place in mine],
        "hovertemplate": "<b>%{customdata[0]}</b><br>%{x:.4f} %{customdata[1]}<extra></extra>",
    }


def _checks(rows: Sequence[Plain], places: Sequence[int]) -> Plain:
    checks = [rows[place]["check"] for place in places]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "cross-check: weighted labels alone",
        "x": [one["value"] for one in checks],
        "y": [place + 0.28 for place in places],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [(one["high"] - one["value"]) if one["high"] is not None else 0 for one in checks],
            "arrayminus": [(one["value"] - one["low"]) if one["low"] is not None else 0 for one in checks],
            "thickness": 1.2,
            "width": 0,
            "color": "$muted",
        },
        "marker": {"size": 7, "color": "$paper", "line": {"width": 1.5, "color": "$muted"}},
        "customdata": [[bounds_text(one)] for one in checks],
        "hovertemplate": "cross-check %{x:.4f} %{customdata[0]}<extra></extra>",
    }


def path(rows: Sequence[Plain], threshold: float | None) -> Plain:
    """The estimates of one metric over the number of labels, with their intervals."""
    points = [row for row in rows if row["value"] is not None]
    layout = _layout(230)
    layout["showlegend"] = False
    layout["margin"] = {"l": 8, "r": 8, "t": 34, "b": 30}
    layout["title"] = {
        "text": f"<b>{label(rows[0]['metric'], 34)}</b>",
        "font": {"size": 14, "color": "$ink"},
        "x": 0.02,
        "y": 0.97,
        "yanchor": "top",
    }
    layout["xaxis"] |= {"rangemode": "tozero", "title": _small_title("labels")}
    layout["yaxis"] |= {"tickformat": ".2~f"}
    if threshold is not None:
        line = {"color": "$ink", "width": 1.2, "dash": "dot"}
        across = {"xref": "x domain", "yref": "y", "x0": 0, "x1": 1, "y0": threshold, "y1": threshold}
        layout["shapes"] = [{"type": "line", "line": line, **across}]
    return {"data": _band_and_line(points), "layout": layout}


def _small_title(text: str) -> Plain:
    return {"text": text, "standoff": 4, "font": {"size": 12, "color": "$muted"}}


def _band_and_line(points: Sequence[Plain]) -> list[Plain]:
    labels, values = [row["labels"] for row in points], [row["value"] for row in points]
    banded = [row for row in points if row["low"] is not None]
    round_trip = [row["labels"] for row in banded] + [row["labels"] for row in reversed(banded)]
    edge = [row["high"] for row in banded] + [row["low"] for row in reversed(banded)]
    band = {
        "type": "scatter",
        "x": round_trip,
        "y": edge,
        "fill": "toself",
        "fillcolor": "$band",
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
    }
    line = {
        "type": "scatter",
        "x": labels,
        "y": values,
        "mode": "lines+markers",
        "line": {"color": "$accent", "width": 2},
        "marker": {"size": 5, "color": "$accent"},
        "customdata": [[bounds_text(row)] for row in points],
        "hovertemplate": "%{x} labels: %{y:.4f} %{customdata[0]}<extra></extra>",
    }
    return [band, line] if banded else [line]


def _layout(height: int) -> Plain:
    return {
        "height": height,
        "margin": {"l": 10, "r": 16, "t": 34, "b": 34},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 13, "color": "$ink"},
        "hoverlabel": {"bgcolor": "$paper", "bordercolor": "$line", "font": {"color": "$ink"}},
        "xaxis": _axis(),
        "yaxis": _axis(),
        "dragmode": False,
    }


def _axis() -> Plain:
    return {
        "gridcolor": "$line",
        "zeroline": False,
        "linecolor": "$line",
        "automargin": True,
        "fixedrange": True,
        "tickfont": {"color": "$muted", "size": 12},
    }


def label(text: str, most: int = 42) -> str:
    """A name as plotly shows it: escaped, and not longer than the plot."""
    return escape(text if len(text) <= most else text[: most - 1] + "…")


def bounds_text(row: Plain) -> str:
    """ "[0.912, 0.947]", or nothing without an interval."""
    return "" if row["low"] is None else f"[{row['low']:.4f}, {row['high']:.4f}]"
