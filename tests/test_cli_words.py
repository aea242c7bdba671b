"""What the command line takes and says: options in its own words, several values where an option is repeated."""

import ast
import io
import json
import os
import re
from math import nan
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import altmas
from altmas import Pool, Session
from altmas.claims import Claim
from altmas.cli import show
from altmas.cli.simulate import _saying_what_is_kept as saying_what_is_kept
from altmas.cli.speech import spoken
from altmas.errors import PoolError
from altmas.estimates import Estimate
from cli_world import make_session, run, start, write_table

SOURCES = Path(altmas.__file__).parent

ARGUMENT = re.compile(r"\b[a-z_]+=(True|False|None|\.\.\.|\[|\{)|Session\.(open|create)|callable")
"""An argument of a Python function, as sentences name it."""

IN_PYTHON_ONLY = re.compile(
    r"open the session in Python|load it without streaming=True|tune=True|seq=|kind='skip'|\('cost', matrix\)"
)
"""What can only be said of Python: a plan whose functions are not in the file, datasets, arguments of functions."""


def sentences() -> list[str]:
    """Every text that the package raises as an error which the command line may print; values as X."""
    found = []
    for path in SOURCES.rglob("*.py"):
        if {"scenarios", "confidence", "cli"} & set(path.parts):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                text = _text(node.exc.args[0])
                if text:
                    found.append(text)
    return found


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join("X" if isinstance(one, ast.FormattedValue) else _text(one) for one in node.values)
    return ""


def test_no_sentence_of_the_command_line_names_an_argument_of_a_function():
    found = sentences()
    assert len(found) > 200
    left = [said for said in map(spoken, found) if ARGUMENT.search(said) and not IN_PYTHON_ONLY.search(said)]
    assert left == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--double-share", "20"), "--double-share 20 is out of range"),
        (("--confidence", "95"), "--confidence 95 is out of range"),
        (("--budget", "0"), "--budget 0 is out of range"),
        (("--guarantee", "--metric", "mcc"), "--guarantee: no guarantee is offered for 'mcc'"),
        (("--target", "accuracy=5"), "--target 'accuracy': 5 is not a half-width"),
        (("--threshold", "accuracy >= 90"), "--threshold 'accuracy': 90 is no value that it can take"),
        (("--metric", "roc_auc[cat]"), "pass --scores COLUMN"),
        (("--metric", "accuracy@scanner=A"), "name the column with --slice COLUMN"),
    ],
)
def test_errors_name_the_option(given, said, tmp_path):
    table, _ = write_table(tmp_path)
    ran = run("init", tmp_path / "x.altmas", "--data", table, "--prediction", "vendor_label", *given)
    assert ran.code == 2 and said in ran.err.replace("\n", " "), ran.err


# ---------------------------------------------------------------- thresholds, names, zero labels


@pytest.mark.parametrize(
    "written", ["recall[cat] >= 0.9", "recall[cat]>=90%", "recall[cat] > 0.9", "recall[cat]=0.9", "recall[cat]=90%"]
)
def test_a_threshold_is_written_like_a_claim_or_as_name_and_number(written, tmp_path):
    path, _ = make_session(tmp_path, "--metric", "recall[cat]", "--threshold", written)
    with Session.open(path) as session:
        assert session.plan.thresholds == {"recall[cat]": 0.9}


def test_metrics_keep_the_name_they_were_asked_by(tmp_path):
    asked = ("--metric", "sensitivity[cat]", "--metric", "PPV[dog]@scanner=A")
    path, truth = make_session(
        tmp_path, *asked, "--target", "recall[cat]=0.1", "--threshold", "precision[dog]@scanner=A>0.5"
    )
    with Session.open(path) as session:
        session.tell({query.id: truth[str(query.id)] for query in session.ask(40)})
        assert [one.metric for one in session.estimate()] == ["sensitivity[cat]", "ppv[dog]@scanner=A"]
        assert session.plan.targets == {"sensitivity[cat]": 0.1}
        assert session.plan.thresholds == {"ppv[dog]@scanner=A": 0.5}
        same = session.estimate(metrics=["recall[cat]"])["recall[cat]"]
        assert session.estimate()["sensitivity[cat]"].value == same.value
    assert "sensitivity[cat]" in run("status", path).out


def test_a_plan_stored_under_the_plain_name_finds_the_metric_that_was_asked_for(tmp_path):
    path, _ = make_session(tmp_path, "--metric", "sensitivity[cat]")
    with Session.open(path) as session:
        plan = session.plan.from_json(session.plan.to_json() | {"targets": {"recall[cat]": 0.1}})
        assert plan.on(session.pool).targets == {"sensitivity[cat]": 0.1}


def test_before_the_first_label_there_is_a_dash(tmp_path):
    path, _ = make_session(tmp_path, "--metric", "accuracy", "--metric", "recall[cat]")
    for command in ("estimate", "status"):
        rows = [line for line in run(command, path).out.splitlines() if line.startswith(("accuracy", "recall"))]
        assert len(rows) == 2 and all(row.split()[1:3] == ["-", "-"] for row in rows)
    with Session.open(path) as session:
        assert "0.5" not in str(session.estimate()) and "undefined" not in str(session.estimate()[0]).split("-")[0]


# ---------------------------------------------------------------- repeated options


def test_an_option_that_takes_one_value_is_not_given_twice(tmp_path):
    table, _ = write_table(tmp_path)
    ran = run("init", tmp_path / "x", "--data", table, "--prediction", "v2", "--budget", 10, "--budget", 20)
    assert ran.code == 2 and "--budget was given 2 times and takes one value" in ran.err
    assert "20" in ran.err and not (tmp_path / "x").exists()
    path, _ = make_session(tmp_path)
    assert run("status", path, "--json", "--json").code == 0  # a switch says the same twice


def test_estimates_by_several_slices(tmp_path):
    path, truth = make_session(tmp_path, "--slice", "v2")
    with Session.open(path) as session:
        session.tell({query.id: truth[str(query.id)] for query in session.ask(40)})
    found = json.loads(run("estimate", path, "--by", "scanner", "--by", "v2", "--json").out)["by"]
    assert list(found) == ["scanner", "v2"] and found["scanner"]["points"] == {"A": 60, "B": 60}
    assert "scanner: A 60 points" in run("estimate", path, "--by", "scanner", "--by", "v2").out


# ---------------------------------------------------------------- pools


def test_predictions_are_a_keyword():
    assert len(Pool(predictions=["cat", "dog"])) == 2
    assert len(Pool(np.zeros((2, 3)), ["cat", "dog"])) == 2
    with pytest.raises(PoolError, match="a pool without predictions needs"):
        Pool()


@pytest.mark.parametrize("rows", [12, 200])
def test_a_column_of_fractions_is_no_prediction(rows, tmp_path):
    numbers = np.random.default_rng(0).random(rows).round(4)
    (tmp_path / "t.csv").write_text("said\n" + "".join(f"{one}\n" for one in numbers))
    ran = run("init", tmp_path / "s.altmas", "--data", tmp_path / "t.csv", "--prediction", "said")
    assert ran.code == 2 and "expected classes" in ran.err and "--scores" in ran.err
    with pytest.raises(PoolError, match="neither an integer, a string nor a boolean"):
        Pool(predictions=numbers)


# ---------------------------------------------------------------- what help texts promise


def test_the_help_of_compare_says_which_metrics_it_compares():
    said = " ".join(run("compare", "--help").out.replace("│", " ").split())
    assert "By default the metrics of the session." in said and "Default: accuracy" not in said


def test_flags_are_shown_without_a_type():
    shown = run("status", "--help").out
    assert "--quiet" in shown and "bool" not in shown and "<path>" in shown.lower()


def test_a_lease_is_not_negative(tmp_path):
    path, _ = make_session(tmp_path)
    for command in ("label", "ask"):
        refused = run(command, path, "--lease", "-1")
        assert refused.code == 2 and "--lease" in refused.err and "Invalid value" in refused.err


# ---------------------------------------------------------------- what labels are worth


def test_worth_is_shown_from_twenty_drawn_labels_on_and_explained(tmp_path):
    path, truth = make_session(tmp_path)
    for labels, worth in ((15, "-"), (5, "20")):
        with Session.open(path) as session:
            for query in session.ask(labels):
                session.tell(query.id, truth[str(query.id)])
        shown = run("estimate", path)
        for out in (shown.out, run("status", path).out):
            row = next(line.split() for line in out.splitlines() if line.startswith("accuracy"))
            assert row[row.index("fixed-n") - 1] == worth, out
        page = json.loads(run("report", path, "--json").out)["metrics"][0]
        assert (page["worth"], page["gain"]) == ((None, None) if worth == "-" else (20, 1))
        assert page["effective_labels"] is not None
        assert ("priced" if worth == "20" else "not shown with fewer than 20 drawn labels") in shown.err


# ---------------------------------------------------------------- headings of tables


def test_headings_show_square_brackets_as_they_are(capsys):
    show.table(("wave", "recall[cat]", "recall[/none]"), [("w1", "0.5", "0.6")], right=("recall[cat]",))
    assert capsys.readouterr().out.split()[:3] == ["wave", "recall[cat]", "recall[/none]"]


# ---------------------------------------------------------------- what comes next


def told(path: Path, truth: dict[str, str], n: int) -> None:
    with Session.open(path) as session:
        for query in session.ask(n):
            session.tell(query.id, truth[str(query.id)])


def test_a_forecast_says_with_how_many_labels(tmp_path):
    path, truth = make_session(tmp_path, "--budget", 60)
    told(path, truth, 30)
    assert "ahead: with 60 labels accuracy probably within 0." in run("status", path).out


def test_extending_a_session_whose_budget_is_spent_says_to_raise_it(tmp_path):
    path, truth = make_session(tmp_path, "--budget", 5)
    told(path, truth, 5)
    spent = run("extend", path, "--metric", "recall[cat]")
    assert "the budget of 5 labels is spent; raise it with altmas extend" in spent.err and "next:" not in spent.err
    assert f"next: altmas label {path}" in run("extend", path, "--budget", 50).err


def test_asking_beyond_the_goal_says_that_it_is_reached(tmp_path):
    path, truth = make_session(tmp_path, "--target", "accuracy=0.3")
    assert "goal" not in run("ask", path).err
    told(path, truth, 30)
    asked = run("ask", path, "-n", 2)
    assert len(asked.out.splitlines()) == 2 and "note: the goal is reached (accuracy: ±" in asked.err


def test_a_claim_about_several_metrics_names_them(tmp_path):
    path, _ = make_session(tmp_path)
    said = run("check", path, "per_class >= 0.5").err
    assert "name one of them: 'precision[bird]'" in said and "'recall[cat]'" in said


@pytest.mark.parametrize("claim", ["accuracy => 0.9", "accuracy=>0.9", "accuracy => 90%"])
def test_a_relation_the_other_way_round_is_understood(claim, tmp_path):
    parsed = Claim.parse(claim)
    assert (parsed.metric, parsed.relation, parsed.value) == ("accuracy", ">=", 0.9)
    assert Claim.parse(claim.replace(">", "<")).relation == "<="
    table, _ = write_table(tmp_path)
    path = tmp_path / "x.altmas"
    assert run("init", path, "--data", table, "--prediction", "vendor_label", "--threshold", claim).code == 0
    with Session.open(path) as session:
        assert session.plan.thresholds == {"accuracy": 0.9}


def test_the_help_of_threshold_says_whose_class_it_is():
    said = " ".join(run("threshold", "--help").out.replace("│", " ").split())
    assert "cat being the class whose score is cut" in said


def test_labels_go_to_the_standard_output_as_csv(tmp_path):
    path, truth = make_session(tmp_path)
    told(path, truth, 3)
    ran = start("export", path, "--labels", "-")
    assert ran.returncode == 0 and len(ran.stdout.splitlines()) == 4
    assert ran.stdout.removeprefix("\ufeff").startswith("id,label,")


def test_classes_are_quoted_where_a_session_is_made(tmp_path):
    (tmp_path / "t.csv").write_text('said\n"yes, sure"\nno\n')
    ran = run("init", tmp_path / "s.altmas", "--data", tmp_path / "t.csv", "--prediction", "said")
    assert "2 classes: 'no', 'yes, sure'" in ran.out


# ---------------------------------------------------------------- files that cannot be written


def test_nobody_is_asked_to_label_where_no_label_could_be_recorded(tmp_path, monkeypatch):
    path, _ = make_session(tmp_path)
    monkeypatch.setattr("altmas.cli.label.os.access", lambda file, mode: mode != os.W_OK)
    ran = run("label", path, "--no-browser")
    assert ran.code == 2 and f"{path} cannot be written" in ran.err and "nothing was started" in ran.err


def test_a_read_only_folder_is_said_of_the_name_that_was_given(tmp_path, monkeypatch):
    path, _ = make_session(tmp_path)
    monkeypatch.setattr("altmas.report.os.access", lambda file, mode: mode != os.W_OK)
    ran = run("report", path, "-o", tmp_path / "r.html")
    assert ran.code == 2 and f"{tmp_path / 'r.html'} cannot be written: the folder" in ran.err
    (tmp_path / "taken").write_text("")
    roles = ("--data", tmp_path / "preds.csv", "--prediction", "vendor_label", "--truth", "label")
    ran = run("simulate", *roles, "--results", tmp_path / "taken" / "r.jsonl")
    assert ran.code == 2 and f"{tmp_path / 'taken' / 'r.jsonl'} cannot be written" in ran.err


def test_a_table_as_spreadsheets_write_it_in_some_countries_makes_a_session(tmp_path):
    rows = "".join(f"{k};{'gültig' if k % 3 else 'ungültig'};{k / 7:.3f}\n".replace(".", ",") for k in range(30))
    (tmp_path / "t.csv").write_bytes(f"id;Urteil;p\n{rows}".encode("cp1252"))
    roles = ("--data", tmp_path / "t.csv", "--id", "id", "--prediction", "Urteil", "--features", "p")
    refused = run("init", tmp_path / "s.altmas", *roles)
    assert refused.code == 2 and "--encoding cp1252" in refused.err
    made = run("init", tmp_path / "s.altmas", *roles, "--encoding", "cp1252")
    assert made.code == 0 and "its columns are separated by semicolons" in made.err and "'gültig'" in made.out
    with Session.open(tmp_path / "s.altmas") as session:  # read again in the same way
        assert session.pool.classes == ("gültig", "ungültig") and session.pool.features.shape == (30, 1)


def test_images_that_are_not_there_are_noticed_when_the_session_is_made(tmp_path):
    (tmp_path / "there.png").write_bytes(b"")
    rows = "".join(f"{k},{'ab'[k % 2]},{'there' if k % 2 else 'gone'}.png\n" for k in range(6))
    (tmp_path / "t.csv").write_text(f"id,said,image\n{rows}")
    roles = (
        "--data",
        tmp_path / "t.csv",
        "--id",
        "id",
        "--prediction",
        "said",
        "--features",
        "none",
        "--show",
        "image",
    )
    made = run("init", tmp_path / "s.altmas", *roles)
    assert made.code == 0
    assert (
        f"note: 3 of the first 6 image paths lead to no file, such as 'gone.png'; paths start at {tmp_path}" in made.err
    )
    (tmp_path / "gone.png").write_bytes(b"")
    assert "lead to no file" not in run("init", tmp_path / "u.altmas", *roles).err


# ---------------------------------------------------------------- simulate


def test_a_truth_that_no_prediction_can_equal_is_refused(tmp_path):
    table, _ = write_table(tmp_path)
    ran = run("simulate", "--data", table, "--prediction", "vendor_label", "--truth", "scanner")
    assert ran.code == 2 and "--truth 'scanner' and --prediction 'vendor_label' have no value in common" in ran.err
    assert "(truth: 'A', 'B'; predictions: 'bird', 'cat', 'dog')" in ran.err


def test_a_simulation_that_is_interrupted_says_what_is_kept(tmp_path, monkeypatch, capsys):
    results = tmp_path / "runs.jsonl"
    results.write_text('{"settings": 1}\n{"key": "a"}\n{"key": "b"}\n{"key": "c')
    for file, said in ((results, f"stopped; 2 finished runs kept in {results}"), (None, "no run is kept (--results")):
        with pytest.raises(KeyboardInterrupt), saying_what_is_kept(file):
            raise KeyboardInterrupt
        assert said in capsys.readouterr().err


def test_the_help_of_simulate_says_what_ranks():
    assert "with --rank assured alone, as tradition does not rank" in " ".join(
        run("simulate", "--help").out.replace("│", " ").split()
    )


COLUMNS = ("wave", "labels", "interval", "change", "at every look", "drop")
LEVELS = [("2026-11", "86", "[0.650, 0.829]", "+0.281 [+0.101, +0.468]", "[0.603, 0.885]", "looks so, not shown yet")]


@pytest.mark.parametrize(("width", "most"), [(200, 200), (96, 96), (84, 84), (50, 1000), (20, 1000)])
def test_a_narrow_terminal_folds_sentences_and_cuts_nothing(monkeypatch, width, most):
    written = io.StringIO()
    monkeypatch.setattr(show, "console", lambda: Console(file=written, width=width, highlight=False))
    show.table(COLUMNS, LEVELS, right=COLUMNS[1:5])
    lines = written.getvalue().splitlines()
    for whole in (*COLUMNS[:-1], *LEVELS[0][:-1]):
        assert any(whole in line for line in lines), whole
    said = " ".join(line[-24:] for line in lines).split()
    assert {"looks", "so,", "not", "shown", "yet"} <= set(said) and max(map(len, lines)) <= most


def test_names_and_intervals_of_metrics_are_whole_on_eighty_columns(monkeypatch, capsys):
    written = io.StringIO()
    monkeypatch.setattr(show, "console", lambda: Console(file=written, width=80, highlight=False))
    note = "an estimate near 0 is too high: errors of either sign in a bin add up"
    show.estimates([Estimate("calibration_error", 0.117, 0.05, 0.2426, 0.95, 60, 78.0, "asymptotic", note)], 60)
    first = next(line for line in written.getvalue().splitlines() if "calibration_error" in line)
    assert "[0.0500, 0.2426]" in first and max(map(len, written.getvalue().splitlines())) <= 80
    assert capsys.readouterr().out == f"calibration_error: {note}\n"


def test_prose_is_broken_between_words_alone(capsys):
    path = "/tmp/a-folder/" + "of-a-long-name/" * 8 + "demo-report.html"
    show.paragraph(f"{'word ' * 18}written to {path} and --no-reveal with it")
    lines = capsys.readouterr().out.splitlines()
    assert path in lines and all(len(line) <= 100 for line in lines if line != path)


def test_what_is_said_of_several_metrics_stands_once_below_the_table(capsys):
    few, none = "no interval: fewer than 40 labels count so far", "undefined: no label yet"
    rows = [("accuracy", ""), ("macro_f1", few), ("kappa", few), ("mcc", none)]
    show.estimates([Estimate(name, 0.5, nan, nan, 0.95, 30, nan, "none", note) for name, note in rows], 30)
    said = capsys.readouterr().out.splitlines()
    assert said[-2:] == ["macro_f1, kappa: fewer than 40 labels count so far", "mcc: no label yet"]
    assert all(line.rstrip().endswith("no interval") for line in said[2:6])
    show.estimates([Estimate(name, nan, nan, nan, 0.95, 0, nan, "none", none) for name, _ in rows], 0)
    assert capsys.readouterr().out.splitlines()[-1] == "all metrics: no label yet"
