"""(V18): how much of the belief an area under a curve takes, against loops, and what it is for."""

from dataclasses import replace

import numpy as np
import pytest

import altmas
from altmas.belief import Belief
from altmas.history import History
from altmas.methods.assured import Assured
from altmas.methods.assured.estimator import Base, Difference
from altmas.methods.assured.fitted_weight import supposed
from altmas.methods.assured.linearised import Estimators
from altmas.methods.assured.stages import stages_of
from altmas.metrics import about, metric_set
from altmas.simulate import label_until
from altmas.task import Task
from assured_world import runs, share_of


def a_pool(n: int, seed: int = 0, weights=None) -> tuple[altmas.Pool, np.ndarray]:
    """Scores of two classes, one in eight a member, some of them where the model is sure that they are not."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.125).astype(np.int64)
    score = 1 / (1 + np.exp(-rng.normal(2.5 * truth - 2, 1.2)))
    names = np.array(["fine", "toxic"])
    answers = names[(score > 0.5).astype(int)]
    scores = np.column_stack([1 - score, score])
    return altmas.Pool(None, answers, scores=scores, classes=list(names), weights=weights), truth


def misled(task, labelled, codes, weights, folds) -> Belief:
    """A belief that expects members among the lowest scores of every second point, and never learns."""
    pool = task.pool
    agree = np.where(np.arange(len(pool)) % 2, 0.6, 0.98)
    return Belief(pool.predictions, agree, np.eye(2)[::-1], pool.predictions, {})


def estimator_of(pool, truth, labels: int, metric: str, method=None, seed: int = 0) -> tuple[Difference, Task, History]:
    method = method or Assured(pilot=20)
    task = Task(pool, metric_set([metric], pool), seed=seed)
    history = label_until(method, task, History(len(pool)), labels, 10, truth.__getitem__)
    samples = method._samples(task, history, stages_of(history))
    return Estimators(samples, task, history)(None), task, history


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("metric", ["roc_auc", "average_precision"])
def test_what_is_supposed_is_what_a_loop_over_labels_finds(metric, weighted):
    weights = np.random.default_rng(3).integers(1, 5, 300) if weighted else None
    pool, truth = a_pool(300, weights=weights)
    estimator, task, _ = estimator_of(pool, truth, 90, metric)
    items = task.metrics[0].at(pool, Base(estimator))[1]
    points, k, constant = np.arange(300), estimator.weight, np.broadcast_to(items.constant(), 300)
    assert len(estimator.parts) > 1
    for part, found in zip(estimator.parts, supposed(items, estimator.parts, estimator.known, k), strict=True):
        expected = (part.belief.rows(points) * items.rows(points)).sum(1)
        unit = [(expected[i] + constant[i]) / k[i] for i in range(300)]
        rest = [i for i in range(300) if part.rest[i]]
        total = sum(k[i] for i in rest)
        centre = sum(k[i] * unit[i] for i in rest) / total
        spread = sum(k[i] * (unit[i] - centre) ** 2 for i in rest) / total
        for fold in range(10):
            products, labels = 0.0, 0
            for stage in estimator.parts:
                if stage.number > part.number:
                    continue
                expansion = dict(zip(stage.rows.tolist(), stage.expansion.tolist(), strict=True))
                rows = [j for j in stage.rows.tolist() if part.folds[j] != fold]
                count = {j: k[j] * (1 + expansion[j]) for j in rows}
                seen = {j: (items.at(np.array([j]), estimator.known[[j]])[0] + constant[j]) / k[j] for j in rows}
                mean = sum(count[j] * seen[j] for j in rows) / sum(count.values())
                product = sum(count[j] * (seen[j] - mean) * (unit[j] - centre) for j in rows)
                products += len(rows) * product / sum(count.values())
                labels += len(rows)
            weight = min(max(products / labels / spread, 0.0), 1.0)
            for i in np.flatnonzero(part.folds == fold):
                assert found[i] == pytest.approx(k[i] * (centre + weight * (unit[i] - centre)) - constant[i], abs=1e-9)


def test_the_value_is_that_of_tables_with_what_is_supposed():
    pool, truth = a_pool(300)
    estimator, task, _ = estimator_of(pool, truth, 90, "roc_auc")
    metric = task.metrics[0]
    side = estimator.side(metric)
    base = Base(estimator, metric.along(pool), metric.mean_of_recalls)
    at_base, items = metric.moved_by(pool, base)
    total = at_base
    for part, mean in zip(estimator.parts, side.supposed, strict=True):
        shares = np.array([share_of(part.share, part.folds, row) for row in range(300)])
        seen = items.at(part.labelled, estimator.known[part.labelled])
        residuals = items.at(part.rows, estimator.known[part.rows]) - mean[part.rows]
        total += shares[part.labelled] @ seen + (shares * mean)[part.rest].sum()
        total += shares[part.rows] @ (part.expansion * residuals)
    points = np.arange(300)
    believed_at_base = sum(base.of_class(code) @ items.at(points, np.full(300, code)) for code in range(2))
    assert side.value == pytest.approx(total - believed_at_base, abs=1e-9)


def test_a_weight_of_one_is_the_belief_and_a_useless_belief_has_none():
    pool, truth = a_pool(2000)

    def knowing(task, labelled, codes, weights, folds):
        agree = np.where(task.pool.predictions == truth, 0.95, 0.05)
        return Belief(task.pool.predictions, agree, np.eye(2)[::-1], task.pool.predictions, {})

    for belief, low, high in ((knowing, 0.9, 1.0), (misled, 0.0, 0.2)):
        estimator, task, _ = estimator_of(pool, truth, 300, "roc_auc", Assured(belief=belief))
        items = task.metrics[0].at(pool, Base(estimator))[1]
        part = estimator.parts[-1]
        mean = items.moments(part.belief)[0] + items.constant()
        taken = supposed(items, estimator.parts, estimator.known, estimator.weight)[-1] + items.constant()
        weight = np.std(taken) / np.std(mean)
        assert low <= weight <= high, belief.__name__


def test_a_belief_that_misleads_costs_less_and_intervals_hold(monkeypatch):
    """100 runs of 200 labels: the error is at most 0.8 of that with the belief as it is; 0.93 within 2.5 errors."""
    pool, truth = a_pool(1500)
    method, errors = Assured(belief=misled), {}
    for fitted in (True, False):
        monkeypatch.setitem(about.ABOUT, "roc_auc", replace(about.ABOUT["roc_auc"], fitted=fitted))
        found = runs(method, pool, truth, ["roc_auc"], 200, 100, batch=40)[:, 0]
        errors[fitted] = found[:, 0] - found[:, 3]
        if fitted:
            held = (found[:, 1] <= found[:, 3]) & (found[:, 3] <= found[:, 2])
            assert held.mean() >= 0.93 - 2.5 * np.sqrt(0.93 * 0.07 / 100)
    assert np.sqrt((errors[True] ** 2).mean()) < 0.8 * np.sqrt((errors[False] ** 2).mean())
