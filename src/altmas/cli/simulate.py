"""altmas simulate: methods on data whose labels are known."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import TRUST, command
from altmas.errors import PlanError
from altmas.methods import DEFAULT_METHOD
from altmas.pool.naming import Name
from altmas.pool.tables import classes_of
from altmas.simulate import Row, finished_runs
from altmas.simulate import simulate as run
from altmas.suggest import listing
from altmas.task import DEFAULT_CONFIDENCE, DEFAULT_METRICS


@command(
    "simulate",
    TRUST,
    "altmas simulate --data old.parquet --prediction vendor_label --truth label --metric accuracy --repeats 20",
    "altmas simulate --data old.csv --prediction predicted --truth label --features emb.npy "
    "--method druck --method tradition --budget 50 --budget 100 --results runs.jsonl",
    notes=opt.method_notes(),
)
def simulate(
    data: opt.Data,
    truth: Annotated[
        str,
        typer.Option(
            "--truth",
            metavar="COLUMN",
            help="Column with the true class.",
            rich_help_panel=opt.POOL,
            show_default=False,
        ),
    ],
    prediction: opt.Prediction = None,
    id: opt.Id = None,
    features: opt.Features = None,
    scores: opt.Scores = None,
    slices: opt.Slices = None,
    classes: opt.Classes = None,
    group: opt.Group = None,
    values: opt.Values = None,
    weight: opt.Weight = None,
    sample: opt.Sample = None,
    encoding: opt.Encoding = None,
    metrics: opt.Metrics = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="NAME",
            autocompletion=opt.method_names,
            help="A method to run; repeatable. Default: assured and tradition; with --rank assured alone, as tradition "
            "does not rank. All are listed below.",
            rich_help_panel=opt.AIM,
        ),
    ] = None,
    budgets: Annotated[
        list[int] | None,
        typer.Option(
            "--budget",
            "-b",
            help="Numbers of labels to look at; repeatable. Default: 50, 100, 200.",
            rich_help_panel=opt.AIM,
        ),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Runs of each method.")] = 20,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Labels told between two choices of items.")] = 10,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes at once.")] = 2,
    results: Annotated[
        Path | None, typer.Option("--results", help="Keep finished runs in this .jsonl file and go on from it.")
    ] = None,
    rank: Annotated[
        str,
        typer.Option("--rank", metavar="METRIC", help="Rank several models by this metric.", rich_help_panel=opt.AIM),
    ] = "",
    confidence: opt.Confidence = DEFAULT_CONFIDENCE,
    about: opt.About = "pool",
    draw: opt.Draw = "items",
    seed: opt.Seed = 0,
    json: opt.Json = False,
) -> None:
    """Run methods on data whose labels are known: how far off would each have been?

    "label value" is how many random labels one label of the method is worth, with a 90 % interval of its own.
    """
    true = classes_of(data, truth, encoding, classes or None)
    answers = [classes_of(data, column, encoding, classes or None) for column in prediction or ()]
    predicted = {name for column in answers for name in column.tolist()}
    _refuse_other_names(truth, set(true.tolist()), prediction or (), predicted)
    names = classes or sorted({*true.tolist(), *predicted}, key=lambda name: (str(type(name)), name))
    pool = given.pool_of(
        data,
        prediction=prediction,
        id=id,
        features=features,
        scores=scores,
        slices=slices,
        classes=names,
        group=group,
        values=values,
        weight=weight,
        sample=0,
        encoding=encoding,
    )
    with _saying_what_is_kept(results):
        simulation = run(
            pool,
            true,
            methods=list(dict.fromkeys(methods or ([DEFAULT_METHOD] if rank else [DEFAULT_METHOD, "tradition"]))),
            metrics=metrics or list(DEFAULT_METRICS),
            budgets=budgets or [min(n, sample or len(pool)) for n in (50, 100, 200)],
            repeats=repeats,
            seed=seed,
            n_jobs=jobs,
            batch=batch,
            confidence=confidence,
            rank=rank,
            about=given.about_of(about),
            draw=given.draw_of(draw),
            sample=sample or None,
            results=results,
            progress=not show.quiet(),
        )
    if json:
        show.as_json({"summary": simulation.summary(), "rows": simulation.rows})
        return
    columns = ("method", "metric", "labels", "truth", "bias", "rmse", "coverage", "width", "label value")
    show.table(columns, map(_cells, simulation.summary()), right=columns[2:])


def _cells(row: Row) -> tuple[str, ...]:
    """A row of the summary as the table shows it."""
    label_value = f"{row['label_value']:.2f} [{row['label_value_low']:.2f}, {row['label_value_high']:.2f}]"
    return (
        row["method"],
        row["metric"],
        str(row["labels"]),
        show.number(row["truth"]),
        "-" if math.isnan(row["bias"]) else f"{row['bias']:+.4f}",
        show.number(row["rmse"]),
        show.number(row["coverage"], 2),
        show.number(row["width"]),
        "-" if math.isnan(row["label_value"]) else label_value,
    )


def _refuse_other_names(truth: str, true: set[Name], predictions: Sequence[str], predicted: set[Name]) -> None:
    """PlanError if no prediction can be right, because the column of the truth has other names."""
    if predicted and not true & predicted:
        shown, known = (listing(sorted(map(str, names)), 6) for names in (true, predicted))
        raise PlanError(
            f"--truth {truth!r} and --prediction {listing(predictions)} have no value in common (truth: {shown}; "
            f"predictions: {known}): no prediction could be right; name the column with the true classes"
        )


@contextmanager
def _saying_what_is_kept(results: Path | None) -> Iterator[None]:
    """Ctrl-C ends with how many runs are kept, and where."""
    try:
        yield
    except KeyboardInterrupt:
        if results is None:
            show.hint("stopped; no run is kept (--results FILE.jsonl keeps them, and goes on from them)")
        else:
            kept = show.counted(finished_runs(results), "finished run")
            show.hint(f"stopped; {kept} kept in {results}: the same command goes on from there")
        raise
