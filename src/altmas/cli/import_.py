"""altmas import: labels that were made elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import LABEL, command


@command(
    "import",
    LABEL,
    "altmas import xray.altmas export.json",
    "altmas import xray.altmas labels.csv",
    "altmas import xray.altmas sheet.csv --id Nr --label Klasse",
)
def import_(
    session: opt.SessionFile,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Labels made elsewhere.", show_default=False)],
    format: Annotated[
        str | None,
        typer.Option(
            "--from",
            autocompletion=opt.file_formats,
            help="csv, jsonl, parquet or label-studio; by default what the file's name says.",
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="COLUMN", help="Column with the ids, if not id or as in the table.", show_default=False
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN", help="Column with the labels, if not label.", show_default=False),
    ] = None,
) -> None:
    """Record labels from a file: CSV, JSONL, Parquet with id and label, Label Studio's JSON or JSON_MIN.

    The column of ids may also be called as in the table of the session. All or nothing, matched by id. A class name
    that does not exist stops it, with the near one. The last line says whether to stop or to go on, as status does.
    """
    with given.opened(session) as opened:
        show.say(str(opened.import_labels(file, format, id=id, label=label)))
        with show.working("estimating"):
            state = show.decided(opened.should_stop())
        show.say(state)
        if waiting := opened.now().waiting():
            show.hint(waiting)
            show.hint(given.how_to_get_waiting(opened))
