"""Score mixtures: printed numbers, families that are distributions, chains that find a known posterior, coverage."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import altmas
from altmas.history import History
from altmas.methods.related.spe import Spe, recalibrated, share_of_piles
from altmas.methods.related.spe.families import FAMILIES, start_of
from altmas.methods.related.spe.metropolis import curvature, metropolis, r_hat
from altmas.methods.related.spe.mixture import (
    BinnedScores,
    Mixture,
    curve,
    em_start,
    fit,
    fit_as_far_as_labels_bear_it,
    logit,
    piles_of,
    sample,
)
from altmas.metrics import metric_set, truth_values
from altmas.task import Task

THETA = np.array([np.log(0.3 / 0.7), -1.0, 0.0, 1.5, np.log(0.8)])  # pr .3, N(-1, 1), N(1.5, .8)


def mixture_of(scores, y=None, labelled=(), families=("normal", "normal"), bins=300):
    binned, labelled = BinnedScores.of(np.asarray(scores, float), bins), np.asarray(labelled, int)
    rest = np.setdiff1d(np.arange(len(scores)), labelled)
    known = np.zeros(0, bool) if y is None else np.asarray(y, bool)[labelled]
    counts = (binned.counts(rest), binned.counts(labelled[~known]), binned.counts(labelled[known]))
    return Mixture(binned, *counts, families)


def drawn_scores(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return np.where(y, rng.normal(1.5, 0.8, n), rng.normal(-1, 1, n)), y


def test_the_curve_at_a_threshold_to_its_printed_digits():
    mixture = mixture_of([-0.5, 0.2, 1.0])
    f_0, f_1 = (float(mixture.distribution(y, np.array(0.2), THETA)) for y in (0, 1))
    assert_allclose(curve(0.3, f_0, f_1), [0.77927, 0.94792, 0.90383], atol=5e-6)
    assert_allclose(mixture.responsibility(THETA), [0.02598, 0.22715, 0.76504], atol=5e-6)


def test_the_curve_is_what_simulation_gives():
    scores, y = drawn_scores(400_000, 0)
    called = scores > 0.2
    found = [y[called].mean(), called[y].mean(), (called == y).mean()]
    assert_allclose(found, [0.7798, 0.9473, 0.9041], atol=0.003)  # four standard errors of the precision


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_a_distribution_with_about_the_moments_asked_for(name):
    support = (-4.0, 6.0)
    location, log_scale = map(np.array, start_of(name, 1.0, 0.9, support))
    family = FAMILIES[name]
    mirrored = name.startswith("mirrored")
    grid = np.linspace(-12 if mirrored else -3.999, 12, 40_000)
    density = np.exp(family.log_density(grid, location, log_scale, support))
    if name == "truncated-normal" or mirrored:
        density[grid > support[1]] = 0
    assert integrate.trapezoid(density, grid) == pytest.approx(1, abs=1e-3)
    at = np.array([-1.0, 0.5, 2.0])
    below = [integrate.trapezoid(density[grid <= x], grid[grid <= x]) for x in at]
    assert_allclose(family.distribution(at, location, log_scale, support), below, atol=1e-3)
    mean = integrate.trapezoid(density * grid, grid)
    assert mean == pytest.approx(1.0, abs=0.15)
    assert np.sqrt(integrate.trapezoid(density * (grid - mean) ** 2, grid)) == pytest.approx(0.9, abs=0.15)


def test_families_agree_with_scipy():
    s, support = np.array([0.3, 1.0, 4.0]), (0.0, 5.0)
    gamma = FAMILIES["gamma"].log_density(s, np.array(2.0), np.log(1.5), support)
    assert_allclose(gamma, stats.gamma.logpdf(s, (2 / 1.5) ** 2, scale=1.5**2 / 2))
    point = FAMILIES["gamma"].log_density(s, np.array(2.0), np.array(-400.0), support)
    assert (point == -np.inf).all()  # no width at all is impossible, and no arithmetic fails over it
    weibull = FAMILIES["weibull"].log_density(s, np.array(2.0), np.log(0.5), support)
    assert_allclose(weibull, stats.weibull_min.logpdf(s, 4.0, scale=2.0))
    cut = FAMILIES["truncated-normal"].log_density(s, np.array(1.0), np.log(2.0), support)
    assert_allclose(cut, stats.truncnorm.logpdf(s, -0.5, 2.0, loc=1, scale=2))


def test_bins_change_the_likelihood_little():
    scores, y = drawn_scores(2000, 1)
    labelled = np.arange(60)
    exact, binned = (mixture_of(scores, y, labelled, bins=bins) for bins in (10_000, 300))
    other = THETA + [0.1, 0.05, 0.1, -0.1, 0.05]
    assert len(exact.scores.values) == 2000 and len(binned.scores.values) <= 300
    gaps = [m.log_likelihood(THETA) - m.log_likelihood(other) for m in (exact, binned)]
    assert gaps[1] == pytest.approx(gaps[0], abs=0.2)
    no, yes = stats.norm.pdf(scores, -1, 1), stats.norm.pdf(scores, 1.5, 0.8)
    by_hand = np.log(np.where(y, 0.3 * yes, 0.7 * no)[:60]).sum() + np.log(0.7 * no + 0.3 * yes)[60:].sum()
    assert exact.log_likelihood(THETA) == pytest.approx(by_hand)


def test_without_any_label_the_higher_component_is_the_positive_one():
    scores, _ = drawn_scores(3000, 2)
    found = fit(mixture_of(scores), ["normal"])
    assert_allclose(found.theta, THETA, atol=0.25)
    assert_allclose(em_start(mixture_of(scores))[1], [-1, 1.5], atol=0.4)  # slow, but only a start
    assert (sample(found, np.random.default_rng(0), steps=400).kept[..., 3] > -1).all()


def test_the_family_that_made_the_scores_wins():
    rng = np.random.default_rng(3)
    y = rng.random(4000) < 0.4
    scores = np.where(y, rng.normal(9, 1, 4000), rng.gamma(2.0, 1.0, 4000))
    labelled = np.arange(200)
    found = fit(mixture_of(scores, y, labelled), list(FAMILIES))
    assert found.mixture.families[0] in ("gamma", "weibull")
    assert found.mixture.ks_distance(found.theta) < 0.03
    assert found.bic < fit(mixture_of(scores, y, labelled), ["normal"]).bic - 50


def test_unlabelled_points_count_fully_where_families_fit_and_less_where_labels_contradict_them():
    scores, y = drawn_scores(3000, 4)
    labelled = np.arange(60)
    assert fit_as_far_as_labels_bear_it(mixture_of(scores, y, labelled), list(FAMILIES))[1] == 1
    rng = np.random.default_rng(5)
    right = rng.random(3000) < 0.9  # two lumps of scores that have little to do with being right
    lumps = np.where(rng.random(3000) < 0.5, rng.normal(0, 0.3, 3000), rng.normal(6, 0.3, 3000)) + 0.3 * right
    found, weight = fit_as_far_as_labels_bear_it(mixture_of(lumps, right, labelled), list(FAMILIES))
    alone = fit(mixture_of(lumps, right, labelled), list(FAMILIES))
    share = [1 / (1 + np.exp(-one.theta[0])) for one in (alone, found)]
    assert weight < 1 and abs(share[1] - 0.9) < 0.1 < abs(share[0] - 0.9)


def test_chains_find_a_known_posterior_and_say_when_they_do_not():
    covariance = np.array([[2.0, 0.9], [0.9, 0.5]])
    inverse = np.linalg.inv(covariance)

    def density(x):
        return -0.5 * np.einsum("...i,ij,...j->...", x - 3, inverse, x - 3)

    assert_allclose(curvature(density, np.full(2, 3.0)), covariance, rtol=1e-5)
    chains = metropolis(density, np.full(2, 3.0), np.eye(2), np.random.default_rng(0), 4, 4000)
    kept = chains.kept.reshape(-1, 2)
    assert_allclose(kept.mean(0), 3, atol=0.2)
    assert_allclose(np.cov(kept.T), covariance, atol=0.3)
    assert (chains.r_hat < 1.05).all() and 0.15 < chains.accepted < 0.5
    apart = np.random.default_rng(0).normal(0, 1, (4, 500, 1)) + np.array([0, 0, 3, 3])[:, None, None]
    assert r_hat(apart)[0] > 1.5
    assert np.isinf(r_hat(np.ones((2, 10, 1)))[0])


def binary_pool(n, seed):
    """A pool whose logits are the mixture of the printed numbers, called positive above 0.2."""
    scores, y = drawn_scores(n, seed)
    p = 1 / (1 + np.exp(-scores))
    pool = altmas.Pool(None, (scores > 0.2).astype(int), scores=np.column_stack([1 - p, p]), classes=[0, 1])
    return pool, y.astype(int)


@pytest.mark.parametrize(("pools", "least"), [(3, 2), pytest.param(40, 33, marks=pytest.mark.slow)])
def test_twenty_labels_and_all_scores_cover_the_truth(pools, least):
    """Pools of 1500 points: 95 % intervals hold it (binomial 0.1 % point), and beat 20 labels."""
    held, errors = 0, []
    for seed in range(pools):
        pool, truth = binary_pool(1500, seed)
        task = Task(pool, metric_set("recall[1]", pool), seed=seed)
        rows = np.random.default_rng(seed).permutation(1500)[:20]
        history = History(1500, (), {int(i): int(truth[i]) for i in rows})
        one = Spe(families=("normal",), recalibrate=False, steps=500, draws=100).estimate(task, history)[0]
        exact = truth_values(pool, truth, task.metrics)["recall[1]"]
        held += one.low <= exact <= one.high
        errors.append(one.value - exact)
    assert held >= least
    assert np.sqrt(np.mean(np.square(errors))) < 0.05  # 20 labels hold 6 positives: sd 0.09 at recall 0.95


def test_what_cannot_be_separated_says_so_and_bad_options_are_refused():
    pool, truth = binary_pool(300, 0)
    task = Task(pool, metric_set(["accuracy", "kappa", "f1[1]"], pool))
    history = History(300, (), {i: int(truth[i]) for i in range(12)})
    method = Spe(families=("normal",), steps=400, draws=50)
    found = method.estimate(task, history)
    mixtures = found.info["mixtures"]
    assert set(mixtures) == {"0", "1"}  # of two classes the accuracy too is a matter of what is the second
    for one in mixtures.values():
        assert one["r_hat"] > 0.9 and 0 < one["share"] < 1 and one["ks_distance"] < 0.2
        assert one["unlabelled_weight"] in (1, 0.1, 0.01, 0.001, 0)
    assert all("credible if" in one.note for one in found)
    few = History(300, (), {int(i): int(truth[i]) for i in [*np.flatnonzero(truth == 0)[:12], np.argmax(truth)]})
    for one in method.estimate(task, few):
        assert np.isnan(one.low) and one.interval == "none" and "only 1 labels of one kind" in one.note
    with pytest.raises(altmas.errors.MethodError, match="family 'gama' does not exist; did you mean 'gamma'"):
        Spe(families=("gama",))
    with pytest.raises(altmas.errors.PlanError, match="steps 10 is out of range"):
        Spe(steps=10)


def test_no_label_no_estimate_and_scores_at_the_ends_are_finite():
    pool, _ = binary_pool(50, 0)
    task = Task(pool, metric_set("accuracy", pool))
    assert np.isnan(Spe().estimate(task, History(50))[0].value)
    assert_allclose(logit(np.array([0.0, 0.5, 1.0])), [-13.8155, 0, 13.8155], atol=1e-4)


def test_scores_that_many_points_have_exactly_are_groups_of_their_own():
    scores = np.concatenate([np.full(300, -13.8), np.linspace(-3, 3, 500), np.full(200, 13.8)])
    group = piles_of(scores)
    assert set(group[:300]) == {0} and set(group[300:800]) == {-1} and set(group[800:]) == {1}
    few = piles_of(np.concatenate([np.full(300, -13.8), np.linspace(-3, 3, 20)]))
    assert set(few[:300]) == {0} and set(few[300:]) == {1}  # too few others for a mixture
    shares = share_of_piles(
        np.array([0, 0, 0, -1]), np.array([True, True, False, True]), 2, 4000, np.random.default_rng(0)
    )
    assert_allclose(shares.mean(0), [2.5 / 4, 0.5], atol=0.02)


def test_labels_that_contradict_the_mixture_move_its_odds_and_those_that_agree_do_not():
    """(B,) bins at log odds from -4 to 4: labels drawn at these odds leave them, labels drawn 1.5 higher raise them."""
    rng = np.random.default_rng(1)
    odds = np.linspace(-4, 4, 9)
    yes = np.tile(1 / (1 + np.exp(-odds)), (400, 1))
    place = rng.integers(0, 9, 600)
    for shift in (0.0, 1.5):
        right = rng.random(600) < 1 / (1 + np.exp(-odds[place] - shift))
        found = recalibrated(yes, place, right, rng)
        moved = np.log(found / (1 - found))[:, 4]
        assert abs(moved.mean() - shift) < 3 * moved.std() and 0.05 < moved.std() < 0.3


def test_saturated_scores_do_not_make_the_interval_a_point():
    """Half of the scores are exactly 1, and a tenth of those are wrong: labels tell it, and how well they do."""
    rng = np.random.default_rng(2)
    sure = rng.random(1000) < 0.5
    p = np.where(sure, 1.0, rng.uniform(0.5, 0.95, 1000))
    truth = (rng.random(1000) > np.where(sure, 0.1, 1 - p)).astype(int)
    pool = altmas.Pool(None, np.ones(1000, int), scores=np.stack([1 - p, p], 1), classes=[0, 1])
    task = Task(pool, metric_set("accuracy", pool))
    rows = rng.permutation(1000)[:150]
    history = History(1000, (), {int(i): int(truth[i]) for i in rows})
    one = Spe(families=("normal",), steps=400, draws=200).estimate(task, history)[0]
    assert one.low < truth[rows].mean() < one.high and 0.06 < one.high - one.low < 0.2


def test_a_gamma_wider_than_any_score_is_no_number_out_of_range():
    s = np.array([0.001, 0.5, 0.999])
    for log_scale in (20.0, 400.0, 1000.0):
        density = FAMILIES["gamma"].log_density(s, np.array(0.3), np.array(log_scale), (0.0, 1.0))
        share = FAMILIES["gamma"].distribution(s, np.array(0.3), np.array(log_scale), (0.0, 1.0))
        assert not np.isnan(density).any() and (np.diff(share) >= 0).all() and share[-1] <= 1


def test_the_curvature_at_the_edge_of_the_support_is_a_covariance():
    def log_density(at):
        return np.where((at > 0).all(-1), -(at**2).sum(-1), -np.inf)

    found = curvature(log_density, np.array([5e-4, 1.0]))
    assert np.isfinite(found).all() and (np.linalg.eigvalsh(found) > 0).all()
