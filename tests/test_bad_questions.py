"""Questions that cannot be answered: each is refused in one sentence at the door, and nothing is recorded."""

import pytest

import altmas
from cli_world import run


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    two = [f"{row},{'yes' if row % 2 else 'no'},{'yes' if row % 3 else 'no'}" for row in range(30)]
    (folder / "two.csv").write_text("\n".join(["id,v1,v2", *two]))
    grades = [f"{row},{row % 5 + 1},{'' if row == 7 else row % 5 + 1}" for row in range(30)]
    (folder / "grades.csv").write_text("\n".join(["id,judge,gaps", *grades]))
    words = [f"{row},{['bad', 'ok', 'good'][row % 3]}" for row in range(30)]
    (folder / "words.csv").write_text("\n".join(["id,judge", *words]))
    (folder / "other.csv").write_text("\n".join(["id,v3", *(f"x{row},yes" for row in range(30))]))
    return folder


@pytest.mark.parametrize(
    ("table", "columns", "metric", "sentence"),
    [
        ("two", ("v1", "v2"), "v9: accuracy", "no model 'v9' in this pool (known: 'v1', 'v2')"),
        ("two", ("v1", "v2"), "v1: roc_auc", "needs scores, and model 'v1' has none in this pool"),
        ("grades", ("judge",), "mean - accuracy", "a difference needs two metrics in the same unit"),
        ("words", ("judge",), "mean", "are not numbers; give each a value"),
        ("words", ("judge",), "share[>=2]", "are not numbers"),
        ("grades", ("judge", "gaps"), "mean", "column 'gaps', row 7: the value is missing; every point needs one"),
    ],
)
def test_what_cannot_be_asked_makes_no_session(tables, tmp_path, table, columns, metric, sentence):
    asked = [part for column in columns for part in ("--prediction", column)]
    told = run("init", tmp_path / "s.altmas", "--data", tables / f"{table}.csv", *asked, "--metric", metric)
    assert told.code == 2 and sentence in " ".join(told.err.split()) and "Traceback" not in told.err
    assert not (tmp_path / "s.altmas").exists()


def test_ids_that_do_not_match_record_nothing(tables, tmp_path):
    path = tmp_path / "s.altmas"
    assert run("init", path, "--data", tables / "two.csv", "--prediction", "v1", "--id", "id").code == 0
    with altmas.Session.open(path) as session:
        before = session.status().seq
    (tmp_path / "labels.csv").write_text("id,label\nx1,yes\n")
    for words in (
        ("add-model", path, "v3", "--data", tables / "other.csv", "--prediction", "v3", "--id", "id"),
        ("import", path, tmp_path / "labels.csv"),
        ("tell", path, "x1", "yes"),
    ):
        told = run(*words)
        assert told.code == 2 and "x" in told.err and "nothing was recorded" in " ".join(told.err.split()), told.err
        assert "Traceback" not in told.err
    with altmas.Session.open(path) as session:
        assert session.status().seq == before
