"""Options that several commands share; given.py reads what people write there."""

from pathlib import Path
from typing import Annotated

import typer

from altmas.cli.app import literal
from altmas.interop import FORMATS
from altmas.methods import GROUPS, METHODS, grouped
from altmas.metrics import known_names
from altmas.pool.first_phase import AUTOMATIC, LARGE

POOL = "The pool"
AIM = "What to find out"
PEOPLE = "The labellers"


def method_names(incomplete: str) -> list[str]:
    """Methods that a shell can complete."""
    return [name for name in METHODS if name.startswith(incomplete)]


def method_notes() -> list[str]:
    """The methods by group for a help text, each with what the leaderboard says of it."""
    head = "Methods (mean coverage of 95 % intervals, label value; docs/choosing.md has more):"
    return [head, *(grouped(methods, mean=False) for methods in GROUPS.values())]


def metric_names(incomplete: str) -> list[str]:
    """Metrics that a shell can complete."""
    return [name for name in known_names() if name.startswith(incomplete)]


def file_formats(incomplete: str) -> list[str]:
    """Formats that a shell can complete."""
    return [name for name in FORMATS if name.startswith(incomplete)]


SessionFile = Annotated[Path, typer.Argument(metavar="SESSION", help="The session file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Force = Annotated[
    bool, typer.Option("--force", help="Replace a file that is there; never a session or the data that it reads.")
]
Annotator = Annotated[
    str | None, typer.Option("--annotator", "-a", metavar="NAME", help="Who labels.", show_default=False)
]
TakeOver = Annotated[
    bool,
    typer.Option(
        "--take-over", help="Also items that somebody else was shown and has not answered; now they are yours."
    ),
]
LocalFiles = Annotated[
    Path | None,
    typer.Option(
        "--local-files",
        metavar="FOLDER",
        envvar="LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT",
        help="Folder that Label Studio serves: images below it get the address that its local-files storage shows.",
        show_default=False,
    ),
]

_data = typer.Option(
    "--data",
    metavar="FILE",
    help="Table with the model's predictions: .csv, .jsonl, .parquet; or a log of Inspect, promptfoo, DeepEval.",
    rich_help_panel=POOL,
    show_default=False,
)
Data = Annotated[str, _data]
OptionalData = Annotated[str | None, _data]
Prediction = Annotated[
    list[str] | None,
    typer.Option(
        "--prediction",
        metavar="COLUMN",
        help="Column with the predicted class; repeated, one for each of several models, called like their columns.",
        rich_help_panel=POOL,
        show_default=False,
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column with a unique id; by default rows are counted from 0.",
        rich_help_panel=POOL,
    ),
]
_made = (
    "A .npy file aligned by row, a column of numbers, or one of texts, image paths or categories, from which "
    "numbers are made (COLUMN:embedding: by a language model); repeatable."
)
Features = Annotated[
    list[str] | None, typer.Option("--features", metavar="FILE|COLUMN", help=_made, rich_help_panel=POOL)
]
FeaturesOrShown = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        metavar="FILE|COLUMN",
        help=f"{_made} By default what is shown, where numbers can be made of it; none: no features.",
        rich_help_panel=POOL,
    ),
]
Scores = Annotated[
    list[str] | None,
    typer.Option(
        "--scores",
        metavar="[MODEL=]COLUMN",
        help="Column with the model's probability of one class, in class order; repeatable. One is enough for two "
        "classes: that of the second (in the order of --class, else of the alphabet). Of several models: MODEL=COLUMN.",
        rich_help_panel=POOL,
    ),
]
Slices = Annotated[
    list[str] | None,
    typer.Option(
        "--slice", metavar="COLUMN", help="Column whose values split the pool; repeatable.", rich_help_panel=POOL
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COLUMN",
        help="Column of what items come together in, as a conversation or a patient; for --about and --draw.",
        rich_help_panel=POOL,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight",
        metavar="COLUMN",
        help="Column of how many rows a row stands for; metrics are those of the rows written out.",
        rich_help_panel=POOL,
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample",
        metavar="N",
        help=f"A random sample of N rows is the pool, counted in every interval; 0 for all rows. By default "
        f"{AUTOMATIC:,} of more than {LARGE:,}.",
        rich_help_panel=POOL,
        show_default=False,
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE.parquet",
        help="Keep what is read there, and numbers in .npy files beside it: for tables that are not on this machine.",
        rich_help_panel=POOL,
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="How a .csv file is written that is not UTF-8, as cp1252 (Windows) or latin-1.",
        rich_help_panel=POOL,
        show_default=False,
    ),
]
Guarantee = Annotated[
    bool,
    typer.Option(
        "--guarantee",
        help="Intervals with a finite-sample proof at every look (wider than those for one look).",
        rich_help_panel=AIM,
    ),
]
About = Annotated[
    str,
    typer.Option(
        "--about",
        metavar="pool|future",
        help="What the numbers are about: this pool, or data like it, of which the pool is a sample (wider).",
        rich_help_panel=AIM,
    ),
]
Draw = Annotated[
    str,
    typer.Option(
        "--draw",
        metavar="items|groups",
        help="What is drawn: single items, or whole groups (--group), all of whose items are asked for.",
        rich_help_panel=AIM,
    ),
]
Show = Annotated[
    list[str] | None,
    typer.Option(
        "--show",
        metavar="COLUMN",
        help="Column that a labeller is shown: text, image path; repeatable.",
        rich_help_panel=POOL,
    ),
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class",
        metavar="NAME",
        help="A class, in the order of the scores; repeatable. By default those predicted.",
        rich_help_panel=POOL,
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--value",
        metavar="CLASS=NUMBER",
        help=literal("What mean, share[>=1] and weighted_kappa take a class for; repeated, one for each class."),
        rich_help_panel=POOL,
    ),
]
MoreMetrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        "-m",
        metavar="NAME",
        autocompletion=metric_names,
        help="A further metric; repeatable.",
        rich_help_panel=AIM,
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        "-m",
        metavar="NAME",
        autocompletion=metric_names,
        help=literal(
            "accuracy, recall[cat], f1[cat]@scanner=A, recall[cat,0.3], roc_auc[cat], log_loss, share[cat], mean, "
            "'v2: accuracy - v1: accuracy', 'gap[recall[cat], sex]', ...; repeatable. Default: accuracy."
        ),
        rich_help_panel=AIM,
    ),
]
MetricsOfSession = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        "-m",
        metavar="NAME",
        autocompletion=metric_names,
        help="A metric to compare by; repeatable. By default the metrics of the session.",
        rich_help_panel=AIM,
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        autocompletion=method_names,
        help="How items are chosen: assured (default, recommended), tradition, ...; all are listed below.",
        rich_help_panel=AIM,
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="NAME=NUMBER",
        help=literal(
            'Half-width that is wanted, as "recall[cat]=0.04"; repeatable. The session may then stop by what intervals '
            "show, and they are wider, so that they hold at every look."
        ),
        rich_help_panel=AIM,
    ),
]
Thresholds = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        metavar="CLAIM",
        help=literal('Stop once it is shown on which side of it the metric lies, as "recall[cat] >= 0.9"; repeatable.'),
        rich_help_panel=AIM,
    ),
]
Confidence = Annotated[float, typer.Option("--confidence", help="Level of the intervals.", rich_help_panel=AIM)]
Seed = Annotated[int, typer.Option("--seed", help="Every random choice follows from it.", rich_help_panel=AIM)]
