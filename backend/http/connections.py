"""Connections of the web server: how many, and how long a client may take to send and to read.

uvicorn closes idle connections between requests and answers pings of WebSockets. It has no timeouts for a
client that sends half a request or does not read the response, and no maximum of connections that leaves
room for others.
"""

import asyncio
import resource

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

HEAD_TIMEOUT_S = 10.0
"""Timeout of the head of a request, from the start of the connection or the end of the request before it."""
BODY_TIMEOUT_S = 60.0
"""Timeout of the body of a request, from the end of its head."""
SEND_TIMEOUT_S = 30.0
"""Timeout of a client that reads nothing, or too slowly to make room for more."""

MAX_CONNECTIONS = 1000
OTHER_DESCRIPTORS = 200
"""Descriptors that are left for the database, Redis and files."""
WANTED_DESCRIPTORS = 4096

log = structlog.get_logger(__name__)


def raise_descriptor_limit() -> None:
    """Allow this process the descriptors that `MAX_CONNECTIONS` needs, as far as the system permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(WANTED_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def max_connections() -> int:
    """The maximum: `MAX_CONNECTIONS`, or what the limit of descriptors leaves room for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(10, min(MAX_CONNECTIONS, soft - OTHER_DESCRIPTORS))


class _SendTimeout(asyncio.Protocol):
    """Cuts a connection whose client does not read."""

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    _send_timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """The transport's buffer is full."""
        super().pause_writing()
        self._limit_sending()

    def resume_writing(self) -> None:
        """The client has read most of it."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._cancel_send_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._cancel_send_timer()
        super().connection_lost(exc)

    def _limit_sending(self) -> None:
        # Closing waits until the client has read what is in the buffer; aborting does not.
        if self._send_timer is None:
            self._send_timer = self.loop.call_later(SEND_TIMEOUT_S, self._cut)

    def _cancel_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _cut(self) -> None:
        log.warning("connection.cut", reason="the client does not read")
        self.transport.abort()


class HttpConnection(_SendTimeout, H11Protocol):
    """A connection with timeouts for a request's head, its body and the response."""

    _request_timer: asyncio.TimerHandle | None = None
    _awaited: tuple[object, object] | None = None
    waits_since: float | None = None
    """When it began to wait for more of a request (the event loop's time); None while it responds."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for a request; with too many connections, cut the one that has waited longest."""
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > max_connections():
            waiting = [
                other
                for other in self.connections
                if isinstance(other, HttpConnection)
                and other.waits_since is not None
                and not other.transport.is_closing()
            ]
            log.warning("connection.cut", reason="too many connections", n_connections=len(self.connections))
            min(waiting, key=lambda other: other.waits_since or 0.0).transport.abort()

    def handle_events(self) -> None:
        """Process what the client has sent."""
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the client to read a last response."""
        super().on_response_complete()
        self._watch()
        if self.transport.is_closing():
            self._limit_sending()

    def timeout_keep_alive_handler(self) -> None:
        """No other request came: close."""
        super().timeout_keep_alive_handler()
        self._limit_sending()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Pass the connection on."""
        self._stop_watching()
        self._cancel_send_timer()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._stop_watching()
        super().connection_lost(exc)

    def _watch(self) -> None:
        state = self.conn.their_state
        if self._awaited == (state, self.cycle) or self.transport.is_closing():
            return
        self._stop_watching()
        self._awaited = (state, self.cycle)
        timeout_s = {h11.IDLE: HEAD_TIMEOUT_S, h11.SEND_BODY: BODY_TIMEOUT_S}.get(state)
        if timeout_s is not None:
            self.waits_since = self.loop.time()
            self._request_timer = self.loop.call_later(timeout_s, self._cut_request)

    def _stop_watching(self) -> None:
        self.waits_since = None
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _cut_request(self) -> None:
        log.debug("connection.cut", reason="the request is not complete")
        self.transport.abort()


class WebSocketConnection(_SendTimeout, WebSocketsSansIOProtocol):
    """A WebSocket with a timeout for a client that does not read."""

    def keepalive_timeout(self) -> None:
        """The client has not answered a ping: close."""
        super().keepalive_timeout()
        self._limit_sending()
