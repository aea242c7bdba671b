"""Options that several commands share, and how their text becomes values."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from altmas.claims import CLAIM, Claim
from altmas.cli.app import literal, trusted
from altmas.cli.show import hint, warning, working
from altmas.errors import PlanError
from altmas.interop import FORMATS
from altmas.items.parts import folder_of, missing_images
from altmas.methods import GROUPS, METHODS, grouped
from altmas.metrics import known_names
from altmas.outputs import STDOUT
from altmas.pool import Pool
from altmas.pool.engines import is_address
from altmas.pool.files import how_written
from altmas.pool.first_phase import AUTOMATIC, LARGE
from altmas.pool.origins import AUTO
from altmas.session import Session
from altmas.session.stopping import may_stop
from altmas.suggest import listing
from altmas.task import ABOUT, DRAWS
from altmas.task import About as Meant
from altmas.task import Draw as Drawn

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
        help=literal('Stop once the interval lies on one side of it, as "recall[cat] >= 0.9"; repeatable.'),
        rich_help_panel=AIM,
    ),
]
Confidence = Annotated[float, typer.Option("--confidence", help="Level of the intervals.", rich_help_panel=AIM)]
Seed = Annotated[int, typer.Option("--seed", help="Every random choice follows from it.", rich_help_panel=AIM)]


def about_of(text: str) -> "Meant":
    """What --about says; PlanError if it is neither."""
    population = next((name for name in ABOUT if name == text), None)
    if population is None:
        raise PlanError(f"--about {text!r} was not understood; expected pool or future")
    return population


def draw_of(text: str) -> "Drawn":
    """What --draw says; PlanError if it is neither."""
    unit = next((name for name in DRAWS if name == text), None)
    if unit is None:
        raise PlanError(f"--draw {text!r} was not understood; expected items or groups")
    return unit


def output(file: Path) -> Path:
    """Where to write: - is the standard output."""
    return STDOUT if str(file) == "-" else file


def pool_of(
    data: str,
    prediction: Sequence[str] | None,
    id: str | None,
    features: Sequence[str] | None,
    scores: Sequence[str] | None,
    slices: Sequence[str] | None,
    show: Sequence[str] | None,
    classes: Sequence[str] | None,
    group: str | None = None,
    weight: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    store: Path | None = None,
    values: Sequence[str] | None = None,
    encoding: str | None = None,
) -> "Pool":
    """The pool that the options describe."""
    with working("reading the table"):
        pool = Pool.from_table(
            data,
            prediction=(prediction[0] if len(prediction) == 1 else list(prediction)) if prediction else None,
            id=id,
            features=_features(features),
            scores=scores_of(scores, prediction or ()),
            slices=slices or (),
            show=(show[0] if len(show) == 1 else show) if show else None,
            classes=classes or None,
            group=group,
            values=numbers("--value", values) or None,
            weight=weight,
            sample=sample,
            sample_seed=seed,
            store=store,
            encoding=encoding,
        )
    if how := "" if is_address(data) else how_written(data, encoding):
        hint(f"note: {data}: {how}")
    if pool.sampled_from is not None:
        hint(
            f"a random sample of {len(pool):,} of {pool.sampled_from:,} rows is the pool; intervals are about all rows"
        )
    for how in pool.made_features:
        hint(f"features: {how}" + ("" if features else "; --features none leaves them out"))
    if pool.unmade:
        hint(f"no features of what is shown: {pool.unmade}")
    for notice in pool.notices:
        warning(notice)
    missing, paths = missing_images(pool)
    if missing:
        hint(
            f"note: {len(missing)} of the first {paths:,} image paths lead to no file, such as {missing[0]!r}; paths "
            f"start at {folder_of(pool)}"
        )
    return pool


def _features(columns: Sequence[str] | None) -> Sequence[str] | str | None:
    """What --features says: nothing means what is shown, "none" none."""
    if not columns:
        return AUTO
    return None if list(columns) == ["none"] else columns


def scores_of(scores: Sequence[str] | None, models: Sequence[str]) -> Sequence[str] | dict[str, list[str]] | None:
    """The score columns: of the one model, or {model: columns} of several."""
    if not scores or len(models) <= 1:
        return scores or None
    by_model: dict[str, list[str]] = {}
    for text in scores:
        model = next((name for name in models if text.startswith(f"{name}=")), None)
        if model is None:
            raise PlanError(
                f'--scores {text!r} does not say whose they are; write "{models[0]}={text}" (models: {listing(models)})'
            )
        by_model.setdefault(model, []).append(text.removeprefix(f"{model}="))
    return by_model


def pairs(option: str, texts: Sequence[str] | None, *, last: bool = True) -> dict[str, str]:
    """{name: text} of repeated NAME=TEXT options; the last = separates (metric names may hold one) or the first."""
    by_name = {}
    for text in texts or ():
        name, separator, value = text.rpartition("=") if last else text.partition("=")
        if not (separator and name.strip() and value.strip()):
            raise PlanError(f'{option} {text!r} was not understood; write "name=value"')
        by_name[name.strip()] = value.strip()
    return by_name


def numbers(option: str, texts: Sequence[str] | None) -> dict[str, float]:
    """{name: number} of repeated NAME=NUMBER options."""
    return {name: number(f"{option} {name}", text) for name, text in pairs(option, texts).items()}


def thresholds_of(texts: Sequence[str] | None) -> dict[str, float]:
    """{metric: number} of repeated --threshold options: "recall[cat] >= 0.9", or "recall[cat]=0.9"."""
    thresholds: dict[str, float] = {}
    for text in texts or ():
        if CLAIM.match(text.strip()) is None:
            thresholds |= numbers("--threshold", [text])
        else:
            claim = Claim.parse(text)
            thresholds[claim.metric] = claim.value
    return thresholds


def number(what: str, text: str) -> float:
    """The number that a text spells, 0.05 for 5%; PlanError naming the option if it spells none."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise PlanError(f"{what}: {text!r} is not a number; expected one such as 0.05") from None


def opened(path: Path, *, read_only: bool = False) -> "Session":
    """The session in a file."""
    return Session.open(path, read_only=read_only, trust=trusted.get())


def how_to_get_waiting(session: "Session") -> str:
    """Who has the items that labels wait for, and the command that gives them out; empty if no label waits."""
    now = session.now()
    rows = set(now.held_up.waits_for.tolist())
    if not rows:
        return ""
    held = session.held_by_others()
    others = [replace(holding, rows=theirs) for holding in held if (theirs := tuple(rows & {*holding.rows}))]
    left_out = set() if others else {row for holding in held for row in holding.rows}
    given = [row for row in now.history.outstanding.tolist() if row not in left_out]
    last = max(position for position, row in enumerate(given, 1) if row in rows)
    who = f"{'; '.join(map(str, others))}; " if others else ""
    command = shlex.join(["altmas", "export", str(session.path), "-n", str(last)])
    return f"{who}these items come with: {command}{' --take-over' if others else ''} FILE"


def goal_reached(session: "Session") -> str:
    """That every target or threshold of the session is settled, so that more labels are not needed; empty if not."""
    goals = session.goals()
    if not may_stop(goals):
        return ""
    return f"note: the goal is reached ({'; '.join(map(str, goals))}); more labels are not needed for it"
