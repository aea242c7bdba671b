"""Mistakes that people make on the command line: the sentence names what was given, what is accepted, what mends it."""

import csv
import errno
import json
import sqlite3

import numpy as np
import pytest

import altmas
import altmas.session.store
from altmas.cli.speech import mended
from cli_world import make_session, run

INIT = ("init", "{new}", "--data", "{table}", "--id", "study_id", "--prediction", "vendor_label")
SCORES = ("init", "{new}", "--data", "{scores}", "--prediction", "said")
COLUMNS = ("'study_id', 'vendor_label'",)
CLASSES = ("'bird', 'cat', 'dog'",)

MISTAKES = {
    # columns and files
    "prediction column": (
        ("init", "{new}", "--data", "{table}", "--prediction", "vender_label"),
        "'vender_label'",
        "did you mean 'vendor_label'?",
        *COLUMNS,
    ),
    "id column": (
        ("init", "{new}", "--data", "{table}", "--prediction", "vendor_label", "--id", "studyid"),
        "'studyid'",
        "did you mean 'study_id'?",
        *COLUMNS,
    ),
    "id that is not unique": (
        ("init", "{new}", "--data", "{table}", "--prediction", "vendor_label", "--id", "scanner"),
        "column 'scanner'",
        "'A' stands in rows 0 and 2",
        "must be unique",
    ),
    "slice column": ((*INIT, "--slice", "scaner"), "'scaner'", "did you mean 'scanner'?"),
    "shown column": ((*INIT, "--show", "txt"), "'txt'", "did you mean 'text'?"),
    "text as feature": (
        (*INIT, "--features", "text"),
        "column 'text'",
        "'animal, number 0'",
        "columns of numbers",
    ),
    "feature that is not there": ((*INIT, "--features", "x3"), "'x3'", "'x1', 'x2'"),
    "feature file": ((*INIT, "--features", "{folder}/emd.npy"), "emd.npy does not exist", "did you mean 'emb.npy'?"),
    "features of other points": ((*INIT, "--features", "{folder}/short.npy"), "short.npy", "100 rows", "120"),
    "data file": (
        ("init", "{new}", "--data", "{folder}/pred.csv", "--prediction", "x"),
        "pred.csv does not exist",
        "did you mean 'preds.csv'?",
    ),
    "workbook": (("init", "{new}", "--data", "{folder}/book.xlsx", "--prediction", "x"), "book.xlsx", "expected .csv"),
    "numbers as prediction": (
        ("init", "{new}", "--data", "{table}", "--prediction", "x1"),
        "column 'x1'",
        "different numbers",
        "expected classes",
        "--scores",
    ),
    "numbers with a decimal comma as prediction": (
        ("init", "{new}", "--data", "{comma}", "--prediction", "p"),
        "column 'p'",
        "different numbers such as 0,",
        "is this a column of scores?",
        "--scores",
    ),
    "numbers as truth": (
        ("simulate", "--data", "{table}", "--prediction", "vendor_label", "--truth", "x1"),
        "column 'x1'",
        "expected classes",
    ),
    "truth column": (
        ("simulate", "--data", "{table}", "--prediction", "vendor_label", "--truth", "labl"),
        "'labl'",
        "did you mean 'label'?",
    ),
    # scores and classes
    "scores in another order": (
        (*SCORES, "--scores", "p_dog", "--scores", "p_bird", "--scores", "p_cat"),
        "inferred class order 'bird', 'cat', 'dog'",
        "--class",
        "looks like 'dog', 'bird', 'cat'",
    ),
    "too few scores": ((*SCORES, "--scores", "p_dog", "--scores", "p_bird"), "2 columns but 3 classes", "--class"),
    "scores that are none": (
        (*SCORES, "--scores", "p_bird", "--scores", "p_cat", "--scores", "ratio"),
        "row 0",
        "sum to 0.2",
        "sum to 1",
    ),
    "class left out": ((*INIT, "--class", "cat", "--class", "dog"), "'bird' is not one of the classes 'cat', 'dog'"),
    "definition of no class": ((*INIT, "--definition", "kat=any feline"), "'kat'", *CLASSES, "did you mean 'cat'?"),
    "definition without a meaning": ((*INIT, "--definition", "cat"), "--definition 'cat'", "name=value"),
    # what to find out
    "class in a metric": ((*INIT, "-m", "recall[catt]"), "'catt'", *CLASSES, "did you mean 'cat'?"),
    "metric": ((*INIT, "-m", "acuracy"), "'acuracy'", "did you mean 'accuracy'?", "recall[class]"),
    "metric cut short": ((*INIT, "-m", "acc"), "'acc'", "did you mean 'accuracy'?"),
    "metric without its class": ((*INIT, "-m", "recall"), "needs a class", "'recall[bird]'"),
    "value of a slice": ((*INIT, "--slice", "scanner", "-m", "accuracy@scanner=C"), "'C'", "'A', 'B'"),
    "slice that was not given": ((*INIT, "-m", "accuracy@scanner=A"), "no slice 'scanner'", "--slice COLUMN"),
    "target in percent": (
        (*INIT, "--target", "accuracy=5"),
        "--target 'accuracy': 5",
        "above 0 and below 1",
        "did you mean 0.05?",
    ),
    "target that is a goal": ((*INIT, "--target", "accuracy=90"), "90 is not a half-width", "did you mean 0.9?"),
    "target of nothing": ((*INIT, "--target", "accuracy=0"), "0 is not a half-width", "above 0"),
    "target in words": ((*INIT, "--target", "accuracy=small"), "--target accuracy", "'small' is not a number"),
    "target without a name": ((*INIT, "--target", "0.05"), "--target '0.05'", "name=value"),
    "target for another metric": (
        (*INIT, "--target", "recall[cat]=0.05"),
        "'recall[cat]'",
        "('accuracy')",
        "--metric 'recall[cat]'",
    ),
    "threshold in percent": (
        (*INIT, "--threshold", "accuracy=90"),
        "--threshold 'accuracy': 90",
        "0 to 1",
        "did you mean 0.9?",
    ),
    "budget 0": ((*INIT, "--budget", "0"), "budget 0", "1 to 120"),
    "budget below 0": ((*INIT, "--budget", "-5"), "budget -5", "at least 1"),
    "budget beyond the pool": ((*INIT, "--budget", "5000"), "budget 5000", "1 to 120"),
    "budgets beyond the pool": (
        ("simulate", "--data", "{table}", "--prediction", "vendor_label", "--truth", "label", "--budget", "500"),
        "[500]",
        "120 points",
    ),
    "confidence in percent": ((*INIT, "--confidence", "95"), "confidence 95", "between 0 and 1", "did you mean 0.95?"),
    "threshold above 1": ((*INIT, "--threshold", "accuracy > 1.2"), "1.2 is no value that it can take", "0 to 1"),
    "class of the table left out": (
        (*INIT, "--class", "cat", "--class", "bird", "--class", "dogs"),
        "'dog' is not one of the classes 'cat', 'bird', 'dogs'",
    ),
    "method": ((*INIT, "--method", "asured"), "'asured'", "did you mean 'assured'?"),
    "share in percent": ((*INIT, "--double-share", "20"), "--double-share 20", "between 0 and 1", "did you mean 0.2?"),
    "plan of nothing": (("plan",), "a session", "--data and --prediction"),
    "assumed accuracy in percent": (
        ("plan", "--data", "{table}", "--prediction", "vendor_label", "--accuracy", "90"),
        "accuracy 90",
        "at most 1",
    ),
    # sessions
    "session that is there": (
        ("init", "{session}", "--data", "{table}", "--prediction", "vendor_label"),
        "one.altmas exists already",
        "--exist-ok",
    ),
    "empty file where the session is to be": (
        ("init", "{empty}", "--data", "{table}", "--prediction", "vendor_label"),
        "empty.altmas is there already",
        "an empty file, which is no session",
        "delete it, or give another name",
    ),
    "empty file that is to be gone on with": (
        ("init", "{empty}", "--data", "{table}", "--prediction", "vendor_label", "--exist-ok"),
        "empty.altmas is an empty file and no session",
        "delete it, then make the session under that name",
    ),
    "empty file as a session": (("status", "{empty}"), "an empty file and no session", "delete it"),
    "folder that is not there": (
        ("init", "{folder}/no/x.altmas", "--data", "{table}", "--prediction", "vendor_label"),
        "the folder",
        "does not exist",
    ),
    "session that is not there": (
        ("status", "{folder}/oen.altmas"),
        "oen.altmas does not exist",
        "did you mean 'one.altmas'?",
        "altmas init",
    ),
    "table that was changed": (
        ("status", "{folder}/changed.altmas"),
        "the table",
        "later.csv has different predictions",
        "put it back as it was",
        "changed.altmas --labels labels.csv",
        "altmas import",
    ),
    "table instead of a session": (("status", "{table}"), "preds.csv is not an altmas session"),
    "id that is not there": (
        ("tell", "{session}", "case-999", "cat"),
        "'case-999'",
        "did you mean 'case-99'?",
        "nothing was recorded",
    ),
    "class that is not there": (("tell", "{session}", "case-1", "catt"), "'catt'", *CLASSES, "did you mean 'cat'?"),
    "id and class swapped": (("tell", "{session}", "cat", "case-1"), "id 'cat'", "the id comes first", "case-1 cat"),
    "slice to estimate by": (("estimate", "{session}", "--by", "scaner"), "'scaner'", "did you mean 'scanner'?"),
    "metric as a slice": (
        ("estimate", "{session}", "--by", "f1[cat]"),
        "no slice 'f1[cat]'",
        "that is a metric",
        "give --metric 'f1[cat]' in place of --by",
    ),
    "claim about scores that are not there": (
        ("check", "{session}", "roc_auc[cat] >= 0.9"),
        "'roc_auc[cat]' needs scores",
        "the session was made without them",
        "make a new one with --scores COLUMN",
        "altmas add-model",
    ),
    "threshold of scores that are not there": (
        ("threshold", "{session}", "recall[cat] >= 0.9"),
        "needs the model's scores",
        "the session was made without them",
    ),
    "metric of scores that are not there": ((*INIT, "-m", "roc_auc[cat]"), "needs scores", "pass --scores COLUMN"),
    "claim in percent": (("check", "{session}", "accuracy > 90"), "90 is no value", "0 to 1", "0.9, or 90%"),
    "claim of equality": (("check", "{session}", "accuracy = 0.9"), "'accuracy = 0.9'", ">= > <= <"),
    "class in a claim": (("check", "{session}", "recall[catt] >= 0.9"), "'catt'", *CLASSES),
    "column of the second model": (
        ("compare", "{session}", "--predictions", "{table}", "--prediction", "v3"),
        "'v3'",
        "'v2'",
    ),
    "second model with other classes": (
        ("compare", "{session}", "--predictions", "{table}", "--prediction", "scanner"),
        "'A' is not one of the classes",
        *CLASSES,
    ),
    "export as a workbook": (("export", "{session}", "{folder}/x.xlsx"), "x.xlsx", ".csv", ".parquet"),
    "export to nothing known": (
        ("export", "{session}", "--to", "excel", "{folder}/x.csv"),
        "'excel'",
        "'csv', 'jsonl', 'parquet', 'label-studio'",
    ),
    # judges
    "judge that is not there": (
        (*INIT, "--metric", "gentle: accuracy"),
        "no model 'gentle'",
        "known: 'model'",
    ),
    "mean of names": ((*INIT, "--metric", "mean"), "'mean'", *CLASSES, "are not numbers", "'mean[bird=0,cat=1,dog=2]'"),
    "share of names beyond a grade": (
        (*INIT, "--metric", "share[>=4]"),
        *CLASSES,
        "are not numbers",
        "'share[bird]'",
    ),
    "judge with a gap": (
        ("init", "{new}", "--data", "{judges}", "--prediction", "strict", "--prediction", "kind"),
        "column 'kind', row 2",
        "missing",
    ),
    "judge of other points": (
        ("add-model", "{session}", "late", "--data", "{judges}", "--id", "id", "--prediction", "strict"),
        "'j0' is not in this pool",
        "nothing was recorded",
    ),
    "import of columns called otherwise": (
        ("import", "{session}", "{sheet}"),
        "no column 'id' (columns: 'Nr', 'Klasse')",
        "at least id (or 'study_id', as in the session's table) and label",
        "--id COLUMN and --label COLUMN",
    ),
    "import of a column that is not there": (
        ("import", "{session}", "{sheet}", "--id", "Nr", "--label", "Klase"),
        "no column 'Klase'",
        "did you mean 'Klasse'?",
    ),
    "report over the session": (
        ("report", "{session}", "-o", "{session}", "--force"),
        "never written over",
        "another name",
    ),
    "command": (("estimat",), "estimat", "estimate"),
    "option": (("status", "{session}", "--jsno"), "--jsno", "--json"),
}


NOT_WRITTEN_OUT = ("id that is not there", "class of the table left out")
"""Where a near name is given, and no command: it could record another item, or replace what was right."""


def make_changed(folder, table):
    """A session with one label whose table was edited afterwards."""
    later, changed = folder / "later.csv", folder / "changed.altmas"
    later.write_bytes(table.read_bytes())
    roles = ("--id", "study_id", "--prediction", "vendor_label", "--features", "none")
    assert run("init", changed, "--data", later, *roles).code == 0
    assert run("tell", changed, "case-7", "cat", "-a", "ana").code == 0
    assert run("tell", changed, "case-8", "cat").code == run("undo", changed).code == 0
    lines = later.read_text(encoding="utf-8").splitlines()
    names = lines[4].split(",")
    names[1] = "bird" if names[1] == "cat" else "cat"
    later.write_text("\n".join([*lines[:4], ",".join(names), *lines[5:]]) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    session, _ = make_session(folder)
    table = folder / "preds.csv"
    np.save(folder / "emb.npy", np.zeros((120, 2)))
    np.save(folder / "short.npy", np.zeros((100, 2)))
    (folder / "book.xlsx").write_bytes(b"PK\x03\x04")
    with table.open(encoding="utf-8") as file:
        said = [row["vendor_label"] for row in csv.DictReader(file)]
    scores = folder / "scores.csv"
    with scores.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["said", "p_bird", "p_cat", "p_dog", "ratio"])
        for row, name in enumerate(said):
            writer.writerow([name, *(0.8 if one == name else 0.1 for one in ("bird", "cat", "dog")), row / 7])
    judges = folder / "judges.jsonl"
    rows = [{"id": f"j{k}", "strict": "cat", "kind": None if k == 2 else "dog"} for k in range(5)]
    judges.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    comma = folder / "comma.csv"
    comma.write_text("said;p\n" + "".join(f"cat;0,{k:03}\n" for k in range(120)), encoding="utf-8")
    (folder / "empty.altmas").touch()
    (folder / "sheet.csv").write_text("Nr;Klasse\ncase-1;cat\n", encoding="utf-8")
    make_changed(folder, table)
    return {
        "folder": folder,
        "session": session,
        "table": table,
        "scores": scores,
        "judges": judges,
        "comma": comma,
        "sheet": folder / "sheet.csv",
        "empty": folder / "empty.altmas",
        "new": folder / "new.altmas",
    }


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_with_what_mends_it(name, world):
    words, *expected = MISTAKES[name]
    before = world["session"].read_bytes()
    ran = run(*(word.format(**world) for word in words))
    assert ran.code == 2, ran
    said = " ".join(ran.err.replace("│", " ").split())
    for piece in expected:
        assert piece in said, (piece, said)
    assert not world["new"].exists() and world["session"].read_bytes() == before
    remedy = said.partition("try: altmas ")[2]
    assert remedy or "Did you mean" in said or "Possible options" in said, said
    if "did you mean" in said.partition("try: ")[0] and name not in NOT_WRITTEN_OUT:
        assert not remedy.endswith("--help"), said


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("prediction column", "--prediction vendor_label"),
        ("class in a metric", "-m 'recall[cat]'"),
        ("target in percent", "--target accuracy=0.05"),
        ("confidence in percent", "--confidence 0.95"),
        ("data file", "/preds.csv --prediction x"),
        ("id that is not there", "altmas tell --help"),
        ("class that is not there", "case-1 cat"),
        ("claim in percent", "'accuracy > 0.9'"),
        ("budget 0", "altmas init --help"),
        ("threshold above 1", "altmas init --help"),
        ("class of the table left out", "altmas init --help"),
    ],
)
def test_the_command_that_mends_it_is_written_out(name, remedy, world):
    words, *_ = MISTAKES[name]
    said = run(*(word.format(**world) for word in words)).err
    assert remedy in said.partition("try: ")[2].replace("\n", " "), said


@pytest.mark.parametrize(
    ("sentence", "arguments", "remedy"),
    [
        (  # the file that is missing is that of the pool, not the session
            "/d/one.altmas needs the files of its pool: /d/preds.csv does not exist; did you mean 'preds_old.csv'?",
            ["/d/one.altmas"],
            "altmas status --help",
        ),
        ("/d/oen.altmas does not exist; did you mean 'one.altmas'?", ["/d/oen.altmas"], "altmas status /d/one.altmas"),
        (  # a name that is listed as accepted resembles the right one more than the wrong one does
            "column 'labl' does not exist (columns: 'label', 'label2'); did you mean 'label'?",
            ["--prediction", "label2", "--id", "labl"],
            "altmas status --prediction label2 --id label",
        ),
        (
            "column 'x', row 3: 'dog' is not one of the classes 'cat', 'dgo'; did you mean 'dgo'?",
            ["--class", "cat", "--class", "dgo"],
            "altmas status --help",
        ),
        (  # an argument that holds the right words already is not the one that is wrong
            "target for 'share[B]': it is not asked for; did you mean 'share[B] - share[A]'?",
            ["--metric", "share[B] - share[A]", "--target", "share[B]=0.1"],
            "altmas status --metric 'share[B] - share[A]' --target 'share[B] - share[A]=0.1'",
        ),
        ("budget 12 and accuracy 90 is no value; did you mean 0.9?", ["-b", "12", "a=90"], "altmas status -b 12 a=0.9"),
    ],
)
def test_only_the_word_that_was_wrong_is_replaced(sentence, arguments, remedy):
    assert mended(sentence, "altmas status", arguments) == remedy


def test_a_guessed_id_is_never_written_out_for_a_command_that_records(world):
    for words in (("tell", world["session"], "case-999", "cat"), ("skip", world["session"], "case-999")):
        said = run(*words).err
        assert "did you mean 'case-99'?" in said and "case-99 " not in said.partition("try:")[2]


def test_ratings_with_halves_are_classes_all_the_same(tmp_path):
    (tmp_path / "t.csv").write_text("said\n" + "".join(f"{k % 5 + 0.5}\n" for k in range(40)))
    assert run("init", tmp_path / "s.altmas", "--data", tmp_path / "t.csv", "--prediction", "said").code == 0


@pytest.mark.parametrize("pair", [("4", "4.0"), ("ham", "ham "), ("Spam", "spam")])
def test_classes_that_are_probably_one_are_warned_of_even_if_hints_are_unwanted(pair, tmp_path):
    (tmp_path / "t.csv").write_text("said\n" + "".join(f'"{pair[k % 2]}"\n' for k in range(40)))
    ran = run("init", tmp_path / "s.altmas", "--data", tmp_path / "t.csv", "--prediction", "said", "-q")
    assert ran.code == 0 and f"warning: the classes {pair[0]!r}, {pair[1]!r} differ only by" in ran.err


def test_codes_with_zeros_in_front_are_classes(tmp_path):
    (tmp_path / "t.csv").write_text("said\n" + "".join(f"{k % 25:03}\n" for k in range(60)))
    assert run("init", tmp_path / "s.altmas", "--data", tmp_path / "t.csv", "--prediction", "said").code == 0


def test_no_other_words_are_offered_where_the_disk_is_at_fault(world, monkeypatch):
    def full(*_, **__):
        cause = sqlite3.OperationalError("database or disk is full")
        cause.sqlite_errorname = "SQLITE_FULL"
        raise cause

    monkeypatch.setattr(altmas.session.store.LabelStore, "append", full)
    ran = run("tell", world["session"], "case-1", "cat")
    assert ran.code == 2 and "the disk is full; nothing was recorded" in ran.err and "try:" not in ran.err


def test_where_nothing_can_be_written_the_session_is_named_and_no_draft(world, tmp_path, monkeypatch):
    def read_only(self, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    def cannot_open(*_, **__):
        cause = sqlite3.OperationalError("unable to open database file")
        cause.sqlite_errorname = "SQLITE_CANTOPEN"
        raise cause

    monkeypatch.setattr("altmas.session.session_file.connect", cannot_open)
    monkeypatch.setattr("pathlib.Path.unlink", read_only)
    ran = run("init", tmp_path / "x.altmas", "--data", world["table"], "--prediction", "vendor_label")
    assert ran.code == 2 and f"{tmp_path / 'x.altmas'}: the file or its journal cannot be opened" in ran.err
    assert ".new" not in ran.err and "is the folder writable?" in ran.err and "try:" not in ran.err


def test_labels_can_be_taken_along_when_the_table_was_changed_or_is_gone(world, tmp_path):
    changed = world["folder"] / "changed.altmas"
    ran = run("export", changed, "--labels", tmp_path / "labels.csv")
    assert ran.code == 0 and "1 written" in ran.out and "different predictions" in ran.err
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8-sig") as file:
        (row,) = csv.DictReader(file)
    assert (row["id"], row["label"], row["annotator"], row["kind"]) == ("case-7", "cat", "ana", "label")
    new = ("--data", world["folder"] / "later.csv", "--id", "study_id", "--prediction", "vendor_label")
    assert run("init", tmp_path / "new.altmas", *new).code == 0
    assert "1 label" in run("import", tmp_path / "new.altmas", tmp_path / "labels.csv").out
    for kept in (changed, world["folder"] / "later.csv"):
        assert "never written over" in run("export", changed, "--labels", kept, "--to", "csv", "--force").err
    assert run("export", changed, tmp_path / "next.csv").code == 2  # items need the pool
    assert "does not exist" in run("export", tmp_path / "none.altmas", "--labels", tmp_path / "l.csv").err


def test_a_metric_where_a_slice_is_expected_is_told_in_the_words_of_python(world):
    with altmas.Session.open(world["session"]) as session:
        for name in ("f1[cat]", "macro_f1", "model: accuracy"):
            with pytest.raises(altmas.errors.MetricError, match="that is a metric; pass metrics="):
                session.estimate(name)


def test_scores_can_be_added_to_a_session_that_was_made_without(world, tmp_path):
    said = ("--data", world["scores"], "--prediction", "said")
    assert run("init", tmp_path / "s.altmas", *said).code == 0
    scores = [word for name in ("p_bird", "p_cat", "p_dog") for word in ("--scores", name)]
    assert run("add-model", tmp_path / "s.altmas", "again", *said, *scores).code == 0
    assert run("check", tmp_path / "s.altmas", "again: roc_auc[cat] >= 0.9").code == 3


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("own.csv", "study_id;label\ncase-1;cat\n", ()),
        ("other.csv", "id;Nr;Klasse;label\n1;case-1;cat;x\n", ("--id", "Nr", "--label", "Klasse")),
        ("excel.csv", "\ufeffsep=;\r\nid;label\r\ncase-1;cat\r\n", ()),
        ("own.jsonl", '{"study_id": "case-1", "label": "cat"}\n', ()),
        ("other.jsonl", '{"Nr": "case-1", "Klasse": "cat", "id": 1}\n', ("--id", "Nr", "--label", "Klasse")),
    ],
)
def test_columns_of_labels_may_be_called_as_in_the_table_or_be_named(name, text, options, tmp_path):
    session, _ = make_session(tmp_path)
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    ran = run("import", session, tmp_path / name, *options)
    assert ran.code == 0 and f"{name}: 1 label" in ran.out, ran
    with altmas.Session.open(session) as opened:
        assert opened.history.labels == {1: opened.pool.code("cat")}


@pytest.mark.parametrize("separator", [";", ",", "\t", "|"])
def test_a_first_line_that_names_the_separator_is_no_row(separator, tmp_path):
    rows = ["id,said,x", *(f'{k},"{"cat" if k % 2 else "dog"}",{k}' for k in range(6))]
    text = "\r\n".join([f"sep={separator}", *(row.replace(",", separator) for row in rows)])
    for name, encoding, given in (("t.csv", "utf-8-sig", None), ("l.csv", "cp1252", "cp1252")):
        (tmp_path / name).write_text(text, encoding=encoding, newline="")
        pool = altmas.Pool.from_table(tmp_path / name, id="id", prediction="said", features=["x"], encoding=given)
        assert list(pool.ids) == [*range(6)] and list(pool.classes) == ["cat", "dog"] and pool.features[5, 0] == 5


def test_one_label_is_one_label(tmp_path):
    path, _ = make_session(tmp_path)
    assert run("tell", path, "case-1", "cat", "-a", "ana").code == run("skip", path, "case-3", "-a", "bob").code == 0
    with altmas.Session.open(path) as session:
        assert repr(session).endswith("1 label)") and "1 labels" not in session.status()._repr_html_()
    said = run("status", path).out
    assert "ana: 1 label, 0 skipped" in said and "1 labels" not in said


def test_compare_names_the_first_of_several_models(world, tmp_path):
    table = ("--data", world["table"], "--id", "study_id", "--prediction", "vendor_label", "--prediction", "v2")
    assert run("init", tmp_path / "s.altmas", *table).code == 0
    third = ("compare", tmp_path / "s.altmas", "--predictions", world["table"], "--prediction", "label")
    assert "first: vendor_label" in run(*third).out and "first: v2" in run(*third, "--model", "v2").out
    wrong = run(*third, "--model", "v3")
    assert wrong.code == 2 and "model 'v3' is not in this pool" in wrong.err and "'vendor_label', 'v2'" in wrong.err


@pytest.mark.parametrize(
    "edit", [lambda rows: rows[:-1], lambda rows: [*rows, rows[3]], lambda rows: [*rows, ",,,,,,,"]]
)
def test_rows_that_are_gone_doubled_or_blank_are_told_with_the_remedy(edit, tmp_path):
    path, _ = make_session(tmp_path)
    table = tmp_path / "preds.csv"
    assert run("tell", path, "case-1", "cat").code == 0
    table.write_text("\n".join(edit(table.read_text(encoding="utf-8").splitlines())) + "\n", encoding="utf-8")
    ran = run("status", path)
    assert ran.code == 2 and "preds.csv" in ran.err and "put it back as it was" in ran.err, ran.err
    assert "1 written" in run("export", path, "--labels", tmp_path / "labels.csv").out
