"""From labels and belief to the table of the whole pool, and from there to every metric: the difference estimator.

N points, C classes; f the belief, e_i = onehot(y_i) - f_i the residual of a labelled point, pi_i its inclusion
probability. Labels that nobody drew are exact where they are and enter no sum over residuals.
    That = sum over labelled of onehot(y_i) + sum over the rest of f_i + h * sum over drawn of (1/pi_i - 1) e_i
    h    = (points without a label) / sum over drawn of (1/pi_i - 1)
Rows of e add up to 0, so the row sums of That are the known ones. A wrong belief costs width, never validity.
A metric is Q(B) + <D(B), That - B>, linearised at a table B near That: exact for accuracy and precision.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from altmas.belief import Belief
from altmas.history import History
from altmas.methods.assured.design import level_odds
from altmas.metrics import Metric, table_of
from altmas.metrics.formulas import positive
from altmas.metrics.influence import influence_of
from altmas.types import Array

LABELS_PER_CLASS = 4.0
"""How many labels for each class make half of the correction part of the point where metrics are linearised."""


@dataclass(frozen=True)
class Difference:
    """The difference estimator of one set of points (the pool, or a slice).

    drawn, codes  (n,) rows that were drawn and labelled, and their labels
    volunteered   (N,) mask of labelled rows that nobody drew; known (N,) labels, -1 where there is none
    inside        (N,) mask of the points the estimate is about
    chances       (N,) inclusion probability of every point
    skipped       rows that were drawn and got no answer
    """

    belief: Belief
    drawn: Array
    codes: Array
    known: Array
    volunteered: Array
    inside: Array
    chances: Array
    skipped: Array

    @cached_property
    def sampled(self) -> Array:
        """(n,) which draws lie inside."""
        return np.asarray(self.inside[self.drawn])

    @cached_property
    def unknown(self) -> Array:
        """(N,) points inside without a label."""
        return np.asarray(self.inside & (self.known < 0))

    @cached_property
    def expansion(self) -> Array:
        """(n,) how many unlabelled points each draw speaks for: h (1/pi - 1), which add up to those there are."""
        chance = self.chances[self.drawn[self.sampled]]
        odds = (1 - chance) / chance
        total = odds.sum()
        return np.asarray(odds * (self.unknown.sum() / total) if total > 0 else odds * 0.0)

    @cached_property
    def _burden(self) -> Array:
        """(N,) 1/pi of the points inside without a label, 0 elsewhere."""
        return np.where(self.unknown, 1 / self.chances, 0.0)

    @cached_property
    def labels(self) -> int:
        """How many labels inside."""
        return int((self.inside & (self.known >= 0)).sum())

    @cached_property
    def known_table(self) -> Array:
        """(C, C) the table of the labelled points alone."""
        rows = np.flatnonzero(self.inside & (self.known >= 0))
        return table_of(self.belief.predictions[rows], self.known[rows], self.belief.rivals.shape[1])

    @cached_property
    def expected(self) -> Array:
        """(C, C) the table as believed: known labels, and the belief where there is none."""
        return np.asarray(self.known_table + self.belief.table(self.unknown))

    @cached_property
    def correction(self) -> Array:
        """(C, C) h * sum over drawn of (1/pi - 1) e, cells signed, rows that add up to 0."""
        table = np.zeros_like(self.expected)
        predictions, points = self.belief.predictions, self.drawn[self.sampled]
        if len(points):
            np.add.at(table, (predictions[points], self.codes[self.sampled]), self.expansion)
            np.subtract.at(table, predictions[points], self.belief.rows(points) * self.expansion[:, None])
        return table

    @cached_property
    def table(self) -> Array:
        """(C, C) That, cells signed."""
        return np.asarray(self.expected + self.correction)

    @cached_property
    def base(self) -> Array:
        """(C, C) where metrics are linearised: the believed table, and more of the correction the more labels.

        Ratios of noisy cells are wild; with LABELS_PER_CLASS labels of each class half of the correction is trusted.
        """
        n = int(self.sampled.sum())
        share = n / (n + LABELS_PER_CLASS * len(self.expected))
        return positive(self.expected + share * self.correction)

    def linearised(self, metric: Metric) -> "Linearised":
        """The metric's estimate and what its variance is made of."""
        influence = influence_of(metric, self.base)
        mean, variance = influence.moments(self.belief)
        points = self.drawn[self.sampled]
        residual = influence.at(self.belief.predictions[points], self.codes[self.sampled]) - mean[points]
        # sum over all points of (1/pi - 1) Var_f, from the unlabelled ones, which are there with chance 1 - pi.
        believed = float(variance @ self._burden)
        return Linearised(
            value=float(metric.of_table(self.base)) + influence.dot(self.table - self.base),
            residual=residual,
            expansion=self.expansion,
            chance=self.chances[points],
            believed=believed,
            spread=influence.spread(self.base),
            size=int((self.inside & ~self.volunteered).sum()),
            labels=self.labels,
            unknown=int(self.unknown.sum()),
            skipped=int(self.inside[self.skipped].sum()),
            sampled=self.sampled,
            classes=len(self.base),
            labelled=float(metric.of_table(self.known_table)),
        )


@dataclass(frozen=True)
class Linearised:
    """One metric to first order.

    residual   (n,) D[a, y] - E_f D of each draw;  expansion (n,);  chance (n,) inclusion probability
    believed   variance if labels followed the belief
    spread     sum over all points of (D - mean)^2;  size  points that could be drawn
    labels, unknown, skipped  how many points have a label, have none, were skipped;  sampled  which draws lie inside
    classes    how many there are;  labelled  the metric of the labelled points alone
    """

    value: float
    residual: Array
    expansion: Array
    chance: Array
    believed: float
    spread: float
    size: int
    labels: int
    unknown: int
    skipped: int
    sampled: Array
    classes: int
    labelled: float

    @cached_property
    def terms(self) -> Array:
        """(n,) squared terms whose sum estimates the variance: (h (1/pi - 1))^2 (e - B)^2 / (1 - pi), B their mean."""
        if not len(self.residual) or self.expansion.sum() <= 0:
            return np.zeros(len(self.residual))
        centre = (self.expansion * self.residual).sum() / self.expansion.sum()
        n = len(self.residual)
        scale = self.expansion**2 / np.maximum(1 - self.chance, 1e-12) * (n / max(n - 1, 1))
        return np.asarray(scale * (self.residual - centre) ** 2)

    def effective_labels(self, variance: float) -> float:
        """n of a simple random sample with this variance: V = N (1/n - 1/N) * spread."""
        if variance <= 0:
            return float(self.size)
        if self.spread <= 0:
            return float("nan")
        return 1 / (variance / (self.size * self.spread) + 1 / self.size)


def sequential_accuracy(history: History, predictions: Array) -> float:
    """Accuracy by the martingale of single draws: exactly unbiased for any belief, and wider than the estimate above.

    A_m = (right answers known before m + sum over the open points of r + (right_m - r_m) / q_m) / N, r the belief in
    force at draw m; the mean over all draws that had one. nan before the first.
    """
    known, agree, terms = np.zeros(history.n_points, np.bool_), None, []
    answers = history.known
    hits, believed = 0, 0.0  # right answers known, and those believed among the open points
    for batch in history.batches:
        if "agree" in batch.record:
            agree = level_odds(batch.record["agree"])
            believed = float(agree[~known].sum())
        for row, q in zip(batch.indices.tolist(), np.asarray(batch.probabilities).tolist(), strict=True):
            if answers[row] < 0:
                continue
            right = float(answers[row] == predictions[row])
            if agree is not None:
                terms.append(hits + believed + (right - agree[row]) / q)
                believed -= float(agree[row])
            known[row] = True
            hits += int(right)
    return float(np.mean(terms)) / history.n_points if terms else float("nan")
