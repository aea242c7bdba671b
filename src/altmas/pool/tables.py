"""From a table (a frame, a Hugging Face dataset, a file) to a pool: columns have roles.

Every table becomes Arrow on the way, so the same data make the same pool, down to the fingerprint.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from altmas.errors import FileError, MissingExtra, PoolError
from altmas.items.images import looks_like_image
from altmas.items.lazy import LazyItems
from altmas.outputs import writable
from altmas.pool.columns import Columns
from altmas.pool.embeddings import embedded
from altmas.pool.engines import Source, fetched, is_address, keep, local, source_of
from altmas.pool.files import existing, text_columns
from altmas.pool.first_phase import LARGE, Wanted
from altmas.pool.made_features import made_from
from altmas.pool.matrices import read_matrix
from altmas.pool.models import DEFAULT_MODEL, named_scores
from altmas.pool.naming import Name, names_of
from altmas.pool.pool import Pool
from altmas.pool.scratch import rows_of

Numbers = str | os.PathLike[str] | Sequence[str] | ArrayLike | None
"""Where numbers come from: column names and .npy files, one column of lists, or an array."""


FRACTION = re.compile(r"[-+]?[0-9]*[.,]?[0-9]+([eE][-+]?[0-9]+)?\Z")
POINT = re.compile("[.,]")

AUTO = "auto"
"""Features are made of what labellers are shown, where that is texts, images or categories."""

EMBEDDING = ":embedding"
"""What stands after the column of texts that a language model makes features of."""

MOST_TEXTS, MOST_IMAGES = 50_000, 5_000
"""Rows up to which features are made of texts or images that nobody named as features: a minute or so."""

MOST_FRACTIONS = 20
"""Different numbers with a fraction up to which a column of a text file may be ratings; beyond, it holds no classes."""

FEWEST_TO_JUDGE, MOST_DISTINCT = 50, 0.8
"""Rows from which a column of texts is taken to hold no classes if more than this part of its values differ."""


def pool_from_table(
    table: Any,
    *,
    prediction: str | Sequence[str] | None,
    id: str | None = None,
    features: Numbers = None,
    scores: Numbers | Mapping[str, Numbers] = None,
    slices: str | Sequence[str] = (),
    show: str | Sequence[str] | None = None,
    classes: Sequence[Name] | None = None,
    group: str | None = None,
    values: Mapping[Any, float] | None = None,
    weight: str | None = None,
    sample: int | None = None,
    sample_seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    like: str | os.PathLike[str] | None = None,
    encoding: str | None = None,
    judge: bool = True,
) -> Pool:
    """The pool in a table: pandas, polars or pyarrow frame, Hugging Face dataset, .csv/.jsonl/.parquet path.

    Arrow datasets and streams, folders of Parquet files, addresses such as s3://bucket/folder, DuckDB relations and
    frames of Spark, Dask and Ray are read in batches (engines.py).

    prediction        a column; a list of columns makes a model of each, called like it; None for no model
    id                a column
    features, scores  columns of numbers and .npy files aligned by row, one column of equally long lists, or an array;
                      features also columns of texts, image paths or categories, from which numbers are made, and
                      "column:embedding" for those of a language model (the extra altmas[embeddings]); "auto"
                      makes them of what is shown, where that is possible (`pool.unmade` says why not);
                      scores of several models as {column of the model: one of these}
    slices            columns that divide the pool
    show              one column (items are its values) or several (items are dicts)
    group             a column: what points come together in, as a conversation or a patient
    values            {class: number}: what metrics of numbers take the classes for
    weight            a column: how many rows a row stands for
    sample            rows to be taken at random as the pool, 0 for all; by default AUTOMATIC of more than LARGE, unless
                      rows have weights; sample_seed  says which
    classes           the class list; by default the names of a Hugging Face ClassLabel, else what is seen
    store             a .parquet file to be written: the columns go there and numbers into .npy files beside it, and
                      the pool is read from those, so that a session can be opened again without the engine
    encoding          of a .csv file that is not UTF-8, such as cp1252
    like              a table from which the words and categories of features that are made are taken
    judge             whether columns that look like something else are refused: not where a session was made of them
    Raises FileError or PoolError, naming the file, the column and the row (counted from 0).
    """
    by_themselves = isinstance(features, str) and features == AUTO
    inputs, answers = _origin(None if by_themselves else features), _answer_columns(prediction)
    outputs = {name: _origin(numbers) for name, numbers in named_scores(scores, list(answers)).items()}
    parts = [slices] if isinstance(slices, str) else list(slices)
    shown = show if isinstance(show, str) else list(show or ()) or None
    names = [*answers.values(), *(name for name in (id, group, weight) if name is not None), *parts]
    names += [shown] if isinstance(shown, str) else shown or []
    if store is not None:
        moved = _moved_to(Path(store).expanduser().absolute(), table, names, inputs, outputs, encoding)
        in_store = moved.scores if outputs else None
        scores = in_store.get(DEFAULT_MODEL) if in_store and not isinstance(scores, Mapping) else in_store
        roles: dict[str, Any] = {
            "prediction": prediction,
            "id": id,
            "slices": slices,
            "show": show,
            "classes": classes,
            "group": group,
            "values": values,
            "weight": weight,
            "sample": sample,
            "sample_seed": sample_seed,
        }
        again = AUTO if by_themselves else moved.features
        return pool_from_table(moved.table, features=again, scores=scores, **roles)
    in_memory = source_of(table) is None or _made_of_parquet(table, inputs)
    is_file = in_memory and isinstance(table, str | os.PathLike)
    texts = text_columns(table, _named(inputs), encoding) if is_file else []
    origins = [inputs, *outputs.values()]
    request = Wanted.of(sample, sample_seed, weighted=weight is not None)
    repeated = [*answers.values(), *parts]
    columns = _columns(
        table, [*names, *texts], origins, repeated=repeated, in_memory=in_memory, request=request, encoding=encoding
    )
    columns = columns.sampled(request)
    folder = existing(local(table)).parent if is_file else Path()
    matrix, made = _made_matrix(columns, inputs, folder, like) if in_memory else (_matrix(columns, inputs), ())
    listed = _listed_classes(columns, answers) if classes is None else classes
    matrices = {name: _matrix(columns, origin) for name, origin in outputs.items()}
    try:
        if judge:
            for column in answers.values():
                _refuse_other_than_classes(columns, column, values if listed is None else listed)
        pool = Pool(
            matrix,
            {name: columns.names(column) for name, column in answers.items()} or None,
            scores=matrices,
            classes=listed,
            values=values,
            ids=columns.rows if id is None else columns.names(id),
            slices={name: columns.labels(name) for name in parts},
            items=None if shown is None else columns.items(shown),
            group=None if group is None else columns.labels(group),
            weights=None if weight is None else columns.weights(weight),
            _judge_scores=judge,
        )
    except PoolError as cause:
        roles = {"predictions": prediction, "ids": id, "features": inputs, "scores": outputs.get(DEFAULT_MODEL)}
        raise PoolError(_placed(str(cause), columns.where, roles)) from cause
    pool.group_name = pool.group_name if group is None else group
    pool.made_features = made
    if columns.rows is not None:
        pool.sampled_from = columns.size
    if by_themselves:
        inputs = _features_of_what_is_shown(pool, shown, folder if is_file else Path(), set(answers.values()))
    if _can_be_read_again(table) and all(origin is None or _stored(origin) for origin in (inputs, *outputs.values())):
        stored = {name: _stored(origin) for name, origin in outputs.items()}
        source: dict[str, Any] = {
            "table": str(existing(local(table))),
            "folder": str(existing(local(table)).parent),
            "prediction": prediction if isinstance(prediction, str | None) else list(prediction),
            "id": id,
            "features": _stored(inputs),
            "scores": stored.get(DEFAULT_MODEL) if isinstance(prediction, str | None) else stored,
            "slices": parts,
            "show": shown,
            "classes": None if classes is None else list(pool.classes),
        } | {
            role: name
            for role, name in (("group", group), ("weight", weight), ("encoding", encoding))
            if name is not None
        }
        source |= {} if pool.named_values is None else {"values": pool.named_values}
        if columns.rows is not None:
            source |= {"sample": len(pool), "sample_seed": sample_seed}
        elif columns.size > LARGE:
            source["sample"] = 0
        pool.source = source
    return pool


def _made_of_parquet(table: Any, inputs: Any) -> bool:
    """Whether features are to be made of a column of a Parquet file here, which is then read into memory."""
    if not (isinstance(table, str | os.PathLike) and _named(inputs)) or is_address(os.fspath(table)):
        return False
    try:
        schema = pq.read_schema(local(table))
    except (OSError, pa.ArrowException):
        return False  # a folder, or a file that reading says more about
    kinds = [schema.field(name).type for name in _named(inputs) if name in schema.names]
    return any(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind) for kind in kinds)


def _columns(
    table: Any,
    names: Sequence[str],
    origins: Sequence[Any],
    repeated: Sequence[str] = (),
    *,
    in_memory: bool = False,
    request: Wanted | None = None,
    encoding: str | None = None,
) -> Columns:
    """The columns that are needed; of tables that live elsewhere in batches, numbers apart from names."""
    source = None if in_memory else source_of(table)
    if source is None:
        return Columns(table, names, [name for origin in origins for name in _named(origin)], encoding)
    for name in (*names, *(name for origin in origins for name in _named(origin))):
        if not isinstance(name, str):
            raise PoolError(f"column {name!r} was not understood; expected the name of a column")
    groups = {group: group for origin in origins for group in _groups(origin)}
    narrow, matrices, sampled = fetched(source, names, groups, repeated, request)
    return Columns.read(narrow, source.where, matrices, sampled)


@dataclass(frozen=True)
class Moved:
    """Where the columns and the numbers of a table are now."""

    table: Path
    features: Any
    scores: dict[str, Any]


def _moved_to(
    store: Path, table: Any, names: Sequence[str], inputs: Any, outputs: Mapping[str, Any], encoding: str | None
) -> Moved:
    """The columns written to `store`, those of numbers to .npy files beside it; nothing there is replaced."""
    if store.suffix.lower() != ".parquet":
        raise FileError(f"store {store} does not end with .parquet; nothing was written")
    paths = {store.with_suffix(".features.npy"): inputs}
    many = len(outputs) > 1
    for number, origin in enumerate(outputs.values()):
        paths[store.with_suffix(f".scores-{number}.npy" if many else ".scores.npy")] = origin
    groups = {_named(origin): path for path, origin in paths.items() if _groups(origin) == [_named(origin)]}
    if not names:
        raise PoolError("a stored pool needs an id, a prediction, a slice or something to show; nothing was written")
    for path in (store, *groups.values()):
        writable(path, force=False)
    source = source_of(table)
    if source is None:
        held = Columns(table, names, [name for group in groups for name in group], encoding)
        source = Source(held.where, held.table.column_names, lambda columns: iter([held.table.select(columns)]))
    keep(source, store, names, groups)
    scores = {name: groups.get(_named(origin), origin) for name, origin in outputs.items()}
    return Moved(store, groups.get(_named(inputs), inputs), scores)


def _groups(origin: Any) -> list[tuple[str, ...]]:
    """The columns of an origin that are read as one matrix."""
    named = _named(origin)
    return [named] if named and len(named) == len(origin) else [(name,) for name in named]


def _can_be_read_again(table: Any) -> bool:
    """Whether a session may refer to the table: a file here; opening a session never reaches over a network."""
    return isinstance(table, str | os.PathLike) and not is_address(os.fspath(table))


def _answer_columns(prediction: str | Sequence[str] | None) -> dict[str, str]:
    """{model: its column}; PoolError on a column that is named twice."""
    if prediction is None:
        return {}
    if isinstance(prediction, str) or not isinstance(prediction, Iterable):
        return {DEFAULT_MODEL: prediction}
    columns = list(prediction)
    twice = next((name for index, name in enumerate(columns) if name in columns[:index]), None)
    if twice is not None or not columns:
        fault = "an empty list" if twice is None else f"{twice!r} twice"
        raise PoolError(f"prediction holds {fault}; give the column of each model once")
    return {name: name for name in columns}


def _listed_classes(columns: Columns, answers: Mapping[str, str]) -> Sequence[Name] | None:
    """The class names that come with the columns, if all models' columns have the same."""
    known = [columns.classes.get(column) for column in answers.values()]
    return known[0] if known and all(names == known[0] for names in known) else None


def pool_from_source(source: Mapping[str, Any], made: NDArray[Any] | None = None) -> Pool:
    """The pool that `pool.source` describes, read again from its files; FileError if one is gone.

    `source["folder"]` is where relative image paths among the items start. Features that were made from texts or images
    are not made again: `made` are those of the first time.
    """
    roles = {role: value for role, value in source.items() if role not in ("table", "folder")} | {"judge": False}
    if made is None:
        return pool_from_table(source["table"], **roles)
    pool = pool_from_table(source["table"], **roles | {"features": None})
    if len(made) != len(pool):
        raise PoolError(f"{source['table']} has {len(pool):,} rows, the session was made with {len(made):,}")
    pool.features, pool.source = made, dict(source)
    return pool


def column_of(table: Any, name: str, encoding: str | None = None) -> NDArray[Any]:
    """(N,) classes in one column of a table or file, such as the known truth; PoolError on a row without one."""
    return names_of(_columns(table, [name], [], [name], encoding=encoding).names(name), f"column {name!r}")


def classes_of(
    table: Any, name: str, encoding: str | None = None, classes: Sequence[Name] | None = None
) -> NDArray[Any]:
    """The same of a column that must hold classes: PoolError if it holds numbers, or texts, of another kind.

    classes  the class list, if it is known
    """
    columns = _columns(table, [name], [], [name], encoding=encoding)
    _refuse_other_than_classes(columns, name, classes)
    return names_of(columns.names(name), f"column {name!r}")


def scores_in(table: Any, scores: Numbers, encoding: str | None = None) -> Any:
    """(N, columns) scores in columns of a table or file, or in a .npy file."""
    origin = _origin(scores)
    if not _named(origin):
        return _matrix_alone(origin)
    return _matrix(_columns(table, [], [origin], encoding=encoding), origin)


def _matrix_alone(origin: Any) -> Any:
    return read_matrix(origin) if isinstance(origin, Path) else origin


def _refuse_other_than_classes(columns: Columns, name: str, classes: Iterable[Name] | None) -> None:
    """PoolError on a column of fractions, which a text file cannot tell from names, or of texts or ids.

    classes  the class list, if it is known: then texts are told by not being in it
    """
    values = columns.names(name)
    distinct = set(values.tolist()) if values.dtype.kind == "O" else set()
    many = len(distinct) > min(MOST_FRACTIONS, len(values) / 2)
    many = many and any(POINT.search(str(value)) for value in distinct)  # 007 is a code, and may be a class
    if many and all(isinstance(value, str) and FRACTION.match(value) for value in distinct):
        example = next((value for value in values.tolist() if POINT.search(value)), values[0])
        raise PoolError(
            f"{columns.where}, column {name!r} holds {len(distinct):,} different numbers such as {example}; expected "
            "classes; is this a column of scores? The probabilities of a model are scores (--scores), other numbers "
            "features (--features)"
        )
    if classes is None and len(values) >= FEWEST_TO_JUDGE and len(distinct) > MOST_DISTINCT * len(values):
        example = str(next(value for value in values.tolist() if value))[:40]
        raise PoolError(
            f"{columns.where}, column {name!r} holds {len(distinct):,} different values in {len(values):,} rows, such "
            f"as {example!r}; expected classes, of which there are fewer; is this a column of texts or ids? Texts are "
            "features (--features) or shown (--show); if they are classes all the same, list them (--class, repeated)"
        )


def _origin(origin: Any) -> Any:
    """None, a Path, a tuple of column names and Paths, or an array."""
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


def _named(origin: Any) -> tuple[str, ...]:
    """The columns that numbers come from, if they come from columns."""
    return tuple(entry.removesuffix(EMBEDDING) for entry in origin if isinstance(entry, str)) if _listed(origin) else ()


def _embedded(origin: Any) -> list[str]:
    """The columns of texts that a language model makes features of."""
    spelled = (
        [entry for entry in origin if isinstance(entry, str) and entry.endswith(EMBEDDING)] if _listed(origin) else []
    )
    return [entry.removesuffix(EMBEDDING) for entry in spelled]


def _listed(origin: Any) -> bool:
    return isinstance(origin, tuple) and all(isinstance(entry, str | Path) for entry in origin)


def _features_of_what_is_shown(
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


def _made_matrix(
    columns: Columns, origin: Any, folder: Path, like: str | os.PathLike[str] | None
) -> tuple[Any, tuple[str, ...]]:
    """(the features, how those of them were made that come from columns of texts, images or categories)."""
    made = [name for name in _named(origin) if columns.holds_texts(name)]
    numbers = [name for name in _embedded(origin) if name not in made]
    if numbers:
        raise PoolError(
            f"column {numbers[0]!r} holds no texts, of which alone an embedding can be made; leave {EMBEDDING!r} out"
        )
    if not made:
        return _matrix(columns, origin), ()
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


def _matrix(columns: Columns, origin: Any) -> Any:
    if isinstance(origin, Path):
        return _of_file(columns, origin)
    if not _listed(origin):
        return origin if columns.rows is None or origin is None else _at_rows(columns, np.asarray(origin), "the array")
    if len(_named(origin)) == len(origin):
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


def _stored(origin: Any) -> str | list[str] | None:
    """An origin as JSON, or None for one that lives in memory."""
    return str(origin) if isinstance(origin, Path) else [str(entry) for entry in origin] if _listed(origin) else None


def _placed(sentence: str, where: str, roles: Mapping[str, Any]) -> str:
    """A sentence about predictions, ids, features or scores, with the column or file that they came from."""
    if sentence.startswith(where):
        return sentence
    origin = next((origin for role, origin in roles.items() if sentence.startswith(role)), None)
    if isinstance(origin, Path):
        return f"{where} with {origin}: {sentence}"
    return f"{where}, column {origin!r}: {sentence}" if isinstance(origin, str) else f"{where}: {sentence}"
