"""What the owner of a session sees: estimates and their path, people, agreement, and what is left to settle."""

import logging
import math
import threading
import time
from dataclasses import asdict
from typing import Any

from altmas.errors import AltmasError
from altmas.estimates import LEAST_DRAWN, Estimates
from altmas.forecast import Forecast
from altmas.frames import plain
from altmas.items.parts import parts_of
from altmas.session import Session
from altmas.session.log import RULINGS
from altmas.session.reading import told_so_far
from altmas.session.stopping import Goal
from altmas.web.advice import advice, charts
from altmas.web.annotator_api import Desk
from altmas.web.coverage import coverage, people
from altmas.web.people import OWNER
from altmas.web.threads import background

log = logging.getLogger("altmas")

WATCHED_SECONDS = 30.0
"""How long after the last look somebody still counts as looking."""

NOTES = 50
"""Remarks that the overview shows: the newest."""

GRID = 24
"""Points on the path of an estimate that are filled in where nobody looked at the time."""

QUICK_SECONDS = 1.0
"""Only a method that estimates faster than this is asked about the past; seconds of the processor, where others keep it
busy."""


FORECAST_SECONDS = 5.0
"""A forecast is made no more often than this."""


class Watch:
    """Estimates in the background while somebody looks at the overview; labelling never waits for them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.path: dict[int, dict[str, Any]] = {}  # labels -> metric -> [value, low, high]
        self.latest: Estimates | None = None
        self.estimated_at: int | None = None
        """How many labels the latest estimates are of; what is decided from them comes later."""
        self.decision: dict[str, Any] | None = None
        self.goals: tuple[Goal, ...] = ()
        self.forecast: Forecast | None = None
        self._forecast_at: tuple[Any, ...] | None = None
        self._forecast_time = -FORECAST_SECONDS
        self._told: tuple[Any, ...] | None = None
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
        labels, told = len(self.session.history.labels), told_so_far(self.session)
        if told != self._told or self.latest is None:
            begun = time.monotonic(), time.process_time()
            self.latest, self.estimated_at = self.session.estimate(), labels
            self._seconds = min(time.monotonic() - begun[0], time.process_time() - begun[1])
            self.path[labels] = _points(self.latest.to_dict()["estimates"])
            decision = self.session.should_stop()
            self.decision = {"stop": decision.stop, "reason": decision.reason}
            self.goals = self.session.goals() if labels else ()
            self._told = told
        elif self._forecast_is_due(told):
            self._forecast_at = told
            self._forecast_time = time.monotonic()
            self.forecast = self.session.forecast()
        elif self._seconds < QUICK_SECONDS:
            self._fill(labels)

    def _forecast_is_due(self, told: tuple[Any, ...]) -> bool:
        """Whether there is news, and the last forecast was a while ago: it takes as long as many estimates."""
        waited = time.monotonic() - self._forecast_time >= FORECAST_SECONDS
        return waited and self._forecast_at != told

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


def overview(desk: Desk, watch: Watch, metric: str | None = None) -> dict[str, Any]:
    """Everything on the owner's page, as plain values; charts are of one metric, by default the first."""
    session, plan = desk.session, desk.session.plan
    watch.look()
    status = session.status()
    agreement = session.agreement()
    estimates = [] if watch.latest is None else watch.latest.to_dict()["estimates"]
    few = session.history.drawn_labels < LEAST_DRAWN
    bounds_of = {metric.name: metric.bounds for metric in session.task.metrics}
    for estimate in estimates:
        name = estimate["metric"]
        estimate["worth"] = None if few else estimate["effective_labels"]
        estimate["target"], estimate["threshold"] = plan.targets.get(name), plan.thresholds.get(name)
        bounds = bounds_of.get(name, (0.0, 1.0))
        estimate["bounds"] = list(bounds) if all(map(math.isfinite, bounds)) else None
    by_name = {estimate["metric"]: estimate for estimate in estimates}
    chosen = by_name.get(metric, estimates[0] if estimates else None)
    return {
        "title": desk.texts.title,
        "status": status.to_dict(),
        "budget": status.points if plan.budget is None else plan.budget,
        "confidence": plan.confidence,
        "double_share": plan.double_share,
        "estimates": estimates,
        "estimated_at": watch.estimated_at,
        "path": [{"labels": labels, "metrics": watch.path[labels]} for labels in sorted(watch.path)],
        "decision": watch.decision,
        "advice": advice(session, watch.latest, watch.goals, watch.forecast, watch.decision),
        "forecast": None if watch.forecast is None else watch.forecast.to_dict(),
        "charts": charts(watch.path, watch.forecast, chosen),
        "problem": watch.problem,
        "agreement": plain(asdict(agreement)),
        "people": plain(people(session.standing(), status)),
        "coverage": coverage(session),
        "notes": notes_told(session),
        "overdue": len(session.overdue()),
        "to_settle": status.disagreements + len(session.unsure()),
        "supply": asdict(desk.supply.state()),
    }


def to_settle(desk: Desk) -> list[dict[str, Any]]:
    """Items whose annotators differ, then those on which they were unsure, with who said what."""
    session = desk.session
    rows = [("differ", point) for point in session.disagreements()] + [("unsure", point) for point in session.unsure()]
    notes = _notes_by_point(session)
    return [
        {
            "why": why,
            "id": str(point.id),
            "handle": desk.handles.of(point.index),
            "parts": parts_of(session.pool, point.index),
            "votes": [{"annotator": name, "said": str(label)} for name, label in point.votes.items()],
            "notes": notes.get(str(point.id), []),
        }
        for why, point in rows
    ]


def settled_before(desk: Desk) -> list[dict[str, Any]]:
    """The owner's rulings that stand, newest first: what the page can take back."""
    rulings = [event for event in desk.session.standing() if event.kind in RULINGS and event.annotator == OWNER]
    return [{"seq": event.seq, "id": event.point, "label": event.label, "at": event.at} for event in rulings[::-1][:20]]


def notes_told(session: Session) -> list[dict[str, Any]]:
    """The newest remarks of all."""
    return [
        {"id": None if note.id is None else str(note.id), "text": note.text, "annotator": note.annotator, "at": note.at}
        for note in session.notes()[::-1][:NOTES]
    ]


def _notes_by_point(session: Session) -> dict[str, list[dict[str, Any]]]:
    by_point: dict[str, list[dict[str, Any]]] = {}
    for note in session.notes():
        if note.id is not None:
            by_point.setdefault(str(note.id), []).append({"annotator": note.annotator or "", "text": note.text})
    return by_point


def _points(estimates: list[dict[str, Any]]) -> dict[str, Any]:
    return {estimate["metric"]: [estimate["value"], estimate["low"], estimate["high"]] for estimate in estimates}
