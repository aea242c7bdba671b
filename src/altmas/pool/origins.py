"""Where the numbers of a pool come from, its features and scores: columns, .npy files, lists or arrays.

An *origin* is None, a Path, a tuple of column names and Paths, or an array; `origin_of` makes it of what users write.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from altmas.errors import MissingExtra, PoolError
from altmas.items.images import looks_like_image
from altmas.items.lazy import LazyItems
from altmas.pool.columns import Columns
from altmas.pool.embeddings import embedded
from altmas.pool.made_features import made_from
from altmas.pool.matrices import read_matrix
from altmas.pool.pool import Pool
from altmas.pool.readable import existing
from altmas.pool.scratch import rows_of

Numbers = str | os.PathLike[str] | Sequence[str] | ArrayLike | None
"""Where numbers come from: column names and .npy files, one column of lists, or an array."""

AUTO = "auto"
"""Features are made of what labellers are shown, where that is texts, images or categories."""

EMBEDDING = ":embedding"
"""What stands after the column of texts that a language model makes features of."""

MOST_TEXTS, MOST_IMAGES = 50_000, 5_000
"""Rows up to which features are made of texts or images that nobody named as features: a minute or so."""


def origin_of(origin: Any) -> Any:
    """The origin that users mean by these column names, .npy files or numbers."""
    if hasattr(origin, "tolist") and np.ndim(origin) == 1:
        origin = origin.tolist()
    if isinstance(origin, list | tuple) and all(isinstance(entry, str) for entry in origin):
        origin = origin[0] if len(origin) == 1 else tuple(origin) or None
    if isinstance(origin, os.PathLike) or (isinstance(origin, str) and _is_file_name(origin)):
        return existing(origin)
    if isinstance(origin, tuple) and all(isinstance(entry, str) for entry in origin):
        return tuple(existing(entry) if _is_file_name(entry) else entry for entry in origin)
    return (origin,) if isinstance(origin, str) else origin


def _is_file_name(text: str) -> bool:
    return Path(text).suffix.lower() in (".npy", ".npz", ".pkl", ".pickle", ".pt", ".joblib")


def named_columns(origin: Any) -> tuple[str, ...]:
    """The columns that numbers come from, if they come from columns."""
    return tuple(entry.removesuffix(EMBEDDING) for entry in origin if isinstance(entry, str)) if _listed(origin) else ()


def embedded_columns(origin: Any) -> list[str]:
    """The columns of texts that a language model makes features of."""
    spelled = (
        [entry for entry in origin if isinstance(entry, str) and entry.endswith(EMBEDDING)] if _listed(origin) else []
    )
    return [entry.removesuffix(EMBEDDING) for entry in spelled]


def _listed(origin: Any) -> bool:
    return isinstance(origin, tuple) and all(isinstance(entry, str | Path) for entry in origin)


def column_groups(origin: Any) -> list[tuple[str, ...]]:
    """The columns of an origin that are read as one matrix."""
    named = named_columns(origin)
    return [named] if named and len(named) == len(origin) else [(name,) for name in named]


def stored_form(origin: Any) -> str | list[str] | None:
    """An origin as JSON, or None for one that lives in memory."""
    return str(origin) if isinstance(origin, Path) else [str(entry) for entry in origin] if _listed(origin) else None


def array_alone(origin: Any) -> Any:
    """The numbers of an origin that names no column."""
    return read_matrix(origin) if isinstance(origin, Path) else origin


def made_matrix(
    columns: Columns, origin: Any, folder: Path, like: str | os.PathLike[str] | None
) -> tuple[Any, tuple[str, ...]]:
    """(the features, how those of them were made that come from columns of texts, images or categories)."""
    made = [name for name in named_columns(origin) if columns.holds_texts(name)]
    numbers = [name for name in embedded_columns(origin) if name not in made]
    if numbers:
        raise PoolError(
            f"column {numbers[0]!r} holds no texts, of which alone an embedding can be made; leave {EMBEDDING!r} out"
        )
    if not made:
        return matrix_of(columns, origin), ()
    parts, descriptions = [], []
    for entry in origin:
        if isinstance(entry, str) and entry.endswith(EMBEDDING):
            name = entry.removesuffix(EMBEDDING)
            features = embedded(
                ["" if text is None else str(text) for text in columns.values(name)], f"column {name!r}"
            )
            parts.append(features)
            descriptions.append(f"embeddings of the texts in column {name!r} ({features.shape[1]} columns)")
        elif entry in made:
            known = None if like is None else Columns(like, [entry]).values(entry)
            features, how = made_from(columns.values(entry), f"column {entry!r}", folder, known)
            parts.append(features)
            descriptions.append(how)
        else:
            parts.append(_of_file(columns, entry) if isinstance(entry, Path) else columns.matrix([entry]))
    return _side_by_side(parts, origin), tuple(descriptions)


def matrix_of(columns: Columns, origin: Any) -> Any:
    """The numbers of an origin, (N, columns), at the rows of the columns; None where there is none."""
    if isinstance(origin, Path):
        return _of_file(columns, origin)
    if not _listed(origin):
        return origin if columns.rows is None or origin is None else _at_rows(columns, np.asarray(origin), "the array")
    if len(named_columns(origin)) == len(origin):
        return columns.matrix(origin)
    return _side_by_side(
        [_of_file(columns, entry) if isinstance(entry, Path) else columns.matrix([entry]) for entry in origin], origin
    )


def _of_file(columns: Columns, file: Path) -> Any:
    """The rows of a .npy file that belong to those of the columns."""
    whole = read_matrix(file)
    return whole if columns.rows is None else _at_rows(columns, whole, str(file))


def _at_rows(columns: Columns, whole: NDArray[Any], where: str) -> NDArray[Any]:
    if len(whole) != columns.size:
        raise PoolError(
            f"{where} has {len(whole):,} rows, {columns.where} has {columns.size:,}; they are aligned by row"
        )
    assert columns.rows is not None
    return rows_of(whole, columns.rows)


def _side_by_side(parts: list[NDArray[Any]], origin: tuple[str | Path, ...]) -> NDArray[np.float32]:
    """(N, all columns) of files and columns together, as float32."""
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        counts = ", ".join(f"{entry} {len(part)}" for entry, part in zip(origin, parts, strict=True))
        raise PoolError(f"features come from files and columns with different numbers of rows: {counts}")
    return np.hstack([np.asarray(part, np.float32).reshape(len(part), -1) for part in parts])


def features_of_what_is_shown(
    pool: Pool, shown: str | Sequence[str] | None, folder: Path, answers: set[str]
) -> tuple[str, ...] | None:
    """The columns whose features the pool has now; None, and `pool.unmade` says why, where none could be made."""
    if not isinstance(pool.items, LazyItems) or shown is None:
        return None
    names = [shown] if isinstance(shown, str) else list(shown)
    held = pool.items.columns
    table = pa.table({names[0]: held}) if isinstance(held, pa.ChunkedArray) else held
    columns = Columns.part(table, "what is shown")
    parts, descriptions, used = [], [], []
    for name in names:
        if name in answers or not columns.holds_texts(name):
            continue
        values = columns.values(name)
        images = all(map(looks_like_image, [value for value in values[:100] if value is not None] or [""]))
        most, kind = (MOST_IMAGES, "images") if images else (MOST_TEXTS, "texts")
        if len(values) > most:
            pool.unmade = (
                f"{len(values):,} {kind} in column {name!r} are more than the {most:,} of which features are made "
                f"unasked; --features {name} makes them"
            )
            continue
        try:
            features, how = made_from(values, f"column {name!r}", folder)
        except (PoolError, MissingExtra) as cause:
            pool.unmade = str(cause)
            continue
        parts.append(features)
        descriptions.append(how)
        used.append(name)
    if not parts:
        return None
    pool.features, pool.made_features, pool.unmade = np.hstack(parts), tuple(descriptions), ""
    return tuple(used)
