"""From a table (a frame, a Hugging Face dataset, a file) to a pool: columns have roles.

Every table becomes Arrow on the way, so the same data make the same pool, down to the fingerprint.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from altmas.errors import FileError, PoolError
from altmas.outputs import writable
from altmas.pool.columns import Columns
from altmas.pool.csv_files import text_columns
from altmas.pool.engines import Source, fetched, is_address, keep, local, source_of
from altmas.pool.first_phase import LARGE, Wanted
from altmas.pool.models import DEFAULT_MODEL, named_scores
from altmas.pool.naming import Name, names_of
from altmas.pool.origins import (
    AUTO,
    Numbers,
    array_alone,
    column_groups,
    features_of_what_is_shown,
    made_matrix,
    matrix_of,
    named_columns,
    origin_of,
    stored_form,
)
from altmas.pool.pool import Pool
from altmas.pool.readable import existing


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
    roles = Roles.of(prediction, id, None if by_themselves else features, scores, slices, show, group, weight)
    if store is not None:
        moved = _moved_to(Path(store).expanduser().absolute(), table, roles, encoding)
        return pool_from_table(
            moved.table,
            prediction=prediction,
            id=id,
            features=AUTO if by_themselves else moved.features,
            scores=moved.scores or None,
            slices=slices,
            show=show,
            classes=classes,
            group=group,
            values=values,
            weight=weight,
            sample=sample,
            sample_seed=sample_seed,
        )
    in_memory = source_of(table) is None or _made_of_parquet(table, roles.features)
    is_file = in_memory and isinstance(table, str | os.PathLike)
    folder = existing(local(table)).parent if is_file else Path()
    columns = _columns_in_roles(
        table,
        roles,
        in_memory=in_memory,
        texts=text_columns(table, named_columns(roles.features), encoding) if is_file else [],
        request=Wanted.of(sample, sample_seed, weighted=weight is not None),
        encoding=encoding,
    )
    pool = _pool_of(columns, roles, classes, values, judge=judge, made_in=folder if in_memory else None, like=like)
    if by_themselves:
        made_of = features_of_what_is_shown(pool, roles.show, folder, set(roles.answers.values()))
        roles = replace(roles, features=made_of)
    if _can_be_read_again(table) and roles.can_be_stored:
        source = _source(roles, existing(local(table)), encoding)
        pool.source = source | {
            "classes": None if classes is None else list(pool.classes),
            **({} if pool.named_values is None else {"values": pool.named_values}),
            **_sample_in_source(columns, sample_seed),
        }
    return pool


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are, and where its numbers come from (origins.py).

    answers  {model: its column};  scores  {model: the origin of its scores}
    """

    prediction: str | Sequence[str] | None
    answers: dict[str, str]
    id: str | None
    features: Any
    scores: dict[str, Any]
    slices: list[str]
    show: str | list[str] | None
    group: str | None
    weight: str | None

    @classmethod
    def of(
        cls,
        prediction: str | Sequence[str] | None,
        id: str | None,
        features: Numbers,
        scores: Numbers | Mapping[str, Numbers],
        slices: str | Sequence[str],
        show: str | Sequence[str] | None,
        group: str | None,
        weight: str | None,
    ) -> "Roles":
        """The arguments of `pool_from_table` in one form; PoolError where they do not go together."""
        inputs, answers = origin_of(features), _answer_columns(prediction)
        listed = isinstance(prediction, Iterable) and not isinstance(prediction, str)
        return cls(
            prediction=list(answers) if listed else prediction,
            answers=answers,
            id=id,
            features=inputs,
            scores={name: origin_of(numbers) for name, numbers in named_scores(scores, list(answers)).items()},
            slices=[slices] if isinstance(slices, str) else list(slices),
            show=show if isinstance(show, str) else list(show or ()) or None,
            group=group,
            weight=weight,
        )

    @property
    def names(self) -> list[str]:
        """Every column that is not read as numbers."""
        single = [name for name in (self.id, self.group, self.weight) if name is not None]
        shown = [self.show] if isinstance(self.show, str) else self.show or []
        return [*self.answers.values(), *single, *self.slices, *shown]

    @property
    def origins(self) -> list[Any]:
        """Where all numbers come from."""
        return [self.features, *self.scores.values()]

    @property
    def can_be_stored(self) -> bool:
        """Whether no numbers are an array in memory."""
        return all(origin is None or stored_form(origin) for origin in self.origins)


def _columns_in_roles(
    table: Any,
    roles: Roles,
    *,
    in_memory: bool,
    texts: Sequence[str],
    request: Wanted | None,
    encoding: str | None,
) -> Columns:
    """The columns of the table that have a role, at the rows of the sample where one is wanted.

    texts  columns of texts among those that numbers are made of
    """
    repeated = [*roles.answers.values(), *roles.slices]
    columns = _columns(
        table,
        [*roles.names, *texts],
        roles.origins,
        repeated=repeated,
        in_memory=in_memory,
        request=request,
        encoding=encoding,
    )
    return columns.sampled(request)


def _pool_of(
    columns: Columns,
    roles: Roles,
    classes: Sequence[Name] | None,
    values: Mapping[Any, float] | None,
    *,
    judge: bool,
    made_in: Path | None,
    like: str | os.PathLike[str] | None,
) -> Pool:
    """The pool of these columns; PoolError, naming the column, where they cannot be what their roles say.

    made_in  the folder of image paths where features may be made of columns; None where all columns are numbers
    """
    made: tuple[str, ...] = ()
    if made_in is None:
        matrix = matrix_of(columns, roles.features)
    else:
        matrix, made = made_matrix(columns, roles.features, made_in, like)
    listed = _listed_classes(columns, roles.answers) if classes is None else classes
    matrices = {name: matrix_of(columns, origin) for name, origin in roles.scores.items()}
    try:
        if judge:
            for column in roles.answers.values():
                columns.refuse_other_than_classes(column, values if listed is None else listed)
        pool = Pool(
            matrix,
            {name: columns.names(column) for name, column in roles.answers.items()} or None,
            scores=matrices,
            classes=listed,
            values=values,
            ids=columns.rows if roles.id is None else columns.names(roles.id),
            slices={name: columns.labels(name) for name in roles.slices},
            items=None if roles.show is None else columns.items(roles.show),
            group=None if roles.group is None else columns.labels(roles.group),
            weights=None if roles.weight is None else columns.weights(roles.weight),
            _judge_scores=judge,
        )
    except PoolError as cause:
        origins = {
            "predictions": roles.prediction,
            "ids": roles.id,
            "features": roles.features,
            "scores": roles.scores.get(DEFAULT_MODEL),
        }
        raise PoolError(_placed(str(cause), columns.where, origins)) from cause
    pool.group_name = pool.group_name if roles.group is None else roles.group
    pool.made_features = made
    if columns.rows is not None:
        pool.sampled_from = columns.size
    return pool


def _source(roles: Roles, table: Path, encoding: str | None) -> dict[str, Any]:
    """The roles of the columns of a file as plain values, by which `pool_from_source` reads them again."""
    stored = {name: stored_form(origin) for name, origin in roles.scores.items()}
    optional = {"group": roles.group, "weight": roles.weight, "encoding": encoding}
    return {
        "table": str(table),
        "folder": str(table.parent),
        "prediction": roles.prediction,
        "id": roles.id,
        "features": stored_form(roles.features),
        "scores": stored.get(DEFAULT_MODEL) if isinstance(roles.prediction, str | None) else stored,
        "slices": roles.slices,
        "show": roles.show,
    } | {role: name for role, name in optional.items() if name is not None}


def _sample_in_source(columns: Columns, seed: int) -> dict[str, int]:
    """What has the same sample taken again, or none of a table that is large today."""
    if columns.rows is not None:
        return {"sample": len(columns.rows), "sample_seed": seed}
    return {"sample": 0} if columns.size > LARGE else {}


def _made_of_parquet(table: Any, inputs: Any) -> bool:
    """Whether features are to be made of a column of a Parquet file here, which is then read into memory."""
    if not (isinstance(table, str | os.PathLike) and named_columns(inputs)) or is_address(os.fspath(table)):
        return False
    try:
        schema = pq.read_schema(local(table))
    except (OSError, pa.ArrowException):
        return False  # a folder, or a file that reading says more about
    kinds = [schema.field(name).type for name in named_columns(inputs) if name in schema.names]
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
        return Columns(table, names, [name for origin in origins for name in named_columns(origin)], encoding)
    for name in (*names, *(name for origin in origins for name in named_columns(origin))):
        if not isinstance(name, str):
            raise PoolError(f"column {name!r} was not understood; expected the name of a column")
    groups = {group: group for origin in origins for group in column_groups(origin)}
    narrow, matrices, sampled = fetched(source, names, groups, repeated, request)
    return Columns.read(narrow, source.where, matrices, sampled)


@dataclass(frozen=True)
class Moved:
    """Where the columns and the numbers of a table are now."""

    table: Path
    features: Any
    scores: dict[str, Any]


def _moved_to(store: Path, table: Any, roles: Roles, encoding: str | None) -> Moved:
    """The columns written to `store`, those of numbers to .npy files beside it; nothing there is replaced."""
    if store.suffix.lower() != ".parquet":
        raise FileError(f"store {store} does not end with .parquet; nothing was written")
    matrices = {store.with_suffix(".features.npy"): roles.features}
    for number, origin in enumerate(roles.scores.values()):
        ending = f".scores-{number}.npy" if len(roles.scores) > 1 else ".scores.npy"
        matrices[store.with_suffix(ending)] = origin
    groups = {
        named_columns(origin): path
        for path, origin in matrices.items()
        if column_groups(origin) == [named_columns(origin)]
    }
    if not roles.names:
        raise PoolError("a stored pool needs an id, a prediction, a slice or something to show; nothing was written")
    for path in (store, *groups.values()):
        writable(path, force=False)
    source = source_of(table)
    if source is None:
        held = Columns(table, roles.names, [name for group in groups for name in group], encoding)
        source = Source(held.where, held.table.column_names, lambda columns: iter([held.table.select(columns)]))
    keep(source, store, roles.names, groups)
    scores = {name: groups.get(named_columns(origin), origin) for name, origin in roles.scores.items()}
    return Moved(store, groups.get(named_columns(roles.features), roles.features), scores)


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
    columns.refuse_other_than_classes(name, classes)
    return names_of(columns.names(name), f"column {name!r}")


def scores_in(table: Any, scores: Numbers, encoding: str | None = None) -> Any:
    """(N, columns) scores in columns of a table or file, or in a .npy file."""
    origin = origin_of(scores)
    if not named_columns(origin):
        return array_alone(origin)
    return matrix_of(_columns(table, [], [origin], encoding=encoding), origin)


def _placed(sentence: str, where: str, roles: Mapping[str, Any]) -> str:
    """A sentence about predictions, ids, features or scores, with the column or file that they came from."""
    if sentence.startswith(where):
        return sentence
    origin = next((origin for role, origin in roles.items() if sentence.startswith(role)), None)
    if isinstance(origin, Path):
        return f"{where} with {origin}: {sentence}"
    return f"{where}, column {origin!r}: {sentence}" if isinstance(origin, str) else f"{where}: {sentence}"
