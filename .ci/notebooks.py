"""The notebooks below docs/notebooks, run cell by cell: `python .ci/notebooks.py` stores what they print."""

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"


def run(path: Path) -> dict[str, Any]:
    """The notebook with what each cell prints now; whatever a cell raises, this raises."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    with empty_folder():
        codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, cell in enumerate(codes, 1):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
            lines = printed.getvalue().splitlines(keepends=True)
            cell["execution_count"] = number
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    return notebook


@contextlib.contextmanager
def empty_folder() -> Iterator[None]:
    """A working folder of its own while a notebook writes its files."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main() -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        path.write_text(json.dumps(run(path), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
