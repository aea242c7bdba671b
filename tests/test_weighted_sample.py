"""Weights, tables and variances of (C1)-(C4), (C8)-(C11): worked numbers and simulation."""

import numpy as np
import pytest

import altmas
from altmas.history import Batch, History
from altmas.methods import Task, method_named
from altmas.methods.related.oasis import stratum_squares
from altmas.methods.related.ppi import power_of, powered_mean
from altmas.methods.related.proxy import phi_moments, score_belief
from altmas.methods.related.replacement import draw_with_replacement, replacement_sample
from altmas.methods.related.sawade import f_chances, optimal_chances
from altmas.metrics import metric_set, table_of
from altmas.simulate import label_until
from altmas.weighted import draws_of
from tests.closed_forms import optimal_variance, phi_of, risk_chances, self_normalised_variance

E = np.array([0.02, 0.05, 0.1, 0.3, 0.45, 0.5])


def scored_pool(n: int = 2000, seed: int = 0) -> altmas.Pool:
    """Two classes; the score of class 1 is a probability, the model says 1 above one half."""
    p = np.random.default_rng(seed).uniform(0.01, 0.99, n)
    return altmas.Pool(None, (p > 0.5).astype(int), scores=np.column_stack([1 - p, p]), classes=[0, 1])


# ---------------------------------------------------------------- (C4)


def test_phi_is_the_closed_form_of_each_metric():
    pool = altmas.Pool(None, [0, 1, 2, 0], classes=[0, 1, 2])
    table = np.array([[20.0, 3, 1], [4, 15, 2], [0, 5, 10]])
    shares = table / table.sum()
    a, c = np.indices((3, 3))
    r, s, k = shares.sum(1), shares.sum(0), 1
    p, rec = shares[k, k] / r[k], shares[k, k] / s[k]
    f = 2 * shares[k, k] / (r[k] + s[k])
    hit = (a == k) & (c == k)
    expected = {
        "accuracy": (a == c) - np.trace(shares),
        "precision[1]": (a == k) * ((c == k) - p) / r[k],
        "recall[1]": (c == k) * ((a == k) - rec) / s[k],
        "f1[1]": (2.0 * hit - f * ((a == k) * 1.0 + (c == k))) / (r[k] + s[k]),
    }
    for metric in metric_set(list(expected), pool):
        np.testing.assert_allclose(phi_of(metric, shares), expected[metric.name], atol=1e-12)


def test_a_mean_over_classes_has_an_interval_once_they_have_labels():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 10, 400)
    scores = rng.dirichlet(np.ones(10), 400) + 2 * np.eye(10)[truth]
    pool = altmas.Pool(None, scores.argmax(1), scores=scores / scores.sum(1, keepdims=True), classes=list(range(10)))
    task, method = Task(pool, metric_set(["macro_f1", "accuracy"], pool)), method_named("stratified")
    history = label_until(method, task, History(400), 59, 59, truth.__getitem__)
    few, plain = method.estimate(task, history)
    assert few.value > 0 and np.isnan(few.low) and few.interval == "none" and "60 would do" in few.note
    assert plain.low < plain.value and plain.interval == "fixed-n"
    enough = method.estimate(task, label_until(method, task, history, 60, 1, truth.__getitem__))[0]
    assert enough.low < enough.value <= enough.high


# ---------------------------------------------------------------- (C8)-(C11): worked numbers


def test_risk_chances_and_variances_are_the_worked_ones():
    risk = E.mean()
    assert risk == pytest.approx(0.236667, abs=5e-7)
    q = risk_chances(E)
    np.testing.assert_allclose(q, [0.1056, 0.1174, 0.1349, 0.1893, 0.2215, 0.2313], atol=5e-5)
    squares = E * (1 - risk) ** 2 + (1 - E) * risk**2
    assert risk * (1 - risk) == pytest.approx(0.180656, abs=5e-7)
    assert squares.mean() == pytest.approx(0.180656, abs=5e-7)
    assert optimal_variance(squares) == pytest.approx(0.165867, abs=5e-7)


@pytest.mark.parametrize(
    ("alpha", "f", "q"),
    [
        (0.5, 0.779221, (0.28810, 0.35561, 0.25300, 0.10329)),
        (0.0, 0.810811, (0.18864, 0.15403, 0.46677, 0.19056)),
        (1.0, 0.75, (0.39564, 0.60436, 0.0, 0.0)),
    ],
)
def test_f_chances_are_the_worked_ones(alpha, f, q):
    value, chances = f_chances(np.array([0.9, 0.6, 0.3, 0.05]), np.array([True, True, False, False]), alpha)
    assert value == pytest.approx(f, abs=5e-7)
    np.testing.assert_allclose(chances, q, atol=5e-6)


@pytest.mark.parametrize("metric", ["accuracy", "f1[1]", "precision[1]", "recall[1]"])
def test_closed_forms_are_the_general_optimum(metric):
    pool = scored_pool()
    task = Task(pool, metric_set([metric], pool))
    general = optimal_chances(task, History(len(pool)))
    p, called = pool.scores[:, 1], pool.predictions == 1
    alpha = {"f1[1]": 0.5, "precision[1]": 1.0, "recall[1]": 0.0}.get(metric)
    closed = risk_chances(np.where(called, 1 - p, p)) if alpha is None else f_chances(p, called, alpha)[1]
    np.testing.assert_allclose(general / general.sum(), closed, rtol=1e-4, atol=1e-12)


def test_equal_probabilities_give_uniform_draws_and_the_variance_of_random_sampling():
    pool = altmas.Pool(None, [0] * 50, scores=np.tile([0.8, 0.2], (50, 1)), classes=[0, 1])
    q = optimal_chances(Task(pool, metric_set(["accuracy"], pool)), History(50))
    np.testing.assert_allclose(q, q[0])
    right = np.array([1, 1, 0, 1, 0, 1, 1, 1.0])
    phi = right - right.mean()
    assert self_normalised_variance(np.full(8, 3.0), phi) == pytest.approx(right.mean() * (1 - right.mean()) / 8)


def test_importance_weighted_variance_and_coverage_are_as_simulated():
    """4000 runs of 400 draws: n * variance 0.1807 uniform and 0.1659 optimal, coverage 0.95."""
    rng = np.random.default_rng(3)
    for q, expected in ((np.full(6, 1 / 6), 0.180656), (risk_chances(E), 0.165867)):
        drawn = rng.choice(6, (4000, 400), p=q)
        wrong = rng.random(drawn.shape) < E[drawn]
        weights = (1 / 6) / q[drawn]
        estimate = (weights * wrong).sum(1) / weights.sum(1)
        assert 400 * estimate.var() == pytest.approx(expected, rel=4 / np.sqrt(2000))
        variance = [self_normalised_variance(w, o - e) for w, o, e in zip(weights, wrong, estimate, strict=True)]
        covered = np.abs(estimate - E.mean()) <= 1.966 * np.sqrt(variance)
        assert covered.mean() == pytest.approx(0.95, abs=0.015)


def test_scores_expect_the_moments_of_phi():
    pool = scored_pool(300)
    metric = metric_set(["f1[1]"], pool)[0]
    p = pool.scores
    table = np.zeros((2, 2))
    np.add.at(table, pool.predictions, p)
    phi = phi_of(metric, table / table.sum()) / table.sum()
    mean, square, _ = phi_moments(metric, score_belief(pool), None)
    np.testing.assert_allclose(mean, (p * phi[pool.predictions]).sum(1), atol=1e-9)
    np.testing.assert_allclose(square, (p * phi[pool.predictions] ** 2).sum(1), rtol=1e-4, atol=1e-12)


# ---------------------------------------------------------------- with replacement


def test_repeats_cost_nothing_and_count_again():
    chances = np.array([0.9, 0.05, 0.05])
    first = draw_with_replacement(chances, History(3), 1, np.random.default_rng(0))
    history = History(3, (first,), {int(first.indices[0]): 0})
    second = draw_with_replacement(chances, history, 2, np.random.default_rng(1))
    assert sorted([*first.indices, *second.indices]) == [0, 1, 2]
    sequence = second.record["sequence"]
    assert len(sequence) > 2
    assert set(sequence[np.isin(sequence, first.indices)].tolist()) == set(first.indices.tolist())
    done = History(3, (first, second), {0: 0, 1: 1, 2: 0})
    assert len(replacement_sample(done).rows) == 1 + len(sequence)


def test_the_last_points_come_up_soon_even_if_they_are_hardly_ever_drawn():
    chances = np.full(1000, 1e-9)
    chances[:10] = 0.1
    history = History(1000, (), {})
    batch = draw_with_replacement(chances, history, 40, np.random.default_rng(0))
    assert len(set(batch.indices.tolist())) == 40
    assert len(batch.record["sequence"]) < 40 * 60
    assert (batch.record["chances"] > 0).all()


# ---------------------------------------------------------------- LURE, OASIS, PPI: identities


def test_lures_weights_are_a_mean_of_unbiased_terms():
    """R^ = (1/M) sum v L = sum c_m A_m and sum c_m = 1 (peers 5.2)."""
    rng = np.random.default_rng(2)
    n, m = 40, 12
    rates, left, rows, chances = rng.uniform(0.2, 3, n), list(range(n)), [], []
    for _ in range(m):
        q = rates[left] / rates[left].sum()
        place = rng.choice(len(left), p=q)
        chances.append(q[place])
        rows.append(left.pop(place))
    batch = Batch(np.array(rows), np.array(chances))
    draws = draws_of(History(n, (batch,), dict.fromkeys(rows, 0)))
    loss = rng.random(m)
    a = (loss * draws.tilt * (n - draws.place + 1) + np.cumsum(loss) - loss) / n
    assert draws.steps.sum() == pytest.approx(1)
    assert (draws.steps * a).sum() == pytest.approx((draws.weights * loss).mean())


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_oasis_with_a_stratum_for_each_point_is_the_optimum_for_f(alpha):
    p, called = np.array([0.9, 0.6, 0.3, 0.05]), np.array([True, True, False, False])
    f, q = f_chances(p, called, alpha)
    root = np.sqrt(stratum_squares(called.astype(float), p, f, alpha))
    np.testing.assert_allclose(root / root.sum(), q, atol=1e-12)


def test_ppi_trusts_a_perfect_guess_and_ignores_a_useless_one():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 500).astype(float)
    sample = truth[:60]
    assert power_of(sample, sample) == pytest.approx(1)
    estimate, variance = powered_mean(sample, sample, truth.mean(), 500, 1.0)
    assert (estimate, variance) == (pytest.approx(truth.mean()), pytest.approx(0))
    assert power_of(sample, np.zeros(60)) == 0
    estimate, variance = powered_mean(sample, np.zeros(60), 0.0, 500, 0.0)
    assert estimate == pytest.approx(sample.mean())
    assert variance == pytest.approx((1 - 60 / 500) * sample.var(ddof=1) / 60)


def test_uniform_chances_make_weighted_methods_agree_with_the_sample():
    """Scores that say nothing: lure is the plain share of the sample."""
    rng = np.random.default_rng(1)
    pool = altmas.Pool(None, [0, 1] * 100, scores=np.full((200, 2), 0.5), classes=[0, 1])
    truth = np.where(rng.random(200) < 0.8, pool.predictions, 1 - pool.predictions)
    task, method = Task(pool, metric_set(["accuracy"], pool), seed=1), method_named("lure")
    batch = method.propose(task, History(200), 50)
    history = History(200, (batch,), {int(i): int(truth[i]) for i in batch.indices})
    share = (truth == pool.predictions)[batch.indices].mean()
    assert method.estimate(task, history)[0].value == pytest.approx(share)
    table = table_of(pool.predictions[batch.indices], truth[batch.indices], 2)
    assert np.trace(table) / table.sum() == pytest.approx(share)
