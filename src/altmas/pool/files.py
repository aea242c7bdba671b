"""Reading files: columns of .csv, .tsv, .jsonl, .ndjson and .parquet as Arrow.

Logs of evaluation tools (evaluations.py) are tables too.

Nothing is ever unpickled. Every failure is a FileError that names the file and, where it is known, the line or row.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from altmas.errors import FileError
from altmas.pool.csv_files import OTHER_ENCODING, Written, read_csv
from altmas.pool.evaluations import ACCEPTED, LOGS, read_lines, read_log, tool_of_line
from altmas.pool.json_lines import columns_of_log, first_row, json_rows, read_json_lines
from altmas.pool.readable import existing, kind_of, refuse_invalid, refuse_unknown, sentence


def read_columns(
    path: str | os.PathLike[str], names: Sequence[str], numbers: Sequence[str] = (), encoding: str | None = None
) -> pa.Table:
    """The named columns of a file: `names` hold classes, ids, slices and items, `numbers` hold features and scores.

    encoding  of a .csv or .tsv file that is not UTF-8
    Raises FileError on a file that is missing, empty, damaged or of another kind, and on a column that is not there.
    """
    path = existing(path)
    kind = kind_of(path)
    try:
        if kind == ".parquet":
            table = _parquet(path, [*names, *numbers])
        elif kind in LOGS:
            table = columns_of_log(read_log(path), names, numbers, path)
        elif kind in (".jsonl", ".ndjson"):
            table = read_json_lines(path, names, numbers)
        else:
            table = read_csv(path, Written.of(path, encoding), names, numbers)
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
        if kind_of(path) in LOGS:
            return read_log(path)
        if kind_of(path) in (".jsonl", ".ndjson") and tool_of_line(first_row(path)) is not None:
            return read_lines(path, json_rows(path))
    except FileError:
        raise
    except Exception as cause:  # the bytes of a damaged file can fail in any way
        raise FileError(f"{path} cannot be read as a log of an evaluation tool: {sentence(cause)}") from cause
    raise FileError(f"{path} is no log of an evaluation tool that is known: expected {ACCEPTED}")


def _parquet(path: Path, columns: Sequence[str]) -> pa.Table:
    import pyarrow.dataset  # takes a while to load, and only Parquet needs it

    scan = pyarrow.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)  # where the file has them
    files = pyarrow.dataset.dataset(path, format=pyarrow.dataset.ParquetFileFormat(default_fragment_scan_options=scan))
    refuse_unknown(columns, files.schema.names, str(path))
    return files.to_table(columns=list(dict.fromkeys(columns)))
