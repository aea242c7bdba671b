"""What draws of whole groups cost and whether their intervals hold: `python -m benchmarks.whole_groups`.

Pools in groups of 1 to 20 items whose errors come as whole groups, alone, or both; `assured` and `tradition` with
single draws and with draws of whole groups, at the same numbers of labels. `--runs` says how many sessions a cell gets.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402

import altmas  # noqa: E402
from altmas.task import DRAWS  # noqa: E402
from altmas.types import Array  # noqa: E402
from benchmarks.store import RESULTS, Row, read_numbers, write_csv  # noqa: E402
from benchmarks.tables import DOCS, markdown, rewrite_page  # noqa: E402

TABLE = RESULTS / "whole_groups.csv"
PAGE = DOCS / "what-the-interval-means.md"
GROUPS, LARGEST = 200, 20
METHODS = ("assured", "tradition")
LABELS = (200, 400, 800)
POOLS = {
    "whole groups": (0.9, 1.0),
    "whole groups, few": (0.98, 1.0),
    "half of the groups whole": (0.9, 0.5),
    "alone": (0.9, 0.0),
}
"""Where errors are: (accuracy, share of the groups whose items are all right or all wrong)."""


def grouped_pool(accuracy: float, together: float, seed: int = 1) -> tuple[altmas.Pool, Array]:
    """(pool without features, truth) with errors in that share of the groups, or of the items of the others."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, LARGEST + 1, GROUPS)
    group = np.repeat(np.arange(GROUPS), counts)
    whole, wrong_groups = rng.random(GROUPS) < together, np.zeros(GROUPS, np.bool_)
    order = rng.permutation(GROUPS)
    wrong_groups[order[: round((1 - accuracy) * GROUPS)]] = True
    wrong = np.where(whole[group], wrong_groups[group], rng.random(len(group)) < 1 - accuracy)
    truth = rng.integers(0, 2, len(group))
    return altmas.Pool(None, np.where(wrong, 1 - truth, truth), classes=[0, 1], group=group), truth


def rows_of(errors: str, runs: int, jobs: int) -> Iterator[Row]:
    """One row for each way of drawing, method and number of labels."""
    pool, truth = grouped_pool(*POOLS[errors])
    for draw in DRAWS:
        simulation = altmas.simulate(
            pool, truth, methods=METHODS, budgets=LABELS, repeats=runs, n_jobs=jobs, draw=draw, progress=False
        )
        for row in simulation.summary():
            yield {
                "errors": errors,
                "points": len(pool),
                "truth": round(row["truth"], 4),
                "draw": draw,
                "method": row["method"],
                "labels": row["labels"],
                "runs": row["repeats"],
                "coverage": round(row["coverage"], 4),
                "bias": round(row["bias"], 5),
                "rmse": round(row["rmse"], 5),
                "half_width": round(row["width"] / 2, 5),
            }


def table_of(rows: Sequence[Row]) -> str:
    """The rows of both ways of drawing side by side."""
    by_key = {(row["errors"], row["method"], row["labels"], row["draw"]): row for row in rows}
    lines = []
    for errors, method, labels, draw in by_key:
        if draw != "groups":
            continue
        single, group = (by_key[errors, method, labels, unit] for unit in DRAWS)
        lines.append(
            (
                f"{errors} ({group['truth']:.3f})",
                method,
                int(labels),
                *(f"{row['coverage']:.2f}, ±{row['half_width']:.3f}" for row in (single, group)),
                f"{group['bias'] / group['rmse']:+.2f}",
                f"{(single['rmse'] / group['rmse']) ** 2:.2f}",
            )
        )
    head = ("errors come (accuracy)", "method", "labels", "single items", "whole groups", "bias / RMSE", "label value")
    return markdown(head, lines)


def main() -> None:
    """Run what is asked for, or only write the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--summary", action="store_true", help="only rewrite the table of the page")
    chosen = parser.parse_args()
    if not chosen.summary:
        write_csv(TABLE, [row for errors in POOLS for row in rows_of(errors, chosen.runs, chosen.jobs)])
    rewrite_page(PAGE, {"whole groups": table_of(read_numbers(TABLE))})


if __name__ == "__main__":
    main()
