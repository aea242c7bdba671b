"""The related systems as methods: right on average, covered, honest about what they cannot do, replayable."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

import altmas
from altmas.errors import MethodError
from altmas.history import Batch, History
from altmas.methods import METHODS, Method, Task, check, method_named
from altmas.methods.related.active_inference import systematic, water_filled
from altmas.methods.related.hidden import expected_hidden, fall_of, unmet_scores
from altmas.methods.related.proxy import class_scores, confidence_of
from altmas.methods.related.stratified import Stratified, expected_spreads
from altmas.methods.related.weighted_sample import gamma_reach, rows_that_move
from altmas.metrics import metric_set, truth_values
from altmas.simulate import label_until

N = 2000
OF_ALL = ("stratified", "druck", "sawade", "lure", "ppi", "active-inference", "paula", "adastrat", "katariya")
RELATED = (*OF_ALL, "oasis")


@cache
def world(scores: bool = True) -> tuple[altmas.Pool, np.ndarray]:
    """Three classes of unequal size and a model whose scores are too sure of themselves."""
    rng = np.random.default_rng(1)
    shares = np.array([0.6, 0.3, 0.1])
    truth = rng.choice(3, N, p=shares)
    x = 1.6 * np.eye(3)[truth] + rng.normal(size=(N, 3))
    values = np.exp(1.6 * (1.6 * x + np.log(shares)))
    values /= values.sum(1, keepdims=True)
    site = np.where(np.arange(N) % 2, "a", "b")
    given = values if scores else None
    pool = altmas.Pool(x.astype(np.float32), values.argmax(1), scores=given, classes=[0, 1, 2], slices={"site": site})
    return pool, truth


def repeated(
    method: Method, names: list[str], labels: int, repeats: int, scores: bool = True, batch: int = 40
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """{metric: (errors, whether covered)} of independent runs."""
    pool, truth = world(scores)
    metrics = metric_set(names, pool)
    exact = truth_values(pool, truth, metrics)
    found: dict[str, list[tuple[float, bool]]] = {name: [] for name in exact}
    for seed in range(repeats):
        task = Task(pool, metrics, seed=1000 + seed)
        history = label_until(method, task, History(N), labels, batch, truth.__getitem__)
        for one in method.estimate(task, history):
            true = exact[one.metric]
            found[one.metric].append((one.value - true, one.low <= true <= one.high))
    return {name: tuple(np.array(column) for column in zip(*rows, strict=True)) for name, rows in found.items()}


def names_for(name: str) -> list[str]:
    return ["precision[2]", "recall[2]"] if name == "oasis" else ["accuracy"]


# ---------------------------------------------------------------- right on average, and covered


@pytest.mark.slow
@pytest.mark.parametrize("name", RELATED)
def test_estimates_are_right_on_average_and_intervals_cover(name):
    """100 runs of 120 labels (25 of katariya, which learns its strata anew in each). Unbiased methods: within 3.5
    standard errors of the truth (plus 0.01 for ratios, whose bias is O(1/n)). Those that say they are biased: within
    0.02. Coverage of 95 % intervals: at least 0.88."""
    method = method_named(name)
    for metric, (errors, covered) in repeated(method, names_for(name), 120, 25 if name == "katariya" else 100).items():
        allowed = 3.5 * errors.std() / np.sqrt(len(errors)) + (0.01 if metric != "accuracy" else 0.0)
        assert abs(errors.mean()) < (0.02 if method.traits.biased else allowed), metric
        assert covered.mean() >= 0.88, metric


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "least"), [(80, 0.88)])
@pytest.mark.parametrize("name", ["sawade", "lure", "ppi", "active-inference"])
def test_a_surrogate_stands_in_where_there_are_no_scores(name, runs, least):
    """100 labels from features alone; bias as above, coverage 0.95 less about 3 standard errors."""
    errors, covered = repeated(method_named(name), ["accuracy"], 100, runs, scores=False)["accuracy"]
    assert abs(errors.mean()) < 3.5 * errors.std() / np.sqrt(len(errors))
    assert covered.mean() >= least


@pytest.mark.parametrize("runs", [20, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["stratified", "druck", "paula", "adastrat"])
def test_an_imitation_of_the_model_stands_in_where_there_are_no_scores(name, runs):
    """Runs of 100 labels from features alone. The imitation sees no label, so what is unbiased stays so; tolerance
    as above."""
    method = method_named(name)
    for metric, (errors, covered) in repeated(method, names_for(name), 100, runs, scores=False).items():
        allowed = 3.5 * errors.std() / np.sqrt(len(errors)) + (0.0 if metric == "accuracy" else 0.01)
        assert abs(errors.mean()) < (0.02 if method.traits.biased else allowed), metric
        assert covered.mean() >= 0.85, metric


def test_the_imitation_is_a_distribution_that_knows_no_label():
    pool, _ = world(scores=False)
    scores = class_scores(pool)
    np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-6)
    assert scores.min() >= 0 and class_scores(pool) is scores
    np.testing.assert_array_equal(confidence_of(pool), scores[np.arange(N), pool.predictions])
    assert (scores.argmax(1) == pool.predictions).mean() > 0.9
    with_scores, _ = world()
    assert class_scores(with_scores) is with_scores.scores


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stratified", "druck", "active-inference"])
def test_confidence_makes_labels_worth_more_than_random_ones(name):
    """200 runs: the mean squared error for accuracy is below that of a random sample of the same size."""
    errors, _ = repeated(method_named(name), ["accuracy"], 120, 200)["accuracy"]
    pool, truth = world()
    share = (pool.predictions == truth).mean()
    assert (errors**2).mean() < share * (1 - share) / 120 * (1 - 120 / N)


@pytest.mark.slow
def test_oasis_and_druck_find_a_rare_class():
    """120 runs: the standard deviation of recall is below two thirds of random sampling's."""
    plain = repeated(method_named("tradition"), ["recall[2]"], 160, 120)["recall[2]"][0]
    for name in ("oasis", "druck"):
        errors = repeated(method_named(name), ["recall[2]"], 160, 120)["recall[2]"][0]
        assert errors.std() < 2 / 3 * np.nanstd(plain)


@pytest.mark.slow
def test_wrong_scores_cost_width_and_not_validity():
    """Scores that belong to other points: every unbiased design stays right on average."""
    pool, truth = world()
    shuffled = altmas.Pool(
        pool.features,
        pool.predictions,
        scores=np.random.default_rng(0).permutation(pool.scores),
        classes=[0, 1, 2],
    )
    metrics = metric_set(["accuracy"], shuffled)
    exact = (pool.predictions == truth).mean()
    for name in ("stratified", "druck", "sawade", "lure", "ppi", "active-inference"):
        errors, covered = [], []
        for seed in range(80):
            task = Task(shuffled, metrics, seed=seed)
            history = label_until(method_named(name), task, History(N), 120, 40, truth.__getitem__)
            one = method_named(name).estimate(task, history)[0]
            errors.append(one.value - exact)
            covered.append(one.low <= exact <= one.high)
        assert abs(np.mean(errors)) < 3.5 * np.std(errors) / np.sqrt(80), name
        assert np.mean(covered) >= 0.88, name


def test_adaptive_allocation_admits_its_bias():
    assert Stratified().traits.biased and not Stratified(allocation="proportional").traits.biased
    biased = {name for name in RELATED if method_named(name).traits.biased}
    assert biased == {"adastrat", "katariya", "stratified"}
    for name in biased:
        assert "biased" in METHODS[name].__doc__
    for name in ("stratified", "druck", "katariya", "paula", "adastrat"):
        assert METHODS[name].__doc__ and "fter" in METHODS[name].__doc__


@pytest.mark.parametrize("runs", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_the_labels_of_a_half_do_not_decide_where_it_is_drawn(runs):
    """katariya, 150 labels: accuracy within 3 standard errors; its own buckets overstated it by 0.6 of its error."""
    errors, _ = repeated(method_named("katariya"), ["accuracy"], 150, runs)["accuracy"]
    assert abs(errors.mean()) < 3 * errors.std() / np.sqrt(runs)


# ---------------------------------------------------------------- small counts


def test_weighted_events_reach_as_far_up_as_exact_poisson_limits():
    """Fay and Feuer: with equal weights the limit is the exact one of a Poisson count."""
    for count in (0, 1, 5, 20):
        exact = chi2.ppf(0.975, 2 * (count + 1)) / 2
        assert gamma_reach(3.0 * count, 9.0 * count, 3.0, 0.95) == pytest.approx(3 * (exact - count))
    assert gamma_reach(0.0, 0.0, 0.0, 0.95) == 0


def test_oasis_reaches_down_to_what_scores_expect_where_nothing_was_met():
    strata, score = np.array([0, 0, 0, 1, 1]), np.array([0.1, 0.2, 0.3, 0.6, 0.7])
    called = np.array([False, False, False, False, True])
    history = History(5, (Batch(np.array([0, 3])),), {0: 0, 3: 1})
    expected = np.exp(-0.1) * np.array([0, 0.2, 0.3, 0, 0])  # stratum 1 has met the class
    np.testing.assert_allclose(unmet_scores(history, strata, score, called, 1), expected)
    pool = altmas.Pool(None, np.array([0, 1] * 10), classes=[0, 1])
    f1, precision = metric_set(["f1[1]", "precision[1]"], pool)
    table = np.array([[90.0, 4.0], [2.0, 8.0]])
    assert fall_of(f1, table, 1, np.array([3.0, 0.0])) == pytest.approx(8 / 11 - 8 / 12.5)
    assert fall_of(precision, table, 1, np.array([3.0, 0.0])) == 0  # it does not care for points that are not called so


@pytest.mark.parametrize("name", ["sawade", "druck", "stratified", "paula", "adastrat"])
def test_members_of_a_class_that_the_scores_expect_and_nobody_met_are_in_the_interval(name):
    """40 of 60 members of a class have scores of 0.02: the scores expect them, and 60 draws meet hardly one.

    Recall is 1/3, and the interval reaches down to it in most of ten runs.
    """
    score = np.concatenate([np.full(20, 0.97), np.full(1980, 0.02)])
    truth = np.concatenate([np.ones(60), np.zeros(1940)]).astype(int)
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(2000)
    score, truth = np.clip(score + 0.005 * rng.random(2000), 0, 1)[shuffled], truth[shuffled]
    pool = altmas.Pool(None, score > 0.5, scores=np.stack([1 - score, score], 1), classes=[False, True])
    metrics = metric_set(["recall[True]"], pool)
    held = 0
    for seed in range(10):
        task = Task(pool, metrics, seed=seed)
        history = label_until(method_named(name), task, History(2000), 60, 20, truth.__getitem__)
        one = method_named(name).estimate(task, history)[0]
        held += one.low <= 1 / 3 <= one.high
        expected = expected_hidden(task, history, 1, np.ones(2000, bool))
        assert expected[1] == 0 and 0 <= expected[0] <= 60
    assert held >= 6


def test_precision_is_exact_once_all_that_is_called_so_is_labelled():
    """paula labels the whole head of its ranking: nothing else moves the precision of these points."""
    pool, truth = world()
    np.testing.assert_array_equal(rows_that_move(metric_set(["precision[2]"], pool)[0], 3), [False, False, True])
    assert rows_that_move(metric_set(["recall[2]"], pool)[0], 3).all()
    score = pool.scores[:, 2]
    top = score >= np.sort(score)[-15]
    few = altmas.Pool(None, np.where(top, 2, 0), scores=pool.scores, classes=[0, 1, 2])
    task = Task(few, metric_set(["precision[2]"], few), seed=1)
    history = label_until(method_named("paula"), task, History(N), 200, 40, truth.__getitem__)
    one = method_named("paula").estimate(task, history)[0]
    assert (one.low, one.value, one.high) == pytest.approx((float((truth[top] == 2).mean()),) * 3)
    assert one.note == "every point that moves precision[2] is labelled: exact"


def test_the_spread_of_strata_follows_one_curve_of_the_error_rate():
    """Errors at low confidence only: spreads fall with it, and no stratum without an error has none."""
    rng = np.random.default_rng(0)
    confidence = np.sort(rng.uniform(0.5, 0.999, 1000))
    strata = np.arange(1000) // 100
    rows = rng.permutation(1000)[:200]
    wrong = rng.random(200) < 0.6 * (1 - confidence[rows])
    spreads = expected_spreads(confidence, strata, rows, wrong)
    assert (np.diff(spreads) < 0).all() and 0 < spreads[-1] < spreads[0] / 2 < 0.25
    none = expected_spreads(confidence, strata, rows, np.zeros(200, bool))
    assert 0 < none.min() and none.max() < 0.3


@pytest.mark.parametrize("name", OF_ALL)
def test_labels_without_an_error_do_not_give_certainty(name):
    pool, _ = world()
    task = Task(pool, metric_set(["accuracy"], pool), seed=2)
    method = method_named(name)
    history = label_until(method, task, History(N), 60, 20, lambda row: int(pool.predictions[row]))
    one = method.estimate(task, history)[0]
    assert one.value == pytest.approx(1)
    assert one.low < 0.99


@pytest.mark.parametrize("name", RELATED)
def test_it_starts_from_nothing_and_from_one_label(name):
    pool, truth = world()
    task = Task(pool, metric_set(names_for(name), pool), seed=2)
    method = method_named(name)
    for one in method.estimate(task, History(N)):
        assert np.isnan(one.value) and "no label yet" in one.note
    history = label_until(method, task, History(N), 1, 1, truth.__getitem__)
    for one in method.estimate(task, history):
        assert np.isnan(one.value) or one.low <= one.value <= one.high


# ---------------------------------------------------------------- labels that were not drawn, and skips


@pytest.mark.parametrize("name", RELATED)
def test_volunteered_labels_are_exact_and_never_weighted(name):
    """All wrong answers are volunteered beforehand: what is drawn from the rest is right, so nothing is unsure."""
    pool, truth = world()
    method = method_named(name)
    metrics = metric_set(["precision[2]"] if name == "oasis" else ["accuracy"], pool)
    wrong = np.flatnonzero(pool.predictions != truth)
    told = {int(row): int(truth[row]) for row in wrong}
    task = Task(pool, metrics, seed=4)
    history = label_until(method, task, History(N, (), told), len(told) + 80, 40, truth.__getitem__)
    one, exact = method.estimate(task, history)[0], truth_values(pool, truth, metrics)
    if name == "oasis":  # the number of points called 2 is estimated as well
        assert one.low <= exact[one.metric] <= one.high
    else:
        assert one.value == pytest.approx(exact[one.metric], abs=1e-9)
    drawn = set(history.drawn.tolist())
    assert not drawn & set(told)


@pytest.mark.parametrize("name", RELATED)
def test_skipped_points_are_left_out_with_a_note(name):
    pool, truth = world()
    method = method_named(name)
    task = Task(pool, metric_set(names_for(name), pool), seed=4)
    history = label_until(method, task, History(N), 80, 40, truth.__getitem__)
    batch = method.propose(task, history, 20)
    labels = {**history.labels, **{int(i): int(truth[i]) for i in batch.indices[5:]}}
    skipped = {int(i): "blurred" for i in batch.indices[:5]}
    after = History(N, (*history.batches, batch), labels, skipped)
    for one in method.estimate(task, after):
        assert "5 skipped points left out" in one.note
        assert one.low <= one.value <= one.high
    again = method.propose(task, after, 30)
    assert not set(again.indices.tolist()) & set(skipped)


# ---------------------------------------------------------------- at creation: what works and what does not


@pytest.mark.parametrize(
    ("name", "given", "metrics", "said"),
    [
        ("stratified", "nothing", ["accuracy"], "needs scores or features.*methods that work without: .*tradition"),
        ("sawade", "nothing", ["accuracy"], "needs scores or features.*methods that work without: .*tradition"),
        ("katariya", "scores", ["accuracy"], "needs features.*methods that work without: .*stratified"),
        ("spe", "features", ["accuracy"], "needs scores.*methods that work without: .*lure"),
        ("paula", "scores", ["accuracy", "macro_f1"], "cannot estimate .*macro_f1.*methods that can: .*druck"),
        (
            "adastrat",
            "scores",
            ["precision[0]", "recall[1]"],
            "works on one class at a time.*methods that can: .*sawade",
        ),
        ("oasis", "scores", ["accuracy"], "cannot estimate .*accuracy.*f1, fbeta, precision, recall.*methods that can"),
        ("oasis", "scores", ["f1[0]", "f1[1]"], "works on one class at a time.*methods that can: .*sawade"),
    ],
)
def test_wrong_inputs_are_named_when_the_session_is_created(name, given, metrics, said):
    pool, truth = world()
    bare = altmas.Pool(
        pool.features if given == "features" else None,
        pool.predictions,
        scores=pool.scores if given == "scores" else None,
        classes=[0, 1, 2],
    )
    with pytest.raises(MethodError, match=f"'{name}' {said}"):
        altmas.Session.create(None, bare, metrics=metrics, method=name)
    with pytest.raises(MethodError, match=f"'{name}'"):
        altmas.simulate(bare, truth, methods=[name], metrics=metrics, budgets=[50], repeats=1, n_jobs=1, progress=False)


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(MethodError, match="cut 'quantile' does not exist; expected one of equal-size"):
        Stratified(cut="quantile")
    with pytest.raises(MethodError, match="allocation 'best'"):
        altmas.methods.Druck(allocation="best")


def test_metrics_are_checked_only_where_they_are_given():
    pool, _ = world()
    check(method_named("oasis"), pool)


# ---------------------------------------------------------------- sessions


@pytest.mark.parametrize("name", RELATED)
def test_a_session_goes_on_from_its_file_as_if_never_closed(name, tmp_path):
    pool, truth = world()
    metrics = names_for(name)
    path = tmp_path / "one.altmas"
    with altmas.Session.create(path, pool, metrics=metrics, method=name, seed=5) as session:
        for _ in range(4):
            session.tell({query.id: int(truth[query.index]) for query in session.ask(15)})
        before, asked = session.estimate().to_dict(), [query.index for query in session.ask(10)]
    with altmas.Session.open(path) as session:
        assert session.estimate().to_dict() == before
        assert [query.index for query in session.ask(10)] == asked


@pytest.mark.parametrize("name", ["paula", "adastrat"])
def test_rankings_give_a_curve_that_contains_the_truth(name):
    """40 runs of 200 labels: the band of precision along the ranking holds at 9 of 10 ranks below the head."""
    pool, truth = world()
    metrics = metric_set(["precision[2]", "recall[2]"], pool)
    order = np.argsort(-pool.scores[:, 2], kind="stable")
    p = np.cumsum(truth[order] == 2) / np.arange(1, N + 1)
    held = []
    for seed in range(40):
        task = Task(pool, metrics, seed=seed)
        history = label_until(method_named(name), task, History(N), 200, 40, truth.__getitem__)
        curve = method_named(name).estimate(task, history).info["curve"]
        assert curve["by"] == "score of 2" and curve["rank"][-1] == N
        held += [
            low <= p[r - 1] <= high for r, low, high in zip(*(curve[k] for k in ("rank", "low", "high")), strict=True)
        ]
    assert np.mean(held) > 0.9


# ---------------------------------------------------------------- inclusion with known probabilities


def test_water_filling_adds_up_and_never_exceeds_one():
    sizes = np.array([10.0, 1, 1, 1, 1, 0])
    chances = water_filled(sizes, 3)
    assert chances.sum() == pytest.approx(3) and chances.max() <= 1
    assert chances[0] == 1 and chances[1] == pytest.approx(chances[4])
    np.testing.assert_allclose(water_filled(np.zeros(4), 2), 0.5)


def test_systematic_samples_include_each_point_with_its_probability():
    rng = np.random.default_rng(0)
    inclusion = water_filled(rng.uniform(0.1, 2, 30), 8)
    seen = np.zeros(30)
    for _ in range(4000):
        rows = systematic(inclusion, np.arange(30) % 5, 8, rng)
        assert len(set(rows.tolist())) == 8
        seen[rows] += 1
    np.testing.assert_allclose(seen / 4000, inclusion, atol=4 * 0.5 / np.sqrt(4000))
