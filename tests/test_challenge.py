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
