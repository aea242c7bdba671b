"""Which key labels which class: shown on the buttons, the same on the page and in the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from altmas.pool import Name

COMMANDS = {
    "u": "unsure",
    "s": "skip",
    "z": "undo",
    "n": "note",
    "r": "reveal",
    "i": "instructions",
    "c": "definitions",
}
"""Letters that never label, whatever the classes are called."""

DIGITS = "123456789"
LETTERS = "".join(letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in COMMANDS)


def class_keys(classes: Sequence["Name"]) -> list[str]:
    """One key for each class: 1-9, then letters, then "" for those that only the search box reaches.

    Where every class is called by one digit, that digit is its key: whoever sees a 7 presses 7.
    """
    names = [str(name) for name in classes]
    if all(len(name) == 1 and name in "0123456789" for name in names):
        return names
    keys = [*DIGITS, *LETTERS][: len(names)]
    return keys + [""] * (len(names) - len(keys))
