"""What the label of a point tells about the weights of the surrogate (docs/equations.md A.6, A.7.4, B.2).

probs[j, i, c] = p(y_i = c | x_i, w_j) as in posterior.py. All of it is mutual information between w and an answer:
the label itself (BALD), a yes or no ("is it c?"), or the group of labels that it falls in. In nats, in float64.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from altmas.types import Array

Floats = NDArray[np.float64]

TINY = np.finfo(np.float64).tiny


def binary_information(u: Array) -> Floats:
    """(A23) IB(u) = h(mean_j u_j) - mean_j h(u_j), h the entropy of a yes/no event; (M, ...) -> (...), in nats."""
    u = np.asarray(u, np.float64)
    average: Floats = u.mean(0)
    doubt = (_minus_log(u) + _minus_log(1 - u)).mean(0)
    return np.asarray(np.maximum(_minus_log(average) + _minus_log(1 - average) - doubt, 0.0))


def bald(probs: Array) -> Floats:
    """(B3) H(mean_j P_j) - mean_j H(P_j): what the label tells about the weights; (M, n, C) -> (n,), in nats."""
    probs = np.asarray(probs, np.float64)
    return np.asarray(np.maximum(_minus_log(probs.mean(0)).sum(-1) - _minus_log(probs).sum(-1).mean(0), 0.0))


def group_information(probs: Array, groups: Array) -> Floats:
    """(A7), (A8) information of the group that the label falls in.

    probs   (M, n, C)
    groups  (n, C) the number of the group that label c of point i belongs to, 0..C-1
    returns (n,) nats
    """
    draws, n, n_classes = probs.shape
    rows = np.arange(n)
    u = np.zeros((n, int(groups.max(initial=0)) + 1, draws))
    for c in range(n_classes):
        u[rows, groups[:, c]] += probs[:, :, c].T  # (A7)
    return np.asarray(np.maximum(_minus_log(u.mean(-1)).sum(-1) - _minus_log(u).sum(1).mean(-1), 0.0))  # (A8)


def _minus_log(u: Floats) -> Floats:
    """-u ln u, with 0 ln 0 = 0; rounding below 0 counts as 0."""
    return np.asarray(-u * np.log(np.maximum(u, TINY)))


class Information(NamedTuple):
    """What the label of each point tells about the weights, seen through questions of the form "is it c?".

    of_class       (n, K) IB(P[:, i, c]) for the classes that were asked for
    of_prediction  (n,) IB(P[:, i, a_i]): is the model right?
    of_label       (n,) BALD: which label is it?
    """

    of_class: Floats
    of_prediction: Floats
    of_label: Floats


def information(probs: Array, predictions: Array, classes: Sequence[int]) -> Information:
    """The information of a chunk; one look at its probabilities serves every closed form.

    Accumulated draw by draw, so that float64 copies stay as small as one draw.
    """
    draws, n, n_classes = probs.shape
    codes = np.asarray(classes, np.int64)
    total, entropies, right = np.zeros((n_classes, n)), np.zeros((n_classes, n)), np.zeros((2, n))
    no_entropies, label_entropy = np.zeros((len(codes), n)), np.zeros(n)
    rows = np.arange(n)
    for draw in probs:
        p = draw.T.astype(np.float64)  # (C, n)
        yes, no = _minus_log(p), _minus_log(1 - p[codes])
        total += p
        entropies += yes
        no_entropies += no
        label_entropy += yes.sum(0)
        answer = p[predictions, rows]
        right += answer, yes[predictions, rows] + _minus_log(1 - answer)
    mean = total / draws
    of_class = _minus_log(mean[codes]) + _minus_log(1 - mean[codes]) - (entropies[codes] + no_entropies) / draws
    u = right[0] / draws
    of_prediction = _minus_log(u) + _minus_log(1 - u) - right[1] / draws
    of_label = _minus_log(mean).sum(0) - label_entropy / draws
    return Information(*(np.maximum(part, 0.0) for part in (of_class.T, of_prediction, of_label)))


def joined(parts: Sequence[Information]) -> Information:
    """The information of consecutive chunks as that of the pool."""
    return Information(*(np.concatenate(column) for column in zip(*parts, strict=True)))
