"""How much the label of each point would tell about the metrics (paper Eqs. 3-6; docs/equations.md A.6, A.7).

probs[j, i, c] and labels[j, i] as in posterior.py; predictions[i] = a_i, the model's own answer.
Put label c at x_i, leave every other point at its label in draw j: the metric becomes Qt(i, c), averaged over j.
Labels c with the same Qt cannot be told apart by the metric, so the label of x_i is worth the information about w
that is carried by the group it falls in. For most metrics the groups are known beforehand (A.7.4): one label against
the rest, and no value has to be computed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from altmas.methods.paper.information import Information, group_information, information, joined
from altmas.methods.paper.posterior import Posterior, expected_counts, hard_labels, sampled_labels, tables_of_labels
from altmas.metrics import Metric, margins
from altmas.pool import Pool
from altmas.types import Array

Floats = NDArray[np.float64]
Slice = tuple[str, str] | None

GAP = 1e-12
"""Values of a metric closer than this are the same value (A.7.6); scores below it are no information."""

EVALUATIONS = 5_000
"""Calls of a user's function for one look at its groups; scikit-learn's functions take a millisecond each."""

MOST_CLASSES = 30
"""Up to here the table route is affordable: M C^3 evaluations of a metric whose structure is unknown."""


# ---------------------------------------------------------------- the value a metric would take


def groups_by_value(values: Floats) -> NDArray[np.int64]:
    """(n, C) the number of the group of equal value for each label; a gap above 1e-12 starts a new one (A.7.6)."""
    order = np.argsort(values, axis=1, kind="stable")
    steps = np.diff(np.take_along_axis(values, order, 1), axis=1) > GAP
    number = np.concatenate([np.zeros((len(values), 1), np.int64), np.cumsum(steps, axis=1)], axis=1)
    groups = np.empty_like(number)
    np.put_along_axis(groups, order, number, 1)
    return groups


class Moved(NamedTuple):
    """Counts of one draw after taking out a point predicted a and labelled b, for U pairs (a, b) at once (A9).

    t, s  (U, C) right and true counts without the point;  r  (C,) predicted counts, which no label changes
    hit   (U, C) 1 where the candidate label c is the prediction a
    """

    t: Floats
    s: Floats
    r: Floats
    hit: Floats


def macro_recall_if(m: Moved) -> Floats:
    """(A17) macro recall with label c at the point, (U, C); 0/0 := 0 (Z3)."""
    return _mean_with_one_changed(_ratio(m.t, m.s), _ratio(m.t + m.hit, m.s + 1))


def macro_f1_if(m: Moved) -> Floats:
    """(A18) macro F1 with label c at the point, (U, C); 0/0 := 0 (Z3)."""
    return _mean_with_one_changed(_ratio(2 * m.t, m.r + m.s), _ratio(2 * (m.t + m.hit), m.r + m.s + 1))


def _mean_with_one_changed(without: Floats, changed: Floats) -> Floats:
    """(U, C) the mean over the classes of `without`, with the term of class c replaced by that of `changed`."""
    return np.asarray((without.sum(1, keepdims=True) - without + changed) / without.shape[1])


def kappa_if(m: Moved) -> Floats:
    """(A19) Cohen's kappa with label c at the point, (U, C)."""
    n, agreement, chance = _products(m)
    return _ratio(agreement - chance, n**2 - chance)


def mcc_if(m: Moved) -> Floats:
    """(A20) Matthews correlation with label c at the point, (U, C)."""
    n, agreement, chance = _products(m)
    true_side = n**2 - (m.s**2).sum(1, keepdims=True) - 2 * m.s - 1
    return _ratio(agreement - chance, np.sqrt((n**2 - (m.r**2).sum()) * true_side))


def _products(m: Moved) -> tuple[float, Floats, Floats]:
    """N, N (T- + 1{c=a}) and E' of (A19)."""
    n = float(m.r.sum())
    return n, n * (m.t.sum(1, keepdims=True) + m.hit), (m.r * m.s).sum(1, keepdims=True) + m.r


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """top / bottom with 0/0 := 0: a convention about ties (Z3) that never enters an estimate."""
    return np.divide(top, bottom, out=np.zeros(np.broadcast_shapes(top.shape, bottom.shape)), where=bottom > 0)


VALUES: dict[str, Callable[[Moved], Floats]] = {
    "macro_recall": macro_recall_if,
    "balanced_accuracy": macro_recall_if,
    "macro_f1": macro_f1_if,
    "kappa": kappa_if,
    "mcc": mcc_if,
}
"""Metrics whose groups depend on the counts, by kind."""


def moved(table: Floats, a: Array, b: Array) -> Moved:
    """(A9) the counts of table K_j without a point predicted a and labelled b, for arrays a and b of length U."""
    t, r, s = margins(table)
    labelled = np.eye(len(table))[b]
    return Moved(t - labelled * (a == b)[:, None], s - labelled, r, np.eye(len(table))[a])


def values_from_tables(metric: Metric, table: Floats, a: Array, b: Array) -> Floats:
    """(A21) TAB[j, a, b, c] = Q(K_j - E[a, b] + E[a, c]) for any metric, (U, C); undefined counts as 0 (Z3)."""
    n_classes = len(table)
    values = np.empty((len(a), n_classes))
    block = max(1, 2**22 // n_classes**3)
    for start in range(0, len(a), block):
        part = slice(start, start + block)
        rows, called, c = np.arange(len(a[part])), a[part], np.arange(n_classes)
        tables = np.broadcast_to(table, (len(rows), n_classes, n_classes, n_classes)).copy()
        tables[rows, :, called, b[part]] -= 1
        tables[rows[:, None], c, called[:, None], c] += 1
        values[part] = np.nan_to_num(metric.of_table(tables), nan=0.0)
    return values


def candidate_values(metric: Metric, tables: Floats, predictions: Array, labels: Array) -> Floats:
    """(A6) Qt(i, c), (n, C), by (A22): the value depends on i only through (a_i, labels[j, i]) in each draw.

    For a callable the mean is over as many draws as EVALUATIONS allow, three at least: only which values are equal
    matters, and labels that differ in one draw differ in the mean but for coincidences.
    """
    n_classes = tables.shape[-1]
    total = np.zeros((len(predictions), n_classes))
    draws = evaluations = 0
    known = metric.pick(VALUES)
    for table, label in zip(tables, labels, strict=True):
        if metric.about.given and draws >= 3 and evaluations > EVALUATIONS:
            break
        cells = predictions * n_classes + label
        present = np.zeros(n_classes**2, np.bool_)
        present[cells] = True
        a, b = np.divmod(np.flatnonzero(present), n_classes)
        if known is not None:
            values = known(moved(table, a, b))
        else:
            values = values_from_tables(metric, table, a, b)
        total += values[np.cumsum(present)[cells] - 1]
        draws, evaluations = draws + 1, evaluations + values.size
    return np.asarray(total / draws)


# ---------------------------------------------------------------- from metrics to scores


@dataclass(frozen=True)
class Belief:
    """Everything about the posterior that estimates and scores are made of.

    posterior    the probabilities themselves, for a second look where groups depend on counts
    predictions  (N,) a_i
    members      (N,) the points of each slice that a metric is about, None for all of them
    labels       (M, N) the most probable label of each point in each draw
    information  of every point, for the classes in `classes`
    filled       the tables that estimates rest on by slice, where they are not those of `labels`: (M, C, C), or
                 (1, C, C) for the labels of the mean over the draws
    """

    posterior: Posterior
    predictions: Array
    members: Mapping[Slice, Array | None]
    labels: Array
    information: Information
    classes: tuple[int, ...]
    filled: Mapping[Slice, Floats] = field(default_factory=dict)
    _hard: dict[Slice, Floats] = field(default_factory=dict, repr=False)

    def of_class(self, k: int) -> Floats:
        """(N,) IB(P[:, i, k])."""
        return np.asarray(self.information.of_class[:, self.classes.index(k)])

    def hard_tables(self, metric: Metric) -> Floats:
        """(M, C, C) K_j of the points that the metric is about; computed once for each slice."""
        if metric.where not in self._hard:
            members, n_classes = self.members[metric.where], self.posterior.n_classes
            self._hard[metric.where] = tables_of_labels(self.labels, self.predictions, n_classes, members)
        return self._hard[metric.where]

    def tables(self, metric: Metric) -> Floats:
        """(M, C, C) the tables that the estimate of this metric rests on (A.5)."""
        return self.filled[metric.where] if metric.where in self.filled else self.hard_tables(metric)


LABEL_MODES = ("hard", "sample", "expected", "mean")
"""Ways to fill in the labels that are unknown (A.5)."""


def believe(
    pool: Pool, posterior: Posterior, metrics: Sequence[Metric], label_mode: str = "hard", seed: Sequence[int] = (0,)
) -> Belief:
    """The belief in one pass over the posterior; `seed` is for labels that are drawn (mode `sample`)."""
    classes = classes_asked(metrics)
    members = {metric.where: metric.members(pool) for metric in metrics}

    def fill(rows: slice, probs: Array) -> dict[Slice, Floats]:
        """The chunk's share of each table, for the modes that cannot take it from the hard labels."""
        if label_mode == "hard":
            return {}
        inside = {where: None if mask is None else mask[rows] for where, mask in members.items()}
        if label_mode == "expected":
            return {where: expected_counts(probs, pool.predictions[rows], mask) for where, mask in inside.items()}
        if label_mode == "mean":
            labels = hard_labels(probs.mean(0, keepdims=True))
        else:
            labels = sampled_labels(probs, np.random.default_rng([*seed, rows.start]))
        n_classes = len(pool.classes)
        return {
            where: tables_of_labels(labels, pool.predictions[rows], n_classes, mask) for where, mask in inside.items()
        }

    def of_chunk(rows: slice, probs: Array) -> tuple[Array, Information, dict[Slice, Floats]]:
        return hard_labels(probs), information(probs, pool.predictions[rows], classes), fill(rows, probs)

    labels, parts, fills = zip(*posterior.map(of_chunk), strict=True)
    filled = {where: np.sum([chunk[where] for chunk in fills], axis=0) for where in fills[0]}
    return Belief(posterior, pool.predictions, members, np.concatenate(labels, axis=1), joined(parts), classes, filled)


def classes_asked(metrics: Sequence[Metric]) -> tuple[int, ...]:
    """The classes whose IB(P[:, i, k]) the closed forms of these metrics need: the last one in the metric's name."""
    of_class = (metric for metric in metrics if metric.classes and metric.pick(FORMS) is not _of_precision)
    return tuple(sorted({metric.classes[-1] for metric in of_class}))


def closed_form(metric: Metric, belief: Belief, tables: Floats) -> Floats | None:
    """(N,) I_k(i) where the groups are known beforehand (A.7.4), or None where they are not."""
    if (form := metric.pick(FORMS)) is not None:
        return form(metric, belief)
    if (moves := metric.pick(MOVES)) is not None:
        k = metric.classes[0]
        moving = moves(k, belief.predictions, belief.labels, tables)
        return np.where(moving, belief.of_class(k), np.float64(0))
    return None


def _of_prediction(metric: Metric, belief: Belief) -> Floats:
    return belief.information.of_prediction


def _of_precision(metric: Metric, belief: Belief) -> Floats:
    return np.where(belief.predictions == metric.classes[0], belief.information.of_prediction, np.float64(0))


def _of_npv(metric: Metric, belief: Belief) -> Floats:
    """A label at a point predicted k leaves it as it is."""
    return np.where(belief.predictions != metric.classes[0], belief.of_class(metric.classes[0]), np.float64(0))


def _of_confusion(metric: Metric, belief: Belief) -> Floats:
    return np.where(belief.predictions == metric.classes[0], belief.of_class(metric.classes[1]), np.float64(0))


FORMS: dict[str, Callable[[Metric, Belief], Floats]] = {
    "accuracy": _of_prediction,
    "error": _of_prediction,
    "macro_precision": _of_prediction,
    "precision": _of_precision,
    "npv": _of_npv,
    "confusion": _of_confusion,
}
"""Metrics whose groups depend on the prediction alone, by kind."""


def recall_moves(k: int, a: Array, labels: Array, tables: Floats) -> Array:
    """(N,) whether label k at a point can change recall_k in some draw (degenerate column of A.7.4)."""
    t, s = tables[:, k, k], tables[:, :, k].sum(1)
    if (t < s).any():
        if_predicted: Array = np.ones(len(a), np.bool_)
    else:
        if_predicted = ((s[:, None] - (labels == k)) < 1).any(0)
    return np.where(a == k, if_predicted, (t > 0).any())


def overlap_moves(k: int, a: Array, labels: Array, tables: Floats) -> Array:
    """(N,) whether label k at a point can change F_beta,k or jaccard_k in some draw (A.7.4)."""
    return np.asarray((a == k) | (tables[:, k, k] > 0).any())


def specificity_moves(k: int, a: Array, labels: Array, tables: Floats) -> Array:
    """(N,) whether label k at a point can change specificity_k in some draw (A.7.4)."""
    n, r, s, t = tables.sum((1, 2)), tables[:, k].sum(1), tables[:, :, k].sum(1), tables[:, k, k]
    if (r > t).any():
        if_not_predicted: Array = np.ones(len(a), np.bool_)
    else:
        if_not_predicted = ((n - s)[:, None] - (labels != k) < 1).any(0)
    return np.where(a == k, (n - r - s + t > 0).any(), if_not_predicted)


MOVES: dict[str, Callable[[int, Array, Array, Floats], Array]] = {
    "recall": recall_moves,
    "f1": overlap_moves,
    "fbeta": overlap_moves,
    "jaccard": overlap_moves,
    "specificity": specificity_moves,
}
"""Metrics of one class whose groups are {k} and the rest, except where the label could change nothing."""


def groups_of(metric: Metric, belief: Belief, tables: Floats, rows: Array) -> NDArray[np.int64] | None:
    """(n, C) groups of equal value for the points in `rows`; None if they are too many values to compute.

    Above 30 classes a metric of unknown structure is taken to tell all labels apart, which makes it BALD.
    """
    n_classes, a = tables.shape[-1], belief.predictions[rows]
    if (fixed := metric.pick(FIXED_GROUPS)) is not None:
        return fixed(metric, tables)[a]
    if metric.pick(VALUES) is None and n_classes > MOST_CLASSES:
        return None
    return groups_by_value(candidate_values(metric, tables, a, belief.labels[:, rows]))


def _groups_of_costs(metric: Metric, tables: Floats) -> NDArray[np.int64]:
    """(C, C) groups of equal cost: at a table of one point the gradient is the cost matrix up to a constant."""
    one_cell = np.zeros(tables.shape[1:])
    one_cell[0, 0] = 1.0
    return groups_by_value(metric.gradient(one_cell) / tables[0].sum())


FIXED_GROUPS: dict[str, Callable[[Metric, Floats], NDArray[np.int64]]] = {"cost": _groups_of_costs}
"""Metrics whose groups are the same at every table, by kind."""


def metric_information(metric: Metric, belief: Belief, open_: Array) -> Floats:
    """(N,) I_k(i) of (A8) for one metric; 0 outside its slice, and outside `open_` where values must be computed."""
    members, tables = belief.members[metric.where], belief.hard_tables(metric)
    score = closed_form(metric, belief, tables)
    if score is not None:
        return score if members is None else np.where(members, score, 0.0)
    rows = np.flatnonzero(open_ if members is None else open_ & members)
    score = np.zeros(len(belief.predictions))
    if len(rows) == 0:
        return score
    groups = groups_of(metric, belief, tables, rows)
    if groups is None:
        score[rows] = belief.information.of_label[rows]
        return score
    return _by_groups(belief, rows, groups, score)


def _by_groups(belief: Belief, rows: Array, groups: NDArray[np.int64], score: Floats) -> Floats:
    """(A8) for the points in `rows`; a second look at the probabilities only where groups are neither 1 nor C."""
    n_classes = groups.shape[1]
    count = groups.max(1) + 1
    apart = rows[count == n_classes]
    score[apart] = belief.information.of_label[apart]
    between = (count > 1) & (count < n_classes)
    rows, groups = rows[between], groups[between]
    if len(rows) == 0:
        return score

    def of_chunk(chunk: slice, probs: Array) -> Floats:
        inside = slice(*np.searchsorted(rows, [chunk.start, chunk.stop]))
        return group_information(probs[:, rows[inside] - chunk.start, :], groups[inside])

    score[rows] = np.concatenate(list(belief.posterior.map(of_chunk)))
    return score


def total_information(metrics: Sequence[Metric], belief: Belief, open_: Array) -> Floats:
    """(N,) sum_k I_k(i), the score of (A3) (paper Eqs. 5 and 6)."""
    return np.asarray(sum(metric_information(metric, belief, open_) for metric in metrics))


def best(scores: Floats, open_: Array, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(A3) the n open points of highest score, best first; ties, and scores that say nothing, at random."""
    rows = rng.permutation(np.flatnonzero(open_))
    clear = np.where(scores[rows] > GAP, scores[rows], 0.0)
    return rows[np.argsort(-clear, kind="stable")[:n]]
