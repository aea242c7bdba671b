"""Every kind of metric by its name, and how a kind with what stands in its brackets becomes a metric."""

import re
from dataclasses import replace

import numpy as np

from altmas.errors import MetricError
from altmas.metrics import formulas
from altmas.metrics.formulas import (
    OfClass,
    OfMargins,
    at_threshold,
    confusion,
    of_class,
    of_margins,
    of_truth,
    weighted_kappa,
)
from altmas.metrics.metric import Metric, answers_of
from altmas.metrics.scores import (
    OfScores,
    average_precision,
    brier_losses,
    log_losses,
    of_calibration,
    of_losses,
    of_one_class,
    over_classes,
    roc_auc,
)
from altmas.pool import Pool
from altmas.pool.values import numbers_of
from altmas.suggest import listing, near
from altmas.types import Array

WHOLE: dict[str, tuple[OfMargins, tuple[float, float]]] = {
    "accuracy": (formulas.accuracy, (0.0, 1.0)),
    "error": (formulas.error, (0.0, 1.0)),
    "balanced_accuracy": (formulas.macro_recall, (0.0, 1.0)),
    "macro_precision": (formulas.macro_precision, (0.0, 1.0)),
    "macro_recall": (formulas.macro_recall, (0.0, 1.0)),
    "macro_f1": (formulas.macro_f1, (0.0, 1.0)),
    "kappa": (formulas.kappa, (-1.0, 1.0)),
    "mcc": (formulas.mcc, (-1.0, 1.0)),
}
"""Metrics of the whole table, by name."""

PER_CLASS: dict[str, OfClass] = {
    "precision": formulas.precision,
    "recall": formulas.recall,
    "specificity": formulas.specificity,
    "npv": formulas.npv,
    "f1": formulas.f1,
    "jaccard": formulas.jaccard,
}
"""Metrics of one class, by name."""

AREAS: dict[str, OfScores] = {"roc_auc": roc_auc, "average_precision": average_precision}
"""Metrics of the scores of one class, by name."""

LOSSES = ("log_loss", "brier", "calibration_error")
"""Metrics of all scores, by name."""

OF_TRUTH = ("share", "mean")
"""Metrics of the truth alone, by name."""

SYNONYMS = {
    "sensitivity": "recall",
    "tpr": "recall",
    "ppv": "precision",
    "tnr": "specificity",
    "prevalence": "share",
    "rate": "share",
    "f1_macro": "macro_f1",
    "precision_macro": "macro_precision",
    "recall_macro": "macro_recall",
    "matthews_corrcoef": "mcc",
    "cohen_kappa": "kappa",
}
"""Other names of a metric, among them scikit-learn's. A metric keeps the name that it was asked by."""

SYNONYM = re.compile(rf"\b({'|'.join(SYNONYMS)})(?=\[|@| -|$)")

SETS = ("per_class", "paper")

KNOWN = (*WHOLE, "weighted_kappa", *PER_CLASS, "fbeta", "confusion", *AREAS, *LOSSES, *SETS)
"""Kinds of metrics that are about a model."""

RELATION = re.compile(r"\s*(>=|<=|>|<)\s*([-+.\deE]+)\s*")

Where = tuple[str, str] | None
"""Name and value of the slice that a metric is restricted to."""


def known_names() -> list[str]:
    """Every metric name, as it is written in messages and help."""
    synonyms = [kind for kind, means in SYNONYMS.items() if means in PER_CLASS]
    per_class = [f"{kind}[class]" for kind in (*PER_CLASS, *synonyms)]
    special = ["fbeta[class,beta]", "confusion[predicted,true]", "weighted_kappa[linear]", "cost", *SETS]
    of_scores = [f"{kind}[class]" for kind in AREAS]
    composed = ["recall[class,threshold]", "share[>=number]", "A - B", "gap[metric,slice]"]
    of_truth_alone = ["share[class]", "mean", "pass_rate"]
    return [*WHOLE, "weighted_kappa", *per_class, *special, *AREAS, *of_scores, *LOSSES, *of_truth_alone, *composed]


def plain_name(name: str) -> str:
    """A metric's name without synonyms: "sensitivity[cat]" and "recall[cat]" have the same."""
    return SYNONYM.sub(lambda match: SYNONYMS[match[1]], name)


def metrics_of_model(
    metric_name: str, kind: str, arguments: str | None, where: Where, pool: Pool, model: str | None
) -> list[Metric]:
    """The metrics that a kind and what stands in its brackets mean for one model: several for a set."""
    predicted = _predicted(pool, where, model)
    if kind in SETS and arguments is None:
        return _named_set(kind, pool, predicted)
    metric = _single_metric(metric_name, kind, arguments, pool)
    if metric.of_scores:
        _refuse_without_scores(metric_name, pool, model)
    _refuse_never_defined(metric_name, replace(metric, model=model), predicted, where, pool)
    return [metric]


def _predicted(pool: Pool, where: Where, model: str | None = None) -> Array:
    """(C,) how often each class is predicted inside the slice."""
    answers = answers_of(pool, model)
    inside = answers if where is None else answers[pool.slices[where[0]] == where[1]]
    return np.bincount(inside, minlength=len(pool.classes))


def _refuse_without_scores(metric_name: str, pool: Pool, model: str | None) -> None:
    scores = pool.scores if model is None else pool.model(model).scores
    if scores is None:
        whose = "the model" if model is None else f"model {model!r}"
        raise MetricError(
            f"metric {metric_name!r} needs scores, and {whose} has none in this pool; pass scores=... to the pool "
            "(--scores)"
        )


# ---------------------------------------------------------------- the truth alone


def metric_of_truth(metric_name: str, kind: str, arguments: str | None, pool: Pool) -> Metric:
    """`share[...]` or `mean`, by what stands in its brackets."""
    if kind == "mean":
        return _mean_metric(metric_name, arguments, pool)
    if arguments is None:
        raise MetricError(
            f"metric {metric_name!r} needs a class, e.g. 'share[{pool.classes[0]}]'; classes are "
            f"{listing(pool.classes)}"
        )
    relation, values = RELATION.fullmatch(arguments), ()
    if relation is None or _class_named(arguments, pool) is not None:
        codes = [_class_code(metric_name, arguments, pool)]
        name = f"share[{pool.classes[codes[0]]}]"
    else:
        codes, limit = _classes_beyond(metric_name, relation, pool)
        name, values = f"share[{relation[1]}{limit:.15g}]", tuple(_class_values(metric_name, pool).tolist())
    counted = np.isin(np.arange(len(pool.classes)), codes).astype(np.float64)
    return of_truth(name, counted, kind="share", classes=tuple(codes), class_values=values)


def _classes_beyond(metric_name: str, relation: re.Match[str], pool: Pool) -> tuple[list[int], float]:
    """Codes of the classes whose value lies there; MetricError if all or none do."""
    try:
        limit = float(relation[2])
    except ValueError:
        raise MetricError(f"metric {metric_name!r}: {relation[2]!r} is not a number; write e.g. 'share[>=4]'") from None
    values = _class_values(metric_name, pool)
    holds = {">=": np.greater_equal, "<=": np.less_equal, ">": np.greater, "<": np.less}[relation[1]](values, limit)
    if holds.all() or not holds.any():
        raise MetricError(
            f"metric {metric_name!r} is {float(holds.all()):g} whatever the labels are: the classes have the values "
            f"{listing(values.tolist())}"
        )
    return np.flatnonzero(holds).tolist(), limit


def _mean_metric(metric_name: str, arguments: str | None, pool: Pool) -> Metric:
    """`mean`, with the values of the classes, or `mean[bad=0,ok=1,good=2]`."""
    if arguments is None:
        numbers = _class_values(metric_name, pool)
        return of_truth("mean", numbers, kind="mean", class_values=tuple(numbers.tolist()))
    values: dict[int, float] = {}
    for piece in arguments.split(","):
        name, equals, number = piece.rpartition("=")
        try:
            value = float(number) if equals else np.nan
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            raise MetricError(
                f"metric {metric_name!r}: write the value of every class, e.g. 'mean[{pool.classes[0]}=0,"
                f"{pool.classes[1]}=1]', got {piece.strip()!r}"
            )
        values[_class_code(metric_name, name, pool)] = value
    missing = [pool.classes[code] for code in range(len(pool.classes)) if code not in values]
    if missing:
        raise MetricError(f"metric {metric_name!r}: no value for {listing(missing)}; every class needs one")
    ordered = [values[code] for code in range(len(pool.classes))]
    written = ",".join(f"{pool.classes[code]}={value:.15g}" for code, value in enumerate(ordered))
    return of_truth(f"mean[{written}]", ordered, kind="mean", class_values=tuple(ordered))


def _class_values(metric_name: str, pool: Pool) -> Array:
    """(C,) the values of the classes, or the numbers that their names are; MetricError if they have none."""
    values = numbers_of(pool.classes, pool.values)
    if values is None:
        example = ",".join(f"{name}={number}" for number, name in enumerate(pool.classes))
        remedy = f"give each a value, e.g. 'mean[{example}]', or the pool values=... (--value {pool.classes[0]}=0)"
        if metric_name.startswith("share"):
            remedy = f"ask for one of them, e.g. 'share[{pool.classes[0]}]'"
        raise MetricError(f"metric {metric_name!r}: the classes {listing(pool.classes)} are not numbers; {remedy}")
    return np.array(values)


# ---------------------------------------------------------------- of a model's answers and scores


def _named_set(name: str, pool: Pool, predicted: Array) -> list[Metric]:
    """`per_class`: every precision and recall; `paper`: accuracy as well (21 metrics when C = 10)."""
    codes = range(len(pool.classes))
    members = [_class_metric("precision", k, pool) for k in codes if predicted[k]]
    members += [_class_metric("recall", k, pool) for k in codes]
    return [_whole_metric("accuracy"), *members] if name == "paper" else members


def _whole_metric(kind: str) -> Metric:
    of, bounds = WHOLE[kind]
    return of_margins(kind, of, bounds=bounds, kind=kind)


def _class_metric(kind: str, k: int, pool: Pool) -> Metric:
    return of_class(f"{kind}[{pool.classes[k]}]", PER_CLASS[kind], k, kind=kind)


def _single_metric(metric_name: str, kind: str, arguments: str | None, pool: Pool) -> Metric:
    n_classes = len(pool.classes)
    if kind in WHOLE and arguments is None:
        return _whole_metric(kind)
    if kind == "weighted_kappa":
        return _weighted_kappa_metric(metric_name, arguments, pool)
    if kind in AREAS:
        return _area_metric(metric_name, kind, arguments, pool)
    if kind in LOSSES and arguments is None:
        return _loss_metric(kind, n_classes)
    if kind in PER_CLASS and arguments is not None:
        return _class_or_threshold_metric(metric_name, kind, arguments, pool)
    if kind == "fbeta" and arguments is not None and "," in arguments:
        name, _, number = arguments.rpartition(",")
        return _fbeta_metric(metric_name, _class_code(metric_name, name, pool), number, pool)
    if kind == "confusion" and arguments is not None:
        a, c = _two_classes(metric_name, arguments, pool)
        return confusion(f"confusion[{pool.classes[a]},{pool.classes[c]}]", a, c, n_classes)
    raise MetricError(not_understood(metric_name, kind, arguments, pool))


def _weighted_kappa_metric(metric_name: str, arguments: str | None, pool: Pool) -> Metric:
    """Distances are those of the classes' values, or of their positions in the class list where they have none."""
    powers = {"linear": 1, "quadratic": 2}
    kind = (arguments or "quadratic").strip().lower()
    if kind not in powers:
        raise MetricError(f"metric {metric_name!r}: write 'weighted_kappa' (quadratic) or 'weighted_kappa[linear]'")
    values = tuple(map(float, range(len(pool.classes)))) if pool.values is None else pool.values
    return weighted_kappa("weighted_kappa" if kind == "quadratic" else f"weighted_kappa[{kind}]", powers[kind], values)


def _area_metric(metric_name: str, kind: str, arguments: str | None, pool: Pool) -> Metric:
    """Of the class named; of the second of two classes, or the mean over all, where none is."""
    if arguments is not None:
        k = _class_code(metric_name, arguments, pool)
        return of_one_class(f"{kind}[{pool.classes[k]}]", kind, AREAS[kind], k)
    if len(pool.classes) == 2:
        return of_one_class(kind, kind, AREAS[kind], 1)
    return over_classes(kind, f"macro_{kind}", AREAS[kind])


def _loss_metric(kind: str, n_classes: int) -> Metric:
    if kind == "log_loss":
        return of_losses(kind, kind, log_losses, np.inf)
    if kind == "brier":
        return of_losses(kind, kind, brier_losses, 1.0 if n_classes == 2 else 2.0)
    return of_calibration(kind)


def _class_or_threshold_metric(metric_name: str, kind: str, arguments: str, pool: Pool) -> Metric:
    """`recall[cat]`, or `recall[cat,0.3]`; class names may hold commas themselves."""
    name, comma, number = arguments.rpartition(",")
    if not comma or _class_named(arguments, pool) is not None or _class_named(name, pool) is None:
        return _class_metric(kind, _class_code(metric_name, arguments, pool), pool)
    k = _class_code(metric_name, name, pool)
    try:
        threshold = float(number)
    except ValueError:
        threshold = np.nan
    if not 0 <= threshold <= 1:
        raise MetricError(
            f"metric {metric_name!r}: {number.strip()!r} is no threshold of a score; expected a number from 0 to 1, "
            f"e.g. '{kind}[{pool.classes[k]},0.3]'"
        )
    written = f"{kind}[{pool.classes[k]},{threshold:.15g}]"
    return at_threshold(written, PER_CLASS[kind], k, threshold, len(pool.classes), kind=kind)


def not_understood(metric_name: str, kind: str, arguments: str | None, pool: Pool) -> str:
    """What is wrong with a name, and how to write it."""
    example = {"fbeta": f"fbeta[{pool.classes[0]},2]", "confusion": f"confusion[{pool.classes[0]},{pool.classes[1]}]"}
    if kind in (*PER_CLASS, *example) and arguments is None:
        written = example.get(kind, f"{kind}[{pool.classes[0]}]")
        return f"metric {metric_name!r} needs a class, e.g. '{written}'; classes are {listing(pool.classes)}"
    if kind in (*WHOLE, *SETS, *LOSSES):
        return f"metric {metric_name!r}: {kind} takes no class; write '{kind}'"
    if kind == "gap":
        return f"metric {metric_name!r}: write a metric and a slice, e.g. 'gap[accuracy, {a_slice(pool)}]'"
    if kind == "pass_rate":
        return f"metric {metric_name!r}: write 'pass_rate', or 'share[{pool.classes[0]}]' for another class"
    if kind == "cost":
        return "metric 'cost' needs a matrix: pass ('cost', matrix[predicted, true]) as the metric"
    if kind == "fbeta":
        return f"metric {metric_name!r}: write the class and beta, e.g. '{example[kind]}'"
    hint = near(kind, [*KNOWN, *SYNONYMS, *OF_TRUTH, "cost", "gap", "pass_rate"])
    start = metric_name.lower().find(f"{kind}[")
    if hint and start >= 0:  # the whole name, with its model, class and slice
        kind_meant = hint.split("'")[1]
        hint = f"; did you mean {metric_name[:start] + kind_meant + metric_name[start + len(kind) :]!r}?"
    return (
        f"metric {metric_name!r} does not exist{hint or ';'} known metrics: {', '.join(known_names())}, or any callable"
    )


def _fbeta_metric(metric_name: str, k: int, number: str, pool: Pool) -> Metric:
    try:
        beta = float(number)
    except ValueError:
        beta = np.nan
    if not (np.isfinite(beta) and beta > 0):
        raise MetricError(f"metric {metric_name!r}: beta must be a positive number, got {number.strip()!r}")

    def of(k: int, t: Array, r: Array, s: Array) -> Array:
        return formulas.fbeta(k, beta, t, r, s)

    return of_class(f"fbeta[{pool.classes[k]},{beta:.15g}]", of, k, kind="fbeta", miss_weight=beta**2)


def _class_named(name: str, pool: Pool) -> int | None:
    """The code of the class with this name, spaces around it included, or else without them; None if there is none."""
    code = pool.find_class(name)
    return pool.find_class(name.strip()) if code is None else code


def _class_code(metric_name: str, name: str, pool: Pool) -> int:
    code = _class_named(name, pool)
    if code is None:
        raise MetricError(
            f"metric {metric_name!r}: {name.strip()!r} is not a class of this pool (expected one of "
            f"{listing(pool.classes)}){near(name.strip(), pool.classes)}"
        )
    return code


def _two_classes(metric_name: str, arguments: str, pool: Pool) -> tuple[int, int]:
    """Predicted and true class of `confusion[a,c]`; class names may hold commas themselves."""
    pieces = arguments.split(",")
    readings = [(",".join(pieces[:cut]), ",".join(pieces[cut:])) for cut in range(1, len(pieces))]
    pairs = []
    for a, c in readings:
        try:
            pairs.append((_class_code(metric_name, a, pool), _class_code(metric_name, c, pool)))
        except MetricError:
            if len(readings) == 1:
                raise
    if len(pairs) == 1:
        return pairs[0]
    if pairs:
        raise MetricError(
            f"metric {metric_name!r} can be read in {len(pairs)} ways, as class names hold commas; rename one"
        )
    raise MetricError(
        f"metric {metric_name!r}: write two classes, e.g. 'confusion[{pool.classes[0]},{pool.classes[1]}]'"
    )


def _refuse_never_defined(metric_name: str, metric: Metric, predicted: Array, where: Where, pool: Pool) -> None:
    """MetricError if the model's predictions alone make the metric undefined, whatever the labels are (Z1)."""
    inside = " of this slice" if predicted.sum() < len(pool) else ""
    name = pool.classes[metric.classes[0]] if metric.classes else None
    reached = _reached(metric, where, pool) if metric.threshold is not None else None
    reason = None
    if metric.kind == "precision" and (predicted[metric.classes[0]] if reached is None else reached.sum()) == 0:
        reason = f"the model predicts {name!r} for no point{inside}; ask for 'recall[{name}]' instead"
    if metric.kind == "npv" and (predicted[metric.classes[0]] == predicted.sum() if reached is None else reached.all()):
        reason = f"the model predicts {name!r} for every point{inside}; ask for 'precision[{name}]' instead"
    if metric.kind == "mcc" and np.count_nonzero(predicted) == 1:
        reason = f"the model predicts the same class for every point{inside}; ask for 'accuracy' instead"
    if reason and reached is not None:
        reason = (
            f"the score of {name!r} is at least {metric.threshold:g} for {'every' if reached.all() else 'no'} point"
        )
        reason += f"{inside}; choose another threshold"
    if reason:
        raise MetricError(f"metric {metric_name!r} can never be defined: {reason}")


def _reached(metric: Metric, where: Where, pool: Pool) -> Array:
    """Whether each point of the slice is answered with the metric's class."""
    answered = metric.own_points(pool)
    assert answered is not None
    return answered if where is None else answered[pool.slices[where[0]] == where[1]]


def a_slice(pool: Pool) -> str:
    """The name of a slice, for examples."""
    return next(iter(pool.slices), "slice")
