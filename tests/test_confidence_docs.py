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
MODULES = (
    *("batch_information", "score_mixture", "score_families", "bandit", "gaussian_process", "worst_case"),
    *("predict_performance", "corruptions", "confidence/scaling", "confidence/true_class", "confidence/trust_score"),
    *("surrogates/bayes_by_backprop", "methods/batchbald", "methods/spe"),
)


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


@pytest.mark.parametrize("module", MODULES)
def test_every_equation_that_the_code_names_is_explained(module):
    source = next((ROOT / "src" / "altmas").rglob(f"{module}.py")).read_text()
    for name in re.findall(r"\(((?:B[4-6]|C2[3-9]|C3[0-2]|D[1-7]))\)", source):
        assert any(f"({name})" in text for text in TEXTS.values()), name
