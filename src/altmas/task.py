"""Task: what a method is asked."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from altmas.metrics import Metric
from altmas.pool import Pool

DEFAULT_METRICS = ("accuracy",)
DEFAULT_CONFIDENCE = 0.95
"""What is estimated, and with which confidence, where nobody says otherwise."""


About = Literal["pool", "future"]
"""What numbers are about: the items of the pool, or data like it, of which the pool is a sample."""

ABOUT: tuple[About, ...] = ("pool", "future")

Population = Literal["pool", "source", "future"]
"""The same as results have it: a pool that is a random sample is spoken of as what it was taken from."""


Draw = Literal["items", "groups"]
"""What is drawn: single items, or whole groups of them."""

DRAWS: tuple[Draw, ...] = ("items", "groups")


@dataclass(frozen=True)
class Task:
    """What is asked: these metrics of this pool, at this confidence."""

    pool: Pool
    metrics: tuple[Metric, ...]
    confidence: float = DEFAULT_CONFIDENCE
    seed: int = 0
    targets: tuple[tuple[str, float], ...] = ()  # (metric name, half-width)
    budget: int | None = None  # labels that may be told in all
    guarantee: bool = False  # intervals with a finite-sample proof where the metric has one
    rank: tuple[Metric, ...] = ()  # one metric of each model: which of them is best is what the draws are for
    wave_budget: int | None = None  # draws for the newest wave before others are drawn from again
    stopping: bool = False  # the session may stop by what intervals show, so they should hold at every look
    about: About = "pool"
    draw: Draw = "items"

    @property
    def ahead(self) -> bool:
        """Whether it is about data like the pool, not about the pool itself."""
        return self.about == "future"

    @property
    def population(self) -> Population:
        """What numbers are about: the pool, all rows of which it is a random sample ("source"), or data to come."""
        if self.about == "future":
            return "future"
        return "pool" if self.pool.sampled_from is None else "source"

    @property
    def fraction(self) -> float:
        """Which part of what it is about the pool is: 1 for the pool itself, 0 for data to come."""
        if self.about == "future":
            return 0.0
        return 1.0 if self.pool.sampled_from is None else len(self.pool) / self.pool.sampled_from

    @property
    def beyond(self) -> bool:
        """Whether it is about more than the points of the pool: labels of all of them leave something open."""
        return self.fraction < 1

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """(N,) groups that points come in, where they matter: for data to come. Rows are sampled one by one."""
        return self.pool.group if self.ahead else None

    @property
    def units(self) -> NDArray[np.int64] | None:
        """(N,) groups that are drawn as a whole; None where single items are drawn."""
        return self.pool.group if self.draw == "groups" else None
