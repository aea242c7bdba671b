"""altmas sync: a project of Label Studio kept supplied with the next items, its annotations read back."""

import time
from typing import Annotated

import typer

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import LABEL, command
from altmas.interop.sync import LabelStudio, config_of, sync_once


@command(
    "sync",
    LABEL,
    "altmas sync xray.altmas --url http://localhost:8080 --token $LABEL_STUDIO_API_KEY",
    "altmas sync xray.altmas --url http://localhost:8080 --project 3 -n 20 --every 30",
    "altmas sync xray.altmas --project 3 --once --local-files /data/images",
)
def sync(
    session: opt.SessionFile,
    url: Annotated[
        str, typer.Option("--url", metavar="ADDRESS", envvar="LABEL_STUDIO_URL", help="Where Label Studio answers.")
    ] = "http://localhost:8080",
    token: Annotated[
        str,
        typer.Option(
            "--token",
            metavar="TOKEN",
            envvar="LABEL_STUDIO_API_KEY",
            help="Access token, from Account & Settings there; of either kind.",
            show_default=False,
        ),
    ] = "",
    project: Annotated[
        int | None,
        typer.Option("--project", metavar="NUMBER", help="The project; by default a new one.", show_default=False),
    ] = None,
    n: Annotated[int, typer.Option("-n", "--open", min=1, help="How many items wait for an answer there.")] = 20,
    every: Annotated[float, typer.Option("--every", min=1, help="Seconds between two looks.")] = 15.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    with_predictions: Annotated[
        bool, typer.Option("--with-predictions", help="Not blind: the model's answers too; recorded as revealed.")
    ] = False,
    local_files: opt.LocalFiles = None,
) -> None:
    """Keep a project of Label Studio supplied with the next items and record its annotations, until the session stops.

    It asks the server every few seconds (Ctrl+C ends it) and can be started again at any time: an item is sent once, an
    annotation is recorded once, a corrected one is a revision.
    """
    with given.opened(session) as opened:
        studio = LabelStudio(url, token, project)
        config = config_of(opened, blind=not with_predictions, local_files=local_files)
        if project is None:
            number = studio.create_project(f"altmas {session.stem}", config)
            show.say(f"project {number} was made: {studio.url}/projects/{number}")
        elif studio.set_config(config):
            show.say(f"project {project} got the labelling config of this session")
        while True:
            done = sync_once(opened, studio, n, blind=not with_predictions, local_files=local_files)
            show.say(str(done))
            decision = opened.should_stop()
            if decision.stop:
                show.say(f"stop: {decision.reason}")
            if once or decision.stop:
                break
            time.sleep(every)
    if once and not decision.stop:
        show.hint(f"go on: altmas sync {session} --url {studio.url} --project {studio.project}")
