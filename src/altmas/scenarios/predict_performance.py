"""How good is the model on data without any label? After Schelter et al. 2020 (docs/other-questions.md C.9).

Labelled source data is corrupted in many ways; how the distribution of the model's outputs changes and how its metrics
change with it is learned, and applied to the outputs on the target. A shift that no corruption resembles, or one that
changes labels but not outputs, is not seen: the estimates are biased then, and the intervals do not know.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from altmas.errors import PlanError, PoolError
from altmas.metrics import Metric, MetricLike, metric_set, table_of
from altmas.pool import Pool
from altmas.progress import Bar, progress_bar
from altmas.scenarios.corruptions import KINDS, SHARES, Corruption, kind_of, mixed
from altmas.task import DEFAULT_CONFIDENCE, DEFAULT_METRICS
from altmas.types import Array

Model = Callable[[Any], ArrayLike]
"""Inputs -> (n, C) scores, or (n,) class names."""

PERCENTILES = np.arange(0, 101, 5)
TREES = (5, 10, 15)
FOLDS = 3


@dataclass(frozen=True)
class Prediction:
    """One metric on the target, predicted without labels.

    low, high  the prediction and the spread of cross-validated residuals on corrupted source data
    clean      the metric on the source as it is
    """

    metric: str
    value: float
    low: float
    high: float
    clean: float

    def __str__(self) -> str:
        return f"{self.metric:<24} {self.value:.4f}  [{self.low:.4f}, {self.high:.4f}]  source {self.clean:.4f}"


@dataclass(frozen=True)
class PredictedPerformance:
    """Every metric on the target, and whether the first of them has probably dropped too far.

    alarm      the drop is more likely above the threshold than not
    all_well   estimated probability that the first metric dropped by at most the threshold, relative to the source
    """

    predictions: tuple[Prediction, ...]
    alarm: bool
    all_well: float

    def __getitem__(self, metric: str) -> Prediction:
        return {prediction.metric: prediction for prediction in self.predictions}[metric]

    def __str__(self) -> str:
        verdict = "ALARM" if self.alarm else "no alarm"
        return "\n".join([*map(str, self.predictions), f"{verdict} (all well with probability {self.all_well:.2f})"])


def predict_performance(
    model: Model,
    source: Any,
    labels: ArrayLike,
    target: Any,
    *,
    classes: Sequence[str | int] | None = None,
    metrics: MetricLike | Iterable[MetricLike] = DEFAULT_METRICS,
    corruptions: Sequence[Corruption] | None = None,
    repeats: int = 10,
    resample: bool = True,
    threshold: float = 0.05,
    confidence: float = DEFAULT_CONFIDENCE,
    seed: int = 0,
    progress: bool = True,
) -> PredictedPerformance:
    """The metrics of the model on the target without a label of it, and an alarm.

    model        inputs -> (n, C) scores; class names are accepted as well, which tells much less
    source       labelled data as the model was made for, but not its training set: a table (n, D), texts, or images
    target       data of the same kind without labels
    classes      names of the score columns, in their order; by default those in `labels`, sorted
    corruptions  functions (data, share, rng) -> data; by default those of corruptions.py for this kind of data
    repeats      copies for each corruption and share of affected rows
    resample     corrupt a random half of the source each time and compare it with the other half, so that it is learned
                 how far sound data strays (ours); False: the whole source each time, as published, after which any
                 other sample looks different from it and the alarm is easily raised
    threshold    relative drop of the first metric that raises the alarm

    Raises PlanError, PoolError or MetricError before anything is corrupted.
    """
    learned = PerformancePredictor.fit(
        model,
        source,
        labels,
        classes=classes,
        metrics=metrics,
        corruptions=corruptions,
        repeats=repeats,
        resample=resample,
        threshold=threshold,
        confidence=confidence,
        seed=seed,
        progress=progress,
    )
    return learned(target)


@dataclass(frozen=True, eq=False)
class PerformancePredictor:
    """What was learned on corrupted copies of the source; call it with as many targets as there are."""

    model: Model
    outputs: "Outputs"
    metrics: tuple[Metric, ...]
    clean: Array
    regressors: tuple["Regressor", ...]
    validator: "Validator"

    @classmethod
    def fit(
        cls,
        model: Model,
        source: Any,
        labels: ArrayLike,
        *,
        classes: Sequence[str | int] | None = None,
        metrics: MetricLike | Iterable[MetricLike] = DEFAULT_METRICS,
        corruptions: Sequence[Corruption] | None = None,
        repeats: int = 10,
        resample: bool = True,
        threshold: float = 0.05,
        confidence: float = DEFAULT_CONFIDENCE,
        seed: int = 0,
        progress: bool = True,
    ) -> "PerformancePredictor":
        """The options are those of predict_performance."""
        _refuse_out_of_range(repeats, threshold, confidence)
        chosen = list(KINDS[kind_of(source)] if corruptions is None else corruptions)
        if not chosen:
            raise PlanError("corruptions is empty; expected at least one function (data, share, rng) -> data")
        outputs = Outputs.of(model(source), np.asarray(labels), classes)
        asked_metrics = metric_set(metrics, outputs.pool)
        if len(chosen) > 1:
            chosen.append(mixed(tuple(chosen)))
        rng = np.random.default_rng(seed)
        cells = [(corrupt, share) for corrupt in chosen for share in SHARES for _ in range(repeats)]
        with progress_bar("corrupting", len(cells), shown=progress) as bar:
            copies = [_copy(model, source, outputs, asked_metrics, cell, resample, rng, bar) for cell in cells]
        rows, checks, values, drops = (np.array(part) for part in zip(*copies, strict=True))
        regressors = tuple(Regressor.fit(rows, column, confidence, seed) for column in values.T)
        clean = outputs.scores(outputs.on_source, outputs.truth, asked_metrics)
        return cls(model, outputs, asked_metrics, clean, regressors, Validator.fit(checks, drops <= threshold, seed))

    def __call__(self, target: Any) -> PredictedPerformance:
        """(C32) for a target: its inputs, without labels."""
        return self.of_outputs(self.model(target))

    def of_outputs(self, outputs: ArrayLike) -> PredictedPerformance:
        """The same from what the model said on the target."""
        seen = self.outputs.seen(outputs)
        row = features(seen)
        predictions = [
            Prediction(metric.name, *regressor(row, metric.bounds), float(clean))
            for metric, regressor, clean in zip(self.metrics, self.regressors, self.clean, strict=True)
        ]
        well = self.validator(checks_of(seen, self.outputs.on_source))
        return PredictedPerformance(tuple(predictions), well < 0.5, well)


def _copy(
    model: Model,
    source: Any,
    outputs: "Outputs",
    metrics: Sequence[Metric],
    cell: tuple[Corruption, float],
    resample: bool,
    rng: np.random.Generator,
    bar: Bar,
) -> tuple[Array, Array, Array, float]:
    """(C31) of one corrupted copy: features, checks, metrics, and the relative drop of the first metric."""
    corrupt, share = cell
    order, n = rng.permutation(outputs.size), outputs.size
    taken, rest = (np.sort(order[: n // 2]), np.sort(order[n // 2 :])) if resample else (np.arange(n), np.arange(n))
    data = rows_of(source, taken)
    seen = outputs.seen(model(corrupt(data, share, rng) if share else data), len(taken))
    truth = outputs.truth[taken]
    values = outputs.scores(seen, truth, metrics)
    clean = outputs.scores(outputs.on_source.at(taken), truth, metrics[:1])[0]
    bar.advance(1)
    return features(seen), checks_of(seen, outputs.on_source.at(rest)), values, relative_drop(values[0], clean)


def rows_of(data: Any, rows: Array) -> Any:
    """These rows of an array, a list or a frame."""
    if isinstance(data, list | tuple):
        return [data[row] for row in rows.tolist()]
    return data.iloc[rows] if hasattr(data, "iloc") else data[rows]


def _refuse_out_of_range(repeats: int, threshold: float, confidence: float) -> None:
    for option, value, accepted, meaning in (
        ("repeats", repeats, repeats >= 1, "a number of at least 1"),
        ("threshold", threshold, 0 <= threshold < 1, "a share from 0 to below 1"),
        ("confidence", confidence, 0 < confidence < 1, "a share between 0 and 1"),
    ):
        if not accepted:
            raise PlanError(f"{option} {value!r} is out of range; expected {meaning}; nothing was computed")


def relative_drop(score: float, clean: float) -> float:
    """1 - score / clean; what is undefined has dropped entirely, and nothing drops from 0."""
    if not clean > 0:
        return 0.0
    return 1.0 if np.isnan(score) else 1 - score / clean


# ---------------------------------------------------------------- what the model says


@dataclass(frozen=True, eq=False)
class Seen:
    """What the model said about some data: predicted codes (n,), and scores (n, C) or None for hard labels."""

    codes: Array
    scores: Array | None
    n_classes: int

    def at(self, rows: Array) -> "Seen":
        """What it said about some of these rows."""
        return Seen(self.codes[rows], None if self.scores is None else self.scores[rows], self.n_classes)

    @property
    def columns(self) -> Array:
        """(n, C) the scores, or the predictions one-hot."""
        return np.eye(self.n_classes)[self.codes] if self.scores is None else self.scores


@dataclass(frozen=True, eq=False)
class Outputs:
    """The model's outputs on the source with its true codes, in which later outputs are read and compared."""

    pool: Pool
    truth: Array
    on_source: Seen

    @classmethod
    def of(cls, outputs: ArrayLike, labels: Array, classes: Sequence[str | int] | None) -> "Outputs":
        answers = np.asarray(outputs)
        names: list[Any] = np.unique(labels if answers.ndim == 2 else np.append(labels, answers)).tolist()
        listed = names if classes is None else list(classes)
        if answers.ndim == 2 and answers.shape[1] != len(listed):
            raise PoolError(
                f"the model gives {answers.shape[1]} scores for each input, and there are {len(listed)} classes; "
                "pass classes=[...] in the order of its columns"
            )
        if len(answers) != len(labels):
            raise PoolError(
                f"labels has {len(labels)} entries, the model answered for {len(answers)} inputs of the source"
            )
        hard = answers if answers.ndim == 1 else np.array(listed, object)[answers.argmax(1)]
        pool = Pool(None, hard, scores=answers if answers.ndim == 2 else None, classes=listed)
        on_source = Seen(pool.predictions, pool.scores, len(listed))
        return cls(pool, pool.codes(labels, what="labels"), on_source)

    @property
    def size(self) -> int:
        return len(self.truth)

    def seen(self, outputs: ArrayLike, size: int | None = None) -> Seen:
        """Other outputs of the same model; PoolError if they are of another shape."""
        answers = np.asarray(outputs)
        shape = (len(answers), *(() if self.on_source.scores is None else (self.on_source.n_classes,)))
        if answers.shape != shape or len(answers) == 0 or (size is not None and len(answers) != size):
            expected = (size or "n", *shape[1:])
            raise PoolError(
                f"the model gave shape {answers.shape}; on the source it gave {expected} for each of its inputs"
            )
        if self.on_source.scores is None:
            return Seen(self.pool.codes(answers, what="outputs"), None, self.on_source.n_classes)
        if not np.isfinite(answers).all():
            raise PoolError(
                "the model gave scores that are not finite numbers; leave out the corruption that does this"
            )
        return Seen(answers.argmax(1), answers.astype(np.float64), self.on_source.n_classes)

    def scores(self, seen: Seen, truth: Array, metrics: Sequence[Metric]) -> Array:
        """The metrics of outputs on (corrupted) source data."""
        table = table_of(seen.codes, truth, seen.n_classes)
        return np.array([float(metric.of_table(table)) for metric in metrics])


def features(seen: Seen) -> Array:
    """(C30) percentiles 0, 5, ..., 100 of each class's scores, (21 C,); shares of the predictions without scores."""
    if seen.scores is None:
        return np.bincount(seen.codes, minlength=seen.n_classes) / len(seen.codes)
    return np.asarray(np.percentile(seen.scores, PERCENTILES, axis=0).T.ravel())


def checks_of(seen: Seen, sound: Seen) -> Array:
    """What the validator looks at: 101 percentiles of the first class, p-values of tests against sound outputs.

    A Kolmogorov-Smirnov test of each class's scores, and a chi-squared test of the PREDICTED counts of both.
    """
    from scipy.stats import chi2_contingency, ks_2samp

    first = np.percentile(seen.columns[:, 0], np.arange(101))
    pairs = zip(seen.columns.T, sound.columns.T, strict=True)
    shifts = [ks_2samp(now, then, method="asymp").pvalue for now, then in pairs]
    counts = np.array([np.bincount(outputs.codes, minlength=outputs.n_classes) for outputs in (seen, sound)])
    used = counts[:, counts.sum(0) > 0]
    moved = chi2_contingency(used).pvalue if used.shape[1] > 1 else 1.0
    return np.array([*first, *shifts, moved])


# ---------------------------------------------------------------- what is learned


@dataclass(frozen=True, eq=False)
class Regressor:
    """A random forest from features to a metric, and the quantiles of its cross-validated residuals."""

    forest: Any
    residuals: tuple[float, float]

    @classmethod
    def fit(cls, rows: Array, values: Array, confidence: float, seed: int) -> "Regressor":
        """The forest of 5, 10 or 15 trees with the smallest absolute error; copies with an undefined metric are out."""
        from sklearn.ensemble import RandomForestRegressor
        from sklearn.model_selection import KFold, cross_val_predict

        defined = ~np.isnan(values)
        rows, values = rows[defined], values[defined]
        if len(values) < 2 * FOLDS:
            raise PlanError(f"only {len(values)} copies define a metric, which is too few to learn from; raise repeats")

        def forest(trees: int) -> Any:
            return RandomForestRegressor(trees, criterion="absolute_error", max_features=1 / 3, random_state=seed)

        folds = KFold(FOLDS, shuffle=True, random_state=seed)
        errors = [values - cross_val_predict(forest(trees), rows, values, cv=folds) for trees in TREES]
        best = int(np.argmin([np.abs(error).mean() for error in errors]))
        low, high = np.quantile(errors[best], [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
        return cls(forest(TREES[best]).fit(rows, values), (low, high))

    def __call__(self, row: Array, bounds: tuple[float, float]) -> tuple[float, float, float]:
        """(value, low, high)."""
        value = float(self.forest.predict(row[None])[0])
        low, high = (value + residual for residual in self.residuals)
        return value, max(bounds[0], min(low, value)), min(bounds[1], max(high, value))


@dataclass(frozen=True, eq=False)
class Validator:
    """P(the metric dropped by at most the threshold) by gradient boosting; a constant if all copies agree."""

    boosting: Any
    constant: float

    @classmethod
    def fit(cls, checks: Array, well: Array, seed: int) -> "Validator":
        from sklearn.ensemble import GradientBoostingClassifier

        if well.all() or not well.any():
            return cls(None, float(well[0]))
        boosting = GradientBoostingClassifier(n_estimators=50, max_features=1 / 3, random_state=seed)
        return cls(boosting.fit(checks, well), float("nan"))

    def __call__(self, checks: Array) -> float:
        if self.boosting is None:
            return self.constant
        return float(self.boosting.predict_proba(checks[None])[0, 1])
