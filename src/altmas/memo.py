"""Memo: results that are costly to make, kept with what they were made from.

A pool owns one, so what was computed from a pool goes when the pool goes and nothing is kept by modules. Methods are
pure functions of (task, history): whatever a memo gives could be computed again and would be the same.

Arrays that take long to make are kept in a file beside the session as well, so that the next process need not make them
again. The file holds numbers alone; where it is missing, damaged, or of other data, they are made anew.
"""

import json
import os
import secrets
import threading
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from altmas.types import Array

T = TypeVar("T")

LONG = 1.0
"""Seconds of making from which on arrays are worth a file."""
KEY = "altmas key"
"""Name of the array that says what the others were made from."""


class ArrayFile:
    """A file of named arrays with the key that they were made for; one that altmas did not write is left alone."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.path, self.read_only = path, read_only

    def read(self, key: str) -> dict[str, Array] | None:
        """The arrays, or None if they are not there, not whole, or were made from something else."""
        try:
            with self.path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                if str(file[KEY]) != key:
                    return None
                return {name: file[name] for name in file.files if name != KEY}
        except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, MemoryError):
            return None

    def write(self, key: str, arrays: Mapping[str, Array]) -> None:
        """Put the arrays in place of what was there, whole or not at all; a full disk is no fault."""
        if self.read_only or (self.path.exists() and not self._is_ours()):
            return
        draft = self.path.with_name(f"{self.path.name}-{secrets.token_hex(4)}")
        try:
            with draft.open("xb") as file:
                np.savez(file, **{KEY: np.array(key)}, **arrays)  # type: ignore[arg-type]
            os.replace(draft, self.path)
        except OSError:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def _is_ours(self) -> bool:
        try:
            with zipfile.ZipFile(self.path) as file:
                return f"{KEY}.npy" in file.namelist()
        except (OSError, zipfile.BadZipFile):
            return False


class Memo:
    """Results by name and key; for every name the last `keep` that were asked for. Safe between threads.

    file  where arrays that take long to make are kept for other processes, or None
    """

    def __init__(self, file: ArrayFile | None = None) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._results: dict[str, OrderedDict[Hashable, _Result]] = {}

    def arrays(self, made_from: Mapping[str, Any], make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
        """The arrays that `make` gives, read from the file if they are there and were made from the same."""
        key = json.dumps(dict(made_from), sort_keys=True)
        arrays = None if self.file is None else self.file.read(key)
        if arrays is None:
            started = time.perf_counter()
            arrays = make()
            if self.file is not None and time.perf_counter() - started >= LONG:
                self.file.write(key, arrays)
        return arrays

    def get(self, name: str, key: Hashable, make: Callable[[], T], *, keep: int = 1) -> T:
        """What `make` gives, made once while the key is among the last `keep` of this name.

        Whoever asks for a result that is being made waits for it; other results can be had meanwhile.
        """
        with self._lock:
            shelf = self._results.setdefault(name, OrderedDict())
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
            return len(self._results.get(name, ()))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._results.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        """Empty in another process: results are made again there, or read from the file."""
        return Memo, (self.file,)


class _Result:
    """A value, or the promise of one."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.made = False
        self.value: Any = None
