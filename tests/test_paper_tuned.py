"""The paper's methods with tuned networks: which runs there are, what they share, and what the page says of them."""

import re
from dataclasses import replace

import numpy as np
import pytest

from altmas.history import History
from altmas.methods import Bald, Task
from altmas.methods.paper.rounds import tuned_at, uniform_batch
from benchmarks import paper, paper_figures, paper_page, paper_tuned, paper_tuned_page
from benchmarks.paper import AIMS, ALL, METHODS, MODELS, Cell
from benchmarks.paper_claims import counted, most_for_the_best
from benchmarks.paper_found import WORDS, Found, error_name, shown
from benchmarks.paper_results import OVERALL
from benchmarks.paper_tuned import LOG_LOSS, METRIC_ERROR, OWN_LABELS, UNTUNED, TunedCell, grid, in_order, last_tuned
from benchmarks.paper_tuned_page import NAMES, tuned_row
from benchmarks.store import read_numbers


def test_values_hold_from_one_doubling_to_the_next():
    assert [last_tuned(labels) for labels in (100, 150, 199, 200, 390, 400, 500)] == [100, 100, 100, 200, 200, 400, 400]


def test_every_panel_has_both_methods_in_every_way_of_tuning():
    cells = grid(3, 2, 1)
    order = in_order(cells)
    assert len({cell.path for cell in order}) == len(order) == sum(map(len, cells.values()))
    panels = {(model, aim) for model in MODELS for aim in AIMS}
    for tuning, repeats in ((UNTUNED, 3), (LOG_LOSS, 3), (METRIC_ERROR, 2)):
        mine = [cell for cell in cells[tuning] if cell.method == "altmas"]
        assert {(cell.model, cell.aim) for cell in mine} == panels and len(mine) == 12 * repeats
        theirs = [cell for cell in cells[tuning] if cell.method == "bald"]
        assert len(theirs) == (12 if tuning == METRIC_ERROR else 3) * repeats
    assert {cell.aim for cell in cells[OWN_LABELS] if cell.method == "altmas"} == {"21-metrics"}
    tuned_early = [cell.repeat for cell in order if cell in {*cells[UNTUNED], *cells[LOG_LOSS]}]
    assert tuned_early == sorted(tuned_early)


@pytest.fixture
def tunings(monkeypatch, tmp_path):
    """Tunings are counted instead of made; the labels that they would be made on are not looked up."""
    made = []

    def found(known, objective):
        made.append((objective, *known))
        return {"learning_rate": 0.001 * len(made), "epochs": 10 + len(made), "dropout": 0.1, "loss": 1.0, "seconds": 0}

    monkeypatch.setattr(paper, "RUNS", tmp_path)
    monkeypatch.setattr(paper_tuned, "random_labels", lambda *panel: panel)
    monkeypatch.setattr(paper_tuned, "tuned_on", found)
    return made


def test_both_methods_and_all_panels_of_a_repeat_share_what_is_tuned_for_log_loss(tunings):
    cells = [cell for cell in grid(2, 1, 1)[LOG_LOSS] if cell.repeat == 0]
    for labels in (100, 200, 300, 400, 500):
        options = {(made.learning_rate, made.epochs, made.dropout) for made in (cell.at(labels) for cell in cells)}
        assert len(options) == 1
    assert [labels for *_, labels in tunings] == [100, 200, 400]
    assert cells[0].at(100) != cells[0].at(200) == cells[0].at(300)
    replace(cells[0], repeat=1).at(100)
    assert len(tunings) == 4


def test_both_methods_of_a_panel_share_what_is_tuned_for_metric_error(tunings):
    cells = grid(1, 1, 1)[METRIC_ERROR]
    options = {(cell.model, cell.aim): set() for cell in cells}
    for cell in cells:
        made = cell.at(100)
        options[cell.model, cell.aim].add(made.learning_rate)
        assert replace(made, learning_rate=0.003, epochs=100, dropout=0.3) == METHODS[cell.method]
    assert len(tunings) == 12 and {objective for objective, *_ in tunings} == {METRIC_ERROR}
    assert all(len(values) == 1 for values in options.values())


def test_on_its_own_labels_a_method_tunes_itself(tunings):
    made = TunedCell("mnist-99", ALL, "bald", 0, 100, OWN_LABELS).at(400)
    assert made == replace(METHODS["bald"], tune=True, tune_for=LOG_LOSS) and not tunings


def test_runs_of_different_ways_of_tuning_lie_apart():
    plain = Cell("mnist-99", ALL, "bald", 0, 100)
    paths = {plain.path, *(TunedCell("mnist-99", ALL, "bald", 0, 100, how).path for how in (*NAMES, OWN_LABELS))}
    assert len(paths) == 1 + 4


@pytest.mark.paper
def test_at_the_first_labels_the_shared_values_are_those_of_tune(monkeypatch, tmp_path):
    """A pool of three clouds, three trials: what the harness finds is what the method finds for itself."""
    from altmas.methods.paper.surrogates import tuning
    from altmas.pool import Pool

    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 240)
    x = (2 * np.eye(3)[truth] + rng.normal(size=(240, 3))).astype(np.float32)
    pool = Pool(x, np.where(rng.random(240) < 0.8, truth, (truth + 1) % 3), classes=["0", "1", "2"])
    method = Bald(draws=4, initial=30)

    class Named:
        pass

    Named.truth = truth
    monkeypatch.setattr(paper, "RUNS", tmp_path)
    monkeypatch.setattr(paper, "world", lambda model: (Named, pool))
    monkeypatch.setattr(paper_tuned, "FIRST", 30)
    monkeypatch.setattr(paper_tuned, "METHODS", METHODS | {"bald": method})
    for name, count in (("RANDOM_TRIALS", 2), ("GUIDED_TRIALS", 1)):
        monkeypatch.setattr(tuning, name, count)
    task = Task(pool, paper.metrics_of(ALL, pool), seed=1)
    first = uniform_batch(task, History(240), 30)
    history = History(240, (first,), {int(row): int(truth[row]) for row in first.indices})
    settings, _ = tuned_at(task, history, replace(method, tune=True).settings)
    found = paper_tuned.tuned_values(LOG_LOSS, "mnist-99", "accuracy", 1, 30)
    training = settings.training
    assert (found["learning_rate"], found["epochs"], found["dropout"]) == (
        training.learning_rate,
        training.epochs,
        settings.dropout,
    )
    again = paper_tuned.tuned_values(LOG_LOSS, "mnist-12", "21-metrics", 1, 30)
    assert again == found and len(paper_tuned.tunings().read()) == 1


# ---------------------------------------------------------------- the page


def table(name):
    """Rows of the table of that name on the page, as lists of cells."""
    text = paper_page.PAGE.read_text(encoding="utf-8")
    block = re.search(rf"<!-- table: {name} -->\n(.*?)<!-- end -->", text, re.DOTALL)[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]


def test_every_error_of_the_page_is_that_of_the_csv():
    rows = read_numbers(paper_tuned.FILE)
    lines = table("tuned")
    assert len(lines) == len(MODELS) * len(AIMS)
    columns = [(method, tuning) for method in ("altmas", "bald") for tuning in NAMES] + [("tradition", UNTUNED)]
    for (model, aim), line in zip(((m, a) for m in MODELS for a in AIMS), lines, strict=True):
        for (method, tuning), cell in zip(columns, line[3:], strict=True):
            wanted = (tuning, 100, model, aim, method, "own" if method == "tradition" else "hard", OVERALL)
            names = ("tuning", "step", "model", "aim", "method", "reading", "labels")
            same = [row for row in rows if tuple(row[name] for name in names) == wanted]
            assert cell.strip("*") == (shown(same[0], error_name(model, aim)) if same else "not run")


def test_every_error_in_smaller_steps_is_that_of_the_csv():
    tuned = [row for row in read_numbers(paper_tuned.FILE) if row["step"] != 100]
    plain = Found.committed().rows
    words = {word: aim for aim, word in WORDS.items()}
    lines = table("tuned steps")
    assert len(lines) >= len(MODELS) * len(AIMS)
    for step, model, metrics, repeats, *cells in lines:
        aim = words[metrics.removesuffix(" (absolute error)")]
        for method, (untuned, with_tuning) in (("altmas", cells[:2]), ("bald", cells[2:4])):
            who = {"model": model, "aim": aim, "method": method, "reading": "hard", "labels": OVERALL}
            [own] = [row for row in tuned if row["step"] == int(step) and who.items() <= row.items()]
            [other] = [row for row in plain if who.items() <= row.items()]
            name = error_name(model, aim)
            assert [untuned.strip("*"), with_tuning.strip("*")] == [shown(other, name), shown(own, name)]
            assert method == "bald" or own["repeats"] == int(repeats)


def test_the_page_counts_the_runs_that_are_in_the_csv():
    runs = {(row["tuning"], row["step"]): row for row in read_numbers(paper_tuned.RUN_FILE)}
    lines = table("tuned run")
    assert sorted(line[1:4] for line in lines) == sorted(
        [str(step), str(run["finished"]), str(run["cells"])] for (_, step), run in runs.items()
    )
    for tuning, repeats in zip(NAMES, zip(*(line[2].split(", ") for line in table("tuned")), strict=True), strict=True):
        mine = sum(map(int, repeats))
        assert mine <= runs[tuning, 100]["finished"]


def test_other_steps_are_tuned_for_log_loss_alone(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(paper_tuned, "run_all", lambda cells, jobs: ran.extend(cells))
    monkeypatch.setattr(paper_tuned, "keep_csv", lambda *_, **__: None)
    monkeypatch.setattr(paper_page, "write_page", lambda found: None)
    monkeypatch.setattr(paper_figures, "draw_tuned", lambda found, path: None)
    monkeypatch.setattr(paper, "RUNS", tmp_path)
    given = "--step 1 --models mnist-70 --aims accuracy,precision-2 --repeats 1"
    paper_tuned.main(given.split())
    assert {(cell.model, cell.aim, cell.method, cell.step, cell.tuning) for cell in ran} == {
        ("mnist-70", "accuracy", "altmas", 1, LOG_LOSS),
        ("mnist-70", "precision-2", "altmas", 1, LOG_LOSS),
        ("mnist-70", ALL, "bald", 1, LOG_LOSS),
    }


def test_the_figure_says_what_is_missing(tmp_path):
    from benchmarks.paper_figures import draw_tuned

    found = Found.committed()
    missing = [{"tuning": tuning, "cells": 10, "finished": 7, "seconds": 1} for tuning in paper_tuned.TUNINGS]
    title = draw_tuned(replace(found, tuned_run=missing), tmp_path / "figure.png").get_suptitle()
    assert "PARTIAL RUN: 21 of 30 runs" in title and (tmp_path / "figure.png").stat().st_size > 5000


def test_random_labels_have_one_row_for_all_ways_of_tuning():
    found = Found.committed()
    rows = [tuned_row(found, tuning, "mnist-99", "accuracy", "tradition") for tuning in NAMES]
    assert rows[0] == rows[1] == rows[2] != {}


def test_the_claim_about_augmentation_needs_all_models():
    assert most_for_the_best({"mnist-99": 0.1, "mnist-70": 0.0}) == "not measured"
    assert most_for_the_best({"mnist-99": 0.1, "mnist-70": 0.0, "mnist-12": -0.1}) == "confirmed"
    assert most_for_the_best({"mnist-99": 0.1, "mnist-70": 0.2, "mnist-12": -0.1}) == "refuted"


def test_panels_that_were_not_run_are_counted_as_such():
    here = {"relative": 0.1, "relative_se": 0.001, "absolute": 0.1, "absolute_se": 0.001}
    there = {name: 2 * value for name, value in here.items()}

    def row(model, aim, method):
        return {} if model == "mnist-12" else here if method == "altmas" else there

    assert counted(row, "bald") == "smaller error in 8 of 12 panels, larger in 0, open in 0, not measured in 4"
    lines = paper_tuned_page.claims_table(replace(Found.committed(), tuned=[])).splitlines()[2:]
    counts = [line.count("not measured") for line in lines]
    assert counts == [3] + [4] * 14  # what is untuned in steps of 10 comes from another file, and random labels too
