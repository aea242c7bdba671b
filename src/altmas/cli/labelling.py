"""`altmas label`: people answer what the session asks, on a page or in the terminal."""

import getpass
import sys
from typing import TYPE_CHECKING

from altmas.cli import show
from altmas.errors import PlanError

if TYPE_CHECKING:
    from altmas.session import Session


def in_terminal(session: "Session", annotator: str | None) -> None:
    """Label in the terminal until nothing is left to ask."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise PlanError(
            "label --terminal needs a terminal to read keys from; in a script use `altmas ask` and `altmas tell`; "
            "nothing was recorded"
        )
    from altmas.cli.keyboard import Terminal
    from altmas.cli.terminal import TerminalLabeller

    with Terminal() as keyboard:
        labeller = TerminalLabeller(session, annotator or _login(), keyboard, show.console())
        ended = labeller.run()
    show.say(f"{labeller.told} labels told: {ended}")
    show.hint(f"next: altmas status {session.path}")


def _login() -> str | None:
    """The login name: leases and undo need to know who is who."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
