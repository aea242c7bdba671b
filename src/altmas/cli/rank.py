"""`altmas rank`: which of several models is best."""

import math
from typing import Annotated

import typer

from altmas.cli import options as opt
from altmas.cli import show
from altmas.cli.app import READ, command, literal
from altmas.ranking import Ranked


@command("rank", READ, "altmas rank xray.altmas", 'altmas rank xray.altmas --metric "recall[pneumonia]" --json')
def rank(
    session: opt.SessionFile,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="NAME",
            help=literal("The metric to rank by; by default what the session was made to rank by, or its first."),
        ),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Which model is best? Tiers: the best, those not told apart from it yet, and those shown to be worse.

    The intervals are of how far each model lies behind the best; they hold for all models together.
    """
    with opt.opened(session) as one, show.working("comparing the models"):
        found = one.ranking(metric)
    if json:
        show.as_json(found.to_dict())
        return
    columns = ("model", found.metric, "behind the best", "interval", "tier")
    show.table(columns, map(_row, found), right=columns[1:4])
    show.paragraph(found.summary)


def _row(one: Ranked) -> tuple[str, ...]:
    behind = "-" if math.isnan(one.behind) or one.tier == "best" else f"{one.behind:+.4f}"
    bounds = "-" if math.isnan(one.low) else f"[{one.low:+.4f}, {one.high:+.4f}]"
    return one.model, show.number(one.value), behind, bounds, one.tier
