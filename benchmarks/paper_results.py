"""The finished cells of `benchmarks.paper` as rows: errors and surrogates, mean and standard error over repeats.

relative error   |Q - Q*| / Q*, averaged over the metrics of the set with Q* >= 0.05 (docs/equations.md, 0.3 Z4); a set
                 without such a metric has none
absolute error   |Q - Q*|, averaged over all metrics of the set
undefined        share of the estimates that have no value; they are left out of both errors
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.methods.paper.network import Network
from altmas.metrics import truth_values
from benchmarks.paper import ABLATIONS, AIMS, ALL, RUNS, Cell, Grid, metrics_of, read, world
from benchmarks.store import RESULTS, Row, write_csv

Array = NDArray[Any]

LEAST = 0.05
"""Metrics smaller than this have no relative error."""
MODES = ("hard", "expected", "mean")
SELDOM = 100
"""Ways of reading other than a method's own are kept at multiples of this many labels."""
SIZES = (0, 500, 1000, 2000, 5000, 10_001)
"""Bounds of the groups that rounds are put in by their number of pseudo-labels."""
OVERALL = "mean"
"""Stands for a number of labels in the rows that are averaged over all of them."""


def rows_of(cells: list[Cell]) -> Iterator[Row]:
    """One row for each model, metric set, method, way of reading and number of labels."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.model, cell.aim, cell.method), []).append(cell)
    for (model, aim, method), together in groups.items():
        runs = [records for records in map(read, together) if records]
        for one in AIMS if aim == ALL else (aim,):
            if runs:
                yield from _rows(model, one, method, runs, len(together), network=isinstance(together[0].made, Network))


def _rows(model: str, aim: str, method: str, runs: list[list[Row]], wanted: int, *, network: bool) -> Iterator[Row]:
    named, pool = world(model)
    exact = truth_values(pool, named.truth, metrics_of(aim, pool))
    names, truth = list(exact), np.array(list(exact.values()))
    labels = [record["labels"] for record in runs[0]]
    who = {"model": model, "aim": aim, "method": method, "repeats": len(runs), "wanted": wanted}
    for mode in MODES if network else ("own",):
        values = np.array([[[at[mode][name] for name in names] for at in run] for run in runs], np.float64)
        relative, absolute, undefined = errors(values, truth)
        for place, n in enumerate([*labels, OVERALL]):
            if mode in ("expected", "mean") and n != OVERALL and n % SELDOM:
                continue
            pick = slice(None) if n == OVERALL else place

            def of(values: Array, pick: Any = pick) -> Array:
                """(repeats,) at this number of labels, or averaged over all of them."""
                return values[:, pick] if values[:, pick].ndim == 1 else _mean(values[:, pick], 1)

            row = who | {"reading": mode, "labels": n, "undefined": round(float(of(undefined).mean()), 4)}
            row |= spread("relative", of(relative)) | spread("absolute", of(absolute))
            if network and mode == "hard":
                for key in ("surrogate", "single"):
                    row |= spread(key, of(_numbers(runs, key)))
                for key in ("pseudo", "pseudo_right", "steps"):
                    row[key] = _rounded(float(_mean(of(_numbers(runs, key)), 0)))
            yield row


def sizes_of(cells: list[Cell]) -> Iterator[Row]:
    """What the rounds of altmas say about the 21 metrics, by how many pseudo-labels they rest on; all metric sets."""
    for model in dict.fromkeys(cell.model for cell in cells):
        named, pool = world(model)
        exact = truth_values(pool, named.truth, metrics_of(ALL, pool))
        runs = [read(cell) for cell in cells if (cell.model, cell.method) == (model, "altmas")]
        records = [record for run in runs for record in run]
        if not records:
            continue
        values = np.array([[list(record["hard"].values()) for record in records]], np.float64)
        relative = errors(values, np.array(list(exact.values())))[0][0]
        pseudo, surrogate, right = (_numbers([records], key)[0] for key in ("pseudo", "surrogate", "pseudo_right"))
        jumps = np.concatenate([np.abs(np.diff(np.log(_numbers([run], "pseudo")[0] + 1))) for run in runs if run])
        for low, high in zip(SIZES[:-1], SIZES[1:], strict=True):
            inside = (low <= pseudo) & (pseudo < high)
            yield {
                "model": model,
                "least": low,
                "below": high,
                "rounds": int(inside.sum()),
                "share": round(float(inside.mean()), 4),
                "relative": _rounded(float(_mean(relative[inside], 0))),
                "surrogate": _rounded(float(_mean(surrogate[inside], 0))),
                "pseudo_right": _rounded(float(_mean(right[inside], 0))),
                "doubled_or_halved": round(float((jumps > np.log(2)).mean()), 4),
            }


def errors(values: Array, truth: Array) -> tuple[Array, Array, Array]:
    """(relative, absolute, undefined), each (repeats, numbers of labels), of values (..., metrics)."""
    distance = np.abs(values - truth)
    large = truth >= LEAST
    relative = _mean(distance[..., large] / truth[large], 2) if large.any() else np.full(values.shape[:2], np.nan)
    return relative, _mean(distance, 2), np.isnan(values).mean(2)


def spread(name: str, values: Array) -> Row:
    """Mean and standard error of a figure over the repeats."""
    defined = values[np.isfinite(values)]
    error = float(defined.std(ddof=1) / np.sqrt(len(defined))) if len(defined) > 1 else float("nan")
    return {name: _rounded(float(_mean(values, 0))), f"{name}_se": _rounded(error)}


def _numbers(runs: list[list[Row]], key: str) -> Array:
    return np.array([[record[key] for record in run] for run in runs], np.float64)


def _mean(values: Array, axis: int) -> Array:
    """Mean of the finite values along an axis; nan where there is none."""
    finite = np.isfinite(values)
    count = finite.sum(axis)
    total = np.where(finite, values, 0.0).sum(axis)
    return np.asarray(np.divide(total, count, out=np.full(np.shape(count), np.nan), where=count > 0))


def _rounded(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None


# ---------------------------------------------------------------- files


def story(grid: Grid) -> Row:
    """How much of the run there is, what it cost, and on which machine."""
    cells = grid.in_order()
    there = [cell for cell in cells if cell.path.exists()]
    ends = [cell.path.stat().st_mtime for cell in there]
    seconds = {cell: read(cell)[-1]["seconds"] for cell in there}
    first = min(cells, key=lambda cell: cell.path.stat().st_mtime if cell in seconds else np.inf)
    return {
        "cells": len(cells),
        "finished": len(there),
        "ablations": len(grid.ablations),
        "ablations_finished": sum(cell.method in ABLATIONS for cell in there),
        "step": grid.figures[0].step if grid.figures else None,
        "processor_seconds": round(sum(seconds.values())),
        "clock_seconds": round(max(ends) - min(ends) + seconds[first]) if ends else 0,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }


def write_all(grid: Grid, *, quick: bool = False) -> None:
    """CSV, figures and the page; of a quick run CSV and figures only, beside its cells."""
    from benchmarks import paper_figures, paper_page
    from benchmarks.paper_found import Found

    folder = RUNS if quick else RESULTS
    files = {name: folder / f"paper{name}" for name in (".csv", "_ablations.csv", "_sizes.csv", "_run.json")}
    write_csv(files[".csv"], rows_of(grid.figures))
    write_csv(files["_ablations.csv"], rows_of(grid.ablations))
    write_csv(files["_sizes.csv"], sizes_of(grid.figures))
    files["_run.json"].write_text(json.dumps(story(grid), indent=1) + "\n", encoding="utf-8")
    results = Found.read(*files.values())
    paper_figures.draw_errors(results, folder / "paper_error.png")
    paper_figures.draw_surrogates(results, folder / "paper_surrogate.png")
    if not quick:
        paper_page.write_page(results)
