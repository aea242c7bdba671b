"""Sentences of the report: what a metric means, what an estimate says, what is assumed."""

import math
from dataclasses import dataclass

from altmas.estimates import LEAST_DRAWN, Estimate
from altmas.metrics import Metric
from altmas.session.plan import Plan


@dataclass(frozen=True)
class Verdict:
    """One estimate judged: a sentence, and a word for its colour: "good", "bad", "open" or "plain"."""

    sentence: str
    tone: str
    badge: str


def verdict_of(
    estimate: Estimate, metric: Metric, plan: Plan, *, early: bool = False, proven: str | None = None
) -> Verdict:
    """What the estimate says against its threshold or target, or by itself if it has neither.

    early   whether fewer labels were drawn than anything is decided by
    proven  "above", "below" or "undecided" by the test that holds at every look; None where there is none
    """
    if math.isnan(estimate.value):
        return Verdict(f"{metric.name} cannot be given yet: {estimate.note or 'undefined'}.", "open", "undefined")
    threshold, target = plan.thresholds.get(metric.name), plan.targets.get(metric.name)
    if math.isnan(estimate.low):
        return Verdict(
            f"{metric.name} is about {number(estimate.value)}; this method gives no interval, so nothing is "
            "guaranteed.",
            "open",
            "no interval",
        )
    if early and (threshold is not None or target is not None):
        few = f"nothing is decided with fewer than {LEAST_DRAWN} drawn labels"
        return Verdict(f"{_plainly(estimate).sentence[:-1]}; {few}.", "open", "too early")
    said = _against(threshold, estimate, metric, proven) if threshold is not None else _plainly(estimate)
    return said if target is None else _with_width(said, target, estimate, judged=threshold is not None)


def _plainly(one: Estimate) -> Verdict:
    if one.low == one.high:
        return Verdict(f"{one.metric} is exactly {number(one.value)}: every point is labelled.", "plain", "exact")
    return Verdict(
        f"{one.metric} is {number(one.value)}, and lies between {number(one.low)} and {number(one.high)} with "
        f"{percent(one.confidence)} confidence.",
        "plain",
        "estimated",
    )


def _against(threshold: float, one: Estimate, metric: Metric, proven: str | None) -> Verdict:
    wanted = f"{threshold:g}"
    bounds = f"{number(one.value)}, interval {number(one.low)} to {number(one.high)}"
    above, below = ("bad", "good") if metric.lower_is_better else ("good", "bad")
    clear = "above" if one.low >= threshold else "below" if one.high < threshold else "undecided"
    if clear != "undecided" and proven not in (None, clear):
        return Verdict(
            f"The interval of {one.metric} is clear of {wanted} ({bounds}), but the test that holds at every look has "
            "not decided yet.",
            "open",
            "undecided",
        )
    if clear == "above":
        return Verdict(f"{one.metric} is at least {wanted} ({bounds}).", above, f"≥ {wanted} shown")
    if clear == "below":
        return Verdict(f"{one.metric} is below {wanted} ({bounds}).", below, f"< {wanted} shown")
    return Verdict(
        f"It is undecided whether {one.metric} reaches {wanted}, which lies inside its interval ({bounds}).",
        "open",
        "undecided",
    )


def _with_width(said: Verdict, target: float, one: Estimate, *, judged: bool) -> Verdict:
    reached = one.half_width <= target
    state = "reached" if reached else "not reached yet"
    now = number(one.half_width)
    if now == number(target):  # rounded alike, though one is the larger
        now = f"{one.half_width:.5f}"
    width = f"Wanted to within ± {target:g}: {state} (± {now})."
    if judged:
        return Verdict(f"{said.sentence} {width}", said.tone, said.badge)
    badge = f"± {target:g} reached" if reached else f"± {target:g} not yet"
    return Verdict(f"{said.sentence} {width}", "good" if reached else "open", badge)


def number(value: float) -> str:
    """A value with as many digits as a reader can use."""
    if not math.isfinite(value):
        return "undefined"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.3g} %"


def plural(count: int, one: str, many: str | None = None) -> str:
    """'1 label', '2 labels'."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
