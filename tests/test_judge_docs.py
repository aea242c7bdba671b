"""The page on judges and the one on several models run as they are written."""

import re

import pytest

from docs_world import blocks, run_block, said_by


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judges")
    return folder, [(text, run_block(kind, text, folder)) for kind, text in blocks("judges.md")]


def test_the_page_on_judges_runs_and_says_what_comes_out(judges):
    folder, ran = judges
    assert all((folder / f"{name}.html").stat().st_size > 10_000 for name in ("answers", "grades"))
    first = said_by(judges, "if people had read all 1,200: {truth")
    low, high = map(float, re.search(r"\[(\S+), (\S+)\]", first).groups())
    assert low < float(first.split()[-1]) < high and high - low < 0.15
    assert "strict: kappa" in said_by(judges, "altmas status answers")
    assert "exit code" not in said_by(judges, "prompt=A >= 0")  # shown: B is better
    assert "60 points, 2 classes: 'pass', 'fail'" in said_by(judges, "altmas init sums")
    assert "'input', 'output', 'target', 'model_graded_qa'" in said_by(judges, "read_evaluation")


def test_the_page_on_judges_says_how_far_each_is_off(judges):
    strict, kind, *differences = said_by(judges, "session.alone()").splitlines()
    off = [float(re.search(r"off by (\S+),", line).group(1)) for line in (strict, kind)]
    assert strict.startswith("share[pass] by strict alone: 0.4") and -0.2 < off[0] < -0.05
    assert kind.startswith("share[pass] by kind alone: 0.7") and 0.05 < off[1] < 0.2
    assert all(line.endswith("outside the interval") for line in (strict, kind)) and len(differences) == 2


def test_the_page_on_several_models_runs_as_written(tmp_path):
    ran = [run_block(kind, text, tmp_path) for kind, text in blocks("models.md")]
    assert "v1: accuracy" in ran[0] and "v3: accuracy" in ran[0] and "share[pass]" in ran[1]
