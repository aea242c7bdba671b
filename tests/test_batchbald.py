"""What a batch tells together, and the methods that choose by disagreement: printed fixtures and brute force."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import altmas
from altmas.history import History
from altmas.methods.paper.ase import Ase
from altmas.methods.paper.batch_information import batch_bald, every_state, extended, gains, no_points, sampled_states
from altmas.methods.paper.batchbald import BatchBald, probabilities_at
from altmas.methods.paper.information import bald
from altmas.methods.paper.rounds import round_at
from altmas.methods.paper.xwed import Xwed, wrong_disagreement, xwed
from altmas.metrics import metric_set
from altmas.task import Task

FIRST, SECOND, EVEN = [[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.3, 0.7]], [[0.5, 0.5], [0.5, 0.5]]


def pair(one, other):
    return np.stack([np.array(one), np.array(other)], axis=1)  # (M, 2, C)


def joint_entropy(probs):
    """H(y_B) of (B5) by brute force over every labelling."""
    draws, b, n_classes = probs.shape
    states = np.array(list(product(range(n_classes), repeat=b)))
    p = probs[:, np.arange(b), states].prod(-1).mean(0)
    return float(-(p * np.log(p)).sum())


def information(probs):
    """a(B) of (B4) by brute force."""
    return joint_entropy(probs) + float((probs * np.log(probs)).sum(-1).mean(0).sum())


@pytest.mark.parametrize(
    "other, joint, apart", [(FIRST, 0.5143747, 0.7361284), (SECOND, 0.4173217, 0.5005697), (EVEN, 0.3680642, 0.3680642)]
)
def test_two_points_tell_less_together_than_apart_to_the_printed_digits(other, joint, apart):
    probs = pair(FIRST, other)
    found = batch_bald(probs, 2, np.random.default_rng(0))
    assert found.added.sum() == pytest.approx(joint, abs=5e-8)
    assert bald(probs).sum() == pytest.approx(apart, abs=5e-8)
    assert information(probs) == pytest.approx(joint, abs=5e-8)


def test_a_batch_of_one_is_bald():
    probs = np.random.default_rng(1).dirichlet(np.ones(4), (9, 30))
    found = batch_bald(probs, 1, np.random.default_rng(0))
    assert_allclose(gains(no_points(9), probs), bald(probs), atol=1e-13)
    assert found.positions.tolist() == [int(bald(probs).argmax())]


def test_looking_again_only_where_it_matters_gives_the_greedy_batch():
    probs = np.random.default_rng(2).dirichlet(np.full(3, 0.4), (12, 40))
    found = batch_bald(probs, 5, np.random.default_rng(0), states=10_000, together=3)
    chosen: list[int] = []
    for _ in range(5):
        rest = [i for i in range(40) if i not in chosen]
        chosen.append(max(rest, key=lambda i: information(probs[:, [*chosen, i]])))
    assert found.positions.tolist() == chosen
    assert found.added.sum() == pytest.approx(information(probs[:, chosen]), abs=1e-10)


def test_sampled_states_agree_with_all_states():
    """(B6), |B| = 3 + 1, C = 4, M = 20, S = 20 000: 5.3421 sampled and 5.3430 exact elsewhere; here within 0.01."""
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.ones(4), (20, 4))
    exact = no_points(20)
    for i in range(3):
        exact = every_state(exact, probs[:, i])
    drawn = sampled_states(probs[:, :3], 20_000, rng)
    doubt = -(probs[:, 3] * np.log(probs[:, 3])).sum(-1).mean()
    for states in (exact, drawn):
        assert states.posterior.sum(1) == pytest.approx(1, abs=1e-6)
        total = states.entropy + gains(states, probs[:, 3:])[0] + doubt
        assert total == pytest.approx(joint_entropy(probs), abs=1e-12 if states is exact else 0.01)


def test_long_batches_do_not_underflow():
    rng = np.random.default_rng(4)
    probs = rng.dirichlet(np.full(10, 0.05), (20, 400)) + 1e-9
    probs /= probs.sum(-1, keepdims=True)
    states = sampled_states(probs, 60, rng)
    assert np.isfinite(states.posterior).all() and states.log_p.max() < -100
    found = batch_bald(probs, 60, rng, states=200)
    assert len(set(found.positions.tolist())) == 60
    assert (np.diff(found.added) < 0.2).all()  # submodular up to the noise of 200 states
    assert found.added.sum() <= np.log(20) + 1e-9  # at most ln M


def test_a_sampled_label_is_one_that_its_network_can_give():
    certain = np.array([[1.0, 0.0], [0.0, 1.0]])
    states = extended(
        sampled_states(np.zeros((2, 0, 2)), 10, np.random.default_rng(0)), certain, np.random.default_rng(0)
    )
    assert_array_equal(states.posterior, np.eye(2)[np.arange(10) % 2])


def test_xwed_counts_only_disagreement_on_wrong_classes():
    probs = np.array([[[0.6, 0.3, 0.1]], [[0.2, 0.5, 0.3]]])
    mean = probs[:, 0].mean(0)
    doubt = -mean * np.log(mean) + (probs[:, 0] * np.log(probs[:, 0])).mean(0)
    assert xwed(probs, np.array([[0.0, 1.0, 1.0]])) == pytest.approx([doubt[1] + doubt[2]])
    assert xwed(probs, np.ones((1, 3))) == pytest.approx(bald(probs))
    assert xwed(probs[[0, 0]], np.ones((1, 3))) == pytest.approx([0.0])


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 3, 300)
    x = np.eye(3)[truth] * 2 + rng.normal(0, 0.7, (300, 3))
    x[:20] = x[0]  # twenty copies of one point
    truth[:20] = truth[0]
    predictions = np.where(rng.random(300) < 0.2, (truth + 1) % 3, truth)
    pool = altmas.Pool(x, predictions, classes=[0, 1, 2], slices={"site": np.where(np.arange(300) < 150, "a", "b")})
    told = {int(i): int(truth[i]) for i in rng.permutation(np.arange(20, 300))[:60]}
    return pool, truth, History(300, (), told)


@pytest.mark.paper
def test_batchbald_takes_few_copies_of_one_point(world):
    pool, _, history = world
    task = Task(pool, metric_set("accuracy", pool))
    batch = BatchBald(max_steps=200, initial=20).propose(task, history, 12)
    assert batch.info["chosen"] == "by joint information"
    assert (batch.indices < 20).sum() <= 3
    now = round_at(task, history, BatchBald(max_steps=200).settings)
    probs = probabilities_at(now.belief, batch.indices)
    assert_allclose(bald(probs), now.belief.information.of_label[batch.indices], atol=1e-6)


@pytest.mark.paper
def test_ase_of_accuracy_is_the_mean_belief_in_the_model(world):
    pool, _, history = world
    task = Task(pool, metric_set(["accuracy", "f1[1]"], pool))
    found = Ase(max_steps=200).estimate(task, history)
    now = round_at(task, history, Ase(max_steps=200).settings)
    probs = probabilities_at(now.belief, np.arange(300)).mean(0)
    assert found["accuracy"].value == pytest.approx(probs[np.arange(300), pool.predictions].mean(), abs=1e-6)
    right, labelled = probs[:, 1][pool.predictions == 1].sum(), probs[:, 1].sum()
    expected = 2 * right / ((pool.predictions == 1).sum() + labelled)
    assert found["f1[1]"].value == pytest.approx(expected, abs=1e-6)
    assert found["accuracy"].interval == "none" and "belief" in found["accuracy"].note


@pytest.mark.paper
@pytest.mark.parametrize("stochastic", [False, True])
def test_xwed_looks_only_where_a_metric_looks(world, stochastic):
    pool, _, history = world
    task = Task(pool, metric_set("accuracy@site=a", pool))
    method = Xwed(max_steps=200, initial=20, stochastic=stochastic)
    batch = method.propose(task, history, 10)
    assert (pool.slices["site"][batch.indices] == "a").all()
    scores = wrong_disagreement(round_at(task, history, method.settings).belief)
    assert scores[batch.indices].mean() > scores[history.open].mean()
    if not stochastic:
        assert (np.diff(scores[batch.indices]) <= 0).all()


def test_options_out_of_range_are_refused():
    with pytest.raises(altmas.errors.PlanError, match="states 0 is out of range"):
        BatchBald(states=0)
    with pytest.raises(altmas.errors.PlanError, match="draws 0 is out of range"):
        Ase(draws=0)


def test_labellings_that_cannot_be_are_left_out():
    certain = np.array([[1.0, 0.0], [1.0, 0.0]])
    states = every_state(no_points(2), certain)
    assert len(states.log_p) == 1 and states.entropy == 0
