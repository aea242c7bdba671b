"""altmas label: items answered on the page or in the terminal."""

import getpass
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import LABEL, command
from altmas.cli.keyboard import Terminal
from altmas.cli.terminal import TerminalLabeller
from altmas.errors import FileError, PlanError
from altmas.session import LEASE_SECONDS, Session

NETWORK = "The page"
SHOWN = "What annotators see"
GROUPS = '{"group": ["class", ...], ...}'


@command(
    "label",
    LABEL,
    "altmas label xray.altmas",
    "altmas label xray.altmas --terminal --annotator ana",
    "altmas label xray.altmas --class-key pneumonia=p --no-reveal",
    "altmas label xray.altmas --host 0.0.0.0 --port 8377 --people people.txt",
    "altmas label xray.altmas --people people.txt --allowed-host https://lab.example --root-path /labels",
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
            help="A further name under which people reach the page, https://NAME behind a proxy; repeatable.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(
            "--people",
            metavar="FILE",
            help="One annotator in each line; each gets a link of their own, kept in FILE.links.",
            rich_help_panel=NETWORK,
            show_default=False,
        ),
    ] = None,
    owner_key: Annotated[
        str | None,
        typer.Option(
            "--owner-key",
            envvar="ALTMAS_OWNER_KEY",
            help="What the overview needs; by default one is made up and printed.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    root_path: Annotated[
        str,
        typer.Option(
            "--root-path",
            metavar="PATH",
            help="Path in front of all addresses, behind a proxy.",
            rich_help_panel=NETWORK,
            show_default=False,
        ),
    ] = "",
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--certificate",
            metavar="FILE",
            help="TLS certificate (PEM): the page is served by https.",
            rich_help_panel=NETWORK,
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="Private key of the certificate (PEM), unless it is in the same file.",
            rich_help_panel=NETWORK,
            show_default=False,
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.", rich_help_panel=NETWORK)
    ] = True,
    question: Annotated[
        str,
        typer.Option(
            "--question",
            help="What is asked of every item; by default the first line of the instructions.",
            rich_help_panel=SHOWN,
            show_default=False,
        ),
    ] = "",
    reveal: Annotated[
        bool,
        typer.Option(
            "--reveal/--no-reveal",
            help="Whether predictions may be looked at; looks are logged.",
            rich_help_panel=SHOWN,
        ),
    ] = True,
    class_keys: Annotated[
        list[str] | None,
        typer.Option(
            "--class-key",
            metavar="CLASS=KEY",
            help="The key of a class, a digit or a letter; repeatable.",
            rich_help_panel=SHOWN,
        ),
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(
            "--pair",
            metavar="CLASS=COLUMN",
            help="Twice: two answers side by side, in shuffled order, and the class that says that each is the better.",
            rich_help_panel=SHOWN,
        ),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(
            "--groups",
            metavar="FILE",
            help='JSON {"group": ["class", ...]}: how many classes are listed; by default by their first words.',
            rich_help_panel=SHOWN,
            show_default=False,
        ),
    ] = None,
    lease: Annotated[
        float, typer.Option("--lease", min=0, help="Seconds for which an item stays with whoever was shown it.")
    ] = LEASE_SECONDS,
) -> None:
    """Label items: on a page in the browser, or with --terminal here.

    Blind: nobody sees what the model says unless they ask for it, and that is recorded. Every label is on disk
    before it is shown as saved. The page stays on this machine unless --host says otherwise.
    """
    keys = given.pairs("--class-key", class_keys)
    sides = given.pairs("--pair", pair) if pair else None
    _refuse_read_only(session)
    with given.opened(session) as opened:
        if terminal:
            _in_terminal(opened, annotator, keys=keys, pair=sides, reveal=reveal, question=question)
            return
        opened.label(
            host=host,
            port=port,
            open_browser=browser,
            token=token,
            annotator=annotator,
            allowed_hosts=allowed_hosts or (),
            people=people,
            owner_key=owner_key,
            root_path=root_path,
            certificate=certificate,
            key=key,
            question=question,
            reveal=reveal,
            keys=keys,
            pair=sides,
            groups=_groups(groups),
            lease=lease,
        )


def _refuse_read_only(session: Path) -> None:
    """FileError if no label could be recorded; a file that is not there is met when it is opened."""
    if session.exists() and not (os.access(session, os.W_OK) and os.access(session.absolute().parent, os.W_OK)):
        raise FileError(
            f"{session} cannot be written, as it or its folder is read-only: no label could be recorded; nothing was "
            "started"
        )


def _in_terminal(session: "Session", annotator: str | None, **options: Any) -> None:
    if not _has_terminal():
        raise PlanError(
            "label --terminal needs a terminal to read keys from; in a script use `altmas ask` and `altmas tell`; "
            "nothing was recorded"
        )
    with Terminal() as keyboard:
        labeller = TerminalLabeller(session, annotator or _login(), keyboard, show.console(), **options)
        ended = labeller.run()
    show.say(f"{show.counted(len(session.history.labels), 'label')} in {session.path}: {ended}")
    show.hint(f"next: altmas status {session.path}")


def _groups(file: Path | None) -> dict[str, Any] | None:
    """The groups of classes in a JSON file; FileError or PlanError if it holds none."""
    if file is None:
        return None
    try:
        groups = json.loads(file.read_text(encoding="utf-8"))
    except OSError as cause:
        raise FileError(f"{file} cannot be read ({cause.strerror}); nothing was started") from cause
    except ValueError as cause:
        raise FileError(f"{file} is no JSON; expected {GROUPS}; nothing was started") from cause
    if not isinstance(groups, dict):
        raise FileError(f"{file} holds no groups; expected {GROUPS}; nothing was started")
    return groups


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _login() -> str | None:
    """The login name: leases and undo need to know who is who."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
