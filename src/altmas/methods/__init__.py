"""What a user picks by name: how points are chosen and how metrics are estimated from their labels."""

from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from typing import Any

from altmas.errors import MethodError
from altmas.methods.altmas import AltMas
from altmas.methods.bald import Bald
from altmas.methods.protocol import Method, Needs, Task
from altmas.methods.tradition import Tradition
from altmas.methods.trust import Trust
from altmas.pool import Pool
from altmas.suggest import near

__all__ = [
    "DEFAULT_METHOD",
    "METHODS",
    "AltMas",
    "Bald",
    "Method",
    "Needs",
    "Task",
    "Tradition",
    "Trust",
    "check",
    "method_named",
    "options_of",
]

METHODS: dict[str, Callable[..., Method]] = {
    "altmas": AltMas,
    "bald": Bald,
    "tradition": Tradition,
    "trust": Trust,
}
"""Built-in methods by name."""

DEFAULT_METHOD = "tradition"


def method_named(wanted: str | Method) -> Method:
    """The method of that name with its default options, or the object itself; MethodError with the near name."""
    if not isinstance(wanted, str):
        return wanted
    if wanted not in METHODS:
        raise MethodError(f"method {wanted!r} does not exist{near(wanted, METHODS) or ';'} known: {', '.join(METHODS)}")
    return METHODS[wanted]()


def options_of(method: Method) -> dict[str, Any]:
    """The options of a method object as plain values, for the session file."""
    return asdict(method) if is_dataclass(method) and not isinstance(method, type) else {}


def check(method: Method, pool: Pool) -> None:
    """MethodError if the pool lacks what the method needs, naming the methods that could."""
    lacks = [
        what
        for what, needed, given in (
            ("features", method.needs.features, pool.features),
            ("scores", method.needs.scores, pool.scores),
        )
        if needed and given is None
    ]
    if lacks:
        able = [name for name, make in METHODS.items() if not _lacking(make(), pool)]
        raise MethodError(
            f"method {method.name!r} needs {' and '.join(lacks)}, which this pool does not have; "
            f"methods that work without: {', '.join(able)}"
        )


def _lacking(method: Method, pool: Pool) -> bool:
    return (method.needs.features and pool.features is None) or (method.needs.scores and pool.scores is None)
