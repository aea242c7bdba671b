"""What the paper says in words, as comparisons of two figures that any run of its experiments can be asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.paper import AIMS, MODELS
from benchmarks.paper_found import WORDS, error_name, shown
from benchmarks.store import Row

RowOf = Callable[[str, str, str], Row]
"""(model, metric set, method) -> its row averaged over all numbers of labels, or an empty one."""
Line = tuple[str, str, str, str]
"""Claim, what it is measured by, the figures, the verdict."""
ABSENT = "not measured"
AUGMENTATION = "Augmentation lifts the surrogate most for the best model"


def verdict(better: Row, worse: Row, name: str) -> tuple[str, str]:
    """(figures, word): whether the first error is the smaller one, beyond two standard errors of the difference."""
    if any(row.get(name) is None for row in (better, worse)):
        return f"{shown(better, name)} against {shown(worse, name)}", ABSENT
    key = f"{name}_se"
    error = math.hypot(*(math.nan if row.get(key) is None else row[key] for row in (better, worse)))
    difference = worse[name] - better[name]
    word = "open" if not abs(difference) > 2 * error else "confirmed" if difference > 0 else "refuted"
    return f"{shown(better, name)} against {shown(worse, name)}", word


def claims(row: RowOf) -> Iterator[Line]:
    """Every claim that rests on errors and surrogates."""
    yield (
        "Tradition is good on the 99 % model and poor on the 12 % one",
        "`tradition`, 21 metrics, 99 % against 12 %",
        *verdict(row("mnist-99", "21-metrics", "tradition"), row("mnist-12", "21-metrics", "tradition"), "relative"),
    )
    for model in MODELS:
        for aim in AIMS:
            per_class = aim != "accuracy"
            if per_class or model == "mnist-99":
                claim = "ALT-MAS is better than BALD on " + ("per-class metrics" if per_class else "the 99 % model")
                name = error_name(model, aim)
                what = f"{model}, {WORDS[aim]}: `altmas` against `bald`, {name} error"
                yield claim, what, *verdict(row(model, aim, "altmas"), row(model, aim, "bald"), name)
    for model in MODELS:
        aim = "precision-2"
        mine, theirs = row(model, aim, "altmas"), row(model, aim, "bald")
        figures, worse = verdict(mine, theirs, "surrogate")
        _, better = verdict(mine, theirs, error_name(model, aim))
        what = f"{model}, {WORDS[aim]}: accuracy of the surrogate, `altmas` against `bald`"
        word = better if worse == "confirmed" else worse
        yield "The surrogate is worse, yet per-class estimates are better", what, figures, word


def most_for_the_best(lifts: Mapping[str, float]) -> str:
    """The verdict on the claim about augmentation, from what it adds to the surrogate's accuracy on each model."""
    if len(lifts) < len(MODELS):
        return ABSENT
    return "confirmed" if max(lifts, key=lifts.__getitem__) == "mnist-99" else "refuted"


def counted(row: RowOf, rival: str, models: Sequence[str] = MODELS, aims: Sequence[str] = tuple(AIMS)) -> str:
    """In how many panels `altmas` errs less than a rival, beyond two standard errors, in how many more."""
    words = [
        verdict(row(model, aim, "altmas"), row(model, aim, rival), error_name(model, aim))[1]
        for model in models
        for aim in aims
    ]
    counts = [words.count(word) for word in ("confirmed", "refuted", "open")]
    told = f"smaller error in {counts[0]} of {len(words)} panels, larger in {counts[1]}, open in {counts[2]}"
    absent = words.count(ABSENT)
    return told + (f", not measured in {absent}" if absent else "")
