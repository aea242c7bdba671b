"""`altmas monitor`: the level of a metric in each wave, and whether a drop is shown."""

import math
from pathlib import Path
from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import READ, command, literal
from altmas.monitoring import Level
from altmas.outputs import kept_by, write_whole

EXIT_OF = {"no drop": 0, "drop": 1, "cannot tell": 3}


@command(
    "monitor",
    READ,
    "altmas monitor xray.altmas",
    'altmas monitor xray.altmas --metric "recall[pneumonia]" --tolerance 0.02 --figure waves.svg',
)
def monitor(
    session: opt.SessionFile,
    metric: Annotated[
        str | None,
        typer.Option("--metric", "-m", metavar="NAME", help=literal("By default the session's first metric.")),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="WAVE", help="The wave to compare with; by default the one before."),
    ] = None,
    tolerance: Annotated[float, typer.Option("--tolerance", help="A drop has to be larger than this.")] = 0.0,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Write the levels as an .svg.")
    ] = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Whether the newest wave is worse, for pipelines: exit 0 no drop shown, 1 a drop is shown, 3 cannot tell yet.

    A drop is shown by confidence sequences that hold at every look and for all waves together: the chance that any
    alarm is ever false is 5 % at most (1 - confidence). "Looks so, not shown yet" (exit 0) means that the interval of
    the change, which is for one look, lies beyond 0 (or the tolerance), and the test for every look has not decided.
    Unless --against is given, the newest wave is compared with the one before and with the first.
    "Cannot tell yet" means fewer than 20 labels in either wave. Of a metric that is better when it is lower (error,
    cost, log loss) a rise is looked for in place of a drop.
    """
    with given.opened(session) as opened, show.working("estimating"):
        levels = opened.monitor(metric, against=against, tolerance=tolerance)
        if figure is not None:
            write_whole(figure, levels.to_svg().encode(), force=force, kept=kept_by(opened.pool, opened.path))
    if json:
        show.as_json(levels.to_dict())
    else:
        columns = ("wave", "items", "labels", levels.metric, "interval", "change", "at every look", levels.worse)
        show.table(columns, map(_row, levels), right=columns[1:7])
        show.paragraph(levels.summary)
    raise typer.Exit(EXIT_OF[levels.answer])


def _row(level: Level) -> tuple[str, ...]:
    change = "-" if math.isnan(level.change) else f"{level.change:+.3f}"
    change += "" if math.isnan(level.change_low) else f" [{level.change_low:+.3f}, {level.change_high:+.3f}]"
    interval = "-" if math.isnan(level.low) else f"[{level.low:.3f}, {level.high:.3f}]"
    always = f"[{level.always_low:.3f}, {level.always_high:.3f}]"
    words = {"drop": "shown", "no drop": "not shown", "cannot tell": "cannot tell yet"}
    drop = "looks so, not shown yet" if level.looks_worse else words[level.answer] if level.against else "-"
    return level.wave, f"{level.points:,}", str(level.labels), show.number(level.value), interval, change, always, drop
