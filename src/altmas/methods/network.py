"""Options of the methods that believe a network trained on true labels alone."""

from dataclasses import dataclass

from altmas.methods.rounds import Settings
from altmas.surrogates import Training


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """How the network is trained and read.

    draws       M, draws of the network's weights
    label_mode  how unknown labels are filled in: "hard", "sample" or "expected" (A.5)
    surrogate   "mc_dropout", "ensemble" or "bayes_by_backprop"
    initial     labels drawn uniformly at first; by default 100, fewer for small pools
    max_steps   upper limit on the minibatches of one training
    tune        learning rate, epochs and dropout are tuned on the first labels and whenever these have doubled
    """

    draws: int = 50
    label_mode: str = "expected"
    surrogate: str = "mc_dropout"
    dropout: float = 0.3
    learning_rate: float = 1e-3
    epochs: int = 100
    batch: int = 64
    weight_decay: float = 1e-4
    max_steps: int = 2000
    initial: int | None = None
    tune: bool = False

    def __post_init__(self) -> None:
        _ = self.settings  # refuses what is out of range

    @property
    def settings(self) -> Settings:
        """The same as the rounds see it."""
        return Settings(
            surrogate=self.surrogate,
            dropout=self.dropout,
            training=Training(
                learning_rate=self.learning_rate,
                epochs=self.epochs,
                batch=self.batch,
                weight_decay=self.weight_decay,
                max_steps=self.max_steps,
            ),
            draws=self.draws,
            label_mode=self.label_mode,
            initial=self.initial,
            tune=self.tune,
        )
