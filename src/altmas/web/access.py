"""Who may talk to the page: checks before any request is answered, and headers on every answer.

Host      an address that is meant for this server; a foreign name is DNS rebinding
Origin    a writing request comes from this page itself; anything else is a forged one (CSRF)
body      read here, up to a limit in size and time, however it is sent
token     needed by everybody unless only this machine can reach the server; given once in the address, kept in a cookie
person    instead of the token, a secret for each annotator: nobody can label, take back or read as somebody else
owner     one more key, for estimates and rulings, which annotators are not to see
"""

import asyncio
import hashlib
import hmac
import ipaddress
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from altmas.errors import PlanError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
SECRETS = ("token", "key", "person")
"""Parameters of an address that are moved into cookies."""

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
OWNER_PATHS = ("/overview", "/adjudicate", "/api/owner/")
OWN_PATHS = ("/api/image/", "/static/")
"""Besides the owner's, what the owner may see without being one of the people."""

PERSON = "altmas.person"
"""Key of a request's scope: the name of the annotator whose secret came with it; absent where names are claims."""

MAX_BODY = 256 * 1024
TOO_LARGE = f"expected a body of at most {MAX_BODY // 1024} kB; nothing was recorded"
BODY_SECONDS = 20.0
"""How long a body may take to arrive."""

MAX_DISCARDED, DISCARD_SECONDS = 4 * MAX_BODY, 1.0
"""What is taken of a body that is refused, in bytes and seconds, before the refusal is sent."""

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
PROXY = (
    "this page is open to whoever sits at its machine, and the request came through a proxy; start it with "
    "--allowed-host https://NAME, the name that people use, and it asks for a token; nothing was done"
)
PERSON_WANTED = "This page needs your own link: ask the owner of the session for it and open it once in this browser."
TOKEN_WANTED = (
    "This page needs the token that was printed when the server was started: open the address with ?token=... once."
)
KEY_WANTED = (
    "This page is for the owner of the session: open the address with ?key=... that was printed when the server "
    "was started."
)
AGAIN = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0"><title>altmas</title>'


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def equal(candidate: str, secret: str) -> bool:
    """Whether two secrets are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(candidate.encode(), secret.encode())


@dataclass(frozen=True)
class Access:
    """What lets a request in.

    owner   the key to estimates and rulings
    token   needed by everybody, or None where the server listens on loopback alone
    people  {name: secret} of the annotators, instead of the token; None: whoever comes in says a name
    hosts   names under which the server may be addressed, besides the loopback ones
    origins what browsers call this page behind a proxy (https://name), besides what the Host header says
    any_ip  whether any IP address will do as a name: a server on 0.0.0.0 has several; rebinding needs a name
    root    path in front of all addresses, behind a proxy that serves other things too
    """

    owner: str
    token: str | None = None
    people: Mapping[str, str] | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    any_ip: bool = False
    cookie: str = "altmas"
    root: str = ""
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(name.lower() for name in (*LOOPBACK_NAMES, *self.hosts)))

    @property
    def is_open(self) -> bool:
        """Whether everybody on this machine is let in."""
        return self.token is None and self.people is None

    def host_is_ours(self, host: str) -> bool:
        """Whether a Host header addresses this server; ports differ behind a tunnel and are not looked at."""
        name = host_name(host)
        if name in self.names:
            return True
        try:
            return ipaddress.ip_address(name or "").is_loopback or self.any_ip
        except ValueError:
            return False

    def person(self, secret: str) -> str | None:
        """Whose secret it is; every one is compared, so that the time tells nothing."""
        return _owner_of(secret, self.people or {})

    def person_of_cookie(self, value: str) -> str | None:
        """Whose secret a cookie proves."""
        return _owner_of(value, {name: _mark(secret, "person") for name, secret in (self.people or {}).items()})


def _owner_of(candidate: str, secrets: Mapping[str, str]) -> str | None:
    return next(iter([name for name, secret in secrets.items() if equal(candidate, secret)]), None)


def host_name(host: str) -> str | None:
    """The name in a Host header, in lower case; None if it is not a name with, at most, a port."""
    if not host or not host.isascii() or any(character in host for character in "/?#@\\% \t,;"):
        return None
    try:
        parts = urlsplit(f"//{host}")
        return parts.hostname if parts.port is None or parts.port >= 0 else None
    except ValueError:
        return None


def origin_host(origin: str) -> str | None:
    """The name and port in an Origin header, "" for the opaque one ("null"); None if it is malformed."""
    if origin == "null":
        return ""
    scheme, mark, host = origin.partition("://")
    return host.lower() if mark and scheme.isalpha() and host_name(host) is not None else None


class Guard:
    """ASGI middleware that refuses what `access` does not allow and hardens every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # the page has no WebSockets: an application that ends refuses the handshake

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        scope = self._below_root(scope)
        answer, headers = self._objection(scope) or self._admission(scope), Headers(scope=scope)
        if answer is not None and _has_body(headers) and "expect" not in headers:  # else no body was sent yet
            await _discard(receive)
        elif answer is None and scope["method"] == "POST":
            receive, answer = await _read(receive)
        if answer is not None and _has_body(headers):
            answer.headers["connection"] = "close"  # what is left of the body is not waited for
        await (answer or self.app)(scope, receive, hardened)

    def _below_root(self, scope: Scope) -> Scope:
        """The request as it would be without the path in front: proxies may take it off or leave it on."""
        root, path = self.access.root, scope["path"]
        if root and (path == root or path.startswith(f"{root}/")):
            return {**scope, "path": path[len(root) :]}
        return scope

    def _objection(self, scope: Scope) -> Response | None:
        """The refusal of a request that is malformed, not meant for this server or not sent by this page."""
        headers = Headers(scope=scope)
        host, origin, site = (headers.get(name, "") for name in ("host", "origin", "sec-fetch-site"))
        if len(headers.getlist("host")) != 1 or host_name(host) is None:
            return _refusal(400, "expected one Host header with a name and, at most, a port; nothing was done")
        if len(headers.getlist("origin")) > 1 or (origin and origin_host(origin) is None):
            return _refusal(400, "expected an Origin header of the form https://name:port; nothing was done")
        if not self.access.host_is_ours(host):
            return _refusal(421, "this address is not one of this server's names; nothing was done")
        if self.access.is_open and any(name in headers for name in FORWARDED):
            return _refusal(403, PROXY)
        if origin and not self._is_own_origin(origin, host):
            return _refusal(403, "the request comes from another site; nothing was recorded")
        if site in ("cross-site", "same-site") and not _is_visit(scope, headers):
            return _refusal(403, "the request comes from another site; nothing was recorded")
        if scope["method"] in ("GET", "HEAD"):
            return _refusal(400, "a GET request has no body; nothing was done") if _has_body(headers) else None
        if scope["method"] != "POST":
            return _refusal(405, "only GET and POST are answered; nothing was recorded")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _refusal(415, "expected a JSON body (content-type: application/json); nothing was recorded")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit() and int(length[:12]) <= MAX_BODY):
            return _refusal(413, TOO_LARGE)
        return None

    def _is_own_origin(self, origin: str, host: str) -> bool:
        """Whether the page that sent a request is this one; a proxy that puts another Host in leaves the Origin."""
        return origin_host(origin) == host.lower() or origin.lower() in self.access.origins

    def _admission(self, scope: Scope) -> Response | None:
        """None for whoever may come in; a redirect that moves a secret from the address into a cookie; or a refusal."""
        access = self.access
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        required = {"token": access.token, "key": access.owner}
        proven = {name: secret for name, secret in required.items() if secret and equal(query.get(name, ""), secret)}
        if "person" in query and access.person(query["person"]) is not None:
            proven["person"] = query["person"]
        if scope["method"] == "GET" and (proven or not scope["path"]):
            return self._moved(scope, query, proven)
        cookies = _cookies(Headers(scope=scope).get("cookie", ""))
        owner = self._has(cookies, "key", access.owner)
        if access.people is not None:
            return self._own_link(scope, cookies, owner)
        if access.token is not None and not self._has(cookies, "token", access.token):
            return _closed(scope, 401, TOKEN_WANTED)
        if scope["path"].startswith(OWNER_PATHS) and not owner:
            return _closed(scope, 403, KEY_WANTED)
        return None

    def _own_link(self, scope: Scope, cookies: dict[str, str], owner: bool) -> Response | None:
        """The same where every annotator has a link; the scope learns who it is."""
        person, path = self.access.person_of_cookie(cookies.get(f"{self.access.cookie}-person", "")), scope["path"]
        if person is not None:
            scope[PERSON] = person
        if path.startswith(OWNER_PATHS):
            return None if owner else _closed(scope, 403, KEY_WANTED)
        if person is None and not (owner and path.startswith(OWN_PATHS)):
            return _closed(scope, 401, PERSON_WANTED)
        return None

    def _moved(self, scope: Scope, query: dict[str, str], proven: dict[str, str]) -> Response:
        rest = urlencode({name: value for name, value in query.items() if name not in SECRETS})
        path = self.access.root + "/" + scope["path"].lstrip("/")  # never //elsewhere
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
        for name, secret in proven.items():
            answer.set_cookie(
                f"{self.access.cookie}-{name}",
                _mark(secret, name),
                httponly=True,
                samesite="strict",
                secure=scope["scheme"] == "https",
                path=f"{self.access.root}/",
            )
        return answer

    def _has(self, cookies: dict[str, str], name: str, secret: str) -> bool:
        return bool(secret) and equal(cookies.get(f"{self.access.cookie}-{name}", ""), _mark(secret, name))


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


async def _read(receive: Receive) -> tuple[Receive, Response | None]:
    """The body, to be received at once by the application; or the refusal of one that is too large or too slow."""
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    return receive, _refusal(400, "the request broke off; nothing was recorded")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > MAX_BODY:
                    if more:
                        await _discard(receive)
                    return receive, _refusal(413, TOO_LARGE)
    except TimeoutError:
        return receive, _refusal(408, f"the body did not arrive within {BODY_SECONDS:g} s; nothing was recorded")
    parts: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def replayed() -> Message:
        return parts.pop() if parts else await receive()

    return replayed, None


async def _discard(receive: Receive) -> None:
    """Take the rest of a body that is refused, so that the refusal arrives; not more of it than the limits say.

    Closing a connection while parts of the body are unread or still arrive resets it, and the answer may be lost.
    """
    taken, more = 0, True
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while more and taken <= MAX_DISCARDED:
                message = await receive()
                taken += len(message.get("body", b""))
                more = message.get("more_body", False)


def _mark(secret: str, name: str) -> str:
    """What the cookie holds: proof of the secret, not the secret."""
    return hmac.new(secret.encode(), f"altmas {name}".encode(), hashlib.sha256).hexdigest()


def _cookies(header: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}


def _is_visit(scope: Scope, headers: Headers) -> bool:
    """Following a link to a page from elsewhere: shows the page to the person, and nothing to the other site."""
    return scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate" and "/api/" not in scope["path"]


def _refusal(status: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status)


def _closed(scope: Scope, status: int, sentence: str) -> Response:
    """The refusal; to whoever followed a link from another site, first a page that comes back by itself.

    Browsers keep a SameSite=Strict cookie back until the visit comes from this site.
    """
    if "/api/" in scope["path"]:
        return _refusal(status, sentence)
    if Headers(scope=scope).get("sec-fetch-site") == "cross-site":
        return HTMLResponse(AGAIN, status)
    return PlainTextResponse(sentence + "\n", status)


def allowed_host(value: str) -> tuple[str, str | None]:
    """(name, origin) of what --allowed-host takes: a name, or the beginning of an address (https://name:port)."""
    scheme, mark, rest = value.strip().lower().partition("://")
    host = (rest if mark else scheme).rstrip("/")
    name = host_name(host) if scheme in ("http", "https") or not mark else None
    if name is None:
        raise PlanError(
            f"--allowed-host {value!r} is not a name; expected lab.example, or https://lab.example behind a proxy; "
            "nothing was started"
        )
    return name, f"{scheme}://{host}" if mark else None


def root_path(value: str) -> str:
    """The path in front of all addresses, without a slash at its end; PlanError if it is none."""
    path = value.strip().rstrip("/")
    if path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", path) or "/../" in f"{path}/" or "/./" in f"{path}/":
        raise PlanError(
            f"--root-path {value!r} is not a path; expected /labels or the like, of letters, digits and . _ ~ -; "
            "nothing was started"
        )
    return path
