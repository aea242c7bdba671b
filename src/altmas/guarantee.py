"""Confidence sequences and decisions with a finite-sample proof, for metrics that are ratios of sums over points.

N points, K outcomes a point, G candidate values q, T draws so far, J horizons.
A metric is Q = sum_i num(i, y_i) / sum_i den(i, y_i), den >= 0; outcomes are the distinct pairs (num, den) that the
label of a point can give. Points are drawn one after another without replacement; sizes, belief and known labels may
change from stage to stage, but only by what was known before the stage. For each q two players bet, one that Q is
above q and one that it is below; at q = Q neither can expect to gain, so a capital of 1/a arises with probability a
at most, at any time (Ville 1939). Nothing is assumed about the belief: a bad one costs width, never validity.
docs/guarantee.md explains it; equation numbers are those of docs/equations.md, part G.

If the points are a uniform random sample of a larger table, the claim is about that table. At the table's own value q
the sum of g over its rows is 0, so over the m points of the sample that the metric can be about
    P( sum of g > B ) <= a,     B = range of g * sqrt( m (1 - (m - 1)/M) log(1/a) / 2 )                            (G11)
as given their number m they are a random sample of the M such rows of the table (Serfling 1974; where M is not known,
without its factor: Hoeffding 1963). Both players are B behind at every draw, and a = SLACK of the error pays for the
chance that the sample lies further off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from altmas.ratios import OPEN, SKIPPED, Ratio, TableRatio, difference, kappa_tables, linear_tables, table_ratio
from altmas.types import Array

__all__ = [
    "OPEN",
    "SKIPPED",
    "Evidence",
    "Ratio",
    "Stage",
    "TableRatio",
    "Terms",
    "decide",
    "difference",
    "horizons",
    "impossible",
    "interval",
    "kappa_tables",
    "linear_tables",
    "log_capital",
    "surprise",
    "table_ratio",
    "terms",
]

Answer = Literal["above", "below", "undecided"]

STAKE: Final = 0.98
"""Largest share of the capital that one draw can lose: what is left can still grow again."""
LOG_STEP: Final = 0.25
"""Log odds of the belief are rounded to multiples of this, so that points of one kind are summed up together."""
LEAST_LOG: Final = -14.0
"""Log odds below which the belief does not go."""
DOUBT: Final = 0.1
"""Share of the mean belief about points of the same kind in each point's own: trusted points may hide errors."""
WARY: Final = 20
"""The believed variance counts as this many squared terms against those that were seen."""
REFRESH: Final = 0.1
"""The belief is fitted to the candidates anew after this share of the open points was drawn."""
SHARES: Final = ((1 / 8, 0.1), (1 / 4, 0.15), (1 / 2, 0.2), (1.0, 0.3), (2.0, 0.12), (4.0, 0.08))
"""(part of the budget, share of the capital) for which bets are placed when a budget is known."""
BEYOND: Final = 0.05
"""Share of the capital for horizons of 8, 16, ... budgets, up to the pool: sessions go on longer than planned."""
FIRST_HORIZON, LAST_HORIZON = 32, 2048
"""Without a budget the capital is spread evenly over horizons that double from the first to the last (or the pool)."""


# ---------------------------------------------------------------- what was drawn


@dataclass(frozen=True)
class Stage:
    """Draws with fixed sizes: point i comes next with probability sizes[i] / (sum over those not yet drawn) (G2).

    known     (N,)    outcomes known when the stage began: a code, SKIPPED, or OPEN for the points it draws from
    sizes     (N,)    positive at open points
    belief    (N, K)  believed probabilities of the outcomes, from earlier stages; used at open points
    drawn     (T,)    points in the order in which they were drawn
    outcomes  (T,)    their outcomes: a code or SKIPPED
    """

    known: Array
    sizes: Array
    belief: Array
    drawn: Array
    outcomes: Array

    def __post_init__(self) -> None:
        wrong = self.known[self.drawn] != OPEN
        if wrong.any():
            raise ValueError(f"point {self.drawn[wrong][0]} was drawn but was not open; nothing was computed")
        if len(np.unique(self.drawn)) != len(self.drawn) or len(self.outcomes) != len(self.drawn):
            raise ValueError("a stage needs distinct points and one outcome for each; nothing was computed")
        if not (self.sizes[self.known == OPEN] > 0).all():
            raise ValueError("an open point has size 0, so it could never be drawn; nothing was computed")

    def after(self) -> Array:
        """(N,) outcomes known when the stage has ended."""
        known = self.known.copy()
        known[self.drawn] = self.outcomes
        return known


# ---------------------------------------------------------------- the game: one term for each draw and candidate


class Terms(NamedTuple):
    """The game at each candidate, draw by draw.

    z         (T, G)     Z_m(q), of mean 0 at q = Q given everything before (G4)
    loss      (T, 2, G)  the largest possible -Z_m and Z_m (G5)
    variance  (T, G)     believed variance of Z_m (G6)
    skew      (T, G)     believed third central moment of Z_m over its variance (G6)
    behind    (G,)       what either player has to make up for at each draw (G11)
    """

    z: Array
    loss: Array
    variance: Array
    skew: Array
    behind: Array | float = 0.0


def terms(ratio: Ratio, stages: Sequence[Stage], q: Array) -> Terms:
    """Z_m(q), the largest losses and believed variances, for all draws of all stages in their order."""
    parts = [part for stage in stages if len(stage.drawn) for part in _stage_terms(ratio, stage, q)]
    if not parts:
        return Terms(np.zeros((0, len(q))), np.ones((0, 2, len(q))), *np.ones((2, 0, len(q))))
    return Terms(*(np.concatenate(arrays) for arrays in zip(*(part[:4] for part in parts), strict=True)))


def _stage_terms(ratio: Ratio, stage: Stage, q: Array) -> list[Terms]:
    """Terms of a stage in blocks, the belief fitted to the candidates at the start of each."""
    groups = _Groups.of(ratio, stage)
    parts = []
    first, tilt = 0, np.zeros(len(q))
    totals = np.array(ratio.totals(stage.known))
    while first < len(stage.drawn):
        block = slice(first, first + int(np.ceil(REFRESH * groups.count.sum())))
        drawn, outcomes = stage.drawn[block], stage.outcomes[block]
        part, tilt = _block_terms(ratio, groups, drawn, outcomes, totals, q, tilt)
        parts.append(part)
        newly_known = np.full(len(stage.known), OPEN)
        newly_known[drawn] = outcomes
        totals += ratio.totals(newly_known)
        groups = groups.without(drawn)
        first = block.stop
    return parts


@dataclass(frozen=True)
class _Groups:
    """Open points with the same outcomes, (rounded) belief and nearly the same size, taken together.

    group     (N,)    group of each open point
    size      (N,)    u of each point
    kind      (M,)    row of the ratio
    logs      (M, K)  log belief, up to a constant
    count, inverse, inverse2, least   (M,)  how many are open; sums of 1 / u and 1 / u^2; smallest u
    """

    group: Array
    size: Array
    kind: Array
    logs: Array
    count: Array
    inverse: Array
    inverse2: Array
    least: Array

    @classmethod
    def of(cls, ratio: Ratio, stage: Stage) -> "_Groups":
        points = np.flatnonzero(stage.known == OPEN)
        kind, size = ratio.kind[points], np.asarray(stage.sizes, np.float64)
        steps = rounded_logs(doubted(np.asarray(stage.belief)[points], kind))
        octave = np.floor(np.log2(size[points]) / LOG_STEP).astype(np.int64)
        keys, group = _distinct(np.column_stack([kind, octave, steps]))
        whole = np.full(len(stage.known), -1)
        whole[points] = group
        count = np.bincount(group).astype(np.float64)
        least = np.full(len(keys), np.inf)
        np.minimum.at(least, group, size[points])
        inverse, inverse2 = (np.bincount(group, size[points] ** -power) for power in (1, 2))
        return cls(whole, size, keys[:, 0], keys[:, 2:] * LOG_STEP, count, inverse, inverse2, least)

    def without(self, drawn: Array) -> "_Groups":
        """The groups after these points were drawn; `least` stays, which can only make bets smaller."""
        group, size = self.group[drawn], self.size[drawn]
        count = self.count - np.bincount(group, minlength=len(self.count))
        inverse = np.maximum(self.inverse - np.bincount(group, 1 / size, len(self.count)), 0)
        inverse2 = np.maximum(self.inverse2 - np.bincount(group, size**-2.0, len(self.count)), 0)
        occupied = np.flatnonzero(count > 0)
        renumbered = np.full(len(count) + 1, -1)
        renumbered[occupied] = np.arange(len(occupied))
        shrunk = (part[occupied] for part in (self.kind, self.logs, count, inverse, inverse2, self.least))
        moved = renumbered[self.group]
        moved[drawn] = -1
        return _Groups(moved, self.size, *shrunk)


def _distinct(rows: Array) -> tuple[Array, Array]:
    """(distinct rows, which of them each row is); integers are packed into one where they fit."""
    low = rows.min(0)
    spans = rows.max(0) - low + 1
    if np.log2(spans.astype(np.float64)).sum() > 62:
        distinct, index = np.unique(rows, axis=0, return_inverse=True)
        return distinct, index.ravel()
    factors = np.concatenate([[1], np.cumprod(spans[:-1])]).astype(np.int64)
    _, first, index = np.unique((rows - low) @ factors, return_index=True, return_inverse=True)
    return rows[first], index.ravel()


def doubted(belief: Array, kind: Array) -> Array:
    """(N, K) the belief with a share DOUBT of its mean over the points of the same kind."""
    _, index, count = np.unique(kind, return_inverse=True, return_counts=True)
    sums = np.stack([np.bincount(index, column) for column in belief.T], axis=1)
    return np.asarray((1 - DOUBT) * belief + DOUBT * (sums / count[:, None])[index])


def rounded_logs(belief: Array) -> Array:
    """(N, K) log odds of each outcome against the most probable one, in whole steps of LOG_STEP."""
    most = belief.max(1, keepdims=True)
    logs = np.log(np.maximum(belief / most, np.exp(LEAST_LOG)))
    return np.asarray(np.round(logs / LOG_STEP), np.int64)


def _block_terms(
    ratio: Ratio, groups: _Groups, drawn: Array, outcomes: Array, totals: Array, q: Array, tilt: Array
) -> tuple[Terms, Array]:
    """Terms of successive draws under one belief, and the tilt that fits it to the candidates."""
    g = ratio.values(q)[groups.kind]  # (M, K, G)
    before = totals[0] - q * totals[1]
    tilt = _fit_tilt(groups, g, before, tilt)
    mean, variance, third = _tilted(groups, g, tilt)
    base = before + groups.count @ mean
    group, size = groups.group[drawn], groups.size[drawn]
    kind, code = ratio.kind[drawn], np.maximum(outcomes, 0)
    labelled = (outcomes >= 0)[:, None]
    seen = np.where(labelled, ratio.num[kind, code][:, None] - q * ratio.den[kind, code][:, None], 0.0)
    residual = seen - mean[group]  # (B, G)
    left = _left(groups, drawn)[:, None]  # (B, 1): sum of sizes before each draw
    bases = base + np.cumsum(residual, 0) - residual
    z = bases + residual * left / size[:, None]
    lowest, highest = np.minimum(g.min(1), 0), np.maximum(g.max(1), 0)  # 0: any point may turn out to be skipped
    down = ((mean - lowest) / groups.least[:, None]).max(0)
    up = ((highest - mean) / groups.least[:, None]).max(0)
    least = 1e-9 * (np.abs(g).max((0, 1)) * len(ratio.kind)) + 1e-150  # rounding is no evidence
    loss = np.maximum(np.stack([left * down - bases, left * up + bases], axis=1), least)
    spread = np.maximum(left * (groups.inverse @ variance), np.maximum(least**2, 1e-300))
    skew = left**2 * (groups.inverse2 @ third) / spread
    return Terms(z, loss, spread, skew), tilt


def _left(groups: _Groups, drawn: Array) -> Array:
    """Sum of the sizes that are open before each draw, without cancellation."""
    sizes = groups.size[drawn]
    open_ = groups.group >= 0
    open_[drawn] = False
    return np.asarray(groups.size[open_].sum() + np.cumsum(sizes[::-1])[::-1])


def _tilted(groups: _Groups, g: Array, tilt: Array) -> tuple[Array, Array, Array]:
    """Mean, variance and third central moment (M, G) of g under f_theta proportional to f exp(theta g) (G3)."""
    logs = groups.logs[:, :, None] + tilt * g
    weight = np.exp(logs - logs.max(1, keepdims=True))
    weight /= weight.sum(1, keepdims=True)
    mean = (weight * g).sum(1)
    away = g - mean[:, None]
    return mean, (weight * away**2).sum(1), (weight * away**3).sum(1)


def _fit_tilt(groups: _Groups, g: Array, before: Array, start: Array) -> Array:
    """(G,) theta at which known + believed is 0 (G3), by Newton's steps inside a bracket.

    Where no theta does it (q is hardly possible) the largest one is taken: any theta gives a valid term.
    """
    span = np.maximum((g.max(1) - g.min(1)).max(0), 1e-300)
    low, high = -40 / span, 40 / span
    too_high = before + groups.count @ g.min(1) >= 0
    too_low = before + groups.count @ g.max(1) <= 0
    tilt = np.where(too_high, low, np.where(too_low, high, np.clip(start, low, high)))
    settled = too_high | too_low
    enough = 1e-9 * span * groups.count.sum()
    for _ in range(40):
        mean, variance, _ = _tilted(groups, g, tilt)
        excess = before + groups.count @ mean
        settled |= np.abs(excess) <= enough
        if settled.all():
            break
        low, high = np.where(excess < 0, tilt, low), np.where(excess > 0, tilt, high)
        step = tilt - excess / np.maximum(groups.count @ variance, 1e-300)
        inside = np.where((step > low) & (step < high), step, (low + high) / 2)
        tilt = np.where(settled, tilt, inside)
    return tilt


# ---------------------------------------------------------------- bets


def horizons(budget: int | None, n_points: int) -> tuple[Array, Array]:
    """Numbers of draws (J,) for which bets are placed, and the share of the capital each gets (J,)."""
    if budget is not None:
        parts, shares = np.array(SHARES).T
        further = 2.0 ** np.arange(3, max(4, np.ceil(np.log2(max(n_points / max(budget, 1), 1))) + 1))
        ends = np.ceil(np.concatenate([parts, further]) * max(budget, 1))
        return np.maximum(ends, 1.0), np.concatenate([shares, np.full(len(further), BEYOND / len(further))])
    largest = min(max(n_points, FIRST_HORIZON), LAST_HORIZON)
    count = int(np.ceil(np.log2(largest / FIRST_HORIZON))) + 1
    return FIRST_HORIZON * 2.0 ** np.arange(count), np.full(count, 1 / count)


def log_capital(game: Terms, error: float, ends: Array, shares: Array) -> Array:
    """(T, 2, G) log of the capitals W+ and W- after each draw (G8).

    Capital is split over horizons; each part bets what would just bring it to 1 / (error share) at its horizon if
    gains were as large as they are believed to vary (G7), and starts for the double of its horizon once that is over.
    """
    steps, width = game.z.shape
    spread = game.variance * surprise(game)
    capital = np.ones((len(ends), 2, width))
    target = (1 / (error * shares))[:, None, None]
    limit = STAKE / (game.loss + game.behind)
    remaining = _remaining(steps, ends)
    log = np.empty((steps, 2, width))
    sign = np.array([1.0, -1.0])[:, None]
    for m in range(steps):
        missing = np.log(np.maximum(target / np.maximum(capital, 1e-300), 1.0))
        plain = np.sqrt(2 * missing / (remaining[m][:, None, None] * spread[m]))
        lean = plain * (sign * game.skew[m] / 6)
        bet = np.minimum(plain * np.where(lean < 0, 1 / (1 - lean), 1 + lean), limit[m])
        capital *= 1 + bet * (sign * game.z[m] - game.behind)
        log[m] = np.tensordot(shares, capital, 1)
    return np.asarray(np.log(np.maximum(log, 1e-300)))


def surprise(game: Terms) -> Array:
    """(T, G) squared terms so far over what the belief expected of them, 1 at least (G6)."""
    seen, believed = (np.cumsum(part, 0) - part for part in (game.z**2, game.variance))
    return np.asarray(np.maximum((WARY * game.variance + seen) / (WARY * game.variance + believed), 1.0))


def _remaining(steps: int, ends: Array) -> Array:
    """(T, J) draws from each draw (itself counted) to the horizon, which doubles when it is over."""
    m = np.arange(steps)[:, None]
    doublings = np.ceil(np.log2(np.maximum((m + 1) / ends, 1.0)))
    return np.asarray(ends * 2**doublings - m)


# ---------------------------------------------------------------- what is known


class Evidence(NamedTuple):
    """What the draws say about a threshold.

    answer        "above" or "below" once the capital of that side has reached 1 / error
    above, below  the largest capital that each side ever had; 1 / capital is a p-value at any time
    draws         how many draws it took, None as long as it is undecided
    """

    answer: Answer
    above: float
    below: float
    draws: int | None


def decide(
    ratio: Ratio, stages: Sequence[Stage], threshold: float, *, error: float = 0.05, budget: int | None = None
) -> Evidence:
    """Whether Q is above or below the threshold (G10).

    "above" is false with probability `error` at most if Q <= threshold, "below" if Q >= threshold, however often one
    looks. Where labels leave no other possibility, the capital is infinite.
    """
    q = np.array([float(threshold)])
    behind, error = ratio.behind(q, error)
    game = terms(ratio, stages, q)._replace(behind=behind)
    log = log_capital(game, error, *horizons(budget, len(ratio.kind)))[:, :, 0]
    certain = np.array([side[0] for side in impossible(ratio, _known(ratio, stages), q, behind)])
    largest = np.where(certain, np.inf, log.max(0, initial=0.0))
    reached = largest >= np.log(1 / error)
    if not reached.any():
        return Evidence("undecided", float(np.exp(largest[0])), float(np.exp(largest[1])), None)
    hits = [np.flatnonzero(log[:, side] >= np.log(1 / error)) for side in (0, 1)]
    first = [int(hit[0]) + 1 if len(hit) else len(log) for hit in hits]
    side = int(reached[1] and (not reached[0] or first[1] < first[0]))
    answer: Answer = "below" if side else "above"
    return Evidence(answer, float(np.exp(largest[0])), float(np.exp(largest[1])), first[side])


def interval(
    ratio: Ratio, stages: Sequence[Stage], *, confidence: float = 0.95, budget: int | None = None
) -> tuple[float, float]:
    """(low, high) that hold Q at all times at once with probability `confidence` at least (G9).

    The candidates that neither capital has ever brought to 2 / (1 - confidence), with those between them. Ends are
    found on a grid that is refined three times around them, to about 1e-5 of the metric's range, outwards.
    """
    error = (1 - confidence) / 2
    ends, shares = horizons(budget, len(ratio.kind))
    known = _known(ratio, stages)

    def rejected(q: Array) -> tuple[Array, Array]:
        behind, left = ratio.behind(q, error)
        game = terms(ratio, stages, q)._replace(behind=behind)
        log = log_capital(game, left, ends, shares).max(0, initial=0.0)
        above, below = impossible(ratio, known, q, behind)
        return above | (log[0] >= np.log(1 / left)), below | (log[1] >= np.log(1 / left))

    bottom, top = ratio.bounds
    low = bottom + (top - bottom) * np.sin(np.linspace(0, np.pi / 2, 2 * CELLS + 1)) ** 2
    high = low[::-1]
    for _ in range(4):
        above, below = rejected(np.concatenate([low, high]))
        low, high = _cell(low, above[: len(low)]), _cell(high, below[len(low) :])
    first, last = sorted((float(low[0]), float(high[0])))
    return first, last


CELLS: Final = 16
"""Parts into which the grid cell that holds an end of the interval is divided."""


def _cell(points: Array, rejected: Array) -> Array:
    """A finer grid on the cell between the last candidate in a row that is rejected from the start and the next one."""
    count = int(np.argmin(np.append(rejected, False)))
    if count in (0, len(points)):
        return np.full(len(points), points[0 if count == 0 else -1])
    return np.linspace(points[count - 1], points[count], CELLS + 1)


def _known(ratio: Ratio, stages: Sequence[Stage]) -> Array:
    return stages[-1].after() if stages else np.full(len(ratio.kind), OPEN)


def impossible(ratio: Ratio, known: Array, q: Array, behind: Array | float = 0.0) -> tuple[Array, Array]:
    """(G,) whether Q must be above q, and below q, whatever the open points turn out to be; behind: B of (G11)."""
    g = ratio.values(q)
    above, below = ratio.totals(known)
    at = above - q * below
    count = np.bincount(ratio.kind[known == OPEN], minlength=len(g)).astype(np.float64)
    rounding = 1e-9 * np.abs(g).max((0, 1)) * len(ratio.kind) + behind
    return at + count @ np.minimum(g.min(1), 0) > rounding, at + count @ np.maximum(g.max(1), 0) < -rounding
