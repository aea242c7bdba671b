"""Items that are added later: what is estimated of them, how stages are combined, what is refused."""

import numpy as np
import pytest

import altmas
from altmas.errors import AltmasError, MethodError, NotASession, PlanError, PoolError
from altmas.methods.assured import stages_of
from altmas.methods.assured.belief import folds_of
from altmas.methods.assured.linearised import Estimators
from cli_world import run
from growing_world import METRICS, NAMES, answers, created_run, extended_run, label, truth_and_pool

SMALL = {"sizes": (60, 50), "accuracies": (0.9, 0.6)}


def begun(path=None, method="assured", labels=30, waiting=3, **options):
    truth, pools = truth_and_pool(3, **SMALL)
    session = altmas.Session.create(path, pools[0], method=method, **options)
    label(session, truth, labels, waiting)
    return session, truth, pools[1]


@pytest.mark.parametrize("method", ["assured", "tradition"])
def test_an_extended_session_goes_on_and_is_the_same_after_reopening(tmp_path, method):
    session, truth, more = begun(tmp_path / "s.altmas", method)
    first = session.estimate()["accuracy"]
    change = session.extend(more, wave="w1", first_wave="w0")
    assert (change.wave, change.points, change.labels) == ("w1", 50, 30) and change.fingerprint == more.fingerprint
    label(session, truth, 40)
    found, asked = session.estimate(metrics=METRICS), [query.id for query in session.ask(3)]
    session.close()
    again = altmas.Session.open(tmp_path / "s.altmas")
    assert again.estimate(metrics=METRICS) == found and [query.id for query in again.ask(3)] == asked
    assert again.at(labels=30).estimate()["accuracy"] == first
    assert len(again.pool) == 110 and again.integrity() == "ok"
    assert [len(moment) for _, moment in again.trajectory(2)] == [1, 1]
    assert "50 items added as wave w1" in again.report().to_html()
    again.export_events(tmp_path / "events.jsonl")
    label(again, truth, 200)
    assert len(again.history.labels) == 110
    exact = again.estimate(metrics=METRICS[:4])
    assert [(one.low, one.high) for one in exact] == [(one.value, one.value) for one in exact]
    for value, _, _, true in answers(again, truth)[:4]:
        assert value == pytest.approx(true)


def test_a_wave_without_a_drawn_label_is_said_and_may_be_anything():
    session, _truth, more = begun()
    before = session.estimate()["accuracy"]
    session.extend(more, wave="w1", first_wave="w0")
    whole, wave = session.estimate()["accuracy"], session.estimate(metrics="accuracy@wave=w1")[0]
    assert "insufficient" in wave.note and np.isnan(wave.value)
    assert whole.high - whole.low >= 50 / 110 + (before.high - before.low) * 60 / 110 - 0.02
    assert "may be anything" in whole.note and "20 labels" in whole.note
    assert session.check("accuracy >= 0.99").answer == "undecided"


def test_nothing_of_the_first_points_moves_when_the_pool_grows():
    """Folds, sizes and race times of earlier stages are those that they were."""
    session, truth, more = begun(labels=45)
    before, folds = stages_of(session.history), folds_of(session.history.domains, 7)
    session.extend(more, wave="w1")
    label(session, truth, 20)
    after, later = stages_of(session.history), folds_of(session.history.domains, 7)
    np.testing.assert_array_equal(folds, later[:60])
    assert np.bincount(later[60:]).max() - np.bincount(later[60:]).min() <= 1
    for old, new in zip(before, after, strict=False):
        np.testing.assert_array_equal(old.times, new.times[:60])
        assert not new.population[60:].any() and not new.within[60:].any() and not new.earlier[60:].any()
    assert len(after) > len(before) and after[-1].within.all()


def reference_accuracy(session, samples):
    """(V7) as a loop over domains, stages and points."""
    history, pool, total = session.history, session.pool, 0.0
    for rows in history.domains:
        points = range(rows.start, rows.stop)
        about = [one for one in samples if one.stage.within[points].all()]
        worth = []
        for one in about:
            stage, here = one.stage, [i for i in points if one.stage.population[i]]
            share = sum(stage.sizes[i] for i in here) / sum(stage.sizes[stage.population])
            n = len(one.rows) * share
            worth.append(stage.gain * n / (len(here) * (len(here) - n)))
        for one, weight in zip(about, worth, strict=True):
            right = one.belief.of_class(pool.predictions)
            used = [i for i in one.rows if i in points]
            known = [i for i in points if one.before[i]] + used
            rest = [i for i in points if i not in known]
            estimate = sum(history.known[i] == pool.predictions[i] for i in known) + sum(right[i] for i in rest)
            odds = {i: np.exp(-one.stage.exposure[i]) / -np.expm1(-one.stage.exposure[i]) for i in used}
            h = len(rest) / sum(odds.values()) if len(used) >= 10 else 1.0
            estimate += h * sum(odds[i] * ((history.known[i] == pool.predictions[i]) - right[i]) for i in used)
            total += weight / sum(worth) * estimate
    return total / len(pool)


@pytest.mark.parametrize("wave_budget", [None, 12])
def test_stages_about_other_points_are_combined_as_a_loop_does(wave_budget):
    session, truth, more = begun()
    session.extend(more, wave="w1", wave_budget=wave_budget)
    label(session, truth, 45)
    samples = session.method._samples(session.task, session.history, stages_of(session.history))
    whole = Estimators(samples, session.task, session.history)(None)
    for rows in session.history.domains:
        shares = [part.share for part in whole.parts if part.rest[rows].any() or rows.start in part.labelled]
        assert sum(shares) == pytest.approx(1.0)
    assert session.estimate()["accuracy"].value == pytest.approx(reference_accuracy(session, samples), abs=1e-9)


def test_the_budget_of_a_wave_goes_to_its_items_first():
    session, truth, more = begun(waiting=0)
    session.extend(more, wave="w1", wave_budget=15)
    assert all(query.index >= 60 for query in session.ask(15))
    label(session, truth, 15)
    assert (session.history.known[60:] >= 0).sum() == 15
    assert any(query.index < 60 for query in session.ask(60))
    with pytest.raises(MethodError, match="assured"):
        begun(method="tradition")[0].extend(wave_budget=5)


def test_classes_and_slices_can_be_added():
    session, truth, more = begun()
    ids = list(session.pool.ids)
    session.extend(classes=["d"], slices={"half": {name: row % 2 for row, name in enumerate(ids)}})
    assert session.pool.classes == ("a", "b", "c", "d") and session.pool.scores.shape == (60, 4)
    waiting = session.ask(1)[0]
    session.tell(waiting.id, "d")
    assert len(session.estimate(by="half")) == 2 and session.estimate(metrics="recall[d]")[0].value == 0
    with pytest.raises(PoolError, match="slice 'half'"):
        session.extend(more, wave="w1")
    assert [one.words for one in session.changes()] == ["classes d added; slices half added"]


def other(more, **changes):
    parts = {
        "features": more.features,
        "predictions": [NAMES[code] for code in more.predictions],
        "scores": more.scores,
        "classes": NAMES,
        "ids": list(more.ids),
    } | changes
    return altmas.Pool(parts.pop("features"), parts.pop("predictions"), **parts)


def test_what_does_not_fit_is_refused_with_a_sentence_and_nothing_is_recorded(tmp_path):
    session, _truth, more = begun(tmp_path / "s.altmas")
    before, n = session.status().seq, len(more)
    for pool, options, sentence in [
        (other(more, ids=["0-3", *more.ids[1:]]), {}, "id '0-3' is in this session already"),
        (other(more, ids=None), {}, "no ids"),
        (other(more, features=None), {}, "features: the points of this session have, the items have none"),
        (other(more, features=more.features[:, :1]), {}, "1 features"),
        (other(more, scores=None), {}, "scores of 'model'"),
        (other(more, scores=None, predictions={"v2": more.predictions}), {}, "no model 'model'"),
        (other(more, scores=None, predictions=["z", *["a"] * (n - 1)], classes=["a", "z"]), {}, "class 'z'"),
        (other(more, slices={"site": ["x"] * n}), {}, "slice 'site'"),
        (more, {"wave": ""}, "wave '' was not understood"),
        (more, {"wave": "w0", "first_wave": "w0"}, "there is a wave 'w0' already"),
        (more, {"metrics": "recal[a]"}, "recal"),
        ("no-such-file.csv", {"columns": {"prediction": "p"}}, "no-such-file"),
        (more, {"budget": 5}, "less than the 30 labels"),
    ]:
        with pytest.raises(AltmasError, match=sentence.replace("[", r"\[")):
            session.extend(pool, **{"wave": "w1"} | options)
        assert session.status().seq == before and len(session.pool) == 60
    session.close()
    assert len(altmas.Session.open(tmp_path / "s.altmas").pool) == 60


def test_a_method_that_cannot_grow_refuses():
    truth, pools = truth_and_pool(3, **SMALL)
    session = altmas.Session.create(None, pools[0], method="ppi")
    with pytest.raises(MethodError, match="cannot go on when items are added"):
        session.extend(pools[1])


def refused(session, more, error, sentence):
    """Items are refused with the sentence, and the session is what it was, now and when it is opened again."""
    before, points = session.status().seq, len(session.pool)
    with pytest.raises(error, match=sentence) as told:
        session.extend(more, wave="w1", first_wave="w0")
    assert str(told.value).endswith("nothing was recorded") and "\n" not in str(told.value)
    for one in (session, altmas.Session.open(session.path)):
        assert (one.status().seq, len(one.pool), one.changes()) == (before, points, [])


def test_items_are_refused_by_a_session_about_data_like_the_pool(tmp_path):
    session, _truth, more = begun(tmp_path / "s.altmas", about="future")
    refused(session, more, PlanError, r"about data to come \(about='future'\).*make a new session")
    session.extend(budget=55)
    assert session.plan.budget == 55  # what is not about items can be changed


def test_items_are_refused_by_a_pool_with_groups(tmp_path):
    truth, pools = truth_and_pool(3, **SMALL)
    first = other(pools[0], group=np.arange(60) // 4)
    session = altmas.Session.create(tmp_path / "s.altmas", first)
    label(session, truth, 20)
    refused(session, pools[1], PoolError, "cannot be added to a pool with groups")
    refused(session, other(pools[1], group=np.arange(50) // 4), PoolError, "cannot be added to a pool with groups")


def test_a_wave_that_is_too_large_for_the_file_is_refused(tmp_path, monkeypatch):
    session, _truth, more = begun(tmp_path / "s.altmas")
    with monkeypatch.context() as smaller:
        smaller.setattr("altmas.session.archive.LIMIT", 100)
        refused(session, more, PoolError, "the items are more than .* MB.*add them in smaller waves")
    session.extend(more, wave="w1")
    assert len(session.pool) == 110


def test_items_that_were_changed_in_the_file_are_noticed(tmp_path):
    session, _truth, more = begun(tmp_path / "s.altmas")
    session.extend(more, wave="w1")
    with session._journal.store.transaction():
        session._journal.store._connection.execute("DELETE FROM parts WHERE name = 'wave 1: ids'")
    session.close()
    with pytest.raises(NotASession):
        altmas.Session.open(tmp_path / "s.altmas")


def test_another_process_sees_new_items_and_both_go_on(tmp_path):
    session, truth, more = begun(tmp_path / "s.altmas")
    elsewhere = altmas.Session.open(tmp_path / "s.altmas")
    session.extend(more, wave="w1")
    label(elsewhere, truth, 30)
    assert len(elsewhere.pool) == 110 and (elsewhere.history.known[60:] >= 0).any()
    elsewhere.tell("1-7", truth[67], annotator="ann")
    assert session.estimate()["accuracy"] == elsewhere.estimate()["accuracy"]
    session.extend(other(more, ids=[f"2-{row}" for row in range(50)]), wave="w2")
    assert [rows.stop for rows in session.history.domains] == [60, 110, 160]


def test_a_guarantee_is_about_the_pool_as_it_is():
    """The whole pool begins anew with stages that are about all of it; a wave keeps what was drawn since it came."""
    session, truth, more = begun(guarantee=True, metrics=["accuracy"])
    first = session.estimate()["accuracy"]
    session.extend(more, wave="w1", first_wave="w0")
    whole = session.estimate()["accuracy"]
    assert whole.interval == "guaranteed" and whole.high - whole.low >= 50 / 110
    assert session.estimate(metrics="accuracy@wave=w0")[0].low >= first.low - 0.02
    label(session, truth, 50)
    found = session.estimate(metrics=METRICS[:4])
    assert all(
        one.interval == "guaranteed" and one.low <= true <= one.high
        for one, true in zip(found, trues(session, truth), strict=True)
    )


def trues(session, truth):
    return [true for *_, true in answers(session, truth)[:4]]


def test_the_command_adds_a_table(tmp_path):
    truth, pools = truth_and_pool(3, **SMALL)
    for number, pool in enumerate(pools):
        rows = [
            f"{name},{NAMES[code]},{f[0]}"
            for name, code, f in zip(pool.ids, pool.predictions, pool.features, strict=True)
        ]
        (tmp_path / f"{number}.csv").write_text("\n".join(["key,said,x", *rows]))
    path = tmp_path / "s.altmas"
    assert (
        run("init", path, "--data", tmp_path / "0.csv", "--prediction", "said", "--id", "key", "--features", "x").code
        == 0
    )
    ran = run(
        "extend",
        path,
        "--data",
        tmp_path / "1.csv",
        "--wave",
        "2026-11",
        "--first-wave",
        "2026-10",
        "--wave-budget",
        20,
    )
    assert ran.code == 0 and "50 items added as wave 2026-11" in ran.out
    (tmp_path / "1.csv").unlink()  # it is in the session file
    with altmas.Session.open(path) as session:
        assert len(session.pool) == 110 and set(session.pool.slices["wave"]) == {"2026-10", "2026-11"}
    (tmp_path / "2.csv").write_text("key,said,x\n2-1,zebra,0.5\n")
    strange = run("extend", path, "--data", tmp_path / "2.csv", "--wave", "x")
    assert strange.code == 2 and "--class" in strange.err and "nothing was recorded" in strange.err
    assert "began with" not in ran.err
    again = run("extend", path, "--data", tmp_path / "0.csv", "--wave", "x")
    assert again.code == 2 and "is in this session already" in again.err


def test_the_command_says_how_the_first_items_are_called_where_nobody_named_them(tmp_path):
    rows = [f"{name},{said},{n}" for n, (name, said) in enumerate((f"c{n}", NAMES[n % 2]) for n in range(40))]
    (tmp_path / "0.csv").write_text("\n".join(["key,said,x", *rows]))
    (tmp_path / "1.csv").write_text("\n".join(["key,said,x", *(f"1{row}" for row in rows)]))
    (tmp_path / "2.csv").write_text("\n".join(["key,said,x", *(f"2{row}" for row in rows)]))
    path = tmp_path / "s.altmas"
    run("init", path, "--data", tmp_path / "0.csv", "--prediction", "said", "--id", "key", "--features", "x")
    first = run("extend", path, "--data", tmp_path / "1.csv", "--wave", "w2")
    with altmas.Session.open(path) as session:
        beginning = session.status().created_at[:10]
    assert f"the items that the session began with are wave {beginning}" in first.err and "--first-wave" in first.err
    assert "began with" not in run("extend", path, "--data", tmp_path / "2.csv", "--wave", "w3").err


@pytest.mark.parametrize("name", ["assured", "tradition"])
def test_sessions_of_version_0_1_are_extended_too(tmp_path, name):
    from shutil import copy

    from test_earlier_files import FOLDER

    path = copy(FOLDER / f"{name}.altmas", tmp_path / "old.altmas")
    with altmas.Session.open(path) as session:
        pool, before = session.pool, session.estimate()
        half = range(len(pool) // 2)
        more = altmas.Pool(
            None if pool.features is None else pool.features[list(half)],
            {one.name: [pool.classes[code] for code in one.predictions[list(half)]] for one in pool.models},
            scores={one.name: one.scores[list(half)] for one in pool.models if one.scores is not None},
            classes=pool.classes,
            ids=[f"new {row}" for row in half],
            slices={slice_: column[list(half)] for slice_, column in pool.slices.items()},
            items=None if pool.items is None else [pool.items[row] for row in half],
        )
        labels = len(session.history.labels)
        session.extend(more, wave="b", first_wave="a", budget=labels + 30)
        for query in session.ask(30):
            session.tell(query.id, pool.classes[query.index % len(pool.classes)])
        found = session.estimate(by="wave")
        assert all(np.isfinite(one.low) or one.note for one in found)
        assert [one.metric for one in session.at(labels=labels).estimate()] == [one.metric for one in before]
    assert altmas.Session.open(path).estimate(by="wave") == found


def test_a_session_created_from_an_extended_pool_keeps_all_of_it(tmp_path):
    session, _truth, more = begun()
    session.extend(more, wave="w1")
    altmas.Session.create(tmp_path / "new.altmas", session.pool).close()
    assert len(altmas.Session.open(tmp_path / "new.altmas").pool) == 110


@pytest.mark.slow
def test_estimates_are_right_on_average_and_intervals_hold():
    rows = np.array([extended_run(seed, "tradition", (50, 50)) for seed in range(40)])
    _check(rows, least=0.85)


def test_a_comparison_weights_labels_by_wave_and_waits_for_each():
    """Labels of a wave with few draws stand for more points; without any there is no interval."""
    session, truth, more = begun(method="tradition", waiting=0)
    session.extend(more, wave="w1")
    names = [NAMES[(code + (row % 7 == 0)) % 3] for row, code in enumerate(session.pool.predictions)]
    assert np.isnan(session.compare(names)[0].low)
    label(session, truth, 30)
    inclusion = session.method.inclusion(session.pool, session.history)
    known = session.history.known >= 0
    assert inclusion[0] == known[:60].mean() and inclusion[-1] == known[60:].mean()
    assert (known / inclusion).sum() == pytest.approx(110)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"wave_budget": 40}])
def test_extended_sessions_are_as_good_as_those_created_with_all_items(options):
    rows = np.array([extended_run(seed, "assured", **options) for seed in range(1000, 1060)])
    _check(rows, least=0.93)
    created = np.array([created_run(seed, "assured") for seed in range(1000, 1060)])
    ratio = _rmse(rows)[0] / _rmse(created)[0]
    assert ratio < 1.4, ratio


def _rmse(rows):
    return np.sqrt(np.nanmean((rows[:, :, 0] - rows[:, :, 3]) ** 2, axis=0))


def _check(rows, least):
    value, low, high, true = np.moveaxis(rows, -1, 0)
    error = value - true
    bias, noise = error.mean(0), error.std(0) / np.sqrt(len(rows))
    assert (np.abs(bias) < 3.5 * noise + 0.1 * _rmse(rows)).all(), bias / noise
    covered = ((low <= true) & (true <= high)).mean(0)
    assert (covered >= least - 2 * np.sqrt(least * (1 - least) / len(rows))).all(), covered
