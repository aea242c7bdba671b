"""Pseudo-labels of the stable preset: which labels represent the pool, the threshold, and where they come from."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from altmas.history import History
from altmas.methods import AltMas, Task
from altmas.methods.paper.augmentation import jeffreys_lower, pseudo_count
from altmas.methods.paper.rounds import round_at, uniform_batch
from altmas.methods.paper.stable import FOLDS, augment_stably, crossed_beliefs, lent_count, most_lending
from altmas.methods.paper.surrogates import MCDropout, Training
from altmas.metrics import metric_set
from altmas.pool import Pool

QUICK = MCDropout(0.3, Training(epochs=30))


def rng(seed=0):
    return np.random.default_rng(seed)


# ---------------------------------------------------------------- threshold


@pytest.mark.parametrize("power", [1, 2, 8])
@pytest.mark.parametrize("seed", range(6))
def test_the_threshold_that_lends_most_equals_a_search(power, seed):
    g = rng(seed)
    scores, agree, pool = np.round(g.random(30), 1), g.random(30) < 0.8, g.random(400)
    found = []
    for tau in np.unique(scores):
        above = scores >= tau
        precision = float(jeffreys_lower(agree[above].sum(), (~agree[above]).sum()))
        found.append((precision**power * (pool >= tau).sum(), -tau, precision))
    _, tau, precision = max(found)
    assert_allclose(most_lending(scores, agree, pool, power), (-tau, precision))


def test_one_more_label_moves_the_number_little():
    """The threshold of highest precision leaps from all points to the best few when one label disagrees."""
    scores, pool = np.linspace(0.01, 1, 100), np.linspace(0, 1, 5000)
    agree = np.ones(100, bool)
    counts = []
    for wrong in (None, 60, 75):
        if wrong is not None:
            agree[wrong] = False
        tau, precision = most_lending(scores, agree, pool, 8)
        counts.append(pseudo_count(precision, int((pool >= tau).sum()), 8))
    assert counts[0] > counts[1] > counts[2] > counts[0] / 2


def test_a_bad_model_lends_less_of_what_is_trusted():
    assert lent_count(1.0, 400, 1.0, 8) == 400
    assert lent_count(0.5, 100, 0.25, 2) == 6  # 25 by (A5), a quarter of them


# ---------------------------------------------------------------- whole sets


def world(accuracy, n=500, labelled=80, seed=0):
    """Three clouds; the model is right with this probability, wherever it is."""
    g = rng(seed)
    truth = g.integers(0, 3, n)
    x = (3 * np.eye(3)[truth] + g.normal(size=(n, 3))).astype(np.float32)
    predictions = np.where(g.random(n) < accuracy, truth, (truth + 1) % 3)
    known = np.full(n, -1)
    known[:labelled] = truth[:labelled]
    return Pool(x, predictions, classes=[0, 1, 2]), known, truth


@pytest.mark.paper
@pytest.mark.parametrize("accuracy, least", [(1.0, 250), (0.6, 20), (0.15, 0)])
def test_what_is_lent_is_right_for_good_and_bad_models(accuracy, least):
    pool, known, truth = world(accuracy)
    found = augment_stably(pool, known, np.arange(80), QUICK, power=8, rng=rng())
    right = int((pool.predictions[:80] == truth[:80]).sum())
    bound = float(jeffreys_lower(right, 80 - right))
    assert len(found.rows) == lent_count(found.precision, found.candidates, bound, 8) >= least
    assert (known[found.rows] < 0).all() and len(set(found.rows)) == len(found.rows)
    assert (pool.predictions[found.rows] != truth[found.rows]).sum() <= max(1, 0.1 * len(found.rows))
    assert found.trusted_by == "surrogate"


@pytest.mark.paper
def test_members_are_a_random_part_of_the_trusted_points_not_the_best_scored():
    pool, known, _ = world(1.0)
    sets = [set(augment_stably(pool, known, np.arange(80), QUICK, power=40, rng=rng(seed)).rows) for seed in (1, 2)]
    for one in sets:
        assert 20 < len(one) < 300
    assert 0.2 < len(sets[0] & sets[1]) / min(map(len, sets)) < 0.8


@pytest.mark.paper
def test_a_model_that_is_never_right_lends_next_to_nothing():
    pool, known, _ = world(0.0)
    found = augment_stably(pool, known, np.arange(80), QUICK, power=8, rng=rng())
    assert len(found.rows) <= 2


@pytest.mark.paper
def test_a_label_is_scored_by_a_network_that_did_not_see_it():
    """Labels without any rule: a network that had seen them would know them by heart."""
    g = rng(5)
    pool, y = (
        Pool(g.normal(size=(200, 30)).astype(np.float32), np.zeros(200, int), classes=[0, 1]),
        g.integers(0, 2, 200),
    )
    own, everywhere = crossed_beliefs(pool, y, MCDropout(0.0, Training(epochs=60)), rng())
    assert own.shape == everywhere.shape == (200,)
    right = y == 0
    assert abs(own[right].mean() - own[~right].mean()) < 0.15
    assert everywhere[right].mean() - everywhere[~right].mean() > 0.4  # three of four networks have seen it


@pytest.mark.paper
def test_precision_is_that_of_the_labels_that_represent_the_pool():
    pool, known, truth = world(0.97, labelled=120)
    wrong = np.flatnonzero((pool.predictions != truth) & (known < 0))
    known[wrong] = truth[wrong]  # chosen because the model errs there
    all_of_them = augment_stably(pool, known, np.zeros(0, np.int64), QUICK, power=8, rng=rng())
    by_sample = augment_stably(pool, known, np.arange(120), QUICK, power=8, rng=rng())
    assert by_sample.precision > all_of_them.precision


def test_with_few_labels_or_no_open_point_there_is_nothing():
    pool, known, truth = world(0.9, labelled=2 * FOLDS - 1)
    assert len(augment_stably(pool, known, np.arange(4), QUICK, power=8, rng=rng()).rows) == 0
    assert len(augment_stably(pool, truth, np.arange(4), QUICK, power=8, rng=rng()).rows) == 0


@pytest.mark.paper
def test_a_round_of_the_preset_rests_on_the_first_labels_and_is_the_same_again():
    pool, _, truth = world(0.9, n=300)
    task = Task(pool, metric_set(["accuracy"], pool), seed=3)
    first = uniform_batch(task, History(300), 40)
    history = History(300, (first,), {int(row): int(truth[row]) for row in first.indices})
    settings = AltMas(preset="stable", epochs=20, draws=4).settings
    now = round_at(task, history, settings)
    pool.memo.get("round", "another", lambda: None)  # forgets the first
    again = round_at(task, history, settings)
    assert again is not now
    assert_array_equal(now.augmentation.rows, again.augmentation.rows)
    assert_array_equal(now.belief.labels, again.belief.labels)
    assert len(now.augmentation.rows) > 50
