"""docs/cli.md from the commands themselves: `python -m altmas.cli.docs > docs/cli.md`."""

import inspect
from collections.abc import Iterator
from typing import Any

import typer.main

from altmas.cli import app

HEAD = """# The command line

Written by `python -m altmas.cli.docs` from what each `--help` says.

```
pip install .                     # in a copy of the repository; '.[paper]' adds the methods that train networks
altmas demo
altmas --install-completion    # once: completes commands and options in your shell
```

Every command takes `-q` (no progress, no hints) and `-v` (say what is going on); commands that read take `--json`.
A session file is data: nothing that it names is imported. Where a session was made with metrics or a method of your
own, the commands that open it take `--trust`, which imports and runs them: use it for files whose maker you trust.
Results go to stdout, everything else to stderr. Colours follow `NO_COLOR`. Nothing asks a question.

| exit code | meaning |
|---|---|
| 0 | done; for `check`: shown; for `monitor`: no drop is shown |
| 1 | for `check`: refuted; for `monitor`: a drop is shown; for `doctor`: something needs attention |
| 2 | bad input or usage: a sentence on stderr, nothing was recorded |
| 3 | for `check`: undecided; for `monitor`: cannot tell yet |
| 70 | a fault of altmas |
| 130 | interrupted |
"""
COMMON = ("quiet", "verbose", "trust", "help")


def markdown() -> str:
    """The whole page."""
    group: Any = typer.main.get_command(app)
    commands = sorted(group.commands.values(), key=lambda command: _order(command.name))
    return "\n".join([HEAD, *(line for command in commands for line in _command(command))])


def _order(name: str) -> int:
    """Commands stand in the order in which they are registered."""
    return [registered.name for registered in app.registered_commands].index(name)


def _plain(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace(r"\[", "[")


def _command(command: Any) -> Iterator[str]:
    yield f"## altmas {command.name}\n"
    yield _plain(command.help) + "\n"
    paragraphs = _plain(command.epilog).split("\n\n")[1:]
    examples = [paragraph.removeprefix("$ ") for paragraph in paragraphs if paragraph.startswith("$ ")]
    yield "\n".join(["```", *examples, "```"]) + "\n"
    parameters = [parameter for parameter in command.params if parameter.name not in COMMON]
    yield "| option | meaning |"
    yield "|---|---|"
    yield from (_row(parameter) for parameter in parameters)
    yield ""
    notes = [paragraph for paragraph in paragraphs if not paragraph.startswith("$ ")]
    if notes:
        yield "\n".join([notes[0], "", *(f"- {note}" for note in notes[1:])]) + "\n"


def _row(parameter: Any) -> str:
    argument = parameter.param_type_name == "argument"
    metavar = parameter.metavar or ""
    metavar = metavar.strip("[]") if argument else metavar
    names = [metavar] if argument else [*parameter.opts, *parameter.secondary_opts]
    value = f" {metavar}" if metavar and not argument else ""
    words = [_plain(parameter.help)]
    if parameter.required:
        words.append("Required.")
    elif isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool):
        words.append(f"Default: {parameter.default:g}.")
    elif isinstance(parameter.default, str) and parameter.default:
        words.append(f"Default: {parameter.default}.")
    shown = ", ".join(f"`{name}{value}`" for name in names).replace("|", "\\|")
    return f"| {shown} | {' '.join(words).replace('|', chr(92) + '|')} |"


if __name__ == "__main__":
    print(markdown(), end="")
