"""The command line: thin commands over the session. `altmas.cli:main` is what the shell starts."""

# Each module registers its commands, in the order in which the help lists them.
# isort: off
from altmas.cli import demo, plan, sessions, labelling, compare, report, checking  # noqa: F401

# isort: on
from altmas.cli.app import app, main

__all__ = ["app", "main"]
