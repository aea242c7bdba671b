"""Confidence scores to their printed digits, and what each of them promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import altmas
from altmas.confidence import (
    ConfidenceHead,
    Isotonic,
    OneVsRest,
    Platt,
    Temperature,
    TrustScore,
    auroc,
    expected_calibration_error,
    max_softmax,
    pool_adjacent_violators,
    true_class_probability,
)
from altmas.confidence.trust_score import dense
from altmas.methods.paper.surrogates import Training

SCORES = np.array([-2, -1, -0.5, 0.3, 0.8, 1.5, 2])
RIGHT = np.array([0, 0, 1, 0, 1, 1, 1], bool)


# ---------------------------------------------------------------- D.0, D.1


def test_calibration_error_is_the_mean_gap_over_bins():
    confidence, right = np.array([0.95, 0.95, 0.95, 0.95, 0.5, 0.5]), np.array([1, 1, 1, 0, 1, 0])
    assert expected_calibration_error(confidence, right) == pytest.approx(4 / 6 * 0.2)
    assert expected_calibration_error(np.array([1.0, 0.0]), np.array([1, 0])) == 0


def test_auroc_counts_pairs():
    u, right = np.array([0.9, 0.8, 0.8, 0.1]), np.array([1, 1, 0, 0], bool)
    pairs = [(a > b) + 0.5 * (a == b) for a in u[right] for b in u[~right]]
    assert auroc(u, right) == pytest.approx(np.mean(pairs))
    assert np.isnan(auroc(u, np.ones(4)))


def test_a_shuffled_score_says_nothing():
    rng = np.random.default_rng(0)
    assert auroc(rng.random(20_000), rng.random(20_000) < 0.8) == pytest.approx(0.5, abs=0.015)  # three standard errors


def test_temperature_keeps_the_ranking_of_points_for_two_classes_only():
    rng = np.random.default_rng(1)
    for n_classes, same in ((2, True), (3, False)):
        z = rng.normal(0, 2, (200, n_classes))
        orders = [np.argsort(max_softmax(Temperature(t)(z))) for t in (1.0, 3.0)]
        assert np.array_equal(*orders) == same


# ---------------------------------------------------------------- D.2


def test_platt_to_its_printed_digits():
    found = Platt.fit(SCORES, RIGHT)
    assert_allclose([found.slope, found.offset], [-0.77058, -0.17513], atol=5e-6)
    p, target = found(SCORES), np.where(RIGHT, 5 / 6, 1 / 5)
    assert p.sum() == pytest.approx(target.sum(), abs=1e-9)
    assert SCORES @ (p - target) == pytest.approx(0, abs=1e-9)


def test_platt_of_a_constant_score_is_the_mean_target():
    assert Platt.fit(np.full(4, 0.7), np.array([1, 1, 1, 0]))(np.array([0.7])) == pytest.approx([0.683333], abs=5e-7)


def test_platt_stays_finite_on_separable_labels():
    found = Platt.fit(np.array([-3, -2, 2, 3.0]), np.array([0, 0, 1, 1]))
    assert -5 < found.slope < 0 and np.isfinite(found.offset)


def test_a_weight_of_two_counts_like_a_label_told_twice():
    weights = np.array([1, 1, 2, 1, 1, 1, 1.0])
    twice = np.append(np.arange(7), 2)
    one, two = Isotonic.fit(SCORES, RIGHT, weights), Isotonic.fit(SCORES[twice], RIGHT[twice])
    assert_allclose(one.values[2:4], two.values[2:4])
    assert Platt.fit(SCORES, RIGHT, weights)(np.array([-0.5])) > Platt.fit(SCORES, RIGHT)(np.array([-0.5]))


# ---------------------------------------------------------------- D.3


@pytest.mark.parametrize(
    "values, expected",
    [([0, 1, 0, 1, 1], [0, 0.5, 0.5, 1, 1]), ([1, 0, 1, 0, 0, 1], [0.4, 0.4, 0.4, 0.4, 0.4, 1])],
)
def test_pool_adjacent_violators_to_its_printed_digits(values, expected):
    assert_allclose(pool_adjacent_violators(np.array(values)), expected)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 3)), min_size=1, max_size=30))
def test_isotonic_fits_rise_keep_the_mean_and_fit_themselves(pairs):
    values, weights = np.array(pairs).T
    found = pool_adjacent_violators(values, weights)
    assert (np.diff(found) >= -1e-9).all()
    assert weights @ found == pytest.approx(weights @ values, abs=1e-7)
    assert_allclose(pool_adjacent_violators(found, weights), found, atol=1e-9)


def test_isotonic_pools_equal_scores_and_is_never_certain():
    found = Isotonic.fit(np.array([1, 1, 2, 3]), np.array([0, 1, 1, 1]))
    assert_array_equal(found.thresholds, [1, 2, 3])
    assert_allclose(found(np.array([-5, 1, 1.9, 2, 9])), [0.5, 0.5, 0.5, 5 / 6, 5 / 6])


def test_several_classes_are_scaled_one_by_one_and_sum_to_one():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 400)
    scores = np.eye(3)[y] + rng.normal(0, 0.7, (400, 3))
    for kind in (Platt, Isotonic):
        found = OneVsRest.fit(kind, scores, y)
        p = found(scores)
        assert_allclose(p.sum(1), 1)
        assert (p.argmax(1) == y).mean() > 0.7
        for c, scaling in enumerate(found.scalings):
            assert expected_calibration_error(scaling(scores[:, c]), y == c) < 0.08


# ---------------------------------------------------------------- D.4


def test_temperature_to_its_printed_digits():
    z = np.tile([2.0, 0.0], (4, 1))
    found = Temperature.fit(z, np.array([0, 0, 0, 1]))
    assert found.temperature == pytest.approx(1.82048, abs=5e-6)
    assert found(z)[0, 0] == pytest.approx(0.75)


def test_inflated_logits_are_cooled():
    """methods: 500 samples, threefold inflation, T = 2.84 and loss 1.429 -> 1.021; other samples, so wider here."""
    rng = np.random.default_rng(3)
    z = rng.normal(0, 1.2, (500, 4))
    y = np.array([rng.choice(4, p=p) for p in Temperature(1.0)(z)])
    found = Temperature.fit(3 * z, y)
    assert found.temperature == pytest.approx(3, abs=0.5)
    losses = [-np.log(Temperature(t)(3 * z)[np.arange(500), y]).mean() for t in (1.0, found.temperature)]
    assert losses[0] > 1.2 * losses[1]
    assert Temperature.fit(6 * z, y).temperature == pytest.approx(2 * found.temperature, rel=1e-6)
    assert_array_equal(found(z).argmax(1), z.argmax(1))
    p = found(3 * z)
    assert (z[np.arange(500), y] - (p * z).sum(1)).mean() == pytest.approx(0, abs=1e-9)


def test_scores_do_as_well_as_logits_and_the_range_of_temperatures_is_kept():
    rng = np.random.default_rng(4)
    z, y = rng.normal(size=(100, 3)), rng.integers(0, 3, 100)
    p = Temperature(1.0)(z)
    assert Temperature.fit(Temperature.logits(p), y).temperature == pytest.approx(Temperature.fit(z, y).temperature)
    assert Temperature.fit(z, z.argmax(1)).temperature == pytest.approx(np.exp(-3))
    assert Temperature.fit(z, z.argmin(1)).temperature == pytest.approx(np.exp(4))
    assert np.isfinite(Temperature.logits(np.array([0.0, 1.0]))).all()


# ---------------------------------------------------------------- D.7


REFERENCE = np.array([[0, 0], [1, 0], [0, 1], [4, 4], [5, 4], [4, 5.0]])
CLASSES = np.array([0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_trust_score_to_its_printed_digits(scale):
    trust = TrustScore.fit(scale * REFERENCE, CLASSES, 2)
    x = scale * np.ones((2, 2))
    assert_allclose(trust(x, np.array([0, 1])), [4.24264, 0.235702], atol=5e-6)


def test_a_reference_point_is_not_its_own_neighbour():
    trust = TrustScore.fit(REFERENCE, CLASSES, 2)
    itself = np.arange(6)
    assert np.isinf(trust(REFERENCE, CLASSES)).all()
    assert_allclose(trust(REFERENCE, CLASSES, itself)[0], np.sqrt(32) / 1)
    stranger = trust(np.ones((1, 2)), np.array([0]), np.array([-1]))
    assert_allclose(stranger, [4.24264], atol=5e-6)


def test_ties_and_missing_classes_are_told_apart():
    x, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    assert TrustScore.fit(x, y, 2)(np.zeros((1, 1)), np.array([0])) == pytest.approx([1.0])
    same = np.array([[0.0], [0.0]])  # the same place in two classes
    assert_allclose(TrustScore.fit(same, y, 2)(np.zeros((1, 1)), np.array([1])), [1.0])
    lonely = TrustScore.fit(x, y, 4)
    assert_allclose(lonely(np.zeros((2, 1)), np.array([2, 0])), [0.0, 1.0])
    with pytest.raises(altmas.errors.PoolError, match="needs labelled reference points"):
        TrustScore.fit(np.zeros((0, 2)), np.zeros(0, int), 2)


def test_outliers_leave_the_reference_and_small_classes_do_not():
    x = np.append(np.linspace(0, 1, 9), 50.0)[:, None]
    assert_array_equal(dense(x, np.arange(10), k=3, alpha=0.1), np.arange(9))
    assert_array_equal(dense(x, np.arange(4), k=10, alpha=0.5), np.arange(4))
    assert len(dense(x, np.arange(6), k=10, alpha=0.5)) == 3  # k = 10 is more than there are
    trust = TrustScore.fit(np.append(x, [[60.0], [61.0]], axis=0), np.repeat([0, 1], [10, 2]), 2, k=3, alpha=0.1)
    assert trust(np.array([[52.0]]), np.array([1]))[0] > 5  # the outlier of class 0 next to it is gone


# ---------------------------------------------------------------- D.8


def test_true_class_probability_to_its_printed_digits():
    pi = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    assert_allclose(true_class_probability(pi, np.array([0, 1])), [0.5, 0.3])
    assert_allclose(true_class_probability(pi, np.array([0, 1]), normalised=True), [1.0, 0.6])
    one_hot, y = np.eye(3)[[0, 1, 2]], np.array([0, 2, 2])
    assert_array_equal(true_class_probability(one_hot, y), [1, 0, 1])  # the agree classifier


@pytest.mark.paper
def test_the_head_finds_where_the_model_is_wrong_beyond_its_own_scores():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(600, 3))
    wrong = x[:, 0] > 1.0  # confidently wrong where the first feature is large
    y = rng.integers(0, 2, 600)
    says = np.where(wrong, 1 - y, y)
    scores = np.full((600, 2), 0.1)
    scores[np.arange(600), says] = 0.9
    head = ConfidenceHead.fit(x[:300], scores[:300], y[:300], rng, training=Training(epochs=60))
    c = head(x[300:], scores[300:])
    assert ((c >= 0) & (c <= 1)).all()
    assert auroc(c, ~wrong[300:]) > 0.9 > 0.6 > auroc(max_softmax(scores[300:]), ~wrong[300:])
    target = true_class_probability(scores[300:], y[300:])
    assert ((c - target) ** 2).mean() < 0.5 * target.var() + 0.01
    plain = ConfidenceHead.fit(x[:300], scores[:300], y[:300], rng, training=Training(epochs=60), error_weight=1.0)
    assert plain(x[300:], scores[300:]).mean() > c.mean()  # errors count less, so it is surer
