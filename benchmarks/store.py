"""Where benchmarks keep what they found: finished runs as JSON Lines, tables as CSV.

Runs lie under benchmarks/results/runs, which is not committed; tables lie in benchmarks/results and are. A benchmark
adds a run when it is finished and asks for what is done before it starts, so that one that was interrupted goes on
where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from altmas.methods.assured.recipe import EDITION
from altmas.version import __version__

RESULTS: Final = Path(__file__).parent / "results"
RUNS: Final = RESULTS / "runs"

Row = dict[str, Any]

BEFORE: Final = "before 0.1.0"
"""The version of runs that carry none."""


def version_of(method: str) -> str:
    """The version of the package, and the edition of `assured`, that runs are made with now."""
    return f"{__version__}, edition {EDITION}" if method == "assured" else __version__


class Runs:
    """Finished runs in one .jsonl file, a line each.

    key  the entries of a run that tell it from the others in the file, such as its seed
    """

    def __init__(self, path: Path, *key: str) -> None:
        self.path, self.key = path, key

    def read(self) -> list[Row]:
        """The finished runs, in the order in which they were added; a line cut short by a crash is left out."""
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").split("\n")[:-1]]

    def done(self) -> set[Any]:
        """The keys of the finished runs: values if the key is one entry, else tuples."""
        return {self.key_of(run) for run in self.read()}

    def key_of(self, run: Mapping[str, Any]) -> Any:
        """What tells this run from the others."""
        values = tuple(run[name] for name in self.key)
        return values[0] if len(values) == 1 else values

    def add(self, *runs: Mapping[str, Any]) -> None:
        """Append finished runs in one write, so that processes that share the file do not mix their lines."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._drop_cut_line()
        with self.path.open("ab", buffering=0) as file:
            file.write(_lines(runs))

    def write(self, runs: Iterable[Mapping[str, Any]]) -> None:
        """The file with these runs alone: either all of them or, after an interruption, what was there before."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _put(self.path, _lines(runs))

    def _drop_cut_line(self) -> None:
        """Cut off what follows the last line break: a run whose writing a crash interrupted."""
        if self.path.exists() and not (content := self.path.read_bytes()).endswith(b"\n"):
            with self.path.open("r+b") as file:
                file.truncate(content.rfind(b"\n") + 1)


def _put(path: Path, content: bytes) -> None:
    """The file with this content; as it was before if this is interrupted."""
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def _lines(runs: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(run) + "\n" for run in runs).encode()


# ---------------------------------------------------------------- tables


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """The rows as CSV; columns in the order in which the rows first name them, empty where a row has none.

    Without a row nothing is written: a summary without runs, which are not committed, leaves the table that is there.
    """
    listed = list(rows)
    if not listed:
        print(f"no rows for {path.name}: nothing was written")
        return
    columns = list(dict.fromkeys(name for row in listed for name in row))
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(listed)
    path.parent.mkdir(parents=True, exist_ok=True)
    _put(path, text.getvalue().encode())


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a table as text; none if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_numbers(path: Path) -> list[Row]:
    """The rows of a table, numbers as numbers (whole ones as int); None where a field is empty."""
    return [{name: _number(text) for name, text in row.items()} for row in read_csv(path)]


def _number(text: str) -> Any:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return text or None


def keep_csv(path: Path, rows: Iterable[Mapping[str, Any]], *key: str, count: str | None = None) -> None:
    """Put rows into a table in place of those with the same key; the others stay, before them.

    count  a column, such as the number of runs: rows that have more there than the new ones stay as well
    """
    new = list(rows)
    if count is not None:
        had = {tuple(row[name] for name in key): float(row[count]) for row in read_csv(path)}
        new = [row for row in new if float(row[count]) >= had.get(tuple(str(row[name]) for name in key), 0.0)]
    made = {tuple(str(row[name]) for name in key) for row in new}
    write_csv(path, [*(row for row in read_csv(path) if tuple(row[name] for name in key) not in made), *new])


# ---------------------------------------------------------------- commands


def run_or_table(description: str | None, run: Callable[[int], None], write: Callable[[], None], *, runs: int) -> None:
    """The command line of a benchmark: `run` makes the missing runs, as many as --runs in all; `table` makes none.

    Both write the table in the end. runs is the default of --runs.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--runs", type=int, default=runs)
    options = parser.parse_args()
    if options.what == "run":
        run(options.runs)
    write()
