"""When a session may stop, and what is missing."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from altmas.estimates import ABOUT_WHAT, LEAST_DRAWN, Estimate, Estimates
from altmas.forecast import Forecast
from altmas.guarantee import Evidence
from altmas.guaranteed import NotNow, NotOffered
from altmas.session.plan import Plan

Proof = Callable[[str, float], Evidence | NotNow | NotOffered]
"""(metric, threshold) -> what a proof for every look says of it."""


def no_proof(name: str, threshold: float) -> NotOffered:
    """The proof of a session for which none is offered: intervals decide."""
    return NotOffered("no proof is offered")


@dataclass(frozen=True)
class Goal:
    """A target or a threshold of the plan, and whether it is reached.

    kind  "target": `wanted` is the half-width asked for; "threshold": the value that the interval has to leave
    have  the half-width now
    note  why there is no proof yet, or that an interval decides
    """

    metric: str
    kind: str
    wanted: float
    have: float
    reached: bool
    note: str = ""

    def __str__(self) -> str:
        have = "not known yet" if math.isnan(self.have) else f"±{self.have:.3g}"
        if self.kind == "target":
            return f"{self.metric}: {have}, wanted ±{self.wanted:g}"
        why = f" ({self.note})" if self.note and not self.reached else ""
        return f"{self.metric}: {'clear' if self.reached else 'not clear'} of {self.wanted:g}{why}"


@dataclass(frozen=True)
class Decision:
    """Whether to stop, and the rule that says so, or what is still missing.

    ahead  makes the forecast; called when `forecast` is read
    """

    stop: bool
    reason: str
    ahead: Callable[[], Forecast | None] = field(default=lambda: None, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.stop

    @property
    def forecast(self) -> Forecast | None:
        """What further labels are likely to bring; None with too few labels, or a method that cannot tell."""
        return self.ahead()


def decide(
    plan: Plan,
    labels: int,
    drawn: int,
    left: int,
    estimates: Callable[[], Estimates],
    proven: Proof = no_proof,
    unasked: int = 0,
    waiting: int = 0,
) -> Decision:
    """The first rule that fires: budget spent, nothing left to label, every target reached, every threshold decided.

    drawn      labels of points that the method drew: below LEAST_DRAWN no target is reached, no threshold decided
    unasked    labels of points that it did not draw;  waiting  of draws that do not count yet, besides `drawn`
    left       points that could still be labelled
    estimates  called only where a target or a threshold needs them
    proven     on which side of a threshold a metric lies, with a proof for every look; where none is offered for it,
               and the session has no guarantee, the interval of the estimate decides
    """
    if plan.budget is not None and labels >= plan.budget:
        spent = f"the budget of {plan.budget} labels is spent"
        if left == 0:
            spent += " and every point of the pool is labelled or skipped"
        elif unasked and drawn < LEAST_DRAWN:
            unasked = min(unasked, plan.budget)
            spent += f", {unasked} of them by labels that were not asked for: raise it to have items drawn"
        return Decision(True, spent)
    if left == 0:
        return Decision(True, "every point of the pool is labelled or skipped")
    if not plan.targets and not plan.thresholds:
        return Decision(False, "the budget is not spent and no target was set")
    if drawn + waiting < LEAST_DRAWN:
        return Decision(False, f"{drawn} drawn labels: nothing is decided with fewer than {LEAST_DRAWN}")
    current = estimates()
    goal_list = goals(plan, drawn, current, proven, waiting)
    targets = [goal for goal in goal_list if goal.kind == "target"]
    thresholds = [goal for goal in goal_list if goal.kind == "threshold"]
    if targets and all(goal.reached for goal in targets):
        return Decision(True, "every target is reached")
    by_name = {estimate.metric: estimate for estimate in current}
    missing = [_too_wide(by_name[goal.metric], goal.wanted, current.about) for goal in targets if not goal.reached]
    if thresholds and all(goal.reached for goal in thresholds):
        return Decision(True, "; ".join(["every threshold is decided", *missing]))
    missing += [
        f"{goal.metric} is not clear of {goal.wanted:g} yet{f' ({goal.note})' if goal.note else ''}"
        for goal in thresholds
        if not goal.reached
    ]
    return Decision(False, "; ".join(missing))


def goals(plan: Plan, drawn: int, estimates: Estimates, proven: Proof = no_proof, waiting: int = 0) -> tuple[Goal, ...]:
    """Every target and threshold of the plan with how far it is; none is reached with fewer than LEAST_DRAWN labels."""
    by_name = {estimate.metric: estimate for estimate in estimates}
    enough, goal_list = drawn >= LEAST_DRAWN, []
    for name, target in plan.targets.items():
        have = by_name[name].half_width
        goal_list.append(Goal(name, "target", target, have, bool(enough and have <= target)))
    for name, value in plan.thresholds.items():
        proof = proven(name, value) if drawn + waiting >= LEAST_DRAWN else NotNow("")
        if isinstance(proof, NotOffered):
            clear = enough and settled(by_name[name], value) and not plan.guarantee
        else:
            clear = enough and proof.answer != "undecided"
        note = proof.why if isinstance(proof, NotNow) else ""
        goal_list.append(Goal(name, "threshold", value, by_name[name].half_width, clear, note))
    return tuple(goal_list)


def _too_wide(estimate: Estimate, target: float, about: str) -> str:
    """What is missing for a target; about more than the pool it may be more than the pool can give."""
    if estimate.least_half_width > target:
        return (
            f"{estimate.metric} will not get within {target:g} with this pool: about {ABOUT_WHAT[about]}, "
            f"\u00b1{estimate.least_half_width:.3g} is left when every point is labelled"
        )
    return f"{estimate.metric} is not within {target:g} yet"


def may_stop(goal_list: Sequence[Goal]) -> bool:
    """Whether every target is reached, or every threshold decided."""
    kinds = [[goal.reached for goal in goal_list if goal.kind == kind] for kind in ("target", "threshold")]
    return any(reached and all(reached) for reached in kinds)


def settled(estimate: Estimate, threshold: float) -> bool:
    """Whether the interval lies wholly on one side of the threshold."""
    return bool(estimate.low >= threshold or estimate.high < threshold)
