"""The command line: what each command prints, how it ends, and what it never does."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer.main

import altmas
import forks
from altmas import doctor
from altmas.cli import app, main, show
from altmas.cli.docs import markdown
from cli_world import environment, make_session, run, start, write_table

ROOT = Path(__file__).parent.parent
COMMANDS = {one.name for one in app.registered_commands}


def label_all(path: Path, truth: dict[str, str], n: int) -> None:
    with altmas.Session.open(path) as session:
        session.tell({query.id: truth[str(query.id)] for query in session.ask(n)})


# ---------------------------------------------------------------- the way from a table to an answer


def test_from_a_table_to_an_estimate(tmp_path):
    path, truth = make_session(tmp_path, "--metric", "accuracy", "--metric", "recall[cat]", "--budget", 30)
    asked = json.loads(run("ask", path, "-n", 3, "--json").out)
    assert [sorted(one) for one in asked] == [["id", "index", "item"]] * 3
    assert asked[0]["item"].startswith("animal, number")
    for one in asked:
        told = run("tell", path, one["id"], truth[one["id"]])
        assert told.code == 0 and f"{one['id']}: {truth[one['id']]}" in told.out
    label_all(path, truth, 30)
    estimates = json.loads(run("estimate", path, "--json").out)["estimates"]
    assert [one["metric"] for one in estimates] == ["accuracy", "recall[cat]"]
    assert estimates[0]["labels"] == 30 and estimates[0]["low"] <= estimates[0]["value"] <= estimates[0]["high"]
    status = json.loads(run("status", path, "--json").out)
    assert status["labels"] == status["budget"] == 30 and status["decision"]["stop"]
    assert "stop: the budget of 30 labels is spent" in run("status", path).out


def test_asking_twice_gives_the_same_items_and_never_the_prediction(tmp_path):
    path, _ = make_session(tmp_path)
    first, second = run("ask", path, "-n", 5), run("ask", path, "-n", 5)
    assert first.out == second.out and len(first.out.splitlines()) == 5
    assert not any(name in first.out for name in ("bird", "cat", "dog"))


def test_nothing_is_asked_beyond_the_budget(tmp_path):
    path, truth = make_session(tmp_path, "--budget", 4)
    label_all(path, truth, 4)
    ran = run("ask", path)
    assert ran.code == 0 and ran.out == "" and "the budget of 4 labels is spent" in ran.err


def test_a_label_can_be_skipped_doubted_and_taken_back(tmp_path):
    path, _ = make_session(tmp_path)
    first, second = (one["id"] for one in json.loads(run("ask", path, "-n", 2, "--json").out))
    assert "skipped" in run("skip", path, first, "--reason", "blurred").out
    assert "unsure" in run("skip", path, second, "--unsure", "-a", "ana").out
    status = json.loads(run("status", path, "--json").out)
    assert (status["skipped"], status["unsure"]) == (1, 1)
    assert f"{second}: unsure was taken back" in run("undo", path).out
    assert f"{first}: skip was taken back" in run("undo", path).out
    assert "nothing to undo" in run("undo", path).out


def test_undo_says_which_earlier_answer_counts_again(tmp_path):
    path, _ = make_session(tmp_path)
    (first,) = (one["id"] for one in json.loads(run("ask", path, "--json").out))
    for answer in (("skip", path, first), ("tell", path, first, "cat"), ("tell", path, first, "bird")):
        assert run(*answer).code == 0
    assert run("undo", path).out.strip() == f"{first}: bird was taken back; it counts as cat again, as told before"
    assert run("undo", path).out.strip() == f"{first}: cat was taken back; it is skipped again, as before"
    assert run("undo", path).out.strip() == f"{first}: skip was taken back"


def test_slices_come_with_their_number_of_points(tmp_path):
    path, truth = make_session(tmp_path)
    label_all(path, truth, 40)
    found = json.loads(run("estimate", path, "--by", "scanner", "--json").out)
    assert found["points"] == {"A": 60, "B": 60}
    assert [one["metric"] for one in found["estimates"]] == ["accuracy@scanner=A", "accuracy@scanner=B"]
    assert "scanner: A 60 points, B 60 points" in run("estimate", path, "--by", "scanner").out
    assert found["insufficient"] == []
    assert "did you mean 'scanner'?\ntry: altmas estimate" in run("estimate", path, "--by", "scaner").err


def test_a_slice_with_few_labels_is_called_insufficient(tmp_path):
    path, truth = make_session(tmp_path)
    label_all(path, truth, 8)
    assert run("estimate", path, "--by", "scanner").out.count("insufficient") == 2
    assert len(json.loads(run("estimate", path, "--by", "scanner", "--json").out)["insufficient"]) == 2


@pytest.mark.parametrize("labels", [0, 1, 2, 5])
def test_the_default_method_answers_from_the_first_label_on(tmp_path, labels):
    table, truth = write_table(tmp_path)
    path, roles = tmp_path / "first.altmas", ("--data", table, "--id", "study_id", "--prediction", "vendor_label")
    run("init", path, *roles, "--features", "x1", "--features", "x2", "--metric", "accuracy", "--metric", "recall[cat]")
    for case in list(truth)[:labels]:
        run("tell", path, case, truth[case])
    for one in json.loads(run("estimate", path, "--json").out)["estimates"]:
        assert one["labels"] == labels and (one["low"] is None or one["low"] <= one["value"] <= one["high"])
    assert run("check", path, "f1[dog] >= 0.999").code in (1, 3)


@pytest.mark.parametrize("claim, code", [("accuracy > 0.3", 0), ("accuracy >= 99%", 1), ("accuracy > 0.7", 3)])
def test_check_answers_with_its_exit_code(tmp_path, claim, code):
    path, truth = make_session(tmp_path)
    label_all(path, truth, 60)
    ran = run("check", path, claim)
    assert ran.code == code and ran.out.startswith({0: "shown", 1: "refuted", 3: "undecided"}[code])
    assert json.loads(run("check", path, claim, "--json").out)["answer"] == ran.out.split(":")[0]
    assert run("check", path, "accuracy is good").code == 2


def test_a_second_model_is_compared_by_id(tmp_path):
    path, truth = make_session(tmp_path)
    label_all(path, truth, 80)
    table = tmp_path / "preds.csv"
    head, *rows = table.read_text().splitlines()
    table_of_v2 = tmp_path / "v2.csv"
    table_of_v2.write_text("\n".join([head, *reversed(rows)]))
    ran = run("compare", path, "--predictions", table_of_v2, "--prediction", "v2", "--id", "study_id", "--json")
    (difference,) = json.loads(ran.out)["differences"]
    assert difference["verdict"] == "better" and difference["low"] > 0
    assert "better" in run("compare", path, "--predictions", table, "--prediction", "v2").out


def test_what_is_compared_in_a_session_of_several_models_is_not_said_to_be_left_out(tmp_path):
    write_table(tmp_path)
    path = tmp_path / "two.altmas"
    given = ("--data", tmp_path / "preds.csv", "--id", "study_id", "--prediction", "vendor_label", "--prediction", "v2")
    assert run("init", path, *given, "--metric", "accuracy", "--metric", "share[cat]").code == 0
    ran = run("compare", path, "--predictions", tmp_path / "preds.csv", "--prediction", "v2", "--id", "study_id")
    assert "accuracy" in ran.out and "not compared" in ran.err
    assert "'share[cat]'" in ran.err and "accuracy" not in ran.err


def test_simulation_prints_a_row_for_each_method_metric_and_budget(tmp_path):
    table, _ = write_table(tmp_path)
    options = ("--data", table, "--prediction", "vendor_label", "--truth", "label", "--method", "tradition", "-q")
    ran = run("simulate", *options, "--budget", 20, "--budget", 40, "--repeats", 3, "--jobs", 1, "--json")
    summary = json.loads(ran.out)["summary"]
    assert [(one["method"], one["labels"], one["repeats"]) for one in summary] == [
        ("tradition", 20, 3),
        ("tradition", 40, 3),
    ]
    shown = run("simulate", *options, "--budget", 20, "--repeats", 2, "--jobs", 1)
    assert "label value" in shown.out and shown.err == ""
    with_ids = run("simulate", *options, "--budget", 20, "--repeats", 2, "--jobs", 1, "--id", "study_id")
    assert with_ids.out == shown.out
    assert "ids must be unique" in run("simulate", *options, "--id", "vendor_label").err


def test_a_class_that_is_never_predicted_is_known_to_a_simulation(tmp_path):
    path = tmp_path / "old.csv"
    path.write_text("predicted,label\n" + "cat,cat\ndog,wolf\n" * 20)
    options = ("--prediction", "predicted", "--truth", "label", "--metric", "recall[wolf]", "--method", "tradition")
    ran = run("simulate", "--data", path, *options, "--budget", 10, "--repeats", 2, "--jobs", 1, "-q", "--json")
    assert json.loads(ran.out)["summary"][0]["truth"] == 0.0


def test_a_plan_says_what_labels_would_buy(tmp_path):
    path, truth = make_session(tmp_path, "--target", "accuracy=0.08")
    roles = ("--data", tmp_path / "preds.csv", "--prediction", "vendor_label", "--method", "tradition", "-q")
    found = json.loads(run("plan", *roles, "--budget", 20, "--budget", 80, "--target", "accuracy=0.12", "--json").out)
    assert [one["labels"] for one in found["widths"]] == [20, 80] and 20 < found["targets"][0]["labels"] <= 80
    assert found["widths"][0]["half_width"] > found["widths"][1]["half_width"]
    label_all(path, truth, 20)
    shown = run("plan", path, "-q").out
    assert "Going by 20 known labels" in shown and "±0.08 for accuracy by tradition: about" in shown
    assert run("plan").code == 2


def test_a_plan_for_a_target_says_which_intervals_hold_at_every_look(tmp_path):
    make_session(tmp_path)
    roles = ("--data", tmp_path / "preds.csv", "--prediction", "vendor_label", "-q", "--worlds", 1, "--budget", 30)
    note = "With a target or a threshold intervals of assured and tradition hold at every look"
    with_target, without = (
        " ".join(run("plan", *roles, *more).out.split()) for more in (("--target", "accuracy=0.2"), ())
    )
    assert note in with_target and note not in without


def test_a_plan_of_a_session_says_what_its_status_says(tmp_path):
    path, truth = make_session(tmp_path, "--target", "accuracy=0.15")
    label_all(path, truth, 30)
    ahead = json.loads(run("status", path, "--json").out)["decision"]["forecast"]
    found = json.loads(run("plan", path, "--json", "-q").out)
    assert found["begun"] == 30 and found["widths"][0]["labels"] == 30
    (target,) = (one for one in found["targets"] if one["method"] == found["widths"][0]["method"])
    assert target["labels"] == pytest.approx(30 + ahead["more"]) and not target["reached"]
    shown = run("plan", path, "-q", "--budget", 60, "--target", "accuracy=0.9").out
    assert "30 now" in shown and "±0.9 for accuracy by" in shown and ": reached with the 30 labels so far" in shown
    assert "lie behind the 30 labels" in run("plan", path, "-q", "--budget", 20).err


@pytest.mark.parametrize("labels", [5, 30])
def test_a_plan_shows_one_progress_bar(tmp_path, labels):
    path, truth = make_session(tmp_path)
    label_all(path, truth, labels)
    shown = run("plan", path, "--worlds", 1).err
    assert shown.count("planning") == 1 and "0/" not in shown.replace("10/", "")


def test_a_plan_looks_beyond_a_budget_that_is_spent(tmp_path):
    path, truth = make_session(tmp_path, "--target", "accuracy=0.08", "--budget", 25)
    label_all(path, truth, 25)
    found = json.loads(run("plan", path, "--json", "-q").out)
    assert max(one["labels"] for one in found["widths"]) == 120 and 25 < found["targets"][0]["labels"] < 120


def test_a_plan_looks_beyond_a_budget_that_is_too_small(tmp_path):
    path, _ = make_session(tmp_path, "--target", "accuracy=0.12", "--budget", 20)
    found = json.loads(run("plan", path, "--json", "-q").out)
    assert {one["labels"] for one in found["widths"]} == {5, 10, 20, 40, 80} and found["targets"][0]["labels"] > 20


def test_a_plan_of_a_session_with_every_label_says_that_its_target_is_reached(tmp_path):
    table, truth = write_table(tmp_path)
    path, roles = tmp_path / "done.altmas", ("--data", table, "--id", "study_id", "--prediction", "vendor_label")
    assert run("init", path, *roles, "--metric", "accuracy", "--target", "accuracy=0.05").code == 0
    with altmas.Session.open(path) as session:
        for query in session.ask(len(session.pool)):
            session.tell(query.id, truth[query.id])
        assert len(session.history.labels) == len(session.pool)
    done = run("plan", path, "-q")
    assert done.code == 0 and "accuracy by assured: reached with the" in done.out, done.err


def test_a_half_filled_sheet_shows_how_many_labels_count(tmp_path):
    table, truth = write_table(tmp_path)
    path, roles = tmp_path / "half.altmas", ("--data", table, "--id", "study_id", "--prediction", "vendor_label")
    assert run("init", path, *roles, "--metric", "accuracy", "--metric", "f1[cat]").code == 0
    with altmas.Session.open(path) as session:
        for query in session.ask(40)[::2]:
            session.tell(query.id, truth[query.id])
    for words in ("status", "estimate"):
        shown = run(words, path).out
        assert shown.count("1 of 20") == 2 and "labels that do not count yet: 19 of 20" in shown
        flat = " ".join(shown.replace("│", " ").split())
        assert (
            flat.count("all metrics: insufficient") == 1
            and "0." not in flat.partition("f1[cat]")[2].partition("labels that")[0]
        )


def test_a_report_is_written_or_printed(tmp_path):
    path, truth = make_session(tmp_path)
    label_all(path, truth, 20)
    ran = run("report", path, "-o", tmp_path / "r.html")
    assert ran.code == 0 and ran.out.startswith("accuracy is ") and str(tmp_path / "r.html") in ran.err
    assert "<html" in (tmp_path / "r.html").read_text(encoding="utf-8")[:500]
    assert json.loads(run("report", path, "--json").out)["metrics"][0]["metric"] == "accuracy"


@pytest.mark.parametrize("name", ["r.pdf", "r.txt"])
def test_a_report_is_not_written_under_the_name_of_something_else(tmp_path, name):
    path, _ = make_session(tmp_path)
    ran = run("report", path, "-o", tmp_path / name)
    assert ran.code == 2 and "ends in .html, .htm or .json" in ran.err and "print it" in ran.err
    assert not (tmp_path / name).exists() and not (tmp_path / "r.json").exists()


def test_files_go_out_and_labels_come_back(tmp_path):
    path, truth = make_session(tmp_path)
    sheet = tmp_path / "next.csv"
    assert "5 written" in run("export", path, "-n", 5, sheet).out
    asked = json.loads(run("ask", path, "-n", 5, "--json").out)
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"{one['id']},{truth[one['id']]}\n" for one in asked))
    assert run("import", path, labels).code == 0
    assert json.loads(run("status", path, "--json").out)["labels"] == 5
    assert "5 written" in run("export", path, "--labels", tmp_path / "told.csv").out
    events = tmp_path / "events.jsonl"
    assert "events written" in run("export", path, "--events", events).out
    assert [json.loads(line)["kind"] for line in events.read_text().splitlines()].count("label") == 5
    assert run("export", path, "--labels", "--events", events).code == 2
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(f"id,label\ncase-0,cat\n{asked[0]['id']},cta\n")
    refused = run("import", path, wrong)
    assert refused.code == 2 and "did you mean 'cat'" in refused.err
    assert json.loads(run("status", path, "--json").out)["labels"] == 5


# ---------------------------------------------------------------- bad input


BAD = {
    "missing file": (("--data", "nowhere.csv"), "does not exist"),
    "missing column": (("--prediction", "vendor_labl"), "did you mean 'vendor_label'"),
    "metric typo": (("--metric", "acuracy"), "did you mean 'accuracy'"),
    "metric of an unknown class": (("--metric", "recall[cta]"), "did you mean 'cat'"),
    "budget beyond the pool": (("--budget", 121), "1 to 120"),
    "budget of nothing": (("--budget", 0), "1 to 120"),
    "target of another metric": (("--target", "recall[cat]=0.04"), "not one of this session's metrics"),
    "target without a number": (("--target", "accuracy=small"), "not a number"),
    "target without =": (("--target", "accuracy"), "name=value"),
    "confidence in percent": (("--confidence", 95), "did you mean 0.95"),
    "unknown method": (("--method", "traditoin"), "did you mean 'tradition'"),
    "unknown class among the predictions": (("--class", "cat", "--class", "dog"), "not one of the classes"),
    "texts that share no words": (("--features", "text"), "no features can be made"),
    "a feature file that is not there": (("--features", "emb.npy", "--features", "x1"), "emb.npy does not exist"),
    "scores that do not sum to 1": (("--scores", "x1", "--scores", "x2", "--scores", "x2"), "not probabilities"),
    "scores of too few classes": (("--scores", "x1", "--scores", "x2"), "2 columns"),
    "ids that repeat": (("--id", "scanner"), "ids must be unique"),
    "a share beyond 1": (("--double-share", 2), "between 0 and 1"),
    "a definition of no class": (("--definition", "cta=feline"), "did you mean 'cat'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_sentence_and_nothing_is_created(tmp_path, name):
    table, _ = write_table(tmp_path)
    given, sentence = BAD[name]
    options = {"--data": table, "--prediction": "vendor_label", "--id": "study_id"}
    replaced = [item for pair in options.items() if pair[0] not in given for item in pair]
    path = tmp_path / "bad.altmas"
    ran = run("init", path, *replaced, *given)
    assert ran.code == 2 and ran.out == "" and sentence in ran.err, ran.err
    assert not path.exists()


TABLES = {
    "empty": (b"", "is empty"),
    "no rows": (b"p,q\n", "no rows"),
    "one class": (b"p\ncat\ncat\n", "only one class"),
    "missing value": (b"p,q\ncat,1\n,2\ndog,3\n", "row 1"),
    "torn row": (b"p,q\ncat,1\ndog\n", "cannot be read"),
    "not text": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "bad.csv"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_bad_table_is_a_sentence(tmp_path, name):
    content, sentence = TABLES[name]
    (tmp_path / "bad.csv").write_bytes(content)
    ran = run("init", tmp_path / "s.altmas", "--data", tmp_path / "bad.csv", "--prediction", "p")
    assert ran.code == 2 and sentence in ran.err, ran.err
    assert not (tmp_path / "s.altmas").exists()


def test_features_that_are_not_finite_name_their_place(tmp_path):
    table, _ = write_table(tmp_path)
    features = np.zeros((120, 2))
    features[7, 1] = np.nan
    np.save(tmp_path / "emb.npy", features)
    roles = ("--data", table, "--prediction", "vendor_label", "--features", tmp_path / "emb.npy")
    ran = run("init", tmp_path / "s.altmas", *roles)
    assert ran.code == 2 and "row 7, column 1" in ran.err
    np.save(tmp_path / "emb.npy", features[:50])
    assert "50 rows" in run("init", tmp_path / "s.altmas", *roles).err


def test_an_existing_session_is_kept(tmp_path):
    path, truth = make_session(tmp_path)
    label_all(path, truth, 3)
    roles = ("--data", tmp_path / "preds.csv", "--id", "study_id", "--prediction", "vendor_label")
    again = run("init", path, *roles)
    assert again.code == 2 and "exists already" in again.err
    same = (*roles, "--slice", "scanner", "--show", "text", "--method", "tradition", "--exist-ok")
    assert run("init", path, *same).code == 0
    assert json.loads(run("status", path, "--json").out)["labels"] == 3


def test_a_file_that_is_no_session_or_of_another_pool_is_refused(tmp_path):
    path, _ = make_session(tmp_path)
    notes = tmp_path / "notes.txt"
    notes.write_text("these are my notes")
    assert "is not an altmas session" in run("status", notes).err
    assert "does not exist" in run("status", tmp_path / "nothing.altmas").err
    table = tmp_path / "preds.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:-1], lines[-1].replace(lines[-1].split(",")[1], "cow", 1)]))
    ran = run("tell", path, "case-0", "cat")
    assert ran.code == 2 and "nothing was recorded" in ran.err


def test_unknown_ids_and_labels_are_named(tmp_path):
    path, _ = make_session(tmp_path)
    assert "id 'case-999' is not in this pool" in run("tell", path, "case-999", "cat").err
    assert "did you mean 'cat'" in run("tell", path, "case-1", "Cat").err
    assert run("tell", path, "case-1", "cat", "--seconds", -3).code == 2
    assert json.loads(run("status", path, "--json").out)["labels"] == 0


def test_data_cannot_drive_the_terminal(tmp_path):
    table = tmp_path / "evil.csv"
    table.write_text("id,p,text\n1,cat,\x1b]0;owned\x07\x1b[31m\n2,dog,b\n")
    roles = ("--data", table, "--id", "id", "--prediction", "p", "--show", "text", "--method", "tradition")
    run("init", tmp_path / "s.altmas", *roles)
    shown = run("ask", tmp_path / "s.altmas", "-n", 2).out
    assert "\x1b" not in shown and "\x07" not in shown and "\\x1b" in shown


# ---------------------------------------------------------------- how it ends


def test_an_unexpected_error_is_never_taken_for_an_answer(tmp_path):
    """`check` gives 1 a meaning, so a crash must end with something else."""
    broken = "import altmas.claims, sys; altmas.claims.judge = None; from altmas.cli import main; main()"
    path, _ = make_session(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-c", broken, "check", path, "accuracy > 0.5"], capture_output=True, text=True
    )
    assert ran.returncode == 70 and "a fault of altmas" in ran.stderr


def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path):
    path, _ = make_session(tmp_path)
    ran = run("export", path, "--events", tmp_path / "no" / "folder.jsonl")
    assert ran.code == 2 and "No such file or directory" in ran.err


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    path, _ = make_session(tmp_path)
    command = f"{forks.command('altmas')} ask {path} -n 120 --json | head -1"
    ran = subprocess.run(["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True)
    assert ran.stdout == "[\n" and ran.stderr == ""


def test_ctrl_c_ends_with_130(tmp_path):
    path, _ = make_session(tmp_path)
    code = (
        "import time, altmas.claims as c; c.judge = lambda *a, **b: (print(flush=True), time.sleep(60)); "
        "from altmas.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "check", path, "accuracy > 0.5", "-v"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "\n"  # it has begun
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in err


def test_usage_errors_end_with_2_and_name_the_near_command():
    assert run("estimat").code == 2 and "estimate" in run("estimat").err
    assert run("init").code == 2
    assert run("ask", "x.altmas", "-n", "0").code == 2


# ---------------------------------------------------------------- help, docs, start


def test_every_promised_command_exists():
    promised = (
        "demo init add-model plan label ask tell skip undo status estimate check compare rank threshold report "
        "simulate export import sync extend monitor backup doctor"
    )
    assert set(promised.split()) == COMMANDS


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself_with_an_example(name):
    ran = run(name, "--help")
    assert ran.code == 0 and "Example" in ran.out and f"$ altmas {name}" in ran.out
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    undocumented = [one.name for one in command.params if not one.help]
    assert not undocumented


def test_the_documented_command_line_is_the_real_one():
    stated = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert stated == markdown(), "write it anew: python -m altmas.cli.docs > docs/cli.md"


def test_reading_commands_print_json_that_is_nothing_else(tmp_path):
    path, truth = make_session(tmp_path)
    label_all(path, truth, 10)
    for arguments in (("ask", path), ("status", path), ("estimate", path), ("check", path, "accuracy > 0.5")):
        json.loads(run(*arguments, "--json").out)


@pytest.mark.parametrize("arguments", [["--help"], ["tell", "one.altmas", "case-1", "cat"]])
def test_start_loads_nothing_heavy(tmp_path, arguments):
    make_session(tmp_path)
    code = (
        "import sys, atexit\n"
        "heavy = ('jax', 'sklearn', 'scipy', 'fastapi', 'optax')\n"
        "atexit.register(lambda: print('LOADED', [m for m in heavy if m in sys.modules]))\n"
        "from altmas.cli import main\n"
        "main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0 and ran.stdout.endswith("LOADED []\n"), ran.stdout + ran.stderr


def test_the_version_is_printed():
    ran = subprocess.run([sys.executable, "-m", "altmas", "--version"], capture_output=True, text=True)
    assert ran.stdout == f"altmas {altmas.__version__}\n"


@pytest.mark.parametrize(
    "typed, completed",
    [
        ("altmas es", "estimate"),
        ("altmas init s.altmas --method trad", "tradition"),
        ("altmas init s.altmas --metric acc", "accuracy"),
        ("altmas export s.altmas --to label", "label-studio"),
    ],
)
def test_a_shell_can_complete(typed, completed):
    words = len(typed.split()) - 1
    env = environment(_ALTMAS_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(words))
    ran = subprocess.run([forks.command("altmas")], capture_output=True, text=True, env=env)
    assert completed in ran.stdout.split()


def test_colours_stay_away_where_they_are_not_wanted(tmp_path):
    path, truth = make_session(tmp_path)
    label_all(path, truth, 10)
    plain = start("estimate", path, env=environment(NO_COLOR="1"))
    assert "\x1b" not in plain.stdout + plain.stderr and "accuracy" in plain.stdout


# ---------------------------------------------------------------- doctor


def test_a_healthy_session_has_a_clean_bill(tmp_path):
    path, truth = make_session(tmp_path)
    label_all(path, truth, 5)
    run("ask", path, "-a", "ana", "-n", 2)
    ran = run("doctor", path, "--json")
    found = {one["what"]: one for one in json.loads(ran.out)}
    assert ran.code == 0 and all(one["ok"] for one in found.values())
    assert found["integrity check"]["found"] == "ok" and found["leases"]["found"].startswith("ana: 2 until")
    with altmas.Session.open(path) as session:
        assert session.status().digest in found["event log"]["found"]
    assert "threads" in found and ("altmas[paper]" in found or {"jax device", "compilation cache"} <= set(found))


def test_a_damaged_session_is_found_out(tmp_path):
    path, truth = make_session(tmp_path)
    label_all(path, truth, 5)
    content = bytearray(path.read_bytes())
    place = content.rindex(b'"points"')
    content[place + 12] ^= 1
    path.write_bytes(content)
    ran = run("doctor", path)
    assert ran.code == 1 and "does not match its hash" in ran.out
    lost = run("doctor", tmp_path / "nothing.altmas")
    assert lost.code == 1 and "does not exist" in lost.out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_session_is_pointed_out(tmp_path):
    path, _ = make_session(tmp_path)
    path.chmod(0o444)
    ran = run("doctor", path)
    assert ran.code == 1 and "read-only" in ran.out


# ---------------------------------------------------------------- main, in this process


def ended(monkeypatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["altmas", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_main_ends_with_the_code_of_what_happened(tmp_path, monkeypatch, capsys):
    path, _ = make_session(tmp_path)
    assert ended(monkeypatch, "--version") == 0 and capsys.readouterr().out.startswith("altmas ")
    assert ended(monkeypatch, "status", tmp_path / "nothing.altmas") == 2
    monkeypatch.setattr("altmas.cli.check.judge", None)
    assert ended(monkeypatch, "check", path, "accuracy > 0.5") == 70
    monkeypatch.setattr("altmas.cli.check.judge", _interrupted)
    assert ended(monkeypatch, "check", path, "accuracy > 0.5", "--verbose") == 130
    monkeypatch.setattr("altmas.cli.check.judge", _without_a_file)
    assert ended(monkeypatch, "check", path, "accuracy > 0.5") == 70


def _interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def _without_a_file(*_: object, **__: object) -> None:
    raise OSError("something else")


def test_the_page_is_served_with_what_was_asked_for(tmp_path, monkeypatch):
    path, _ = make_session(tmp_path)
    served: list[dict[str, object]] = []
    monkeypatch.setattr(altmas.Session, "label", lambda session, **options: served.append(options))
    assert run("label", path, "--port", 9000, "--no-browser", "-a", "ana", "--allowed-host", "lab").code == 0
    wanted = {"host": "127.0.0.1", "port": 9000, "open_browser": False, "annotator": "ana", "allowed_hosts": ["lab"]}
    assert served[0].items() >= wanted.items()


def test_a_spinner_turns_only_in_a_terminal(capsys, monkeypatch):
    with show.working("thinking"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with show.working("thinking"):
        pass
    assert "thinking" in capsys.readouterr().err
    show.be_quiet(True)
    show.hint("not said")
    show.be_quiet(False)
    assert capsys.readouterr().err == ""


def test_people_and_a_forecast_stand_in_the_status(tmp_path):
    path, truth = make_session(tmp_path, "--target", "accuracy=0.05")
    with altmas.Session.open(path) as session:
        for name in ("ana", "bo"):
            for query in session.ask(12, name):
                session.tell(query.id, truth[str(query.id)], name, 4.0)
    shown = run("status", path).out
    assert "ana: 12 labels, 0 skipped, 4 s each" in shown and "bo: 12 labels" in shown
    assert "go on: accuracy is not within 0.05 yet\n" in shown
    assert "ahead: " in shown and " chance to settle it" in shown
    told = json.loads(run("status", path, "--json").out)["decision"]["forecast"]
    assert told["labels"] == 24 and told["until"] > 24 and 0 <= told["chance"] <= 1


def test_no_forecast_stands_below_a_target_that_is_reached(tmp_path):
    path, truth = make_session(tmp_path, "--target", "accuracy=0.3")
    label_all(path, truth, 30)
    shown = run("status", path).out
    assert "stop: every target is reached" in shown and "ahead" not in shown


@pytest.mark.paper
def test_doctor_sees_what_is_missing(monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", ["altmas", "no-such-package"])
    monkeypatch.setattr("altmas.compute.jax", _broken)
    found = {one.what: one for one in doctor.examine()}
    assert not found["no-such-package"].ok and not found["jax device"].ok and "broken" in found["jax device"].found


def _broken() -> None:
    raise RuntimeError("broken installation")


# ---------------------------------------------------------------- several models, and none


@pytest.fixture
def two_models(tmp_path):
    rows = [
        f"p{row},{'cat' if row % 2 else 'dog'},{'cat' if row % 3 else 'dog'},{row % 7 / 7:.2f},text {row}"
        for row in range(60)
    ]
    path = tmp_path / "both.csv"
    path.write_text("\n".join(["id,v1,v2,p,text", *rows]) + "\n")
    return path


def test_repeated_predictions_are_several_models(two_models, tmp_path):
    session = tmp_path / "both.altmas"
    made = run("init", session, "--data", two_models, "--prediction", "v1", "--prediction", "v2", "--id", "id")
    assert made.code == 0 and "2 models: v1, v2" in made.out
    for query in json.loads(run("ask", session, "-n", "10", "--json").out):
        run("tell", session, query["id"], "cat")
    told = json.loads(run("estimate", session, "--json").out)["estimates"]
    assert [(one["metric"], one["model"]) for one in told] == [("v1: accuracy", "v1"), ("v2: accuracy", "v2")]


def test_a_model_is_added_from_a_table_by_id(two_models, tmp_path):
    session = tmp_path / "one.altmas"
    run("init", session, "--data", two_models, "--prediction", "v1", "--id", "id")
    lines = two_models.read_text().splitlines()
    turned = tmp_path / "turned.csv"
    turned.write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    added = run("add-model", session, "v2", "--data", turned, "--prediction", "v2", "--id", "id")
    assert added.code == 0 and "models: model, v2" in added.out
    with altmas.Session.open(session) as one:
        assert one.pool.model("v2").predictions.tolist() == [int(row % 3 == 0) for row in range(60)]
    wrong_order = run("add-model", session, "v3", "--data", turned, "--prediction", "v2")
    assert wrong_order.code == 2 and "another order" in wrong_order.err
    again = run("add-model", session, "v2", "--data", turned, "--prediction", "v2", "--id", "id")
    assert again.code == 2 and "already" in again.err and "nothing was recorded" in again.err


def test_a_model_with_a_gap_or_with_other_ids_is_refused_and_nothing_is_recorded(two_models, tmp_path):
    session = tmp_path / "one.altmas"
    run("init", session, "--data", two_models, "--prediction", "v1", "--id", "id")
    lines = two_models.read_text().splitlines()
    gap, other = tmp_path / "gap.csv", tmp_path / "other.csv"
    gap.write_text("\n".join([*lines[:5], lines[5].replace("cat", "").replace("dog", ""), *lines[6:]]) + "\n")
    other.write_text("\n".join([*lines[:-1], lines[-1].replace("p59", "p99")]) + "\n")
    for path, sentence in ((gap, "row 4: the value is missing"), (other, "'p99' is not in this pool")):
        refused = run("add-model", session, "v2", "--data", path, "--prediction", "v2", "--id", "id")
        assert refused.code == 2 and sentence in refused.err
    unknown = run(
        "init", tmp_path / "two.altmas", "--data", two_models, "--prediction", "v1", "--metric", "v9: accuracy"
    )
    assert unknown.code == 2 and "no model 'v9'" in unknown.err and not (tmp_path / "two.altmas").exists()
    with altmas.Session.open(session) as one:
        assert len(one.pool.models) == 1 and [event["kind"] for event in one.events()] == ["created"]


def test_models_are_ranked(two_models, tmp_path):
    session = tmp_path / "both.altmas"
    both = ("--data", two_models, "--prediction", "v1", "--prediction", "v2", "--id", "id")
    assert run("init", session, *both, "--rank", "accuracy").code == 0
    assert "no drawn label" in run("rank", session).out
    for query in json.loads(run("ask", session, "-n", "30", "--json").out):
        run("tell", session, query["id"], "cat" if int(query["id"][1:]) % 2 else "dog")
    shown = run("rank", session)
    assert shown.code == 0 and "v1 looks best after 30 labels" in " ".join(shown.out.split())
    assert json.loads(run("rank", session, "--json").out)["best"] == "v1"
    refused = run("rank", session, "--metric", "v2: accuracy")
    assert refused.code == 2 and "without a model's name" in refused.err


def test_scores_of_several_models_say_whose_they_are(two_models, tmp_path):
    both = ("--data", two_models, "--prediction", "v1", "--prediction", "v2")
    refused = run("init", tmp_path / "a.altmas", *both, "--scores", "p")
    assert refused.code == 2 and "v1=p" in refused.err and not (tmp_path / "a.altmas").exists()
    made = run("init", tmp_path / "b.altmas", *both, "--scores", "v2=p")
    assert made.code == 0
    with altmas.Session.open(tmp_path / "b.altmas") as one:
        assert one.pool.model("v1").scores is None and one.pool.model("v2").scores is not None


def test_items_without_predictions_are_judged_themselves(two_models, tmp_path):
    session = tmp_path / "items.altmas"
    bare = ("init", session, "--data", two_models, "--id", "id", "--show", "text", "--class", "pass", "--class", "fail")
    refused = run(*bare)
    assert refused.code == 2 and "is about a model, and this pool has none" in refused.err
    assert run(*bare, "--metric", "share[pass]").code == 0
    for query in json.loads(run("ask", session, "-n", "30", "--json").out):
        run("tell", session, query["id"], "pass")
    (told,) = json.loads(run("estimate", session, "--json").out)["estimates"]
    assert (told["metric"], told["model"]) == ("share[pass]", None) and told["value"] > 0.9
    assert run("report", session, "-o", tmp_path / "items.html").code == 0


def test_import_says_how_things_stand_and_export_that_the_goal_is_reached(tmp_path):
    path, truth = make_session(tmp_path, "--target", "accuracy=0.2", "--budget", "100")

    def filled(n: int, name: str) -> Path:
        assert run("export", path, "-n", n, tmp_path / name).code == 0
        with (tmp_path / name).open(newline="", encoding="utf-8-sig") as file:
            lines = [f"{row['id']},{truth[row['id']]}" for row in csv.DictReader(file)]
        (tmp_path / f"f{name}").write_text("\n".join(["id,label", *lines]) + "\n")
        return tmp_path / f"f{name}"

    early = run("import", path, filled(10, "a.csv")).out.splitlines()
    assert early[-1] == "go on: 10 drawn labels: nothing is decided with fewer than 20"
    late = run("import", path, filled(60, "b.csv")).out.splitlines()
    assert late[-1] == "stop: every target is reached" and late[-1] in run("status", path).out
    more = run("export", path, "-n", 5, tmp_path / "c.csv")
    assert "5 written" in more.out and "note: the goal is reached (accuracy: " in more.err
    assert "the goal is reached" not in run("export", path, "--labels", tmp_path / "l.csv").err
