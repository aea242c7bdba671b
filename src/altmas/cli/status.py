"""altmas status: how far the session is."""

import math
from typing import Any

from altmas.cli import given, show
from altmas.cli import options as opt
from altmas.cli.app import READ, command
from altmas.estimates import about_in_words, drawn_in_words
from altmas.session.snapshot import Status
from altmas.session.stopping import may_stop


@command("status", READ, "altmas status xray.altmas", "altmas status xray.altmas --json")
def status(session: opt.SessionFile, json: opt.Json = False) -> None:
    """How far the session is: labels, pace, people, estimates, and what further labels are likely to bring."""
    with given.opened(session) as opened, show.working("estimating"):
        now, words = opened.status(), drawn_in_words(opened.task)
        estimates, decision, forecast = opened.estimate(), opened.should_stop(), opened.forecast()
        reached, moment = may_stop(opened.goals()), opened.now()
        missing = given.how_to_get_waiting(opened)
    if json:
        ahead = None if forecast is None or reached else forecast.to_dict()
        plain = {"stop": decision.stop, "reason": decision.reason, "forecast": ahead}
        shown = estimates.to_dict()
        remarks = {"remarks": shown["remarks"]} if "remarks" in shown else {}
        said = {"decision": plain, "about": estimates.about, **remarks, "estimates": shown["estimates"]}
        show.as_json({**now.to_dict(), **said})
        return
    show.say(_progress(now))
    if words:
        show.say(words)
    for person in now.annotators if len(now.annotators) > 1 else ():
        pace = "" if math.isnan(person.seconds_per_label) else f", {person.seconds_per_label:.0f} s each"
        show.say(
            f"  {person.name or '(unnamed)'}: {show.counted(person.labels, 'label')}, {person.skips} skipped{pace}"
        )
    show.estimates(estimates, moment.counted_labels, counting=moment.counting)
    for remark in estimates.remarks:
        show.say(remark)
    if missing:
        show.hint(missing)
    if estimates.about != "pool":
        show.say(about_in_words(estimates.about))
    show.say(show.decided(decision))
    if forecast is not None and forecast.bands and not reached:
        show.say(f"ahead: {forecast}")


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
