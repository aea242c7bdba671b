"""altmas undo: the last label or skip taken back."""

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import LABEL, command
from altmas.session import Session
from altmas.session.votes import Undone


@command("undo", LABEL, "altmas undo xray.altmas", "altmas undo xray.altmas --annotator ana")
def undo(session: opt.SessionFile, annotator: opt.Annotator = None) -> None:
    """Take back the last label or skip, also after a restart. It stays in the log as taken back."""
    with given.opened(session) as opened:
        undone = opened.undo(annotator)
        if undone is None:
            show.say("nothing to undo")
        else:
            what = undone.label if undone.kind == "label" else undone.kind
            show.say(f"{undone.id}: {what} was taken back{_what_stands(opened, undone)}")


def _what_stands(session: Session, undone: Undone) -> str:
    """What the point counts as now, where an earlier answer stands."""
    history = session.history
    if undone.index in history.labels:
        return f"; it counts as {session.pool.classes[history.labels[undone.index]]} again, as told before"
    return "; it is skipped again, as before" if undone.index in history.skipped else ""
