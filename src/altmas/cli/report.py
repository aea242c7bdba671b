"""`altmas report`: one file that says what is known, and how."""

from pathlib import Path
from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import READ, command


@command(
    "report",
    READ,
    "altmas report xray.altmas -o xray.html",
    "altmas report xray.altmas --since may.json -o june.html",
    "altmas report xray.altmas --json",
)
def report(
    session: opt.SessionFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="By default the session's name with .html; or .json; or -."
        ),
    ] = None,
    items: Annotated[
        bool,
        typer.Option("--items", help="Put the labelled items into it, errors first; by default none is."),
    ] = False,
    notes: Annotated[
        bool,
        typer.Option(
            "--notes/--no-notes",
            help="Whether what annotators wrote is in it; which item they meant only with --items.",
        ),
    ] = True,
    since: Annotated[
        Path | None,
        typer.Option(
            "--since", metavar="FILE", help="The .json of an earlier report: what changed since.", show_default=False
        ),
    ] = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Write the report: verdicts, intervals, how items were chosen, who labelled, what it rests on.

    One HTML file that needs no other file and no network, and the same as JSON beside it.
    """
    path = given.output(output or session.with_suffix(".html"))
    with given.opened(session) as opened, show.working("writing the report"):
        document = opened.report(None if json else path, items=items, notes=notes, force=force, since=since)
    if json:
        typer.echo(document.to_json(), nl=False)
        return
    show.written(str(document), path)
    show.hint(f"written: {path}")
