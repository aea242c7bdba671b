"""The benchmark of scores: its arithmetic, on runs made by hand."""

import json

import pytest

from benchmarks import scores


def a_run(method, seed, value, low, high):
    at = [{"labels": 100, "value": value, "low": low, "high": high}]
    return {"pool": "p", "metric": "roc_auc", "method": method, "seed": seed, "truth": 0.8, "at": at, "seconds": 1.0}


def test_coverage_width_and_label_value_come_from_the_runs(tmp_path, monkeypatch):
    runs = [a_run("assured", 0, 0.81, 0.7, 0.9), a_run("assured", 1, 0.78, 0.7, 0.79)]
    runs += [a_run("tradition", 0, 0.84, 0.7, 0.9), a_run("tradition", 1, 0.76, float("nan"), float("nan"))]
    file = tmp_path / "scores.jsonl"
    file.write_text("".join(json.dumps(run) + "\n" for run in runs))
    monkeypatch.setattr(scores, "FILE", file)
    (row,) = scores.summary()
    assert row["runs"] == 2 and row["coverage"] == 0.5 and row["width"] == pytest.approx(0.145)
    assert row["bias"] == pytest.approx(-0.005)
    assert row["random_coverage"] == 1.0  # the run without an interval is left out
    assert row["label_value"] == pytest.approx((0.04**2 + 0.04**2) / (0.01**2 + 0.02**2))
    page = scores._table([row], ("roc_auc",))
    assert "| p | roc_auc (0.800) | 100 | 2 | 0.50 |" in page


def test_finished_runs_are_not_repeated(tmp_path, monkeypatch):
    file = tmp_path / "scores.jsonl"
    file.write_text(
        json.dumps(a_run("assured", 0, 0.8, 0.7, 0.9)) + "\n" + json.dumps(a_run("tradition", 0, 0.8, 0.7, 0.9)) + "\n"
    )
    monkeypatch.setattr(scores, "FILE", file)
    monkeypatch.setattr(scores, "POOLS", {"p": lambda: pytest.fail("nothing is left to run")})
    assert list(scores.runs_of("p", 1, ("roc_auc",))) == []
