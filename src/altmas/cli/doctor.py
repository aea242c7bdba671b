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
        findings = examine(session, trust=trusted.get())
    if json:
        show.as_json([{"what": finding.what, "found": finding.found, "ok": finding.ok} for finding in findings])
    else:
        rows = [("" if finding.ok else "!", finding.what, finding.found) for finding in findings]
        show.table(("", "what", "found"), rows)
    if not all(finding.ok for finding in findings):
        show.hint("lines marked with ! need attention")
        raise typer.Exit(1)
