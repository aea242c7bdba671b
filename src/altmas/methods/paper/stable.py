"""Pseudo-labels whose number does not leap from round to round (preset "stable"; docs/equations.md A.3, step 7).

The idea is the paper's: where the model under test is probably right, its answer is lent to the training. What differs
is where that is learned from. The agree network of the paper has a few disagreements to learn from and a quarter of the
labels to set a threshold by. Here

score      what networks trained on the true labels think of the model's answer; each label is scored by a network that
           did not see it, a point of the pool by the mean over the networks
precision  the lower bound of a share, over labels that were drawn uniformly: those that were chosen because the model
           may be wrong there do not represent the pool
threshold  the one with the largest prec^power * #U, instead of the one of highest precision: a maximum that moves
           little when one label is added
members    drawn at random from the points above the threshold, not the best-scored: a network that is taught only what
           it is sure of learns nothing about the rest. The worse the model is as a whole, the fewer are drawn, because
           the points on which a bad model is right are not a sample of the pool
"""

from math import floor

import numpy as np

from altmas.compute import in_order
from altmas.methods.paper.augmentation import NOTHING, STEP, Augmentation, Ints, jeffreys_lower, pseudo_count
from altmas.methods.paper.surrogates import Fitted, Surrogate
from altmas.pool import Pool
from altmas.pool.features import Features
from altmas.types import Array

FOLDS = 4
"""Networks that the score is averaged over."""


def augment_stably(
    pool: Pool, known: Ints, uniform: Ints, surrogate: Surrogate, *, power: float, rng: np.random.Generator
) -> Augmentation:
    """The set S for the labels known now (-1 where unknown), of which those of the rows `uniform` represent the pool.

    Without a uniform label all of them are taken to.
    """
    labelled, unlabelled = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
    if len(labelled) < 2 * FOLDS or len(unlabelled) == 0:
        return NOTHING
    held_out, everywhere = crossed_beliefs(pool, known, surrogate, rng)
    agree = pool.predictions[labelled] == known[labelled]
    represents = np.isin(labelled, uniform) if len(uniform) else np.ones(len(labelled), np.bool_)
    threshold, precision = most_lending(held_out[represents], agree[represents], everywhere[unlabelled], power)
    above = unlabelled[everywhere[unlabelled] >= threshold]
    accuracy = float(jeffreys_lower(agree[represents].sum(), (~agree[represents]).sum()))
    lent = rng.permutation(above)[: lent_count(precision, len(above), accuracy, power)]
    return Augmentation(lent, precision, threshold, len(above), "surrogate")


def crossed_beliefs(pool: Pool, known: Ints, surrogate: Surrogate, rng: np.random.Generator) -> tuple[Array, Array]:
    """(n,) the belief in the model's answer at each label by a network that did not see it, (N,) the mean of all."""
    features, labelled = Features.of(pool), np.flatnonzero(known >= 0)
    fold = rng.permutation(np.arange(len(labelled)) % FOLDS)
    held_out, total = np.zeros(len(labelled)), np.zeros(len(pool))
    for number in range(FOLDS):
        rows = labelled[fold != number]
        network = surrogate.fit(features.subset(rows), known[rows], len(pool.classes), rng)
        belief = belief_in_answers(network, features, pool.predictions)
        held_out[fold == number] = belief[labelled[fold == number]]
        total += belief
    return held_out, np.asarray(total / FOLDS)


def belief_in_answers(network: Fitted, features: Features, predictions: Ints) -> Array:
    """(N,) the probability of the model's answer at each point, dropout off."""
    n = len(features)
    chunks = [slice(start, min(start + STEP, n)) for start in range(0, n, STEP)]

    def of_chunk(rows: slice) -> Array:
        predicted = predictions[rows]
        return np.asarray(network.mean(features[rows])[np.arange(len(predicted)), predicted])

    return np.concatenate(list(in_order(of_chunk, chunks)))


def lent_count(precision: float, candidates: int, accuracy: float, power: float) -> int:
    """(A26) N_s = floor(prec^power * #U * acc), acc the lower bound of the model's accuracy over the same labels."""
    return floor(pseudo_count(precision, candidates, power) * accuracy)


def most_lending(scores: Array, agree: Array, pool_scores: Array, power: float) -> tuple[float, float]:
    """(A25) the observed score tau with the largest prec(tau)^power * #{pool scores >= tau}, and prec(tau).

    prec is the lower 5 % bound of the share that agrees among the scores at or above tau. Ties go to the smallest tau.
    """
    order = np.argsort(-scores, kind="stable")
    right, above = np.cumsum(agree[order]), np.arange(1, len(scores) + 1)
    last_of_its_score = np.append(np.diff(scores[order]) != 0, True)
    thresholds, right, above = scores[order][last_of_its_score], right[last_of_its_score], above[last_of_its_score]
    precision = np.asarray(jeffreys_lower(right, above - right))
    lent = precision**power * (len(pool_scores) - np.searchsorted(np.sort(pool_scores), thresholds, side="left"))
    best = np.flatnonzero(lent == lent.max())[-1]
    return float(thresholds[best]), float(precision[best])
