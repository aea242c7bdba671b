"""What there is to say about a metric besides its value: in words, and what methods and reports need to know of it.

One table by kind. A metric without a row, such as a function of the user's, is treated as one about which nothing is
known: no method or report has to be changed for a new one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from altmas.types import Array

Proportion = Callable[[tuple[int, ...], Array, Array], tuple[Array, Array]]
"""(classes, predicted, true) -> (counted above the line, counted below it), each true or false for every point."""


@dataclass(frozen=True)
class About:
    """One row of the table.

    meaning          in words; {0} and {1} stand for the classes in the metric's name
    lower_is_better  whether a smaller value is the better one
    over_classes     whether it is a mean over classes
    over_members     whether it is a mean over the points of its class
    against_chance   whether it compares with what the frequencies of the classes alone would give
    right_or_wrong   whether it looks at nothing but whether the model is right
    proportion       what a share of points counts; None for any other metric
    rises_with       what the share counts that it rises with, if it is no share of points itself
    trials_known     whether the predictions alone tell how many points stand below the line
    given            whether it is a function of the user's
    unit             what it is measured in: differences are taken of metrics in the same unit only
    paid_in          the metric that keeping this one by a threshold costs; empty if no threshold is chosen for it
    falls            whether it falls as the threshold of a score rises
    caution          what a reader of its interval must know, or an empty string
    fitted           whether the weight of the belief in it is fitted to labels: few points that no belief foresees
                     decide it
    """

    meaning: str
    lower_is_better: bool = False
    over_classes: bool = False
    over_members: bool = False
    against_chance: bool = False
    right_or_wrong: bool = False
    proportion: Proportion | None = None
    rises_with: Proportion | None = None
    trials_known: bool = False
    given: bool = False
    unit: str = "a share"
    paid_in: str = ""
    falls: bool = False
    caution: str = ""
    fitted: bool = False


def _accuracy(classes: tuple[int, ...], a: Array, c: Array) -> tuple[Array, Array]:
    return a == c, a == a


def _error(classes: tuple[int, ...], a: Array, c: Array) -> tuple[Array, Array]:
    return a != c, a == a


def _precision(classes: tuple[int, ...], a: Array, c: Array) -> tuple[Array, Array]:
    return (a == classes[0]) & (c == classes[0]), a == classes[0]


def _recall(classes: tuple[int, ...], a: Array, c: Array) -> tuple[Array, Array]:
    return (a == classes[0]) & (c == classes[0]), c == classes[0]


def _specificity(classes: tuple[int, ...], a: Array, c: Array) -> tuple[Array, Array]:
    return (a != classes[0]) & (c != classes[0]), c != classes[0]


def _npv(classes: tuple[int, ...], a: Array, c: Array) -> tuple[Array, Array]:
    return (a != classes[0]) & (c != classes[0]), a != classes[0]


def _jaccard(classes: tuple[int, ...], a: Array, c: Array) -> tuple[Array, Array]:
    return (a == classes[0]) & (c == classes[0]), (a == classes[0]) | (c == classes[0])


def _confusion(classes: tuple[int, ...], a: Array, c: Array) -> tuple[Array, Array]:
    return (a == classes[0]) & (c == classes[1]), a == a


def _share(classes: tuple[int, ...], a: Array, c: Array) -> tuple[Array, Array]:
    return np.isin(c, classes), a == a


NEAR_ZERO = "an estimate near 0 is too high: errors of either sign in a bin add up"

ABOUT = {
    "accuracy": About(
        "share of the points on which the model is right",
        right_or_wrong=True,
        proportion=_accuracy,
        trials_known=True,
    ),
    "error": About(
        "share of the points on which the model is wrong",
        lower_is_better=True,
        right_or_wrong=True,
        proportion=_error,
        trials_known=True,
    ),
    "balanced_accuracy": About("mean over the classes of the share of each that the model finds", over_classes=True),
    "macro_precision": About("mean precision over the classes that are predicted", over_classes=True),
    "macro_recall": About("mean recall over the classes that occur", over_classes=True),
    "macro_f1": About("mean F1 over the classes", over_classes=True),
    "kappa": About(
        "agreement of model and labels beyond chance (1 is perfect, 0 is chance)", against_chance=True, unit="agreement"
    ),
    "weighted_kappa": About(
        "agreement of model and labels beyond chance, near misses counted in part (1 is perfect, 0 is chance)",
        against_chance=True,
        unit="agreement",
    ),
    "mcc": About(
        "correlation of predictions and labels (1 is perfect, 0 is chance)", against_chance=True, unit="a correlation"
    ),
    "precision": About(
        "of the points called {0}, the share that truly are",
        proportion=_precision,
        trials_known=True,
        paid_in="recall",
    ),
    "recall": About(
        "of the points that truly are {0}, the share the model finds",
        proportion=_recall,
        paid_in="precision",
        falls=True,
    ),
    "specificity": About(
        "of the points that are not {0}, the share the model does not call so",
        proportion=_specificity,
        paid_in="recall",
    ),
    "npv": About(
        "of the points not called {0}, the share that truly are not",
        proportion=_npv,
        trials_known=True,
        paid_in="specificity",
        falls=True,
    ),
    "f1": About("harmonic mean of precision and recall of {0}", rises_with=_jaccard),
    "fbeta": About("weighted harmonic mean of precision and recall of {0}", rises_with=_jaccard),
    "jaccard": About("of the points that are {0} or called so, the share that are both", proportion=_jaccard),
    "confusion": About(
        "share of all points that are called {0} and truly are {1}",
        lower_is_better=True,  # of two different classes; a cell of the diagonal counts right answers
        proportion=_confusion,
        trials_known=True,
    ),
    "cost": About("mean cost of a point", lower_is_better=True, unit="cost"),
    "share": About("share of all points that truly are {0}", proportion=_share, trials_known=True),
    "mean": About("mean value of the true classes", unit="the value of a class"),
    "roc_auc": About(
        "probability that a point that is {0} scores higher than one that is not (area under the ROC curve)",
        unit="an area",
        fitted=True,
    ),
    "macro_roc_auc": About(
        "mean over the classes of the area under the ROC curve", over_classes=True, unit="an area", fitted=True
    ),
    "average_precision": About(
        "mean precision over the points that are {0}, by falling score", over_members=True, unit="an area", fitted=True
    ),
    "macro_average_precision": About(
        "mean over the classes of average precision", over_classes=True, unit="an area", fitted=True
    ),
    "log_loss": About(
        "mean of -ln(score of the true class), scores below 1.2e-7 counted as that", lower_is_better=True, unit="nats"
    ),
    "brier": About("mean squared distance of scores and truth", lower_is_better=True, unit="squared distance"),
    "calibration_error": About(
        "mean distance of score and share of right answers over ten bins of equally many points",
        lower_is_better=True,
        caution=NEAR_ZERO,
    ),
    "share_in_bin": About("share of a class among points of similar score"),
    "difference": About("difference of two metrics"),
    "gap": About(
        "largest difference between two groups",
        lower_is_better=True,
        caution="the largest of several differences: an estimate near 0 is too high",
    ),
}
"""What is known of each built-in metric, by kind."""

GIVEN = About("a function given by the user", given=True)
