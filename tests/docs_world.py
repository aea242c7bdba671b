"""What the tests of the documentation share: how the blocks of a page are run as they are written."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import forks
from cli_world import environment

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)\s]*)?\)")
PAGE_COMMAND = re.compile(r"^altmas label \S+$")
REPEATS = re.compile(r"(?<=--repeats )\d+|(?<=\brepeats=)\d+")


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of the blocks that are meant to be run."""
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    return [(kind, text) for kind, text in found if kind in ("bash", "python")]


def run_block(kind: str, text: str, folder: Path) -> str:
    """What a block prints; it must end well. Simulations are repeated twice, in one process, whatever the page says."""
    text = REPEATS.sub("2", text)
    if kind == "bash" and PAGE_COMMAND.match(text.strip()):
        return serve(text.strip(), folder)
    command = ["bash", "-euo", "pipefail", "-c", text] if kind == "bash" else ["python", "-W", "error", "-c", text]
    ran = subprocess.run(command, cwd=folder, env=shell(), capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, f"{text}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def shell() -> dict[str, str]:
    """An environment in which `altmas` and `python` are these, start at once, and use one process and no browser."""
    path = os.pathsep.join([str(forks.folder()), str(Path(sys.executable).parent), os.environ["PATH"]])
    return environment(PATH=path, BROWSER="true", COLUMNS="120", **{forks.ONE_PROCESS: "1"})


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


def said_by(ran: tuple[Path, list[tuple[str, str]]], beginning: str) -> str:
    """What the first block with this text printed."""
    return next(out for text, out in ran[1] if beginning in text)
