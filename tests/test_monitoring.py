"""Levels, changes and alarms by wave."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import altmas
from altmas.errors import AltmasError, MetricError, PlanError
from altmas.guarantee import Stage, interval
from altmas.monitoring import Monitor, error_of_wave
from altmas.pool.growth import values_in_order
from altmas.ratios import OPEN, table_ratio
from cli_world import run
from growing_world import label, truth_and_pool


def waves(path=None, accuracies=(0.92, 0.9, 0.35), labels=60, n=100, method="assured", **options):
    truth, pools = truth_and_pool(5, (n,) * len(accuracies), accuracies)
    session = altmas.Session.create(path, pools[0], method=method, **options)
    label(session, truth, labels)
    for number, pool in enumerate(pools[1:], start=1):
        budget = {"wave_budget": labels} if method == "assured" else {}
        session.extend(pool, wave=f"w{number}", **({"first_wave": "w0"} if number == 1 else {}), **budget)
        label(session, truth, labels)
    return session, truth


@pytest.fixture(scope="module")
def dropped(tmp_path_factory):
    path = tmp_path_factory.mktemp("waves") / "s.altmas"
    session, truth = waves(path)
    session.close()
    return path, truth


def test_the_shares_of_the_waves_add_up_to_the_error():
    shares = [error_of_wave(0.05, number) for number in range(1, 200_000)]
    assert sum(shares) == pytest.approx(0.05, rel=1e-3) and shares == sorted(shares, reverse=True)


def test_levels_and_changes_are_the_estimates_and_a_drop_is_shown(dropped):
    path, truth = dropped
    with altmas.Session.open(path) as session:
        found = session.monitor()
        assert [one.wave for one in found] == ["w0", "w1", "w2"] and found.proven
        assert [one.answer for one in found] == ["cannot tell", "no drop", "drop"] and found.answer == "drop"
        level = session.estimate(metrics="accuracy@wave=w2")[0]
        change = session.estimate(metrics="accuracy@wave=w2 - accuracy@wave=w1")[0]
        assert (found[2].value, found[2].low, found[2].high) == (level.value, level.low, level.high)
        assert (found[2].change, found[2].change_low) == (change.value, change.low)
        assert found[2].always_low <= found[2].low and found[2].high <= found[2].always_high
        right = np.array(session.pool.classes)[session.pool.predictions] == np.array(truth)
        for place, one in enumerate(found):
            assert one.always_low <= right[place * 100 : (place + 1) * 100].mean() <= one.always_high
        assert session.monitor(tolerance=0.6).answer == "no drop"
        assert session.monitor(against="w0").answer == "drop"
        assert "a drop against w1 is shown" in found.summary and "95 %" in found.summary
        risen = session.monitor("error")  # lower is better
        assert risen.answer == "drop" and "a rise against w1 is shown" in risen.summary and risen.worse == "rise"


def test_the_sequence_of_a_wave_is_that_of_its_draws_alone():
    """tradition, waves of one batch each: the interval is the game played on the wave."""
    session, truth = waves(accuracies=(0.9, 0.6), labels=40, n=80, method="tradition", budget=80)
    history, pool = session.history, session.pool
    found = session.monitor()
    drawn = history.batches[1].indices
    known = np.where(np.arange(160) < 80, -1, OPEN)
    for row in history.batches[0].indices:
        known[row] = history.labels[row]
    tables = np.eye(3), np.ones((3, 3))
    ratio = table_ratio(*tables, pool.predictions, pool.slices["wave"] == "w1")
    belief = np.full((160, 3), 0.1)
    belief[np.arange(160), pool.predictions] = 0.8
    known[:80][known[:80] == OPEN] = -1
    open_ = np.ones(160, bool)
    open_[history.batches[0].indices] = False
    labels = np.where(open_, OPEN, known)
    stage = Stage(
        ratio.outcomes(labels), np.ones(160), ratio.belief(belief), drawn, ratio.outcomes(history.known)[drawn]
    )
    low, high = interval(ratio.ratio, [stage], confidence=1 - error_of_wave(0.05, 2), budget=80)
    assert (found[1].always_low, found[1].always_high) == pytest.approx((low, high), abs=1e-9)


def test_a_slow_slide_is_shown_against_the_first_wave():
    session, _ = waves(accuracies=(0.97, 0.86, 0.74, 0.62), labels=80)
    found = session.monitor("accuracy")
    first = session.monitor("accuracy", against=found[0].wave)[-1]
    assert found[-1].answer == "no drop" and found.since_first == first and first.answer == "drop"
    assert found.answer == "drop" and f"against {found[0].wave} is shown; all alarms" in found.summary
    assert found.to_dict()["since_first"]["against"] == found[0].wave
    assert waves(accuracies=(0.9, 0.9))[0].monitor("accuracy").since_first is None


def test_no_drop_is_shown_by_a_few_labels():
    session, _ = waves(accuracies=(1.0, 0.0), labels=15)
    assert session.monitor("accuracy").answer == session.monitor("mcc").answer == "cannot tell"


def test_too_few_labels_cannot_tell():
    session, _truth = waves(accuracies=(0.9, 0.9), labels=12)
    assert session.monitor().answer == "cannot tell"


def test_a_wave_of_five_items_has_no_interval_for_many_labels():
    """Two of five labelled and right: 2 of 5 in all would show that in one of ten cases."""
    truth, pools = truth_and_pool(5, (100, 5), (0.9, 0.9))
    session = altmas.Session.create(None, pools[0])
    label(session, truth, 40)
    session.extend(pools[1], wave="w1", first_wave="w0", wave_budget=2)
    label(session, truth, 2)
    small = session.monitor()[1]
    assert np.isnan([small.low, small.high, small.change_low]).all() and not np.isnan(small.value)
    assert small.always_low <= 0.4 and small.answer == "cannot tell"


@pytest.mark.filterwarnings("error")
def test_what_no_label_tells_about_is_no_drop(dropped):
    """A class that came later and that nobody met or predicted: nothing is divided by 0."""
    path, _truth = dropped
    with altmas.Session.open(path) as session:
        session.extend(classes=["new"])
        assert "drop" not in {one.answer for one in session.monitor("recall[new]")}


def test_what_cannot_be_monitored_is_said():
    truth, pools = truth_and_pool(5, (60,), (0.9,))
    session = altmas.Session.create(None, pools[0])
    with pytest.raises(PlanError, match="no waves"):
        session.monitor()
    session, _truth = waves(accuracies=(0.9, 0.9), labels=12)
    for metric, options, kind in [
        ("accuracy@wave=w1", {}, MetricError),
        (None, {"against": "w9"}, PlanError),
        (None, {"tolerance": -1}, PlanError),
        ("acuracy", {}, AltmasError),
    ]:
        with pytest.raises(kind):
            session.monitor(metric, **options)


def test_a_slice_called_wave_is_monitored_from_the_beginning():
    truth, pools = truth_and_pool(5, (90,), (0.9,), slices={"wave": np.repeat([10, 9, 2], 30)})
    session = altmas.Session.create(None, pools[0])
    assert values_in_order(session.pool, "wave", session.history.domains) == ["2", "9", "10"]
    label(session, truth, 80)
    assert isinstance(session.monitor(), Monitor) and len(session.monitor()) == 3
    by_wave = ["accuracy@wave=2", "accuracy@wave=9", "accuracy@wave=10"]
    assert [estimate.metric for estimate in session.estimate(by="wave")] == by_wave
    (table,) = session.report().content["slices"]
    assert [row["value"] for row in table["rows"]] == ["2", "9", "10"]


def test_the_command_has_a_table_json_a_figure_and_exit_codes(dropped, tmp_path):
    path, _truth = dropped
    shown = run("monitor", path, "--figure", tmp_path / "waves.svg")
    assert shown.code == 1 and "w2" in shown.out and "shown" in shown.out
    figure = ElementTree.parse(tmp_path / "waves.svg").getroot()
    words = [element.text for element in figure.iter() if element.tag.endswith("text")]
    assert figure.tag.endswith("svg") and float(figure.get("height")) > 100
    assert words[0] == "accuracy by wave, 95 % intervals of the levels" and "a drop is shown" in words
    told = run("monitor", path, "--json", "--tolerance", "0.6")
    assert told.code == 0 and json.loads(told.out)["answer"] == "no drop"
    assert len(json.loads(told.out)["levels"]) == 3
    assert run("monitor", path, "--against", "w9").code == 2


def test_the_report_says_what_the_newest_wave_says():
    session, _truth = waves(seed=1)
    report = session.report()
    headline, watched = report.content["headline"], session.monitor()
    assert headline["verdict"].startswith("A drop is shown: accuracy in w2 is ") and headline["tone"] == "bad"
    assert "in w1 it was" in headline["verdict"] and "95 %" in headline["next"]
    assert report.content["waves"]["levels"][2]["value"] == watched[2].value
    page = report.to_html()
    assert 'id="waves"' in page and "chart-waves" in page and page.count("cannot tell yet") == 0
    early, _truth = waves(accuracies=(0.9, 0.9), labels=12, seed=1)
    assert early.monitor().summary.endswith("cannot be told yet: that takes 20 drawn labels in w1 and in w0.")
    headline = early.report().content["headline"]
    assert (
        headline["verdict"] == "It cannot be told yet whether accuracy is worse in w1." and headline["tone"] == "open"
    )
    calm, _truth = waves(accuracies=(0.9, 0.9), labels=40, seed=1)
    assert calm.report().content["headline"]["verdict"].startswith("No drop is shown: accuracy in w1 is ")


def test_what_looks_like_a_drop_and_is_not_shown_yet_is_said(tmp_path):
    session, _truth = waves(tmp_path / "s.altmas", accuracies=(0.95, 0.72), labels=40, n=400)
    found = session.monitor()
    last = found[-1]
    assert found.answer == "no drop" and last.looks_worse and last.change_high < 0 and not found[0].looks_worse
    assert "it looks like a drop against w0" in found.summary and "not shown at every look yet" in found.summary
    assert "probability" not in found.summary and found.to_dict()["levels"][1]["looks_worse"] is True
    assert not session.monitor(tolerance=0.5)[-1].looks_worse
    assert session.monitor("error")[-1].looks_worse and "a rise" in session.monitor("error").summary
    report = session.report()
    headline = report.content["headline"]
    assert (
        headline["verdict"].startswith("It looks like a drop, but none is shown yet: ") and headline["tone"] == "open"
    )
    assert "probability" not in headline["next"] and "More labels in w1 and w0" in headline["next"]
    assert "looks so, not shown yet" in report.to_html()
    session.close()
    told = run("monitor", tmp_path / "s.altmas")
    assert told.code == 0 and "looks so, not shown yet" in told.out and "probability" not in told.out


def test_the_probability_of_alarms_stands_only_under_an_alarm(dropped):
    path, _truth = dropped
    with altmas.Session.open(path) as session:
        assert "all alarms" in session.monitor().summary
        quiet = session.monitor(tolerance=0.6).summary
        assert "probability" not in quiet and quiet.endswith("is shown; that is no proof that there is none.")


def test_a_metric_without_a_proof_says_so(dropped):
    path, _truth = dropped
    with altmas.Session.open(path) as session:
        found = session.monitor("mcc")
        assert not found.proven and "no finite-sample proof" in found.summary


@pytest.mark.slow
def test_quiet_waves_hardly_ever_raise_an_alarm():
    alarms = 0
    for seed in range(60):
        truth, pools = truth_and_pool(seed, (120,) * 4, (0.85,) * 4)
        session = altmas.Session.create(None, pools[0], method="tradition", seed=seed)
        label(session, truth, 30)
        for number, pool in enumerate(pools[1:], start=1):
            session.extend(pool, wave=f"w{number}")
            label(session, truth, 40)
            alarms += session.monitor().answer == "drop"
    assert alarms <= 6


def test_the_page_about_monitoring_runs_as_written(tmp_path):
    from docs_world import blocks, run_block

    for kind, text in blocks("monitoring.md"):
        run_block(kind, text, tmp_path)


def test_a_name_that_stands_for_a_metric_of_each_model_is_refused():
    session, truth = waves(labels=30)
    session.add_model("v2", session.pool.predictions[::-1])
    with pytest.raises(MetricError, match="'accuracy' stands for 2 metrics; monitor one of them"):
        session.monitor("accuracy")
    assert session.monitor("v2: accuracy").metric == "v2: accuracy"
