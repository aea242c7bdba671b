"""The guard in front of the page by itself: what it lets through, and with what it refuses."""

import asyncio
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from altmas.errors import PlanError
from altmas.web import access
from altmas.web.access import (
    HEADERS,
    MAX_BODY,
    PERSON,
    Access,
    Guard,
    allowed_host,
    equal,
    host_name,
    is_loopback,
    origin_host,
    root_path,
)

OWNER, TOKEN = "the-owners-key", "a-token-for-everybody"
PEOPLE = {"ana": "secret-of-ana", "bob": "secret-of-bob"}
OPEN, CLOSED, NAMED = Access(OWNER), Access(OWNER, TOKEN), Access(OWNER, people=PEOPLE)


@dataclass
class Answer:
    """What the guard answered, and what it gave to the application behind it, if anything."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    scope: dict[str, Any] | None = None
    received: list[Any] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return self.scope is not None

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    def cookies(self) -> list[str]:
        return [value for key, value in self.headers if key == "set-cookie"]


def sent(
    to: Access,
    path: str = "/",
    method: str = "GET",
    *,
    query: str = "",
    cookie: str = "",
    host: str = "127.0.0.1:8377",
    parts: Iterable[dict[str, Any]] = ({"type": "http.request", "body": b"{}", "more_body": False},),
    scheme: str = "http",
    **more: str,
) -> Answer:
    """A request to an application that answers 204 and remembers what it was given."""
    given = {"host": host, **{name.replace("_", "-"): value for name, value in more.items()}}
    if method == "POST":
        given = {"content-type": "application/json", "content-length": "2", **given}
    if cookie:
        given["cookie"] = cookie
    headers = [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value != "-"]
    answer, left = Answer(), list(parts)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        answer.scope = dict(scope)
        if scope["method"] == "POST":
            answer.received.append(await receive())
        await send({"type": "http.response.start", "status": 204, "headers": [(b"x-frame-options", b"SAMEORIGIN")]})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> Any:
        if not left:
            return {"type": "http.disconnect"}
        part = left.pop(0)
        if part.get("wait"):
            await asyncio.sleep(part["wait"])
        return part

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = [(key.decode(), value.decode("latin-1")) for key, value in message["headers"]]
        else:
            answer.body += message.get("body", b"")

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": headers,
        "scheme": scheme,
    }
    asyncio.run(Guard(application, to)(scope, receive, send))
    return answer


def proof(secret: str, name: str) -> str:
    return hmac.new(secret.encode(), f"altmas {name}".encode(), hashlib.sha256).hexdigest()


TOKEN_COOKIE = f"altmas-token={proof(TOKEN, 'token')}"
KEY_COOKIE = f"altmas-key={proof(OWNER, 'key')}"
ANA_COOKIE = f"altmas-person={proof('secret-of-ana', 'person')}"


# ---------------------------------------------------------------- names


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.0.1", "::1"])
def test_loopback_is_this_machine_alone(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.8", "lab.example", "localhost.example", ""])
def test_other_addresses_are_not_loopback(host):
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "host, name",
    [
        ("Lab.Example", "lab.example"),
        ("lab.example:80", "lab.example"),
        ("lab.example:0", "lab.example"),
        ("[::1]:8377", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        *((bad, None) for bad in ("", "a/b", "a?b", "a#b", "a@b", "a\\b", "a%b", "a b", "a\tb", "a,b", "a;b", "é")),
        *((bad, None) for bad in ("a:b", "a:99999", "[::1", "a:-1")),
    ],
)
def test_the_name_in_a_host_header(host, name):
    assert host_name(host) == name


@pytest.mark.parametrize(
    "origin, host",
    [
        ("https://Lab.Example:8443", "lab.example:8443"),
        ("null", ""),
        ("lab.example", None),
        ("https://a/b", None),
        ("ht+tp://a", None),
        ("://a", None),
    ],
)
def test_the_name_in_an_origin_header(origin, host):
    assert origin_host(origin) == host


def test_which_names_are_this_servers():
    named = Access(OWNER, hosts=("Lab.Example",))
    assert named.host_is_ours("lab.example:1234") and named.host_is_ours("LOCALHOST") and named.host_is_ours("[::1]")
    assert named.host_is_ours("127.9.9.9") and not named.host_is_ours("10.0.0.8")
    assert not named.host_is_ours("evil.example") and not named.host_is_ours("a b")
    anywhere = Access(OWNER, any_ip=True)
    assert anywhere.host_is_ours("10.0.0.8:80") and not anywhere.host_is_ours("evil.example")


def test_secrets_are_compared_whole():
    assert equal("é", "é") and not equal("abc", "abd") and not equal("", "a")
    assert NAMED.person("secret-of-bob") == "bob" and NAMED.person("secret-of") is None and OPEN.person("x") is None
    assert NAMED.person_of_cookie(proof("secret-of-ana", "person")) == "ana"
    assert NAMED.person_of_cookie("secret-of-ana") is None and OPEN.person_of_cookie("") is None
    assert OPEN.is_open and not CLOSED.is_open and not NAMED.is_open


# ---------------------------------------------------------------- what is objected to


def test_every_answer_is_hardened_unless_the_page_says_otherwise():
    passed, refused = sent(OPEN), sent(OPEN, host="evil.example")
    for name, value in HEADERS.items():
        assert passed.header(name) == ("SAMEORIGIN" if name == "x-frame-options" else value)
        assert refused.header(name) == value
    assert passed.status == 204 and refused.status == 421 and not refused.passed


@pytest.mark.parametrize(
    "request_, status",
    [
        ({"host": "-"}, 400),
        ({"host": "a b"}, 400),
        ({"origin": "x"}, 400),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "http://127.0.0.1:8377"}, 204),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "same-origin"}, 204),
        ({"sec_fetch_site": "none"}, 204),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 204),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "path": "/api/mine"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "method": "POST"}, 403),
        ({"method": "HEAD"}, 204),
        ({"method": "PUT"}, 405),
        ({"method": "OPTIONS"}, 405),
        ({"content_length": "5"}, 400),
        ({"content_length": "0"}, 204),
        ({"transfer_encoding": "chunked"}, 400),
        ({"method": "POST"}, 204),
        ({"method": "POST", "content_type": "text/plain"}, 415),
        ({"method": "POST", "content_type": "-"}, 415),
        ({"method": "POST", "content_type": "Application/JSON ; charset=utf-8"}, 204),
        ({"method": "POST", "content_length": str(MAX_BODY)}, 204),
        ({"method": "POST", "content_length": str(MAX_BODY + 1)}, 413),
        ({"method": "POST", "content_length": "9" * 30}, 413),
        ({"method": "POST", "content_length": "-1"}, 413),
        ({"method": "POST", "content_length": "\xb2"}, 413),
        *(({name.replace("-", "_"): "x"}, 403) for name in access.FORWARDED),
    ],
)
def test_what_an_open_page_answers(request_, status):
    answer = sent(OPEN, **request_)
    assert answer.status == status and answer.passed == (status == 204)
    if status != 204:
        assert b"nothing was" in answer.body


def test_two_hosts_or_origins_are_one_too_many():
    for name in (b"host", b"origin"):
        answer = Answer()

        async def application(scope: Any, receive: Any, send: Any, answer: Answer = answer) -> None:
            answer.scope = scope

        async def send(message: Any, answer: Answer = answer) -> None:
            answer.status = message.get("status", answer.status)

        value = b"127.0.0.1" if name == b"host" else b"http://127.0.0.1"
        headers = [(b"host", b"127.0.0.1"), (name, value), (name, value)][name == b"host" :]
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": b"",
            "headers": headers,
            "scheme": "http",
        }
        asyncio.run(Guard(application, OPEN)(scope, None, send))
        assert answer.status == 400 and not answer.passed


def test_a_proxy_is_welcome_where_there_is_a_token_and_keeps_the_origin():
    behind = Access(OWNER, TOKEN, hosts=("lab.example",), origins=("https://lab.example",))
    forwarded = {"x_forwarded_for": "10.0.0.8", "cookie": TOKEN_COOKIE}
    assert sent(behind, **forwarded).passed
    assert sent(behind, host="127.0.0.1:8377", origin="https://Lab.Example", **forwarded).passed
    assert sent(behind, origin="https://other.example", **forwarded).status == 403


def test_only_http_is_answered():
    seen = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    for kind in ("lifespan", "websocket"):
        asyncio.run(Guard(application, CLOSED)({"type": kind}, None, None))
    assert seen == ["lifespan"]


# ---------------------------------------------------------------- bodies


def part(body: bytes, more: bool, **options: Any) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more, **options}


def test_a_body_in_parts_arrives_as_one():
    answer = sent(OPEN, "/", "POST", parts=[part(b'{"a"', True), part(b": 1", True), part(b"}", False)])
    assert answer.received == [{"type": "http.request", "body": b'{"a": 1}', "more_body": False}]


def test_a_body_is_limited_however_it_is_sent():
    half = b"x" * (MAX_BODY // 2)
    chunked = {"content_length": "-", "transfer_encoding": "chunked"}
    fits = sent(OPEN, "/", "POST", parts=[part(half, True), part(half, False)], **chunked)
    assert fits.passed and len(fits.received[0]["body"]) == MAX_BODY
    larger = sent(OPEN, "/", "POST", parts=[part(half, True), part(half, True), part(b"x", True)], **chunked)
    assert larger.status == 413 and not larger.passed and larger.header("connection") == "close"


def test_a_body_that_breaks_off_or_does_not_come_is_refused(monkeypatch):
    answer = sent(OPEN, "/", "POST", parts=[part(b"x", True)])
    assert answer.status == 400 and b"broke off" in answer.body
    monkeypatch.setattr(access, "BODY_SECONDS", 0.05)
    answer = sent(OPEN, "/", "POST", parts=[part(b"x", True), part(b"y", False, wait=5)])
    assert answer.status == 408 and b"within 0.05 s" in answer.body and not answer.passed


def test_the_body_of_a_refused_request_is_not_waited_for():
    assert sent(CLOSED, "/", "POST").header("connection") == "close"
    assert sent(CLOSED, "/", "GET").header("connection") is None
    assert sent(OPEN, "/", "POST").header("connection") is None


# ---------------------------------------------------------------- who comes in


def test_a_token_is_moved_from_the_address_into_a_cookie():
    answer = sent(CLOSED, "/items", query=f"token={TOKEN}&a=1&b=", host="127.0.0.1")
    assert answer.status == 303 and answer.header("location") == "/items?a=1&b=" and not answer.passed
    (cookie,) = answer.cookies()
    assert cookie.startswith(TOKEN_COOKIE + ";") and TOKEN not in cookie
    for word in ("HttpOnly", "Path=/", "SameSite=strict"):
        assert word in cookie
    assert "Secure" not in cookie
    assert "Secure" in sent(CLOSED, query=f"token={TOKEN}", scheme="https").cookies()[0]
    assert sent(CLOSED, query=f"token={TOKEN}").header("location") == "/"
    assert sent(CLOSED, "//evil.example", query=f"token={TOKEN}").header("location") == "/evil.example"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"query": "token="},
        {"query": "token=wrong"},
        {"cookie": "altmas-token=wrong"},
        {"cookie": f"altmas-token={TOKEN}"},
        {"cookie": "altmas-token=;;;="},
        {"cookie": f"a,b=1; {TOKEN_COOKIE}"},  # no cookie that a browser would send: none of them is read
        {"cookie": KEY_COOKIE},
        {"cookie": f"other-token={proof(TOKEN, 'token')}"},
        {"query": f"token={TOKEN}", "method": "POST"},
    ],
)
def test_without_the_token_nobody_comes_in(options):
    answer = sent(CLOSED, **options)
    assert answer.status == 401 and not answer.passed and b"needs the token" in answer.body
    assert sent(CLOSED, "/api/mine", **options).body.startswith(b'{"error":')


def test_with_the_token_in_the_cookie_everything_but_the_owners_is_open():
    assert sent(CLOSED, cookie=TOKEN_COOKIE).passed and sent(CLOSED, "/api/next", "POST", cookie=TOKEN_COOKIE).passed
    for path in access.OWNER_PATHS:
        refused = sent(CLOSED, path, cookie=TOKEN_COOKIE)
        assert refused.status == 403 and b"for the owner" in refused.body
        assert sent(CLOSED, path, cookie=f"{TOKEN_COOKIE}; {KEY_COOKIE}").passed
        assert sent(OPEN, path).status == 403 and sent(OPEN, path, cookie=KEY_COOKIE).passed
    assert sent(CLOSED, "/overview", cookie=KEY_COOKIE).status == 401  # the key is no token


def test_the_owners_key_is_moved_too_and_both_at_once():
    answer = sent(CLOSED, "/overview", query=f"key={OWNER}&token={TOKEN}")
    assert {cookie.split(";")[0] for cookie in answer.cookies()} == {TOKEN_COOKIE, KEY_COOKIE}
    assert answer.header("location") == "/overview"


def test_an_empty_key_opens_nothing():
    nobody = Access("")
    assert sent(nobody, "/overview", query="key=").status == 403
    assert sent(nobody, "/overview", cookie=f"altmas-key={proof('', 'key')}").status == 403


def test_whoever_followed_a_link_from_elsewhere_is_sent_back_by_the_page_itself():
    """Browsers keep a strict cookie back on such a visit."""
    visit = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    answer = sent(CLOSED, **visit)
    assert answer.status == 401 and b'http-equiv="refresh"' in answer.body
    assert b"http-equiv" not in sent(CLOSED, sec_fetch_site="same-origin").body


# ---------------------------------------------------------------- people


def test_a_secret_of_ones_own_becomes_a_cookie_that_names_its_person():
    answer = sent(NAMED, "/", query="person=secret-of-ana")
    assert answer.status == 303 and answer.cookies()[0].split(";")[0] == ANA_COOKIE
    known = sent(NAMED, cookie=ANA_COOKIE)
    assert known.passed and known.scope[PERSON] == "ana"
    assert PERSON not in sent(OPEN).scope
    for options in (
        {},
        {"query": "person=nobody"},
        {"cookie": "altmas-person=secret-of-ana"},
        {"cookie": TOKEN_COOKIE},
    ):
        refused = sent(NAMED, **options)
        assert refused.status == 401 and b"your own link" in refused.body


def test_the_owner_sees_estimates_and_images_but_labels_as_nobody():
    for path in ("/overview", "/adjudicate", "/api/owner/rule", "/api/image/3", "/static/label.js"):
        assert sent(NAMED, path, cookie=KEY_COOKIE).passed
    for path in ("/", "/api/next"):
        assert sent(NAMED, path, cookie=KEY_COOKIE).status == 401
    assert sent(NAMED, "/overview", cookie=ANA_COOKIE).status == 403
    assert sent(NAMED, "/static/label.js").status == 401
    both = sent(NAMED, "/overview", cookie=f"{ANA_COOKIE}; {KEY_COOKIE}")
    assert both.passed and both.scope[PERSON] == "ana"


# ---------------------------------------------------------------- below a path, and options of the command


def test_a_path_in_front_is_taken_off_and_put_before_what_is_sent_back():
    below = Access(OWNER, TOKEN, root="/labels")
    for path in ("/labels/items", "/items"):  # a proxy may leave it on or take it off
        assert sent(below, path, cookie=TOKEN_COOKIE).scope["path"] == "/items"
    assert sent(below, "/labelsmore", cookie=TOKEN_COOKIE).scope["path"] == "/labelsmore"
    answer = sent(below, "/labels/items", query=f"token={TOKEN}")
    assert answer.header("location") == "/labels/items" and "Path=/labels/" in answer.cookies()[0]
    bare = sent(below, "/labels")
    assert bare.status == 303 and bare.header("location") == "/labels/" and bare.cookies() == []
    assert sent(below, "/labels/overview", cookie=TOKEN_COOKIE).status == 403


@pytest.mark.parametrize(
    "given, found",
    [
        ("lab.example", ("lab.example", None)),
        (" HTTPS://Lab.Example/ ", ("lab.example", "https://lab.example")),
        ("http://lab.example:8080", ("lab.example", "http://lab.example:8080")),
        ("lab.example:80", ("lab.example", None)),
    ],
)
def test_an_allowed_host_is_a_name_or_the_beginning_of_an_address(given, found):
    assert allowed_host(given) == found


@pytest.mark.parametrize("given", ["", "ftp://lab.example", "https://", "a b", "https://lab.example/labels"])
def test_anything_else_is_no_allowed_host(given):
    with pytest.raises(PlanError, match="nothing was started"):
        allowed_host(given)


@pytest.mark.parametrize("given, found", [("", ""), ("/", ""), ("/labels/", "/labels"), (" /a/b-c_.~1 ", "/a/b-c_.~1")])
def test_a_root_path_has_no_slash_at_its_end(given, found):
    assert root_path(given) == found


@pytest.mark.parametrize("given", ["labels", "/a b", "//a", "/a//b", "/../a", "/a/..", "/./a", "/a/.", "/a?b"])
def test_anything_else_is_no_root_path(given):
    with pytest.raises(PlanError, match="nothing was started"):
        root_path(given)
