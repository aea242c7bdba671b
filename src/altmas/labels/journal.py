"""Journal: a store and the ledger replayed from it, kept in step across threads and processes."""

from collections.abc import Callable, Iterable

from altmas.data.pool import Pool
from altmas.labels.ledger import Ledger
from altmas.labels.store import Entry, Event, LabelStore


class Journal:
    """What was written and what it amounts to. Hold `lock` while looking at the ledger."""

    def __init__(self, store: LabelStore, pool: Pool, events: Iterable[Event]) -> None:
        self.store, self.lock = store, store.lock
        self._ledger = Ledger(pool)
        self._ledger.feed(events)

    def read(self) -> Ledger:
        """The ledger, with everything that other processes have written meanwhile."""
        with self.lock:
            self._ledger.feed(self.store.events(self._ledger.seq))
            return self._ledger

    def write(self, compose: Callable[[Ledger], Iterable[Entry]]) -> list[Event]:
        """Append what `compose` makes of the newest ledger: on disk as a whole when this returns, or not at all."""
        with self.lock:
            with self.store.transaction():
                events = self.store.append(compose(self.read()))
            self._ledger.feed(events)
        return events
