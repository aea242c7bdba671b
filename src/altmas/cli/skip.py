"""altmas skip: an item without a label."""

from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import LABEL, command


@command(
    "skip", LABEL, 'altmas skip xray.altmas case-17 --reason "unreadable"', "altmas skip xray.altmas case-17 --unsure"
)
def skip(
    session: opt.SessionFile,
    id: Annotated[str, typer.Argument(metavar="ID", help="The item.", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", help="Why it cannot be labelled.")] = "",
    unsure: Annotated[bool, typer.Option("--unsure", help="The item is fine, the annotator cannot tell.")] = False,
    annotator: opt.Annotator = None,
) -> None:
    """Record that an item cannot be labelled, or that the annotator cannot tell."""
    with given.opened(session) as opened:
        opened.skip(id, reason, annotator, kind="unsure" if unsure else "skip")
    show.say(f"{id}: {'unsure' if unsure else 'skipped'}")
