"""altmas ask: the next items to label."""

from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import LABEL, command
from altmas.session import LEASE_SECONDS


@command("ask", LABEL, "altmas ask xray.altmas -n 10", "altmas ask xray.altmas -n 10 --annotator ana --json")
def ask(
    session: opt.SessionFile,
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="How many items.")] = 1,
    annotator: opt.Annotator = None,
    lease: Annotated[
        float, typer.Option("--lease", min=0, help="Seconds for which a named annotator keeps them.")
    ] = LEASE_SECONDS,
    take_over: opt.TakeOver = False,
    json: opt.Json = False,
) -> None:
    """The next items to label; the same ones until something is told.

    Predictions are not shown: whoever labels should not know what the model says.
    """
    with given.opened(session) as opened, show.working("choosing items"):
        queries = opened.ask(n, annotator, lease, take_over=take_over)
        fewer, others = opened.why_fewer(n, len(queries), annotator), bool(opened.held_by_others(annotator))
        decision = None if queries or others else opened.should_stop()
        reached = given.goal_reached(opened) if queries else ""
    if json:
        show.as_json([{"id": query.id, "index": query.index, "item": query.item} for query in queries])
    else:
        for query in queries:
            show.say(str(query.id) if query.item is None else f"{query.id}\t{show.one_line(query.item)}")
    if reached:
        show.hint(reached)
    if fewer:
        words = decision.reason if decision is not None and decision.stop else fewer
        show.hint(f"{f'{len(queries):,} of {n:,} asked for' if queries else 'nothing to ask'}: {words}")
    if fewer and others:
        show.hint("--take-over gives the items of others to you")
