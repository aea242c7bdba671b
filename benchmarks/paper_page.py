"""The tables and figures of docs/reproduction.md, from the committed CSV files alone.

What stands between `<!-- table: name -->` and `<!-- end -->` on the page is replaced; the words around it are not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper import ABLATION_REPEATS, ABLATIONS, AIMS, FIRST, METHODS, MODELS, REPEATS
from benchmarks.paper_results import OVERALL
from benchmarks.paper_stable import FILE, PARTS_FILE, SETTINGS
from benchmarks.store import RESULTS, Row, read_numbers
from benchmarks.tables import DOCS, markdown, with_tables

PAGE = DOCS / "reproduction.md"
COLOURS = {
    "altmas": "tab:red",
    "bald": "tab:orange",
    "tradition": "tab:grey",
    "trust": "tab:olive",
    "assured": "tab:blue",
}
OWN = {method: "hard" if method in ("altmas", "bald") else "own" for method in METHODS}
"""The way of reading that is each method's own; that of the paper for its two."""
FLOOR = 1e-4
"""Errors below this are drawn at it: a metric whose points are all labelled has none."""
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

    @classmethod
    def read(cls, rows: Path, ablations: Path, sizes: Path, story: Path) -> Found:
        content = json.loads(story.read_text(encoding="utf-8"))
        apart = (read_numbers(file) if file.exists() else [] for file in (FILE, PARTS_FILE, RESULTS / "speed.csv"))
        return cls(read_numbers(rows), read_numbers(ablations), read_numbers(sizes), content, *apart)

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
        return _row_with(self.rows, model=model, aim=aim, method=method, labels=labels, reading=reading or OWN[method])

    def ablation(self, model: str, name: str, labels: Any, reading: str = "hard") -> Row:
        return _row_with(self.ablations, model=model, method=name, labels=labels, reading=reading)


def _row_with(rows: list[Row], **values: Any) -> Row:
    return next((row for row in rows if all(row[key] == value for key, value in values.items())), {})


def error_name(model: str, aim: str) -> str:
    """The error that a cell is judged by: relative, or absolute where the metric is too small for that."""
    return "absolute" if (model, aim) == ("mnist-12", "recall-2") else "relative"


def shown(row: Row, name: str, digits: int = 3) -> str:
    """mean ± standard error, or a dash."""
    if row.get(name) is None:
        return "–"
    error = row.get(f"{name}_se")
    return f"{row[name]:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")


# ---------------------------------------------------------------- tables


def run_table(results: Found) -> str:
    story = results.story
    state = "complete" if story["finished"] == story["cells"] else "NOT complete"
    repeats = {method: sorted({r["repeats"] for r in results.rows if r["method"] == method}) for method in METHODS}
    counted = ", ".join(
        f"`{method}` {'–'.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}" if counts else f"`{method}` none"
        for method, counts in repeats.items()
    )
    ablated = sorted({row["repeats"] for row in results.ablations})
    return (
        f"The run behind this page is {state}: {story['finished']} of {story['cells']} cells (of which "
        f"{story['ablations_finished']} of {story['ablations']} for the ablations), in steps of {story['step']}; "
        f"{story['processor_seconds']:,} processor seconds, {story['clock_seconds']:,} s by the clock from the first "
        f"cell to the last, on {story['cores']} cores ({story['machine']}) shared with other work. "
        f"Repeats, of {REPEATS} wanted: {counted}; ablations "
        f"{'–'.join(map(str, dict.fromkeys((ablated[0], ablated[-1])))) if ablated else 'none'} "
        f"of {ABLATION_REPEATS}."
    )


def errors_table(results: Found, labels: Any) -> str:
    """Every method on every model and metric set."""
    lines = []
    for model in MODELS:
        for aim in AIMS:
            name = error_name(model, aim)
            rows = {method: results.row(model, aim, method, labels) for method in METHODS}
            best = min((row[name] for row in rows.values() if row.get(name) is not None), default=None)
            entries = [
                f"**{shown(row, name)}**" if row.get(name) == best else shown(row, name) for row in rows.values()
            ]
            note = " (absolute error)" if name == "absolute" else ""
            lines.append([model, f"{WORDS[aim]}{note}", *entries])
    return markdown(["model", "metric set", *(f"`{method}`" for method in METHODS)], lines)


def surrogate_table(results: Found) -> str:
    """How good the surrogate is, and what its pseudo-labels are, for each set of metrics."""
    accuracies = "accuracy at 100", "at 300", "at 500", "one draw at 500"
    head = "model", "method, metric set", *accuracies, "pseudo-labels at 100", "at 500", "right at 500"
    lines = []
    for model in MODELS:
        for method, aim in [*(("altmas", aim) for aim in AIMS), ("bald", "21-metrics")]:
            first, middle, last = (results.row(model, aim, method, n) for n in (100, 300, 500))
            what = f"`altmas`, {WORDS[aim]}" if method == "altmas" else "`bald`"
            counts = [f"{row.get('pseudo') or 0:,.0f}" for row in (first, last)]
            right = f"{last['pseudo_right']:.3f}" if last.get("pseudo_right") is not None else "–"
            surrogate = [shown(row, "surrogate") for row in (first, middle, last)]
            lines.append([model, what, *surrogate, shown(last, "single"), *counts, right])
    return markdown(head, lines)


def sizes_table(results: Found) -> str:
    """The rounds of altmas by how many pseudo-labels they rest on."""
    figures_head = "error of the 21 metrics", "accuracy of the surrogate", "pseudo-labels that are right"
    lines = []
    for row in results.sizes:
        if row["rounds"]:
            figures = [f"{row[key]:.3f}" for key in ("relative", "surrogate")]
            figures.append("–" if row["pseudo_right"] is None else f"{row['pseudo_right']:.3f}")
            group = f"{row['least']:,} to {row['below'] - 1:,}"
            lines.append([row["model"], group, f"{row['share']:.0%}", *figures])
    moved = {row["model"]: row["doubled_or_halved"] for row in results.sizes}
    shares = ", ".join(f"{share:.0%} ({model})" for model, share in moved.items())
    last = f"From one round to the next their number more than doubles or halves in {shares} of the steps."
    head = "model", "pseudo-labels", "share of the rounds", *figures_head
    return "\n".join([markdown(head, lines), "", last])


def modes_table(results: Found) -> str:
    """The three ways to read the same rounds, 21 metrics."""
    ways = "hard, one draw at a time (the paper)", "expected counts", "mean over the draws"
    lines = []
    modes = ("hard", "expected", "mean")
    for model in MODELS:
        for n in (100, 300, 500):
            for name in ("`altmas`", "`bald`", "`altmas`, preset `safe`"):
                rows = [
                    results.ablation(model, "preset safe", n, mode)
                    if "safe" in name
                    else results.row(model, "21-metrics", name.strip("`"), n, mode)
                    for mode in modes
                ]
                lines.append([model, name, n, *(shown(row, "relative") for row in rows)])
    return markdown(["model", "method", "labels", *ways], lines)


def ablations_table(results: Found) -> str:
    """One thing changed at a time: errors, accuracies of the surrogate and pseudo-labels."""
    columns = ("error at 100", "error, 100 to 500", "surrogate", "one draw", "pseudo-labels", "of them right")
    lines = []
    for model in MODELS:
        for name in ABLATIONS:
            mode = "expected" if name == "preset safe" else "hard"
            errors = [shown(results.ablation(model, name, n, mode), "relative") for n in (FIRST, OVERALL)]
            row = results.ablation(model, name, OVERALL)
            right = "–" if row.get("pseudo_right") is None else f"{row['pseudo_right']:.3f}"
            entries = [*errors, shown(row, "surrogate"), shown(row, "single"), f"{row.get('pseudo') or 0:,.0f}", right]
            lines.append([model, name, *entries])
    return markdown(["model", "setting", *columns], lines)


# ---------------------------------------------------------------- the preset without leaps

OWN_READING = {"stable": "mean", "stable, power 2": "mean", "stable, BALD sampling": "mean", "preset safe": "expected"}
"""The way of reading of each setting where it is not that of the paper."""


def stable_table(results: Found) -> str:
    """The twelve panels: `stable` against `bald` and `tradition`, with its pseudo-labels."""
    rivals = {"bald": "hard", "bald, mean": "mean", "tradition": "own"}
    head = "model", "metric set", "repeats", "`stable`", "`bald`", "`bald`, mean over the draws", "`tradition`"
    lines = []
    for model in MODELS:
        for aim in AIMS:
            mine = _row_with(results.stable, model=model, aim=aim, method="stable", labels=OVERALL, reading="mean")
            if not mine:
                lines.append([model, WORDS[aim], 0, *["not run"] * 4, "–", "–", "–"])
                continue
            sizes = _row_with(results.stable, model=model, aim=aim, method="stable", labels=OVERALL, reading="hard")
            name = error_name(model, aim)
            theirs = [
                _row_with(results.stable, model=model, aim=aim, method=who.split(",")[0], labels=OVERALL, reading=way)
                for who, way in rivals.items()
            ]
            least = min(row[name] for row in (mine, *theirs) if row.get(name) is not None)
            errors = [
                f"**{shown(row, name)}**" if row.get(name) == least else shown(row, name) for row in (mine, *theirs)
            ]
            note = " (absolute error)" if name == "absolute" else ""
            pseudo = [f"{sizes['pseudo']:,.0f}", f"{sizes['pseudo_right']:.3f}", f"{sizes['leaps']:.0%}"]
            lines.append([model, WORDS[aim] + note, mine["repeats"], *errors, *pseudo])
    return markdown([*head, "pseudo-labels", "of them right", "steps that double or halve them"], lines)


def stable_parts_table(results: Found) -> str:
    """One thing changed at a time, 21 metrics, each setting read in its own way."""
    columns = ("error at 100", "error, 100 to 500", "surrogate", "pseudo-labels", "of them right", "leaps", "seconds")
    lines = []
    for model in MODELS:
        for name in SETTINGS:
            way = OWN_READING.get(name, "hard")
            of = {"model": model, "method": name}
            last = _row_with(results.stable_parts, **of, labels=OVERALL, reading="hard")
            if not last:
                lines.append([model, name, 0, *["not run"] * len(columns)])
                continue
            rows = [_row_with(results.stable_parts, **of, labels=n, reading=way) for n in (FIRST, OVERALL)]
            errors = [shown(row, "relative") for row in rows]
            right = "–" if last["pseudo_right"] is None else f"{last['pseudo_right']:.3f}"
            leaps = f"{last['leaps']:.0%}" if last["pseudo"] else "–"
            entries = [shown(last, "surrogate"), f"{last['pseudo']:,.0f}", right, leaps, f"{last['seconds']:.1f}"]
            lines.append([model, name, last["repeats"], *errors, *entries])
    return markdown(["model", "setting", "repeats", *columns], lines)


def speed_table(results: Found) -> str:
    """Processor seconds of the stages of a round, before and now."""
    columns = [("before", "safe"), ("now", "safe"), ("now", "stable")]
    stages = ("pseudo-labels", "surrogate fit", "posterior pass", "whole round, median", "first round")
    lines = []
    for stage in stages:
        before, now, stable = (
            _row_with(results.speed, edition=edition, preset=preset, points=10_000, what=f"processor seconds, {stage}")[
                "value"
            ]
            for edition, preset in columns
        )
        lines.append([stage, f"{before:.2f}", f"{now:.2f}", f"{now / before:.2f}", f"{stable:.2f}"])
    loads = [_row_with(results.speed, edition=e, preset=p, what="load average meanwhile")["value"] for e, p in columns]
    lines.append(["load of the machine", f"{loads[0]:.0f}", f"{loads[1]:.0f}", "", f"{loads[2]:.0f}"])
    return markdown(["", "before, `safe`", "now, `safe`", "ratio", "now, `stable`"], lines)


# ---------------------------------------------------------------- claims


def verdict(better: Row, worse: Row, name: str) -> tuple[str, str]:
    """(figures, word): whether the first error is the smaller one, beyond two standard errors of the difference."""
    if any(row.get(name) is None for row in (better, worse)):
        return f"{shown(better, name)} against {shown(worse, name)}", "not measured"
    key = f"{name}_se"
    error = math.hypot(*(math.nan if row.get(key) is None else row[key] for row in (better, worse)))
    difference = worse[name] - better[name]
    word = "open" if not abs(difference) > 2 * error else "confirmed" if difference > 0 else "refuted"
    return f"{shown(better, name)} against {shown(worse, name)}", word


def claims_table(results: Found) -> str:
    """What the paper says in words, as comparisons of errors averaged over 100 to 500 labels."""
    lines: list[tuple[str, ...]] = []

    def line(claim: str, what: str, better: Row, worse: Row, name: str = "relative") -> None:
        lines.append((claim, what, *verdict(better, worse, name)))

    def error(model: str, aim: str, method: str) -> Row:
        return results.row(model, aim, method, OVERALL)

    line(
        "Tradition is good on the 99 % model and poor on the 12 % one",
        "`tradition`, 21 metrics, 99 % against 12 %",
        error("mnist-99", "21-metrics", "tradition"),
        error("mnist-12", "21-metrics", "tradition"),
    )
    for model in MODELS:
        for aim in AIMS:
            per_class = aim != "accuracy"
            if per_class or model == "mnist-99":
                claim = "ALT-MAS is better than BALD on " + ("per-class metrics" if per_class else "the 99 % model")
                mine, theirs, name = error(model, aim, "altmas"), error(model, aim, "bald"), error_name(model, aim)
                line(claim, f"{model}, {WORDS[aim]}: `altmas` against `bald`, {name} error", mine, theirs, name)
    for model in MODELS:
        aim = "precision-2"
        mine, theirs = error(model, aim, "altmas"), error(model, aim, "bald")
        figures, worse = verdict(mine, theirs, "surrogate")
        _, better = verdict(mine, theirs, error_name(model, aim))
        word = better if worse == "confirmed" else worse
        what = f"{model}, {WORDS[aim]}: accuracy of the surrogate, `altmas` against `bald`"
        lines.append(("The surrogate is worse, yet per-class estimates are better", what, figures, word))
    lines.append(augmentation_line(results))
    return markdown(["claim of the paper", "measured by", "figures", "verdict"], lines)


def augmentation_line(results: Found) -> tuple[str, ...]:
    """How much augmentation adds to the surrogate's accuracy on each model."""
    lifts: dict[str, float] = {}
    for model in MODELS:
        with_it, without = (results.ablation(model, name, OVERALL) for name in ("as published", "no augmentation"))
        if with_it.get("surrogate") is not None and without.get("surrogate") is not None:
            lifts[model] = with_it["surrogate"] - without["surrogate"]
    figures = ", ".join(f"{model} {lift:+.3f}" for model, lift in lifts.items()) or "–"
    word = "not measured" if len(lifts) < len(MODELS) else "refuted"
    if word == "refuted" and max(lifts, key=lifts.__getitem__) == "mnist-99":
        word = "confirmed"
    what = "accuracy of the surrogate with augmentation minus without, averaged over 100 to 500 labels"
    return "Augmentation lifts the surrogate most for the best model", what, figures, word


# ---------------------------------------------------------------- the paper's four questions and its remarks

ORDINARY = ("mnist-70", "mnist-12")
"""The average and the bad model of the paper."""


def panels(results: Found, rival: str, models: Sequence[str] = MODELS, aims: Sequence[str] = tuple(AIMS)) -> str:
    """In how many panels `altmas` errs less than a rival, beyond two standard errors, in how many more."""
    words = []
    for model in models:
        for aim in aims:
            mine, theirs = (results.row(model, aim, method, OVERALL) for method in ("altmas", rival))
            words.append(verdict(mine, theirs, error_name(model, aim))[1])
    counts = [words.count(word) for word in ("confirmed", "refuted", "open")]
    return f"smaller error in {counts[0]} of {len(words)} panels, larger in {counts[1]}, open in {counts[2]}"


def questions_table(results: Found) -> str:
    """The four questions of the paper, in its words, with what the run says."""
    by_aim = "; ".join(f"{WORDS[aim]}: {panels(results, 'bald', aims=[aim])}" for aim in AIMS)
    by_model = "; ".join(f"{model}: {panels(results, 'bald', models=[model])}" for model in MODELS)
    surrogates = "; ".join(
        f"{model} {shown(results.row(model, '21-metrics', 'altmas', OVERALL), 'surrogate')}" for model in MODELS
    )
    rival = shown(results.row(MODELS[0], "21-metrics", "bald", OVERALL), "surrogate")
    lines = [
        ("Q1", "better than traditional testing?", f"`altmas` against `tradition`: {panels(results, 'tradition')}"),
        ("Q2", "better than active learning (BALD)?", f"`altmas` against `bald`: {panels(results, 'bald')}"),
        ("Q3", "for different metric sets?", f"against `bald`; {by_aim}"),
        ("Q3", "for different models?", f"against `bald`; {by_model}"),
        ("Q4", "how accurate is the surrogate?", f"21 metrics, 100 to 500 labels: {surrogates}; `bald` {rival}"),
    ]
    return markdown(["", "question", "what the run says"], lines)


def remarks_table(results: Found) -> str:
    """What the paper remarks about its figures, beside the figures of this run."""
    network = [
        row["surrogate"]
        for row in results.rows
        if row["method"] == "bald" and row["labels"] != OVERALL and row.get("surrogate") is not None
    ]
    inside = sum(0.7 <= value <= 0.9 for value in network)
    lines = [
        (
            "the accuracy of the network of BALD lies between 70 and 90 %",
            f"{min(network):.0%} to {max(network):.0%}; inside in {inside / len(network):.0%} of the rounds",
        )
    ]
    for model in ORDINARY:
        closeness = {
            WORDS[aim]: 1 - results.row(model, aim, "altmas", OVERALL)["relative"]
            for aim in AIMS
            if error_name(model, aim) == "relative"
        }
        figures = ", ".join(f"{name} {max(value, 0.0):.0%}" for name, value in closeness.items())
        lines.append((f"estimates are 90 to 100 % accurate on {model}: 1 - relative error of `altmas`", figures))
    return markdown(["remark of the paper", "this run"], lines)


TABLES: dict[str, Callable[[Found], str]] = {
    "run": run_table,
    "questions": questions_table,
    "remarks": remarks_table,
    "claims": claims_table,
    "errors at 200": lambda results: errors_table(results, 200),
    "errors at 500": lambda results: errors_table(results, 500),
    "errors overall": lambda results: errors_table(results, OVERALL),
    "surrogate": surrogate_table,
    "sizes": sizes_table,
    "modes": modes_table,
    "ablations": ablations_table,
    "stable": stable_table,
    "stable parts": stable_parts_table,
    "speed": speed_table,
}


def page_with(results: Found, text: str) -> str:
    """The text with its tables made anew."""
    return with_tables(text, {name: table(results) for name, table in TABLES.items()})


def write_page(results: Found) -> None:
    PAGE.write_text(page_with(results, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


# ---------------------------------------------------------------- figures


def curve(rows: list[Row], name: str) -> tuple[list[int], list[float], list[float]]:
    """(labels, mean, standard error) of the rows that have a value."""
    defined = [row for row in rows if row["labels"] != OVERALL and row.get(name) is not None]
    return (
        [row["labels"] for row in defined],
        [row[name] for row in defined],
        [row.get(f"{name}_se") or 0.0 for row in defined],
    )


def _plot(axes: Any, rows: list[Row], name: str, **style: Any) -> None:
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
                _plot(axes, own, name, color=COLOURS[method], label=method)
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
            _plot(axes, own, "surrogate", color="tab:orange" if method == "bald" else colours[aim], label=label)
        axes.set(title=model, xlabel="labels", ylabel="accuracy of the surrogate")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
    return _saved(figure, results, "Accuracy of the surrogate, mean and standard error over repeats", path)


def _saved(figure: Any, results: Found, title: str, path: Path) -> Any:
    note = results.partial
    figure.suptitle(f"{title}\n{note}" if note else title, color="darkred" if note else None)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path, dpi=110)
    return figure


if __name__ == "__main__":
    everything = Found.committed()
    write_page(everything)
    draw_errors(everything, RESULTS / "paper_error.png")
    draw_surrogates(everything, RESULTS / "paper_surrogate.png")
