"""What is said beside an estimate, or in its place: why there is none, why it is wide, what skips may hide."""

import math

from altmas.estimates import FLOOR, LEAST_DRAWN, Estimate, without_interval
from altmas.history import History
from altmas.methods.assured.linearised import Linearised
from altmas.methods.random_items import NO_WHOLE_GROUP
from altmas.metrics import Metric
from altmas.task import Task

OF_EACH_CLASS, MOST_OF_CLASSES = 10, 40
"""Labels that have to count for each class before a mean over classes has an interval, and for all of them at most."""


def undefined(metric: Metric, task: Task, history: History) -> Estimate:
    """The answer while no drawn label tells anything."""
    labels = len(history.labels)
    note = "undefined: no label yet" if labels == 0 else "undefined: no drawn label yet"
    if history.drawn_labels:
        note = "undefined: no drawn label counts yet" if task.units is None else NO_WHOLE_GROUP
    return without_interval(metric, task.confidence, labels, note)


def insufficient(metric: Metric, linear: Linearised, points: int) -> str:
    """Why there is no estimate, and how many labels it would take."""
    if linear.drawn:
        return f"undefined: no label so far tells about {metric.name}{_would_do(metric, linear)}"
    share = linear.size / max(points, 1)
    more = math.ceil(LEAST_DRAWN / share)
    return (
        f"insufficient: no drawn label among these {linear.size:,} points; about {more:,} labels of the pool, "
        f"or {min(LEAST_DRAWN, linear.size)} among them, would do"
    )


def _would_do(metric: Metric, linear: Linearised) -> str:
    """How many labels it would take, of a metric of one class whose answers there are."""
    own = metric.own_points(linear.estimator.pool)
    answered = 0 if own is None else int((own & linear.estimator.inside).sum())
    if answered == 0:
        return ""
    more = math.ceil(LEAST_DRAWN * linear.size / answered)
    anywhere = f"about {more:,} labels of the pool, or " if more < linear.size else ""
    return f"; {anywhere}{min(LEAST_DRAWN, answered)} of the {answered:,} points answered with its class would do"


def least_labels(metric: Metric, n_classes: int) -> int:
    """Labels that have to count before there is an interval: none for sums over points, more the more it is curved."""

    def of_part(part: Metric) -> int:
        if part.about.over_classes:
            return max(LEAST_DRAWN, min(OF_EACH_CLASS * n_classes, MOST_OF_CLASSES))
        return 0 if part.is_linear(n_classes) else LEAST_DRAWN if part.ratio(n_classes) is None else FLOOR

    return max(of_part(part) for _, part in metric.parts)


def exact_note(linear: Linearised) -> str:
    """Why there is no interval around a value that is known."""
    labelled = "every point"
    if linear.size < linear.of_points:
        which = "with that answer" if len(linear.metric.parts) == 1 else "that decide it"
        labelled = f"each of the {linear.size:,} points {which}"
    return f"{labelled} is labelled: exact"


def unreached_note(linear: Linearised) -> str:
    """Why an interval is wide: points that were added, or lost their label, after all draws."""
    return (
        f"no drawn label among {linear.unreached:,} points that were added or lost their label: they may be anything; "
        f"about {min(LEAST_DRAWN, linear.unreached)} labels among them would do"
    )


def unmet_note(linear: Linearised) -> str:
    """That listed classes which nobody has met may occur after all; empty where that does not matter."""
    unmet = linear.estimator.unmet_classes
    if not any(linear.metric.reach_of_unmet_classes(linear.value, linear.classes, unmet)):
        return ""
    return (
        f"{unmet} of {linear.classes} classes have neither an answer nor a label: the mean is over the others, and the "
        "interval allows for their occurring"
    )
