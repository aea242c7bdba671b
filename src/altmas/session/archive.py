"""The pool of a session file: kept inside it bit for bit, or read again from where it came, and compared.

A pool made from files is referred to, one that lived in memory is taken into the session file.
"""

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.above import above
from altmas.errors import FileError, NotASession, PoolError, PoolMismatch, SessionError
from altmas.items.lazy import LazyItems
from altmas.pool import Model, Pool
from altmas.pool.models import DEFAULT_MODEL, refuse_damaged
from altmas.session.arrays import pack, unpack
from altmas.session.store import LabelStore

log = logging.getLogger("altmas")

LIMIT = 512 * 2**20
"""Bytes of features, scores and items that a session file takes in; a larger pool is handed over on opening."""

CHUNK_BYTES = 16 * 2**20

ONE_COLUMN = "altmas: the items themselves"
"""Name of the column that holds items which are values, not rows."""

REMEDY = (
    "put it back as it was; or make a new session of what it is now and take the labels along: altmas export {path} "
    "--labels labels.csv, then altmas import into the new one"
)
"""What mends a table that was changed."""

Parts = Iterator[tuple[str, int, bytes]]
ReadPart = Callable[[str], Iterable[bytes]]


def about(pool: Pool, archived: bool, path: Path | None) -> dict[str, Any]:
    """What the first event of a session says about its pool."""
    home = None if path is None else str(path.resolve().parent)
    size = {"points": len(pool), "classes": list(pool.classes)}
    made = {"made_features": list(pool.made_features)} if pool.made_features else {}
    sampled = {"sampled_from": pool.sampled_from} if pool.sampled_from is not None else {}
    return size | made | sampled | {"archived": archived, "source": pool.source, "home": home}


def stored_pool(store: LabelStore, about: Mapping[str, Any]) -> Pool:
    """The pool that a session was made with; PoolMismatch if it has to be handed over."""
    if about["archived"]:
        try:
            pool = pool_of(store.part)
            pool.made_features = tuple(map(str, about.get("made_features", ())))
            return pool
        except SessionError:
            raise
        except Exception as cause:  # bytes that were changed can fail in any way
            raise NotASession(
                f"{store.path} is damaged: its pool cannot be read ({cause}); nothing was read"
            ) from cause
    if about["source"] is not None:
        features = _array(store.part("features")) if about.get("made_features") else None
        pool = _read_again(store.path, about["source"], about["home"], features)
        pool.made_features = tuple(map(str, about.get("made_features", ())))
        return pool
    raise PoolMismatch(
        f"{store.path} does not hold its pool of {about['points']:,} points (more than {LIMIT // 2**20} MB); "
        "pass it: Session.open(path, pool=...)"
    )


def _read_again(path: Path | None, source: Mapping[str, Any], home: str | None, features: NDArray[Any] | None) -> Pool:
    """The pool from its files: where they were, or where they are now if they were moved along with the session."""
    if path is not None and home is not None and not Path(source["table"]).exists():
        folder = path.resolve().parent
        moved = {role: _moved(value, home, folder) for role, value in source.items()}
        source = moved if Path(moved["table"]).exists() else source
    for value in source.values():
        _refuse_devices(path, value)
    try:
        pool: Pool = above("pool_from_source")(source, features)
        return pool
    except FileError as cause:
        raise FileError(f"{path} needs the files of its pool: {cause}; or pass pool=... on opening") from cause
    except PoolError as cause:  # it was edited: an id that stands twice, a row less
        raise PoolMismatch(
            f"{path} belongs to another pool: {cause}; {REMEDY.format(path=path)}; nothing was recorded"
        ) from cause


def _refuse_devices(path: Path | None, value: Any) -> None:
    """FileError on a pipe or a device, which a file could name to make the reader wait without end."""
    if isinstance(value, Mapping):
        for named in value.values():
            _refuse_devices(path, named)
        return
    for named in value if isinstance(value, list) else [value]:
        if isinstance(named, str) and os.path.isabs(named):
            file = Path(named)
            if file.exists() and not (file.is_file() or file.is_dir()):
                raise FileError(f"{path} names {named}, which is no file; nothing was read; pass pool=... on opening")


def _moved(value: Any, home: str, folder: Path) -> Any:
    """A path seen from `home` as the same path seen from `folder`, also in lists and mappings; else as it is."""
    if isinstance(value, Mapping):
        return {name: _moved(part, home, folder) for name, part in value.items()}
    if isinstance(value, list):
        return [_moved(part, home, folder) for part in value]
    if not (isinstance(value, str) and os.path.isabs(value)):
        return value
    return os.path.normpath(folder / os.path.relpath(value, home))


def compare(path: object, pool: Pool, fingerprint: Mapping[str, str], points: int) -> None:
    """PoolMismatch, naming each part that is not as it was, if this is not the pool with that fingerprint."""
    own = pool.fingerprint
    differ = [part for part, digest in fingerprint.items() if part in own and own[part] != digest]
    clauses = [f"different {', '.join(differ)}"] if differ else []
    clauses += [f"no {part}" for part in fingerprint if part not in own]
    clauses += [f"{part}, which the session's has not" for part in own if part not in fingerprint]
    if clauses:
        counts = "" if len(pool) == points else f" and {len(pool):,} points instead of {points:,}"
        table = (pool.source or {}).get("table")
        given = "the one given" if table is None else f"the table {table}"
        remedy = "" if table is None else f" {REMEDY.format(path=path)};"
        raise PoolMismatch(
            f"{path} belongs to another pool: {given} has {'; '.join(clauses)}{counts};{remedy} nothing was recorded"
        )


def archivable(pool: Pool) -> bool:
    """Whether the features and scores of the pool are few enough to be kept in the session file."""
    scores = [model.scores for model in pool.models]
    return sum(array.nbytes for array in (pool.features, *scores) if array is not None) <= LIMIT


def items_kept(pool: Pool) -> bool:
    """Whether what a labeller is shown can be kept in the session file."""
    return _items_parts(pool)[0] != "lost"


def parts_of(pool: Pool) -> Parts:
    """(name, chunk, bytes) of everything that makes the pool again."""
    kind, items = _items_parts(pool)
    if kind == "lost":
        log.warning("the items are not kept in the session file; pass pool=... on opening to see them again")
    content = {
        "classes": list(pool.classes),
        "classes_inferred": pool.classes_inferred,
        "counted": isinstance(pool.ids, range),
        "slices": list(pool.slices),
        "items": kind,
        "points": len(pool),
        "models": [model.name for model in pool.models],
        "group": None if pool.group is None else pool.group_name,
        "values": pool.named_values,
    }
    content |= {} if pool.sampled_from is None else {"sampled_from": pool.sampled_from}
    yield from _text_chunks("about", json.dumps(content))
    for number, model in enumerate(pool.models):
        yield from _chunks(_part_of_model("predictions", number), model.predictions)
        if model.scores is not None:
            yield from _chunks(_part_of_model("scores", number), model.scores)
    if not isinstance(pool.ids, range):
        yield from _text_chunks("ids", json.dumps(list(pool.ids)))
    if pool.features is not None:
        yield from _chunks("features", pool.features)
    for number, column in enumerate(pool.slices.values()):
        yield from _chunks(f"slice {number}", column)
    if pool.group is not None:
        yield from _chunks("group", pool.group)
    if pool.weights is not None:
        yield from _chunks("weights", pool.weights)
    yield from items


def made_parts(pool: Pool) -> Parts:
    """The features of a pool that is read again from its files, if they were made from texts or images."""
    if pool.made_features and pool.features is not None:
        yield from _chunks("features", pool.features)


def pool_of(part: ReadPart) -> Pool:
    """The pool whose parts `part(name)` reads."""
    content = _json(part("about"))
    names = content.get("models", [DEFAULT_MODEL])
    models = [
        Model(
            name, _column(part(_part_of_model("predictions", number))), _array(part(_part_of_model("scores", number)))
        )
        for number, name in enumerate(names)
    ]
    counted = range(content["points"] if "points" in content else len(models[0].predictions))
    pool = Pool(
        None,
        None,
        classes=content["classes"],
        ids=counted if content["counted"] else _json(part("ids")),
        slices={name: _column(part(f"slice {number}")) for number, name in enumerate(content["slices"])},
        items=_items(content["items"], part),
        group=_array(part("group")),
        values=content.get("values"),
        weights=_array(part("weights")),
    )
    pool.sampled_from = _sampled_from(content.get("sampled_from"), len(pool))
    pool.group_name = content.get("group") or pool.group_name
    for model in models:
        refuse_damaged(model, pool)
    pool.classes_inferred = content["classes_inferred"]
    # As they were: to check, convert or normalise them once more could move a last bit, and with it the next draw.
    pool.models, pool.features = tuple(models), _array(part("features"))
    if content["counted"]:
        pool.ids = counted
    return pool


def _sampled_from(rows: Any, points: int) -> int | None:
    if rows is None or (type(rows) is int and rows > points):
        return rows
    raise ValueError(f"a sample of {points} points cannot come from {rows!r} rows")


def _part_of_model(what: str, number: int) -> str:
    """The name of a part of a model; the first model's has no number, as when a pool could have one model only."""
    return what if number == 0 else f"{what} {number}"


def _chunks(name: str, array: NDArray[Any]) -> Parts:
    rows = max(1, CHUNK_BYTES // max(1, array[:1].nbytes))
    for chunk, start in enumerate(range(0, len(array), rows)):
        yield name, chunk, pack({"rows": np.asarray(array[start : start + rows])})


def _array(chunks: Iterable[bytes]) -> NDArray[Any] | None:
    pieces = [unpack(chunk)["rows"] for chunk in chunks]
    return np.concatenate(pieces) if pieces else None


def _column(chunks: Iterable[bytes]) -> NDArray[Any]:
    return np.concatenate([unpack(chunk)["rows"] for chunk in chunks])


def _items_parts(pool: Pool) -> tuple[str, Parts]:
    """How the items are kept ("none", "arrow", "array", "arrays", "json"; "lost" if none fits) and their parts."""
    items = pool.items
    if items is None:
        return "none", iter(())
    if isinstance(items, LazyItems):
        return ("arrow", _arrow_chunks(items)) if items.columns.nbytes <= LIMIT else ("lost", iter(()))
    if isinstance(items, np.ndarray) and items.dtype.kind in "biufU":
        return ("array", _chunks("items", items)) if items.nbytes <= LIMIT else ("lost", iter(()))
    if not isinstance(items, list | tuple | np.ndarray):
        return "lost", iter(())  # a lazy sequence: to read it all could take hours
    if all(isinstance(item, np.ndarray) and item.dtype.kind in "biufU" for item in items):
        small = sum(item.nbytes for item in items) <= LIMIT
        return ("arrays", _array_list(items)) if small else ("lost", iter(()))
    try:
        text = json.dumps(list(items), default=os.fspath)  # paths become texts
    except (TypeError, ValueError):
        return "lost", iter(())
    return ("json", _text_chunks("items", text)) if len(text) <= LIMIT else ("lost", iter(()))


def _array_list(items: Iterable[NDArray[Any]]) -> Parts:
    for chunk, item in enumerate(items):
        yield "items", chunk, pack({"rows": item})


def _text_chunks(name: str, text: str) -> Parts:
    """A text as an array of bytes: an .npz carries the checksum that a bare text would lack."""
    return _chunks(name, np.frombuffer(text.encode(), np.uint8))


def _arrow_chunks(items: LazyItems) -> Parts:
    import pyarrow as pa  # here, because most sessions hold no frames

    table = items.columns if isinstance(items.columns, pa.Table) else pa.table([items.columns], [ONE_COLUMN])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return _chunks("items", np.frombuffer(sink.getvalue(), np.uint8))


def _arrow(chunks: Iterable[bytes]) -> LazyItems:
    import pyarrow as pa

    table = pa.ipc.open_stream(pa.py_buffer(_column(chunks))).read_all()
    table.validate(full=True)
    return LazyItems(table.column(0) if table.column_names == [ONE_COLUMN] else table)


def _json(chunks: Iterable[bytes]) -> Any:
    return json.loads(_column(chunks).tobytes())


def _items(kind: str, part: ReadPart) -> Any:
    if kind == "json":
        return _json(part("items"))
    if kind == "arrow":
        return _arrow(part("items"))
    if kind == "array":
        return _array(part("items"))
    if kind == "arrays":
        return [unpack(chunk)["rows"] for chunk in part("items")]
    return None
