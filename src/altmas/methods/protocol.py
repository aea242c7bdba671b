"""What every method is: its verbs, and what they see."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from altmas.belief import Belief
from altmas.estimates import Estimates
from altmas.history import Batch, History
from altmas.pool import Pool
from altmas.task import Task
from altmas.types import Array


@dataclass(frozen=True)
class Traits:
    """What a method requires, what it gives, and where it was published.

    requires   what a pool must have: "features", "scores", or "scores or features" for whichever there are
    extra      the extra of the package that holds what it computes with; empty if it needs none
    metrics    kinds of metrics it can estimate; empty for any
    any_metric whether it estimates metrics that are no function of the table of predicted and true classes of one model
    ahead      whether its intervals can be about data like the pool (`Task.about`), or about all rows of which the pool
               is a random sample
    weights    whether rows may stand for several (`Pool.weights`)
    groups     whether it can draw whole groups (`Task.draw`)
    in_order   whether a label counts only once every point that was drawn before it has an answer; for a metric of a
               slice possibly every point of the slice alone
    skips      whether its figures are about the points that can be labelled, whatever skips depend on
    one_class  all metrics must be about the same class
    interval   the kind of interval it gives, as in Estimate.interval
    grows      whether it goes on when items are added to the pool
    biased     whether its estimates are off on average, beyond the O(1/n) of any ratio, until everything is labelled
    citation   the publication it follows
    """

    requires: tuple[str, ...] = ()
    extra: str = ""
    metrics: tuple[str, ...] = ()
    any_metric: bool = False
    ahead: bool = False
    weights: bool = False
    groups: bool = False
    in_order: bool = False
    skips: bool = False
    one_class: bool = False
    interval: str = "none"
    grows: bool = False
    biased: bool = False
    citation: str = ""

    def lacking(self, pool: Pool) -> tuple[str, ...]:
        """What it requires and the pool does not have."""
        has = {"features": pool.features is not None, "scores": pool.scores is not None}
        return tuple(part for part in self.requires if not any(has[name] for name in part.split(" or ")))


@runtime_checkable
class Method(Protocol):
    """A frozen dataclass of options whose verbs are pure functions of what they are given.

    A method inherits from this class, and then has to define `propose` and `estimate`.
    """

    @property
    def name(self) -> str:
        """The name in METHODS."""

    @property
    def traits(self) -> Traits:
        """What it requires of a pool and gives."""

    def propose(self, task: Task, history: History, n: int) -> Batch:
        """The next n points to label, distinct and open (fewer when fewer are open); the same for the same history."""

    def estimate(self, task: Task, history: History) -> Estimates:
        """Every metric from the labels so far; the truth once everything is labelled."""

    def inclusion(self, pool: Pool, history: History) -> Array | None:
        """(N,) probability of each point to have been drawn by now, or None where only single draws have one.

        A comparison of two models weights labels by it; without it by the probability of each draw, and where draws
        have none (`Batch.probabilities` is None) a comparison has no interval.
        """
        return None


@dataclass(frozen=True)
class SequenceOfDraws:
    """Answered draws, each with chance sizes[i] / (sum of sizes over the open points not yet drawn).

    open    (N,) points that could be drawn when it began;  sizes  (N,) positive there
    belief  what was believed of them then, from labels told before; None before any label
    rows    drawn points in order, all labelled or skipped
    within  (N,) points that it is about, those that were there when it began; None for all
    cut     whether it ends before a drawn point that has no answer
    """

    open: Array
    sizes: Array
    belief: Belief | None
    rows: Array
    within: Array | None = None
    cut: bool = False


@runtime_checkable
class DrawsInSequence(Protocol):
    """A method whose draws come one after another with known chances: proofs at every look rest on these."""

    def sequences(self, task: Task, history: History) -> list[SequenceOfDraws]:
        """The answered draws; sizes and belief of each sequence were fixed before its first draw."""


@dataclass(frozen=True)
class Rehearsal:
    """A method as it would go on if it learned nothing more, to be run in imagined worlds.

    method  draws and estimates as the original does, with its present belief and sizes: nothing is fitted
    belief  what it thinks of labels that nobody told
    right   share of the pool on which the belief's answers are right, as estimated;  worth  how many random labels that
            estimate is worth
    """

    method: Method
    belief: Belief
    right: float
    worth: float


@runtime_checkable
class Rehearses(Protocol):
    """A method whose further course can be imagined cheaply: forecasts rest on it."""

    def rehearse(self, task: Task, history: History) -> Rehearsal | None:
        """The method with its present belief held; None while no drawn label has been told."""
