"""Bayes by Backprop: the penalty to its printed digits, and draws that mean what they say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from altmas.methods import METHODS
from altmas.methods.paper.information import bald
from altmas.methods.paper.surrogates import BayesByBackprop, Training
from altmas.methods.paper.surrogates.bayes_by_backprop import BayesianNetwork, Prior, batch_share, log_ratio
from altmas.methods.paper.surrogates.minibatches import segments
from altmas.methods.paper.surrogates.mlp import Weights


def test_batch_shares_to_their_printed_digits():
    shares = batch_share(np.arange(1, 5), 4)
    assert_allclose(shares, [0.5333, 0.2667, 0.1333, 0.0667], atol=5e-5)
    assert shares.sum() == pytest.approx(1)
    assert batch_share(np.arange(1, 2001), 2000).sum() == pytest.approx(1)  # 2^2000 is never computed


def test_the_penalty_is_the_divergence_on_average():
    """KL(N(.3, .5^2) || N(0, 1)) = .363147, by 400 000 draws (standard error .0011); no narrow part."""
    exact = -np.log(0.5) + (0.5**2 + 0.3**2) / 2 - 0.5
    assert exact == pytest.approx(0.363147, abs=5e-7)
    w = np.random.default_rng(0).normal(0.3, 0.5, 400_000)
    assert log_ratio(np, w, 0.3, 0.5, 1 - 1e-15, 0.0, -6.0).mean() == pytest.approx(exact, abs=0.005)


def test_the_prior_is_a_mixture_of_two_normal_distributions():
    w, prior = np.array([0.001, 0.5]), Prior(wide=0.25, log_wide_sd=-1.0, log_narrow_sd=-6.0)
    q = np.exp(-0.5 * ((w - 0.1) / 0.2) ** 2) / 0.2
    wide, narrow = (np.exp(-0.5 * (w / s) ** 2) / s for s in np.exp([-1.0, -6.0]))
    expected = np.log(q / (0.25 * wide + 0.75 * narrow))
    assert_allclose(log_ratio(np, w, 0.1, 0.2, prior.wide, prior.log_wide_sd, prior.log_narrow_sd), expected)


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    x = rng.normal(size=(80, 4)).astype(np.float32)
    x[:, 0] += 3 * y
    return x - x.mean(0), y


@pytest.fixture(scope="module")
def fitted(clouds):
    return BayesByBackprop(Training(epochs=60, batch=16)).fit(*clouds, 2, np.random.default_rng(1))


@pytest.mark.paper
def test_without_spread_the_draws_agree(clouds, fitted):
    x, y = clouds
    still = BayesianNetwork(fitted.trained, Weights(*(0 * part for part in fitted.spread)))
    probs = still.draws(5, np.random.default_rng(0))(x)
    assert_allclose(bald(probs), 0, atol=1e-7)
    assert_array_equal(probs[0], fitted.mean(x))
    assert (fitted.mean(x).argmax(1) == y).mean() > 0.85


@pytest.mark.paper
def test_far_from_the_labels_the_draws_disagree_more(clouds, fitted):
    x, _ = clouds
    draws = fitted.draws(30, np.random.default_rng(0))
    far = 3 * np.random.default_rng(2).normal(size=(200, 4)).astype(np.float32)
    far[:, 0] = 0  # between the clouds, away in every other direction
    assert bald(draws(far)).mean() > 1.5 * bald(draws(x)).mean() > 0


@pytest.mark.paper
def test_the_penalty_pulls_weights_and_moves_spreads(clouds):
    x, y = clouds
    training = Training(epochs=40, batch=16)
    pulled = BayesByBackprop(training, Prior(wide=0.999, log_wide_sd=-5.0)).fit(x, y, 2, np.random.default_rng(1))
    free = BayesByBackprop(training, Prior(wide=0.999, log_wide_sd=2.0)).fit(x, y, 2, np.random.default_rng(1))
    size = [np.abs(one.trained.weights.w2).mean() for one in (pulled, free)]
    assert size[0] < 0.8 * size[1]
    assert pulled.spread.w2.mean() < np.logaddexp(0, -4.0) < free.spread.w2.mean()


def test_segments_visit_every_example_once_before_any_twice():
    x = np.arange(10, dtype=np.float32)[:, None]
    (only,) = segments(x, np.arange(10), None, Training(epochs=3, batch=5, max_steps=6), np.random.default_rng(0))
    assert only.steps == 6 and only.x.shape[1:] == (5, 1)
    for epoch in only.targets[:6].reshape(3, 10):
        assert sorted(epoch.tolist()) == list(range(10))
    assert_array_equal(only.x[..., 0], only.targets)
    assert (only.x[6:] == 0).all()


def test_methods_take_it_by_name():
    method = METHODS["bald"](surrogate="bayes_by_backprop")
    assert isinstance(method.settings.make(), BayesByBackprop)
