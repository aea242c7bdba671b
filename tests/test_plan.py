"""Plans: what is refused, what is stored, what comes back."""

import functools
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

import altmas
from altmas.errors import MethodError, MetricError, PlanError, UnknownLabel
from altmas.methods import Tradition, Traits
from altmas.session.plan import Plan
from altmas.session.plan_json import decoded
from session_world import N, create, pool


def share_right(y_true, y_pred):
    return float(np.mean(np.asarray(y_true) == np.asarray(y_pred)))


@dataclass(frozen=True)
class Inner:
    depth: int = 1
    sizes: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Rich:
    """A method whose options are of every kind."""

    inner: Inner = Inner()
    rate: float = 0.1
    how: Any = share_right
    names: list[str] = field(default_factory=lambda: ["a"])
    table: dict[str, Any] = field(default_factory=lambda: {"x": (1, None)})
    cache: dict[str, int] = field(default_factory=dict, init=False)
    name = "rich"
    traits = Traits()

    def propose(self, task, history, n):
        return Tradition().propose(task, history, n)

    def estimate(self, task, history):
        return Tradition().estimate(task, history)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"budget": 0}, PlanError, "budget 0 is out of range; expected 1 to 60"),
        ({"budget": N + 1}, PlanError, "budget 61 is out of range; expected 1 to 60, the number of points"),
        ({"budget": 2.5}, PlanError, "budget 2.5 is not a whole number"),
        ({"budget": True}, PlanError, "not a whole number"),
        ({"budget": -3}, PlanError, "budget -3"),
        ({"confidence": 95}, PlanError, "confidence 95 is out of range.*did you mean 0.95"),
        ({"confidence": 1.0}, PlanError, "between 0 and 1"),
        ({"confidence": "high"}, PlanError, "confidence 'high' is not a number"),
        ({"confidence": float("nan")}, PlanError, "confidence nan is not a number"),
        ({"seed": -1}, PlanError, "seed -1"),
        ({"double_share": 1.5}, PlanError, "double_share 1.5"),
        ({"targets": {"acuracy": 0.1}}, MetricError, "did you mean 'accuracy'"),
        ({"targets": {"recall[dog]": 0.1}}, PlanError, "not one of this session's metrics.*did you mean 'recall.cat.'"),
        ({"targets": {"accuracy": 0}}, PlanError, "0 is not a half-width; expected a number above 0"),
        ({"targets": {"accuracy": None}}, PlanError, "target for 'accuracy': None is not a number"),
        ({"thresholds": {"kappa": 0.5}}, PlanError, "threshold for 'kappa'"),
        ({"metrics": []}, MetricError, "no metric was asked for"),
        ({"metrics": ["recal[cat]"]}, MetricError, "did you mean 'recall\\[cat\\]'"),
        ({"metrics": [lambda y_true, y_pred: 0.0, lambda y_true, y_pred: 1.0]}, PlanError, "two metrics are called"),
        ({"method": "traditon"}, MethodError, "did you mean 'tradition'"),
        ({"definitions": {"hound": "a dog"}}, UnknownLabel, "label 'hound'"),
    ],
)
def test_what_a_plan_refuses(tmp_path, options, error, sentence):
    with pytest.raises(error, match=sentence):
        create(tmp_path / "one.altmas", **{"metrics": ["accuracy", "recall[cat]"], **options})
    assert list(tmp_path.iterdir()) == []


def test_settings_come_back_from_the_file(tmp_path):
    path = tmp_path / "one.altmas"
    with create(
        path,
        metrics=["accuracy", "recall[cat]", ("cost", np.arange(9).reshape(3, 3))],
        budget=np.int64(30),
        targets={"sensitivity[cat]": 0.1},
        thresholds={"accuracy": 0.9},
        confidence=0.9,
        seed=4,
        double_share=0.1,
        instructions="Look twice.",
        definitions={"cat": "small"},
    ) as made:
        plan = made.plan
    with altmas.Session.open(path) as session:
        assert session.plan.to_json() == plan.to_json()
        assert session.plan.budget == 30 and session.plan.targets == {"recall[cat]": 0.1}
        assert [metric.name for metric in session.task.metrics] == ["accuracy", "recall[cat]", "cost"]
        assert session.task.targets == (("recall[cat]", 0.1),) and session.task.confidence == 0.9
        assert session.task.seed == 4 and session.plan.definitions == {"cat": "small"}


@pytest.mark.parametrize("metric", ["accuracy", share_right, accuracy_score, ("cost", np.eye(3).tolist())])
def test_one_metric_may_stand_alone(metric):
    assert len(create(metrics=metric).task.metrics) == 1


def test_scores_of_scikit_learn_come_back_by_name(tmp_path):
    path = tmp_path / "one.altmas"
    macro = functools.partial(f1_score, average="macro", labels=["cat", "dog"])
    create(path, metrics=[accuracy_score, macro]).close()
    with altmas.Session.open(path) as session:
        plain, partial = session.plan.metrics
        assert plain is accuracy_score
        assert (partial.func, partial.args, partial.keywords) == (macro.func, macro.args, macro.keywords)
    stored = create(metrics=[accuracy_score]).plan.to_json()["metrics"]
    assert stored == [{"name": "accuracy_score", "function": {"$function": "sklearn.metrics:accuracy_score"}}]


def test_other_functions_are_imported_from_a_trusted_file_alone(tmp_path):
    path = tmp_path / "one.altmas"
    create(path, metrics=["accuracy", share_right]).close()
    sentence = r"metric 'share_right' is 'test_plan:share_right', which would be imported and run; nothing was.*--trust"
    with pytest.raises(PlanError, match=sentence):
        altmas.Session.open(path)
    with altmas.Session.open(path, metrics=[share_right]) as session:
        assert session.plan.metrics == ("accuracy", share_right)
    with altmas.Session.open(path, trust=True) as session:
        assert session.plan.metrics == ("accuracy", share_right)


def test_functions_that_cannot_be_imported_have_to_be_handed_over(tmp_path):
    def secret(y_true, y_pred):
        return 0.25

    path = tmp_path / "one.altmas"
    create(path, metrics=["accuracy", secret]).close()
    with pytest.raises(PlanError, match=r"metric 'secret' is a function .*Session.open\(path, metrics=\[...\]\)"):
        altmas.Session.open(path, trust=True)
    with altmas.Session.open(path, metrics=[secret]) as session:
        assert session.plan.metrics == ("accuracy", secret)


def test_a_stored_function_that_cannot_be_a_metric_is_not_called():
    plain = create().plan.to_json() | {"metrics": [{"name": "system", "function": {"$function": "os:system"}}]}
    with pytest.raises(PlanError, match="metric 'system' is 'os:system', which would be imported and run"):
        Plan.from_json(plain)
    with pytest.raises(PlanError, match="metric 'system' is a function that cannot be imported again"):
        Plan.from_json(plain, trust=True)


def test_methods_come_back_with_their_options(tmp_path):
    built_in, own = Tradition(calibrate_rows=True), Rich(Inner(3, (4,)), how=f1_score)
    for number, method in enumerate([built_in, own]):
        path = tmp_path / f"{number}.altmas"
        create(path, method=method).close()
        with altmas.Session.open(path, trust=method is own) as session:
            assert session.method == method and type(session.method) is type(method)
    with pytest.raises(PlanError, match="method 'rich' is 'test_plan:Rich', which would be imported and run"):
        altmas.Session.open(tmp_path / "1.altmas")


def test_methods_that_cannot_be_made_again_have_to_be_handed_over(tmp_path):
    @dataclass(frozen=True)
    class Local(Rich):
        pass

    for number, method in enumerate([Local(), Rich(how=lambda: None)]):
        path = tmp_path / f"{number}.altmas"
        create(path, method=method).close()
        with pytest.raises(PlanError, match=r"method 'rich' cannot be made again.*Session.open\(path, method=...\)"):
            altmas.Session.open(path, trust=True)
        with altmas.Session.open(path, method=method) as session:
            assert session.method is method


@pytest.mark.parametrize("place", ["subprocess:Popen", "no_such_module:X", "altmas.pool.pool:Pool", "test_plan:Inner"])
def test_a_stored_method_that_is_none_is_not_made(place):
    plain = create().plan.to_json() | {"method": {"name": "x", "options": {}, "class": place}}
    with pytest.raises(PlanError, match=f"method 'x' is '{place}', which would be imported"):
        Plan.from_json(plain)
    with pytest.raises(PlanError, match="method 'x'"):
        Plan.from_json(plain, trust=True)


@pytest.mark.parametrize("option", [{"calibrate_rows": "yes"}, {"calibrate_rows": [1]}, {"no_such": 1}])
def test_a_stored_option_that_the_method_does_not_have_is_refused(option):
    plain = create().plan.to_json() | {"method": {"name": "tradition", "options": option, "class": None}}
    with pytest.raises(PlanError, match="method 'tradition' cannot be made again from its stored options"):
        Plan.from_json(plain)


@pytest.mark.parametrize(
    "setting",
    [
        {"budget": "many"},
        {"budget": 0},
        {"seed": -1},
        {"seed": 1.5},
        {"confidence": float("nan")},
        {"confidence": 2},
        {"double_share": "half"},
        {"targets": {"accuracy": "narrow"}},
        {"thresholds": {"accuracy": [1]}},
        {"instructions": {"a": 1}},
        {"definitions": {"cat": 3}},
    ],
)
def test_a_stored_setting_that_altmas_could_not_have_written_is_refused(setting):
    with pytest.raises(PlanError):
        Plan.from_json(create().plan.to_json() | setting)


def test_built_ins_come_back_wherever_an_earlier_version_kept_them():
    """A method inside another one, and a score, as version 0.1.0 stored them: by the module of that time."""
    inner = {"$object": "altmas.methods.long_gone:Tradition", "options": {"calibrate_rows": True}}
    assert decoded(inner, trust=False) == Tradition(calibrate_rows=True)
    score = {"$function": "sklearn.metrics._classification:f1_score"}
    assert decoded(score, trust=False) is f1_score
    old = create(metrics=[accuracy_score]).plan
    stored = old.to_json() | {
        "metrics": [
            {"name": "accuracy_score", "function": {"$function": "sklearn.metrics._classification:accuracy_score"}}
        ]
    }
    assert old.differences(stored) == []


def test_a_plan_is_plain_json():
    plan = create(method=Rich(), metrics=["accuracy", share_right]).plan
    assert json.loads(json.dumps(plan.to_json())) == plan.to_json()
    assert plan.differences(plan.to_json()) == []


def test_a_method_that_needs_what_the_pool_lacks_is_refused_at_once(tmp_path):
    @dataclass(frozen=True)
    class Needy(Rich):
        name = "needy"
        traits = Traits(requires=("features", "scores"))

    with pytest.raises(MethodError, match="'needy' needs features and scores.*tradition"):
        create(tmp_path / "one.altmas", method=Needy(), pool=pool(features=None, scores=None))
    assert list(tmp_path.iterdir()) == []


def test_a_name_and_a_function_are_two_metrics():
    def always_half(y_true, y_pred):
        return 0.5

    plan = altmas.Session.create(None, pool(), metrics=["accuracy", always_half])
    assert [metric.name for metric in plan.task.metrics] == ["accuracy", "always_half"]


def test_settings_of_a_later_version_are_refused_and_not_left_out():
    plan = create().plan
    plain = json.loads(json.dumps(plan.to_json()))
    assert Plan.from_json(plain) == plan
    with pytest.raises(altmas.errors.NewerSession, match=r"does not know \('drawn_by'\): a later version wrote them"):
        Plan.from_json(plain | {"drawn_by": "two phases"})
    with pytest.raises(altmas.errors.NewerSession, match="drawn_by"):
        plan.changed({"budget": 7, "drawn_by": "two phases"}, {})
    assert plan.changed({"budget": 7}, {}).budget == 7
