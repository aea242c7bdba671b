"""Features are standardised with pool mean and sd, whatever holds them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from altmas.pool import Pool
from altmas.pool.features import Features, moments


def pool_with(features):
    return Pool(features, np.arange(len(features)) % 2)


def standardised(x):
    x = np.asarray(x, np.float64)
    return (x - x.mean(0)) / np.where(x.std(0) == 0, 1, x.std(0))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint8])
def test_rows_have_mean_0_and_sd_1_over_the_pool(kind):
    x = (np.random.default_rng(0).random((500, 6)) * 200).astype(kind)
    features = Features.of(pool_with(x))
    assert features.shape == (500, 6) and len(features) == 500
    assert features[:].dtype == np.float32
    assert_allclose(features[:], standardised(x), atol=2e-5)
    assert_allclose(features[np.array([7, 3])], standardised(x)[[7, 3]], atol=2e-5)


def test_a_memmap_stays_one_and_is_read_by_rows(tmp_path):
    x = np.random.default_rng(1).integers(0, 255, (300, 5)).astype(np.uint8)
    np.save(tmp_path / "x.npy", x)
    pool = pool_with(np.load(tmp_path / "x.npy", mmap_mode="r"))
    features = Features.of(pool)
    assert isinstance(features.raw, np.memmap)
    assert_allclose(features[10:20], standardised(x)[10:20], atol=1e-5)


def test_a_constant_column_becomes_zero_and_a_large_mean_costs_no_digits():
    rng = np.random.default_rng(2)
    x = np.column_stack([np.full(400, 0.1), 1e9 + rng.normal(size=400), rng.normal(size=400)])
    seen = Features.of(pool_with(x))[:]
    assert_allclose(seen[:, 0], 0, atol=1e-6)
    assert_allclose(seen[:, 1], standardised(x)[:, 1], atol=1e-5)


def test_moments_are_summed_in_chunks(monkeypatch):
    x = np.random.default_rng(3).normal(5, 2, (1000, 4)).astype(np.float32)
    whole = moments(x)
    monkeypatch.setattr("altmas.pool.features.CHUNK", 30)
    for part, one in zip(moments(x), whole, strict=True):
        assert_allclose(part, one, rtol=1e-12)
    assert_allclose(whole, (x.mean(0, np.float64), x.std(0, dtype=np.float64)), rtol=1e-9)


def test_subsets_and_predictions_follow_the_rows():
    x = np.random.default_rng(4).normal(size=(50, 3))
    pool = Pool(x, np.arange(50) % 3)
    features = Features.of(pool).with_predictions(pool.predictions, 3)
    assert features.shape == (50, 6)
    part = features.subset([40, 2, 11])
    assert part.shape == (3, 6)
    assert_allclose(part[:,][:, :3], standardised(x)[[40, 2, 11]], atol=1e-5)
    assert_array_equal(part[:][:, 3:], np.eye(3)[[40 % 3, 2, 11 % 3]])
    assert_array_equal(part.subset([2, 0])[:], part[np.array([2, 0])])


def test_a_pool_without_features_has_none_to_show():
    with pytest.raises(ValueError, match="no features"):
        Features.of(Pool(None, [0, 1]))
