"""The preset without leaps against the paper's own, BALD and random labels: `python -m benchmarks.paper_stable`.

The twelve panels of `benchmarks.paper`, in steps of 100 labels, with `altmas` as `preset="stable"`, `bald` and
`tradition`, all from the same 100 first labels; and one thing changed at a time for the 21 metrics.
Finished cells are kept and never repeated; `--summary` only rewrites what is here of the CSV files, and the tables
of the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from benchmarks import paper
from benchmarks.paper import ALL, MODELS, Cell, ablation_cells, cells, read, run_all
from benchmarks.paper_results import rows_of
from benchmarks.store import RESULTS, Row, keep_csv

STEP, REPEATS, ABLATION_STEP, ABLATION_REPEATS = 100, 3, 100, 3
METHODS = ("tradition", "bald", "stable")
SETTINGS = ("as published", "preset safe", "no augmentation", *paper.PRESETS)
"""What is compared for the 21 metrics, one thing changed at a time."""
KEY = ("model", "aim", "method", "reading", "labels")
"""What tells the rows of a table apart; rows of which no run is here are kept."""
FILE, PARTS_FILE = RESULTS / "paper_stable.csv", RESULTS / "paper_stable_parts.csv"


def panel_cells(repeats: int) -> list[Cell]:
    """Every run of the twelve panels, repeat by repeat."""
    return list(cells(MODELS, tuple(paper.AIMS), METHODS, repeats, STEP))


def part_cells(repeats: int) -> list[Cell]:
    """Every run of the comparison of settings, repeat by repeat."""
    return list(ablation_cells(MODELS, SETTINGS, repeats, ABLATION_STEP))


def rows_with_leaps(wanted: list[Cell]) -> Iterator[Row]:
    """The rows of `paper_results`, with the leaps of the pseudo-labelled set and the processor seconds of a round."""
    for row in rows_of(wanted):
        runs = [
            read(cell)
            for cell in wanted
            if (cell.model, cell.method) == (row["model"], row["method"]) and cell.aim in (row["aim"], ALL)
        ]
        runs = [run for run in runs if run]
        yield row | {
            "leaps": leaps(runs),
            "seconds": round(float(np.mean([r[-1]["seconds"] / len(r) for r in runs])), 3),
        }


def leaps(runs: list[list[Row]]) -> float | None:
    """The share of steps in which the number of pseudo-labels more than doubles or halves."""
    if not runs or "pseudo" not in runs[0][0]:
        return None
    sizes = [np.log(np.array([record["pseudo"] for record in run], np.float64) + 1) for run in runs]
    steps = np.concatenate([np.abs(np.diff(one)) for one in sizes])
    return round(float((steps > np.log(2)).mean()), 4) if len(steps) else None


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper_stable", description=__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--part-repeats", type=int, default=ABLATION_REPEATS)
    parser.add_argument("--summary", action="store_true", help="only rewrite CSV files and tables")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    panels, parts = panel_cells(given.repeats), part_cells(given.part_repeats)
    if not given.summary:
        run_all(sorted([*panels, *parts], key=lambda cell: (cell.repeat, cell.method in SETTINGS[:3])), given.jobs)
    keep_csv(FILE, rows_with_leaps(panels), *KEY)
    keep_csv(PARTS_FILE, rows_with_leaps(parts), *KEY)
    from benchmarks.paper_found import Found  # reads what was just written
    from benchmarks.paper_page import write_page

    write_page(Found.committed())


if __name__ == "__main__":
    main()
