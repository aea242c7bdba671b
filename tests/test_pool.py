"""A pool takes classes, ids, scores, slices and items as people have them, and its fingerprint tells pools apart."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import altmas
from altmas.errors import PoolError, UnknownLabel, UnknownPoint
from altmas.pool import Pool
from altmas.pool.naming import as_whole, is_missing, names_of
from altmas.pool.tables import classes_of

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


@pytest.mark.parametrize(
    ("classes", "labels", "codes"),
    [
        ([1, 2, 3], ["1", "1.0", 1.0, "2.00", "2.5", "03.0", "1.", "1e0"], [0, 0, 0, 1, None, None, None, None]),
        (["1.0", "2.0", "3.0"], ["1", "1.0", 1, 2.0, "3.00", "4"], [0, 0, 0, 1, 2, None]),
        (["1", "1.0", "2"], ["1", "1.0", "2.0"], [0, 1, 2]),  # a class's own name comes first
        (["1.1", "1.10"], ["1.1", "1.10", "1.100"], [0, 1, None]),  # versions, not numbers
    ],
)
def test_whole_numbers_are_found_with_and_without_decimals(classes, labels, codes):
    pool = Pool(None, classes, classes=classes)
    assert [pool.find_class(label) for label in labels] == codes


def test_labels_are_found_with_blanks_around_them_and_a_class_with_blanks_by_its_own_name():
    pool = Pool(None, ["ham", "ham ", "spam", "4"])
    found = [pool.find_class(label) for label in ("ham", "ham ", " ham", " spam\t", " 4 ", "4.0 ", "sp am", " ")]
    assert found == [pool.find_class(name) for name in ("ham", "ham ", "ham", "spam", "4", "4")] + [None, None]
    assert len(set(found)) == 5


def test_ids_that_are_whole_numbers_are_found_with_decimals():
    pool = Pool(None, ["a", "b"] * 2, ids=["7", "8.0", "8", "x"])
    assert [pool.index(name) for name in ("7", 7, "7.0", "8.0", "8", "x")] == [0, 0, 0, 1, 2, 3]
    with pytest.raises(UnknownPoint):
        pool.index("7.5")


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


# ---------------------------------------------------------------- several models, and none


def test_several_models_have_names_answers_and_scores_of_their_own():
    scores = [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]
    pool = Pool(None, {"v1": ["cat", "dog", "dog"], "v2": ["cat", "cat", "dog"]}, scores={"v1": scores})
    assert [model.name for model in pool.models] == ["v1", "v2"]
    assert pool.model("v2").predictions.tolist() == [0, 0, 1] and pool.model("v2").scores is None
    np.testing.assert_allclose(pool.model("v1").scores, scores, atol=1e-7)
    assert pool.predictions is pool.models[0].predictions and pool.scores is pool.models[0].scores
    assert "v2" in repr(pool)


def test_one_model_is_called_model_and_its_fingerprint_has_no_part_for_models():
    pool = Pool(None, ["cat", "dog"])
    assert pool.models[0].name == "model" and "models" not in pool.fingerprint
    named = Pool(None, {"v1": ["cat", "dog"]})
    assert named.fingerprint["predictions"] == pool.fingerprint["predictions"] and "models" in named.fingerprint


@pytest.mark.parametrize(
    "other",
    [
        {"v1": ["a", "b"], "v3": ["b", "b"]},
        {"v1": ["a", "b"], "v2": ["a", "b"]},
        {"v1": ["a", "b"]},
        {"v2": ["b", "b"], "v1": ["a", "b"]},
    ],
)
def test_the_fingerprint_knows_names_answers_and_order_of_all_models(other):
    pool = Pool(None, {"v1": ["a", "b"], "v2": ["b", "b"]}, classes=["a", "b"])
    assert Pool(None, other, classes=["a", "b"]).fingerprint != pool.fingerprint


def test_classes_are_the_union_of_what_all_models_say():
    assert Pool(None, {"v1": ["b", "b"], "v2": ["a", "c"]}).classes == ("a", "b", "c")
    assert Pool(None, {"v1": [0, 1], "v2": ["1", "2"]}).classes == ("0", "1", "2")


def test_a_pool_without_a_model_has_classes_and_points():
    pool = Pool(None, None, classes=["pass", "fail"], items=["one", "two", "three"])
    assert (len(pool), pool.models, pool.scores) == (3, (), None)
    assert "predictions" not in pool.fingerprint and "no model" in repr(pool)
    assert len(Pool(np.zeros((4, 2)), None, classes=["pass", "fail"])) == 4
    assert len(Pool(None, None, classes=["pass", "fail"], ids=list("abcd"))) == 4


def test_one_column_of_scores_is_the_probability_of_the_second_of_two_classes():
    for column in ([0.1, 0.9], [[0.1], [0.9]]):
        pool = Pool(None, ["no", "yes"], scores=column)
        np.testing.assert_allclose(pool.scores, [[0.9, 0.1], [0.1, 0.9]], atol=1e-7)


def test_the_anchor_is_what_most_models_say_then_what_they_score_highest_then_the_first_ones():
    answers = {"v1": list("aab"), "v2": list("bab"), "v3": list("bcc")}
    assert Pool(None, answers, classes=list("abc")).anchor.tolist() == [1, 0, 1]
    tied = {"v1": list("ab"), "v2": list("ba")}
    assert Pool(None, tied).anchor.tolist() == [0, 1]
    assert Pool(None, tied, scores={"v2": [[0.1, 0.9], [0.9, 0.1]]}).anchor.tolist() == [1, 0]
    assert Pool(None, ["a", "b"]).anchor.tolist() == [0, 1]


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: Pool(None, {}), "empty mapping"),
        (lambda: Pool(None, {"": ["a", "b"]}), "model name ''"),
        (lambda: Pool(None, {1: ["a", "b"]}), "model name 1"),
        (lambda: Pool(None, {"v1": ["a", "b"], "v2": ["a"]}), "different numbers of predictions ('v1' 2, 'v2' 1)"),
        (lambda: Pool(None, {"v1": ["a", None]}), "predictions of 'v1', row 1: None is missing"),
        (lambda: Pool(None, {"v1": ["a", "b"]}, classes=["a", "c"]), "predictions of 'v1', row 1: 'b' is not one"),
        (lambda: Pool(None, {"v1": ["a", "b"]}, scores={"v2": [[1, 0]]}), "model 'v2' is not in this pool"),
        (lambda: Pool(None, {"v1": ["a", "b"], "v2": ["a", "b"]}, scores=[[1, 0], [0, 1]]), "say whose they are"),
        (lambda: Pool(None, None), "needs features, ids, items"),
        (lambda: Pool(np.zeros((2, 2)), None), "needs classes"),
        (lambda: Pool(None, None, scores=[[1, 0]], ids=[1], classes=["a", "b"]), "no model"),
        (lambda: Pool(None, ["a", "b"], scores=[0.2, 1.4]), "row 1: 1.4 is no probability"),
    ],
)
def test_what_cannot_be_models_is_refused_by_name(make, sentence):
    with pytest.raises(PoolError) as caught:
        make()
    assert sentence in str(caught.value)


def test_an_unknown_model_is_refused_with_the_nearest_name():
    with pytest.raises(PoolError, match="did you mean 'vendor'"):
        Pool(None, {"vendor": ["a", "b"], "ours": ["a", "b"]}).model("vendr")


def test_swapped_score_columns_are_refused_also_when_classes_are_given():
    answers = ["cat", "dog"] * 20
    scores = np.where(np.array(answers)[:, None] == np.array(["dog", "cat"]), 0.9, 0.1)
    with pytest.raises(PoolError, match="looks like 'dog', 'cat'"):
        Pool(None, answers, scores=scores, classes=["cat", "dog"])
    with pytest.raises(PoolError, match="do not fit"):
        Pool(None, answers, scores=scores[:, 1], classes=["cat", "dog"])
    odd = Pool(None, ["dog"] * 39 + ["cat"], scores=np.full(40, 0.3), classes=["cat", "dog"])
    assert odd.scores is not None  # answers by another threshold than one half are no other order


def test_a_further_model_has_to_fit_the_pool_and_to_have_a_name_of_its_own():
    pool = Pool(None, {"v1": ["a", "b"]})
    larger = pool.with_models(*pool.models, pool.new_model("v2", ["b", "b"]))
    assert larger.model("v2").predictions.tolist() == [1, 1] and len(pool.models) == 1
    assert larger.fingerprint != pool.fingerprint and larger.anchor.tolist() == [0, 1]
    for name, answers, sentence in [
        ("v1", ["a", "b"], "already"),
        ("v2", ["a"], "1 rows, the pool has 2"),
        ("v2", ["a", "x"], "row 1: 'x'"),
        (" v2", ["a", "b"], "model name"),
    ]:
        with pytest.raises(PoolError, match=sentence):
            pool.new_model(name, answers)


@pytest.mark.parametrize("threshold", [0.5, 0.35, 0.2, 0.05])
@pytest.mark.parametrize("columns", [1, 2])
def test_scores_of_the_other_class_are_refused_whatever_the_threshold_of_the_model(threshold, columns):
    """A model that names a rare class from 0.2 on: most of its scores say the other class, in either order."""
    rng = np.random.default_rng(0)
    fraud = rng.beta(0.5, 4, 2_000)
    answers = np.where(fraud >= threshold, "fraud", "ok")
    wrong = fraud if columns == 1 else np.column_stack([1 - fraud, fraud])  # read as those of 'ok', the second class
    with pytest.raises(PoolError, match="inferred class order 'fraud', 'ok'"):
        Pool(None, answers, scores=wrong)
    with pytest.raises(PoolError, match="the class order 'fraud', 'ok'"):
        Pool(None, answers, scores=wrong, classes=["fraud", "ok"])
    right = Pool(None, answers, scores=wrong, classes=["ok", "fraud"])
    np.testing.assert_allclose(right.scores[:, 1], fraud, atol=1e-6)


def test_scores_that_have_little_to_do_with_the_answers_are_taken_as_they_are():
    """Those of another model, or of few points, are no sign of another order."""
    rng = np.random.default_rng(1)
    answers, scores = rng.integers(0, 2, 500), rng.random(500)
    assert Pool(None, answers, scores=scores).scores is not None
    few, lower = np.arange(12) % 2, 0.6 - 0.05 * (np.arange(12) % 2)
    assert Pool(None, few, scores=lower, classes=[0, 1]).scores is not None


def test_a_column_of_texts_is_no_column_of_classes(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text,answer\n" + "".join(f"it arrived late #{i},{i % 3}\n" for i in range(60)))
    with pytest.raises(PoolError, match="60 different values in 60 rows, such as 'it arrived late #0'"):
        Pool.from_table(path, prediction="text")
    assert len(Pool.from_table(path, prediction="answer").classes) == 3


def test_many_classes_may_be_listed(tmp_path):
    path, names = tmp_path / "intents.csv", [f"intent {i}" for i in range(90)]
    path.write_text("answer\n" + "".join(f"intent {i % 90}\n" for i in range(100)))
    with pytest.raises(PoolError, match="list them"):
        Pool.from_table(path, prediction="answer")
    assert len(Pool.from_table(path, prediction="answer", classes=names).classes) == 90
    values = {name: float(i) for i, name in enumerate(names)}
    assert len(Pool.from_table(path, prediction="answer", values=values).classes) == 90
    assert len(classes_of(path, "answer", classes=names)) == 100


def test_a_session_opens_with_columns_that_are_refused_now(tmp_path, monkeypatch):
    """What a session was made of is not judged again: its fingerprint says whether it is the same."""
    path = tmp_path / "pool.csv"
    rng = np.random.default_rng(0)
    fraud = rng.uniform(0.1, 0.5, 200)
    rows = [f"{'fraud' if share > 0.35 else 'ok'},{share},intent {i % 180}" for i, share in enumerate(fraud)]
    path.write_text("answer,score,intent\n" + "\n".join(rows) + "\n")
    roles = {"scores": {"prediction": "answer", "scores": ["score"]}, "intents": {"prediction": "intent"}}
    with monkeypatch.context() as earlier:
        earlier.setattr("altmas.pool.columns.MOST_DISTINCT", 1.0)
        earlier.setattr("altmas.pool.models.MOST_IF_INFERRED", 0.0)
        pools = {name: Pool.from_table(path, **columns) for name, columns in roles.items()}
        for name, pool in pools.items():
            altmas.Session.create(tmp_path / f"{name}.altmas", pool).close()
    for name, columns in roles.items():
        with pytest.raises(PoolError):
            Pool.from_table(path, **columns)
        with altmas.Session.open(tmp_path / f"{name}.altmas") as session:
            assert session.pool.fingerprint == pools[name].fingerprint
            assert (session.pool.scores is None) == (name == "intents") and session.ask(1)
