"""altmas init: a session file from a table of predictions."""

from pathlib import Path
from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import START, command
from altmas.errors import PoolError
from altmas.estimates import drawn_in_words
from altmas.methods import DEFAULT_METHOD
from altmas.session import Session
from altmas.session.archive import LIMIT, archivable
from altmas.suggest import listing
from altmas.task import DEFAULT_CONFIDENCE, DEFAULT_METRICS


@command(
    "init",
    START,
    "altmas init xray.altmas --data preds.parquet --id study_id --prediction vendor_label --features emb.npy "
    '--metric accuracy --metric "recall[pneumonia]" --slice scanner --budget 300 --target "recall[pneumonia]=0.04"',
    "altmas init tickets.altmas --data tickets.csv --prediction predicted --show text --metric macro_f1 --budget 150",
    "altmas init both.altmas --data tickets.csv --prediction v1 --prediction v2 --show text --budget 150",
    'altmas init answers.altmas --data answers.jsonl --show answer --class pass --class fail --metric "share[pass]"',
    notes=opt.method_notes(),
)
def init(
    session: opt.SessionFile,
    data: opt.Data,
    prediction: opt.Prediction = None,
    id: opt.Id = None,
    features: opt.FeaturesOrShown = None,
    scores: opt.Scores = None,
    slices: opt.Slices = None,
    show_: opt.Show = None,
    classes: opt.Classes = None,
    group: opt.Group = None,
    values: opt.Values = None,
    weight: opt.Weight = None,
    sample: opt.Sample = None,
    store: opt.Store = None,
    encoding: opt.Encoding = None,
    metrics: opt.Metrics = None,
    method: opt.Method = None,
    budget: Annotated[
        int | None, typer.Option("--budget", "-b", help="How many labels at most.", rich_help_panel=opt.AIM)
    ] = None,
    targets: opt.Targets = None,
    thresholds: opt.Thresholds = None,
    confidence: opt.Confidence = DEFAULT_CONFIDENCE,
    about: opt.About = "pool",
    draw: opt.Draw = "items",
    guarantee: opt.Guarantee = False,
    rank: Annotated[
        str,
        typer.Option(
            "--rank",
            metavar="METRIC",
            help="Which of several models is best by this metric? Items are drawn where contenders differ.",
            rich_help_panel=opt.AIM,
        ),
    ] = "",
    seed: opt.Seed = 0,
    double_share: Annotated[
        float,
        typer.Option(
            "--double-share", help="Share of items that two people label blindly.", rich_help_panel=opt.PEOPLE
        ),
    ] = 0.0,
    instructions: Annotated[
        str, typer.Option("--instructions", help="What labellers are told.", rich_help_panel=opt.PEOPLE)
    ] = "",
    definitions: Annotated[
        list[str] | None,
        typer.Option(
            "--definition",
            metavar="NAME=TEXT",
            help='What a class means, as "cat=any feline"; repeatable.',
            rich_help_panel=opt.PEOPLE,
        ),
    ] = None,
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="Go on with the session if it is there already.")
    ] = False,
) -> None:
    """Make a session file from a table of predictions.

    The table is checked as a whole before anything is written. The file then holds the plan and every label;
    keep the table where it is, the session reads it again. Without --prediction it is the items themselves that are
    judged: name the classes with --class, and a metric of the truth, as share[pass].
    """
    pool = given.pool_of(
        data,
        prediction=prediction,
        id=id,
        features=features,
        scores=scores,
        slices=slices,
        show=show_,
        classes=classes,
        group=group,
        values=values,
        weight=weight,
        sample=sample,
        seed=seed,
        store=store,
        encoding=encoding,
    )
    if pool.source is None and not archivable(pool):
        raise PoolError(
            f"{data} is not on this machine, and its features and scores are more than {LIMIT // 2**20} MB: no later "
            "command could open the session; keep them here with --store pool.parquet; nothing was made"
        )
    created = Session.create(
        session,
        pool,
        metrics=metrics or list(DEFAULT_METRICS),
        method=method or DEFAULT_METHOD,
        budget=budget,
        targets=given.numbers("--target", targets),
        thresholds=given.thresholds_of(thresholds),
        confidence=confidence,
        seed=seed,
        exist_ok=exist_ok,
        double_share=double_share,
        guarantee=guarantee,
        about=given.about_of(about),
        draw=given.draw_of(draw),
        rank=rank,
        instructions=instructions,
        definitions=given.pairs("--definition", definitions, last=False),
    )
    _say_what_was_made(created, session, column_of_one_class=bool(scores) and len(scores or ()) <= len(pool.models))
    show.hint(f"next: altmas label {session}")


def _say_what_was_made(created: Session, path: Path, *, column_of_one_class: bool) -> None:
    """The pool, its classes, metrics and method; column_of_one_class: whether each model has one column of scores."""
    pool, plan = created.pool, created.plan
    names = listing((str(name) for name in pool.classes), 8)
    show.say(f"{path}: {len(pool):,} points, {len(pool.classes)} classes: {names}")
    if len(pool.models) > 1:
        show.say(f"{show.counted(len(pool.models), 'model')}: {', '.join(model.name for model in pool.models)}")
    metrics = [metric.name for metric in created.task.metrics]
    more = f" and {show.counted(len(metrics) - 4, 'metric')} more" if len(metrics) > 4 else ""
    limit = f"up to {plan.budget:,} labels" if plan.budget else "no budget set"
    show.say(f"{', '.join(metrics[:4])}{more}: method {created.method.name}, {limit}")
    if column_of_one_class and len(pool.classes) == 2:
        show.say(f"scores: one column is the probability of {pool.classes[1]!r}")
    if plan.rank:
        show.say("labels go where models differ: intervals of their levels are wider than without --rank")
    if words := drawn_in_words(created.task):
        show.say(words)
    if pool.classes_inferred:
        show.hint("the classes are those that are predicted; if a label can be another one, name each with --class")
