"""Numbers that are too many for memory, in temporary files that go when the process ends."""

import atexit
import mmap
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

IN_MEMORY = 128 * 2**20
"""Bytes of numbers up to which a matrix is held in memory; a larger one is memory-mapped from a temporary file."""

ROWS = 65_536
"""Rows that are copied together."""


def temporary_file() -> Path:
    """A new file in the folder for temporary files (TMPDIR); it goes when the process ends."""
    number, name = tempfile.mkstemp(prefix="altmas-", suffix=".npy")
    os.close(number)
    atexit.register(remove, Path(name), os.getpid())
    return Path(name)


def remove(path: Path, process: int | None = None) -> None:
    """Remove a file if it is there; only in that process, if one is named."""
    if process is None or process == os.getpid():
        with suppress(OSError):
            path.unlink()


def rows_of(matrix: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Some rows of a matrix in memory; of a mapped file a part at a time, whose pages are given back."""
    if not isinstance(matrix, np.memmap):
        return np.asarray(matrix[rows])
    copied = np.empty((len(rows), *matrix.shape[1:]), matrix.dtype)
    for start in range(0, len(rows), ROWS):
        copied[start : start + ROWS] = matrix[rows[start : start + ROWS]]
        give_back(matrix)
    return copied


def give_back(matrix: NDArray[Any]) -> None:
    """Let go of the pages of a mapped file that were looked at; they are read again when they are needed."""
    pages = getattr(matrix, "_mmap", None)
    if pages is not None and matrix.flags.writeable is False and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def stacked(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Matrices below each other: in memory, or in a mapped file if one of them is mapped and they are large."""
    size = sum(part.nbytes for part in parts)
    if size <= IN_MEMORY or not any(isinstance(part, np.memmap) for part in parts):
        return np.concatenate(parts)
    path, rows = temporary_file(), sum(map(len, parts))
    shape, kind = (rows, *parts[0].shape[1:]), np.result_type(*parts)
    whole = np.lib.format.open_memmap(path, "w+", kind, shape)
    first = 0
    for part in parts:
        for start in range(0, len(part), ROWS):
            piece = part[start : start + ROWS]
            whole[first : first + len(piece)] = piece
            first += len(piece)
    whole.flush()
    del whole
    mapped: NDArray[Any] = np.load(path, mmap_mode="r")
    return mapped
