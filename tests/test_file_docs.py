"""The how-tos on files and comparisons, command by command as they are written."""

import csv
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from altmas import Pool
from altmas.session import Session
from cli_world import run

DOCS = Path(__file__).parents[1] / "docs"


def commands(name):
    """Every `altmas ...` line of the shell blocks of a page, in order."""
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / name).read_text("utf-8"), re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines() if line.strip()]


@pytest.fixture
def tickets(tmp_path, monkeypatch):
    """{ticket: true class}, with the files that the pages start from in the present folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    truth = {f"T-{k:04d}": str(rng.choice(["normal", "urgent", "spam"])) for k in range(300)}
    for name, right in (("tickets.csv", 0.8), ("v2.csv", 0.95)):
        with Path(name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["ticket", "predicted", "text"])
            for ticket, label in truth.items():
                writer.writerow([ticket, label if rng.random() < right else "normal", f"message, {ticket}\nthe end"])
    return truth


def fill_in(path, truth):
    """What a person does in a spreadsheet."""
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["label"] = truth[row["id"]]
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def label_in_label_studio(tasks, export, truth):
    """What a person does in Label Studio."""
    annotated = json.loads(Path(tasks).read_text("utf-8"))
    for number, task in enumerate(annotated):
        choice = {"value": {"choices": [truth[task["data"]["altmas_id"]]]}, "type": "choices"}
        result = [{"from_name": "label", "to_name": "item", **choice}]
        task |= {"id": number, "annotations": [{"completed_by": 1, "lead_time": 3.0, "result": result}]}
    Path(export).write_text(json.dumps(annotated), "utf-8")


def test_the_how_to_on_files_runs_as_written(tickets):
    for words in commands("files.md"):
        if words[0] == "import":
            fill_in(words[-1], tickets) if words[-1].endswith(".csv") else label_in_label_studio(
                "tasks.json", words[-1], tickets
            )
        ran = run(*words)
        assert ran.code == 0, (words, ran.err)
    with Session.open("tickets.altmas") as session:
        labels = session.history.labels
        assert len(labels) == 80
        assert all(session.pool.classes[code] == tickets[session.pool.ids[row]] for row, code in labels.items())
    assert Path("tickets.html").read_text("utf-8").startswith("<!doctype html>")


def test_the_how_to_on_comparing_runs_as_written(tickets):
    init, export = commands("files.md")[:2]
    for words in (init, export):
        assert run(*words).code == 0
    fill_in("next.csv", tickets)
    assert run("import", "tickets.altmas", "next.csv").code == 0
    (compare,) = commands("comparing.md")
    ran = run(*compare)
    assert ran.code == 0, ran.err
    assert "accuracy" in ran.out and re.search("better|undecided", ran.out)


def test_the_calls_in_the_how_to_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", (DOCS / "files.md").read_text("utf-8"), re.DOTALL).group(1)
    session = Session.create(None, Pool(None, ["a", "b"] * 50, ids=[f"p{k}" for k in range(100)]), method="tradition")
    Path("labels.csv").write_text("id,label\np3,a\np4,\n", "utf-8")
    said = []
    exec(block, {"session": session, "print": lambda *values: said.append(values)})
    assert said == [(1, 0, 0, 0, 1)]
    assert session.status().reveals == 40


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,label\nT-0001,Urgent \n", "did you mean 'urgent'?"),
        ("id,label\nT-0001,urgent\nT-0001,spam\n", "row 2"),
        ("id,label\nT-0001,urgent,\n", "3 cells under 2 columns"),
    ],
)
def test_the_refusals_in_the_how_to_are_what_is_said(tickets, content, said):
    assert run(*commands("files.md")[0]).code == 0
    Path("labels.csv").write_text(content, "utf-8")
    ran = run("import", "tickets.altmas", "labels.csv")
    assert ran.code == 2 and said in ran.err.replace("\n", " ")


def test_the_page_about_several_models_works_as_written(tickets):
    truth = tickets
    rng = np.random.default_rng(3)
    both = {id: (one, one if rng.random() < 0.8 else "normal") for id, one in truth.items()}
    with open("tickets.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["ticket", "v1", "v2"])
        writer.writerows([id, *answers] for id, answers in both.items())
    with open("v3.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["ticket", "predicted"])
        writer.writerows([id, one] for id, one in reversed(truth.items()))
    with open("answers.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["ticket", "text"])
        writer.writerows([id, f"an answer to {id}"] for id in truth)
    for command in commands("models.md"):
        ran = run(*command)
        assert ran.code == 0, f"{command}: {ran.err}"
        if command[0] == "init" and "both.altmas" in command:
            with Session.open("both.altmas") as session:
                session.tell({query.id: truth[query.id] for query in session.ask(30)})
        if command[0] == "rank":
            assert "looks best after 30 labels" in " ".join(ran.out.split())
