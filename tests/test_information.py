"""What a label tells about the weights: printed fixtures and inequalities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from altmas.methods.paper.information import bald, binary_information, group_information, information, joined

FIXTURE = np.array([[[0.7, 0.2, 0.1]], [[0.1, 0.3, 0.6]]])  # M = 2 draws, one point, three classes (A.11, item 6)


def random_probs(rng, draws, n, n_classes):
    return rng.dirichlet(np.full(n_classes, 0.5), (draws, n))


def test_fixture_of_three_classes_to_its_printed_digits():
    assert_allclose(bald(FIXTURE), [0.2306455], atol=5e-8)
    assert_allclose(binary_information(FIXTURE)[0], [0.2050380, 0.0067018, 0.1483993], atol=5e-8)


@pytest.mark.parametrize(
    "probs, expected",
    [
        ([[0.9, 0.1], [0.1, 0.9]], 0.3680642),  # B.2: ln 2 - h(.1)
        ([[0.5, 0.5], [0.5, 0.5]], 0.0),  # B.2: most uncertain, yet nothing to learn about w
        ([[0.8, 0.2], [0.6, 0.4]], 0.024157),  # D.6: two members of an ensemble
        ([[0.3, 0.7], [0.3, 0.7]], 0.0),  # D.6: identical members
    ],
)
def test_bald_of_two_draws_to_its_printed_digits(probs, expected):
    assert_allclose(bald(np.array(probs)[:, None, :]), [expected], atol=5e-7)


def test_bald_is_at_most_the_logarithm_of_classes_and_of_draws():
    certain = np.eye(4)[:, None, :]  # each draw is sure of another label
    assert_allclose(bald(certain), [np.log(4)])
    assert_allclose(bald(certain[:2]), [np.log(2)])


@pytest.mark.parametrize("seed", range(5))
def test_a_partition_tells_at_most_what_the_label_tells(seed):
    rng = np.random.default_rng(seed)
    probs = random_probs(rng, 7, 40, 5)
    groups = rng.integers(0, 3, (40, 5))
    found = group_information(probs, groups)
    assert (found <= bald(probs) + 1e-14).all()
    assert_allclose(group_information(probs, np.tile(np.arange(5), (40, 1))), bald(probs), atol=1e-14)
    assert_allclose(group_information(probs, np.zeros((40, 5), int)), 0, atol=1e-14)


def test_one_pass_over_a_chunk_gives_the_same_as_each_definition():
    rng = np.random.default_rng(3)
    probs = random_probs(rng, 6, 50, 4)
    probs[:, 7] = [0, 1, 0, 0]  # a labelled point
    predictions = rng.integers(0, 4, 50)
    parts = [information(probs[:, rows], predictions[rows], (1, 3)) for rows in (slice(0, 30), slice(30, 50))]
    found = joined(parts)
    assert_allclose(found.of_class, binary_information(probs)[:, [1, 3]], atol=1e-14)
    assert_allclose(found.of_prediction, binary_information(probs[:, np.arange(50), predictions]), atol=1e-14)
    assert_allclose(found.of_label, bald(probs), atol=1e-14)
    assert found.of_label[7] == 0


def test_one_draw_tells_nothing():
    probs = random_probs(np.random.default_rng(0), 1, 20, 3)
    assert_allclose(bald(probs), 0, atol=1e-15)
    assert_allclose(binary_information(probs), 0, atol=1e-15)
