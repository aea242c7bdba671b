"""Random sampling where classes, or large losses, are rare: what few labels of them leave open (B7-B9, V4)."""

from dataclasses import replace

import numpy as np
import pytest

import altmas
from altmas.history import Batch, History
from altmas.intervals import bounded_interval, missed_tail, normal_quantile, share_interval, student_quantile
from altmas.methods import Task, Tradition
from altmas.methods.random_sample import RandomSample, _variance, interval_of_sample
from altmas.metrics import metric_set, truth_values

Z = normal_quantile(0.95)
COUNTS = np.array([[12.0, 1, 0, 0], [2, 6, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]])
ROWS = np.array([40.0, 30, 10, 4])
NAMES = altmas.Pool(None, [0, 1, 2, 3], classes=[0, 1, 2, 3])
NOTHING = np.zeros((4, 4))


def named(name: str):
    return metric_set([name], NAMES)[0]


# ---------------------------------------------------------------- against slow, obvious versions


def slow_trials(name: str, table: np.ndarray, c: int) -> tuple[float, float]:
    answered, true = table[c].sum(), table[:, c].sum()
    return table[c, c], {"macro_precision": answered, "macro_recall": true, "macro_f1": (answered + true) / 2}[name]


def slow_lacking(name: str, counts: np.ndarray, exact: np.ndarray, rows: np.ndarray) -> float:
    """(B7) by a loop over the classes that have a label."""
    total, expansion, classes = 0.0, rows.sum() / counts.sum(), 0
    for c in range(4):
        (right, n), known = slow_trials(name, counts, c), slow_trials(name, exact, c)[1]
        classes += n + known > 0
        if n > 0:
            share, inner = right / n, (right + 0.5) / (n + 1)
            part = n * expansion / (n * expansion + known)
            total += part**2 * max(inner * (1 - inner) - share * (1 - share), 0) / n
    return (1 - counts.sum() / rows.sum()) * total / classes**2


def by_gradient(name: str, value: float, sample: RandomSample) -> tuple[float, float]:
    """The interval of a share at the trials of the variance, with what it lacks (B7) and half a step (B11)."""
    metric, n = named(name), sample.counts.sum()
    variance = _variance(metric, sample, Z, stratified=False) * (n + Z**2) / n
    variance += slow_lacking(name, sample.counts, sample.exact, sample.rows)
    slope, centre = metric.gradient(sample.table), (value * n + Z**2 / 2) / (n + Z**2)
    step = np.average(slope.max(1) - slope.min(1), weights=sample.rows) / 2
    return share_interval(value, centre * (1 - centre) / variance, Z, float(step))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", ["macro_precision", "macro_recall", "macro_f1"])
def test_a_mean_over_classes_is_as_wide_as_its_rare_classes_make_it(name, exact):
    """The variance with what it lacks (B7), and further by the class of which no label tells (B8)."""
    known = np.zeros((4, 4))
    known[1, 2] = known[2, 2] = 2.0 * exact
    sample, metric = RandomSample(COUNTS, known, ROWS), named(name)
    value, low, high, note = interval_of_sample(metric, sample, 0.95)
    inner = by_gradient(name, value, sample)
    hidden = 1  # the fourth class, which the model names
    expected = inner[0] - value * hidden / (3 + hidden), inner[1] + (1 - value) * hidden / (3 + hidden)
    assert (low, high) == pytest.approx((max(expected[0], 0), min(expected[1], 1))) and note == "" and 0 < low


def test_a_class_that_the_model_never_names_can_only_lower_a_mean():
    rows = np.array([40.0, 30, 10, 0])
    both = [(name, *interval_of_sample(named(name), RandomSample(COUNTS, NOTHING, rows), 0.95)[:3]) for name in
            ("macro_precision", "macro_recall", "macro_f1")]  # fmt: skip
    for name, value, low, high in both:
        inner = by_gradient(name, value, RandomSample(COUNTS, NOTHING, rows))
        lower = 0.0 if name == "macro_precision" else value / 4
        assert (low, high) == pytest.approx((inner[0] - lower, inner[1]))


def test_no_more_classes_are_hidden_than_points():
    """All but one of the points are labelled: of two classes that nobody has seen one at most is there."""
    counts = np.diag([15.0, 14, 0, 0])
    one, many = (RandomSample(counts, NOTHING, np.array([15.0 + more, 14, 0, 0])) for more in (1, 400))
    for sample, hidden in ((one, 1), (many, 2)):
        assert interval_of_sample(named("macro_recall"), sample, 0.95)[1] <= 1 - hidden / (2 + hidden)
    assert interval_of_sample(named("macro_recall"), one, 0.95)[1] > 1 - 2 / 4


def slow_unseen(gains: list[float], chance: float) -> float:
    """(V4) for points that all stay outside with the same chance: the largest gains, the last one in part."""
    count, total = missed_tail(Z) / -np.log(chance), 0.0
    for gain in sorted(gains, reverse=True):
        if gain <= 0 or count <= 0:
            break
        total, count = total + gain * min(count, 1.0), count - 1
    return total


@pytest.mark.parametrize("name", ["kappa", "mcc", "weighted_kappa"])
def test_a_metric_of_the_whole_table_reaches_as_far_as_points_could_stay_unseen(name):
    """20 of 400 drawn, all of them right: point by point, what a label of the worst class would do."""
    metric, counts, rows = named(name), np.diag([12.0, 5, 2, 1]), np.array([240.0, 100, 40, 20])
    value, low, high, _ = interval_of_sample(metric, RandomSample(counts, NOTHING, rows), 0.95)
    slope = metric.gradient(counts * 20)
    mean = (counts * slope).sum() / 20
    gains = [mean - slope[a].min() for a in range(4) for _ in range(int(rows[a] - counts[a].sum()))]
    assert value == 1.0 and high == 1.0
    assert low == pytest.approx(max(-1.0, 1 - slow_unseen(gains, 1 - 20 / 401)))


def scored(prevalence: float, saturated: bool = False, n: int = 2000, apart: float = 1.5):
    """Scores that are calibrated, or driven to 0 and 1."""
    rng = np.random.default_rng(41)
    truth = (rng.random(n) < prevalence).astype(int)
    at = apart * truth + rng.normal(size=n)
    scores = 1 / (1 + np.exp(-(apart * at - apart**2 / 2 + np.log(prevalence / (1 - prevalence)))))
    if saturated:
        scores = np.where(scores > 0.35, 1.0, np.where(scores < 0.12, 0.0, scores))
    columns = np.column_stack([1 - scores, scores])
    return altmas.Pool(None, (scores >= 0.5).astype(int), scores=columns, classes=[0, 1]), truth


def drawn(truth: np.ndarray, n: int, seed: int) -> History:
    rows = np.random.default_rng(seed).choice(len(truth), n, replace=False)
    return History(len(truth), (Batch(rows),), {int(row): int(truth[row]) for row in rows})


@pytest.mark.parametrize("seed", range(4))
def test_a_log_loss_reaches_as_far_as_losses_could_stay_unseen_and_further_where_they_are_rare(seed):
    pool, truth = scored(0.03)
    history = drawn(truth, 100, seed)
    (found,) = Tradition().estimate(Task(pool, metric_set(["log_loss"], pool)), history)
    losses = -np.log(pool.scores)
    own = losses[history.labelled, history.codes]
    value = own.mean()
    rest = np.setdiff1d(np.arange(2000), history.labelled)
    up = slow_unseen(((losses[rest].max(1) - value) / 2000).tolist(), 1 - 100 / 2001)
    variance = (1 - 100 / 2000) * own.var(ddof=1) / 100
    centred = (own - value) / 100 * ((1 - 100 / 2000) * 100 / 99) ** 0.5
    skew, t = (centred**3).sum() / (centred**2).sum(), student_quantile(0.95, 99)
    scored_up = t**2 * skew / 2 + ((t**2 * skew / 2) ** 2 + t**2 * variance) ** 0.5  # d^2 = t^2 (V + skew d)
    assert found.value == pytest.approx(value) and skew > 0
    assert found.high == pytest.approx(value + max(up, scored_up))
    down = slow_unseen(((value - losses[rest].min(1)) / 2000).tolist(), 1 - 100 / 2001)
    assert found.low == pytest.approx(max(0.0, value - max(down, t * variance**0.5)))


def test_an_average_precision_of_few_labels_is_a_share_of_few_trials():
    """(B9): with 1 label of the class about as wide as 1 trial makes it, with many of them no wider than before."""
    pool, truth = scored(0.03)
    task = Task(pool, metric_set(["average_precision"], pool))
    for seed in range(5):
        history = drawn(truth, 60, seed)
        k = int((history.codes == 1).sum())
        if k == 0:
            continue
        (found,) = Tradition().estimate(task, history)
        inner = (found.value * k + Z**2 / 2) / (k + Z**2)
        least = Z**2 / (k + Z**2) * inner * (1 - inner) / k * (1 - 60 / 2000)
        low, high = bounded_interval(found.value, least, (0.0, 1.0), student_quantile(0.95, 59))
        assert found.low <= low + 1e-12 and found.high >= high - 1e-12 and found.high - found.low > 0.4


# ---------------------------------------------------------------- by simulation


def zipf(classes: int = 20, n: int = 3000, accuracy: float = 0.8):
    rng = np.random.default_rng(31)
    share = 1 / np.arange(1, classes + 1)
    truth = rng.choice(classes, n, p=share / share.sum())
    wrong = rng.choice(classes, n, p=share / share.sum())
    return altmas.Pool(None, np.where(rng.random(n) < 1 - accuracy, wrong, truth), classes=list(range(classes))), truth


def turned():
    """Half of the points of the class, told apart nearly for certain, but for the 60 highest scores."""
    pool, truth = scored(0.5, apart=4.0)
    truth = truth.copy()
    truth[np.argsort(-pool.scores[:, 1])[:60]] = 0
    return pool, truth


MEANS, SCORES = ("macro_f1", "balanced_accuracy", "macro_precision"), ("log_loss", "average_precision", "roc_auc")
CELLS = {
    "zipf": (zipf, MEANS, (150, 300)),
    "calibrated": (lambda: scored(0.03), SCORES[:2], (60, 150, 400)),
    "saturated": (lambda: scored(0.05, saturated=True), SCORES, (60, 150, 400)),
    "turned": (turned, SCORES[1:], (60, 150)),
}


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("runs", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_intervals_hold_where_something_is_rare(cell, runs):
    """0.93 less 3 standard errors; they held in 0.74 to 0.93 of 300 samples."""
    world, names, sizes = CELLS[cell]
    pool, truth = world()
    task = Task(pool, metric_set(list(names), pool))
    exact, covered = truth_values(pool, truth, task.metrics), {}
    for seed in range(runs):
        for n in sizes:
            for one in Tradition().estimate(replace(task, seed=seed), drawn(truth, n, seed)):
                if not np.isnan(one.low):
                    covered.setdefault((one.metric, n), []).append(one.low <= exact[one.metric] <= one.high)
    least = {key: 0.93 - 3 * (0.93 * 0.07 / len(found)) ** 0.5 for key, found in covered.items()}
    assert all(np.mean(found) >= least[key] for key, found in covered.items()), {
        key: np.mean(found) for key, found in covered.items()
    }
