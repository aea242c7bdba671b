"""Classes one by one: precision, recall and F1 of each, the worst of them, and what is taken for what."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from altmas.errors import MethodError, MetricError
from altmas.estimates import Estimate
from altmas.guaranteed import estimates_of
from altmas.history import History
from altmas.methods import unsupported
from altmas.metrics import Metric
from altmas.metrics.formulas import confusion, f1, of_class, precision, recall

if TYPE_CHECKING:
    from altmas.session import Session

Plain = dict[str, Any]

MOST_CLASSES = 12
"""Classes up to which the confusion matrix is shown; beyond, the largest confusions alone."""
MOST_ROWS = 300
"""Classes that are listed; beyond, those that are predicted most."""
WORST = 10
LARGEST = 10
CANDIDATES = 60
"""Pairs of classes whose confusion is estimated: those that labels met most often."""
MANY = 12
"""Metrics beyond which those of single classes stand in the table of classes alone."""
OF_CLASS = {"precision": precision, "recall": recall, "f1": f1}


def classes_of(session: "Session", history: History) -> Plain:
    """{"rows", "worst", "note"}: every class with its estimates, and the rows of the ten with the lowest F1."""
    pool = session.pool
    if not pool.models:
        return {"rows": [], "worst": [], "note": ""}
    called = np.round(pool.predicted_counts)
    listed = sorted(np.argsort(-called, kind="stable")[:MOST_ROWS].tolist())
    metrics = tuple(
        of_class(f"{kind}[{pool.classes[k]}]", of, k, kind=kind) for k in listed for kind, of in OF_CLASS.items()
    )
    estimates, note = estimated(session, history, metrics)
    if not estimates:
        return {"rows": [], "worst": [], "note": note}
    if len(listed) < len(pool.classes):
        note = f"the {len(listed)} most predicted of {len(pool.classes)} classes are listed"
    labels = _labels(session, history)
    rows = []
    for position, k in enumerate(listed):
        three = estimates[len(OF_CLASS) * position : len(OF_CLASS) * (position + 1)]
        values = {kind: bounds_of(estimate) for kind, estimate in zip(OF_CLASS, three, strict=True)}
        rows.append({"name": str(pool.classes[k]), "called": int(called[k]), "labels": labels[k], **values})
    return {"rows": rows, "worst": _worst(rows), "note": note}


def _labels(session: "Session", history: History) -> Counter[int]:
    """{class: labelled points that are called it or truly are it}."""
    counts: Counter[int] = Counter()
    for row, code in history.labels.items():
        counts.update({int(session.pool.predictions[row]), int(code)})
    return counts


def _worst(rows: Sequence[Plain]) -> list[int]:
    """Positions of the classes with the lowest F1, among those that labels tell about; none where all fit on a page."""
    able = [position for position, row in enumerate(rows) if row["labels"] and math.isfinite(row["f1"]["low"])]
    if len(rows) <= MOST_CLASSES:
        return []
    return sorted(able, key=lambda position: float(rows[position]["f1"]["value"]))[:WORST]


def estimated(session: "Session", history: History, metrics: tuple[Metric, ...]) -> tuple[Sequence[Estimate], str]:
    """(estimates, "") of metrics that the session was not asked for, or ((), why its method cannot give them)."""
    reason = unsupported(session.method, metrics)
    if reason:
        return (), f"method {session.method.name} {reason}"
    try:
        return estimates_of(session.method, replace(session.task, metrics=metrics, targets=()), history), ""
    except (MethodError, MetricError) as cause:
        return (), str(cause)


def bounds_of(estimate: Estimate) -> Plain:
    """Value and ends of an estimate."""
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


# ---------------------------------------------------------------- what is taken for what


def matrix_of(session: "Session", history: History) -> Plain:
    """Estimated number of points in each cell, predicted by true, with intervals; no cells where classes are many."""
    pool = session.pool
    classes = [str(name) for name in pool.classes]
    if len(classes) > MOST_CLASSES or not pool.models:
        return {"classes": [], "cells": [], "note": ""}
    counts = pool.predicted_counts
    cells = [(a, c) for a in range(len(classes)) for c in range(len(classes))]
    counted, why = _cells(session, history, cells)
    if not counted:
        return {"classes": [], "cells": [], "note": f"this method does not estimate single cells: {why}"}
    rows = [
        cell | {"share_of_row": cell["value"] / counts[cell["predicted"]] if counts[cell["predicted"]] else math.nan}
        for cell in counted
    ]
    return {"classes": classes, "cells": rows, "note": ""}


def confusions_of(session: "Session", history: History) -> list[Plain]:
    """The ten largest confusions among those that labels met: how many points are called one class and are another."""
    if not session.pool.models:
        return []
    met = Counter(
        (int(session.pool.predictions[row]), int(code))
        for row, code in history.labels.items()
        if session.pool.predictions[row] != code
    )
    counted, _ = _cells(session, history, [pair for pair, _ in met.most_common(CANDIDATES)])
    able = [cell for cell in counted if math.isfinite(cell["value"])]
    names = [str(name) for name in session.pool.classes]
    return [
        {"predicted": names[cell["predicted"]], "true": names[cell["true"]]}
        | {key: cell[key] for key in ("value", "low", "high")}
        | {"labels": met[cell["predicted"], cell["true"]]}
        for cell in sorted(able, key=lambda cell: -cell["value"])[:LARGEST]
    ]


def _cells(session: "Session", history: History, cells: Sequence[tuple[int, int]]) -> tuple[list[Plain], str]:
    """({"predicted", "true", "value", "low", "high"} in numbers of points, or why there are none)."""
    names = session.pool.classes
    metrics = tuple(confusion(f"confusion[{names[a]},{names[c]}]", a, c, len(names)) for a, c in cells)
    estimates, why = estimated(session, history, metrics) if metrics else ((), "")
    size = session.pool.rows_meant
    rows = [
        {"predicted": a, "true": c} | {key: value * size for key, value in bounds_of(estimate).items()}
        for (a, c), estimate in zip(cells, estimates, strict=False)
    ]
    return rows, why
