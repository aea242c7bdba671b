"""A pool takes classes, ids, scores, slices and items as people have them, and its fingerprint tells pools apart."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from altmas.errors import PoolError, UnknownLabel, UnknownPoint
from altmas.pool import Pool
from altmas.pool.naming import as_whole, is_missing, names_of

ANIMALS = ["dog", "cat", "cat", "eel"]


def test_classes_are_the_sorted_names_that_are_seen_unless_they_are_given():
    seen = Pool(None, ANIMALS)
    assert (seen.classes, seen.classes_inferred) == (("cat", "dog", "eel"), True)
    assert seen.predictions.tolist() == [1, 0, 0, 2]
    given_ = Pool(None, ANIMALS, classes=["eel", "dog", "cat", "fox"])
    assert (given_.classes, given_.classes_inferred) == (("eel", "dog", "cat", "fox"), False)
    assert given_.predictions.tolist() == [1, 2, 2, 0]
    assert "inferred" in repr(seen) and "inferred" not in repr(given_)
    assert "4 points" in repr(seen) and "no features" in repr(seen) and "hard labels only" in repr(seen)
    assert "2 features, with scores" in repr(Pool(np.eye(2), [0, 1], scores=np.eye(2)))


@pytest.mark.parametrize(
    "values",
    [
        ANIMALS,
        tuple(ANIMALS),
        np.array(ANIMALS),
        np.array(ANIMALS, object),
        np.array(ANIMALS, np.dtypes.StringDType()),
        pd.Series(ANIMALS),
        pd.Series(ANIMALS, dtype="category"),
        pl.Series(ANIMALS),
        pa.array(ANIMALS),
        pa.chunked_array([ANIMALS[:2], ANIMALS[2:]]),
    ],
    ids=lambda values: type(values).__name__,
)
def test_names_come_in_any_container(values):
    pool = Pool(None, values)
    assert pool.fingerprint == Pool(None, ANIMALS).fingerprint
    assert pool.classes == ("cat", "dog", "eel")


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 1, 2],
        [3.0, 1.0, 1.0, 2.0],
        [np.int8(3), 1.0, 1, 2],
        np.array([3, 1, 1, 2], np.uint8),
        np.array([3, 1, 1, 2], np.uint64),
        np.array([3, 1, 1, 2], np.float32),
        pd.Series([3, 1, 1, 2], dtype="Int64"),
    ],
    ids=str,
)
def test_whole_numbers_are_integers_however_they_are_stored(values):
    pool = Pool(None, values)
    assert pool.classes == (1, 2, 3)
    assert all(type(name) is int for name in pool.classes)
    assert pool.fingerprint == Pool(None, [3, 1, 1, 2]).fingerprint


def test_booleans_are_classes():
    pool = Pool(None, np.array([True, False, True]))
    assert pool.classes == (False, True)
    assert [pool.code(label) for label in (True, np.False_, "true", "FALSE", 1, "0")] == [1, 0, 1, 0, 1, 0]
    assert pool.codes(np.array([1, 0])).tolist() == [1, 0]
    digits = Pool(None, [0, 1, 1])
    assert [digits.code(label) for label in (True, False)] == [1, 0]
    assert Pool(None, [True, False], classes=["FALSE", "TRUE"]).predictions.tolist() == [1, 0]
    assert Pool(None, [True, 2, 0]).classes == (0, 1, 2)


def test_integers_under_named_classes_are_codes_unless_a_name_is_a_number():
    assert Pool(None, [0, 2, 1], classes=["cat", "dog", "eel"]).predictions.tolist() == [0, 2, 1]
    assert Pool(None, [1, 2, 3], classes=["1", "2", "3"]).predictions.tolist() == [0, 1, 2]
    with pytest.raises(PoolError, match=r"predictions, row 0: 0 is not one of the classes '1', '2', '3'"):
        Pool(None, [0, 1, 2], classes=["1", "2", "3"])


def test_numbers_and_texts_together_are_texts():
    pool = Pool(None, [1, "other", 2.0])
    assert pool.classes == ("1", "2", "other")
    assert pool.code(2) == 1


def test_labels_are_found_by_how_they_are_written():
    pool = Pool(None, [3, 7, 7])
    assert [pool.code(label) for label in (3, "7", 7.0, np.int32(3), np.str_("3"))] == [0, 1, 1, 0, 0]
    assert pool.codes(["7", "3"]).tolist() == [1, 0]
    with pytest.raises(UnknownLabel, match=r"truth, row 1: 8 is not one of the classes 3, 7"):
        pool.codes([3, 8], what="truth")
    for label in (None, 3.5, float("nan"), ["3"], "03"):
        assert pool.find_class(label) is None


def test_points_are_found_by_id():
    pool = Pool(None, [0, 1, 1], ids=["a", "17", "-3"])
    assert [pool.index(point) for point in ("a", 17, "17", np.int64(-3))] == [0, 1, 1, 2]
    numbered = Pool(None, [0, 1, 1])
    assert [numbered.index(point) for point in (0, "1", np.uint8(2))] == [0, 1, 2]
    assert list(numbered.ids) == [0, 1, 2]
    for point in ("3", "²", "-", None, 1.5, [1]):
        with pytest.raises(UnknownPoint, match="is not in this pool of 3 points"):
            numbered.index(point)


def test_ids_beyond_64_bits_are_names_all_the_same():
    ids = [2**64 - 1, 2**200, 5]
    pool = Pool(None, [0, 1, 1], ids=ids)
    assert [pool.index(one) for one in ids] == [0, 1, 2]
    assert [pool.index(str(one)) for one in ids] == [0, 1, 2]
    hashes = np.array([2**64 - 1, 3], np.uint64)
    assert Pool(None, [0, 1], ids=hashes).index(2**64 - 1) == 0


def test_ids_keep_leading_zeros():
    pool = Pool(None, [0, 1], ids=["007", "7"])
    assert (pool.index("007"), pool.index(7)) == (0, 1)


def test_features_of_any_number_type_and_shape_become_rows():
    assert Pool(np.zeros((3, 2, 4), np.uint8), [0, 1, 1]).features.shape == (3, 8)
    assert Pool(np.zeros((3, 2), np.uint8), [0, 1, 1]).features.dtype == np.float32
    assert Pool([[1, 2], [3, 4]], [0, 1]).features.dtype == np.float32
    exact = np.ones((2, 1), np.float64)
    assert Pool(exact, [0, 1]).features is exact


def test_a_memory_map_stays_one(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(12, dtype=np.float32).reshape(4, 3))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    pool = Pool(mapped, [0, 1, 1, 0])
    assert isinstance(pool.features, np.memmap)
    assert pool.fingerprint == Pool(np.array(mapped, np.float64), [0, 1, 1, 0]).fingerprint


def test_scores_are_brought_to_sum_to_one():
    pool = Pool(None, [0, 1], scores=[[0.999, 0.0], [-1e-9, 1.004]])
    np.testing.assert_allclose(pool.scores, [[1, 0], [0, 1]])
    assert pool.scores.dtype == np.float64


def test_score_columns_in_another_order_than_the_inferred_classes_are_refused():
    truth = np.random.default_rng(0).integers(0, 3, 60)
    scores = np.full((60, 3), 0.1)
    scores[np.arange(60), [[2, 0, 1][k] for k in truth]] = 0.8  # columns stand for b, c, a
    names = np.array(["a", "b", "c"])[truth]
    with pytest.raises(
        PoolError, match=r"predicted class in 0% of the rows; give .* pass classes=\[...\] .* like 'b', 'c', 'a'"
    ):
        Pool(None, names, scores=scores)
    assert Pool(None, names, scores=scores, classes=["b", "c", "a"]).classes == ("b", "c", "a")
    assert Pool(None, names, scores=scores, classes=["a", "b", "c"]).classes == ("a", "b", "c")  # said, so meant
    Pool(None, names, scores=np.random.default_rng(1).dirichlet(np.ones(3), 60))  # no other order fits either


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["A", None, "B"], ["A", "(missing)", "B"]),
        (["A", "", "B"], ["A", "(missing)", "B"]),
        ([1, 2, 2], ["1", "2", "2"]),
        ([1.0, np.nan, 2.0], ["1", "(missing)", "2"]),
        ([1.5, 2.0, 0.1], ["1.5", "2.0", "0.1"]),
        (np.array([0.1, 0.5, 2.0], np.float32), ["0.1", "0.5", "2.0"]),
        ([True, False, True], ["True", "False", "True"]),
        (pd.Series([1, None, 2], dtype="Int64"), ["1", "(missing)", "2"]),
        (pd.Series(["A", pd.NA, "B"], dtype="string"), ["A", "(missing)", "B"]),
        (np.array(["2020-01-01", "NaT", "2021-05-06"], "M8[D]"), ["2020-01-01", "(missing)", "2021-05-06"]),
    ],
    ids=str,
)
def test_slice_values_are_texts(values, texts):
    assert Pool(None, [0, 1, 1], slices={"site": values}).slices["site"].tolist() == texts


def test_items_may_be_sequences_series_or_frames():
    frame = pd.DataFrame({"text": ["x", "y"], "age": [3, 4]}, index=[7, 8])
    rows = [{"text": "x", "age": 3}, {"text": "y", "age": 4}]
    for items in (frame, pl.DataFrame(frame), pa.table(frame.reset_index(drop=True))):
        assert list(Pool(None, [0, 1], items=items).items) == rows
    for items in (
        ["x", "y"],
        frame["text"],
        pl.Series(["x", "y"]),
        pa.array(["x", "y"]),
        pa.chunked_array([["x", "y"]]),
    ):
        shown = Pool(None, [0, 1], items=items).items
        assert [shown[0], shown[1], shown[-1]] == ["x", "y", "y"]
        assert list(shown[:1]) == ["x"]
        assert len(shown) == 2
    with pytest.raises(IndexError):
        Pool(None, [0, 1], items=frame).items[2]
    assert list(Pool(None, [0, 1], items=pl.LazyFrame(rows)).items) == rows
    thing = object()
    assert Pool(None, [0, 1], items=pd.Series([thing, 1], index=[5, 6])).items[0] is thing
    assert Pool(None, [0, 1], items=pd.DataFrame({"x": [thing, 1]})).items[0] == {"x": thing}
    images = np.zeros((2, 4, 4))
    assert Pool(None, [0, 1], items=images).items is images


def base() -> dict:
    return {
        "features": np.eye(4),
        "predictions": ANIMALS,
        "scores": np.full((4, 3), 1 / 3),
        "ids": [1, 2, 3, 4],
        "slices": {"site": [1, 1, 2, 2]},
    }


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("features", {"features": np.eye(4)[::-1]}),
        ("features", {"features": np.eye(4)[:, :3]}),
        ("features", {"features": None}),
        ("predictions", {"predictions": ["dog", "cat", "eel", "eel"]}),
        ("classes", {"classes": ["cat", "dog", "eel"][::-1], "predictions": ["dog", "eel", "eel", "cat"]}),
        ("scores", {"scores": np.eye(3)[[1, 0, 0, 2]]}),
        ("ids", {"ids": [1, 2, 3, 5]}),
        ("slices", {"slices": {"site": [1, 1, 1, 2]}}),
        ("slices", {"slices": {"scanner": [1, 1, 2, 2]}}),
    ],
)
def test_the_fingerprint_tells_which_part_differs(part, changed):
    one, other = Pool(**base()).fingerprint, Pool(**(base() | changed)).fingerprint
    assert {name for name in one if one[name] != other.get(name)} == {part}


def test_the_fingerprint_is_of_values_not_of_containers():
    same = base() | {"features": np.asfortranarray(np.eye(4, dtype=np.float32)), "ids": ["1", "2", "3", "4"]}
    same |= {"slices": {"site": ["1", "1", "2", "2"]}, "scores": np.full((4, 3), 1 / 3, np.float32)}
    assert Pool(**same).fingerprint == Pool(**base()).fingerprint
    assert Pool(**base(), items=list("abcd")).fingerprint == Pool(**base()).fingerprint


def test_a_pool_survives_pickling():
    pool = Pool(**base(), items=pd.Series(list("abcd")))
    again = pickle.loads(pickle.dumps(pool))
    assert again.fingerprint == pool.fingerprint
    assert list(again.items) == list("abcd")


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(-5, 5), st.text("ab0", min_size=1, max_size=2), st.booleans()), min_size=1))
def test_every_value_is_found_under_the_name_it_was_given(values):
    names = names_of(values, "values")
    assert len(names) == len(values)
    assert names.dtype.kind in "biO"
    for name, value in zip(names.tolist(), values, strict=True):
        assert name == value or str(name) == str(value)


def test_what_is_whole_and_what_is_missing():
    assert [as_whole(value) for value in (3.0, "3", "-3", "03", "3.0", "x", "²", 2.5)] == [
        3,
        3,
        -3,
        "03",
        "3.0",
        "x",
        "²",
        2.5,
    ]
    assert all(map(is_missing, (None, float("nan"), "", pd.NA, pd.NaT, np.datetime64("NaT"))))
    assert not any(map(is_missing, (0, "0", False, "nan")))
