"""Tables of two pages on the guarantee from the committed results: `python -m benchmarks.guarantee_page`."""

from __future__ import annotations

from typing import Final

import numpy as np

from benchmarks.store import RESULTS, read_csv
from benchmarks.tables import DOCS, markdown, with_tables

HOLDS: Final = 0.9
"""Coverage that a normal interval needs for its width to be worth comparing with."""


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a committed table."""
    return read_csv(RESULTS / f"{name}.csv")


def boundary() -> str:
    """False decisions and widths, a line for each pool and metric."""
    head = ["pool", "metric", "value", "false above", "false below", "width", "normal width (covered)", "ratio"]
    rows = []
    for row in rows_of("guarantee_boundary"):
        sessions = int(row["sessions"])
        false = [f"{int(row[side])} ({int(row[side]) / sessions:.1%})" for side in ("false_above", "false_below")]
        normal = f"{float(row['normal_width']):.3f} ({float(row['normal_covered']):.2f})"
        ratio = f"{float(row['ratio']):.2f}" if holds(row) else "–"
        rows.append([row["pool"], row["metric"], row["value"], *false, f"{float(row['width']):.3f}", normal, ratio])
    return markdown(head, rows)


def holds(row: dict[str, str]) -> bool:
    return float(row["normal_covered"]) >= HOLDS


def totals() -> str:
    """All sessions together."""
    rows = rows_of("guarantee_boundary")
    decisions = sum(int(row["sessions"]) for row in rows)
    sessions = sum(int(row["sessions"]) for row in rows if row["metric"] == "accuracy")
    above, below = (sum(int(row[side]) for row in rows) for side in ("false_above", "false_below"))
    ratios = [float(row["ratio"]) for row in rows if holds(row)]
    mean = float(np.exp(np.mean(np.log(ratios))))
    return (
        f'{sessions:,} sessions, {decisions:,} decisions on each side: false "above" {above / decisions:.1%}, false '
        f'"below" {below / decisions:.1%}. Width against the normal interval where that one covers in at least '
        f"{HOLDS:.0%} of the runs ({len(ratios)} of {len(rows)} lines): geometric mean {mean:.2f}, "
        f"largest {max(ratios):.2f}."
    )


def default() -> str:
    """Widths of both intervals of the default method."""
    head = ["pool", "metric", "runs", "width (covered)", "with a proof (covered)", "ratio"]
    return markdown(head, [_default_line(row) for row in rows_of("guarantee_default")])


def _default_line(row: dict[str, str]) -> list[str]:
    usual, proven = (f"{float(row[f'{of}width']):.3f} ({float(row[f'{of}covered']):.2f})" for of in ("", "proven_"))
    ratio = f"{float(row['ratio']):.2f}" if row["ratio"] else "–"
    return [row["pool"], row["metric"], row["runs"], usual, proven, ratio]


def default_totals() -> str:
    """All lines together."""
    rows = rows_of("guarantee_default")
    ratios = [float(row["ratio"]) for row in rows if row["ratio"]]
    mean, runs = float(np.exp(np.mean(np.log(ratios)))), [int(row["runs"]) for row in rows]
    usual, proven = (np.mean([float(row[f"{of}covered"]) for row in rows]) for of in ("", "proven_"))
    return (
        f"`assured`, edition {rows[0]['edition']}, {min(runs)} sessions a pool: geometric mean {mean:.2f} over "
        f"{len(ratios)} lines, largest {max(ratios):.2f}, smallest {min(ratios):.2f}; where a metric is exact there is "
        f"no ratio. At 400 labels the usual intervals held in {usual:.3f}, those with a proof in {proven:.3f}."
    )


def widths() -> str:
    """Widths for uniform draws, with their ratio to Clopper and Pearson's."""
    head = ["accuracy", "labels", "Clopper-Pearson", "Wilson", "budget 400", "budget = labels", "no budget"]
    rows = []
    for row in rows_of("guarantee_widths"):
        exact = float(row["clopper_pearson"])
        ours = [float(row[name]) for name in ("budget_400", "budget_is_labels", "no_budget")]
        plain = [row["accuracy"], row["labels"], f"{exact:.4f}", f"{float(row['wilson']):.4f}"]
        rows.append([*plain, *(f"{width:.4f} ({width / exact:.2f})" for width in ours)])
    return markdown(head, rows)


def bets() -> str:
    """Widths with other bets."""
    rows = rows_of("guarantee_bets")
    head = list(rows[0])
    return markdown(head, [[row[name] or "–" for name in head] for row in rows])


def search() -> str:
    """Labels to a certificate of recall."""
    head = ["review", "target", "screening", "certificate", "labels", "recall then", "false"]
    rows = []
    for row in sorted(rows_of("search_recall"), key=lambda row: (row["topic"], -float(row["target"]))):
        review = f"{row['topic']} ({row['relevant']} of {row['documents']})"
        false = f"{row['false']} of {row['runs']}"
        numbers = [f"{float(row['labels']):.0f}", f"{float(row['recall']):.3f}", false]
        rows.append([review, row["target"], row["screening"], row["certificate"], *numbers])
    return markdown(head, rows)


TABLES: Final = {
    "guarantee.md": {
        "boundary": boundary,
        "totals": totals,
        "widths": widths,
        "default": default,
        "default totals": default_totals,
        "bets": bets,
    },
    "recall-certificates.md": {"search": search},
}


def page(name: str) -> str:
    """The page with its tables made anew."""
    return with_tables(
        (DOCS / name).read_text(encoding="utf-8"), {table: make() for table, make in TABLES[name].items()}
    )


def main() -> None:
    for name in TABLES:
        (DOCS / name).write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
