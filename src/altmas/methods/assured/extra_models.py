"""Answers to "is the model right?" that cost more than they bring on most pools, and can be asked for by name.

    Assured(also=("network", "trees"))
Each is trained on the labels outside a fold and answers for its points; `combination` weighs it by its likelihood on
labels that it did not see, so an answer that is no good costs time and nothing else.
"""

from collections.abc import Callable

import numpy as np

from altmas.methods.assured.views import Description
from altmas.pool import Pool
from altmas.pool.features import Features
from altmas.types import Array

Answer = Callable[[Pool, Description, Array, Array, Array, Array], Array | None]

DRAWS, CHUNK = 20, 4096
SEED = 9


def network(
    pool: Pool, description: Description, train: Array, codes: Array, weights: Array, rows: Array
) -> Array | None:
    """(m,) the paper's dropout network trained on the labels: mean over its draws of P(the predicted class)."""
    if pool.features is None or len(train) == 0:
        return None
    from altmas.methods.paper.surrogates import MCDropout

    rng = np.random.default_rng([SEED, len(train)])
    features = Features.of(pool)
    draws = MCDropout().fit(features.subset(train), codes, len(pool.classes), rng, weights).draws(DRAWS, rng)
    chances = np.empty(len(rows))
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        mean = draws(features[part]).mean(0)
        chances[start : start + CHUNK] = mean[np.arange(len(part)), pool.anchor[part]]
    return chances


def trees(
    pool: Pool, description: Description, train: Array, codes: Array, weights: Array, rows: Array
) -> Array | None:
    """(m,) gradient-boosted trees on what is known without labels: ease, components and the predicted class."""
    right = codes == pool.anchor[train]
    if right.all() or not right.any():
        return None
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    def columns(points: Array) -> Array:
        blocks = [description.ease[points], pool.anchor[points][:, None]]
        return np.hstack(blocks if description.components is None else [*blocks, description.components[points]])

    model = HistGradientBoostingClassifier(
        max_iter=40,
        learning_rate=0.1,
        max_leaf_nodes=4,
        min_samples_leaf=10,
        l2_regularization=5.0,
        early_stopping=False,
    )
    # OpenMP threads wait by spinning: two of them on busy cores are many times slower than one.
    with threadpool_limits(limits=1, user_api="openmp"):
        fitted = model.fit(columns(train), right, sample_weight=weights)
        return np.asarray(fitted.predict_proba(columns(rows))[:, 1])


FURTHER: dict[str, Answer] = {"network": network, "trees": trees}
"""Further answers by name."""
