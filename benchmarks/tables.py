"""Tables in Markdown, and the pages of docs/ that hold them.

What stands between `<!-- table: name -->` and `<!-- end -->` on a page is replaced; the words around it are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parent.parent / "docs"


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The table; a row has a cell for each name of the head."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"a row of {len(row)} cells in a table of {len(head)} columns: {row!r}")
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines)


def with_table(text: str, name: str, table: str) -> str:
    """The text with what stands between the marks of this table replaced; ValueError if it has no such marks."""
    block = f"<!-- table: {name} -->\n{table}\n<!-- end -->"
    changed, count = re.subn(
        rf"<!-- table: {re.escape(name)} -->.*?<!-- end -->", lambda _: block, text, flags=re.DOTALL
    )
    if not count:
        raise ValueError(f"the page has no `<!-- table: {name} -->` ... `<!-- end -->`; nothing was changed")
    return changed


def with_tables(text: str, tables: Mapping[str, str]) -> str:
    """The text with all these tables replaced."""
    for name, table in tables.items():
        text = with_table(text, name, table)
    return text


def rewrite_page(page: Path, tables: Mapping[str, str]) -> None:
    """Write the page with these tables replaced."""
    page.write_text(with_tables(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
