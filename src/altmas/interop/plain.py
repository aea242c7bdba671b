"""Plain files of labels and of items: CSV, JSONL and Parquet, with the columns `id,label,annotator,seconds,created_at`.

Everything in a CSV is text: "007" stays "007". A cell that a spreadsheet would compute (=1+1) is written with an
apostrophe before it, and read without. A row without a label is a point that nobody has labelled yet.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from altmas.errors import FileError
from altmas.interop.replies import COLUMNS, Reply, reply_of
from altmas.pool.csv_files import FIELD_LIMIT, SEPARATOR_LINE
from altmas.suggest import listing, near

DELIMITERS = ",;\t"
ALSO = {"altmas_id": "id", "lead_time": "seconds"}
"""Columns of Label Studio's CSV export that mean the same; its own `id` numbers tasks and is not ours."""

FORMULA = re.compile("'*[=+\\-@\\t\\r\\n＝＋－＠]")
"""How a cell begins that spreadsheets may take for a formula, apostrophes before it aside."""

NEGATIVE = re.compile(r"-[0-9]+(\.[0-9]+)?\Z")
"""A negative number, which stays one."""

Rows = Iterable[tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class Named:
    """How the columns of ids and labels are called: as somebody says, else "id" and "label".

    own  the id column of the session's table, which stands for "id" where there is none
    """

    id: str | None = None
    label: str | None = None
    own: str | None = None

    def meant(self, names: Sequence[str], path: Path | str, *, fold: bool = True) -> list[str]:
        """The names with "id" and "label" in place of those that are meant; FileError if one that was said is none.

        fold  whether blanks around a name and its case do not matter
        """
        meant = [name.strip().lower() if fold else name for name in names]
        if "altmas_id" in meant:
            meant = ["task" if name == "id" else name for name in meant]
        meant = [ALSO.get(name, name) for name in meant]
        stripped = [name.strip() for name in names]
        for role, said in (("id", self.id), ("label", self.label)):
            if said is not None:
                if said not in stripped:
                    raise FileError(
                        f"{path} has no column {said!r}{near(said, stripped)} (columns: {listing(stripped)}); nothing "
                        "was recorded"
                    )
                meant = [f"other {role}" if name == role else name for name in meant]
                meant[stripped.index(said)] = role
        if "id" not in meant and self.own is not None and stripped.count(self.own) == 1:
            column = stripped.index(self.own)
            meant[column] = meant[column] if meant[column] in COLUMNS else "id"
        return meant

    def expected(self) -> str:
        """What is said where a column is missing."""
        ids = "id" if self.own in (None, "id") else f"id (or {self.own!r}, as in the session's table)"
        return f"expected at least {ids} and label; others are named with --id COLUMN and --label COLUMN"


AS_USUAL = Named()


def read_replies(path: Path, format: str, named: Named = AS_USUAL) -> tuple[list[Reply], int]:
    """(replies, number of rows without one) of a plain file; FileError names the row that cannot be read."""
    read = {"csv": _csv_rows, "jsonl": _jsonl_rows, "parquet": _parquet_rows}[format]
    replies = [reply_of(row, f"{path}, {where}") for where, row in read(path, named)]
    return [reply for reply in replies if reply is not None], sum(reply is None for reply in replies)


def content_of(format: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bytes:
    """The rows as the bytes of a file."""
    if format == "parquet":
        return _parquet(rows, columns)
    if format == "jsonl":
        lines = (json.dumps({name: row.get(name) for name in columns}, ensure_ascii=False) for row in rows)
        return "".join(line + "\n" for line in lines).encode()
    return _csv(rows, columns)


def read_bytes(path: Path) -> bytes:
    """The content of a file; FileError if it is missing, empty, a folder or a workbook."""
    try:
        content = path.read_bytes()
    except OSError as cause:
        raise FileError(f"{path} cannot be read: {cause.strerror}; nothing was recorded") from cause
    if not content.strip():
        raise FileError(f"{path} is empty; nothing was recorded")
    if content[:4] == b"PK\x03\x04" or content[:4] == b"\xd0\xcf\x11\xe0":
        raise FileError(
            f"{path} is a workbook or an archive, not a text file; save the sheet as 'CSV UTF-8' and import that; "
            "nothing was recorded"
        )
    return content


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark; FileError names the byte that is neither."""
    content = read_bytes(path)
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        written = content.decode(encoding)
    except UnicodeDecodeError as cause:
        raise FileError(
            f"{path} is not UTF-8 text (byte {cause.start}); save it as 'CSV UTF-8' or with the encoding UTF-8; "
            "nothing was recorded"
        ) from cause
    if not written.strip():
        raise FileError(f"{path} is empty; nothing was recorded")
    return written


# ---------------------------------------------------------------- CSV


def _csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(map(no_formula, columns))
    for row in rows:
        writer.writerow(["" if row.get(name) is None else no_formula(row[name]) for name in columns])
    return ("\ufeff" + buffer.getvalue()).encode()  # the mark tells spreadsheets that this is UTF-8


def no_formula(value: Any) -> Any:
    """A text that a spreadsheet would compute, with an apostrophe before it; `as_written` takes that away again."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) and not NEGATIVE.match(value) else value


def as_written(cell: str) -> str:
    """The text of a cell: without the apostrophe that `no_formula` put before it."""
    return cell[1:] if cell[:1] == "'" and FORMULA.match(cell) else cell


def _csv_rows(path: Path, named: Named) -> Rows:
    written, delimiter = _separated(read_text(path))
    limit = csv.field_size_limit(FIELD_LIMIT)
    try:
        records = list(csv.reader(io.StringIO(written, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as cause:
        raise FileError(f"{path} is no proper CSV: {cause}; nothing was recorded") from cause
    finally:
        csv.field_size_limit(limit)
    header = _header(path, records[0], named)
    for number, cells in enumerate(records[1:], start=2):  # the header is row 1, as spreadsheets count
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise FileError(
                f"{path}, row {number}: {len(cells)} cells under {len(header)} columns (is a quotation mark or a "
                "delimiter missing?); nothing was recorded"
            )
        yield (
            f"row {number}",
            {name: as_written(cell) for name, cell in zip(header, cells, strict=True) if name in COLUMNS},
        )


def _separated(written: str) -> tuple[str, str]:
    """(text without a first line that only names the delimiter, as sep=; does; the delimiter).

    Spreadsheets write semicolons or tabs in some countries.
    """
    first, _, rest = written.partition("\n")
    if said := SEPARATOR_LINE.fullmatch(first.rstrip("\r")):
        return rest, said[1]
    return written, max(DELIMITERS, key=first.count)


def _header(path: Path, cells: Sequence[str], named: Named) -> list[str]:
    names = named.meant(cells, path)
    for required in ("id", "label"):
        if required not in names:
            hint = near(required, names)
            raise FileError(
                f"{path} has no column {required!r}{hint} (columns: {listing(cells)}); {named.expected()}; nothing was "
                "recorded"
            )
    for name in COLUMNS:
        if names.count(name) > 1:
            raise FileError(f"{path} has {names.count(name)} columns that mean {name!r}; nothing was recorded")
    return names


# ---------------------------------------------------------------- JSONL


def _jsonl_rows(path: Path, named: Named) -> Rows:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        row = parsed(line, f"{path}, line {number}")
        if not isinstance(row, dict):
            raise FileError(
                f'{path}, line {number}: expected an object such as {{"id": ..., "label": ...}}; nothing was recorded'
            )
        where = f"{path}, line {number}"
        names = dict(zip(row, named.meant(list(map(str, row)), where, fold=False), strict=True))
        if "id" not in names.values():
            raise FileError(f'{where}: it has no "id" (keys: {listing(row)}); {named.expected()}; nothing was recorded')
        yield f"line {number}", {names[name]: value for name, value in row.items()}


def parsed(written: str, where: str) -> Any:
    """The value of a JSON text; FileError with the place of the fault."""
    try:
        return json.loads(written)
    except (ValueError, RecursionError) as cause:
        message = getattr(cause, "msg", "it is nested too deeply" if isinstance(cause, RecursionError) else str(cause))
        line = getattr(cause, "lineno", 0)
        position = f" (line {line}, column {getattr(cause, 'colno', 0)})" if line else ""
        raise FileError(f"{where}: no proper JSON: {message}{position}; nothing was recorded") from cause


# ---------------------------------------------------------------- Parquet


def _parquet(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bytes:
    arrays = {name: _column([row.get(name) for row in rows], number=name == "seconds") for name in columns}
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table(arrays), sink, write_page_checksum=True)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _column(values: Sequence[Any], *, number: bool) -> pa.Array:
    if number:
        return pa.array(values, pa.float64())
    if all(value is None or isinstance(value, str) for value in values):
        return pa.array(values, pa.string())
    try:
        return pa.array(values)
    except pa.ArrowException:
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def _parquet_rows(path: Path, named: Named) -> Iterator[tuple[str, dict[str, Any]]]:
    content = read_bytes(path)
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(content), page_checksum_verification=True)
        header = _header(path, table.column_names, named)
        rows = table.rename_columns(header).select([name for name in header if name in COLUMNS]).to_pylist()
    except FileError:
        raise
    except Exception as cause:  # the bytes of a damaged file can fail in any way inside the library
        message = " ".join(str(cause).split())[:200]
        raise FileError(f"{path} is no proper Parquet file: {message}; nothing was recorded") from cause
    yield from ((f"row {number}", row) for number, row in enumerate(rows, start=1))
