"""Names that users rely on."""

import re
from pathlib import Path

import pytest

import altmas

ROOT = Path(__file__).parent.parent


PUBLIC = (
    "AltmasError Answer Decision Estimate Estimates Forecast Metric Model Plan Pool Query Range Reduction Session "
    "Simulation Snapshot Status Transformations Tuning __version__ errors methods predict_performance read_evaluation "
    "simulate tune worst_case"
).split()
METHODS = (
    "ActiveInference AdaStrat AltMas Ase Assured Bald Batch BatchBald DEFAULT_METHOD Druck GROUPS History Katariya "
    "Lure METHODS Method Oasis Paula Ppi Sawade Spe Stratified Task Tradition Traits Trust Xwed check "
    "check_installed grouped inclusion_of lacking method_named options_of unsupported"
).split()
"""What users may rely on; a name leaves these lists only with a word in the changelog."""


def test_the_public_names_are_these_and_no_others():
    assert sorted(altmas.__all__) == sorted(PUBLIC)
    assert sorted(altmas.methods.__all__) == sorted(METHODS)


def test_public_names_exist_and_are_sorted():
    assert list(altmas.__all__) == sorted(altmas.__all__)
    for name in altmas.__all__:
        assert getattr(altmas, name) is not None
    for name in altmas.methods.__all__:
        assert getattr(altmas.methods, name) is not None


def test_every_error_is_an_altmas_error_and_drawn_in_the_tree():
    tree = altmas.errors.__doc__ or ""
    for name, kind in vars(altmas.errors).items():
        if isinstance(kind, type):
            assert issubclass(kind, altmas.AltmasError)
            assert name in tree


def test_the_version_is_the_one_in_pyproject():
    stated = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)
    assert stated is not None and stated[1] == altmas.__version__


SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


def changelog_faults(text: str, version: str) -> list[str]:
    """What keeps a changelog from being one in the format of Keep a Changelog for this version."""
    parts = re.split(r"^## ", text, flags=re.M)[1:]
    headings = [re.match(r"\[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", part.splitlines()[0]) for part in parts]
    if not headings or not all(headings):
        return ["a heading is neither [Unreleased] nor [version] - date"]
    names = [heading[1] for heading in headings if heading]
    released = [tuple(map(int, name.split("."))) for name in names if name != "Unreleased"]
    faults = [] if names[0] == "Unreleased" else ["it does not begin with [Unreleased]"]
    if released != sorted(set(released), reverse=True):
        faults.append("versions are not in descending order")
    if released and released[0] > tuple(map(int, version.split("."))):
        faults.append("a version is newer than the package")
    faults += [f"{name[1]} has no date" for name in headings if name and name[1] != "Unreleased" and not name[2]]
    for part in parts:
        for section in re.split(r"^### ", part, flags=re.M)[1:]:
            title, _, entries = section.partition("\n")
            if title not in SECTIONS or not re.match(r"- \S", entries):
                faults.append(f"section {title!r} is unknown or empty")
    return faults


def test_the_changelog_is_one():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert changelog_faults(text, altmas.__version__) == []
    assert "### Added" in text


@pytest.mark.parametrize(
    "text, fault",
    [
        ("# Changelog\n", "a heading"),
        ("## Unreleased\n### Added\n- x\n", "a heading"),
        ("## [0.1.0] - 2026-01-01\n### Added\n- x\n", "does not begin with"),
        ("## [Unreleased]\n## [0.1.0]\n", "has no date"),
        ("## [Unreleased]\n## [0.2.0] - 2026-01-01\n", "newer than the package"),
        ("## [Unreleased]\n## [0.0.1] - 2026-01-01\n## [0.1.0] - 2026-01-02\n", "descending"),
        ("## [Unreleased]\n### News\n- x\n", "'News' is unknown"),
        ("## [Unreleased]\n### Added\n\n### Fixed\n- x\n", "'Added' is unknown or empty"),
    ],
)
def test_what_is_no_changelog(text, fault):
    assert any(fault in one for one in changelog_faults(text, "0.1.0"))


def test_an_error_reads_as_its_sentence():
    with pytest.raises(KeyError) as caught:
        altmas.Pool(None, [0, 1]).index(7)
    assert str(caught.value).startswith("id 7 is not in this pool of 2 points")


@pytest.mark.parametrize(
    "page", sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]), ids=lambda page: page.name
)
def test_examples_import_nothing_from_deep_inside(page):
    """What examples teach must not move: altmas, or a module that docs are about as a whole."""
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for module in re.findall(r"^\s*(?:from|import) (altmas[\w.]*)", code, re.MULTILINE):
            assert module in ("altmas", "altmas.methods", "altmas.confidence", "altmas.guarantee"), module
