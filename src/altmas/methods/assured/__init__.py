"""assured: metric-aware sampling with known probabilities, and intervals that hold (the default)."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

import numpy as np

from altmas.belief import Belief
from altmas.compute import products_on_one_thread
from altmas.errors import MethodError
from altmas.estimates import Estimate, Estimates, skip_note, without_interval
from altmas.extras import require
from altmas.history import Batch, History
from altmas.intervals import (
    Tails,
    anytime_quantile,
    missed_tail,
    normal_quantile,
    simultaneous_quantile,
)
from altmas.methods.assured.ahead import ahead_of, contributions_by_group, interval_of
from altmas.methods.assured.belief import belief_of, folds_of
from altmas.methods.assured.contest import Contest, disagreement, importance
from altmas.methods.assured.design import drawn_whole, expected_gain, gain_of_sizes, pilot_sizes, tempered_sizes
from altmas.methods.assured.diagnostics import diagnose
from altmas.methods.assured.estimator import EVERY, Difference
from altmas.methods.assured.extra_models import FURTHER
from altmas.methods.assured.linearised import Estimators, Linearised
from altmas.methods.assured.notes import exact_note, insufficient, least_labels, undefined, unmet_note, unreached_note
from altmas.methods.assured.ordered import value_spread, values_in
from altmas.methods.assured.parts import StageSample
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.skips import Labelable, labelable, widened
from altmas.methods.assured.stages import (
    Stage,
    StageDesign,
    begin,
    domain_of_last,
    last_stage,
    next_of_groups,
    points_of_last,
    stages_of,
)
from altmas.methods.assured.views import describe
from altmas.methods.assured.weighing import by_unit, importance_for, unexplained_by_fold
from altmas.methods.gaps import gap_of
from altmas.methods.protocol import Method, Rehearsal, SequenceOfDraws, Traits
from altmas.methods.tradition import Tradition
from altmas.metrics import Metric
from altmas.pool import Pool
from altmas.suggest import near
from altmas.superpopulation import too_few_groups
from altmas.task import Task
from altmas.types import Array

SIMULTANEOUS = 4
REMEMBERED = 16
STAGES_OF_WAVE = 4
"""Beliefs that are remembered for each wave."""
LEAST_OF_DOMAIN = 0.25
"""Part of its share of a stage's draws that a wave has at least, however many labels it has already."""


@dataclass(frozen=True)
class Assured(Method):
    """Labels where they tell most about the metrics, drawn with known probabilities; difference estimator.

    pilot            labels of the first stage, before the design may follow the belief
    growth           a new stage begins once there are this many times the labels that the last one began with
    defensive_share  share of uniform draws after the pilot; None to let the labels so far say what has to be priced
    simultaneous     intervals that hold for all metrics together, not for each alone
    also             further answers that the built-in belief tries: "network" (the paper's, slow) and "trees"
    belief           a function (task, labelled, codes, weights, folds) -> Belief in place of the built-in one
    """

    pilot: int = 40
    growth: float = 2.0
    defensive_share: float | None = None
    simultaneous: bool = False
    also: tuple[str, ...] = ()
    belief: Callable[[Task, Array, Array, Array, Array], Belief] | None = None

    name: ClassVar[str] = "assured"
    traits: ClassVar[Traits] = Traits(
        interval="fixed-n",
        any_metric=True,
        grows=True,
        ahead=True,
        weights=True,
        groups=True,
        in_order=True,
        skips=True,
    )

    def __post_init__(self) -> None:
        for name in self.also:
            if name not in FURTHER:
                hint = near(name, FURTHER) or ";"
                raise MethodError(f"assured knows no further answer {name!r}{hint} known: {', '.join(FURTHER)}")
        if "network" in self.also:
            require("paper", "the answer of a network in assured")

    @products_on_one_thread()  # sums in another order would end in other bits
    def propose(self, task: Task, history: History, n: int) -> Batch:
        labels = len(history.labels)
        if task.units is not None:
            return self._propose_groups(task, history, n, task.units)
        record: dict[str, Array] = {}
        domain, left = _newest_first(task, history)
        over = self._stage_is_over(history, domain, ranking=len(task.rank) > 1)
        stage = None if over else last_stage(history)
        if stage is None or _exhausted(stage, history):
            stages = stages_of(history)
            stage, record = begin(self._design(task, history, stages, domain), history, task.seed, domain)
        rows = stage.next_points(history.open, min(n, left))
        return Batch(rows, stage.draw_chances(rows), record, labels_before=labels)

    def _propose_groups(self, task: Task, history: History, n: int, groups: Array) -> Batch:
        """The next n points of the groups that the stage draws; fewer where a new stage has to begin after them."""
        labels = len(history.labels)
        record: dict[str, Array] = {}
        rows = next_of_groups(history, groups, n)
        if len(rows):
            stage = last_stage(history, groups)
        else:
            design = self._design(task, history, stages_of(history, groups))
            planned = max((self.growth - 1) * labels, RECIPE.ranking_pilot if len(task.rank) > 1 else self.pilot)
            stage, record = begin(design, history, task.seed, None, groups, planned)
            rows = stage.next_points(history.open, n)
        return Batch(rows, stage.draw_chances(rows), record, labels_before=labels)

    @products_on_one_thread()
    def estimate(self, task: Task, history: History) -> Estimates:
        samples = self._samples(task, history, stages_of(history, task.pool.group))
        if not samples:
            return Estimates(tuple(_without_draws(metric, task, history) for metric in task.metrics), self.name)
        able = labelable(samples, task.pool, history)
        among = Estimators(samples, task, history, None if able is None else able.pool(task.pool))
        factor = self._factor(task, history)
        metrics = [metric for metric in task.metrics if not metric.contrasts]
        gaps = [metric for metric in task.metrics if metric.contrasts]
        every, together = [*metrics, *(contrast for gap in gaps for contrast in gap.contrasts)], None
        if self.simultaneous and len(every) > 1 and not task.stopping:
            together = _simultaneous_factor(task, [among.linearised(metric, _tails(task, factor)) for metric in every])
            factor = together
        linearised = [among.linearised(metric, _tails(task, factor)) for metric in metrics]
        answers = {linear.metric.name: self._answer(task, linear, factor, able) for linear in linearised}
        answers |= {metric.name: self._gap(task, history, metric, among, able, together) for metric in gaps}
        whole = among(None)
        rows_meant = np.ones(len(task.pool)) if task.pool.weights is None else task.pool.weights
        diagnostics = diagnose(whole, _unused(samples, history), rows_meant)
        info = {"belief": whole.belief.shares, "diagnostics": diagnostics.to_dict()}
        return Estimates(tuple(answers[metric.name] for metric in task.metrics), self.name, info)

    def inclusion(self, pool: Pool, history: History) -> Array:
        """(N,) probability of each point to be in the sample of some stage, had it been open in all of them."""
        exposure = sum(
            (np.where(stage.within, stage.sizes * stage.threshold, 0.0) for stage in stages_of(history, pool.group)),
            np.zeros(history.n_points),
        )
        return np.asarray(np.maximum(-np.expm1(-np.asarray(exposure)), 1e-12))

    @products_on_one_thread()
    def sequences(self, task: Task, history: History) -> list[SequenceOfDraws]:
        """The answered draws of each stage with the belief from labels told before it; none of the first edition."""
        sequences, exposure, belief = [], np.zeros(len(task.pool)), None
        for stage in stages_of(history, task.pool.group):
            before = np.flatnonzero((history.known >= 0) & stage.earlier)
            if stage.from_first_edition:
                continue
            if len(before):
                belief = self._fit(task, history, before, exposure)
            cut = stage.cut_at is not None
            sequences.append(SequenceOfDraws(stage.population, stage.sizes, belief, stage.used, stage.within, cut))
            exposure = exposure + stage.exposure
        return sequences

    @products_on_one_thread()
    def rehearse(self, task: Task, history: History) -> Rehearsal | None:
        """The method with its present belief, and the sizes that its next stage would have, for all stages to come."""
        stages = stages_of(history, task.pool.group)
        samples = self._samples(task, history, stages)
        if not samples or task.units is not None:  # imagined errors would not come in groups
            return None
        design = self._design(task, history, stages)
        options = {option.name: getattr(self, option.name) for option in fields(self)}
        fitted = {_train(sample.stage, sample.rows, history).tobytes(): sample.belief for sample in samples}
        estimator = Estimators(samples, task, history)(None)
        held = _Held(**options, fitted=fitted, held=estimator.belief, design=design)
        return Rehearsal(held, estimator.belief, *_right(estimator))

    # ------------------------------------------------------------ where to draw

    def _stage_is_over(self, history: History, domain: int | None = None, *, ranking: bool = False) -> bool:
        """Whether enough labels were told since the last stage began; or none did, or it is about other points."""
        if domain_of_last(history) != domain or points_of_last(history) < history.n_points:
            return True
        begun = [batch.labels_before for batch in history.batches if "population" in batch.record]
        labels = len(history.labels)
        pilot = RECIPE.ranking_pilot if ranking else self.pilot
        return not begun or (labels >= pilot and labels >= self.growth * begun[-1])

    def _design(self, task: Task, history: History, stages: list[Stage], domain: int | None = None) -> StageDesign:
        """What the next stage begins with."""
        design = self._design_of_points(task, history, stages)
        if domain is None and history.grown:
            return design._replace(sizes=design.sizes * self._catching_up(history, design.sizes, task.pool.weights))
        return design

    def _catching_up(self, history: History, sizes: Array, weights: Array | None) -> Array:
        """(N,) factors by which domains with few labels so far are drawn more often.

        At the end of the stage each domain should have its share of all labels; none has less than a part
        LEAST_OF_DOMAIN of its share of the stage's.
        """
        labelled, free = history.known >= 0, history.open
        planned = max((self.growth - 1) * len(history.labels), self.pilot)
        total, n_points = len(history.labels) + planned, history.n_points
        factors = np.ones(n_points)
        for rows in history.domains:
            part = (rows.stop - rows.start) / n_points
            if weights is not None:
                part = float(weights[rows].sum() / weights.sum())
            missing = max(total * part - float(labelled[rows].sum()), LEAST_OF_DOMAIN * planned * part)
            size = float(sizes[rows][free[rows]].sum())
            factors[rows] = missing / size if size > 0 else 0.0
        drawn = factors > 0
        return np.where(drawn, factors / factors[drawn].mean(), 1.0) if drawn.any() else np.ones(n_points)

    def _design_of_points(self, task: Task, history: History, stages: list[Stage]) -> StageDesign:
        """The same for a pool that never grew: what one row of the expanded pool needs, times what a row stands for."""
        design, weights = self._design_of_rows(task, history, stages), task.pool.weights
        return design if weights is None else design._replace(sizes=design.sizes * (weights / weights.mean()))

    def _design_of_rows(self, task: Task, history: History, stages: list[Stage]) -> StageDesign:
        """The same by one row of the expanded pool."""
        pool = task.pool
        samples = self._samples(task, history, stages)
        if len(task.rank) > 1:
            return StageDesign(self._ranking_sizes(task, history, samples), np.ones(1))
        of_truth = not any(metric.needs_answers for metric in task.metrics)
        if len(history.labels) - len(history.volunteered) < self.pilot or not samples:
            plain = of_truth or all(metric.right_or_wrong for metric in task.metrics)
            least = 0 if plain else RECIPE.pilot_class_labels
            doubt = self._doubt(task, of_truth)
            return StageDesign(pilot_sizes(pool.anchor, len(pool.classes), self.pilot, doubt, least), np.ones(1))
        among = Estimators(samples, task, history)
        estimator = among(None)
        folds = folds_of(history.domains, task.seed, task.units)
        planned = self.growth * estimator.labels
        importances = importance_for(task, estimator, self._urgencies(task, among), planned)
        defensive = importances.defensive if self.defensive_share is None else self.defensive_share
        sizes, _ = tempered_sizes(importances.believed, importances.seen, importances.rows, folds, defensive)
        whole = None
        if task.units is None:
            draws = max(planned - estimator.labels, 1.0)
            sizes, whole = drawn_whole(sizes, importances.few, history.open, draws, pool.weights)
        gain_of_first = None if of_truth else self._gain_of_first(task, samples, stages, folds)
        return StageDesign(sizes, self._gain(task, estimator.belief, folds, of_truth), whole, gain_of_first)

    def _gain_of_first(self, task: Task, samples: list[StageSample], stages: list[Stage], folds: Array) -> Array | None:
        """(K,) what labels of the first stage are worth, as labels outside each fold have it when the second begins.

        None where its draws follow no scores: it counts as a random sample then.
        """
        with_scores = any(model.scores is not None for model in task.pool.models)
        if len(stages) != 1 or stages[0].from_first_edition or task.units is not None or not with_scores:
            return None
        weights = np.ones(len(folds)) if task.pool.weights is None else task.pool.weights
        sizes = np.where(stages[0].population, stages[0].sizes, 0.0)
        return gain_of_sizes(samples[0].belief.agree, sizes, weights, folds)

    def _gain(self, task: Task, belief: Belief, folds: Array, of_truth: bool) -> Array:
        """(K,) how many random labels each label of the next stage should be worth, in each fold."""
        unexplained = unexplained_by_fold(task, belief, folds)
        if of_truth:  # judges explain the labels of the pilot as well: later stages gain by their draws alone
            unexplained /= np.maximum(np.bincount(folds, unexplained, RECIPE.folds), 1e-300)[folds]
        weights = np.ones(len(folds)) if task.pool.weights is None else task.pool.weights
        defensive = self.defensive_share
        if defensive is None:  # what it will be depends on labels of every fold
            defensive = (RECIPE.least_defensive + RECIPE.most_defensive) / 2
        return expected_gain(unexplained, weights, folds, defensive)

    def _doubt(self, task: Task, of_truth: bool) -> Array | None:
        """(N,) what a share of the first labels follows: the models' doubt, or how far apart their values lie."""
        if self.belief is not None:
            return None
        values = values_in(task.metrics, task.pool)
        if of_truth:
            return value_spread(task.pool, values) if values else None
        return describe(task.pool).doubt

    def _ranking_sizes(self, task: Task, history: History, samples: list[StageSample]) -> Array:
        """(N,) sizes for draws that are to tell which of several models is best: where contenders differ."""
        pool = task.pool
        uniform, answers = RECIPE.ranking_uniform, [model.predictions for model in pool.models]
        if history.drawn_labels < RECIPE.ranking_pilot or not samples:
            differ = disagreement(answers, len(pool.classes))
            return np.asarray(uniform + (1 - uniform) * differ / max(float(differ.mean()), 1e-12))
        contest = self._contest(task, history, samples, task.rank)
        believed, seen = by_unit(*importance(contest), contest.rows, pool.weights)
        folds = folds_of(history.domains, task.seed, task.units)
        return tempered_sizes(believed, seen, contest.rows, folds, uniform)[0]

    def contest(self, task: Task, history: History, metrics: tuple[Metric, ...]) -> Contest | None:
        """One metric of each model from the labels so far; None before any label was drawn."""
        samples = self._samples(task, history, stages_of(history, task.pool.group))
        if not samples:
            return None
        return self._contest(task, history, samples, metrics, labelable(samples, task.pool, history))

    def _contest(
        self,
        task: Task,
        history: History,
        samples: list[StageSample],
        metrics: tuple[Metric, ...],
        able: Labelable | None = None,
    ) -> Contest:
        quick = [replace(sample, belief=sample.belief.written_out) for sample in samples]
        among = Estimators(quick, task, history, None if able is None else able.pool(task.pool))
        return Contest(among, metrics, self._planned(task), task.fraction, able)

    def _urgencies(self, task: Task, among: Estimators) -> Array:
        """(K,) how much each metric counts for the draws.

        In proportion to 1 over the number of metrics of its kind, so that 20 class metrics do not drown accuracy; with
        targets to the square of how many times too wide the interval still is.
        """
        families = Counter(metric.family for metric in task.metrics)
        shares = [1 / families[metric.family] for metric in task.metrics]
        targets = dict(task.targets)
        factor = normal_quantile(task.confidence)
        for index, metric in enumerate(task.metrics):
            if metric.name in targets:
                if metric.contrasts:
                    answer = self._gap(task, among.history, metric, among)
                else:
                    answer = self._answer(task, among.linearised(metric, _tails(task, factor)), factor)
                width = 1.0 if math.isnan(answer.half_width) else answer.half_width
                shares[index] *= min(25.0, max(0.04, (width / targets[metric.name]) ** 2))
        return np.array(shares)

    # ------------------------------------------------------------ how sure

    def _factor(self, task: Task, history: History, pairs: int = 1) -> float:
        """How many standard errors an interval reaches, if as many pairs hold together at every look."""
        if not task.stopping:
            return normal_quantile(task.confidence)
        together = pairs * (len(task.metrics) if self.simultaneous else 1)
        return anytime_quantile(1 - (1 - task.confidence) / together, len(history.labels), self._planned(task))

    def _planned(self, task: Task) -> int:
        """The number of labels near which intervals for every look are narrowest."""
        return max(self.pilot, (task.budget or 400) // 2)

    def _gap(
        self,
        task: Task,
        history: History,
        metric: Metric,
        among: Estimators,
        able: Labelable | None = None,
        together: float | None = None,
    ) -> Estimate:
        """The largest difference between groups, from intervals of all pairs that hold together.

        together  how many standard errors hold for all metrics, if this one is to hold with the others
        """
        factor = self._factor(task, history, pairs=len(metric.contrasts)) if together is None else together
        linearised = [among.linearised(contrast, _tails(task, factor)) for contrast in metric.contrasts]
        if together is None and not task.stopping and len(linearised) > 1:
            factor = _simultaneous_factor(task, linearised)
            linearised = [among.linearised(contrast, _tails(task, factor)) for contrast in metric.contrasts]
        pairs = [self._answer(task, linear, factor, able) for linear in linearised]
        parts = [among.linearised(part, _tails(task, factor)) for _, part in metric.parts]
        own = [linear if able is None else able.corrected(linear) for linear in parts]
        values = [linear.value_inside(of_pool=able is None and not task.beyond) for linear in own]
        return gap_of(metric, pairs, values, task.confidence)

    def _answer(self, task: Task, linear: Linearised, factor: float, able: Labelable | None = None) -> Estimate:
        metric, kind = linear.metric, "asymptotic" if task.stopping else "fixed-n"
        common = (task.confidence, linear.labels)
        if linear.unlabelled == 0 and not math.isnan(linear.value) and not task.beyond:
            value, worth = linear.value, float(linear.of_points)
            note = skip_note(metric, value, linear.labels, linear.skipped) if linear.skipped else exact_note(linear)
            return Estimate(metric.name, value, value, value, *common, worth, kind, note)
        if math.isnan(linear.value) or (linear.drawn == 0 and linear.unlabelled > 0) or not linear.told:
            return without_interval(metric, *common, insufficient(metric, linear, len(task.pool)))
        of_skips = 0.0
        if able is not None:
            linear, of_skips = able.corrected(linear), able.variance_of(linear.sides)
        value = linear.value_inside(of_pool=able is None and not task.beyond)
        if metric.about.over_classes and linear.labels < linear.classes:
            note = f"no interval: fewer labels ({linear.labels}) than classes ({linear.classes}) to average over"
            return without_interval(metric, *common, note, value=value)
        if linear.drawn < (fewest := least_labels(metric, len(task.pool.classes))):
            note = f"no interval: fewer than {fewest} labels count so far, and a few can move it from end to end"
            return without_interval(metric, *common, note, value=value)
        ahead = ahead_of(linear, missed_tail(factor), task.fraction) if task.beyond else None
        if ahead is not None and ahead.too_few:
            note = too_few_groups(ahead, task.pool.group_name)
            return without_interval(metric, *common, note, value=value)
        low, high = interval_of(linear, value, factor, ahead)
        if able is not None:
            low, high = widened((low, high), value, factor * math.sqrt(of_skips), metric.bounds)
        note = unmet_note(linear) or metric.about.caution
        if linear.skipped:
            note = skip_note(metric, value, linear.labels, linear.skipped)
        least = 0.0 if ahead is None else ahead.least_half_width(factor)
        worth = linear.effective_labels(of_skips)
        if ahead is not None and not task.ahead:
            worth = linear.effective_labels(of_skips + ahead.evidence.variance, task.fraction)
        if linear.unreached:
            note, worth = unreached_note(linear), math.nan
        return Estimate(metric.name, value, low, high, *common, worth, kind, note, least_half_width=least)

    # ------------------------------------------------------------ fits

    def _samples(self, task: Task, history: History, stages: list[Stage]) -> list[StageSample]:
        """Stages with a label, each with the belief from the labels told before it and in its own sample."""
        samples, exposure = [], np.zeros(len(task.pool))
        folds = folds_of(history.domains, task.seed, task.units)
        for number, stage in enumerate(stages):
            exposure = exposure + stage.exposure
            rows = stage.used[history.known[stage.used] >= 0]
            if len(rows):
                belief = self._fit(task, history, _train(stage, rows, history), exposure)
                before = (history.known >= 0) & stage.earlier & stage.within
                left_open = stage.cut_at if stage.gap or _passed_over(stages[number + 1 :]) else None
                samples.append(StageSample(stage, belief, before, rows, left_open, folds))
        return samples

    def _fit(self, task: Task, history: History, train: Array, exposure: Array) -> Belief:
        """The belief from the labels at these rows; remembered for those asked for last."""
        codes, values = history.known[train], values_in(task.metrics, task.pool)
        weights = _training_weights(exposure[train])
        data = (train.tobytes(), codes.tobytes(), weights.tobytes())
        key = (task.seed, *data, self.belief, self.also, values, task.draw)

        def fit() -> Belief:
            folds = folds_of(history.domains, task.seed, task.units)
            if self.belief is not None:
                return self.belief(task, train, codes, weights, folds)
            return belief_of(task.pool, describe(task.pool), train, codes, weights, folds, self.also, values)

        keep = max(REMEMBERED, STAGES_OF_WAVE * len(history.domains))  # else each look at many waves would fit them all
        return task.pool.memo.get("belief of assured", key, fit, keep=keep)


@dataclass(frozen=True)
class _Held(Assured):
    """Assured that fits nothing more: stages that are over keep their beliefs, all others have the belief `held`."""

    fitted: dict[bytes, Belief] = field(default_factory=dict)
    held: Belief | None = None
    design: StageDesign = StageDesign(np.zeros(0), np.ones(1))

    def _fit(self, task: Task, history: History, train: Array, exposure: Array) -> Belief:
        belief = self.fitted.get(train.tobytes(), self.held)
        assert belief is not None
        return belief

    def _design(self, task: Task, history: History, stages: list[Stage], domain: int | None = None) -> StageDesign:
        return self.design


def _without_draws(metric: Metric, task: Task, history: History) -> Estimate:
    """What labels tell of which none was drawn: the metric itself once all points that it is about have one.

    Labels of all points are a random sample of all points, so that `tradition` says what is exact then. Else nothing.
    """
    members = metric.members(task.pool)
    if not (history.known[slice(None) if members is None else members] >= 0).all():
        return undefined(metric, task, history)
    return Tradition().estimate(replace(task, metrics=(metric,)), history)[metric.name]


def _exhausted(stage: Stage, history: History) -> bool:
    """Whether all that is still open had a label when the stage began, which was taken back since."""
    return bool(history.open.any()) and not bool((history.open & stage.population).any())


def _passed_over(later: list[Stage]) -> bool:
    """Whether answers to these stages leave behind what an earlier one asked for; to begin one does not."""
    return any(len(stage.used) > 0 or stage.gap for stage in later)


def _train(stage: Stage, rows: Array, history: History) -> Array:
    """Rows of the labels that the belief of a stage is fitted on: those told before it, and those of its sample."""
    return np.concatenate([np.flatnonzero((history.known >= 0) & stage.earlier), rows])


def _right(estimator: Difference) -> tuple[float, float]:
    """(share of the points whose label is the belief's answer, how many random labels that estimate is worth)."""
    known, weight = estimator.known, estimator.weight
    points, total, variance = float(weight.sum()), 0.0, 0.0
    for part in estimator.parts:
        belief = part.belief
        residuals = (known[part.rows] == belief.predictions[part.rows]) - belief.agree[part.rows]
        residuals = residuals * weight[part.rows]
        right_rows = known[part.labelled] == belief.predictions[part.labelled]
        total += float((part.share_at(part.labelled) * right_rows * weight[part.labelled]).sum())
        total += float((part.share_at(EVERY) * belief.agree * weight * part.rest).sum() + part.terms(residuals).sum())
        variance += float(part.squares(residuals).sum()) / points**2
    right = min(max(total / points, 0.0), 1.0)
    worth = right * (1 - right) / variance if variance > 0 else math.inf
    return right, float(np.clip(worth, estimator.drawn / 4, RECIPE.largest_gain * estimator.drawn))


def _unused(samples: list[StageSample], history: History) -> int:
    """How many labels of drawn points are in no sample, because they lie beyond a point that has no answer.

    Those of a group that is being asked for, with nothing answered behind it, are about to be in one.
    """
    if all(sample.stage.cut_at is None for sample in samples):
        return 0
    drawn, last = set(history.drawn.tolist()) & history.labels.keys(), samples[-1].stage
    if last.units is not None and last.cut_at is not None and not last.gap:
        drawn -= set(np.flatnonzero(last.units == last.units[last.cut_at]).tolist())
    return len(drawn.difference(*(sample.rows.tolist() for sample in samples)))


def _training_weights(exposure: Array) -> Array:
    """(n,) how much each label counts in fits: 1/sqrt(pi), at most a multiple of the mean; 1 where nobody drew it."""
    chance = np.where(exposure > 0, -np.expm1(-exposure), 1.0)
    weights = 1 / np.sqrt(np.maximum(chance, 1e-12))
    weights = np.minimum(weights / weights.mean(), RECIPE.largest_weight)
    return np.asarray(weights / weights.mean())


def _tails(task: Task, factor: float) -> Tails:
    """Of the chances that an interval of so many standard errors may miss; each end for itself where one may decide."""
    return Tails.one_sided(factor) if task.stopping else Tails.of(factor)


def _simultaneous_factor(task: Task, linearised: list[Linearised]) -> float:
    """How many standard errors hold for all metrics together."""
    if task.beyond:
        groups = task.units if task.groups is None else task.groups
        terms = contributions_by_group([linear.sides for linear in linearised], groups)
    else:
        terms = np.zeros((len(task.pool), len(linearised)))
        for column, linear in enumerate(linearised):
            draws = linear.rows if task.units is None else task.units[linear.rows]
            np.add.at(terms[:, column], draws, linear.terms)
    nonzero = terms[np.flatnonzero(np.abs(terms).sum(1) > 0)]
    if not len(nonzero):
        return normal_quantile(task.confidence)
    return simultaneous_quantile(nonzero, task.confidence, np.random.default_rng([task.seed, SIMULTANEOUS]))


def _newest_first(task: Task, history: History) -> tuple[int | None, int]:
    """(the newest domain, how many draws it lacks of the budget of a wave); (None, no limit) once it has them."""
    if task.wave_budget is None or not history.grown:
        return None, history.n_points
    rows = history.domains[-1]
    drawn = int(((history.drawn >= rows.start) & (history.drawn < rows.stop)).sum())
    left = min(task.wave_budget - drawn, int(history.open[rows].sum()))
    return (len(history.domains) - 1, left) if left > 0 else (None, history.n_points)
