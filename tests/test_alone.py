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


# ---------------------------------------------------------------- how good each judge is


def test_the_quality_of_judges_comes_from_the_same_labels(judged):
    session, said = judged
    found = {one.metric: one for one in session.judge_quality()}
    assert list(found) == ["harsh: accuracy", "fair: accuracy", "harsh: kappa", "fair: kappa"]
    for model in ("harsh", "fair"):
        exact = (said[model] == said["truth"]).mean()
        assert found[f"{model}: accuracy"].low <= exact <= found[f"{model}: accuracy"].high
    assert found["harsh: kappa"].high < found["fair: kappa"].low


def test_judges_of_grades_have_a_weighted_kappa_also_if_there_is_one_alone():
    grades = np.tile([1, 2, 3, 4, 5], 20)
    pool = Pool(None, {"judge": np.minimum(grades + 1, 5)}, classes=[1, 2, 3, 4, 5])
    session = Session.create(None, pool, metrics=["mean"], method="assured", budget=60)
    for query in session.ask(60):
        session.tell(query.id, int(grades[query.index]))
    assert [one.metric for one in session.judge_quality()] == ["accuracy", "kappa", "weighted_kappa"]
    report = session.report()
    assert [row["metric"] for row in report.content["quality"]["rows"]] == ["accuracy", "kappa", "weighted_kappa"]
    assert "How far each of them agrees with the labels" in report.to_html()


def test_what_was_asked_for_is_not_shown_twice_and_nothing_where_no_truth_is_asked_for(judged):
    rows = judged[0].report().content["quality"]["rows"]
    assert [row["metric"] for row in rows] == ["kappa"]
    assert [cell["labels"] for cell in rows[0]["cells"]] == [120, 120]
    session, _ = make_session(30, ["accuracy"])
    assert session.judge_quality() is None
    none = Pool(None, None, classes=["pass", "fail"], ids=["a", "b", "c"])
    assert Session.create(None, none, metrics=["share[pass]"], method="tradition", budget=2).judge_quality() is None


def test_the_command_line_says_what_each_judge_alone_would_have_said(tmp_path):
    import json

    from typer.testing import CliRunner

    from altmas.cli import app

    session, _ = make_session(0)
    path = tmp_path / "s.altmas"
    with Session.create(path, session.pool, metrics=METRICS, method="tradition", budget=40) as kept:
        for query in kept.ask(40):
            kept.tell(query.id, "pass" if query.index % 2 else "fail")
    told = CliRunner().invoke(app, ["estimate", str(path)])
    assert told.exit_code == 0 and told.output.count(" alone: ") == 4
    plain = json.loads(CliRunner().invoke(app, ["estimate", str(path), "--json"]).output)
    assert [one["model"] for one in plain["alone"]] == ["harsh", "fair"] * 2
    asked = json.loads(CliRunner().invoke(app, ["estimate", str(path), "--metric", "kappa", "--json"]).output)
    assert "alone" not in asked
