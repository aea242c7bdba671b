"""What each model alone would have said of the truth, beside what labels say."""

import math

import numpy as np
import pytest

from altmas import Pool, Session
from altmas.alone import Alone

N = 300
METRICS = ["share[pass]", "share[pass]@prompt=B - share[pass]@prompt=A", "accuracy"]


def verdicts(passed):
    return np.where(passed, "pass", "fail")


def make_session(labels, metrics=METRICS, method="tradition"):
    """Two judges: a harsh one that fails half of what passes, and one that is nearly always right."""
    rng = np.random.default_rng(3)
    truth = rng.random(N) < 0.6
    harsh, fair = truth & (rng.random(N) < 0.5), truth ^ (rng.random(N) < 0.02)
    pool = Pool(
        None,
        {"harsh": verdicts(harsh), "fair": verdicts(fair)},
        classes=["pass", "fail"],
        slices={"prompt": np.where(np.arange(N) % 3 == 0, "A", "B")},
    )
    session = Session.create(None, pool, metrics=metrics, method=method, budget=max(labels, 1))
    for query in session.ask(labels) if labels else ():
        session.tell(query.id, str(verdicts(truth[query.index])))
    return session, {"harsh": harsh, "fair": fair, "truth": truth}


@pytest.fixture(scope="module")
def judged():
    return make_session(120)


def test_each_metric_of_the_truth_is_told_for_each_model_and_no_other_metric(judged):
    session, _ = judged
    assert [(one.metric, one.model) for one in session.alone()] == [
        (metric, model) for metric in METRICS[:2] for model in ("harsh", "fair")
    ]


def test_the_value_is_what_the_answers_amount_to(judged):
    session, said = judged
    first = np.arange(N) % 3 == 0
    found = {(one.metric, one.model): one.value for one in session.alone()}
    for model in ("harsh", "fair"):
        assert found[METRICS[0], model] == pytest.approx(said[model].mean())
        assert found[METRICS[1], model] == pytest.approx(said[model][~first].mean() - said[model][first].mean())


def test_the_estimate_stands_beside_it_and_says_whether_it_lies_outside(judged):
    session, _ = judged
    estimate = session.estimate()["share[pass]"]
    harsh, fair = session.alone()[:2]
    assert (harsh.estimate, harsh.low, harsh.high) == (estimate.value, estimate.low, estimate.high)
    assert harsh.off_by == pytest.approx(harsh.value - estimate.value) and harsh.off_by < -0.15
    assert harsh.outside is True and fair.outside is False
    assert str(harsh).endswith("outside the interval") and str(fair).endswith("inside the interval")
    assert harsh.to_dict()["off_by"] == harsh.off_by


def test_grades_have_a_mean_if_the_judge_were_right():
    grades = np.tile([1, 2, 3, 4, 5], 20)
    pool = Pool(None, {"judge": np.minimum(grades + 1, 5)}, classes=[1, 2, 3, 4, 5])
    session = Session.create(None, pool, metrics=["mean", "share[>=4]"], method="tradition", budget=60)
    for query in session.ask(60):
        session.tell(query.id, int(grades[query.index]))
    mean, high = session.alone()
    assert (mean.value, high.value) == (pytest.approx(3.8), pytest.approx(0.6))
    assert mean.outside is True


@pytest.mark.parametrize("labels", [0, 15])
def test_nothing_is_called_outside_before_enough_labels_were_drawn(labels):
    session, _ = make_session(labels)
    assert [one.outside for one in session.alone()] == [None] * 4
    if not labels:
        assert math.isnan(session.alone()[0].estimate) and str(session.alone()[0]).endswith("no estimate yet")
        assert session.alone()[0].to_dict()["estimate"] is None


def test_a_pool_labelled_throughout_leaves_a_right_judge_inside():
    pool = Pool(None, {"right": ["pass", "fail", "pass"], "wrong": ["fail"] * 3}, classes=["pass", "fail"])
    session = Session.create(None, pool, metrics=["share[pass]"], method="tradition", budget=3)
    for query in session.ask(3):
        session.tell(query.id, ["pass", "fail", "pass"][query.index])
    assert [one.outside for one in session.alone()] == [False, True]


def test_a_pool_without_models_has_none():
    pool = Pool(None, None, classes=["pass", "fail"], ids=["a", "b", "c"])
    assert Session.create(None, pool, metrics=["share[pass]"], method="tradition", budget=2).alone() == ()


def test_the_report_shows_it_and_leaves_it_out_where_there_is_none(judged):
    report = judged[0].report()
    assert [row["model"] for row in report.content["alone"]] == ["harsh", "fair"] * 2
    page = report.to_html()
    assert "What each model alone would have said" in page and ">no, outside</span>" in page and 'href="#alone"' in page
    other, _ = make_session(30, ["accuracy"])
    plain = other.report()
    assert plain.content["alone"] == [] and "What each model alone" not in plain.to_html()


def test_values_are_plain():
    one = Alone("share[pass]", "judge", 0.5, 0.4, 0.3, 0.45, 0.95, True)
    assert one.to_dict()["outside"] is True and one.off_by == pytest.approx(0.1)
