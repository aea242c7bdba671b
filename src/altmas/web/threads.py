"""Threads that think in the background, behind whoever looks at the page."""

import os
import sys
import threading
from collections.abc import Callable

NICENESS = 10


def background(work: Callable[[], None], name: str) -> threading.Thread:
    """A started daemon thread that leaves the processor to the browser and to the page's answers.

    Linux has a niceness for each thread; elsewhere the thread is like any other.
    """

    def politely() -> None:
        if sys.platform == "linux":
            try:
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
            except OSError:
                pass  # a sandbox that forbids it: slower answers, nothing else
        work()

    thread = threading.Thread(target=politely, name=name, daemon=True)
    thread.start()
    return thread
