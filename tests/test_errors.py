"""Every bad input has one sentence that names what was given, where, and what would have been accepted."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from altmas import errors
from altmas.errors import AltmasError, FileError, PoolError, UnknownLabel, UnknownPoint
from altmas.metrics import metric_set
from altmas.pool import Pool
from altmas.pool.tables import column_of, pool_from_table
from altmas.suggest import listing, near


def test_the_tree_in_the_docstring_is_the_tree_of_classes():
    drawn = dict(re.findall(r"[├└]── (\w+)\s+(?:\((\w+)\))?", errors.__doc__))
    defined = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and name != "AltmasError"}
    assert set(drawn) == set(defined)
    for name, parent in drawn.items():
        assert issubclass(defined[name], AltmasError)
        assert not parent or issubclass(defined[name], __builtins__[parent])


def test_a_sentence_is_printed_as_it_is():
    assert str(UnknownPoint("id 'x' is not there")) == "id 'x' is not there"
    assert str(AltmasError()) == ""


def test_near_names_and_listings():
    assert near("acuracy", ["accuracy", "error"]) == "; did you mean 'accuracy'?"
    assert near("xyz", ["accuracy"]) == ""
    assert listing(range(3)) == "0, 1, 2"
    assert listing(range(30), 2) == "0, 1, ... (30 in all)"


def pool(**changed) -> Pool:
    good = {
        "features": np.zeros((4, 2)),
        "predictions": ["cat", "dog", "cat", "dog"],
        "scores": np.full((4, 2), 0.5),
        "ids": ["a", "b", "c", "d"],
    }
    return Pool(**(good | changed))


NAN = np.zeros((4, 2))
NAN[2, 1] = np.nan
HUGE = np.zeros((4, 2))
HUGE[1, 0] = 1e300

BAD_POOLS = {
    "empty": ({"predictions": []}, r"the pool is empty: predictions has no rows"),
    "unknown class": (
        {"classes": ["cat", "dgo"]},
        r"predictions, row 1: 'dog' is not one of the classes 'cat', 'dgo'; did you mean 'dgo'\?",
    ),
    "code out of range": (
        {"predictions": [0, 1, 2, 0], "classes": ["cat", "dog"]},
        r"predictions, row 2: 2 is not one of the classes 'cat', 'dog'",
    ),
    "one class seen": (
        {"predictions": ["cat"] * 4, "scores": None},
        r"only one class, 'cat', is seen in predictions; pass classes=\[...\] \(--class, repeated\) with every class",
    ),
    "one class given": ({"classes": ["cat"]}, r"classes holds 1 name; a pool needs at least two"),
    "no class given": ({"classes": []}, r"classes holds 0 names; a pool needs at least two"),
    "class twice": ({"classes": ["cat", "dog", "cat"]}, r"classes holds 'cat' twice: 'cat', 'dog', 'cat'"),
    "classes as text": ({"classes": "cat"}, r"classes is the text 'cat'; expected a sequence of class names"),
    "class missing": ({"classes": ["cat", None]}, r"classes, row 1: None is missing"),
    "prediction missing": ({"predictions": ["cat", "dog", None, "dog"]}, r"predictions, row 2: None is missing"),
    "prediction empty": ({"predictions": ["cat", "", "cat", "dog"]}, r"predictions, row 1: '' is missing"),
    "prediction empty in an array": (
        {"predictions": np.array(["cat", "dog", "", "dog"])},
        r"predictions, row 2: '' is missing",
    ),
    "prediction nan": ({"predictions": [0.0, 1.0, np.nan, 0.0]}, r"predictions, row 2: nan is missing"),
    "prediction a fraction": ({"predictions": [0, 0.5, 1, 0]}, r"row 1: 0.5 is neither an integer, a string nor a boo"),
    "prediction infinite": ({"predictions": np.array([0, np.inf, 1, 0])}, r"row 1: inf is neither an integer"),
    "prediction a list": ({"predictions": [[0], [1], [1], [0]]}, r"predictions has shape \(4, 1\); expected one value"),
    "prediction a date": (
        {"predictions": np.array(["2020-01-01"] * 4, "M8[ns]")},
        r"predictions has dtype datetime64\[ns\]; expected integers, strings or booleans",
    ),
    "prediction bytes": ({"predictions": np.array([b"a", b"b", b"a", b"b"])}, r"predictions has dtype \|S1; expected"),
    "prediction an object": ({"predictions": [0, 1, {}, 1]}, r"predictions, row 2: \{\} is neither an integer"),
    "nan feature": ({"features": NAN}, r"features, row 2, column 1: nan is not a finite number"),
    "huge feature": ({"features": HUGE}, r"features, row 1, column 0: 1e\+300 is too large for float32"),
    "feature texts": ({"features": np.full((4, 2), "x")}, r"features must be numbers, got dtype <U1"),
    "feature rows": (
        {"features": np.zeros((5, 2))},
        r"features has 5 rows, predictions has 4; they are aligned by row",
    ),
    "feature vector": ({"features": np.zeros(4)}, r"features has shape \(4,\); expected \(points, columns\)"),
    "no feature columns": ({"features": np.zeros((4, 0))}, r"features has shape \(4, 0\); expected"),
    "ragged features": (
        {"features": [[1], [1, 2], [1], [1]]},
        r"features is not a matrix: its rows have different len",
    ),
    "sparse features": ({"features": csr_array(np.eye(4))}, r"features is a sparse matrix; pass features.toarray\(\)"),
    "score rows": (
        {"scores": np.full((3, 2), 0.5)},
        r"scores has shape \(3, 2\); expected \(4, 2\): one row per point",
    ),
    "score columns": (
        {"scores": np.full((4, 3), 1 / 3)},
        r"scores has 3 columns but 2 classes are seen in predictions \('cat', 'dog'\); pass classes=",
    ),
    "score columns, classes given": (
        {"scores": np.full((4, 3), 1 / 3), "classes": ["cat", "dog"]},
        r"scores has shape \(4, 3\); expected \(4, 2\): .* in the order 'cat', 'dog'",
    ),
    "score vector": ({"scores": np.full(3, 0.5)}, r"scores has shape \(3,\); expected \(4, 2\)"),
    "score sum": (
        {"scores": [[0.5, 0.5], [0.5, 0.6], [1, 0], [1, 0]]},
        r"scores, row 1: 0.5, 0.6\d* are not probabilities \(they sum to 1.1\); expected non-negative numbers that sum",
    ),
    "score negative": ({"scores": [[0.5, 0.5], [1, 0], [1.5, -0.5], [1, 0]]}, r"scores, row 2: 1.5, -0.5 are not prob"),
    "score nan": ({"scores": NAN + 0.5}, r"scores, row 2: 0.5, nan are not probabilities"),
    "score huge": ({"scores": HUGE + 0.5}, r"scores, row 1: inf, 0.5 are not probabilities"),
    "score texts": ({"scores": np.full((4, 2), "x")}, r"scores must be numbers, got dtype <U1"),
    "ragged scores": ({"scores": [[1], [1, 0], [1], [1]], "classes": ["cat", "dog"]}, r"scores is not a matrix"),
    "ids twice": ({"ids": ["a", "b", "a", "b"]}, r"ids: 'a' stands in rows 0 and 2; ids must be unique"),
    "ids twice as text": ({"ids": [1, "x", "1", "y"]}, r"ids: '1' stands in rows 0 and 2"),
    "ids rows": ({"ids": ["a", "b"]}, r"ids has 2 entries, predictions has 4; one id per point"),
    "id missing": ({"ids": ["a", "b", None, "d"]}, r"ids, row 2: None is missing"),
    "slice rows": ({"slices": {"site": ["A"]}}, r"slice 'site' has shape \(1,\), predictions has 4 rows"),
    "slice of lists": (
        {"slices": {"site": np.array([[1], [2, 3], [1], [1]], object)}},
        r"slice 'site' holds values that are neither texts nor numbers",
    ),
    "items": ({"items": ["x"]}, r"items has 1 entries, predictions has 4; one item per point"),
}


@pytest.mark.parametrize("case", BAD_POOLS)
def test_what_cannot_be_a_pool_is_refused(case):
    changed, sentence = BAD_POOLS[case]
    with pytest.raises(PoolError, match=sentence) as caught:
        pool(**changed)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, AltmasError)
    assert "\n" not in str(caught.value)


def test_an_unknown_label_or_point_says_that_nothing_was_recorded():
    with pytest.raises(UnknownLabel) as label:
        pool().code("dgo", where="point 'a': ")
    assert str(label.value) == (
        "point 'a': label 'dgo' is not a class of this pool (expected one of 'cat', 'dog'); did you mean 'dog'?; "
        "nothing was recorded"
    )
    with pytest.raises(UnknownPoint, match=r"^id 'case-1' is not in this pool of 4 points; nothing was recorded$"):
        pool().index("case-1")


def test_precision_of_a_class_that_is_never_predicted_and_a_typo_are_refused():
    never = pool(classes=["cat", "dog", "eel"], scores=None)
    with pytest.raises(errors.MetricError, match=r"'precision\[eel\]' can never be defined"):
        metric_set(["precision[eel]"], never)
    with pytest.raises(errors.MetricError, match=r"did you mean 'accuracy'\?"):
        metric_set(["acuracy"], never)


TABLE = {
    "id": ["a", "b", "c"],
    "pred": ["x", "y", "x"],
    "f": [1.0, 2.0, 3.0],
    "p": [0.1, 0.2, 0.7],
    "q": [0.9, 0.8, 0.3],
}

BAD_TABLES = {
    "prediction column": (
        {},
        {"prediction": "perd"},
        r"the table has no column 'perd'; did you mean 'pred'\? \(columns:",
    ),
    "feature column": ({}, {"features": ["f", "g"]}, r"the table has no column 'g'"),
    "score column": ({}, {"scores": ["p", "r"]}, r"the table has no column 'r'"),
    "slice column": ({}, {"slices": ["site"]}, r"the table has no column 'site'"),
    "column number": ({}, {"prediction": 3}, r"column 3 was not understood; expected the name of a column"),
    "prediction null": (
        {"pred": ["x", None, "y"]},
        {},
        r"the table, column 'pred', row 1: the value is missing; every",
    ),
    "prediction empty": ({"pred": ["x", "", "y"]}, {}, r"the table, column 'pred': predictions, row 1: '' is missing"),
    "id null": ({"id": ["x", None, "y"]}, {"id": "id"}, r"the table, column 'id', row 1: the value is missing"),
    "id twice": ({"id": ["x", "x", "y"]}, {"id": "id"}, r"the table, column 'id': ids: 'x' stands in rows 0 and 1"),
    "prediction fraction": ({"pred": [0.5, 1.0, 2.0]}, {}, r"column 'pred': predictions, row 0: 0.5 is neither an int"),
    "prediction list": ({"pred": [[1], [2], [3]]}, {}, r"column 'pred' holds list<item: int64>; expected integers, te"),
    "prediction bytes": ({"pred": [b"\xff", b"a", b"b"]}, {}, r"column 'pred' holds binary that is no text"),
    "unknown class": ({}, {"classes": ["x", "z"]}, r"column 'pred': predictions, row 1: 'y' is not one of the classes"),
    "feature text": ({}, {"features": ["f", "id"]}, r"column 'id': no words that several texts share"),
    "feature null": ({"f": [1.0, None, 2.0]}, {"features": ["f"]}, r"column 'f', row 1: the value is missing"),
    "feature nan": (
        {"f": [1.0, 2.0, np.nan]},
        {"features": ["f"]},
        r"column 'f', row 2: the value is nan, which is not",
    ),
    "feature huge": ({"f": [1.0, 1e300, 2]}, {"features": ["f"]}, r"column 'f', row 1: the value is 1e\+300, which is"),
    "feature all null": ({"f": [None] * 3}, {"features": ["f"]}, r"column 'f', row 0: the value is missing"),
    "list null": ({"f": [[1, 2], None, [3, 4]]}, {"features": "f"}, r"column 'f', row 1 holds nothing, .* 2 numbers"),
    "list lengths": (
        {"f": [[1, 2], [1, 2], [3]]},
        {"features": "f"},
        r"column 'f', row 2 holds 1 numbers, .* 2 numbers",
    ),
    "list text": ({"f": [["a"], ["b"], ["c"]]}, {"features": "f"}, r"column 'f' holds string; expected numbers"),
    "list nan": ({"f": [[1, 2], [1, np.nan], [3, 4]]}, {"features": "f"}, r"column 'f', row 1: the value is nan"),
    "score null": ({"p": [0.1, None, 0.7]}, {"scores": ["p", "q"]}, r"column 'p', row 1: the value is missing"),
    "score sum": ({"p": [0.1, 0.9, 0.7]}, {"scores": ["p", "q"]}, r"the table: scores, row 1: .* \(they sum to 1.7\)"),
    "feature rows": ({}, {"features": np.zeros((2, 2))}, r"the table: features has 2 rows, predictions has 3"),
    "one class": ({"pred": ["x"] * 3}, {}, r"the table: only one class, 'x', is seen"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_what_cannot_be_a_pool_in_a_table_is_refused_with_its_column(case):
    columns, roles, sentence = BAD_TABLES[case]
    table = pa.table(TABLE | columns)
    with pytest.raises((PoolError, FileError), match=sentence) as caught:
        pool_from_table(table, **({"prediction": "pred"} | roles))
    assert "\n" not in str(caught.value)


def test_features_of_another_length_name_their_file(tmp_path):
    np.save(tmp_path / "emb.npy", np.zeros((5, 2)))
    with pytest.raises(PoolError, match=r"the table with .*emb.npy: features has 5 rows, predictions has 3"):
        pool_from_table(pa.table(TABLE), prediction="pred", features=tmp_path / "emb.npy")


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            {"train": 1, "test": 2},
            r"a dictionary is no table \(its keys are 'train', 'test'; pick one split\?\); expected",
        ),
        ([1, 2], "list is no table; expected a pandas, polars or pyarrow frame, a Hugging Face dataset or the path"),
        (None, "NoneType is no table"),
        (
            pd.DataFrame([[1, 2]], columns=["pred", "pred"]),
            "the table cannot be read: Expected unique column names, got: - 'pred' 2",
        ),
        (pd.DataFrame({"pred": [{}, 1]}), "column 'pred' holds a mixture of types"),
        (pa.table({"pred": pa.array([], pa.string())}), "the table has no rows; nothing can be tested"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_table_is_refused(table, sentence):
    with pytest.raises(PoolError, match=sentence):
        pool_from_table(table, prediction="pred")


def test_a_streamed_dataset_is_refused():
    class Streamed:
        features = {"pred": None}

        def with_format(self, kind):
            return self

    with pytest.raises(PoolError, match="a streamed dataset cannot be a pool; load it without streaming=True"):
        pool_from_table(Streamed(), prediction="pred")


def test_a_class_label_code_without_a_name_is_refused():
    note = b'{"info": {"features": {"pred": {"names": ["x", "y"], "_type": "ClassLabel"}}}}'
    table = pa.table({"pred": [0, 1, 2]}).replace_schema_metadata({b"huggingface": note})
    with pytest.raises(PoolError, match="column 'pred', row 2: 2 is no code of its 2 class names"):
        pool_from_table(table, prediction="pred")


def test_a_truth_column_with_gaps_is_refused():
    with pytest.raises(PoolError, match="the table, column 'pred', row 1: the value is missing"):
        column_of(pa.table({"pred": ["x", None]}), "pred")
    with pytest.raises(PoolError, match="column 'pred', row 0: '' is missing"):
        column_of(pa.table({"pred": ["", "x"]}), "pred")
