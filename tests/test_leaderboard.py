"""The leaderboard runs what can be run, continues where it stopped, and finds the best without flattering it."""

import csv
import json

import numpy as np
import pytest

from altmas.methods import METHODS, method_named
from altmas.version import __version__
from benchmarks import leaderboard, leaderboard_page
from benchmarks.data import NamedPool
from benchmarks.leaderboard import EVERY, Cell, asks, can, cells, repeats_of, rows_of, run_all, run_cell
from benchmarks.leaderboard_page import compared, summary, with_interval


def named(name: str, *, features: bool, scores: bool, classes: int = 3) -> NamedPool:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, classes, 500)
    x = 2 * np.eye(classes)[truth] + rng.normal(size=(500, classes))
    values = np.exp(x - x.max(1, keepdims=True))
    values /= values.sum(1, keepdims=True)
    given = values.astype(np.float32) if scores else None
    codes = [str(code) for code in range(classes)]
    return NamedPool(name, x.astype(np.float32) if features else None, values.argmax(1), truth, given, codes)


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """Two small pools instead of the real ones, and runs kept elsewhere."""
    pools = {"whole": named("whole", features=True, scores=True), "bare": named("bare", features=False, scores=False)}
    caches = (leaderboard.known, leaderboard.pool_in, leaderboard.load_truth, leaderboard_page.runs_of)
    monkeypatch.setattr(leaderboard, "load", pools.__getitem__)
    monkeypatch.setattr(leaderboard, "RUNS", tmp_path)
    for cache in caches:
        cache.cache_clear()
    yield list(pools)
    for cache in caches:
        cache.cache_clear()


# ---------------------------------------------------------------- who can


def test_who_cannot_is_what_the_methods_declare(toys):
    """Listed and not run: by lacking scores or features, and by the kinds of metrics."""
    for cell in cells(toys, list(METHODS)):
        metrics, reason = can(cell)
        traits = method_named(cell.method).traits
        pool = leaderboard.pool_in(cell.pool, cell.track)
        there = {"scores": pool.scores is not None, "features": pool.features is not None}
        there["scores or features"] = any(there.values())
        if not all(there[part] for part in traits.requires):
            assert not metrics and reason.startswith("needs ")
        elif not traits.metrics:
            assert metrics and not reason
    assert can(Cell("bare", "hard", "accuracy", "sawade")) == ([], "needs scores or features")
    assert can(Cell("whole", "hard", "class", "oasis")) == ([], "needs scores")
    metrics, reason = can(Cell("whole", "scores", "accuracy", "oasis"))
    assert not metrics and "cannot estimate 'accuracy'" in reason
    assert len(can(Cell("whole", "scores", "class", "oasis"))[0]) == 2


def test_what_is_asked_follows_the_pool(toys):
    wanted = asks(leaderboard.known("whole"))
    often = np.bincount(leaderboard.known("whole").predictions).argmax()
    assert wanted["average"] == ["macro_f1"] and wanted["class"] == [f"precision[{often}]", f"recall[{often}]"]
    rare = NamedPool("abt-buy-svm", None, np.zeros(3, int), np.zeros(3, int), None, ["no match", "match"])
    assert asks(rare) == {"accuracy": ["accuracy"], "class": ["f1[match]", "precision[match]", "recall[match]"]}
    many = NamedPool("many", None, np.zeros(3, int), np.zeros(3, int), None, [str(c) for c in range(1000)])
    assert asks(many) == {"accuracy": ["accuracy"]}


def test_methods_that_see_no_scores_are_run_once(toys):
    found = [cell for cell in cells(["whole"], ["tradition", "altmas", "ppi"]) if cell.track == "scores"]
    assert [cell.method for cell in found] == ["ppi"]
    assert leaderboard_page.cell_of("whole", "scores", "accuracy", "altmas") == Cell("whole", "hard", EVERY, "altmas")


# ---------------------------------------------------------------- running


def test_a_leaderboard_goes_on_where_it_stopped(toys, monkeypatch):
    cell = Cell("whole", "hard", EVERY, "tradition")
    run_cell(cell, 2)
    before = cell.path.read_text()
    with cell.path.open("a") as file:
        file.write('{"key": "Tradition')  # killed while writing
    made = []
    real = METHODS["tradition"].estimate
    monkeypatch.setattr(METHODS["tradition"], "estimate", lambda *given: made.append(1) or real(*given))
    run_cell(cell, 3)
    assert cell.path.read_text().startswith(before) and len(made) == len(leaderboard.BUDGETS)
    assert {row["repeat"] for row in rows_of(cell)} == {0, 1, 2}
    assert {row["labels"] for row in rows_of(cell)} == set(leaderboard.BUDGETS)


@pytest.mark.slow
def test_all_cells_grow_together_and_the_page_reads_them(toys, tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard, "REPEATS", {"tradition": 6})
    monkeypatch.setattr(leaderboard, "USUAL", 4)
    order = []
    real = leaderboard.run_cell
    monkeypatch.setattr(
        leaderboard, "run_cell", lambda cell, upto: order.append((cell.method, upto)) or real(cell, upto)
    )
    run_all(list(cells(toys, ["tradition", "stratified"])), 1, False, rounds=2)
    half = order.index(("tradition", 6))
    assert ("stratified", 2) in order[:half] and ("stratified", 4) in order[half:]
    files = {"TABLE": "board.csv", "BEST": "best.csv", "FIGURE": "board.png", "PAGE": "board.md"}
    for name, value in files.items():
        monkeypatch.setattr(leaderboard_page, name, tmp_path / value)
    marks = "".join(f"<!-- table: {name} -->\n<!-- end -->\n" for name in leaderboard_page.TABLES)
    leaderboard_page.PAGE.write_text("before\n" + marks + "after\n")
    leaderboard_page.rewrite(toys)
    text = leaderboard_page.PAGE.read_text()
    assert text.startswith("before") and text.endswith("after\n") and f"| `stratified` | {__version__} | 4 |" in text
    assert (tmp_path / "board.png").stat().st_size > 10_000
    with (tmp_path / "board.csv").open() as file:
        rows = list(csv.DictReader(file))
    here = [r for r in rows if (r["pool"], r["method"], r["metric"]) == ("bare", "stratified", "accuracy")]
    assert [row["status"] for row in here] == ["cannot: needs scores or features"]
    assert {row["status"] for row in rows if row["method"] == "assured"} == {"not run"}


def test_rows_without_runs_here_stay_with_the_version_they_are_of(toys):
    run_cell(Cell("whole", "hard", EVERY, "tradition"), 3)
    key = {"pool": "whole", "track": "hard", "metric": "accuracy"}
    common = {"version": "0.0.9", "status": "run", "labels": 100, "repeats": 40}
    old = [key | {"method": method} | common for method in ("ppi", "tradition")]
    rows = [row for row in summary(["whole"], old) if (row["track"], row["metric"]) == ("hard", "accuracy")]
    assert [row for row in rows if row["method"] == "ppi"] == old[:1]
    assert {row["version"] for row in rows if row["method"] == "tradition"} == {__version__}
    assert [row["status"] for row in rows if row["method"] == "sawade"] == ["not run"]
    same = [row | {"version": __version__} for row in old]  # a few runs more are no reason to forget forty
    assert [row for row in summary(["whole"], same) if row["method"] == "tradition"][0] == same[1]


def test_the_best_stays_where_not_every_method_was_run_here(toys, tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard_page, "BEST", tmp_path / "best.csv")
    place = ("whole", "hard", "accuracy")
    kept = dict(zip(leaderboard_page.BEST_KEY, (*place, "all"), strict=True))
    kept |= {"best": "sawade", "runs": 40, "ratio": 0.5, "low": 0.4, "high": 0.6}
    leaderboard_page.write_csv(leaderboard_page.BEST, [kept])
    errors = {"assured": np.ones(20), "tradition": np.full(20, 2.0), "sawade": np.ones(20)}
    monkeypatch.setattr(leaderboard_page, "squared_errors", lambda *key: errors if key[:3] == place else {})
    rows = [dict(zip(("pool", "track", "metric"), place, strict=True), status="run", method=name) for name in errors]
    lost = [*rows, rows[0] | {"method": "ppi"}]
    assert leaderboard_page.best_rows(["whole"], lost) == [kept]
    (of_all, sure) = leaderboard_page.best_rows(["whole"], rows)
    assert (of_all["best"], of_all["ratio"], sure["among"]) == ("sawade", 1, "interval")
    assert "`sawade` 0.50 [0.40, 0.60] **behind**" in leaderboard_page.best_table(["whole"], rows)


def test_the_summary_is_what_the_runs_say(toys):
    """Against the definition, by hand: label value, bias, RMSE, coverage and width from the rows themselves."""
    for method, repeats in (("tradition", 5), ("ppi", 3)):
        run_cell(Cell("whole", "hard", EVERY, method), repeats)
    row = next(
        r for r in summary(["whole"])
        if (r["track"], r["metric"], r["method"], r.get("labels")) == ("hard", "macro_f1", "ppi", 200)
    )  # fmt: skip
    mine, random = (
        [r for r in rows_of(Cell("whole", "hard", EVERY, m)) if r["metric"] == "macro_f1" and r["labels"] == 200]
        for m in ("ppi", "tradition")
    )
    errors = np.array([r["value"] - r["truth"] for r in mine])
    plain = np.array([r["value"] - r["truth"] for r in random])
    assert row["repeats"] == 3 and row["bias"] == pytest.approx(errors.mean(), rel=1e-3)
    assert row["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-3)
    assert row["label_value"] == pytest.approx((plain**2).mean() / (errors**2).mean(), rel=1e-3)
    assert row["coverage"] == pytest.approx(np.mean([r["low"] <= r["truth"] <= r["high"] for r in mine]), rel=1e-3)
    assert row["width"] == pytest.approx(np.mean([r["high"] - r["low"] for r in mine]), rel=1e-3)


def test_runs_of_the_default_method_are_those_of_the_label_value_benchmark(toys, tmp_path, monkeypatch):
    lending = leaderboard_page.lending
    monkeypatch.setattr(lending, "RUNS", tmp_path)
    names = [metric.name for metric in lending.metrics_of("whole", leaderboard.pool_in("whole", "hard"), "several")]
    found = [[0.5, 0.4, 0.6, 80.0] if name == "macro_f1" else [None] * 4 for name in names]
    run = {"repeat": 0, "100": [[None] * 4 for _ in names], "200": found, "400": found, "seconds": 1.5}
    (tmp_path / "whole.hard.several.assured.jsonl").write_text(json.dumps(run) + "\n")
    rows = leaderboard_page.runs_of(Cell("whole", "hard", "average", "assured"))["macro_f1"]
    assert [row["labels"] for row in rows] == list(leaderboard.BUDGETS)
    assert np.isnan(rows[0]["value"]) and (rows[1]["low"], rows[1]["seconds"]) == (0.4, 1.5)
    assert leaderboard_page.lent_rows(Cell("whole", "hard", "accuracy", "assured")) == []
    made = []
    monkeypatch.setattr(leaderboard, "run_group", lambda group: made.extend(cell.ask for cell, _ in group))
    run_all(list(cells(["whole"], ["assured"])), 1, False, rounds=1)
    assert set(made) == {"class"}


def test_slow_methods_get_few_runs(toys, monkeypatch):
    cell = Cell("whole", "hard", EVERY, "altmas")
    assert repeats_of(cell, quick=True) == 0 and 0 < repeats_of(cell, quick=False) <= 5
    monkeypatch.setattr(leaderboard, "LARGE", 400)
    assert repeats_of(cell, quick=False) == 2
    assert repeats_of(Cell("whole", "hard", EVERY, "tradition"), quick=False) == 1000


# ---------------------------------------------------------------- the best


def slow_comparison(squared: dict[str, np.ndarray]) -> tuple[str, float]:
    """The same by loops: the even runs choose, the odd ones measure, undefined ones are left out."""
    best, least = "", np.inf
    for name, values in squared.items():
        defined = [v for v in values if v == v]
        even = [values[i] for i in range(0, len(values), 2) if values[i] == values[i]]
        if name == "assured" or len(values) < 10 or len(defined) < 0.9 * len(values):
            continue
        if sum(even) / len(even) < least:
            best, least = name, sum(even) / len(even)
    odd = [v for v in squared[best][1::2] if v == v]
    own = [v for v in squared["assured"] if v == v]
    return best, (sum(odd) / len(odd)) / (sum(own) / len(own))


@pytest.mark.parametrize("seed", range(5))
def test_the_best_and_its_ratio_equal_a_slow_reference(seed):
    rng = np.random.default_rng(seed)
    squared = {
        name: rng.chisquare(1, int(rng.integers(8, 40))) for name in ("assured", "ppi", "lure", "sawade", "bald")
    }
    squared["assured"] = rng.chisquare(1, 30)
    squared["ppi"][3] = np.nan
    squared["lure"][: len(squared["lure"]) // 2] = np.nan  # undefined too often to be the best
    squared["lure"][len(squared["lure"]) // 2 :] *= 1e-6
    found = compared(squared)
    assert (found.best, found.ratio) == (slow_comparison(squared)[0], pytest.approx(slow_comparison(squared)[1]))
    assert found.low < found.ratio < found.high and found.best != "lure"


def test_choosing_and_measuring_on_the_same_runs_would_flatter_the_best():
    """Ten equally good methods: the ratio is 1 on average over 400 tries, and well below where the same runs choose."""
    rng = np.random.default_rng(0)
    halves, same = [], []
    for _ in range(400):
        squared = {str(k): rng.chisquare(1, 40) for k in range(10)} | {"assured": rng.chisquare(1, 4000)}
        halves.append(compared(squared).ratio)
        same.append(min(v.mean() for k, v in squared.items() if k != "assured") / squared["assured"].mean())
    assert np.mean(halves) == pytest.approx(1, abs=0.06)
    assert np.mean(same) < 0.75


def test_a_method_that_is_exact_cannot_be_beaten():
    found = compared({"assured": np.ones(20), "paula": np.zeros(20), "ppi": np.ones(20)})
    assert (found.best, found.ratio, found.low, found.high) == ("paula", 0, 0, 0)


def test_too_few_runs_give_no_best():
    assert compared({"assured": np.ones(40), "ppi": np.ones(5)}) is None
    assert compared({"assured": np.ones(5), "ppi": np.ones(40)}) is None
    assert set(with_interval({"trust": np.ones(3), "ppi": np.ones(3), "assured": np.ones(3)})) == {"ppi", "assured"}
