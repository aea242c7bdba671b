"""The figures of docs/reproduction.md, from the committed CSV files alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.paper import AIMS, METHODS, MODELS
from benchmarks.paper_found import OWN, WORDS, Found, error_name
from benchmarks.paper_results import OVERALL
from benchmarks.paper_tuned import LOG_LOSS, METRIC_ERROR, NETWORKS, STEP, UNTUNED
from benchmarks.paper_tuned_page import NAMES
from benchmarks.store import Row

COLOURS = {
    "altmas": "tab:red",
    "bald": "tab:orange",
    "tradition": "tab:grey",
    "trust": "tab:olive",
    "assured": "tab:blue",
}
FLOOR = 1e-4
"""Errors below this are drawn at it: a metric whose points are all labelled has none."""


def draw_all(results: Found, folder: Path) -> None:
    """Every figure of the page."""
    draw_errors(results, folder / "paper_error.png")
    draw_surrogates(results, folder / "paper_surrogate.png")
    draw_tuned(results, folder / "paper_tuned.png")


def curve(rows: list[Row], name: str) -> tuple[list[int], list[float], list[float]]:
    """(labels, mean, standard error) of the rows that have a value."""
    there = [row for row in rows if row["labels"] != OVERALL and row.get(name) is not None]
    return (
        [row["labels"] for row in there],
        [row[name] for row in there],
        [row.get(f"{name}_se") or 0.0 for row in there],
    )


def plot(axes: Any, rows: list[Row], name: str, **style: Any) -> None:
    labels, mean, error = curve(rows, name)
    if labels:
        low, middle, high = (
            [max(m + sign * e, FLOOR) for m, e in zip(mean, error, strict=True)] for sign in (-1, 0, 1)
        )
        axes.plot(labels, middle, lw=1.5, **style)
        axes.fill_between(labels, low, high, alpha=0.2, lw=0, color=style["color"])


def draw_errors(results: Found, path: Path) -> Any:
    """The paper's first figure: average error over labels, with `assured` beside the methods of the paper."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 9.5))
    grid = figure.subplots(len(MODELS), len(AIMS), sharex=True)
    for model, line in zip(MODELS, grid, strict=True):
        for aim, axes in zip(AIMS, line, strict=True):
            name = error_name(model, aim)
            for method in METHODS:
                rows = [r for r in results.rows if (r["model"], r["aim"], r["method"]) == (model, aim, method)]
                own = [row for row in rows if row["reading"] == OWN[method]]
                plot(axes, own, name, color=COLOURS[method], label=method)
            axes.set(yscale="log", title=f"{model}: {WORDS[aim]}", ylabel=f"{name} error")
    for axes in grid[-1]:
        axes.set_xlabel("labels")
    handles = {label: line for axes in grid.flat for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=len(METHODS))
    return _saved(figure, results, "Average error of the estimates, mean and standard error over repeats", path)


def draw_surrogates(results: Found, path: Path) -> Any:
    """The paper's second figure: accuracy of the surrogate over labels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 5))
    colours = dict(zip(AIMS, ("tab:red", "tab:purple", "tab:green", "tab:blue"), strict=True))
    for model, axes in zip(MODELS, figure.subplots(1, len(MODELS)), strict=True):
        for method, aim in [*(("altmas", aim) for aim in AIMS), ("bald", "21-metrics")]:
            rows = [r for r in results.rows if (r["model"], r["aim"], r["method"]) == (model, aim, method)]
            own = [row for row in rows if row["reading"] == "hard"]
            label = "bald" if method == "bald" else f"altmas, {WORDS[aim]}"
            plot(axes, own, "surrogate", color="tab:orange" if method == "bald" else colours[aim], label=label)
        axes.set(title=model, xlabel="labels", ylabel="accuracy of the surrogate")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
    return _saved(figure, results, "Accuracy of the surrogate, mean and standard error over repeats", path)


def _saved(figure: Any, results: Found, title: str, path: Path) -> Any:
    figure.suptitle(
        title + (f"\n{results.partial}" if results.partial else ""), color="darkred" if results.partial else None
    )
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path, dpi=110)
    return figure


# ---------------------------------------------------------------- tuned networks

KEY = ("tuning", "model", "aim", "method", "reading")
STYLES = {UNTUNED: "-", LOG_LOSS: "--", METRIC_ERROR: ":"}


def curves(results: Found, model: str, aim: str) -> Iterator[tuple[str, str, list[Row]]]:
    """(method, way of tuning, rows) of every curve of a panel that there is: in steps of 10, or else of 100."""
    plain = [row | {"tuning": UNTUNED, "step": 10} for row in results.rows]
    for method in (*NETWORKS, "tradition"):
        for tuning in NAMES if method in NETWORKS else (UNTUNED,):
            wanted = (tuning, model, aim, method, OWN[method])
            own = [row for row in [*plain, *results.tuned] if tuple(row[key] for key in KEY) == wanted]
            step = 10 if any(row["step"] == 10 for row in own) else STEP
            if rows := [row for row in own if row["step"] == step and row["labels"] != OVERALL]:
                yield method, tuning, rows


def draw_tuned(results: Found, path: Path) -> Any:
    """Average error over labels in the twelve panels: untuned curves are solid, tuned ones dashed and dotted."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 9.5))
    grid = figure.subplots(len(MODELS), len(AIMS), sharex=True)
    for model, line in zip(MODELS, grid, strict=True):
        for aim, axes in zip(AIMS, line, strict=True):
            name = error_name(model, aim)
            for method, tuning, rows in curves(results, model, aim):
                label = method if method == "tradition" else f"{method}, {NAMES[tuning]}"
                plot(axes, rows, name, color=COLOURS[method], ls=STYLES[tuning], label=label)
            axes.set(yscale="log", title=f"{model}: {WORDS[aim]}", ylabel=f"{name} error")
    for axes in grid[-1]:
        axes.set_xlabel("labels")
    handles = {label: line for axes in grid.flat for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=4)
    counts = [(run["finished"], run["cells"]) for run in results.tuned_run if run["tuning"] in NAMES]
    finished, wanted = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    partial = "" if finished == wanted else f"\nPARTIAL RUN: {finished} of {wanted} runs"
    title = "Average error of the estimates with tuned and untuned networks, mean and standard error over repeats"
    figure.suptitle(title + partial, color="darkred" if partial else None)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, dpi=110)
    return figure
