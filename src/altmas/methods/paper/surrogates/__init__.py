"""Beliefs about the labels that are still unknown, learned from those that are known."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from altmas.methods.paper.surrogates.bayes_by_backprop import BayesByBackprop
from altmas.methods.paper.surrogates.ensemble import Ensemble
from altmas.methods.paper.surrogates.mc_dropout import MCDropout
from altmas.methods.paper.surrogates.minibatches import Training
from altmas.methods.paper.surrogates.mlp import Floats, Trained
from altmas.pool.features import Rows
from altmas.types import Array

__all__ = [
    "SURROGATES",
    "BayesByBackprop",
    "Draws",
    "Ensemble",
    "Fitted",
    "MCDropout",
    "Surrogate",
    "Trained",
    "Training",
    "surrogate_named",
]


class Draws(Protocol):
    """Some networks, each a draw of the weights w_j."""

    @property
    def count(self) -> int:
        """M, the number of draws."""

    def __call__(self, x: Floats, /) -> Floats:
        """(M, n, C) float32 p(y = c | x, w_j); the same w_j for all of x and on every call (A1)."""


class Fitted(Protocol):
    """A trained surrogate."""

    @property
    def trained(self) -> Trained:
        """Its (first) network and how the training went."""

    def mean(self, x: Floats) -> Floats:
        """(n, C) the best single guess at the probabilities."""

    def draws(self, count: int, rng: np.random.Generator) -> Draws:
        """At most `count` draws of the weights."""


class Surrogate(Protocol):
    """A frozen dataclass of options with one verb."""

    def fit(self, x: Rows, y: Array, n_classes: int, rng: np.random.Generator, weights: Array | None = None) -> Fitted:
        """A new network trained from scratch on (x, y); self does not change. `weights` (n,) of the examples."""


SURROGATES: dict[str, Callable[[float, Training], Surrogate]] = {
    "mc_dropout": lambda dropout, training: MCDropout(dropout, training),
    "ensemble": lambda dropout, training: Ensemble(training=training),
    "bayes_by_backprop": lambda dropout, training: BayesByBackprop(training),
}
"""Built-in surrogates by name, made from the dropout share and the training options."""


def surrogate_named(name: str, dropout: float, training: Training) -> Surrogate:
    """The surrogate of that name; methods check the name when they are made."""
    return SURROGATES[name](dropout, training)
