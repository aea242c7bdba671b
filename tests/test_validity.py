"""The benchmark of validity: its page is its table, and its ways of telling are what they say."""

import numpy as np
import pytest

from altmas.history import History
from altmas.methods import METHODS, Task
from altmas.metrics import metric_set
from benchmarks import validity


def test_the_page_is_written_from_the_table():
    assert validity.PAGE.read_text(encoding="utf-8") == validity.page_of(validity.read_table())


def test_points_wait_and_are_answered_in_any_order():
    pool, truth = validity.plain(0.9, 300)
    method, task = METHODS["assured"](), Task(pool, metric_set(["accuracy"], pool), seed=0)
    history = validity.told(method, task, truth, History(300), 40, validity.TELLINGS["30 wait, any order"])
    assert len(history.labels) == 40 and len(history.outstanding) >= 20
    order = {row: place for place, row in enumerate(history.drawn.tolist())}
    places = [order[row] for row in history.labels]
    assert places != sorted(places)


def test_errors_are_volunteered_once_and_are_errors():
    pool, truth = validity.plain(0.8, 400)
    method, task = METHODS["assured"](), Task(pool, metric_set(["accuracy"], pool), seed=0)
    history = validity.told(method, task, truth, History(400), 100, validity.TELLINGS["errors volunteered"])
    assert len(history.volunteered) == 10 and history.drawn_labels == 100
    assert (truth[history.volunteered] != pool.predictions[history.volunteered]).all()


def test_a_summary_counts_what_it_says():
    found = np.array([[0.5, 0.4, 0.6], [0.7, 0.65, 0.8], [np.nan, np.nan, np.nan]])
    row = validity.summary(found, 0.55)
    assert row["with_interval"] == 0.667 and row["coverage"] == 0.5 and row["half_width"] == 0.0875
    assert row["rmse"] == 0.11180 and row["bias"] == round(0.05 / 0.1118034, 3)


@pytest.mark.parametrize(("runs", "least"), [(8, 6), pytest.param(40, 35, marks=pytest.mark.slow)])
def test_a_quick_battery_holds_where_the_first_edition_failed(runs, least):
    """Clean labels, trusted errors, points that wait; one covered less than `least` is 2 sd or more below 95 %."""
    for case, telling, labels in [
        ("plain 0.99", "lockstep", 100),
        ("two levels, too sure", "lockstep", 100),
        ("plain 0.85", "200 wait", 40),
    ]:
        pool, truth = validity.CASES[case].make()
        metrics = metric_set(["accuracy"], pool)
        exact, covered = float((truth == pool.predictions).mean()), 0
        method = METHODS["assured"]()
        for seed in range(runs):
            task = Task(pool, metrics, seed=seed)
            history = validity.told(method, task, truth, History(len(pool)), labels, validity.TELLINGS[telling])
            one = method.estimate(task, history)[0]
            covered += one.low <= exact <= one.high
        assert covered >= least, (case, telling, covered)
