"""Commands through which people answer: the page, the terminal, files for other tools."""

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from altmas.cli import options as opt
from altmas.cli import show
from altmas.cli.app import LABEL, command
from altmas.cli.sessions import opened
from altmas.errors import PlanError

if TYPE_CHECKING:
    from altmas.session import Session

NETWORK = "The page"


@command(
    "label",
    LABEL,
    "altmas label xray.altmas",
    "altmas label xray.altmas --terminal --annotator ana",
    "altmas label xray.altmas --host 0.0.0.0 --port 8377",
)
def label(
    session: opt.SessionFile,
    terminal: Annotated[
        bool, typer.Option("--terminal", "-t", help="Label in the terminal, without a browser.")
    ] = False,
    annotator: opt.Annotator = None,
    host: Annotated[
        str,
        typer.Option("--host", help="Where to listen; other than this machine needs a token.", rich_help_panel=NETWORK),
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option("--port", help="By default 8377 or any free one.", rich_help_panel=NETWORK)
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", envvar="ALTMAS_TOKEN", help="By default one is made up and printed.", rich_help_panel=NETWORK
        ),
    ] = None,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            help="A further name under which people reach the page; repeatable.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.", rich_help_panel=NETWORK)
    ] = True,
    lease: Annotated[
        float, typer.Option("--lease", help="Seconds for which an item stays with whoever was shown it.")
    ] = 900.0,
) -> None:
    """Label items: on a page in the browser, or with --terminal here.

    Blind: nobody sees what the model says unless they ask for it, and that is recorded. Every label is on disk
    before it is shown as saved. The page stays on this machine unless --host says otherwise.
    """
    with opened(session) as one:
        if terminal:
            _in_terminal(one, annotator)
            return
        one.label(
            host=host,
            port=port,
            open_browser=browser,
            token=token,
            annotator=annotator,
            allowed_hosts=allowed_hosts or (),
            lease=lease,
        )


def _in_terminal(session: "Session", annotator: str | None) -> None:
    if not _has_terminal():
        raise PlanError(
            "label --terminal needs a terminal to read keys from; in a script use `altmas ask` and `altmas tell`; "
            "nothing was recorded"
        )
    from altmas.cli.keyboard import Terminal
    from altmas.cli.terminal import TerminalLabeller

    with Terminal() as keyboard:
        labeller = TerminalLabeller(session, annotator or _login(), keyboard, show.console())
        ended = labeller.run()
    show.say(f"{show.counted(len(session.history.labels), 'label')} in {session.path}: {ended}")
    show.hint(f"next: altmas status {session.path}")


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _login() -> str | None:
    """The login name: leases and undo need to know who is who."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None


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
            help="csv, jsonl, parquet or label-studio; by default what the file's name says.",
        ),
    ] = None,
    labels: Annotated[bool, typer.Option("--labels", help="Write the labels told so far instead.")] = False,
    events: Annotated[bool, typer.Option("--events", help="Write the whole log as .jsonl instead.")] = False,
    with_predictions: Annotated[
        bool, typer.Option("--with-predictions", help="Not blind: the model's answers too; recorded as revealed.")
    ] = False,
    force: opt.Force = False,
) -> None:
    """Write the next items as a file for a spreadsheet or Label Studio; or the labels, or the log.

    A file that is there already is refused before anything is drawn: it may hold labels. --force replaces it.
    """
    if labels and events:
        raise PlanError("export writes --labels or --events, not both into one file; nothing was written")
    place = opt.output(file)
    with opened(session) as one, show.working("choosing items"):
        if events:
            said = f"{file}: {one.export_events(place, force=force)} events written"
        elif labels:
            said = str(one.export_labels(place, to, force=force))
        else:
            said = str(one.export(place, n, to, blind=not with_predictions, force=force))
    show.written(said, place)


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
    with opened(session) as one:
        show.say(str(one.import_labels(file, format)))
