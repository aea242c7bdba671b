"""serve: open the page, print where it is, and answer until interrupted."""

import secrets
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

import uvicorn

from altmas.errors import PlanError
from altmas.session import LEASE_SECONDS, Session
from altmas.web.access import Access, is_loopback, names_of
from altmas.web.app import create_app

PORT = 8377


@dataclass(frozen=True)
class Addresses:
    """Where the page is: for annotators, for the owner, and the bare one."""

    base: str
    label: str
    overview: str


def serve(
    session: Session,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    open_browser: bool = True,
    token: str | None = None,
    annotator: str | None = None,
    instructions: str | None = None,
    definitions: Mapping[str, str] | None = None,
    allowed_hosts: Iterable[str] = (),
    owner_key: str | None = None,
    lease: float = LEASE_SECONDS,
) -> None:
    """Answer the labelling page until interrupted (Ctrl+C); its addresses are printed.

    host           where to listen: this machine alone, unless another address is given, which always has a token
    port           8377 or, if that is taken, any free one; a port that is asked for is used or refused
    token          what annotators from elsewhere need; made up and printed if None and the host is not loopback
    owner_key      what the overview needs; made up and printed if None
    allowed_hosts  further names under which people reach the server
    lease          seconds for which an item stays with the annotator who was shown it

    Raises PlanError if it cannot listen there.
    """
    access = _access(session, host, token, owner_key, allowed_hosts)
    app = create_app(
        session, access, annotator=annotator, instructions=instructions, definitions=definitions, lease=lease
    )
    listening = _listen(host, port)
    addresses = _addresses(host, listening.getsockname()[1], access)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # addresses may hold a token
        server_header=False,
        timeout_keep_alive=75,  # pages ask every few seconds; a busy server must not hang up on them
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    _announce(addresses, session)
    if open_browser:
        threading.Thread(target=_open_when_up, args=(server, addresses.label), daemon=True).start()
    # A fit computes in Python, too; handing over more often keeps answers quick while it runs.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.001)
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        sys.setswitchinterval(interval)
        listening.close()
    print(f"stopped; {len(session.history.labels)} labels are in {session.path or 'memory'}", flush=True)


def _access(
    session: Session, host: str, token: str | None, owner_key: str | None, allowed_hosts: Iterable[str]
) -> Access:
    if token is not None and not token.strip():
        raise PlanError("the token is empty; pass a text that cannot be guessed, or none to have one made up")
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(24)
    everywhere = host in ("0.0.0.0", "::", "")
    own = () if everywhere else (host,)
    machine = (socket.gethostname(), socket.getfqdn()) if everywhere else ()
    digest = sha256(session.status().created_at.encode()).hexdigest()[:8]
    return Access(
        owner=owner_key or secrets.token_urlsafe(18),
        token=token,
        hosts=names_of((*own, *machine, *allowed_hosts)),
        any_ip=everywhere,
        cookie=f"altmas-{digest}",  # browsers share cookies between the ports of a machine
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


def _addresses(host: str, port: int, access: Access) -> Addresses:
    name = socket.gethostname() if host in ("0.0.0.0", "::", "") else host
    base = f"http://{f'[{name}]' if ':' in name else name}:{port}"
    token = f"token={access.token}" if access.token is not None else ""
    label = f"{base}/?{token}" if token else f"{base}/"
    return Addresses(base, label, f"{base}/overview?key={access.owner}" + (f"&{token}" if token else ""))


def _announce(addresses: Addresses, session: Session) -> None:
    print(f"labelling page   {addresses.label}")
    print(f"owner's overview {addresses.overview}")
    where = f"in {session.path}" if session.path is not None else "IN MEMORY ONLY"
    print(f"Labels are kept {where} as soon as the page says so. Ctrl+C stops.", flush=True)


def _open_when_up(server: uvicorn.Server, address: str) -> None:
    while not server.started:
        time.sleep(0.05)
    webbrowser.open(address)
