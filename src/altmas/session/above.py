"""What can be done with a session by code that stands above it: reports, comparisons, files, trackers, the page.

That code imports Session, so Session imports none of it. `altmas` itself, which knows every package, says where each
verb is found; it is imported when it is first used, and `import altmas` stays light.
"""

import importlib
from collections.abc import Callable
from typing import Any

_places: dict[str, str] = {}


def register(**places: str) -> None:
    """Say where verbs are found: "module:function", the function takes the session first."""
    _places.update(places)


def registered() -> dict[str, str]:
    """{verb: "module:function"}."""
    return dict(_places)


def above(verb: str) -> Callable[..., Any]:
    """The function registered for a verb."""
    module, _, function = _places[verb].partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found
