"""The variance of a design, as the benchmarks work it out: against sums over every point, one at a time."""

import itertools

import numpy as np
import pytest

from altmas.history import History
from altmas.methods import Assured, Task
from altmas.metrics import metric_set
from altmas.pool import Pool
from altmas.simulate import label_until
from benchmarks import label_value
from benchmarks.data import NamedPool
from benchmarks.design_variance import estimator_of, of_design, of_random_sample


def made_up(n: int = 400) -> tuple[Pool, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, n)
    features = np.eye(3)[truth] + rng.normal(size=(n, 3))
    return Pool(features, features.argmax(1), classes=[0, 1, 2]), truth


def test_the_variance_of_a_random_sample_is_that_over_all_samples():
    values, n = np.array([0.0, 1.0, 1.0, 4.0, 2.0]), 2
    totals = [5 * np.mean(values[list(rows)]) for rows in itertools.combinations(range(5), n)]
    assert of_random_sample(values, n) == pytest.approx(np.var(totals))


def test_the_variance_of_the_design_is_what_a_loop_over_stages_and_points_finds():
    pool, truth = made_up()
    task = Task(pool, metric_set("accuracy", pool), seed=1)
    history = label_until(Assured(), task, History(len(pool)), 100, 20, truth.__getitem__)
    estimator = estimator_of(Assured(), task, history)
    residuals = [np.sin(np.arange(len(pool)) + stage) for stage in range(len(estimator.samples))]
    assert len(residuals) == 3
    total = 0.0
    for share, sample, residual in zip(estimator.shares, estimator.samples, residuals, strict=True):
        open_ = [i for i in range(len(pool)) if sample.stage.population[i]]
        chance = {i: 1 - np.exp(-sample.stage.sizes[i] * sample.stage.threshold) for i in open_}
        own = {i: share[sample.folds[i]] * residual[i] for i in open_}
        centre = sum((1 - chance[i]) * own[i] for i in open_) / sum(1 - chance[i] for i in open_)
        total += sum((1 - chance[i]) / chance[i] * (own[i] - centre) ** 2 for i in open_)
    assert of_design(estimator, residuals) == pytest.approx(total)


def test_label_values_by_the_design_have_a_row_for_each_number_of_labels_and_no_run_twice(tmp_path, monkeypatch):
    pool, truth = made_up(500)
    named = NamedPool("made", pool.features, pool.predictions, truth, None, ("0", "1", "2"))
    monkeypatch.setattr(label_value, "RUNS", tmp_path)
    monkeypatch.setattr(label_value, "load", lambda name: named)
    cell = label_value.Cell("made", "hard", "accuracy", "assured")
    rows = label_value.design_rows(cell, 2)
    assert [(row["labels"], row["runs"]) for row in rows] == [(100, 2), (200, 2), (400, 2)]
    assert all(0 < row["least"] <= row["label_value"] for row in rows)
    monkeypatch.setattr(label_value, "load", lambda name: pytest.fail("nothing is left to run"))
    assert label_value.design_rows(cell, 2) == rows
