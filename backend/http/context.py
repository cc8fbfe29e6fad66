"""What is known of one request: one typed object, from its arrival to its response."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from sqlalchemy.orm import Session
from starlette.requests import HTTPConnection
from starlette.types import Scope

from backend.platform.principals import Principal


class Repeated(Exception):
    """A request with this idempotency key was executed before: its response is sent again."""


@dataclass(frozen=True)
class KeyedRequest:
    """What a request with an idempotency key asks for."""

    key: str
    fingerprint: str
    """A hash of its method, address and body: a key is for one request only."""


@dataclass
class RequestContext:
    """What is known of one request. `SecurityMiddleware` creates it, and the request's parts complete it."""

    request_id: str
    """The request's id in the logs."""
    principal: Principal | None = None
    """Who sends it; None until it is authenticated, and for requests that need no login."""
    refusal: Exception | None = None
    """Why its body was not read: it has no principal, or one that may not send it; or the database may be
    unavailable."""
    body_bytes: int = 0
    """Size of its body."""
    keyed: KeyedRequest | None = None
    """Set where it is executed once, however often it is sent."""
    session: Session | None = None
    """The transaction of its changes."""
    turns: AsyncExitStack = field(default_factory=AsyncExitStack)
    """Ends its turns among the requests of its kind: when its response begins, or once it waits to write."""
    audited: bool = True
    """Whether it is recorded in the audit trail, if it can change something. An endpoint sets it to false for
    a request that has changed nothing."""


_NAME = "context"


def start_context(scope: Scope, request_id: str) -> None:
    """Create the context of a request."""
    scope.setdefault("state", {})[_NAME] = RequestContext(request_id)


def context_of(connection: HTTPConnection) -> RequestContext:
    """The context of a request."""
    return context_in(connection.scope)


def context_in(scope: Scope) -> RequestContext:
    """The context of a request, from its scope."""
    context: RequestContext = scope["state"][_NAME]
    return context


def request_id_of(scope: Scope) -> str | None:
    """The request's id; None for what has no context, such as a WebSocket."""
    context: RequestContext | None = scope.get("state", {}).get(_NAME)
    return context.request_id if context is not None else None
