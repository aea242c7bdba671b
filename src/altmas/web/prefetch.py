"""Supply: a background thread that keeps points ready, so that nobody who labels ever waits for a fit."""

import logging
import math
import threading
import time
from collections import deque
from dataclasses import dataclass

from altmas.errors import AltmasError
from altmas.history import History
from altmas.session import Session
from altmas.web.threads import background

log = logging.getLogger("altmas")

READY = 5
"""Points that wait for whoever comes next, besides those that people have on their screens."""

FIRST = 4 * READY
"""Drawn before the first label: there is nothing to learn from yet, and how long a fit takes is not known."""

MOST = 100
"""More than this is never drawn ahead: the later a point is chosen, the more its choice knows."""

PACE_SECONDS = 30.0
"""The time over which the present speed of labelling is measured."""

RETRY_SECONDS = 5.0


@dataclass(frozen=True)
class SupplyState:
    """How the supply stands: points ready, whether the method is thinking, and what went wrong last."""

    ready: int
    refitting: bool
    last_fit_labels: int | None
    problem: str


class Supply:
    """Keeps at least READY points drawn, more where fits are long and people fast."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._told: deque[float] = deque(maxlen=1000)
        self._fit_seconds = 0.0
        self._refitting = False
        self._problem = ""
        self._ready = 0

    def start(self) -> None:
        """Begin to draw ahead."""
        self._thread = background(self._run, "altmas-supply")

    def stop(self) -> None:
        """Draw no more; a fit that is under way is left to end by itself."""
        self._stopped.set()
        self._woken.set()

    def told(self) -> None:
        """Somebody labelled: there is one point less."""
        self._told.append(time.monotonic())
        self._woken.set()

    def wake(self) -> None:
        """Look at once whether points are missing."""
        self._woken.set()

    def state(self, history: History | None = None) -> SupplyState:
        """How it stands now; `history` spares a look into the log."""
        batches = (history or self.session.history).batches
        last = batches[-1].labels_before if batches else None
        return SupplyState(self._ready, self._refitting, last, self._problem)

    def marks(self) -> tuple[int, int]:
        """(low, full): a fit begins when fewer than `low` points are ready, and brings them to `full`.

        low leaves READY points at the end of a fit as long as the last one, at the present pace of labelling.
        """
        if not self.session.history.labels:
            return READY, FIRST
        now = time.monotonic()
        recent = sum(now - at < PACE_SECONDS for at in list(self._told))
        used = math.ceil(self._fit_seconds * recent / PACE_SECONDS)
        full = min(MOST, 2 * READY + 2 * used)
        return min(READY + used, full - READY), full

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            pause = self._refill()
            self._woken.wait(pause)

    def _refill(self) -> float:
        """Draw what is missing; seconds until the next look (leases expire without anybody saying so)."""
        try:
            low, full = self.marks()
            self._ready = len(self.session.ask(full, draw=False))
            if self._ready < low:
                self._draw(full)
            self._problem = ""
            return 2.0
        except AltmasError as problem:
            self._problem = str(problem)
        except Exception as problem:  # a method of the user's may raise anything; labelling goes on
            log.exception("the next items could not be chosen")
            self._problem = f"the method failed: {type(problem).__name__}: {problem}"
        self._stopped.wait(RETRY_SECONDS)
        return RETRY_SECONDS

    def _draw(self, full: int) -> None:
        self._refitting, begun = True, time.monotonic()
        try:
            if self.session.prefetch(full):
                self._fit_seconds = time.monotonic() - begun
        finally:
            self._refitting = False
        self._ready = len(self.session.ask(full, draw=False))
