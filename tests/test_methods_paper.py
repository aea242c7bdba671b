"""ALT-MAS, BALD and Trust as users meet them: starts, rounds, notes, options."""

import math
import weakref
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import altmas
from altmas import methods
from altmas.history import Batch, History
from altmas.methods import AltMas, Bald, Task, Trust
from altmas.methods.paper import rounds
from altmas.methods.paper.acquisition import believe, total_information
from altmas.methods.paper.altmas import refuted
from altmas.methods.paper.information import bald
from altmas.methods.paper.rounds import initial_labels
from altmas.methods.paper.surrogates.tuning import Tuned
from altmas.metrics import metric_set, truth_values
from altmas.pool.features import Features
from altmas.simulate import label_until
from altmas.streams import number_of

N, C = 400, 3
QUICK = {"epochs": 20, "draws": 8}


def world(seed=0, accuracy=0.8):
    g = np.random.default_rng(seed)
    truth = g.integers(0, C, N)
    x = (3 * np.eye(C)[truth] + g.normal(size=(N, C))).astype(np.float32)
    predictions = np.where(g.random(N) < accuracy, truth, (truth + 1) % C)
    return altmas.Pool(x, predictions, slices={"site": np.where(np.arange(N) % 2, "a", "b")}), truth


def task_on(pool, names=("paper",), seed=0):
    return Task(pool, metric_set(names, pool), seed=seed)


def labelled(truth, n, seed=0):
    rows = np.random.default_rng(seed).permutation(len(truth))[:n]
    return History(len(truth), (), {int(row): int(truth[row]) for row in rows})


SURROGATE_METHODS = [
    AltMas(**QUICK),
    AltMas(preset="paper", **QUICK),
    Bald(**QUICK),
    AltMas(surrogate="ensemble", epochs=5),
]


def ids(method):
    return f"{method.name}-{getattr(method, 'preset', '')}-{method.surrogate}"


# ---------------------------------------------------------------- start


@pytest.mark.parametrize(
    "wanted, n_points, n_classes, expected",
    [
        (None, 10_000, 10, 100),
        (None, 400, 10, 100),
        (None, 399, 3, 20),
        (None, 300, 10, 50),
        (None, 60, 10, 15),
        (None, 3, 2, 1),
        (30, 10_000, 10, 30),
        (30, 80, 10, 20),
    ],
)
def test_how_many_labels_are_uniform_at_first(wanted, n_points, n_classes, expected):
    assert initial_labels(wanted, n_points, n_classes) == expected


@pytest.mark.parametrize("method", [AltMas(initial=50, **QUICK), Bald(initial=50, **QUICK)], ids=ids)
def test_the_first_labels_are_uniform_and_need_no_network(method, monkeypatch):
    pool, truth = world()
    monkeypatch.setattr(rounds, "_round", None)  # would fail
    batch = method.propose(task_on(pool), History(N), 50)
    assert batch.info["chosen"] == "uniformly"
    waiting = History(N, (batch,))
    assert method.propose(task_on(pool), waiting, 5).info["chosen"] == "uniformly"  # none of them is told yet


@pytest.mark.paper
@pytest.mark.parametrize("method", [AltMas(initial=50, **QUICK), Bald(initial=50, **QUICK)], ids=ids)
def test_points_are_chosen_by_information_once_enough_are_labelled(method):
    pool, truth = world()
    task = task_on(pool)
    assert method.propose(task, labelled(truth, 49), 5).info["chosen"] == "uniformly"
    batch = method.propose(task, labelled(truth, 50), 5)
    assert batch.info["chosen"] == "by information"
    assert batch.probabilities is None
    information = batch.info["information"]
    assert information == sorted(information, reverse=True) and information[-1] > 0


def test_without_a_label_nothing_is_known():
    pool, _ = world()
    for method in SURROGATE_METHODS:
        for one in method.estimate(task_on(pool), History(N)):
            assert math.isnan(one.value) and one.note == "no label yet" and one.labels == 0


@pytest.mark.paper
def test_without_augmentation_and_chosen_by_bald_it_is_bald():
    """What ALT-MAS adds to BALD are these two, and each can be left out."""
    pool, truth = world()
    task, history = task_on(pool), labelled(truth, 120)
    bald = Bald(**QUICK)
    bare = AltMas(preset="paper", augment=False, acquisition="bald", **QUICK)
    assert_array_equal(bare.propose(task, history, 6).indices, bald.propose(task, history, 6).indices)
    assert bare.estimate(task, history).values == bald.estimate(task, history).values
    aware = AltMas(preset="paper", augment=False, **QUICK).propose(task_on(pool, ["precision[0]"]), history, 6)
    assert (pool.predictions[aware.indices] == 0).all()  # a label elsewhere cannot move this precision
    assert aware.info["augmentation"]["size"] == 0
    with_it = AltMas(preset="paper", acquisition="bald", **QUICK).propose(task, history, 6)
    assert with_it.info["augmentation"]["size"] > 0


# ---------------------------------------------------------------- rounds


@pytest.mark.paper
@pytest.mark.parametrize("method", SURROGATE_METHODS, ids=ids)
def test_estimates_come_close_and_say_that_they_carry_no_interval(method):
    pool, truth = world()
    task = task_on(pool, ["accuracy", "recall[0]", "accuracy@site=a"])
    exact = truth_values(pool, truth, task.metrics)
    for one in method.estimate(task, labelled(truth, 150)):
        assert one.value == pytest.approx(exact[one.metric], abs=0.12)
        assert math.isnan(one.low) and math.isnan(one.high) and one.interval == "none"
        assert "no interval" in one.note
        assert one.labels == 150


@pytest.mark.paper
@pytest.mark.parametrize("method", SURROGATE_METHODS, ids=ids)
def test_asking_and_estimating_share_one_round(method, monkeypatch):
    pool, truth = world()
    task, history = task_on(pool), labelled(truth, 120)
    made = []
    real = rounds._round
    monkeypatch.setattr(rounds, "_round", lambda *given: made.append(1) or real(*given))
    batch = method.propose(task, history, 4)
    estimates = method.estimate(task, history)
    waiting = History(N, (batch,), history.labels)
    assert method.estimate(task, waiting).values == estimates.values  # what was only drawn changes nothing
    assert not set(method.propose(task, waiting, 4).indices) & set(batch.indices)
    assert len(made) == 1
    told = History(N, (batch,), {**history.labels, int(batch.indices[0]): 0})
    method.estimate(task, told)
    assert len(made) == 2
    method.estimate(Task(pool, task.metrics, seed=1), told)
    assert len(made) == 3


@pytest.mark.paper
def test_a_remembered_round_lives_no_longer_than_its_pool():
    pool, truth = world(seed=9)
    Bald(**QUICK).estimate(task_on(pool), labelled(truth, 50))
    assert pool.memo.count("round") == 1
    gone = weakref.ref(pool)
    del pool
    assert gone() is None


@pytest.mark.paper
@pytest.mark.parametrize("method", SURROGATE_METHODS, ids=ids)
def test_the_same_seed_gives_the_same_run_and_another_seed_another(method):
    pool, truth = world()
    runs = []
    for seed in (0, 0, 1):
        pool.memo.clear()
        task = task_on(pool, seed=seed)
        history = label_until(method, task, History(N), 105, 5, truth.__getitem__)
        runs.append((history.drawn.tolist(), [one.value for one in method.estimate(task, history)]))
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[2][0]


@pytest.mark.paper
@pytest.mark.parametrize("preset", ["paper", "safe"])
def test_a_round_is_that_of_the_paper(preset):
    """Pseudo-labels join the training set but neither the known labels nor the estimate; scores are (A3)."""
    pool, truth = world(accuracy=0.95)
    method = AltMas(preset=preset, **QUICK)
    task, history = task_on(pool), labelled(truth, 120)
    now = rounds.round_at(task, history, method.settings)
    assert len(now.augmentation.rows) > 20
    assert now.info["training"]["examples"] == 120 + len(now.augmentation.rows)
    assert not np.isin(now.augmentation.rows, history.labelled).any()
    assert (now.belief.labels[:, history.labelled] == history.codes).all()
    scores = total_information(task.metrics, now.belief, history.open)
    batch = method.propose(task, history, 6)
    assert_array_equal(np.sort(scores[batch.indices]), np.sort(scores[history.open])[-6:])
    assert_array_equal(batch.record["pseudo_labelled"], np.isin(batch.indices, now.augmentation.rows))
    for metric, one in zip(task.metrics, method.estimate(task, history), strict=True):
        tables = now.belief.tables(metric)
        whole = np.allclose(tables, np.round(tables))
        assert whole == (preset == "paper")
        assert one.value == pytest.approx(float(np.nanmean(metric.of_table(tables))))


@pytest.mark.paper
def test_bald_sees_true_labels_only_and_follows_the_networks_doubt():
    pool, truth = world(accuracy=0.95)
    method, task, history = Bald(**QUICK), task_on(pool), labelled(truth, 120)
    batch = method.propose(task, history, 6)
    assert batch.info["training"]["examples"] == 120
    now = rounds.round_at(task, history, method.settings)
    probs = np.concatenate([chunk for _, chunk in now.belief.posterior], axis=1)
    scores = bald(probs)
    assert sorted(scores[batch.indices]) == pytest.approx(np.sort(scores[history.open])[-6:], abs=1e-9)


@pytest.mark.paper
@pytest.mark.parametrize("mode", ["hard", "sample", "expected", "mean"])
def test_label_modes_fill_in_what_is_unknown_and_keep_what_is_known(mode):
    pool, truth = world()
    task = task_on(pool, ["accuracy", "accuracy@site=a", "confusion[0,1]"])
    nearly = labelled(truth, N - 1)
    exact = truth_values(pool, truth, task.metrics)
    for one in AltMas(label_mode=mode, **QUICK).estimate(task, nearly):
        assert one.value == pytest.approx(exact[one.metric], abs=1.01 / 200)


@pytest.mark.paper
def test_sampled_labels_differ_from_draw_to_draw_but_not_from_call_to_call():
    pool, truth = world()
    task, history = task_on(pool, ["accuracy"]), labelled(truth, 60)
    method = AltMas(label_mode="sample", dropout=0.0, **QUICK)
    now = rounds.round_at(task, history, method.settings)
    tables = now.belief.tables(task.metrics[0])
    assert len({one.tobytes() for one in tables}) > 1  # identical networks, other labels
    again = believe(
        pool, now.belief.posterior, task.metrics, "sample", [0, number_of(rounds.FIT), 60, number_of(rounds.FILL)]
    )
    assert_array_equal(again.tables(task.metrics[0]), tables)


@pytest.mark.parametrize("method", [*SURROGATE_METHODS, Trust()], ids=lambda m: m.name)
def test_everything_labelled_is_the_truth_to_the_last_digit(method):
    pool, truth = world()
    task = task_on(pool, ["paper", "macro_f1", "kappa", "recall[1]@site=b"])
    exact = truth_values(pool, truth, task.metrics)
    complete = labelled(truth, N)
    for one in method.estimate(task, complete):
        assert one.value == exact[one.metric]
        assert one.note == "every point is labelled"
    assert len(method.propose(task, complete, 5).indices) == 0


@pytest.mark.paper
def test_a_metric_that_some_draws_leave_undefined_says_in_how_many():
    pool, truth = world()
    rare = altmas.Pool(pool.features, pool.predictions, classes=[0, 1, 2, 3])
    task = task_on(rare, ["recall[3]", "recall[0]"])
    one = AltMas(preset="paper", **QUICK).estimate(task, labelled(truth, 100))["recall[3]"]
    assert math.isnan(one.value) and one.note.startswith("undefined")
    rare.memo.clear()
    metric = task.metrics[0]
    tables = np.zeros((4, 4, 4))
    tables[:, 0, 0] = 5
    tables[1, 3, 3] = 2
    found = rounds.estimate_of(task, labelled(truth, 100), metric, tables, "note")
    assert found.value == 1.0 and found.note == "note; undefined in 3 of 4 draws, which are left out"


@pytest.mark.paper
def test_tuning_happens_at_first_and_whenever_labels_have_doubled(monkeypatch):
    pool, truth = world()
    task, method = task_on(pool, ["accuracy"]), AltMas(initial=20, tune=True, **QUICK)
    asked = []

    def stub(x, y, n_classes, training, draws, rng, objective):
        asked.append(len(y))
        assert objective is None
        return Tuned(0.1, replace(training, epochs=7), 0.5)

    monkeypatch.setattr(rounds, "tuned", stub)
    settings = method.settings
    for n, sizes in ((19, []), (20, [20]), (39, [20]), (40, [20, 40]), (79, [20, 40]), (80, [20, 40, 80])):
        now, info = rounds.tuned_at(task, labelled(truth, n), settings)
        assert asked == sizes
        assert (now.dropout, now.training.epochs) == ((0.1, 7) if sizes else (0.3, 20))
        assert info == (
            {"tuned": {"learning_rate": 3e-3, "epochs": 7, "dropout": 0.1, "loss": 0.5, "labels": sizes[-1]}}
            if sizes
            else {}
        )
    assert method.estimate(task, labelled(truth, 80)).info["training"]["steps"] <= 7 * 7
    assert rounds.tuned_at(task, labelled(truth, 80), AltMas(**QUICK).settings)[1] == {}


def test_methods_with_the_same_labels_share_a_tuning_and_metrics_tune_for_themselves(monkeypatch):
    pool, truth = world()
    history, asked = labelled(truth, 40), []

    def stub(x, y, n_classes, training, draws, rng, objective):
        asked.append(objective is None)
        return Tuned(0.1, training, 0.5)

    monkeypatch.setattr(rounds, "tuned", stub)
    given = {"tune": True, "initial": 20}
    for metrics in (["accuracy"], ["precision[1]"]):
        for method in (AltMas(preset="paper", **given), Bald(**given)):
            rounds.tuned_at(task_on(pool, metrics), history, method.settings)
    assert asked == [True]
    tasks = [task_on(pool, [metric]) for metric in ("accuracy", "precision[1]")]
    for task in (*tasks, tasks[0]):
        rounds.tuned_at(task, history, Bald(tune_for="metric error", **given).settings)
    assert asked == [True, False, False]


def test_the_error_of_metrics_on_held_out_labels():
    """Two draws; accuracy of the model on four labels is 1/2, and 3/4 and 1 by the draws: 0.875 - 0.5."""
    pool = altmas.Pool(np.zeros((6, 1)), [0, 0, 1, 1, 0, 1], classes=[0, 1])
    task = task_on(pool, ["accuracy", "recall[1]"])
    rows, codes = np.array([5, 0, 1, 2, 3]), np.array([1, 0, 1, 1, 0])
    tested = np.array([1, 2, 3, 4])  # rows 0, 1, 2, 3: predicted 0, 0, 1, 1, truly 0, 1, 1, 0
    filled = np.array([[0, 1, 1, 1], [0, 0, 1, 1]])
    found = rounds.metric_error(task, rows, codes, np.eye(2)[filled], tested)
    recalls = (2 / 3 + 1) / 2 - 1 / 2
    assert found == pytest.approx((0.375 + recalls) / 2)
    only = task_on(pool, ["recall[1]"])  # undefined where no label is 1
    assert rounds.metric_error(only, rows[[1]], codes[[1]], np.eye(2)[[[0]]], np.array([0])) == 0.0


# ---------------------------------------------------------------- what is said about pseudo-labels


@pytest.mark.paper
def test_batches_and_estimates_say_what_augmentation_did():
    pool, truth = world(accuracy=0.95)
    task, method = task_on(pool), AltMas(**QUICK)
    history = label_until(method, task, History(N), 120, 10, truth.__getitem__)
    told = method.estimate(task, history).info
    asked = method.propose(task, history, 2).info
    for info in (told, asked):
        found = info["augmentation"]
        assert found["size"] > 0 and 0 < found["precision"] <= 1 and found["candidates"] >= found["size"]
        assert set(found) >= {"threshold", "trusted_by", "checked", "refuted", "refuted_share"}
        assert info["training"]["steps"] > 0 and info["draws"] == 8
    flagged = sum(int(batch.record["pseudo_labelled"].sum()) for batch in history.batches if batch.record)
    assert told["augmentation"]["checked"] == flagged


def test_refuted_pseudo_labels_are_those_whose_label_turned_out_otherwise():
    pool, truth = world()
    a = pool.predictions
    batch = Batch(np.array([1, 2, 3, 4]), record={"pseudo_labelled": np.array([True, True, False, True])})
    other = Batch(np.array([7]))  # the uniform start has no such record
    labels = {1: int(a[1]), 2: int((a[2] + 1) % C), 3: int((a[3] + 1) % C), 7: 0}  # 4 is still outstanding
    found = refuted(task_on(pool), History(N, (other, batch), labels))
    assert found == {"checked": 2, "refuted": 1, "refuted_share": 0.5}
    assert refuted(task_on(pool), History(N))["refuted_share"] is None


# ---------------------------------------------------------------- trust, options


def test_trust_believes_the_model_where_there_is_no_label():
    pool, truth = world()
    task = task_on(pool, ["accuracy", "recall[1]", "accuracy@site=a"])
    assert [one.value for one in Trust().estimate(task, History(N))] == [1, 1, 1]
    history = labelled(truth, 100)
    believed = np.where(history.known >= 0, history.known, pool.predictions)
    exact = truth_values(pool, believed, task.metrics)
    for one in Trust().estimate(task, history):
        assert one.value == pytest.approx(exact[one.metric])
        assert "what the model says" in one.note


def test_trust_proposes_every_open_point_equally_often():
    pool, truth = world()
    history = labelled(truth, 390)
    picks = [Trust().propose(task_on(pool, seed=seed), history, 1).indices[0] for seed in range(600)]
    counts = np.bincount(picks, minlength=N)[history.open]
    assert counts.sum() == 600 and (abs(counts - 60) < 5 * math.sqrt(60)).all()


def test_presets_choose_how_labels_are_filled_in():
    assert (
        AltMas(preset="safe").settings.label_mode == "expected" and AltMas(preset="safe").settings.trust == "cautious"
    )
    assert AltMas(preset="paper").settings.label_mode == "hard" and AltMas(preset="paper").settings.trust == "literal"
    assert AltMas(label_mode="sample").settings.label_mode == "sample"
    assert Bald().settings.label_mode == "hard" and Bald().settings.trust is None


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"preset": "sade"}, altmas.errors.MethodError, "'sade'.*safe"),
        ({"label_mode": "soft"}, altmas.errors.MethodError, "'soft'.*expected"),
        ({"surrogate": "mcdropout"}, altmas.errors.MethodError, "mc_dropout"),
        ({"draws": 0}, altmas.errors.PlanError, "draws 0 is out of range; expected a number of at least 1"),
        ({"dropout": 1.0}, altmas.errors.PlanError, "dropout 1.0"),
        ({"dropout": math.nan}, altmas.errors.PlanError, "dropout nan"),
        ({"learning_rate": 0.0}, altmas.errors.PlanError, "learning_rate"),
        ({"epochs": 0}, altmas.errors.PlanError, "epochs"),
        ({"batch": 0}, altmas.errors.PlanError, "batch"),
        ({"max_steps": 0}, altmas.errors.PlanError, "max_steps"),
        ({"enough": -0.1}, altmas.errors.PlanError, "enough"),
        ({"acquisition": "balb"}, altmas.errors.MethodError, "bald"),
        ({"weight_decay": -1e-4}, altmas.errors.PlanError, "weight_decay"),
        ({"precision_power": 0}, altmas.errors.PlanError, "precision_power"),
        ({"pseudo_weight": 0}, altmas.errors.PlanError, "pseudo_weight"),
        ({"initial": 0}, altmas.errors.PlanError, "initial 0"),
        ({"tune": True, "surrogate": "ensemble"}, altmas.errors.MethodError, "cannot be tuned"),
    ],
)
def test_options_out_of_range_are_refused_when_the_method_is_made(options, error, words):
    with pytest.raises(error, match=words):
        AltMas(**options)


def test_a_pool_without_features_is_refused_with_what_would_work():
    bare = altmas.Pool(None, [0, 1, 0, 1])
    for method in (AltMas(), Bald()):
        with pytest.raises(altmas.errors.MethodError, match="needs features.*tradition .*trust "):
            methods.check(method, bare)


@pytest.mark.paper
def test_memory_mapped_integer_features_work(tmp_path):
    g = np.random.default_rng(0)
    truth = g.integers(0, 2, 200)
    np.save(tmp_path / "x.npy", (100 * truth[:, None] + g.integers(0, 90, (200, 4))).astype(np.uint8))
    pool = altmas.Pool(np.load(tmp_path / "x.npy", mmap_mode="r"), truth)
    assert isinstance(Features.of(pool).raw, np.memmap)
    estimates = AltMas(**QUICK).estimate(task_on(pool, ["accuracy"]), labelled(truth, 60))
    assert estimates["accuracy"].value > 0.9


@pytest.mark.paper
def test_two_who_ask_for_the_same_round_at_once_share_it(monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    pool, truth = world(seed=4)
    task, history, method = task_on(pool, ["accuracy"]), labelled(truth, 80), AltMas(**QUICK)
    made = []
    real = rounds._round
    monkeypatch.setattr(rounds, "_round", lambda *given: made.append(1) or real(*given))
    with ThreadPoolExecutor(3) as executor:
        values = list(executor.map(lambda _: method.estimate(task, history)["accuracy"].value, range(3)))
    assert len(made) == 1 and len(set(values)) == 1
