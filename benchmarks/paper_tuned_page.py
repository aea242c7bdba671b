"""The tables of docs/reproduction.md about tuned networks, from the committed CSV files alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.paper import AIMS, ALL, FIRST, MODELS
from benchmarks.paper_claims import ABSENT, AUGMENTATION, RowOf, claims, counted, most_for_the_best
from benchmarks.paper_found import OWN, WORDS, Found, error_name, one_of, shown
from benchmarks.paper_results import OVERALL
from benchmarks.paper_tuned import LOG_LOSS, METRIC_ERROR, NETWORKS, OWN_LABELS, STEP, TUNINGS, UNTUNED
from benchmarks.store import Row
from benchmarks.tables import markdown

NAMES = {UNTUNED: "untuned", LOG_LOSS: "tuned, log loss", METRIC_ERROR: "tuned, metric error"}
"""The ways of tuning that have all twelve panels, as columns."""
WAYS = ((10, UNTUNED), (10, LOG_LOSS), *((STEP, tuning) for tuning in NAMES))
"""Steps and ways of tuning in which claims are looked at."""


def tuned_row(
    results: Found, tuning: str, model: str, aim: str, method: str, labels: Any = OVERALL, step: int = STEP
) -> Row:
    """The row of one way of tuning, or an empty one; `tradition` has no network, so its row is the same for all.

    In other steps than STEP what is not tuned is that of `benchmarks.paper`.
    """
    way = UNTUNED if method == "tradition" else tuning
    if step != STEP and way == UNTUNED:
        return results.row(model, aim, method, labels)
    wanted = {"tuning": way, "step": step, "model": model, "aim": aim, "method": method}
    return one_of(results.tuned, **wanted, labels=labels, reading=OWN[method])


def rows_tuned(results: Found, tuning: str, step: int = STEP) -> RowOf:
    """How claims ask for the rows of one way of tuning."""
    return lambda model, aim, method: tuned_row(results, tuning, model, aim, method, step=step)


# ---------------------------------------------------------------- tables


def run_table(results: Found) -> str:
    """How many runs there are of those that the command asks for, and what they took."""
    head = "networks", "steps of", "runs", "of", "seconds of the runs", "tunings", "seconds of the tunings"
    order = {tuning: place for place, tuning in enumerate(TUNINGS)}
    lines = []
    for run in sorted(results.tuned_run, key=lambda row: (order[row["tuning"]], -row["step"])):
        tuning, finished = run["tuning"], (run["finished"], run["cells"])
        made = [row["seconds"] for row in results.tuned_values if row["tuning"] == tuning]
        spent, count = (f"{sum(made):,.0f}", len(made)) if made else ("–", "–")
        if tuning == OWN_LABELS:
            spent, count = "–", "in the runs"
        elif run["step"] != STEP:
            spent, count = "–", "the same"
        name = NAMES.get(tuning, f"tuned, {tuning}")
        lines.append([name, run["step"], *finished, f"{run['seconds']:,.0f}", count, spent])
    return markdown(head, lines)


def steps_table(results: Found) -> str:
    """Errors in smaller steps, tuned for log loss, beside the untuned ones of `benchmarks.paper`."""
    columns = [(method, tuning) for method in NETWORKS for tuning in (UNTUNED, LOG_LOSS)] + [("tradition", UNTUNED)]
    lines = []
    for step in sorted({row["step"] for row in results.tuned} - {STEP}, reverse=True):
        for model in MODELS:
            for aim in AIMS:
                name = error_name(model, aim)
                rows = [tuned_row(results, tuning, model, aim, method, step=step) for method, tuning in columns]
                if not rows[1]:
                    continue
                least = min(row[name] for row in rows if row)
                entries = [
                    "not run" if not row else f"**{shown(row, name)}**" if row[name] == least else shown(row, name)
                    for row in rows
                ]
                note = " (absolute error)" if name == "absolute" else ""
                lines.append([step, model, WORDS[aim] + note, rows[1]["repeats"], *entries])
    head = [f"`{method}`, {NAMES[tuning]}" for method, tuning in columns[:-1]]
    return markdown(["steps of", "model", "metric set", "tuned repeats", *head, "`tradition`"], lines)


def values_table(results: Found) -> str:
    """What tuning chose: the values for log loss, which all panels share; for metric error their range over panels."""
    head = "tuned for", "repeat", "labels", "panels", "learning rate", "epochs", "dropout", "held-out loss"
    lines = []
    groups: dict[tuple[str, int, int], list[Row]] = {}
    for row in results.tuned_values:
        groups.setdefault((row["tuning"], row["repeat"], row["labels"]), []).append(row)
    for (tuning, repeat, labels), rows in sorted(groups.items()):
        panels = "all" if rows[0]["model"] == ALL else len(rows)
        entries = [
            _range([row[name] for row in rows], form)
            for name, form in (("learning_rate", ".5f"), ("epochs", ".0f"), ("dropout", ".2f"), ("loss", ".3f"))
        ]
        lines.append([tuning, repeat, labels, panels, *entries])
    return markdown(head, lines)


def _range(values: list[float], form: str) -> str:
    ends = dict.fromkeys(f"{end:{form}}" for end in (min(values), max(values)))
    return " to ".join(ends)


def errors_table(results: Found) -> str:
    """The twelve panels: both methods untuned and tuned, with random labels beside them."""
    columns = [(method, tuning) for method in NETWORKS for tuning in NAMES] + [("tradition", UNTUNED)]
    head = [f"`{method}`, {NAMES[tuning]}" for method, tuning in columns[:-1]]
    lines = []
    for model in MODELS:
        for aim in AIMS:
            name = error_name(model, aim)
            rows = [tuned_row(results, tuning, model, aim, method) for method, tuning in columns]
            least = min((row[name] for row in rows if row.get(name) is not None), default=None)
            entries = [
                "not run" if not row else f"**{shown(row, name)}**" if row[name] == least else shown(row, name)
                for row in rows
            ]
            repeats = ", ".join(
                str(tuned_row(results, tuning, model, aim, "altmas").get("repeats", 0)) for tuning in NAMES
            )
            note = " (absolute error)" if name == "absolute" else ""
            lines.append([model, WORDS[aim] + note, repeats, *entries])
    return markdown(["model", "metric set", "repeats", *head, "`tradition`"], lines)


def questions_table(results: Found) -> str:
    """Q1, Q2 and Q4 of the paper for each way of tuning, in steps of 10 and of 100."""
    lines = []
    for step, tuning in WAYS:
        row = rows_tuned(results, tuning, step)
        entries = [counted(row, "tradition"), counted(row, "bald"), *accuracies(row)]
        lines.append([step, NAMES[tuning], *entries])
    head = "steps of", "networks", "Q1: `altmas` against `tradition`", "Q2: `altmas` against `bald`"
    return markdown([*head, "Q4: accuracy of the surrogate, 21 metrics", "of one draw of it"], lines)


def accuracies(row: RowOf) -> Iterator[str]:
    """Accuracy of the surrogate on each model and of that of `bald`: of the mean over the draws, and of one draw."""
    for name in ("surrogate", "single"):
        mine = "; ".join(f"{model} {shown(row(model, '21-metrics', 'altmas'), name)}" for model in MODELS)
        yield f"{mine}; `bald` {shown(row(MODELS[0], '21-metrics', 'bald'), name)}"


def claims_table(results: Found) -> str:
    """Every claim of the paper: verdict and figures, untuned and tuned, in steps of 10 and of 100."""
    found = [[*claims(rows_tuned(results, tuning, step)), augmentation(results, tuning, step)] for step, tuning in WAYS]
    lines = []
    for together in zip(*found, strict=True):
        told = [word + ("" if word == ABSENT else f": {figures}") for _, _, figures, word in together]
        lines.append([*together[0][:2], *told])
    head = [f"steps of {step}, {NAMES[tuning]}" for step, tuning in WAYS]
    return markdown(["claim of the paper", "measured by", *head], lines)


def augmentation(results: Found, tuning: str, step: int) -> tuple[str, str, str, str]:
    """What augmentation adds to the surrogate at FIRST labels, where `altmas` and `bald` have the same ones."""
    lifts: dict[str, float] = {}
    for model in MODELS:
        mine, theirs = (tuned_row(results, tuning, model, "21-metrics", method, FIRST, step) for method in NETWORKS)
        if mine and theirs:
            lifts[model] = mine["surrogate"] - theirs["surrogate"]
    figures = ", ".join(f"{model} {lift:+.3f}" for model, lift in lifts.items()) or "–"
    what = f"accuracy of the surrogate at {FIRST} labels, `altmas` minus `bald`, which have the same labels there"
    return AUGMENTATION, what, figures, most_for_the_best(lifts)


def own_labels_table(results: Found) -> str:
    """Tuned on shared random labels against tuned on a method's own labels, as far as the latter were run."""
    lines = []
    for model in MODELS:
        for method in NETWORKS:
            rows = {
                tuning: tuned_row(results, tuning, model, "21-metrics", method)
                for tuning in (UNTUNED, LOG_LOSS, OWN_LABELS)
            }
            if rows[OWN_LABELS]:
                errors = [shown(row, "relative") for row in rows.values()]
                lines.append([model, f"`{method}`", ", ".join(str(row["repeats"]) for row in rows.values()), *errors])
    if not lines:
        return "Not run."
    head = "untuned", "tuned on shared random labels", "tuned on its own labels (`tune=True`)"
    return markdown(["model", "method", "repeats", *head], lines)


TABLES: dict[str, Callable[[Found], str]] = {
    "tuned run": run_table,
    "tuned values": values_table,
    "tuned": errors_table,
    "tuned questions": questions_table,
    "tuned claims": claims_table,
    "tuned own labels": own_labels_table,
    "tuned steps": steps_table,
}
