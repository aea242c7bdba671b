"""Several models side by side: each metric of each of them, and how far they agree."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from altmas.alone import judge_quality
from altmas.errors import AltmasError
from altmas.estimates import Estimate, Estimates
from altmas.history import History
from altmas.methods.assured.contest import ComparesModels
from altmas.metrics import Metric
from altmas.monitoring import monitor
from altmas.pool.growth import WAVE
from altmas.ranking import ranking
from altmas.report.classes import bounds_of

if TYPE_CHECKING:
    from altmas.session import Session

Plain = dict[str, Any]

MOST_METRICS = 12
"""Metrics in the table of models."""


def models_of(session: "Session", history: History, estimates: Estimates) -> Plain:
    """{"names", "rows", "agree", "note"}: a row for each metric with one cell for each model; no rows for one model."""
    pool = session.pool
    names = [model.name for model in pool.models]
    if len(names) < 2:
        return {"names": names, "rows": [], "agree": None, "note": ""}
    answers = np.stack([model.predictions for model in pool.models])
    rows = _rows(session.task.metrics, estimates, names)
    left_out = len(rows) - MOST_METRICS
    note = f"{left_out} more metrics stand in the table of estimates" if left_out > 0 else ""
    agree = float((answers == answers[0]).all(axis=0).mean())
    return {"names": names, "rows": rows[:MOST_METRICS], "agree": agree, "note": note}


def quality_of(session: "Session") -> Plain:
    """{"names", "rows"}: how far each model agrees with the labels, if the session has metrics of the truth.

    Metrics of agreement that the session itself asks for are left out.
    """
    names, planned = [model.name for model in session.pool.models], {metric.name for metric in session.task.metrics}
    cells: dict[str, dict[str, Estimate]] = {}
    for estimate in judge_quality(session) or ():
        if estimate.metric not in planned:
            model = estimate.model or names[0]
            cells.setdefault(estimate.metric.removeprefix(f"{model}: "), {})[model] = estimate
    return {"names": names, "rows": _side_by_side(cells, names)}


def ranking_of(session: "Session") -> Plain | None:
    """The ranking of the models by the session's metric; None for one model, or where the method does not rank."""
    if len(session.pool.models) < 2 or not isinstance(session.method, ComparesModels):
        return None
    try:
        ranked = ranking(session)
    except AltmasError:  # no metric that every model has
        return None
    return ranked.to_dict() | {name: getattr(ranked, name) for name in ("summary", "finding", "outlook")}


def waves_of(session: "Session") -> Plain | None:
    """The first metric in each wave, with its alarm; None without waves, or where the metric has no level there."""
    if WAVE not in session.pool.slices:
        return None
    try:
        watched = monitor(session)
    except AltmasError:  # a metric that is about no wave
        return None
    return watched.to_dict() if len(watched) > 1 else None


def _rows(metrics: Sequence[Metric], estimates: Estimates, names: list[str]) -> list[Plain]:
    cells: dict[str, dict[str, Estimate]] = {}
    for metric, estimate in zip(metrics, estimates, strict=True):
        if metric.model is not None:
            cells.setdefault(metric.name.removeprefix(f"{metric.model}: "), {})[metric.model] = estimate
    return _side_by_side(cells, names)


def _side_by_side(cells: dict[str, dict[str, Estimate]], names: list[str]) -> list[Plain]:
    return [
        {"metric": name, "cells": [_cell(of_model.get(model)) for model in names]} for name, of_model in cells.items()
    ]


def _cell(estimate: Estimate | None) -> Plain | None:
    return None if estimate is None else bounds_of(estimate) | {"labels": estimate.labels}
