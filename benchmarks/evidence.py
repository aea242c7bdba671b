"""The tables and the figure of docs/evidence.md, from the benchmark's CSV: `python -m benchmarks.evidence`.

What stands between `<!-- table: name -->` and `<!-- end -->` on the page is replaced; the words around it are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.label_value import BUDGETS
from benchmarks.store import RESULTS, Row, read_numbers
from benchmarks.tables import DOCS, markdown, rewrite_page

PAGE = DOCS / "evidence.md"
FIGURE = RESULTS / "label_value.png"
HELD_OUT = RESULTS / "label_value_held_out.csv"
DESIGNS = RESULTS / "label_value_design.csv"
EDITIONS = RESULTS / "label_value_editions.csv"
"""What earlier editions of `assured` reached with 400 labels: rows of their label_value.csv."""
NOMINAL, LEAST, GIVEN_AWAY = 0.95, 0.93, 0.985


def rows_of(path: Path = RESULTS / "label_value.csv") -> list[Row]:
    """The rows of the benchmark, numbers as numbers."""
    return read_numbers(path)


def chosen(rows: list[Row], **values: Any) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


# ---------------------------------------------------------------- tables


def accuracy_table(rows: list[Row]) -> str:
    """Label value for accuracy alone, with the learnable limit."""
    head = "pool", "track", "accuracy", "n = 100", "n = 200", "n = 400", "limit", "n = 400 / limit"
    lines = []
    cells = chosen(rows, method="assured", aim="accuracy", metric="accuracy")
    for pool, track in dict.fromkeys((row["pool"], row["track"]) for row in cells):
        mine = [chosen(cells, pool=pool, track=track, labels=float(n))[0] for n in BUDGETS]
        last = mine[-1]
        limits = f"{last['limit']:.2f}", f"{last['of_limit']:.2f}"
        lines.append([pool, track, f"{last['truth']:.4f}", *map(_worth, mine), *limits])
    final = [row for row in cells if row["labels"] == BUDGETS[-1]]
    mean = f"Geometric mean of value / limit at n = 400: **{_mean_ratio(final):.2f}** over all {len(final)} cells."
    return "\n".join([markdown(head, lines), "", mean])


def _mean_ratio(cells: list[Row]) -> float:
    return _geometric(row["of_limit"] for row in cells)


def several_table(rows: list[Row]) -> str:
    """Label value when several metrics are asked for together, at n = 100 and 400."""
    head = "pool", "track", "metric", "n = 100", "n = 400", "RMSE at 400", "half-width at 400"
    lines = []
    cells = [row for row in chosen(rows, method="assured", aim="several") if row["metric"] != "accuracy + per_class"]
    for key in dict.fromkeys((row["pool"], row["track"], row["metric"]) for row in cells):
        first, last = (
            chosen(cells, pool=key[0], track=key[1], metric=key[2], labels=float(n))[0]
            for n in (BUDGETS[0], BUDGETS[-1])
        )
        width = "–" if last["half_width"] != last["half_width"] else f"{last['half_width']:.4f}"
        lines.append([*key, _worth(first), _worth(last), f"{last['rmse']:.4f}", width])
    return markdown(head, lines)


def coverage_table(rows: list[Row]) -> str:
    """How many cells cover how well."""
    cells = [row for row in chosen(rows, method="assured") if isinstance(row["coverage"], float)]
    cells = [row for row in cells if row["metric"] != "accuracy + per_class"]
    low = [row for row in cells if row["coverage"] < LEAST - _error(row)]
    high = [row for row in cells if row["coverage"] > GIVEN_AWAY]
    mean = sum(row["coverage"] for row in cells) / len(cells)
    summary = (
        f"{len(cells)} cells (pool x track x aim x metric x n); mean coverage {mean:.3f}; {len(low)} below 0.93 by "
        f"more than 1.64 Monte Carlo standard errors; {len(high)} above 0.985."
    )
    lines = []
    for row in sorted(low, key=lambda cell: cell["coverage"]):
        name = f"{row['pool']}, {row['track']}, {row['metric']} ({row['aim']})"
        worst = f"{row['coverage_worst']:.2f} {row['worst_metric']}" if row["metric"] == "per_class" else ""
        bias = f"{row['bias'] / row['rmse']:+.2f}"
        lines.append([name, row["labels"], f"{row['coverage']:.3f}", worst, bias, row["repeats"]])
    head = "below 0.93", "n", "coverage", "worst class", "bias / RMSE", "runs"
    return f"{summary}\n\n{markdown(head, lines)}"


def losing_table(rows: list[Row]) -> str:
    """Cells whose label value lies below 1 beyond noise."""
    cells = [row for row in chosen(rows, method="assured") if row["label_value_high"] < 1]
    if not cells:
        return "None: the upper end of the 90 % interval of the label value is at least 1 in every cell."
    keys = ("pool", "track", "aim", "metric")
    lines = [[*(row[key] for key in keys), row["labels"], _worth(row)] for row in cells]
    return markdown([*keys, "n", "label value"], lines)


def together_table(rows: list[Row]) -> str:
    """The paper's set on its three models, hard labels."""
    lines = []
    for pool in ("mnist-99", "mnist-70", "mnist-12"):
        alone = chosen(rows, method="assured", pool=pool, track="hard", aim="accuracy", metric="accuracy", labels=400.0)
        both = chosen(rows, method="assured", pool=pool, track="hard", metric="accuracy + per_class", labels=400.0)
        if alone and both:
            lines.append([pool, _worth(alone[0]), _worth(both[0])])
    return markdown(["model under test", "accuracy alone, n = 400", "21 metrics together, n = 400"], lines)


def others_table(rows: list[Row]) -> str:
    """The paper's method and BALD beside assured: hard labels, several metrics, n = 400."""
    methods = ("assured", "altmas", "bald", "tradition")
    lines = []
    at_end = chosen(rows, aim="several", track="hard", labels=400.0)
    for pool in dict.fromkeys(row["pool"] for row in at_end if row["method"] == "altmas"):
        for metric in ("accuracy", "per_class"):
            cells = [chosen(at_end, pool=pool, metric=metric, method=method) for method in methods]
            errors = [f"{cell[0]['rmse']:.4f} ({cell[0]['bias']:+.4f})" if cell else "–" for cell in cells]
            lines.append([pool, metric, *errors])
    return markdown(["pool", "metric", *(f"`{method}`" for method in methods)], lines)


def held_out_table(rows: list[Row]) -> str:
    """Pools on which nothing was tuned: label value and coverage."""
    sizes = "n = 100", "n = 200", "n = 400"
    head = "pool", "track", "accuracy", *sizes, "limit", "classes, n = 400", "coverage: mean, least"
    lines = []
    cells = chosen(rows, method="assured")
    for pool, track in dict.fromkeys((row["pool"], row["track"]) for row in cells):
        mine = chosen(cells, pool=pool, track=track)
        alone = [chosen(mine, aim="accuracy", metric="accuracy", labels=float(n))[0] for n in BUDGETS]
        classes = chosen(mine, metric="per_class", labels=400.0)[0]
        covered = [row["coverage"] for row in mine if row["metric"] != "accuracy + per_class"]
        covered = [share for share in covered if isinstance(share, float) and not math.isnan(share)]
        coverage = f"{sum(covered) / len(covered):.3f}, {min(covered):.2f}"
        limit = f"{alone[0]['limit']:.2f}"
        lines.append([pool, track, f"{alone[0]['truth']:.4f}", *map(_worth, alone), limit, _worth(classes), coverage])
    return markdown(head, lines)


def design_table(rows: list[Row]) -> str:
    """Label value for accuracy alone by the variance of the design: mean and least of the runs, the last stage's."""
    lines = []
    earlier = chosen(rows_of(EDITIONS), edition=1, aim="accuracy", metric="accuracy")
    first = {(row["pool"], row["track"]): row for row in earlier}
    for pool, track in dict.fromkeys((row["pool"], row["track"]) for row in rows):
        mine = [chosen(rows, pool=pool, track=track, labels=n)[0] for n in BUDGETS]
        worth = (f"{row['label_value']:.2f} ({row['least']:.2f})" for row in mine)
        edition = first.get((pool, track))
        beside = f"{mine[-1]['of_last_stage']:.2f}", f"{edition['label_value']:.2f}" if edition else "–"
        lines.append([pool, track, mine[0]["runs"], *worth, *beside])
    head = ["pool", "track", "runs", *(f"n = {n}" for n in BUDGETS), "last stage alone", "edition 1, by errors"]
    pairs = [(row, first[cell]) for row in chosen(rows, labels=400) if (cell := (row["pool"], row["track"])) in first]
    over = [
        _geometric(now[column] / then["label_value"] for now, then in pairs)
        for column in ("label_value", "of_last_stage")
    ]
    mean = f"Over edition 1, geometric means of {len(pairs)} cells at n = 400: {over[0]:.2f}, of the last stage alone"
    mean += f" {over[1]:.2f}."
    return "\n".join([markdown(head, lines), "", mean])


def _geometric(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def editions_table(rows: list[Row], earlier: list[Row]) -> str:
    """Geometric means of the present edition over earlier ones at n = 400, over the cells that both have."""
    keys = ("pool", "track", "aim", "metric")
    now = {tuple(row[key] for key in keys): row for row in chosen(rows, method="assured", labels=400.0)}
    lines = []
    for edition in dict.fromkeys(row["edition"] for row in earlier):
        for kind, metrics in EDITION_KINDS.items():
            before = [row for row in chosen(earlier, edition=edition) if row["metric"] in metrics]
            pairs = [(now[cell], row) for row in before if (cell := tuple(row[key] for key in keys)) in now]
            ratios = [_ratio(pairs, column) for column in ("label_value", "rmse", "half_width")]
            lines.append([edition, kind, len(pairs), *(f"{ratio:.2f}" for ratio in ratios)])
    return markdown(["edition", "metrics", "cells", "label value", "error", "half-width"], lines)


EDITION_KINDS = {
    "accuracy": ("accuracy",),
    "classes": ("per_class", "macro_f1", "f1[match]"),
    "all": ("accuracy", "per_class", "macro_f1", "f1[match]"),
}


def _ratio(pairs: list[tuple[Row, Row]], column: str) -> float:
    """Geometric mean of now / before, over the pairs that have both numbers."""
    return _geometric(now[column] / row[column] for now, row in pairs if now[column] > 0 and row[column] > 0)


def _worth(row: Row) -> str:
    if row["label_value"] != row["label_value"]:
        return "–"
    return f"{row['label_value']:.2f} [{row['label_value_low']:.2f}, {row['label_value_high']:.2f}]"


def _error(row: Row) -> float:
    """1.64 Monte Carlo standard errors of a coverage of 0.93; class metrics of one run hang together."""
    return 1.64 * math.sqrt(LEAST * (1 - LEAST) / float(row["repeats"]))


TABLES = {
    "accuracy": accuracy_table,
    "several": several_table,
    "coverage": coverage_table,
    "losing": losing_table,
    "together": together_table,
    "others": others_table,
}


def write_page(rows: list[Row]) -> None:
    """The page with its tables made anew."""
    tables = {name: table(rows) for name, table in TABLES.items()}
    apart = {
        "held out": held_out_table(rows_of(HELD_OUT)),
        "design": design_table(rows_of(DESIGNS)),
        "editions": editions_table(rows, rows_of(EDITIONS)),
    }
    rewrite_page(PAGE, tables | apart)


# ---------------------------------------------------------------- figure


def draw(rows: list[Row]) -> None:
    """Label value for accuracy against the learnable limit, and coverage of all cells."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    cells = chosen(rows, method="assured", aim="accuracy", metric="accuracy", labels=400.0)
    names = [f"{row['pool']} ({row['track']})" for row in cells]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 5.5), width_ratios=(3, 2))
    for y, row in enumerate(cells):
        left.plot([row["label_value_low"], row["label_value_high"]], [y, y], color="tab:blue", lw=2)
        left.plot(row["label_value"], y, "o", color="tab:blue", label="assured, 90 % interval" if y == 0 else None)
        left.plot(row["limit"], y, "|", color="black", ms=12, label="learnable limit" if y == 0 else None)
    left.axvline(1, color="grey", lw=1)
    left.set(xscale="log", yticks=range(len(names)), xlabel="random labels that one label is worth (accuracy, n = 400)")
    left.set_yticklabels(names, fontsize=8)
    left.legend(loc="lower right", fontsize=8)
    covered = [row["coverage"] for row in chosen(rows, method="assured") if isinstance(row["coverage"], float)]
    right.hist(covered, bins=[0.85 + 0.01 * step for step in range(16)], color="tab:blue")
    for line in (LEAST, NOMINAL):
        right.axvline(line, color="black", lw=1, ls="--")
    right.set(xlabel="coverage of the 95 % interval", ylabel="cells")
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=130)


if __name__ == "__main__":
    rows = rows_of()
    write_page(rows)
    draw(rows)
