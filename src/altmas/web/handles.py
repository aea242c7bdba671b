"""Names of points that give nothing away, for pages that people see."""

import hashlib
import hmac
import threading
from collections.abc import Callable, Iterable

from altmas.errors import UnknownPoint


class Handles:
    """Opaque names of the points that the page may know: neither id nor row, since both can give the class away.

    A handle is a keyed hash of the row, the same after a restart; only points that were offered have one.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._rows: dict[str, int] = {}
        self._lock = threading.Lock()

    def of(self, row: int) -> str:
        """The handle of a row."""
        handle = hmac.new(self._key, str(row).encode(), hashlib.sha256).hexdigest()[:20]
        with self._lock:
            self._rows[handle] = row
        return handle

    def row(self, handle: str, offered: Callable[[], Iterable[int]]) -> int:
        """The row behind a handle, looked for among the rows `offered` before a restart; else UnknownPoint."""
        if handle not in self._rows:
            for row in offered():
                self.of(row)
        if handle not in self._rows:
            raise UnknownPoint("this item is not one that anybody was asked for; nothing was recorded")
        return self._rows[handle]
