"""Monitoring on real data in time: coverage of level and change, false alarms, labels until a drop is found.

`python -m benchmarks.monitoring run --runs 20` (resumable: a cell that is in the CSV is not run again), then
`python -m benchmarks.monitoring page` prints the summary. Needs ALTMAS_DATA.

time-elec      27 periods of four weeks; a model trained before the first
employment-ma  2016, 2017, 2018
Each period is a wave of `ITEMS` random items, `LABELS` labels each. `quiet` shuffles items in time: no drop is real.
"""

import argparse
import csv
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import altmas
from altmas.session import Session

RESULTS = Path(__file__).parent / "results" / "monitoring.csv"
POOLS = {"time-elec": "period", "employment-ma": "year"}
ITEMS, LABELS = 300, 50
COLUMNS = (
    *("pool", "order", "method", "seed", "wave", "labels", "true", "value", "low", "high"),
    *("change", "change_true", "change_low", "change_high", "always_low", "always_high", "alarm"),
)
Array = NDArray[np.float64]


def data_of(name: str) -> dict[str, NDArray[np.generic]]:
    """The arrays of a pool."""
    with np.load(Path(os.environ["ALTMAS_DATA"]) / name / "pool.npz", allow_pickle=False) as file:
        return {part: file[part] for part in file.files}


def waves_of(name: str, order: str, seed: int) -> list[NDArray[np.int64]]:
    """Rows of each wave: so many random items of each period, or of all periods for `quiet`."""
    rng = np.random.default_rng([seed, 31])
    period = np.asarray(data_of(name)[POOLS[name]])
    if order == "quiet":
        period = rng.permutation(period)
    return [rng.choice(np.flatnonzero(period == one), ITEMS, replace=False) for one in np.unique(period)]


def pool_of(name: str, rows: NDArray[np.int64]) -> tuple[altmas.Pool, list[str]]:
    """(items with predictions and scores, their truth)."""
    data = data_of(name)
    names = np.array(["no", "yes"])
    ids = [f"{row}" for row in rows]
    pool = altmas.Pool(None, names[data["a"][rows]], scores=data["scores"][rows], classes=["no", "yes"], ids=ids)
    return pool, names[data["y"][rows]].tolist()


def run(name: str, order: str, method: str, seed: int) -> Iterator[dict[str, object]]:
    """One row for each wave, looked at when it has its labels; an alarm at any look of ten labels counts."""
    truth: list[str] = []
    session: Session | None = None
    rights: list[float] = []
    for number, rows in enumerate(waves_of(name, order, seed)):
        pool, said = pool_of(name, rows)
        truth += said
        rights.append(float(np.mean(np.array(["no", "yes"])[pool.predictions] == np.array(said))))
        if session is None:
            session = Session.create(None, pool, method=method, seed=seed, budget=LABELS)
        else:
            first = "0" if number == 1 else None
            share = LABELS if method == "assured" else None
            session.extend(pool, wave=str(number), first_wave=first, budget=len(truth), wave_budget=share)
        if number == 0:
            _label(session, truth, LABELS)
            continue
        alarm = 0
        for look in range(LABELS // 10):
            _label(session, truth, 10, newest=number * ITEMS)
            found = session.monitor()
            if found.answer == "drop" and not alarm:
                alarm = 10 * (look + 1)
        last = found[-1]
        values = (last.labels, rights[-1], last.value, last.low, last.high, last.change, rights[-1] - rights[-2])
        ends = (last.change_low, last.change_high, last.always_low, last.always_high, alarm)
        yield dict(zip(COLUMNS, (name, order, method, seed, number, *values, *ends), strict=True))


def _label(session: Session, truth: list[str], n: int, newest: int = 0) -> None:
    """Tell n labels of the newest wave; `tradition` draws from all waves alike, so the others are told as well."""
    if session.method.name == "assured" or newest == 0:
        for query in session.ask(n):
            session.tell(query.id, truth[query.index])
        return
    told = 0
    while told < n:
        for query in session.ask(n):
            session.tell(query.id, truth[query.index])
            told += query.index >= newest


def done() -> set[tuple[str, ...]]:
    """(pool, order, method, seed) of the cells in the file."""
    if not RESULTS.exists():
        return set()
    with RESULTS.open(newline="") as file:
        return {tuple(row[:4]) for row in list(csv.reader(file))[1:]}


def run_all(runs: int, cells: list[tuple[str, str, str]]) -> None:
    """Every cell that is not there yet, each written as soon as it is finished."""
    there = done()
    for seed in range(runs):
        for cell in cells:
            if (*cell, str(seed)) in there:
                continue
            rows = list(run(*cell, seed))
            new = not RESULTS.exists()
            with RESULTS.open("a", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                if new:
                    writer.writeheader()
                writer.writerows({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)


CELLS = [
    ("employment-ma", "time", "assured"),
    ("time-elec", "time", "assured"),
    ("time-elec", "quiet", "assured"),
]


def summary() -> list[str]:
    """The table of the page, in Markdown."""
    with RESULTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = ["| pool | order | runs | level covered | change covered | runs with an alarm | waves with an alarm |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name, order, method in sorted({(row["pool"], row["order"], row["method"]) for row in rows}):
        mine = [row for row in rows if (row["pool"], row["order"], row["method"]) == (name, order, method)]
        seeds = {row["seed"] for row in mine}
        level = np.mean([float(r["low"]) <= float(r["true"]) <= float(r["high"]) for r in mine])
        change = np.mean([float(r["change_low"]) <= float(r["change_true"]) <= float(r["change_high"]) for r in mine])
        alarmed = {row["seed"] for row in mine if int(row["alarm"])}
        waves = sum(int(row["alarm"]) > 0 for row in mine)
        cells = (name, order, str(len(seeds)), f"{level:.3f}", f"{change:.3f}", f"{len(alarmed)} of {len(seeds)}")
        lines.append(f"| {' | '.join(cells)} | {waves} of {len(mine)} |")
    return lines


def main() -> None:
    """Run, or print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    if given.what == "run":
        run_all(given.runs, CELLS)
    else:
        print("\n".join(summary()))


if __name__ == "__main__":
    main()
