"""A copy of a session file, also while others write to it."""

from dataclasses import dataclass
from pathlib import Path

from altmas.errors import StoreFailure
from altmas.outputs import Kept, writable
from altmas.session import session_file
from altmas.session.session_file import Opened, said
from altmas.session.store import LabelStore


@dataclass(frozen=True)
class Backup:
    """What a copy holds: so many events, of which the last has this hash."""

    path: Path
    events: int
    last: str

    def __str__(self) -> str:
        return f"{self.path}: {self.events:,} events, each matches its hash; the last: {self.last}"


def back_up(session: Path, copy: Path) -> Backup:
    """The session as it stands between two writes, in a file of its own; nothing is written over.

    SQLite makes the copy, and writers wait for it. It gets its name once its pages and its log were checked. Files that
    the session reads its pool from are not in it. OutputExists, FileError, NotASession or StoreFailure says why not.
    """
    writable(copy, kept=Kept({"the session itself": session}))
    source = session_file.opened(session, read_only=True)
    try:
        with session_file.draft(copy) as (connection, file):
            with said(copy, "nothing was written"):
                source.connection.backup(connection)
                backup = _checked(LabelStore(Opened(connection), file), copy)
            session_file.put_in_place(file, copy)
    finally:
        source.close()
    return backup


def _checked(store: LabelStore, copy: Path) -> Backup:
    """What the copy holds; StoreFailure if its pages do not fit together, NotASession if its log does not."""
    faults, events = store.integrity(), store.events()
    if faults != "ok" or not events:
        raise StoreFailure(f"{copy} was not made: the copy is damaged ({' '.join(faults.split())})")
    return Backup(copy, len(events), events[-1].hash)
