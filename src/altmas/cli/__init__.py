"""The command line: thin commands over the session. `altmas.cli:main` is what the shell starts."""

from altmas.cli import sessions, labelling, second_model, checking  # isort: skip  # noqa: F401  registers commands
from altmas.cli.app import app, main

__all__ = ["app", "main"]
