"""Classes in groups, so that one of hundreds can be found by eye: as the owner says, or by their first words."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from altmas.errors import PlanError
from altmas.suggest import near

if TYPE_CHECKING:
    from altmas.pool import Name

LEAST = 3
"""A first word that fewer classes share makes no group."""


def class_groups(classes: Sequence["Name"], groups: Mapping[str, Sequence[str]] | None = None) -> list[str]:
    """The group of each class, "" for none: as `groups` says {group: [class, ...]}, else by first words.

    PlanError names what is no class, or in two groups.
    """
    names = [str(name) for name in classes]
    if groups:
        return _checked(names, groups)
    words = [re.split(r"[\s_/.:-]+", name.strip())[0].lower() for name in names]
    shared = Counter(words)
    return [word if LEAST <= shared[word] < len(names) else "" for word in words]


def _checked(names: list[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    group_of: dict[str, str] = {}
    for group, members in groups.items():
        if isinstance(members, str) or not isinstance(members, Sequence):
            raise PlanError(f"group {group!r} is no list of classes; nothing was started")
        for name in map(str, members):
            if name not in names:
                raise PlanError(f"group {group!r}: {name!r} is no class{near(name, names)}; nothing was started")
            if name in group_of:
                raise PlanError(f"class {name!r} is in two groups; expected one; nothing was started")
            group_of[name] = str(group)
    return [group_of.get(name, "") for name in names]
