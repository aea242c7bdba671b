"""What the site has besides docs/*.md: the Python reference, the notebooks and the figures of the benchmarks.

mkdocs calls `on_files` and `on_page_markdown`; tests call the rest without it.
"""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CELL = re.compile(r"^# %% (.+)\n", re.MULTILINE)
OUTSIDE = re.compile(r"\]\(\.\./(benchmarks/results/[\w.-]+)\)")

HEAD = """# The Python reference

Every public name, from its docstring, with an example. The examples are one program: each may use what those before it
made. Everything else in the package may move.

"""

# ---------------------------------------------------------------- examples


@cache
def cells() -> dict[str, str]:
    """{public name: the code of its example}, in the order of docs/examples.py."""
    parts = CELL.split((DOCS / "examples.py").read_text(encoding="utf-8"))[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name.strip(): code.strip() for names, code in pairs for name in names.split(",")}


def public_names() -> list[str]:
    """What altmas lists, and the methods and properties of pools and sessions."""
    import altmas

    members = [
        f"{kind.__name__}.{name}"
        for kind in (altmas.Pool, altmas.Session)
        for owner in kind.__mro__[:-1]
        for name, member in vars(owner).items()
        if not name.startswith("_") and (inspect.isroutine(member) or hasattr(type(member), "__get__"))
    ]
    return [*altmas.__all__, *members]


# ---------------------------------------------------------------- the page


def reference() -> str:
    """The page of all public names, each class before its members."""
    import altmas

    names = sorted(public_names(), key=lambda name: (list(cells()).index(name.split(".")[0]), "." in name))
    return HEAD + "\n".join(_entry(name, _found(altmas, name)) for name in names)


def _found(module: Any, name: str) -> Any:
    owner, _, member = name.partition(".")
    value = getattr(module, owner)
    return inspect.getattr_static(value, member) if member else value


def _entry(name: str, value: Any) -> str:
    inner = [getattr(value, part, None) for part in ("__func__", "fget", "func")]
    function = next((one for one in inner if one is not None), value)
    heading = f"{'###' if '.' in name else '##'} altmas.{name}\n"
    written = _signature(name, function, read=function is not value and not inner[0]) if callable(function) else ""
    said = "" if isinstance(value, str) else _prose(inspect.getdoc(function) or "")
    return "\n".join(part for part in (heading, written, said, _example(name)) if part)


def _signature(name: str, function: Any, *, read: bool) -> str:
    """How it is called, or read, with the types as the source has them; nothing for what has no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError):
        return ""
    if isinstance(tree, ast.ClassDef):
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
        if not found:
            return _fields(name, tree)
        tree = found[0]
    assert isinstance(tree, ast.FunctionDef)
    called = _arguments(tree).replace(" -> None", "").replace("'", "")
    return _code(f"{name}{called.replace('() ->', ':') if read else called}")


def _arguments(tree: ast.FunctionDef) -> str:
    shown = [
        (argument, default)
        for argument, default in zip(tree.args.kwonlyargs, tree.args.kw_defaults, strict=True)
        if not argument.arg.startswith("_")
    ]
    tree.args.kwonlyargs, tree.args.kw_defaults = [argument for argument, _ in shown], [default for _, default in shown]
    made = ast.FunctionDef("f", tree.args, [ast.Pass()], [], tree.returns, type_params=[])
    said = ast.unparse(ast.fix_missing_locations(made)).splitlines()[0].removeprefix("def f").removesuffix(":")
    said = re.sub(r"\((?:self|cls)(?:, )?", "(", said, count=1)
    before, back = said.rsplit(") -> ", 1) if ") -> " in said else (said.removesuffix(")"), "")
    listed = [_spaced(one) for one in _split(before.removeprefix("("))]
    arrow = f" -> {back}" if back else ""
    if len(said) < 90:
        return f"({', '.join(listed)}){arrow}"
    return "(\n" + "".join(f"    {one},\n" for one in listed) + f"){arrow}"


def _spaced(argument: str) -> str:
    """An argument with blanks around the sign before its default, if its type is given."""
    name, equals, default = argument.partition("=")
    return f"{name} = {default}" if equals and ":" in name else argument


def _split(arguments: str) -> Iterator[str]:
    """Arguments apart at the commas that stand in no bracket and no text."""
    depth, start, quoted = 0, 0, ""
    for place, character in enumerate(arguments):
        if quoted or character in "'\"":
            quoted = "" if character == quoted else quoted or character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            yield arguments[start:place].strip()
            start = place + 1
    yield arguments[start:].strip()


def _fields(name: str, tree: ast.ClassDef) -> str:
    fields = [ast.unparse(node) for node in tree.body if isinstance(node, ast.AnnAssign)]
    fields = [one for one in fields if not one.startswith("_")]
    return _code(f"{name}(\n" + "".join(f"    {one},\n" for one in fields) + ")") if fields else ""


def _prose(docstring: str) -> str:
    """The first paragraph as a paragraph, tables of arguments as they are."""
    first, _, rest = docstring.partition("\n\n")
    return f"{first}\n" + (f"\n```text\n{rest.strip()}\n```\n" if rest.strip() else "")


def _example(name: str) -> str:
    """The code, below the first of the names that share it; for the others, a link to it."""
    code = cells().get(name, "")
    first = next((one for one, other in cells().items() if other == code), name)
    return _code(code) if first == name else f"Example: [altmas.{first}](#altmas{first.replace('.', '').lower()})\n"


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n" if text else ""


# ---------------------------------------------------------------- notebooks


def notebooks() -> list[Path]:
    return sorted((DOCS / "notebooks").glob("*.ipynb"))


def notebook_page(path: Path) -> str:
    """A notebook as Markdown: its texts, its code, and what the code printed when it was run last."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield f"```text\n{''.join(output['text']).rstrip()}\n```"


# ---------------------------------------------------------------- hooks of mkdocs


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and figures that are not files below docs/."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "api.md", content=reference()))
    for path in notebooks():
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=notebook_page(path)))
    files.append(File.generated(config, "changelog.md", content=(ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    for name in sorted(
        {name for page in DOCS.glob("*.md") for name in OUTSIDE.findall(page.read_text(encoding="utf-8"))}
    ):
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Figures beside the results of benchmarks, where the site has them."""
    return OUTSIDE.sub(r"](\1)", markdown)
