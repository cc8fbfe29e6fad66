"""How responses travel: compressed, in blocks, as JSON without a second validation, and 304 if the client has
them."""

import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

import anyio
import structlog
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.http.context import request_id_of
from backend.http.errors import respond
from backend.platform.errors import Unavailable

MIN_COMPRESSED_BYTES = 1000
"""Shorter responses fit into one packet."""

COMPRESSION_LEVEL = 4
"""JSON becomes a tenth larger than at level 9, in a third of the time."""

POINTS_COMPRESSION_LEVEL = 1
"""The CSV of a million points, 77 MB, becomes 27 MB in 0.5 s, as long as writing it takes; at level 4, 25 MB
in 1.0 s."""

COMPRESSED_PATHS = ("/api/", "/openapi.json", "/s/")
"""The build has compressed the assets already."""

_POINTS_PATHS = re.compile(r"/api/v1/runs/([^/]+/)?export")
"""Exports of points, which have no bound; those of the audit trail, studies and start sets have one."""

UNCOMPRESSED_TYPES = (
    *DEFAULT_EXCLUDED_CONTENT_TYPES,
    "application/octet-stream",
    "application/vnd.apache.parquet",
    "application/vnd.numpy.npz",
)
"""Media that are compressed already, and event streams."""

BLOCK_BYTES = 256 * 1024
"""A longer body is sent in blocks, each when the client has read those before."""

MAX_UNREAD_BYTES = 64 * 2**20
"""Maximum size of all longer bodies that are being sent, except for one of any length."""

MAX_DURATION_S = 600.0
"""How long a longer body may take."""

log = structlog.get_logger(__name__)

REVALIDATED = {"Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
"""The browser keeps the response and asks each time whether it is still current."""


class CompressionMiddleware:
    """Compresses the API's JSON and text with gzip for clients that accept it; never event streams or what is
    compressed already. An export is compressed while it is read and sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressing, self._compressing_points = (
            GZipMiddleware(
                app,
                minimum_size=MIN_COMPRESSED_BYTES,
                compresslevel=level,
                exclude_content_types=UNCOMPRESSED_TYPES,
            )
            for level in (COMPRESSION_LEVEL, POINTS_COMPRESSION_LEVEL)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        app = self._app
        if scope["type"] == "http" and scope["path"].startswith(COMPRESSED_PATHS):
            if not accepts_gzip(Headers(scope=scope)):
                # Starlette's middleware looks for the word alone, which `gzip;q=0` has, too.
                others = [header for header in scope["headers"] if header[0] != b"accept-encoding"]
                scope = {**scope, "headers": others}
            has_points = _POINTS_PATHS.fullmatch(scope["path"]) is not None
            app = self._compressing_points if has_points else self._compressing
        await app(scope, receive, send)


def accepts_gzip(headers: Headers) -> bool:
    """Whether a client's `Accept-Encoding` names gzip, with another quality than 0."""
    for coding in headers.get("accept-encoding", "").lower().split(","):
        name, _, quality = coding.replace(" ", "").partition(";q=")
        if name == "gzip":
            return re.fullmatch(r"0(\.0*)?", quality) is None
    return False


class LargeResponses:
    """Sends long bodies block by block, and bounds what clients that read slowly keep in memory.

    While too many bytes are being sent, a long body is refused, unless it has no Content-Length: then it is
    sent and counted.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._n_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        refused = False

        async def send_on(message: Message) -> None:
            nonlocal start, refused
            if message["type"] == "http.response.start" and _length(message) > BLOCK_BYTES:
                start = message  # until the size of the body's first part shows whether it is in memory
                return
            body: bytes = message.get("body", b"")
            n_bytes = len(body) if len(body) > BLOCK_BYTES else 0
            if start is not None:
                if n_bytes and self._n_bytes and self._n_bytes + n_bytes > MAX_UNREAD_BYTES:
                    refused = True
                    detail = "too many large responses are being sent: try again"
                    problem = Unavailable(detail, retry_after_s=5)
                    await respond(problem, request_id_of(scope))(scope, receive, send)
                else:
                    await send(start)
                start = None
            if refused:
                return
            self._n_bytes += n_bytes
            try:
                if not n_bytes:
                    await send(message)
                    return
                with anyio.move_on_after(MAX_DURATION_S) as duration:
                    last = (n_bytes - 1) // BLOCK_BYTES * BLOCK_BYTES
                    for first in range(0, last, BLOCK_BYTES):
                        await send({**message, "body": body[first : first + BLOCK_BYTES], "more_body": True})
                    await send({**message, "body": body[last:]})
                if duration.cancelled_caught:  # the server closes the connection
                    log.warning("response.slow", path=scope["path"], max_duration_s=MAX_DURATION_S)
            finally:
                self._n_bytes -= n_bytes

        await self._app(scope, receive, send_on)


def _length(start: Message) -> int:
    for name, value in start.get("headers", ()):
        if name.lower() == b"content-length":
            return int(value)
    return 0


@dataclass(frozen=True)
class JsonDocument:
    """JSON that many requests ask for, serialised and compressed once."""

    plain: bytes
    compressed: bytes
    etag: str

    @classmethod
    def of(cls, model: BaseModel) -> "JsonDocument":
        """Serialise a model."""
        return cls._of(model.model_dump_json().encode())

    @classmethod
    def of_json(cls, value: Any) -> "JsonDocument":
        """Serialise JSON values."""
        return cls._of(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

    @classmethod
    def _of(cls, plain: bytes) -> "JsonDocument":
        return cls(plain, gzip.compress(plain, mtime=0), etag_of(plain))

    def respond(self, request: Request) -> Response:
        """The document, or 304 if the client has it."""
        if has_current(request, self.etag):
            return not_modified(self.etag)
        headers = {"ETag": self.etag, **REVALIDATED}
        if not accepts_gzip(request.headers):
            return Response(self.plain, media_type="application/json", headers=headers)
        headers["Content-Encoding"] = "gzip"
        return Response(self.compressed, media_type="application/json", headers=headers)


def json_response(model: BaseModel) -> Response:
    """A validated model as JSON. A route that returns the model would validate and copy it again, in a thread
    of its own."""
    return Response(model.model_dump_json(), media_type="application/json")


def conditional_response(request: Request, body: bytes) -> Response:
    """JSON with an entity tag, or 304 if the client has it."""
    etag = etag_of(body)
    if has_current(request, etag):
        return not_modified(etag)
    return Response(body, media_type="application/json", headers={"ETag": etag, **REVALIDATED})


def etag_of(body: bytes) -> str:
    """A weak entity tag: the same for the compressed and the plain body."""
    return f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def has_current(request: Request, etag: str) -> bool:
    """Whether `If-None-Match` names this entity tag, strong or weak."""
    given = request.headers.get("if-none-match", "")
    tags = {tag.strip().removeprefix("W/") for tag in given.split(",")}
    return etag.removeprefix("W/") in tags or "*" in tags


def not_modified(etag: str) -> Response:
    """304."""
    return Response(status_code=304, headers={"ETag": etag, **REVALIDATED})
