"""Which key labels which class: shown on the buttons, the same on the page and in the terminal."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from altmas.errors import PlanError
from altmas.suggest import listing, near

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
MOST_KEYS = len(DIGITS) + len(LETTERS)
"""More classes than this are found by typing; 1-9 are those that were chosen last."""


def class_keys(classes: Sequence["Name"], own_keys: Mapping[str, str] | None = None) -> list[str]:
    """One key for each class: that in `own_keys` {class: key}, else 1-9, then letters; all "" where there are too many.

    Where every class is called by one digit, that digit is its key: whoever sees a 7 presses 7. Grades have their keys
    in the order of their values. PlanError if a key that is given cannot be one.
    """
    names = [str(name) for name in classes]
    chosen = _checked(own_keys or {}, names)
    if len(names) > MOST_KEYS:
        return [""] * len(names)
    if not chosen and all(len(name) == 1 and name in "0123456789" for name in names):
        return names
    free = iter([key for key in (*DIGITS, *LETTERS) if key not in chosen.values()])
    keys = {names[code]: chosen.get(names[code]) or next(free, "") for code in shown_order(classes)}
    return [keys[name] for name in names]


def grade_values(classes: Sequence["Name"]) -> list[float] | None:
    """The number that each class is called by, where all are: grades, which have an order; None for names."""
    try:
        values = [float(str(name)) for name in classes]
    except ValueError:
        return None
    return values if all(math.isfinite(value) for value in values) else None


def shown_order(classes: Sequence["Name"]) -> list[int]:
    """Codes in the order in which classes are shown: grades by value, names as they are."""
    values = grade_values(classes)
    return list(range(len(classes))) if values is None else sorted(range(len(classes)), key=values.__getitem__)


def _checked(own_keys: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """{class: key} in lower case; PlanError names the first that cannot be a key."""
    chosen: dict[str, str] = {}
    if own_keys and len(names) > MOST_KEYS:
        raise PlanError(
            f"keys were given, but with {len(names)} classes the letters search; expected at most {MOST_KEYS} classes; "
            "nothing was started"
        )
    for name, key in own_keys.items():
        if name not in names:
            raise PlanError(
                f"key {key!r} is for {name!r}, which is no class (known: {listing(names)}){near(name, names)}; "
                "nothing was started"
            )
        key = key.lower()
        if len(key) != 1 or key not in "0" + DIGITS + LETTERS:
            taken = f": it is the one for {COMMANDS[key]}" if key in COMMANDS else ""
            raise PlanError(
                f"key {key!r} of class {name!r} cannot be used{taken}; expected a digit or one of {LETTERS}; "
                "nothing was started"
            )
        if key in chosen.values():
            raise PlanError(f"key {key!r} was given to two classes; give each its own; nothing was started")
        chosen[name] = key
    return chosen
