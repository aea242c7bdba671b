"""What a sceptical reader asks for: weights, looks, multiplicity, plan and outcome, widening, errors of labels."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import beta

from altmas.history import History
from altmas.methods import inclusion_of
from altmas.methods.held_up import held_up, left_behind
from altmas.metrics import Metric
from altmas.report.sensitivity import corrected
from altmas.session.opinions import Agreement
from altmas.types import Array
from altmas.weighted import has_probabilities

if TYPE_CHECKING:
    from altmas.session import Session

Plain = dict[str, Any]

MOST_LISTED = 10
WIDENED = 1.05
"""An interval that is so many times as wide as at the step before is explained."""


def sceptic_of(session: "Session", history: History, content: Plain, *, items: bool) -> Plain:
    """Answers to the questions above, from the content of the report and the log."""
    weights = weights_of(session, history)
    looks = [int(estimate["labels"]) for estimate in session.logged_estimates()]
    return {
        "weights": weights_summary(session, weights, items=items),
        "looks": looks,
        "intervals": multiplicity(content),
        "planned": planned_and_actual(session, content),
        "widened": widened(session, history, content["path"], weights),
    }


def weights_of(session: "Session", history: History) -> dict[int, float]:
    """{row: how many points its label stands for} of the drawn labels that count; {} without known probabilities."""
    chances = inclusion_of(session.method, session.pool, history) if has_probabilities(history) else None
    if chances is None:
        return {}
    in_order, stands_for = session.method.traits.in_order, session.pool.weights
    units = session.task.units
    unused = (held_up(history, units), left_behind(history, units)) if in_order else ()
    waiting = {row for found in unused for row in found.labels.tolist()}
    return {
        row: (1.0 if stands_for is None else float(stands_for[row])) / float(chances[row])
        for row in history.drawn.tolist()
        if row in history.labels and row not in waiting and chances[row] > 0
    }


def weights_summary(session: "Session", weights: dict[int, float], *, items: bool) -> Plain | None:
    """The largest weight, how even they are, and the labels that would move figures most if they were wrong.

    A label stands for w points: were it wrong, a share of the pool would move by w / N (by the weights alone). Ids
    are named only where items are.
    """
    if not weights:
        return None
    pool, history = session.pool, session.history
    values = np.array(list(weights.values()))
    heaviest = sorted(weights, key=lambda row: -weights[row])[:MOST_LISTED]
    listed = [
        {
            "weight": weights[row],
            "label": str(pool.classes[history.labels[row]]),
            "right": bool(history.labels[row] == pool.predictions[row]) if pool.models else None,
            "moves": weights[row] / (len(pool) if pool.weights is None else pool.rows_meant),
            **({"id": str(pool.ids[row])} if items else {}),
        }
        for row in heaviest
    ]
    return {
        "largest": float(values.max()),
        "median": float(np.median(values)),
        "effective": float(values.sum() ** 2 / np.square(values).sum()),
        "labels": len(values),
        "heaviest": listed,
    }


def multiplicity(content: Plain) -> Plain:
    """How many intervals the report shows, how many of them miss on average, and what holds for all together.

    m intervals of level 1 - a hold together with probability at least 1 - m a (Bonferroni).
    """
    level = content["plan"]["confidence"]
    metrics = sum(metric["low"] is not None for metric in content["metrics"])
    cells = [cell for slice_ in content["slices"] for row in slice_["rows"] for cell in row["metrics"]]
    slices = sum(cell["low"] is not None for cell in cells)
    count = metrics + slices
    return {
        "metrics": metrics,
        "slices": slices,
        "expected_misses": count * (1 - level),
        "together": max(0.0, 1 - count * (1 - level)),
    }


def planned_and_actual(session: "Session", content: Plain) -> list[Plain]:
    """For each aim: what was wanted and what was reached; for labels the budget."""
    rows: list[Plain] = []
    if session.plan.budget is not None:
        rows.append({"what": "labels", "planned": str(session.plan.budget), "actual": str(content["labels"])})
    for metric in content["metrics"]:
        if metric["target"] is not None:
            width = None if metric["low"] is None else (metric["high"] - metric["low"]) / 2
            planned = f"\u00b1{metric['target']:g}"
            actual = "no interval yet" if width is None else f"\u00b1{width:.3g}"
            rows.append({"what": f"half-width of {metric['metric']}", "planned": planned, "actual": actual})
        if metric["threshold"] is not None:
            rows.append(
                {
                    "what": f"{metric['metric']} on one side of",
                    "planned": f"{metric['threshold']:g}",
                    "actual": metric["verdict"]["sentence"],
                }
            )
    return rows


def widened(session: "Session", history: History, path: list[Plain], weights: dict[int, float]) -> list[str]:
    """A sentence for each step of the first metric's path at which the interval became wider."""
    if not path or not session.pool.models:
        return []
    steps = [row for row in path if row["metric"] == path[0]["metric"] and row["low"] is not None]
    rows = list(history.labels)
    sentences = []
    for before, after in zip(steps, steps[1:], strict=False):
        old, new = ((step["high"] - step["low"]) / 2 for step in (before, after))
        if new <= WIDENED * old:
            continue
        between = rows[before["labels"] : after["labels"]]
        wrong = [row for row in between if history.labels[row] != session.pool.predictions[row]]
        heaviest = max((weights.get(row, 1.0) for row in wrong), default=0.0)
        reason = (
            f"{len(wrong)} of these {len(between)} labels show an error of the model, the weightiest stands for "
            f"{heaviest:,.0f} points"
            if wrong
            else "the labels are spread more unevenly over the points that they stand for"
        )
        sentences.append(
            f"From {before['labels']} to {after['labels']} labels {after['metric']} went from \u00b1{old:.3g} to "
            f"\u00b1{new:.3g}: {reason}."
        )
    return sentences


# ---------------------------------------------------------------- label errors


def agreement_interval(agreement: Agreement, confidence: float) -> tuple[float, float]:
    """Exact (Clopper-Pearson) interval of the share of pairs that agree; (nan, nan) without pairs."""
    if agreement.points == 0:
        return math.nan, math.nan
    agreed, tail = round(agreement.share * agreement.points), (1 - confidence) / 2
    low = float(beta.ppf(tail, agreed, agreement.points - agreed + 1)) if agreed else 0.0
    high = float(beta.ppf(1 - tail, agreed + 1, agreement.points - agreed)) if agreed < agreement.points else 1.0
    return low, high


def error_rate(agree: float, n_classes: int) -> float:
    """How often one label is wrong if two people who err alike and independently agree on this share of points.

    They agree if both are right or both make the same mistake: a = (1 - e)^2 + e^2 / (C - 1), solved for the smaller e.
    """
    spread = n_classes / (n_classes - 1)
    return (1 - math.sqrt(max(0.0, 1 - (1 - agree) * spread))) / spread


def label_errors(
    agreement: Agreement, confidence: float, table: Array | None, metrics: tuple[Metric, ...], n_classes: int
) -> Plain | None:
    """The share of wrong labels that second opinions suggest, with its interval, and what each metric would be then."""
    if agreement.points == 0:
        return None
    low, high = agreement_interval(agreement, confidence)
    rates = [error_rate(share, n_classes) for share in (agreement.share, high, low)]
    effects = []
    if table is not None:
        for metric in metrics:
            between = [rates[0], *np.linspace(rates[1], rates[2], 21).tolist()]  # the effect may turn on the way
            values = [float(metric.of_table(corrected(table, min(rate, 0.45)))) for rate in between]
            known = [value for value in values if math.isfinite(value)] or [math.nan]
            effects.append({"metric": metric.name, "value": values[0], "from": min(known), "to": max(known)})
    return {
        "points": agreement.points,
        "agreement": {"value": agreement.share, "low": low, "high": high},
        "rate": {"value": rates[0], "low": rates[1], "high": rates[2]},
        "effects": effects,
    }
