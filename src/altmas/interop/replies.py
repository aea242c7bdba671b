"""What files say about points: replies, each with the place it was read from, and their way into a session.

Replies are checked one and all before the first is written, so a file is taken in whole or not at all.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from altmas.errors import FileError, PlanError, UnknownPoint
from altmas.pool import Name, Pool
from altmas.pool.naming import as_whole, is_missing, plain
from altmas.session.answers import Answer, annotator_name
from altmas.session.log import RULINGS, UNDOABLE
from altmas.session.store import Event
from altmas.suggest import listing, near

if TYPE_CHECKING:
    from altmas.session import Session

KINDS = UNDOABLE

COLUMNS = ("id", "label", "annotator", "seconds", "created_at", "kind", "reason")
"""The columns of a plain file of labels; only `id` and `label` have to be there."""


@dataclass(frozen=True)
class Reply:
    """What one annotator said about one point; `where` is the file and the row it stands in.

    number  the annotator's number in the tool that made the file, where it has one
    """

    id: object
    label: object
    annotator: str | None = None
    seconds: float | None = None
    created_at: str | None = None
    kind: str = "label"
    reason: str = ""
    where: str = ""
    number: str | None = None

    def answer(self) -> Answer:
        """The reply as the session takes it."""
        ruled_or_labelled = self.kind in ("label", *RULINGS)
        reason, note = ("", self.reason) if ruled_or_labelled else (self.reason, "")
        made_at = self.created_at or ""
        return Answer(self.id, self.label, self.kind, self.annotator, self.seconds, reason, note, made_at)


@dataclass(frozen=True)
class ImportResult:
    """What an import recorded.

    labels     points labelled by an annotator who had not answered there before
    unasked    points among them that the session had not asked for
    revisions  answers that replace another one of the same annotator
    skips      "skip" and "unsure" answers;  rulings  on points that people differed on
    unchanged  answers that the session had already;  blank  rows without an answer
    """

    path: Path
    format: str
    labels: int = 0
    revisions: int = 0
    skips: int = 0
    rulings: int = 0
    unchanged: int = 0
    blank: int = 0
    unasked: int = 0

    def __str__(self) -> str:
        counts = (
            (self.labels, "label"),
            (self.revisions, "revision"),
            (self.skips, "skip"),
            (self.rulings, "ruling"),
        )
        phrases = [f"{count} {name}{'s' * (count != 1)}" for count, name in counts if count]
        rest = [f"{self.unchanged} known already"] * bool(self.unchanged) + [f"{self.blank} blank"] * bool(self.blank)
        if self.unasked:
            rest.append(f"{self.unasked} not asked for: labels that stand for no other item")
        return f"{self.path.name}: {', '.join(phrases) or 'nothing new'}" + (f" ({', '.join(rest)})" if rest else "")


# ---------------------------------------------------------------- from raw values


def reply_of(row: Mapping[str, Any], where: str) -> Reply | None:
    """The reply in one row of a plain file, None for a row that was not answered; FileError on a bad value."""
    id, label = row.get("id"), row.get("label")
    if _is_blank(id):
        if all(_is_blank(value) for value in row.values()):
            return None
        raise FileError(f"{where}: the id is missing; nothing was recorded")
    kind = text(row.get("kind"), where, "kind").strip().lower() or "label"
    if kind not in KINDS:
        raise FileError(f"{where}: kind {kind!r} is none of {listing(KINDS)}{near(kind, KINDS)}; nothing was recorded")
    if _is_blank(label):
        if kind == "label":
            return None
        label = None
    elif kind in ("skip", "unsure", "unsettled"):
        raise FileError(f"{where}: it has the label {label!r} and is marked {kind!r}; nothing was recorded")
    if kind == "adjudication" and label is None:
        raise FileError(f"{where}: an adjudication without a label; nothing was recorded")
    return Reply(
        id=scalar(id, where, "id"),
        label=None if label is None else scalar(label, where, "label"),
        annotator=annotator_of(row.get("annotator"), where),
        seconds=seconds_of(row.get("seconds"), where),
        created_at=text(row.get("created_at"), where, "created_at") or None,
        kind=kind,
        reason=text(row.get("reason"), where, "reason"),
        where=where,
    )


def annotator_of(value: object, where: str) -> str | None:
    """The name of an annotator, None if there is none; FileError on one that is not plain text."""
    try:
        return annotator_name(text(value, where, "annotator"))
    except PlanError as cause:
        raise FileError(f"{where}: {cause}") from cause


def scalar(value: object, where: str, what: str) -> object:
    """A name as a plain value; FileError on lists, objects and texts that cannot be stored."""
    value = plain(value)
    if isinstance(value, str):
        return text(value, where, what)
    if not isinstance(value, int | float):
        raise FileError(f"{where}: the {what} {str(value)[:80]!r} is no text and no number; nothing was recorded")
    return as_whole(value)


def text(value: object, where: str, what: str) -> str:
    """A value as text, "" where it is missing."""
    value = as_whole(plain(value)) if not isinstance(value, str) else value
    if value is None or _is_blank(value):
        return ""
    if isinstance(value, dict | list | tuple):
        raise FileError(f"{where}: {what} holds {str(value)[:80]!r}; expected a text; nothing was recorded")
    written = value.isoformat() if hasattr(value, "isoformat") else str(value)
    if any("\ud800" <= letter <= "\udfff" for letter in written):
        raise FileError(f"{where}: the {what} holds half a character (a lone surrogate); nothing was recorded")
    return str(written)


def seconds_of(value: object, where: str) -> float | None:
    """A time in seconds, None where there is none; a decimal comma is understood."""
    value = plain(value)
    if value is None or _is_blank(value) or (isinstance(value, str) and not value.strip()):
        return None
    try:
        seconds = float(value.strip().replace(",", ".") if isinstance(value, str) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if isinstance(value, bool) or not (math.isfinite(seconds) and seconds >= 0):
        raise FileError(f"{where}: {str(value)[:80]!r} is no time in seconds; nothing was recorded")
    return seconds


# ---------------------------------------------------------------- into the session


PEOPLE = "label-studio people"
"""Kind of the events that say which number of Label Studio is whom: {number: name}."""


def record(session: "Session", replies: Sequence[Reply], path: Path, format: str, blank: int) -> ImportResult:
    """Record the replies that are new, all or none; what was recorded."""
    names = _names_of_numbers(session, replies)
    replies = [replace(reply, annotator=names.get(reply.number or "", reply.annotator)) for reply in replies]
    said = checked(replies, session.pool)
    counts: dict[str, int] = {}

    def news(standing: list[Event]) -> list[Answer]:
        new, new_counts = news_in(said, standing)
        counts.update(new_counts)
        return [reply.answer() for reply in sorted(new, key=lambda reply: reply.kind in RULINGS)]

    before = len(session.history.volunteered)
    session.answer_new(news)
    unasked = max(len(session.history.volunteered) - before, 0)
    if fresh := {number: name for number, name in names.items() if _known_people(session).get(number) != name}:
        session.record(PEOPLE, {"names": fresh})
    return ImportResult(path, format, **counts, blank=blank, unasked=unasked)


def _known_people(session: "Session") -> dict[str, str]:
    """{number: name} that earlier files told."""
    return {
        number: name
        for event in session.events()
        if event["kind"] == PEOPLE
        for number, name in event["body"]["names"].items()
    }


def _names_of_numbers(session: "Session", replies: Sequence[Reply]) -> dict[str, str]:
    """{number: the one name of that person}: one style of Label Studio's exports has addresses, another numbers.

    The name under which the session has answers already is kept. Where a file contradicts an earlier one (another
    server, on which the number is somebody else's) its own address counts.
    """
    numbered = [reply for reply in replies if reply.number is not None]
    if not numbered:
        return {}
    known, voters = _known_people(session), {event.annotator for event in session.standing()}
    names: dict[str, str] = {}
    for reply in numbered:
        number, address = str(reply.number), reply.annotator
        if address is None or address == number:
            names.setdefault(number, known.get(number, number))
        elif known.get(number) in (address, number):
            names[number] = known[number]
        else:
            used_number = number in voters and address not in voters and number not in known
            names[number] = number if used_number else address
    return names


Key = tuple[str, str | None, bool]
"""(point, annotator, whether it is a ruling): of the answers with the same key the last one counts."""


@dataclass(frozen=True)
class Said:
    """A reply about a point of the pool: the point's id as it is stored, and the class's name."""

    reply: Reply
    point: str
    label: str | None

    @property
    def key(self) -> Key:
        return self.point, self.reply.annotator, self.reply.kind in RULINGS


def checked(replies: Iterable[Reply], pool: Pool) -> list[Said]:
    """The replies, each answer once; UnknownPoint, UnknownLabel or FileError names the row of one that cannot stand."""
    seen: dict[Key, Said] = {}
    for reply in replies:
        point = str(pool.ids[row_of(reply.id, pool, reply.where)])
        label = None
        if reply.label is not None:
            label = str(pool.classes[pool.code(reply.label, where=f"{reply.where}, point {point!r}: ")])
        said = Said(reply, point, label)
        first = seen.setdefault(said.key, said)
        if (first.reply.kind, first.label) != (reply.kind, label):
            _refuse_second(first.reply, reply, point)
    return list(seen.values())


def news_in(replies: Sequence[Said], standing: Sequence[Event]) -> tuple[list[Reply], dict[str, int]]:
    """The replies that are not among the standing events yet, and how many there are of each kind."""
    known = last_words(standing)
    revised = {(*_key(event), *_words(event)) for event in standing if known[_key(event)].seq != event.seq}
    news: list[Reply] = []
    counts = dict.fromkeys(("labels", "revisions", "skips", "rulings", "unchanged"), 0)
    for said in replies:
        reply, before = said.reply, known.get(said.key)
        stands = before is not None and (before.kind, before.label) == (reply.kind, said.label)
        if stands or (*said.key, reply.kind, said.label, reply.created_at) in revised:
            counts["unchanged"] += 1
            continue
        counts[_counted(reply.kind, revision=before is not None)] += 1
        news.append(reply)
    return news, counts


def _counted(kind: str, *, revision: bool) -> str:
    if kind in RULINGS:
        return "rulings"
    return "revisions" if revision else "labels" if kind == "label" else "skips"


def _refuse_second(first: Reply, second: Reply, point: str) -> None:
    """FileError on two different answers by the same person."""
    who = f"by {second.annotator!r}" if second.annotator else "by the same annotator"
    answers = [reply.kind if reply.label is None else repr(reply.label) for reply in (first, second)]
    raise FileError(
        f"{second.where}: point {point!r} has two answers {who}, {answers[0]} ({first.where}) and {answers[1]}; "
        "keep one of them; nothing was recorded"
    )


def row_of(id: object, pool: Pool, where: str) -> int:
    """The row of the point with this id; UnknownPoint names the file's row and what may have happened."""
    try:
        return pool.index(id)
    except UnknownPoint as cause:
        hint = _same_number(id, pool)
        reason = str(cause).removesuffix("; nothing was recorded") if not hint else f"id {id!r} is not in this pool"
        raise UnknownPoint(f"{where}: {reason}{hint}; nothing was recorded") from None


def _same_number(id: object, pool: Pool) -> str:
    """A hint where a spreadsheet has turned 007 into 7."""
    written = str(id)
    if not written.isdecimal() or len(pool) > 1_000_000:
        return ""
    same = [str(known) for known in pool.ids if str(known).lstrip("0") == written.lstrip("0")]
    if len(same) != 1:
        return ""
    return f"; there is {same[0]!r}: a spreadsheet may have changed the zeros at its beginning (keep ids as text)"


def last_words(standing: Iterable[Event]) -> dict[Key, Event]:
    """{key: event} of the answers that count now: votes in the order in which people first voted, then rulings.

    Rulings come in the order in which they were made: the last one on a point settles its label.
    """
    votes: dict[Key, Event] = {}
    rulings: dict[Key, Event] = {}
    for event in standing:
        if event.kind in RULINGS:
            rulings.pop(_key(event), None)
            rulings[_key(event)] = event
        else:
            votes[_key(event)] = event
    return votes | rulings


def _key(event: Event) -> Key:
    return str(event.point), event.annotator, event.kind in RULINGS


def _words(event: Event) -> tuple[str, str | None, str]:
    """What was said and when: the same answer in a file is known, even if the person revised it later."""
    return event.kind, event.label, _made_at(event)


def _made_at(event: Event) -> str:
    return str(event.body.get("made_at") or event.at)


def labelled_rows(session: "Session") -> Sequence[dict[str, Any]]:
    """Every answer that holds now as a row of a plain file: votes in the order first given, then rulings."""
    pool = session.pool
    return _rows(session.standing(), lambda point: pool.ids[pool.index(point)])


def logged_rows(events: Iterable[Event]) -> Sequence[dict[str, Any]]:
    """The same of a log alone, without the pool that it is about: ids are texts."""
    listed = list(events)
    undone = {event.refers for event in listed if event.kind == "undo"}
    return _rows([event for event in listed if event.kind in KINDS and event.seq not in undone], str)


def _rows(standing: Iterable[Event], id_of: Callable[[str], Name]) -> list[dict[str, Any]]:
    rows = []
    for (point, annotator, _), event in last_words(standing).items():
        id, body = id_of(point), event.body
        rows.append(
            {
                "id": id,
                "label": event.label,
                "annotator": annotator,
                "seconds": event.seconds,
                "created_at": _made_at(event),
                "kind": event.kind,
                "reason": body.get("reason") or body.get("note") or None,
            }
        )
    return rows


def _is_blank(value: object) -> bool:
    """Whether a cell holds nothing; the text "NaT" is a name like any other."""
    return not value if isinstance(value, str) else is_missing(value)
