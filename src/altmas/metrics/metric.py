"""What a metric is: a value, how each label moves it, which points and which model it is about, and its words.

Most metrics are functions of a table T[row, true]; `Metric` is one of these, and other families (scores, differences)
override what a table has no answer to.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from altmas.errors import MetricError
from altmas.metrics.about import ABOUT, GIVEN, About, Proportion
from altmas.metrics.influence import Influence, ItemInfluence, TableItems, WeightedItems
from altmas.metrics.weights import RowCodes, Weights
from altmas.pool import Pool
from altmas.ratios import kappa_tables, linear_tables
from altmas.types import Array

T = TypeVar("T")


def predicted_rows(metric: "Metric", pool: Pool) -> RowCodes:
    """Points by the class that the metric's model predicts."""
    return RowCodes(("predicted", metric.model), answers_of(pool, metric.model), len(pool.classes))


def threshold_rows(metric: "Metric", pool: Pool) -> RowCodes:
    """Points by whether the score of the metric's class reaches its threshold: row 1 if it does."""
    assert metric.threshold is not None
    reached = scores_of(pool, metric.model)[:, metric.classes[0]] >= metric.threshold
    key = ("score", metric.model, metric.classes[0], metric.threshold)
    return RowCodes(key, reached.astype(np.int64), 2)


def one_row(metric: "Metric", pool: Pool) -> RowCodes:
    """All points in one row: for metrics of the truth alone."""
    return RowCodes(("one",), np.zeros(len(pool), np.int64), 1)


def answers_of(pool: Pool, model: str | None) -> NDArray[np.int64]:
    """(N,) codes that a model predicts; the first model by default."""
    return pool.predictions if model is None else pool.model(model).predictions


def scores_of(pool: Pool, model: str | None) -> NDArray[np.float64]:
    """(N, C) scores of a model; the first model by default. MetricError if it has none."""
    scores = pool.scores if model is None else pool.model(model).scores
    if scores is None:
        raise MetricError(
            "this needs the model's scores, and the pool has none; pass scores=... to the pool (--scores)"
        )
    return np.asarray(scores)


@dataclass(frozen=True)
class Metric:
    """One number of interest: a function Q of what the labels of the points in `where` are (paper Eq. 1).

    A metric of this class is a function of a table T[row, true]; other families derive from `NotOfTable`.

    name       how users, files and reports call it
    of_table   (..., R, C) -> (...); undefined is nan
    gradient   (R, C) -> (R, C); dQ/dT[r, c], 0 where Q is undefined
    bounds     smallest and largest value the metric can take
    where      (slice name, value) that restricts it, or None for the whole pool
    kind       the family, e.g. "recall", for what is known of it (`about`) and for closed forms (`pick`)
    classes    codes of the classes in its name
    model      whose answers or scores it is about; None for the first model, or for a metric of the truth alone
    threshold  the answer is "score of the class >= threshold" in place of the predicted class
    rows       (metric, pool) -> in which row of the table each point is counted
    class_values  (C,) numbers that it takes the classes for; empty where classes are names
    miss_weight   for how many false alarms a miss of its class counts: beta^2 of an F beta
    """

    name: str
    of_table: Callable[[Array], Array]
    gradient: Callable[[Array], Array]
    bounds: tuple[float, float] = (0.0, 1.0)
    where: tuple[str, str] | None = None
    kind: str = "callable"
    classes: tuple[int, ...] = ()
    model: str | None = None
    threshold: float | None = None
    rows: Callable[["Metric", Pool], RowCodes] = predicted_rows
    class_values: tuple[float, ...] = ()
    miss_weight: float = 1.0

    # ------------------------------------------------------------ value and influence

    def at(self, pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
        """(Q(W), D_i(c) at W); the weights are those of the metric's own points."""
        rows = self.rows(self, pool)
        table = weights.table(rows)
        return float(self.of_table(table)), TableItems(rows, self.influence(table), weights.n_classes)

    def moved_by(self, pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
        """(Q(W), how the label of each row moves it): D_i(c), times k_i where rows stand for k_i rows (W1)."""
        value, items = self.at(pool, weights)
        return value, items if pool.weights is None else WeightedItems(items, pool.weights)

    def value(self, pool: Pool, weights: Weights) -> float:
        """Q(W); nan where undefined."""
        return float(self.of_table(weights.table(self.rows(self, pool))))

    def influence(self, table: Array) -> Influence:
        """dQ/dT of one label at a table with known row sums; zero where the metric is undefined."""
        own_row = self.rows is predicted_rows
        if self.kind in ("accuracy", "error") and own_row:
            slope = 1.0 / table.sum() if table.sum() > 0 else 0.0
            return Influence(np.full(len(table), slope if self.kind == "accuracy" else -slope))
        if self.kind in ("precision", "recall", "f1") and own_row:
            return _of_class_influence(self.kind, self.classes[0], table)
        dense = self.gradient(table)
        own = np.diagonal(dense).copy() if dense.shape[0] == dense.shape[1] else np.zeros(len(dense))
        return Influence(own, dense=dense)

    @property
    def parts(self) -> tuple[tuple[float, "Metric"], ...]:
        """(factor, metric) whose sum it is: itself, or the two sides of a difference."""
        return ((1.0, self),)

    @property
    def contrasts(self) -> tuple["Metric", ...]:
        """The metrics whose largest absolute value it is; empty for every metric but a gap."""
        return ()

    def own_points(self, pool: Pool) -> NDArray[np.bool_] | None:
        """(N,) points that are answered with the metric's one class; None where it is not about one class."""
        if len(self.classes) != 1 or self.rows is one_row:
            return None
        rows = self.rows(self, pool)
        return np.asarray(rows.codes == (1 if self.threshold is not None else self.classes[0]))

    def excess(self, pool: Pool, squares: Array) -> float:
        """Most by which an estimate is too high on average; squares (N,) of its terms. 0 but for sums of distances."""
        return 0.0

    def along(self, pool: Pool) -> Array | None:
        """(N, C) scores that the metric orders points by; None where it does not."""
        return None

    @property
    def mean_of_recalls(self) -> bool:
        """Whether it is the mean recall of the model's answers over the classes."""
        return self.kind in ("balanced_accuracy", "macro_recall") and self.is_table

    def reach_of_unmet_classes(self, value: float, classes: int, unmet: int) -> tuple[float, float]:
        """How much lower and higher it is if classes that no answer and no label has shown occur after all.

        A mean over classes counts them as soon as one point is of them: with no answer right, or at any area. An
        estimate beyond the bounds reaches no further there.
        """
        if not self.about.over_classes or unmet == 0 or self.kind == "macro_precision":
            return 0.0, 0.0
        share = unmet / classes
        down, up = max(value - self.bounds[0], 0.0), max(self.bounds[1] - value, 0.0)
        return share * down, 0.0 if self.is_table else share * up

    @property
    def taken_at_estimate(self) -> bool:
        """Whether it is linear in pieces: it is then taken at the estimate itself, not at a steadier point near it."""
        return False

    def scales_at(self, value: float, candidate: float) -> tuple[float, float]:
        """How much larger D is at points answered with its class, and at the others, if the metric is `candidate`.

        A ratio sum num / sum den is tested by sum (num - q den), whose terms depend on the candidate q: for recall a
        point of its class counts 1 - q where it is found and q where it is missed.
        """
        if self.kind not in RATIO_TERMS:
            return 1.0, 1.0
        now, then = (RATIO_TERMS[self.kind](q, self.miss_weight) for q in (value, candidate))
        own, other = (min(b / a, 1e6) if a > 0 else 1.0 for a, b in zip(now, then, strict=True))
        return own, other

    def possible(self, pool: Pool, known: Array) -> tuple[float, float]:
        """(lowest, highest) value that the labels known (N,), -1 where there is none, leave possible.

        Worked out for metrics of right and wrong answers alone; for others these are the bounds.
        """
        right = self.right_answers(pool, known)
        if right is None:
            return self.bounds
        (always, never), total = right
        low, high = always / total, 1 - never / total
        return (1 - high, 1 - low) if self.lower_is_better else (low, high)

    def right_answers(self, pool: Pool, known: Array) -> tuple[tuple[float, float], float] | None:
        """((answers known to be right, known to be wrong), all answers) that it is the share of; None if it is none."""
        if not self.about.right_or_wrong or self.rows is not predicted_rows:
            return None
        weight = np.ones(len(pool)) if pool.weights is None else pool.weights
        members = self.members(pool)
        weight = weight if members is None else np.where(members, weight, 0.0)
        right, labelled = known == answers_of(pool, self.model), known >= 0
        total = float(weight.sum())
        if total <= 0:
            return None
        return (float(weight[right].sum()), float(weight[labelled & ~right].sum())), total

    # ------------------------------------------------------------ which points, which model

    def members(self, pool: Pool) -> NDArray[np.bool_] | None:
        """(N,) which points the metric is about, or None for all of them."""
        return None if self.where is None else pool.slices[self.where[0]] == self.where[1]

    def deciding_points(self, pool: Pool) -> NDArray[np.bool_] | None:
        """(N,) points whose labels it depends on, or None for all: those answered with the class, for its precision."""
        members, own = self.members(pool), self.own_points(pool) if self.kind == "precision" else None
        return members if own is None else own if members is None else own & members

    @property
    def of_scores(self) -> bool:
        """Whether it is about a model's scores."""
        return self.threshold is not None

    def on_slice(self, name: str, value: str) -> "Metric | None":
        """The same metric of one value of a slice; None if it is restricted to a slice already, or made of others."""
        if self.where is not None or len(self.parts) > 1:
            return None
        return replace(self, name=f"{self.name}@{name}={value}", where=(name, value))

    @property
    def is_table(self) -> bool:
        """Whether it is a function of one table, by whatever row codes."""
        return type(self) is Metric

    @property
    def of_one_table(self) -> bool:
        """Whether it is a function of the table of predicted and true classes of the pool's one model."""
        return self.model is None and self.rows in (predicted_rows, one_row) and self.is_table

    @property
    def of_table_of_a_model(self) -> bool:
        """Whether it is a function of the table of predicted and true classes of one of several models."""
        return replace(self, model=None).of_one_table

    @property
    def needs_answers(self) -> bool:
        """Whether it is about a model at all, not about the truth alone."""
        return self.rows is not one_row

    # ------------------------------------------------------------ what there is to say

    @property
    def about(self) -> About:
        """What there is to say about it besides its value."""
        return ABOUT.get(self.kind, GIVEN)

    @property
    def family(self) -> tuple[object, ...]:
        """Metrics of one family count as one in the design, so that those of 20 classes do not outweigh accuracy."""
        return (self.kind, self.where)

    @property
    def unit(self) -> str:
        """What it is measured in; a function of the user's has a unit of its own."""
        return self.name.partition("@")[0] if self.about.given else self.about.unit

    @property
    def right_or_wrong(self) -> bool:
        """Whether it looks at nothing but whether the (first) model is right, on the whole pool."""
        return self.about.right_or_wrong and self.where is None

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller value is the better one: errors, costs, and confusions of two different classes."""
        return self.about.lower_is_better and (len(self.classes) < 2 or len(set(self.classes)) == 2)

    def meaning(self, pool: Pool) -> str:
        """What it is, in words."""
        names = [str(pool.classes[code]) for code in self.classes]
        text = self.about.meaning.format(*([" or ".join(names)] if self.rows is one_row else names))
        if self.threshold is not None:
            text += f" (the answer is {names[0]} where its score is at least {self.threshold:g})"
        if self.model is not None:
            text += f" (model {self.model})"
        return text if self.where is None else f"{text}, where {self.where[0]} is {self.where[1]}"

    def proportion(self, shape: tuple[int, ...]) -> tuple[Array, Array] | None:
        """(counted above the line, counted below it), masks of the table's cells; None if it is no share of points."""
        return self._counted(self.about.proportion, shape)

    def rises_with(self, shape: tuple[int, ...]) -> tuple[Array, Array] | None:
        """The same of the share that it rises with, such as hits among hits and errors for an F1."""
        return self._counted(self.about.rises_with, shape)

    def _counted(self, share: Proportion | None, shape: tuple[int, ...]) -> tuple[Array, Array] | None:
        if share is None:
            return None
        row, true = np.indices(shape)
        answered = row if self.threshold is None else np.where(row == 1, self.classes[0], -1)
        return share(self.classes, answered, true)

    def ratio(self, n_classes: int) -> tuple[Array, Array] | None:
        """(num, den), each (R, C), with Q = sum num / sum den over the points; None if it is no ratio of sums."""
        if self.rows is one_row:
            by_class = np.array([[float(self.of_table(np.eye(n_classes)[[c]])) for c in range(n_classes)]])
            return by_class, np.ones((1, n_classes))
        if self.kind not in RATIOS:
            return None
        if self.threshold is None:
            return linear_tables(self.kind, n_classes, self.classes)
        truly = (np.arange(n_classes) == self.classes[0]).astype(int)
        num, den = linear_tables(self.kind, 2, (1,))
        return num[:, truly], den[:, truly]

    def ratio_on(self, pool: Pool) -> tuple[Array, Array] | None:
        """The same on a pool: also that of kappa, whose row sums are those of the answers."""
        if self.kind != "kappa":
            return self.ratio(len(pool.classes))
        counts, members = self.rows(self, pool).codes, self.members(pool)
        weight = np.ones(len(pool)) if pool.weights is None else pool.weights
        weight = weight if members is None else weight * members
        return kappa_tables(np.bincount(counts, weight, len(pool.classes))) if weight.any() else None

    @property
    def divides_by_answers(self) -> bool:
        """Whether the sums of `ratio_on` hold numbers of answers, which change where a point is skipped or added."""
        return self.kind == "kappa"

    def is_linear(self, n_classes: int) -> bool:
        """Whether it is a sum over points divided by a number that no label changes: accuracy, a share, a precision."""
        tables = self.ratio(n_classes)
        return tables is not None and bool((tables[1] == tables[1][:, :1]).all())

    def is_mean(self, n_classes: int) -> bool:
        """Whether it is a mean over all points that it is about: accuracy, a share, a cost, a cell of confusion."""
        tables = self.ratio(n_classes)
        return tables is not None and bool((tables[1] == 1).all())

    def pick(self, by_kind: Mapping[str, T]) -> T | None:
        """What a table of closed forms by kind holds for it; None where the general way has to do."""
        return by_kind.get(self.kind) if self.rows is predicted_rows else None

    def is_one_of(self, kinds: Container[str]) -> bool:
        """Whether it is of one of these kinds, as the answers of a model are judged."""
        return self.kind in kinds and self.rows is predicted_rows


RATIOS = ("accuracy", "error", "confusion", "precision", "recall", "npv", "specificity", "f1", "jaccard")
"""Metrics of answers that are ratios of sums, which a guarantee covers."""

RATIO_TERMS: dict[str, Callable[[float, float], tuple[float, float]]] = {
    "recall": lambda q, w: (1 - q, q),
    "specificity": lambda q, w: (q, 1 - q),
    "f1": lambda q, w: (2 - q, q),
    "fbeta": lambda q, w: (1 + w - w * q, w * q),
    "jaccard": lambda q, w: (1.0, q),
}
"""Spread of num - q den over the true classes of a point (answered with the class, answered with another one), by q and
what a miss counts for."""


def _of_class_influence(kind: str, k: int, table: Array) -> Influence:
    """(C4), the part that belongs to the row sums apart: t = T[k, k], r = row sum, s = column sum of class k."""
    t, r, s = float(table[k, k]), float(table[k].sum()), float(table[:, k].sum())
    own, row = np.zeros(len(table)), np.zeros(len(table))
    top, bottom, by_t = {"precision": (t, r, 1.0), "recall": (t, s, 1.0), "f1": (2 * t, r + s, 2.0)}[kind]
    if bottom <= 0:
        return Influence(own)
    value = top / bottom
    if kind != "recall":
        row[k] = -value / bottom
    if kind == "precision":
        own[k] = by_t / bottom
        return Influence(own, row=row)
    own[k] = (by_t - value) / bottom
    return Influence(own, k, np.full(len(table), -value / bottom), row=row)


def _no_table(table: Array) -> Array:
    raise MetricError("a metric of scores or a difference is no function of one table of predicted and true classes")


@dataclass(frozen=True)
class NotOfTable(Metric):
    """A metric that is no function of one table; `at` says how it is evaluated."""

    of_table: Callable[[Array], Array] = field(default=_no_table, repr=False)
    gradient: Callable[[Array], Array] = field(default=_no_table, repr=False)

    def at(self, pool: Pool, weights: Weights) -> tuple[float, ItemInfluence]:
        raise NotImplementedError

    def value(self, pool: Pool, weights: Weights) -> float:
        return self.at(pool, weights)[0]

    def own_points(self, pool: Pool) -> None:
        return None

    def ratio(self, n_classes: int) -> None:
        return None

    def pick(self, by_kind: Any) -> None:
        return None

    def is_one_of(self, kinds: Any) -> bool:
        return False
