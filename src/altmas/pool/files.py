"""Reading files: columns of .csv, .tsv, .jsonl, .ndjson and .parquet as Arrow.

Logs of evaluation tools (evaluations.py) are tables too.

Nothing is ever unpickled. Every failure is a FileError that names the file and, where it is known, the line or row.
"""

import codecs
import csv
import io
import json
import os
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from altmas.errors import FileError
from altmas.pool.evaluations import ACCEPTED, LOGS, read_lines, read_log, tool_of_line
from altmas.suggest import listing, near

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
COMPRESSED = (".gz", ".bz2", ".zst")
PICKLED = (".pkl", ".pickle", ".joblib", ".pt", ".pth")

BLOCK = 16 * 2**20
"""Bytes of text parsed together; a line must fit into it."""

FIELD_LIMIT = 2**31 - 1
"""Characters in one cell; the csv module would stop at 131,072, and texts are longer."""

SMALL = 64
"""Bytes up to which a file is looked at to see whether it holds anything but blanks and a mark."""

DEEPEST = 100
"""Levels of lists and objects in a line of JSON; Arrow's reader ends the process when there are too many."""

OTHER_ENCODING = "of a file written by Windows say encoding='cp1252' (--encoding cp1252), or save it as UTF-8"

EXACT = 2**53
"""Integers up to here are exact as floats."""

WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
WHOLE_FLOAT = r"^-?[0-9]{1,15}\.0+$"

PEEKED = 1000
"""Rows by which columns of numbers are told from columns of texts."""


def read_columns(
    path: str | os.PathLike[str], names: Sequence[str], numbers: Sequence[str] = (), encoding: str | None = None
) -> pa.Table:
    """The named columns of a file: `names` hold classes, ids, slices and items, `numbers` hold features and scores.

    encoding  of a .csv or .tsv file that is not UTF-8
    Raises FileError on a file that is missing, empty, damaged or of another kind, and on a column that is not there.
    """
    path = existing(path)
    kind = _kind(path)
    try:
        if kind == ".parquet":
            table = _parquet(path, [*names, *numbers])
        elif kind in LOGS:
            table = _of_log(read_log(path), names, numbers, path)
        elif kind in (".jsonl", ".ndjson"):
            table = _jsonl(path, names, numbers)
        else:
            table = _csv(path, Written.of(path, encoding), names, numbers)
    except FileError:
        raise
    except UnicodeDecodeError as cause:
        marked = encoding is None and "16" in cause.encoding
        how = f"is not written in {encoding or cause.encoding}" if encoding or marked else "is not UTF-8 text"
        raise FileError(f"{path} {how}: {cause}; {OTHER_ENCODING}") from cause
    except Exception as cause:  # the bytes of a damaged file can fail in any way inside a library
        raise FileError(f"{path} cannot be read as {kind}: {sentence(cause)}") from cause
    if table.num_rows == 0:
        raise FileError(f"{path} has columns but no rows; nothing can be tested")
    refuse_invalid(table, str(path))
    return table


def read_evaluation(path: str | os.PathLike[str]) -> pa.Table:
    """Every column of a log of an evaluation tool: id, input, output, judges, metadata. FileError if it is none."""
    path = existing(path)
    try:
        if _kind(path) in LOGS:
            return read_log(path)
        if _kind(path) in (".jsonl", ".ndjson") and tool_of_line(_first_row(path)) is not None:
            return read_lines(path, _json_rows(path))
    except FileError:
        raise
    except Exception as cause:  # the bytes of a damaged file can fail in any way
        raise FileError(f"{path} cannot be read as a log of an evaluation tool: {sentence(cause)}") from cause
    raise FileError(f"{path} is no log of an evaluation tool that is known: expected {ACCEPTED}")


def text_columns(path: str | os.PathLike[str], names: Sequence[str], encoding: str | None = None) -> list[str]:
    """Those of the columns of a CSV file that hold texts: most of their first values are no numbers."""
    path = existing(path)
    kind = _kind(path) if names else ""
    if kind not in (".csv", ".tsv"):
        return []
    try:
        style = Written.of(path, encoding)
        with style.lines(path) as lines:
            rows = list(islice(csv.DictReader(lines, delimiter=style.separator), PEEKED))
    except (UnicodeDecodeError, csv.Error, OSError, pa.ArrowException):
        return []  # reading it says what is wrong
    comma = "." if style.separator == "," else ","  # of decimals
    values = {name: [row.get(name) for row in rows] for name in names}
    return [name for name in names if mostly_texts(value and value.replace(comma, ".") for value in values[name])]


def mostly_texts(values: Iterable[object]) -> bool:
    """Whether more than half of these, those that are missing apart, cannot be read as numbers."""
    known = [str(value) for value in values if value is not None and str(value).strip()]
    return 2 * sum(not _is_number(value) for value in known) > len(known)


def refuse_invalid(table: pa.Table, where: str) -> None:
    """FileError naming the first column whose bytes are not what its type says, such as texts that are not UTF-8."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowException as cause:
            fault = "texts that are not UTF-8" if "UTF8" in str(cause) else f"damaged values ({sentence(cause)})"
            raise FileError(f"{where}, column {name!r} holds {fault}; write the file anew as UTF-8") from cause


def existing(path: str | os.PathLike[str]) -> Path:
    """The absolute path of something that is there; FileError with the near name in its folder if it is not."""
    absolute = Path(path).expanduser().absolute()
    if not absolute.exists():
        beside = [sibling.name for sibling in absolute.parent.iterdir()] if absolute.parent.is_dir() else []
        raise FileError(f"{absolute} does not exist{near(absolute.name, beside)}")
    if (
        absolute.is_file()
        and absolute.stat().st_size <= SMALL
        and not _content(absolute).removeprefix(BOM_UTF8).strip()
    ):
        raise FileError(f"{absolute} is empty")
    return absolute


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as cause:
        raise FileError(f"{path} cannot be read: {cause.strerror}") from cause


def refuse_unknown(names: Sequence[str], columns: Sequence[str], where: str) -> None:
    """FileError naming the first column that is not there, with the near one."""
    for name in names:
        if name not in columns:
            raise FileError(f"{where} has no column {name!r}{near(name, columns)} (columns: {listing(columns)})")
        if list(columns).count(name) > 1:
            raise FileError(f"{where} has {list(columns).count(name)} columns called {name!r}; rename all but one")


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-1] if suffixes else ""
    if kind in COMPRESSED and len(suffixes) > 1 and suffixes[-2] != ".parquet":
        kind = suffixes[-2]
    if kind in PICKLED:
        raise FileError(f"{path} is a pickled file, which can run code when it is read; expected {_accepted()}")
    if kind not in (*TABLES, *LOGS):
        logs = f"or a log of an evaluation tool ({', '.join(LOGS)})"
        raise FileError(f"{path} is of no kind that can be read; expected {_accepted()}, {logs}")
    if path.is_dir() and kind != ".parquet":
        raise FileError(f"{path} is a folder; expected a file: {_accepted()}")
    return kind


def _accepted() -> str:
    return ", ".join(TABLES[:-1]) + f" or {TABLES[-1]}"


def sentence(cause: Exception) -> str:
    """What another library says, on one line and not too long."""
    return " ".join(str(cause).split())[:200]


# ---------------------------------------------------------------- Parquet


def _parquet(path: Path, columns: Sequence[str]) -> pa.Table:
    import pyarrow.dataset  # takes a while to load, and only Parquet needs it

    scan = pyarrow.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)  # where the file has them
    files = pyarrow.dataset.dataset(path, format=pyarrow.dataset.ParquetFileFormat(default_fragment_scan_options=scan))
    refuse_unknown(columns, files.schema.names, str(path))
    return files.to_table(columns=list(dict.fromkeys(columns)))


# ---------------------------------------------------------------- CSV


SEPARATOR_LINE = re.compile(r'"?sep=([,;|\t])"?')
"""A first line that tells spreadsheets what separates columns; it is no row."""

THOUSANDS = r"^[-+]?[1-9]\d{0,2}(,\d{3})+$"
"""A number whose commas may part its thousands."""


@dataclass(frozen=True)
class Written:
    """How a file of separated values is written; `skipped`: whether its first line only names the separator."""

    separator: str = ","
    encoding: str = "utf-8-sig"
    skipped: bool = False

    @classmethod
    def of(cls, path: Path, encoding: str | None = None) -> "Written":
        """By the name of the file, its mark and its first line; FileError on an encoding that Python does not know.

        Spreadsheets write "Unicode text" as UTF-16 with a mark, and semicolons or tabs in some countries: where the
        first line has one of these and no comma.
        """
        try:
            codec = _marked(path) if encoding is None else codecs.lookup(encoding).name
        except LookupError:
            raise FileError(
                f"encoding {encoding!r} is not known; expected one such as cp1252, latin-1, utf-16"
            ) from None
        if _kind(path) == ".tsv":
            return cls("\t", codec)
        with cls(encoding=codec).lines(path) as lines:
            first = lines.readline()
        if said := SEPARATOR_LINE.fullmatch(first.rstrip("\r\n")):
            return cls(said[1], codec, skipped=True)
        unquoted = re.sub(r'"[^"]*"', "", first)
        used = [separator for separator in ",;\t" if separator in unquoted]
        return cls(used[0] if len(used) == 1 else ",", codec)

    def lines(self, path: Path) -> io.TextIOWrapper:
        """The text of the file, decompressed by its ending."""
        stream = io.BufferedReader(pa.input_stream(str(path)))
        lines = io.TextIOWrapper(stream, encoding=self.encoding, newline="")
        if self.skipped:
            lines.readline()
        return lines

    @property
    def words(self) -> str:
        """What is unusual about it, for people; empty if nothing is."""
        return {";": "its columns are separated by semicolons", "\t": "its columns are separated by tabs"}.get(
            self.separator, ""
        )


def _marked(path: Path) -> str:
    """The encoding that the first bytes of a file, decompressed by its ending, are the mark of; else UTF-8."""
    with pa.input_stream(str(path)) as stream:
        return "utf-16" if stream.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE) else Written().encoding


def how_written(path: str | os.PathLike[str], encoding: str | None = None) -> str:
    """What is unusual about a .csv file, in words; empty for one with commas and for files of other kinds."""
    file = Path(path)
    return Written.of(existing(file), encoding).words if ".csv" in map(str.lower, file.suffixes) else ""


def _csv(path: Path, style: Written, names: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    """Names are read as text and only then understood, so that "007" stays what it is."""
    columns = _csv_header(path, style)
    refuse_unknown([*names, *numbers], columns, str(path))
    types = dict.fromkeys(numbers, pa.float64()) | dict.fromkeys(names, pa.string())
    try:
        table = _csv_numbers(path, style, types)
    except pa.ArrowInvalid as cause:
        raise FileError(_csv_fault(path, style, types, cause)) from cause
    _refuse_bad_quotes(path, style, table.num_rows)
    for name in names:
        table = table.set_column(table.column_names.index(name), name, understood(table.column(name)))
    return table


def _csv_numbers(path: Path, style: Written, types: dict[str, pa.DataType]) -> pa.Table:
    """The columns; where semicolons or tabs separate them, numbers may have a comma for the decimal point."""
    try:
        return _csv_rows(path, style, types)
    except pa.ArrowInvalid:
        if style.separator == "," or not _decimal_commas(path, style, types):
            raise
    return _csv_rows(path, style, types, decimal=",")


def _decimal_commas(path: Path, style: Written, types: dict[str, pa.DataType]) -> bool:
    """Whether commas in columns of numbers are decimal points: between tabs not if those of a column may be thousands.

    Semicolons are written where the comma is the decimal point; tabs are written everywhere.
    """
    numbers = [name for name, kind in types.items() if kind == pa.float64()]
    if style.separator == ";" or not numbers:
        return bool(numbers)
    texts = _csv_rows(path, style, dict.fromkeys(numbers, pa.string()))
    for column in texts.columns:
        commas = column.filter(pc.match_substring(column, ","))
        if len(commas) and _all_match(commas, THOUSANDS):
            return False
    return True


def _refuse_bad_quotes(path: Path, style: Written, rows: int) -> None:
    """FileError where a quotation mark is missing: Arrow would take the rows up to the next one for one cell."""
    with pa.input_stream(str(path)) as stream:
        if not any(b'"' in block for block in iter(lambda: stream.read(BLOCK), b"")):
            return
    limit = csv.field_size_limit(FIELD_LIMIT)
    try:
        with style.lines(path) as lines:
            reader = csv.reader(lines, delimiter=style.separator, strict=True)
            try:
                strict_rows = sum(1 for cells in reader if cells) - 1
            except csv.Error as cause:
                line = reader.line_num + style.skipped
                raise FileError(
                    f"{path} is no proper CSV near line {line}: {cause}; is a quotation mark missing there?"
                ) from cause
    finally:
        csv.field_size_limit(limit)
    if strict_rows != rows:
        raise FileError(
            f"{path} has {rows:,} or {strict_rows:,} rows, depending on how its quotation marks are read; mend them"
        )


def _csv_header(path: Path, style: Written) -> list[str]:
    """The names in the first line; UnicodeDecodeError if that is no text."""
    with style.lines(path) as lines:
        return next(csv.reader(lines, delimiter=style.separator), [])


def _csv_rows(
    path: Path, style: Written, types: dict[str, pa.DataType], threads: bool = True, decimal: str = "."
) -> pa.Table:
    encoding = "utf8" if style.encoding == Written().encoding else style.encoding
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(
            block_size=BLOCK, use_threads=threads, encoding=encoding, skip_rows=int(style.skipped)
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter=style.separator, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types, include_columns=list(types), decimal_point=decimal
        ),
    )


def _csv_fault(path: Path, style: Written, types: dict[str, pa.DataType], cause: pa.ArrowInvalid) -> str:
    """Where a CSV file is broken: read again row by row, which is slow but knows the line."""
    try:
        texts = _csv_rows(path, style, dict.fromkeys(types, pa.string()), threads=False)
    except pa.ArrowInvalid as precise:
        other = f"; {OTHER_ENCODING}" if "UTF8" in str(precise) else ""
        return f"{path} cannot be read as .csv: {sentence(precise)}{other}"
    for name, kind in types.items():
        values = texts.column(name).to_pylist() if kind == pa.float64() else []
        for row, value in enumerate(values):
            if not _is_number(value):
                expected = "features and scores are columns of numbers"
                points = ", written with a decimal point and without commas" if "," in value else ""
                return f"{path}, column {name!r}, row {row}: {value!r} is not a number; {expected}{points}"
    return f"{path} cannot be read as .csv: {sentence(cause)}"


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return text in pyarrow.csv.ConvertOptions().null_values
    return True


def understood(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of texts as integers or booleans if every value is written as one, else as it is; "" is missing."""
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    if texts.null_count == len(texts):
        return texts
    if _all_match(texts, WHOLE):
        return texts.cast(pa.int64())
    if _all_match(texts, WHOLE_FLOAT):
        return texts.cast(pa.float64()).cast(pa.int64())
    if _all_match(texts, "^([Tt]rue|[Ff]alse|TRUE|FALSE)$"):
        return pc.equal(pc.utf8_lower(texts), "true")
    return texts


def _all_match(texts: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


# ---------------------------------------------------------------- JSON lines


def _of_log(table: pa.Table, names: Sequence[str], numbers: Sequence[str], path: Path) -> pa.Table:
    """The named columns of the table that a log of an evaluation tool was made into."""
    refuse_unknown([*names, *numbers], table.column_names, str(path))
    return table.select(list(dict.fromkeys([*names, *numbers])))


def _first_row(path: Path) -> Any:
    """The first line of a JSON lines file, or None if it is no JSON."""
    with io.BufferedReader(pa.input_stream(str(path))) as stream:
        line = next((line for line in stream if line.strip()), b"")
    try:
        return json.loads(line.removeprefix(BOM_UTF8))
    except (ValueError, RecursionError):
        return None


def _json_rows(path: Path) -> Iterator[Any]:
    """Every line of a JSON lines file; FileError naming the first that is no JSON."""
    with io.BufferedReader(pa.input_stream(str(path))) as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                try:
                    yield json.loads(line.removeprefix(BOM_UTF8))
                except (ValueError, RecursionError) as cause:
                    raise FileError(f"{path}, line {number} is not JSON: {sentence(cause)}") from cause


def _jsonl(path: Path, names: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    _refuse_deep(path)
    first = _first_row(path)
    if tool_of_line(first) is not None and not {*names, *numbers} <= first.keys():
        return _of_log(read_lines(path, _json_rows(path)), names, numbers, path)
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
