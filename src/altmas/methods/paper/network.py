"""Options of the methods that believe a network."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from altmas.methods.paper.rounds import Settings
from altmas.methods.paper.surrogates import Training
from altmas.methods.protocol import Method


@dataclass(frozen=True, kw_only=True)
class Network(Method, ABC):
    """How the network is trained and drawn from.

    draws          M, draws of the network's weights
    surrogate      "mc_dropout" (the paper's), "ensemble" or "bayes_by_backprop"
    learning_rate  at the first step; it falls to 0 in a straight line
    max_steps      upper limit on the minibatches of one training
    enough         training loss below which a training ends before that
    initial        labels drawn uniformly at first; by default 100, fewer for small pools
    tune           tune learning rate, epochs and dropout by Bayesian optimisation at first and whenever the number
                   of labels has doubled, as the paper does; many seconds each time (`altmas.tune` does it once)
    tune_for       "log loss" of held-out labels, or "metric error": how far metrics of held-out labels are off
    """

    draws: int = 50
    surrogate: str = "mc_dropout"
    dropout: float = 0.3
    learning_rate: float = 3e-3
    epochs: int = 100
    batch: int = 64
    weight_decay: float = 1e-4
    max_steps: int = 1000
    enough: float = 0.02
    initial: int | None = None
    tune: bool = False
    tune_for: str = "log loss"

    def __post_init__(self) -> None:
        _ = self.settings  # refuses what is out of range

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The same as the rounds see it."""

    def settings_with(self, label_mode: str, **added: Any) -> Settings:
        """These options with what a method adds to them."""
        return Settings(
            surrogate=self.surrogate,
            dropout=self.dropout,
            training=Training(
                learning_rate=self.learning_rate,
                epochs=self.epochs,
                batch=self.batch,
                weight_decay=self.weight_decay,
                max_steps=self.max_steps,
                enough=self.enough,
            ),
            draws=self.draws,
            label_mode=label_mode,
            initial=self.initial,
            tune=self.tune,
            tune_for=self.tune_for,
            **added,
        )


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(Network):
    """Options of the methods that train on true labels alone.

    label_mode  how unknown labels are filled in: "hard", "sample", "expected" or "mean" (A.5)
    """

    label_mode: str = "expected"

    @property
    def settings(self) -> Settings:
        return self.settings_with(self.label_mode)
