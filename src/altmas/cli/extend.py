"""`altmas extend`: more labels, metrics, targets or thresholds in a session that exists."""

from typing import Annotated

import typer

from altmas.cli import options as opt
from altmas.cli import show
from altmas.cli.app import START, command


@command(
    "extend",
    START,
    "altmas extend xray.altmas --budget 500",
    'altmas extend xray.altmas --metric "recall[pneumonia]" --target "recall[pneumonia]=0.04"',
)
def extend(
    session: opt.SessionFile,
    budget: Annotated[
        int | None, typer.Option("--budget", "-b", help="How many labels at most, in all.", rich_help_panel=opt.AIM)
    ] = None,
    metrics: opt.MoreMetrics = None,
    targets: opt.Targets = None,
    thresholds: opt.Thresholds = None,
) -> None:
    """Change what a session is to find out: a larger budget, further metrics, other targets and thresholds.

    The change is recorded in the session file with its time, and the report says it. Labels that were told stay.
    """
    with opt.opened(session) as one:
        change = one.extend(
            budget=budget,
            metrics=metrics or (),
            targets=opt.numbers("--target", targets),
            thresholds=opt.thresholds_of(thresholds),
        )
    show.say(f"{session}: {change.words}; recorded at {show.counted(change.labels, 'label')}")
    show.hint(f"next: altmas label {session}")
