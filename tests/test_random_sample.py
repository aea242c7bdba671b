"""Tradition (B.1): values, intervals, and what they claim."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import hypergeom

import altmas
from altmas.history import Batch, History
from altmas.intervals import normal_quantile, share_interval, student_quantile, wilson
from altmas.methods import Task, Tradition
from altmas.methods.random_sample import RandomSample, interval_of_sample
from altmas.metrics import metric_set, truth_values
from altmas.simulate import label_until

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


# ---------------------------------------------------------------- against slow, obvious versions


COUNTS = np.array([[9.0, 1, 0], [2, 6, 1], [0, 1, 4]])
EXACT = np.array([[3.0, 2, 0], [0, 1, 0], [1, 0, 0]])
ROWS = np.array([40.0, 30, 10])
Z = normal_quantile(0.95)
NAMES = altmas.Pool(None, [0, 1, 2], classes=[0, 1, 2])


def sample(exact: bool = True, calibrate_rows: bool = False, counts=COUNTS) -> RandomSample:
    return RandomSample(counts, EXACT if exact else np.zeros((3, 3)), ROWS, calibrate_rows)


def found(name: str, of: RandomSample) -> tuple[float, float, float]:
    value, low, high, note = interval_of_sample(metric_set([name], NAMES)[0], of, 0.95)
    assert note == ""
    return value, low, high


def gradient(name: str, table: np.ndarray) -> np.ndarray:
    """By small steps."""
    metric, slope, step = metric_set([name], NAMES)[0], np.zeros((3, 3)), 1e-5
    for cell in np.ndindex(3, 3):
        more, less = table.copy(), table.copy()
        more[cell] += step
        less[cell] -= step
        slope[cell] = (metric.of_table(more) - metric.of_table(less)) / (2 * step)
    return slope


def pseudo_labels() -> np.ndarray:
    """z^2 labels: predicted as in the pool, half right, half wrong (C4)."""
    share = np.where(np.eye(3) == 1, 0.5, 0.25)
    return Z**2 * ROWS[:, None] / 80 * share


def slow_variance(name: str, of: RandomSample) -> float:
    """N^2 (1 - n/N) s^2 / n of the values that the gradient gives the (smoothed) labels (C4)."""
    slope, labels = gradient(name, of.table), of.counts + pseudo_labels()
    n = labels.sum()
    mean = sum(labels[cell] * slope[cell] for cell in np.ndindex(3, 3)) / n
    squares = sum(labels[cell] * (slope[cell] - mean) ** 2 for cell in np.ndindex(3, 3)) / n
    return 80**2 * (1 - 24 / 80) * squares / n


def slow_stratified_variance(name: str, of: RandomSample) -> float:
    """The same row by row, each with its own finite-pool factor (C5)."""
    slope, labels, total = gradient(name, of.table), of.counts + pseudo_labels(), 0.0
    for a in range(3):
        n = labels[a].sum()
        mean = sum(labels[a, c] * slope[a, c] for c in range(3)) / n
        squares = sum(labels[a, c] * (slope[a, c] - mean) ** 2 for c in range(3)) / n
        total += ROWS[a] ** 2 * (1 - of.counts[a].sum() / ROWS[a]) * squares / n
    return total


def _with_half_a_point(interval, size):
    return interval[0] - 0.5 / size, interval[1] + 0.5 / size


@pytest.mark.parametrize("exact", [False, True])
def test_proportions_have_the_interval_of_a_share_with_the_finite_pool_factor(exact):
    """Trials among 24 drawn of 80 (B2), half a point at each end; what was volunteered is added exactly."""
    top, bottom = (EXACT.trace(), EXACT.sum()) if exact else (0, 0)
    low, high = _with_half_a_point(share_interval(19 / 24, 24 / (1 - 24 / 80), Z), 80)
    expected = [(top + 80 * share) / (bottom + 80) for share in (19 / 24, low, high)]
    assert found("accuracy", sample(exact)) == pytest.approx(expected)
    # precision: how many are called 1 is known, 9 of 30 were drawn
    top, bottom = (EXACT[1, 1], EXACT[1].sum()) if exact else (0, 0)
    low, high = _with_half_a_point(share_interval(6 / 9, 9 / (1 - 9 / 30), Z), 30)
    expected = [(top + 30 * share) / (bottom + 30) for share in (6 / 9, low, high)]
    assert found("precision[1]", sample(exact)) == pytest.approx(expected)
    # recall: how many are a 1 is not known, but estimated from 8 of them among 24
    top, bottom = (EXACT[1, 1], EXACT[:, 1].sum()) if exact else (0, 0)
    size = 8 * 80 / 24
    low, high = _with_half_a_point(share_interval(6 / 8, 8 / (1 - 24 / 80), Z), size)
    expected = [(top + size * share) / (bottom + size) for share in (6 / 8, low, high)]
    assert found("recall[1]", sample(exact)) == pytest.approx(expected)


def slow_lacking(name: str, of: RandomSample) -> float:
    """What a class adds to the variance of a mean recall where its labels are nearly all right (B7)."""
    if name != "macro_recall":
        return 0.0
    lacking = 0.0
    for c in range(3):
        right, n, exact = of.counts[c, c], of.counts[:, c].sum(), of.exact[:, c].sum()
        share, inner = right / n, (right + 0.5) / (n + 1)
        part = n * 80 / 24 / (n * 80 / 24 + exact)
        lacking += part**2 * max(inner * (1 - inner) - share * (1 - share), 0.0) / n / 9
    return (1 - 24 / 80) * lacking


def slow_reach(interval, k, of, gain=1.0):
    """(B10): an F1 reaches as far as 2 q / (1 + q) at the ends of the share of hits among hits and errors."""
    hit, among = np.zeros(of.counts.shape, bool), np.zeros(of.counts.shape, bool)
    hit[k[0], k[1]] = among[k[0], :] = among[:, k[1]] = True
    drawn, left = of.table - of.exact, 1 - of.counts.sum() / of.rows.sum()
    size, trials = drawn[among].sum(), of.counts[among].sum()
    ends = share_interval(drawn[hit].sum() / size, trials / (left * gain), Z, 0.5 / size)
    q = [(of.exact[hit].sum() + size * end) / (of.exact[among].sum() + size) for end in ends]
    return min(interval[0], 2 * q[0] / (1 + q[0])), max(interval[1], 2 * q[1] / (1 + q[1]))


def half_step(name: str, of: RandomSample) -> float:
    """Half of what one label can change, a mean over the points that were not volunteered (B11)."""
    slope = gradient(name, of.table)
    return sum(ROWS[a] / 80 * (slope[a].max() - slope[a].min()) for a in range(3)) / 2


@pytest.mark.parametrize("name", ["f1[1]", "macro_recall"])
def test_other_metrics_have_the_interval_of_a_share_at_the_trials_of_their_variance(name):
    """The variance with pseudo-labels is one of 24 + z^2 labels; 24 were drawn (B11)."""
    of = sample()
    value, low, high = found(name, of)
    centre, labels = (value * 24 + Z**2 / 2) / (24 + Z**2), 1 + Z**2 / 24
    trials = centre * (1 - centre) / (slow_variance(name, of) * labels + slow_lacking(name, of))
    expected = share_interval(value, trials, Z, half_step(name, of))
    if name == "f1[1]":
        expected = slow_reach(expected, (1, 1), of)
    assert (low, high) == pytest.approx(expected, rel=1e-5)
    rows = sample(calibrate_rows=True)
    value, low, high = found(name, rows)
    centre = (value * 24 + Z**2 / 2) / (24 + Z**2)
    variance = slow_stratified_variance(name, rows) * labels + slow_lacking(name, rows)
    expected = share_interval(value, centre * (1 - centre) / variance, Z, half_step(name, rows))
    if name == "f1[1]":
        expected = slow_reach(expected, (1, 1), rows, variance / slow_variance(name, rows) / labels)
    assert (low, high) == pytest.approx(expected, rel=1e-5)


def test_the_mean_of_grades_0_and_1_has_the_interval_of_the_share_of_1():
    """7 of 20 drawn of 200: both are a share in 20 / (1 - 20/200) trials, with half a point at each end."""
    pool = altmas.Pool(None, [0, 1], classes=[0, 1])
    of = RandomSample(np.array([[13.0, 7]]), np.zeros((1, 2)), np.array([200.0]))
    mean, share = (interval_of_sample(metric, of, 0.95) for metric in metric_set(["mean", "share[1]"], pool))
    assert mean[:3] == pytest.approx(share[:3])
    assert mean[1:3] == pytest.approx(_with_half_a_point(share_interval(7 / 20, 20 / 0.9, Z), 200))
    wider = altmas.Pool(None, [1, 5], classes=[1, 5])
    (grades,) = metric_set(["mean"], wider)
    assert interval_of_sample(grades, of, 0.95)[0] == pytest.approx(1 + 4 * mean[0])
    low, high = interval_of_sample(grades, of, 0.95)[1:3]
    assert low < 1 + 4 * mean[1] and high > 1 + 4 * mean[2]  # Student's quantile for what is no share


def test_what_lies_between_minus_one_and_one_has_students_interval():
    of = sample()
    value, low, high = found("mcc", of)
    half = student_quantile(0.95, 23) * slow_variance("mcc", of) ** 0.5
    assert (low, high) == pytest.approx((value - half, min(1.0, value + half)), rel=1e-5) and high < 1
    wild = np.array([[1.0, 1, 0], [0, 1, 0], [0, 0, 0]])
    value, low, high = found("mcc", sample(exact=False, counts=wild))
    assert -1 <= low < value < high == 1


def test_known_row_sums_make_every_trial_worth_more():
    """Calibrated: shares row by row, and trials multiplied by how much the linearised variance falls (C5)."""
    of = sample(exact=False, calibrate_rows=True)
    shares = COUNTS / COUNTS.sum(1, keepdims=True) * ROWS[:, None]
    np.testing.assert_allclose(of.table, shares)
    value, low, high = found("accuracy", of)
    assert value == pytest.approx(shares.trace() / 80)
    plain, calibrated = slow_variance("accuracy", of), slow_stratified_variance("accuracy", of)
    unseen = (1 - 24 / 80) * calibrated / plain
    assert (low, high) == pytest.approx(_with_half_a_point(share_interval(value, 24 / unseen, Z), 80), rel=1e-5)


def test_rows_are_calibrated_only_where_every_predicted_class_has_a_label():
    without = COUNTS * np.array([[1.0], [1.0], [0.0]])
    of = sample(exact=False, calibrate_rows=True, counts=without)
    assert not of.stratified
    np.testing.assert_allclose(of.table, without * 80 / 19)
    nobody = RandomSample(without, np.zeros((3, 3)), np.array([40.0, 30, 0]), True)
    assert nobody.stratified  # nothing is predicted as the third class
    value, low, high, _ = interval_of_sample(metric_set(["f1[1]"], NAMES)[0], nobody, 0.95)
    assert 0 < low < value < high < 1


def test_means_over_classes_count_volunteered_labels_and_named_classes():
    assert sample().named == 3 and sample().drawn == 24 and sample().volunteered == 7
    few = RandomSample(np.diag([4.0, 4, 0]), EXACT, np.array([40.0, 30, 0]))
    assert few.named == 3  # the third class was volunteered once
    value, low, high, note = interval_of_sample(metric_set(["macro_f1"], NAMES)[0], few, 0.95)
    assert note == "no interval: 15 labels for a mean over 3 classes (18 would do)" and np.isnan(low)
    nothing = RandomSample(np.zeros((3, 3)), np.zeros((3, 3)), ROWS)
    assert np.isnan(interval_of_sample(metric_set(["accuracy"], NAMES)[0], nothing, 0.95)[0])


def test_a_class_that_was_only_volunteered_leaves_everything_open():
    """No drawn 2, one volunteered: every point of the rest that has no label could be one, found or not."""
    counts = np.array([[5.0, 1, 0], [1, 5, 0], [1, 1, 0]])
    exact = np.zeros((3, 3))
    exact[2, 2] = 1
    value, low, high, _ = interval_of_sample(
        metric_set(["recall[2]"], NAMES)[0], RandomSample(counts, exact, ROWS), 0.95
    )
    left = 80 - 14
    assert (value, low, high) == pytest.approx((1.0, 1 / (1 + left), 1.0))


@pytest.mark.parametrize("name", ["f1[1,0.3]", "share[>=1]"])
def test_pseudo_labels_follow_what_the_metric_looks_at(name):
    """Above a threshold half of them are of its class; without any model all classes count alike (C4)."""
    pool = altmas.Pool(None, [0, 1, 2], scores=np.full((3, 3), 1 / 3), classes=[0, 1, 2])
    (metric,) = metric_set([name], pool)
    rows = 2 if metric.threshold is not None else 1
    counts = np.array([[9.0, 3, 1], [2, 6, 1]])[:rows]
    sizes = np.array([50.0, 30])[:rows]
    of = RandomSample(counts, np.zeros_like(counts), sizes)
    value, low, high, note = interval_of_sample(metric, of, 0.95)
    half = np.array([0.25, 0.5, 0.25]) if rows == 2 else np.full(3, 1 / 3)
    labels = counts + Z**2 * (sizes / sizes.sum())[:, None] * half
    slope, n = metric.gradient(of.table), labels.sum()
    mean = (labels * slope).sum() / n
    drawn, total = counts.sum(), sizes.sum()
    variance = total**2 * (1 - drawn / total) * (labels * (slope - mean) ** 2).sum() / n / n
    centre = (value * drawn + Z**2 / 2) / (drawn + Z**2)
    if metric.about.proportion is None:
        step = ((slope.max(1) - slope.min(1)) * sizes).sum() / total / 2  # (B11)
        by_gradient = share_interval(value, centre * (1 - centre) / (variance * n / drawn), Z, step)
        assert (low, high) == pytest.approx(slow_reach(by_gradient, (1, 1), of))
    else:
        assert low < value < high
    assert note == ""


def test_one_point_of_a_class_is_a_class_to_calibrate_by():
    """A predicted class with a single point and no label: rows are not calibrated; without the class they are."""
    counts = np.array([[5.0, 1, 0], [1, 5, 0], [0, 0, 0]])
    assert not RandomSample(counts, np.zeros((3, 3)), np.array([40.0, 30, 1]), True).stratified
    assert RandomSample(counts, np.zeros((3, 3)), np.array([40.0, 30, 0]), True).stratified


def test_a_class_of_which_every_point_was_volunteered_is_exact():
    exact = np.zeros((3, 3))
    exact[2] = 1, 0, 3
    sample_ = RandomSample(np.diag([5.0, 5, 0]), exact, np.array([40.0, 30, 0]))
    value, low, high, _ = interval_of_sample(metric_set(["precision[2]"], NAMES)[0], sample_, 0.95)
    assert value == low == high == 0.75


# ---------------------------------------------------------------- sequences of draws


def test_sequences_end_at_the_first_gap_and_leave_volunteered_labels_out():
    pool, truth = world(20)
    task = Task(pool, metric_set(["accuracy"], pool))
    one, two, three = (np.array(rows) for rows in ([3, 1], [5, 7, 9], [11]))
    batches = (
        Batch(one, labels_before=0),
        Batch(two, labels_before=3),
        Batch(three, labels_before=4),
    )
    labels = {row: 0 for row in (3, 1, 15, 5, 9, 16, 11)}
    first, second = Tradition().sequences(task, History(20, batches, labels))
    assert first.rows.tolist() == [3, 1] and second.rows.tolist() == [5]  # 7 has no answer
    assert first.open.all() and (first.sizes == 1).all() and first.belief is None
    assert np.flatnonzero(~second.open).tolist() == [1, 3, 15]
    skipped = History(20, batches, labels, {7: "dark"})
    sequences = Tradition().sequences(task, skipped)
    assert [part.rows.tolist() for part in sequences] == [[3, 1], [5, 7, 9], [11]]
    assert np.flatnonzero(~sequences[2].open).tolist() == [1, 3, 5, 7, 9, 15]


def test_drawn_and_volunteered_labels_are_counted_apart_inside_a_slice():
    pool, truth = world(60)
    task = Task(pool, metric_set(["accuracy", "accuracy@half=1"], pool))
    extra = [3, 8, 21, 30, 47]
    told = {row: int(truth[row]) for row in extra}
    batch = Tradition().propose(task, History(60, (), told), 20)
    history = History(60, (batch,), told | {int(row): int(truth[row]) for row in batch.indices})
    whole, half = Tradition().estimate(task, history)
    inside = [row for row in history.labels if row % 2 == 1]
    assert whole.labels == whole.effective_labels == 25 and half.labels == len(inside)
    right = [pool.predictions[row] == truth[row] for row in batch.indices]
    told = [pool.predictions[row] == truth[row] for row in extra]
    assert whole.value == pytest.approx((np.mean(right) * 55 + sum(told)) / 60)
    assert whole.interval == "fixed-n" and whole.low < whole.value < whole.high


def test_the_gap_between_three_groups_is_that_of_three_pairs_at_a_third_of_the_error():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 600)
    site = rng.choice(["a", "b", "c"], 600)
    predictions = np.where(rng.random(600) < np.where(site == "a", 0.6, 0.9), truth, 1 - truth)
    pool = altmas.Pool(None, predictions, classes=[0, 1], slices={"site": site})
    pairs = [f"accuracy@site={one} - accuracy@site={other}" for one, other in ("ab", "ac", "bc")]
    groups = [f"accuracy@site={one}" for one in "abc"]
    task = Task(pool, metric_set(["gap[accuracy,site]", *pairs, *groups], pool))
    history = sampled(task, truth, 240, Tradition())
    found = Tradition().estimate(task, history)
    together = Tradition().estimate(replace(task, confidence=1 - 0.05 / 3), history)[1:4]
    gap = found[0]
    values = [one.value for one in found[4:]]
    assert gap.value == pytest.approx(max(values) - min(values)) and gap.confidence == 0.95
    assert gap.low == pytest.approx(max(max(one.low, -one.high, 0) for one in together))
    assert gap.high == pytest.approx(max(max(abs(one.low), abs(one.high)) for one in together))
    assert 0 < gap.low < gap.value < gap.high


# ---------------------------------------------------------------- by simulation


def check_coverage(calibrate_rows: bool, count: int) -> None:
    """Samples of 120 from 600: coverage of 95 % within 4 standard errors, mean error of accuracy within 3."""
    pool, truth = world()
    task = Task(pool, metric_set(METRICS, pool))
    target = truth_values(pool, truth, task.metrics)
    method = Tradition(calibrate_rows)
    runs = [method.estimate(task, sampled(task, truth, 120, method, seed)) for seed in range(count)]
    error = (0.95 * 0.05 / count) ** 0.5
    for metric in target:
        covered = np.mean([run[metric].low <= target[metric] <= run[metric].high for run in runs])
        assert 0.95 - 4 * error <= covered <= 0.95 + 4 * error, metric
    errors = np.array([run["accuracy"].value for run in runs]) - target["accuracy"]
    assert abs(errors.mean()) < 3 * errors.std() / np.sqrt(len(errors))


@pytest.mark.parametrize("calibrate_rows", [False, True])
def test_intervals_cover_and_accuracy_is_unbiased_in_a_few_samples(calibrate_rows):
    check_coverage(calibrate_rows, 60)


@pytest.mark.slow
@pytest.mark.parametrize("calibrate_rows", [False, True])
def test_intervals_cover_and_accuracy_is_unbiased(calibrate_rows):
    check_coverage(calibrate_rows, 500)


@pytest.mark.parametrize("size, errors", [(60, 12), (60, 6), (30, 6), (100, 15), (300, 6), (300, 30)])
@pytest.mark.parametrize("n", [20, 40, -5])
def test_intervals_of_small_pools_hold_by_enumeration(size, errors, n):
    """Every possible number of errors in the sample, with its exact probability: no simulation."""
    n = size + n if n < 0 else n
    if n >= size:
        pytest.skip("every point would be labelled")
    pool = altmas.Pool(None, np.zeros(size, int), classes=[0, 1])
    task = Task(pool, metric_set(["accuracy"], pool))
    batch, covered = Batch(np.arange(n), np.full(n, 1 / size)), 0.0
    for seen in range(max(0, errors - (size - n)), min(errors, n) + 1):
        history = History(size, (batch,), {row: int(row < seen) for row in range(n)})
        accuracy = Tradition().estimate(task, history)["accuracy"]
        inside = accuracy.low - 1e-9 <= 1 - errors / size <= accuracy.high + 1e-9
        covered += inside * hypergeom(size, errors, n).pmf(seen)
    assert covered >= 0.925  # 0.903 to 0.917 in places without the half point


@pytest.mark.parametrize("size", [20, 45, 60, 100, 300])
@pytest.mark.parametrize("part", [0.85, 0.88, 0.9, 0.92, 0.94, 0.97])
def test_an_only_error_that_may_have_stayed_unseen_is_part_of_the_interval(size, part):
    """Without it 0.885 to 0.93 of such samples were covered: an interval around no error ended before a single one."""
    n, pool = round(part * size), altmas.Pool(None, np.zeros(size, int), classes=[0, 1])
    (metric,) = metric_set(["accuracy"], pool)
    for errors in (1, 2):
        covered = 0.0
        for seen in range(errors + 1):
            sample = RandomSample(np.array([[n - seen, seen], [0, 0]]), np.zeros((2, 2)), np.array([size, 0]))
            _, low, high, _ = interval_of_sample(metric, sample, 0.95)
            covered += (low - 1e-9 <= 1 - errors / size <= high + 1e-9) * hypergeom(size, errors, n).pmf(seen)
        assert covered >= 0.93


def test_half_a_point_is_added_to_both_ends():
    pool = altmas.Pool(None, np.zeros(60, int), classes=[0, 1])
    task = Task(pool, metric_set(["accuracy"], pool))
    history = History(60, (Batch(np.arange(40), np.full(40, 1 / 60)),), {row: int(row < 8) for row in range(40)})
    accuracy = Tradition().estimate(task, history)["accuracy"]
    low, high = share_interval(0.8, 40 / (1 - 40 / 60), normal_quantile(0.95))
    assert (accuracy.low, accuracy.high) == pytest.approx((low - 0.5 / 60, high + 0.5 / 60))


def test_a_random_sample_rehearses_with_the_shares_of_right_answers_by_class():
    """By hand: 4 labels of "a" with 3 right, 2 of "b" with both right, none of "c"; shares drawn to 6/8 by 4 labels."""
    pool = altmas.Pool(None, ["a"] * 10 + ["b"] * 6 + ["c"] * 4)
    labels = {0: 0, 1: 0, 2: 0, 3: 1, 10: 1, 11: 1}
    history = History(20, (Batch(np.array(list(labels)), np.full(6, 0.05)),), labels)
    task = Task(pool, metric_set(["accuracy"], pool), seed=0)
    rehearsal = Tradition().rehearse(task, history)
    assert rehearsal.right == 6 / 8 and rehearsal.worth == pytest.approx(6 / (1 - 6 / 20))
    np.testing.assert_allclose(rehearsal.belief.agree[[0, 10, 16]], [(3 + 3) / 8, (2 + 3) / 6, 3 / 4])
    np.testing.assert_allclose(rehearsal.belief.rows(np.array([0]))[0], [6 / 8, 2 / 8 * 3 / 5, 2 / 8 * 2 / 5])
    assert Tradition().rehearse(task, History(20)) is None


def test_inclusion_in_a_pool_that_grew_is_the_labelled_share_of_each_wave():
    """Two of 4 and one of 5 that nobody volunteered; None where single draws tell it."""
    pool = altmas.Pool(None, ["a", "b"] * 5)
    first, second = Batch(np.array([0, 1]), np.array([0.25, 1 / 3])), Batch(np.array([5]), np.array([0.2]))
    history = History(10, (first, second), {0: 0, 1: 1, 5: 1, 9: 1}, grown=((4, 1),))
    np.testing.assert_allclose(Tradition().inclusion(pool, history), [2 / 4] * 4 + [1 / 5] * 6)
    assert Tradition().inclusion(pool, replace(history, grown=())) is None


def test_calibrated_rows_know_this_pool_and_no_other():
    plain, calibrated = Tradition().traits, Tradition(calibrate_rows=True).traits
    assert plain.ahead and plain.weights and not calibrated.ahead and not calibrated.weights
    assert plain.interval == "fixed-n" and plain.any_metric and plain.grows


@pytest.mark.parametrize("name", ["f1[1]", "fbeta[1,2]", "jaccard[1]"])
def test_one_miss_of_a_rare_class_is_no_proof_of_a_low_f1(name):
    """(B10): F1 = 2 q / (1 + q) with q the share of hits among hits and errors, so one error of one says little."""
    truth, answers = np.zeros(2000, np.int64), np.zeros(2000, np.int64)
    truth[:40], answers[16:44] = 1, 1  # 24 hits, 16 misses, 4 false alarms
    pool = altmas.Pool(predictions=answers, classes=[0, 1])
    task = Task(pool, metric_set([name], pool))
    exact = truth_values(pool, truth, task.metrics)[name]
    held = []
    for seed in range(700):
        look = replace(task, seed=seed)
        history = label_until(Tradition(), look, History(2000), 25, 25, truth.__getitem__)
        one = Tradition().estimate(look, history)[0]
        if not np.isnan(one.low):
            held.append(one.low <= exact <= one.high)
    assert len(held) > 250 and np.mean(held) > 0.93
    alone = History(2000, (Batch(np.array([3, 1990]), np.full(2, 1 / 2000)),), {3: 1, 1990: 0})
    one = Tradition().estimate(task, alone)[0]
    q = share_interval(0.0, 1 / (1 - 2 / 2000), normal_quantile(0.95), 0.5 / 1000)[1]
    misses = 1.5 / 2  # of the errors so far, with half of one more of either kind
    high = {
        "f1[1]": 2 * q / (1 + q),
        "fbeta[1,2]": 5 * q / (5 * q + (1 - q) * (4 * misses + 1 - misses)),
        "jaccard[1]": q,
    }
    assert one.value == 0 and one.high == pytest.approx(high[name], abs=1e-9)


@pytest.mark.parametrize("runs", [300, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name, size, n", [("mean", 200, 20), ("macro_f1", 30, 15), ("balanced_accuracy", 30, 24)])
def test_few_labels_of_metrics_that_are_no_share_cover(name, size, n, runs):
    """Half of the answers are wrong, so that intervals lie well inside their bounds; before (B11) 0.88 to 0.91."""
    hits, method = 0, Tradition()
    for seed in range(runs):
        rng = np.random.default_rng([seed, 11])
        truth = rng.permutation((np.arange(size) < 0.365 * size).astype(np.int64))
        answers = np.where(rng.permutation(size) < size / 2, truth, 1 - truth)
        pool = altmas.Pool(None, answers, classes=[0, 1])
        metrics = metric_set([name], pool)
        (one,) = method.estimate(Task(pool, metrics), sampled(Task(pool, metrics), truth, n, method, seed))
        hits += one.low - 1e-9 <= truth_values(pool, truth, metrics)[name] <= one.high + 1e-9
    assert hits / runs >= 0.93 - (2.5 if runs < 1000 else 2) * np.sqrt(0.93 * 0.07 / runs)
