"""The page under load: does a killed server lose labels, and how long is it from a key to the next item?

load     50 annotators at one label a second each for 60 s, three kills (SIGKILL) of the server meanwhile. A vote is
         timed from the request that was answered to its answer, and once more with the waits for a dead server.
crash    two annotators at 10 labels a second each for 60 s, as pages do it: every vote is sent again until it is
         acknowledged. The server is killed (SIGKILL) and started again five times meanwhile. Afterwards the file
         must hold every acknowledged label, and no item may have been labelled twice.
latency  a pool of 100,000 points and a method that fits a classifier on all of them for 5 s at each draw. In
         Chromium, from the key event to the frame after the next item was put on the screen; beside it a second
         annotator's votes, from the request to the answer.

    python -m benchmarks.page_load
    python -m benchmarks.page_load --part load        the rows of the other parts stay as they are

The load of the machine (processes that want to run, averaged over a minute) is written down before each part:
limits on times are meant for two idle cores.
"""

import argparse
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import altmas
from altmas.history import Batch, History
from altmas.methods import Method, Task, Tradition
from altmas.web.annotator_api import HAND
from benchmarks import store

RESULTS = store.RESULTS / "page_load.csv"
NAMES = ("cat", "dog", "owl")
RATE = 10.0
"""Labels per second of each of two annotators while the server is killed."""

PAUSES = (0.3, 0.6, 1.2, 2.5, 5.0)
"""Seconds before a page sends again what was not answered (outbox.js)."""

PEOPLE, PEOPLE_RATE, PEOPLE_KILLS, VOTE_LIMIT = 50, 1.0, 3, 500.0
"""Annotators, labels per second of each, kills of the server, and milliseconds that 95 % of the votes may take."""

PACE = 1.0
"""Seconds between the labels whose delay is measured: faster than anybody looks at an item."""


@dataclass(frozen=True)
class Row:
    """One line of the results; limit is what it must not exceed (or must be, for the counts of faults: 0)."""

    part: str
    what: str
    value: float
    limit: float | None = None


@dataclass(frozen=True)
class AlwaysFitting(Tradition):
    """A random sample, drawn after a real fit on the whole pool that lasts `seconds`."""

    seconds: float = 5.0
    name = "always-fitting"

    def propose(self, task: Task, history: History, n: int) -> Batch:
        from sklearn.linear_model import LogisticRegression

        end = time.monotonic() + self.seconds
        while len(history.labels) and time.monotonic() < end:
            LogisticRegression(max_iter=20, tol=0.0).fit(task.pool.features, task.pool.predictions)
        return super().propose(task, history, n)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


class Server:
    """`altmas label` in a process of its own."""

    def __init__(self, path: Path) -> None:
        self.path, self.port = path, free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "altmas", "label", str(self.path), "--no-browser", "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while not self.answers():
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended with code {self.process.returncode}")
            time.sleep(0.2)

    def answers(self) -> bool:
        """Whether it takes connections; the first request is an annotator's."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def serving(path: Path) -> Iterator[Server]:
    server = Server(path)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def new_session(path: Path, points: int, method: str | Method, features: int) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, len(NAMES), points)
    predicted = np.where(rng.random(points) < 0.8, truth, rng.integers(0, len(NAMES), points))
    scores = 0.1 + 0.7 * np.eye(len(NAMES))[predicted]
    inputs = (rng.normal(size=(points, features)) + np.eye(len(NAMES), features)[truth]).astype(np.float32)
    items = [f"What is this? Description number {row}." for row in range(points)]
    pool = altmas.Pool(inputs, np.array(NAMES)[predicted], scores=scores, classes=NAMES, items=items)
    altmas.Session.create(path, pool, metrics=["accuracy", "recall[cat]"], method=method).close()


# ---------------------------------------------------------------- crash


@dataclass
class Annotator:
    """Votes as a page does: at a steady pace, each one again until it is acknowledged."""

    name: str
    base: str
    rate: float = RATE
    phase: float = 0.0
    """When the first label comes, as a share of the time between two: people do not label in step."""
    acknowledged: dict[str, tuple[int, int]] = field(default_factory=dict)  # handle -> (seq, label)
    refused: int = 0
    resent: int = 0
    took: list[float] = field(default_factory=list)
    """Seconds from the request that was answered to its answer."""
    waited: list[float] = field(default_factory=list)
    """The same with the waits for a server that was away."""

    def work(self, seconds: float) -> None:
        """Label at a steady rate; whoever fell behind catches up on what a page holds, and goes on at that rate."""
        started_work = time.monotonic()
        due, number = started_work + self.phase / self.rate, 0
        hand: list[str] = []
        with httpx.Client(base_url=self.base, timeout=5) as client:
            while due < started_work + seconds:
                time.sleep(max(0.0, due - time.monotonic()))
                due, number = max(due, time.monotonic() - HAND / self.rate) + 1 / self.rate, number + 1
                while not hand:
                    hand = self.send(client, "/api/next", {})["hand"] or self.rest()
                handle, label = hand[0], number % len(NAMES)
                started = time.monotonic()
                vote = {"item": handle, "label": label, "seconds": 1 / self.rate, "have": hand[1:]}
                answer = self.send(client, "/api/vote", vote)
                self.took.append(self.last)
                self.waited.append(time.monotonic() - started)
                if "seq" in answer:
                    self.acknowledged[handle] = (answer["seq"], label)
                hand = answer.get("hand", hand[1:])

    def rest(self) -> list[str]:
        time.sleep(0.02)
        return []

    def send(self, client: httpx.Client, path: str, body: dict[str, object]) -> Any:
        """The answer, however often it has to be asked for; the pauses between are the page's."""
        for tries in count():
            begun = time.monotonic()
            try:
                answer = client.post(path, json={"annotator": self.name, **body})
                self.last = time.monotonic() - begun
            except httpx.TransportError:
                self.resent += 1
                time.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                continue
            if answer.status_code == 409:
                self.refused += 1
            elif answer.status_code != 200:
                raise SystemExit(f"{path}: {answer.status_code} {answer.text}")
            return answer.json()
        raise AssertionError("unreachable: the tries do not end")


def crash(folder: Path, seconds: float, kills: int, points: int) -> list[Row]:
    """What two quick annotators were acknowledged and what is in the file after `kills` kills."""
    return [*killed("crash", folder, seconds, kills, points, people=2, rate=RATE)]


def load(folder: Path, seconds: float) -> list[Row]:
    """The same for many annotators at the pace of people, and how long their votes take."""
    return [*killed("load", folder, seconds, PEOPLE_KILLS, 20_000, people=PEOPLE, rate=PEOPLE_RATE, limit=VOTE_LIMIT)]


def killed(
    part: str,
    folder: Path,
    seconds: float,
    kills: int,
    points: int,
    *,
    people: int,
    rate: float,
    limit: float | None = None,
) -> Iterator[Row]:
    yield machine_load(part)
    path = folder / f"{part}.altmas"
    new_session(path, points, "tradition", 2)
    with serving(path) as server:
        annotators = [Annotator(f"annotator {number}", server.base, rate, number / people) for number in range(people)]
        threads = [threading.Thread(target=annotator.work, args=(seconds,), daemon=True) for annotator in annotators]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        for number in range(kills):
            time.sleep(max(0.0, begun + (number + 0.6) * seconds / kills - time.monotonic()))
            server.kill()
            server.start()
        for thread in threads:
            thread.join()
        lasted = time.monotonic() - begun
    yield Row(part, "annotators", people)
    yield Row(part, "seconds", lasted)
    yield Row(part, "kills", kills)
    yield from verdict(part, path, annotators, limit)


def machine_load(part: str) -> Row:
    return Row(part, "load of the machine before", os.getloadavg()[0])


def verdict(part: str, path: Path, annotators: list[Annotator], limit: float | None) -> Iterator[Row]:
    with altmas.Session.open(path) as session:  # for writing: a kill may have left a journal to roll back
        labels = {event["seq"]: event for event in session.events() if event["kind"] == "label"}
    acknowledged = [(annotator.name, *ack) for annotator in annotators for ack in annotator.acknowledged.values()]
    lost = [
        seq
        for name, seq, label in acknowledged
        if seq not in labels or (labels[seq]["annotator"], labels[seq]["label"]) != (name, NAMES[label])
    ]
    twice = len(labels) - len({event["point"] for event in labels.values()})
    yield Row(part, "labels acknowledged", len(acknowledged))
    yield Row(part, "labels in the file", len(labels))
    yield Row(part, "acknowledged labels lost", len(lost), 0)
    yield Row(part, "items labelled twice", twice, 0)
    yield Row(part, "requests sent again", sum(annotator.resent for annotator in annotators))
    yield Row(part, "votes refused", sum(annotator.refused for annotator in annotators))
    took = [1000 * seconds for annotator in annotators for seconds in annotator.took]
    waited = [1000 * seconds for annotator in annotators for seconds in annotator.waited]
    yield from spread(part, "vote to answer", took, limit)
    yield from spread(part, "vote to answer with waits for a dead server", waited)


# ---------------------------------------------------------------- latency

WATCH_KEYS = """
window.keyToNext = [];
let pressed = 0, before = "";
const item = document.getElementById("item");
document.addEventListener("keydown", () => { pressed = performance.now(); before = item.dataset.handle; }, true);
new MutationObserver(() => {
  if (!pressed || item.dataset.handle === before) return;
  const begun = pressed;
  const fitting = document.getElementById("supply").textContent.includes("refitting");
  pressed = 0;
  requestAnimationFrame(() => setTimeout(() => window.keyToNext.push([performance.now() - begun, fitting])));
}).observe(item, { attributes: true, attributeFilter: ["data-handle"] });
"""


def latency(folder: Path, points: int, labels: int, method: str | Method) -> list[Row]:
    """Milliseconds from a key to the next item, and from a vote to its answer, while the method fits."""
    before = machine_load("latency")
    path = folder / "latency.altmas"
    new_session(path, points, method, 32)
    with serving(path) as server:
        with ThreadPoolExecutor(1) as executor:
            answers = executor.submit(answer_times, server, labels)
            keys = key_times(server, labels)
            votes = answers.result()
    during = [took for took, fitting in keys if fitting]
    return [
        before,
        Row("latency", "points", points),
        *spread("latency", "key to next item", [took for took, _ in keys], 100.0),
        *(spread("latency", "key to next item during a fit", during, 100.0) if during else ()),
        *spread("latency", "vote to answer", [took for took, _ in votes]),
        *spread("latency", "vote to answer during a fit", [took for took, fitting in votes if fitting] or [math.nan]),
    ]


def spread(part: str, what: str, milliseconds: list[float], limit: float | None = None) -> Iterator[Row]:
    yield Row(part, f"{what}, number", len(milliseconds))
    for share, name in ((50, "median"), (95, "p95"), (100, "largest")):
        value = float(np.percentile(milliseconds, share))
        yield Row(part, f"{what}, ms, {name}", value, limit if name == "p95" else None)


def answer_times(server: Server, labels: int) -> list[tuple[float, bool]]:
    """(milliseconds, whether a fit was under way) of votes over HTTP at PACE."""
    took = []
    with httpx.Client(base_url=server.base, timeout=60) as client:

        def post(path: str, **body: object) -> Any:
            while True:  # as a page does
                try:
                    return client.post(path, json={"annotator": "bot", **body}).json()
                except httpx.TransportError:
                    time.sleep(0.1)

        hand: list[str] = []
        for number in range(labels):
            while not hand:
                hand = post("/api/next")["hand"]
                time.sleep(0.02)
            begun = time.monotonic()
            answer = post("/api/vote", item=hand[0], label=number % 3, seconds=PACE, have=hand[1:])
            elapsed = 1000 * (time.monotonic() - begun)
            fitting = bool((answer["header"] or {"supply": {"refitting": False}})["supply"]["refitting"])
            took.append((elapsed, fitting))
            hand = answer["hand"]
            time.sleep(PACE)
    return took


def key_times(server: Server, labels: int) -> list[tuple[float, bool]]:
    """(milliseconds, whether a fit was under way) of keys pressed in Chromium at PACE."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in (
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        *(["--no-sandbox"] * (os.geteuid() == 0)),
    ):
        options.add_argument(flag)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    ready = "return document.querySelector('.item').getAttribute('aria-busy') === 'false'"
    try:
        driver.get(server.base)
        wait(lambda: bool(driver.execute_script("return document.getElementById('dialog').open")))
        name = json.dumps("ana")
        driver.execute_script(f"for (const input of document.querySelectorAll('dialog input')) input.value = {name}")
        driver.execute_script("document.getElementById('dialog-form').requestSubmit()")
        wait(lambda: bool(driver.execute_script(ready)))
        driver.execute_script(WATCH_KEYS)
        for number in range(labels):
            wait(lambda: bool(driver.execute_script(ready)))
            key = "123"[number % 3]
            event = {"key": key, "code": f"Digit{key}", "text": key, "windowsVirtualKeyCode": ord(key)}
            driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", **event})
            driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyUp", **event})
            print(f"\r{number + 1} of {labels} keys", end="", file=sys.stderr)
            time.sleep(PACE)
        shown: list[tuple[float, bool]] = driver.execute_script("return window.keyToNext")
    finally:
        driver.quit()
    return shown


def wait(true: Callable[[], bool], seconds: float = 900.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise SystemExit("the page did not become ready")
        time.sleep(0.01)


def always_fitting() -> Method:
    """The method under the name by which the server can import it: this module may be __main__."""
    from benchmarks import page_load

    return page_load.AlwaysFitting()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=200)
    parser.add_argument("--method", help="another method than the one that always fits")
    parser.add_argument("--part", choices=["load", "crash", "latency"], action="append")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    parts: dict[str, Callable[[Path], list[Row]]] = {
        "load": lambda folder: load(folder, options.seconds),
        "crash": lambda folder: crash(folder, options.seconds, options.kills, 20_000),
        "latency": lambda folder: latency(folder, options.points, options.labels, options.method or always_fitting()),
    }
    over: list[str] = []
    for part in options.part or parts:
        with tempfile.TemporaryDirectory() as name:
            rows = parts[part](Path(name))
        for row in rows:
            limit = f"  (limit {row.limit:g})" if row.limit is not None else ""
            print(f"{row.part:8} {row.what:60} {row.value:10.4g}{limit}", flush=True)
        keep(options.out, rows)
        over += [row.what for row in rows if row.limit is not None and row.value > row.limit]
    raise SystemExit(f"over the limit: {', '.join(over)}" if over else 0)


def keep(path: Path, rows: list[Row]) -> None:
    """Write the rows of one part; those of the other parts stay."""
    own = (asdict(row) | {"value": f"{row.value:.4g}"} for row in rows)
    store.keep_csv(path, [row | {"limit": "" if row["limit"] is None else f"{row['limit']:g}"} for row in own], "part")


if __name__ == "__main__":
    main()
