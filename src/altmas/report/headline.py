"""The first thing a report says: one verdict, and what to do next."""

import math
from statistics import NormalDist
from typing import Any

from altmas.estimates import ABOUT_WHAT, LEAST_DRAWN
from altmas.report.words import KNOWN_WHOLLY, NOT_DRAWN, number, plural

Plain = dict[str, Any]

PROBABLY = 0.8
"""Chance with which the labels that are forecast should settle a threshold."""
HOPELESS = 0.9
"""Share of the pool beyond which a forecast only says that nearly everything would have to be labelled."""


def headline_of(content: Plain) -> Plain:
    """{"verdict", "next", "tone"} from a report's content.

    A drop that is shown comes first, then a missed aim, an open one and one that is met; without aims what the waves or
    the ranking of several models say, and else the first metric. Where that one is of the truth and nobody asked for a
    ranking, it comes before the ranking: models are then judges, and what is asked is what people would say.
    """
    rows, waves = content["metrics"], content["waves"]
    if waves is not None and waves["answer"] == "drop":
        return _watched(waves, content)
    judged = [row for row in rows if row["threshold"] is not None or row["target"] is not None]
    for tone in ("bad", "open", "good"):
        for row in judged:
            if row["verdict"]["tone"] == tone:
                return _judged(row, judged, content)
    if waves is not None:
        return _watched(waves, content)
    if content["ranking"] is not None and (content["plan"]["rank"] or rows[0]["model"]):
        return _ranked(content["ranking"])
    return _plain(rows[0], content) if rows else {"verdict": "Nothing was asked for.", "next": "", "tone": "plain"}


def _watched(waves: Plain, content: Plain) -> Plain:
    """Whether the newest wave is worse than the one that it is compared with."""
    last = waves["levels"][-1]
    before = next(level for level in waves["levels"] if level["wave"] == last["against"])
    answer, metric, wave = waves["answer"], waves["metric"], last["wave"]
    if answer == "cannot tell" or last["value"] is None or last["low"] is None or before["value"] is None:
        few = f"That takes {LEAST_DRAWN} drawn labels in {wave} and in {before['wave']}."
        return {"verdict": f"It cannot be told yet whether {metric} is worse in {wave}.", "next": few, "tone": "open"}
    row = last | {name: content["metrics"][0][name] for name in ("bounds", "unit")}
    shown = f"{'A' if answer == 'drop' else 'No'} {waves['worse']} is shown"
    if last["looks_worse"]:
        shown = f"It looks like a {waves['worse']}, but none is shown yet"
    fact = f"{metric} in {wave} is {share(row, last['value'])} ({_bare(row, last['low'])}–{_bare(row, last['high'])})"
    better = last["change_high"] if waves["worse"] == "rise" else last["change_low"]
    improved = better is not None and (better < 0 if waves["worse"] == "rise" else better > 0)
    was = share(row, before["value"])
    compared = f"better than the {was} in {before['wave']}" if improved else f"in {before['wave']} it was {was}"
    sure = f"All alarms, over all waves and looks, are right with probability {100 * waves['confidence']:g} %"
    sure += "." if waves["proven"] else " if labels are many."
    looks = (
        "The interval of the change, which is for one look, excludes 0; the test that holds at every look has not "
        f"decided. More labels in {wave} and {before['wave']} decide it."
    )
    quiet = looks if last["looks_worse"] else "" if improved else "That is no proof that there is none."
    return {
        "verdict": f"{shown}: {fact}, {compared}.",
        "next": sure if answer == "drop" else quiet,
        "tone": "bad" if answer == "drop" else "open" if last["looks_worse"] else "plain",
    }


def _ranked(ranking: Plain) -> Plain:
    """What a session with several models says."""
    others = [row for row in ranking["models"] if row["tier"] != "best"]
    settled = bool(others) and all(row["tier"] == "worse" for row in others)
    finding = ranking["finding"][:1].upper() + ranking["finding"][1:].removesuffix(".") + "."
    return {"verdict": finding, "next": ranking["outlook"], "tone": "good" if settled else "open"}


def _judged(row: Plain, judged: list[Plain], content: Plain) -> Plain:
    if row["value"] is None or row["low"] is None:
        return _plain(row, content) | {"tone": "open"}
    tone = row["verdict"]["tone"]
    parts = [_next(row, tone, content), _others(judged) if len(judged) > 1 else ""]
    return {"verdict": _sentence(row, tone), "next": " ".join(filter(None, parts)), "tone": tone}


def _sentence(row: Plain, tone: str) -> str:
    """The verdict on a metric with a threshold or a target."""
    threshold, target = row["threshold"], row["target"]
    if threshold is None:
        half = (row["high"] - row["low"]) / 2
        bounds = f" ({_bare(row, row['low'])}–{_bare(row, row['high'])})," if _lopsided(row) else ""
        fact = f"{row['metric']} is {share(row, row['value'])}{bounds} ± {_bare(row, half, 1)}"
        aim = share(row, target, exact=True).removesuffix(" %")
        if tone == "good":
            return f"Precise enough: {fact}, and ± {aim} was wanted."
        return f"Not precise enough yet: {fact}, you want ± {aim}."
    fact = f"{row['metric']} is {share(row, row['value'])} ({_bare(row, row['low'])}–{_bare(row, row['high'])})"
    limit = share(row, threshold, exact=True)
    if tone == "open":
        return f"Not decided yet: {fact}, you need {'at most ' if row['lower_is_better'] else ''}{limit}."
    relation = "at least" if row["verdict"]["side"] == "above" else "below"
    wish = "allow" if row["lower_is_better"] else "need"
    clear = row["low"] >= threshold if relation == "at least" else row["high"] < threshold
    if not clear:  # the test for every look shows it, and its interval for many looks would not
        fact, relation = f"{row['metric']} is {share(row, row['value'])}", f"shown to be {relation}"
    return f"{'Good enough' if tone == 'good' else 'Not good enough'}: {fact}, {relation} the {limit} you {wish}."


def _lopsided(row: Plain) -> bool:
    """Whether "value ± half the width" would say something else than the interval does."""
    half = (row["high"] - row["low"]) / 2
    return bool(max(row["high"] - row["value"], row["value"] - row["low"]) > 1.2 * half)


def _others(judged: list[Plain]) -> str:
    counts = {tone: sum(row["verdict"]["tone"] == tone for row in judged) for tone in ("good", "open", "bad")}
    words = {"good": "met", "open": "open", "bad": "missed"}
    listed = ", ".join(f"{counts[tone]} {word}" for tone, word in words.items() if counts[tone])
    return f"Aims: {listed}."


def _next(row: Plain, tone: str, content: Plain) -> str:
    if tone != "open":
        return "You can stop labelling." if tone == "good" else "More labels would hardly change that."
    if content["drawn_labels"] < LEAST_DRAWN:
        missing = plural(LEAST_DRAWN - content["drawn_labels"], "more label")
        return f"Nothing is decided with fewer than {LEAST_DRAWN} drawn labels: at least {missing} to go."
    more = labels_needed(row, content["labels"], content["pool"]["points"])
    if math.isinf(more):
        complete = content["labels"] >= content["pool"]["points"]
        left = _bare(row, (row["high"] - row["low"]) / 2 if complete else row["least_half_width"], 1)
        return (
            f"Labels alone will not do: about {ABOUT_WHAT[content['plan']['about']]} \u00b1{left} is left when every "
            "point is labelled; take a larger pool."
        )
    if math.isnan(more):
        return "More labels are needed; how many cannot be said yet."
    ahead = content["forecast"]
    if ahead is not None and len(_open(content)) == 1:
        beyond = "" if ahead["more"] is not None else "; altmas plan says about how many it would take"
        return f"{ahead['words'][:1].upper()}{ahead['words'][1:]}{beyond}."
    settled = "settle it" if row["threshold"] is not None else "reach that"
    if content["labels"] + more > HOPELESS * content["pool"]["points"]:
        return f"Only labelling nearly all {content['pool']['points']:,} points would {settled}."
    forecast = f"About {plural(round_up(more), 'more label')} would probably {settled}"
    budget = content["plan"]["budget"]
    if budget is None or content["labels"] + more <= budget:
        return f"{forecast}."
    left = budget - content["labels"]
    return f"{forecast}, and {f'{left:,} of the budget are left' if left > 0 else 'the budget is spent'}."


def _open(content: Plain) -> list[Plain]:
    """Metrics with an aim that is open."""
    aims = [row for row in content["metrics"] if row["threshold"] is not None or row["target"] is not None]
    return [row for row in aims if row["verdict"]["tone"] == "open"]


def labels_needed(row: Plain, labels: int, points: int) -> float:
    """About how many more labels an open metric needs, if its value stays and widths shrink as those of a sample do.

    Var ~ 1/n - 1/N. A target needs its half-width. A threshold at distance d needs d >= (z + z') se, with z of the
    confidence and z' of the chance that the interval is then clear of it. nan without an interval or a label.
    """
    half = (row["high"] - row["low"]) / 2
    if labels == 0 or not half > 0:
        return math.nan
    if row["threshold"] is None:
        target = row["target"]
    else:
        z = NormalDist().inv_cdf((1 + row["confidence"]) / 2)
        target = abs(row["value"] - row["threshold"]) * z / (z + NormalDist().inv_cdf(PROBABLY))
    least = row.get("least_half_width") or 0.0
    if least >= target:
        return math.inf
    spread = (1 / labels - 1 / points) * (target**2 - least**2) / max(half**2 - least**2, 1e-300)
    needed = 1 / (spread + 1 / points)
    return max(1.0, float(needed) - labels)


def round_up(count: float) -> int:
    """A forecast with no more digits than it deserves."""
    step = 10 ** max(0, math.floor(math.log10(max(count, 1))) - 1)
    step = step if count < 20 else max(step, 5)
    return int(math.ceil(count / step) * step)


def _plain(row: Plain, content: Plain) -> Plain:
    """A metric that nothing was wanted of, or that has no interval to judge it by."""
    if row["value"] is None:
        return {"verdict": f"Nothing can be said about {row['metric']} yet.", "next": _begin(content), "tone": "open"}
    value = share(row, row["value"])
    if row["low"] is None:
        return {
            "verdict": f"{row['metric']} is about {value}; {_no_interval(content)}.",
            "next": row["note"][:1].upper() + row["note"][1:] + "." if row["note"] else "",
            "tone": "open",
        }
    if row["low"] == row["high"]:
        exact = share(row, row["value"], exact=True)
        return {"verdict": f"{row['metric']} is exactly {exact}.", "next": KNOWN_WHOLLY, "tone": "plain"}
    bounds = f"({_bare(row, row['low'])}–{_bare(row, row['high'])})"
    fact = f"{row['metric']} is {value} {bounds}, with {100 * row['confidence']:g} % confidence."
    return {"verdict": fact, "next": "No target or threshold was set, so there is nothing to decide.", "tone": "plain"}


def _no_interval(content: Plain) -> str:
    return f"method {content['method']} gave no interval" if content["drawn_labels"] else NOT_DRAWN


def _begin(content: Plain) -> str:
    if content["labels"] == 0:
        return "No point is labelled: begin with some labels."
    if waiting := content.get("waiting"):
        return f"{waiting[:1].upper()}{waiting[1:]}."
    tell = "does not tell" if content["labels"] == 1 else "do not tell"
    return f"{plural(content['labels'], 'label')} so far {tell} about it: label more."


def share(row: Plain, value: float, *, exact: bool = False) -> str:
    """A value as people say it: per cent where the metric lies between 0 and 1 and is no area under a curve."""
    if not _in_percent(row):
        return f"{value:g}" if exact else number(value)
    return f"{100 * value:.6g} %" if exact else f"{_bare(row, value)} %"


def _bare(row: Plain, value: float, more: int = 0) -> str:
    """The same without its unit; as many digits as the interval's width deserves, or some more."""
    if not _in_percent(row):
        return number(value)
    half = math.inf if row["low"] is None else (row["high"] - row["low"]) / 2
    digits = 0 if half >= 0.02 else 1 if half >= 0.002 else 2
    return f"{100 * value:.{digits + more}f}"


def _in_percent(row: Plain) -> bool:
    return bool(row["bounds"] == [0.0, 1.0] and row["unit"] != "an area")
