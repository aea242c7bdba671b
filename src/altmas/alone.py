"""What each model alone would have said of the truth, and how far it agrees with the same labels."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from altmas.estimates import LEAST_DRAWN, Estimate, Estimates
from altmas.frames import plain
from altmas.metrics import Metric
from altmas.metrics.differences import combined
from altmas.metrics.weights import LabelWeights
from altmas.pool import Model, Pool

if TYPE_CHECKING:
    from altmas.session import Session

QUALITY = ("accuracy", "kappa")
"""What a judge is judged by, asked for or not."""
ROUNDING = 1e-9
"""An interval of a pool that is labelled throughout has no width; its value is not outside by the last digit."""


@dataclass(frozen=True)
class Alone:
    """A metric of the truth as one model's answers have it, beside the estimate from labels.

    value    the metric if the model were right about every point
    outside  whether that lies outside the estimate's interval; None without one, or before enough labels were drawn
    """

    metric: str
    model: str
    value: float
    estimate: float
    low: float
    high: float
    confidence: float
    outside: bool | None

    @property
    def off_by(self) -> float:
        """How far the model alone is above the estimate."""
        return self.value - self.estimate

    def __str__(self) -> str:
        alone = f"{self.metric} by {self.model} alone: {self.value:.4f}"
        if math.isnan(self.estimate):
            return f"{alone}, no estimate yet"
        beside = f"estimate {self.estimate:.4f} [{self.low:.4f}, {self.high:.4f}], off by {self.off_by:+.4f}"
        where = {True: ", outside the interval", False: ", inside the interval", None: ""}[self.outside]
        return f"{alone}, {beside}{where}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        row: dict[str, Any] = plain(asdict(self) | {"off_by": self.off_by})
        return row


def models_alone(session: "Session", estimates: Estimates | None = None) -> tuple[Alone, ...]:
    """For each metric of the truth and each model: the metric if its answers were the truth, beside the estimate."""
    estimates = session.estimate() if estimates is None else estimates
    history, pool = session.history, session.pool
    early = history.drawn_labels < LEAST_DRAWN and len(history.labels) < len(pool)
    return alone_of(pool, session.task.metrics, estimates, early=early)


def judge_quality(session: "Session") -> Estimates | None:
    """How far each model agrees with the labels: accuracy, kappa and, if a metric takes classes for numbers, weighted
    kappa, each with its interval. None where no metric is about the truth alone, or there is no model."""
    metrics, pool = session.task.metrics, session.pool
    if not pool.models or all(metric.needs_answers for metric in metrics):
        return None
    ordered = any(part.class_values for metric in metrics for _, part in metric.parts)
    return session.estimate(metrics=[*QUALITY, *(["weighted_kappa"] if ordered else [])])


def alone_of(pool: Pool, metrics: Sequence[Metric], estimates: Estimates, *, early: bool = False) -> tuple[Alone, ...]:
    """The same of metrics and their estimates; where it is too early, nothing is called outside or inside."""
    return tuple(
        _beside(value_if_true(pool, metric, model), model, estimate, early)
        for metric, estimate in zip(metrics, estimates, strict=True)
        if not metric.needs_answers
        for model in pool.models
    )


def value_if_true(pool: Pool, metric: Metric, model: Model) -> float:
    """The value of a metric of the truth if a model's answers were the labels; nan where undefined."""

    def of_part(part: Metric) -> float:
        inside = part.members(pool)
        return part.value(pool, LabelWeights.of_truth(model.predictions, len(pool.classes), inside, pool.weights))

    return combined(metric, of_part)


def _beside(value: float, model: Model, estimate: Estimate, early: bool) -> Alone:
    decidable = not early and all(map(math.isfinite, (value, estimate.low, estimate.high)))
    outside = not estimate.low - ROUNDING <= value <= estimate.high + ROUNDING if decidable else None
    return Alone(
        estimate.metric, model.name, value, estimate.value, estimate.low, estimate.high, estimate.confidence, outside
    )
