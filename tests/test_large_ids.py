"""Ids and fingerprints of large pools take little memory and are what they are in small ones."""

import hashlib

import numpy as np
import pytest

import altmas
from altmas.errors import PoolError, UnknownPoint
from altmas.pool import given, naming

N = 1_000


@pytest.fixture
def small_parts(monkeypatch):
    """Pools of a thousand points go the way of large ones."""
    monkeypatch.setattr(given, "LISTED", N - 1)
    for module in (given, naming):
        monkeypatch.setattr(module, "PART", 64)


def pool_with(ids, **more):
    return altmas.Pool(None, np.arange(len(ids)) % 3, ids=ids, **more)


def test_integer_ids_of_a_large_pool_are_an_array_and_read_like_a_list(small_parts):
    numbers = np.random.default_rng(0).permutation(N) * 3 - 500
    pool = pool_with(numbers)
    assert isinstance(pool.ids, naming.WholeNumbers)
    assert pool.ids == numbers.tolist() and list(pool.ids) == numbers.tolist() and pool.ids != numbers.tolist()[:-1]
    assert pool.ids[7] == numbers[7] and type(pool.ids[7]) is int and pool.ids[-2:] == numbers[-2:].tolist()
    assert [pool.index(name) for name in (int(numbers[40]), str(numbers[41]), float(numbers[42]))] == [40, 41, 42]
    assert dict(naming.RowsOfNumbers(pool.ids)) == {name: row for row, name in enumerate(numbers.tolist())}


@pytest.mark.parametrize("name", [1, 10**30, -(2**63), "x", "1.5", 10_000])
def test_an_id_that_is_not_there_is_not_found(small_parts, name):
    with pytest.raises(UnknownPoint, match="is not in this pool"):
        pool_with(np.arange(N) * 2).index(name)


def test_ids_that_stand_twice_are_named(small_parts):
    with pytest.raises(PoolError, match="ids: 5 stands in rows 5 and 999"):
        pool_with(np.append(np.arange(N - 1), 5))


@pytest.mark.parametrize("ids", [np.arange(N) * 7, [f"it's {row}\n" for row in range(N)]])
def test_fingerprints_are_those_of_the_whole_text(small_parts, ids):
    slices = {"site": np.where(np.arange(N) % 2, "o'hare", 'a "b"'), "age": np.arange(N) % 50}
    pool = pool_with(ids, slices=slices)
    texts = {
        "ids": "\n".join(repr(str(name)) for name in pool.ids),
        "slices": repr([(name, pool.slices[name].tolist()) for name in sorted(pool.slices)]),
    }
    assert {part: pool.fingerprint[part] for part in texts} == {
        part: hashlib.sha256(text.encode()).hexdigest() for part, text in texts.items()
    }


def test_half_a_character_is_named_with_its_row_wherever_it_stands(small_parts):
    texts = [f"case {row}" for row in range(N)]
    texts[777] = "\ud800"
    with pytest.raises(PoolError, match="row 777: .* holds half a character"):
        pool_with(texts)
    with pytest.raises(PoolError, match="row 777: .* holds half a character"):
        pool_with(np.arange(N), slices={"site": np.array(texts)})


def test_mapped_features_are_checked_and_hashed_as_those_in_memory(tmp_path):
    features = np.random.default_rng(0).normal(size=(N, 4)).astype(np.float32)
    np.save(tmp_path / "features.npy", features)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    inside, outside = (altmas.Pool(given, np.arange(N) % 3) for given in (features, mapped))
    assert inside.fingerprint == outside.fingerprint
    np.testing.assert_array_equal(outside.features, features)


def test_what_was_changed_in_a_private_map_stays(tmp_path):
    np.save(tmp_path / "features.npy", np.zeros((N, 4), np.float32))
    mapped = np.load(tmp_path / "features.npy", mmap_mode="c")
    mapped[:] = 1
    pool = altmas.Pool(mapped, np.arange(N) % 3)
    assert pool.fingerprint and (pool.features == 1).all()
