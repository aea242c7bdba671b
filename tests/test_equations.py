"""docs/equations.md names functions and tests that exist, and every equation of the method has both."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "equations.md").read_text()
FUNCTIONS = sorted(set(re.findall(r"`(altmas\.[\w.]+)`", TEXT)))
TESTS = sorted(set(re.findall(r"`(tests/\w+\.py)::(\w+)`", TEXT)))
ROWS = [row for row in TEXT.splitlines() if re.match(r"\| \((?:0\.|A|B|F|G|P|U|V|W)\d", row)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_named_function_exists(name):
    module, _, attribute = name.rpartition(".")
    assert callable(getattr(importlib.import_module(module), attribute))


@pytest.mark.parametrize("path, name", TESTS)
def test_a_named_test_exists(path, name):
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_an_equation_has_a_formula_a_function_and_a_test(row):
    equation, formula, function, test = (cell.strip() for cell in row.strip("|").split(" | "))
    assert formula
    assert re.match(r"`altmas\.", function)
    same = re.fullmatch(r"as (\([0ABFGPUVW]\.?\d+\))", test)
    assert test.startswith("`tests/") or any(
        other.startswith(f"| {same[1]}") and "`tests/" in other for other in ROWS if same
    )


def test_every_equation_of_the_method_is_listed():
    listed = set()
    for row in ROWS:
        first, last = re.match(r"\| \((?:0\.|A|B|F|G|P|U|V|W)(\d+)\)(?:-\(A(\d+)\))?", row).groups()
        letter = row[3]
        listed |= {f"{letter}{number}" for number in range(int(first), int(last or first) + 1)}
    last = {"0": 9, "A": 26, "B": 12, "F": 5, "G": 13, "P": 3, "U": 8, "V": 32, "W": 3}
    assert listed == {f"{letter}{n}" for letter, count in last.items() for n in range(1, count + 1)}


def test_every_equation_that_the_code_names_is_listed():
    """(A7) in a docstring of the method's modules means the (A7) of the document."""
    source_folder = ROOT / "src" / "altmas"
    names = (
        "guarantee",
        "intervals",
        "superpopulation",
        "ahead",
        "random_items",
        "random_linear",
        "random_sample",
        "random_stages",
        "stages",
        "whole_groups",
        "parts",
        "linearised",
        "design",
        "estimator",
        "ordered",
        "acquisition",
        "augmentation",
        "features",
        "information",
        "posterior",
        "bald",
        "rounds",
        "trust",
    )
    modules = [source_folder / "methods/paper/altmas.py", source_folder / "methods/paper/surrogates/__init__.py"]
    modules += [next(source_folder.rglob(f"{name}.py")) for name in names]
    for module in modules:
        source = module.read_text()
        for name in re.findall(r"\(([ABFGUV]\d+)\)", source):
            assert f"({name})" in TEXT or 10 <= int(name[1:]) <= 16, (module, name)
        for heading in re.findall(r"\b(A\.\d+)\b", source):
            assert re.search(rf"^### {re.escape(heading)} ", TEXT, re.MULTILINE), (module, heading)
