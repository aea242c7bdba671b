"""Deep ensemble (docs/equations.md D.6): a few networks trained from different starts are the draws."""

from dataclasses import dataclass

import numpy as np

from altmas.methods.paper.surrogates.minibatches import Training
from altmas.methods.paper.surrogates.mlp import Floats, Trained, probabilities, train
from altmas.pool.features import Rows
from altmas.types import Array


@dataclass(frozen=True)
class Ensemble:
    """`members` networks without dropout, each trained on all examples from its own start and in its own order."""

    members: int = 5
    training: Training = Training()

    def fit(
        self, x: Rows, y: Array, n_classes: int, rng: np.random.Generator, weights: Array | None = None
    ) -> "Members":
        return Members(
            tuple(train(x, y, n_classes, self.training, 0.0, child, weights) for child in rng.spawn(self.members))
        )


@dataclass(frozen=True)
class Members:
    """Trained networks; as draws they are themselves, so there are never more draws than members."""

    networks: tuple[Trained, ...]

    @property
    def trained(self) -> Trained:
        return self.networks[0]

    @property
    def count(self) -> int:
        return len(self.networks)

    def mean(self, x: Floats) -> Floats:
        return np.asarray(self(x).mean(0), np.float32)

    def draws(self, count: int, rng: np.random.Generator) -> "Members":
        return Members(self.networks[:count])

    def __call__(self, x: Floats) -> Floats:
        return np.stack([probabilities(network.weights, x) for network in self.networks])
