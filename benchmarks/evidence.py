"""The tables and the figure of docs/evidence.md, from the benchmark's CSV: `python -m benchmarks.evidence`.

What stands between `<!-- table: name -->` and `<!-- end -->` on the page is replaced; the words around it are not.
"""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

from benchmarks.label_value import BUDGETS, RESULTS

PAGE = Path(__file__).parent.parent / "docs" / "evidence.md"
FIGURE = RESULTS / "label_value.png"
HELD_OUT = RESULTS / "label_value_held_out.csv"
NOMINAL, LEAST, GIVEN_AWAY = 0.95, 0.93, 0.985
Row = dict[str, Any]


def rows_of(path: Path = RESULTS / "label_value.csv") -> list[Row]:
    """The rows of the benchmark, numbers as numbers."""
    with path.open(encoding="utf-8") as file:
        return [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(file)]


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def chosen(rows: list[Row], **wanted: Any) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


# ---------------------------------------------------------------- tables


def accuracy_table(rows: list[Row]) -> str:
    """Label value for accuracy alone, with the learnable limit."""
    lines = [
        "| pool | track | accuracy | n = 100 | n = 200 | n = 400 | limit | n = 400 / limit |",
        "|---|---|---|" + "---|" * 5,
    ]
    cells = chosen(rows, method="assured", aim="accuracy", metric="accuracy")
    for pool, track in dict.fromkeys((row["pool"], row["track"]) for row in cells):
        mine = [chosen(cells, pool=pool, track=track, labels=float(n))[0] for n in BUDGETS]
        worth = " | ".join(_worth(row) for row in mine)
        last = mine[-1]
        lines.append(
            f"| {pool} | {track} | {last['truth']:.4f} | {worth} | {last['limit']:.2f} | {last['of_limit']:.2f} |"
        )
    final = [row for row in cells if row["labels"] == BUDGETS[-1]]
    mean = f"Geometric mean of value / limit at n = 400: **{_mean_ratio(final):.2f}** over all {len(final)} cells."
    return "\n".join([*lines, "", mean])


def _mean_ratio(cells: list[Row]) -> float:
    return math.exp(sum(math.log(row["of_limit"]) for row in cells) / len(cells))


def several_table(rows: list[Row]) -> str:
    """Label value when several metrics are asked for together, at n = 100 and 400."""
    lines = [
        "| pool | track | metric | n = 100 | n = 400 | RMSE at 400 | half-width at 400 |",
        "|---|---|---|---|---|---|---|",
    ]
    cells = [row for row in chosen(rows, method="assured", aim="several") if row["metric"] != "accuracy + per_class"]
    for key in dict.fromkeys((row["pool"], row["track"], row["metric"]) for row in cells):
        first, last = (
            chosen(cells, pool=key[0], track=key[1], metric=key[2], labels=float(n))[0]
            for n in (BUDGETS[0], BUDGETS[-1])
        )
        width = "–" if last["half_width"] != last["half_width"] else f"{last['half_width']:.4f}"
        lines.append(f"| {' | '.join(key)} | {_worth(first)} | {_worth(last)} | {last['rmse']:.4f} | {width} |")
    return "\n".join(lines)


def coverage_table(rows: list[Row]) -> str:
    """How many cells cover how well."""
    cells = [row for row in chosen(rows, method="assured") if isinstance(row["coverage"], float)]
    cells = [row for row in cells if row["metric"] != "accuracy + per_class"]
    low = [row for row in cells if row["coverage"] < LEAST - _error(row)]
    high = [row for row in cells if row["coverage"] > GIVEN_AWAY]
    mean = sum(row["coverage"] for row in cells) / len(cells)
    lines = [
        f"{len(cells)} cells (pool x track x aim x metric x n); mean coverage {mean:.3f}; {len(low)} below 0.93 by "
        f"more than 1.64 Monte Carlo standard errors; {len(high)} above 0.985.",
        "",
        "| below 0.93 | n | coverage | worst class | bias / RMSE | runs |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(low, key=lambda one: one["coverage"]):
        name = f"{row['pool']}, {row['track']}, {row['metric']} ({row['aim']})"
        worst = f"{row['coverage_worst']:.2f} {row['worst_metric']}" if row["metric"] == "per_class" else ""
        lines.append(
            f"| {name} | {row['labels']:.0f} | {row['coverage']:.3f} | {worst} | {row['bias'] / row['rmse']:+.2f} "
            f"| {row['repeats']:.0f} |"
        )
    return "\n".join(lines)


def losing_table(rows: list[Row]) -> str:
    """Cells whose label value lies below 1 beyond noise."""
    cells = [row for row in chosen(rows, method="assured") if row["label_value_high"] < 1]
    if not cells:
        return "None: the upper end of the 90 % interval of the label value is at least 1 in every cell."
    lines = ["| pool | track | aim | metric | n | label value |", "|---|---|---|---|---|---|"]
    keys = ("pool", "track", "aim", "metric")
    return "\n".join(
        lines + [f"| {' | '.join(row[key] for key in keys)} | {row['labels']:.0f} | {_worth(row)} |" for row in cells]
    )


def together_table(rows: list[Row]) -> str:
    """The paper's set on its three models, hard labels."""
    lines = ["| model under test | accuracy alone, n = 400 | 21 metrics together, n = 400 |", "|---|---|---|"]
    for pool in ("mnist-99", "mnist-70", "mnist-12"):
        alone = chosen(rows, method="assured", pool=pool, track="hard", aim="accuracy", metric="accuracy", labels=400.0)
        both = chosen(rows, method="assured", pool=pool, track="hard", metric="accuracy + per_class", labels=400.0)
        if alone and both:
            lines.append(f"| {pool} | {_worth(alone[0])} | {_worth(both[0])} |")
    return "\n".join(lines)


def others_table(rows: list[Row]) -> str:
    """The paper's method and BALD beside assured: hard labels, several metrics, n = 400."""
    methods = ("assured", "altmas", "bald", "tradition")
    lines = [f"| pool | metric | {' | '.join(f'`{method}`' for method in methods)} |", "|---|---|---|---|---|---|"]
    at_end = chosen(rows, aim="several", track="hard", labels=400.0)
    for pool in dict.fromkeys(row["pool"] for row in at_end if row["method"] == "altmas"):
        for metric in ("accuracy", "per_class"):
            cells = [chosen(at_end, pool=pool, metric=metric, method=method) for method in methods]
            errors = [f"{one[0]['rmse']:.4f} ({one[0]['bias']:+.4f})" if one else "–" for one in cells]
            lines.append(f"| {pool} | {metric} | {' | '.join(errors)} |")
    return "\n".join(lines)


def held_out_table(rows: list[Row]) -> str:
    """Pools on which nothing was tuned: label value and coverage."""
    lines = [
        "| pool | track | accuracy | n = 100 | n = 200 | n = 400 | limit | classes, n = 400 | coverage: mean, least |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    cells = chosen(rows, method="assured")
    for pool, track in dict.fromkeys((row["pool"], row["track"]) for row in cells):
        mine = chosen(cells, pool=pool, track=track)
        alone = [chosen(mine, aim="accuracy", metric="accuracy", labels=float(n))[0] for n in BUDGETS]
        classes = chosen(mine, metric="per_class", labels=400.0)[0]
        covered = [row["coverage"] for row in mine if row["metric"] != "accuracy + per_class"]
        covered = [one for one in covered if isinstance(one, float) and not math.isnan(one)]
        lines.append(
            f"| {pool} | {track} | {alone[0]['truth']:.4f} | {' | '.join(_worth(row) for row in alone)} "
            f"| {alone[0]['limit']:.2f} | {_worth(classes)} | {sum(covered) / len(covered):.3f}, {min(covered):.2f} |"
        )
    return "\n".join(lines)


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
    text = PAGE.read_text(encoding="utf-8")
    tables = {name: table(rows) for name, table in TABLES.items()} | {"held out": held_out_table(rows_of(HELD_OUT))}
    for name, table in tables.items():
        block = f"<!-- table: {name} -->\n{table}\n<!-- end -->"
        text = re.sub(rf"<!-- table: {name} -->.*?<!-- end -->", lambda _, b=block: b, text, flags=re.DOTALL)  # type: ignore[misc]
    PAGE.write_text(text, encoding="utf-8")


# ---------------------------------------------------------------- figure


def draw(rows: list[Row]) -> None:
    """Label value for accuracy against the learnable limit, and coverage of all cells."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    cells = chosen(rows, method="assured", aim="accuracy", metric="accuracy", labels=400.0)
    names = [f"{row['pool']} ({row['track']})" for row in cells]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 5.5), width_ratios=(3, 2))
    for place, row in enumerate(cells):
        left.plot([row["label_value_low"], row["label_value_high"]], [place, place], color="tab:blue", lw=2)
        left.plot(
            row["label_value"], place, "o", color="tab:blue", label="assured, 90 % interval" if place == 0 else None
        )
        left.plot(row["limit"], place, "|", color="black", ms=12, label="learnable limit" if place == 0 else None)
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
    found = rows_of()
    write_page(found)
    draw(found)
