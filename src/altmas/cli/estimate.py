"""altmas estimate: every metric with its interval."""

from collections import Counter
from typing import Annotated, Any

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import READ, command
from altmas.estimates import FLOOR, LEAST_DRAWN, WORTH, WORTH_AND_WIDTH, Estimates, about_in_words


@command(
    "estimate",
    READ,
    "altmas estimate xray.altmas",
    "altmas estimate xray.altmas --by scanner --by site --json",
    'altmas estimate xray.altmas --metric "recall[pneumonia]"',
)
def estimate(
    session: opt.SessionFile,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="SLICE", help="Every metric on each value of this slice; repeatable."),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", metavar="NAME", help="Other metrics than those of the session; repeatable; not logged."
        ),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Every metric with its interval. "worth": a plain random sample of that many labels would err as little.

    The interval can be wider than that of such a sample, because what no label has shown yet is priced in it. With
    fewer than 20 drawn labels "worth" is left out: so few cannot tell.

    Metrics of the truth, as share[pass], also as each model (judge) alone would have had them.
    """
    with given.opened(session) as opened, show.working("estimating"):
        slices: list[str | None] = [*by] if by else [None]
        parts = {name: opened.estimate(name, metrics=metrics or None) for name in slices}
        sizes = {name: Counter(opened.pool.slices[name].tolist()) for name in by or ()}
        now = opened.now()
        drawn = now.counted_labels
        alone = () if by or metrics else opened.alone()
    if json:
        shown = [_plain(estimates, sizes.get(name or "")) for name, estimates in parts.items()]
        beside = {"alone": [answer.to_dict() for answer in alone]} if alone else {}
        show.as_json(shown[0] | beside if len(shown) == 1 else {"by": dict(zip(sizes, shown, strict=True))})
        return
    for name, estimates in parts.items():
        if name is not None:
            points = (f"{value} {show.counted(count, 'point')}" for value, count in sorted(sizes[name].items()))
            show.say(f"{name}: " + ", ".join(points))
        show.estimates(estimates, drawn, 0 if name is None else FLOOR, now.counting if name is None else None)
    for answer in alone:
        show.say(str(answer))
    for remark in estimates.remarks:
        show.say(remark)
    show.say(about_in_words(estimates.about))
    if drawn >= LEAST_DRAWN:
        show.hint(f"worth: {WORTH}; {WORTH_AND_WIDTH}")
    elif drawn:
        show.hint(f"worth: not shown with fewer than {LEAST_DRAWN} drawn labels")


def _plain(estimates: Estimates, points: Counter[str] | None) -> dict[str, Any]:
    """The estimates for JSON; on slices with their sizes and those with too few labels."""
    if points is None:
        return estimates.to_dict()
    few = [estimate.metric for estimate in estimates if estimate.labels < FLOOR]
    return {**estimates.to_dict(), "points": dict(sorted(points.items())), "insufficient": few}
