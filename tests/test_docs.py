"""The documentation: its blocks run as they are written, its links lead somewhere."""

import re
from typing import Any

import numpy as np
import pytest

from altmas.methods import METHODS
from docs_world import BLOCK, DOCS, LINK, ROOT, blocks, run_block, said_by


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tutorial")
    return folder, [(text, run_block(kind, text, folder)) for kind, text in blocks("tutorial.md")]


def test_the_tutorial_runs_as_written(tutorial):
    folder, ran = tutorial
    assert len(ran) > 15
    for name in ("tickets", "tumours", "digits"):
        assert (folder / f"{name}.altmas").exists() and (folder / f"{name}.html").stat().st_size > 10_000


def test_the_tutorial_says_what_comes_out(tutorial):
    assert "± tradition" in said_by(tutorial, "altmas plan")
    assert "3 classes: 'account', 'billing', 'technical'" in said_by(tutorial, "altmas init tickets")
    assert "the budget of 120 labels is spent" in said_by(tutorial, 'Session.open("tickets')
    assert "accuracy@product=web" in said_by(tutorial, "altmas status")
    decided = said_by(tutorial, "altmas check")
    assert decided.startswith("shown: accuracy") and "refuted: accuracy" in decided and "exit code 1" in decided
    assert "sensitivity[malignant]" in said_by(tutorial, "altmas import")
    assert "better" in said_by(tutorial, "altmas compare")
    assert "was taken back" in said_by(tutorial, "altmas undo")


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_links_lead_somewhere(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for target, _ in LINK.findall(text):
        if "://" not in target:
            assert (DOCS / target).exists(), f"{page} links to {target}"


def test_the_readme_runs_and_its_links_lead_somewhere(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for kind, block in BLOCK.findall(text):
        if kind == "python":
            assert "recall[cat]" in run_block(kind, block, tmp_path)
    for target, _ in LINK.findall(text):
        assert "://" in target or (ROOT / target).exists(), f"README.md links to {target}"


OWN_BLOCKS = (
    *("index.md", "metrics.md", "engines.md"),
    *("when-to-stop.md", "what-the-interval-means.md", "how-do-i-know.md", "faq.md", "guarantee.md"),
    pytest.param("choosing.md", marks=pytest.mark.paper),
)


@pytest.mark.parametrize("page", OWN_BLOCKS)
def test_the_blocks_of_a_page_run_as_written(page, tutorial):
    """They go on where the tutorial ends: its files are there."""
    for kind, text in blocks(page):
        run_block(kind, text, tutorial[0])


def test_every_method_stands_in_the_table_with_what_it_needs():
    rows = re.findall(
        r"^\| `([\w-]+)` \| ([^|]+) \| (yes|no|a belief) \| (yes|no) \|", (DOCS / "choosing.md").read_text(), re.M
    )
    stated = {name: (needs, interval, biased) for name, needs, interval, biased in rows}
    for name, make in METHODS.items():
        traits = make().traits
        wanted = ", ".join([*traits.requires, *([f"`altmas[{traits.extra}]`"] if traits.extra else [])]) or "–"
        interval = {"none": "no", "credible": "a belief"}.get(traits.interval, "yes")
        assert stated.pop(name) == (wanted, interval, "yes" if traits.biased else "no")
    assert not stated


def test_the_pool_and_the_method_of_the_page_on_adding_one_work(tmp_path):
    parts = blocks("adding-to-the-leaderboard.md")
    *_, said, _ = [run_block(kind, text, tmp_path) for kind, text in parts]
    assert (tmp_path / "tickets.npz").exists() and "('in-order', " in said
    functions: dict[str, Any] = {}
    exec(parts[-1][1], functions)  # those of the tracks of several models and of judges
    rng = np.random.default_rng(0)
    grades = rng.integers(1, 6, 300)
    answers, off = np.stack([grades, grades % 5 + 1], 1), np.stack([grades + 1.0], 1)
    assert functions["most_right"](answers, grades.__getitem__, 20, rng) == 0
    assert functions["corrected"](off, grades.__getitem__, 20, rng) == pytest.approx([grades.mean()] * 3)
