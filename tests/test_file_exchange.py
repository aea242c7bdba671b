"""Files that go out and come back in every order: again, half filled, late, from strangers. Each has one effect."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import altmas
from altmas.errors import FileError, UnknownLabel, UnknownPoint

IDS = [f"c{k}" for k in range(30)]


@pytest.fixture
def session():
    pool = altmas.Pool(None, ["cat", "dog", "owl"] * 10, ids=IDS)
    return altmas.Session.create(None, pool, method="tradition", budget=20)


def kinds(session):
    return [event["kind"] for event in session.events() if event["kind"] != "estimate"]


def rows_of(path):
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))


def fill_in(path, labels):
    """Write these labels into the rows of an exported sheet; rows that are not named stay empty."""
    rows = rows_of(path)
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "label": labels.get(row["id"], "")} for row in rows)


def labels_csv(path, **labels):
    path.write_text("id,label\n" + "".join(f"{id},{label}\n" for id, label in labels.items()), "utf-8")
    return path


# ---------------------------------------------------------------- out twice


def test_exporting_twice_gives_the_same_items_and_draws_once(session, tmp_path):
    session.export(tmp_path / "one.csv", 5)
    log = kinds(session)
    session.export(tmp_path / "two.csv", 5)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert kinds(session) == log and log.count("draw") == 1


def test_a_larger_export_holds_the_smaller_one(session, tmp_path):
    session.export(tmp_path / "five.csv", 5)
    session.export(tmp_path / "nine.csv", 9)
    five, nine = ([row["id"] for row in rows_of(tmp_path / name)] for name in ("five.csv", "nine.csv"))
    assert nine[:5] == five and len(set(nine)) == 9


def test_an_export_that_is_refused_draws_nothing(session, tmp_path):
    (tmp_path / "next.csv").write_text("labels of a week")
    with pytest.raises(FileExistsError):
        session.export(tmp_path / "next.csv", 5)
    assert kinds(session) == ["created"]


# ---------------------------------------------------------------- back, half filled


def test_a_half_filled_sheet_counts_what_is_there_and_asks_for_the_rest_again(session, tmp_path):
    sheet = tmp_path / "next.csv"
    session.export(sheet, 6)
    ids = [row["id"] for row in rows_of(sheet)]
    fill_in(sheet, dict.fromkeys(ids[:2], "cat"))
    first = session.import_labels(sheet)
    assert (first.labels, first.blank, first.unchanged) == (2, 4, 0)
    session.export(tmp_path / "again.csv", 4)
    assert [row["id"] for row in rows_of(tmp_path / "again.csv")] == ids[2:]
    fill_in(sheet, dict.fromkeys(ids, "cat"))
    second = session.import_labels(sheet)
    assert (second.labels, second.blank, second.unchanged) == (4, 0, 2)


def test_a_sheet_of_blanks_records_nothing(session, tmp_path):
    session.export(tmp_path / "next.csv", 6)
    log = kinds(session)
    result = session.import_labels(tmp_path / "next.csv")
    assert (result.labels, result.blank) == (0, 6) and kinds(session) == log


def test_a_row_that_lost_its_id_is_refused_and_an_empty_row_is_not(session, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,label\nc0,cat\n,dog\n")
    with pytest.raises(FileError, match="row 3: the id is missing; nothing was recorded"):
        session.import_labels(path)
    path.write_text("id,label\nc0,cat\n,\n\n")
    assert session.import_labels(path).labels == 1


# ---------------------------------------------------------------- the same again


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_importing_a_file_twice_records_it_once(session, suffix, tmp_path):
    session.tell({"c1": "cat", "c2": "dog"}, annotator="ana")
    session.skip("c3", "dark", "bob")
    session.export_labels(tmp_path / f"labels.{suffix}")
    other = altmas.Session.create(None, session.pool, method="tradition")
    assert (other.import_labels(tmp_path / f"labels.{suffix}").labels, len(kinds(other))) == (2, 4)
    again = other.import_labels(tmp_path / f"labels.{suffix}")
    assert (again.labels, again.skips, again.unchanged) == (0, 0, 3) and len(kinds(other)) == 4


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_an_old_file_does_not_take_back_a_revision(session, suffix, tmp_path):
    """A copy of the labels from before a correction: what it says was said, and was corrected since."""
    session.tell("c1", "cat", "ana")
    session.export_labels(tmp_path / f"old.{suffix}")
    session.tell("c1", "dog", "ana")
    result = session.import_labels(tmp_path / f"old.{suffix}")
    assert (result.revisions, result.unchanged) == (0, 1) and session.votes("c1") == {"ana": "dog"}


def test_a_sheet_without_times_is_taken_at_its_word(session, tmp_path):
    session.tell("c1", "cat", None)
    session.tell("c1", "dog", None)
    assert session.import_labels(labels_csv(tmp_path / "labels.csv", c1="cat")).revisions == 1
    assert session.votes("c1") == {"": "cat"}


def test_what_was_taken_back_can_be_imported_again(session, tmp_path):
    session.tell("c1", "cat", "ana")
    session.export_labels(tmp_path / "labels.csv")
    session.undo("ana")
    assert session.import_labels(tmp_path / "labels.csv").labels == 1


def test_the_same_answer_in_two_spellings_is_one_answer(tmp_path):
    pool = altmas.Pool(None, [True, False] * 5)
    session = altmas.Session.create(None, pool, method="tradition")
    (tmp_path / "labels.jsonl").write_text('{"id": 3, "label": true}\n{"id": "3", "label": "True"}\n')
    assert session.import_labels(tmp_path / "labels.jsonl").labels == 1


def test_two_people_are_two_opinions(session, tmp_path):
    for name, label in (("ana", "cat"), ("bob", "dog")):
        (tmp_path / f"{name}.csv").write_text(f"id,label,annotator\nc1,{label},{name}\n")
        assert session.import_labels(tmp_path / f"{name}.csv").labels == 1
    assert session.votes("c1") == {"ana": "cat", "bob": "dog"} and len(session.disagreements()) == 1


# ---------------------------------------------------------------- strangers


def test_one_unknown_id_stops_the_whole_file(session, tmp_path):
    path = labels_csv(tmp_path / "labels.csv", c0="cat", c1="dog", stranger="cat")
    with pytest.raises(UnknownPoint, match=r"labels.csv, row 4: .*'stranger'.*nothing was recorded"):
        session.import_labels(path)
    assert kinds(session) == ["created"]


def test_labels_of_another_session_are_refused(session, tmp_path):
    other = altmas.Session.create(None, altmas.Pool(None, ["x", "y"] * 5), method="tradition")
    other.tell({0: "x", 1: "y"})
    other.export_labels(tmp_path / "labels.csv")
    with pytest.raises(UnknownPoint, match="row 2"):
        session.import_labels(tmp_path / "labels.csv")


def test_labels_that_nobody_asked_for_are_volunteered(session, tmp_path):
    asked = {query.id for query in session.ask(3)}
    free = next(id for id in IDS if id not in asked)
    session.import_labels(labels_csv(tmp_path / "labels.csv", **{free: "cat"}))
    assert session.status().volunteered == 1


# ---------------------------------------------------------------- other types


TYPES = {
    "integers": ([1, 2], [1, 2], ["1", "2"]),
    "integers as floats (a gap in pandas)": ([1, 2], [1.0, 2.0], ["1", "2"]),
    "integers as texts": ([1, 2], ["1", "2"], ["1", "2"]),
    "booleans": ([True, False], [True, False], ["True", "False"]),
    "booleans as texts": ([True, False], ["TRUE", "false"], ["True", "False"]),
    "booleans as numbers": ([True, False], [1, 0], ["True", "False"]),
    "texts of digits": (["1", "2"], [1, 2], ["1", "2"]),
    "texts with zeros": (["01", "02"], ["01", "02"], ["01", "02"]),
}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize("name", TYPES)
def test_a_label_column_of_another_type_means_the_same_classes(name, suffix, tmp_path):
    classes, given, expected = TYPES[name]
    pool = altmas.Pool(None, classes * 4, classes=classes, ids=[f"p{k}" for k in range(8)])
    session = altmas.Session.create(None, pool, method="tradition")
    rows = [{"id": f"p{k}", "label": label} for k, label in enumerate(given)]
    path = tmp_path / f"labels.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist([*rows, {"id": "p7", "label": None}]), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert session.import_labels(path).labels == 2
    assert [str(next(iter(session.votes(f"p{k}").values()))) for k in range(2)] == expected


@pytest.mark.parametrize("label", [0, 1.5, ["cat"], {"choices": ["cat"]}, True, "CAT", "cat,dog"], ids=str)
def test_a_label_that_is_no_class_is_refused(label, session, tmp_path):
    """A number is never taken for the place of a class in the list."""
    rows = [{"id": "c0", "label": "cat"}, {"id": "c1", "label": label}]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises((UnknownLabel, FileError), match="line 2.*nothing was recorded"):
        session.import_labels(tmp_path / "labels.jsonl")
    assert kinds(session) == ["created"]


def test_categories_and_dates_in_a_parquet_file(session, tmp_path):
    labels = pa.array(["cat", "dog"]).dictionary_encode()
    pq.write_table(pa.table({"id": ["c0", "c1"], "label": labels}), tmp_path / "labels.parquet")
    assert session.import_labels(tmp_path / "labels.parquet").labels == 2
    dates = pa.array([0, 1], pa.timestamp("s"))
    pq.write_table(pa.table({"id": ["c2", "c3"], "label": dates}), tmp_path / "dates.parquet")
    with pytest.raises((UnknownLabel, FileError), match="nothing was recorded"):
        session.import_labels(tmp_path / "dates.parquet")
