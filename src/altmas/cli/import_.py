"""altmas import: labels that were made elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from altmas.cli import options as opt
from altmas.cli import show
from altmas.cli.app import LABEL, command


@command("import", LABEL, "altmas import xray.altmas export.json", "altmas import xray.altmas labels.csv")
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
) -> None:
    """Record labels from a file: CSV, JSONL, Parquet with id and label, Label Studio's JSON or JSON_MIN.

    All or nothing, matched by id. A class name that does not exist stops it, with the near one.
    """
    with opt.opened(session) as opened:
        show.say(str(opened.import_labels(file, format)))
        if waiting := opened.now().waiting():
            show.hint(waiting)
            show.hint(opt.how_to_get_waiting(opened))
