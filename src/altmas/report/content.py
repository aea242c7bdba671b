"""What a report says, as plain values: the same tree is written as JSON and shown as HTML.

No item and no id is in it unless items are asked for; what annotators wrote is, unless it is left out.
"""

import math
import platform
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from altmas.alone import models_alone
from altmas.errors import AltmasError
from altmas.estimates import FLOOR, LEAST_DRAWN, Estimate, Estimates, shown_worth
from altmas.frames import plain
from altmas.guaranteed import NotOffered, estimates_of, guaranteed_decision
from altmas.history import History
from altmas.intervals import wilson
from altmas.items.parts import parts_of
from altmas.methods import check as check_method
from altmas.methods import inclusion_of
from altmas.methods.assured.diagnostics import ALARM
from altmas.methods.held_up import counted_labels
from altmas.metrics import Metric, metric_set
from altmas.metrics.averages import LABELS_PER_CLASS
from altmas.pool import Pool
from altmas.pool.growth import values_in_order
from altmas.report.assumptions import assumptions_of
from altmas.report.classes import MANY, OF_CLASS, classes_of, confusions_of, matrix_of
from altmas.report.curves import curves_of
from altmas.report.headline import headline_of
from altmas.report.models import models_of, quality_of, ranking_of, waves_of
from altmas.report.sceptic import label_errors, sceptic_of
from altmas.report.sensitivity import sensitivity
from altmas.report.trend import trend_since
from altmas.report.words import verdict_of
from altmas.session.snapshot import Status
from altmas.task import Task
from altmas.weighted import Sample, has_probabilities, labels_behind, sample_of, weighted_interval

if TYPE_CHECKING:
    from altmas.session import Session

Plain = dict[str, Any]

MOST_METRICS = 6
"""Metrics whose path, slices and sensitivity are shown."""
MOST_SLICES = 20
PATH_POINTS = 8
MOST_NOTES = 50
"""Notes that are shown, the newest; the others are counted."""
NOTE_LENGTH = 500
"""Characters of a note that are shown."""
PATIENCE = 5.0
"""Seconds after which no more of the past is computed again for the path; what was logged on the way is free."""


def content_of(session: "Session", *, items: bool = False, notes: bool = True, since: Plain | None = None) -> Plain:
    """Everything the report says about a session as it stands now."""
    estimates = session.estimate()  # first: it is written down, and the hash below should name that too
    history, status = session.history, session.status()
    matrix = matrix_of(session, history)
    content = {
        "title": session.path.stem if session.path is not None else "Evaluation",
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "pool": _pool(session),
        "plan": {
            "metrics": [metric.name for metric in session.task.metrics],
            "confidence": session.plan.confidence,
            "about": session.task.population,
            "draw": session.plan.draw,
            "budget": session.plan.budget,
            "targets": dict(session.plan.targets),
            "thresholds": dict(session.plan.thresholds),
            "rank": session.plan.rank,
        },
        "labels": len(history.labels),
        "drawn_labels": counted_labels(session.method, session.task, history),
        "method": session.method.name,
        "metrics": _metrics(session, history, estimates),
        "forecast": _forecast(session),
        "remarks": list(session.now().remarks(named=items)),
        "waiting": session.now().waiting(named=items),
        "models": models_of(session, history, estimates),
        "alone": [alone.to_dict() for alone in models_alone(session, estimates)],
        "quality": quality_of(session),
        "ranking": ranking_of(session),
        "waves": waves_of(session),
        "leading": [metric.name for metric in leading(session)],
        "path": _path(session, history, estimates),
        "classes": classes_of(session, history),
        "confusion": matrix,
        "confusions": confusions_of(session, history),
        "slices": _slices(session, history),
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


# ---------------------------------------------------------------- metrics and their path


def _metrics(session: "Session", history: History, estimates: Estimates) -> list[Plain]:
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


def _forecast(session: "Session") -> Plain | None:
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


def _path(session: "Session", history: History, estimates: Estimates) -> list[Plain]:
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


def _slices(session: "Session", history: History) -> list[Plain]:
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
