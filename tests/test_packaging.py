"""What stands around the code agrees with it: citation, classifiers, workflows, hooks, the notes of a release."""

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = WHOLE["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def loaded(name: str, folder: Path = ROOT / ".ci"):
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
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
    """Jobs need jobs that exist, steps run one thing each: a pinned action, targets of the Makefile, scripts of .ci."""
    yaml = pytest.importorskip("yaml", reason="the workflows are YAML")
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    targets = set(re.findall(r"^([\w]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert workflow["permissions"] == {"contents": "read"} and workflow[True]  # YAML reads the key "on" as true
    for job in workflow["jobs"].values():
        assert job["runs-on"] and set([job["needs"]] if "needs" in job else []) <= set(workflow["jobs"])
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step) and "@" in step.get("uses", "@")
            words = step.get("run", "").split()
            assert words[:1] != ["make"] or {word for word in words[1:] if "=" not in word} <= targets
            assert all((ROOT / script).exists() for script in re.findall(r"\.ci/\w+\.py", step.get("run", "")))
    names = set(re.findall(r"\$\{\{ *(\w+)[^}]*\}\}", text))
    assert names <= {"github", "matrix"} and "\t" not in text


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


# ---------------------------------------------------------------- the page on a package index

ADDRESS = "https://example.org/people/altmas"
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def hook():
    """What hatchling calls."""
    pytest.importorskip("hatchling")
    return loaded("hatch_build", ROOT)


def shown(hook, monkeypatch, address: str | None) -> dict:
    """The dynamic fields, with and without the address of the repository."""
    if address is None:
        monkeypatch.delenv(hook.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(hook.VARIABLE, address)
    metadata = {"version": "1.2.3"}
    hook.PackagePage(str(ROOT), {}).update(metadata)
    return metadata


@pytest.mark.parametrize("address", [None, "", "  "])
def test_without_an_address_the_package_has_the_readme_and_no_urls(hook, monkeypatch, address):
    found = shown(hook, monkeypatch, address)
    assert found["urls"] == {} and found["readme"] == {"content-type": "text/markdown", "text": README}
    assert {"readme", "urls"} == set(PROJECT["dynamic"]) == set(found) - {"version"}


@pytest.mark.parametrize("address", [ADDRESS, f"{ADDRESS}/", f"{ADDRESS}.git"])
def test_with_an_address_images_and_links_lead_to_files_of_the_tag(hook, monkeypatch, address):
    found = shown(hook, monkeypatch, address)
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", found["readme"]["text"])
    assert len(links) == len(re.findall(r"\]\([^)]+\)", README)) > 30 and "<this repository>" not in str(found)
    pages = [("", url) for url in found["urls"].values() if "/blob/" in url]
    for image, url in [*links, *pages]:
        inside = f"{ADDRESS}/{'raw' if image else 'blob'}/v1.2.3/"
        assert url.startswith(inside) and (ROOT / url.removeprefix(inside)).is_file(), url
    assert [*found["urls"]] == ["Homepage", "Documentation", "Repository", "Issues", "Changelog"]


@pytest.mark.parametrize(
    "given", ["example.org/altmas", "git@example.org:people/altmas", "https://example.org", "${{ x }}"]
)
def test_an_address_that_is_none_is_refused(hook, monkeypatch, given):
    with pytest.raises(
        ValueError, match="ALTMAS_REPOSITORY_URL is .*; expected the address of the repository: https://"
    ):
        shown(hook, monkeypatch, given)


def test_links_that_are_absolute_or_within_the_page_stay(hook):
    kept = "[a](https://b.org/c) [d](#e) [f](mailto:g@h.org)"
    assert hook.with_absolute_links(kept, ADDRESS, "v1") == kept


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_source_archive_and_wheel_have_that_metadata(hook, tmp_path, address):
    """The wheel is made of the source archive, as a release makes it, where nobody names the address again."""
    build(ROOT, tmp_path, "sdist", hook.VARIABLE, address)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        assert not [name for name in packed.getnames() if name.endswith("/.git")]
        packed.extractall(tmp_path, filter="data")
    source = tmp_path / archive.name.removesuffix(".tar.gz")
    build(source, tmp_path, "wheel", hook.VARIABLE, "")
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        (path,) = [name for name in packed.namelist() if name.endswith("/METADATA")]
        metadata = message_from_bytes(packed.read(path))
    assert metadata.get_all("Project-URL", []) == message_from_bytes((source / "PKG-INFO").read_bytes()).get_all(
        "Project-URL", []
    )
    assert len(metadata.get_all("Project-URL", [])) == (5 if address else 0) and metadata["Dynamic"] is None
    text = metadata.get_payload(decode=True).decode()
    assert metadata["Description-Content-Type"] == "text/markdown" and (f"({ADDRESS}/raw/v" in text) == bool(address)
    assert address or text == README


def build(source: Path, folder: Path, target: str, variable: str, address: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    made = subprocess.run(command, cwd=source, env=os.environ | {variable: address}, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


def test_a_release_names_the_address_of_its_repository():
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "ALTMAS_REPOSITORY_URL: ${{ github.server_url }}/${{ github.repository }}" in workflow
