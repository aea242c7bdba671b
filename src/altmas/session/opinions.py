"""Second opinions: which points two people label, how far they agree, and what is left to settle."""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from altmas.errors import VoteConflict
from altmas.metrics import kappa, margins, table_of
from altmas.pool import Name
from altmas.session.log import State, Vote
from altmas.session.store import Entry, Event


@dataclass(frozen=True)
class Agreement:
    """How far annotators agree on the points that several of them labelled.

    points  number of such points;  share  of pairs of votes that agree;  kappa  Cohen's; nan where undefined
    """

    points: int
    share: float
    kappa: float


@dataclass(frozen=True)
class Disagreement:
    """A point whose annotators differ and that nobody has adjudicated."""

    id: Name
    index: int
    item: Any
    votes: Mapping[str, Name]


@lru_cache(maxsize=2**17)
def wants_two(id: Name, seed: int, share: float) -> bool:
    """Whether a point belongs to the share that is labelled twice: decided by its id and the seed alone."""
    if share <= 0:
        return False
    digest = hashlib.sha256(f"second opinion:{seed}:{id}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64 < share


def repeated(state: State, row: int, entry: Entry) -> Event | None:
    """The annotator's standing vote on a point if the entry says the same again."""
    standing = state.vote_event(row, entry.annotator)
    if standing is None or (standing.kind, standing.label) != (entry.kind, entry.label):
        return None
    return standing if standing.body.get("reason") == entry.body.get("reason") else None


def check_turn(state: State, row: int, name: str | None, *, holder: str | None, revises: int | None, two: bool) -> None:
    """VoteConflict if the annotator may not vote on this point now.

    holder   who has the lease, if anybody
    revises  seq of the annotator's vote that this one replaces
    two      whether the point is one that two annotators label
    """
    own = state.vote_event(row, name)
    if own is not None:
        if own.seq != revises:
            raise VoteConflict("you voted on this item already (in another tab?) and that stands; nothing was recorded")
        return
    if holder is not None and holder != name:
        raise VoteConflict("your time on this item ran out and it went to somebody else; nothing was recorded")
    if len(state.votes(row)) >= 1 + two:
        raise VoteConflict("your time on this item ran out and somebody else labelled it; nothing was recorded")


def class_votes(state: State) -> Iterable[tuple[int, list[Vote]]]:
    """(row, its votes for a class) of every point that at least two annotators labelled."""
    for row in state.voted():
        votes = state.votes(row)
        if len(votes) > 1 and len(votes := [vote for vote in votes if vote.code is not None]) > 1:
            yield row, votes


def agreement(state: State) -> Agreement:
    """Agreement over all pairs of votes on one point; with two annotators this is Cohen's kappa."""
    points, pairs = 0, []
    for _, votes in class_votes(state):
        points += 1
        by_name = sorted(votes, key=lambda vote: vote.annotator or "")
        pairs += [(first.code, second.code) for first, second in combinations(by_name, 2)]
    if not pairs:
        return Agreement(0, math.nan, math.nan)
    first, second = np.array(pairs, np.int64).T
    table = table_of(first, second, len(state.pool.classes))
    return Agreement(points, float(np.mean(first == second)), float(kappa(*margins(table))))


def disagreements(state: State) -> list[Disagreement]:
    """Points whose votes differ and that were not adjudicated, in the order first voted on."""
    open_questions = []
    for row, votes in class_votes(state):
        if len({vote.code for vote in votes}) > 1 and state.ruling(row) is None:
            pool = state.pool
            named = {vote.annotator or "": pool.classes[vote.code] for vote in votes if vote.code is not None}
            item = None if pool.items is None else pool.items[row]
            open_questions.append(Disagreement(pool.ids[row], row, item, named))
    return open_questions


def unsure(state: State) -> list[Disagreement]:
    """Points without a label on which somebody was unsure, in the order first voted on."""
    pool, open_questions = state.pool, []
    for row in state.skipped:
        votes = state.votes(row)
        if any(vote.kind == "unsure" for vote in votes) and state.ruling(row) is None:
            words = {vote.annotator or "": f"{vote.kind}: {vote.reason}".rstrip(": ") for vote in votes}
            open_questions.append(
                Disagreement(pool.ids[row], row, None if pool.items is None else pool.items[row], words)
            )
    return open_questions


def second_opinions(state: State, seed: int, share: float) -> dict[int, str | None]:
    """{row: who voted} of drawn points that wait for a second annotator and were not ruled on, in drawing order."""
    if share <= 0:
        return {}
    ids, drawn = state.pool.ids, state.drawn
    wanted = (row for row in state.alone if row in drawn and wants_two(ids[row], seed, share))
    rows = [row for row in wanted if state.ruling(row) is None]
    return {row: state.alone[row] for row in sorted(rows, key=drawn.__getitem__)}
