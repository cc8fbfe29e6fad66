"""Routes that execute a POST once, however often it is sent with the same `Idempotency-Key`.

The response is stored in the transaction of the change: both are committed or neither. A repeated request
gets the stored response. Of two concurrent requests, the slower one is rolled back and gets it too.
"""

import hashlib
import re
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from starlette.responses import Response

from backend.db.engine import reading
from backend.errors import Conflict, Invalid, respond
from backend.http.dependencies import Repeated, get_state
from backend.http.idempotency import repository
from backend.specs.problems import FieldProblem

HEADER = "Idempotency-Key"
KEY_PATTERN = r"^[\x21-\x7e]{1,255}$"

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class IdempotentRoute(APIRoute):
    """A `route_class` for routers whose routes take their `principal` before their `WriteSession`."""

    def get_route_handler(self) -> Handler:
        """Wrap the handler of POST routes."""
        plain = super().get_route_handler()
        return _once(plain) if "POST" in (self.methods or ()) else plain


def _once(plain: Handler) -> Handler:
    async def handler(request: Request) -> Response:
        key = request.headers.get(HEADER)
        if key is None:
            return await plain(request)
        if not re.fullmatch(KEY_PATTERN, key):
            raise Invalid.field(HEADER, "must be 1 to 255 visible ASCII characters")
        digest = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode())
        digest.update(await request.body())
        request.state.repeated = repeated = Repeated(key, digest.hexdigest())
        response = await plain(request)
        session: Session = request.state.writing
        # A separate thread: those of the pool may all be waiting for the lock that this session holds.
        await anyio.to_thread.run_sync(
            _keep, session, request.state.principal.id, repeated, response, limiter=anyio.CapacityLimiter(1)
        )
        return response

    return handler


def _keep(session: Session, actor_id: str, repeated: Repeated, response: Response) -> None:
    body = bytes(response.body).decode()
    try:
        repository.add(session, actor_id, repeated.key, repeated.fingerprint, response.status_code, body)
    except IntegrityError:
        raise repeated from None


def install(app: FastAPI) -> None:
    """Respond to repeated requests with the stored response."""

    def again(request: Request, error: Exception) -> Response:
        assert isinstance(error, Repeated)
        with reading(get_state(request).db_engine) as session:
            answer = repository.get(session, request.state.principal.id, error.key)
        if answer is None:
            undone = Conflict("the request with this key was rolled back: send it again")
            return respond(undone, request.state.request_id)
        if answer.fingerprint != error.fingerprint:
            named = FieldProblem(field=HEADER, message="was used for another request")
            mistaken = Conflict("this key was used for another request: use a new key", [named])
            return respond(mistaken, request.state.request_id)
        headers = {"Idempotent-Replayed": "true"}
        return Response(answer.body, answer.status, media_type="application/json", headers=headers)

    app.add_exception_handler(Repeated, again)
