"""Matrices of .npy files, as memory maps. Nothing is ever unpickled."""

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.errors import FileError
from altmas.pool.readable import PICKLED, existing


def read_matrix(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array in a .npy file, memory-mapped; FileError if it is none, damaged, or holds Python objects."""
    path = existing(path)
    if path.suffix.lower() in PICKLED:
        raise FileError(f"{path} is a pickled file, which can run code when it is read; expected a .npy file")
    if path.suffix.lower() != ".npy" or not path.is_file():
        raise FileError(f"{path} is no .npy file; write one with numpy.save(path, array)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that Python 2 wrote, and about escapes in damaged ones
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as cause:  # numpy evaluates the header: a damaged one can fail in any way
        with path.open("rb") as file:
            magic = file.read(6) == b"\x93NUMPY"
        reason = "damaged, cut short or full of Python objects, which are never unpickled" if magic else "no .npy file"
        raise FileError(f"{path} is {reason}; expected an array of numbers written by numpy.save") from cause
    if array.dtype.kind not in "fiub":
        raise FileError(f"{path} holds {array.dtype}; expected an array of numbers")
    beyond = path.stat().st_size - getattr(array, "offset", 0) - array.nbytes
    if beyond:
        raise FileError(
            f"{path} is damaged, or holds more than one array: {beyond:,} bytes follow the {array.shape} numbers that "
            "its header announces; expected an array written by numpy.save"
        )
    return array
