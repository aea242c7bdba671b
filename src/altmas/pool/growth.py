"""A pool that grows: further items with what the models say of them, further classes, further slices.

What does not fit is refused before anything is recorded: each item needs what the points of the session have.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from altmas.errors import PoolError
from altmas.items.lazy import LazyItems
from altmas.memo import Memo
from altmas.pool.models import Model
from altmas.pool.naming import Name, names_of, refuse_unwritable
from altmas.pool.pool import Pool
from altmas.pool.scratch import stacked
from altmas.suggest import listing

WAVE = "wave"
"""The slice that says with which extension a point came."""

DERIVED = tuple(name for name, value in vars(Pool).items() if isinstance(value, cached_property))
"""What a pool computes from its parts and keeps."""


def fitting(pool: Pool, more: Pool) -> Pool:
    """The items in the classes, ids and parts of a pool that they are to be added to; PoolError names what differs."""
    codes = _codes(pool, more)
    _refuse_other_parts(pool, more)
    fitted = _copied(more)
    fitted.models = tuple(_recoded(more.model(model.name), codes, len(pool.classes)) for model in pool.models)
    fitted.classes, fitted.values, fitted.ids = pool.classes, pool.values, _new_ids(pool, more)
    fitted.slices = {name: more.slices[name] for name in pool.slices if name != WAVE}
    return fitted


def _codes(pool: Pool, more: Pool) -> NDArray[np.int64]:
    """(C',) codes of the items' classes among those of the pool."""
    codes = [pool.find_class(name) for name in more.classes]
    strange = [name for name, code in zip(more.classes, codes, strict=True) if code is None]
    if strange:
        raise PoolError(
            f"the items have the class {strange[0]!r}, which this session has not (it has {listing(pool.classes)}); "
            f"add it first with classes=[{strange[0]!r}] (--class {strange[0]}); nothing was recorded"
        )
    return np.array(codes, np.int64)


def _recoded(model: Model, codes: NDArray[np.int64], n_classes: int) -> Model:
    scores = None
    if model.scores is not None:
        scores = np.zeros((len(model.scores), n_classes))
        scores[:, codes] = model.scores
    return Model(model.name, codes[model.predictions], scores)


def _refuse_other_parts(pool: Pool, more: Pool) -> None:
    """PoolError on the first part that the points of the session have and the items have not, or the other way."""
    for what, session_names, item_names in [
        ("model", [model.name for model in pool.models], [model.name for model in more.models]),
        ("slice", [name for name in pool.slices if name != WAVE], [name for name in more.slices if name != WAVE]),
    ]:
        if missing := [name for name in session_names if name not in item_names]:
            columns = " ".join(f"--prediction {shlex.quote(name)}" for name in session_names)
            how = f" (of a table in a column of that name: {columns})" if what == "model" else ""
            raise PoolError(
                f"the items have no {what} {missing[0]!r}, which the points of this session have; give it for each of "
                f"them{how}; nothing was recorded"
            )
        if strange := [name for name in item_names if name not in session_names]:
            known = listing(session_names) if session_names else "none"
            raise PoolError(
                f"the items have the {what} {strange[0]!r}, which this session has not ({what}s: {known}); leave it "
                "out; nothing was recorded"
            )
    for model in pool.models:
        _refuse_other("scores of " + repr(model.name), model.scores, more.model(model.name).scores)
    if pool.models and pool.models[0].scores is not None and len(more.classes) != len(pool.classes):
        raise PoolError(
            f"the items have scores of {len(more.classes)} classes, this session has {len(pool.classes)} "
            f"({listing(pool.classes)}); give a column for each; nothing was recorded"
        )
    if more.named_values not in (None, pool.named_values):
        raise PoolError(
            f"values: the items have {more.named_values}, this session {pool.named_values}; leave them out; nothing "
            "was recorded"
        )
    _refuse_other("features", pool.features, more.features)
    if pool.features is not None and more.features is not None and pool.features.shape[1] != more.features.shape[1]:
        raise PoolError(
            f"the items have {more.features.shape[1]} features, the points of this session {pool.features.shape[1]}; "
            "give the same ones; nothing was recorded"
        )
    _refuse_other("weights", pool.weights, more.weights)
    if pool.items is not None and more.items is None:
        raise PoolError("the items have nothing to show, the points of this session have; nothing was recorded")


def _refuse_other(what: str, session_part: object, item_part: object) -> None:
    if (session_part is None) != (item_part is None):
        session_has, items_have = ("have", "have none") if session_part is not None else ("have none", "have some")
        raise PoolError(
            f"{what}: the points of this session {session_has}, the items {items_have}; nothing was recorded"
        )


def _new_ids(pool: Pool, more: Pool) -> Sequence[Name]:
    """The items' ids; where nobody named any they count on. PoolError on one that is there already."""
    if isinstance(more.ids, range):
        if not isinstance(pool.ids, range):
            raise PoolError("the items have no ids, the points of this session have; give them; nothing was recorded")
        return range(len(pool), len(pool) + len(more))
    known_ids = set(map(str, pool.ids))
    twice = next((name for name in more.ids if str(name) in known_ids), None)
    if twice is not None:
        raise PoolError(f"id {twice!r} is in this session already; ids must be unique; nothing was recorded")
    return list(more.ids)


# ---------------------------------------------------------------- larger pools


def counted_on(pool: Pool, more: Pool) -> Pool:
    """The items with numbers that go on from those of the pool, where nobody named any: a file counts them from 0."""
    ids = range(len(pool), len(pool) + len(more))
    if not isinstance(more.ids, range) or more.ids == ids:
        return more
    recounted = _copied(more)
    recounted.ids = ids
    return recounted


def grown(pool: Pool, more: Pool, wave: str, first: str) -> Pool:
    """The pool with fitting items after its own; `wave` is what they came with, `first` what the first points did."""
    larger = _copied(pool)
    larger._n = len(pool) + len(more)
    counted = isinstance(pool.ids, range) and isinstance(more.ids, range)
    larger.ids = range(larger._n) if counted else [*pool.ids, *more.ids]
    larger.models = tuple(_joined(model, more.model(model.name)) for model in pool.models)
    if pool.features is not None and more.features is not None:
        larger.features = stacked([pool.features, more.features])
    if pool.weights is not None and more.weights is not None:
        larger.weights = np.concatenate([pool.weights, more.weights])
    waves = pool.slices.get(WAVE, np.full(len(pool), first))
    larger.slices = {
        name: np.concatenate([pool.slices[name], more.slices[name]]) for name in pool.slices if name != WAVE
    }
    larger.slices[WAVE] = np.concatenate([waves, np.full(len(more), wave)])
    larger.items = joined_items(pool.items, more.items)
    return larger


def values_in_order(pool: Pool, name: str, domains: Sequence[slice]) -> list[str]:
    """The values of a slice in the order in which they are listed: waves as they came, others by number or name.

    domains  the rows that came together, in order; waves that came together are by number or name too
    """
    values: list[str] = []
    for rows in domains if name == WAVE else [slice(None)]:
        new = {str(value) for value in np.unique(pool.slices[name][rows])} - set(values)
        values += sorted(new, key=lambda value: (0, float(value), value) if _is_number(value) else (1, 0.0, value))
    return values


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _copied(pool: Pool) -> Pool:
    """The same pool with nothing kept that was computed from its parts."""
    fresh = copy(pool)
    for derived in DERIVED:
        fresh.__dict__.pop(derived, None)
    fresh.memo, fresh.extended = Memo(pool.memo.file), True
    return fresh


def _joined(model: Model, more: Model) -> Model:
    scores = None if model.scores is None or more.scores is None else np.concatenate([model.scores, more.scores])
    return Model(model.name, np.concatenate([model.predictions, more.predictions]), scores)


def joined_items(items: Sequence[Any] | None, more: Sequence[Any] | None) -> Sequence[Any] | None:
    """What a labeller is shown of both: Arrow columns stay such, anything else becomes a list."""
    if items is None or more is None:
        return None
    if isinstance(items, LazyItems) and isinstance(more, LazyItems) and _same_columns(items, more):
        return LazyItems(items.columns_and(more))
    return [*items, *more]


def _same_columns(items: LazyItems, more: LazyItems) -> bool:
    if hasattr(items.columns, "schema") != hasattr(more.columns, "schema"):
        return False
    attribute = "schema" if hasattr(items.columns, "schema") else "type"
    return bool(getattr(items.columns, attribute) == getattr(more.columns, attribute))


def with_classes(pool: Pool, classes: Sequence[Name]) -> Pool:
    """The pool with further classes after its own, of which no model has predicted or scored any yet."""
    names = names_of(list(classes), "classes").tolist()
    refuse_unwritable([str(name) for name in names], "classes")
    for name in names:
        if pool.find_class(name) is not None or names.count(name) > 1:
            raise PoolError(f"class {name!r} is there already ({listing(pool.classes)}); nothing was recorded")
    if pool.values is not None:
        raise PoolError(
            f"class {names[0]!r} would have no value, and the classes of this session have ({pool.named_values}); make "
            "a new session with values for all; nothing was recorded"
        )
    wider = _copied(pool)
    wider.classes = (*pool.classes, *names)
    wider.models = tuple(_recoded(model, np.arange(len(pool.classes)), len(wider.classes)) for model in pool.models)
    return wider


def slice_values(pool: Pool, name: str, values: ArrayLike | Mapping[Any, Any]) -> NDArray[np.str_]:
    """(N,) the values of a further slice, by row or {id: value}; PoolError if they do not fit."""
    if name in pool.slices or name == WAVE:
        raise PoolError(f"slice {name!r} is there already or reserved; give another name; nothing was recorded")
    if isinstance(values, Mapping):
        column: list[Any] = [None] * len(pool)
        for id, value in values.items():
            column[pool.index(id)] = value
        values = np.array(column, object)
    return Pool(None, None, classes=("a", "b"), ids=range(len(pool)), slices={name: values}).slices[name]


def with_slices(pool: Pool, slices: Mapping[str, NDArray[np.str_]]) -> Pool:
    """The pool with further slices, checked before."""
    for name, column in slices.items():
        if column.shape != (len(pool),) or column.dtype.kind != "U" or name in pool.slices:
            raise ValueError(f"slice {name!r} does not fit")
    wider = _copied(pool)
    wider.slices = {**pool.slices, **slices}
    return wider
