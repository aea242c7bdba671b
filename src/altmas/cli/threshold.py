"""altmas threshold: which threshold of a score keeps a claim."""

from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import READ, command, literal


@command("threshold", READ, 'altmas threshold xray.altmas "recall[pneumonia] >= 0.90"')
def threshold(
    session: opt.SessionFile,
    claim: Annotated[
        str,
        typer.Argument(
            metavar="CLAIM",
            help=literal(
                'As "recall[cat] >= 0.9", cat being the class whose score is cut; or precision, specificity, npv.'
            ),
            show_default=False,
        ),
    ],
    json: opt.Json = False,
) -> None:
    """The largest threshold of a class's score that is shown to keep its recall, and the precision that it costs.

    For npv likewise; for precision and specificity the smallest threshold shown to keep them, and the recall that it
    costs. Candidates are tested one after another, each at the confidence of the session, until the first at which the
    claim is not shown. Exit 0 if there is such a threshold, 3 if none is shown yet.
    """
    with given.opened(session) as opened, show.working("estimating"):
        choice = opened.threshold(claim)
    if json:
        show.as_json(choice.to_dict())
    else:
        show.say(str(choice))
    raise typer.Exit(0 if choice.found else 3)
