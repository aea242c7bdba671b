"""Scores of points against brute force from the definition (A6)-(A8), and how points are picked by score."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from altmas.methods.paper.acquisition import (
    believe,
    best,
    candidate_values,
    groups_by_value,
    metric_information,
    total_information,
)
from altmas.methods.paper.information import bald, binary_information
from altmas.methods.paper.posterior import Posterior
from altmas.metrics import metric_set
from altmas.pool import Pool

ALL_KINDS = [
    *("accuracy", "error", "balanced_accuracy", "macro_precision", "macro_recall", "macro_f1", "kappa", "mcc"),
    *(f"{kind}[{k}]" for kind in ("recall", "specificity", "npv", "f1", "jaccard") for k in (0, 1)),
    *("fbeta[1,2]", "confusion[0,1]", "confusion[1,1]"),
]


def posterior_of(probs, known=None):
    """A posterior whose probabilities are given; labelled points are pinned by it."""
    draws, n, n_classes = probs.shape
    known = np.full(n, -1) if known is None else known
    return Posterior(lambda rows: probs[:, rows].copy(), known, draws, n_classes)


def belief_of(pool, probs, known, metrics):
    return believe(pool, posterior_of(probs, known), metrics)


# ---------------------------------------------------------------- brute force, straight from the definition


def zero(top, bottom):
    """0/0 := 0 (Z3)."""
    return top / bottom if bottom else 0.0


def by_definition(name, a, y, n_classes):
    """A metric of vectors of predictions and labels, written out independently of altmas.metrics."""
    kind, _, rest = name.partition("[")
    arguments = [float(one) for one in rest.rstrip("]").split(",")] if rest else []
    classes = range(n_classes)
    n = len(a)

    def hits(k):
        return sum(1 for p, t in zip(a, y, strict=True) if p == t == k)

    def called(k):
        return sum(1 for p in a if p == k)

    def truly(k):
        return sum(1 for t in y if t == k)

    def f_beta(k, beta):
        return zero((1 + beta**2) * hits(k), called(k) + beta**2 * truly(k))

    right = sum(map(hits, classes))
    chance = sum(called(k) * truly(k) for k in classes)
    k = arguments[0] if arguments else None
    negatives_kept = n - called(k) - truly(k) + hits(k)
    spread = (n**2 - sum(called(c) ** 2 for c in classes)) * (n**2 - sum(truly(c) ** 2 for c in classes))
    return {
        "accuracy": lambda: right / n,
        "error": lambda: 1 - right / n,
        "precision": lambda: zero(hits(k), called(k)),
        "recall": lambda: zero(hits(k), truly(k)),
        "f1": lambda: f_beta(k, 1.0),
        "fbeta": lambda: f_beta(k, arguments[1]),
        "jaccard": lambda: zero(hits(k), called(k) + truly(k) - hits(k)),
        "specificity": lambda: zero(negatives_kept, n - truly(k)),
        "npv": lambda: zero(negatives_kept, n - called(k)),
        "confusion": lambda: sum(1 for p, t in zip(a, y, strict=True) if (p, t) == tuple(arguments)) / n,
        "macro_precision": lambda: sum(zero(hits(c), called(c)) for c in classes) / n_classes,
        "macro_recall": lambda: sum(zero(hits(c), truly(c)) for c in classes) / n_classes,
        "balanced_accuracy": lambda: sum(zero(hits(c), truly(c)) for c in classes) / n_classes,
        "macro_f1": lambda: sum(f_beta(c, 1.0) for c in classes) / n_classes,
        "kappa": lambda: zero(n * right - chance, n**2 - chance),
        "mcc": lambda: zero(n * right - chance, spread**0.5),
    }[kind]()


def brute_force_values(value, a, labels, n_classes):
    """(A6) Qt(i, c): put c at x_i, keep every other point at its label in draw j, average over j."""
    values = np.zeros((len(a), n_classes))
    for i, c, label in itertools.product(range(len(a)), range(n_classes), labels):
        changed = label.copy()
        changed[i] = c
        values[i, c] += value(a.tolist(), changed.tolist()) / len(labels)
    return values


def brute_force_information(values, probs):
    """(A7), (A8) for each point, group by group."""
    found = np.zeros(len(values))
    for i, row in enumerate(values):
        order = np.argsort(row)
        groups, current = [], [order[0]]
        for before, after in itertools.pairwise(order):
            if row[after] - row[before] > 1e-12:
                groups.append(current)
                current = []
            current.append(after)
        groups.append(current)
        u = np.array([[p[i, group].sum() for group in groups] for p in probs])  # (M, groups)
        found[i] = max(0.0, entropy(u.mean(0)) - np.mean([entropy(one) for one in u]))
    return found


def entropy(p):
    return -sum(x * np.log(x) for x in p if x > 0)


# ---------------------------------------------------------------- instances


def instance(seed, n=14, n_classes=3, draws=4, labelled=4):
    """Predictions, pinned probabilities, known labels of a random pool."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, n_classes, n)
    probs = rng.dirichlet(np.full(n_classes, 0.4), (draws, n))
    known = np.full(n, -1)
    known[:labelled] = rng.integers(0, n_classes, labelled)
    return a, probs, known


def never_predicted(seed):
    a, probs, known = instance(seed)
    return np.where(a == 1, 0, a), probs, known


def never_predicted_and_never_true(seed):
    a, probs, known = instance(seed)
    probs[:, :, 1] = 1e-9
    return np.where(a == 1, 0, a), probs / probs.sum(-1, keepdims=True), np.where(known == 1, 0, known)


def perfect_model(seed):
    a, probs, known = instance(seed)
    probs = 0.2 * probs + 0.8 * np.eye(3)[a]
    return a, probs, np.where(known >= 0, a, -1)


def always_wrong_model(seed):
    a, probs, known = instance(seed)
    probs = 0.2 * probs + 0.8 * np.eye(3)[(a + 1) % 3]
    return a, probs, np.where(known >= 0, (a + 1) % 3, -1)


def one_class_predicted(seed):
    a, probs, known = instance(seed)
    return np.zeros_like(a), probs, known


def one_class_predicted_and_true(seed):
    a, probs, known = instance(seed)
    return np.zeros_like(a), 0.2 * probs + 0.8 * np.eye(3)[0], np.where(known >= 0, 0, -1)


def one_true_member(seed):
    """Class 1 has a single true point in every draw: recall moves between 0/0 and 1."""
    a, probs, known = instance(seed, labelled=0)
    probs[:, :, 1] = 0.01
    probs[:, 0] = [0.05, 0.9, 0.05]
    return np.where(np.arange(len(a)) == 0, 1, a), probs / probs.sum(-1, keepdims=True), known


def one_draw(seed):
    return instance(seed, draws=1)


def all_labelled(seed):
    return instance(seed, labelled=14)


def two_classes(seed):
    return instance(seed, n_classes=2)


def five_classes(seed):
    return instance(seed, n=10, n_classes=5, draws=3)


CASES = [
    *(
        instance,
        never_predicted,
        never_predicted_and_never_true,
        perfect_model,
        always_wrong_model,
        one_class_predicted,
    ),
    *(one_class_predicted_and_true, one_true_member, one_draw, all_labelled, two_classes, five_classes),
]


def pinned(probs, known):
    probs = probs.copy()
    probs[:, known >= 0] = np.eye(probs.shape[-1])[known[known >= 0]]
    return probs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_every_metric_scores_as_brute_force_from_the_definition(case, seed):
    a, probs, known = case(seed)
    n_classes = probs.shape[-1]
    pool = Pool(None, a, classes=range(n_classes))
    predicted = [f"precision[{k}]" for k in range(n_classes) if k in a]
    undefined = ("mcc", "npv[0]") if len(predicted) == 1 else ()  # refused for a constant model
    kinds = [name for name in ALL_KINDS if name not in undefined]
    metrics = metric_set([*kinds, *predicted], pool)
    belief = belief_of(pool, probs, known, metrics)
    labels = pinned(probs, known).argmax(-1)
    for metric in metrics:
        values = brute_force_values(lambda p, y, m=metric: by_definition(m.name, p, y, n_classes), a, labels, n_classes)
        expected = brute_force_information(values, pinned(probs, known))
        found = metric_information(metric, belief, np.ones(len(a), bool))
        assert_allclose(found, expected, atol=1e-12, err_msg=f"{case.__name__} {seed} {metric.name}")


@pytest.mark.parametrize("seed", range(3))
def test_a_metric_of_unknown_structure_takes_the_table_route(seed):
    a, probs, known = instance(seed)
    pool = Pool(None, a, classes=range(3))

    def truly_one_among_right_ones(y_true, y_pred):
        right = y_true == y_pred
        return (y_true[right] == 1).mean() if right.any() else np.nan

    (metric,) = metric_set([truly_one_among_right_ones], pool)
    belief = belief_of(pool, probs, known, [metric])
    labels = pinned(probs, known).argmax(-1)

    def value(p, y):
        answer = truly_one_among_right_ones(np.array(y), np.array(p))
        return 0.0 if np.isnan(answer) else answer

    values = brute_force_values(value, a, labels, 3)
    tables = belief.hard_tables(metric)
    assert_allclose(candidate_values(metric, tables, a, labels), values, atol=1e-12)
    found = metric_information(metric, belief, np.ones(len(a), bool))
    assert_allclose(found, brute_force_information(values, pinned(probs, known)), atol=1e-12)


def test_a_callable_is_called_for_few_draws_where_it_would_be_called_too_often(monkeypatch):
    """Which labels a function tells apart shows in three draws as well as in thirty."""
    from sklearn.metrics import f1_score

    a, probs, known = instance(3, n=80, n_classes=3, draws=30)
    calls = []

    def function(y_true, y_pred):
        calls.append(1)
        return f1_score(y_true, y_pred, average="macro")

    pool = Pool(None, a, classes=range(3))
    metrics = metric_set([function, "macro_f1"], pool)
    belief = belief_of(pool, probs, known, metrics)
    monkeypatch.setattr("altmas.methods.paper.acquisition.EVALUATIONS", 50)
    calls.clear()
    found, exact = (metric_information(metric, belief, np.ones(80, bool)) for metric in metrics)
    assert len(calls) == 3 * 9 * 3
    assert_allclose(found, exact, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_cost_groups_the_labels_that_cost_the_same(seed):
    a, probs, known = five_classes(seed)
    matrix = np.array([[0, 1, 1, 5, 5], [1, 0, 1, 1, 1], [2, 2, 0, 2, 7], [1, 2, 3, 0, 4], [1, 1, 1, 1, 1]])
    pool = Pool(None, a, classes=range(5))
    (metric,) = metric_set([("cost", matrix)], pool)
    values = brute_force_values(lambda p, y: matrix[p, y].mean(), a, pinned(probs, known).argmax(-1), 5)
    found = metric_information(metric, belief_of(pool, probs, known, [metric]), np.ones(len(a), bool))
    assert_allclose(found, brute_force_information(values, pinned(probs, known)), atol=1e-12)


@pytest.mark.parametrize("name", ["accuracy", "recall[1]", "specificity[1]", "macro_recall", "kappa", "f1[0]"])
def test_a_metric_of_a_slice_is_scored_by_the_table_of_its_members(name):
    a, probs, known = instance(5)
    half = np.arange(len(a)) % 2 == 0
    pool = Pool(None, a, classes=range(3), slices={"site": np.where(half, "A", "B")})
    (metric,) = metric_set([f"{name}@site=A"], pool)
    found = metric_information(metric, belief_of(pool, probs, known, [metric]), np.ones(len(a), bool))
    labels = pinned(probs, known).argmax(-1)
    values = brute_force_values(lambda p, y: by_definition(name, p, y, 3), a[half], labels[:, half], 3)
    assert_allclose(found[half], brute_force_information(values, pinned(probs, known)[:, half]), atol=1e-12)
    assert_array_equal(found[~half], 0)


# ---------------------------------------------------------------- fixtures and consequences


FIXTURE_1 = np.array([[[0.7, 0.2, 0.1]], [[0.1, 0.3, 0.6]]])


@pytest.mark.parametrize("prediction, total", [(0, 0.7702152), (1, 0.3735427), (2, 0.6569378)])
def test_the_set_of_accuracy_precisions_and_recalls_of_fixture_1(prediction, total):
    """A.11, item 6; more points make every recall alive."""
    a = np.array([prediction, 0, 0, 1, 1, 2, 2])
    extra = np.tile(0.7 * np.eye(3)[[0, 1, 1, 2, 2, 0]] + 0.1, (2, 1, 1))
    pool = Pool(None, a, classes=range(3))
    probs = np.concatenate([FIXTURE_1, extra], axis=1)
    metrics = metric_set(["paper"], pool)
    assert len(metrics) == 7
    scores = total_information(metrics, belief_of(pool, probs, np.full(7, -1), metrics), np.ones(7, bool))
    assert_allclose(scores[0], total, atol=5e-8)


FIXTURE_2_A = np.array([0, 0, 1, 1, 0, 1])
FIXTURE_2_L = np.array([[0, 1, 1, 1, 0, 1], [0, 0, 1, 0, 0, 1]])


@pytest.mark.parametrize(
    "name, at_1, at_3",
    [
        ("accuracy", (0.916667, 0.75), (0.75, 0.916667)),
        ("precision[1]", (0.833333, 0.833333), (0.666667, 1.0)),
        ("recall[1]", (1.0, 0.708333), (0.833333, 0.875)),
        ("f1[1]", (0.9, 0.761905), (0.733333, 0.928571)),
    ],
)
def test_the_values_of_fixture_2_to_their_printed_digits(name, at_1, at_3):
    """A.11, item 7."""
    pool = Pool(None, FIXTURE_2_A, classes=[0, 1])
    (metric,) = metric_set([name], pool)
    probs = 0.9 * np.eye(2)[FIXTURE_2_L] + 0.05
    known = np.array([-1, -1, -1, -1, 0, 1])
    tables = belief_of(pool, probs, known, [metric]).hard_tables(metric)
    values = candidate_values(metric, tables, FIXTURE_2_A, FIXTURE_2_L)
    assert_allclose(values[1], at_1, atol=5e-7)
    assert_allclose(values[3], at_3, atol=5e-7)


@pytest.mark.parametrize("seed", range(4))
def test_no_metric_tells_more_than_the_label(seed):
    a, probs, known = instance(seed, n=30, n_classes=4, draws=6)
    pool = Pool(None, a, classes=range(4))
    metrics = metric_set([*ALL_KINDS, "per_class"], pool)
    belief = belief_of(pool, probs, known, metrics)
    for metric in metrics:
        found = metric_information(metric, belief, np.ones(30, bool))
        assert (found <= bald(pinned(probs, known)) + 1e-13).all(), metric.name


@pytest.mark.parametrize("name", ["accuracy", "recall[0]", "recall[1]", "f1[1]", "jaccard[1]"])
def test_with_two_classes_most_metrics_are_bald(name):
    a, probs, known = two_classes(8)
    pool = Pool(None, a, classes=[0, 1])
    metrics = metric_set([name, "precision[1]"], pool)
    belief = belief_of(pool, probs, known, metrics)
    everything = bald(pinned(probs, known))
    assert_allclose(metric_information(metrics[0], belief, np.ones(len(a), bool)), everything, atol=1e-14)
    assert_allclose(
        metric_information(metrics[1], belief, np.ones(len(a), bool)), np.where(a == 1, everything, 0), atol=1e-14
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_papers_set_collapses_to_one_sum(seed):
    """(A24), where no recall is degenerate."""
    a, probs, known = instance(seed, n=60, n_classes=4, draws=5, labelled=10)
    pool = Pool(None, a, classes=range(4))
    metrics = metric_set(["paper"], pool)
    scores = total_information(metrics, belief_of(pool, probs, known, metrics), np.ones(60, bool))
    probs = pinned(probs, known)
    expected = 2 * binary_information(probs[:, np.arange(60), a]) + binary_information(probs).sum(-1)
    assert_allclose(scores, expected, atol=1e-13)


def test_permuting_the_classes_permutes_nothing_else():
    a, probs, known = instance(4, n=25, n_classes=4, draws=5)
    to = np.array([2, 0, 3, 1])  # class c is called to[c] in the other world
    back = np.argsort(to)
    scores = []
    for a_, probs_, known_, names in (
        (a, probs, known, ["accuracy", "recall[1]", "f1[3]", "kappa", "macro_f1", "mcc", "confusion[0,2]"]),
        (
            to[a],
            probs[:, :, back],
            np.where(known >= 0, to[known], -1),
            ["accuracy", "recall[0]", "f1[1]", "kappa", "macro_f1", "mcc", "confusion[2,3]"],
        ),
    ):
        pool = Pool(None, a_, classes=range(4))
        metrics = metric_set(names, pool)
        belief = belief_of(pool, probs_, known_, metrics)
        scores.append([metric_information(metric, belief, np.ones(25, bool)) for metric in metrics])
    assert_allclose(scores[0], scores[1], atol=1e-13)


def test_kappa_merges_labels_with_equal_row_sums():
    a = np.repeat(np.arange(4), 5)
    probs = np.random.default_rng(0).dirichlet(np.ones(4), (3, 20))
    pool = Pool(None, a, classes=range(4))
    (metric,) = metric_set(["kappa"], pool)
    belief = belief_of(pool, probs, np.full(20, -1), [metric])
    tables = belief.hard_tables(metric)
    groups = groups_by_value(candidate_values(metric, tables, a, belief.labels))
    assert (groups.max(1) == 1).all()
    assert_allclose(
        metric_information(metric, belief, np.ones(20, bool)),
        binary_information(probs[:, np.arange(20), a]),
        atol=1e-14,
    )


def test_macro_recall_cannot_tell_never_predicted_classes_apart():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 40)  # classes 2 and 3 are never predicted
    probs = rng.dirichlet(np.ones(4), (3, 40))
    pool = Pool(None, a, classes=range(4))
    (metric,) = metric_set(["macro_recall"], pool)
    belief = belief_of(pool, probs, np.full(40, -1), [metric])
    tables = belief.hard_tables(metric)
    groups = groups_by_value(candidate_values(metric, tables, a, belief.labels))
    assert (groups.max(1) == 2).all()
    assert_array_equal(groups[:, 2], groups[:, 3])


def test_values_within_rounding_of_each_other_are_one_group():
    values = np.array([[0.3, 0.1 + 0.2, 0.5], [0.5, 0.3, 0.1]])
    assert_array_equal(groups_by_value(values), [[0, 0, 1], [2, 1, 0]])


def test_above_thirty_classes_an_unknown_metric_counts_as_bald_and_closed_forms_stay_exact():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 40, 50)
    probs = rng.dirichlet(np.full(40, 0.1), (3, 50))
    pool = Pool(None, a, classes=range(40))

    calls = []

    def unknown(y_true, y_pred):
        calls.append(1)
        return float(len(y_true))

    metrics = metric_set([unknown, "macro_f1", "recall[7]"], pool)
    calls.clear()
    belief = belief_of(pool, probs, np.full(50, -1), metrics)
    found = [metric_information(metric, belief, np.ones(50, bool)) for metric in metrics]
    assert not calls
    assert_allclose(found[0], bald(probs), atol=1e-14)
    labels = probs.argmax(-1)
    at = 3
    values = np.zeros((1, 40))
    for c, label in itertools.product(range(40), labels):
        changed = label.copy()
        changed[at] = c
        values[0, c] += by_definition("macro_f1", a.tolist(), changed.tolist(), 40) / len(labels)
    assert_allclose(found[1][at], brute_force_information(values, probs[:, [at]])[0], atol=1e-12)


# ---------------------------------------------------------------- picking


def test_the_best_open_points_come_first():
    scores = np.array([0.5, 0.9, 0.1, 0.8, 0.7])
    open_ = np.array([True, False, True, True, True])
    assert_array_equal(best(scores, open_, 3, np.random.default_rng(0)), [3, 4, 0])
    assert len(best(scores, open_, 10, np.random.default_rng(0))) == 4
    assert len(best(scores, np.zeros(5, bool), 2, np.random.default_rng(0))) == 0


@pytest.mark.parametrize("scores", [np.zeros(6), np.full(6, 1e-13) * np.arange(6), np.full(6, 0.3)])
def test_ties_and_scores_that_say_nothing_are_broken_at_random(scores):
    rng = np.random.default_rng(0)
    counts = np.bincount([best(scores, np.ones(6, bool), 1, rng)[0] for _ in range(3000)], minlength=6)
    assert (abs(counts - 500) < 5 * np.sqrt(500)).all()


def test_the_tail_of_a_batch_is_random_where_nothing_is_known():
    scores = np.array([0.0, 0.0, 0.4, 0.0, 0.0])
    rng = np.random.default_rng(0)
    picks = np.array([best(scores, np.ones(5, bool), 2, rng) for _ in range(400)])
    assert (picks[:, 0] == 2).all()
    assert set(picks[:, 1]) == {0, 1, 3, 4}


def test_labels_of_the_mean_prediction_make_one_table():
    """Draws that err in different places outvote one another; a label that is known stays."""
    a, probs, known = instance(3)
    pool = Pool(None, a, classes=range(3))
    metrics = metric_set(["accuracy"], pool)
    belief = believe(pool, posterior_of(probs, known), metrics, "mean")
    tables = belief.tables(metrics[0])
    labels = np.where(known >= 0, known, probs.mean(0).argmax(1))
    assert tables.shape == (1, 3, 3)
    assert metrics[0].of_table(tables)[0] == pytest.approx((labels == a).mean())
    assert_array_equal(belief.hard_tables(metrics[0]), belief_of(pool, probs, known, metrics).tables(metrics[0]))
