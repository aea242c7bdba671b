"""The largest difference between groups, from estimates of all pairs (S8)."""

import math
from collections.abc import Sequence

from altmas.estimates import Estimate, without_interval
from altmas.metrics import Metric


def gap_of(metric: Metric, pairs: Sequence[Estimate], values: Sequence[float], confidence: float) -> Estimate:
    """The gap with its interval, from intervals of all pairs that hold together.

    pairs   the estimate of each of the metric's contrasts;  values  the estimate of each group
    If every pair lies in its interval, the largest absolute difference lies between the largest of the lower and the
    largest of the upper bounds of the absolute differences.
    """
    labels = max(pair.labels for pair in pairs)
    undefined = [pair.note for pair in pairs if math.isnan(pair.low)]
    if undefined:
        return without_interval(metric, confidence, labels, undefined[0])
    low = max(max(pair.low, -pair.high, 0.0) for pair in pairs)
    high = max(max(abs(pair.low), abs(pair.high)) for pair in pairs)
    value = max(values) - min(values)
    names = [part.where[1] if part.where else part.name for _, part in metric.parts]
    top, bottom = names[values.index(max(values))], names[values.index(min(values))]
    note = f"largest in {top}, smallest in {bottom}; {metric.about.caution}"
    effective = min(pair.effective_labels for pair in pairs)
    kind = pairs[0].interval
    return Estimate(metric.name, value, min(low, value), max(high, value), confidence, labels, effective, kind, note)
