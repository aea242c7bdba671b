"""What holds for all tests: those marked `paper` are skipped where the extra is not installed, and say so."""

import pytest

from altmas.extras import missing


def pytest_collection_modifyitems(items):
    lacking = missing("paper")
    if not lacking:
        return
    skip = pytest.mark.skip(reason=f"needs {', '.join(lacking)}: pip install 'altmas[paper]'")
    for item in items:
        if item.get_closest_marker("paper"):
            item.add_marker(skip)
