"""EXP3: which of several arms to play when their rewards may change (docs/other-questions.md C28, C29)."""

import numpy as np

from altmas.types import Array


def exploration(arms: int, rounds: int) -> float:
    """(C29) the share of plays that are uniform: min(1, sqrt(C ln C / ((e - 1) 2 T / 3)))."""
    return float(min(1.0, np.sqrt(arms * np.log(arms) / ((np.e - 1) * 2 * max(rounds, 1) / 3))))


def play_probabilities(log_weights: Array, share: float) -> Array:
    """(C28) p_c = (1 - share) w_c / sum w + share / C."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray((1 - share) * weights / weights.sum() + share / len(weights))


def rewarded(log_weights: Array, arm: int, reward: float, probability: float, share: float) -> Array:
    """(C28) ln w after the arm gave a reward in [0, 1]; logarithms do not overflow in long runs."""
    changed = log_weights.copy()
    changed[arm] += share * reward / probability / len(log_weights)
    return changed
