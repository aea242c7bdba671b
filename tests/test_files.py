"""A file that cannot be read says which, where and why, in one sentence; nothing is ever unpickled."""

import gzip
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from altmas.errors import FileError
from altmas.pool.csv_files import how_written, text_columns
from altmas.pool.files import read_columns
from altmas.pool.matrices import read_matrix
from altmas.pool.tables import pool_from_source, pool_from_table

RUBBISH = bytes(np.random.default_rng(0).integers(0, 256, 4000, np.uint8))


def parquet_bytes(tmp_path) -> bytes:
    path = tmp_path / "whole.parquet"
    pd.DataFrame({"pred": np.arange(5000) % 7, "x": np.random.default_rng(0).normal(size=5000)}).to_parquet(path)
    return path.read_bytes()


def refusal(path, names=("pred",), numbers=()) -> str:
    """The sentence with which the file is refused."""
    with pytest.raises(FileError) as caught:
        read_columns(path, list(names), list(numbers))
    sentence = str(caught.value)
    assert str(path) in sentence and "\n" not in sentence
    return sentence


def test_a_file_that_is_missing_is_named_with_its_near_neighbour(tmp_path):
    (tmp_path / "preds.csv").write_text("pred\na\nb\n")
    assert refusal(tmp_path / "pred.csv").endswith("pred.csv does not exist; did you mean 'preds.csv'?")
    assert refusal(tmp_path / "nowhere" / "x.csv").endswith("does not exist")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_an_empty_file_is_refused(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    path.touch()
    assert refusal(path).endswith("is empty")


def test_a_file_without_rows_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("pred,x\n")
    assert "has columns but no rows" in refusal(path)
    pd.DataFrame({"pred": pd.Series([], dtype=str)}).to_parquet(tmp_path / "t.parquet")
    assert "has columns but no rows" in refusal(tmp_path / "t.parquet")


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "jsonl", "ndjson", "parquet"])
def test_rubbish_is_refused(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    path.write_bytes(RUBBISH)
    refusal(path)


@pytest.mark.parametrize("ending", ["txt", "xlsx", "npy", "db", ""])
def test_a_file_of_another_kind_is_refused(tmp_path, ending):
    path = tmp_path / f"t.{ending}" if ending else tmp_path / "t"
    path.write_bytes(RUBBISH)
    assert "is of no kind that can be read; expected .csv, .tsv, .jsonl, .ndjson or .parquet" in refusal(path)


def test_json_that_is_not_in_lines_says_how_to_write_it(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('[{"pred": 1}]')
    assert "write one object on each line and call it .jsonl" in refusal(path)


def test_a_folder_is_refused(tmp_path):
    folder = tmp_path / "t.csv"
    folder.mkdir()
    assert "is a folder" in refusal(folder)


class Trap:
    """Unpickling it fails the test."""

    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


@pytest.mark.parametrize("ending", ["pkl", "pickle", "joblib", "pt"])
def test_pickled_files_are_refused(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    path.write_bytes(pickle.dumps(Trap()))
    assert "is a pickled file, which can run code when it is read" in refusal(path)
    with pytest.raises(FileError, match="is a pickled file, which can run code when it is read; expected a .npy file"):
        pool_from_table(pd.DataFrame({"pred": [0, 1]}), prediction="pred", features=str(path))


@pytest.mark.parametrize("kept", [10, 2000, -300, -1])
def test_a_parquet_file_that_was_cut_is_refused(tmp_path, kept):
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet_bytes(tmp_path)[:kept])
    assert "cannot be read as .parquet" in refusal(path)


def test_a_parquet_file_with_damaged_pages_is_refused(tmp_path):
    whole = bytearray(parquet_bytes(tmp_path))
    whole[4:3000] = bytes(2996)
    path = tmp_path / "t.parquet"
    path.write_bytes(whole)
    assert "cannot be read as .parquet" in refusal(path, ["pred"], ["x"])


def test_a_cut_gzip_file_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"pred\n" + b"a\nb\n" * 5000)[:40])
    assert "cannot be read as .csv" in refusal(path)


def test_a_csv_row_of_another_length_is_named_by_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("pred,x\na,1\nb,2,3\n")
    assert "Row #3: Expected 2 columns, got 3" in refusal(path)


def test_a_csv_file_of_another_encoding_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("pred,x\nété,1\nb,2\n".encode("latin-1"))
    assert "t.csv is not UTF-8 text: " in refusal(path)
    path.write_bytes("été,x\na,1\n".encode("latin-1"))
    assert "t.csv is not UTF-8 text: " in refusal(path)


def test_a_csv_file_of_another_encoding_is_read_when_that_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("été,x\nnaïve,1\n“b”,2\n".encode("cp1252"))
    assert "--encoding cp1252" in refusal(path)
    table = read_columns(path, ["été"], ["x"], "cp1252")
    assert table.to_pydict() == {"été": ["naïve", "“b”"], "x": [1.0, 2.0]}
    with pytest.raises(FileError, match="encoding 'windoze' is not known"):
        read_columns(path, ["été"], encoding="windoze")
    with pytest.raises(FileError, match="is not written in ascii"):
        read_columns(path, ["été"], encoding="ascii")


@pytest.mark.parametrize("separator, word", [(";", "semicolons"), ("\t", "tabs"), (",", "")])
def test_columns_of_a_csv_file_are_separated_as_its_first_line_shows(tmp_path, separator, word):
    path = tmp_path / "t.csv"
    rows = (("id", "pred", "text"), ("1", "a", '"one, two; three"'), ("2", "b", "four"))
    path.write_text("".join(separator.join(row) + "\n" for row in rows))
    assert read_columns(path, ["text", "pred"]).to_pydict() == {"text": ["one, two; three", "four"], "pred": ["a", "b"]}
    assert word in how_written(path) and bool(word) == bool(how_written(path))


def test_a_comma_in_the_first_line_separates_whatever_else_is_there(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("pred,a;b\nx,1\n")
    assert read_columns(path, ["pred"], ["a;b"]).to_pydict() == {"pred": ["x"], "a;b": [1.0]}
    path.write_text('pred;"a, b"\nx;1\n')
    assert read_columns(path, ["pred"], ["a, b"]).to_pydict() == {"pred": ["x"], "a, b": [1.0]}


def test_numbers_between_semicolons_may_have_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    for written in ("0,25", "0.25"):
        path.write_text(f"pred;x\na;{written}\nb;1\n")
        assert read_columns(path, ["pred"], ["x"]).column("x").to_pylist() == [0.25, 1.0]
        pool = pool_from_table(path, prediction="pred", features="x")
        assert pool.features[:, 0].tolist() == [0.25, 1.0]
    path.write_text("pred;x\na;0,25\nb;two\n")
    assert "row" in refusal(path, ["pred"], ["x"])


def test_numbers_between_tabs_may_have_decimal_commas_that_are_no_thousands(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("pred\tx\tz\na\t0,597\t7\nb\t12,5\t1,250\nb\t1\t0,5\n")
    assert text_columns(path, ["x", "z"]) == []
    table = read_columns(path, ["pred"], ["x", "z"])
    assert table.to_pydict() == {"pred": ["a", "b", "b"], "x": [0.597, 12.5, 1.0], "z": [7.0, 1.25, 0.5]}
    path.write_text("pred\tx\na\t1,250\nb\t12\n")
    assert "row 0: '1,250' is not a number" in refusal(path, [], ["x"])
    assert "written with a decimal point and without commas" in refusal(path, [], ["x"])


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv"])
def test_a_file_of_utf_16_is_known_by_its_mark(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    content = "prédit\tx\nété\t0,25\nb\t1\n".encode("utf-16")
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert read_columns(path, ["prédit"], ["x"]).to_pydict() == {"prédit": ["été", "b"], "x": [0.25, 1.0]}
    assert text_columns(path, ["prédit", "x"]) == ["prédit"]
    path.write_bytes((gzip.compress if ending.endswith("gz") else bytes)(content[:-1]))
    assert "is not written in utf-16" in refusal(path, ["prédit"])


def test_a_csv_value_that_is_no_number_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("pred,x,z\na,1,NA\nb,,2\nb,2.5e3,nan\na,two,4\n")
    assert "t.csv, column 'x', row 3: 'two' is not a number" in refusal(path, ["pred"], ["z", "x"])


def test_a_column_that_is_not_there_is_named_with_the_near_one(tmp_path):
    (tmp_path / "t.csv").write_text("vendor_label,x\na,1\n")
    (tmp_path / "t.jsonl").write_text('{"vendor_label": "a", "x": 1}\n')
    pd.DataFrame({"vendor_label": ["a"], "x": [1]}).to_parquet(tmp_path / "t.parquet")
    for ending in ("csv", "jsonl", "parquet"):
        sentence = refusal(tmp_path / f"t.{ending}", ["vendor_lable"])
        assert "has no column 'vendor_lable'; did you mean 'vendor_label'? (columns: 'vendor_label', 'x')" in sentence


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("pred,pred\na,b\n")
    assert "has 2 columns called 'pred'; rename all but one" in refusal(path)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (['{"pred": 1}', '{"pred": '], "line 2 is not JSON"),
        (['{"pred": 1}', "", '{"pred": 2} x'], "line 3 is not JSON"),
        (['[{"pred": 1}]'], "line 1 is a list; expected one object on each line"),
        (
            ['{"pred": 1}', '{"pred": null}', '{"pred": "a"}'],
            "column 'pred': line 3 holds a text (\"a\"), line 1 a number",
        ),
        (['{"pred": 1, "x": {"y": 1}}', '{"pred": 1, "x": {"y": "z"}}'], "cannot be read as .jsonl"),
    ],
)
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
def test_a_broken_line_is_named(tmp_path, lines, sentence, ending):
    path = tmp_path / f"t.{ending}"
    text = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    assert sentence in refusal(path)


def test_a_file_without_permission_or_gone_since_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("pred\na\nb\n")
    source = json.loads(json.dumps(pool_from_table(path, prediction="pred").source))
    path.unlink()
    with pytest.raises(FileError, match="t.csv does not exist"):
        pool_from_source(source)


def save(path, array) -> None:
    np.save(path, array, allow_pickle=True)


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.array([Trap(), 1], object), "full of Python objects, which are never unpickled"),
        (np.array(["a", "b"]), "holds <U1; expected an array of numbers"),
        (np.array(["2020"], "M8[D]"), r"holds datetime64\[D\]; expected an array of numbers"),
    ],
)
def test_an_array_of_anything_but_numbers_is_refused(tmp_path, array, sentence):
    save(tmp_path / "x.npy", array)
    with pytest.raises(FileError, match=sentence):
        read_matrix(tmp_path / "x.npy")


def test_a_damaged_array_is_refused(tmp_path):
    path = tmp_path / "x.npy"
    save(path, np.ones((100, 3)))
    whole = path.read_bytes()
    for piece in (whole[:-8], whole[:40], whole[:8], RUBBISH, pickle.dumps(Trap())):
        path.write_bytes(piece)
        with pytest.raises(FileError, match="x.npy is .*; expected an array of numbers written by numpy.save"):
            read_matrix(path)


def test_an_array_file_of_another_kind_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones(3))
    with pytest.raises(FileError, match=r"x.npz is no .npy file; write one with numpy.save\(path, array\)"):
        read_matrix(tmp_path / "x.npz")
    with pytest.raises(FileError, match="y.npy does not exist; did you mean 'x.npz'"):
        read_matrix(tmp_path / "y.npy")
    (tmp_path / "z.npy").touch()
    with pytest.raises(FileError, match="z.npy is empty"):
        read_matrix(tmp_path / "z.npy")
