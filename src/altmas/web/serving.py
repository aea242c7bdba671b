"""serve: open the page, print where it is, and answer until interrupted."""

import asyncio
import os
import secrets
import socket
import ssl
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TypeGuard

import uvicorn
from fastapi import FastAPI

from altmas.errors import FileError, PlanError
from altmas.progress import in_notebook
from altmas.session import LEASE_SECONDS, Session
from altmas.web.access import Access, allowed_host, is_loopback
from altmas.web.access import root_path as root_path_of
from altmas.web.app import create_app
from altmas.web.connections import LimitedProtocol, Loop, enough_files
from altmas.web.people import check_secret, link, new_secret, people_of, write_links

PORT = 8377

PeopleLike = str | os.PathLike[str] | Mapping[str, str]


@dataclass(frozen=True)
class Addresses:
    """Where the page is: the bare address, for annotators, for the owner, and what opens in a browser here."""

    base: str
    label: str
    overview: str
    here: str


class LabellingPage:
    """A page that is answered in the background, until `stop` or the end of the process."""

    def __init__(self, server: uvicorn.Server, addresses: Addresses, run: Callable[[], None]) -> None:
        self.server, self.addresses = server, addresses
        self._thread = threading.Thread(target=run, name="altmas page", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answer what is under way and end."""
        self.server.should_exit = True
        self._thread.join()

    def __repr__(self) -> str:
        state = "stop() ends it" if self._thread.is_alive() else "stopped"
        return f"LabellingPage({self.addresses.label}; {state})"

    def _repr_html_(self) -> str:
        links = (("Open the labelling page", self.addresses.here), ("overview", self.addresses.overview))
        return " · ".join(f'<a href="{escape(to)}" target="_blank">{text}</a>' for text, to in links)


def serve(
    session: Session,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    open_browser: bool = True,
    token: str | None = None,
    people: PeopleLike | None = None,
    annotator: str | None = None,
    instructions: str | None = None,
    definitions: Mapping[str, str] | None = None,
    allowed_hosts: Iterable[str] = (),
    root_path: str = "",
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    owner_key: str | None = None,
    question: str = "",
    reveal: bool = True,
    keys: Mapping[str, str] | None = None,
    pair: Mapping[str, str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    lease: float = LEASE_SECONDS,
    block: bool | None = None,
) -> LabellingPage | None:
    """Answer the labelling page until interrupted (Ctrl+C); its addresses are printed.

    In a notebook, or with block=False, it is answered in the background: what comes back shows a link and has `stop`.

    host           where to listen: this machine alone, unless another address is given, which always has a token
    port           8377 or, if that is taken, any free one; a port that is asked for is used or refused
    token          what annotators from elsewhere need; made up and printed if None and others can reach the page
    people         a file with one annotator in each line (docs/sharing.md), or {name: secret}: each gets a link of
                   their own, and nobody can label under another name
    owner_key      what the overview needs; made up and printed if None
    allowed_hosts  further names under which people reach the server; https://NAME behind a proxy
    root_path      path in front of all addresses, behind a proxy
    certificate    file with a TLS certificate (PEM), and `key` that with its private key
    question       what is asked of every item; by default the first line of the instructions
    reveal         whether annotators may look at predictions, which is written down
    keys           {class: key};  pair  {class: field} of two answers to show side by side, in an order that is shuffled
                   and recorded; by default the fields that are named like two classes (answer_a, answer_b: a, b)
    groups         {group: [class, ...]} in which many classes are listed; by default those that begin alike
    lease          seconds for which an item stays with the annotator who was shown it

    Raises PlanError if it cannot listen there or a setting cannot be meant, FileError for a file that cannot be read.
    """
    if people is not None and annotator is not None:
        raise PlanError("--people says who labels; leave --annotator out; nothing was started")
    access = _access(session, host, token, owner_key, allowed_hosts, people=people, root=root_path)
    tls = _tls(certificate, key)
    app = create_app(
        session,
        access,
        annotator=annotator,
        instructions=instructions,
        definitions=definitions,
        question=question,
        reveal=reveal,
        keys=keys,
        pair=pair,
        groups=groups,
        lease=lease,
    )
    listening = _listen(host, port)
    addresses = _addresses(host, listening.getsockname()[1], access, secure=bool(tls))
    links = write_links(Path(people), access.people or {}, addresses.base) if _is_file(people) else None
    with enough_files() as protocol:
        server = uvicorn.Server(_config(app, protocol, tls))
    blocking = not _in_event_loop() if block is None else block
    _announce(addresses, access, session, links, blocking=blocking)
    if open_browser and not in_notebook():
        threading.Thread(target=_open_when_up, args=(server, addresses.here), daemon=True).start()
    if not blocking:
        return LabellingPage(server, addresses, partial(_answer, server, listening))
    _answer(server, listening)
    told = len(session.history.labels)
    print(f"stopped; {told:,} label{' is' if told == 1 else 's are'} in {session.path or 'memory'}", flush=True)
    return None


def _in_event_loop() -> bool:
    """Whether something else runs the event loop of this thread: a notebook, which a server must not block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _answer(server: uvicorn.Server, listening: socket.socket) -> None:
    """Answer until the server is told to end, or interrupted."""
    # A fit computes in Python, too; handing over more often keeps answers quick while it runs.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.001)
    try:
        with enough_files(), asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(server.serve(sockets=[listening]))
    except (KeyboardInterrupt, asyncio.CancelledError):  # the latter where Ctrl-C came before the server had begun
        pass
    finally:
        sys.setswitchinterval(interval)
        listening.close()


def _is_file(people: PeopleLike | None) -> TypeGuard[str | os.PathLike[str]]:
    return people is not None and not isinstance(people, Mapping)


def _access(
    session: Session,
    host: str,
    token: str | None,
    owner_key: str | None,
    allowed_hosts: Iterable[str],
    *,
    people: PeopleLike | None = None,
    root: str = "",
) -> Access:
    """Who is let in; a token is made up wherever others than this machine can reach the page."""
    if people is not None and token is not None:
        raise PlanError("--people gives everybody a secret of their own; leave --token out; nothing was started")
    if token is not None:
        check_secret(token, "the token")
    if owner_key is not None:
        check_secret(owner_key, "the owner's key")
    allowed = [allowed_host(name) for name in allowed_hosts]
    reachable = not is_loopback(host) or any(not is_loopback(name) for name, _ in allowed)
    if token is None and people is None and reachable:
        token = new_secret()
    everywhere = host in ("0.0.0.0", "::", "")
    own = (socket.gethostname(), socket.getfqdn()) if everywhere else (host,)
    digest = sha256(session.status().created_at.encode()).hexdigest()[:8]
    return Access(
        owner=owner_key or secrets.token_urlsafe(18),
        token=token,
        people=None if people is None else people_of(people),
        hosts=tuple(sorted({name.lower() for name in own} | {name for name, _ in allowed})),
        origins=tuple(origin for _, origin in allowed if origin is not None),
        any_ip=everywhere,
        cookie=f"altmas-{digest}",  # browsers share cookies between the ports of a machine
        root=root_path_of(root),
    )


def _tls(certificate: str | os.PathLike[str] | None, key: str | os.PathLike[str] | None) -> dict[str, str]:
    """The server's settings for TLS, empty without it; FileError if certificate and key cannot be used together."""
    if certificate is None:
        if key is not None:
            raise PlanError("--key needs --certificate; nothing was started")
        return {}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as cause:  # ssl.SSLError is an OSError
        reason = getattr(cause, "strerror", None) or str(cause)
        files = os.fspath(certificate) + (f" and {os.fspath(key)}" if key is not None else "")
        raise FileError(
            f"{files} cannot be used for TLS: {reason}; expected a certificate and its private key in PEM, without a "
            "password; nothing was started"
        ) from cause
    return {"ssl_certfile": os.fspath(certificate)} | ({"ssl_keyfile": os.fspath(key)} if key is not None else {})


def _config(app: FastAPI, protocol: type[LimitedProtocol], tls: Mapping[str, str]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_config=None,  # uvicorn's own would close every log handler of this process
        log_level="error",  # what strangers send is answered, not logged
        access_log=False,  # addresses may hold a token
        server_header=False,
        timeout_keep_alive=75,  # pages ask every few seconds; a busy server must not hang up on them
        timeout_graceful_shutdown=2,
        ssl_certfile=tls.get("ssl_certfile"),
        ssl_keyfile=tls.get("ssl_keyfile"),
    )


def _listen(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tries = (PORT, 0) if port is None else (port,)
    for number in tries:
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, number))
        except (OSError, OverflowError) as cause:
            listening.close()
            if number == tries[-1]:
                reason = getattr(cause, "strerror", None) or str(cause)
                raise PlanError(f"cannot listen on {host}, port {number}: {reason}; 0 is any free port") from cause
            continue
        listening.listen(128)
        return listening
    raise AssertionError("unreachable: the last try returns or raises")


def _addresses(host: str, port: int, access: Access, *, secure: bool = False) -> Addresses:
    name = socket.gethostname() if host in ("0.0.0.0", "::", "") else host
    own = f"http{'s' * secure}://{f'[{name}]' if ':' in name else name}:{port}"
    base, local = (access.origins or (own,))[0] + access.root, own + access.root
    query = f"?token={access.token}" if access.token is not None else ""
    overview = f"/overview?key={access.owner}" + query.replace("?", "&")
    here = local + (overview if access.people is not None else f"/{query}")
    return Addresses(base, f"{base}/{query}", base + overview, here)


def _announce(
    addresses: Addresses, access: Access, session: Session, links: Path | None, *, blocking: bool = True
) -> None:
    if access.people is None:
        print(f"labelling page   {addresses.label}")
    print(f"owner's overview {addresses.overview}")
    if links is not None:
        print(f"{len(access.people or {})} people have links of their own, in {links}")
    elif access.people is not None:
        for name, secret in access.people.items():
            print(f"link of {name}: {link(addresses.base, secret)}")
    else:
        print("Names are not authenticated: whoever opens the page labels under any name (--people gives links).")
    where = f"in {session.path}" if session.path is not None else "IN MEMORY ONLY"
    end = "Ctrl+C stops." if blocking else "stop() of what this returns ends it."
    print(f"Labels are kept {where} as soon as the page says so. {end}", flush=True)


def _open_when_up(server: uvicorn.Server, address: str) -> None:
    while not server.started:
        time.sleep(0.05)
    webbrowser.open(address)
