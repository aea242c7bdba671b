"""Functions of scores as metrics: scikit-learn's values, slopes against differences, intervals, what is refused."""

import functools
import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

import altmas
from altmas.errors import MetricError
from altmas.metrics import LabelWeights, metric_set

CLASSES = ("cat", "dog")


def half_brier(y_true, y_score, sample_weight):
    """A function of one's own, smooth in the scores."""
    return float(np.average((y_score - y_true) ** 2, weights=sample_weight) / 2)


half_brier.bounds = (0, 0.5)


def binary(n=400, seed=0):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.3).astype(int)
    score = np.clip(1 / (1 + np.exp(-(2.2 * truth - 1.5 + rng.normal(0, 1, n)))), 0.01, 0.99)
    names = np.array(CLASSES)[(score > 0.5).astype(int)]
    return altmas.Pool(score[:, None], names, scores=score, classes=CLASSES), truth


def three(n=300, seed=1):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    raw = np.exp(rng.normal(0, 1, (n, 3)) + 1.5 * np.eye(3)[truth])
    scores = raw / raw.sum(1, keepdims=True)
    return altmas.Pool(None, np.array(["a", "b", "c"])[scores.argmax(1)], scores=scores, classes=["a", "b", "c"]), truth


BINARY = (roc_auc_score, average_precision_score, brier_score_loss, log_loss, half_brier,
          functools.partial(roc_auc_score, max_fpr=0.3))  # fmt: skip
SEVERAL = (functools.partial(roc_auc_score, multi_class="ovr"), average_precision_score, log_loss)


@pytest.mark.parametrize("function", BINARY)
def test_with_every_label_the_value_is_the_functions(function):
    pool, truth = binary(100)
    session = altmas.Session.create(None, pool, metrics=[function])
    session.run(lambda query: CLASSES[truth[query.index]], progress=False, batch=50)
    (one,) = session.estimate()
    assert one.value == pytest.approx(function(truth, pool.scores[:, 1], sample_weight=np.ones(100)), abs=1e-12)
    assert one.low == one.high == one.value


@pytest.mark.parametrize("function", SEVERAL)
def test_with_several_classes_too(function):
    pool, truth = three()
    (metric,) = metric_set([function], pool)
    expected = function(truth, pool.scores)
    assert metric.value(pool, LabelWeights.of_truth(truth, 3)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("pool_of, functions", [(binary, BINARY), (three, SEVERAL)])
def test_slopes_equal_differences_of_the_function(pool_of, functions):
    """Moving weight of a point from one class to another changes the value by the slopes' difference."""
    pool, truth = pool_of(120)
    weight, labels = np.random.default_rng(2).uniform(0.5, 2, 120), len(pool.classes)
    score = pool.scores[:, 1] if labels == 2 else pool.scores
    for function in functions:
        (metric,) = metric_set([function], pool)
        _, items = metric.at(pool, LabelWeights(120, labels, np.arange(120), truth, weight))
        known = {"labels": np.arange(labels)} if getattr(metric, "options", {}) else {}
        largest = float(np.ptp(items.rows(np.arange(120))))
        for point in (3, 17, 60, 99):
            other, step = (truth[point] + 1) % labels, 1e-4
            codes, scores = np.append(truth, other), np.concatenate([score, score[[point]]])
            moved = [np.append(weight, by) for by in (step, 0.0)]
            moved[0][point] -= step
            values = [function(codes[: 120 + k], scores[: 120 + k], sample_weight=one[: 120 + k], **known)
                      for k, one in zip((1, 0), moved, strict=True)]  # fmt: skip
            slopes = items.at(np.array([point, point]), np.array([other, truth[point]]))
            exact = getattr(metric, "usual", None) is not None
            assert slopes[0] - slopes[1] == pytest.approx(
                (values[0] - values[1]) / step, abs=(1e-4 if exact else 0.05) * largest
            ), (metric.name, point)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_intervals_hold_the_truth_and_the_draws_follow(method):
    """40 or 8 sessions of 100 labels: at least 0.93 minus two and a half standard errors."""
    functions, runs, hits = (roc_auc_score, log_loss, half_brier), 40 if method == "tradition" else 8, np.zeros(3)
    for seed in range(runs):
        pool, truth = binary(400, seed)
        session = altmas.Session.create(None, pool, metrics=functions, method=method, budget=100, seed=seed)
        session.run(lambda query, truth=truth: CLASSES[truth[query.index]], progress=False, batch=50)
        for place, (one, function) in enumerate(zip(session.estimate(), functions, strict=True)):
            true = function(truth, pool.scores[:, 1], sample_weight=np.ones(400))
            hits[place] += one.low <= true <= one.high
    assert (hits / runs).min() >= 0.93 - 2.5 * math.sqrt(0.93 * 0.07 / runs)


def test_a_stored_session_finds_the_score_again_and_several_models_have_one_each(tmp_path):
    pool, _ = binary(60)
    names = [CLASSES[code] for code in pool.predictions]
    scores = {"v1": pool.scores, "v2": pool.scores}
    both = altmas.Pool(None, {"v1": names, "v2": names}, scores=scores, classes=CLASSES)
    altmas.Session.create(tmp_path / "s.altmas", both, metrics=[roc_auc_score, ("mine", half_brier)]).close()
    with altmas.Session.open(tmp_path / "s.altmas", metrics=[("mine", half_brier)]) as again:
        names = [metric.name for metric in again.task.metrics]
    assert names == ["v1: roc_auc_score", "v2: roc_auc_score", "v1: mine", "v2: mine"]


def test_what_cannot_be_is_a_sentence():
    pool, _ = binary(40)
    bare = altmas.Pool(None, ["cat", "dog"])
    with pytest.raises(MetricError, match="'roc_auc_score' is a function of scores, and this pool has none"):
        metric_set([roc_auc_score], bare)
    with pytest.raises(MetricError, match="without sample_weight"):
        metric_set([lambda y_true, y_score: 0.0], pool)
    with pytest.raises(MetricError, match="this pool has 3 classes"):
        metric_set([half_brier], three()[0])
    half = altmas.Pool(None, {"v1": ["cat", "dog"], "v2": ["cat", "dog"]}, scores={"v1": [0.2, 0.7]})
    with pytest.raises(MetricError, match="model 'v2' has none"):
        metric_set([log_loss], half)
