"""State: what a session knows, as the replay of its events.

A point may have one standing vote from each annotator (nobody named is an annotator too). Its label is
  the last ruling, if there is one: an adjudication gives it a class, "unsettled" leaves it without one; else
  the class given by the annotator who voted first (a skip is a vote), of those whose last vote is a class.
A point whose votes are all "skip" or "unsure", or that was ruled to be unsettled, counts as skipped.
Taking an event back restores what stood before.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from altmas.errors import NotASession
from altmas.history import Batch, History
from altmas.pool import Model, Pool
from altmas.pool.models import refuse_damaged
from altmas.session.arrays import pack
from altmas.session.changes import Change, ReadItems, change_of, pool_after
from altmas.session.store import Entry, Event

VOTES = ("label", "skip", "unsure")
RULINGS = ("adjudication", "unsettled")
UNDOABLE = (*VOTES, *RULINGS)


@dataclass(frozen=True)
class Vote:
    """What one annotator said about one point; code is None for "skip" and "unsure"."""

    annotator: str | None
    kind: str
    code: int | None
    reason: str
    seq: int


class State:
    """Everything that the events so far say; fed one event at a time."""

    def __init__(self, pool: Pool, where: object = "the session", items: ReadItems | None = None) -> None:
        self.pool, self.where, self.items = pool, where, items
        self.seq = 0
        self.digest = ""
        """Hash of the log up to here."""
        self.batches: list[Batch] = []
        self.labels: dict[int, int] = {}
        self.skipped: dict[int, str] = {}
        self.drawn: dict[int, int] = {}  # row -> its place in drawing order
        self.waiting: set[int] = set()  # drawn, neither labelled nor skipped
        self.unasked: set[int] = set()  # labelled or skipped, never drawn
        self.differing: set[int] = set()  # votes for different classes, and no ruling
        self.alone: dict[int, str | None] = {}  # row -> the only annotator who has voted on it
        self.standing: dict[int, Event] = {}  # what can be taken back, by seq
        self.reached: dict[int, int] = {0: 0}  # number of labels -> seq of the event that first brought it
        self.estimates: dict[int, Event] = {}  # number of labels -> the estimate logged there
        self.notes: dict[int, list[Event]] = {}  # seq of a remark -> the remark and its edits
        self.revealed: set[tuple[int, str | None]] = set()  # (row, annotator) of every look at a prediction
        self.unshown: dict[int, str] = {}  # row whose image could not be shown -> why
        self.choices: list[Event] = []  # to stop or to go on, when the goal was reached
        self.changes: list[Change] = []  # what was changed after the session was made
        self.settings: dict[str, Any] = {}  # of the plan, as changed so far
        self.grown: list[tuple[int, int]] = []  # (points, batches) whenever items were added
        self.revisions = self.undone = self.reveals = 0
        self.last_at = self.created_at = ""
        self._of_point: dict[int, list[Event]] = {}
        self._votes: dict[int, list[Vote]] = {}  # of points since their last event
        self._history: History | None = None
        self._unasked: np.ndarray | None = None  # as an array, until it changes

    def feed(self, events: Iterable[Event]) -> None:
        """Apply events in order; NotASession names the first that does not fit what was before it."""
        for event in events:
            try:
                self._apply(event)
            except Exception as cause:  # an event that altmas did not write can fail in any way
                raise NotASession(
                    f"{self.where} was changed or damaged: event {event.seq} ({event.kind}) does not fit the log "
                    f"before it ({cause}); nothing was read"
                ) from cause

    def history(self) -> History:
        """What methods see."""
        if self._history is None:
            told = tuple(self.batches), dict(self.labels), dict(self.skipped)
            self._history = History(len(self.pool), *told, tuple(self.grown))
        return self._history

    def outstanding(self) -> list[int]:
        """Drawn rows without a label or a skip, in drawing order."""
        return sorted(self.waiting, key=self.drawn.__getitem__)

    def overtaken(self) -> list[int]:
        """Rows that wait though one drawn later has an answer, in drawing order."""
        answered = [position for row, position in self.drawn.items() if row not in self.waiting]
        last = max(answered, default=-1)
        return [row for row in self.outstanding() if self.drawn[row] < last]

    def votes(self, row: int) -> list[Vote]:
        """The standing votes on a point, in the order in which the annotators first voted."""
        if row in self._votes:
            return self._votes[row]
        last: dict[str | None, Vote] = {}
        for event in self._of_point.get(row, ()):
            if event.kind in VOTES:
                code = None if event.label is None else self.pool.code(event.label)
                reason = str(event.body.get("reason", ""))
                last[event.annotator] = Vote(event.annotator, event.kind, code, reason, event.seq)
        if row in self._of_point:
            self._votes[row] = list(last.values())
        return list(last.values())

    def vote_event(self, row: int, annotator: str | None) -> Event | None:
        """The event of an annotator's standing vote on a point."""
        own = [event for event in self._of_point.get(row, ()) if event.annotator == annotator and event.kind in VOTES]
        return own[-1] if own else None

    def ruling(self, row: int) -> Event | None:
        """The last ruling on a point, if there is one."""
        ruled = [event for event in self._of_point.get(row, ()) if event.kind in RULINGS]
        return ruled[-1] if ruled else None

    def voted(self) -> Iterator[int]:
        """Rows with a standing vote or ruling."""
        return (row for row, events in self._of_point.items() if events)

    def last_standing(self, annotator: str | None) -> Event | None:
        """The newest event that can be taken back: of this annotator, or of anybody."""
        for event in reversed(self.standing.values()):
            if annotator is None or event.annotator == annotator:
                return event
        return None

    # ------------------------------------------------------------ one event

    def _apply(self, event: Event) -> None:
        self.seq, self.digest, self.last_at = event.seq, event.hash, event.at
        if event.kind == "draw":
            self._draw(batch_of(event))
        elif event.kind in UNDOABLE:
            self._say(event)
        elif event.kind == "undo":
            self._take_back(event)
        elif event.kind == "estimate":
            self.estimates[_logged_at(event.body)] = event
        elif event.kind == "reveal":
            self.reveals += 1
            self.revealed.add((self.pool.index(event.point), event.annotator))
        elif event.kind == "note":
            self._note(event)
        elif event.kind == "unshown":
            self.unshown.setdefault(self.pool.index(event.point), str(event.body["why"]))
        elif event.kind == "choice":
            self._choose(event)
        elif event.kind == "model":
            self.pool = with_model(self.pool, event)
        elif event.kind == "extend":
            self._change(event)
        elif event.kind == "created":
            self.created_at = event.at

    def _change(self, event: Event) -> None:
        change, points = change_of(event, len(self.labels)), len(self.pool)
        self.pool = pool_after(self.pool, event, self.items)
        if len(self.pool) > points:
            self.grown.append((points, len(self.batches)))
        self._history = None
        self.changes.append(change)
        self.settings = self.settings | dict(change.settings)
        self.estimates.pop(len(self.labels), None)  # it was one of another plan

    def _draw(self, batch: Batch) -> None:
        _check_rows(batch, len(self.pool))
        if self._unasked is None:
            self._unasked = np.array(sorted(self.unasked), np.int64)
        self.batches.append(replace(batch, unasked=self._unasked))
        for row in batch.indices.tolist():
            self.drawn[row] = len(self.drawn)
            if row not in self.labels and row not in self.skipped:
                self.waiting.add(row)
        self._history = None

    def _say(self, event: Event) -> None:
        if (event.label is None) != (event.kind in ("skip", "unsure", "unsettled")):
            raise ValueError("a label is missing, or too many")
        row = self.pool.index(event.point)
        before = self._of_point.setdefault(row, [])
        self.revisions += event.kind in VOTES and any(e.annotator == event.annotator for e in before if e.kind in VOTES)
        before.append(event)
        self._votes.pop(row, None)
        self.standing[event.seq] = event
        self._settle(row)

    def _take_back(self, event: Event) -> None:
        if event.refers not in self.standing:
            raise ValueError(f"it takes back event {event.refers}, which does not stand")
        taken = self.standing.pop(event.refers)
        row = self.pool.index(taken.point)
        self._of_point[row].remove(taken)
        self._votes.pop(row, None)
        self.undone += 1
        self._settle(row)

    def _note(self, event: Event) -> None:
        if not isinstance(event.body.get("text", ""), str):
            raise ValueError("a remark is no text")
        if event.point is not None:
            self.pool.index(event.point)
        if event.refers is None:
            self.notes[event.seq] = [event]
        else:
            self.notes[event.refers].append(event)

    def _choose(self, event: Event) -> None:
        body = event.body
        if not (isinstance(body["stop"], bool) and isinstance(body["labels"], int) and isinstance(body["goals"], list)):
            raise ValueError("it holds no choice")
        self.choices.append(event)

    def _settle(self, row: int) -> None:
        """Set the point's label or skip to what its standing events say."""
        votes, ruling = self.votes(row), self.ruling(row)
        self.alone.pop(row, None)
        if len(votes) == 1:
            self.alone[row] = votes[0].annotator
        codes = [vote.code for vote in votes if vote.code is not None]
        (self.differing.add if len(set(codes)) > 1 and ruling is None else self.differing.discard)(row)
        if ruling is not None:
            codes = [] if ruling.label is None else [self.pool.code(ruling.label)]
        if codes:
            self.labels[row] = codes[0]
            self.skipped.pop(row, None)
            self.reached.setdefault(len(self.labels), self.seq)
        else:
            self.labels.pop(row, None)
            self.skipped.pop(row, None)
            if ruling is not None:
                self.skipped[row] = str(ruling.body.get("note", "")) or "cannot be settled"
            elif votes:
                self.skipped[row] = votes[0].reason or votes[0].kind
        answered = bool(codes or votes or ruling)
        if row in self.drawn:
            (self.waiting.discard if answered else self.waiting.add)(row)
        elif answered != (row in self.unasked):
            (self.unasked.add if answered else self.unasked.discard)(row)
            self._unasked = None
        self._history = None


def draw_entry(batch: Batch, ids: Iterable[object], seen: int) -> Entry:
    """A batch as an entry; `seen` is the seq of the log that the method saw."""
    arrays = {f"record.{name}": np.asarray(value) for name, value in batch.record.items()}
    arrays["indices"] = batch.indices
    if batch.probabilities is not None:
        arrays["probabilities"] = batch.probabilities
    body = {"points": [str(name) for name in ids], "labels_before": batch.labels_before, "seen": seen}
    return Entry("draw", body=body | {"info": plain(batch.info)}, data=pack(arrays))


def batch_of(event: Event) -> Batch:
    """The batch in a draw event."""
    arrays = event.arrays
    record = {name.removeprefix("record."): value for name, value in arrays.items() if name.startswith("record.")}
    body = event.body
    return Batch(arrays["indices"], arrays.get("probabilities"), record, body["info"], body["labels_before"])


def model_entry(model: Model) -> Entry:
    """A further model as an entry: its answers as codes, and its scores."""
    arrays: dict[str, Any] = {"predictions": model.predictions}
    if model.scores is not None:
        arrays["scores"] = model.scores
    return Entry("model", body={"name": model.name}, data=pack(arrays))


def with_model(pool: Pool, event: Event) -> Pool:
    """The pool with the model in an event; ValueError if that is no model of this pool."""
    arrays = event.arrays
    model = Model(event.body["name"], arrays["predictions"], arrays.get("scores"))
    refuse_damaged(model, pool)
    if any(earlier.name == model.name for earlier in pool.models):
        raise ValueError(f"there is a model {model.name!r} already")
    return pool.with_models(*pool.models, model)


def _check_rows(batch: Batch, points: int) -> None:
    """ValueError if a batch cannot have been drawn from that many points."""
    rows, chances = batch.indices, batch.probabilities
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(np.unique(rows)) < len(rows):
        raise ValueError("rows of the pool have to be different whole numbers")
    if len(rows) and not 0 <= rows.min() <= rows.max() < points:
        raise ValueError(f"a row is beyond the pool of {points} points")
    if chances is not None and not (chances.shape == rows.shape and chances.dtype.kind == "f" and (chances > 0).all()):
        raise ValueError("each row needs a probability above 0")
    if not (isinstance(batch.labels_before, int) and isinstance(batch.info, dict)):
        raise ValueError("labels_before or info is missing")


def _logged_at(body: Mapping[str, Any]) -> int:
    """The number of labels at which an estimate was logged; ValueError if it is no estimate."""
    labels, estimates = body["labels"], body["estimates"]
    numbers = ("value", "low", "high")
    sound = isinstance(labels, int) and all(
        isinstance(estimate["metric"], str) and all(isinstance(estimate[name], int | float | None) for name in numbers)
        for estimate in estimates
    )
    if not sound:
        raise ValueError("it holds no estimates")
    return int(labels)


def plain(value: object) -> object:
    """A value as JSON has it: arrays become lists, nan and infinity None, what has no JSON form its text."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else text(value)


def text(value: object) -> str:
    """A text that can be stored: a lone surrogate, which has no UTF-8, becomes a question mark."""
    return str(value).encode("utf-8", "replace").decode()
