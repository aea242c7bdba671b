"""The application: how commands are registered, and how every failure becomes a sentence and an exit code.

0 done (for `check`: shown) · 1 refuted · 2 bad input or usage · 3 undecided · 70 a fault of altmas · 130 Ctrl-C
"""

import errno
import functools
import inspect
import logging
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from altmas.cli import show
from altmas.cli.speech import mended, spoken
from altmas.errors import AltmasError, PlanError, UnknownPoint
from altmas.version import __version__

SYSTEM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
"""Errors of the disk, and rights that are missing."""

FAULT = 70
"""Exit code of an unexpected error (EX_SOFTWARE): never 1, which `check` gives a meaning."""

app = typer.Typer(
    name="altmas",
    help="How good is this classifier on my data, when labels are expensive?",
    epilog="Try it:  altmas demo\n\nEach command shows an example:  altmas init --help",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

START, LABEL, READ, TRUST = "Start", "Label", "Read the result", "Check that it works"
"""Headings under which commands are listed."""

Command = Callable[..., None]

trusted: ContextVar[bool] = ContextVar("trusted", default=False)
"""Whether the session file that the command opens may name code to be imported (--trust)."""


invoked: ContextVar[tuple[str, list[str]]] = ContextVar("invoked", default=("altmas", []))
"""The command that runs, and its arguments as they were written."""


class OneValueEach(TyperCommand):
    """A command that refuses an option which takes one value and is given twice: neither is silently dropped."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; of flags help shows no type, since they take no value."""
        params = list(super().get_params(ctx))
        for param in params:
            if getattr(param, "is_flag", False):
                param.display_type_rich = lambda ctx: None  # type: ignore[attr-defined]
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The remaining arguments; a usage error names an option that was repeated."""
        invoked.set((ctx.command_path, list(args)))
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        options: list[Any] = [option for option in order if option.param_type_name == "option"]
        single = [option for option in options if not (option.multiple or getattr(option, "is_flag", False))]
        twice = next((option for position, option in enumerate(single) if option in single[:position]), None)
        if twice is not None:
            with sentences():
                raise PlanError(
                    f"{twice.opts[0]} was given {single.count(twice)} times and takes one value (the last was "
                    f"{given[twice.name]!r}); give it once; `{ctx.command_path} --help` says what is repeatable"
                )
        return list(super().parse_args(ctx, args))


def literal(text: str) -> str:
    """Help text in which square brackets stand for themselves, not for markup."""
    return text.replace("[", r"\[")


def command(name: str, heading: str, *examples: str, notes: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Register a function as a command, with -q, -v, its examples and notes; its errors become sentences."""

    def register(function: Command) -> Command:
        @functools.wraps(function)
        def run(*args: Any, quiet: bool = False, verbose: bool = False, trust: bool = False, **options: Any) -> None:
            show.be_quiet(quiet)
            trusted.set(trust)
            if verbose:
                logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s: %(message)s")
            with sentences():
                function(*args, **options)

        _add_options(run, function)
        heads = "Example:" if len(examples) == 1 else "Examples:"
        epilog = "\n\n".join([heads, *(f"$ {example}" for example in examples), *notes])
        paragraphs = (inspect.getdoc(function) or "").split("\n\n")
        docs = literal("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs))
        app.command(name, cls=OneValueEach, rich_help_panel=heading, help=docs, epilog=literal(epilog))(run)
        return function

    return register


def _add_options(run: Callable[..., None], function: Command) -> None:
    """Give the wrapper the function's parameters, the options of every command, and --trust if it opens a session."""
    common = {
        "quiet": Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no hints.")],
        "verbose": Annotated[bool, typer.Option("--verbose", "-v", help="Say on stderr what is going on.")],
    }
    signature = inspect.signature(function)
    if "session" in signature.parameters and function.__name__ != "init":  # init writes a session and opens none
        common["trust"] = Annotated[bool, typer.Option("--trust", help="Import and run what the session file names.")]
    extra = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in common.items()
    ]
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in signature.parameters.values()]
    run.__signature__ = signature.replace(parameters=[*own, *extra])  # type: ignore[attr-defined]
    run.__annotations__ = {**function.__annotations__, **common}


@contextmanager
def sentences() -> Iterator[None]:
    """Errors that are meant for people end the program with their sentence on stderr, without a traceback."""
    try:
        yield
        sys.stdout.flush()
    except UnknownPoint as error:  # a guessed id in a command that records would be another item
        raise _ended(spoken(str(error), invoked.get()[0]), f"{invoked.get()[0]} --help") from None
    except AltmasError as error:
        said = spoken(str(error), invoked.get()[0])
        raise _ended(said, "" if _of_the_system(error) else mended(said, *invoked.get())) from None
    except BrokenPipeError:
        # The reader has gone (`altmas ask ... | head`); point stdout elsewhere so that nothing is said at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(141) from None
    except OSError as error:
        if error.filename is None or error.strerror is None:
            raise
        raise _ended(f"{error.filename}: {error.strerror}") from None


def _of_the_system(error: AltmasError) -> bool:
    """Whether the disk or the rights of the user are at fault: then no other words on the command line mend it."""
    cause = error.__cause__
    return isinstance(cause, sqlite3.Error) or (isinstance(cause, OSError) and cause.errno in SYSTEM)


def _ended(sentence: str, remedy: str = "") -> typer.Exit:
    show.error(sentence)
    if remedy:
        show.hint(f"try: {remedy}")
    return typer.Exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"altmas {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """How good is this classifier on my data, when labels are expensive?"""


def main() -> None:
    """Run the command line; the process ends here."""
    try:
        app(prog_name="altmas")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:
        logging.getLogger("altmas").critical("a fault of altmas, not of your data; please report it", exc_info=True)
        sys.exit(FAULT)
