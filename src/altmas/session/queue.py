"""ReadyQueue: which points an annotator is shown next, and when the method has to draw new ones.

A draw is written down before anybody sees it, so what is asked depends on the plan and the log alone. Leases only
decide which of the drawn points goes to whom. The method thinks with no lock held that telling would need.
"""

import threading
import time
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from altmas.errors import MethodError, UnknownPoint
from altmas.history import Batch, History
from altmas.session.journal import Compose, Journal
from altmas.session.log import State, draw_entry
from altmas.session.opinions import second_opinions
from altmas.session.plan import Plan, PlannedTasks
from altmas.session.plan_json import at_work
from altmas.session.store import Entry
from altmas.task import Task


@dataclass(frozen=True)
class Held:
    """Rows that wait for a label and are leased to one annotator; `until` is when the last of these leases ends."""

    annotator: str
    rows: tuple[int, ...]
    until: float

    def __str__(self) -> str:
        end = datetime.fromtimestamp(min(self.until, LATEST))
        day = "" if end.date() == datetime.fromtimestamp(time.time()).date() else f"{end:%Y-%m-%d} "
        items = "1 item is" if len(self.rows) == 1 else f"{len(self.rows):,} items are"
        return f"{items} with {self.annotator} until {day}{end:%H:%M}"


LATEST = datetime(9999, 1, 1).timestamp()
"""A lease may be given for longer than any calendar knows."""


class ReadyQueue:
    """Drawn points that wait for a label, handed out to annotators and refilled by the method."""

    def __init__(self, journal: Journal, tasks: PlannedTasks) -> None:
        self.journal, self.tasks = journal, tasks
        self._thinking = threading.Lock()  # one proposal at a time
        self._rows: dict[str, int] = {}

    @property
    def plan(self) -> Plan:
        """The plan as it was last changed."""
        state = self.journal.seen
        return self.tasks.of(state.pool, state.settings)[0]

    def take(self, n: int, name: str | None, lease: float, draw: bool = True, *, take_over: bool = False) -> list[int]:
        """Up to n rows for this annotator, new ones drawn where too few wait; leased if the annotator has a name.

        take_over  rows that are leased to others are among them, and are theirs no longer
        """
        while True:
            with self.journal.lock:
                rows = self._ready(n, name, take_over)
                enough = len(rows) >= n or not draw or self._room(self.journal.read()) == 0
            if enough and name is None:
                return self._freed(n) if take_over else rows
            if enough and name is not None:
                return rows if self._holds(rows, name, lease) else self._leased(n, name, lease, take_over)
            if not self._draw(n - len(rows)):
                draw = False  # look once more: somebody else may have drawn what there was room for

    def refill(self, n: int) -> int:
        """Draw until n points wait that nobody holds; how many were drawn."""
        missing = n - len(self._ready(n, None))
        return self._draw(missing) if missing > 0 else 0

    def holders(self) -> dict[int, str]:
        """{row: annotator} of the leases in force."""
        leases = self.journal.store.leases(time.time())
        rows = {point: self._row_of(point) for point in leases}
        return {row: leases[point][0] for point, row in rows.items() if row is not None}

    def held_by_others(self, name: str | None = None) -> tuple[Held, ...]:
        """Who else holds rows that wait for a label, and until when."""
        with self.journal.lock:
            waiting = self.journal.read().waiting
        leases, people = self.journal.store.leases(time.time()), dict[str, dict[int, float]]()
        for point, (holder, until) in leases.items():
            row = self._row_of(point)
            if row in waiting and holder != name:
                people.setdefault(holder, {})[row] = until
        return tuple(Held(holder, tuple(sorted(rows)), max(rows.values())) for holder, rows in sorted(people.items()))

    def _row_of(self, point: str) -> int | None:
        """The row of a leased point, looked up once; None for a point that altmas cannot have leased."""
        if point not in self._rows:
            try:
                self._rows[point] = self.journal.pool.index(point)
            except UnknownPoint:
                return None  # it may be one of another process's items, not read yet
        return self._rows[point]

    def budget(self) -> int:
        """How many labels there may be in all."""
        return len(self.journal.pool) if self.plan.budget is None else self.plan.budget

    def _room(self, state: State) -> int:
        """How many points may be drawn beside those that wait."""
        return max(0, self.budget() - len(state.labels) - len(state.waiting))

    def _ready(self, n: int, name: str | None, take_over: bool = False) -> list[int]:
        """Up to n rows that this annotator can be shown now: those held already, second opinions, drawn ones."""
        with self.journal.lock:
            state, holders = self.journal.read(), self.holders()
            held = {row for row, holder in holders.items() if holder == name}
            elsewhere = set() if take_over else holders.keys() - held
            allowed = max(0, self.budget() - len(state.labels) - len(elsewhere & state.waiting))
            rows = _held_first([row for row in state.outstanding() if row not in elsewhere], held, allowed)
            if name is not None:  # somebody unknown could be the first voter
                voters = second_opinions(state, self.plan.seed, self.plan.double_share)
                rows = [row for row, voter in voters.items() if voter != name and row not in elsewhere] + rows
            return _held_first(rows, held, n)

    def _holds(self, rows: list[int], name: str, lease: float) -> bool:
        """Whether the annotator holds all these rows for half a lease or more: then no lease has to be written."""
        now = time.time()
        until = {point: end for point, (holder, end) in self.journal.store.leases(now).items() if holder == name}
        return all(until.get(str(self.journal.pool.ids[row]), 0.0) >= now + lease / 2 for row in rows)

    def _leased(self, n: int, name: str, lease: float, take_over: bool = False) -> list[int]:
        """The rows that are ready, leased in one transaction with the look at who holds them."""
        compose, rows = self.leasing(n, name, lease, take_over)
        self.journal.write(compose)
        return rows

    def _freed(self, n: int) -> list[int]:
        """Up to n rows that wait, whoever holds them; their leases end in one transaction with that look."""
        rows: list[int] = []

        def compose(state: State) -> list[Entry]:
            rows[:] = self._ready(n, None, take_over=True)
            for row, holder in self.holders().items():
                if row in rows:
                    self.journal.store.release(holder, str(self.journal.pool.ids[row]))
            return []

        self.journal.write(compose)
        return rows

    def leasing(self, n: int, name: str, lease: float, take_over: bool = False) -> tuple[Compose, list[int]]:
        """What leases up to n ready rows to an annotator, to be written; then the list holds them."""
        rows: list[int] = []

        def compose(state: State) -> list[Entry]:
            rows[:] = self._ready(n, name, take_over)
            if not self._holds(rows, name, lease):
                self.journal.store.lease([str(self.journal.pool.ids[row]) for row in rows], name, time.time() + lease)
            return []

        return compose, rows

    # ------------------------------------------------------------ new draws

    def _draw(self, n: int) -> int:
        """Let the method choose up to n new points and write them down; how many, 0 if none could be drawn.

        A draw counts only if the points it could choose from are still the ones that can be chosen: its
        probabilities are about those. Else the method is asked again.
        """
        with self._thinking:
            while True:
                with self.journal.lock:
                    state = self.journal.read()
                    seen, history, count = state.seq, state.history(), min(n, self._room(state))
                    pool, settings = state.pool, state.settings
                if count <= 0 or not history.open.any():
                    return 0
                batch = self._proposal(self.tasks.of(pool, settings)[1], history, count)
                if len(batch.indices) == 0 or self._log(batch, history, seen):
                    return len(batch.indices)

    def _proposal(self, task: Task, history: History, n: int) -> Batch:
        """What the method proposes, checked."""
        with at_work(self.plan.method):
            batch = self.plan.method.propose(task, history, n)
        rows = np.asarray(batch.indices, np.int64)
        if len(rows) > n or len(set(rows.tolist())) < len(rows) or not history.open[rows].all():
            raise MethodError(
                f"method {self.plan.method.name!r} proposed {rows.tolist()}; expected at most {n} different points "
                "that are open; nothing was recorded"
            )
        return replace(batch, indices=rows, labels_before=len(history.labels))

    def _log(self, batch: Batch, seen_history: History, seen: int) -> bool:
        points = [self.journal.pool.ids[row] for row in batch.indices.tolist()]

        def compose(state: State) -> list[Entry]:
            history = state.history()
            same = history is seen_history or np.array_equal(history.open, seen_history.open)
            return [draw_entry(batch, points, seen)] if same and self._room(state) >= len(points) else []

        return bool(self.journal.write(compose))


def _held_first(rows: list[int], held: set[int], n: int) -> list[int]:
    """n of the rows, those that are held before the others, in the order in which they came."""
    chosen = set(sorted(rows, key=lambda row: row not in held)[:n])
    return [row for row in rows if row in chosen]
