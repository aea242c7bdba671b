"""Monitoring on real data in time: coverage of level and change, false alarms, labels until a drop is found.

python -m benchmarks.monitoring run --runs 100     # waves and drops; goes on where it was stopped; needs ALTMAS_DATA
python -m benchmarks.monitoring cbpe               # NannyML's CBPE on the same data; needs the package nannyml
python -m benchmarks.monitoring table              # CSV files, tables and figure of docs/monitoring.md

waves   each period is a wave of `ITEMS` random items with `LABELS` labels: time-elec (27 periods of four weeks), as it
        came and shuffled in time (`quiet`: no change but by chance), and employment-ma by year. One look, when all
        waves have their labels: an alarm that was raised at any earlier look is still raised then.
drops   whole periods of time-elec that are worse than the one before by `DROP` or more. The earlier one has `BEFORE`
        labels; how many of the later one it takes until the alarm, with a look after every `LOOK` labels.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

import altmas
from altmas.guarantee import Stage
from altmas.guarantee_pair import Game, shown_apart
from altmas.guaranteed import FIRST_BELIEF
from altmas.intervals import normal_quantile
from altmas.monitoring import error_against
from altmas.ratios import OPEN, table_ratio
from altmas.session import Session
from altmas.types import Array
from benchmarks.data import data_folder, read_npz
from benchmarks.store import RESULTS, RUNS, Row, Runs, keep_csv, read_numbers
from benchmarks.tables import DOCS, markdown, rewrite_page

PERIODS: Final = {"time-elec": "period", "employment-ma": "year"}
CELLS: Final = (("employment-ma", "time"), ("time-elec", "time"), ("time-elec", "quiet"))
ITEMS, LABELS = 300, 50
BEFORE, LOOK, DROP = 400, 25, 0.09
REFERENCE: Final = {"time-elec": 4, "employment-ma": 1}
"""Periods whose labels CBPE is fitted on, all of them."""
WAVES, DROPS = RUNS / "monitoring_waves.jsonl", RUNS / "monitoring_drops.jsonl"
NAMES: Final = np.array(["no", "yes"])


@functools.cache
def data_of(name: str) -> dict[str, np.ndarray]:
    """The arrays of a pool, with `right` (N,), whether the model is."""
    file = (data_folder() or Path("ALTMAS_DATA")) / name / "pool.npz"
    data = read_npz(file, "set ALTMAS_DATA to the folder that holds it", "a", "y", "scores", PERIODS[name])
    return data | {"right": (data["a"] == data["y"]).astype(np.float64), "period": data[PERIODS[name]]}


def periods_of(name: str, order: str = "time", seed: int = 0) -> list[Array]:
    """The rows of each period; of all periods alike for `quiet`."""
    period = data_of(name)["period"]
    if order == "quiet":
        period = np.random.default_rng([seed, 30]).permutation(period)
    return [np.flatnonzero(period == number) for number in np.unique(period)]


def pool_of(name: str, rows: Array) -> altmas.Pool:
    """Items with predictions and scores."""
    data = data_of(name)
    ids = [f"{row}" for row in rows]
    return altmas.Pool(None, NAMES[data["a"][rows]], scores=data["scores"][rows], classes=list(NAMES), ids=ids)


def label(session: Session, name: str, n: int) -> None:
    """Tell the next n labels."""
    truth = data_of(name)["y"]
    for query in session.ask(n):
        session.tell(query.id, str(NAMES[truth[int(query.id)]]))


# ---------------------------------------------------------------- waves


def waves_run(name: str, order: str, seed: int) -> Row:
    """Level, change and alarm of each wave, when all have their labels."""
    rng, right = np.random.default_rng([seed, 31]), data_of(name)["right"]
    waves = [rng.choice(rows, ITEMS, replace=False) for rows in periods_of(name, order, seed)]
    started = time.process_time()
    session = Session.create(None, pool_of(name, waves[0]), seed=seed, budget=LABELS)
    label(session, name, LABELS)
    for number, rows in enumerate(waves[1:], start=1):
        first = "0" if number == 1 else None
        total = (number + 1) * LABELS
        session.extend(pool_of(name, rows), wave=str(number), first_wave=first, budget=total, wave_budget=LABELS)
        label(session, name, LABELS)
    true = [float(right[rows].mean()) for rows in waves]
    levels = []
    for number, level in enumerate(session.monitor()):
        interval = {"true": true[number], "value": level.value, "low": level.low, "high": level.high}
        change = {"change": level.change, "change_low": level.change_low, "change_high": level.change_high}
        before = true[number - 1] if number else math.nan
        levels.append(interval | change | {"change_true": true[number] - before, "alarm": level.answer == "drop"})
    return {"pool": name, "order": order, "seed": seed, "seconds": time.process_time() - started, "waves": levels}


def wave_rows() -> list[Row]:
    """One row for each pool, order and wave."""
    by_wave: dict[tuple[str, str, int], list[Row]] = {}
    for run in Runs(WAVES).read():
        for number, wave in enumerate(run["waves"]):
            by_wave.setdefault((run["pool"], run["order"], number), []).append(wave | {"seed": run["seed"]})
    return [_wave_row(*key, rows) for key, rows in sorted(by_wave.items())]


def _wave_row(pool: str, order: str, wave: int, rows: list[Row]) -> Row:
    def covered(low: str, true: str, high: str) -> float:
        return float(np.mean([row[low] <= row[true] <= row[high] for row in rows]))

    mean = {name: float(np.mean([row[name] for row in rows])) for name in ("true", "value")}
    row = {"level_covered": covered("low", "true", "high")}
    row["level_width"] = float(np.mean([row["high"] - row["low"] for row in rows]))
    if wave:
        row["change_covered"] = covered("change_low", "change_true", "change_high")
        row["change_width"] = float(np.mean([row["change_high"] - row["change_low"] for row in rows]))
    alarms = sum(row["alarm"] for row in rows)
    return {"pool": pool, "order": order, "wave": wave, "runs": len(rows)} | mean | row | {"alarms": alarms}


# ---------------------------------------------------------------- drops


def drops_of(name: str = "time-elec") -> list[int]:
    """Periods that are worse than the one before by DROP or more."""
    right = data_of(name)["right"]
    levels = [float(right[rows].mean()) for rows in periods_of(name)]
    return [period for period in range(1, len(levels)) if levels[period - 1] - levels[period] >= DROP]


def labels_of_session(before: Array, after: Array, seed: int, upto: int) -> int | None:
    """Labels of the later period until the alarm of a session; None if there is none."""
    name = "time-elec"
    session = Session.create(None, pool_of(name, before), seed=seed, budget=BEFORE)
    label(session, name, BEFORE)
    session.extend(pool_of(name, after), wave="1", first_wave="0", budget=BEFORE + upto, wave_budget=upto)
    for labels in range(LOOK, upto + 1, LOOK):
        label(session, name, LOOK)
        if labels >= 2 * LOOK and session.monitor().answer == "drop":
            return labels
    return None


def labels_of_random(before: Array, after: Array, seed: int, upto: int) -> int | None:
    """The same alarm from a random sample of each period, without a belief."""
    right, rng = data_of("time-elec")["right"], np.random.default_rng([seed, 32])
    first, second = (_random_game(right[rows], rng.permutation(len(rows))) for rows in (before, after))
    error = error_against(0.05, 2, 1)
    for labels in range(LOOK, upto + 1, LOOK):
        games = first(BEFORE, 0), second(labels, 1)
        if labels >= 2 * LOOK and shown_apart(*games, margin=0.0, error=error, budget=BEFORE):
            return labels
    return None


def _random_game(right: Array, order: Array) -> Callable[[int, int], Game]:
    size, outcome = len(right), right.astype(np.int64)
    ratio = table_ratio(np.array([[0.0, 1.0]]), np.ones((1, 2)), np.zeros(size, np.int64))
    belief = ratio.belief(np.tile([1 - FIRST_BELIEF, FIRST_BELIEF], (size, 1)))

    def game(labels: int, number: int) -> Game:
        drawn = order[:labels]
        outcomes = ratio.outcomes(outcome)[drawn]
        return Game(ratio.ratio, [Stage(np.full(size, OPEN), np.ones(size), belief, drawn, outcomes)], (number,))

    return game


def labels_of_test(before: Array, after: Array, seed: int, upto: int) -> int | None:
    """A test of two shares at 5 %, one-sided, at every look as if it were the only one; random samples as above."""
    right, rng = data_of("time-elec")["right"], np.random.default_rng([seed, 32])
    first = right[before][rng.permutation(len(before))[:BEFORE]]
    later = right[after][rng.permutation(len(after))]
    for labels in range(2 * LOOK, upto + 1, LOOK):
        second = later[:labels]
        parts = [float(sample.var()) / len(sample) for sample in (first, second)]
        if first.mean() - second.mean() > normal_quantile(0.9) * math.sqrt(max(sum(parts), 1e-12)):
            return labels
    return None


FINDERS: Final[dict[str, Callable[[Array, Array, int, int], int | None]]] = {
    "assured": labels_of_session,
    "random": labels_of_random,
    "test at 5 % at every look": labels_of_test,
}


def drop_run(period: int, method: str, order: str, seed: int) -> Row:
    """Labels until the alarm of one method; `quiet`: of two periods that differ by chance."""
    rows = periods_of("time-elec", order, seed)
    before, after = rows[period - 1], rows[period]
    labels = FINDERS[method](before, after, seed, len(after) // LOOK * LOOK if order == "time" else BEFORE)
    return {"period": period, "method": method, "order": order, "seed": seed, "labels": labels}


def drop_rows() -> list[Row]:
    """One row for each period and method."""
    by_cell: dict[tuple[str, int, str], list[Row]] = {}
    for run in Runs(DROPS).read():
        by_cell.setdefault((run["order"], run["period"], run["method"]), []).append(run)
    return [_drop_row(*key, rows) for key, rows in sorted(by_cell.items())]


def _drop_row(order: str, period: int, method: str, rows: list[Row]) -> Row:
    labels = sorted(math.inf if row["labels"] is None else row["labels"] for row in rows)
    drop = math.nan
    if order == "time":
        right, periods = data_of("time-elec")["right"], periods_of("time-elec")
        drop = float(right[periods[period - 1]].mean() - right[periods[period]].mean())
    shown = [row["labels"] for row in rows if row["labels"] is not None]
    quarter, three = (labels[min(int(part * len(labels)), len(labels) - 1)] for part in (0.25, 0.75))
    return {
        "order": order,
        "period": period,
        "method": method,
        "drop": drop,
        "runs": len(rows),
        "found": len(shown),
        "median": statistics.median(labels),
        "quarter": quarter,
        "three_quarters": three,
    }


# ---------------------------------------------------------------- CBPE


def cbpe_rows() -> Iterator[Row]:
    """Accuracy of each period as NannyML's CBPE estimates it without labels of that period."""
    for name, first in REFERENCE.items():
        for order, seed in [("time", 0), *((("quiet", seed) for seed in range(10)) if name == "time-elec" else ())]:
            periods = periods_of(name, order, seed)
            size = min(map(len, periods)) if name == "time-elec" else 1000
            chunks = _cbpe(name, np.concatenate(periods[:first]), np.concatenate(periods[first:]), size)
            right, rest = data_of(name)["right"], np.concatenate(periods[first:])
            for chunk, row in enumerate(chunks):
                true = float(right[rest[chunk * size : (chunk + 1) * size]].mean())
                period = first + chunk * size // len(periods[first])
                yield {"pool": name, "order": order, "seed": seed, "chunk": chunk, "period": period, "true": true} | row


def _cbpe(name: str, reference: Array, later: Array, size: int) -> list[Row]:
    package, pandas = import_module("nannyml"), import_module("pandas")
    data = data_of(name)

    def frame(rows: Array) -> Any:
        return pandas.DataFrame(
            {"y": data["y"][rows], "a": data["a"][rows], "p": data["scores"][rows, 1].astype(float)}
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = package.CBPE(
            problem_type="classification_binary", y_true="y", y_pred="a", y_pred_proba="p", metrics=["accuracy"],
            chunk_size=size,
        )  # fmt: skip
        estimator.fit(frame(reference))
        table = estimator.estimate(frame(later)).filter(period="analysis").to_df()
    own = table["accuracy"]
    ends = ("lower_confidence_boundary", "upper_confidence_boundary", "lower_threshold", "upper_threshold")
    return [
        {"value": float(row["value"])} | {end: float(row[end]) for end in ends} | {"alarm": int(row["alert"])}
        for _, row in own.iterrows()
    ]


# ---------------------------------------------------------------- page


def write() -> None:
    """Tables as CSV, the tables of the page and its figure."""
    keep_csv(RESULTS / "monitoring.csv", map(_rounded, wave_rows()), "pool", "order", "wave", count="runs")
    keep_csv(RESULTS / "monitoring_drops.csv", map(_rounded, drop_rows()), "order", "period", "method", count="runs")
    waves, drops, cbpe = (
        read_numbers(RESULTS / f"monitoring{part}.csv") for part in ("", "_drops", "_cbpe")
    )  # of the committed files, where there are no runs
    parts = {"waves": waves_table(waves), "drops": drops_table(drops, cbpe), "quiet": quiet_words(waves, drops, cbpe)}
    rewrite_page(DOCS / "monitoring.md", parts)
    _figure(waves, drops, cbpe)


def _rounded(row: Row) -> Row:
    return {
        name: (float(f"{value:.5g}") if math.isfinite(value) else "") if isinstance(value, float) else value
        for name, value in row.items()
    }


def waves_table(rows: list[Row]) -> str:
    """Coverage over all waves, and the least of a single one."""
    lines = []
    for name, order in CELLS:
        mine = [row for row in rows if (row["pool"], row["order"]) == (name, order)]
        if not mine:
            continue
        later = [row for row in mine if row["wave"]]
        level, change = ([row[what] for row in some] for what, some in
                         (("level_covered", mine), ("change_covered", later)))  # fmt: skip
        lines.append(
            (name, "shuffled" if order == "quiet" else "as it came", len(mine), mine[0]["runs"],
             f"{np.mean(level):.3f}", f"{np.mean(change):.3f}", f"{min(level):.2f} / {min(change):.2f}",
             f"{np.mean([row['level_width'] for row in mine]):.2f} / "
             f"{np.mean([row['change_width'] for row in later]):.2f}")
        )  # fmt: skip
    head = ("pool", "order", "waves", "runs", "level covered", "change covered", "least of a wave", "widths")
    return markdown(head, lines)


def drops_table(rows: list[Row], cbpe: list[Row]) -> str:
    """Labels until each drop is found."""
    lines = []
    for period in sorted({row["period"] for row in rows if row["order"] == "time"}):
        mine = {row["method"]: row for row in rows if (row["order"], row["period"]) == ("time", period)}
        entries = [_found(mine.get(method)) for method in FINDERS]
        own = [row for row in cbpe if (row["pool"], row["order"], row["period"]) == ("time-elec", "time", period)]
        estimate = "–" if not own else f"{own[0]['value']:.2f} (true {own[0]['true']:.2f}), {_cbpe_says(own[0])}"
        lines.append((period, f"{next(iter(mine.values()))['drop']:.3f}", *entries, estimate))
    return markdown(("period", "drop", *FINDERS, "CBPE, no label of the period"), lines)


def _cbpe_says(row: Row) -> str:
    """Which way its alarm points."""
    if not row["alarm"]:
        return "no alarm"
    return "alarm: fell" if row["value"] < row["lower_threshold"] else "alarm: rose"


def _found(row: Row | None) -> str:
    if row is None:
        return "–"
    ends = [
        f"{row[part]:g}" if isinstance(row[part], int | float) else "never" for part in ("quarter", "three_quarters")
    ]
    median = f"{row['median']:g}" if isinstance(row["median"], int | float) else "never"
    return f"{median} ({' to '.join(ends)}; {row['found']} of {row['runs']})"


def quiet_words(waves: list[Row], drops: list[Row], cbpe: list[Row]) -> str:
    """False alarms where nothing changed but by chance, and CBPE's errors."""
    quiet = [row for row in waves if row["order"] == "quiet"]
    lines = []
    if quiet:
        runs, alarms = quiet[0]["runs"], sum(row["alarms"] for row in quiet)
        lines.append(
            f"- 27 quiet periods (shuffled in time), {runs} sessions, {len(quiet) - 1} comparisons each, at every "
            f"look: {alarms} {'alarm' if alarms == 1 else 'alarms'} in all."
        )
    for method in FINDERS:
        mine = [row for row in drops if (row["order"], row["method"]) == ("quiet", method)]
        if mine:
            runs, shown = (sum(row[part] for row in mine) for part in ("runs", "found"))
            lines.append(f"- Two quiet periods, looked at up to {BEFORE} labels, {method}: {shown} of {runs} alarms.")
    for name in REFERENCE:
        own = [row for row in cbpe if (row["pool"], row["order"]) == (name, "time")]
        if own:
            away = [abs(row["value"] - row["true"]) for row in own]
            held = [row["lower_confidence_boundary"] <= row["true"] <= row["upper_confidence_boundary"] for row in own]
            lines.append(
                f"- CBPE on {name} ({len(own)} chunks): mean error {np.mean(away):.3f}, largest {max(away):.3f}; its "
                f"bounds hold the true accuracy in {np.mean(held):.2f} of them; {sum(row['alarm'] for row in own)} "
                f"alarms, {sum(_cbpe_says(row) == 'alarm: fell' for row in own)} of them of a fall."
            )
    shuffled = [row for row in cbpe if row["order"] == "quiet"]
    if shuffled:
        seeds = {row["seed"] for row in shuffled}
        alarmed = {row["seed"] for row in shuffled if row["alarm"]}
        lines.append(
            f"- CBPE on time-elec shuffled in time, {len(seeds)} times 23 quiet periods: an alarm in {len(alarmed)} of "
            f"{len(seeds)} ({sum(row['alarm'] for row in shuffled)} alarms in all)."
        )
    return "\n".join(lines)


def _figure(waves: list[Row], drops: list[Row], cbpe: list[Row]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    mine = [row for row in waves if (row["pool"], row["order"]) == ("time-elec", "time")]
    numbers = np.array([row["wave"] for row in mine])
    value, half = (np.array([row[part] for row in mine]) for part in ("value", "level_width"))
    left.errorbar(numbers, value, yerr=half / 2, fmt="o", ms=4, lw=1, label=f"assured, {LABELS} labels a wave")
    left.plot(numbers, [row["true"] for row in mine], "k_", ms=9, label="true")
    own = [row for row in cbpe if (row["pool"], row["order"]) == ("time-elec", "time")]
    if own:
        left.plot([row["period"] for row in own], [row["value"] for row in own], "x", ms=5, label="CBPE, no label")
    left.set(xlabel="period of four weeks", ylabel="accuracy (mean over the runs)", title="time-elec")
    left.legend(fontsize=8, frameon=False)
    for method in ("assured", "random"):
        shown = [row for row in drops if (row["order"], row["method"]) == ("time", method)]
        at = [row["median"] if isinstance(row["median"], int | float) else math.nan for row in shown]
        right.plot([row["drop"] for row in shown], at, "o", ms=5, label=method)
    right.set(xlabel="drop of accuracy", ylabel="labels until the alarm (median)", ylim=(0, None))
    right.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(RESULTS / "monitoring.png", dpi=130)
    pyplot.close(figure)


# ---------------------------------------------------------------- commands


def run(runs: int, pools: list[str]) -> None:
    """What is missing, seed by seed, so that an interrupted benchmark has as many runs everywhere."""
    waves, drops = Runs(WAVES, "pool", "order", "seed"), Runs(DROPS, "period", "method", "order", "seed")
    for seed in range(runs):
        for cell in CELLS:
            if (not pools or cell[0] in pools) and (*cell, seed) not in waves.done():
                waves.add(waves_run(*cell, seed))
        for method in FINDERS if not pools else ():
            for order, period in [*(("time", drop) for drop in drops_of()), ("quiet", 1 + seed % 26)]:
                if (period, method, order, seed) not in drops.done():
                    drops.add(drop_run(period, method, order, seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "cbpe", "table"])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--pool", action="append", default=[], choices=list(PERIODS))
    options = parser.parse_args()
    if options.what == "run":
        run(options.runs, options.pool)
    elif options.what == "cbpe":
        try:
            import_module("nannyml")
        except ImportError:
            print("nannyml is not installed: the rows of CBPE stay as they are")
            return
        keep_csv(RESULTS / "monitoring_cbpe.csv", map(_rounded, cbpe_rows()), "pool", "order", "seed", "chunk")
    else:
        write()


if __name__ == "__main__":
    main()
