"""The pool's features as the surrogates see them: standardised with pool mean and sd, row by row when looked at.

Nothing is copied up front, so a memory-mapped pool never has to fit into memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from altmas.pool.pool import Pool

Floats = NDArray[np.float32]
CHUNK = 4_194_304
"""Numbers looked at together."""


class Rows(Protocol):
    """Rows of numbers that can be looked at by position: an (n, D) array, or Features."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, D)."""

    def __getitem__(self, rows: Any, /) -> Any:
        """The rows at these positions (an index array or a slice)."""


@dataclass(frozen=True)
class Features:
    """(raw - mean) / scale for each row, in float32, followed by the one-hot columns of `code` if there is one.

    raw    (N, D) numbers, maybe a memmap
    mean   (D,) of the pool
    scale  (D,) standard deviation of the pool, 1 where a column is constant
    rows   which rows of `raw` these are, or None for all
    code   (N,) class codes that are appended one-hot, or None
    """

    raw: NDArray[Any]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    rows: NDArray[np.int64] | None = None
    code: NDArray[np.int64] | None = None
    n_classes: int = 0

    @classmethod
    def of(cls, pool: Pool) -> "Features":
        """The features of a pool; its mean and sd are computed once."""
        if pool.features is None:
            raise ValueError("the pool has no features; methods.check refuses such a pool before this is reached")
        features = pool.features
        return cls(features, *pool.memo.get("moments of the features", (), lambda: moments(features)))

    def with_predictions(self, predictions: NDArray[np.int64], n_classes: int) -> "Features":
        """The same with the model's prediction appended one-hot (docs/equations.md A.9, item 15)."""
        return replace(self, code=predictions, n_classes=n_classes)

    def subset(self, rows: Sequence[int] | NDArray[np.int64]) -> "Features":
        """Only these rows, in this order."""
        return replace(self, rows=self._pool_rows(np.asarray(rows, np.int64)))

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        n = len(self.raw) if self.rows is None else len(self.rows)
        return n, self.raw.shape[1] + self.n_classes

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Floats:
        rows = self._pool_rows(rows)
        exact = np.float64 if self.raw.dtype == np.float64 else np.float32
        x = np.subtract(self.raw[rows], self.mean.astype(exact), dtype=exact)
        x /= self.scale.astype(exact)
        x = np.asarray(x, np.float32)
        if self.code is None:
            return x
        return np.concatenate([x, np.eye(self.n_classes, dtype=np.float32)[self.code[rows]]], axis=1)

    def _pool_rows(self, rows: Any) -> Any:
        return rows if self.rows is None else self.rows[rows]


def moments(raw: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(mean, sd) of each column in float64, chunk by chunk; sd 1 where a column is constant."""
    n, columns = raw.shape
    mean, squares = np.zeros(columns), np.zeros(columns)  # squares of the distances to the mean so far
    step = max(1, CHUNK // columns)
    for start in range(0, n, step):
        x = np.array(raw[start : start + step], np.float64)
        chunk_mean, count = x.mean(0), len(x)
        x -= chunk_mean
        squares += np.einsum("nd,nd->d", x, x) + (chunk_mean - mean) ** 2 * start * count / (start + count)
        mean += (chunk_mean - mean) * count / (start + count)
    spread = np.sqrt(squares / n)
    return mean, np.where(spread <= 1e-12 * np.abs(mean), 1.0, spread)  # no more than rounding
