"""What is believed of classes that are numbers: a regression of the value on what the models say and on features.

C classes with values v, standardised; x the columns of a point: the value that each model gives it (by its scores, if
it has some) or their mean, leading components of the features, and the value that labels of similar points suggest.
    P(y = c | x)  in proportion to  exp(alpha_c + v_c <beta, x>)                                                (V9)
is the adjacent-categories logit model (Goodman 1983): neighbouring classes have log odds that are linear in x with a
slope in proportion to how far apart their values are, so a judge that grades high moves mass to the higher grades, and
a grade that no label showed is still believed in. Its fit makes  sum_i w_i x_i (v_y - E v)  vanish but for the prior:
it is a regression of the value that ends in a distribution over the classes. Several such answers and the belief that
knows no order count by how likely they make labels that they did not see.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from altmas.belief import Belief, split_around
from altmas.methods.assured.logistic import by_likelihood
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.views import Description, narrow, standardised
from altmas.metrics import Metric
from altmas.pool import Pool
from altmas.types import Array

STEPS, CLOSE = 30, 1e-6
"""Newton steps of a fit, and the step below which it has converged."""
MOST_CLASSES = 60
"""With more grades than that the belief knows no order: fits would take longer than they are worth."""
CHUNK = 2_000_000
"""Probabilities that are made at a time."""
CUBES = 20_000_000
"""Labels times classes cubed from which only every second label, or third, tells how likely the regressions are."""
SIMILAR = "value + labels"
"""The regression whose last column is what labels of similar points suggest."""


@dataclass(frozen=True)
class Labels:
    """Labels `codes` (n,) at rows `labelled`, which count by `weights`; folds (N,) of the points."""

    labelled: Array
    codes: Array
    weights: Array
    folds: Array

    def outside(self, fold: int) -> Array:
        """(n,) which labels lie outside a fold."""
        return np.asarray(self.folds[self.labelled] != fold)


@dataclass(frozen=True)
class Learned:
    """What labels of similar points suggest, (m, C) for the rows of a fold; left_out (n, C) for its training labels."""

    left_out: Array
    rows: Array


@dataclass(frozen=True)
class Columns:
    """Columns (N, d) of a candidate whose slopes have the prior Normal(mean, 1 / penalty), each (d,)."""

    values: Array
    penalty: Array
    mean: Array

    @classmethod
    def alike(cls, values: Array, penalty: float, mean: float = 0.0) -> "Columns":
        """Columns that share a prior."""
        return cls(values, np.full(values.shape[1], penalty), np.full(values.shape[1], mean))

    def beside(self, other: "Columns") -> "Columns":
        """These columns and others."""
        return Columns(
            np.hstack([self.values, other.values]),
            np.append(self.penalty, other.penalty),
            np.append(self.mean, other.mean),
        )


def values_in(metrics: Sequence[Metric], pool: Pool) -> tuple[float, ...]:
    """The values of the classes if a metric takes them as numbers (the first that does), or if the pool has them."""
    parts = [*(part.class_values for metric in metrics for _, part in metric.parts), pool.values or ()]
    return next((values for values in parts if len(set(values)) > 1 and len(values) <= MOST_CLASSES), ())


def with_order(
    belief: Belief,
    pool: Pool,
    description: Description,
    labels: Labels,
    learned: Sequence[Learned | None],
    values: Sequence[float],
    at_labels: Sequence[Array],
) -> Belief:
    """The belief beside the regressions of the value, all by their likelihood on labels outside the point's fold.

    learned    for each fold what labels outside it suggest; None without features
    at_labels  for each fold (n,) what the belief gives to the labels outside it, each by the others
    """
    frequency = _expected_frequency(pool)
    standard = standard_values(values, frequency)
    candidates = _candidates(pool, description, standard, learned, labels.folds)
    if not candidates:
        return belief
    fits = [_fold_fits(candidates, labels, k, learned[k], standard, frequency) for k in range(len(learned))]
    agree, rivals = np.empty(len(pool)), np.empty((len(pool), len(pool.classes)), narrow(len(pool) * len(values)))
    shares = np.zeros(1 + len(candidates))
    for k, fit in enumerate(fits):
        inside, outside = np.flatnonzero(labels.folds == k), labels.outside(k)
        some = _judging(outside.sum(), len(values))
        unordered = np.log(np.maximum(at_labels[k][some], RECIPE.certain))
        logs = np.stack([unordered, *(fitted.left_out for fitted in fit)])
        of_fold = by_likelihood(logs, labels.weights[outside][some], np.ones(len(logs)))
        for rows in np.array_split(inside, 1 + len(inside) * len(values) // CHUNK):
            unordered = np.log(np.maximum(belief.rows(rows), RECIPE.certain))
            full = _pooled([unordered, *_answers(candidates, fit, rows, standard)], of_fold)
            agree[rows], rivals[rows] = split_around(full, belief.predictions[rows])
        shares += of_fold / len(fits)
    named = {name: share * float(shares[0]) for name, share in belief.shares.items()}
    named |= dict(zip(candidates, shares[1:].tolist(), strict=True))
    return Belief(belief.predictions, agree, rivals, np.arange(len(pool)), named)


def _pooled(logs: Sequence[Array], shares: Array) -> Array:
    """(m, C) the normalised geometric mean of distributions with these logarithms."""
    mean = sum((share * log for share, log in zip(shares, logs, strict=True)), np.zeros(1))
    chances = np.maximum(np.exp(mean - mean.max(1, keepdims=True)), RECIPE.certain)
    return np.asarray(chances / chances.sum(1, keepdims=True))


def _expected_frequency(pool: Pool) -> Array:
    """(C,) how often each class is expected before any label: as often as models say it, and once more for each."""
    counts = np.ones(len(pool.classes))
    for model in pool.models:
        counts += np.bincount(model.predictions, minlength=len(counts)) / len(pool.models)
    return np.asarray(counts / counts.sum())


def standard_values(values: Sequence[float], frequency: Array) -> Array:
    """(C,) the values with mean 0 and variance 1, as the classes are expected to be frequent."""
    numbers = np.asarray(values, np.float64)
    numbers = (numbers - numbers.mean()) / numbers.std()
    centre = float(frequency @ numbers)
    return np.asarray((numbers - centre) / max(float(np.sqrt(frequency @ (numbers - centre) ** 2)), 0.3))


# ---------------------------------------------------------------- columns


def _candidates(
    pool: Pool, description: Description, values: Array, learned: Sequence[Learned | None], folds: Array
) -> dict[str, Columns]:
    """The columns of each regression, by its name; the column that labels of similar points give comes last."""
    candidates: dict[str, Columns] = {}
    judged = judged_values(pool, values)
    count = judged.shape[1]
    if count:
        candidates["value, mean"] = Columns.alike(
            standardised(judged.mean(1, keepdims=True)), RECIPE.value_penalty, 1.0
        )
    by_model = Columns.alike(judged, RECIPE.value_each_penalty, 1.0 / max(count, 1))
    if count > 1:
        candidates["value, each"] = by_model
    if pool.features is not None and description.components is not None:
        candidates["value + components"] = by_model.beside(
            Columns.alike(description.components, RECIPE.component_penalty)
        )
    if all(of_fold is not None for of_fold in learned):
        similar = np.empty((len(pool), 1))
        for k, of_fold in enumerate(learned):
            similar[folds == k] = RECIPE.label_scale * (of_fold.rows @ values)[:, None] if of_fold is not None else 0.0
        candidates[SIMILAR] = by_model.beside(Columns.alike(similar, RECIPE.label_penalty, 1.0))
    return candidates


def judged_values(pool: Pool, values: Array) -> Array:
    """(N, K) the value that each model gives, the expected one where it has scores; models without spread left out."""
    columns = [values[model.predictions] if model.scores is None else model.scores @ values for model in pool.models]
    judged = np.column_stack([np.zeros((len(pool), 0)), *columns])
    return standardised(judged[:, judged.std(0) > 1e-9])


def value_spread(pool: Pool, values: Sequence[float]) -> Array:
    """(N,) standard deviation of a point's value if each model is as likely to be right; 0 with one hard answer."""
    numbers, mean, square = np.asarray(values, np.float64), np.zeros(len(pool)), np.zeros(len(pool))
    numbers = numbers - numbers.mean()
    for model in pool.models:
        by_score = model.scores if model.scores is not None else np.eye(len(numbers))[model.predictions]
        mean += by_score @ numbers / len(pool.models)
        square += by_score @ numbers**2 / len(pool.models)
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))


# ---------------------------------------------------------------- fits


@dataclass(frozen=True)
class Fit:
    """alpha (C,) and beta (d,) of (V9); left_out (m,) log chance of those labels that judge it, each by the others."""

    alpha: Array
    beta: Array
    left_out: Array


def _fold_fits(
    candidates: dict[str, Columns], labels: Labels, fold: int, learned: Learned | None, values: Array, frequency: Array
) -> list[Fit]:
    outside, fits = labels.outside(fold), []
    for name, candidate in candidates.items():
        columns = candidate.values[labels.labelled[outside]]
        if name == SIMILAR and learned is not None:  # not what a label itself suggests
            columns[:, -1] = RECIPE.label_scale * (learned.left_out @ values)
        training = columns, labels.codes[outside], labels.weights[outside], values
        alpha, beta = ordered_fit(*training, candidate.penalty, candidate.mean, frequency)
        some = _judging(len(columns), len(values))
        fits.append(Fit(alpha, beta, left_out_logs(*training, candidate.penalty, alpha, beta, some)))
    return fits


def _judging(labels: int, n_classes: int) -> slice:
    """The labels that tell how likely the regressions are: all of them, unless that takes too long."""
    return slice(0, None, 1 + labels * n_classes**3 // CUBES)


def _answers(candidates: dict[str, Columns], fits: Sequence[Fit], rows: Array, values: Array) -> Array:
    """(J, m, C) logarithms of what the candidates believe of some points."""
    both = zip(candidates.values(), fits, strict=True)
    return np.stack([log_chances(candidate.values[rows], fit.alpha, fit.beta, values) for candidate, fit in both])


# ---------------------------------------------------------------- the model


def ordered_fit(
    columns: Array, codes: Array, weights: Array, values: Array, penalty: Array, mean: Array, frequency: Array
) -> tuple[Array, Array]:
    """(alpha (C,), beta (d,)) of (V9) by Newton steps.

    Maximises sum_i w_i log P(y_i | x_i) + sum_c frequency_c log P(c | x = 0) - sum_j penalty_j (beta_j - mean_j)^2 / 2:
    one pseudo-label is spread over the classes by `frequency` (C,), so that no class is ever believed impossible.
    """
    n_classes, d = len(values), columns.shape[1]
    x, w = np.vstack([columns, np.zeros((1, d))]), np.append(weights, 1.0)
    targets = np.vstack([np.eye(n_classes)[codes], frequency])
    alpha, beta = np.log(frequency), mean.copy()

    def objective(alpha: Array, beta: Array) -> float:
        logs = log_chances(x, alpha, beta, values)
        return float((w[:, None] * targets * logs).sum() - (penalty * (beta - mean) ** 2).sum() / 2)

    now = objective(alpha, beta)
    for _ in range(STEPS):
        chance = np.exp(log_chances(x, alpha, beta, values))
        expected = chance @ values
        slope = np.append(w @ (targets - chance), x.T @ (w * (targets @ values - expected)) - penalty * (beta - mean))
        curve = _curvature(x, w, chance, values, expected)
        curve[np.diag_indices(n_classes + d)] += np.append(np.full(n_classes, 1e-6), penalty + 1e-9)
        step = np.linalg.solve(curve, slope)
        while (
            after := objective(alpha + step[:n_classes], beta + step[n_classes:])
        ) < now:  # a whole step may overshoot
            step /= 2
            if float(np.abs(step).max()) < CLOSE:
                return alpha, beta
        alpha, beta, now = alpha + step[:n_classes], beta + step[n_classes:], after
        if float(np.abs(step).max()) < CLOSE:
            break
    return alpha, beta


def left_out_logs(
    columns: Array,
    codes: Array,
    weights: Array,
    values: Array,
    penalty: Array,
    alpha: Array,
    beta: Array,
    some: slice = slice(None),
) -> Array:
    """(m,) log P(y_i | x_i) of some labels by the fit without label i: one Newton step from the fit of all labels.

    The logits of x_i are A_i (alpha, beta), A_i = [I, v x_i^T]. Without label i the slope is -A_i^T r_i and the
    curvature H - A_i^T S_i A_i, with r_i = w_i (onehot(y_i) - p_i) and S_i = w_i (diag p_i - p_i p_i^T), so that the
    logits move by  -(I - G_i S_i)^-1 G_i r_i,  G_i = A_i H^-1 A_i^T.
    """
    n_classes, (n, d) = len(values), columns.shape
    x, w = np.vstack([columns, np.zeros((1, d))]), np.append(weights, 1.0)
    chance = np.exp(log_chances(x, alpha, beta, values))
    curve = _curvature(x, w, chance, values, chance @ values)
    curve[np.diag_indices(n_classes + d)] += np.append(np.full(n_classes, 1e-6), penalty + 1e-9)
    inverse = np.linalg.inv(curve)
    columns, codes, weights, chance = columns[some], codes[some], weights[some], chance[:n][some]
    across = (columns @ inverse[n_classes:, :n_classes])[:, :, None] * values
    within = np.einsum("nd,de,ne->n", columns, inverse[n_classes:, n_classes:], columns, optimize=True)
    lever = inverse[:n_classes, :n_classes] + across + across.transpose(0, 2, 1)
    lever += within[:, None, None] * np.outer(values, values)
    residual = weights[:, None] * (np.eye(n_classes)[codes] - chance)
    spread = weights[:, None, None] * (np.eye(n_classes) * chance[:, None, :] - chance[:, :, None] * chance[:, None, :])
    moved = np.linalg.solve(np.eye(n_classes) * (1 + 1e-6) - lever @ spread, lever @ residual[:, :, None])[:, :, 0]
    logs = alpha + np.outer(columns @ beta, values) - np.clip(moved, -10.0, 10.0)
    logs -= logs.max(1, keepdims=True)
    return np.asarray(logs[np.arange(len(codes)), codes] - np.log(np.exp(logs).sum(1)))


def log_chances(columns: Array, alpha: Array, beta: Array, values: Array) -> Array:
    """(n, C) log P(y = c | x) of (V9)."""
    logs = alpha + np.outer(columns @ beta, values)
    logs -= logs.max(1, keepdims=True)
    return np.asarray(logs - np.log(np.exp(logs).sum(1, keepdims=True)))


def _curvature(x: Array, w: Array, chance: Array, values: Array, expected: Array) -> Array:
    """(C + d, C + d) minus the second derivative of the weighted log likelihood."""
    weighted = w[:, None] * chance
    by_class = np.diag(weighted.sum(0)) - weighted.T @ chance
    both = (weighted * (values - expected[:, None])).T @ x
    spread = w * (chance @ values**2 - expected**2)
    return np.block([[by_class, both], [both.T, (x * spread[:, None]).T @ x]])
