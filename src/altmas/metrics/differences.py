"""Differences of metrics, and the largest difference between groups: D = D_A - D_B (docs/equations.md, S)."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from altmas.errors import MetricError
from altmas.metrics.catalogue import plain_name
from altmas.metrics.influence import ItemInfluence
from altmas.metrics.metric import Metric, NotOfTable, answers_of
from altmas.metrics.weights import LabelWeights, Weights
from altmas.pool import Pool
from altmas.types import Array

MOST_GROUPS = 12
"""Groups of a gap; with more, ask for the differences that matter."""


@dataclass(frozen=True)
class _Combination(NotOfTable):
    """What is made of other metrics, each with its own points and model; its parts are evaluated, not it."""

    def at(self, pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
        raise MetricError(f"metric {self.name!r} is evaluated by its parts")

    def members(self, pool: Pool) -> Any:
        """(N,) the points that some part is about, or None for all of them."""
        return _any_of([part.members(pool) for _, part in self.parts])

    def deciding_points(self, pool: Pool) -> Any:
        """(N,) the points whose labels some part depends on, or None for all of them."""
        return _any_of([part.deciding_points(pool) for _, part in self.parts])

    @property
    def needs_answers(self) -> bool:
        return any(part.needs_answers for _, part in self.parts)


def _any_of(masks: Sequence[Array | None]) -> Array | None:
    """(N,) the points that are in some of the masks; None, for all points, if a mask is."""
    known = [mask for mask in masks if mask is not None]
    return None if len(known) < len(masks) else np.any(known, axis=0)


@dataclass(frozen=True)
class Difference(_Combination):
    """(S7) A - B of two metrics in the same unit, of any models, points or thresholds."""

    sides: tuple[Metric, ...] = ()

    @property
    def parts(self) -> tuple[tuple[float, Metric], ...]:
        first, second = self.sides
        return (*first.parts, *((-factor, part) for factor, part in second.parts))

    def possible(self, pool: Pool, known: Array) -> tuple[float, float]:
        """Of two models on the same points: by the points that they answer differently; else side by side."""
        first, second = self.sides
        if any(side.right_answers(pool, known) is None for side in self.sides):
            return self.bounds
        (low, high), (low_second, high_second) = (side.possible(pool, known) for side in self.sides)
        if first.where != second.where or first.lower_is_better != second.lower_is_better:
            return low - high_second, high - low_second
        members, weight = first.members(pool), np.ones(len(pool)) if pool.weights is None else pool.weights
        weight = weight if members is None else np.where(members, weight, 0.0)
        answers, other_answers = (answers_of(pool, side.model) for side in self.sides)
        differ = answers != other_answers
        gained = weight * ((known == answers).astype(np.float64) - (known == other_answers))
        told, open_ = float(gained[known >= 0].sum()), float(weight[(known < 0) & differ].sum())
        told = -told if first.lower_is_better else told
        return (told - open_) / float(weight.sum()), (told + open_) / float(weight.sum())

    @property
    def family(self) -> tuple[object, ...]:
        return ("difference", *(side.family for side in self.sides))

    @property
    def unit(self) -> str:
        return self.sides[0].unit

    @property
    def lower_is_better(self) -> bool:
        return self.sides[0].lower_is_better

    def meaning(self, pool: Pool) -> str:
        first, second = (side.meaning(pool) for side in self.sides)
        return f"how much larger the first is than the second: {first}; {second}"


def difference(first: Metric, second: Metric, asked_name: str | None = None) -> Difference:
    """A - B; MetricError if their units differ, or if a side is a gap."""
    name = f"{first.name} - {second.name}"
    for side in (first, second):
        if side.contrasts:
            raise MetricError(
                f"metric {asked_name or name!r}: a gap is a difference already; ask for {side.name!r} alone"
            )
    if first.unit != second.unit:
        raise MetricError(
            f"metric {asked_name or name!r}: {first.name!r} is measured in {first.unit}, {second.name!r} in "
            f"{second.unit}; a difference needs two metrics in the same unit"
        )
    if plain_name(first.name) == plain_name(second.name):
        raise MetricError(f"metric {asked_name or name!r} is 0 whatever the labels are; name two different metrics")
    bounds = (first.bounds[0] - second.bounds[1], first.bounds[1] - second.bounds[0])
    return Difference(name, bounds=bounds, kind="difference", sides=(first, second))


@dataclass(frozen=True)
class Gap(_Combination):
    """(S8) the largest difference of one metric between two groups of a slice."""

    groups: tuple[Metric, ...] = ()
    slice: str = ""

    @property
    def parts(self) -> tuple[tuple[float, Metric], ...]:
        return tuple((1.0, group) for group in self.groups)

    @property
    def contrasts(self) -> tuple[Metric, ...]:
        return tuple(difference(first, second) for first, second in itertools.combinations(self.groups, 2))

    @property
    def unit(self) -> str:
        return self.groups[0].unit

    def meaning(self, pool: Pool) -> str:
        base = replace(self.groups[0], where=None).meaning(pool)
        return f"largest difference between two groups of {self.slice}: {base}"


def gap(name: str, of_group: Sequence[Metric], slice_name: str) -> Gap:
    """The gap over these metrics, the same one in each group of a slice."""
    low, high = of_group[0].bounds
    return Gap(name, bounds=(0.0, high - low), kind="gap", groups=tuple(of_group), slice=slice_name)


def combined(metric: Metric, value_of: Callable[[Metric], float]) -> float:
    """The value of a metric from those of its parts; nan if one is undefined."""
    if metric.contrasts:
        values = [value_of(part) for _, part in metric.parts]
        return math.nan if any(map(math.isnan, values)) else max(values) - min(values)
    return sum(factor * value_of(part) for factor, part in metric.parts)


def truth_values(pool: Pool, truth: Array, metrics: Sequence[Metric]) -> Mapping[str, float]:
    """Q* of every metric when each label of the pool is known (codes)."""
    known: dict[tuple[str, str] | None, LabelWeights] = {}

    def value_of(metric: Metric) -> float:
        if metric.where not in known:
            known[metric.where] = LabelWeights.of_truth(truth, len(pool.classes), metric.members(pool), pool.weights)
        return metric.value(pool, known[metric.where])

    return {metric.name: combined(metric, value_of) for metric in metrics}
