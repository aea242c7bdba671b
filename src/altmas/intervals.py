"""Intervals around an estimate."""

import math
from statistics import NormalDist


def normal_quantile(confidence: float) -> float:
    """z with P(|Z| <= z) = confidence."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson(p: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's interval (B2) for a share p seen in n trials; n may be effective, infinite (width 0) or 0 (no news)."""
    if math.isinf(n):
        return p, p
    if n <= 0:
        return 0.0, 1.0
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))  # contains p in spite of rounding
