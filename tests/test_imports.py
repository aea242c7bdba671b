"""Imports point one way: a module may import from its own package and from what stands before it in ORDER."""

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import altmas
from altmas.above import registered

SOURCE = Path(__file__).parent.parent / "src"

ORDER = (
    "errors",
    "above",
    "version",
    "types",
    "streams",
    "ratios",
    "guarantee",
    "guarantee_pair",
    "extras",
    "svg",
    "suggest",
    "tensors",
    "compute",
    "progress",
    "frames",
    "memo",
    "outputs",
    "items",
    "pool",
    "belief",
    "metrics",
    "history",
    "task",
    "estimates",
    "intervals",
    "superpopulation",
    "weighted",
    "methods.protocol",
    "methods.draws",
    "methods.random_sample",
    "methods.random_stages",
    "methods.random_linear",
    "methods.random_items",
    "methods.gaps",
    "methods.tradition",
    "methods.paper.surrogates",
    "methods.paper",
    "methods.assured",
    "methods.related",
    "methods",
    "guaranteed",
    "forecast",
    "session",
    "compare",
    "alone",
    "ranking",
    "claims",
    "monitoring",
    "thresholds",
    "simulate",
    "planning",
    "tuning",
    "scenarios",
    "confidence",
    "interop",
    "report",
    "trackers",
    "web",
    "doctor",
    "demo",
    "cli",
    "__main__",
    "",
)
"""Packages and modules of altmas, each allowed to import what stands before it; "" is altmas itself."""


@cache
def modules() -> dict[str, Path]:
    """{dotted name without "altmas.": file}; altmas itself is ""."""
    found = {}
    for path in sorted((SOURCE / "altmas").rglob("*.py")):
        parts = path.relative_to(SOURCE / "altmas").with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path) -> Iterator[str]:
    """What a file imports from altmas, wherever in it; what only the type checker sees is left out."""
    known = modules()

    def walk(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole.partition(".")[2] in known else str(node.module)
        for child in ast.iter_child_nodes(node):
            yield from walk(child)

    for name in walk(tree(path.read_text(encoding="utf-8"))):
        if name.split(".")[0] == "altmas":
            yield name.partition(".")[2]


@cache
def tree(text: str) -> ast.Module:
    return ast.parse(text)


def entry(module: str) -> str:
    """The longest name in ORDER that the module is or lies in."""
    parts = module.split(".")
    names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((name for name in names if name in ORDER), "" if module == "" else f"{module} is not in ORDER")


def upward() -> set[tuple[str, str]]:
    """(module, import) that point the wrong way."""
    found = set()
    for module, path in modules().items():
        mine = entry(module)
        for other in imports(path):
            theirs = entry(other)
            if theirs != mine and ORDER.index(theirs) > ORDER.index(mine):
                found.add((module, other))
    return found


def module_graph() -> dict[str, set[str]]:
    return {module: set(imports(path)) - {module} for module, path in modules().items()}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """The nodes that lie on or lead only to cycles; empty if the graph has none."""
    left = {node: set(others) & set(graph) for node, others in graph.items()}
    while free := [node for node, others in left.items() if not others]:
        left = {node: others - set(free) for node, others in left.items() if node not in free}
    return sorted(left)


def test_every_module_has_a_place_in_the_order():
    assert {entry(module) for module in modules()} <= set(ORDER)


def test_every_place_in_the_order_is_a_module():
    assert set(ORDER) <= set(modules())


def test_imports_point_one_way():
    assert upward() == set()


@pytest.mark.parametrize("verb, place", registered().items())
def test_what_is_reached_by_name_exists_and_is_used(verb, place):
    module, _, function = place.partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    used = [path for path in modules().values() if f'above("{verb}")' in path.read_text(encoding="utf-8")]
    assert used and (hasattr(altmas.Session, verb) or module in ("altmas.pool.tables", "altmas.pool.files"))


LATE = {("methods.assured.extra_models", "altmas.methods.paper.surrogates")}
"""Modules of altmas that import another one inside a function; the list may only get shorter."""


def test_no_function_imports_altmas():
    """What is needed late is registered by name (altmas/above.py); the command line loads each command when it runs."""
    late = set()
    for name, path in modules().items():
        for function in ast.walk(tree(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = [node.module for node in ast.walk(function) if isinstance(node, ast.ImportFrom)]
                late |= {(name, module) for module in inside if (module or "").startswith("altmas")}
    assert late <= LATE


def test_an_upward_import_would_be_found(tmp_path):
    file = tmp_path / "module.py"
    file.write_text("def f():\n    from altmas.session import Session\n    import altmas.errors\n")
    assert list(imports(file)) == ["session", "errors"]
    file.write_text("if TYPE_CHECKING:\n    from altmas.session import Session\n")
    assert list(imports(file)) == []


@pytest.mark.parametrize("graph, expected", [({"a": {"b"}, "b": set()}, []), ({"a": {"b"}, "b": {"a"}}, ["a", "b"])])
def test_a_cycle_would_be_found(graph, expected):
    assert cycle(graph) == expected
