"""`altmas compare`: a second model on the labels that exist."""

from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import READ, command
from altmas.compare import Difference, read_second
from altmas.suggest import listing


@command(
    "compare",
    READ,
    "altmas compare xray.altmas --predictions v2.csv --prediction vendor_label --id study_id",
    'altmas compare xray.altmas --predictions v2.csv --prediction vendor_label --id study_id -m "recall[pneumonia]"',
)
def compare(
    session: opt.SessionFile,
    predictions: Annotated[
        str,
        typer.Option(
            "--predictions",
            metavar="FILE",
            help="Table of the second model: .csv, .jsonl or .parquet.",
            show_default=False,
        ),
    ],
    prediction: Annotated[
        str, typer.Option("--prediction", metavar="COLUMN", help="Column with its predicted class.", show_default=False)
    ],
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column with the ids of the pool; without, rows are in its order."),
    ] = None,
    encoding: opt.Encoding = None,
    metrics: opt.MetricsOfSession = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="The model of the session that it is compared with; by default the first.",
            show_default=False,
        ),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Is a second model better? Its predictions on the same pool, judged by the labels that exist already.

    Differences are second minus first, from the same items, so what both get right or wrong alike cancels.
    """
    with given.opened(session) as opened, show.working("comparing"):
        second, ids = read_second(opened.pool, predictions, prediction, id, encoding)
        comparison = opened.compare(second, metrics or None, ids=ids, model=model)
        asked = () if metrics else opened.task.metrics
    if json:
        show.as_json(comparison.to_dict())
        return
    show.say(comparison.summary)
    first = f"first: {comparison.first_model}" if comparison.first_model else "first"
    columns = ("metric", first, "second", "difference", "interval", "verdict", "note")
    show.table(columns, map(_row, comparison), right=columns[1:5])
    compared = {difference.metric for difference in comparison}
    if left_out := [one.name for one in asked if one.name.removeprefix(f"{one.model}: ") not in compared]:
        show.hint(f"not compared, since answers alone do not tell or they are of a named model: {listing(left_out)}")


def _row(difference: "Difference") -> tuple[str, ...]:
    return (
        difference.metric,
        show.number(difference.first),
        show.number(difference.second),
        "undefined" if difference.value != difference.value else f"{difference.value:+.4f}",
        "-" if difference.low != difference.low else f"[{difference.low:+.4f}, {difference.high:+.4f}]",
        difference.verdict,
        difference.note,
    )
