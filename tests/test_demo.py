"""The demonstration: its data, its table, its files, and its time."""

import json
import re
import subprocess
import sys
import time

import numpy as np
import pytest

import altmas
from altmas import demo
from cli_world import environment, run


def test_the_model_under_test_is_real_and_imperfect():
    pool, truth = demo.digits()
    assert len(pool) == len(truth) == 899 and pool.scores is not None and pool.features is not None
    exact = demo.true_values(pool, truth)
    assert 0.85 < exact["accuracy"] < 0.92
    again, _ = demo.digits()
    assert again.fingerprint == pool.fingerprint


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The demonstration with the methods that need no training and fewer labels, so that tests stay quick."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "COMPARED", tuple({altmas.methods.DEFAULT_METHOD, "tradition"}))
        patch.setattr(demo, "BUDGET", 60)
        ran = run("demo", "--output", folder)
        assert ran.code == 0, ran.err
        again = run("demo", "--output", folder, "-q")
        yield folder, ran, again


def test_the_table_is_about_the_truth(shown):
    _, ran, again = shown
    pool, truth = demo.digits()
    for name, value in demo.true_values(pool, truth).items():
        assert re.search(rf"{re.escape(name)} +\w+ +0\.\d+ +\[.*\] +{value:.3f} ", ran.out), ran.out
    assert "intervals hold the truth" in ran.out and "Try next" in ran.out
    assert "demo-2.altmas" in again.out and "demo-2-report.html" in again.out
    table = again.out[: again.out.index("Written:")]
    assert table in ran.out  # the same again, under new names


def test_a_quiet_demonstration_shows_the_result_alone(shown):
    _, ran, quiet = shown
    assert "A small random forest" in ran.out and "Try next" not in quiet.out
    assert "A small random forest" not in quiet.out and quiet.out.startswith("metric") and quiet.err == ""


def test_the_session_and_the_report_are_written(shown):
    folder, _, _ = shown
    with altmas.Session.open(folder / "demo.altmas") as session:
        assert len(session.history.labels) == demo.BUDGET and session.should_stop()
        assert isinstance(session.pool.items[0], np.ndarray)
    assert (folder / "demo-report.html").stat().st_size > 10_000
    status = json.loads(run("status", folder / "demo.altmas", "--json").out)
    assert status["labels"] == demo.BUDGET


def test_no_file_is_replaced(tmp_path):
    (tmp_path / "demo.altmas").write_text("my notes")
    session, report = demo.free_names(tmp_path)
    assert (session.name, report.name) == ("demo-2.altmas", "demo-2-report.html")


@pytest.mark.slow
def test_the_whole_demonstration_with_a_cold_cache_takes_less_than_90_seconds(tmp_path):
    started = time.monotonic()
    env = environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
    ran = subprocess.run(
        [sys.executable, "-m", "altmas", "demo"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert ran.returncode == 0 and time.monotonic() - started < 90
    for name in demo.compared_methods():
        assert name in ran.stdout and name in ran.stderr  # in the table and, live, in the progress
