"""Second opinions: which points two people label, how far they agree, and what is left to settle."""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from altmas.ledger import Ledger, Vote
from altmas.metrics import kappa, margins, table_of
from altmas.pool import Name


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


def wants_two(id: object, seed: int, share: float) -> bool:
    """Whether a point belongs to the share that is labelled twice: decided by its id and the seed alone."""
    if share <= 0:
        return False
    digest = hashlib.sha256(f"second opinion:{seed}:{id}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64 < share


def class_votes(ledger: Ledger) -> Iterable[tuple[int, list[Vote]]]:
    """(row, its votes for a class) of every point that at least two annotators labelled."""
    for row in ledger.voted():
        votes = [vote for vote in ledger.votes(row) if vote.code is not None]
        if len(votes) > 1:
            yield row, votes


def agreement(ledger: Ledger) -> Agreement:
    """Agreement over all pairs of votes on one point; with two annotators this is Cohen's kappa."""
    points, pairs = 0, []
    for _, votes in class_votes(ledger):
        points += 1
        by_name = sorted(votes, key=lambda vote: vote.annotator or "")
        pairs += [(one.code, other.code) for one, other in combinations(by_name, 2)]
    if not pairs:
        return Agreement(0, math.nan, math.nan)
    one, other = np.array(pairs, np.int64).T
    table = table_of(one, other, len(ledger.pool.classes))
    return Agreement(points, float(np.mean(one == other)), float(kappa(*margins(table))))


def disagreements(ledger: Ledger) -> list[Disagreement]:
    """Points whose votes differ and that were not adjudicated, in the order first voted on."""
    found = []
    for row, votes in class_votes(ledger):
        if len({vote.code for vote in votes}) > 1 and ledger.ruling(row) is None:
            pool = ledger.pool
            named = {vote.annotator or "": pool.classes[vote.code] for vote in votes if vote.code is not None}
            item = None if pool.items is None else pool.items[row]
            found.append(Disagreement(pool.ids[row], row, item, named))
    return found


def second_opinions(ledger: Ledger, seed: int, share: float) -> dict[int, str | None]:
    """{row: who voted} of drawn points that wait for a second annotator, in drawing order."""
    if share <= 0:
        return {}
    found = {}
    for row in ledger.drawn:
        if row not in ledger.waiting and wants_two(ledger.pool.ids[row], seed, share):
            voters = {vote.annotator for vote in ledger.votes(row)}
            if len(voters) == 1:
                found[row] = voters.pop()
    return found
