"""Random-walk Metropolis for a handful of parameters, all chains at once, and how well the chains agree."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from altmas.types import Array

LogDensity = Callable[[Array], Array]
"""(..., d) -> (...); -inf where it cannot be."""

TARGET_ACCEPTED = 0.3
"""Share of accepted steps that the step length is tuned to while the chains warm up."""


class Chains(NamedTuple):
    """kept (chains, steps, d) after the first half was thrown away; r_hat (d,); accepted, the share of moves."""

    kept: Array
    r_hat: Array
    accepted: float


def metropolis(
    log_density: LogDensity, start: Array, covariance: Array, rng: np.random.Generator, chains: int, steps: int
) -> Chains:
    """Chains from overdispersed starts around `start` (d,); the first half tunes the steps and is thrown away."""
    d = len(start)
    shape = np.linalg.cholesky(covariance)
    at, now = _starts(log_density, start, shape, rng, chains)
    log_length = np.log(2.38 / np.sqrt(d))
    warm, kept, accepted = steps // 2, np.empty((chains, steps - steps // 2, d)), 0.0
    seen = np.empty((chains, warm, d))
    for step in range(steps):
        proposal = at + np.exp(log_length) * rng.standard_normal((chains, d)) @ shape.T
        new = log_density(proposal)
        taken = np.log(rng.random(chains)) < new - now
        at, now = np.where(taken[:, None], proposal, at), np.where(taken, new, now)
        if step < warm:
            seen[:, step] = at
            log_length += (taken.mean() - TARGET_ACCEPTED) / (1 + step / 20) ** 0.6
            if step + 1 == warm // 2 or step + 1 == 3 * warm // 4:
                shape, log_length = _relearned(seen[:, warm // 8 : step + 1], shape), np.log(2.38 / np.sqrt(d))
        else:
            kept[:, step - warm] = at
            accepted += float(taken.mean())
    return Chains(kept, r_hat(kept), accepted / max(1, steps - warm))


def _starts(log_density: LogDensity, start: Array, shape: Array, rng: np.random.Generator, chains: int) -> Any:
    """Possible starts, spread twice as wide as the density; nearer to `start` where that is impossible."""
    at = np.tile(start, (chains, 1))
    offsets = rng.standard_normal((chains, len(start))) @ shape.T
    for width in (2.0, 1.0, 0.5, 0.1, 0.0):
        proposal = start + width * offsets
        possible = np.isfinite(log_density(proposal))
        unset = possible & (at == start).all(1)
        at[unset] = proposal[unset]
    return at, log_density(at)


def _relearned(seen: Array, shape: Array) -> Array:
    """The Cholesky factor of what the chains saw, or the old one where they hardly moved."""
    covariance = np.cov(seen.reshape(-1, seen.shape[-1]).T)
    try:
        return np.linalg.cholesky(covariance + 1e-12 * np.eye(len(covariance)))
    except np.linalg.LinAlgError:
        return shape


def r_hat(draws: Array) -> Array:
    """(d,) split R-hat of chains (m, n, d): about 1 where halves of all chains agree."""
    half = draws.shape[1] // 2
    parts = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    within, between = parts.var(axis=1, ddof=1).mean(0), parts.mean(axis=1).var(axis=0, ddof=1)
    still = within <= 0
    return np.where(still, np.inf, np.sqrt((half - 1) / half + between / np.where(still, 1.0, within)))


def curvature(log_density: LogDensity, at: Array, step: float = 1e-3) -> Array:
    """(d, d) a covariance from the second differences at a maximum; too flat or bent directions are bounded."""
    d = len(at)
    moves = step * np.eye(d)
    corners = np.array([[i + s * j for s in (1, -1)] for i in moves for j in moves])  # (d*d, 2, d)
    plus, minus = log_density(at + corners), log_density(at - corners)
    with np.errstate(invalid="ignore"):  # beside the support the density is 0: what is no number counts as flat
        hessian = ((plus[:, 0] + minus[:, 0] - plus[:, 1] - minus[:, 1]) / (4 * step**2)).reshape(d, d)
    values, vectors = np.linalg.eigh(-np.nan_to_num(hessian, nan=0.0, posinf=0.0, neginf=0.0))
    return np.asarray((vectors / np.clip(values, 0.25, 1e10)) @ vectors.T)
