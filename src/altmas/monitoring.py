"""Did it get worse? The level of a metric in each wave, its change, and an alarm that holds at every look.

Waves k = 1, 2, ... are the values of the slice "wave", in the order in which they came. Each has a confidence sequence
at level 1 - a_k that holds at every look (guarantee.py), with
    a_k = a * F / ((k + F - 1) (k + F)),    F = 12:    the sum over all waves is a                              (V8)
so with probability 1 - a every wave's level lies in its sequence at all times, however many waves come. A drop against
another wave is shown by the capitals of both waves' games together (G12), with error
    a_k / 2 against the wave before,  a_k / 4 against the first,  a_k / (4 (k - 3)) against each other,         (V10)
    nine tenths of each for whether wave k is worse, the rest for whether the earlier wave is
so with probability 1 - a no drop is ever shown that is none, over all waves, comparisons and looks together.
Where no proof is offered for a metric, sequences are intervals for many labels, and a drop is shown where they do not
overlap; in a session with a guarantee none is shown then.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from altmas.errors import MetricError, PlanError
from altmas.estimates import FLOOR, LEAST_DRAWN, Estimate
from altmas.frames import plain
from altmas.guarantee import interval
from altmas.guarantee_pair import Better, Game, shown_apart
from altmas.guaranteed import NotNow, NotOffered, estimates_of, games_of
from altmas.metrics import Metric, metric_set
from altmas.metrics.differences import difference
from altmas.pool.growth import WAVE, values_in_order
from altmas.session.snapshot import Snapshot
from altmas.suggest import listing, near
from altmas.svg import Interval, intervals, standalone

if TYPE_CHECKING:
    from altmas.session import Session

Answer = Literal["drop", "no drop", "cannot tell"]

FLAT = 12
"""Waves over which the error is spread nearly evenly before it falls off."""
BACKWARD = 0.1
"""Share of a pair's error for the question whether the earlier wave is worse than the later one."""


def error_of_wave(error: float, number: int) -> float:
    """a_k of (V8), waves counted from 1."""
    return error * FLAT / ((number + FLAT - 1) * (number + FLAT))


def error_against(error: float, number: int, other: int) -> float:
    """The share of a_k that the comparison of wave k with another has (V10).

    A wave may be compared with a later one: that is another question about the same pair, with an error of its own.
    """
    last, first = max(number, other), min(number, other)
    pair = error_of_wave(error, last) / (2 if first == last - 1 else 4 if first == 1 else 4 * (last - 3))
    return pair * (1 - BACKWARD if other < number else BACKWARD)


@dataclass(frozen=True)
class Level:
    """One wave.

    value, low, high               the metric there, with the interval of an estimate (from 10 labels on)
    change, change_low, change_high  its difference to the wave that it is compared with, likewise
    always_low, always_high        what it lies between at every look, all waves together
    answer                         whether a drop against that wave is shown
    looks_worse                    whether it only looks like one: the interval of the change, which is for one look,
                                   lies beyond the tolerance, and the test for every look has not decided
    """

    wave: str
    points: int
    labels: int
    value: float
    low: float
    high: float
    change: float
    change_low: float
    change_high: float
    always_low: float
    always_high: float
    against: str
    answer: Answer
    looks_worse: bool = False

    @property
    def tone(self) -> str:
        """How a chart shows it."""
        if not self.against:
            return "plain"
        return "open" if self.looks_worse else {"drop": "bad", "no drop": "good", "cannot tell": "open"}[self.answer]


TONES = {
    "plain": "the first, compared with none",
    "good": "no {worse} shown",
    "open": "looks like a {worse}, or cannot be told",
    "bad": "a {worse} is shown",
}
"""What the tones of levels mean."""


@dataclass(frozen=True)
class Monitor(Sequence[Level]):
    """The waves in order; `answer` is that of the newest.

    since_first  the newest wave beside the first, if it is compared with the one before and that is another: a slow
                 slide shows there
    proven  whether the alarm has a finite-sample proof; else it rests on intervals that hold for many labels
    worse   what getting worse is called: a drop or, of a metric that is better when it is lower, a rise
    """

    metric: str
    levels: tuple[Level, ...]
    confidence: float
    tolerance: float
    proven: bool
    worse: Literal["drop", "rise"] = "drop"
    since_first: Level | None = None

    def __len__(self) -> int:
        return len(self.levels)

    def __getitem__(self, key: Any) -> Any:
        return self.levels[key]

    @property
    def answer(self) -> Answer:
        """Whether a drop (or a rise, if that is worse) is shown in the newest wave, also against the first."""
        slid = self.since_first is not None and self.since_first.answer == "drop"
        return "drop" if slid else self.levels[-1].answer

    @property
    def summary(self) -> str:
        """What the newest wave says; of an alarm also what is guaranteed."""
        last, first = self.levels[-1], self.since_first
        if not last.against:
            return f"{self.metric} in wave {last.wave}: there is nothing to compare it with yet."
        findings = [self._finding(last)]
        if first is not None and last.answer != "drop" and (first.answer == "drop" or first.looks_worse):
            findings.append(self._finding(first))
        many = "" if self.proven else " if labels are many (no finite-sample proof for this metric or method)"
        if self.answer == "drop":
            sure = (
                f"; all alarms, over all waves and looks, are right with probability {100 * self.confidence:g} %{many}"
            )
        else:
            open_ = len(findings) > 1 or last.looks_worse or self.answer == "cannot tell"
            sure = ("" if open_ else "; that is no proof that there is none") + (f"; alarms hold{many}" if many else "")
        return f"{self.metric} in wave {last.wave}: {'; '.join(findings)}{sure}."

    def _finding(self, level: Level) -> str:
        """What is shown of the wave beside the one that it is compared with."""
        beyond = f" of more than {self.tolerance:g}" if self.tolerance else ""
        if level.looks_worse:
            return (
                f"it looks like a {self.worse}{beyond} against {level.against} (the interval of the change, which is "
                f"for one look, is {level.change_low:+.3f} to {level.change_high:+.3f}), but that is not shown at "
                f"every look yet; more labels in {level.wave} and {level.against} decide it"
            )
        return {
            "drop": f"a {self.worse}{beyond} against {level.against} is shown",
            "no drop": f"no {self.worse}{beyond} against {level.against} is shown",
            "cannot tell": f"whether there is a {self.worse} against {level.against} cannot be told yet: that takes "
            f"{LEAST_DRAWN} drawn labels in {level.wave} and in {level.against}",
        }[level.answer]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (unknown numbers are None)."""
        values: dict[str, Any] = plain(asdict(self) | {"answer": self.answer, "summary": self.summary})
        return values

    def to_svg(self) -> str:
        """The levels as a figure: intervals of the estimates, one row for each wave."""
        rows = [
            Interval(
                f"{level.wave} ({level.labels} label{'s' * (level.labels != 1)})",
                level.value,
                *_ends(level),
                level.tone,
            )
            for level in self.levels
            if not math.isnan(level.value)
        ]
        title = f"{self.metric} by wave, {100 * self.confidence:g} % intervals of the levels"
        used = {level.tone for level in self.levels}
        key = [(tone, words.format(worse=self.worse)) for tone, words in TONES.items() if tone in used]
        return standalone(intervals("waves", title, rows), title, key)


def _ends(level: Level) -> tuple[float | None, float | None]:
    return (None, None) if math.isnan(level.low) else (level.low, level.high)


def monitor(
    session: "Session", metric: str | None = None, *, against: str | None = None, tolerance: float = 0.0
) -> Monitor:
    """The metric in each wave of a session, by default its first; `against` names the wave to compare with.

    tolerance  a drop has to be larger than this to be shown
    """
    now = session.now()
    pool = now.task.pool
    waves = values_in_order(pool, WAVE, now.history.domains) if WAVE in pool.slices else []
    if len(waves) == 0:
        raise PlanError(
            "this session has no waves: add items with session.extend(items, wave=...) (altmas extend --data), or give "
            "the pool a slice 'wave'"
        )
    if against is not None and against not in waves:
        raise PlanError(f"there is no wave {against!r} (waves: {listing(waves)}){near(against, waves)}")
    if not (isinstance(tolerance, int | float) and 0 <= tolerance < math.inf):
        raise PlanError(f"tolerance {tolerance!r} was not understood; expected a number of at least 0")
    of_wave = {wave: _on_wave(now, metric, wave) for wave in waves}
    pairs = [
        (wave, against if against is not None else before) for before, wave in zip(["", *waves], waves, strict=False)
    ]
    slides = against is None and len(waves) > 2
    levels, proven = _levels(now, of_wave, [*pairs, (waves[-1], waves[0])] if slides else pairs, float(tolerance))
    since_first = levels.pop() if slides else None
    base = metric or now.task.metrics[0].name
    worse: Literal["drop", "rise"] = "rise" if of_wave[waves[0]].lower_is_better else "drop"
    return Monitor(base, tuple(levels), now.task.confidence, float(tolerance), proven, worse, since_first)


def _on_wave(now: Snapshot, metric: str | None, wave: str) -> Metric:
    whole, *others = now.task.metrics[:1] if metric is None else metric_set(metric, now.task.pool)
    if others:
        names = listing(candidate.name for candidate in (whole, *others))
        raise MetricError(f"metric {metric!r} stands for {1 + len(others)} metrics; monitor one of them: {names}")
    on_wave = whole.on_slice(WAVE, wave)
    if on_wave is None or whole.where is not None:
        raise MetricError(f"metric {whole.name!r} cannot be monitored: it is not one of the whole pool")
    return on_wave


def _levels(
    now: Snapshot, of_wave: dict[str, Metric], pairs: list[tuple[str, str]], tolerance: float
) -> tuple[list[Level], bool]:
    """(each wave beside the one that it is compared with ("" for none), whether alarms have a proof)."""
    waves, metrics = list(of_wave), list(of_wave.values())
    changes = {
        (wave, reference): difference(of_wave[wave], of_wave[reference])
        for wave, reference in pairs
        if reference and reference != wave
    }
    task = replace(now.task, metrics=(*metrics, *changes.values()), targets=(), guarantee=False)
    estimates = {estimate.metric: estimate for estimate in estimates_of(now.plan.method, task, now.history)}
    error = 1 - now.task.confidence
    games = dict(zip(waves, games_of(now.plan.method, task, now.history, metrics), strict=True))
    always = {
        wave: _always(now, of_wave[wave], games[wave], error_of_wave(error, number))
        for number, wave in enumerate(waves, start=1)
    }
    levels = []
    for wave, reference in pairs:
        own, compared = estimates[of_wave[wave].name], changes.get((wave, reference))
        change = None if compared is None else estimates[compared.name]
        inside = of_wave[wave].members(now.task.pool)
        assert inside is not None
        answer: Answer = "cannot tell"
        if compared is not None:
            share = error_against(error, waves.index(wave) + 1, waves.index(reference) + 1)
            worse = _is_worse(now, of_wave[wave], (wave, reference), games, always, share, tolerance)
            pair = [estimates[of_wave[name].name] for name in (wave, reference)]
            if all(map(_enough, pair)):
                answer = "drop" if worse else "no drop"
        against = "" if compared is None else reference
        few = [_too_few(estimates[of_wave[name].name]) for name in (wave, reference) if name]
        differs = _bounds(change, any(few))
        beyond = differs[1] > tolerance if of_wave[wave].lower_is_better else differs[2] < -tolerance
        looks_worse = answer == "no drop" and bool(beyond)
        parts = (*_bounds(own, few[0]), *differs, *always[wave][0])
        levels.append(Level(wave, int(inside.sum()), own.labels, *parts, against, answer, looks_worse))
    return levels, all(proof for _, proof in always.values())


def _bounds(estimate: Estimate | None, few: bool) -> tuple[float, float, float]:
    """(value, low, high); no interval from a few labels: what lies in between holds for many."""
    if estimate is None:
        return math.nan, math.nan, math.nan
    return (estimate.value, math.nan, math.nan) if few else (estimate.value, estimate.low, estimate.high)


def _too_few(estimate: Estimate) -> bool:
    return estimate.labels < FLOOR and estimate.low != estimate.high


def _always(
    now: Snapshot, metric: Metric, game: Game | NotNow | NotOffered, error: float
) -> tuple[tuple[float, float], bool]:
    """((low, high) at every look with that chance of an error, whether it has a proof).

    All values where there is no proof yet, or where none is offered and the session has a guarantee.
    """
    if isinstance(game, Game):
        return interval(game.ratio, game.stages, confidence=1 - error, budget=now.task.budget), True
    if isinstance(game, NotNow) or now.task.guarantee:
        return metric.bounds, isinstance(game, NotNow)
    task = replace(now.task, metrics=(metric,), targets=(), confidence=1 - error, stopping=True)
    (estimate,) = now.plan.method.estimate(task, now.history)
    bounds = metric.bounds if math.isnan(estimate.low) else (estimate.low, estimate.high)
    return bounds, False


def _is_worse(
    now: Snapshot,
    metric: Metric,
    pair: tuple[str, str],
    games: dict[str, Game | NotNow | NotOffered],
    always: dict[str, tuple[tuple[float, float], bool]],
    error: float,
    tolerance: float,
) -> bool:
    """Whether the first of two waves is shown to be worse than the second by more than the tolerance."""
    own, reference = games[pair[0]], games[pair[1]]
    # Of a pool that is a sample of a larger table the sequences alone say how far that table may lie (G11).
    if isinstance(own, Game) and isinstance(reference, Game):
        if min(own.ratio.fraction, reference.ratio.fraction) >= 1:
            better: Better = "lower" if metric.lower_is_better else "higher"
            return shown_apart(reference, own, margin=tolerance, error=error, budget=now.task.budget, better=better)
    (low, high), (reference_low, reference_high) = always[pair[0]][0], always[pair[1]][0]
    return low > reference_high + tolerance if metric.lower_is_better else high < reference_low - tolerance


def _enough(estimate: Estimate) -> bool:
    """Whether a wave has enough labels to say that a drop is shown, or that none is."""
    return not math.isnan(estimate.value) and (estimate.labels >= LEAST_DRAWN or estimate.low == estimate.high)
