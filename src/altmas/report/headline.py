"""The first thing a report says: one verdict, and what to do next."""

import math
from statistics import NormalDist
from typing import Any

from altmas.estimates import ABOUT_WHAT, LEAST_DRAWN
from altmas.report.words import number, plural

Plain = dict[str, Any]

PROBABLY = 0.8
"""Chance with which the labels that are forecast should settle a threshold."""
HOPELESS = 0.9
"""Share of the pool beyond which a forecast only says that nearly everything would have to be labelled."""


def headline_of(content: Plain) -> Plain:
    """{"verdict", "next", "tone"} from a report's content: a missed aim first, then an open one, then the rest."""
    rows = content["metrics"]
    judged = [one for one in rows if one["threshold"] is not None or one["target"] is not None]
    for tone in ("bad", "open", "good"):
        for one in judged:
            if one["verdict"]["tone"] == tone:
                return _judged(one, judged, content)
    return _plain(rows[0], content) if rows else {"verdict": "Nothing was asked for.", "next": "", "tone": "plain"}


def _judged(one: Plain, judged: list[Plain], content: Plain) -> Plain:
    if one["value"] is None or one["low"] is None:
        return _plain(one, content) | {"tone": "open"}
    tone = one["verdict"]["tone"]
    parts = [_next(one, tone, content), _others(judged) if len(judged) > 1 else ""]
    return {"verdict": _sentence(one, tone), "next": " ".join(filter(None, parts)), "tone": tone}


def _sentence(one: Plain, tone: str) -> str:
    """The verdict on a metric with a threshold or a target."""
    threshold, target = one["threshold"], one["target"]
    if threshold is None:
        half = (one["high"] - one["low"]) / 2
        bounds = f" ({_bare(one, one['low'])}–{_bare(one, one['high'])})," if _lopsided(one) else ""
        said = f"{one['metric']} is {share(one, one['value'])}{bounds} ± {_bare(one, half, 1)}"
        wanted = share(one, target, exact=True).removesuffix(" %")
        if tone == "good":
            return f"Precise enough: {said}, and ± {wanted} was wanted."
        return f"Not precise enough yet: {said}, you want ± {wanted}."
    said = f"{one['metric']} is {share(one, one['value'])} ({_bare(one, one['low'])}–{_bare(one, one['high'])})"
    limit = share(one, threshold, exact=True)
    if tone == "open":
        return f"Not decided yet: {said}, you need {'at most ' if one['lower_is_better'] else ''}{limit}."
    relation = "at least" if one["low"] >= threshold else "below"
    wish = "allow" if one["lower_is_better"] else "need"
    return f"{'Good enough' if tone == 'good' else 'Not good enough'}: {said}, {relation} the {limit} you {wish}."


def _lopsided(one: Plain) -> bool:
    """Whether "value ± half the width" would say something else than the interval does."""
    half = (one["high"] - one["low"]) / 2
    return bool(max(one["high"] - one["value"], one["value"] - one["low"]) > 1.2 * half)


def _others(judged: list[Plain]) -> str:
    counts = {tone: sum(one["verdict"]["tone"] == tone for one in judged) for tone in ("good", "open", "bad")}
    words = {"good": "met", "open": "open", "bad": "missed"}
    said = ", ".join(f"{counts[tone]} {word}" for tone, word in words.items() if counts[tone])
    return f"Aims: {said}."


def _next(one: Plain, tone: str, content: Plain) -> str:
    if tone != "open":
        return "You can stop labelling." if tone == "good" else "More labels would hardly change that."
    if content["drawn_labels"] < LEAST_DRAWN:
        missing = plural(LEAST_DRAWN - content["drawn_labels"], "more label")
        return f"Nothing is decided with fewer than {LEAST_DRAWN} drawn labels: at least {missing} to go."
    more = labels_needed(one, content["labels"], content["pool"]["points"])
    if math.isinf(more):
        left = _bare(one, one["least_half_width"], 1)
        return (
            f"Labels alone will not do: about {ABOUT_WHAT[content['plan']['about']]} \u00b1{left} is left when every "
            "point is labelled; take a larger pool."
        )
    if math.isnan(more):
        return "More labels are needed; how many cannot be said yet."
    settled = "settle it" if one["threshold"] is not None else "reach that"
    if content["labels"] + more > HOPELESS * content["pool"]["points"]:
        return f"Only labelling nearly all {content['pool']['points']:,} points would {settled}."
    said = f"About {plural(round_up(more), 'more label')} would probably {settled}"
    budget = content["plan"]["budget"]
    if budget is None or content["labels"] + more <= budget:
        return f"{said}."
    left = budget - content["labels"]
    return f"{said}, and {f'{left:,} of the budget are left' if left > 0 else 'the budget is spent'}."


def labels_needed(one: Plain, labels: int, points: int) -> float:
    """About how many more labels an open metric needs, if its value stays and widths shrink as those of a sample do.

    Var ~ 1/n - 1/N. A target needs its half-width. A threshold at distance d needs d >= (z + z') se, with z of the
    confidence and z' of the chance that the interval is then clear of it. nan without an interval or a label.
    """
    half = (one["high"] - one["low"]) / 2
    if labels == 0 or not half > 0:
        return math.nan
    if one["threshold"] is None:
        wanted = one["target"]
    else:
        z = NormalDist().inv_cdf((1 + one["confidence"]) / 2)
        wanted = abs(one["value"] - one["threshold"]) * z / (z + NormalDist().inv_cdf(PROBABLY))
    least = one.get("least_half_width") or 0.0
    if least >= wanted:
        return math.inf
    spread = (1 / labels - 1 / points) * (wanted**2 - least**2) / max(half**2 - least**2, 1e-300)
    needed = 1 / (spread + 1 / points)
    return max(1.0, float(needed) - labels)


def round_up(count: float) -> int:
    """A forecast with no more digits than it deserves."""
    step = 10 ** max(0, math.floor(math.log10(max(count, 1))) - 1)
    step = step if count < 20 else max(step, 5)
    return int(math.ceil(count / step) * step)


def _plain(one: Plain, content: Plain) -> Plain:
    """A metric that nothing was wanted of, or that has no interval to judge it by."""
    if one["value"] is None:
        return {"verdict": f"Nothing can be said about {one['metric']} yet.", "next": _begin(content), "tone": "open"}
    value = share(one, one["value"])
    if one["low"] is None:
        return {
            "verdict": f"{one['metric']} is about {value}; method {content['method']} gave no interval.",
            "next": one["note"][:1].upper() + one["note"][1:] + "." if one["note"] else "",
            "tone": "open",
        }
    if one["low"] == one["high"]:
        exact = share(one, one["value"], exact=True)
        return {"verdict": f"{one['metric']} is exactly {exact}.", "next": "Every point is labelled.", "tone": "plain"}
    bounds = f"({_bare(one, one['low'])}–{_bare(one, one['high'])})"
    said = f"{one['metric']} is {value} {bounds}, with {100 * one['confidence']:g} % confidence."
    return {"verdict": said, "next": "No target or threshold was set, so there is nothing to decide.", "tone": "plain"}


def _begin(content: Plain) -> str:
    if content["labels"] == 0:
        return "No point is labelled: begin with some labels."
    return f"{plural(content['labels'], 'label')} so far do not tell about it: label more."


def share(one: Plain, value: float, *, exact: bool = False) -> str:
    """A value as people say it: per cent where the metric lies between 0 and 1."""
    if one["bounds"] != [0.0, 1.0]:
        return f"{value:g}" if exact else number(value)
    return f"{100 * value:.6g} %" if exact else f"{_bare(one, value)} %"


def _bare(one: Plain, value: float, more: int = 0) -> str:
    """The same without its unit; as many digits as the interval's width deserves, or some more."""
    if one["bounds"] != [0.0, 1.0]:
        return number(value)
    half = math.inf if one["low"] is None else (one["high"] - one["low"]) / 2
    digits = 0 if half >= 0.02 else 1 if half >= 0.002 else 2
    return f"{100 * value:.{digits + more}f}"
