"""What a pool is given, checked and brought into one form: classes, features, ids, slices, groups, weights, items."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from altmas.errors import PoolError
from altmas.pool.made_features import made_from
from altmas.pool.models import (
    DEFAULT_MODEL,
    Model,
    array_of,
)
from altmas.pool.naming import (
    PART,
    Name,
    WholeNumbers,
    as_whole,
    is_missing,
    names_of,
    refuse_unwritable,
)
from altmas.pool.scratch import give_back
from altmas.suggest import listing
from altmas.tensors import detached

CHUNK = 4_194_304
"""Numbers looked at together, so that a memory-mapped pool never has to fit into memory."""

LISTED = 200_000
"""Integer ids of a larger pool are kept as an array."""

MISSING = "(missing)"
"""The slice of points that have no value in a slice column."""


def factorised(names: NDArray[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct names and, for each row, which of them it holds."""
    if names.dtype.kind != "O":
        seen, inverse = np.unique(names, return_inverse=True)
        return seen.tolist(), inverse
    code_of: dict[str, int] = {}
    rows = np.empty(len(names), np.int64)
    for start in range(0, len(names), PART):
        part = names[start : start + PART].tolist()
        rows[start : start + PART] = [code_of.setdefault(name, len(code_of)) for name in part]
    return list(code_of), rows


def words_of_model(what: str, name: str) -> str:
    """What a message calls a part of a model."""
    return what if name == DEFAULT_MODEL else f"{what} of {name!r}"


def number_of_points(
    answers: Mapping[str, NDArray[Any]],
    features: ArrayLike | None,
    ids: ArrayLike | None,
    slices: Mapping[str, ArrayLike] | None,
    items: Sequence[Any] | None,
) -> int:
    """N; PoolError if models have different numbers of answers, features are sparse, or nothing says how many."""
    lengths = {name: len(names) for name, names in answers.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} {count:,}" for name, count in lengths.items())
        raise PoolError(f"the models have different numbers of predictions ({listed}); each needs one for every point")
    if hasattr(features, "toarray"):
        raise PoolError("features is a sparse matrix; pass features.toarray(), or fewer columns by TruncatedSVD")
    if slices is not None and not isinstance(slices, Mapping):
        raise PoolError("slices were not understood; expected {name: a value for each point}, as {'site': [...]}")
    parts: list[Any] = [*answers.values(), features, ids, items, *(slices or {}).values()]
    counts = [len(part) if hasattr(part, "__len__") else len(np.asarray(part)) for part in parts if part is not None]
    if not counts:
        raise PoolError("a pool without predictions needs features, ids, items or slices that say what its points are")
    if counts[0] == 0:
        raise PoolError("the pool is empty: predictions has no rows; nothing can be tested")
    return counts[0]


def inferred_classes(answers: Mapping[str, NDArray[Any]], scores: Mapping[str, Any]) -> tuple[Name, ...]:
    predicted = [name for names in answers.values() for name in factorised(names)[0]]
    if any(isinstance(name, str) for name in predicted):
        predicted = [str(name) for name in predicted]
    seen = sorted(set(predicted))
    if not seen:
        raise PoolError(
            "a pool without predictions needs classes=[...] (--class, repeated) with every class a label could take"
        )
    if len(seen) == 1:
        raise PoolError(
            f"only one class, {seen[0]!r}, is seen in predictions; pass classes=[...] (--class, repeated) with every "
            "class a label could take"
        )
    for matrix in scores.values():
        columns = np.shape(matrix)[1:]
        if columns and columns != (len(seen),) and not (columns == (1,) and len(seen) == 2):
            raise PoolError(
                f"scores has {columns[0]} columns but {len(seen)} classes are seen in predictions ({listing(seen)}); "
                + _remedy_of_columns(columns[0])
            )
    return tuple(seen)


def _remedy_of_columns(columns: int) -> str:
    if columns == 1:
        return (
            "one column of scores is enough for two classes alone; give the scores of every class, or this column as "
            "features (--features)"
        )
    return "pass classes=[...] (--class, repeated) in the order of the score columns"


def given_classes(classes: Iterable[Name]) -> tuple[Name, ...]:
    if isinstance(classes, str):
        raise PoolError(f"classes is the text {classes!r}; expected a sequence of class names")
    listed = tuple(names_of(list(classes), "classes").tolist())
    if len(listed) < 2:
        raise PoolError(f"classes holds {len(listed)} name{'s' * (len(listed) != 1)}; a pool needs at least two")
    if len(set(map(str, listed))) != len(listed):
        twice = next(name for name in listed if list(map(str, listed)).count(str(name)) > 1)
        raise PoolError(f"classes holds {twice!r} twice: {listing(listed)}")
    return listed


def features_made(features: Any) -> tuple[Any, tuple[str, ...]]:
    """(features, how they were made): texts become numbers; all else stays as it is."""
    listed = isinstance(features, list | tuple) or (isinstance(features, np.ndarray) and features.ndim > 0)
    if not listed or not len(features) or not isinstance(features[0], str):
        return features, ()
    made, how = made_from(list(features), "features", Path())
    return made, (how,)


def checked_features(features: ArrayLike | None, n: int) -> NDArray[Any] | None:
    """The feature matrix as it is (a memmap stays one), checked in chunks."""
    if features is None:
        return None
    array = array_of(features, "features")
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
        give_back(array)


def checked_ids(ids: ArrayLike | None, n: int) -> Sequence[Name]:
    if ids is None:
        return range(n)
    names = names_of(ids, "ids")
    if len(names) != n:
        raise PoolError(f"ids has {len(names)} entries, predictions has {n}; one id per point")
    if names.dtype == np.int64 and n > LISTED:
        in_order = np.sort(names)  # np.unique takes six times the memory
        if (in_order[1:] > in_order[:-1]).all():
            return WholeNumbers(names)
    listed: list[Name] = names.tolist()
    if len(set(listed)) != n:
        first: dict[Name, int] = {}
        for row, name in enumerate(listed):
            if first.setdefault(name, row) != row:
                raise PoolError(f"ids: {name!r} stands in rows {first[name]} and {row}; ids must be unique")
    return listed


def checked_slices(slices: Mapping[str, ArrayLike], n: int) -> dict[str, NDArray[np.str_]]:
    checked: dict[str, NDArray[np.str_]] = {}
    for name, values in slices.items():
        values = detached(values, f"slice {name!r}")
        column = np.array(values, object) if np.ma.is_masked(values) else np.asarray(values)
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
            column[np.ma.getmaskarray(values)] = None
        if column.shape != (n,):
            raise PoolError(f"slice {name!r} has shape {column.shape}, predictions has {n} rows; one value per point")
        try:
            checked[str(name)] = _slice_values(column)
            refuse_unwritable(checked[str(name)], f"slice {name!r}")
        except TypeError as cause:
            raise PoolError(f"slice {name!r} holds values that are neither texts nor numbers") from cause
    return checked


def checked_groups(values: ArrayLike, n: int) -> NDArray[np.int64]:
    """(N,) groups counted in the order in which they appear; a missing value is a group of its own."""
    try:
        names = checked_slices({"group": values}, n)["group"]
    except PoolError as cause:
        raise PoolError(str(cause).replace("slice 'group'", "group", 1)) from cause
    lone = np.flatnonzero(names == MISSING)
    _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    codes = first[inverse].astype(np.int64)
    codes[lone] = lone
    return np.asarray(np.unique(codes, return_inverse=True)[1], np.int64)


def checked_weights(values: ArrayLike, n: int) -> NDArray[np.float64]:
    """(N,) positive finite numbers; PoolError names the first row that has none."""
    try:
        weights = np.asarray(detached(values, "weights"), np.float64)
    except (TypeError, ValueError) as cause:
        raise PoolError("weights must be numbers: how many rows each row stands for") from cause
    if weights.shape != (n,):
        raise PoolError(f"weights has shape {weights.shape}, predictions has {n} rows; one number per point")
    wrong = ~((weights > 0) & np.isfinite(weights))
    if wrong.any():
        row = int(wrong.argmax())
        raise PoolError(
            f"weights, row {row}: {weights[row]:g} is no positive number; a row that stands for none does not belong "
            "into the pool"
        )
    return weights


def refuse_half_characters(items: Sequence[Any] | None) -> None:
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
        column = column.astype(object if column.dtype.kind in "OUT" else np.str_, copy=False).astype(object, copy=False)
    seen, inverse = factorised(column)
    if column.dtype == np.float32:
        seen = [float(str(np.float32(value))) for value in seen]  # 0.1, not 0.10000000149011612
    whole = all(is_missing(value) or not isinstance(as_whole(value), float) for value in seen)
    texts = [MISSING if is_missing(value) else str(as_whole(value) if whole else value) for value in seen]
    return np.array(texts, np.str_)[inverse]


def hashes_of(model: Model) -> list[str]:
    return [hash_of(part) for part in (model.predictions, model.scores) if part is not None]


def ids_as_text(ids: Sequence[Name]) -> Iterator[str]:
    """The ids in quotes, one in a line, some at a time."""
    return _joined(ids, "\n")


def slices_as_text(slices: Mapping[str, NDArray[np.str_]]) -> Iterator[str]:
    """repr([(name, [value, ...]), ...]), some at a time."""
    yield "["
    for index, name in enumerate(sorted(slices)):
        yield f"{', ' if index else ''}({name!r}, ["
        yield from _joined(slices[name], ", ")
        yield "])"
    yield "]"


def _joined(values: Sequence[Any] | NDArray[Any], between: str) -> Iterator[str]:
    for start in range(0, len(values), PART):
        yield (between if start else "") + between.join(repr(str(value)) for value in values[start : start + PART])


def hash_of(value: Any) -> str:
    """SHA-256 of a text, of texts put together, or of an array's shape and its float32 values (codes: int64)."""
    digest = hashlib.sha256()
    if isinstance(value, str | Iterator):
        for text in [value] if isinstance(value, str) else value:
            digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()
    kind = np.int64 if value.ndim == 1 else np.float32
    step = max(1, CHUNK // value[:1].size)
    digest.update(repr(value.shape).encode())
    for start in range(0, len(value), step):
        digest.update(np.ascontiguousarray(value[start : start + step], kind).tobytes())
        give_back(value)
    return digest.hexdigest()
