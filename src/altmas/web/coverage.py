"""Who labelled how, and which classes and slices the labels cover."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np

from altmas.session import Session
from altmas.session.snapshot import Status
from altmas.session.store import Event

TOO_FAST = 0.25
"""An answer is too fast if it took less than this share of everybody's median time."""
SLICE_VALUES = 60
"""Values of a slice that are listed: those with the fewest labels."""


def people(standing: Sequence[Event], status: Status) -> list[dict[str, Any]]:
    """For each annotator: counts, pace, answers that were too fast, and how often others agree on the same items."""
    votes = {
        (event.point, event.annotator or ""): event for event in standing if event.kind in ("label", "skip", "unsure")
    }
    labels = [event for event in votes.values() if event.kind == "label"]
    times = [event.seconds for event in labels if event.seconds is not None]
    limit = TOO_FAST * median(times) if times else -math.inf
    fast = Counter(event.annotator or "" for event in labels if event.seconds is not None and event.seconds < limit)
    agreed = _agreement(labels)
    return [
        {
            "name": annotator.name,
            "labels": annotator.labels,
            "skips": annotator.skips,
            "leased": annotator.leased,
            "seconds_per_label": annotator.seconds_per_label,
            "too_fast": fast[annotator.name],
            "compared": len(agreed[annotator.name]),
            "agree": float(np.mean(agreed[annotator.name])) if agreed[annotator.name] else math.nan,
            "last_at": annotator.last_at,
            "authenticated": annotator.authenticated,
            "claimed": annotator.claimed,
        }
        for annotator in status.annotators
    ]


def _agreement(labels: Sequence[Event]) -> dict[str, list[bool]]:
    """{annotator: whether each vote of somebody else on an item of theirs is the same}."""
    by_point: dict[str | None, list[Event]] = defaultdict(list)
    for event in labels:
        by_point[event.point].append(event)
    agreed: dict[str, list[bool]] = defaultdict(list)
    for events in by_point.values():
        for first, second in combinations(events, 2):
            for event in (first, second):
                agreed[event.annotator or ""].append(first.label == second.label)
    return agreed


def coverage(session: Session) -> dict[str, Any]:
    """Labels of each class and of each value of a slice, beside the points that there are; those of the first model."""
    pool, history = session.pool, session.history
    labels = np.bincount(history.codes, minlength=len(pool.classes))
    answers = pool.models[0].predictions if pool.models else pool.anchor
    predicted = np.bincount(answers, minlength=len(pool.classes))
    classes = [
        {"name": str(name), "labels": int(labels), "predicted": int(points)}
        for name, labels, points in zip(pool.classes, labels, predicted, strict=True)
    ]
    return {
        "model": pool.models[0].name if len(pool.models) > 1 else "the model",
        "classes": classes,
        "slices": [_slice(name, column, history.labelled) for name, column in pool.slices.items()],
    }


def _slice(name: str, column: Any, labelled: Any) -> dict[str, Any]:
    values, codes = np.unique(np.asarray(column), return_inverse=True)
    points = np.bincount(codes, minlength=len(values))
    labels = np.bincount(codes[labelled], minlength=len(values))
    order = np.argsort(labels, kind="stable")[:SLICE_VALUES]
    rows = [{"value": str(values[at]), "labels": int(labels[at]), "points": int(points[at])} for at in order.tolist()]
    return {"name": name, "values": rows, "more": max(0, len(values) - SLICE_VALUES)}
