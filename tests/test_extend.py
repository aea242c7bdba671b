"""A session can be extended: each change is one event, checked before it is recorded and the same after reopening."""

import pytest

import altmas
from altmas.errors import AltmasError, MetricError, NotASession, PlanError
from altmas.session.store import Entry
from cli_world import run
from session_world import create as create_any
from session_world import truth


@pytest.fixture
def path(tmp_path):
    return tmp_path / "one.altmas"


def create(path, **options):
    return create_any(path, **{"method": "tradition", "budget": 20} | options)


def told(session, n=20):
    for query in session.ask(n):
        session.tell(query.id, truth(query))
    return session


def test_a_spent_budget_can_be_raised_and_the_session_goes_on(path):
    session = told(create(path))
    assert session.should_stop() and session.ask(5) == []
    elsewhere = altmas.Session.open(path)
    change = session.extend(budget=30)
    assert (change.labels, dict(change.settings)) == (20, {"budget": 30})
    assert not session.should_stop() and len(elsewhere.ask(50)) == 10
    assert elsewhere.plan.budget == 30 and elsewhere.status().budget == 30
    told(session, 50)
    assert len(session.history.labels) == 30 and session.should_stop().reason == "the budget of 30 labels is spent"
    session.close()
    elsewhere.close()
    again = altmas.Session.open(path)
    assert again.plan.budget == 30 and again.at(labels=5).plan.budget == 20
    assert [one.words for one in again.changes()] == ["budget 30"]


def test_metrics_targets_and_thresholds_are_added_and_logged_estimates_are_of_their_plan(path):
    session = told(create(path, method="assured"))
    assert [one.metric for one in session.estimate()] == ["accuracy"]
    session.extend(metrics=["recall[cat]"], targets={"accuracy": 0.1}, thresholds={"recall[cat]": 0.5})
    assert [one.metric for one in session.estimate()] == ["accuracy", "recall[cat]"]
    session.extend(metrics="accuracy", targets={"accuracy": 0.2})
    assert session.plan.targets == {"accuracy": 0.2} and session.plan.metrics == ("accuracy", "recall[cat]")
    assert session.estimate()["accuracy"].interval == "asymptotic"  # it may stop by what it sees now
    assert {one["metric"] for one in session.logged_estimates()[-1]["estimates"]} == {"accuracy", "recall[cat]"}
    told(session, 10)
    path_of = [(labels, [one.metric for one in found]) for labels, found in session.trajectory(3)]
    assert path_of[0][1] == ["accuracy"] and path_of[-1][1] == ["accuracy", "recall[cat]"]


def test_a_function_as_a_further_metric_has_to_be_handed_over_on_opening(path):
    def share_of_cats(y_true, y_pred):
        return float((y_true == "cat").mean())

    session = told(create(path))
    session.extend(metrics=share_of_cats)
    value = session.estimate()["share_of_cats"].value
    session.close()
    with pytest.raises(PlanError, match="share_of_cats"):
        altmas.Session.open(path)
    assert altmas.Session.open(path, metrics=[share_of_cats]).estimate()["share_of_cats"].value == value


def test_what_does_not_fit_is_refused_with_a_sentence_and_nothing_is_recorded(path):
    session = told(create(path, guarantee=True))
    before = session.status().seq
    for options, kind, sentence in [
        ({}, PlanError, "nothing would change"),
        ({"budget": 20}, PlanError, "nothing would change"),
        ({"budget": 19}, PlanError, "less than the 20 labels told already"),
        ({"budget": 61}, PlanError, "expected 1 to 60"),
        ({"budget": 25, "metrics": "recal[cat]"}, MetricError, "recal"),
        ({"targets": {"recall[cat]": 0.1}}, PlanError, "not one of this session's metrics"),
        ({"thresholds": {"accuracy": 95}}, PlanError, "0.95"),
        ({"metrics": "mcc"}, PlanError, "no guarantee is offered for 'mcc'"),
    ]:
        with pytest.raises(kind, match=sentence):
            session.extend(**options)
        assert session.status().seq == before
    assert session.changes() == [] and session.plan.budget == 20


def test_a_session_is_reopened_with_the_plan_it_was_made_with_or_has_now(path):
    told(create(path)).extend(budget=30)
    assert create(path, exist_ok=True).plan.budget == 30
    assert create(path, exist_ok=True, budget=30).plan.budget == 30
    with pytest.raises(PlanError, match="budget is 20 there"):
        create(path, exist_ok=True, budget=40)


@pytest.mark.parametrize(
    "body", [{}, {"settings": 3}, {"settings": {"budget": "many"}}, {"settings": {"targets": {"a": "b"}}}]
)
def test_a_crafted_change_is_refused_as_damage(path, body):
    session = create(path)
    with session._journal.store.transaction():
        session._journal.store.append([Entry("extend", body=body)])
    session.close()
    with pytest.raises(AltmasError) as caught:
        altmas.Session.open(path)
    assert isinstance(caught.value, NotASession)


def test_the_report_and_the_command_say_what_was_changed_when(path):
    told(create(path)).close()
    ran = run("extend", path, "--budget", 40, "-m", "recall[cat]", "--target", "accuracy=0.1")
    assert ran.code == 0 and "budget 40" in ran.out and "20 labels" in ran.out
    refused = run("extend", path, "--budget", 4)
    assert refused.code == 2 and "less than the 20 labels" in refused.err
    with altmas.Session.open(path) as session:
        report = session.report()
        assert [one["labels"] for one in report.content["reproducibility"]["changes"]] == [20]
        assert "at 20 labels: metrics accuracy, recall[cat]; budget 40; targets accuracy = 0.1" in report.to_html()


def test_items_without_ids_count_on_and_the_session_opens_again(path):
    pool = altmas.Pool(None, ["a", "b"] * 20)
    altmas.Session.create(path, pool, budget=30).close()
    for wave in ("second", "third"):
        with altmas.Session.open(path) as session:
            session.extend(altmas.Pool(None, ["a", "b", "a"], classes=["a", "b"]), wave=wave)
    with altmas.Session.open(path) as session:
        assert list(session.pool.ids) == list(range(46)) and session.pool.slices["wave"][-3:].tolist() == ["third"] * 3
