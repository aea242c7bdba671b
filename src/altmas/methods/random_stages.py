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
    since = _known_since(history)
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
            stages.append(RandomStage(about, about & (since <= len(history.batches)), order))
        else:
            stages += _of_domain(about, known, since, order[:end], batches[:end], len(history.batches))
    return RandomStages(stages, known, tuple(left_open))


def _known_since(history: History) -> Array:
    """(N,) the first batch that was drawn with the label of a volunteered point known; inf for any other point."""
    since = np.full(history.n_points, np.inf)
    volunteered = np.isin(history.labelled, history.volunteered)
    before = np.maximum.accumulate(np.array([batch.labels_before for batch in history.batches], np.int64))
    since[history.labelled[volunteered]] = np.searchsorted(before, np.flatnonzero(volunteered), side="right")
    return since


def _of_domain(about: Mask, known: Array, since: Array, order: Array, batches: Array, count: int) -> list[RandomStage]:
    """The stages about points that came together; order, batches  answered draws among them and their batches."""
    told = np.unique(since[about & (since > 0) & (since < count)])
    starts = np.concatenate([[0.0], told])
    labelled, stages = about & (known >= 0), []
    for start, end in zip(starts, [*told, np.inf], strict=True):
        sample = order[(batches >= start) & (batches < end)]
        exact = about & (since <= start)
        exact[order[batches < start]] = True
        stages.append(RandomStage(about, exact & labelled, sample[known[sample] >= 0]))
    stages = [stage for stage in stages if len(stage.rows)] or [RandomStage(about, about & (since <= count), order[:0])]
    if len(stages) == 1 or stages[-1].rest == len(stages[-1].rows):
        return stages[-1:]
    worth = np.array([len(stage.rows) / (stage.rest * (stage.rest - len(stage.rows))) for stage in stages])
    return [replace(stage, share=float(share)) for stage, share in zip(stages, worth / worth.sum(), strict=True)]
