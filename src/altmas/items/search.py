"""Finding a class by a part of its name, where there are too many for keys."""

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from altmas.pool import Name


def plain(name: object) -> str:
    """A name in lower case, without accents, its words with one blank between them: "_" is one, too."""
    letters = unicodedata.normalize("NFD", str(name)).lower()
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[\s_/.:-]+", " ", bare).strip()


def found(typed: str, names: "Sequence[Name]") -> "list[Name]":
    """The names that fit best: equal, beginning so, with words in any order that begin so, or with such initials."""
    query = plain(typed)
    parts = query.split(" ")
    if not query:
        return []
    tests = (
        lambda name, words: name == query,
        lambda name, words: name.startswith(query),
        lambda name, words: all(any(word.startswith(part) for word in words) for part in parts),
        lambda name, words: "".join(word[0] for word in words).startswith(query),
    )
    for test in tests:
        if fitting := [name for name in names if test(plain(name), plain(name).split(" "))]:
            return fitting
    return []
