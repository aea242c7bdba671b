"""docs/confidence.md and docs/other-questions.md: blocks run as written, named functions and tests exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "docs" / name for name in ("confidence.md", "other-questions.md")]
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
BLOCKS = [(name, text) for name, page in TEXTS.items() for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL)]
ROWS = [row for page in TEXTS.values() for row in page.splitlines() if "`tests/" in row]
NAMED = re.compile(r"\(((?:B[4-6]|C2[3-9]|C3[0-2]|D[1-7]))\)")
SOURCES = {
    str(path.relative_to(ROOT)): names
    for path in sorted((ROOT / "src" / "altmas").rglob("*.py"))
    if (names := set(NAMED.findall(path.read_text(encoding="utf-8"))))
}


@pytest.mark.parametrize("name, text", BLOCKS, ids=[f"{name}-{i}" for i, (name, _) in enumerate(BLOCKS)])
def test_a_block_runs_as_written(name, text, capsys):
    exec(compile(text, name, "exec"), {"__name__": name})
    assert capsys.readouterr().out


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_an_equation_names_a_function_and_a_test_that_exist(row):
    *_, function, test = (cell.strip() for cell in row.strip("|").split(" | "))
    module, _, attribute = function.strip("`").rpartition(".")
    package = importlib.import_module("altmas")  # functions of the package hide modules of the same name
    found = importlib.import_module(module) if module != "altmas" else package
    assert callable(getattr(found, attribute))
    path, _, name = test.strip("`").partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE)


@pytest.mark.parametrize("module", SOURCES)
def test_every_equation_that_the_code_names_is_explained(module):
    for name in SOURCES[module]:
        assert any(f"({name})" in text for text in TEXTS.values()), name


def test_the_scan_finds_the_modules_that_name_equations():
    assert {"batch_information.py", "scaling.py", "worst_case.py"} <= {Path(module).name for module in SOURCES}
