"""Which files can be read as tables, and what is said of those that cannot."""

import os
from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from altmas.errors import FileError
from altmas.pool.evaluations import LOGS
from altmas.suggest import listing, near

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
COMPRESSED = (".gz", ".bz2", ".zst")
PICKLED = (".pkl", ".pickle", ".joblib", ".pt", ".pth")

BLOCK = 16 * 2**20
"""Bytes of text parsed together; a line must fit into it."""

SMALL = 64
"""Bytes up to which a file is looked at to see whether it holds anything but blanks and a mark."""


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


def kind_of(path: Path) -> str:
    """The ending that says how a file is to be read, the compression left out; FileError where none does."""
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


def refuse_unknown(names: Sequence[str], columns: Sequence[str], where: str) -> None:
    """FileError naming the first column that is not there, with the near one."""
    for name in names:
        if name not in columns:
            raise FileError(f"{where} has no column {name!r}{near(name, columns)} (columns: {listing(columns)})")
        if list(columns).count(name) > 1:
            raise FileError(f"{where} has {list(columns).count(name)} columns called {name!r}; rename all but one")


def refuse_invalid(table: pa.Table, where: str) -> None:
    """FileError naming the first column whose bytes are not what its type says, such as texts that are not UTF-8."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowException as cause:
            fault = "texts that are not UTF-8" if "UTF8" in str(cause) else f"damaged values ({sentence(cause)})"
            raise FileError(f"{where}, column {name!r} holds {fault}; write the file anew as UTF-8") from cause


def sentence(cause: Exception) -> str:
    """What another library says, on one line and not too long."""
    return " ".join(str(cause).split())[:200]
