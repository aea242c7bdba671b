"""A small network, D -> 256 -> 256 -> C with ReLU (docs/equations.md A.4), trained in JAX and run in numpy.

Training reads its minibatches through fixed-size segments of rows that are gathered on the host, so one compiled
program serves any number of training examples: nothing compiles again while labels are told, and the training set
never has to fit into memory twice. Prediction is plain matrix products, for which numpy's BLAS needs no compilation.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from altmas.compute import jax as load_jax
from altmas.methods.paper.surrogates.minibatches import Training, segments
from altmas.pool.features import Rows
from altmas.types import Array

Floats = NDArray[np.float32]

HIDDEN = 256


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
    run, start = _program()
    waiting = segments(x, np.asarray(y, np.int32), example_weights, training, rng)
    weights: Any = initial_weights(x.shape[1], n_classes, rng)
    carry: Any = weights, start(weights), np.float32(0), np.int32(0)
    key = np.uint32(rng.integers(2**32))
    rates = tuple(map(np.float32, (training.learning_rate, training.weight_decay, dropout, training.enough)))
    for segment in waiting:
        before, carry = carry, run(carry, segment, key, rates)
        if before[3] < segment.first:  # the next rows are gathered while these train, but never more than that
            break
    weights, _, loss, steps = carry
    return Trained(Weights(*map(np.asarray, weights)), float(loss), int(steps))


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

    def run(carry: Any, segment: Any, seed: Any, rates: Any) -> Any:
        learning_rate, weight_decay, dropout, enough = rates
        update = optimiser(learning_rate, weight_decay).update

        def goes_on(carry: Any) -> Any:
            _, _, recent, done = carry
            return (done < segment.first + segment.steps) & ((recent >= enough) | (done == 0))

        def step(carry: Any) -> Any:
            weights, state, recent, done = carry
            i, key = done - segment.first, jax.random.fold_in(jax.random.key(seed), done)
            batch = segment.x[i], segment.targets[i], segment.weights[i]
            value, gradient = jax.value_and_grad(loss)(weights, *batch, key, dropout)
            change, state = update(gradient, state, weights)
            recent += (value - recent) * jnp.where(done == 0, 1.0, 0.05)
            return optax.apply_updates(weights, change), state, recent, done + 1

        return jax.lax.while_loop(goes_on, step, carry)

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
