"""What the answers of several models say about the truth before any label.

N points, C classes, K models. Where models agree they are probably right, and some deserve more trust than others:
    votes       share of the models that give each answer
    answers     P(y = c | answers) if model k answers a with chance theta_k[y, a], by expectation-maximisation (Dawid
                and Skene 1979). Models err together, so their evidence counts as that of `INDEPENDENT` models.
    scores      the mean of the log scores of the models that give some
None sees a label; the belief learns from labels how much each of them means.
"""

from collections.abc import Sequence

import numpy as np

from altmas.pool import Model
from altmas.types import Array

INDEPENDENT = 3.0
"""How many models that err independently all models together are worth; more made beliefs overconfident."""
STEPS, CLOSE = 30, 1e-4
"""Steps of the expectation-maximisation, and the change of a probability below which it has converged."""
COMPONENTS = 5
"""Directions in which models differ that the belief may learn from labels."""
SURE = 1e-6


def vote_shares(models: Sequence[Model], n_classes: int) -> Array:
    """(N, C) share of the models that give each answer, with half a vote for each class."""
    votes = np.full((len(models[0].predictions), n_classes), 0.5)
    rows = np.arange(len(votes))
    for model in models:
        votes[rows, model.predictions] += 1.0
    return np.asarray(votes / votes.sum(1, keepdims=True))


def dawid_skene(models: Sequence[Model], n_classes: int) -> Array:
    """(N, C) P(y = c | all answers), at most as sure as `INDEPENDENT` models would make it; needs three models."""
    believed = vote_shares(models, n_classes)
    temper = min(1.0, INDEPENDENT / len(models))
    for _ in range(STEPS):
        logs = np.tile(np.log((believed.sum(0) + 1.0) / (len(believed) + n_classes)), (len(believed), 1))
        for model in models:
            logs += temper * np.log(answer_chances(model.predictions, believed))[:, model.predictions].T
        updated = np.exp(logs - logs.max(1, keepdims=True))
        updated /= updated.sum(1, keepdims=True)
        change, believed = float(np.abs(updated - believed).max()), updated
        if change < CLOSE:
            break
    return np.asarray(np.maximum(believed, 1e-9))


def answer_chances(answers: Array, believed: Array) -> Array:
    """(C, C) theta[y, a]: how often a model answers a where the truth is believed to be y.

    Drawn towards errors that are the same for all classes, by as many points as there are classes.
    """
    n, n_classes = believed.shape
    counts = np.stack([np.bincount(answers, believed[:, c], n_classes) for c in range(n_classes)])
    right = float(np.trace(counts)) / n
    alike = np.full((n_classes, n_classes), (1 - right) / (n_classes - 1))
    np.fill_diagonal(alike, right)
    counts += n_classes * np.maximum(alike, 0.01)
    return np.asarray(counts / counts.sum(1, keepdims=True))


def mean_scores(models: Sequence[Model]) -> Array | None:
    """(N, C) the normalised geometric mean of the scores, or None if no model gives any."""
    logs = [np.log(np.maximum(model.scores, SURE)) for model in models if model.scores is not None]
    if not logs:
        return None
    mean = np.exp(sum(logs, np.zeros(1)) / len(logs))
    return np.asarray(mean / mean.sum(1, keepdims=True))


def difference_components(models: Sequence[Model], anchor: Array) -> Array:
    """(N, p) leading principal components of how far each model supports the anchor, unit variance.

    A model with scores supports it by their log odds, one without by whether it gives the same answer.
    """
    rows = np.arange(len(anchor))
    columns = np.empty((len(anchor), len(models)))
    for column, model in enumerate(models):
        if model.scores is None:
            columns[:, column] = model.predictions == anchor
        else:
            own = np.clip(model.scores[rows, anchor], SURE, 1 - SURE)
            columns[:, column] = np.log(own / (1 - own))
    columns -= columns.mean(0)
    columns /= np.maximum(columns.std(0), 1e-12)
    directions = np.linalg.eigh(columns.T @ columns)[1][:, ::-1][:, :COMPONENTS]
    components = columns @ directions
    spread = components.std(0)
    return np.asarray(components[:, spread > 1e-9] / spread[spread > 1e-9])
