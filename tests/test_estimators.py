"""The difference estimator: exact where it must be, unbiased whatever is believed."""

import numpy as np
import pytest

from altmas.history import History
from altmas.methods import Task
from altmas.methods.assured import Assured
from altmas.methods.assured.design import inclusion_of
from altmas.methods.assured.estimator import Difference
from altmas.methods.draws import successive_draws
from altmas.metrics import metric_set, table_of, truth_values
from altmas.metrics.formulas import positive
from altmas.simulate import label_until
from assured_world import belief, constant_belief, runs, shuffled_belief, world, wrong_belief


def difference(pool, truth, drawn, chances, agree, volunteered=()) -> Difference:
    known = np.full(len(pool), -1)
    known[drawn] = truth[drawn]
    known[list(volunteered)] = truth[list(volunteered)]
    told = np.zeros(len(pool), bool)
    told[list(volunteered)] = True
    return Difference(
        belief(pool, agree, len(pool.classes)),
        np.asarray(drawn),
        truth[drawn],
        known,
        told,
        np.ones(len(pool), bool),
        chances,
        np.zeros(0, np.int64),
    )


def test_a_constant_belief_and_uniform_draws_are_random_sampling():
    pool, truth = world(n=500)
    drawn = np.random.default_rng(0).permutation(500)[:60]
    found = difference(pool, truth, drawn, np.full(500, 60 / 500), np.full(500, 0.5))
    right = (truth == pool.predictions)[drawn]
    accuracy = found.linearised(metric_set(["accuracy"], pool)[0])
    assert accuracy.value == pytest.approx(right.mean())
    wanted = (1 - 60 / 500) / 60 * right.var(ddof=1)
    assert accuracy.terms.sum() == pytest.approx(wanted, rel=1e-9)
    assert accuracy.effective_labels(accuracy.spread * 500 * (1 / 60 - 1 / 500)) == pytest.approx(60)


def test_row_sums_are_the_known_ones_and_cells_may_be_negative():
    pool, truth = world(n=400)
    drawn = np.arange(40)
    found = difference(pool, truth, drawn, np.full(400, 0.1), np.full(400, 0.99))
    np.testing.assert_allclose(found.table.sum(1), np.bincount(pool.predictions, minlength=3))
    np.testing.assert_allclose(positive(np.array([[-1.0, 3.0], [2.0, 0.0]])), [[0, 2], [2, 0]])


def test_everything_labelled_is_exact():
    pool, truth = world(n=200)
    found = difference(pool, truth, np.arange(150), np.full(200, 0.75), np.full(200, 0.3), range(150, 200))
    np.testing.assert_allclose(found.table, table_of(pool.predictions, truth, 3))


def test_volunteered_labels_stand_for_themselves_alone():
    """Someone told every error there is: the drawn rest is all right, and the estimate is the truth."""
    pool, truth = world(n=300)
    wrong = np.flatnonzero(truth != pool.predictions)
    drawn = np.flatnonzero(truth == pool.predictions)[:50]
    found = difference(pool, truth, drawn, np.full(300, 0.2), np.full(300, 0.6), wrong.tolist())
    assert np.trace(found.table) / 300 == pytest.approx((truth == pool.predictions).mean())


def test_unequal_draws_are_unbiased_for_any_fixed_belief():
    """Mean error over 600 samples within 4 standard errors, and the variance is the one that is reported."""
    pool, truth = world(n=600)
    rates = np.random.default_rng(4).uniform(0.02, 0.3, 600)
    agree = np.random.default_rng(5).uniform(0.02, 0.98, 600)
    chances = inclusion_of(rates)
    errors, variances = [], []
    accuracy = metric_set(["accuracy"], pool)[0]
    for seed in range(600):
        rng = np.random.default_rng(seed)
        drawn = np.flatnonzero(rng.random(600) < chances)
        one = difference(pool, truth, drawn, chances, agree).linearised(accuracy)
        errors.append(one.value - (truth == pool.predictions).mean())
        variances.append(one.terms.sum())
    assert abs(np.mean(errors)) < 4 * np.std(errors) / 600**0.5
    assert np.mean(variances) == pytest.approx(np.var(errors), rel=0.2)
    assert len(successive_draws(rates, np.arange(600), 5, np.random.default_rng(0))[0]) == 5


@pytest.mark.parametrize("sabotage", [shuffled_belief, wrong_belief])
def test_a_sabotaged_belief_costs_width_and_nothing_else(sabotage):
    """Mean error 0 within 3.5 standard errors; coverage at least 0.93 within Monte Carlo error (120 runs)."""
    pool, truth = world(n=1500)
    found = runs(Assured(belief=sabotage), pool, truth, ["accuracy", "recall[0]", "macro_f1"], 150, 120, batch=30)
    error = found[:, :, 0] - found[:, :, 3]
    assert (np.abs(error.mean(0)) < 3.5 * error.std(0) / 120**0.5).all()
    covered = (found[:, :, 1] <= found[:, :, 3]) & (found[:, :, 3] <= found[:, :, 2])
    assert (covered.mean(0) > 0.93 - 2.5 * (0.07 * 0.93 / 120) ** 0.5).all()
    if sabotage is shuffled_belief:  # a belief that is wrong in the same way everywhere is as good as none
        honest = runs(Assured(belief=constant_belief), pool, truth, ["accuracy"], 150, 10, batch=30)
        assert np.ptp(found[:, 0, 1:3], 1).mean() > np.ptp(honest[:, 0, 1:3], 1).mean()


def test_the_sequential_estimate_is_unbiased_even_for_a_belief_that_is_always_wrong():
    pool, truth = world(n=800)
    accuracy = metric_set(["accuracy"], pool)
    errors = []
    for seed in range(80):
        task, method = Task(pool, accuracy, seed=seed), Assured(belief=wrong_belief, pilot=20)
        history = label_until(method, task, History(800), 80, 20, truth.__getitem__)
        found = method.estimate(task, history).info["sequential_accuracy"]
        errors.append(found - truth_values(pool, truth, accuracy)["accuracy"])
    assert abs(np.mean(errors)) < 3.5 * np.std(errors) / 80**0.5
