"""The benchmark of judges: rivals against plain versions of themselves, and tables that say what the runs say."""

import json
import math

import numpy as np
import pytest

from altmas.history import History
from altmas.methods import Assured
from altmas.metrics import metric_set, truth_values
from altmas.simulate import label_until
from altmas.task import Task
from benchmarks import judges
from benchmarks.data import DataMissing
from benchmarks.store import RESULTS, read_numbers


def made_up(n=400, seed=0):
    """(judges (N, 2), y (N,)): one judge that leans and one that is mostly noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(1, 6, n).astype(float)
    return np.column_stack([np.clip(y + rng.normal(1, 1, n), 1, 5), rng.normal(3, 2, n)]), y


def test_prediction_powered_inference_is_the_regression_estimator():
    answers, y = made_up()
    rows = np.arange(0, 400, 5)
    value, low, high, variance = judges.prediction_powered(answers, y, rows)
    slope, _ = np.polyfit(answers[rows, 0], y[rows], 1)
    assert value == pytest.approx(y[rows].mean() + slope * (answers[:, 0].mean() - answers[rows, 0].mean()))
    assert high - value == pytest.approx(value - low)
    assert variance == pytest.approx((y - slope * answers[:, 0]).var() * (1 / 80 - 1 / 400))
    constant = np.full((400, 1), 3.0)
    assert judges.prediction_powered(constant, y, rows)[0] == pytest.approx(y[rows].mean())


@pytest.mark.parametrize("rival", [judges.prediction_powered, judges.regression])
def test_rivals_written_here_are_unbiased_and_as_exact_as_they_say(rival):
    answers, y = made_up()
    found = [rival(answers, y, np.random.default_rng(seed).permutation(400)[:100]) for seed in range(300)]
    values, variances = np.array([one[0] for one in found]), np.array([one[3] for one in found])
    assert abs(values.mean() - y.mean()) < 3 * values.std() / math.sqrt(300) + 0.005
    assert values.var() == pytest.approx(variances.mean(), rel=0.25)
    held = np.mean([low <= y.mean() <= high for _, low, high, _ in found])
    assert held > 0.9


@pytest.mark.slow
def test_the_variance_of_the_design_is_that_of_the_estimates():
    """With draws and belief fixed by a pilot alone, estimates scatter as the exact variance says."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 300)
    judged = judges.Judged(("1", "2", "3", "4", "5"), {"one": np.clip(truth + rng.integers(-1, 2, 300), 0, 4)}, truth)
    pool, values = judged.pool(), judges.class_values("mean")
    errors, variances = [], []
    for seed in range(80):
        task = Task(pool, metric_set("mean", pool), seed=seed)
        history = label_until(Assured(), task, History(300), 40, 40, truth.__getitem__)
        errors.append(Assured().estimate(task, history)[0].value - values[truth].mean())
        variances.append(judges.variance_of_design(Assured(), task, history, values[truth], values))
    assert np.mean(np.square(errors)) == pytest.approx(np.mean(variances), rel=0.5)


def a_run(seed: int, assured: float, other: float) -> dict:
    def at(method, value, variance):
        return {
            "method": method,
            "labels": 100,
            "value": value,
            "low": value - 0.1,
            "high": value + 0.1,
            "variance": variance,
        }

    methods = [at("assured", assured, 0.001), at("random", other, math.nan)]
    methods += [at(name, other, 0.002) for name in judges.RIVALS]
    return {"pool": "stars", "metric": "mean", "seed": seed, "truth": 3.0, "random": {"100": 0.004}, "at": methods}


def test_the_summary_counts_coverage_and_worth(tmp_path, monkeypatch):
    file = tmp_path / "judges.jsonl"
    file.write_text("".join(json.dumps(run) + "\n" for run in (a_run(0, 3.02, 3.2), a_run(1, 2.95, 3.05))))
    monkeypatch.setattr(judges, "FILE", file)
    cells = judges.cells_of(judges.summary())
    row = cells["stars", "mean", 100]["assured"]
    assert (row["runs"], row["coverage"], row["refused"]) == (2, 1.0, 0)
    assert row["value_by_variance"] == pytest.approx(4) and row["width"] == pytest.approx(0.2)
    assert row["value_by_errors"] == pytest.approx(0.004 / ((0.02**2 + 0.05**2) / 2))
    assert cells["stars", "mean", 100]["judgy"]["coverage"] == 0.5
    assert "| stars | mean (3.000) | 100 | 0.200 (1.00) |" in judges.interval_table(cells)
    assert "| stars | mean | 100 | 4.00 | 2.00 | 2.00 |" in judges.value_table(cells)


def test_finished_runs_are_not_repeated(tmp_path, monkeypatch):
    file = tmp_path / "judges.jsonl"
    file.write_text(json.dumps(a_run(0, 3, 3)) + "\n")
    monkeypatch.setattr(judges, "FILE", file)
    monkeypatch.setattr(judges, "metrics_of", lambda name: ("mean",))
    monkeypatch.setattr(judges, "one_run", lambda *_: pytest.fail("nothing is left to run"))
    judges.run(1, ["stars"])


@pytest.mark.parametrize("name", list(judges.POOLS))
def test_metrics_are_means_of_the_values_of_classes(name):
    try:
        judged, pool = judges.loaded(name)
    except DataMissing as missing:
        pytest.skip(str(missing))
    for metric in judges.metrics_of(name):
        (exact,) = truth_values(pool, judged.truth, metric_set(metric, pool)).values()
        assert judges.class_values(metric)[judged.truth].mean() == pytest.approx(exact)


def test_the_page_shows_the_committed_table():
    rows = read_numbers(RESULTS / "judges.csv")
    cells = judges.cells_of(rows)
    text = judges.PAGE.read_text(encoding="utf-8")
    assert {key[0] for key in cells} == set(judges.POOLS)
    for (pool, metric, labels), by_method in cells.items():
        line = f"| {pool} | {metric} ({by_method['assured']['truth']:.3f}) | {labels} |"
        assert line in text, line
