"""What is known about each point before any label: how easy it looks, seen from the model's own answers.

N points, C classes. Two views, both free of labels and computed once for each pool (answers.py has those of several
models; then the answer that most models give, `pool.anchor`, is what is called the model's answer here):
scores     the model's own probabilities, when it gives them
imitation  P(the model says c | x) from features alone, each point left out of its own prediction. Where it doubts the
           model's answer the point is unusual, and unusual points are where models err. Several imitators are tried;
           the one under which the model's answers are most likely is kept. None sees a label.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from altmas.methods.assured.answers import dawid_skene, difference_components, mean_scores, vote_shares
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.space import (
    Floats,
    Neighbourhood,
    coordinates,
    median_distance,
    random_features,
)
from altmas.pool import Pool
from altmas.types import Array

KERNEL_NUMBERS = 1.6e8
"""The kernel has fewer random features where they would be more numbers than that."""


@dataclass(frozen=True)
class Description:
    """Label-free columns of a pool.

    ease        (N, d) standardised columns, larger where the point looks easier for the model; d may be 0
    components  (N, p) leading principal components of the features, unit variance, or None
    kernel      (N, m) random features of a kernel smoothed over neighbours, or None without features
    rivals      each (N, C): distributions over the classes that the model did not predict
    odds        by the name of a view, (N, 1) log odds of the predicted class in that view
    doubt       (N,) P(not the predicted class) by the scores, or else by the imitation; None without either
    """

    ease: Array
    components: Array | None
    kernel: Array | None
    rivals: tuple[Array, ...]
    odds: Mapping[str, Array] = field(default_factory=dict)
    doubt: Array | None = None

    def arrays(self) -> dict[str, Array]:
        """What a file keeps of it; half precision is far finer than the random features of the kernel are."""
        named = {"ease": self.ease, "components": self.components, "doubt": self.doubt}
        named["kernel"] = None if self.kernel is None else self.kernel.astype(np.float16)
        named |= {f"rivals {place}": view.astype(np.float32) for place, view in enumerate(self.rivals)}
        named |= {f"odds {name}": odds for name, odds in self.odds.items()}
        return {name: array for name, array in named.items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> "Description":
        """The description that `arrays` gave."""
        kernel = arrays.get("kernel")
        return cls(
            arrays["ease"],
            arrays.get("components"),
            None if kernel is None else kernel.astype(np.float32),
            tuple(arrays[name] for name in sorted(arrays) if name.startswith("rivals ")),
            {name.removeprefix("odds "): arrays[name] for name in arrays if name.startswith("odds ")},
            arrays.get("doubt"),
        )


EDITION = 1
"""Raised whenever a description comes out differently, so that files of earlier versions are not read."""


def describe(pool: Pool) -> Description:
    """The description of a pool, computed at most once while the pool lives, and kept in its file."""
    made_from = {"what": "description", "edition": EDITION, **pool.fingerprint}

    def make() -> Description:
        return Description.from_arrays(pool.memo.arrays(made_from, lambda: _describe(pool).arrays()))

    return pool.memo.get("description", (), make)


def _describe(pool: Pool) -> Description:
    views: dict[str, Array] = {}
    components = kernel = None
    if pool.features is not None:
        space = coordinates(pool.features)
        components = space[:, :20] / np.maximum(space[:, :20].std(0), 1e-12)
        gamma, near = 1 / median_distance(space), Neighbourhood(space)
        count = 2 * int(min(RECIPE.kernel_features, KERNEL_NUMBERS / len(pool)) // 2)
        wide = random_features(space, count, RECIPE.kernel_width * gamma, seed=1)
        kernel = near.smoothed(wide, RECIPE.kernel_share)
        if pool.models:
            views["imitation"] = imitation(pool, space, gamma, near)
    if len(pool.models) > 1:
        views |= _views_of_several(pool)
        differences = difference_components(pool.models, pool.anchor)
        components = differences if components is None else np.hstack([components, differences])
    elif pool.scores is not None:
        views["scores"] = np.clip(np.asarray(pool.scores, np.float64), 1e-9, None)
    looks = {name: ease(view, pool.anchor) for name, view in views.items()}
    columns = np.hstack([np.zeros((len(pool), 0)), *(standardised(one) for one in looks.values())])
    rivals = tuple(without_own(view, pool.anchor) for view in views.values())
    odds = {name: np.clip(one[:, :1], -RECIPE.largest_odds, RECIPE.largest_odds) for name, one in looks.items()}
    doubt = 1 - list(views.values())[-1][np.arange(len(pool)), pool.anchor] if views else None
    return Description(columns, components, kernel, rivals, odds, doubt)


def _views_of_several(pool: Pool) -> dict[str, Array]:
    """What several models say of each point, by the name of the view; the one to be trusted most comes last."""
    views = {"votes": vote_shares(pool.models, len(pool.classes))}
    if len(pool.models) > 2:
        views["answers"] = dawid_skene(pool.models, len(pool.classes))
    scores = mean_scores(pool.models)
    return views if scores is None else views | {"scores": scores}


# ---------------------------------------------------------------- columns from a view (N, C)


def ease(view: Array, predictions: Array) -> Array:
    """(N, 3) log odds of the predicted class, its log lead over the best rival, and minus the entropy."""
    points = np.arange(len(view))
    own = np.clip(view[points, predictions], 1e-9, 1 - 1e-9)
    others = view.copy()
    others[points, predictions] = 0.0
    rival = np.maximum(others.max(1), 1e-9)
    entropy = -(view * np.log(np.maximum(view, 1e-12))).sum(1)
    return np.column_stack([np.log(own / (1 - own)), np.log(own / rival), -entropy])


def without_own(view: Array, predictions: Array) -> Array:
    """(N, C) the view's distribution over the classes that were not predicted; uniform where it has none."""
    others = np.maximum(view, 1e-6)
    others[np.arange(len(view)), predictions] = 0.0
    return np.asarray(others / others.sum(1, keepdims=True))


def standardised(columns: Array, limit: float = 8.0) -> Array:
    """Mean 0, variance 1, cut at `limit` standard deviations; constant columns are 0."""
    scale = columns.std(0)
    return np.asarray(np.clip((columns - columns.mean(0)) / np.where(scale > 0, scale, np.inf), -limit, limit))


# ---------------------------------------------------------------- imitations of the model

RIDGES = (1e-4, 1e-3, 1e-2, 0.1, 1.0)
"""Ridge penalties an imitation chooses from, by leave-one-out error."""
WORK, TRIAL_WORK = 4e10, 2.5e9
"""Multiplications that the kernel imitation may cost, and those of the trials that choose its penalty and smoothing."""
MOST_FEATURES = 2000
SHARES = (0.0, 0.5)
"""How much of a point's kernel features comes from its neighbours: tried both ways."""
TREE_CLASSES, TREE_MEMBERS = 4, 50
"""Trees are tried up to this many classes (beyond, one tree for each class takes too long) of at least this size."""
LINEAR_CLASSES = 30


def imitation(pool: Pool, space: Floats, gamma: float, near: Neighbourhood) -> Array:
    """(N, C) P(the model says c | x) by the best imitator; gamma is 1 / (median squared distance)."""
    return min(_imitators(pool, space, gamma, near), key=lambda view: log_loss(view, pool.anchor))


def _imitators(pool: Pool, space: Floats, gamma: float, near: Neighbourhood) -> Iterator[Array]:
    n_classes, seen = len(pool.classes), np.bincount(pool.anchor, minlength=len(pool.classes))
    yield _kernel_imitation(pool, space, gamma, near)
    if space.shape[1] > RECIPE.few_columns or (seen > 0).sum() < 2:
        return
    if n_classes <= LINEAR_CLASSES and seen[seen > 0].min() >= 2:
        yield _linear_imitation(space, pool.anchor, n_classes)
    if n_classes <= TREE_CLASSES and seen.min() >= TREE_MEMBERS:
        yield _tree_imitation(np.asarray(pool.features), pool.anchor)


# ---------------------------------------------------------------- kernel


def _kernel_imitation(pool: Pool, space: Floats, gamma: float, near: Neighbourhood) -> Array:
    """Kernel ridge regression of the model's answers, turned into probabilities."""
    says = np.eye(len(pool.classes), dtype=np.float32)[pool.anchor]

    def inputs(count: int, share: float) -> Floats:
        plain = random_features(space, count, RECIPE.imitation_width * gamma, seed=0)
        return plain if share == 0 else near.smoothed(plain, share)

    few, many = (_even(min(MOST_FEATURES, (work / len(pool)) ** 0.5, len(pool) / 2)) for work in (TRIAL_WORK, WORK))
    trials = {share: best_ridge(inputs(few, share), says) for share in SHARES}
    share = min(trials, key=lambda one: trials[one][1])
    return softened(left_out(inputs(many, share), says, trials[share][0]), pool.anchor)


def _even(count: float) -> int:
    return max(2, 2 * int(count // 2))


def left_out(inputs: Floats, targets: Array, ridge: float) -> Array:
    """(N, C) ridge regression of the targets on the inputs and a constant, each row predicted without itself.

    t_i + (p_i - t_i) / (1 - h_i), with p the fit to all rows and h its leverages.
    """
    from scipy.linalg import cho_solve, cholesky, solve_triangular

    inputs = np.hstack([inputs, np.ones((len(inputs), 1), inputs.dtype)])
    parts = [slice(start, start + 5_000) for start in range(0, len(inputs), 5_000)]
    gram = np.zeros((inputs.shape[1],) * 2)  # in float64: features of few columns are nearly dependent
    for rows in parts:
        exact = np.asarray(inputs[rows], np.float64)
        gram += exact.T @ exact
    gram[np.diag_indices_from(gram)] += ridge
    lower = cholesky(gram, lower=True)
    slopes = cho_solve((lower, True), np.asarray(inputs.T @ targets, np.float64)).astype(inputs.dtype)
    lower = lower.astype(inputs.dtype)
    found = np.empty(targets.shape)
    for rows in parts:
        turned = solve_triangular(lower, inputs[rows].T, lower=True, check_finite=False)
        leverage = np.minimum(np.einsum("mn,mn->n", turned, turned), 1 - 1e-6)
        found[rows] = targets[rows] + (inputs[rows] @ slopes - targets[rows]) / (1 - leverage)[:, None]
    return found


def best_ridge(inputs: Floats, targets: Array) -> tuple[float, float]:
    """(penalty, error): the penalty with the least mean squared leave-one-out error, and that error."""
    errors = {ridge: float(((left_out(inputs, targets, ridge) - targets) ** 2).mean()) for ridge in RIDGES}
    best = min(errors, key=lambda ridge: errors[ridge])
    return best, errors[best]


def softened(values: Array, predictions: Array) -> Array:
    """softmax(beta * values) with the beta under which the model's answers are most likely (D2)."""
    views = (_softmax(beta * values) for beta in np.geomspace(1, 40, 25))
    return min(views, key=lambda view: log_loss(view, predictions))


def _softmax(values: Array) -> Array:
    powers = np.exp(values - values.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


def log_loss(view: Array, predictions: Array) -> float:
    """Mean of -ln of the probability of the model's own answers."""
    return float(-np.log(np.maximum(view[np.arange(len(view)), predictions], 1e-6)).mean())


# ---------------------------------------------------------------- few columns: lines and trees


def _linear_imitation(space: Floats, predictions: Array, n_classes: int) -> Array:
    """Logistic regression; a line has too few coefficients to learn a point by heart, so three folds are enough."""
    from sklearn.linear_model import LogisticRegression

    return _cross_predicted(LogisticRegression(max_iter=1000), space, predictions, n_classes)


def _tree_imitation(features: Array, predictions: Array) -> Array:
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.15, max_leaf_nodes=15, early_stopping=False)
    return _cross_predicted(trees, features, predictions, int(predictions.max()) + 1)


def _cross_predicted(model: Any, inputs: Array, predictions: Array, n_classes: int) -> Array:
    """(N, C) probabilities of a classifier of the model's answers, trained on two thirds for the rest."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from threadpoolctl import threadpool_limits

    fewest = int(np.unique(predictions, return_counts=True)[1].min())
    folds = StratifiedKFold(min(3, fewest), shuffle=True, random_state=0)
    view = np.zeros((len(predictions), n_classes))
    # OpenMP threads wait by spinning: two of them on busy cores are many times slower than one.
    with threadpool_limits(limits=1, user_api="openmp"):
        says = cross_val_predict(model, inputs, predictions, cv=folds, method="predict_proba")
    view[:, np.unique(predictions)] = says
    return view
