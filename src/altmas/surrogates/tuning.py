"""Learning rate, epochs and dropout by Bayesian optimisation (docs/equations.md A.4; the paper names Snoek 2012).

The paper says that they were tuned, but neither where, by which objective nor when. Here: log10 learning rate in
[-4, -2], epochs in [20, 300], dropout in [0.05, 0.6]; a Gaussian process with one Matern-5/2 length scale for each and
expected improvement; 5 random and 15 guided trials; the objective is the 3-fold cross-validated negative log likelihood
of the mean prediction over the draws, on true labels only.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from altmas.data.features import Rows
from altmas.surrogates.mc_dropout import MCDropout
from altmas.surrogates.minibatches import Array, Training

RANDOM_TRIALS, GUIDED_TRIALS, FOLDS = 5, 15, 3
LEAST = 1e-12
"""Probabilities below this count as this: one impossible label should not decide."""


class Tuned(NamedTuple):
    """The options that did best, and their negative log likelihood."""

    dropout: float
    training: Training
    loss: float

    def info(self) -> dict[str, float]:
        """The same for people and files."""
        return {
            "learning_rate": self.training.learning_rate,
            "epochs": self.training.epochs,
            "dropout": self.dropout,
            "loss": self.loss,
        }


def tuned(x: Rows, y: Array, n_classes: int, training: Training, draws: int, rng: np.random.Generator) -> Tuned:
    """The best of twenty trials for a dropout network on these labels; what is not tuned stays as in `training`."""
    from bayes_opt import BayesianOptimization
    from bayes_opt.acquisition import ExpectedImprovement
    from sklearn.gaussian_process.kernels import Matern

    folds = rng.permutation(np.arange(len(y)) % FOLDS)
    seed = int(rng.integers(2**31))
    tried: list[Tuned] = []

    def trial(rate: float, epochs: float, dropout: float) -> float:
        """Minus the loss at a point of the unit cube."""
        surrogate = options_at(rate, epochs, dropout, training)
        loss = held_out_loss(surrogate, x, y, n_classes, folds, draws, np.random.default_rng(seed))
        tried.append(Tuned(surrogate.dropout, surrogate.training, loss))
        return -loss

    search = BayesianOptimization(
        trial,
        {"rate": (0.0, 1.0), "epochs": (0.0, 1.0), "dropout": (0.0, 1.0)},
        acquisition_function=ExpectedImprovement(xi=0.0),
        random_state=seed,
        verbose=0,
        allow_duplicate_points=True,
    )
    search.set_gp_params(kernel=Matern(length_scale=np.ones(3), nu=2.5), normalize_y=True)
    search.maximize(init_points=RANDOM_TRIALS, n_iter=GUIDED_TRIALS)
    return min(tried, key=lambda one: one.loss)


def options_at(rate: float, epochs: float, dropout: float, training: Training) -> MCDropout:
    """The surrogate at a point of the unit cube."""
    learning_rate = round(float(10 ** (-4 + 2 * rate)), 7)
    return MCDropout(
        round(float(0.05 + 0.55 * dropout), 4),
        replace(training, learning_rate=learning_rate, epochs=round(20 + 280 * float(epochs))),
    )


def held_out_loss(
    surrogate: MCDropout, x: Rows, y: Array, n_classes: int, folds: Array, draws: int, rng: np.random.Generator
) -> float:
    """Mean -ln p(y) of each label under a network that was trained on the other folds."""
    losses: list[Any] = []
    for fold in np.unique(folds):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(train) == 0:
            continue
        fitted = surrogate.fit(np.asarray(x[train], np.float32), y[train], n_classes, rng)
        mean = fitted.draws(draws, rng)(np.asarray(x[test], np.float32)).mean(0)
        losses.append(-np.log(np.maximum(mean[np.arange(len(test)), y[test]], LEAST)))
    return float(np.concatenate(losses).mean())
