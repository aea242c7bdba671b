"""What the owner of a session sees: estimates and their path, people, agreement, and what is left to settle."""

import logging
import threading
import time
from dataclasses import asdict
from typing import Any

from altmas.errors import AltmasError
from altmas.estimates import Estimates
from altmas.frames import plain
from altmas.items.parts import parts_of
from altmas.session import Session
from altmas.web.annotator_api import Desk
from altmas.web.threads import background

log = logging.getLogger("altmas")

WATCHED_SECONDS = 30.0
"""How long after the last look somebody still counts as looking."""

GRID = 24
"""Points on the path of an estimate that are filled in where nobody looked at the time."""

QUICK_SECONDS = 1.0
"""Only a method that estimates faster than this is asked about the past."""


class Watch:
    """Estimates in the background while somebody looks at the overview; labelling never waits for them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.path: dict[int, dict[str, Any]] = {}  # labels -> metric -> [value, low, high]
        self.latest: Estimates | None = None
        self.decision: dict[str, Any] | None = None
        self.labels = -1
        self.problem = ""
        self._looked = 0.0
        self._seconds = 0.0
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def look(self) -> None:
        """Somebody looks: keep the estimates fresh for a while."""
        self._looked = time.monotonic()
        if self._thread is None:
            self.path = {body["labels"]: _points(body["estimates"]) for body in self.session.logged_estimates()}
            self._thread = background(self._run, "altmas-overview")
        self._woken.set()

    def stop(self) -> None:
        """Estimate no more."""
        self._stopped.set()
        self._woken.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            if time.monotonic() - self._looked < WATCHED_SECONDS:
                try:
                    self._refresh()
                    self.problem = ""
                except AltmasError as problem:
                    self.problem = str(problem)
                except Exception as problem:  # a method or metric of the user's may raise anything
                    log.exception("the estimates of the overview failed")
                    self.problem = f"the estimate failed: {type(problem).__name__}: {problem}"
            self._woken.wait(None if time.monotonic() - self._looked > WATCHED_SECONDS else 1.0)

    def _refresh(self) -> None:
        labels = len(self.session.history.labels)
        if labels != self.labels or self.latest is None:
            begun = time.monotonic()
            self.latest = self.session.estimate()
            self._seconds = time.monotonic() - begun
            self.path[labels] = _points(self.latest.to_dict()["estimates"])
            decision = self.session.should_stop()
            self.decision = {"stop": decision.stop, "reason": decision.reason, "forecast": None}
            if decision.forecast is not None:
                self.decision["forecast"] = plain(asdict(decision.forecast))
            self.labels = labels
        elif self._seconds < QUICK_SECONDS:
            self._fill(labels)

    def _fill(self, labels: int) -> None:
        """One point of the path that is missing."""
        step = max(1, labels // GRID)
        for count in range(step, labels, step):
            near = any(abs(known - count) < step for known in self.path)
            if not near:
                try:
                    past = self.session.at(labels=count).estimate()
                except AltmasError:
                    self.path[count] = {}  # labels were taken back: the session never stood there
                else:
                    self.path[count] = _points(past.to_dict()["estimates"])
                self._woken.set()
                return


def overview(desk: Desk, watch: Watch) -> dict[str, Any]:
    """Everything on the owner's page, as plain values."""
    session, plan = desk.session, desk.session.plan
    watch.look()
    status = session.status()
    agreement = session.agreement()
    estimates = [] if watch.latest is None else watch.latest.to_dict()["estimates"]
    for one in estimates:
        one["target"], one["threshold"] = plan.targets.get(one["metric"]), plan.thresholds.get(one["metric"])
    return {
        "title": desk.texts.title,
        "status": status.to_dict(),
        "budget": status.points if plan.budget is None else plan.budget,
        "confidence": plan.confidence,
        "double_share": plan.double_share,
        "estimates": estimates,
        "estimated_at": watch.labels if watch.latest is not None else None,
        "path": [{"labels": labels, "metrics": watch.path[labels]} for labels in sorted(watch.path)],
        "decision": watch.decision,
        "problem": watch.problem,
        "agreement": plain(asdict(agreement)),
        "to_settle": status.disagreements + len(session.unsure()),
        "supply": asdict(desk.supply.state()),
    }


def to_settle(desk: Desk) -> list[dict[str, Any]]:
    """Items whose annotators differ, then those on which they were unsure, with who said what."""
    session = desk.session
    rows = [("differ", one) for one in session.disagreements()] + [("unsure", one) for one in session.unsure()]
    return [
        {
            "why": why,
            "id": str(one.id),
            "handle": desk.handles.of(one.index),
            "parts": parts_of(session.pool, one.index),
            "votes": [{"annotator": name, "said": str(said)} for name, said in one.votes.items()],
        }
        for why, one in rows
    ]


def _points(estimates: list[dict[str, Any]]) -> dict[str, Any]:
    return {one["metric"]: [one["value"], one["low"], one["high"]] for one in estimates}
