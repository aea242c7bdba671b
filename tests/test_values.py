"""Values of classes (`values=`, `--value`): which metrics they make askable, what is stored, what is refused."""

import json

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

import altmas
from altmas.errors import MetricError, PoolError, PoolMismatch
from altmas.methods.assured.ordered import values_in
from altmas.metrics import metric_set, truth_values
from cli_world import run

VALUES = {"bad": 0, "ok": 1, "good": 4}


def graded(values=VALUES, n=120, **options):
    """(pool with one judge, truth); classes in the order of the alphabet, which is not that of the values."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 3, n)
    said = np.where(rng.random(n) < 0.7, truth, rng.integers(0, 3, n))
    names = np.array(["bad", "good", "ok"])
    options = {"classes": ["bad", "good", "ok"], "ids": [f"i{row}" for row in range(n)]} | options
    return altmas.Pool(None, {"judge": names[said]}, values=values, **options), names[truth]


def test_metrics_of_numbers_take_classes_for_their_values():
    pool, truth = graded()
    assert pool.values == (0.0, 4.0, 1.0) and pool.named_values == {"bad": 0.0, "good": 4.0, "ok": 1.0}
    asked = ["mean", "share[>=1]", "weighted_kappa", "weighted_kappa[linear]"]
    found = truth_values(pool, pool.codes(truth), metric_set(asked, pool))
    numbers = np.array([VALUES[name] for name in truth])
    judged = np.array([VALUES[pool.classes[code]] for code in pool.predictions])
    assert found["mean"] == pytest.approx(numbers.mean()) and found["share[>=1]"] == np.mean(truth != "bad")
    apart = (numbers - judged) ** 2
    chance = np.mean((numbers[:, None] - judged[None, :]) ** 2)
    assert found["weighted_kappa"] == pytest.approx(1 - apart.mean() / chance)
    same = truth_values(pool, pool.codes(truth), metric_set("mean[bad=0,good=4,ok=1]", pool))
    assert found["mean"] == next(iter(same.values()))


def test_equal_steps_give_the_weighted_kappa_of_scikit_learn_in_the_order_of_the_values():
    pool, truth = graded({"bad": 0, "ok": 1, "good": 2})
    judged = [pool.classes[code] for code in pool.predictions]
    expected = cohen_kappa_score(truth, judged, labels=["bad", "ok", "good"], weights="quadratic")
    (metric,) = metric_set("weighted_kappa", pool)
    assert truth_values(pool, pool.codes(truth), [metric])["weighted_kappa"] == pytest.approx(expected)


def test_without_values_names_have_no_mean_and_places_make_the_weighted_kappa():
    pool, truth = graded(None)
    with pytest.raises(MetricError, match=r"are not numbers; .*--value bad=0"):
        metric_set("mean", pool)
    judged = [pool.classes[code] for code in pool.predictions]
    expected = cohen_kappa_score(truth, judged, labels=["bad", "good", "ok"], weights="quadratic")
    found = truth_values(pool, pool.codes(truth), metric_set("weighted_kappa", pool))
    assert found["weighted_kappa"] == pytest.approx(expected)


def test_the_belief_knows_the_order_also_where_no_metric_asks_for_numbers():
    pool, _ = graded()
    assert values_in(metric_set(["accuracy", "share[ok]"], pool), pool) == (0.0, 4.0, 1.0)
    assert values_in(metric_set("mean[bad=1,good=2,ok=3]", pool), pool) == (1.0, 2.0, 3.0)
    assert values_in(metric_set("accuracy", graded(None)[0]), graded(None)[0]) == ()


def test_values_are_the_class_list_where_none_is_given():
    pool, _ = graded(classes=None)
    assert pool.classes == ("bad", "ok", "good") and not pool.classes_inferred


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"bad": 0, "ok": 1}, "no value for 'good'; every class needs one"),
        ({**VALUES, "god": 3}, "'god' is not one of the classes .*did you mean 'good'"),
        ({**VALUES, "ok": "one"}, "'one' of class 'ok' is not a number"),
        ({**VALUES, "ok": float("nan")}, "nan of class 'ok' is not a number"),
        ({**VALUES, "ok": True}, "True of class 'ok' is not a number"),
        (dict.fromkeys(VALUES, 2), "every class has the value 2"),
        ([0, 1, 2], r"values \[0, 1, 2\] was not understood; expected values="),
        ({}, "was not understood"),
    ],
)
def test_what_is_no_value_is_refused(values, sentence):
    with pytest.raises(PoolError, match=sentence):
        graded(values)


def test_values_are_stored_compared_and_shown(tmp_path):
    pool, truth = graded()
    path = tmp_path / "s.altmas"
    with altmas.Session.create(path, pool, metrics=["mean", "weighted_kappa"], budget=60) as session:
        session.run(lambda query: truth[query.index], progress=False)
        found = session.estimate()
    with altmas.Session.open(path) as again:
        assert again.pool.values == pool.values and again.estimate() == found
        assert again.report().content["pool"]["values"] == {"bad": 0.0, "good": 4.0, "ok": 1.0}
        assert "(counted as bad = 0, good = 4, ok = 1)" in again.report().to_html()
        assert [one.metric for one in again.compare(["bad"] * 120)] == ["weighted_kappa"]
        with pytest.raises(PoolError, match="class 'great' would have no value"):
            again.extend(classes=["great"])
        more, _ = graded(None, ids=[f"more{row}" for row in range(120)])
        assert again.extend(more, wave="w1").points == 120 and again.pool.values == pool.values
        other, _ = graded({"bad": 1, "ok": 2, "good": 3}, ids=[f"other{row}" for row in range(120)])
        with pytest.raises(PoolError, match="values: the items have"):
            again.extend(other, wave="w2")
    assert altmas.Session.open(path).pool.values == pool.values
    with pytest.raises(PoolMismatch, match="no values"):
        altmas.Session.open(path, graded(None)[0])


def test_the_command_line_gives_values_and_reads_them_again(tmp_path):
    pool, truth = graded()
    rows = [
        f"{name},{pool.classes[code]},{true}"
        for name, code, true in zip(pool.ids, pool.predictions, truth, strict=True)
    ]
    table, path = tmp_path / "t.csv", tmp_path / "s.altmas"
    table.write_text("\n".join(["id,judge,truth", *rows]))
    given = [part for name, value in VALUES.items() for part in ("--value", f"{name}={value}")]
    base = ("--data", table, "--prediction", "judge", *given, "--metric", "mean")
    assert run("init", path, "--id", "id", *base).code == 0
    with altmas.Session.open(path) as session:
        assert session.pool.named_values == {"bad": 0.0, "ok": 1.0, "good": 4.0}
        session.tell("i3", str(truth[3]))
    assert json.loads(run("estimate", path, "--json").out)["estimates"][0]["metric"] == "mean"
    wrong = run("init", tmp_path / "t.altmas", *base, "--value", "ok=x")
    assert wrong.code == 2 and "'x'" in wrong.err and not (tmp_path / "t.altmas").exists()
    missing = run("init", tmp_path / "t.altmas", *base[:4], "--value", "ok=1", "--metric", "mean")
    assert missing.code == 2 and "Traceback" not in missing.err and not (tmp_path / "t.altmas").exists()
    tried = run("simulate", "--truth", "truth", *base, "--method", "tradition", "-b", "40", "--repeats", "2", "-j", "1")
    assert tried.code == 0, tried.err
