"""Labels of points that were drawn with known probabilities, weighted so that they speak for the whole pool (LURE).

    v_m  = 1 + (R - M)/(R - m) (1/(N_m q_m) - 1)                       weight of draw m = 1..M
    A_m  = (1/R) (e_m (R - m + 1)/(N_m q_m)  +  sum of e_k, k < m)     e = residuals whose weighted sum is 0
    Var  = R^2 sum_m c_m^2 A_m^2,   c_m = R (R - M) / (M (R - m)(R - m + 1))
with R = points that were not volunteered, N_m = points open at draw m and q_m = the probability of that draw. The
finite-pool correction is inside c_m: once everything is labelled the variance is 0. Uniform draws have v_m = 1.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.history import Batch, History
from altmas.intervals import normal_quantile
from altmas.metrics import Metric, table_of
from altmas.pool import Pool

Array = NDArray[Any]


def has_probabilities(history: History) -> bool:
    """Whether every draw carries a probability, or everything is labelled so that none is needed."""
    return all(batch.probabilities is not None for batch in history.batches) or len(history.labels) == history.n_points


@dataclass(frozen=True)
class Draws:
    """The labelled draws in drawing order, and what is known without them.

    rows    (M,) points;  place (M,) m of each draw, from 1;  tilt (M,) 1/(N_m q_m): 1 for a uniform draw
    exact   (V,) labelled points that need no weight: volunteered ones and draws that were certain
    open    number of points that are not exact: R;  total  number of draws up to the last labelled one
    """

    rows: Array
    place: Array
    tilt: Array
    exact: Array
    open: int
    total: int

    @property
    def weights(self) -> Array:
        """v_m of the module's docstring."""
        share = (self.open - self.total) / np.maximum(self.open - self.place, 1)
        return np.asarray(1 + share * (self.tilt - 1))

    @property
    def steps(self) -> Array:
        """c_m of the module's docstring."""
        if self.total >= self.open:
            return np.zeros(len(self.rows))
        left = self.open - self.place
        return np.asarray(self.open * (self.open - self.total) / (self.total * left * (left + 1.0)))


def draws_of(history: History) -> Draws:
    """The weighted draws of a history whose batches all carry probabilities."""
    told_before = _volunteered_before(history)
    rows, tilt, certain = [], [], []
    drawn = 0
    for batch, volunteered in zip(history.batches, told_before, strict=True):
        for row, probability in zip(batch.indices.tolist(), _probabilities(batch), strict=True):
            still_open = history.n_points - volunteered - drawn
            drawn += 1
            if probability > 1 - 1e-9 and still_open > 1:
                certain.append(row)
            else:
                rows.append(row)
                tilt.append(1 / (still_open * probability))
    labelled = np.array([row in history.labels for row in rows], np.bool_)
    total = int(np.flatnonzero(labelled)[-1]) + 1 if labelled.any() else 0
    kept = np.flatnonzero(labelled)
    exact = [*history.volunteered.tolist(), *(row for row in certain if row in history.labels)]
    return Draws(
        rows=np.array(rows, np.int64)[kept],
        place=kept + 1,
        tilt=np.array(tilt, np.float64)[kept],
        exact=np.array(exact, np.int64),
        open=history.n_points - len(exact),
        total=total,
    )


def _probabilities(batch: Batch) -> list[float]:
    if batch.probabilities is None:  # only where everything is labelled, so that no weight matters
        return [1.0] * len(batch.indices)
    return [float(one) for one in batch.probabilities]


def _volunteered_before(history: History) -> list[int]:
    """How many volunteered labels were known when each batch was drawn."""
    volunteered = set(history.volunteered.tolist())
    known = np.cumsum([0, *(row in volunteered for row in history.labels)])
    return [int(known[min(batch.labels_before, len(history.labels))]) for batch in history.batches]


def scaled_weights(draws: Draws, inside: Array) -> Array:
    """(M,) how many points of the pool each labelled draw stands for: v_m, scaled to the known number of points."""
    weights = np.where(inside[draws.rows], draws.weights, 0.0)
    unknown = inside.sum() - inside[draws.exact].sum()
    return weights * (unknown / weights.sum()) if weights.any() else weights


def martingale_variance(draws: Draws, residual: Array) -> float:
    """R^2 sum_m c_m^2 A_m^2 of the module's docstring, of residuals (M,) whose weighted sum is 0."""
    before = np.cumsum(residual) - residual
    terms = residual * draws.tilt * (draws.open - draws.place + 1) + before  # R A_m
    return float(((draws.steps * terms) ** 2).sum())


def weighted_table(predictions: Array, known: Array, n_classes: int, draws: Draws, inside: Array) -> Array:
    """(C, C) the table of the points inside: exact labels as they are, drawn ones with their weights."""
    rows = np.concatenate([draws.exact, draws.rows])
    weights = np.concatenate([inside[draws.exact].astype(np.float64), scaled_weights(draws, inside)])
    return table_of(predictions[rows], known[rows], n_classes, weights)


def weighted_interval(pool: Pool, history: History, metric: Metric, confidence: float) -> tuple[float, float, float]:
    """(value, low, high) of a metric from the weighted labels alone, without anybody's belief; nan where undefined.

    z^2/2 pseudo-labels, half right and half wrong, keep a sample without errors from having no spread.
    """
    draws, n_classes, z = draws_of(history), len(pool.classes), normal_quantile(confidence)
    members = metric.members(pool)
    inside = np.ones(len(pool), np.bool_) if members is None else members
    table = weighted_table(pool.predictions, history.known, n_classes, draws, inside)
    value = float(metric.of_table(table)) if table.sum() else math.nan
    here = inside[draws.rows]
    if math.isnan(value) or not here.any():
        return math.nan, math.nan, math.nan
    slope, rows = metric.gradient(table), draws.rows
    moves = slope[pool.predictions[rows], history.known[rows]]
    centre = np.average(moves, weights=np.where(here, draws.weights, 0.0))
    residual = np.where(here, moves - centre, 0.0)
    right = (np.diagonal(slope) - centre) ** 2
    wrong = (((slope - centre) ** 2).sum(1) - right) / (n_classes - 1)
    pseudo = z**2 / 2 * float(((right + wrong) / 2)[pool.predictions[inside]].mean())
    unseen = (draws.open / draws.total) ** 2 * (1 - draws.total / draws.open)
    half = z * math.sqrt(martingale_variance(draws, residual) + pseudo * unseen)
    return value, max(metric.bounds[0], value - half), min(metric.bounds[1], value + half)
