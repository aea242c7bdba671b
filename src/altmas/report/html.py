"""A report's content as one HTML file that needs nothing else: style, script and plotly are inside it."""

import base64
import json
import math
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from altmas.report.figures import figures_of
from altmas.report.words import number, percent, plural

Plain = dict[str, Any]


def page(content: Plain, pictures: dict[str, tuple[bytes, str]] | None = None) -> str:
    """The whole page; `pictures` are the images of items, {"row.part": (content, media type)}."""
    from plotly.offline import get_plotlyjs

    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            c=content,
            figures=script_json(figures_of(content)),
            style=_asset("report.css"),
            script=_asset("report.js"),
            plotly=Markup(get_plotlyjs()),
            pictures={name: data_address(*picture) for name, picture in (pictures or {}).items()},
        )
    )


def fragment(content: Plain) -> str:
    """What a notebook shows: the verdicts and the estimates, without figures."""
    return _environment().get_template("fragment.html.j2").render(c=content)


def script_json(value: Any) -> Markup:
    """JSON that can stand inside a script element whatever texts it holds."""
    written = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return Markup(written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def data_address(content: bytes, kind: str) -> str:
    """A picture as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {
        "number": lambda value: "–" if value is None else number(value),
        "count": lambda value: "–" if value is None else f"{value:,.0f}",
        "percent": lambda value: "–" if value is None else percent(value),
        "duration": duration,
        "date": lambda text: str(text).replace("T", " ")[:16] if text else "–",
        "times": lambda value: "–" if value is None else f"{value:.2f} ×",
    }
    made.globals |= {"plural": plural, "json": lambda value: json.dumps(value, indent=1, ensure_ascii=False)}
    return made


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
