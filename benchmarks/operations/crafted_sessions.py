"""Session files as somebody would write them who wants altmas to run code, hang, fail or show something false.

`rewritten` changes the log of a session file and computes all hashes anew, so that nothing but the content is wrong.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from altmas.session.session_file import schema
from altmas.session.store import COLUMNS, NEWEST, chained

Row = dict[str, Any]
NAMES = [*COLUMNS.split(", "), "hash"]


def rewritten(path: Path, change: Callable[[list[Row]], None]) -> Path:
    """The session file at this path after `change` has edited the rows of its log; its hashes fit."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        rows = [dict(zip(NAMES, row, strict=True)) for row in _read(connection)]
        change(rows)
        _replace(connection, rows)
    return path


def planned(path: Path, **settings: Any) -> Path:
    """The session file with other settings in its plan."""

    def change(rows: list[Row]) -> None:
        body = json.loads(rows[0]["body"])
        body["plan"] |= settings
        rows[0]["body"] = json.dumps(body)

    return rewritten(path, change)


def with_sql(path: Path, *statements: str) -> Path:
    """The session file after these statements, the checks of SQLite itself switched off."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            connection.execute(statement)
    return path


def _read(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return connection.execute(f"SELECT {COLUMNS}, hash FROM events ORDER BY seq").fetchall()


def _replace(connection: sqlite3.Connection, rows: list[Row]) -> None:
    triggers = [line for line in schema().splitlines() if line.startswith("CREATE TRIGGER")]
    for line in triggers:
        connection.execute(f"DROP TRIGGER IF EXISTS {line.split()[2]}")
    connection.execute("DELETE FROM events")
    before = ""
    for row in rows:
        values = tuple(row[name] for name in NAMES[:-1])
        before = chained(before, values)
        connection.execute(f"INSERT INTO events ({COLUMNS}, hash) VALUES ({'?, ' * 10}?)", (*values, before))
    connection.execute("UPDATE leases SET annotator = ?, until = ? WHERE point = ?", (before, len(rows), NEWEST))
    if not rows:
        connection.execute("DELETE FROM leases WHERE point = ?", (NEWEST,))
    for line in triggers:
        connection.execute(line)
