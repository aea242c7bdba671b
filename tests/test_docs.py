"""The documentation: its blocks run as they are written, its links lead somewhere."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from altmas.methods import METHODS
from cli_world import environment

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)\s]*)?\)")
PAGE_COMMAND = re.compile(r"^altmas label \S+$")


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of the blocks that are meant to be run."""
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    return [(kind, text) for kind, text in found if kind in ("bash", "python")]


def run_block(kind: str, text: str, folder: Path) -> str:
    """What a block prints; it must end well."""
    if kind == "bash" and PAGE_COMMAND.match(text.strip()):
        return serve(text.strip(), folder)
    command = (
        ["bash", "-euo", "pipefail", "-c", text] if kind == "bash" else [sys.executable, "-W", "error", "-c", text]
    )
    ran = subprocess.run(command, cwd=folder, env=shell(), capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, f"{text}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def shell() -> dict[str, str]:
    """An environment in which `altmas` is this one, and no browser opens."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return environment(PATH=path, BROWSER="true", COLUMNS="120")


def serve(command: str, folder: Path) -> str:
    """Start the page, wait until it says where it is, and end it as a person would."""
    with subprocess.Popen(command.split(), cwd=folder, env=shell(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.stdout.readline(), process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert "http://127.0.0.1" in first and process.returncode in (0, 130)
    return first + rest


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tutorial")
    return folder, [(text, run_block(kind, text, folder)) for kind, text in blocks("tutorial.md")]


def said_by(tutorial, beginning: str) -> str:
    return next(out for text, out in tutorial[1] if beginning in text)


def test_the_tutorial_runs_as_written(tutorial):
    folder, ran = tutorial
    assert len(ran) > 15
    for name in ("tickets", "tumours", "digits"):
        assert (folder / f"{name}.altmas").exists() and (folder / f"{name}.html").stat().st_size > 10_000


def test_the_tutorial_says_what_comes_out(tutorial):
    assert "± tradition" in said_by(tutorial, "altmas plan")
    assert "3 classes (account, billing, technical)" in said_by(tutorial, "altmas init tickets")
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
    assert "60 points, 2 classes (pass, fail)" in said_by(judges, "altmas init sums")
    assert "'input', 'output', 'target', 'model_graded_qa'" in said_by(judges, "read_evaluation")


def test_the_page_on_judges_says_how_far_each_is_off(judges):
    strict, kind, *differences = said_by(judges, "session.alone()").splitlines()
    assert strict.startswith("share[pass] by strict alone: 0.4") and "off by -0.1" in strict
    assert kind.startswith("share[pass] by kind alone: 0.7") and "off by +0.1" in kind
    assert all(line.endswith("outside the interval") for line in (strict, kind)) and len(differences) == 2


def test_every_method_stands_in_the_table_with_what_it_needs():
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]+) \| (yes|no) \| (yes|no) \|", (DOCS / "choosing.md").read_text(), re.M)
    stated = {name: (needs, interval, biased) for name, needs, interval, biased in rows}
    for name, make in METHODS.items():
        traits = make().traits
        wanted = ", ".join([*traits.requires, *([f"`altmas[{traits.extra}]`"] if traits.extra else [])]) or "–"
        answers = ["yes" if yes else "no" for yes in (traits.interval != "none", traits.biased)]
        assert stated.pop(name) == (wanted, *answers)
    assert not stated


def test_the_page_on_several_models_runs_as_written(tmp_path):
    ran = [run_block(kind, text, tmp_path) for kind, text in blocks("models.md")]
    assert "v1: accuracy" in ran[0] and "v3: accuracy" in ran[0] and "share[pass]" in ran[1]


def test_the_pool_and_the_method_of_the_page_on_adding_one_work(tmp_path):
    *_, said = [run_block(kind, text, tmp_path) for kind, text in blocks("adding-to-the-leaderboard.md")]
    assert (tmp_path / "tickets.npz").exists() and "('in-order', " in said
