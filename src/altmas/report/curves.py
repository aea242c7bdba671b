"""ROC curve, precision-recall curve and reliability diagram, each point with its own interval.

They are drawn where a session asks about scores. For two classes the curves are those of the class that the first such
metric names, by default the second, and the reliability diagram is that of the second. For more classes the reliability
diagram alone is drawn: the score of the predicted class against the share of right answers.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from altmas.estimates import Estimate
from altmas.guaranteed import estimates_of
from altmas.history import History
from altmas.metrics import Metric, metric_set
from altmas.metrics.metric import scores_of
from altmas.metrics.scores import BINS, bins_of, calibrated_scores, share_in_bin
from altmas.report.classes import bounds_of
from altmas.thresholds import candidates

if TYPE_CHECKING:
    from altmas.session import Session

Plain = dict[str, Any]

POINTS = 13
"""Thresholds of a curve."""
MOST_POINTS = 300_000
"""Points of a pool up to which curves are drawn: each point of a curve is a metric of the whole pool."""


def curves_of(session: "Session", history: History) -> list[Plain]:
    """One entry for each model with scores that a metric asks about."""
    models = {part.model for metric in session.task.metrics for _, part in metric.parts if part.of_scores}
    if not models or not session.method.traits.any_metric or len(session.pool) > MOST_POINTS or not history.labels:
        return []
    return [_of_model(session, history, model) for model in sorted(models, key=str)]


def _of_model(session: "Session", history: History, model: str | None) -> Plain:
    pool = session.pool
    shown: Plain = {"model": model, "class": str(pool.classes[1]) if len(pool.classes) == 2 else None}
    scores, _ = calibrated_scores(pool, model)
    bins = bins_of(scores, np.ones(len(pool)) if pool.weights is None else pool.weights)
    used = [b for b in range(BINS) if (bins == b).any()]
    estimates = _estimates(session, history, (share_in_bin(f"bin {b}", b, model) for b in used))
    shown["reliability"] = [
        {"score": float(scores[bins == b].mean()), "points": int((bins == b).sum())} | bounds_of(estimates[f"bin {b}"])
        for b in used
    ]
    if len(pool.classes) == 2:
        code = _asked(session, model)
        return shown | {"curve_class": str(pool.classes[code]), "thresholds": _along(session, history, model, code)}
    return shown | {"curve_class": None, "thresholds": []}


def _asked(session: "Session", model: str | None) -> int:
    """The class that the first metric of this model's scores names; the second where none does."""
    parts = (part for metric in session.task.metrics for _, part in metric.parts if part.of_scores)
    return next((part.classes[0] for part in parts if part.model == model and len(part.classes) == 1), 1)


def _along(session: "Session", history: History, model: str | None, code: int) -> list[Plain]:
    """Recall, specificity and precision of a class at thresholds of its score."""
    pool, before = session.pool, "" if model is None else f"{model}: "
    scores = scores_of(pool, model)[:, code]
    grid = sorted({float(scores.min()), *candidates(scores)})  # a curve begins where every point is called so
    grid = [grid[index] for index in np.unique(np.linspace(0, len(grid) - 1, POINTS).astype(int))]
    kinds = ("recall", "specificity", "precision")
    names = {(t, kind): f"{before}{kind}[{pool.classes[code]},{t!r}]" for t in grid for kind in kinds}
    metrics = metric_set(list(names.values()), pool)
    named = dict(zip(names, metrics, strict=True))
    estimates = _estimates(session, history, metrics)
    return [{"threshold": t} | {kind: bounds_of(estimates[named[t, kind].name]) for kind in kinds} for t in grid]


def _estimates(session: "Session", history: History, metrics: Iterable[Metric]) -> dict[str, Estimate]:
    task = replace(session.task, metrics=tuple(metrics), targets=(), stopping=False, guarantee=False)
    return {estimate.metric: estimate for estimate in estimates_of(session.method, task, history)}
