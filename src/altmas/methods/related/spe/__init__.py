"""Semisupervised performance evaluation: few labels and the distribution of all scores (C.7)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.errors import MethodError, PlanError
from altmas.estimates import Estimate, Estimates
from altmas.history import Batch, History
from altmas.methods.assured.logistic import logistic_fit
from altmas.methods.paper.rounds import estimates_of, known_table, nothing_known, uniform_batch
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.spe.families import FAMILIES
from altmas.methods.related.spe.mixture import (
    BinnedScores,
    Mixture,
    fit,
    fit_as_far_as_labels_bear_it,
    logit,
    piles_of,
    sample,
)
from altmas.metrics import Metric
from altmas.pool import Pool
from altmas.streams import stream
from altmas.suggest import near
from altmas.task import Task
from altmas.types import Array

FIT = "spe: fit"
"""Purpose of the random numbers of a fit."""

RIGHT = -1
"""The question "is the model right?"; a class code k stands for "is it k?"."""

AGREE = 1.05
"""R-hat above which the chains have not found the same posterior."""

FEW = 3
"""With fewer labels of one kind nothing keeps its score distribution from being something else."""

MODEL = "credible if the score families fit"
CORRECTED = "credible if the score families fit up to a shift and a slope, which the labels tell"

SLOPE = 4.0
"""Prior precision of the slope of the correction about 1; that of its shift about 0 is 1."""
FARTHEST = 12.0
"""Log odds beyond this count as this in the correction."""


@dataclass(frozen=True)
class Spe(Method):
    """Uniform labels; two score distributions for each question, after Welinder, Welling and Perona (2013).

    Accuracy asks "is the model right?" of its score of its own answer; a metric of class k asks "is it k?" of the
    score of k; other metrics ask that of every class. Answers are drawn for the unlabelled points of this pool (C25),
    so the interval is credible for the pool, as far as the families fit; where they do not, estimates are biased.

    families        what each score distribution may be; the pair of lowest BIC is taken
    unlabelled      how much an unlabelled point counts in the fit; 1 as published, by default as far as the labels bear
                    it (where the families do not fit, thousands of scores would outvote what the labels say)
    recalibrate     correct the log odds of the fitted mixture by a shift and a slope that the labels tell, with their
                    uncertainty (ours): scores that fit no family are else believed more than the labels
    chains, steps   of the random walk, the first half of which is thrown away
    draws           of the parameters that metrics are computed for
    """

    families: tuple[str, ...] = tuple(FAMILIES)
    unlabelled: float | None = None
    recalibrate: bool = True
    chains: int = 4
    steps: int = 2000
    draws: int = 400

    name = "spe"
    traits = Traits(
        requires=("scores",),
        interval="credible",
        biased=True,
        citation="Welinder, Welling and Perona 2013, A lazy man's approach to benchmarking",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "families", tuple(self.families))  # a list when read back from a session file
        for name in self.families:
            if name not in FAMILIES:
                hint = near(name, FAMILIES) or ";"
                raise MethodError(f"family {name!r} does not exist{hint} known: {', '.join(FAMILIES)}")
        for option, value, least in (
            ("families", len(self.families), 1),
            ("chains", self.chains, 2),
            ("steps", self.steps, 100),
            ("draws", self.draws, 20),
            ("unlabelled", 0 if self.unlabelled is None else self.unlabelled, 0),
        ):
            if value < least:
                raise PlanError(f"{option} {value!r} is out of range; expected at least {least}; nothing was recorded")

    def propose(self, task: Task, history: History, n: int) -> Batch:
        return uniform_batch(task, history, n)

    def estimate(self, task: Task, history: History) -> Estimates:
        if len(history.labels) == 0:
            return nothing_known(self.name, task)
        if len(history.labels) == len(task.pool):
            estimates = estimates_of(self.name, task, history, None)
            exact = tuple(_exact(estimate) for estimate in estimates)
            return Estimates(exact, self.name)
        answers: dict[int, Answers] = {}
        values = [self._of_metric(task, history, metric, answers) for metric in task.metrics]
        fits = {
            "right" if key == RIGHT else str(task.pool.classes[key]): answer.info for key, answer in answers.items()
        }
        return Estimates(tuple(values), self.name, {"mixtures": fits})

    def _of_metric(self, task: Task, history: History, metric: Metric, answers: dict[int, "Answers"]) -> Estimate:
        keys = questions(metric, len(task.pool.classes))
        for key in keys:
            if key not in answers:
                answers[key] = answers_to(self, task, history, key)
        known = known_table(task, history, metric)
        members = metric.members(task.pool)
        unknown = history.known < 0 if members is None else members & (history.known < 0)
        rng = stream(task.seed, FIT, len(history.labels), keys[0] + 1, len(keys))
        tables = known + filled(task.pool, unknown, [answers[key] for key in keys], rng)
        used = [answers[key] for key in keys]
        estimate = credible(metric, tables, task.confidence, len(history.labels), self._note(used))
        fewest = min(min(answer.info["labels"].values()) for answer in used)
        return estimate if fewest >= FEW else without_interval(estimate, fewest)

    def _note(self, answers: list["Answers"]) -> str:
        """What an interval rests on, and what speaks against it."""
        worst = max(answer.info["r_hat"] for answer in answers)
        note = CORRECTED if self.recalibrate else f"{MODEL}, which labels cannot check: seldom as sure as it says"
        return note if worst <= AGREE else f"{note}; chains disagree (R-hat {worst:.2f})"


def without_interval(estimate: Estimate, fewest: int) -> Estimate:
    """The value alone: with so few labels of one kind the scores tell it, and no label could contradict them."""
    if np.isnan(estimate.value):
        return estimate
    note = f"no interval: only {fewest} labels of one kind, so the scores alone tell it"
    return replace(estimate, low=float("nan"), high=float("nan"), interval="none", note=note)


@dataclass(frozen=True)
class Answers:
    """What is believed about one question.

    bin_of  (N,) the group or bin of each point's score;  yes  (draws, B) P(yes | score in this bin) in each draw
    """

    key: int
    bin_of: NDArray[np.int64]
    yes: Array
    info: dict[str, Any]


def questions(metric: Metric, n_classes: int) -> tuple[int, ...]:
    """The questions that a metric needs answered; of two classes accuracy too is a matter of what is the second."""
    if metric.about.right_or_wrong:
        return (RIGHT,) if n_classes > 2 else (1,)
    return (metric.classes[-1],) if metric.classes else tuple(range(n_classes))


REMEMBERED = 64


def answers_to(options: Spe, task: Task, history: History, key: int) -> Answers:
    """The fitted mixture for one question; remembered while the pool lives, as asking twice gives the same."""
    moment = (options, task.seed, key, tuple(history.labels.items()))
    return task.pool.memo.get("spe", moment, lambda: _answers(options, task, history, key), keep=REMEMBERED)


def _answers(options: Spe, task: Task, history: History, key: int) -> Answers:
    pool, rows = task.pool, history.labelled
    assert pool.scores is not None
    asked_class = pool.predictions if key == RIGHT else np.full(len(pool), key)
    values = logit(pool.scores[np.arange(len(pool)), asked_class])
    yes, group, rng = history.codes == asked_class[rows], piles_of(values), stream(task.seed, FIT, len(rows), key + 1)
    spread = np.flatnonzero(group < 0)
    info: dict[str, Any] = {"labels": {"yes": int(yes.sum()), "no": int((~yes).sum())}, "r_hat": 1.0}
    shares = share_of_piles(group[rows], yes, int(group.max()) + 1, options.draws, rng)
    bin_of, info["piled"] = group.copy(), round(1 - len(spread) / len(pool), 4)
    if len(spread):
        inner = BinnedScores.of(values[spread])
        bin_of[spread] = shares.shape[1] + inner.bin_of
        among, is_yes = np.flatnonzero(np.isin(spread, rows)), dict(zip(rows.tolist(), yes.tolist(), strict=True))
        right = np.array([is_yes[row] for row in spread[among].tolist()], np.bool_)
        unknown = inner.counts(history.known[spread] < 0)
        mixture = Mixture(inner, unknown, inner.counts(among[~right]), inner.counts(among[right]))
        fitted, more = _fitted(options, mixture, rng)
        if options.recalibrate:
            fitted = recalibrated(fitted, inner.bin_of[among], right, rng)
        shares, info = np.hstack([shares, fitted]), info | more
    return Answers(key, bin_of, shares, info)


def share_of_piles(group: Array, yes: Array, count: int, draws: int, rng: np.random.Generator) -> Array:
    """(draws, count) the share of "yes" among points with the same score, by their labels alone (Jeffreys)."""
    inside = group >= 0
    hits = np.bincount(group[inside], yes[inside], count)
    seen = np.bincount(group[inside], minlength=count)
    return np.asarray(rng.beta(hits + 0.5, seen - hits + 0.5, (draws, count)))


def recalibrated(yes: Array, bins: Array, right: Array, rng: np.random.Generator) -> Array:
    """(draws, B) P(yes | bin) with log odds a + b L in place of L, a and b drawn from their posterior by the labels.

    bins, right  (n,) bin of each label, and whether it is a "yes". L is the mean log odds over the draws in the fit of
    a ~ N(0, 1), b ~ N(1, 1/4), a normal approximation at their most probable values.
    """
    from scipy.special import expit
    from scipy.special import logit as log_odds

    odds = np.clip(log_odds(np.clip(yes, 1e-12, 1 - 1e-12)), -FARTHEST, FARTHEST)
    columns = np.stack([np.ones(len(bins)), odds.mean(0)[bins]], axis=1)
    penalty = np.array([1.0, SLOPE])
    best = logistic_fit(columns, right.astype(np.float64), np.ones(len(bins)), penalty, np.array([0.0, 1.0]))
    p = expit(columns @ best)
    precision = (columns * (p * (1 - p))[:, None]).T @ columns + np.diag(penalty)
    shift, slope = rng.multivariate_normal(best, np.linalg.inv(precision), len(yes)).T
    return np.asarray(expit(shift[:, None] + np.maximum(slope, 0.0)[:, None] * odds))


def _fitted(options: Spe, mixture: Mixture, rng: np.random.Generator) -> tuple[Array, dict[str, Any]]:
    """((draws, B) P(yes | score in this bin), what is to be known of the fit)."""
    if options.unlabelled is None:
        best, weight = fit_as_far_as_labels_bear_it(mixture, options.families)
    else:
        weight = options.unlabelled
        best = fit(replace(mixture, unlabelled=weight * mixture.unlabelled), options.families)
    chains = sample(best, rng, options.chains, options.steps)
    if chains.r_hat.max() > AGREE:  # once more, longer
        chains = sample(best, rng, options.chains, 4 * options.steps)
    draws = chains.kept.reshape(-1, chains.kept.shape[-1])
    theta = draws[np.linspace(0, len(draws) - 1, options.draws).astype(np.int64)]
    return best.mixture.responsibility(theta), {
        "families": list(best.mixture.families),
        "unlabelled_weight": weight,
        "bic": best.bic,
        "r_hat": float(chains.r_hat.max()),
        "accepted": chains.accepted,
        "ks_distance": best.mixture.ks_distance(best.theta),
        "share": float((1 / (1 + np.exp(-theta[:, 0]))).mean()),
    }


# ---------------------------------------------------------------- labels drawn for the pool (C25)


def filled(pool: Pool, unknown: Array, answers: list[Answers], rng: np.random.Generator) -> Array:
    """(draws, C, C) tables of the unlabelled points.

    For one question, points answered "no" lie in some cell that the metric does not tell apart. For all classes at
    once, each row is scaled to the known number of points predicted so.
    """
    n_classes = len(pool.classes)
    predicted = np.bincount(pool.predictions[unknown], minlength=n_classes).astype(np.float64)
    drawn = [yes_counts(pool, unknown, answer, rng) for answer in answers]  # each (draws, C)
    tables = np.zeros((len(drawn[0]), n_classes, n_classes))
    if len(answers) > 1:
        tables = np.stack(drawn, axis=2) + 1e-9
        return np.asarray(tables * (predicted / tables.sum(2))[:, :, None])
    a, yes = np.arange(n_classes), drawn[0]
    true = a if answers[0].key == RIGHT else np.full(n_classes, answers[0].key)
    other_class = np.where(a == true, (a + 1) % n_classes, a)
    tables[:, a, true] = yes
    tables[:, a, other_class] += predicted - yes
    return tables


def yes_counts(pool: Pool, unknown: Array, answers: Answers, rng: np.random.Generator) -> Array:
    """(draws, C) how many unlabelled points predicted a are answered "yes" in each draw of labels."""
    n_classes, bins = len(pool.classes), answers.yes.shape[1]
    cells = np.bincount(pool.predictions[unknown] * bins + answers.bin_of[unknown], minlength=n_classes * bins)
    full = np.flatnonzero(cells)
    yes = np.zeros((len(answers.yes), n_classes))
    drawn = rng.binomial(cells[full], np.clip(answers.yes[:, full % bins], 0.0, 1.0))
    for a in np.unique(full // bins):
        yes[:, a] = drawn[:, full // bins == a].sum(1)
    return yes


def credible(metric: Metric, tables: Array, confidence: float, labels: int, note: str) -> Estimate:
    """Mean and central interval of the metric over the tables in which it is defined."""
    values = np.asarray(metric.of_table(tables), np.float64)
    defined = values[~np.isnan(values)]
    nan = float("nan")
    if len(defined) == 0:
        return Estimate(metric.name, nan, nan, nan, confidence, labels, note="undefined: in every draw of the labels")
    if len(defined) < len(values):
        note += f"; undefined in {len(values) - len(defined)} of {len(values)} draws, which are left out"
    value = float(defined.mean())
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return Estimate(
        metric.name, value, min(low, value), max(high, value), confidence, labels, interval="credible", note=note
    )


def _exact(truth: Estimate) -> Estimate:
    """The truth as an estimate with an interval of no width; undefined stays undefined."""
    value = truth.value
    if np.isnan(value):
        return truth
    return Estimate(
        truth.metric, value, value, value, truth.confidence, truth.labels, interval="credible", note=truth.note
    )
