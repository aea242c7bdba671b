"""A small network, D -> 256 -> 256 -> C with ReLU (docs/equations.md A.4), trained in JAX and run in numpy.

Training reads its minibatches through fixed-size segments of rows that are gathered on the host, so one compiled
program serves any number of training examples: nothing compiles again while labels are told, and the training set
never has to fit into memory twice. Prediction is plain matrix products, for which numpy's BLAS needs no compilation.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from altmas.compute import jax as load_jax
from altmas.data.features import Rows

Array = NDArray[Any]
Floats = NDArray[np.float32]

HIDDEN = 256
SEGMENT = 2**22
"""Numbers that go to the compiled program together (16 MB of rows)."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a network is trained: Adam with L2 on minibatches, from fresh random weights.

    max_steps  an upper limit on epochs * ceil(n / batch): with thousands of pseudo-labels the network has converged
               long before 100 epochs
    """

    learning_rate: float = 1e-3
    epochs: int = 100
    batch: int = 64
    weight_decay: float = 1e-4
    max_steps: int = 2000

    def steps(self, n: int) -> int:
        """Minibatches in the training on n examples."""
        return min(self.max_steps, self.epochs * -(-n // self.batch))


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
    n, columns = x.shape
    y = np.asarray(y, np.int32)
    each = np.ones(n, np.float32) if example_weights is None else np.asarray(example_weights, np.float32)
    steps, batch = training.steps(n), training.batch
    order = visits(n, steps * batch, rng).reshape(steps, batch)
    together = max(1, min(256, SEGMENT // (batch * columns)))
    run, start = _program()
    weights = initial_weights(columns, n_classes, rng)
    state, key = start(weights), np.uint32(rng.integers(2**32))
    loss: Any = np.float32(0)
    for first in range(0, steps, together):
        before = loss
        rows = order[first : first + together]
        data = _padded(np.asarray(x[rows.ravel()], np.float32).reshape(*rows.shape, columns), together)
        weights, state, loss = run(
            (weights, state, loss),
            data,
            _padded(y[rows], together),
            _padded(each[rows], together),
            (key, np.int32(first), np.int32(len(rows))),
            (np.float32(training.learning_rate), np.float32(training.weight_decay), np.float32(dropout)),
        )
        np.asarray(before)  # the next rows are gathered while these train, but never more than that
    return Trained(Weights(*map(np.asarray, weights)), float(loss), steps)


def visits(n: int, total: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(total,) the examples in the order they are visited: one random permutation of all n after the other."""
    repeats = -(-total // n)
    return rng.permuted(np.tile(np.arange(n), (repeats, 1)), axis=1).ravel()[:total]


def _padded(values: Array, length: int) -> Array:
    """The same with rows of zeros behind it, which the program never reads."""
    if len(values) == length:
        return values
    return np.concatenate([values, np.zeros((length - len(values), *values.shape[1:]), values.dtype)])


@cache
def _program() -> tuple[Any, Any]:
    """(run, start): `run` trains for the steps of one segment, `start` is the state of a fresh optimiser."""
    jax = load_jax()
    import optax

    jnp = jax.numpy

    def optimiser(learning_rate: Any, weight_decay: Any) -> Any:
        return optax.chain(optax.add_decayed_weights(weight_decay), optax.adam(learning_rate))

    def dropped(h: Any, key: Any, dropout: Any) -> Any:
        """Inverted dropout; sixteen random bits for each unit are enough and half the work of a float."""
        keep = jax.random.bits(key, h.shape, jnp.uint16) < jnp.round((1 - dropout) * 65_536).astype(jnp.uint32)
        return jnp.where(keep, h / (1 - dropout), 0.0)

    def loss(weights: Weights, x: Any, y: Any, each: Any, key: Any, dropout: Any) -> Any:
        first, second = jax.random.split(key)
        h = dropped(jax.nn.relu(x @ weights.w1 + weights.b1), first, dropout)
        h = dropped(jax.nn.relu(h @ weights.w2 + weights.b2), second, dropout)
        entropy = optax.softmax_cross_entropy_with_integer_labels(h @ weights.w3 + weights.b3, y)
        return (each * entropy).sum() / each.sum()

    def run(carry: Any, x: Any, y: Any, each: Any, clock: Any, settings: Any) -> Any:
        (seed, first, steps), (learning_rate, weight_decay, dropout) = clock, settings
        update = optimiser(learning_rate, weight_decay).update

        def step(i: Any, carry: Any) -> Any:
            weights, state, recent = carry
            key = jax.random.fold_in(jax.random.key(seed), first + i)
            value, gradient = jax.value_and_grad(loss)(weights, x[i], y[i], each[i], key, dropout)
            change, state = update(gradient, state, weights)
            recent += (value - recent) * jnp.where(first + i == 0, 1.0, 0.05)
            return optax.apply_updates(weights, change), state, recent

        return jax.lax.fori_loop(0, steps, step, carry)

    def start(weights: Weights) -> Any:
        shapes = jax.eval_shape(optimiser(0.0, 0.0).init, weights)
        return jax.tree.map(lambda shape: np.zeros(shape.shape, shape.dtype), shapes)

    return jax.jit(run), start


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
