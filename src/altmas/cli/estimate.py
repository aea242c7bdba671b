"""altmas estimate: every metric with its interval."""

from typing import Annotated

import typer

from altmas.cli import options as opt
from altmas.cli import show
from altmas.cli.app import READ, command
from altmas.estimates import FLOOR


@command(
    "estimate",
    READ,
    "altmas estimate xray.altmas",
    "altmas estimate xray.altmas --by scanner --json",
    'altmas estimate xray.altmas --metric "recall[pneumonia]"',
)
def estimate(
    session: opt.SessionFile,
    by: Annotated[str | None, typer.Option("--by", help="Every metric on each value of this slice.")] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", metavar="NAME", help="Other metrics than those of the session; repeatable; not logged."
        ),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Every metric with its interval. "worth": how many labels of a plain random sample would err as little."""
    with opt.opened(session) as one, show.working("estimating"):
        found = one.estimate(by, metrics=metrics or None)
        column = one.pool.slices[by].tolist() if by else []
    points = {value: column.count(value) for value in sorted(set(column))}
    floor = FLOOR if by else 0
    if json:
        few = [one.metric for one in found if one.labels < floor]
        show.as_json({**found.to_dict(), **({"points": points, "insufficient": few} if by else {})})
        return
    if by:
        show.say(f"{by}: " + ", ".join(f"{value} {show.counted(count, 'point')}" for value, count in points.items()))
    show.estimates(found, floor)
