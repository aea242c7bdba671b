"""Files that accidents and strangers make: one sentence, exit code 2, nothing recorded, and never another value."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import altmas
from altmas.errors import AltmasError, FileError, PoolError, UnknownPoint
from altmas.pool.matrices import read_matrix
from benchmarks.operations import mutated_files
from cli_world import make_session, run, start

ROWS = [{"id": f"c{n}", "said": "ab"[n % 2], "x": n / 10, "text": f"text {n}"} for n in range(6)]


def lines(rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def init(folder, name, content, *more, code=2):
    """`altmas init` on a file with this content; what was said."""
    path = folder / name
    path.write_bytes(content)
    roles = ("--id", "id", "--prediction", "said", "--show", "text", "--method", "tradition", *more)
    ran = run("init", folder / "new.altmas", "--data", path, *roles)
    assert ran.code == code, (ran.out, ran.err)
    assert (folder / "new.altmas").exists() == (code == 0)
    if code:
        sentence, *hints = ran.err.strip().splitlines()
        assert sentence.startswith("altmas: ") and all(hint.startswith("try: altmas ") for hint in hints)
    return ran.err


def parquet(columns, metadata=None) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table(columns)
    pq.write_table(table.replace_schema_metadata(metadata) if metadata else table, sink)
    return bytes(sink.getvalue())


def text_array(values: list[bytes]) -> pa.Array:
    """Texts of any bytes, as a damaged file holds them."""
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(b"".join(values)))


# ---------------------------------------------------------------- text that is none


@pytest.mark.parametrize("column", ["id", "said", "text"])
def test_invalid_utf8_is_refused_by_column(column, tmp_path):
    broken = lines(ROWS).replace(json.dumps(ROWS[3][column]).encode(), b'"\xff\xfe"', 1)
    assert f"column {column!r}" in init(tmp_path, "t.jsonl", broken) or "UTF-8" in init(tmp_path, "t.jsonl", broken)
    columns = {name: pa.array([row[name] for row in ROWS]) for name in ROWS[0]}
    columns[column] = text_array([b"ok", b"\xff", b"ok2", b"b", b"c", b"d"])
    said = init(tmp_path, "t.parquet", parquet(columns))
    assert f"column {column!r} holds texts that are not UTF-8" in said
    with pytest.raises(AltmasError, match="not UTF-8"):
        altmas.Pool.from_table(pa.table(columns), prediction="said", id="id", show="text")


def test_invalid_utf8_in_a_csv_is_refused(tmp_path):
    assert "UTF" in init(tmp_path, "t.csv", b"id,said,text\nc0,a,x\nc1,b,\xff\n")
    assert "UTF" in init(tmp_path, "t.csv", b"id,said,te\xffxt\nc0,a,x\n")


@pytest.mark.parametrize("role", ["ids", "predictions", "items", "slices", "classes"])
def test_half_a_character_is_refused_where_it_enters(role):
    bad = ["a", "b\ud800", "c", "d"]
    given = {"predictions": ["a", "b", "a", "b"], "ids": list("wxyz"), "items": list("wxyz"), "classes": ["a", "b"]}
    given |= {"slices": {"site": bad}} if role == "slices" else {role: bad}
    with pytest.raises(PoolError, match="row 1: .*half a character"):
        altmas.Pool(None, given.pop("predictions"), **(given if role != "predictions" else {}))


def test_half_a_character_in_a_file_or_an_argument_is_a_sentence(tmp_path):
    assert "surrogate" in init(tmp_path, "t.jsonl", lines(ROWS).replace(b'"c2"', b'"\\ud800"', 1))
    session, _ = make_session(tmp_path)
    ran = start("tell", session, b"case-1\xff".decode("utf-8", "surrogateescape"), "cat")
    assert ran.returncode == 2 and "Traceback" not in ran.stderr and "is not in this pool" in ran.stderr


def test_a_nul_in_a_name_stays_there(tmp_path):
    init(tmp_path, "t.csv", b"id,said,text\nc0,a,x\nc1\0,b,y\n", code=0)
    with altmas.Session.open(tmp_path / "new.altmas") as session:
        assert list(session.pool.ids) == ["c0", "c1\0"]


# ---------------------------------------------------------------- shapes of files


@pytest.mark.parametrize("deep", [101, 20_000, 100_000])
@pytest.mark.parametrize("value", ["list", "object"])
def test_a_line_nested_without_end_is_refused(deep, value, tmp_path):
    nested = b"[" * deep + b"]" * deep if value == "list" else b'{"a":' * deep + b"1" + b"}" * deep
    content = lines(ROWS) + b'{"id": "c9", "said": "a", "text": "t", "more": ' + nested + b"}\n"
    assert "line 7 is nested more than 100 levels deep" in init(tmp_path, "t.jsonl", content)


def test_brackets_in_a_text_are_no_nesting(tmp_path):
    rows = [{**row, "text": "[{" * 5000 + '\\"' * 7} for row in ROWS]
    init(tmp_path, "t.jsonl", lines(rows), code=0)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet", "npy"])
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b" \r\n\t\n"], ids=["empty", "only a mark", "blank"])
def test_a_file_of_nothing_is_called_empty(suffix, content, tmp_path):
    if suffix == "npy":
        (tmp_path / "t.npy").write_bytes(content)
        with pytest.raises(FileError, match="is empty"):
            read_matrix(tmp_path / "t.npy")
    else:
        assert "is empty" in init(tmp_path, f"t.{suffix}", content)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet", "txt"])
@pytest.mark.parametrize(
    "content", [b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\n \n"], ids=["empty", "mark", "utf-16", "blank"]
)
def test_an_import_of_nothing_is_called_empty(suffix, content, tmp_path):
    session, _ = make_session(tmp_path)
    (tmp_path / f"labels.{suffix}").write_bytes(content)
    ran = run("import", session, tmp_path / f"labels.{suffix}")
    assert ran.code == 2 and (suffix == "parquet" or "is empty" in ran.err)


ODD = {
    "ragged": (b"id,said,text\nc0,a,x\nc1,b\n", "columns"),
    "a cell too many": (b"id,said,text\nc0,a,x\nc1,b,y,z\n", "columns"),
    "no rows": (b"id,said,text\n", "no rows"),
    "missing column": (b"id,sadi,text\nc0,a,x\n", "did you mean 'sadi'"),
    "column twice": (b"id,said,said,text\nc0,a,b,x\n", "2 columns called 'said'"),
    "id twice": (b"id,said,text\nc0,a,x\nc0,b,y\n", "rows 0 and 1"),
    "id missing": (b"id,said,text\nc0,a,x\n,b,y\n", "missing"),
    "a web page": (b"<!doctype html><p>404</p>", "no column"),
    "utf-16": ("id,said,text\nc0,a,x\n".encode("utf-16"), "only one class"),
    "parquet": (parquet({"id": ["c0"], "said": ["a"], "text": ["x"]}), "UTF-8"),
    "sqlite": (b"SQLite format 3\x00" + bytes(200), "no column"),
    "an endless header": (b"x" * 300_000 + b",said\n1,a\n", "field larger"),
    "an open quote": (b'id,said,text\nc0,a,x\nc1,b,"y\nc2,a,z\n', "quotation mark"),
    "two open quotes": (b'id,said,text\nc0,a,"x\nc1,b,"y\nc2,a,z\n', "quotation mark"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_csv_is_a_sentence(name, tmp_path):
    content, words = ODD[name]
    assert words in init(tmp_path, "t.csv", content)


def test_a_long_cell_is_read(tmp_path):
    init(tmp_path, "t.csv", b"id,said,text\nc0,a," + b"x" * 300_000 + b"\nc1,b,y\n", code=0)


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "npy"])
def test_a_wrong_ending_is_a_sentence(suffix, tmp_path):
    content = b"id,said,text\nc0,a,x\nc1,b,y\n"
    if suffix == "npy":
        (tmp_path / "t.npy").write_bytes(content)
        good = init(tmp_path, "good.csv", content, "--features", tmp_path / "t.npy")
        assert "is no .npy file" in good
    else:
        init(tmp_path, f"t.{suffix}", content)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "npy"])
def test_a_folder_is_a_sentence(suffix, tmp_path):
    (tmp_path / f"folder.{suffix}").mkdir()
    with pytest.raises(AltmasError):
        altmas.Pool.from_table(tmp_path / f"folder.{suffix}", prediction="said")
    with pytest.raises(AltmasError):
        altmas.Pool.from_table({"said": ["a", "b"]}, prediction="said", features=tmp_path / f"folder.{suffix}")


# ---------------------------------------------------------------- .npy


def test_three_hundred_and_sixty_damaged_arrays_are_sentences(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "good.npy", rng.normal(size=(20, 3)))
    good, path = (tmp_path / "good.npy").read_bytes(), tmp_path / "bad.npy"
    refused = 0
    for number in range(360):
        broken = bytearray(good)
        for _ in range(1 + number % 3):
            broken[int(rng.integers(0, 128))] = int(rng.integers(0, 256))
        path.write_bytes(bytes(broken))
        try:
            array = read_matrix(path)
        except FileError as error:
            refused += 1
            assert str(path) in str(error) and "\n" not in str(error)
        else:
            assert array.nbytes + array.offset == len(good)
    assert refused > 200


def test_bytes_beyond_the_array_are_refused(tmp_path):
    array = np.arange(60.0).reshape(20, 3)
    np.save(tmp_path / "a.npy", array)
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content.replace(b"(20, 3)", b"(20, 2)"))
    with pytest.raises(FileError, match="160 bytes follow"):
        read_matrix(tmp_path / "a.npy")
    with (tmp_path / "two.npy").open("wb") as file:
        np.save(file, array)
        np.save(file, array)
    with pytest.raises(FileError, match="more than one array"):
        read_matrix(tmp_path / "two.npy")


# ---------------------------------------------------------------- Hugging Face


@pytest.mark.parametrize("names", [5, [], ["a", "a"], ["a", 3], "ab", {"a": 1}], ids=str)
def test_false_class_names_in_the_metadata_are_a_sentence(names, tmp_path):
    note = {"info": {"features": {"said": {"_type": "ClassLabel", "names": names}}}}
    content = parquet({"id": ["x", "y"], "said": [0, 1], "text": ["t", "u"]}, {"huggingface": json.dumps(note)})
    assert "column 'said': its Hugging Face metadata" in init(tmp_path, "t.parquet", content)


NOTES = {
    "no JSON": "{",
    "a list": "[1]",
    "no info": '{"info": null}',
    "features a list": '{"info": {"features": [1]}}',
    "a feature a number": '{"info": {"features": {"said": 3}}}',
    "no names": '{"info": {"features": {"said": {"_type": "ClassLabel", "names": null}}}}',
    "nested": "[" * 100_000,
    "about another column": '{"info": {"features": {"other": {"_type": "ClassLabel", "names": 7}}}}',
}


@pytest.mark.parametrize("name", NOTES)
def test_metadata_that_say_nothing_are_ignored(name, tmp_path):
    content = parquet({"id": ["x", "y"], "said": [0, 1], "text": ["t", "u"]}, {"huggingface": NOTES[name]})
    init(tmp_path, "t.parquet", content, code=0)


# ---------------------------------------------------------------- nothing is rounded, filled or merged


def test_long_ids_keep_all_their_digits(tmp_path):
    ids = [2**63 + 1, 2**63 + 2, 2**63, 10**30 + 1, 7, 2**53 + 1]
    rows = [{**row, "id": id} for row, id in zip(ROWS, ids, strict=True)]
    (tmp_path / "t.jsonl").write_bytes(lines(rows))
    pool = altmas.Pool.from_table(tmp_path / "t.jsonl", prediction="said", id="id")
    assert list(pool.ids) == [str(id) for id in ids]
    assert pool.index(2**63 + 1) == 0 and pool.index(str(2**63 + 2)) == 1 and pool.index(7) == 4
    session = altmas.Session.create(None, pool, method="tradition")
    (tmp_path / "labels.jsonl").write_text(f'{{"id": {2**63 + 2}, "label": "a"}}\n')
    assert session.import_labels(tmp_path / "labels.jsonl").labels == 1
    assert list(session.history.labels) == [1]


def test_two_objects_on_a_line_and_gaps_do_not_move_long_ids(tmp_path):
    (tmp_path / "t.jsonl").write_text(f'{{"id": {2**63}, "said": "a"}} {{"id": {2**63 + 1}, "said": "b"}}\n\n')
    assert list(altmas.Pool.from_table(tmp_path / "t.jsonl", prediction="said", id="id").ids) == [
        str(2**63),
        str(2**63 + 1),
    ]


def test_fractions_are_still_no_names(tmp_path):
    rows = [{**row, "said": value} for row, value in zip(ROWS, [1e20, 0.5, 1e20, 0.5, 1.0, 2.0], strict=True)]
    assert "neither an integer, a string nor a boolean" in init(tmp_path, "t.jsonl", lines(rows))


def test_a_mask_is_never_filled():
    names = np.ma.array([1, 2, 3, 999], mask=[0, 0, 0, 1])
    for role in ("predictions", "ids"):
        given = {"predictions": [1, 2, 1, 2], "ids": [1, 2, 3, 4], role: names}
        with pytest.raises(PoolError, match=f"{role}, row 3: the value is masked"):
            altmas.Pool(None, given["predictions"], ids=given["ids"])
    numbers = np.ma.array(np.full((4, 2), 0.5), mask=[[0, 0], [0, 0], [0, 1], [0, 0]])
    with pytest.raises(PoolError, match="features, row 2, column 1: the value is masked"):
        altmas.Pool(numbers, [1, 2, 1, 2])
    with pytest.raises(PoolError, match="scores, row 2, column 1: the value is masked"):
        altmas.Pool(None, [1, 2, 1, 2], scores=numbers)
    pool = altmas.Pool(None, [1, 2, 1, 2], slices={"site": names})
    assert pool.slices["site"].tolist() == ["1", "2", "3", "(missing)"]
    with pytest.raises(PoolError, match="truth, row 3"):
        pool.codes(names, what="truth")


def test_a_mask_without_a_gap_is_an_array():
    pool = altmas.Pool(np.ma.array(np.ones((4, 2)), mask=False), np.ma.array([1, 2, 1, 2]))
    assert pool.features is not None and type(pool.features) is np.ndarray and pool.predictions.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "pair",
    [
        ("cat", "Cat"),
        ("cat", "cat "),
        ("e\u0301", "\u00e9"),
        ("a  b", "a b"),
        ("ﬁn", "fin"),
        ("4", "4.0"),
        ("4", "4,0"),
    ],
)
def test_classes_that_look_alike_are_pointed_out(pair, tmp_path):
    pool = altmas.Pool(None, [*pair, "dog"])
    (notice,) = pool.notices
    assert all(repr(name) in notice for name in pair) and "dog" not in notice and notice in repr(pool)
    content = "id,said,text\n" + "".join(f'{n},"{name}",t\n' for n, name in enumerate([*pair, "dog"]))
    assert "differ only by case, blanks, Unicode form or decimals" in init(tmp_path, "t.csv", content.encode(), code=0)


def test_other_classes_are_not():
    assert altmas.Pool(None, ["cat", "dog", 3, "bird"]).notices == ()


# ---------------------------------------------------------------- compare


@pytest.fixture
def labelled(tmp_path):
    session, truth = make_session(tmp_path)
    labels = "".join(f"{id},{label}\n" for id, label in list(truth.items())[:60])
    (tmp_path / "labels.csv").write_text("id,label\n" + labels)
    assert run("import", session, tmp_path / "labels.csv").code == 0
    return session, tmp_path, (tmp_path / "preds.csv").read_text().splitlines()


def compare(session, folder, rows, *more):
    (folder / "second.csv").write_text("\n".join(rows) + "\n")
    return run("compare", session, "--predictions", folder / "second.csv", "--prediction", "vendor_label", *more)


def test_compare_refuses_an_id_that_stands_twice(labelled):
    session, folder, rows = labelled
    ran = compare(session, folder, [*rows, rows[3].replace(rows[3].split(",")[1], "cat", 1)], "--id", "study_id")
    assert ran.code == 2 and "two predictions for the point 'case-2', in rows 2 and 120" in ran.err
    assert compare(session, folder, rows, "--id", "study_id").code == 0
    with altmas.Session.open(session) as one:
        same = [one.pool.classes[code] for code in one.pool.predictions]
        with pytest.raises(PoolError, match="two predictions"):
            one.compare([*same, same[0]], ids=[*one.pool.ids, one.pool.ids[0]])
        with pytest.raises(PoolError, match="120 predictions and 1 ids"):
            one.compare(same, ids=["case-0"])
        assert one.compare(same[::-1], ids=list(one.pool.ids)[::-1]).disagreements == 0


def test_two_spellings_of_one_id_are_one_id():
    session = altmas.Session.create(None, altmas.Pool(None, ["a", "b", "a"]), method="tradition")
    with pytest.raises(PoolError, match="two predictions for the point 1"):
        session.compare({0: "a", 1: "a", "1": "b", 2: "a"})


def test_compare_refuses_ids_that_do_not_match(labelled):
    session, folder, rows = labelled
    ran = compare(session, folder, [row.replace("case-7,", "case-x,") for row in rows], "--id", "study_id")
    assert ran.code == 2 and "case-x" in ran.err
    ran = compare(session, folder, rows[:-2], "--id", "study_id")
    assert ran.code == 2 and "no prediction for 2 of 120 points" in ran.err
    with altmas.Session.open(session) as one, pytest.raises(UnknownPoint):
        one.compare({"nobody": "cat"})


def test_compare_without_ids_notices_another_order(labelled):
    session, folder, rows = labelled
    assert compare(session, folder, rows).code == 0
    ran = compare(session, folder, [rows[0], *reversed(rows[1:])])
    assert ran.code == 2 and "another order" in ran.err and "--id study_id" in ran.err
    without = [row.split(",", 1)[1] for row in rows]
    assert compare(session, folder, without).code == 0  # no ids in the file: the order is all there is


# ---------------------------------------------------------------- the benchmark


@pytest.mark.slow
def test_some_files_of_the_benchmark_are_refused_or_read_as_they_are(tmp_path):
    bench = mutated_files.Bench(tmp_path)
    found = [bench.outcome(number) for number in range(44)]
    assert {outcome for _, outcome, _ in found} == {"refused", "read"}, found
    assert {name for name, _, _ in found} == set(mutated_files.FORMATS)


def test_the_benchmark_would_notice(tmp_path, monkeypatch):
    """A reader that fails without a sentence, and one that gives another value."""
    bench = mutated_files.Bench(tmp_path)
    number = list(mutated_files.FORMATS).index("npy features")
    monkeypatch.setattr(mutated_files, "mutated", lambda content, rng: content)
    assert bench.outcome(number)[1] == "read"
    monkeypatch.setattr("altmas.pool.origins.read_matrix", lambda path: read_matrix(path) + 1)
    assert bench.outcome(number)[1] == "changed"
    monkeypatch.setattr("altmas.pool.origins.read_matrix", lambda path: 1 / 0)
    assert bench.outcome(number)[1] == "traceback"


def test_the_page_states_what_the_benchmark_found():
    with mutated_files.RESULTS.open(encoding="utf-8") as file:
        whole = list(csv.DictReader(file))[-1]
    assert int(whole["files"]) == 10_000 and [whole[name] for name in mutated_files.OUTCOMES[2:]] == ["0"] * 4
    page = (mutated_files.RESULTS.parents[2] / "docs" / "files.md").read_text("utf-8")
    assert f"{int(whole['refused']):,} were refused" in page and f"{int(whole['read']):,} were still proper" in page
