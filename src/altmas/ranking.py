"""Which of several models is best: tiers, not a winner.

    best             the one that looks best so far; its lead over the others may be luck
    not told apart   the difference to the best has an interval that contains 0
    worse            shown to be worse than the best

Intervals of the differences hold for all models together and at every look (methods/assured/contest.py, R1, R3), and
nobody is called worse with fewer than LEAST_RANKED drawn labels.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from altmas.estimates import ABOUT_WHAT, LEAST_DRAWN, possible_values
from altmas.frames import frame_of, plain
from altmas.history import History
from altmas.methods import Method, check_ahead
from altmas.methods.assured.contest import Contest, comparing, metrics_to_rank
from altmas.metrics import Metric
from altmas.metrics.differences import difference
from altmas.streams import stream
from altmas.suggest import listing
from altmas.task import Task
from altmas.types import Array

if TYPE_CHECKING:
    from altmas.session import Session

BEST, TIED, WORSE = "best", "not told apart", "worse"
BETTER = "better"
"""A tier that lasts no longer than until the model that has it leads the ranking."""

LEAST_RANKED = 2 * LEAST_DRAWN
"""Drawn labels before a model is called worse: the quantile over all models comes from the labels themselves, and with
25 of them three of 136 sessions excluded a truly best model (docs/ranking.md)."""


@dataclass(frozen=True)
class Ranked:
    """One model in a ranking.

    value       its metric; nan where undefined
    behind      how far it lies behind the best, in the metric's own unit: 0 for the best, below 0 where its own
                estimate is the better one
    low, high   the interval of that, for all models together and at every look; nan for the best and without labels
    tier        "best" | "not told apart" | "worse"
    """

    model: str
    value: float
    behind: float
    low: float
    high: float
    tier: str

    def __str__(self) -> str:
        value = "undefined" if math.isnan(self.value) else f"{self.value:.4f}"
        far = "tied with the best" if self.behind < 0 else f"behind by {self.behind:+.4f}"
        bounds = "" if math.isnan(self.low) else f"  {far} [{self.low:+.4f}, {self.high:+.4f}]"
        return f"{self.model:<24} {value}{bounds}  {self.tier}"

    @property
    def shown_behind(self) -> str:
        """How far it lies behind the best, for a table; "tied" where its own estimate is the better one."""
        if math.isnan(self.behind) or self.tier == BEST:
            return "-"
        return "tied" if self.behind < 0 else f"{self.behind:+.4f}"


@dataclass(frozen=True)
class Ranking(Sequence[Ranked]):
    """Models from the best down; those that are shown to be worse come last.

    contender           the model next to the best that is not told apart from it; None if there is none
    labels_to_separate  about how many more labels would tell these two apart; None if more than the pool has
    about               "pool", "source" or "future": whether they are ranked on this pool, on all rows of which it is
                        a random sample, or on data like it
    differing           points without a label on which these two differ, if their labels would settle it; None if not
    alike               models that no label can tell from the best: for this metric they say the same of every point
    """

    models: tuple[Ranked, ...]
    metric: str
    confidence: float
    labels: int
    method: str
    contender: str | None = None
    labels_to_separate: int | None = None
    note: str = ""
    about: str = "pool"
    alike: tuple[str, ...] = ()
    differing: int | None = None

    @overload
    def __getitem__(self, key: int | str) -> Ranked: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Ranked]: ...
    def __getitem__(self, key: int | str | slice) -> Ranked | Sequence[Ranked]:
        """By position, or by the name of the model."""
        if isinstance(key, str):
            return {ranked.model: ranked for ranked in self.models}[key]
        return self.models[key]

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.models)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.models), self.summary])

    @property
    def best(self) -> str:
        """The model that looks best so far."""
        return self.models[0].model

    def tier(self, name: str) -> tuple[str, ...]:
        """The models of a tier: "best", "not told apart" or "worse"."""
        return tuple(ranked.model for ranked in self.models if ranked.tier == name)

    @property
    def summary(self) -> str:
        """What is shown so far, and what is not, in a few sentences."""
        return f"{self.finding} {self.outlook}".rstrip()

    @property
    def finding(self) -> str:
        """What is shown so far, in a sentence."""
        if self.note:
            return self.note
        tied, worse = self.tier(TIED), self.tier(WORSE)
        where = f"on {ABOUT_WHAT[self.about]}"
        sentence = f"By {self.metric} {where}, {self.best} looks best after {self.labels:,} labels; "
        if len(self.models) == 2:
            sentence += f"{self.models[1].model} is {'shown to be worse' if worse else 'not shown to be worse'}"
        else:
            sentence += f"{len(worse)} of the other {len(self.models) - 1} models "
            sentence += f"{'is' if len(worse) == 1 else 'are'} shown to be worse"
        return sentence + (f", {len(tied)} not yet." if tied and len(self.models) > 2 else ".")

    @property
    def outlook(self) -> str:
        """What further labels would bring, and what may surprise in the table; empty if nothing."""
        sentences = [self.choice] if self.choice else []
        if self.contender is not None:
            needed = self.labels_to_separate
            more = "more labels than the pool has" if needed is None else f"about {needed:,} more labels"
            if needed is None and self.about == "pool":
                more = "the labels of nearly all points"
            if self.differing is not None and (needed is None or self.differing < needed):
                more += f", or those of the {self.differing:,} points without a label on which the two differ"
            sentences.append(f"To tell {self.best} from {self.contender} takes {more}.")
            together = "Tiers hold for all models together; a" if len(self.models) > 2 else "A"
            pair = "one pair" if len(self.models) > 2 else "the difference"
            sentences.append(f"{together} check of {pair} is a test of its own, and may decide it earlier.")
        if self.alike:
            sentences.append(
                f"No label can tell {self.best} from {listing(self.alike)}: they say the same of every point."
            )
        return " ".join(sentences)

    @property
    def choice(self) -> str:
        """Why the best model is not the one with the best estimate, in a sentence; empty if it is."""
        ahead = [ranked for ranked in self.models if ranked.behind < 0]
        if not ahead or self.note:
            return ""
        better = ", ".join(f"{ranked.model!r} ({ranked.value:.4f})" for ranked in ahead)
        return (
            f"{better} {'has a better estimate' if len(ahead) == 1 else 'have better estimates'} than {self.best!r} "
            f"({self.models[0].value:.4f}): the choice also counts, in equal parts, the value on the labelled points "
            "and the value by the belief."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (undefined numbers are None)."""
        rows = [plain(asdict(ranked)) for ranked in self.models]
        whole = {"metric": self.metric, "confidence": self.confidence, "labels": self.labels, "method": self.method}
        whole |= {"about": self.about}
        next_pair: dict[str, Any] = {"contender": self.contender, "labels_to_separate": self.labels_to_separate}
        next_pair["differing"] = self.differing
        alike = list(self.alike)
        return {**whole, "best": self.best, **next_pair, "alike": alike, "note": self.note, "models": rows}

    def to_frame(self) -> Any:
        """A pandas frame if pandas is installed, else a pyarrow table."""
        return frame_of([asdict(ranked) for ranked in self.models])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("model", self.metric, "behind the best", "interval", "tier"))
        body = "".join(map(_row, self.models))
        return f"<p>{escape(self.summary)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(ranked: Ranked) -> str:
    value = "undefined" if math.isnan(ranked.value) else f"{ranked.value:.4f}"
    bounds = "" if math.isnan(ranked.low) else f"[{ranked.low:+.4f}, {ranked.high:+.4f}]"
    cells = (ranked.model, value, ranked.shown_behind, bounds, ranked.tier)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


# ---------------------------------------------------------------- from a session


def ranking(session: "Session", metric: str | None = None) -> Ranking:
    """The models of a session by one metric: the one given, the one that it was made to rank by, or its first."""
    now = session.now()
    plan, task = now.plan, now.task
    name = metric or plan.rank or _base_name(task)
    return rank(plan.method, task, now.history, metrics_to_rank(name, task.pool), name)


def _base_name(task: Task) -> str:
    """The first metric of the task that is about a model, without the model's name."""
    for metric in task.metrics:
        if metric.model is not None:
            return metric.name.removeprefix(f"{metric.model}: ")
    return task.metrics[0].name


def rank(method: Method, task: Task, history: History, metrics: tuple[Metric, ...], name: str) -> Ranking:
    """The models in tiers, from the labels so far; MethodError if the method cannot compare models."""
    compares = comparing(method)
    names = [metric.model or "" for metric in metrics]
    if task.ahead:
        check_ahead(method, task.pool)
    contest = compares.contest(task, history, metrics)
    details = (name, task.confidence, len(history.labels), method.name)
    if contest is None and task.population == "pool" and (history.known >= 0).all():
        values = [estimate.value for estimate in method.estimate(replace(task, metrics=metrics), history)]
        return _known(values, names, task, details, lower=metrics[0].lower_is_better)
    if contest is None:
        unknown = tuple(Ranked(model, math.nan, math.nan, math.nan, math.nan, TIED) for model in names)
        return Ranking(
            unknown,
            *details,
            note=f"no drawn label {'counts ' if history.drawn_labels else ''}yet: nothing is known about these models",
            about=task.population,
        )
    ranked = _ranking(contest, names, task, history, details)
    return replace(ranked, about=task.population, differing=_differing(ranked, task, history, metrics))


def _differing(ranked: Ranking, task: Task, history: History, metrics: tuple[Metric, ...]) -> int | None:
    """Points without a label that the best model and the contender answer differently, if these settle the metric."""
    if ranked.contender is None or task.beyond or not all(metric.about.right_or_wrong for metric in metrics):
        return None
    best, other = (task.pool.model(name).predictions for name in (ranked.best, ranked.contender))
    members = metrics[0].members(task.pool)
    open_ = (history.known < 0) & (best != other)
    return int((open_ if members is None else open_ & members).sum())


def _known(
    values: list[float], names: list[str], task: Task, details: tuple[str, float, int, str], *, lower: bool
) -> Ranking:
    """The ranking of models whose metric is known, because every point was told without being asked for."""
    sign = -1.0 if lower else 1.0
    best = max(range(len(values)), key=lambda k: -math.inf if math.isnan(values[k]) else sign * values[k])
    rows = [Ranked(names[best], values[best], 0.0, math.nan, math.nan, BEST)]
    for k, value in enumerate(values):
        behind = sign * (values[best] - value)
        if k != best:
            rows.append(Ranked(names[k], value, behind, behind, behind, WORSE if behind > 0 else TIED))
    rows[1:] = sorted(rows[1:], key=lambda row: (math.isnan(row.behind), row.behind))
    answers = {model.name: model.predictions for model in task.pool.models}
    alike = [row.model for row in rows[1:] if np.array_equal(answers[row.model], answers[names[best]])]
    return Ranking(tuple(rows), *details, alike=tuple(alike))


def _ranking(
    contest: Contest, names: list[str], task: Task, history: History, details: tuple[str, float, int, str]
) -> Ranking:
    factors = contest.critical(task.confidence, stream(task.seed, "ranking", contest.labels))
    rows = _rows(contest, names, factors, task, history)
    for _ in names:  # whoever is shown to be better than the one that looks best leads
        better = [k for k, row in enumerate(rows) if row.tier == BETTER]
        if not better:
            break
        contest = replace(contest, leader=min(better, key=lambda k: rows[k].behind))
        rows = _rows(contest, names, factors, task, history)
    rows, best = [replace(row, tier=TIED) if row.tier == BETTER else row for row in rows], contest.best
    alike = tuple(row.model for k, row in enumerate(rows) if row.tier == TIED and contest.same_as_best(k))
    order = {BEST: 0, TIED: 1, WORSE: 2}
    rows.sort(key=lambda row: (order[row.tier], math.isnan(row.behind), row.behind))
    apart = [row for row in rows if row.tier == TIED and not math.isnan(row.behind) and row.model not in alike]
    tied = [row for row in apart if row.low != row.high]  # what is known to be 0 no label tells apart
    if not tied or contest.unlabelled == 0:
        return Ranking(tuple(rows), *details, contender=tied[0].model if tied else None, alike=alike)
    contender = names.index(tied[0].model)
    floor = contest.least_half_width(best, contender, float(factors[contender]))
    more = _more_labels(tied[0], contest, floor)
    return Ranking(tuple(rows), *details, contender=tied[0].model, labels_to_separate=more, alike=alike)


def _rows(contest: Contest, names: list[str], factors: Array, task: Task, history: History) -> list[Ranked]:
    rows = [_ranked(contest, k, name, float(factors[k])) for k, name in enumerate(names)]
    return [_possible(row, contest, k, task, history) for k, row in enumerate(rows)]


def _ranked(contest: Contest, k: int, name: str, factor: float) -> Ranked:
    """One model beside the best; values and differences inside their bounds, as estimates are."""
    best, sign = contest.best, -1.0 if contest.metrics[0].lower_is_better else 1.0
    value, highest = (_inside(float(contest.values[index]), contest.metrics[index].bounds) for index in (k, best))
    if k == best:
        return Ranked(name, value, 0.0, math.nan, math.nan, BEST)
    low, high = contest.interval(best, k, factor)
    low, high = (low, high) if sign > 0 else (-high, -low)
    decided = contest.exact or contest.drawn >= LEAST_RANKED
    behind = _inside(sign * (highest - value), (low, high))
    tier = WORSE if low > 0 else BETTER if high < 0 else TIED
    return Ranked(name, value, behind, low, high, tier if decided else TIED)


def _possible(row: Ranked, contest: Contest, k: int, task: Task, history: History) -> Ranked:
    """The same without differences that known labels rule out; one that they leave no doubt about is decided."""
    if row.tier == BEST or math.isnan(row.low):
        return row
    best, other = contest.metrics[contest.best], contest.metrics[k]
    ends = difference(other, best) if best.lower_is_better else difference(best, other)
    least, most = possible_values(ends, task, history)
    low, high, behind = (min(max(value, least), most) for value in (row.low, row.high, row.behind))
    tier = TIED if low <= 0 <= high else WORSE if least > 0 else BETTER if most < 0 else row.tier
    return replace(row, low=low, high=high, behind=behind, tier=tier)


def _inside(value: float, bounds: tuple[float, float]) -> float:
    """The value, or the bound that it lies beyond; nan stays, and nan bounds bind nothing."""
    return bounds[0] if value < bounds[0] else bounds[1] if value > bounds[1] else value


def _more_labels(contender: Ranked, contest: Contest, floor: float = 0.0) -> int | None:
    """Labels until the interval of a difference excludes 0, if it stays as it is: widths shrink like 1 / sqrt(n).

    floor  what is left of the half-width if every point is labelled
    """
    reach = contender.behind - contender.low
    if not (contender.behind > floor and math.isfinite(reach)):
        return None
    left = max(reach**2 - floor**2, 0.0) / (contender.behind**2 - floor**2)
    more = contest.labels * max(left, 1.0) - contest.labels
    return None if more > contest.unlabelled else max(1, math.ceil(more), LEAST_RANKED - contest.drawn)
