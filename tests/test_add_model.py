"""A model that is added later is in the log: labels tell about it too, and a reopened session knows it."""

import shutil

import numpy as np
import pytest

import altmas
from altmas.errors import AltmasError, NotASession, PoolError, UnknownPoint
from altmas.session.store import Entry
from cli_world import run
from session_world import N, pool, truth
from session_world import create as create_any


@pytest.fixture
def path(tmp_path):
    return tmp_path / "one.altmas"


def create(path, **options):
    return create_any(path, method="assured", **options)


def other_answers(made):
    return [made.classes[(code + (row % 5 == 0)) % len(made.classes)] for row, code in enumerate(made.predictions)]


def told(session, n=20):
    for query in session.ask(n):
        session.tell(query.id, truth(query))
    return session


def test_an_added_model_is_known_now_after_reopening_and_in_other_processes(path):
    session = told(create(path))
    elsewhere = altmas.Session.open(path)
    scores = np.random.default_rng(0).dirichlet(np.ones(3) * 0.01, N)
    answers = [session.pool.classes[code] for code in scores.argmax(1)]
    model = session.add_model("v2", answers, scores)
    assert [one.name for one in session.pool.models] == ["model", "v2"]
    elsewhere.ask(1)
    assert [one.name for one in elsewhere.pool.models] == ["model", "v2"]
    session.close()
    elsewhere.close()
    again = altmas.Session.open(path)
    np.testing.assert_array_equal(again.pool.model("v2").predictions, model.predictions)
    np.testing.assert_array_equal(again.pool.model("v2").scores, model.scores)
    assert again.ask(3) and len(again.history.labels) == 20


def test_an_added_model_may_come_by_id_in_any_order(path):
    session = create(path)
    ids, answers = list(session.pool.ids), other_answers(session.pool)
    expected = session.pool.codes(answers)
    scores = np.full((N, 3), 0.05)
    scores[np.arange(N), expected] = 0.9
    order = np.random.default_rng(0).permutation(N)
    session.add_model("by id", {ids[row]: answers[row] for row in order})
    session.add_model("by ids", [answers[row] for row in order], scores[order], ids=[ids[row] for row in order])
    np.testing.assert_array_equal(session.pool.model("by id").predictions, expected)
    np.testing.assert_array_equal(session.pool.model("by ids").predictions, expected)
    np.testing.assert_array_equal(session.pool.model("by ids").scores.argmax(1), expected)


def test_what_does_not_fit_is_refused_with_a_sentence_and_nothing_is_recorded(path):
    session = told(create(path))
    ids, answers = list(session.pool.ids), other_answers(session.pool)
    before = session.status().seq
    mapped = dict(zip(ids, answers, strict=True))
    for name, given, kind, sentence in [
        ("model", answers, PoolError, "already"),
        ("", answers, PoolError, "model name"),
        ("v2", answers[:-1], PoolError, "model 'v2' has 59 predictions"),
        ("v2", [*answers[:-1], None], PoolError, "row 59"),
        ("v2", [*answers[:-1], "unicorn"], PoolError, "'unicorn'"),
        ("v2", {**mapped, "nobody": answers[0]}, UnknownPoint, "'nobody'"),
        ("v2", dict(list(mapped.items())[:-2]), PoolError, "no prediction for 2 of"),
    ]:
        with pytest.raises(kind) as caught:
            session.add_model(name, given)
        assert sentence in str(caught.value)
    with pytest.raises(PoolError, match="not probabilities"):
        session.add_model("v2", answers, np.full((N, 3), 0.5))
    assert session.status().seq == before and len(session.pool.models) == 1


def test_two_who_add_the_same_name_at_once_do_not_both_succeed(path):
    first, second = create(path), altmas.Session.open(path)
    answers = other_answers(first.pool)
    stale = second.pool
    first.add_model("v2", answers)
    assert len(stale.models) == 1
    with pytest.raises(PoolError, match="already"):
        second.add_model("v2", answers)


def test_the_session_as_it_stood_knows_the_models_of_that_time(path):
    session = told(create(path), 10)
    before = session.estimate().to_dict()
    session.add_model("v2", other_answers(session.pool))
    told(session, 5)
    past = session.at(10)
    assert [one.name for one in past.task.pool.models] == ["model"]
    assert past.estimate().to_dict() == before
    assert [one.name for one in session.now().task.pool.models] == ["model", "v2"]


def test_a_copy_of_the_file_has_the_model_and_the_same_estimates(path, tmp_path):
    session = told(create(path))
    session.add_model("v2", other_answers(session.pool))
    told(session, 5)
    found = session.estimate().to_dict()
    session.close()
    copied = tmp_path / "copy.altmas"
    shutil.copy(path, copied)
    assert altmas.Session.open(copied).estimate().to_dict() == found


def test_a_model_event_that_altmas_did_not_write_is_refused(path):
    session = create(path)
    session.add_model("v2", other_answers(session.pool))
    session._journal.store.append([Entry("model", body={"name": "v3"}, data=None)])
    session.close()
    with pytest.raises((NotASession, AltmasError), match="model"):
        altmas.Session.open(path)


def test_users_cannot_write_model_events_by_hand(path):
    with pytest.raises(AltmasError, match="'model'"):
        create(path).record("model", {"name": "v2"})


def test_a_pool_given_on_opening_is_the_one_without_the_added_model(path):
    made = pool()
    session = create(path, pool=made)
    session.add_model("v2", other_answers(made))
    session.close()
    assert len(altmas.Session.open(path, pool()).pool.models) == 2


def test_tables_that_are_not_utf8_are_read_with_their_encoding(tmp_path):
    """By `compare`, `add-model` and `extend` as by `init`; without it the error names the option that each has."""
    classes = ["Größe", "Maß"]
    rows = [f"t{row},{classes[row % 2]},{classes[row % 3 == 0]},0.{row % 9 + 1}" for row in range(40)]
    later = [line.replace("t", "u", 1) for line in rows]
    for name, lines in (("first", rows), ("later", later)):
        text = "\n".join(["id,eins,zwei,p", *lines]) + "\n"
        (tmp_path / f"{name}.csv").write_bytes(text.encode("cp1252"))
    path, table, more = tmp_path / "one.altmas", tmp_path / "first.csv", tmp_path / "later.csv"
    windows = ("--encoding", "cp1252")
    made = run("init", path, "--data", table, "--id", "id", "--prediction", "eins", "--method", "tradition", *windows)
    assert made.code == 0, made.err
    second = ("--prediction", "zwei", "--id", "id")
    commands = (
        ("compare", path, "--predictions", table, *second),
        ("extend", path, "--data", more, "--prediction", "eins", "--id", "id", "--encoding", "utf-8"),
        ("add-model", path, "v2", "--data", table, *second, "--scores", "p"),
    )
    for command in commands:
        assert "give --encoding cp1252" in run(*command).err
    run("tell", path, "t0", "Größe")
    assert run(*commands[0], *windows).code == 0
    assert run(*commands[2], *windows).code == 0
    refused = run("extend", path, "--data", more, *windows).err
    assert "the items have no model 'v2'" in refused and "--prediction model --prediction v2" in refused
    single = tmp_path / "two.altmas"
    run("init", single, "--data", table, "--id", "id", "--prediction", "eins", "--method", "tradition", *windows)
    extended = run("extend", single, "--data", more)  # the encoding of the first table holds
    assert extended.code == 0, extended.err
