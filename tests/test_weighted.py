"""Labels weighted for the whole pool: every formula of the module against loops, enumeration and hand calculation."""

import itertools
import math

import numpy as np
import pytest

import altmas
from altmas.history import Batch, History
from altmas.intervals import normal_quantile
from altmas.metrics import metric_set
from altmas.weighted import (
    Draws,
    Inclusions,
    draws_of,
    effective_sample_size,
    has_probabilities,
    sample_of,
    weighted_interval,
    weighted_table,
)

Z = normal_quantile(0.95)
RATES = np.array([0.5, 1.0, 2.0, 3.5])
LOSS = np.array([1.0, 0.0, 0.3, -2.0])
EVERYWHERE = np.ones(4, np.bool_)


def drawn(rows, chances, **options) -> History:
    """All drawn at once and labelled 0."""
    n_points = options.pop("n_points", 4)
    return History(n_points, (Batch(np.array(rows), np.array(chances)),), dict.fromkeys(rows, 0), **options)


def successive(rates: np.ndarray, size: int):
    """(rows, chance of each draw, chance of the sequence) of every sequence of draws by these rates."""
    for rows in itertools.permutations(range(len(rates)), size):
        left, chances = rates.sum(), []
        for row in rows:
            chances.append(rates[row] / left)
            left -= rates[row]
        yield list(rows), chances, math.prod(chances)


# ---------------------------------------------------------------- single draws


def test_effective_sample_size_counts_equal_weights():
    assert effective_sample_size(np.full(7, 2.0)) == pytest.approx(7)
    assert effective_sample_size(np.array([1.0, 0, 0])) == pytest.approx(1)
    assert effective_sample_size(np.array([1.0, 2.0, 3.0])) == pytest.approx(36 / 14)
    assert effective_sample_size(np.zeros(0)) == 0


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_weighted_draws_are_unbiased_over_all_sequences(size):
    """(1/M) sum of v_m L_m has the mean of L over the pool as its expectation."""
    total = 0.0
    for rows, chances, probability in successive(RATES, size):
        draws = draws_of(drawn(rows, chances))
        total += probability * float((draws.weights * LOSS[draws.rows]).mean())
    assert total == pytest.approx(LOSS.mean(), abs=1e-12)


@pytest.mark.parametrize("size", [2, 3])
def test_the_variance_of_draws_is_the_formula_of_the_docstring(size):
    for rows, chances, _ in successive(RATES, size):
        draws = draws_of(drawn(rows, chances))
        e, r = LOSS[rows], 4
        by_hand = 0.0
        for m in range(1, size + 1):
            a = (e[m - 1] * (r - m + 1) / ((r - m + 1) * chances[m - 1]) + sum(e[: m - 1])) / r
            c = r * (r - size) / (size * (r - m) * (r - m + 1))
            by_hand += r**2 * c**2 * a**2
        assert draws.variance(e, EVERYWHERE) == pytest.approx(by_hand * size / (size - 1))


def test_the_variance_of_draws_is_right_on_average():
    """4,000 runs of 12 draws from 60: the mean variance is that of the estimated totals, within 8 %."""
    rng = np.random.default_rng(0)
    n, size = 60, 12
    rates, loss = rng.uniform(0.5, 2, n), rng.random(n)
    inside = np.ones(n, np.bool_)
    order = np.argsort(rng.standard_exponential((4_000, n)) / rates, axis=1)[:, :size]
    gone = np.cumsum(rates[order], axis=1) - rates[order]
    chances = rates[order] / (rates.sum() - gone)
    totals, variances = [], []
    for rows, q in zip(order, chances, strict=True):
        place = np.arange(1, size + 1)
        draws = Draws(rows, place, 1 / ((n - place + 1) * q), np.zeros(0, np.int64), n, size)
        moves = loss[rows]
        totals.append(float((draws.shares(inside) * moves).sum()))
        variances.append(draws.variance(draws.residuals(moves, inside), inside))
    assert np.mean(variances) == pytest.approx(np.var(totals), rel=0.08)


def test_uniform_draws_weigh_one_and_have_the_finite_pool_factor():
    draws = draws_of(drawn([2, 0, 1], [1 / 4, 1 / 3, 1 / 2]))
    np.testing.assert_allclose(draws.weights, 1)
    np.testing.assert_allclose(draws.shares(EVERYWHERE), 4 / 3)
    assert draws.of_one() == pytest.approx((4 / 3) ** 2 * (1 - 3 / 4))


def test_once_everything_is_drawn_nothing_is_uncertain():
    rows, chances, _ = next(successive(RATES, 4))
    draws = draws_of(drawn(rows, chances))
    assert draws.variance(LOSS, EVERYWHERE) == 0 and draws.of_one() == 0
    assert draws.steps.tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(draws.shares(EVERYWHERE), 1)
    one = draws_of(drawn([0, 1, 2], [0.25, 0.5, 0.5]))
    assert one.variance(LOSS[:3], EVERYWHERE) > 0


def test_draws_outside_a_slice_stand_for_nothing_inside():
    draws = draws_of(drawn([3, 0, 2], [0.5, 0.2, 0.6]))
    inside = np.array([True, True, False, True])
    shares = draws.shares(inside)
    assert shares[2] == 0 and shares.sum() == pytest.approx(3)
    assert shares[1] / shares[0] == pytest.approx(draws.weights[1] / draws.weights[0])
    moves = np.array([4.0, 1.0, 100.0])
    centre = (4 * draws.weights[0] + draws.weights[1]) / draws.weights[:2].sum()
    np.testing.assert_allclose(draws.residuals(moves, inside), [4 - centre, 1 - centre, 0])
    assert draws_of(drawn([3], [0.5])).shares(np.array([True, False, False, False])).tolist() == [0]


def test_a_point_that_had_to_be_drawn_stands_for_itself():
    history = drawn([1, 3, 0], [1.0, 0.5, 0.5])
    draws = draws_of(history)
    assert draws.exact.tolist() == [1] and draws.rows.tolist() == [3, 0]
    assert draws.open == 3 and draws.total == 2 and draws.place.tolist() == [1, 2]
    np.testing.assert_allclose(draws.tilt, [1 / (3 * 0.5), 1 / (2 * 0.5)])
    nearly = draws_of(drawn([1, 3], [1 - 1e-6, 0.5]))
    assert nearly.exact.tolist() == [] and nearly.rows.tolist() == [1, 3]
    last = draws_of(drawn([0, 1, 2, 3], [1 / 4, 1 / 3, 1 / 2, 1.0]))
    assert last.exact.tolist() == [] and last.rows.tolist() == [0, 1, 2, 3]  # the last one left is drawn with chance 1
    unlabelled = History(4, history.batches, {3: 0})
    assert draws_of(unlabelled).exact.tolist() == [] and draws_of(unlabelled).open == 4


def test_volunteered_points_are_not_open_to_the_draws_after_them():
    """Point 5 was told first, 4 between the two batches: the draws were among 5 and, one gone and one told, 3."""
    first, second = Batch(np.array([0]), np.array([1 / 5])), Batch(np.array([1, 2]), np.array([1 / 3, 1 / 2]))
    first, second = Batch(first.indices, first.probabilities, labels_before=1), second
    second = Batch(second.indices, second.probabilities, labels_before=3)
    draws = draws_of(History(6, (first, second), {5: 0, 0: 0, 4: 0, 1: 0, 2: 0}))
    assert draws.exact.tolist() == [5, 4] and draws.open == 4 and draws.total == 3
    np.testing.assert_allclose(draws.tilt, 1)
    late = Batch(second.indices, second.probabilities, labels_before=9)  # labels were taken back since
    np.testing.assert_allclose(draws_of(History(6, (first, late), {5: 0, 0: 0, 4: 0, 1: 0, 2: 0})).tilt, 1)


def test_unanswered_draws_count_up_to_the_last_label():
    batch = Batch(np.array([0, 1, 2, 3]), np.array([1 / 5, 1 / 4, 1 / 3, 1 / 2]))
    draws = draws_of(History(5, (batch,), {0: 0, 2: 0}))
    assert draws.rows.tolist() == [0, 2] and draws.place.tolist() == [1, 3] and draws.total == 3
    nothing = draws_of(History(5, (batch,), {}))
    assert nothing.total == 0 and len(nothing.rows) == 0


def test_probabilities_are_needed_until_everything_is_labelled():
    with_, without = Batch(np.array([0]), np.array([1 / 3])), Batch(np.array([1]))
    assert has_probabilities(History(3, (with_,), {0: 0}))
    assert not has_probabilities(History(3, (with_, without), {0: 0, 1: 0}))
    whole = History(2, (Batch(np.array([0, 1])),), {0: 0, 1: 1})
    assert has_probabilities(whole)
    draws = draws_of(whole)
    assert sorted([*draws.exact, *draws.rows]) == [0, 1]


# ---------------------------------------------------------------- inclusion probabilities


def included(chances, rows, exact=(), n_points=None) -> Inclusions:
    chances = np.asarray(chances, float)
    known = np.zeros(len(chances), np.bool_)
    known[[*rows, *exact]] = True
    return Inclusions(np.array(rows), np.array(exact, np.int64), chances, known)


def test_expansions_add_up_to_the_points_without_a_label():
    sample = included([0.5, 0.25, 0.8, 0.1, 0.1, 0.1, 0.9], [0, 1, 2], exact=[6])
    everywhere = np.ones(7, np.bool_)
    odds = np.array([1.0, 3.0, 0.25])
    np.testing.assert_allclose(sample.expansion(everywhere), odds * 3 / 4.25)
    np.testing.assert_allclose(sample.shares(everywhere), 1 + odds * 3 / 4.25)
    inside = np.array([True, True, False, True, True, False, True])
    np.testing.assert_allclose(sample.expansion(inside), np.array([1.0, 3.0, 0.0]) * 2 / 4)
    np.testing.assert_allclose(sample.shares(inside), [1.5, 2.5, 0.0])
    moves = np.array([2.0, 6.0, 99.0])
    np.testing.assert_allclose(sample.residuals(moves, inside), [2 - 5, 6 - 5, 0])
    assert sample.of_one() == pytest.approx(3 * 6 / 9)


def test_the_variance_of_inclusions_is_the_formula_of_the_docstring():
    sample = included([0.5, 0.25, 0.8, 0.1, 0.1], [0, 1, 2])
    everywhere = np.ones(5, np.bool_)
    e = np.array([1.0, -2.0, 0.5])
    x = sample.expansion(everywhere)
    by_hand = sum(x[k] ** 2 * e[k] ** 2 / (1 - sample.chances[k]) for k in range(3))
    assert sample.variance(e, everywhere) == pytest.approx(by_hand * 3 / 2)


def test_equal_inclusions_are_the_textbook_variance_of_a_random_sample():
    """N^2 (1 - n/N) s^2 / n, for both kinds of weights in expectation and exactly for this one."""
    n, size = 20, 5
    sample = included(np.full(n, size / n), range(size))
    moves = np.array([1.0, 0.0, 3.0, -1.0, 2.5])
    inside = np.ones(n, np.bool_)
    expected = n**2 * (1 - size / n) * moves.var(ddof=1) / size
    assert sample.variance(sample.residuals(moves, inside), inside) == pytest.approx(expected)
    assert sample.of_one() == pytest.approx(n**2 * (1 - size / n) / size**2)


def test_certain_inclusions_have_no_variance():
    sample = included([1.0, 1.0, 1.0], [0, 1, 2])
    everywhere = np.ones(3, np.bool_)
    assert sample.variance(np.array([1.0, 5.0, -2.0]), everywhere) == 0
    np.testing.assert_allclose(sample.shares(everywhere), 1)
    assert sample.residuals(np.array([1.0, 5.0, -2.0]), everywhere).tolist() == [1.0, 5.0, -2.0]
    alone = included([0.5, 0.5], [0])
    assert alone.variance(np.array([2.0]), np.ones(2, np.bool_)) == pytest.approx(4 / 0.5)


def test_inclusions_are_used_where_the_method_tells_them_and_something_is_open():
    pool = altmas.Pool(None, [0, 1, 0, 1], classes=[0, 1])
    batch = Batch(np.array([2, 0]), np.array([1 / 4, 1 / 3]))
    history, chances = History(4, (batch,), {2: 0, 3: 1}), np.full(4, 0.3)
    sample = sample_of(pool, history, chances)
    assert isinstance(sample, Inclusions)
    assert sample.rows.tolist() == [2] and sample.exact.tolist() == [3]
    assert sample.known.tolist() == [False, False, True, True]
    assert isinstance(sample_of(pool, history), Draws)
    assert isinstance(sample_of(pool, History(4, (), {3: 1}), chances), Draws)
    assert isinstance(sample_of(pool, History(4, (batch,), {0: 0, 1: 1, 2: 0, 3: 1}), chances), Draws)


# ---------------------------------------------------------------- metrics


CODES = {0: 0, 1: 0, 2: 1, 3: 1, 4: 1, 9: 0}  # predictions are 0 1 0 1 ...: right at 0, 3 and, volunteered, not at 9


def told() -> tuple[altmas.Pool, History]:
    pool = altmas.Pool(None, [0, 1] * 5, classes=[0, 1], slices={"half": ["a"] * 5 + ["b"] * 5})
    batch = Batch(np.arange(5), 1 / (10 - np.arange(5.0)))
    return pool, History(10, (batch,), CODES)


def test_a_weighted_table_holds_exact_labels_once_and_draws_by_their_share():
    pool, history = told()
    sample = draws_of(history)
    table = weighted_table(pool.predictions, history.known, 2, sample, np.ones(10, np.bool_))
    share = 9 / 5  # five labels for nine points
    np.testing.assert_allclose(table, [[share, 2 * share], [share + 1, share]])
    inside = pool.slices["half"] == "b"
    np.testing.assert_allclose(weighted_table(pool.predictions, history.known, 2, sample, inside), [[0, 0], [1, 0]])


@pytest.mark.parametrize("kind", ["draws", "inclusions"])
def test_the_interval_of_a_share_is_the_textbook_one_with_pseudo_labels(kind):
    """value +- z sqrt(Var + z^2/2 pseudo-labels, half of them right), everything divided by N^2."""
    pool, history = told()
    metric = metric_set(["accuracy"], pool)[0]
    inclusion = np.full(10, 5 / 9) if kind == "inclusions" else None
    sample = sample_of(pool, history, inclusion)
    value, low, high = weighted_interval(pool, history, metric, 0.95, sample)
    p = 2 / 5 * 0.9
    assert value == pytest.approx(p)
    right = np.array([1, 0, 0, 1, 0]) / 10
    residuals = right - right.mean()
    variance = sample.variance(residuals, np.ones(10, np.bool_))
    if kind == "inclusions":
        assert variance == pytest.approx(81 * (1 - 5 / 9) * right.var(ddof=1) / 5)
    # a wrong and a right pseudo-label, seen from the mean of the drawn ones
    centre = 2 / 5
    pseudo = Z**2 / 2 * ((1 - centre) ** 2 + centre**2) / 2 / 100
    half = Z * math.sqrt(variance + pseudo * 81 * (1 - 5 / 9) / 25)
    assert (low, high) == pytest.approx((p - half, p + half))
    assert 0 < low < high < 1


def test_the_interval_of_a_slice_is_made_of_its_own_points():
    """Three classes, a slice of 6 of 12 points, 4 of them drawn (uniformly, among 8 draws) and 3 right."""
    pool = altmas.Pool(None, [0, 1, 2] * 4, classes=[0, 1, 2], slices={"half": ["a", "b"] * 6})
    rows = [0, 1, 2, 3, 4, 5, 6, 7]
    codes = dict(zip(rows, [0, 0, 2, 0, 1, 2, 1, 1], strict=True))
    batch = Batch(np.array(rows), 1 / (12 - np.arange(8.0)))
    history = History(12, (batch,), codes)
    metric = metric_set(["accuracy@half=a"], pool)[0]
    sample = sample_of(pool, history, np.full(12, 8 / 12))
    value, low, high = weighted_interval(pool, history, metric, 0.95, sample)
    assert value == pytest.approx(3 / 4)  # rows 0, 2, 4 right and 6 wrong
    x = np.where(np.arange(8) % 2, 0, 2 / 4)  # two points of the slice without a label
    e = np.array([1 / 4, 0, 1 / 4, 0, 1 / 4, 0, -3 / 4, 0]) / 6
    variance = (x**2 * e**2).sum() / (1 - 8 / 12) * 8 / 7
    # the slice is 0 2 1 0 2 1: a right one is 1/4 away; of two wrong ones each is 3/4 away
    pseudo = Z**2 / 2 * ((1 / 4) ** 2 + (3 / 4) ** 2) / 2 / 36
    half = Z * math.sqrt(variance + pseudo * sample.of_one())
    assert (low, high) == pytest.approx((value - half, min(1, value + half)))


def test_no_interval_leaves_the_bounds_or_stands_without_a_draw_inside():
    pool, history = told()
    everywhere, there = metric_set(["accuracy", "accuracy@half=b"], pool)
    assert np.isnan(weighted_interval(pool, history, there, 0.95, draws_of(history))).all()
    assert np.isnan(weighted_interval(pool, History(10), everywhere, 0.95, draws_of(History(10)))).all()
    clean = History(10, history.batches, {row: int(pool.predictions[row]) for row in range(5)})
    value, low, high = weighted_interval(pool, clean, everywhere, 0.95, draws_of(clean))
    assert value == high == 1 and 0 < low < 1
    worst = History(10, history.batches, {row: 1 - int(pool.predictions[row]) for row in range(5)})
    value, low, high = weighted_interval(pool, worst, everywhere, 0.95, draws_of(worst))
    assert value == low == 0 and 0 < high < 1
    undefined = metric_set(["recall[1]"], altmas.Pool(None, [0] * 10, classes=[0, 1]))[0]
    zeros = altmas.Pool(None, [0] * 10, classes=[0, 1])
    told_zero = History(10, history.batches, dict.fromkeys(range(5), 0))
    assert np.isnan(weighted_interval(zeros, told_zero, undefined, 0.95, draws_of(told_zero))).all()


def test_a_metric_of_scores_has_an_interval_from_weights_alone_and_a_difference_none():
    pool = altmas.Pool(
        None, [0, 1] * 5, scores=np.tile([0.6, 0.4], (10, 1)), classes=[0, 1], slices={"s": ["a", "b"] * 5}
    )
    brier, change = metric_set(["brier", "brier@s=a - brier@s=b"], pool)
    _, history = told()
    sample = draws_of(history)
    value, low, high = weighted_interval(pool, history, brier, 0.95, sample)
    rows = np.concatenate([sample.exact, sample.rows])
    weights = np.concatenate([np.ones(len(sample.exact)), sample.shares(np.ones(10, bool))])
    losses = np.where(history.known[rows] == 0, 0.4**2, 0.6**2)
    assert value == pytest.approx((weights * losses).sum() / 10) and low < value < high
    # half a pseudo-label at either end of what a label can do: (0.36 - 0.16) / 2 from the middle, over ten points
    moves = np.where(history.known[sample.rows] == 0, 0.4**2, 0.6**2) / 10
    variance = sample.variance(moves - moves.mean(), np.ones(10, bool))
    half = Z * math.sqrt(variance + Z**2 / 2 * 0.01**2 * sample.of_one())
    assert (low, high) == pytest.approx((value - half, value + half))
    assert np.isnan(weighted_interval(pool, history, change, 0.95, sample)).all()


def test_a_metric_without_an_upper_bound_has_no_pseudo_labels():
    """Nobody knows how far a log loss could be away: the interval is that of the sample."""
    pool = altmas.Pool(None, [0, 1] * 5, scores=np.tile([0.6, 0.4], (10, 1)), classes=[0, 1])
    (loss,) = metric_set(["log_loss"], pool)
    _, history = told()
    sample = draws_of(history)
    value, low, high = weighted_interval(pool, history, loss, 0.95, sample)
    moves = -np.log(np.where(history.known[sample.rows] == 0, 0.6, 0.4)) / 10
    half = Z * math.sqrt(sample.variance(moves - moves.mean(), np.ones(10, bool)))
    assert math.isinf(loss.bounds[1]) and (low, high) == pytest.approx((value - half, value + half))
