"""What a sceptic wants to know about an estimate: is the belief calibrated, are weights sane, do plainer answers agree?

Labels are compared with beliefs that did not see them (each point's belief comes from labels outside its fold). Where
whole groups are drawn, errors and weights are those of groups.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from altmas.methods.assured.estimator import Difference
from altmas.methods.assured.whole_groups import numbered, sums
from altmas.types import Array
from altmas.weighted import effective_sample_size

ALARM = 3.0
"""Standard errors beyond which two answers are said to disagree."""
FEW = 30
"""Below this many effective labels, normal approximations are thin."""


@dataclass(frozen=True)
class CalibrationBin:
    """Drawn labels whose believed P(right) lies in one fifth of them: how many, what was believed, what was found."""

    labels: int
    believed: float
    found: float

    @property
    def z(self) -> float:
        """How many standard deviations more were right than believed."""
        spread = math.sqrt(self.believed * (1 - self.believed) / max(self.labels, 1))
        return (self.found - self.believed) / max(spread, 1 / max(self.labels, 1))


@dataclass(frozen=True)
class Diagnostics:
    """Figures and plain-words warnings about one estimate.

    calibration         from the least to the most trusted fifth of the drawn labels
    calibration_z       (right answers - believed ones) / standard deviation of the latter
    largest_share       of all weight that rests on one label, or group
    effective_sample    (sum w)^2 / sum w^2 of the weights w = 1/pi
    random_share        accuracy by weights alone, no belief involved, and its standard error
    difference          accuracy by the difference estimator, for comparison
    skipped_share       estimated share of the pool that would be skipped
    warnings            what a reader should worry about, in words
    """

    calibration: tuple[CalibrationBin, ...]
    calibration_z: float
    largest_share: float
    effective_sample: float
    random_share: float
    random_share_error: float
    difference: float
    skipped_share: float
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def diagnose(estimator: Difference, unused: int = 0, rows_meant: Array | None = None) -> Diagnostics:
    """The diagnostics of an estimator of the whole pool; unused  drawn labels that are in no sample.

    rows_meant  (N,) how many rows each point stands for, where points that cannot be labelled count as well
    """
    rows = np.concatenate([part.rows for part in estimator.parts])
    right = (estimator.known[rows] == estimator.predictions[rows]).astype(np.float64)
    agree = np.concatenate([part.belief.of_class(estimator.predictions)[part.rows] for part in estimator.parts])
    chances = np.concatenate([np.maximum(part.stage.chances[part.rows], 1e-12) for part in estimator.parts])
    weights = np.concatenate([part.stands_for for part in estimator.parts])
    units = None if estimator.units is None else numbered([part.units for part in estimator.parts])
    share, error = _weighted_share(right, weights, chances, units)
    by_draw = weights if units is None or not len(weights) else sums(weights, units)
    figures: dict[str, Any] = {
        "calibration": _bins(agree, right),
        "calibration_z": _z(right, agree, units),
        "largest_share": float(by_draw.max() / by_draw.sum()) if len(by_draw) else math.nan,
        "effective_sample": effective_sample_size(by_draw),
        "random_share": share,
        "random_share_error": error,
        "difference": float(np.trace(estimator.table) / max((estimator.inside * estimator.weight).sum(), 1e-300)),
        "skipped_share": _skipped_share(estimator, rows_meant),
    }
    draws = "labels" if units is None else "groups"
    return Diagnostics(**figures, warnings=tuple(_warnings(figures, len(rows), unused, len(by_draw), draws)))


def _skipped_share(estimator: Difference, rows_meant: Array | None = None) -> float:
    """Share of the pool that would be skipped, by the weights of the stages."""
    lost = total = 0.0
    skipped = np.zeros(len(estimator.known), np.bool_)
    skipped[estimator.skipped] = True
    stands = estimator.weight if rows_meant is None else rows_meant
    for part in estimator.parts:
        weights = (
            part.share_at(part.stage.used)
            * stands[part.stage.used]
            / np.maximum(part.stage.chances[part.stage.used], 1e-12)
        )
        lost, total = lost + float(weights[skipped[part.stage.used]].sum()), total + float(weights.sum())
    return lost / total if total > 0 else 0.0


def _weighted_share(right: Array, weights: Array, chances: Array, units: Array | None) -> tuple[float, float]:
    """Hajek's estimate of the share of right answers and its standard error; units (n,) drawn as a whole, or None."""
    if len(right) < 2:
        return math.nan, math.nan
    share = float((weights * right).sum() / weights.sum())
    terms = (1 - chances) * weights**2 * (right - share) ** 2
    if units is not None:
        terms = sums(np.sqrt(1 - chances) * weights * (right - share), units) ** 2
    return share, float(np.sqrt(terms.sum() * len(terms) / max(len(terms) - 1, 1)) / weights.sum())


def _bins(agree: Array, right: Array) -> tuple[CalibrationBin, ...]:
    parts = np.array_split(np.argsort(agree, kind="stable"), 5) if len(agree) >= 25 else []
    return tuple(CalibrationBin(len(part), float(agree[part].mean()), float(right[part].mean())) for part in parts)


def _z(right: Array, agree: Array, units: Array | None) -> float:
    """How many standard deviations more were right than believed; labels of a group are taken to come together."""
    spread = float(np.sqrt((agree * (1 - agree)).sum()))
    if units is not None:
        spread = float(np.sqrt((sums(np.sqrt(agree * (1 - agree)), units) ** 2).sum()))
    return float((right - agree).sum()) / spread if spread > 0 else math.nan


def _warnings(figures: dict[str, Any], labels: int, unused: int, drawn: int, draws: str) -> list[str]:
    """What to worry about; drawn, draws  how many labels or groups were drawn, and which of the two."""
    words = []
    if abs(figures["calibration_z"]) > ALARM:
        direction = "fewer" if figures["calibration_z"] < 0 else "more"
        words.append(
            f"The model was right on {direction} of the drawn points than the belief expected "
            f"({abs(figures['calibration_z']):.1f} standard deviations): intervals are wider for it, not wrong."
        )
    elif draws == "labels":
        worst = max(figures["calibration"], key=lambda fifth: abs(fifth.z), default=None)
        if worst is not None and abs(worst.z) > ALARM:
            words.append(
                f"Of {worst.labels} drawn points for which the belief expected {worst.believed:.0%} right, "
                f"{worst.found:.0%} were: intervals are wider for it, not wrong."
            )
    gap = abs(figures["random_share"] - figures["difference"])
    one_label = 1 / max(figures["effective_sample"], 1.0)  # without an error the standard error is 0: the rule of three
    if gap > ALARM * max(figures["random_share_error"], one_label):
        words.append(
            f"Accuracy by sampling weights alone is {figures['random_share']:.3f}, with the belief "
            f"{figures['difference']:.3f}: further apart than chance explains. Trust neither before more labels are in."
        )
    if drawn and figures["effective_sample"] < min(FEW, drawn / 4):
        words.append(
            f"A few {draws} carry most of the weight ({drawn} {draws} weigh like {figures['effective_sample']:.0f} "
            "equal ones): figures may still move by more than the interval says."
        )
    if unused:
        words.append(
            f"{unused} of {labels + unused} drawn labels speak for no item but their own, because items that were "
            "asked for before them have no answer. Answer or close those: if the items that people leave open differ "
            "from the others, the figures are off by more than the interval says."
        )
    return words
