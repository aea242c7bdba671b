"""Questions that cannot be answered: each is refused in one sentence at the door, and nothing is recorded."""

import pytest

import altmas
from altmas.errors import AltmasError, StoreFailure
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
        (
            "grades",
            ("judge", "gaps"),
            "mean",
            "column 'gaps', row 7: the value is missing; every point needs one: leave",
        ),
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


def mistaken_pool():
    return altmas.Pool(None, ["x", "y"] * 30)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (
            lambda: altmas.Pool(None, ["x", "y"], slices=["a", "b"]),
            "slices were not understood; expected {name: a value",
        ),
        (lambda: altmas.Session.create(None, ["x", "y"]), "a session needs a Pool, got list"),
        (lambda: altmas.Session.create(None, mistaken_pool(), targets=0.05), "targets=0.05 was not understood"),
        (
            lambda: altmas.Session.create(None, mistaken_pool(), thresholds="accuracy >= 0.9"),
            "thresholds='accuracy >= 0.9' was not understood",
        ),
        (lambda: altmas.Session.create(None, mistaken_pool()).check(0.9), "claim 0.9 was not understood"),
        (lambda: altmas.Session.create(None, mistaken_pool()).forecast("all"), "a forecast up to 'all' labels is not"),
    ],
)
def test_arguments_of_another_kind_are_named_in_a_sentence(mistake, said):
    with pytest.raises(AltmasError) as raised:
        mistake()
    assert said in str(raised.value)


def test_a_closed_session_says_that_it_is_closed():
    session = altmas.Session.create(None, mistaken_pool(), method="tradition")
    session.close()
    with pytest.raises(StoreFailure, match="the session is closed"):
        session.ask(3)


def test_one_method_and_one_budget_may_be_simulated_without_a_list():
    found = altmas.simulate(
        mistaken_pool(), ["x", "y"] * 30, methods="tradition", budgets=20, repeats=2, n_jobs=1, progress=False
    )
    assert [(row["method"], row["labels"]) for row in found.summary()] == [("tradition", 20)]


def test_metrics_that_cannot_be_taken_on_a_slice_are_named():
    pool = altmas.Pool(None, ["x", "y"] * 30, slices={"sex": ["f", "m", "f"] * 20})
    session = altmas.Session.create(None, pool, metrics=["gap[accuracy, sex]"], method="tradition")
    with pytest.raises(AltmasError, match=r"gap\[accuracy, ?sex\].* cannot be taken on each value of 'sex'"):
        session.estimate("sex")
