"""Imitations of the model: P(the model says c | x) from features alone, each fitted point predicted without itself.

Several imitators are tried; the one under which the model's answers are most likely is kept. None sees a label.
They are fitted on all points, or on a sample of a large pool; then other points are predicted by what was fitted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.space import Floats, Neighbourhood, Scratch, Smoothed, random_features
from altmas.types import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RIDGES = (1e-4, 1e-3, 1e-2, 0.1, 1.0)
"""Ridge penalties an imitation chooses from, by leave-one-out error."""
WORK, TRIAL_WORK = 2e10, 2.5e9
"""Multiplications that the kernel imitation may cost, and those of the trials that choose its penalty and smoothing."""
MOST_FEATURES = 1000
SHARES = (0.0, 0.5)
"""How much of a point's kernel features comes from its neighbours: tried both ways."""
TREE_CLASSES, TREE_MEMBERS = 4, 50
"""Trees are tried up to this many classes (beyond, one tree for each class takes too long) of at least this size."""
LINEAR_CLASSES = 30
SHARPNESS = np.geomspace(1, 40, 25)
SOFTENED = 20_000
"""Points by which the sharpness of a view is chosen."""


@dataclass(frozen=True)
class Fitted:
    """What imitators are fitted on: features (n, D), their coordinates, the model's answers (n,), C and neighbours.

    gamma  1 / (median squared distance)
    """

    features: Array
    space: Floats
    says: Array
    n_classes: int
    gamma: float
    near: Neighbourhood


@dataclass(frozen=True)
class Elsewhere:
    """Points that no imitator was fitted on: features (k, D), coordinates and links to anchors (k, anchors)."""

    features: Array
    space: Floats
    links: "csr_array"


@dataclass(frozen=True)
class Imitation:
    """view (n, C): P(the model says c | x) of the fitted points; elsewhere: the same of other points."""

    view: Array
    elsewhere: Callable[[Elsewhere], Array]


def imitation(fitted: Fitted) -> Imitation:
    """The best imitator."""
    return min(_imitators(fitted), key=lambda imitator: log_loss(imitator.view, fitted.says))


def _imitators(fitted: Fitted) -> Iterator[Imitation]:
    seen = np.bincount(fitted.says, minlength=fitted.n_classes)
    yield kernel_imitation(fitted)
    if fitted.space.shape[1] > RECIPE.few_columns or (seen > 0).sum() < 2:
        return
    if fitted.n_classes <= LINEAR_CLASSES and seen[seen > 0].min() >= 2:
        yield _linear_imitation(fitted)
    if fitted.n_classes <= TREE_CLASSES and seen.min() >= TREE_MEMBERS:
        yield _tree_imitation(fitted)


# ---------------------------------------------------------------- kernel


def kernel_imitation(fitted: Fitted) -> Imitation:
    """Kernel ridge regression of the model's answers, turned into probabilities."""
    says = np.eye(fitted.n_classes, dtype=np.float32)[fitted.says]
    n, width = len(says), RECIPE.imitation_width * fitted.gamma
    scratch, scratch_elsewhere = Scratch(), Scratch()

    def inputs(count: int, share: float) -> Smoothed:
        plain = random_features(fitted.space, count, width, seed=0, scratch=scratch)
        return Smoothed(plain) if share == 0 else fitted.near.smoothed(plain, share)

    few, many = (_even(min(MOST_FEATURES, (work / n) ** 0.5, n / 2)) for work in (TRIAL_WORK, WORK))
    trials = {share: best_ridge(inputs(few, share).inputs, says) for share in SHARES}
    share = min(trials, key=lambda tried: trials[tried][1])
    smoothed = inputs(many, share)
    values, slopes = ridge_fit(smoothed.inputs, says, trials[share][0])
    sharpness = best_sharpness(values, fitted.says)
    carry = replace(smoothed, inputs=smoothed.inputs[:0].copy())  # those of the fitted points are not kept

    def elsewhere(points: Elsewhere) -> Array:
        plain = random_features(points.space, many, width, seed=0, scratch=scratch_elsewhere)
        predicted = carry.predicted(points.links, plain, slopes[:-1])
        return softmax(np.float32(sharpness) * (predicted + slopes[-1]))

    return Imitation(softmax(sharpness * values), elsewhere)


def _even(count: float) -> int:
    return max(2, 2 * int(count // 2))


def left_out(inputs: Floats, targets: Array, ridge: float) -> Array:
    """(N, C) ridge regression of the targets on the inputs and a constant, each row predicted without itself."""
    return ridge_fit(inputs, targets, ridge)[0]


def ridge_fit(inputs: Floats, targets: Array, ridge: float) -> tuple[Array, Array]:
    """((N, C) each row predicted without itself, (m + 1, C) slopes of the fit to all rows, the constant last).

    t_i + (p_i - t_i) / (1 - h_i), with p the fit to all rows and h its leverages.
    """
    from scipy.linalg import cho_solve, cholesky, solve_triangular

    gram, products = _sums(inputs, targets)
    gram[np.diag_indices_from(gram)] += ridge
    lower = cholesky(gram, lower=True)
    slopes = cho_solve((lower, True), products).astype(inputs.dtype)
    lower = lower.astype(inputs.dtype)
    predicted = np.empty(targets.shape, inputs.dtype)
    for rows, part in _parts(inputs):
        turned = solve_triangular(lower, part.T, lower=True, check_finite=False)
        leverage = np.minimum(np.einsum("mn,mn->n", turned, turned), 1 - 1e-6)
        predicted[rows] = targets[rows] + (part @ slopes - targets[rows]) / (1 - leverage)[:, None]
    return predicted, slopes


def best_ridge(inputs: Floats, targets: Array) -> tuple[float, float]:
    """(penalty, error): the penalty with the least mean squared leave-one-out error, and that error.

    One turn to the axes of the inputs serves all penalties: p = z (z'z + ridge)^-1 z't and h are sums over them.
    """
    gram, products = _sums(inputs, targets)
    lengths, axes = np.linalg.eigh(gram)
    shrinks = {ridge: 1 / (np.maximum(lengths, 0.0) + ridge) for ridge in RIDGES}
    turn, products = axes.astype(inputs.dtype), axes.T @ products
    slopes = {ridge: (shrink[:, None] * products).astype(inputs.dtype) for ridge, shrink in shrinks.items()}
    errors, scratch = dict.fromkeys(RIDGES, 0.0), Scratch()
    for rows, part in _parts(inputs):
        turned = np.matmul(part, turn, out=scratch("turned", *part.shape, dtype=inputs.dtype))
        squares = np.square(turned, out=scratch("squares", *part.shape, dtype=inputs.dtype))
        for ridge, shrink in shrinks.items():
            leverage = np.minimum(squares @ shrink.astype(inputs.dtype), 1 - 1e-6)
            residuals = (turned @ slopes[ridge] - targets[rows]) / (1 - leverage)[:, None]
            errors[ridge] += float(np.einsum("nc,nc->", residuals, residuals, dtype=np.float64)) / targets.size
    best = min(errors, key=lambda ridge: errors[ridge])
    return best, errors[best]


def _sums(inputs: Floats, targets: Array) -> tuple[Array, Array]:
    """(x'x, x't) with a constant, in float64: features of few columns are nearly dependent."""
    width = inputs.shape[1] + 1
    gram, products = np.zeros((width, width)), np.zeros((width, targets.shape[1]))
    part_gram = np.empty_like(gram)
    for rows, exact in _parts(inputs, np.float64):
        gram += np.matmul(exact.T, exact, out=part_gram)
        products += exact.T @ targets[rows]
    return gram, products


def _parts(inputs: Floats, dtype: DTypeLike | None = None) -> Iterator[tuple[slice, Array]]:
    """Rows and their inputs with a constant, a few thousand at a time, each in the place of the one before."""
    scratch = Scratch()
    for start in range(0, len(inputs), 4_096):
        rows = slice(start, start + 4_096)
        part = inputs[rows]
        both = scratch("part", len(part), inputs.shape[1] + 1, dtype=dtype or inputs.dtype)
        both[:, :-1], both[:, -1] = part, 1
        yield rows, both


def best_sharpness(values: Array, predictions: Array) -> float:
    """The beta under which the model's answers are most likely by softmax(beta * values)."""
    if len(values) > SOFTENED:
        rows = np.random.default_rng(2).permutation(len(values))[:SOFTENED]
        values, predictions = values[rows], predictions[rows]
    return float(min(SHARPNESS, key=lambda beta: log_loss(softmax(beta * values), predictions)))


def softmax(values: Array) -> Array:
    """(n, C) exp(values), rows scaled to add up to 1."""
    powers = values - values.max(1, keepdims=True)
    np.exp(powers, out=powers)
    powers /= powers.sum(1, keepdims=True)
    return np.asarray(powers)


def log_loss(view: Array, predictions: Array) -> float:
    """Mean of -ln of the probability of the model's own answers."""
    return float(-np.log(np.maximum(view[np.arange(len(view)), predictions], 1e-6)).mean())


# ---------------------------------------------------------------- few columns: lines and trees


def _linear_imitation(fitted: Fitted) -> Imitation:
    """Logistic regression; a line has too few coefficients to learn a point by heart, so three folds are enough."""
    from sklearn.linear_model import LogisticRegression

    return _classifier_imitation(LogisticRegression(max_iter=1000), fitted, lambda points: points.space)


def _tree_imitation(fitted: Fitted) -> Imitation:
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.15, max_leaf_nodes=15, early_stopping=False)
    return _classifier_imitation(trees, fitted, lambda points: np.asarray(points.features))


def _classifier_imitation(model: Any, fitted: Fitted, columns: Callable[[Fitted | Elsewhere], Array]) -> Imitation:
    """A classifier of the model's answers, trained on two thirds for the rest, and on all for points elsewhere."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from threadpoolctl import threadpool_limits

    inputs, classes = columns(fitted), np.unique(fitted.says)
    fewest = int(np.unique(fitted.says, return_counts=True)[1].min())
    folds = StratifiedKFold(min(3, fewest), shuffle=True, random_state=0)
    view = np.zeros((len(fitted.says), fitted.n_classes))
    # OpenMP threads wait by spinning: two of them on busy cores are many times slower than one.
    with threadpool_limits(limits=1, user_api="openmp"):
        view[:, classes] = cross_val_predict(model, inputs, fitted.says, cv=folds, method="predict_proba")

    @cache
    def trained() -> Any:
        return model.fit(inputs, fitted.says)

    def elsewhere(points: Elsewhere) -> Array:
        chances = np.zeros((len(points.space), fitted.n_classes))
        with threadpool_limits(limits=1, user_api="openmp"):
            chances[:, classes] = trained().predict_proba(columns(points))
        return chances

    return Imitation(view, elsewhere)
