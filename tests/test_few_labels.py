"""Intervals of a few labels: what a person sees who looks after every label from the first one on."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import altmas
from altmas.estimates import FLOOR, LEAST_DRAWN
from altmas.history import History
from altmas.intervals import FEW_TRIALS, Tails, share_interval, student_quantile
from altmas.methods import METHODS, Task
from altmas.methods.assured.ahead import interval_of
from altmas.methods.assured.linearised import Estimators
from altmas.methods.assured.stages import stages_of
from altmas.metrics import metric_set, truth_values
from altmas.simulate import label_until

METRICS = ("accuracy", "share[1]", "precision[1]", "recall[1]", "f1[1]", "kappa")
Z = 1.959963984540054


def world(seed: int, share: float, accuracy: float, n: int = 800):
    rng = np.random.default_rng([seed, 7])
    truth = (rng.random(n) < share).astype(int)
    predictions = np.where(rng.random(n) < accuracy, truth, 1 - truth)
    return altmas.Pool(None, predictions, classes=[0, 1]), truth


def after(method: str, seed: int, labels: int, share: float = 0.5, accuracy: float = 0.5):
    pool, truth = world(seed, share, accuracy)
    task = Task(pool, metric_set(METRICS, pool), seed=seed)
    history = label_until(METHODS[method](), task, History(len(pool)), labels, 1, truth.__getitem__)
    return task, truth, history


def test_a_few_labels_reach_as_far_as_students_quantile():
    for labels in (5, 12, LEAST_DRAWN - 1, LEAST_DRAWN):
        task, _, history = after("assured", 1, labels)
        samples = METHODS["assured"]()._samples(task, history, stages_of(history))
        linear = Estimators(samples, task, history).linearised(
            task.metrics[0], Tails(0.0, 0.0)
        )  # nothing unseen is priced
        wanted = student_quantile(0.95, labels - 1) if labels < LEAST_DRAWN else Z
        evidence = linear.evidence(linear.value)
        scored = math.sqrt(wanted**2 * evidence.variance / (1 + wanted**2 * evidence.curve))
        low, high = interval_of(linear, linear.value, Z)
        skewed = max(evidence.skew_low, evidence.skew_high) * wanted**2
        assert high - linear.value >= min(scored, 1 - linear.value) - 1e-9
        assert high - low <= 2 * (scored + skewed + evidence.half_point) + 1e-9


@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_below_ten_labels_what_a_few_can_move_from_end_to_end_has_no_interval(method):
    task, _, history = after(method, 2, FLOOR - 1, 0.05, 0.95)
    estimates = {estimate.metric: estimate for estimate in METHODS[method]().estimate(task, history)}
    assert not math.isnan(estimates["accuracy"].low)
    if method == "assured":
        told = {name: estimate.note for name, estimate in estimates.items() if not math.isnan(estimate.value)}
        assert {"f1[1]", "kappa"} <= told.keys()
        for name, least in (("recall[1]", FLOOR), ("f1[1]", FLOOR), ("kappa", LEAST_DRAWN)):
            assert math.isnan(estimates[name].low)
            assert name not in told or f"fewer than {least} labels" in told[name]
    for labels, without in ((FLOOR, {"kappa"}), (LEAST_DRAWN, set())):
        task, _, history = after("assured", 4, labels)
        found = METHODS["assured"]().estimate(task, history)
        assert {estimate.metric for estimate in found if math.isnan(estimate.low)} == without


def test_a_class_of_which_no_label_tells_has_no_figure_and_says_how_many_labels_would_do():
    rng = np.random.default_rng(5)
    predictions, truth = rng.integers(0, 40, 800), rng.integers(0, 40, 800)
    pool = altmas.Pool(None, predictions, classes=[str(c) for c in range(40)])
    task = Task(pool, metric_set(["accuracy", "per_class"], pool), seed=5)
    history = label_until(METHODS["assured"](), task, History(len(pool)), 30, 5, truth.__getitem__)
    answered, members = (set(of[history.labelled].tolist()) for of in (predictions, truth))
    for estimate in METHODS["assured"]().estimate(task, history):
        kind, _, code = estimate.metric.rstrip("]").partition("[")
        told = kind == "accuracy" or int(code) in (answered if kind == "precision" else members)
        assert math.isnan(estimate.value) != told and math.isnan(estimate.effective_labels) != told
        if not told:
            points = int((predictions == int(code)).sum())
            assert f"undefined: no label so far tells about {estimate.metric}; " in estimate.note
            assert estimate.note.endswith(f"{min(20, points)} of the {points} points answered with its class would do")


@pytest.mark.parametrize("trials", range(1, FEW_TRIALS))
def test_a_share_in_a_few_trials_is_covered_whatever_it_is(trials):
    """Exactly, for shares just beside every end of an interval, where coverage is least."""
    ends = [share_interval(k / trials, trials, Z) for k in range(trials + 1)]
    beside = np.array([end + step for pair in ends for end in pair for step in (-1e-7, 1e-7)])
    for share in beside[(beside > 0) & (beside < 1)]:
        held = [low <= share <= high for low, high in ends]
        assert binom.pmf(np.arange(trials + 1), trials, share)[held].sum() >= 0.95


def rare_positives(positives: int, n: int = 2000):
    """Scores that are far too sure, of which a model's curve is made; few positives."""
    rng = np.random.default_rng([11, positives])
    truth = np.zeros(n, int)
    truth[rng.permutation(n)[:positives]] = 1
    scores = 1 / (1 + np.exp(-6 * (rng.normal(size=n) + 2 * truth - 1.5)))
    return altmas.Pool(None, (scores >= 0.5).astype(int), scores=np.c_[1 - scores, scores], classes=[0, 1]), truth


def test_an_average_precision_rests_on_the_positives_that_were_met():
    pool, truth = rare_positives(15)
    task_of = lambda seed: Task(pool, metric_set(["average_precision"], pool), seed=seed)  # noqa: E731
    exact = truth_values(pool, truth, task_of(0).metrics)["average_precision"]
    held = []
    for seed in range(30):
        history = label_until(METHODS["assured"](), task_of(seed), History(len(pool)), 60, 10, truth.__getitem__)
        (estimate,) = METHODS["assured"]().estimate(task_of(seed), history)
        met = int(truth[history.labelled].sum())
        assert math.isnan(estimate.value) == (met == 0)
        if met:
            held.append(estimate.low <= exact <= estimate.high)
    assert len(held) >= 15 and np.mean(held) >= 0.9  # 0.74 without (B9)


def test_a_calibration_error_without_an_error_among_the_labels_is_not_known_exactly():
    truth = np.zeros(2000, int)
    truth[:15] = 1
    scores = np.zeros(2000)
    pool = altmas.Pool(None, scores.astype(int), scores=np.c_[1 - scores, scores], classes=[0, 1])
    task = Task(pool, metric_set(["calibration_error"], pool), seed=3)
    history = label_until(METHODS["tradition"](), task, History(2000), 60, 10, np.zeros(2000, int).__getitem__)
    (estimate,) = METHODS["tradition"]().estimate(task, history)
    assert estimate.value == 0 and estimate.high >= 0.05  # the rule of three


def test_points_whose_labels_were_taken_back_may_be_anything():
    """Errors told unasked while a stage began, and taken back: no stage after it could draw them."""
    pool, truth = world(3, 0.5, 0.85, 1500)
    session = altmas.Session.create(None, pool, seed=3)
    for query in session.ask(40):
        session.tell(query.id, int(truth[query.index]))
    errors = [row for row in np.flatnonzero(pool.predictions != truth).tolist() if row not in session.history.labels]
    for row in errors[:150]:
        session.tell(row, int(truth[row]), annotator="somebody")
    for query in session.ask(40):
        session.tell(query.id, int(truth[query.index]))
    for _ in errors[:150]:
        session.undo("somebody")
    for query in session.ask(40):
        session.tell(query.id, int(truth[query.index]))
    (estimate,) = session.estimate()
    assert estimate.low <= float((pool.predictions == truth).mean()) <= estimate.high
    assert estimate.high - estimate.low > 0.1 and "lost their label" in estimate.note


@pytest.mark.parametrize("labels", [12, 40, 100])
def test_a_mean_of_two_grades_is_their_share(labels):
    truth = np.where(np.random.default_rng(5).random(2000) < 0.05, 0, 4)
    pool = altmas.Pool(None, None, classes=list("12345"), ids=np.arange(2000))
    task = Task(pool, metric_set(["mean", "share[>=4]"], pool), seed=labels)
    history = label_until(METHODS["tradition"](), task, History(len(pool)), labels, 10, truth.__getitem__)
    mean, share = METHODS["tradition"]().estimate(task, history)
    assert mean.value == pytest.approx(1 + 4 * share.value)
    assert mean.low <= 1 + 4 * share.low + 0.05 and mean.high >= 1 + 4 * share.high - 0.05


def coverage(method: str, labels: tuple[int, ...], share: float, accuracy: float, runs: int) -> dict[str, float]:
    """The least coverage over these numbers of labels, by metric."""
    held: dict[tuple[str, int], list[bool]] = {}
    for seed in range(runs):
        pool, truth = world(seed, share, accuracy)
        task = Task(pool, metric_set(METRICS, pool), seed=seed)
        exact, history = truth_values(pool, truth, task.metrics), History(len(pool))
        for count in labels:
            history = label_until(METHODS[method](), task, history, count, 1, truth.__getitem__)
            for estimate in METHODS[method]().estimate(task, history):
                if not math.isnan(estimate.low):
                    inside = estimate.low - 1e-9 <= exact[estimate.metric] <= estimate.high + 1e-9
                    held.setdefault((estimate.metric, count), []).append(inside)
    return {
        metric: min(float(np.mean(mine)) for (name, _), mine in held.items() if name == metric and len(mine) > runs / 2)
        for metric in {name for name, _ in held}
    }


@pytest.mark.slow
@pytest.mark.parametrize("method", ["assured", "tradition"])
@pytest.mark.parametrize(("share", "accuracy"), [(0.5, 0.5), (0.5, 0.6), (0.05, 0.95), (0.3, 0.85)])
def test_every_look_from_the_first_label_on_holds(method, share, accuracy):
    runs = 300
    least = coverage(method, (1, 2, 3, 5, 7, 9, 10, 12, 15, 19), share, accuracy, runs)
    tolerance = 2.5 * math.sqrt(0.93 * 0.07 / runs)  # the least of some fifty cells
    assert min(least.values()) >= 0.93 - tolerance, least


def told(method: str, labels: int, *metrics: str, **plan: object) -> tuple[altmas.Session, np.ndarray, np.ndarray]:
    """A session of 40 points in which nothing was asked for and the first labels were volunteered."""
    rng = np.random.default_rng(3)
    truth, site = rng.integers(0, 2, 40), np.array(["a", "b"])[np.arange(40) // 20]
    predictions = np.where(rng.random(40) < 0.75, truth, 1 - truth)
    pool = altmas.Pool(predictions=predictions, classes=[0, 1], slices={"site": site})
    session = altmas.Session.create(None, pool, metrics=list(metrics), method=method, **plan)
    for row in range(labels):
        session.tell(row, int(truth[row]))
    return session, predictions, truth


@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_with_every_point_told_and_none_asked_for_figures_are_exact(method):
    session, predictions, truth = told(method, 40, "accuracy", "f1[1]", "mcc", "gap[accuracy, site]", budget=30)
    accuracy, *others = session.estimate()
    assert accuracy.value == accuracy.low == accuracy.high == np.mean(predictions == truth)
    assert accuracy.note == "every point is labelled: exact" and all(one.low == one.high for one in others)
    assert session.check("accuracy >= 0.5").answer == "shown" and session.check("accuracy >= 0.99").answer == "refuted"
    assert session.should_stop().reason == (
        "the budget of 30 labels is spent and every point of the pool is labelled or skipped"
    )


def test_of_a_slice_that_is_told_whole_figures_are_exact_and_of_the_rest_there_are_none():
    session, predictions, truth = told("assured", 20, "accuracy")
    first, rest = session.estimate(by="site")
    assert first.low == first.value == first.high == np.mean(predictions[:20] == truth[:20])
    assert math.isnan(rest.value) and math.isnan(session.estimate()["accuracy"].value)


def test_labels_that_nobody_asked_for_leave_every_value_possible():
    session, _, _ = told("tradition", 30, "kappa", "mcc")
    for estimate in session.estimate():
        assert (estimate.low, estimate.high) == (-1, 1) and -1 <= estimate.value <= 1
