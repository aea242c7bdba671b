"""What the leaderboard's table says of each method, for those who choose one.

    python -m benchmarks.method_figures     # after the table has changed; seconds
writes src/altmas/methods/leaderboard.py, which help texts and error messages read, and the tables of docs/choosing.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np

from altmas.methods import GROUPS, METHODS, method_named
from benchmarks.leaderboard_page import MOST, TABLE
from benchmarks.store import read_csv
from benchmarks.tables import DOCS, markdown, with_tables

ROOT: Final = Path(__file__).parent.parent
MODULE: Final = ROOT / "src" / "altmas" / "methods" / "leaderboard.py"
PAGE: Final = DOCS / "choosing.md"
LABELS: Final = 400

Figures = dict[str, tuple[float | None, float]]


def figures(rows: Iterable[dict[str, str]]) -> Figures:
    """{method: (mean coverage or None without intervals, geometric mean of the label values, each at most MOST)}.

    Methods without a run are not in it.
    """
    last = [row for row in rows if row["status"] == "run" and int(row["labels"]) == LABELS]
    by_method: Figures = {}
    for method in METHODS:
        mine = [row for row in last if row["method"] == method]
        covered = [float(row["coverage"]) for row in mine if math.isfinite(float(row["coverage"]))]
        values = [min(float(row["label_value"]), MOST) for row in mine if float(row["label_value"]) > 0]
        if not values:
            continue
        worth = math.exp(float(np.mean(np.log(values))))
        by_method[method] = (round(float(np.mean(covered)), 3) if covered else None, float(f"{worth:.3g}"))
    return by_method


def read() -> Figures:
    """The figures of the committed table."""
    return figures(read_csv(TABLE))


def module(by_method: Figures) -> str:
    """The source of altmas.methods.leaderboard."""
    lines = [f"    {name!r}: {values!r},".replace("'", '"') for name, values in by_method.items()]
    head = '''"""What the leaderboard says of each method: written by `python -m benchmarks.method_figures`."""'''
    return "\n".join(
        [
            head,
            "",
            "FIGURES: dict[str, tuple[float | None, float]] = {",
            *lines,
            "}",
            '"""{method: (mean coverage of its 95 % intervals, None if it gives none; label value)}."""',
            "",
            f'FIGURES_MEAN = "in parentheses: mean coverage and label value of the leaderboard at {LABELS} labels"',
            "",
        ]
    )


def table(group: str, by_method: Figures) -> str:
    """A group's table in docs/choosing.md."""
    head = "method", "needs", "interval", "biased", "mean coverage", "label value", "what it does"
    lines = []
    for name, what in GROUPS[group].items():
        traits = method_named(name).traits
        needs = ", ".join([*traits.requires, *([f"`altmas[{traits.extra}]`"] if traits.extra else [])]) or "–"
        interval = {"none": "no", "credible": "a belief"}.get(traits.interval, "yes")
        biased = "yes" if traits.biased else "no"
        coverage, value = by_method.get(name, (None, math.nan))
        cover = "–" if coverage is None else f"{coverage:.3f}" if coverage >= 0.9 else f"**{coverage:.3f}**"
        lines.append([f"`{name}`", needs, interval, biased, cover, f"{value:.2g}", what])
    return markdown(head, lines)


def page(text: str, by_method: Figures) -> str:
    """docs/choosing.md with its tables anew."""
    return with_tables(text, {group: table(group, by_method) for group in GROUPS})


def rewrite() -> None:
    """Both files from the table."""
    by_method = read()
    MODULE.write_text(module(by_method), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), by_method), encoding="utf-8")


if __name__ == "__main__":
    rewrite()
