"""In which situation is the model worst? After Gopakumar et al. 2018 (docs/other-questions.md C.8).

Another question than the metrics of a pool: the answer is a scenario and the error rate in it, not an average.
theta in [0, 1]^d is the scenario, f_c(theta) the error rate of class c in it, one Gaussian process for each class.
Each step plays one class (EXP3), looks where its process could be highest, and learns the error rate there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from altmas.errors import PlanError, PoolError
from altmas.pool import Pool
from altmas.progress import progress_bar
from altmas.scenarios.bandit import exploration, play_probabilities, rewarded
from altmas.scenarios.gaussian_process import GaussianProcess, highest
from altmas.suggest import listing
from altmas.types import Array

Look = tuple[Any, dict[str, float], float]
"""Class, parameters, error rate seen."""

INITIAL = 15
"""Random scenarios of each class before its process has a say, fewer where the budget is small."""


@dataclass(frozen=True)
class Scenario:
    """The worst situation found for one class.

    at         parameters of the transformation, or coordinates of the region's centre
    error      the error rate seen there, or the process's mean error rate of a region
    low, high  two standard deviations around the process's mean there, cut to [0, 1]
    looked     how often this class was looked at
    points     ids of the points whose mean error rate is nearer to the highest than to the average (a pool only)
    """

    of_class: Any
    at: dict[str, float]
    error: float
    low: float
    high: float
    looked: int
    points: tuple[Any, ...] = ()

    def __str__(self) -> str:
        position = ", ".join(f"{name} {value:.4g}" for name, value in self.at.items())
        region = f", {len(self.points)} points" if self.points else ""
        return f"{self.of_class!s:<16} error {self.error:.3f}  [{self.low:.3f}, {self.high:.3f}]  at {position}{region}"


@dataclass(frozen=True)
class WorstCase:
    """The worst scenario of each class, worst first, and every look in order (class, at, error)."""

    scenarios: tuple[Scenario, ...]
    looks: tuple[Look, ...]

    @property
    def worst(self) -> Scenario:
        """The worst of all."""
        return self.scenarios[0]

    def __str__(self) -> str:
        return "\n".join(map(str, self.scenarios))


@dataclass(frozen=True)
class Range:
    """A parameter between low and high; `periodic` if both ends are the same, as for an angle."""

    low: float
    high: float
    periodic: bool = False


@dataclass(frozen=True, eq=False)
class Transformations:
    """Changes of the inputs that keep their labels, and a model that can be run on what comes out.

    predict    inputs -> one class name each
    inputs     (n, ...) array; labels  (n,) their true class names
    transform  (inputs, **parameters) -> as many changed inputs
    space      the range of each parameter: (low, high), or Range(low, high, periodic=True)
    classes    those to look at; by default all in `labels`. Leave out a class that a transformation turns into another
    per_class  inputs of a class that are run in one look, at most
    """

    predict: Callable[[Any], ArrayLike]
    inputs: Array
    labels: ArrayLike
    transform: Callable[..., Any]
    space: Mapping[str, tuple[float, float] | Range]
    classes: Sequence[Any] | None = None
    per_class: int = 200


class Search(Protocol):
    """What the loop needs to know about a kind of scenario."""

    classes: Sequence[Any]
    dimensions: int
    looks: list[list[tuple[Array, float]]]  # for each class, what was seen where
    log: list[Look]  # every look in order, as people read it

    def coordinates(self, theta: Array) -> Array:
        """(n, d') theta as the process sees it."""

    def look(self, c: int, theta: Array) -> bool:
        """Look at class c nearest to theta and append what was seen; False if there was nothing left to see."""

    def reward(self, c: int) -> float:
        """How bad class c has been seen to be, in [0, 1]."""

    def scenario(self, c: int) -> Scenario | None:
        """The worst of class c; None if it was never looked at."""


def worst_case(
    where: Transformations | Pool,
    *,
    budget: int = 200,
    oracle: Callable[[Any], Any] | None = None,
    dimensions: int = 2,
    seed: int = 0,
    progress: bool = True,
) -> WorstCase:
    """The scenario in which the model errs most, for each class, after `budget` looks.

    where       transformations (a look runs the model on changed inputs; nothing has to be labelled), or a pool (a look
                asks `oracle(id)` for the label of one point; None where it cannot tell)
    dimensions  of the embedding in which neighbours of a pool are alike (2 to 5); classes are those predicted

    Raises PlanError or PoolError before anything is looked at.
    """
    if budget < 1:
        raise PlanError(f"budget {budget!r} is out of range; expected at least 1 look; nothing was computed")
    rng = np.random.default_rng(seed)
    search: Search
    if isinstance(where, Pool):
        search = RegionSearch(where, oracle, dimensions)
    else:
        search = TransformationSearch(where, rng)
    _explore(search, budget, rng, progress)
    scenarios = [scenario for c in range(len(search.classes)) if (scenario := search.scenario(c)) is not None]
    if not scenarios:
        raise PoolError("the oracle gave no label for any point that it was asked about; there is no scenario to tell")
    return WorstCase(tuple(sorted(scenarios, key=lambda scenario: -scenario.error)), tuple(search.log))


def _explore(search: Search, budget: int, rng: np.random.Generator, progress: bool) -> None:
    """Random looks at each class first, then (C27) in the class that EXP3 plays."""
    arms, d = len(search.classes), search.dimensions
    initial = max(1, min(INITIAL, budget // (2 * arms)))
    starts = [c for _ in range(initial) for c in range(arms)][:budget]
    share = exploration(arms, budget - len(starts))
    log_weights, left = np.zeros(arms), np.ones(arms, np.bool_)
    with progress_bar("looking for the worst case", budget, shown=progress) as bar:
        for c in starts:
            left[c] &= search.look(c, rng.random(d))
            bar.advance(1)
        done = len(starts)
        while done < budget and left.any():
            p = np.where(left, play_probabilities(log_weights, share), 0.0)
            c = int(rng.choice(arms, p=p / p.sum()))
            left[c] &= search.look(c, _next(search, c, rng))
            if left[c]:
                log_weights = rewarded(log_weights, c, search.reward(c), float(p[c]), share)
                done += 1
                bar.advance(1)


def process_of(search: Search, c: int) -> GaussianProcess:
    """The process of one class from everything seen of it."""
    theta, seen = zip(*search.looks[c], strict=True)
    return GaussianProcess.fit(search.coordinates(np.array(theta)), np.array(seen))


def _next(search: Search, c: int, rng: np.random.Generator) -> Array:
    """(C27) where the process of class c could be highest; anywhere if nothing of it was seen."""
    if not search.looks[c]:
        return rng.random(search.dimensions)
    process = process_of(search, c)
    return highest(lambda theta: process.upper(search.coordinates(theta)), search.dimensions, rng)


# ---------------------------------------------------------------- transformations


class TransformationSearch:
    """Scenarios are parameters of a transformation."""

    def __init__(self, where: Transformations, rng: np.random.Generator) -> None:
        self.where, self.names = where, list(where.space)
        self.ranges = [span if isinstance(span, Range) else Range(*span) for span in where.space.values()]
        _refuse_bad_ranges(self.names, self.ranges)
        self.labels = np.asarray(where.labels)
        if len(self.labels) != len(where.inputs):
            raise PoolError(
                f"labels has {len(self.labels)} entries, inputs has {len(where.inputs)}; one label per input"
            )
        known = np.unique(self.labels).tolist()
        self.classes: Sequence[Any] = known if where.classes is None else list(where.classes)
        unknown = [name for name in self.classes if name not in known]
        if unknown or not self.classes:
            raise PoolError(f"classes {listing(unknown)} have no input; labels hold {listing(known)}")
        self.dimensions = len(self.names)
        self.looks: list[list[tuple[Array, float]]] = [[] for _ in self.classes]
        self.log: list[Look] = []
        self.rows = [rng.permutation(np.flatnonzero(self.labels == name))[: where.per_class] for name in self.classes]

    def coordinates(self, theta: Array) -> Array:
        columns = []
        for u, span in zip(np.atleast_2d(theta).T, self.ranges, strict=True):
            turn = 2 * np.pi * u  # a circle of circumference 1, so that a length means the same everywhere
            columns += [np.sin(turn) / (2 * np.pi), np.cos(turn) / (2 * np.pi)] if span.periodic else [u]
        return np.column_stack(columns)

    def parameters(self, theta: Array) -> dict[str, float]:
        named = zip(self.names, self.ranges, theta.tolist(), strict=True)
        return {name: span.low + u * (span.high - span.low) for name, span, u in named}

    def look(self, c: int, theta: Array) -> bool:
        at, rows = self.parameters(theta), self.rows[c]
        predicted = np.asarray(self.where.predict(self.where.transform(self.where.inputs[rows], **at)))
        if predicted.shape != (len(rows),):
            raise PoolError(
                f"predict gave shape {predicted.shape} for {len(rows)} transformed inputs; expected one each"
            )
        error = float((predicted != self.labels[rows]).mean())
        self.looks[c].append((theta, error))
        self.log.append((self.classes[c], at, error))
        return True

    def reward(self, c: int) -> float:
        return max(error for _, error in self.looks[c])

    def scenario(self, c: int) -> Scenario | None:
        if not self.looks[c]:
            return None
        theta, error = max(self.looks[c], key=lambda look: look[1])
        low, high = _bounds(process_of(self, c), self.coordinates(theta))
        return Scenario(self.classes[c], self.parameters(theta), error, low, high, len(self.looks[c]))


def _refuse_bad_ranges(names: Sequence[str], ranges: Sequence[Range]) -> None:
    if not names:
        raise PlanError("space is empty; expected the range of at least one parameter, e.g. {'angle': (0, 30)}")
    for name, span in zip(names, ranges, strict=True):
        if not (np.isfinite([span.low, span.high]).all() and span.low < span.high):
            raise PlanError(f"space[{name!r}]: {span.low!r} to {span.high!r} is no range; expected low < high")


def _bounds(process: GaussianProcess, at: Array) -> tuple[float, float]:
    mean, sd = process(at)
    low, high = np.clip([mean[0] - 2 * sd[0], mean[0] + 2 * sd[0]], 0, 1).tolist()
    return low, high


# ---------------------------------------------------------------- regions of a pool


class RegionSearch:
    """Scenarios are positions in a low-dimensional embedding of the pool; a look labels the nearest open point."""

    def __init__(self, pool: Pool, oracle: Callable[[Any], Any] | None, dimensions: int) -> None:
        if pool.features is None:
            raise PoolError("this pool has no features, in which regions could be looked for; pass Pool(features, ...)")
        if oracle is None:
            raise PlanError("a pool needs an oracle: worst_case(pool, oracle=lambda id: label); nothing was asked")
        if not 1 <= dimensions <= 5:
            raise PlanError(f"dimensions {dimensions!r} is out of range; expected 1 to 5; nothing was asked")
        self.pool, self.oracle = pool, oracle
        self.positions = embedding(pool.features, dimensions)
        self.dimensions = self.positions.shape[1]
        self.codes = np.unique(pool.predictions)
        self.classes: Sequence[Any] = [pool.classes[code] for code in self.codes]
        self.open = np.ones(len(pool), np.bool_)
        self.looks: list[list[tuple[Array, float]]] = [[] for _ in self.classes]
        self.log: list[Look] = []

    def coordinates(self, theta: Array) -> Array:
        return np.atleast_2d(theta)

    def look(self, c: int, theta: Array) -> bool:
        rows = np.flatnonzero(self.open & (self.pool.predictions == self.codes[c]))
        if len(rows) == 0:
            return False
        row = int(rows[((self.positions[rows] - theta) ** 2).sum(1).argmin()])
        self.open[row] = False
        label = self.oracle(self.pool.ids[row])
        if label is not None:
            wrong = float(self.pool.code(label, where=f"point {self.pool.ids[row]!r}: ") != self.codes[c])
            self.looks[c].append((self.positions[row], wrong))
            self.log.append((self.classes[c], _named(self.positions[row]), wrong))
        return True

    def reward(self, c: int) -> float:
        """The process's mean where it is highest among the points seen: one error alone says little."""
        if not self.looks[c]:
            return 0.0
        mean, _ = process_of(self, c)(np.array([position for position, _ in self.looks[c]]))
        return float(np.clip(mean.max(), 0, 1))

    def scenario(self, c: int) -> Scenario | None:
        if not self.looks[c]:
            return None
        rows = np.flatnonzero(self.pool.predictions == self.codes[c])
        process = process_of(self, c)
        mean, _ = process(self.positions[rows])
        centre = self.positions[rows[int(mean.argmax())]]
        near = rows[mean >= (mean.max() + process.level) / 2]
        low, high = _bounds(process, centre[None])
        points = tuple(self.pool.ids[row] for row in near.tolist())
        error = float(np.clip(mean.max(), 0, 1))
        return Scenario(self.classes[c], _named(centre), error, low, high, len(self.looks[c]), points)


def _named(position: Array) -> dict[str, float]:
    return {f"component {i + 1}": float(value) for i, value in enumerate(position)}


def embedding(features: Array, dimensions: int, sample: int = 5000) -> Array:
    """(N, d) leading principal components of the standardised features, ranked to be uniform on [0, 1]."""
    x = np.asarray(features, np.float64)
    scale = x.std(0)
    x = (x - x.mean(0)) / np.where(scale > 0, scale, 1.0)
    some = x[:: max(1, len(x) // sample)]
    _, _, vectors = np.linalg.svd(some - some.mean(0), full_matrices=False)
    components = x @ vectors[:dimensions].T
    ranks = np.argsort(np.argsort(components, axis=0, kind="stable"), axis=0)
    return np.asarray((ranks + 0.5) / len(components))
