"""Other people's packages give the same numbers where the method is the same; each is skipped where it is absent."""

import warnings

import numpy as np
import pytest

from benchmarks.reference import COMPARISONS, World, compare, included, world

SAME = [one for one in COMPARISONS if one.close is not None]


@pytest.fixture(scope="module")
def small() -> World:
    return world()


@pytest.mark.parametrize("one", SAME, ids=lambda one: f"{one.package}: {one.what}")
def test_the_same_method_gives_the_same_numbers(one, small):
    if not one.version:
        pytest.skip(f"{one.package} is not installed (docs/leaderboard.md says how)")
    with warnings.catch_warnings():  # what other packages warn of is theirs to mend
        warnings.simplefilter("ignore")
        theirs = one.theirs(small)
    np.testing.assert_allclose(one.ours(small), theirs, rtol=one.close, atol=one.close)


@pytest.mark.parametrize("one", COMPARISONS, ids=lambda one: f"{one.package}: {one.what}")
def test_our_side_gives_finite_numbers(one, small):
    assert np.isfinite(one.ours(small)).all()


def test_the_batch_of_active_inference_has_the_probabilities_that_are_compared(small):
    """What glide is given beside the drawn points' own probabilities is the same rule (accuracy under raw scores)."""
    pi, batch = included(small)
    assert pi.sum() == pytest.approx(len(small.rows)) and (pi > 0).all()
    np.testing.assert_allclose(pi[batch.indices], batch.record["inclusion"], rtol=1e-6)


def test_a_row_says_how_far_apart_and_how_fast(small):
    one = COMPARISONS[0]
    row = compare(type(one)("ours", "twice", one.ours, lambda w: one.ours(w) + 0.25), small)
    assert row["largest difference"] == 0.25 and row["same method"] and row["version"] == ""
    assert row["theirs / ours"] > 0
