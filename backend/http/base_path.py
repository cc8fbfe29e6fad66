"""The service below a path of a proxy's host, such as `/callboard/`.

A proxy may pass addresses on as they are, or without the base path: both are understood. What the service
sends to a browser has the base path: redirects, the paths of cookies, and the addresses in the page.
"""

import re
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_COOKIE_PATH = re.compile(rb"(?i)(;\s*path=)/")
_OWN_DIRECTORIES = re.compile(rb"https?://[^/]*(/help/.*)")
"""A redirect of the documentation's files to a folder, which has a scheme and a host."""


class BasePathMiddleware:
    """ASGI middleware around the whole application.

    Args:
        app: knows nothing of a base path.
        prefix: the base path without its last slash.
    """

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self._app = app
        self._prefix = prefix
        self._raw = prefix.encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on without the base path."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        if path == self._prefix and scope["type"] == "http":
            await self._redirect(scope, send)
            return
        if path.startswith(f"{self._prefix}/"):
            raw: bytes = scope.get("raw_path") or quote(path).encode("ascii")
            scope = {**scope, "path": path[len(self._prefix) :], "raw_path": raw[len(self._raw) :]}

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [self._of_browser(*pair) for pair in message.get("headers", ())]
            await send(message)

        await self._app(scope, receive, send_on)

    async def _redirect(self, scope: Scope, send: Send) -> None:
        query = scope.get("query_string", b"")
        location = self._raw + b"/" + (b"?" + query if query else b"")
        headers = [(b"location", location), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 308, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _of_browser(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        """A header of an answer with the base path."""
        match name.lower():
            case b"location":
                own = _OWN_DIRECTORIES.fullmatch(value)
                path = own[1] if own else value
                if path.startswith(b"/") and not path.startswith((b"//", self._raw + b"/")):
                    return name, self._raw + path
            case b"set-cookie":
                return name, _COOKIE_PATH.sub(rb"\1" + self._raw + b"/", value, count=1)
        return name, value


def page_below(index: str, prefix: str) -> str:
    """The page with the addresses of its files below a base path, which its scripts read from it."""
    below = re.sub(r'\b(src|href)="/(?!/)', rf'\1="{prefix}/', index)
    # Before the scripts, as the first one does not wait for the rest of the page.
    return below.replace("<head>", f'<head>\n    <meta name="callboard-base" content="{prefix}" />', 1)
