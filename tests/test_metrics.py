"""Names of metrics: what each stands for, however classes and slices are called, and what is refused."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from altmas.errors import MetricError
from altmas.metrics import Metric, MetricLike, known_names, metric_set, table_of, truth_values
from altmas.metrics.about import ABOUT
from altmas.metrics.catalogue import PER_CLASS, WHOLE
from altmas.metrics.formulas import accuracy, of_margins
from altmas.pool import Pool

POOL = Pool(
    None,
    ["cat", "cat", "dog", "dog", "dog"],
    classes=["cat", "dog", "eel"],
    slices={"site": ["A", "B", "A", "B", "B"], "age=group": ["<50", "<50", ">=50", ">=50", ">=50"]},
)
HARD_NAMES = ["a,b", "[x]", "x]", "a@b=c", "=", "été", "🦊", "x]@site=A", " padded ", "c[1],2", "recall[cat]", "@", "7"]


def name_of(wanted: MetricLike, pool: Pool = POOL) -> str:
    (metric,) = metric_set(wanted, pool)
    return metric.name


def test_every_name_in_the_list_can_be_asked_for():
    concrete = {
        "[class]": "[1]",
        "[class,beta]": "[1,0.5]",
        "[class,threshold]": "[1,0.5]",
        "[predicted,true]": "[1,2]",
    }
    concrete |= {">=number": ">=2", "A - B": "accuracy - recall[1]", "metric,slice": "accuracy, site"}
    concrete |= {"pass_rate": "share[1]"}
    pool = Pool(None, [1, 2, 3], scores=np.eye(3), classes=[1, 2, 3], slices={"site": ["A", "A", "B"]})
    for name in known_names():
        for general, specific in concrete.items():
            name = name.replace(general, specific)
        wanted = ("cost", np.eye(3)) if name == "cost" else name
        assert all(isinstance(metric, Metric) for metric in metric_set([wanted], pool))


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("sensitivity[cat]", "sensitivity[cat]"),
        ("TPR[cat]", "tpr[cat]"),
        ("ppv[dog]", "ppv[dog]"),
        ("tnr[dog]@site=A", "tnr[dog]@site=A"),
        (" Accuracy ", "accuracy"),
        ("recall [ cat ]", "recall[cat]"),
        ("fbeta[cat, 2]", "fbeta[cat,2]"),
        ("fbeta[cat,0.50]", "fbeta[cat,0.5]"),
        ("confusion[cat, dog]", "confusion[cat,dog]"),
        ("F1[eel]@site=A", "f1[eel]@site=A"),
        ("accuracy@site= A ", "accuracy@site=A"),
        ("accuracy@age=group=>=50", "accuracy@age=group=>=50"),
    ],
)
def test_a_name_is_understood_and_written_in_one_way(wanted, name):
    assert name_of(wanted) == name
    assert name_of(name) == name


def test_sets_expand_to_the_metrics_of_the_paper():
    ten = Pool(None, np.arange(10))
    assert len(metric_set(["paper"], ten)) == 21
    assert [metric.name for metric in metric_set("paper", ten)][:3] == ["accuracy", "precision[0]", "precision[1]"]
    assert len(metric_set(["per_class", "paper", "accuracy", "recall[3]"], ten)) == 21


def test_sets_leave_out_what_can_never_be_defined():
    assert [metric.name for metric in metric_set("per_class", POOL)] == [
        "precision[cat]",
        "precision[dog]",
        "recall[cat]",
        "recall[dog]",
        "recall[eel]",
    ]
    one_each = Pool(None, [0, 1], classes=["x", "y"], slices={"site": ["A", "B"]})
    found = metric_set("paper@site=A", one_each)
    assert [metric.name for metric in found] == [
        "accuracy@site=A",
        "precision[x]@site=A",
        "recall[x]@site=A",
        "recall[y]@site=A",
    ]
    assert all(metric.where == ("site", "A") for metric in found)


def test_a_metric_knows_its_family_its_classes_and_its_bounds():
    recall, mixed, kappa = metric_set(["recall[dog]", "confusion[cat,eel]@site=B", "kappa"], POOL)
    assert (recall.kind, recall.classes, recall.where, recall.bounds) == ("recall", (1,), None, (0.0, 1.0))
    assert (mixed.kind, mixed.classes, mixed.where) == ("confusion", (0, 2), ("site", "B"))
    assert kappa.bounds == (-1.0, 1.0)
    assert recall.members(POOL) is None
    assert mixed.members(POOL).tolist() == [False, True, False, True, True]


@pytest.mark.parametrize("name", HARD_NAMES)
def test_classes_and_slices_may_be_called_anything(name):
    others = [other for other in HARD_NAMES if other != name][:2]
    pool = Pool(
        None, [0, 1, 2], classes=[f"class {name}", *others], slices={"site": [name, "A", "A"], "ü=@[]": [name] * 3}
    )
    for k, known in enumerate(pool.classes):
        for wanted in (f"recall[{known}]", f"recall[{known}]@site={name}", f"fbeta[{known},2]@ü=@[]={name}"):
            (metric,) = metric_set(wanted, pool)
            assert metric.classes == (k,)
            assert metric_set(metric.name, pool)[0].name == metric.name
    (metric,) = metric_set(f"accuracy@ü=@[]={name}", pool)
    assert metric.where == ("ü=@[]", name)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(st.sampled_from("ab,[]@=é🦊 0"), min_size=1, max_size=4), min_size=2, max_size=4, unique=True))
@example(["0", "0, "])
def test_the_name_of_a_metric_finds_the_same_metric_again(classes):
    pool = Pool(None, classes, classes=classes, slices={"s": classes})
    for kind in ("precision", "recall", "f1", "jaccard"):
        for k, name in enumerate(classes):
            (metric,) = metric_set(f"{kind}[{name}]", pool)
            assert (metric.kind, metric.classes) == (kind, (k,))


def test_confusion_reads_class_names_with_commas_if_there_is_one_way_to():
    pool = Pool(None, ["a,b", "c", "d"])
    (metric,) = metric_set("confusion[a,b,c]", pool)
    assert metric.classes == (0, 1)
    unclear = Pool(None, ["a", "a,b", "b,c", "c"])
    with pytest.raises(MetricError, match=r"'confusion\[a,b,c\]' can be read in 2 ways"):
        metric_set("confusion[a,b,c]", unclear)
    with pytest.raises(MetricError, match=r"write two classes, e.g. 'confusion\[a,b,c\]'"):
        metric_set("confusion[x,y,z]", pool)


def test_booleans_and_numbers_are_found_by_how_they_are_written():
    assert name_of("recall[true]", Pool(None, [True, False])) == "recall[True]"
    assert name_of("recall[1]", Pool(None, [True, False])) == "recall[True]"
    assert name_of("recall[7]", Pool(None, [7, 8])) == "recall[7]"


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("acuracy", r"metric 'acuracy' does not exist; did you mean 'accuracy'\? known metrics: accuracy, error, "),
        ("xyz", r"metric 'xyz' does not exist; known metrics: .*, or any callable"),
        (
            "recall[cta]",
            r"'cta' is not a class of this pool \(expected one of 'cat', 'dog', 'eel'\); did you mean 'cat'\?",
        ),
        ("recall", r"'recall' needs a class, e.g. 'recall\[cat\]'; classes are 'cat', 'dog', 'eel'"),
        ("confusion", r"needs a class, e.g. 'confusion\[cat,dog\]'"),
        ("confusion[cat]", r"write two classes, e.g. 'confusion\[cat,dog\]'"),
        ("confusion[cat,pig]", r"'pig' is not a class"),
        ("fbeta", r"needs a class, e.g. 'fbeta\[cat,2\]'"),
        ("fbeta[cat]", r"write the class and beta, e.g. 'fbeta\[cat,2\]'"),
        ("fbeta[cat,zero]", r"beta must be a positive number, got 'zero'"),
        ("fbeta[cat,-1]", r"beta must be a positive number, got '-1'"),
        ("accuracy[cat]", r"accuracy takes no class; write 'accuracy'"),
        ("paper[cat]", r"paper takes no class; write 'paper'"),
        ("cost", r"'cost' needs a matrix: pass \('cost', matrix\[predicted, true\]\)"),
        ("", r"metric '' was not understood; choose from accuracy, "),
        ("recall[cat", r"'recall\[cat' was not understood; did you mean 'recall\[cat\]'\? choose from"),
        ("recall(cat)", r"'recall\(cat\)' was not understood; did you mean 'recall\[cat\]'\? choose from"),
        ("recal[cat]", r"'recal\[cat\]' does not exist; did you mean 'recall\[cat\]'\?"),
        ("Sensitivty[cat]@site=A", r"does not exist; did you mean 'sensitivity\[cat\]@site=A'\?"),
        ("accuracy@sight=A", r"no slice 'sight' in this pool \(known: 'site', 'age=group'\); did you mean 'site'\?"),
        ("accuracy@site=C", r"slice 'site' never takes the value 'C' \(known: 'A', 'B'\)"),
        ("accuracy@site", r"write a value, e.g. '@site=A' \(known: 'A', 'B'\)"),
        (
            "precision[eel]",
            r"'precision\[eel\]' can never be defined: the model predicts 'eel' for no point; ask for 'rec",
        ),
        ("precision[cat]@age=group=>=50", r"predicts 'cat' for no point of this slice"),
        ("npv[dog]@age=group=>=50", r"predicts 'dog' for every point of this slice; ask for 'precision\[dog\]'"),
        (
            "mcc@age=group=>=50",
            r"can never be defined: the model predicts the same class for every point of this slice",
        ),
        (5, r"metric 5 was not understood; expected a name, a callable or \('cost', matrix\)"),
        (("coast", np.eye(3)), r"'coast': a pair must be \(name, callable\) or \('cost', matrix\)"),
        (("cost", np.eye(3), 1), r"was not understood; a pair must be"),
        (("cost@sight=A", np.eye(3)), r"no slice 'sight'"),
    ],
)
def test_a_name_that_cannot_be_meant_is_refused_with_what_could(wanted, sentence):
    with pytest.raises(MetricError, match=sentence):
        metric_set([wanted], POOL)


def test_an_empty_wish_is_refused():
    with pytest.raises(MetricError, match="no metric was asked for; choose from accuracy"):
        metric_set([], POOL)


def test_a_slice_of_a_pool_without_slices_says_how_to_give_some():
    with pytest.raises(
        MetricError,
        match=r"no slice 'site' in this pool \(known: none: pass slices=\{...\} to the pool, or --slice COLUMN\)",
    ):
        metric_set("accuracy@site=A", Pool(None, [0, 1]))


def test_one_metric_needs_no_list():
    mine = of_margins("mine", accuracy)
    assert metric_set(mine, POOL) == (mine,)
    assert metric_set(("cost", np.eye(3)), POOL)[0].kind == "cost"
    assert metric_set(("cost@site=A", np.eye(3)), POOL)[0].name == "cost@site=A"
    assert [metric.name for metric in metric_set(("accuracy", "error"), POOL)] == ["accuracy", "error"]
    with pytest.raises(MetricError, match="no slice 'elsewhere'"):
        metric_set(Metric("mine", mine.of_table, mine.gradient, where=("elsewhere", "A")), POOL)


def test_the_table_counts_pairs_of_prediction_and_truth():
    predicted, true = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1])
    np.testing.assert_array_equal(table_of(predicted, true, 3), [[1, 1, 0], [0, 1, 0], [0, 1, 0]])
    weighted = table_of(predicted, true, 3, np.array([0.5, 1.5, 2.0, 0.25]))
    np.testing.assert_array_equal(weighted, [[0.5, 1.5, 0], [0, 2, 0], [0, 0.25, 0]])


def test_true_values_are_those_of_the_points_that_a_metric_is_about():
    truth = POOL.codes(["cat", "dog", "dog", "dog", "cat"])
    metrics = metric_set(["accuracy", "accuracy@site=B", "recall[cat]", "recall[eel]"], POOL)
    values = truth_values(POOL, truth, metrics)
    assert values["accuracy"] == pytest.approx(3 / 5)
    assert values["accuracy@site=B"] == pytest.approx(1 / 3)
    assert values["recall[cat]"] == pytest.approx(1 / 2)
    assert np.isnan(values["recall[eel]"])


@pytest.mark.parametrize("kind", [*WHOLE, *PER_CLASS, "fbeta", "confusion", "cost"])
def test_every_built_in_metric_says_what_it_is(kind):
    assert kind in ABOUT and not ABOUT[kind].given


def test_a_metric_that_nobody_knows_is_said_to_be_the_users():
    metric = metric_set([lambda y_true, y_pred: 0.5], POOL)[0]
    assert metric.meaning(POOL) == "a function given by the user" and not metric.lower_is_better


@pytest.mark.parametrize("name", ["accuracy", "error", "precision[{0}]", "recall[{0}]", "specificity[{0}]", "npv[{0}]"])
def test_a_proportion_is_what_it_counts_above_the_line_over_what_it_counts_below(name):
    rng = np.random.default_rng(0)
    c = len(POOL.classes)
    table = rng.integers(1, 9, (c, c)).astype(float)
    metric = metric_set([name.format(POOL.classes[1])], POOL)[0]
    top, bottom = metric.about.proportion(metric.classes, *np.indices(table.shape))
    assert metric.of_table(table) == pytest.approx(table[top].sum() / table[bottom].sum())


def test_no_further_module_outside_metrics_switches_on_the_kind_of_a_metric():
    source = Path(__file__).parent.parent / "src" / "altmas"
    asking = [
        str(path.relative_to(source))
        for path in sorted(source.rglob("*.py"))
        if re.search(r"\bmetric\w*\.kind (?:==|!=|in|not in) ", path.read_text()) and path.parent.name != "metrics"
    ]
    assert asking == []


def test_a_metric_of_a_model_is_refused_where_there_is_no_model():
    with pytest.raises(MetricError, match="'accuracy' is about a model, and this pool has none"):
        metric_set("accuracy", Pool(None, None, classes=["a", "b"], ids=[1, 2]))


def test_the_page_of_metrics_lists_every_name():
    page = (Path(__file__).parent.parent / "docs" / "metrics.md").read_text()
    for name in known_names():
        kind = name.partition("[")[0]
        assert f"`{kind}" in page or f'("{kind}"' in page, name


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_the_terms_of_an_f_beta_are_scaled_as_its_numerator_less_a_candidate_times_its_denominator(beta):
    (metric,) = metric_set([f"fbeta[1,{beta}]"], Pool(None, [0, 1, 0, 1], classes=[0, 1]))
    named = np.array([[0, 0], [1, 1]])
    member, found = named.T, named * named.T
    top, bottom = (1 + beta**2) * found, beta**2 * member + named
    table = np.array([[50.0, 8.0], [3.0, 12.0]])
    assert metric.of_table(table) == pytest.approx((table * top).sum() / (table * bottom).sum())

    def spreads(q):
        return np.ptp(top - q * bottom, axis=1)[::-1]

    assert metric.scales_at(0.4, 0.7) == pytest.approx(tuple(spreads(0.7) / spreads(0.4)))
