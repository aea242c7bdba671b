"""True class probability and a network that learns it (D.8), after ConfidNet (Corbiere et al. 2019).

The published head sits on the model's own features and its training data; this one sees any features beside the
model's scores, and learns from the labels of the pool.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from altmas.compute import jax as load_jax
from altmas.methods.paper.surrogates.minibatches import Training, segments
from altmas.methods.paper.surrogates.mlp import Floats, Trained, Weights, initial_weights, probabilities
from altmas.types import Array


def true_class_probability(scores: Array, y: Array, *, normalised: bool = False) -> Array:
    """(D4) pi[y]: above 1/2 the model is right, below 1/C wrong; normalised by max pi it is 1 iff right."""
    true_scores = scores[np.arange(len(scores)), y]
    return np.asarray(true_scores / scores.max(1) if normalised else true_scores)


@dataclass(frozen=True)
class ConfidenceHead:
    """c(x) in (0, 1), an estimate of the true class probability of each point.

    It ranks points; wrong answers count more in its training than their share, so calibrate it (Platt) before reading
    it as a probability.
    """

    trained: Trained

    def __call__(self, x: Array, scores: Array) -> Array:
        """(N,) from features x (N, D), standardised, and the model's scores (N, C)."""
        return np.asarray(probabilities(self.trained.weights, _seen(x, scores))[:, 1], np.float64)

    @classmethod
    def fit(
        cls,
        x: Array,
        scores: Array,
        y: Array,
        rng: np.random.Generator,
        *,
        training: Training | None = None,
        error_weight: float | None = None,
    ) -> "ConfidenceHead":
        """(D5) by least squares to pi[y] of labelled points with codes y.

        error_weight  how much a wrong answer counts; by default right and wrong ones count the same in total, as a
                      head that sees few errors learns to be always sure
        """
        training = training or Training(learning_rate=1e-3, max_steps=2000)  # its rate does not fall
        target = true_class_probability(scores, y).astype(np.float32)
        wrong = scores.argmax(1) != y
        if error_weight is None:
            error_weight = max(1.0, float((~wrong).sum()) / max(1, int(wrong.sum())))
        weights = np.where(wrong, np.float32(error_weight), np.float32(1))
        return cls(_train(_seen(x, scores), target, weights, training, rng))


def _seen(x: Array, scores: Array) -> Floats:
    return np.concatenate([x, scores], axis=1).astype(np.float32)


def _train(x: Floats, target: Floats, weights: Floats, training: Training, rng: np.random.Generator) -> Trained:
    run, start = _program()
    network: Any = initial_weights(x.shape[1], 2, rng)
    state, loss = start(network), np.float32(0)
    rates = np.float32(training.learning_rate), np.float32(training.weight_decay)
    for segment in segments(x, target, weights, training, rng):
        network, state, loss = run((network, state, loss), segment, rates)
    return Trained(Weights(*map(np.asarray, network)), float(loss), training.steps(len(x)))


@cache
def _program() -> tuple[Any, Any]:
    """(run, start) as in mlp.py, for the squared error of a sigmoid, which is a softmax over two classes."""
    jax = load_jax()
    import optax

    jnp = jax.numpy

    def optimiser(learning_rate: Any, weight_decay: Any) -> Any:
        return optax.chain(optax.add_decayed_weights(weight_decay), optax.adam(learning_rate))

    def loss(w: Weights, x: Any, target: Any, weights: Any) -> Any:
        h = jax.nn.relu(x @ w.w1 + w.b1)
        z = jax.nn.relu(h @ w.w2 + w.b2) @ w.w3 + w.b3
        return (weights * (jax.nn.sigmoid(z[:, 1] - z[:, 0]) - target) ** 2).sum() / weights.sum()

    def run(carry: Any, segment: Any, rates: Any) -> Any:
        update = optimiser(*rates).update

        def step(i: Any, carry: Any) -> Any:
            w, state, recent = carry
            value, gradient = jax.value_and_grad(loss)(w, segment.x[i], segment.targets[i], segment.weights[i])
            change, state = update(gradient, state, w)
            recent += (value - recent) * jnp.where(segment.first + i == 0, 1.0, 0.05)
            return optax.apply_updates(w, change), state, recent

        return jax.lax.fori_loop(0, segment.steps, step, carry)

    def start(weights: Any) -> Any:
        shapes = jax.eval_shape(optimiser(0.0, 0.0).init, weights)
        return jax.tree.map(lambda shape: np.zeros(shape.shape, shape.dtype), shapes)

    return jax.jit(run), start
