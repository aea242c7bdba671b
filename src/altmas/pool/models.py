"""Models: everything that gave an answer for each item without a person, by name.

The model under test, its next version, a rival, an LLM judge: each has hard answers, and perhaps scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from altmas.errors import PoolError
from altmas.pool.naming import Name, refuse_masked, refuse_unwritable
from altmas.suggest import listing, near
from altmas.tensors import detached

if TYPE_CHECKING:
    from altmas.pool.pool import Pool

DEFAULT_MODEL = "model"
"""What the model is called where a pool has one and nobody named it."""


@dataclass(frozen=True, eq=False)
class Model:
    """What one model says of every point: predictions (N,) class codes; scores (N, C) probabilities, or None."""

    name: str
    predictions: NDArray[np.int64]
    scores: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {'with scores' if self.scores is not None else 'hard labels only'})"


def named_predictions(predictions: ArrayLike | Mapping[str, ArrayLike] | None) -> dict[str, ArrayLike]:
    """{name: answers} of every model, in order; PoolError on a name that is none."""
    if predictions is None:
        return {}
    if not isinstance(predictions, Mapping):
        return {DEFAULT_MODEL: predictions}
    if not predictions:
        raise PoolError("predictions is an empty mapping; give {name: answers} of each model, or None for no model")
    for name in predictions:
        check_model_name(name)
    return dict(predictions)


RANKED, FEWEST_RANKED = 100_000, 10
"""Points of which scores are ranked, and points of each answer below which a rank says nothing."""
MOST_IF_INFERRED, MOST_IF_GIVEN = 0.25, 0.05
"""Agreement of scores and answers below which columns are taken to be in another order than the classes."""


def check_model_name(name: object) -> str:
    """The name; PoolError if no model can be called so."""
    if not isinstance(name, str) or name.strip() != name or not name or not name.isprintable():
        raise PoolError(
            f"model name {name!r} was not understood; expected a text without blanks at its ends, such as 'v2'"
        )
    refuse_unwritable([name], "model name")
    return name


def named_scores(scores: Any, names: Sequence[str]) -> dict[str, Any]:
    """{name: scores} of the models that have some; PoolError where it is not said whose they are."""
    if scores is None:
        return {}
    if not isinstance(scores, Mapping):
        if len(names) != 1:
            models = f"the models {listing(names)}" if names else "no model"
            raise PoolError(f"scores were given for {models}; say whose they are: scores={{name: ...}}")
        return {names[0]: scores}
    for name in scores:
        if name not in names:
            raise PoolError(unknown_model(name, names, "scores"))
    return {name: matrix for name, matrix in scores.items() if matrix is not None}


def unknown_model(name: object, names: Sequence[str], what: str = "") -> str:
    """What is said of a model that is not there."""
    known = f"known: {listing(names)}" if names else "it has none"
    lead = f"{what}: " if what else ""
    return f"{lead}model {name!r} is not in this pool ({known}){near(name, names)}; nothing was recorded"


def array_of(values: ArrayLike, what: str) -> NDArray[Any]:
    """The array as it is (a memmap stays one); PoolError on a mask and on rows of different lengths."""
    refuse_masked(values, what)
    if isinstance(values, np.memmap):
        return values
    plain = detached(values, what)
    try:
        return np.asarray(plain)
    except ValueError as cause:
        raise PoolError(f"{what} is not a matrix: its rows have different lengths") from cause


def scores_of(scores: ArrayLike, n: int, classes: tuple[Name, ...], what: str = "scores") -> NDArray[np.float64]:
    """The score matrix with rows that sum to 1; from float32, so that files in decimals give the same numbers.

    One column is enough for two classes: the probability of the second.
    """
    array = array_of(scores, what)
    if array.dtype.kind not in "fiub":
        raise PoolError(f"{what} must be numbers, got dtype {array.dtype}")
    single = array.shape in ((n,), (n, 1)) and len(classes) == 2
    if not single and array.shape != (n, len(classes)):
        alternative = f", or one column with the probability of {classes[1]!r}" if len(classes) == 2 else ""
        raise PoolError(
            f"{what} has shape {array.shape}; expected ({n}, {len(classes)}): one row per point and one column "
            f"for each class, in the order {listing(classes)}{alternative}"
        )
    with np.errstate(over="ignore"):
        array = array.astype(np.float32).astype(np.float64)
    if single:
        array = np.column_stack([1 - array.reshape(n), array.reshape(n)])
    total = array.sum(axis=1)
    fine = (np.abs(total - 1) <= 1e-2) & (array >= -1e-6).all(axis=1)
    if not fine.all():
        row = int(np.argmin(fine))
        if single:
            raise PoolError(f"{what}, row {row}: {array[row, 1]:g} is no probability; expected a number from 0 to 1")
        shown = listing(array[row].tolist(), 5)
        hint = " (of logits take the softmax of each row first)" if (array < 0).any() or (array > 1).any() else ""
        raise PoolError(
            f"{what}, row {row}: {shown} are not probabilities (they sum to {total[row]:.4g}); "
            f"expected non-negative numbers that sum to 1{hint}"
        )
    array = np.maximum(array, 0.0)
    return np.asarray(array / array.sum(axis=1, keepdims=True))


def refuse_other_column_order(model: Model, classes: tuple[Name, ...], *, inferred: bool, what: str = "score") -> None:
    """PoolError if nearly all predictions are the highest score under another order of the columns, few under this.

    Of two classes also if the score of the second is lower where the second is predicted, whatever the threshold of the
    model is: one that names a rare class from 0.2 on has mostly scores below a half.
    """
    if model.scores is None:
        return
    n_classes, n = len(classes), len(model.predictions)
    cells = np.bincount(model.predictions * n_classes + model.scores.argmax(axis=1), minlength=n_classes**2)
    highest = cells.reshape(n_classes, n_classes)  # [predicted, column of the highest score]
    fits_another = min(highest.max(axis=0).sum(), highest.max(axis=1).sum()) > 0.9 * n
    used = highest.sum(axis=0) > 0
    swapped = inferred or (used.sum() > 1 and len(set(highest.argmax(axis=0)[used])) == used.sum())
    if np.trace(highest) < 0.5 * n and fits_another and swapped:
        order = [classes[code] for code in highest.argmax(axis=0)]
        raise PoolError(
            f"the {what} columns do not fit the {'inferred ' * inferred}class order {listing(classes)}: the highest "
            f"score is the predicted class in {np.trace(highest) / n:.0%} of the rows; give the columns in "
            f"that order, or pass classes=[...] (--class, repeated) in theirs, which looks like {listing(order)}"
        )
    if len(classes) == 2 and _agreement(model) < (MOST_IF_INFERRED if inferred else MOST_IF_GIVEN):
        raise PoolError(
            f"read in the {'inferred ' * inferred}class order {listing(classes)} (one column: the probability of the "
            f"second), the {what} that should be of {classes[1]!r} is mostly higher where {classes[0]!r} is predicted; "
            "pass classes=[...] (--class, repeated) with the class of the column last, or the column of the other class"
        )


def _agreement(model: Model) -> float:
    """Chance that the second class's score is higher where it is predicted than where it is not, ties half; 1 if few.

    Of at most some points, evenly spaced.
    """
    step = 1 + len(model.predictions) // RANKED
    second, score = model.predictions[::step] == 1, np.asarray(model.scores)[::step, 1]
    if min(second.sum(), (~second).sum()) < FEWEST_RANKED:
        return 1.0
    others = np.sort(score[~second])
    below = np.searchsorted(others, score[second], "left") + np.searchsorted(others, score[second], "right")
    return float(below.mean()) / 2 / len(others)


def refuse_damaged(model: Model, pool: "Pool") -> None:
    """ValueError if these, read from a file, cannot be the answers of a model of this pool."""
    codes, shape = model.predictions, (len(pool), len(pool.classes))
    whole = codes.shape == shape[:1] and codes.dtype.kind in "iu"
    if not (whole and 0 <= codes.min() <= codes.max() < shape[1]):
        raise ValueError(f"the answers of {model.name!r} are no codes of its classes")
    if model.scores is not None and not (model.scores.shape == shape and np.isfinite(model.scores).all()):
        raise ValueError(f"the scores of {model.name!r} do not fit its classes")


def plurality(models: Sequence[Model], n: int, n_classes: int) -> NDArray[np.int64]:
    """(N,) the answer that most models give; of equally many the one with the larger scores, then the first model's.

    Without a model the same code everywhere: some class has to be the one that a belief is written around.
    """
    if not models:
        return np.zeros(n, np.int64)
    if len(models) == 1:
        return models[0].predictions
    rows, votes, scores = np.arange(n), np.zeros((n, n_classes)), np.zeros((n, n_classes))
    for rank, model in enumerate(models):
        votes[rows, model.predictions] += 1.0
        if model.scores is not None:
            scores += model.scores / len(models)
        scores[rows, model.predictions] += 1e-9 * (len(models) - rank)
    return np.asarray((votes + scores / 2).argmax(axis=1))
