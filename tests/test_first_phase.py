"""A pool that is a uniform random sample of a larger table (`Pool.sample_from`): its variance is in every interval."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import altmas
from altmas.errors import MethodError, PlanError, PoolError, PoolMismatch, UnknownPoint
from altmas.guaranteed import guaranteed_decision, guaranteed_interval
from altmas.history import History
from altmas.methods import METHODS, Assured, Tradition, method_named
from altmas.metrics import metric_set, truth_values
from altmas.planning import plan_widths
from altmas.pool.first_phase import PassingSample, Wanted, sampled_rows
from altmas.ratios import SLACK, Ratio
from altmas.simulate import label_until, simulate
from altmas.superpopulation import left_when_labelled, seldom_outside
from altmas.task import Task
from assured_world import constant_belief, world
from cli_world import run

ASKED = ("accuracy", "recall[1]", "accuracy@half=odd", "kappa")
ASSURED = Assured(belief=constant_belief)


def test_every_row_and_every_pair_is_as_likely_as_any_other():
    chosen = np.zeros((12, 12))
    for seed in range(4000):
        rows = sampled_rows(12, 5, seed)
        assert len(set(rows.tolist())) == 5 and (np.diff(rows) > 0).all()
        chosen[np.ix_(rows, rows)] += 1 / 4000
    alone, pairs = np.diag(chosen), chosen[np.triu_indices(12, 1)]
    assert np.abs(alone - 5 / 12).max() < 4.5 * math.sqrt(5 / 12 * 7 / 12 / 4000)
    assert np.abs(pairs - 20 / 132).max() < 4.5 * math.sqrt(20 / 132 * 112 / 132 / 4000)


@pytest.mark.parametrize("above", [None, 300, 900])
def test_rows_that_pass_by_give_the_same_sample(above):
    wanted = Wanted(100, 7, above)
    passing, kept, size = PassingSample(wanted), [], 0
    for count in (50, 1, 130, 400, 219):
        mask = passing.kept(count)
        kept.append(size + (np.arange(count) if mask is None else np.flatnonzero(mask)))
        size += count
    chosen = passing.chosen("the stream")
    if above == 900:
        assert chosen is None
        return
    places, rows = chosen
    assert rows.tolist() == sampled_rows(800, 100, 7).tolist() == np.concatenate(kept)[places].tolist()
    assert sum(map(len, kept)) < 800


def test_the_sample_of_a_pool_has_its_rows_ids_items_and_groups():
    pool = altmas.Pool(
        np.arange(60).reshape(30, 2),
        ["a", "b"] * 15,
        slices={"s": ["x", "y", "z"] * 10},
        items=[f"text {row}" for row in range(30)],
        group=[row // 3 for row in range(30)],
    )
    sample, rows = altmas.Pool.sample_from(pool, 12, seed=3), sampled_rows(30, 12, 3)
    assert sample.sampled_from == 30 and sample.ids == rows.tolist() and len(sample) == 12
    assert sample.features.tolist() == pool.features[rows].tolist()
    assert list(sample.items) == [f"text {row}" for row in rows]
    assert sample.slices["s"].tolist() == pool.slices["s"][rows].tolist()
    assert "a random sample of 30" in repr(sample)
    assert altmas.Pool.sample_from(pool, 30) is pool
    assert sample.fingerprint != altmas.Pool.sample_from(pool, 12, seed=4).fingerprint
    for wrong in (0, 31, True, 2.5):
        with pytest.raises(PoolError, match="cannot be taken"):
            altmas.Pool.sample_from(pool, wrong)
    with pytest.raises(PoolError, match="sample already"):
        altmas.Pool.sample_from(sample, 5)
    outside = next(row for row in range(30) if row not in rows)
    with pytest.raises(UnknownPoint, match="random sample of 30 rows"):
        sample.index(outside)


def table(n=500, seed=0):
    """A table with ids, features, answers and truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    answers = np.where(rng.random(n) < 0.85, truth, 1 - truth)
    columns = {"id": [f"p{row}" for row in range(n)], "answer": np.array(["no", "yes"])[answers]}
    columns |= {"x": rng.normal(size=n), "y": rng.normal(size=n), "truth": np.array(["no", "yes"])[truth]}
    return pa.table(columns)


def test_tables_files_datasets_and_streams_give_one_sample(tmp_path):
    whole = table()
    pq.write_table(whole, tmp_path / "t.parquet", row_group_size=64)
    np.save(tmp_path / "f.npy", np.column_stack([whole["x"], whole["y"]]).astype(np.float32))
    roles = {"prediction": "answer", "id": "id", "features": ["x", "y"]}
    sources = [
        whole,
        whole.to_pandas() if _has_pandas() else whole,
        tmp_path / "t.parquet",
        pyarrow.dataset.dataset(tmp_path / "t.parquet"),
        pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches(max_chunksize=70)),
    ]
    pools = [altmas.Pool.sample_from(one, 80, seed=5, **roles) for one in sources]
    pools.append(
        altmas.Pool.sample_from(tmp_path / "t.parquet", 80, seed=5, **roles | {"features": tmp_path / "f.npy"})
    )
    array = np.load(tmp_path / "f.npy")
    pools.append(altmas.Pool.sample_from(whole, 80, seed=5, **roles | {"features": array}))
    for pool in pools:
        assert pool.sampled_from == 500 and pool.fingerprint == pools[0].fingerprint
    assert pools[0].ids == [f"p{row}" for row in sampled_rows(500, 80, 5)]
    counted = altmas.Pool.from_table(whole, prediction="answer", sample=80, sample_seed=5)
    assert counted.ids == sampled_rows(500, 80, 5).tolist()
    assert altmas.Pool.from_table(whole, prediction="answer", sample=500).sampled_from is None
    with pytest.raises(PoolError, match="has 500 rows, of which a sample of 501 cannot be taken"):
        altmas.Pool.from_table(tmp_path / "t.parquet", prediction="answer", sample=501)
    with pytest.raises(PoolError, match="was not understood"):
        altmas.Pool.from_table(whole, prediction="answer", sample=-1)
    np.save(tmp_path / "short.npy", array[:300])
    with pytest.raises(PoolError, match="300 rows"):
        altmas.Pool.sample_from(tmp_path / "t.parquet", 80, prediction="answer", features=tmp_path / "short.npy")


def _has_pandas():
    try:
        import pandas  # noqa: F401
    except ImportError:
        return False
    return True


def test_a_large_table_is_sampled_unless_somebody_says_otherwise(tmp_path, monkeypatch):
    monkeypatch.setattr("altmas.pool.first_phase.LARGE", 400)
    monkeypatch.setattr("altmas.pool.first_phase.AUTOMATIC", 150)
    pq.write_table(table().append_column("k", pa.array(np.ones(500))), tmp_path / "t.parquet")
    given = {"prediction": "answer", "id": "id"}
    pool = altmas.Pool.from_table(tmp_path / "t.parquet", **given)
    assert (len(pool), pool.sampled_from) == (150, 500)
    assert altmas.Pool.from_table(tmp_path / "t.parquet", **given, sample=0).sampled_from is None
    assert altmas.Pool.from_table(tmp_path / "t.parquet", **given, weight="k").sampled_from is None
    assert altmas.Pool.from_table(table(400), **given).sampled_from is None
    said = run("init", tmp_path / "s.altmas", "--data", tmp_path / "t.parquet", "--prediction", "answer", "--id", "id")
    assert "a random sample of 150 of 500 rows" in said.err + said.out
    with altmas.Session.open(tmp_path / "s.altmas") as session:
        assert session.pool.sampled_from == 500 and session.estimate().about == "source"


def test_a_session_records_both_numbers_and_opens_with_the_same_rows(tmp_path):
    whole = table()
    pq.write_table(whole, tmp_path / "t.parquet")
    truth = dict(zip(whole["id"].to_pylist(), whole["truth"].to_pylist(), strict=True))
    pools = {
        "file": altmas.Pool.sample_from(tmp_path / "t.parquet", 120, seed=2, prediction="answer", id="id"),
        "memory": altmas.Pool.sample_from(whole, 120, seed=2, prediction="answer", id="id"),
        "pool": altmas.Pool.sample_from(
            altmas.Pool.from_table(tmp_path / "t.parquet", prediction="answer", id="id"), 120, seed=2
        ),
    }
    answers = []
    for name, pool in pools.items():
        with altmas.Session.create(tmp_path / f"{name}.altmas", pool, metrics=["accuracy", "recall[yes]"]) as session:
            session.tell({one.id: truth[one.id] for one in session.ask(40)})
            answers.append(list(session.estimate()))
        with altmas.Session.open(tmp_path / f"{name}.altmas") as session:
            assert (len(session.pool), session.pool.sampled_from) == (120, 500)
            assert list(session.estimate()) == answers[-1]
            assert session.ask(5) is not None
    assert answers[0] == answers[1] == answers[2]
    everything = altmas.Pool.from_table(tmp_path / "t.parquet", prediction="answer", id="id")
    with pytest.raises(PoolMismatch, match="sample"):
        altmas.Session.open(tmp_path / "memory.altmas", everything._taken(sampled_rows(500, 120, 2)))
    other = table()
    pq.write_table(pa.concat_tables([other, other.slice(0, 1)]), tmp_path / "t.parquet")  # a row more, another sample
    with pytest.raises(PoolMismatch):
        altmas.Session.open(tmp_path / "file.altmas")


def test_the_factors_of_the_part_that_was_not_sampled():
    assert seldom_outside(0) == 1 and seldom_outside(1) == 0
    for f in (0.1, 0.5, 0.9):  # M rows stay outside with chance at most (1 - f)^M
        assert seldom_outside(f) == pytest.approx(f / -math.log(1 - f)) and seldom_outside(f) < 1
    assert left_when_labelled(0.3, 0) == 0.3 and left_when_labelled(1, 0.4) == 1
    n, m, size = 200, 50, 1000
    assert left_when_labelled(m / n, n / size) == pytest.approx((1 / n - 1 / size) / (1 / m - 1 / size))


@pytest.mark.parametrize("method", [ASSURED, Tradition()])
def test_with_every_point_labelled_the_variance_of_the_sample_is_left(method):
    pool, truth = world(n=3000, features=False)
    rows = sampled_rows(3000, 600, 1)
    sample, labels = pool._sample(rows), truth[rows]
    task = Task(sample, metric_set(["accuracy"], sample))
    some = label_until(method, task, History(600), 40, 40, labels.__getitem__)
    history = replace(some, labels=dict(enumerate(labels.tolist())))
    (one,) = method.estimate(task, history)
    q = float((labels == sample.predictions).mean())
    sd = math.sqrt((1 - 600 / 3000) * q * (1 - q) / 599)
    assert one.value == pytest.approx(q)
    assert one.high - one.low == pytest.approx(2 * 1.96 * sd, rel=0.06)
    assert one.effective_labels == pytest.approx(600, rel=0.02) and one.least_half_width > 0.8 * 1.96 * sd
    half = label_until(method, task, History(600), 300, 100, labels.__getitem__)
    (one,) = method.estimate(task, half)
    expected = math.sqrt((1 / 300 - 1 / 3000) * q * (1 - q))
    assert one.high - one.low == pytest.approx(2 * 1.96 * expected, rel=0.15)
    assert one.effective_labels == pytest.approx(300, rel=0.25)


def covered(method, size, n, labels, runs, accuracy=0.85, volunteered=0, asked=ASKED):
    """(share of runs whose interval covers the value on all rows, bias over RMSE, mean width) of each metric."""
    pool, truth = world(n=size, accuracy=accuracy, features=False)
    metrics = metric_set(list(asked), pool)
    true = truth_values(pool, truth, metrics)
    inside, errors, widths = [], [], []
    for seed in range(runs):
        rows = sampled_rows(size, n, seed)
        task = Task(pool._sample(rows), metrics, seed=seed)
        told = {row: int(truth[rows[row]]) for row in range(volunteered)}
        history = label_until(method, task, History(n, labels=told), labels, 40, truth[rows].__getitem__)
        found = list(method.estimate(task, history))
        inside.append([one.low <= true[one.metric] <= one.high for one in found])
        errors.append([one.value - true[one.metric] for one in found])
        widths.append([one.high - one.low for one in found])
    errors = np.array(errors)
    return np.mean(inside, 0), errors.mean(0) / np.sqrt((errors**2).mean(0)), np.mean(widths, 0)


@pytest.mark.parametrize("method", [ASSURED, Tradition()])
def test_intervals_cover_the_value_on_all_rows(method):
    share, bias, _ = covered(method, size=3000, n=150, labels=120, runs=24)
    assert (share >= 0.86).all() and (np.abs(bias) < 0.5).all()  # 0.95 less 2 standard errors of 24 runs


def test_an_interval_that_forgot_the_first_phase_would_not_cover(monkeypatch):
    monkeypatch.setattr(Task, "fraction", property(lambda self: 1.0))
    share, _, _ = covered(ASSURED, size=3000, n=150, labels=145, runs=12, asked=("accuracy",))
    assert share[0] < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("method", [ASSURED, Tradition()])
@pytest.mark.parametrize(
    ("size", "n", "labels", "accuracy", "volunteered"),
    [(4000, 200, 150, 0.85, 0), (4000, 200, 200, 0.85, 0), (2000, 1000, 200, 0.97, 0), (4000, 300, 200, 0.85, 80)],
)
def test_intervals_cover_the_value_on_all_rows_in_many_runs(method, size, n, labels, accuracy, volunteered):
    share, _, _ = covered(method, size, n, labels, 300, accuracy, volunteered)
    assert (share >= 0.93 - 2 * math.sqrt(0.93 * 0.07 / 300)).all()


def test_simulate_takes_a_sample_in_every_run():
    pool, truth = world(n=1500, features=False)
    found = simulate(
        pool, truth, methods=["tradition"], budgets=[100], repeats=60, sample=120, n_jobs=1, progress=False
    )
    (row,) = found.summary()
    assert row["truth"] == pytest.approx(float((pool.predictions == truth).mean()))
    assert row["coverage"] >= 0.86 and row["rmse"] > 0.02
    sample = altmas.Pool.sample_from(pool, 200)
    with pytest.raises(PlanError, match="random sample of 1,500 rows"):
        simulate(sample, truth[:200], budgets=[50], repeats=1, progress=False)
    with pytest.raises(MethodError, match="random sample"):
        simulate(world(200, scores=True)[0], world(200)[1], methods=["ppi"], sample=80, budgets=[50], progress=False)
    with pytest.raises(PlanError, match="leave one of the two out"):
        simulate(pool, truth, sample=100, about="future", budgets=[50], repeats=1, progress=False)


def test_plan_says_what_it_is_about_and_widths_have_a_floor():
    pool, _ = world(n=4000, features=False)
    sample = altmas.Pool.sample_from(pool, 100)
    plan = plan_widths(sample, budgets=[50, 100], methods=["tradition"], worlds=2)
    assert plan.about == "source"
    last = plan.widths[-1]
    assert last.labels == 100 and last.half_width > 1.5 * math.sqrt(0.8 * 0.2 / 100)


# ---------------------------------------------------------------- with a proof


def test_how_far_a_sample_can_lie_from_its_table():
    rng = np.random.default_rng(0)
    values = (rng.random(2000) < 0.8).astype(float)
    ratio = Ratio.of_points(np.tile([0.0, 1.0], (400, 1)), np.ones((400, 2)))
    sampled = replace(ratio, fraction=400 / 2000)
    q, error = values.mean(), 0.2
    behind, left = sampled.behind(np.array([q]), error)
    assert left == pytest.approx((1 - SLACK) * error)
    assert behind[0] == pytest.approx(math.sqrt(400 * (1 - 399 / 2000) * math.log(1 / (SLACK * error)) / 2))
    sums = [float((values[sampled_rows(2000, 400, seed)] - q).sum()) for seed in range(2000)]
    assert np.mean(np.array(sums) > behind[0]) <= SLACK * error
    assert ratio.behind(np.array([q]), error) == (0.0, error)


@pytest.mark.slow
def test_a_proof_about_all_rows_holds_and_says_what_the_sample_leaves_open():
    pool, truth = world(n=4000, features=False)
    metrics = metric_set(["accuracy", "precision[1]", "recall[1]", "accuracy@half=odd"], pool)
    true, hits = truth_values(pool, truth, metrics), 0
    for seed in range(6):
        rows = sampled_rows(4000, 300, seed)
        sample = pool._sample(rows)
        task = Task(sample, metrics, seed=seed, budget=200)
        history = label_until(ASSURED, task, History(300), 200, 50, truth[rows].__getitem__)
        for one in metrics:
            low, high = guaranteed_interval(ASSURED, task, history, one)
            plain = guaranteed_interval(ASSURED, replace(task, pool=_unsampled(sample)), history, one)
            assert low <= plain[0] + 1e-9 and high >= plain[1] - 1e-9
            hits += low <= true[one.name] <= high
    assert hits >= 23
    labelled = replace(history, labels=dict(enumerate(truth[rows].tolist())))
    low, high = guaranteed_interval(ASSURED, task, labelled, metrics[0])
    assert 0.05 < high - low < 0.25  # every point is labelled: what is left is the sample
    assert guaranteed_decision(ASSURED, task, labelled, metrics[0], 0.6).answer == "above"
    assert guaranteed_decision(ASSURED, task, labelled, metrics[0], round(true["accuracy"], 2)).answer == "undecided"


def _unsampled(pool):
    other = pool._at(np.arange(len(pool)))
    other.sampled_from = None
    return other


def test_check_is_about_all_rows_and_never_exact():
    pool, truth = world(n=4000, features=False)
    rows = sampled_rows(4000, 60, 0)
    sample = pool._sample(rows)
    session = altmas.Session.create(None, sample, method=ASSURED)
    session.tell({one.id: int(truth[rows[one.index]]) for one in session.ask(60)})
    share = float((sample.predictions == truth[rows]).mean())
    assert session.check(f"accuracy >= {share - 0.01:.3f}").answer == "undecided"
    verdict = session.check("accuracy >= 0.3", guarantee=True)
    assert verdict.answer == "shown" and "all rows" in str(verdict) and verdict.to_dict()["about"] == "source"
    assert session.estimate()[0].low < session.estimate()[0].value < session.estimate()[0].high


def test_a_proof_of_a_difference_of_slices_is_refused():
    pool, _ = world(n=400, features=False)
    sample = altmas.Pool.sample_from(pool, 200)
    with pytest.raises(PlanError, match="no guarantee is offered for"):
        altmas.Session.create(
            None, sample, metrics=["accuracy@half=odd - accuracy@half=even"], guarantee=True, method=ASSURED
        )
    altmas.Session.create(None, sample, metrics=["accuracy"], guarantee=True)


# ---------------------------------------------------------------- what is refused, what is said


def test_methods_about_the_points_alone_refuse():
    pool, _ = world(n=300, scores=True)
    sample = altmas.Pool.sample_from(pool, 200)
    for name in METHODS:
        method = method_named(name) if name not in ("altmas", "bald", "batchbald") else None
        if method is None or method.traits.extra or method.traits.ahead:
            continue
        asked = "f1[1]" if method.traits.metrics and "accuracy" not in method.traits.metrics else "accuracy"
        with pytest.raises(MethodError, match="random sample of 300 rows.*assured"):
            altmas.Session.create(None, sample, method=name, metrics=[asked])


def test_a_sample_does_not_grow():
    pool, _ = world(n=300, features=False)
    more = world(n=100, seed=1, features=False)[0]
    session = altmas.Session.create(None, altmas.Pool.sample_from(pool, 200))
    with pytest.raises(PoolError, match="random sample of 300 rows: of those that came later"):
        session.extend(more)
    with pytest.raises(PoolError, match="the items are a random sample"):
        altmas.Session.create(None, pool).extend(altmas.Pool.sample_from(more, 50))
    session.extend(budget=50)  # what does not touch the points can change


def test_points_asked_for_and_not_answered_change_nothing():
    pool, truth = world(n=900, features=False)
    rows = sampled_rows(900, 300, 0)
    task = Task(pool._sample(rows), metric_set(["accuracy", "recall[1]"], pool))
    history = label_until(ASSURED, task, History(300), 60, 20, truth[rows].__getitem__)
    asked = replace(history, batches=(*history.batches, ASSURED.propose(task, history, 50)))
    assert list(ASSURED.estimate(task, history)) == list(ASSURED.estimate(task, asked))
    assert all(math.isnan(one.value) for one in ASSURED.estimate(task, History(300)))


def test_about_data_to_come_a_sample_is_a_sample_like_any_other():
    pool, truth = world(n=900, features=False)
    rows = sampled_rows(900, 300, 0)
    sample, plain = pool._sample(rows), pool._taken(rows)
    found = []
    for one in (sample, plain):
        task = Task(one, metric_set(["accuracy"], one), about="future")
        history = label_until(ASSURED, task, History(300), 60, 20, truth[rows].__getitem__)
        found.append(list(ASSURED.estimate(task, history)))
    assert found[0] == found[1]


def test_report_json_and_words_say_so():
    pool, truth = world(n=900, features=False)
    rows = sampled_rows(900, 300, 0)
    session = altmas.Session.create(None, pool._sample(rows), method=ASSURED, targets={"accuracy": 0.001})
    session.tell({one.id: int(truth[rows[one.index]]) for one in session.ask(60)})
    content = session.report().content
    assert content["plan"]["about"] == "source" and content["pool"]["sampled_from"] == 900
    assert "All intervals are about 900 rows, of which 300 were taken at random" in str(content["assumptions"])
    assert "all rows that this pool is a random sample of" in str(session.estimate())
    assert "about all rows that this pool is a random sample of" in session.should_stop().reason
    assert json.loads(json.dumps(session.estimate().to_dict()))["about"] == "source"
    cells = content["confusion"]["cells"]
    assert sum(cell["value"] for cell in cells) == pytest.approx(900, rel=0.02)
    assert "the 900 rows of which they are a random sample" in session.report()._repr_html_()


def test_the_command_line_takes_a_sample(tmp_path):
    pq.write_table(table(), tmp_path / "t.parquet")
    given = ["--data", tmp_path / "t.parquet", "--prediction", "answer", "--sample", "100"]
    run("init", tmp_path / "s.altmas", *given, "--id", "id")
    with altmas.Session.open(tmp_path / "s.altmas") as session:
        assert session.pool.sampled_from == 500
    said = run("plan", *given, "--budget", "50")
    assert said.code == 0 and "100 of 500 rows" in said.out + said.err
    found = run("simulate", *given, "--truth", "truth", "--budget", "30", "--repeats", "2", "--jobs", "1")
    assert found.code == 0 and "tradition" in found.out


def test_a_session_that_no_command_could_open_again_is_not_made(tmp_path, monkeypatch):
    pq.write_table(table(), tmp_path / "t.parquet")
    monkeypatch.setattr("altmas.session.archive.LIMIT", 100)
    monkeypatch.setattr("altmas.pool.tables._can_be_read_again", lambda given: "pool.parquet" in str(given))
    given = ["--data", tmp_path / "t.parquet", "--prediction", "answer", "--features", "x", "--id", "id"]
    said = run("init", tmp_path / "s.altmas", *given)
    assert said.code != 0 and "--store pool.parquet" in said.err and not (tmp_path / "s.altmas").exists()
    assert run("init", tmp_path / "s.altmas", *given, "--store", tmp_path / "pool.parquet").code == 0
    assert run("status", tmp_path / "s.altmas").code == 0


def test_a_further_model_may_come_with_all_rows_of_the_table():
    pool, truth = world(n=400, features=False)
    session = altmas.Session.create(None, altmas.Pool.sample_from(pool, 150, seed=2), method=ASSURED)
    session.tell({one.id: int(truth[one.id]) for one in session.ask(60)})
    everything = {row: int(truth[row]) for row in range(400)}  # a model that is always right
    assert session.compare(everything)["accuracy"].second == pytest.approx(1.0)
    session.add_model("new", everything)
    assert session.estimate()["new: accuracy"].value == pytest.approx(1.0)
    with pytest.raises(PoolError, match="400 predictions, the pool has 150 points"):
        session.compare(list(everything.values()))
