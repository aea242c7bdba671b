"""What the leaderboard's runs say: its CSV, its figure and the tables of docs/leaderboard.md.

What stands between `<!-- table: name -->` and `<!-- end -->` on the page is replaced; the words around it are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from altmas.methods import METHODS, method_named
from altmas.metrics import truth_values
from altmas.simulate import Row, Simulation, label_value
from benchmarks import judges, ranking
from benchmarks import label_value as lending
from benchmarks.label_value import BUDGETS, TRACKS
from benchmarks.leaderboard import (
    BATCH,
    BLIND,
    EVERY,
    LENT,
    SCORELESS,
    STEP,
    Cell,
    asks,
    can,
    known,
    pool_in,
    rows_of,
)
from benchmarks.store import BEFORE, RESULTS, read_csv, read_numbers, version_of, write_csv
from benchmarks.tables import DOCS, markdown, rewrite_page

Array = NDArray[Any]

PAGE: Final = DOCS / "leaderboard.md"
FIGURE: Final = RESULTS / "leaderboard.png"
TABLE: Final = RESULTS / "leaderboard.csv"
BEST: Final = RESULTS / "leaderboard_best.csv"
REFERENCE: Final = RESULTS / "reference.csv"
OWN: Final = "assured"
LEAST_RUNS: Final = 10
"""Runs that a method needs to be called the best: half of them choose it, the other half measure it."""
DEFINED: Final = 0.9
"""Share of its runs in which an estimate has to be defined for the same."""
BEHIND: Final = 0.9
KEY: Final = ("pool", "track", "metric", "method")
BEST_KEY: Final = ("pool", "track", "metric", "among")
OF_RUNS: Final = ("labels", "repeats", "undefined", "truth", "bias", "rmse", "coverage", "width")
WORTH: Final = ("label_value", "label_value_low", "label_value_high")
MOST: Final = 100
"""Label values beyond count as this many in means: a method that is all but exact somewhere would rule them."""


# ---------------------------------------------------------------- runs


def cell_of(pool: str, track: str, metric: str, method: str) -> Cell:
    """The cell whose runs answer for a metric: those on hard labels where the method looks at no scores."""
    ask = next(ask for ask, metrics in asks(known(pool)).items() if metric in metrics)
    return Cell(pool, TRACKS[0] if method in SCORELESS else track, EVERY if method in BLIND else ask, method)


@cache
def runs_of(cell: Cell) -> dict[str, list[Row]]:
    """{metric: rows} of a cell's finished runs."""
    by_metric: dict[str, list[Row]] = {}
    for row in lent_rows(cell) if (cell.method, cell.ask) in LENT else rows_of(cell):
        by_metric.setdefault(row["metric"], []).append(row)
    return by_metric


def lent_rows(cell: Cell) -> list[Row]:
    """The rows of the label-value benchmark's runs for an ask, whose metrics are among those of the aim there."""
    aim = LENT[cell.method, cell.ask]
    pool, names = pool_in(cell.pool, cell.track), asks(known(cell.pool))[cell.ask]
    metrics = lending.metrics_of(cell.pool, pool, aim)
    truth = truth_values(pool, known(cell.pool).truth, metrics)
    columns = [column for column, metric in enumerate(metrics) if metric.name in names]
    rows = []
    for run in lending.Cell(cell.pool, cell.track, aim, cell.method).runs.read():
        for labels in BUDGETS:
            for column in columns:
                name = metrics[column].name
                value, low, high, worth = (math.nan if x is None else x for x in run[str(labels)][column])
                key = {"method": cell.method, "metric": name, "labels": labels, "repeat": run["repeat"]}
                row = {"value": value, "low": low, "high": high, "effective_labels": worth}
                rows.append(key | row | {"truth": truth[name], "seconds": run["seconds"]})
    return rows


def tracks_of(pool: str) -> tuple[str, ...]:
    return TRACKS if known(pool).scores is not None else TRACKS[:1]


def places(names: list[str]) -> list[tuple[str, str, str]]:
    """Every (pool, track, metric) of the leaderboard."""
    return [
        (name, track, metric)
        for name in names
        for track in tracks_of(name)
        for metrics in asks(known(name)).values()
        for metric in metrics
    ]


# ---------------------------------------------------------------- the table


def summary(names: list[str], before: list[Row] | None = None) -> list[Row]:
    """One row for each pool, track, metric, method and number of labels; one without numbers where it cannot or was
    not run.

    before  rows of an earlier table, which stay where there are no runs here, with the version that they are of, or
            fewer runs of the same version
    """
    rows: list[Row] = []
    kept: dict[tuple[str, ...], list[Row]] = {}
    for row in before or []:
        kept.setdefault(tuple(row[name] for name in KEY), []).append(row)
    for pool, track, metric in places(names):
        random = runs_of(cell_of(pool, track, metric, "tradition")).get(metric, [])
        for method in METHODS:
            cell = cell_of(pool, track, metric, method)
            key = {"pool": pool, "track": track, "metric": metric, "method": method}
            able, reason = can(cell)
            mine = runs_of(cell).get(metric, [])
            earlier = kept.get((pool, track, metric, method), [])
            if metric not in able:
                rows.append(key | {"status": f"cannot: {reason}"})
            elif not mine or any(_rests_on_more(row, version_of(method), mine) for row in earlier):
                rows += earlier or [key | {"status": "not run"}]
            else:
                made = key | {"version": version_of(method), "status": "run"}
                summed = Simulation([*random, *mine] if method != "tradition" else mine).summary()
                rows += [made | _numbers(row, summed) for row in summed if row["method"] == method]
    return rows


def _rests_on_more(earlier: Row, version: str, runs: list[Row]) -> bool:
    """Whether a row of an earlier table is of this version and of more runs than these."""
    return bool(earlier["version"] == version and earlier["repeats"] > len({run["repeat"] for run in runs}))


def committed_rows() -> list[Row]:
    """The rows of the committed table; numbers that are missing are nan."""
    rows = read_numbers(TABLE)
    return [
        {name: math.nan if value is None and name in (*OF_RUNS, *WORTH) else value for name, value in row.items()}
        for row in rows
        if row["status"] == "run"
    ]


def _numbers(mine: Row, summed: list[Row]) -> Row:
    """The columns of a summary row, rounded. No label value where random sampling is undefined in most of its runs."""
    random = [row for row in summed if row["method"] == "tradition" and row["labels"] == mine["labels"]]
    judged = random and random[0]["undefined"] <= random[0]["repeats"] / 2
    numbers = {name: mine[name] for name in OF_RUNS} | {name: mine[name] if judged else math.nan for name in WORTH}
    numbers["seconds"] = mine["seconds"]
    return {name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in numbers.items()}


# ---------------------------------------------------------------- the best, and how far assured is from it


@dataclass(frozen=True)
class Comparison:
    """The best other method at a place, and assured against it: mean squared error of the best over that of assured.

    Below 1 assured is behind. The interval is at 90 %.
    """

    best: str
    runs: int
    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"`{self.best}` {self.ratio:.2f} [{self.low:.2f}, {self.high:.2f}]"


def compared(squared: dict[str, Array], own: str = OWN, least: int = LEAST_RUNS) -> Comparison | None:
    """The best of the others and the ratio to it; None without enough runs.

    squared  {method: (repeats,) squared errors, nan where undefined}

    The least of many noisy errors is too small by chance. So the even runs choose the best method and the odd ones
    measure it.
    """
    able = {
        name: values
        for name, values in squared.items()
        if name != own and len(values) >= least and np.isfinite(values).mean() >= DEFINED
    }
    mine = squared.get(own, np.zeros(0))
    mine = mine[np.isfinite(mine)]
    if not able or len(mine) < least:
        return None
    best = min(able, key=lambda name: float(np.nanmean(able[name][0::2])))
    measured = able[best][1::2]
    measured = measured[np.isfinite(measured)]
    exact = (0.0, 0.0, 0.0)  # it labels whatever the metric hangs on, in every run
    return Comparison(best, len(able[best]), *(label_value(mine, measured) if measured.any() else exact))


def squared_errors(pool: str, track: str, metric: str, labels: int) -> dict[str, Array]:
    """{method: squared errors in the order of the repeats, nan where undefined}."""
    by_method = {}
    for method in METHODS:
        rows = [r for r in runs_of(cell_of(pool, track, metric, method)).get(metric, []) if r["labels"] == labels]
        if rows:
            ordered = sorted(rows, key=lambda row: int(row["repeat"]))
            by_method[method] = np.array([row["value"] - row["truth"] for row in ordered], np.float64) ** 2
    return by_method


def with_interval(squared: dict[str, Array]) -> dict[str, Array]:
    """The squared errors of the methods that give an interval."""
    return {name: values for name, values in squared.items() if method_named(name).traits.interval != "none"}


# ---------------------------------------------------------------- tables of the page


def best_rows(names: list[str], rows: list[Row]) -> list[Row]:
    """The comparison at each place, among all methods and among those with an interval.

    rows  the table of the leaderboard. Where a method that it has at a place was not run here, the committed comparison
          stays: the best of some methods would not be the best.
    """
    ran: dict[tuple[str, str, str], set[str]] = {}
    for row in rows:
        if row["status"] == "run":
            ran.setdefault((row["pool"], row["track"], row["metric"]), set()).add(row["method"])
    kept = {tuple(row[name] for name in BEST_KEY): row for row in read_numbers(BEST)}
    found = []
    for place in places(names):
        squared = squared_errors(*place, BUDGETS[-1])
        for among, able in (("all", squared), ("interval", with_interval(squared))):
            key = dict(zip(BEST_KEY, (*place, among), strict=True))
            if ran.get(place, set()) <= squared.keys():
                comparison = compared(able)
                found += [key | asdict(comparison)] if comparison is not None else []
            elif tuple(key.values()) in kept:
                found.append(kept[tuple(key.values())])
    return found


def best_table(names: list[str], _rows: list[Row]) -> str:
    """The best method of each place at the last number of labels, of all and of those with an interval."""
    found = {
        tuple(row[name] for name in BEST_KEY): Comparison(*(row[one.name] for one in fields(Comparison)))
        for row in read_numbers(BEST)
    }
    lines = [[*key, *(_shown(found.get((*key, among))) for among in ("all", "interval"))] for key in places(names)]
    table = markdown(["pool", "track", "metric", "best of all: ratio", "best with an interval: ratio"], lines)
    ratios = [comparison.ratio for key, comparison in found.items() if key[-1] == "interval"]
    if ratios:
        mean = _geometric([min(max(ratio, 1 / MOST), MOST) for ratio in ratios])
        exact, ahead = sum(ratio < 1 / MOST for ratio in ratios), sum(ratio >= 1 for ratio in ratios)
        table += (
            f"\n\nGeometric mean of `{OWN}` to the best other method with an interval: {mean:.2f} over {len(ratios)} "
            f"places, where ratios below 1/{MOST} count as 1/{MOST} ({exact} places: the other is all but exact) and "
            f"those above {MOST} as {MOST}. {ahead} ratios are at least 1 and "
            f"{sum(ratio < BEHIND for ratio in ratios)} below {BEHIND}."
        )
    return table


def _shown(comparison: Comparison | None) -> str:
    if comparison is None:
        return "–"
    mark = " **behind**" if comparison.high < BEHIND else " behind?" if comparison.ratio < BEHIND else ""
    return f"{comparison}{mark}"


def methods_table(names: list[str], rows: list[Row]) -> str:
    """Each method over all pools at the last number of labels."""
    accuracies = [f"accuracy, {track}" for track in TRACKS]
    head = ["method", "version", "runs", "batch", *accuracies]
    head += ["other metrics", "worst", "coverage: mean, least", "seconds"]
    lines = []
    last = [row for row in rows if row["status"] == "run" and row["labels"] == BUDGETS[-1]]
    for method in METHODS:
        mine = [row for row in last if row["method"] == method]
        if not mine:
            continue
        runs = sorted({row["repeats"] for row in mine})
        accuracy = {track: [r for r in mine if r["track"] == track and r["metric"] == "accuracy"] for track in TRACKS}
        others = [row for row in mine if row["metric"] != "accuracy"]
        judged = [row for row in mine if math.isfinite(row["label_value"])]
        worst = min(judged, key=lambda row: float(row["label_value"]), default=None)
        covered = [row["coverage"] for row in mine if math.isfinite(row["coverage"])]
        cover = f"{np.mean(covered):.3f}, {min(covered):.2f}" if covered else "no interval"
        at = f"{worst['label_value']:.2f} ({worst['pool']}, {worst['metric']})" if worst else "–"
        worth = [_mean_worth(rows) for rows in (*accuracy.values(), others)]
        seconds = f"{np.median([row['seconds'] for row in mine]):.2g}"
        versions = " / ".join(sorted({str(row.get("version") or BEFORE) for row in mine}))
        lines.append([f"`{method}`", versions, _span(runs), BATCH.get(method, STEP), *worth, at, cover, seconds])
    return markdown(head, lines)


def _span(values: list[int]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]}–{values[-1]}"


def _mean_worth(rows: list[Row]) -> str:
    """Geometric mean of the label values, each at most MOST, and over how many places, which differs by method."""
    values = [min(row["label_value"], MOST) for row in rows if row["label_value"] > 0]
    return f"{_geometric(values):.2f} ({len(values)})" if values else "–"


def coverage_table(names: list[str], rows: list[Row]) -> str:
    """Where a 95 % interval covers less than 0.9 beyond what the number of runs explains."""
    lines = []
    judged = [row for row in rows if row["status"] == "run" and row["repeats"] >= LEAST_RUNS]
    low = [row for row in judged if row["coverage"] < 0.9 - 1.64 * _error(row["repeats"])]
    for row in sorted(low, key=lambda cell: (list(METHODS).index(cell["method"]), cell["coverage"])):
        where = row["pool"], row["track"], row["metric"], row["labels"]
        figures = f"{row['coverage']:.2f}", f"{row['bias'] / row['rmse']:+.2f}", row["repeats"]
        lines.append([f"`{row['method']}`", *where, *figures])
    head = "method", "pool", "track", "metric", "n", "coverage", "bias / RMSE", "runs"
    return markdown(head, lines) if low else "None."


def _error(repeats: int) -> float:
    return math.sqrt(0.9 * 0.1 / max(repeats, 1))


def cannot_table(names: list[str], rows: list[Row]) -> str:
    """Who cannot work where, by its declared needs."""
    by_reason: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        if row["status"].startswith("cannot"):
            by_reason.setdefault((row["method"], row["status"]), set()).add(f"{row['pool']} ({row['track']})")
    lines = []
    for (method, why), where in by_reason.items():
        shown = ", ".join(sorted(where)) if len(where) <= 4 else f"{len(where)} pools and tracks"
        lines.append([f"`{method}`", why.removeprefix("cannot: "), shown])
    return markdown(["method", "why", "where"], lines)


def reference_table(names: list[str], rows: list[Row]) -> str:
    """Other packages beside ours, as `python -m benchmarks.reference` wrote them down."""
    difference = "largest difference, or both values"
    head = "package", "what", "same method", difference, "ours, s", "theirs, s", "theirs / ours"
    lines = []
    for row in read_csv(REFERENCE):
        same = "yes" if row["same method"] == "True" else "no"
        apart = row["largest difference"] if same == "yes" else f"{row['ours']} / {row['theirs']}"
        seconds = row["our seconds"], row["their seconds"], row["theirs / ours"]
        lines.append([f"{row['package']} {row['version']}", row["what"], same, apart, *seconds])
    return markdown(head, lines)


def models_table(names: list[str], rows: list[Row]) -> str:
    """The track of several models, from what `python -m benchmarks.ranking` wrote down: means over its pools."""
    found = read_numbers(RESULTS / "ranking.csv")
    lines = []
    for way in ranking.CHOOSERS:
        mine = [row for row in found if row["way"] == way]
        by_labels = {labels: [row for row in mine if row["labels"] == labels] for labels in ranking.LABELS}
        near = [f"{_mean(rows, 'within_1_point'):.2f}" for rows in by_labels.values()]
        last = by_labels[ranking.LABELS[-1]]
        lost = f"{100 * _mean(last, 'regret'):.2f}"
        versions = " / ".join(sorted({str(row.get("version") or BEFORE) for row in mine}))
        runs = _span(sorted({row["runs"] for row in mine}))
        lines.append([f"`{way}`", versions, runs, *near, lost, f"{np.median([row['seconds'] for row in mine]):.2g}"])
    near_best = [f"{labels} labels" for labels in ranking.LABELS]
    head = ["way", "version", "runs", *near_best, f"points lost at {ranking.LABELS[-1]}", "seconds"]
    return markdown(head, lines)


def judges_table(names: list[str], rows: list[Row]) -> str:
    """The track of judges, from what `python -m benchmarks.judges` wrote down: over its pools and metrics."""
    last = [row for row in read_numbers(RESULTS / "judges.csv") if row["labels"] == judges.BUDGETS[-1]]
    random = {(row["pool"], row["metric"]): row["width"] for row in last if row["method"] == "random"}
    lines = []
    for method in ("assured", "random", *judges.RIVALS):
        mine = [row for row in last if row["method"] == method and row["width"] is not None]
        width = _geometric([row["width"] / random[row["pool"], row["metric"]] for row in mine])
        worth = _geometric([row["value_by_errors"] for row in mine])
        covered = [row["coverage"] for row in mine]
        cover = f"{np.mean(covered):.3f}, {min(covered):.2f}"
        versions = " / ".join(sorted({str(row.get("version") or "–") for row in mine}))
        runs = _span(sorted({row["runs"] for row in mine}))
        lines.append([f"`{method}`", versions, runs, len(mine), f"{worth:.2f}", f"{width:.2f}", cover])
    worth_head, width_head = f"label value at {judges.BUDGETS[-1]}", "width over that of random"
    return markdown(["method", "version", "runs", "places", worth_head, width_head, "coverage: mean, least"], lines)


def _mean(rows: list[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def _geometric(values: list[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))


TABLES: Final[dict[str, Callable[[list[str], list[Row]], str]]] = {
    "best": best_table,
    "methods": methods_table,
    "coverage": coverage_table,
    "cannot": cannot_table,
    "models": models_table,
    "judges": judges_table,
    "reference": reference_table,
}


def rewrite(names: list[str]) -> None:
    """CSV, figure and page from the runs that there are."""
    runs_of.cache_clear()
    rows = summary(names, committed_rows())
    write_csv(TABLE, rows)
    write_csv(BEST, best_rows(names, rows))
    draw(names, rows)
    rewrite_page(PAGE, {name: table(names, rows) for name, table in TABLES.items()})


# ---------------------------------------------------------------- figure


def draw(names: list[str], rows: list[Row]) -> None:
    """Label value at the last number of labels, method x pool, for accuracy and for the second metric, both tracks."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = [(track, second) for second in (False, True) for track in TRACKS]
    columns = [[name for name in names if track in tracks_of(name)] for track, _ in panels]
    widths = [len(columns[0]), len(columns[1])]
    figure, axes = pyplot.subplots(2, 2, figsize=(17, 15), width_ratios=widths, layout="constrained")
    for axis, (track, second), pools in zip(axes.flat, panels, columns, strict=True):
        metric_of = {pool: second_metric(pool) if second else "accuracy" for pool in pools}
        chosen = [r for r in rows if r["track"] == track and metric_of.get(r["pool"]) == r["metric"]]
        cells = {(r["method"], r["pool"]): r for r in chosen if r.get("labels", BUDGETS[-1]) == BUDGETS[-1]}
        image = _panel(axis, cells, pools)
        what = "F1 of the rare class or macro F1" if second else "accuracy"
        axis.set_title(f"{what}, {'hard labels only' if track == 'hard' else 'with scores'}", fontsize=12)
    bar = figure.colorbar(image, ax=axes, shrink=0.4, ticks=[-3, -2, -1, 0, 1, 2, 3])
    bar.ax.set_yticklabels(["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    bar.set_label(f"random labels that one label is worth, n = {BUDGETS[-1]} (grey: cannot; white: no value)")
    figure.savefig(FIGURE, dpi=90)
    pyplot.close(figure)


def second_metric(pool: str) -> str:
    """The metric of the figure's lower half: macro F1, or the F1 of the rare class."""
    by_ask = asks(known(pool))
    return by_ask["average"][0] if "average" in by_ask else by_ask["class"][0] if "class" in by_ask else ""


def _panel(axis: Any, cells: dict[tuple[str, str], Row], pools: list[str]) -> Any:
    from matplotlib.patches import Rectangle

    values = np.full((len(METHODS), len(pools)), np.nan)
    for i, method in enumerate(METHODS):
        for j, pool in enumerate(pools):
            row = cells.get((method, pool))
            if row is None or row["status"] != "run":
                able = row is not None and row["status"] == "not run"
                axis.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, color="white" if able or row is None else "0.8"))
                continue
            worth = row["label_value"]
            if math.isfinite(worth) and worth > 0:
                values[i, j] = np.log2(worth)
                ink = "white" if abs(values[i, j]) > 2 else "black"
                axis.text(j, i, f"{worth:.2g}", ha="center", va="center", fontsize=8, color=ink)
            elif math.isfinite(row["rmse"]):
                axis.text(j, i, f"±{row['rmse']:.2g}", ha="center", va="center", fontsize=7, color="0.3")
    image = axis.imshow(values, cmap="PuOr", vmin=-3, vmax=3, aspect="auto")
    axis.set_xticks(range(len(pools)), pools, rotation=45, ha="right", fontsize=9)
    axis.set_yticks(range(len(METHODS)), METHODS, fontsize=9)
    return image
