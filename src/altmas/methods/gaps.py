"""The largest difference between groups, from estimates of all pairs (S8)."""

import math
from collections.abc import Sequence

from altmas.estimates import Estimate
from altmas.metrics import Metric


def gap_of(metric: Metric, pairs: Sequence[Estimate], values: Sequence[float], confidence: float) -> Estimate:
    """The gap with its interval, from intervals of all pairs that hold together.

    pairs   the estimate of each of the metric's contrasts;  values  the estimate of each group
    If every pair lies in its interval, the largest absolute difference lies between the largest of the lower and the
    largest of the upper bounds of the absolute differences.
    """
    labels = max(one.labels for one in pairs)
    undefined = [one.note for one in pairs if math.isnan(one.low)]
    if undefined:
        return Estimate(metric.name, math.nan, math.nan, math.nan, confidence, labels, note=undefined[0])
    low = max(max(one.low, -one.high, 0.0) for one in pairs)
    high = max(max(abs(one.low), abs(one.high)) for one in pairs)
    value = max(values) - min(values)
    names = [part.where[1] if part.where else part.name for _, part in metric.parts]
    top, bottom = names[values.index(max(values))], names[values.index(min(values))]
    note = f"largest in {top}, smallest in {bottom}; {metric.about.caution}"
    effective = min(one.effective_labels for one in pairs)
    kind = pairs[0].interval
    return Estimate(metric.name, value, min(low, value), max(high, value), confidence, labels, effective, kind, note)
