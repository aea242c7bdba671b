"""Metrics of scores, thresholds, the truth, differences and gaps from a uniform random sample."""

import numpy as np
import pytest

import altmas
from altmas.history import Batch, History
from altmas.methods import Tradition
from altmas.methods.random_items import estimate_of_items
from altmas.metrics import metric_set, truth_values
from altmas.task import Task
from scores_world import a_pool

NAMES = (
    "roc_auc",
    "average_precision",
    "log_loss",
    "brier",
    "calibration_error",
    "recall[dog,0.3]",
    "precision[dog,0.3]",
    "share[dog]",
    "mean[cat=0,dog=3]",
    "recall[dog]@site=A - recall[dog]@site=B",
    "log_loss@site=A - log_loss@site=B",
    "gap[recall[dog], site]",
)
POOL, TRUTH = a_pool(2, n=2000, ties=False, seed=5)
TASK = Task(POOL, metric_set(NAMES, POOL))


def history_of(rows, volunteered=()):
    """Labels that were volunteered first, then draws."""
    batch = Batch(np.asarray(rows), np.full(len(rows), 1 / len(POOL)), labels_before=len(volunteered))
    labels = {int(row): int(TRUTH[row]) for row in (*volunteered, *rows)}
    return History(len(POOL), (batch,), labels)


@pytest.mark.parametrize(("runs", "least"), [(60, 0.87), pytest.param(150, 0.90, marks=pytest.mark.slow)])
def test_intervals_of_every_family_cover(runs, least):
    """0.95 less 2.8 standard errors."""
    rng, exact = np.random.default_rng(0), truth_values(POOL, TRUTH, TASK.metrics)
    covered = dict.fromkeys(NAMES, 0)
    for _ in range(runs):
        for one in Tradition().estimate(TASK, history_of(rng.choice(len(POOL), 150, replace=False))):
            covered[one.metric] += one.low <= exact[one.metric] <= one.high
    assert min(covered.values()) / runs >= least, covered


def test_a_table_metric_by_items_agrees_with_the_table():
    history = history_of(range(0, 2000, 9))
    for name in ("accuracy", "recall[dog]", "precision[dog,0.3]", "kappa"):
        metric = metric_set(name, POOL)[0]
        by_items = estimate_of_items(TASK, history, metric)
        by_table = Tradition().estimate(Task(POOL, (metric,)), history)[0]
        assert by_items.value == pytest.approx(by_table.value)
        assert by_items.half_width == pytest.approx(by_table.half_width, rel=0.1)


def test_volunteered_labels_count_once_and_drawn_ones_for_the_rest():
    history = history_of(range(0, 1000, 10), volunteered=range(1000, 2000))
    (metric,) = metric_set("share[dog]@site=A - share[dog]@site=B", POOL)
    expected = 0.0
    for site, sign in (("A", 1), ("B", -1)):
        inside = POOL.slices["site"] == site
        known, drawn = np.flatnonzero(inside[1000:]) + 1000, np.arange(0, 1000, 10)
        drawn = drawn[inside[drawn]]
        total = TRUTH[known].sum() + inside[:1000].sum() * TRUTH[drawn].mean()
        expected += sign * total / inside.sum()
    assert estimate_of_items(TASK, history, metric).value == pytest.approx(expected)


def test_everything_labelled_is_exact():
    exact = truth_values(POOL, TRUTH, TASK.metrics)
    for one in Tradition().estimate(TASK, history_of(range(2000))):
        assert one.value == pytest.approx(exact[one.metric])
        if not one.metric.startswith("gap"):
            assert one.low == one.high == one.value


def test_what_no_label_tells_about_is_undefined_and_says_so():
    cats = np.flatnonzero(TRUTH == 0)[:30]
    found = Tradition().estimate(TASK, history_of(cats))
    assert np.isnan(found["roc_auc"].value) and "no label so far tells about roc_auc" in found["roc_auc"].note
    assert np.isnan(found["gap[recall[dog], site]"].value)
    assert all("no label yet" in one.note for one in Tradition().estimate(TASK, History(len(POOL))))


def test_a_sample_without_an_error_has_no_interval_of_width_0():
    scores = np.where(TRUTH[:, None] == np.arange(2), 0.9, 0.1)
    pool = altmas.Pool(
        None, np.array(["cat", "dog"])[TRUTH], scores=scores, classes=["cat", "dog"], slices=dict(POOL.slices)
    )
    names = ["roc_auc", "average_precision", "recall[dog]@site=A - recall[dog]@site=B", "gap[recall[dog], site]"]
    for one in Tradition().estimate(Task(pool, metric_set(names, pool)), history_of(range(0, 2000, 20))):
        assert one.high - one.low > 0.01, one


def test_the_gap_names_its_groups_and_holds_for_all_pairs():
    found = Tradition().estimate(TASK, history_of(range(0, 2000, 7)))["gap[recall[dog], site]"]
    assert "largest in " in found.note and "near 0 is too high" in found.note
    assert 0 <= found.low <= found.value <= found.high


def test_a_sum_of_distances_reaches_down_by_its_excess():
    scores = POOL.scores[:, 1]
    calm = (np.random.default_rng(3).random(2000) < scores).astype(int)  # perfectly calibrated
    task, history = Task(POOL, metric_set("calibration_error", POOL)), history_of(range(0, 2000, 20))
    history = History(len(POOL), history.batches, {row: int(calm[row]) for row in history.labels})
    found = Tradition().estimate(task, history)[0]
    assert found.low <= truth_values(POOL, calm, task.metrics)["calibration_error"] < found.value
    assert "near 0 is too high" in found.note


def test_the_interval_of_a_difference_is_that_of_its_opposite_turned_round():
    """What nobody has seen of one side must not hide what classes that may occur do to the other."""
    rng = np.random.default_rng(0)
    truth, one, other = rng.integers(0, 6, (3, 40))
    pool = altmas.Pool(None, {"a": one, "b": other}, classes=list(range(6)))
    task = Task(pool, metric_set(["a: macro_f1 - b: macro_f1", "b: macro_f1 - a: macro_f1"], pool))
    for seed in range(30):
        rows = np.random.default_rng(seed).permutation(40)[:9]
        batch = Batch(rows, np.full(9, 1 / 40), labels_before=0)
        history = History(40, (batch,), {int(row): int(truth[row]) for row in rows})
        there, back = Tradition().estimate(task, history)
        if not np.isnan(there.low) and there.value != 0:  # half-way between the bounds the longer reach is downwards
            assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
