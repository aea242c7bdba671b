"""Pools made to break intervals: each function gives a pool and its true labels, always the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from altmas import Pool
from altmas.types import Array

Made = tuple[Pool, Array]


def _two_classes(rng: np.random.Generator, right: Array, scores: Array | None = None, features: Any = None) -> Made:
    """A model with two classes that is right at these points."""
    n = len(right)
    predicted = rng.integers(0, 2, n)
    class_scores = None
    if scores is not None:
        class_scores = np.empty((n, 2))
        class_scores[np.arange(n), predicted], class_scores[np.arange(n), 1 - predicted] = scores, 1 - scores
    x = None if features is None else np.asarray(features, np.float32)
    return Pool(x, predicted, scores=class_scores, classes=[0, 1]), np.where(right, predicted, 1 - predicted)


def plain(accuracy: float, n: int = 10_000) -> Made:
    """No features, no scores: random sampling is all there is."""
    rng = np.random.default_rng(1)
    right = np.ones(n, np.bool_)
    right[rng.permutation(n)[: round((1 - accuracy) * n)]] = False
    return _two_classes(rng, right)


def rare_class(n: int = 2_000) -> Made:
    """One point in twenty is of class 1, the model is right about 0.95 of all, and nothing tells them apart."""
    rng = np.random.default_rng(17)
    truth = (rng.random(n) < 0.05).astype(np.int64)
    predictions = np.where(rng.random(n) < 0.95, truth, 1 - truth)
    return Pool(None, predictions, classes=[0, 1]), truth


def rarely_found(n: int = 3_000) -> Made:
    """Twelve points in a hundred are of class 1, a third of them are found, and no other point is taken for one."""
    order = np.random.default_rng(19).permutation(n)
    predictions, truth = ((np.arange(n) < round(share * n)).astype(np.int64)[order] for share in (0.04, 0.12))
    return Pool(None, predictions, classes=[0, 1]), truth


def two_levels(score: float, error: float, n: int = 10_000) -> Made:
    """Nine tenths at a high score with this error rate, one tenth at 0.6 (rightly)."""
    rng = np.random.default_rng(2)
    high = np.arange(n) < 0.9 * n
    right = rng.random(n) < np.where(high, 1 - error, 0.6)
    return _two_classes(rng, right, np.where(high, score, 0.6))


def low_grades(hidden: float, n: int = 1_600) -> Made:
    """Grades that a judge has right where it gives the highest, but for this share of these, which are the lowest."""
    rng = np.random.default_rng(18)
    sure = rng.random(n) < 0.8
    judge = np.where(sure, 4, rng.integers(1, 4, n))
    truth = np.where(sure, judge, np.clip(judge + rng.integers(-1, 2, n), 0, 4))
    highest = np.flatnonzero(sure)
    truth[rng.choice(highest, round(hidden * len(highest)), replace=False)] = 0
    return Pool(None, {"judge": judge + 1}, classes=[1, 2, 3, 4, 5]), truth


def smooth(n: int = 10_000) -> Made:
    """Calibrated scores of a 97 % model."""
    rng = np.random.default_rng(3)
    scores = 1 - 0.5 * rng.beta(0.3, 4.7, n)
    return _two_classes(rng, rng.random(n) < scores, scores)


def opposite(n: int = 4_000) -> Made:
    """Scores that say the opposite of the truth."""
    rng = np.random.default_rng(8)
    scores = rng.uniform(0.5, 1.0, n)
    return _two_classes(rng, rng.random(n) < 1.5 - scores, scores)


def hidden_positives(n: int = 2_000) -> Made:
    """Sixty positives, 23 of them with features like those of negatives."""
    rng = np.random.default_rng(4)
    truth = (np.arange(n) < 60).astype(np.int64)
    x = rng.normal(size=(n, 4))
    x[:37, 0] += 4
    return Pool(x.astype(np.float32), (x[:, 0] > 2.5).astype(np.int64), classes=[0, 1]), truth


def cluster(n: int = 2_000) -> Made:
    """All errors in one tight cluster of a twentieth of the pool."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, 4))
    right = np.arange(n) >= n // 20
    x[~right] = 3 + 0.1 * rng.normal(size=(n // 20, 4))
    return _two_classes(rng, right, None, x)


def useless(n: int = 3_000) -> Made:
    """Features that say nothing."""
    rng = np.random.default_rng(6)
    return _two_classes(rng, rng.random(n) < 0.8, None, rng.normal(size=(n, 8)))


def twins(n: int = 2_000) -> Made:
    """Near-duplicates in pairs, one right and one wrong."""
    rng = np.random.default_rng(7)
    x = np.repeat(rng.normal(size=(n // 2, 4)), 2, axis=0) + 1e-3 * rng.normal(size=(n, 4))
    right = np.ones(n, np.bool_)
    right[: n // 2 : 2] = False
    return _two_classes(rng, right, None, x)


def letters(n: int = 6_000, n_classes: int = 26) -> Made:
    """Twenty-six classes in a space of 16 features, read by a rule that is often wrong."""
    rng = np.random.default_rng(9)
    centres = rng.normal(size=(n_classes, 16))
    truth = rng.integers(0, n_classes, n)
    x = centres[truth] + 0.9 * rng.normal(size=(n, 16))
    distance = ((x[:, None, :12] - centres[None, :, :12]) ** 2).sum(2)
    return Pool(x.astype(np.float32), distance.argmin(1), classes=list(range(n_classes))), truth


def many_classes(n: int = 5_000, n_classes: int = 200) -> Made:
    """Two hundred classes, no features."""
    rng = np.random.default_rng(10)
    truth = rng.integers(0, n_classes, n)
    wrong = rng.random(n) < 0.25
    predicted = np.where(wrong, rng.integers(0, n_classes, n), truth)
    return Pool(None, predicted, classes=list(range(n_classes))), truth


def drift(n: int = 4_000) -> Made:
    """Features that are right about errors in one half of the pool and wrong in the other."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(n, 3))
    risk = np.where(x[:, 1] > 0, x[:, 0], -x[:, 0])
    return _two_classes(rng, rng.random(n) > 1 / (1 + np.exp(2.5 - 1.5 * risk)), None, x)


def two_models(n: int = 6_000) -> Made:
    """Two models that are wrong at other points, and a small part of the pool in which the second is worse."""
    rng = np.random.default_rng(12)
    x = rng.normal(size=(n, 4))
    truth = rng.integers(0, 2, n)
    small = rng.random(n) < 0.08
    first = np.where(rng.random(n) < 1 / (1 + np.exp(2.2 - x[:, 0])), 1 - truth, truth)
    wrong = rng.random(n) < np.where(small, 0.3, 1 / (1 + np.exp(2.5 - x[:, 1])))
    second = np.where(wrong, 1 - truth, truth)
    slices = {"part": np.where(small, "small", "large")}
    return Pool(x.astype(np.float32), {"v1": first, "v2": second}, classes=[0, 1], slices=slices), truth


def few_differ(n: int = 3_000) -> Made:
    """Two models that differ on 15 points, on all of which the second is right."""
    rng = np.random.default_rng(18)
    truth = rng.integers(0, 2, n)
    first = np.where(rng.random(n) < 0.2, 1 - truth, truth)
    differ = rng.permutation(n)[:15]
    first[differ] = 1 - truth[differ]
    second = first.copy()
    second[differ] = truth[differ]
    return Pool(None, {"v1": first, "v2": second}, classes=[0, 1]), truth


def scores_too_high(n: int = 3_000) -> Made:
    """One point in 50 is a member, most with the highest scores, and the mean score says that one in four is."""
    rng = np.random.default_rng(19)
    truth = np.zeros(n, np.int64)
    truth[rng.permutation(n)[: n // 50]] = 1
    level = rng.normal(size=n) + truth * np.where(rng.random(n) < 0.8, 4, -1)
    score = 1 / (1 + np.exp(-1.5 * (level - 1)))
    return Pool(None, (score > 0.5).astype(int), scores=np.column_stack([1 - score, score]), classes=[0, 1]), truth


def never_true(n: int = 200) -> Made:
    """Three classes are answered, two of them occur."""
    rng = np.random.default_rng(20)
    truth = rng.integers(0, 2, n)
    predictions = np.where(rng.random(n) < 0.15, 1 - truth, truth)
    predictions[:12] = 2
    return Pool(None, predictions, classes=[0, 1, 2]), truth


def one_class_too_many(n: int = 3_000) -> Made:
    """One answer in twelve is a class that never occurs."""
    rng = np.random.default_rng(21)
    truth = rng.integers(0, 2, n)
    predictions = np.where(rng.random(n) < 0.15, 1 - truth, truth)
    predictions[: n // 12] = 2
    return Pool(None, predictions, classes=[0, 1, 2]), truth


def few_answers_for_many(n: int = 3_000) -> Made:
    """Twenty classes, found in 0.4 to 1 of the cases; what is wrong is answered with one of the first six."""
    rng = np.random.default_rng(77)
    truth = rng.integers(0, 20, n)
    right = rng.random(n) < np.linspace(0.4, 1, 20)[truth]
    predictions, order = np.where(right, truth, rng.integers(0, 6, n)), rng.permutation(n)
    return Pool(None, predictions[order], classes=list(range(20))), truth[order]


def one_answer_for_many(n: int = 3_000) -> Made:
    """Six classes, one in six; half of those of five classes are answered with the sixth, which is always found."""
    rng = np.random.default_rng(78)
    truth = rng.integers(0, 6, n)
    return Pool(None, np.where(rng.random(n) < 0.5, truth, 0), classes=list(range(6))), truth


def urgent_tickets(n: int = 8_000, urgent: int = 60) -> Made:
    """Four queues; of the few urgent tickets half are found, and the others answered with the largest queue."""
    rng = np.random.default_rng(82)
    truth = rng.choice(3, n, p=[0.7, 0.2, 0.1])
    predictions = np.where(rng.random(n) < 0.06, (truth + rng.integers(1, 3, n)) % 3, truth)
    rows = rng.permutation(n)[:urgent]
    truth[rows], predictions[rows] = 3, 0
    predictions[rows[: urgent // 2]] = 3
    return Pool(None, predictions, classes=[0, 1, 2, 3]), truth


def small_slices(n: int = 1_000) -> Made:
    """Two small slices, one of them much worse than the rest: a few of the labels fall into either."""
    rng = np.random.default_rng(14)
    part, order = np.full(n, "rest", dtype=object), rng.permutation(n)
    part[order[:40]], part[order[40:100]] = "worse", "alike"
    predicted = rng.integers(0, 2, n)
    wrong = rng.random(n) < np.where(part == "worse", 0.5, 0.05)
    return Pool(None, predicted, classes=[0, 1], slices={"part": part}), np.where(wrong, 1 - predicted, predicted)


def wide(n: int = 60_000) -> Made:
    """A large pool whose features tell a little about errors."""
    rng = np.random.default_rng(13)
    x = rng.normal(size=(n, 8))
    return _two_classes(rng, rng.random(n) > 1 / (1 + np.exp(2.6 - 0.7 * x[:, 0])), None, x)
