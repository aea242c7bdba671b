"""The difference estimator: exact where it must be, unbiased whatever is believed."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import altmas
from altmas.history import History
from altmas.intervals import Tails, largest_unseen
from altmas.methods.assured import Assured
from altmas.methods.assured.estimator import Difference
from altmas.methods.assured.linearised import Estimators, linearised, linearised_sum
from altmas.methods.assured.parts import FEW, StageSample
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.stages import Stage
from altmas.methods.assured.variance import Group, shifted_means
from altmas.methods.assured.weights import shifted_odds
from altmas.metrics import RowCodes, metric_set, table_of
from altmas.metrics.formulas import positive
from altmas.metrics.influence import sum_of_items
from altmas.task import Task
from assured_world import belief, constant_belief, difference, runs, shuffled_belief, world, wrong_belief

TAIL = 3.689
TAILS = Tails(TAIL, TAIL)


def test_a_constant_belief_and_uniform_draws_are_random_sampling():
    pool, truth = world(n=500)
    drawn = np.random.default_rng(0).permutation(500)[:60]
    found = difference(pool, truth, drawn, np.full(500, 60 / 500), np.full(500, 0.5))
    right = (truth == pool.predictions)[drawn]
    accuracy = linearised(found, metric_set(["accuracy"], pool)[0], TAILS)
    assert accuracy.value == pytest.approx(right.mean())
    (group,) = accuracy.groups
    assert group.shown == pytest.approx((1 - 60 / 500) / 60 * right.var(ddof=1), rel=1e-9)
    assert accuracy.effective_labels() == pytest.approx(1 / (accuracy.variance / (500 * accuracy.spread) + 1 / 500))
    hazard = sum(1 / (500 - drawn) for drawn in range(60))
    assert group.unseen_low == pytest.approx(60 * (1 - np.exp(-TAIL / 60)) * 0.5 / hazard / 500, rel=1e-6)


def test_two_groups_add_up_to_the_variance_of_a_class_metric():
    """Recall as two groups of points and as one dense influence: the same variance, skewness and residuals."""
    pool, truth = world(n=500)
    drawn = np.random.default_rng(0).permutation(500)[:80]
    found = difference(pool, truth, drawn, np.full(500, 80 / 500), np.linspace(0.3, 0.95, 500))
    recall = metric_set(["recall[1]"], pool)[0]
    own, other = linearised(found, recall, TAILS).groups
    whole = linearised(found, replace(recall, kind="callable", classes=()), TAILS).groups[0]
    assert own.shown + other.shown == pytest.approx(whole.shown)
    assert own.believed + other.believed == pytest.approx(whole.believed)
    assert own.third + other.third == pytest.approx(whole.third)


def test_row_sums_are_the_known_ones_and_cells_may_be_negative():
    pool, truth = world(n=400)
    drawn = np.arange(40)
    found = difference(pool, truth, drawn, np.full(400, 0.1), np.full(400, 0.99))
    np.testing.assert_allclose(found.table.sum(1), np.bincount(pool.predictions, minlength=3))
    np.testing.assert_allclose(positive(np.array([[-1.0, 3.0], [2.0, 0.0]])), [[0, 2], [2, 0]])


def test_everything_labelled_is_exact():
    pool, truth = world(n=200)
    found = difference(pool, truth, np.arange(150), np.full(200, 0.75), np.full(200, 0.3), range(150, 200))
    np.testing.assert_allclose(found.table, table_of(pool.predictions, truth, 3))


def test_volunteered_labels_stand_for_themselves_alone():
    """Someone told every error there is: the drawn rest is all right, and the estimate is the truth."""
    pool, truth = world(n=300)
    wrong = np.flatnonzero(truth != pool.predictions)
    drawn = np.flatnonzero(truth == pool.predictions)[:50]
    found = difference(pool, truth, drawn, np.full(300, 0.2), np.full(300, 0.6), wrong.tolist())
    assert np.trace(found.table) / 300 == pytest.approx((truth == pool.predictions).mean())


def test_unequal_draws_are_unbiased_for_any_fixed_belief():
    """Mean error over 600 samples within 4 standard errors, and the variance is the one that is reported."""
    pool, truth = world(n=600)
    rates = np.random.default_rng(4).uniform(0.02, 0.3, 600)
    agree = np.random.default_rng(5).uniform(0.02, 0.98, 600)
    chances = -np.expm1(-rates)
    errors, variances = [], []
    accuracy = metric_set(["accuracy"], pool)[0]
    for seed in range(600):
        rng = np.random.default_rng(seed)
        drawn = np.flatnonzero(rng.random(600) < chances)
        one = linearised(difference(pool, truth, drawn, chances, agree), accuracy, TAILS)
        errors.append(one.value - (truth == pool.predictions).mean())
        variances.append(one.groups[0].shown)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / 600**0.5
    assert np.mean(variances) == pytest.approx(np.var(errors), rel=0.2)


SABOTAGE = pytest.mark.parametrize("sabotage", [shuffled_belief, wrong_belief])


def check_sabotage(sabotage, count: int) -> None:
    """Mean error 0 within 3.5 standard errors; coverage at least 0.93 within 2.5 Monte Carlo errors."""
    pool, truth = world(n=1500)
    found = runs(Assured(belief=sabotage), pool, truth, ["accuracy", "recall[0]", "macro_f1"], 150, count, batch=50)
    error = found[:, :, 0] - found[:, :, 3]
    assert (np.abs(error.mean(0)) < 3.5 * error.std(0) / count**0.5).all()
    covered = (found[:, :, 1] <= found[:, :, 3]) & (found[:, :, 3] <= found[:, :, 2])
    assert (covered.mean(0) > 0.93 - 2.5 * (0.07 * 0.93 / count) ** 0.5).all()
    if sabotage is shuffled_belief:  # a belief that is wrong in the same way everywhere is as good as none
        honest = runs(Assured(belief=constant_belief), pool, truth, ["accuracy"], 150, 10, batch=50)
        assert np.ptp(found[:, 0, 1:3], 1).mean() > np.ptp(honest[:, 0, 1:3], 1).mean()


def test_the_worked_example_of_the_documentation():
    """docs/assured.md: five points of sizes 1, 1, 1, 2, 2, threshold 0.9, belief 0.9 everywhere (V5)."""
    pool = altmas.Pool(None, [0, 0, 0, 0, 0], classes=[0, 1])
    truth = np.array([0, 1, 0, 0, 0])
    chances = -np.expm1(-0.9 * np.array([1, 1, 1, 2, 2]))
    np.testing.assert_allclose(chances, [0.59, 0.59, 0.59, 0.83, 0.83], atol=0.005)
    found = difference(pool, truth, np.array([3, 1, 4]), chances, np.full(5, 0.9))
    assert np.trace(found.expected) == pytest.approx(3.8)
    assert np.trace(found.correction) == pytest.approx(-1.07, abs=0.005)
    assert linearised(found, metric_set(["accuracy"], pool)[0], TAILS).value == pytest.approx(0.5465, abs=1e-4)


def test_stages_count_by_their_labels_and_a_complete_one_alone():
    """(V6): two stages of 100 and 90 points with 10 and 30 labels; once the second is complete it counts alone."""
    pool, truth = world(n=100)
    known = np.full(100, -1)
    known[:40] = truth[:40]
    first = np.ones(100, bool)
    second = np.arange(100) >= 10
    flat = belief(pool, np.full(100, 0.8), 3)

    def sample(population, rows, gain):
        exposure = np.where(population, 0.3, 0.0)
        stage = Stage(np.ones(100, bool), ~population, population, np.ones(100), np.zeros(100), rows, exposure, gain)
        return StageSample(stage, flat, (known >= 0) & ~population, rows)

    both = [sample(first, np.arange(10), np.array([1.0])), sample(second, np.arange(10, 40), np.array([2.0]))]
    found = Difference(both, pool, known, np.ones(100, bool), np.zeros(0, np.int64))
    worth = np.array([10 / (100 * 90), 2 * 30 / (90 * 60)])
    np.testing.assert_allclose(found.shares[:, 0], worth / worth.sum())
    known = truth.copy()
    both = [sample(first, np.arange(10), np.ones(1)), sample(second, np.arange(10, 100), np.ones(1))]
    whole = Difference(both, pool, known, np.ones(100, bool), np.zeros(0, np.int64))
    assert whole.shares[1] > 1 - 1e-9


# ---------------------------------------------------------------- against loops over points


class Two:
    """Two stages of a pool of 40 points in 3 classes: labels told before, between and after, one skip, a slice."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self.pool, self.truth = world(n=40, accuracy=0.7)
        self.first = rng.choice(40, 8, replace=False)
        rest = rng.permutation(np.setdiff1d(np.arange(40), self.first))
        self.told, self.second, self.skipped = rest[:3], rest[3:15], rest[15:16]
        self.inside = np.arange(40) % 4 != 0
        self.known = np.full(40, -1)
        labelled = np.concatenate([self.first, self.told, self.second])
        self.known[labelled] = self.truth[labelled]
        self.agree = rng.uniform(0.2, 0.95, (2, 40))
        self.exposures = rng.uniform(0.1, 0.8, (2, 40))
        populations = np.ones((2, 40), bool)
        populations[1, [*self.first, *self.told]] = False
        self.exposures[~populations] = 0.0
        self.samples = [
            StageSample(
                Stage(
                    np.ones(40, bool),
                    ~populations[s],
                    populations[s],
                    np.ones(40),
                    np.zeros(40),
                    rows,
                    self.exposures[s],
                    np.array([gain]),
                ),
                belief(self.pool, self.agree[s], 3),
                (self.known >= 0) & ~populations[s],
                rows,
            )
            for s, (rows, gain) in enumerate([(self.first, 1.0), (self.second, 1.6)])
        ]
        self.found = Difference(self.samples, self.pool, self.known, self.inside, self.skipped)

    def believed(self, s: int, i: int) -> np.ndarray:
        row = np.full(3, (1 - self.agree[s, i]) / 2)
        row[self.pool.predictions[i]] = self.agree[s, i]
        return row

    def shares(self, inside: np.ndarray | None = None) -> np.ndarray:
        """c_s of (V12): labels and points of the populations among those inside; (V6) for all 40 points."""
        inside = self.inside if inside is None else inside
        worth = []
        for sample, gain in zip(self.samples, (1.0, 1.6), strict=True):
            n, size = sum(inside[i] for i in sample.rows), sum(inside & sample.stage.population)
            worth.append(gain * n / (size * (size - n)))
        return np.array(worth) / sum(worth)

    def chance(self, s: int, i: int) -> float:
        return 1 - np.exp(-self.exposures[s, i])

    def expansion(self, s: int) -> dict[int, float]:
        """h_s (1/p_i - 1) of the sample inside (V5)."""
        rows = [i for i in (self.first, self.second)[s].tolist() if self.inside[i]]
        before = set(self.first.tolist()) | set(self.told.tolist()) if s else set()
        rest = [i for i in range(40) if self.inside[i] and i not in before and i not in rows]
        odds = {i: 1 / self.chance(s, i) - 1 for i in rows}
        return {i: len(rest) * one / sum(odds.values()) for i, one in odds.items()}

    def table(self, s: int) -> tuple[np.ndarray, np.ndarray]:
        """(known labels and the belief about the rest, correction) of T_s (V5)."""
        expected, correction = np.zeros((3, 3)), np.zeros((3, 3))
        expansion = self.expansion(s)
        before = set(self.first.tolist()) | set(self.told.tolist()) if s else set()
        for i in np.flatnonzero(self.inside).tolist():
            a = self.pool.predictions[i]
            if i in before or i in expansion:
                expected[a, self.truth[i]] += 1
            else:
                expected[a] += self.believed(s, i)
            if i in expansion:
                correction[a] += expansion[i] * (np.eye(3)[self.truth[i]] - self.believed(s, i))
        return expected, correction


@pytest.fixture(scope="module")
def two() -> Two:
    return Two()


def test_the_table_of_two_stages_is_the_sum_over_points(two):
    np.testing.assert_allclose(two.found.shares[:, 0], two.shares(np.ones(40, bool)))
    assert [float(part.share[0]) for part in two.found.parts] == pytest.approx(two.shares())
    parts = [two.table(s) for s in range(2)]
    expected, correction = (sum(c * part[k] for c, part in zip(two.shares(), parts, strict=True)) for k in range(2))
    np.testing.assert_allclose(two.found.expected, expected)
    np.testing.assert_allclose(two.found.correction, correction, atol=1e-12)
    np.testing.assert_allclose(two.found.table, expected + correction, atol=1e-12)
    np.testing.assert_allclose(two.found.table.sum(1), np.bincount(two.pool.predictions[two.inside], minlength=3))


def test_labels_of_two_stages_are_counted_inside(two):
    inside = two.inside
    known = np.concatenate([two.first, two.told, two.second])
    assert two.found.labels == inside[known].sum()
    assert two.found.drawn == inside[two.first].sum() + inside[two.second].sum()
    left = inside & (two.known < 0)
    left[two.skipped] = False
    np.testing.assert_array_equal(two.found.unlabelled, left)
    np.testing.assert_allclose(two.found.exposure, two.exposures.sum(0))
    known_inside = known[inside[known]]
    table = table_of(two.pool.predictions[known_inside], two.truth[known_inside], 3)
    np.testing.assert_allclose(two.found.known_weights.table(RowCodes((), two.pool.predictions, 3)), table)


def test_accuracy_of_two_stages_has_the_variance_of_a_loop(two):
    """sum over stages of (c_s h (1/p - 1) (e - mean))^2 / (1 - p) n/(n - 1), e = right - believed to be, over N^2.

    The mean and its degree of freedom are taken off from ten labels of a stage on.
    """
    size = two.inside.sum()
    accuracy = linearised(two.found, metric_set(["accuracy"], two.pool)[0], TAILS)
    assert accuracy.value == pytest.approx(np.trace(two.found.table) / size)
    assert (accuracy.size, accuracy.labels, accuracy.drawn) == (size, two.found.labels, two.found.drawn)
    assert accuracy.unlabelled == two.found.unlabelled.sum() and accuracy.skipped == two.inside[two.skipped].sum()
    right = (two.truth == two.pool.predictions).astype(float)
    squares, terms = [], []
    for s in range(2):
        expansion = two.expansion(s)
        rows, x = list(expansion), np.array(list(expansion.values()))
        e = np.array([right[i] - two.agree[s, i] for i in rows]) / size
        mean, n = (x * e).sum() / x.sum(), len(rows)
        mean, lost = (mean, n / (n - 1)) if n >= FEW else (0.0, 1.0)
        p = np.array([two.chance(s, i) for i in rows])
        squares.extend((two.shares()[s] * x * (e - mean)) ** 2 / (1 - p) * lost)
        terms.extend(two.shares()[s] * x * e)
    (group,) = accuracy.groups
    assert group.shown == pytest.approx(np.sum(squares))
    assert group.worth == pytest.approx(np.sum(squares) ** 2 / np.sum(np.square(squares)))
    np.testing.assert_allclose(accuracy.terms, terms)
    assert accuracy.rows.tolist() == [*two.first[two.inside[two.first]], *two.second[two.inside[two.second]]]


def test_what_the_belief_expects_is_the_moments_of_a_loop(two):
    """sum over open points of c_s^2 (1 - p)/p Var_f(right), each for all points like it that were labelled."""
    size = two.inside.sum()
    (group,) = linearised(two.found, metric_set(["accuracy"], two.pool)[0], TAILS).groups
    second = third = 0.0
    for i in np.flatnonzero(two.found.unlabelled).tolist():
        a = two.agree[1, i]  # the last belief
        like = np.exp(two.exposures[:, i].sum())
        for s in range(2):
            p, c = two.chance(s, i), two.shares()[s]
            if p > 0:
                second += like * c**2 * (1 - p) / p * a * (1 - a) / size**2
                third += like * c**3 * (1 - p) / p * max(1 / p - 2, 0) * a * (1 - a) * (1 - 2 * a) / size**3
    assert group.believed == pytest.approx(second)
    assert group.third == pytest.approx(third)


def test_what_could_be_unseen_is_the_knapsack_of_the_open_points(two):
    """Hazards by a loop over the draws inside (V11): after each the sizes of those left, one over them added up."""
    size, open_ = two.inside.sum(), two.found.unlabelled
    (group,) = linearised(two.found, metric_set(["accuracy"], two.pool)[0], TAILS).groups
    hazard, draws = np.zeros(40), 0
    for sample in two.samples:
        left, reached = sample.stage.sizes[sample.stage.population & two.inside].sum(), 0.0
        for row in sample.stage.used:
            if two.inside[row]:
                reached += 1 / left
                left -= sample.stage.sizes[row]
                draws += 1
        hazard += np.where(sample.stage.population, sample.stage.sizes * reached, 0.0)
    tail = draws * (1 - np.exp(-TAIL / draws))
    agree = two.agree[1, open_]
    assert group.unseen_low == pytest.approx(largest_unseen(agree / size, hazard[open_], tail))
    assert group.unseen_high == pytest.approx(largest_unseen((1 - agree) / size, hazard[open_], tail))


def test_what_labels_have_met_of_a_side_makes_what_is_unseen_there_count_less(two):
    """(V26) by the expanded errors for the lower end, and by the right answers for the upper one."""
    accuracy, tails = metric_set(["accuracy"], two.pool)[0], Tails(TAIL, TAIL - np.log(2))
    linear = linearised(two.found, accuracy, tails)
    (group,), (before,) = linear.groups, linearised(two.found, accuracy, TAILS).groups
    size, agree, open_ = two.inside.sum(), two.agree[1], two.found.unlabelled
    hazard, draws = two.found.hazard_within(two.inside)
    known = two.found.known[linear.rows]
    weights = np.concatenate([part.share * part.expansion for part in two.found.parts])
    for right, gain, unseen, alone in (
        (False, agree, group.unseen_low, before.unseen_low),
        (True, 1 - agree, group.unseen_high, before.unseen_high),
    ):
        met = weights[(known == two.pool.predictions[linear.rows]) == right]
        events = met.sum() ** 2 / (met**2).sum()
        tail = TAIL - np.log(2) * events / (events + 4)
        assert unseen == pytest.approx(largest_unseen(gain[open_] / size, hazard[open_], tail, draws))
        assert unseen < alone


def test_the_least_step_is_that_of_a_loop_over_points_and_classes(two):
    rng = np.random.default_rng(0)
    points = rng.permutation(len(two.pool))[:30]
    names = ("accuracy", "share[1]", "mean[0=1,1=2,2=5]", "share[0] - share[2]", "confusion[1,0]", "kappa")
    for metric in metric_set(names, two.pool):
        sides = [(factor, two.found.side(part).items, np.ones(40, bool)) for factor, part in metric.parts]
        items = sides[0][1] if len(sides) == 1 else sum_of_items(sides)
        steps = [
            abs(one - other)
            for moves in items.rows(points)
            for one, other in combinations(moves.tolist(), 2)
            if abs(one - other) > 1e-12
        ]
        assert items.least_step(points) == pytest.approx(min(steps)), metric.name


def test_a_class_that_was_drawn_often_hides_less_than_one_that_was_not(two):
    """The same design, other counts: what could be unseen of a predicted class follows its own draws.

    With few of them it is measured from what is believed or from the estimate, whichever is further.
    """
    metrics = metric_set([f"precision[{c}]" for c in range(3)], two.pool)
    for code, metric in enumerate(metrics):
        linear = linearised(two.found, metric, TAILS)
        own = linear.groups[0]
        hazard, draws = two.found.hazard_within(two.inside & (two.pool.predictions == code))
        assert draws == sum(
            (two.pool.predictions[rows[two.inside[rows]]] == code).sum() for rows in (two.first, two.second)
        )
        open_ = two.found.unlabelled & (two.pool.predictions == code)
        whole = (two.inside & (two.pool.predictions == code)).sum()
        believed = two.agree[1, open_] / whole
        correction = linear.terms[two.pool.predictions[linear.rows] == code].sum()
        centres = [
            believed,
            shifted_means(correction, believed, np.zeros(len(believed)), np.full(len(believed), 1 / whole)),
        ]
        unseen = [largest_unseen(centre, hazard[open_], TAIL, draws) for centre in centres[: 1 + (draws < FEW)]]
        assert own.unseen_low == pytest.approx(max(unseen))


def test_the_variance_is_never_less_than_what_the_labels_show(two):
    for name in ("accuracy", "recall[1]", "precision[2]", "kappa"):
        one = linearised(two.found, metric_set([name], two.pool)[0], TAILS)
        told, scales = one.evidence(one.value), (1.0,) * len(one.groups)
        if len(one.groups) == 2:
            scales = one.metric.scales_at(one.sides[0][2].at_base, one.value)
        scaled = list(zip(scales, one.groups, strict=True))
        assert told.variance == one.variance >= sum(a**2 * group.shown for a, group in scaled) * (1 - 1e-12)
        assert told.skew_low >= 0 and told.skew_high >= 0 and min(told.skew_low, told.skew_high) == 0
        third, second = (
            sum(a**3 * group.third for a, group in scaled),
            sum(a**2 * group.believed for a, group in scaled),
        )
        assert told.skew_high - told.skew_low == pytest.approx(third / second)
        assert told.curve == pytest.approx(one.variance / (one.size * one.spread))
        assert told.unseen_low == max(a * group.unseen_low for a, group in scaled)
        assert told.unseen_high == max(a * group.unseen_high for a, group in scaled)
        n = one.effective_labels()
        assert one.size * (1 / n - 1 / one.size) * one.spread == pytest.approx(one.variance)


def test_the_groups_of_a_class_metric_are_those_predicted_as_it_and_the_others(two):
    precision = linearised(two.found, metric_set(["precision[2]"], two.pool)[0], TAILS)
    own, other = precision.groups
    assert own.believed > 0 and own.unseen_low > 0  # only labels of points called 2 move it
    assert other.believed == pytest.approx(0, abs=1e-15) and other.unseen_low == pytest.approx(0, abs=1e-12)


def test_at_another_value_the_groups_of_a_ratio_count_by_its_own_terms(two):
    """Recall 0.5 instead of 0.8, say: found points count 1 - q, missed ones q, squared in the variance (V3)."""
    recall = linearised(two.found, metric_set(["recall[1]"], two.pool)[0], TAILS)
    groups = [Group(0.04, 5.0, 0.0, 0.0, 0.1, 0.2), Group(0.01, 3.0, 0.0, 0.0, 0.3, 0.05)]
    ((factor, among, side),) = recall.sides
    one = replace(recall, value=0.8, groups=groups, sides=((factor, among, replace(side, at_base=0.8)),))
    for candidate in (0.8, 0.5, 0.95):
        found, missed = (1 - candidate) / (1 - 0.8), candidate / 0.8
        told = one.evidence(candidate)
        assert told.variance == pytest.approx(found**2 * 0.04 + missed**2 * 0.01)
        assert told.unseen_low == pytest.approx(max(found * 0.1, missed * 0.3))
        assert told.unseen_high == pytest.approx(max(found * 0.2, missed * 0.05))
    prior = RECIPE.prior_df  # what the belief expects counts as much as so many terms, if it is more
    doubted = replace(one, groups=[Group(0.01, 2.0, 0.05, 0.0, 0, 0), Group(0.0, 0.0, 0.03, 0.0, 0, 0)])
    assert doubted.variance == pytest.approx((prior * 0.08 + 2 * 0.01) / (prior + 2))
    assert replace(doubted, spread=0.0).evidence(0.8).curve == 0
    skewed = replace(one, groups=[Group(0.0, 0.0, 0.02, 0.003, 0, 0), Group(0.0, 0.0, 0.01, -0.001, 0, 0)])
    found, missed = 0.5 / 0.2, 0.5 / 0.8
    third, second = found**3 * 0.003 - missed**3 * 0.001, found**2 * 0.02 + missed**2 * 0.01
    assert skewed.evidence(0.5).skew_high == pytest.approx(third / second)


def test_a_difference_between_two_slices_adds_up_from_both(two):
    """Disjoint points: values are subtracted, variances added, terms signed; every label counts once."""
    change, odd, even = metric_set(
        ["accuracy@half=odd - accuracy@half=even", "accuracy@half=odd", "accuracy@half=even"], two.pool
    )
    labels = {int(row): int(two.known[row]) for row in np.flatnonzero(two.known >= 0)}
    among = Estimators(two.samples, Task(two.pool, (change,)), History(40, labels=labels))
    whole = linearised_sum(change, among, TAILS)
    sides = [linearised(among(one.members(two.pool)), one, TAILS) for one in (odd, even)]
    assert whole.value == pytest.approx(sides[0].value - sides[1].value)
    (group,) = whole.groups
    assert group.shown == pytest.approx(sum(side.groups[0].shown for side in sides))
    assert group.believed == pytest.approx(sum(side.groups[0].believed for side in sides))
    signed = [
        (row, sign * term)
        for sign, side in zip((1, -1), sides, strict=True)
        for row, term in zip(side.rows, side.terms, strict=True)
    ]
    found = list(zip(whole.rows.tolist(), whole.terms.tolist(), strict=True))
    assert sorted(found) == [(row, pytest.approx(term)) for row, term in sorted(signed)]
    assert whole.labels == sum(side.labels for side in sides) and whole.drawn == min(side.drawn for side in sides)
    assert whole.size == 40 and whole.unlabelled == sum(side.unlabelled for side in sides)


def test_shifted_odds_add_up_to_what_is_known():
    """In each bin the odds are multiplied by one factor; chances of 0 and 1 stay (S10)."""
    chances = np.array([0.1, 0.4, 0.8, 0.0, 0.5, 0.6, 1.0])
    bins = np.array([0, 0, 0, 0, 1, 1, 1])
    found = shifted_odds(chances, bins, np.array([2.0, 1.3]))
    np.testing.assert_allclose(np.bincount(bins, found), [2.0, 1.3], atol=1e-6)
    assert found[3] == 0 and found[6] == 1
    for rows in (slice(0, 3), slice(4, 6)):
        factors = found[rows] / (1 - found[rows]) * (1 - chances[rows]) / chances[rows]
        np.testing.assert_allclose(factors, factors[0], rtol=1e-5)
    beyond = shifted_odds(chances, bins, np.array([9.0, 0.0]))
    assert beyond[:3].min() > 0.99 and beyond[4:6].max() < 0.01


def test_everything_labelled_has_no_variance_and_counts_every_point():
    pool, truth = world(n=60)
    found = difference(pool, truth, np.arange(60), np.full(60, 1 - 1e-13), np.full(60, 0.7))
    for name in ("accuracy", "recall[1]", "kappa"):
        metric = metric_set([name], pool)[0]
        one = linearised(found, metric, TAILS)
        assert one.value == pytest.approx(float(metric.of_table(table_of(pool.predictions, truth, 3))))
        assert one.variance == pytest.approx(0, abs=1e-12) and one.unlabelled == 0
        assert one.effective_labels() == pytest.approx(60, rel=1e-6)
    flat = replace(
        one, groups=[Group(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)], metric=metric_set(["accuracy"], pool)[0], spread=0.0
    )
    assert flat.variance == 0 and flat.effective_labels() == 60  # nothing to estimate is not nothing known
    assert np.isnan(replace(flat, groups=[Group(0.1, 1.0, 0.1, 0.0, 0.0, 0.0)]).effective_labels())


@SABOTAGE
def test_a_sabotaged_belief_costs_width_and_nothing_else_in_a_few_runs(sabotage):
    check_sabotage(sabotage, 12)


@pytest.mark.slow
@SABOTAGE
def test_a_sabotaged_belief_costs_width_and_nothing_else(sabotage):
    check_sabotage(sabotage, 300)


def test_stages_count_in_every_fold_by_the_gain_of_the_fold(two):
    """(V6) by folds: the table is the sum over folds of what stages say of their points, each with its own shares."""
    folds, gains = np.arange(40) % 2, ([1.0, 1.0], [1.6, 4.0])
    samples = [
        replace(sample, folds=folds, stage=replace(sample.stage, gain=np.array(gain)))
        for sample, gain in zip(two.samples, gains, strict=True)
    ]
    found = Difference(samples, two.pool, two.known, two.inside, two.skipped)
    assert found.shares.shape == (2, 2) and found.shares[1, 1] > found.shares[1, 0]
    right, total, terms = two.known == two.pool.predictions, 0.0, []
    for s, part in enumerate(found.parts):
        known, expansion = set(part.labelled.tolist()), two.expansion(s)
        for i in np.flatnonzero(two.inside):
            share = part.share[folds[i]]
            total += share * (right[i] if i in known else two.agree[s, i])
            if i in expansion:
                terms.append(share * expansion[i] * (right[i] - two.agree[s, i]))
    assert np.trace(found.table) == pytest.approx(total + sum(terms))
    linear = linearised(found, metric_set("accuracy", two.pool)[0], Tails(3.7, 3.7))
    np.testing.assert_allclose(np.sort(linear.terms * two.inside.sum()), np.sort(terms))
