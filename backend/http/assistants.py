"""`/mcp`: the Model Context Protocol over HTTP, whose tools send requests to this application's own REST API.

Each of them carries the token of the request to `/mcp`, so that roles, limits and the audit trail hold as for
any script. Without the extra `mcp` there is no such address.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import anyio
import httpx
import structlog
from anyio.abc import TaskGroup, TaskStatus
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.http.errors import respond
from backend.http.security import API_HEADERS, is_own_origin
from backend.platform.errors import Forbidden, Unauthenticated

log = structlog.get_logger(__name__)

PATH = "/mcp"
MAX_BODY_BYTES = 2**17
_TIMEOUT_S = 60.0
_PASSED_ON = ("authorization", "host")
"""Headers that tools send on: the token, and the host, which the application checks."""


class AssistantMiddleware:
    """ASGI middleware around the whole application: answers `/mcp`.

    The SDK is loaded with the first request: few installations have assistants.
    """

    def __init__(self, app: ASGIApp, *, allow_write: bool, cors_origins: list[str], version: str) -> None:
        self._app = app
        self._allow_write = allow_write
        self._origins = frozenset(cors_origins)
        self._version = version
        self._tasks: TaskGroup | None = None
        self._starting = anyio.Lock()
        self._answering: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass a request on."""
        if scope["type"] == "lifespan" and find_spec("mcp") is not None:
            async with anyio.create_task_group() as self._tasks:
                try:
                    await self._app(scope, receive, send)
                finally:
                    self._tasks.cancel_scope.cancel()
                    self._answering = None
        elif scope["type"] == "http" and scope["path"].rstrip("/") == PATH and self._tasks is not None:

            async def send_on(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message.get("headers", ()), *API_HEADERS]
                await send(message)

            refusal = await self._refusal(scope)
            await (refusal or await self._started(self._tasks))(scope, receive, send_on)
        else:
            await self._app(scope, receive, send)

    async def _started(self, tasks: TaskGroup) -> ASGIApp:
        async with self._starting:
            if self._answering is None:
                await tasks.start(self._serve)
            assert self._answering is not None
            return self._answering

    async def _serve(self, *, task_status: TaskStatus[None]) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from callboard.mcp.server import create_server

        server = create_server(self._rest_of, allow_write=self._allow_write, version=self._version)
        manager = StreamableHTTPSessionManager(
            server._lowlevel_server,  # `streamable_http_app` puts an application around it
            json_response=True,
            stateless=True,
            max_request_body_size=MAX_BODY_BYTES,
        )
        try:
            async with manager.run():
                self._answering = manager.asgi_app
                task_status.started()
                await anyio.sleep_forever()
        except Exception:  # the SDK's; it must not end the application
            if self._answering is None:
                raise
            log.exception("mcp.failed")
        finally:
            self._answering = None

    async def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that no tool may see; None if it may."""
        if scope["method"] != "POST":  # the SDK would hold a stream open on which nothing is ever sent
            return Response(status_code=405, headers={"Allow": "POST"})
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and not is_own_origin(scope, headers):
            return respond(Forbidden("the header Origin names no page of this server"), None)
        if not headers.get("authorization", "").lower().startswith("bearer "):
            return respond(Unauthenticated("send a token, as in `Authorization: Bearer …`"), None)
        answer = await self._send(scope, "GET", "auth/me")
        if answer.is_success:
            return None
        return Response(answer.content, answer.status_code, media_type=answer.headers.get("content-type"))

    def _rest_of(self, context: Any) -> "_OwnRest":
        request: Request = context.request_context.request
        return _OwnRest(self._send, request.scope)

    async def _send(self, scope: Scope, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request to the application, on behalf of the one to `/mcp` with this scope."""
        given = Headers(scope=scope)
        headers = {name: given[name] for name in _PASSED_ON if name in given} | options.pop("headers", {})
        client = tuple(scope.get("client") or ("", 0))

        async def application(own: Scope, receive: Receive, send: Send) -> None:
            await self._app(dict(own) | {"app": scope["app"]}, receive, send)

        transport = httpx.ASGITransport(application, raise_app_exceptions=False, client=client)
        url = f"{scope['scheme']}://{given.get('host', 'localhost')}/api/v1/{path}"
        async with httpx.AsyncClient(transport=transport, timeout=_TIMEOUT_S) as sender:
            return await sender.request(method, url, headers=headers, **options)


class _OwnRest:
    """The REST API of this application, for a tool, which runs in a thread."""

    def __init__(self, send: Callable[..., Any], scope: Scope) -> None:
        self._send = send
        self._scope = scope
        self.url = f"{scope['scheme']}://{Headers(scope=scope).get('host', '')}{scope.get('root_path', '')}"

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        answer = self._await(method, path, json=body, params=params, headers=headers)
        return answer.json() if answer.content else None

    def text(self, path: str, params: Mapping[str, Any]) -> str:
        return self._await("GET", path, params=params).text

    def _await(self, method: str, path: str, *, params: Any = None, **options: Any) -> httpx.Response:
        from callboard.transport import check

        query = {name: value for name, value in (params or {}).items() if value is not None}

        async def send() -> httpx.Response:
            answer: httpx.Response = await self._send(self._scope, method, path, params=query, **options)
            return answer

        answer = anyio.from_thread.run(send)
        check(answer)
        return answer
