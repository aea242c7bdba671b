"""The panels of the preset without leaps: its cells, and how leaps are counted."""

import pytest

from benchmarks import paper, paper_stable
from benchmarks.paper import AIMS, ALL, MODELS
from benchmarks.paper_stable import leaps, panel_cells, part_cells


def run_of(*sizes):
    return [{"pseudo": size} for size in sizes]


def test_a_leap_more_than_doubles_or_halves():
    assert leaps([run_of(100, 200, 90, 100)]) == pytest.approx(1 / 3, abs=1e-4)
    assert leaps([run_of(1000, 2100), run_of(1000, 1000)]) == 0.5
    assert leaps([run_of(0, 0, 1)]) == 0.0
    assert leaps([[{"own": {}}]]) is None and leaps([]) is None


def test_every_panel_and_setting_is_there_once_for_each_repeat():
    panels = panel_cells(2)
    assert len({cell.path for cell in panels}) == len(panels) == 2 * (12 + 3 + 3)
    assert {(cell.model, cell.aim) for cell in panels if cell.method == "stable"} == {
        (m, a) for m in MODELS for a in AIMS
    }
    assert {cell.aim for cell in panels if cell.method != "stable"} == {ALL}
    parts = part_cells(1)
    assert len(parts) == 3 * len(paper_stable.SETTINGS)
    assert [cell.made.preset for cell in parts if cell.method in paper.PRESETS] == ["stable"] * 9
