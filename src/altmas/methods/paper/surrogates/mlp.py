"""A small network, D -> 256 -> 256 -> C with ReLU (docs/equations.md A.4), trained in JAX and run in numpy.

Training reads its minibatches through fixed-size segments of rows that are gathered on the host, so one compiled
program serves any number of training examples: nothing compiles again while labels are told, and the training set
never has to fit into memory twice. Columns and classes are filled up with zeros to the next size class, so the two
networks of a round share that program as well. Prediction is plain matrix products, for which numpy's BLAS needs no
compilation.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from altmas.compute import jax as load_jax
from altmas.methods.paper.surrogates.minibatches import Segment, Training, segments
from altmas.pool.features import Rows
from altmas.types import Array

Floats = NDArray[np.float32]

HIDDEN = 256
FIRST, SECOND = 0.9, 0.999
"""Adam's decay rates of the mean of the gradient and of the mean of its square."""
NEVER = -1e9
"""The logit of a class that only fills up the size class."""


class Weights(NamedTuple):
    """w1 (D, 256), b1 (256,), w2 (256, 256), b2 (256,), w3 (256, C), b3 (C,), all float32."""

    w1: Any
    b1: Any
    w2: Any
    b2: Any
    w3: Any
    b3: Any


class Trained(NamedTuple):
    """A network's weights, its training loss averaged over the last twenty steps or so, and how many there were."""

    weights: Weights
    loss: float
    steps: int


def initial_weights(columns: int, n_classes: int, rng: np.random.Generator) -> Weights:
    """He's normal initialisation; biases 0."""

    def normal(fan_in: int, fan_out: int) -> Floats:
        return rng.standard_normal((fan_in, fan_out), np.float32) * np.float32(np.sqrt(2 / fan_in))

    def zeros(n: int) -> Floats:
        return np.zeros(n, np.float32)

    return Weights(
        normal(columns, HIDDEN),
        zeros(HIDDEN),
        normal(HIDDEN, HIDDEN),
        zeros(HIDDEN),
        normal(HIDDEN, n_classes),
        zeros(n_classes),
    )


def train(
    x: Rows,
    y: Array,
    n_classes: int,
    training: Training,
    dropout: float,
    rng: np.random.Generator,
    example_weights: Array | None = None,
) -> Trained:
    """A network trained from scratch on (x, y) with cross-entropy.

    x  rows by position: an (n, D) float32 array or Features;  y  (n,) codes 0..n_classes-1
    """
    run, columns = _program(), padded_columns(x.shape[1])
    waiting = segments(x, np.asarray(y, np.int32), example_weights, training, rng, columns)
    weights: Any = _padded(initial_weights(x.shape[1], n_classes, rng), columns)
    empty = Weights(*map(np.zeros_like, weights))
    carry: Any = weights, empty, empty, np.float32(0), np.int32(0)
    bits = np.random.default_rng(rng.integers(2**32))
    total = training.steps(len(y))
    rates = tuple(map(np.float32, (training.learning_rate, training.weight_decay, dropout, training.enough, total)))
    for segment in waiting:
        before, carry = carry, run(carry, segment, random_bits(segment, bits), rates)
        if before[-1] < segment.first:  # the next rows are gathered while these train, but never more than that
            break
    weights, _, _, loss, steps = carry
    return Trained(_cut(Weights(*map(np.asarray, weights)), x.shape[1], n_classes), float(loss), int(steps))


# ---------------------------------------------------------------- size classes


def padded_columns(columns: int) -> int:
    """The size class of so many columns: at most about a sixteenth more than there are (and 16 at least)."""
    grain = 1 << max(4, columns.bit_length() - 5)
    return -(-columns // grain) * grain


def padded_classes(n_classes: int) -> int:
    """The size class of so many classes: a power of two, 16 at least."""
    return max(16, 1 << (n_classes - 1).bit_length())


def _padded(weights: Weights, columns: int) -> Weights:
    """The same network with columns that are always 0 and classes that never happen: neither learns anything."""
    more_columns, more_classes = columns - len(weights.w1), padded_classes(len(weights.b3)) - len(weights.b3)
    return weights._replace(
        w1=np.pad(weights.w1, ((0, more_columns), (0, 0))),
        w3=np.pad(weights.w3, ((0, 0), (0, more_classes))),
        b3=np.pad(weights.b3, (0, more_classes), constant_values=NEVER),
    )


def _cut(weights: Weights, columns: int, n_classes: int) -> Weights:
    """The network without what `_padded` added."""
    w1, w3, b3 = weights.w1[:columns], weights.w3[:, :n_classes], weights.b3[:n_classes]
    return weights._replace(w1=w1, w3=np.ascontiguousarray(w3), b3=b3)


# ---------------------------------------------------------------- the compiled program


def random_bits(segment: Segment, rng: np.random.Generator) -> Array:
    """(S, 2, batch, 256) sixteen random bits for each unit of each hidden layer at each step of the segment."""
    shape = (*segment.targets.shape[:1], 2, segment.targets.shape[1], HIDDEN)
    bits = np.zeros(shape, np.uint16)
    used = bits[: segment.steps]
    used[:] = np.frombuffer(rng.bytes(used.nbytes), np.uint16).reshape(used.shape)
    return bits


@cache
def _program() -> Any:
    """Trains for the steps of one segment: Adam with L2, its rate falling to 0 in a straight line."""
    jax = load_jax()
    jnp = jax.numpy

    def loss(weights: Weights, x: Any, y: Any, example_weights: Any, masks: Any) -> Any:
        h = jax.nn.relu(x @ weights.w1 + weights.b1) * masks[0]
        h = jax.nn.relu(h @ weights.w2 + weights.b2) * masks[1]
        logits = h @ weights.w3 + weights.b3
        entropy = jax.nn.logsumexp(logits, axis=1) - jnp.take_along_axis(logits, y[:, None], 1)[:, 0]
        return (example_weights * entropy).sum() / example_weights.sum()

    def run(carry: Any, segment: Any, bits: Any, rates: Any) -> Any:
        learning_rate, weight_decay, dropout, enough, total = rates
        limit = jnp.round((1 - dropout) * 65_536).astype(jnp.uint32)

        def goes_on(carry: Any) -> Any:
            *_, recent, done = carry
            return (done < segment.first + segment.steps) & ((recent >= enough) | (done == 0))

        def step(carry: Any) -> Any:
            weights, first, second, recent, done = carry
            i, t = done - segment.first, (done + 1).astype(jnp.float32)
            masks = jnp.where(bits[i] < limit, 1 / (1 - dropout), 0.0)
            batch = segment.x[i], segment.targets[i], segment.weights[i]
            value, gradient = jax.value_and_grad(loss)(weights, *batch, masks)
            rate = learning_rate * (1 - done / total) / (1 - FIRST**t)
            scale = 1 / (1 - SECOND**t)

            def moved(w: Any, g: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
                g = g + weight_decay * w
                m, v = FIRST * m + (1 - FIRST) * g, SECOND * v + (1 - SECOND) * g * g
                return w - rate * m / (jnp.sqrt(v * scale) + 1e-8), m, v

            parts = (moved(*layer) for layer in zip(weights, gradient, first, second, strict=True))
            weights, first, second = (Weights(*layers) for layers in zip(*parts, strict=True))
            recent += (value - recent) * jnp.where(done == 0, 1.0, 0.05)
            return weights, first, second, recent, done + 1

        return jax.lax.while_loop(goes_on, step, carry)

    return jax.jit(run)


def first_layer(weights: Weights, x: Floats) -> Floats:
    """(256, n) the first hidden layer, which all dropout draws share."""
    hidden: Floats = weights.w1.T @ x.T
    hidden += weights.b1[:, None]
    return np.maximum(hidden, 0, out=hidden)


def later_layers(hidden: Floats, w2: Floats, b2: Floats, w3: Floats, b3: Floats, out: Floats) -> None:
    """Writes (C, n) probabilities into `out` from a first hidden layer (K, n); w2 is (K', K), w3 is (C, K')."""
    second: Floats = w2 @ hidden
    second += b2[:, None]
    np.maximum(second, 0, out=second)
    np.matmul(w3, second, out=out)
    out += b3[:, None]
    out -= out.max(0)
    np.exp(out, out=out)
    out /= out.sum(0)


def probabilities(weights: Weights, x: Floats) -> Floats:
    """(n, C) the network's probabilities with dropout off."""
    out = np.empty((len(weights.b3), len(x)), np.float32)
    later_layers(first_layer(weights, x), weights.w2.T, weights.b2, weights.w3.T, weights.b3, out)
    return out.T
