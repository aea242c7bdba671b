"""Metrics: how a name becomes one, its formula on the table of the pool, and how one label moves it."""

from altmas.metrics.callables import from_callable
from altmas.metrics.catalogue import known_names, plain_name
from altmas.metrics.differences import truth_values
from altmas.metrics.formulas import kappa, margins
from altmas.metrics.metric import Metric
from altmas.metrics.names import MetricLike, is_one, metric_set, models_of
from altmas.metrics.weights import LabelWeights, RowCodes, Weights, table_of

__all__ = [
    "LabelWeights",
    "Metric",
    "MetricLike",
    "RowCodes",
    "Weights",
    "from_callable",
    "is_one",
    "kappa",
    "known_names",
    "plain_name",
    "margins",
    "metric_set",
    "models_of",
    "table_of",
    "truth_values",
]
