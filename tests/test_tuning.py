"""Tuning of learning rate, epochs and dropout."""

import numpy as np
import pytest

from altmas.surrogates import MCDropout, Training, tuning
from altmas.surrogates.tuning import held_out_loss, options_at, tuned


def clouds(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    x[:, 0] += 3 * y
    return x, y


def test_the_unit_cube_spans_the_ranges():
    low, high = options_at(0, 0, 0, Training()), options_at(1, 1, 1, Training())
    assert (low.training.learning_rate, low.training.epochs, low.dropout) == (1e-4, 20, 0.05)
    assert (high.training.learning_rate, high.training.epochs, high.dropout) == (1e-2, 300, 0.6)
    assert options_at(0.5, 0, 0, Training(batch=16)).training.batch == 16


def test_every_label_is_predicted_by_a_network_that_has_not_seen_it():
    x, y = clouds(12)
    seen = []

    class Spy(MCDropout):
        def fit(self, x, y, n_classes, rng, weights=None):
            seen.append(x)
            return super().fit(x, y, n_classes, rng, weights)

    folds = np.arange(12) % 3
    loss = held_out_loss(Spy(0.1, Training(epochs=5)), x, y, 2, folds, 4, np.random.default_rng(0))
    assert loss > 0
    for fold, trained in enumerate(seen):
        assert len(trained) == 8
        assert not (trained[:, None] == x[folds == fold]).all(-1).any()


def test_more_training_is_better_than_none():
    x, y = clouds()
    folds = np.arange(60) % 3
    untrained, trained = (
        held_out_loss(MCDropout(0.1, training), x, y, 2, folds, 4, np.random.default_rng(0))
        for training in (Training(epochs=1, learning_rate=1e-6), Training(epochs=40))
    )
    assert trained < 0.6 * untrained


def test_the_best_trial_wins_and_the_same_seed_finds_it_again(monkeypatch):
    """On a known landscape, in place of networks: dropout 0.25 and a learning rate of 1e-3 are best."""
    monkeypatch.setattr(tuning, "GUIDED_TRIALS", 8)
    x, y = clouds()
    tried = []

    def landscape(surrogate, *_):
        loss = (surrogate.dropout - 0.25) ** 2 * 20 + (np.log10(surrogate.training.learning_rate) + 3) ** 2
        tried.append(loss)
        return float(loss)

    monkeypatch.setattr(tuning, "held_out_loss", landscape)
    first, again = (tuned(x, y, 2, Training(), 4, np.random.default_rng(5)) for _ in range(2))
    assert first == again
    assert len(tried) == 26
    assert first.loss == min(tried) < min(tried[:5])  # guided trials beat the random ones
    assert first.dropout == pytest.approx(0.25, abs=0.15)
    assert first.info() == {
        "learning_rate": first.training.learning_rate,
        "epochs": first.training.epochs,
        "dropout": first.dropout,
        "loss": first.loss,
    }
