"""The middleware around every request: request id, host, origin and size checks, and security headers.

Hand-written, because Starlette's `TrustedHostMiddleware` checks the host only, and answers with plain text
instead of a problem document.
"""

import re
from time import perf_counter
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from ulid import ULID

from backend.http import cors
from backend.http.bodies import MAX_BODY_BYTES
from backend.http.context import start_context
from backend.http.counters import RequestCounters
from backend.http.dependencies import COOKIE
from backend.http.errors import BadRequest, TooLarge, respond
from backend.http.pages import HEALTH_PATH, SAFE_METHODS
from backend.platform.errors import Forbidden, Problem
from backend.specs.problems import quoted

MAX_DRAINED_BYTES = 32 * 2**20
HTTP_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE"})

PROBES = frozenset({HEALTH_PATH, "/readyz"})
"""Paths that answer whatever host is named: an orchestrator probes an address that it has chosen itself."""

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

_HEADERS = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_HSTS = (b"strict-transport-security", b"max-age=31536000")
"""Sent where the client uses TLS, according to the connection or a trusted proxy."""
API_HEADERS = [*_HEADERS, (b"cache-control", b"no-store")]

_RUN = re.compile(r"/runs/([0-9A-HJKMNP-TV-Z]{26})(?:/|$)")
_LINK = re.compile(r"^/s/[\w-]{30,}")
"""A link to a page, which has its secret in its address."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = structlog.get_logger(__name__)


class SecurityMiddleware:
    """ASGI middleware around the whole application."""

    def __init__(
        self, app: ASGIApp, *, allowed_hosts: list[str], cors_origins: list[str], counters: RequestCounters
    ) -> None:
        self._app = app
        self._cross_origin = cors.CrossOrigin(cors_origins)
        self._hosts = frozenset(host.lower() for host in allowed_hosts)
        self._counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with a problem document."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope)
        if scope["type"] == "websocket":
            # Any page can open a WebSocket to any server, so that it is checked like a write.
            if self._rejection("POST", scope, given) is None:
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        given_id = given.get("x-request-id", "")
        request_id = given_id if _REQUEST_ID.fullmatch(given_id) else str(ULID())
        start_context(scope, request_id)
        started, status = perf_counter(), 500

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [(b"x-request-id", request_id.encode()), *message.get("headers", ())]
                headers += self._cross_origin.headers(scope["path"], given)
                present = {name.lower() for name, _ in headers}
                added = API_HEADERS if scope["path"].startswith("/api/") else _HEADERS
                if scope["scheme"] == "https":
                    added = [*added, _HSTS]
                message["headers"] = headers + [pair for pair in added if pair[0] not in present]
            await send(message)

        ids = {"request_id": request_id}
        if run := _RUN.search(scope["path"]):
            ids["run_id"] = run[1]
        with structlog.contextvars.bound_contextvars(**ids):
            try:
                problem = self._rejection(scope["method"], scope, given)
                if problem is None and self._cross_origin.asks(scope["method"], scope["path"], given):
                    await cors.respond(given, send_on)
                elif problem is not None:
                    await _drain(receive)
                    await respond(problem, request_id)(scope, receive, send_on)
                else:
                    await self._app(scope, receive, send_on)
            finally:
                seconds = perf_counter() - started
                route = getattr(scope.get("route"), "path_format", "none")
                method = scope["method"] if scope["method"] in HTTP_METHODS else "other"
                self._counters.count(method, route, status, seconds)
                logged = log.debug if scope["path"] == HEALTH_PATH and status == 200 else log.info
                logged(
                    "request",
                    method=scope["method"],
                    path=_LINK.sub("/s/…", scope["path"]),
                    status=status,
                    duration_ms=round(seconds * 1000, 1),
                )

    def _rejection(self, method: str, scope: Scope, headers: Headers) -> Problem | None:
        host, is_probe = headers.get("host", ""), scope["path"] in PROBES
        if "*" not in self._hosts and _without_port(host) not in self._hosts and not is_probe:
            return BadRequest(
                f"the host {quoted(host)} is not allowed: add it to CALLBOARD_ALLOWED_HOSTS on the server"
            )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            return TooLarge(f"the request body exceeds the maximum of {MAX_BODY_BYTES} bytes")
        if method not in SAFE_METHODS and "authorization" not in headers:
            # Scripts send a token on purpose; a browser sends the cookie with requests of any page.
            origin = headers.get("origin")
            by_cookie = COOKIE in headers.get("cookie", "")
            if (by_cookie or origin) and not _is_own(origin, host, scope["scheme"]):
                return Forbidden(
                    "a request with a session cookie must come from a page of this server (Origin header); "
                    "a proxy must pass the header Host on"
                )
        return None


async def _drain(receive: Receive) -> None:
    """Read the rest of the body: a client that is still sending would read a closed connection as the
    response."""
    left_bytes = MAX_DRAINED_BYTES
    while left_bytes > 0:
        message = await receive()
        left_bytes -= len(message.get("body", b""))
        if not message.get("more_body", False):
            return


def is_own_origin(scope: Scope, headers: Headers) -> bool:
    """Whether a request's `Origin` header names this server."""
    return _is_own(headers.get("origin"), headers.get("host", ""), scope["scheme"])


def _is_own(origin: str | None, host: str, scheme: str) -> bool:
    """Whether an `Origin` header names this server.

    Over plain HTTP, `https` is accepted, too: a proxy that ends TLS passes requests on without it.
    """
    try:
        page = urlsplit(origin or "")
    except ValueError:
        return False
    schemes = ("https",) if scheme in ("https", "wss") else ("http", "https")
    return page.netloc == host and page.scheme in schemes


def _without_port(host: str) -> str:
    return re.sub(r":\d*$", "", host).lower()
