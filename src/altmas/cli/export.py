"""altmas export: items, labels or the log as a file."""

from pathlib import Path
from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import LABEL, command
from altmas.errors import FileError, PlanError, PoolMismatch
from altmas.interop import export_logged_labels
from altmas.outputs import STDOUT


@command(
    "export",
    LABEL,
    "altmas export xray.altmas -n 50 --to label-studio tasks.json",
    "altmas export xray.altmas -n 50 next.csv",
    "altmas export xray.altmas --labels labels.csv",
    "altmas export xray.altmas --events events.jsonl",
)
def export(
    session: opt.SessionFile,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What to write; - is the standard output.", show_default=False)
    ],
    n: Annotated[int, typer.Option("-n", "--next", min=1, help="How many of the next items.")] = 50,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            autocompletion=opt.file_formats,
            help="csv, jsonl, parquet or label-studio; by default what the file's name says, csv for -.",
        ),
    ] = None,
    labels: Annotated[bool, typer.Option("--labels", help="Write the labels told so far instead.")] = False,
    events: Annotated[bool, typer.Option("--events", help="Write the whole log as .jsonl instead.")] = False,
    with_predictions: Annotated[
        bool, typer.Option("--with-predictions", help="Not blind: the model's answers too; recorded as revealed.")
    ] = False,
    local_files: opt.LocalFiles = None,
    take_over: opt.TakeOver = False,
    force: opt.Force = False,
) -> None:
    """Write the next items as a file for a spreadsheet or Label Studio; or the labels, or the log.

    A file that is there already is refused before anything is drawn: it may hold labels. --force replaces it. Items
    that somebody has on a page are left out until their time is over, or with --take-over written.
    """
    if labels and events:
        raise PlanError("export writes --labels or --events, not both into one file; nothing was written")
    path, others, reached = given.output(file), False, ""
    to = to or ("csv" if path == STDOUT else None)
    if labels:
        show.written(_labels(session, path, to, force), path)
        return
    with given.opened(session) as opened, show.working("choosing items"):
        if events:
            message = f"{file}: {opened.export_events(path, force=force)} events written"
        else:
            blind = not with_predictions
            result = opened.export(path, n, to, blind=blind, force=force, local_files=local_files, take_over=take_over)
            message, others = str(result), bool(result.fewer and opened.held_by_others())
            reached = given.goal_reached(opened)
    show.written(message, path)
    if reached:
        show.hint(reached)
    if others:
        show.hint("--take-over writes the items of others too (with --force into the same file)")


def _labels(session: Path, path: Path, to: str | None, force: bool) -> str:
    """The labels of a session; of one whose table was changed or is gone, those that its log alone tells."""
    try:
        opened = given.opened(session)
    except (PoolMismatch, FileError) as problem:
        if not session.is_file():
            raise
        result = export_logged_labels(session, path, to, force=force)
        show.hint(f"note: the labels are those of the log, because the table is not as it was ({problem})")
        return str(result)
    with opened:
        return str(opened.export_labels(path, to, force=force))
