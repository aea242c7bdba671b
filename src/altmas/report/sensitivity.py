"""What if some labels are wrong? Two answers from the estimated table of the pool.

at random   each label is wrong with probability x, to any other class alike: observed = true P with
            P[c, c'] = 1 - x if c = c' else x / (C - 1), so true = observed P^-1
at worst    the share x of all points is relabelled in the way that moves the metric most, row sums kept
"""

from typing import Any

import numpy as np

from altmas.metrics import Metric
from altmas.types import Array

SHARES = (0.01, 0.02, 0.05, 0.10)
STEPS = 12


def corrected(table: Array, share: float) -> Array:
    """(C, C) the table behind one whose labels are wrong at random with this probability; cells at least 0."""
    n_classes = len(table)
    noise = np.full((n_classes, n_classes), share / (n_classes - 1))
    np.fill_diagonal(noise, 1 - share)
    true = np.maximum(table @ np.linalg.inv(noise), 0.0)
    sums = true.sum(1, keepdims=True)
    return np.asarray(np.where(sums > 0, true * table.sum(1, keepdims=True) / np.where(sums > 0, sums, 1.0), 0.0))


def worst(table: Array, metric: Metric, share: float, direction: int) -> float:
    """The largest (direction 1) or smallest (-1) value when this share of the points is relabelled; steepest steps."""
    moved = np.maximum(np.asarray(table, np.float64), 0.0).copy()
    step = share * moved.sum() / STEPS
    for _ in range(STEPS):
        _relabel(moved, direction * metric.gradient(moved), step)
    return float(metric.of_table(moved))


def _relabel(table: Array, slope: Array, amount: float) -> None:
    """Move `amount` of mass inside rows, each time from the cell and to the cell with the greatest gain."""
    best = slope.argmax(1)
    gain = slope[np.arange(len(slope)), best][:, None] - slope
    for cell in np.argsort(-gain, axis=None, kind="stable"):
        row, column = divmod(int(cell), len(table))
        if amount <= 0 or gain[row, column] <= 0:
            return
        mass = min(amount, table[row, column])
        table[row, column] -= mass
        table[row, best[row]] += mass
        amount -= mass


def sensitivity(table: Array, metrics: tuple[Metric, ...]) -> list[dict[str, Any]]:
    """For each metric and share: its value if labels are wrong at random, and the least and greatest at worst."""
    rows = []
    for metric in metrics:
        for share in SHARES:
            rows.append(
                {
                    "metric": metric.name,
                    "share": share,
                    "random": float(metric.of_table(corrected(table, share))),
                    "least": worst(table, metric, share, -1),
                    "most": worst(table, metric, share, 1),
                }
            )
    return rows
