"""Bayes by Backprop (docs/confidence.md D.9): every weight has a mean and a spread of its own, learned together.

w = mu + ln(1 + exp(rho)) eps                                       (D6)
loss = share of the batch * [ln q(w) - ln prior(w)] - ln p(batch | w)
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from altmas.compute import jax as load_jax
from altmas.methods.paper.surrogates.minibatches import Training, segments
from altmas.methods.paper.surrogates.mlp import Floats, Trained, Weights, initial_weights, probabilities
from altmas.pool.features import Rows
from altmas.types import Array


@dataclass(frozen=True, kw_only=True)
class Prior:
    """(D7) narrow and wide normal distributions around 0, mixed: `wide` share of the wide one."""

    wide: float = 0.5
    log_wide_sd: float = 0.0
    log_narrow_sd: float = -6.0


@dataclass(frozen=True)
class BayesByBackprop:
    """A network whose weights are independent normal distributions.

    rho  where every rho starts; the spread of the weights is ln(1 + exp(rho)). The draws are sensitive to it: within
         the few steps that some hundred labels allow, spreads do not move far from here
    """

    training: Training = Training()
    prior: Prior = Prior()
    rho: float = -4.0

    def fit(
        self, x: Rows, y: Array, n_classes: int, rng: np.random.Generator, weights: Array | None = None
    ) -> "BayesianNetwork":
        n, columns = x.shape
        mean: Any = initial_weights(columns, n_classes, rng)
        rho: Any = Weights(*(np.full(part.shape, self.rho, np.float32) for part in mean))
        run, start = _program()
        state, loss = start((mean, rho)), np.float32(0)
        key = np.uint32(rng.integers(2**32))
        batches, total = -(-n // self.training.batch), np.float32(self.training.steps(n))
        prior = self.prior.wide, self.prior.log_wide_sd, self.prior.log_narrow_sd
        rates = tuple(map(np.float32, (self.training.learning_rate, *prior)))
        for segment in segments(x, np.asarray(y, np.int32), weights, self.training, rng):
            (mean, rho), state, loss = run(((mean, rho), state, loss), segment, (key, np.int32(batches), total), rates)
        spread = Weights(*(np.logaddexp(0, np.asarray(part)).astype(np.float32) for part in rho))
        trained = Trained(Weights(*map(np.asarray, mean)), float(loss), self.training.steps(n))
        return BayesianNetwork(trained, spread)


@dataclass(frozen=True)
class BayesianNetwork:
    """Means (in `trained`) and spreads of the weights."""

    trained: Trained
    spread: Weights

    def mean(self, x: Floats) -> Floats:
        return probabilities(self.trained.weights, x)

    def draws(self, count: int, rng: np.random.Generator) -> "WeightDraws":
        return WeightDraws(tuple(self._draw(rng) for _ in range(count)))

    def _draw(self, rng: np.random.Generator) -> Weights:
        pairs = zip(self.trained.weights, self.spread, strict=True)
        return Weights(*(mean + spread * rng.standard_normal(mean.shape, np.float32) for mean, spread in pairs))


@dataclass(frozen=True)
class WeightDraws:
    """Whole networks, drawn once, so that every point sees the same ones (A1)."""

    networks: tuple[Weights, ...]

    @property
    def count(self) -> int:
        return len(self.networks)

    def __call__(self, x: Floats) -> Floats:
        return np.stack([probabilities(network, x) for network in self.networks])


def batch_share(i: Any, batches: Any) -> Any:
    """(D7) 2^(B-i) / (2^B - 1), the share of batch i = 1..B in the penalty; the shares of an epoch sum to 1."""
    return 2.0**-i / (1 - 2.0**-batches)


def log_ratio(xp: Any, w: Any, mean: Any, spread: Any, wide: Any, log_wide_sd: Any, log_narrow_sd: Any) -> Any:
    """ln q(w) - ln prior(w) of each weight, by numpy or jax.numpy (xp); the prior is a mixture (D7)."""

    def log_normal(distance: Any, log_sd: Any) -> Any:
        return -0.5 * (distance * xp.exp(-log_sd)) ** 2 - log_sd  # both sides leave out ln sqrt(2 pi)

    prior = xp.logaddexp(xp.log(wide) + log_normal(w, log_wide_sd), xp.log1p(-wide) + log_normal(w, log_narrow_sd))
    return log_normal(w - mean, xp.log(spread)) - prior


@cache
def _program() -> tuple[Any, Any]:
    """(run, start) as in mlp.py: `run` trains for the steps of one segment."""
    jax = load_jax()
    import optax

    jnp = jax.numpy

    def drawn(mean: Weights, rho: Weights, key: Any, prior: Any) -> tuple[Weights, Any]:
        """One draw of all weights, and ln q - ln prior of it."""
        spread = [jax.nn.softplus(part) for part in rho]
        ends = np.cumsum([part.size for part in mean]).tolist()
        noise = jnp.split(jax.random.normal(key, (ends[-1],)), ends[:-1])
        w = [m + s * e.reshape(m.shape) for m, s, e in zip(mean, spread, noise, strict=True)]
        penalty = sum(log_ratio(jnp, *part, *prior).sum() for part in zip(w, mean, spread, strict=True))
        return Weights(*w), penalty

    def loss(parameters: Any, x: Any, y: Any, weights: Any, key: Any, factor: Any, prior: Any) -> Any:
        mean, rho = parameters
        w, penalty = drawn(mean, rho, key, prior)
        h = jax.nn.relu(x @ w.w1 + w.b1)
        h = jax.nn.relu(h @ w.w2 + w.b2)
        entropy = (weights * optax.softmax_cross_entropy_with_integer_labels(h @ w.w3 + w.b3, y)).sum()
        return (factor * penalty + entropy) / weights.sum(), entropy / weights.sum()

    def run(carry: Any, segment: Any, clock: Any, rates: Any) -> Any:
        (seed, batches, total), (learning_rate, *prior) = clock, rates
        update = optax.adam(learning_rate).update

        def step(i: Any, carry: Any) -> Any:
            parameters, state, recent = carry
            number = segment.first + i
            key = jax.random.fold_in(jax.random.key(seed), number)
            factor = batch_share((number % batches + 1).astype(jnp.float32), batches.astype(jnp.float32))
            batch = segment.x[i], segment.targets[i], segment.weights[i]
            (_, value), gradient = jax.value_and_grad(loss, has_aux=True)(parameters, *batch, key, factor, prior)
            change, state = update(gradient, state, parameters)
            change = jax.tree.map(lambda part: part * (1 - number / total), change)
            recent += (value - recent) * jnp.where(number == 0, 1.0, 0.05)
            return optax.apply_updates(parameters, change), state, recent

        return jax.lax.fori_loop(0, segment.steps, step, carry)

    def start(parameters: Any) -> Any:
        shapes = jax.eval_shape(optax.adam(0.0).init, parameters)
        return jax.tree.map(lambda shape: np.zeros(shape.shape, shape.dtype), shapes)

    return jax.jit(run), start
