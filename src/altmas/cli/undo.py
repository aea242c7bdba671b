"""altmas undo: the last label or skip taken back."""

from altmas.cli import options as opt
from altmas.cli import show
from altmas.cli.app import LABEL, command


@command("undo", LABEL, "altmas undo xray.altmas", "altmas undo xray.altmas --annotator ana")
def undo(session: opt.SessionFile, annotator: opt.Annotator = None) -> None:
    """Take back the last label or skip, also after a restart. It stays in the log as taken back."""
    with opt.opened(session) as opened:
        undone = opened.undo(annotator)
    if undone is None:
        show.say("nothing to undo")
    else:
        show.say(f"{undone.id}: {undone.label if undone.kind == 'label' else undone.kind} was taken back")
