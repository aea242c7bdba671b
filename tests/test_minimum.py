"""The lowest versions that are promised can be read by pip and are those of pyproject.toml."""

import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
constraints = runpy.run_path(str(ROOT / ".ci" / "minimum.py"))["constraints"]


def test_every_dependency_has_a_lower_bound_that_becomes_a_constraint():
    written = (ROOT / "pyproject.toml").read_text("utf-8")
    project = tomllib.loads(written)["project"]
    found = dict(line.split("==") for line in constraints(written))
    listed = [*project["dependencies"], *project["optional-dependencies"]["paper"]]
    assert all(found[one.split(">=")[0]] == one.split(">=")[1] for one in listed)
    assert {"pytest", "numpy", "bayesian-optimization"} <= set(found)


@pytest.mark.parametrize("dependency", ["numpy", "numpy<3", "numpy>=2,<3"])
def test_a_dependency_without_one_lower_bound_is_refused(dependency):
    project = f'[project]\ndependencies = ["{dependency}"]\n[project.optional-dependencies]\n'
    with pytest.raises(ValueError, match="expected 'name>=version'"):
        constraints(project + "[dependency-groups]\ndev = []\n")
