"""Rows that stand for several (`Pool.weights`): metrics of the expanded pool, coverage, what is refused."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn.metrics

import altmas
from altmas.errors import MethodError, PlanError, PoolError, PoolMismatch
from altmas.guaranteed import guaranteed_interval, too_many_weights
from altmas.history import Batch, History
from altmas.methods import METHODS, Assured, Tradition, method_named
from altmas.metrics import metric_set, truth_values
from altmas.metrics.weights import LabelWeights
from altmas.planning import plan_widths
from altmas.simulate import label_until, simulate
from altmas.task import Task
from assured_world import constant_belief, world
from cli_world import run

EVERY = [
    "accuracy",
    "error",
    "precision[1]",
    "recall[1]",
    "f1[1]",
    "jaccard[1]",
    "specificity[1]",
    "npv[1]",
    "macro_f1",
]
EVERY += ["balanced_accuracy", "kappa", "mcc", "confusion[0,1]", "share[1]", "mean", "roc_auc[1]", "roc_auc", "brier"]
EVERY += [
    "average_precision[1]",
    "log_loss",
    "calibration_error",
    "recall[1,0.3]",
    "accuracy@half=odd",
    "weighted_kappa",
]
EVERY += ["accuracy@half=odd - accuracy@half=even", "gap[accuracy, half]"]


def weighted(pool, weights):
    """The pool with weights."""
    return altmas.Pool(
        pool.features,
        pool.predictions,
        scores=pool.scores,
        classes=pool.classes,
        slices=pool.slices,
        weights=weights,
    )


def expanded(pool, truth, counts):
    """The pool and its truth with every row as often as it counts."""
    rows = np.repeat(np.arange(len(pool)), counts)
    return pool._taken(rows), truth[rows]


def heavy(n, seed=0, spread=1.0):
    """Weights of which some are much larger than most."""
    return np.exp(np.random.default_rng([seed, 9]).normal(0, spread, n))


def test_the_value_of_every_metric_is_that_of_the_expanded_pool():
    pool, truth = world(n=300, scores=True)
    counts = np.random.default_rng(1).integers(1, 9, len(pool))
    whole, labels = expanded(pool, truth, counts)
    metrics = metric_set(EVERY, pool)
    mine, theirs = truth_values(weighted(pool, counts), truth, metrics), truth_values(whole, labels, metrics)
    assert mine == pytest.approx(theirs, rel=1e-9)
    for method in (Assured(), Tradition()):
        task = Task(weighted(pool, counts), metrics)
        history = History(len(pool), labels=dict(enumerate(truth.tolist())))
        drawn = replace(history, batches=label_until(method, task, History(300), 20, 20, truth.__getitem__).batches)
        for one in method.estimate(task, drawn):
            assert (one.value, one.low, one.high) == pytest.approx([theirs[one.metric]] * 3, rel=1e-6), one.metric


def test_values_are_those_of_scikit_learn_with_sample_weight():
    pool, truth = world(n=300, n_classes=2, scores=True)
    k = heavy(300)
    found = truth_values(
        weighted(pool, k),
        truth,
        metric_set(["accuracy", "f1[1]", "kappa", "mcc", "roc_auc", "log_loss", "brier"], pool),
    )
    answers, score = pool.predictions, pool.scores[:, 1]
    assert found["accuracy"] == pytest.approx(sklearn.metrics.accuracy_score(truth, answers, sample_weight=k))
    assert found["f1[1]"] == pytest.approx(sklearn.metrics.f1_score(truth, answers, sample_weight=k))
    assert found["kappa"] == pytest.approx(sklearn.metrics.cohen_kappa_score(truth, answers, sample_weight=k))
    assert found["mcc"] == pytest.approx(sklearn.metrics.matthews_corrcoef(truth, answers, sample_weight=k))
    assert found["roc_auc"] == pytest.approx(sklearn.metrics.roc_auc_score(truth, score, sample_weight=k))
    assert found["log_loss"] == pytest.approx(sklearn.metrics.log_loss(truth, score, sample_weight=k), rel=1e-5)
    assert found["brier"] == pytest.approx(sklearn.metrics.brier_score_loss(truth, score, sample_weight=k), rel=1e-5)


def test_a_function_of_the_user_counts_rows_as_often_as_they_count():
    pool, truth = world(n=200, n_classes=2)
    counts = np.random.default_rng(2).integers(1, 4, 200)
    whole, labels = expanded(pool, truth, counts)

    def share_right(y_true, y_pred):
        return float(np.mean(np.asarray(y_true) == np.asarray(y_pred)))

    found = truth_values(weighted(pool, counts), truth, metric_set([share_right], pool))
    assert found == pytest.approx(truth_values(whole, labels, metric_set([share_right], pool)))


@pytest.mark.parametrize("name", ["accuracy", "recall[1]", "kappa", "roc_auc[1]", "log_loss", "recall[1,0.3]"])
def test_the_influence_of_a_row_is_how_its_label_moves_the_metric(name):
    pool, truth = world(n=120, scores=True)
    pool, (metric,) = weighted(pool, heavy(120)), metric_set([name], pool)
    base = LabelWeights.of_truth(truth, 3, None, pool.weights)
    items = metric.moved_by(pool, base)[1]
    for row in range(0, 120, 17):
        other = (truth[row] + 1) % 3
        step = 1e-6
        points, labels = np.append(np.arange(120), row), np.append(truth, other)
        weights = np.append(pool.weights, step * pool.weights[row])
        weights[row] *= 1 - step
        moved = metric.value(pool, LabelWeights(120, 3, points, labels, weights)) - metric.value(pool, base)
        slope = items.at(np.array([row, row]), np.array([other, truth[row]]))
        assert moved / step == pytest.approx(slope[0] - slope[1], rel=2e-3, abs=1e-7)


def test_weights_of_one_change_no_number():
    pool, truth = world(n=200, scores=True)
    metrics = metric_set(["accuracy", "macro_f1", "recall[1]", "roc_auc[1]", "accuracy@half=odd"], pool)
    answers = []
    for weights in (None, np.ones(200), np.full(200, 7.0)):
        task = Task(pool if weights is None else weighted(pool, weights), metrics, seed=3)
        history = label_until(Assured(), task, History(200), 60, 30, truth.__getitem__)
        answers.append((history.drawn.tolist(), list(Assured().estimate(task, history))))
    assert answers[0] == answers[1]
    assert answers[0][0] == answers[2][0]
    for mine, theirs in zip(answers[0][1], answers[2][1], strict=True):
        assert (mine.value, mine.low, mine.high) == pytest.approx((theirs.value, theirs.low, theirs.high), rel=1e-6)
        assert mine.effective_labels == pytest.approx(theirs.effective_labels, rel=1e-6)


def test_draws_are_in_proportion_to_the_weights():
    pool, truth = world(n=600, features=False)
    k = np.where(np.arange(600) < 60, 20.0, 1.0)
    task = Task(weighted(pool, k), metric_set(["accuracy"], pool))
    first = label_until(Assured(belief=constant_belief), task, History(600), 40, 40, truth.__getitem__)
    assert (first.drawn < 60).sum() > 15  # 4 of 40 if all rows were alike


def covered(
    method, n, labels, runs, spread=1.0, accuracy=0.85, asked=("accuracy", "recall[1]", "accuracy@half=odd"), batch=20
):
    """(share of runs whose interval covers the value of the expanded pool, bias over RMSE) of each metric."""
    inside, errors = [], []
    for seed in range(runs):
        pool, truth = world(n=n, accuracy=accuracy, seed=seed, features=False)
        # heavy rows are wrong more often: an estimate that forgot the weights would be off
        k = heavy(n, seed, spread) * np.where(pool.predictions == truth, 1.0, 2.0)
        pool = weighted(pool, k)
        metrics = metric_set(list(asked), pool)
        task = Task(pool, metrics, seed=seed)
        history = label_until(method, task, History(n), labels, batch, truth.__getitem__)
        true = truth_values(pool, truth, metrics)
        found = list(method.estimate(task, history))
        inside.append([one.low <= true[one.metric] <= one.high for one in found])
        errors.append([one.value - true[one.metric] for one in found])
    errors = np.array(errors)
    return np.mean(inside, 0), errors.mean(0) / np.sqrt((errors**2).mean(0))


@pytest.mark.parametrize("method", [Assured(belief=constant_belief), Tradition()])
def test_intervals_cover_the_expanded_pool(method):
    share, bias = covered(method, n=600, labels=100, runs=24, batch=50)
    assert (share >= 0.86).all()  # 0.95 less 2 standard errors of 24 runs
    assert (np.abs(bias) < 0.5).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", [Assured(belief=constant_belief), Tradition()])
@pytest.mark.parametrize(
    ("n", "labels", "spread", "accuracy"), [(600, 60, 1.0, 0.85), (2000, 200, 1.5, 0.85), (600, 100, 1.0, 0.97)]
)
def test_intervals_cover_the_expanded_pool_in_many_runs(method, n, labels, spread, accuracy):
    share, _ = covered(method, n, labels, 300, spread, accuracy)
    assert (share >= 0.93 - 2 * math.sqrt(0.93 * 0.07 / 300)).all()


def test_clean_labels_leave_room_for_a_row_that_stands_for_many():
    n = 500
    pool = altmas.Pool(None, np.zeros(n, int), classes=["a", "b"], weights=np.where(np.arange(n) == 499, 500.0, 1.0))
    for method in (Assured(belief=constant_belief), Tradition()):
        task = Task(pool, metric_set(["accuracy"], pool), seed=1)
        history = label_until(method, task, History(n), 60, 20, lambda row: 0)
        (one,) = method.estimate(task, history)
        assert one.value == pytest.approx(1.0, abs=1e-3)  # stages count a little differently in the fold of that row
        heavy_row_is_known = 499 in history.labels
        assert one.low < (0.985 if heavy_row_is_known else 0.6)


def one_heavy_row(wrong, rng, n=1000, labels=100, drawn=True):
    """One row of 30 % of all weight, and a sample that holds it or not; 5 % of the other rows are wrong."""
    truth = (np.arange(n) % 5 == 0).astype(np.int64)
    errors = rng.permutation(n) < 0.05 * n
    errors[7] = wrong
    weights = np.ones(n)
    weights[7] = 0.3 / 0.7 * (n - 1)
    pool = altmas.Pool(None, np.where(errors, 1 - truth, truth), classes=[0, 1], weights=weights)
    rows = rng.permutation(np.delete(np.arange(n), 7))[:labels]
    rows[0] = 7 if drawn else rows[0]
    batch = Batch(rows, np.full(labels, 1 / n), labels_before=0)
    return pool, truth, History(n, (batch,), {int(row): int(truth[row]) for row in rows})


def test_a_row_of_a_third_of_all_weight_counts_once_when_it_is_drawn():
    pool, truth, history = one_heavy_row(True, np.random.default_rng(1))
    task = Task(pool, metric_set(["accuracy"], pool))
    others = np.setdiff1d(history.drawn, [7])
    (one,) = Tradition().estimate(task, history)
    assert one.value == pytest.approx(0.7 * (pool.predictions == truth)[others].mean())
    assert one.half_width < 0.05
    _, _, without = one_heavy_row(True, np.random.default_rng(1), drawn=False)
    (free,) = Tradition().estimate(task, without)  # nobody knows the row: it may be wrong
    assert free.value > 0.9 and free.low < 0.7 * free.value
    same = Task(weighted(pool, np.ones(1000)), task.metrics)  # rows of equal weight count R / n times
    assert Tradition().estimate(same, history)[0].value == pytest.approx(
        np.mean((pool.predictions == truth)[history.drawn])
    )


@pytest.mark.parametrize("runs", [100, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("wrong", [False, True])
def test_intervals_cover_when_a_row_of_a_third_of_all_weight_was_drawn(wrong, runs):
    """Given that the row was drawn; where it was wrong, the accuracy and the F1 were never covered before (W3)."""
    hits = np.zeros(3)
    for seed in range(runs):
        pool, truth, history = one_heavy_row(wrong, np.random.default_rng([seed, 3]))
        metrics = metric_set(["accuracy", "f1[1]", "kappa"], pool)
        exact = truth_values(pool, truth, metrics)
        hits += [one.low <= exact[one.metric] <= one.high for one in Tradition().estimate(Task(pool, metrics), history)]
    assert (hits / runs).min() >= 0.93 - 2.5 * math.sqrt(0.93 * 0.07 / runs)


def test_points_asked_for_and_not_answered_change_nothing():
    pool, truth = world(n=300, features=False)
    pool, method = weighted(pool, heavy(300)), Assured(belief=constant_belief)
    task = Task(pool, metric_set(["accuracy", "recall[1]"], pool))
    history = label_until(method, task, History(300), 60, 20, truth.__getitem__)
    asked = replace(history, batches=(*history.batches, method.propose(task, history, 50)))
    assert list(method.estimate(task, history)) == list(method.estimate(task, asked))


def test_volunteered_rows_count_as_often_as_they_count_and_no_more():
    pool, truth = world(n=200, features=False)
    pool, method = weighted(pool, heavy(200)), Assured(belief=constant_belief)
    task = Task(pool, metric_set(["accuracy"], pool))
    told = {row: int(truth[row]) for row in range(100)}
    history = label_until(method, task, History(200, labels=told), 199, 33, truth.__getitem__)
    (one,) = method.estimate(task, history)
    exact = truth_values(pool, truth, task.metrics)["accuracy"]
    largest = pool.weights[history.known < 0].max() / pool.weights.sum()
    assert abs(one.value - exact) <= largest and one.low <= exact <= one.high


def test_a_guarantee_counts_weights():
    pool, truth = world(n=400, features=False)
    counts = np.random.default_rng(4).integers(1, 6, 400)
    pool, hits = weighted(pool, counts), 0
    method, metrics = Assured(belief=constant_belief), metric_set(["accuracy", "recall[1]"], pool)
    true = truth_values(pool, truth, metrics)
    for seed in range(4):
        task = Task(pool, metrics, seed=seed, budget=100)
        history = label_until(method, task, History(400), 100, 50, truth.__getitem__)
        ends = [guaranteed_interval(method, task, history, one) for one in metrics]
        hits += sum(low <= true[one.name] <= high for one, (low, high) in zip(metrics, ends, strict=True))
        assert all(high - low < 0.7 for low, high in ends)
    assert hits >= 7
    whole = History(400, batches=history.batches, labels=dict(enumerate(truth.tolist())))
    for one in metrics:
        low, high = guaranteed_interval(method, task, whole, one)
        assert low - 1e-4 <= true[one.name] <= high + 1e-4 and high - low < 0.05


def test_too_many_different_weights_have_no_proof(monkeypatch):
    monkeypatch.setattr("altmas.guaranteed.MOST_WEIGHTS", 100)
    pool, _ = world(n=300, features=False)
    pool = weighted(pool, heavy(300))
    assert "300 different weights" in too_many_weights(pool)
    with pytest.raises(PlanError, match="different weights"):
        altmas.Session.create(None, pool, guarantee=True)
    with pytest.raises(PlanError, match="different weights"):
        altmas.Session.create(None, pool).check("accuracy >= 0.5", guarantee=True)
    assert too_many_weights(weighted(pool, np.arange(300) % 5 + 1.0)) == ""


def test_methods_that_count_every_row_once_refuse():
    pool, truth = world(n=200, scores=True)
    pool = weighted(pool, heavy(200))
    for name in METHODS:
        method = method_named(name) if name not in ("altmas", "bald", "batchbald") else None
        if method is None or method.traits.extra or method.traits.weights:
            continue
        asked = "f1[1]" if method.traits.metrics and "accuracy" not in method.traits.metrics else "accuracy"
        with pytest.raises(MethodError, match="counts every row once.*assured"):
            altmas.Session.create(None, pool, method=name, metrics=[asked])
    with pytest.raises(MethodError, match="counts every row once"):
        simulate(pool, truth, methods=["ppi"], budgets=[50], repeats=1, progress=False)


def test_what_weights_cannot_mean_is_refused():
    pool, truth = world(n=100, features=False)
    for wrong, why in [
        (np.zeros(100), "row 0: 0 is no positive number"),
        (np.full(100, np.nan), "no positive number"),
        (np.ones(99), "one number per point"),
        (["x"] * 100, "must be numbers"),
    ]:
        with pytest.raises(PoolError, match=why):
            weighted(pool, wrong)
    heavy_pool = weighted(pool, heavy(100))
    with pytest.raises(PlanError, match="about='future' with rows that have weights"):
        altmas.Session.create(None, heavy_pool, about="future")
    with pytest.raises(PlanError, match="weights"):
        plan_widths(heavy_pool, about="future")
    with pytest.raises(PoolError, match="weights is not taken"):
        altmas.Pool.sample_from(heavy_pool, 50)


def table_of(pool, truth, weights, path):
    """A Parquet file with the pool, its weights and its truth."""
    columns = {"id": range(len(pool)), "answer": [f"c{one}" for one in pool.predictions], "times": weights}
    pq.write_table(pa.table(columns | {"truth": [f"c{one}" for one in truth]}), path)


def test_weights_come_from_a_column_and_live_with_the_session(tmp_path):
    pool, truth = world(n=120, features=False)
    k = np.random.default_rng(3).integers(1, 5, 120)
    table_of(pool, truth, k, tmp_path / "t.parquet")
    read = altmas.Pool.from_table(tmp_path / "t.parquet", prediction="answer", id="id", weight="times")
    assert read.weights.tolist() == k.tolist() and "stand for" in repr(read)
    with altmas.Session.create(tmp_path / "a.altmas", read) as session:
        session.tell({one.id: f"c{truth[one.index]}" for one in session.ask(30)})
        mine = session.estimate()
    with altmas.Session.open(tmp_path / "a.altmas") as session:
        assert session.pool.weights.tolist() == k.tolist() and list(session.estimate()) == list(mine)
        assert "times" in str(session.pool.source)
        assert "as often as its weight says" in str(session.report().content["assumptions"])
    with altmas.Session.create(tmp_path / "b.altmas", weighted(pool, heavy(120))) as session:
        pass  # kept in the file itself
    with altmas.Session.open(tmp_path / "b.altmas") as session:
        assert session.pool.weights.tolist() == heavy(120).tolist()
    with pytest.raises(PoolMismatch, match="weights"):
        altmas.Session.open(tmp_path / "b.altmas", pool)
    with pytest.raises(PoolError, match="column 'truth' holds string"):
        altmas.Pool.from_table(tmp_path / "t.parquet", prediction="answer", weight="truth")
    (tmp_path / "t.csv").write_text("answer,times\na,2\nb,3\na,1\n")
    assert altmas.Pool.from_table(tmp_path / "t.csv", prediction="answer", weight="times").weights.tolist() == [2, 3, 1]


def test_the_command_line_takes_a_column_of_weights(tmp_path):
    pool, truth = world(n=120, features=False)
    table_of(pool, truth, np.arange(120) % 3 + 1, tmp_path / "t.parquet")
    given = ["--data", tmp_path / "t.parquet", "--prediction", "answer", "--weight", "times"]
    run("init", tmp_path / "s.altmas", *given, "--id", "id")
    with altmas.Session.open(tmp_path / "s.altmas") as session:
        assert session.pool.weights.sum() == 240
    assert "tradition" in run("simulate", *given, "--truth", "truth", "--budget", "30", "--repeats", "2", "-j", 1).out


def test_a_pool_with_weights_grows_with_weights_alone():
    pool, truth = world(n=200, features=False)
    first, more = weighted(pool, heavy(200)), weighted(world(n=100, seed=1, features=False)[0], heavy(100, 1))
    session = altmas.Session.create(None, first, method=Assured(belief=constant_belief), metrics=["accuracy"])
    session.tell({one.id: int(truth[one.index]) for one in session.ask(40)})
    with pytest.raises(PoolError, match="weights: the points of this session have, the items have none"):
        session.extend(world(n=100, seed=1, features=False)[0])
    session.extend(more)
    both = np.concatenate([truth, world(n=100, seed=1, features=False)[1]])
    for _ in range(3):
        session.tell({one.id: int(both[one.index]) for one in session.ask(30)})
    exact = truth_values(session.pool, both, session.task.metrics)["accuracy"]
    (one,) = session.estimate()
    assert session.pool.weights.shape == (300,) and one.low <= exact <= one.high


def test_models_are_compared_and_ranked_by_the_rows_they_stand_for():
    pool, truth = world(n=300, features=False)
    rng = np.random.default_rng(5)
    other = np.where(rng.random(300) < 0.5, truth, (truth + 1) % 3)
    k = np.where(pool.predictions == truth, 1.0, 30.0)  # the first model is right about rows that hardly count
    both = altmas.Pool(None, {"a": pool.predictions, "b": other}, classes=[0, 1, 2], weights=k)
    session = altmas.Session.create(None, both, method=Assured(belief=constant_belief), metrics=["accuracy"])
    for _ in range(5):
        session.tell({one.id: int(truth[one.index]) for one in session.ask(40)})
    assert session.ranking("accuracy").best == "b"
    alone = altmas.Session.create(None, weighted(pool, k), method=Assured(belief=constant_belief))
    for _ in range(5):
        alone.tell({one.id: int(truth[one.index]) for one in alone.ask(40)})
    assert alone.compare(other)["accuracy"].verdict == "better"
