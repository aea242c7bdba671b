"""Charts as SVG text: scales, axes, intervals, lines, dots and bars.

A chart is one <svg> with a title and a description; each mark has a <title> of its own, which browsers show on hover.
Horizontal places are per cent of the width where only rows, ticks and dots are drawn (`wide`), so that text keeps its
size on every screen; charts with lines have a fixed shape that is scaled as a whole (`panel`). Colours are classes,
and `STYLE` says what they are: variables of the page, so that dark and printed pages need no second chart.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

THEME = """
:root {
  --paper: #ffffff; --ground: #f4f5f7; --ink: #1b2330; --muted: #5d6878; --line: #e1e5eb;
  --accent: #2456c4; --band: rgba(36, 86, 196, .14); --good: #10754a; --bad: #b3261e; --open: #8a5a00;
  --good-soft: #e2f4ea; --bad-soft: #fbe6e4; --open-soft: #fdf1d8; --plain-soft: #e6ecfa;
  color-scheme: light;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #1a202b; --ground: #11151c; --ink: #e8ecf2; --muted: #9aa6b7; --line: #2e3747;
    --accent: #86abff; --band: rgba(134, 171, 255, .18); --good: #62d39b; --bad: #ff938a; --open: #f1c063;
    --good-soft: #163526; --bad-soft: #401f1d; --open-soft: #3a2d12; --plain-soft: #1f2c4a;
    color-scheme: dark;
  }
}
""".strip()
"""The colours of a page in light, dark and print."""

STYLE = """
svg.chart { display: block; width: 100%; max-width: 100%; overflow: visible; font-size: 12px; }
svg.panel { height: auto; max-width: 460px; }
svg.chart text { fill: var(--muted); }
svg.chart .name { fill: var(--ink); font-size: 13px; }
svg.chart .grid { stroke: var(--line); stroke-width: 1; }
svg.chart .band { fill: var(--band); stroke: none; }
svg.chart .line { fill: none; stroke: var(--accent); stroke-width: 2; stroke-linejoin: round; }
svg.chart .best { fill: none; stroke: var(--bad); stroke-width: 1.5; }
svg.chart .limit { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 3 3; }
svg.chart .tick { stroke: var(--ink); stroke-width: 2.5; }
svg.chart .bar { stroke-width: 4; stroke-linecap: round; }
svg.chart .thin { stroke-width: 1.2; stroke: var(--muted); }
svg.chart .hollow { fill: var(--paper); stroke: var(--muted); stroke-width: 1.5; }
svg.chart .hit { fill: transparent; stroke: none; }
svg.chart .good { fill: var(--good); stroke: var(--good); } svg.chart .bad { fill: var(--bad); stroke: var(--bad); }
svg.chart .open { fill: var(--open); stroke: var(--open); }
svg.chart .plain { fill: var(--accent); stroke: var(--accent); }
svg.chart circle.good, svg.chart circle.bad, svg.chart circle.open, svg.chart circle.plain { stroke: none; }
svg.chart .other { fill: var(--muted); }
""".strip()


# ---------------------------------------------------------------- scales


@dataclass(frozen=True)
class Scale:
    """Where a value lies: [low, high] onto [start, end], on a log scale if asked for."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        at, low, high = (math.log(x) if self.log else x for x in (value, self.low, self.high))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def inside(self, value: float) -> float:
        """The same, values beyond the ends drawn at the ends."""
        return self(min(max(value, self.low), self.high))


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most so many round values between low and high: multiples of 1, 2 or 5 times a power of ten."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(step for step in (power, 2 * power, 5 * power, 10 * power) if (high - low) / step <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)][: most + 1]


def around(
    values: Iterable[float | None], least: float = 0.02, within: tuple[float, float] | None = None
) -> tuple[float, float]:
    """(low, high) that hold all values with a margin; `within` are ends that no value can pass."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    margin = max(0.06 * (high - low), least / 2)
    low, high = low - margin, high + margin
    if within is not None and math.isfinite(within[0]) and math.isfinite(within[1]):
        low, high = max(low, within[0] - 0.01), min(high, within[1] + 0.01)
    return low, high


def short(value: float) -> str:
    """A tick's value."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"


# ---------------------------------------------------------------- elements


def element(tag: str, *content: str, **attributes: object) -> str:
    """One element; attribute names lose a trailing _ and write - for inner ones, values are escaped, content is not."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_plain(value))}"' for name, value in attributes.items()
    )
    inner = "".join(content)
    return f"<{tag}{written}>{inner}</{tag}>" if inner else f"<{tag}{written}/>"


def _plain(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def text(words: str, **attributes: object) -> str:
    """A text, escaped."""
    return element("text", escape(words), **attributes)


def told(words: str, *marks: str) -> str:
    """Marks that say something when they are pointed at."""
    return element("g", element("title", escape(words)), *marks)


def chart(name: str, title: str, description: str, *parts: str, kind: str, **attributes: object) -> Markup:
    """The whole <svg> with its title and description; `name` is unique on the page."""
    head = element("title", escape(title), id=f"{name}-title") + element("desc", escape(description), id=f"{name}-desc")
    named = {"role": "img", "aria_labelledby": f"{name}-title", "aria_describedby": f"{name}-desc"}
    return Markup(
        element(
            "svg",
            head,
            *parts,
            xmlns="http://www.w3.org/2000/svg",
            id=name,
            class_=f"chart {kind}",
            **named,
            **attributes,
        )
    )


ALONE, EDGE_ALONE, LINE = 720, 12, 22
"""Width and half of the margin of a chart that is a file of its own, and the height of a line of its text."""


def standalone(drawn: str, title: str, key: Sequence[tuple[str, str]] = ()) -> str:
    """A chart as a file of its own: with colours, a title in words and what its tones mean, (tone, words) each."""
    inner = str(drawn).replace('width="100%"', f'width="{ALONE - 4 * EDGE_ALONE}"', 1)
    inner = inner.replace("<svg ", f'<svg x="{2 * EDGE_ALONE}" y="{2 * LINE}" ', 1)
    height = 3 * LINE + float(inner.partition('height="')[2].partition('"')[0])
    lines = [text(title, x=2 * EDGE_ALONE, y=1.2 * LINE, class_="name", font_weight="bold")]
    left = 2.0 * EDGE_ALONE
    for tone, words in key:
        lines.append(element("circle", cx=left + 6, cy=height - 14, r=5, class_=tone))
        lines.append(text(words, x=left + 18, y=height - 10))
        left += 40 + 7 * len(words)
    return element(
        "svg",
        f"<style>{THEME}{STYLE}</style>",
        element("rect", width="100%", height="100%", fill="var(--paper)"),
        *lines,
        inner,
        xmlns="http://www.w3.org/2000/svg",
        class_="chart",
        viewBox=f"0 0 {ALONE} {height:g}",
        width=ALONE,
        height=f"{height:g}",
        font_family="system-ui, sans-serif",
    )


def per_cent(share: float) -> str:
    """A place as per cent of the width."""
    return f"{share:.2f}".rstrip("0").rstrip(".") + "%"


# ---------------------------------------------------------------- intervals, one below the other


@dataclass(frozen=True)
class Interval:
    """A row of `intervals`: an estimate with its ends, a second one to compare with, and a limit to be clear of."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    tone: str = "plain"
    check: tuple[float, float | None, float | None] | None = None
    limit: float | None = None
    limit_name: str = "threshold"


ROW, TOP, FOOT, EDGE = 46.0, 6.0, 22.0, 2.0


def intervals(name: str, title: str, rows: Sequence[Interval], within: tuple[float, float] | None = None) -> Markup:
    """Estimates with their intervals, each below its name; checks hollow, limits as ticks."""
    scale = Scale(*around(_ends(rows), within=within), EDGE, 100 - EDGE)
    height = TOP + ROW * len(rows) + FOOT
    parts = [_across(scale, TOP, height - FOOT)]
    for number, row in enumerate(rows):
        parts.append(_row(row, scale, TOP + ROW * number))
    words = "; ".join(map(row_in_words, rows)) + "."
    return chart(name, title, words, *parts, kind="wide", height=height, width="100%")


def _ends(rows: Sequence[Interval]) -> list[float | None]:
    ends: list[float | None] = []
    for row in rows:
        ends += [row.value, row.low, row.high, row.limit, *(row.check or ())]
    return ends


def row_in_words(row: Interval) -> str:
    """A row in words."""
    words = f"{row.name} {row.value:.3f}"
    words += "" if row.low is None or row.high is None else f" ({row.low:.3f} to {row.high:.3f})"
    return words + ("" if row.limit is None else f", {row.limit_name} {row.limit:.4g}")


def _across(scale: Scale, top: float, bottom: float) -> str:
    """Vertical grid lines with their values below."""
    parts = []
    for value in ticks(scale.low, scale.high, 5):
        at = per_cent(scale(value))
        parts.append(element("line", x1=at, x2=at, y1=top, y2=bottom, class_="grid"))
        parts.append(text(short(value), x=at, y=bottom + 16, text_anchor="middle"))
    return "".join(parts)


def _row(row: Interval, scale: Scale, top: float) -> str:
    middle = top + 29
    marks = [element("rect", x=0, y=top, width="100%", height=ROW, class_="hit")]
    marks.append(text(shortened(row.name), x=0, y=top + 15, class_="name"))
    marks.append(_bar(row.low, row.high, scale, middle, f"bar {row.tone}"))
    marks.append(element("circle", cx=per_cent(scale.inside(row.value)), cy=middle, r=6, class_=row.tone))
    words = row_in_words(row)
    if row.check is not None:
        value, low, high = row.check
        marks.append(_bar(low, high, scale, middle + 10, "thin"))
        marks.append(element("circle", cx=per_cent(scale.inside(value)), cy=middle + 10, r=3.5, class_="hollow"))
        words += f"; cross-check {value:.3f}"
    if row.limit is not None:
        at = per_cent(scale.inside(row.limit))
        marks.append(element("line", x1=at, x2=at, y1=middle - 10, y2=middle + 10, class_="tick"))
    return told(words, *marks)


def _bar(low: float | None, high: float | None, scale: Scale, y: float, kind: str) -> str:
    if low is None or high is None:
        return ""
    ends = {"x1": per_cent(scale.inside(low)), "x2": per_cent(scale.inside(high))}
    return element("line", **ends, y1=y, y2=y, class_=kind)


def shortened(name: str, most: int = 44) -> str:
    """A name that fits on a phone."""
    return name if len(name) <= most else name[: most - 1] + "…"


def cell(low: float | None, value: float | None, high: float | None) -> Markup:
    """A small bar for a table on the scale from 0 to 1; the numbers stand beside it, so it is hidden from readers."""
    if value is None:
        return Markup("")
    scale = Scale(0.0, 1.0, 3, 97)
    parts = element("line", x1="3%", x2="97%", y1=7, y2=7, class_="grid")
    parts += _bar(low, high, scale, 7, "bar plain")
    parts += element("circle", cx=per_cent(scale.inside(value)), cy=7, r=4, class_="plain")
    return Markup(element("svg", parts, class_="chart mini", width="100%", height=14, aria_hidden="true"))


# ---------------------------------------------------------------- lines over a number

WIDTH, HEIGHT, LEFT, RIGHT, ABOVE, BELOW = 320.0, 200.0, 42.0, 10.0, 24.0, 34.0


@dataclass(frozen=True)
class Step:
    """A point of `path`: an estimate with its ends at x, and what is said when it is pointed at."""

    x: float
    value: float
    low: float | None = None
    high: float | None = None


def path(
    name: str,
    title: str,
    steps: Sequence[Step],
    *,
    across: str,
    limit: float | None = None,
    within: tuple[float, float] | None = None,
) -> Markup:
    """A line with the band of its interval over x, which starts at 0; a limit is a dotted line."""
    ends = [end for step in steps for end in (step.value, step.low, step.high)]
    y = Scale(*around([*ends, limit], within=within), HEIGHT - BELOW, ABOVE)
    x = Scale(0.0, max(step.x for step in steps) * 1.02, LEFT, WIDTH - RIGHT)
    banded = [step for step in steps if step.low is not None and step.high is not None]
    edge = [(step.x, step.high) for step in banded] + [(step.x, step.low) for step in reversed(banded)]
    parts = [panel_axes(x, y, across, title)]
    if edge:
        parts.append(element("polygon", points=_points(edge, x, y), class_="band"))
    if limit is not None:
        at = y.inside(limit)
        parts.append(
            told(f"threshold {limit:g}", element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, class_="limit"))
        )
    parts.append(element("polyline", points=_points([(step.x, step.value) for step in steps], x, y), class_="line"))
    for step in steps:
        words = f"{step.x:,.0f} {across}: {step.value:.4f}"
        words += "" if step.low is None or step.high is None else f" ({step.low:.4f} to {step.high:.4f})"
        centre = {"cx": x(step.x), "cy": y.inside(step.value)}
        parts.append(
            told(
                words, element("circle", **centre, r=3, class_="plain"), element("circle", **centre, r=9, class_="hit")
            )
        )
    last = steps[-1]
    words = f"From {steps[0].value:.3f} at {steps[0].x:,.0f} {across} to {last.value:.3f} at {last.x:,.0f}"
    words += "." if last.low is None or last.high is None else f", interval {last.low:.3f} to {last.high:.3f}."
    words += "" if limit is None else f" The dotted line is the threshold {limit:g}."
    return panel(name, title, words, *parts)


@dataclass(frozen=True)
class CurvePoint:
    """A point of `curve`: y with its ends at x, and what belongs to it."""

    x: float
    value: float
    low: float | None
    high: float | None
    at: str


def curve(name: str, title: str, points: Sequence[CurvePoint], *, axes: tuple[str, str], equal: bool = False) -> Markup:
    """A curve of shares over shares with the band of its intervals; `equal` adds the line where both are the same."""
    x, y = Scale(0.0, 1.0, LEFT, WIDTH - RIGHT), Scale(0.0, 1.0, HEIGHT - BELOW, ABOVE)
    across, up = axes
    banded = [point for point in points if point.low is not None and point.high is not None]
    edge = [(point.x, point.high) for point in banded] + [(point.x, point.low) for point in reversed(banded)]
    parts = [panel_axes(x, y, across, f"{title}: {up}")]
    if equal:
        parts.append(told("equal", element("polyline", points=_points([(0, 0), (1, 1)], x, y), class_="limit")))
    if edge:
        parts.append(element("polygon", points=_points(edge, x, y), class_="band"))
    parts.append(element("polyline", points=_points([(point.x, point.value) for point in points], x, y), class_="line"))
    for point in points:
        words = f"{across} {point.x:.3f}, {up} {point.value:.3f}"
        words += "" if point.low is None or point.high is None else f" ({point.low:.3f} to {point.high:.3f})"
        centre = {"cx": x(point.x), "cy": y.inside(point.value)}
        marks = element("circle", **centre, r=3, class_="plain"), element("circle", **centre, r=9, class_="hit")
        parts.append(told(f"{words}, {point.at}", *marks))
    first, last = points[0], points[-1]
    words = (
        f"{up} over {across}: from {first.value:.3f} at {first.x:.3f} to {last.value:.3f} at {last.x:.3f}; the band "
    )
    words += "holds the interval of each point by itself." + (" The dotted line is equality." if equal else "")
    return panel(name, title, words.capitalize(), *parts)


def dots(
    name: str,
    title: str,
    points: Sequence[tuple[float, float, str, str]],
    *,
    across: str,
    log: bool = False,
    best: Sequence[tuple[float, float]] = (),
) -> Markup:
    """Dots (x, y, class, words), and a line of the best so far."""
    y = Scale(*around([point[1] for point in points]), HEIGHT - BELOW, ABOVE)
    low, high = min(point[0] for point in points), max(point[0] for point in points)
    low, high = (low / 1.15, high * 1.15) if log else (low - 0.5, high + 0.5)
    x = Scale(low, high, LEFT, WIDTH - RIGHT, log)
    parts = [panel_axes(x, y, across, title)]
    if best:
        corners = [(at, value) for (_, value), (at, _) in zip(best, best[1:], strict=False)]
        stairs = [point for pair in zip(best, [*corners, best[-1]], strict=True) for point in pair]
        parts.append(element("polyline", points=_points(stairs, x, y), class_="best"))
    for at, value, kind, words in points:
        parts.append(told(words, element("circle", cx=x(at), cy=y(value), r=4, class_=kind)))
    least = min(points, key=lambda point: point[1])
    return panel(name, title, f"{len(points)} dots; the lowest is {least[1]:.4f} at {across} {least[0]:.3g}.", *parts)


def panel(name: str, title: str, description: str, *parts: str) -> Markup:
    """A chart of fixed shape."""
    return chart(name, title, description, *parts, kind="panel", viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}")


def panel_axes(x: Scale, y: Scale, across: str, title: str) -> str:
    """Grid, ticks, the chart's name above and the name of the horizontal axis below."""
    parts = [text(shortened(title, 40), x=LEFT - 38, y=14, class_="name")]
    for value in ticks(y.low, y.high, 6):
        parts.append(element("line", x1=x.start, x2=x.end, y1=y(value), y2=y(value), class_="grid"))
        parts.append(text(short(value), x=x.start - 6, y=y(value) + 4, text_anchor="end"))
    for value in log_ticks(x.low, x.high) if x.log else ticks(x.low, x.high, 5):
        parts.append(text(short(value), x=x(value), y=y.start + 16, text_anchor="middle"))
    parts.append(text(across, x=(x.start + x.end) / 2, y=y.start + 31, text_anchor="middle"))
    return "".join(parts)


def log_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round values on a log scale: powers of ten, with 2 and 5 times them where there is room."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    inside = [round(value, 12) for value in values if low <= value <= high]
    return (
        inside if len(inside) <= most else [value for value in inside if math.log10(value) % 1 < 1e-9] or inside[:most]
    )


def _points(points: Iterable[tuple[float, float | None]], x: Scale, y: Scale) -> str:
    return " ".join(f"{x(at):.1f},{y.inside(value):.1f}" for at, value in points if value is not None)


# ---------------------------------------------------------------- shares


def shares(name: str, title: str, parts: Sequence[tuple[str, float, str]]) -> Markup:
    """One bar divided into (words, amount, class)."""
    whole, at, drawn = sum(amount for _, amount, _ in parts), 0.0, []
    for words, amount, kind in parts:
        width = 100 * amount / whole
        drawn.append(told(words, element("rect", x=per_cent(at), width=per_cent(width), y=0, height=26, class_=kind)))
        at += width
    return chart(
        name, title, "; ".join(words for words, _, _ in parts) + ".", *drawn, kind="wide", height=26, width="100%"
    )
