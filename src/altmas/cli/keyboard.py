"""Single keys and short lines from a terminal."""

import os
import sys
from types import TracebackType
from typing import Protocol, Self

ESCAPE, END = "\x1b", "\x04"


class Keyboard(Protocol):
    """Where a labeller's answers come from."""

    def key(self) -> str:
        """The next key; END once there is no more."""

    def line(self, prompt: str) -> str:
        """A line of text, without its end; empty once there is no more."""


class Terminal:
    """The keyboard of the terminal that the program was started in; Ctrl-C still interrupts."""

    def __enter__(self) -> Self:
        if sys.platform != "win32":
            import termios
            import tty

            self._usual = termios.tcgetattr(sys.stdin.fileno())
            tty.setcbreak(sys.stdin.fileno(), termios.TCSADRAIN)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if sys.platform != "win32":
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._usual)

    def key(self) -> str:
        if sys.platform == "win32":
            import msvcrt

            return str(msvcrt.getwch())
        first = os.read(sys.stdin.fileno(), 1)
        if not first:
            return END
        if first == b"\x1b":
            return first.decode() + self._waiting()
        more = sum(first[0] >= start for start in (0xC0, 0xE0, 0xF0))  # bytes that follow in UTF-8
        return (first + (os.read(sys.stdin.fileno(), more) if more else b"")).decode(errors="replace")

    def _waiting(self) -> str:
        """The rest of an arrow or function key, which sends several characters at once."""
        import select

        ready, _, _ = select.select([sys.stdin], [], [], 0.02)
        return os.read(sys.stdin.fileno(), 16).decode(errors="replace") if ready else ""

    def line(self, prompt: str) -> str:
        self.__exit__(None, None, None)
        try:
            return input(prompt)
        except EOFError:
            return ""
        finally:
            self.__enter__()
