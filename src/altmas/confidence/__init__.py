"""How sure one may be that the model is right on each point: scores, and how they become probabilities.

Every score delivers u(x), an estimate of P(the model is right), or something that rises with it. Uses: strata, a belief
to draw by, a ranking of pseudo-labels. Fit only on labels; if these were not drawn uniformly, weight each by
1 / (inclusion probability). Do not fit and evaluate on the same labels where the score defines strata.
"""

from altmas.confidence.judging import auroc, expected_calibration_error
from altmas.confidence.scaling import Isotonic, OneVsRest, Platt, Temperature, max_softmax, pool_adjacent_violators
from altmas.confidence.true_class import ConfidenceHead, true_class_probability
from altmas.confidence.trust_score import TrustScore

__all__ = [
    "ConfidenceHead",
    "Isotonic",
    "OneVsRest",
    "Platt",
    "Temperature",
    "TrustScore",
    "auroc",
    "expected_calibration_error",
    "max_softmax",
    "pool_adjacent_violators",
    "true_class_probability",
]
