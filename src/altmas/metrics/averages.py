"""Means over classes, most of which say nothing while they have hardly a label."""

from altmas.metrics import Metric

LABELS_PER_CLASS = 6
"""Labels for each class named by the model before such a mean has an interval: with 1 to 5 on a pool of 77 classes the
mean was too low by three quarters of its error, and 95 % intervals held in 42 to 80 % of 40 runs."""


def too_few_labels(metric: Metric, labels: int, classes: int) -> str:
    """Why these labels give a mean over so many classes no interval; empty if they do, or if it is no such mean."""
    enough = LABELS_PER_CLASS * classes
    if not metric.about.over_classes or labels >= enough:
        return ""
    return f"no interval: {labels} labels for a mean over {classes} classes ({enough} would do)"
