"""`altmas add-model`: one more model in a session, judged by the labels that exist."""

from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import START, command
from altmas.compare import read_second
from altmas.pool.tables import scores_in


@command(
    "add-model",
    START,
    "altmas add-model xray.altmas v2 --data v2.csv --prediction vendor_label --id study_id",
    "altmas add-model xray.altmas v2 --data v2.csv --prediction predicted --scores p_cat --scores p_dog",
)
def add_model(
    session: opt.SessionFile,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the model is called.", show_default=False)],
    data: Annotated[
        str,
        typer.Option(
            "--data", metavar="FILE", help="Table of the model: .csv, .jsonl or .parquet.", show_default=False
        ),
    ],
    prediction: Annotated[
        str, typer.Option("--prediction", metavar="COLUMN", help="Column with its predicted class.", show_default=False)
    ],
    scores: Annotated[
        list[str] | None,
        typer.Option("--scores", metavar="COLUMN", help="Column with its probability of one class; repeatable."),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column with the ids of the pool; without, rows are in its order."),
    ] = None,
    encoding: opt.Encoding = None,
) -> None:
    """Add a model to a session: the labels told so far tell about it too.

    Its answers are recorded in the session file. It must not have been trained on labels of this session, nor chosen
    by them.
    """
    with given.opened(session) as opened:
        with show.working("reading the table"):
            answers, ids = read_second(opened.pool, data, prediction, id, encoding)
            probabilities = scores_in(data, scores, encoding) if scores else None
        opened.add_model(name, answers, probabilities, ids=ids)
        models = [model.name for model in opened.pool.models]
        labels = len(opened.history.labels)
        of_truth = not any(metric.needs_answers for metric in opened.task.metrics)
    show.say(f"{session}: model {name} added; {show.counted(labels, 'label')} so far, models: {', '.join(models)}")
    if of_truth:  # its metrics are of the labels alone: the model is a judge
        show.hint(
            f"next: altmas estimate {session} -m accuracy -m kappa for how good it is, or altmas report {session}"
        )
    else:
        show.hint(f"next: altmas estimate {session}, or altmas rank {session}")
