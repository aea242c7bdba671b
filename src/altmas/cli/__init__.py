"""The command line: thin commands over the session. `altmas.cli:main` is what the shell starts."""

from altmas.cli import checking, second_model, sessions  # noqa: F401  each registers its commands
from altmas.cli.app import app, main

__all__ = ["app", "main"]
