"""Report, status, ranking and page say the same of a session, and nothing that is false of it."""

import numpy as np
import pytest

import altmas
from altmas.metrics import metric_set
from altmas.report.content import content_of
from altmas.report.sceptic import label_errors
from altmas.session.opinions import Agreement
from altmas.web.coverage import coverage


def world(n: int = 400, accuracies: tuple[float, ...] = (0.9,), seed: int = 0, **slices):
    rng = np.random.default_rng(seed)
    truth = rng.choice(["no", "yes"], n)
    other = np.where(truth == "no", "yes", "no")
    answers = {f"m{k}": np.where(rng.random(n) < share, truth, other) for k, share in enumerate(accuracies)}
    predictions = answers if len(answers) > 1 else answers["m0"]
    return altmas.Pool(None, predictions, slices={name: values(n, rng) for name, values in slices.items()}), truth


def told(session, truth, asked):
    for query in asked:
        session.tell(query.id, truth[query.index])


def test_slices_of_the_report_are_those_of_the_estimates():
    pool, truth = world(60, (0.97,), site=lambda n, rng: np.where(np.arange(n) % 3 == 0, "a", "b"))
    session = altmas.Session.create(None, pool, seed=1)
    told(session, truth, session.ask(50))
    estimates = {estimate.metric: estimate for estimate in session.estimate("site")}
    (by_site,) = content_of(session)["slices"]
    cells = {cell["metric"]: cell for row in by_site["rows"] for cell in row["metrics"]}
    assert len(cells) == 2
    for name, cell in cells.items():
        assert (cell["low"], cell["high"]) == (estimates[name].low, estimates[name].high)


def test_labels_that_wait_stand_for_nothing_and_no_sentence_says_that_none_was_drawn():
    pool, truth = world(900, (0.9, 0.8))
    session = altmas.Session.create(None, pool, metrics=["m0: accuracy"], seed=2)
    asked = session.ask(40)
    told(session, truth, asked[1::2])  # a sheet of which every second row is filled in
    content = content_of(session)
    assert content["sceptic"]["weights"] is None
    page = session.report().to_html()
    for false in ("The method gives no interval", "no drawn label is there", "no drawn label yet"):
        assert false not in page
    assert "no drawn label counts yet" in session.ranking("accuracy").note
    told(session, truth, asked[::2])
    assert content_of(session)["sceptic"]["weights"]["largest"] < 900


def test_what_it_takes_to_tell_two_models_apart_is_possible():
    pool, truth = world(200, (0.80, 0.79, 0.5))
    session = altmas.Session.create(None, pool, metrics=["m0: accuracy"], seed=3)
    told(session, truth, session.ask(40))
    ranking = session.ranking("accuracy")
    best, contender = (pool.model(name).predictions for name in (ranking.best, ranking.contender))
    left = int(((best != contender) & (session.history.known < 0)).sum())
    assert "more labels than the pool has" not in ranking.outlook
    assert f"or those of the {left} points without a label on which the two differ" in ranking.outlook
    assert (
        "a check of one pair is a test of its own, and may decide it earlier" in ranking.outlook
        and "`" not in ranking.outlook
    )


def test_the_coverage_of_classes_is_that_of_a_model_that_is_named():
    pool, _ = world(300, (0.9, 0.6))
    session = altmas.Session.create(None, pool, metrics=["m0: accuracy"])
    found = coverage(session)
    assert found["model"] == "m0"
    assert [row["predicted"] for row in found["classes"]] == np.bincount(pool.models[0].predictions).tolist()


def test_a_session_that_stops_by_a_threshold_says_which_target_is_missed():
    pool, truth = world(2000, (0.95,))
    plan = {"targets": {"accuracy": 0.005}, "thresholds": {"accuracy": 0.5}}
    session = altmas.Session.create(None, pool, seed=4, budget=400, **plan)
    told(session, truth, session.ask(60))
    decision = session.should_stop()
    assert decision and decision.reason == "every threshold is decided; accuracy is not within 0.005 yet"


def test_what_wrong_labels_would_do_lies_between_its_ends():
    pool, _ = world()
    (metric,) = metric_set(["share[yes]"], pool)
    table = np.array([[150.0, 60.0], [12.0, 178.0]])
    found = label_errors(Agreement(points=40, share=0.9, kappa=0.8), 0.95, table, (metric,), 2)
    (effect,) = found["effects"]
    assert effect["from"] <= effect["value"] <= effect["to"]


def test_a_report_says_which_of_many_metrics_it_shows_in_detail():
    pool, truth = world(300, site=lambda n, rng: rng.choice(["a", "b"], n))
    names = ["accuracy", "kappa", "mcc", "macro_f1", "recall[yes]", "precision[yes]", "f1[yes]", "specificity[yes]"]
    session = altmas.Session.create(None, pool, metrics=names, seed=5)
    told(session, truth, session.ask(40))
    assert session.report().to_html().count("Shown here: accuracy, kappa, mcc, macro_f1, ") == 2
    few = altmas.Session.create(None, pool, metrics=names[:2], seed=5)
    told(few, truth, few.ask(30))
    assert "Shown here:" not in few.report().to_html()


@pytest.mark.parametrize(("later", "verdict"), [(0.95, "better than the"), (0.6, "in w0 it was")])
def test_a_wave_that_is_better_is_said_to_be(later, verdict):
    first, truth = world(300, (0.62,), seed=6)
    second, more = world(300, (later,), seed=7)
    session = altmas.Session.create(None, first, seed=6)
    told(session, truth, session.ask(60))
    session.extend(second, wave="w1", first_wave="w0", wave_budget=60)
    told(session, np.concatenate([truth, more]), session.ask(60))
    headline = content_of(session)["headline"]
    assert headline["verdict"].startswith("No drop is shown: ") and verdict in headline["verdict"]
    assert ("no proof that there is none" in headline["next"]) == (later < 0.9)
