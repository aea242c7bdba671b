"""Means over classes, most of which say nothing while they have hardly a label."""

import numpy as np
from numpy.typing import NDArray

from altmas.metrics import Metric
from altmas.types import Array

LABELS_PER_CLASS = 6
"""Labels for each class named by the model before such a mean has an interval: with 1 to 5 on a pool of 77 classes the
mean was too low by three quarters of its error, and 95 % intervals held in 42 to 80 % of 40 runs."""


def too_few_labels(metric: Metric, labels: int, classes: int) -> str:
    """Why these labels give a mean over so many classes no interval; empty if they do, or if it is no such mean."""
    enough = LABELS_PER_CLASS * classes
    if not metric.about.over_classes or labels >= enough:
        return ""
    return f"no interval: {labels} labels for a mean over {classes} classes ({enough} would do)"


def trials_by_class(metric: Metric, table: Array) -> tuple[Array, Array]:
    """((C,) successes, (C,) trials) of each class in a mean over classes; F1 has the mean of answers and labels."""
    right, answered, true = np.diagonal(table), table.sum(1), table.sum(0)
    if metric.kind == "macro_precision":
        return right, answered
    return right, true if metric.kind in ("macro_recall", "balanced_accuracy") else (answered + true) / 2


def reach_of_unseen(
    metric: Metric, value: float, seen: NDArray[np.bool_], named: NDArray[np.bool_], unlabelled: int
) -> tuple[float, float]:
    """How far a mean over classes could be lower and higher with the classes of which no label tells.              (B8)

    seen   (C,) classes with a value;  named  (C,) classes that the model names;  unlabelled  points without a label
    A class that the model never names has no precision, and a recall and F1 of 0 if it occurs.
    """
    if not metric.about.over_classes:
        return 0.0, 0.0
    hidden = ~seen & named if metric.kind == "macro_precision" else ~seen
    lower, higher = (min(int(classes.sum()), unlabelled) for classes in (hidden, hidden & named))
    low, high = metric.bounds
    count = int(seen.sum())
    return (value - low) * lower / max(count + lower, 1), (high - value) * higher / max(count + higher, 1)
