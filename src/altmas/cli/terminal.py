"""Labelling in the terminal: one item at a time, one key for each class, everything saved at once.

Blind as on the page: no prediction, score, id or other people's vote unless it is asked for, and that is logged.
"""

import threading
import time
from collections.abc import Iterable, Mapping

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from altmas.cli.keyboard import END, ESCAPE, Keyboard
from altmas.cli.show import counted, harmless
from altmas.errors import AltmasError
from altmas.items.keys import COMMANDS, DIGITS, shown_order
from altmas.items.pairs import Pair, pair_of, shown_keys
from altmas.items.parts import text_of
from altmas.items.search import found
from altmas.pool.naming import Name
from altmas.session import Query, Session
from altmas.session.stopping import Goal, may_stop
from altmas.suggest import near

AHEAD = 4
"""Items that are drawn while the labeller looks at one."""

SHADES = " ░▒▓█"
LARGEST_PICTURE = 48


class TerminalLabeller:
    """Shows what the session asks and tells it what the keyboard says, until there is nothing left or q is pressed."""

    def __init__(
        self,
        session: "Session",
        annotator: str | None,
        keyboard: Keyboard,
        console: Console,
        *,
        keys: Mapping[str, str] | None = None,
        pair: Mapping[str, str] | None = None,
        reveal: bool = True,
        question: str = "",
    ) -> None:
        self.session, self.annotator = session, annotator
        self.question = question or session.plan.instructions.strip().partition("\n")[0].strip()
        self.keyboard, self.console = keyboard, console
        self.pair = pair_of(session.pool, pair)
        self.keys = shown_keys(session.pool.classes, self.pair, keys)
        self.may_reveal = reveal and bool(session.pool.models)
        self.recent: list[Name] = []
        """Classes on the keys 1-9 where there are too many for keys; each keeps its place."""
        self.quit = "" if "q" in self.keys else "q"
        self._note = ""
        self._thinker: threading.Thread | None = None
        self._goals: tuple[Goal, ...] = ()
        self._asked_to_stop = bool(session.choices())

    def run(self) -> str:
        """Label until the end; why it ended."""
        try:
            while queries := self._next():
                if self._stops_at_the_goal():
                    return "stopped at the goal; everything told is saved"
                if not self._label(queries[0]):
                    return "stopped; everything told is saved"
            return self._end()
        finally:
            if self.annotator is not None:
                self.session.release(self.annotator)
            if self._thinker is not None and self._thinker.is_alive():
                with self.console.status("finishing the choice of items under way"):
                    self._thinker.join()

    def _stops_at_the_goal(self) -> bool:
        """Ask once whether to stop, when the goal is reached, and write the answer down."""
        if self._asked_to_stop or not may_stop(self._goals):
            return False
        self._say(f"Goal reached: {_listed(self._goals)}", "green")
        self.console.print(Text.assemble("  ", ("[x]", "bold cyan"), " stop here  ", ("[g]", "bold cyan"), " go on"))
        while (key := self.keyboard.key()) not in ("x", "g", END, ESCAPE):
            pass
        self._asked_to_stop = True
        if key in ("x", "g"):
            self.session.choose(key == "x", self.annotator, goals=self._goals)
        return key != "g"

    def _end(self) -> str:
        """Why there is nothing left, and whether the goal was reached."""
        reason, goals = self.session.should_stop().reason, self.session.goals()
        if not goals:
            return reason
        return f"{reason}; the goal is {'' if may_stop(goals) else 'not '}reached ({_listed(goals)})"

    # ------------------------------------------------------------ one item

    def _next(self) -> "list[Query]":
        if ready := self.session.ask(1, self.annotator, draw=False):
            return ready
        with self.console.status("choosing the next item"):
            return self.session.ask(1, self.annotator)

    def _label(self, query: "Query") -> bool:
        """Show an item and do what is asked until it is settled; False to end."""
        self._draw_ahead()
        self._show(query)
        since = time.monotonic()
        while True:
            key = self.keyboard.key()
            if key in (END, ESCAPE) or (self.quit and key == self.quit):
                return False
            seconds = time.monotonic() - since
            label = self._class_of(key, query)
            if label is not None or (key == "/" and (label := self._typed()) is not None):
                self._tell(query, label, seconds)
                return True
            if self._settled(query, COMMANDS.get(key, ""), seconds):
                return True
            if key == "?":
                self.console.print(self._key_list(), soft_wrap=True)

    def _class_of(self, key: str, query: "Query") -> Name | None:
        """The class that a key means for this item."""
        if self._typed_ones and key in DIGITS and DIGITS.index(key) < len(self.recent):
            return self.recent[DIGITS.index(key)]
        names = dict(zip(self.keys, self._named(query), strict=True))
        return names.get(key) if key and not self._typed_ones else None

    @property
    def _typed_ones(self) -> bool:
        return "" in self.keys

    def _named(self, query: "Query") -> list[Name]:
        """The class behind each key: of a pair, the first key is for what stands on the left."""
        names = list(self.session.pool.classes)
        if self.pair is not None:
            for code, shown in zip(self.pair.codes, self._sides(self.pair, query).codes, strict=True):
                names[code] = self.session.pool.classes[shown]
        return names

    def _sides(self, pair: Pair, query: "Query") -> Pair:
        return pair.sides(query.id, self.session.plan.seed)

    def _settled(self, query: "Query", command: str, seconds: float) -> bool:
        """Carry out a command; whether another item is to be shown."""
        match command:
            case "unsure":
                self._skip(query, "", "unsure", seconds)
            case "skip":
                self._skip(query, self.keyboard.line("why can it not be labelled? "), "skip", seconds)
            case "undo":
                return self._undo()
            case "note":
                self._note = self.keyboard.line("note: ").strip()
                return False
            case "reveal":
                self._reveal(query)
                return False
            case "instructions":
                self._say(self.session.plan.instructions or "no instructions were given")
                return False
            case "definitions":
                for name, text in self.session.plan.definitions.items() or {"": "no definitions were given"}.items():
                    self._say(f"{name}: {text}" if name else text)
                return False
            case _:
                return False
        return True

    def _tell(self, query: "Query", label: Name, seconds: float) -> None:
        left = "" if self.pair is None else str(self.session.pool.classes[self._sides(self.pair, query).codes[0]])
        self.session.tell(query.id, label, self.annotator, seconds, self._note, left)
        self._note = ""
        if self._typed_ones and label not in self.recent:
            self.recent = [*self.recent, label][-len(DIGITS) :]
        name = self._shown_name(label, left)
        self._say(f"{name} · saved {time.strftime('%H:%M:%S')}", "green")

    def _shown_name(self, label: Name, left: str) -> str:
        """What the annotator sees for a class: left or right, where it is one of a pair."""
        if self.pair is None or self.session.pool.code(label) not in self.pair.codes:
            return str(label)
        return "left" if str(label) == left else "right"

    def _reveal(self, query: Query) -> None:
        answers = self.session.pool.answers_at(query.index)
        if not self.may_reveal:
            why = "predictions cannot be looked at here" if answers else "there is no model in this session"
            self._say(why, "yellow")
            return
        self.session.reveal(query.id, self.annotator)
        alone = len(answers) == 1
        words = "; ".join(f"{'the model' if alone else name} says {predicted}" for name, predicted, _ in answers)
        self._say(f"{words}; that you looked is recorded", "yellow")

    def _skip(self, query: "Query", reason: str, kind: str, seconds: float) -> None:
        reason = "; ".join(filter(None, [reason.strip(), self._note]))
        self.session.skip(query.id, reason, self.annotator, kind=kind, seconds=seconds)
        self._note = ""
        self._say(f"{'unsure' if kind == 'unsure' else 'skipped'} · saved {time.strftime('%H:%M:%S')}", "green")

    def _undo(self) -> bool:
        undone = self.session.undo(self.annotator)
        if undone is None:
            self._say("nothing to undo")
            return False
        self._say(f"taken back: {undone.label if undone.kind == 'label' else undone.kind}", "yellow")
        return True

    def _typed(self) -> Name | None:
        """The class whose name, or a part that no other has, is typed; None if that is not one class."""
        typed = self.keyboard.line("class: ").strip()
        names = self.session.pool.classes
        fitting = [name for name in names if str(name) == typed] or found(typed, names)
        if len(fitting) == 1:
            return fitting[0]
        if typed:
            several = ", ".join(map(str, fitting[:8]))
            self._say(f"several fit: {several}" if fitting else f"no class is called {typed!r}{near(typed, names)}")
        return None

    # ------------------------------------------------------------ what is seen

    def _show(self, query: "Query") -> None:
        self.console.print()
        self.console.print(Rule(Text(self._header()), style="dim", align="left"))
        if self.question:
            self.console.print(Text(harmless(self.question), "bold"))
        self.console.print(Padding(_picture(query.item) or Text(self._text(query)), (1, 2)))
        self.console.print(self._key_list(), soft_wrap=True)

    def _text(self, query: "Query") -> str:
        if self.pair is None or not isinstance(query.item, Mapping):
            return _text(query)
        sides = self._sides(self.pair, query).fields
        rest = {name: value for name, value in query.item.items() if name not in sides}
        answers = {side: query.item[name] for side, name in zip(("left", "right"), sides, strict=True)}
        return _rows(rest) + "\n" * bool(rest) + "\n".join(f"\n{_rows({side: answers[side]})}" for side in answers)

    def _header(self) -> str:
        now = self.session.status()
        parts = [self.annotator] if self.annotator else []
        parts.append(f"{now.labels} of {now.budget} labels" if now.budget else counted(now.labels, "label"))
        if now.seconds_per_label == now.seconds_per_label:  # not nan
            parts.append(f"{now.seconds_per_label:.0f} s each")
            if now.budget and now.budget > now.labels:
                parts.append(f"about {_duration((now.budget - now.labels) * now.seconds_per_label)} left")
        return " · ".join(parts)

    def _key_list(self) -> Text:
        """Every key and what it does; on each item."""
        shown = Text()
        sides = () if self.pair is None else self.pair.codes
        for code in [*sides, *(code for code in shown_order(self.session.pool.classes) if code not in sides)]:
            name = ("left", "right")[sides.index(code)] if code in sides else self.session.pool.classes[code]
            if self.keys[code]:
                shown.append(f"[{self.keys[code]}]", "bold cyan").append(f" {harmless(name)}  ")
        if self._typed_ones:
            for key, recent in zip(DIGITS, self.recent, strict=False):
                shown.append(f"[{key}]", "bold cyan").append(f" {harmless(recent)}  ")
            shown.append("[/]", "bold cyan").append(" type a class  ")
        shown.append("\n")
        hidden = {"instructions": not self.session.plan.instructions, "definitions": not self.session.plan.definitions}
        hidden["reveal"] = not self.may_reveal
        for key, name in COMMANDS.items():
            if not hidden.get(name, False):
                shown.append(f"[{key}]", "cyan").append(f" {name}  ", "dim")
        shown.append(f"[{self.quit or 'Esc'}]", "cyan").append(" quit", "dim")
        return shown

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(Text(f"  {harmless(text)}", style))

    # ------------------------------------------------------------ no waiting

    def _draw_ahead(self) -> None:
        """Let the method choose further items in the background while this one is looked at."""
        if self._thinker is None or not self._thinker.is_alive():
            self._thinker = threading.Thread(target=self._prefetch, daemon=True)
            self._thinker.start()

    def _prefetch(self) -> None:
        try:
            self.session.prefetch(AHEAD)
            self._goals = self.session.goals()
        except AltmasError:
            pass  # asking for the next item meets the same failure and says it


def _text(query: "Query") -> str:
    """An item as text; its id only where there is nothing else to recognise it by."""
    if query.item is None:
        return harmless(query.id)
    return _rows(query.item) if isinstance(query.item, Mapping) else harmless(text_of(query.item))


def _rows(values: Mapping[str, object]) -> str:
    return "\n".join(f"{harmless(name)}: {harmless(text_of(value))}" for name, value in values.items())


def _duration(seconds: float) -> str:
    """A time as people say it: in seconds below a minute."""
    return f"{max(1, round(seconds))} s" if seconds < 60 else f"{round(seconds / 60)} min"


def _listed(goals: Iterable[Goal]) -> str:
    return "; ".join(map(str, goals))


def _picture(item: object) -> Text | None:
    """A small grey image in shades of the text colour; None for anything else."""
    if not (isinstance(item, np.ndarray) and item.ndim == 2 and 0 < max(item.shape) <= LARGEST_PICTURE):
        return None
    low, high = float(item.min()), float(item.max())
    levels = (item - low) / (high - low or 1.0) * (len(SHADES) - 1)
    lines = ("".join(2 * SHADES[round(float(level))] for level in row) for row in levels)
    return Text("\n".join(lines))
