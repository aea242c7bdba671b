"""A pool that is a uniform random sample of a larger table: the first phase of a design in two phases.

Every row has a key, the numbers of one random stream in the order of the rows; the sample are the rows with the n
smallest keys, in their order. So a table that is read in parts, whose length nobody knows beforehand, gives the same
sample as one that is there as a whole.                                                                          (P1)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.errors import PoolError
from altmas.items.lazy import LazyItems

LARGE, AUTOMATIC = 2_000_000, 1_000_000
"""Rows beyond which a random sample of a table becomes the pool unless somebody says otherwise, and its size."""

FIRST_PHASE = 61
"""The random stream of the keys of rows."""

Rows = NDArray[np.int64]


def sampled_rows(size: int, n: int, seed: int) -> Rows:
    """(n,) rows of a uniform random sample of `size` rows, in their order."""
    return np.sort(np.argpartition(_stream(seed).random(size), n - 1)[:n])


def _stream(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, FIRST_PHASE])


@dataclass(frozen=True)
class Wanted:
    """A random sample of n of the rows of a table, taken where it has more than `above` (more than n by default)."""

    n: int
    seed: int
    above: int | None = None

    @classmethod
    def of(cls, sample: int | None, seed: int, *, weighted: bool) -> "Wanted | None":
        """What `sample` of `Pool.from_table` stands for; None for all rows. PoolError if it cannot be."""
        if sample is None:
            return None if weighted else cls(AUTOMATIC, seed, LARGE)
        if isinstance(sample, bool) or not isinstance(sample, int) or sample < 0:
            raise PoolError(f"sample={sample!r} was not understood; expected a number of rows, or 0 for all of them")
        if sample == 0:
            return None
        refuse_sample(sample, sample, weighted=weighted)
        return cls(sample, seed)

    def smaller_than(self, size: int, where: str) -> bool:
        """Whether a table of so many rows is to be sampled; PoolError if it has not enough."""
        if self.above is None and size < self.n:
            raise PoolError(f"{where} has {size:,} rows, of which a sample of {self.n:,} cannot be taken")
        return size > (self.n if self.above is None else self.above)


def refuse_sample(n: object, size: int, *, weighted: bool = False, sampled: bool = False) -> None:
    """PoolError if no such sample can be taken."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= size:
        raise PoolError(f"a sample of {n!r} rows cannot be taken; expected 1 to {size:,}, the number of rows")
    if sampled:
        raise PoolError("this pool is a random sample already; take a smaller one from where it came")
    if weighted:
        raise PoolError(
            "a random sample of rows with weights is not taken: a row that stands for many and stays outside could "
            "hold anything; use all rows (sample=0), or write each row as often as it counts"
        )


class PassingSample:
    """The same sample of a table that is read in parts: only rows that may still be in it are kept.

    size  rows that have passed
    """

    def __init__(self, request: Wanted) -> None:
        self.request, self.size = request, 0
        self._stream, self._limit = _stream(request.seed), np.inf
        self._keys: list[NDArray[np.float64]] = []
        self._rows: list[Rows] = []
        self._kept = self._at_limit = 0

    def kept(self, count: int) -> NDArray[np.bool_] | None:
        """(count,) which of the next rows may be in the sample; None for all of them."""
        keys, everything = self._stream.random(count), self._limit == np.inf
        mask = keys <= self._limit
        self._keys.append(keys[mask])
        self._rows.append(np.flatnonzero(mask) + self.size)
        self.size, self._kept = self.size + count, self._kept + int(mask.sum())
        begun = self.size > (self.request.n if self.request.above is None else self.request.above)
        if begun and self._kept - self._at_limit > self.request.n // 4:  # not at every part
            self._limit = float(np.partition(np.concatenate(self._keys), self.request.n - 1)[self.request.n - 1])
            self._at_limit = self._kept
        return None if everything else mask

    def chosen(self, where: str) -> tuple[Rows, Rows] | None:
        """(positions among the kept rows, rows) of the sample; None if all rows are taken."""
        if not self.request.smaller_than(self.size, where):
            return None
        keys, rows = np.concatenate(self._keys), np.concatenate(self._rows)
        positions = np.sort(np.argpartition(keys, self.request.n - 1)[: self.request.n])
        return positions, rows[positions]


def taken_items(items: Sequence[Any], rows: Rows) -> Sequence[Any]:
    """What a labeller is shown of these rows: Arrow columns and arrays stay such, anything else becomes a list."""
    if isinstance(items, LazyItems):
        return LazyItems(items.columns.take(rows))
    if isinstance(items, np.ndarray):
        return items[rows]
    return [items[row] for row in rows.tolist()]
