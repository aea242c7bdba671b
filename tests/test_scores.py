"""Metrics of scores and of the truth: values, slopes, and the names that stand for them."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, cohen_kappa_score, log_loss, roc_auc_score

import altmas
from altmas.belief import Belief
from altmas.errors import MethodError, MetricError
from altmas.methods import check, method_named
from altmas.metrics import LabelWeights, RowCodes, metric_set, truth_values
from altmas.metrics.influence import ItemInfluence
from altmas.metrics.scores import BINS, average_precision, bins_of, calibration_error, roc_auc
from scores_world import a_pool


class AnyWeights:
    """W as the N x C array itself."""

    def __init__(self, w):
        self.w = w

    n_classes = property(lambda self: self.w.shape[1])
    mass = property(lambda self: self.w.sum(1))

    def table(self, rows: RowCodes):
        table = np.zeros((rows.count, self.w.shape[1]))
        np.add.at(table, rows.codes, self.w)
        return table

    def of_class(self, code):
        return self.w[np.arange(len(self.w)), np.broadcast_to(code, len(self.w))]


NAMES = [
    "accuracy",
    "recall[cat]",
    "f1[cat]",
    "precision[cat]",
    "macro_f1",
    "kappa",
    "weighted_kappa",
    "weighted_kappa[linear]",
    "recall[dog,0.3]",
    "precision[dog,0.3]",
    "f1[dog,0.3]",
    "npv[dog,0.3]",
    "specificity[dog,0.3]",
    "share[dog]",
    "mean[cat=1,dog=4,eel=2]",
    "roc_auc[dog]",
    "roc_auc",
    "average_precision[dog]",
    "average_precision",
    "log_loss",
    "brier",
    "calibration_error",
]


def value_on(metric, pool, w):
    return metric.value(pool, AnyWeights(w))


@pytest.mark.parametrize("name", NAMES)
def test_slopes_equal_finite_differences(name):
    pool, truth = a_pool(3)
    (metric,) = metric_set(name, pool)
    rng = np.random.default_rng(1)
    w = rng.dirichlet(np.ones(3), len(pool))
    value, items = metric.at(pool, AnyWeights(w))
    assert value == pytest.approx(value_on(metric, pool, w))
    step = 1e-6
    for point in range(0, len(pool), 7):
        moves = items.rows(np.array([point]))[0]
        for a, b in ((0, 1), (1, 2), (2, 0)):  # weight goes from class a to class b
            up, down = w.copy(), w.copy()
            up[point, a] -= step
            up[point, b] += step
            down[point, a] += step
            down[point, b] -= step
            slope = (value_on(metric, pool, up) - value_on(metric, pool, down)) / (2 * step)
            assert moves[b] - moves[a] == pytest.approx(slope, abs=2e-7)


@pytest.mark.parametrize("name", NAMES)
def test_slopes_with_their_constant_are_those_of_weight_that_is_added(name):
    pool, truth = a_pool(3)
    (metric,) = metric_set(name, pool)
    w = np.random.default_rng(2).dirichlet(np.ones(3), len(pool))
    value, items = metric.at(pool, AnyWeights(w))
    constant = np.broadcast_to(items.constant(), len(pool))
    added = np.zeros((len(pool), 3))
    for point in range(0, len(pool), 7):
        for c in range(3):
            up, down = w.copy(), w.copy()
            up[point, c] += 1e-6
            down[point, c] -= 1e-6
            added[point, c] = (value_on(metric, pool, up) - value_on(metric, pool, down)) / 2e-6
    points = np.arange(0, len(pool), 7)
    found = items.rows(points) + constant[points][:, None]
    apart = found - added[points]
    assert apart == pytest.approx(np.full_like(apart, apart.mean()), abs=3e-7)  # up to one constant for all


@pytest.mark.parametrize("name", NAMES)
def test_moments_ranges_and_spreads_are_those_of_the_rows(name):
    pool, truth = a_pool(3)
    (metric,) = metric_set(name, pool)
    rng = np.random.default_rng(3)
    anchor = rng.integers(0, 3, len(pool))  # not the model's own answers
    rivals = np.array([[0, 0.3, 0.7], [0.6, 0, 0.4], [0.5, 0.5, 0]])
    for predictions in (anchor, pool.predictions):
        belief = Belief(predictions, rng.uniform(0.2, 0.9, len(pool)), rivals, predictions, {})
        points = np.arange(len(pool))
        w = belief.rows(points)
        _, items = metric.at(pool, AnyWeights(w))
        mean, variance = items.moments(belief)
        slow_mean, slow_variance = ItemInfluence.moments(items, belief)
        np.testing.assert_allclose(mean, slow_mean, atol=1e-12)
        np.testing.assert_allclose(variance, slow_variance, atol=1e-12)
        np.testing.assert_allclose(items.third_moment(belief), ItemInfluence.third_moment(items, belief), atol=1e-12)
        np.testing.assert_allclose(items.mean(points[5:9], belief), mean[5:9], atol=1e-12)
        low, high = items.range()
        np.testing.assert_allclose(low, items.rows(points).min(1), atol=1e-12)
        np.testing.assert_allclose(high, items.rows(points).max(1), atol=1e-12)
        moves = items.rows(points) + np.broadcast_to(items.constant(), len(pool))[:, None]
        spread = (w * moves**2).sum() - (w * moves).sum() ** 2 / len(pool)
        assert items.spread(AnyWeights(w)) == pytest.approx(spread)
        other = rng.dirichlet(np.ones(3), len(pool))
        expected = ((other - w) * items.rows(points)).sum()
        assert items.dot(AnyWeights(other), AnyWeights(w)) == pytest.approx(expected)
        np.testing.assert_allclose(belief.of_class(1), w[:, 1])
        np.testing.assert_allclose(belief.of_class(anchor), w[points, anchor])
        rows = pool.predictions % 2
        inside = rng.random(len(pool)) < 0.5
        table = AnyWeights(w * inside[:, None]).table(RowCodes((), rows, 2))
        np.testing.assert_allclose(belief.table_by(rows, 2, inside), table)
        own = AnyWeights(w * inside[:, None]).table(RowCodes((), pool.predictions, 3))
        np.testing.assert_allclose(belief.table_by(pool.predictions, 3, inside), own)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_values_on_known_labels_are_those_of_scikit_learn(seed, ties):
    pool, truth = a_pool(2, seed=seed, ties=ties)
    s = pool.scores[:, 1]
    wanted = {
        "roc_auc": roc_auc_score(truth, s),
        "roc_auc[cat]": roc_auc_score(truth == 0, pool.scores[:, 0]),
        "average_precision": average_precision_score(truth, s),
        "log_loss": log_loss(truth, pool.scores),
        "brier": brier_score_loss(truth, s),
        "recall[dog,0.3]": np.mean(s[truth == 1] >= 0.3),
        "precision[dog,0.3]": np.mean(truth[s >= 0.3] == 1),
        "share[dog]": truth.mean(),
        "roc_auc@site=A": roc_auc_score(truth[pool.slices["site"] == "A"], s[pool.slices["site"] == "A"]),
    }
    wanted["recall[dog,0.3] - recall[dog,0.6]"] = wanted["recall[dog,0.3]"] - np.mean(s[truth == 1] >= 0.6)
    found = truth_values(pool, truth, metric_set(list(wanted), pool))
    assert dict(found) == pytest.approx(wanted)


def test_values_of_several_classes_are_those_of_scikit_learn():
    pool, truth = a_pool(4, n=200)
    wanted = {
        "roc_auc": roc_auc_score(truth, pool.scores, multi_class="ovr"),
        "average_precision": average_precision_score(np.eye(4)[truth], pool.scores),
        "log_loss": log_loss(truth, pool.scores),
        "brier": ((pool.scores - np.eye(4)[truth]) ** 2).sum(1).mean(),
        "weighted_kappa": cohen_kappa_score(truth, pool.predictions, weights="quadratic"),
        "weighted_kappa[linear]": cohen_kappa_score(truth, pool.predictions, weights="linear"),
    }
    assert dict(truth_values(pool, truth, metric_set(list(wanted), pool))) == pytest.approx(wanted)


def test_weighted_labels_count_by_their_weight():
    rng = np.random.default_rng(0)
    s, y, v = np.round(rng.random(50), 1), rng.integers(0, 2, 50), rng.integers(0, 4, 50)
    auc, ap = roc_auc(s, y * v, v)[0], average_precision(s, y * v, v)[0]
    assert auc == pytest.approx(roc_auc_score(y, s, sample_weight=v))
    assert ap == pytest.approx(average_precision_score(y, s, sample_weight=v))


def test_one_class_alone_and_two_points():
    s, one = np.array([0.2, 0.7]), np.ones(2)
    assert np.isnan(roc_auc(s, one, one)[0]) and np.isnan(roc_auc(s, 0 * one, one)[0])
    assert average_precision(s, one, one)[0] == 1 and np.isnan(average_precision(s, 0 * one, one)[0])
    assert roc_auc(s, np.array([0.0, 1.0]), one)[0] == 1 and roc_auc(s, np.array([1.0, 0.0]), one)[0] == 0
    assert roc_auc(np.array([0.5, 0.5]), np.array([1.0, 0.0]), one)[0] == 0.5
    assert np.isnan(calibration_error(s, one, 0 * one)[0])


def test_the_calibration_error_is_that_of_a_loop_over_bins():
    rng = np.random.default_rng(4)
    s = np.round(rng.random(500), 2)
    y = (rng.random(500) < s**2).astype(float)
    bins = bins_of(s, np.ones(500))
    slow = sum(abs((y[bins == b] - s[bins == b]).sum()) for b in range(BINS)) / 500
    assert calibration_error(s, y, np.ones(500))[0] == pytest.approx(slow)
    assert np.bincount(bins, minlength=BINS).min() > 30
    assert all(len(set(bins[s == score])) == 1 for score in np.unique(s))


def test_the_gap_is_the_largest_difference_between_groups():
    pool, truth = a_pool(2)
    groups = [truth_values(pool, truth, metric_set(f"recall[dog]@site={one}", pool)) for one in "AB"]
    first, second = (next(iter(values.values())) for values in groups)
    assert truth_values(pool, truth, metric_set("gap[recall[dog], site]", pool)) == {
        "gap[recall[dog], site]": pytest.approx(abs(first - second))
    }


def test_points_outside_a_slice_have_no_weight():
    pool, truth = a_pool(2)
    weights = LabelWeights.of_truth(truth, 2, pool.slices["site"] == "A")
    assert (weights.mass == (pool.slices["site"] == "A")).all()


# ---------------------------------------------------------------- names

GRADES = altmas.Pool(None, [1, 2, 3, 4, 5], classes=[1, 2, 3, 4, 5], slices={"sex": ["F", "M", "F", "M", "M"]})


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("prevalence[4]", "prevalence[4]"),  # a synonym keeps the name that it was asked by
        ("rate[4]", "rate[4]"),
        ("share[ >= 4 ]", "share[>=4]"),
        ("mean", "mean"),
        ("accuracy@sex=F  -  accuracy@sex=M", "accuracy@sex=F - accuracy@sex=M"),
        ("gap[recall[4],sex]", "gap[recall[4], sex]"),
        ("share[1] - share[2]", "share[1] - share[2]"),
        ("model: accuracy", "accuracy"),
    ],
)
def test_names_have_one_canonical_form(wanted, name):
    assert [metric.name for metric in metric_set(wanted, GRADES)] == [name]
    assert [metric.name for metric in metric_set(name, GRADES)] == [name]


def test_classes_may_be_called_like_differences_and_thresholds():
    pool = altmas.Pool(
        None,
        ["a - b", "c,0.3"],
        classes=["a - b", "c,0.3"],
        scores=[[0.9, 0.1], [0.2, 0.8]],
        slices={"s": ["x", "y - z"]},
    )
    names = ["recall[a - b]", "recall[c,0.3]", "recall[a - b] - recall[c,0.3]", "recall[a - b,0.5]"]
    names += ["accuracy@s=y - z", "accuracy@s=y - z - accuracy@s=x", "gap[recall[a - b], s]"]
    found = metric_set(names, pool)
    assert [metric.name for metric in found] == names
    assert [metric.threshold for metric in found] == [None, None, None, 0.5, None, None, None]
    assert [len(metric.parts) for metric in found] == [1, 1, 2, 1, 1, 2, 2]


def test_a_difference_has_the_bounds_of_both_sides_and_a_gap_those_of_its_width():
    change, gap = metric_set(["kappa@sex=F - kappa@sex=M", "gap[accuracy, sex]"], GRADES)
    assert change.bounds == (-2, 2) and gap.bounds == (0, 1)
    assert not change.lower_is_better and gap.lower_is_better


SCORED = a_pool(3)[0]


@pytest.mark.parametrize(
    ("pool", "wanted", "said"),
    [
        (GRADES, "roc_auc[4]", "needs scores.*--scores"),
        (GRADES, "recall[4,0.3]", "needs scores"),
        (GRADES, "v9: accuracy", "no model 'v9' in this pool"),
        (GRADES, "model: share[4]", "about the truth"),
        (GRADES, "share", "needs a class, e.g. 'share"),
        (GRADES, "share[6]", "not a class"),
        (GRADES, "share[>=9]", "is 0 whatever the labels are"),
        (GRADES, "share[>=1]", "is 1 whatever the labels are"),
        (GRADES, "pass_rate", "'pass' is not a class"),
        (GRADES, "accuracy - mean", "a share.*the value of a class.*same unit"),
        (GRADES, "accuracy - accuracy", "0 whatever the labels"),
        (GRADES, "accuracy - nonsense", "'nonsense' does not exist"),
        (GRADES, "nonsense - accuracy", "'nonsense' does not exist"),
        (GRADES, "per_class - accuracy", "several metrics"),
        (GRADES, "gap[accuracy]", "write a metric and a slice"),
        (GRADES, "gap[accuracy, site]", "no slice 'site'"),
        (GRADES, "gap[accuracy@sex=F, sex]", "one metric of the whole pool"),
        (GRADES, "gap[per_class, sex]", "name one of them"),
        (GRADES, "gap[accuracy, sex]@sex=F", "leave out"),
        (GRADES, "gap[accuracy, sex] - accuracy", "a difference already"),
        (SCORED, "mean", "not numbers; give each a value"),
        (SCORED, "share[>=2]", "not numbers"),
        (SCORED, "mean[cat=1,dog=2]", "no value for 'eel'"),
        (SCORED, "mean[cat=1,dog=x,eel=2]", "value of every class"),
        (SCORED, "recall[cat,1.5]", "no threshold of a score"),
        (SCORED, "recall[cat,high]", "no threshold of a score"),
        (SCORED, "precision[cat,1]", "for no point"),
        (SCORED, "npv[cat,0]", "for every point"),
        (SCORED, "log_loss[cat]", "takes no class"),
        (SCORED, "log_loss - brier", "nats"),
        (SCORED, "weighted_kappa[cubic]", "weighted_kappa\\[linear\\]"),
        (SCORED, "roc_auc[cow]", "not a class"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(pool, wanted, said):
    with pytest.raises(MetricError, match=said):
        metric_set(wanted, pool)


TWO = altmas.Pool(
    None,
    {"v1": ["a", "b", "a"], "v2": ["b", "b", "a"]},
    scores={"v1": [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]},
    classes=["a", "b"],
    slices={"sex": ["F", "M", "F"]},
)
TRUTH_ONLY = altmas.Pool(None, None, classes=["pass", "fail"], ids=[1, 2])


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("accuracy", ["v1: accuracy", "v2: accuracy"]),
        ("v2: accuracy", ["v2: accuracy"]),
        ("v2: accuracy - v1: accuracy", ["v2: accuracy - v1: accuracy"]),
        (
            "accuracy@sex=F - accuracy@sex=M",
            ["v1: accuracy@sex=F - v1: accuracy@sex=M", "v2: accuracy@sex=F - v2: accuracy@sex=M"],
        ),
        ("accuracy - share[a]", ["v1: accuracy - share[a]", "v2: accuracy - share[a]"]),
        ("gap[recall[a], sex]", ["v1: gap[recall[a], sex]", "v2: gap[recall[a], sex]"]),
        ("v2: gap[recall[a], sex]", ["v2: gap[recall[a], sex]"]),
        ("share[a]", ["share[a]"]),
        ("v1: roc_auc", ["v1: roc_auc"]),
        (("mine", lambda y, p: float(np.mean(y == p))), ["v1: mine", "v2: mine"]),
    ],
)
def test_without_a_model_in_its_name_a_metric_is_asked_of_each(wanted, names):
    found = metric_set([wanted], TWO)
    assert [metric.name for metric in found] == names
    if isinstance(wanted, str):
        assert [metric.name for metric in metric_set(names, TWO)] == names


def test_metrics_of_models_are_evaluated_on_their_own_answers():
    truth = np.array([0, 1, 1])
    wanted = {"v1: accuracy": 2 / 3, "v2: accuracy": 1 / 3, "v2: accuracy - v1: accuracy": -1 / 3}
    assert dict(truth_values(TWO, truth, metric_set(list(wanted), TWO))) == pytest.approx(wanted)


def test_the_truth_can_be_asked_for_without_a_model():
    assert [metric.name for metric in metric_set(["pass_rate", "mean[pass=1,fail=0]"], TRUTH_ONLY)] == [
        "share[pass]",
        "mean[pass=1,fail=0]",
    ]


@pytest.mark.parametrize(
    ("pool", "wanted", "said"),
    [
        (TWO, "v2: roc_auc", "needs scores, and model 'v2' has none"),
        (TWO, "v3: accuracy", "no model 'v3' in this pool \\(known: 'v1', 'v2'\\)"),
        (TWO, "v2: accuracy - accuracy", "write the model on both sides"),
        (TRUTH_ONLY, "accuracy", "about a model, and this pool has none"),
        (TRUTH_ONLY, "accuracy - share[pass]", "about a model, and this pool has none"),
    ],
)
def test_models_that_are_not_there_are_named(pool, wanted, said):
    with pytest.raises(MetricError, match=said):
        metric_set(wanted, pool)


@pytest.mark.parametrize("wanted", ["roc_auc[cat]", "recall[cat,0.3]", "accuracy@site=A - accuracy@site=B", "log_loss"])
def test_methods_made_for_tables_refuse_other_metrics_before_anything_is_recorded(wanted):
    with pytest.raises(MethodError, match="made for the predictions of one model.*methods that can: "):
        check(method_named("lure"), SCORED, metric_set(wanted, SCORED))


def test_every_metric_says_what_it_is_in_words():
    names = [*NAMES, "recall[cat]@site=A - recall[cat]@site=B", "gap[recall[cat], site]"]
    for metric in metric_set(names, SCORED):
        said = metric.meaning(SCORED)
        assert said and "{" not in said
