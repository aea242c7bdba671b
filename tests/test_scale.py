"""The scale benchmark measures a cell, and the page shows what was measured."""

import numpy as np
import pytest

from benchmarks import scale
from benchmarks.store import read_csv


def test_a_small_cell_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "DATA", tmp_path)
    monkeypatch.setattr(scale, "LABELS", 20)
    folder, path = scale.made_up(300, 4, 3), tmp_path / "one.altmas"
    found = scale.new_session(folder, path, True) | scale.next_call(folder, path, True)
    assert {"first ask", "100 labels", "estimate GB", "open, status", "next estimate"} <= found.keys()
    assert 0 < found["first ask"] < 60 and found["estimate GB"] > 0.05 and found["sampled"] == 300


@pytest.mark.slow
def test_a_small_cell_is_measured_in_processes_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "DATA", tmp_path)
    found = scale.measure(300, 4, 3, True)
    assert {"first ask", "estimate GB", "open, status", "next estimate"} <= found.keys()
    assert 0 < found["first ask"] < 60 and 0.05 < found["estimate GB"] < 2 and found["session MB"] > 0
    truth, answers = (np.load(tmp_path / "300_4_3" / f"{name}.npy") for name in ("truth", "predictions"))
    assert 0.5 < (truth == answers).mean() < 1


def test_growth_is_the_slope_between_two_sizes():
    rows = [{"points": n, "columns": 64, "classes": 10, "scores": False, "first ask": 3 * n**0.8} for n in (10, 1000)]
    assert abs(scale.exponent(rows, "first ask", 10, 1000) - 0.8) < 1e-9


def test_the_page_shows_the_table():
    assert scale.cells_table(read_csv(scale.TABLE)) in scale.PAGE.read_text(encoding="utf-8")
