"""Claims: what is understood, and what an interval shows, refutes or leaves open."""

import math

import pytest

import altmas
from altmas.claims import Claim, Verdict, judge
from altmas.errors import MetricError, PlanError
from altmas.estimates import Estimate


def estimate(low: float, high: float, interval: str = "asymptotic") -> Estimate:
    return Estimate("recall[cat]", (low + high) / 2, low, high, 0.95, 50, 50.0, interval)


@pytest.mark.parametrize(
    "text, claim",
    [
        ("recall[cat] >= 0.9", Claim("recall[cat]", ">=", 0.9)),
        ("recall[cat]>=0.9", Claim("recall[cat]", ">=", 0.9)),
        ("error < 5%", Claim("error", "<", 0.05)),
        ("recall[a >= b]@site=A > .5", Claim("recall[a >= b]@site=A", ">", 0.5)),
        ("mcc <= -1e-3", Claim("mcc", "<=", -0.001)),
    ],
)
def test_a_claim_is_a_metric_a_relation_and_a_number(text, claim):
    assert Claim.parse(text) == claim


@pytest.mark.parametrize("text", ["", "recall[cat]", "recall[cat] = 0.9", "recall[cat] >= high", ">= 0.9", "a >= 1e"])
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(PlanError, match="recall"):
        Claim.parse(text)


@pytest.mark.parametrize(
    "relation, low, high, answer",
    [
        (">=", 0.9, 0.95, "shown"),
        (">=", 0.8, 0.899, "refuted"),
        (">=", 0.85, 0.9, "undecided"),
        (">", 0.9, 0.95, "undecided"),
        (">", 0.8, 0.9, "refuted"),
        ("<=", 0.8, 0.9, "shown"),
        ("<=", 0.9, 0.95, "undecided"),
        ("<=", 0.91, 0.95, "refuted"),
        ("<", 0.8, 0.89, "shown"),
        ("<", 0.9, 0.95, "refuted"),
        ("<", 0.8, 0.9, "undecided"),
        (">=", math.nan, math.nan, "undecided"),
    ],
)
def test_only_the_whole_interval_decides(relation, low, high, answer):
    assert Claim("recall[cat]", relation, 0.9).answer(estimate(low, high)) == answer


def test_what_the_interval_promises_is_said():
    claim = Claim("recall[cat]", ">=", 0.5)
    said = {
        kind: Verdict(claim, "shown", estimate(0.8, 0.9, kind)).caution
        for kind in ("asymptotic", "fixed-n", "credible")
    }
    assert said["asymptotic"] == "" and "one look" in said["fixed-n"] and "belief" in said["credible"]
    assert "no interval" in Verdict(claim, "undecided", estimate(math.nan, math.nan, "none")).caution
    assert str(Verdict(claim, "shown", estimate(0.8, 0.9))).startswith(
        "shown: recall[cat] is at least 0.5 (0.8500 [0.8"
    )


@pytest.fixture
def session():
    pool = altmas.Pool(None, ["cat", "dog"] * 30)
    with altmas.Session.create(None, pool, metrics=["accuracy"]) as made:
        made.tell({query.id: "cat" for query in made.ask(30)})
        yield made


def test_a_session_judges_its_own_metrics_and_any_other(session):
    assert judge(session, Claim.parse("accuracy > 0.2")).answer == "shown"
    assert judge(session, Claim.parse("error > 0.9")).answer == "refuted"
    assert judge(session, Claim.parse("sensitivity[cat] >= 0.5")).answer == "undecided"


def test_a_claim_is_about_one_metric_that_exists(session):
    with pytest.raises(PlanError, match="4 metrics"):
        judge(session, Claim("per_class", ">", 0.5))
    with pytest.raises(MetricError, match="did you mean 'accuracy'"):
        judge(session, Claim("acuracy", ">", 0.5))
