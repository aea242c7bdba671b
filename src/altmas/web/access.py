"""Who may talk to the page: checks before any request is answered, and headers on every answer.

Host      an address that is meant for this server; a foreign name is DNS rebinding
Origin    a writing request comes from this page itself; anything else is a forged one (CSRF)
token     needed unless the server listens on loopback alone; given once in the address, kept in a cookie
owner     a second key, for estimates and rulings, which annotators are not to see
"""

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
OWNER_PATHS = ("/overview", "/adjudicate", "/api/owner/")
MAX_BODY = 256 * 1024
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


def equal(given: str, wanted: str) -> bool:
    """Whether two secrets are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode(), wanted.encode())


@dataclass(frozen=True)
class Access:
    """What lets a request in.

    token   needed by everybody, or None where the server listens on loopback alone
    owner   the key to estimates and rulings
    hosts   names under which the server may be addressed, besides the loopback ones
    any_ip  whether any IP address will do as a name: a server on 0.0.0.0 has several; rebinding needs a name
    """

    owner: str
    token: str | None = None
    hosts: tuple[str, ...] = ()
    any_ip: bool = False
    cookie: str = "altmas"
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(name.lower() for name in (*LOOPBACK_NAMES, *self.hosts)))

    def host_is_ours(self, host: str) -> bool:
        """Whether a Host header addresses this server; ports differ behind a tunnel and are not looked at."""
        name = (urlsplit(f"//{host}").hostname or "") if _is_authority(host) else ""
        if name in self.names:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback or self.any_ip
        except ValueError:
            return False


def _is_authority(host: str) -> bool:
    return bool(host) and not any(character in host for character in "/?#@\\ ")


class Guard:
    """ASGI middleware that refuses what `access` does not allow and hardens every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._objection(scope) or self._admission(scope)
        await (answer or self.app)(scope, receive, hardened)

    def _objection(self, scope: Scope) -> Response | None:
        """The refusal of a request that is not meant for this server or not sent by this page."""
        headers = Headers(scope=scope)
        host, origin, site = (headers.get(name, "") for name in ("host", "origin", "sec-fetch-site"))
        if not self.access.host_is_ours(host):
            return _refusal(421, "this address is not one of this server's names; nothing was done")
        if origin and urlsplit(origin).netloc.lower() != host.lower():
            return _refusal(403, "the request comes from another site; nothing was recorded")
        if site in ("cross-site", "same-site") and not _is_visit(scope, headers):
            return _refusal(403, "the request comes from another site; nothing was recorded")
        if scope["method"] in ("GET", "HEAD"):
            return None
        if scope["method"] != "POST":
            return _refusal(405, "only GET and POST are answered; nothing was recorded")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _refusal(415, "expected a JSON body (content-type: application/json); nothing was recorded")
        if not headers.get("content-length", "").isdigit() or int(headers["content-length"]) > MAX_BODY:
            return _refusal(413, f"expected a body of at most {MAX_BODY // 1024} kB; nothing was recorded")
        return None

    def _admission(self, scope: Scope) -> Response | None:
        """None for whoever may come in; a redirect that moves a secret from the address into a cookie; or a refusal."""
        given = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        cookies = _cookies(Headers(scope=scope).get("cookie", ""))
        wanted = {"token": self.access.token, "key": self.access.owner}
        kept = {name: secret for name, secret in wanted.items() if secret and equal(given.get(name, ""), secret)}
        if kept and scope["method"] == "GET":
            return self._moved(scope, given, kept)
        if self.access.token is not None and not self._has(cookies, "token", self.access.token):
            return _closed(scope, 401, TOKEN_WANTED)
        if scope["path"].startswith(OWNER_PATHS) and not self._has(cookies, "key", self.access.owner):
            return _closed(scope, 403, KEY_WANTED)
        return None

    def _moved(self, scope: Scope, given: dict[str, str], kept: dict[str, str]) -> Response:
        rest = urlencode({name: value for name, value in given.items() if name not in ("token", "key")})
        path = "/" + scope["path"].lstrip("/")  # never //elsewhere
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
        for name, secret in kept.items():
            value = _mark(secret, name)
            answer.set_cookie(f"{self.access.cookie}-{name}", value, httponly=True, samesite="strict", path="/")
        return answer

    def _has(self, cookies: dict[str, str], name: str, secret: str) -> bool:
        return bool(secret) and equal(cookies.get(f"{self.access.cookie}-{name}", ""), _mark(secret, name))


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


def names_of(hosts: Iterable[str]) -> tuple[str, ...]:
    """Host names without blanks, in lower case."""
    return tuple(sorted({host.strip().lower() for host in hosts if host.strip()}))
