"""Reading .csv and .tsv files: how they are written, and columns of names and numbers out of them."""

import codecs
import csv
import io
import os
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from altmas.errors import FileError
from altmas.pool.readable import BLOCK, existing, kind_of, refuse_unknown, sentence

FIELD_LIMIT = 2**31 - 1
"""Characters in one cell; the csv module would stop at 131,072, and texts are longer."""

WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
WHOLE_FLOAT = r"^-?[0-9]{1,15}\.0+$"

PEEKED = 1000
"""Rows by which columns of numbers are told from columns of texts."""

OTHER_ENCODING = "of a file written by Windows say encoding='cp1252' (--encoding cp1252), or save it as UTF-8"

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
        if kind_of(path) == ".tsv":
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


def read_csv(path: Path, style: Written, names: Sequence[str], numbers: Sequence[str]) -> pa.Table:
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
            if not is_number(value):
                expected = "features and scores are columns of numbers"
                points = ", written with a decimal point and without commas" if "," in value else ""
                return f"{path}, column {name!r}, row {row}: {value!r} is not a number; {expected}{points}"
    return f"{path} cannot be read as .csv: {sentence(cause)}"


def is_number(text: str) -> bool:
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


def text_columns(path: str | os.PathLike[str], names: Sequence[str], encoding: str | None = None) -> list[str]:
    """Those of the columns of a CSV file that hold texts: most of their first values are no numbers."""
    path = existing(path)
    kind = kind_of(path) if names else ""
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
    return 2 * sum(not is_number(value) for value in known) > len(known)
