"""What a report says of each metric: its estimate, verdict and cross-check, the path to it, and what is to come."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from altmas.estimates import LEAST_DRAWN, Estimate, Estimates, shown_worth
from altmas.guaranteed import NotOffered, estimates_of, guaranteed_decision
from altmas.history import History
from altmas.intervals import wilson
from altmas.methods import inclusion_of
from altmas.methods.assured.diagnostics import ALARM
from altmas.methods.held_up import counted_labels
from altmas.metrics import Metric
from altmas.metrics.averages import LABELS_PER_CLASS
from altmas.pool import Pool
from altmas.report.classes import MANY, OF_CLASS
from altmas.report.words import verdict_of
from altmas.weighted import Sample, has_probabilities, labels_behind, sample_of, weighted_interval

if TYPE_CHECKING:
    from altmas.session import Session

Plain = dict[str, Any]

MOST_METRICS = 6
"""Metrics whose path, slices and sensitivity are shown."""
PATH_POINTS = 8
PATIENCE = 5.0
"""Seconds after which no more of the past is computed again for the path; what was logged on the way is free."""


def metrics_of(session: "Session", history: History, estimates: Estimates) -> list[Plain]:
    """Each metric with its estimate, verdict, gain over random sampling and the cross-check without any belief."""
    rows = []
    complete = len(history.labels) == len(session.pool)
    counted = counted_labels(session.method, session.task, history)
    early = counted < LEAST_DRAWN and not (complete and not session.task.beyond)
    single = session.pool.weights is None and session.task.units is None
    checkable = has_probabilities(history) and not complete and single
    sample = (
        sample_of(session.pool, history, inclusion_of(session.method, session.pool, history)) if checkable else None
    )
    for metric, estimate in zip(session.task.metrics, estimates, strict=True):
        check, apart = ((math.nan, math.nan, math.nan), False)
        if sample is not None:
            check, apart = _cross_check(session.pool, history, metric, estimate, sample)
        worth = shown_worth(estimate.effective_labels, counted)
        gain = worth / estimate.labels if estimate.labels else math.nan
        rows.append(
            asdict(estimate)
            | {
                "meaning": metric.meaning(session.pool),
                "verdict": asdict(
                    verdict_of(
                        estimate,
                        metric,
                        session.plan,
                        early=early,
                        drawn=history.drawn_labels > 0,
                        proven=_proven(session, history, metric),
                    )
                ),
            }
            | {"threshold": session.plan.thresholds.get(metric.name), "target": session.plan.targets.get(metric.name)}
            | {"worth": worth, "gain": gain, "bounds": list(metric.bounds), "unit": metric.unit}
            | {"lower_is_better": metric.lower_is_better}
            | {"kind": metric.kind, "where": metric.where}
            | {"check": {"value": check[0], "low": check[1], "high": check[2], "apart": apart}}
        )
    return rows


def _cross_check(
    pool: Pool, history: History, metric: Metric, estimate: Estimate, sample: Sample
) -> tuple[tuple[float, float, float], bool]:
    """((value, low, high) from weighted labels alone, whether the estimate is too far from it to be chance).

    None is made where a class has fewer than LABELS_PER_CLASS labels: one without any would count as 0. A few labels
    that are all right have no spread, so a share has to be outside Wilson's interval of as many trials as well.
    """
    behind = labels_behind(pool, history, metric)
    if behind.fewest < LABELS_PER_CLASS:
        return (math.nan, math.nan, math.nan), False
    check = weighted_interval(pool, history, metric, estimate.confidence, sample)
    _, low, high = weighted_interval(pool, history, metric, math.erf(ALARM / math.sqrt(2)), sample)
    if metric.bounds == (0, 1) and not math.isnan(check[0]):
        ends = wilson(min(max(check[0], 0.0), 1.0), behind.trials, ALARM)
        low, high = min(low, ends[0]), max(high, ends[1])
    return check, bool(estimate.value < low or estimate.value > high)


def forecast_of(session: "Session") -> Plain | None:
    """What further labels are likely to bring; None without a goal that is open, or where nobody can tell."""
    if all(goal.reached for goal in session.goals()):
        return None
    ahead = session.forecast()
    if ahead is None:
        return None
    return {name: getattr(ahead, name) for name in ("labels", "until", "chance", "more")} | {"words": str(ahead)}


def _proven(session: "Session", history: History, metric: Metric) -> str | None:
    """What the test that holds at every look says of the metric's threshold; None where the interval decides.

    That is without a threshold, where all labels that it is about are known, and where no proof is offered or was
    asked for.
    """
    threshold = session.plan.thresholds.get(metric.name)
    exact = len(history.labels) == len(session.pool) and not session.task.beyond
    if threshold is None or exact:
        return None
    decision = guaranteed_decision(session.method, session.task, history, metric, threshold)
    if isinstance(decision, NotOffered):
        return "undecided" if session.plan.guarantee else None
    return decision.answer


def path_of(session: "Session", history: History, estimates: Estimates) -> list[Plain]:
    """The estimates of the leading metrics at a handful of label counts, the last one being now."""
    names = [metric.name for metric in leading(session)]
    now = len(history.labels)
    logged = {estimate["labels"]: estimate for estimate in session.logged_estimates()}
    started = time.monotonic()
    rows = []
    for labels in label_counts(now):
        if labels == now:
            by_metric: Mapping[str, Estimate | Plain] = {estimate.metric: estimate for estimate in estimates}
        elif labels in logged:
            by_metric = {estimate["metric"]: estimate for estimate in logged[labels]["estimates"]}
        elif time.monotonic() - started > PATIENCE:
            continue
        else:
            past = session.at(labels)
            task = replace(session.task, metrics=leading(session), targets=())
            if len(past.task.pool) < len(session.pool):  # of the pool as it then was
                task = replace(past.task, metrics=tuple(metric for metric in past.task.metrics if metric.name in names))
            task = replace(task, guarantee=False)  # proofs of every step would take minutes
            by_metric = {estimate.metric: estimate for estimate in estimates_of(session.method, task, past.history)}
        for name in names:
            estimate = by_metric.get(name)
            if estimate is not None:
                values = estimate if isinstance(estimate, Mapping) else asdict(estimate)
                rows.append({"labels": labels} | {key: values[key] for key in ("metric", "value", "low", "high")})
    return rows


def leading(session: "Session", among: Sequence[Metric] | None = None) -> tuple[Metric, ...]:
    """The metrics with a threshold or target first, then the others; as many as are shown in detail.

    among  those to choose from, by default all that the session was asked for

    Where they are many, those of single classes come last and only if there are no others.
    """
    aims = {**session.plan.thresholds, **session.plan.targets}
    metrics = session.task.metrics if among is None else tuple(among)
    if len(metrics) > MANY:
        general = [
            metric
            for metric in metrics
            if metric.name in aims or not metric.is_one_of(OF_CLASS) or metric.where is not None
        ]
        metrics = tuple(general) or metrics
    return tuple(sorted(metrics, key=lambda metric: metric.name not in aims)[:MOST_METRICS])


def label_counts(now: int, points: int = PATH_POINTS) -> list[int]:
    """Up to so many label counts from a few to now, evenly spaced in square roots: so do widths shrink."""
    if now == 0:
        return []
    roots = np.linspace(min(now, 10) ** 0.5, now**0.5, points)
    return sorted({round(root**2) for root in roots})
