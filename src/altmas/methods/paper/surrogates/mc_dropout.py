"""The paper's surrogate: a two-layer network with dropout, whose dropout masks are draws of its weights (A.4, D.5).

    network = MCDropout().fit(x, y, n_classes, rng)     # x (n, D) standardised float32, or Features; y codes
    network.mean(x)                                     # (n, C) with dropout off
    draws = network.draws(50, rng)                      # 50 pairs of masks, drawn once
    draws(x)                                            # (50, n, C) float32; the same 50 networks on every call

A large pool goes through `draws` in chunks of a few thousand rows; `Posterior` does that, on threads, and pins the
labels that are known.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from altmas.methods.paper.surrogates.minibatches import Training
from altmas.methods.paper.surrogates.mlp import Floats, Trained, first_layer, later_layers, probabilities, train
from altmas.pool.features import Rows
from altmas.types import Array


@dataclass(frozen=True)
class MCDropout:
    """The paper's Bayesian network; `fit` starts from fresh random weights each time."""

    dropout: float = 0.3
    training: Training = Training()

    def fit(
        self, x: Rows, y: Array, n_classes: int, rng: np.random.Generator, weights: Array | None = None
    ) -> "DropoutNetwork":
        return DropoutNetwork(train(x, y, n_classes, self.training, self.dropout, rng, weights), self.dropout)


@dataclass(frozen=True)
class DropoutNetwork:
    """A trained network with dropout."""

    trained: Trained
    dropout: float

    def mean(self, x: Floats) -> Floats:
        return probabilities(self.trained.weights, x)

    def draws(self, count: int, rng: np.random.Generator) -> "DropoutDraws":
        keep = rng.random((count, 2, len(self.trained.weights.b1))) < 1 - self.dropout
        return DropoutDraws(self.trained, tuple(self._network(*masks) for masks in keep))

    def _network(self, first: Array, second: Array) -> "SubNetwork":
        """The part of the network that one pair of masks leaves: dropped units are not multiplied at all."""
        w, scale = self.trained.weights, np.float32(1 / (1 - self.dropout))
        units = np.flatnonzero(first)
        w2 = np.ascontiguousarray(w.w2[np.ix_(first, second)].T) * scale
        return SubNetwork(units, w2, w.b2[second], np.ascontiguousarray(w.w3[second].T) * scale)


class SubNetwork(NamedTuple):
    """One draw: units (K,) kept in the first hidden layer, w2 (K', K), b2 (K',), w3 (C, K')."""

    units: Array
    w2: Floats
    b2: Floats
    w3: Floats


@dataclass(frozen=True)
class DropoutDraws:
    """Networks that differ in their dropout masks; the product with the first layer is shared by all of them."""

    trained: Trained
    networks: tuple[SubNetwork, ...]

    @property
    def count(self) -> int:
        return len(self.networks)

    def __call__(self, x: Floats) -> Floats:
        weights = self.trained.weights
        hidden = first_layer(weights, x)
        out = np.empty((self.count, len(weights.b3), len(x)), np.float32)
        for probs, network in zip(out, self.networks, strict=True):
            later_layers(hidden[network.units], network.w2, network.b2, network.w3, weights.b3, probs)
        return out.transpose(0, 2, 1)
