"""What a user picks by name: how points are chosen and how metrics are estimated from their labels."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, Protocol, runtime_checkable

from altmas.errors import MethodError
from altmas.estimates import Estimate, Estimates
from altmas.history import Batch, History
from altmas.metrics import Metric
from altmas.pool import Pool
from altmas.suggest import near

__all__ = ["METHODS", "Batch", "Estimate", "Estimates", "History", "Method", "Needs", "Task", "check", "method_named"]


@dataclass(frozen=True)
class Needs:
    """What a method cannot do without, and what it gives."""

    features: bool = False
    scores: bool = False
    interval: str = "none"  # "fixed-n" | "anytime" | "credible" | "none"


@dataclass(frozen=True)
class Task:
    """What is asked: these metrics of this pool, at this confidence."""

    pool: Pool
    metrics: tuple[Metric, ...]
    confidence: float = 0.95
    seed: int = 0
    targets: tuple[tuple[str, float], ...] = ()  # (metric name, half-width)


@runtime_checkable
class Method(Protocol):
    """A frozen dataclass of options with two verbs; both are pure functions of the task and the history."""

    @property
    def name(self) -> str:
        """The name in METHODS."""

    @property
    def needs(self) -> Needs:
        """What it requires of a pool."""

    def propose(self, task: Task, history: History, n: int) -> Batch:
        """The next n points to label, distinct and open (fewer when fewer are open); the same for the same history."""

    def estimate(self, task: Task, history: History) -> Estimates:
        """Every metric from the labels so far; the truth once everything is labelled."""


METHODS: dict[str, Callable[..., Method]] = {}
"""Built-in methods by name; filled below."""


def method_named(wanted: str | Method) -> Method:
    """The method of that name with its default options, or the object itself; MethodError with the near name."""
    if not isinstance(wanted, str):
        return wanted
    if wanted not in METHODS:
        raise MethodError(f"method {wanted!r} does not exist{near(wanted, METHODS) or ';'} known: {', '.join(METHODS)}")
    return METHODS[wanted]()


def options_of(method: Method) -> dict[str, Any]:
    """The options of a method object as plain values, for the session file."""
    return asdict(method) if is_dataclass(method) and not isinstance(method, type) else {}


def check(method: Method, pool: Pool) -> None:
    """MethodError if the pool lacks what the method needs, naming the methods that could."""
    lacks = [
        what
        for what, needed, given in (
            ("features", method.needs.features, pool.features),
            ("scores", method.needs.scores, pool.scores),
        )
        if needed and given is None
    ]
    if lacks:
        able = [name for name, make in METHODS.items() if not _lacking(make(), pool)]
        raise MethodError(
            f"method {method.name!r} needs {' and '.join(lacks)}, which this pool does not have; "
            f"methods that work without: {', '.join(able)}"
        )


def _lacking(method: Method, pool: Pool) -> bool:
    return (method.needs.features and pool.features is None) or (method.needs.scores and pool.scores is None)
