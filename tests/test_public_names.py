"""Names that users rely on."""

import re
from pathlib import Path

import pytest

import altmas

ROOT = Path(__file__).parent.parent


PUBLIC = (
    "AltmasError Answer Decision Estimate Estimates Forecast Metric Model Plan Pool Query Range Session Simulation "
    "Snapshot Status Transformations Tuning __version__ errors methods predict_performance simulate tune worst_case"
).split()
METHODS = (
    "ActiveInference AdaStrat AltMas Ase Assured Bald BatchBald DEFAULT_METHOD Druck GROUPS Katariya Lure METHODS "
    "Method Oasis Paula Ppi Sawade Spe Stratified Task Tradition Traits Trust Xwed check check_installed grouped "
    "inclusion_of lacking method_named options_of unsupported"
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


def test_the_version_is_the_one_in_pyproject_and_has_a_place_in_the_changelog():
    stated = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)
    assert stated is not None and stated[1] == altmas.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in changelog or f"## [{altmas.__version__}]" in changelog


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
