"""Journal: a store and the state replayed from it, kept in step across threads and processes.

Threads that want to write at the same time share a transaction: whoever gets the lock first commits for all who
wait for it. Each call returns when its own events are on disk, so ten waiting votes cost one sync, not ten.
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from altmas.errors import StoreFailure
from altmas.pool import Pool
from altmas.session.changes import ReadItems
from altmas.session.log import State
from altmas.session.store import Entry, Event, LabelStore

Compose = Callable[[State], Iterable[Entry]]


@dataclass
class Waiting:
    """A write that waits for a transaction, and what became of it."""

    compose: Compose
    events: list[Event] = field(default_factory=list)
    error: BaseException | None = None
    done: bool = False

    def result(self) -> list[Event]:
        """The events as written; raises what kept them from being written."""
        if self.error is not None:
            raise self.error
        return self.events


class Journal:
    """What was written and what it amounts to. Hold `lock` while looking at the state."""

    def __init__(self, store: LabelStore, pool: Pool, events: Iterable[Event], items: ReadItems | None = None) -> None:
        self.store, self.lock = store, store.lock
        self._pool, self._items = pool, items
        self._state = self.beginning()
        self._state.feed(events)
        self._waiting: deque[Waiting] = deque()
        self._committed: int | None = None  # seq up to which the state has to be replayed: it ran ahead of the file

    @property
    def pool(self) -> Pool:
        """The pool with the models that were added up to the last look at the log."""
        return self._state.pool

    def beginning(self) -> State:
        """The state before the first event."""
        return State(self._pool, self.store.path or "the session", self._items)

    @property
    def seen(self) -> State:
        """The state as of the last look at the log."""
        return self._state

    def read(self) -> State:
        """The state, with everything that other processes have written meanwhile."""
        with self.lock:
            if self._committed is not None:
                replayed = self.beginning()
                replayed.feed(event for event in self.store.events() if event.seq <= self._committed)
                self._state, self._committed = replayed, None
            self._state.feed(self.store.events(self._state.seq))
            return self._state

    def write(self, compose: Compose) -> list[Event]:
        """Append what `compose` makes of the newest state: on disk as a whole when this returns, or not at all."""
        (events,) = self.write_each(compose)
        return events

    def write_each(self, *composes: Compose) -> list[list[Event]]:
        """Several writes in one transaction, each after those before it; raises what kept the first failing one out.

        A write that raises leaves no trace and does not keep the others from being written. When the disk refuses,
        none of them is.
        """
        own = [Waiting(compose) for compose in composes]
        self._waiting.extend(own)
        with self.lock:
            if not own[-1].done:
                self._commit()
        return [write.result() for write in own]

    def _commit(self) -> None:
        """Write down what everybody waits for, in one transaction."""
        together = [self._waiting.popleft() for _ in range(len(self._waiting))]
        before: int | None = None
        try:
            with self.store.transaction():
                before = self.read().seq
                for write in together:
                    self._append(write)
        except Exception as failure:
            self._committed = before
            for write in together:
                write.error = failure if len(together) == 1 else type(failure)(*failure.args)
        except BaseException:
            self._committed = before
            for write in together:
                write.error = StoreFailure("the write was interrupted; look into the session before you repeat it")
            raise
        finally:
            for write in together:
                write.done = True

    def _append(self, write: Waiting) -> None:
        """One write inside the transaction; what `compose` itself refuses is its own affair."""
        try:
            with self.store.savepoint():
                write.events = self.store.append(write.compose(self._state))
        except (StoreFailure, sqlite3.Error):
            raise
        except Exception as refusal:
            write.error = refusal
        else:
            self._state.feed(write.events)
