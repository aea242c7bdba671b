"""Methods are grouped where people choose one, with what the leaderboard says of each."""

import re
from pathlib import Path

import pytest

import altmas
from altmas.methods import GROUPS, METHODS, grouped, method_named
from altmas.methods.leaderboard import FIGURES
from benchmarks import method_figures
from cli_world import environment, start

ROOT = Path(__file__).parent.parent


def test_every_method_is_in_one_group_and_the_default_is_the_recommended_one():
    assert sorted(name for group in GROUPS.values() for name in group) == sorted(METHODS)
    assert list(GROUPS) == ["recommended", "simple", "published"]
    assert list(GROUPS["recommended"]) == [altmas.methods.DEFAULT_METHOD]


def test_the_figures_are_those_of_the_leaderboards_table():
    assert method_figures.read() == FIGURES
    assert method_figures.MODULE.read_text(encoding="utf-8") == method_figures.module(FIGURES)


def test_the_figures_are_those_that_the_leaderboards_page_shows():
    """Mean coverage, by another way: as the page has it."""
    page = (ROOT / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    for name, (coverage, _) in FIGURES.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        stated = row.split("|")[-3].split(",")[0].strip()
        assert stated == ("no interval" if coverage is None else f"{coverage:.3f}")


def test_the_page_about_choosing_has_the_same_tables():
    text = method_figures.PAGE.read_text(encoding="utf-8")
    assert method_figures.page(text, FIGURES) == text
    assert FIGURES["spe"][0] < 0.9 and f"**{FIGURES['spe'][0]:.3f}**" in text  # nobody picks it by accident


def test_figures_are_means_over_the_places_at_400_labels():
    def row(**changed):
        blank = {"method": "ppi", "status": "run", "labels": "400", "coverage": "nan", "label_value": "nan"}
        return blank | {key: str(value) for key, value in changed.items()}

    rows = [
        row(coverage=0.9, label_value=1.0),
        row(coverage=1.0, label_value=4.0),
        row(coverage=0.0, label_value=9.0, labels=200),
        row(coverage=0.0, status="not run", labels="", label_value=""),
        row(method="bald", label_value=0.25),
        row(method="lure", coverage=0.5, label_value=1e6),
    ]
    assert method_figures.figures(rows) == {"bald": (None, 0.25), "lure": (0.5, 100.0), "ppi": (0.95, 2.0)}


def test_a_list_of_methods_is_grouped_with_its_figures():
    said = grouped(["spe", "tradition", "altmas", "assured"])
    coverage, value = FIGURES["spe"]
    assert re.fullmatch(
        r"recommended: assured \(0\.\d+, [\d.]+\); simple: tradition \(0\.\d+, 1\); "
        rf"published: spe \(a belief, {coverage:.3f}, {value:.2g}\), altmas \(no interval, [\d.]+, altmas\[paper\]\); "
        r"in parentheses: mean coverage and label value of the leaderboard at 400 labels",
        said,
    )


def test_error_messages_that_list_methods_group_them():
    with pytest.raises(
        altmas.errors.MethodError, match=r"did you mean 'ppi'\?.*recommended: assured .*published: .*spe"
    ):
        method_named("ppii")
    bare = altmas.Pool(None, [0, 1, 1])
    with pytest.raises(altmas.errors.MethodError, match=r"without: recommended: assured .*; simple: tradition "):
        altmas.Session.create(None, bare, method="spe")


@pytest.mark.parametrize("command", ["init", "simulate"])
def test_the_help_of_a_command_lists_them(command):
    ran = start(command, "--help", env=environment(COLUMNS="200", NO_COLOR="1", TERM="dumb"))
    text = " ".join(ran.stdout.split())
    for group, members in GROUPS.items():
        assert f"{group}: {next(iter(members))} (" in text
    assert f"spe (a belief, {FIGURES['spe'][0]:.3f}, {FIGURES['spe'][1]:.2g})" in text
    assert f"altmas (no interval, {FIGURES['altmas'][1]:.2g}, altmas[paper])" in text
