"""The difference estimator: exact where it must be, unbiased whatever is believed."""

from dataclasses import replace

import numpy as np
import pytest

import altmas
from altmas.methods.assured import Assured
from altmas.methods.assured.estimator import Difference, StageSample
from altmas.methods.assured.stages import Stage
from altmas.metrics import metric_set, table_of
from altmas.metrics.formulas import positive
from assured_world import belief, constant_belief, runs, shuffled_belief, world, wrong_belief

TAIL = 3.689


def difference(pool, truth, drawn, chances, agree, volunteered=()) -> Difference:
    """One stage with these inclusion probabilities and this belief."""
    known = np.full(len(pool), -1)
    known[drawn] = truth[drawn]
    known[list(volunteered)] = truth[list(volunteered)]
    before = np.zeros(len(pool), bool)
    before[list(volunteered)] = True
    exposure = np.where(before, 0.0, -np.log1p(-chances))
    stage = Stage(~before, np.ones(len(pool)), np.zeros(len(pool)), np.asarray(drawn), exposure)
    sample = StageSample(stage, belief(pool, agree, len(pool.classes)), before, np.asarray(drawn))
    return Difference([sample], pool.predictions, known, np.ones(len(pool), bool), np.zeros(0, np.int64))


def test_a_constant_belief_and_uniform_draws_are_random_sampling():
    pool, truth = world(n=500)
    drawn = np.random.default_rng(0).permutation(500)[:60]
    found = difference(pool, truth, drawn, np.full(500, 60 / 500), np.full(500, 0.5))
    right = (truth == pool.predictions)[drawn]
    accuracy = found.linearised(metric_set(["accuracy"], pool)[0], TAIL)
    assert accuracy.value == pytest.approx(right.mean())
    (group,) = accuracy.groups
    assert group.shown == pytest.approx((1 - 60 / 500) / 60 * right.var(ddof=1), rel=1e-9)
    assert accuracy.effective_labels() == pytest.approx(1 / (accuracy.variance / (500 * accuracy.spread) + 1 / 500))
    assert group.unseen_low == pytest.approx(TAIL * 0.5 / -np.log1p(-60 / 500) / 500, rel=1e-6)


def test_two_groups_add_up_to_the_variance_of_a_class_metric():
    """Recall as two groups of points and as one dense influence: the same variance, skewness and residuals."""
    pool, truth = world(n=500)
    drawn = np.random.default_rng(0).permutation(500)[:80]
    found = difference(pool, truth, drawn, np.full(500, 80 / 500), np.linspace(0.3, 0.95, 500))
    recall = metric_set(["recall[1]"], pool)[0]
    own, other = found.linearised(recall, TAIL).groups
    whole = found.linearised(replace(recall, kind="callable", classes=()), TAIL).groups[0]
    assert own.shown + other.shown == pytest.approx(whole.shown)
    assert own.believed + other.believed == pytest.approx(whole.believed)
    assert own.third + other.third == pytest.approx(whole.third)
    assert max(own.unseen_low, other.unseen_low) <= whole.unseen_low * (1 + 1e-9)


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
    chances = -np.expm1(-rates)
    errors, variances = [], []
    accuracy = metric_set(["accuracy"], pool)[0]
    for seed in range(600):
        rng = np.random.default_rng(seed)
        drawn = np.flatnonzero(rng.random(600) < chances)
        one = difference(pool, truth, drawn, chances, agree).linearised(accuracy, TAIL)
        errors.append(one.value - (truth == pool.predictions).mean())
        variances.append(one.groups[0].shown)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / 600**0.5
    assert np.mean(variances) == pytest.approx(np.var(errors), rel=0.2)


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


def test_the_worked_example_of_the_documentation():
    """docs/assured.md: five points of sizes 1, 1, 1, 2, 2, threshold 0.9, belief 0.9 everywhere (V5)."""
    pool = altmas.Pool(None, [0, 0, 0, 0, 0], classes=[0, 1])
    truth = np.array([0, 1, 0, 0, 0])
    chances = -np.expm1(-0.9 * np.array([1, 1, 1, 2, 2]))
    np.testing.assert_allclose(chances, [0.59, 0.59, 0.59, 0.83, 0.83], atol=0.005)
    found = difference(pool, truth, np.array([3, 1, 4]), chances, np.full(5, 0.9))
    assert np.trace(found.expected) == pytest.approx(3.8)
    assert np.trace(found.correction) == pytest.approx(-1.07, abs=0.005)
    assert found.linearised(metric_set(["accuracy"], pool)[0], TAIL).value == pytest.approx(0.5465, abs=1e-4)


def test_stages_count_by_their_labels_and_a_complete_one_alone():
    """(V6): two stages of 100 and 90 points with 10 and 30 labels; once the second is complete it counts alone."""
    pool, truth = world(n=100)
    known = np.full(100, -1)
    known[:40] = truth[:40]
    first = np.ones(100, bool)
    second = np.arange(100) >= 10
    flat = belief(pool, np.full(100, 0.8), 3)

    def sample(population, rows, gain):
        exposure = np.where(population, 0.3, 0.0)
        stage = Stage(population, np.ones(100), np.zeros(100), rows, exposure, gain)
        return StageSample(stage, flat, (known >= 0) & ~population, rows)

    both = [sample(first, np.arange(10), 1.0), sample(second, np.arange(10, 40), 2.0)]
    found = Difference(both, pool.predictions, known, np.ones(100, bool), np.zeros(0, np.int64))
    worth = np.array([10 / (100 * 90), 2 * 30 / (90 * 60)])
    np.testing.assert_allclose(found.shares, worth / worth.sum())
    known = truth.copy()
    both = [sample(first, np.arange(10), 1.0), sample(second, np.arange(10, 100), 1.0)]
    whole = Difference(both, pool.predictions, known, np.ones(100, bool), np.zeros(0, np.int64))
    assert whole.shares[1] > 1 - 1e-9
