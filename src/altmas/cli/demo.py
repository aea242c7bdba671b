"""`altmas demo`: everything in one command, on real data that is there already."""

from pathlib import Path
from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli.app import START, command
from altmas.demo import BUDGET, Outcome, digits, free_names, hits, left_out_methods, run_demo, true_values
from altmas.estimates import WORTH_AND_WIDTH
from altmas.extras import install


@command("demo", START, "altmas demo", "altmas demo --output /tmp/altmas-demo")
def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Where the session and the report are written; nothing is replaced.",
        ),
    ] = Path("."),
) -> None:
    """See it work: a model that reads digits, tested with 150 labels by several methods, against the truth.

    Real data that come with scikit-learn: no download, no questions, about a minute.
    """
    output.mkdir(parents=True, exist_ok=True)
    session, report = free_names(output)
    with show.working("training the model under test"):
        pool, truth = digits()
    exact = true_values(pool, truth)
    _explain(
        f"A small random forest learned to read digits from the other half of the data. How good is it on these "
        f"{len(pool)} images, if we can afford to label {BUDGET} of them? Here the truth is known, but each method "
        "sees only the labels that it asks for."
    )
    outcomes = run_demo(session, pool, truth, progress=not show.quiet())
    columns = ("metric", "method", "estimate", "95 % interval", "truth", "error", "worth")
    rows = [row for metric in exact for row in _rows(metric, exact[metric], outcomes)]
    show.table(columns, rows, right=("estimate", "truth", "error", "worth"))
    held, total = hits(outcomes, exact)
    show.say("")
    show.paragraph(
        f"{held} of {total} intervals hold the truth. Worth: a plain random sample of that many labels "
        f"would err as little as these {BUDGET}; {WORTH_AND_WIDTH}. "
        "This is one run of each method; `altmas simulate` repeats it."
    )
    if left_out := left_out_methods():
        _explain(
            f"Left out, as their packages are not installed: {', '.join(left_out)}. To see them too: {install('paper')}"
        )
    _next(session, report)


def _explain(text: str) -> None:
    """Prose for somebody who looks at it for the first time; not with --quiet."""
    if not show.quiet():
        show.paragraph(text)
        show.say("")


def _rows(metric: str, exact: float, outcomes: "list[Outcome]") -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for index, outcome in enumerate(outcomes):
        estimate = outcome.estimates[metric]
        worth = show.number(estimate.effective_labels, 0)
        error = "-" if estimate.value != estimate.value else f"{estimate.value - exact:+.3f}"
        name = metric if index == 0 else ""
        value, bounds = show.number(estimate.value, 3), show.bounds(estimate)
        rows.append((name, outcome.method, value, bounds, f"{exact:.3f}", error, worth))
    return rows


def _next(session: Path, report: Path) -> None:
    """What was written, and what to try."""
    with given.opened(session) as opened, show.working("writing the report"):
        opened.report(report)
    show.paragraph(f"Written: {session} (every label, and how it was chosen) and {report} (open it in a browser).")
    if show.quiet():
        return
    show.say("Try next:")
    tries = {
        f"altmas estimate {session}": "the same from the file",
        f'altmas check {session} "recall[8] >= 0.6"': "shown, refuted, undecided?",
        f"altmas doctor {session}": "is the file sound?",
        "altmas init --help": "your own predictions",
    }
    width = max(map(len, tries))
    for line, meaning in tries.items():
        show.say(f"  {line:<{width}}  {meaning}")
