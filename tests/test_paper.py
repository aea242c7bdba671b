"""The paper's experiments: which cells there are, that none is run twice, and that a partial run says so."""

import itertools
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from altmas.methods import AltMas, Assured, Bald, Tradition, Trust
from altmas.metrics import metric_set
from altmas.pool import Pool
from benchmarks import paper, paper_page, paper_results
from benchmarks.paper import ABLATIONS, ALL, Cell, Grid, ablation_cells, cells, grid_of, parsed, read, run_all
from benchmarks.paper_claims import verdict
from benchmarks.paper_figures import draw_errors, draw_surrogates
from benchmarks.paper_found import Found
from benchmarks.paper_page import page_with
from benchmarks.paper_results import OVERALL, errors, rows_of, sizes_of, story
from benchmarks.store import RESULTS, read_numbers, write_csv

N = 240


@dataclass
class Named:
    truth: Any
    predictions: Any


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A pool of three clouds in place of MNIST, small networks, and runs from 30 labels to 50."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, N)
    x = (2 * np.eye(3)[truth] + rng.normal(size=(N, 3))).astype(np.float32)
    predictions = np.where(rng.random(N) < 0.8, truth, (truth + 1) % 3)
    pool = Pool(x, predictions, classes=["0", "1", "2"])
    quick = {"epochs": 3, "draws": 4}
    made = {"altmas": AltMas(preset="paper", **quick), "bald": Bald(**quick)}
    made |= {"tradition": Tradition(), "trust": Trust(), "assured": Assured()}
    for module in (paper, paper_results):
        monkeypatch.setattr(module, "world", lambda model: (Named(truth, predictions), pool))
    monkeypatch.setattr(paper, "METHODS", made)
    monkeypatch.setattr(paper, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(paper, "FIRST", 30)
    monkeypatch.setattr(paper, "LAST", 50)
    return truth


def test_the_default_grid_is_that_of_the_issue():
    grid = grid_of(parsed([]))
    counts = {method: sum(cell.method == method for cell in grid.figures) for method in paper.METHODS}
    assert counts == {"altmas": 60, "bald": 15, "tradition": 15, "trust": 15, "assured": 60}
    assert len(grid.ablations) == 3 * 3 * len(ABLATIONS)
    assert len({cell.path for cell in grid.in_order()}) == 165 + 90
    assert {cell.step for cell in grid.figures} == {10} and grid_of(parsed(["--step", "1"])).figures[0].step == 1


def test_cells_come_repeat_by_repeat_and_assured_last():
    order = grid_of(parsed([])).in_order()
    late = [cell.method == "assured" for cell in order]
    assert late == sorted(late)
    early = [cell.repeat for cell in order if cell.method in ("altmas", "bald", "tradition", "trust")]
    assert early == sorted(early)
    last_of_first = max(i for i, cell in enumerate(order) if cell.method == "altmas" and cell.repeat == 0)
    assert last_of_first < min(i for i, cell in enumerate(order) if cell.method in ABLATIONS)


def test_the_quick_grid_is_small():
    assert sum(cell.weight for cell in grid_of(parsed(["--quick"])).in_order()) < 20


def test_finished_cells_are_not_run_again(small, monkeypatch):
    wanted = list(cells(("mnist-99",), ("accuracy",), ("tradition", "trust"), 2, 10))
    made = []
    real = paper.trajectory
    monkeypatch.setattr(paper, "trajectory", lambda cell: made.append(cell) or real(cell))
    run_all(wanted[:1], 1)
    assert made == wanted[:1]
    run_all(wanted, 1)
    assert made == wanted
    run_all(wanted, 1)
    assert made == wanted
    assert [record["labels"] for record in read(wanted[-1])] == [30, 40, 50]


def test_a_cell_that_was_interrupted_leaves_nothing_behind_that_counts(small, monkeypatch):
    cell = Cell("mnist-99", ALL, "tradition", 0)

    def broken(cell):
        yield {"labels": 30}
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(paper, "trajectory", broken)
        with pytest.raises(KeyboardInterrupt):
            paper.run(cell)
    assert not cell.path.exists() and read(cell) == []
    paper.run(cell)
    assert len(read(cell)) == 3


@pytest.mark.paper
def test_methods_start_from_the_same_labels_and_read_every_metric_set(small, monkeypatch):
    first: dict[str, Any] = {}
    real = paper.label_until

    def spy(method, task, history, *rest):
        first.setdefault(method.name, dict(history.labels))
        return real(method, task, history, *rest)

    monkeypatch.setattr(paper, "label_until", spy)
    for method in ("altmas", "bald", "tradition", "trust"):
        paper.run(Cell("mnist-99", "21-metrics" if method == "altmas" else ALL, method, 3))
    assert len(first["altmas"]) == 30
    assert first["altmas"] == first["bald"] == first["tradition"] == first["trust"]
    rows = list(rows_of([Cell("mnist-99", ALL, "bald", 3)]))
    assert {row["aim"] for row in rows} == set(paper.AIMS)


@pytest.mark.paper
def test_one_step_costs_one_round(small, monkeypatch):
    from altmas.methods.paper import rounds

    made = []
    real = rounds._round
    monkeypatch.setattr(rounds, "_round", lambda *given: made.append(1) or real(*given))
    records = list(paper.trajectory(Cell("mnist-99", "accuracy", "altmas", 0)))
    assert len(made) == len(records) == 3
    for record in records:
        for mode in ("hard", "expected", "mean"):
            assert len(record[mode]) == 7 and 0 <= record[mode]["accuracy"] <= 1
        assert 0 < record["single"] <= 1 and 0 < record["surrogate"] <= 1


@pytest.mark.paper
def test_the_surrogate_is_judged_as_the_network_sees_the_labelled_points(small):
    """Not by the labels that are pinned: an untrained network is bad even where labels are known."""
    method, (named, pool) = AltMas(preset="paper", epochs=1, max_steps=1, draws=4), paper.world("mnist-99")
    task = paper.Task(pool, paper.metrics_of(ALL, pool))
    history = paper.History(N, (), {row: int(small[row]) for row in range(N - 1)})
    found = paper.reading(paper.round_at(task, history, method.settings), pool, named.truth, task.metrics)
    assert found["surrogate"] < 0.9 and found["single"] < 0.9
    truth = (named.predictions == named.truth).mean()
    assert found["hard"]["accuracy"] == pytest.approx(truth, abs=1 / N + 1e-6)


def test_errors_leave_out_what_is_undefined_and_too_small():
    values, truth = np.array([[[0.5, 0.02, np.nan]]]), np.array([0.4, 0.01, 0.8])
    relative, absolute, undefined = errors(values, truth)
    assert relative[0, 0] == pytest.approx(0.25)
    assert absolute[0, 0] == pytest.approx((0.1 + 0.01) / 2)
    assert undefined[0, 0] == pytest.approx(1 / 3)
    assert np.isnan(errors(values[..., 1:2], truth[1:2])[0]).all()


# ---------------------------------------------------------------- figures and page


@pytest.fixture
def found(small, tmp_path):
    """Reads what is there of a grid of altmas and tradition, two repeats; half the cells are run."""
    grid = Grid(list(cells(("mnist-99",), ("21-metrics",), ("altmas", "tradition"), 2, 10)), [])

    def reading(upto):
        run_all(grid.in_order()[:upto], 1)
        write_csv(tmp_path / "rows.csv", rows_of(grid.figures))
        write_csv(tmp_path / "ablations.csv", rows_of(grid.ablations))
        write_csv(tmp_path / "sizes.csv", sizes_of(grid.figures))
        (tmp_path / "run.json").write_text(json.dumps(story(grid)))
        return Found.read(*(tmp_path / name for name in ("rows.csv", "ablations.csv", "sizes.csv", "run.json")))

    return reading


@pytest.mark.slow
@pytest.mark.paper
def test_a_figure_from_half_the_cells_says_so(found, tmp_path):
    half = found(2)
    for draw in (draw_errors, draw_surrogates):
        figure = draw(half, tmp_path / "figure.png")
        assert "PARTIAL RUN: 2 of 4 cells" in figure.get_suptitle()
        assert (tmp_path / "figure.png").stat().st_size > 5000
    assert "NOT complete: 2 of 4 cells" in paper_page.run_table(half)
    whole = found(4)
    for draw in (draw_errors, draw_surrogates):
        assert "PARTIAL" not in draw(whole, tmp_path / "figure.png").get_suptitle()
    assert "is complete: 4 of 4 cells" in paper_page.run_table(whole)


@pytest.mark.paper
def test_rows_hold_mean_and_standard_error_over_repeats(found):
    whole = found(4)
    runs = [read(Cell("mnist-99", "21-metrics", "altmas", repeat)) for repeat in (0, 1)]
    at_40 = whole.row("mnist-99", "21-metrics", "altmas", 40)
    accuracies = [run[1]["surrogate"] for run in runs]
    assert at_40["repeats"] == 2 and at_40["surrogate"] == pytest.approx(np.mean(accuracies), rel=1e-3)
    assert at_40["surrogate_se"] == pytest.approx(np.std(accuracies, ddof=1) / 2**0.5, rel=1e-3, abs=1e-5)
    overall = whole.row("mnist-99", "21-metrics", "altmas", OVERALL)
    assert overall["surrogate"] == pytest.approx(np.mean([[at["surrogate"] for at in run] for run in runs]), rel=1e-3)


@pytest.mark.paper
def test_rounds_are_counted_by_their_pseudo_labels(found):
    whole = found(4)
    runs = [read(Cell("mnist-99", "21-metrics", "altmas", repeat)) for repeat in (0, 1)]
    counts = [record["pseudo"] for run in runs for record in run]
    assert sum(row["rounds"] for row in whole.sizes) == len(counts) == 6
    assert whole.sizes[0]["rounds"] == sum(count < 500 for count in counts)
    assert "share of the rounds" in paper_page.sizes_table(whole)


def test_a_verdict_needs_two_standard_errors():
    small, large = {"relative": 0.1, "relative_se": 0.01}, {"relative": 0.2, "relative_se": 0.01}
    assert verdict(small, large, "relative")[1] == "confirmed"
    assert verdict(large, small, "relative")[1] == "refuted"
    assert verdict(small, large | {"relative_se": 0.1}, "relative")[1] == "open"
    assert verdict(small, {}, "relative")[1] == "not measured"
    assert verdict({"relative": 0.1, "relative_se": None}, large, "relative")[1] == "open"


def test_the_tables_of_the_page_are_those_of_the_committed_results():
    text = paper_page.PAGE.read_text(encoding="utf-8")
    assert text.count("<!-- table: ") == len(paper_page.TABLES)
    assert page_with(Found.committed(), text) == text


def test_the_committed_results_are_those_of_the_grid():
    grid, rows = grid_of(parsed([])), read_numbers(RESULTS / "paper.csv")
    told = json.loads((RESULTS / "paper_run.json").read_text())
    assert told["cells"] == len(grid.in_order())
    known = {(cell.model, cell.method) for cell in grid.figures}
    assert {(row["model"], row["method"]) for row in rows} <= known
    assert all(1 <= row["repeats"] <= row["wanted"] for row in rows)


def test_ablations_change_one_thing_at_a_time():
    base = ABLATIONS["as published"]
    for name, method in ABLATIONS.items():
        if isinstance(method, AltMas) and method != base:
            changed = [one for one in vars(base) if getattr(base, one) != getattr(method, one)]
            assert len(changed) == 1, name
    assert {cell.aim for cell in ablation_cells(("mnist-99",), tuple(ABLATIONS), 1, 100)} == {"21-metrics"}


def test_an_error_of_the_surrogate_touches_only_the_metrics_that_the_page_says():
    """The model says a, the truth is y, the surrogate says s: one count moves from cell (a, y) to (a, s)."""
    rules = {
        "accuracy": lambda a, y, s: a in (y, s),
        "precision[1]": lambda a, y, s: a == 1 and 1 in (y, s),
        "recall[1]": lambda a, y, s: 1 in (y, s),
    }
    pool = Pool(None, np.repeat([0, 1, 2], 10), classes=[0, 1, 2])
    table = np.random.default_rng(0).integers(5, 20, (3, 3)).astype(float)
    for name, touches in rules.items():
        of_table = metric_set(name, pool)[0].of_table
        for a, y, s in itertools.product(range(3), repeat=3):
            moved = table.copy()
            moved[a, y] -= 1
            moved[a, s] += 1
            changed = abs(float(of_table(moved)) - float(of_table(table))) > 1e-12
            assert changed == (y != s and touches(a, y, s)), (name, a, y, s)
