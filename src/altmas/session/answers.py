"""Query: a point that waits for its label. Answer: what an annotator says of it, checked before it is written."""

import math
import unicodedata
from dataclasses import dataclass
from typing import Any

from altmas.errors import PlanError
from altmas.pool import Name, Pool
from altmas.session.log import UNDOABLE, text
from altmas.session.store import Entry

DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that turn the direction of writing: with them one name can look like another."""

NAME_LENGTH = 100
"""Characters that an annotator's name has at most."""


@dataclass(frozen=True)
class Query:
    """A point that is waiting for its label: its id, its row in the pool and what a labeller is shown."""

    id: Name
    index: int
    item: Any = None


def id_of(point: object) -> object:
    """The id of a point that is given by its id or as the query that asked for it."""
    return point.id if isinstance(point, Query) else point


@dataclass(frozen=True)
class Answer:
    """One label, one "skip" or "unsure" with its reason, or one "adjudication": a ruling over the votes on the point.

    seconds  how long the annotator looked;  made_at  when it was made, if it was made elsewhere
    left  the class of the answer that was shown on the left, where two stood side by side
    authenticated  whether the page knew the annotator by a secret; None where nobody looked (a script, a file)
    """

    id: object
    label: object = None
    kind: str = "label"
    annotator: str | None = None
    seconds: float | None = None
    reason: str = ""
    note: str = ""
    made_at: str = ""
    authenticated: bool | None = None
    left: str = ""

    def entry(self, pool: Pool) -> Entry:
        """The answer as it is written down; UnknownPoint, UnknownLabel or PlanError if it cannot be."""
        row = pool.index(self.id)
        if self.kind not in UNDOABLE:
            raise PlanError(f"kind {self.kind!r} does not exist; expected one of {UNDOABLE}; nothing was recorded")
        label = None
        if self.kind in ("label", "adjudication"):
            label = str(pool.classes[pool.code(self.label, where=f"point {self.id!r}: ")])
        fields = {"reason": self.reason, "note": self.note, "made_at": self.made_at, "left": self.left}
        body: dict[str, Any] = {key: text(value) for key, value in fields.items() if value}
        body |= authentication(self.authenticated)
        return Entry(
            self.kind, annotator_name(self.annotator), str(pool.ids[row]), label, _time(self.seconds), body=body
        )


def authentication(authenticated: bool | None) -> dict[str, Any]:
    """What an event says about its annotator's name; nothing where nobody looked."""
    return {} if authenticated is None else {"authenticated": authenticated}


def annotator_name(name: str | None) -> str | None:
    """The name without blanks around it; None if there is none. PlanError if it is not plain text."""
    stripped = None if name is None else str(name).strip()
    for letter in stripped or "":
        if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or letter in DIRECTIONS:
            raise PlanError(
                f"the annotator's name {stripped!r} holds the character U+{ord(letter):04X}, which cannot be seen; "
                "expected plain text without control characters and changes of direction; nothing was recorded"
            )
    if stripped is not None and len(stripped) > NAME_LENGTH:
        raise PlanError(
            f"the annotator's name {stripped[:40]!r}... has {len(stripped)} characters; expected at most "
            f"{NAME_LENGTH}; nothing was recorded"
        )
    return stripped or None


def _time(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    try:
        took = float(seconds)
    except (TypeError, ValueError):
        took = math.nan
    if not (math.isfinite(took) and took >= 0):
        raise PlanError(f"seconds {seconds!r} is not a time; expected a number of at least 0; nothing was recorded")
    return took
