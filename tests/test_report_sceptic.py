"""What the report tells a sceptic, checked against slow and obvious versions; and the trend since an earlier report."""

import json
import math

import numpy as np
import pytest

from altmas import Pool, Session
from altmas.errors import FileError
from altmas.report.content import content_of
from altmas.report.sceptic import agreement_interval, error_rate, multiplicity
from altmas.session.opinions import Agreement
from cli_world import make_session, run


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    rng = np.random.default_rng(0)
    truth = rng.choice(["cat", "dog", "eel"], 400)
    said = np.where(rng.random(400) < 0.8, truth, "cat")
    pool = Pool(
        None, said, slices={"site": np.where(np.arange(400) % 3, "A", "B")}, items=[f"secret {k}" for k in range(400)]
    )
    made = Session.create(
        tmp_path_factory.mktemp("sceptic") / "s.altmas",
        pool,
        metrics=["accuracy", "recall[cat]"],
        budget=120,
        targets={"accuracy": 0.05},
        thresholds={"recall[cat]": 0.5},
    )
    for _ in range(4):
        for query in made.ask(30):
            made.tell(query.id, truth[query.index], annotator="ana")
            if query.index % 4 == 0:
                made.tell(query.id, "cat" if query.index % 32 == 0 else truth[query.index], annotator="ben")
        made.estimate()
    yield made
    made.close()


@pytest.fixture(scope="module")
def content(session):
    return content_of(session)


def test_second_opinions_give_an_interval_of_the_error_rate(session, content):
    found, agreement = content["label_errors"], session.agreement()
    assert found["points"] == agreement.points > 15
    assert found["rate"]["low"] < found["rate"]["value"] < found["rate"]["high"]
    accuracy = found["effects"][0]
    assert accuracy["metric"] == "accuracy" and accuracy["from"] <= accuracy["value"] <= accuracy["to"]
    (said,) = [one["words"] for one in content["assumptions"] if one["title"] == "The labels are right"]
    assert "of the labels are wrong (" in said


@pytest.mark.parametrize("classes", [2, 3, 77])
@pytest.mark.parametrize("rate", [0.0, 0.02, 0.1, 0.3])
def test_the_error_rate_is_that_of_two_people_who_err_alike(classes, rate):
    agree = (1 - rate) ** 2 + rate**2 / (classes - 1)
    assert error_rate(agree, classes) == pytest.approx(rate, abs=1e-9)
    rng = np.random.default_rng(1)
    wrong = rng.random((2, 200_000)) < rate
    answers = np.where(wrong, rng.integers(1, classes, wrong.shape), 0)  # the truth is 0
    assert (answers[0] == answers[1]).mean() == pytest.approx(agree, abs=0.005)


def test_the_interval_of_the_agreement_is_exact():
    low, high = agreement_interval(Agreement(20, 0.95, 0.9), 0.95)
    assert (low, high) == (
        pytest.approx(0.7513, abs=1e-3),
        pytest.approx(0.9987, abs=1e-3),
    )  # Clopper-Pearson, 19 of 20
    assert agreement_interval(Agreement(20, 1.0, 1.0), 0.95)[1] == 1.0
    assert math.isnan(agreement_interval(Agreement(0, math.nan, math.nan), 0.95)[0])


def test_multiplicity_counts_every_interval(content):
    told = multiplicity(content)
    cells = [cell for one in content["slices"] for row in one["rows"] for cell in row["metrics"]]
    assert told["metrics"] == 2 and told["slices"] == sum(cell["low"] is not None for cell in cells) == 4
    assert told["expected_misses"] == pytest.approx(0.3) and told["together"] == pytest.approx(0.7)


def test_looks_plan_and_weights_are_told_without_ids(session, content):
    told = content["sceptic"]
    assert told["looks"] == [30, 60, 90, 120]
    assert {"what": "labels", "planned": "120", "actual": "120"} in told["planned"]
    assert any(row["what"] == "half-width of accuracy" and row["planned"] == "±0.05" for row in told["planned"])
    weights = told["weights"]
    assert weights["largest"] >= weights["median"] >= 1 and weights["effective"] <= weights["labels"] == 120
    assert weights["heaviest"][0]["moves"] == pytest.approx(weights["largest"] / 400)
    assert not any("id" in one for one in weights["heaviest"])
    named = content_of(session, items=True)["sceptic"]["weights"]["heaviest"]
    assert all("id" in one for one in named)


def test_slices_have_differences_that_agree_with_the_metric_of_that_name(session, content):
    (found,) = content["slices"]
    (one,) = found["differences"]
    direct = session.estimate(metrics=["accuracy@site=B - accuracy@site=A"])[0]
    assert (one["value"], one["against"]) == ("B", "A")
    assert one["difference"] == pytest.approx(direct.value) and one["low"] == pytest.approx(direct.low)


def test_widening_is_explained(tmp_path):
    """No error among the first labels, then several: the interval grows, and the report says why."""
    pool = Pool(None, ["cat", "dog"] * 200)
    session = Session.create(None, pool, method="tradition")
    for number, query in enumerate(session.ask(60)):
        right = pool.classes[pool.predictions[query.index]]
        session.tell(query.id, right if number < 40 else "cat")
    told = content_of(session)["sceptic"]["widened"]
    assert told and "labels show an error of the model" in told[-1]


def test_items_show_errors_first(session, tmp_path):
    page = session.report(tmp_path / "r.html", items=True).to_html()
    wrong, right = page.index("on which the model is wrong"), page.index("on which the model is right</summary>")
    assert wrong < right and page.index("secret") > wrong
    assert "secret" not in session.report(tmp_path / "s.html").to_html()


# ---------------------------------------------------------------- since an earlier report


def test_the_trend_since_an_earlier_report(tmp_path):
    path, truth = make_session(tmp_path)

    def label(n):
        with Session.open(path) as session:
            session.tell({query.id: truth[str(query.id)] for query in session.ask(n)})

    label(30)
    assert run("report", path, "-o", tmp_path / "may.html").code == 0
    label(60)
    assert run("report", path, "-o", tmp_path / "june.html", "--since", tmp_path / "may.json").code == 0
    trend = json.loads((tmp_path / "june.json").read_text())["trend"]
    (row,) = trend["rows"]
    assert trend["labels"] == 30 and trend["same_pool"] and row["metric"] == "accuracy" and not row["apart"]
    assert row["change"] == pytest.approx(row["now"]["value"] - row["then"]["value"])
    assert 'id="trend"' in (tmp_path / "june.html").read_text()


@pytest.mark.parametrize(
    ("content", "said"), [("[]", "is no report"), ("{", "cannot be read as JSON"), (None, "not exist")]
)
def test_what_is_no_report_is_refused_before_anything_is_written(content, said, tmp_path):
    path, _ = make_session(tmp_path)
    earlier = tmp_path / "earlier.json"
    if content is not None:
        earlier.write_text(content)
    ran = run("report", path, "-o", tmp_path / "r.html", "--since", earlier)
    assert ran.code == 2 and said in ran.err and "--since FILE" in ran.err and not (tmp_path / "r.html").exists()
    with Session.open(path) as session, pytest.raises(FileError):
        session.report(since=earlier)
