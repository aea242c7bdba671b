"""The same data make the same pool, whatever table they come in; and a pool from files can be read again."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from altmas.errors import AltmasError, PoolError
from altmas.items.lazy import LazyItems
from altmas.pool import Pool
from altmas.pool.tables import column_of, pool_from_source, pool_from_table

N = 60
ROLES = {
    "prediction": "vendor_label",
    "id": "study_id",
    "features": ["x0", "x1"],
    "scores": ["p_cat", "p_dog", "p_eel"],
    "slices": ["scanner", "year", "child"],
    "show": "text",
}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    x, p = rng.normal(size=(N, 2)).astype(np.float32), rng.dirichlet([1, 1, 1], N).astype(np.float32)
    columns = {
        "study_id": [f"{i:04d}" for i in range(N)],
        "vendor_label": rng.choice(["cat", "dog", "eel"], N),
        "truth": rng.choice(["cat", "dog", "eel"], N),
        "scanner": rng.choice(["A", "B", None], N, p=[0.5, 0.4, 0.1]),
        "year": rng.choice([2019, 2020], N),
        "child": rng.choice([True, False], N),
        "text": [f'no. {i}, "quoted"\nsecond line, é🦊' for i in range(N)],
    }
    numbers = dict(zip(ROLES["features"], x.T, strict=True)) | dict(zip(ROLES["scores"], p.T, strict=True))
    return pd.DataFrame(columns | numbers)


class ClassLabel:
    """Stands in for datasets.ClassLabel."""

    def __init__(self, names):
        self.names = names


class HuggingFace:
    """Stands in for datasets.Dataset: the part of its interface that is used."""

    def __init__(self, table, class_labels=None):
        self.table = table
        self.features = dict.fromkeys(table.column_names, object()) | (class_labels or {})

    def __len__(self):
        return self.table.num_rows

    def select_columns(self, names):
        return HuggingFace(self.table.select(names))

    def with_format(self, kind):
        assert kind == "arrow"
        return self

    def __getitem__(self, rows):
        return self.table.slice(0)[rows]


def write(kind: str, folder: Path) -> Path:
    table, path = frame(), folder / f"preds.{kind}"
    if kind.startswith(("csv", "tsv")):
        table.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    elif kind.startswith(("jsonl", "ndjson")):
        table.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        table.to_parquet(path)
    return path


def table_named(kind: str, folder: Path):
    tables = {
        "pandas": frame,
        "pandas, other index": lambda: frame().set_index(np.arange(N)[::-1]),
        "pandas, categories": lambda: frame().astype({"vendor_label": "category", "scanner": "category"}),
        "polars": lambda: pl.DataFrame(frame()),
        "polars, lazy": lambda: pl.LazyFrame(frame()),
        "pyarrow": lambda: pa.table(frame()),
        "pyarrow, chunks": lambda: pa.concat_tables([pa.table(frame()[:7]), pa.table(frame()[7:])]),
        "pyarrow, batch": lambda: pa.RecordBatch.from_pandas(frame()),
        "hugging face": lambda: HuggingFace(pa.table(frame())),
    }
    return tables[kind]() if kind in tables else write(kind, folder)


IN_MEMORY = ["pandas", "pandas, other index", "pandas, categories", "polars", "polars, lazy", "pyarrow"]
IN_MEMORY += ["pyarrow, chunks", "pyarrow, batch", "hugging face"]
FILES = ["csv", "tsv", "csv.gz", "jsonl", "jsonl.gz", "ndjson", "parquet"]


@pytest.mark.parametrize("kind", IN_MEMORY + FILES)
def test_the_same_data_make_the_same_pool(kind, tmp_path):
    data = frame()
    direct = Pool(
        data[ROLES["features"]].to_numpy(),
        data["vendor_label"],
        scores=data[ROLES["scores"]].to_numpy(),
        ids=data["study_id"],
        slices={name: data[name] for name in ROLES["slices"]},
        items=list(data["text"]),
    )
    pool = Pool.from_table(table_named(kind, tmp_path), **ROLES)
    assert pool.fingerprint == direct.fingerprint
    assert pool.classes == ("cat", "dog", "eel") and pool.classes_inferred
    assert pool.ids == direct.ids
    assert isinstance(pool.items, LazyItems)
    assert list(pool.items) == direct.items
    assert pool.features.dtype == np.float32
    np.testing.assert_array_equal(column_of(table_named(kind, tmp_path), "truth"), data["truth"])


@pytest.mark.parametrize("kind", FILES)
def test_a_pool_from_files_can_be_read_again(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("emb.npy", frame()[["x0", "x1"]].to_numpy())
    wanted = ROLES | {"features": "emb.npy", "show": ["text", "year"], "classes": ("cat", "dog", "eel")}
    pool = pool_from_table(write(kind, Path()), **wanted)
    assert isinstance(pool.features, np.memmap)
    assert pool.source["folder"] == str(tmp_path)
    monkeypatch.chdir("/")
    again = pool_from_source(json.loads(json.dumps(pool.source)))
    assert again.fingerprint == pool.fingerprint
    assert again.source == pool.source
    assert again.items[3] == pool.items[3] == {"text": frame()["text"][3], "year": int(frame()["year"][3])}


def test_what_lives_in_memory_has_no_source(tmp_path):
    assert pool_from_table(frame(), **ROLES).source is None
    path = write("csv", tmp_path)
    assert pool_from_table(path, prediction="vendor_label", features=np.ones((N, 2))).source is None
    assert pool_from_table(path, prediction="vendor_label", features=["x0"]).source is not None


@pytest.mark.parametrize(
    "features",
    ["x.npy", Path("x.npy"), ["x.npy"], ["x0", "x1"], ("x0", "x1"), np.array(["x0", "x1"]), pd.Index(["x0", "x1"])],
    ids=repr,
)
def test_features_come_from_a_file_or_from_columns(features, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = frame()
    np.save("x.npy", data[["x0", "x1"]].to_numpy())
    pool = pool_from_table(data, prediction="vendor_label", features=features)
    np.testing.assert_array_equal(pool.features, data[["x0", "x1"]])


def test_features_and_scores_may_be_arrays_or_absent():
    data = frame()
    features, scores = data[["x0", "x1"]], data[ROLES["scores"]].to_numpy()
    pool = pool_from_table(data, prediction="vendor_label", features=features, scores=scores)
    np.testing.assert_array_equal(pool.features, features)
    np.testing.assert_allclose(pool.scores, scores, atol=1e-6)
    assert pool_from_table(data, prediction="vendor_label", features=[]).features is None
    nested = pool_from_table(
        data[:2], prediction="vendor_label", features=[[1.0, 2.0], [3.0, 4.0]], classes=["cat", "dog", "eel"]
    )
    assert nested.features.shape == (2, 2)


@pytest.mark.parametrize(
    "kind", ["lists", "fixed", "large", "arrays", "polars", "polars array", "tensor", "jsonl", "chunks"]
)
def test_one_column_of_lists_is_a_matrix(kind, tmp_path):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    labels = pa.array(["a", "b", "b", "a"])
    flat = pa.array(x.ravel())
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(x)
    tables = {
        "lists": pa.table({"y": labels, "e": pa.array(x.tolist())}),
        "fixed": pa.table({"y": labels, "e": pa.FixedSizeListArray.from_arrays(flat, 3)}),
        "large": pa.table({"y": labels, "e": pa.array(x.tolist(), pa.large_list(pa.float64()))}),
        "arrays": pd.DataFrame({"y": labels.to_pylist(), "e": list(x)}),
        "polars": pl.DataFrame({"y": labels.to_pylist(), "e": x.tolist()}),
        "polars array": pl.DataFrame({"y": labels.to_pylist(), "e": x}),
        "tensor": pa.table({"y": labels, "e": tensors}),
    }
    tables["chunks"] = pa.concat_tables([tables["lists"][:1], tables["lists"][1:3], tables["lists"][3:]])
    table = tables.get(kind)
    if kind == "jsonl":
        table = tmp_path / "e.jsonl"
        tables["arrays"].to_json(table, orient="records", lines=True)
    np.testing.assert_array_equal(pool_from_table(table, prediction="y", features="e").features, x)
    np.testing.assert_array_equal(pool_from_table(table, prediction="y", features=["e"]).features, x)


def test_numbers_of_every_kind_are_features():
    table = pa.table(
        {
            "y": [0, 1],
            "int": pa.array([1, 2], pa.int8()),
            "half": pa.array(np.array([0.5, 1.5], np.float16)),
            "bool": [True, False],
            "decimal": pa.array([1, 2], pa.decimal128(5, 2)),
        }
    )
    pool = pool_from_table(table, prediction="y", features=["int", "half", "bool", "decimal"])
    assert pool.features.tolist() == [[1, 0.5, 1, 1], [2, 1.5, 0, 2]]


def test_class_labels_bring_their_names():
    names = ["zebra", "cat", "dog"]
    codes = pa.table({"pred": [1, 2, 2], "truth": [0, 1, 2], "site": pa.array([0, -1, None])})
    labelled = dict.fromkeys(["pred", "truth", "site"], ClassLabel(names))
    dataset = HuggingFace(codes, labelled)
    pool = pool_from_table(dataset, prediction="pred", slices="site")
    assert pool.classes == ("zebra", "cat", "dog") and not pool.classes_inferred
    assert pool.predictions.tolist() == [1, 2, 2]
    assert pool.slices["site"].tolist() == ["zebra", "(missing)", "(missing)"]
    assert column_of(dataset, "truth").tolist() == names
    assert pool_from_table(dataset, prediction="pred", classes=["cat", "dog"]).predictions.tolist() == [0, 1, 1]


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_class_labels_are_found_in_the_note_that_hugging_face_leaves(kind, tmp_path):
    note = {"info": {"features": {"pred": {"names": ["zebra", "cat"], "_type": "ClassLabel"}, "x": {"_type": "Value"}}}}
    table = pa.table({"pred": [1, 0, 1], "x": [1, 2, 3]}).replace_schema_metadata({"huggingface": json.dumps(note)})
    if kind == "parquet":
        pq.write_table(table, tmp_path / "t.parquet")
    pool = pool_from_table(table if kind == "arrow" else tmp_path / "t.parquet", prediction="pred", slices=["x"])
    assert pool.classes == ("zebra", "cat")
    assert pool.predictions.tolist() == [1, 0, 1]
    assert pool.slices["x"].tolist() == ["1", "2", "3"]


def test_a_note_that_cannot_be_read_is_ignored():
    for note in (b"{", b"[]", b'{"info": {"features": {"pred": {"_type": "ClassLabel"}}}}', b'{"info": 5}'):
        table = pa.table({"pred": [1, 0]}).replace_schema_metadata({b"huggingface": note})
        assert pool_from_table(table, prediction="pred").classes == (0, 1)


def test_a_real_hugging_face_dataset_is_a_table():
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"pred": datasets.ClassLabel(names=["no", "yes"]), "e": datasets.Sequence(datasets.Value("float32"))}
    )
    dataset = datasets.Dataset.from_dict({"pred": [1, 0, 1], "e": [[1, 2], [3, 4], [5, 6]]}, features=features)
    pool = pool_from_table(dataset.select([2, 0]), prediction="pred", features="e")
    assert pool.classes == ("no", "yes")
    assert pool.features.tolist() == [[5, 6], [1, 2]]


def test_csv_names_are_read_as_they_are_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "id,pred,flag,day,whole,gap\n007,1,true,2020-01-01,1.0,1\n7,0,FALSE,2020-01-02,2.0,\n8,1,True,,3.0,2\n"
    )
    pool = pool_from_table(path, prediction="pred", id="id", slices=["flag", "day", "whole", "gap"])
    assert list(pool.ids) == ["007", "7", "8"]
    assert pool.classes == (0, 1)
    assert {name: values.tolist() for name, values in pool.slices.items()} == {
        "flag": ["True", "False", "True"],
        "day": ["2020-01-01", "2020-01-02", "(missing)"],
        "whole": ["1", "2", "3"],
        "gap": ["1", "(missing)", "2"],
    }
    assert column_of(path, "flag").tolist() == [True, False, True]


def test_texts_that_look_like_dates_stay_texts_in_json_lines(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"pred": 0, "id": "2020-01-01"}\n{"pred": 1, "id": "2020-01-02"}\n')
    assert list(pool_from_table(path, prediction="pred", id="id").ids) == ["2020-01-01", "2020-01-02"]


def test_dates_bytes_and_views_are_names():
    table = pa.table(
        {
            "pred": pa.array(["a", "b"], pa.string_view()),
            "id": pa.array([b"x", b"y"]),
            "day": pa.array([18262, 18263], pa.date32()),
        }
    )
    pool = pool_from_table(table, prediction="pred", id="id", slices=["day"])
    assert list(pool.ids) == ["x", "y"]
    assert pool.slices["day"].tolist() == ["2020-01-01", "2020-01-02"]


def test_numbers_and_texts_in_one_pandas_column_are_texts():
    table = pd.DataFrame({"pred": [1, "other", 2], "site": ["A", 3, None]}, dtype=object)
    pool = pool_from_table(table, prediction="pred", slices=["site"])
    assert pool.classes == ("1", "2", "other")
    assert pool.slices["site"].tolist() == ["A", "3", "(missing)"]


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    folder = tmp_path / "preds.parquet"
    folder.mkdir()
    for number, part in enumerate((frame()[:20], frame()[20:])):
        part.to_parquet(folder / f"part-{number}.parquet")
    assert pool_from_table(folder, **ROLES).fingerprint == pool_from_table(frame(), **ROLES).fingerprint


def test_a_byte_order_mark_and_other_columns_do_no_harm(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("pred,note\na,\nb,x\n", encoding="utf-8-sig")
    assert pool_from_table(path, prediction="pred").classes == ("a", "b")


def test_a_column_can_be_shown_and_be_a_feature(tmp_path):
    path = tmp_path / "both.csv"
    path.write_text("size,p\n1.50,a\n2,b\n")
    pool = Pool.from_table(path, prediction="p", features=["size"], show=["size"], slices=["size"])
    assert pool.features is not None and pool.features.ravel().tolist() == [1.5, 2.0]
    assert pool.items is not None and pool.items[0] == {"size": "1.50"}
    assert pool.slices["size"].tolist() == ["1.50", "2"]


def test_features_may_come_from_files_and_columns_together(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text("age,p\n40,a\n50,b\n")
    np.save(tmp_path / "emb.npy", np.arange(4.0).reshape(2, 2))
    pool = Pool.from_table(path, prediction="p", features=[str(tmp_path / "emb.npy"), "age"])
    assert pool.features is not None and pool.features.tolist() == [[0, 1, 40], [2, 3, 50]]
    assert pool.source is not None and pool_from_source(pool.source).fingerprint == pool.fingerprint
    np.save(tmp_path / "long.npy", np.zeros((3, 1)))
    with pytest.raises(PoolError, match="different numbers of rows"):
        Pool.from_table(path, prediction="p", features=["age", str(tmp_path / "long.npy")])


# ---------------------------------------------------------------- several models, and none


@pytest.fixture
def two_models(tmp_path):
    path = tmp_path / "both.csv"
    path.write_text("id,v1,v2,p1,text\n7,cat,dog,0.2,x\n8,dog,dog,0.7,y\n9,dog,cat,0.9,z\n")
    return path


def test_each_prediction_column_is_a_model_called_like_it(two_models):
    pool = Pool.from_table(two_models, prediction=["v1", "v2"], scores={"v1": "p1"}, id="id")
    assert {model.name: model.predictions.tolist() for model in pool.models} == {"v1": [0, 1, 1], "v2": [1, 1, 0]}
    np.testing.assert_allclose(pool.model("v1").scores[:, 1], [0.2, 0.7, 0.9], atol=1e-7)
    assert pool_from_source(pool.source).fingerprint == pool.fingerprint
    assert Pool.from_table(two_models, prediction="v1").models[0].name == "model"


def test_a_table_without_predictions_is_a_pool_of_items(two_models):
    pool = Pool.from_table(two_models, prediction=None, id="id", show="text", classes=["good", "bad"])
    assert (len(pool), pool.models, list(pool.items)) == (3, (), ["x", "y", "z"])
    assert pool_from_source(pool.source).fingerprint == pool.fingerprint


@pytest.mark.parametrize(
    ("roles", "sentence"),
    [
        ({"prediction": ["v1", "v1"]}, "'v1' twice"),
        ({"prediction": []}, "an empty list"),
        ({"prediction": ["v1", "v3"]}, "'v3'"),
        ({"prediction": ["v1", "v2"], "scores": ["p1"]}, "say whose they are"),
        ({"prediction": ["v1", "v2"], "scores": {"v3": ["p1"]}}, "model 'v3' is not in this pool"),
        ({"prediction": None, "id": "id"}, "needs classes"),
    ],
)
def test_models_that_a_table_does_not_have_are_refused(two_models, roles, sentence):
    with pytest.raises(AltmasError) as caught:
        Pool.from_table(two_models, **roles)
    assert sentence in str(caught.value)
