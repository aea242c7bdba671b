"""What the commands print: sentences, tables, JSON; in colour only where a terminal wants it."""

import json
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from altmas.estimates import Estimate, shown_value, shown_worth
from altmas.frames import plain
from altmas.items.parts import text_of
from altmas.outputs import is_stream

if TYPE_CHECKING:
    from rich.console import Console

    from altmas.session.stopping import Decision

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that could make a terminal do something, turn the direction of writing, or cannot be written at all."""

ANY_LENGTH = 1000
"""Width of what is written into a file or a pipe, where lines are as long as they are."""

_quiet = False


def be_quiet(wanted: bool) -> None:
    """From now on: no progress, no hints."""
    global _quiet
    _quiet = wanted


def quiet() -> bool:
    """Whether progress and hints are unwanted."""
    return _quiet


def harmless(value: object) -> str:
    """The text of a value with control characters made visible, so that data cannot drive the terminal."""
    return CONTROL.sub(lambda match: _escaped(ord(match[0])), str(value).replace("\r\n", "\n"))


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def one_line(item: object) -> str:
    """What a labeller is shown, on one line."""
    named = item.items() if isinstance(item, Mapping) else [("", item)]
    text = ", ".join(f"{name}: {text_of(value)}" if name else str(text_of(value)) for name, value in named)
    return " ".join(text.split())


def counted(n: int, what: str) -> str:
    """ "1 label", "2 labels"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def decided(decision: "Decision") -> str:
    """Whether to stop or to go on, and why."""
    return f"{'stop' if decision.stop else 'go on'}: {decision.reason}"


def say(text: str) -> None:
    """A line on stdout."""
    typer.echo(harmless(text))


def written(text: str, path: Path) -> None:
    """A line about a file: on stdout, unless that is where the file itself went."""
    hint(text) if is_stream(path) else say(text)


def paragraph(text: str) -> None:
    """Prose on stdout, in lines that fit the terminal; no path, option or name is broken."""
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    say(textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False))


def hint(text: str) -> None:
    """A line on stderr for people, not with --quiet."""
    if not _quiet:
        typer.echo(harmless(text), err=True)


def warning(sentence: str) -> None:
    """A sentence on stderr about what looks like a mistake, also with --quiet."""
    typer.echo(f"warning: {harmless(sentence)}", err=True)


def error(sentence: str) -> None:
    """The sentence on stderr."""
    typer.echo(f"altmas: {harmless(sentence)}", err=True)


def as_json(value: Any) -> None:
    """The value as JSON on stdout; undefined numbers are null."""
    typer.echo(json.dumps(plain(value), ensure_ascii=False, indent=2, default=str))


def console(*, stderr: bool = False) -> "Console":
    """A rich console; into a file or a pipe it writes lines of any length."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else ANY_LENGTH)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = (), whole: Iterable[str] = ()
) -> None:
    """Rows under column names on stdout; the columns in `right` are aligned to the right.

    On a narrow terminal other columns than these and those in `whole` are folded, between words. Where that is not
    enough nothing is folded or left out: lines are as long as in a file, and the terminal breaks them.
    """
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    right, whole = set(right), {*right, *whole}
    cells = [[harmless(cell) for cell in row] for row in rows]
    screen, least = console(), 0
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for index, name in enumerate(map(harmless, columns)):
        written = [name, *(row[index] for row in cells)]
        pieces = written if columns[index] in whole else [word for text in written for word in text.split()]
        width = max(map(cell_len, pieces), default=0)
        least += width
        shown.add_column(
            Text(name),
            justify="right" if columns[index] in right else "left",
            no_wrap=columns[index] in whole,
            min_width=width,
            overflow="fold",
        )
    for row in cells:
        shown.add_row(*map(Text, row))
    gaps = len(columns) - 1
    if least + gaps > screen.width:
        screen.width = ANY_LENGTH
    elif least + 3 * gaps > screen.width:  # a blank on either side of what divides two columns
        shown.padding = (0, 0, 0, 0)
    screen.print(shown)


def number(value: float, digits: int = 4) -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def bounds(estimate: "Estimate") -> str:
    """The interval of an estimate, or a dash."""
    return "-" if math.isnan(estimate.low) else f"[{estimate.low:.4f}, {estimate.high:.4f}]"


def estimates(
    values: Sequence["Estimate"], drawn: int, floor: int = 0, counting: tuple[int, int] | None = None
) -> None:
    """Every metric with its interval and what the labels are worth; no number from fewer than `floor` labels.

    What is to be said of some of them stands below the table, once, so that the table is no wider than its numbers.

    drawn     labels that the method drew: with few of them nothing is said of what they are worth
    counting  (labels that count, all labels) where some of them wait for the answer to an earlier draw
    """
    if not values:
        return
    level = f"{values[0].confidence * 100:g} % interval"
    columns = ("metric", "estimate", level, "±", "labels", "worth", "kind")
    rows = [_few(estimate) if estimate.labels < floor else _estimate(estimate, drawn, counting) for estimate in values]
    table(columns, rows, right=("estimate", "±", "labels", "worth"), whole=(level,))
    notes: dict[str, list[str]] = {}
    for estimate in values:
        if estimate.labels >= floor and (note := _note(estimate)):
            notes.setdefault(note, []).append(estimate.metric)
    for note, names in notes.items():
        say(f"{'all metrics' if len(names) == len(values) > 1 else ', '.join(names)}: {note}")


def _estimate(estimate: "Estimate", drawn: int, counting: tuple[int, int] | None) -> tuple[str, ...]:
    value = shown_value(estimate.value, estimate.labels)
    worth = number(shown_worth(estimate.effective_labels, drawn), 0)
    labels = str(estimate.labels)
    if counting is not None and estimate.labels == counting[1]:
        labels = f"{counting[0]} of {counting[1]}"
    width = number(estimate.half_width, 3)
    return estimate.metric, value, bounds(estimate), width, labels, worth, _kind(estimate)


def _kind(estimate: "Estimate") -> str:
    return "no interval" if estimate.interval == "none" else estimate.interval


def _note(estimate: "Estimate") -> str:
    """What is to be said of an estimate, or why it has no interval; the table says that it has none."""
    return estimate.note.removeprefix("undefined: ").removeprefix("no interval: ")


def _few(estimate: "Estimate") -> tuple[str, ...]:
    return estimate.metric, "insufficient", "-", "-", str(estimate.labels), "-", "too few labels"


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner with the time elapsed on stderr while something without steps runs."""
    if _quiet or not sys.stderr.isatty():
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        progress.add_task(what, total=None)
        yield
