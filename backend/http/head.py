"""HEAD, answered like GET without the content (RFC 9110, section 9.3.2)."""

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class _NotSent(OSError):
    """Stops the endpoint from streaming the content."""


def _is_of_the_cut(error: Exception) -> bool:
    """Whether an error only says that the content was not sent."""
    if isinstance(error, ExceptionGroup):
        return all(map(_is_of_the_cut, error.exceptions))
    return isinstance(error, _NotSent | ClientDisconnect)


class HeadMiddleware:
    """ASGI middleware: passes HEAD on as GET, and ends the response after its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond; what would stream the content learns that nobody reads it."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        is_answered = False

        async def send_on(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                await send(message)
                return
            # Not with the start: a client counts as gone once its response has ended.
            if not is_answered:
                is_answered = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            if message.get("more_body"):
                raise _NotSent("the content of a HEAD is not sent")

        inner = {**scope, "method": "GET"}
        try:
            await self._app(inner, receive, send_on)
        except Exception as error:
            if not (is_answered and _is_of_the_cut(error)):
                raise
        finally:
            scope["route"] = inner.get("route")
