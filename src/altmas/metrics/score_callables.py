"""Any function f(y_true, y_score, sample_weight) -> float of a model's scores as a metric.

W is laid out in rows: point i as a member of class c, with weight W[i, c]. With two classes y_true is 0 or 1 and
y_score that of the second class; with more y_true is the code of the class and y_score has a column for each. The
value is what the function says of these rows. Its slope dQ/dW[i, c] is that of the built-in metric where a score of
scikit-learn in its usual form is one of them; otherwise, for two classes, it is taken by differences at some scores and
read off between them.                                                                                          (S12)
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from altmas.errors import MetricError
from altmas.metrics.callables import bounds_of, name_of, quiet, takes_weights
from altmas.metrics.influence import DenseItems, ItemInfluence
from altmas.metrics.metric import scores_of
from altmas.metrics.scores import (
    ScoreMetric,
    average_precision,
    brier_losses,
    log_losses,
    of_losses,
    of_one_class,
    over_classes,
    roc_auc,
)
from altmas.metrics.weights import LabelWeights, Weights
from altmas.pool import Pool
from altmas.types import Array

SECOND = ("y_score", "y_scores", "y_prob", "y_proba", "y_probs")
"""Names of a second parameter that asks for scores."""
OF_SCORES = ("roc_auc_score", "average_precision_score", "brier_score_loss", "log_loss")
"""Scores of scikit-learn that are built-in metrics of scores; the last calls its probabilities y_pred."""
NODES = 64
"""Scores at which slopes are taken by differences."""
NUDGE = 1e-4
"""Step of the slope, as a share of all weight."""


def asks_for_scores(function: Callable[..., float]) -> bool:
    """Whether the second parameter of a function is a model's scores."""
    if _sklearn_name(function) in OF_SCORES:
        return True
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return False
    return len(parameters) > 1 and parameters[1] in SECOND


def of_scores_callable(function: Callable[..., float], pool: Pool, name: str | None = None) -> ScoreMetric:
    """The metric that a function of scores computes; MetricError if it takes no weights or has no slope here."""
    label = name or name_of(function)
    without = [model.name for model in pool.models if model.scores is None]
    if without or not pool.models:
        whose = f"model {without[0]!r} has" if len(pool.models) > 1 else "this pool has"
        raise MetricError(f"metric {label!r} is a function of scores, and {whose} none; pass scores=... (--scores)")
    if not takes_weights(function):
        raise MetricError(
            f"metric {label!r} is a function of scores without sample_weight, and labels of a sample have weights; "
            "give it that parameter: f(y_true, y_score, sample_weight)"
        )
    usual = _built_in(function, pool)
    if usual is None and len(pool.classes) > 2:
        raise MetricError(
            f"metric {label!r} is a function of scores, and this pool has {len(pool.classes)} classes; for more than "
            "two, log_loss, brier_score_loss, average_precision_score and roc_auc_score with multi_class='ovr' are "
            "known"
        )
    bounds = bounds_of(function, label)
    if usual is not None and not np.isfinite(bounds).any():
        bounds = usual.bounds
    options = _options(function)
    return ScoreCallable(label, bounds=bounds, kind="callable", function=function, usual=usual, options=options)


def _keywords(function: Callable[..., float]) -> Mapping[str, Any]:
    return function.keywords if isinstance(function, functools.partial) else {}


def _options(function: Callable[..., float]) -> Mapping[str, Any]:
    """What the function is called with besides labels, scores and weights: how many classes there are."""
    wants = _sklearn_name(function) in ("log_loss", "roc_auc_score", "brier_score_loss") and "labels" in (
        inspect.signature(function).parameters
    )
    return {"labels": None} if wants and "labels" not in _keywords(function) else {}


def _sklearn_name(function: Callable[..., float]) -> str:
    whole = function.func if isinstance(function, functools.partial) else function
    from_sklearn = str(getattr(whole, "__module__", "")).startswith("sklearn.")
    return str(getattr(whole, "__name__", "")) if from_sklearn else ""


def _built_in(function: Callable[..., float], pool: Pool) -> ScoreMetric | None:
    """The built-in metric that a score of scikit-learn in its usual form equals, for its slope."""
    name, options, binary = _sklearn_name(function), dict(_keywords(function)), len(pool.classes) == 2
    if name == "roc_auc_score" and options.pop("multi_class", "ovr" if binary else None) != "ovr":
        return None
    if options.pop("average", "macro") != "macro" or options:
        return None
    if name in ("roc_auc_score", "average_precision_score"):
        area = roc_auc if name == "roc_auc_score" else average_precision
        return of_one_class(name, name, area, 1) if binary else over_classes(name, name, area)
    if name == "log_loss":
        return of_losses(name, name, log_losses, np.inf)
    return of_losses(name, name, brier_losses, 1.0 if binary else 2.0) if name == "brier_score_loss" else None


@dataclass(frozen=True)
class ScoreCallable(ScoreMetric):
    """A metric that a function of scores computes.

    usual    the built-in metric that it equals, or None;  options  further arguments of the function
    """

    function: Callable[..., float] = field(default=lambda *_: np.nan, repr=False)
    usual: ScoreMetric | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def value(self, pool: Pool, weights: Weights) -> float:
        codes, points, weight = _rows(pool, weights)
        return self._of_rows(codes, _scores(pool, self.model)[points], weight, len(pool.classes))

    def at(self, pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
        value = self.value(pool, weights)
        if np.isnan(value):
            return value, DenseItems(np.zeros((len(pool), weights.n_classes)))
        if self.usual is not None:
            return value, replace(self.usual, model=self.model).at(pool, weights)[1]
        return value, DenseItems(self._slopes(pool, weights))

    def along(self, pool: Pool) -> Array:
        return scores_of(pool, self.model)

    def _slopes(self, pool: Pool, weights: Weights) -> Array:
        """(N, 2) dQ/dW by differences at some scores, read off between them (S12)."""
        scores = _scores(pool, self.model)
        codes, points, weight = _rows(pool, weights)
        inside = scores[points]
        nodes = np.unique(np.quantile(inside, np.linspace(0, 1, NODES), method="nearest"))
        step = NUDGE * float(weight.sum())
        slopes = np.zeros((len(scores), 2))
        base = self._of_rows(codes, inside, weight, 2)
        for code in (0, 1):
            moved = [
                self._of_rows(np.append(codes, code), np.append(inside, node), np.append(weight, step), 2)
                for node in nodes.tolist()
            ]
            slopes[:, code] = np.interp(scores, nodes, np.nan_to_num((np.array(moved) - base) / step))
        return slopes

    def _of_rows(self, codes: Array, scores: Array, weight: Array, n_classes: int) -> float:
        if not len(codes):
            return np.nan
        options = {name: np.arange(n_classes) for name in self.options}
        try:
            with quiet():
                return float(self.function(codes, scores, sample_weight=weight, **options))
        except (ValueError, ZeroDivisionError):
            return np.nan


def _scores(pool: Pool, model: str | None) -> Array:
    """(N,) scores of the second of two classes, or (N, C)."""
    scores = scores_of(pool, model)
    return scores[:, 1] if scores.shape[1] == 2 else scores


def _rows(pool: Pool, weights: Weights) -> tuple[Array, Array, Array]:
    """(class, point, weight) of every cell of W that has some."""
    if isinstance(weights, LabelWeights):
        weight = np.ones(len(weights.points)) if weights.weights is None else weights.weights
        return weights.labels, weights.points, weight
    by_class = [weights.of_class(code) for code in range(weights.n_classes)]
    points = [np.flatnonzero(weight > 0) for weight in by_class]
    codes = np.repeat(np.arange(len(by_class)), [len(members) for members in points])
    return (
        codes,
        np.concatenate(points),
        np.concatenate([weight[at] for weight, at in zip(by_class, points, strict=True)]),
    )
