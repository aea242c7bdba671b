"""BALD (B.2): label what tells most about the network, whatever the metrics are."""

from dataclasses import dataclass

from altmas.draws.acquisition import best
from altmas.estimation.estimates import Estimates
from altmas.labels.history import Batch, History
from altmas.methods.protocol import Needs, Task
from altmas.methods.rounds import (
    PICK,
    Settings,
    estimates_of,
    nothing_known,
    round_at,
    still_starting,
    uniform_batch,
)
from altmas.surrogates import Training


@dataclass(frozen=True)
class Bald:
    """The paper's second baseline: the network sees true labels only, points are chosen by (B3), estimates by (A2).

    The options are those of AltMas that concern the network.
    """

    draws: int = 50
    label_mode: str = "hard"
    surrogate: str = "mc_dropout"
    dropout: float = 0.3
    learning_rate: float = 1e-3
    epochs: int = 100
    batch: int = 64
    weight_decay: float = 1e-4
    max_steps: int = 2000
    initial: int | None = None
    tune: bool = False

    name = "bald"
    needs = Needs(features=True, biased=True, after="Houlsby et al. 2011, Bayesian active learning; Gal et al. 2017")

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

    def propose(self, task: Task, history: History, n: int) -> Batch:
        if still_starting(task, history, self.settings) or not history.open.any():
            return uniform_batch(task, history, n)
        now = round_at(task, history, self.settings)
        scores = now.belief.information.of_label
        indices = best(scores, history.open, n, history.rng(task.seed, PICK))
        info = now.info | {"chosen": "by information", "information": scores[indices].tolist()}
        return Batch(indices, info=info, labels_before=len(history.labels))

    def estimate(self, task: Task, history: History) -> Estimates:
        if len(history.labels) == 0:
            return nothing_known(self.name, task)
        complete = len(history.labels) == len(task.pool)
        return estimates_of(self.name, task, history, None if complete else round_at(task, history, self.settings))
