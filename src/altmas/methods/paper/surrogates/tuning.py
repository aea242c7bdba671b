"""Learning rate, epochs and dropout by Bayesian optimisation (docs/equations.md A.4; the paper names Snoek 2012).

The paper says that they were tuned, but neither where, by which objective nor when. Here: learning rate from 1e-4 to
1e-2, epochs from 20 to 300, dropout from 0.05 to 0.6, each on a log scale; a Gaussian process with one Matern-5/2
length scale for each and expected improvement; 5 random and 15 guided trials; the objective is what 3-fold
cross-validated predictions of the true labels cost: by default their negative log likelihood under the mean over the
draws (`log_loss`), or any other function of the draws, such as how far metrics estimated from them are off.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from altmas.methods.paper.surrogates.mc_dropout import MCDropout
from altmas.methods.paper.surrogates.minibatches import Training
from altmas.pool.features import Rows
from altmas.types import Array

RANDOM_TRIALS, GUIDED_TRIALS, FOLDS = 5, 15, 3
RANGES = {"learning_rate": (1e-4, 1e-2), "epochs": (20, 300), "dropout": (0.05, 0.6)}
"""Where each option is looked for, on a log scale."""
LEAST = 1e-12
"""Probabilities below this count as this: one impossible label should not decide."""


Objective = Callable[[Array, Array], float]
"""(probabilities (M, n, C) of labels that the networks did not see, their positions (n,)) -> what they cost."""


class Tuned(NamedTuple):
    """The options of a trial, and what they cost."""

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


def tuned(
    x: Rows,
    y: Array,
    n_classes: int,
    training: Training,
    draws: int,
    rng: np.random.Generator,
    objective: Objective | None = None,
) -> Tuned:
    """The best of twenty trials for a dropout network on these labels; what is not tuned stays as in `training`."""
    tried = trials(x, y, n_classes, training, draws, rng, RANDOM_TRIALS, GUIDED_TRIALS, objective=objective)
    return min(tried, key=lambda trial: trial.loss)


def trials(
    x: Rows,
    y: Array,
    n_classes: int,
    training: Training,
    draws: int,
    rng: np.random.Generator,
    n_random: int,
    n_guided: int,
    known: Sequence[float] = (),
    objective: Objective | None = None,
) -> Iterator[Tuned]:
    """Every trial in order: random points of the ranges, then those of highest expected improvement.

    known      losses of the first trials if they were made before: they are not made again, and the search goes on
               from them exactly as it would have
    objective  what is made small; by default the negative log likelihood of the labels
    """
    folds = rng.permutation(np.arange(len(y)) % FOLDS)
    seed = int(rng.integers(2**31))
    search, points = _search(seed), np.random.default_rng(seed)
    for number in range(n_random + n_guided):
        at = dict(zip(RANGES, points.random(len(RANGES)), strict=True)) if number < n_random else search.suggest()
        surrogate = options_at(**at, training=training)
        if number < len(known):
            loss = known[number]
        else:
            loss = held_out_loss(surrogate, x, y, n_classes, folds, draws, np.random.default_rng(seed), objective)
        search.register(at, -loss)
        yield Tuned(surrogate.dropout, surrogate.training, loss)


def _search(seed: int) -> Any:
    """Expected improvement over the unit cube."""
    from bayes_opt import BayesianOptimization
    from bayes_opt.acquisition import ExpectedImprovement
    from sklearn.gaussian_process.kernels import Matern

    search = BayesianOptimization(
        None,
        dict.fromkeys(RANGES, (0.0, 1.0)),
        acquisition_function=ExpectedImprovement(xi=0.0),
        random_state=seed,
        verbose=0,
        allow_duplicate_points=True,
    )
    search.set_gp_params(kernel=Matern(length_scale=np.ones(len(RANGES)), nu=2.5), normalize_y=True)
    return search


def options_at(learning_rate: float, epochs: float, dropout: float, training: Training) -> MCDropout:
    """The surrogate at a point of the unit cube, whose sides are the ranges on log scales."""

    def at(name: str, share: float) -> float:
        low, high = RANGES[name]
        return float(low * (high / low) ** float(share))

    return MCDropout(
        round(at("dropout", dropout), 4),
        replace(
            training, learning_rate=round(at("learning_rate", learning_rate), 7), epochs=round(at("epochs", epochs))
        ),
    )


def held_out_loss(
    surrogate: MCDropout,
    x: Rows,
    y: Array,
    n_classes: int,
    folds: Array,
    draws: int,
    rng: np.random.Generator,
    objective: Objective | None = None,
) -> float:
    """What the labels cost under networks that were trained on the other folds: by default the mean of -ln p(y)."""
    parts, tested = [], []
    for fold in np.unique(folds):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(train) == 0:
            continue
        fitted = surrogate.fit(np.asarray(x[train], np.float32), y[train], n_classes, rng)
        parts.append(fitted.draws(draws, rng)(np.asarray(x[test], np.float32)))
        tested.append(test)
    probs, rows = np.concatenate(parts, axis=1), np.concatenate(tested)
    return log_loss(probs, y[rows]) if objective is None else objective(probs, rows)


def log_loss(probs: Array, y: Array) -> float:
    """Mean -ln p(y) of the mean over the draws (M, n, C)."""
    mean = probs.mean(0)
    return float(-np.log(np.maximum(mean[np.arange(len(y)), y], LEAST)).mean())
