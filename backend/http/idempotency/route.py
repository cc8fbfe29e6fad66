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
from sqlalchemy.exc import IntegrityError
from starlette.responses import Response

from backend.db.engine import reading
from backend.http.context import KeyedRequest, Repeated, RequestContext, context_of
from backend.http.dependencies import get_state
from backend.http.errors import respond
from backend.http.idempotency import repository
from backend.http.routing import WritingRoute
from backend.platform.errors import Conflict, Invalid
from backend.specs.problems import FieldProblem

HEADER = "Idempotency-Key"
KEY_PATTERN = r"^[\x21-\x7e]{1,255}$"

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class IdempotentRoute(WritingRoute):
    """A `route_class` for routers whose POST routes are executed once with an `Idempotency-Key`."""

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
        context = context_of(request)
        context.keyed = KeyedRequest(key, digest.hexdigest())
        response = await plain(request)
        # A separate thread: those of the pool may all be waiting for the lock that this session holds.
        await anyio.to_thread.run_sync(_keep, context, response, limiter=anyio.CapacityLimiter(1))
        return response

    return handler


def _keep(context: RequestContext, response: Response) -> None:
    """Store the response in the transaction of the change."""
    session, principal, keyed = context.session, context.principal, context.keyed
    assert session is not None
    assert principal is not None
    assert keyed is not None
    body = bytes(response.body).decode()
    try:
        sender = principal.credential.id
        repository.add(session, sender, keyed.key, keyed.fingerprint, response.status_code, body)
    except IntegrityError:
        raise Repeated from None


def install(app: FastAPI) -> None:
    """Respond to repeated requests with the stored response."""

    def again(request: Request, error: Exception) -> Response:
        context = context_of(request)
        principal, keyed = context.principal, context.keyed
        assert principal is not None
        assert keyed is not None
        with reading(get_state(request).db_engine) as session:
            stored = repository.get(session, principal.credential.id, keyed.key)
        if stored is None:
            undone = Conflict("the request with this key was rolled back: send it again")
            return respond(undone, context.request_id)
        if stored.fingerprint != keyed.fingerprint:
            named = FieldProblem(field=HEADER, message="was used for another request")
            mistaken = Conflict("this key was used for another request: use a new key", [named])
            return respond(mistaken, context.request_id)
        headers = {"Idempotent-Replayed": "true"}
        return Response(stored.body, stored.status, media_type="application/json", headers=headers)

    app.add_exception_handler(Repeated, again)
