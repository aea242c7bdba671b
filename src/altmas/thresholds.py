"""Which threshold of a score keeps a metric where it should be: a fixed sequence of tests (S11).

Recall falls as the threshold rises. The candidates are fixed before any label is looked at: thresholds at which the
scores themselves expect recall to fall by equal steps. They are tested from the lowest up, each at the confidence of
the session, until the first at which the claim is not shown; the last before it is the answer. Each test may use the
whole error because no later one is made unless all before it succeeded (Maurer, Hothorn and Lehmacher 1995). Precision
and specificity rise with the threshold: they are tested downwards, from where a fifth of the class is expected above,
as hardly any label tells about fewer points. Each test is one by the interval for many looks, as that of `check`, or in
a session with a guarantee the one with a proof.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from altmas.claims import Claim, metric_of
from altmas.errors import MethodError, MetricError, PlanError
from altmas.estimates import LEAST_DRAWN, Estimate
from altmas.frames import plain
from altmas.guaranteed import NotOffered, decided_by, estimates_of, games_of
from altmas.methods.held_up import counted_labels
from altmas.metrics import Metric, metric_set
from altmas.metrics.metric import scores_of
from altmas.pool import Pool
from altmas.types import Array

if TYPE_CHECKING:
    from altmas.session import Session

Row = tuple[float, Estimate, Estimate]
"""A candidate, and the estimates of the claim's metric and of what is paid for it there."""

CANDIDATES = 40
"""Thresholds that are tested."""

FIRST_STEPS = (0.1, 0.2, 0.4)
"""Further thresholds below the first of these, in their steps."""

SINGLE = 1e-6
"""Relative error that a number in single precision surely does not have."""

FIRST_SHARE = 0.2
"""Expected recall at the first threshold that is tested for a metric that rises with it."""
CHOSEN_FOR = "recall, precision, specificity and npv"
"""Metrics for which thresholds are chosen. That npv falls with the threshold is a rule; tests hold in any case."""


@dataclass(frozen=True)
class ThresholdChoice:
    """The threshold that is shown to keep a claim, with what it costs.

    threshold  nan if the claim is shown at no candidate
    kept, cost estimates of the claim's metric and of what is paid for it, at the threshold (or at the first candidate)
    path       (threshold, kept, cost) of every candidate, from the lowest up
    """

    claim: Claim
    threshold: float
    kept: Estimate
    cost: Estimate
    path: tuple[Row, ...]
    from_below: bool = True
    too_early: bool = False

    @property
    def found(self) -> bool:
        """Whether there is such a threshold."""
        return not math.isnan(self.threshold)

    def __str__(self) -> str:
        kept, cost = (
            f"{estimate.metric} {estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"
            for estimate in (self.kept, self.cost)
        )
        labels = f"{self.kept.labels} label{'' if self.kept.labels == 1 else 's'}"
        if self.too_early:
            return f"no threshold yet: nothing is called shown with fewer than {LEAST_DRAWN} drawn labels ({labels})"
        if not self.found:
            return f"no threshold is shown to keep it: {self.claim} ({labels}; at the first one, {kept})"
        end = "largest" if self.from_below else "smallest"
        return f"{self.threshold:.6g} is the {end} threshold shown to keep it: {self.claim} ({kept}; {cost}; {labels})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON (undefined numbers are None)."""
        rows = [{"threshold": t, "kept": plain(asdict(a)), "cost": plain(asdict(b))} for t, a, b in self.path]
        claim = {"metric": self.claim.metric, "relation": self.claim.relation, "value": self.claim.value}
        return {
            "claim": claim,
            "threshold": self.threshold if self.found else None,
            "kept": plain(asdict(self.kept)),
            "cost": plain(asdict(self.cost)),
            "path": rows,
        }


def choose_threshold(session: "Session", text: str) -> ThresholdChoice:
    """The threshold of a session's scores that is shown to keep a claim such as "recall[cat] >= 0.9"."""
    claim = Claim.parse(text)
    metric = _metric_of(claim, session.pool)
    if not session.method.traits.any_metric:
        raise MethodError(f"method {session.method.name!r} cannot estimate metrics at a threshold; assured can")
    grid = candidates(scores_of(session.pool, metric.model)[:, metric.classes[0]])
    kept, cost = (_along(kind, metric, grid, session.pool) for kind in (metric.kind, metric.about.paid_in))
    task = replace(session.task, metrics=(*kept.values(), *cost.values()), targets=(), stopping=True)
    estimates = estimates_of(session.method, task, session.history)
    path = tuple((t, estimates[kept[t].name], estimates[cost[t].name]) for t in grid if t in kept and t in cost)
    complete = len(session.history.labels) == len(session.pool) and not session.task.beyond
    early = counted_labels(session.method, session.task, session.history) < LEAST_DRAWN and not complete
    order = path if metric.about.falls else path[: max(1, round(len(path) * (1 - FIRST_SHARE)))][::-1]
    best, threshold = order[0], math.nan
    shown = _shown(session, claim, kept, complete=complete)
    for row in () if early else order:
        if not shown(row):
            break
        best, threshold = row, row[0]
    return ThresholdChoice(claim, threshold, best[1], best[2], path, metric.about.falls, early)


def _shown(session: "Session", claim: Claim, kept: dict[float, Metric], *, complete: bool) -> Callable[[Row], bool]:
    """Whether the claim is shown at a candidate: by a proof in a session with a guarantee, else by the interval."""
    if not session.task.guarantee or complete:
        return lambda row: claim.answer(row[1]) == "shown"
    task, history = session.task, session.history
    games = dict(zip(kept, games_of(session.method, task, history, list(kept.values())), strict=True))

    def proven(row: Row) -> bool:
        proof = decided_by(games[row[0]], task, history, claim.value)
        return not isinstance(proof, NotOffered) and claim.proven(proof.answer) == "shown"

    return proven


def _metric_of(claim: Claim, pool: Pool) -> Metric:
    """The metric of the claim, without a threshold of its own; PlanError or MetricError if none can be chosen."""
    metric = metric_of(claim, pool, "threshold for")
    accepted = f"write a claim such as 'recall[{pool.classes[-1]}] >= 0.9'; thresholds are chosen for {CHOSEN_FOR}"
    if not metric.about.paid_in or metric.where is not None or metric.threshold is not None:
        raise PlanError(f"threshold for {claim.metric!r}: no threshold can be chosen for it; {accepted}")
    if claim.relation not in (">=", ">"):
        raise PlanError(f"threshold for {claim.metric!r}: expected >= or >, got {claim.relation!r}; {accepted}")
    if not 0 < claim.value < 1:
        raise PlanError(f"threshold for {claim.metric!r}: {claim.value:g} is no share between 0 and 1; {accepted}")
    return metric


def candidates(scores: Array) -> list[float]:
    """Thresholds, from the lowest up, between which the scores expect equal shares of the points of the class.

    The first are closer: claims of high recall are settled there. Each is a short number between two scores, clear of
    both: scores are kept in single precision, so that a score itself could be on another side in the table that it
    came from. Every threshold has points below it: one that all points reach keeps any recall and tells nothing.
    """
    ordered = np.sort(np.asarray(scores, np.float64))
    below = np.cumsum(ordered) - ordered
    steps = np.array([*FIRST_STEPS, *np.arange(1, CANDIDATES)]) / CANDIDATES * ordered.sum()
    positions = np.minimum(np.searchsorted(below, steps), len(ordered) - 1)
    chosen = np.unique(ordered[positions])
    before = np.searchsorted(ordered, chosen) - 1
    pairs = [(float(ordered[index]), high) for index, high in zip(before, chosen.tolist(), strict=True) if index >= 0]
    return sorted({between(low, high) for low, high in pairs}) or [float(ordered[0])]


def between(low: float, high: float) -> float:
    """The number with the fewest digits near the middle that is above `low` and not above `high`, clear of both."""
    above, below = low + SINGLE * max(abs(low), SINGLE), high - SINGLE * max(abs(high), SINGLE)
    for digits in range(1, 17):
        rounded = round((low + high) / 2, digits)
        if above < rounded < below:
            return rounded
    return high


def _along(kind: str, metric: Metric, grid: list[float], pool: Pool) -> dict[float, Metric]:
    """{threshold: metric of that kind}, where it can be defined."""
    metrics = {}
    before = "" if metric.model is None else f"{metric.model}: "
    for threshold in grid:
        try:
            (metrics[threshold],) = metric_set(f"{before}{kind}[{pool.classes[metric.classes[0]]},{threshold!r}]", pool)
        except MetricError as refused:  # precision where no score reaches the threshold
            if "can never be defined" not in str(refused):
                raise
    return metrics
