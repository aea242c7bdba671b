"""Labels that cannot count yet are said to wait, with the items that they wait for."""

import csv
import json
import math

import numpy as np
import pytest

import altmas
from altmas.forecast import Goals
from altmas.history import Batch, History
from altmas.methods.assured.stages import stage_starts
from altmas.methods.held_up import held_up, left_behind
from altmas.planning import plan_further
from altmas.report.content import content_of
from altmas.web.advice import advice
from cli_world import make_session, run
from session_world import create, pool, truth


def history(*batches: list[int], labels: list[int], skipped: tuple[int, ...] = (), stages: tuple[int, ...] = ()):
    """Points drawn in these batches; those whose number is in `stages` begin a stage of `assured`."""
    record = {"population": np.zeros(2, np.uint8)}
    made = tuple(Batch(np.array(rows), record=record if k in stages else {}) for k, rows in enumerate(batches))
    return History(12, made, dict.fromkeys(labels, 0), dict.fromkeys(skipped, "unclear"))


@pytest.mark.parametrize(
    ("drawn", "labels", "waits_for"),
    [
        (history([4, 2, 7], labels=[4, 2]), [], []),
        (history([4, 2, 7], labels=[4, 7]), [7], [2]),
        (history([4, 2, 7, 1, 9], labels=[4, 1]), [1], [2, 7]),  # 9 was asked for after them
        (history([4, 2, 7], labels=[4, 7], skipped=(2,)), [], []),
        (history([4, 2], [7, 1], labels=[2, 7, 5]), [2, 7], [4]),  # 5 was volunteered
        (history([4, 2], [7, 1], labels=[2, 1], stages=(0, 1)), [1], [7]),  # 2 is known where the second stage began
        (history(labels=[5]), [], []),
        (history([4, 2], labels=[]), [], []),
    ],
)
def test_what_waits_for_what(drawn, labels, waits_for):
    found = held_up(drawn)
    assert (found.labels.tolist(), found.waits_for.tolist()) == (labels, waits_for)


@pytest.mark.parametrize(
    ("drawn", "labels", "waits_for"),
    [
        (history([4, 2, 7], labels=[4, 7]), [], []),  # the stage is not over
        (history([4, 2, 7], [1], labels=[4, 7, 1], stages=(0, 1)), [7], [2]),
        (history([4, 2, 7], [1], labels=[4, 7], skipped=(2,), stages=(0, 1)), [], []),
        (history([4, 2], [7, 1], [5, 3], labels=[2, 1, 3], stages=(0, 1, 2)), [2, 1], [4, 7]),
        (history(labels=[5]), [], []),
    ],
)
def test_what_stages_that_are_over_left_behind(drawn, labels, waits_for):
    found = left_behind(drawn)
    assert (found.labels.tolist(), found.waits_for.tolist()) == (labels, waits_for)


def test_status_names_the_item_that_an_earlier_stage_left_open(tmp_path):
    path = tmp_path / "s.altmas"
    with create(path, method="assured") as session:
        session.tell({query.id: truth(query) for query in session.ask(20)})
        (first,) = session.ask(1, "tom")
        for _ in range(3):
            session.tell({query.id: truth(query) for query in session.ask(10, "ana")}, annotator="ana")
        assert list(session.now().left_behind.waits_for) == [first.index] and not len(session.now().held_up.labels)
        (said,) = session.estimate().remarks
        assert said == (
            "labels that stand for no item but their own: 20 of 50, until these items, asked for before them, are "
            f"answered or skipped: {first.id}"
        )
    ran = run("status", path)
    assert said in ran.out and "tom" in ran.err and "altmas export" in ran.err
    with altmas.Session.open(path) as session:
        session.tell(first.id, truth(first))
        assert session.estimate().remarks == ()


def test_a_group_waits_as_a_whole():
    groups = np.repeat(np.arange(4), 3)
    found = held_up(history([0, 1, 2, 6, 7, 8, 3, 4, 5], labels=[0, 1, 2, 6, 7, 3]), groups)
    assert (found.labels.tolist(), found.waits_for.tolist()) == ([6, 7, 3], [8, 4, 5])


@pytest.mark.parametrize("method", ["assured", "tradition", "oasis", "sawade"])
def test_a_session_says_which_labels_wait(method):
    session = create(method=method, metrics=["precision[cat]"])
    asked = session.ask(30)
    session.tell({query.id: truth(query) for query in asked[:12]})
    assert session.estimate().remarks == ()
    session.tell({query.id: truth(query) for query in asked[14:]})
    (said,) = session.estimate().remarks
    assert said == (
        "labels that do not count yet: 16 of 28, until these items, asked for before them, are answered or skipped: "
        f"{asked[12].id}, {asked[13].id}"
    )
    assert said in str(session.estimate()) and said in session.estimate()._repr_html_()
    assert session.estimate().to_dict()["remarks"] == [said]
    session.skip(asked[12].id)
    assert session.estimate().remarks[0].endswith(f"answered or skipped: {asked[13].id}")
    session.tell(asked[13].id, truth(asked[13]))
    words = "skipped: 1 of 30 answers; figures are about the items that can be labelled"
    assert session.estimate().remarks == (words,)
    assert "remarks" not in create(method=method, metrics=["precision[cat]"]).estimate().to_dict()


def test_methods_that_use_labels_in_any_order_have_none_that_wait():
    session = create(method="ppi")
    session.tell({query.id: truth(query) for query in session.ask(30)[5:]})
    assert session.estimate().remarks == ()


def test_a_label_that_was_taken_back_holds_up_those_after_it():
    session = create(method="assured")
    asked = session.ask(20)
    session.tell({query.id: truth(query) for query in reversed(asked)})
    assert session.estimate().remarks == ()
    session.undo()
    assert "19 of 19" in session.estimate().remarks[0]
    assert session.estimate()["accuracy"].note == "undefined: no drawn label counts yet"


def test_command_line_report_and_page_say_it(tmp_path):
    path, labels = make_session(tmp_path)
    with altmas.Session.open(path) as session:
        asked = session.ask(30)
    table = tmp_path / "answers.csv"
    lines = [f"{query.id},{labels[str(query.id)]}" for query in asked[1:]]
    table.write_text("\n".join(["id,label", *lines]) + "\n")
    words = "labels that do not count yet: 29 of 29, until these items, asked for before them, are answered or skipped"
    assert words in run("import", path, table).err
    assert words in run("status", path).out and words in run("estimate", path).out
    assert json.loads(run("status", path, "--json").out)["remarks"][0].startswith(words)
    assert json.loads(run("estimate", path, "--json").out)["remarks"][0].startswith(words)
    with altmas.Session.open(path) as session:
        content = content_of(session)
        draws = next(one for one in content["assumptions"] if "drawn with known" in one["title"])
        assert draws["state"] == "warning" and words[1:] in draws["words"]
        (remark,) = content["remarks"]
        assert remark == f"{words}: 1 in all" and content_of(session, items=True)["remarks"][0].endswith(
            f": {asked[0].id}"
        )
        decision = {"stop": False, "reason": ""}
        assert any(words[1:] in text for text in advice(session, session.estimate(), (), None, decision)["now"])


def test_items_that_people_differ_on_are_said_beside_every_answer(tmp_path):
    """All forty of them: the first answer counts, and nobody is left to think that it is settled."""
    path = tmp_path / "two.altmas"
    session = create(path, pool=pool(300), method="assured", double_share=1.0, budget=40)
    for name, label in (("ana", truth), ("ben", lambda query: "owl" if truth(query) == "cat" else "cat")):
        for _ in range(40):
            for query in session.ask(1, annotator=name):
                session.tell(query, label(query), annotator=name)
        if name == "ana":
            assert session.estimate().remarks == ()
    words = (
        "people differ on 40 items of 40: until they agree, or the owner rules on the page, the label of whoever "
        "answered first counts as true"
    )
    assert session.estimate().remarks == (words,) and words in session.check("accuracy >= 0.01").caution
    item = session.disagreements()[0].id
    session.adjudicate(item, "dog")
    assert session.estimate().remarks[0].startswith("people differ on 39 items of 40")
    assert len(session.disagreements()) == session.now().disagreements == 39
    session.close()
    assert "people differ on 39 items" in run("estimate", path).out
    assert "people differ on 39 items" in json.loads(run("check", path, "accuracy >= 0.01", "--json").out)["caution"]


def test_nothing_is_decided_by_labels_that_wait():
    """Twenty-nine labels of which two count are too few for anything."""
    session = create(pool=pool(300), method="assured", thresholds={"accuracy": 0.01}, budget=100)
    asked = session.ask(30)
    session.tell({query.id: truth(query) for query in asked if query is not asked[2]})
    assert session.history.drawn_labels == 29 and session.now().counted_labels == 2
    assert session.check("accuracy >= 0.01").answer == "undecided" and not any(goal.reached for goal in session.goals())
    assert session.forecast() is None
    assert not session.should_stop() and f"item {asked[2].id} was asked for before" in session.should_stop().reason
    assert content_of(session)["metrics"][0]["verdict"]["badge"] == "undefined"
    session.skip(asked[2].id)
    assert session.now().counted_labels == 29 and not session.check("accuracy >= 0.01").too_early


def test_what_somebody_else_holds_is_named_with_the_command_that_gets_it(tmp_path):
    path, labels = make_session(tmp_path, "--budget", "40")
    with altmas.Session.open(path) as session:
        held = session.ask(3, "Ana")
    short = run("export", path, "-n", "50", tmp_path / "next.csv")
    assert short.code == 0 and "37 written, fewer than asked for: the budget of 40 labels leaves 40" in short.out
    assert "3 items are with Ana until " in short.out and "--take-over" in short.err
    with (tmp_path / "next.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    lines = [f"{row['id']},{labels[row['id']]}" for row in rows]
    (tmp_path / "answers.csv").write_text("\n".join(["id,label", *lines]) + "\n")
    said = run("import", path, tmp_path / "answers.csv").err
    command = f"altmas export {path} -n 3 --take-over FILE"
    assert "3 items are with Ana until " in said and command in said
    assert command in run("status", path).err
    none = run("ask", path, "-n", "5")
    assert none.out == "" and "3 items are with Ana until " in none.err and "--take-over" in none.err
    draws = [event for event in altmas.Session.open(path).events() if event["kind"] == "draw"]
    taken = run(*command.replace("FILE", str(tmp_path / "three.csv")).split()[1:])
    assert "3 written" in taken.out and "--take-over" not in taken.err
    with altmas.Session.open(path) as session:
        assert session.held_by_others() == () and session.ask(3) == held
        assert [event for event in session.events() if event["kind"] == "draw"] == draws
        session.tell({query.id: labels[str(query.id)] for query in held})
        assert session.estimate().remarks == () and len(session.history.labels) == 40


def test_items_nobody_holds_come_with_a_plain_export(tmp_path):
    path, labels = make_session(tmp_path)
    with altmas.Session.open(path) as session:
        asked = session.ask(12)
        session.tell({query.id: labels[str(query.id)] for query in asked[4:]})
    assert f"altmas export {path} -n 4 FILE" in run("status", path).err
    with altmas.Session.open(path) as session:
        session.ask(1, "bob")
    assert f"altmas export {path} -n 4 --take-over FILE" in run("status", path).err


def test_what_is_exact_has_its_value_while_labels_wait():
    answers = (np.arange(200) < 3).astype(int)
    session = create(pool=altmas.Pool(None, answers, classes=[0, 1]), metrics=["precision[1]", "accuracy"])
    for row in range(3):
        session.tell(row, min(row, 1))
    asked = session.ask(12)
    session.tell({query.id: 0 for query in asked if query is not asked[1]})
    precision, accuracy = session.estimate()
    assert math.isnan(accuracy.value) and "only 1 counts yet" in accuracy.note
    assert precision.low == precision.value == precision.high == pytest.approx(2 / 3)


def test_a_gap_before_the_tenth_label_leaves_no_value_and_says_so():
    """One label that counts would put an accuracy at nearly 0 or 1, beside twenty-eight that wait."""
    session = create(pool=pool(300), method="assured", budget=100)
    asked = session.ask(30)
    session.tell({query.id: truth(query) for query in asked if query is not asked[1]})
    (accuracy,) = session.estimate()
    assert math.isnan(accuracy.value) and accuracy.interval == "none"
    assert accuracy.note == "insufficient: of 29 labels that were asked for only 1 counts yet"
    session.skip(asked[1].id)
    (accuracy,) = session.estimate()
    assert 0 < accuracy.low < accuracy.value < accuracy.high < 1


def test_forecast_plan_and_remarks_stay_while_further_items_merely_wait():
    """The first stage has a gap; the next one is asked for, and nothing in it is answered yet."""
    session = create(
        method="assured", pool=pool(300), metrics=["precision[cat]"], budget=None, targets={"precision[cat]": 0.01}
    )
    asked = session.ask(60)
    session.tell({query.id: truth(query) for query in (*asked[:40], *asked[45:])})

    def shown():
        now, goals = session.now(), Goals({"precision[cat]": 0.01}, {})
        plan = plan_further(session.method, now.task, now.history, goals=goals, worlds=1)
        parts = session.estimate(), now.remarks(), session.forecast(), session.goals(), session.should_stop(), plan
        return list(map(repr, parts))

    before, stages = shown(), len(stage_starts(session.history))
    assert "labels that do not count yet: 15 of 55" in before[1] and before[2] != "None"
    session.ask(60)
    assert len(stage_starts(session.history)) > stages and shown() == before
    assert all(type(goal.reached) is bool for goal in session.goals())


def test_a_group_does_not_wait_for_items_of_groups_that_were_asked_for_after_it():
    groups = np.repeat(np.arange(4), 3)
    found = held_up(history([0, 1, 2, 6, 7, 8, 3, 4, 5], labels=[0, 1, 6]), groups)
    assert (found.labels.tolist(), found.waits_for.tolist()) == ([0, 1, 6], [2, 7, 8])
