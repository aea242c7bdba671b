"""Tradition (B.1): values, intervals, and what they claim."""

import numpy as np
import pytest

import altmas
from altmas.history import History
from altmas.intervals import normal_quantile, wilson
from altmas.methods import Task, Tradition
from altmas.metrics import metric_set, truth_values

METRICS = [
    "paper",
    "error",
    "f1[1]",
    "macro_f1",
    "kappa",
    "mcc",
    "specificity[1]",
    "npv[1]",
    "confusion[0,1]",
    "jaccard[2]",
]


def world(n: int = 600, accuracy: float = 0.85, seed: int = 0) -> tuple[altmas.Pool, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    wrong = (truth + rng.integers(1, 3, n)) % 3
    predictions = np.where(rng.random(n) < accuracy, truth, wrong)
    return altmas.Pool(None, predictions, classes=[0, 1, 2], slices={"half": np.arange(n) % 2}), truth


def sampled(task: Task, truth: np.ndarray, n: int, method: Tradition, seed: int = 0) -> History:
    task = Task(task.pool, task.metrics, task.confidence, seed)
    batch = method.propose(task, History(len(task.pool)), n)
    return History(len(task.pool), (batch,), {int(i): int(truth[i]) for i in batch.indices})


def test_wilson_has_the_printed_digits():
    low, high = wilson(0.93, 100, normal_quantile(0.95))
    assert (round(low, 4), round(high, 4)) == (0.8625, 0.9657)


def test_wilson_at_its_limits():
    assert wilson(0.7, np.inf, 1.96) == (0.7, 0.7)
    assert wilson(0.7, 0, 1.96) == (0.0, 1.0)


@pytest.mark.parametrize("calibrate_rows", [False, True])
def test_everything_labelled_gives_the_truth_with_width_zero(calibrate_rows):
    pool, truth = world(60)
    task = Task(pool, metric_set([*METRICS, "recall[1]@half=1"], pool))
    method = Tradition(calibrate_rows)
    estimates = method.estimate(task, sampled(task, truth, 60, method))
    for one in estimates:
        assert one.value == pytest.approx(truth_values(pool, truth, task.metrics)[one.metric], abs=1e-12)
        assert one.low == one.high == one.value


@pytest.mark.parametrize("calibrate_rows", [False, True])
def test_intervals_cover_and_accuracy_is_unbiased(calibrate_rows):
    """500 samples of 120 from 600: coverage of 95 % within [0.92, 0.99], mean error of accuracy within 3 s.e."""
    pool, truth = world()
    task = Task(pool, metric_set(METRICS, pool))
    target = truth_values(pool, truth, task.metrics)
    method = Tradition(calibrate_rows)
    runs = [method.estimate(task, sampled(task, truth, 120, method, seed)) for seed in range(500)]
    for metric in target:
        covered = np.mean([run[metric].low <= target[metric] <= run[metric].high for run in runs])
        assert 0.92 <= covered <= 0.99, metric
    errors = np.array([run["accuracy"].value for run in runs]) - target["accuracy"]
    assert abs(errors.mean()) < 3 * errors.std() / np.sqrt(len(errors))


def test_one_perfect_sample_is_not_certainty():
    pool, _ = world(accuracy=1.0)
    task = Task(pool, metric_set(["accuracy", "f1[1]", "macro_f1", "kappa"], pool))
    for one in Tradition().estimate(task, sampled(task, pool.predictions, 30, Tradition())):
        assert one.value == 1.0 and one.low < 0.97 and one.high == 1.0


def test_undefined_is_nan_with_a_reason():
    pool, truth = world()
    task = Task(pool, metric_set(["recall[2]", "accuracy"], pool))
    nothing = Tradition().estimate(task, History(len(pool)))
    assert np.isnan(nothing["accuracy"].value) and "no label yet" in nothing["accuracy"].note
    row = int(np.flatnonzero(truth == 0)[0])
    one = Tradition().estimate(task, History(len(pool), (), {row: 0}))
    assert np.isnan(one["recall[2]"].value) and "recall[2]" in one["recall[2]"].note


def test_volunteered_labels_are_exact_where_they_are_and_never_weighted_up():
    """All points predicted 0 are volunteered: whatever is drawn, precision of 0 is known exactly."""
    pool, truth = world()
    task = Task(pool, metric_set(["precision[0]", "accuracy"], pool))
    told = {int(i): int(truth[i]) for i in np.flatnonzero(pool.predictions == 0)}
    batch = Tradition().propose(task, History(len(pool), (), told), 50)
    history = History(len(pool), (batch,), told | {int(i): int(truth[i]) for i in batch.indices})
    estimate = Tradition().estimate(task, history)
    exact = truth_values(pool, truth, task.metrics)
    assert estimate["precision[0]"].value == pytest.approx(exact["precision[0]"], abs=1e-12)
    assert estimate["precision[0]"].low == estimate["precision[0]"].high
    assert estimate["accuracy"].low <= exact["accuracy"] <= estimate["accuracy"].high


def test_a_volunteered_label_alone_shows_nothing_about_recall():
    pool, truth = world()
    task = Task(pool, metric_set(["recall[2]", "specificity[2]"], pool))
    row = int(np.flatnonzero((truth == 2) & (pool.predictions == 0))[0])
    volunteered = Tradition().estimate(task, History(len(pool), (), {row: 2}))["recall[2]"]
    assert volunteered.value == 0.0 and volunteered.low == 0.0 and volunteered.high > 0.99
    batch = Tradition().propose(task, History(len(pool), (), {row: 2}), 40)
    told = {row: 2} | {int(i): 0 for i in batch.indices}  # nothing drawn is a 2
    drawn = Tradition().estimate(task, History(len(pool), (batch,), told))["recall[2]"]
    assert drawn.low == 0.0 and drawn.high > 0.99


def test_draws_carry_their_probability():
    pool, _ = world(60)
    task = Task(pool, metric_set(["accuracy"], pool))
    batch = Tradition().propose(task, History(60), 3)
    assert batch.probabilities is not None
    np.testing.assert_allclose(batch.probabilities, [1 / 60, 1 / 59, 1 / 58])


def test_a_mean_over_classes_has_an_interval_from_six_labels_per_class_on():
    pool, truth = world(60)
    task = Task(pool, metric_set(["macro_f1", "balanced_accuracy", "accuracy"], pool))
    few, enough = (Tradition().estimate(task, sampled(task, truth, n, Tradition())) for n in (17, 18))
    for one in few[:2]:
        assert one.interval == "none" and np.isnan([one.low, one.high]).all() and 0 < one.value < 1
        assert one.note == "no interval: 17 labels for a mean over 3 classes (18 would do)"
    assert few[2].low < few[2].high
    assert all(one.interval == "fixed-n" and one.low < one.high for one in enough)
