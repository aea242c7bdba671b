"""Whether one level lies above another, at every look: the capitals of two games of `altmas.guarantee` in one.

Games about Q_1 and Q_2, each from sequences of draws. At the true pair neither capital can expect to gain, so
    E(q_1, q_2) = w W+_1(q_1) W-_2(q_2) + (1 - w) (W+_1(q_1) + W-_2(q_2)) / 2                                     (G12)
with w = 1/2 where no sequence of draws is about both, else 0, cannot either, and reaches 1 / error with probability
`error` at most, at any time. Q_1 > Q_2 + margin is shown once E was at least 1 / error at every pair with
q_2 >= q_1 - margin. Intervals that must not overlap would ask for a capital of 1 / error of one of both at each
candidate; to the product both contribute, which takes fewer labels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from altmas.guarantee import Stage, _known, horizons, impossible, log_capital, terms
from altmas.ratios import Ratio
from altmas.types import Array

PARTS: Final = 64
"""Cells of the grid of candidates, and of each refinement."""
AIM: Final = 0.3
"""Bets aim at a capital of one over this part of the error."""
PASSES: Final = 3
"""Refinements of the cells in which nothing is shown yet."""

NOW: Final = -1
"""The number of a stage that no sequence of draws is: what is known now."""

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Game:
    """One metric with its stages of draws; numbers: which of the session's sequences each stage is, or NOW."""

    ratio: Ratio
    stages: Sequence[Stage]
    numbers: tuple[int, ...]


def shown_apart(
    first: Game, second: Game, *, margin: float, error: float, budget: int | None, better: Better = "higher"
) -> bool:
    """Whether the first is shown to be better than the second by more than the margin (G12)."""
    pair = _Pair(first, second, margin, error, budget, 1.0 if better == "higher" else -1.0)
    low, high = first.ratio.bounds
    coarse = low + (high - low) * np.sin(np.linspace(0, np.pi / 2, PARTS + 1)) ** 2
    candidates = coarse
    for _ in range(PASSES):
        at_points, in_cells = pair.evidence(candidates)
        if not (at_points >= pair.enough).all():
            return False
        open_ = np.flatnonzero(~(in_cells >= pair.enough))
        if not len(open_):
            return True
        fine = np.linspace(candidates[open_[0]], candidates[open_[-1] + 1], PARTS + 1)
        candidates = np.union1d(coarse, fine)
    return False


@dataclass(frozen=True)
class _Pair:
    """Both games; sign: 1 if the first is to be shown higher, -1 if lower."""

    first: Game
    second: Game
    margin: float
    error: float
    budget: int | None
    sign: float

    @property
    def enough(self) -> float:
        """Log of the capital that shows it."""
        return math.log(1 / self.error)

    @property
    def apart(self) -> bool:
        """Whether no sequence of draws is about both."""
        return not set(self.first.numbers) & set(self.second.numbers) - {NOW}

    def evidence(self, candidates: Array) -> tuple[Array, Array]:
        """(G,) largest log E ever at each candidate q_1 and q_2 = q_1 - margin; (G - 1,) the least in each cell."""
        lowest, highest = self.second.ratio.bounds
        first = self._paths(self.first, candidates, 0 if self.sign > 0 else 1)
        moved = np.clip(candidates - self.sign * self.margin, lowest, highest)
        second = self._paths(self.second, moved, 1 if self.sign > 0 else 0)
        order = self._steps()
        # The other level may lie anywhere on its side of q_1: what is shown there has to be shown at all of it.
        if self.sign > 0:
            second = np.minimum.accumulate(second[:, ::-1], axis=1)[:, ::-1]
        else:
            second = np.minimum.accumulate(second, axis=1)
        first, second = first[order[0]], second[order[1]]
        least = np.minimum(first[:, :-1], first[:, 1:]), np.minimum(second[:, :-1], second[:, 1:])
        return self._joined(first, second).max(0), self._joined(*least).max(0)

    def _joined(self, first: Array, second: Array) -> Array:
        mean = np.logaddexp(first, second) - math.log(2)
        return np.logaddexp(first + second, mean) - math.log(2) if self.apart else np.asarray(mean)

    def _paths(self, game: Game, q: Array, side: int) -> Array:
        """(T + 1, G) log capital of one side before the first draw and after each."""
        ends, shares = horizons(self.budget, len(game.ratio.kind))
        log = log_capital(terms(game.ratio, game.stages, q), AIM * self.error, ends, shares)[:, side]
        path = np.concatenate([np.zeros((1, len(q))), log])
        path[-1, impossible(game.ratio, _known(game.ratio, game.stages), q)[side]] = np.inf
        return path

    def _steps(self) -> tuple[Array, Array]:
        """For every moment in the order of the sequences, how many draws each game has seen."""
        counts = [
            {number: len(stage.drawn) for number, stage in zip(game.numbers, game.stages, strict=True)}
            for game in (self.first, self.second)
        ]
        seen = [[0], [0]]
        for number in sorted({*self.first.numbers, *self.second.numbers}):
            for draw in range(max(own.get(number, 0) for own in counts)):
                for steps, own in zip(seen, counts, strict=True):
                    steps.append(steps[-1] + (draw < own.get(number, 0)))
        return np.array(seen[0]), np.array(seen[1])
