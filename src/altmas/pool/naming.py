"""What a class or a point may be called: integers, strings and booleans, from whatever container they come in."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from altmas.errors import PoolError
from altmas.tensors import detached, is_tensor

SURROGATE = re.compile("[\ud800-\udfff]")
WITH_ZEROS = re.compile(r"-?(0|[1-9][0-9]{0,17})\.0+")

PART = 65_536
"""Names that are looked at together: Python's texts and numbers take several times the memory of an array."""

Name = str | int
"""A class or an id; a boolean is an integer here, as in Python."""


class WholeNumbers(Sequence[int]):
    """Ids of a large pool that are integers: eight bytes each, where a list of Python's integers has forty."""

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        numbers: int | list[int] = self.numbers[index].tolist()
        return numbers

    def __iter__(self) -> Iterator[int]:
        for start in range(0, len(self), PART):
            yield from self[start : start + PART]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(int.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]


class RowsOfNumbers(Mapping[Name, int]):
    """The row of each number, by bisection: a dictionary of 10,000,000 would take a gigabyte."""

    def __init__(self, ids: WholeNumbers) -> None:
        self.ids = ids

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return np.argsort(self.ids.numbers)

    @cached_property
    def _sorted(self) -> NDArray[np.int64]:
        return self.ids.numbers[self._order]

    def __getitem__(self, name: Name) -> int:
        if isinstance(name, int) and -(2**63) <= name < 2**63:
            index = int(np.searchsorted(self._sorted, name))
            if index < len(self._sorted) and self._sorted[index] == name:
                return int(self._order[index])
        raise KeyError(name)

    def __iter__(self) -> Iterator[Name]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


def plain(value: object) -> object:
    """A numpy scalar, or a tensor that holds one value, as that Python value."""
    if is_tensor(value):
        return detached(value, "the value")
    return value.item() if isinstance(value, np.generic) else value


def as_whole(value: object) -> object:
    """3 for 3.0 and for "3" (not for "03", which says more than a number); anything else as it is."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.lstrip("-").isdecimal() and value.isascii() and len(value) < 20:
        return int(value) if str(int(value)) == value else value
    return value


def without_decimals(text: str) -> str:
    """ "4" for "4.0", as programs write whole numbers of a column that has gaps; any other text as it is."""
    return text.partition(".")[0] if WITH_ZEROS.fullmatch(text) else text


def spellings(name: Name) -> tuple[str, ...]:
    """The texts under which a name is found, its own first: True is also true, TRUE and 1."""
    if isinstance(name, bool):
        return str(name), str(name).lower(), str(name).upper(), str(int(name))
    return (str(name),)


def is_missing(value: object) -> bool:
    """None, nan, NaT, pandas' NA and the empty text."""
    if isinstance(value, str):
        return value in ("", "NaT")
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def refuse_masked(values: object, what: str) -> None:
    """PoolError naming the first cell in which a masked array (numpy.ma) holds nothing."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row, *column = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        cell = f"row {row}" + (f", column {column[0]}" if column else "")
        count = int(np.ma.getmaskarray(values).sum())
        raise PoolError(f"{what}, {cell}: the value is masked ({count} are), that is missing; every point needs one")


def refuse_unwritable(listed: Sequence[str] | NDArray[np.str_], what: str) -> None:
    """PoolError naming the first text that has no UTF-8 and cannot be stored: one with half a character."""
    for start in range(0, len(listed), PART):
        if not SURROGATE.search("\n".join(listed[start : start + PART])):
            continue
        row = next(row for row in range(start, len(listed)) if SURROGATE.search(listed[row]))
        raise PoolError(
            f"{what}, row {row}: {str(listed[row])!r} holds half a character (a lone surrogate), which no file can "
            "keep; write it otherwise"
        )


def names_of(values: ArrayLike, what: str) -> NDArray[Any]:
    """(n,) array of booleans, of int64, or of str objects; PoolError on anything missing or of another kind."""
    refuse_masked(values, what)
    values = detached(values, what)
    array = np.asarray(values, object) if isinstance(values, list | tuple) else np.asarray(values)
    if array.ndim != 1:
        hint = ", such as the argmax of each row of scores" if array.ndim == 2 and array.dtype.kind == "f" else ""
        raise PoolError(f"{what} has shape {array.shape}; expected one value per point{hint}")
    if array.dtype.kind == "b" or (array.dtype.kind in "iu" and array.dtype != np.uint64):
        return array if array.dtype.kind == "b" else array.astype(np.int64)
    if array.dtype.kind == "U":
        listed = array.tolist()
        if "" in listed:
            raise PoolError(_refusal(what, listed.index(""), ""))
        refuse_unwritable(listed, what)
        return _objects(listed)
    if array.dtype.kind in "fuOT":
        return _of_objects(array.tolist(), what)
    raise PoolError(f"{what} has dtype {array.dtype}; expected integers, strings or booleans")


def _of_objects(values: list[Any], what: str) -> NDArray[Any]:
    """The narrowest of bool, int64 and str that holds every value."""
    kinds = {type(value) for value in values}
    if not kinds <= {str, int, bool}:
        values = [as_whole(plain(value)) if not isinstance(value, str) else str(value) for value in values]
        kinds = {type(value) for value in values}
    bad = not kinds <= {str, int, bool} or "" in values
    if bad:
        row = next(row for row, value in enumerate(values) if value == "" or not isinstance(value, str | int))
        raise PoolError(_refusal(what, row, values[row]))
    if kinds == {bool}:
        return np.array(values, np.bool_)
    if kinds <= {int, bool}:
        try:
            return np.array(values, np.int64)
        except OverflowError:  # 128-bit hashes and the like are names all the same
            pass
    texts = values if kinds == {str} else [str(value) for value in values]
    refuse_unwritable(texts, what)
    return _objects(texts)


def look_alikes(names: Iterable[Name]) -> list[list[Name]]:
    """Groups of names that differ only by case, blanks, Unicode form or decimals (4, 4.0): probably one name each."""
    groups: dict[str, list[Name]] = {}
    for name in names:
        key = " ".join(unicodedata.normalize("NFKC", str(name)).casefold().split())
        key = without_decimals(key.replace(",", "."))
        groups.setdefault(key, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _refusal(what: str, row: int, value: object) -> str:
    kind = "missing" if is_missing(value) else "neither an integer, a string nor a boolean"
    return f"{what}, row {row}: {value!r} is {kind}"


def _objects(listed: list[str]) -> NDArray[Any]:
    array = np.empty(len(listed), object)
    array[:] = listed
    return array
