"""Files from the artifact store, whole or in part."""

import re
from collections.abc import Iterator
from typing import IO

from starlette.responses import Response, StreamingResponse

from backend.artifacts import ArtifactStore, Kind
from backend.errors import BadRange

BLOCK_BYTES = 256 * 1024

BINARY = {"schema": {"type": "string", "format": "binary"}}
"""A file's content, as OpenAPI tells it."""

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def send_file(
    store: ArtifactStore,
    run_id: str,
    kind: Kind,
    file: str,
    *,
    media_type: str,
    asked_range: str | None,
    download: bool = False,
) -> Response:
    """Answer with a file: 200, or 206 with the one part a `Range` header asks for.

    Args:
        store: where it lies.
        run_id: whose file.
        kind: which of the run's folders.
        file: its name, as the database has it.
        media_type: what it is.
        asked_range: the `Range` header; one this server does not know means the whole file.
        download: have a browser save it under its name.

    Raises:
        FileNotFoundError: the store has no such file.
        BadRange: the part asked for begins after the end.
    """
    size = store.size_bytes(run_id, kind, file)
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "private, max-age=86400, immutable"}
    if download:
        headers["Content-Disposition"] = f'attachment; filename="{file}"'
    first, last, status = 0, size - 1, 200
    part = _RANGE.fullmatch(asked_range or "")
    if part and (part[1] or part[2]):
        if part[1]:
            first, last = int(part[1]), min(int(part[2] or size), size - 1)
        else:
            first = max(0, size - int(part[2]))
        if first >= size or first > last:
            raise BadRange("the file ends before", headers={"Content-Range": f"bytes */{size}"})
        status = 206
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    headers["Content-Length"] = str(last - first + 1)
    opened = store.open(run_id, kind, file)
    return StreamingResponse(
        _blocks(opened, first, last - first + 1), status, headers=headers, media_type=media_type
    )


def _blocks(opened: IO[bytes], first: int, left_bytes: int) -> Iterator[bytes]:
    with opened:
        opened.seek(first)
        while left_bytes and (block := opened.read(min(BLOCK_BYTES, left_bytes))):
            left_bytes -= len(block)
            yield block
