"""Task: what a method is asked."""

from dataclasses import dataclass
from typing import Literal

from altmas.metrics import Metric
from altmas.pool import Pool

DEFAULT_METRICS = ("accuracy",)
DEFAULT_CONFIDENCE = 0.95
"""What is estimated, and with which confidence, where nobody says otherwise."""


About = Literal["pool", "future"]
"""What numbers are about: the items of the pool, or data like it, of which the pool is a sample."""

ABOUT: tuple[About, ...] = ("pool", "future")


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

    @property
    def ahead(self) -> bool:
        """Whether it is about data like the pool, not about the pool itself."""
        return self.about == "future"
