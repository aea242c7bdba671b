"""A second model on the same pool: the labels that exist already say which of the two is better.

One point carries both predictions, so the difference of a metric is estimated from pairs: what both models get right
or wrong alike cancels. Notation: a_i, b_i the two predictions, y_i the label, Delta = Q(T_b) - Q(T_a).
    D_i    = dQ/dT[b_i, y_i] at T_b  -  dQ/dT[a_i, y_i] at T_a           influence of point i on Delta (C4)
Methods that estimate differences (`assured`, `tradition`) do so here, with their own belief and interval; for others
tables and variance are those of weighted.py, with D minus its weighted mean as the residual.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from altmas.above import above
from altmas.errors import FileError, MetricError, PoolError
from altmas.estimates import ABOUT_WHAT, LEAST_DRAWN, Estimate
from altmas.frames import frame_of, plain
from altmas.guaranteed import estimates_of
from altmas.history import History
from altmas.intervals import normal_quantile, student_quantile
from altmas.methods import Method, inclusion_of
from altmas.metrics import Metric, MetricLike, metric_set
from altmas.metrics.differences import difference as difference_of
from altmas.pool import Model, Pool
from altmas.pool.alignment import aligned
from altmas.suggest import listing
from altmas.task import Task
from altmas.types import Array
from altmas.weighted import Sample, has_probabilities, sample_of, weighted_table

if TYPE_CHECKING:
    from altmas.session import Session


@dataclass(frozen=True)
class Difference:
    """One metric of the second model minus that of the first.

    first, second  both values from the same weighted labels
    value          second - first; nan where undefined
    low, high      its interval; nan where there is none
    verdict        on the second model: "better" | "worse" | "equal" (if that is known exactly) | "undecided"
    labels         how many labels it rests on;  disagreements  how many of those points the models call differently
    """

    metric: str
    first: float
    second: float
    value: float
    low: float
    high: float
    confidence: float
    verdict: str
    labels: int
    disagreements: int
    note: str = ""

    def __str__(self) -> str:
        value = "undefined" if math.isnan(self.value) else f"{self.value:+.4f}"
        bounds = "" if math.isnan(self.low) else f"  [{self.low:+.4f}, {self.high:+.4f}]"
        return f"{self.metric:<24} {value}{bounds}  {self.verdict}{'  ' + self.note if self.note else ''}"


@dataclass(frozen=True)
class Comparison(Sequence[Difference]):
    """The second model against the first on every metric asked for, in that order.

    points         size of the pool;  disagreements  how many of its points the two models call differently
    telling        labels of such points
    first_model    which model of the session is the first, where it has several
    """

    values: tuple[Difference, ...]
    points: int
    disagreements: int
    labels: int
    method: str
    about: str = "pool"
    telling: int = 0
    first_model: str = ""

    @overload
    def __getitem__(self, key: int | str) -> Difference: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Difference]: ...
    def __getitem__(self, key: int | str | slice) -> Difference | Sequence[Difference]:
        """By position, or by the name of the metric."""
        if isinstance(key, str):
            return {difference.metric: difference for difference in self.values}[key]
        return self.values[key]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.values)

    def __str__(self) -> str:
        return "\n".join([self.summary, *map(str, self.values)])

    @property
    def summary(self) -> str:
        """What was compared, in a sentence."""
        where = f", on {ABOUT_WHAT[self.about]}"
        told = f"; {self.telling:,} of {self.labels:,} labels are of these" if self.disagreements else ""
        name = f" ({self.first_model})" if self.first_model else ""
        return (
            f"The two models differ on {self.disagreements:,} of {self.points:,} points{told}. Differences are second "
            f"minus first{name}{where}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (undefined numbers are None)."""
        rows = [plain(asdict(difference)) for difference in self.values]
        whole = {"points": self.points, "disagreements": self.disagreements, "labels": self.labels}
        whole["telling"] = self.telling
        named = {"first_model": self.first_model} if self.first_model else {}
        return {"method": self.method, "about": self.about, **named, **whole, "differences": rows}

    def to_frame(self) -> Any:
        """A pandas frame if pandas is installed, else a pyarrow table."""
        return frame_of([asdict(difference) for difference in self.values])

    def _repr_html_(self) -> str:
        names = ("metric", "first", "second", "second - first", "interval", "verdict", "note")
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join(map(_row, self.values))
        return f"<p>{escape(self.summary)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(difference: Difference) -> str:
    def number(value: float, form: str) -> str:
        return "undefined" if math.isnan(value) else format(value, form)

    bounds = (
        ""
        if math.isnan(difference.low)
        else f"[{difference.low:+.4f}, {difference.high:+.4f}] {100 * difference.confidence:g} %"
    )
    values = (number(difference.first, ".4f"), number(difference.second, ".4f"), number(difference.value, "+.4f"))
    cells = (difference.metric, *values, bounds, difference.verdict, difference.note)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


# ---------------------------------------------------------------- from a session


def compare(
    session: "Session",
    predictions: ArrayLike | Mapping[Any, Any],
    metrics: Iterable[MetricLike] | None = None,
    *,
    ids: ArrayLike | None = None,
    model: str | None = None,
) -> Comparison:
    """The second model against the session's first, or against `model`, on its metrics or on those given.

    `predictions` is aligned with the pool by row, or with `ids`, or a mapping {id: prediction}; PoolError,
    UnknownLabel or UnknownPoint names what does not fit.
    """
    task, history = session.task, session.history
    if not task.pool.models:
        raise PoolError("there is no model in this session to compare with; add both: session.add_model(name, ...)")
    second = second_predictions(task.pool, predictions, ids)
    chosen = task.pool.models[0] if model is None else task.pool.model(model)
    first = replace(task, pool=task.pool.with_models(chosen))
    parsed = _of_plan(session, first.pool) if metrics is None else metric_set(metrics, first.pool)
    comparable = _comparable(parsed, named=metrics is not None)
    if session.method.traits.any_metric and has_probabilities(history):
        differences = estimated_differences(session.method, task, history, second, comparable, chosen)
    else:
        differences = compare_predictions(first.pool, history, second, comparable, task.confidence, session.method)
    if not has_probabilities(history):
        second_task = replace(first, pool=with_predictions(first.pool, second), metrics=comparable)
        pairs = zip(
            session.method.estimate(replace(first, metrics=comparable), history),
            session.method.estimate(second_task, history),
            strict=True,
        )
        differences = [
            replace(difference, first=mine.value, second=theirs.value, value=theirs.value - mine.value)
            for difference, (mine, theirs) in zip(differences, pairs, strict=True)
        ]
    differs = second != chosen.predictions
    name = chosen.name if len(task.pool.models) > 1 else ""
    details = (len(task.pool), int(differs.sum()), len(history.labels), session.method.name, task.population)
    return Comparison(tuple(differences), *details, telling=int(differs[history.labelled].sum()), first_model=name)


def _of_plan(session: "Session", pool: Pool) -> tuple[Metric, ...]:
    """The metrics of the plan that the first model has by itself: none that name another one."""
    parsed: list[Metric] = []
    for metric in session.plan.metrics:
        try:
            parsed += metric_set([metric], pool)
        except MetricError:
            continue
    if not parsed:
        raise MetricError(
            f"the metrics of this session name other models ({listing(map(str, session.plan.metrics), 5)}): a "
            "comparison is by metrics of one model; add such to the session, or pass metrics=['accuracy']"
        )
    return tuple(parsed)


def estimated_differences(
    method: Method,
    task: Task,
    history: History,
    second: NDArray[np.int64],
    metrics: Sequence[Metric],
    first: Model | None = None,
) -> list[Difference]:
    """Delta of each metric as the method estimates any difference: from its belief about all points, if it has one.

    `first` is a model of the pool, by default its first.

    A second model that the pool has already is no further opinion about the truth.
    """
    pool = task.pool
    first, names = first or pool.models[0], {model.name for model in pool.models}
    others = [model for model in pool.models if model.name != first.name]
    same = [model for model in others if np.array_equal(model.predictions, second)]
    name = next(name for name in map("second{}".format, ["", *range(2, len(names) + 3)]) if name not in names)
    name, further = (same[0].name, ()) if same else (name, (Model(name, second),))
    pairs = [(_of_model(metric, name), _of_model(metric, first.name)) for metric in metrics]
    estimated = tuple(metric for theirs, mine in pairs for metric in (theirs, mine, difference_of(theirs, mine)))
    both = replace(task, pool=pool.with_models(*pool.models, *further), metrics=estimated, targets=(), rank=())
    estimates = estimates_of(method, both, history)
    differs = first.predictions != second
    return [
        _from_estimates(metric, estimates[3 * index : 3 * index + 3], history, differs, both)
        for index, metric in enumerate(metrics)
    ]


def _of_model(metric: Metric, model: str) -> Metric:
    return replace(metric, name=f"{model}: {metric.name}", model=model)


def _from_estimates(
    metric: Metric, estimates: Sequence[Estimate], history: History, differs: Array, task: Task
) -> Difference:
    theirs, mine, apart = estimates
    members = metric.members(task.pool)
    inside = np.ones(len(task.pool), np.bool_) if members is None else members
    labelled = history.labelled[inside[history.labelled]]
    if not differs[inside].any() and task.population == "pool":
        alike = (mine.value, mine.value, 0.0, 0.0, 0.0, apart.confidence)
        return Difference(metric.name, *alike, "equal", len(labelled), 0, "both give the same answers: exact")
    exact, note = len(labelled) == inside.sum() and apart.low == apart.high, apart.note
    verdict = verdict_of(metric, apart.low, apart.high, exact=exact)
    if math.isnan(apart.value):
        note = _why_undefined(metric, history.drawn_labels)
    elif not exact and history.drawn_labels < LEAST_DRAWN:
        verdict = "undecided"
        note = f"{history.drawn_labels} drawn labels: nothing is decided with fewer than {LEAST_DRAWN}"
    elif task.guarantee and apart.interval != "guaranteed" and not exact:
        verdict = "undecided"
    values = (mine.value, theirs.value, apart.value, apart.low, apart.high, apart.confidence)
    return Difference(metric.name, *values, verdict, len(labelled), int(differs[labelled].sum()), note)


def _comparable(metrics: Sequence[Metric], *, named: bool) -> tuple[Metric, ...]:
    """The metrics of predictions; MetricError if others were asked for by name, or if there is none."""
    able = tuple(metric for metric in metrics if metric.of_one_table and metric.needs_answers)
    unfit = [metric.name for metric in metrics if metric not in able]
    if unfit and (named or not able):
        raise MetricError(
            f"a second model is compared on metrics of its predictions, and {listing(unfit, 5)} is no such metric; put "
            "both models into one pool and ask for 'v2: metric - v1: metric', or pass metrics=['accuracy']"
        )
    return able


def second_predictions(
    pool: Pool, predictions: ArrayLike | Mapping[Any, Any], ids: ArrayLike | None = None
) -> NDArray[np.int64]:
    """(N,) codes of the second model's predictions, in the order of the pool."""
    return pool.codes(aligned(pool, predictions, ids)[1], what="predictions of the second model")


def read_second(
    pool: Pool, table: Any, prediction: str, id: str | None = None, encoding: str | None = None
) -> tuple[Array, Array | None]:
    """(predictions, their ids) of a second model in a table or file; without `id`, rows must be in the pool's order.

    Where the table has the column that the pool's own ids came from, PoolError if that is in another order.
    """
    classes_of, column_of = above("classes_of"), above("column_of")
    predictions = classes_of(table, prediction, encoding, pool.classes)
    if id is not None:
        return predictions, column_of(table, id, encoding)
    own = (pool.source or {}).get("id")
    try:
        ids = [] if own is None else column_of(table, own, encoding).tolist()
    except (FileError, PoolError):  # no such column: there is nothing to check
        ids = []
    for row, (given, expected) in enumerate(zip(ids, pool.ids, strict=False)):
        if str(given) != str(expected):
            raise PoolError(
                f"{table}, row {row}: column {own!r} holds {given!r}, the session has {expected!r} there; the rows are "
                f"in another order: match them by id with --id {own}; nothing was compared"
            )
    return predictions, None


def with_predictions(pool: Pool, codes: NDArray[np.int64]) -> Pool:
    """The same points under another model's hard predictions."""
    made = Pool(
        pool.features,
        [pool.classes[code] for code in codes],
        classes=pool.classes,
        ids=list(pool.ids),
        slices=pool.slices,
        values=pool.named_values,
        weights=pool.weights,
    )
    made.sampled_from = pool.sampled_from
    return made


# ---------------------------------------------------------------- the difference


def compare_predictions(
    pool: Pool,
    history: History,
    second: NDArray[np.int64],
    metrics: Iterable[Metric],
    confidence: float,
    method: Method | None = None,
) -> list[Difference]:
    """Delta of each metric with its interval; without one where a draw carries no probability."""
    if not has_probabilities(history):
        return [_without_interval(pool, history, second, metric, confidence) for metric in metrics]
    sample = sample_of(pool, history, inclusion_of(method, pool, history))
    return [_difference(pool, history, second, metric, sample, confidence) for metric in metrics]


def _without_interval(pool: Pool, history: History, second: Array, metric: Metric, confidence: float) -> Difference:
    note = (
        "no interval: the method that chose the points gives their draws no probability; the values are its own "
        "estimates for either model"
    )
    differ = int((second != pool.predictions)[history.labelled].sum())
    nan = math.nan
    return Difference(metric.name, nan, nan, nan, nan, nan, confidence, "undecided", len(history.labels), differ, note)


def _difference(
    pool: Pool, history: History, second: Array, metric: Metric, sample: Sample, confidence: float
) -> Difference:
    members = metric.members(pool)
    inside = np.ones(len(pool), np.bool_) if members is None else members
    differs = pool.predictions != second
    labelled = history.labelled[inside[history.labelled]]
    pair = _Pair(pool.predictions, second, history.known, len(pool.classes), metric)
    tables = pair.tables(sample, inside)
    first_value, second_value = (float(metric.of_table(table)) if table.sum() else math.nan for table in tables)
    exact = len(labelled) == inside.sum()
    value = second_value - first_value if exact or inside[sample.rows].any() else math.nan
    low = high = value
    note = "every point is labelled: exact" if exact else ""
    if not (exact or math.isnan(value)):
        half = _half_width(pair, tables, sample, inside, differs, confidence)
        span = metric.bounds[1] - metric.bounds[0]
        low, high = max(-span, value - half), min(span, value + half)
    elif math.isnan(value):
        low, high, note = math.nan, math.nan, _why_undefined(metric, int(inside[sample.rows].sum()))
    verdict = verdict_of(metric, low, high, exact=exact)
    differ = int(differs[labelled].sum())
    numbers = (first_value, second_value, value, low, high)
    return Difference(metric.name, *numbers, confidence, verdict, len(labelled), differ, note)


def _why_undefined(metric: Metric, drawn: int) -> str:
    if drawn == 0:
        return "undefined: no label of a point that the session drew"
    return f"undefined: no label so far tells about {metric.name} of both models"


def verdict_of(metric: Metric, low: float, high: float, *, exact: bool = False) -> str:
    """What the interval of second - first says about the second model."""
    if math.isnan(low):
        return "undecided"
    if exact and low == high == 0:
        return "equal"
    if low > 0:
        return "worse" if metric.lower_is_better else "better"
    if high < 0:
        return "better" if metric.lower_is_better else "worse"
    return "undecided"


@dataclass(frozen=True)
class _Pair:
    """Both models' predictions, the labels known, and the metric."""

    first: Array
    second: Array
    known: Array
    n_classes: int
    metric: Metric

    def tables(self, sample: Sample, inside: Array) -> tuple[Array, Array]:
        """T_a and T_b of the points inside."""
        return (
            weighted_table(self.first, self.known, self.n_classes, sample, inside),
            weighted_table(self.second, self.known, self.n_classes, sample, inside),
        )

    def influence(self, tables: tuple[Array, Array]) -> Array:
        """(C, C, C) D[a, b, y]: influence on Delta of a point predicted a and b that is truly y."""
        by_first, by_second = (self.metric.gradient(table) for table in tables)
        return np.asarray(by_second[None, :, :] - by_first[:, None, :])


def _half_width(
    pair: _Pair, tables: tuple[Array, Array], sample: Sample, inside: Array, differs: Array, confidence: float
) -> float:
    """t times the standard error of Delta, with pseudo-labels so that agreement in a few labels is not certainty."""
    influence, rows = pair.influence(tables), sample.rows
    moves = influence[pair.first[rows], pair.second[rows], pair.known[rows]]
    variance = sample.variance(sample.residuals(moves, inside), inside)
    variance += pseudo_squares(pair, influence, inside & differs, normal_quantile(confidence)) * sample.of_one()
    return student_quantile(confidence, max(len(rows) - 1, 1)) * math.sqrt(variance)


def pseudo_squares(pair: _Pair, influence: Array, disagree: Array, z: float) -> float:
    """Squared influence of z^2/2 more labels among the disagreements, half for either model.

    Agresti and Min do so for paired shares: without it a handful of labels that all speak for one model, or none
    at all, would have no spread.
    """
    first, second = pair.first[disagree], pair.second[disagree]
    if len(first) == 0:
        return 0.0
    squares = (influence[first, second, first] ** 2 + influence[first, second, second] ** 2) / 2
    return float(z**2 / 2 * squares.mean())
