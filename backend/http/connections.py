"""Connections of the web server: how many, and how long a client may take to send and to read.

uvicorn closes idle connections between requests and answers pings of WebSockets. It has no timeouts for a
client that sends half a request or does not read the response, no maximum of connections that leaves room
for others, and no bound on the events that a received byte costs: a body in chunks of one byte, or a flood
of pings, would occupy the event loop.
"""

import asyncio
import resource
import sys
from typing import Any

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

HEAD_TIMEOUT_S = 10.0
"""Timeout of the head of a request, from the start of the connection or the end of the request before it."""
BODY_TIMEOUT_S = 60.0
"""Timeout of the body of a request, from the end of its head."""
SEND_TIMEOUT_S = 30.0
"""Timeout of a client that reads nothing, or too slowly to make room for more."""

FREE_PARTS = 64
"""A request's body may arrive in this many parts of any size, and in more parts of `MIN_PART_BYTES` on
average."""
MIN_PART_BYTES = 512
"""Less than any network's packets."""

SOCKET_BYTES_PER_S = 4096
SOCKET_FRAMES_PER_S = 10
"""What a WebSocket's client may send, in all: it has nothing to send but the answers to pings. Up to one
second's worth may come at once."""
PLAY_BYTES_PER_S = 16_384
PLAY_FRAMES_PER_S = 120
"""What a player may send instead: each press and release of a key, and of a gamepad's stick, is a message."""
PLAY_PATH = "/api/v1/play/"
POLICY_VIOLATION = 1008
LEAVING_S = 2.0
"""How long the client of a refused WebSocket may take to close it. A connection that the server closes while
the client sends is reset, and the client may lose the message with the reason."""
LEAVING_BYTES = 2**20
"""What it may send meanwhile, which is not parsed."""

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


class _TooManyPartsError(h11.RemoteProtocolError):
    """A body arrives in too many small parts."""


class _BoundedEvents(h11.Connection):
    """The parser of a connection, which refuses a body in too many small parts: each costs an event."""

    _n_parts = 0
    _n_bytes = 0

    def next_event(self) -> Any:
        """The next event of what was received.

        Raises:
            _TooManyPartsError: the body arrives in too many small parts.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._n_parts = self._n_bytes = 0
        elif isinstance(event, h11.Data):
            self._n_parts += 1
            self._n_bytes += len(event.data)
            if self._n_parts > FREE_PARTS + self._n_bytes // MIN_PART_BYTES:
                raise _TooManyPartsError("the body has too many small parts")
        return event


class HttpConnection(_SendTimeout, H11Protocol):
    """A connection with timeouts for a request's head, its body and the response, and with bounded events."""

    _request_timer: asyncio.TimerHandle | None = None
    _awaited: tuple[object, object] | None = None
    """The parser's state and the request that the timer runs for: more bytes of these do not restart it."""
    _is_upgraded = False
    """Whether it is a WebSocket's now: no more of the request comes, though its end has not been read."""
    waits_since: float | None = None
    """When it began to wait for more of a request (the event loop's time); None while it responds."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = _BoundedEvents(h11.SERVER)

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

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request; one whose response has begun is cut."""
        if isinstance(sys.exception(), _TooManyPartsError):  # called while it is handled
            msg = "The body has too many small parts: send larger ones, or a Content-Length."
        if self.cycle is not None and not self.cycle.response_complete:
            if self.cycle.response_started:
                self.transport.abort()
                return
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        super().send_400_response(msg)

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
        self._is_upgraded = True
        self._stop_watching()
        self._cancel_send_timer()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._stop_watching()
        super().connection_lost(exc)

    def _watch(self) -> None:
        state = self.conn.their_state
        if self._is_upgraded or self._awaited == (state, self.cycle) or self.transport.is_closing():
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
    """A WebSocket with a timeout for a client that does not read, and a budget of what it may send."""

    _refilled_at = 0.0
    _bytes_left = 0.0
    _frames_left = 0.0
    _leaving_bytes_left: int | None = None
    """Of a refused client; None before."""

    def keepalive_timeout(self) -> None:
        """The client has not answered a ping: close."""
        super().keepalive_timeout()
        self._limit_sending()

    def shutdown(self) -> None:
        """The server ends: close. Of a client that is closing uvicorn raises, and leaves all others open."""
        try:
            super().shutdown()
        except InvalidState:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Process what the client has sent, or close if it sends too much."""
        if self._leaving_bytes_left is not None:
            self._leaving_bytes_left -= len(data)
            if self._leaving_bytes_left < 0:
                self.transport.close()
            return
        if self.handshake_initiated:
            self._refill()
            self._bytes_left -= len(data)
            if self._bytes_left < 0:  # before a frame is parsed
                self._refuse()
                return
        super().data_received(data)

    def handle_events(self) -> None:
        """Process frames, or close if they are too many."""
        if self.handshake_initiated:
            self._frames_left -= len(self.conn.events)
            if self._frames_left < 0:
                self._refuse()
                return
        super().handle_events()

    def _refill(self) -> None:
        now = self.loop.time()
        passed_s = now - self._refilled_at
        self._refilled_at = now
        plays = PLAY_PATH in self.scope["path"]  # a base path may stand before it
        bytes_per_s = PLAY_BYTES_PER_S if plays else SOCKET_BYTES_PER_S
        frames_per_s = PLAY_FRAMES_PER_S if plays else SOCKET_FRAMES_PER_S
        self._bytes_left = min(bytes_per_s, self._bytes_left + passed_s * bytes_per_s)
        self._frames_left = min(frames_per_s, self._frames_left + passed_s * frames_per_s)

    def _refuse(self) -> None:
        log.warning("connection.cut", reason="the client of a WebSocket sends too much")
        self._limit_sending()
        if self.close_sent or not self.handshake_complete:
            self.transport.close()
            return
        self.close_sent = self.disconnected = True
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": POLICY_VIOLATION})
        self.conn.fail(POLICY_VIOLATION, "too much data")
        self.transport.write(b"".join(self.conn.data_to_send()))
        if self.transport.can_write_eof():  # not over TLS
            self.transport.write_eof()
        self._leaving_bytes_left = LEAVING_BYTES
        self.close_timer = self.loop.call_later(LEAVING_S, self.transport.close)
        self.read_paused = False
        self.transport.resume_reading()
