"""Session: ask, tell, estimate, stop; and the loop for an oracle that is a function.

Everything a session knows is the replay of its event log (ledger.py). Draws are written down before they are
shown, labels before they are acknowledged, so a reopened session goes on as if it had never been closed.
Methods think without any lock held: labels can be told from other threads and processes meanwhile.
"""

import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from altmas.errors import PlanError, PoolMismatch, SessionError, StoreFailure, VoteConflict
from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.ledger import VOTES, Ledger, draw_entry, plain
from altmas.methods import DEFAULT_METHOD, Method
from altmas.metrics import MetricLike
from altmas.opinions import (
    Agreement,
    Disagreement,
    agreement,
    check_turn,
    disagreements,
    repeated,
    second_opinions,
    unsure,
    wants_two,
)
from altmas.plan import Plan
from altmas.pool import Name, Pool
from altmas.pool_archive import archivable, parts_of, pool_of
from altmas.progress import progress_bar
from altmas.snapshot import Snapshot, Status, status_of
from altmas.stopping import Decision
from altmas.store import Entry, Event, LabelStore, pack

log = logging.getLogger("altmas")

LEASE_SECONDS = 900.0
"""How long a point stays with the annotator who was shown it."""


@dataclass(frozen=True)
class Query:
    """A point that is waiting for its label: its id, its row in the pool and what a labeller is shown."""

    id: Name
    index: int
    item: Any = None


@dataclass(frozen=True)
class Undone:
    """What an undo took back."""

    id: Name
    index: int
    kind: str
    label: Name | None
    annotator: str | None


class Session:
    """One model under test, one pool, one log of labels. Made by `Session.create` or `Session.open`."""

    def __init__(self, store: LabelStore, plan: Plan, pool: Pool, ledger: Ledger) -> None:
        self.plan, self.pool = plan, pool
        self.task = plan.task(pool)
        self._store, self._ledger = store, ledger
        self._thinking = threading.Lock()  # one proposal at a time; never needed to tell
        self._remembered: dict[Any, Estimates] = {}

    # ------------------------------------------------------------ made, opened, closed

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str] | None,
        pool: Pool,
        *,
        metrics: MetricLike | Iterable[MetricLike] = ("accuracy",),
        method: str | Method = DEFAULT_METHOD,
        budget: int | None = None,
        targets: Mapping[str, float] | None = None,
        thresholds: Mapping[str, float] | None = None,
        confidence: float = 0.95,
        seed: int = 0,
        exist_ok: bool = False,
        double_share: float = 0.0,
        instructions: str = "",
        definitions: Mapping[str, str] | None = None,
    ) -> Self:
        """A new session in a file, or in memory for None; with exist_ok the one that is there if it has this plan."""
        plan = Plan.of(
            pool,
            metrics=metrics,
            method=method,
            budget=budget,
            targets=targets,
            thresholds=thresholds,
            confidence=confidence,
            seed=seed,
            double_share=double_share,
            instructions=instructions,
            definitions=definitions,
        )
        place = None if path is None else Path(path)
        if exist_ok and place is not None and place.exists():
            return cls._reopened(place, plan, pool)
        archived = place is not None and pool.source is None and archivable(pool)
        first = Entry("created", body=_birth(plan, pool, archived))
        store = LabelStore.create(place, parts_of(pool) if archived else (), first)
        return cls._begun(store, plan, pool, store.events())

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        pool: Pool | None = None,
        *,
        metrics: Iterable[MetricLike] = (),
        method: Method | None = None,
        read_only: bool = False,
    ) -> Self:
        """The session in a file. PoolMismatch says which part of the pool differs from the one it was made with.

        `pool`, `metrics`, `method` stand in for what the file cannot hold: a pool of more than 512 MB,
        functions and methods that cannot be imported again.
        """
        store = LabelStore.open(Path(path), read_only=read_only)
        try:
            events = store.events()
            born = events[0].body
            plan = Plan.from_json(born["plan"], metrics, method)
            pool = pool if pool is not None else _stored_pool(store, born["pool"])
            _compare(store.path, pool, plan.fingerprint)
            return cls._begun(store, plan, pool, events)
        except BaseException:
            store.close()
            raise

    @classmethod
    def _reopened(cls, path: Path, plan: Plan, pool: Pool) -> Self:
        session = cls.open(path, pool, metrics=[one for one in plan.metrics if not isinstance(one, str)])
        different = plan.differences(session.plan)
        if different:
            session.close()
            raise PlanError(f"{path} has another plan: {'; '.join(different)}; nothing was changed")
        return session

    @classmethod
    def _begun(cls, store: LabelStore, plan: Plan, pool: Pool, events: list[Event]) -> Self:
        ledger = Ledger(pool)
        ledger.feed(events)
        return cls(store, plan, pool, ledger)

    def close(self) -> None:
        """Close the file; everything told is in it already."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        budget = f" of {self.plan.budget}" if self.plan.budget is not None else ""
        return f"Session({self.path or 'in memory'}: {self.method.name}, {len(self.history.labels)}{budget} labels)"

    @property
    def path(self) -> Path | None:
        """The session file, or None for one in memory."""
        return self._store.path

    @property
    def method(self) -> Method:
        """How points are chosen and metrics estimated."""
        return self.plan.method

    @property
    def history(self) -> History:
        """What methods see: every draw, label and skip so far."""
        with self._store.lock:
            return self._read().history()

    # ------------------------------------------------------------ ask

    def ask(
        self, n: int = 1, annotator: str | None = None, lease: float = LEASE_SECONDS, *, draw: bool = True
    ) -> list[Query]:
        """The next n points to label, fewer near the end of the budget or the pool; the same until something is told.

        Points that were drawn and wait for a label come first; new ones are drawn and written down before they
        are returned. With an annotator's name they are leased to that person for `lease` seconds: nobody else is
        asked for them meanwhile. With draw=False only points that are ready are returned, without a wait.
        """
        name = _annotator(annotator)
        while True:
            with self._store.lock:
                rows = self._ready(n, name)
                if len(rows) >= n or not draw or not self._room():
                    return [self._query(row) for row in self._leased(rows, n, name, lease)]
            if not self._draw(n - len(rows)):
                n = len(rows)

    def prefetch(self, n: int) -> int:
        """Draw until n points wait for a label that nobody was asked for; how many were drawn.

        Meant for a background thread: labels can be told while the method thinks.
        """
        with self._store.lock:
            missing = n - len(self._ready(n, None))
        return self._draw(missing) if missing > 0 else 0

    def _ready(self, n: int, name: str | None) -> list[int]:
        """Up to n rows that this annotator can be shown without a new draw."""
        ledger = self._read()
        holders = self._holders()
        elsewhere = {row for row, holder in holders.items() if holder != name}
        waiting = [row for row in ledger.outstanding() if row not in elsewhere]
        allowed = self._budget() - len(ledger.labels) - len(elsewhere & ledger.waiting)
        rows = sorted(waiting, key=lambda row: row not in holders)[: max(0, allowed)]
        if name is None:
            return rows[:n]
        seconds = second_opinions(ledger, self.plan.seed, self.plan.double_share)
        return [*(row for row, voter in seconds.items() if voter != name and row not in elsewhere), *rows][:n]

    def _room(self) -> int:
        """How many new points may be drawn: within the budget, and open."""
        ledger = self._ledger
        return max(0, self._budget() - len(ledger.labels) - len(ledger.waiting))

    def _budget(self) -> int:
        return len(self.pool) if self.plan.budget is None else self.plan.budget

    def _holders(self) -> dict[int, str]:
        """{row: annotator} of the leases in force."""
        return {self.pool.index(point): holder for point, holder in self._store.leases(time.time()).items()}

    def _leased(self, rows: list[int], n: int, name: str | None, lease: float) -> list[int]:
        """The rows, leased to the annotator in one transaction together with a last look at who has them."""
        if name is None or not rows:
            return rows
        with self._store.transaction():
            rows = self._ready(n, name)
            self._store.lease([str(self.pool.ids[row]) for row in rows], name, time.time() + lease)
        return rows

    def _draw(self, n: int) -> int:
        """Let the method choose up to n new points and write them down; how many there are (0: none could be drawn).

        The method thinks without the store's lock. Its draw counts only if the points it could choose from are still
        the ones that can be chosen; else it is asked again.
        """
        with self._thinking:
            while True:
                with self._store.lock:
                    ledger = self._read()
                    seen, history, count = ledger.seq, ledger.history(), min(n, self._room())
                if count <= 0 or not history.open.any():
                    return 0
                batch = replace(self.method.propose(self.task, history, count), labels_before=len(history.labels))
                if len(batch.indices) == 0:
                    return 0
                if self._log_draw(batch, history, seen):
                    return len(batch.indices)

    def _log_draw(self, batch: Batch, seen_history: History, seen: int) -> bool:
        points = [self.pool.ids[row] for row in batch.indices.tolist()]
        with self._store.lock:
            with self._store.transaction():
                now = self._read().history()
                changed = now is not seen_history and not np.array_equal(now.open, seen_history.open)
                if changed or self._room() < len(points):
                    return False
                events = self._store.append([draw_entry(batch, points, seen)])
            self._ledger.feed(events)
        return True

    def _query(self, row: int) -> Query:
        item = None if self.pool.items is None else self.pool.items[row]
        return Query(self.pool.ids[row], row, item)

    # ------------------------------------------------------------ tell

    def tell(
        self,
        id: object,
        label: object = None,
        annotator: str | None = None,
        seconds: float | None = None,
        note: str | None = None,
    ) -> None:
        """Record the label of a point, or of many as {id: label}: all or none, on disk when this returns.

        A point that was not asked for is taken too (`history.volunteered`); told again by the same annotator it is
        a revision, told by another one a second opinion.
        """
        told = dict(id) if isinstance(id, Mapping) else {id: label}
        if isinstance(id, Mapping) and label is not None:
            raise PlanError("tell takes {id: label, ...}, or one id and one label; nothing was recorded")
        name, took = _annotator(annotator), _seconds(seconds)
        body = {"note": str(note)} if note else {}
        entries = []
        for point, given in told.items():
            row = self.pool.index(point)
            name_of_class = self.pool.classes[self.pool.code(given, where=f"point {point!r}: ")]
            entries.append(Entry("label", name, str(self.pool.ids[row]), str(name_of_class), took, body=body))
        self._write(entries)

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
        if kind not in ("skip", "unsure"):
            raise PlanError(f"kind {kind!r} does not exist; expected 'skip' or 'unsure'; nothing was recorded")
        point = str(self.pool.ids[self.pool.index(id)])
        self._write([Entry(kind, _annotator(annotator), point, None, _seconds(seconds), body={"reason": str(reason)})])

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

        Meant for pages that may lose the answer and send again. VoteConflict if the point went to somebody else
        meanwhile, or if the annotator's own standing vote is another one than `revises`, the seq that they saw.
        """
        if kind not in VOTES:
            raise PlanError(f"kind {kind!r} does not exist; expected 'label', 'skip' or 'unsure'; nothing was recorded")
        name, row = _annotator(annotator), self.pool.index(id)
        label_name = None if kind != "label" else str(self.pool.classes[self.pool.code(label, where=f"point {id!r}: ")])
        body = {} if kind == "label" else {"reason": str(reason)}
        entry = Entry(kind, name, str(self.pool.ids[row]), label_name, _seconds(seconds), body=body)
        with self._store.lock:
            with self._store.transaction():
                ledger, two = self._read(), wants_two(self.pool.ids[row], self.plan.seed, self.plan.double_share)
                found = repeated(ledger, row, entry)
                if found is not None:
                    return found
                check_turn(ledger, row, name, holder=self._holders().get(row), revises=revises, two=two)
                events = self._store.append([entry])
                self._store.release(name, [str(self.pool.ids[row])])
            self._ledger.feed(events)
        return events[0]

    def undo(self, annotator: str | None = None, *, seq: int | None = None) -> Undone | None:
        """Take back the last label, skip or ruling (of that annotator); what it was, or None if there is nothing.

        With seq, that event alone: None if it was taken back already, VoteConflict if something newer stands.
        """
        name = _annotator(annotator)
        with self._store.lock:
            with self._store.transaction():
                last = self._read().last_standing(name)
                if last is None or (seq is not None and seq not in self._ledger.standing):
                    return None
                if seq is not None and last.seq != seq:
                    raise VoteConflict("something newer was recorded (in another tab?); nothing was taken back")
                events = self._store.append([Entry("undo", name, last.point, refers=last.seq)])
                if name is not None and last.point is not None:
                    self._store.lease([last.point], name, time.time() + LEASE_SECONDS)
            self._ledger.feed(events)
        row = self.pool.index(last.point)
        label = None if last.label is None else self.pool.classes[self.pool.code(last.label)]
        return Undone(self.pool.ids[row], row, last.kind, label, last.annotator)

    def adjudicate(self, id: object, label: object, annotator: str | None = None, note: str | None = None) -> None:
        """Settle the label of a point over the votes of its annotators."""
        row = self.pool.index(id)
        code = self.pool.code(label, where=f"point {id!r}: ")
        if not self.votes(id):
            raise SessionError(f"point {id!r} has no label yet, so there is nothing to settle; nothing was recorded")
        body = {"note": str(note)} if note else {}
        point, ruling = str(self.pool.ids[row]), str(self.pool.classes[code])
        self._write([Entry("adjudication", _annotator(annotator), point, ruling, body=body)])

    def reveal(self, id: object, annotator: str | None = None) -> None:
        """Record that an annotator looked at what the model predicts for a point."""
        self._write([Entry("reveal", _annotator(annotator), str(self.pool.ids[self.pool.index(id)]))])

    def note(self, text: str, id: object = None, annotator: str | None = None) -> None:
        """Record a remark, about one point or about the session."""
        point = None if id is None else str(self.pool.ids[self.pool.index(id)])
        self._write([Entry("note", _annotator(annotator), point, body={"text": str(text)})])

    def release(self, annotator: str) -> None:
        """End the leases of an annotator who went away: the points can be asked of others at once."""
        with self._store.transaction():
            self._store.release(_annotator(annotator))

    def record(self, kind: str, body: Mapping[str, Any], arrays: Mapping[str, Any] | None = None) -> None:
        """Write an event of another kind into the log (predictions of a second model, settings of the page, ...)."""
        self._write([Entry(kind, body=dict(body), data=None if arrays is None else pack(arrays))])

    def _write(self, entries: list[Entry]) -> None:
        with self._store.lock:
            with self._store.transaction():
                self._read()
                events = self._store.append(entries)
                for entry in entries:
                    if entry.point is not None and entry.kind in ("label", "skip", "unsure"):
                        self._store.release(entry.annotator, [entry.point])
            self._ledger.feed(events)

    def _read(self) -> Ledger:
        """The ledger with everything that other processes have written meanwhile; the store's lock is held."""
        self._ledger.feed(self._store.events(self._ledger.seq))
        return self._ledger

    # ------------------------------------------------------------ estimate and stop

    def estimate(self, by: str | None = None) -> Estimates:
        """Every metric from the labels so far; with `by`, every metric on each value of that slice."""
        now = self.now()
        key = (now.history.key, by)
        if key not in self._remembered:
            found = now.estimate(by)
            self._remembered = {**dict(list(self._remembered.items())[-3:]), key: found}
            if by is None:
                self._log_estimate(now, found)
        return self._remembered[key]

    def _log_estimate(self, now: Snapshot, found: Estimates) -> None:
        """Keep the first estimate at each number of labels; a file that cannot be written keeps nobody from it."""
        labels = len(now.history.labels)
        body = {"labels": labels, "seen": now.seq, **found.to_dict()}
        try:
            with self._store.lock:
                if labels not in self._read().estimates:
                    self._write([Entry("estimate", body={k: plain(v) for k, v in body.items()})])
        except StoreFailure as failure:
            log.info("the estimate was not logged: %s", failure)

    def should_stop(self) -> Decision:
        """Whether the budget is spent, the pool is exhausted or every target is reached; and what is missing."""
        return self.now().decision(self.estimate)

    def now(self) -> Snapshot:
        """The session as it stands, to be read without being disturbed."""
        with self._store.lock:
            return Snapshot.of(self.plan, self.task, self._read())

    def at(self, labels: int | None = None, *, seq: int | None = None) -> Snapshot:
        """The session as it stood when it first had so many labels, or after the event with that seq."""
        with self._store.lock:
            last, reached = self._read().seq, dict(self._ledger.reached)
            if (labels is None) == (seq is None):
                raise PlanError("at() takes a number of labels or seq=..., one of them")
            until = seq if seq is not None else reached.get(labels or 0)
            if until is None or not 0 <= until <= last:
                most = f"{max(reached)} labels" if seq is None else f"event {last}"
                raise PlanError(f"the session never stood at {labels if seq is None else seq}; it goes up to {most}")
            past = Ledger(self.pool)
            past.feed(event for event in self._store.events() if event.seq <= until)
        return Snapshot.of(self.plan, self.task, past)

    # ------------------------------------------------------------ what is known

    def status(self) -> Status:
        """Counts, pace and people, now."""
        with self._store.lock:
            return status_of(self.plan, self._read(), self._holders())

    def votes(self, id: object) -> dict[str, Name | None]:
        """{annotator: label, None for a skip} of one point; nobody named is ""."""
        row = self.pool.index(id)
        with self._store.lock:
            votes = self._read().votes(row)
        return {vote.annotator or "": None if vote.code is None else self.pool.classes[vote.code] for vote in votes}

    def votes_by(self, annotator: str | None, limit: int | None = None) -> list[Event]:
        """The standing votes of one annotator (of nobody named for None), newest first."""
        name = _annotator(annotator)
        with self._store.lock:
            standing = reversed(self._read().standing.values())
            votes = (event for event in standing if event.annotator == name and event.kind in VOTES)
            return list(islice(votes, limit))

    def unsure(self) -> list[Disagreement]:
        """Points without a label whose annotators said "unsure", and that wait for `adjudicate`."""
        with self._store.lock:
            return unsure(self._read())

    def agreement(self) -> Agreement:
        """How far annotators agree where several of them labelled one point."""
        with self._store.lock:
            return agreement(self._read())

    def disagreements(self) -> list[Disagreement]:
        """Points whose annotators differ and that wait for `adjudicate`."""
        with self._store.lock:
            return disagreements(self._read())

    def events(self) -> Iterator[dict[str, Any]]:
        """Every event in order, as plain values."""
        return (_event_dict(event) for event in self._store.events())

    def export_events(self, path: str | os.PathLike[str]) -> int:
        """Write every event as one line of JSON; how many there are."""
        lines = [json.dumps(event, ensure_ascii=False) for event in self.events()]
        Path(path).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return len(lines)

    # ------------------------------------------------------------ the loop

    def label(self, **options: Any) -> None:
        """Open the labelling page and answer it until interrupted; the options are those of `altmas.web.serve`."""
        from altmas.web import serve  # the page needs Session: imports point up the tree

        serve(self, **options)

    def run(self, oracle: Callable[[Query], object], progress: bool = True, *, batch: int = 10) -> Decision:
        """Ask the oracle until the stop rule fires; which one it was.

        oracle(query) -> label, or None for a point that it cannot label. Whatever it raises ends the loop with all
        earlier labels kept.
        """
        if batch < 1:
            raise PlanError(f"batch {batch} is out of range; expected at least 1")
        total = self._budget()
        with progress_bar("labels", total, shown=progress) as bar:
            bar.advance(len(self.history.labels))
            while not (decision := self.should_stop()).stop:
                queries = self.ask(batch)
                if not queries:
                    return Decision(True, "nothing is left to ask")
                for query in queries:
                    label = oracle(query)
                    if label is None:
                        self.skip(query.id, "the oracle gave no label")
                    else:
                        self.tell(query.id, label)
                        bar.advance(1)
        return decision


def _birth(plan: Plan, pool: Pool, archived: bool) -> dict[str, Any]:
    """What the first event says."""
    from altmas import __version__

    about = {"points": len(pool), "classes": list(pool.classes), "archived": archived, "source": pool.source}
    return {"plan": plan.to_json(), "pool": about, "versions": {"altmas": __version__, "numpy": np.__version__}}


def _stored_pool(store: LabelStore, about: Mapping[str, Any]) -> Pool:
    if about["archived"]:
        return pool_of(store.part)
    if about["source"] is not None:
        from altmas.tables import pool_from_source

        return pool_from_source(about["source"])
    raise PoolMismatch(
        f"{store.path} does not hold its pool of {about['points']:,} points (it was too large); "
        "pass it: Session.open(path, pool=...)"
    )


def _compare(path: Path | None, pool: Pool, wanted: Mapping[str, str]) -> None:
    found = pool.fingerprint
    different = [part for part in {**wanted, **found} if wanted.get(part) != found.get(part)]
    if different:
        raise PoolMismatch(
            f"{path} belongs to another pool: {', '.join(different)} differ{'s' if len(different) == 1 else ''} from "
            "what the session was created with; nothing was recorded"
        )


def _annotator(name: str | None) -> str | None:
    return (str(name).strip() or None) if name is not None else None


def _seconds(seconds: float | None) -> float | None:
    if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
        raise PlanError(f"seconds {seconds!r} is not a time; expected a number of at least 0; nothing was recorded")
    return None if seconds is None else float(seconds)


def _event_dict(event: Event) -> dict[str, Any]:
    columns = ("seq", "at", "kind", "annotator", "point", "label", "seconds", "refers", "body", "hash")
    arrays = {name: array.tolist() for name, array in event.arrays.items()}
    return {name: getattr(event, name) for name in columns} | ({"arrays": arrays} if arrays else {})
