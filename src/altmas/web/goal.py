"""GoalWatch: a background thread that knows whether the session has reached its goal, so that labelling never waits."""

import logging
import threading
import time
from typing import Any

from altmas.errors import AltmasError
from altmas.session import Session
from altmas.session.reading import told_so_far
from altmas.session.stopping import Goal, may_stop
from altmas.web.threads import background

log = logging.getLogger("altmas")

REST = 3.0
"""After a look it rests this many times as long as the look took: at most a quarter of a processor goes into it."""

LEAST_REST_SECONDS = 0.2


class GoalWatch:
    """Looks at the goals of the plan whenever something was told; does nothing where the plan has none."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.goals: tuple[Goal, ...] = ()
        self.labels = -1
        """Number of labels at the last look."""
        self._told: tuple[Any, ...] | None = None
        self._woken = threading.Event()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to look."""
        self._woken.set()
        background(self._run, "altmas-goal")

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        self._woken.set()

    def told(self) -> None:
        """Somebody labelled, took a label back, settled votes or changed the plan."""
        self._woken.set()

    def state(self) -> dict[str, Any] | None:
        """How the goals stood at the last look and what was chosen since; None before the first, or without goals."""
        if not self.goals:
            return None
        choices = self.session.choices()
        last = choices[-1] if choices else None
        return {
            "labels": self.labels,
            "reached": may_stop(self.goals),
            "goals": [str(goal) for goal in self.goals],
            "choice": None if last is None else {"stop": last.stop, "by": last.annotator or "", "labels": last.labels},
        }

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._woken.wait()
            self._woken.clear()
            begun = time.monotonic()
            try:
                self._look()
            except AltmasError as problem:
                log.info("the goal could not be looked at: %s", problem)
            except Exception:  # a method or metric of the user's may raise anything; labelling goes on
                log.exception("the goal could not be looked at")
            self._stopped.wait(max(LEAST_REST_SECONDS, REST * (time.monotonic() - begun)))

    def _look(self) -> None:
        plan, labels = self.session.plan, len(self.session.history.labels)
        if self._stopped.is_set():
            return
        if not (plan.targets or plan.thresholds) or not labels:
            self.goals, self._told = (), None
            return
        told = told_so_far(self.session)
        if told != self._told:
            self.goals = self.session.goals()
            self.labels, self._told = labels, told
