"""altmas doctor: whether this machine and a session file are in order."""

from pathlib import Path
from typing import Annotated

import typer

from altmas.cli import options as opt
from altmas.cli import show
from altmas.cli.app import TRUST, command, trusted
from altmas.doctor import examine


@command("doctor", TRUST, "altmas doctor", "altmas doctor xray.altmas --json")
def doctor(
    session: Annotated[
        Path | None, typer.Argument(metavar="[SESSION]", help="A session file to look at.", show_default=False)
    ] = None,
    json: opt.Json = False,
) -> None:
    """Versions, threads, JAX and its cache, disk; of a session file its integrity, format, leases and event hash.

    Exits with 1 if something needs attention.
    """
    with show.working("looking"):
        found = examine(session, trust=trusted.get())
    if json:
        show.as_json([{"what": one.what, "found": one.found, "ok": one.ok} for one in found])
    else:
        show.table(("", "what", "found"), [("" if one.ok else "!", one.what, one.found) for one in found])
    if not all(one.ok for one in found):
        show.hint("lines marked with ! need attention")
        raise typer.Exit(1)
