"""A wide table made narrow where it lives: in each batch the features become a few numbers, other columns stay.

It is what a cluster computes of 10^8 rows before any label, and all that has to be brought back.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.errors import PoolError

MOST_ROWS = 100_000
"""Rows of a sample from which directions are learned; further ones are left out."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """Principal directions of a sample, applied to batches: called with a batch, it gives back the narrow one.

    keep        columns that stay as they are: id, predictions, slices, scores
    features    columns of numbers, or one column of equally long lists
    centre      (D,) means of the sample
    directions  (D, K) what the centred features are multiplied with

    A batch is a pandas frame, a pyarrow table or record batch, or a dict of arrays, and comes back as the same.
    """

    keep: tuple[str, ...]
    features: tuple[str, ...]
    centre: NDArray[np.float32]
    directions: NDArray[np.float32]

    @classmethod
    def fit(
        cls, sample: Any, *, features: str | Sequence[str], keep: str | Sequence[str] = (), dimensions: int = 16
    ) -> "Reduction":
        """The reduction to at most `dimensions` numbers that keeps most of the variance of the scaled features.

        `sample` is a batch of some thousand rows drawn at random. Raises PoolError on columns that are not there and on
        numbers that are missing or not finite.
        """
        if dimensions < 1:
            raise PoolError(f"dimensions is {dimensions}; expected at least 1")
        columns = _listed(features)
        if not columns:
            raise PoolError("features names no column; there is nothing to reduce")
        wide = _matrix(sample, columns)[:MOST_ROWS].astype(np.float64)
        if len(wide) < 2:
            raise PoolError(f"the sample has {len(wide)} rows; expected some thousand, drawn at random")
        centre, spread = wide.mean(axis=0), wide.std(axis=0)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        scaled = (wide - centre) * scale
        _, vectors = np.linalg.eigh(scaled.T @ scaled)
        chosen = vectors[:, ::-1][:, :dimensions]
        signs = np.sign(
            chosen[np.abs(chosen).argmax(axis=0), range(chosen.shape[1])]
        )  # the same sample, the same directions
        directions = (scale[:, None] * chosen * signs).astype(np.float32)
        return cls(_listed(keep), columns, centre.astype(np.float32), directions)

    @property
    def columns(self) -> list[str]:
        """The names of the reduced features in the narrow table."""
        return [f"reduced_{number}" for number in range(self.directions.shape[1])]

    def __call__(self, batch: Any) -> Any:
        """The narrow batch: the columns that stay, and the reduced features as float32."""
        wide = _matrix(batch, self.features)
        if wide.shape[1] != len(self.centre):
            raise PoolError(f"the batch has {wide.shape[1]} features, the sample had {len(self.centre)}")
        reduced = (wide - self.centre) @ self.directions
        numbers = {name: np.ascontiguousarray(reduced[:, column]) for column, name in enumerate(self.columns)}
        return _like(batch, {name: _column(batch, name) for name in self.keep} | numbers)

    def over(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The narrow batch of each: what Spark's mapInPandas and mapInArrow take."""
        for batch in batches:
            yield self(batch)

    def spark_schema(self, frame: Any) -> str:
        """The schema of the narrow table of a Spark frame, as these take it."""
        kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        for name in self.keep:
            if name not in kinds:
                raise PoolError(f"column {name!r} is not in the frame; its columns are {', '.join(kinds)}")
        kept = [f"`{name}` {kinds[name]}" for name in self.keep]
        return ", ".join([*kept, *(f"{name} float" for name in self.columns)])


def _listed(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _column(batch: Any, name: str) -> Any:
    names = list(batch) if isinstance(batch, Mapping) else _names(batch)
    if name not in names:
        raise PoolError(f"column {name!r} is not in the batch; its columns are {', '.join(map(str, names))}")
    return batch.column(name) if hasattr(batch, "column") else batch[name]


def _names(batch: Any) -> list[str]:
    return list(batch.schema.names) if hasattr(batch, "schema") else list(batch.columns)


def _matrix(batch: Any, columns: Sequence[str]) -> NDArray[np.float32]:
    """(n, D) the features of a batch; PoolError on the first that is missing, not finite or no number."""
    parts = [_numbers(_column(batch, name), name) for name in columns]
    matrix: NDArray[np.float32] = np.hstack(parts) if len(parts) > 1 else parts[0]
    return matrix


def _numbers(column: Any, name: str) -> NDArray[np.float32]:
    values = column.to_numpy(zero_copy_only=False) if hasattr(column, "type") and hasattr(column, "chunks") else column
    if hasattr(values, "type"):  # an Arrow array
        values = values.to_numpy(zero_copy_only=False)
    array = np.asarray(values)
    try:
        rows = np.stack(list(array)) if array.dtype == object and len(array) else array
        numbers = np.asarray(rows, np.float32).reshape(len(array), -1)
    except (TypeError, ValueError) as cause:
        raise PoolError(f"column {name!r} holds what is no number, or lists of different lengths: {cause}") from cause
    if not np.isfinite(numbers).all():
        row = int(np.argwhere(~np.isfinite(numbers))[0][0])
        raise PoolError(f"column {name!r}, row {row} of its batch: the value is missing or not a finite float32")
    return numbers


def _like(batch: Any, columns: dict[str, Any]) -> Any:
    """Columns as the kind of batch that this is."""
    if isinstance(batch, Mapping):
        return {name: np.asarray(column) for name, column in columns.items()}
    if not hasattr(batch, "schema"):  # pandas
        return type(batch)(
            {
                name: np.asarray(column) if not hasattr(column, "array") else column.array
                for name, column in columns.items()
            }
        )
    kind = type(batch)
    import pyarrow

    arrays = [pyarrow.array(column) if isinstance(column, np.ndarray) else column for column in columns.values()]
    return kind.from_arrays(arrays, names=list(columns))
