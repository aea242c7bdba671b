"""RecordingSession: asking for labels, and writing down everything that people and programs say."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from altmas.errors import PlanError, SessionError
from altmas.session.answers import Answer, Query, annotator_name, authentication, id_of
from altmas.session.arrays import pack
from altmas.session.log import RULINGS, VOTES, plain
from altmas.session.queue import Held
from altmas.session.reading import ReadableSession
from altmas.session.remarks import StopChoice, choice_entry, choice_of, note_entry, unshown_entry
from altmas.session.stopping import Goal
from altmas.session.store import Entry, Event
from altmas.session.votes import LEASE_SECONDS, Undone

KINDS = (
    *VOTES,
    *("created", "draw", "undo", *RULINGS, "reveal", "note", "unshown", "choice", "estimate", "model", "extend"),
)
"""Kinds of events that the session writes itself."""


class RecordingSession(ReadableSession):
    """Draws points, and records votes, rulings, remarks and choices: on disk when a method returns."""

    # ------------------------------------------------------------ ask

    def ask(
        self,
        n: int = 1,
        annotator: str | None = None,
        lease: float = LEASE_SECONDS,
        *,
        draw: bool = True,
        take_over: bool = False,
    ) -> list[Query]:
        """The next n points to label, fewer near the end of the budget or the pool; the same until something is told.

        Points that were drawn and wait for a label come first; new ones are drawn and written down before they
        are returned. With an annotator's name they are leased to that person for `lease` seconds: nobody else is
        asked for them meanwhile. With draw=False only points that are ready are returned, without a wait. With
        take_over=True points that are leased to others are returned too, and are no longer theirs.
        """
        if not (isinstance(n, int | np.integer) and n >= 1):
            raise PlanError(f"ask for {n!r} points is not possible; expected a whole number of at least 1")
        if not (math.isfinite(lease) and lease > 0):
            raise PlanError(f"a lease of {lease!r} seconds is not possible; expected a number above 0")
        rows = self._queue.take(int(n), annotator_name(annotator), lease, draw, take_over=take_over)
        return [self._query(row) for row in rows]

    def held_by_others(self, annotator: str | None = None) -> tuple[Held, ...]:
        """Who holds points that wait for a label, and until when, besides this annotator; `ask` leaves them out."""
        return self._queue.held_by_others(annotator_name(annotator))

    def why_fewer(self, asked: int, given: int, annotator: str | None = None) -> str:
        """Why `ask` gave fewer points than it was asked for; empty if it did not."""
        if given >= asked:
            return ""
        history, budget = self.history, self.plan.budget
        told, held = len(history.labels), self.held_by_others(annotator)
        left, room = history.n_points - told - len(history.skipped), self._queue.budget() - told
        reasons = [str(holding) for holding in held]
        if budget is not None and room < min(asked, left):
            reasons.insert(0, f"the budget of {budget:,} labels leaves {max(room, 0):,}")
        elif left < asked:
            reasons.insert(0, f"{left:,} of {history.n_points:,} items have no answer yet")
        return "; ".join(reasons) or f"the method {self.method.name} draws no more now"

    def prefetch(self, n: int) -> int:
        """Draw until n points wait that nobody was asked for; how many were drawn.

        Meant for a background thread: labels can be told, and points that wait asked for, while the method thinks.
        """
        return self._queue.refill(n)

    def _query(self, row: int) -> Query:
        return Query(self.pool.ids[row], row, None if self.pool.items is None else self.pool.items[row])

    def overdue(self) -> list[Query]:
        """Points that wait though points drawn after them have an answer, and that nobody has on the screen.

        Answers beyond the first of them cannot be used by `assured` yet: its sample is the longest answered prefix.
        """
        with self._journal.lock:
            state, held = self._journal.read(), self._queue.holders()
            rows = [row for row in state.overtaken() if row not in held]
        return [self._query(row) for row in rows]

    def release(self, annotator: str) -> None:
        """End the leases of an annotator who went away: the points can be asked of others at once."""
        with self._journal.store.transaction():
            self._journal.store.release(annotator_name(annotator))

    # ------------------------------------------------------------ tell

    def tell(
        self,
        id: object,
        label: object = None,
        annotator: str | None = None,
        seconds: float | None = None,
        note: str = "",
        left: str = "",
    ) -> None:
        """Record the label of a point (its id, or the Query), or of many as {id: label}: on disk when this returns.

        A point that was not asked for is taken too (`history.volunteered`); told again by the same annotator it is
        a revision, told by another one a second opinion. `left` is the class of the answer that was shown on the left,
        where two stood side by side.
        """
        if isinstance(id, Mapping) and label is not None:
            raise PlanError("tell takes {id: label, ...}, or one id and one label; nothing was recorded")
        pairs = id.items() if isinstance(id, Mapping) else [(id, label)]
        self.answer(
            Answer(id_of(point), name, "label", annotator, seconds, note=note or "", left=left) for point, name in pairs
        )

    def skip(
        self,
        id: object,
        reason: str = "",
        annotator: str | None = None,
        *,
        kind: str = "skip",
        seconds: float | None = None,
    ) -> None:
        """Record that a point cannot be labelled ("skip"), or that the annotator cannot tell ("unsure")."""
        if kind in ("label", *RULINGS):
            raise PlanError("skip takes kind='skip' or 'unsure'; use tell for a label; nothing was recorded")
        self.answer([Answer(id_of(id), None, kind, annotator, seconds, reason=reason)])

    def answer(self, answers: Iterable[Answer]) -> None:
        """Record labels, skips and rulings of several people together: all or none, on disk when this returns.

        A ruling is an Answer of kind "adjudication", on a point with votes in the session or earlier in `answers`.
        """
        self._votes.cast(answers)

    def answer_new(self, choose: Callable[[list[Event]], Iterable[Answer]]) -> None:
        """`answer` with what `choose` makes of the votes and rulings that stand, oldest first, when it is recorded.

        Two processes that import the same file at the same time come one after the other: the second finds the
        answers of the first standing.
        """
        self._votes.cast_new(choose)

    def vote(
        self,
        id: object,
        label: object = None,
        annotator: str | None = None,
        *,
        kind: str = "label",
        reason: str = "",
        seconds: float | None = None,
        revises: int | None = None,
    ) -> Event:
        """The event of what an annotator says about a point that they were asked for, recorded once however often sent.

        Meant for pages that may lose the acknowledgement and send again. VoteConflict if the point went to somebody
        else meanwhile, or if the annotator's own standing vote is another one than `revises`, the seq that they saw.
        """
        return self._votes.cast_once(Answer(id, label, kind, annotator, seconds, reason), revises)

    def vote_and_ask(
        self,
        id: object,
        label: object,
        annotator: str,
        n: int,
        lease: float = LEASE_SECONDS,
        *,
        kind: str = "label",
        reason: str = "",
        seconds: float | None = None,
        revises: int | None = None,
        authenticated: bool | None = None,
        left: str = "",
    ) -> tuple[Event, list[Query]]:
        """`vote`, and the next n points that are ready for this annotator (`ask` with draw=False), in one write."""
        answer = Answer(id, label, kind, annotator, seconds, reason, authenticated=authenticated, left=left)
        event, rows = self._votes.cast_and_take(answer, revises, n, lease)
        return event, [self._query(row) for row in rows]

    def undo(
        self, annotator: str | None = None, *, seq: int | None = None, authenticated: bool | None = None
    ) -> Undone | None:
        """Take back the last label, skip or ruling (of that annotator); what it was, or None if there is nothing.

        With seq, that event alone: None if it was taken back already, VoteConflict if something newer stands.
        """
        return self._votes.take_back(annotator_name(annotator), seq, authenticated)

    def adjudicate(self, id: object, label: object, annotator: str | None = None, note: str = "") -> None:
        """Settle the label of a point over the votes of its annotators."""
        if label is None:
            raise PlanError("adjudicate takes a class; cannot_settle says that there is none; nothing was recorded")
        self._votes.settle(id, label, annotator, note)

    def cannot_settle(self, id: object, annotator: str | None = None, note: str = "") -> None:
        """Rule that the votes on a point cannot be settled: it has no label, and counts as skipped."""
        self._votes.settle(id, None, annotator, note)

    def close_overdue(self, annotator: str | None = None, reason: str = "closed: no answer") -> int:
        """Record "no answer" for every point that is `overdue`: a skip with that reason; how many there were."""
        late = self.overdue()
        self.answer(Answer(query.id, None, "skip", annotator, reason=reason) for query in late)
        return len(late)

    # ------------------------------------------------------------ remarks and choices

    def reveal(self, id: object, annotator: str | None = None, *, authenticated: bool | None = None) -> None:
        """Record that an annotator looked at what the model predicts for a point."""
        point = str(self.pool.ids[self.pool.index(id)])
        entry = Entry("reveal", annotator_name(annotator), point, body=authentication(authenticated))
        self._journal.write(lambda state: [entry])

    def note(
        self,
        remark: str,
        id: object = None,
        annotator: str | None = None,
        *,
        revises: int | None = None,
        authenticated: bool | None = None,
    ) -> int:
        """Record a remark, about one point or about the session; its seq. With `revises`, the new text of that one.

        An edit to "" takes the remark back; VoteConflict if it is not the annotator's own.
        """
        point, name = None if id is None else str(self.pool.ids[self.pool.index(id_of(id))]), annotator_name(annotator)
        (event,) = self._journal.write(lambda state: [note_entry(state, remark, point, name, revises, authenticated)])
        return event.seq if revises is None else revises

    def not_shown(self, id: object, why: str, annotator: str | None = None) -> None:
        """Record that an image of a point could not be shown: once for each point; `status().unshown` counts them."""
        row = self.pool.index(id_of(id))
        entry = unshown_entry(str(self.pool.ids[row]), why, annotator)
        self._journal.write(lambda state: [] if row in state.unshown else [entry])

    def choose(
        self,
        stop: bool,
        annotator: str | None = None,
        *,
        goals: Iterable[Goal] | None = None,
        authenticated: bool | None = None,
    ) -> StopChoice:
        """Record that somebody stops here or goes on, and the goals that they saw; labelling stays possible.

        By default the goals as they stand.
        """
        now = self.now()
        seen: Any = plain([asdict(goal) for goal in (now.goals(self.estimate) if goals is None else goals)])
        entry = choice_entry(stop, seen, len(now.history.labels), annotator, authenticated)
        return choice_of(self._journal.write(lambda state: [entry])[0])

    def record(self, kind: str, body: Mapping[str, Any], arrays: Mapping[str, Any] | None = None) -> None:
        """Write an event of a new kind into the log (predictions of a second model, settings of the page, ...)."""
        if kind in KINDS:
            raise SessionError(f"events of kind {kind!r} are written by the session itself; nothing was recorded")
        data = None if arrays is None else pack({name: np.asarray(array) for name, array in arrays.items()})
        values = {str(key): plain(value) for key, value in body.items()}
        self._journal.write(lambda state: [Entry(kind, body=values, data=data)])
