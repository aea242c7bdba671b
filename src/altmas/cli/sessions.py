"""Commands on one session file: make it, ask, tell, read."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from altmas.cli import options as opt
from altmas.cli import show
from altmas.cli.app import LABEL, READ, START, command, literal, trusted

if TYPE_CHECKING:
    from altmas.session import Session
    from altmas.session.snapshot import Status

EXIT_OF = {"shown": 0, "refuted": 1, "undecided": 3}


def opened(path: Path, *, read_only: bool = False) -> "Session":
    """The session in a file."""
    from altmas.session import Session

    return Session.open(path, read_only=read_only, trust=trusted.get())


@command(
    "init",
    START,
    "altmas init xray.altmas --data preds.parquet --id study_id --prediction vendor_label --features emb.npy "
    '--metric accuracy --metric "recall[pneumonia]" --slice scanner --budget 300 --target "recall[pneumonia]=0.04"',
    "altmas init tickets.altmas --data tickets.csv --prediction predicted --show text --metric macro_f1 --budget 150",
    notes=opt.method_notes(),
)
def init(
    session: opt.SessionFile,
    data: opt.Data,
    prediction: opt.Prediction,
    id: opt.Id = None,
    features: opt.Features = None,
    scores: opt.Scores = None,
    slices: opt.Slices = None,
    show_: opt.Show = None,
    classes: opt.Classes = None,
    metrics: opt.Metrics = None,
    method: opt.Method = None,
    budget: Annotated[
        int | None, typer.Option("--budget", "-b", help="How many labels at most.", rich_help_panel=opt.AIM)
    ] = None,
    targets: opt.Targets = None,
    thresholds: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            metavar="NAME=NUMBER",
            help=literal('Stop once the interval lies on one side of it, as "recall[cat]=0.9"; repeatable.'),
            rich_help_panel=opt.AIM,
        ),
    ] = None,
    confidence: opt.Confidence = 0.95,
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
    keep the table where it is, the session reads it again.
    """
    from altmas.methods import DEFAULT_METHOD
    from altmas.session import Session

    pool = opt.pool_of(data, prediction, id, features, scores, slices, show_, classes)
    made = Session.create(
        session,
        pool,
        metrics=metrics or ["accuracy"],
        method=method or DEFAULT_METHOD,
        budget=budget,
        targets=opt.numbers("--target", targets),
        thresholds=opt.numbers("--threshold", thresholds),
        confidence=confidence,
        seed=seed,
        exist_ok=exist_ok,
        double_share=double_share,
        instructions=instructions,
        definitions=opt.pairs("--definition", definitions, last=False),
    )
    names = ", ".join(map(str, pool.classes[:8])) + (", ..." if len(pool.classes) > 8 else "")
    show.say(f"{session}: {len(pool):,} points, {len(pool.classes)} classes ({names})")
    limit = f"up to {budget:,} labels" if budget else "no budget set"
    aims = [one.name for one in made.task.metrics]
    listed = ", ".join(aims[:4]) + (f" and {len(aims) - 4} more metrics" if len(aims) > 4 else "")
    show.say(f"{listed}: method {made.method.name}, {limit}")
    if pool.classes_inferred:
        show.hint("the classes are those that are predicted; if a label can be another one, name each with --class")
    show.hint(f"next: altmas label {session}")


@command("ask", LABEL, "altmas ask xray.altmas -n 10", "altmas ask xray.altmas -n 10 --annotator ana --json")
def ask(
    session: opt.SessionFile,
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="How many items.")] = 1,
    annotator: opt.Annotator = None,
    lease: Annotated[
        float, typer.Option("--lease", min=0, help="Seconds for which a named annotator keeps them.")
    ] = 900.0,
    json: opt.Json = False,
) -> None:
    """The next items to label; the same ones until something is told.

    Predictions are not shown: whoever labels should not know what the model says.
    """
    with opened(session) as one, show.working("choosing items"):
        queries = one.ask(n, annotator, lease)
        reason = "" if queries else one.should_stop().reason
    if json:
        show.as_json([{"id": query.id, "index": query.index, "item": query.item} for query in queries])
    else:
        for query in queries:
            show.say(str(query.id) if query.item is None else f"{query.id}\t{show.one_line(query.item)}")
    if not queries:
        show.hint(f"nothing to ask: {reason}" if reason else "nothing to ask now: others have what is left")


@command(
    "tell", LABEL, "altmas tell xray.altmas case-17 cat", 'altmas tell xray.altmas case-17 cat -a ana --note "blurred"'
)
def tell(
    session: opt.SessionFile,
    id: Annotated[str, typer.Argument(metavar="ID", help="The item.", show_default=False)],
    label: Annotated[str, typer.Argument(metavar="LABEL", help="Its class.", show_default=False)],
    annotator: opt.Annotator = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="How long it took.")] = None,
    note: Annotated[str, typer.Option("--note", help="A remark.")] = "",
) -> None:
    """Record the label of an item. It is on disk when the command returns.

    Many labels at once: `altmas import`. Telling an item again is a revision; the earlier label stays in the log.
    """
    with opened(session) as one:
        one.tell(id, label, annotator, seconds, note)
        labels, budget = len(one.history.labels), one.plan.budget
    show.say(f"{id}: {label} ({f'{labels} of {budget} labels' if budget else show.counted(labels, 'label')})")


@command(
    "skip", LABEL, 'altmas skip xray.altmas case-17 --reason "unreadable"', "altmas skip xray.altmas case-17 --unsure"
)
def skip(
    session: opt.SessionFile,
    id: Annotated[str, typer.Argument(metavar="ID", help="The item.", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", help="Why it cannot be labelled.")] = "",
    unsure: Annotated[bool, typer.Option("--unsure", help="The item is fine, the annotator cannot tell.")] = False,
    annotator: opt.Annotator = None,
) -> None:
    """Record that an item cannot be labelled, or that the annotator cannot tell."""
    with opened(session) as one:
        one.skip(id, reason, annotator, kind="unsure" if unsure else "skip")
    show.say(f"{id}: {'unsure' if unsure else 'skipped'}")


@command("undo", LABEL, "altmas undo xray.altmas", "altmas undo xray.altmas --annotator ana")
def undo(session: opt.SessionFile, annotator: opt.Annotator = None) -> None:
    """Take back the last label or skip, also after a restart. It stays in the log as taken back."""
    with opened(session) as one:
        undone = one.undo(annotator)
    if undone is None:
        show.say("nothing to undo")
    else:
        show.say(f"{undone.id}: {undone.label if undone.kind == 'label' else undone.kind} was taken back")


@command("status", READ, "altmas status xray.altmas", "altmas status xray.altmas --json")
def status(session: opt.SessionFile, json: opt.Json = False) -> None:
    """How far the session is: labels, pace, people, estimates, and about how many labels are missing."""
    with opened(session) as one, show.working("estimating"):
        now = one.status()
        found, decision = one.estimate(), one.should_stop()
    forecast = decision.forecast
    if json:
        ahead = None if forecast is None else {"labels": forecast.labels, "minutes": forecast.minutes}
        told = {"stop": decision.stop, "reason": decision.reason, "forecast": ahead}
        show.as_json({**now.to_dict(), "decision": told, "estimates": found.to_dict()["estimates"]})
        return
    show.say(_progress(now))
    for person in now.annotators if len(now.annotators) > 1 else ():
        pace = "" if math.isnan(person.seconds_per_label) else f", {person.seconds_per_label:.0f} s each"
        show.say(f"  {person.name or '(unnamed)'}: {person.labels} labels, {person.skips} skipped{pace}")
    show.estimates(found)
    more = f"; {forecast}" if forecast is not None and forecast.labels else ""
    show.say(f"{'stop' if decision.stop else 'go on'}: {decision.reason}{more}")


def _progress(now: "Status") -> str:
    parts = [f"{now.labels:,} of {now.budget:,} labels" if now.budget else show.counted(now.labels, "label")]
    if not math.isnan(now.seconds_per_label):
        parts.append(f"{now.seconds_per_label:.0f} s each")
    counts: dict[str, Any] = {
        "waiting for a label": now.outstanding,
        "skipped": now.skipped,
        "unsure": now.unsure,
        "told without being asked": now.volunteered,
        "to be settled between annotators": now.disagreements,
        "predictions revealed": now.reveals,
    }
    parts += [f"{count:,} {what}" for what, count in counts.items() if count]
    return f"{now.points:,} points, method {now.method}: " + ", ".join(parts)


@command("estimate", READ, "altmas estimate xray.altmas", "altmas estimate xray.altmas --by scanner --json")
def estimate(
    session: opt.SessionFile,
    by: Annotated[str | None, typer.Option("--by", help="Every metric on each value of this slice.")] = None,
    json: opt.Json = False,
) -> None:
    """Every metric with its interval. "worth": how many labels of a plain random sample would tell as much."""
    with opened(session) as one, show.working("estimating"):
        found = one.estimate(by)
        column = one.pool.slices[by].tolist() if by else []
    points = {value: column.count(value) for value in sorted(set(column))}
    floor = _floor() if by else 0
    if json:
        few = [one.metric for one in found if one.labels < floor]
        show.as_json({**found.to_dict(), **({"points": points, "insufficient": few} if by else {})})
        return
    if by:
        show.say(f"{by}: " + ", ".join(f"{value} {show.counted(count, 'point')}" for value, count in points.items()))
    show.estimates(found, floor)


def _floor() -> int:
    """Labels below which a slice is called insufficient, as in the report."""
    from altmas.report.content import FLOOR

    return FLOOR


@command("check", READ, 'altmas check xray.altmas "recall[pneumonia] >= 0.90"', 'altmas check xray.altmas "error < 5%"')
def check(
    session: opt.SessionFile,
    claim: Annotated[
        str, typer.Argument(metavar="CLAIM", help="A metric, >= > <= or <, a number.", show_default=False)
    ],
    json: opt.Json = False,
) -> None:
    """Whether the labels show a claim, for pipelines: exit 0 shown, 1 refuted, 3 undecided, 2 usage.

    Shown means that the claim holds on the whole interval, refuted that it holds nowhere on it.
    """
    from altmas.claims import Claim, judge

    with opened(session) as one, show.working("estimating"):
        verdict = judge(one, Claim.parse(claim))
    if json:
        show.as_json(verdict.to_dict())
    else:
        show.say(str(verdict))
    if verdict.caution:
        show.hint(f"note: {verdict.caution}")
    raise typer.Exit(EXIT_OF[verdict.answer])
