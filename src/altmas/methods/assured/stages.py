"""Stages of draws: sampling without replacement by exponential races, with a threshold (bottom-k, rank conditioning).

Within a stage the sizes u_i are fixed; they depend on labels of earlier stages only. Every point of its population gets
a race time r_i = E_i / u_i, E_i ~ Exp(1) from the seed and the number of the stage, and points are asked for in the
order of r. The sample is the longest answered prefix of that order; with tau the race time of the next point,
    p_i = P(r_i < tau) = 1 - exp(-u_i tau)                      exactly, given everything else          (V1)
so a point that was asked for and not answered lies beyond tau: it is not in the sample and moves nothing.
A stage is about the domains (points that came together) which were there when it began, or the newest of them alone;
of points that came later it says nothing. Where whole groups are drawn, all of this goes for groups (whole_groups.py).
Cohen and Kaplan (2007), bottom-k sketches; Duffield, Lund and Thorup (2007), priority sampling.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from altmas.errors import MethodError
from altmas.history import Batch, History
from altmas.methods.assured.first_edition import first_edition_exposure
from altmas.methods.assured.whole_groups import group_sizes, groups_planned, heads
from altmas.types import Array

Mask = NDArray[np.bool_]

LEVELS = np.geomspace(0.02, 4000.0, 256)
"""Sampling sizes are kept on this grid, one byte for each point, so that a log of a million points stays small."""
RACES = 77
"""The random stream of race times."""
LONGEST = 1e12
"""A threshold beyond every race time: the whole population was answered."""


@dataclass(frozen=True)
class Stage:
    """One stage of draws, as far as it has been answered.

    within      (N,) points that it is about
    earlier     (N,) points that had a label or skip when it began
    population  (N,) the others of those that it is about
    sizes       (N,) u_i, 0 where there was no point yet;  times (N,) r_i, infinite outside the population
    used        rows of the sample in the order of their times, skipped ones included
    exposure    (N,) u_i tau, 0 outside the population
    gain        (K,) how many random labels one of its labels was expected to be worth when it began, in each fold, by
                labels outside the fold; or (1,) the same for all. Of the first stage it may be known when the second
                begins (V31): until then it counts alone
    threshold   tau; 0 before anything was answered
    cut_at      the point that was asked for and whose missing answer ended it; None if none did
    gap         whether points that were asked for after that one have an answer
    units       (N,) the group of each point, where whole groups are drawn; else None
    planned     groups after which it is over
    whole       (N,) points of the sets that it draws whole (V24); None if there are none
    """

    within: Mask
    earlier: Mask
    population: Mask
    sizes: Array
    times: Array
    used: NDArray[np.int64]
    exposure: Array
    gain: Array = field(default_factory=lambda: np.ones(1))
    threshold: float = 0.0
    from_first_edition: bool = False
    cut_at: int | None = None
    gap: bool = False
    units: NDArray[np.int64] | None = None
    planned: int = 0
    whole: Mask | None = None

    def apart(self, inside: Mask) -> Mask | None:
        """(N,) points of sets drawn whole, if the stage is about others inside as well; None if there are none.

        They come first, whatever the stage is to say of the others: a draw among them is no draw among these.
        """
        if self.whole is None or not (self.population & inside & ~self.whole).any():
            return None
        return self.whole

    @cached_property
    def chances(self) -> Array:
        """(N,) p_i of (V1); 0 outside the population."""
        return np.asarray(-np.expm1(-self.exposure))

    def hazard_within(self, members: Mask) -> tuple[float, int]:
        """(Lambda of (V11), how far the race among these members has come by their own draws; how many these were)."""
        rows = self.used[members[self.used]]
        if self.from_first_edition:
            return self.threshold, len(rows)
        matter = members & self.population
        if self.units is not None:
            rows, matter = heads(rows, self.units), heads(np.flatnonzero(matter), self.units)
        sizes = self.sizes[rows]
        left = float(self.sizes[matter].sum()) - (np.cumsum(sizes) - sizes)
        return float((1 / np.maximum(left, sizes)).sum()), len(rows)

    def next_points(self, free: Mask, n: int) -> NDArray[np.int64]:
        """The next n points of the order that are free, fewer if there are fewer."""
        rows = np.flatnonzero(free & self.population)
        if self.units is not None:  # points of a group have the same time: they come in their own order
            return np.asarray(rows[np.argsort(self.times[rows], kind="stable")][:n])
        if n < len(rows):
            rows = rows[np.argpartition(self.times[rows], n)[:n]]
        return np.asarray(rows[np.argsort(self.times[rows], kind="stable")])

    def draw_chances(self, rows: Array) -> Array:
        """(n,) chance of each draw among the points not yet passed: u_i / (sum of u over times >= r_i)."""
        if not len(rows):
            return np.zeros(0)
        ahead = np.flatnonzero(self.population & (self.times >= self.times[rows[0]]))
        if self.units is not None:
            ahead = heads(ahead, self.units)
        near = ahead[self.times[ahead] <= self.times[rows[-1]]]
        near = near[np.argsort(self.times[near], kind="stable")]
        passed = np.cumsum(self.sizes[near]) - self.sizes[near]
        left = float(self.sizes[ahead].sum()) - passed[np.searchsorted(self.times[near], self.times[rows])]
        return np.asarray(np.minimum(self.sizes[rows] / np.maximum(left, self.sizes[rows]), 1.0))


class StageDesign(NamedTuple):
    """What a stage begins with.

    sizes  (N,) how often each point should be drawn
    gain   (K,) how many random labels each label should be worth in each fold, or (1,) the same for all
    whole  (N,) points of sets that are drawn whole; None if there are none
    gain_of_first  (K,) what its labels have shown the first stage to be worth; None to leave it as it began
    """

    sizes: Array
    gain: Array
    whole: Array | None = None
    gain_of_first: Array | None = None


def begin(
    design: StageDesign,
    history: History,
    seed: int,
    domain: int | None = None,
    units: Array | None = None,
    labels: float = 0.0,
) -> tuple[Stage, dict[str, Array]]:
    """(a new stage with nothing asked yet, what its first batch records); about all points, or about one domain.

    units  (N,) the groups, to draw whole ones;  labels  that such a stage is to bring
    """
    sizes, gain, whole, gain_of_first = design
    free = np.ones(history.n_points, np.bool_)
    free[history.labelled] = False
    free[list(history.skipped)] = False
    races = np.array([seed, RACES, len(stage_starts(history))])
    if units is not None:
        sizes = group_sizes(sizes, units, free)
    record = {"levels": levels_of(sizes), "population": np.packbits(free), "gain": gain}
    record["races"] = races
    if domain is not None:
        record["domain"] = np.array([domain])
    if whole is not None:
        record["whole"] = np.packbits(whole)
    if gain_of_first is not None:
        record["gain_of_first"] = gain_of_first
    planned = 0
    if units is not None:
        planned = groups_planned(LEVELS[record["levels"]], units, free, labels)
        record["groups"] = np.array([planned])
    within = _within(record, history, history.n_points)
    sizes, population = LEVELS[record["levels"]], free & within
    times = race_times(sizes, population, races, units)
    nothing, unexposed = np.zeros(0, np.int64), np.zeros(history.n_points)
    stage = Stage(within, ~free, population, sizes, times, nothing, unexposed, gain, units=units, planned=planned)
    return replace(stage, whole=whole), record


def _within(record: Mapping[str, Array], history: History, points: int) -> Mask:
    """(N,) what a stage is about that began when there were so many points."""
    rows = history.domains[int(record["domain"][0])] if "domain" in record else slice(0, points)
    return _mask(history.n_points, slice(rows.start, min(rows.stop, points)))


def domain_of_last(history: History) -> int | None:
    """The domain that the last stage is about; None for all that there were."""
    starts = stage_starts(history)
    record = history.batches[starts[-1]].record if starts else {}
    return int(record["domain"][0]) if "domain" in record else None


def points_of_last(history: History) -> int:
    """How many points there were when the last stage began."""
    starts = stage_starts(history)
    return len(history.batches[starts[-1]].record["levels"]) if starts else 0


def race_times(sizes: Array, population: Mask, races: Array, units: Array | None = None) -> Array:
    """(N,) r_i = E_i / u_i, one E for each unit (U1); infinite outside the population. `races` seeds the stream."""
    rng = np.random.default_rng(races.tolist())
    if units is None:
        waits = rng.standard_exponential(len(sizes))
    else:
        waits = rng.standard_exponential(int(units.max()) + 1)[units]
    return np.where(population, waits / sizes, np.inf)


def levels_of(sizes: Array) -> NDArray[np.uint8]:
    """(N,) the nearest level of each size."""
    step = np.log(LEVELS[1] / LEVELS[0])
    levels = np.round(np.log(np.maximum(sizes, LEVELS[0]) / LEVELS[0]) / step)
    return np.asarray(np.clip(levels, 0, len(LEVELS) - 1), np.uint8)


# ---------------------------------------------------------------- replay


def stages_of(history: History, groups: Array | None = None) -> list[Stage]:
    """Every stage of the log, in order; draws of the first edition of the method come first, as one stage.

    groups  (N,) of the pool; needed where whole groups were drawn
    """
    starts = stage_starts(history)
    ends = [*starts, len(history.batches)][1:]
    stages = [_replayed(history, start, end, groups) for start, end in zip(starts, ends, strict=False)]
    if len(starts) > 1 and "gain_of_first" in (second := history.batches[starts[1]].record):
        stages[0] = replace(stages[0], gain=np.asarray(second["gain_of_first"], np.float64))
    before = history.batches[: starts[0] if starts else len(history.batches)]
    if any("scale" in batch.record for batch in before):
        stages.insert(0, _first_edition(history, before))
    return stages


def last_stage(history: History, groups: Array | None = None) -> Stage:
    """The stage that the last batch belongs to, of a log with a stage; the others need not be replayed for it."""
    return _replayed(history, stage_starts(history)[-1], len(history.batches), groups)


def next_of_groups(history: History, groups: Array, n: int) -> NDArray[np.int64]:
    """The next n points of the last stage, which draws whole groups; none if there is no stage, or it is over.

    It is over when as many groups as were planned are answered whole; then what is left of a group that was begun comes
    first. Until then no point beyond the last planned group is asked for, unless answers are still missing.
    """
    if not stage_starts(history):
        return np.zeros(0, np.int64)
    stage = last_stage(history, groups)
    open_, waiting = history.open, history.known < 0
    waiting[list(history.skipped)] = False
    in_order = np.sort(stage.times[heads(np.flatnonzero(stage.population), groups)])
    last = float(in_order[min(stage.planned, len(in_order)) - 1]) if len(in_order) else 0.0
    asked = np.concatenate([batch.indices for batch in history.batches[stage_starts(history)[-1] :]])
    reached = float(stage.times[asked].max(initial=0.0))
    passed = stage.population & (stage.times <= max(reached, last))
    whole = len(heads(np.flatnonzero(passed), groups)) - len(heads(np.flatnonzero(passed & waiting), groups))
    if whole >= min(stage.planned, len(in_order)):
        return stage.next_points(open_ & (stage.times <= reached), n)
    within_plan = stage.next_points(open_ & (stage.times <= last), n)
    return within_plan if len(within_plan) else stage.next_points(open_, n)


def stage_starts(history: History) -> list[int]:
    """Indices of the batches that began a stage; none of a log of another method."""
    return [index for index, batch in enumerate(history.batches) if "population" in batch.record]


def _replayed(history: History, start: int, end: int, groups: Array | None = None) -> Stage:
    """The stage of the batches from `start` to `end`, cut at the first point that has no answer.

    Points of a group have the same time, so that a group with such a point is outside as a whole.

    Points that somebody volunteered while it lasted are no draws: they do not end the sample, and count in it if
    their race time lies before the threshold.
    """
    first = history.batches[start]
    points, units = len(first.record["levels"]), groups if "groups" in first.record else None
    if "groups" in first.record and groups is None:
        raise MethodError("the log has draws of whole groups, and the pool has no groups; nothing can be estimated")
    free = _free(first, history.n_points)
    within = _within(first.record, history, points)
    population, sizes, times = free & within, np.zeros(history.n_points), np.full(history.n_points, np.inf)
    sizes[:points] = LEVELS[first.record["levels"]]
    times[:points] = race_times(sizes[:points], population[:points], first.record["races"], units)
    proposed = np.concatenate([batch.indices for batch in history.batches[start:end]])
    reached = float(times[proposed].max()) if len(proposed) else 0.0
    drawn = _mask(history.n_points, np.concatenate([batch.indices for batch in history.batches[:end]]))
    answered = history.known >= 0
    if end < len(history.batches):
        volunteered = population & ~_free(history.batches[end], history.n_points) & ~drawn
    else:
        volunteered = population & answered & ~drawn
    answered[list(history.skipped)] = True
    beyond = np.where(times <= reached, ~answered, ~volunteered) & population
    threshold = float(times[beyond].min()) if beyond.any() else LONGEST
    used = np.flatnonzero(population & answered & (times < threshold))
    waiting = np.flatnonzero(beyond & (times == threshold) & (times <= reached))
    earlier = ~free
    earlier[points:] = False
    return Stage(
        within,
        earlier,
        population,
        sizes,
        times,
        used[np.argsort(times[used], kind="stable")],
        np.where(population, sizes * threshold, 0.0),
        np.asarray(first.record["gain"], np.float64),
        threshold,
        cut_at=int(waiting[0]) if len(waiting) else None,
        gap=bool((answered[proposed] & (times[proposed] > threshold)).any()),
        units=units,
        planned=int(first.record["groups"][0]) if units is not None else 0,
        whole=_of_sets(first, history.n_points),
    )


def _free(batch: Batch, n_points: int) -> Mask:
    """(N,) points without a label or skip when a stage began; none of those that came later."""
    return np.unpackbits(batch.record["population"], count=n_points).astype(np.bool_)


def _of_sets(batch: Batch, n_points: int) -> Mask | None:
    """(N,) points of the sets that a stage draws whole; None if there are none."""
    if "whole" not in batch.record:
        return None
    return np.unpackbits(batch.record["whole"], count=n_points).astype(np.bool_)


def _mask(n_points: int, rows: Array | slice) -> Mask:
    mask = np.zeros(n_points, np.bool_)
    mask[rows] = True
    return mask


def _first_edition(history: History, batches: tuple[Batch, ...]) -> Stage:
    """The draws of the first edition as one stage: inclusion by the exposure of the batches that are answered whole."""
    answered = history.known >= 0
    answered[list(history.skipped)] = True
    whole = 0
    while whole < len(batches) and answered[batches[whole].indices].all():
        whole += 1
    drawn = np.concatenate([np.zeros(0, np.int64), *(batch.indices for batch in batches[:whole])])
    points = history.points_at(len(batches) - 1)
    within = _mask(history.n_points, slice(0, points))
    earlier = _mask(history.n_points, history.volunteered) & within
    population, exposure = within & ~earlier, np.zeros(history.n_points)
    exposure[:points] = np.where(population[:points], first_edition_exposure(batches[:whole], points), 0.0)
    never = np.full(history.n_points, np.inf)
    return Stage(within, earlier, population, exposure, never, drawn, exposure, threshold=1.0, from_first_edition=True)
