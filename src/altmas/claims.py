"""Claims such as "recall[cat] >= 0.9", and whether the labels so far show or refute them."""

import math
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from altmas.errors import PlanError
from altmas.estimates import ABOUT_WHAT, LEAST_DRAWN, Estimate, possible_values
from altmas.guaranteed import NotNow, NotOffered, estimates_of, guaranteed_decision, not_offered
from altmas.methods.held_up import counted_labels
from altmas.metrics import Metric, known_names, metric_set
from altmas.pool import Pool
from altmas.suggest import listing
from altmas.task import Task

if TYPE_CHECKING:
    from altmas.session import Session

Answer = Literal["shown", "refuted", "undecided"]

CLAIM = re.compile(r"^(?P<metric>.*\S)\s*(?P<relation>>=|<=|>|<)\s*(?P<value>[-+.\deE]+)\s*(?P<percent>%?)$", re.DOTALL)
TURNED = re.compile(r"=\s*([<>])(?=\s*[-+.\deE]+\s*%?$)")
"""=> and =< before the number, for >= and <=."""
SIDES = re.compile(r"(?P<left>(?:\[[^\]]*\]|[^][<>])+?)\s*(?P<relation>>=|<=|=>|=<|>|<)\s*(?P<right>.*\S)", re.DOTALL)
"""What stands before and after the relation of something that is no claim; one in square brackets is none."""
NUMBER = re.compile(r"[-+]?[.\d]+\s*%?")
KIND = re.compile(r"^[^\[]*:\s*|\s*[\[@].*$", re.DOTALL)
"""What stands around the kind of a metric in its name: the model, the class, the slice."""
BACKWARDS = {">=": "<=", ">": "<", "<=": ">=", "<": ">"}
ROUNDING = 1e-9
WORDS = {">=": "at least", ">": "above", "<=": "at most", "<": "below"}


@dataclass(frozen=True)
class Claim:
    """A metric, one of >= > <= <, and a number."""

    metric: str
    relation: str
    value: float

    @classmethod
    def parse(cls, text: str) -> "Claim":
        """The claim that a text makes; PlanError if it makes none."""
        match = CLAIM.match(TURNED.sub(r"\1=", str(text).strip()))
        try:
            if match is None:
                raise ValueError
            value = float(match["value"])
        except ValueError:
            raise PlanError(f"claim {text!r} was not understood; {_how_to_write(str(text))}") from None
        return cls(match["metric"], match["relation"], value / 100 if match["percent"] else value)

    def __str__(self) -> str:
        return f"{self.metric} is {WORDS[self.relation]} {self.value:g}"

    def answer(self, estimate: Estimate) -> Answer:
        """Shown if it holds on the whole interval, refuted if it holds nowhere on it; undecided without an interval.

        An end that differs from the value by rounding alone is the value: 1 - 0.9 is no less than 0.1.
        """
        value = self.value
        low, high = (
            value if math.isclose(end, value, rel_tol=ROUNDING, abs_tol=ROUNDING) else end
            for end in (estimate.low, estimate.high)
        )
        holds_everywhere, holds_nowhere = {
            ">=": (low >= value, high < value),
            ">": (low > value, high <= value),
            "<=": (high <= value, low > value),
            "<": (high < value, low >= value),
        }[self.relation]
        return "shown" if holds_everywhere else "refuted" if holds_nowhere else "undecided"

    def proven(self, side: str) -> Answer:
        """The answer if the metric is proven to lie "above" or "below" the value, or if that is "undecided"."""
        if side == "undecided":
            return "undecided"
        return "shown" if (side == "above") == (self.relation in (">=", ">")) else "refuted"


def _how_to_write(text: str) -> str:
    """What to write in place of a claim with two metrics, or with the number first; else how a claim is written."""
    two = SIDES.fullmatch(text.strip())
    if two is not None:
        left, right = two["left"].strip(), two["right"]
        relation = {"=>": ">=", "=<": "<="}.get(two["relation"], two["relation"])
        if NUMBER.fullmatch(left):
            return f"the metric comes first; did you mean '{right} {BACKWARDS[relation]} {left}'?"
        kinds = {name.partition("[")[0] for name in known_names()}
        if {KIND.sub("", left).lower(), KIND.sub("", right).lower()} <= kinds:
            return f"two metrics are compared by their difference; did you mean '{left} - {right} {relation} 0'?"
    return 'write a metric, one of >= > <= <, and a number, e.g. "recall[cat] >= 0.9"'


PROOFS_INTERVAL = (
    "the interval is that of the proof: the one that estimate gives is made in another way, and neither always lies "
    "inside the other"
)


@dataclass(frozen=True)
class Verdict:
    """What the labels say about a claim, on the estimate that decides it.

    proven   whether a test with a proof was made, whatever it said
    why      why none could be made;  waiting  whether one can be later on, so that nothing else may decide
    differing  what counts where people differ, if they do
    """

    claim: Claim
    answer: Answer
    estimate: Estimate
    too_early: bool = False
    proven: bool = False
    about: str = "pool"
    why: str = ""
    waiting: bool = False
    differing: str = ""

    @property
    def caution(self) -> str:
        """What a reader must know about the answer, or an empty string."""
        return "; ".join(filter(None, (self._of_answer, self.differing)))

    @property
    def _of_answer(self) -> str:
        if self.too_early:
            return f"nothing is called shown or refuted with fewer than {LEAST_DRAWN} drawn labels"
        if self.proven or self.waiting:
            return self.why
        return "; ".join(filter(None, (self._ahead or self.why, self._of_interval)))

    @property
    def _ahead(self) -> str:
        if self.about != "future" or self.answer == "undecided":
            return ""
        return (
            "it is about data like this pool, decided by the interval: this rests on the pool being a random sample of "
            "such data, and no proof holds for a given number of items"
        )

    @property
    def _of_interval(self) -> str:
        if self.estimate.interval == "none":
            return "the session's method gives no interval, so nothing can be shown or refuted"
        if self.estimate.low == self.estimate.high:
            return ""
        if self.estimate.interval == "fixed-n" and self.answer != "undecided":
            return (
                "this interval is for one look at a number of labels fixed beforehand; method assured with a target or "
                "a threshold gives one that holds at every look"
            )
        if self.estimate.interval == "asymptotic" and self.answer != "undecided" and not self._ahead:
            return "the interval decides, which holds at every look as labels grow, without a proof for a given number"
        if self.estimate.interval == "credible" and self.answer != "undecided":
            return "this interval is a belief of the method's model, without a guarantee"
        return ""

    def __str__(self) -> str:
        estimate = self.estimate
        bounds = "no interval" if estimate.low != estimate.low else f"[{estimate.low:.4f}, {estimate.high:.4f}]"
        value = "no estimate yet" if estimate.value != estimate.value else f"{estimate.value:.4f} {bounds}"
        level = f"{estimate.confidence * 100:g} % {estimate.interval}, " if estimate.interval != "none" else ""
        where = "" if self.about == "pool" else f" on {ABOUT_WHAT[self.about]}"
        proof = f", {'' if self.answer == 'undecided' else 'decided '}by a test that holds at every look"
        proof = proof if self.proven else ""
        if self.proven and self.answer not in ("undecided", self.claim.answer(estimate)):
            proof += ", sharper there than the interval"
        labels = f"{estimate.labels} label{'' if estimate.labels == 1 else 's'}"
        return f"{self.answer}: {self.claim}{where} ({value}, {level}{labels}{proof})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "claim": {"metric": self.claim.metric, "relation": self.claim.relation, "value": self.claim.value},
            "answer": self.answer,
            "estimate": {name: getattr(self.estimate, name) for name in self.estimate.__dataclass_fields__},
            "caution": self.caution,
            "proven": self.proven,
            "about": self.about,
        }


def judge(session: "Session", claim: Claim | str, *, guarantee: bool | None = None) -> Verdict:
    """Whether the labels of a session show or refute a claim about any metric of its pool.

    A test with a finite-sample proof decides wherever one is offered for the metric, and nothing else does there;
    elsewhere the interval for many looks does, where the method has one.
    guarantee  refuse (PlanError) where none is offered; by default that is so in a session with guarantee=True
    """
    claim = claim if isinstance(claim, Claim) else Claim.parse(claim)
    metric = metric_of(claim, session.pool, "claim about")
    guarantee = session.task.guarantee if guarantee is None else guarantee
    task = replace(session.task, metrics=(metric,), targets=())
    absent = not_offered(session.method, task, metric)
    if guarantee and absent is not None:
        raise PlanError(
            f"claim about {claim.metric!r} with a guarantee: {absent.why}; leave the guarantee out "
            "(guarantee=False) to decide by the interval"
        )
    _expect_possible(claim, metric)
    return _decided(session, claim, metric, task, guarantee=guarantee)


def metric_of(claim: Claim, pool: Pool, what: str) -> Metric:
    """The metric that is claimed about; PlanError, beginning with `what`, if the name stands for several."""
    (metric, *others) = metric_set([claim.metric], pool)
    if others:
        names = listing(candidate.name for candidate in (metric, *others))
        raise PlanError(f"{what} {claim.metric!r}: it stands for {1 + len(others)} metrics; name one of them: {names}")
    return metric


def _decided(session: "Session", claim: Claim, metric: Metric, task: Task, *, guarantee: bool) -> Verdict:
    """The verdict on a claim that is possible; task: with this metric alone."""
    about, history = session.task.population, session.history
    planned = metric.name in {own.name for own in session.task.metrics}
    estimate = session.estimate()[metric.name] if planned else estimates_of(session.method, task, history)[0]
    proven = replace(task, guarantee=True)
    if guarantee and estimate.interval != "guaranteed":
        (estimate,) = estimates_of(session.method, proven, history)
    lowest, highest = possible_values(metric, task, history)
    exact = about == "pool" and (len(history.labels) == len(session.pool) or lowest == highest)
    judged = partial(Verdict, claim, about=about, differing=session.now().differing())
    if history.drawn_labels < LEAST_DRAWN and not exact:
        return judged("undecided", estimate, too_early=True)
    if exact:
        return judged(claim.answer(estimate), estimate)
    proof = guaranteed_decision(session.method, task, history, metric, claim.value)
    if not isinstance(proof, NotNow) and counted_labels(session.method, task, history) < LEAST_DRAWN:
        return judged("undecided", estimate, too_early=True)
    if isinstance(proof, NotOffered):
        if estimate.interval == "fixed-n":  # a claim may be looked at after every label
            (estimate,) = estimates_of(session.method, replace(task, stopping=True), history)
        return judged(claim.answer(estimate), estimate, why=proof.why)
    if isinstance(proof, NotNow):
        return judged("undecided", estimate, why=proof.why, waiting=True)
    answer = claim.proven(proof.answer)
    why = ""
    if answer not in ("undecided", claim.answer(estimate)):  # shown is the interval of the same proof
        (estimate,) = estimates_of(session.method, proven, history)
        why = PROOFS_INTERVAL
    return judged(answer, estimate, proven=True, why=why)


def _expect_possible(claim: Claim, metric: Metric) -> None:
    """PlanError if the metric can never take the value of the claim."""
    low, high = metric.bounds
    if not low <= claim.value <= high:
        percent = 2 <= claim.value <= 100 and low <= claim.value / 100 <= high
        hint = f"; did you mean {claim.value / 100:g}, or {claim.value:g}%?" if percent else ""
        raise PlanError(
            f"claim about {claim.metric!r}: {claim.value:g} is no value that it can take; expected {low:g} to "
            f"{high:g}{hint}"
        )
