"""What all tests share. Those marked `paper` are skipped where the extra is not installed, and say so."""

import gc
import signal
import threading
from pathlib import Path

import pytest

from altmas.extras import missing
from session_world import create, truth


def pytest_configure():
    """Commands that tests interrupt inherit how this process takes an interrupt, which a background job ignores."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(10_000, 20, 20)  # beside thousands of collected tests every look for garbage is a long one


LONGEST = (
    "test_label_page test_docs test_browser test_surrogates test_owner_pages test_cli test_assured test_contract "
    "test_session_crash test_outputs test_future test_judge_docs test_report_browser test_web_connections "
    "test_first_phase test_tuning test_methods_paper test_growing test_session_crafted test_row_weights "
    "test_methods_related test_guaranteed test_monitoring test_demo test_belief test_predict_performance test_space "
    "test_ranking test_report test_extras test_web test_guarantee test_hostile_inputs test_compare test_every_metric "
    "test_site"
).split()
"""Files of tests that take longest. They come first: one that began last would leave the other cores idle."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
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
