"""Responses in parts: exports, and files of the artifact store, whole or in part.

Their number is bounded (`backend.http.limits`), a client that does not read is disconnected
(`backend.http.connections`), and what a response holds is freed when it ends, however it ends.

Not Starlette's `FileResponse`: it serves local files only, and takes three times as long for a whole one. A
range takes it 2 ms instead of 3 (`python -m benchmarks.libraries`).
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import IO, Annotated, Protocol

import anyio
import structlog
from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from backend.http.access import ExternalWriter, Viewer
from backend.http.dependencies import AppStateDep
from backend.http.errors import BadRange
from backend.http.limits import Limits, Slots, Turns
from backend.platform.artifacts import ArtifactKind, ArtifactStore

BLOCK_BYTES = 256 * 1024
"""A client that takes longer than `connections.SEND_TIMEOUT_S` for one is disconnected."""

MAX_DURATION_S = 1800.0
"""How long a response may take, for a reader of the database keeps its write-ahead log from being reused."""

BINARY = {"schema": {"type": "string", "format": "binary"}}
"""Schema of a file's content in OpenAPI."""

IMMUTABLE = {"Cache-Control": "private, max-age=86400, immutable"}
"""Header of a file that never changes."""

log = structlog.get_logger(__name__)

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def send_file(
    store: ArtifactStore,
    run_id: str,
    kind: ArtifactKind,
    file: str,
    *,
    media_type: str,
    range_header: str | None,
    download: bool = False,
) -> Response:
    """Respond with a file: 200, or 206 with the range of a `Range` header.

    Args:
        store: the artifact store.
        run_id: the run of the file.
        kind: the run's folder in the store.
        file: name of the file, from the database.
        media_type: media type of the file.
        range_header: the `Range` header; an unsupported one means the whole file.
        download: whether a browser should save it under its name.

    Raises:
        FileNotFoundError: the store has no such file.
        BadRange: the range starts after the end of the file.
    """
    size = store.size_bytes(run_id, kind, file)
    headers = {"Accept-Ranges": "bytes", **IMMUTABLE}
    if download:
        headers["Content-Disposition"] = f'attachment; filename="{file}"'
    first, last, status = 0, size - 1, 200
    part = _RANGE.fullmatch(range_header or "")
    if part and (part[1] or part[2]):
        if part[1]:
            first, last = int(part[1]), min(int(part[2] or size), size - 1)
        else:
            first = max(0, size - int(part[2]))
        if first >= size or first > last:
            raise BadRange(
                "the range starts after the end of the file", headers={"Content-Range": f"bytes */{size}"}
            )
        status = 206
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    headers["Content-Length"] = str(last - first + 1)
    opened = store.open(run_id, kind, file)
    content = _FileContent(opened, first, last - first + 1)
    return Download(content, status, headers=headers, media_type=media_type)


class Content(Protocol):
    """The parts of a body, such as a generator."""

    def __iter__(self) -> Iterator[bytes]:
        """The parts, of any size."""

    def close(self) -> None:
        """Free what the rest of the body needs."""


class Download(StreamingResponse):
    """A body that is read while it is sent, block by block, in a thread, and closed in the end."""

    def __init__(
        self, content: Content, status_code: int = 200, *, headers: dict[str, str], media_type: str
    ) -> None:
        super().__init__(_blocks(content), status_code, headers=headers, media_type=media_type)
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            with anyio.move_on_after(MAX_DURATION_S) as duration:
                await super().__call__(scope, receive, send)
            if duration.cancelled_caught:
                log.warning("download.slow", path=scope["path"], max_duration_s=MAX_DURATION_S)
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(self._content.close)


def _blocks(content: Content) -> Iterator[bytes]:
    for part in content:
        for start in range(0, len(part), BLOCK_BYTES):
            yield part[start : start + BLOCK_BYTES]


class _FileContent:
    def __init__(self, file: IO[bytes], first: int, n_bytes: int) -> None:
        self._file = file
        self._first = first
        self._n_bytes = n_bytes

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(self._first)
        left_bytes = self._n_bytes
        while left_bytes and (block := self._file.read(min(BLOCK_BYTES, left_bytes))):
            left_bytes -= len(block)
            yield block

    def close(self) -> None:
        self._file.close()


def _slot(of: Callable[[Limits], Slots]) -> Callable[..., AsyncIterator[None]]:
    async def slot(principal: Viewer, state: AppStateDep) -> AsyncIterator[None]:
        with of(state.limits).taken(principal.id):
            yield

    return slot


# Held until the response is sent, or the client has left.
ExportSlot = Annotated[None, Depends(_slot(lambda limits: limits.exports))]
DownloadSlot = Annotated[None, Depends(_slot(lambda limits: limits.downloads))]
StreamSlot = Annotated[None, Depends(_slot(lambda limits: limits.streams))]


def _turn(of: Callable[[Limits], Turns]) -> Callable[..., AsyncIterator[None]]:
    async def turn(principal: Viewer, state: AppStateDep) -> AsyncIterator[None]:
        async with of(state.limits).turn(principal.id):
            yield

    return turn


def _turn_to_write(of: Callable[[Limits], Turns]) -> Callable[..., AsyncIterator[None]]:
    async def turn(principal: ExternalWriter, state: AppStateDep) -> AsyncIterator[None]:
        async with of(state.limits).turn(principal.credential.payer_id):
            yield

    return turn


# Held until the endpoint has its answer. They come before `ReadSession`, which would occupy a connection.
ListTurn = Annotated[None, Depends(_turn(lambda limits: limits.lists), scope="function")]
HashTurn = Annotated[None, Depends(_turn_to_write(lambda limits: limits.hashes), scope="function")]
EstimateTurn = Annotated[None, Depends(_turn(lambda limits: limits.estimates), scope="function")]
