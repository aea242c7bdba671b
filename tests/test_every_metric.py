"""Every family of metrics through a whole session: draws, estimates, claims, plans, reports, simulation."""

import json

import numpy as np
import pytest

import altmas
from altmas.claims import Claim, judge
from altmas.errors import MethodError, MetricError, PlanError
from altmas.history import History
from altmas.methods import Assured
from altmas.methods.assured.weights import shifted_odds
from altmas.metrics import metric_set, truth_values
from altmas.planning import plan_widths
from altmas.simulate import label_until
from altmas.task import Task
from scores_world import a_pool

NAMES = (
    "accuracy",
    "roc_auc",
    "average_precision",
    "log_loss",
    "brier",
    "calibration_error",
    "recall[dog,0.3]",
    "precision[dog,0.3]",
    "share[dog]",
    "mean[cat=0,dog=3]",
    "weighted_kappa",
    "recall[dog]@site=A - recall[dog]@site=B",
    "roc_auc@site=A - roc_auc@site=B",
    "gap[recall[dog], site]",
)
POOL, TRUTH = a_pool(2, n=600, ties=False, seed=5)
CLASSES = np.array(["cat", "dog"])


def labelled_session(path=None, labels=120, **settings):
    session = altmas.Session.create(path, POOL, metrics=NAMES, seed=4, **settings)
    for query in session.ask(60):
        session.tell(query.id, CLASSES[TRUTH[query.index]])
    for query in session.ask(labels - 60):
        session.tell(query.id, CLASSES[TRUTH[query.index]])
    return session


@pytest.fixture(scope="module")
def session():
    return labelled_session(targets={"roc_auc": 0.02, "gap[recall[dog], site]": 0.05})


def test_every_metric_has_an_estimate_with_an_interval_that_holds_it(session):
    for one in session.estimate():
        assert one.low <= one.value <= one.high, one
        assert one.high > one.low and one.effective_labels > 0, one
    assert "largest in" in session.estimate()["gap[recall[dog], site]"].note


def test_estimates_by_slice_leave_out_what_is_made_of_slices(session):
    names = [one.metric for one in session.estimate(by="site")]
    assert "roc_auc@site=A" in names and "share[dog]@site=B" in names
    assert not any(" - " in name or "gap" in name for name in names)


def test_everything_labelled_is_exact_for_every_metric():
    task = Task(POOL, metric_set(NAMES, POOL))
    history = label_until(Assured(), task, History(len(POOL)), len(POOL), 200, TRUTH.__getitem__)
    exact = truth_values(POOL, TRUTH, task.metrics)
    for one in Assured().estimate(task, history):
        assert one.value == pytest.approx(exact[one.metric])
        assert (one.low, one.high) == pytest.approx((one.value, one.value))


@pytest.mark.parametrize(
    ("claim", "answer"),
    [
        ("roc_auc >= 0.4", "shown"),
        ("roc_auc >= 0.99", "refuted"),
        ("share[dog] >= 0.05", "shown"),
        ("log_loss <= 5", "shown"),
        ("recall[dog]@site=A - recall[dog]@site=B >= -0.6", "shown"),
        ("gap[recall[dog], site] <= 0.9", "shown"),
        ("recall[dog,0.6] - recall[dog,0.2] <= 0.5", "shown"),
        ("share[dog] - share[cat] >= 0.9", "refuted"),
    ],
)
def test_claims_about_every_family_are_decided(session, claim, answer):
    assert judge(session, Claim.parse(claim)).answer == answer


def test_a_claim_beyond_the_bounds_of_a_difference_is_refused(session):
    with pytest.raises(PlanError, match="expected -1 to 1"):
        judge(session, Claim.parse("recall[dog] - recall[cat] >= 1.5"))


def test_a_session_with_every_metric_is_stored_and_opened_again(tmp_path):
    path = tmp_path / "every.altmas"
    with labelled_session(path) as made:
        before = str(made.estimate())
    with altmas.Session.open(path, pool=POOL) as opened:
        assert str(opened.estimate()) == before


def test_the_report_has_every_metric_in_words_and_as_json(session, tmp_path):
    session.report(tmp_path / "r.html")
    page, content = (tmp_path / "r.html").read_text(), json.loads((tmp_path / "r.json").read_text())
    told = {row["metric"]: row for row in content["metrics"]}
    for name in NAMES:
        assert told[name]["meaning"] and name.split("@")[0].split("[")[0] in page
    assert np.isfinite(told["roc_auc"]["check"]["value"])


def test_the_report_draws_curves_with_bands_where_scores_are_asked_about(session, tmp_path):
    page = session.report(tmp_path / "r.html")
    content = json.loads((tmp_path / "r.json").read_text())
    (curves,) = content["curves"]
    points = curves["thresholds"]
    assert len(points) == 13 and points[0]["recall"]["value"] == 1.0
    assert [row["recall"]["value"] for row in points] == sorted(
        (row["recall"]["value"] for row in points), reverse=True
    )
    for row in points:
        exact = truth_values(POOL, TRUTH, metric_set(f"recall[dog,{row['threshold']!r}]", POOL))
        assert row["recall"]["low"] - 0.1 <= next(iter(exact.values())) <= row["recall"]["high"] + 0.1
    assert sum(row["points"] for row in curves["reliability"]) == len(POOL)
    html = (tmp_path / "r.html").read_text()
    for name in ("chart-roc-0", "chart-precision-0", "chart-reliability-0"):
        assert name in html and html.count('class="band"') >= 3
    assert page is not None


def test_no_curve_is_drawn_where_nobody_asks_about_scores(tmp_path):
    plain = altmas.Session.create(None, POOL, metrics=["accuracy"], seed=4)
    plain.tell({query.id: CLASSES[TRUTH[query.index]] for query in plain.ask(40)})
    plain.report(tmp_path / "r.html")
    assert json.loads((tmp_path / "r.json").read_text())["curves"] == []


def test_widths_can_be_planned_for_every_metric():
    plan = plan_widths(POOL, metrics=NAMES, methods=["assured", "tradition"], budgets=(50, 150), worlds=2)
    widths = {(one.method, one.metric): one.half_width for one in plan.widths if one.labels == 150}
    assert len(widths) == 2 * len(NAMES) and all(np.isfinite(list(widths.values())))


def test_every_metric_can_be_simulated():
    found = altmas.simulate(
        POOL,
        TRUTH,
        methods=["assured", "tradition"],
        metrics=NAMES,
        budgets=(100,),
        repeats=2,
        n_jobs=1,
        progress=False,
    )
    assert {row["metric"] for row in found.summary()} == set(NAMES)


def test_methods_made_for_tables_refuse_when_the_session_is_made():
    for name in ("roc_auc", "share[dog] - share[cat]", "gap[accuracy, site]", "recall[dog,0.3]"):
        with pytest.raises(MethodError, match="made for the predictions of one model"):
            altmas.Session.create(None, POOL, metrics=[name], method="lure")
    with pytest.raises(MethodError, match="methods that can: .*assured"):
        altmas.simulate(POOL, TRUTH, methods=["ppi"], metrics=["log_loss"], budgets=(50,), repeats=1, progress=False)


def test_a_second_model_is_compared_on_metrics_of_predictions_only(session):
    second = CLASSES[1 - POOL.predictions]
    assert [one.metric for one in session.compare(second)] == ["accuracy", "weighted_kappa"]
    with pytest.raises(MetricError, match="'roc_auc' is no such metric"):
        session.compare(second, metrics=["roc_auc"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["roc_auc", "average_precision", "log_loss", "brier", "recall[dog]@site=A - recall[dog]@site=B"]
)
@pytest.mark.parametrize(("runs", "least"), [(120, 0.9)])
def test_intervals_of_assured_cover(name, runs, least):
    """Coverage of 0.95 less about 2.5 standard errors of so many runs."""
    labels = 120
    task = Task(POOL, metric_set(name, POOL))
    (exact,) = truth_values(POOL, TRUTH, task.metrics).values()
    covered = 0
    for seed in range(runs):
        now = Task(POOL, task.metrics, seed=seed)
        history = label_until(Assured(), now, History(len(POOL)), labels, 40, TRUTH.__getitem__)
        one = Assured().estimate(now, history)[0]
        covered += one.low <= exact <= one.high
    assert covered / runs >= least


def test_shifted_odds_reach_the_totals_of_every_bin():
    rng = np.random.default_rng(0)
    chances, bins = rng.random(300), rng.integers(0, 4, 300)
    chances[:20] = rng.integers(0, 2, 20)
    totals = np.bincount(bins, chances) * np.array([0.5, 1.0, 1.2, 0.9])
    found = shifted_odds(chances, bins, totals)
    np.testing.assert_allclose(np.bincount(bins, found), totals, rtol=1e-6)
    np.testing.assert_array_equal(found[:20], chances[:20])  # what is known stays known
    odds = found[20:] / (1 - found[20:]) / (chances[20:] / (1 - chances[20:]))
    assert all(np.ptp(odds[bins[20:] == b]) < 1e-6 for b in range(4))


@pytest.fixture(scope="module")
def two_models():
    rng = np.random.default_rng(1)
    better = np.where(rng.random(len(POOL)) < 0.6, TRUTH, POOL.predictions)
    scores = {"v1": POOL.scores}
    answers = {"v1": CLASSES[POOL.predictions], "v2": CLASSES[better]}
    pool = altmas.Pool(None, answers, scores=scores, classes=["cat", "dog"], slices=dict(POOL.slices))
    names = ["accuracy", "v2: accuracy - v1: accuracy", "v1: roc_auc", "share[dog]", "v2: gap[accuracy, site]"]
    session = altmas.Session.create(None, pool, metrics=names, seed=2)
    for size in (60, 90):
        session.tell({query.id: CLASSES[TRUTH[query.index]] for query in session.ask(size)})
    return session


def test_metrics_of_several_models_come_from_the_same_labels(two_models):
    exact = truth_values(two_models.pool, TRUTH, two_models.task.metrics)
    found = two_models.estimate()
    assert [one.metric for one in found][:3] == ["v1: accuracy", "v2: accuracy", "v2: accuracy - v1: accuracy"]
    for one in found:
        assert one.low <= one.value <= one.high and abs(one.value - exact[one.metric]) < 0.12, one
    change, first, second = (found[name] for name in ("v2: accuracy - v1: accuracy", "v1: accuracy", "v2: accuracy"))
    assert change.value == pytest.approx(second.value - first.value, abs=0.02)
    assert change.half_width < first.half_width + second.half_width  # the same labels: errors in common cancel


def test_non_inferiority_is_a_claim_about_a_difference(two_models):
    verdict = judge(two_models, Claim.parse("v2: accuracy - v1: accuracy >= -0.01"))
    assert verdict.answer == "shown" and verdict.proven
    assert judge(two_models, Claim.parse("v1: accuracy - v2: accuracy >= 0.05")).answer == "refuted"
    with pytest.raises(PlanError, match="it stands for 2 metrics"):
        judge(two_models, Claim.parse("accuracy >= 0.5"))


def test_the_truth_alone_is_estimated_without_any_model():
    pool = altmas.Pool(None, None, classes=["cat", "dog"], ids=list(range(600)), slices=dict(POOL.slices))
    session = altmas.Session.create(None, pool, metrics=["share[dog]", "share[dog]@site=A - share[dog]@site=B"], seed=3)
    for size in (60, 60):
        session.tell({query.id: CLASSES[TRUTH[query.index]] for query in session.ask(size)})
    exact = truth_values(pool, TRUTH, session.task.metrics)
    for one in session.estimate():
        assert one.low <= exact[one.metric] <= one.high and one.high - one.low < 0.6
    assert judge(session, Claim.parse("share[dog] >= 0.02")).answer == "shown"
