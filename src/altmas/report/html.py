"""A report's content as one HTML file that needs nothing else: style, charts and a small script are inside it."""

import base64
import json
import math
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from altmas.report.figures import KINDS, charts_of, has_goal, listed_metrics
from altmas.report.words import number, percent, plural
from altmas.svg import STYLE, THEME, cell

Plain = dict[str, Any]

BREAKS = re.compile(r"(?<=[_@=:,/])|(?=\[)")
"""Where the name of a metric or class may be broken."""


def page(content: Plain, pictures: dict[str, tuple[bytes, str]] | None = None) -> str:
    """The whole page; `pictures` are the images of items, {"row.part": (content, media type)}."""
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            c=content,
            charts=charts_of(content),
            listed=listed_metrics(content["metrics"]),
            kinds=KINDS,
            style=Markup(f"{THEME}\n{STYLE}\n") + _asset("report.css"),
            script=_asset("report.js"),
            pictures={name: data_address(*picture) for name, picture in (pictures or {}).items()},
        )
    )


def fragment(content: Plain) -> str:
    """What a notebook shows: the verdicts and the estimates, without figures."""
    return _environment().get_template("fragment.html.j2").render(c=content)


def data_address(content: bytes, kind: str) -> str:
    """A picture as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "number": lambda value: "–" if value is None else number(value),
        "two": lambda value: "–" if value is None else f"{value:.2f}",
        "breaks": breaks,
        "whole": lambda text: text.replace("–", "\u2060–\u2060").replace(" %", "\u00a0%").replace("± ", "±\u00a0"),
        "count": lambda value: "–" if value is None else f"{value:,.0f}",
        "percent": lambda value: "–" if value is None else percent(value).replace(" %", "\u00a0%"),
        "duration": duration,
        "date": lambda text: str(text).replace("T", " ")[:16] if text else "–",
        "times": lambda value: "–" if value is None else f"{value:.2f} ×",
    }
    environment.tests["wanted"] = has_goal
    environment.globals |= {
        "plural": plural,
        "bar": cell,
        "json": lambda value: json.dumps(value, indent=1, ensure_ascii=False),
    }
    return environment


def breaks(text: object) -> Markup:
    """A name that may be broken after its parts, and so need not be in mid-word: recall[cat]@site=A, macro_f1."""
    parts = BREAKS.split(str(text))
    return Markup("<wbr>").join(escape(part) for part in parts)


def _source(name: str) -> str:
    return (files("altmas.report") / "templates" / name).read_text("utf-8")


def _asset(name: str) -> Markup:
    return Markup(_source(name))


def duration(seconds: float | None) -> str:
    """A time as people say it."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
