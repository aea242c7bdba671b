"""The guarantee: its terms have mean 0, its capitals mean 1, and what they say is seldom false."""

import itertools
import math
import time

import numpy as np
import pytest
from scipy.stats import beta
from sklearn import metrics as sklearn_metrics

from altmas.guarantee import (
    BEYOND,
    DOUBT,
    LAST_HORIZON,
    LEAST_LOG,
    LOG_STEP,
    REFRESH,
    SHARES,
    STAKE,
    WARY,
    Stage,
    decide,
    horizons,
    impossible,
    interval,
    log_capital,
    terms,
)
from altmas.ratios import OPEN, SKIPPED, Ratio, difference, kappa_tables, linear_tables, table_ratio

# ---------------------------------------------------------------- the same, slowly: one point, one candidate at a time


def slow_belief(ratio, stage):
    """{open point: probabilities}: doubted, then rounded to steps of the log odds."""
    points = [i for i in range(len(stage.known)) if stage.known[i] == OPEN]
    rounded = {}
    for i in points:
        alike = [stage.belief[j] for j in points if ratio.kind[j] == ratio.kind[i]]
        mean = [sum(column) / len(alike) for column in zip(*alike, strict=True)]
        own = [(1 - DOUBT) * p + DOUBT * m for p, m in zip(stage.belief[i], mean, strict=True)]
        logs = [round(max(math.log(max(p, 1e-300) / max(own)), LEAST_LOG) / LOG_STEP) * LOG_STEP for p in own]
        rounded[i] = [math.exp(log) for log in logs]
    return rounded


def slow_moments(probabilities, g, tilt):
    weights = [p * math.exp(tilt * value) for p, value in zip(probabilities, g, strict=True)]
    weights = [w / sum(weights) for w in weights]
    mean = sum(w * value for w, value in zip(weights, g, strict=True))
    central = [sum(w * (value - mean) ** power for w, value in zip(weights, g, strict=True)) for power in (2, 3)]
    return mean, *central


def slow_tilt(before, belief, g, points):
    """theta by plain bisection: the believed total grows with it."""
    span = max(max(g[i]) - min(g[i]) for i in points)
    low, high = -40 / span, 40 / span
    for _ in range(55):
        middle = (low + high) / 2
        total = before + sum(slow_moments(belief[i], g[i], middle)[0] for i in points)
        low, high = (middle, high) if total < 0 else (low, middle)
    return (low + high) / 2


def slow_terms(ratio, stages, q):
    """[(Z, largest loss, largest gain, variance, third moment / variance)] of all draws, straight from (G3)-(G6)."""
    rows = []
    values = [[ratio.num[k][c] - q * ratio.den[k][c] for c in range(ratio.num.shape[1])] for k in ratio.kind]
    rounding = 1e-9 * max(abs(value) for row in values for value in row) * len(values)
    for stage in stages:
        belief = slow_belief(ratio, stage)
        least_of = {i: min(stage.sizes[j] for j in alike(ratio, stage, belief, i)) for i in belief}
        known = {i: values[i][c] if c >= 0 else 0.0 for i, c in enumerate(stage.known) if c != OPEN}
        left = 0
        for i, outcome in zip(stage.drawn, stage.outcomes, strict=True):
            if left == 0:
                left = math.ceil(REFRESH * len(belief))
                fitted, points = dict(belief), list(belief)
                tilt = slow_tilt(sum(known.values()), fitted, values, points)
                moments = {j: slow_moments(fitted[j], values[j], tilt) for j in points}
                inverse = sum(moments[j][1] / stage.sizes[j] for j in points)
                inverse2 = sum(moments[j][2] / stage.sizes[j] ** 2 for j in points)
                down = max((moments[j][0] - min(*values[j], 0)) / least_of[j] for j in points)
                up = max((max(*values[j], 0) - moments[j][0]) / least_of[j] for j in points)
            total = sum(stage.sizes[j] for j in belief)
            base = sum(known.values()) + sum(moments[j][0] for j in belief)
            seen = values[i][outcome] if outcome >= 0 else 0.0
            z = base + (seen - moments[i][0]) * total / stage.sizes[i]
            variance = total * inverse
            losses = max(total * down - base, rounding), max(total * up + base, rounding)
            rows.append((z, *losses, variance, total**2 * inverse2 / variance))
            known[i] = seen
            del belief[i]
            left -= 1
    return rows


def alike(ratio, stage, belief, i):
    """Open points of the same kind, belief and size (in quarters of an octave)."""

    def key(j):
        return ratio.kind[j], tuple(belief[j]), math.floor(math.log2(stage.sizes[j]) / LOG_STEP)

    return [j for j in belief if key(j) == key(i)]


def slow_capital(rows, error, ends, shares):
    """[(W+, W-)] after each draw, straight from (G7) and (G8)."""
    capital = [[1.0, 1.0] for _ in ends]
    history = []
    seen = believed = 0.0
    for m, (z, loss, gain, variance, skew) in enumerate(rows):
        spread = variance * max(1.0, (WARY * variance + seen) / (WARY * variance + believed))
        for parts, end, share in zip(capital, ends, shares, strict=True):
            while end <= m:
                end *= 2
            for side, (sign, most) in enumerate(((1, loss), (-1, gain))):
                wanted = max(0.0, math.log(1 / (error * share * parts[side])))
                bet = math.sqrt(2 * wanted / ((end - m) * spread))
                lean = bet * sign * skew / 6
                bet = min(bet * (1 + lean if lean >= 0 else 1 / (1 - lean)), STAKE / most)
                parts[side] *= 1 + bet * sign * z
        history.append([sum(s * parts[side] for s, parts in zip(shares, capital, strict=True)) for side in (0, 1)])
        seen, believed = seen + z**2, believed + variance
    return np.array(history)


# ---------------------------------------------------------------- worlds


def successive(rng, sizes, count):
    """Points in the order of successive draws without replacement, by exponential races."""
    return np.argsort(rng.exponential(size=len(sizes)) / sizes)[:count]


def two_stages(seed, n_points=40):
    """A made-up metric with three outcomes; skips; labels volunteered between the stages; a random belief."""
    rng = np.random.default_rng(seed)
    num = rng.integers(-2, 3, (3, 3)) / 2
    den = rng.integers(1, 4, (3, 3)) / 2
    kind = rng.integers(0, 3, n_points)
    ratio = Ratio.of_points(num[kind], den[kind])
    truth = rng.integers(-1, 3, n_points)
    known = np.full(n_points, OPEN)
    known[:4] = truth[:4]
    stages = []
    for count in (9, 12):
        sizes = rng.uniform(0.2, 3, n_points)
        open_ = np.flatnonzero(known == OPEN)
        drawn = open_[successive(rng, sizes[open_], count)]
        belief = rng.dirichlet(np.ones(3), n_points)
        stages.append(Stage(known, sizes, belief, drawn, truth[drawn]))
        known = stages[-1].after()
        volunteered = np.flatnonzero(known == OPEN)[:3]
        known[volunteered] = truth[volunteered]
    return ratio, stages, truth


def value_of(ratio, truth):
    num, den = ratio.totals(truth)
    return num / den


def right_or_wrong(n_points):
    """Accuracy with outcomes 0 wrong, 1 right."""
    return Ratio.of_points(np.tile([0.0, 1.0], (n_points, 1)), np.ones((n_points, 2)))


def session(rng, right, sizes, p_right, count):
    drawn = successive(rng, sizes, count)
    belief = np.column_stack([1 - p_right, p_right])
    return [Stage(np.full(len(right), OPEN), sizes, belief, drawn, right[drawn])]


# ---------------------------------------------------------------- terms and capitals


@pytest.mark.parametrize("seed", range(3))
def test_terms_and_capitals_equal_slow_loops_over_points(seed):
    ratio, stages, truth = two_stages(seed)
    q = value_of(ratio, truth) + np.array([-0.1, -0.03, 0.0, 0.05])
    game = terms(ratio, stages, q)
    ends, shares = np.array([4.0, 30.0]), np.array([0.3, 0.7])
    capital = np.exp(log_capital(game, 0.025, ends, shares))
    for at, candidate in enumerate(q):
        rows = slow_terms(ratio, stages, candidate)
        fast = np.column_stack([game.z, game.loss[:, 0], game.loss[:, 1], game.variance, game.skew])
        np.testing.assert_allclose(fast[:, at :: len(q)], rows, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(capital[:, :, at], slow_capital(rows, 0.025, ends, shares), rtol=1e-4)


def orders(sizes, open_, count):
    """(order, probability) of every way to draw `count` of the open points."""
    for order in itertools.permutations(open_, count):
        chance, left = 1.0, sum(sizes[open_])
        for i in order:
            chance *= sizes[i] / left
            left -= sizes[i]
        yield np.array(order), chance


def all_sessions(truth, ratio):
    """(stages, probability) of every session of two stages; the second follows the first's labels."""
    n = len(truth)
    sizes, belief = np.array([1.0, 2.0, 0.5, 1.0, 3.0]), np.tile([0.3, 0.7], (n, 1))
    known = np.full(n, OPEN)
    for order, chance in orders(sizes, np.arange(n), 2):
        first = Stage(known, sizes, belief, order, truth[order])
        then = np.where(truth[order[0]] == 1, sizes**2, 1 / sizes)
        believed = np.tile([0.9, 0.1] if truth[order[1]] == 1 else [0.2, 0.8], (n, 1))
        after = first.after()
        for later, chance_later in orders(then, np.flatnonzero(after == OPEN), 2):
            yield [first, Stage(after, then, believed, later, truth[later])], chance * chance_later


@pytest.mark.parametrize("truth", [[0, 1, 1, 0, 1], [1, 1, 1, 1, 0], [0, SKIPPED, 1, 0, 1]])
def test_over_all_possible_draws_terms_have_mean_0_and_capitals_mean_1(truth):
    """Exactly, by enumeration: at the true value; above it the player who says "above" can only lose."""
    truth = np.array(truth)
    ratio = Ratio.of_points(
        np.array([[0, 1.0], [0, 1], [0, 2], [0, 1], [0, 1]]), np.array([[1.0, 1], [0, 1], [1, 2], [1, 1], [1, 1]])
    )
    q = np.array([value_of(ratio, truth), value_of(ratio, truth) + 0.1])
    z = capital = total = 0.0
    for stages, chance in all_sessions(truth, ratio):
        game = terms(ratio, stages, q)
        z = z + chance * game.z[:, 0]
        capital = capital + chance * np.exp(log_capital(game, 0.05, np.array([2.0, 8.0]), np.array([0.5, 0.5])))
        total += chance
        assert (game.z >= -game.loss[:, 0] * (1 + 1e-9)).all() and (game.z <= game.loss[:, 1] * (1 + 1e-9)).all()
    assert total == pytest.approx(1)
    np.testing.assert_allclose(z, 0, atol=1e-9)
    np.testing.assert_allclose(capital[:, :, 0], 1, atol=1e-9)
    assert (capital[:, 0, 1] < 1).all()


def test_bets_are_placed_before_the_label_is_seen():
    """Other labels later on, or none, change no capital before them."""
    ratio, stages, truth = two_stages(5)
    q = np.linspace(*ratio.bounds, 9)
    ends, shares = horizons(20, len(truth))
    whole = log_capital(terms(ratio, stages, q), 0.025, ends, shares)
    last = stages[-1]
    for count in (0, 1, 5, 11):
        short = Stage(last.known, last.sizes, last.belief, last.drawn[:count], last.outcomes[:count])
        changed = np.append(last.outcomes[:count], (last.outcomes[count:] + 2) % 3)
        other = Stage(last.known, last.sizes, last.belief, last.drawn, changed)
        before = len(stages[0].drawn) + count
        for stage in (short, other):
            again = log_capital(terms(ratio, [stages[0], stage], q), 0.025, ends, shares)
            np.testing.assert_allclose(again[:before], whole[:before], rtol=1e-7, atol=1e-9)


def test_a_session_may_go_on_far_beyond_its_budget():
    ends, shares = horizons(8, 100)
    assert ends.tolist() == [1, 2, 4, 8, 16, 32, 64, 128] and shares.sum() == pytest.approx(1)
    rng = np.random.default_rng(2)
    right = (rng.random(3000) < 0.9).astype(int)
    stages = session(rng, right, np.ones(3000), np.full(3000, 0.8), 400)
    short, long = (interval(right_or_wrong(3000), stages, budget=budget) for budget in (8, 400))
    assert short[1] - short[0] < 1.5 * (long[1] - long[0])


def session_prefix(stages, count):
    (stage,) = stages
    return [Stage(stage.known, stage.sizes, stage.belief, stage.drawn[:count], stage.outcomes[:count])]


def test_without_a_budget_horizons_double_up_to_the_pool():
    ends, shares = horizons(None, 1000)
    assert ends.tolist() == [32, 64, 128, 256, 512, 1024] and np.allclose(shares, 1 / 6)
    assert sum(share for _, share in SHARES) + BEYOND == pytest.approx(1)
    assert horizons(None, 5)[0].tolist() == [32]
    assert horizons(None, 10**6)[0].max() == LAST_HORIZON


# ---------------------------------------------------------------- intervals and decisions


def test_nothing_drawn_says_nothing_and_everything_labelled_is_the_value():
    ratio, stages, truth = two_stages(1)
    assert interval(ratio, []) == ratio.bounds
    assert decide(ratio, [], 0.1).answer == "undecided"
    known = np.full(len(truth), OPEN)
    rest = Stage(
        known, np.ones(len(truth)), np.ones((len(truth), 3)) / 3, np.random.default_rng(0).permutation(40), truth
    )
    rest = Stage(known, rest.sizes, rest.belief, rest.drawn, truth[rest.drawn])
    assert interval(ratio, [rest]) == pytest.approx((value_of(ratio, truth),) * 2, abs=1e-4)
    assert decide(ratio, [rest], value_of(ratio, truth) - 0.01).above == math.inf


def test_what_labels_rule_out_is_ruled_out():
    """Of ten points three are wrong and four right: accuracy is at least 0.4 and at most 0.7, if nothing is skipped."""
    known = np.array([0, 0, 0, 1, 1, 1, 1, OPEN, OPEN, OPEN])
    above, below = impossible(right_or_wrong(10), known, np.array([0.39, 0.41, 0.69, 0.71]))
    assert above.tolist() == [True, False, False, False] and below.tolist() == [False, False, False, True]


@pytest.mark.parametrize("n", [20, 60, 100, 200, 400])
def test_labels_without_an_error_say_no_more_than_the_rule_of_three(n):
    """No procedure may say more than Clopper and Pearson here; this one says little less."""
    stages = session(np.random.default_rng(n), np.ones(50_000, int), np.ones(50_000), np.full(50_000, 0.9), n)
    low, high = interval(right_or_wrong(50_000), stages, budget=n)
    assert high == 1
    exact = 0.025 ** (1 / n)
    assert low <= exact
    assert 1 - low < 1.4 * (1 - exact)


@pytest.mark.parametrize("share", [0.5, 0.85, 0.99])
def test_uniform_draws_cost_at_most_a_third_of_clopper_pearsons_width(share):
    rng = np.random.default_rng(8)
    wide = exact = 0.0
    for _ in range(2):
        right = (rng.random(20_000) < share).astype(int)
        stages = session(rng, right, np.ones(20_000), np.full(20_000, 0.8), 400)
        low, high = interval(right_or_wrong(20_000), stages, budget=400)
        assert low <= right.mean() <= high
        k = stages[0].outcomes.sum()
        wide += high - low
        exact += beta.ppf(0.975, k + 1, 400 - k) - beta.ppf(0.025, k, 401 - k)
    assert wide < 1.33 * exact


def test_a_good_belief_narrows_and_a_bad_one_does_no_harm_to_the_truth():
    rng = np.random.default_rng(4)
    p = rng.beta(0.4, 0.1, 10_000)
    right = (rng.random(10_000) < p).astype(int)
    widths = []
    for belief in (p, np.full(10_000, 0.8), 1 - p):
        sizes = 0.5 / p.size + 0.5 * np.sqrt(p * (1 - p)) / np.sqrt(p * (1 - p)).sum()
        low, high = interval(right_or_wrong(10_000), session(rng, right, sizes, belief, 300), budget=300)
        assert low <= right.mean() <= high
        widths.append(high - low)
    assert widths[0] < 0.8 * widths[1] and widths[1] < widths[2]


def false_decisions(uniform: float, runs: int) -> np.ndarray:
    """(above, below): accuracy is exactly the threshold, so each answer is a false one; 5 % of each are allowed."""
    rng = np.random.default_rng(7)
    n, false = 300, np.zeros(2)
    for _ in range(runs):
        right = (rng.permutation(n) < 0.9 * n).astype(int)
        p = np.clip(0.9 + 0.3 * (right - 0.9) * rng.random(n), 0.05, 0.99)
        variance = np.sqrt(p * (1 - p))
        sizes = uniform / n + (1 - uniform) * variance / variance.sum()
        found = decide(right_or_wrong(n), session(rng, right, sizes, p, 100), 0.9, budget=100)
        false += found.above >= 20, found.below >= 20
    assert (false <= 0.05 * runs + 2 * math.sqrt(runs * 0.05 * 0.95)).all()
    return false


@pytest.mark.parametrize("uniform", [1.0, 0.5])
def test_false_decisions_at_the_boundary_are_rare_in_a_few_sessions(uniform):
    false_decisions(uniform, 50)


@pytest.mark.slow
@pytest.mark.parametrize("uniform", [1.0, 0.5])
def test_false_decisions_at_the_boundary_are_rare_looking_after_every_label(uniform):
    assert false_decisions(uniform, 500).sum() > 0  # it does use what it is allowed


def test_a_decision_comes_and_stays():
    rng = np.random.default_rng(3)
    right = (rng.random(5000) < 0.95).astype(int)
    stages = session(rng, right, np.ones(5000), np.full(5000, 0.9), 300)
    found = decide(right_or_wrong(5000), stages, 0.85, budget=300)
    assert found.answer == "above" and found.above >= 20 > found.below
    assert decide(right_or_wrong(5000), session_prefix(stages, found.draws), 0.85, budget=300).answer == "above"
    assert decide(right_or_wrong(5000), session_prefix(stages, found.draws - 1), 0.85, budget=300).answer == "undecided"
    assert decide(right_or_wrong(5000), stages, 0.99, budget=300).answer == "below"


def test_certainty_counts_the_labels_of_every_stage():
    """Six points, three in each stage, all right: only both stages together leave no other possibility."""
    ratio, belief, ones = right_or_wrong(6), np.full((6, 2), 0.5), np.ones(6)
    first = Stage(np.full(6, OPEN), ones, belief, np.array([0, 1, 2]), np.ones(3, int))
    second = Stage(first.after(), ones, belief, np.array([3, 4, 5]), np.ones(3, int))
    assert math.isinf(decide(ratio, [first, second], 0.9).above)
    assert decide(ratio, [first, second], 0.9).answer == "above"
    assert not math.isinf(decide(ratio, [first], 0.9).above) and decide(ratio, [first], 0.9).answer == "undecided"
    assert interval(ratio, [first, second]) == pytest.approx((1, 1), abs=1e-4)
    assert math.isinf(decide(ratio, [first], 0.4).above)  # three of six right: half at least


def test_a_session_of_400_labels_in_10_000_points_costs_less_than_a_second():
    rng = np.random.default_rng(0)
    p = rng.beta(4, 1, 10_000)
    right = (rng.random(10_000) < p).astype(int)
    stages = session(rng, right, 0.5 + np.sqrt(p * (1 - p)), p, 400)
    started = time.process_time()
    interval(right_or_wrong(10_000), stages, budget=400)
    assert time.process_time() - started < 1


# ---------------------------------------------------------------- metrics as ratios

PREDICTED = np.array([0, 0, 0, 1, 1, 2, 2, 2, 1, 0])
TRUE = np.array([0, 1, 0, 1, 2, 2, 0, 2, 1, 1])
SECOND = np.array([0, 1, 0, 2, 2, 2, 0, 0, 1, 0])


def of_one_class(measure, **more):
    return measure(TRUE == 1, PREDICTED == 1, **more)


@pytest.mark.parametrize(
    "kind, classes, value",
    [
        ("accuracy", (), sklearn_metrics.accuracy_score(TRUE, PREDICTED)),
        ("error", (), 1 - sklearn_metrics.accuracy_score(TRUE, PREDICTED)),
        ("precision", (1,), of_one_class(sklearn_metrics.precision_score)),
        ("recall", (1,), of_one_class(sklearn_metrics.recall_score)),
        ("f1", (1,), of_one_class(sklearn_metrics.f1_score)),
        ("fbeta", (1,), of_one_class(sklearn_metrics.fbeta_score, beta=0.5)),
        ("jaccard", (1,), of_one_class(sklearn_metrics.jaccard_score)),
        ("specificity", (1,), of_one_class(sklearn_metrics.recall_score, pos_label=False)),
        ("npv", (1,), of_one_class(sklearn_metrics.precision_score, pos_label=False)),
        ("share", (1,), (TRUE == 1).mean()),
        ("confusion", (0, 1), ((PREDICTED == 0) & (TRUE == 1)).mean()),
    ],
)
def test_a_metric_as_a_ratio_equals_scikit_learn(kind, classes, value):
    metric = table_ratio(*linear_tables(kind, 3, classes, beta=0.5), PREDICTED)
    assert value_of(metric.ratio, metric.outcomes(TRUE)) == pytest.approx(value)
    assert metric.ratio.bounds == (0, 1)


def test_kappa_cost_slices_and_differences_are_ratios_too():
    kappa = table_ratio(*kappa_tables(np.bincount(PREDICTED)), PREDICTED, bounds=(-1, 1))
    assert value_of(kappa.ratio, kappa.outcomes(TRUE)) == pytest.approx(
        sklearn_metrics.cohen_kappa_score(TRUE, PREDICTED)
    )
    matrix = np.array([[0, 1, 2], [5, 0, 1], [3, 3, 0.5]])
    cost = table_ratio(matrix, np.ones((3, 3)), PREDICTED)
    assert value_of(cost.ratio, cost.outcomes(TRUE)) == pytest.approx(matrix[PREDICTED, TRUE].mean())
    assert cost.ratio.bounds == (0, 5)
    inside = np.arange(10) < 6
    part = table_ratio(*linear_tables("accuracy", 3), PREDICTED, weight=inside.astype(float))
    assert value_of(part.ratio, part.outcomes(TRUE)) == pytest.approx((PREDICTED == TRUE)[inside].mean())
    gain = difference(PREDICTED, SECOND)
    assert value_of(gain.ratio, gain.outcomes(TRUE)) == pytest.approx(
        (PREDICTED == TRUE).mean() - (SECOND == TRUE).mean()
    )
    assert gain.ratio.bounds == (-1, 1)
    part = difference(PREDICTED, SECOND, weight=inside.astype(float))
    assert value_of(part.ratio, part.outcomes(TRUE)) == pytest.approx(
        (PREDICTED == TRUE)[inside].mean() - (SECOND == TRUE)[inside].mean()
    )
    assert gain.outcomes(np.array([SKIPPED, OPEN, *TRUE[2:]]))[:2].tolist() == [SKIPPED, OPEN]


def test_skipped_points_count_neither_above_nor_below_the_line():
    metric = table_ratio(*linear_tables("accuracy", 3), PREDICTED)
    labels = np.where(np.arange(10) < 3, SKIPPED, TRUE)
    assert value_of(metric.ratio, metric.outcomes(labels)) == pytest.approx((PREDICTED == TRUE)[3:].mean())


def test_the_belief_about_outcomes_is_that_about_their_classes():
    probabilities = np.random.default_rng(0).dirichlet(np.ones(3), 10)
    metric = table_ratio(*linear_tables("recall", 3, (1,)), PREDICTED)
    believed = metric.belief(probabilities)
    np.testing.assert_allclose(believed.sum(1), 1)
    num = (believed * metric.ratio.num[metric.ratio.kind]).sum()
    den = (believed * metric.ratio.den[metric.ratio.kind]).sum()
    assert num == pytest.approx(probabilities[PREDICTED == 1, 1].sum()) and den == pytest.approx(
        probabilities[:, 1].sum()
    )
    both = difference(PREDICTED, SECOND)
    expected = probabilities[np.arange(10), PREDICTED] - probabilities[np.arange(10), SECOND]
    gained = (both.belief(probabilities) * both.ratio.num[both.ratio.kind]).sum()
    assert gained == pytest.approx(expected.sum())


def test_accuracy_has_two_outcomes_however_many_classes_there_are():
    metric = table_ratio(*linear_tables("accuracy", 77), np.arange(5000) % 77)
    assert metric.ratio.num.shape == (1, 2)
    assert table_ratio(*linear_tables("recall", 77, (3,)), np.arange(5000) % 77).ratio.num.shape == (2, 2)


# ---------------------------------------------------------------- at the door


def test_what_cannot_be_bet_on_is_refused_by_name():
    with pytest.raises(ValueError, match="negative"):
        Ratio.of_points(np.ones((2, 2)), -np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"num of shape \(2,\)"):
        Ratio.of_points(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="give bounds"):
        Ratio.of_points(np.ones((2, 2)), np.zeros((2, 2)))
    known, sizes, belief = np.array([OPEN, 1, OPEN]), np.array([1.0, 1, 0]), np.full((3, 2), 0.5)
    none = np.array([], int)
    with pytest.raises(ValueError, match="point 1 was drawn but was not open"):
        Stage(known, np.ones(3), belief, np.array([1]), np.array([0]))
    with pytest.raises(ValueError, match="distinct"):
        Stage(known, np.ones(3), belief, np.array([0, 0]), np.array([0, 1]))
    with pytest.raises(ValueError, match="size 0"):
        Stage(known, sizes, belief, none, none)
    for classes in ((), (1,)):
        with pytest.raises(KeyError, match="mcc"):
            linear_tables("mcc", 3, classes)
