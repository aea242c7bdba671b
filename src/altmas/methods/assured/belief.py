"""What is believed about each unknown label, from the labels outside the point's own fold.

N points in K folds, C classes. Labels outside fold k answer for the points of fold k, so the belief at a labelled
point has never seen its label: residuals are honest, and the same belief is summed over the pool and corrected by them.
f[i, c] ~ P(y_i = c):   f[i, a_i] = agree_i,   f[i, c] = (1 - agree_i) rivals[group_i, c]   for c != a_i.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from altmas.belief import Belief
from altmas.methods.assured.extra_models import FURTHER, Answer
from altmas.methods.assured.logistic import (
    Block,
    class_rates,
    combination,
    log_odds,
    logistic_log_odds,
    pooled,
    share_right,
    sigmoid,
)
from altmas.methods.assured.ordered import Labels, Learned, with_order
from altmas.methods.assured.recipe import RECIPE
from altmas.methods.assured.views import Description, narrow, without_own
from altmas.pool import Pool
from altmas.types import Array

CHUNK = 2**15
"""Points that are answered for together."""


def folds_of(domains: Sequence[slice] | int, seed: int, units: Array | None = None) -> Array:
    """(N,) the fold of each point, fixed by the seed and its place among those it came with: none moves as pools grow.

    domains  the rows that came together, in order; or how many points there are that all did
    units    (N,) groups that are drawn as a whole: no fold splits one, since its points are drawn together
    """
    if units is not None:
        return folds_of(int(units.max()) + 1, seed)[units]
    folds = []
    for number, rows in enumerate([slice(0, domains)] if isinstance(domains, int) else domains):
        rng = np.random.default_rng([seed, 5, number] if number else [seed, 5])
        folds.append(rng.permutation(rows.stop - rows.start) % RECIPE.folds)
    return np.concatenate(folds)


def belief_of(
    pool: Pool,
    description: Description,
    labelled: Array,
    codes: Array,
    weights: Array,
    folds: Array,
    also: Sequence[str] = (),
    values: Sequence[float] = (),
) -> Belief:
    """The cross-fitted belief from labels `codes` at rows `labelled`, which count by `weights` in the fits.

    also    names of answers in FURTHER that are tried besides
    values  (C,) of the classes where these are numbers: regressions of the value are tried as well
    """
    right = (codes == pool.anchor[labelled]).astype(np.float64)
    fits = [
        _fold_answers(
            pool, description, labelled[outside], codes[outside], right[outside], weights[outside], folds == k, also
        )
        for k in range(int(folds.max()) + 1)
        for outside in [folds[labelled] != k]
    ]
    agree, at_labels, shares = np.empty(len(pool)), [], Counter[str]()
    for k, fit in enumerate(fits):
        outside, answers = folds[labelled] != k, list(fit.left_out_odds.values())
        prior = np.array([RECIPE.trust_in_scores if name == "scores" else 1.0 for name in fit.odds])
        own_shares = combination(sigmoid(np.stack(answers)), right[outside], weights[outside], prior)
        agree[fit.rows] = pooled(list(fit.odds.values()), own_shares)
        at_labels.append(pooled(answers, own_shares))
        shares.update(dict(zip(fit.odds, (own_shares / len(fits)).tolist(), strict=True)))
    agree = np.clip(agree, RECIPE.certain, 1 - RECIPE.certain)
    rivals, group, of_errors = _rivals(pool, description, fits, folds, labelled, codes)
    belief = Belief(pool.anchor, agree, rivals, group, dict(shares))
    if len(values) == 0:
        return belief
    labels = Labels(labelled, codes, weights, folds)
    for k, chances in enumerate(at_labels):
        wrong = right[labels.outside(k)] == 0
        chances[wrong] = (1 - chances[wrong]) * of_errors[k]
    return with_order(belief, pool, description, labels, [fit.learned for fit in fits], values, at_labels)


# ---------------------------------------------------------------- P(the model is right)


@dataclass(frozen=True)
class _Fold:
    """What the labels outside one fold say about its points.

    rows  (m,) the points of the fold, sorted
    odds  by the name of an answer, (m,) log odds that the model is right
    left_out_odds  the same (n,) at the labels outside the fold, each without itself
    view  (m, C) how far labels nearby speak for each class, or None without features
    left_out  (n, C) the same for the labels outside the fold, each without itself
    """

    rows: Array
    odds: dict[str, Array]
    left_out_odds: dict[str, Array]
    view: Array | None
    left_out: Array | None

    @property
    def learned(self) -> Learned | None:
        """What labels nearby suggest; None without features."""
        return None if self.view is None or self.left_out is None else Learned(self.left_out, self.view)


def _fold_answers(
    pool: Pool,
    description: Description,
    train: Array,
    codes: Array,
    right: Array,
    weights: Array,
    inside: Array,
    also: Sequence[str],
) -> _Fold:
    rows, n_classes = np.flatnonzero(inside), len(pool.classes)
    share, share_of_others = share_right(right, weights)
    rates, rates_of_others = class_rates(pool.anchor[train], right, weights, n_classes, RECIPE.class_strength)
    answers = {"share": np.full(len(rows), log_odds(share), np.float32), "class": log_odds(rates)[pool.anchor[rows]]}
    at_labels = {"share": log_odds(share_of_others), "class": log_odds(rates_of_others)}
    view, left_out, by_labels = None, None, None
    if description.kernel is not None and len(train):
        left_out, slopes, mean = label_slopes(description.kernel[train], codes, n_classes, RECIPE.label_ridge)
        view, leads = np.empty((len(rows), n_classes), narrow(len(pool) * n_classes)), np.empty((len(rows), 2))
        for part in _chunks(len(rows)):
            predicted = description.kernel[rows[part]].astype(np.float32, copy=False) @ slopes + mean
            view[part], leads[part] = predicted, lead(predicted, pool.anchor[rows[part]])
        scale = RECIPE.label_scale
        by_labels = Block(scale * lead(left_out, pool.anchor[train]), scale * leads, penalty=RECIPE.label_penalty)
    for name, blocks in _candidates(pool, description, train, rows, by_labels).items():
        odds, at_labels[name] = logistic_log_odds(blocks, right, weights)
        answers[name] = odds.astype(np.float32)
    for name in also:
        of_others = _by_the_other_half(FURTHER[name], pool, description, train, codes, weights)
        if of_others is None:
            continue
        if (chances := FURTHER[name](pool, description, train, codes, weights, rows)) is not None:
            answers[name], at_labels[name] = log_odds(chances).astype(np.float32), log_odds(of_others)
    return _Fold(rows, answers, at_labels, view, left_out)


def _by_the_other_half(
    answer: Answer, pool: Pool, description: Description, train: Array, codes: Array, weights: Array
) -> Array | None:
    """(n,) what a further answer says at each label from the half that it is not in; None if it cannot."""
    chances = np.empty(len(train))
    for half in (0, 1):
        own = np.arange(len(train)) % 2 == half
        of_half = answer(pool, description, train[~own], codes[~own], weights[~own], train[own])
        if of_half is None:
            return None
        chances[own] = of_half
    return chances


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, CHUNK):
        yield slice(start, min(start + CHUNK, count))


def _candidates(
    pool: Pool, description: Description, train: Array, rows: Array, by_labels: Block | None
) -> dict[str, list[Block]]:
    """Blocks of columns by the name of the answer that is fitted on them."""
    candidates: dict[str, list[Block]] = {}
    width, n_classes = description.ease.shape[1], len(pool.classes)
    if width:
        # A point that looks easier is expected to be right more often until labels say otherwise.
        ease = Block(description.ease[train], description.ease[rows], penalty=RECIPE.joint_penalty, mean=1.0 / width)
        candidates["ease"] = [replace(ease, penalty=RECIPE.ease_penalty)]
        candidates["ease, stiff"] = [replace(ease, penalty=RECIPE.stiff_penalty)]
        both = [ease]
        if n_classes <= RECIPE.own_coefficients:
            own = np.eye(n_classes, dtype=np.float32)
            both.append(Block(own[pool.anchor[train]], own[pool.anchor[rows]], penalty=RECIPE.class_penalty))
            candidates["ease + class"] = list(both)
        if description.components is not None:
            leading, penalty = description.components, RECIPE.component_penalty
            components = Block(leading[train], leading[rows], penalty=penalty)
            candidates["ease + class + components"] = [*both, components]
        if by_labels is not None:
            candidates["labels + ease"] = [by_labels, ease]
    for name, odds in description.odds.items():
        candidates[name] = [Block(odds[train], odds[rows], penalty=RECIPE.odds_penalty, mean=1.0)]
    if by_labels is not None:
        candidates["labels"] = [by_labels]
    return candidates


def label_slopes(inputs: Array, codes: Array, n_classes: int, ridge: float) -> tuple[Array, Array, Array]:
    """Kernel ridge regression of labels, K = inputs inputs^T: ((n, C) each labelled point predicted without itself,
    (d, C) slopes, (C,) mean).

    With fewer features than labels it is solved in the features, else in the labels: the same numbers, and the smaller
    of d and n alone is cubed.
    """
    exact, targets = np.asarray(inputs, np.float64), np.eye(n_classes)[codes]
    n, d = exact.shape
    mean = targets.mean(0)
    if d < n:
        inverse = np.linalg.inv(exact.T @ exact + ridge * np.eye(d))
        slopes = inverse @ (exact.T @ (targets - mean))
        leverage = np.einsum("nd,nd->n", exact @ inverse, exact)
        left_out = targets - (targets - mean - exact @ slopes) / (1 - leverage)[:, None]
    else:
        inverse = np.linalg.inv(exact @ exact.T + ridge * np.eye(n))
        duals = inverse @ (targets - mean)
        slopes, left_out = exact.T @ duals, targets - duals / np.diag(inverse)[:, None]
    return left_out, slopes.astype(np.float32), mean


def lead(values: Array, predictions: Array) -> Array:
    """(n, 2) the value of the predicted class and its lead over the best rival."""
    points = np.arange(len(values))
    own = values[points, predictions]
    rivals = values.copy()
    rivals[points, predictions] = -np.inf
    return np.column_stack([own, own - rivals.max(1)])


# ---------------------------------------------------------------- which class, if the model is wrong


def _rivals(
    pool: Pool, description: Description, fits: list[_Fold], folds: Array, labelled: Array, codes: Array
) -> tuple[Array, Array, list[Array]]:
    """(rivals, group, errors): a mixture of views and of the confusions counted, each fold by the labels outside it.

    errors  for each fold (e,) the chance of the true class at each wrong answer outside it, by the other labels there

    A class that neither an answer nor a label outside the fold has shown is no rival: one that is listed and does not
    occur would else be part of every mean over classes.
    """
    n_classes, count = len(pool.classes), len(fits)
    wrong = codes != pool.anchor[labelled]
    met = [met_classes(pool, codes[folds[labelled] != k]) for k in range(count)]
    errors = [(labelled[outside], codes[outside]) for k in range(count) for outside in [wrong & (folds[labelled] != k)]]
    counted = [_confusions(pool, *of_fold, met[k]) for k, of_fold in enumerate(errors)]
    confusions = np.stack([table for table, _ in counted])
    has_view = all(fit.view is not None for fit in fits)  # with very few labels a fold may have none outside it
    if not description.rivals and not has_view:
        own = [chances for _, chances in counted]
        return confusions.reshape(count * n_classes, n_classes), folds * n_classes + pool.anchor, own

    def views(fold: int, rows: Array, learned: Array | None) -> list[Array]:
        """Each (n, C): what every source but the confusions says of the rivals at these rows."""
        sources = [np.asarray(view[rows], np.float64) for view in description.rivals]
        if has_view and learned is not None:
            squares = np.clip(np.asarray(learned, np.float64), 0.01, None) ** 2
            sources.append(without_own(squares, pool.anchor[rows]))
        return [only_met(view, met[fold]) for view in sources]

    mixed, of_errors = np.empty((len(pool), n_classes), narrow(len(pool) * n_classes)), []
    for k, fit in enumerate(fits):
        seen, truth = errors[k]
        learned = None if fit.left_out is None else fit.left_out[wrong[folds[labelled] != k]]
        at_errors = [view[np.arange(len(seen)), truth] for view in views(k, seen, learned)]
        likelihoods = np.stack([*at_errors, counted[k][1]], axis=1)
        shares = _mixture(likelihoods)
        of_errors.append(likelihoods @ shares)
        for part in _chunks(len(fit.rows)):
            rows = fit.rows[part]
            sources = [*views(k, rows, None if fit.view is None else fit.view[part]), confusions[k, pool.anchor[rows]]]
            mixed[rows] = sum(share * view for share, view in zip(shares, sources, strict=True))
    return mixed, np.arange(len(pool)), of_errors


def met_classes(pool: Pool, codes: Array) -> Array:
    """(C,) the classes that some model answers, or that these labels have shown."""
    met = np.zeros(len(pool.classes), np.bool_)
    met[codes] = True
    for answers in (pool.anchor, *(model.predictions for model in pool.models)):
        met[answers] = True
    return met


def only_met(rivals: Array, met: Array) -> Array:
    """(n, C) the rivals without those not met, rows that add up to 1; as they are where none is met."""
    if met.all():
        return rivals
    left = np.where(met, rivals, 0.0)
    total = left.sum(1, keepdims=True)
    return np.where(total > 0, left / np.maximum(total, 1e-300), rivals)


def _confusions(pool: Pool, wrong: Array, codes: Array, met: Array) -> tuple[Array, Array]:
    """((C, C) P(truth c | predicted a, wrong) from counted errors, drawn towards those of all classes and frequency;
    (e,) that of the true class of each error by the others). Classes that are not met (C,) have none."""
    n_classes, answers = len(pool.classes), pool.anchor[wrong]
    frequency = (np.bincount(pool.anchor, minlength=n_classes) + 1.0) / (len(pool) + n_classes)
    overall = np.bincount(codes, minlength=n_classes) + max(5.0, RECIPE.unseen_errors * n_classes) * frequency
    counts = np.bincount(answers * n_classes + codes, minlength=n_classes**2).astype(np.float64)
    counts, strength, total = counts.reshape(n_classes, n_classes), RECIPE.confusion_strength, float(overall.sum())
    table = counts + strength * overall / total
    np.fill_diagonal(table, 0.0)
    table = only_met(table / table.sum(1, keepdims=True), met)
    own = counts[answers, codes] - 1 + strength * (overall[codes] - 1) / (total - 1)
    of_met = float(overall[met].sum()) - 1 - overall[answers] * met[answers]
    beside = counts.sum(1)[answers] - 1 + strength * of_met / (total - 1)
    return np.asarray(table), np.clip(own / np.maximum(beside, 1e-12), 1e-6, 1.0)


def _mixture(likelihoods: Array, steps: int = 20) -> Array:
    """(J,) mixing shares by expectation-maximisation on the errors seen, with one pseudo-error for each source.

    likelihoods (errors, J): what each source gave to the true class
    """
    shares = np.full(likelihoods.shape[1], 1.0 / likelihoods.shape[1])
    for _ in range(steps):
        parts = likelihoods * shares + 1e-12
        shares = (parts / parts.sum(1, keepdims=True)).sum(0) + 1.0
        shares /= shares.sum()
    return shares
