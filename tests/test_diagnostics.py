"""What a sceptic is told, and when."""

from types import SimpleNamespace

import numpy as np
import pytest

from altmas.history import History
from altmas.methods import Task
from altmas.methods.assured import Assured
from altmas.metrics import metric_set
from altmas.simulate import label_until
from assured_world import constant_belief, world, wrong_belief


def diagnosed(belief, labels: int = 120, skipped: int = 0):
    pool, truth = world()
    task, method = Task(pool, metric_set(["accuracy"], pool)), Assured(belief=belief)
    history = label_until(method, task, History(len(pool)), labels, 20, truth.__getitem__)
    rows = list(history.labels)[:skipped]
    kept = {row: code for row, code in history.labels.items() if row not in rows}
    history = History(len(pool), history.batches, kept, {row: "blurred" for row in rows})
    estimates = method.estimate(task, history)
    return SimpleNamespace(**estimates.info["diagnostics"]), estimates


def test_a_calibrated_belief_raises_no_alarm():
    found, _ = diagnosed(constant_belief)
    assert found.warnings == () and abs(found.calibration_z) < 3
    assert found.effective_sample == pytest.approx(120, rel=0.3) and found.largest_share < 0.1
    assert abs(found.random_share - found.difference) < 3 * found.random_share_error
    assert sum(one["labels"] for one in found.calibration) == 120 and found.skipped_share == 0


def test_a_belief_that_is_always_wrong_is_named():
    found, estimates = diagnosed(wrong_belief)
    assert found.calibration_z > 3
    assert any("right on more of the drawn points than the belief expected" in words for words in found.warnings)
    assert estimates.info["diagnostics"]["warnings"] == found.warnings


def test_skipped_points_are_a_share_with_bounds():
    found, estimates = diagnosed(constant_belief, skipped=12)
    assert 0.05 < found.skipped_share < 0.2
    assert estimates[0].note.startswith("12 of 120 points had no answer (10%); if the model is always wrong or always")


def test_without_labels_nothing_is_claimed():
    pool, _ = world(n=100)
    task, method = Task(pool, metric_set(["accuracy", "recall[0]"], pool)), Assured()
    found = method.estimate(task, History(100))
    assert all(np.isnan([one.value, one.low, one.high]).all() and one.note for one in found)
    assert {one.interval for one in found} == {"none"}
