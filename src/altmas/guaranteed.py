"""Intervals and decisions of a session with a finite-sample proof: from its log to the game of `altmas.guarantee`.

A method takes part if its draws come one after another with known chances (`DrawsInSequence`). The belief of a stage is
the one from labels told before it began, so every bet is made before the draw.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from altmas.estimates import Estimate, Estimates, possible_values, within
from altmas.guarantee import Answer, Evidence, Stage, decide, interval
from altmas.guarantee_pair import NOW, Game
from altmas.history import History
from altmas.methods.protocol import DrawsInSequence, Method, SequenceOfDraws
from altmas.metrics import Metric
from altmas.pool import Pool
from altmas.ratios import OPEN, SKIPPED, TableRatio, table_ratio
from altmas.task import Task
from altmas.types import Array

FIRST_BELIEF = 0.8
"""P(the model is right) before any label; it is fitted to each candidate value, so any number would do."""


@dataclass(frozen=True)
class NotOffered:
    """No proof is offered for a metric, whatever the labels; where none was asked for, an interval may decide."""

    why: str


@dataclass(frozen=True)
class NotNow:
    """A proof is offered for a metric, but not in this state: nothing is decided, and any value is possible."""

    why: str
    answer: ClassVar[Answer] = "undecided"


def offers_guarantee(method: Method, metric: Metric, pool: Pool) -> bool:
    """Whether a proof covers this metric under this method: its draws have known chances, it is a ratio of sums.

    A kappa and a difference of slices or precisions divide by numbers of points, which are not those of the table if
    the pool is a random sample of it.
    """
    tables = _tables(metric, pool)
    if tables is None or not isinstance(method, DrawsInSequence):
        return False
    if pool.sampled_from is None:
        return True
    if len(tables) == 1:
        return not metric.divides_by_answers
    return all((den == 1).all() for _, den in tables) and all(part.where is None for _, part in metric.parts)


def not_offered(method: Method, task: Task, metric: Metric) -> NotOffered | None:
    """Why no proof is offered for the metric, whatever the labels will be; None if one is."""
    if task.ahead:
        return NotOffered(
            "the session is about data like the pool (about='future'), and a proof is about the items of the pool alone"
        )
    if task.units is not None:
        return NotOffered("whole groups are drawn, and no guarantee is offered for that")
    if not isinstance(method, DrawsInSequence):
        return NotOffered(f"method {method.name} offers no proof; assured and tradition do")
    if not offers_guarantee(method, metric, task.pool):
        return NotOffered(f"no proof is offered for {metric.name}: it is no ratio of sums that one covers")
    many = too_many_weights(task.pool)
    return NotOffered(many) if many else None


def guaranteed_decision(
    method: Method, task: Task, history: History, metric: Metric, threshold: float
) -> Evidence | NotNow | NotOffered:
    """Whether the metric is shown to be above or below the threshold, at every look."""
    (game,) = games_of(method, task, history, [metric])
    return decided_by(game, task, history, threshold)


def decided_by(
    game: Game | NotNow | NotOffered, task: Task, history: History, threshold: float
) -> Evidence | NotNow | NotOffered:
    """What a game says of a threshold at the task's confidence; why there is none, or why hardly an answer counts."""
    if not isinstance(game, Game):
        return game
    evidence = decide(game.ratio, game.stages, threshold, error=1 - task.confidence, budget=task.budget)
    why = missing(game, task, history) if evidence.answer == "undecided" else ""
    return NotNow(why) if why else evidence


def guaranteed_interval(
    method: Method, task: Task, history: History, metric: Metric
) -> tuple[float, float] | NotOffered:
    """(low, high) that hold at every look at the task's confidence: all values where there is no proof yet."""
    (game,) = games_of(method, task, history, [metric])
    return game if isinstance(game, NotOffered) else _interval_of(game, task, metric)


def _interval_of(game: Game | NotNow, task: Task, metric: Metric) -> tuple[float, float]:
    if isinstance(game, NotNow):
        return metric.bounds
    return interval(game.ratio, game.stages, confidence=task.confidence, budget=task.budget)


def games_of(
    method: Method, task: Task, history: History, metrics: Sequence[Metric]
) -> list[Game | NotNow | NotOffered]:
    """The game about each metric, from one reading of the draws; without one, whether it is not offered or not now.

    A game may have no draw that counts: then it says what the known labels leave possible, and nothing else.
    """
    absent = [not_offered(method, task, metric) for metric in metrics]
    if all(absent) or not isinstance(method, DrawsInSequence):
        return [none or NotOffered("") for none in absent]
    sequences = _as_recorded(method.sequences(task, history), history)
    return [none or _game(task, history, metric, sequences) for none, metric in zip(absent, metrics, strict=True)]


EVERYTHING = (-math.inf, math.inf)


def estimates_of(method: Method, task: Task, history: History) -> Estimates:
    """What a method estimates, as sessions show it: with a proof if the task has one, without values ruled out."""
    estimates = method.estimate(task, history)
    if task.guarantee:
        estimates = with_guarantee(method, task, history, estimates)
    possible = {metric.name: possible_values(metric, task, history) for metric in task.metrics}
    values = [within(estimate, possible.get(estimate.metric, EVERYTHING)) for estimate in estimates]
    if len(history.labels) == history.n_points:
        values = list(map(_undefined_for_good, values))
    return replace(estimates, values=tuple(values))


def _undefined_for_good(estimate: Estimate) -> Estimate:
    """The estimate with every point labelled: where it is undefined no further label can change that."""
    if not math.isnan(estimate.value):
        return estimate
    note = f"undefined: every point is labelled, and {estimate.metric} is not defined with these labels"
    return replace(estimate, note=note)


def with_guarantee(method: Method, task: Task, history: History, estimates: Estimates) -> Estimates:
    """The estimates with intervals that hold at every look, where a proof is offered; the others as they are.

    Where there is no proof yet the interval has all values that are possible, and the note says what is missing.
    """
    if not history.labels:
        return estimates
    metrics = {metric.name: metric for metric in task.metrics}
    chosen = [metrics[estimate.metric] for estimate in estimates]
    games = games_of(method, task, history, chosen)
    answers = (
        _guaranteed(game, task, history, metric, estimate)
        for game, metric, estimate in zip(games, chosen, estimates, strict=True)
    )
    return replace(estimates, values=tuple(answers))


def _guaranteed(
    game: Game | NotNow | NotOffered, task: Task, history: History, metric: Metric, estimate: Estimate
) -> Estimate:
    if isinstance(game, NotOffered):
        without = f"without a proof: {game.why}" if estimate.interval != "none" else ""
        return replace(estimate, note=_joined(estimate.note, without))
    without = "" if math.isnan(estimate.low) and not math.isnan(estimate.value) else estimate.note
    note = _joined(without, missing(game, task, history))
    if estimate.value != estimate.value:  # what is undefined has no interval
        return replace(estimate, low=math.nan, high=math.nan, interval="none", note=note)
    low, high = _interval_of(game, task, metric)
    low, high = min(low, estimate.value), max(high, estimate.value)
    return replace(estimate, low=low, high=high, interval="guaranteed", note=note)


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def missing(game: Game | NotNow, task: Task, history: History) -> str:
    """Why fewer than half of the answers count for a proof, in words; empty where more do."""
    if isinstance(game, NotNow):
        return game.why
    counted = sum(len(stage.drawn) for stage in game.stages)
    positions = {row: position for position, row in enumerate(history.drawn.tolist())}
    waiting = set(history.outstanding.tolist())
    answered = [position for row, position in positions.items() if row not in waiting]
    if not answered:
        return "no proof yet: no item that was asked for has an answer"
    if 2 * counted >= len(answered):
        return ""
    first = int(history.outstanding[0]) if len(history.outstanding) else None
    so_far = f"{counted} of {len(answered)} answers count for the proof"
    if first is not None and positions[first] < max(answered):
        return f"{so_far}: item {task.pool.ids[first]!s} was asked for before the others and has no answer yet"
    if history.grown:
        return f"{so_far}: the others were drawn before items were added"
    return (
        f"{so_far}: when the others were drawn, labels or skips of other items stood that were taken back since, or "
        "items had been skipped that nobody asked for, or an earlier edition of the method drew them"
    )


def _game(task: Task, history: History, metric: Metric, sequences: list[SequenceOfDraws]) -> Game | NotNow:
    """The metric as a ratio and the stages of draws, of a metric for which a proof is offered."""
    pool = task.pool
    tables = _tables(metric, pool)
    assert tables is not None
    if metric.divides_by_answers and history.skipped:
        return NotNow(
            "no proof after a skip: it rests on how often each class is answered among the items that can be labelled, "
            "which is not known any more"
        )
    shared = _shared_sizes(metric, tables, pool)
    if shared is None and history.skipped:  # points that a skip takes out of a slice change its known size
        return NotNow(
            "no proof after a skip: the two sides of the difference divide by numbers of items that can be labelled, "
            "which are not known any more"
        )
    if shared is not None and not shared.any():
        return NotNow("no proof: no item of the pool can count for it")
    relevant = _about(sequences, _points(metric, pool), history)
    ratio = _ratio_of(metric, tables, pool)
    ratio = replace(ratio, ratio=replace(ratio.ratio, fraction=task.fraction))
    stages = [_stage(ratio, sequence, history, pool) for sequence in relevant.values()]
    return Game(ratio.ratio, [*stages, _now(stages[-1], ratio, history)], (*relevant, NOW))


def _drawn(history: History) -> Array:
    """(N,) whether a point was drawn."""
    drawn = np.zeros(history.n_points, np.bool_)
    drawn[history.drawn] = True
    return drawn


MOST_WEIGHTS = 20_000
"""Different weights of rows with which bets are placed: points of one weight are summed up together."""


def too_many_weights(pool: Pool) -> str:
    """Why no proof is offered for a pool whose rows have weights; empty if one is."""
    if pool.weights is None or len(pool) <= MOST_WEIGHTS:
        return ""
    count = len(np.unique(pool.weights))
    if count <= MOST_WEIGHTS:
        return ""
    return (
        f"the rows of this pool have {count:,} different weights, and a proof is offered for at most "
        f"{MOST_WEIGHTS:,}; round them, or leave the guarantee out"
    )


def _weight(members: Array | None, pool: Pool) -> Array | None:
    """(N,) how often each point counts; None for once each."""
    if pool.weights is None:
        return members
    return pool.weights if members is None else pool.weights * members


def _points(metric: Metric, pool: Pool) -> Array:
    """(N,) points that the metric is about."""
    points = np.zeros(len(pool), np.bool_)
    for _, part in metric.parts:
        members = part.members(pool)
        points |= True if members is None else members
    return points


def _as_recorded(sequences: list[SequenceOfDraws], history: History) -> list[SequenceOfDraws]:
    """The sequences, ended where draws do not have the chances that were recorded with them.

    A method that records what it could draw from needs no such look. Of others the log of a session tells it, or else
    the order of the labels, which comes out wrong where something was taken back.
    """
    if any("population" in batch.record for batch in history.batches):
        return sequences
    recorded = np.full(history.n_points, np.nan)
    for batch in history.batches:
        recorded[batch.indices] = np.nan if batch.probabilities is None else batch.probabilities
    checked = []
    for sequence in sequences:
        sizes = sequence.sizes[sequence.rows]
        left = sequence.sizes[sequence.open].sum() - (np.cumsum(sizes) - sizes)
        if not np.allclose(sizes / left, recorded[sequence.rows], rtol=1e-6, atol=0):
            sequence = replace(sequence, rows=sequence.rows[:0], cut=True)
        checked.append(sequence)
    return checked


def _about(sequences: list[SequenceOfDraws], members: Array, history: History) -> dict[int, SequenceOfDraws]:
    """The sequences that are about all these points, by number: others tell nothing of some of them.

    One of which nothing is answered yet is left out: what merely waits tells nothing.
    Draws after one that has no answer do not count: whoever leaves the points open on which a player would lose would
    let that player win. The same holds where a label or skip that was there when a sequence began was taken back: its
    point was not drawn from, and is not known. Without any sequence the labels are known and nothing else: one
    sequence without a draw.
    """
    unknown = history.known < 0
    unknown[list(history.skipped)] = False
    answered = _drawn(history) & ~unknown
    relevant = {
        number: sequence
        for number, sequence in enumerate(sequences)
        if (len(sequence.rows) or (sequence.open & answered).any())
        and (sequence.within is None or not (members & ~sequence.within).any())
    }
    if not relevant:
        nothing = SequenceOfDraws(unknown, np.ones(history.n_points), None, np.zeros(0, np.int64))
        return {len(sequences): nothing}
    counted, over = {}, False
    for number, sequence in relevant.items():
        over |= bool((members & unknown & ~sequence.open).any())
        counted[number] = replace(sequence, rows=sequence.rows[:0]) if over else sequence
        over |= sequence.cut
    return counted


Tables = tuple[Array, Array]


def _tables(metric: Metric, pool: Pool) -> list[Tables] | None:
    """(num, den) of the metric, or of each part of a difference; None where no proof is offered.

    A difference is covered where the size below the line of either side is known beforehand.
    """
    if metric.contrasts:
        return None
    ratios = [part.ratio_on(pool) for _, part in metric.parts]
    defined = [tables for tables in ratios if tables is not None]
    if len(defined) < len(ratios):
        return None
    fixed = all(bool((den == den[:, :1]).all()) for _, den in defined)
    return defined if len(defined) == 1 or fixed else None


def _shared_sizes(metric: Metric, tables: list[Tables], pool: Pool) -> Array | None:
    """(N,) the most that each point can count below the line; None if the sides of a difference count different points.

    Sides that count the same points, such as two models on one slice, are one ratio, and a skip takes a point out of
    both. Else each side divides by a size of its own, which is known as long as no point is skipped.
    """
    sizes = []
    for (_, part), (_, den) in zip(metric.parts, tables, strict=True):
        size, members = den.max(1)[part.rows(part, pool).codes], part.members(pool)
        sizes.append(size if members is None else size * members)
    return sizes[0] if all((size == sizes[0]).all() for size in sizes[1:]) else None


def _ratio_of(metric: Metric, tables: list[Tables], pool: Pool) -> TableRatio:
    if len(tables) > 1:
        return _of_difference(metric, tables, pool)
    bounds = metric.bounds if metric.divides_by_answers else None
    return table_ratio(*tables[0], metric.rows(metric, pool).codes, _weight(metric.members(pool), pool), bounds)


def _of_difference(metric: Metric, tables: list[Tables], pool: Pool) -> TableRatio:
    """A difference of means over the same points as one ratio, and over known numbers of points as one mean.

    The mean is over the points of either side; others, as those that came later, count neither above nor below.
    """
    shared, points = _shared_sizes(metric, tables, pool), _points(metric, pool)
    total = float(points.sum() if pool.weights is None else pool.weights[points].sum())
    columns, scales = [], []
    for (_, part), (_, den) in zip(metric.parts, tables, strict=True):
        members, rows = part.members(pool), part.rows(part, pool).codes
        columns.append(rows if members is None else np.where(members, rows, -1))
        sizes = den[rows, 0] if pool.weights is None else den[rows, 0] * pool.weights
        size = float(sizes.sum() if members is None else sizes[members].sum())
        scales.append(1.0 if shared is not None else total / size if size > 0 else total)
    kinds, first, codes = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
    num = np.zeros((len(kinds), len(pool.classes)))
    for column, ((factor, _), (above, _)) in enumerate(zip(metric.parts, tables, strict=True)):
        inside = kinds[:, column] >= 0
        num[inside] += factor * scales[column] * above[kinds[inside, column]]
    below = np.where(points, 1.0, 0.0) if shared is None else shared
    den = np.repeat(below[first][:, None], num.shape[1], axis=1)
    return table_ratio(num, den, codes.ravel(), pool.weights, metric.bounds)


def _stage(ratio: TableRatio, sequence: SequenceOfDraws, history: History, pool: Pool) -> Stage:
    labels = _labels(history)
    known = np.where(sequence.open, OPEN, labels)
    if sequence.within is not None:  # the metric is about none of those that came later
        known = np.where((known == OPEN) & ~sequence.within, SKIPPED, known)
    outcomes = ratio.outcomes(labels)
    return Stage(
        known=ratio.outcomes(known),
        sizes=sequence.sizes,
        belief=ratio.belief(_probabilities(pool, sequence)),
        drawn=sequence.rows,
        outcomes=outcomes[sequence.rows],
    )


def _now(last: Stage, ratio: TableRatio, history: History) -> Stage:
    """A stage without a draw, which knows what is known now, also what was told unasked since the last one began.

    Draws of the last one that do not count are no part of it.
    """
    held, nothing = (last.after() == OPEN) & _drawn(history), np.zeros(0, np.int64)
    known = np.where(held, OPEN, ratio.outcomes(_labels(history)))
    return replace(last, known=known, sizes=np.ones(len(known)), drawn=nothing, outcomes=nothing)


def _labels(history: History) -> Array:
    """(N,) the label of each point; SKIPPED, or OPEN where there is no answer."""
    labels = np.where(history.known >= 0, history.known, OPEN)
    labels[list(history.skipped)] = SKIPPED
    return labels


def _probabilities(pool: Pool, sequence: SequenceOfDraws) -> Array:
    """(N, C) what was believed when the sequence began."""
    points, n_classes = np.arange(len(pool)), len(pool.classes)
    if sequence.belief is not None:
        return sequence.belief.rows(points)
    if not pool.models:
        return np.full((len(pool), n_classes), 1 / n_classes)
    chances = np.full((len(pool), n_classes), (1 - FIRST_BELIEF) / (n_classes - 1))
    chances[points, pool.predictions] = FIRST_BELIEF
    return chances
