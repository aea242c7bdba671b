"""`altmas extend`: more items, labels, metrics, targets or thresholds in a session that exists."""

from pathlib import Path
from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import START, command
from altmas.pool.growth import WAVE


@command(
    "extend",
    START,
    "altmas extend xray.altmas --budget 500",
    "altmas extend xray.altmas --data november.parquet --wave 2026-11 --wave-budget 100 --budget 600",
    'altmas extend xray.altmas --metric "recall[pneumonia]" --target "recall[pneumonia]=0.04"',
)
def extend(
    session: opt.SessionFile,
    data: opt.OptionalData = None,
    wave: Annotated[
        str | None,
        typer.Option(
            "--wave",
            metavar="NAME",
            help="How the new items are called; by default the date.",
            rich_help_panel=opt.POOL,
        ),
    ] = None,
    first_wave: Annotated[
        str | None,
        typer.Option(
            "--first-wave",
            metavar="NAME",
            help="How the first ones are called, once for all; by default the date on which the session was made.",
            rich_help_panel=opt.POOL,
        ),
    ] = None,
    prediction: opt.Prediction = None,
    id: opt.Id = None,
    features: opt.Features = None,
    scores: opt.Scores = None,
    slices: opt.Slices = None,
    show_: opt.Show = None,
    encoding: opt.Encoding = None,
    classes: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="NAME", help="A further class; repeatable.", rich_help_panel=opt.POOL),
    ] = None,
    wave_budget: Annotated[
        int | None,
        typer.Option(
            "--wave-budget", help="Labels for each new wave before others are drawn again.", rich_help_panel=opt.AIM
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", "-b", help="How many labels at most, in all.", rich_help_panel=opt.AIM)
    ] = None,
    metrics: opt.MoreMetrics = None,
    targets: opt.Targets = None,
    thresholds: opt.Thresholds = None,
) -> None:
    """Add items to a session, or change what it is to find out: budget, metrics, targets, thresholds, classes.

    Columns of the new table have the roles that they have in the session's unless they are named. The items are kept in
    the session file. The change is recorded with its time, and the report says it. Labels that were told stay.
    """
    columns = {
        "prediction": (prediction[0] if len(prediction) == 1 else _named(prediction)) if prediction else None,
        "id": id,
        "features": features,
        "scores": given.scores_of(scores, prediction or ()),
        "slices": slices,
        "show": (show_[0] if len(show_) == 1 else show_) if show_ else None,
        "encoding": encoding,
    }
    beginning = ""
    with given.opened(session) as opened:
        had_waves = WAVE in opened.pool.slices
        change = opened.extend(
            data,
            wave=wave,
            first_wave=first_wave,
            wave_budget=wave_budget,
            columns=columns,
            classes=classes or (),
            budget=budget,
            metrics=metrics or (),
            targets=given.numbers("--target", targets),
            thresholds=given.thresholds_of(thresholds),
        )
        limit = opened.plan.budget
        if change.wave and not had_waves and first_wave is None:
            beginning = str(opened.pool.slices[WAVE][0])
    show.say(f"{session}: {change.words}; recorded at {show.counted(change.labels, 'label')}")
    if beginning:
        show.hint(f"the items that the session began with are wave {beginning}, its date; --first-wave would name them")
    show.hint(_next(session, change.labels, limit))


def _next(session: Path, labels: int, limit: int | None) -> str:
    """What to do next: label, or raise a budget that is spent."""
    if limit is None or labels < limit:
        return f"next: altmas label {session}"
    return (
        f"nothing more is asked: the budget of {show.counted(limit, 'label')} is spent; raise it with "
        f"altmas extend {session} --budget NUMBER"
    )


def _named(prediction: list[str]) -> dict[str, str] | list[str]:
    """{model: column} of MODEL=COLUMN options; columns alone are models of that name."""
    pairs = [option.partition("=") for option in prediction]
    return {model: column for model, _, column in pairs} if all(column for _, _, column in pairs) else prediction
