"""Draws of whole groups: exact chances, terms and bounds by group, and what people do to a group that is asked for."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import altmas
from altmas.errors import MethodError, PlanError, PoolError
from altmas.history import Batch, History
from altmas.intervals import largest_unseen
from altmas.methods import METHODS, Assured, Tradition
from altmas.methods.assured.ahead import ahead_of
from altmas.methods.assured.belief import folds_of
from altmas.methods.assured.linearised import Estimators
from altmas.methods.assured.stages import begin, next_of_groups, stages_of
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
from altmas.methods.draws import answered_whole
from altmas.metrics import metric_set
from altmas.planning import plan_widths
from altmas.session.plan import Plan
from altmas.simulate import label_until
from altmas.task import Task
from assured_world import constant_belief
from cli_world import run
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


def drawn(n: int, seed: int, history: History | None = None) -> History:
    history = History(len(GROUP)) if history is None else history
    stage, record = begin(np.linspace(0.5, 2, len(GROUP)), 1.0, history, seed, None, GROUP, 4)
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
        stage, record = begin(np.linspace(0.5, 2, len(GROUP)), 1.0, History(len(GROUP)), seed, None, GROUP, 4)
        for g in range(6):
            assert len(set(stage.times[GROUP == g])) == len(set(stage.sizes[GROUP == g])) == 1
        flat = [row for group in order_of(stage) for row in group]
        for n in range(len(GROUP) + 1):
            assert stage.next_points(np.ones(len(GROUP), bool), n).tolist() == flat[:n]
        assert record["groups"].tolist() == [LEAST_OF_STAGE]


def test_the_chance_of_a_draw_is_that_of_its_group_among_those_left():
    stage, _ = begin(np.linspace(0.5, 2, len(GROUP)), 1.0, History(len(GROUP)), 3, None, GROUP, 4)
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
    stage, record = begin(sizes, 1.0, history, 0, None, units, 40)
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
    linear, estimator = among.linearised(task.metrics[0], 3.7), among(None)
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
        assert sample.labels_in(None if inside.all() else inside) == pytest.approx(drawn * mean)
    whole = replace(sample, rows=np.flatnonzero(stage.population))
    assert whole.labels_in() == stage.population.sum()


def test_what_stayed_unseen_is_a_set_of_whole_groups():
    """(U5): gains are added over a group, whose exposure counts once."""
    among, task = estimator_of()
    estimator, tail = among(None), 3.7
    linear = among.linearised(task.metrics[0], tail)
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


# ---------------------------------------------------------------- what people do


def session_of(method, n: int = 60, **options):
    pool, truth = grouped_world(groups=40, largest=6, accuracy=0.8, together=0.5, seed=2)
    session = altmas.Session.create(None, pool, method=method, draw="groups", **options)
    for query in session.ask(n) if n else ():
        session.tell(query.id, truth[int(query.id)])
    return session, pool, truth


def numbers(session) -> list[float]:
    (estimate,) = session.estimate()
    return [estimate.value, estimate.low, estimate.high, estimate.effective_labels]


@BOTH
def test_items_that_wait_move_nothing(method):
    session, _, _ = session_of(method)
    before = numbers(session)
    session.ask(1)
    session.ask(25)
    assert numbers(session) == before


@BOTH
def test_a_short_ask_gives_part_of_a_group_and_the_next_one_the_rest(method):
    one, pool, truth = session_of(method, 0)
    asked = []
    while len(asked) < 40:
        (query,) = one.ask(1)
        asked.append(int(query.id))
        one.tell(query.id, truth[int(query.id)])
    groups = pool.group[asked]
    met = list(dict.fromkeys(groups.tolist()))
    assert groups.tolist() == sorted(groups.tolist(), key=met.index)  # never back to a group, never two at once
    for g in met[:-1]:
        assert sorted(np.array(asked)[groups == g].tolist()) == np.flatnonzero(pool.group == g).tolist()


@BOTH
def test_a_group_counts_once_all_of_its_items_are_answered_in_whatever_order(method):
    session, pool, truth = session_of(method, 50)
    rows = [int(query.id) for query in session.ask(40)]
    forward, backward = (altmas.Session.create(None, pool, method=method, draw="groups") for _ in range(2))
    for other, order in ((forward, rows), (backward, rows[::-1])):
        for query in other.ask(50):
            other.tell(query.id, truth[int(query.id)])
        assert [int(query.id) for query in other.ask(40)] == rows
        for row in order:
            other.tell(row, truth[row])
    assert numbers(forward) == pytest.approx(numbers(backward))
    last = [row for row in rows if pool.group[row] == pool.group[rows[0]]]
    before = numbers(session)
    for row in last[:-1]:
        session.tell(row, truth[row])
        if set(np.flatnonzero(pool.group == pool.group[row])) - session.history.labels.keys():
            assert numbers(session)[0] == before[0]  # part of a group moves no estimate


@BOTH
def test_a_label_taken_back_ends_the_sample_before_its_group(method):
    session, _, truth = session_of(method, 0)
    rows = [int(query.id) for query in session.ask(60)]
    row = rows[20]
    for other in [*rows[:20], *rows[21:], row]:
        session.tell(other, truth[other])
    before, counted = numbers(session), stages_or_labels(session, method)
    session.undo()
    assert row not in session.history.labels
    assert stages_or_labels(session, method) <= 20 < counted and numbers(session) != before
    session.tell(row, truth[row])
    assert numbers(session) == pytest.approx(before)


def stages_or_labels(session, method) -> int:
    """How many labels are in the sample."""
    groups = session.pool.group
    if isinstance(method, Tradition):
        return len(answered_whole(session.history, groups).labels)
    return sum(len(stage.used) for stage in stages_of(session.history, groups))


@BOTH
def test_a_skip_is_an_answer_of_its_group(method):
    session, pool, truth = session_of(method, 0)
    rows = [int(query.id) for query in session.ask(60)]
    for place, row in enumerate(rows):
        session.skip(row, "unreadable") if place == 3 else session.tell(row, truth[row])
    whole = {g for g in pool.group[rows].tolist() if set(np.flatnonzero(pool.group == g)) <= set(rows)}
    in_sample = sum(int(pool.group[row] in whole) for place, row in enumerate(rows) if place != 3)
    counted = stages_or_labels(session, method)
    assert counted - in_sample in (0, 1)  # `used` of assured holds the skipped point too
    assert np.isfinite(numbers(session)[0])


@BOTH
def test_a_volunteered_label_in_the_middle_of_a_group_does_not_hold_it_up(method):
    session, pool, truth = session_of(method, 30)
    counts = np.bincount(pool.group)
    asked = [int(query.id) for query in session.ask(1)]
    while counts[pool.group[asked[-1]]] < 3 or (pool.group[session.history.drawn[:-1]] == pool.group[asked[-1]]).any():
        session.tell(asked[-1], truth[asked[-1]])
        asked += [int(query.id) for query in session.ask(1)]
    own = np.flatnonzero(pool.group == pool.group[asked[-1]])
    volunteered = int(own[-1])
    session.tell(volunteered, truth[volunteered])
    session.tell(asked[-1], truth[asked[-1]])
    for _ in range(len(own) - 2):
        (query,) = session.ask(1)
        assert int(query.id) in own and int(query.id) != volunteered
        session.tell(query.id, truth[int(query.id)])
    (following,) = session.ask(1)
    assert int(following.id) not in own
    assert np.isfinite(numbers(session)[:3]).all()


@BOTH
def test_with_every_label_it_is_exact(method):
    session, pool, truth = session_of(method, 400)
    (estimate,) = session.estimate()
    assert estimate.low == estimate.value == estimate.high == pytest.approx((pool.predictions == truth).mean())


@BOTH
def test_before_a_group_is_whole_there_is_no_number(method):
    session, pool, truth = session_of(method, 0)
    asked = session.ask(6)
    g = next(g for g in pool.group[[int(q.id) for q in asked]] if np.bincount(pool.group)[g] > 1)
    row = int(next(q.id for q in asked if pool.group[int(q.id)] == g))
    session.tell(row, truth[row])
    (estimate,) = session.estimate()
    assert np.isnan(estimate.value) and "no group is answered whole yet" in estimate.note


def test_a_point_left_open_counts_with_its_group():
    """(V13): what was told of the group is known, the rest may be anything."""
    session, pool, truth = session_of(CHEAP, 0)
    rows = [int(query.id) for query in session.ask(80)]
    counts = np.bincount(pool.group)
    place = next(place for place in range(30, 60) if counts[pool.group[rows[place]]] > 2)
    for row in rows:
        if row != rows[place]:
            session.tell(row, truth[row])
    samples = CHEAP._samples(session.task, session.history, stages_of(session.history, pool.group))
    linear = Estimators(samples, session.task, session.history).linearised(session.task.metrics[0], 3.7)
    (part,) = linear.estimator.parts
    group, scale = part.left_open
    assert group.tolist() == np.flatnonzero(pool.group == pool.group[rows[place]]).tolist()
    believed = part.belief.agree[group]
    known = np.where(group == rows[place], 0.0, truth[group] == pool.predictions[group])
    down = max((believed - known).sum(), 0) * scale / len(pool)
    up = max((np.where(group == rows[place], 1.0, known) - believed).sum(), 0) * scale / len(pool)
    assert (linear.too_high, linear.too_low) == pytest.approx((down, up))


def test_a_session_is_the_same_when_opened_again(tmp_path):
    pool, truth = grouped_world(groups=40, largest=6, accuracy=0.8, seed=2)
    path = tmp_path / "groups.altmas"
    with altmas.Session.create(path, pool, draw="groups") as session:
        for query in session.ask(70):
            session.tell(query.id, truth[int(query.id)])
        before, following = numbers(session), [query.id for query in session.ask(12)]
    with altmas.Session.open(path) as again:
        assert again.plan.draw == "groups" and again.status().draw == "groups"
        assert numbers(again) == before and [query.id for query in again.ask(12)] == following
    with pytest.raises(PlanError, match="draw is 'groups' there, 'items' here"):
        altmas.Session.create(path, pool, exist_ok=True)


def test_a_plan_of_an_earlier_version_draws_single_items():
    pool, _ = grouped_world(groups=10)
    stored = Plan.of(pool).to_json()
    del stored["draw"]
    assert Plan.from_json(stored).draw == "items"


# ---------------------------------------------------------------- what is refused


def test_what_cannot_be_drawn_by_group_is_refused_in_a_sentence():
    pool, _ = grouped_world(groups=12)
    plain = altmas.Pool(None, pool.predictions, classes=[0, 1])

    def create(on, **options):
        altmas.Session.create(None, on, draw="groups", **options)

    with pytest.raises(PlanError, match=r"this pool has no groups; .*--group.*; nothing was recorded"):
        create(plain)
    for name in METHODS.keys() - {"assured", "tradition"}:
        if METHODS[name]().traits.lacking(pool) or name == "oasis":
            continue
        with pytest.raises(MethodError, match="can draw whole groups: assured, tradition; nothing was recorded"):
            create(pool, method=name)
    with pytest.raises(MethodError, match="assured, tradition"):
        create(pool, method=Tradition(calibrate_rows=True))
    with pytest.raises(PlanError, match="no guarantee is offered for draws of whole groups"):
        create(pool, guarantee=True)
    with pytest.raises(PlanError, match="draw='patients' was not understood; expected 'items' or 'groups'"):
        altmas.Session.create(None, pool, draw="patients")
    sample = altmas.Pool(None, pool.predictions, classes=[0, 1], group=pool.group)
    sample.sampled_from = 10_000
    with pytest.raises(PlanError, match="random sample of 10,000 rows"):
        create(sample)
    heavy = altmas.Pool(None, pool.predictions, classes=[0, 1], group=pool.group, weights=np.full(len(pool), 2.0))
    with pytest.raises(PlanError, match="methods that can: assured"):
        create(heavy, method="tradition")
    create(heavy)


def test_items_cannot_be_added_where_groups_are_drawn():
    session, pool, _ = session_of(CHEAP, 10)
    more = altmas.Pool(None, [0, 1], classes=[0, 1], ids=["x", "y"])
    with pytest.raises(PoolError, match="cannot be added to a pool with groups"):
        session.extend(more)


def test_a_claim_rests_on_the_interval_and_says_so():
    session, pool, truth = session_of(CHEAP, 110)
    verdict = session.check("accuracy >= 0.2")
    assert verdict.answer == "shown" and not verdict.proven
    assert "whole groups were drawn, for which no proof is offered: it is decided by the interval" in verdict.caution
    with pytest.raises(PlanError, match="no guarantee is offered"):
        session.check("accuracy >= 0.2", guarantee=True)
    assert session.forecast() is None


def test_widths_are_planned_with_an_assumption_in_words():
    pool, _ = grouped_world(groups=60)
    plan = plan_widths(pool, budgets=[100], worlds=2, draw="groups", methods=["tradition"])
    assert "items of one group (group) are right or wrong independently" in plan.assumption
    single = plan_widths(pool, budgets=[100], worlds=2, methods=["tradition"])
    assert plan.widths[0].half_width > single.widths[0].half_width


def test_rows_with_weights_count_by_group():
    """With weights the estimate is that of the expanded pool."""
    pool, truth = grouped_world(groups=60, largest=6, accuracy=0.8, seed=6)
    weights = np.random.default_rng(0).integers(1, 5, len(pool)).astype(float)
    heavy = altmas.Pool(None, pool.predictions, classes=[0, 1], group=pool.group, weights=weights)
    figures = runs(heavy, truth, CHEAP, n=100, repeats=60)["accuracy"]
    assert figures["truth"] == pytest.approx(np.average(pool.predictions == truth, weights=weights))
    assert figures["coverage"] >= 0.9 and abs(figures["bias"]) < 3.5 * figures["bias_error"]


def test_a_ranking_of_models_counts_groups():
    pool, truth = grouped_world(groups=60, largest=8, accuracy=0.9, seed=3)
    rng = np.random.default_rng(5)
    worse = np.where((rng.random(60) < 0.5)[pool.group], 1 - truth, truth)
    both = altmas.Pool(None, {"a": pool.predictions, "b": worse}, classes=[0, 1], group=pool.group)
    session = altmas.Session.create(None, both, draw="groups", rank="accuracy", budget=250)
    session.run(lambda query: truth[int(query.id)], progress=False)
    ranking = session.ranking()
    assert ranking.best == "a" and ranking["b"].low > 0


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
    return Estimators(samples, task, history).linearised(task.metrics[0], 3.7)


# ---------------------------------------------------------------- words


def test_commands_and_report_say_that_whole_groups_are_drawn(tmp_path):
    pool, truth = grouped_world(groups=40, largest=6, accuracy=0.8, seed=2)
    table, path = tmp_path / "turns.csv", str(tmp_path / "turns.altmas")
    names = np.array(["no", "yes"])
    rows = zip(names[pool.predictions], names[truth], pool.group, strict=True)
    table.write_text("predicted,true,chat\n" + "".join(f"{p},{t},{g}\n" for p, t, g in rows))
    common = ["--data", str(table), "--prediction", "predicted"]
    made = run("init", path, *common, "--group", "chat", "--draw", "groups", "--budget", 60)
    words = "whole groups are drawn (40 groups by chat): a group counts once all of its items are answered"
    assert words in made.out
    with altmas.Session.open(path) as session:
        session.run(lambda query: names[truth[int(query.id)]], progress=False)
        report = session.report()
    assert words in run("status", path).out
    assert json.loads(run("status", path, "--json").out)["draw"] == "groups"
    assert "whole groups were drawn (40 groups by chat)" in report.to_html()
    assert report.content["plan"]["draw"] == "groups"
    assert any("Whole groups are drawn (40 groups by chat)" in one["words"] for one in report.content["assumptions"])
    refused = run("init", tmp_path / "no.altmas", *common, "--draw", "groups")
    assert refused.code and "this pool has no groups" in refused.err and not (tmp_path / "no.altmas").exists()
    assert "expected items or groups" in run("init", path, *common, "--draw", "chats").err
    known = ["--truth", "true", "--group", "chat", "--draw", "groups", "--method", "tradition"]
    assert "tradition" in run("simulate", *common, *known, "--budget", 60, "--repeats", 2, "--jobs", 1).out
    planned = run("plan", path, "--budget", 100, "--worlds", 1).out
    assert "are right or wrong independently" in " ".join(planned.split())
