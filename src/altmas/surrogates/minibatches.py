"""Training examples as segments of minibatches, so that one compiled program serves any number of examples."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from altmas.data.features import Rows
from altmas.surrogates.mlp import SEGMENT, Array, Training, visits


class Segment(NamedTuple):
    """Minibatches that go to the compiled program together; those behind `steps` are zeros that it never reads.

    x (S, batch, D) float32, targets (S, batch), weights (S, batch) float32; first, the number of its first minibatch
    """

    x: Array
    targets: Array
    weights: Array
    first: np.int32
    steps: np.int32


def segments(
    x: Rows, targets: Array, weights: Array | None, training: Training, rng: np.random.Generator
) -> Iterator[Segment]:
    """The whole training in order; each example is visited once before any is visited again."""
    n, columns = x.shape
    each = np.ones(n, np.float32) if weights is None else np.asarray(weights, np.float32)
    steps, batch = training.steps(n), training.batch
    order = visits(n, steps * batch, rng).reshape(steps, batch)
    together = max(1, min(256, SEGMENT // (batch * columns)))
    for first in range(0, steps, together):
        rows = order[first : first + together]
        data = np.asarray(x[rows.ravel()], np.float32).reshape(*rows.shape, columns)
        data, wanted, weight = (_full(part, together) for part in (data, targets[rows], each[rows]))
        yield Segment(data, wanted, weight, np.int32(first), np.int32(len(rows)))


def _full(values: Array, length: int) -> Array:
    missing = length - len(values)
    return np.concatenate([values, np.zeros((missing, *values.shape[1:]), values.dtype)]) if missing else values
