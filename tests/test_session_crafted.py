"""Logs that altmas did not write, with hashes that fit: a sentence, and nothing changed."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import altmas
from altmas.errors import AltmasError, FileError, MethodError, NotASession
from altmas.methods import Tradition
from altmas.session.arrays import pack
from altmas.session.session_file import schema
from benchmarks.operations.crafted_sessions import planned, rewritten, with_sql
from benchmarks.operations.mutated_sessions import CHANGES, outcomes
from session_world import create, truth


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """A session file with two draws, five labels, a skip, an undo, a ruling and an estimate."""
    path = tmp_path / "one.altmas"
    with create(path) as session:
        for query in session.ask(5):
            session.tell(query.id, truth(query), "ana")
        session.skip("p7", "torn")
        session.undo()
        session.tell("p8", "cat")
        session.adjudicate("p8", "dog")
        session.estimate()
        session.ask(2)
    return path


def first(rows, kind):
    return next(row for row in rows if row["kind"] == kind)


def body(rows, kind, **changes):
    row = first(rows, kind)
    row["body"] = json.dumps(json.loads(row["body"]) | changes)


def arrays(rows, **changes):
    row = first(rows, "draw")
    kept = {"indices": np.arange(5), "probabilities": np.full(5, 0.1)} | changes
    row["data"] = pack({name: array for name, array in kept.items() if array is not None})


def column(rows, kind, name, value):
    first(rows, kind)[name] = value


EDITS = {
    "a label of no class": lambda rows: column(rows, "label", "label", "hound"),
    "a label without a label": lambda rows: column(rows, "label", "label", None),
    "a label of bytes": lambda rows: column(rows, "label", "label", b"cat"),
    "a point that does not exist": lambda rows: column(rows, "label", "point", "nobody"),
    "no point": lambda rows: column(rows, "label", "point", None),
    "a point of bytes": lambda rows: column(rows, "label", "point", b"\xff\xfe"),
    "a skip with a label": lambda rows: column(rows, "skip", "label", "cat"),
    "a ruling without a label": lambda rows: column(rows, "adjudication", "label", None),
    "an undo of nothing": lambda rows: column(rows, "undo", "refers", None),
    "an undo of what never was": lambda rows: column(rows, "undo", "refers", 10**9),
    "an undo of a draw": lambda rows: column(rows, "undo", "refers", 2),
    "endless seconds": lambda rows: column(rows, "label", "seconds", float("inf")),
    "a time that is none": lambda rows: column(rows, "label", "at", "yesterday"),
    "a kind of bytes": lambda rows: column(rows, "label", "kind", b"label"),
    "a body that is no JSON": lambda rows: column(rows, "label", "body", "{"),
    "a body that is a list": lambda rows: column(rows, "label", "body", "[]"),
    "a body 100,000 deep": lambda rows: column(rows, "label", "body", "[" * 100_000 + "]" * 100_000),
    "a number of 10,000 digits": lambda rows: column(rows, "label", "body", '{"x": ' + "9" * 10_000 + "}"),
    "a draw without arrays": lambda rows: column(rows, "draw", "data", None),
    "a draw of nonsense": lambda rows: column(rows, "draw", "data", b"PK\x03\x04 nonsense"),
    "a draw of a text": lambda rows: column(rows, "draw", "data", "text"),
    "a draw beyond the pool": lambda rows: arrays(rows, indices=np.array([0, 1, 2, 3, 10**12])),
    "a draw before the pool": lambda rows: arrays(rows, indices=np.array([0, 1, 2, 3, -1])),
    "a draw of fractions": lambda rows: arrays(rows, indices=np.array([0.5, 1, 2, 3, 4])),
    "a draw with one point twice": lambda rows: arrays(rows, indices=np.array([0, 1, 2, 3, 3])),
    "a draw without points": lambda rows: arrays(rows, indices=None),
    "probabilities of 0": lambda rows: arrays(rows, probabilities=np.zeros(5)),
    "probabilities that are none": lambda rows: arrays(rows, probabilities=np.full(5, np.nan)),
    "too few probabilities": lambda rows: arrays(rows, probabilities=np.full(2, 0.1)),
    "a draw without its number of labels": lambda rows: body(rows, "draw", labels_before="many"),
    "an estimate of nothing": lambda rows: body(rows, "estimate", estimates=3),
    "an estimate of texts": lambda rows: body(rows, "estimate", estimates=[{"metric": "a", "value": "x"}]),
    "no plan": lambda rows: column(rows, "created", "body", "{}"),
    "a plan that is a number": lambda rows: body(rows, "created", plan=3),
    "a plan without metrics": lambda rows: body(rows, "created", plan={}),
    "a pool that is a text": lambda rows: body(rows, "created", pool="mine"),
    "no pool": lambda rows: body(rows, "created", pool={"archived": False, "source": None, "points": 3, "home": None}),
    "a source without a table": lambda rows: body(
        rows, "created", pool={"archived": False, "source": {"x": 1}, "points": 3, "home": None}
    ),
    "nothing but notes": lambda rows: column(rows, "created", "kind", "note"),
    "an empty log": lambda rows: rows.clear(),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_log_that_altmas_did_not_write_is_refused_with_a_sentence(told, edit):
    rewritten(told, EDITS[edit])
    before = told.read_bytes()
    for read_only in (True, False):
        with pytest.raises(AltmasError) as error:
            altmas.Session.open(told, read_only=read_only)
        assert str(told) in str(error.value)
    assert told.read_bytes() == before


PLANS = {
    "metrics that are a number": {"metrics": 3},
    "metrics without a name": {"metrics": [{}]},
    "metrics deep inside each other": {"metrics": [[[[]]]]},
    "a cost that is no matrix": {"metrics": [{"name": "cost", "cost": [[1], [2, 3]]}]},
    "a metric that does not exist": {"metrics": ["fame"]},
    "no metrics": {"metrics": []},
    "a method that does not exist": {"method": {"name": "magic", "options": {}, "class": None}},
    "a method that is a text": {"method": "assured"},
    "options that are a list": {"method": {"name": "tradition", "options": [1], "class": None}},
    "a budget of -1": {"budget": -1},
    "a seed of a text": {"seed": "1"},
    "targets that are a list": {"targets": [1, 2]},
    "a fingerprint of another pool": {"fingerprint": {"ids": "0" * 64}},
    "a fingerprint that is a list": {"fingerprint": []},
}


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_that_altmas_did_not_write_is_refused_with_a_sentence(told, plan):
    planned(told, **PLANS[plan])
    with pytest.raises(AltmasError):
        altmas.Session.open(told)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM parts WHERE name = 'ids'",
        "DELETE FROM parts WHERE name = 'about'",
        "UPDATE parts SET chunk = 7 WHERE name = 'features'",
        "UPDATE parts SET data = 'text' WHERE name = 'scores'",
        "UPDATE parts SET data = x'00' WHERE name = 'predictions'",
        "UPDATE parts SET data = (SELECT data FROM parts WHERE name = 'scores') WHERE name = 'features'",
        "UPDATE parts SET data = (SELECT data FROM parts WHERE name = 'features') WHERE name = 'items'",
    ],
)
def test_a_pool_that_was_changed_is_refused(told, statement):
    with_sql(told, statement)
    with pytest.raises(AltmasError):
        altmas.Session.open(told)


def test_leases_that_altmas_did_not_write_hold_nothing_up(told):
    with_sql(told, "INSERT INTO leases VALUES (x'ff', 'ana', 9e99)", "INSERT INTO leases VALUES ('p1', x'00', 'later')")
    with_sql(told, "INSERT INTO leases VALUES ('nobody', 'ana', 9e99)")
    with altmas.Session.open(told) as session:
        assert session.status().leased == 0 and len(session.ask(4)) == 4
        session.tell("p1", "cat")


def test_a_file_that_names_a_pipe_as_its_table_does_not_wait_for_it(told, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    source = {"table": str(pipe), "prediction": "p", "folder": str(tmp_path)}
    pool = {"archived": False, "source": source, "points": 3, "home": str(tmp_path)}
    rewritten(told, lambda rows: body(rows, "created", pool=pool))
    with pytest.raises(FileError, match="pipe, which is no file"):
        altmas.Session.open(told)


def test_text_that_is_no_utf_8_is_refused(told):
    triggers = [line for line in schema().splitlines() if line.startswith("CREATE TRIGGER")]
    change = "UPDATE events SET annotator = CAST(x'ff' AS TEXT) WHERE seq = 4"
    with_sql(told, *(f"DROP TRIGGER {line.split()[2]}" for line in triggers), change, *triggers)
    with pytest.raises(NotASession, match="damaged"):
        altmas.Session.open(told)


def test_a_record_that_a_built_in_method_cannot_use_ends_with_a_sentence(told, monkeypatch):
    def lost(*_: object) -> None:
        raise KeyError("levels")

    monkeypatch.setattr(Tradition, "estimate", lost)
    monkeypatch.setattr(Tradition, "propose", lost)
    with altmas.Session.open(told) as session:
        for act in (session.estimate, lambda: session.ask(9)):
            with pytest.raises(MethodError, match="'tradition' cannot go on from this log .KeyError: 'levels'"):
                act()
        session.tell("p1", "cat")


def test_a_log_of_another_pool_is_refused(told):
    with pytest.raises(NotASession, match="event 3 .label. does not fit the log before it"):
        rewritten(told, lambda rows: column(rows, "label", "label", "hound"))
        altmas.Session.open(told)


def test_files_changed_in_every_way_are_refused_or_what_they_were():
    """A few of the 1,000 of `python -m benchmarks.operations.mutated_sessions`: one of each kind of change."""
    found = list(outcomes(len(CHANGES), seed=7))
    assert [one for one in found if one.fault] == []
    assert {one.change for one in found} == set(CHANGES)
    assert sum(one.outcome == "refused" for one in found) >= len(CHANGES) // 2
