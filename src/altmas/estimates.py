"""What a method answers: one Estimate for each metric."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any, overload

from altmas.frames import frame_of, plain
from altmas.history import History
from altmas.metrics import Metric
from altmas.suggest import listing, near
from altmas.task import Task

FLOOR = 10
"""Labels below which a slice is called insufficient."""


LEAST_DRAWN = 20
"""Drawn labels before anything is called shown, refuted or reached, whatever an interval says."""


WORTH = "a plain random sample of that many labels would err as little"
"""What "worth" (`Estimate.effective_labels`) says, wherever it is shown."""

WORTH_AND_WIDTH = (
    "the interval can be wider than that of such a sample, because what no label has shown yet is priced in it"
)


@dataclass(frozen=True)
class Estimate:
    """One metric of the model on the whole pool, as far as the labels tell.

    value             nan if undefined on what is known, with the reason in `note`; never an invented 0
    low, high         the interval; nan where the method gives none
    confidence        its level
    labels            how many labels it rests on
    effective_labels  a plain random sample of that many labels would err as little (same variance); the interval can be
                      wider than that of such a sample, because what no label has shown yet is priced; nan if unknown
    interval          "guaranteed" | "fixed-n" | "asymptotic" | "credible" | "none"
    least_half_width  about the half-width that is left when every point is labelled: 0 for what is about the pool
    model             whose metric it is; None for one of the truth alone, or of several models
    """

    metric: str
    value: float
    low: float
    high: float
    confidence: float
    labels: int
    effective_labels: float = math.nan
    interval: str = "none"
    note: str = ""
    model: str | None = None
    least_half_width: float = 0.0

    @property
    def half_width(self) -> float:
        """Half the width of the interval; nan without one."""
        return (self.high - self.low) / 2

    def __str__(self) -> str:
        return self.line()

    def line(self, width: int = 24) -> str:
        """The estimate on one line, its name filled up to this width."""
        value = shown_value(self.value, self.labels)
        bounds = "" if math.isnan(self.low) else f"  [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.metric:<{width}} {value}{bounds}{'  ' + self.note if self.note else ''}"

    def _repr_html_(self) -> str:
        return _table((self,))


def without_interval(metric: Metric, confidence: float, labels: int, why: str, *, value: float = math.nan) -> Estimate:
    """The estimate of a metric that has no interval, or no value either, which says why."""
    return Estimate(metric.name, value, math.nan, math.nan, confidence, labels, note=why)


@dataclass(frozen=True)
class Estimates(Sequence[Estimate]):
    """The estimates of all metrics from the same labels, in the order asked for.

    `about` is what they are about: this pool ("pool"), all rows of which it is a random sample ("source"), or data like
    it ("future").
    `remarks` say what a reader of all of them must know: labels that do not count yet, answers that people differ on.
    `info` is what the method wants to be known about how it got there (training, augmentation, diagnostics).
    """

    values: tuple[Estimate, ...]
    method: str
    info: dict[str, Any] = field(default_factory=dict)
    about: str = "pool"
    remarks: tuple[str, ...] = ()

    @overload
    def __getitem__(self, key: int | str) -> Estimate: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Estimate]: ...
    def __getitem__(self, key: int | str | slice) -> Estimate | Sequence[Estimate]:
        """By position, or by the name of the metric."""
        if isinstance(key, str):
            by_name = {estimate.metric: estimate for estimate in self.values}
            if key not in by_name:
                raise KeyError(f"{key!r} was not estimated; there are {listing(by_name)}{near(key, by_name)}")
            return by_name[key]
        return self.values[key]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.values)

    def __str__(self) -> str:
        width = max([24, *(len(estimate.metric) for estimate in self.values)])
        lines = [estimate.line(width) for estimate in self.values]
        return "\n".join([*lines, *self.remarks, about_in_words(self.about)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (undefined numbers are None)."""
        rows = [plain(asdict(estimate)) for estimate in self.values]
        said = {"remarks": list(self.remarks)} if self.remarks else {}
        return {"method": self.method, "about": self.about, **said, "estimates": rows, "info": plain(self.info)}

    def to_frame(self) -> Any:
        """A pandas frame if pandas is installed, else a pyarrow table."""
        return frame_of([asdict(estimate) for estimate in self.values])

    def _repr_html_(self) -> str:
        said = "; ".join([*self.remarks, about_in_words(self.about)])
        return _table(self.values, f"<caption>{escape(said)}</caption>")


def possible_values(metric: Metric, task: Task, history: History) -> tuple[float, float]:
    """(lowest, highest) value of a metric that labels leave possible; its bounds about more than the pool.

    So they are with skips: figures are then about the points that can be labelled, whose number nobody knows.
    """
    if task.population != "pool" or history.skipped:
        return metric.bounds
    return metric.possible(task.pool, history.known)


def within(estimate: Estimate, possible: tuple[float, float]) -> Estimate:
    """The estimate without values that are not possible."""
    if math.isnan(estimate.value):
        return estimate
    low, high = possible
    ends = [end if math.isnan(end) else min(max(end, low), high) for end in (estimate.low, estimate.high)]
    return replace(estimate, value=min(max(estimate.value, low), high), low=ends[0], high=ends[1])


def skip_note(metric: Metric, value: float, labels: int, skipped: int) -> str:
    """What skipped points may hide: how many they are and, of a share of right answers, how far they could move it."""
    share = skipped / (labels + skipped)
    bounds = ""
    if metric.about.right_or_wrong and not math.isnan(value):
        low, high = value * (1 - share), value * (1 - share) + share
        bounds = f"; if the model is always wrong or always right there, {low:.3f} to {high:.3f}"
    return f"{skipped} of {labels + skipped} points had no answer ({share:.0%}){bounds}"


ABOUT_WHAT = {
    "pool": "this pool",
    "source": "all rows that this pool is a random sample of",
    "future": "data like this pool",
}
"""What numbers are about (`Task.population`), in a few words."""


def about_in_words(about: str) -> str:
    """What intervals are about, in a sentence."""
    if about == "future":
        return "intervals are about data like this pool, of which it is a sample"
    return (
        "intervals are about the items of this pool" if about == "pool" else f"intervals are about {ABOUT_WHAT[about]}"
    )


def drawn_in_words(task: Task) -> str:
    """What is drawn, in a sentence, where that is whole groups; else an empty string."""
    if task.units is None:
        return ""
    count = f"{int(task.units.max()) + 1:,} groups by {task.pool.group_name}"
    return f"whole groups are drawn ({count}): a group counts once all of its items are answered"


def shown_value(value: float, labels: int) -> str:
    """Four digits; "-" before the first label, "undefined" where labels leave it so."""
    return f"{value:.4f}" if not math.isnan(value) else "undefined" if labels else "-"


def shown_worth(worth: float, labels: int) -> float:
    """What labels are worth, for display; nan with fewer than LEAST_DRAWN of them, which cannot tell."""
    return worth if labels >= LEAST_DRAWN else math.nan


def _table(values: Sequence[Estimate], caption: str = "") -> str:
    head = "".join(f"<th>{name}</th>" for name in ("metric", "estimate", "interval", "labels", "worth", "note"))
    rows = "".join(map(_row, values))
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(estimate: Estimate) -> str:
    low, high = estimate.low, estimate.high
    bounds = "" if math.isnan(low) else f"[{low:.4f}, {high:.4f}] {100 * estimate.confidence:g} % {estimate.interval}"
    value = shown_value(estimate.value, estimate.labels)
    worth = shown_worth(estimate.effective_labels, estimate.labels)
    shown = "" if math.isnan(worth) else f"{worth:.0f}"
    cells = (estimate.metric, value, bounds, str(estimate.labels), shown, estimate.note)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
