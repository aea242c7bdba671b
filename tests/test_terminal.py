"""Labelling in the terminal, through a real pseudo-terminal."""

import contextlib
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import numpy as np
import pytest
from rich.console import Console

import altmas
import forks
from altmas.cli import label
from altmas.cli.keyboard import END, Terminal
from altmas.cli.terminal import TerminalLabeller, _duration
from cli_world import environment, make_session, run

STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Screen:
    """A program in a pseudo-terminal: wait for what it shows, then press keys."""

    def __init__(self, *arguments: object) -> None:
        self.fd, inside = pty.openpty()
        ioctl(self.fd, TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        command = [forks.command("altmas"), *map(str, arguments)]
        env = environment(NO_COLOR="1", TERM="xterm")
        self.process = subprocess.Popen(
            command, stdin=inside, stdout=inside, stderr=inside, env=env, start_new_session=True
        )
        os.close(inside)
        self.seen = ""

    def expect(self, text: str, seconds: float = 30) -> str:
        """What was shown up to and including a text; what comes after it is kept for later."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            try:
                chunk = os.read(self.fd, 65536) if ready else b""
            except OSError:  # the program has ended
                chunk = b""
            assert chunk, f"{text!r} did not come; the screen shows {self.seen!r}"
            self.seen = STYLE.sub("", self.seen + chunk.decode(errors="replace"))
        shown, self.seen = self.seen.split(text, 1)
        return shown + text

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def ended(self) -> int:
        code = self.process.wait(30)
        os.close(self.fd)
        return code


def labels(path: Path) -> list[tuple[str, str, str]]:
    with altmas.Session.open(path) as session:
        return [(e["kind"], e["point"], e["label"] or "") for e in session.events() if e["point"] is not None]


@pytest.fixture
def session_file(tmp_path):
    path, _ = make_session(
        tmp_path, "--budget", 6, "--instructions", "Look at the ears.", "--definition", "cat=any feline"
    )
    return path


def test_label_undo_skip_doubt_note_and_quit(session_file):
    screen = Screen("label", session_file, "--terminal", "--annotator", "ana")
    shown = screen.expect("quit")
    assert "ana · 0 of 6 labels" in shown and "animal, number" in shown and "Look at the ears." in shown
    assert "[1] bird" in shown and "[2] cat" in shown and "[3] dog" in shown and "[z] undo" in shown
    assert "case-" not in shown  # ids can give the class away
    screen.press("2")
    screen.expect("cat · saved ")
    screen.expect("1 of 6 labels")
    screen.press("z")
    screen.expect("taken back: cat")
    screen.expect("0 of 6 labels")
    screen.press("3")
    screen.expect("dog · saved ")
    screen.expect("quit")
    screen.press("s")
    screen.expect("why can it not be labelled? ")
    screen.press("blurred\n")
    screen.expect("skipped · saved ")
    screen.expect("quit")
    screen.press("u")
    screen.expect("unsure · saved ")
    screen.expect("quit")
    screen.press("n")
    screen.expect("note: ")
    screen.press("with a hat\n")
    screen.press("1")
    screen.expect("bird · saved ")
    screen.expect("quit")
    screen.press("i")
    screen.expect("Look at the ears.")
    screen.press("c")
    screen.expect("cat: any feline")
    screen.press("q")
    screen.expect("2 labels in ")
    assert screen.ended() == 0
    assert [(kind, label) for kind, _, label in labels(session_file)] == [
        ("label", "cat"),
        ("undo", ""),
        ("label", "dog"),
        ("skip", ""),
        ("unsure", ""),
        ("label", "bird"),
    ]
    with altmas.Session.open(session_file) as session:
        told = [e for e in session.events() if e["kind"] in ("label", "skip")]
    assert told[0]["annotator"] == "ana" and told[0]["seconds"] > 0
    assert told[0]["point"] == told[1]["point"]  # what was taken back is asked again
    assert told[2]["body"]["reason"] == "blurred" and told[3]["body"]["note"] == "with a hat"


def test_a_class_can_be_typed_and_a_prediction_revealed(session_file):
    screen = Screen("label", session_file, "--terminal", "-a", "ana")
    screen.expect("quit")
    screen.press("r")
    screen.expect("the model says ")
    screen.expect("that you looked is recorded")
    screen.press("/")
    screen.expect("class: ")
    screen.press("cow\n")
    screen.expect("no class is called 'cow'")
    screen.press("/")
    screen.expect("class: ")
    screen.press("DO\n")
    screen.expect("dog · saved ")
    screen.expect("quit")
    screen.press("\x1b[A")  # an arrow key does nothing
    time.sleep(0.3)
    screen.press("\x1b")
    screen.expect("1 label in ")
    assert screen.ended() == 0
    assert [kind for kind, _, _ in labels(session_file)] == ["reveal", "label"]


def test_it_ends_by_itself_when_the_budget_is_spent_and_goes_on_after_a_restart(session_file):
    screen = Screen("label", session_file, "--terminal", "-a", "ana")
    for _ in range(2):
        screen.expect("quit")
        screen.press("1")
        screen.expect("saved")
    screen.expect("quit")
    screen.process.kill()
    screen.ended()
    again = Screen("label", session_file, "--terminal", "-a", "ana")
    assert "2 of 6 labels" in again.expect("quit")
    again.press("z")
    again.expect("taken back: bird")
    for _ in range(5):
        again.expect("quit")
        again.press("1")
        again.expect("saved")
    again.expect("the budget of 6 labels is spent")
    assert again.ended() == 0


def test_ctrl_c_keeps_what_was_told_and_the_terminal_as_it_was(session_file):
    screen = Screen("label", session_file, "--terminal")
    screen.expect("quit")
    screen.press("1")
    screen.expect("saved")
    screen.expect("quit")
    screen.press("\x03")
    assert screen.ended() == 130
    assert [kind for kind, _, _ in labels(session_file)] == ["label"]


def test_without_a_terminal_it_says_what_to_use_instead(session_file):
    ran = run("label", session_file, "--terminal")
    assert ran.code == 2 and "altmas ask" in ran.err


# ---------------------------------------------------------------- without a terminal


class Typist:
    """A keyboard whose keys are known beforehand."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)

    def key(self) -> str:
        return self.answers.pop(0) if self.answers else END

    def line(self, prompt: str) -> str:
        return self.key()


class Hesitant(Typist):
    """One who leaves the background the time to think."""

    def key(self) -> str:
        time.sleep(0.3)
        return super().key()


def shown_to(typist: Typist, session: altmas.Session, annotator: str | None = None) -> str:
    console = Console(width=100, record=True, file=open(os.devnull, "w"))
    with console.file:
        TerminalLabeller(session, annotator, typist, console).run()
    return console.export_text()


def test_a_small_picture_is_drawn_and_digits_are_their_own_keys():
    picture = np.zeros((8, 8))
    picture[:, 3] = 16
    pool = altmas.Pool(None, [7, 0] * 5, classes=list(range(10)), items=[picture] * 10)
    with altmas.Session.create(None, pool, method="tradition") as session:
        shown = shown_to(Typist("7"), session)
        assert list(session.history.labels.values()) == [7]
    assert "      ██        " in shown


def test_rows_are_shown_by_name_and_nothing_drives_the_terminal():
    rows = [{"age": 40 + i, "note": "\x1b[31mred\x07"} for i in range(6)]
    pool = altmas.Pool(None, ["yes", "no"] * 3, items=rows)
    with altmas.Session.create(None, pool, method="tradition") as session:
        shown = shown_to(Typist("?"), session)
    assert "age: 4" in shown and "\\x1b[31mred\\x07" in shown


def test_many_classes_are_typed_and_the_last_ones_have_numbers():
    names = [f"class_{i:02}" for i in range(38)] + ["top_up_failed", "card_arrival"]
    pool = altmas.Pool(None, names, classes=names)
    with altmas.Session.create(None, pool, method="tradition") as session:
        keys = ("/", "class 1", "/", "class 37", "/", "failed top", "/", "ca", "2", "1", "5", "a")
        shown = shown_to(Typist(*keys), session)
        said = [pool.classes[code] for code in session.history.labels.values()]
        assert said == ["class_37", "top_up_failed", "card_arrival", "top_up_failed", "class_37"]
    assert "[/] type a class" in shown and "several fit: class_10" in shown and "[q] quit" in shown
    assert "[1] class_37  [2] top_up_failed  [3] card_arrival  [/]" in shown


def test_two_answers_are_left_and_right_in_an_order_that_is_recorded():
    rows = [{"prompt": "why?", "answer_a": "first", "answer_b": "second"}] * 30
    pool = altmas.Pool(None, ["a", "b", "tie"] * 10, classes=["a", "b", "tie"], items=rows)
    with altmas.Session.create(None, pool, method="tradition") as session:
        shown = shown_to(Typist(*"1111111133"), session, "ana")
        told = [(event["label"], event["body"]["left"]) for event in session.events() if event["kind"] == "label"]
    assert all(label in (left, "tie") for label, left in told) and {left for _, left in told} == {"a", "b"}
    assert [label for label, _ in told[-2:]] == ["tie", "tie"]
    assert "[1] left  [2] right  [3] tie" in shown and "left · saved" in shown and "answer_a" not in shown
    assert shown.count("left: first") + shown.count("left: second") == shown.count("right: ") > 0


def test_it_asks_whether_to_stop_at_the_goal_and_says_when_it_was_missed():
    pool = altmas.Pool(None, ["cat", "dog"] * 20, items=["animal"] * 40)
    options = {"method": "tradition", "budget": 30, "targets": {"accuracy": 0.3}}
    with altmas.Session.create(None, pool, **options) as session:
        for query in session.ask(25):
            session.tell(query, "cat")
        shown = shown_to(Hesitant("1", "2"), session, "ana")  # the key of a class neither stops nor goes on
        assert "Goal reached: accuracy: ±0." in shown and session.choices() == [] and session.status().labels == 26
        assert "Goal reached" in shown_to(Hesitant("2", "g", "1"), session, "ana")
        assert [(choice.stop, choice.annotator) for choice in session.choices()] == [(False, "ana")]
        assert session.status().labels == 28
    with altmas.Session.create(None, pool, **(options | {"targets": {"accuracy": 0.01}})) as session:
        keyboard = Typist(*("1" * 40))
        with open(os.devnull, "w") as sink:
            ended = TerminalLabeller(session, "ana", keyboard, Console(file=sink)).run()
    assert ended.startswith("the budget of 30 labels is spent; the goal is not reached (accuracy: ±0.")


def test_keys_and_reveal_are_the_owners_choice():
    pool = altmas.Pool(None, ["cat", "dog"] * 20, items=["animal"] * 40)
    with altmas.Session.create(None, pool, method="tradition", budget=30) as session:
        console = Console(width=100, record=True, file=open(os.devnull, "w"))
        with console.file:
            TerminalLabeller(session, "ana", Typist("r", "d", "1"), console, keys={"dog": "d"}, reveal=False).run()
        said = [pool.classes[code] for code in session.history.labels.values()]
        assert session.status().reveals == 0
    shown = console.export_text()
    assert said == ["dog", "cat"] and "[1] cat  [d] dog" in shown and "reveal" not in shown
    assert "predictions cannot be looked at here" in shown


def test_the_question_stands_above_each_item_as_on_the_page(tmp_path):
    said = altmas.Pool(None, ["cat", "dog"] * 10, items=[f"animal {i}" for i in range(20)])
    session = altmas.Session.create(None, said, method="tradition", instructions="Is it a cat?\nLook at the ears.")
    shown = shown_to(Typist("1", "2", "q"), session)
    assert shown.count("Is it a cat?") == 3 and "ears" not in shown
    console = Console(width=100, record=True, file=open(os.devnull, "w"))
    with console.file:
        TerminalLabeller(session, None, Typist("q"), console, question="Cat or dog?").run()
    shown = console.export_text()
    assert "Cat or dog?" in shown and "Is it a cat?" not in shown


def test_every_command_in_one_sitting():
    pool = altmas.Pool(None, ["cat", "dog"] * 10, items=[f"animal {i}" for i in range(20)])
    options = {"method": "tradition", "budget": 4, "instructions": "Look.", "definitions": {"cat": "feline"}}
    with altmas.Session.create(None, pool, **options) as session:
        keys = (
            "z",
            "i",
            "c",
            "r",
            "n",
            "striped",
            "1",
            "z",
            "1",
            "s",
            "blurred",
            "u",
            "x",
            "/",
            "",
            "/",
            "do",
            "2",
            "2",
        )
        shown = shown_to(Typist(*keys), session, "ana")
        said = [(e["kind"], e["label"]) for e in session.events() if e["point"] is not None]
        assert session.should_stop().reason == "the budget of 4 labels is spent"
    assert (
        said
        == [("reveal", None), ("label", "cat"), ("undo", None), ("label", "cat"), ("skip", None), ("unsure", None)]
        + [("label", "dog")] * 3
    )
    for words in ("nothing to undo", "Look.", "cat: feline", "the model says", "taken back: cat", "skipped", "unsure"):
        assert words in shown
    assert "about 1 s left" in shown and "min left" not in shown


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (59, "59 s"), (61, "1 min"), (600, "10 min")])
def test_a_time_below_a_minute_is_in_seconds(seconds, words):
    assert _duration(seconds) == words


def test_a_method_that_fails_in_the_background_is_met_when_asking(monkeypatch):
    pool = altmas.Pool(None, ["cat", "dog"] * 10)
    with altmas.Session.create(None, pool, method="tradition") as session:
        session.ask(1)
        monkeypatch.setattr(session, "prefetch", _failing)
        shown = shown_to(Typist("1"), session)
        assert len(session.history.labels) == 1 and "cat · saved" in shown


def _failing(n: int) -> int:
    raise altmas.errors.MethodError("the method failed")


def test_keys_arrive_one_by_one_and_lines_as_a_whole(monkeypatch):
    outside, inside = pty.openpty()
    usual = termios.tcgetattr(inside)
    with os.fdopen(inside) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        with Terminal() as keys:
            os.write(outside, "aé\x1b[A".encode())
            assert [keys.key() for _ in range(3)] == ["a", "é", "\x1b[A"]
            os.write(outside, b"\x1b")
            assert keys.key() == "\x1b"
            monkeypatch.setattr("builtins.input", lambda prompt: f"{prompt}typed")
            assert keys.line("why? ") == "why? typed"
            monkeypatch.setattr("builtins.input", _at_the_end)
            assert keys.line("why? ") == ""
            os.write(outside, b"\x04")
            assert keys.key() == END
        assert termios.tcgetattr(inside) == usual
    os.close(outside)


def _at_the_end(prompt: str) -> str:
    raise EOFError


def test_the_command_labels_under_the_login_name(session_file, monkeypatch):
    typist = Typist("1", "q")
    monkeypatch.setattr(label, "_has_terminal", lambda: True)
    monkeypatch.setattr(label, "Terminal", lambda: contextlib.nullcontext(typist))
    monkeypatch.setattr("getpass.getuser", lambda: "ana")
    ran = run("label", session_file, "--terminal")
    assert ran.code == 0 and "1 label in" in ran.out
    monkeypatch.setattr("getpass.getuser", _nobody)
    typist.answers = ["2", "q"]
    assert run("label", session_file, "--terminal").code == 0
    with altmas.Session.open(session_file) as session:
        assert [e["annotator"] for e in session.events() if e["kind"] == "label"] == ["ana", None]


def _nobody() -> str:
    raise OSError("no login name")
