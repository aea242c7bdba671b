"""What a user picks by name: how points are chosen and how metrics are estimated from their labels."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from altmas.errors import MethodError, PlanError
from altmas.extras import require
from altmas.history import Batch, History
from altmas.methods.assured import Assured
from altmas.methods.leaderboard import FIGURES, FIGURES_MEAN
from altmas.methods.paper.altmas import AltMas
from altmas.methods.paper.ase import Ase
from altmas.methods.paper.bald import Bald
from altmas.methods.paper.batchbald import BatchBald
from altmas.methods.paper.trust import Trust
from altmas.methods.paper.xwed import Xwed
from altmas.methods.protocol import Method, Traits
from altmas.methods.related.active_inference import ActiveInference
from altmas.methods.related.adastrat import AdaStrat
from altmas.methods.related.druck import Druck
from altmas.methods.related.katariya import Katariya
from altmas.methods.related.lure import Lure
from altmas.methods.related.oasis import Oasis
from altmas.methods.related.paula import Paula
from altmas.methods.related.ppi import Ppi
from altmas.methods.related.sawade import Sawade
from altmas.methods.related.spe import Spe
from altmas.methods.related.stratified import Stratified
from altmas.methods.tradition import Tradition
from altmas.metrics import Metric
from altmas.pool import Pool
from altmas.suggest import listing, near
from altmas.task import Draw, Task
from altmas.types import Array

__all__ = [
    "DEFAULT_METHOD",
    "GROUPS",
    "METHODS",
    "Batch",
    "History",
    "AltMas",
    "Assured",
    "Bald",
    "Stratified",
    "Sawade",
    "Druck",
    "Oasis",
    "Lure",
    "Ppi",
    "ActiveInference",
    "Paula",
    "AdaStrat",
    "Katariya",
    "BatchBald",
    "Ase",
    "Xwed",
    "Spe",
    "Method",
    "Traits",
    "Task",
    "Tradition",
    "Trust",
    "check",
    "check_installed",
    "grouped",
    "inclusion_of",
    "lacking",
    "method_named",
    "options_of",
    "unsupported",
]

METHODS: dict[str, Callable[..., Method]] = {
    "assured": Assured,
    "altmas": AltMas,
    "bald": Bald,
    "stratified": Stratified,
    "sawade": Sawade,
    "druck": Druck,
    "oasis": Oasis,
    "lure": Lure,
    "ppi": Ppi,
    "active-inference": ActiveInference,
    "paula": Paula,
    "adastrat": AdaStrat,
    "katariya": Katariya,
    "batchbald": BatchBald,
    "ase": Ase,
    "xwed": Xwed,
    "spe": Spe,
    "tradition": Tradition,
    "trust": Trust,
}
"""Built-in methods by name."""

DEFAULT_METHOD = "assured"

GROUPS: dict[str, dict[str, str]] = {
    "recommended": {
        "assured": "informative items with known probabilities, difference estimator",
    },
    "simple": {
        "tradition": "a uniform random sample",
        "stratified": "strata of the highest score",
        "trust": "unlabelled items are what the model says",
    },
    "published": {
        "active-inference": "draws by expected error, difference estimator",
        "druck": "strata of expected correctness, more labels where they vary",
        "sawade": "draws with replacement, weighted back",
        "lure": "draws in proportion to expected loss, weighted back",
        "ppi": "a random sample, corrected by predictions for the rest",
        "oasis": "F-measure, precision or recall of one class",
        "paula": "precision and recall along a ranking",
        "adastrat": "the same, splitting the ranking as it learns",
        "katariya": "buckets of similar items",
        "spe": "two score distributions for each question; a credible interval",
        "altmas": "the paper: pseudo-labels, dropout network, information about the metrics",
        "bald": "the paper's baseline: information about the network",
        "batchbald": "`bald` with batches chosen jointly",
        "ase": "random labels, a network for the rest",
        "xwed": "labels where the network expects the model to err, a network for the rest",
    },
}
"""{group: {method: what it does}}, in the order in which people are shown them."""


def method_named(wanted: str | Method) -> Method:
    """The method of that name with its default options, or the object itself; MethodError with the near name."""
    if not isinstance(wanted, str):
        return wanted
    if wanted not in METHODS:
        raise MethodError(f"method {wanted!r} does not exist{near(wanted, METHODS) or ';'} known: {grouped(METHODS)}")
    return METHODS[wanted]()


def grouped(names: Collection[str], *, mean: bool = True) -> str:
    """These methods by group, each with what the leaderboard says of it, and what its figures mean."""
    by_group = {group: [name for name in methods if name in names] for group, methods in GROUPS.items()}
    parts = [f"{group}: " + ", ".join(map(with_figures, members)) for group, members in by_group.items() if members]
    return "; ".join([*parts, FIGURES_MEAN] if mean else parts)


def with_figures(name: str) -> str:
    """A method's name with its mean coverage, its label value and the extra that it needs."""
    traits, (coverage, value) = METHODS[name]().traits, FIGURES.get(name, (None, math.nan))
    shown = "-" if coverage is None else f"{coverage:.3f}"
    figures = [
        {"none": "no interval", "credible": f"a belief, {shown}"}.get(traits.interval, shown),
        "-" if math.isnan(value) else f"{value:.2g}",
        f"altmas[{traits.extra}]" if traits.extra else "",
    ]
    return f"{name} ({', '.join(filter(None, figures))})"


def inclusion_of(method: Method | None, pool: Pool, history: History) -> Array | None:
    """(N,) how likely each point was to be drawn by now; None where the method cannot tell, or has only two verbs."""
    return method.inclusion(pool, history) if isinstance(method, Method) else None


def options_of(method: Method) -> dict[str, Any]:
    """The options of a method object as plain values, for the session file."""
    return asdict(method) if is_dataclass(method) and not isinstance(method, type) else {}


def check(method: Method, pool: Pool, metrics: Sequence[Metric] | None = None) -> None:
    """MethodError if the pool lacks what the method needs or it cannot estimate a metric, naming methods that could;
    MissingExtra if it is not installed.
    """
    lacks = lacking(method, pool)
    if lacks:
        able = [name for name, make in METHODS.items() if not lacking(make(), pool)]
        raise MethodError(
            f"method {method.name!r} needs {lacks}, which this pool does not have; "
            f"methods that work without: {grouped(able)}"
        )
    reason = unsupported(method, metrics or ())
    if reason:
        able = [
            name
            for name, make in METHODS.items()
            if not lacking(make(), pool) and not unsupported(make(), metrics or ())
        ]
        raise MethodError(f"method {method.name!r} {reason}; methods that can: {grouped(able)}")
    if pool.weights is not None and not method.traits.weights:
        raise MethodError(
            f"method {method.name!r} counts every row once, and rows of this pool have weights; methods that can: "
            f"{', '.join(name for name, make in METHODS.items() if make().traits.weights)}"
        )
    if pool.sampled_from is not None and not method.traits.ahead:
        raise MethodError(
            f"method {method.name!r}: its intervals are about the points of the pool alone, and this pool is a random "
            f"sample of {pool.sampled_from:,} rows; methods that count that: {_able_ahead()}"
        )
    check_installed(method)


def check_ahead(method: Method, pool: Pool | None = None) -> None:
    """MethodError if the method's intervals cannot be about data like the pool, naming methods whose can; PlanError
    if rows have weights.
    """
    if not method.traits.ahead:
        raise MethodError(
            f"method {method.name!r} with about='future': its intervals are about the items of the pool alone; methods "
            f"that can speak of data like them: {_able_ahead()}"
        )
    if pool is not None and pool.weights is not None:
        raise PlanError(
            "about='future' with rows that have weights: whether a row that stands for k is one observation or k of "
            "them is not known; write the rows out and name what comes together (group=), or leave one of the two out"
        )


def check_draw(method: Method, draw: Draw, pool: Pool | None = None) -> None:
    """MethodError or PlanError if the method cannot draw whole groups, or the pool does not allow it."""
    if draw == "items":
        return
    if not method.traits.groups:
        raise MethodError(
            f"method {method.name!r} with draw='groups': it draws single items; methods that can draw whole groups: "
            f"{', '.join(name for name, make in METHODS.items() if make().traits.groups)}; nothing was recorded"
        )
    if pool is not None and pool.group is None:
        raise PlanError(
            "draw='groups': this pool has no groups; name what items come together in with group= (--group COLUMN), "
            "or leave it out to draw single items; nothing was recorded"
        )
    if pool is not None and pool.sampled_from is not None:
        raise PlanError(
            f"draw='groups' with a pool that is a random sample of {pool.sampled_from:,} rows: these were taken one by "
            "one, so that its groups are not whole; read all rows (sample=0), or draw single items; nothing was "
            "recorded"
        )
    if pool is not None and pool.weights is not None and method.name != "assured":
        raise PlanError(
            f"draw='groups' with rows that have weights: method {method.name!r} counts every row of a group once; "
            "methods that can: assured; nothing was recorded"
        )


def _able_ahead() -> str:
    return ", ".join(name for name, make in METHODS.items() if make().traits.ahead)


def check_installed(method: Method) -> None:
    """MissingExtra if what the method computes with is not installed."""
    require(method.traits.extra, f"method {method.name!r}")


def lacking(method: Method, pool: Pool) -> str:
    """What the method requires and the pool does not have, in words; empty if nothing."""
    return " and ".join(method.traits.lacking(pool))


def unsupported(method: Method, metrics: Sequence[Metric]) -> str:
    """Why the method cannot estimate these metrics, in words; empty if it can."""
    traits = method.traits
    unknown = [metric.name for metric in metrics if traits.metrics and not metric.is_one_of(traits.metrics)]
    if unknown:
        return f"cannot estimate {listing(unknown, 5)} (it knows {', '.join(traits.metrics)})"
    beyond = [metric.name for metric in metrics if not (traits.any_metric or metric.of_one_table)]
    if beyond:
        return f"is made for the predictions of one model and cannot estimate {listing(beyond, 5)}"
    classes = {metric.classes for metric in metrics}
    if traits.one_class and len(classes) > 1:
        names = listing([metric.name for metric in metrics], 5)
        return f"works on one class at a time (or on the whole), and {names} are about several"
    return ""
