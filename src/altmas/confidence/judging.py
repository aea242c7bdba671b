"""How good a confidence score is (docs/confidence.md D.0)."""

import numpy as np

from altmas.types import Array


def expected_calibration_error(confidence: Array, right: Array, bins: int = 15) -> float:
    """sum_b share_b |accuracy_b - mean confidence_b| over bins of equal width on [0, 1]."""
    confidence, right = np.asarray(confidence, np.float64), np.asarray(right, np.float64)
    at = np.clip((confidence * bins).astype(np.int64), 0, bins - 1)
    gaps = np.bincount(at, right - confidence, bins)
    return float(np.abs(gaps).sum() / len(confidence))


def auroc(confidence: Array, right: Array) -> float:
    """P(a right answer has the higher confidence), ties counting half; nan without both right and wrong answers."""
    from scipy.stats import rankdata

    right = np.asarray(right, np.bool_)
    yes, no = int(right.sum()), int((~right).sum())
    if yes == 0 or no == 0:
        return float("nan")
    ranks = rankdata(confidence)
    return float((ranks[right].sum() - yes * (yes + 1) / 2) / (yes * no))
