"""Votes: what annotators say, written down, revised, taken back and settled."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from altmas.errors import PlanError, SessionError, VoteConflict
from altmas.pool import Name, Pool
from altmas.session.answers import Answer, annotator_name, authentication
from altmas.session.journal import Compose, Journal
from altmas.session.log import VOTES, State
from altmas.session.opinions import check_turn, repeated, wants_two
from altmas.session.plan import Plan
from altmas.session.queue import ReadyQueue
from altmas.session.store import Entry, Event

LEASE_SECONDS = 900.0
"""How long a point stays with the annotator who was shown it."""


@dataclass(frozen=True)
class Undone:
    """What an undo took back."""

    id: Name
    index: int
    kind: str
    label: Name | None
    annotator: str | None


class Votes:
    """Everything that annotators say goes through here; each call is on disk when it returns, or nothing is."""

    def __init__(self, journal: Journal, queue: ReadyQueue, plan: Plan) -> None:
        self.journal, self.queue, self.plan = journal, queue, plan

    @property
    def pool(self) -> Pool:
        """The points as of the last look at the log."""
        return self.journal.pool

    def cast(self, answers: Iterable[Answer]) -> None:
        """Record answers and rulings, all or none; a point that is answered is no longer held."""
        entries = [answer.entry(self.pool) for answer in answers]

        def compose(state: State) -> list[Entry]:
            voted: set[str | None] = set()
            for entry in entries:
                if entry.kind in VOTES:
                    voted.add(entry.point)
                elif entry.point not in voted:
                    _refuse_unvoted(state, self.pool.index(entry.point))
            return self._answered(entries)

        self.journal.write(compose)

    def cast_new(self, choose: Callable[[list[Event]], Iterable[Answer]]) -> None:
        """Record what `choose` makes of the standing events; nothing can be written between its look and the record.

        A ruling is taken also where no vote stands: in the session that it comes from, the votes were taken back.
        """

        def compose(state: State) -> list[Entry]:
            answers = choose(list(state.standing.values()))
            return self._answered([answer.entry(self.pool) for answer in answers])

        self.journal.write(compose)

    def _answered(self, entries: list[Entry]) -> list[Entry]:
        """The entries; whoever voted no longer holds the point."""
        for entry in entries:
            if entry.kind in VOTES:
                self.journal.store.release(entry.annotator, entry.point)
        return entries

    def cast_once(self, answer: Answer, revises: int | None) -> Event:
        """The event of an answer, recorded once however often it is sent; VoteConflict if it is not its turn."""
        compose, standing = self._once(answer, revises)
        (event,) = [*self.journal.write(compose), *standing]
        return event

    def cast_and_take(self, answer: Answer, revises: int | None, n: int, lease: float) -> tuple[Event, list[int]]:
        """The same, and the next n rows for this annotator, in one transaction."""
        compose, standing = self._once(answer, revises)
        name = annotator_name(answer.annotator)
        if name is None:
            raise PlanError("items can be leased to a named annotator only; nothing was recorded")
        leased, rows = self.queue.leasing(n, name, lease)
        events, _ = self.journal.write_each(compose, leased)
        (event,) = [*events, *standing]
        return event, rows

    def _once(self, answer: Answer, revises: int | None) -> tuple[Compose, list[Event]]:
        """What writes an answer unless it stands already; then the list holds the event that does."""
        if answer.kind not in VOTES:
            raise PlanError(f"a vote of kind {answer.kind!r} is none; expected one of {VOTES}; nothing was recorded")
        entry, row = answer.entry(self.pool), self.pool.index(answer.id)
        two = wants_two(self.pool.ids[row], self.plan.seed, self.plan.double_share)
        standing: list[Event] = []

        def compose(state: State) -> list[Entry]:
            earlier = repeated(state, row, entry)
            if earlier is not None:
                standing.append(earlier)
                return []
            holder = self.journal.store.holder(str(entry.point), time.time())
            check_turn(state, row, entry.annotator, holder=holder, revises=revises, two=two)
            self.journal.store.release(entry.annotator, entry.point)
            return [entry]

        return compose, standing

    def take_back(self, name: str | None, seq: int | None, authenticated: bool | None = None) -> Undone | None:
        """What was taken back: the last answer or ruling (of that annotator), who then holds the point again."""
        taken: list[Event] = []
        store = self.journal.store

        def compose(state: State) -> list[Entry]:
            last = state.last_standing(name)
            if last is None or last.point is None or (seq is not None and seq not in state.standing):
                return []
            if seq is not None and last.seq != seq:
                raise VoteConflict("something newer was recorded (in another tab?); nothing was taken back")
            taken.append(last)
            if name is not None and last.point not in store.leases(time.time()):
                store.lease([last.point], name, time.time() + LEASE_SECONDS)
            return [Entry("undo", name, last.point, refers=last.seq, body=authentication(authenticated))]

        self.journal.write(compose)
        return self._undone(taken[0]) if taken else None

    def _undone(self, event: Event) -> Undone:
        row = self.pool.index(event.point)
        label = None if event.label is None else self.pool.classes[self.pool.code(event.label)]
        return Undone(self.pool.ids[row], row, event.kind, label, event.annotator)

    def settle(self, id: object, label: object, annotator: str | None, note: str) -> None:
        """Record a ruling on a point that has votes; None says that it cannot be settled."""
        self.cast([Answer(id, label, "unsettled" if label is None else "adjudication", annotator, note=note)])


def _refuse_unvoted(state: State, row: int) -> None:
    if not state.votes(row):
        raise SessionError(
            f"point {state.pool.ids[row]!r} has no label to settle; tell one first; nothing was recorded"
        )
