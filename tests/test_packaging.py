"""What stands around the code agrees with it: citation, classifiers, workflows, hooks, the notes of a release."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = WHOLE["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def loaded(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_citation_has_the_version_title_and_licence_of_the_package():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['version']}\n" in text and f"\nlicense: {PROJECT['license']}\n" in text
    assert "".join(PROJECT["description"].lower().split()) in "".join(text.lower().split())


def test_the_matrix_of_the_workflow_the_classifiers_and_the_lowest_python_agree():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    matrix = re.findall(r'"([\d.]+)"', re.search(r"python: \[(.+)\]", workflow)[1])
    stated = [one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert matrix == stated and PROJECT["requires-python"] == f">={matrix[0]}"
    assert "make minimum" in workflow and "make site" in workflow and "make engines" in workflow


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_what_exists(path):
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"^([\w]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for called in re.findall(r"run: make ([\w ]+)", text):
        assert set(called.replace(" PYTHON", "").split()) <= set(targets)
    scripts = re.findall(r"python (\.ci/\w+\.py)", text)
    assert all((ROOT / script).exists() for script in scripts)
    assert "\t" not in text and "permissions:" in text


def test_hooks_before_a_commit_run_what_the_tests_have():
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert all(tool in text for tool in ("ruff check", "ruff format", "mypy", "tests/test_site.py"))


def test_engines_and_docs_are_no_part_of_an_installation():
    groups = WHOLE["dependency-groups"]
    heavy = {re.match(r"[\w-]+", one)[0] for one in [*groups["engines"], *groups["docs"]]}
    installed = {re.match(r"[\w-]+", one)[0] for one in PROJECT["dependencies"]}
    installed |= {re.match(r"[\w-]+", one)[0] for extra in PROJECT["optional-dependencies"].values() for one in extra}
    assert heavy & installed == set() and {"dask", "ray", "pyspark", "duckdb", "mkdocs-material"} <= heavy


CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-01-02\n\n### Added\n- x\n\n## [0.1.0] - 2026-01-01\n- y\n"
)


def test_the_notes_of_a_release_are_its_part_of_the_changelog():
    assert loaded("release").notes("v0.2.0", "0.2.0", CHANGELOG) == "### Added\n- x\n"


@pytest.mark.parametrize("tag, version", [("v0.3.0", "0.2.0"), ("0.2.0", "0.2.0"), ("v0.3.0", "0.3.0")])
def test_a_tag_without_its_version_or_its_heading_is_refused(tag, version):
    with pytest.raises(ValueError, match="expected the tag|no heading"):
        loaded("release").notes(tag, version, CHANGELOG)


def test_the_wheel_is_tried_with_the_python_of_the_readme():
    assert "Session.create" in loaded("wheel").readme_python()
