"""A pool that lived in memory, as chunks of bytes inside the session file, and back, bit for bit."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.pool import Pool
from altmas.store import pack, unpack

LIMIT = 512 * 2**20
"""Bytes of features, scores and items that a session file takes in; a larger pool is handed over on opening."""

CHUNK_BYTES = 16 * 2**20

Parts = Iterator[tuple[str, int, bytes]]
ReadPart = Callable[[str], Iterable[bytes]]


def archivable(pool: Pool) -> bool:
    """Whether the numbers of the pool are few enough to be kept in the session file."""
    return sum(array.nbytes for array in (pool.features, pool.scores) if array is not None) <= LIMIT


def parts_of(pool: Pool) -> Parts:
    """(name, chunk, bytes) of everything that makes the pool again."""
    kind, items = _items_parts(pool)
    about = {
        "classes": list(pool.classes),
        "classes_inferred": pool.classes_inferred,
        "counted": isinstance(pool.ids, range),
        "slices": list(pool.slices),
        "items": kind,
    }
    yield "about", 0, json.dumps(about).encode()
    yield from _chunks("predictions", pool.predictions)
    if not isinstance(pool.ids, range):
        yield "ids", 0, json.dumps(list(pool.ids)).encode()
    for name in ("features", "scores"):
        array = getattr(pool, name)
        if array is not None:
            yield from _chunks(name, array)
    for number, column in enumerate(pool.slices.values()):
        yield from _chunks(f"slice {number}", column)
    yield from items


def pool_of(part: ReadPart) -> Pool:
    """The pool whose parts `part(name)` reads."""
    about = json.loads(b"".join(part("about")))
    classes = about["classes"]
    codes = _array(part("predictions"))
    assert codes is not None
    pool = Pool(
        None,
        [classes[code] for code in codes.tolist()],
        classes=classes,
        ids=None if about["counted"] else json.loads(b"".join(part("ids"))),
        slices={name: _column(part(f"slice {number}")) for number, name in enumerate(about["slices"])},
        items=_items(about["items"], part),
    )
    pool.classes_inferred = about["classes_inferred"]
    # As they were: to check, convert or normalise them once more could move a last bit, and with it the next draw.
    pool.features, pool.scores = _array(part("features")), _array(part("scores"))
    return pool


def _chunks(name: str, array: NDArray[Any]) -> Parts:
    rows = max(1, CHUNK_BYTES // max(1, array[:1].nbytes))
    for chunk, start in enumerate(range(0, len(array), rows)):
        yield name, chunk, pack({"rows": np.asarray(array[start : start + rows])})


def _array(chunks: Iterable[bytes]) -> NDArray[Any] | None:
    pieces = [unpack(chunk)["rows"] for chunk in chunks]
    return np.concatenate(pieces) if pieces else None


def _column(chunks: Iterable[bytes]) -> NDArray[Any]:
    column = _array(chunks)
    assert column is not None
    return column


def _items_parts(pool: Pool) -> tuple[str, Parts]:
    """How the items are kept ("none", "array", "arrays", "json"; "lost" if it fits none of these) and their parts."""
    items = pool.items
    if items is None:
        return "none", iter(())
    if isinstance(items, np.ndarray) and items.dtype.kind in "biufU":
        return ("array", _chunks("items", items)) if items.nbytes <= LIMIT else ("lost", iter(()))
    if not isinstance(items, list | tuple | np.ndarray):
        return "lost", iter(())  # a lazy sequence: to read it all could take hours
    if all(isinstance(item, np.ndarray) and item.dtype.kind in "biufU" for item in items):
        small = sum(item.nbytes for item in items) <= LIMIT
        return ("arrays", _array_list(items)) if small else ("lost", iter(()))
    try:
        text = json.dumps(list(items), default=os.fspath).encode()  # paths become texts
    except (TypeError, ValueError):
        return "lost", iter(())
    return ("json", _bytes_chunks("items", text)) if len(text) <= LIMIT else ("lost", iter(()))


def _array_list(items: Iterable[NDArray[Any]]) -> Parts:
    for chunk, item in enumerate(items):
        yield "items", chunk, pack({"rows": item})


def _bytes_chunks(name: str, data: bytes) -> Parts:
    for chunk, start in enumerate(range(0, len(data), CHUNK_BYTES)):
        yield name, chunk, data[start : start + CHUNK_BYTES]


def _items(kind: str, part: ReadPart) -> Any:
    if kind == "json":
        return json.loads(b"".join(part("items")))
    if kind == "array":
        return _array(part("items"))
    if kind == "arrays":
        return [unpack(chunk)["rows"] for chunk in part("items")]
    return None
