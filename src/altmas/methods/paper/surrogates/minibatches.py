"""Training examples as segments of minibatches, so that one compiled program serves any number of examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from altmas.pool.features import Rows
from altmas.types import Array

SEGMENT = 2**22
"""Numbers that go to the compiled program together (16 MB of rows)."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a network is trained: Adam with L2 on minibatches, from fresh random weights.

    learning_rate  at the first step; it falls to 0 in a straight line
    max_steps      an upper limit on epochs * ceil(n / batch)
    enough         training ends before that once the loss, averaged over the last twenty steps or so, is below this:
                   from there on the network would only memorise its examples
    """

    learning_rate: float = 3e-3
    epochs: int = 100
    batch: int = 64
    weight_decay: float = 1e-4
    max_steps: int = 1000
    enough: float = 0.02

    def steps(self, n: int) -> int:
        """Minibatches in the training on n examples, if the loss does not end it before."""
        return min(self.max_steps, self.epochs * -(-n // self.batch))


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
    x: Rows,
    targets: Array,
    weights: Array | None,
    training: Training,
    rng: np.random.Generator,
    columns: int | None = None,
) -> Iterator[Segment]:
    """The whole training in order; each example is visited once before any is visited again.

    The order is drawn at once, the rows are gathered when they are needed, filled up with zeros to `columns`.
    """
    n, wide = x.shape
    columns = columns or wide
    example_weights = np.ones(n, np.float32) if weights is None else np.asarray(weights, np.float32)
    steps, batch = training.steps(n), training.batch
    order = visits(n, steps * batch, rng).reshape(steps, batch)
    together = max(1, min(256, SEGMENT // (batch * columns)))

    def segment(first: int) -> Segment:
        rows = order[first : first + together]
        data = np.zeros((together, batch, columns), np.float32)
        data[: len(rows), :, :wide] = np.asarray(x[rows.ravel()], np.float32).reshape(*rows.shape, wide)
        batch_targets, batch_weights = (_full(part, together) for part in (targets[rows], example_weights[rows]))
        return Segment(data, batch_targets, batch_weights, np.int32(first), np.int32(len(rows)))

    return map(segment, range(0, steps, together))


def visits(n: int, total: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(total,) the examples in the order they are visited: one random permutation of all n after the other."""
    repeats = -(-total // n)
    return rng.permuted(np.tile(np.arange(n), (repeats, 1)), axis=1).ravel()[:total]


def _full(values: Array, length: int) -> Array:
    missing = length - len(values)
    return np.concatenate([values, np.zeros((missing, *values.shape[1:]), values.dtype)]) if missing else values
