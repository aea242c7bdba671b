"""The page's server against people who connect and say nothing, too much, too slowly or nonsense. Real sockets."""

import asyncio
import random
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.responses import Response

from altmas.web import access, serving
from altmas.web.access import MAX_BODY
from session_world import create
from web_world import Page, eventually, served, threaded

HEAD = b"POST /api/next HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture
def page() -> Page:
    return Page(create(budget=40))


def connected(address: str) -> socket.socket:
    host, port = address.split("://")[1].split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def said(connection: socket.socket) -> bytes:
    """Everything until the server closes."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def answers(address: str) -> bool:
    return httpx.get(f"{address}/api/setup", timeout=10).status_code == 200


# ---------------------------------------------------------------- too much


def flood(address: str, head: bytes, megabytes: int = 400) -> tuple[bytes, int]:
    """(answer, bytes taken) of a body in chunks that does not end by itself."""
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    sent = 0
    with connected(address) as connection:
        try:
            connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            while sent < megabytes * 2**20:
                connection.sendall(chunk)
                sent += 65536
        except OSError:
            pass
        try:
            return said(connection), sent
        except TimeoutError:
            return b"", sent


@pytest.mark.parametrize("claimed", [b"", b"Content-Length: 5\r\n"])
def test_a_body_in_chunks_is_limited_too(page: Page, claimed: bytes) -> None:
    with threaded(page) as address:
        answer, sent = flood(address, HEAD + claimed)
        assert sent < 20 * 2**20  # what fits into the buffers of two sockets
        assert answer == b"" or answer.startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))
        answer, sent = flood(address, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        assert sent < 20 * 2**20 and (answer == b"" or answer.startswith(b"HTTP/1.1 400"))
        assert answers(address)
    assert page.session.status().annotators == ()


def test_the_refusal_of_a_large_body_arrives_and_one_in_chunks_within_the_limit_is_taken(page: Page) -> None:
    with threaded(page) as address, httpx.Client(base_url=address) as client:
        head = {"content-type": "application/json"}

        def body(size: int) -> Iterator[bytes]:
            start = b'{"annotator": "ana"'
            yield start
            yield b" " * (size - len(start) - 1) + b"}"

        assert client.post("/api/next", content=body(MAX_BODY), headers=head).status_code == 200
        refused = client.post("/api/next", content=body(MAX_BODY + 1), headers=head)
        assert refused.status_code == 413 and refused.headers["connection"] == "close"
        assert "256 kB" in refused.json()["error"]


@pytest.mark.parametrize("kind", [b"application/json", b"text/plain"])
def test_a_refused_body_that_ends_late_does_not_reset_the_connection(page: Page, kind: bytes) -> None:
    """The end of a body is often sent apart; had the server closed before, the reset could destroy its answer."""
    with threaded(page) as address, connected(address) as connection:
        head = HEAD.replace(b"application/json", kind) + b"Transfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + f"{MAX_BODY + 1:x}\r\n".encode() + b" " * (MAX_BODY + 1) + b"\r\n")
        time.sleep(0.3)
        connection.sendall(b"0\r\n\r\n")
        answer = b""
        while part := connection.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 4") and answer.endswith(b'nothing was recorded"}')


# ---------------------------------------------------------------- too many


def test_idle_connections_do_not_keep_others_out(page: Page) -> None:
    with threaded(page, most=50) as address:
        idle = [connected(address) for _ in range(300)]
        try:
            begun = time.monotonic()
            assert answers(address)
            assert time.monotonic() - begun < 5
        finally:
            for one in idle:
                one.close()


def test_a_request_under_way_is_not_closed_to_make_room(page: Page) -> None:
    with threaded(page, most=4) as address:
        with connected(address) as working:
            working.sendall(HEAD + b"Content-Length: 20\r\n\r\n")  # the body comes later
            time.sleep(0.2)
            idle = [connected(address) for _ in range(30)]
            working.sendall(b'{"annotator": "ana"}')
            assert working.recv(4096).startswith(b"HTTP/1.1 200")
            for one in idle:
                one.close()


def test_a_server_with_few_files_still_answers(tmp_path: Path) -> None:
    """256 files, as some systems allow by default: 300 silent connections used to silence the page."""
    create(tmp_path / "s.altmas", budget=30).close()
    code = (
        "import resource, sys, altmas; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); "
        "altmas.Session.open(sys.argv[1]).label(open_browser=False, port=0)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "s.altmas")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1].rstrip("/")
        idle: list[socket.socket] = []
        try:
            eventually(lambda: _up(address))
            idle += [connected(address) for _ in range(300)]
            assert answers(address)
        finally:
            process.kill()
            for one in idle:
                one.close()
            printed = process.stdout.read()
    assert "Traceback" not in printed and "Too many open files" not in printed


def _up(address: str) -> bool:
    try:
        return answers(address)
    except httpx.TransportError:
        return False


def test_the_limit_on_files_is_as_before_when_the_server_has_ended() -> None:
    from altmas.web.connections import WANTED_FILES, enough_files

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = (128, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, low)
    try:
        with enough_files() as protocol:
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(WANTED_FILES, before[1])
            assert 8 <= protocol.most <= 500
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == low
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


# ---------------------------------------------------------------- too slow


@pytest.mark.parametrize("first", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
def test_a_head_has_to_be_complete_in_time_however_it_drips(page: Page, first: bytes) -> None:
    with threaded(page, header_seconds=0.5) as address, connected(address) as connection:
        begun = time.monotonic()
        connection.sendall(first)
        try:
            while first and time.monotonic() - begun < 10:
                connection.sendall(b"x")
                time.sleep(0.05)
        except OSError:
            pass
        assert said(connection) == b"" and 0.4 < time.monotonic() - begun < 5


def test_the_next_head_on_a_connection_is_timed_as_well(page: Page) -> None:
    with threaded(page, header_seconds=0.5) as address, connected(address) as connection:
        for _ in range(2):
            connection.sendall(b"GET /api/setup HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")
            time.sleep(1.0)  # between requests it may stay open longer
        begun = time.monotonic()
        connection.sendall(b"GET /api")
        assert said(connection) == b"" and time.monotonic() - begun < 5


def test_a_body_has_to_arrive_in_time(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "BODY_SECONDS", 0.4)
    with threaded(page) as address, connected(address) as connection:
        connection.sendall(HEAD + b'Content-Length: 40\r\n\r\n{"annotator"')
        answer = said(connection)
        assert answer.startswith(b"HTTP/1.1 408") and b"nothing was recorded" in answer
        assert answers(address)


def test_whoever_does_not_take_an_answer_is_let_go(page: Page) -> None:
    page.app.add_api_route("/large", lambda: Response(b"x" * 50_000_000), methods=["GET"])
    with threaded(page, request_seconds=1.0) as address, connected(address) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        time.sleep(3.0)
        assert len(said(connection)) < 40_000_000  # no more than was in the buffers of two sockets
        assert answers(address)


def test_a_hundred_slow_ones_do_not_slow_the_others(page: Page) -> None:
    with threaded(page, header_seconds=3.0, most=80) as address:
        stop = threading.Event()

        def drip() -> None:
            while not stop.is_set():
                try:
                    with connected(address) as connection:
                        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
                        while not stop.wait(0.1):
                            connection.sendall(b"x")
                except OSError:
                    stop.wait(0.05)

        threads = [threading.Thread(target=drip, daemon=True) for _ in range(100)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        try:
            for _ in range(10):
                assert _patiently(address)
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def _patiently(address: str) -> bool:
    """An answer within three tries, as a browser makes them."""
    return any(_up(address) for _ in range(3))


# ---------------------------------------------------------------- nonsense


def nonsense() -> list[bytes]:
    rng = random.Random(0)
    heads = [
        b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://[\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: \xff://\xe2\x84\x80\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: \xff=\xff; =; ;;\r\n\r\n",
        b"GET /%00%ff%2e%2e/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /static/%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /static/" + b"a" * 5000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /?token=%ff%fe&key=%00&person=%ed%a0%80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: \xb2\r\n\r\n",
        HEAD + b"Content-Length: 99999999999999999999\r\n\r\n",
        HEAD + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nnull",
        HEAD + b"Transfer-Encoding: gzip\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Content-Length: 4\r\n\r\nnull",
        HEAD + b"Content-Length: 2\r\n\r\n\xff\xfe",
        HEAD + b"Content-Length: 6000\r\n\r\n" + b"[" * 6000,
        HEAD + b"Content-Length: 28\r\n\r\n" + b'{"annotator": "\\ud800 name"}',
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 100,
    ]
    usual = b"POST /api/vote HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nContent-Length: 2\r\n\r\n{}"
    for _ in range(150):
        spoiled = bytearray(usual)
        for _ in range(rng.randint(1, 6)):
            spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
        heads.append(bytes(spoiled))
    return heads


def test_nonsense_is_answered_below_500_and_leaves_no_traceback(tmp_path: Path) -> None:
    create(tmp_path / "s.altmas", budget=30).close()
    with served(tmp_path / "s.altmas") as server:
        for request in nonsense():
            with connected(server.base) as connection:
                try:
                    connection.sendall(request)
                    connection.shutdown(socket.SHUT_WR)
                    answer = said(connection)
                except OSError:  # refused while it was being sent: the server has closed it already
                    answer = b""
            status = int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0
            assert status < 500, (request[:200], answer[:200])
        assert answers(server.base)
        printed = server.stop()
    assert "Traceback" not in printed and "Exception" not in printed


def test_a_server_that_ends_gives_back_what_its_people_were_shown(page: Page) -> None:
    page.session.ask(2, "cy")  # who labels elsewhere
    with threaded(page) as address:
        for name in ("ana", "bob"):
            eventually(lambda name=name: httpx.post(f"{address}/api/next", json={"annotator": name}).json()["items"])
        assert [one.annotator for one in page.session.held_by_others()] == ["ana", "bob", "cy"]
    assert [one.annotator for one in page.session.held_by_others()] == ["cy"]


def test_an_interrupt_before_the_server_has_begun_ends_it_quietly() -> None:
    """Ctrl-C while the loop is being set up cancels the task of the server before its first step."""

    class Cancelled:
        async def serve(self, sockets: list[socket.socket]) -> None:
            raise asyncio.CancelledError

    listening = socket.create_server(("127.0.0.1", 0))
    serving._answer(Cancelled(), listening)  # type: ignore[arg-type]
    assert listening.fileno() == -1
