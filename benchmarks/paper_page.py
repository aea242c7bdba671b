"""The tables of docs/reproduction.md, from the committed CSV files alone.

What stands between `<!-- table: name -->` and `<!-- end -->` on the page is replaced; the words around it are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import paper_tuned_page
from benchmarks.paper import ABLATION_REPEATS, ABLATIONS, AIMS, FIRST, METHODS, MODELS, REPEATS
from benchmarks.paper_claims import AUGMENTATION, Line, claims, counted, most_for_the_best
from benchmarks.paper_found import WORDS, Found, error_name, one_of, shown
from benchmarks.paper_results import OVERALL
from benchmarks.paper_stable import SETTINGS
from benchmarks.store import RESULTS
from benchmarks.tables import DOCS, markdown, with_tables

PAGE = DOCS / "reproduction.md"

# ---------------------------------------------------------------- tables


def run_table(results: Found) -> str:
    story = results.story
    state = "complete" if story["finished"] == story["cells"] else "NOT complete"
    repeats = {method: sorted({r["repeats"] for r in results.rows if r["method"] == method}) for method in METHODS}
    kept = ", ".join(
        f"`{method}` {'–'.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}" if counts else f"`{method}` none"
        for method, counts in repeats.items()
    )
    ablated = sorted({row["repeats"] for row in results.ablations})
    return (
        f"The run behind this page is {state}: {story['finished']} of {story['cells']} cells (of which "
        f"{story['ablations_finished']} of {story['ablations']} for the ablations), in steps of {story['step']}; "
        f"{story['processor_seconds']:,} processor seconds, {story['clock_seconds']:,} s by the clock from the first "
        f"cell to the last, on {story['cores']} cores ({story['machine']}) shared with other work. "
        f"Repeats, of {REPEATS} wanted: {kept}; ablations "
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
    told = ", ".join(f"{share:.0%} ({model})" for model, share in moved.items())
    last = f"From one round to the next their number more than doubles or halves in {told} of the steps."
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
            mine = one_of(results.stable, model=model, aim=aim, method="stable", labels=OVERALL, reading="mean")
            if not mine:
                lines.append([model, WORDS[aim], 0, *["not run"] * 4, "–", "–", "–"])
                continue
            sizes = one_of(results.stable, model=model, aim=aim, method="stable", labels=OVERALL, reading="hard")
            name = error_name(model, aim)
            theirs = [
                one_of(results.stable, model=model, aim=aim, method=who.split(",")[0], labels=OVERALL, reading=way)
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
            last = one_of(results.stable_parts, **of, labels=OVERALL, reading="hard")
            if not last:
                lines.append([model, name, 0, *["not run"] * len(columns)])
                continue
            errors = [
                shown(one_of(results.stable_parts, **of, labels=n, reading=way), "relative") for n in (FIRST, OVERALL)
            ]
            right = "–" if last["pseudo_right"] is None else f"{last['pseudo_right']:.3f}"
            leaps = f"{last['leaps']:.0%}" if last["pseudo"] else "–"
            entries = [shown(last, "surrogate"), f"{last['pseudo']:,.0f}", right, leaps, f"{last['seconds']:.1f}"]
            lines.append([model, name, last["repeats"], *errors, *entries])
    return markdown(["model", "setting", "repeats", *columns], lines)


STAGES = ("pseudo-labels", "surrogate fit", "posterior pass", "whole round, median", "first round")
CLOCK_AND_PROCESSOR = ("seconds", "processor seconds")
TORCH_SIDES = {
    "posterior pass": ("torch",),
    "BALD round": ("torch, as before", "torch, alike"),
    "ALT-MAS round": ("torch, as before", "torch, alike"),
}


def speed_table(results: Found) -> str:
    """Processor seconds of the stages of a round, before and now."""
    columns = [("before", "safe"), ("now", "safe"), ("now", "stable")]
    lines = []
    for stage in STAGES:
        before, now, stable = (
            one_of(results.speed, edition=edition, preset=preset, points=10_000, what=f"processor seconds, {stage}")[
                "value"
            ]
            for edition, preset in columns
        )
        lines.append([stage, f"{before:.2f}", f"{now:.2f}", f"{now / before:.2f}", f"{stable:.2f}"])
    loads = [one_of(results.speed, edition=e, preset=p, what="load average meanwhile")["value"] for e, p in columns]
    lines.append(["load of the machine", f"{loads[0]:.0f}", f"{loads[1]:.0f}", "", f"{loads[2]:.0f}"])
    return markdown(["", "before, `safe`", "now, `safe`", "ratio", "now, `stable`"], lines)


def quiet_table(results: Found) -> str:
    """Seconds by the clock and processor seconds of the same stages on two quiet cores, as far as they were timed."""
    now = "now, quiet cores"
    columns = [("before, quiet cores", "safe"), (now, "safe"), (now, "stable"), (now, "paper")]

    def value(edition: str, preset: str, what: str) -> str:
        row = one_of(results.speed, edition=edition, preset=preset, points=10_000, what=what)
        return f"{row['value']:.2f}" if row else "–"

    lines = [
        [stage, *(" / ".join(value(*column, f"{unit}, {stage}") for unit in CLOCK_AND_PROCESSOR) for column in columns)]
        for stage in STAGES
    ]
    lines.append(["load of the machine", *(value(*column, "load average meanwhile") for column in columns)])
    heads = "before, `safe`", "now, `safe`", "now, `stable`", "now, `paper`"
    return markdown(["seconds by the clock / processor seconds", *heads], lines)


def torch_table(results: Found) -> str:
    """Processor seconds of altmas and of torch on the same work, in one run, and how many times as long torch takes."""

    def value(what: str, *, clock: bool = False) -> float:
        kind = CLOCK_AND_PROCESSOR[0 if clock else 1]
        row = one_of(results.speed, edition="now, beside torch", preset="paper", what=f"{kind}, {what}")
        return float(row["value"])

    lines = []
    for stage, sides in TORCH_SIDES.items():
        for side in sides:
            times = f"{value(f'{stage}, {side} / altmas'):.1f} / {value(f'{stage}, {side} / altmas', clock=True):.1f}"
            lines.append([stage, side, f"{value(f'{stage}, altmas'):.2f}", f"{value(f'{stage}, {side}'):.2f}", times])
    head = ["", "beside", "`altmas`", "torch", "times as long: processors / clock"]
    return markdown(head, lines)


# ---------------------------------------------------------------- claims


def claims_table(results: Found) -> str:
    """What the paper says in words, as comparisons of errors averaged over 100 to 500 labels."""
    lines = list(claims(lambda model, aim, method: results.row(model, aim, method, OVERALL)))
    lines.append(augmentation_line(results))
    return markdown(["claim of the paper", "measured by", "figures", "verdict"], lines)


def augmentation_line(results: Found) -> Line:
    """How much augmentation adds to the surrogate's accuracy on each model."""
    lifts: dict[str, float] = {}
    for model in MODELS:
        with_it, without = (results.ablation(model, name, OVERALL) for name in ("as published", "no augmentation"))
        if with_it.get("surrogate") is not None and without.get("surrogate") is not None:
            lifts[model] = with_it["surrogate"] - without["surrogate"]
    figures = ", ".join(f"{model} {lift:+.3f}" for model, lift in lifts.items()) or "–"
    what = "accuracy of the surrogate with augmentation minus without, averaged over 100 to 500 labels"
    return AUGMENTATION, what, figures, most_for_the_best(lifts)


# ---------------------------------------------------------------- the paper's four questions and its remarks

ORDINARY = ("mnist-70", "mnist-12")
"""The average and the bad model of the paper."""


def panels(results: Found, rival: str, models: Sequence[str] = MODELS, aims: Sequence[str] = tuple(AIMS)) -> str:
    """In how many panels `altmas` errs less than a rival, beyond two standard errors, in how many more."""
    return counted(lambda model, aim, method: results.row(model, aim, method, OVERALL), rival, models, aims)


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
        told = ", ".join(f"{name} {max(value, 0.0):.0%}" for name, value in closeness.items())
        lines.append((f"estimates are 90 to 100 % accurate on {model}: 1 - relative error of `altmas`", told))
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
    "speed quiet": quiet_table,
    "speed torch": torch_table,
    **paper_tuned_page.TABLES,
}


def page_with(results: Found, text: str) -> str:
    """The text with its tables made anew."""
    return with_tables(text, {name: table(results) for name, table in TABLES.items()})


def write_page(results: Found) -> None:
    PAGE.write_text(page_with(results, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    from benchmarks import paper_figures

    everything = Found.committed()
    write_page(everything)
    paper_figures.draw_all(everything, RESULTS)
