"""Linearised: one metric to first order, and what its interval is made of: terms, variance, skewness, what is unseen.

The estimate of a metric is linear in the labels of the samples (estimator.py), so its variance is a sum over them. A
metric of one set of points is made by `linearised`, a difference of metrics of several by `linearised_sum`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from altmas.history import History
from altmas.intervals import Evidence, Tails, normal_quantile, variance_at_trials
from altmas.methods.assured.estimator import Base, Difference, Estimated, Sides
from altmas.methods.assured.parts import Mask, StageSample
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.variance import Group, Terms, Together, of_rows_never_right
from altmas.methods.assured.weights import Without
from altmas.methods.assured.whole_groups import points_at_once, sums
from altmas.metrics import Metric, RowCodes
from altmas.metrics.influence import ItemInfluence, sum_of_items
from altmas.pool import Pool
from altmas.task import Task
from altmas.types import Array

PSEUDO_TRIALS = normal_quantile(0.95) ** 2
"""Members that are taken as seen of a mean over them, as far apart as can be (B9)."""


@dataclass(frozen=True)
class Linearised:
    """One metric to first order: its value, and what its interval is made of.

    groups  parts of the variance;  spread  sum over its points of (D - mean)^2
    size    points whose labels it depends on;  of_points  all that it is about: more for a precision alone
    mass    rows that the former stand for: their number unless rows have weights
    labels, skipped  points with a label and skipped ones, of all that it is about
    drawn, unlabelled  labels in samples and points without a label, of those that it depends on
    terms   (n,) signed terms of the correction, at the sampled rows
    tails   of the chances that the interval may miss
    left    how far it would move down and up if all unlabelled points were at the end of what they can be; None for a
            metric whose variance is not taken to shrink to either side
    half_point  half of the step that the metric takes from point to point
    too_high, too_low  most by which the estimate is off on average, to either side
    estimator  of all points that it is about;  sides  (factor, estimator of its points, side) of each part
    unreached  points that no stage with a label is about: they may be anything
    together  what points of one group have in common, where whole groups are drawn; else None
    never_right  variance of the rows of the table in which no labelled answer was right (V28)
    """

    metric: Metric
    value: float
    groups: Sequence[Group]
    spread: float
    size: int
    of_points: int
    mass: float
    labels: int
    drawn: int
    unlabelled: int
    skipped: int
    classes: int
    terms: Array
    rows: Array
    estimator: Difference
    sides: Sides
    tails: Tails
    left: tuple[float, float] | None
    half_point: float = 0.0
    too_high: float = 0.0
    too_low: float = 0.0
    unreached: int = 0
    together: Together | None = None
    never_right: float = 0.0

    @cached_property
    def members(self) -> int:
        """Labels of its class, for a mean over the points of one class."""
        return int((self.estimator.known[self.rows] == self.metric.classes[0]).sum())

    @property
    def told(self) -> bool:
        """Whether labels tell anything about it: it, or each side of a difference, is defined on them alone."""
        if self.metric.about.given:  # a function of the user's may not take a few labels of one class
            return True
        parts = zip(self.metric.parts, self.sides, strict=True)
        return not any(math.isnan(part.value(among.pool, among.known_weights)) for (_, part), (_, among, _) in parts)

    def value_inside(self, *, of_pool: bool) -> float:
        """The estimate without values that its bounds or, if it is about the pool itself, known labels rule out.  (V23)

        An estimate that lies far outside comes from few draws with large weights. An interval around it would be that
        of a share of hardly one trial, which reaches down from there and not far enough.
        """
        metric = self.metric
        low, high = metric.possible(self.estimator.pool, self.estimator.known) if of_pool else metric.bounds
        return min(high, max(low, self.value))

    @cached_property
    def variance(self) -> float:
        """Variance of the estimate at its value."""
        return self.evidence(self.value).variance

    def evidence(self, candidate: float) -> Evidence:
        """What the labels say if the metric is `candidate` (V3).

        The variance is what squared residuals show, and not less than the mean of that and of what the belief expects,
        weighted by degrees of freedom: with few errors among the labels their squares are a poor witness.
        """
        scales = self._scales_at(candidate) if len(self.groups) == 2 else (1.0,)
        variance, believed = self._variance(scales)
        third = sum(a**3 * group.third for a, group in zip(scales, self.groups, strict=True))
        lows, highs = ([a * end for a, end in zip(scales, ends, strict=True)] for ends in self._unseen)
        unseen_low, unseen_high = max(lows), max(highs)
        if self.together is not None and len(self.groups) == 2:  # both parts lie in the same groups
            unseen_low, unseen_high = sum(lows), sum(highs)
        skew = third / believed if believed > 0 else 0.0
        curve = variance / self._of_one_trial if self._of_one_trial > 0 else 0.0
        if self.metric.about.over_members and self.members:
            value = min(max(self.value, self.metric.bounds[0]), self.metric.bounds[1])
            variance = max(variance, variance_at_trials(value, variance, self.members, PSEUDO_TRIALS))
        met_low, met_high = (0.0, 0.0) if self.left is None else self._met(scales, self.left)
        return Evidence(
            variance=variance,
            skew_low=max(-skew, 0.0) if self.left is None else -skew,
            skew_high=max(skew, 0.0) if self.left is None else skew,
            curve=curve,
            met_low=met_low,
            met_high=met_high,
            unseen_low=unseen_low,
            unseen_high=unseen_high,
            half_point=self.half_point,
        )

    def _scales_at(self, candidate: float) -> tuple[float, float]:
        """How much larger D is at points answered with its class, and at the others, if the metric is `candidate`.

        D was taken at W0, where the metric is Q(W0), and not at the estimate. With few labels of a rare class these are
        apart: after one missed member a recall may be 0.06 at W0 and 0.08 as estimated.                          (V32)
        """
        return self.metric.scales_at(self.sides[0][2].at_base, candidate)

    def _variance(self, scales: Sequence[float]) -> tuple[float, float]:
        """(variance, what the belief expects of it) if D of each group is so many times larger."""
        shown, believed = (
            sum(a**2 * part for a, part in zip(scales, parts, strict=True))
            for parts in ([group.shown for group in self.groups], [group.believed for group in self.groups])
        )
        if self.together is not None and len(self.groups) == 2:  # both parts lie in the same groups
            shown += 2 * math.prod(scales) * self.together.shown
            believed += 2 * math.prod(scales) * self.together.believed
        worth = sum(group.worth for group in self.groups)
        blend = (RECIPE.prior_df * believed + worth * shown) / (RECIPE.prior_df + worth)
        return max(shown, blend) + self.never_right, believed

    @cached_property
    def _of_one_trial(self) -> float:
        """The variance of one random label; of the estimate, if that is more.

        A score interval reaches no further than one standard deviation of this, however large the variance is.
        """
        if self.spread <= 0:
            return 0.0
        return max(self.mass * self.spread, self._variance((1.0,) * len(self.groups))[0])

    def _met(self, scales: Sequence[float], left: tuple[float, float]) -> tuple[float, float]:
        """(V21) down and up; what is left is scaled as what labels have met of it is."""
        reaches = []
        by_side = [group.raised for group in self.groups], [group.lowered for group in self.groups]
        for mets, rest in zip(by_side, left, strict=True):
            scaled = [met.scaled(scale) for scale, met in zip(scales, mets, strict=True)]
            total, in_groups = scaled[0], self.together is not None
            for other in scaled[1:]:
                total = total.plus(other, together=in_groups)
            before = sum(met.distances[0] for met in mets)
            larger = total.distances[0] / before if before > 0 else max(scales)
            reaches.append(total.reach(larger * rest, self.tails))
        return reaches[0], reaches[1]

    @cached_property
    def _unseen(self) -> tuple[list[float], list[float]]:
        """b of (V4) of each part, down and up."""
        return [group.unseen_low for group in self.groups], [group.unseen_high for group in self.groups]

    def effective_labels(self, more: float = 0.0, fraction: float = 1.0) -> float:
        """n of a simple random sample of all its points with this variance: V = N (1/n - 1/N) * spread.

        more  variance that comes from the pool itself being a sample, that share of N' rows: then N' is N
        """
        variance = self.variance + more
        if variance <= 0:
            return float(self.of_points)
        if self.spread <= 0:
            return math.nan
        return self.of_points / self.size / (variance / (self.mass * self.spread) + fraction / self.size)


def linearised(among: Difference, metric: Metric, tails: Tails, about: Difference | None = None) -> Linearised:
    """The metric's estimate and what its interval is made of; tails  of the chances that it may miss.

    among  the estimator of the points whose labels it depends on;  about  of all that it is about, if these are more
    """
    about = among if about is None else about
    side = among.side(metric)
    residuals = side.residuals(among.parts, among.known)
    values = [part.terms(own) for part, own in zip(among.parts, residuals, strict=True)]
    roots = [part.centred(own) for part, own in zip(among.parts, residuals, strict=True)]
    rows = np.concatenate([part.rows for part in among.parts])
    terms = Terms(among, side.items, rows, np.concatenate(values), np.concatenate(roots), *among.spread_of_weights)
    low, high = _added(
        _reach_of_unreached(among, side.items),
        _reach_of_left_open(among, side.items),
        _reach_of_classes(among, metric, side.value),
        (abs(side.shift), abs(side.shift)),
    )
    own = metric.own_points(among.pool)
    members = [np.ones(len(among.known), np.bool_)] if own is None else [own, ~own]
    together, squares = terms.together(members), terms.roots**2
    if together is not None:
        squares = squares * sums(np.ones(len(rows)), together.units)[together.units]
    return Linearised(
        metric=metric,
        value=side.value,
        groups=[terms.group(points, tails, together) for points in members],
        spread=side.spread,
        size=int(among.inside.sum()),
        of_points=int(about.inside.sum()),
        mass=float(among.weight[among.inside].sum()),
        labels=about.labels,
        drawn=among.drawn,
        unlabelled=int(among.unlabelled.sum()),
        skipped=int(about.inside[about.skipped].sum()),
        classes=among.n_classes,
        terms=terms.values,
        rows=rows,
        tails=tails,
        left=_left(metric, [(1.0, among, side)], among, side.items),
        half_point=_step(metric, among, side.items, together) / 2,
        too_high=metric.excess(among.pool, np.bincount(rows, squares, len(among.known))) + low,
        too_low=high,
        unreached=int(among.unreached.sum()),
        together=together,
        never_right=of_rows_never_right(among, side.items),
        estimator=among,
        sides=((1.0, among, side),),
    )


def linearised_sum(metric: Metric, among: "Estimators", tails: Tails) -> Linearised:
    """A difference of metrics, each of its own points and model: terms and influences are added point by point."""
    pool, known = among.pool, among.history.known
    about, deciding = among(metric.members(pool)), among.deciding(metric)
    union, part_of_all = among.of(metric) if deciding is None else among(deciding), 1.0
    if deciding is not None:
        part_of_all = float(union.weight[deciding].sum() / about.weight[about.inside].sum())
    n_stages, n_points = len(union.samples), len(known)
    terms, centred = np.zeros((n_stages, n_points)), np.zeros((n_stages, n_points))
    parts, sides, value, too_high, too_low, shift = [], [], 0.0, 0.0, 0.0, 0.0
    second, third = np.zeros(n_points), np.zeros(n_points)
    for sign, side_metric in metric.parts:
        estimator = among.of(side_metric) if deciding is None else union
        side, factor = estimator.side(side_metric), sign * part_of_all
        value += factor * side.value
        parts.append((factor, side.items, side_metric.members(pool) if deciding is None else deciding))
        sides.append((factor, estimator, side))
        of_side = estimator.spread_of_weights
        second, third = np.maximum(second, of_side[0]), np.maximum(third, of_side[1])
        squares = np.zeros(n_points)
        for part, residuals in zip(estimator.parts, side.residuals(estimator.parts, known), strict=True):
            stage = part.number
            terms[stage, part.rows] += factor * part.terms(residuals)
            moved = factor * part.centred(residuals)
            centred[stage, part.rows] += moved
            crowd = 1.0 if part.units is None else sums(np.ones(len(part.rows)), part.units)[part.units]
            squares[part.rows] += moved**2 * crowd
        excess = side_metric.excess(pool, squares)
        low, high = _added(
            _reach_of_left_open(estimator, side.items), _reach_of_classes(estimator, side_metric, side.value)
        )
        above, below = factor * (excess + low), factor * high
        too_high, too_low = (too_high + above, too_low + below) if factor > 0 else (too_high - below, too_low - above)
        shift += factor * side.shift
    too_high, too_low = too_high + abs(shift), too_low + abs(shift)
    items = sum_of_items(parts)
    low, high = _reach_of_unreached(union, items)
    stages = [(part.number, part.rows) for part in union.parts]
    rows = np.concatenate([rows for _, rows in stages])
    values, roots = (np.concatenate([of[stage, rows] for stage, rows in stages]) for of in (terms, centred))
    summed, everywhere = Terms(union, items, rows, values, roots, second, third), np.ones(n_points, np.bool_)
    together = summed.together([everywhere])
    return Linearised(
        metric=metric,
        value=value,
        groups=[summed.group(everywhere, tails, together)],
        spread=items.spread(Base(union)),
        size=int(union.inside.sum()),
        of_points=int(about.inside.sum()),
        mass=float(union.weight[union.inside].sum()),
        labels=about.labels,
        drawn=min(estimator.drawn for _, estimator, _ in sides),
        unlabelled=int(union.unlabelled.sum()),
        skipped=int(about.inside[about.skipped].sum()),
        classes=union.n_classes,
        terms=values,
        rows=rows,
        tails=tails,
        left=_left(metric, sides, union, items),
        half_point=_step(metric, union, items, together) / 2,
        too_high=too_high + low,
        too_low=too_low + high,
        unreached=int(union.unreached.sum()),
        together=together,
        never_right=sum(factor**2 * of_rows_never_right(estimator, side.items) for factor, estimator, side in sides),
        estimator=union,
        sides=sides,
    )


def _left(metric: Metric, sides: Sides, union: Difference, items: ItemInfluence) -> tuple[float, float] | None:
    """How far the metric would move down and up if every unlabelled point were at one end of what it can be.

    None for means over classes, areas under curves and functions of users, whose first order says less; for agreement
    against chance, where an estimate that is too low with few labels of a rare class has a variance that is too small;
    and while fewer than `fewest_to_shrink` labels count.
    """
    if union.drawn < RECIPE.fewest_to_shrink or not all(_may_shrink(part) for _, part in metric.parts):
        return None
    believed = sum(factor * side.items.dot(Estimated(among), among.labelled_weights) for factor, among, side in sides)
    low, high = (float((end * union.unlabelled_share).sum()) for end in items.range())
    return max(believed - low, 0.0), max(high - believed, 0.0)


def _may_shrink(metric: Metric) -> bool:
    about = metric.about
    return metric.is_table and not (about.over_classes or about.against_chance or about.given)


def _added(*reaches: tuple[float, float]) -> tuple[float, float]:
    """How much lower and higher by all of these together."""
    return sum(low for low, _ in reaches), sum(high for _, high in reaches)


def _reach_of_classes(among: Difference, metric: Metric, value: float) -> tuple[float, float]:
    """How much lower and higher a mean over classes is if classes nobody has met occur, or doubtful ones do not."""
    unmet = metric.reach_of_unmet_classes(value, among.n_classes, among.unmet_classes)
    if metric.about.over_classes and not metric.is_table:
        return _added(unmet, _reach_of_unlabelled_classes(among, metric, value))
    return _added(unmet, _reach_of_doubtful_classes(among, metric, value))


def _reach_of_unlabelled_classes(among: Difference, metric: Metric, value: float) -> tuple[float, float]:
    """How much lower and higher a mean of areas is if classes without a label do or do not occur.               (V25)

    With m the mean over the k classes that have labels, of d classes without one any number may occur, with any area:
    the mean lies between k m / (k + d) and (k m + d) / (k + d). What is believed of the scores of such a class is no
    evidence: tiny chances at thousands of points have an average precision near 0, whatever the class is.
    """
    without_label, most = among.unlabelled_classes, int(among.unlabelled.sum())
    count = min(int(without_label.sum()), most)
    if count == 0:
        return 0.0, 0.0
    base = Base(among, metric.along(among.pool))
    known = Without(base, without_label, base)
    mean, certain = metric.value(among.pool, known), int((~without_label).sum()) - among.unmet_classes
    if math.isnan(mean):
        return max(value - metric.bounds[0], 0.0), max(metric.bounds[1] - value, 0.0)
    ends = mean, certain * mean / (certain + count), (certain * mean + count) / (certain + count)
    return max(value - min(ends), 0.0), max(max(ends) - value, 0.0)


def _reach_of_doubtful_classes(among: Difference, metric: Metric, value: float) -> tuple[float, float]:
    """How much lower and higher a mean of recalls is if doubtful classes do or do not occur.                     (V20)

    Such a mean is over the classes that occur. With S the sum of the recalls of the k classes that do, of d classes of
    which it is open any number may occur, and one that has answers may have any recall: the mean lies between the
    lesser of S / k and S / (k + d) and the larger of S / k and (S + a) / (k + a), a of the d with answers.
    """
    doubtful = among.doubtful_classes
    if not metric.mean_of_recalls or not doubtful.any() or not among.unlabelled.any():
        return 0.0, 0.0
    base = Base(among, steady=True)
    table = Without(base, among.absent_classes, base).table(metric.rows(metric, among.pool))
    members, answered = table.sum(0), table.sum(1) > 0
    counted = (members > 0) & doubtful
    recalls = np.diagonal(table)[counted] / members[counted]
    certain = int((members > 0).sum()) - len(recalls)
    total = value * (certain + len(recalls)) - float(recalls.sum())
    most = int(among.unlabelled.sum())
    low, high = (min(int(classes.sum()), most) for classes in (doubtful, doubtful & answered))
    ends = [total / max(certain + low, 1), (total + high) / max(certain + high, 1)]
    if certain:
        ends.append(total / certain)
    return max(value - min(ends), 0.0), max(max(ends) - value, 0.0)


def _reach_of_unreached(among: Difference, items: ItemInfluence) -> tuple[float, float]:
    """How much lower and higher the metric could be if unreached points are not as believed."""
    if not among.unreached.any():
        return 0.0, 0.0
    mean, _ = items.moments(among.belief)
    lowest, highest = items.range()
    return tuple(float(gain[among.unreached].sum()) for gain in (mean - lowest, highest - mean))  # type: ignore[return-value]


def _reach_of_left_open(among: Difference, items: ItemInfluence) -> tuple[float, float]:
    """How much lower and higher the estimate could be with the labels of points that people left open (V13).

    A sample that ends where somebody would not answer may end there because of the label: it counts as one more draw,
    whose label may be anything.
    """
    left_open = [
        (float(part.share_at(points)[0]) * expansion, points)
        for part in among.parts
        if part.left_open
        for points, expansion in [part.left_open]
    ]
    if not left_open:
        return 0.0, 0.0
    if among.units is not None:
        reaches = [(scale, _reach_of_group(among, items, points)) for scale, points in left_open]
        return sum(scale * low for scale, (low, _) in reaches), sum(scale * high for scale, (_, high) in reaches)
    scale = np.array([scale for scale, _ in left_open])
    points = np.concatenate([points for _, points in left_open])
    mean = items.mean(points, among.belief)
    lowest, highest = items.range()
    return float((scale * (mean - lowest[points])).sum()), float((scale * (highest[points] - mean)).sum())


def _reach_of_group(among: Difference, items: ItemInfluence, points: Array) -> tuple[float, float]:
    """How much lower and higher the labels of a group could be than believed; of its points some may have one."""
    mean = items.mean(points, among.belief)
    ends, told = [end[points].copy() for end in items.range()], among.known[points] >= 0
    for end in ends:
        end[told] = items.at(points[told], among.known[points[told]])
    return max(float((mean - ends[0]).sum()), 0.0), max(float((ends[1] - mean).sum()), 0.0)


def _step(metric: Metric, among: Difference, items: ItemInfluence, together: Together | None) -> float:
    """By how much a metric of the pool moves from one of its possible values to the next.

    A mean takes the steps of the values that it is a mean of, 1/N for grades, however far one label can move it. Of
    other metrics, rows with weights and whole groups it is what the label of one point can change at most.
    """
    means = all(part.is_mean(among.n_classes) for _, part in metric.parts)
    if means and not metric.contrasts and together is None and among.pool.weights is None:
        return items.least_step(np.flatnonzero(among.unlabelled))
    return _largest_change(among, items, together)


def _largest_change(among: Difference, items: ItemInfluence, together: Together | None = None) -> float:
    """How much the label of one unlabelled point, or of those that come together, can change the metric at most."""
    if together is not None and among.units is not None:
        at_once = points_at_once(among.units[among.unlabelled], together.rho)
        return at_once * _largest_change(among, items)
    lowest, highest = items.range()
    changes = (highest - lowest)[among.unlabelled]
    if among.pool.weights is None:
        return float(changes.max(initial=0.0))
    own = among.weight[among.unlabelled]  # steps are unequal: that of one unit, times the weight of an average unit
    moving = own[changes > 0]
    return float((changes / own).max(initial=0.0) * ((moving**2).sum() / max(moving.sum(), 1e-300)))


class Estimators:
    """The difference estimators of sets of points, each made once."""

    def __init__(self, samples: list[StageSample], task: Task, history: History, pool: Pool | None = None) -> None:
        self.samples, self.pool, self.history, self.beyond = samples, pool or task.pool, history, task.beyond
        self._estimators: dict[tuple[object, ...], Difference] = {}

    def __call__(self, members: Array | None, by_rows: RowCodes | None = None) -> Difference:
        """The estimator of the members (the whole pool by default), whose samples may be counted by rows (V27)."""
        key = None if members is None else np.packbits(members).tobytes(), None if by_rows is None else by_rows.key
        if key not in self._estimators:
            inside = np.ones(len(self.pool), np.bool_) if members is None else members
            skipped = np.array(list(self.history.skipped), np.int64)
            domains = self.history.domains if self.history.grown else None
            about = self.samples, self.pool, self.history.known, inside, skipped, domains
            self._estimators[key] = Difference(*about, by_rows)
        return self._estimators[key]

    def of(self, metric: Metric) -> Difference:
        """The estimator of a metric's points; of those whose labels it depends on once most of these are known (V12).

        With few labels among them all points of the metric tell more: they show how far the belief is off. A mean over
        classes hangs on rows of the table that have few points and few labels each: it is counted by rows.
        """
        if metric.about.over_classes and metric.is_table:
            return self(metric.members(self.pool), metric.rows(metric, self.pool))
        deciding = None if self.beyond else metric.deciding_points(self.pool)
        if deciding is None or not deciding.any() or 2 * (self.history.known[deciding] >= 0).sum() < deciding.sum():
            return self(metric.members(self.pool))
        return self(deciding)

    def deciding(self, metric: Metric) -> Mask | None:
        """(N,) the points whose labels a difference of two means over the same points depends on (V12).

        None while fewer than half of them are labelled, if it depends on all of them or is another difference, and with
        skips: then it is open for how many of all points they stand.
        """
        parts, n_classes = [part for _, part in metric.parts], len(self.pool.classes)
        alike = len(parts) == 2 and parts[0].where == parts[1].where
        if self.beyond or self.history.skipped or not alike or not all(part.is_mean(n_classes) for part in parts):
            return None
        about = self(metric.members(self.pool))
        items = sum_of_items([(factor, about.side(part).items, about.inside) for factor, part in metric.parts])
        lowest, highest = items.range()
        moves = (highest - lowest) / np.maximum(about.weight, 1e-300)
        deciding = about.inside & (moves > 1e-9 * float(moves.max(initial=0.0)))
        if not deciding.any() or 2 * (self.history.known[deciding] >= 0).sum() < deciding.sum():
            return None
        return None if deciding.sum() == about.inside.sum() else deciding

    def linearised(self, metric: Metric, tails: Tails) -> Linearised:
        """A metric, or a difference of two, to first order."""
        if len(metric.parts) > 1:
            return linearised_sum(metric, self, tails)
        return linearised(self.of(metric), metric, tails, self(metric.members(self.pool)))
