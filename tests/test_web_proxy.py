"""The page behind a reverse proxy, below a path, and over TLS. Real sockets, and a real browser where there is one."""

import http.client
import http.server
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from altmas.errors import AltmasError, FileError, PlanError
from altmas.web import serving
from altmas.web.access import Access, root_path
from session_world import create
from web_world import OWNER, Page, served, threaded

TOKEN = "a-token-that-nobody-guesses"
PUBLIC = "lab.example"


@contextmanager
def proxied(target: str, *, strip: str = "", host: str | None = PUBLIC) -> Iterator[str]:
    """A small reverse proxy in front of `target`; its address.

    strip  a path that it takes off;  host  the Host header that it passes on, None for the target's own (as nginx does)
    """
    authority = target.split("://")[1]

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {
                name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")
            }
            headers |= {"Host": host or authority, "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
            upstream = http.client.HTTPConnection(authority, timeout=20)
            upstream.request(self.command, self.path.removeprefix(strip) or "/", body or None, headers)
            answer = upstream.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "connection", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            upstream.close()

        do_POST = do_HEAD = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def access(**changes: object) -> Access:
    given = {"owner": OWNER, "token": TOKEN, "hosts": (PUBLIC,), "origins": (f"https://{PUBLIC}",), "root": "/labels"}
    return Access(**(given | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("strip", ["", "/labels"])
@pytest.mark.parametrize("host", [PUBLIC, None])
def test_the_page_works_below_a_path_whatever_the_proxy_does_with_it(strip: str, host: str | None) -> None:
    """The proxy may take the path off or leave it on, and may pass the public name on or put its own in."""
    page = Page(create(budget=40), access())
    own = {"origin": f"https://{PUBLIC}", "sec-fetch-site": "same-origin"}
    with threaded(page) as target, proxied(target, strip=strip, host=host) as address:
        with httpx.Client(base_url=address, cookies=httpx.Cookies()) as client:
            assert client.get("/labels/").status_code == client.get("/labels/api/setup").status_code == 401
            entry = client.get(f"/labels/?token={TOKEN}")
            assert entry.status_code == 303 and entry.headers["location"] == "/labels/"
            cookie = entry.headers["set-cookie"]
            assert "Path=/labels/" in cookie and "Secure" in cookie and "HttpOnly" in cookie
            client.headers["cookie"] = cookie.partition(";")[0]  # a Secure one, which httpx keeps back from http
            start = client.get("/labels/")
            assert start.status_code == 200
            assert 'src="/labels/static/label.js"' in start.text and '"/static' not in start.text
            assert client.get("/labels/static/label.js").status_code == 200
            said = {"annotator": "ana"}
            hand = client.post("/labels/api/next", json=said, headers=own).json()
            assert (
                client.post("/labels/api/next", json=said, headers={"origin": "https://evil.example"}).status_code
                == 403
            )
            if hand["hand"]:
                vote = {**said, "item": hand["hand"][0], "label": 0}
                assert client.post("/labels/api/vote", json=vote, headers=own).status_code == 200
            assert client.get(f"/labels/overview?key={OWNER}").headers["location"] == "/labels/overview"


def test_the_path_without_its_slash_leads_to_the_page() -> None:
    page = Page(create(budget=40), Access(owner=OWNER, root="/labels"))
    answer = page.get("/labels?annotator=ana")
    assert answer.status_code == 303 and answer.headers["location"] == "/labels/?annotator=ana"
    assert page.get("/labels/").status_code == page.get("/").status_code == 200
    assert page.get("/labelsx/").status_code == 404


@pytest.mark.parametrize("path", ["labels", "/a b", "/a/../b", "//evil.example", "/a?b", '/a"', "/é", "/."])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(PlanError, match="not a path"):
        root_path(path)
    assert [root_path(given) for given in ("", "/", "/labels", "/a/b-c/")] == ["", "", "/labels", "/a/b-c"]


def test_links_name_the_address_that_people_use() -> None:
    session = create()
    behind = serving._access(session, "127.0.0.1", None, OWNER, [f"https://{PUBLIC}"], root="/labels/")
    addresses = serving._addresses("127.0.0.1", 8377, behind)
    assert addresses.label == f"https://{PUBLIC}/labels/?token={behind.token}"
    assert addresses.overview == f"https://{PUBLIC}/labels/overview?key={OWNER}&token={behind.token}"
    assert addresses.here.startswith("http://127.0.0.1:8377/labels/?token=")


def test_an_open_page_behind_a_proxy_gives_nothing() -> None:
    """Started without --allowed-host it has no token, and a proxy with the server's own name would let everybody in."""
    page = Page(create(budget=40))
    with threaded(page) as target, proxied(target, host=None) as address:
        for path in ("/", "/api/setup", "/static/label.js"):
            answer = httpx.get(address + path)
            assert answer.status_code == 403 and "--allowed-host" in answer.json()["error"]
        assert httpx.get(f"{target}/api/setup").status_code == 200


# ---------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """(certificate, key) that nobody but this test has signed."""
    folder = tmp_path_factory.mktemp("tls")
    files = str(folder / "cert.pem"), str(folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", files[0], "-keyout", files[1]]
    subprocess.run(command, check=True, capture_output=True)
    return files


def test_the_page_over_tls_has_cookies_for_https_alone(tmp_path: Path, certificate: tuple[str, str]) -> None:
    create(tmp_path / "s.altmas", budget=30).close()
    trusted = ssl.create_default_context(cafile=certificate[0])
    (tmp_path / "people.txt").write_text("Ana\n")
    people, files = str(tmp_path / "people.txt"), {"certificate": certificate[0], "key": certificate[1]}
    with served(tmp_path / "s.altmas", people=people, verify=certificate[0], **files) as server:
        link = (tmp_path / "people.txt.links").read_text().splitlines()[1].partition(",")[2]
        assert link.startswith(f"https://127.0.0.1:{server.port}/?person=")
        with httpx.Client(verify=trusted) as client:
            entry = client.get(link)
            assert entry.status_code == 303 and "Secure" in entry.headers["set-cookie"]
            setup = client.get(f"https://127.0.0.1:{server.port}/api/setup")
            assert setup.json()["person"] == "Ana"
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{server.port}/")
        printed = server.stop()
    assert f"owner's overview https://127.0.0.1:{server.port}/overview" in printed and "Traceback" not in printed


def test_files_that_are_no_certificate_start_nothing(tmp_path: Path, certificate: tuple[str, str]) -> None:
    (tmp_path / "other.pem").write_text("not a certificate")
    for given in (
        (str(tmp_path / "gone.pem"), certificate[1]),
        (certificate[0], str(tmp_path / "gone.pem")),
        (str(tmp_path / "other.pem"), certificate[1]),
        (certificate[1], certificate[0]),
        (certificate[0], None),
    ):
        with pytest.raises(FileError, match="cannot be used for TLS: .*nothing was started"):
            serving._tls(*given)
    with pytest.raises(AltmasError, match="--key needs --certificate"):
        serving._tls(None, certificate[1])
