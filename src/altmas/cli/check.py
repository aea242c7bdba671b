"""altmas check: whether the labels show a claim."""

from typing import Annotated

import typer

from altmas.claims import Claim, judge
from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import READ, command

EXIT_OF = {"shown": 0, "refuted": 1, "undecided": 3}


@command("check", READ, 'altmas check xray.altmas "recall[pneumonia] >= 0.90"', 'altmas check xray.altmas "error < 5%"')
def check(
    session: opt.SessionFile,
    claim: Annotated[
        str, typer.Argument(metavar="CLAIM", help="A metric, >= > <= or <, a number.", show_default=False)
    ],
    guarantee: Annotated[
        bool | None,
        typer.Option(
            "--guarantee/--no-guarantee",
            help="Refuse to decide by an interval where no finite-sample proof is offered; by default as the "
            "session was made.",
            show_default=False,
        ),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Whether the labels show a claim, for pipelines: exit 0 shown, 1 refuted, 3 undecided, 2 usage.

    Shown and refuted are decided by a test with a finite-sample proof that holds at every look where the metric is a
    ratio of sums and the method draws with known chances (assured, tradition): each is false with probability 5 % at
    most (1 - confidence). Elsewhere the interval decides, and a note says so.
    """
    with given.opened(session) as opened, show.working("estimating"):
        verdict = judge(opened, Claim.parse(claim), guarantee=guarantee)
    if json:
        show.as_json(verdict.to_dict())
    else:
        show.say(str(verdict))
    if verdict.caution:
        show.hint(f"note: {verdict.caution}")
    raise typer.Exit(EXIT_OF[verdict.answer])
