"""Draws of whole groups: exact chances, terms and bounds by group, and what people do to a group that is asked for."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import altmas
from altmas.errors import MethodError
from altmas.history import Batch, History
from altmas.intervals import Tails, largest_unseen
from altmas.methods import Assured, Tradition
from altmas.methods.assured.ahead import ahead_of
from altmas.methods.assured.belief import folds_of
from altmas.methods.assured.linearised import Estimators
from altmas.methods.assured.stages import StageDesign, begin, next_of_groups, stages_of
from altmas.methods.assured.whole_groups import (
    LEAST_OF_STAGE,
    believed_of_groups,
    come_together,
    group_sizes,
    groups_planned,
    heads,
    numbered,
    points_at_once,
)
from altmas.metrics import metric_set
from altmas.simulate import label_until
from altmas.task import Task
from assured_world import constant_belief
from groups_world import grouped_world, runs

CHEAP = Assured(belief=constant_belief)
BOTH = pytest.mark.parametrize("method", [CHEAP, Tradition()], ids=["assured", "tradition"])

# ---------------------------------------------------------------- the design, slowly


U = np.array([0.5, 1.0, 1.6, 2.2])
M = np.array([3, 1, 4, 2])


def samples_with(most_groups: int, most_points: int):
    """(sample, next group) of every outcome of a race among four groups, under both limits."""
    for size in range(5):
        for sample in combinations(range(4), size):
            if len(sample) > most_groups or M[list(sample)].sum() > most_points:
                continue
            for following in set(range(4)) - set(sample):
                if len(sample) == most_groups or M[list(sample)].sum() + M[following] > most_points:
                    yield list(sample), following


@pytest.mark.parametrize("most_groups, most_points", [(2, 99), (3, 99), (4, 4), (4, 5), (4, 6), (3, 8), (2, 6)])
def test_over_all_outcomes_of_a_race_group_estimates_are_unbiased_with_uncorrelated_terms(most_groups, most_points):
    """(U1) by quadrature: with a number of groups, or of points, that is given, both limits together too."""
    t = (np.arange(400_000) + 0.5) * 1e-4
    chance = 1 - np.exp(-np.outer(U, t))
    expected, products, all_chance = np.zeros(4), np.zeros((4, 4)), 0.0
    for sample, following in samples_with(most_groups, most_points):
        others = [g for g in range(4) if g not in sample and g != following]
        density = U[following] * np.exp(-(U[following] + U[others].sum()) * t) * chance[sample].prod(0) * 1e-4
        all_chance += density.sum()
        for g in sample:
            expected[g] += (density / chance[g]).sum()
            for h in sample:
                if g != h:
                    products[g, h] += (density / chance[g] / chance[h]).sum()
    assert all_chance == pytest.approx(1, abs=1e-4)
    possible = [g for g in range(4) if M[g] <= most_points]
    np.testing.assert_allclose(expected[possible], 1, atol=2e-3)
    for g, h in combinations(possible, 2):
        if most_groups >= 2 and M[g] + M[h] <= most_points:
            assert products[g, h] == pytest.approx(1, abs=2e-3)


GROUP = np.array([0, 1, 0, 2, 2, 0, 3, 2, 2, 3, 4, 5, 5])
DESIGN = StageDesign(np.linspace(0.5, 2, len(GROUP)), np.ones(1))


def drawn(n: int, seed: int, history: History | None = None) -> History:
    history = History(len(GROUP)) if history is None else history
    stage, record = begin(DESIGN, history, seed, None, GROUP, 4)
    rows = stage.next_points(history.open, n)
    return replace(history, batches=(*history.batches, Batch(rows, stage.draw_chances(rows), record)))


def told(history: History, rows, code: int = 0) -> History:
    return replace(history, labels={**history.labels, **{int(row): code for row in rows}})


def order_of(stage) -> list[list[int]]:
    """The groups in the order of their times, each as its rows."""
    order = sorted(set(GROUP[stage.population].tolist()), key=lambda g: stage.times[GROUP == g].min())
    return [np.flatnonzero((GROUP == g) & stage.population).tolist() for g in order]


def test_all_points_of_a_group_have_one_size_and_one_time_and_come_in_their_own_order():
    for seed in range(20):
        stage, record = begin(DESIGN, History(len(GROUP)), seed, None, GROUP, 4)
        for g in range(6):
            assert len(set(stage.times[GROUP == g])) == len(set(stage.sizes[GROUP == g])) == 1
        flat = [row for group in order_of(stage) for row in group]
        for n in range(len(GROUP) + 1):
            assert stage.next_points(np.ones(len(GROUP), bool), n).tolist() == flat[:n]
        assert record["groups"].tolist() == [LEAST_OF_STAGE]


def test_the_chance_of_a_draw_is_that_of_its_group_among_those_left():
    stage, _ = begin(DESIGN, History(len(GROUP)), 3, None, GROUP, 4)
    rows, left = stage.next_points(np.ones(len(GROUP), bool), len(GROUP)), set(range(6))
    chances = dict(zip(rows.tolist(), stage.draw_chances(rows).tolist(), strict=True))
    for group in order_of(stage):
        total = sum(stage.sizes[GROUP == g][0] for g in left)
        assert [chances[row] for row in group] == pytest.approx([stage.sizes[group[0]] / total] * len(group))
        left.remove(GROUP[group[0]])


def test_the_sample_is_the_longest_prefix_of_groups_that_are_answered_whole():
    """Against a walk along the groups, with answers in any order."""
    rng = np.random.default_rng(0)
    for seed in range(60):
        asked = drawn(int(rng.integers(3, 13)), seed)
        answers = rng.permutation(asked.drawn)[: int(rng.integers(0, len(asked.drawn) + 1))]
        history = told(asked, answers)
        (stage,) = stages_of(history, GROUP)
        sample, threshold = [], np.inf
        for group in order_of(stage):
            if not set(group) <= set(answers.tolist()):
                threshold = stage.times[group[0]]
                break
            sample += group
        assert sorted(stage.used.tolist()) == sorted(sample)
        if np.isfinite(threshold):
            assert stage.threshold == threshold
            np.testing.assert_allclose(stage.chances, 1 - np.exp(-stage.sizes * threshold))


def test_a_log_of_groups_is_not_read_without_them():
    with pytest.raises(MethodError, match="the pool has no groups"):
        stages_of(drawn(4, 0))


def test_sizes_are_those_of_residuals_that_come_together_over_the_root_of_the_cost():
    sizes, free = np.linspace(0.5, 2, len(GROUP)), np.arange(len(GROUP)) != 2
    found = group_sizes(sizes, GROUP, free)
    for g in range(6):
        rows = np.flatnonzero((GROUP == g) & free)
        np.testing.assert_allclose(found[GROUP == g], sizes[rows].sum() / np.sqrt(len(rows)))
    assert group_sizes(sizes, GROUP, GROUP != 4)[GROUP == 4].tolist() == [1.0]
    units = np.repeat(np.arange(50), 4)
    assert groups_planned(np.ones(200), units, np.ones(200, bool), 100) == 25
    assert groups_planned(np.ones(200), units, np.ones(200, bool), 8) == LEAST_OF_STAGE
    assert heads(np.array([5, 3, 0, 1]), GROUP).tolist() == [5, 3, 1]


def test_no_fold_splits_a_group():
    units = np.random.default_rng(0).integers(0, 40, 300)
    folds = folds_of([slice(0, 300)], 7, units)
    assert all(len(set(folds[units == g].tolist())) == 1 for g in set(units.tolist()))
    assert len(set(folds.tolist())) == 10
    np.testing.assert_array_equal(folds_of(300, 7, np.arange(300)), folds_of(300, 7))


def test_a_stage_ends_with_a_group_and_has_as_many_as_were_planned():
    units = np.repeat(np.arange(60), 3)
    history, sizes = History(180), np.ones(180)
    stage, record = begin(StageDesign(sizes, np.ones(1)), history, 0, None, units, 40)
    planned = stage.planned
    assert planned == 14
    rows = stage.next_points(history.open, 5)
    history = told(replace(history, batches=(Batch(rows, None, record),)), rows)
    while len(rows := next_of_groups(history, units, 5)):
        history = told(replace(history, batches=(*history.batches, Batch(rows))), rows)
    assert len(history.labels) == 3 * planned
    ahead = replace(history, labels={row: 0 for row in list(history.labels)[:-1]})
    more = next_of_groups(ahead, units, 4)  # an answer is missing: it goes on, and a group that was begun is finished
    assert len(more) == 4
    ahead = told(replace(ahead, batches=(*ahead.batches, Batch(more))), history.drawn)
    left = next_of_groups(ahead, units, 10)
    assert len(left) == 2 and len({*units[more[3:]].tolist(), *units[left].tolist()}) == 1


# ---------------------------------------------------------------- terms and bounds by group


def estimator_of(metric: str = "accuracy", n: int = 120, **options):
    pool, truth = grouped_world(groups=50, largest=8, seed=4, **options)
    task = Task(pool, metric_set([metric], pool), draw="groups")
    history = label_until(CHEAP, task, History(len(pool)), n, 10, truth.__getitem__)
    samples = CHEAP._samples(task, history, stages_of(history, pool.group))
    return Estimators(samples, task, history), task


def test_the_variance_is_that_of_sums_over_groups():
    """(U3) by a loop over groups."""
    among, task = estimator_of()
    linear, estimator = among.linearised(task.metrics[0], Tails(3.7, 3.7)), among(None)
    total, terms = 0.0, []
    for part in estimator.parts:
        roots, groups = part.centred(residuals(estimator, part)), task.pool.group[part.rows]
        terms += [roots[groups == g].sum() for g in set(groups.tolist())]
        total += sum((roots[groups == g] ** 2).sum() for g in set(groups.tolist()))
    assert linear.groups[0].shown == pytest.approx(sum(term**2 for term in terms))
    assert linear.groups[0].shown > 2 * total  # errors come together in this pool
    assert linear.together.drawn == pytest.approx(linear.groups[0].shown - total)
    assert linear.groups[0].worth == pytest.approx(sum(term**2 for term in terms) ** 2 / sum(term**4 for term in terms))
    assert linear.effective_labels() < 0.6 * linear.labels


def residuals(estimator, part):
    right = estimator.known[part.rows] == estimator.predictions[part.rows]
    return (right - part.belief.agree[part.rows]) / len(estimator.known)


def test_a_stage_counts_by_its_groups_and_not_by_which_of_them_were_drawn():
    """n_s of (U6) by hand; on a slice with the items of each group that are in it; all of them once it is complete."""
    among, task = estimator_of()
    groups, sample = task.pool.group, among.samples[0]
    stage, half = sample.stage, task.pool.slices["half"] == "a"
    for inside in (np.ones(len(groups), bool), half):
        open_ = stage.population & inside
        members = {g: int((open_ & (groups == g)).sum()) for g in range(50)}
        size = {g: stage.sizes[groups == g][0] for g in range(50)}
        mean = sum(size[g] * m for g, m in members.items()) / sum(size[g] for g, m in members.items() if m)
        drawn = len(set(groups[sample.rows[inside[sample.rows]]].tolist()))
        counted, points = sample.answers_in(inside)
        assert counted == pytest.approx(drawn * mean) and points == (stage.population & inside).sum()
    whole = replace(sample, stage=replace(stage, used=np.flatnonzero(stage.population)))
    assert whole.answers_in(np.ones(len(groups), bool)) == (stage.population.sum(), stage.population.sum())


def test_what_stayed_unseen_is_a_set_of_whole_groups():
    """(U5): gains are added over a group, whose exposure counts once."""
    among, task = estimator_of()
    estimator, tail = among(None), 3.7
    linear = among.linearised(task.metrics[0], Tails(tail, tail))
    groups, n = task.pool.group, len(task.pool)
    left = [g for g in range(50) if (estimator.known[groups == g] < 0).any()]
    gains = np.array([(estimator.belief.agree * estimator.unlabelled)[groups == g].sum() / n for g in left])
    hazard, draws = np.zeros(len(left)), 0
    for sample in estimator.samples:
        stage, order = sample.stage, dict.fromkeys(groups[sample.stage.used].tolist())
        size = {g: stage.sizes[groups == g][0] for g in range(50)}
        open_ = {g: size[g] for g in range(50) if (stage.population & (groups == g)).any()}
        reached = 0.0
        for g in order:
            reached += 1 / sum(open_.values())
            del open_[g]
        hazard += [size[g] * reached for g in left]
        draws += len(order)
    assert linear.groups[0].unseen_low == pytest.approx(largest_unseen(gains, hazard, tail, draws))
    assert linear.groups[0].unseen_low > tail / linear.drawn  # more than single items would hide


def test_how_far_residuals_come_together_is_told_apart():
    rng = np.random.default_rng(1)
    units = np.repeat(np.arange(400), 6)
    v = np.full(2400, 0.09)
    alone = np.where(rng.random(2400) < 0.1, -0.9, 0.1)
    together = np.where(rng.random(400) < 0.1, -0.9, 0.1)[units]
    assert come_together(alone, v, units, 1.0) < 0.15
    assert come_together(together, v, units, 1.0) > 0.8
    assert come_together(np.full(60, 0.1), v[:60], units[:60], 1.0) == 1.0  # no error yet: nobody knows
    one = np.full(60, 0.1)
    one[3] = -0.9
    assert come_together(one, v[:60], units[:60], 1.0) == pytest.approx(np.exp(-1 / 3))


def test_believed_moments_of_groups_lie_between_alone_and_together():
    units, v = np.array([0, 0, 1, 1, 1]), np.array([0.04, 0.09, 0.01, 0.01, 0.16])
    assert believed_of_groups(v, units, 0.0, 2) == pytest.approx(v.sum())
    assert believed_of_groups(v, units, 1.0, 2) == pytest.approx(0.5**2 + 0.6**2)
    assert believed_of_groups(-v, units, 1.0, 3) == pytest.approx(
        -sum(np.cbrt(v[units == g]).sum() ** 3 for g in (0, 1))
    )
    assert points_at_once(units, 0.0) == 1 and points_at_once(units, 1.0) == pytest.approx((4 + 9) / 5)
    assert numbered([np.array([0, 0, 1]), np.array([0, 1])]).tolist() == [0, 0, 1, 2, 3]


def test_groups_of_one_item_give_the_estimates_of_single_items():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 400)
    predictions = np.where(rng.random(400) < 0.15, 1 - truth, truth)
    pool = altmas.Pool(None, predictions, classes=[0, 1], group=np.arange(400))
    metrics = metric_set(["accuracy", "recall[1]"], pool)
    found = {}
    for draw in ("items", "groups"):
        task = Task(pool, metrics, draw=draw)
        history = label_until(Assured(), task, History(400), 120, 10, truth.__getitem__)
        found[draw] = Assured().estimate(task, history)
    for single, group in zip(found["items"], found["groups"], strict=True):
        assert group.value == pytest.approx(single.value)
        assert single.low - 0.03 < group.low <= single.low + 1e-9 and single.high - 1e-9 <= group.high


# ---------------------------------------------------------------- coverage


@BOTH
def test_intervals_cover_where_errors_come_as_whole_groups(method):
    """95 % intervals of 80 sessions, at least 88 % of which cover (four standard errors below would be 85 %)."""
    pool, truth = grouped_world(groups=90, largest=12, accuracy=0.85, seed=1)
    figures = runs(pool, truth, method, n=150, repeats=80, metrics=("accuracy", "recall[1]"))
    for metric in figures.values():
        assert metric["coverage"] >= 0.88 and metric["defined"] == 1
        assert abs(metric["bias"]) < 3.5 * metric["bias_error"] + 0.1 * metric["rmse"]


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize(
    "world",
    [
        {"accuracy": 0.9},
        {"accuracy": 0.98},
        {"accuracy": 0.9, "together": 0.0},
        {"accuracy": 0.9, "together": 0.5},
        {"accuracy": 0.85, "by_size": True},
        {"accuracy": 0.9, "groups": 30, "largest": 10},
    ],
    ids=lambda world: " ".join(f"{name}={value}" for name, value in world.items()),
)
def test_intervals_cover_on_pools_in_groups(method, world):
    """95 % intervals of 200 sessions: at least 92 % cover, and no bias beyond 0.1 RMSE and three standard errors.

    `tradition` has no interval with fewer than five groups, as with an eighth of the smallest pool.
    """
    pool, truth = grouped_world(**{"groups": 150, "seed": 1} | world)
    for n in (len(pool) // 8, len(pool) // 3):
        figures = runs(pool, truth, method, n=n, repeats=200, metrics=("accuracy", "recall[1]", "accuracy@half=a"))
        for name, metric in figures.items():
            if metric["defined"] < 0.5:
                assert isinstance(method, Tradition) and len(pool) < 200
                continue
            assert metric["coverage"] >= 0.92, (n, name, metric)
            assert abs(metric["bias"]) < 3 * metric["bias_error"] + 0.1 * metric["rmse"], (n, name, metric)


@pytest.mark.slow
def test_intervals_cover_with_the_belief_of_the_method():
    """Features that tell which groups are wrong: the built-in belief, whose folds split no group."""
    pool, truth = grouped_world(groups=120, largest=10, accuracy=0.85, seed=7, features=True)
    figures = runs(pool, truth, Assured(), n=200, repeats=150)["accuracy"]
    assert figures["coverage"] >= 0.92
    assert abs(figures["bias"]) < 3 * figures["bias_error"] + 0.1 * figures["rmse"]


@pytest.mark.parametrize("repeats, least", [(60, 0.87), pytest.param(400, 0.92, marks=pytest.mark.slow)])
@BOTH
def test_intervals_about_data_to_come_cover(method, repeats, least):
    """Pools made anew each time: 95 % intervals are to cover the accuracy that groups have on average."""
    accuracy, covered = 0.85, []
    for seed in range(repeats):
        pool, truth = grouped_world(groups=80, largest=8, accuracy=accuracy, seed=1000 + seed)
        task = Task(pool, metric_set(["accuracy"], pool), seed=seed, draw="groups", about="future")
        history = label_until(method, task, History(len(pool)), 150, 10, truth.__getitem__)
        (estimate,) = method.estimate(task, history)
        covered.append(estimate.low <= accuracy <= estimate.high)
    assert np.mean(covered) >= least


def test_data_to_come_are_no_narrower_than_the_pool_and_count_a_drawn_group_once():
    """(U7): with whole groups drawn the cluster-robust variance must not count their draw a second time."""
    ratios = []
    for seed in range(12):
        pool, truth = grouped_world(groups=80, largest=8, accuracy=0.85, seed=seed)
        task = Task(pool, metric_set(["accuracy"], pool), seed=seed, draw="groups")
        history = label_until(CHEAP, task, History(len(pool)), 150, 10, truth.__getitem__)
        (near,), (far,) = (CHEAP.estimate(replace(task, about=about), history) for about in ("pool", "future"))
        assert far.high - far.low >= near.high - near.low - 1e-9
        linear = linear_of(task, history)
        spread = ahead_of(linear, 3.7).evidence.variance
        ratios.append(spread / (linear.groups[0].shown * 150 / len(pool)))
    assert 0.5 < np.median(ratios) < 2.5  # F is about the share of labelled points times the variance of the draws


def linear_of(task: Task, history: History):
    samples = CHEAP._samples(task, history, stages_of(history, task.pool.group))
    return Estimators(samples, task, history).linearised(task.metrics[0], Tails(3.7, 3.7))
