"""The variance of an estimate of `assured` given its draws: exact to first order where the truth of a pool is known.

The mean squared error of a hundred runs is known to about 30 %. Given the stages of a single run the variance is a sum
over points, and a few runs tell:
    V = sum_s sum_i (1 - p_si) / p_si (c_si e_si - mean of c e_s)^2
with e_si what the label of point i adds to the estimated sum beyond what stage s supposes of it, c_si the share of the
stage for the fold of the point. A random sample of n labels has
N^2 (1/n - 1/N) sum_i (y_i - mean)^2 / (N - 1), with y_i what each label adds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from altmas.history import History
from altmas.methods import Assured
from altmas.methods.assured.estimator import EVERY, Difference
from altmas.methods.assured.parts import StageSample, by_fold
from altmas.methods.assured.stages import stages_of
from altmas.task import Task
from altmas.types import Array


def estimator_of(method: Assured, task: Task, history: History) -> Difference:
    """The estimator of the whole pool after these labels, with its stages and how much each of them counts."""
    samples, whole = method._samples(task, history, stages_of(history)), np.ones(len(task.pool), np.bool_)
    return Difference(samples, task.pool, history.known, whole, np.zeros(0, np.int64))


def of_design(estimator: Difference, residuals: Sequence[Array]) -> float:
    """Variance of the estimated sum; residuals (N,) of every point, for each stage."""
    stages = zip(estimator.shares, estimator.samples, residuals, strict=True)
    return sum(of_stage(sample, by_fold(share, sample.folds, EVERY) * residual) for share, sample, residual in stages)


def of_stage(sample: StageSample, residual: Array) -> float:
    """Variance of the sum that one stage estimates; residual (N,) of every point."""
    inside = sample.stage.population
    chance, open_ = np.maximum(sample.stage.chances[inside], 1e-9), residual[inside]
    centre = ((1 - chance) * open_).sum() / (1 - chance).sum()
    return float(((1 - chance) / chance * (open_ - centre) ** 2).sum())


def of_random_sample(values: Array, n: int) -> float:
    """Variance of the estimated sum of the values from n of them at random."""
    size = len(values)
    return float(size**2 * (1 / n - 1 / size) * ((values - values.mean()) ** 2).sum() / (size - 1))
