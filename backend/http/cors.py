"""Requests of scripts in pages of other origins: those of `CALLBOARD_CORS_ORIGINS`, with a token, never by
cookie.

A browser first asks in a preflight request whether a request may have its headers, and hides an answer from a
page that may not read it. Answers never allow credentials, so that no page of another origin acts with the
session of this one.
"""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import Send

_METHODS = "GET, HEAD, POST, PATCH, PUT, DELETE"
_HEADERS = (
    "Accept, Authorization, Callboard-Sequence, Callboard-Source, Content-Type, Idempotency-Key, If-Match, "
    "If-None-Match, X-Request-ID"
)
_EXPOSED = "Content-Disposition, ETag, Location, Retry-After, X-Request-ID"
_MAX_AGE_S = 600

Pair = tuple[bytes, bytes]


class CrossOrigin:
    """What pages of other origins may do."""

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origin.lower() for origin in origins)

    def asks(self, method: str, path: str, headers: Headers) -> bool:
        """Whether a request is a preflight request to the API from a page of a listed origin."""
        return (
            method == "OPTIONS"
            and self._is_listed(path, headers)
            and "access-control-request-method" in headers
        )

    def headers(self, path: str, headers: Headers) -> list[Pair]:
        """The CORS headers of the answer; only the answer to a request with a token may be read."""
        if not self._origins or not path.startswith("/api/"):
            return []
        vary = [(b"vary", b"Origin")]
        if not self._is_listed(path, headers) or "authorization" not in headers:
            return vary
        return [*vary, *_allowed(headers), (b"access-control-expose-headers", _EXPOSED.encode())]

    def _is_listed(self, path: str, headers: Headers) -> bool:
        return path.startswith("/api/") and headers.get("origin", "").lower() in self._origins


async def respond(headers: Headers, send: Send) -> None:
    """Answer a preflight request with these headers."""
    allowed = [
        *_allowed(headers),
        (b"access-control-allow-methods", _METHODS.encode()),
        (b"access-control-allow-headers", _HEADERS.encode()),
        (b"access-control-max-age", str(_MAX_AGE_S).encode()),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": allowed})
    await send({"type": "http.response.body", "body": b""})


def _allowed(headers: Headers) -> list[Pair]:
    return [(b"access-control-allow-origin", headers["origin"].encode("latin-1"))]
