"""The site: every page is in it, links and anchors lead somewhere, examples and notebooks run, and it builds."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

import altmas

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
GENERATED = {"api.md", "changelog.md"}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def loaded(name: str):
    """A module of .ci, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = loaded("site_pages")
notebooks = loaded("notebooks")


# ---------------------------------------------------------------- links, without mkdocs


def slug(heading: str) -> str:
    """The anchor of a heading, as Markdown's table of contents and GitHub both make it for what we write."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", words).strip())


@cache
def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def faults(page: Path) -> list[str]:
    """Links of a page that lead nowhere: no such file, or no such heading in it."""
    found = []
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        file, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        other = page.parent / file if file else page
        if not other.exists() and file not in GENERATED:
            found.append(f"{target}: no such file")
        elif anchor and other.suffix == ".md" and anchor not in anchors(other):
            found.append(f"{target}: no such heading")
    return found


@pytest.mark.parametrize("page", [DOCS / name for name in PAGES] + [ROOT / "README.md"], ids=lambda page: page.name)
def test_links_and_anchors_lead_somewhere(page):
    assert faults(page) == []


def test_a_wrong_link_and_a_wrong_anchor_would_be_found(tmp_path):
    (tmp_path / "a.md").write_text("# One `two`\n\n[x](b.md) [y](#one-two) [z](#three) [w](https://x.org/#q)\n")
    assert faults(tmp_path / "a.md") == ["b.md: no such file", "#three: no such heading"]


def test_every_page_is_in_the_navigation_once():
    listed = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    of_notebooks = [f"notebooks/{path.stem}.md" for path in pages.notebooks()]
    assert sorted(listed) == sorted([*PAGES, *GENERATED, *of_notebooks])


def test_the_start_page_names_every_how_to_and_concept():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    for part in ("How-to", "Concepts"):
        listed = re.search(rf"  - {part}:\n((?:      - .+\n)+)", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))[1]
        assert [page for page in re.findall(r"[\w-]+\.md", listed) if f"({page})" not in text] == [], part


def test_nothing_is_loaded_from_elsewhere():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in settings and "analytics" not in settings and "://" not in settings


# ---------------------------------------------------------------- the reference


def test_every_public_name_has_an_example_and_a_docstring():
    assert [name for name in pages.public_names() if name not in pages.cells()] == []
    assert [name for name in pages.cells() if name not in pages.public_names()] == []


@pytest.mark.slow
def test_the_examples_run_as_one_program(tmp_path):
    command = [sys.executable, "-W", "error", str(DOCS / "examples.py")]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "cats.html").exists() and altmas.__version__ in ran.stdout


def test_the_reference_says_how_each_is_called():
    text = pages.reference()
    assert "### altmas.Session.ask" in text and "n: int = 1" in text
    assert "metrics: MetricLike | Iterable[MetricLike] = DEFAULT_METRICS," in text
    assert text.index("## altmas.Pool\n") < text.index("### altmas.Pool.from_table") < text.index("## altmas.Session\n")
    assert all(f"altmas.{name}\n" in text for name in pages.public_names())


# ---------------------------------------------------------------- notebooks


@pytest.mark.parametrize("path", pages.notebooks(), ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_prints(path):
    stored = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for before, after in zip(stored, notebooks.run(path)["cells"], strict=True):
        assert bool(before.get("outputs")) == bool(after.get("outputs")), "".join(before["source"])
    page = pages.notebook_page(path)
    assert page.startswith("# ") and "```python" in page and "```text" in page


def test_every_notebook_is_in_the_gallery():
    gallery = (DOCS / "notebooks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(\w+\.ipynb)`", gallery)) == {path.name for path in pages.notebooks()}


# ---------------------------------------------------------------- the built site


class References(HTMLParser):
    """Addresses that a page loads by itself: scripts, style sheets, images."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "img", "iframe") and values.get("src"):
            self.loaded.append(str(values["src"]))
        if tag == "link" and values.get("rel") in ("stylesheet", "preconnect", "icon", "preload"):
            self.loaded.append(str(values["href"]))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the site needs the dependency group docs (make site)")
    pytest.importorskip("material", reason="the site needs the dependency group docs (make site)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    ran = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONWARNINGS": ""}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(site):
    built = sorted(site.rglob("*.html"))
    assert {f"{Path(name).stem}.html" for name in [*PAGES, *GENERATED]} <= {path.name for path in built}
    for path in built:
        parser = References()
        parser.feed(path.read_text(encoding="utf-8"))
        assert [one for one in parser.loaded if "://" in one or one.startswith("//")] == [], path.name
        for one in parser.loaded:
            local = one.split("?")[0].split("#")[0]
            root = site if local.startswith("/") else path.parent
            assert (root / local.lstrip("/")).exists(), f"{path.name} loads {one}"


def test_the_site_has_the_reference_the_notebooks_and_the_figures(site):
    assert "altmas.Session.create" in (site / "api.html").read_text(encoding="utf-8")
    assert "inside the interval" in (site / "notebooks" / "digits.html").read_text(encoding="utf-8")
    assert (site / "benchmarks" / "results" / "leaderboard.png").stat().st_size > 1000
