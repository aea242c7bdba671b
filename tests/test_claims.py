"""Claims: what is understood, and what an interval shows, refutes or leaves open."""

import math

import numpy as np
import pytest

import altmas
from altmas.claims import Claim, Verdict, judge
from altmas.errors import MetricError, PlanError
from altmas.estimates import Estimate
from altmas.metrics import metric_set, truth_values


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
    "text, meant",
    [
        ("v2: accuracy > v1: accuracy", "v2: accuracy - v1: accuracy > 0"),
        ("share[>=4]@site=A => share[>=4]@site=B", "share[>=4]@site=A - share[>=4]@site=B >= 0"),
        ("80% < recall[cat]", "recall[cat] > 80%"),
        ("0.9 =< recall[cat]", "recall[cat] >= 0.9"),
    ],
)
def test_two_metrics_and_a_number_in_front_are_put_as_a_claim(text, meant):
    with pytest.raises(PlanError, match="was not understood") as refused:
        Claim.parse(text)
    assert f"did you mean {meant!r}?" in str(refused.value)
    assert Claim.parse(meant)


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
    assert "as labels grow" in said["asymptotic"] and "one look" in said["fixed-n"] and "belief" in said["credible"]
    assert "no interval" in Verdict(claim, "undecided", estimate(math.nan, math.nan, "none")).caution
    assert str(Verdict(claim, "shown", estimate(0.8, 0.9))).startswith(
        "shown: recall[cat] is at least 0.5 (0.8500 [0.8"
    )


@pytest.mark.parametrize(
    "relation, side, answer",
    [(">=", "above", "shown"), (">", "below", "refuted"), ("<=", "below", "shown"), ("<", "above", "refuted")],
)
def test_a_proven_side_decides_by_the_relation(relation, side, answer):
    claim = Claim("recall[cat]", relation, 0.9)
    assert claim.proven(side) == answer and claim.proven("undecided") == "undecided"


def test_a_percentage_is_a_hundredth_and_a_claim_reads_as_a_sentence():
    assert Claim.parse("error < 250%").value == 2.5
    assert str(Claim.parse("error < 5%")) == "error is below 0.05"
    assert str(Claim("mcc", ">", 0.25)) == "mcc is above 0.25" and str(Claim("mcc", "<=", 1)) == "mcc is at most 1"


def test_cautions_are_about_what_was_decided():
    claim = Claim("recall[cat]", ">=", 0.5)
    for kind in ("fixed-n", "credible"):
        assert Verdict(claim, "undecided", estimate(0.4, 0.9, kind)).caution == ""
        assert Verdict(claim, "refuted", estimate(0.1, 0.2, kind)).caution != ""
        assert Verdict(claim, "shown", estimate(0.8, 0.9, kind), proven=True).caution == ""
    early = Verdict(claim, "undecided", estimate(0.8, 0.9), too_early=True)
    assert early.caution == "nothing is called shown or refuted with fewer than 20 drawn labels"


def test_a_verdict_in_words_and_as_values():
    claim = Claim("recall[cat]", ">=", 0.5)
    shown = Verdict(claim, "shown", estimate(0.75, 0.875), proven=True)
    assert str(shown) == (
        "shown: recall[cat] is at least 0.5 (0.8125 [0.7500, 0.8750], 95 % asymptotic, 50 labels, "
        "decided by a test that holds at every look)"
    )
    nothing = Estimate("recall[cat]", math.nan, math.nan, math.nan, 0.95, 1)
    open_ = Verdict(claim, "undecided", nothing)
    assert str(open_) == "undecided: recall[cat] is at least 0.5 (no estimate yet, 1 label)"
    values = shown.to_dict()
    assert values["claim"] == {"metric": "recall[cat]", "relation": ">=", "value": 0.5}
    assert values["answer"] == "shown" and values["proven"] is True and values["caution"] == ""
    assert values["estimate"]["low"] == 0.75 and values["estimate"]["labels"] == 50


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


@pytest.mark.parametrize(
    "claim, hint",
    [
        (Claim("accuracy", ">=", 90), "expected 0 to 1; did you mean 0.9, or 90%?"),
        (Claim("accuracy", ">=", 100), "expected 0 to 1; did you mean 1, or 100%?"),
        (Claim("accuracy", ">=", 1.5), "expected 0 to 1"),
        (Claim("accuracy", ">=", 101), "expected 0 to 1"),
        (Claim("accuracy", ">=", -0.1), "expected 0 to 1"),
    ],
)
def test_a_claim_is_about_a_value_that_the_metric_can_take(session, claim, hint):
    with pytest.raises(PlanError) as error:
        judge(session, claim)
    assert str(error.value).endswith(hint)
    assert judge(session, Claim("accuracy", ">=", 0)).answer in ("shown", "undecided")
    assert judge(session, Claim("accuracy", "<=", 1)).answer in ("shown", "undecided")


def told(pool, n: int, metrics=("accuracy",), **options) -> altmas.Session:
    """Every answer is that the model is right."""
    made = altmas.Session.create(None, pool, metrics=list(metrics), seed=0, **options)
    asked = made.ask(n)
    made.tell({query.id: pool.classes[pool.predictions[query.index]] for query in asked})
    return made


def test_nothing_is_decided_before_twenty_drawn_labels_unless_all_are_known():
    pool = altmas.Pool(None, ["cat", "dog"] * 30)
    claim = Claim.parse("accuracy > 0.2")
    with told(pool, 19) as early:
        verdict = judge(early, claim)
        assert verdict.answer == "undecided" and verdict.too_early
        early.tell({query.id: "cat" for query in early.ask(1)})
        assert judge(early, claim).answer == "shown" and not judge(early, claim).too_early
    with told(altmas.Pool(None, ["cat", "dog"] * 5), 10) as whole:
        verdict = judge(whole, claim)
        assert verdict.answer == "shown" and not verdict.too_early and not verdict.proven


@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_a_value_that_is_exactly_that_of_the_claim_is_not_below_it_by_rounding(method):
    """One of ten is wrong; as 1 - 9 / 10 in floating point that is less than 0.1."""
    session = altmas.Session.create(None, altmas.Pool(None, ["a", "b"] * 5), metrics=["error"], method=method)
    session.tell({row: "ab"[row % 2] if row else "b" for row in range(10)})
    for relation, wanted in ((">=", "shown"), ("<=", "shown"), (">", "refuted"), ("<", "refuted")):
        assert session.check(f"error {relation} 0.1").answer == wanted


def test_volunteered_labels_do_not_make_it_less_early():
    pool = altmas.Pool(None, ["cat", "dog"] * 30)
    with altmas.Session.create(None, pool, metrics=["accuracy"], seed=0) as made:
        made.tell({row: "cat" for row in range(40)})
        assert judge(made, Claim.parse("accuracy > 0.1")).too_early


def test_a_proof_decides_where_there_is_one_and_the_interval_elsewhere():
    pool = altmas.Pool(None, ["cat", "dog"] * 100)
    with told(pool, 60, metrics=("accuracy", "mcc")) as made:
        assert judge(made, Claim.parse("accuracy >= 0.5")).proven
        other = judge(made, Claim.parse("mcc >= 0.1"))
        assert other.answer == "shown" and not other.proven
        close = judge(made, Claim.parse("accuracy >= 0.97"))
        assert close.answer == "undecided" and close.proven


def test_guarantee_refuses_to_decide_by_an_interval():
    session = altmas.Session.create(None, altmas.Pool(None, [0, 1] * 60), metrics=["accuracy"], method="tradition")
    for query in session.ask(60):
        session.tell(query.id, query.index % 2)
    assert judge(session, Claim("accuracy", ">=", 0.5), guarantee=True).proven
    assert judge(session, Claim("mcc", ">=", 0.5)).answer == "shown"
    with pytest.raises(PlanError, match="claim about 'mcc' with a guarantee: no proof is offered for mcc"):
        judge(session, Claim("mcc", ">=", 0.5), guarantee=True)


def test_a_number_that_is_no_percentage_gets_no_hint():
    """A mean grade lies between 1 and 5, so 50 is no percentage of it."""
    with altmas.Session.create(None, altmas.Pool(None, [1, 2, 3, 4, 5] * 12), metrics=["mean"]) as session:
        for value in (0.5, 50, 300):
            with pytest.raises(PlanError) as error:
                judge(session, Claim("mean", ">=", value))
            assert str(error.value).endswith(f"{value:g} is no value that it can take; expected 1 to 5")


@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_a_claim_without_a_proof_is_decided_by_the_interval_for_many_looks(method):
    """Looked at after every 20 labels, claims about MCC that are false by a hair: 23 of 100 sessions were "shown"."""
    rng = np.random.default_rng(41)
    predictions = rng.integers(0, 3, 1500)
    truth = np.where(rng.random(1500) < 0.9, predictions, (predictions + 1) % 3)
    pool = altmas.Pool(None, predictions, classes=[0, 1, 2])
    exact = truth_values(pool, truth, metric_set(["mcc"], pool))["mcc"]
    false = 0
    for seed in range(12):
        session, shown = altmas.Session.create(None, pool, metrics=["mcc"], method=method, seed=seed), False
        for _ in range(8):
            for query in session.ask(20):
                session.tell(query.id, int(truth[query.index]))
            verdicts = [session.check(f"mcc > {exact + 1e-6:.6f}"), session.check(f"mcc < {exact - 1e-6:.6f}")]
            shown |= any(verdict.answer == "shown" for verdict in verdicts)
        false += shown
        assert verdicts[0].estimate.interval == "asymptotic" and "no proof is offered" in verdicts[0].caution
    assert false <= 2
