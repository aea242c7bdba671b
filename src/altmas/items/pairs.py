"""Two answers side by side: which fields of an item they are, which class each means, and which stands on the left.

The order is shuffled from item to item by the session's seed: a habit of choosing one side favours neither class.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from altmas.errors import PlanError
from altmas.items.keys import class_keys, shown_order
from altmas.suggest import listing

if TYPE_CHECKING:
    from altmas.pool import Name, Pool


@dataclass(frozen=True)
class Pair:
    """The codes of the two classes that mean "this answer is the better one", and the fields that hold the answers."""

    codes: tuple[int, int]
    fields: tuple[str, str]

    def sides(self, id: "Name", seed: int) -> "Pair":
        """The pair as it is shown for one item: left first."""
        digest = hashlib.sha256(f"sides:{seed}:{id}".encode()).digest()
        return self if digest[0] % 2 else Pair(self.codes[::-1], self.fields[::-1])


def pair_of(pool: "Pool", field_of: Mapping[str, str] | None = None) -> Pair | None:
    """The pair that the items of a pool hold: as `field_of` says {class: field}, or seen from the names of the fields.

    Seen where exactly two classes are called like a field, or like the ends of two fields that begin alike: classes
    a, b and tie with fields a and b, or answer_a and answer_b. PlanError if a pair is given that the items do not hold.
    """
    item = pool.items[0] if pool.items is not None and len(pool) else None
    names = [str(name) for name in item] if isinstance(item, dict) else []
    classes = [str(name) for name in pool.classes]
    if field_of is not None:
        return _named_pair(field_of, classes, names)
    fields = {code: _field(name, names) for code, name in enumerate(classes)}
    codes = [code for code, field in fields.items() if field is not None]
    if len(codes) != 2:
        return None
    first, second = (str(fields[code]) for code in codes)
    alike = first.removesuffix(classes[codes[0]]) == second.removesuffix(classes[codes[1]])
    return Pair((codes[0], codes[1]), (first, second)) if alike and first != second else None


def shown_keys(classes: Sequence["Name"], pair: Pair | None, own_keys: Mapping[str, str] | None = None) -> list[str]:
    """The keys of the classes; where two answers stand side by side, left and right have the first two."""
    if pair is None:
        return class_keys(classes, own_keys)
    if own_keys:
        raise PlanError(
            "keys cannot be given where two answers stand side by side: 1 is left and 2 is right; nothing was started"
        )
    order = [*pair.codes, *(code for code in shown_order(classes) if code not in pair.codes)]
    keys = dict(zip(order, class_keys([f"class {classes[code]}" for code in order]), strict=True))
    return [keys[code] for code in range(len(classes))]


def _field(name: str, names: list[str]) -> str | None:
    """The only field that is called like a class, or ends in "_" and its name."""
    matches = [field for field in names if field == name] or [field for field in names if field.endswith(f"_{name}")]
    return matches[0] if len(matches) == 1 else None


def _named_pair(field_of: Mapping[str, str], classes: list[str], names: list[str]) -> Pair:
    if len(field_of) != 2 or len(set(field_of.values())) != 2:
        raise PlanError(f"a pair is two classes, each with its field; {len(field_of)} were given; nothing was started")
    for name, field in field_of.items():
        if name not in classes:
            raise PlanError(f"pair: {name!r} is no class (known: {listing(classes)}); nothing was started")
        if field not in names:
            known = listing(names) if names else "none: items are shown by --show, repeated"
            raise PlanError(f"pair: the items have no field {field!r} (known: {known}); nothing was started")
    (first_class, first), (second_class, second) = field_of.items()
    return Pair((classes.index(first_class), classes.index(second_class)), (first, second))
