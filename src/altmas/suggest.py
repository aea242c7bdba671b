"""Sentences that help: the near match of a mistyped name."""

from collections.abc import Iterable
from difflib import get_close_matches


def near(given: object, known: Iterable[object]) -> str:
    """`"; did you mean 'x'?"` when one of the known names is close to the given one, else an empty string."""
    names = [str(name) for name in known]
    lower = {name.lower(): name for name in names}
    typed = str(given).lower()
    begun = [name for name in lower if len(typed) >= 3 and name.startswith(typed)]
    matches = [min(begun, key=len)] if begun else get_close_matches(typed, lower, n=1, cutoff=0.6)
    return f"; did you mean {lower[matches[0]]!r}?" if matches else ""


def listing(names: Iterable[object], most: int = 12) -> str:
    """The names quoted and separated by commas, cut after `most` of them."""
    quoted = [repr(name) for name in names]
    return ", ".join(quoted[:most]) + (f", ... ({len(quoted)} in all)" if len(quoted) > most else "")
