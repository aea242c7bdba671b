"""The answers of a further model in the order of a pool: by row, or by id."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from altmas.errors import PoolError
from altmas.pool.naming import names_of
from altmas.pool.pool import Pool
from altmas.suggest import listing


def aligned(
    pool: Pool,
    predictions: ArrayLike | Mapping[Any, Any],
    ids: ArrayLike | None = None,
    *,
    whose: str = "the second model",
    outcome: str = "nothing was compared",
) -> tuple[NDArray[np.int64] | None, NDArray[Any]]:
    """(which of the given rows each point is, or None where they are in its order; (N,) answers in its order).

    PoolError or UnknownPoint names what does not fit: a number, an id that is unknown, missing or there twice.
    """
    if isinstance(predictions, Mapping):
        if ids is not None:
            raise PoolError("predictions by id need no ids; give {id: prediction}, or predictions and their ids")
        ids, predictions = list(predictions), list(predictions.values())
    names = names_of(predictions, f"predictions of {whose}")
    rows = None
    if ids is not None:
        rows = _rows_of_pool(pool, names_of(ids, f"ids of {whose}"), len(names), whose, outcome)
        names = names[rows]
    if len(names) != len(pool):
        raise PoolError(
            f"{whose} has {len(names):,} predictions, the pool has {len(pool):,} points; give one for each "
            f"point in the order of the pool, or with its id: {{id: prediction}}, or ids=..., or --id COLUMN; {outcome}"
        )
    return rows, names


def _rows_of_pool(pool: Pool, ids: NDArray[Any], predictions: int, whose: str, outcome: str) -> NDArray[np.int64]:
    """(N,) which of the given ids is each point of the pool."""
    if len(ids) != predictions:
        raise PoolError(
            f"{whose} has {predictions:,} predictions and {len(ids):,} ids; give one id for each; {outcome}"
        )
    position_of: dict[int, int] = {}
    pool_ids = None if pool.sampled_from is None else set(map(str, pool.ids))  # other rows of the table do not matter
    for position, id in enumerate(ids.tolist()):
        if pool_ids is not None and str(id) not in pool_ids:
            continue
        row = pool.index(id)
        if position_of.setdefault(row, position) != position:
            raise PoolError(
                f"{whose} has two predictions for the point {pool.ids[row]!r}, in rows {position_of[row]} "
                f"and {position}; exactly one is needed for each point: keep one of the rows; {outcome}"
            )
    missing = [pool.ids[row] for row in range(len(pool)) if row not in position_of]
    if missing:
        raise PoolError(
            f"{whose} has no prediction for {len(missing):,} of {len(pool):,} points (first: "
            f"{listing(missing, 3)}); one is needed for each point of the pool; {outcome}"
        )
    return np.array([position_of[row] for row in range(len(pool))], np.int64)
