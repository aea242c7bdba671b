"""Reading JSON lines: columns of .jsonl and .ndjson files, and the lines of evaluation tools' logs."""

import io
import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from altmas.errors import FileError
from altmas.pool.evaluations import read_lines, tool_of_line
from altmas.pool.readable import BLOCK, refuse_unknown, sentence

DEEPEST = 100
"""Levels of lists and objects in a line of JSON; Arrow's reader ends the process when there are too many."""

EXACT = 2**53
"""Integers up to here are exact as floats."""


def columns_of_log(table: pa.Table, names: Sequence[str], numbers: Sequence[str], path: Path) -> pa.Table:
    """The named columns of the table that a log of an evaluation tool was made into."""
    refuse_unknown([*names, *numbers], table.column_names, str(path))
    return table.select(list(dict.fromkeys([*names, *numbers])))


def first_row(path: Path) -> Any:
    """The first line of a JSON lines file, or None if it is no JSON."""
    with io.BufferedReader(pa.input_stream(str(path))) as stream:
        line = next((line for line in stream if line.strip()), b"")
    try:
        return json.loads(line.removeprefix(BOM_UTF8))
    except (ValueError, RecursionError):
        return None


def json_rows(path: Path) -> Iterator[Any]:
    """Every line of a JSON lines file; FileError naming the first that is no JSON."""
    with io.BufferedReader(pa.input_stream(str(path))) as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                try:
                    yield json.loads(line.removeprefix(BOM_UTF8))
                except (ValueError, RecursionError) as cause:
                    raise FileError(f"{path}, line {number} is not JSON: {sentence(cause)}") from cause


def read_json_lines(path: Path, names: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    """The named columns of a file of JSON lines, or of the log of an evaluation tool."""
    _refuse_deep(path)
    first = first_row(path)
    if tool_of_line(first) is not None and not {*names, *numbers} <= first.keys():
        return columns_of_log(read_lines(path, json_rows(path)), names, numbers, path)
    read = pyarrow.json.ReadOptions(block_size=BLOCK)
    try:
        table = pyarrow.json.read_json(path, read_options=read)
        refuse_unknown([*names, *numbers], table.column_names, str(path))
        dates = [name for name in names if pa.types.is_timestamp(table.schema.field(name).type)]
        if dates:  # a text that looks like a date stays a text
            texts = pyarrow.json.ParseOptions(explicit_schema=pa.schema([(name, pa.string()) for name in dates]))
            table = pyarrow.json.read_json(path, read_options=read, parse_options=texts)
    except pa.ArrowInvalid as cause:
        raise FileError(_jsonl_fault(path, [*names, *numbers], cause)) from cause
    table = table.select(list(dict.fromkeys([*names, *numbers])))
    for name in names:
        column = table.column(name)
        if pa.types.is_floating(column.type) and _rounded(column):
            table = table.set_column(table.column_names.index(name), name, _exactly(path, name, column))
    return table


def _refuse_deep(path: Path) -> None:
    """FileError naming the first line with more levels than any table has."""
    with io.BufferedReader(pa.input_stream(str(path))) as stream:
        for number, line in enumerate(stream, 1):
            if line.count(b"[") + line.count(b"{") > DEEPEST and _depth(line) > DEEPEST:
                raise FileError(
                    f"{path}, line {number} is nested more than {DEEPEST} levels deep; expected flat objects"
                )


def _depth(line: bytes) -> int:
    """How many lists and objects are open at once, brackets in texts aside."""
    brackets = np.frombuffer(re.sub(rb'"(?:[^"\\]|\\.)*"', b"", line), np.uint8)
    steps = np.isin(brackets, list(b"[{")).astype(np.int64) - np.isin(brackets, list(b"]}"))
    return int(steps.cumsum().max(initial=0))


def _rounded(column: pa.ChunkedArray) -> bool:
    """Whether a column of floats may hold integers that were too long for one."""
    return bool(pc.any(pc.greater_equal(pc.abs(column), float(EXACT))).as_py())


def _exactly(path: Path, name: str, column: pa.ChunkedArray) -> pa.Array:
    """A column of integers as texts with all of their digits; as it is where it holds fractions too."""
    with io.BufferedReader(pa.input_stream(str(path))) as stream:
        decoded = stream.read().decode("utf-8-sig")
    values: list[Any] = []
    decoder, at = json.JSONDecoder(), 0
    while at < len(decoded):  # several objects may share a line
        if decoded[at].isspace():
            at += 1
            continue
        row, at = decoder.raw_decode(decoded, at)
        values.append(row.get(name))
    if not all(value is None or isinstance(value, int) or value.is_integer() for value in values):
        return column
    return pa.array([None if value is None else str(int(value)) for value in values], pa.string())


def _jsonl_fault(path: Path, columns: Sequence[str], cause: pa.ArrowInvalid) -> str:
    """Where a JSON lines file is broken: the first line that is no object or changes a column's kind."""
    kinds: dict[str, tuple[str, int]] = {}
    with io.BufferedReader(pa.input_stream(str(path))) as stream:  # decompresses by the file's ending
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.removeprefix(BOM_UTF8) if number == 1 else line)
            except UnicodeDecodeError as fault:
                return f"{path}, line {number} is not UTF-8 text (byte {fault.start} of the line)"
            except (ValueError, RecursionError) as fault:
                return f"{path}, line {number} is not JSON: {sentence(fault)}"
            if not isinstance(row, dict):
                return f"{path}, line {number} is a {type(row).__name__}; expected one object on each line"
            for name in columns:
                kind = _json_kind(row.get(name))
                first, where = kinds.setdefault(name, (kind, number)) if kind else ("", 0)
                if first != kind:
                    given = json.dumps(row.get(name), ensure_ascii=False)[:40]
                    return (
                        f"{path}, column {name!r}: line {number} holds a {kind} ({given}), line {where} a {first}; "
                        "expected the same kind on every line (null where nothing is known)"
                    )
    return f"{path} cannot be read as .jsonl: {sentence(cause)}"


def _json_kind(value: Any) -> str:
    kinds = {str: "text", bool: "boolean", int: "number", float: "number", list: "list", dict: "object"}
    return kinds.get(type(value), "")
