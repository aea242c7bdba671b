"""Numbers that are too many for memory: mapped files stay mapped."""

import numpy as np

import altmas
from altmas.memo import ArrayFile, Memo
from altmas.pool import scratch
from altmas.pool.growth import fitting, grown
from altmas.simulate import simulate


def mapped(path, values):
    np.save(path, values)
    return np.load(path, mmap_mode="r")


def test_mapped_features_stay_mapped_when_the_pool_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "IN_MEMORY", 100)
    monkeypatch.setattr(scratch, "ROWS", 7)
    rng = np.random.default_rng(0)
    first, more = rng.normal(size=(50, 3)).astype(np.float32), rng.normal(size=(20, 3)).astype(np.float32)
    pool = altmas.Pool(mapped(tmp_path / "f.npy", first), ["a", "b"] * 25)
    larger = grown(pool, fitting(pool, altmas.Pool(more, ["a", "b"] * 10)), "two", "one")
    assert isinstance(larger.features, np.memmap)
    assert larger.features.tolist() == np.concatenate([first, more]).tolist()
    small = grown(pool, fitting(pool, altmas.Pool(more[:1], ["a"], classes=["a", "b"])), "two", "one")
    assert small.features.tolist() == np.concatenate([first, more[:1]]).tolist()


def test_rows_of_a_mapped_file_are_copied_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "ROWS", 7)
    values = np.arange(300.0).reshape(100, 3)
    rows = np.array([3, 4, 50, 99, *range(60, 80)])
    found = scratch.rows_of(mapped(tmp_path / "m.npy", values), rows)
    assert type(found) is np.ndarray and found.tolist() == values[rows].tolist()
    assert scratch.rows_of(values, rows).tolist() == values[rows].tolist()


def test_another_process_knows_the_file_of_a_memo(tmp_path):
    made, arguments = Memo(ArrayFile(tmp_path / "d")).__reduce__()
    assert made(*arguments).file.path == tmp_path / "d"


def test_a_simulation_leaves_no_file_with_the_pool():
    pool = altmas.Pool(None, ["a", "b"] * 30)
    simulate(pool, ["a", "b"] * 30, budgets=[20], repeats=1, n_jobs=1, progress=False)
    assert pool.memo.file is None
