"""What a report says, as plain values: the same tree is written as JSON and shown as HTML.

No item and no id is in it unless items are asked for; what annotators wrote is, unless it is left out.
"""

import math
import platform
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from altmas.alone import models_alone
from altmas.frames import plain
from altmas.history import History
from altmas.items.parts import parts_of
from altmas.methods.held_up import counted_labels
from altmas.metrics import Metric
from altmas.pool import Pool
from altmas.report.assumptions import assumptions_of
from altmas.report.classes import classes_of, confusions_of, matrix_of
from altmas.report.curves import curves_of
from altmas.report.headline import headline_of
from altmas.report.metrics import forecast_of, leading, metrics_of, path_of
from altmas.report.models import models_of, quality_of, ranking_of, waves_of
from altmas.report.sceptic import label_errors, sceptic_of
from altmas.report.sensitivity import sensitivity
from altmas.report.slices import slices_of
from altmas.report.trend import trend_since
from altmas.session.snapshot import Status

if TYPE_CHECKING:
    from altmas.session import Session

Plain = dict[str, Any]

MOST_NOTES = 50
"""Notes that are shown, the newest; the others are counted."""
NOTE_LENGTH = 500
"""Characters of a note that are shown."""


def content_of(session: "Session", *, items: bool = False, notes: bool = True, since: Plain | None = None) -> Plain:
    """Everything the report says about a session as it stands now."""
    estimates = session.estimate()  # first: it is written down, and the hash below should name that too
    history, status = session.history, session.status()
    matrix = matrix_of(session, history)
    content = {
        "title": session.path.stem if session.path is not None else "Evaluation",
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "pool": _pool(session),
        "plan": _plan(session),
        "labels": len(history.labels),
        "drawn_labels": counted_labels(session.method, session.task, history),
        "method": session.method.name,
        "metrics": metrics_of(session, history, estimates),
        "forecast": forecast_of(session),
        "remarks": list(session.now().remarks(named=items)),
        "waiting": session.now().waiting(named=items),
        "models": models_of(session, history, estimates),
        "alone": [alone.to_dict() for alone in models_alone(session, estimates)],
        "quality": quality_of(session),
        "ranking": ranking_of(session),
        "waves": waves_of(session),
        "leading": [metric.name for metric in leading(session)],
        "path": path_of(session, history, estimates),
        "classes": classes_of(session, history),
        "confusion": matrix,
        "confusions": confusions_of(session, history),
        "slices": slices_of(session, history),
        "choice": _choice(history),
        "people": _people(session, status),
        "sensitivity": _sensitivity(session, matrix),
        "label_errors": _label_errors(session, matrix),
        "curves": curves_of(session, history),
        "assumptions": assumptions_of(session, history, status, estimates),
        "reproducibility": _reproducibility(session, status),
    }
    if notes:
        content["notes"] = _notes(session, items)
    if items:
        content["labelled_items"] = _items(session, history)
    tree: Plain = plain(content)
    tree["sceptic"] = plain(sceptic_of(session, history, tree, items=items))
    if since is not None:
        tree["trend"] = trend_since(since, tree)
    return tree | {"headline": headline_of(tree)}


def _plan(session: "Session") -> Plain:
    plan = session.plan
    return {
        "metrics": [metric.name for metric in session.task.metrics],
        "confidence": plan.confidence,
        "about": session.task.population,
        "draw": plan.draw,
        "budget": plan.budget,
        "targets": dict(plan.targets),
        "thresholds": dict(plan.thresholds),
        "rank": plan.rank,
    }


def _pool(session: "Session") -> Plain:
    pool = session.pool
    predicted = np.round(pool.predicted_counts).astype(np.int64) if pool.models else np.zeros(0, np.int64)
    return {
        "points": len(pool),
        "sampled_from": pool.sampled_from,
        "weight": None if pool.weights is None else float(pool.weights.sum()),
        "classes": [str(name) for name in pool.classes],
        "values": pool.named_values,
        "predicted": predicted.tolist(),
        "features": None if pool.features is None else int(pool.features.shape[1]),
        "made_features": list(pool.made_features),
        "scores": pool.scores is not None,
        "slices": list(pool.slices),
        "groups": None if pool.group is None else int(pool.group.max()) + 1,
        "group_name": pool.group_name,
    }


# ---------------------------------------------------------------- tables


def _table(session: "Session", matrix: Plain) -> Any:
    """(C, C) estimated counts where every cell is known, else None."""
    n_classes = len(session.pool.classes)
    values = [cell["value"] for cell in matrix["cells"]]
    if len(values) != n_classes**2 or not all(map(math.isfinite, values)):
        return None
    return np.array(values).reshape(n_classes, n_classes)


def _sensitivity(session: "Session", matrix: Plain) -> list[Plain]:
    table = _table(session, matrix)
    if table is None or table.sum() <= 0:
        return []
    return sensitivity(np.maximum(table, 0.0), _of_whole_table(session))


def _of_whole_table(session: "Session") -> tuple[Metric, ...]:
    """The leading ones of the metrics that the estimated table of the first model gives."""
    first = {None, *(model.name for model in session.pool.models[:1])}
    given = [
        metric
        for metric in session.task.metrics
        if metric.where is None and metric.model in first and metric.of_table_of_a_model
    ]
    return leading(session, given)


def _label_errors(session: "Session", matrix: Plain) -> Plain | None:
    table = _table(session, matrix)
    table = None if table is None or table.sum() <= 0 else np.maximum(table, 0.0)
    agreement, level = session.agreement(), session.plan.confidence
    return label_errors(agreement, level, table, _of_whole_table(session), len(session.pool.classes))


# ---------------------------------------------------------------- choice and people


def _choice(history: History) -> Plain:
    """How the labelled points came to be labelled: drawn uniformly, tilted, without a probability, or volunteered."""
    kinds: Counter[str] = Counter()
    left = history.n_points
    for batch in history.batches:
        for position, row in enumerate(batch.indices.tolist()):
            if row in history.labels:
                chance = None if batch.probabilities is None else float(batch.probabilities[position])
                even = chance is not None and math.isclose(chance * (left - position), 1.0, rel_tol=0.02)
                kinds["no probability" if chance is None else "uniform" if even else "tilted"] += 1
        left -= len(batch.indices)
    kinds["volunteered"] = len(history.volunteered)
    pilot = sum(row in history.labels for row in history.batches[0].indices.tolist()) if history.batches else 0
    return {"kinds": dict(kinds), "first_batch": pilot, "batches": len(history.batches), "labels": len(history.labels)}


def _people(session: "Session", status: Status) -> Plain:
    agreement = session.agreement()
    seconds = [event["seconds"] for event in session.events() if event["kind"] == "label" and event["seconds"]]
    reasons = Counter(reason or "no reason" for reason in session.history.skipped.values())
    return {
        "annotators": [asdict(annotator) for annotator in status.annotators],
        "authenticated": sum(annotator.authenticated for annotator in status.annotators),
        "claimed": sum(annotator.claimed for annotator in status.annotators),
        "seconds_per_label": status.seconds_per_label,
        "seconds": float(sum(seconds)),
        "timed": len(seconds),
        "agreement": asdict(agreement),
        "disagreements": status.disagreements,
        "skipped": status.skipped,
        "unsure": status.unsure,
        "reasons": dict(reasons.most_common(8)),
        "reveals": status.reveals,
        "revisions": status.revisions,
        "undone": status.undone,
    }


def _notes(session: "Session", items: bool) -> Plain:
    """What annotators and the owner wrote, the newest first; about which point, only where items were asked for."""
    notes = session.notes()
    shown = [
        {"annotator": note.annotator, "at": note.at}
        | {"text": note.text[:NOTE_LENGTH], "cut": len(note.text) > NOTE_LENGTH}
        | ({"id": None if note.id is None else str(note.id)} if items else {})
        for note in notes[: -MOST_NOTES - 1 : -1]
    ]
    return {"count": len(notes), "shown": shown}


def _items(session: "Session", history: History) -> list[Plain]:
    """The labelled points one by one; only where items were asked for."""
    pool = session.pool
    return [
        {
            "id": str(pool.ids[row]),
            "label": str(pool.classes[code]),
            "prediction": _predicted(pool, row),
            "parts": parts_of(pool, row),
        }
        for row, code in history.labels.items()
    ]


def _predicted(pool: Pool, row: int) -> str:
    """What the models say of a point."""
    answers = pool.answers_at(row)
    if len(answers) == 1:
        return str(answers[0][1])
    return ", ".join(f"{predicted} ({name})" for name, predicted, _ in answers)


# ---------------------------------------------------------------- reproducibility

PACKAGES = ("altmas", "numpy", "scipy", "scikit-learn", "jax", "pyarrow")


def _reproducibility(session: "Session", status: Status) -> Plain:
    return {
        "file": session.path.name if session.path is not None else None,
        "events": status.seq,
        "log_hash": status.digest,
        "created_at": status.created_at,
        "last_at": status.last_at,
        "changes": [change.to_dict() for change in session.changes()],
        "fingerprint": dict(session.plan.fingerprint),
        "seed": session.plan.seed,
        "plan": {name: value for name, value in session.plan.to_json().items() if name != "fingerprint"},
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "platform": f"{platform.system()} {platform.machine()}",
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
