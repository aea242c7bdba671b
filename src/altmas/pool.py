"""The pool: every point that could be labelled, and what the model under test says about it.

N points, C classes. predictions[i] and every label are codes 0..C-1 into the one explicit class list;
class names appear only where data enters and leaves.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from altmas.errors import PoolError, UnknownLabel, UnknownPoint
from altmas.suggest import listing, near

Name = str | int
"""What a class or an id may be called."""

CHUNK = 65_536
"""Rows looked at together, so that a memory-mapped pool never has to fit into memory."""


class Pool:
    """Unlabelled points with the predictions of the model under test.

    features     (N, D) array or memmap of numbers, or None for methods that need none
    predictions  (N,) class names, or codes into `classes` when the classes are strings and these are integers
    scores       (N, C) probabilities of the model, columns in the order of `classes`
    classes      the class list; by default the sorted union of what is seen (then `classes_inferred` is True)
    ids          (N,) unique names of the points; by default 0..N-1
    slices       {"scanner": (N,) values}
    items        what a labeller is shown: a sequence of N texts, image paths, arrays or dicts

    Raises PoolError, naming the first offending row.
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
        items: Sequence[Any] | None = None,
    ) -> None:
        names = _names(predictions, "predictions")
        if len(names) == 0:
            raise PoolError("the pool is empty: predictions has no rows; nothing can be tested")
        self.classes_inferred = classes is None
        self.classes = _class_list(names, classes, scores)
        self.predictions = _codes(names, self.classes)
        self.features = _features(features, len(names))
        self.scores = _scores(scores, len(names), self.classes)
        self.ids = _ids(ids, len(names))
        self.slices = _slices(slices or {}, len(names))
        self.items = items
        self.source: dict[str, Any] | None = None
        """How to read this pool again (set by `from_table` for files), or None for one that lives in memory."""
        if items is not None and len(items) != len(names):
            raise PoolError(f"items has {len(items)} entries, predictions has {len(names)}; one item per point")

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        prediction: str,
        id: str | None = None,
        features: Any = None,
        scores: Sequence[str] | None = None,
        slices: Sequence[str] = (),
        show: str | Sequence[str] | None = None,
        classes: Sequence[Name] | None = None,
    ) -> "Pool":
        """The pool in a table: pandas, polars or pyarrow frame, Hugging Face dataset, .csv/.jsonl/.parquet path.

        `features` names columns, a .npy file aligned by row, or is an array; `show` names what a labeller sees.
        Raises FileError or PoolError, naming the column.
        """
        from altmas.tables import pool_from_table  # tables needs Pool: the one import that points down the tree

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
        return (
            f"Pool({len(self):,} points, {len(self.classes)} classes ({listing(self.classes, 5)}), {shape}, {scores})"
        )

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """One hash for each part: equal parts have equal hashes, whatever container they came in."""
        parts: dict[str, Any] = {
            "classes": repr(self.classes),
            "ids": "\n".join(map(repr, self.ids)),
            "predictions": np.ascontiguousarray(self.predictions, np.int64),
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
        return {str(name): code for code, name in enumerate(self.classes)}

    def index(self, id: object) -> int:
        """The row of the point with this id; UnknownPoint if there is none. "17" finds the integer id 17."""
        name = _plain(id)
        found = self._index_of_id.get(name) if isinstance(name, str | int) else None
        if found is None and isinstance(name, str) and name.lstrip("-").isdigit():
            found = self._index_of_id.get(int(name))
        if found is None and isinstance(name, int):
            found = self._index_of_id.get(str(name))
        if found is None:
            hint = near(name, self.ids[:100_000])
            raise UnknownPoint(f"id {name!r} is not in this pool of {len(self):,} points{hint}; nothing was recorded")
        return found

    def code(self, label: object, *, where: str = "") -> int:
        """The code of a class name; UnknownLabel if it is not one of the pool's classes. "3" finds the class 3."""
        name = _plain(label)
        if isinstance(name, float) and name.is_integer():
            name = int(name)
        code = self._code_of_class.get(str(name)) if isinstance(name, str | int) else None
        if code is None:
            raise UnknownLabel(
                f"{where}label {name!r} is not a class of this pool (expected one of {listing(self.classes)})"
                f"{near(name, self.classes)}; nothing was recorded"
            )
        return code


def _plain(value: object) -> object:
    """A numpy scalar as the Python value it holds."""
    return value.item() if isinstance(value, np.generic) else value


def _names(values: ArrayLike, what: str) -> NDArray[Any]:
    """A (N,) array of integers or strings; PoolError on anything missing or of another kind."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise PoolError(f"{what} has shape {array.shape}; expected one value per point")
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(array) | (array != np.round(array)))
        if len(bad):
            raise PoolError(
                f"{what}, row {bad[0]}: {array[bad[0]]} is not a class or id (expected an integer or a string)"
            )
        return array.astype(np.int64)
    if array.dtype.kind == "U":
        return array
    plain = [_plain(value) for value in array.tolist()]
    for row, value in enumerate(plain):
        if not isinstance(value, str | int):
            raise PoolError(f"{what}, row {row}: {value!r} is missing or neither an integer nor a string")
    if all(isinstance(value, int) for value in plain):
        return np.array(plain, np.int64)
    return np.array([str(value) for value in plain])


def _class_list(names: NDArray[Any], classes: Sequence[Name] | None, scores: ArrayLike | None) -> tuple[Name, ...]:
    if classes is None:
        seen = np.unique(names).tolist()
        if scores is not None and len(seen) != np.shape(scores)[-1]:
            raise PoolError(
                f"scores has {np.shape(scores)[-1]} columns but {len(seen)} classes are seen in predictions; "
                "pass classes=[...] in the order of the score columns"
            )
        listed: tuple[Name, ...] = tuple(seen)
    else:
        listed = tuple(_plain(name) for name in classes)  # type: ignore[misc]
        if not all(isinstance(name, str | int) for name in listed):
            raise PoolError(f"classes must be strings or integers, got {listing(listed)}")
        if len(set(map(str, listed))) != len(listed):
            raise PoolError(f"classes has a name twice: {listing(listed)}")
    if len(listed) < 2:
        raise PoolError(
            f"only one class, {listed[0]!r}, is seen; pass classes=[...] with every class a label could take"
            if listed
            else "classes is empty; a pool needs at least two"
        )
    return listed


def _codes(names: NDArray[Any], classes: tuple[Name, ...]) -> NDArray[np.int64]:
    """Codes of the predicted names; integers under string classes are codes already (as in Hugging Face ClassLabel)."""
    code_of = {str(name): code for code, name in enumerate(classes)}
    unique, inverse = np.unique(names, return_inverse=True)
    by_name = np.array([code_of.get(str(value), -1) for value in unique.tolist()], np.int64)
    all_strings = all(isinstance(name, str) for name in classes)
    if names.dtype.kind == "i" and all_strings and (by_name < 0).any():
        by_name = np.where((unique >= 0) & (unique < len(classes)), unique, -1)
    codes = by_name[inverse]
    bad = np.flatnonzero(codes < 0)
    if len(bad):
        value = names[bad[0]].item()
        raise PoolError(
            f"predictions, row {bad[0]}: {value!r} is not one of the classes {listing(classes)}{near(value, classes)}"
        )
    return codes


def _features(features: ArrayLike | None, n: int) -> NDArray[Any] | None:
    """The feature matrix as it is (a memmap stays one), checked in chunks."""
    if features is None:
        return None
    array = features if isinstance(features, np.ndarray) else np.asarray(features)
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
        for start in range(0, n, CHUNK):
            bad = np.argwhere(~np.isfinite(array[start : start + CHUNK]))
            if len(bad):
                row, column = bad[0]
                value = array[start + row, column]
                raise PoolError(f"features, row {start + row}, column {column}: {value} is not a finite number")
    return array


def _scores(scores: ArrayLike | None, n: int, classes: tuple[Name, ...]) -> NDArray[np.float64] | None:
    if scores is None:
        return None
    array = np.asarray(scores)
    if array.dtype.kind not in "fiub":
        raise PoolError(f"scores must be numbers, got dtype {array.dtype}")
    array = array.astype(np.float64)
    if array.shape != (n, len(classes)):
        raise PoolError(
            f"scores has shape {array.shape}; expected ({n}, {len(classes)}): one row per point and one column "
            f"for each class, in the order {listing(classes)}"
        )
    total = array.sum(axis=1)
    bad = np.flatnonzero(~np.isfinite(total) | (array < -1e-9).any(axis=1) | (np.abs(total - 1) > 1e-2))
    if len(bad):
        raise PoolError(
            f"scores, row {bad[0]}: {array[bad[0]].tolist()[:5]} are not probabilities "
            f"(they sum to {total[bad[0]]:.4g}); expected non-negative numbers that sum to 1"
        )
    array = np.maximum(array, 0.0)
    return np.asarray(array / array.sum(axis=1, keepdims=True))


def _ids(ids: ArrayLike | None, n: int) -> Sequence[Name]:
    if ids is None:
        return range(n)
    names = _names(ids, "ids")
    if len(names) != n:
        raise PoolError(f"ids has {len(names)} entries, predictions has {n}; one id per point")
    unique, first, counts = np.unique(names, return_index=True, return_counts=True)
    if len(unique) != n:
        twice = unique[np.argmax(counts > 1)]
        rows = np.flatnonzero(names == twice)[:2].tolist()
        raise PoolError(f"ids: {twice.item()!r} stands in rows {rows[0]} and {rows[1]}; ids must be unique")
    listed: list[Name] = names.tolist()
    return listed


def _slices(slices: Mapping[str, ArrayLike], n: int) -> dict[str, NDArray[np.str_]]:
    found: dict[str, NDArray[np.str_]] = {}
    for name, values in slices.items():
        column = np.asarray(values)
        if column.shape != (n,):
            raise PoolError(f"slice {name!r} has shape {column.shape}, predictions has {n} rows; one value per point")
        found[str(name)] = column.astype(np.str_)
    return found


def _hash(value: Any) -> str:
    """SHA-256 of a text, or of an array's shape and its values as float32 (integers as int64), in chunks."""
    digest = hashlib.sha256()
    if isinstance(value, str):
        digest.update(value.encode())
    else:
        kind = np.int64 if value.dtype.kind in "iub" and value.ndim == 1 else np.float32
        digest.update(repr(value.shape).encode())
        for start in range(0, len(value), CHUNK):
            digest.update(np.ascontiguousarray(value[start : start + CHUNK], kind).tobytes())
    return digest.hexdigest()
