"""Thresholds of a score that are shown to keep a claim."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import altmas
from altmas.cli import app
from altmas.errors import MethodError, MetricError, PlanError
from altmas.metrics import metric_set, truth_values
from altmas.thresholds import CANDIDATES, FIRST_STEPS, between, candidates
from scores_world import a_pool

POOL, TRUTH = a_pool(2, n=3000, ties=False, seed=7)
CLASSES = np.array(["cat", "dog"])


def session_of(labels=200, seed=0, pool=POOL, truth=TRUTH, path=None, **settings):
    session = altmas.Session.create(path, pool, metrics=["recall[dog]"], seed=seed, **settings)
    for size in filter(None, (60, labels - 60)):
        session.tell({query.id: CLASSES[truth[query.index]] for query in session.ask(size)})
    return session


def at(name, threshold):
    (value,) = truth_values(POOL, TRUTH, metric_set(f"{name}[dog,{threshold!r}]", POOL)).values()
    return value


def test_candidates_expect_equal_steps_of_recall_and_closer_ones_first():
    scores = POOL.scores[:, 1]
    grid = candidates(scores)
    assert scores.min() < grid[0] and len(grid) == CANDIDATES - 1 + len(FIRST_STEPS) and grid == sorted(grid)
    expected = [scores[scores >= t].sum() / scores.sum() for t in grid]
    np.testing.assert_allclose(-np.diff(expected[len(FIRST_STEPS) :]), 1 / CANDIDATES, atol=0.002)
    np.testing.assert_allclose(expected[:3], 1 - np.array(FIRST_STEPS) / CANDIDATES, atol=0.002)


def test_thresholds_are_short_numbers_on_the_same_side_in_single_and_double_precision():
    rng = np.random.default_rng(0)
    table = np.round(rng.random(2000), 4)  # as a table has them; the pool keeps them in single precision
    kept = table.astype(np.float32).astype(np.float64)
    for threshold in candidates(kept):
        assert ((table >= threshold) == (kept >= threshold)).all() and len(repr(threshold)) <= 8
    assert candidates(np.full(10, 0.3)) == [0.3]
    assert between(0.25, 0.25 + 1e-12) == 0.25 + 1e-12


def test_the_largest_threshold_shown_to_keep_recall_is_found_with_its_cost():
    found = session_of().threshold("recall[dog] >= 0.9")
    assert found.found and at("recall", found.threshold) >= 0.9
    assert found.kept.low >= 0.9 and found.kept.metric.startswith("recall[dog,")
    assert found.cost.low < at("precision", found.threshold) < found.cost.high
    assert "is the largest threshold shown to keep it" in str(found) and "precision[dog," in str(found)
    later = [kept for t, kept, _ in found.path if t > found.threshold]
    assert later[0].low < 0.9  # the sequence ended at the first that is not shown


def test_precision_is_kept_by_the_smallest_threshold():
    found = session_of(400).threshold("precision[dog] >= 0.6")
    assert found.found and at("precision", found.threshold) >= 0.6
    assert "smallest" in str(found) and found.cost.metric.startswith("recall[dog,")
    below = [kept for t, kept, _ in found.path if t < found.threshold]
    assert below[-1].low < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "most_wrong"), [(100, 8)])
def test_a_threshold_that_does_not_keep_the_claim_is_hardly_ever_chosen(runs, most_wrong):
    """At most 2.5 % are wrong; more than allowed here would come in less than 0.3 % of such tests."""
    chosen = [session_of(200, seed=seed).threshold("recall[dog] >= 0.9") for seed in range(runs)]
    wrong = sum(found.found and at("recall", found.threshold) < 0.9 for found in chosen)
    assert wrong <= most_wrong and sum(found.found for found in chosen) >= 0.8 * runs


def test_a_threshold_is_tested_by_intervals_for_many_looks():
    session = session_of(120)
    found, (at_one_look,) = session.threshold("recall[dog] >= 0.9"), session.estimate(metrics=["recall[dog,0.3]"])
    assert at_one_look.interval == "fixed-n" and {kept.interval for _, kept, _ in found.path} == {"asymptotic"}


def test_without_labels_nothing_is_shown():
    early = altmas.Session.create(None, POOL, metrics=["recall[dog]"]).threshold("recall[dog] >= 0.9")
    assert not early.found and "fewer than 20 drawn labels" in str(early)
    assert early.to_dict()["threshold"] is None
    never = session_of(60).threshold("recall[dog] >= 0.99999")
    assert "no threshold is shown" in str(never) or never.threshold == POOL.scores[:, 1].min()


@pytest.mark.parametrize(
    ("claim", "kind", "said"),
    [
        ("recall >= 0.9", MetricError, "needs a class"),
        ("accuracy >= 0.9", PlanError, "no threshold can be chosen.*recall, precision"),
        ("roc_auc >= 0.9", PlanError, "no threshold can be chosen"),
        ("recall[dog,0.2] >= 0.9", PlanError, "no threshold can be chosen"),
        ("recall[dog]@site=A >= 0.9", PlanError, "no threshold can be chosen"),
        ("recall[dog] <= 0.9", PlanError, "expected >= or >"),
        ("recall[dog] >= 90", PlanError, "no share between 0 and 1"),
        ("per_class >= 0.9", PlanError, "name one of them"),
        ("recall[dog] is high", PlanError, "was not understood"),
    ],
)
def test_what_has_no_threshold_is_refused_in_a_sentence(claim, kind, said):
    with pytest.raises(kind, match=said):
        altmas.Session.create(None, POOL, metrics=["recall[dog]"]).threshold(claim)


def test_scores_and_a_method_that_knows_thresholds_are_needed():
    bare = altmas.Pool(None, CLASSES[POOL.predictions], classes=["cat", "dog"])
    with pytest.raises(MetricError, match="scores"):
        altmas.Session.create(None, bare).threshold("recall[dog] >= 0.9")
    with pytest.raises(MethodError, match="assured can"):
        altmas.Session.create(None, POOL, method="lure").threshold("recall[dog] >= 0.9")


def test_the_command_says_the_threshold_and_exits_by_it(tmp_path):
    table = tmp_path / "pool.csv"
    rows = zip(CLASSES[POOL.predictions], *POOL.scores.T, strict=True)
    table.write_text(
        "id,answer,cat,dog\n" + "".join(f"{i},{a},{float(c)!r},{float(d)!r}\n" for i, (a, c, d) in enumerate(rows))
    )
    pool = altmas.Pool.from_table(table, prediction="answer", id="id", scores=["cat", "dog"])
    path = tmp_path / "t.altmas"
    with session_of(150, pool=pool, path=path):
        pass
    run = CliRunner().invoke(app, ["threshold", str(path), "recall[dog] >= 0.9", "--json"])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["threshold"] > 0
    assert CliRunner().invoke(app, ["threshold", str(path), "recall[dog] >= 0.999999"]).exit_code in (0, 3)
