"""Files in and out: nothing is lost, nothing is guessed, and a bad file is refused in a sentence."""

import csv
import io
import json
import os
import random
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from altmas import AltmasError, Pool
from altmas.errors import FileError, PlanError, UnknownLabel, UnknownPoint
from altmas.interop import export_items, export_labels, import_labels
from altmas.interop.replies import labelled_rows, last_words
from altmas.session import Session
from altmas.session.answers import Answer
from altmas.session.store import LabelStore

CLASSES = ["cat", 'say "meow", please', "two\nlines", "🐕 dog", "naïve; café", "01"]
IDS = ["007", "7", "a,b", 'with "quotes"', "line\nbreak", "日本", "0x1F", "1e5", "-3", " padded ", "nan", "🦊"]


def make_session(path=None, *, items=None, n=12, scores=False):
    predictions = [CLASSES[k % len(CLASSES)] for k in range(n)]
    share = np.full((n, len(CLASSES)), 0.1)
    share[np.arange(n), np.arange(n) % len(CLASSES)] = 0.5
    pool = Pool(None, predictions, classes=CLASSES, ids=IDS[:n], items=items, scores=share if scores else None)
    return Session.create(path, pool, metrics=["accuracy"], method="tradition", seed=3)


def said(session):
    """Everything that holds now, without the time of recording."""
    return {
        key: (event.kind, event.label, event.seconds, event.body.get("reason", event.body.get("note")))
        for key, event in last_words(session.standing()).items()
    }


@pytest.fixture
def answered():
    session = make_session()
    session.answer(
        [
            *(Answer(id, CLASSES[k % 6], "label", "Zoë, 2nd", 1.5 + k) for k, id in enumerate(IDS[:8])),
            Answer("7", CLASSES[2], "label", "bob@example.org"),
            Answer("a,b", CLASSES[0], "label", None, 2.25, note="first,\nsecond"),
            Answer("-3", None, "skip", "Zoë, 2nd", 3.0, 'unreadable, "blurred"'),
            Answer("🦊", None, "unsure", None),
        ]
    )
    session.adjudicate("7", CLASSES[1], "chief")
    return session


# ---------------------------------------------------------------- round trips


def test_the_last_ruling_stays_the_last_one(tmp_path):
    """Eve rules, Bob rules, Eve rules again: a file that kept the order of their first rulings would say Bob's."""
    session, again = make_session(), make_session()
    session.tell("7", CLASSES[0], "ana")
    for name, label in (("eve", CLASSES[1]), ("bob", CLASSES[2]), ("eve", CLASSES[3])):
        session.adjudicate("7", label, name)
    session.export_labels(tmp_path / "labels.csv")
    again.import_labels(tmp_path / "labels.csv")
    assert session.history.labels == again.history.labels
    session.undo("eve"), session.undo("eve"), again.undo("eve")
    assert session.history.labels == again.history.labels


def test_a_ruling_whose_votes_were_taken_back_survives(tmp_path):
    session, again = make_session(), make_session()
    session.tell("7", CLASSES[0], "ana")
    session.adjudicate("7", CLASSES[1], "eve")
    session.undo("ana")
    session.export_labels(tmp_path / "labels.csv")
    assert again.import_labels(tmp_path / "labels.csv").rulings == 1
    assert session.history.labels == again.history.labels and again.votes("7") == {}


def test_two_processes_that_import_one_file_record_it_once(tmp_path, answered, monkeypatch):
    """The second process imports the file at the last moment before the first may write."""
    answered.export_labels(tmp_path / "labels.csv")
    first = make_session(tmp_path / "shared.altmas")
    first.tell("7", CLASSES[5], "Zoë, 2nd")  # the file revises it
    second, store, results = Session.open(tmp_path / "shared.altmas"), first._journal.store, []
    transaction = store.transaction

    def after_the_other():
        results.append(second.import_labels(tmp_path / "labels.csv"))
        return transaction()

    monkeypatch.setattr(store, "transaction", after_the_other)
    results.append(first.import_labels(tmp_path / "labels.csv"))
    once, nothing = results
    assert (once.labels, once.revisions, once.skips, once.rulings, once.unchanged) == (9, 1, 2, 1, 0)
    assert nothing.unchanged == 13 and str(nothing).startswith("labels.csv: nothing new")
    assert [event["kind"] for event in first.events()].count("label") == 1 + 10
    assert first.history.key == second.history.key


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_every_answer_survives_a_round_trip(answered, tmp_path, suffix):
    written = export_labels(answered, tmp_path / f"labels.{suffix}")
    other = make_session()
    result = import_labels(other, tmp_path / f"labels.{suffix}")
    assert written.count == 13
    assert (result.labels, result.skips, result.rulings, result.revisions) == (10, 2, 1, 0)
    assert said(other) == said(answered)
    assert other.history.labels == answered.history.labels
    assert list(other.history.skipped) == list(answered.history.skipped)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_time_at_which_a_label_was_made_survives(answered, tmp_path, suffix):
    export_labels(answered, tmp_path / f"labels.{suffix}")
    other = make_session()
    import_labels(other, tmp_path / f"labels.{suffix}")
    assert labelled_rows(answered) == labelled_rows(other)


def test_an_import_with_rulings_is_one_transaction(answered, tmp_path, monkeypatch):
    """A kill between labels and rulings left half an import behind."""
    export_labels(answered, tmp_path / "labels.csv")
    other, commits = make_session(), []
    transaction = LabelStore.transaction

    def counted(store: LabelStore):
        commits.append(store)
        return transaction(store)

    monkeypatch.setattr(LabelStore, "transaction", counted)
    assert import_labels(other, tmp_path / "labels.csv").rulings == 1
    assert len(commits) == 1


@settings(max_examples=40, deadline=None)
@example(names=["0", "NaT"], ids=["0", "1", "2", "NaT"], suffix="csv")
@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), min_size=2, max_size=5, unique=True
    ),
    ids=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), min_size=4, max_size=4, unique=True
    ),
    suffix=st.sampled_from(["csv", "jsonl", "parquet"]),
)
def test_any_class_name_and_any_id_survive(names, ids, suffix, tmp_path_factory):
    pool = Pool(None, [names[k % len(names)] for k in range(4)], classes=names, ids=ids)
    path = tmp_path_factory.mktemp("any") / f"labels.{suffix}"
    sessions = [Session.create(None, pool, method="tradition") for _ in range(2)]
    sessions[0].tell({id: names[-1 - k % 2] for k, id in enumerate(ids)})
    export_labels(sessions[0], path)
    import_labels(sessions[1], path)
    assert sessions[1].history.labels == sessions[0].history.labels


def test_integer_ids_and_classes_survive_a_csv(tmp_path):
    pool = Pool(None, [0, 1, 1, 0], ids=[10, 20, 30, 40])
    one, two = (Session.create(None, pool, method="tradition") for _ in range(2))
    one.tell({10: 1, 40: 0})
    export_labels(one, tmp_path / "labels.csv")
    import_labels(two, tmp_path / "labels.csv")
    assert two.history.labels == {0: 1, 3: 0}


def test_a_spreadsheet_is_exported_filled_in_and_imported(tmp_path):
    texts = [f"text {k}, with a comma\nand a second line" for k in range(12)]
    session = make_session(items=texts)
    export_items(session, tmp_path / "next.csv", 5)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "next.csv").read_text("utf-8-sig"), newline="")))
    assert [row["text"] for row in rows] == [texts[IDS.index(row["id"])] for row in rows]
    assert "prediction" not in rows[0]
    for row in rows[:4]:
        row["label"], row["annotator"], row["seconds"] = CLASSES[3], "ana", "2,5"
    with (tmp_path / "back.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=";")
        writer.writeheader()
        writer.writerows(reversed(rows))
    result = import_labels(session, tmp_path / "back.csv")
    assert (result.labels, result.blank) == (4, 1)
    asked = {query.id for query in session.ask(1)}
    assert asked == {rows[4]["id"]}
    assert {event["seconds"] for event in session.events() if event["kind"] == "label"} == {2.5}


def test_utf16_and_tabs_as_spreadsheets_write_them_are_read(tmp_path):
    (tmp_path / "labels.txt").write_bytes("id\tlabel\r\n日本\t🐕 dog\r\n".encode("utf-16"))
    assert import_labels(make_session(), tmp_path / "labels.txt").labels == 1


def test_predictions_are_written_only_when_asked_for_and_then_a_reveal_is_logged(tmp_path):
    session = make_session(items=["x"] * 12, scores=True)
    export_items(session, tmp_path / "blind.json", 3)
    assert "predictions" not in (tmp_path / "blind.json").read_text()
    assert session.status().reveals == 0
    export_items(session, tmp_path / "open.json", 3, blind=False)
    (prediction,) = json.loads((tmp_path / "open.json").read_text())[0]["predictions"]
    assert prediction["score"] == pytest.approx(0.5)
    assert prediction["result"][0]["value"]["choices"][0] in CLASSES
    assert session.status().reveals == 3
    export_items(session, tmp_path / "open.csv", 3, blind=False)
    assert "prediction" in (tmp_path / "open.csv").read_text("utf-8-sig").splitlines()[0]


def test_columns_of_an_item_never_hide_the_column_to_fill_in(tmp_path):
    session = make_session(items=[{"label": "printed on the box", "weight": 3.5, "id": k} for k in range(12)])
    export_items(session, tmp_path / "next.csv", 2)
    (row, *_) = csv.DictReader(io.StringIO((tmp_path / "next.csv").read_text("utf-8-sig")))
    assert (row["item.label"], row["label"], row["weight"]) == ("printed on the box", "", "3.5")
    assert row["id"] in IDS


def test_texts_that_a_spreadsheet_would_compute_are_shown_instead(tmp_path):
    session = make_session(items=["=1+1", "@sum(a1)", "-3 degrees", "plain"] * 3)
    export_items(session, tmp_path / "next.csv", 12)
    rows = csv.DictReader(io.StringIO((tmp_path / "next.csv").read_text("utf-8-sig"), newline=""))
    shown = {row["id"]: row["text"] for row in rows}
    assert set(shown) == set(IDS)
    assert set(shown.values()) == {"'=1+1", "'@sum(a1)", "'-3 degrees", "plain"}


# ---------------------------------------------------------------- Label Studio


def label_studio_export(tasks, choices):
    """What Label Studio makes of tasks that a person labelled."""
    exported = []
    for number, (task, choice) in enumerate(zip(tasks, choices, strict=True), start=101):
        result = [{"from_name": "label", "to_name": "item", "type": "choices", "value": {"choices": [choice]}}]
        annotation = {
            "id": number,
            "completed_by": 1,
            "result": result,
            "was_cancelled": False,
            "ground_truth": False,
            "created_at": "2026-01-05T09:00:00Z",
            "lead_time": 4.25,
        }
        exported.append({"id": number, "data": task["data"], "annotations": [annotation], "predictions": []})
    return exported


def test_tasks_go_to_label_studio_and_come_back(tmp_path):
    session = make_session(items=[f"<b>text</b> {k}" for k in range(12)])
    result = export_items(session, tmp_path / "tasks.json", 12)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    choices = [CLASSES[k % 6] for k in range(12)]
    exported = label_studio_export(tasks, choices)
    random.Random(1).shuffle(exported)
    (tmp_path / "export.json").write_text(json.dumps(exported))
    assert import_labels(session, tmp_path / "export.json").labels == 12
    assert [session.votes(task["data"]["altmas_id"]) for task in tasks] == [{"1": choice} for choice in choices]
    assert session.status().seconds_per_label == 4.25
    assert result.config == tmp_path / "tasks.config.xml"


def test_the_labelling_config_names_every_class_exactly(tmp_path):
    session = make_session(items=["x"] * 12)
    config = ElementTree.parse(export_items(session, tmp_path / "tasks.json", 1).config).getroot()
    (choices,) = config.iter("Choices")
    assert [choice.get("value") for choice in choices] == CLASSES
    assert choices.get("choice") == "single"
    assert {choices.get("toName")} == {tag.get("name") for tag in config.iter("Text")}
    assert len({choice.get("hotkey") for choice in choices}) == len(CLASSES)


@pytest.mark.parametrize(
    ("item", "tags", "keys"),
    [
        ("images/a.png", ["Image"], {"image"}),
        (np.zeros((4, 5), np.uint8), ["Image"], {"image"}),
        ({"bytes": b"\xff\xd8\xff rest of a JPEG", "path": None}, ["Image"], {"image"}),
        ({"age": 3, "scan": "a.png"}, ["Image", "Table"], {"image", "row"}),
        ({"age": 3, "sex": "f"}, ["Table"], {"row"}),
        ("a sentence", ["Text"], {"text"}),
    ],
)
def test_each_kind_of_item_gets_the_tag_that_shows_it(item, tags, keys, tmp_path):
    session = make_session(items=[item] * 12)
    config = ElementTree.parse(export_items(session, tmp_path / "tasks.json", 1).config).getroot()
    (task,) = json.loads((tmp_path / "tasks.json").read_text())
    assert set(task["data"]) == {"altmas_id", *keys}
    shown = [tag for tag in config if tag.tag != "Choices"]
    assert [tag.tag for tag in shown] == tags
    assert {tag.get("value").removeprefix("$") for tag in shown} == keys
    assert shown[0].get("name") == "item"


def test_skips_and_several_annotators_come_back(tmp_path):
    session = make_session()

    def annotation(who, choice, at, **more):
        chosen = [{"type": "choices", "from_name": "label", "value": {"choices": [choice]}}] if choice else []
        return {"completed_by": who, "result": chosen, "created_at": at, "lead_time": None, **more}

    ana, bob = {"id": 1, "email": "ana@example.org"}, 2
    tasks = [
        {
            "data": {"altmas_id": "007"},
            "annotations": [annotation(bob, "01", "2026-01-02"), annotation(ana, "cat", "2026-01-01")],
        },
        {"data": {"altmas_id": "7"}, "annotations": [annotation(ana, None, "2026-01-01", was_cancelled=True)]},
        {"data": {"altmas_id": "日本"}, "annotations": [annotation(ana, None, "2026-01-01")]},
        {
            "data": {"altmas_id": "-3"},
            "annotations": [
                annotation(bob, "01", "2026-01-01"),
                annotation(ana, "cat", "2026-01-02", ground_truth=True),
            ],
        },
        {"data": {"altmas_id": "nan"}, "annotations": []},
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    result = import_labels(session, tmp_path / "export.json")
    assert (result.labels, result.skips, result.blank, result.format) == (4, 2, 1, "label-studio")
    assert session.votes("007") == {"ana@example.org": "cat", "2": "01"}
    pool = session.pool
    assert session.history.labels == {pool.index("007"): 0, pool.index("-3"): 0}  # the first, and the ground truth
    assert session.history.skipped == {
        pool.index("7"): "skipped in Label Studio",
        pool.index("日本"): "submitted without a choice",
    }


def test_a_min_export_comes_back(tmp_path):
    records = [
        {"altmas_id": "007", "id": 1, "text": "x", "label": "🐕 dog", "annotator": 4, "lead_time": 2.0},
        {"altmas_id": "7", "id": 2, "text": "x", "label": {"choices": ["cat"]}, "annotator": 4},
        {"altmas_id": "a,b", "id": 3, "text": "x", "annotator": {}},
    ]
    (tmp_path / "min.json").write_text(json.dumps(records, ensure_ascii=False), "utf-8")
    session = make_session()
    result = import_labels(session, tmp_path / "min.json")
    assert (result.labels, result.blank, result.format) == (2, 1, "label-studio-min")
    assert session.votes("007") == {"4": "🐕 dog"}


def test_label_studio_csv_is_matched_by_our_id_not_by_its_own(tmp_path):
    (tmp_path / "ls.csv").write_text("annotation_id,id,altmas_id,label,lead_time\n1,7,007,cat,3\n", "utf-8")
    session = make_session()
    import_labels(session, tmp_path / "ls.csv")
    assert session.votes("007") == {"": "cat"} and session.votes("7") == {}


# ---------------------------------------------------------------- again, revised, refused


def test_importing_twice_changes_nothing_and_a_changed_label_is_a_revision(tmp_path):
    session, path = make_session(), tmp_path / "labels.csv"
    path.write_text("id,label,annotator\n007,cat,ana\n7,01,ana\n", "utf-8")
    assert import_labels(session, path).labels == 2
    before = session.status().seq
    assert import_labels(session, path).unchanged == 2
    assert session.status().seq == before
    path.write_text("id,label,annotator\n007,01,ana\n7,01,ana\n", "utf-8")
    result = import_labels(session, path)
    assert (result.revisions, result.unchanged) == (1, 1)
    assert session.votes("007") == {"ana": "01"}


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ("id,label\n007,cat\n7,Cat \n", UnknownLabel, ["row 3", "'7'", "did you mean 'cat'?"]),
        ("id,label\n007,cat\nab,cat\n", UnknownPoint, ["row 3", "'ab'"]),
        ("id,label\n007,cat\n0077,cat\n", UnknownPoint, ["row 3", "did you mean '007'?"]),
        ("id,lable\n007,cat\n", FileError, ["'label'", "did you mean 'lable'?"]),
        ("id,label,seconds\n007,cat,fast\n", FileError, ["row 2", "'fast'"]),
        ("id,label,kind\n007,cat,skipp\n", FileError, ["row 2", "did you mean 'skip'?"]),
        ("id,label\n007,cat\n007,01\n", FileError, ["row 3", "row 2", "two answers"]),
        ("id,label\n007,cat,extra\n", FileError, ["row 2", "3 cells under 2 columns"]),
        ('id,label\n007,"cat\n', FileError, ["no proper CSV"]),
        ("\n\n", FileError, ["is empty"]),
    ],
)
def test_a_bad_table_is_refused_whole(content, error, words, tmp_path):
    session, path = make_session(), tmp_path / "labels.csv"
    path.write_text(content, "utf-8")
    with pytest.raises(error) as caught:
        import_labels(session, path)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "nothing was recorded" in str(caught.value)
    assert session.history.labels == {}


def test_zeros_that_a_spreadsheet_took_away_are_named(tmp_path):
    pool = Pool(None, ["a", "b"], ids=["0012", "0034"])
    session = Session.create(None, pool, method="tradition")
    (tmp_path / "labels.csv").write_text("id,label\n12,a\n", "utf-8")
    with pytest.raises(UnknownPoint, match="there is '0012'"):
        import_labels(session, tmp_path / "labels.csv")


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([{"data": {"text": "x"}, "annotations": []}], ["task 1", "altmas_id"]),
        ([{"id": 7, "label": "cat"}], ["task 1", "altmas_id"]),
        (
            [
                {
                    "data": {"altmas_id": "7"},
                    "annotations": [{"result": [{"type": "choices", "value": {"choices": ["cat", "01"]}}]}],
                }
            ],
            ["2 classes"],
        ),
        (
            [
                {
                    "data": {"altmas_id": "7"},
                    "annotations": [{"result": [{"type": "choices", "value": {"choices": ["cta"]}}]}],
                }
            ],
            ["task 1", "'7'", "did you mean 'cat'?"],
        ),
        ({"tasks": []}, ["expected a list of tasks"]),
    ],
)
def test_a_bad_label_studio_export_is_refused_whole(tasks, words, tmp_path):
    session = make_session()
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    with pytest.raises(AltmasError) as caught:
        import_labels(session, tmp_path / "export.json")
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert session.history.labels == {}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("book.csv", b"PK\x03\x04rest", "CSV UTF-8"),
        ("latin.csv", "id,label\nä,cat\n".encode("latin-1"), "not UTF-8"),
        ("labels.xyz", b"\x00\x01\x02", "no column 'id'"),
        ("labels.parquet", b"PAR1 but no more", "no proper Parquet"),
        ("labels.jsonl", b'{"id": "7", "label": "\\ud800"}\n', "half a character"),
        ("labels.json", b"[" * 100_000, "nested too deeply"),
    ],
)
def test_files_of_another_kind_are_refused_in_a_sentence(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=words):
        import_labels(make_session(), tmp_path / name)


def test_missing_files_folders_and_formats_are_refused(tmp_path):
    with pytest.raises(FileError, match="cannot be read"):
        import_labels(make_session(), tmp_path / "nowhere.csv")
    with pytest.raises(FileError, match="cannot be read"):
        import_labels(make_session(), tmp_path, "csv")
    with pytest.raises(FileError, match="did you mean 'parquet'"):
        import_labels(make_session(), tmp_path / "x", "parket")
    with pytest.raises(FileError, match="cannot be written"):
        export_labels(make_session(), tmp_path / "no" / "folder.csv")


def mutations(content: bytes, rng: random.Random) -> bytes:
    """A file as an accident leaves it: cut, flipped, doubled, with pieces missing or strange."""
    broken = bytearray(content)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(broken)) if broken else 0
        match rng.randrange(7):
            case 0:
                del broken[at:]
            case 1:
                del broken[at : at + rng.randint(1, 30)]
            case 2 if broken:
                broken[at] = rng.randrange(256)
            case 3:
                broken[at:at] = broken[at : at + rng.randint(1, 40)]
            case 4:
                broken[at:at] = rng.choice([b'"', b",", b"\n", b"}", b"[", b"null", b"\x00", b"\xff", b"1e999", b"{}"])
            case 5 if broken:
                broken[at : at + 1] = bytes([broken[at] ^ 0x80])
            case 6:
                other = rng.randrange(len(broken)) if broken else 0
                low, high = sorted((at, other))
                broken[low:high] = reversed(broken[low:high])
    return bytes(broken)


def test_two_hundred_damaged_files_give_a_sentence_and_record_nothing(answered, tmp_path):
    """Every damaged file is refused with an AltmasError and leaves no trace, or is still a whole, proper file."""
    originals = []
    for suffix in ("csv", "jsonl", "parquet"):
        export_labels(answered, tmp_path / f"good.{suffix}")
        originals.append((suffix, (tmp_path / f"good.{suffix}").read_bytes()))
    fresh = make_session(items=["a text"] * 12)
    export_items(fresh, tmp_path / "tasks.json", 12)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    originals.append(("json", json.dumps(label_studio_export(tasks, CLASSES * 2), indent=1).encode()))
    rng, refused = random.Random(20), 0
    for number in range(240):
        suffix, content = originals[number % len(originals)]
        path = tmp_path / f"broken-{number}.{suffix}"
        path.write_bytes(mutations(content, rng))
        session = make_session()
        try:
            import_labels(session, path)
        except AltmasError as error:
            refused += 1
            assert path.name in str(error) and "\n  File" not in str(error)
            assert session.status().seq == 1, "a refused file must leave no trace"
    assert refused >= 200


def test_an_export_leaves_no_half_written_file(answered, tmp_path, monkeypatch):
    path = tmp_path / "labels.csv"
    export_labels(answered, path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left"):
        export_labels(answered, path, force=True)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["labels.csv"]


# ---------------------------------------------------------------- spreadsheets compute nothing

FORMULAS = [
    "=1+1",
    "+3",
    "-3+2",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "'=1",
    "''-x",
    "'",
    "'x",
    "-",
    "=",
    "-1.5e3",
]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_cells_that_look_like_formulas_come_back_as_they_were(suffix, tmp_path):
    ids = [*FORMULAS, "-3", "-0.5", "plain"]
    pool = Pool(None, [FORMULAS[k % 2] for k in range(len(ids))], classes=FORMULAS, ids=ids)
    sessions = [Session.create(None, pool, method="tradition") for _ in range(2)]
    for k, id in enumerate(ids):
        sessions[0].tell(id, FORMULAS[k % len(FORMULAS)], annotator=f"={k}", note=f"@note {k}")
    export_labels(sessions[0], tmp_path / f"labels.{suffix}")
    assert import_labels(sessions[1], tmp_path / f"labels.{suffix}").labels == len(ids)
    assert labelled_rows(sessions[1]) == labelled_rows(sessions[0])
    assert sessions[1].history.labels == sessions[0].history.labels


def test_no_cell_of_a_csv_begins_as_a_formula_does(tmp_path):
    items = [{"=cmd": text, "number": -2.5} for text in FORMULAS]
    pool = Pool(None, FORMULAS, ids=[f"={k}" for k in range(len(FORMULAS))], items=items)
    session = Session.create(None, pool, method="tradition")
    session.tell("=3", "=1+1", annotator="@ana", note="-x")
    export_labels(session, tmp_path / "labels.csv")
    export_items(session, tmp_path / "next.csv", 20, blind=False)
    for name in ("labels.csv", "next.csv"):
        for row in csv.reader(io.StringIO((tmp_path / name).read_text("utf-8-sig"), newline="")):
            for cell in row:
                assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n", "＝") or float(cell) < 0


def test_negative_numbers_stay_numbers(tmp_path):
    session = Session.create(None, Pool(None, [-1, 1, -1], ids=[-3, -20, 7]), method="tradition")
    session.tell({-3: -1, -20: 1, 7: -1})
    export_labels(session, tmp_path / "labels.csv")
    lines = (tmp_path / "labels.csv").read_text("utf-8-sig").splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["-3", "-1"], ["-20", "1"], ["7", "-1"]]
    other = Session.create(None, session.pool, method="tradition")
    assert import_labels(other, tmp_path / "labels.csv").labels == 3
    assert other.history.labels == session.history.labels


BAD_NAMES = ["ana\x00", "a\nb", "a\u202eb", "a\u2066b", "a\u200fb", "\x1b[31mana", "a\u2028b", "a\ud800"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
def test_annotators_have_plain_names(name, tmp_path):
    session = make_session()
    calls = (
        lambda: session.tell("007", "cat", annotator=name),
        lambda: session.skip("007", annotator=name),
        lambda: session.ask(1, name),
        lambda: session.adjudicate("007", "cat", name),
        lambda: session.reveal("007", name),
    )
    for call in calls:
        with pytest.raises(PlanError, match="plain text"):
            call()
    rows = [{"id": "007", "label": "cat", "annotator": name}]
    (tmp_path / "labels.jsonl").write_text(json.dumps(rows[0]) + "\n")
    with pytest.raises(FileError, match=r"labels.jsonl, line 1: .*(plain text|half a character)"):
        import_labels(session, tmp_path / "labels.jsonl")
    (tmp_path / "export.json").write_text(
        json.dumps([{"data": {"altmas_id": "007"}, "annotations": [{"completed_by": name, "was_cancelled": True}]}])
    )
    with pytest.raises(FileError, match=r"export.json, task 1.*(plain text|half a character)"):
        import_labels(session, tmp_path / "export.json")
    assert session.status().seq == 1


def test_names_from_everywhere_are_plain_names():
    session = make_session()
    for name in ("Zoë", "王小明", "نگار\u200cها", "👩\u200d⚕️", "O'Neil-Ørsted, Dr.", "  ana  "):
        session.tell("007", "cat", annotator=name)
    assert set(session.votes("007")) == {*("Zoë", "王小明", "نگار\u200cها", "👩\u200d⚕️", "O'Neil-Ørsted, Dr.", "ana")}
