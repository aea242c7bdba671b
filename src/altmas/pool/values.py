"""Values of classes: the numbers that `mean`, `share[>=...]`, `weighted_kappa` and an ordered belief take them for."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from altmas.errors import PoolError
from altmas.pool.naming import Name
from altmas.suggest import listing, near

EXAMPLE = "values={'bad': 0, 'ok': 1} (--value bad=0 --value ok=1)"


def named_values(values: Any) -> dict[Any, Any]:
    """{class: value} as given; PoolError if it is none."""
    if not isinstance(values, Mapping) or not values:
        raise PoolError(f"values {values!r} was not understood; expected {EXAMPLE}")
    return dict(values)


def values_by_class(values: Any, classes: Sequence[Name], find: Callable[[object], int | None]) -> tuple[float, ...]:
    """(C,) the value of each class from {class: number}; PoolError if one has none, or what is given is no number.

    find  the code of a class name, or None
    """
    by_code: dict[int, float] = {}
    for name, value in named_values(values).items():
        code = find(name)
        if code is None:
            raise PoolError(f"values: {name!r} is not one of the classes {listing(classes)}{near(name, classes)}")
        if code in by_code:
            raise PoolError(f"values: the class {classes[code]!r} has two values")
        by_code[code] = _number(name, value)
    if missing := [name for code, name in enumerate(classes) if code not in by_code]:
        raise PoolError(f"values: no value for {listing(missing)}; every class needs one")
    if len(set(by_code.values())) == 1:
        raise PoolError(f"values: every class has the value {by_code[0]:g}, so they tell no class from another")
    return tuple(by_code[code] for code in range(len(classes)))


def _number(name: object, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise PoolError(f"values: {value!r} of class {name!r} is not a number; expected {EXAMPLE}")
    return number


def numbers_of(classes: Sequence[Name], values: Sequence[float] | None) -> tuple[float, ...] | None:
    """(C,) what the classes count as: their values, or the numbers that their names are; None if neither."""
    if values is not None:
        return tuple(values)
    try:
        numbers = tuple(float(str(name)) for name in classes)
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None
