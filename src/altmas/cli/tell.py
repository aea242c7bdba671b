"""altmas tell: one label."""

from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import LABEL, command
from altmas.errors import UnknownPoint


@command(
    "tell", LABEL, "altmas tell xray.altmas case-17 cat", 'altmas tell xray.altmas case-17 cat -a ana --note "blurred"'
)
def tell(
    session: opt.SessionFile,
    id: Annotated[str, typer.Argument(metavar="ID", help="The item.", show_default=False)],
    label: Annotated[str, typer.Argument(metavar="LABEL", help="Its class.", show_default=False)],
    annotator: opt.Annotator = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="How long it took.")] = None,
    note: Annotated[str, typer.Option("--note", help="A remark.")] = "",
) -> None:
    """Record the label of an item. It is on disk when the command returns.

    Many labels at once: `altmas import`. Telling an item again is a revision; the earlier label stays in the log.
    """
    with given.opened(session) as opened:
        try:
            before = opened.votes(id).get(annotator or "")
            opened.tell(id, label, annotator, seconds, note)
        except UnknownPoint as error:
            if opened.pool.find_class(id) is None:
                raise
            raise UnknownPoint(
                f"{error}; {id!r} is a class: the id comes first, altmas tell {session} {label} {id}"
            ) from None
        labels, budget = len(opened.history.labels), opened.plan.budget
    count = f"{labels} of {budget} labels" if budget else show.counted(labels, "label")
    revised = "" if before is None or str(before) == label else f", in place of {before}"
    show.say(f"{id}: {label}{revised} ({count})")
