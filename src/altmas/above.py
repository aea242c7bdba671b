"""Functions that are reached by name: code that imports its caller, or that loads much which its caller seldom needs.

A session can be reported, compared and exported by code that imports Session; a pool can be made of a table by code
that imports Pool and loads pyarrow. `altmas` itself, which knows every package, says where each function is; it is
imported when it is first used, and `import altmas` stays light.
"""

import importlib
from collections.abc import Callable
from typing import Any

_registered: dict[str, str] = {}


def register(**functions: str) -> None:
    """Say where functions are: name="module:function"."""
    _registered.update(functions)


def registered() -> dict[str, str]:
    """{name: "module:function"}."""
    return dict(_registered)


def above(name: str) -> Callable[..., Any]:
    """The function registered under a name."""
    module, _, function = _registered[name].partition(":")
    return getattr(importlib.import_module(module), function)  # type: ignore[no-any-return]
