"""What every request passes before any route: its id, its host, its origin, its length; then its headers."""

import re
from time import perf_counter
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from ulid import ULID

from backend.auth.access import COOKIE
from backend.errors import BadRequest, Forbidden, Problem, TooLarge, respond
from backend.instruments import Instruments

MAX_BODY_BYTES = 2 * 2**20
MAX_DRAINED_BYTES = 32 * 2**20
METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self' data:; connect-src 'self'; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

_RUN = re.compile(r"/runs/([0-9A-HJKMNP-TV-Z]{26})(?:/|$)")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = structlog.get_logger(__name__)


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, allowed_hosts: list[str], instruments: Instruments) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in allowed_hosts)
        self._instruments = instruments

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer with a problem document."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if scope["type"] == "websocket":
            # Every page may open a WebSocket to every server: to read by it is as good as to write.
            if self._objection("POST", headers) is None:
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        asked_id = headers.get("x-request-id", "")
        request_id = asked_id if _REQUEST_ID.fullmatch(asked_id) else str(ULID())
        scope.setdefault("state", {})["request_id"] = request_id
        begun, status = perf_counter(), 500

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                out = MutableHeaders(scope=message)
                out["X-Request-ID"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    out.setdefault(name, value)
                if scope["path"].startswith("/api/"):
                    out.setdefault("Cache-Control", "no-store")
            await send(message)

        ids = {"request_id": request_id}
        if run := _RUN.search(scope["path"]):
            ids["run_id"] = run[1]
        with structlog.contextvars.bound_contextvars(**ids):
            try:
                problem = self._objection(scope["method"], headers)
                if problem is not None:
                    await _drain(receive)
                    await respond(problem, request_id)(scope, receive, send_on)
                else:
                    await self._app(scope, _Bounded(receive), send_on)
            finally:
                seconds = perf_counter() - begun
                route = getattr(scope.get("route"), "path_format", "none")
                method = scope["method"] if scope["method"] in METHODS else "other"
                self._instruments.request(method, route, status, seconds)
                log.info(
                    "request",
                    method=scope["method"],
                    path=scope["path"],
                    status=status,
                    duration_ms=round(seconds * 1000, 1),
                )

    def _objection(self, method: str, headers: Headers) -> Problem | None:
        host = headers.get("host", "")
        if "*" not in self._hosts and _without_port(host) not in self._hosts:
            return BadRequest(
                f"this server does not answer to the host {host!r:.100}; see CALLBOARD_ALLOWED_HOSTS"
            )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            return TooLarge(f"a body may have {MAX_BODY_BYTES} bytes at most")
        if method not in SAFE_METHODS and "authorization" not in headers:
            # A token is sent by a script that means it; a cookie by any page a browser happens to be on.
            origin = headers.get("origin")
            by_cookie = f"{COOKIE}=" in headers.get("cookie", "")
            if (by_cookie or origin) and (origin is None or urlsplit(origin).netloc != host):
                return Forbidden("a request with a cookie must come from this server's own pages (Origin)")
        return None


async def _drain(receive: Receive) -> None:
    """Read what the client is still sending: it would take a closed connection for an answer."""
    left_bytes = MAX_DRAINED_BYTES
    while left_bytes > 0:
        message = await receive()
        left_bytes -= len(message.get("body", b""))
        if not message.get("more_body", False):
            return


class _Bounded:
    """Receives a body of no declared length up to the bound."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left_bytes = MAX_BODY_BYTES

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left_bytes -= len(message.get("body", b""))
            if self._left_bytes < 0:
                # Of the kind that FastAPI lets through while it reads a body.
                raise HTTPException(413, f"a body may have {MAX_BODY_BYTES} bytes at most")
        return message


def _without_port(host: str) -> str:
    return re.sub(r":\d*$", "", host).lower()
