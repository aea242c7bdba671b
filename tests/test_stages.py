"""Stages of draws: fixed sizes, exact inclusion probabilities, and nothing that merely waits moves anything."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from altmas.history import Batch, History
from altmas.methods.assured.stages import LEVELS, StageDesign, begin, levels_of, race_times, stages_of

SIZES = np.array([0.3, 0.5, 0.8, 1.0, 1.0, 1.3, 1.7, 2.5])


def asked(n: int, seed: int, history: History | None = None) -> History:
    """A history whose first stage has asked for n points."""
    history = History(len(SIZES)) if history is None else history
    stage, record = begin(StageDesign(SIZES, np.array([1.0])), history, seed)
    rows = stage.next_points(history.open, n)
    return replace(history, batches=(*history.batches, Batch(rows, stage.draw_chances(rows), record)))


def told(history: History, rows, code: int = 0) -> History:
    return replace(history, labels={**history.labels, **{int(row): code for row in rows}})


def test_points_that_wait_are_not_in_the_sample_and_change_nothing():
    for seed in range(50):
        history = told(first := asked(3, seed), first.drawn)
        (before,) = stages_of(history)
        more = before.next_points(history.open, 4)
        waiting = replace(history, batches=(*history.batches, Batch(more)))
        (after,) = stages_of(waiting)
        np.testing.assert_array_equal(before.used, after.used)
        np.testing.assert_array_equal(before.exposure, after.exposure)


def test_the_sample_ends_at_the_first_gap_and_goes_on_when_it_closes():
    history = asked(5, seed=3)
    order = history.drawn.tolist()
    (gap,) = stages_of(told(history, [order[0], order[1], order[3], order[4]]))
    assert gap.used.tolist() == order[:2]
    (skipped,) = stages_of(replace(told(history, [order[0], order[1], order[3], order[4]]), skipped={order[2]: ""}))
    assert skipped.used.tolist() == order  # a skip is an answer
    (closed,) = stages_of(told(history, reversed(order)))
    assert closed.used.tolist() == order and closed.exposure.max() > gap.exposure.max()


def test_volunteered_points_do_not_end_a_stage_and_count_only_before_its_threshold():
    history = asked(3, seed=5)
    history = told(history, history.drawn)
    (plain,) = stages_of(history)
    following = plain.next_points(history.open, 2).tolist()
    (one,) = stages_of(told(history, following[:1]))
    assert one.used.tolist() == [*plain.used.tolist(), following[0]]
    (later,) = stages_of(told(history, following[1:]))
    assert later.used.tolist() == plain.used.tolist()
    np.testing.assert_array_equal(later.exposure, plain.exposure)


def test_a_closed_stage_is_not_prolonged_by_labels_of_later_stages():
    history = asked(3, seed=1)
    history = told(history, history.drawn)
    (first,) = stages_of(history)
    history = asked(5, 1, history)
    again, second = stages_of(told(history, history.drawn))
    np.testing.assert_array_equal(first.used, again.used)
    np.testing.assert_array_equal(first.exposure, again.exposure)
    assert not second.population[first.used].any() and len(second.used) == 5


def test_an_answered_population_is_certain():
    history = asked(len(SIZES), seed=2)
    (stage,) = stages_of(told(history, history.drawn))
    assert (stage.chances == 1).all() and len(stage.used) == len(SIZES)


def test_chances_of_single_draws_are_those_of_successive_sampling():
    history = asked(4, seed=7)
    rows, sizes = history.drawn, LEVELS[levels_of(SIZES)]
    left = sizes.sum()
    for row, chance in zip(rows.tolist(), history.batches[0].probabilities.tolist(), strict=True):
        assert chance == pytest.approx(sizes[row] / left)
        left -= sizes[row]


def test_sizes_survive_being_stored_as_bytes():
    sizes = np.geomspace(0.05, 1000, 50)
    np.testing.assert_allclose(LEVELS[levels_of(sizes)], sizes, rtol=0.03)
    assert levels_of(np.array([1e-9, LEVELS[0], LEVELS[-1], 1e9])).tolist() == [0, 0, 255, 255]
    middle = np.sqrt(LEVELS[100] * LEVELS[101])
    assert levels_of(np.array([middle * 0.999, middle * 1.001])).tolist() == [100, 101]


def test_points_come_in_the_order_of_their_times_if_they_are_free():
    stage, _ = begin(StageDesign(SIZES, np.array([1.0])), History(8), seed=4)
    order = np.argsort(stage.times).tolist()
    everything = np.ones(8, bool)
    for n in range(9):
        assert stage.next_points(everything, n).tolist() == order[:n]
    assert stage.next_points(everything, 99).tolist() == order
    free = everything.copy()
    free[order[1]] = False
    assert stage.next_points(free, 3).tolist() == [order[0], *order[2:4]]


def test_a_stage_begins_with_what_has_neither_label_nor_skip():
    history = History(8, (), {2: 0}, {5: "dark"})
    stage, record = begin(StageDesign(SIZES, np.array([1.7])), history, seed=0)
    assert np.flatnonzero(~stage.population).tolist() == [2, 5]
    assert np.isinf(stage.times[[2, 5]]).all() and np.isfinite(np.delete(stage.times, [2, 5])).all()
    assert stage.gain == 1.7 and not stage.exposure.any() and len(stage.used) == 0 and stage.threshold == 0
    assert 2 not in stage.next_points(np.ones(8, bool), 8)
    waits = np.random.default_rng(record["races"].tolist()).standard_exponential(8)
    expected = waits / LEVELS[record["levels"]]
    np.testing.assert_allclose(stage.times[stage.population], expected[stage.population])
    np.testing.assert_allclose(race_times(stage.sizes, stage.population, record["races"]), stage.times)
    (replayed,) = stages_of(History(8, (Batch(np.array([0]), None, record),), {2: 0}, {5: "dark"}))
    np.testing.assert_array_equal(replayed.population, stage.population)
    np.testing.assert_allclose(replayed.times, stage.times)
    assert replayed.gain == 1.7


def test_stages_and_seeds_race_apart():
    first = asked(3, seed=1)
    again, _ = begin(StageDesign(SIZES, np.array([1.0])), told(first, first.drawn), 1)
    (before,) = stages_of(first)
    free = again.population
    assert not np.allclose(before.times[free], again.times[free])
    other, _ = begin(StageDesign(SIZES, np.array([1.0])), History(8), 2)
    assert not np.allclose(before.times, other.times)


def test_before_an_answer_the_sample_is_empty_and_the_threshold_the_first_time():
    history = asked(3, seed=6)
    (stage,) = stages_of(history)
    assert len(stage.used) == 0 and stage.threshold == stage.times.min()
    np.testing.assert_allclose(stage.exposure, stage.sizes * stage.times.min())
    np.testing.assert_allclose(stage.chances, 1 - np.exp(-stage.exposure))


def test_the_threshold_is_the_time_of_the_first_point_without_an_answer():
    history = asked(5, seed=3)
    order = history.drawn.tolist()
    (stage,) = stages_of(told(history, order[:2]))
    assert stage.threshold == stage.times[order[2]] and stage.used.tolist() == order[:2]
    (whole,) = stages_of(told(history, order))
    assert whole.threshold == np.sort(whole.times)[5]


def test_draws_around_points_that_are_not_free_have_chances_among_those_not_yet_passed():
    stage, _ = begin(StageDesign(SIZES, np.array([1.0])), History(8), seed=9)
    order = np.argsort(stage.times)
    free = np.ones(8, bool)
    free[order[[1, 3]]] = False  # volunteered meanwhile, say
    rows = stage.next_points(free, 4)
    for row, chance in zip(rows.tolist(), stage.draw_chances(rows).tolist(), strict=True):
        left = stage.times >= stage.times[row]
        assert chance == pytest.approx(stage.sizes[row] / stage.sizes[left].sum())
    assert stage.draw_chances(np.zeros(0, np.int64)).shape == (0,)
    assert stage.draw_chances(order[-1:]).tolist() == [1.0]


def test_labels_volunteered_after_a_stage_do_not_count_in_it():
    history = asked(3, seed=1)
    history = told(history, history.drawn)
    (first,) = stages_of(history)
    following = int(first.next_points(history.open, 1)[0])
    history = asked(2, 1, history)  # a second stage begins
    late = told(history, [following])
    again, second = stages_of(late)
    assert again.used.tolist() == first.used.tolist() and again.threshold == first.threshold
    assert second.population[following]


# ---------------------------------------------------------------- draws of the first edition


def old_batch(rows, scale: float, floor: float, levels=None) -> Batch:
    record = {"scale": np.array([scale, floor])}
    if levels is not None:
        record["levels"] = np.asarray(levels, np.uint8)
    return Batch(np.array(rows), None, record)


def test_draws_of_the_first_edition_are_one_stage_of_whole_batches():
    levels = levels_of(SIZES)
    batches = (old_batch([0, 4], 0.1, 0.01, levels), old_batch([6, 7], 0.3, 0.01), old_batch([1], 0.35, 0.01))
    history = History(8, batches, {0: 0, 4: 1, 3: 0, 6: 1, 1: 0}, {7: "dark"})
    (stage,) = stages_of(history)
    assert stage.from_first_edition and stage.used.tolist() == [0, 4, 6, 7, 1]
    assert np.flatnonzero(~stage.population).tolist() == [3]  # nobody drew it
    wanted = -np.log1p(-np.minimum(0.35 * LEVELS[levels], 0.99999))
    grown = -np.log1p(-np.minimum(0.1 * LEVELS[levels], 0.99999))
    for scale in (0.3, 0.35):
        step = -np.log1p(-np.minimum(scale * LEVELS[levels], 0.99999))
        grown = grown + np.maximum(step - grown, 0.01)
    np.testing.assert_allclose(stage.exposure, np.where(np.arange(8) == 3, 0, grown))
    assert (grown >= wanted - 1e-12).all()
    (partly,) = stages_of(History(8, batches, {0: 0, 4: 1, 6: 1, 1: 0}))  # 7 has no answer: nor has what came after
    assert partly.used.tolist() == [0, 4] and partly.exposure.max() < stage.exposure.max()


def test_the_first_edition_comes_first_and_the_second_goes_on():
    history = History(8, (old_batch([0, 4], 0.2, 0.01, levels_of(SIZES)),), {0: 0, 4: 1})
    history = asked(3, 1, history)
    first, second = stages_of(told(history, history.batches[1].indices))
    assert first.from_first_edition and not second.from_first_edition
    assert first.used.tolist() == [0, 4] and len(second.used) == 3 and not second.population[[0, 4]].any()
    assert stages_of(History(8)) == []


# ---------------------------------------------------------------- by simulation


RUNS = 2500
TOTAL = np.array([3.0, -1, 2, 0.5, 4, -2, 1, 1.5])


@pytest.fixture(scope="module")
def chances() -> np.ndarray:
    """(RUNS, 8): p of the points in samples of 4 of 8 unequal points, 0 for the others."""
    found = np.zeros((RUNS, len(SIZES)))
    for seed in range(RUNS):
        history = asked(4, seed)
        (stage,) = stages_of(told(history, history.drawn))
        assert len(stage.used) == 4
        found[seed, stage.used] = stage.chances[stage.used]
    return found


def test_weights_by_rank_conditioning_are_unbiased_with_uncorrelated_terms(chances):
    """Sum of 1/p over the samples: mean 1 at each point (V1), no covariance between points."""
    weights = np.divide(1, chances, out=np.zeros_like(chances), where=chances > 0)
    error = weights.std(0) / RUNS**0.5
    assert (np.abs(weights.mean(0) - 1) < 4 * error).all()
    products = (weights[:, :, None] - 1) * (weights[:, None, :] - 1)
    off = ~np.eye(len(SIZES), dtype=bool)
    z = products.mean(0)[off] / (products.std(0)[off] / RUNS**0.5)
    assert np.abs(z).max() < 4


def test_the_variance_of_a_total_is_estimated_without_bias(chances):
    """sum (1 - p)/p^2 x^2 over the sample has the variance of sum x/p as its mean (within 10 %)."""
    weights = np.divide(1, chances, out=np.zeros_like(chances), where=chances > 0)
    variances = ((1 - chances) * weights**2 * TOTAL**2).sum(1)
    assert np.mean(variances) == pytest.approx(np.var(weights @ TOTAL), rel=0.1)


def test_a_set_that_is_called_impossible_stays_unseen_no_more_often_than_said():
    """By all orders of draws: P(E unseen, and (V11) says that its chance is at most a) <= a, for any E and a."""
    nobody = History(len(SIZES))
    stage, _ = begin(StageDesign(SIZES, np.array([1.0])), nobody, seed=0)
    sizes, members = stage.sizes, np.array([True] * 5 + [False] * 3)
    orders = [(order, chance_of(order, sizes)) for order in permutations(range(len(sizes)), 4)]
    assert sum(chance for _, chance in orders) == pytest.approx(1)
    for unseen in ([0], [3], [0, 4], [1, 2, 3]):
        said = []
        for order, chance in orders:
            if not set(order) & set(unseen):
                reached, draws = replace(stage, used=np.array(order)).hazard_within(members)
                share = float(sizes[unseen].sum()) * reached / draws if draws else 0.0
                said.append(((1 - share) ** draws, chance))  # Jensen: no less than the product over the draws
        for level, _ in said:
            assert sum(chance for other, chance in said if other <= level) <= level + 1e-12


def chance_of(order, sizes) -> float:
    """The probability that draws by these sizes come in this order."""
    left, chance = float(sizes.sum()), 1.0
    for row in order:
        chance *= float(sizes[row]) / left
        left -= float(sizes[row])
    return chance


def test_with_equal_sizes_the_hazard_of_members_is_that_of_their_own_draws():
    stage, _ = begin(StageDesign(np.ones(60), np.array([1.0])), History(60), seed=1)
    members = np.arange(60) < 20
    few = replace(stage, used=np.array([3, 40, 17, 25, 5]))
    reached, draws = few.hazard_within(members)
    size = float(stage.sizes[0])
    assert draws == 3 and reached == pytest.approx((1 / 20 + 1 / 19 + 1 / 18) / size)
    assert few.hazard_within(np.arange(60) == 50) == (0.0, 0)
