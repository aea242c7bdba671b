"""Somebody else's method and pool on the terms of the leaderboard."""

import csv

import numpy as np
import pytest

from benchmarks.challenge import NotInProtocol, main, method_at, pool_at
from benchmarks.data import DataDamaged, DataMissing

MINE = '''
"""Points in the order of their rows, the share of right answers among them."""
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from altmas import Estimate, Estimates
from altmas.methods import Batch, Method, Traits


@dataclass(frozen=True)
class InOrder(Method):
    name: ClassVar[str] = "in-order"
    traits: ClassVar[Traits] = Traits(metrics=("accuracy",))

    def propose(self, task, history, n):
        return Batch(np.flatnonzero(history.open)[:n])

    def estimate(self, task, history):
        right = [label == task.pool.predictions[row] for row, label in history.labels.items()]
        value = float(np.mean(right)) if right else float("nan")
        return Estimates((Estimate("accuracy", value, value, value, task.confidence, len(right)),), self.name)


class Nothing:
    pass


def most_right(answers, ask, labels, rng):
    truth = np.array([ask(row) for row in range(labels)])
    return int((answers[:labels] == truth[:, None]).sum(0).argmax())


def too_many(answers, ask, labels, rng):
    return [ask(row) for row in range(labels + 1)]


def no_model(answers, ask, labels, rng):
    return answers.shape[1]


def without_interval(judges, ask, labels, rng):
    return np.mean([ask(row) for row in range(labels)]), np.nan, np.nan


def one_number(judges, ask, labels, rng):
    return 3.0
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "in_order_method.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 400)
    predicted = np.where(rng.random(400) < 0.8, truth, rng.integers(0, 3, 400))
    np.savez(tmp_path / "tickets.npz", a=predicted, y=truth, classes=np.array(["bill", "login", "other"]))
    return tmp_path


def test_a_method_and_a_pool_from_outside_get_the_rows_of_the_leaderboard(folder, capsys):
    command = ["--method", "in_order_method:InOrder", "--pool", "tickets.npz", "--repeats", "2", "--jobs", "1"]
    assert main([*command, "--budgets", "50,100,1000", "--out", "mine.csv"]) == 0
    with open("mine.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    run = [row for row in rows if row["method"] == "in-order" and row["status"] == "run"]
    assert [(row["pool"], row["metric"], row["labels"]) for row in run] == [
        ("tickets", "accuracy", "50"),
        ("tickets", "accuracy", "100"),
    ]
    assert all(row["version"] and row["label_value"] for row in run)
    assert {row["method"] for row in rows if row["metric"] == "macro_f1" and row["status"] == "run"} == {"tradition"}
    said = capsys.readouterr().out
    assert "in-order on tickets, hard, macro_f1: cannot: cannot estimate 'macro_f1'" in said
    kept = {path.name: path.read_bytes() for path in (folder / "mine.runs").iterdir()}
    assert main([*command, "--budgets", "50,100,1000", "--out", "mine.csv"]) == 0
    assert {path.name: path.read_bytes() for path in (folder / "mine.runs").iterdir()} == kept  # nothing ran again


def test_what_is_no_method_or_no_pool_is_said_in_a_sentence(folder, capsys):
    with pytest.raises(NotInProtocol, match="has no name, traits, propose, estimate"):
        method_at("in_order_method:Nothing")
    with pytest.raises(NotInProtocol, match="expected module:name"):
        method_at("in_order_method:Nobody")
    with pytest.raises(DataMissing, match="expected the path of an .npz file"):
        pool_at("nowhere.npz")
    np.savez("bad.npz", a=[0, 1], y=[0, 1], scores=np.ones((2, 3)))
    with pytest.raises(DataDamaged, match=r"scores of shape \(2, 3\) for 2 classes"):
        pool_at("bad.npz")
    assert main(["--method", "no_such_module:X", "--pool", "tickets.npz"]) == 2
    assert capsys.readouterr().err.startswith("--method no_such_module:X: No module named")


# ---------------------------------------------------------------- several models, judges


@pytest.fixture
def tracks(folder):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 400)
    right = rng.random((400, 3)) < [0.4, 0.9, 0.6]
    answers = np.where(right, truth[:, None], (truth[:, None] + 1) % 3)
    np.savez("models.npz", predictions=answers, y=truth)
    grades = rng.integers(1, 6, 400)
    np.savez("grades.npz", judges=np.clip(grades[:, None] + rng.integers(-1, 2, (400, 2)), 1, 5), y=grades)
    return folder


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_function_that_chooses_among_models_is_run_beside_the_others(tracks):
    command = ["--track", "models", "--method", "in_order_method:most_right", "--pool", "models.npz", "--jobs", "1"]
    assert main([*command, "--repeats", "2", "--out", "mine.csv"]) == 0
    rows = table("mine.csv")
    mine = [row for row in rows if row["method"] == "in_order_method:most_right"]
    assert [int(row["labels"]) for row in mine] == [25, 50, 100, 200]
    assert all(float(row["within_1_point"]) == 1 and float(row["regret"]) == 0 for row in mine)
    assert {row["method"] for row in rows} == {"random", "assured", "in_order_method:most_right"}
    assert all("edition" in row["version"] for row in rows if row["method"] == "assured")
    kept = (tracks / "mine.runs" / "models.jsonl").read_bytes()
    assert main([*command, "--repeats", "2", "--out", "mine.csv"]) == 0
    assert (tracks / "mine.runs" / "models.jsonl").read_bytes() == kept  # nothing ran again


def test_a_function_that_estimates_grades_is_run_beside_the_others(tracks):
    command = ["--track", "judges", "--method", "in_order_method:without_interval", "--method", "PPI++"]
    assert main([*command, "--pool", "grades.npz", "--jobs", "1", "--repeats", "2", "--out", "mine.csv"]) == 0
    rows = table("mine.csv")
    assert {row["method"] for row in rows} == {"random", "assured", "in_order_method:without_interval", "PPI++"}
    with np.load("grades.npz") as file:
        y = file["y"]
    for row in rows:
        if row["method"] == "in_order_method:without_interval":
            labels = int(row["labels"])
            assert float(row["bias"]) == pytest.approx(y[:labels].mean() - y.mean())
            random = y.var(ddof=1) * (1 / labels - 1 / len(y))
            assert float(row["label_value"]) == pytest.approx(random / float(row["rmse"]) ** 2)
            assert row["coverage"] == row["width"] == "nan"
        else:
            assert float(row["width"]) > 0


@pytest.mark.parametrize(
    ("track", "method", "pool", "said"),
    [
        ("models", "in_order_method:too_many", "models.npz", "ask(25) is one label too many: 25 may be asked for"),
        ("models", "in_order_method:no_model", "models.npz", "it chose 3; expected a column from 0 to 2"),
        ("judges", "in_order_method:one_number", "grades.npz", "it gave 3.0; expected (value, low, high)"),
        ("judges", "oasis", "grades.npz", "--method oasis: expected module:function or one of random, assured"),
        ("judges", "in_order_method:MISSING", "grades.npz", "expected module:name of something that can be imported"),
        ("models", "in_order_method:most_right", "grades.npz", "predictions"),
        ("judges", "in_order_method:one_number", "small.npz", "has 60 rows; this track asks for up to 200 labels"),
        ("judges", "in_order_method:one_number", "gaps.npz", "judges and y must be numbers, none of them missing"),
        ("models", "in_order_method:most_right", "names.npz", "must be codes 0, 1, ... of classes"),
    ],
)
def test_what_the_tracks_cannot_use_is_said_in_a_sentence(tracks, capsys, track, method, pool, said):
    np.savez("small.npz", judges=np.ones((60, 2)), y=np.ones(60))
    np.savez("gaps.npz", judges=np.full((300, 2), np.nan), y=np.ones(300))
    np.savez("names.npz", predictions=np.full((300, 2), "cat"), y=np.full(300, "cat"))
    command = ["--track", track, "--method", method, "--pool", pool, "--jobs", "1", "--repeats", "1"]
    assert main(command) == 2
    assert said in capsys.readouterr().err
