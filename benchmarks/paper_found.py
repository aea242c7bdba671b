"""What docs/reproduction.md rests on: the committed CSV files, and how their figures are shown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import paper_tuned
from benchmarks.paper import METHODS
from benchmarks.paper_stable import FILE, PARTS_FILE
from benchmarks.store import RESULTS, Row, read_numbers

OWN = {method: "hard" if method in ("altmas", "bald") else "own" for method in METHODS}
"""The way of reading that is each method's own; that of the paper for its two."""
WORDS = {
    "precision-2": "precision of class 2",
    "recall-2": "recall of class 2",
    "accuracy": "accuracy",
    "21-metrics": "21 metrics",
}


@dataclass(frozen=True)
class Found:
    """Everything that the page rests on."""

    rows: list[Row]
    ablations: list[Row]
    sizes: list[Row]
    story: Row
    stable: list[Row]
    stable_parts: list[Row]
    speed: list[Row]
    tuned: list[Row]
    tuned_values: list[Row]
    tuned_run: list[Row]

    @classmethod
    def read(cls, rows: Path, ablations: Path, sizes: Path, story: Path) -> Found:
        told = json.loads(story.read_text(encoding="utf-8"))
        tuned = paper_tuned.FILE, paper_tuned.VALUES_FILE, paper_tuned.RUN_FILE
        apart = map(read_numbers, (FILE, PARTS_FILE, RESULTS / "speed.csv", *tuned))
        return cls(read_numbers(rows), read_numbers(ablations), read_numbers(sizes), told, *apart)

    @classmethod
    def committed(cls) -> Found:
        names = ("paper.csv", "paper_ablations.csv", "paper_sizes.csv", "paper_run.json")
        return cls.read(*(RESULTS / name for name in names))

    @property
    def partial(self) -> str:
        """What a figure says about a run that is not complete; nothing if it is."""
        counts = [row["repeats"] for row in self.rows]
        if self.story["finished"] == self.story["cells"]:
            return ""
        least = min(counts, default=0)
        return (
            f"PARTIAL RUN: {self.story['finished']} of {self.story['cells']} cells; "
            f"each curve rests on {least} to {max(counts, default=0)} repeats"
        )

    def row(self, model: str, aim: str, method: str, labels: Any, reading: str | None = None) -> Row:
        """The row, or an empty one."""
        return one_of(self.rows, model=model, aim=aim, method=method, labels=labels, reading=reading or OWN[method])

    def ablation(self, model: str, name: str, labels: Any, reading: str = "hard") -> Row:
        return one_of(self.ablations, model=model, method=name, labels=labels, reading=reading)


def one_of(rows: list[Row], **wanted: Any) -> Row:
    return next((row for row in rows if all(row[key] == value for key, value in wanted.items())), {})


def error_name(model: str, aim: str) -> str:
    """The error that a cell is judged by: relative, or absolute where the metric is too small for that."""
    return "absolute" if (model, aim) == ("mnist-12", "recall-2") else "relative"


def shown(row: Row, name: str, digits: int = 3) -> str:
    """mean ± standard error, or a dash."""
    if row.get(name) is None:
        return "–"
    error = row.get(f"{name}_se")
    return f"{row[name]:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")
