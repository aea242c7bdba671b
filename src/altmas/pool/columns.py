"""The columns of a table that are needed, as Arrow, whatever the table is; and numbers and names out of them."""

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import NarwhalsError
from numpy.typing import NDArray

from altmas.errors import PoolError
from altmas.items.lazy import LazyItems
from altmas.pool.csv_files import PEEKED, mostly_texts
from altmas.pool.files import read_columns
from altmas.pool.first_phase import Wanted, sampled_rows
from altmas.pool.naming import Name
from altmas.pool.readable import refuse_invalid, refuse_unknown, sentence

Floats = NDArray[np.float32]

FRACTION = re.compile(r"[-+]?[0-9]*[.,]?[0-9]+([eE][-+]?[0-9]+)?\Z")
POINT = re.compile("[.,]")

MOST_FRACTIONS = 20
"""Different numbers with a fraction up to which a column of a text file may be ratings; beyond, it holds no classes."""

FEWEST_TO_JUDGE, MOST_DISTINCT = 50, 0.8
"""Rows from which a column of texts is taken to hold no classes if more than this part of its values differ."""


class Columns:
    """Some columns of a pandas, polars or pyarrow frame, a Hugging Face dataset or a file.

    table     (N rows) the columns, in Arrow's memory
    where     how the table is called in messages
    classes   {column: names} of the columns that hold Hugging Face ClassLabel codes
    matrices  {columns: (N, columns) numbers} that were read elsewhere already
    first     the number of the first row, for messages about a part of a table
    rows      (N,) the rows of the whole table that these are, if they are a random sample of it; size  how many it has
    """

    matrices: Mapping[tuple[str, ...], Floats] = {}
    first = 0
    rows: NDArray[np.int64] | None = None
    size = 0

    def __init__(
        self, table: Any, names: Sequence[str], numbers: Sequence[str] = (), encoding: str | None = None
    ) -> None:
        self.where = os.fspath(table) if isinstance(table, str | os.PathLike) else "the table"
        for name in (*names, *numbers):
            if not isinstance(name, str):
                raise PoolError(f"column {name!r} was not understood; expected the name of a column")
        if isinstance(table, str | os.PathLike):
            self.table = read_columns(table, list(dict.fromkeys(names)), list(dict.fromkeys(numbers)), encoding)
        else:
            self.table = _in_memory(table, list(dict.fromkeys([*names, *numbers])))
            refuse_invalid(self.table, self.where)
        used = [*names, *numbers]
        self.classes = _stored_class_names(self.table.schema, used, self.where) | _class_names(table, used, self.where)
        if self.table.num_rows == 0:
            raise PoolError(f"{self.where} has no rows; nothing can be tested")
        self.size = self.table.num_rows

    @classmethod
    def part(cls, table: pa.Table, where: str, first: int = 0) -> "Columns":
        """The columns of a table that is a part of another one, which begins with this row of it."""
        made = cls.__new__(cls)
        made.table, made.where, made.first, made.classes = table, where, first, {}
        return made

    @classmethod
    def read(
        cls,
        table: pa.Table,
        where: str,
        matrices: Mapping[tuple[str, ...], Floats],
        sampled: tuple[int, NDArray[np.int64] | None],
    ) -> "Columns":
        """The columns of a table whose names are in memory and whose numbers are in files; sampled: size and rows."""
        made = cls.part(table, where)
        made.matrices, (made.size, made.rows) = matrices, sampled
        made.classes = _stored_class_names(table.schema, table.column_names, where)
        return made

    def sampled(self, request: Wanted | None) -> "Columns":
        """The columns of a random sample of the rows; itself if none is asked for, or it was taken already."""
        if request is None or self.rows is not None or not request.smaller_than(self.size, self.where):
            return self
        rows = sampled_rows(self.size, request.n, request.seed)
        sample = copy(self)
        sample.table, sample.rows = self.table.take(rows), rows
        sample.matrices = {names: np.asarray(matrix[rows]) for names, matrix in self.matrices.items()}
        return sample

    def weights(self, name: str) -> NDArray[np.float64]:
        """(N,) numbers in a column, in full precision; PoolError on a text or a missing value."""
        column = _storage(self.table.column(name))
        if pa.types.is_string(column.type):
            with suppress(pa.ArrowInvalid):
                column = column.cast(pa.float64())
        if not _is_number(column.type) or column.null_count:
            what = f"holds {column.type}" if not _is_number(column.type) else "has rows without a value"
            raise PoolError(f"{self._at(name)} {what}; expected how many rows each row stands for, a positive number")
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)

    def names(self, name: str) -> NDArray[Any]:
        """(N,) classes or ids in a column; PoolError on the first row without one."""
        column = self._plain(name)
        if column.null_count:
            row = self.first + column.is_null().to_numpy(zero_copy_only=False).argmax()
            count = "" if column.null_count == 1 else f" (so it is in {column.null_count:,} rows)"
            missing = f"the value is missing{count}; every point needs one: leave such rows out"
            raise PoolError(f"{self._at(name)}, row {row}: {missing}")
        kind = column.type
        if not (_is_text(kind) or _is_number(kind)):
            raise PoolError(f"{self._at(name)} holds {kind}; expected integers, texts or booleans")
        return self._values(name, column)

    def refuse_other_than_classes(self, name: str, classes: Iterable[Name] | None) -> None:
        """PoolError on a column of fractions, which a text file cannot tell from names, or of texts or ids.

        classes  the class list, if it is known: then texts are told by not being in it
        """
        values = self.names(name)
        distinct = set(values.tolist()) if values.dtype.kind == "O" else set()
        if len(distinct) > min(MOST_FRACTIONS, len(values) / 2) and _are_fractions(distinct):
            example = next((value for value in values.tolist() if POINT.search(value)), values[0])
            raise PoolError(
                f"{self._at(name)} holds {len(distinct):,} different numbers such as {example}; expected "
                "classes; is this a column of scores? The probabilities of a model are scores (--scores), other "
                "numbers features (--features)"
            )
        if classes is None and len(values) >= FEWEST_TO_JUDGE and len(distinct) > MOST_DISTINCT * len(values):
            example = str(next(value for value in values.tolist() if value))[:40]
            raise PoolError(
                f"{self._at(name)} holds {len(distinct):,} different values in {len(values):,} rows, such as "
                f"{example!r}; expected classes, of which there are fewer; is this a column of texts or ids? Texts "
                "are features (--features) or shown (--show); if they are classes all the same, list them (--class, "
                "repeated)"
            )

    def _values(self, name: str, column: pa.ChunkedArray) -> NDArray[Any]:
        """The values; texts that are stored as codes share one object for each different one."""
        coded = self.table.column(name)
        if not (pa.types.is_dictionary(coded.type) and _is_text(coded.type.value_type)):
            plain: NDArray[Any] = column.to_numpy(zero_copy_only=False)
            return plain
        values = np.empty(len(coded), object)
        for start, chunk in _chunks(coded):
            known = np.array([*chunk.dictionary.to_pylist(), None], object)
            values[start : start + len(chunk)] = known[chunk.indices.fill_null(len(known) - 1).to_numpy()]
        return values

    def labels(self, name: str) -> NDArray[Any]:
        """(N,) values of a slice column; None or nan where missing."""
        return self._values(name, self._plain(name))

    def items(self, names: str | Sequence[str]) -> LazyItems:
        """What a labeller sees: the values of one column, or the rows of several as dicts."""
        return LazyItems(self.table.column(names) if isinstance(names, str) else self.table.select(list(names)))

    def holds_texts(self, name: str) -> bool:
        """Whether a column holds texts, images or categories, from which features can be made, and no numbers."""
        column = _storage(self.table.column(name))
        if _is_number(column.type) or _is_list(column.type):
            return False
        return not pa.types.is_string(column.type) or mostly_texts(column[:PEEKED].to_pylist())

    def values(self, name: str) -> list[Any]:
        """The values of a column."""
        listed: list[Any] = self.table.column(name).to_pylist()
        return listed

    def matrix(self, names: Sequence[str]) -> Floats:
        """(N, columns) numbers in columns, or (N, length) in one column of equally long lists."""
        if tuple(names) in self.matrices:
            return self.matrices[tuple(names)]
        if len(names) == 1 and _is_list(_storage(self.table.column(names[0])).type):
            return self._stacked(names[0])
        matrix = np.empty((self.table.num_rows, len(names)), np.float32)
        for column, name in enumerate(names):
            matrix[:, column] = self._numbers(self.table.column(name), name)
        return matrix

    def _plain(self, name: str) -> pa.ChunkedArray:
        """A column of names without dictionaries, codes, bytes or dates."""
        column = self.table.column(name)
        kind = column.type
        try:
            if pa.types.is_dictionary(kind):
                return column.cast(kind.value_type)
            if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_temporal(kind):
                return column.cast(pa.large_string())
        except pa.ArrowException as cause:
            raise PoolError(f"{self._at(name)} holds {kind} that is no text: {sentence(cause)}") from cause
        return self._named(column, name) if name in self.classes and pa.types.is_integer(kind) else column

    def _named(self, codes: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        """The names of ClassLabel codes; -1 is how Hugging Face writes that there is none."""
        known = self.classes[name]
        codes = pc.if_else(pc.equal(codes, -1), None, codes)
        wrong = pc.or_(pc.less(codes, 0), pc.greater_equal(codes, len(known))).fill_null(False)
        if pc.any(wrong).as_py():
            row = wrong.to_numpy(zero_copy_only=False).argmax()
            raise PoolError(f"{self._at(name)}, row {row}: {codes[row]} is no code of its {len(known)} class names")
        return pa.chunked_array([pa.array(known)]).take(codes)

    def _stacked(self, name: str) -> Floats:
        column = _storage(self.table.column(name))
        lengths = pc.list_value_length(column)
        extremes = pc.min_max(lengths)
        if column.null_count or extremes["min"] != extremes["max"]:
            expected = lengths.drop_null()[0].as_py()
            row = pc.not_equal(lengths, expected).fill_null(True).to_numpy(zero_copy_only=False).argmax()
            held = "nothing" if lengths[row].as_py() is None else f"{lengths[row]} numbers"
            row_number = self.first + int(row)
            raise PoolError(f"{self._at(name)}, row {row_number} holds {held}, the rows before it {expected} numbers")
        width = extremes["max"].as_py()
        pieces = self._numbers(pa.chunked_array([chunk.flatten() for chunk in column.chunks]), name, width)
        return pieces.reshape(len(column), width)

    def _numbers(self, column: pa.ChunkedArray, name: str, width: int = 1) -> Floats:
        """The values as float32; PoolError on a text, and on the first row that is missing or not finite."""
        if pa.types.is_string(column.type):  # a CSV column that is shown, or a slice, and a feature as well
            with suppress(pa.ArrowInvalid):
                column = column.cast(pa.float64())
        if not _is_number(column.type):
            raise PoolError(f"{self._at(name)} holds {column.type}; expected numbers")
        values = np.empty(len(column), np.float32)
        with np.errstate(over="ignore"):
            for start, chunk in _chunks(column):
                exact = chunk.cast(pa.float64()) if pa.types.is_decimal(chunk.type) else chunk
                values[start : start + len(chunk)] = exact.to_numpy(zero_copy_only=False)
        if not np.isfinite(values).all():
            index = int(np.isfinite(values).argmin())
            fault = "missing" if column[index].as_py() is None else f"{column[index]}, which is not a finite float32"
            raise PoolError(f"{self._at(name)}, row {self.first + index // width}: the value is {fault}")
        return values

    def _at(self, name: str) -> str:
        return f"{self.where}, column {name!r}"


def _are_fractions(values: Collection[Any]) -> bool:
    """Whether all are texts that spell numbers, one at least with a decimal point: 007 is a code, maybe a class."""
    texts = [value for value in values if isinstance(value, str) and FRACTION.match(value)]
    return len(texts) == len(values) and any(map(POINT.search, texts))


def _chunks(column: pa.ChunkedArray) -> Iterator[tuple[int, pa.Array]]:
    start = 0
    for chunk in column.chunks:
        yield start, chunk
        start += len(chunk)


def _is_number(kind: pa.DataType) -> bool:
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(numeric or pa.types.is_boolean(kind) or pa.types.is_null(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _storage(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """What an extension type (a tensor, for instance) is made of."""
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)


# ---------------------------------------------------------------- tables in memory


def _in_memory(table: Any, names: list[str]) -> pa.Table:
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        refuse_unknown(names, table.column_names, "the table")
        return table.select(names)
    if isinstance(getattr(table, "features", None), Mapping) and hasattr(table, "with_format"):
        return _of_dataset(table, names)
    return _of_frame(table, names)


def _of_dataset(dataset: Any, names: list[str]) -> pa.Table:
    if not hasattr(dataset, "__len__"):
        raise PoolError("a streamed dataset cannot be a pool; load it without streaming=True")
    refuse_unknown(names, list(dataset.features), "the dataset")
    return dataset.select_columns(names).with_format("arrow")[:]


def _of_frame(table: Any, names: list[str]) -> pa.Table:
    try:
        frame = nw.from_native(table, pass_through=True)
        if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
            raise PoolError(_no_table(table))
        refuse_unknown(names, frame.collect_schema().names(), "the table")
        chosen = frame.select(names)
        read = chosen.collect(backend="pyarrow") if isinstance(chosen, nw.LazyFrame) else chosen
    except NarwhalsError as cause:
        raise PoolError(f"the table cannot be read: {sentence(cause)}") from cause
    return pa.table({name: _of_series(read.get_column(name), name) for name in names})


def _of_series(series: Any, name: str) -> Any:
    try:
        return series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError) as cause:
        values = series.to_list()
        if all(value is None or isinstance(value, str | int | float) for value in values):  # 1 and "one" together
            return pa.array([None if value is None or value != value else str(value) for value in values])
        raise PoolError(f"the table, column {name!r} holds a mixture of types: {sentence(cause)}") from cause


def _no_table(table: Any) -> str:
    expected = "expected a pandas, polars or pyarrow frame, a Hugging Face dataset or the path of a file"
    if isinstance(table, Mapping):
        return f"a dictionary is no table (its keys are {', '.join(map(repr, table))}; pick one split?); {expected}"
    return f"{type(table).__name__} is no table; {expected}"


def _class_names(table: Any, used: Sequence[str], where: str) -> dict[str, list[str]]:
    """{column: names} of a Hugging Face dataset's ClassLabel features."""
    features = getattr(table, "features", None)
    if not isinstance(features, Mapping):
        return {}
    named = {
        name: feature.names for name, feature in features.items() if name in used and getattr(feature, "names", None)
    }
    return {name: _true_names(names, f"{where}, column {name!r}") for name, names in named.items()}


def _stored_class_names(schema: pa.Schema, used: Sequence[str], where: str) -> dict[str, list[str]]:
    """The same from the note that Hugging Face leaves in Arrow tables and Parquet files; {} where it makes no sense."""
    try:
        note = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = note["info"]["features"]
        labels = {name: features[name] for name in used if features.get(name, {}).get("_type") == "ClassLabel"}
        named = {name: feature["names"] for name, feature in labels.items() if feature.get("names") is not None}
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return {}
    return {name: _true_names(names, f"{where}, column {name!r}") for name, names in named.items()}


def _true_names(names: Any, where: str) -> list[str]:
    """The names of a ClassLabel; PoolError if they are no list of different texts."""
    listed = list(names) if isinstance(names, list | tuple) else []
    if not listed or not all(isinstance(name, str) and name for name in listed) or len(set(listed)) != len(listed):
        raise PoolError(
            f"{where}: its Hugging Face metadata call it a ClassLabel with the names {str(names)[:80]}; expected a "
            "list of different texts; mend or remove the metadata"
        )
    return listed
