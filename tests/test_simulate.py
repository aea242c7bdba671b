"""Simulation: every method against known truth, resumable, summarised honestly."""

import json
import math

import numpy as np
import pytest

import altmas
from altmas.errors import FileError, MethodError, PlanError, UnknownLabel
from altmas.simulate import Simulation, label_value, simulate


@pytest.fixture
def world():
    rng = np.random.default_rng(0)
    truth = rng.choice(["cat", "dog"], 300)
    predictions = np.where(rng.random(300) < 0.8, truth, "dog")
    return altmas.Pool(None, predictions, classes=["cat", "dog"]), truth


def test_rows_hold_every_estimate_and_the_same_seed_gives_the_same_rows(world):
    pool, truth = world
    options = dict(metrics=["accuracy", "recall[cat]"], budgets=[20, 40], repeats=3, n_jobs=1, progress=False)
    first, second = simulate(pool, truth, **options), simulate(pool, truth, **options)
    assert len(first.rows) == 2 * 2 * 3
    assert [row["value"] for row in first.rows] == [row["value"] for row in second.rows]
    assert {row["labels"] for row in first.rows} == {20, 40}
    assert all(
        row["truth"] == pytest.approx(np.mean(pool.predictions == (truth == "dog")))
        for row in first.rows
        if row["metric"] == "accuracy"
    )


def test_repeats_differ_and_other_processes_give_the_same(world):
    pool, truth = world
    alone = simulate(pool, truth, budgets=[30], repeats=4, n_jobs=1, progress=False)
    together = simulate(pool, truth, budgets=[30], repeats=4, n_jobs=2, progress=False)
    values = [row["value"] for row in alone.rows]
    assert len(set(values)) > 1
    assert values == [row["value"] for row in together.rows]


def test_an_interrupted_simulation_continues_where_it_was(world, tmp_path):
    pool, truth = world
    path = tmp_path / "results.jsonl"
    whole = simulate(pool, truth, budgets=[30], repeats=4, n_jobs=1, results=path, progress=False)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]) + lines[3][:20])  # two runs finished, the third was cut short
    again = simulate(pool, truth, budgets=[30], repeats=4, n_jobs=1, results=path, progress=False)
    assert [row["value"] for row in again.rows] == [row["value"] for row in whole.rows]
    assert [row["seconds"] for row in again.rows][:2] == [row["seconds"] for row in whole.rows][:2]  # not run again
    assert len(path.read_text().splitlines()) == 5


def test_results_of_another_simulation_are_refused(world, tmp_path):
    pool, truth = world
    path = tmp_path / "results.jsonl"
    simulate(pool, truth, budgets=[30], repeats=1, n_jobs=1, results=path, progress=False)
    before = path.read_text()
    with pytest.raises(FileError, match="other budgets"):
        simulate(pool, truth, budgets=[40], repeats=1, n_jobs=1, results=path, progress=False)
    path.write_text("not json\n")
    with pytest.raises(FileError, match="not a simulation's results"):
        simulate(pool, truth, budgets=[30], repeats=1, n_jobs=1, results=path, progress=False)
    assert json.loads(before.splitlines()[0])["budgets"] == [30]


def rows(method, values):
    return [
        {
            "method": method,
            "metric": "accuracy",
            "labels": 10,
            "repeat": i,
            "value": v,
            "low": v - 0.1,
            "high": v + 0.1,
            "truth": 0.5,
            "seconds": 1.0,
        }
        for i, v in enumerate(values)
    ]


def test_summary_has_bias_rmse_coverage_width_and_value():
    summary = Simulation(rows("tradition", [0.4, 0.7, np.nan]) + rows("other", [0.45, 0.65])).summary()
    tradition, other = summary
    assert tradition["undefined"] == 1 and tradition["bias"] == pytest.approx(0.05)
    assert tradition["rmse"] == pytest.approx(np.sqrt((0.01 + 0.04) / 2)) and tradition["coverage"] == 0.5
    assert tradition["width"] == pytest.approx(0.2) and tradition["label_value"] == 1.0
    assert other["label_value"] == pytest.approx(0.025 / 0.0125)
    assert other["label_value_low"] < 2.0 < other["label_value_high"]
    assert "label value" in str(Simulation(rows("tradition", [0.4])))
    assert list(Simulation(rows("tradition", [0.4])).to_frame()["method"]) == ["tradition"]


def test_coverage_and_width_are_of_the_repeats_with_an_interval():
    without = [row | {"low": math.nan, "high": math.nan} for row in rows("other", [0.5, 0.5])]
    (other,) = Simulation(rows("other", [0.45, 0.55, 0.5]) + without).summary()
    assert other["coverage"] == 1.0 and other["width"] == pytest.approx(0.2)
    assert other["without_interval"] == 2 and other["undefined"] == 0


def test_a_printed_simulation_keeps_names_and_shows_undefined_figures_as_a_dash():
    told = str(Simulation([row | {"metric": "recall[malignant]"} for row in rows("assured", [0.4, math.nan])]))
    assert "recall[malignant]" in told and told.splitlines()[1].endswith("  -")
    nothing = str(Simulation(rows("assured", [math.nan])))
    assert nothing.splitlines()[1].split()[3:] == ["-", "-", "-", "-", "-"]


def test_the_interval_of_label_value_covers_the_true_ratio():
    """Normal errors, variance ratio 2, 200 repeats each: the 90 % interval covers 2 in 0.86 to 0.94 of 2,000 runs."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(2000):
        _, low, high = label_value(rng.normal(size=200) ** 2, 2 * rng.normal(size=200) ** 2)
        hits += low <= 2 <= high
    assert 0.86 <= hits / 2000 <= 0.94


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"budgets": [0]}, PlanError, "between 1 and the pool's 300"),
        ({"budgets": [301]}, PlanError, "between 1 and the pool's 300"),
        ({"budgets": []}, PlanError, "between 1 and the pool's 300"),
        ({"repeats": 0}, PlanError, "repeats"),
        ({"methods": ["traditoin"]}, MethodError, "did you mean 'tradition'"),
    ],
)
def test_bad_settings_are_met_at_the_door(world, change, error, sentence):
    pool, truth = world
    with pytest.raises(error, match=sentence):
        simulate(pool, truth, **{"budgets": [10], "repeats": 1, "progress": False, **change})


def test_truth_must_fit_the_pool(world):
    pool, truth = world
    with pytest.raises(PlanError, match="299 labels"):
        simulate(pool, truth[:-1], budgets=[10], progress=False)
    with pytest.raises(UnknownLabel, match="'bird'"):
        simulate(pool, np.where(np.arange(300) == 7, "bird", truth), budgets=[10], progress=False)
