"""MLflow gets every estimate with its interval, at step = labels, and the report."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from altmas import Pool
from altmas.session import Session
from altmas.trackers import values_of


class FakeMlflow:
    """Keeps what it is told, as MLflow's fluent interface would."""

    def __init__(self):
        self.metrics, self.tags, self.artifacts, self.active, self.ended = [], {}, {}, None, 0

    def active_run(self):
        return self.active

    def start_run(self, run_id=None):
        self.active = SimpleNamespace(info=SimpleNamespace(run_id=run_id or "new-run"))
        return self.active

    def end_run(self):
        self.active, self.ended = None, self.ended + 1

    def set_tags(self, tags):
        self.tags |= tags

    def log_metrics(self, values, step):
        self.metrics.append((step, values))

    def log_artifact(self, path):
        with open(path, encoding="utf-8") as file:
            self.artifacts[path.rsplit("/", 1)[-1]] = file.read()


@pytest.fixture
def mlflow(monkeypatch):
    fake = FakeMlflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    return fake


@pytest.fixture
def session():
    rng = np.random.default_rng(3)
    truth = rng.choice(["cat", "dog"], 200)
    pool = Pool(None, np.where(rng.random(200) < 0.8, truth, "cat"), classes=["cat", "dog"])
    made = Session.create(None, pool, metrics=["accuracy", "recall[dog]"], method="tradition")
    for _ in range(3):
        made.tell({query.id: truth[query.index] for query in made.ask(20)})
        made.estimate()
    return made


def test_every_logged_estimate_becomes_a_step(session, mlflow):
    assert session.log_to_mlflow() == "new-run"
    assert [step for step, _ in mlflow.metrics] == [20, 40, 60]
    now = session.estimate()["accuracy"]
    _, last = mlflow.metrics[-1]
    assert (last["accuracy"], last["accuracy_lower"], last["accuracy_upper"]) == (now.value, now.low, now.high)
    assert {"recall_dog", "recall_dog_lower", "recall_dog_upper"} < set(last)
    assert mlflow.tags["altmas.method"] == "tradition" and mlflow.tags["altmas.log_hash"] == session.status().digest
    assert set(mlflow.artifacts) == {"report.html", "report.json", "events.jsonl"}
    assert mlflow.artifacts["report.html"].startswith("<!doctype html>")
    assert mlflow.ended == 1


def test_a_run_that_is_under_way_is_used_and_left_open(session, mlflow):
    mlflow.start_run("mine")
    assert session.log_to_mlflow(report=False) == "mine"
    assert mlflow.ended == 0 and mlflow.artifacts == {}


def test_undefined_numbers_and_odd_names_are_left_out_or_made_fit():
    rows = [
        {"metric": "recall[a,b]@site=ü", "value": 0.5, "low": None, "high": float("nan")},
        {"metric": "accuracy", "value": None, "low": None, "high": None},
    ]
    assert values_of(rows) == {"recall_a_b__site": 0.5}


def test_without_mlflow_the_message_has_the_command_that_helps(session, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"pip install 'altmas\[mlflow\]'"):
        session.log_to_mlflow()
