"""Uniform draws as stages: samples of the points that were open when each stage began.

Draws come in an order, each from all points then open. The sample is the longest answered prefix of that order, skips
being answers: whoever leaves a point open may do so because of its label. Where points behind it have an answer, it
counts as one more draw whose label may be anything                                                             (B5)
As long as nobody volunteers a label all draws are one sample without replacement. A label that is volunteered between
two batches takes its point away from the later draws only, so a new stage begins there. With A_s the labels that were
known when stage s began, R_s the points that were not and n_s the labels of its sample,
    T_s = labels of A_s + R_s / n_s times the labels of the sample,     T = sum_s c_s T_s
    c_s in proportion to n_s / (R_s (R_s - n_s)), a complete stage alone                                        (B6)
Each T_s is unbiased given what was known when the stage began; stages between which nothing was volunteered would be
combined to the same value as one sample of all their draws. Points that came together are stages of their own, because
given how many draws fell among them these are a sample of them.

Where rows stand for several, one that was drawn counts R/n times its weight k_i, although it exists once. A row that
would count for more than half of all weight says nothing about the others: with
    k_i R_s / n_s > W / 2,     W the weight of the points that the stage is about                               (W3)
its label is known exactly and counts once, and the sample is one of the other rows. As long as it is not drawn it may
be anything: so few rows are that large that (V4) takes all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from altmas.history import History
from altmas.types import Array

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class RandomStage:
    """A uniform random sample of the points of which no label was known when it began.

    about  (N,) the points it is about;  exact  (N,) those of them whose labels were known when it began
    rows   (n,) labels of its sample, in drawing order;  share  c_s of (B6)
    once   (N,) those of `exact` that were drawn, and count once because of their weight (W3); None: none
    """

    about: Mask
    exact: Mask
    rows: Array
    share: float = 1.0
    once: Mask | None = None

    @cached_property
    def rest(self) -> int:
        """R of (B6)."""
        return int(self.about.sum() - self.exact.sum())


@dataclass(frozen=True)
class RandomStages:
    """What a history of uniform draws says about some of the points.

    stages     in order, for each domain: one with a share of 1 where no label was volunteered between draws
    known      (N,) labels, the supposed ones included; -1 where there is none
    left_open  points without an answer that ended the sample of a domain while points behind them were answered
    """

    stages: list[RandomStage]
    known: Array
    left_open: tuple[int, ...] = ()

    @cached_property
    def weights(self) -> Array:
        """(N,) sum over the stages of c_s, times R_s / n_s where a point is in the sample; 0 for labels in no stage."""
        weights = np.zeros(len(self.known))
        for stage in self.stages:
            weights[stage.exact] += stage.share
            weights[stage.rows] += stage.share * (stage.rest / max(len(stage.rows), 1))
        return weights


def counting_once(sampled: RandomStages, weights: Array) -> RandomStages:
    """The same stages with the labels of rows of large weight known exactly (W3); weights (N,) of the rows."""
    stages = []
    for stage in sampled.stages:
        scale, total = stage.rest / max(len(stage.rows), 1), float(weights[stage.about].sum())
        large = stage.about & (sampled.known >= 0) & (weights * scale > total / 2) & ~stage.exact
        rows = stage.rows[~large[stage.rows]]
        changed = large.any() and len(rows) > 0
        stages.append(replace(stage, exact=stage.exact | large, rows=rows, once=large) if changed else stage)
    return replace(sampled, stages=stages)


def stages_among(history: History, inside: Mask, supposed: Mapping[int, int] | None = None) -> RandomStages:
    """The stages of the draws among some of the points; supposed: labels of points that were left open, by row.

    A point with a supposed label is the last of its sample.
    """
    supposed = supposed or {}
    known, answered = history.known.copy(), history.known >= 0
    answered[list(history.skipped)] = True
    known[list(supposed)] = list(supposed.values())
    unasked = [history.unasked_before(number) for number in range(len(history.batches))]
    batch_of = np.repeat(np.arange(len(history.batches)), [len(batch.indices) for batch in history.batches])
    stages: list[RandomStage] = []
    left_open: list[int] = []
    for rows in history.domains:
        about = np.zeros(history.n_points, np.bool_)
        about[rows] = inside[rows]
        mine = about[history.drawn]
        order, batches = history.drawn[mine], batch_of[mine]
        gaps = np.flatnonzero(~answered[order])
        end = int(gaps[0]) if len(gaps) else len(order)
        if end < len(order) and int(order[end]) in supposed:
            end += 1
        elif answered[order[end:]].any():
            left_open.append(int(order[end]))
        if (history.known[about] >= 0).all():
            stages.append(RandomStage(about, about & ~_mask(history.n_points, history.drawn), order))
        else:
            behind = _mask(history.n_points, order[end:])
            stages += _of_domain(about, known, answered, unasked, order[:end], batches[:end], behind)
    return RandomStages(stages, known, tuple(left_open))


def _of_domain(
    about: Mask, known: Array, answered: Mask, unasked: list[Array], order: Array, batches: Array, behind: Mask
) -> list[RandomStage]:
    """The stages about points that came together.

    unasked  rows that could not be drawn in each batch
    order, batches  answered draws among them and their batches;  behind  (N,) draws that do not count yet

    Draws that could not hit a point which has no answer any more are no sample of what is there: their labels are known
    and say nothing of others.
    """
    labelled, stages = about & (known >= 0), []
    closed = [rows[about[rows]] for rows in unasked] or [order[:0]]
    starts = [0, *(n for n in range(1, len(closed)) if not np.array_equal(closed[n], closed[n - 1]))]
    for start, end in zip(starts, [*starts[1:], len(closed)], strict=True):
        apart = _mask(len(about), closed[start])
        sample = order[(batches >= start) & (batches < end)]
        if (apart & ~answered).any():
            continue
        exact = (apart | _mask(len(about), order[batches < start])) & labelled
        stages.append(RandomStage(about & (labelled | ~apart), exact, sample[known[sample] >= 0]))
    nothing = RandomStage(about, labelled & ~behind, order[:0])
    stages = [stage for stage in stages if len(stage.rows)] or [nothing]
    if len(stages) == 1 or stages[-1].rest == len(stages[-1].rows):
        return stages[-1:]
    worth = np.array([len(stage.rows) / (stage.rest * (stage.rest - len(stage.rows))) for stage in stages])
    return [replace(stage, share=float(share)) for stage, share in zip(stages, worth / worth.sum(), strict=True)]


def _mask(n_points: int, rows: Array) -> Mask:
    mask = np.zeros(n_points, np.bool_)
    mask[rows] = True
    return mask
