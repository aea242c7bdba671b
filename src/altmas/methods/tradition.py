"""Tradition (B.1): label a uniform random sample, compute each metric on it."""

import math
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from altmas.belief import Belief
from altmas.estimates import Estimate, Estimates, skip_note
from altmas.history import Batch, History
from altmas.intervals import anytime_quantile
from altmas.methods.draws import answered_whole, uniform_draws, uniform_group_draws
from altmas.methods.gaps import gap_of
from altmas.methods.protocol import Method, Rehearsal, SequenceOfDraws, Traits
from altmas.methods.random_items import (
    effect_of_groups,
    estimate_of_items,
    labels_of,
    with_left_open,
    without_groups,
)
from altmas.methods.random_linear import Supposed
from altmas.methods.random_sample import Ahead, RandomSample, interval_of_sample
from altmas.methods.random_stages import stages_among
from altmas.metrics import Metric, table_of
from altmas.pool import Pool
from altmas.superpopulation import LEAST_GROUPS
from altmas.task import Task
from altmas.types import Array

PROPOSE = "tradition: draws"
FIRST = 20
"""Labels at which intervals that hold at every look are narrowest at the earliest."""
SUREST = 1 - 1e-9
"""The highest confidence of a single look: where few labels say hardly anything, a higher one would say no less."""
CLASS_STRENGTH = 4.0
"""Labels by which what is believed of one predicted class is drawn to what is seen of all."""


@dataclass(frozen=True)
class Tradition(Method):
    """A uniform random sample with classical intervals.

    calibrate_rows  use the known number of points predicted as each class (post-stratification) wherever every
                    predicted class has a label
    """

    calibrate_rows: bool = False

    name = "tradition"

    @property
    def traits(self) -> Traits:
        """Known row sums are those of this pool, so calibrated rows tell nothing more about data like it."""
        plain = not self.calibrate_rows
        common = Traits(interval="fixed-n", any_metric=True, grows=True, in_order=True, skips=True)
        return replace(common, ahead=plain, weights=plain, groups=plain)

    def propose(self, task: Task, history: History, n: int) -> Batch:
        rng = history.rng(task.seed, PROPOSE)
        if task.units is not None:
            indices, probabilities = uniform_group_draws(history, task.units, n, rng)
            return Batch(indices, probabilities, labels_before=len(history.labels))
        indices, probabilities = uniform_draws(np.flatnonzero(history.open), n, rng)
        return Batch(indices, probabilities, labels_before=len(history.labels))

    def estimate(self, task: Task, history: History) -> Estimates:
        if task.units is not None:
            history = answered_whole(history, task.units)
        return Estimates(tuple(self._estimate_of(task, history, metric) for metric in task.metrics), self.name)

    def inclusion(self, pool: Pool, history: History) -> Array | None:
        """None where single draws tell it; in a pool that grew, the share of each wave's points that have a label."""
        if not history.grown:
            return None
        inclusion, volunteered = np.ones(history.n_points), np.zeros(history.n_points, np.bool_)
        volunteered[history.volunteered] = True
        for rows in history.domains:
            rest = ~volunteered[rows]
            drawn = int((rest & (history.known[rows] >= 0)).sum())
            inclusion[rows] = max(drawn / max(int(rest.sum()), 1), 1e-12)
        return inclusion

    def sequences(self, task: Task, history: History) -> list[SequenceOfDraws]:
        """The answered draws in their order, a new sequence where labels were volunteered in between."""
        sequences: list[SequenceOfDraws] = []
        drawn = np.zeros(len(task.pool), np.bool_)
        answered = history.known >= 0
        answered[list(history.skipped)] = True
        for number, batch in enumerate(history.batches):
            within = np.zeros(len(task.pool), np.bool_)
            within[: history.points_at(number)] = True
            free = within & ~drawn
            free[history.unasked_before(number)] = False
            gaps = np.flatnonzero(~answered[batch.indices])
            rows = batch.indices[: gaps[0]] if len(gaps) else batch.indices
            sequences.append(SequenceOfDraws(free, np.ones(len(task.pool)), None, rows, within))
            drawn[batch.indices] = True
            if len(gaps):
                break
        return sequences

    def rehearse(self, task: Task, history: History) -> Rehearsal | None:
        """The method itself, and a belief from the labels of each predicted class, with the model's scores if any."""
        if history.drawn_labels == 0 or task.units is not None:  # imagined errors would not come in groups
            return None
        pool, rows = task.pool, history.labelled
        right = history.codes == pool.anchor[rows]
        share = (float(right.sum()) + 1) / (len(rows) + 2)
        classes = len(pool.classes)
        counts = np.bincount(pool.anchor[rows], minlength=classes)
        rates = (np.bincount(pool.anchor[rows], right, classes) + CLASS_STRENGTH * share) / (counts + CLASS_STRENGTH)
        agree = rates[pool.anchor] if pool.scores is None else pool.scores[np.arange(len(pool)), pool.anchor]
        errors = table_of(pool.anchor[rows], history.codes, classes)
        np.fill_diagonal(errors, 0.0)
        rivals = errors + (1 - np.eye(classes)) * CLASS_STRENGTH / max(classes - 1, 1)
        rivals /= rivals.sum(1, keepdims=True)
        worth = len(rows) / max(1 - len(rows) / len(pool), 1 / len(pool))  # of a sample without replacement
        return Rehearsal(self, Belief(pool.anchor, agree, rivals, pool.anchor, {}), share, worth)

    def _estimate_of(self, task: Task, history: History, metric: Metric) -> Estimate:
        if metric.contrasts:
            return self._gap(task, history, metric)
        look = one_look(task, history)
        estimate = with_left_open(look, history, metric, partial(self._if_supposed, look, history, metric))
        return _of_all_looks(task, _with_skips(task, history, metric, estimate))

    def _if_supposed(self, task: Task, history: History, metric: Metric, supposed: Supposed | None) -> Estimate:
        """The estimate of any metric but a gap, if points that were left open had the supposed labels."""
        sample = sample_of(task, history, metric, self.calibrate_rows, supposed) if metric.is_table else None
        mixed = sample is not None and sample.volunteered > 0 and sample.drawn < sample.rows.sum()
        weighted = task.pool.weights is not None
        together = history.grown or task.units is not None  # what came together, or was drawn together
        if sample is None or weighted or together or (task.beyond and mixed):
            return estimate_of_items(task, history, metric, supposed)
        if task.beyond:
            sample = _ahead(task, history, metric, sample, supposed)
            if sample.ahead is not None and sample.ahead.groups < LEAST_GROUPS:
                return without_groups(task, history, metric, sample.ahead.groups)
        value, low, high, note = interval_of_sample(metric, sample, task.confidence)
        used = sample.drawn + sample.volunteered
        kind = "none" if math.isnan(low) else "fixed-n"
        left = 0.0 if sample.ahead is None or math.isnan(low) else math.sqrt(sample.ahead.left) * (high - low) / 2
        details = (task.confidence, labels_of(task, history, metric), float(used), kind, note)
        return Estimate(metric.name, value, low, high, *details, least_half_width=left)

    def _gap(self, task: Task, history: History, metric: Metric) -> Estimate:
        """Intervals of all pairs of groups together, by Bonferroni's inequality."""
        alone = one_look(replace(task, confidence=1 - (1 - task.confidence) / len(metric.contrasts)), history)
        pairs = [
            _of_all_looks(task, with_left_open(alone, history, pair, partial(estimate_of_items, alone, history, pair)))
            for pair in metric.contrasts
        ]
        values = [self._estimate_of(task, history, part).value for _, part in metric.parts]
        return gap_of(metric, pairs, values, task.confidence)


def one_look(task: Task, history: History) -> Task:
    """The task at the confidence of each look, if the session may stop by what it sees: all of them then hold at once.

    The quantile is that of an asymptotic confidence sequence, `anytime_quantile`.
    """
    if not task.stopping:
        return task
    planned = max(FIRST, (task.budget or 400) // 2)
    quantile = anytime_quantile(task.confidence, history.drawn_labels, planned)
    return replace(task, confidence=min(2 * NormalDist().cdf(quantile) - 1, SUREST))


def _with_skips(task: Task, history: History, metric: Metric, estimate: Estimate) -> Estimate:
    """The estimate with a note on skipped points of the metric, unless it says something else already."""
    members = metric.members(task.pool)
    skipped = sum(members is None or bool(members[row]) for row in history.skipped)
    if not skipped or estimate.note:
        return estimate
    return replace(estimate, note=skip_note(metric, estimate.value, estimate.labels, skipped))


def _of_all_looks(task: Task, estimate: Estimate) -> Estimate:
    """An estimate that was made for one look, as what it says at the confidence of the task."""
    kind = "asymptotic" if task.stopping and estimate.interval == "fixed-n" else estimate.interval
    return replace(estimate, confidence=task.confidence, interval=kind)


def _ahead(
    task: Task, history: History, metric: Metric, sample: RandomSample, supposed: Supposed | None
) -> RandomSample:
    """The same labels as a sample of data like the pool; all of them drawn, or no point without one."""
    rows = sample.rows + sample.exact.sum(1)
    together = RandomSample(sample.counts + sample.exact, np.zeros_like(sample.exact), rows)
    return replace(together, ahead=effect_of_groups(task, history, metric, supposed) if together.drawn else Ahead())


def sample_of(
    task: Task, history: History, metric: Metric, calibrate_rows: bool, supposed: Supposed | None = None
) -> RandomSample | None:
    """The labels of the metric's points, split into the drawn and those known before; None for more than one stage."""
    members = metric.members(task.pool)
    sampled = stages_among(history, np.ones(len(task.pool), np.bool_) if members is None else members, supposed)
    if len(sampled.stages) > 1:
        return None
    (stage,) = sampled.stages
    rows_of, n_classes = metric.rows(metric, task.pool), len(task.pool.classes)

    def table(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return table_of(rows_of.codes[rows], sampled.known[rows], n_classes, n_rows=rows_of.count)

    return RandomSample(
        counts=table(stage.rows),
        exact=table(np.flatnonzero(stage.exact)),
        rows=np.bincount(rows_of.codes[stage.about & ~stage.exact], minlength=rows_of.count).astype(np.float64),
        calibrate_rows=calibrate_rows,
    )
