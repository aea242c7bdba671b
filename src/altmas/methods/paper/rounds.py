"""One round of a method that believes a surrogate: fit it to the labels, look at the pool through it.

Asking and estimating at the same labels share the round: the last one of each pool is remembered while the pool lives.
"""

from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, nan
from threading import Lock
from typing import Any

import numpy as np

from altmas.errors import MethodError, PlanError
from altmas.estimates import Estimate, Estimates
from altmas.history import Batch, History
from altmas.methods.draws import drawn_uniformly, uniform_draws
from altmas.methods.paper.acquisition import LABEL_MODES, Belief, believe
from altmas.methods.paper.augmentation import NOTHING, Augmentation, Ints, augment
from altmas.methods.paper.posterior import Posterior, hard_labels, mean_over_draws, tables_of_labels
from altmas.methods.paper.stable import augment_stably
from altmas.methods.paper.surrogates import SURROGATES, Surrogate, Training, surrogate_named
from altmas.methods.paper.surrogates.tuning import Tuned, tuned
from altmas.metrics import Metric, table_of
from altmas.pool.features import Features
from altmas.streams import number_of, stream
from altmas.suggest import near
from altmas.task import Task
from altmas.types import Array

START, FIT, PICK = "network: first labels", "network: fit", "network: ties"
FILL, TUNE = "network: labels drawn from the belief", "network: tuning"
"""Streams of random numbers."""

TUNE_FOR = ("log loss", "metric error")
"""What tuning can make small."""
UNSURE = "from the surrogate's belief, which carries no interval"
COMPLETE = "every point is labelled"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything a round depends on besides the task and the labels.

    trust  how pseudo-labels are chosen: "literal" or "cautious" (augmentation.py), "stable" (stable.py), or None for no
           augmentation at all
    tune_for  what tuning makes small: "log loss" of held-out labels, or "metric error" of the task's metrics on them
    tune   whether learning rate, epochs and dropout are tuned when the first labels are told and whenever their number
           has doubled
    """

    surrogate: str
    dropout: float
    training: Training
    draws: int
    label_mode: str
    trust: str | None = None
    precision_power: float = 2
    pseudo_weight: float = 1.0
    initial: int | None = None
    tune: bool = False
    tune_for: str = TUNE_FOR[0]

    def __post_init__(self) -> None:
        for what, name, known in (
            ("surrogate", self.surrogate, tuple(SURROGATES)),
            ("label_mode", self.label_mode, LABEL_MODES),
            ("tune_for", self.tune_for, TUNE_FOR),
        ):
            if name not in known:
                raise MethodError(f"{what} {name!r} does not exist{near(name, known) or ';'} known: {', '.join(known)}")
        if self.tune and self.surrogate != "mc_dropout":
            raise MethodError(f"surrogate {self.surrogate!r} cannot be tuned; tune=True works with 'mc_dropout'")
        t = self.training
        for option, value, accepted, meaning in (
            ("draws", self.draws, self.draws >= 1, "a number of at least 1"),
            ("dropout", self.dropout, 0 <= self.dropout < 1, "a share from 0 to below 1"),
            ("learning_rate", t.learning_rate, t.learning_rate > 0, "a number above 0"),
            ("epochs", t.epochs, t.epochs >= 1, "a number of at least 1"),
            ("batch", t.batch, t.batch >= 1, "a number of at least 1"),
            ("max_steps", t.max_steps, t.max_steps >= 1, "a number of at least 1"),
            ("enough", t.enough, t.enough >= 0, "a number of at least 0"),
            ("weight_decay", t.weight_decay, t.weight_decay >= 0, "a number of at least 0"),
            ("precision_power", self.precision_power, self.precision_power > 0, "a number above 0, such as 1 or 2"),
            ("pseudo_weight", self.pseudo_weight, self.pseudo_weight > 0, "a number above 0"),
            ("initial", self.initial, self.initial is None or self.initial >= 1, "a number of at least 1, or None"),
        ):
            if not accepted:
                raise PlanError(f"{option} {value!r} is out of range; expected {meaning}; nothing was recorded")

    def make(self) -> Surrogate:
        """The surrogate with these options."""
        return surrogate_named(self.surrogate, self.dropout, self.training)


@dataclass(frozen=True)
class Round:
    """What is believed at one point of the log, and the pseudo-labels that helped to believe it."""

    belief: Belief
    augmentation: Augmentation
    info: dict[str, Any]


TUNINGS_KEPT = 16
"""Tunings of one pool that are kept: one for each doubling of the labels, for a few methods."""
_one_at_a_time = Lock()
"""A round uses the whole machine: whoever asks for the same one meanwhile waits for it instead of making it twice."""


def round_at(task: Task, history: History, settings: Settings) -> Round:
    """The round at these labels; computed once for asking and estimating, whatever was drawn meanwhile."""
    uniform = drawn_uniformly(history).tobytes() if settings.trust == "stable" else b""
    key = (settings, task.seed, task.metrics, tuple(history.labels.items()), uniform)
    with _one_at_a_time:
        return task.pool.memo.get("round", key, lambda: _round(task, history, settings))


def _round(task: Task, history: History, settings: Settings) -> Round:
    """Steps 3-7 of A.2: pseudo-labels, a fresh surrogate, M draws of its weights, their labels for the whole pool."""
    pool, known, n_classes = task.pool, history.known, len(task.pool.classes)
    settings, info = tuned_at(task, history, settings)
    moment = [task.seed, number_of(FIT), len(history.labels)]
    rng, surrogate = np.random.default_rng(moment), settings.make()
    pseudo = pseudo_labels(task, history, settings, surrogate, rng)
    features = Features.of(pool)
    rows = np.concatenate([history.labelled, pseudo.rows])
    y = np.concatenate([history.codes, pool.predictions[pseudo.rows]])
    weights = np.repeat([1.0, settings.pseudo_weight], [len(history.labelled), len(pseudo.rows)])
    fitted = surrogate.fit(features.subset(rows), y, n_classes, rng, weights)
    draws = fitted.draws(settings.draws, rng)
    posterior = Posterior(lambda chunk: draws(features[chunk]), known, draws.count, n_classes)
    belief = believe(pool, posterior, task.metrics, settings.label_mode, [*moment, number_of(FILL)])
    training = {"examples": len(rows), "steps": fitted.trained.steps, "loss": fitted.trained.loss}
    return Round(belief, pseudo, info | {"draws": draws.count, "training": training})


def pseudo_labels(
    task: Task, history: History, settings: Settings, surrogate: Surrogate, rng: np.random.Generator
) -> Augmentation:
    """The pseudo-labelled set S of these labels (A.3)."""
    power = settings.precision_power
    if settings.trust is None:
        return NOTHING
    if settings.trust == "stable":
        return augment_stably(task.pool, history.known, drawn_uniformly(history), surrogate, power=power, rng=rng)
    cautious = settings.trust == "cautious"
    return augment(task.pool, history.known, surrogate, cautious=cautious, power=power, draws=settings.draws, rng=rng)


def tuned_at(task: Task, history: History, settings: Settings) -> tuple[Settings, dict[str, Any]]:
    """The settings as tuned on the first labels of the log, at the last time their number had doubled (A.4)."""
    first = initial_labels(settings.initial, len(task.pool), len(task.pool.classes))
    if not settings.tune or len(history.labels) < first:
        return settings, {}
    count = first * 2 ** int(np.log2(len(history.labels) / first))
    rows, codes = history.labelled[:count], history.codes[:count]
    by_metrics = settings.tune_for == "metric error"
    key = (settings.training, settings.draws, task.seed, rows.tobytes(), codes.tobytes(), by_metrics and task.metrics)

    def tune() -> Tuned:
        rng, n_classes = stream(task.seed, TUNE, count), len(task.pool.classes)
        x = Features.of(task.pool).subset(rows)
        objective = partial(metric_error, task, rows, codes) if by_metrics else None
        return tuned(x, codes, n_classes, settings.training, settings.draws, rng, objective)

    best = task.pool.memo.get("tuned networks", key, tune, keep=TUNINGS_KEPT)
    chosen = replace(settings, dropout=best.dropout, training=best.training)
    return chosen, {"tuned": best.info() | {"labels": count}}


def metric_error(task: Task, rows: Ints, codes: Ints, probs: Array, tested: Ints) -> float:
    """How far the task's metrics of held-out labels are off when the labels are filled in by (A2): mean over metrics.

    rows, codes  the labelled points;  probs  (M, n, C) of those at the positions `tested`. Metrics that these points
    leave undefined do not count.
    """
    at, truth, n_classes = rows[tested], codes[tested], len(task.pool.classes)
    filled, distances = hard_labels(probs), []
    for metric in task.metrics:
        members = metric.members(task.pool)
        inside = np.ones(len(at), np.bool_) if members is None else members[at]
        predicted = task.pool.predictions[at]
        exact = metric.of_table(table_of(predicted[inside], truth[inside], n_classes)[None])[0]
        believed, _ = mean_over_draws(metric, tables_of_labels(filled, predicted, n_classes, inside))
        distances.append(abs(believed - exact))
    defined = [distance for distance in distances if isfinite(distance)]
    return float(np.mean(defined)) if defined else 0.0


# ---------------------------------------------------------------- the first labels


def initial_labels(initial: int | None, n_points: int, n_classes: int) -> int:
    """How many labels are drawn uniformly before the surrogate has a say (A.2): at most a quarter of the pool."""
    quarter = max(1, n_points // 4)
    if initial is not None:
        return max(1, min(initial, quarter))
    return 100 if quarter >= 100 else min(max(20, 5 * n_classes), quarter)


def still_starting(task: Task, history: History, settings: Settings) -> bool:
    """Whether the next batch is still uniform: too few labels are told or on their way, or none is told."""
    seen = len(history.labels) + len(history.outstanding)
    return len(history.labels) == 0 or seen < initial_labels(settings.initial, len(task.pool), len(task.pool.classes))


def uniform_batch(task: Task, history: History, n: int) -> Batch:
    """n open points drawn uniformly without replacement."""
    rng = history.rng(task.seed, START)
    indices, probabilities = uniform_draws(np.flatnonzero(history.open), n, rng)
    return Batch(indices, probabilities, info={"chosen": "uniformly"}, labels_before=len(history.labels))


# ---------------------------------------------------------------- estimates


def estimates_of(name: str, task: Task, history: History, round_: Round | None) -> Estimates:
    """(A2) for every metric; the truth itself once everything is labelled (then there is no round)."""
    if round_ is None:
        values = [
            estimate_of(task, history, metric, known_table(task, history, metric)[None], COMPLETE)
            for metric in task.metrics
        ]
        return Estimates(tuple(values), name)
    belief = round_.belief
    values = [estimate_of(task, history, metric, belief.tables(metric), UNSURE) for metric in task.metrics]
    return Estimates(tuple(values), name, dict(round_.info))


def estimate_of(task: Task, history: History, metric: Metric, tables: Any, note: str) -> Estimate:
    """The metric's mean over the tables (M, C, C), with a note on why there is no interval or no value."""
    value, undefined = mean_over_draws(metric, tables)
    if undefined == len(tables):
        note = "undefined: " + note
    elif undefined:
        note += f"; undefined in {undefined} of {len(tables)} draws, which are left out"
    return Estimate(metric.name, value, nan, nan, task.confidence, len(history.labels), note=note)


def nothing_known(name: str, task: Task) -> Estimates:
    """Every metric undefined, because there is no label yet."""
    values = [Estimate(m.name, nan, nan, nan, task.confidence, 0, note="no label yet") for m in task.metrics]
    return Estimates(tuple(values), name)


def known_table(task: Task, history: History, metric: Metric) -> Any:
    """(C, C) the table of the labelled points that the metric is about."""
    members, rows = metric.members(task.pool), history.labelled
    if members is not None:
        rows = rows[members[rows]]
    return table_of(task.pool.predictions[rows], history.known[rows], len(task.pool.classes))
