"""The speed benchmark runs, and a small pool keeps the limits that do not depend on the machine."""

import pytest

from benchmarks.speed import LIMITS, measure_elsewhere, report


@pytest.mark.slow
def test_a_small_pool_keeps_the_ratios():
    lines = report({3000: measure_elsewhere(3000)})
    values = {what: value for what, _, value, _ in lines}
    for what in ("posterior pass / bare products", "scoring / posterior pass", "peak memory in GB"):
        assert 0 < values[what] <= LIMITS[what]
