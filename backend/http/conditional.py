"""Entity tags of the API's short JSON: a script that asks again gets 304 while nothing has changed."""

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.http.transfer import BLOCK_BYTES, etag_of, has_current

_JSON = "application/json"


class ConditionalMiddleware:
    """ASGI middleware inside of the compression: adds an `ETag` to JSON that is in memory as one block, and
    answers 304 where `If-None-Match` names it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith("/api/"):
            await self._app(scope, receive, send)
            return
        start: Message | None = None

        async def send_on(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _has_tag(message):
                start = message
                return
            if start is not None:
                first, start = start, None
                body: bytes = message.get("body", b"")
                if not message.get("more_body", False) and len(body) <= BLOCK_BYTES:
                    tag = etag_of(body)
                    headers = [*first["headers"], (b"etag", tag.encode())]
                    if has_current(Request(scope), tag):
                        kept = [pair for pair in headers if not pair[0].lower().startswith(b"content-")]
                        await send({**first, "status": 304, "headers": kept})
                        await send({**message, "body": b""})
                        return
                    first = {**first, "headers": headers}
                await send(first)
            await send(message)

        await self._app(scope, receive, send_on)


def _has_tag(start: Message) -> bool:
    """Whether an answer is JSON that gets a tag here."""
    headers = Headers(raw=start.get("headers", []))
    kind = headers.get("content-type", "").partition(";")[0]
    return start["status"] == 200 and kind == _JSON and "etag" not in headers
