"""Remarks: what people wrote about items, what could not be shown to them, and whether they stopped at the goal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from altmas.errors import PlanError, VoteConflict
from altmas.pool import Name
from altmas.session.answers import annotator_name, authentication
from altmas.session.log import State, text
from altmas.session.store import Entry, Event


@dataclass(frozen=True)
class Note:
    """A remark of an annotator on a point, or on the whole session (id None).

    seq     of the event that made it, which names it in an edit;  at  when it was written or last edited
    source  "note", or the kind of answer that it came with: "label", "adjudication"
    """

    id: Name | None
    text: str
    annotator: str | None
    at: str
    seq: int
    source: str = "note"
    edited: bool = False


@dataclass(frozen=True)
class StopChoice:
    """Whether somebody stopped or went on when the goal was reached or the budget was spent; goals as they stood."""

    stop: bool
    annotator: str | None
    at: str
    labels: int
    goals: tuple[Mapping[str, Any], ...] = ()


def notes(state: State) -> list[Note]:
    """Every remark that stands, oldest first; one that was edited shows its last text, one edited to "" is gone."""
    return sorted([*_written(state), *_with_answers(state)], key=lambda note: note.seq)


def own_note(state: State, point: str, name: str | None) -> Note | None:
    """The last remark of an annotator on a point that stands, apart from those that came with a label."""
    own = [
        note
        for versions in state.notes.values()
        if (versions[0].point, versions[0].annotator) == (point, name) and (note := _note(state, versions)) is not None
    ]
    return own[-1] if own else None


def _written(state: State) -> Iterator[Note]:
    return (note for versions in state.notes.values() if (note := _note(state, versions)) is not None)


def _note(state: State, versions: Sequence[Event]) -> Note | None:
    """A remark as last edited; None if it was taken back."""
    first, last = versions[0], versions[-1]
    remark = last.body.get("text")
    id = None if first.point is None else state.pool.ids[state.pool.index(first.point)]
    return Note(id, remark, first.annotator, last.at, first.seq, edited=len(versions) > 1) if remark else None


def _with_answers(state: State) -> Iterator[Note]:
    for event in state.standing.values():
        if event.body.get("note"):
            id = state.pool.ids[state.pool.index(event.point)]
            yield Note(id, str(event.body["note"]), event.annotator, event.at, event.seq, source=event.kind)


def note_entry(
    state: State, remark: str, point: str | None, name: str | None, revises: int | None, authenticated: bool | None
) -> Entry:
    """A remark as an entry; PlanError or VoteConflict if it is empty or edits one that is not the annotator's own."""
    if not isinstance(remark, str):
        raise PlanError(f"the note {remark!r} is no text; nothing was recorded")
    if revises is None and not remark.strip():
        raise PlanError("the note is empty; nothing was recorded")
    if revises is not None:
        first = state.notes[revises][0] if revises in state.notes else None
        if first is None or (first.annotator, first.point) != (name, point):
            raise VoteConflict("there is no note of yours on this item to edit; nothing was recorded")
    body = {"text": text(remark.strip())} | authentication(authenticated)
    return Entry("note", name, point, refers=revises, body=body)


def unshown_entry(point: str, why: str, annotator: str | None) -> Entry:
    """That an image of a point could not be shown, as an entry."""
    return Entry("unshown", annotator_name(annotator), point, body={"why": text(why)[:500]})


def choice_entry(
    stop: bool, goals: list[dict[str, Any]], labels: int, annotator: str | None, authenticated: bool | None
) -> Entry:
    """A choice to stop or to go on as an entry."""
    body = {"stop": bool(stop), "labels": labels, "goals": goals} | authentication(authenticated)
    return Entry("choice", annotator_name(annotator), body=body)


def choice_of(event: Event) -> StopChoice:
    """The choice in an event."""
    body = event.body
    return StopChoice(body["stop"], event.annotator, event.at, body["labels"], tuple(body["goals"]))
