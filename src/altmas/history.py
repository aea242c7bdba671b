"""What was drawn, told and skipped so far, in order: the only state that methods see.

A draw is one point that a method chose, with the probability it had among the points then open and whatever the
method wants to remember about it. Labels told without having been drawn have no draw.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.streams import stream

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Batch:
    """Points that a method chose together, in drawing order.

    indices        (b,) rows of the pool
    probabilities  (b,) chance of each draw among the points still open at that draw, or None for a method
                   whose choice carries none
    record         arrays that the method needs again to replay its estimate (a belief row for each draw, ...)
    info           what happened, for people: training loss, size of the pseudo-labelled set, ...
    labels_before  how many labels were known when the batch was drawn
    unasked        rows that had a label or a skip then and had never been drawn, as the log of a session tells it; None
                   where nothing was ever taken back: then they are those of the first `labels_before` labels
    """

    indices: Ints
    probabilities: Floats | None = None
    record: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    labels_before: int = 0
    unasked: Ints | None = None


@dataclass(frozen=True)
class History:
    """A replayed label log of one pool.

    batches   every batch drawn, in order
    labels    {row: code} of every point whose label is known now, in the order first told
    skipped   {row: reason} of points that the oracle could not label
    grown     (points, batches) that there were when the pool was extended, for each time
    """

    n_points: int
    batches: tuple[Batch, ...] = ()
    labels: Mapping[int, int] = field(default_factory=dict)
    skipped: Mapping[int, str] = field(default_factory=dict)
    grown: tuple[tuple[int, int], ...] = ()

    @cached_property
    def domains(self) -> list[slice]:
        """The rows that came together: those of the first pool, then those of each extension."""
        ends = [points for points, _ in self.grown]
        return [slice(start, end) for start, end in zip([0, *ends], [*ends, self.n_points], strict=True)]

    def points_at(self, batch: int) -> int:
        """How many points there were when a batch was drawn, by its index."""
        return next((points for points, batches in self.grown if batches > batch), self.n_points)

    @cached_property
    def labelled(self) -> Ints:
        """(n,) rows with a known label, in the order first told."""
        return np.fromiter(self.labels.keys(), np.int64, len(self.labels))

    @cached_property
    def codes(self) -> Ints:
        """(n,) their labels."""
        return np.fromiter(self.labels.values(), np.int64, len(self.labels))

    @cached_property
    def known(self) -> Ints:
        """(N,) the label of each point, -1 where unknown."""
        known = np.full(self.n_points, -1, np.int64)
        known[self.labelled] = self.codes
        return known

    @cached_property
    def drawn(self) -> Ints:
        """Rows of all draws, in drawing order."""
        return np.concatenate([np.zeros(0, np.int64), *(batch.indices for batch in self.batches)])

    @cached_property
    def outstanding(self) -> Ints:
        """Drawn rows that are neither labelled nor skipped, in drawing order."""
        waiting = [row for row in self.drawn.tolist() if row not in self.labels and row not in self.skipped]
        return np.array(waiting, np.int64)

    @cached_property
    def volunteered(self) -> Ints:
        """Labelled rows that no method drew: they are known, but have no probability."""
        drawn = set(self.drawn.tolist())
        return np.array([row for row in self.labels if row not in drawn], np.int64)

    def unasked_before(self, batch: int) -> Ints:
        """Rows that could not be drawn in a batch, by its index, because somebody had told or skipped them unasked."""
        known = self.batches[batch].unasked
        if known is not None:
            return known
        before = self.labelled[: self.batches[batch].labels_before]
        return before[np.isin(before, self.volunteered)]

    @property
    def drawn_labels(self) -> int:
        """How many labels are of points that a method drew."""
        return len(self.labels) - len(self.volunteered)

    def told(self, batch: Batch, labels: Mapping[int, int]) -> "History":
        """The history after one more batch, with these labels."""
        return replace(self, batches=(*self.batches, batch), labels={**self.labels, **labels})

    @cached_property
    def open(self) -> NDArray[np.bool_]:
        """(N,) which points may still be drawn: not labelled, not skipped, not drawn already."""
        free = np.ones(self.n_points, np.bool_)
        free[self.labelled] = False
        free[list(self.skipped)] = False
        free[self.drawn] = False
        return free

    def without_waiting(self) -> "History":
        """The history without its last batches, as far as nothing in them is answered: what merely waits."""
        answered, end = self.labels.keys() | self.skipped.keys(), len(self.batches)
        while end and answered.isdisjoint(self.batches[end - 1].indices.tolist()):
            end -= 1
        return self if end == len(self.batches) else replace(self, batches=self.batches[:end])

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal histories: what a method may use to remember its last fit."""
        drawn = tuple(self.drawn.tolist())
        return (self.n_points, self.grown, tuple(self.labels.items()), tuple(self.skipped), drawn, len(self.batches))

    def rng(self, seed: int, name: str) -> np.random.Generator:
        """The generator of that name at this point of the log."""
        return stream(seed, name, len(self.labels), len(self.drawn), len(self.skipped))
