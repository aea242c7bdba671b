"""SessionCore: the file of a session, its plan and the replay of its log, on which everything else stands.

Everything a session knows is the replay of its event log (log.py). Draws are written down before they are
shown, labels before they are acknowledged, so a reopened session goes on as if it had never been closed.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from altmas.errors import PlanError
from altmas.estimates import Estimates
from altmas.forecast import Forecast
from altmas.history import History
from altmas.memo import ArrayFile
from altmas.methods import Method
from altmas.metrics import MetricLike
from altmas.pool import Pool
from altmas.session.journal import Journal
from altmas.session.log import State
from altmas.session.plan import Plan, PlannedTasks
from altmas.session.queue import ReadyQueue
from altmas.session.snapshot import Snapshot
from altmas.session.store import Event, LabelStore
from altmas.session.votes import Votes
from altmas.session.waves import Waves
from altmas.task import Task


class SessionCore:
    """A store, what the session is to find out, and its log as it stands now or stood at an earlier moment."""

    def __init__(
        self,
        store: LabelStore,
        plan: Plan,
        pool: Pool,
        events: Iterable[Event],
        *,
        metrics: Iterable[MetricLike] = (),
        trust: bool = False,
    ) -> None:
        if store.path is not None:
            pool.memo.file = ArrayFile(Path(f"{store.path}-description"), read_only=store.read_only)
        self._tasks = PlannedTasks(plan, metrics, trust=trust)
        self._tasks.of(pool)  # a plan that does not fit the pool is met here
        self._waves = Waves(store)
        self._journal = Journal(store, pool, events, self._waves)
        self._planned()  # and one that was changed and does not fit, here
        self._queue = ReadyQueue(self._journal, self._tasks)
        self._votes = Votes(self._journal, self._queue, plan)
        self._estimates: dict[Any, Estimates] = {}
        self._forecast: tuple[Any, Forecast | None] | None = None

    def close(self) -> None:
        """Close the file; everything told is in it already."""
        self._journal.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ what it holds

    @property
    def path(self) -> Path | None:
        """The session file, or None for one in memory."""
        return self._journal.store.path

    @property
    def pool(self) -> Pool:
        """The points, and what the models say about them, those that were added included."""
        return self._journal.pool

    @property
    def plan(self) -> Plan:
        """What the session is to find out."""
        return self._planned()[0]

    @property
    def task(self) -> Task:
        """What the method is asked: the metrics of all models."""
        return self._planned()[1]

    def _planned(self) -> tuple[Plan, Task]:
        """The plan and its task as of the last look at the log."""
        state = self._journal.seen
        return self._tasks.of(state.pool, state.settings)

    @property
    def method(self) -> Method:
        """How points are chosen and metrics estimated."""
        return self.plan.method

    @property
    def history(self) -> History:
        """What methods see: every draw, label and skip so far."""
        with self._journal.lock:
            return self._journal.read().history()

    # ------------------------------------------------------------ moments

    def now(self) -> Snapshot:
        """The session as it stands, to be read without being disturbed."""
        with self._journal.lock:
            return self._snapshot(self._journal.read())

    def _snapshot(self, state: State) -> Snapshot:
        return Snapshot.of(*self._tasks.of(state.pool, state.settings), state)

    def at(self, labels: int | None = None, *, seq: int | None = None) -> Snapshot:
        """The session as it stood when it first had so many labels, or after the event with that seq."""
        if (labels is None) == (seq is None):
            raise PlanError("at() takes a number of labels, or seq=..., and not both")
        events = self._journal.store.events()
        past = self._journal.beginning()
        for event in events:
            if (seq is not None and past.seq == seq) or (labels is not None and len(past.labels) == labels):
                break
            past.feed([event])
        if (past.seq if labels is None else len(past.labels)) != (seq if labels is None else labels):
            moment = f"{labels} labels" if seq is None else f"event {seq}"
            raise PlanError(f"the session never stood at {moment}; it has {len(events)} events")
        return Snapshot.of(*self._tasks.fresh().of(past.pool, past.settings), past)
