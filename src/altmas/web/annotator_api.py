"""Desk: what one annotator sees and does, as plain values. Nothing here tells a prediction, a score, a slice,
a file name, an id or another person's vote, except `reveal`, which is written down."""

import logging
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from statistics import median
from typing import Any

from altmas.errors import AltmasError, PlanError, PoolError, UnknownLabel
from altmas.items.groups import class_groups
from altmas.items.keys import grade_values, shown_order
from altmas.items.pairs import Pair, pair_of, shown_keys
from altmas.items.parts import paired, parts_of, windowed_image_of
from altmas.items.scans import Window
from altmas.pool import Name
from altmas.session import LEASE_SECONDS, Query, Session
from altmas.session.store import Event
from altmas.web.goal import GoalWatch
from altmas.web.handles import Handles
from altmas.web.prefetch import Supply

log = logging.getLogger("altmas")

HAND = 3
"""Items that a page holds: the one on the screen and two that are loaded already, so that a key shows the next at once.

The fewer, the more labels each choice knows; the second one covers a label that is still on its way to the disk."""

HEADER_SECONDS = 0.2

AT_WORK_SECONDS = 180.0
"""Whoever was heard of in this time counts as labelling now."""

PACE_LABELS = 30
"""The seconds per label are the median of this many."""


QUESTION = "Which class fits?"


@dataclass(frozen=True)
class Texts:
    """What annotators are told about the task, and what the owner lets them do.

    question  stays on the screen; by default the first line of the instructions
    reveal    whether they may look at predictions
    keys      {class: key} that the owner chose;  pair  {class: field} of two answers that stand side by side
    groups    {group: [class, ...]} in which many classes are listed; by default those that begin alike
    """

    title: str
    instructions: str
    definitions: Mapping[str, str]
    annotator: str | None
    question: str = ""
    reveal: bool = True
    keys: Mapping[str, str] = field(default_factory=dict)
    pair: Mapping[str, str] | None = None
    groups: Mapping[str, Sequence[str]] | None = None


class Desk:
    """The session as a page for annotators sees it."""

    def __init__(
        self, session: Session, texts: Texts, supply: Supply, goal: GoalWatch, *, lease: float = LEASE_SECONDS
    ) -> None:
        self.session, self.texts, self.supply, self.goal, self.lease = session, texts, supply, goal, lease
        self.pair = pair_of(session.pool, texts.pair)
        self.keys = shown_keys(session.pool.classes, self.pair, texts.keys)
        self.groups = class_groups(session.pool.classes, texts.groups)
        first = next(iter(session.events()))
        self.session_key = sha256(f"page of {first['hash']}".encode()).hexdigest()[:12]
        self.handles = Handles(f"handles of {first['hash']}".encode())
        self._seen: dict[str, float] = {}  # annotator -> when heard of last
        self._told: dict[str, float] = {}  # annotator -> when told last how things stand

    # ------------------------------------------------------------ what is shown

    def setup(self) -> dict[str, Any]:
        """What a page needs to know once."""
        classes = self.session.pool.classes
        rows = [
            {"name": str(name), "key": key, "group": group, "definition": self.texts.definitions.get(str(name), "")}
            for name, key, group in zip(classes, self.keys, self.groups, strict=True)
        ]
        question, instructions = self.question(), self.texts.instructions.strip()
        more = instructions if instructions != question else ""  # what stands above every item needs no dialog
        about: dict[str, Any] = {"title": self.texts.title, "instructions": more, "classes": rows}
        about |= {"question": question, "order": shown_order(classes)}
        about |= {"grades": grade_values(classes) is not None, "pair": self.pair and list(self.pair.codes)}
        about |= {"reveal": self.texts.reveal and bool(self.session.pool.models)}
        return about | {"annotator": self.texts.annotator, "session": self.session_key, "hand": HAND}

    def question(self) -> str:
        """What is asked of every item: the owner's question, or the first line of the instructions."""
        first = self.texts.instructions.strip().partition("\n")[0].strip()
        default = "Which answer is better?" if self.pair is not None else QUESTION
        return self.texts.question or first or default

    def hand(self, annotator: str, have: Collection[str]) -> dict[str, Any]:
        """The items of this annotator that their page does not `have` yet, and how things stand."""
        if self.stopped():
            return {"items": [], "hand": [], "nothing": "stopped", "header": self.header(annotator)}
        mine = self.session.ask(HAND, annotator, self.lease, draw=False)
        return self._handed(annotator, mine, have) | {"header": self.header(annotator)}

    def leave(self) -> None:
        """End the leases of everybody who was shown items here: nobody can answer a page that has ended."""
        for name in list(self._seen):
            try:
                self.session.release(name)
            except AltmasError as problem:  # leases end by themselves; the page ends all the same
                log.info("the items of %s stay with them until their time is over: %s", name, problem)

    def stopped(self) -> bool:
        """Whether the goal is reached and the last choice was to stop."""
        now = self.goal.state()
        return now is not None and now["reached"] and now["choice"] is not None and now["choice"]["stop"]

    def _handed(self, annotator: str, mine: Sequence[Query], have: Collection[str]) -> dict[str, Any]:
        self._seen[annotator] = time.monotonic()
        if len(mine) < HAND:
            self.supply.wake()
        handles = {query.index: self.handles.of(query.index) for query in mine}
        fresh = [self.item(row, annotator) for row, handle in handles.items() if handle not in have]
        return {"items": fresh, "hand": list(handles.values()), "nothing": "" if mine else self._why_nothing()}

    def _header_now_and_then(self, annotator: str) -> dict[str, Any] | None:
        """How things stand, five times a second: whoever labels quicker waits for the disk alone."""
        now, told = time.monotonic(), self._told.get(annotator, -math.inf)
        if now - told < HEADER_SECONDS:
            return None
        self._told[annotator] = now
        return self.header(annotator)

    def item(self, row: int, annotator: str) -> dict[str, Any]:
        """An item as one annotator gets it: with their own note, and the prediction if they looked at it before."""
        pool, shown = self.session.pool, {"handle": self.handles.of(row)}
        parts = parts_of(pool, row)
        note = self.session.note_by(pool.ids[row], annotator)
        more: dict[str, Any] = {} if note is None else {"note": {"text": note.text, "seq": note.seq}}
        if self.texts.reveal and row in self.session.revealed_to(annotator):
            more["revealed"] = self._prediction(row)
        if self.pair is not None:
            sides = self._sides(row, self.pair)
            parts, more["sides"] = paired(parts, sides), list(sides.codes)
        return shown | {"parts": parts} | more

    def _sides(self, row: int, pair: Pair) -> Pair:
        return pair.sides(self.session.pool.ids[row], self.session.plan.seed)

    def image(self, handle: str, number: int, window: Window | None = None) -> tuple[bytes, str, Window | None]:
        """(content, media type, window of values) of an image of an item that somebody was asked for."""
        return windowed_image_of(self.session.pool, self.row(handle), number, window)

    def not_shown(self, annotator: str, handle: str, why: str) -> None:
        """Write down that an image could not be shown."""
        self.session.not_shown(self.session.pool.ids[self.row(handle)], why, annotator)

    def row(self, handle: str) -> int:
        """The row behind a handle; UnknownPoint if there is none."""
        return self.handles.row(handle, self._offered)

    def _offered(self) -> list[int]:
        history = self.session.history
        return [*history.drawn.tolist(), *history.labels, *history.skipped]

    def header(self, annotator: str) -> dict[str, Any]:
        """Progress, pace and the state of the supply."""
        session = self.session
        budget = len(session.pool) if session.plan.budget is None else session.plan.budget
        votes = session.votes_by(annotator)
        took = [event.seconds for event in votes[:PACE_LABELS] if event.seconds is not None and event.kind == "label"]
        pace = float(median(took)) if took else None
        history = session.history
        labels = len(history.labels)
        left = None if pace is None else pace * max(0, budget - labels) / max(1, self._at_work())
        return {
            "labels": labels,
            "budget": budget,
            "mine": len({event.point for event in votes}),
            "saved_at": votes[0].at if votes else None,
            "last_seq": votes[0].seq if votes else None,
            "seconds_per_label": pace,
            "seconds_left": left,
            "supply": asdict(self.supply.state(history)),
            "goal": self.goal.state(),
            "now": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }

    def _at_work(self) -> int:
        now = time.monotonic()
        return sum(now - at < AT_WORK_SECONDS for at in list(self._seen.values()))

    def _why_nothing(self) -> str:
        """Why an annotator has no item: "done", "others" have the rest, or "wait" for the next draw."""
        history, budget = self.session.history, self.session.plan.budget
        left = (history.n_points if budget is None else budget) - len(history.labels)
        answered = history.labels.keys() | history.skipped.keys()
        outstanding = len(set(history.drawn.tolist()) - answered)
        if left > outstanding and (self.supply.state(history).refitting or history.open.any()):
            return "wait"
        return "others" if left > 0 and outstanding else "done"

    # ------------------------------------------------------------ what is said

    def vote(
        self,
        annotator: str,
        handle: str,
        *,
        kind: str,
        label: int | None,
        reason: str,
        seconds: float | None,
        revises: int | None,
        have: Collection[str] = (),
        authenticated: bool = False,
    ) -> dict[str, Any]:
        """The acknowledgement of a label, a skip or an "unsure", on disk and once only, with the items that come next.

        `have` are the items that the page holds besides.
        """
        row = self.row(handle)
        id = self.session.pool.ids[row]
        name = self.class_name(label) if kind == "label" else None
        left = "" if self.pair is None else str(self.class_name(self._sides(row, self.pair).codes[0]))
        event, mine = self.session.vote_and_ask(
            id,
            name,
            annotator,
            HAND,
            self.lease,
            kind=kind,
            reason=reason,
            seconds=seconds,
            revises=revises,
            authenticated=authenticated,
            left=left,
        )
        self.supply.told()
        self.goal.told()
        reply = {"seq": event.seq, "saved_at": event.at} | self._handed(annotator, mine, have)
        return reply | {"header": self._header_now_and_then(annotator)}

    def class_name(self, code: int | None) -> Name:
        """The class with that code; UnknownLabel if there is none."""
        classes = self.session.pool.classes
        if code is None or not 0 <= code < len(classes):
            raise UnknownLabel(f"class number {code} does not exist (0 to {len(classes) - 1}); nothing was recorded")
        return classes[code]

    def undo(self, annotator: str, seq: int, *, authenticated: bool = False) -> dict[str, Any] | None:
        """The item whose vote was taken back, with the earlier vote that stands now; None if it was done before.

        Votes alone can be taken back here: a ruling under the same name is the owner's affair.
        """
        if all(event.seq != seq for event in self.session.votes_by(annotator)):
            return None
        undone = self.session.undo(annotator, seq=seq, authenticated=authenticated)
        if undone is None:
            return None
        self.supply.wake()
        self.goal.told()
        mine = [event for event in self.session.votes_by(annotator) if event.point == str(undone.id)]
        return self.item(undone.index, annotator) | {"vote": self._own(mine[0]) if mine else None}

    def mine(self, annotator: str, before: int | None, limit: int) -> list[dict[str, Any]]:
        """The annotator's own items and votes, newest first."""
        votes: dict[str, Event] = {}
        for event in self.session.votes_by(annotator):
            votes.setdefault(str(event.point), event)
        older = [event for event in votes.values() if before is None or event.seq < before]
        rows = [(self.session.pool.index(event.point), event) for event in older[:limit]]
        return [self.item(row, annotator) | {"vote": self._own(event)} for row, event in rows]

    def _own(self, event: Event) -> dict[str, Any]:
        label = None if event.label is None else self.session.pool.code(event.label)
        return {"kind": event.kind, "label": label, "reason": event.body.get("reason", ""), "seq": event.seq}

    def note(
        self, annotator: str, handle: str, text: str, revises: int | None, *, authenticated: bool = False
    ) -> dict[str, Any] | None:
        """The annotator's note on an item after this one was written down; None if it was taken back."""
        id = self.session.pool.ids[self.row(handle)]
        self.session.note(text, id, annotator, revises=revises, authenticated=authenticated)
        note = self.session.note_by(id, annotator)
        return None if note is None else {"text": note.text, "seq": note.seq}

    def choose(self, annotator: str, stop: bool, *, authenticated: bool = False) -> None:
        """Write down that somebody stops here or goes on; whoever stops holds no items any more."""
        self.session.choose(stop, annotator, goals=self.goal.goals, authenticated=authenticated)
        if stop:
            self.session.release(annotator)

    def reveal(self, annotator: str, handle: str, *, authenticated: bool = False) -> dict[str, Any]:
        """What the model says about an item, after it was written down that the annotator looked."""
        row = self.row(handle)
        if not self.texts.reveal:
            raise PlanError("the owner of this session lets nobody look at predictions; nothing was recorded")
        if not self.session.pool.models:
            raise PoolError("there is no model in this session whose prediction could be shown; nothing was recorded")
        self.session.reveal(self.session.pool.ids[row], annotator, authenticated=authenticated)
        return {"revealed": self._prediction(row)}

    def _prediction(self, row: int) -> str:
        answers = self.session.pool.answers_at(row)
        if len(answers) == 1:
            _, predicted, score = answers[0]
            return str(predicted) if score is None else f"{predicted} ({100 * score:.0f} %)"
        return ", ".join(f"{predicted} ({name})" for name, predicted, _ in answers)
