"""MLflow gets every estimate with its interval, at step = labels, and the report."""

import re
import sys
from pathlib import Path
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
        self.params = {}

    def active_run(self):
        return self.active

    def start_run(self, run_id=None):
        self.active = SimpleNamespace(info=SimpleNamespace(run_id=run_id or "new-run"))
        return self.active

    def end_run(self):
        self.active, self.ended = None, self.ended + 1

    def set_tags(self, tags):
        self.tags |= tags

    def log_params(self, params):
        assert all(self.params.get(name, value) == value for name, value in params.items())  # never changed
        self.params |= params

    def MlflowClient(self):
        return self

    def get_metric_history(self, run_id, key):
        return [SimpleNamespace(step=step) for step, values in self.metrics if key in values]

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


def test_params_say_what_was_asked_and_how(session, mlflow):
    session.log_to_mlflow(report=False)
    assert mlflow.params["altmas.method"] == "tradition"
    assert mlflow.params["altmas.metrics"] == "accuracy, recall[dog]"
    assert mlflow.params["altmas.confidence"] == "0.95" and mlflow.params["altmas.seed"] == "0"


def test_logging_again_adds_only_the_steps_that_are_new(session, mlflow):
    mlflow.start_run("mine")
    session.log_to_mlflow(report=False)
    session.tell({query.id: "cat" for query in session.ask(20)})
    session.log_to_mlflow(report=False)
    assert [step for step, _ in mlflow.metrics] == [20, 40, 60, 80]


def test_a_session_that_nobody_looked_at_is_logged_along_its_trajectory(mlflow):
    session = Session.create(None, Pool(None, ["cat", "dog"] * 50), method="tradition")
    session.tell({query.id: "cat" for query in session.ask(40)})
    session.log_to_mlflow(report=False)
    assert [step for step, _ in mlflow.metrics] == [labels for labels, _ in session.trajectory()]
    assert len(mlflow.metrics) == 20


def test_undefined_numbers_are_left_out():
    rows = [
        {"metric": "recall[a,b]@site=ü", "value": 0.5, "low": None, "high": float("nan")},
        {"metric": "accuracy", "value": None, "low": None, "high": None},
    ]
    assert values_of(rows) == {"recall_a_b_site_.FC": 0.5}


@pytest.mark.parametrize(
    "metrics",
    [
        ["recall[c]", "recall[c++]", "recall[c#]", "recall[C]"],
        ["recall[a,b]", "recall[a_b]", "recall[a b]", "recall[a=b]"],
        ["recall[c]", "recall[c_lower]", "recall[c_upper]"],
        ["recall[c_lower]", "recall[c]"],
        ["v2: accuracy - v1: accuracy", "v2: accuracy", "accuracy@v2=1"],
        ["recall[猫]", "recall[犬]", "recall[ ]", "recall[  ]"],
    ],
)
def test_no_two_metrics_share_a_name(metrics):
    rows = [{"metric": metric, "value": k, "low": k, "high": k} for k, metric in enumerate(metrics)]
    values = values_of(rows)
    assert len(values) == 3 * len(metrics)
    assert all(re.fullmatch(r"[0-9A-Za-z_\-. /]+", name) for name in values)


def test_the_real_mlflow_takes_names_params_and_steps(session, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    run_id = session.log_to_mlflow(report=False)
    again = session.log_to_mlflow(report=False, run_id=run_id)
    client = mlflow.MlflowClient()
    steps = [one.step for one in client.get_metric_history(run_id, "recall_dog_lower")]
    assert again == run_id and steps == [20, 40, 60]
    assert client.get_run(run_id).data.params["altmas.metrics"] == "accuracy, recall[dog]"


def test_without_mlflow_the_message_has_the_command_that_helps(session, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"pip install 'altmas\[mlflow\]'"):
        session.log_to_mlflow()


def test_the_recipes_run_as_they_are_written(mlflow, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logged, drawn = [], []

    class Writer:
        def __init__(self, folder):
            self.folder = folder

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def add_scalars(self, tag, values, step):
            drawn.append((step, tag, values))

    run = SimpleNamespace(log=lambda values, step: logged.append((step, values)), finish=lambda: None)
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda project, config: run))
    for name in ("torch", "torch.utils"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer))
    page = (Path(__file__).parents[1] / "docs" / "trackers.md").read_text("utf-8")
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "trackers.md", "exec"), {})
    assert mlflow.metrics[-1][0] == 60 and "recall_cat_upper" in mlflow.metrics[-1][1]
    assert [step for step, _ in logged] == sorted({step for step, _, _ in drawn}) and logged[-1][0] == 60
    last = logged[-1][1]
    assert last["accuracy/lower"] <= last["accuracy"] <= last["accuracy/upper"]
    assert {tag for _, tag, _ in drawn} == {"accuracy", "recall[cat]"}
