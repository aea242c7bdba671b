"""Memo: results that are costly to make, kept with what they were made from.

A pool owns one, so what was computed from a pool goes when the pool goes and nothing is kept by modules. Methods are
pure functions of (task, history): whatever a memo gives could be computed again and would be the same.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Memo:
    """Results by name and key; for every name the last `keep` that were asked for. Safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, OrderedDict[Hashable, _Result]] = {}

    def get(self, name: str, key: Hashable, make: Callable[[], T], *, keep: int = 1) -> T:
        """What `make` gives, made once while the key is among the last `keep` of this name.

        Whoever asks for a result that is being made waits for it; other results can be had meanwhile.
        """
        with self._lock:
            shelf = self._kept.setdefault(name, OrderedDict())
            result = shelf.setdefault(key, _Result())
            shelf.move_to_end(key)
            while len(shelf) > keep:
                shelf.popitem(last=False)
        with result.lock:
            if not result.made:
                result.value, result.made = make(), True
        value: T = result.value
        return value

    def count(self, name: str) -> int:
        """How many results of this name are kept."""
        with self._lock:
            return len(self._kept.get(name, ()))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        """Empty in another process: results are made again there."""
        return Memo, ()


class _Result:
    """A value, or the promise of one."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.made = False
        self.value: Any = None
