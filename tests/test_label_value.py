"""The label-value benchmark counts what it says it counts."""

import numpy as np
import pytest

import altmas
from altmas.methods.assured.recipe import EDITION
from benchmarks import label_value
from benchmarks.label_value import Cell, run_cells, value_of
from benchmarks.learnable_limit import learnable_limit, limit_of
from benchmarks.store import read_csv, write_csv


def test_the_label_value_is_a_ratio_of_mean_squared_errors():
    rng = np.random.default_rng(0)
    mine, random = rng.normal(0, 0.01, (400, 3)), rng.normal(0, 0.02, (1000, 3))
    value, low, high = value_of(mine, random)
    assert low < value < high and low < 4 < high and value == pytest.approx(4, rel=0.15)


def test_metrics_that_random_sampling_cannot_define_are_left_out():
    rng = np.random.default_rng(0)
    mine, random = rng.normal(0, 0.01, (100, 2)), rng.normal(0, 0.01, (100, 2))
    mine[:, 1] = 5.0
    random[:80, 1] = np.nan
    assert value_of(mine, random)[0] == pytest.approx(1, rel=0.4)
    assert np.isnan(value_of(mine[:, 1:], random[:, 1:])[0])


def test_runs_are_kept_line_by_line_and_continued(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 600)

    class Named:
        features, scores, classes = None, None, ["no", "yes"]
        predictions = np.where(rng.random(600) < 0.8, truth, 1 - truth)

    Named.truth = truth
    monkeypatch.setattr(label_value, "load", lambda name: Named)
    monkeypatch.setattr(label_value, "RUNS", tmp_path)
    cell = Cell("toy", "hard", "accuracy", "tradition")
    assert run_cells([cell], 0, 2) == 2
    with cell.path.open("a") as file:
        file.write('{"repeat": 2, "100"')  # killed while writing
    assert [run["repeat"] for run in cell.runs.read()] == [0, 1]
    assert run_cells([cell], 0, 3) == 1 and len(cell.runs.read()) == 3
    assert set(cell.runs.read()[0]) == {"repeat", "100", "200", "400", "seconds"}


def test_the_limit_is_one_where_nothing_can_be_learned_and_large_where_everything_can():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    right = rng.random(400) < 0.8
    pool = altmas.Pool(None, np.where(right, truth, 1 - truth), classes=[0, 1])
    limit, _ = learnable_limit(pool, truth)
    assert limit == pytest.approx(1, abs=0.05)
    assert limit_of(np.where(right, 0.99, 0.01), right) > 10


def test_rows_of_other_cells_stay_with_their_edition(tmp_path):
    path = tmp_path / "label_value.csv"
    key = {"pool": "p", "track": "hard", "aim": "several", "labels": 400, "metric": "accuracy"}
    old = [
        {**key, "method": "altmas", "edition": "", "rmse": 1},
        {**key, "method": "assured", "edition": "0", "rmse": 2},
        {**key, "method": "assured", "edition": EDITION, "labels": 100, "rmse": 3},
        {**key, "method": "tradition", "edition": "", "rmse": 4},
    ]
    write_csv(path, old)
    label_value.keep(path, [{**key, "method": "tradition", "edition": "", "rmse": 5}])
    assert [(row["method"], row["rmse"]) for row in read_csv(path)] == [
        ("altmas", "1"),
        ("assured", "2"),
        ("assured", "3"),
        ("tradition", "5"),
    ]
