"""Exposure of draws recorded by the first edition of `assured` (0.1): read, never written.

Each batch brought every point's inclusion probability to scale * size, and added at least `floor` to its exposure.
"""

from collections.abc import Sequence

import numpy as np

from altmas.history import Batch
from altmas.types import Array

SIZES = np.geomspace(0.02, 4000.0, 256)
MOST = 0.99999


def first_edition_exposure(batches: Sequence[Batch], n_points: int) -> Array:
    """(N,) exposure after these batches; inclusion probability is 1 - exp(-exposure)."""
    exposure, sizes = np.zeros(n_points), np.ones(n_points)
    for batch in batches:
        if "levels" in batch.record:
            sizes = SIZES[batch.record["levels"]]
        if "scale" in batch.record:
            scale, floor = batch.record["scale"].tolist()
            target = -np.log1p(-np.minimum(scale * sizes, MOST))
            exposure = exposure + np.maximum(target - exposure, floor)
    return exposure
