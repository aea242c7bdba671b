"""Sentences of the report: what a metric means, what an estimate says, what is assumed."""

import math
from dataclasses import dataclass, replace

from altmas.estimates import LEAST_DRAWN, Estimate
from altmas.metrics import Metric
from altmas.session.plan import Plan

NOT_DRAWN = "no drawn label is there yet, so there is no interval"
"""What is said of a session whose labels were all told without being asked for."""
KNOWN_WHOLLY = "Every label that decides it is known."


@dataclass(frozen=True)
class Verdict:
    """One estimate judged: a sentence, and a word for its colour: "good", "bad", "open" or "plain".

    side  of its threshold on which it is shown to lie, "above" or "below"; empty if that is open or there is none
    """

    sentence: str
    tone: str
    badge: str
    side: str = ""


def verdict_of(
    estimate: Estimate,
    metric: Metric,
    plan: Plan,
    *,
    early: bool = False,
    drawn: bool = True,
    proven: str | None = None,
) -> Verdict:
    """What the estimate says against its threshold or target, or by itself if it has neither.

    early   whether fewer labels were drawn than anything is decided by
    drawn   whether any was
    proven  "above", "below" or "undecided" by the test that holds at every look; None where there is none
    """
    if math.isnan(estimate.value):
        return Verdict(f"{metric.name} cannot be given yet: {estimate.note or 'undefined'}.", "open", "undefined")
    threshold, target = plan.thresholds.get(metric.name), plan.targets.get(metric.name)
    if math.isnan(estimate.low):
        why = "this method gives no interval, so nothing is guaranteed" if drawn else NOT_DRAWN
        return Verdict(f"{metric.name} is about {number(estimate.value)}; {why}.", "open", "no interval")
    if early and (threshold is not None or target is not None):
        few = f"nothing is decided with fewer than {LEAST_DRAWN} drawn labels"
        return Verdict(f"{_plainly(estimate).sentence[:-1]}; {few}.", "open", "too early")
    verdict = _against(threshold, estimate, metric, proven) if threshold is not None else _plainly(estimate)
    return verdict if target is None else _with_width(verdict, target, estimate, judged=threshold is not None)


def _plainly(estimate: Estimate) -> Verdict:
    if estimate.low == estimate.high:
        exact = f"{estimate.metric} is exactly {number(estimate.value)}: {KNOWN_WHOLLY[:1].lower()}{KNOWN_WHOLLY[1:]}"
        return Verdict(exact, "plain", "exact")
    return Verdict(
        f"{estimate.metric} is {number(estimate.value)}, and lies between {number(estimate.low)} and "
        f"{number(estimate.high)} with {percent(estimate.confidence)} confidence.",
        "plain",
        "estimated",
    )


def _against(threshold: float, estimate: Estimate, metric: Metric, proven: str | None) -> Verdict:
    """Where there is a test that holds at every look it decides, as it does for `check` and the stop rule."""
    limit = f"{threshold:g}"
    bounds = f"{number(estimate.value)}, interval {number(estimate.low)} to {number(estimate.high)}"
    above, below = ("bad", "good") if metric.lower_is_better else ("good", "bad")
    clear = "above" if estimate.low >= threshold else "below" if estimate.high < threshold else "undecided"
    side = clear if proven is None else proven
    if side == "undecided" and clear != "undecided":
        return Verdict(
            f"The interval of {estimate.metric} is clear of {limit} ({bounds}), but the test that holds at every look "
            "has not decided yet.",
            "open",
            "undecided",
        )
    if side == "undecided":
        return Verdict(
            f"It is undecided whether {estimate.metric} reaches {limit}, which lies inside its interval ({bounds}).",
            "open",
            "undecided",
        )
    test = "" if clear == side else ". The test that holds at every look shows it; the interval would be open"
    if side == "above":
        return Verdict(f"{estimate.metric} is at least {limit} ({bounds}){test}.", above, f"≥ {limit} shown", side)
    return Verdict(f"{estimate.metric} is below {limit} ({bounds}){test}.", below, f"< {limit} shown", side)


def _with_width(verdict: Verdict, target: float, estimate: Estimate, *, judged: bool) -> Verdict:
    reached = estimate.half_width <= target
    state = "reached" if reached else "not reached yet"
    now = number(estimate.half_width)
    if now == number(target):  # rounded alike, though one is the larger
        now = f"{estimate.half_width:.5f}"
    width = f"Wanted to within ± {target:g}: {state} (± {now})."
    if judged:
        return replace(verdict, sentence=f"{verdict.sentence} {width}")
    badge = f"± {target:g} reached" if reached else f"± {target:g} not yet"
    return Verdict(f"{verdict.sentence} {width}", "good" if reached else "open", badge)


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
