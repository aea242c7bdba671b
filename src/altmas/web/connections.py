"""Connections: limits on how many there are and how long each may take, so that nobody keeps the others out.

header    a request's head has to be complete HEADER_SECONDS after the connection or its first byte
request   an answer has to be taken REQUEST_SECONDS after the head
number    beyond `most` the connection that was idle longest is closed; with none idle the new one is refused
"""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

HEADER_SECONDS = 10.0
REQUEST_SECONDS = 120.0
HANDSHAKE_SECONDS = 10.0

MOST = 500
"""Connections at a time: a browser opens up to six."""

SPARE = 64
"""Files that the server may need besides connections."""

WANTED_FILES = 4096

AT_ONCE = 16
"""Connections that are accepted before the ones before them are looked at: three times this many fit into SPARE."""


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 on one connection, within the limits."""

    most = MOST
    header_seconds = HEADER_SECONDS
    request_seconds = REQUEST_SECONDS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._delivery: asyncio.TimerHandle | None = None
        self._timed: RequestResponseCycle | None = None
        self.heard = self.loop.time()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limit(self.header_seconds)
        if len(self.connections) > self.most:
            self._make_room()

    def _make_room(self) -> None:
        others = [cast(LimitedProtocol, connection) for connection in self.connections if connection is not self]
        idle = [connection for connection in others if connection.idle]
        self._drop(min(idle, key=lambda connection: connection.heard) if idle else self)

    def _drop(self, connection: "LimitedProtocol") -> None:
        self.connections.discard(connection)
        connection.transport.abort()

    def data_received(self, data: bytes) -> None:
        self.heard = self.loop.time()
        if self.idle and self._timer is None:
            self._limit(self.header_seconds)
        try:
            super().data_received(data)
        except h11.ProtocolError:  # nonsense after an answer had begun: there is no way left to say so
            self.transport.abort()
        self._time_request()

    def on_response_complete(self) -> None:
        self._stop_timer()
        if self._delivery is None and self.transport.get_write_buffer_size():
            self._delivery = self.loop.call_later(self.request_seconds, self._undelivered)
        super().on_response_complete()
        self._time_request()  # one that was sent before the answer to the last is under way now

    def _undelivered(self) -> None:
        """Let go of whoever did not take an answer that was complete long ago."""
        self._delivery = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._delivery is not None:
            self._delivery.cancel()
        super().connection_lost(exc)

    def _time_request(self) -> None:
        if not self.idle and self.cycle is not self._timed:
            self._timed = self.cycle
            self._limit(self.request_seconds)

    def _limit(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self._expired)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        self._timer = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # whoever does not read would keep a polite end waiting
        else:
            self.transport.close()


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose servers accept a few connections at a time and do not wait a minute for a TLS handshake.

    asyncio accepts as many at once as the queue is long, before any of them can be closed to make room.
    """

    async def create_server(self, *arguments: Any, **named: Any) -> asyncio.Server:
        """As in asyncio, on a socket that is given."""
        listening: socket.socket = named["sock"]
        if isinstance(named.get("ssl"), ssl.SSLContext):
            named.setdefault("ssl_handshake_timeout", HANDSHAKE_SECONDS)
        queue = named.pop("backlog", 100)
        server = await super().create_server(*arguments, **named, backlog=AT_ONCE)
        listening.listen(queue)
        return server


@contextmanager
def enough_files() -> Iterator[type[LimitedProtocol]]:
    """The protocol with as many connections as this process may open files, after asking for more of them."""
    if resource is None:
        yield LimitedProtocol
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    files = WANTED_FILES if hard == unlimited else min(WANTED_FILES, hard)
    raised = soft if soft == unlimited else max(soft, files)
    resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    most = MOST if raised == unlimited else max(8, min(MOST, raised - SPARE))
    try:
        yield type("LimitedProtocol", (LimitedProtocol,), {"most": most})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
