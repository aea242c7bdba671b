"""What altmas raises. Every message says what was given, where, what would have been accepted.

AltmasError
├── PoolError          (ValueError)        predictions, features, scores, ids, slices that cannot form a pool
├── FileError          (ValueError)        a file that is missing, unreadable, truncated or lacks a column
│   └── OutputExists   (FileExistsError)   writing where a file is already, or where a session or its data are
├── UnknownLabel       (ValueError)        a label that is not one of the pool's classes
├── UnknownPoint       (KeyError)          an id that is not in the pool
├── MetricError        (ValueError)        a metric that does not exist or cannot be defined on this pool
├── MethodError        (ValueError)        a method that does not exist or cannot do what is asked
├── PlanError          (ValueError)        a budget, target, confidence or other setting out of range
├── ServerError        (OSError)           another program's server that cannot be reached, or refuses
├── MissingExtra       (ImportError)       a part that needs an extra of the package which is not installed
└── SessionError
    ├── SessionExists  (FileExistsError)   creating a session where a file already is
    ├── NotASession    (ValueError)        a file that is no altmas session, or a damaged one
    ├── NewerSession   (ValueError)        a session file written by a later version of altmas
    ├── PoolMismatch   (ValueError)        a session file that belongs to another pool
    ├── VoteConflict                       a vote on a point that is somebody else's turn, or not the one that stands
    └── StoreFailure   (OSError)           the disk is full, the file read-only or locked by somebody else
"""


class AltmasError(Exception):
    """Base of everything that altmas raises on purpose."""

    def __str__(self) -> str:  # KeyError would quote the sentence
        return str(self.args[0]) if self.args else ""


class PoolError(AltmasError, ValueError):
    """Predictions, features, scores, ids or slices that cannot form a pool."""


class FileError(AltmasError, ValueError):
    """A file that is missing, unreadable, truncated, of the wrong kind or lacks a column."""


class OutputExists(FileError, FileExistsError):
    """Writing where a file is already (force=True replaces it), or where a session or its data are (nothing does)."""


class UnknownLabel(AltmasError, ValueError):
    """A label that is not one of the pool's classes."""


class UnknownPoint(AltmasError, KeyError):
    """An id that is not in the pool."""


class MetricError(AltmasError, ValueError):
    """A metric that does not exist or cannot be defined on this pool."""


class MethodError(AltmasError, ValueError):
    """A method that does not exist or cannot do what is asked of it."""


class PlanError(AltmasError, ValueError):
    """A budget, target, confidence or other setting out of range."""


class ServerError(AltmasError, OSError):
    """A server of another program that cannot be reached, or refuses what it is asked."""


class MissingExtra(AltmasError, ImportError):
    """A part of altmas that needs an extra of the package which is not installed."""


class SessionError(AltmasError):
    """A session that cannot be created, opened or written."""


class SessionExists(SessionError, FileExistsError):
    """Creating a session where a file already is."""


class NotASession(SessionError, ValueError):
    """A file that is no altmas session, or a damaged one."""


class NewerSession(SessionError, ValueError):
    """A session file written by a later version of altmas."""


class PoolMismatch(SessionError, ValueError):
    """A session file that belongs to another pool."""


class VoteConflict(SessionError):
    """A vote on a point that went to somebody else meanwhile, or that replaces another vote than the standing one."""


class StoreFailure(SessionError, OSError):
    """The disk is full, or the session file is read-only or locked by somebody else."""
