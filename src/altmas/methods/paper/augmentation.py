"""Points where the model under test is trusted become extra training labels (paper Sec. 3.1; docs/equations.md A.3).

A small "agree" network learns from the labels where the model is right. Above the threshold of highest precision its
best-scored unlabelled points lend the model's own answer to the training of the surrogate. They are used for training
only: they stay unlabelled, may be queried, and never enter an estimate as labels.

Two readings of what the paper leaves open (A.3 step 6, A.9 items 12 and 15):
literal   the agree network sees x; precision is the share seen; without both kinds of labels the classifier is constant
cautious  it sees x and the model's answer; precision is the lower 5 % Jeffreys bound; without both kinds of labels
          points are ranked by the belief of a surrogate trained on the true labels alone

A third way, whose number of pseudo-labels does not leap, is in stable.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.compute import in_order
from altmas.methods.paper.posterior import Posterior
from altmas.methods.paper.surrogates import Fitted, Surrogate
from altmas.pool import Pool
from altmas.pool.features import Features
from altmas.types import Array

Ints = NDArray[np.int64]
Measure = Callable[[Any, Any], Any]
"""(right, wrong) counts -> how far a set with these counts can be trusted."""

VALIDATION = 0.25
"""Share of the labels kept aside to choose the threshold."""

STEP = 4096
"""Rows scored together."""


@dataclass(frozen=True)
class Augmentation:
    """The pseudo-labelled set S of one round, and how it came about.

    rows        (N_s,) its points, most trusted first; their pseudo-label is the model's prediction
    precision   prec(tau*) of (A4), or its lower bound; nan where nothing could be measured
    threshold   tau*; nan without an agree network
    candidates  |U|, the unlabelled points above the threshold
    trusted_by  "agree network", "surrogate", "constant" or "nothing"
    """

    rows: Ints
    precision: float = nan
    threshold: float = nan
    candidates: int = 0
    trusted_by: str = "nothing"

    def info(self) -> dict[str, Any]:
        """The same for people and files; what is undefined is None."""
        return {
            "size": len(self.rows),
            "precision": None if isnan(self.precision) else self.precision,
            "threshold": None if isnan(self.threshold) else self.threshold,
            "candidates": self.candidates,
            "trusted_by": self.trusted_by,
        }


NOTHING = Augmentation(np.zeros(0, np.int64))


def augment(
    pool: Pool,
    known: Ints,
    surrogate: Surrogate,
    *,
    cautious: bool,
    power: float,
    draws: int,
    rng: np.random.Generator,
) -> Augmentation:
    """The set S for the labels known now (-1 where unknown), by steps 1-6 of A.3."""
    labelled, unlabelled = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
    agree = pool.predictions[labelled] == known[labelled]
    train, validation = split(agree, rng)
    measure = jeffreys_lower if cautious else share_right
    if len(validation) == 0 or len(unlabelled) == 0:
        return NOTHING
    if agree[train].all() or not agree[train].any():
        if cautious:
            belief = belief_in_model(pool, known, surrogate, draws, rng)
            trust = float(measure(agree.sum(), (~agree).sum()))
            return _chosen(unlabelled, belief[unlabelled], trust, power, nan, "surrogate", rng)
        return _literal_constant(unlabelled, agree[train].any(), agree[validation], power, rng)
    features = Features.of(pool)
    if cautious:
        features = features.with_predictions(pool.predictions, len(pool.classes))
    examples = train[oversampled(agree[train], rng)]
    network = surrogate.fit(features.subset(labelled[examples]), agree[examples].astype(np.int64), 2, rng)
    scores = agree_scores(network, features)
    threshold, precision = best_threshold(scores[labelled[validation]], agree[validation], measure)
    above = unlabelled[scores[unlabelled] >= threshold]
    return _chosen(above, scores[above], precision, power, threshold, "agree network", rng)


def split(agree: Array, rng: np.random.Generator, share: float = VALIDATION) -> tuple[Ints, Ints]:
    """(train, validation) positions, 75/25, stratified on `agree` if both kinds have two members, else at random."""
    kinds = [np.flatnonzero(agree), np.flatnonzero(~agree)]
    if min(map(len, kinds)) < 2:
        kinds = [np.arange(len(agree))]
    train, validation = [], []
    for members in kinds:
        shuffled = rng.permutation(members)
        held_out = max(0, min(max(1, round(share * len(members))), len(members) - 1))
        validation.append(shuffled[:held_out])
        train.append(shuffled[held_out:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(validation))


def oversampled(agree: Array, rng: np.random.Generator) -> Ints:
    """Positions of all members, the rarer kind repeated at random until both kinds are equally many (A.3 step 2)."""
    kinds = [np.flatnonzero(agree), np.flatnonzero(~agree)]
    most = max(map(len, kinds))
    more = [rng.choice(members, most - len(members)) for members in kinds]
    return np.concatenate([*kinds, *more]).astype(np.int64)


def share_right(right: Any, wrong: Any) -> Any:
    """The precision that was seen."""
    return np.asarray(right) / (np.asarray(right) + wrong)


def jeffreys_lower(right: Any, wrong: Any) -> Any:
    """The lower 5 % Jeffreys bound of a precision: Beta^-1(0.05; right + 1/2, wrong + 1/2)."""
    from scipy.special import betaincinv

    return betaincinv(np.asarray(right) + 0.5, np.asarray(wrong) + 0.5, 0.05)


def best_threshold(scores: Array, agree: Array, measure: Measure = share_right) -> tuple[float, float]:
    """(A4) the observed score with the highest precision above it, and that precision.

    Ties go to the smallest threshold. A threshold needs max(3, 10 %) points above it, unless none has as many.
    """
    order = np.argsort(-scores, kind="stable")
    right, above = np.cumsum(agree[order]), np.arange(1, len(scores) + 1)
    last_of_its_score = np.append(np.diff(scores[order]) != 0, True)
    thresholds, right, above = scores[order][last_of_its_score], right[last_of_its_score], above[last_of_its_score]
    precision = np.where(above >= max(3, ceil(0.1 * len(scores))), measure(right, above - right), -np.inf)
    if np.isneginf(precision).all():
        return float(thresholds[-1]), float(measure(right[-1], above[-1] - right[-1]))
    best = np.flatnonzero(precision == precision.max())[-1]
    return float(thresholds[best]), float(precision[best])


def pseudo_count(precision: float, candidates: int, power: float) -> int:
    """(A5) N_s = floor(precision^power * |U|)."""
    exact: float = precision**power * candidates
    return floor(exact + 1e-9)  # 0.29 * 100 is 28.999999999999996


def _chosen(
    rows: Ints, scores: Array, precision: float, power: float, threshold: float, by: str, rng: np.random.Generator
) -> Augmentation:
    """The N_s points of highest score; ties at random."""
    shuffled = rng.permutation(len(rows))
    first = shuffled[np.argsort(-scores[shuffled], kind="stable")][: pseudo_count(precision, len(rows), power)]
    return Augmentation(rows[first], precision, threshold, len(rows), by)


def _literal_constant(
    unlabelled: Ints, says_agree: bool, agree: Array, power: float, rng: np.random.Generator
) -> Augmentation:
    """The literal reading of a classifier that has seen one kind only: it calls every point the same."""
    if not says_agree:
        return Augmentation(np.zeros(0, np.int64), trusted_by="constant")
    precision = float(share_right(agree.sum(), (~agree).sum()))
    return _chosen(unlabelled, np.ones(len(unlabelled)), precision, power, nan, "constant", rng)


def agree_scores(network: Fitted, features: Features) -> Array:
    """(N,) v_i = P(agree | x_i) with dropout off (A.3 step 3)."""
    n = len(features)
    chunks = [slice(start, min(start + STEP, n)) for start in range(0, n, STEP)]
    return np.concatenate(list(in_order(lambda rows: network.mean(features[rows])[:, 1], chunks)))


def belief_in_model(pool: Pool, known: Ints, surrogate: Surrogate, draws: int, rng: np.random.Generator) -> Array:
    """(N,) u_i = mean_j P[j, i, a_i] of a surrogate trained on the true labels alone (A.3 step 6)."""
    features, labelled = Features.of(pool), np.flatnonzero(known >= 0)
    fitted = surrogate.fit(features.subset(labelled), known[labelled], len(pool.classes), rng)
    networks = fitted.draws(draws, rng)
    posterior = Posterior(lambda rows: networks(features[rows]), known, networks.count, len(pool.classes), keep=0)

    def of_chunk(rows: slice, probs: Array) -> Array:
        predicted = pool.predictions[rows]
        return np.asarray(probs[:, np.arange(len(predicted)), predicted].mean(0))

    return np.concatenate(list(posterior.map(of_chunk)))
