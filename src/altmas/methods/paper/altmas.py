"""ALT-MAS, the paper's method: pseudo-labels, a Bayesian network, and labels that tell about the metrics (A.2)."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from altmas.errors import MethodError
from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.methods.paper.acquisition import best, total_information
from altmas.methods.paper.network import Network
from altmas.methods.paper.rounds import (
    PICK,
    Round,
    Settings,
    estimates_of,
    nothing_known,
    round_at,
    still_starting,
    uniform_batch,
)
from altmas.methods.protocol import Traits
from altmas.suggest import near
from altmas.task import Task


class Preset(NamedTuple):
    """How a preset fills in labels (A.5), chooses pseudo-labels and holds back by their precision (A.3)."""

    label_mode: str
    trust: str
    precision_power: float


PRESETS = {
    "paper": Preset("hard", "literal", 2),
    "safe": Preset("expected", "cautious", 2),
    "stable": Preset("mean", "stable", 8),
}

ACQUISITIONS = ("metrics", "bald")

PSEUDO = "pseudo_labelled"
"""Name of the record that says which points of a batch carried a pseudo-label when they were chosen."""


@dataclass(frozen=True, kw_only=True)
class AltMas(Network):
    """The method of the paper.

    preset           "stable": a number of pseudo-labels that does not leap (A.3 step 7), and labels of the mean over
                     the draws; "safe": soft counts, and pseudo-labels held to a lower bound of their precision (A.3
                     step 6, A.5); "paper": every gap read literally
    label_mode       "hard", "sample", "expected" or "mean" (A.5); by default that of the preset
    augment          whether points where the model is trusted lend its answers to the training (A.3)
    precision_power  1 as in the paper's text, 2 as in its authors' code (A5); by default 2, and 8 in "stable"
    pseudo_weight    weight of a pseudo-label in training, a true label having 1
    acquisition      "metrics": label what tells most about the metrics (A3); "bald": about the network (B3)
    """

    preset: str = "stable"
    label_mode: str | None = None
    augment: bool = True
    precision_power: float | None = None
    pseudo_weight: float = 1.0
    acquisition: str = "metrics"

    name = "altmas"
    traits = Traits(
        requires=("features",),
        biased=True,
        extra="paper",
        citation="Ha, Gupta, Rana and Venkatesh 2021, ALT-MAS: a data-efficient framework for active testing",
    )

    def __post_init__(self) -> None:
        for what, name, known in (
            ("preset", self.preset, tuple(PRESETS)),
            ("acquisition", self.acquisition, ACQUISITIONS),
        ):
            if name not in known:
                raise MethodError(f"{what} {name!r} does not exist{near(name, known) or ';'} known: {', '.join(known)}")
        super().__post_init__()

    @property
    def settings(self) -> Settings:
        preset = PRESETS[self.preset]
        return self.settings_with(
            self.label_mode or preset.label_mode,
            trust=preset.trust if self.augment else None,
            precision_power=preset.precision_power if self.precision_power is None else self.precision_power,
            pseudo_weight=self.pseudo_weight,
        )

    def propose(self, task: Task, history: History, n: int) -> Batch:
        if still_starting(task, history, self.settings) or not history.open.any():
            return uniform_batch(task, history, n)
        now = round_at(task, history, self.settings)
        if self.acquisition == "bald":
            scores = now.belief.information.of_label
        else:
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
