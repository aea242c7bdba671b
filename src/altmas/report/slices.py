"""What a report says of slices: the leading metrics on each value, and how they differ."""

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from altmas.errors import AltmasError
from altmas.estimates import FLOOR, Estimate
from altmas.guaranteed import estimates_of
from altmas.history import History
from altmas.methods import check as check_method
from altmas.metrics import metric_set
from altmas.pool.growth import values_in_order
from altmas.report.metrics import leading
from altmas.task import Task

if TYPE_CHECKING:
    from altmas.session import Session

Plain = dict[str, Any]

MOST_SLICES = 20


def slices_of(session: "Session", history: History) -> list[Plain]:
    """Every slice with its counts; an estimate only where enough of it is labelled."""
    slices = []
    labelled = np.zeros(len(session.pool), np.bool_)
    labelled[history.labelled] = True
    whole = [metric for metric in leading(session) if metric.on_slice("", "") is not None]
    for name, column in session.pool.slices.items():
        values, counts = values_in_order(session.pool, name, history.domains), Counter(column.tolist())
        largest = sorted(sorted(values, key=counts.__getitem__, reverse=True)[:MOST_SLICES], key=values.index)
        task = _slice_task(session, name, largest)
        answers = iter(estimates_of(session.method, task, history) if task.metrics else ())
        rows = []
        for value in largest:
            labels = int(labelled[column == value].sum())
            inside = [next(answers) for _ in whole]
            cells = [_slice_cell(estimate, labels, counts[value]) for estimate in inside]
            rows.append({"value": value, "points": counts[value], "labels": labels, "metrics": cells})
        slices.append(
            {
                "name": name,
                "metrics": [metric.name for metric in whole],
                "rows": rows,
                "left_out": len(values) - len(largest),
                "differences": _differences(session, history, name, rows),
            }
        )
    return slices


def _differences(session: "Session", history: History, name: str, rows: list[Plain]) -> list[Plain]:
    """The first metric on each value less that on the value with most points, where both have enough labels."""
    enough = [row for row in rows if row["metrics"] and not row["metrics"][0]["insufficient"]]
    if len(enough) < 2:
        return []
    largest = max(enough, key=lambda row: row["points"])
    against = largest["metrics"][0]["metric"]
    others = [row for row in enough if row is not largest]
    try:
        metrics = metric_set([f"{row['metrics'][0]['metric']} - {against}" for row in others], session.pool)
        check_method(session.method, session.pool, metrics)
    except AltmasError:  # a method that estimates no differences, or a name that can be read in two ways
        return []
    estimates = estimates_of(session.method, replace(session.task, metrics=metrics, targets=()), history)
    return [
        {"value": row["value"], "against": largest["value"]}
        | {"difference": estimate.value, "low": estimate.low, "high": estimate.high}
        for row, estimate in zip(others, estimates, strict=True)
    ]


def _slice_task(session: "Session", name: str, values: list[str]) -> Task:
    metrics = tuple(
        on_slice
        for value in values
        for metric in leading(session)
        if (on_slice := metric.on_slice(name, value)) is not None
    )
    return replace(session.task, metrics=metrics, targets=())


def _slice_cell(estimate: Estimate, labels: int, points: int) -> Plain:
    enough = labels >= min(FLOOR, points) and math.isfinite(estimate.value)
    values = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {
        "metric": estimate.metric,
        "insufficient": not enough,
        "note": estimate.note if enough and math.isnan(estimate.low) else "",
        **(values if enough else dict.fromkeys(values, math.nan)),
    }
