"""`altmas backup`: a copy of a session file."""

from pathlib import Path
from typing import Annotated

import typer

from altmas.cli import options as opt
from altmas.cli import show
from altmas.cli.app import TRUST, command
from altmas.session.backup import back_up


@command("backup", TRUST, "altmas backup xray.altmas xray-2026-11-17.altmas")
def backup(
    session: opt.SessionFile,
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="The file to write; it must not exist.")],
) -> None:
    """Copy a session file, also while people label: the copy is the session as it stands between two writes.

    Its pages and the hashes of its log are checked before it gets its name. A file that is there is never replaced.
    Files that the session reads (its table, features, images) are not copied.
    """
    with show.working("copying"):
        show.say(str(back_up(session, copy)))
