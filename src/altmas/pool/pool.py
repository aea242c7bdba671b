"""The pool: every point that could be labelled, and what the model under test says about it.

N points, C classes. predictions[i] and every label are codes 0..C-1 into the one explicit class list;
class names appear only where data enters and leaves.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from altmas.errors import AltmasError, PoolError, UnknownLabel, UnknownPoint
from altmas.items.lazy import items_of
from altmas.memo import Memo
from altmas.pool.naming import (
    Name,
    as_whole,
    is_missing,
    look_alikes,
    names_of,
    plain,
    refuse_masked,
    refuse_unwritable,
    spellings,
)
from altmas.suggest import listing, near

__all__ = ["Name", "Pool"]

CHUNK = 4_194_304
"""Numbers looked at together, so that a memory-mapped pool never has to fit into memory."""

MISSING = "(missing)"
"""The slice of points that have no value in a slice column."""


class Pool:
    """Unlabelled points with the predictions of the model under test.

    features     (N, D) array or memmap of numbers, or None for methods that need none
    predictions  (N,) class names, or codes into `classes` when these are integers and no class name is a number
    scores       (N, C) probabilities of the model, columns in the order of `classes`, kept to float32 precision
    classes      the class list; by default the sorted union of what is seen (then `classes_inferred` is True)
    ids          (N,) unique names of the points; by default 0..N-1
    slices       {"scanner": (N,) values}; a missing value is the slice "(missing)"
    items        what a labeller is shown: a sequence of N texts, image paths, arrays or dicts, or a frame of N rows

    Raises PoolError, naming the first offending row (rows count from 0).
    """

    def __init__(
        self,
        features: ArrayLike | None,
        predictions: ArrayLike,
        *,
        scores: ArrayLike | None = None,
        classes: Sequence[Name] | None = None,
        ids: ArrayLike | None = None,
        slices: Mapping[str, ArrayLike] | None = None,
        items: Any = None,
    ) -> None:
        names = names_of(predictions, "predictions")
        if len(names) == 0:
            raise PoolError("the pool is empty: predictions has no rows; nothing can be tested")
        self.classes_inferred = classes is None
        self.classes = _inferred_classes(names, scores) if classes is None else _given_classes(classes)
        self.predictions = self._codes(names, "predictions", PoolError)
        self.features = _features(features, len(names))
        self.scores = _scores(scores, len(names), self.classes)
        if self.classes_inferred and self.scores is not None:
            _refuse_other_column_order(self.scores, self.predictions, self.classes)
        self.ids = _ids(ids, len(names))
        self.slices = _slices(slices or {}, len(names))
        self.items: Sequence[Any] | None = items_of(items)
        if self.items is not None and len(self.items) != len(names):
            raise PoolError(f"items has {len(self.items)} entries, predictions has {len(names)}; one item per point")
        _refuse_half_characters(self.items)
        self.memo = Memo()
        """What methods computed from this pool and would otherwise compute again."""
        self.source: dict[str, Any] | None = None
        """How to read this pool again (set by `from_table` for files), or None for one that lives in memory."""

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        prediction: str,
        id: str | None = None,
        features: str | PathLike[str] | Sequence[str] | ArrayLike | None = None,
        scores: str | PathLike[str] | Sequence[str] | ArrayLike | None = None,
        slices: str | Sequence[str] = (),
        show: str | Sequence[str] | None = None,
        classes: Sequence[Name] | None = None,
    ) -> "Pool":
        """The pool in a table: pandas, polars or pyarrow frame, Hugging Face dataset, .csv/.jsonl/.parquet path.

        `features` and `scores` name numeric columns, one column of equally long lists or a .npy file aligned by row,
        or are arrays; `show` names what a labeller sees. Raises FileError or PoolError, naming the column.
        """
        from altmas.pool.tables import pool_from_table  # tables needs Pool: the one import that points down the tree

        return pool_from_table(
            table,
            prediction=prediction,
            id=id,
            features=features,
            scores=scores,
            slices=slices,
            show=show,
            classes=classes,
        )

    def __len__(self) -> int:
        return len(self.predictions)

    def __repr__(self) -> str:
        shape = "no features" if self.features is None else f"{self.features.shape[1]} features"
        scores = "with scores" if self.scores is not None else "hard labels only"
        inferred = " inferred from the predictions" if self.classes_inferred else ""
        classes = f"{len(self.classes)} classes{inferred} ({listing(self.classes, 5)})"
        notices = "".join(f"; note: {one}" for one in self.notices)
        return f"Pool({len(self):,} points, {classes}, {shape}, {scores}{notices})"

    @cached_property
    def notices(self) -> tuple[str, ...]:
        """What looks like a mistake in the data though it is none by itself: class names that are nearly the same."""
        return tuple(
            f"the classes {listing(group)} differ only by case, blanks or Unicode form and count as different; if they "
            "are one class, write it alike"
            for group in look_alikes(self.classes)
        )

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """One hash for each part: equal parts have equal hashes, whatever container they came in."""
        parts: dict[str, Any] = {
            "classes": repr([str(name) for name in self.classes]),
            "ids": "\n".join(repr(str(name)) for name in self.ids),
            "predictions": self.predictions,
            "features": self.features,
            "scores": self.scores,
            "slices": repr([(name, self.slices[name].tolist()) for name in sorted(self.slices)]),
        }
        return {part: _hash(value) for part, value in parts.items() if value is not None}

    @cached_property
    def _index_of_id(self) -> dict[Name, int]:
        return {name: index for index, name in enumerate(self.ids)}

    @cached_property
    def _code_of_class(self) -> dict[str, int]:
        """Every spelling of every class; a class's own name comes before another spelling of a different one."""
        own = {str(name): code for code, name in enumerate(self.classes)}
        others = {other: code for code, name in enumerate(self.classes) for other in spellings(name)}
        return others | own

    def index(self, id: object) -> int:
        """The row of the point with this id; UnknownPoint if there is none. "17" finds the integer id 17."""
        name = plain(id)
        for same in (name, as_whole(name), str(name) if isinstance(name, int) else None):
            if isinstance(same, str | int) and same in self._index_of_id:
                return self._index_of_id[same]
        hint = near(name, self.ids[:10_000])
        raise UnknownPoint(f"id {name!r} is not in this pool of {len(self):,} points{hint}; nothing was recorded")

    def find_class(self, label: object) -> int | None:
        """The code of a class name, or None. "3" finds the class 3, and true, 1 or "True" the class True."""
        name = as_whole(plain(label))
        if not isinstance(name, str | int):
            return None
        return next((self._code_of_class[one] for one in spellings(name) if one in self._code_of_class), None)

    def code(self, label: object, *, where: str = "") -> int:
        """The code of a class name; UnknownLabel if it is not one of the pool's classes."""
        code = self.find_class(label)
        if code is None:
            name = plain(label)
            raise UnknownLabel(
                f"{where}label {name!r} is not a class of this pool (expected one of {listing(self.classes)})"
                f"{near(name, self.classes)}; nothing was recorded"
            )
        return code

    def codes(self, labels: ArrayLike, *, what: str = "labels") -> NDArray[np.int64]:
        """(n,) codes of many class names, such as the known truth; UnknownLabel on the first that is none.

        Integers are codes already when no class name is a number (as Hugging Face stores labels).
        """
        return self._codes(names_of(labels, what), what, UnknownLabel)

    def _codes(self, names: NDArray[Any], what: str, refusal: type[AltmasError]) -> NDArray[np.int64]:
        seen, inverse = _factorised(names)
        found = [self.find_class(name) for name in seen]
        numbers = any(isinstance(as_whole(name), int) for name in self.classes)
        if names.dtype.kind == "i" and not numbers:
            found = [name if 0 <= name < len(self.classes) else None for name in seen]
        code_of = np.array([-1 if code is None else code for code in found], np.int64)
        codes = code_of[inverse]
        if (code_of < 0).any():
            row = int(np.argmax(codes < 0))
            name = plain(names[row])
            raise refusal(
                f"{what}, row {row}: {name!r} is not one of the classes {listing(self.classes)}"
                f"{near(name, self.classes)}"
            )
        return codes


def _factorised(names: NDArray[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct names and, for each row, which of them it holds."""
    if names.dtype.kind != "O":
        seen, inverse = np.unique(names, return_inverse=True)
        return seen.tolist(), inverse
    place: dict[str, int] = {}
    rows = np.fromiter((place.setdefault(name, len(place)) for name in names.tolist()), np.int64, len(names))
    return list(place), rows


def _inferred_classes(names: NDArray[Any], scores: ArrayLike | None) -> tuple[Name, ...]:
    seen = sorted(_factorised(names)[0])
    if len(seen) == 1:
        raise PoolError(
            f"only one class, {seen[0]!r}, is seen in predictions; pass classes=[...] (--class, repeated) with every "
            "class a label could take"
        )
    columns = np.shape(scores)[1:] if scores is not None else ()
    if columns and columns != (len(seen),):
        raise PoolError(
            f"scores has {columns[0]} columns but {len(seen)} classes are seen in predictions ({listing(seen)}); "
            "pass classes=[...] (--class, repeated) in the order of the score columns"
        )
    return tuple(seen)


def _given_classes(classes: Iterable[Name]) -> tuple[Name, ...]:
    if isinstance(classes, str):
        raise PoolError(f"classes is the text {classes!r}; expected a sequence of class names")
    listed = tuple(names_of(list(classes), "classes").tolist())
    if len(listed) < 2:
        raise PoolError(f"classes holds {len(listed)} name{'s' * (len(listed) != 1)}; a pool needs at least two")
    if len(set(map(str, listed))) != len(listed):
        twice = next(name for name in listed if list(map(str, listed)).count(str(name)) > 1)
        raise PoolError(f"classes holds {twice!r} twice: {listing(listed)}")
    return listed


def _features(features: ArrayLike | None, n: int) -> NDArray[Any] | None:
    """The feature matrix as it is (a memmap stays one), checked in chunks."""
    if features is None:
        return None
    if hasattr(features, "toarray"):
        raise PoolError("features is a sparse matrix; pass features.toarray(), or fewer columns by TruncatedSVD")
    array = _array_of(features, "features")
    if array.dtype.kind not in "fiub":
        raise PoolError(f"features must be numbers, got dtype {array.dtype}")
    if array.ndim > 2:
        array = array.reshape(len(array), -1)
    if array.ndim != 2 or array.shape[1] == 0:
        raise PoolError(f"features has shape {array.shape}; expected (points, columns)")
    if len(array) != n:
        raise PoolError(f"features has {len(array)} rows, predictions has {n}; they are aligned by row")
    if array.dtype not in (np.float32, np.float64) and not isinstance(array, np.memmap):
        array = array.astype(np.float32)
    if array.dtype.kind == "f":
        _refuse_not_finite(array)
    return array


def _array_of(values: ArrayLike, what: str) -> NDArray[Any]:
    """The array as it is (a memmap stays one); PoolError on a mask and on rows of different lengths."""
    refuse_masked(values, what)
    if isinstance(values, np.memmap):
        return values
    try:
        return np.asarray(values)
    except ValueError as cause:
        raise PoolError(f"{what} is not a matrix: its rows have different lengths") from cause


def _refuse_not_finite(array: NDArray[Any]) -> None:
    largest = np.finfo(np.float32).max  # surrogates and fingerprints work in float32
    step = max(1, CHUNK // array.shape[1])
    for start in range(0, len(array), step):
        chunk = array[start : start + step]
        if not (np.abs(chunk) <= largest).all():
            row, column = np.argwhere(~(np.abs(chunk) <= largest))[0].tolist()
            value = chunk[row, column]
            reason = "is too large for float32" if np.isfinite(value) else "is not a finite number"
            raise PoolError(f"features, row {start + row}, column {column}: {value} {reason}")


def _scores(scores: ArrayLike | None, n: int, classes: tuple[Name, ...]) -> NDArray[np.float64] | None:
    """The score matrix with rows that sum to 1; from float32, so that files in decimals give the same numbers."""
    if scores is None:
        return None
    array = _array_of(scores, "scores")
    if array.dtype.kind not in "fiub":
        raise PoolError(f"scores must be numbers, got dtype {array.dtype}")
    if array.shape != (n, len(classes)):
        raise PoolError(
            f"scores has shape {array.shape}; expected ({n}, {len(classes)}): one row per point and one column "
            f"for each class, in the order {listing(classes)}"
        )
    with np.errstate(over="ignore"):
        array = array.astype(np.float32).astype(np.float64)
    total = array.sum(axis=1)
    fine = (np.abs(total - 1) <= 1e-2) & (array >= -1e-6).all(axis=1)
    if not fine.all():
        row = int(np.argmin(fine))
        shown = listing(array[row].tolist(), 5)
        raise PoolError(
            f"scores, row {row}: {shown} are not probabilities (they sum to {total[row]:.4g}); "
            "expected non-negative numbers that sum to 1"
        )
    array = np.maximum(array, 0.0)
    return np.asarray(array / array.sum(axis=1, keepdims=True))


def _refuse_other_column_order(
    scores: NDArray[np.float64], predictions: NDArray[np.int64], classes: tuple[Name, ...]
) -> None:
    """PoolError if nearly all predictions are the highest score under another order of the columns, few under this."""
    n_classes = len(classes)
    cells = np.bincount(predictions * n_classes + scores.argmax(axis=1), minlength=n_classes**2)
    highest = cells.reshape(n_classes, n_classes)  # [predicted, column of the highest score]
    fits_another = min(highest.max(axis=0).sum(), highest.max(axis=1).sum()) > 0.9 * len(scores)
    if np.trace(highest) < 0.5 * len(scores) and fits_another:
        order = [classes[code] for code in highest.argmax(axis=0)]
        raise PoolError(
            f"the score columns do not fit the inferred class order {listing(classes)}: the highest score is the "
            f"predicted class in {np.trace(highest) / len(scores):.0%} of the rows; give the columns in "
            f"that order, or pass classes=[...] (--class, repeated) in theirs, which looks like {listing(order)}"
        )


def _ids(ids: ArrayLike | None, n: int) -> Sequence[Name]:
    if ids is None:
        return range(n)
    listed: list[Name] = names_of(ids, "ids").tolist()
    if len(listed) != n:
        raise PoolError(f"ids has {len(listed)} entries, predictions has {n}; one id per point")
    if len(set(listed)) != n:
        first: dict[Name, int] = {}
        for row, name in enumerate(listed):
            if first.setdefault(name, row) != row:
                raise PoolError(f"ids: {name!r} stands in rows {first[name]} and {row}; ids must be unique")
    return listed


def _slices(slices: Mapping[str, ArrayLike], n: int) -> dict[str, NDArray[np.str_]]:
    found: dict[str, NDArray[np.str_]] = {}
    for name, values in slices.items():
        column = np.array(values, object) if np.ma.is_masked(values) else np.asarray(values)
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
            column[np.ma.getmaskarray(values)] = None
        if column.shape != (n,):
            raise PoolError(f"slice {name!r} has shape {column.shape}, predictions has {n} rows; one value per point")
        try:
            found[str(name)] = _slice_values(column)
            refuse_unwritable(found[str(name)].tolist(), f"slice {name!r}")
        except TypeError as cause:
            raise PoolError(f"slice {name!r} holds values that are neither texts nor numbers") from cause
    return found


def _refuse_half_characters(items: Sequence[Any] | None) -> None:
    """PoolError on the first text among listed items that has no UTF-8; frames have been looked at by Arrow."""
    for row, item in enumerate(items if isinstance(items, list | tuple) else ()):
        for value in item.values() if isinstance(item, Mapping) else (item,):
            if isinstance(value, str):
                try:
                    value.encode()
                except UnicodeEncodeError as cause:
                    raise PoolError(
                        f"items, row {row}: {value[:60]!r} holds half a character (a lone surrogate), which no file "
                        "can keep; write it otherwise"
                    ) from cause


def _slice_values(column: NDArray[Any]) -> NDArray[np.str_]:
    """The values as texts; whole floats as integers, since gaps turn integers into floats on the way in."""
    if column.dtype.kind not in "biuf":
        column = column.astype(object if column.dtype.kind in "OUT" else np.str_).astype(object)
    seen, inverse = _factorised(column)
    if column.dtype == np.float32:
        seen = [float(str(np.float32(value))) for value in seen]  # 0.1, not 0.10000000149011612
    whole = all(is_missing(value) or not isinstance(as_whole(value), float) for value in seen)
    texts = [MISSING if is_missing(value) else str(as_whole(value) if whole else value) for value in seen]
    return np.array(texts, np.str_)[inverse]


def _hash(value: Any) -> str:
    """SHA-256 of a text, or of an array's shape and its values as float32 (codes as int64), in chunks."""
    digest = hashlib.sha256()
    if isinstance(value, str):
        digest.update(value.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()
    kind = np.int64 if value.ndim == 1 else np.float32
    step = max(1, CHUNK // value[:1].size)
    digest.update(repr(value.shape).encode())
    for start in range(0, len(value), step):
        digest.update(np.ascontiguousarray(value[start : start + step], kind).tobytes())
    return digest.hexdigest()
