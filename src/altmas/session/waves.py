"""Items that are added to a session: made to fit its pool, kept in its file, read back and compared.

Each wave is kept whole in the session file, so that it needs no table that may change or go.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from altmas.above import above
from altmas.errors import MethodError, PlanError, PoolError
from altmas.methods import Method
from altmas.pool import Pool
from altmas.pool.growth import WAVE, fitting
from altmas.pool.naming import refuse_unwritable
from altmas.session.archive import LIMIT, archivable, items_kept, parts_of, pool_of
from altmas.session.log import State
from altmas.session.store import LabelStore
from altmas.suggest import listing

Roles = Mapping[str, Any]


class Waves:
    """The items of each wave, read from the session file once."""

    def __init__(self, store: LabelStore) -> None:
        self.store = store
        self._read: dict[str, Pool] = {}

    def __call__(self, items: Mapping[str, Any]) -> Pool:
        """The items that an event says were added."""
        key = json.dumps(items["fingerprint"], sort_keys=True)
        if key not in self._read:
            number = int(items["number"])
            self._read[key] = pool_of(lambda name: self.store.part(_part(number, name)))
        return self._read[key]

    def add(self, more: Pool, wave: str, first: str, number: int) -> dict[str, Any]:
        """What an event says of items that are written beside it; inside a transaction."""
        self.store.add_parts(_numbered(more, number))
        self._read[json.dumps(more.fingerprint, sort_keys=True)] = more
        return {"wave": wave, "first": first, "number": number, "points": len(more), "fingerprint": more.fingerprint}


def _part(number: int, name: str) -> str:
    return f"wave {number}: {name}"


def _numbered(more: Pool, number: int) -> Iterator[tuple[str, int, bytes]]:
    return ((_part(number, name), chunk, data) for name, chunk, data in parts_of(more))


def fitting_items(pool: Pool, items: Any, columns: Roles, method: Method) -> Pool:
    """The items of a table or a pool as they are added to this one; PoolError or MethodError if they cannot be."""
    if not method.traits.grows:
        raise MethodError(
            f"method {method.name!r} cannot go on when items are added: what it has drawn is about the first pool "
            "alone; methods that can: assured, tradition; nothing was recorded"
        )
    if pool.group is not None:
        raise PoolError(
            "items cannot be added to a pool with groups: which of them would go on in the new items is not known; "
            "nothing was recorded"
        )
    if pool.sampled_from is not None:
        raise PoolError(
            f"items cannot be added to a pool that is a random sample of {pool.sampled_from:,} rows: of those that "
            "came later it would be none; make a new session; nothing was recorded"
        )
    more = items if isinstance(items, Pool) else _from_table(pool, items, columns)
    if more.sampled_from is not None:
        raise PoolError(
            f"the items are a random sample of {more.sampled_from:,} rows, the points of this session are all there "
            "are; add all of them (sample=0); nothing was recorded"
        )
    more = fitting(pool, more)
    if not archivable(more) or not items_kept(more):
        raise PoolError(
            f"the items are more than {LIMIT // 2**20} MB, or nothing that a file can keep; add them in smaller waves; "
            "nothing was recorded"
        )
    return more


def _from_table(pool: Pool, table: Any, columns: Roles) -> Pool:
    """The pool in a table whose columns have the roles that they had in the session's, or other ones."""
    roles = {role: value for role, value in (pool.source or {}).items() if role not in ("table", "folder")}
    roles |= {"classes": list(pool.classes)} | {role: value for role, value in columns.items() if value}
    if "prediction" not in roles and pool.models:
        raise PlanError(
            "which columns of the table are meant is not known: this session was not made from a table; give "
            "columns={'prediction': ..., 'id': ...} or a Pool; nothing was recorded"
        )
    named = roles.get("prediction")
    roles["slices"] = [name for name in roles.get("slices") or () if name != WAVE]
    if isinstance(named, Mapping):
        roles["prediction"] = list(named.values())
    like = (
        pool.source["table"] if pool.source is not None and pool.made_features and not columns.get("features") else None
    )
    try:
        added: Pool = above("pool_from_table")(table, **{"prediction": None} | roles, like=like)
    except PoolError as cause:
        if "is not one of the classes" not in str(cause):
            raise
        raise PoolError(
            f"{cause}; name a further class as one of the classes to be added (--class); nothing was recorded"
        ) from cause
    if isinstance(named, Mapping):
        added = added.with_models(*(_called(added, column, name) for name, column in named.items()))
    return added


def _called(pool: Pool, column: str, name: str) -> Any:
    model = pool.model(column)
    return type(model)(name, model.predictions, model.scores)


def wave_names(state: State, wave: str | None, first: str | None) -> tuple[str, str]:
    """(the name of new items, that of the first points): as given, or dates; PlanError if one cannot be."""
    column = state.pool.slices.get(WAVE)
    waves = [] if column is None else sorted(set(column.tolist()))
    if waves and first is not None:
        raise PlanError(
            f"the first points are in the wave{'s' * (len(waves) > 1)} {listing(waves)} already; leave first_wave out; "
            "nothing was recorded"
        )
    beginning = first or state.created_at[:10] or "first"
    taken = waves or [beginning]
    name = wave if wave is not None else _free_name(datetime.now(UTC).date().isoformat(), taken)
    for text in (name, beginning):
        if not isinstance(text, str) or not text.strip() or text != text.strip() or not text.isprintable():
            raise PlanError(f"wave {text!r} was not understood; give a text such as '2026-11'; nothing was recorded")
        refuse_unwritable([text], "wave")
    if name in taken:
        raise PlanError(f"there is a wave {name!r} already ({listing(taken)}); give another name; nothing was recorded")
    return name, beginning


def _free_name(base: str, taken: Sequence[str]) -> str:
    """The name, with the first number behind it that makes it new."""
    names = (base if count == 1 else f"{base}-{count}" for count in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)
