"""ALT-MAS, the paper's method: pseudo-labels, a Bayesian network, and labels that tell about the metrics (A.2)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from altmas.draws.acquisition import best, total_information
from altmas.errors import MethodError
from altmas.estimation.estimates import Estimates
from altmas.labels.history import Batch, History
from altmas.methods.protocol import Needs, Task
from altmas.methods.rounds import (
    PICK,
    Round,
    Settings,
    estimates_of,
    nothing_known,
    round_at,
    still_starting,
    uniform_batch,
)
from altmas.suggest import near
from altmas.surrogates import Training

PRESETS = {"paper": "hard", "safe": "expected"}
"""The label mode of each preset (A.5)."""

PSEUDO = "pseudo_labelled"
"""Name of the record that says which points of a batch carried a pseudo-label when they were chosen."""


@dataclass(frozen=True)
class AltMas:
    """The method of the paper.

    draws            M, draws of the network's weights
    precision_power  1 as in the paper's text, 2 as in its authors' code (A5)
    preset           "paper": every gap read literally; "safe": soft counts, and pseudo-labels held to a lower bound
                     of their precision (A.3 step 6, A.5)
    label_mode       "hard", "sample" or "expected" (A.5); by default that of the preset
    surrogate        "mc_dropout" (the paper's) or "ensemble"
    pseudo_weight    weight of a pseudo-label in training, a true label having 1
    initial          labels drawn uniformly at first; by default 100, fewer for small pools
    max_steps        upper limit on the minibatches of one training
    tune             tune learning rate, epochs and dropout by Bayesian optimisation at first and whenever the number of
                     labels has doubled, as the paper does; half a minute or more each time
    """

    draws: int = 50
    precision_power: float = 2
    preset: str = "safe"
    label_mode: str | None = None
    surrogate: str = "mc_dropout"
    dropout: float = 0.3
    learning_rate: float = 1e-3
    epochs: int = 100
    batch: int = 64
    weight_decay: float = 1e-4
    max_steps: int = 2000
    pseudo_weight: float = 1.0
    initial: int | None = None
    tune: bool = False

    name = "altmas"
    needs = Needs(
        features=True,
        biased=True,
        after="Ha, Gupta, Rana and Venkatesh 2021, ALT-MAS: a data-efficient framework for active testing",
    )

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            hint = near(self.preset, PRESETS) or ";"
            raise MethodError(f"preset {self.preset!r} does not exist{hint} known: {', '.join(PRESETS)}")
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
            label_mode=self.label_mode or PRESETS[self.preset],
            cautious=self.preset == "safe",
            precision_power=self.precision_power,
            pseudo_weight=self.pseudo_weight,
            initial=self.initial,
            tune=self.tune,
        )

    def propose(self, task: Task, history: History, n: int) -> Batch:
        if still_starting(task, history, self.settings) or not history.open.any():
            return uniform_batch(task, history, n)
        now = round_at(task, history, self.settings)
        scores = total_information(task.metrics, now.belief, history.open)
        indices = best(scores, history.open, n, history.rng(task.seed, PICK))
        return Batch(
            indices,
            record={PSEUDO: np.isin(indices, now.augmentation.rows)},
            info=_info(now, task, history) | {"chosen": "by information", "information": scores[indices].tolist()},
            labels_before=len(history.labels),
        )

    def estimate(self, task: Task, history: History) -> Estimates:
        if len(history.labels) == 0:
            return nothing_known(self.name, task)
        if len(history.labels) == len(task.pool):
            return estimates_of(self.name, task, history, None)
        now = round_at(task, history, self.settings)
        return replace(estimates_of(self.name, task, history, now), info=_info(now, task, history))


def _info(now: Round, task: Task, history: History) -> dict[str, Any]:
    return now.info | {"augmentation": now.augmentation.info() | refuted(task, history)}


def refuted(task: Task, history: History) -> dict[str, Any]:
    """How pseudo-labels fared: of those in force when their point was chosen, how many its label refuted since."""
    rows = [
        batch.indices[np.asarray(batch.record[PSEUDO], np.bool_)] for batch in history.batches if PSEUDO in batch.record
    ]
    checked = np.concatenate([np.zeros(0, np.int64), *rows])
    checked = checked[history.known[checked] >= 0]
    wrong = int((history.known[checked] != task.pool.predictions[checked]).sum())
    return {"checked": len(checked), "refuted": wrong, "refuted_share": wrong / len(checked) if len(checked) else None}
