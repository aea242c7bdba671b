"""`altmas rank`: which of several models is best."""

import math
from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
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
    with given.opened(session) as opened, show.working("comparing the models"):
        ranking = opened.ranking(metric)
    if json:
        show.as_json(ranking.to_dict())
        return
    columns = ("model", ranking.metric, "behind the best", "interval", "tier")
    show.table(columns, map(_row, ranking), right=columns[1:4])
    show.paragraph(ranking.summary)


def _row(ranked: Ranked) -> tuple[str, ...]:
    bounds = "-" if math.isnan(ranked.low) else f"[{ranked.low:+.4f}, {ranked.high:+.4f}]"
    return ranked.model, show.number(ranked.value), ranked.shown_behind, bounds, ranked.tier
