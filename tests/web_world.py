"""What the tests of the page share: a page without a socket, and servers that can be killed."""

import asyncio
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

import altmas
import forks
from altmas.web import create_app, serving
from altmas.web.access import Access
from altmas.web.connections import LimitedProtocol, Loop
from altmas.web.prefetch import READY

BASE = "http://127.0.0.1:8377"
OWNER = "the-owner-alone-has-this-key"


class Page:
    """The page of a session, asked in this process. Cookies are kept as a browser keeps them."""

    def __init__(self, session: altmas.Session, access: Access | None = None, **options: Any) -> None:
        self.session = session
        self.app = create_app(session, access or Access(owner=OWNER), **options)
        self.cookies = httpx.Cookies()

    def request(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any
    ) -> httpx.Response:
        async def once() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=BASE, cookies=self.cookies) as client:
                answer = await client.request(method, path, headers=headers, **options)
                self.cookies = client.cookies
                return answer

        return asyncio.run(once())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return self.request("POST", path, json=body, **options)

    def next(self, annotator: str = "ana", have: tuple[str, ...] = ()) -> dict[str, Any]:
        return self.post("/api/next", {"annotator": annotator, "have": list(have)}).json()

    def vote(self, handle: str, label: int | None = 0, annotator: str = "ana", **more: Any) -> httpx.Response:
        return self.post("/api/vote", {"annotator": annotator, "item": handle, "label": label, **more})

    def handles(self, annotator: str = "ana") -> list[str]:
        return list(self.next(annotator)["hand"])

    def items(self, *annotators: str) -> list[dict[str, Any]]:
        """What these people are shown, together more than one of them holds."""
        return [item for name in annotators for item in self.next(name)["items"]]

    def id_of(self, handle: str) -> Any:
        return self.session.pool.ids[self.app.state.desk.row(handle)]

    def as_owner(self) -> "Page":
        self.get(f"/overview?key={OWNER}")
        return self


@contextmanager
def paged(session: altmas.Session, access: Access | None = None, **options: Any) -> Iterator[Page]:
    """The page with its supply running and filled."""
    page = Page(session, access, **options)
    supply = page.app.state.supply
    supply.start()
    budget = session.plan.budget or len(session.pool)
    eventually(lambda: supply.state().ready >= min(READY, budget - len(session.history.labels)))
    try:
        yield page
    finally:
        supply.stop()
        page.app.state.watch.stop()


def eventually(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is true; an assertion error if it never is."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never became true"
        time.sleep(0.05)


@contextmanager
def threaded(page: Page, tls: dict[str, str] | None = None, **limits: Any) -> Iterator[str]:
    """The page on a loopback port of this process, served as `altmas label` does; its address.

    limits  most, header_seconds, request_seconds of the connections
    """
    protocol = type("Limited", (LimitedProtocol,), limits)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        server = uvicorn.Server(serving._config(page.app, protocol, tls or {}))

        def run() -> None:
            with asyncio.Runner(loop_factory=Loop) as runner:
                runner.run(server.serve(sockets=[listening]))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        eventually(lambda: server.started)
        try:
            yield f"http{'s' * bool(tls)}://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)


class Server:
    """The page of a session file in a process of its own, which can be killed and started again on its port."""

    def __init__(self, path: Path, *, port: int = 0, verify: str = "", **options: Any) -> None:
        self.verify = ssl.create_default_context(cafile=verify) if verify else None
        self.path, self.port, self.options = path, port, {"owner_key": OWNER, **options}
        self.printed = ""
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> "Server":
        code = (
            "import sys, altmas; sys.path.insert(0, sys.argv[2]); "
            f"altmas.Session.open(sys.argv[1]).label(open_browser=False, port={self.port}, **{self.options!r})"
        )
        self.process = subprocess.Popen(
            [forks.command("python"), "-c", code, str(self.path), str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        while "Ctrl+C" not in self.printed:
            line = self.process.stdout.readline()
            if not line:
                self._ended()
                raise AssertionError(f"the server ended: {self.printed}")
            self.printed += line
        address = next(word for word in self.printed.split() if word.startswith("http"))
        self.port = int(address.split("://")[1].split("/")[0].rpartition(":")[2])
        eventually(self.answers)
        return self

    @property
    def base(self) -> str:
        return f"http{'s' * (self.verify is not None)}://127.0.0.1:{self.port}"

    def answers(self) -> bool:
        try:
            answer = httpx.get(f"{self.base}/api/setup", timeout=2, verify=self.verify or True)
            return answer.status_code in (200, 401)
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """As a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self._ended()

    def stop(self) -> str:
        """As Ctrl+C does; everything it printed."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self._ended()
        return self.printed

    def _ended(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        self.printed += self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait(20)
        self.process = None


@contextmanager
def served(path: Path, **options: Any) -> Iterator[Server]:
    server = Server(path, **options).start()
    try:
        yield server
    finally:
        if server.process is not None:
            server.kill()


AXE = "axe-core@4.10.3"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules that look at colours: all that another colour scheme can break."""
AXE_ALIKE = 10
AXE_RUN = """
const [rules, alike, done] = arguments;
const taken = [...document.querySelectorAll("*")].flatMap((parent) => {
    const count = {};
    return [...parent.children].filter((child) => {
        const kind = `${child.tagName} ${child.getAttribute("class")}`;
        count[kind] = (count[kind] ?? 0) + 1;
        return count[kind] > alike;
    });
}).map((child) => [child, document.createComment("")]);
for (const [child, place] of taken) child.replaceWith(place);
const end = (found) => {
    for (const [child, place] of taken.reverse()) place.replaceWith(child);
    done(found);
};
axe.run(document, { runOnly: rules, resultTypes: ["violations"] }).then(
    (found) => end(found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 200)} `
        + `${node.failureSummary.replace(/\\s+/g, " ").slice(0, 300)}`))),
    (error) => end([`axe failed: ${error}`]));
"""


def axe_script() -> Path:
    """The script of axe-core, fetched by npm once into the user's cache; the test is skipped where it cannot be had.

    ALTMAS_AXE names a file to take instead.
    """
    if given := os.environ.get("ALTMAS_AXE"):
        return Path(given)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "altmas-tests"
    script = cache / AXE / "node_modules" / "axe-core" / "axe.min.js"
    npm = shutil.which("npm")
    if not script.exists() and npm is not None:
        where = ["--prefix", str(cache / AXE)]
        subprocess.run([npm, "install", "--no-audit", "--no-fund", *where, AXE], capture_output=True, timeout=120)
    if not script.exists():
        pytest.skip("the accessibility test needs axe-core: npm install axe-core, or ALTMAS_AXE=axe.min.js")
    return script


def axe_violations(driver: Any, rules: list[str] = RULES) -> list[str]:
    """What axe-core finds wrong with the page that a driver of selenium shows: WCAG 2.2 AA and good practice.

    Of elements of one kind that stand side by side, such as 999 buttons, it looks at the first 10.
    """
    if not driver.execute_script("return Boolean(window.axe)"):
        driver.execute_script(axe_script().read_text(encoding="utf-8"))
    driver.set_script_timeout(100)
    return list(driver.execute_async_script(AXE_RUN, rules, AXE_ALIKE))


def axe_in_both_schemes(browser: Any) -> dict[str, list[str]]:
    """{colour scheme: what axe-core finds}: by every rule in the light one, by those about colours in the dark one."""
    found = {}
    for scheme, rules in (("light", RULES), ("dark", COLOURS)):
        browser.prefer(prefers_color_scheme=scheme)
        found[scheme] = axe_violations(browser.driver, rules)
    browser.prefer()
    return found


NO_FAULT: dict[str, list[str]] = {"light": [], "dark": []}
