"""ReadableSession: what a session says of the model, of its labels and of the people who gave them.

Nothing here draws or records, except that the first estimate at each number of labels is written down.
"""

import json
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from altmas.errors import PlanError, StoreFailure
from altmas.estimates import Estimates
from altmas.forecast import Forecast
from altmas.methods import check
from altmas.metrics import MetricLike, metric_set
from altmas.outputs import kept_by, write_whole
from altmas.pool import Name
from altmas.session.answers import annotator_name, id_of
from altmas.session.changes import Change
from altmas.session.core import SessionCore
from altmas.session.log import VOTES, plain
from altmas.session.opinions import Agreement, Disagreement, agreement, disagreements, unsure
from altmas.session.remarks import Note, StopChoice, choice_of, notes, own_note
from altmas.session.snapshot import Snapshot, Status, status_of
from altmas.session.stopping import Decision, Goal, may_stop
from altmas.session.store import Entry, Event

log = logging.getLogger("altmas")

ESTIMATES_KEPT = 4
"""How many estimates are remembered: the last ones, each for its history and slice."""


class ReadableSession(SessionCore):
    """Estimates, the stop rule, and what the log says of votes, people and remarks."""

    # ------------------------------------------------------------ estimate and stop

    def estimate(self, by: str | None = None, *, metrics: MetricLike | Iterable[MetricLike] | None = None) -> Estimates:
        """Every metric from the labels so far; with `by`, every metric on each value of that slice.

        metrics  others than those of the plan, in their place; such an estimate is not logged
        """
        now = self.now()
        if metrics is not None:
            resolved = metric_set(metrics, now.task.pool)
            check(self.method, now.task.pool, resolved)
            return replace(now, task=replace(now.task, metrics=resolved, targets=())).estimate(by)
        key = (now.history.key, by, len(now.task.pool.models), len(self._journal.seen.changes), now.disagreements)
        estimates = self._estimates.get(key)
        if estimates is None:
            estimates = now.estimate(by)
            self._estimates = dict([*self._estimates.items(), (key, estimates)][-ESTIMATES_KEPT:])
            if by is None:
                self._log_estimate(now, estimates)
        return estimates

    def _log_estimate(self, now: Snapshot, estimates: Estimates) -> None:
        """Keep the first estimate at each number of labels; a file that cannot be written keeps nobody from it."""
        labels = len(now.history.labels)
        body: Any = plain({"labels": labels, "seen": now.seq, "estimates": estimates.to_dict()["estimates"]})
        try:
            with self._journal.lock:
                if labels not in self._journal.read().estimates:
                    self._journal.write(lambda state: [Entry("estimate", body=body)])
        except StoreFailure as failure:
            log.info("the estimate was not logged: %s", failure)

    def trajectory(self, points: int = 20) -> list[tuple[int, Estimates]]:
        """[(labels, estimates)] on the way to where the session stands, at up to so many numbers of labels.

        Each is computed from the labels of that moment; nothing is drawn or recorded.
        """
        if points < 1:
            raise PlanError(f"a trajectory of {points} points was asked for; expected at least 1")
        past, met = self._journal.beginning(), {0}
        for event in self._journal.store.events():
            past.feed([event])
            met.add(len(past.labels))
        last = len(past.labels)
        counts = sorted({round(last * (step + 1) / points) for step in range(points)} & met - {0})
        moments = {count: self.now() if count == last else self.at(labels=count) for count in counts}
        return [(count, moment.estimate()) for count, moment in moments.items()]

    def should_stop(self) -> Decision:
        """Whether the budget is spent, the pool is exhausted or every target is reached; and what is missing."""
        now = self.now()
        return replace(now.decision(self.estimate), ahead=lambda: self._forecast_at(now, None))

    def forecast(self, until: int | None = None) -> Forecast | None:
        """Widths, and the chance to reach every target or decide every threshold, up to the budget or `until` labels.

        The session goes on in worlds imagined from what the method believes now, and that belief stays as it is. None
        below 20 drawn labels, or for a method that cannot tell.
        """
        return self._forecast_at(self.now(), until)

    def _forecast_at(self, now: Snapshot, until: int | None) -> Forecast | None:
        """The forecast of a moment, kept for the last one asked for."""
        key = (now.history.key, until, len(now.task.pool.models), len(self._journal.seen.changes))
        kept = self._forecast
        if kept is None or kept[0] != key:
            kept = self._forecast = key, now.forecast(until, settled=may_stop(now.goals(self.estimate)))
        return kept[1]

    def goals(self) -> tuple[Goal, ...]:
        """Every target and threshold of the plan, and whether it is reached now."""
        return self.now().goals(self.estimate)

    # ------------------------------------------------------------ labels and people

    def status(self) -> Status:
        """Counts, pace and people, now."""
        with self._journal.lock:
            return status_of(self.plan, self._journal.read(), self._queue.holders())

    def logged_estimates(self) -> list[dict[str, Any]]:
        """The first estimate that was made at each number of labels, as `Estimates.to_dict` has it, in that order."""
        with self._journal.lock:
            logged = self._journal.read().estimates
            return [dict(logged[labels].body) for labels in sorted(logged)]

    def standing(self) -> list[Event]:
        """Every vote and ruling that was not taken back, oldest first; of one annotator on a point the last counts."""
        with self._journal.lock:
            return list(self._journal.read().standing.values())

    def votes(self, id: object) -> dict[str, Name | None]:
        """{annotator: label, None for a skip} of one point; nobody named is ""."""
        row = self.pool.index(id)
        with self._journal.lock:
            votes = self._journal.read().votes(row)
        return {vote.annotator or "": None if vote.code is None else self.pool.classes[vote.code] for vote in votes}

    def votes_by(self, annotator: str | None, limit: int | None = None) -> list[Event]:
        """The standing votes of one annotator (of nobody named for None), newest first."""
        name = annotator_name(annotator)
        with self._journal.lock:
            standing = reversed(self._journal.read().standing.values())
            votes = (event for event in standing if event.annotator == name and event.kind in VOTES)
            return list(islice(votes, limit))

    def unsure(self) -> list[Disagreement]:
        """Points without a label whose annotators said "unsure", and that wait for `adjudicate`."""
        with self._journal.lock:
            return unsure(self._journal.read())

    def agreement(self) -> Agreement:
        """How far annotators agree where several of them labelled one point."""
        with self._journal.lock:
            return agreement(self._journal.read())

    def disagreements(self) -> list[Disagreement]:
        """Points whose annotators differ and that wait for `adjudicate`."""
        with self._journal.lock:
            return disagreements(self._journal.read())

    # ------------------------------------------------------------ remarks, choices, changes

    def notes(self, id: object = None) -> list[Note]:
        """Every remark that stands (on one point), oldest first: notes, and those that came with labels and rulings."""
        with self._journal.lock:
            remarks = notes(self._journal.read())
        point = None if id is None else self.pool.ids[self.pool.index(id_of(id))]
        return remarks if id is None else [note for note in remarks if note.id == point]

    def note_by(self, id: object, annotator: str | None) -> Note | None:
        """The last remark that stands of one annotator on a point, apart from those that came with a label."""
        with self._journal.lock:
            return own_note(self._journal.read(), str(self.pool.ids[self.pool.index(id)]), annotator_name(annotator))

    def revealed_to(self, annotator: str | None) -> set[int]:
        """The rows whose prediction an annotator has looked at."""
        name = annotator_name(annotator)
        with self._journal.lock:
            return {row for row, who in self._journal.read().revealed if who == name}

    def choices(self) -> list[StopChoice]:
        """Who stopped or went on when the goal was reached or the budget spent, oldest first."""
        with self._journal.lock:
            return [choice_of(event) for event in self._journal.read().choices]

    def changes(self) -> list[Change]:
        """What was changed after the session was made, in order."""
        with self._journal.lock:
            return list(self._journal.read().changes)

    # ------------------------------------------------------------ the log

    def events(self) -> Iterator[dict[str, Any]]:
        """Every event in order, as plain values."""
        return map(_event_dict, self._journal.store.events())

    def export_events(self, path: str | os.PathLike[str], *, force: bool = False) -> int:
        """Write every event as one line of JSON; how many there are; force replaces a file."""
        lines = [json.dumps(event, ensure_ascii=False) + "\n" for event in self.events()]
        write_whole(path, "".join(lines).encode(), force=force, kept=kept_by(self.pool, self.path))
        return len(lines)

    def integrity(self) -> str:
        """What SQLite's own check of the file says: "ok", or the faults it found."""
        return self._journal.store.integrity()


def _event_dict(event: Event) -> dict[str, Any]:
    columns = ("seq", "at", "kind", "annotator", "point", "label", "seconds", "refers", "body", "hash")
    arrays = {name: array.tolist() for name, array in event.arrays.items()}
    return {name: getattr(event, name) for name in columns} | ({"arrays": arrays} if arrays else {})


def told_so_far(session: ReadableSession) -> tuple[Any, ...]:
    """Changes whenever estimates and goals may: with labels, skips, rulings, models, settings; not with draws."""
    now = session.now()
    told = tuple(now.history.labels.items()), tuple(now.history.skipped)
    return (*told, len(now.task.pool.models), len(session.changes()), now.disagreements)
