"""Where the variance shrinks the interval is shorter, as far as labels have met what lies on that side (V21)."""

import numpy as np
import pytest

import altmas
from altmas.history import History
from altmas.intervals import Tails, normal_quantile, reach_of_few, share_interval
from altmas.methods.assured import Assured
from altmas.methods.assured.linearised import Estimators
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.stages import stages_of
from altmas.metrics import metric_set, truth_values
from altmas.metrics.influence import sum_of_items
from altmas.simulate import label_until
from altmas.task import Task
from assured_world import share_of, world
from benchmarks.made_pools import urgent_tickets

Z = normal_quantile(0.95)
TAILS = Tails.of(Z)


def estimators(metrics, labels=120, n=1500, seed=2):
    """(task, estimators after so many labels of a pool of three classes with two models)."""
    pool, truth = world(n=n, accuracy=0.9)
    rng = np.random.default_rng(seed)
    other = np.where(rng.random(n) < 0.8, truth, rng.integers(0, 3, n))
    pool = type(pool)(pool.features, {"v1": pool.predictions, "v2": other}, classes=[0, 1, 2])
    method, task = Assured(), Task(pool, metric_set(metrics, pool), seed=seed)
    history = label_until(method, task, History(n), labels, 20, truth.__getitem__)
    return task, Estimators(method._samples(task, history, stages_of(history)), task, history)


def test_what_is_left_is_what_a_loop_over_the_parts_finds():
    names = ("v1: accuracy", "v1: recall[1]", "v2: f1[2]", "v1: npv[1]", "share[1]", "v2: accuracy - v1: accuracy")
    task, among = estimators(names)
    for metric in task.metrics:
        linear = among.linearised(metric, TAILS)
        estimated = float(linear.terms.sum())
        for factor, estimator, side in linear.sides:
            for part in estimator.parts:
                believed = side.items.moments(part.belief)[0]
                shares = np.array([share_of(part.share, part.folds, row) for row in range(len(believed))])
                estimated += factor * float((shares * believed)[part.rest].sum())
        items = sum_of_items([(factor, side.items, estimator.inside) for factor, estimator, side in linear.sides])
        low, high = (float((end * linear.estimator.unlabelled_share).sum()) for end in items.range())
        assert linear.left == pytest.approx((estimated - low, high - estimated), abs=1e-9), metric.name


def test_the_reach_of_what_was_met_is_that_of_its_terms_or_of_what_is_left():
    task, among = estimators(("v1: accuracy",))
    linear = among.linearised(task.metrics[0], TAILS)
    rows, parts = linear.rows, among(None).parts
    weights = np.concatenate(
        [[share_of(part.share, part.folds, row) for row in part.rows] * part.expansion for part in parts]
    )
    wrong = task.pool.models[0].predictions[rows] != among.history.known[rows]
    events = weights[wrong] / len(task.pool)
    lowered = -linear.terms[linear.terms < 0]
    by_terms = reach_of_few(lowered.sum(), (lowered**2).sum(), TAILS)
    sure = events.sum() - reach_of_few(events.sum(), (events**2).sum(), TAILS)
    assert wrong.sum() >= 3 and linear.left is not None
    assert linear.evidence(linear.value).met_high == pytest.approx(max(by_terms, linear.left[1] - sure))


def test_variances_shrink_for_metrics_of_a_table_with_enough_labels_alone():
    task, few = estimators(("v1: accuracy",), labels=RECIPE.fewest_to_shrink - 20)
    assert few.linearised(task.metrics[0], TAILS).left is None
    task, among = estimators(("v1: accuracy", "v1: macro_f1"))
    accuracy, macro = (among.linearised(metric, TAILS) for metric in task.metrics)
    assert accuracy.evidence(accuracy.value).skew_high < 0 and macro.left is None
    told = macro.evidence(macro.value)
    assert told.skew_low >= 0 and told.skew_high >= 0


@pytest.mark.parametrize("name", ["v1: recall[1]", "v1: f1[1]"])
def test_terms_of_a_ratio_are_scaled_from_its_point_of_linearisation(name):
    """The variance at a candidate is that of num - candidate * den, whatever the estimate is (V32)."""
    task, among = estimators((name,), labels=60)
    (metric,), candidate = task.metrics, 0.4
    linear = among.linearised(metric, TAILS)
    at_base = float(metric.of_table(among(None).base))
    top = 1.0 if "recall" in name else 2.0
    scales = (top - candidate) / (top - at_base), candidate / at_base
    shown, believed = (
        sum(a**2 * getattr(group, part) for a, group in zip(scales, linear.groups, strict=True))
        for part in ("shown", "believed")
    )
    worth = sum(group.worth for group in linear.groups)
    blend = (RECIPE.prior_df * believed + worth * shown) / (RECIPE.prior_df + worth)
    assert abs(at_base - linear.value) > 1e-4
    assert linear.evidence(candidate).variance == pytest.approx(max(shown, blend))


@pytest.mark.slow
def test_the_upper_end_of_a_recall_holds_after_one_missed_member_of_a_rare_class():
    """Four queues, 60 urgent tickets of 8,000, half of them found: 0.92 of these intervals held before (V32)."""
    pool, truth = urgent_tickets()
    metrics, method, held, intervals = metric_set(["recall[3]"], pool), Assured(), 0, 0
    exact = truth_values(pool, truth, metrics)["recall[3]"]
    for seed in range(300):
        task = Task(pool, metrics, seed=seed)
        history = label_until(method, task, History(len(pool)), 60, 20, truth.__getitem__)
        estimate = method.estimate(task, history)["recall[3]"]
        intervals += estimate.low == estimate.low
        held += estimate.low <= exact <= estimate.high
    assert intervals >= 285 and held >= 0.94 * intervals


@pytest.mark.parametrize("name", ["v1: kappa", "v1: mcc", "v1: weighted_kappa[linear]", "v2: kappa - v1: kappa"])
def test_variances_of_agreement_against_chance_do_not_shrink(name):
    task, among = estimators((name,))
    linear = among.linearised(task.metrics[0], TAILS)
    told = linear.evidence(linear.value)
    assert linear.left is None and told.skew_low >= 0 and told.skew_high >= 0


@pytest.mark.slow
def test_the_upper_end_of_kappa_holds_where_most_of_a_rare_class_is_missed():
    """Twelve points in a hundred are of the class, a third of them are found: 0.90 held while the variance shrank."""
    order = np.random.default_rng(2).permutation(3000)
    truth, predictions = ((np.arange(3000) < members).astype(int)[order] for members in (360, 120))
    pool = altmas.Pool(None, predictions, classes=[0, 1])
    metrics, method, held = metric_set(["kappa"], pool), Assured(), 0
    exact = truth_values(pool, truth, metrics)["kappa"]
    for seed in range(400):
        task = Task(pool, metrics, seed=seed)
        history = label_until(method, task, History(3000), 41, 10, truth.__getitem__)
        estimate = method.estimate(task, history)["kappa"]
        held += estimate.low <= exact <= estimate.high
    assert held >= 372


@pytest.mark.parametrize("accuracy", [0.9, 0.97])
def test_uniform_draws_of_a_plain_pool_have_the_interval_of_a_share(accuracy):
    """Wilson's, nowhere inside Clopper and Pearson's on the side of no errors: to both sides, not down alone."""
    pool, truth = world(n=4000, accuracy=accuracy)
    pool = type(pool)(None, pool.predictions, classes=[0, 1, 2])
    method = Assured(defensive_share=1.0, pilot=1000)
    for seed in range(5):
        task = Task(pool, metric_set("accuracy", pool), seed=seed)
        history = label_until(method, task, History(4000), 200, 50, truth.__getitem__)
        found = method.estimate(task, history)[0]
        low, high = share_interval(found.value, 200, Z)
        assert found.high - found.value == pytest.approx(high - found.value, rel=0.12)
        assert found.value - found.low == pytest.approx(found.value - low, rel=0.12)


def test_errors_that_are_only_believed_do_not_end_the_interval():
    """A belief of 8 % errors in a class where every label was right is no evidence that there are any."""
    task, among = estimators(("v1: accuracy",))
    linear = among.linearised(task.metrics[0], TAILS)
    group = linear.groups[0]
    assert group.lowered.distances[0] > 0
    unmet = type(group.lowered)()
    assert unmet.reach(0.08, TAILS) == 0.08  # all that is left
    assert group.lowered.reach(0.0, TAILS) <= group.lowered.terms[0]
