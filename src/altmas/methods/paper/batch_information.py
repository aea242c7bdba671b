"""What the labels of several points tell together about the surrogate: BatchBALD (docs/confidence.md B.3).

probs[j, i, c] = p(y_i = c | x_i, w_j) for M draws that are shared by all points.
A state s is one labelling of the points chosen so far. Given it, draw j has probability
    posterior[s, j] = JT[s, j] / sum_j JT[s, j],   JT[s, j] = prod over chosen i of P[j, i, y_i]
so a further point adds                            (B4) as a chain rule
    gain(i) = sum_s share_s H(posterior_s @ P[:, i, :]) - mean_j H(P[j, i, :])
with share_s = p(s) over all C^|B| states (B5), or 1/S over S states drawn from the networks themselves (B6).
Nothing underflows, since only ratios of products are kept.
"""

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from altmas.types import Array

Floats = NDArray[np.float64]

TOGETHER = 2**21
"""Joint probabilities that are looked at together."""


class States(NamedTuple):
    """Labellings of the chosen points.

    posterior  (S, M) probability of each draw given the state; float32 for sampled states
    log_p      (S,) ln p(state) = ln mean_j JT[s, j]
    source     (S,) the draw whose labels these are, or None when all states are listed
    """

    posterior: Array
    log_p: Floats
    source: NDArray[np.int64] | None = None

    @property
    def shares(self) -> Floats:
        """(S,) how much each state counts in an average."""
        return np.exp(self.log_p) if self.source is None else np.full(len(self.log_p), 1 / len(self.log_p))

    @property
    def entropy(self) -> float:
        """H(y_B) of the chosen points: exact, or its estimate from the sampled states."""
        return float(-self.shares @ self.log_p)


def no_points(draws: int) -> States:
    """The one labelling of no point."""
    return States(np.full((1, draws), 1 / draws), np.zeros(1))


def every_state(states: States, p: Array) -> States:
    """All states with one more point, whose probabilities are p (M, C): C times as many."""
    joint = states.posterior[:, None, :] * p.T  # (S, C, M)
    return _normalised(joint.reshape(-1, len(p)), np.repeat(states.log_p, p.shape[1]), None)


def sampled_states(chosen: Array, count: int, rng: np.random.Generator) -> States:
    """`count` states of the chosen points, probabilities (M, b, C), drawn from each network equally often (B6)."""
    draws = len(chosen)
    source = np.arange(count) % draws
    even = np.full((count, draws), 1 / draws, np.float32)  # noisy anyway, and twice as fast
    states = States(even, np.zeros(count), source)
    for point in chosen.transpose(1, 0, 2):
        states = extended(states, point, rng)
    return states


def extended(states: States, p: Array, rng: np.random.Generator) -> States:
    """The sampled states with one more point, its label drawn from the network that each state belongs to."""
    assert states.source is not None
    cumulative = np.cumsum(p, axis=1, dtype=np.float64)[states.source]
    at = rng.random(len(states.source)) * cumulative[:, -1]
    label = (at[:, None] >= cumulative[:, :-1]).sum(1)
    return _normalised(states.posterior * p[:, label].T.astype(np.float32), states.log_p, states.source)


def _normalised(joint: Array, log_p: Floats, source: NDArray[np.int64] | None) -> States:
    total = joint.sum(1)
    possible = total > 0
    if not possible.all():
        joint, log_p, total = joint[possible], log_p[possible], total[possible]
        source = None if source is None else source[possible]
    return States(joint / total[:, None], log_p + np.log(total), source)


def gains(states: States, probs: Array) -> Floats:
    """(n,) what each point adds to a(B) of (B4); probs (M, n, C)."""
    draws, n, n_classes = probs.shape
    doubt = _minus_log(np.asarray(probs, np.float64)).sum(-1).mean(0)
    shares = states.shares.astype(states.posterior.dtype)
    step = max(1, TOGETHER // (len(shares) * n_classes))
    entropies = np.empty(n)
    for start in range(0, n, step):
        part = np.ascontiguousarray(probs[:, start : start + step], states.posterior.dtype).reshape(draws, -1)
        entropy = shares @ _minus_log(states.posterior @ part)
        entropies[start : start + step] = entropy.reshape(-1, n_classes).sum(1)
    return np.asarray(np.maximum(entropies - doubt, 0.0))


def _minus_log(u: Array) -> Array:
    """-u ln u in the precision of u, with 0 ln 0 = 0."""
    return np.asarray(-u * np.log(np.maximum(u, np.finfo(u.dtype).tiny)))


class Chosen(NamedTuple):
    """Positions in the order chosen, and what each added; the sum of `added` is a(B)."""

    positions: NDArray[np.int64]
    added: Floats


def batch_bald(probs: Array, n: int, rng: np.random.Generator, states: int = 1000, together: int = 64) -> Chosen:
    """n points chosen greedily by (B4), a (1 - 1/e) share of the best batch; probs (M, N, C).

    Exact while C^|B| <= states, with that many sampled states afterwards. What a point adds never grows as others are
    chosen (submodularity), so only points whose last known gain could still win are looked at again.
    """
    draws, _, n_classes = probs.shape
    now, looked = no_points(draws), gains(no_points(draws), probs)
    order = rng.permutation(probs.shape[1])  # ties at random
    heap = [(-float(looked[i]), rank, int(i)) for rank, i in enumerate(order)]
    heapq.heapify(heap)
    positions: list[int] = []
    added: list[float] = []
    while heap and len(positions) < n:
        gain, i = _winner(now, probs, heap, together if positions else 0)
        positions.append(i)
        added.append(gain)
        if len(positions) == n:
            break
        point = np.asarray(probs[:, i], np.float64)
        if now.source is not None:
            now = extended(now, point, rng)
        elif n_classes ** len(positions) <= states:
            now = every_state(now, point)
        else:
            now = sampled_states(np.asarray(probs[:, positions], np.float64), max(states, draws), rng)
    return Chosen(np.array(positions, np.int64), np.array(added))


def _winner(now: States, probs: Array, heap: list[tuple[float, int, int]], together: int) -> tuple[float, int]:
    """The candidate that adds most, taken off the heap of (-gain, rank, point); `together` 0: gains are current."""
    if together == 0:
        gain, _, point = heapq.heappop(heap)
        return -gain, point
    fresh: list[tuple[float, int, int]] = []
    while heap and (not fresh or heap[0] < min(fresh)):
        stale = [heapq.heappop(heap) for _ in range(min(together, len(heap)))]
        values = gains(now, probs[:, [point for _, _, point in stale]])
        fresh += [(-float(value), rank, point) for value, (_, rank, point) in zip(values, stale, strict=True)]
    best = min(fresh)
    for entry in fresh:
        if entry is not best:
            heapq.heappush(heap, entry)
    return -best[0], best[2]
