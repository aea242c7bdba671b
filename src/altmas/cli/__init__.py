"""The command line: thin commands over the session. `altmas.cli:main` is what the shell starts."""

from altmas.cli import demonstration, sessions, labelling, second_model, reporting, checking  # isort: skip  # noqa: F401
from altmas.cli.app import app, main

__all__ = ["app", "main"]
