"""A progress bar with the time left, on stderr, for work that takes a while; in a notebook a line of text."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress


class Bar(Protocol):
    """What long work tells about itself."""

    def advance(self, steps: int) -> None:
        """So many steps are done."""

    def say(self, text: str) -> None:
        """What is happening now."""


class _Shown:
    def __init__(self, progress: "Progress", title: str, total: int) -> None:
        self.progress, self.task = progress, progress.add_task(title, total=total)

    def advance(self, steps: int) -> None:
        self.progress.advance(self.task, steps)

    def say(self, text: str) -> None:
        self.progress.update(self.task, description=text)


class _Silent:
    def advance(self, steps: int) -> None:
        pass

    def say(self, text: str) -> None:
        pass


class _Line:
    """One line on stderr that is written over, at most four times a second: what every notebook can show."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.started, self.written = time.monotonic(), -1.0

    def advance(self, steps: int) -> None:
        self.done += steps
        self._write()

    def say(self, text: str) -> None:
        self.title = text
        self._write()

    def _write(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if not last and now - self.written < 0.25:
            return
        self.written, elapsed = now, now - self.started
        left = f", {elapsed / self.done * (self.total - self.done):.0f} s left" if 0 < self.done < self.total else ""
        text = f"{self.title}: {self.done} of {self.total} in {elapsed:.0f} s{left}"
        print(f"\r{text:<60}", end="\n" if last else "", file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def progress_bar(title: str, total: int, *, shown: bool = True) -> Iterator[Bar]:
    """A bar of `total` steps while the block runs; silent when not shown."""
    if not shown:
        yield _Silent()
        return
    if in_notebook():
        line = _Line(title, total)
        try:
            yield line
        finally:
            line._write(last=True)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield _Shown(progress, title, total)
