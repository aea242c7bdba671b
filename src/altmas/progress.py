"""A progress bar with the time left, on stderr, for work that takes a while."""

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


@contextmanager
def progress_bar(title: str, total: int, *, shown: bool = True) -> Iterator[Bar]:
    """A bar of `total` steps while the block runs; silent when not shown."""
    if not shown:
        yield _Silent()
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
