"""What all tests share. Those marked `paper` are skipped where the extra is not installed, and say so."""

import signal
import threading
from pathlib import Path

import pytest

from altmas.extras import missing
from session_world import create, truth


def pytest_configure():
    """Commands that tests interrupt inherit how this process takes an interrupt; a background job ignores it."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    lacking = missing("paper")
    if not lacking:
        return
    skip = pytest.mark.skip(reason=f"needs {', '.join(lacking)}: pip install 'altmas[paper]'")
    for item in items:
        if item.get_closest_marker("paper"):
            item.add_marker(skip)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a session file can be made."""
    return tmp_path / "one.altmas"


@pytest.fixture
def told(path: Path) -> Path:
    """A session file with five labels."""
    with create(path) as session:
        for query in session.ask(5):
            session.tell(query.id, truth(query))
    return path
